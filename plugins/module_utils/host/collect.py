# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One NodeSnapshot from all readers. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.snapshot import (
    DEFAULT_SUBSETS,
    SUBSETS,
    Collector,
    FirewallRule,
    NodeSnapshot,
    RdmaSystem,
)
from . import (
    firewall,
    imds,
    kernel,
    links,
    nftables,
    oca,
    rdma_netlink,
    records,
    rtnetlink,
    slow,
    sysfs,
    verbs,
)
from .files import Root

_MODES = {0: "exclusive", 1: "shared"}  # S12


def collect(
    name: str = "",
    host_root: str = "/",
    subsets: Iterable[str] = DEFAULT_SUBSETS,
    *,
    imds_url: str = "",
    imds_timeout: float = imds.TIMEOUT,
    version: str = "",
) -> NodeSnapshot:
    """Read what the node tells. A source that cannot be read becomes an entry of ``errors``.

    :param name: name of the node; empty: its host name.
    :param host_root: root of the file system of the node. When it holds a file ``netlink.json``, the answers of netlink
        come from there and nothing of the running kernel is asked; else the running kernel is the node's.
    :param subsets: names of :data:`SUBSETS`.
    :param imds_url: base URL of the metadata service; empty: its own address (a recorded tree: its file ``imds.json``).
    :param imds_timeout: limit of each request to it in seconds.
    :param version: version of the collection, for the snapshot.
    :raises RdmaError: ``subset_unknown``, ``host_root_missing``, ``imds_url_wrong`` or ``library_missing``.
    """
    started = time.monotonic()
    wanted = _wanted(subsets)
    root = Root(host_root)
    if root.path and not root.names("/"):
        raise RdmaError(
            "host_root_missing",
            "The root %s of the host is not a directory that can be read, or it is empty." % host_root,
            hint="Give the mount point of the host's file system, or a recorded tree.",
        )
    recorded = records.load(root) if records.is_recorded(root) else None
    values: dict[str, Any] = {}
    host = kernel.host(root)
    if "kernel" in wanted:
        values["modules"] = kernel.modules(root, host.kernel)
        values["module_options"] = kernel.module_options(root)
    if "rdma" in wanted:
        values.update(_rdma(root, recorded))
    if "links" in wanted or "routes" in wanted:
        values.update(_links(root, recorded, wanted))
    if "pci" in wanted:
        values["pci"] = sysfs.functions(root)
    if "firewall" in wanted:
        values["firewall"] = _firewall(root, recorded, host.kernel)
    if "imds" in wanted:
        answers = imds.read(root, imds_url, imds_timeout)
        values["imds"] = answers.documents
    if "oca" in wanted:
        values["oca"] = oca.read(root, answers.plugins if "imds" in wanted else None)
    if "slow" in wanted:
        values["slow"] = slow.read(root, host)
    return NodeSnapshot(
        name=name or host.hostname,
        collected_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        subsets=wanted,
        collector=Collector(
            version=version,
            python=platform.python_version(),
            pyroute2=rtnetlink.version(),
            duration_ms=round((time.monotonic() - started) * 1000),
        ),
        host=host,
        errors=tuple(root.errors),
        **values,
    )


def _wanted(subsets: Iterable[str]) -> tuple[str, ...]:
    asked = set(subsets)
    unknown = sorted(asked.difference(SUBSETS))
    if unknown:
        raise RdmaError(
            "subset_unknown",
            "Subsets are %s; found %s." % (", ".join(SUBSETS), ", ".join(unknown)),
            found=unknown,
        )
    return tuple([subset for subset in SUBSETS if subset in asked])


def _rdma(root: Root, recorded: Optional[dict[str, Any]]) -> dict[str, Any]:
    if recorded is None:
        answer = rdma_netlink.read(root)
    else:
        answer = records.part(root, recorded, "rdma", rdma_netlink.SOURCE, records.RdmaRecord)
    netdevs = {} if answer is None else {(port.device, port.port): port.netdev for port in answer.ports}
    mode = None if answer is None else answer.netns_mode
    fork = None if answer is None else answer.copy_on_fork
    parameter = root.value(kernel.PARAMETER)
    if parameter is None:
        root.fail(kernel.PARAMETER, "does not exist")
    if answer is not None and mode not in _MODES:
        root.fail(
            rdma_netlink.SOURCE,
            "the kernel does not tell the mode" if mode is None else "unknown mode %d" % mode,
        )
    return {
        "rdma": RdmaSystem(
            None if mode is None else _MODES.get(mode), parameter, None if fork is None else bool(fork)
        ),
        "devices": sysfs.devices(root, netdevs, _mtus(root, recorded is not None)),
        "char_devices": sysfs.char_devices(root),
    }


def _mtus(root: Root, recorded: bool) -> verbs.Mtus:
    """The MTU in use of the RDMA ports; nobody is asked on a node without RDMA devices."""
    return verbs.active_mtus(root, recorded) if root.names(sysfs.CLASS) else {}


def _links(root: Root, recorded: Optional[dict[str, Any]], wanted: tuple[str, ...]) -> dict[str, Any]:
    if recorded is None:
        answers = rtnetlink.read(root, "links" in wanted, "routes" in wanted)
    else:
        answers = records.part(root, recorded, "rtnetlink", rtnetlink.SOURCE, records.RtnetlinkRecord)
    values: dict[str, Any] = {}
    linker = links.Linker(root, answers) if answers is not None else None
    if "links" in wanted:
        values["links"] = None if linker is None else linker.links()
        values["arp_all"] = links.arp(root, "all")
        values["namespaces"] = links.namespaces(root)
    if "routes" in wanted and linker is not None:
        values["routes"] = linker.routes()
        values["rules"] = linker.rules()
    return values


def _firewall(
    root: Root, recorded: Optional[dict[str, Any]], release: str
) -> Optional[tuple[FirewallRule, ...]]:
    if recorded is None:
        answers = nftables.read(root, release)
    else:
        answers = records.part(root, recorded, "nftables", nftables.SOURCE, records.FilterRecord)
    found = None if answers is None else firewall.decisions(answers)
    if answers is not None and found is None:
        root.fail(nftables.SOURCE, "a chain has more than %d steps" % firewall.MOST_STEPS)
    return found


def needs_netlink(host_root: str, subsets: Iterable[str]) -> bool:
    """Whether a collection asks the kernel by netlink, so that the netlink library is needed."""
    root = Root(host_root)
    asked = set(subsets)
    if records.is_recorded(root):
        return False
    return bool(asked & {"links", "routes", "firewall"}) or (
        bool(asked & {"rdma", "slow"}) and root.exists(rdma_netlink.IB_CORE)
    )
