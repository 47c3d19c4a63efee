# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod test of Lingjun nodes: its program in real containers' surroundings, its Job, and what its answers mean."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import pod_script, pod_test
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack.pod_test import PodTest
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.engine import lint
from ansible_collections.rdma.k8s.tests.support import pod_container
from ansible_collections.rdma.k8s.tests.support.outcome import error_of
from ansible_collections.rdma.k8s.tests.support.pod_container import Container, Port, lingjun
from ansible_collections.rdma.k8s.tests.support.shells import SHELLS

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces, mounts and device nodes need root")
HOST, OWN, ALONE = (PodTest("image", mode=mode) for mode in pod_test.MODES)
BOND = "mlx5_bond_0"


def verdict(container: Container, test: PodTest) -> pod_test.Verdict:
    """Run the program in a container and judge what it told."""
    printed, message = pod_container.run(container, pod_script.SCRIPT)
    assert printed == message
    evidence = pod_test.read(message)
    assert evidence is not None
    return pod_test.judge(test, pod_container.as_given(container, evidence))


@needs_root
@pytest.mark.parametrize("shell", SHELLS, ids=lambda words: words[0])
@pytest.mark.parametrize(("own", "test"), [(False, HOST), (True, OWN)])
def test_a_good_node_in_each_shell(own: bool, test: PodTest, shell: tuple[str, ...]) -> None:
    """A79: nothing is wrong; sixteen devices fit into the 4096 bytes of a termination message."""
    container = lingjun(16, own)
    printed, message = pod_container.run(container, pod_script.SCRIPT, shell)
    assert printed == message
    assert len(message) < 4096
    evidence = pod_container.as_given(container, json.loads(message))
    found = pod_test.judge(test, evidence)
    assert (found.status, found.problems) == ("ok", ())
    assert evidence["memlock"] == ["65536", "65536"]
    assert evidence["ipv6"] == (["eth0"] if own else [])
    assert evidence["ports"][0] == [
        BOND,
        "1",
        "4: ACTIVE",
        "Ethernet",
        *((0, 2, 0, 1) if own else (1, 0, 1, 0)),
    ]
    assert evidence["files"]["issm0"] == "there"


def without(container: Container, start: str) -> Container:
    """Without the device files whose names begin so."""
    files = {name: state for name, state in container.files.items() if not name.startswith(start)}
    return replace(container, files=files)


def with_ports(container: Container, **changes: Any) -> Container:
    """With other ports, all of them."""
    return replace(container, ports=tuple([replace(port, **changes) for port in container.ports]))


GOOD, GOOD_OWN = lingjun(2), lingjun(2, own_network=True)
ONE_DOWN = replace(GOOD, ports=(replace(GOOD.ports[0], state="1: DOWN"), *GOOD.ports[1:]))
FOREIGN = {"2001:0db8:0010:0000:0000:0000:0000:0001": (3, "RoCE v2", "bond0")}
OLD_TYPE = {"2001:0db8:0009:0000:0000:0000:0000:0001": (3, "IB/RoCE v1", "eth0")}
NO_IPV6 = replace(GOOD_OWN, no_ipv6=True, interfaces={"eth0": []})
IPV4_ALONE = replace(GOOD_OWN, interfaces={"eth0": ["192.0.2.7/24"]})
CASES: list[tuple[str, Container, PodTest, str, list[str]]] = [
    ("nothing came", replace(GOOD, files={}), HOST, "fail", ["device-missing"]),
    ("no rdma_cm (A74, A93, A94)", without(GOOD, "rdma_cm"), HOST, "fail", ["rdma-cm-missing"]),
    ("no umad (A74)", without(GOOD, "umad"), HOST, "warn", ["umad-missing"]),
    ("the cgroup denies", replace(GOOD, files={**GOOD.files, "uverbs1": "denied"}), HOST, "fail", ["device-denied"]),
    (
        "a file in the place of a device",
        replace(GOOD, files={**GOOD.files, "uverbs1": "none"}),
        HOST,
        "fail",
        ["device-not-a-device"],
    ),
    ("the kernel hides them (A76)", replace(GOOD, verbs={}, ports=()), HOST, "fail", ["device-not-visible"]),
    ("a link is down", ONE_DOWN, HOST, "warn", ["port-not-active"]),
    ("all links are down", with_ports(GOOD, state="1: DOWN"), HOST, "fail", ["port-none-active"]),
    ("no GID on the host network", with_ports(GOOD, gids={}), HOST, "fail", ["gid-missing"]),
    ("native InfiniBand needs none", with_ports(GOOD, layer="InfiniBand", gids={}), HOST, "ok", []),
    ("IPv4 network, own network (A8)", with_ports(GOOD_OWN, gids=GOOD.ports[0].gids), OWN, "fail", ["gid-missing"]),
    ("GIDs of RoCE v1 alone", with_ports(GOOD_OWN, gids=OLD_TYPE), OWN, "fail", ["gid-missing"]),
    ("GIDs of the host alone", with_ports(GOOD_OWN, gids=FOREIGN), OWN, "warn", ["gid-not-own"]),
    ("IPv6 is off in the pod (A68, A112)", NO_IPV6, OWN, "fail", ["ipv6-disabled"]),
    ("no IPv6 address", IPV4_ALONE, OWN, "warn", ["ipv6-address-missing"]),
    ("no IPC_LOCK (A105)", replace(GOOD, added="sys_resource"), HOST, "fail", ["missing-ipc-lock"]),
    ("no SYS_RESOURCE", replace(GOOD, added="ipc_lock"), HOST, "fail", ["missing-sys-resource"]),
    ("no volume (A106)", replace(GOOD, shm=""), HOST, "fail", ["shm-not-memory"]),
    ("read-only", replace(GOOD, shm="ro,size=1g"), HOST, "fail", ["shm-readonly"]),
    ("the default of a runtime", replace(GOOD, shm="size=64m"), HOST, "warn", ["shm-size-small"]),
    ("shared devices in exclusive mode", GOOD_OWN, ALONE, "warn", ["device-not-exclusive"]),
    ("one device in exclusive mode", lingjun(1, True), ALONE, "ok", []),
]  # fmt: skip


@needs_root
@pytest.mark.parametrize(
    ("container", "test", "status", "reasons"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_what_a_container_lacks(container: Container, test: PodTest, status: str, reasons: list[str]) -> None:
    """A68, A74, A79, A93, A105, A106, A112: the program sees it, and the verdict names it and nothing else."""
    found = verdict(container, test)
    assert (found.status, found.reasons) == (status, reasons)
    assert all(problem.message.endswith(".") and problem.hint.endswith(".") for problem in found.problems)


@needs_root
def test_names_that_are_no_names_do_not_break_the_line() -> None:
    """What the kernel says ends up in JSON: quotation marks and backslashes are not passed on."""
    odd = replace(
        GOOD, ports=(Port('a"b\\', state='4: "ACTIVE"'),), verbs={"uverbs0": 'a"b', "uverbs1": "$(id)"}
    )
    evidence = json.loads(pod_container.run(odd, pod_script.SCRIPT)[0])
    assert evidence["verbs"] == {"uverbs0": "?", "uverbs1": "?"}
    assert evidence["ports"] == [["?", "1", "?", "Ethernet", 0, 0, 0, 0]]


def test_the_program_starts_no_other() -> None:
    """Any image with a POSIX shell runs it: with an empty PATH nothing is missing, and it makes no file."""
    done = subprocess.run(
        [
            shutil.which("sh") or "/bin/sh",
            "-c",
            pod_script.SCRIPT.replace("/dev/termination-log", "/dev/null"),
        ],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert pod_test.read(done.stdout) is not None


def test_without_a_limit_ipc_lock_is_no_failure() -> None:
    """A105: the capability lifts the limit of locked memory; without a limit it is asked for all the same."""
    evidence: dict[str, Any] = {"caps": "1000000", "memlock": ["unlimited", "unlimited"]}
    found = {problem.code: problem.status for problem in pod_test.judge(HOST, evidence).problems}
    assert found["missing-ipc-lock"] == "warn"
    evidence["memlock"] = ["65536", "unlimited"]
    found = {problem.code: problem.status for problem in pod_test.judge(HOST, evidence).problems}
    assert found["missing-ipc-lock"] == "fail"


@pytest.mark.parametrize("told", ["", "killed", "[1]", '{"schema": 2}', '{"schema": 1, "caps": "00'])
def test_a_line_of_something_else(told: str) -> None:
    assert pod_test.read(told) is None


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ("rw,relatime,size=1048576k", []),
        ("rw,relatime,size=1g,inode64", []),
        ("rw,relatime", []),  # half of the memory of the node
        ("rw,size=65536k", ["shm-size-small"]),
        ("ro,size=8388608k", ["shm-readonly"]),
    ],
)
def test_options_of_shared_memory(options: str, reasons: list[str]) -> None:
    """A106, A107: the size as the kernel writes it; without one it is no smaller than anybody wants."""
    shm = {"mounted": 1, "type": "tmpfs", "options": options}
    found = pod_test.judge(HOST, {"caps": "1004000", "shm": shm}).reasons
    assert [reason for reason in found if reason.startswith("shm")] == reasons


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"namespace": "a.b"}, "name_malformed"),
        ({"pull_secrets": ["A"]}, "name_malformed"),
        ({"image": ""}, "workload_incomplete"),
        ({"resource_name": "hca"}, "workload_malformed"),
        ({"tolerations": [{"operator": "Sometimes"}]}, "workload_malformed"),
        ({"shm": "8GB"}, "workload_shm"),
    ],
)
def test_what_the_api_server_would_refuse(changes: dict[str, Any], code: str) -> None:
    pod_test.require(replace(HOST, tolerations=[{"operator": "Exists"}], pull_secrets=["key"]), ["n1"])
    assert error_of(pod_test.require, replace(HOST, **changes), ["n1"]).code == code


def test_only_the_last_line_counts() -> None:
    """An entry point of an image may print something before."""
    assert pod_test.read('== CUDA ==\n{"schema": 1, "caps": "0"}\n') == {"schema": 1, "caps": "0"}


@pytest.mark.parametrize("evidence", [{}, {"files": [], "ports": 5, "memlock": {}, "shm": "x", "caps": None}])
def test_evidence_of_any_kind_is_judged(evidence: dict[str, Any]) -> None:
    found = pod_test.judge(OWN, evidence)
    assert found.status == "fail"
    assert {"device-missing", "capabilities-unknown", "shm-not-memory", "ipv6-disabled"} == set(found.reasons)


# --- the Job


@pytest.mark.parametrize("test", [HOST, OWN, ALONE], ids=pod_test.MODES)
def test_the_job_passes_the_lint_of_its_mode(test: PodTest) -> None:
    """A69: it asks for what the rules want; /dev/shm is small on purpose, and the option says so."""
    options = {
        "rdma_mode": "exclusive" if test.mode == "exclusive" else "shared",
        "non_host_network": test.own_network,
        "min_shm": "1Gi",
    }
    made = pod_test.job(test, "e01-cn-a1", "abc123")
    found = lint([Document(made, "", 0, {})], target="ack_lingjun", options=options)
    assert [(f.rule, f.code, f.message) for f in found if f.status in ("fail", "warn")] == []


def test_the_job_of_a_node() -> None:
    """It goes to that node through the scheduler, ends by itself, and is known by its labels."""
    test = replace(
        HOST, tolerations=[{"key": "gpu", "operator": "Exists"}], pull_secrets=["key"], namespace="checks"
    )
    made = pod_test.job(test, "e01-cn-a1", "abc123")
    pod = made["spec"]["template"]["spec"]
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["e01-cn-a1"]}]}
    assert "nodeName" not in pod
    assert pod["tolerations"] == [*pod_test.TOLERATIONS, {"key": "gpu", "operator": "Exists"}]
    assert [entry["key"] for entry in pod_test.TOLERATIONS] == [
        "node-role.alibabacloud.com/lingjun",
        "rdma.k8s/unverified",
    ]
    assert pod["imagePullSecrets"] == [{"name": "key"}]
    assert made["spec"]["backoffLimit"] == 0
    assert made["spec"]["activeDeadlineSeconds"] == 240
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"]
    assert made["metadata"]["labels"]["rdma.k8s/run"] == "abc123"
    assert made["metadata"]["name"] != pod_test.job(test, "e01-cn-a2", "abc123")["metadata"]["name"]
    assert len(pod_test.job(test, "n" * 253, "abc123")["metadata"]["name"]) <= 63


def pod(
    phase: str,
    created: str = "1",
    conditions: Any = (),
    state: Optional[dict[str, Any]] = None,
    **status: Any,
) -> Any:
    """A pod as the API gives it."""
    if state is not None:
        status["containerStatuses"] = [
            {"name": "sidecar", "state": {}},
            {"name": pod_test.CONTAINER, "state": state},
        ]
    return {
        "metadata": {"name": "p" + created, "creationTimestamp": created},
        "status": {"phase": phase, "conditions": list(conditions), **status},
    }


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/4 nodes: 1 Insufficient rdma/hca."}
SCHEDULED = {"type": "PodScheduled", "status": "True"}
NO_IMAGE = {"waiting": {"reason": "ErrImagePull"}}
STATES: list[tuple[str, Any, list[Any], list[str], Any]] = [
    ("told", {}, [pod("Succeeded", state={"terminated": {"exitCode": 0, "message": "{}"}})], [], (True, "{}", None)),
    (
        "no shell",
        {},
        [pod("Failed", state={"terminated": {"exitCode": 127, "reason": "StartError"}})],
        [],
        (True, "", "pod-silent"),
    ),
    ("the kubelet refused", {}, [pod("Failed", reason="UnexpectedAdmissionError")], [], (True, "", "pod-failed")),
    ("no tokens", {}, [pod("Pending", conditions=[UNSCHEDULED])], [], (False, "", "pod-not-scheduled")),
    ("no image", {}, [pod("Pending", state=NO_IMAGE)], [], (False, "", "pod-not-started")),
    ("runs", {}, [pod("Running", state={"running": {}})], [], (False, "", "pod-not-ended")),
    ("scheduled", {}, [pod("Pending", conditions=[SCHEDULED])], [], (False, "", "pod-not-started")),
    ("quiet", {}, [pod("Pending")], [], (False, "", "pod-not-started")),
    ("refused", {}, [], ['violates PodSecurity "baseline"'], (False, "", "pod-refused")),
    ("no pod yet", {}, [], [], (False, "", "pod-missing")),
    (
        "too late",
        {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}},
        [pod("Pending", conditions=[UNSCHEDULED])],
        [],
        (True, "", "pod-not-scheduled"),
    ),
    (
        "the newest pod counts",
        {},
        [pod("Running", "2", state={"running": {}}), pod("Failed", "1", reason="Evicted")],
        [],
        (False, "", "pod-not-ended"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("job", "pods", "events", "expected"), [case[1:] for case in STATES], ids=[case[0] for case in STATES]
)
def test_how_far_a_job_is(job: Any, pods: list[Any], events: list[str], expected: Any) -> None:
    found = pod_test.state(job, pods, events)
    assert (found.done, found.told, found.problem and found.problem.code) == expected
    if found.problem:
        assert found.problem.message.endswith(".")


def test_reasons_are_passed_on() -> None:
    """What the scheduler or an admission says is in the message."""
    scheduled = pod_test.state({}, [pod("Pending", conditions=[UNSCHEDULED])], []).problem
    assert scheduled is not None
    assert "Insufficient rdma/hca" in scheduled.message
    refused = pod_test.state({}, [], ['violates PodSecurity "baseline"']).problem
    assert refused is not None
    assert 'violates PodSecurity "baseline"' in refused.message
