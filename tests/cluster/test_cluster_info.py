# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster read by the module, also by a user with no more rights than the documentation says."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import driver_rights
from ansible_collections.rdma.k8s.plugins.modules import cluster_info
from ansible_collections.rdma.k8s.tests.support import change_run

from .conftest import RAILS, SIMULATED, ControlPlane
from .test_client import token, with_user

HOWTO = Path(__file__).resolve().parents[2] / "docs" / "howto" / "read-a-cluster.md"
DRIVER = "dranet"
IMAGE = "lab.test/dranet:v1.4.0"


def read(control_plane: ControlPlane, **options: Any) -> tuple[ClusterSnapshot, dict[str, Any]]:
    """Run the module; the snapshot and the result."""
    options.setdefault("kubeconfig", str(control_plane.kubeconfig))
    result = change_run.run(cluster_info, **options)
    assert "failed" not in result, result
    return ClusterSnapshot.from_dict(result["snapshot"]), result


def manifest(name: str) -> list[dict[str, Any]]:
    """A driver on all simulated nodes, and a pod with a claim for one NIC; all of them end with the test."""
    labels = {"rdma-test": name}
    pod_spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"rdma-lab/simulated": "true"},
    }
    driver = {
        "name": DRIVER,
        "image": IMAGE,
        "args": ["--v=4", "--cloud-provider-hint=OKE", "--api-token=s3cret"],
        "env": [{"name": "NODE_NAME", "value": "s3cret"}],
        "volumeMounts": [{"name": "oca", "mountPath": "/etc/oca", "readOnly": True}],
    }
    volumes = [{"name": "oca", "hostPath": {"path": "/etc/oca", "type": "DirectoryOrCreate"}}]
    claim_spec = {
        "devices": {
            "requests": [{"name": "nic", "exactly": {"deviceClassName": name}}],
            "config": [{"opaque": {"driver": "dra.net", "parameters": {"interface": {"name": "net0"}}}}],
        }
    }
    group = "resource.k8s.io/v1"
    rbac = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": "kube-system"},
        },
        {
            "apiVersion": rbac + "/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
                {
                    "apiGroups": ["resource.k8s.io"],
                    "resources": ["resourceclaims/driver"],
                    "verbs": ["associated-node:patch"],
                    "resourceNames": ["dra.net"],
                },
            ],
        },
        {
            "apiVersion": rbac + "/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {
                "selector": {"matchLabels": labels},
                "updateStrategy": {"type": "OnDelete"},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        **pod_spec,
                        "serviceAccountName": name,
                        "containers": [driver],
                        "volumes": volumes,
                    },
                },
            },
        },
        {
            "apiVersion": group,
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
        },
        {
            "apiVersion": group,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"spec": claim_spec},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                **pod_spec,
                "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": name}],
                "containers": [
                    {"name": "c", "image": "lab.test/pod:1", "resources": {"claims": [{"name": "nic"}]}}
                ],
            },
        },
    ]


@pytest.fixture(scope="module")
def driver(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a driver that runs, of a class, of a template, and of a pod with a claim."""
    name = "t" + uuid.uuid4().hex[:8]
    objects = {"apiVersion": "v1", "kind": "List", "items": manifest(name)}
    control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(objects))
    try:
        control_plane.kubectl("wait", "pod", name, "--for=condition=Ready", "--timeout=60s")
        for _try in range(120):
            found = json.loads(control_plane.kubectl("get", "ds", name, "-n", "kube-system", "-o", "json"))
            if found["status"].get("numberReady") == SIMULATED:
                break
            time.sleep(0.5)
        yield name
    finally:
        control_plane.kubectl("delete", "pod", name, "--wait=true", "--timeout=60s")
        control_plane.kubectl("delete", "resourceclaimtemplate", name)
        control_plane.kubectl("delete", "deviceclass", name)
        control_plane.kubectl("delete", "ds", name, "-n", "kube-system")
        control_plane.kubectl("delete", "clusterrolebinding", name)
        control_plane.kubectl("delete", "clusterrole", name)
        control_plane.kubectl("delete", "serviceaccount", name, "-n", "kube-system")


def test_everything(control_plane: ControlPlane, driver: str) -> None:
    """Simulated nodes with the slices of DRANET (F99), a driver and a claim."""
    found, result = read(control_plane, name="lab")
    assert (found.name, found.server.serves("resource.k8s.io", "devicetaintrules")) == ("lab", True)
    assert found.server.version.startswith("v1.")
    assert [error.source for error in found.errors] == ["pod CIDRs"]
    nodes, slices = found.nodes or (), found.slices or ()
    assert (len(nodes), all(node.ready for node in nodes)) == (SIMULATED, True)
    assert {node.labels["rdma-lab/simulated"] for node in nodes} == {"true"}
    assert {node.kubelet for node in nodes} == {found.server.version}
    assert {(entry.driver, entry.pool == entry.node, len(entry.devices)) for entry in slices} == {
        ("dra.net", True, RAILS)
    }
    assert {device.attributes["dra.net/rdma"] for entry in slices for device in entry.devices} == {True}
    assert [entry.cidr for entry in found.service_cidrs or ()] == ["10.96.0.0/16"]
    assert (found.pod_cidrs, found.sriov_node_states) == (None, ())
    assert result["summary"]["devices"] == SIMULATED * RAILS
    assert result["changed"] is False


def test_the_driver_and_its_pods(control_plane: ControlPlane, driver: str) -> None:
    found, result = read(control_plane, subsets=["drivers"])
    (daemonset,) = [entry for entry in found.daemonsets or () if entry.name == driver]
    assert (daemonset.role, daemonset.strategy) == ("dranet", "OnDelete")
    assert (daemonset.desired, daemonset.ready) == (SIMULATED, SIMULATED)
    pods = daemonset.pods or ()
    assert len({pod.node for pod in pods}) == SIMULATED
    assert all(pod.ready and pod.started and pod.args is None for pod in pods)
    assert len({pod.revision for pod in pods}) == 1
    (container,) = daemonset.containers
    assert container.args == ("--v=4", "--cloud-provider-hint=OKE", "--api-token=(removed)")
    assert container.environment == ("NODE_NAME",)
    assert (container.mounts[0].host, container.mounts[0].type) == ("/etc/oca", "DirectoryOrCreate")
    assert "s3cret" not in json.dumps(result["snapshot"])
    assert result["calls"] == 4  # version, what is served, DaemonSets, pods


def test_what_the_driver_may_do(control_plane: ControlPlane, driver: str) -> None:
    """F119: the rules of its own role, and those that every account has by its groups; two lists."""
    found, result = read(control_plane, subsets=["permissions"])
    (account,) = [entry for entry in found.driver_accounts or () if entry.name == driver]
    assert (account.namespace, found.errors) == ("kube-system", ())
    assert {driver, "system:basic-user", "system:discovery"} <= set(account.roles)
    assert "system:node" not in account.roles
    lacking = {right.subject: driver_rights.lacking(right, account.rules) for right in driver_rights.needed()}
    assert (lacking["nodes"], lacking["events"]) == ((), ("create", "patch", "update"))
    assert lacking["resourceclaims/driver.resource.k8s.io"] == ("associated-node:update",)
    user = f"system:serviceaccount:kube-system:{driver}"
    assert (_may(control_plane, user, "get", "nodes"), _may(control_plane, user, "create", "events")) == (
        True,
        False,
    )
    assert result["calls"] == 5  # version, what is served, DaemonSets, bindings, roles


def test_a_claim_and_what_it_has(control_plane: ControlPlane, driver: str) -> None:
    found, _result = read(control_plane, subsets=["dra"])
    (claim,) = [entry for entry in found.claims or () if entry.owner == driver]
    assert (claim.allocated, claim.deleted, [entry.device_class for entry in claim.requests]) == (
        True,
        "",
        [driver],
    )
    (device,) = claim.devices
    assert (device.driver, device.request, device.pool) == ("dra.net", "nic", claim.node)
    assert [(entry.resource, entry.name) for entry in claim.reserved_for] == [("pods", driver)]
    assert claim.config[0].parameters == {"interface": {"name": "net0"}}
    (status,) = claim.status
    assert (status.device, status.conditions.get("Ready")) == (device.device, "True")
    published = {(entry.pool, held.name) for entry in found.slices or () for held in entry.devices}
    assert (device.pool, device.device) in published
    assert [entry.requests for entry in found.claim_templates or () if entry.name == driver] == [
        claim.requests
    ]
    (klass,) = [entry for entry in found.device_classes or () if entry.name == driver]
    assert klass.selectors == ('device.driver == "dra.net"',)


def test_few_calls_and_none_for_a_node(control_plane: ControlPlane, driver: str) -> None:
    """One request for a kind, however many nodes there are; the audit log has what the server saw."""
    audit = control_plane.cluster.directory / "audit.log"
    before = len(audit.read_text("utf-8").splitlines())  # other tests do ask for single nodes
    found, result = read(control_plane)
    assert result["calls"] == found.collector.calls
    assert result["calls"] <= 20
    log = audit.read_text("utf-8").splitlines()[before:]
    seen = [json.loads(line) for line in log if '"rdma.k8s/' in line]
    assert len(seen) == result["calls"] - 3  # /version, events and leases are not in the log
    uris = [entry["requestURI"] for entry in seen if entry["verb"] in ("get", "list")]
    assert not [uri for uri in uris if re.search(r"/(nodes|resourceslices)/", uri)]
    assert not [uri for uri in uris if "/secrets" in uri]


def documented_roles() -> list[dict[str, Any]]:
    """The two roles of the page."""
    (block,) = [
        block
        for block in re.findall(r"^```yaml\n(.*?)^```$", HOWTO.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        if "ClusterRole" in block
    ]
    return list(yaml.safe_load_all(block))


@pytest.fixture(scope="module")
def reader(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A kubeconfig of a user with the roles of the documentation and nothing else."""
    mark = "t" + uuid.uuid4().hex[:8]
    roles = documented_roles()
    for role in roles:
        role["metadata"]["name"] += "-" + mark
    items = {"apiVersion": "v1", "kind": "List", "items": roles}
    control_plane.kubectl("create", "namespace", mark)
    try:
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(items))
        wide, narrow = (role["metadata"]["name"] for role in roles)
        account = f"--serviceaccount={mark}:reader"
        held = token(control_plane, mark, "reader")
        control_plane.kubectl("create", "clusterrolebinding", wide, "--clusterrole=" + wide, account)
        control_plane.kubectl(
            "create", "rolebinding", narrow, "-n", "kube-system", "--clusterrole=" + narrow, account
        )
        user = f"system:serviceaccount:{mark}:reader"
        for _try in range(60):  # the authorizer learns of a role a moment later
            if _may(control_plane, user, "list", "nodes") and _may(
                control_plane, user, "list", "pods", "-n", "kube-system"
            ):
                break
            time.sleep(0.25)
        yield with_user(control_plane, tmp_path_factory.mktemp("reader"), token=held)
    finally:
        for role in roles:
            name = role["metadata"]["name"]
            control_plane.kubectl("delete", "clusterrole", name, "--ignore-not-found")
            control_plane.kubectl("delete", "clusterrolebinding", name, "--ignore-not-found")
            control_plane.kubectl("delete", "rolebinding", name, "-n", "kube-system", "--ignore-not-found")
        control_plane.kubectl("delete", "namespace", mark, "--wait=false")


def _may(control_plane: ControlPlane, user: str, *words: str) -> bool:
    """Whether a user has a right, as the server says."""
    content = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "resourceAttributes": {
                "verb": words[0],
                "resource": words[1],
                "namespace": words[3] if len(words) > 3 else "",
            },
        },
    }
    answer = control_plane.kubectl("create", "-f", "-", "-o", "json", stdin=json.dumps(content))
    return json.loads(answer)["status"]["allowed"] is True


def test_the_documented_rights_are_enough(control_plane: ControlPlane, driver: str, reader: str) -> None:
    """What the administrator reads, this user reads too."""
    everything, _result = read(control_plane, name="lab")
    found, _result = read(control_plane, kubeconfig=reader, name="lab")
    assert found.errors == everything.errors
    left, right = everything.to_dict(), found.to_dict()
    for key in ("collected_at", "collector"):
        left.pop(key)
        right.pop(key)
    assert right == left


def test_the_documented_rights_are_few(control_plane: ControlPlane, reader: str) -> None:
    """Each rule is for reading alone, and none is for Secrets or for everything."""
    for role in documented_roles():
        for rule in role["rules"]:
            assert set(rule["verbs"]) <= {"get", "list"}
            assert "secrets" not in rule["resources"]
            assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]


def test_a_user_without_a_right(control_plane: ControlPlane, driver: str, tmp_path: Path) -> None:
    """What it may not read is not known, and the warning says what is missing."""
    mark = "t" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", mark)
    try:
        kubeconfig = with_user(control_plane, tmp_path, token=token(control_plane, mark, "nobody"))
        found, result = read(control_plane, kubeconfig=kubeconfig)
        assert (found.nodes, found.claims, found.daemonsets, found.service_cidrs) == (None, None, None, None)
        assert 'verb "list" for "nodes" of the API group ""' in found.error_of("nodes")
        assert found.server.serves("resource.k8s.io", "resourceclaims") is True
        assert "resourceslices" in str(result["warnings"])
    finally:
        control_plane.kubectl("delete", "namespace", mark, "--wait=false")


def test_kubectl_tells_the_same(control_plane: ControlPlane, driver: str, tmp_path: Path) -> None:
    """Files as the documentation lets kubectl write them are read into the same snapshot."""
    subsets = ["nodes", "dra", "drivers", "permissions"]
    live, _result = read(control_plane, subsets=subsets)
    kinds = "nodes resourceslices deviceclasses resourceclaims resourceclaimtemplates daemonsets"
    for kind in [*kinds.split(), "devicetaintrules", "clusterroles", "clusterrolebindings"]:
        (tmp_path / f"{kind}.json").write_text(
            control_plane.kubectl("get", kind, "-A", "-o", "json"), "utf-8"
        )
    pods = control_plane.kubectl("get", "pods", "-n", "kube-system", "-o", "yaml")
    (tmp_path / "pods.yaml").write_text(pods, "utf-8")
    recorded, _result = read(control_plane, src=str(tmp_path), subsets=subsets)
    assert recorded.errors == ()
    for field in (
        "nodes",
        "slices",
        "device_classes",
        "claims",
        "claim_templates",
        "taint_rules",
        "driver_accounts",
    ):
        assert getattr(recorded, field) == getattr(live, field), field

    def by_name(snapshot: ClusterSnapshot) -> Any:
        return [
            (entry.name, sorted(entry.pods or (), key=lambda pod: pod.name))
            for entry in snapshot.daemonsets or ()
        ]

    assert by_name(recorded) == by_name(live)


def test_a_claim_that_cannot_be_prepared(control_plane: ControlPlane, driver: str) -> None:
    """The event of the kubelet, with its node and reason (DRA-011)."""
    name = "t" + uuid.uuid4().hex[:8]
    pod = next(entry for entry in manifest(driver) if entry["kind"] == "Pod")
    pod["metadata"]["name"] = name
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "sim-0001"}
    control_plane.kubectl("annotate", "node", "sim-0001", "rdma-lab/faults=prepare", "--overwrite")
    try:
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
        events: list[Any] = []
        for _try in range(60):
            found, _result = read(control_plane, subsets=["events"])
            events = [entry for entry in found.prepare_events or () if entry.pod == name]
            if events:
                break
            time.sleep(0.5)
        assert events
        assert (events[0].namespace, bool(events[0].message), bool(events[0].last)) == ("default", True, True)
    finally:
        control_plane.kubectl("annotate", "node", "sim-0001", "rdma-lab/faults-")
        control_plane.kubectl("delete", "pod", name, "--wait=true", "--timeout=60s")
