# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""RDMA devices, their GID tables and network PCI functions from sysfs. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import replace
from typing import Optional

from ..core.snapshot import GidGroup, PciFunction, RdmaDevice, RdmaPort
from .files import Root, reason_of

CLASS = "/sys/class/infiniband"
VERBS = "/sys/class/infiniband_verbs"
NODES = "/dev/infiniband"
FUNCTIONS = "/sys/bus/pci/devices"

INFINIBAND = "InfiniBand"
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_WORD = re.compile(
    r"(?![=-]$)\S{0,64}"
)  # a row of a snapshot is split at spaces, "=" and "-" have a meaning there
_HEX4 = re.compile(r"0x[0-9a-f]{4}", re.ASCII)
_HEX6 = re.compile(r"0x[0-9a-f]{6}", re.ASCII)
_GID = re.compile(rb"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}")
_ZERO = b"0000:0000:0000:0000:0000:0000:0000:0000"
_MAPPED = "0000:0000:0000:0000:0000:ffff:"
_DEFAULT_PREFIX = "fe80:0000:0000:0000:"
_TYPES = {"IB/RoCE v1": "v1", "RoCE v2": "v2"}
_OF_DEVICES = ("by-", "uverbs", "umad", "issm")  # udev makes directories of links beside the files
_EMPTY_ENTRY = (errno.EINVAL, errno.ENODEV, errno.ENOENT)


def pci_address(root: Root, place: str) -> str:
    """The PCI function that a device of a class of sysfs sits on, also through a virtio device; empty: virtual."""
    for link in (place, place + "/device"):
        try:
            found = _PCI.findall(os.readlink(root.path + link))
        except (OSError, ValueError):
            continue
        if found:
            return found[-1]
    return ""


def devices(
    root: Root, netdevs: dict[tuple[str, int], str], mtus: dict[tuple[str, int], int]
) -> Optional[tuple[RdmaDevice, ...]]:
    """All RDMA devices; none there is an empty list, ``None`` means that the class cannot be read.

    :param netdevs: interface of a device's port, as RDMA netlink names it (NODE-013).
    :param mtus: MTU in use of a device's port, in bytes.
    """
    names = root.names(CLASS)
    if names is None:
        return () if not root.exists(CLASS) else None
    files = _verbs_files(root)
    found = [_device(root, name, files.get(name, ""), netdevs) for name in names]
    return tuple([_with_mtus(device, mtus) for device in found])


def _with_mtus(device: RdmaDevice, mtus: dict[tuple[str, int], int]) -> RdmaDevice:
    ports = [replace(port, active_mtu=mtus.get((device.name, port.port))) for port in device.ports]
    return replace(device, ports=tuple(ports))


def _verbs_files(root: Root) -> dict[str, str]:
    """Device to the name of its verbs file, for the files that are in ``/dev/infiniband``."""
    present = set(root.names(NODES) or ())
    files = {}
    for name in root.names(VERBS) or ():
        device = root.value("%s/%s/ibdev" % (VERBS, name)) if name.startswith("uverbs") else None
        if device and name in present:
            files[device] = name
    return files


def char_devices(root: Root) -> tuple[str, ...]:
    """The files of ``/dev/infiniband`` that belong to no single device."""
    return tuple([name for name in root.names(NODES) or () if not name.startswith(_OF_DEVICES)])


def _device(root: Root, name: str, uverbs: str, netdevs: dict[tuple[str, int], str]) -> RdmaDevice:
    base = "%s/%s" % (CLASS, name)
    numbers = sorted([int(port) for port in root.names(base + "/ports") or () if port.isdecimal()])
    return RdmaDevice(
        name=name,
        pci=pci_address(root, base),
        guid=(root.value(base + "/node_guid") or "").replace(":", ""),
        firmware=root.value(base + "/fw_ver") or "",
        board=root.value(base + "/board_id") or "",
        uverbs=uverbs,
        ports=tuple([_port(root, name, number, netdevs.get((name, number))) for number in numbers]),
    )


def _port(root: Root, device: str, number: int, netdev: Optional[str]) -> RdmaPort:
    base = "%s/%s/ports/%d" % (CLASS, device, number)
    layer = root.value(base + "/link_layer")
    entries = _gid_entries(root, base, layer == INFINIBAND)
    if netdev is None:  # RDMA netlink did not answer: the first entry of the table is the port's own (F134)
        netdev = entries[0][3] if entries else ""
    return RdmaPort(
        port=number,
        state=_name_of_state(root.value(base + "/state")),
        phys_state=_name_of_state(root.value(base + "/phys_state")),
        link_layer=layer,
        rate=root.value(base + "/rate"),
        netdev=netdev,
        sm_lid=_number(root.value(base + "/sm_lid")) if layer == INFINIBAND else None,
        gids=None if entries is None else _group(entries, netdev),
    )


def _name_of_state(text: Optional[str]) -> Optional[str]:
    """``4: ACTIVE`` -> ``ACTIVE`` (S29); another form is kept as it is."""
    if text is None:
        return None
    head, _colon, name = text.partition(":")
    return name.strip() if head.isdecimal() and name.strip() else text


def _number(text: Optional[str]) -> Optional[int]:
    try:
        return int(text or "", 16 if (text or "").startswith("0x") else 10)
    except ValueError:
        return None


def _gid_entries(root: Root, base: str, native: bool) -> Optional[list[tuple[int, str, str, str]]]:
    """The used entries of a GID table: index, address, type, interface. ``None``: the table cannot be read.

    Only the GIDs themselves are read for all of the up to 256 entries; type and interface of an unused entry answer
    with an error anyway (S33).
    """
    table = base + "/gids"
    try:
        directory = os.open(root.path + table, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        root.fail(table, reason_of(error))
        return None
    entries = []
    try:
        for name in os.listdir(directory):
            gid = _gid(root, directory, table, name) if name.isdecimal() else None
            if gid:
                entries.append((int(name), gid))
    finally:
        os.close(directory)
    entries.sort()
    return [
        (index, gid, "ib" if native else _gid_type(root, base, index), _gid_netdev(root, base, index))
        for index, gid in entries
    ]


def gids_of(root: Root, device: str, port: int, address: str) -> list[tuple[int, str]]:
    """Index and type (``v1``, ``v2``) of the GIDs with an address (IPv4 where it is mapped), in the order of indexes.

    An unstable thing: a GID comes and goes some milliseconds after its address, at any free index (F134, L6, L9).
    """
    base = "%s/%s/ports/%d" % (CLASS, device, port)
    entries = _gid_entries(root, base, False) or []
    return [(index, kind) for index, gid, kind, _netdev in entries if kind and short_gid(gid) == address]


def _gid(root: Root, directory: int, table: str, name: str) -> Optional[str]:
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        root.fail("%s/%s" % (table, name), reason_of(error))
        return None
    try:
        text = os.read(handle, 64).strip()
    except OSError as error:
        if error.errno not in _EMPTY_ENTRY:
            root.fail("%s/%s" % (table, name), reason_of(error))
        return None
    finally:
        os.close(handle)
    if text == _ZERO:
        return None
    if not _GID.fullmatch(text):
        root.fail("%s/%s" % (table, name), "not a GID: %r" % text.decode("utf-8", "replace"))
        return None
    return text.decode("ascii")


def _gid_type(root: Root, base: str, index: int) -> str:
    text = _attribute(root, "%s/gid_attrs/types/%d" % (base, index))
    found = _TYPES.get(text or "")
    if text and not found:
        root.fail("%s/gid_attrs/types" % base, "an unknown type: %r" % text[:40])
    return found or ""


def _gid_netdev(root: Root, base: str, index: int) -> str:
    text = _attribute(root, "%s/gid_attrs/ndevs/%d" % (base, index)) or ""
    return text if len(text.split()) == 1 else ""


def _attribute(root: Root, path: str) -> Optional[str]:
    """An attribute of a GID entry; the entry can go away between two reads, which is no error (S33)."""
    try:
        handle = os.open(root.path + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in _EMPTY_ENTRY:
            root.fail(path, reason_of(error))
        return None
    try:
        return os.read(handle, 256).decode("utf-8", "replace").strip()
    except OSError as error:
        if error.errno not in _EMPTY_ENTRY:
            root.fail(path, reason_of(error))
        return None
    finally:
        os.close(handle)


def _group(entries: list[tuple[int, str, str, str]], netdev: str) -> tuple[GidGroup, ...]:
    """The entries by address and interface, in the order of their first index; entries without a type are left out."""
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for index, gid, kind, owner in entries:
        if kind:
            key = (short_gid(gid), "" if owner == netdev else owner)
            groups.setdefault(key, []).append((index, kind))
    return tuple([GidGroup(address, tuple(pairs), owner) for (address, owner), pairs in groups.items()])


def short_gid(gid: str) -> str:
    """A GID of sysfs (eight groups of four digits) as IPv4 address where it is mapped, else in the short IPv6 form."""
    if gid.startswith(_MAPPED):
        digits = gid[len(_MAPPED) :].replace(":", "")
        return ".".join([str(int(digits[n : n + 2], 16)) for n in (0, 2, 4, 6)])
    words = [word.lstrip("0") or "0" for word in gid.split(":")]
    start, length = 0, 0
    for position in range(len(words)):
        run = 0
        while position + run < len(words) and words[position + run] == "0":
            run += 1
        if run > length:
            start, length = position, run
    if length < 2:
        return ":".join(words)
    return "%s::%s" % (":".join(words[:start]), ":".join(words[start + length :]))


def functions(root: Root) -> Optional[tuple[PciFunction, ...]]:
    """The PCI functions of class 02 (network), in the order of their addresses; ``None``: the bus cannot be read."""
    names = root.names(FUNCTIONS)
    if names is None:
        return () if not root.exists(FUNCTIONS) else None
    return tuple([function for name in names for function in _function(root, name)])


def _function(root: Root, name: str) -> list[PciFunction]:
    base = "%s/%s" % (FUNCTIONS, name)
    code = root.value(base + "/class")
    if code is None or not code.startswith("0x02"):
        return []
    vendor, device = root.value(base + "/vendor") or "", root.value(base + "/device") or ""
    if not (
        _PCI.fullmatch(name) and _HEX6.fullmatch(code) and _HEX4.fullmatch(vendor) and _HEX4.fullmatch(device)
    ):
        root.fail(base, "class, vendor or device cannot be read")
        return []
    driver, vf_of = root.link(base + "/driver"), root.link(base + "/physfn")
    if not _WORD.fullmatch(driver) or (vf_of and not _PCI.fullmatch(vf_of)):
        root.fail(base, "driver or physical function cannot be read")
        return []
    numa = root.value(base + "/numa_node")
    return [
        PciFunction(
            address=name,
            id="%s:%s" % (vendor[2:], device[2:]),
            pci_class=code[2:6],
            driver=driver,
            numa=count(numa),
            vf_of=vf_of,
            vfs=count(root.value(base + "/sriov_numvfs")) or 0,
            total_vfs=count(root.value(base + "/sriov_totalvfs")) or 0,
        )
    ]


def count(text: Optional[str]) -> Optional[int]:
    """A number of sysfs; ``None`` for what is not there, not a number, or -1 (no NUMA node)."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else None
