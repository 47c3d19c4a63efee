# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""As much of a NodeSnapshot as a change of network settings must know, and no more: interfaces, routes, PCI, OCA files.

Without the netlink library, and without the readers that a change does not need: it is read before and after each
change. Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from typing import Optional

from ..core.snapshot import Imds, NodeSnapshot
from . import links, oca, raw_netlink, records, sysfs
from .files import Root

SUBSETS = ("links", "routes", "pci", "oca")


def read(root: Root, metadata: Optional[Imds] = None) -> NodeSnapshot:
    """The snapshot, with what the metadata service said; what cannot be read is ``None``, and its errors say why."""
    if records.is_recorded(root):
        document = records.load(root) or {}
        answers = records.part(root, document, "rtnetlink", raw_netlink.SOURCE, records.RtnetlinkRecord)
    else:
        answers = raw_netlink.read(root)
    linker = None if answers is None else links.Linker(root, answers)
    return NodeSnapshot(
        name="",
        subsets=SUBSETS,
        links=None if linker is None else linker.links(),
        routes=None if linker is None else linker.routes(),
        rules=None if linker is None else linker.rules(),
        pci=sysfs.functions(root),
        oca=oca.read(root),
        imds=metadata,
        errors=tuple(root.errors),
    )
