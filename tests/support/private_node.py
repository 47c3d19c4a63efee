# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in namespaces of its own on this machine: live links, routes, rules and sysctls, recorded sysfs and metadata.

A test that is decorated runs in a forked child which has network and mount namespaces of its own, so nothing of it
reaches the machine. Its NICs ``rdma0`` and ``rdma1`` are ends of veth pairs; the other ends, ``far0`` and ``far1``,
are in the namespace ``far`` and have the addresses of a second node's children. This kernel may lack IPvlan, so the
children are macvlan here (the module's constants are exchanged); what only IPvlan shows is tested in the lab. What a
driver does to the GID table is done by a thread that looks at the addresses of the namespaces.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import ipaddress
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Address
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.host import children, namespaces, rtnetlink
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.module_utils.host.link_dump import read_links
from ansible_collections.rdma.k8s.plugins.module_utils.host.records import LinkRecord
from ansible_collections.rdma.k8s.tests.support import fake_imds, fleet, node_tree

RAILS = (0, 1)
MTU = 4220
KIND, DATA, MODE = "macvlan", {"macvlan_mode": "bridge"}, 4
CHILD = {0: "10.208.13.19", 1: "10.208.45.19"}  # F15
FAR = {0: "10.208.13.20", 1: "10.208.45.20"}
_NEWNS, _NEWNET = 0x20000, 0x40000000
_LIMIT = 300


class PrivateNode:
    """What a test gets: the node's options for a module, and hands to break it with."""

    def __init__(self, tree: Path, imds: fake_imds.FakeImds, snapshot: NodeSnapshot) -> None:
        self.tree = tree
        self.imds = imds
        self.snapshot = snapshot
        self.root = Root("/")
        self._stop = threading.Event()
        self._gids = threading.Thread(target=self._keep_gids, daemon=True)
        self.gids_follow = True

    @property
    def options(self) -> dict[str, Any]:
        """Options that a module needs to read this node."""
        return {"imds_url": self.imds.url, "imds_timeout": 2}

    def ip(self, *words: str) -> str:
        """Run ``ip``; its output."""
        return _run("ip", *words)

    def inside(self, name: str, act: Callable[[], Any]) -> Any:
        """Do something in a named namespace."""
        with namespaces.opened(namespaces.place_of(self.root, name), name) as namespace:
            return namespaces.inside(namespace, act)

    def look(self, name: str = "") -> dict[str, Any]:
        """All that children leave in a namespace, or on the host: links, addresses, routes, rules, ARP settings."""
        words = ("-n", name) if name else ()
        links = sorted(
            line.split()[0].partition("@")[0] for line in self.ip(*words, "-br", "link").splitlines()
        )
        rules = sorted(
            " ".join(line.split())
            for line in self.ip(*words, "rule").splitlines()
            if "lookup local" not in line
        )
        routes = sorted(
            line.strip()
            for line in self.ip(*words, "route", "show", "table", "all").splitlines()
            if "table local" not in line
        )
        addresses = self.ip(*words, "-br", "-4", "addr").splitlines()
        return {
            "links": [link for link in links if not link.startswith("lo")],
            "rules": rules,
            "routes": routes,
            "addresses": sorted(" ".join(line.split()) for line in addresses),
        }

    def namespaces(self) -> list[str]:
        """Names in /run/netns."""
        return sorted(os.listdir("/run/netns"))

    def gids(self, rail: int) -> list[str]:
        """The IPv4 addresses in the GID table of a rail's device."""
        base = self._table(rail)
        found = []
        for index in sorted(os.listdir(base / "gids"), key=int):
            text = (base / "gids" / index).read_text().strip()
            if text.startswith("0000:0000:0000:0000:0000:ffff:"):
                found.append(str(ipaddress.IPv4Address(int(text[-9:].replace(":", ""), 16))))
        return sorted(set(found))

    def drop_privileges(self) -> None:
        """Stay root without any capability, for the rest of the test."""
        library = ctypes.CDLL(None, use_errno=True)
        header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
        assert library.capset(header, none) == 0, os.strerror(ctypes.get_errno())

    def gids_gone(self, address: str) -> bool:
        """Whether an address leaves the GID tables soon."""
        return self.wait_for(lambda: not any(address in self.gids(rail) for rail in RAILS))

    def wait_for(self, met: Callable[[], bool]) -> bool:
        """Whether it comes true soon."""
        return namespaces.wait_until(met, 60)

    def is_apart(self, pid: int) -> bool:
        """Whether a process is in a network namespace of its own by now."""
        return os.readlink("/proc/%d/ns/net" % pid) != os.readlink("/proc/self/ns/net")

    def _table(self, rail: int) -> Path:
        device = fleet.device_of(self.snapshot, "rdma%d" % rail).name
        return Path("/sys/class/infiniband") / device / "ports/1"

    def start(self) -> None:
        """Begin to follow the addresses."""
        self._gids.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._gids.join(5)

    def _keep_gids(self) -> None:
        """As a driver does: a GID for each address of a child, in the namespaces that there are."""
        held: dict[tuple[int, str], int] = {}
        while not self._stop.wait(0.03):
            if not self.gids_follow:
                continue
            wanted: set[tuple[int, str]] = set()
            for namespace in namespaces.everyone(self.root):
                with contextlib.suppress(namespaces.RdmaError, OSError):
                    wanted |= set(namespaces.inside(namespace, _addresses))
            for rail, address in wanted - set(held):
                held[(rail, address)] = self._set_gid(rail, address)
            for rail, address in set(held) - wanted:
                index = held.pop((rail, address))
                (self._table(rail) / "gids" / str(index)).write_text(node_tree.ZERO_GID + "\n")

    def _set_gid(self, rail: int, address: str) -> int:
        base = self._table(rail)
        index = next(
            number
            for number in range(256)
            if (base / "gids" / str(number)).read_text().strip() == node_tree.ZERO_GID
        )
        (base / "gid_attrs/types" / str(index)).write_text("RoCE v2\n")
        (base / "gid_attrs/ndevs" / str(index)).write_text("rdma%d\n" % rail)
        (base / "gids" / str(index)).write_text(node_tree._long_gid(address) + "\n")
        return index


def _addresses() -> list[tuple[int, str]]:
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for link in read_links():
            if link.name.startswith("rdma") and link.is_child:
                with contextlib.suppress(OSError):
                    answer = fcntl.ioctl(asker, 0x8915, struct.pack("256s", link.name.encode()))
                    found.append((int(link.name[4:]), socket.inet_ntoa(answer[20:24])))
    return found


def in_private_node(test: Callable[[PrivateNode], None]) -> Callable[[], None]:
    """Run a test in a forked child that is a node of its own."""

    @functools.wraps(test)
    def run() -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            code = 1
            try:
                with node() as made:
                    test(made)
                code = 0
            except BaseException:
                os.write(writer, traceback.format_exc().encode()[-60000:])
                raise
            finally:
                os._exit(code)
        os.close(writer)
        said = b""
        end = time.monotonic() + _LIMIT
        while time.monotonic() < end:
            piece = os.read(reader, 65536)
            if not piece:
                break
            said += piece
        os.close(reader)
        status = os.waitpid(child, 0)[1]
        assert status == 0, said.decode()

    del run.__wrapped__  # type: ignore[attr-defined]  # pytest must not see the parameter
    return run


@contextlib.contextmanager
def node() -> Iterator[PrivateNode]:
    """Make this process a node. Only for a child that ends afterwards."""
    library = ctypes.CDLL(None, use_errno=True)
    assert library.unshare(_NEWNS | _NEWNET) == 0, os.strerror(ctypes.get_errno())
    children.KIND, children.LINK_DATA, children.MODE = KIND, DATA, MODE
    rtnetlink._link = _as_physical(rtnetlink._link)
    _mount("--make-rprivate", "/")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        tree = Path(place) / "tree"
        snapshot = fleet.node("BM.GPU.H100.8")
        node_tree.write(tree, snapshot)
        _mount("-t", "tmpfs", "tmpfs", "/run")
        _mount("-t", "tmpfs", "tmpfs", "/var/lib")
        os.mkdir("/run/netns")
        documents = snapshot.imds
        assert documents is not None
        _run("ip", "link", "set", "lo", "up")
        answers = {
            "/host/": [fake_imds.ok(documents.host)],
            "/instance/": [fake_imds.ok(documents.instance)],
            "/vnics/": [fake_imds.ok(documents.vnics)],
        }
        with fake_imds.FakeImds(answers) as imds:
            made = PrivateNode(tree, imds, snapshot)
            _lay_out()
            _mount("--bind", str(tree / "sys"), "/sys")
            made.start()
            try:
                yield made
            finally:
                made.stop()
                _run("umount", "-l", "/sys")


def _as_physical(read: Callable[[Any], LinkRecord]) -> Callable[[Any], LinkRecord]:
    """The near ends of the veth pairs stand for cards, which have no kind."""

    def read_as_physical(message: Any) -> LinkRecord:
        record = read(message)
        return replace(record, kind="", parent=0) if record.kind == "veth" else record

    return read_as_physical


def _lay_out() -> None:
    _run("ip", "netns", "add", "far")
    for rail in RAILS:
        near, far = "rdma%d" % rail, "far%d" % rail
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        _run("ip", "link", "set", far, "netns", "far")
        parent = addressing.derive_parent(_vnic(), rail).parent
        _run("ip", "link", "set", near, "mtu", str(MTU), "up")
        _run("ip", "addr", "add", "%s/12" % parent, "dev", near)
        _run("ip", "-n", "far", "link", "set", far, "mtu", str(MTU), "up")
        _run("ip", "-n", "far", "addr", "add", "%s/12" % FAR[rail], "dev", far)
        _run("ip", "-n", "far", "route", "add", "10.208.0.0/12", "dev", far, "table", str(100 + rail))
        _run("ip", "-n", "far", "rule", "add", "from", FAR[rail], "table", str(100 + rail))
        for name, value in (("arp_ignore", "1"), ("arp_announce", "2")):
            Path("/proc/sys/net/ipv4/conf/%s/%s" % (near, name)).write_text(value)
            _run("ip", "netns", "exec", "far", "sysctl", "-qw", "net.ipv4.conf.%s.%s=%s" % (far, name, value))
    assert namespaces.wait_until(_settled, 60), "the links do not come up"


def _settled() -> bool:
    """Whether the kernel has brought up all links: it does so later than the command that asks for it."""
    routes = _run("ip", "route", "show", "table", "all")
    return all("fe80::/64 dev rdma%d " % rail in routes for rail in RAILS) and "linkdown" not in routes


def _vnic() -> addressing.Vnic:
    found = addressing.read_vnic("10.140.77.19", fleet.SUBNET)
    assert isinstance(found, addressing.Vnic)
    assert isinstance(found.address, Address)
    return found


def _mount(*words: str) -> None:
    _run("mount", *words)


def _run(*words: str) -> str:
    done = subprocess.run(
        [shutil.which(words[0]) or words[0], *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout
