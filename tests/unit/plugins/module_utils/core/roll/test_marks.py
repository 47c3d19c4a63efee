# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The annotations of a roll on a node."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import marks
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import Marks
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import State

FULL = Marks(
    desired="abc",
    applied="def",
    state=State.BLOCKED,
    since="2026-01-01T00:00:00Z",
    attempt=3,
    error="why",
    owner="abc",
    lock="abc",
    initial_unschedulable=False,
    reboots=1,
    boot_id="b1",
    before=State.DRAINING,
    note="reached nobody",
)
ANNOTATIONS = {
    "rdma-k8s/roll-desired": "abc",
    "rdma-k8s/roll-applied": "def",
    "rdma-k8s/roll-state": "Blocked",
    "rdma-k8s/roll-since": "2026-01-01T00:00:00Z",
    "rdma-k8s/roll-attempt": "3",
    "rdma-k8s/roll-last-error": "why",
    "rdma-k8s/roll-owner": "abc",
    "rdma-k8s/roll-lock": "abc",
    "rdma-k8s/initial-unschedulable": "false",
    "rdma-k8s/reboots": "1",
    "rdma-k8s/roll-boot-id": "b1",
    "rdma-k8s/roll-before": "Draining",
    "rdma-k8s/roll-note": "reached nobody",
}


def test_every_mark_has_its_annotation() -> None:
    assert marks.read(ANNOTATIONS) == FULL
    assert {"rdma-k8s/" + name: text for name, text in marks.write(FULL).items()} == ANNOTATIONS


def test_a_node_without_annotations_has_no_marks() -> None:
    assert marks.read({"other": "x"}) == Marks()
    assert set(marks.write(Marks()).values()) == {None}


def test_annotations_with_another_prefix_are_not_ours() -> None:
    assert marks.read(ANNOTATIONS, "example.org/") == Marks()
    assert marks.read({"example.org/roll-owner": "x"}, "example.org/") == Marks(owner="x")


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("roll-state", "Dreaming", "state", None),
        ("roll-before", "draining", "before", None),
        ("roll-attempt", "-1", "attempt", 0),
        ("roll-attempt", "1.0", "attempt", 0),
        ("roll-attempt", "\u0663", "attempt", 0),
        ("roll-attempt", "123456789", "attempt", 123456789),
        ("roll-attempt", "1234567890", "attempt", 0),
        ("reboots", "many", "reboots", 0),
        ("initial-unschedulable", "True", "initial_unschedulable", None),
        ("initial-unschedulable", "true", "initial_unschedulable", True),
    ],
)
def test_a_text_that_makes_no_sense_counts_as_absent(name: str, text: str, field: str, value: Any) -> None:
    assert getattr(marks.read({"rdma-k8s/" + name: text}), field) == value


def test_only_what_differs_is_written() -> None:
    assert marks.changes(FULL, FULL) == {}
    wanted = Marks(state=State.DONE, initial_unschedulable=True)
    assert marks.changes(Marks(state=State.DONE, owner="abc"), wanted) == {
        "roll-owner": None,
        "initial-unschedulable": "true",
    }


def test_the_label_shows_the_state() -> None:
    assert marks.label(State.WAIT_JOBS) == "WaitJobs"
    assert marks.label(None) is None


def test_a_long_error_is_cut_between_characters() -> None:
    assert marks.shortened("x" * 300) == "x" * 256
    assert marks.shortened("x" * 255 + "\u00e9") == "x" * 255
    assert marks.write(Marks(error="y" * 999))["roll-last-error"] == "y" * 256
    assert marks.write(Marks(note="y" * 999))["roll-note"] == "y" * 256
