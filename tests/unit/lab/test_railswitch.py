# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of the rails."""

from __future__ import annotations

import pathlib
import socket
import subprocess
import sys
import time

import pytest

from ansible_collections.rdma.k8s.tests.lab import railswitch

ONE, TWO, ALL = b"\x52\x54\x00\x01\x01\x00", b"\x52\x54\x00\x01\x02\x00", b"\xff" * 6


def test_learning() -> None:
    rail = railswitch.Rail([1, 2, 3])
    assert rail.destinations(TWO + ONE + b"data", 1) == [2, 3], "unknown: everywhere else"
    assert rail.destinations(ONE + TWO + b"data", 2) == [1], "seen at port 1"
    assert rail.destinations(TWO + ONE + b"data", 1) == [2]
    assert rail.destinations(ALL + ONE, 1) == [2, 3]
    assert rail.destinations(ONE + TWO, 1) == [], "never back where it came from"
    assert rail.destinations(TWO + ONE, 3) == [1], "an address that moves is learned anew"
    assert rail.destinations(ONE + TWO, 1) == [3]


def test_a_group_address_is_no_sender() -> None:
    rail = railswitch.Rail([1, 2, 3])
    rail.destinations(ONE + ALL, 1)
    assert rail.destinations(ALL + TWO, 2) == [1, 3]


@pytest.mark.parametrize("rail", [0, 1])
def test_frames_pass(rail: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes of three are there; frames go only along their own rail, and one for a missing node is lost."""
    monkeypatch.chdir(tmp_path)
    script = pathlib.Path(railswitch.__file__)
    child = subprocess.Popen([sys.executable, str(script), "name", "3", "2"], cwd=tmp_path)
    ends = {}
    try:
        for node in (1, 2):
            for number in (0, 1):
                ends[node, number] = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                ends[node, number].bind(f"rail{number}-node{node}")
                ends[node, number].settimeout(10)
        end = time.monotonic() + 20
        while not (tmp_path / "rail1-port3").exists():
            assert time.monotonic() < end, "the switch does not start"
            time.sleep(0.02)
        ends[1, rail].sendto(ALL + ONE + b"hello", f"rail{rail}-port1")
        assert ends[2, rail].recv(100) == ALL + ONE + b"hello"
        ends[2, rail].sendto(ONE + TWO + b"back", f"rail{rail}-port2")
        assert ends[1, rail].recv(100) == ONE + TWO + b"back"
        ends[2, 1 - rail].settimeout(0.2)
        with pytest.raises(TimeoutError):
            ends[2, 1 - rail].recv(100)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()
        for end_ in ends.values():
            end_.close()
