# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network namespace mode of the RDMA subsystem: what it is, what sets it, what is to be done about it.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from . import modprobe, rdma_text
from .text import shown

SHARED, EXCLUSIVE = "shared", "exclusive"
MODES = {0: EXCLUSIVE, 1: SHARED}
"""Values of the attribute of RDMA netlink (S12)."""
MODE_ATTRIBUTE = 66
MODULE, OPTION = "ib_core", "netns_mode"
VALUES = {SHARED: "1", EXCLUSIVE: "0"}
"""What is written into the managed file (S8, S19)."""
KERNEL_DEFAULT = SHARED  # S8
OPERATOR_FILE = "sriov_network_operator_modules_config.conf"
"""The file of the sriov-network-operator (S23)."""
NOT_LOADED, UNKNOWN_MODE = "ib_core-not-loaded", "unknown-mode"
BUSY = "EBUSY"
TWO_OWNERS, CMDLINE_OVERRIDES, DUPLICATE_OPTION = "two-owners", "cmdline-overrides", "duplicate-option"


@dataclass(frozen=True)
class Reading:
    """The mode, or ``None`` with the reason why it is not known."""

    mode: Optional[str]
    reason: str = ""


@dataclass(frozen=True)
class SystemText:
    """What ``rdma system`` prints: the mode (``None``: not told) and all further settings as they are printed."""

    mode: Optional[str]
    flags: dict[str, str]


def mode_of_parameter(text: Optional[str]) -> Reading:
    """From the text of ``/sys/module/ib_core/parameters/netns_mode``, ``None`` when the file is not there (S9)."""
    if text is None:
        return Reading(None, NOT_LOADED)
    mode = mode_of_option(text.strip())
    return Reading(mode, "" if mode else UNKNOWN_MODE)


def mode_of_attributes(attributes: Mapping[int, int]) -> Reading:
    """From the attributes of an answer of RDMA netlink, by their numbers (S11, S12)."""
    mode = MODES.get(attributes.get(MODE_ATTRIBUTE, -1))
    return Reading(mode, "" if mode else UNKNOWN_MODE)


def mode_of_system_text(text: str) -> SystemText:
    """From the output of ``rdma system``; which settings it prints depends on its version (S18)."""
    flags = rdma_text.pairs(text)
    mode = flags.pop("netns", None)
    return SystemText(mode if mode in VALUES else None, flags)


def mode_of_option(value: str) -> Optional[str]:
    """The mode that the kernel takes from the text of the option: Y y 1 on / N n 0 off; others it refuses (L4)."""
    if value.lower() in ("y", "1", "on"):
        return SHARED
    return EXCLUSIVE if value.lower() in ("n", "0", "off") else None


@dataclass(frozen=True)
class Place:
    """A setting of the mode: the file with its line, or the kernel command line (line 0), and the value's text."""

    source: str
    value: str
    line: int = 0

    @property
    def mode(self) -> Optional[str]:
        return mode_of_option(self.value)

    def __str__(self) -> str:
        return "%s:%d" % (self.source, self.line) if self.line else self.source


@dataclass(frozen=True)
class Sources:
    """All that sets the mode at boot.

    :param files: path and text of the modprobe files in the order in which they count (S20).
    :param command_line: the kernel command line, which counts behind all files.
    :param own: path of the managed file.
    """

    files: Sequence[tuple[str, str]]
    command_line: str = ""
    own: str = "ib_core.conf"
    command_line_name: str = "/proc/cmdline"

    def of_file(self, path: str, text: str) -> list[Place]:
        """The settings of one file."""
        found = modprobe.in_file(text, MODULE)
        return [
            Place(path, shown(setting.value), setting.line) for setting in found if setting.option == OPTION
        ]

    @property
    def in_files(self) -> list[Place]:
        return [place for path, text in self.files for place in self.of_file(path, text)]

    @property
    def arguments(self) -> list[Place]:
        found = modprobe.on_command_line(self.command_line, MODULE)
        return [Place(self.command_line_name, entry.value) for entry in found if entry.option == OPTION]

    @property
    def own_text(self) -> Optional[str]:
        return dict(self.files).get(self.own)

    @property
    def has_operator(self) -> bool:
        """Whether the sriov-network-operator keeps a file of its own here (S23)."""
        return any(is_operators(path) for path, _text in self.files)


def is_operators(path: str) -> bool:
    """Whether a modprobe file is the one of the sriov-network-operator."""
    return path.rpartition("/")[2] == OPERATOR_FILE


def mode_of_places(places: Sequence[Place]) -> Optional[str]:
    """The mode that these settings give: the last one wins, none is the kernel's default (S8, S20)."""
    return places[-1].mode if places else KERNEL_DEFAULT


@dataclass(frozen=True)
class Plan:
    """What is to be done. Words and meaning of the fields are those of the vector files.

    ``live_set``: the running mode is to be changed. ``live_error``: it cannot be now, so a reboot is owed
    (``reboot_required``). ``own_text``: text of the managed file when it must change. ``cleaned``: text of other files
    without the setting (``None``: nothing else was in the file). ``error`` is ``two-owners``, with the ``opponents``
    that set another mode; then nothing is to be done.
    """

    want: str
    boot_mode_before: Optional[str]
    boot_mode_after: Optional[str]
    live_set: bool = False
    live_error: Optional[str] = None
    reboot_required: bool = False
    own_text: Optional[str] = None
    cleaned: tuple[tuple[str, Optional[str]], ...] = ()
    warning: Optional[str] = None
    error: Optional[str] = None
    opponents: tuple[Place, ...] = ()

    @property
    def write_file(self) -> bool:
        """Whether the managed file must change."""
        return self.own_text is not None

    @property
    def changed(self) -> bool:
        return self.live_set or self.write_file or bool(self.cleaned)

    @property
    def reboot_helps(self) -> bool:
        """Whether the next boot gives the wanted mode once the plan is done."""
        return self.boot_mode_after == self.want


def plan(
    want: str, current: Optional[str], sources: Sources, other_namespaces: int, clean: bool = False
) -> Plan:
    """What leads to the wanted mode, now and after the next boot (S13, S15, S20, S23, S26, S27).

    The running mode is compared first; nothing that is right is written again. The managed file is written when it sets
    the mode in another way than in one line of its own, or when nothing else sets the wanted mode. A file of somebody
    else that sets another mode, and the operator's kernel argument, are a second owner: then nothing is done.

    :param current: the running mode; ``None``: ``ib_core`` is not loaded, so the mode comes with it.
    :param other_namespaces: living network namespaces besides the first one; any makes the kernel refuse (S13).
    :param clean: take the setting out of other people's files; never out of the operator's.
    """
    before = mode_of_places(sources.in_files + sources.arguments)
    foreign = [(path, text) for path, text in sources.files if path != sources.own]
    touched = [(path, text) for path, text in foreign if clean and not is_operators(path)]
    cleaned = [(path, text) for path, text in touched if sources.of_file(path, text)]
    kept = [(path, text) for path, text in foreign if (path, text) not in cleaned]
    wrong = [place for path, text in kept for place in sources.of_file(path, text) if place.mode != want]
    wrong_arguments = [place for place in sources.arguments[-1:] if place.mode != want]
    if wrong or (wrong_arguments and sources.has_operator):
        opponents = tuple(wrong + (wrong_arguments if sources.has_operator else []))
        return Plan(want, before, before, error=TWO_OWNERS, opponents=opponents)
    left = Sources(
        [entry for entry in sources.files if entry not in cleaned], sources.command_line, sources.own
    )
    own_text = _own_text(want, left)
    after = sources.arguments or [Place(sources.own, VALUES[want])]
    differs = current is not None and current != want
    return Plan(
        want,
        before,
        mode_of_places(after),
        live_set=differs and other_namespaces == 0,
        live_error=BUSY if differs and other_namespaces else None,
        reboot_required=differs and other_namespaces != 0,
        own_text=own_text,
        cleaned=tuple([(path, _cleaned(text)) for path, text in cleaned]),
        warning=_warning(sources, bool(wrong_arguments)),
        opponents=tuple(wrong_arguments),
    )


def _own_text(want: str, sources: Sources) -> Optional[str]:
    """The text that the managed file must get; ``None`` when it may stay as it is."""
    text = sources.own_text
    given = (mode_of_places(sources.in_files), mode_of_places(sources.in_files + sources.arguments))
    if want in given and not sources.of_file(sources.own, text or ""):
        return None
    wanted = modprobe.with_setting(text or "", MODULE, OPTION, VALUES[want])
    return None if wanted == text else wanted


def _cleaned(text: str) -> Optional[str]:
    rest = modprobe.without(text, MODULE, OPTION)
    return None if modprobe.says_nothing(rest) else rest


def _warning(sources: Sources, overridden: bool) -> Optional[str]:
    if overridden:
        return CMDLINE_OVERRIDES
    return DUPLICATE_OPTION if len(sources.in_files) > 1 else None
