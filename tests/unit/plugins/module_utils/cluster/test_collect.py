# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster read from files, and over the wire with what a real API server does not do on demand."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import collect, recorded, sources
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    DEFAULT_SUBSETS,
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.modules import cluster_info
from ansible_collections.rdma.k8s.tests.support import change_run, cluster_objects, module_run
from ansible_collections.rdma.k8s.tests.support.api_server import (
    Answer,
    ApiServer,
    Breaks,
    Request,
    serving,
    status,
)

KIND_LISTS = {
    "nodes": [cluster_objects.NODE],
    "resourceslices": [cluster_objects.SLICE],
    "resourceclaims": [cluster_objects.CLAIM],
    "daemonsets": [cluster_objects.DAEMONSET],
    "pods": [cluster_objects.POD],
    "deviceclasses": [],
}


def record(directory: Path) -> str:
    """What kubectl would write, one file for each kind."""
    directory.mkdir()
    for plural, items in KIND_LISTS.items():
        content = {"apiVersion": "v1", "kind": "List", "items": items}
        (directory / f"{plural}.json").write_text(json.dumps(content), "utf-8")
    version = {"clientVersion": {}, "serverVersion": {"gitVersion": "v1.34.1", "platform": "linux/amd64"}}
    (directory / "version.json").write_text(json.dumps(version), "utf-8")
    return str(directory)


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A directory with the output of kubectl."""
    return record(tmp_path / "kubectl")


def code_of(act: Any, *arguments: Any) -> str:
    """The code of the error of a call."""
    with pytest.raises(RdmaError) as error:
        act(*arguments)
    return error.value.code


# --- files -----------------------------------------------------------------------------------------------------------


def test_the_output_of_kubectl(recording: str) -> None:
    """An empty file is known to be empty, a kind without a file is not known."""
    found = recorded.read(recording, "c")
    assert (found.name, found.server.version, found.server.served) == ("c", "v1.34.1", None)
    assert [node.name for node in found.nodes or ()] == ["n1"]
    assert [claim.name for claim in found.claims or ()] == ["train-abc"]
    assert found.device_classes == ()
    assert found.claim_templates is None
    assert found.error_of("resourceclaimtemplates.resource.k8s.io") == (
        "resourceclaimtemplates.resource.k8s.io: No file has objects of the kind ResourceClaimTemplate."
    )
    (daemonset,) = found.daemonsets or ()
    assert [pod.name for pod in daemonset.pods or ()] == ["dranet-x"]
    assert found.collector.calls is None


def test_one_file_in_yaml_with_several_documents(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([cluster_objects.NODE, cluster_objects.SLICE]), "utf-8")
    found = recorded.read(str(file))
    assert (len(found.nodes or ()), len(found.slices or ())) == (1, 1)


def test_lists_as_the_api_sends_them(tmp_path: Path) -> None:
    """``kubectl get --raw`` prints a typed list, whose items have no kind."""
    node = {key: value for key, value in cluster_objects.NODE.items() if key not in ("kind", "apiVersion")}
    content = {"kind": "NodeList", "apiVersion": "v1", "items": [node]}
    (tmp_path / "raw.json").write_text(json.dumps(content), "utf-8")
    assert len(recorded.read(str(tmp_path)).nodes or ()) == 1


def test_directories_below(recording: str, tmp_path: Path) -> None:
    below = tmp_path / "outer"
    below.mkdir()
    Path(recording).rename(below / "inner")
    (below / ".hidden.json").write_text("{", "utf-8")
    assert len(recorded.read(str(below)).nodes or ()) == 1


def test_a_pod_of_another_namespace_is_not_taken(recording: str) -> None:
    pod = copy.deepcopy(cluster_objects.POD)
    pod["metadata"]["namespace"] = "elsewhere"
    Path(recording, "pods.json").write_text(json.dumps(pod), "utf-8")
    (daemonset,) = recorded.read(recording).daemonsets or ()
    assert daemonset.pods == ()


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.json", b"{", "manifest_malformed"),
        ("a.json", b"\xff", "records_unreadable"),
        ("a.json", b"[" * 100_000, "manifest_malformed"),
        ("a.yaml", b"a: [", "manifest_malformed"),
        ("a.txt", b"", "records_empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, code: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert code_of(recorded.read, str(tmp_path)) == code


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert code_of(recorded.read, str(tmp_path / "a.json")) == "records_unreadable"


def test_too_many_files(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FILES", 3)
    assert code_of(recorded.read, recording) == "records_unreadable"


def test_only_what_is_asked_for(recording: str) -> None:
    found = recorded.read(recording, "", ["events", "nodes"])
    assert found.subsets == ("nodes", "events")
    assert (found.slices, found.daemonsets, found.pod_cidrs) == (None, None, None)
    assert [error.source for error in found.errors] == ["events"]


# --- the module, offline ---------------------------------------------------------------------------------------------


def test_the_module_reads_files_without_the_library(recording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    result = module_run.good(cluster_info, src=recording, name="c")
    assert result["summary"] == {
        "nodes": 1,
        "ready_nodes": 1,
        "slices": 1,
        "devices": 1,
        "claims": 1,
        "allocated_claims": 1,
        "pod_cidrs": None,
        "service_cidrs": None,
    }
    assert result["calls"] is None
    assert ClusterSnapshot.from_dict(result["snapshot"]).name == "c"


def test_the_module_writes_and_reads_again(recording: str, tmp_path: Path) -> None:
    file = tmp_path / "out" / "c.json"
    options: dict[str, Any] = {"src": recording, "path": str(file), "layout": "compact"}
    check = change_run.run(cluster_info, **options, _ansible_check_mode=True)
    assert (check["changed"], file.exists(), "snapshot" in check) == (True, False, False)
    first = change_run.run(cluster_info, **options)
    assert (first["changed"], first["path"]) == (True, str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert change_run.run(cluster_info, **options)["changed"] is False
    again = module_run.good(cluster_info, src=str(file))
    expected = recorded.read(recording)
    found = ClusterSnapshot.from_dict(again["snapshot"])
    assert (found.nodes, found.claims, found.daemonsets, found.errors) == (
        expected.nodes,
        expected.claims,
        expected.daemonsets,
        expected.errors,
    )
    assert "s3cret" not in file.read_text("utf-8")
    Path(recording, "nodes.json").unlink()
    assert change_run.run(cluster_info, **options)["changed"] is True


def test_the_module_refuses_a_snapshot_of_a_later_release(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps({"kind": "ClusterSnapshot", "schema_version": 99}), "utf-8")
    assert module_run.failure(cluster_info, src=str(file))["code"] == "snapshot_newer_schema"


def test_the_module_cannot_write(recording: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    result = module_run.failure(cluster_info, src=recording, path=str(tmp_path / "file" / "c.json"))
    assert result["code"] == "report_not_written"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), 601])
def test_the_module_wants_a_time_limit(seconds: float, tmp_path: Path) -> None:
    result = module_run.failure(cluster_info, request_timeout=seconds, kubeconfig=str(tmp_path / "x"))
    assert result["code"] == "number_out_of_range"


# --- over the wire ---------------------------------------------------------------------------------------------------

SERVED = {
    "resource.k8s.io": ["resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"],
    "apps": ["daemonsets"],
    "networking.k8s.io": ["servicecidrs"],
}


RBAC = "rbac.authorization.k8s.io"


class Wire:
    """An API server with the objects of a recording, and trouble at some paths."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.trouble: dict[str, Any] = {}
        self.lists: dict[str, list[Any]] = dict(KIND_LISTS)
        api.route = self.answer

    def answer(self, request: Request) -> Any:
        """One answer."""
        if request.path in self.trouble:
            return self.trouble[request.path]
        if request.path == "/version":
            return Answer({"gitVersion": "v1.34.1"})
        if request.path == "/apis":
            return Answer(
                {"kind": "APIGroupDiscoveryList", "items": [self._group(*it) for it in SERVED.items()]}
            )
        if "/configmaps/" in request.path:
            return status(404, "not found")
        items = self.lists.get(request.path.rpartition("/")[2], [])
        return Answer({"kind": "XList", "metadata": {}, "items": items})

    @staticmethod
    def _group(name: str, plurals: list[str]) -> dict[str, Any]:
        found = [
            {"resource": plural, "responseKind": {"kind": plural}, "scope": "Namespaced"}
            for plural in plurals
        ]
        return {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": found}]}


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """A server on loopback."""
    with serving() as api:
        yield Wire(api)


def read(wire: Wire, directory: Path, *subsets: str) -> ClusterSnapshot:
    """Read from it, without waiting between attempts."""
    cluster = connect(wire.api.kubeconfig(directory))
    cluster._sleep = lambda seconds: None  # type: ignore[method-assign]
    return collect.collect(sources.LiveSource(cluster), "c", subsets or DEFAULT_SUBSETS)


def test_calls_do_not_grow_with_nodes(wire: Wire, tmp_path: Path) -> None:
    few = read(wire, tmp_path).collector.calls
    wire.lists["nodes"] = [cluster_objects.NODE] * 50
    wire.lists["resourceslices"] = [cluster_objects.SLICE] * 50
    wire.lists["resourceclaims"] = [cluster_objects.CLAIM] * 200
    many = read(wire, tmp_path)
    assert (len(many.nodes or ()), len(many.claims or ())) == (50, 200)
    assert many.collector.calls == few
    assert few is not None
    assert few <= 20
    assert {request.query.get("limit") for request in wire.api.requests if request.query} == {"1000"}


def test_what_is_asked_of_whom(wire: Wire, tmp_path: Path) -> None:
    read(wire, tmp_path)
    asked = {request.path: request.query for request in wire.api.requests}
    assert asked["/api/v1/namespaces/kube-system/pods"]["labelSelector"] == "app=dranet,k=v"
    assert asked["/api/v1/events"]["fieldSelector"] == "reason=FailedPrepareDynamicResources"
    assert "/api/v1/pods" not in asked
    assert not any("secret" in path for path in asked)


WITH_ROLLS = {**SERVED, "coordination.k8s.io": ["leases"], "policy": ["poddisruptionbudgets"]}


@pytest.fixture
def rolling(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A server with a roll, and a claim in use in the namespace of a disruption budget."""
    monkeypatch.setattr(sys.modules[__name__], "SERVED", WITH_ROLLS)
    pod = {"metadata": {"namespace": "ml", "name": "train-0", "uid": "uid-p", "labels": {"job": "train"}}}
    other = {"metadata": {"namespace": "ml", "name": "web", "uid": "uid-w", "labels": {"job": "train"}}}
    claim = copy.deepcopy(cluster_objects.CLAIM)
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "train-0", "uid": "uid-p"}]
    elsewhere = {**cluster_objects.BUDGET, "metadata": {"namespace": "web", "name": "web"}}
    wire.lists.update(
        leases=[cluster_objects.LEASE],
        configmaps=[cluster_objects.ROLL],
        poddisruptionbudgets=[cluster_objects.BUDGET, elsewhere],
        resourceclaims=[claim],
        pods=[cluster_objects.POD, pod, other],
    )
    return wire


def test_rolls_and_what_they_respect(rolling: Wire, tmp_path: Path) -> None:
    """Records beside the Lease, found by their label; pods only where both claims and budgets are."""
    found = read(rolling, tmp_path, "dra", "rolls")
    assert [lease.holder for lease in found.roll_leases or ()] == ["ann@control-1"]
    assert [(roll.hash, roll.phase) for roll in found.rolls or ()] == [("3f2a9c", "Paused")]
    assert [(budget.name, budget.pods) for budget in found.disruption_budgets or ()] == [
        ("train", ("train-0",)),
        ("web", ()),
    ]
    asked = {request.path: request.query for request in rolling.api.requests}
    assert asked["/apis/coordination.k8s.io/v1/leases"]["fieldSelector"] == "metadata.name=rdma-roll"
    labels = "app.kubernetes.io/component=rdma-roll,app.kubernetes.io/managed-by=rdma.k8s"
    assert asked["/api/v1/namespaces/kube-system/configmaps"]["labelSelector"] == labels
    assert [path for path in asked if path.endswith("/pods")] == ["/api/v1/namespaces/ml/pods"]


def test_without_a_lease_the_records_are_looked_for_in_kube_system(rolling: Wire, tmp_path: Path) -> None:
    rolling.lists["leases"] = [{"metadata": {"namespace": "x", "name": "other"}}]
    found = read(rolling, tmp_path, "rolls")
    assert (found.roll_leases, len(found.rolls or ())) == ((), 1)
    assert [budget.pods for budget in found.disruption_budgets or ()] == [None, None]  # no claims were read


def test_pods_of_workloads_that_may_not_be_read(rolling: Wire, tmp_path: Path) -> None:
    rolling.trouble["/api/v1/namespaces/ml/pods"] = status(403, "pods is forbidden")
    found = read(rolling, tmp_path, "dra", "rolls")
    assert [budget.pods for budget in found.disruption_budgets or ()] == [None, ()]
    assert "pods" in found.error_of("pods")


def test_rolls_that_may_not_be_read(rolling: Wire, tmp_path: Path) -> None:
    for path in ("coordination.k8s.io/v1/leases", "policy/v1/poddisruptionbudgets"):
        rolling.trouble["/apis/" + path] = status(403, "forbidden")
    rolling.trouble["/api/v1/namespaces/kube-system/configmaps"] = status(403, "forbidden")
    found = read(rolling, tmp_path, "dra", "rolls")
    assert (found.roll_leases, found.rolls, found.disruption_budgets) == (None, None, None)
    assert {error.source for error in found.errors} == {
        "leases.coordination.k8s.io",
        "configmaps",
        "poddisruptionbudgets.policy",
    }


def test_what_may_not_be_read_is_not_known(wire: Wire, tmp_path: Path) -> None:
    forbidden = 'claims is forbidden: User "u" cannot list resource "resourceclaims"'
    wire.trouble["/apis/resource.k8s.io/v1/resourceclaims"] = status(403, forbidden)
    wire.trouble["/api/v1/namespaces/kube-system/pods"] = status(403, "pods is forbidden")
    found = read(wire, tmp_path)
    assert found.claims is None
    assert 'verb "list" for "resourceclaims"' in found.error_of("resourceclaims.resource.k8s.io")
    (daemonset,) = found.daemonsets or ()
    assert daemonset.pods is None
    assert "pods" in found.error_of("pods")
    assert (len(found.nodes or ()), found.claim_templates) == (1, ())


def test_what_dranet_may_do(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F119: two lists, however many roles there are, and none in a cluster without DRANET."""
    monkeypatch.setitem(SERVED, RBAC, ["clusterroles", "clusterrolebindings"])
    wire.lists["clusterroles"] = [cluster_objects.ROLE]
    wire.lists["clusterrolebindings"] = [cluster_objects.BINDING]
    found = read(wire, tmp_path, "permissions")
    (account,) = found.driver_accounts or ()
    assert (account.namespace, account.name, account.roles) == ("kube-system", "dranet", ("dranet",))
    assert [rule.resources for rule in account.rules] == [("nodes",), ("resourceclaims/driver",)]
    assert (found.errors, found.collector.calls) == ((), 5)  # version, what is served, DaemonSets, two lists
    wire.lists["daemonsets"] = []
    found = read(wire, tmp_path, "permissions")
    assert (found.driver_accounts, found.collector.calls) == ((), 3)


def test_what_dranet_may_do_is_not_known(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without roles decides in another way, so an account without a role is no fault."""
    found = read(wire, tmp_path, "permissions")
    assert found.driver_accounts is None
    assert "serves no clusterroles" in found.error_of("clusterroles." + RBAC)
    monkeypatch.setitem(SERVED, RBAC, ["clusterroles", "clusterrolebindings"])
    wire.trouble[f"/apis/{RBAC}/v1/clusterroles"] = status(403, "forbidden")
    found = read(wire, tmp_path, "permissions")
    assert found.driver_accounts is None
    assert [error.source for error in found.errors] == ["clusterroles." + RBAC]
    wire.trouble["/apis/apps/v1/daemonsets"] = status(403, "forbidden")
    found = read(wire, tmp_path, "permissions")
    assert found.driver_accounts is None
    assert [error.source for error in found.errors] == ["daemonsets.apps"]


def test_what_is_not_served_is_not_there(wire: Wire, tmp_path: Path) -> None:
    found = read(wire, tmp_path)
    assert found.taint_rules == ()
    assert found.server.serves("resource.k8s.io", "devicetaintrules") is False
    assert found.server.serves("resource.k8s.io", "resourceclaims") is True
    assert found.sriov_node_states == ()


def test_a_server_that_goes_away(wire: Wire, tmp_path: Path) -> None:
    """What was read stays, and nothing more is asked."""
    wire.trouble["/apis/resource.k8s.io/v1/deviceclasses"] = Breaks()
    found = read(wire, tmp_path)
    assert (len(found.nodes or ()), len(found.slices or ())) == (1, 1)
    assert (found.device_classes, found.claims, found.daemonsets) == (None, None, None)
    assert "kube_unreachable" in found.error_of("resourceclaims.resource.k8s.io")
    paths = [request.path for request in wire.api.requests]
    assert paths[-1] == "/apis/resource.k8s.io/v1/deviceclasses"
    assert paths.count(paths[-1]) == 4


@pytest.mark.parametrize(
    ("trouble", "code"), [(Breaks(), "kube_unreachable"), (status(401, "x"), "kube_unauthorized")]
)
def test_a_server_that_never_was_there(wire: Wire, tmp_path: Path, trouble: Any, code: str) -> None:
    wire.trouble["/version"] = trouble
    assert code_of(read, wire, tmp_path) == code


def test_a_page_that_fails_leaves_no_half_list(wire: Wire, tmp_path: Path) -> None:
    first = Answer({"items": [cluster_objects.NODE], "metadata": {"continue": "t"}})
    wire.api.answers = [
        Answer({"gitVersion": "v1"}),
        wire.answer(Request("GET", "/apis", {}, {}, None)),
        first,
    ]
    wire.trouble["/api/v1/nodes"] = status(500, "etcd is gone")
    found = read(wire, tmp_path, "nodes")
    assert found.nodes is None
    assert "etcd is gone" in found.error_of("nodes")


def test_networks_of_pods(wire: Wire, tmp_path: Path) -> None:
    """Flannel names it in the ConfigMap that its pods mount; kube-proxy and kubeadm are asked when nothing else did."""
    assert read(wire, tmp_path, "networks").pod_cidrs is None
    asked = [request.path for request in wire.api.requests]
    assert asked.count("/api/v1/namespaces/kube-system/configmaps/kubeadm-config") == 1
    flannel = copy.deepcopy(cluster_objects.DAEMONSET)
    flannel["metadata"].update(name="kube-flannel-ds", labels={})
    flannel["spec"]["template"]["spec"] = {
        "volumes": [{"name": "v", "configMap": {"name": "kube-flannel-cfg"}}]
    }
    proxy = copy.deepcopy(flannel)
    proxy["metadata"]["name"] = "kube-proxy"
    proxy["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"] = "kube-proxy"
    wire.lists["daemonsets"] = [proxy, flannel]
    wire.lists["servicecidrs"] = [{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}]
    wire.trouble["/api/v1/namespaces/kube-system/configmaps/kube-flannel-cfg"] = Answer(
        {
            "metadata": {"namespace": "kube-system", "name": "kube-flannel-cfg"},
            "data": {"net-conf.json": '{"Network": "10.244.0.0/16"}'},
        }
    )
    wire.api.requests.clear()
    found = read(wire, tmp_path, "networks")
    assert [(entry.cidr, entry.source) for entry in found.pod_cidrs or ()] == [
        ("10.244.0.0/16", "configmap kube-system/kube-flannel-cfg")
    ]
    assert [entry.cidr for entry in found.service_cidrs or ()] == ["10.96.0.0/16"]
    assert not any("kubeadm" in request.path or "kube-proxy" in request.path for request in wire.api.requests)
    assert found.errors == ()


def test_networks_of_calico(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pools are objects of their own; a pool that is switched off gives no addresses."""
    monkeypatch.setitem(SERVED, "crd.projectcalico.org", ["ippools"])
    calico = copy.deepcopy(cluster_objects.DAEMONSET)
    calico["metadata"].update(name="calico-node")
    wire.lists["daemonsets"] = [calico]
    wire.lists["ippools"] = [
        {"metadata": {"name": "default"}, "spec": {"cidr": "192.168.0.0/16"}},
        {"metadata": {"name": "old"}, "spec": {"cidr": "172.16.0.0/16", "disabled": True}},
    ]
    found = read(wire, tmp_path, "networks")
    assert [(entry.cidr, entry.source) for entry in found.pod_cidrs or ()] == [
        ("192.168.0.0/16", "ippool default")
    ]


def test_policies_of_this_collection(wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What binds them is asked for only when there are some."""
    plurals = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
    monkeypatch.setitem(SERVED, "admissionregistration.k8s.io", plurals)
    assert read(wire, tmp_path, "policies").admission_policies == ()
    assert not any("bindings" in request.path for request in wire.api.requests)
    labels = {"app.kubernetes.io/managed-by": "rdma.k8s"}
    wire.lists[plurals[0]] = [{"metadata": {"name": "p", "labels": labels}}]
    wire.lists[plurals[1]] = [
        {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    ]
    (policy,) = read(wire, tmp_path, "policies").admission_policies or ()
    assert [(entry.name, entry.actions) for entry in policy.bindings] == [("b", ("Deny",))]
    path = "/apis/admissionregistration.k8s.io/v1/"
    wire.trouble[path + plurals[1]] = status(403, "no")
    assert read(wire, tmp_path, "policies").admission_policies is None
    wire.trouble[path + plurals[0]] = status(403, "no")
    assert read(wire, tmp_path, "policies").admission_policies is None


def test_drivers_that_may_not_be_read(wire: Wire, tmp_path: Path) -> None:
    """They are asked for once, though two subsets need them."""
    wire.trouble["/apis/apps/v1/daemonsets"] = status(403, "no")
    found = read(wire, tmp_path, "drivers", "networks")
    assert (found.daemonsets, found.pod_cidrs) == (None, None)
    assert [request.path for request in wire.api.requests].count("/apis/apps/v1/daemonsets") == 1


def test_networks_of_a_recording(recording: str) -> None:
    """A ConfigMap that was recorded, too."""
    flannel = copy.deepcopy(cluster_objects.DAEMONSET)
    flannel["metadata"].update(name="kube-flannel-ds")
    flannel["spec"]["template"]["spec"] = {
        "volumes": [{"name": "v", "configMap": {"name": "kube-flannel-cfg"}}]
    }
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "kube-flannel-cfg"},
        "data": {"net-conf.json": '{"Network": "10.244.0.0/16"}'},
    }
    Path(recording, "daemonsets.json").write_text(json.dumps(flannel), "utf-8")
    Path(recording, "flannel.json").write_text(json.dumps(settings), "utf-8")
    result = module_run.good(cluster_info, src=recording, subsets=["networks"])
    assert result["summary"]["pod_cidrs"] == ["10.244.0.0/16"]
    assert [entry["network"] for entry in result["networks"]["networks"]] == ["10.244.0.0/16"]
    assert [entry["code"] for entry in result["networks"]["unread"]] == ["cluster_networks_unknown"]


def test_only_the_latest_events_are_kept(wire: Wire, tmp_path: Path) -> None:
    wire.lists["events"] = [
        {
            "metadata": {"namespace": "ml"},
            "reason": "FailedPrepareDynamicResources",
            "involvedObject": {"name": "p%03d" % at},
            "lastTimestamp": "2026-11-02T00:%02d:%02dZ" % divmod(at, 60),
        }
        for at in range(250)
    ]
    found = read(wire, tmp_path, "events")
    assert found.prepare_events is not None
    assert [event.pod for event in found.prepare_events[:2]] == ["p249", "p248"]
    assert len(found.prepare_events) == 200
    assert "250 events" in found.error_of("events")


def test_the_module_warns(wire: Wire, tmp_path: Path) -> None:
    wire.trouble["/api/v1/nodes"] = status(403, "nodes is forbidden")
    result = module_run.good(
        cluster_info, kubeconfig=wire.api.kubeconfig(tmp_path), context="here", subsets=["nodes"]
    )
    assert (result["calls"], result["summary"]["nodes"]) == (3, None)
    assert result["snapshot"]["name"] == "here"
    assert "nodes is forbidden" in str(result["warnings"])
