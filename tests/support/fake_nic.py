# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RoCE NICs that are not there: a tree of sysfs and configfs, a peer that answers DCB netlink, tools that keep state.

The peer takes the bytes that the netlink library makes of a message and reads them with ``struct`` alone, by the layout
of the kernel's headers, so that it does not believe what the code under test believes. What it keeps is a file beside
the tree: a killed run leaves it as a kernel would.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import deps
from ansible_collections.rdma.k8s.plugins.module_utils.host import changes, commands, dcb, roce_qos, undo

CM = "sys/kernel/config/rdma_cm"
PCI = "0000:3b:00.%d"


def after_boot() -> dict[str, Any]:
    """DCB of a port after a boot: trust pcp, no PFC, the host negotiates."""
    return {"pfc": 0, "apps": [], "dcbx": 9}


class Nics:
    """Some NICs ``rdmaN`` with devices ``mlx5_N`` below ``root``.

    :param vendor: the driver is that of the vendor's package: switches for ECN, a traffic class.
    :param layers: link layer of each.
    """

    def __init__(self, root: Path, state: Path, layers: tuple[str, ...], vendor: bool = True) -> None:
        self.root = root
        self.file = state
        self.vendor = vendor
        self.without_dcb: set[str] = set()
        self.silent: set[str] = set()
        self.gone: set[str] = set()
        self.refused: dict[str, int] = {}
        self.asked: list[tuple[int, str]] = []
        self.before_set: Callable[[], None] = lambda: None
        self._save({"rdma%d" % number: after_boot() for number in range(len(layers))})
        for number, layer in enumerate(layers):
            self._write_port(number, layer)
        self.write("proc/sys/net/ipv4/tcp_ecn", "2\n")
        for path in (CM, "etc/systemd/system"):
            (root / path).mkdir(parents=True)
        self.write("usr/sbin/dcb", "", 0o755)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def _write_port(self, number: int, layer: str) -> None:
        pci = "sys/devices/pci0000:3a/" + PCI % number
        device = "%s/infiniband/mlx5_%d" % (pci, number)
        port = device + "/ports/1"
        netdev = "rdma%d" % number
        self.write(port + "/link_layer", layer + "\n")
        self.write(pci + "/class", "0x020%d00\n" % (0 if layer == "Ethernet" else 7))
        if layer == "Ethernet":
            self.write(port + "/gid_attrs/ndevs/0", netdev + "\n")
        self.link("sys/class/infiniband/mlx5_%d" % number, "../../../" + device)
        self.link(device + "/device", "../..")
        self.link("sys/bus/pci/devices/" + PCI % number, "../../../../" + pci)
        self.write("%s/net/%s/mtu" % (pci, netdev), "4220\n")
        self.link("sys/class/net/" + netdev, "../../../%s/net/%s" % (pci, netdev))
        hidden = self.file.parent / ("mlx5_%d" % number) / "ports/1"
        hidden.mkdir(parents=True)
        (hidden / "default_roce_tos").write_text("0\n")
        (hidden / "default_roce_mode").write_text("RoCE v2\n")
        if self.vendor and layer == "Ethernet":
            for side in ("roce_np", "roce_rp"):
                for priority in range(8):
                    self.write("%s/net/%s/ecn/%s/enable/%d" % (pci, netdev, side, priority), "0\n")
            self.write("%s/net/%s/ecn/roce_np/cnp_dscp" % (pci, netdev), "26\n")
            self.write(device + "/tc/1/traffic_class", "\n")

    def link(self, path: str, target: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    # State

    def state(self, netdev: str) -> dict[str, Any]:
        return dict(json.loads(self.file.read_text())[netdev])

    def probe(self) -> dict[str, str]:
        """The state beside the tree, for comparisons."""
        return {"nics": self.file.read_text()}

    def change(self, netdev: str, **values: Any) -> None:
        """The kernel takes a value; an interface that is silent only says so."""
        if netdev not in self.silent:
            everything = json.loads(self.file.read_text())
            everything[netdev].update(values)
            self._save(everything)

    def _save(self, everything: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(everything, sort_keys=True))

    # Netlink

    def answer(self, kind: int, data: bytes) -> bytes:
        """The attributes of the answer to a message, or the error of the kernel."""
        _family, command = struct.unpack_from("=BB", data, 16)
        given = dict(_attributes(data[20:]))
        netdev = given[1].rstrip(b"\0").decode()
        self.asked.append((command, netdev))
        if netdev not in json.loads(self.file.read_text()) or netdev in self.gone:
            raise _error(errno.ENODEV)
        if netdev in self.without_dcb:
            raise _error(errno.EOPNOTSUPP)
        if kind == 79:
            self.before_set()
            refused = self.refused.get(netdev, 0)
            number = 14 if command == 23 else 13
            if refused:
                return _attribute(number, bytes([256 - refused]))
            return _attribute(number, bytes([self._set(netdev, command, given)]))
        held = self.state(netdev)
        if command == 22:
            return _attribute(14, bytes([held["dcbx"]]))
        assert command == 21, command
        pfc = struct.pack("=BBBxHxx8Q8Q", 8, held["pfc"], 0, 0, *range(8), *range(100, 108))
        table = b"".join(
            [_attribute(1, struct.pack("=BBH", 5, priority, dscp)) for dscp, priority in held["apps"]]
        )
        return _attribute(13, _attribute(2, pfc) + _attribute(3, table))

    def _set(self, netdev: str, command: int, given: dict[int, bytes]) -> int:
        """Do it as mlx5 does; DCBX goes back to firmware for no flags at all, and never for others without the host."""
        if command == 23:
            flags = given[14][0]
            if flags and not flags & 1:
                return 1
            self.change(netdev, dcbx=flags or self.state(netdev)["dcbx"] & ~1)
            return 0
        apps = [tuple(entry) for entry in self.state(netdev)["apps"]]
        for number, content in _attributes(given[13]):
            if number == 2:
                assert len(content) == 136
                assert content[0] == 8, "the other fields come back as they were told"
                self.change(netdev, pfc=content[1])
            else:
                assert number == 3
                for entry_number, entry in _attributes(content):
                    selector, priority, dscp = struct.unpack("=BBH", entry)
                    assert (entry_number, selector) == (1, 5)
                    if command == 27:
                        apps.remove((dscp, priority))
                    else:
                        assert command == 20
                        apps.append((dscp, priority))
                self.change(netdev, apps=sorted(apps))
        return 0

    def socket(self) -> Any:
        """A class that stands in for the netlink socket."""
        nics = self

        class Socket:
            def __init__(self, family: int) -> None:
                assert family == 0

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_details: object) -> None:
                return None

            def bind(self) -> None:
                return None

            def nlm_request(self, message: Any, kind: int, flags: int) -> list[Any]:
                assert flags & 1
                message["header"]["type"] = kind
                message["header"]["flags"] = flags
                message.encode()
                content = b"\0\0\0\0" + nics.answer(kind, bytes(message.data))
                reply = dcb._message_class()(
                    struct.pack("=IHHII", 16 + len(content), kind, 0, 1, 0) + content
                )
                reply.decode()
                return [reply]

        return Socket

    # configfs and the traffic class, which are not plain files

    def make_cm(self, root: Any, path: str, value: Any) -> None:
        """As ``roce_qos.write_cm_directory``: it shows what the device has, at once, and takes nothing away with it."""
        assert root.path == str(self.root)
        place = self.root / path[1:]
        hidden = self.file.parent / place.name
        if place.is_dir() != bool(value):
            (hidden if value else place).rename(place if value else hidden)

    def write_value(self, root: Any, path: str, value: str) -> None:
        """As ``changes.write_value``: a value takes the place of the former one, whatever their lengths.

        The traffic class reads back as a sentence.
        """
        assert root.path == str(self.root)
        place = self.root / path[1:]
        assert place.exists(), path
        if path.endswith("/traffic_class"):
            value = "Global tclass=%s" % value if int(value) >= 0 else ""
        place.write_text(value + "\n")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        size, number = struct.unpack_from("=HH", data, at)
        assert 4 <= size <= len(data) - at, "a length that does not fit"
        yield number, data[at + 4 : at + size]
        at += (size + 3) // 4 * 4


def _attribute(number: int, content: bytes) -> bytes:
    size = 4 + len(content)
    return struct.pack("=HH", size, number) + content + b"\0" * (-size % 4)


def _error(number: int) -> Exception:
    error: Exception = deps.pyroute2().NetlinkError(number, os.strerror(number))
    return error


def install(patch: pytest.MonkeyPatch, nics: Nics) -> Nics:
    """Let the code meet these NICs."""
    patch.setattr(dcb, "_socket_class", nics.socket)
    for module in (changes, roce_qos):
        patch.setattr(module, "write_value", nics.write_value)
    patch.setitem(undo.SETTINGS, "value", undo.Setting(changes.read_value, nics.write_value))
    patch.setattr(roce_qos, "write_cm_directory", nics.make_cm)
    patch.setitem(undo.SETTINGS, "rdma_cm", undo.Setting(roce_qos.read_cm_directory, nics.make_cm))
    return nics


# Tools


def install_tool(root: Path, path: str, program: str) -> None:
    """A program of the tree, in Python."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!%s -ES\n%s" % (sys.executable, program))
    place.chmod(0o755)


def run_below_root(patch: pytest.MonkeyPatch, root: Path) -> list[list[str]]:
    """Start programs of the tree where the code would change its root, which a test cannot: the tree has no system.

    :returns: the command lines, which grow.
    """
    started: list[list[str]] = []
    real = subprocess.Popen

    class Popen(real):  # type: ignore[type-arg, misc, valid-type]
        def __init__(self, words: list[str], **options: Any) -> None:
            assert words[:2] == ["chroot", str(root)], words
            started.append(words[2:])
            program = str(root) + words[2]
            options["env"] = {**options["env"], "TREE": str(root)}
            super().__init__([program, *words[3:]], **options)

    patch.setattr(commands.subprocess, "Popen", Popen)
    return started
