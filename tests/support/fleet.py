# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of healthy nodes, one shape each, and small edits that break them.

The values are made up after what is known of each shape (the F numbers), so they are no recording of anybody's
nodes. No randomness and no clock: the same call gives the same snapshot. The position ``number`` of a node decides its
address, and the address decides the parents of its NICs (F13), so that the nodes of one subnet always fit together.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.roce_qos import PortQos
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    DEFAULT_SUBSETS,
    SUBSETS,
    Arp,
    Collector,
    GidGroup,
    HostInfo,
    Imds,
    KernelLog,
    Link,
    LinkDowns,
    ModuleOption,
    NetworkBoot,
    NodeSnapshot,
    Oca,
    PciFunction,
    PeerMemory,
    PortCounters,
    RdmaDevice,
    RdmaPort,
    RdmaSystem,
    ReadError,
    Route,
    Rule,
    RuntimeLimit,
    Slow,
)

RECORDED_AT = "2026-03-02T09:00:00Z"
JUDGED_AT = "2026-03-02T09:05:00Z"
BOOT_TIME = 1772000000  # 2026-02-25, some days before the recording
OCA_NETWORK = "10.224.0.0/12"  # F6
LEGACY_NETWORK = "192.168.0.0/16"  # F56
SUBNET = "10.140.64.0/19"  # F15
POD_CIDR, SERVICE_CIDR, VCN_CIDR = "10.240.0.0/12", "10.96.0.0/16", "10.140.0.0/16"
PLUGINS = ("Compute HPC RDMA Authentication", "Compute HPC RDMA Auto-Configuration")  # F58
FIRST_POSITION = 3347  # host position of the reference node in F15

_H100_PLACES = tuple(
    "0000:%s:00.%d" % (bus, port)
    for bus in ["0c", "2a", "41", "58", "86", "a5", "bd", "d5"]
    for port in (0, 1)
)
_CX8_PLACES = tuple(
    "%s:03:00.%d" % (domain, port) for domain in ("0000", "0002", "0010", "0012") for port in (0, 1)
)
_GB200_PLACES = tuple("%s:03:00.0" % domain for domain in ("0000", "0002", "0010", "0012"))


def _places(count: int) -> tuple[str, ...]:
    """PCI addresses of a shape for which none are published: made up, in ascending order."""
    return tuple("0000:%02x:00.0" % (16 + 12 * number) for number in range(count))


def _numbers(text: str) -> tuple[int, ...]:
    """``0-2 5`` -> (0, 1, 2, 5)."""
    found: list[int] = []
    for part in text.split():
        first, _unused, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


@dataclass(frozen=True)
class Model:
    """What the builders know of a shape.

    ``devices`` are the numbers of the RDMA devices of the fabric (F136), ``places`` their PCI addresses (F129);
    ``vcn`` are the numbers of the devices that the VCN's NICs bring, which belong to no fabric.
    """

    shape: str
    devices: tuple[int, ...]
    places: tuple[str, ...]
    vcn: tuple[int, ...]
    rate: str
    fabric: str = "ipv4"
    planes: int = 1
    family: str = "mlx5"
    architecture: str = "x86_64"
    board: str = "MT_0000000838"
    firmware: str = "28.43.2566"
    pci_id: str = "15b3:1021"
    names: tuple[str, ...] = ()

    @property
    def nic_names(self) -> tuple[str, ...]:
        if self.names:
            return self.names
        if self.fabric == "infiniband":
            return tuple("ib%d" % number for number in range(len(self.devices)))
        return tuple("rdma%d" % number for number in range(len(self.devices)))


_HDR, _NDR, _EDR = "200 Gb/sec (4X HDR)", "400 Gb/sec (4X NDR)", "100 Gb/sec (4X EDR)"
_CX5 = {"board": "ORC0000000007", "firmware": "16.35.4030", "pci_id": "15b3:1019"}
_CX8 = {"board": "MT_0000001222", "firmware": "40.45.1200", "pci_id": "15b3:1023"}
_ARM = {"architecture": "aarch64"}

MODELS = {
    model.shape: model
    for model in (
        Model("BM.GPU4.8", _numbers("0-3 6-17"), _places(16), (4, 5), _EDR, **_CX5),
        Model("BM.GPU.A100-v2.8", _numbers("1-12 14-17"), _places(16), (0, 13), _EDR, **_CX5),
        Model("BM.GPU.B4.8", _numbers("1-12 14-17"), _places(16), (0, 13), _EDR, **_CX5),
        Model("BM.GPU.H100.8", _numbers("0 1 3-10 12-17"), _H100_PLACES, (2, 11), _HDR),
        Model("BM.GPU.H200.8", _numbers("0 3-6 9-11"), _places(8), (1, 2), _NDR),
        Model("BM.GPU.B200.8", _numbers("0 3-6 9-11"), _places(8), (1, 2), _NDR),
        Model("BM.GPU.B300.8", _numbers("0 1 7-14 16-21"), _places(16), (2, 15), _NDR, "ipv6", 2, **_CX8),
        Model("BM.GPU.MI300X.8", _numbers("0 2-5 7-9"), _places(8), (1, 6), _NDR),
        Model(
            "BM.GPU.MI355X-v1.8",
            _numbers("0-7"),
            _places(8),
            (),
            _NDR,
            family="ionic",
            board="DSC3-400",
            firmware="1.117.1-a-63",
            pci_id="1dd8:1002",
        ),
        Model("BM.GPU.GB200.4", _numbers("0 1 3 4"), _GB200_PLACES, (2,), _NDR, "infiniband", **_ARM),
        Model("BM.GPU.GB200-v2.4", _numbers("0 1 3 4"), _GB200_PLACES, (2,), _NDR, **_ARM),
        Model("BM.GPU.GB200-v3.4", _numbers("0-3 5-8"), _CX8_PLACES, (4,), _NDR, "ipv6", 2, **_ARM, **_CX8),
        Model("BM.GPU.GB300.4", _numbers("0-3 5-8"), _CX8_PLACES, (4,), _NDR, "ipv6", 1, **_ARM, **_CX8),
        Model("BM.HPC2.36", (2,), ("0000:5e:00.0",), (0,), _EDR, **_CX5),
        Model("BM.Optimized3.36", (2,), ("0000:98:00.0",), (0, 1), _EDR, names=("ens800f0np0",), **_CX5),
    )
}


@dataclass(frozen=True)
class Place:
    """Where a node stands: primary subnet, host position in it, OCA network, island."""

    subnet: IPv4Network
    position: int
    oca_network: IPv4Network
    island: str

    @property
    def address(self) -> IPv4Address:
        return self.subnet[self.position]

    def parent(self, index: int) -> IPv4Address:
        """F13: network + index * block + position."""
        return self.oca_network[index * self.subnet.num_addresses + self.position]


def node(
    shape: str = "BM.GPU.H100.8",
    number: int = 0,
    name: str = "",
    *,
    subnet: str = SUBNET,
    oca_network: str = OCA_NETWORK,
    island: str = "isl1",
    features_file: bool = True,
) -> NodeSnapshot:
    """A healthy node.

    :param number: place of the node in its subnet; the reference node of F15 is number 0 of the default subnet.
    :param oca_network: what OCA uses; another than the default stands in ``rdma_network.json`` too (F51).
    :param features_file: whether ``rdma_features_enable.json`` exists; without it the address mode is not known (F142).
    """
    model = MODELS[shape]
    network = IPv4Network(subnet)
    first = FIRST_POSITION if network.num_addresses > FIRST_POSITION else 51  # F131 has .51 in a /24
    place = Place(network, first + number, IPv4Network(oca_network), island)
    serial = place.position << 8
    names = model.nic_names
    links = _host_links(model, place) + [
        _rdma_link(model, place, index, serial) for index in range(len(names))
    ]
    devices = [_device(model, place, index, serial) for index in range(len(names))]
    devices += [_vcn_device(model, place, order, serial) for order in range(len(model.vcn))]
    family_modules = ("ionic", "ionic_rdma") if model.family == "ionic" else ("mlx5_core", "mlx5_ib")
    modules = {"ib_core", "ib_umad", "ib_uverbs", "rdma_cm", "rdma_ucm", *family_modules}
    if model.fabric == "infiniband":
        modules.add("ib_ipoib")
    if shape.startswith("BM.GPU") and "MI3" not in shape:
        modules |= {"nvidia", "nvidia_peermem"}
    host_name = name or "node-%03d" % number
    return NodeSnapshot(
        name=host_name,
        collected_at=RECORDED_AT,
        subsets=DEFAULT_SUBSETS,
        collector=Collector("0.1.0", "3.10.12", "0.9.7", 84),
        host=HostInfo(
            hostname=host_name,
            kernel="6.8.0-1035-oracle",
            architecture=model.architecture,
            os="ubuntu",
            os_version="22.04",
            boot_id="5f0c1a52-7d3e-4c1b-9e0a-%012x" % serial,
            boot_time=BOOT_TIME,
            nri=True,
        ),
        rdma=RdmaSystem("shared", "Y", True),
        module_options=(
            ModuleOption("/etc/modprobe.d/rdma.conf", "netns_mode", "1", line=1, modified=BOOT_TIME - 86400),
        ),
        modules=dict.fromkeys(sorted(modules), "live"),
        char_devices=("rdma_cm", *["umad%d" % number for number in range(len(devices))]),
        pci=tuple(sorted(_functions(model), key=lambda function: function.address)),
        links=tuple(links),
        arp_all=Arp("0", "0", "0", "2"),
        devices=tuple(sorted(devices, key=lambda device: device.name)),
        routes=tuple(_routes(model, place)),
        rules=tuple(_rules(model, place)),
        namespaces=(),
        imds=_imds(model, place),
        oca=_oca(model, place, features_file),
        firewall=(),
    )


# Parts of a node


def _mac(serial: int) -> str:
    return "b8:3f:d2:%02x:%02x:%02x" % (serial >> 16 & 255, serial >> 8 & 255, serial & 255)


def _guid(serial: int) -> str:
    return "b83fd203%08x" % serial


def _link_local(serial: int) -> str:
    """fe80:: address of the MAC of :func:`_mac` (EUI-64)."""
    return "fe80::ba3f:d2ff:fe%02x:%x" % (serial >> 16 & 255, serial & 0xFFFF)


def _slaac(index: int, serial: int) -> str:
    return "fd10:%x::ba3f:d2ff:fe%02x:%x" % (index + 1, serial >> 16 & 255, serial & 0xFFFF)


def _host_links(model: Model, place: Place) -> list[Link]:
    """The VCN's interface and the pod network of the host (flannel)."""
    pods = IPv4Network((int(IPv4Network(POD_CIDR)[0]) + place.position % 4096 * 256, 24))
    return [
        Link(
            "eth0",
            mac=_mac(0x900000 + place.position),
            mtu=9000,
            state="up",
            pci=_vcn_places(model)[0],
            addresses=(
                "%s/%d" % (place.address, place.subnet.prefixlen),
                _link_local(0x900000 + place.position) + "/64",
            ),
            arp=Arp("0", "0", "0", "2"),
        ),
        Link(
            "cni0", "bridge", 1, _mac(0x910000 + place.position), 8950, "up", addresses=("%s/24" % pods[1],)
        ),
        Link(
            "flannel.1",
            "vxlan",
            1,
            _mac(0x920000 + place.position),
            8950,
            "up",
            "unknown",
            addresses=("%s/32" % pods[0],),
        ),
    ]


def _vcn_places(model: Model) -> tuple[str, ...]:
    """PCI addresses of the VCN's NICs: beside those of the fabric; made up."""
    return tuple("%s:f%d:00.0" % (model.places[0][:4], order) for order in range(max(1, len(model.vcn))))


def _rdma_link(model: Model, place: Place, index: int, serial: int) -> Link:
    own = serial + index
    shared = {"state": "up", "pci": model.places[index]}
    if model.fabric == "infiniband":  # IPoIB, ARPHRD 32 (F33)
        mac = "00:00:10:29:fe:80:00:00:00:00:00:00:" + ":".join(
            _guid(own)[at : at + 2] for at in range(0, 16, 2)
        )
        return Link(
            model.nic_names[index], arphrd=32, mac=mac, mtu=4092, arp=Arp("0", "0", "0", "2"), **shared
        )
    addresses = [_link_local(own) + "/64"]
    if model.fabric == "ipv4":
        addresses.insert(0, "%s/%d" % (place.parent(index), place.oca_network.prefixlen))
    else:
        addresses.insert(0, _slaac(index, own) + "/64")
    arp = Arp("1", "2", "0", "2")  # F79
    return Link(
        model.nic_names[index], mac=_mac(own), mtu=4220, addresses=tuple(addresses), arp=arp, **shared
    )


def _device(model: Model, place: Place, index: int, serial: int) -> RdmaDevice:
    own = serial + index
    infiniband = model.fabric == "infiniband"
    gids = [GidGroup(_link_local(own), ((0, "v1"), (1, "v2")))]
    if infiniband:
        gids = [GidGroup("fe80::b83f:d203:%x:%x" % (own >> 16, own & 0xFFFF), ((0, "ib"),))]
    elif model.fabric == "ipv4":  # the host's own entries stand at 0 to 3 (F134)
        gids.append(GidGroup(str(place.parent(index)), ((2, "v1"), (3, "v2"))))
    else:
        gids.append(GidGroup(_slaac(index, own), ((2, "v1"), (3, "v2"))))
    return RdmaDevice(
        name="%s_%d" % (model.family, model.devices[index]),
        pci=model.places[index],
        guid=_guid(own),
        firmware=model.firmware,
        board=model.board,
        uverbs="uverbs%d" % model.devices[index],
        ports=(
            RdmaPort(
                state="ACTIVE",
                phys_state="LinkUp",
                link_layer="InfiniBand" if infiniband else "Ethernet",
                rate=model.rate,
                active_mtu=4096,
                netdev=model.nic_names[index],
                sm_lid=1 if infiniband else None,
                gids=tuple(gids),
            ),
        ),
    )


def _vcn_device(model: Model, place: Place, order: int, serial: int) -> RdmaDevice:
    """An RDMA device of a VCN NIC: same vendor, not of the fabric (F75). Only the first one is up, as eth0."""
    first = order == 0
    own = 0x900000 + place.position
    gids = (
        GidGroup(_link_local(own), ((0, "v1"), (1, "v2"))),
        GidGroup(str(place.address), ((2, "v1"), (3, "v2"))),
    )
    return RdmaDevice(
        name="%s_%d" % (model.family, model.vcn[order]),
        pci=_vcn_places(model)[order],
        guid=_guid(serial + 0x80 + order),
        firmware="22.39.2048",
        board="ORC0000000023",
        uverbs="uverbs%d" % model.vcn[order],
        ports=(
            RdmaPort(
                state="ACTIVE" if first else "DOWN",
                phys_state="LinkUp" if first else "Disabled",
                link_layer="Ethernet",
                rate="100 Gb/sec (4X EDR)" if first else "40 Gb/sec (4X QDR)",
                active_mtu=4096 if first else 1024,
                netdev="eth0" if first else "",
                gids=gids if first else (),
            ),
        ),
    )


def _functions(model: Model) -> list[PciFunction]:
    half = len(model.places) / 2
    infiniband = model.fabric == "infiniband"
    driver = "ionic" if model.family == "ionic" else "mlx5_core"
    functions = [
        PciFunction(pci, model.pci_id, "0207" if infiniband else "0200", driver, int(index >= half))
        for index, pci in enumerate(model.places)
    ]
    return functions + [PciFunction(pci, "15b3:101d", "0200", "mlx5_core", 0) for pci in _vcn_places(model)]


def _routes(model: Model, place: Place) -> list[Route]:
    gateway = str(place.subnet[1])
    pods = IPv4Network((int(IPv4Network(POD_CIDR)[0]) + place.position % 4096 * 256, 24))
    routes = [
        Route("default", "eth0", via=gateway, src=str(place.address), proto="dhcp", metric=100),
        Route(str(place.subnet), "eth0", src=str(place.address)),
        Route("169.254.0.0/16", "eth0", src=str(place.address), proto="dhcp", metric=100),
        Route(str(pods), "cni0", src=str(pods[1])),
        Route("172.31.255.0/24", "eth0", via=gateway),
    ]
    if (
        model.fabric == "ipv4"
    ):  # OCA gives each NIC a table of its own, so that answers leave where requests came in
        for index, name in enumerate(model.nic_names):
            parent = str(place.parent(index))
            routes.append(Route(str(place.oca_network), name, src=parent))
            routes.append(Route(str(place.oca_network), name, table=201 + index, src=parent))
    elif model.fabric == "ipv6":  # each NIC has a default route from advertisements (F90)
        for index, name in enumerate(model.nic_names):
            routes.append(Route("fd10:%x::/64" % (index + 1), name, proto="ra", metric=1024))
            routes.append(Route("::/0", name, via="fe80::1", proto="ra", metric=1024))
    return routes


def _rules(model: Model, place: Place) -> list[Rule]:
    rules = [Rule(0, "all", 255)]
    if model.fabric == "ipv4":
        rules += [
            Rule(32700 - index, str(place.parent(index)), 201 + index) for index in range(len(model.places))
        ]
    return [*rules, Rule(32766, "all", 254), Rule(32767, "all", 253)]


def _imds(model: Model, place: Place) -> Imds:
    def ocid(kind: str, text: str) -> str:  # shortened, as in a recording
        return "ocid1.%s..%s" % (kind, text)

    rack = place.position // 18
    block = ocid("computenetworkblock", "%s-nb1" % place.island)
    return Imds(
        host={
            "networkBlockId": block,
            "rackId": "%016x" % (0x5AC0FFEE + rack),
            "rdmaTopologyData": {
                "customerHPCIslandId": ocid("hpcisland", place.island),
                "customerNetworkBlock": block,
                "customerLocalBlock": ocid("computelocalblock", "%s-%d" % (place.island, rack)),
            },
            "rdmaFabricData": {"ipv6": model.fabric == "ipv6", "planes": model.planes},
        },
        instance={"shape": model.shape},
        vnics=[{"privateIp": str(place.address), "subnetCidrBlock": str(place.subnet)}],
    )


def _oca(model: Model, place: Place, features_file: bool) -> Oca:
    network = ""
    features = (
        '{"host_serial_based_rdma_ips":false,"ipv4_topology_based_rdma_ips":false}' if features_file else ""
    )
    if str(place.oca_network) != OCA_NETWORK:
        network = oca_network_file(str(place.oca_network))
    return Oca(
        directory="present" if network or features else "absent",
        rdma_network=network,
        rdma_features_enable=features,
        configure_state='{"state":"finished"}',
        plugins=dict.fromkeys(PLUGINS, "ENABLED"),
        agent_version="1.52.0-23",
        modified=BOOT_TIME - 3600 if network or features else None,
    )


def oca_network_file(network: str, **changes: Any) -> str:
    """Text of ``rdma_network.json`` (F51, F55), white space left out as the collector does; a value None leaves it out.

    Keys of ``changes`` are looked for in ``default-settings``, then in ``subnet-settings``.
    """
    settings: dict[str, Any] = {
        "rdma_network": network,
        "overwrite_config_files": False,
        "single_subnet": True,
        "modify_subnet": True,
        "modify_arp": True,
    }
    netmask = str(IPv4Network(network, strict=False).netmask)
    subnet: dict[str, Any] = {"netmask": netmask, "override_netconfig_netmask": netmask}
    for key, value in changes.items():
        section = settings if key in settings else subnet
        section.pop(key, None)
        if value is not None:
            section[key] = value
    document = {"version": "1.0", "rdma-network": [{"default-settings": settings, "subnet-settings": subnet}]}
    return json.dumps(document, separators=(",", ":"))


# Edits


Edit = Callable[[NodeSnapshot], NodeSnapshot]


def names(snapshot: NodeSnapshot) -> list[str]:
    """Names of the fabric's interfaces of a built node, in the order of their index."""
    return [link.name for link in snapshot.links or () if link.name != "eth0" and link.pci]


def edit_link(snapshot: NodeSnapshot, name: str, /, **changes: Any) -> NodeSnapshot:
    """The node with one interface changed; it must exist."""
    return replace(snapshot, links=_changed(snapshot.links, "name", name, changes))


def edit_links(snapshot: NodeSnapshot, **changes: Any) -> NodeSnapshot:
    """The node with all interfaces of the fabric changed."""
    for name in names(snapshot):
        snapshot = edit_link(snapshot, name, **changes)
    return snapshot


def edit_device(snapshot: NodeSnapshot, name: str, /, **changes: Any) -> NodeSnapshot:
    """The node with one RDMA device changed; it must exist."""
    return replace(snapshot, devices=_changed(snapshot.devices, "name", name, changes))


def edit_port(snapshot: NodeSnapshot, netdev: str, /, **changes: Any) -> NodeSnapshot:
    """The node with the port of one interface changed."""
    device = device_of(snapshot, netdev)
    port = replace(device.ports[0], **changes)
    return edit_device(snapshot, device.name, ports=(port, *device.ports[1:]))


def device_of(snapshot: NodeSnapshot, netdev: str) -> RdmaDevice:
    """The RDMA device whose first port belongs to an interface."""
    found = [device for device in snapshot.devices or () if device.ports and device.ports[0].netdev == netdev]
    if len(found) != 1:
        raise LookupError("%d devices have a port of %s" % (len(found), netdev))
    return found[0]


def edit_function(snapshot: NodeSnapshot, address: str, /, **changes: Any) -> NodeSnapshot:
    """The node with one PCI function changed; it must exist."""
    return replace(snapshot, pci=_changed(snapshot.pci, "address", address, changes))


def edit_arp(snapshot: NodeSnapshot, name: str, /, **changes: Any) -> NodeSnapshot:
    """The node with ARP settings of one interface changed."""
    return edit_link(snapshot, name, arp=replace(_link(snapshot, name).arp or Arp(), **changes))


def edit_oca(snapshot: NodeSnapshot, **changes: Any) -> NodeSnapshot:
    """The node with OCA's files changed."""
    return replace(snapshot, oca=replace(snapshot.oca or Oca(), **changes))


def edit_imds(snapshot: NodeSnapshot, **changes: Any) -> NodeSnapshot:
    """The node with whole metadata documents changed."""
    return replace(snapshot, imds=replace(snapshot.imds or Imds(), **changes))


def edit_host_document(snapshot: NodeSnapshot, key: str, value: Any) -> NodeSnapshot:
    """The node with one key of the metadata's host document changed; None takes it out."""
    host = dict((snapshot.imds or Imds()).host)
    host.pop(key, None)
    if value is not None:
        host[key] = value
    return edit_imds(snapshot, host=host)


def add_links(snapshot: NodeSnapshot, *links: Link) -> NodeSnapshot:
    """The node with further interfaces."""
    return replace(snapshot, links=(*(snapshot.links or ()), *links))


def add_routes(snapshot: NodeSnapshot, *routes: str) -> NodeSnapshot:
    """The node with further routes, in the words of iproute2."""
    return replace(snapshot, routes=(*(snapshot.routes or ()), *[Route.parse(route) for route in routes]))


def add_rules(snapshot: NodeSnapshot, *rules: str) -> NodeSnapshot:
    """The node with further policy rules, in the words of iproute2."""
    return replace(snapshot, rules=(*(snapshot.rules or ()), *[Rule.parse(rule) for rule in rules]))


def with_slow(snapshot: NodeSnapshot) -> NodeSnapshot:
    """The same node with the subset ``slow``, healthy: lossless on priority 5 with CNP on 6, traffic without loss."""
    fabric = set(names(snapshot))
    qos, counters = [], []
    for device in snapshot.devices or ():
        for port in device.ports:
            ethernet = port.link_layer == "Ethernet"
            settings: dict[str, Any] = {}
            if ethernet:
                settings = {"dcbx": 9, "trust": "dscp", "pfc": 32, "dscp_map": "0-7:0 8-15:1 40:5 48:6"}
                settings |= {"ecn_np": 255, "ecn_rp": 255, "cnp_dscp": 48, "traffic_class": 160}
                settings |= {"cm_tos": 160, "cm_mode": "RoCE v2"}
            qos.append(PortQos(device.name, port.port, port.netdev, port.link_layer or "", **settings))
            counters.append(
                PortCounters(
                    device.name,
                    port.port,
                    port.netdev,
                    1.0,
                    packets=4000000,
                    out_of_buffer=0,
                    out_of_sequence=3,
                    discarded=0,
                    pause_sent="",
                    pause_received="5:12",
                )
            )
    downs = [LinkDowns(link.name, 1) for link in snapshot.links or () if link.name in fabric]
    return replace(
        snapshot,
        subsets=SUBSETS,
        slow=Slow(
            initramfs=(),
            reboots=(),
            qos=tuple(qos),
            counters=tuple(counters),
            kernel_log=KernelLog(86400, tuple(downs)),
            peer_memory=PeerMemory(True, 0, ("ib_core", "nvidia"), ("nv_mem_nc",), True),
            network_boot=NetworkBoot(),
            gpus=(),
            memlock=(RuntimeLimit("containerd.service", "infinity", "infinity"),),
        ),
    )


def edit_slow(snapshot: NodeSnapshot, **changes: Any) -> NodeSnapshot:
    """A node with the subset ``slow``, of which some fields have other values."""
    snapshot = snapshot if snapshot.slow is not None else with_slow(snapshot)
    return replace(snapshot, slow=replace(snapshot.slow, **changes))


def edit_qos(snapshot: NodeSnapshot, netdev: str, /, **changes: Any) -> NodeSnapshot:
    """The RoCE settings of one port."""
    snapshot = snapshot if snapshot.slow is not None else with_slow(snapshot)
    ports = snapshot.slow.qos if snapshot.slow is not None else ()
    changed = [replace(port, **changes) if port.netdev == netdev else port for port in ports or ()]
    return edit_slow(snapshot, qos=tuple(changed))


def edit_counters(snapshot: NodeSnapshot, netdev: str, /, **changes: Any) -> NodeSnapshot:
    """What the counters of one port gained; ``*`` stands for all ports."""
    snapshot = snapshot if snapshot.slow is not None else with_slow(snapshot)
    ports = snapshot.slow.counters if snapshot.slow is not None else ()
    changed = [replace(port, **changes) if netdev in ("*", port.netdev) else port for port in ports or ()]
    return edit_slow(snapshot, counters=tuple(changed))


def drop_nic(snapshot: NodeSnapshot, name: str) -> NodeSnapshot:
    """The node without one NIC: no PCI function, no interface, no RDMA device (a NIC that fell off the bus)."""
    pci = _link(snapshot, name).pci
    return replace(
        snapshot,
        links=tuple([link for link in snapshot.links or () if link.name != name]),
        devices=tuple([device for device in snapshot.devices or () if device.pci != pci]),
        pci=tuple([function for function in snapshot.pci or () if function.address != pci]),
        routes=tuple([route for route in snapshot.routes or () if route.dev != name]),
    )


def swap_nics(snapshot: NodeSnapshot, one: str, other: str) -> NodeSnapshot:
    """The node with the names of two NICs exchanged: PCI place, device and address stay, the name does not.

    That is what wrong udev rules do; OCA's addresses were set before, so they belong to the former name.
    """
    exchanged = {one: other, other: one}

    def port(entry: RdmaPort) -> RdmaPort:
        return replace(entry, netdev=exchanged.get(entry.netdev, entry.netdev))

    links = [replace(link, name=exchanged.get(link.name, link.name)) for link in snapshot.links or ()]
    order = {link.name: number for number, link in enumerate(snapshot.links or ())}
    return replace(
        snapshot,
        links=tuple(sorted(links, key=lambda link: order[link.name])),
        devices=tuple(
            [replace(device, ports=tuple(map(port, device.ports))) for device in snapshot.devices or ()]
        ),
        routes=tuple(
            [replace(route, dev=exchanged.get(route.dev, route.dev)) for route in snapshot.routes or ()]
        ),
    )


def without(snapshot: NodeSnapshot, field: str, source: str = "", reason: str = "") -> NodeSnapshot:
    """The node with one part of the snapshot not known, and the read error that explains it where one is given."""
    errors = (*snapshot.errors, ReadError(source, reason)) if source else snapshot.errors
    return replace(snapshot, **{field: None}, errors=errors)


def _link(snapshot: NodeSnapshot, name: str) -> Link:
    return next(link for link in snapshot.links or () if link.name == name)


def _changed(
    entries: Optional[tuple[Any, ...]], key: str, value: str, changes: dict[str, Any]
) -> tuple[Any, ...]:
    found = [entry for entry in entries or () if getattr(entry, key) == value]
    if len(found) != 1:
        raise LookupError("%d entries have %s %r" % (len(found), key, value))
    return tuple([replace(entry, **changes) if entry is found[0] else entry for entry in entries or ()])
