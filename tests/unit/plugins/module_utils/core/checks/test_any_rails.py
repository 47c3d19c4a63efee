# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever the objects of a cluster are, the area SRIOV ends with one result per check, or the snapshot is refused."""

from __future__ import annotations

import copy
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import CATALOGUE
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import fleet, rails

from .test_any_snapshot import JUNK, places, put

POLICY = Policy.from_dict({"target": "spiderpool_sriov", "netns_mode": "exclusive", "only": ["RDMA-SRIOV-*"]})
NAMES = ("node-000", "node-001")
NODES = [NodeInput(name, rails.node(number, name)) for number, name in enumerate(NAMES)]
DOCUMENT = rails.cluster(*NAMES).to_dict()
OBJECTS = [field for field in DOCUMENT if isinstance(DOCUMENT[field], list)]
PLACES = [path for path in places(DOCUMENT) if path[0] in OBJECTS]
CHECKS = {check: entry.scope for check, entry in CATALOGUE.items() if check.startswith("RDMA-SRIOV-")}


def statuses(cluster: ClusterSnapshot, inputs: list[NodeInput]) -> dict[tuple[str, str], str]:
    document = judge(inputs, POLICY, fleet.JUDGED_AT, cluster=cluster)
    found = {(finding.check, finding.node): finding.status for finding in document.findings}
    assert len(found) == len(document.findings)
    wanted = sum([len(inputs) if scope == "fleet" else 1 for scope in CHECKS.values()])
    assert len(found) == wanted
    return found


@given(data=st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_mangled_objects_are_refused_or_judged(data: st.DataObject) -> None:
    document = copy.deepcopy(DOCUMENT)
    for _number in range(data.draw(st.integers(1, 6))):
        put(document, data.draw(st.sampled_from(PLACES)), data.draw(JUNK), data.draw(st.booleans()))
    try:
        cluster = ClusterSnapshot.from_dict(document)
    except RdmaError:
        return
    statuses(cluster, NODES)


@pytest.mark.parametrize("field", OBJECTS)
def test_no_part_is_taken_for_granted(field: str) -> None:
    """What was not read makes no check pass that looks at it, and none fail."""
    cluster = ClusterSnapshot.from_dict({key: value for key, value in DOCUMENT.items() if key != field})
    found = statuses(cluster, NODES)
    assert {status for status in found.values() if status in ("fail", "warn")} == set()


def test_an_empty_cluster_passes_nothing() -> None:
    found = statuses(ClusterSnapshot(name="rails"), NODES)
    told = {check: status for (check, _row), status in found.items()}
    on_demand = {"RDMA-SRIOV-%03d" % number for number in (6, 13, 20, 24, 25)}
    assert {told.pop(check) for check in on_demand} == {"skip"}
    assert set(told.values()) == {"unknown"}


def test_a_thousand_nodes_in_two_seconds() -> None:
    cluster = rails.cluster(*["n%04d" % number for number in range(1000)])
    start = time.process_time()
    found = statuses(cluster, [])
    most = 2 if sys.gettrace() is None else 10  # each line is counted when the coverage is measured
    assert time.process_time() - start < most
    assert found["RDMA-SRIOV-023", "rails"] == "pass"
