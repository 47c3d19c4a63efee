# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, slices and pods as the API of a cluster gives them, in any number and as large as real ones."""

from __future__ import annotations

from typing import Any

SUBNET, BLOCK, POSITION = 0x0A8C4000, 8192, 10  # 10.140.64.0/19, the first node at .10
OCA_NETWORK = 0x0AE00000  # 10.224.0.0/12
ISLAND_OF, BLOCK_OF, LOCAL_OF = 2000, 500, 50
"""Nodes of one HPC island, of one network block, of one local block."""


def text(address: int) -> str:
    """The text of an IPv4 address."""
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def name_of(number: int) -> str:
    """The name of a node."""
    return f"gpu-{number:05d}"


def address_of(number: int) -> str:
    """The address of a node."""
    return text(SUBNET + POSITION + number)


def parent(number: int, nic: int, length: int = 12) -> str:
    """Address and length of an RDMA NIC (F13)."""
    return f"{text(OCA_NETWORK + nic * BLOCK + POSITION + number)}/{length}"


def level(number: int, members: int) -> str:
    """The end of an OCID that all members of a part of the fabric have."""
    return f"anuwcljr{number // members:052d}"


def node(number: int = 0, name: str = "", oci: bool = True) -> dict[str, Any]:
    """A node as a kubelet registers it, of OKE or of nobody in particular, with little beside what is read."""
    name = name or name_of(number)
    shape = {"node.kubernetes.io/instance-type": "BM.GPU.H100.8"} if oci else {}
    return {
        "metadata": {
            "name": name,
            "uid": f"0b6f2d1e-0000-4c1e-9a57-{number:012x}",
            "labels": {"kubernetes.io/hostname": name, **shape},
            "annotations": {},
        },
        "spec": {"providerID": f"ocid1.instance.oc1.iad.anuwcljt{number:052d}"} if oci else {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address_of(number)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": {"cpu": "224", "memory": "2113Gi", "nvidia.com/gpu": "8"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
        },
    }


def large_node(number: int) -> dict[str, Any]:
    """A node with all that a GPU node of a real cluster carries: labels of feature discovery, images, owners."""
    found = node(number)
    features = {f"feature.node.kubernetes.io/cpu-cpuid.X{bit}": "true" for bit in range(60)}
    gpus = {f"nvidia.com/property-{index}": f"value-{index}" for index in range(30)}
    blocks = {
        "oci.oraclecloud.com/rdma.hpc_island_id": f"isl{number // ISLAND_OF}",
        "oci.oraclecloud.com/rdma.network_block_id": f"net{number // BLOCK_OF}",
        "oci.oraclecloud.com/rdma.local_block_id": f"loc{number // LOCAL_OF}",
    }
    found["metadata"]["labels"].update({**features, **gpus, **blocks})
    owned = {f"f:{key}": {} for key in found["metadata"]["labels"]}
    found["metadata"]["managedFields"] = [
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": owned}}}
    ]
    found["metadata"]["annotations"] = {"nfd.node.kubernetes.io/feature-labels": ",".join(features)}
    for condition in found["status"]["conditions"]:
        condition.update(
            lastHeartbeatTime="2026-11-01T00:00:00Z", reason="KubeletIs", message="the kubelet is well"
        )
    found["status"]["images"] = [
        {
            "names": [
                f"registry.example/team/images/image-{index}@sha256:{index:064d}",
                f"registry.example/team/images/image-{index}:v1.{index}",
            ],
            "sizeBytes": 123456789 + index,
        }
        for index in range(50)
    ]
    return found


def device(number: int, nic: int, **changed: Any) -> dict[str, Any]:
    """One RDMA NIC of a slice with the attributes of F70 and F101; ``changed`` by the name behind the last slash."""
    values: dict[str, Any] = {
        "dra.net/ifName": f"rdma{nic}",
        "dra.net/pciAddress": f"0000:{nic:02x}:00.{nic % 2}",
        "dra.net/mac": f"b8:3f:d2:{number >> 8 & 255:02x}:{number & 255:02x}:{nic:02x}",
        "dra.net/pciVendor": "Mellanox Technologies",
        "dra.net/pciDevice": "MT2910 Family [ConnectX-7]",
        "dra.net/numaNode": nic // 8,
        "dra.net/mtu": 4220,
        "dra.net/encapsulation": "ether",
        "dra.net/state": "up",
        "dra.net/type": "device",
        "dra.net/ipv4": parent(number, nic),
        "dra.net/ebpf": False,
        "dra.net/sriov": False,
        "dra.net/virtual": False,
        "dra.net/rdma": True,
        "dra.net/rdmaDevice": f"mlx5_{nic}",
        "resource.kubernetes.io/pcieRoot": f"pci0000:{nic:02x}",
        "oke.dra.net/shape": "BM.GPU.H100.8",
        "oke.dra.net/hpcIslandId": level(number, ISLAND_OF),
        "oke.dra.net/networkBlockId": level(number, BLOCK_OF),
        "oke.dra.net/localBlockId": level(number, LOCAL_OF),
        "oke.dra.net/rackId": f"rack{number // 16}",
        "oke.dra.net/rdmaFabricIpv6": False,
        "oke.dra.net/rdmaFabricPlanes": 1,
        "oke.dra.net/rdmaChildIpv4Cidr": "10.208.0.0/12",
    }
    attributes = {}
    for key, usual in values.items():
        value = changed.get(key.rpartition("/")[2], usual)
        if value is not None:
            kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
            attributes[key] = {kind: value}
    return {"name": f"pci-0000-{nic:02x}-00-{nic % 2}", "attributes": attributes}


def piece(
    number: int = 0, name: str = "", nics: int = 16, generation: int = 1, **changed: Any
) -> dict[str, Any]:
    """The ResourceSlice of a node (F99)."""
    name = name or name_of(number)
    return {
        "metadata": {"name": f"{name}-dra.net-x7k2p", "uid": f"slice-{number}"},
        "spec": {
            "driver": "dra.net",
            "nodeName": name,
            "pool": {"name": name, "generation": generation, "resourceSliceCount": 1},
            "devices": [device(number, nic, **changed) for nic in range(nics)],
        },
    }


def pod(
    node_name: str, name: str, ready: bool = True, created: str = "2026-11-01T00:00:00Z"
) -> dict[str, Any]:
    """A pod of the node agent."""
    return {
        "metadata": {"name": name, "namespace": "rdma", "creationTimestamp": created},
        "spec": {"nodeName": node_name},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
