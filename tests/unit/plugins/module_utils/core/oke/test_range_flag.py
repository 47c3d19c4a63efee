# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child range on command lines, in each form in which a Go program takes a flag (F92, F94)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import range_flag

OLD, NEW = "10.208.0.0/12", "172.16.0.0/12"
KEY = "oke.rdma-child-ipv4-cidr="
FLAG = "--cloud-provider-options="
WANTED = FLAG + KEY + NEW


@pytest.mark.parametrize(
    ("container", "changed"),
    [
        ({"args": ["--v=4", FLAG + KEY + OLD, "--x"]}, {"args": ["--v=4", WANTED, "--x"]}),
        ({"args": ["-cloud-provider-options=" + KEY + OLD]}, {"args": [WANTED]}),
        ({"args": ["--cloud-provider-options", KEY + OLD, "--x"]}, {"args": [WANTED, "--x"]}),
        ({"args": [FLAG, FLAG + KEY + OLD]}, {"args": [WANTED]}),
        ({"command": ["/dranet", FLAG + KEY + OLD], "args": ["--v=4"]}, {"command": ["/dranet", WANTED]}),
        ({"command": ["/dranet"], "args": ["--v=4"]}, {"args": ["--v=4", WANTED]}),
        ({}, {"args": [WANTED]}),
    ],
)
def test_the_option_takes_the_place_of_the_old_one(
    container: dict[str, Any], changed: dict[str, Any]
) -> None:
    assert range_flag.with_range(container, NEW) == changed
    after = {**container, **changed}
    assert range_flag.range_of(after) == NEW
    assert range_flag.with_range(after, NEW) == changed, "once more changes nothing"


def test_no_option_is_the_default_range() -> None:
    """F6."""
    assert range_flag.range_of({"args": ["--v=4"]}) == "10.208.0.0/12"


def test_an_option_that_ends_the_program() -> None:
    """F93: a range that is none is not taken for one."""
    with pytest.raises(RdmaError):
        range_flag.range_of({"args": [FLAG + KEY + "10.208.0.0/33"]})


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        ([("log", []), ("main", [FLAG + KEY + OLD])], "main"),
        ([("log", []), ("dranet", [])], "dranet"),
        ([("one", []), ("two", [])], "one"),
    ],
)
def test_the_container_of_the_driver(names: list[tuple[str, list[str]]], chosen: str) -> None:
    containers = [{"name": name, "args": args} for name, args in names]
    assert range_flag.container_of({"spec": {"containers": containers}})["name"] == chosen


def test_a_pod_without_containers() -> None:
    assert range_flag.container_of({}) == {}
