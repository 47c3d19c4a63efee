# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents of the metadata service, as the driver reads them (F60-F72).

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Optional, Union

from ..errors import RdmaError
from ..json_text import Reader
from ..net import Prefix, find_address, find_prefix, quoted
from .addressing import AnyVnic, Vnic
from .constants import ATTRIBUTE_DOMAIN, DEFAULT_CHILD_RANGE

_HINT = "Read the document again on the node: curl -H 'Authorization: Bearer Oracle' http://169.254.169.254/opc/v2%s"
_HOST = Reader("host_malformed", "/host/", _HINT % "/host/", retryable=True)
_INSTANCE = Reader("instance_malformed", "/instance/", _HINT % "/instance/", retryable=True)
_VNICS = Reader("vnics_malformed", "/vnics/", _HINT % "/vnics/", retryable=True)

MAX_SUFFIX = 60  # F65
MAX_ATTRIBUTE_BYTES = 64  # F71


@dataclass(frozen=True)
class Fabric:
    """Complete RDMA fabric data (F63)."""

    ipv6: bool
    planes: int


@dataclass(frozen=True)
class Metadata:
    """What the driver keeps of all documents: empty or ``None`` is "not known" (F62-F70)."""

    hpc_island_id: str = ""
    network_block_id: str = ""
    local_block_id: str = ""
    rack_id: str = ""
    gpu_memory_fabric_id: str = ""
    shape: str = ""
    fabric: Optional[Fabric] = None
    vnic: Optional[AnyVnic] = None


class VnicEntry(NamedTuple):
    """The fields of one entry of ``/vnics/`` that are read; absent is empty."""

    address: str
    subnet: str
    blocks: tuple[str, ...]


def parse_host(document: Any) -> Metadata:
    """The part of the metadata that ``/host/`` gives (F62-F66). Absent: the empty metadata.

    :raises RdmaError: ``host_malformed``; the driver then goes on without the whole document.
    """
    host = _HOST.members(document, "the document")
    block = _HOST.text(host.get("networkBlockId"), "networkBlockId")
    rack = _HOST.text(host.get("rackId"), "rackId")
    fabric = parse_fabric(host.get("rdmaFabricData"))
    topology = host.get("rdmaTopologyData")
    if topology is None:
        return Metadata(network_block_id=block, rack_id=rack, fabric=fabric)
    ids = _topology_ids(topology)
    return Metadata(
        hpc_island_id=ids["customerHPCIslandId"],
        network_block_id=ids["customerNetworkBlock"],
        local_block_id=ids["customerLocalBlock"],
        rack_id=rack,
        gpu_memory_fabric_id=ids["customerGpuMemoryFabric"],
        fabric=fabric,
    )


def _topology_ids(topology: Any) -> dict[str, str]:
    """Shortened ids of ``rdmaTopologyData``; one that is no OCID is empty (F64, F65)."""
    members = _HOST.members(topology, "rdmaTopologyData")
    names = (
        "customerHPCIslandId",
        "customerNetworkBlock",
        "customerLocalBlock",
        "customerGpuMemoryFabric",
        "customerHostId",  # decoded, not used (F62)
    )
    values = {name: _HOST.text(members.get(name), "rdmaTopologyData." + name) for name in names}
    return {name: _suffix_or_empty(value) for name, value in values.items()}


def _suffix_or_empty(value: str) -> str:
    try:
        return ocid_suffix(value)
    except RdmaError:
        return ""


def parse_fabric(value: Any) -> Optional[Fabric]:
    """``rdmaFabricData``; ``None`` unless both fields are there: a part of it equals none (F63).

    :raises RdmaError: ``host_malformed``
    """
    members = _HOST.members(value, "rdmaFabricData")
    ipv6 = _HOST.flag(members.get("ipv6"), "rdmaFabricData.ipv6")
    planes = _HOST.integer(members.get("planes"), "rdmaFabricData.planes")
    return None if ipv6 is None or planes is None else Fabric(ipv6, planes)


def parse_instance(document: Any) -> Metadata:
    """The part of the metadata that ``/instance/`` gives (F62). Absent: the empty metadata.

    :raises RdmaError: ``instance_malformed``
    """
    members = _INSTANCE.members(document, "the document")
    return Metadata(shape=_INSTANCE.text(members.get("shape"), "shape"))


def read(host: Any, instance: Any, vnics: Any = None) -> tuple[Metadata, list[RdmaError]]:
    """The metadata of one read of all documents; one that is unusable is left out, and its error returned (F66, F67).

    ``None``: the request failed, or was not made.
    """
    metadata, errors = Metadata(), []
    for parse, document in ((parse_host, host), (parse_instance, instance), (_parse_vnic, vnics)):
        try:
            metadata = merge(metadata, Metadata() if document is None else parse(document))
        except RdmaError as error:
            errors.append(error)
    return metadata, errors


def _parse_vnic(document: Any) -> Metadata:
    return Metadata(vnic=parse_primary_vnic(document))


def merge(current: Optional[Metadata], new: Metadata) -> Metadata:
    """A later read over an earlier one: what it does not know stays (F68)."""
    if current is None:
        return new
    known = {field.name: getattr(new, field.name) for field in fields(new) if getattr(new, field.name)}
    return replace(current, **known)


def attributes(
    metadata: Metadata, child_range: Prefix = DEFAULT_CHILD_RANGE
) -> dict[str, dict[str, Union[str, bool, int]]]:
    """The attributes of every device of the node, in the form of a ResourceSlice (F70).

    The child range is only published on a known IPv4 fabric.
    """
    texts = {
        "hpcIslandId": metadata.hpc_island_id,
        "networkBlockId": metadata.network_block_id,
        "localBlockId": metadata.local_block_id,
        "rackId": metadata.rack_id,
        "gpuMemoryFabricId": metadata.gpu_memory_fabric_id,
        "shape": metadata.shape,
    }
    found: dict[str, dict[str, Union[str, bool, int]]] = {
        _qualified(name): {"string": value} for name, value in texts.items() if value
    }
    fabric = metadata.fabric
    if fabric is not None:
        found[_qualified("rdmaFabricIpv6")] = {"bool": fabric.ipv6}
        found[_qualified("rdmaFabricPlanes")] = {"int": fabric.planes}
        if not fabric.ipv6:
            found[_qualified("rdmaChildIpv4Cidr")] = {"string": str(child_range)}
    return found


def _qualified(name: str) -> str:
    return "%s/%s" % (ATTRIBUTE_DOMAIN, name)


def ocid_suffix(value: str) -> str:
    """The last part of an OCID, at most its last 60 characters; of an empty text the empty text (F65).

    :raises RdmaError: ``ocid_missing_prefix``, ``ocid_missing_separator``
    """
    if not value:
        return ""
    if "ocid" not in value:
        raise _no_ocid("ocid_missing_prefix", value, "does not contain 'ocid'")
    if "." not in value:
        raise _no_ocid("ocid_missing_separator", value, "contains no '.'")
    return value.rpartition(".")[2][-MAX_SUFFIX:]


def _no_ocid(code: str, value: str, problem: str) -> RdmaError:
    return RdmaError(
        code,
        "%s is not an OCID: it %s." % (quoted(value), problem),
        hint="Give the identifier as OCI shows it, such as ocid1.hpcisland.oc1.REGION.TEXT.",
        value=value,
    )


def parse_vnics(document: Any) -> list[VnicEntry]:
    """The entries of ``/vnics/`` (F46, F69). ``None`` is an empty list.

    :raises RdmaError: ``vnics_malformed``, also for a wrong type in a later entry
    """
    entries = _VNICS.entries(document, "the document")
    return [_vnic_entry(entry, "vnics[%d]" % number) for number, entry in enumerate(entries)]


def _vnic_entry(entry: Any, where: str) -> VnicEntry:
    members = _VNICS.members(entry, where)
    blocks = _VNICS.entries(members.get("subnetCidrBlocks"), where + ".subnetCidrBlocks")
    return VnicEntry(
        _VNICS.text(members.get("privateIp"), where + ".privateIp"),
        _VNICS.text(members.get("subnetCidrBlock"), where + ".subnetCidrBlock"),
        tuple([_VNICS.text(block, where + ".subnetCidrBlocks") for block in blocks]),
    )


def parse_primary_vnic(document: Any) -> Optional[Vnic]:
    """Address and masked subnet of the first VNIC; ``None``: no IPv4 address yet, ask again (F69).

    Whether the address is inside the subnet is checked when something is derived from it.

    :raises RdmaError: ``vnics_malformed``, ``vnics_empty``, ``vnic_address_parse_error``, ``vnic_subnet_missing``,
        ``vnic_subnet_parse_error``
    """
    entries = parse_vnics(document)
    if not entries:
        raise _vnic_error("vnics_empty", "has no entry, expected the primary VNIC first")
    text, subnet_text, _blocks = entries[0]
    if not text:
        return None
    address = find_address(text)
    if address is None:
        raise _vnic_error(
            "vnic_address_parse_error", "has privateIp %s, which is not an address" % quoted(text)
        )
    if address.version != 4:
        return None
    if not subnet_text:
        raise _vnic_error("vnic_subnet_missing", "has no subnetCidrBlock for the primary VNIC %s" % address)
    subnet = find_prefix(subnet_text)
    if subnet is None:
        raise _vnic_error(
            "vnic_subnet_parse_error", "has subnetCidrBlock %s, which is not a prefix" % quoted(subnet_text)
        )
    return Vnic(address, subnet.masked()) if subnet.version == 4 else None


def _vnic_error(code: str, problem: str) -> RdmaError:
    return RdmaError(code, "/vnics/ %s." % problem, hint=_HINT % "/vnics/", retryable=True)


def parse_vnic_subnets(document: Any) -> tuple[Prefix, ...]:
    """All IPv4 subnets of all VNICs, masked, in the order of the document, duplicates kept (F46).

    :raises RdmaError: ``vnics_malformed``
    """
    texts = [text for entry in parse_vnics(document) for text in (entry.subnet, *entry.blocks)]
    found = [find_prefix(text) for text in texts]
    return tuple([prefix.masked() for prefix in found if prefix is not None and prefix.version == 4])
