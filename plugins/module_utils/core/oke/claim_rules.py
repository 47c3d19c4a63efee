# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules of claims, once: what the profile and the driver refuse, and what a user should know.

The provider, the lint and the admission policies all read this table, so they say the same, and a claim that would fail
only when its pod starts fails when it is written. A rule is about one *configuration*: the opaque parameters for the
driver in a claim, a claim template or a device class. What they mean also depends on the devices that the requests
choose, which :class:`Scope` tells as far as the selectors do.
Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..finding import ERROR, INFO
from ..net import quoted
from . import conditions
from .conditions import (
    FLAG,
    INT8U,
    INT32,
    INT64,
    INTEGER,
    LIST,
    OBJECT,
    TEXT,
    Condition,
    Each,
    Given,
    Is,
    IsNot,
    Matches,
    Mismatches,
    Missing,
    NoAddress,
    NoPrefix,
    OtherFamily,
    Outside,
    Path,
    Set,
    UnknownKey,
    Unless,
    WrongType,
    all_of,
    any_of,
)
from .constants import ATTRIBUTE_DOMAIN, PROFILE, READY_ATTRIBUTE, SCOPE_LINK

WL_CLAIM, WL_SELECTOR, WL_ROUTING, WL_INFINIBAND = (
    "RDMA-WL-002",
    "RDMA-WL-003",
    "RDMA-WL-005",
    "RDMA-WL-014",
)

PROFILE_PROVIDERS = ("cloud", "webhook", "none")
"""Who resolves profiles (F105). With ``none`` nobody does: a claim then brings its own addresses."""


@dataclass(frozen=True)
class Scope:
    """For which configurations a rule speaks: conditions on a view of one (:mod:`.claim_views`).

    :param certain: it does.
    :param possible: it depends on the device that the scheduler chooses; ``None``: there is no such case.
    """

    name: str
    meaning: str
    certain: Condition
    possible: Optional[Condition] = None


_NAMED = ("parameters", "profile")
_FOR_RDMA_NIC, _FOR_RDMA_ONLY = Is(("rdma_nic",), (True,)), Is(("rdma_only",), (True,))

ANY = Scope("any", "every configuration for the driver", Set(("parameters",)))
NAMED = Scope("named", "configurations that name a profile", Given(_NAMED))
RESOLVED = Scope(
    "profile",
    "configurations that name the profile, or are for an Ethernet RDMA NIC, which brings it along (F43)",
    any_of(Is(_NAMED, (PROFILE,)), all_of(Missing(_NAMED), _FOR_RDMA_NIC)),
    all_of(Missing(_NAMED), Unless(_FOR_RDMA_NIC), Unless(_FOR_RDMA_ONLY)),
)
RESOLVED_FOR_SURE = replace(RESOLVED, possible=None)
RDMA_ONLY = Scope(
    "rdma_only", "configurations of requests that select by dra.net/rdmaDevice (F84)", _FOR_RDMA_ONLY
)


POSSIBLE = "That fails when the request gets an Ethernet RDMA NIC."
"""Stands behind the message of a rule where its scope is only possible."""


@dataclass(frozen=True)
class ClaimRule:
    """A rule about a configuration.

    :param code: stable; where the provider refuses, its error code.
    :param check: the lint rule that reports it.
    :param facts: the facts that it rests on.
    :param message: one sentence without values, the same wherever the rule is told.
    :param provider: the provider refuses it. Otherwise the driver does, before or after it asks the provider.
    :param severity: ``error``: preparing the claim fails. ``info``: it works, with a consequence.
    """

    code: str
    check: str
    facts: tuple[str, ...]
    scope: Scope
    message: str
    hint: str
    condition: Condition
    provider: bool = False
    severity: str = ERROR

    def error(self, found: str = "", **details: Any) -> RdmaError:
        """The rule as an error.

        :param found: a sentence about what was found.
        """
        return RdmaError(
            self.code, " ".join([text for text in (self.message, found) if text]), hint=self.hint, **details
        )


@dataclass(frozen=True)
class Violation:
    """A rule that a configuration breaks. ``path`` is below the parameters, ``found`` the value there for a message."""

    rule: ClaimRule
    path: Path
    found: str

    @property
    def code(self) -> str:
        return self.rule.code

    @property
    def message(self) -> str:
        return self.rule.message

    @property
    def hint(self) -> str:
        return self.rule.hint

    def error(self, **details: Any) -> RdmaError:
        """What the provider answers."""
        where = dotted(self.path)
        told = "%s is %s." % (where or "The configuration", self.found)
        return self.rule.error(told, where=where, **details)


# --- what the driver decodes (F106)

_I32 = (INTEGER, INT32)
_I64 = (INTEGER, INT64)

VRF: Mapping[str, Any] = {"name": TEXT, "table": _I64}
IPVLAN_BLOCK: Mapping[str, Any] = {"mode": TEXT, "flag": TEXT}
IPV6_SETTINGS = ("acceptRA", "dadTransmits", "routerSolicitationDelay", "disableIPv6", "addrGenMode")
OFFLOAD_SIZES = ("gsoMaxSize", "groMaxSize", "gsoIPv4MaxSize", "groIPv4MaxSize")
INTERFACE: Mapping[str, Any] = {
    "name": TEXT,
    "type": TEXT,
    "addressing": TEXT,
    "addresses": [TEXT],
    "dhcp": FLAG,
    "mtu": _I32,
    "hardwareAddr": TEXT,
    **dict.fromkeys(OFFLOAD_SIZES, _I32),
    "disableEbpfPrograms": FLAG,
    "forwarding": FLAG,
    "arpIgnore": _I32,
    "arpAnnounce": _I32,
    **{name: FLAG if name == "disableIPv6" else _I32 for name in IPV6_SETTINGS},
    "vrf": VRF,
    "ipvlan": IPVLAN_BLOCK,
}
ROUTE: Mapping[str, Any] = {
    "destination": TEXT,
    "gateway": TEXT,
    "source": TEXT,
    "scope": (INTEGER, INT8U),
    "table": _I64,
}
RULE: Mapping[str, Any] = {"priority": _I64, "source": TEXT, "destination": TEXT, "table": _I64}
NEIGHBOR: Mapping[str, Any] = {"destination": TEXT, "hardwareAddr": TEXT}
ETHTOOL: Mapping[str, Any] = {"features": {"*": FLAG}, "privateFlags": {"*": FLAG}}
PARAMETERS: Mapping[str, Any] = {
    "profile": TEXT,
    "interface": INTERFACE,
    "routes": [ROUTE],
    "rules": [RULE],
    "neighbors": [NEIGHBOR],
    "ethtool": ETHTOOL,
}
"""What the driver decodes: a type, a type with bounds, a list of one thing, an object, or an object of any keys."""


def _wrong_types(schema: Any, path: Path) -> Iterator[Condition]:
    if isinstance(schema, list):
        yield WrongType(path, LIST)
        yield Each(path, any_of(*_wrong_types(schema[0], ())))
    elif isinstance(schema, Mapping):
        yield WrongType(path, OBJECT)
        if "*" in schema:
            yield Each(path, any_of(*_wrong_types(schema["*"], ())))
        else:
            for key, below in schema.items():
                yield from _wrong_types(below, (*path, key))
    elif isinstance(schema, tuple):
        yield WrongType(path, *schema)
    else:
        yield WrongType(path, schema)


def _unknown_keys(schema: Any, path: Path) -> Iterator[Condition]:
    if isinstance(schema, list):
        inner = tuple(_unknown_keys(schema[0], ()))
        if inner:
            yield Each(path, any_of(*inner))
    elif isinstance(schema, Mapping) and "*" not in schema:
        yield UnknownKey(path, tuple(schema))
        for key, below in schema.items():
            yield from _unknown_keys(below, (*path, key))


def _each_object(path: Path, *conditions_of_one: Condition) -> Condition:
    """An object of the list meets one of the conditions."""
    return Each(path, all_of(Unless(WrongType((), OBJECT)), any_of(*conditions_of_one)))


def _setting(name: str) -> Path:
    return ("interface", name)


_TYPE, _ADDRESSING, _ADDRESSES = map(_setting, ("type", "addressing", "addresses"))
_DHCP_FLAG = Is(_setting("dhcp"), (True,))
_CHILD = Is(_TYPE, ("IPVLAN",))
_SLAAC = Is(_ADDRESSING, ("SLAAC",))

_NAME = r"^([A-Za-z0-9._-]{0,15}|[\s\S]*[^\x00-\x7F][\s\S]*)$"  # letters of other scripts are not judged
_BYTE, _PAIR = "[0-9A-Fa-f]{2}", "[0-9A-Fa-f]{4}"
_MAC = "^(%s)$" % "|".join(  # 6, 8 or 20 bytes
    ["%s(%s%s){%d}" % (_BYTE, mark, _BYTE, count - 1) for mark in ":-" for count in (6, 8, 20)]
    + [r"%s(\.%s){%d}" % (_PAIR, _PAIR, count // 2 - 1) for count in (6, 8, 20)]
)

# --- what the selectors of the requests tell


class Wording(NamedTuple):
    """A pattern in the text of a selector.

    :param word: is in every text that matches: looking for it first costs little.
    """

    word: str
    pattern: str

    def is_in(self, text: str) -> bool:
        return self.word in text and conditions.holds(Matches((), self.pattern), text)


_ATTRIBUTE = r"\[\??[\"']dra\.net[\"']\]\s*(\.\??|\[\??[\"'])(%s)\b[\"']?\]?"
_COMPARED = r"\s*(==|!=|in\b|\.(startsWith|endsWith|contains|matches|orValue)\b)"

SELECTS_RDMA_ONLY = Wording("rdmaDevice", (_ATTRIBUTE % "rdmaDevice") + _COMPARED)
"""A selector that compares ``dra.net/rdmaDevice``: only devices without an interface have it (F84)."""

SELECTS_RDMA_NIC = Wording(
    "rdma",
    (_ATTRIBUTE % "ifName")
    + r"\s*(==\s*[\"']rdma[0-9]+[\"']|in\s*\[\s*[\"']rdma[0-9]+[\"']|\.(startsWith|matches)\(\s*[\"']\^?rdma)"
    + r"|[\"']%s[\"']\]\s*(\.\??|\[\??[\"'])%s\b" % tuple(map(re.escape, READY_ATTRIBUTE.split("/"))),
)
"""A selector by the name ``rdmaN`` of an Ethernet RDMA NIC (F73), or by the attribute of our provider."""

NODE_LEVEL = Wording(ATTRIBUTE_DOMAIN, "[\"']%s[\"']" % re.escape(ATTRIBUTE_DOMAIN))
"""A selector with an attribute that every device of the node has (F70)."""

TELLS_NICS_APART = Wording(
    "attributes",
    (
        _ATTRIBUTE
        % "ifName|rdma|rdmaDevice|pciAddress|pciVendor|pciDevice|mac|alias|ipv4|mtu|type|encapsulation"
    )
    + "|[\"']%s[\"']" % re.escape(READY_ATTRIBUTE.split("/", maxsplit=1)[0]),
)
"""A selector with an attribute of the device itself (F101)."""

# --- the table

_NO_OWN = "The claim sets %s, but the profile " + PROFILE + " derives the child itself."
_DRIVER = "Correct the value, or remove it."


def _refusal(code: str, setting: str, hint: str, condition: Condition) -> ClaimRule:
    return ClaimRule(code, WL_CLAIM, ("F32",), RESOLVED, _NO_OWN % setting, hint, condition, provider=True)


def _driver_rule(
    code: str, fact: str, message: str, condition: Condition, hint: str = _DRIVER, **more: Any
) -> ClaimRule:
    return ClaimRule(code, WL_CLAIM, (fact,), ANY, message, hint, condition, **more)


CONFIG_MISSING = ClaimRule(
    "config_missing",
    WL_CLAIM,
    ("F31",),
    ANY,
    "The claim has no network configuration.",
    "Add opaque parameters with profile: %s to the claim." % PROFILE,
    any_of(),
    provider=True,
)
"""Only the provider can tell: a NIC that is offered with the profile brings it along, so a claim needs none (F43)."""

UNSUPPORTED_PROFILE = ClaimRule(
    "unsupported_profile",
    WL_CLAIM,
    ("F31",),
    NAMED,
    "The claim asks for another profile than %s." % PROFILE,
    "Write profile: %s." % PROFILE,
    any_of(Missing(("profile",)), IsNot(("profile",), (PROFILE,))),
    provider=True,
)

PROVIDER_RULES: tuple[ClaimRule, ...] = (
    _refusal(
        "claim_passthrough",
        "interface.type Passthrough",
        "Remove interface.type, or write IPVLAN.",
        Is(_TYPE, ("Passthrough",)),
    ),
    _refusal(
        "claim_dhcp",
        "DHCP addressing",
        "Remove interface.dhcp and interface.addressing.",
        any_of(Is(_ADDRESSING, ("DHCP",)), all_of(_DHCP_FLAG, Missing(_ADDRESSING))),
    ),
    _refusal(
        "claim_unnumbered",
        "unnumbered addressing",
        "Remove interface.addressing.",
        Is(_ADDRESSING, ("Unnumbered",)),
    ),
    _refusal("claim_addresses", "interface.addresses", "Remove interface.addresses.", Given(_ADDRESSES)),
)
"""What the profile refuses of a configuration of its own, in this order (F32)."""

DRIVER_RULES: tuple[ClaimRule, ...] = (
    _driver_rule(
        "config_malformed",
        "F106",
        "The configuration has a value of a wrong type.",
        any_of(*_wrong_types(PARAMETERS, ())),
    ),
    _driver_rule(
        "config_unknown_field",
        "F106",
        "The configuration has a field that the driver does not know.",
        any_of(*_unknown_keys(PARAMETERS, ())),
        "Correct the name of the field; upper and lower case count.",
    ),
    _driver_rule(
        "config_name",
        "F106",
        "interface.name is no name of an interface: at most 15 letters, digits, '-', '_' and '.'.",
        any_of(Mismatches(_setting("name"), _NAME), Is(_setting("name"), (".", ".."))),
    ),
    _driver_rule(
        "config_type",
        "F108",
        "interface.type is neither Passthrough nor IPVLAN.",
        IsNot(_TYPE, ("", "Passthrough", "IPVLAN")),
    ),
    _driver_rule(
        "config_addressing",
        "F108",
        "interface.addressing is none of Static, DHCP, SLAAC and Unnumbered.",
        IsNot(_ADDRESSING, ("", "Static", "DHCP", "SLAAC", "Unnumbered")),
    ),
    _driver_rule(
        "config_dhcp",
        "F108",
        "interface.dhcp is true beside another addressing or beside addresses.",
        any_of(
            all_of(_DHCP_FLAG, IsNot(_ADDRESSING, ("", "DHCP"))),
            all_of(any_of(_DHCP_FLAG, Is(_ADDRESSING, ("DHCP",))), Given(_ADDRESSES)),
        ),
        "Keep one of them.",
    ),
    _driver_rule(
        "config_unnumbered",
        "F108",
        "Unnumbered addressing is for children without addresses.",
        all_of(Is(_ADDRESSING, ("Unnumbered",)), any_of(Unless(_CHILD), Given(_ADDRESSES))),
        "Remove interface.addressing.",
    ),
    _driver_rule(
        "config_child",
        "F108",
        "A child takes neither a hardware address nor DHCP.",
        all_of(_CHILD, any_of(Set(_setting("hardwareAddr")), Is(_ADDRESSING, ("DHCP",)), _DHCP_FLAG)),
        "Remove interface.hardwareAddr, interface.dhcp and DHCP addressing.",
    ),
    _driver_rule(
        "config_ipvlan",
        "F108",
        "interface.ipvlan is only for type IPVLAN, with mode L2 and flag Bridge.",
        any_of(
            all_of(Set(_setting("ipvlan")), Unless(_CHILD)),
            IsNot(("interface", "ipvlan", "mode"), ("", "L2")),
            IsNot(("interface", "ipvlan", "flag"), ("", "Bridge")),
        ),
        "Remove interface.ipvlan: the defaults are the only values.",
    ),
    _driver_rule(
        "config_address",
        "F106",
        "An entry of interface.addresses is no prefix ADDRESS/LENGTH.",
        Each(_ADDRESSES, any_of(NoPrefix(()), Is((), ("",)))),
    ),
    _driver_rule("config_mtu", "F106", "interface.mtu is less than 68.", Outside(_setting("mtu"), 68)),
    _driver_rule(
        "config_ipv6",
        "F89",
        "The IPv6 settings of the interface exclude each other, or need an MTU of 1280.",
        any_of(
            Outside(_setting("acceptRA"), 0, 2),
            Outside(_setting("addrGenMode"), 0, 3),
            Outside(_setting("dadTransmits"), 0),
            Outside(_setting("routerSolicitationDelay"), 0),
            all_of(
                Outside(_setting("mtu"), 1280),
                any_of(_SLAAC, *[Set(_setting(name)) for name in IPV6_SETTINGS]),
            ),
            all_of(
                _SLAAC,
                any_of(
                    Is(_setting("disableIPv6"), (True,)),
                    Is(_setting("acceptRA"), (0,)),
                    all_of(_CHILD, Is(_setting("addrGenMode"), (0, 1))),
                    Each(
                        _ADDRESSES,
                        all_of(
                            Matches((), ":"), Unless(NoPrefix(())), Unless(Matches((), conditions.MAPPED))
                        ),
                    ),
                ),
            ),
        ),
    ),
    _driver_rule(
        "config_hardware_address",
        "F106",
        "interface.hardwareAddr is no hardware address.",
        any_of(Is(_setting("hardwareAddr"), ("",)), Mismatches(_setting("hardwareAddr"), _MAC)),
    ),
    _driver_rule(
        "config_offload",
        "F106",
        "A size of GSO or GRO is not more than 0.",
        any_of(*[Outside(_setting(name), 1) for name in OFFLOAD_SIZES]),
    ),
    _driver_rule(
        "config_arp",
        "F106",
        "interface.arpIgnore is none of 0, 1, 2, 3 and 8, or interface.arpAnnounce none of 0, 1 and 2.",
        any_of(IsNot(_setting("arpIgnore"), (0, 1, 2, 3, 8)), IsNot(_setting("arpAnnounce"), (0, 1, 2))),
    ),
    _driver_rule(
        "config_vrf",
        "F106",
        "interface.vrf needs a name, and its table is more than 0 and none of 253, 254 and 255.",
        any_of(
            all_of(Set(_setting("vrf")), Missing(("interface", "vrf", "name"))),
            Outside(("interface", "vrf", "table"), 1),
            Is(("interface", "vrf", "table"), (253, 254, 255)),
        ),
    ),
    _driver_rule(
        "config_route",
        "F107",
        "A route needs a destination, scope 0 with a gateway or scope 253, and addresses of one family.",
        _each_object(
            ("routes",),
            Missing(("destination",)),
            NoPrefix(("destination",)),
            IsNot(("scope",), (0, SCOPE_LINK)),
            all_of(Missing(("gateway",)), Unless(Is(("scope",), (SCOPE_LINK,)))),
            NoAddress(("gateway",)),
            NoAddress(("source",)),
            OtherFamily(("gateway",), ("destination",)),
            OtherFamily(("source",), ("destination",)),
            Outside(("table",), 0),
        ),
    ),
    _driver_rule(
        "config_rule",
        "F107",
        "A rule has a priority from 0 to 32767, a table that is not negative, and prefixes of one family.",
        _each_object(
            ("rules",),
            Outside(("priority",), 0, 32767),
            Outside(("table",), 0),
            NoPrefix(("source",)),
            NoPrefix(("destination",)),
            OtherFamily(("source",), ("destination",)),
        ),
    ),
    _driver_rule(
        "config_rules_with_vrf",
        "F107",
        "Rules cannot stand beside interface.vrf.",
        all_of(Given(("rules",)), Set(_setting("vrf"))),
        "Remove the rules or the VRF.",
    ),
    _driver_rule(
        "config_neighbor",
        "F106",
        "A neighbor needs an IP address as destination and a hardware address.",
        _each_object(
            ("neighbors",),
            Missing(("destination",)),
            NoAddress(("destination",)),
            Missing(("hardwareAddr",)),
            Mismatches(("hardwareAddr",), _MAC),
        ),
    ),
)
"""What the driver refuses of any configuration, as far as it can be told from the configuration alone."""

RDMA_ONLY_RULES: tuple[ClaimRule, ...] = (
    ClaimRule(
        "rdma_only_profile",
        WL_INFINIBAND,
        ("F82", "F84"),
        RDMA_ONLY,
        "The claim names a profile for a device without an interface, which no profile serves.",
        "Remove the profile: such a device needs no configuration.",
        Given(("profile",)),
    ),
    ClaimRule(
        "rdma_only_settings",
        WL_INFINIBAND,
        ("F84", "F109"),
        RDMA_ONLY,
        "The claim configures an interface, but a device selected by rdmaDevice has none.",
        "Remove the configuration, or select an Ethernet RDMA NIC by ifName.",
        any_of(
            *[
                Given(_setting(name)) if INTERFACE[name] in (TEXT, [TEXT]) else Set(_setting(name))
                for name in INTERFACE
            ],
            Given(("routes",)),
            Given(("rules",)),
            Given(("neighbors",)),
            Set(("ethtool",)),
        ),
    ),
)

ROUTING_RULES: tuple[ClaimRule, ...] = (
    ClaimRule(
        "claim_owns_routing",
        WL_ROUTING,
        ("F38",),
        RESOLVED_FOR_SURE,
        "The claim brings routes, rules or a VRF, so the profile adds none: the claim owns all routing of the child.",
        "Check that the routing leads to the whole child range, or remove it.",
        any_of(Given(("routes",)), Given(("rules",)), Set(_setting("vrf"))),
        severity=INFO,
    ),
)

RULES: tuple[ClaimRule, ...] = (
    UNSUPPORTED_PROFILE,
    *PROVIDER_RULES,
    *DRIVER_RULES,
    *RDMA_ONLY_RULES,
    *ROUTING_RULES,
)
"""All rules that look at a configuration."""

BY_CODE: Mapping[str, ClaimRule] = {rule.code: rule for rule in RULES}


@dataclass(frozen=True)
class SelectorRule:
    """A rule about the selectors of a request, those of its device class included.

    It is broken when a selector matches ``mentions`` and none matches ``lacks``.
    """

    code: str
    check: str
    facts: tuple[str, ...]
    message: str
    hint: str
    mentions: Wording
    lacks: Wording


NODE_LEVEL_SELECTOR = SelectorRule(
    "selector_node_level",
    WL_SELECTOR,
    ("F70", "F101"),
    "The request selects by an attribute that every device of a node has, and by none that tells the RDMA NICs.",
    'Add a selector of the NIC, such as device.attributes["dra.net"].ifName == "rdma0".',
    NODE_LEVEL,
    TELLS_NICS_APART,
)


def applies(rule: ClaimRule, profile_provider: str) -> bool:
    """Whether a rule makes sense with this provider: with ``none`` no profile is resolved (F105)."""
    return profile_provider != "none" or rule.scope.name not in (NAMED.name, RESOLVED.name)


def violations(config: Any, rules: Iterable[ClaimRule] = RULES) -> list[Violation]:
    """The rules that one configuration breaks, in the order of the table, whatever their scope.

    :param config: the opaque parameters as JSON; any value is taken.
    """
    found = []
    for rule in rules:
        place = conditions.find(rule.condition, config)
        if place is not None:
            found.append(Violation(rule, place, _shown(_value_at(config, place))))
    return found


def first_violation(config: Any, rules: Iterable[ClaimRule]) -> Optional[Violation]:
    """The first rule that is broken."""
    return next(iter(violations(config, rules)), None)


def _shown(value: Any) -> str:
    if isinstance(value, list) and 0 < len(value) <= 4 and all(isinstance(entry, str) for entry in value):
        return ", ".join(map(quoted, value))
    if isinstance(value, bool):
        return "true" if value else "false"  # as manifests write it
    return quoted(value)


def dotted(path: Path) -> str:
    """``routes[0].gateway``."""
    return "".join(["[%d]" % key if isinstance(key, int) else ".%s" % key for key in path]).lstrip(".")


def _value_at(value: Any, path: Path) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value
