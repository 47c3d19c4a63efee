# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What lines in the log of a failing plugin pod mean. Private to rdma.k8s: it may change with any release.

The format of the add-on's own log is not public, so the patterns are those of its public ancestors (A53, A72). They
explain a failure that a node or the DaemonSet has shown; they never decide one: lines about NICs that
are no RDMA NICs are noise (A95), and a clean log proves nothing (A96).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST_LINE, MOST_LINES = 2000, 20000
"""Longer lines are cut, and only the last lines are looked at."""
_SHOWN = 200


class Explanation(NamedTuple):
    """What a log says: ``code`` is stable, ``line`` the last line that says it, ``times`` how many do."""

    code: str
    meaning: str
    hint: str
    line: str
    times: int


class _Pattern(NamedTuple):
    code: str
    expression: re.Pattern[str]
    meaning: str
    hint: str


def _pattern(code: str, expression: str, meaning: str, hint: str) -> _Pattern:
    return _Pattern(code, re.compile(expression, re.IGNORECASE | re.ASCII), meaning, hint)


_FILES = "Load rdma_ucm, ib_umad and ib_uverbs on the node, install rdma-core, then restart the pod."

_PATTERNS = (
    _pattern(
        "log-netns-mode",
        r"rdma (?:sub)?system[^\n]{0,80}\b(?:mode|namespace|netns)\b[^\n]{0,120}\b(?:exclusive|not shared|incorrect)\b"
        r"|\bincorrect[^\n]{0,40}rdma[^\n]{0,40}\bmode\b",
        "The RDMA subsystem of the node is in exclusive mode, in which the plugin does not start (A76, A97).",
        "Set netns_mode of ib_core to shared (rdma system set netns shared, or the module netns_mode).",
    ),
    _pattern(
        "log-issm-missing",
        r"missing rdma device spec[^\n]{0,160}\bissm\b",
        "An older plugin wants the issm file of a NIC; on many NICs this is noise (A95).",
        "Look at the amount on the node: when it is right, this line means nothing.",
    ),
    _pattern(
        "log-device-files-missing",
        r"missing rdma device spec|rdma device \W{0,4}(?:rdma_cm|umad|uverbs)\W{0,4} not found",
        "A NIC was left out because rdma_cm, umad or uverbs is missing in /dev/infiniband (A74, A93, A94).",
        _FILES,
    ),
    _pattern(
        "log-no-devices",
        r"no devices in device pool|empty resource server",
        "No NIC of the node fits the selectors of the plugin, so it offers nothing and stays ready (A73, A99).",
        "Look at /sys/class/infiniband and at the link layer of each NIC; a NIC without device files does not count.",
    ),
    _pattern(
        "log-zero-devices",
        r"\b(?:expos\w+|devices?|resources?)\W{1,4}0\b(?!\.)|(?<![\w.])\W?0\W? (?:rdma )?devices?\b",
        "The plugin offers 0 devices.",
        _FILES,
    ),
    _pattern(
        "log-registration",
        r"(?:could not|cannot|can't|unable to|fail\w*(?: to)?|error)[^\n]{0,80}\bregist(?:er|ration)\b"
        r"|\bregist(?:er|ration)\b[^\n]{0,80}\b(?:fail\w*|refused|error)\b",
        "The plugin could not register at the kubelet (A77, A96).",
        "Look at the sockets in /var/lib/kubelet/device-plugins and plugins_registry, then restart the pod.",
    ),
    _pattern(
        "log-pci-ids",
        r"\bpci\.ids\b",
        "The plugin ended because it found no table of PCI ids (A98).",
        "Install hwdata or pciutils on the node, or use a newer version of the plugin.",
    ),
)


def explain(lines: Iterable[str]) -> list[Explanation]:
    """What the known sentences among the lines mean, each once, in the order of the patterns.

    A line counts for the first pattern that fits it. Nothing known gives an empty list, which is no good sign either.
    """
    kept = list(lines)[-MOST_LINES:]
    last: dict[str, str] = {}
    counts: dict[str, int] = {}
    for whole in kept:
        line = whole[:LONGEST_LINE]
        for pattern in _PATTERNS:
            if pattern.expression.search(line):
                last[pattern.code] = line.strip()[:_SHOWN]
                counts[pattern.code] = counts.get(pattern.code, 0) + 1
                break
    return [
        Explanation(pattern.code, pattern.meaning, pattern.hint, last[pattern.code], counts[pattern.code])
        for pattern in _PATTERNS
        if pattern.code in last
    ]
