# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of releases, in order. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

_VERSION = re.compile(
    r"[vV]?([0-9]{1,6})\.([0-9]{1,6})(?:\.([0-9]{1,6}))?(?:-([0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]{1,60})?"
)
_NUMBER = re.compile(r"([0-9]{1,9})")


class Version(NamedTuple):
    """A version that compares as semantic versions do: a candidate is below its release, rc2 below rc10."""

    major: int
    minor: int
    patch: int
    released: bool = True
    candidate: tuple[tuple[bool, int, str], ...] = ()


def find(value: Any) -> Optional[Version]:
    """``v1.2.0-rc1`` -> a version; ``None``: the value is not one."""
    found = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    major, minor, patch, candidate = found.groups()
    words = [word for word in _NUMBER.split((candidate or "").replace(".", "")) if word]
    order = tuple([(not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in words])
    return Version(int(major), int(minor), int(patch or 0), candidate is None, order)
