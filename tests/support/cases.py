# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a case of the check catalogue is: a healthy fleet, one edit, and exactly what the judgement must say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet

SICK = "sick"
"""Name of the node that the edit of a case changes; the others of its fleet are healthy."""

H100 = "BM.GPU.H100.8"
GB200_IB = "BM.GPU.GB200.4"
GB200_V3 = "BM.GPU.GB200-v3.4"
OPTIMIZED = "BM.Optimized3.36"

SURROUNDINGS: dict[str, Any] = {
    "vcn_cidrs": [fleet.VCN_CIDR],
    "pod_cidrs": [fleet.POD_CIDR],
    "service_cidrs": [fleet.SERVICE_CIDR],
}
"""The settings that a user of a stock cluster gives."""


@dataclass(frozen=True)
class Case:
    """One way in which a node can be wrong (or cannot tell, or need not be asked).

    :param check: the check that must notice, with ``status`` and a finding whose message contains ``message``.
    :param title: what was done to the node, for the table of faults.
    :param edit: makes the sick node from a healthy one.
    :param also: the other checks that the same edit makes fail, warn or unknown, with their status: all of them.
    :param settings: policy settings beside :data:`SURROUNDINGS`.
    :param inputs: the whole fleet, for cases that are not one edit of one node.
    :param cluster: makes the snapshot of the cluster, for cases that need one.
    :param node: the node (or ``(fleet)``, or the name of the cluster) whose finding is meant.
    """

    check: str
    status: str
    message: str
    title: str
    edit: Optional[Callable[[NodeSnapshot], NodeSnapshot]] = None
    also: str = ""
    shape: str = H100
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: Optional[Callable[[], Sequence[NodeInput]]] = None
    node: str = SICK
    child_range: str = ""
    features_file: bool = True
    cluster: Optional[Callable[[], ClusterSnapshot]] = None

    @property
    def name(self) -> str:
        """A name for test reports."""
        return "%s-%s-%s" % (self.check[5:], self.status, self.title.replace(" ", "_"))

    @property
    def is_fault(self) -> bool:
        """Whether the case is something wrong on a node that must be noticed."""
        return self.status in ("fail", "warn")

    @property
    def expected(self) -> dict[str, str]:
        """All checks that must not pass on the node, with their status."""
        words = self.also.split()
        found = {"RDMA-" + check: status for check, status in zip(words[::2], words[1::2])}
        if self.status in ("fail", "warn", "unknown"):
            found[self.check] = self.status
        return found

    def fleet(self) -> list[NodeInput]:
        """The nodes of the case: the sick one and two healthy ones of the same shape and subnet."""
        if self.inputs is not None:
            return list(self.inputs())
        sick = fleet.node(self.shape, 0, SICK, features_file=self.features_file)
        nodes = [self.edit(sick) if self.edit is not None else sick]
        nodes += [fleet.node(self.shape, number, features_file=self.features_file) for number in (1, 2)]
        return [
            NodeInput(node.name, node, child_range=self.child_range if node.name == SICK else "")
            for node in nodes
        ]

    def judge(self) -> ResultDocument:
        """The whole catalogue over the case's fleet."""
        policy = Policy.from_dict({**SURROUNDINGS, **self.settings})
        cluster = self.cluster() if self.cluster is not None else None
        return judge(self.fleet(), policy, fleet.JUDGED_AT, cluster=cluster)


def not_good(document: ResultDocument, node: str) -> dict[str, str]:
    """Checks of a node that fail, warn or cannot tell, by id."""
    return {
        finding.check: finding.status
        for finding in document.findings
        if finding.node == node and finding.status in ("fail", "warn", "unknown")
    }
