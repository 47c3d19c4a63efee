# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vector files, case by case, and the runner that judges them."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.vectors import run

VECTORS = Path(run.__file__).parent
FILE = VECTORS / "oke_child_range.json"
DOCUMENT = json.loads(FILE.read_text(encoding="utf-8"))
CASES = DOCUMENT["cases"]


def with_cases(*cases: Any, **schema: Any) -> Any:
    """A vector file with these cases, and changes of its schema."""
    return {**DOCUMENT, "schema": {**DOCUMENT["schema"], **schema}, "cases": list(cases)}


def case(**changes: Any) -> Any:
    """A case that passes, with changes."""
    return {**copy.deepcopy(CASES[0]), **changes}


def written(tmp_path: Path, document: Any) -> str:
    """The path of a vector file."""
    path = tmp_path / "vectors.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: ascii(CASES[number]["name"]))
def test_the_core_gives_the_right_answer(number: int) -> None:
    """F13 to F147: all operations of the vector file."""
    assert run.run_case(run.oke, DOCUMENT, CASES[number]) == []


def test_every_operation_and_kind_of_the_file_is_known() -> None:
    """No operation lacks an adapter, and every operation has cases."""
    schema = DOCUMENT["schema"]
    assert set(schema["ops"]) == set(run.oke.OPERATIONS) == {entry["op"] for entry in CASES}


def test_the_constants_of_the_file_are_those_of_the_core() -> None:
    """F5 to F12."""
    found = run.oke.constants
    assert {
        "profile": found.PROFILE,
        "default_oca_network": str(found.DEFAULT_OCA_NETWORK),
        "default_child_range": str(found.DEFAULT_CHILD_RANGE),
        "max_nics": found.MAX_NICS,
        "table_base": found.TABLE_BASE,
        "rule_priority": found.RULE_PRIORITY,
        "scope_link": found.SCOPE_LINK,
        "min_prefix_len": found.MIN_LENGTH,
        "max_prefix_len": found.MAX_LENGTH,
        "reserved_ranges": [str(entry) for entry in found.RESERVED_RANGES],
        "arphrd_ethernet": found.ARPHRD_ETHERNET,
        "arphrd_infiniband": found.ARPHRD_INFINIBAND,
    } == DOCUMENT["schema"]["constants"]


def test_the_runner_passes_the_file_without_anything_installed() -> None:
    """The command itself, isolated from the packages of this environment."""
    command = [sys.executable, "-I", "-S", str(VECTORS / "run.py"), str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "%d passed, 0 failed\n" % len(CASES), "")


def broken(name: str, **expect: Any) -> Any:
    """A case of the file with another expectation."""
    found = next(entry for entry in CASES if entry["name"] == name)
    return {**found, "expect": expect}


WRONG = [
    case(expect={**CASES[0]["expect"], "table": 101}),
    case(expect={**CASES[0]["expect"], "offset": 3347.0}),
    case(expect={}),
    case(expect={"error": "vnic_missing"}),
    broken("error VNIC unknown", error="vnic_not_ipv4"),
    broken("error VNIC unknown", parent="10.0.0.1"),
    broken("error index 16 also where it would fit", error="nic_index_too_large", details={"nic_index": 15}),
    broken("error index 16 also where it would fit", error="nic_index_too_large", details={"other": 1}),
    broken("pod state without a route", problems=[]),
    broken(
        "oca load: both unusable", oca_network="10.224.0.0/12", address_mode=None, warnings=["oca_no_entries"]
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda entry: ascii(entry["name"]))
def test_a_wrong_answer_fails(wrong: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The runner can fail, prints name, expected and got, and ends with 1."""
    assert run.main([written(tmp_path, with_cases(case(name="good"), wrong))]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(wrong["name"])
    assert any("expected" in line for line in lines[1:-1]) or "neither exposed" in lines[1]
    assert lines[-1] == "1 passed, 1 failed"


VNIC = {"ip": "10.140.77.19", "subnet": "10.140.64.0/19"}
LEAN = {
    "null defaults": (
        "derive_child",
        {"vnic": VNIC, "nic_index": 0, "oca_network": None, "child_range": None},
        CASES[0]["expect"],
    ),
    "no members of a VNIC (F25)": ("derive_parent", {"vnic": {}, "nic_index": 0}, {"error": "vnic_not_ipv4"}),
    "no subnet of a VNIC (F25)": (
        "invert_index",
        {"vnic": {"ip": "10.140.77.19"}, "address": "10.224.13.19"},
        {"error": "vnic_not_ipv4"},
    ),
    "an interface without a readable type (F33)": (
        "identify_rdma_nics",
        {"interfaces": {"rdma0": {}, "rdma1": {"arphrd": 1, "addresses": None}}},
        {"address_fallback": False, "rdma_nics": ["rdma1"]},
    ),
    "unreadable link layers (F81)": (
        "native_ib_guard",
        {
            "device": {
                "pci_address": "0000:0c:00.0",
                "infiniband": [
                    {"name": "mlx5_0"},
                    {"name": "mlx5_1", "link_layers": [None]},
                    {"name": "mlx5_2", "link_layers": [None, "InfiniBand\n"]},
                ],
            },
            "netns_mode": None,
        },
        {"native_infiniband": "mlx5_2"},
    ),
    "no list of addresses (F35)": (
        "check_parent_address",
        {"interface": "rdma0", "addresses": None, "expected": "10.224.13.19"},
        {"error": "parent_address_missing"},
    ),
    "no members of a read (F68)": (
        "merge_metadata",
        {"current": {"rackId": "r1"}, "next": {"shape": None, "rackId": None}},
        {
            "merged": {
                **dict.fromkeys(run.oke.METADATA, ""),
                "rackId": "r1",
                "rdmaFabric": None,
                "primaryVnic": None,
            }
        },
    ),
    "no list of options (F95)": (
        "parse_options",
        {"flags": None, "hint": None, "discovered": None},
        {"child_range": "10.208.0.0/12", "ignored": False},
    ),
}


@pytest.mark.parametrize("name", LEAN)
def test_null_and_absent_members_are_the_same(name: str) -> None:
    """The input of a case may leave out what is null (F46, F52, F69)."""
    op, given, expect = LEAN[name]
    assert run.run_case(run.oke, DOCUMENT, case(op=op, input=given, expect=expect)) == []


RESOLVE = next(entry["input"] for entry in CASES if entry["op"] == "resolve_profile")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"metadata": {}}, "fabric_not_available"),
        ({"metadata": {"fabric": {"ipv6": False, "planes": 1}}}, "vnic_not_available"),
        ({"device": {}}, "no_pci_address"),
        ({"device": {"pci_address": "0000:0c:00.0"}}, "pci_net_unreadable"),
    ],
)
def test_a_resolution_takes_absent_members_for_null(changes: dict[str, Any], error: str) -> None:
    """Steps 5, 7 and 9 of F31."""
    entry = case(op="resolve_profile", input={**RESOLVE, **changes}, expect={"error": error})
    assert run.run_case(run.oke, DOCUMENT, entry) == []


@pytest.mark.parametrize("files", [None, {}])
def test_no_files_of_oca_leave_the_mode_unknown(files: Any) -> None:
    """F54, F142: then the whole host is checked."""
    interfaces = {**RESOLVE["interfaces"], "rdma1": {"arphrd": 1, "addresses": ["10.224.77.19/12"]}}
    entry = case(
        op="resolve_profile",
        input={**RESOLVE, "interfaces": interfaces, "oca": files},
        expect={"error": "layout_mismatch", "details": {"interface": "rdma1"}},
    )
    assert run.run_case(run.oke, DOCUMENT, entry) == []


def test_a_crash_of_the_core_fails_the_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An exception that is no typed error is a failure, not the end of the run."""
    bad = case(
        name="bad", input={"vnic": {"ip": "10.140.77.19", "subnet": "10.140.64.0/19"}, "nic_index": "0"}
    )
    assert run.main([written(tmp_path, with_cases(bad, case()))]) == 1
    out = capsys.readouterr().out
    assert "crashed: TypeError" in out
    assert out.endswith("1 passed, 1 failed\n")


UNJUDGED = {
    "unknown operation": case(op="fly"),
    "operation that the file does not list": (case(), {"ops": {"derive_parent": {}}}),
    "no operation": {key: value for key, value in case().items() if key != "op"},
    "operation of a wrong type": case(op=["derive_child"]),
    "no input": {key: value for key, value in case().items() if key != "input"},
    "input of a wrong type": case(input=[]),
    "input without a member": case(input={"nic_index": 0}),
    "no expectation": {key: value for key, value in case().items() if key != "expect"},
    "expectation of a wrong type": case(expect=None),
    "unknown error": case(expect={"error": "no_such_kind"}),
    "error of a wrong type": case(expect={"error": None}),
    "unknown problem": case(expect={"problems": ["vnic_missing"]}),
    "problems of a wrong type": case(expect={"problems": 1}),
    "unknown warning": case(expect={"warnings": ["pod_rule_table"]}),
    "a result next to an error": case(expect={"error": "vnic_missing", "table": 100}),
    "details of a wrong type": case(expect={"error": "vnic_missing", "details": []}),
    "no name": {key: value for key, value in case().items() if key != "name"},
    "no object": "derive_child",
}


@pytest.mark.parametrize("name", UNJUDGED)
def test_a_case_that_cannot_be_judged_ends_with_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never counted as passed."""
    entry, schema = UNJUDGED[name] if isinstance(UNJUDGED[name], tuple) else (UNJUDGED[name], {})
    assert run.main([written(tmp_path, with_cases(entry, **schema))]) == 2
    captured = capsys.readouterr()
    assert captured.out == "0 passed, 0 failed\n"
    assert "case 0: " in captured.err


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "cannot be read"),
        ("[" * 100000, "cannot be read"),
        ("[]", "not a vector file"),
        ({"schema": [], "cases": []}, "not a vector file"),
        ({"schema": {"ops": {"fly": {}}}, "cases": []}, "not a vector file"),
        ({"what": "Something else"}, "not a vector file"),
        (with_cases(), "no cases"),
        ({**with_cases(), "cases": {}}, "not a list"),
        (with_cases(case(), case()), "not unique"),
        (with_cases(case(), error_kinds=[]), "not a vector file"),
    ],
)
def test_a_file_that_cannot_be_judged_ends_with_2(
    document: Any, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never counted as passed; a good file beside it does not help."""
    assert run.main([written(tmp_path, document), str(FILE)]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert captured.out == "%d passed, 0 failed\n" % len(CASES)


def test_no_file_at_all_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was judged."""
    assert run.main([]) == 2
    assert run.main([str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().out == "0 passed, 0 failed\n" * 2


@pytest.mark.parametrize(
    ("message", "value", "expected"),
    [
        ("NIC index 8 of 10.192.0.0/16", 8, True),
        ("NIC index 18 of 10.192.0.0/16", 8, False),
        ("NIC index 8.", 8, True),
        ("address 8.8.8.8", 8, False),
        ("a /15 range", 15, True),
        ("a /150 range", 15, False),
        (
            "interface.arpIgnore and interface.arpAnnounce",
            ["interface.arpIgnore", "interface.arpAnnounce"],
            True,
        ),
        ("interface.arpIgnore", ["interface.arpIgnore", "interface.arpAnnounce"], False),
        ("an empty value stands in every message", "", False),
        ("an empty value stands in every message", [], False),
    ],
)
def test_what_a_message_names(message: str, value: Any, expected: bool) -> None:
    """A value must stand for itself in the message."""
    assert run.oke.names(message, value) is expected
