# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The test of a pod on a Lingjun node: its Job, what the Job tells, and what that means. Private to rdma.k8s.

Tokens on a node prove a registration and no device (A71), and a pod that gets devices may still lack what RDMA needs
(A79). So a Job asks for a token on a node, and its container tells what it sees; nothing is guessed from counts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..kube import quantity
from ..kube.manifest import require_name
from ..kube.objects import entries, mapping, text
from ..node_verdict import UNVERIFIED
from ..workloads import api_rules
from .names import RESOURCE, TAINT_KEY
from .pod_script import SCHEMA, SCRIPT
from .verdict import FAIL, UNKNOWN, WARN, Reason, worst

SHARED_HOST_NETWORK, SHARED, EXCLUSIVE = MODES = ("shared_host_network", "shared", "exclusive")
"""The three ways in which the plugin is used (A6)."""

NAME = "rdma-k8s-pod-test"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "rdma.k8s"}
RUN_LABEL = "rdma.k8s/run"
NODE_ANNOTATION = "rdma.k8s/node"
CONTAINER = "look"
TOLERATIONS = tuple(
    [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (TAINT_KEY, UNVERIFIED)]
)
"""Of the taint that Lingjun nodes have by default (A13), and of that of nodes which are just being brought up."""

_IPC_LOCK, _SYS_RESOURCE = 14, 24
"""Bits of CapEff (A79)."""
_KEPT = 300
"""Seconds that a finished Job stays when nobody removes it."""
_NET = 60
"""Seconds after which a Job ends by itself when nobody looks any more. Its end removes a pod that waits, and the reason
why it waits with it."""
_SIZE = re.compile(r"(?:^|,)size=([0-9]+)([kKmMgG]?)(?:,|$)")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class PodTest:
    """What is tried.

    :param mode: one of ``MODES``.
    :param tokens: how many of the resource; in exclusive mode that many NICs.
    :param shm: size of the volume at /dev/shm. Memory is taken when it is used, which the test does not.
    :param tolerations: further ones than that of the default taint.
    :param pull_secrets: names of Secrets of the namespace for the image.
    :param seconds: how long a Job may take.
    """

    image: str
    resource_name: str = RESOURCE
    mode: str = SHARED_HOST_NETWORK
    namespace: str = "default"
    tokens: int = 1
    shm: str = "1Gi"
    tolerations: Sequence[Mapping[str, Any]] = ()
    pull_secrets: Sequence[str] = ()
    seconds: int = 180

    @property
    def own_network(self) -> bool:
        """The pod has a network of its own, so it needs IPv6 (A6)."""
        return self.mode != SHARED_HOST_NETWORK


class Problem(NamedTuple):
    """One thing that is wrong, and what to do; ``status`` is ``fail``, ``warn`` or ``unknown``."""

    code: str
    status: str
    message: str
    hint: str = ""


@dataclass(frozen=True)
class State:
    """How far the Job of a node is.

    :param done: nothing more will come.
    :param told: the line of the container, empty until it is there.
    :param problem: why there is no line; meaningful once the Job is done, or its time is over.
    """

    done: bool = False
    pod: str = ""
    told: str = ""
    problem: Optional[Problem] = None


@dataclass(frozen=True)
class Verdict:
    """What the test of a node showed."""

    status: str
    problems: tuple[Problem, ...] = ()
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def reasons(self) -> list[str]:
        """The codes of the problems."""
        return [problem.code for problem in self.problems]


def require(test: PodTest, nodes: Sequence[str]) -> None:
    """What would make a Job that the API server refuses.

    :raises RdmaError: ``name_malformed``, ``workload_malformed``, ``workload_shm``, ``workload_incomplete``
    """
    what = "The pod test"
    require_name(test.namespace, "A namespace", label=True)
    for node in nodes:
        require_name(node, "A node")
    for secret in test.pull_secrets:
        require_name(secret, "A Secret with credentials for images")
    if not test.image.strip():
        raise RdmaError(
            "workload_incomplete",
            "%s needs an image." % what,
            hint="Name the image of your jobs, or any other with a POSIX shell.",
        )
    api_rules.require_resource(what, "resource_name", test.resource_name)
    for toleration in test.tolerations:
        api_rules.require_toleration(what, toleration)
    api_rules.require_sizes("Job", "of the pod test", test.shm, "", "")


# --- the Job ---------------------------------------------------------------------------------------------------------


def job(test: PodTest, node: str, run: str) -> dict[str, Any]:
    """The Job that looks at one node.

    It passes the lint of its mode. The pod goes through the scheduler, because a pod that names its node would be
    refused by the kubelet when the tokens are gone, and nobody would tell why.

    :param run: tells the Jobs of one run from others; part of the name.
    """
    labels = {**LABELS, RUN_LABEL: run}
    annotations = {NODE_ANNOTATION: node}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "rdma-pod-test-%s-%s" % (hashlib.sha256(node.encode()).hexdigest()[:10], run),
            "namespace": test.namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": test.seconds + _NET,
            "ttlSecondsAfterFinished": _KEPT,
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": _pod(test, node),
            },
        },
    }


def _pod(test: PodTest, node: str) -> dict[str, Any]:
    tolerations = [dict(entry) for entry in (*TOLERATIONS, *test.tolerations)]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    amounts = {test.resource_name: str(test.tokens)}
    found: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        },
        "tolerations": tolerations,
        "containers": [
            {
                "name": CONTAINER,
                "image": test.image,
                "command": ["sh", "-c", SCRIPT],
                "resources": {"requests": dict(amounts), "limits": dict(amounts)},
                # Capabilities of another user are not effective (A108).
                "securityContext": {
                    "runAsUser": 0,
                    "capabilities": {"add": ["IPC_LOCK", "SYS_RESOURCE"]},
                },
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],  # noqa: S108 (of the pod)
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": test.shm}}],
    }
    if not test.own_network:
        found.update({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"})
    if test.pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in test.pull_secrets]
    return found


# --- how far it is ---------------------------------------------------------------------------------------------------

_SCHEDULE = "Free the resource, or look at the labels, taints and requests that the scheduler names."
_START = "Look at the events of the pod with kubectl describe."
_REFUSED = (
    "Test in a namespace that allows the host network and the capabilities IPC_LOCK and SYS_RESOURCE: the label "
    "pod-security.kubernetes.io/enforce is privileged there."
)


def state(job_object: Mapping[str, Any], pods: Iterable[Mapping[str, Any]], events: Sequence[str]) -> State:
    """How far a Job is.

    :param pods: its pods.
    :param events: messages of events about the Job, for one whose pods are refused.
    """
    found = sorted(pods, key=_created)
    over = [
        entry
        for _at, entry in entries(mapping(job_object, "status").get("conditions"))
        if entry.get("status") == "True" and entry.get("type") in ("Complete", "Failed")
    ]
    if found:
        return _of_pod(found[-1], bool(over))
    if events:
        message = "No pod was made: %s" % _short(events[-1])
        return State(bool(over), problem=Problem("pod-refused", FAIL, message, _REFUSED))
    return State(
        bool(over), problem=Problem("pod-missing", UNKNOWN, "The Job controller made no pod.", _START)
    )


def _created(pod: Mapping[str, Any]) -> str:
    return text(mapping(pod, "metadata").get("creationTimestamp"))


def _of_pod(pod: Mapping[str, Any], over: bool) -> State:
    name = text(mapping(pod, "metadata").get("name"))
    status = mapping(pod, "status")
    phase = status.get("phase")
    container: Mapping[str, Any] = {}
    for _at, entry in entries(status.get("containerStatuses")):
        if entry.get("name") == CONTAINER:
            container = entry
    ended = mapping(container, "state", "terminated")
    if phase in ("Succeeded", "Failed"):
        told = text(ended.get("message"))
        return State(True, name, told, None if told else _ended(status, ended))
    return State(over, name, problem=_waits(status, container))


def _ended(status: Mapping[str, Any], ended: Mapping[str, Any]) -> Problem:
    if ended:
        message = "The container ended with code %s (%s) and told nothing." % (
            ended.get("exitCode"),
            text(ended.get("reason")) or "no reason",
        )
        return Problem("pod-silent", UNKNOWN, message, "The image needs a POSIX shell sh in its PATH.")
    reason = text(status.get("reason")) or "no reason"
    message = "The pod failed before it ran: %s, %s" % (reason, _short(text(status.get("message"))))
    return Problem("pod-failed", FAIL, message, _START)


def _waits(status: Mapping[str, Any], container: Mapping[str, Any]) -> Problem:
    for _at, entry in entries(status.get("conditions")):
        if entry.get("type") == "PodScheduled" and entry.get("status") == "False":
            message = "The pod has no node: %s" % _short(text(entry.get("message")))
            return Problem("pod-not-scheduled", FAIL, message, _SCHEDULE)
    waiting = mapping(container, "state", "waiting")
    if waiting:
        message = "The container does not start: %s, %s" % (
            text(waiting.get("reason")) or "no reason",
            _short(text(waiting.get("message"))),
        )
        return Problem("pod-not-started", FAIL, message, _START)
    if "running" in mapping(container, "state"):
        return Problem("pod-not-ended", UNKNOWN, "The container runs and tells nothing.", _START)
    return Problem("pod-not-started", UNKNOWN, "The kubelet tells nothing about the pod.", _START)


def _short(message: str) -> str:
    words = " ".join(message.split())
    return (words[:300] or "no message").rstrip(".") + "."


# --- what it told ----------------------------------------------------------------------------------------------------


def read(told: str) -> Optional[dict[str, Any]]:
    """The evidence in what a container printed: its last line; ``None``: it is cut off, or of something else."""
    lines = told.strip().splitlines()
    try:
        found = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("schema") == SCHEMA else None


def judge(test: PodTest, evidence: Mapping[str, Any]) -> Verdict:
    """What the evidence means for pods of this mode (A68, A74, A79, A93, A105, A106, A112)."""
    problems = [
        *_devices(test, evidence),
        *_ports(test, evidence),
        *_rights(evidence),
        *_shared_memory(test, evidence),
        *(_network(evidence) if test.own_network else ()),
    ]
    return verdict(problems, evidence)


def verdict(problems: Sequence[Problem], evidence: Optional[Mapping[str, Any]] = None) -> Verdict:
    """The worst of the problems decides."""
    status = worst([Reason(problem.code, problem.status, problem.message) for problem in problems])
    return Verdict(status, tuple(problems), dict(evidence or {}))


def _names(evidence: Mapping[str, Any], start: str) -> list[str]:
    return [name for name in mapping(evidence, "files") if name.startswith(start)]


def _devices(test: PodTest, evidence: Mapping[str, Any]) -> Iterator[Problem]:
    files = mapping(evidence, "files")
    verbs = _names(evidence, "uverbs")
    hint = "Load ib_uverbs, rdma_ucm and ib_umad on the node, and restart the plugin's pod of that node."
    if not verbs:
        message = "The pod has %s, and no /dev/infiniband/uverbs file: a token is no device." % (
            test.resource_name
        )
        yield Problem("device-missing", FAIL, message, hint)
    for kind, status in (("rdma_cm", FAIL), ("umad", WARN)):
        if verbs and not _names(evidence, kind):
            message = "The pod has no /dev/infiniband/%s file." % kind
            yield Problem(kind.replace("_", "-") + "-missing", status, message, hint)
    wrong = sorted([name for name, found in files.items() if found == "none"])
    if wrong:
        message = "No character devices: /dev/infiniband/%s." % ", ".join(wrong)
        yield Problem("device-not-a-device", FAIL, message, "Look what else mounts there.")
    denied = sorted([name for name, found in files.items() if found == "denied"])
    if denied:
        message = "The pod may not open /dev/infiniband/%s." % ", ".join(denied)
        yield Problem(
            "device-denied",
            FAIL,
            message,
            "The files came without the plugin: remove a hostPath volume of them.",
        )
    if test.mode == EXCLUSIVE and len(verbs) > test.tokens:
        message = "The pod asked for %d and has %d devices: %s." % (
            test.tokens,
            len(verbs),
            ", ".join(sorted(verbs)),
        )
        yield Problem("device-not-exclusive", WARN, message, "Check that the plugin runs in exclusive mode.")


def _given(evidence: Mapping[str, Any]) -> dict[str, str]:
    """The uverbs files of the pod, and the RDMA device of each; empty when it is not visible."""
    known = mapping(evidence, "verbs")
    return {name: text(known.get(name)) for name in _names(evidence, "uverbs")}


def _ports(test: PodTest, evidence: Mapping[str, Any]) -> Iterator[Problem]:
    given = _given(evidence)
    hidden = sorted([name for name, device in given.items() if not device])
    if hidden:
        message = "The kernel shows no RDMA device for %s in the pod." % ", ".join(hidden)
        yield Problem(
            "device-not-visible",
            FAIL,
            message,
            "Check that the network namespace mode of the RDMA subsystem is shared on the node.",
        )
    devices = {device for device in given.values() if device}
    listed = evidence.get("ports")
    ports = [
        port
        for port in (listed if isinstance(listed, list) else ())
        if isinstance(port, list) and len(port) == 8 and port[0] in devices
    ]
    if not devices:
        return
    idle = [port for port in ports if not str(port[2]).endswith("ACTIVE")]
    told = ", ".join(["%s port %s: %s" % (port[0], port[1], port[2] or "unknown") for port in idle])
    if len(idle) == len(ports):
        message = "No port of the pod's devices is active%s." % (": " + told if told else "")
        yield Problem("port-none-active", FAIL, message, "Look at the links on the node.")
        return
    if idle:
        yield Problem("port-not-active", WARN, "Not active: %s." % told, "Jobs are slow without these NICs.")
    active = [port for port in ports if port not in idle and port[3] != "InfiniBand"]
    yield from _gids(test, active)


def _gids(test: PodTest, ports: Sequence[Sequence[Any]]) -> Iterator[Problem]:
    """RoCE v2 GIDs of the active Ethernet ports: IPv4, IPv6, and of both those of interfaces in the pod (A68)."""
    if not ports:
        return
    without = [port[0] for port in ports if not (port[5] if test.own_network else port[4] + port[5])]
    foreign = [port[0] for port in ports if port[5] and not port[7]] if test.own_network else []
    wanted = "RoCE v2 GID of an IPv6 address" if test.own_network else "RoCE v2 GID of an address"
    if without:
        status = FAIL if len(without) == len(ports) else WARN
        message = "No %s: %s." % (wanted, ", ".join(without))
        hint = (
            "Pods off the host network need a Lingjun compute network with IPv6; a support ticket sets it at creation."
            if test.own_network
            else "Look at the addresses of the RDMA bonds on the node."
        )
        yield Problem("gid-missing", status, message, hint)
    if foreign and len(foreign) == len(ports):
        message = "Every GID belongs to an interface outside of the pod: %s." % ", ".join(foreign)
        yield Problem(
            "gid-not-own", WARN, message, "Check with a test of bandwidth whether pods reach each other."
        )


def _rights(evidence: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        caps = int(text(evidence.get("caps")), 16)
    except ValueError:
        yield Problem("capabilities-unknown", UNKNOWN, "The pod did not tell its capabilities.")
        return
    hint = "Look for an admission webhook or a runtime class that takes capabilities away."
    limits = evidence.get("memlock")
    soft = str(limits[0]) if isinstance(limits, list) and limits else ""
    if not caps >> _IPC_LOCK & 1:
        free = soft == "unlimited"
        message = "The pod lacks IPC_LOCK, and may lock %s of memory." % (
            "any amount" if free else "%s bytes" % (soft or "an unknown number of")
        )
        yield Problem("missing-ipc-lock", WARN if free else FAIL, message, hint)
    if not caps >> _SYS_RESOURCE & 1:
        yield Problem("missing-sys-resource", FAIL, "The pod lacks SYS_RESOURCE.", hint)


def _shared_memory(test: PodTest, evidence: Mapping[str, Any]) -> Iterator[Problem]:
    shm = mapping(evidence, "shm")
    if not shm.get("mounted") or shm.get("type") != "tmpfs":
        message = "The volume of shared memory is %s and not in memory." % (shm.get("type") or "not mounted")
        yield Problem("shm-not-memory", FAIL, message, "Look for a webhook that changes volumes.")
        return
    options = text(shm.get("options"))
    if "ro" in options.split(","):
        yield Problem("shm-readonly", FAIL, "Shared memory is mounted read-only.", "Look what mounts it.")
    found = _SIZE.search(options)
    wanted = quantity.parse(test.shm)
    if found and wanted is not None:
        size = int(found[1]) * _UNITS[found[2].lower()]
        if size < wanted:
            message = "Shared memory has %d bytes, fewer than %s." % (size, test.shm)
            yield Problem("shm-size-small", WARN, message, "A limit of memory of the pod makes it smaller.")


def _network(evidence: Mapping[str, Any]) -> Iterator[Problem]:
    """IPv6 inside the pod: without it no GID of its own address appears (A68, A112)."""
    switches = mapping(evidence, "no_ipv6")
    single = [name for name in switches if name != "all"]
    hint = "Let the network plugin leave net.ipv6.conf.all.disable_ipv6 at 0 in pods."
    if not switches:
        yield Problem("ipv6-disabled", FAIL, "The kernel of the node has no IPv6.", "Start it with IPv6.")
    elif single and all(switches[name] == "1" for name in single):
        message = "IPv6 is off on every interface of the pod: %s." % ", ".join(sorted(single))
        yield Problem("ipv6-disabled", FAIL, message, hint)
    elif not evidence.get("ipv6"):
        message = "No interface of the pod has an IPv6 address other than link-local."
        yield Problem(
            "ipv6-address-missing", WARN, message, "Look at the log of the plugin's pod on that node."
        )
