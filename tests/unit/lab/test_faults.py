# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of faults, its twin inside the node, and the checks of arguments."""

from __future__ import annotations

import inspect
import io
import pathlib

import pytest

from ansible_collections.rdma.k8s.tests.lab import faults, lab, plan, selftest
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.guest import node as guest
from ansible_collections.rdma.k8s.tests.lab.image import Cache
from ansible_collections.rdma.k8s.tests.lab.progress import Progress


def test_the_node_knows_the_same_faults() -> None:
    assert set(guest.FAULTS) == {name for name, fault in faults.FAULTS.items() if fault.kind == "guest"}


@pytest.mark.parametrize("name", sorted(guest.FAULTS))
def test_the_node_takes_the_same_arguments(name: str) -> None:
    play = list(inspect.signature(guest.FAULTS[name][0]).parameters.values())[1:]
    fault = faults.FAULTS[name]
    assert len(play) == len(fault.arguments)
    assert sum(parameter.default is inspect.Parameter.empty for parameter in play) == fault.least
    assert len(inspect.signature(guest.FAULTS[name][1]).parameters) == 2


def test_every_fault_is_played_by_the_selftest() -> None:
    link = {"addresses": ["10.224.13.19/12"], "mac": ""}
    before = {"links": {"rdma0": link, "rdma1": link}, "oca": {"network": "x"}}
    assert {case.name for case in selftest.fault_cases(before)} == set(faults.FAULTS)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mtu", ["0"]),
        ("mtu", ["3", "1500"]),
        ("exclusive", []),
        ("swap-nics", ["0", "1"]),
        ("foreign-route", []),
    ],
)
def test_arguments_that_fit(name: str, arguments: list[str]) -> None:
    assert faults.check(name, arguments, 4).name == name


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("none", [], "There is no fault 'none': use one of address-foreign, "),
        ("mtu", [], r"Usage: fault NODE mtu RAIL \[MTU\]"),
        ("mtu", ["0", "1", "2"], r"Usage: fault NODE mtu RAIL \[MTU\]"),
        ("mtu", ["4"], "rail '4' is not one of 0 to 3"),
        ("mtu", ["rdma0"], "rail 'rdma0' is not one of 0 to 3"),
        ("swap-nics", ["0"], "Usage: fault NODE swap-nics RAIL RAIL"),
        ("swap-nics", ["0", "9"], "rail '9'"),
    ],
)
def test_arguments_that_do_not_fit(name: str, arguments: list[str], reason: str) -> None:
    with pytest.raises(LabError, match=reason):
        faults.check(name, arguments, 4)


class Talk:
    """Stands in for QEMU's control socket and remembers what was asked."""

    asked: list[tuple[str, dict]] = []

    def __init__(self, directory: pathlib.Path, name: str):
        self.name = name

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def command(self, execute: str, **arguments: object) -> None:
        """Remember one command."""
        self.asked.append((f"{self.name} {execute}", arguments))


def test_a_cable_is_pulled_and_put_back(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    this = lab.Lab("one", Cache(tmp_path, Progress(io.StringIO())), Progress(io.StringIO()))
    this.directory.mkdir(parents=True)
    state = lab.State("one", plan.make_spec(), 22220, "tcg", "/i", True, 0.0)
    (this.directory / "lab.json").write_text(state.to_json())
    monkeypatch.setattr(faults.process, "Qmp", Talk)
    monkeypatch.setattr(Talk, "asked", [])
    with pytest.raises(LabError, match="rail-broken is not in force on node2"):
        faults.undo(this, 2, "rail-broken")
    faults.play(this, 2, "rail-broken", ["3"])
    with pytest.raises(LabError, match="rail-broken is in force on node2 already"):
        faults.play(this, 2, "rail-broken", ["1"])
    faults.undo(this, 2, "rail-broken")
    assert Talk.asked == [
        ("node2.qmp set_link", {"name": "nic3", "up": False}),
        ("node2.qmp set_link", {"name": "nic3", "up": True}),
    ]
    with pytest.raises(LabError, match="There is no fault 'none'"):
        faults.undo(this, 2, "none")


def test_other_faults_go_to_the_node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    this = lab.Lab("one", Cache(tmp_path, Progress(io.StringIO())), Progress(io.StringIO()))
    this.directory.mkdir(parents=True)
    state = lab.State("one", plan.make_spec(), 22220, "tcg", "/i", True, 0.0)
    (this.directory / "lab.json").write_text(state.to_json())
    calls = []
    monkeypatch.setattr(this, "node_program", lambda *arguments: calls.append(arguments))
    faults.play(this, 1, "mtu", ["0", "1500"])
    faults.undo(this, 1, "mtu")
    assert calls == [(1, "fault", "mtu", "0", "1500"), (1, "undo", "mtu")]
