# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of the API in the shape of the snapshot."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any, Callable

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core import (
    cluster_reading as reading,
    cluster_snapshot as shapes,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import cluster_objects as objects


def test_a_node() -> None:
    found = reading.node(objects.NODE)
    assert dataclasses.asdict(found) == {
        "name": "n1",
        "uid": "uid-n1",
        "created": "2026-11-01T00:00:00Z",
        "labels": {
            "feature.node.kubernetes.io/network-sriov.capable": "true",
            "node.kubernetes.io/instance-type": "BM.GPU.H100.8",
            "team": "a",
        },
        "annotations": {"rdma-k8s/roll-state": "Done"},
        "unschedulable": True,
        "taints": ("nvidia.com/gpu=present:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"),
        "addresses": ("InternalIP 10.140.77.19", "Hostname n1"),
        "provider_id": "ocid1.instance.oc1.iad.abc",
        "pod_cidrs": ("10.244.0.0/25",),
        "architecture": "amd64",
        "os": "Oracle Linux Server 8.10",
        "kernel": "5.15.0",
        "runtime": "cri-o://1.34.0",
        "kubelet": "v1.34.1",
        "boot_id": "boot-n1",
        "conditions": {"MemoryPressure": "False", "Ready": "True"},
        "ready_since": "2026-11-02T00:00:00Z",
        "capacity": {"nvidia.com/gpu": "8", "rdma/hca": "1000", "hugepages-2Mi": "4Gi"},
        "allocatable": {"nvidia.com/gpu": "8"},
    }
    assert found.ready


def test_a_node_that_says_nothing_is_not_ready() -> None:
    found = reading.node({"metadata": {"name": "n"}})
    assert found == shapes.ClusterNode("n")
    assert not found.ready


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_slice(version: str) -> None:
    """F99; v1beta1 puts what a device has one level deeper."""
    content = copy.deepcopy(objects.SLICE)
    if version == "v1beta1":
        (device,) = content["spec"]["devices"]
        content["spec"]["devices"] = [{"name": device.pop("name"), "basic": device}]
    assert reading.resource_slice(content) == shapes.ResourceSlice(
        name="n1-dra-net",
        driver="dra.net",
        node="n1",
        pool="n1",
        generation=3,
        slices=2,
        created="2026-11-01T00:00:00Z",
        devices=(
            shapes.SliceDevice(
                name="pci-0000-0c-00-0",
                attributes={
                    "dra.net/ifName": "rdma0",
                    "dra.net/rdma": True,
                    "dra.net/mtu": 4220,
                    "resource.kubernetes.io/pcieRoot": "pci0000:0b",
                    "dra.net/firmware": {"version": "28.43.2566"},
                    "dra.net/rails": ["a", "b"],
                },
                capacity={"dra.net/bandwidth": "400G"},
                taints=("rdma-k8s/roll=x:NoExecute",),
            ),
        ),
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_claim(version: str) -> None:
    content = copy.deepcopy(objects.CLAIM)
    if version == "v1beta1":
        first = content["spec"]["devices"]["requests"][0]
        first.update(first.pop("exactly"))
    found = reading.claim(content)
    assert (found.namespace, found.name, found.owner, found.deleted) == (
        "ml",
        "train-abc",
        "train-0",
        "2026-11-03T00:00:00Z",
    )
    assert found.requests == (
        shapes.DeviceRequest(
            "nic",
            "rdma",
            "All",
            1,
            ('device.attributes["dra.net"].rdma',),
            ("rdma-k8s/roll=x:NoExecute", "*"),
        ),
        shapes.DeviceRequest("gpu/big", "h200", count=2),
        shapes.DeviceRequest("gpu/small", "h100"),
    )
    assert found.constraints == (
        shapes.Constraint(("nic", "gpu"), "resource.kubernetes.io/pcieRoot"),
        shapes.Constraint((), "", "dra.net/ifName"),
    )
    assert found.config == (shapes.OpaqueConfig("dra.net", ("nic",), {"interface": {"name": "net0"}}),)
    assert (found.allocated, found.node) == (True, "n1")
    assert found.devices == (shapes.AllocatedDevice("nic", "dra.net", "n1", "pci-0000-0c-00-0"),)
    assert found.reserved_for == (shapes.Consumer("pods", "train-0", "uid-p"),)
    assert found.status == (
        shapes.DeviceStatus(
            "dra.net", "n1", "pci-0000-0c-00-0", "net0", ("10.208.13.19/12",), {"Ready": "True"}
        ),
    )


def test_a_claim_that_waits() -> None:
    found = reading.claim({"metadata": {"namespace": "a", "name": "b"}, "status": {}})
    assert found == shapes.Claim("a", "b")


def test_an_allocation_for_several_nodes_names_none() -> None:
    content = copy.deepcopy(objects.CLAIM)
    term = content["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
    term["matchFields"][0]["values"].append("n2")
    assert reading.claim(content).node == ""


def test_a_template_and_a_class() -> None:
    spec = {"spec": objects.CLAIM["spec"]}
    template = reading.claim_template({"metadata": {"namespace": "ml", "name": "t"}, "spec": spec})
    claim = reading.claim(objects.CLAIM)
    assert (template.requests, template.constraints, template.config) == (
        claim.requests,
        claim.constraints,
        claim.config,
    )
    spec = {"selectors": [{"cel": {"expression": "a"}}, {}], "extendedResourceName": "oke/rdma"}
    assert reading.device_class({"metadata": {"name": "c"}, "spec": spec}) == shapes.DeviceClass(
        "c", ("a", ""), (), "oke/rdma"
    )


def test_a_taint_rule() -> None:
    spec = {"deviceSelector": {"pool": "n1"}, "taint": {"key": "k", "effect": "NoSchedule"}}
    found = reading.taint_rule({"metadata": {"name": "r"}, "spec": spec})
    assert found == shapes.DeviceTaintRule("r", pool="n1", taint="k:NoSchedule")


def test_secrets_in_parameters_are_replaced() -> None:
    content = copy.deepcopy(objects.CLAIM)
    content["spec"]["devices"]["config"][0]["opaque"]["parameters"] = {"token": "s3cret", "mtu": 1}
    (config,) = reading.claim(content).config
    assert config.parameters == {"token": "(removed)", "mtu": 1}


# --- drivers ---------------------------------------------------------------------------------------------------------


def test_a_daemonset() -> None:
    """DRANET of the chart (F115, F116) with the directory of the agent (OCA-013)."""
    found = reading.daemonset(objects.DAEMONSET)
    assert (found.role, found.strategy, found.max_unavailable) == ("dranet", "OnDelete", "")
    assert (found.desired, found.ready, found.updated, found.available) == (2, 1, 2, 1)
    assert (found.generation, found.observed_generation) == (4, 3)
    assert (found.priority_class, found.host_network) == ("system-node-critical", True)
    assert found.tolerations == ("*:NoSchedule",)
    init, dranet = found.containers
    assert (init.name, init.init) == ("wait", True)
    assert dranet.args == ("--v=4", "--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.208.0.0/12")
    assert dranet.environment == ("NODE_NAME", "PASSWORD")
    assert (dranet.privileged, dranet.liveness, dranet.readiness) == (True, False, True)
    assert dranet.requests == {"cpu": "100m"}
    assert dranet.mounts == (
        shapes.Mount("/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins_registry"),
        shapes.Mount("/etc/oca", "/etc/oca", "DirectoryOrCreate", read_only=True),
        shapes.Mount("/etc/settings", source="configMap dranet-settings"),
        shapes.Mount("/tmp", source="emptyDir"),
    )
    assert reading.selector_of(objects.DAEMONSET) == "app=dranet,k=v"


def test_values_of_the_environment_are_nowhere() -> None:
    text = json.dumps(ClusterSnapshot(daemonsets=(reading.daemonset(objects.DAEMONSET),)).to_dict())
    assert "PASSWORD" in text
    assert "s3cret" not in text


def changed(**spec: Any) -> dict[str, Any]:
    """A DaemonSet with another pod template."""
    content = copy.deepcopy(objects.DAEMONSET)
    content["metadata"]["name"] = spec.pop("name", "agent")
    content["metadata"]["labels"] = spec.pop("labels", {})
    image = spec.pop("image", "example.invalid/agent:1")
    content["spec"]["template"]["spec"]["containers"] = [{"name": "a", "image": image}]
    paths = spec.pop("paths", [])
    content["spec"]["template"]["spec"]["volumes"] = [
        {"name": "v%d" % at, "hostPath": {"path": path}} for at, path in enumerate(paths)
    ]
    return content


REGISTRY, PLUGINS = "/var/lib/kubelet/plugins_registry/", "/var/lib/kubelet/device-plugins"


@pytest.mark.parametrize(
    ("content", "role", "pods"),
    [
        (changed(image="x/networking/dranet:v1.4.0"), "dranet", True),
        (changed(name="my-dranet", paths=[REGISTRY]), "dranet", True),
        (changed(labels={"app.kubernetes.io/managed-by": "rdma.k8s"}), "provider", True),
        (changed(paths=[REGISTRY]), "dra", True),
        (changed(paths=[REGISTRY], image="x/csi-node-driver-registrar"), "", False),
        (changed(paths=[PLUGINS]), "device-plugin", False),
        (changed(name="ack-rdma-dp-ds", image="acs/k8s-rdma-sriov-dev-plugin:v1"), "device-plugin", True),
        (changed(paths=[REGISTRY], name="ack-rdma-dp-ds"), "device-plugin", True),
        (changed(paths=[PLUGINS], name="sriov-device-plugin"), "device-plugin", True),
        (changed(paths=[PLUGINS], name="ack-rdma-dp-ds"), "device-plugin", True),
        (changed(name="kube-proxy"), "network", False),
        (changed(image="x/spiderpool-agent:1"), "network", False),
        (changed(name="vcn-native-ip-cni"), "network", False),
        (changed(name="node-exporter"), "", False),
        ({}, "", False),
    ],
)
def test_roles(content: dict[str, Any], role: str, pods: bool) -> None:
    """Storage drivers register through the same directory (F116)."""
    assert reading.role(content) == role
    if role:
        assert reading.wants_pods(reading.daemonset(content)) == pods


def test_a_pod_of_a_driver() -> None:
    owner = reading.daemonset(objects.DAEMONSET)
    found = reading.driver_pod(objects.POD, owner)
    assert found == shapes.DriverPod(
        name="dranet-x",
        node="n1",
        phase="Running",
        ready=True,
        started="2026-11-02T03:04:05Z",
        restarts=2,
        digest="sha256:abc",
        revision="5c",
        args=None,
    )


def test_a_pod_of_an_older_template() -> None:
    """Under OnDelete a pod keeps its option until it is deleted."""
    owner = reading.daemonset(objects.DAEMONSET)
    content = copy.deepcopy(objects.POD)
    content["spec"]["containers"][0]["args"] = ["--v=4", "--token=s3cret"]
    found = reading.driver_pod(content, owner)
    assert found is not None
    assert found.args == {"wait": [], "dranet": ["--v=4", "--token=(removed)"]}


@pytest.mark.parametrize(
    ("states", "trouble"),
    [
        ([{"state": {"running": {}}}], ""),
        ([{"state": {"waiting": {"reason": "ContainerCreating"}}}], "ContainerCreating"),
        (
            [
                {"state": {"running": {}}},
                {
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
                },
            ],
            "CrashLoopBackOff, last Error, exit code 1",
        ),
        (
            [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}],
            "last OOMKilled, exit code 137",
        ),
    ],
)
def test_why_a_pod_is_not_ready(states: list[dict[str, Any]], trouble: str) -> None:
    """A98: the last state of the container tells what the counts do not."""
    content = copy.deepcopy(objects.POD)
    content["status"]["containerStatuses"] = states
    content["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    found = reading.driver_pod(content, reading.daemonset(objects.DAEMONSET))
    assert found is not None
    assert found.trouble == trouble


def test_a_pod_of_somebody_else() -> None:
    owner = dataclasses.replace(reading.daemonset(objects.DAEMONSET), uid="another")
    assert reading.driver_pod(objects.POD, owner) is None


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["--v=4", "-x", "a=b"], ["--v=4", "-x", "a=b"]),
        (["--api-token=abc", "next"], ["--api-token=(removed)", "next"]),
        (["--password", "abc", "next"], ["--password", "(removed)", "next"]),
        (["--secret-name", "--v=4"], ["--secret-name", "--v=4"]),
        (["sh", "-c", "run --token abc --v=4"], ["sh", "-c", "run --token (removed) --v=4"]),
        (["--webhook-url=https://me:abc@h/x"], ["--webhook-url=https://(removed)@h/x"]),
        (["--tokens-per-second=4"], ["--tokens-per-second=(removed)"]),
    ],
)
def test_arguments_without_secrets(words: list[str], kept: list[str]) -> None:
    assert reading.without_secrets(words) == kept


# --- the rest --------------------------------------------------------------------------------------------------------


def test_an_object_of_multus() -> None:
    content = {
        "metadata": {
            "name": "a",
            "namespace": "n",
            "annotations": {"k8s.v1.cni.cncf.io/resourceName": "spidernet.io/rail1"},
        },
        "spec": {"config": '{"type": "sriov", "password": "s3cret"}'},
    }
    found = reading.api_object(content)
    assert (found.namespace, found.name, found.resource) == ("n", "a", "spidernet.io/rail1")
    assert found.spec == {"config": '{"type": "sriov", "password": "(removed)"}'}


def test_a_state_of_the_sriov_operator() -> None:
    found = reading.sriov_node_state(objects.NODE_STATE)
    assert (found.node, found.sync, found.rdma_mode, found.wanted_rdma_mode) == (
        "n1",
        "Succeeded",
        "shared",
        "exclusive",
    )
    assert (found.desired_state, found.current_state) == ("Idle", "Idle")
    first, second = found.interfaces
    assert first == shapes.SriovInterface(
        pci="0000:0c:00.0",
        name="ens1f0np0",
        vendor="15b3",
        device="1021",
        driver="mlx5_core",
        mac="b8:3f:d2:0d:13:00",
        mtu=9000,
        link_type="ETH",
        link_speed="400000 Mb/s",
        total_vfs=16,
        vfs=2,
        wanted_vfs=8,
        wanted_mtu=4220,
        wanted_link_type="eth",
        num_vfs=3,
        vf_drivers=("mlx5_core", "vfio-pci"),
        vf_mtu=4220,
        vfs_without_guid=1,
    )
    assert found.generation == 4
    assert (second.pci, second.vfs, second.wanted_vfs) == ("0000:0c:00.1", 0, None)
    assert (second.num_vfs, second.vf_drivers, second.vf_mtu, second.vfs_without_guid) == (0, (), None, 0)


def test_policies_of_this_collection() -> None:
    ours = {
        "metadata": {"name": "p", "managedFields": [{"manager": "rdma.k8s"}]},
        "spec": {"failurePolicy": "Fail", "validations": [{}, {}]},
        "status": {"typeChecking": {"expressionWarnings": [{"warning": "no such field"}]}},
    }
    labelled = {"metadata": {"name": "q", "labels": {"app.kubernetes.io/managed-by": "rdma.k8s"}}}
    theirs = {"metadata": {"name": "r", "managedFields": [{"manager": "kubectl"}]}}
    binding = {
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Warn"]},
    }
    found = reading.admission_policies([ours, labelled, theirs], [binding])
    assert found == (
        shapes.AdmissionPolicy("p", "Fail", 2, ("no such field",), (shapes.PolicyBinding("b", ("Warn",)),)),
        shapes.AdmissionPolicy("q"),
    )


def test_events() -> None:
    content = {
        "metadata": {"namespace": "ml", "name": "e"},
        "reason": reading.PREPARE_REASON,
        "involvedObject": {"kind": "Pod", "name": "train-0"},
        "message": "x" * 600,
        "source": {"host": "n1"},
        "count": 3,
        "firstTimestamp": "2026-11-02T00:00:00Z",
        "lastTimestamp": "2026-11-02T01:00:00Z",
    }
    assert reading.prepare_event(content) == shapes.PrepareEvent(
        "ml", "train-0", "n1", "x" * 500, 3, "2026-11-02T00:00:00Z", "2026-11-02T01:00:00Z"
    )
    newer = {
        "metadata": {"namespace": "ml", "name": "e", "creationTimestamp": "c"},
        "reason": reading.PREPARE_REASON,
        "involvedObject": {"name": "train-0"},
        "reportingInstance": "n2",
        "eventTime": "2026-11-02T00:00:00.000000Z",
        "series": {"count": 7, "lastObservedTime": "2026-11-02T02:00:00.000000Z"},
    }
    found = reading.prepare_event(newer)
    assert found is not None
    assert (found.node, found.count, found.last) == ("n2", 7, "2026-11-02T02:00:00.000000Z")
    assert reading.prepare_event({**content, "reason": "Started"}) is None


def test_the_lease_of_rolls() -> None:
    assert reading.roll_lease(objects.LEASE) == shapes.RollLease(
        "kube-system", "ann@control-1", "2026-11-01T00:00:00.000000Z", "2026-11-01T00:01:00.000000Z", 60
    )
    assert reading.roll_lease({"spec": {"holderIdentity": None}}) == shapes.RollLease("")


def test_the_record_of_a_roll() -> None:
    found = reading.roll(objects.ROLL)
    assert found == shapes.Roll(
        hash="3f2a9c",
        namespace="kube-system",
        created=objects.CREATED,
        changes="range",
        old="10.240.0.0/15",
        new="10.208.0.0/12",
        strategy="drain_all",
        fence="cordon",
        budget=2,
        nodes=("n2", "n1"),
        parent="77be01",
        phase="Paused",
        switched=True,
        started="2026-11-01T00:00:10Z",
        reason="the budget is used up",
        kept="{}",
    )


@pytest.mark.parametrize(
    ("data", "unread"),
    [
        ({}, "its plan and record is no JSON object"),
        ({"plan": "{}", "record": "["}, "its record is no JSON object"),
        ({"plan": "[]", "record": "{}"}, "its plan is no JSON object"),
    ],
)
def test_a_record_that_cannot_be_understood(data: dict[str, str], unread: str) -> None:
    found = reading.roll({"metadata": {"name": "rdma-roll-a"}, "data": data})
    assert found == shapes.Roll("a", unread=unread)
    assert reading.roll({"metadata": {"name": "settings"}, "data": data}) is None


def test_marks_of_a_roll_are_kept_whatever_their_prefix() -> None:
    """Everything else of others is left out, as are annotations without a prefix."""
    marks = {"example.com/roll-state": "Done", "example.com/initial-unschedulable": "false", "a/reboots": "1"}
    others = {"example.com/state": "x", "roll-state": "x", "example.com/scroll-state": "x"}
    found = reading.node({"metadata": {"name": "n", "annotations": {**marks, **others}}})
    assert found.annotations == marks


def test_a_disruption_budget() -> None:
    """Of the pods with claims the names of those that it selects; without pods it is not known whom it selects."""
    pods = [{"metadata": {"name": name, "labels": {"job": name}}} for name in ("train", "other")]
    found = reading.disruption_budget(objects.BUDGET, pods)
    assert found == shapes.DisruptionBudget("ml", "train", 0, 2, 2, 2, ("train",))
    assert reading.disruption_budget(objects.BUDGET, None).pods is None


@pytest.mark.parametrize(
    ("desired", "expected", "never"),
    [(2, 2, True), (3, 2, True), (1, 2, False), (0, 0, False), (0, 2, False)],
)
def test_a_budget_that_never_allows_an_eviction(desired: int, expected: int, never: bool) -> None:
    """One without pods has nothing to refuse."""
    assert shapes.DisruptionBudget("ml", "a", desired=desired, expected=expected).never is never


def test_when_a_claim_got_its_devices() -> None:
    """As the allocation says, else when the status with it was last written; nothing for a claim without one."""

    def at(*entries: dict[str, Any], **allocation: str) -> str:
        status = {"allocation": {"devices": {}, **allocation}}
        return reading.claim({"metadata": {"managedFields": list(entries)}, "status": status}).allocated_at

    spec = {"time": "2026-11-09T00:00:00Z", "fieldsV1": {"f:spec": {}}}
    old, new = (
        {"time": "2026-11-0%dT00:00:00Z" % day, "fieldsV1": {"f:status": {"f:allocation": {}}}}
        for day in (1, 2)
    )
    assert at(new, old, spec) == "2026-11-02T00:00:00Z"
    assert at(new, allocationTimestamp="2026-11-01T10:00:00Z") == "2026-11-01T10:00:00Z"
    assert at(spec) == ""
    assert reading.claim({"metadata": {"managedFields": [new]}}).allocated_at == ""


# --- permissions -----------------------------------------------------------------------------------------------------


def subject(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


@pytest.mark.parametrize(
    ("found", "bound"),
    [
        (subject("ServiceAccount", "dranet", "kube-system"), True),
        (subject("ServiceAccount", "dranet", "other"), False),
        (subject("ServiceAccount", "other", "kube-system"), False),
        (subject("User", "system:serviceaccount:kube-system:dranet"), True),
        (subject("User", "dranet"), False),
        (subject("Group", "system:serviceaccounts"), True),
        (subject("Group", "system:serviceaccounts:kube-system"), True),
        (subject("Group", "system:serviceaccounts:other"), False),
        (subject("Group", "system:authenticated"), True),
        (subject("Group", "system:masters"), False),
        (subject("Role", "system:authenticated"), False),
    ],
)
def test_whom_a_role_is_bound_to(found: dict[str, Any], bound: bool) -> None:
    """A service account is a user with a name, and in the groups of all users, all accounts and its namespace."""
    binding = {**objects.BINDING, "subjects": [subject("User", "other"), found]}
    account = reading.driver_account("kube-system", "dranet", [binding], [objects.ROLE])
    assert account.roles == (("dranet",) if bound else ())
    assert len(account.rules) == (2 if bound else 0)


def test_what_an_account_may_do() -> None:
    """F119; a role that is bound twice counts once, and one that does not exist allows nothing."""
    missing = {**objects.BINDING, "roleRef": {"kind": "ClusterRole", "name": "missing"}}
    bindings = [objects.BINDING, missing, objects.BINDING]
    account = reading.driver_account("kube-system", "dranet", bindings, [objects.ROLE])
    assert account == shapes.DriverAccount(
        "kube-system",
        "dranet",
        ("dranet", "missing"),
        (
            shapes.RoleRule(("",), ("nodes",), ("get",)),
            shapes.RoleRule(
                ("resource.k8s.io",),
                ("resourceclaims/driver",),
                ("associated-node:patch", "associated-node:update"),
                ("dra.net",),
            ),
        ),
    )


def test_the_accounts_of_dranet() -> None:
    """Only its own, each once; a pod that names none has the account 'default'."""
    driver = shapes.DaemonSet("a", "dranet", "dranet", service_account="x")
    found = [driver, shapes.DaemonSet("a", "second", "dranet", service_account="x")]
    found += [shapes.DaemonSet("b", "dranet", "dranet"), shapes.DaemonSet("c", "cni", "network")]
    assert reading.accounts(found) == [("a", "x"), ("b", "default")]


READERS: list[Callable[[Any], Any]] = [
    reading.node,
    reading.resource_slice,
    reading.device_class,
    reading.claim,
    reading.claim_template,
    reading.taint_rule,
    reading.daemonset,
    reading.role,
    reading.selector_of,
    reading.api_object,
    reading.sriov_node_state,
    reading.prepare_event,
    reading.is_ours,
    reading.roll_lease,
    reading.roll,
    lambda content: reading.driver_account("kube-system", "dranet", [content, objects.BINDING], [content]),
]
SAMPLES = [
    objects.NODE,
    objects.SLICE,
    objects.CLAIM,
    objects.DAEMONSET,
    objects.POD,
    objects.NODE_STATE,
    objects.LEASE,
    objects.ROLL,
    objects.BUDGET,
    objects.ROLE,
    objects.BINDING,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *[place for key, held in below for place in places(held, (*path, key))]]


@given(
    st.sampled_from(SAMPLES).flatmap(
        lambda sample: st.tuples(st.just(sample), st.sampled_from(places(sample)))
    ),
    st.sampled_from([None, 1, True, "text", [], [1, None, "a", {}], {}, {"a": []}]),
)
def test_values_of_another_kind_count_as_absent(where: tuple[Any, tuple[Any, ...]], value: Any) -> None:
    """Files of users hold anything: every reader gives an answer that can be written and read again."""
    sample, path = where
    content = copy.deepcopy(sample)
    at = content
    for key in path[:-1]:
        at = at[key]
    if path:
        at[path[-1]] = value
    for reader in READERS:
        reader(content)
    reading.driver_pod(content, reading.daemonset(objects.DAEMONSET))
    reading.disruption_budget(objects.BUDGET, [content])
    snapshot = ClusterSnapshot(
        nodes=(reading.node(content),),
        slices=(reading.resource_slice(content),),
        claims=(reading.claim(content),),
        daemonsets=(reading.daemonset(content),),
        sriov_node_states=(reading.sriov_node_state(content),),
        roll_leases=(reading.roll_lease(content),),
        disruption_budgets=(reading.disruption_budget(content, None),),
    )
    for compact in (False, True):
        document = json.loads(json.dumps(snapshot.to_dict(compact)))
        assert ClusterSnapshot.from_dict(document).to_dict() == snapshot.to_dict()


# --- the document ----------------------------------------------------------------------------------------------------


def test_layouts_of_many_nodes() -> None:
    nodes = tuple([dataclasses.replace(reading.node(objects.NODE), name="n%d" % at) for at in range(9)])
    snapshot = ClusterSnapshot("c", nodes=nodes, claims=(), slices=None)
    readable, compact = snapshot.to_dict(), snapshot.to_dict(True)
    assert len(json.dumps(compact)) < len(json.dumps(readable)) / 3
    for document in (readable, compact):
        found = ClusterSnapshot.from_dict(document)
        assert (found.nodes, found.claims, found.slices) == (nodes, (), None)


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"kind": "ClusterSnapshot", "schema_version": 2}, "snapshot_newer_schema"),
        ({"schema_version": 1, "name": "n1"}, "snapshot_not_of_cluster"),
        ([], "snapshot_not_of_cluster"),
        ({"kind": "ClusterSnapshot", "nodes": [{"name": 1}]}, "document_malformed"),
    ],
)
def test_documents_that_are_refused(document: Any, code: str) -> None:
    with pytest.raises(RdmaError) as error:
        ClusterSnapshot.from_dict(document)
    assert error.value.code == code


def test_what_is_served() -> None:
    served = ("v1", "apps/v1", "resource.k8s.io/v1/resourceclaims")
    server = shapes.ApiServer("v1.37.2", "", served)
    assert server.serves("resource.k8s.io", "resourceclaims") is True
    assert server.serves("resource.k8s.io", "devicetaintrules") is False
    assert shapes.ApiServer().serves("resource.k8s.io", "resourceclaims") is None


def test_why_something_is_not_known() -> None:
    snapshot = ClusterSnapshot(errors=(shapes.ReadError("nodes", "no"), shapes.ReadError("events", "")))
    assert [snapshot.error_of(name) for name in ("nodes", "events", "claims")] == ["nodes: no", "events", ""]
