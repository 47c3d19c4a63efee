# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest recorded tree of which the provider can tell something: interfaces, PCI devices, routes, OCA's files.

Unlike `node_tree.py` it takes the plain values of a vector, and needs the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional

OCA = "etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
NETNS_MODE = "sys/module/ib_core/parameters/netns_mode"
TYPES = {
    "unicast": 1,
    "local": 2,
    "broadcast": 3,
    "anycast": 4,
    "multicast": 5,
    "blackhole": 6,
    "unreachable": 7,
    "prohibit": 8,
    "throw": 9,
}
TABLES = {"main": 254, "local": 255, "default": 253}


def put(root: Path, path: str, text: str) -> None:
    """Write a file below the root."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def write(
    root: Path,
    interfaces: Mapping[str, Any],
    *,
    devices: Iterable[Mapping[str, Any]] = (),
    routes: Optional[Iterable[Mapping[str, Any]]] = (),
    netns_mode: Optional[str] = None,
    oca: Optional[Mapping[str, Any]] = None,
) -> Path:
    """Write the tree and return its root. The arguments have the types of the vectors' schema."""
    put(root, "netlink.json", json.dumps({"rtnetlink": rtnetlink(interfaces, routes or ())}))
    for name, entry in interfaces.items():
        for setting in ("arp_ignore", "arp_announce"):
            if entry.get(setting) is not None:
                put(root, "proc/sys/net/ipv4/conf/%s/%s" % (name, setting), entry[setting])
    for device in devices:
        write_device(root, device)
    if netns_mode is not None:
        put(root, NETNS_MODE, netns_mode)
    write_oca(root, oca or {})
    return root


def write_device(root: Path, device: Mapping[str, Any]) -> None:
    """A PCI device with its interfaces and RDMA devices."""
    if not device["pci_address"]:
        return
    base = root / "sys/bus/pci/devices" / device["pci_address"]
    base.mkdir(parents=True, exist_ok=True)
    if device["net"] is not None:
        (base / "net").mkdir(exist_ok=True)
        for name in device["net"]:
            (base / "net" / name).mkdir(exist_ok=True)
    for entry in device["infiniband"]:
        for port, layer in enumerate(entry["link_layers"], 1):
            place = base / "infiniband" / entry["name"] / "ports" / str(port)
            place.mkdir(parents=True, exist_ok=True)
            if layer is not None:
                (place / "link_layer").write_text(layer)


def write_oca(root: Path, oca: Mapping[str, Any]) -> None:
    """The files of the agent for a network and an address mode."""
    if oca.get("network"):
        settings = {"default-settings": {"rdma_network": oca["network"]}}
        put(root, OCA + "/rdma_network.json", json.dumps({"rdma-network": [settings]}))
    modes = {"host-serial": "host_serial_based_rdma_ips", "topology": "ipv4_topology_based_rdma_ips"}
    mode = oca.get("address_mode")
    if mode:
        document = {modes[mode]: True} if mode in modes else {}
        put(root, OCA + "/rdma_features_enable.json", json.dumps(document))


def rtnetlink(interfaces: Mapping[str, Any], routes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What netlink says; an interface whose type cannot be read is not there."""
    links, addresses = [], []
    for index, (name, entry) in enumerate(interfaces.items(), 1):
        if entry.get("arphrd") is None:
            continue
        links.append({"index": index, "name": name, "arphrd": entry["arphrd"], "flags": 1})
        for text in entry.get("addresses") or ():
            address, _slash, length = text.partition("/")
            addresses.append({"link": index, "address": address, "length": int(length or 32)})
    return {"links": links, "addresses": addresses, "routes": [route(entry) for entry in routes]}


def route(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A route as the kernel numbers it."""
    address, _slash, length = entry["dst"].partition("/")
    six = ":" in address
    default = address == "default" or length == "0"
    table = entry.get("table") or "main"
    return {
        "family": 10 if six else 2,
        "dst": "" if default else address,
        "length": 0 if default else int(length or (128 if six else 32)),
        "type": TYPES[entry.get("type") or "unicast"],
        "table": TABLES[table] if table in TABLES else int(table),
    }
