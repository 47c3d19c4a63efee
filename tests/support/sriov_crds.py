# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of Spiderpool and of the SR-IOV operator, and a small actor that writes statuses as the operator would.

The schemas are our own, after what is known of the fields (S76, S84-S86, S101, S113, S120), with their bounds and
without anything that lets unknown fields through, so that strict validation refuses what these versions do not have.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

NAMESPACE = "spiderpool"
SRIOV, SPIDER = "sriovnetwork.openshift.io", "spiderpool.spidernet.io"
GPU = "nvidia.com"
STATES = "/apis/%s/v1/namespaces/%s/sriovnetworknodestates" % (SRIOV, NAMESPACE)
DESIRED, CURRENT = SRIOV + "/desired-state", SRIOV + "/current-state"
PATIENCE = 20.0

_TEXT, _NUMBER, _TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


def _list(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _map() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _TEXT}


def _of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _number(low: int, high: int | None = None) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, **({} if high is None else {"maximum": high})}


_POOLS = _of(ipv4=_list(_TEXT), ipv6=_list(_TEXT), matchMasterSubnet=_TRUTH)
_POLICY = {
    **_of(
        resourceName=_TEXT,
        nodeSelector=_map(),
        priority=_number(0, 99),
        mtu=_number(1),
        numVfs=_number(0),
        nicSelector=_of(
            vendor=_TEXT, deviceID=_TEXT, rootDevices=_list(_TEXT), pfNames=_list(_TEXT), netFilter=_TEXT
        ),
        deviceType=_one_of("netdevice", "vfio-pci"),
        isRdma=_TRUTH,
        linkType=_one_of("eth", "ETH", "ib", "IB"),
        eSwitchMode=_one_of("legacy", "switchdev"),
        excludeTopology=_TRUTH,
        externallyManaged=_TRUTH,
    ),
    "required": ["nicSelector", "nodeSelector", "numVfs", "resourceName"],
}
_STATE = _of(
    interfaces=_list(
        _of(pciAddress=_TEXT, name=_TEXT, numVfs=_NUMBER, mtu=_NUMBER, linkType=_TEXT, vfGroups=_list(_ANY))
    )
)
_STATUS = _of(
    interfaces=_list(
        _of(
            name=_TEXT,
            pciAddress=_TEXT,
            vendor=_TEXT,
            deviceID=_TEXT,
            driver=_TEXT,
            mac=_TEXT,
            mtu=_NUMBER,
            numVfs=_NUMBER,
            totalvfs=_NUMBER,
            linkType=_TEXT,
            linkSpeed=_TEXT,
            linkAdminState=_TEXT,
            eSwitchMode=_TEXT,
            Vfs=_list(_of(guid=_TEXT, driver=_TEXT, mtu=_NUMBER, name=_TEXT, pciAddress=_TEXT, vfID=_NUMBER)),
        )
    ),
    syncStatus=_TEXT,
    lastSyncError=_TEXT,
)
_POOL_CONFIG = _of(
    nodeSelector=_of(matchLabels=_map(), matchExpressions=_list(_ANY)),
    maxUnavailable={"x-kubernetes-int-or-string": True},
)
_OPERATOR = _of(
    disableDrain=_TRUTH, enableInjector=_TRUTH, enableOperatorWebhook=_TRUTH, configDaemonNodeSelector=_map()
)
_IP_POOL = {
    **_of(
        subnet=_TEXT,
        ipVersion={"type": "integer", "enum": [4, 6]},
        ips=_list(_TEXT),
        excludeIPs=_list(_TEXT),
        gateway=_TEXT,
        routes=_list({**_of(dst=_TEXT, gw=_TEXT), "required": ["dst", "gw"]}),
        podAffinity=_ANY,
        namespaceAffinity=_ANY,
        nodeAffinity=_ANY,
        namespaceName=_list(_TEXT),
        nodeName=_list(_TEXT),
        multusName=_list(_TEXT),
        default=_TRUTH,
        disable=_TRUTH,
    ),
    "required": ["subnet"],
}
_MULTUS = _of(
    cniType=_one_of("macvlan", "ipvlan", "vlan", "sriov", "ovs", "ib-sriov", "ipoib", "custom"),
    enableCoordinator=_TRUTH,
    disableIPAM=_TRUTH,
    coordinator=_ANY,
    chainCNIJsonData=_list(_TEXT),
    macvlan=_ANY,
    ipvlan=_ANY,
    vlan=_ANY,
    ovs=_ANY,
    ipoib=_ANY,
    customCNI=_TEXT,
    sriov=_of(
        resourceName=_TEXT,
        vlanID=_number(0, 4094),
        mtu=_number(0),
        minTxRateMbps=_number(0),
        maxTxRateMbps=_number(0),
        rdmaIsolation=_TRUTH,
        ippools=_POOLS,
    ),
    ibsriov=_of(
        resourceName=_TEXT,
        pkey=_TEXT,
        linkState=_one_of("auto", "enable", "disable"),
        rdmaIsolation=_TRUTH,
        enableIbKubernetes=_TRUTH,
        ippools=_POOLS,
    ),
)


def _crd(group: str, version: str, kind: str, spec: Any, **more: Any) -> dict[str, Any]:
    plural = kind.lower() + "s" if not kind.endswith("y") else kind.lower()[:-1] + "ies"
    status = more.get("status")
    schema = _of(spec=spec, **({"status": status} if status else {}))
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "%s.%s" % (plural, group)},
        "spec": {
            "group": group,
            "scope": more.get("scope", "Namespaced"),
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": kind + "List"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **({"subresources": {"status": {}}} if status else {}),
                }
            ],
        },
    }


CRDS = [
    _crd(SRIOV, "v1", "SriovNetworkNodeState", _STATE, status=_STATUS),
    _crd(SRIOV, "v1", "SriovNetworkNodePolicy", _POLICY),
    _crd(SRIOV, "v1", "SriovNetworkPoolConfig", _POOL_CONFIG),
    _crd(SRIOV, "v1", "SriovOperatorConfig", _OPERATOR),
    _crd(SPIDER, "v2beta1", "SpiderIPPool", _IP_POOL, scope="Cluster"),
    _crd(SPIDER, "v2beta1", "SpiderMultusConfig", _MULTUS),
]
_DRIVER = _of(
    enabled=_TRUTH, useNvidiaDriverCRD=_TRUTH, rdma=_of(enabled=_TRUTH, useHostMofed=_TRUTH), version=_TEXT
)
CLUSTER_POLICY = _crd(
    GPU, "v1", "ClusterPolicy", _of(driver=_DRIVER, gdrcopy=_of(enabled=_TRUTH)), scope="Cluster"
)
"""The kind of the GPU operator, as far as NICs are concerned (S41)."""


@contextlib.contextmanager
def served(cluster: Cluster) -> Iterator[None]:
    """The API server serves these kinds, and has the namespace; all of it goes with the context."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    try:
        for crd in CRDS:
            cluster.apply(crd)
        cluster.apply(namespace)
        for crd in CRDS:
            wait_until_established(cluster, crd)
        yield
    finally:
        for crd in CRDS:
            cluster.delete(crd)
        cluster.delete(namespace)


def wait_until_taken(cluster: Cluster, document: dict[str, Any]) -> None:
    """Wait until the server validates by a definition that has just been changed, and takes the document."""
    end = time.monotonic() + PATIENCE
    while not _takes(cluster, document):
        assert time.monotonic() < end, document
        time.sleep(0.2)


def _takes(cluster: Cluster, document: dict[str, Any]) -> bool:
    try:
        cluster.apply(document, dry_run=True)
    except RdmaError as error:
        if not error.code.startswith("kube_"):
            raise
        return False
    return True


def wait_until_established(cluster: Cluster, crd: dict[str, Any]) -> None:
    """Wait until the server serves a kind."""
    spec = crd["spec"]
    path = "/apis/%s/%s/%s" % (spec["group"], spec["versions"][0]["name"], spec["names"]["plural"])
    end = time.monotonic() + PATIENCE
    while not _answers(cluster, path):
        assert time.monotonic() < end, crd["metadata"]["name"]
        time.sleep(0.1)


def _answers(cluster: Cluster, path: str) -> bool:
    try:
        cluster.get(path)
    except RdmaError as error:
        if error.code != "kube_not_found":
            raise
        return False
    return True


def _function(place: str, number: int) -> dict[str, Any]:
    """A virtual function of a PF, as the daemon lists it."""
    address = "%s%02x.%d" % (place[:8], 1 + number // 8, number % 8)
    return {"vfID": number, "driver": "mlx5_core", "mtu": 1500, "pciAddress": address}


class Operator:
    """Writes what operator and daemon would write about nodes."""

    def __init__(self, cluster: Cluster, places: tuple[str, ...], link: str = "ETH") -> None:
        self._cluster, self._places, self._link = cluster, places, link

    def fresh(self, node: str) -> None:
        """A state that says Succeeded before any policy reached the node (S116)."""
        state = {
            "apiVersion": SRIOV + "/v1",
            "kind": "SriovNetworkNodeState",
            "metadata": {"name": node, "namespace": NAMESPACE},
            "spec": {},
        }
        self._cluster.send("POST", STATES, state)
        self.say(node, "Succeeded", vfs=0)
        self.drain(node, "Idle", "Idle")

    def render(self, node: str, vfs: int) -> None:
        """The operator has written what the policies want."""
        interfaces = [{"pciAddress": place, "numVfs": vfs} for place in self._places]
        self._patch(node, {"spec": {"interfaces": interfaces}})

    def say(self, node: str, sync: str, vfs: int, error: str = "", listed: int | None = None) -> None:
        """What the daemon tells: the number of functions as set, and how many it lists."""
        count = vfs if listed is None else listed
        interfaces = [
            {
                "name": "ens%df0np0" % (number + 1),
                "pciAddress": place,
                "vendor": "15b3",
                "deviceID": "1021",
                "driver": "mlx5_core",
                "mtu": 1500,
                "numVfs": vfs,
                "totalvfs": 16,
                "linkType": self._link,
                "Vfs": [_function(place, vf) for vf in range(count)],
            }
            for number, place in enumerate(self._places)
        ]
        status = {"syncStatus": sync, "lastSyncError": error, "interfaces": interfaces}
        self._cluster.send("PATCH", "%s/%s/status" % (STATES, node), {"status": status}, _MERGE)

    def drain(self, node: str, desired: str, current: str) -> None:
        """Where the drain is (S114)."""
        self._patch(node, {"metadata": {"annotations": {DESIRED: desired, CURRENT: current}}})

    def register(self, node: str, resource: str, count: int | None) -> None:
        """What the kubelet tells of a resource; ``None``: nothing."""
        value = None if count is None else str(count)
        amounts = {"capacity": {resource: value}, "allocatable": {resource: value}}
        self._cluster.send("PATCH", "/api/v1/nodes/%s/status" % node, {"status": amounts}, _STRATEGIC)

    def label(self, node: str, **labels: Any) -> None:
        """Set labels; ``None`` removes one."""
        self._cluster.send("PATCH", "/api/v1/nodes/" + node, {"metadata": {"labels": labels}}, _MERGE)

    def forget(self, node: str) -> None:
        """The state of the node goes."""
        self._cluster.delete(
            {
                "apiVersion": SRIOV + "/v1",
                "kind": "SriovNetworkNodeState",
                "metadata": {"name": node, "namespace": NAMESPACE},
            }
        )

    def _patch(self, node: str, content: dict[str, Any]) -> None:
        self._cluster.send("PATCH", "%s/%s" % (STATES, node), content, _MERGE)
