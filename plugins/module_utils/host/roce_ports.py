# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA ports of a node with interface and place, and their RoCE settings as they are. Private to rdma.k8s."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Callable, Optional

from ..core import codec, roce_qos
from ..core.errors import RdmaError
from ..core.roce_qos import ETHERNET, PRIORITIES, PortQos
from . import dcb, records
from .files import Root
from .sysfs import CLASS, pci_address

NET = "/sys/class/net"
CONFIGFS = "/sys/kernel/config/rdma_cm"
DEBUGFS = "/sys/kernel/debug/mlx5"
_TCLASS = re.compile(r"Global tclass=(\d+)")
UNSET = -1
"""The traffic class of a device that has the setting and no value."""


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device. ``netdev`` and ``pci`` are empty where there is none."""

    device: str
    port: int
    netdev: str
    link_layer: str
    pci: str
    is_vf: bool = False

    @property
    def name(self) -> str:
        """The interface, else device and port."""
        return self.netdev or "%s/%d" % (self.device, self.port)

    def ecn_enable(self, side: str, priority: int) -> str:
        """The switch of ``roce_np`` or ``roce_rp`` for a priority (S52)."""
        return "%s/%s/ecn/%s/enable/%d" % (NET, self.netdev, side, priority)

    @property
    def cnp_files(self) -> tuple[str, ...]:
        """Where the DSCP value of CNP can stand: the vendor's driver (S52), the kernel's own (S58)."""
        places = ["%s/%s/ecn/roce_np/cnp_dscp" % (NET, self.netdev)] if self.netdev else []
        if self.pci:
            places.append("%s/%s/cc_params/np_cnp_dscp" % (DEBUGFS, self.pci))
        return tuple(places)

    @property
    def cm_directory(self) -> str:
        """The directory of the device for RDMA-CM; somebody has to make it (S58)."""
        return "%s/%s" % (CONFIGFS, self.device)

    def cm_file(self, name: str) -> str:
        """``default_roce_tos`` or ``default_roce_mode``."""
        return "%s/ports/%d/%s" % (self.cm_directory, self.port, name)

    @property
    def traffic_class_file(self) -> str:
        """Of the vendor's driver only (S53)."""
        return "%s/%s/tc/%d/traffic_class" % (CLASS, self.device, self.port)


def ports(root: Root) -> list[Port]:
    """All ports, by device and number. The first GID of a port names its interface (F134)."""
    found = []
    for device in root.names(CLASS) or ():
        base = "%s/%s" % (CLASS, device)
        pci = pci_address(root, base)
        is_vf = bool(pci) and root.exists("/sys/bus/pci/devices/%s/physfn" % pci)
        for number in sorted([int(name) for name in root.names(base + "/ports") or () if name.isdecimal()]):
            place = "%s/ports/%d" % (base, number)
            layer = root.value(place + "/link_layer") or ""
            netdev = root.value(place + "/gid_attrs/ndevs/0") if layer == ETHERNET else ""
            found.append(Port(device, number, netdev or _only_netdev(root, base), layer, pci, is_vf))
    return found


def _only_netdev(root: Root, base: str) -> str:
    names = root.names(base + "/device/net") or ()
    return names[0] if len(names) == 1 else ""


def read(root: Root, port: Port, ask: Callable[[Port], dcb.State]) -> PortQos:
    """The settings of a port. What it does not have is ``None``; that its driver has no DCB stands in ``dcb``.

    :param ask: asks the driver of a port's interface for its DCB state.
    :raises RdmaError: what ``ask`` raises, but ``dcb_unsupported``.
    """
    reason, state = "", None
    if port.link_layer == ETHERNET:
        try:
            state = ask(port)
        except RdmaError as error:
            if error.code != "dcb_unsupported":
                raise
            reason = error.message
    return PortQos(
        device=port.device,
        port=port.port,
        netdev=port.netdev,
        link_layer=port.link_layer,
        dcb=reason,
        dcbx=None if state is None else state.dcbx,
        trust=None if state is None else state.trust,
        pfc=None if state is None else state.pfc,
        dscp_map=None if state is None else roce_qos.write_map(state.map),
        ecn_np=_enabled(root, port, "roce_np"),
        ecn_rp=_enabled(root, port, "roce_rp"),
        cnp_dscp=_first_number(root, port.cnp_files),
        cm_tos=_first_number(root, (port.cm_file("default_roce_tos"),)),
        cm_mode=root.value(port.cm_file("default_roce_mode")),
        traffic_class=read_traffic_class(root, port.traffic_class_file),
    )


def _enabled(root: Root, port: Port, side: str) -> Optional[int]:
    if not port.netdev or not root.exists("%s/%s/ecn/%s/enable" % (NET, port.netdev, side)):
        return None
    texts = [root.value(port.ecn_enable(side, priority)) for priority in range(PRIORITIES)]
    return None if None in texts else roce_qos.mask_of([n for n, text in enumerate(texts) if text != "0"])


def _first_number(root: Root, paths: tuple[str, ...]) -> Optional[int]:
    for path in paths:
        text = root.value(path)
        if text is not None:
            return codec.natural(text)
    return None


def read_traffic_class(root: Root, path: str) -> Optional[int]:
    """The forced traffic class of a device (S53); :data:`UNSET` where the file says none, ``None`` without the file."""
    text = root.value(path)
    if text is None:
        return None
    match = _TCLASS.search(text)
    return int(match[1]) if match else UNSET


def read_all(root: Root) -> Optional[tuple[PortQos, ...]]:
    """The settings of all ports, for a snapshot; ``None`` with the reason among the errors when they cannot be read.

    :raises RdmaError: ``library_missing``.
    """
    found = ports(root)
    if not records.is_recorded(root):
        return tuple([read(root, port, _live) for port in found])
    answers = records.part(root, records.load(root) or {}, "dcb", dcb.SOURCE, records.DcbRecord)
    if answers is None:
        return None
    told = {answer.netdev: answer for answer in answers.interfaces}

    def recorded(port: Port) -> dcb.State:
        answer = told.get(port.netdev)
        if answer is None or answer.pfc is None:
            raise dcb.unsupported(port.netdev)
        return dcb.State(answer.pfc, tuple(roce_qos.read_map(answer.map).items()), answer.dcbx)

    try:
        return tuple([read(root, port, recorded) for port in found])
    except RdmaError as error:  # a map that is none
        root.fail(dcb.SOURCE, error.message)
        return None


def _live(port: Port) -> dcb.State:
    """A port that fails does not hide the others: what is wrong becomes its reason."""
    try:
        return dcb.read(port.netdev)
    except RdmaError as error:
        if error.code in ("library_missing", "dcb_unsupported"):
            raise
        raise RdmaError("dcb_unsupported", error.message, netdev=port.netdev) from error


def is_mounted(root: Root) -> bool:
    """Whether RDMA-CM shows its settings (S58): its module is loaded and configfs is mounted."""
    return os.path.isdir(root.path + CONFIGFS)
