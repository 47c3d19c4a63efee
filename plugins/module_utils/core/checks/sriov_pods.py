# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area SRIOV: the workloads that ask for rails, and what running pods show of them. Private to rdma.k8s.

It may change with any release. Workloads are judged as their users wrote them; pods by the answers that were given
inside of them (S126 to S144).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Optional

from ..cluster_snapshot import RAIL_WORKLOADS, PodLook, PodTest, RailWorkload
from ..finding import CRITICAL, ERROR, FAIL, PASS, SKIP, WARN, Detail
from ..spiderpool import injection, pod_fabric
from ..spiderpool.issue import Issue
from ..spiderpool.names import INJECT, NETWORK_INJECT, NETWORKS, POOL_ANNOTATIONS, RDMA_INJECT
from ..spiderpool.wanted import ClusterWish
from .context import Fleet, cluster_reason
from .registry import Outcome, bad, cluster_check, listed, odd, ok, skipped, unclear, weighed
from .sriov import CONFIGS, FIELDS, POLICIES, unread

NO_WORKLOAD = "No workload asks for networks or devices of Spiderpool."
_NOT_ASKED = "Subset 'workloads' of the cluster was not asked for."
_SOURCES = ("deployments.apps", "jobs.batch", "pods", "namespaces")

_PLURALS = {plural for _group, plural in RAIL_WORKLOADS} | {"namespaces", "sriovnetworknodepolicies"}
"""What the subset reads."""

_DEVICE = ("P6", "P7", "P9", "P13")
"""Whether the device of each virtual function is in the pod and can be used (S135, S137, S139, S143)."""
_TRAFFIC = "P14"


def _idle(fleet: Fleet) -> Outcome:
    """The outcome when workloads are not known."""
    cluster = fleet.sriov.cluster
    if "workloads" not in cluster.subsets:
        return skipped(_NOT_ASKED)
    failed = [error for error in cluster.errors if error.source.partition(".")[0] in _PLURALS]
    reason = cluster_reason(cluster, "workloads", *[error.source for error in failed] or _SOURCES)
    return weighed([unclear("workloads", reason)], "", "")


def _called(workload: RailWorkload) -> str:
    found = "%s %s/%s" % (workload.of_kind, workload.namespace, workload.name)
    return "%s (%s)" % (found, workload.role) if workload.role else found


@cluster_check(
    "RDMA-SRIOV-006",
    "The resources that workloads ask for are those that policies make",
    ERROR,
    "Write the resource as its policy makes it: prefix, slash, resourceName.",
    evidence=(*_SOURCES, FIELDS[POLICIES][1]),
)
def resources(fleet: Fleet) -> Outcome:
    """S119, S230: a pod with a resource that nobody makes stays pending, and nothing says why."""
    wish = fleet.sriov
    if wish.cluster.rail_workloads is None:
        return _idle(fleet)
    details = unread(fleet, POLICIES)
    if not details:
        for workload in wish.cluster.rail_workloads:
            details += _of_workload(workload, wish)
    return weighed(details, "%d workloads ask for resources that there are.", NO_WORKLOAD)


def _of_workload(workload: RailWorkload, wish: ClusterWish) -> list[Detail]:
    names = [maker.resource for maker in wish.makers]
    made = {"%s/%s" % (wish.prefix, called) for called in names}
    found = []
    asked = list(dict.fromkeys([key for held in workload.containers for key in held.limits]))
    for resource in asked:
        domain, _slash, called = resource.partition("/")
        if resource in made or (domain != wish.prefix and called not in names):
            continue
        if called in names:
            message = "%s has another prefix than the operator gives" % resource
        else:
            message = "no policy makes %s" % resource
        found.append(
            bad(_called(workload), message, listed(sorted(made)) or "a policy that makes it", resource)
        )
    return found or [ok(_called(workload))]


@cluster_check(
    "RDMA-SRIOV-013",
    "Annotations of workloads do not contradict each other",
    ERROR,
    "Let Spiderpool inject networks, or name them yourself: not both. Pools belong into the networks.",
    evidence=(*_SOURCES, FIELDS[CONFIGS][1]),
)
def said_once(fleet: Fleet) -> Outcome:
    """S159 to S167: the webhook overrides without a word, or refuses with a sentence that nobody reads."""
    wish = fleet.sriov
    if wish.cluster.rail_workloads is None:
        return _idle(fleet)
    asking = [workload for workload in wish.cluster.rail_workloads if _asks(workload) or workload.annotations]
    details = unread(fleet, CONFIGS) if any(_asks(workload) for workload in asking) else []
    if not details:
        configs = [injection.config_of(config) for config in wish.configs]
        for workload in asking:
            details += _contradictions(workload, configs)
    return weighed(
        details, "%d workloads say one thing.", "No workload has annotations of Spiderpool or Multus."
    )


def _asks(workload: RailWorkload) -> bool:
    return bool(injection.asked(workload.annotations, workload.namespace_annotations)[0])


def _contradictions(workload: RailWorkload, configs: Sequence[injection.Config]) -> list[Detail]:
    found = list(_alone(workload))
    judged = injection.judge(
        workload.annotations,
        [held.limits for held in workload.containers],
        configs,
        workload.namespace,
        namespace_annotations=workload.namespace_annotations,
    )
    for issue in judged.issues:
        if workload.of_kind == "Pod" and _is_written(workload, issue, judged):
            continue
        make = (
            odd if issue.code == "inject-namespace-skipped" else bad
        )  # the filters can be set otherwise (S166)
        found.append(make(_called(workload), issue.message, "annotations that agree", issue.code))
    return found or [ok(_called(workload))]


def _is_written(workload: RailWorkload, issue: Issue, judged: injection.Injection) -> bool:
    """Whether what looks like the user's networks is what the webhook wrote into this pod (S162)."""
    if issue.code != "inject-networks-overwritten":
        return False
    return workload.annotations.get(NETWORKS) == judged.networks


def _alone(workload: RailWorkload) -> Iterator[Detail]:
    """What contradicts itself without any config."""
    held = workload.annotations
    if all(key in held for key in INJECT):
        message = "it has %s and %s, and only the first acts" % (RDMA_INJECT, NETWORK_INJECT)  # S159
        yield odd(_called(workload), message, "one of them", "both")
    if all(held.get(key) for key in POOL_ANNOTATIONS):
        message = "it has %s and %s, and only the first acts" % POOL_ANNOTATIONS  # S93
        yield odd(_called(workload), message, "one of them", "both")


# Running pods


def _looks(fleet: Fleet) -> Sequence[PodLook]:
    return fleet.sriov.cluster.pod_looks or ()


def _pod(look: PodLook) -> str:
    return "Pod %s/%s" % (look.namespace, look.name)


def _answers(look: PodLook, numbers: Iterable[str]) -> list[Detail]:
    """What the predicates say of a pod; one detail when all of them are good."""
    if look.reason:
        return [unclear(_pod(look), look.reason.rstrip("."))]
    told = [answer for answer in look.answers if answer.predicate in numbers]
    found = []
    for answer in told:
        said = "%s: %s" % (answer.predicate, answer.message.rstrip("."))
        if answer.status == FAIL:
            found.append(bad(_pod(look), said, "pass", answer.predicate))
        elif answer.status == WARN:
            found.append(odd(_pod(look), said, "pass", answer.predicate))
        elif answer.status not in (PASS, SKIP):
            found.append(unclear(_pod(look), said))
    if found:
        return found
    return [ok(_pod(look))] if any(answer.status == PASS for answer in told) else []


@cluster_check(
    "RDMA-SRIOV-020",
    "Running pods have the RDMA devices of their virtual functions, without being privileged",
    ERROR,
    "Make the pod anew; when it stays so, look at rdmaIsolation, the SR-IOV device plugin and the image.",
    evidence=("inside of the pods",),
    proof=True,
)
def devices(fleet: Fleet) -> Outcome:
    """S135, S137, S139, S143: a privileged container sees all device files, so it proves nothing."""
    details: list[Detail] = []
    for look in _looks(fleet):
        found = _answers(look, _DEVICE)
        if look.privileged and all(detail.status == PASS for detail in found):
            message = "the container is privileged and sees every device file; look into one that is not"
            found = [unclear(_pod(look), message)]
        details += found
    return weighed(details, "%d pods have their devices.", "No running pod was looked into.")


@cluster_check(
    "RDMA-SRIOV-024",
    "Running pods have the interfaces, routes and limits that RDMA needs",
    ERROR,
    "See what to do about the predicate in 'Check a pod'.",
    evidence=("inside of the pods",),
    proof=True,
)
def networks(fleet: Fleet) -> Outcome:
    """S126 to S132, S138, S140 to S142."""
    numbers = ["P%d" % number for number in range(1, 14) if "P%d" % number not in _DEVICE]
    details = [detail for look in _looks(fleet) for detail in _answers(look, numbers)]
    return weighed(details, "%d pods are right.", "No running pod was looked into.")


@cluster_check(
    "RDMA-SRIOV-025",
    "Running pods reach pods on other nodes, rail by rail",
    CRITICAL,
    "When one rail or one pod fails, look at its cable, port and switch; else at filters, MTU and lossless settings.",
    evidence=("tests between the pods",),
    proof=True,
)
def traffic(fleet: Fleet) -> Outcome:
    """S144: device, GID index and address of each test are said, and with them each test is a detail."""
    details = [detail for look in _looks(fleet) for detail in _answers(look, (_TRAFFIC,))]
    rails = _medians(fleet)
    good = "%d pods reach their peers" + (": %s." % "; ".join(rails) if rails else ".")
    outcome = weighed(details, good, "No traffic between pods was tried.")
    return replace(
        outcome,
        details=(*outcome.details, *[_test(look, test) for look in _looks(fleet) for test in look.tests]),
    )


def _medians(fleet: Fleet) -> list[str]:
    """The medians of each rail, in its words."""
    rails: dict[str, list[PodTest]] = {}
    for look in _looks(fleet):
        for test in look.tests:
            rails.setdefault(test.rail, []).append(test)
    return [
        " ".join(
            [
                rail,
                *_figures(
                    pod_fabric.median([test.latency_us for test in rails[rail]]),
                    pod_fabric.median([test.bandwidth_gbps for test in rails[rail]]),
                ),
            ]
        ).replace("%", "?")
        for rail in sorted(rails, key=pod_fabric.natural)
    ]


def _figures(latency: Optional[float], bandwidth: Optional[float]) -> list[str]:
    found = [] if latency is None else ["%g us" % latency]
    return found if bandwidth is None else [*found, "%g Gbit/s" % bandwidth]


def _test(look: PodLook, test: PodTest) -> Detail:
    """A cell of the matrix: both ends as the programs were told, and what came out."""
    ends = [
        device if index is None else "%s (GID index %d)" % (device, index)
        for device, index in (
            (test.source_device, test.source_gid_index),
            (test.target_device, test.target_gid_index),
        )
    ]
    mtu = [] if test.mtu is None else ["MTU %d" % test.mtu]
    what = ", ".join(
        [*_figures(test.latency_us, test.bandwidth_gbps), *mtu, *([test.reason] if test.reason else [])]
    )
    return Detail(
        "%s/%s to %s on %s" % (look.namespace, look.name, test.target, test.rail),
        test.status,
        "%s to %s at %s%s" % (*ends, test.target_address, ": " + what if what else ""),
    )
