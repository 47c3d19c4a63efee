# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area SRIOV about workloads and running pods: a job on two rails, one edit each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterSnapshot,
    PodAnswer,
    PodLook,
    RailContainer,
    RailWorkload,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.names import (
    NETWORK_INJECT,
    NETWORKS,
    POOL_ANNOTATIONS,
    RDMA_INJECT,
)
from ansible_collections.rdma.k8s.tests.support import rails

from .sriov import both, of_cluster, unread

DEVICES = {"spidernet.io/gpu1sriov": "1", "spidernet.io/gpu2sriov": "1"}
NAMED = {NETWORKS: "spiderpool/gpu1-sriov,spiderpool/gpu2-sriov"}
INJECTED = {RDMA_INJECT: "rails"}


def job(**changes: Any) -> RailWorkload:
    """A job that names its networks and asks for their devices."""
    limits = changes.pop("limits", DEVICES)
    found = RailWorkload("Job", "ml", "train", "", NAMED, {}, (RailContainer("main", limits),))
    return replace(found, **changes)


def workloads(*entries: RailWorkload) -> rails.EditCluster:
    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        return replace(found, subsets=(*found.subsets, "workloads"), rail_workloads=entries)

    return edited


def asked_for(found: ClusterSnapshot) -> ClusterSnapshot:
    """Both configs are found by the webhook."""
    configs = [replace(entry, annotations={RDMA_INJECT: "rails"}) for entry in found.multus_configs or ()]
    return replace(found, multus_configs=tuple(configs))


def look(*answers: str, **changes: Any) -> rails.EditCluster:
    """One pod whose predicates pass but for these: ``P7 fail: what it says``."""
    held = {"P%d" % number: PodAnswer("P%d" % number, "pass") for number in range(1, 15)}
    held["P12"] = PodAnswer("P12", "skip", "The pod has no InfiniBand device.")
    for answer in answers:
        words, _colon, message = answer.partition(": ")
        number, status = words.split()
        held[number] = PodAnswer(number, status, message)
    found = replace(PodLook("ml", "tools-a", "sick", answers=tuple(held.values())), **changes)
    return rails.set_fields(pod_looks=(found,))


def refused(source: str) -> rails.EditCluster:
    def edited(found: ClusterSnapshot) -> ClusterSnapshot:
        return replace(
            found,
            subsets=(*found.subsets, "workloads"),
            rail_workloads=None,
            errors=(ReadError(source, "User cannot list them"),),
        )

    return edited


SILENT = "The container tools does not run: the pod is Pending."

CASES = [
    # 006: S119, S230
    of_cluster(
        "006",
        "fail",
        "no policy makes spidernet.io/gpu1rdma",
        "resource that nobody makes",
        workloads(job(limits={"spidernet.io/gpu1rdma": "1"})),
    ),
    of_cluster(
        "006",
        "fail",
        "openshift.io/gpu1sriov has another prefix than the operator gives",
        "resource with another prefix",
        workloads(job(limits={"openshift.io/gpu1sriov": "1"})),
    ),
    of_cluster("006", "pass", "2 workloads", "healthy workloads", workloads(job(), job(name="other"))),
    of_cluster(
        "006", "pass", "1 workloads", "resource of others", workloads(job(limits={"nvidia.com/gpu": "8"}))
    ),
    of_cluster("006", "skip", "No workload asks for", "no workload", workloads()),
    of_cluster("006", "skip", "was not asked for", "subset not read"),
    of_cluster(
        "006",
        "unknown",
        "User cannot list them",
        "workloads are not readable",
        refused("deployments.apps"),
        also="SRIOV-013 unknown",
    ),
    of_cluster(
        "006",
        "unknown",
        "not allowed",
        "policies are not readable",
        both(
            workloads(job()), unread("sriov_policies", "sriovnetworknodepolicies.sriovnetwork.openshift.io")
        ),
        also="SRIOV-001 unknown SRIOV-007 unknown SRIOV-008 unknown SRIOV-009 unknown SRIOV-011 unknown "
        "SRIOV-012 unknown SRIOV-019 unknown SRIOV-021 unknown SRIOV-022 unknown SRIOV-023 unknown",
    ),
    # 013: S159-S167
    of_cluster(
        "013",
        "fail",
        "the webhook replaces k8s.v1.cni.cncf.io/networks",
        "injection beside own networks",
        both(asked_for, workloads(job(annotations={**NAMED, **INJECTED}, limits={}))),
    ),
    of_cluster(
        "013",
        "fail",
        "ipam.spidernet.io/ippools overrides the pools of the networks",
        "injection beside own pools",
        both(asked_for, workloads(job(annotations={**INJECTED, POOL_ANNOTATIONS[0]: "[]"}, limits={}))),
    ),
    of_cluster(
        "013",
        "fail",
        "no SpiderMultusConfig has cni.spidernet.io/rdma-resource-inject: 'trails'",
        "injection that nothing answers",
        both(asked_for, workloads(job(annotations={RDMA_INJECT: "trails"}, limits={}))),
    ),
    of_cluster(
        "013",
        "warn",
        "the webhook passes over namespace kube-system",
        "injection in a namespace that is passed over",
        both(asked_for, workloads(job(namespace="kube-system", annotations=INJECTED, limits={}))),
    ),
    of_cluster(
        "013",
        "warn",
        "only the first acts",
        "both ways of injection",
        both(asked_for, workloads(job(annotations={**INJECTED, NETWORK_INJECT: "rails"}, limits={}))),
    ),
    of_cluster(
        "013",
        "fail",
        "the webhook replaces",
        "the namespace asks for injection",
        both(asked_for, workloads(job(namespace_annotations=INJECTED))),
    ),
    of_cluster(
        "013",
        "pass",
        "1 workloads",
        "injection alone",
        both(asked_for, workloads(job(annotations=INJECTED, limits={}))),
    ),
    of_cluster(
        "013",
        "pass",
        "1 workloads",
        "a pod with what the webhook wrote",
        both(asked_for, workloads(job(of_kind="Pod", annotations={**NAMED, **INJECTED}))),
    ),
    of_cluster("013", "pass", "1 workloads", "own networks alone", workloads(job())),
    of_cluster(
        "013",
        "unknown",
        "not allowed",
        "networks are not readable",
        both(
            workloads(job(annotations=INJECTED)),
            unread("multus_configs", "spidermultusconfigs.spiderpool.spidernet.io"),
        ),
        also="SRIOV-001 unknown SRIOV-002 unknown SRIOV-009 unknown SRIOV-010 unknown SRIOV-011 unknown "
        "SRIOV-012 unknown SRIOV-015 unknown",
    ),
    of_cluster("013", "skip", "was not asked for", "subset not read for annotations"),
    # 020: S135, S137, S139, S143
    of_cluster(
        "020",
        "fail",
        "P9: mlx5_7: its file 231:192 is not in the container",
        "device file of another device",
        look("P9 fail: mlx5_7: its file 231:192 is not in the container."),
    ),
    of_cluster(
        "020",
        "unknown",
        "is privileged and sees every device file",
        "a privileged pod",
        look(privileged=True),
    ),
    of_cluster(
        "020",
        "fail",
        "P13: mlx5_7",
        "a privileged pod that sees nothing",
        look("P13 fail: mlx5_7: not found.", privileged=True),
    ),
    of_cluster(
        "020",
        "unknown",
        "The image has no program ls",
        "image without tools",
        look("P9 unknown: The image has no program ls."),
    ),
    of_cluster("020", "pass", "1 pods", "healthy devices in a pod", look()),
    of_cluster("020", "skip", "No running pod was looked into", "no pod was looked into"),
    of_cluster(
        "020",
        "unknown",
        "the pod is Pending",
        "a pod that does not run",
        look(answers=(), reason=SILENT),
        also="SRIOV-024 unknown SRIOV-025 unknown",
    ),
    # 024: S126-S132, S138, S140-S142
    of_cluster(
        "024",
        "fail",
        "P3: net2: no rule leads traffic from 172.16.12.10/24 into a table",
        "rule missing in a pod",
        look("P3 fail: net2: no rule leads traffic from 172.16.12.10/24 into a table."),
    ),
    of_cluster("024", "warn", "P2: net1", "odd broadcast address in a pod", look("P2 warn: net1: odd.")),
    of_cluster(
        "024",
        "unknown",
        "P4: The pool",
        "pools not readable for a pod",
        look("P4 unknown: The pool is not known."),
    ),
    of_cluster("024", "pass", "1 pods", "healthy networks in a pod", look()),
    # 025: S144
    of_cluster(
        "025",
        "fail",
        "ml/tools-a to ml/tools-b on net3",
        "a rail between pods fails",
        look("P14 fail: ml/tools-a to ml/tools-b on net3: ib_read_lat ended with code 1."),
    ),
    of_cluster("025", "pass", "1 pods", "pods reach each other", look("P14 pass: Rails: net1, net2.")),
    of_cluster(
        "025",
        "skip",
        "No traffic between pods was tried",
        "pods without a test",
        look("P14 skip: Not tried."),
    ),
    of_cluster(
        "025",
        "unknown",
        "no pod on another node",
        "a pod alone on its rail",
        look("P14 unknown: net1: no pod on another node has this rail."),
    ),
]
