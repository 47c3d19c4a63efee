# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lossless RoCE needs: the wish, the map as text, what differs, the files for the next boot, the tool's output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import mlnx_qos, roce_qos, roce_unit
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roce_qos import PortQos

WISH = roce_qos.valid_wish(5, 6)
RIGHT = PortQos(
    "mlx5_0",
    1,
    "rdma0",
    "Ethernet",
    dcbx=9,
    trust="dscp",
    pfc=32,
    dscp_map="40:5 48:6",
    ecn_np=32,
    ecn_rp=255,
    cnp_dscp=48,
    cm_tos=160,
    cm_mode="RoCE v2",
    traffic_class=160,
)


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ((5, 6), []),
        ((0, 7), []),
        ((5, 6, 47, 48), []),  # S50: 8p to 8p+7
        ((5, 6, 48, 48), ["dscp-equal", "dscp-outside-priority"]),
        ((5, 6, 39), ["dscp-outside-priority"]),
        ((5, 6, None, 56), ["dscp-outside-priority"]),
        ((8, 6), ["priority-range"]),
        ((-1, 6), ["priority-range"]),
        ((5, 8), ["priority-range"]),
        ((7, 6, 64), ["dscp-outside-priority"]),
        ((3, 3), ["dscp-equal", "priority-equal"]),
        ((3, 3, 24, 25), ["priority-equal"]),
    ],
)
def test_a_wish_is_checked(given: tuple[int, ...], codes: list[str]) -> None:
    """S49, S50."""
    made, problems = roce_qos.wish(*given)
    assert [problem.code for problem in problems] == codes
    if not codes:
        assert roce_qos.valid_wish(*given) == made
        return
    with pytest.raises(RdmaError) as caught:
        roce_qos.valid_wish(*given)
    assert caught.value.code == "qos_values_refused"
    assert [problem["code"] for problem in caught.value.details["problems"]] == codes


@pytest.mark.parametrize(("dscp", "tos"), [(40, 160), (48, 192), (26, 104), (0, 0), (63, 252)])
def test_the_type_of_service(dscp: int, tos: int) -> None:
    """S51."""
    assert roce_qos.tos_of(dscp) == tos
    assert roce_qos.dscp_of(tos) == roce_qos.dscp_of(tos | 3) == dscp


def test_sets_of_priorities() -> None:
    """S52, S61."""
    assert (WISH.pfc, roce_qos.bits(WISH.pfc)) == (0x20, (0, 0, 0, 0, 0, 1, 0, 0))
    assert roce_qos.mask_of([0, 3, 7]) == 0x89
    assert (roce_qos.names(0x89), roce_qos.names(0)) == ("0, 3, 7", "none")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("40:5", {40: 5}),
        ("0-7:0 40:5 48:6", {**dict.fromkeys(range(8), 0), 40: 5, 48: 6}),
        ("0-1:3 2:4 63:7", {0: 3, 1: 3, 2: 4, 63: 7}),
    ],
)
def test_the_map_as_text(text: str, entries: dict[int, int]) -> None:
    assert roce_qos.write_map(entries) == text
    assert roce_qos.read_map(text) == entries


@pytest.mark.parametrize("text", ["40", "40:8", "64:1", "1-64:1", "a:b", "-1:2", "40:5:6", "40-:"])
def test_a_text_that_is_no_map(text: str) -> None:
    with pytest.raises(RdmaError, match="DSCP"):
        roce_qos.read_map(text)


def edited(**values: object) -> PortQos:
    return PortQos(**{**vars(RIGHT), **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ({}, []),
        ({"trust": "pcp"}, ["trust"]),
        ({"pfc": 0}, ["pfc"]),
        ({"pfc": 33}, ["pfc"]),
        ({"pfc": None}, ["pfc"]),
        ({"dscp_map": "40:4 48:6"}, ["dscp_40"]),
        ({"dscp_map": None}, ["dscp_40", "dscp_48"]),
        ({"dscp_map": "0-39:1 40:5 48:6"}, []),
    ],
)
def test_what_differs_in_dcb(values: dict[str, object], settings: list[str]) -> None:
    """S63, S65."""
    found = roce_qos.dcb_differences(WISH, edited(**values))
    assert [difference.setting for difference in found] == settings
    assert all(difference.message for difference in found)


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ({}, []),
        ({"ecn_np": 0xDF}, ["ecn_np"]),
        ({"ecn_rp": 0}, ["ecn_rp"]),
        ({"cnp_dscp": 0}, ["cnp_dscp"]),
        ({"cm_tos": 40}, ["cm_tos"]),
        ({"cm_mode": "IB/RoCE v1"}, ["cm_mode"]),
        ({"traffic_class": -1}, ["traffic_class"]),
        (dict.fromkeys(("ecn_np", "ecn_rp", "cnp_dscp", "cm_tos", "cm_mode", "traffic_class")), []),
    ],
)
def test_what_differs_elsewhere(values: dict[str, object], settings: list[str]) -> None:
    """S52, S53, S58: what a port does not tell is no difference."""
    found = roce_qos.other_differences(WISH, edited(**values))
    assert [difference.setting for difference in found] == settings


@pytest.mark.parametrize(
    ("flags", "answer"), [(None, False), (9, False), (1, False), (8, True), (11, True), (2, True)]
)
def test_who_can_override_the_host(flags: object, answer: bool) -> None:
    """S62."""
    assert roce_qos.overridable(edited(dcbx=flags)) is answer


def test_infiniband_is_refused_by_name() -> None:
    """S48."""
    roce_qos.refuse_infiniband([RIGHT])
    with pytest.raises(RdmaError) as caught:
        roce_qos.refuse_infiniband([RIGHT, PortQos("mlx5_7", 2, "", "InfiniBand")])
    assert (caught.value.code, caught.value.details["ports"]) == ("qos_not_ethernet", ["mlx5_7/2"])


# The script for the next boot


def test_the_script_does_all_and_says_what_failed(tmp_path: Path) -> None:
    """S55: run by a real shell; a line that fails does not stop the others, and the exit code tells."""
    good, missing = tmp_path / "a file", tmp_path / "none" / "file"
    done = tmp_path / "done"
    text = roce_unit.script(
        [
            ("rdma0", [["false"], ["touch", str(done)]], [("RoCE v2", str(good)), ("1", str(missing))]),
            ("rdma1", [], [("it's", str(good) + "2")]),
        ]
    )
    run = subprocess.run(["/bin/sh", "-c", text], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert (good.read_text(), Path(str(good) + "2").read_text()) == ("RoCE v2\n", "it's\n")
    assert done.exists()
    assert "failed: false" in run.stderr
    assert "failed: 1 to %s" % missing in run.stderr
    fine = roce_unit.script([("rdma0", [["true"]], [("5", str(good))])])
    assert subprocess.run(["/bin/sh", "-c", fine], check=False).returncode == 0


# What mlnx_qos prints, in the form of its documentation

PRINTED = """DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:5 dscp:47,46,45,44,43,42,41,40,
default priority:
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   1   0   0   \x20
\tbuffer      0   0   0   0   0   1   0   0\x20
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
"""


def test_the_output_of_the_tool() -> None:
    """S54, S62."""
    found = mlnx_qos.parse(PRINTED)
    assert (found.trust, found.pfc, found.dcbx) == ("dscp", 32, 1)
    assert roce_qos.write_map(found.map) == "0-7:0 40-47:5"


def test_the_output_of_an_older_tool() -> None:
    """Without DCBX and map, with trust pcp, and no PFC."""
    rows = "\tpriority 0 1 2 3 4 5 6 7\n\tenabled 0 0 0 0 0 0 0 0\n"
    text = "Priority trust state: pcp\nCable len: 7\nPFC configuration:\n" + rows
    found = mlnx_qos.parse(text)
    assert (found.trust, found.pfc, found.dcbx, dict(found.map)) == ("pcp", 0, None, {})
    assert mlnx_qos.parse("DCBX mode: Firmware controlled\n") == mlnx_qos.Printed(None, None, {}, 2)
    assert mlnx_qos.parse("No such device\n") == mlnx_qos.Printed(None, None, {}, None)
