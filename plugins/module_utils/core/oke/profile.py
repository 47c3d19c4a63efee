# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the profile ``oke-rdma`` makes of a claim (F31-F42). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Optional

from ..errors import RdmaError
from ..snapshot import Route
from . import claim_rules, conflicts
from .addressing import Child, Network, Routing, derive_child, routing
from .child_range import validate
from .constants import ARPHRD_ETHERNET, DEFAULT_CHILD_RANGE
from .imds import Metadata
from .layout import check_layout, check_parent_address, nic_index_of
from .nics import ArpPolicy, Device, Interface, arp_policy, guard_native_infiniband
from .oca import CLASSIC, OcaConfig

FABRIC_IPV6 = "fabric_ipv6"


@dataclass(frozen=True)
class Claim:
    """The network configuration of a claim, as far as the profile looks at it. Empty is absent (F32)."""

    profile: str = ""
    type: str = ""
    addressing: str = ""
    dhcp: bool = False
    addresses: tuple[str, ...] = ()
    arp_ignore: Optional[int] = None
    arp_announce: Optional[int] = None
    owns_routing: bool = False  # routes, rules or a VRF (F38)

    def to_dict(self) -> dict[str, Any]:
        """What the rules of claims look at, in the form of the configuration."""
        interface = {
            "type": self.type,
            "addressing": self.addressing,
            "dhcp": self.dhcp,
            "addresses": list(self.addresses),
        }
        return {"profile": self.profile, "interface": interface}


@dataclass(frozen=True)
class NetworkConfig:
    """The result for an IPv4 fabric: the child, its ARP settings, and its routing unless the claim owns that (F38)."""

    child: Child
    arp: ArpPolicy
    routing: Optional[Routing]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that the driver takes."""
        document: dict[str, Any] = {
            "interface": {
                "type": "IPVLAN",
                "addresses": [str(self.child.child_address)],
                "arpIgnore": self.arp.arp_ignore,
                "arpAnnounce": self.arp.arp_announce,
            }
        }
        if self.routing is not None:
            document["routes"] = [{key: _plain(value) for key, value in vars(self.routing.route).items()}]
            document["rules"] = [{key: _plain(value) for key, value in vars(self.routing.rule).items()}]
        return document


def _plain(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class Resolution:
    """What the profile gives. Without ``network_config``, ``reason`` says why: ``fabric_ipv6``, no IPv4 child (F4)."""

    network_config: Optional[NetworkConfig]
    reason: str = ""


@dataclass(frozen=True)
class Node:
    """What the profile reads on the node.

    :param netns_mode: text of the parameter file, ``None``: no such file.
    :param metadata: ``None``: no snapshot of the metadata service yet.
    :param child_range: a prefix, or the text of the option.
    :param vnics: the document of ``/vnics/``, read fresh; ``None``: the read failed.
    :param host_routes: routes of all tables; ``None``: the read failed.
    :param service_host: the text of KUBERNETES_SERVICE_HOST.
    """

    interfaces: Mapping[str, Interface] = field(default_factory=dict)
    netns_mode: Optional[str] = None
    metadata: Optional[Metadata] = None
    oca: OcaConfig = field(default_factory=OcaConfig)
    child_range: Network = DEFAULT_CHILD_RANGE
    vnics: Any = None
    host_routes: Optional[Iterable[Route]] = None
    service_host: Optional[str] = None


def parse_claim(document: Any) -> Optional[Claim]:
    """The claim of the network configuration of a request; ``None``: there is none.

    :raises RdmaError: ``config_malformed``
    """
    if document is None:
        return None
    malformed = claim_rules.first_violation(document, (claim_rules.BY_CODE["config_malformed"],))
    if malformed is not None:
        raise malformed.error()
    interface = document.get("interface") or {}
    return Claim(
        profile=document.get("profile") or "",
        type=interface.get("type") or "",
        addressing=interface.get("addressing") or "",
        dhcp=bool(interface.get("dhcp")),
        addresses=tuple(entry or "" for entry in interface.get("addresses") or ()),
        arp_ignore=interface.get("arpIgnore"),
        arp_announce=interface.get("arpAnnounce"),
        owns_routing=claim_rules.first_violation(document, claim_rules.ROUTING_RULES) is not None,
    )


def check_claim(claim: Optional[Claim]) -> None:
    """The part of a resolution that needs nothing but the claim (F31, steps 1, 2 and 4).

    :raises RdmaError: ``config_missing``, ``unsupported_profile``, ``claim_passthrough``, ``claim_dhcp``,
        ``claim_unnumbered``, ``claim_addresses``
    """
    check_settings(require_profile(claim))


def resolve(claim: Optional[Claim], device: Device, node: Node) -> Resolution:
    """Resolve a claim for one device, with all checks in the order of the driver (F31).

    :raises RdmaError: the error of the first step that fails; ``retryable`` tells whether waiting can help (F37).
    """
    claim = require_profile(claim)
    guard_native_infiniband(device, node.netns_mode)
    check_settings(claim)
    metadata = _require_fabric(node.metadata)
    if metadata.fabric is not None and metadata.fabric.ipv6:
        return Resolution(None, FABRIC_IPV6)
    _require_vnic_known(metadata)
    _check_address_mode(node.oca.address_mode)
    interface = ethernet_interface(device, node.interfaces)
    arp = arp_policy(
        claim.arp_ignore, claim.arp_announce, interface.arp_ignore, interface.arp_announce, interface.name
    )
    index = nic_index_of(interface, metadata.vnic, node.oca.network)
    child = _derive_without_conflict(interface, index, node, metadata)
    check_parent_address(interface, child.parent)
    if node.oca.address_mode is None:
        check_layout(node.interfaces, metadata.vnic, node.oca.network)
    routes = None if claim.owns_routing else routing(child.child, validate(node.child_range), index)
    return Resolution(NetworkConfig(child, arp, routes))


def require_profile(claim: Optional[Claim]) -> Claim:
    """Steps 1 and 2.

    :raises RdmaError: ``config_missing``, ``unsupported_profile``
    """
    if claim is None:
        raise claim_rules.CONFIG_MISSING.error()
    broken = _unsupported_profile(claim)
    if broken is not None:
        raise broken.error(profile=claim.profile)
    return claim


def check_settings(claim: Claim) -> None:
    """Step 4 (F32).

    :raises RdmaError: ``claim_passthrough``, ``claim_dhcp``, ``claim_unnumbered``, ``claim_addresses``
    """
    broken = _broken_setting(claim)
    if broken is not None:
        raise broken.error()


@lru_cache(maxsize=1024)  # the claims of a job are all the same
def _unsupported_profile(claim: Claim) -> Optional[claim_rules.Violation]:
    return claim_rules.first_violation(claim.to_dict(), (claim_rules.UNSUPPORTED_PROFILE,))


@lru_cache(maxsize=1024)
def _broken_setting(claim: Claim) -> Optional[claim_rules.Violation]:
    return claim_rules.first_violation(claim.to_dict(), claim_rules.PROVIDER_RULES)


def _require_fabric(metadata: Optional[Metadata]) -> Metadata:
    """Step 5."""
    if metadata is None or metadata.fabric is None:
        raise RdmaError(
            "fabric_not_available",
            "The metadata service gave no complete rdmaFabricData yet.",
            hint="Look at rdmaFabricData in /host/ of the metadata service: ipv6 and planes must both be there.",
            retryable=True,
        )
    return metadata


def _require_vnic_known(metadata: Metadata) -> None:
    """Step 7."""
    if metadata.vnic is None:
        raise RdmaError(
            "vnic_not_available",
            "The primary VNIC of the node is not known yet.",
            hint="Look at the first entry of /vnics/ of the metadata service.",
            retryable=True,
        )


def _check_address_mode(mode: Optional[str]) -> None:
    """Step 8."""
    if mode is not None and mode != CLASSIC:
        raise RdmaError(
            "unsupported_address_mode",
            "OCA addresses the RDMA NICs in %s mode, expected %s." % (mode, CLASSIC),
            hint="Turn the other modes off in rdma_features_enable.json: the profile knows the classic formula only.",
            address_mode=mode,
        )


def ethernet_interface(device: Device, interfaces: Mapping[str, Interface]) -> Interface:
    """Steps 9 and 10 (F33).

    :raises RdmaError: ``no_pci_address``, ``pci_net_unreadable``, ``pci_net_count``, ``hardware_type_unreadable``,
        ``not_ethernet``
    """
    name = _only_interface(device)
    interface = interfaces.get(name)
    if interface is None or interface.arphrd is None:
        raise RdmaError(
            "hardware_type_unreadable",
            "The hardware type of %s cannot be read." % name,
            hint="The interface may have moved into a pod or been renamed: look at it on the node.",
            interface=name,
        )
    if not interface.is_ethernet:
        raise RdmaError(
            "not_ethernet",
            "%s has hardware type %d, expected %d (Ethernet)." % (name, interface.arphrd, ARPHRD_ETHERNET),
            hint="An InfiniBand device (type 32) has no IPvlan child: claim it as an RDMA device only.",
            interface=name,
            arphrd=interface.arphrd,
        )
    return interface


def _only_interface(device: Device) -> str:
    if not device.pci_address:
        raise RdmaError(
            "no_pci_address",
            "The device has no PCI address.",
            hint="The profile serves PCI functions with one network interface: select another device.",
        )
    if device.net is None:
        raise RdmaError(
            "pci_net_unreadable",
            "The network interfaces of PCI device %s cannot be read." % device.pci_address,
            hint="Look at /sys/bus/pci/devices/%s/net on the node." % device.pci_address,
            pci_address=device.pci_address,
        )
    if len(device.net) != 1:
        raise RdmaError(
            "pci_net_count",
            "PCI device %s has %d network interfaces (%s), expected 1."
            % (device.pci_address, len(device.net), ", ".join(device.net) or "none"),
            hint="Look at /sys/bus/pci/devices/%s/net on the node." % device.pci_address,
            pci_address=device.pci_address,
            count=len(device.net),
        )
    return device.net[0]


def _derive_without_conflict(interface: Interface, index: int, node: Node, metadata: Metadata) -> Child:
    """Steps 14 and 15, whose errors name the interface (F25)."""
    with errors_name(interface):
        child = derive_child(metadata.vnic, index, node.oca.network, node.child_range)
        conflicts.check(validate(node.child_range), node.vnics, node.host_routes, node.service_host)
    return child


@contextmanager
def errors_name(interface: Interface) -> Iterator[None]:
    """Errors from here name the interface, in front of the message and in the details (F25)."""
    try:
        yield
    except RdmaError as error:
        raise RdmaError(
            error.code,
            "%s: %s" % (interface.name, error.message),
            hint=error.hint,
            retryable=error.retryable,
            **{**error.details, "interface": interface.name},
        ) from error
