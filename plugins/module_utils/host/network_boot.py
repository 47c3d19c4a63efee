# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Is the root file system on the network, and over which NIC (DEV-36). Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import re
from typing import Optional

from ..core import kernel_modules, modprobe
from ..core.snapshot import NetworkBoot
from .files import Root

IBFT = "/sys/firmware/ibft"
_NET = "/sys/class/net"
_FUNCTIONS = "/sys/bus/pci/devices"
_LARGE = 16 << 20
_NETWORK_CLASS = "0x02"
_OPTIONS = re.compile(
    r"(netroot=|nfsroot=|rd\.iscsi|iscsi_|rd\.nbd|root=(/dev/nfs|nfs|nfs4|iscsi|nbd|/dev/nbd|http|https|live:http)\b)"
)
_REMOTE_TYPES = ("nfs", "nfs4", "cifs", "9p", "ceph")


def read(root: Root, release: str) -> Optional[NetworkBoot]:
    """What says that the root is on the network, and the NIC; ``None`` when the command line cannot be read."""
    text = root.read("/proc/cmdline")
    if text is None:
        root.fail("/proc/cmdline", "does not exist")
        return None
    words = modprobe.split(text)
    how = _how(root, words)
    if not how:
        return NetworkBoot()
    nic = _nic(root, words)
    driver = root.link("%s/%s/device/driver" % (_NET, nic)).replace("-", "_") if nic else ""
    builtin = root.read("/lib/modules/%s/modules.builtin" % release, _LARGE) or ""
    return NetworkBoot(how, nic, driver, driver in kernel_modules.parse_builtin(builtin))


def drivers(root: Root) -> set[str]:
    """The drivers of the network functions of this node, as the kernel names modules."""
    found = set()
    for address in root.names(_FUNCTIONS) or ():
        if (root.value("%s/%s/class" % (_FUNCTIONS, address)) or "").startswith(_NETWORK_CLASS):
            found.add(root.link("%s/%s/driver" % (_FUNCTIONS, address)).replace("-", "_"))
    for name in root.names(_NET) or ():  # virtio: the driver of the interface is not that of the function
        found.add(root.link("%s/%s/device/driver" % (_NET, name)).replace("-", "_"))
    return found - {""}


def _how(root: Root, words: list[str]) -> str:
    for word in words:
        match = _OPTIONS.match(word)
        if match is not None:
            return "the kernel command line has %s" % match[1].rstrip("=")
    if any(name.startswith("ethernet") for name in root.names(IBFT) or ()):
        return "the firmware has an iSCSI boot table"
    for line in (root.read("/proc/mounts", _LARGE) or "").splitlines():
        fields = line.split()
        if len(fields) > 2 and fields[1] == "/" and fields[2] in _REMOTE_TYPES:
            return "/ is of the type %s" % fields[2]
    return ""


def _nic(root: Root, words: list[str]) -> str:
    """The NIC of the firmware's table, else of a word of the command line, else of the default route."""
    macs = {
        (root.value("%s/%s/address" % (_NET, name)) or "").lower(): name for name in root.names(_NET) or ()
    }
    for name in root.names(IBFT) or ():
        mac = (root.value("%s/%s/mac" % (IBFT, name)) or "").lower() if name.startswith("ethernet") else ""
        if mac in macs:
            return macs[mac]
    for word in words:
        key, equals, value = word.partition("=")
        if key == "BOOTIF" and equals:
            mac = value.lower()[3:].replace("-", ":")
            if mac in macs:
                return macs[mac]
        if key == "ip" and value.count(":") >= 5:
            name = re.sub(r"\[[^]]*\]", "", value).split(":")[5]
            if name in macs.values():
                return name
    for line in (root.read("/proc/net/route", _LARGE) or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == "00000000" and fields[7] == "00000000":
            return fields[0]
    return ""
