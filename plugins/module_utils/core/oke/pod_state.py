# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Does a pod hold what the profile promised (F40, F147)? Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from ..net import Address, Prefix, find_address, find_destination, quoted
from .addressing import Routing, routing


@dataclass(frozen=True)
class Problem:
    """One difference between a pod and the profile. ``kind`` is stable; the sentence names the interface."""

    kind: str
    message: str


@dataclass(frozen=True)
class Output:
    """Parsed output of ``ip -j addr``, ``ip -j route show table N`` and ``ip -j rule`` in the pod.

    What does not look like such output counts as not there.
    """

    addr: Any
    route: Any
    rule: Any


def problems(
    if_name: str, nic_index: int, child: Address, child_range: Prefix, output: Output
) -> list[Problem]:
    """Compare a pod with the profile, in the order address, route, rule (F147)."""
    wanted = routing(child, child_range, nic_index)
    return [
        *_address_problems(if_name, wanted, _objects(output.addr)),
        *_route_problems(if_name, wanted, _objects(output.route)),
        *_rule_problems(if_name, wanted, _objects(output.rule)),
    ]


def _objects(value: Any) -> list[dict[str, Any]]:
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _number(value: Any) -> Optional[int]:
    """An integer, whether it stands as a number or as a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _address_problems(if_name: str, wanted: Routing, links: list[dict[str, Any]]) -> Iterator[Problem]:
    lengths = [
        entry.get("prefixlen")
        for link in links
        if link.get("ifname") == if_name
        for entry in _objects(link.get("addr_info"))
        if find_address(entry.get("local")) == Address(4, wanted.address.value)
    ]
    if not lengths:
        yield Problem("pod_address_missing", "%s does not hold %s." % (if_name, wanted.address))
    elif wanted.address.length not in map(_number, lengths):
        yield Problem(
            "pod_address_prefix",
            "%s holds the child address with length %s, expected %s."
            % (if_name, quoted(lengths[0]), wanted.address),
        )


def _route_problems(if_name: str, wanted: Routing, routes: list[dict[str, Any]]) -> Iterator[Problem]:
    route = next((entry for entry in routes if _is_child_route(entry, if_name, wanted)), None)
    text = "%s: the route to %s in table %d" % (if_name, wanted.route.destination, wanted.route.table)
    if route is None:
        yield Problem("pod_route_missing", "%s is missing." % text)
        return
    if route.get("scope") != "link" and _number(route.get("scope")) != wanted.route.scope:
        yield Problem(
            "pod_route_scope", "%s has scope %s, expected link." % (text, quoted(route.get("scope")))
        )
    if find_address(route.get("prefsrc")) != wanted.route.source:
        yield Problem(
            "pod_route_source",
            "%s has source %s, expected %s." % (text, quoted(route.get("prefsrc")), wanted.route.source),
        )


def _is_child_route(entry: dict[str, Any], if_name: str, wanted: Routing) -> bool:
    """A unicast route to the range over the interface; a table that is named must be the child's (F40)."""
    return (
        entry.get("type", "unicast") == "unicast"
        and entry.get("dev") == if_name
        and find_destination(entry.get("dst")) == wanted.route.destination
        and _number(entry.get("table", wanted.route.table)) == wanted.route.table
    )


def _rule_problems(if_name: str, wanted: Routing, rules: list[dict[str, Any]]) -> Iterator[Problem]:
    found = [entry for entry in rules if _is_child_rule(entry, wanted)]
    if not found:
        yield Problem("pod_rule_missing", "%s: no rule for %s." % (if_name, wanted.rule.source))
        return
    rule = min(found, key=lambda entry: _number(entry.get("priority")) or 0)  # of equal ones the first
    text = "%s: the rule for %s" % (if_name, wanted.rule.source)
    if _number(rule.get("table")) != wanted.rule.table:
        yield Problem(
            "pod_rule_table",
            "%s looks up table %s, expected %d." % (text, quoted(rule.get("table")), wanted.rule.table),
        )
    if _number(rule.get("priority")) != wanted.rule.priority:
        yield Problem(
            "pod_rule_priority",
            "%s has priority %s, expected %d." % (text, quoted(rule.get("priority")), wanted.rule.priority),
        )


def _is_child_rule(entry: dict[str, Any], wanted: Routing) -> bool:
    return (
        find_destination(entry.get("src")) == wanted.rule.source
        and _number(entry.get("srclen", 32)) == 32
        and "not" not in entry
    )
