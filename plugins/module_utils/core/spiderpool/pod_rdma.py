# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The RDMA devices of a running pod: GIDs, GUIDs, device files, limits, and whom to talk to. Private to rdma.k8s.

It may change with any release. What a pod shows of its network is judged by :mod:`.pod_network`; this is what an
application needs beside it. Everything comes from plain data that was read inside the pod.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..kube.objects import entries, mapping, text
from ..net import Address, Prefix, find_address, find_prefix, quoted
from ..rdma_text import ACTIVE
from .issue import Issue, error, ordered, warning, whole
from .names import ETHERNET, INFINIBAND

ROCE_V2 = "RoCE v2"
LIDS = (1, 49151)
"""Addresses of single ports on InfiniBand; 0 and 65535 say that no subnet manager gave one (S142)."""
IPC_LOCK = 14
"""Number of the capability that lets a process lock memory."""
UNLIMITED = "unlimited"
_V4_MAPPED = 0xFFFF << 32


class Gid(NamedTuple):
    """An entry of the table of a port; ``number`` is its index."""

    number: int
    type: str
    netdev: str
    address: Optional[Address]


class Device(NamedTuple):
    """An RDMA device with its first port. ``uverbs`` is the number of its device file as sysfs tells it, such as
    ``231:192``; ``None`` where a value is not told."""

    name: str
    guid: str
    link_layer: str
    state: str
    lid: Optional[int]
    sm_lid: Optional[int]
    active_mtu: Optional[int]
    uverbs: str
    gids: tuple[Gid, ...]


class Nic(NamedTuple):
    """A further interface of the pod. ``pf_mtu`` is the MTU of the physical function below it."""

    name: str
    address: Optional[Prefix]
    mtu: Optional[int] = None
    pf_mtu: Optional[int] = None


class PodRdma(NamedTuple):
    """What a pod shows. ``files`` are the numbers of the files below ``/dev/infiniband`` by their names.

    ``capabilities`` is the set of the process as a number, ``memlock`` its limit as text; ``verbs`` are the devices
    that the library of the image finds. ``None``: not read.
    """

    nics: tuple[Nic, ...]
    devices: tuple[Device, ...]
    files: Mapping[str, str]
    capabilities: Optional[int]
    memlock: str
    verbs: Optional[tuple[str, ...]]


class Verdict(NamedTuple):
    """What is wrong, and the index of the GID that an application needs, by device (S137)."""

    issues: list[Issue]
    gid_index: dict[str, int]


class Pair(NamedTuple):
    """One test of traffic: everything that the tool must be told, since its guesses are wrong (S144)."""

    nic: str
    device: str
    gid_index: Optional[int]
    target: str


def of_plain(content: Mapping[str, Any]) -> PodRdma:
    """From plain data: ``nics``, ``devices``, ``files``, ``capabilities``, ``memlock``, ``verbs``."""
    verbs = content.get("verbs")
    return PodRdma(
        tuple(
            [
                Nic(
                    text(entry.get("name")),
                    find_prefix(entry.get("address")),
                    whole(entry.get("mtu")),
                    whole(entry.get("pf_mtu")),
                )
                for _at, entry in entries(content.get("nics"))
            ]
        ),
        tuple([_device(entry) for _at, entry in entries(content.get("devices"))]),
        {name: number for name, number in mapping(content, "files").items() if isinstance(number, str)},
        whole(content.get("capabilities")),
        text(content.get("memlock")),
        tuple([name for name in verbs if isinstance(name, str)]) if isinstance(verbs, list) else None,
    )


def _device(entry: Mapping[str, Any]) -> Device:
    gids = []
    for _at, gid in entries(entry.get("gids")):
        index = whole(gid.get("index"))
        if index is not None:
            found = find_address(gid.get("gid"))
            gids.append(Gid(index, text(gid.get("type")), text(gid.get("netdev")), _plain_address(found)))
    layer = text(entry.get("link_layer")).lower()
    return Device(
        text(entry.get("name")),
        text(entry.get("node_guid")),
        {"infiniband": INFINIBAND, "ethernet": ETHERNET}.get(layer, ""),
        text(entry.get("state")),
        whole(entry.get("lid")),
        whole(entry.get("sm_lid")),
        whole(entry.get("active_mtu")),
        text(entry.get("uverbs")),
        tuple(gids),
    )


def _plain_address(found: Optional[Address]) -> Optional[Address]:
    """``::ffff:172.16.11.10`` as the IPv4 address that it stands for."""
    if found is not None and found.version == 6 and found.value >> 32 == 0xFFFF:
        return Address(4, found.value - _V4_MAPPED)
    return found


def judge(pod: PodRdma, isolated: bool = True) -> Verdict:
    """What an application would stumble over (S137 to S143).

    :param isolated: whether the nodes are in exclusive mode; else the pod sees the devices of others too, which are
        left alone (S136).
    """
    found: list[Issue] = []
    indexes: dict[str, int] = {}
    for nic in pod.nics:
        match = _gid_of(nic, pod.devices)
        if match is not None:
            device, gid = match
            indexes[device.name] = gid.number
        elif not any(device.link_layer == INFINIBAND for device in pod.devices):
            message = "no device has a %s entry for %s on this interface" % (
                ROCE_V2,
                nic.address or "its address",
            )
            found.append(error("gid-missing", nic.name, message))
        found += _mtu(nic)
    mine = own(pod, isolated)
    for device in mine:
        found += _guid(device)
        found += _file(device, pod.files)
        if device.link_layer == INFINIBAND:
            found += _infiniband(device)
    found += _memory(pod)
    if pod.verbs is not None:
        found += _library(mine, pod.verbs)
    return Verdict(ordered(found), indexes)


def own(pod: PodRdma, isolated: bool) -> list[Device]:
    """The devices that are judged: all, or in shared mode those that have the GID of an interface (S136)."""
    if isolated:
        return list(pod.devices)
    matches = [_gid_of(nic, pod.devices) for nic in pod.nics]
    served = {match[0].name for match in matches if match is not None}
    return [device for device in pod.devices if device.name in served]


def _gid_of(nic: Nic, devices: Iterable[Device]) -> Optional[tuple[Device, Gid]]:
    """The device and its entry of type RoCE v2 on an interface, with the address of the interface (S137)."""
    if nic.address is None:
        return None
    own = Address(nic.address.version, nic.address.value)
    for device in devices:
        for gid in device.gids:
            if gid.type == ROCE_V2 and gid.netdev == nic.name and gid.address == own:
                return device, gid
    return None


def _guid(device: Device) -> Iterator[Issue]:
    """With zeros the device is listed, and no memory can be registered (S138)."""
    if device.guid and not device.guid.strip("0:"):
        yield error("guid-unset", device.name, "the node GUID is all zeros, so no memory can be registered")


def _file(device: Device, files: Mapping[str, str]) -> Iterator[Issue]:
    """The device file in the container must be that of the device (S139)."""
    if not device.uverbs:
        yield error("uverbs-missing", device.name, "the device has no uverbs file")
        return
    held = {name for name, number in files.items() if number == device.uverbs}
    if not held:
        others = sorted([name for name in files if name.startswith("uverbs")])
        message = "its file %s is not in the container, which has %s" % (
            device.uverbs,
            ", ".join(others) or "none",
        )
        yield error("uverbs-foreign" if others else "uverbs-missing", device.name, message)


def _memory(pod: PodRdma) -> Iterator[Issue]:
    """Memory for RDMA is locked: by the capability, or without a limit (S140)."""
    if pod.capabilities is None and not pod.memlock:
        return
    may = pod.capabilities is not None and bool(pod.capabilities >> IPC_LOCK & 1)
    if not may and pod.memlock != UNLIMITED:
        message = "the container may lock %s bytes and has no IPC_LOCK" % (pod.memlock or "few")
        yield error("memlock-limited", "container", message)


def _mtu(nic: Nic) -> Iterator[Issue]:
    """A virtual function is never above its physical one (S141)."""
    if nic.mtu is not None and nic.pf_mtu is not None and nic.mtu > nic.pf_mtu:
        message = "MTU %d, and the physical function has %d" % (nic.mtu, nic.pf_mtu)
        yield error("mtu-exceeds-pf", nic.name, message)


def _infiniband(device: Device) -> Iterator[Issue]:
    """An address by a subnet manager, and an active port (S142)."""
    if device.state != ACTIVE:
        yield error("ib-not-active", device.name, "the port is %s" % (device.state or "unknown"))
    if device.lid is None or not LIDS[0] <= device.lid <= LIDS[1]:
        message = "the LID is %s, not %d to %d: no subnet manager gave one" % (quoted(device.lid), *LIDS)
        yield error("ib-lid-invalid", device.name, message)
    if not device.sm_lid:
        yield error("ib-sm-missing", device.name, "no subnet manager is at work on the port")


def _library(devices: Iterable[Device], verbs: Collection[str]) -> Iterator[Issue]:
    """A library that does not know the driver of the host finds fewer devices than the kernel (S143)."""
    for device in devices:
        if device.name not in verbs:
            message = "the kernel has the device, and the library of the image does not find it"
            yield error("verbs-missing", device.name, message)


# Two pods


def compare(pod: PodRdma, peer: PodRdma) -> list[Issue]:
    """What differs at the ends of a rail: the MTU in use must be the same (S141)."""
    mine, theirs = devices_by_nic(pod), devices_by_nic(peer)
    found = []
    for called, device in mine.items():
        other = theirs.get(called)
        if other is None:
            found.append(
                warning("peer-lacks-rail", called, "the other pod has no such interface with a device")
            )
        elif None not in (device.active_mtu, other.active_mtu) and device.active_mtu != other.active_mtu:
            message = "the MTU in use is %s here and %s there" % (device.active_mtu, other.active_mtu)
            found.append(error("active-mtu-differs", called, message))
    return ordered(found)


def pairs(pod: PodRdma, peer: PodRdma) -> list[Pair]:
    """The tests from one pod to another, netK to netK, with device and GID index chosen (S144).

    On InfiniBand, where no GID names an interface, devices and interfaces are taken in their order, when there are as
    many of each.
    """
    indexes = judge(pod).gid_index
    targets = {nic.name: nic.address for nic in peer.nics}
    found = []
    for called, device in devices_by_nic(pod).items():
        target = targets.get(called)
        if target is not None:
            address = str(Address(target.version, target.value))
            found.append(Pair(called, device.name, indexes.get(device.name), address))
    return found


def devices_by_nic(pod: PodRdma) -> dict[str, Device]:
    """The device behind each interface; on InfiniBand by their order, when there are as many of each (S144)."""
    found = {}
    for nic in pod.nics:
        match = _gid_of(nic, pod.devices)
        if match is not None:
            found[nic.name] = match[0]
    infiniband = [device for device in pod.devices if device.link_layer == INFINIBAND]
    if not found and len(infiniband) == len(pod.nics):
        found = {nic.name: device for nic, device in zip(pod.nics, infiniband)}
    return found


def on_rail(target: Any, nics: Sequence[Nic]) -> list[Issue]:
    """Whether the target of a test is on the network of one of the interfaces; a wrong one proves nothing (S144)."""
    address = find_address(target)
    if address is None:
        return [error("target-syntax", "target", "the target is an address, found %s" % quoted(target))]
    if any(nic.address is not None and nic.address.masked().contains(address) for nic in nics):
        return []
    return [error("target-off-rail", "target", "%s is on the network of no interface of the pod" % address)]
