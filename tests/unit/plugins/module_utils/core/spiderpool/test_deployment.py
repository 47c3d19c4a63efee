# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All objects of a table, and what is wrong with them in a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiObject,
    ClusterSnapshot,
    DaemonSet,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import deployment, objects, table
from ansible_collections.rdma.k8s.tests.support import rails
from ansible_collections.rdma.k8s.tests.support.sriov_crds import CRDS

ROWS = [
    {
        "pci": place,
        "subnet": "172.16.%d.0/24" % (11 + number),
        "gateway": "172.16.%d.254" % (11 + number),
        "link_type": "eth",
        "vfs": 8,
        "resource": "gpu%dsriov" % (number + 1),
    }
    for number, place in enumerate(rails.PLACES)
]
SETUP = objects.Setup(dict(rails.LABELS))
NODES = ("w1", "w2")
FRESH = {"ip_pools": (), "multus_configs": (), "sriov_policies": (), "sriov_pool_configs": ()}


def wish(**more: Any) -> deployment.Wish:
    return deployment.Wish(**{"rows": ROWS, "setup": SETUP, **more})


def live(disable_drain: Any = None, *definitions: Any, **fields: Any) -> deployment.Live:
    """A cluster with the operator, before anything is made; its definitions may be others."""
    (known,) = definitions or (CRDS,)
    found: ClusterSnapshot = replace(rails.cluster(*NODES), **{**FRESH, **fields})
    return deployment.Live(found, known, disable_drain)


def codes(plan: deployment.Plan) -> list[tuple[str, str, str]]:
    return [(told.subject, told.issue.code, told.issue.severity) for told in plan.told]


def test_a_good_table_in_a_good_cluster() -> None:
    plan = deployment.decide(wish(nodes=NODES, max_unavailable=1), live(False))
    assert codes(plan) == []
    assert plan.nodes == list(NODES)
    assert [entry["kind"] for entry in plan.objects] == [
        "SriovNetworkPoolConfig",
        *["SriovNetworkNodePolicy"] * 2,
        *["SpiderIPPool"] * 2,
        *["SpiderMultusConfig"] * 2,
    ]
    for entry in plan.objects:
        assert deployment.LABELS.items() <= entry["metadata"]["labels"].items()


def test_the_pods_for_tests() -> None:
    """S140, S164: each rail is in the limits, and memory can be locked."""
    trial = deployment.Trial("x/y:1", "tests", "kube-system/calico", ("run",), ({"operator": "Exists"},))
    (pods,) = deployment.decide(wish(test=trial)).test
    template = pods["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "v1.multus-cni.io/default-network": "kube-system/calico",
        "k8s.v1.cni.cncf.io/networks": "spiderpool/gpu1sriov-eth,spiderpool/gpu2sriov-eth",
    }
    (container,) = template["spec"]["containers"]
    assert container["resources"]["limits"] == {"spidernet.io/gpu1sriov": "1", "spidernet.io/gpu2sriov": "1"}
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert template["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert template["spec"]["nodeSelector"] == rails.LABELS
    (injected,) = deployment.decide(wish(test=trial, setup=SETUP._replace(inject="rails"))).test
    assert "resources" not in injected["spec"]["template"]["spec"]["containers"][0]


def test_infiniband_and_shared_mode() -> None:
    """S86, S87: what is on by default is switched off where the nodes are in shared mode."""
    rows = [{**row, "link_type": "ib", "pkey": "0x10"} for row in ROWS]
    plan = deployment.decide(wish(rows=rows, netns_mode="shared", setup=SETUP._replace(isolated=False)))
    assert codes(plan) == []
    config = plan.objects[-1]["spec"]
    assert config["cniType"] == "ib-sriov"
    assert config["ibsriov"] == {
        "resourceName": "spidernet.io/gpu2sriov",
        "ippools": {"ipv4": ["gpu2sriov-net"]},
        "rdmaIsolation": False,
        "pkey": "0x10",
        "enableIbKubernetes": True,
    }


def pool(**spec: Any) -> ApiObject:
    return ApiObject("other", "spiderpool", "", {"nodeSelector": {"matchLabels": dict(rails.LABELS)}, **spec})


@pytest.mark.parametrize(
    ("more", "there", "finding"),
    [
        ({"nodes": ["w3"]}, {}, ("w3", "node-not-selected", "error")),
        (
            {"setup": SETUP._replace(node_selector={"no": "such"})},
            {},
            ("cluster", "node-none-selected", "error"),
        ),
        ({}, {"disable_drain": True}, ("cluster", "drain-disabled", "error")),
        ({"drain": False}, {"disable_drain": True}, ("cluster", "drain-disabled", "warning")),
        (
            {},
            {"sriov_pool_configs": (pool(rdmaMode="exclusive"),)},
            ("SriovNetworkPoolConfig spiderpool/other", "netns-two-owners", "error"),
        ),
        (
            {"max_unavailable": 1},
            {"sriov_pool_configs": (pool(),)},
            ("SriovNetworkPoolConfig spiderpool/other", "node-in-two-pools", "error"),
        ),
        ({"max_unavailable": "10%"}, {}, ("settings", "max-unavailable-zero", "error")),
        ({"max_unavailable": "many"}, {}, ("settings", "max-unavailable-invalid", "error")),
        (
            {"netns_owner": "operator"},
            {},
            ("SriovNetworkPoolConfig spiderpool/rdma-k8s", "field-pruned", "error"),
        ),
        (
            {"test": deployment.Trial("x", default_network="kube-system/calico")},
            {},
            ("test", "default-network-unknown", "error"),
        ),
        ({"setup": SETUP._replace(inject="not a label")}, {}, ("settings", "inject-value-invalid", "error")),
        (
            {"setup": SETUP._replace(network_namespace="No")},
            {},
            ("network_namespace", "name-malformed", "error"),
        ),
        (
            {"rows": [{**ROWS[0], "pci": "0000:99:00.0"}]},
            {},
            ("SriovNetworkNodePolicy spiderpool/gpu1sriov", "nic-none-selected", "error"),
        ),
        (
            {"rows": [{**ROWS[0], "ranges": ["172.16.11.1-172.16.11.15"]}]},
            {},
            ("SpiderIPPool gpu1sriov-net", "pool-too-small", "error"),
        ),
        (
            {"rows": [{**ROWS[0], "vfs": 64}]},
            {},
            ("SriovNetworkNodePolicy spiderpool/gpu1sriov", "numvfs-needs-firmware", "warning"),
        ),
        (
            {"rows": ROWS[:1]},
            {"ip_pools": (ApiObject("taken", spec={"subnet": "172.16.0.0/16", "ips": ["172.16.11.9"]}),)},
            ("SpiderIPPool gpu1sriov-net", "subnet-overlap", "error"),
        ),
    ],
)
def test_what_a_cluster_stands_against(
    more: dict[str, Any], there: dict[str, Any], finding: tuple[str, str, str]
) -> None:
    """S23, S26, S77, S107, S108, S120 to S123, S160."""
    plan = deployment.decide(wish(**more), live(**there))
    assert finding in codes(plan)
    assert deployment.is_ok(plan.told) == (finding[2] == "warning")


def test_ubuntu_reboots_for_ever() -> None:
    """S24, S175."""
    found = live()
    nodes = tuple(replace(node, os="Ubuntu 22.04.5 LTS") for node in found.snapshot.nodes or ())
    plan = deployment.decide(wish(netns_owner="operator"), live(nodes=nodes))
    assert ("w1", "rdmamode-reboot-loop", "error") in codes(plan)


def test_a_control_plane_that_would_be_drained() -> None:
    """S244."""
    found = live()
    nodes = tuple(
        replace(node, labels={**node.labels, "node-role.kubernetes.io/control-plane": ""})
        for node in found.snapshot.nodes or ()
    )
    told = codes(deployment.decide(wish(), live(nodes=nodes)))
    assert ("w1", "nodeselector-control-plane", "warning") in told


def test_an_older_form_of_our_own_objects_is_no_conflict() -> None:
    """The table has changed; what it made before is judged in its new form alone."""
    before = deployment.decide(wish())
    there = [
        ApiObject(entry["metadata"]["name"], entry["metadata"].get("namespace", ""), "", entry["spec"])
        for entry in before.objects
    ]
    fields = {
        "sriov_policies": tuple(there[:2]),
        "ip_pools": tuple(there[2:4]),
        "multus_configs": tuple(there[4:]),
    }
    rows = [
        {**row, "subnet": "172.16.%d.0/24" % (12 - number), "gateway": ""} for number, row in enumerate(ROWS)
    ]
    assert codes(deployment.decide(wish(rows=rows), live(**fields))) == []


def test_a_wish_without_a_field() -> None:
    """S91: versions without the MTU of virtual functions."""
    plan = deployment.decide(
        wish(setup=SETUP._replace(spiderpool_version="1.1.0"), defaults=table.Defaults(mtu=4200))
    )
    assert [told.issue.code for told in plan.told] == ["mtu-field-missing"] * 2


def test_what_nodes_and_their_network_tell() -> None:
    """S40, S43: findings of nodes stand under their names."""
    node = NodeSnapshot.from_dict({"name": "w1", "pci": ["0000:0c:00.1 15b3:1021 0200 mlx5_core 0 vfs 0/16"]})
    found = live()
    there = tuple(
        replace(entry, addresses=("InternalIP 172.16.11.7",)) for entry in found.snapshot.nodes or ()
    )
    calico = (DaemonSet("kube-system", "calico-node"),)
    plan = deployment.decide(wish(), live(nodes=there, daemonsets=calico), [node])
    assert codes(plan) == [
        ("w1", "internal-ip-on-rail", "error"),
        ("w2", "internal-ip-on-rail", "error"),
        ("DaemonSet calico-node", "calico-not-pinned", "warning"),
        ("w1", "rail-nic-missing", "error"),
    ]


def test_values_of_the_chart() -> None:
    """S95, S98, S123, S158, S166; what the user gives counts."""
    chart = deployment.Chart(
        "mirror.example", True, True, True, ("train",), ("kube-system",), {"sriov": {"x": 1}}
    )
    found = deployment.chart_values(chart, SETUP._replace(inject="rails"), drain=True)
    assert found == {
        "sriov": {
            "install": True,
            "resourcePrefix": "spidernet.io",
            "operatorConfig": {"disableDrain": False},
            "x": 1,
        },
        "ipam": {"enableGatewayDetection": True},
        "global": {"imageRegistryOverride": "mirror.example"},
        "spiderpoolAgent": {"prometheus": {"enabled": True, "enabledRdmaMetric": True}},
        "grafanaDashboard": {"install": True},
        "spiderpoolController": {
            "podResourceInject": {
                "enabled": True,
                "namespacesInclude": ["train"],
                "namespacesExclude": ["kube-system"],
            }
        },
    }
    assert set(deployment.chart_values(deployment.Chart(), SETUP, drain=False)) == {"sriov", "ipam"}


def test_expressions_become_values() -> None:
    """They are laid over the values, with the kinds that Helm makes of them."""
    given = (
        "a.b=true",
        "a.c=3",
        "a.d=03",
        "a.e=",
        "a.f=null",
        "ipam.enableGatewayDetection=false",
        "a.g=x=y",
    )
    found = deployment.chart_values(deployment.Chart(expressions=given), SETUP, drain=True)
    assert found["a"] == {"b": True, "c": 3, "d": "03", "e": "", "f": None, "g": "x=y"}
    assert found["ipam"] == {"enableGatewayDetection": False}


def test_the_gpu_operator() -> None:
    """S41: judged where it is, and told where it may not be looked at."""
    off = {"metadata": {"name": "p"}, "spec": {"gdrcopy": {"enabled": True}}}
    found = live(False)._replace(gpu_policies=[off])
    assert codes(deployment.decide(wish(), found)) == [("ClusterPolicy p", "gpudirect-off", "warning")]
    needed = wish(gpudirect=True)
    assert codes(deployment.decide(needed, found)) == [("ClusterPolicy p", "gpudirect-off", "error")]
    assert codes(deployment.decide(needed, live(False))) == []
    hidden = live(False)._replace(gpu_policies=None)
    assert codes(deployment.decide(needed, hidden)) == [("cluster", "gpudirect-unknown", "warning")]
    assert codes(deployment.decide(wish(), hidden)) == []


def test_a_sentence() -> None:
    plan = deployment.decide(wish(rows=[{**ROWS[0], "subnet": "172.16.11.0/16"}]))
    told = [deployment.sentence(entry) for entry in plan.told]
    (first,) = told
    assert first.startswith("SpiderIPPool gpu1sriov-net, spec.subnet: 172.16.11.0/16 has host bits;")
    assert first.endswith("its network is 172.16.0.0/16 (subnet-not-canonical).")
