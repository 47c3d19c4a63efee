# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab is made of, computed without touching anything: addresses, MACs, shapes, and what each node is told.

Everything here is a function of the ``LabSpec``. The numbers of the facts are those of the OKE document of facts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import json
import re

from .errors import LabError

MAX_NODES = 16
MAX_RAILS = 16
VNIC_SUBNET = ipaddress.IPv4Network("10.140.64.0/19")
"""Subnet of the primary VNIC of every node; the reference node of F15 lives in it."""
VNIC_POSITION = 3346
"""Position of "node 0" in the subnet, so that node1 is the reference node 10.140.77.19."""
OCA_NETWORK = ipaddress.IPv4Network("10.224.0.0/12")
CHILD_RANGE = ipaddress.IPv4Network("10.208.0.0/12")
MTU = 4220
LINK_MTU = 9000
"""The largest MTU that the lab's wires offer (virtio; e1000e has its own limit of 9212)."""
MEMORY = 512
"""MB of a node."""
KUBE_MEMORY = 1024
"""MB of a node that can be one of a cluster."""
DRIVERS = ("lab", "stock")
NICS = ("virtio", "e1000e")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?")
OCA_DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
AGENT_PLUGINS = ("Compute HPC RDMA Authentication", "Compute HPC RDMA Auto-Configuration")
LAB_SHAPE = re.compile(r"LAB\.RXE\.([1-9]|1[0-6])")

# Where the NICs sit when a lab is started with --numa: the bus of each card of an eight-card server (F129).
# A bus below 0x80 belongs to NUMA node 0, the others to node 1.
CARD_BUSES = (0x0C, 0x2A, 0x41, 0x58, 0x86, 0xA5, 0xBD, 0xD5)


@dataclasses.dataclass(frozen=True)
class Shape:
    """What the metadata service says of a machine, and how many RDMA NICs it has, where."""

    name: str
    rails: int
    pci: tuple[str, ...] = ()
    ipv6: bool = False
    planes: int = 1
    topology: bool = True


SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "BM.GPU.H100.8",
            16,
            tuple(f"{bus:02x}:00.{function}" for bus in CARD_BUSES for function in (0, 1)),
        ),
        Shape("BM.GPU.H200.8", 8),
        Shape("BM.HPC2.36", 1, ("5e:00.0",), topology=False),
        Shape("BM.Optimized3.36", 1, ("98:00.0",), topology=False),
    )
}
"""Shapes of real machines that a lab node can claim to be (F128, F129)."""


@dataclasses.dataclass(frozen=True)
class LabSpec:
    """All that decides how a lab looks from inside; two labs with equal specs have equal nodes."""

    nodes: int = 2
    rails: int = 4
    nic: str = "virtio"
    numa: bool = False
    mem: int = 512
    shape: str = "LAB.RXE.4"
    driver: str = "lab"
    kube: bool = False

    def to_dict(self) -> dict:
        """A plain dictionary, for the state file."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class PciPlace:
    """Place of one NIC: bus and function (device is always 0) and the NUMA node of the bus."""

    bus: int
    function: int
    numa_node: int


def find_shape(name: str) -> Shape:
    """The shape called ``name``. ``LAB.RXE.N`` exists for every N from 1 to 16; others stand in the table."""
    match = LAB_SHAPE.fullmatch(name)
    if match:
        return Shape(name, int(match[1]))
    if name not in SHAPES:
        known = ", ".join(sorted(SHAPES))
        raise LabError("shape_unknown", f"--shape {name}: use LAB.RXE.1 to LAB.RXE.16, or one of {known}.")
    return SHAPES[name]


def make_spec(
    *,
    nodes: int = 2,
    rails: int | None = None,
    nic: str = "virtio",
    numa: bool = False,
    mem: int | None = None,
    shape: str | None = None,
    driver: str = "lab",
    kube: bool = False,
) -> LabSpec:
    """Check the wishes of the user and fill in what follows from the others (rails from shape, shape from rails)."""
    if not 1 <= nodes <= MAX_NODES:
        raise LabError("nodes_range", f"--nodes {nodes}: a lab has 1 to {MAX_NODES} nodes.")
    if rails is None:
        rails = find_shape(shape).rails if shape else 4
    if not 1 <= rails <= MAX_RAILS:
        raise LabError("rails_range", f"--rails {rails}: a node has 1 to {MAX_RAILS} rails (F7).")
    if nic not in NICS:
        raise LabError("nic_unknown", f"--nic {nic}: use one of {', '.join(NICS)}.")
    if driver not in DRIVERS:
        raise LabError("driver_unknown", f"--driver {driver}: use one of {', '.join(DRIVERS)}.")
    if mem is None:
        mem = KUBE_MEMORY if kube else MEMORY
    if mem < 256:
        raise LabError("mem_range", f"--mem {mem}: a node needs at least 256 MB.")
    if mem % 2:
        raise LabError(
            "mem_range", f"--mem {mem}: give an even number of MB, it is halved between two NUMA nodes."
        )
    shape = shape or f"LAB.RXE.{rails}"
    find_shape(shape)
    return LabSpec(nodes, rails, nic, numa, mem, shape, driver, kube)


def check_name(name: str) -> str:
    """``name`` if it can name a lab, else an error: it becomes part of a directory and of a command line."""
    if not NAME.fullmatch(name):
        raise LabError(
            "name_bad", f"--name {name!r}: use 1 to 24 lower-case letters, digits and inner dashes."
        )
    return name


def vnic_address(node: int) -> ipaddress.IPv4Address:
    """Address of the primary VNIC of node ``node`` (1 is the first)."""
    return VNIC_SUBNET.network_address + VNIC_POSITION + node


def vnic_gateway() -> ipaddress.IPv4Address:
    """Router of the VNIC subnet, as in OCI its first address."""
    return VNIC_SUBNET.network_address + 1


def rail_address(
    network: ipaddress.IPv4Network,
    rail: int,
    vnic: ipaddress.IPv4Address,
    subnet: ipaddress.IPv4Network = VNIC_SUBNET,
) -> ipaddress.IPv4Address:
    """Address of rail ``rail`` in ``network`` by the classic OCA layout (F13).

    With ``network`` the OCA network it is the parent, with the child range it is the child. Raises ``address_fit``
    when the offset is not inside the network.
    """
    offset = rail * subnet.num_addresses + int(vnic) - int(subnet.network_address)
    if offset >= network.num_addresses:
        raise LabError(
            "address_fit", f"Rail {rail} of VNIC {vnic} does not fit {network}: its offset is {offset}."
        )
    return network.network_address + offset


def mac(node: int | None, rail: int | None) -> str:
    """MAC of the management NIC (``rail`` None) or of one rail of a node; with ``node`` None a pattern for any node."""
    number = "*" if node is None else f"{node:02x}"
    return f"52:54:00:00:{number}:00" if rail is None else f"52:54:00:01:{number}:{rail:02x}"


def udev_rules() -> str:
    """Names of the rails by MAC. Only devices with a driver: an IPvlan child has the MAC of its parent."""
    lines = ["# Names of the rails; written by the lab from its plan of MACs."]
    for rail in range(MAX_RAILS):
        match = f'SUBSYSTEM=="net", ACTION=="add", DRIVERS=="?*", ATTR{{address}}=="{mac(None, rail)}"'
        lines.append(f'{match}, NAME="rdma{rail}"')
    return "\n".join(lines) + "\n"


def pci_places(spec: LabSpec) -> tuple[PciPlace, ...]:
    """The PCI place of every rail of a lab with NUMA nodes: the shape's own places, else spread over eight cards."""
    own = find_shape(spec.shape).pci
    if len(own) >= spec.rails:
        pairs = [(int(bus, 16), int(function)) for bus, function in (place.split(":00.") for place in own)]
    else:
        functions = 2 if spec.rails > len(CARD_BUSES) else 1
        pairs = [(bus, function) for bus in CARD_BUSES for function in range(functions)]
    return tuple(PciPlace(bus, function, 0 if bus < 0x80 else 1) for bus, function in pairs[: spec.rails])


def ocid(kind: str, seed: str) -> str:
    """An identifier of the form that OCI uses, always the same for the same ``seed``."""
    digest = hashlib.sha256(f"{kind} {seed}".encode()).hexdigest()
    letters = "".join(
        "abcdefghijklmnopqrstuvwxyz234567"[int(c, 16) + 16 * (i % 2)] for i, c in enumerate(digest[:60])
    )
    return f"ocid1.{kind}.oc1.lab.{letters}"


def imds_documents(spec: LabSpec, node: int) -> dict:
    """What the metadata service of one node answers below /opc/v2/ (F60, F62, F69)."""
    shape = find_shape(spec.shape)
    host = {
        "id": hashlib.sha256(f"host {node}".encode()).hexdigest(),
        "networkBlockId": hashlib.sha256(b"network block").hexdigest(),
        "rackId": hashlib.sha256(f"rack {node}".encode()).hexdigest(),
        "rdmaFabricData": {"ipv6": shape.ipv6, "planes": shape.planes},
    }
    if shape.topology:
        host["rdmaTopologyData"] = {
            "customerHPCIslandId": ocid("hpcisland", "lab"),
            "customerNetworkBlock": ocid("computenetworkblock", "lab"),
            "customerLocalBlock": ocid("computelocalblock", "lab"),
            "customerGpuMemoryFabric": "",
            "customerHostId": ocid("computebaremetalhost", f"node{node}"),
        }
    instance = {
        "id": ocid("instance", f"node{node}"),
        "displayName": f"node{node}",
        "hostname": f"node{node}",
        "shape": spec.shape,
        "state": "Running",
        "region": "lab",
        "canonicalRegionName": "lab-1",
        "availabilityDomain": "lab:AD-1",
        "faultDomain": "FAULT-DOMAIN-1",
        "compartmentId": ocid("compartment", "lab"),
        "agentConfig": {
            "monitoringDisabled": False,
            "managementDisabled": False,
            "allPluginsDisabled": False,
            "pluginsConfig": [{"name": name, "desiredState": "ENABLED"} for name in AGENT_PLUGINS],
        },
        "metadata": {},
    }
    vnic = {
        "vnicId": ocid("vnic", f"node{node}"),
        "privateIp": str(vnic_address(node)),
        "subnetCidrBlock": str(VNIC_SUBNET),
        "virtualRouterIp": str(vnic_gateway()),
        "macAddr": mac(node, None),
        "vlanTag": 0,
        "nicIndex": 0,
    }
    return {"host": host, "instance": instance, "vnics": [vnic]}


def oca_files() -> dict[str, str]:
    """The two files of the OCA directory, by path, for the classic address mode (F51, F53, F55)."""
    network = {
        "version": "1",
        "rdma-network": [
            {
                "default-settings": {
                    "rdma_network": str(OCA_NETWORK),
                    "overwrite_config_files": False,
                    "single_subnet": True,
                    "modify_subnet": True,
                    "modify_arp": True,
                },
                "subnet-settings": {
                    "netmask": str(OCA_NETWORK.netmask),
                    "override_netconfig_netmask": str(OCA_NETWORK.netmask),
                },
                "arp-settings": {"rp_filter": "2", "arp_ignore": "1", "arp_announce": "2"},
            }
        ],
    }
    features = {"host_serial_based_rdma_ips": False, "ipv4_topology_based_rdma_ips": False}
    return {
        f"{OCA_DIRECTORY}/rdma_network.json": json.dumps(network, indent=2) + "\n",
        f"{OCA_DIRECTORY}/rdma_features_enable.json": json.dumps(features, indent=2) + "\n",
    }


def node_document(spec: LabSpec, node: int) -> dict:
    """Everything that node ``node`` is told at boot, through QEMU's firmware configuration device."""
    rails = [
        {
            "index": rail,
            "name": f"rdma{rail}",
            "mac": mac(node, rail),
            "address": str(rail_address(OCA_NETWORK, rail, vnic_address(node))),
            "prefix": OCA_NETWORK.prefixlen,
            "network": str(OCA_NETWORK),
            "mtu": MTU,
            "table": 10 + rail,
            "priority": 1000 + rail,
            "sysctl": {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"},
            "rdma_device": f"mlx5_{rail}",
        }
        for rail in range(spec.rails)
    ]
    return {
        "node": node,
        "hostname": f"node{node}",
        "driver": spec.driver,
        "gateway": str(vnic_gateway()),
        "rails": rails,
        "files": oca_files(),
        "imds": imds_documents(spec, node),
    }


def digest(*parts: object) -> str:
    """A short hash over anything that ``json`` can write; bytes count by their content."""

    def plain(value: object) -> str:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else str(value)

    return hashlib.sha256(json.dumps(parts, default=plain, sort_keys=True).encode()).hexdigest()[:16]
