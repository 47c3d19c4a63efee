# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DeviceClasses, ResourceClaims and ResourceClaimTemplates for the RDMA NICs of DRANET.

Private to rdma.k8s: it may change with any release. One claim asks for every NIC with one request each (F121);
DRANET takes the first configuration that fits a request, so a request never has two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from ..errors import RdmaError
from ..kube.manifest import require_name
from ..net import Address, find_prefix, quoted
from . import addressing, child_range
from .claim_nics import ClaimNic
from .constants import ATTRIBUTE_DOMAIN, DRIVER, PROFILE, READY_ATTRIBUTE

API_VERSION = "resource.k8s.io/v1"
TEMPLATE, CLAIM = KINDS = ("ResourceClaimTemplate", "ResourceClaim")
LABELS = {"app.kubernetes.io/managed-by": "rdma.k8s"}

MAX_REQUESTS = 32
"""Requests of a claim, and devices that they may get together; a limit of the API."""
MAX_EXPRESSION = 10 * 1024
"""Characters of a CEL expression of a selector; a limit of the API."""

CLOUD, WEBHOOK, NONE = PROVIDERS = ("cloud", "webhook", "none")
ALIGN = {"pcie_root": "resource.kubernetes.io/pcieRoot", "numa": "resource.kubernetes.io/numaNode"}
"""The standard attributes that a GPU and a NIC can have in common (F101)."""

NODE_ATTRIBUTES: Mapping[str, type] = {
    "hpcIslandId": str,
    "networkBlockId": str,
    "localBlockId": str,
    "rackId": str,
    "gpuMemoryFabricId": str,
    "shape": str,
    "rdmaFabricIpv6": bool,
    "rdmaFabricPlanes": int,
    "rdmaChildIpv4Cidr": str,
}
"""Attributes that describe the node, on each of its devices (F70)."""

LOST_WITHOUT_PROVIDER = (
    "nothing checks the addresses, the range or the settings of the claim",
    "a claim that sets interface.type Passthrough moves the RDMA NIC into the pod",
    "the routing of the Oracle Cloud Agent is not restored when such a NIC comes back",
)
"""What a claim with its own addresses does without (F87, F105)."""

_ARP = {"arpIgnore": 1, "arpAnnounce": 2}  # F79: what the agent sets on its NICs
_ATTRIBUTE = re.compile(r"(?:([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)/)?([A-Za-z_][A-Za-z0-9_]{0,31})")


@dataclass(frozen=True)
class ClaimWish:
    """What a claim shall be.

    :param nics: the NICs, one request each.
    :param profile: name the profile ``oke-rdma`` in the claim. A NIC that has no profile of its own yet then fails
        the claim until it can be served, instead of being moved into the pod (F44).
    :param provider: the profile provider of DRANET.
    :param addresses: for provider ``none``: by request name the child address with the length of the child range.
    :param node_attributes: attributes of the node, such as ``{"shape": "BM.GPU.H100.8"}``. Names without a domain
        are those of F70.
    :param cel: further expressions that each NIC must meet.
    :param gpus: how many GPUs the claim asks for, of the class ``gpu_class``.
    :param align: ``pcie_root`` or ``numa``: each GPU shares that with its NICs. Empty: nothing is demanded.
    """

    name: str
    nics: Sequence[ClaimNic]
    namespace: str = "default"
    kind: str = TEMPLATE
    device_class: str = "rdma-nic"
    profile: bool = False
    provider: str = CLOUD
    addresses: Mapping[str, str] = field(default_factory=dict)
    node_attributes: Mapping[str, Any] = field(default_factory=dict)
    cel: Sequence[str] = ()
    gpu_class: str = "gpu.nvidia.com"
    gpus: int = 0
    align: str = ""


def device_class(name: str, require_ready: bool = False, cel: Sequence[str] = ()) -> dict[str, Any]:
    """The class of RDMA NICs of DRANET.

    :param require_ready: only devices of which the provider of this collection says that they can be served now. A
        NIC that is not known by its name would otherwise move into the pod while it has no address yet (F44).
    :param cel: further expressions that each device must meet.
    :raises RdmaError: ``name_malformed``, ``cel_too_long``
    """
    expressions = ['device.driver == "%s"' % DRIVER, _is(DRIVER + "/rdma", True)]
    if require_ready:
        expressions.append(_is(READY_ATTRIBUTE, True))
    return {
        "apiVersion": API_VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": require_name(name, "A DeviceClass"), "labels": dict(LABELS)},
        "spec": {"selectors": [_selector(_and(expressions))] + [_selector(text) for text in cel]},
    }


def claim(wish: ClaimWish) -> dict[str, Any]:
    """The claim, or the template of claims.

    :raises RdmaError: ``name_malformed``, ``cel_too_long``, ``claim_too_large``, ``claim_nic_count``,
        ``claim_gpu_count``, ``claim_align``, ``claim_attribute``, ``claim_own_addresses``, or an error of the child
        range.
    """
    _require_size(wish)
    devices: dict[str, Any] = {
        "requests": [_nic_request(wish, nic) for nic in wish.nics] + [_gpu_request(wish, n) for n in range(wish.gpus)]
    }  # fmt: skip
    constraints = _constraints(wish)
    if constraints:
        devices["constraints"] = constraints
    config = _config(wish)
    if config:
        devices["config"] = config
    spec = {"devices": devices}
    return {
        "apiVersion": API_VERSION,
        "kind": wish.kind,
        "metadata": {
            "name": require_name(wish.name, "A " + wish.kind),
            "namespace": require_name(wish.namespace, "A namespace", label=True),
            "labels": dict(LABELS),
        },
        "spec": {"spec": spec} if wish.kind == TEMPLATE else spec,
    }


def gpu_groups(nics: Sequence[ClaimNic], gpus: int) -> list[tuple[list[int], list[ClaimNic]]]:
    """Which GPUs go with which NICs: NICs in their order, in groups of one size (F129: the ports of a card follow
    each other).

    :returns: for each group the numbers of its GPUs and its NICs.
    :raises RdmaError: ``claim_align``
    """
    if gpus and len(nics) % gpus == 0:
        size = len(nics) // gpus
        return [([number], list(nics[number * size : (number + 1) * size])) for number in range(gpus)]
    if gpus and gpus % len(nics) == 0:
        size = gpus // len(nics)
        return [(list(range(number * size, (number + 1) * size)), [nic]) for number, nic in enumerate(nics)]
    raise RdmaError(
        "claim_align",
        "%d GPUs and %d RDMA NICs cannot be aligned: one number must be a multiple of the other." % (gpus, len(nics)),
        hint="Ask for another number of GPUs or NICs, or leave align out.",
        gpus=gpus,
        nics=len(nics),
    )  # fmt: skip


def check_alignment(wish: ClaimWish, devices: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """The NICs that one GPU shall share something with share it themselves, on every node that was looked at.

    :param devices: by node and request name the attributes of each NIC.
    :raises RdmaError: ``claim_align``
    """
    if not wish.align or not wish.gpus:
        return
    attribute = ALIGN[wish.align]
    for numbers, nics in gpu_groups(wish.nics, wish.gpus):
        for node, found in devices.items():
            values = [found[nic.request].get(attribute) for nic in nics]
            if None in values or len(set(values)) > 1:
                raise RdmaError(
                    "claim_align",
                    "On node %s the NICs %s have the values %s of %s, so no GPU can share it with all of them."
                    % (
                        node,
                        ", ".join(nic.request for nic in nics),
                        ", ".join("(none)" if value is None else str(value) for value in values),
                        attribute,
                    ),
                    hint="Ask for a number of GPUs that fits, align by another attribute, or leave align out.",
                    node=node,
                    gpus=numbers,
                    attribute=attribute,
                )


# --- requests ----------------------------------------------------------------------------------------------------


def _nic_request(wish: ClaimWish, nic: ClaimNic) -> dict[str, Any]:
    # An attribute of the node alone would fit its other devices too (F70), so each request names the NIC first.
    expressions = [_is("%s/%s" % (DRIVER, nic.attribute), nic.value)]
    expressions += [_is(*_node_attribute(name, value)) for name, value in wish.node_attributes.items()]
    exactly: dict[str, Any] = {
        "deviceClassName": require_name(wish.device_class, "A DeviceClass"),
        "selectors": [_selector(_and(expressions))] + [_selector(text) for text in wish.cel],
    }
    return {"name": nic.request, "exactly": exactly}


def _gpu_request(wish: ClaimWish, number: int) -> dict[str, Any]:
    name = require_name(wish.gpu_class, "A DeviceClass")
    return {"name": "gpu%d" % number, "exactly": {"deviceClassName": name}}


def _constraints(wish: ClaimWish) -> list[dict[str, Any]]:
    if not wish.align:
        return []
    return [
        {
            "requests": ["gpu%d" % number for number in numbers] + [nic.request for nic in nics],
            "matchAttribute": ALIGN[wish.align],
        }
        for numbers, nics in gpu_groups(wish.nics, wish.gpus)
    ]


def _require_size(wish: ClaimWish) -> None:
    if wish.gpus < 0:
        raise RdmaError(
            "claim_gpu_count",
            "%s %s asks for %d GPUs, expected 0 or more." % (wish.kind, wish.name, wish.gpus),
            hint="Leave gpus out to ask for none.",
            gpus=wish.gpus,
        )
    total = len(wish.nics) + wish.gpus
    if not wish.nics or total > MAX_REQUESTS:
        raise RdmaError(
            "claim_too_large" if wish.nics else "claim_nic_count",
            "%s %s asks for %d RDMA NICs and %d GPUs, expected at least one NIC and at most %d together."
            % (wish.kind, wish.name, len(wish.nics), wish.gpus, MAX_REQUESTS),
            hint="Ask for fewer, or for the GPUs by a claim or resource of their own.",
            requests=total,
        )


# --- expressions -------------------------------------------------------------------------------------------------


def _is(attribute: str, value: Union[str, int, bool]) -> str:
    """A device has an attribute with this value. A device that lacks it would stop the search but for ``has``."""
    domain, name = attribute.rsplit("/", 1)
    place = "device.attributes[%s].%s" % (json.dumps(domain), name)
    if value is True:
        return "has(%s) && %s" % (place, place)
    return "has(%s) && %s == %s" % (place, place, json.dumps(value))


def _and(expressions: Sequence[str]) -> str:
    return "\n&& ".join(expressions)


def _selector(expression: str) -> dict[str, Any]:
    if not expression or len(expression) > MAX_EXPRESSION:
        raise RdmaError(
            "cel_too_long" if expression else "cel_empty",
            "A CEL expression has %d characters, expected 1 to %d." % (len(expression), MAX_EXPRESSION),
            hint="Give several shorter expressions; a device must meet all of them."
            if expression
            else "Leave it out.",
            characters=len(expression),
        )
    return {"cel": {"expression": expression}}


def _node_attribute(name: str, value: Any) -> tuple[str, Any]:
    found = _ATTRIBUTE.fullmatch(name)
    wanted = NODE_ATTRIBUTES.get(name)
    if not found or (found[1] is None and wanted is None):
        raise _attribute_error(
            name,
            "is no attribute of a node",
            "Use one of %s, or a full name such as example.org/rail." % ", ".join(NODE_ATTRIBUTES),
        )
    words = {str: "a text", int: "a number", bool: "true or false"}
    kind = next(
        (entry for entry in (bool, int, str) if isinstance(value, entry)), None
    )  # a truth is an int too
    if kind is None or (wanted is not None and kind is not wanted) or value == "":
        wish = words[wanted] if wanted is not None else "a text, a number, or true or false"
        raise _attribute_error(name, "must be %s, found %s" % (wish, quoted(value)), "Correct the value.")
    full = name if found[1] else "%s/%s" % (ATTRIBUTE_DOMAIN, name)
    return full, value


def _attribute_error(name: str, problem: str, hint: str) -> RdmaError:
    return RdmaError(
        "claim_attribute", "The node attribute %s %s." % (quoted(name), problem), hint=hint, attribute=name
    )


# --- configuration -----------------------------------------------------------------------------------------------


def _config(wish: ClaimWish) -> list[dict[str, Any]]:
    if wish.provider == NONE and any(nic.interface for nic in wish.nics):
        return _own_addresses(wish)
    if wish.addresses:
        raise _addresses_error(
            "addresses are given, and provider %s gives its own (F32)" % wish.provider
            if wish.provider != NONE
            else "addresses are given, and a device without an interface takes none (F109)",
            "Leave the addresses out.",
        )
    named = [nic for nic in wish.nics if nic.interface]
    if not wish.profile or not named:
        return []
    requests = [] if len(named) == len(wish.nics) and not wish.gpus else [nic.request for nic in named]
    return [_opaque(requests, {"profile": PROFILE})]


def _own_addresses(wish: ClaimWish) -> list[dict[str, Any]]:
    if wish.kind == TEMPLATE:
        raise _addresses_error(
            "a template gives the same addresses to each of its claims",
            "Make a ResourceClaim for each node, with the addresses of that node.",
        )
    requests = [nic.request for nic in wish.nics]
    if sorted(wish.addresses) != sorted(requests):
        raise _addresses_error(
            "addresses are given for %s, expected one for each of %s"
            % (", ".join(sorted(wish.addresses)) or "nothing", ", ".join(requests)),
            "With provider none each NIC needs its own address; child_plan_info tells them.",
        )
    if len(set(wish.addresses.values())) < len(wish.addresses):
        raise _addresses_error("two NICs have the same address", "Give each NIC an address of its own.")
    ranges = set()
    config = []
    for nic in wish.nics:
        given = find_prefix(wish.addresses[nic.request])
        if given is None or given.version != 4:
            raise _addresses_error(
                "the address of %s must be IPv4 with the length of the child range, such as 10.208.13.19/12, found %s"
                % (nic.request, quoted(wish.addresses[nic.request])),
                "Correct it.",
            )
        network = child_range.validate(given.masked())
        if given.value in (network.network, network.last):
            raise _addresses_error(
                "the address of %s, %s, is the %s address of %s"
                % (nic.request, given, "network" if given.is_masked else "broadcast", network),
                "Take an address between the two; child_plan_info tells those of a node.",
            )
        ranges.add(str(network))
        found = addressing.routing(Address(4, given.value), network, nic.index)
        route = {
            "destination": str(network),
            "source": str(found.route.source),
            "scope": found.route.scope,
            "table": found.route.table,
        }
        rule = {
            "priority": found.rule.priority,
            "source": str(found.rule.source),
            "table": found.rule.table,
        }
        interface = {"type": "IPVLAN", "addresses": [str(given)], **_ARP}
        parameters = {"interface": interface, "routes": [route], "rules": [rule]}
        config.append(_opaque([nic.request], parameters))
    if len(ranges) > 1:
        raise _addresses_error(
            "they lie in several ranges: %s" % ", ".join(sorted(ranges)),
            "A child reaches only children of its own range (F24): use one.",
        )
    return config


def _opaque(requests: Sequence[str], parameters: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"requests": list(requests)} if requests else {}
    entry["opaque"] = {"driver": DRIVER, "parameters": dict(parameters)}
    return entry


def _addresses_error(problem: str, hint: str) -> RdmaError:
    return RdmaError("claim_own_addresses", "The claim cannot be made: %s." % problem, hint=hint)


def notes(wish: ClaimWish) -> list[str]:
    """What whoever reads the claim should know, one sentence each."""
    found = []
    if any(nic.interface for nic in wish.nics) and wish.provider == NONE:
        found.append("With --profile-provider=none: %s." % "; ".join(LOST_WITHOUT_PROVIDER))
    if any(not nic.interface for nic in wish.nics):
        found.append(
            "A device without an interface gives the pod its character devices only; DRANET must run with "
            "--move-ib-interfaces=false and the nodes in shared namespace mode."
        )
    if wish.align == "numa":
        found.append(
            "resource.kubernetes.io/numaNode is published only behind a feature gate of the drivers."
        )
    return found


def odd_sentence(node: str, missing: Sequence[str], extra: Sequence[str]) -> Optional[str]:
    """How a node differs from the others; ``None``: it does not."""
    parts = []
    if missing:
        parts.append("does not publish %s" % ", ".join(missing))
    if extra:
        parts.append("publishes %s as well" % ", ".join(extra))
    return "Node %s %s." % (node, " and ".join(parts)) if parts else None
