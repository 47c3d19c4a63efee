# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``mlnx_qos -i INTERFACE`` prints (S54). Private to rdma.k8s: it may change with any release.

Newer releases print more sections between those that are read here, older ones have no map in trust ``pcp``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from .roce_qos import DCBX_HOST, DCBX_LLD, PRIORITIES, mask_of

_TRUST = re.compile(r"^\s*Priority trust state:\s*(\w+)\s*$", re.MULTILINE)
_DCBX = re.compile(r"^\s*DCBX mode:\s*(\w+) controlled\s*$", re.MULTILINE)
_MAP = re.compile(r"^\s*prio:(\d)\s+dscp:([\d,]+)\s*$", re.MULTILINE)
_PFC = re.compile(r"^\s*PFC configuration:\s*\n\s*priority\s[^\n]*\n\s*enabled\s+([01][01 ]*)$", re.MULTILINE)
_MODES = {"OS": DCBX_HOST, "FW": DCBX_LLD, "Firmware": DCBX_LLD}


@dataclass(frozen=True)
class Printed:
    """Trust (``dscp`` or ``pcp``), set of lossless priorities, priority of each DSCP value, flags of DCBX (S62);
    ``None`` where the text does not say it."""

    trust: Optional[str]
    pfc: Optional[int]
    map: Mapping[int, int]
    dcbx: Optional[int]


def parse(text: str) -> Printed:
    """Read the text; sections that are not known are left out."""
    trust, dcbx, pfc = _TRUST.search(text), _DCBX.search(text), _PFC.search(text)
    entries = {
        int(dscp): int(priority)
        for priority, values in _MAP.findall(text)
        for dscp in values.split(",")
        if dscp
    }
    enabled = pfc[1].split() if pfc else []
    return Printed(
        trust=trust[1].lower() if trust else None,
        pfc=mask_of([number for number, bit in enumerate(enabled) if bit == "1"])
        if len(enabled) == PRIORITIES
        else None,
        map=dict(sorted(entries.items())),
        dcbx=_MODES.get(dcbx[1]) if dcbx else None,
    )
