# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the provider answers to the driver's webhook calls (F122-F127). Private to rdma.k8s.

A device that the driver names is served in one of these ways, and all three answers follow from which one it is:

============================  =======================  ==============================================
device                        configuration (F43)      ready
============================  =======================  ==============================================
Ethernet RDMA NIC             profile, type IPVLAN     a claim without settings of its own would succeed
the same on an IPv6 fabric    none: the NIC moves (F4) true
native InfiniBand, servable   none (F82)               true
native InfiniBand, refused    profile, so that it is   false
                              refused when claimed
anything else                 none                     false
============================  =======================  ==============================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Optional, Union

from ..errors import RdmaError
from ..json_text import Reader
from . import imds, profile
from .child_range import validate
from .constants import PROFILE, READY_ATTRIBUTE
from .nic_table import Entry, resolve_listed
from .nics import (
    EXCLUSIVE,
    Device,
    Interface,
    RdmaDevice,
    guard_native_infiniband,
    native_infiniband,
    netns_mode,
    nic_index_of_name,
)

IPVLAN = "IPVLAN"  # F108
EMPTY_CONFIG: Mapping[str, Any] = {"interface": {}}  # F127
CAPABILITIES: Mapping[str, bool] = {"cloudProvider": True, "profileProvider": True}  # F122

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_REQUEST = Reader(
    "request_malformed",
    "The request",
    "Send what DRANET's webhook client sends; look at the provider's page.",
)

Attribute = Mapping[str, Union[str, bool, int]]


@dataclass(frozen=True)
class DeviceRequest:
    """The device of a call, as the driver names it (F123).

    :param name: the name of the device in the slice; newer drivers may give the interface instead. Only for the log.
    :param mac: empty when no interface is attached.
    """

    name: str
    pci_address: str = ""
    mac: str = ""


@dataclass(frozen=True)
class ClaimRequest:
    """A call about a claim (F124). ``config`` is the merged configuration as it came, ``None``: there was none."""

    device: DeviceRequest
    claim_uid: str
    config: Any = None


@dataclass(frozen=True)
class Provider:
    """What is fixed for the life of the process, beside what :class:`.profile.Node` holds.

    :param by_address: no interface of the node had an ``rdmaN`` name at the start, so addresses tell the RDMA NICs
        (F73, F76).
    :param table: the explicit table of NICs; empty: every NIC is derived.
    """

    by_address: bool = False
    table: tuple[Entry, ...] = ()

    def listed(self, device: Device) -> Optional[Entry]:
        """The entry of the table for a device, by its PCI address or the name of its interface."""
        keys = {device.pci_address.lower(), *(device.net or ())}
        return next((entry for entry in self.table if entry.nic in keys), None)


@dataclass(frozen=True)
class Answer:
    """A network configuration for the driver, and in one word why there is none."""

    document: Mapping[str, Any] = field(default_factory=lambda: EMPTY_CONFIG)
    reason: str = ""


# --- requests


def decode(body: bytes) -> Any:
    """The document of a request.

    :raises RdmaError: ``request_malformed``
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _REQUEST.wrong("the body", "UTF-8", repr(body[:20])) from error
    return _REQUEST.json(text)


def device_request(document: Any, where: str = "the body") -> DeviceRequest:
    """The device of a call. Unknown members are left alone: newer drivers may send more (F124).

    :raises RdmaError: ``request_malformed``
    """
    if not isinstance(document, dict):
        raise _REQUEST.wrong(where, "an object", document)
    name = _REQUEST.text(document.get("name"), "name")
    pci = _REQUEST.text(document.get("pci_address"), "pci_address").lower()
    mac = _REQUEST.text(document.get("mac_address"), "mac_address")
    if not (name or pci):
        raise _REQUEST.wrong("name", "the name of a device", document.get("name"))
    if pci and not _PCI_ADDRESS.fullmatch(pci):
        raise _REQUEST.wrong("pci_address", "a PCI address like 0000:0c:00.0", pci)
    return DeviceRequest(name, pci, mac)


def claim_request(document: Any) -> ClaimRequest:
    """The device, the claim and its configuration; the last is read when it is resolved.

    :raises RdmaError: ``request_malformed``
    """
    if not isinstance(document, dict):
        raise _REQUEST.wrong("the body", "an object", document)
    device = device_request(document.get("device"), "device")
    return ClaimRequest(device, _REQUEST.text(document.get("claim_uid"), "claim_uid"), document.get("config"))


def device_of(
    request: DeviceRequest,
    net: Optional[tuple[str, ...]] = (),
    infiniband: tuple[RdmaDevice, ...] = (),
) -> Device:
    """The device with what the node tells of it."""
    return Device(request.pci_address, request.mac, net, infiniband)


# --- answers


def attributes(device: Device, node: profile.Node, provider: Provider) -> dict[str, Attribute]:
    """What every device of the node shows (F70), and whether this one can be served now.

    A text that is longer than the API takes is left out, or the slice with all devices would be refused (F71).
    """
    found: dict[str, Attribute] = {}
    if node.metadata is not None:
        found.update(imds.attributes(node.metadata, validate(node.child_range)))
    found = {name: value for name, value in found.items() if not _too_long(value)}
    found[READY_ATTRIBUTE] = {"bool": is_ready(device, node, provider)}
    return found


def _too_long(value: Attribute) -> bool:
    text = value.get("string")
    return isinstance(text, str) and len(text.encode("utf-8", "replace")) > imds.MAX_ATTRIBUTE_BYTES


def is_ready(device: Device, node: profile.Node, provider: Provider) -> bool:
    """Whether a claim for this device would be served now (F44: a NIC that is not must not be allocated)."""
    try:
        if guard_native_infiniband(device, node.netns_mode) is not None:
            return True
        if not is_ethernet_rdma_nic(device, node, provider):
            return False
        found = _resolve(profile.Claim(profile=PROFILE, type=IPVLAN), device, node, provider)
    except RdmaError:
        return False
    # The profile serves a child in exclusive mode, and the driver then refuses it (F85).
    return found.network_config is None or netns_mode(node.netns_mode) != EXCLUSIVE


def is_ethernet_rdma_nic(device: Device, node: profile.Node, provider: Provider) -> bool:
    """Whether the device is one of the NICs that get children (F73), by the table, its name or its address."""
    if provider.listed(device) is not None:
        return True
    return any(_is_rdma(node.interfaces.get(name), node, provider) for name in device.net or ())


def _is_rdma(interface: Optional[Interface], node: profile.Node, provider: Provider) -> bool:
    if interface is None or not interface.is_ethernet:
        return False
    if nic_index_of_name(interface.name) is not None:
        return True
    return provider.by_address and interface.oca_address(node.oca.network) is not None


def device_config(device: Device, node: profile.Node, provider: Provider) -> Answer:
    """The configuration that a device brings along before any claim (F43)."""
    if native_infiniband(device) is not None:
        try:
            guard_native_infiniband(device, node.netns_mode)
        except RdmaError as error:
            return Answer({"profile": PROFILE, **EMPTY_CONFIG}, error.code)
        return Answer(reason="native_infiniband")
    if not is_ethernet_rdma_nic(device, node, provider):
        return Answer(reason="no_rdma_nic")
    fabric = node.metadata.fabric if node.metadata is not None else None
    if fabric is not None and fabric.ipv6 and provider.listed(device) is None:
        return Answer(reason=profile.FABRIC_IPV6)  # F4
    return Answer({"profile": PROFILE, "interface": {"type": IPVLAN}})


def profile_config(request: ClaimRequest, device: Device, node: profile.Node, provider: Provider) -> Answer:
    """The configuration of a claim (F31-F41).

    :raises RdmaError: of :func:`.profile.resolve`, or ``driver_without_ipvlan``
    """
    claim = _claim_of(json.dumps(request.config))
    found = _resolve(claim, device, node, provider)
    if found.network_config is None:
        return Answer(reason=found.reason)
    if claim is None or claim.type != IPVLAN:
        raise _without_ipvlan(device)
    return Answer(found.network_config.to_dict())


@lru_cache(maxsize=256)  # the claims of a job are all the same
def _claim_of(config: str) -> Optional[profile.Claim]:
    return profile.parse_claim(json.loads(config))


def _resolve(
    claim: Optional[profile.Claim], device: Device, node: profile.Node, provider: Provider
) -> profile.Resolution:
    entry = provider.listed(device)
    if entry is None:
        return profile.resolve(claim, device, node)
    return resolve_listed(claim, device, node, entry)


def _without_ipvlan(device: Device) -> RdmaError:
    """The driver merges our ``type`` of :func:`device_config` into what it sends here, if it knows the field.

    One that does not, drops the field from this answer too, without a word, and would move the NIC into the pod (F148).
    """
    name = (device.net or ("the NIC",))[0]
    return RdmaError(
        "driver_without_ipvlan",
        "DRANET asks for the child of %s without interface.type %s, so it would move the NIC itself into the pod."
        % (name, IPVLAN),
        hint="Install a DRANET that has IPvlan children (v1.4.0 has none); with such a one, wait for its next scan, or "
        "write interface.type in the claim.",
        interface=name,
    )


def status_of(error: RdmaError) -> int:
    """The HTTP status of an error (F37): 400 malformed request, 503 it can heal, 422 a person has to act."""
    if error.code == _REQUEST.code:
        return 400
    return 503 if error.retryable else 422


def sentence_of(error: RdmaError) -> str:
    """The error as one line for the event of a pod, where the driver puts the body of the answer as it is."""
    return " ".join(("%s [%s]" % (error, error.code)).split())
