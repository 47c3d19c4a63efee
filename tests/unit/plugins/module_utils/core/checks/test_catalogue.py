# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of the catalogue against a faulty node, a healthy one, and one that cannot tell or need not be asked.

The cases stand in ``cases/``, one file an area. Each says all checks that its fault touches, so a check that fires
without a reason fails a test here just as one that stays silent does (B12).
"""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, judge
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import CATALOGUE
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import FLEET
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import SURROUNDINGS, Case, not_good
from ansible_collections.rdma.k8s.tests.support.detection import (
    CASES,
    FAULTS,
    alarms_of,
    healthy_results,
    inject_all,
    judge_healthy,
)

_DOCUMENTS: dict[str, ResultDocument] = {}

# What a healthy node does not have, or what the settings of SURROUNDINGS do not ask for.
SKIPPED = {
    "RDMA-OCA-008",  # no agent_version given
    "RDMA-TOOL-002",  # no max_age given
    "RDMA-NODE-019",  # no virtual function on the host
} | {
    "RDMA-NODE-%03d" % number for number in (4, 5, 7, 8, 20, 21, 22, 23, 24, 26, 27, 30)
}  # the subset slow is not read
WITHOUT_FEATURES_FILE = {"RDMA-OCA-006"}
WITH_FEATURES_FILE = {"RDMA-OCA-007"}
WITHOUT_NETWORK_FILE = {"RDMA-OCA-002", "RDMA-OCA-003", "RDMA-OCA-004", "RDMA-OCA-005"}
WITHOUT_PLACES = {"RDMA-NODE-011"}
WITHOUT_FABRIC = {"RDMA-NODE-014", "RDMA-IMDS-006"}
WITHOUT_MTU = {"RDMA-NODE-017"}
NO_IPV4 = {
    check for check, entry in CATALOGUE.items() if check.startswith("RDMA-RANGE-") and not entry.cluster
} | {
    "RDMA-OCA-007",
    "RDMA-OCA-012",
    "RDMA-OCA-015",
}
IPV6 = {"RDMA-NODE-036"}
INFINIBAND = {
    "RDMA-NODE-012",
    "RDMA-NODE-017",
    "RDMA-NODE-018",
    "RDMA-NODE-028",
    "RDMA-NODE-029",
    "RDMA-IMDS-006",
}


def expected_skips(shape: str, features_file: bool = True, network_file: bool = False) -> set[str]:
    """The checks that are skipped on a healthy node of a shape: all of them, by name."""
    model = fleet.MODELS[shape]
    skipped = set(SKIPPED)
    skipped |= WITH_FEATURES_FILE if features_file else WITHOUT_FEATURES_FILE
    if not network_file:
        skipped |= WITHOUT_NETWORK_FILE
    entry = shapes.lookup(shape, shapes.DEFAULT_TABLE)
    for known, checks in (
        (entry.pci, WITHOUT_PLACES),
        (entry.fabric, WITHOUT_FABRIC),
        (entry.mtu, WITHOUT_MTU),
    ):
        if not known:
            skipped |= checks
    if model.fabric != "ipv4":
        skipped |= NO_IPV4
    if model.fabric == "ipv6":
        skipped |= IPV6
    if model.fabric == "infiniband":
        skipped |= INFINIBAND
    return skipped


def judged(case: Case) -> ResultDocument:
    """The result of a case, made once for all tests that look at it."""
    if case.name not in _DOCUMENTS:
        _DOCUMENTS[case.name] = case.judge()
    return _DOCUMENTS[case.name]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_check_says_what_it_must(case: Case) -> None:
    document = judged(case)
    found = [
        finding for finding in document.findings if (finding.check, finding.node) == (case.check, case.node)
    ]
    assert len(found) == 1
    assert found[0].status == case.status, found[0].message
    assert case.message in found[0].message
    if case.is_fault:
        assert found[0].expected or found[0].details, "a fault names what was expected"
        assert CATALOGUE[case.check].info.hint, "a fault names what to do"
    if case.status in ("skip", "unknown"):
        assert found[0].message, "a reason is given"


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_no_other_check_raises_its_voice(case: Case) -> None:
    assert not_good(judged(case), case.node) == case.expected


@pytest.mark.parametrize("check", sorted(CATALOGUE))
def test_every_check_has_its_cases(check: str) -> None:
    statuses = {case.status for case in CASES if case.check == check}
    assert statuses & {"fail", "warn"}, "a faulty fixture"
    assert "pass" in statuses or check in passing_on_a_healthy_node(), "a clean fixture that passes"


def passing_on_a_healthy_node() -> set[str]:
    return {finding.check for finding in judge_healthy("BM.GPU.H100.8").findings if finding.status == "pass"}


def test_no_case_is_for_a_check_that_does_not_exist() -> None:
    assert {case.check for case in CASES} <= set(CATALOGUE)
    assert len({case.name for case in CASES}) == len(CASES)


def test_time_to_detect() -> None:
    """B12: at least 40 faults, all found, no alarm that no fault explains."""
    detections = inject_all()
    assert len(detections) >= 40
    assert [detection.case.name for detection in detections if not detection.found] == []
    assert [detection.false_alarms for detection in detections if detection.false_alarms] == []
    assert [
        (shape, alarms_of(document)) for shape, document in healthy_results() if alarms_of(document)
    ] == []


def test_the_faults_cover_the_bugs_that_were_reported() -> None:
    """Public bug reports in the field whose verdict we owe, by the check that gives it."""
    owed = {
        "DEV-01": "RDMA-NODE-003",
        "DEV-02": "RDMA-DRA-017",
        "DEV-03": "RDMA-DRA-017",
        "DEV-04": "RDMA-NODE-013",
        "DEV-05": "RDMA-NODE-033",
        "DEV-06": "RDMA-NODE-032",
        "DEV-08": "RDMA-NODE-036",
        "DEV-10": "RDMA-OCA-009",
        "DEV-12": "RDMA-OCA-008",
        "DEV-13": "RDMA-NODE-001",
        "DEV-15": "RDMA-NODE-031",
        "DEV-16": "RDMA-NODE-014",
        "DEV-20": "RDMA-NODE-019",
        "DEV-34": "RDMA-OCA-015",
        "DEV-35": "RDMA-NODE-007",
        "DEV-36": "RDMA-NODE-008",
    }
    assert set(owed.values()) <= {case.check for case in FAULTS}


@pytest.mark.parametrize("shape", sorted(fleet.MODELS))
@pytest.mark.parametrize("features_file", [True, False])
def test_a_healthy_fleet_gives_no_alarm(shape: str, features_file: bool) -> None:
    """Not one fail, warn or unknown over the whole catalogue, and exactly the known skips."""
    document = judge_healthy(shape, features_file)
    for name in [row.name for row in document.nodes]:
        assert not_good(document, name) == {}
        skipped = {
            finding.check for finding in document.findings if (finding.node, finding.status) == (name, "skip")
        }
        assert skipped == expected_skips(shape, features_file)
    assert not_good(document, FLEET) == {}
    assert document.exit_code == 0


@pytest.mark.parametrize("shape", ["BM.GPU.H100.8", "BM.Optimized3.36"])
def test_a_healthy_fleet_in_another_oca_network(shape: str) -> None:
    """F51, F131: the network comes from the file; every check reads it from there."""
    subnet = "10.140.64.0/19" if shape == "BM.GPU.H100.8" else "10.0.2.0/24"
    network = "10.64.0.0/12" if shape == "BM.GPU.H100.8" else fleet.LEGACY_NETWORK
    settings = {**SURROUNDINGS, "vcn_cidrs": ["10.0.0.0/16", fleet.VCN_CIDR]}
    nodes = [fleet.node(shape, number, subnet=subnet, oca_network=network) for number in range(3)]
    inputs = [NodeInput(entry.name, entry) for entry in nodes]
    document = judge(inputs, Policy.from_dict(settings), fleet.JUDGED_AT)
    for name in [row.name for row in document.nodes]:
        assert not_good(document, name) == {}
        skipped = {
            finding.check for finding in document.findings if (finding.node, finding.status) == (name, "skip")
        }
        assert skipped == expected_skips(shape, network_file=True)


def test_the_models_agree_with_the_shape_table() -> None:
    """F128, F129: what the fixtures know of a shape was written down apart from the table."""
    for shape, model in fleet.MODELS.items():
        entry = shapes.lookup(shape, shapes.DEFAULT_TABLE)
        assert entry is not None, shape
        assert entry.rdma_nics == len(model.devices), shape
        assert entry.fabric in ("", model.fabric), shape
        if entry.pci:
            assert tuple(entry.pci) == model.places, shape


def test_the_reference_node_of_the_facts() -> None:
    """F15: 10.140.77.19 in 10.140.64.0/19 has these parents and children."""
    document = judge_healthy("BM.GPU.H100.8")
    nics = {nic.index: nic for nic in document.nodes[0].nics}
    for index, parent, child in (
        (0, "10.224.13.19", "10.208.13.19"),
        (1, "10.224.45.19", "10.208.45.19"),
        (7, "10.224.237.19", "10.208.237.19"),
        (8, "10.225.13.19", "10.209.13.19"),
        (15, "10.225.237.19", "10.209.237.19"),
    ):
        assert (nics[index].parent, nics[index].observed, nics[index].child) == (parent, parent, child)


def test_a_snapshot_survives_its_json_form() -> None:
    for shape in fleet.MODELS:
        snapshot = fleet.node(shape)
        assert NodeSnapshot.from_dict(snapshot.to_dict()) == snapshot
        assert NodeSnapshot.from_dict(snapshot.to_dict(compact=True)) == snapshot
