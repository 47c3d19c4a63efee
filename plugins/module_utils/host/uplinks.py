# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NIC of the default route, which no module changes (decision 15). Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import nic_mtu as core
from ..core.errors import RdmaError
from ..core.snapshot import NodeSnapshot
from . import brief, link_mtu, records
from .files import Root


def devices(root: Root) -> dict[str, link_mtu.Device]:
    """All interfaces with what they are made of, of the kernel or of a recorded tree."""
    if not records.is_recorded(root):
        return link_mtu.read()
    answers = records.part(root, records.load(root) or {}, "rtnetlink", "rtnetlink", records.RtnetlinkRecord)
    return {
        link.name: link_mtu.Device(
            link.index,
            link.name,
            link.mtu or 0,
            master=link.master,
            lower=0 if link.elsewhere else link.parent,
        )
        for link in (answers.links if answers is not None else ())
    }


def nics(root: Root) -> dict[str, core.Nic]:
    """All interfaces by name: their limits, and what each is a part of or is made of."""
    known = devices(root)
    names: dict[int, str] = {device.index: name for name, device in known.items()}
    return {
        name: core.Nic(
            name=name,
            index=device.index,
            mtu=device.mtu,
            minimum=device.minimum,
            maximum=device.maximum,
            above=names.get(device.master, ""),
            below=names.get(device.lower, ""),
        )
        for name, device in known.items()
    }


def refuse_default_route(name: str, known: Iterable[core.Nic], snapshot: NodeSnapshot) -> None:
    """Refuse a NIC that carries the default route, itself or as a part of a bond, a bridge or below a VLAN.

    :raises RdmaError: ``nic_carries_default_route``, ``route_list_unknown``
    """
    if snapshot.routes is None:
        raise RdmaError(
            "route_list_unknown",
            "It cannot be told which NIC carries the default route: %s."
            % (snapshot.error_of("rtnetlink") or "the routes could not be read"),
            hint="Run as root in the host's network namespace.",
            retryable=True,
        )
    unknown = core.unknown_default(snapshot.routes)
    if unknown:
        raise RdmaError(
            "route_list_unknown",
            "It cannot be told which NIC carries the default route: the interface of '%s' is not known."
            % unknown,
            hint="Look at 'ip route show table all'; a route that names no interface protects none.",
            route=unknown,
        )
    core.refuse_default_route(name, core.default_over(name, known, snapshot.routes, snapshot.rules))


def require_other(root: Root, names: Iterable[str]) -> None:
    """Refuse when one of the interfaces carries the default route.

    :raises RdmaError: those of :func:`refuse_default_route`
    """
    snapshot = brief.read(root)
    known = nics(root)
    for name in names:
        refuse_default_route(name, known.values(), snapshot)
