# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for the namespace mode beyond what the vectors say, and readings that no vector has."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import netns
from ansible_collections.rdma.k8s.plugins.module_utils.core.netns import Plan, Sources, plan

OWN = "/etc/modprobe.d/ib_core.conf"
OTHER = "/etc/modprobe.d/rdma.conf"
OPERATOR = "/etc/modprobe.d/" + netns.OPERATOR_FILE
EXCLUSIVE, SHARED = "options ib_core netns_mode=0\n", "options ib_core netns_mode=1\n"


def made(want: str, current: Optional[str], files: Any = (), command_line: str = "", **more: Any) -> Plan:
    return plan(
        want, current, Sources(files, command_line, OWN), more.get("others", 0), more.get("clean", False)
    )


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("Y\n", "shared"),
        ("1", "shared"),
        ("N", "exclusive"),
        ("0\n", "exclusive"),
        ("", None),
        ("maybe", None),
    ],
)
def test_the_parameter_file(text: str, mode: Optional[str]) -> None:
    """S9; another text is no mode, and never taken for one."""
    found = netns.mode_of_parameter(text)
    assert (found.mode, found.reason) == (mode, "" if mode else netns.UNKNOWN_MODE)


@pytest.mark.parametrize(("attributes", "mode"), [({66: 1}, "shared"), ({93: 1}, None), ({}, None)])
def test_the_attribute_of_netlink(attributes: dict[int, int], mode: Optional[str]) -> None:
    """S11, S12: an old kernel does not send it."""
    assert netns.mode_of_attributes(attributes).mode == mode


@pytest.mark.parametrize(
    ("text", "mode", "flags"),
    [
        ("", None, {}),
        ("netns", None, {}),
        ("netns both copy-on-fork on", None, {"copy-on-fork": "on"}),
        ("copy-on-fork on netns shared", "shared", {"copy-on-fork": "on"}),
    ],
)
def test_the_text_of_rdma_system(text: str, mode: Optional[str], flags: dict[str, str]) -> None:
    """S18: names and values in any order and number."""
    found = netns.mode_of_system_text(text)
    assert (found.mode, found.flags) == (mode, flags)


def test_nothing_is_written_where_the_default_is_wanted() -> None:
    """S8, S27: the next boot is shared by itself."""
    found = made("shared", "shared")
    assert (found.changed, found.boot_mode_before, found.boot_mode_after) == (False, "shared", "shared")


def test_a_module_that_is_not_loaded_needs_no_switch() -> None:
    """S9: the mode comes with the module, so a file is enough and no reboot is owed."""
    found = made("exclusive", None, others=9)
    assert (found.write_file, found.live_set, found.reboot_required) == (True, False, False)


def test_the_own_file_keeps_what_is_not_ours() -> None:
    found = made(
        "shared", "exclusive", [(OWN, "# site\noptions ib_core netns_mode=0\noptions ib_core a=1\n")]
    )
    assert found.own_text == "# site\noptions ib_core a=1\n" + SHARED


def test_an_equal_setting_elsewhere_is_enough() -> None:
    """S27: a second line would be a second owner; it is told as one when both are there."""
    assert not made("exclusive", "exclusive", [(OTHER, EXCLUSIVE)]).changed
    both = made("exclusive", "exclusive", [(OWN, EXCLUSIVE), (OTHER, EXCLUSIVE)])
    assert (both.changed, both.warning) == (False, netns.DUPLICATE_OPTION)


def test_an_equal_kernel_argument_is_enough() -> None:
    """S24: on Ubuntu the argument in the boot loader is the way out; it counts behind the files."""
    found = made("exclusive", "exclusive", (), "ib_core.netns_mode=0")
    assert (found.changed, found.boot_mode_before, found.warning) == (False, "exclusive", None)


@pytest.mark.parametrize("value", ["1", "Y", "on", "rubbish"])
def test_a_foreign_file_with_another_mode_stops(value: str) -> None:
    """S26, wherever it sorts; a value that the kernel refuses would keep ib_core from loading (L4)."""
    text = "options ib_core netns_mode=%s\n" % value
    for path in ("/etc/modprobe.d/aaa.conf", OTHER):
        found = made("exclusive", "exclusive", [(path, text), (OWN, EXCLUSIVE)])
        assert (found.error, found.changed, [str(place) for place in found.opponents]) == (
            netns.TWO_OWNERS,
            False,
            [path + ":1"],
        )


def test_cleaning_takes_the_setting_out_and_leaves_the_rest() -> None:
    files = [
        ("/etc/modprobe.d/aaa.conf", SHARED + "options kvm nested=1\n"),
        (OWN, EXCLUSIVE),
        (OTHER, SHARED),
        ("/usr/lib/modprobe.d/z.conf", "blacklist x\n"),
    ]
    found = made("exclusive", "exclusive", files, clean=True)
    assert found.error is None
    assert found.cleaned == (("/etc/modprobe.d/aaa.conf", "options kvm nested=1\n"), (OTHER, None))
    assert (found.write_file, found.changed) == (False, True)


def test_cleaning_writes_the_own_file_when_nothing_else_is_left() -> None:
    found = made("exclusive", "exclusive", [(OTHER, EXCLUSIVE)], clean=True)
    assert (found.cleaned, found.own_text) == (((OTHER, None),), EXCLUSIVE)
    default = made("shared", "shared", [(OTHER, SHARED)], clean=True)
    assert (default.cleaned, default.own_text) == (((OTHER, None),), None)


@pytest.mark.parametrize("clean", [False, True])
def test_the_operators_file_is_never_touched(clean: bool) -> None:
    """S23: whoever cleans it, the operator writes it again."""
    found = made("exclusive", "shared", [(OWN, EXCLUSIVE), (OPERATOR, SHARED)], clean=clean)
    assert (found.error, found.cleaned) == (netns.TWO_OWNERS, ())
    agreeing = made("exclusive", "shared", [(OPERATOR, EXCLUSIVE)], clean=clean)
    assert (agreeing.error, agreeing.cleaned, agreeing.live_set) == (None, (), True)


def test_the_operators_kernel_argument_stops() -> None:
    """S23: the operator asks for an argument besides its file; then the argument is its, too."""
    found = made("exclusive", "shared", [(OPERATOR, EXCLUSIVE)], "ib_core.netns_mode=1")
    assert (found.error, [place.source for place in found.opponents]) == (netns.TWO_OWNERS, ["/proc/cmdline"])


def test_a_reboot_does_not_help_against_a_kernel_argument() -> None:
    """S20: the argument counts behind every file."""
    found = made("exclusive", "shared", [(OWN, EXCLUSIVE)], "ib_core.netns_mode=1", others=2)
    assert (found.reboot_required, found.reboot_helps, found.boot_mode_after) == (True, False, "shared")
    assert made("exclusive", "shared", (), "", others=2).reboot_helps


def test_the_last_kernel_argument_counts() -> None:
    found = made("exclusive", "shared", (), "ib_core.netns_mode=1 ib_core.netns_mode=0")
    assert (found.warning, found.boot_mode_before) == (None, "exclusive")


def test_a_place_names_file_and_line() -> None:
    assert str(netns.Place(OTHER, "1", 3)) == OTHER + ":3"
    assert str(netns.Place("/proc/cmdline", "1")) == "/proc/cmdline"
