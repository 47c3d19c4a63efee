# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a node tells, the judgement ends with one result per check and node, or the snapshot is refused before."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import AREA_TARGETS, CATALOGUE
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import STATUSES
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import SURROUNDINGS

POLICY = Policy.from_dict({**SURROUNDINGS, "agent_version": "1.39.0", "max_age": 600})
SHAPES = ["BM.GPU.H100.8", "BM.GPU.GB200.4", "BM.GPU.GB200-v3.4", "BM.Optimized3.36"]
DOCUMENTS = {shape: fleet.node(shape, name="sick").to_dict() for shape in SHAPES}
NEIGHBOURS = {shape: fleet.node(shape, 1) for shape in SHAPES}

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=12),
    st.sampled_from(
        [
            "rdma99999999999",
            "rdma07",
            "10.224.13.19/12",
            "10.0.0.0/33",
            "::/0",
            "0.0.0.0/0",
            "fe80::1%eth0",
            "[" * 3000,
            '{"state": NaN}',
            "default dev rdma0",
            "0: from all lookup 103",
            "0v1 10.0.0.1",
            "\ud800",
        ]
    ),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just([{}]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, entry in value.items():
            found += places(entry, (*path, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            found += places(entry, (*path, number))
    return found


PLACES = {shape: places(document) for shape, document in DOCUMENTS.items()}


def put(document: Any, path: tuple[Any, ...], value: Any, remove: bool) -> None:
    for key in path[:-1]:
        document = document[key] if isinstance(document, (dict, list)) and _has(document, key) else None
    if isinstance(document, (dict, list)) and _has(document, path[-1]):
        if remove:
            del document[path[-1]]
        else:
            document[path[-1]] = value


def _has(document: Any, key: Any) -> bool:
    return key in document if isinstance(document, dict) else isinstance(key, int) and key < len(document)


def check_is_complete(document: ResultDocument) -> None:
    per_node = [
        check
        for check, entry in CATALOGUE.items()
        if entry.scope in ("node", "fleet") and not entry.proof and not entry.cluster and _is_of(check)
    ]
    found = sorted([finding.check for finding in document.findings if finding.node == "sick"])
    assert found == sorted(per_node)
    assert {finding.status for finding in document.findings} <= set(STATUSES)
    assert ResultDocument.from_dict(document.to_dict()) == document


def _is_of(check: str) -> bool:
    return "oke_dranet" in AREA_TARGETS.get(check.split("-")[1], ("oke_dranet",))


@given(data=st.data())
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_a_mangled_snapshot_is_refused_or_judged(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    document = copy.deepcopy(DOCUMENTS[shape])
    for _number in range(data.draw(st.integers(1, 6))):
        put(document, data.draw(st.sampled_from(PLACES[shape])), data.draw(JUNK), data.draw(st.booleans()))
    try:
        snapshot = NodeSnapshot.from_dict(document)
    except RdmaError:
        return
    if snapshot.name != "sick":
        return
    inputs = [NodeInput("sick", snapshot), NodeInput("node-001", NEIGHBOURS[shape])]
    check_is_complete(judge(inputs, POLICY, fleet.JUDGED_AT))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "field", [key for key in DOCUMENTS["BM.GPU.H100.8"] if key not in ("schema_version", "name")]
)
def test_no_part_of_a_snapshot_is_taken_for_granted(shape: str, field: str) -> None:
    """Without any one part the judgement still ends, and it never calls the node good because of it."""
    document = {key: value for key, value in DOCUMENTS[shape].items() if key != field}
    snapshot = NodeSnapshot.from_dict(document)
    check_is_complete(judge([NodeInput("sick", snapshot)], POLICY, fleet.JUDGED_AT))


@pytest.mark.parametrize("field", ["rdma", "host", "collector", "modules", "errors", "subsets"])
def test_null_is_refused_where_it_would_not_mean_unknown(field: str) -> None:
    with pytest.raises(RdmaError, match="snapshot.%s must be" % field):
        NodeSnapshot.from_dict({"name": "sick", field: None})


def test_a_node_that_told_nothing_is_unknown_in_everything_that_it_should_have_told() -> None:
    """An empty snapshot passes nothing by being empty."""
    document = judge([NodeInput("sick", NodeSnapshot(name="sick"))], POLICY, fleet.JUDGED_AT)
    statuses = {finding.check: finding.status for finding in document.findings if finding.node == "sick"}
    passed = {check for check, status in statuses.items() if status == "pass"}
    # What follows from the settings alone, and the consistency of a fleet of one.
    assert passed == {
        "RDMA-RANGE-001",
        "RDMA-RANGE-002",
        "RDMA-RANGE-007",
        "RDMA-RANGE-008",
        "RDMA-RANGE-009",
    }
    assert [check for check, status in statuses.items() if status in ("fail", "warn")] == []
