# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SriovNetworkPoolConfig: how many nodes may be drained at a time. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

from ..net import quoted
from .issue import Issue, error, is_between

UNLIMITED = -1
"""What stands for no limit: a pool that does not say how many (S120)."""
AT = "spec.maxUnavailable"
_PERCENT = re.compile(r"(100|[1-9][0-9]?)%")


class Limit(NamedTuple):
    """The number of nodes that may be away; ``None``: it cannot be told."""

    nodes: Optional[int]
    issues: list[Issue]


def limit(wanted: Any, nodes: int) -> Limit:
    """The limit of a pool of that many nodes (S120).

    :param wanted: ``maxUnavailable``: a whole number, a percentage as a text, or ``None``. Percentages round down, and
        a limit of 0 stops every drain for ever (S121).
    """
    if wanted is None:
        return Limit(UNLIMITED, [])
    percent = _PERCENT.fullmatch(wanted) if isinstance(wanted, str) else None
    if percent is not None:
        found = nodes * int(percent[1]) // 100
    elif is_between(wanted, 0):
        found = int(wanted)
    else:
        message = "maxUnavailable is a whole number, or a text from 1%% to 100%%, found %s" % quoted(wanted)
        return Limit(None, [error("max-unavailable-invalid", AT, message)])
    if found:
        return Limit(found, [])
    message = "%s of %d nodes is none, so no node is ever drained" % (quoted(wanted), nodes)
    return Limit(0, [error("max-unavailable-zero", AT, message)])
