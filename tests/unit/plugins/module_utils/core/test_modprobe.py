# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options in modprobe files: what they say (S19, S20), and texts in which nothing but one option changes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies

from ansible_collections.rdma.k8s.plugins.module_utils.core import modprobe

OURS = "options ib_core netns_mode=0\n"


def settings(text: str) -> list[tuple[str, str, int]]:
    return [(found.option, found.value, found.line) for found in modprobe.in_file(text, "ib_core")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (OURS, [("netns_mode", "0", 1)]),
        ("# options ib_core netns_mode=0\n", []),
        (
            "\toptions\tib_core\tnetns_mode=N recv_queue_size=1024\n",
            [("netns_mode", "N", 1), ("recv_queue_size", "1024", 1)],
        ),
        ("options ib-core netns-mode=1\n", [("netns_mode", "1", 1)]),
        ("options ib_core netns_mode\n", [("netns_mode", "Y", 1)]),
        ("options ib_core \\\n  netns_mode=0\noptions ib_core a=1", [("netns_mode", "0", 1), ("a", "1", 3)]),
        ("options ib_core netns_mode=0 \\", [("netns_mode", "0", 1)]),
        ('options ib_core "netns_mode=0"\n', [("netns_mode", "0", 1)]),
        ("options ib_core netns_mode='0\n", [("netns_mode", "'0", 1)]),
        ("options mlx5_core netns_mode=0\ninstall ib_core /bin/true\noption ib_core netns_mode=0\n", []),
        ("options ib_core\n", []),
    ],
)
def test_what_a_file_says(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert settings(text) == expected


def test_what_the_command_line_says() -> None:
    """S20: MODULE.OPTION=VALUE; other modules and other words are none of it."""
    found = modprobe.on_command_line(
        'ro ib_core.netns_mode=1 x.ib_core.y=2 ib_core "ib_core.a=b c" quiet', "ib_core"
    )
    assert [(setting.option, setting.value) for setting in found] == [("netns_mode", "1"), ("a", "b c")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", OURS),
        (OURS, OURS),
        (OURS * 2, OURS),
        ("options ib_core netns_mode=1\n", OURS),
        ("options ib_core netns_mode=N\n", OURS),
        ("# why\noptions ib_core netns_mode=1\n", "# why\n" + OURS),
        ("blacklist nouveau", "blacklist nouveau\n" + OURS),
        (OURS + "options kvm nested=1\n", OURS + "options kvm nested=1\n"),
        ("options ib_core a=1 netns_mode=1 b=2\n", "options ib_core a=1 b=2\n" + OURS),
        ("options ib_core \\\n netns_mode=1\nalias x y\n", "alias x y\n" + OURS),
        ('options ib_core foo="a  b" netns_mode=1\n', 'options ib_core foo="a  b"\n' + OURS),
        ("options ib_core \"netns_mode=1\" 'b=c d' e=\\ f\n", "options ib_core 'b=c d' e=\\ f\n" + OURS),
        ("options ib-core a=1 netns-mode=1\n", "options ib-core a=1\n" + OURS),
        ("options ib_core a='1 netns_mode=1\n", "options ib_core a='1\n" + OURS),
        ("# f\udcfcr\noptions ib_core netns_mode=1\n", "# f\udcfcr\n" + OURS),
    ],
)
def test_one_line_of_its_own_and_nothing_else_changed(text: str, expected: str) -> None:
    """S19: a managed file with exact content, whatever a guide appended to it."""
    assert modprobe.with_setting(text, "ib_core", "netns_mode", "0") == expected


LINES = strategies.lists(
    strategies.sampled_from(
        [
            "options ib_core netns_mode=1",
            "options ib_core netns_mode=0",
            "options ib_core netns_mode=0 a=1",
            "options ib_core a=1 \\",
            "  netns_mode=N",
            "options kvm nested=1",
            "# options ib_core netns_mode=1",
            "",
        ]
    ),
    max_size=6,
)


@given(LINES, strategies.booleans())
def test_setting_is_exact_and_stable(lines: list[str], ends: bool) -> None:
    """Any file: one setting afterwards, all other settings as before, and a second time changes nothing."""
    text = "\n".join(lines) + "\n" * ends
    wanted = modprobe.with_setting(text, "ib_core", "netns_mode", "0")
    others = [entry[:2] for entry in settings(text) if entry[0] != "netns_mode"]
    assert [entry[:2] for entry in settings(wanted) if entry[0] != "netns_mode"] == others
    assert [entry[1] for entry in settings(wanted) if entry[0] == "netns_mode"] == ["0"]
    assert modprobe.with_setting(wanted, "ib_core", "netns_mode", "0") == wanted
    rest = modprobe.without(wanted, "ib_core", "netns_mode")
    assert [entry[:2] for entry in settings(rest)] == others
    assert modprobe.in_file(wanted, "kvm") == [
        modprobe.Setting("nested", "1", found.line) for found in modprobe.in_file(wanted, "kvm")
    ]
    assert len(modprobe.in_file(wanted, "kvm")) == len(modprobe.in_file(text, "kvm"))
