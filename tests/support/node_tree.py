# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the recorded tree of a node: what its sysfs, procfs, files and netlink would hold if it told this snapshot.

With that, a collector can be asked whether it reads back what the snapshot says. The tree holds what a real node has
besides: GID tables of 256 entries of which most are zero, the ends of veth pairs, local and multicast routes, PCI
functions of other classes, and absolute links such as ``/var/run``.
"""

from __future__ import annotations

import json
import os
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    Arp,
    Link,
    NodeSnapshot,
    PciFunction,
    RdmaDevice,
    RdmaPort,
    Route,
    Rule,
)

GID_TABLE = 256
ZERO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5}
PHYS_STATES = {"Sleep": 1, "Polling": 2, "Disabled": 3, "LinkUp": 5}
GID_TYPES = {"v1": "IB/RoCE v1", "v2": "RoCE v2", "ib": "IB/RoCE v1"}
SCOPES = {"global": 0, "link": 253, "host": 254}
PROTOCOLS = {"": 4, "ra": 9, "dhcp": 16, "bird": 12}
OCA = "etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"


def write(root: Path, snapshot: NodeSnapshot, gid_table: int = GID_TABLE) -> NodeTree:
    """Write the tree of a node below ``root`` (which need not exist) and return it."""
    tree = NodeTree(root, gid_table)
    tree.write_host(snapshot)
    for function in snapshot.pci or ():
        tree.write_function(function)
    tree.write_function(PciFunction("0000:00:1f.0", "8086:1b81", "0601", "lpc_ich", 0))
    for device in snapshot.devices or ():
        tree.write_device(device)
    for name in snapshot.char_devices or ():
        tree.write("dev/infiniband/" + name, "")
    for link in snapshot.links or ():
        tree.write_interface(link)
    if snapshot.arp_all is not None:
        tree.write_arp("all", snapshot.arp_all)
    for name in snapshot.namespaces or ():
        tree.write("run/netns/" + name, "")
    tree.write_oca(snapshot)
    tree.write("ibv_devinfo.txt", "\n\n".join([_devinfo(device) for device in snapshot.devices or ()]))
    tree.netlink = {
        "rtnetlink": _rtnetlink(snapshot),
        "rdma": _rdma(snapshot),
        "nftables": {"chains": [], "rules": []},
    }
    tree.save()
    return tree


def _devinfo(device: RdmaDevice) -> str:
    """What ibv_devinfo prints of a device, as far as the lines matter here."""
    lines = ["hca_id:\t" + device.name, "\ttransport:\t\t\tInfiniBand (0)", "\tphys_port_cnt:\t\t\t1"]
    for port in device.ports:
        lines += ["\t\tport:\t%d" % port.port, "\t\t\tmax_mtu:\t\t4096 (5)"]
        if port.active_mtu is not None:
            lines.append("\t\t\tactive_mtu:\t\t%d (%d)" % (port.active_mtu, port.active_mtu.bit_length() - 8))
    return "\n".join(lines) + "\n"


class NodeTree:
    """A recorded tree. ``netlink`` is the content of its ``netlink.json``; write it with :meth:`save`."""

    def __init__(self, root: Path, gid_table: int = GID_TABLE) -> None:
        self.root = root
        self.gid_table = gid_table
        self.netlink: dict[str, Any] = {}
        root.mkdir(parents=True, exist_ok=True)

    def write(self, path: str, text: str, modified: Optional[int] = None) -> Path:
        """Write a file below the root."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        if modified is not None:
            os.utime(place, (modified, modified))
        return place

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link below the root."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def save(self) -> None:
        """Write ``netlink.json``."""
        self.write("netlink.json", json.dumps(self.netlink))

    # The machine

    def write_host(self, snapshot: NodeSnapshot) -> None:
        """Names, versions, modules and options of the kernel, metadata."""
        host = snapshot.host
        self.write("proc/sys/kernel/hostname", host.hostname + "\n")
        self.write("proc/sys/kernel/osrelease", host.kernel + "\n")
        self.write("proc/sys/kernel/arch", host.architecture + "\n")
        self.write("proc/sys/kernel/random/boot_id", host.boot_id + "\n")
        self.write("proc/stat", "cpu  1 2 3 4\nctxt 9\nbtime %s\nprocesses 7\n" % (host.boot_time or 0))
        if host.nri is not None:
            listener = "00000000c: 00000002 00000000 00010000 0001 01 73 /var/run/nri/nri.sock\n"
            self.write("proc/1/net/unix", "Num RefCount\n" + (listener if host.nri else ""))
        self.write("usr/lib/os-release", 'NAME="A"\nID=%s\nVERSION_ID="%s"\n' % (host.os, host.os_version))
        self.link("etc/os-release", "../usr/lib/os-release")
        self.link("var/run", "/run")
        lines, builtin = ["overlay 1 0 - Live 0x0"], ["kernel/lib/a-b.ko"]
        for name, state in snapshot.modules.items():
            if state == "builtin":
                builtin.append("kernel/drivers/%s.ko" % name)
            else:
                lines.append("%s 999 1 x,y, %s 0x0000000000000000 (O)" % (name, state.title()))
                (self.root / "sys/module" / name).mkdir(parents=True, exist_ok=True)
        self.write("proc/modules", "\n".join(lines) + "\n")
        self.write("lib/modules/%s/modules.builtin" % host.kernel, "\n".join(builtin) + "\n")
        if snapshot.rdma.netns_parameter is not None:
            self.write("sys/module/ib_core/parameters/netns_mode", snapshot.rdma.netns_parameter + "\n")
        self._write_options(snapshot)
        if snapshot.imds is not None:
            documents = {
                "host": snapshot.imds.host,
                "instance": snapshot.imds.instance,
                "vnics": snapshot.imds.vnics,
            }
            self.write("imds.json", json.dumps(_with_plugins(documents, snapshot)))

    def _write_options(self, snapshot: NodeSnapshot) -> None:
        words = ["BOOT_IMAGE=/boot/vmlinuz", "root=UUID=1", "ro"]
        files: dict[str, list[str]] = {
            "/etc/modprobe.d/other.conf": ["options kvm nested=1", "blacklist nouveau"]
        }
        times = {}
        for option in snapshot.module_options or ():
            setting = "%s=%s" % (option.option, option.value)
            if option.source == "/proc/cmdline":
                words.append("ib_core." + setting)
                continue
            lines = files.setdefault(option.source, [])
            lines += ["# line"] * ((option.line or 1) - len(lines) - 1) + ["options ib_core " + setting]
            times[option.source] = option.modified
        for path, lines in files.items():
            self.write(path[1:], "\n".join(lines) + "\n", times.get(path))
        self.write("proc/cmdline", " ".join(words) + "\n")

    def write_oca(self, snapshot: NodeSnapshot) -> None:
        """The files of the agent; an empty text is a file that does not exist."""
        oca = snapshot.oca
        if oca is None:
            return
        if oca.directory == "present":
            (self.root / OCA).mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("rdma_network", oca.rdma_network),
            ("rdma_features_enable", oca.rdma_features_enable),
        ):
            if text:
                self.write("%s/%s.json" % (OCA, name), _spread(text), oca.modified)
        if oca.configure_state:
            self.write("run/oci-hpc/oci-hpc-rdma-configure.json", _spread(oca.configure_state))
        if oca.agent_version:
            text = "name: oracle-cloud-agent\nversion: %s\nsummary: agent\n" % oca.agent_version
            self.write("snap/oracle-cloud-agent/95/meta/snap.yaml", text)
            self.link("snap/oracle-cloud-agent/current", "95")

    # sysfs

    def place(self, pci: str) -> str:
        """The directory of a PCI function, or of virtual devices."""
        return "sys/devices/pci%s/%s" % (pci[:7], pci) if pci else "sys/devices/virtual"

    def write_function(self, function: PciFunction) -> None:
        """A PCI function with its driver."""
        place = self.place(function.address)
        vendor, device = function.id.split(":")
        self.write(place + "/class", "0x%s00\n" % function.pci_class)
        self.write(place + "/vendor", "0x%s\n" % vendor)
        self.write(place + "/device", "0x%s\n" % device)
        self.write(place + "/numa_node", "%d\n" % (-1 if function.numa is None else function.numa))
        if function.driver:
            (self.root / "sys/bus/pci/drivers" / function.driver).mkdir(parents=True, exist_ok=True)
            self.link(place + "/driver", "../../../bus/pci/drivers/" + function.driver)
        if function.vf_of:
            self.link(place + "/physfn", "../" + function.vf_of)
        if function.vfs:
            self.write(place + "/sriov_numvfs", "%d\n" % function.vfs)
            self.write(place + "/sriov_totalvfs", "%d\n" % function.total_vfs)
        self.link(
            "sys/bus/pci/devices/" + function.address,
            "../../../devices/pci%s/%s" % (function.address[:7], function.address),
        )

    def write_device(self, device: RdmaDevice) -> None:
        """An RDMA device with its ports and its verbs file."""
        base = "%s/infiniband/%s" % (self.place(device.pci), device.name)
        self.link("sys/class/infiniband/" + device.name, "../../../" + base)
        if device.pci:
            self.link(base + "/device", "../../../" + device.pci)
        guid = ":".join([device.guid[at : at + 4] for at in range(0, 16, 4)])
        self.write(base + "/node_guid", guid + "\n")
        self.write(base + "/fw_ver", device.firmware + "\n")
        self.write(base + "/board_id", device.board + "\n")
        if device.uverbs:
            self.write("sys/class/infiniband_verbs/%s/ibdev" % device.uverbs, device.name + "\n")
            self.write("dev/infiniband/" + device.uverbs, "")
        for port in device.ports:
            self.write_port("%s/ports/%d" % (base, port.port), port)

    def write_port(self, base: str, port: RdmaPort) -> None:
        """A port with its GID table."""
        for name, value in (
            ("state", None if port.state is None else "%d: %s" % (STATES[port.state], port.state)),
            (
                "phys_state",
                None
                if port.phys_state is None
                else "%d: %s" % (PHYS_STATES[port.phys_state], port.phys_state),
            ),
            ("link_layer", port.link_layer),
            ("rate", port.rate),
            ("lid", "0x1"),
            ("sm_lid", "0x%x" % (port.sm_lid or 0)),
        ):
            if value is not None:
                self.write("%s/%s" % (base, name), value + "\n")
        if port.gids is None:
            return
        entries = {
            index: (_long_gid(group.address), kind, group.netdev or port.netdev)
            for group in port.gids
            for index, kind in group.entries
        }
        directory = self.write(base + "/gids/0", ZERO_GID + "\n").parent
        for index in range(self.gid_table):
            gid, kind, netdev = entries.get(index, (ZERO_GID, "", ""))
            (directory / str(index)).write_text(gid + "\n")
            if kind:
                self.write("%s/gid_attrs/types/%d" % (base, index), GID_TYPES[kind] + "\n")
                if netdev and kind != "ib":
                    self.write("%s/gid_attrs/ndevs/%d" % (base, index), netdev + "\n")

    def write_interface(self, link: Link) -> None:
        """The class entry and the ARP settings of an interface."""
        base = "%s/net/%s" % (self.place(link.pci), link.name)
        self.write(base + "/type", "%d\n" % (link.arphrd or 1))
        self.link("sys/class/net/" + link.name, "../../../" + base)
        if link.arp is not None:
            self.write_arp(link.name, link.arp)

    def write_arp(self, name: str, arp: Arp) -> None:
        """The ARP settings that are set."""
        values = {
            "arp_ignore": arp.ignore,
            "arp_announce": arp.announce,
            "arp_filter": arp.filter,
            "rp_filter": arp.rp_filter,
        }
        for entry, value in values.items():
            if value is not None:
                self.write("proc/sys/net/ipv4/conf/%s/%s" % (name, entry), value + "\n")


def _with_plugins(documents: dict[str, Any], snapshot: NodeSnapshot) -> dict[str, Any]:
    plugins = snapshot.oca.plugins if snapshot.oca is not None else None
    if plugins is not None and isinstance(documents["instance"], dict):
        config = [{"name": name, "desiredState": state} for name, state in plugins.items()]
        config.append({"name": "Bastion", "desiredState": "DISABLED"})
        documents["instance"] = {**documents["instance"], "agentConfig": {"pluginsConfig": config}}
    return documents


def _spread(text: str) -> str:
    """JSON as a person writes it; other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2) + "\n"
    except ValueError:
        return text


def _long_gid(address: str) -> str:
    """The form of sysfs; an IPv4 address is mapped."""
    number = int(ip_address(address if ":" in address else "::ffff:" + address))
    return ":".join(["%04x" % (number >> shift & 0xFFFF) for shift in range(112, -1, -16)])


def _rtnetlink(snapshot: NodeSnapshot) -> dict[str, Any]:
    links = [{"index": 1, "name": "lo", "arphrd": 772, "flags": 65609, "mtu": 65536, "operstate": "unknown"}]
    addresses = [
        {"link": 1, "address": "127.0.0.1", "length": 8},
        {"link": 1, "address": "::1", "length": 128},
    ]
    indexes = {link.name: index for index, link in enumerate(snapshot.links or (), 2)}
    for link in snapshot.links or ():
        index = indexes[link.name]
        links.append(
            {
                "index": index,
                "name": link.name,
                "kind": link.kind,
                "arphrd": link.arphrd,
                "flags": 69699 if link.state == "up" else 4098,
                "mac": link.mac,
                "mtu": link.mtu,
                "operstate": link.operstate or link.state,
                "master": indexes.get(link.master, 0),
                "parent": indexes.get(link.parent, 0),
            }
        )
        for text in link.addresses:
            address, _slash, length = text.partition("/")
            addresses.append({"link": index, "address": address, "length": int(length)})
    for number in range(6):  # pods
        index = 100 + number
        links.append(
            {"index": index, "name": "veth%d" % number, "kind": "veth", "flags": 69699, "operstate": "up"}
        )
        addresses.append({"link": index, "address": "fe80::%d" % (number + 1), "length": 64})
    return {
        "links": links,
        "addresses": addresses,
        "routes": [_route(route, indexes) for route in snapshot.routes or ()] + _noise_routes(indexes),
        "rules": [_rule(rule) for rule in snapshot.rules or ()]
        + [{"family": 10, "priority": number, "table": 254} for number in (0, 32766)],
    }


def _noise_routes(indexes: dict[str, int]) -> list[dict[str, Any]]:
    routes: list[dict[str, Any]] = [
        {"family": 2, "dst": "127.0.0.0", "length": 8, "type": 2, "table": 255, "link": 1}
    ]
    for index in indexes.values():
        routes.append(
            {"family": 10, "dst": "fe80::", "length": 64, "link": index, "metric": 256, "protocol": 2}
        )
        routes.append({"family": 10, "dst": "ff00::", "length": 8, "type": 5, "table": 255, "link": index})
        routes.append(
            {"family": 2, "dst": "10.1.255.255", "length": 32, "type": 3, "table": 255, "link": index}
        )
    return routes


def _route(route: Route, indexes: dict[str, int]) -> dict[str, Any]:
    six = ":" in route.dst
    text = {"default": "0.0.0.0/0"}.get(route.dst, route.dst)
    address, _slash, length = text.partition("/")
    size = int(length) if length else (128 if six else 32)
    return {
        "family": 10 if six else 2,
        "dst": "" if size == 0 else address,
        "length": size,
        "table": route.table,
        "link": indexes.get(route.dev, 0),
        "gateway": route.via,
        "source": route.src,
        "scope": 0 if six else SCOPES[route.effective_scope],
        "protocol": PROTOCOLS[route.proto],
        "metric": route.metric,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    address, _slash, length = rule.src.partition("/")
    every = rule.src == "all"
    return {
        "family": 10 if ":" in rule.src else 2,
        "priority": rule.priority,
        "source": "" if every else address,
        "length": 0 if every else int(length or (128 if ":" in address else 32)),
        "table": rule.table,
        "selectors": rule.more,
    }


def _rdma(snapshot: NodeSnapshot) -> dict[str, Any]:
    ports = [
        {
            "device": device.name,
            "port": port.port,
            "netdev": "" if port.link_layer == "InfiniBand" else port.netdev,
        }
        for device in snapshot.devices or ()
        for port in device.ports
    ]
    answer: dict[str, Any] = {"ports": ports}
    if snapshot.rdma.netns_mode is not None:
        answer["netns_mode"] = {"exclusive": 0, "shared": 1}[snapshot.rdma.netns_mode]
    if snapshot.rdma.copy_on_fork is not None:
        answer["copy_on_fork"] = int(snapshot.rdma.copy_on_fork)
    return answer
