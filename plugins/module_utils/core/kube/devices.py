# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and values of devices in ResourceSlices. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS = ("string", "int", "bool", "strings", "ints", "bools")


def qualified(name: str, driver: str) -> str:
    """The full name of an attribute or a capacity: one without a domain belongs to the driver."""
    return name if "/" in name else "%s/%s" % (driver, name)


def plain_attributes(attributes: Mapping[str, Any], driver: str) -> dict[str, Any]:
    """The attributes of a device with their full names and plain values, such as ``{"dra.net/rdma": True}``.

    :param attributes: as they stand in the slice, ``{"rdma": {"bool": True}}``; what is no object or empty is left out.
    """
    return {
        qualified(name, driver): _plain(held)
        for name, held in attributes.items()
        if isinstance(held, dict) and held
    }


def _plain(held: Mapping[str, Any]) -> Any:
    for kind in _KINDS:
        if kind in held:
            return held[kind]
    return dict(held)
