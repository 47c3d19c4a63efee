# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network of a running pod: addresses, rules, tables, RDMA devices. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..kube.objects import entries, mapping, text
from ..net import Address, Prefix, find_address, find_destination, find_prefix, quoted
from ..rdma_text import ACTIVE, LINK_UP
from .issue import Issue, error, ordered, warning, whole

DEFAULT_INTERFACE = "eth0"
"""The interface of the cluster's network (S132)."""


class Nic(NamedTuple):
    """A further interface of the pod; ``subnet`` is that of its pool, where it is known."""

    name: str
    address: Optional[Prefix]
    gateway: Optional[Address]
    broadcast: str = ""
    subnet: Optional[Prefix] = None


class Rule(NamedTuple):
    """A rule: traffic from an address looks into a table."""

    priority: Optional[int]
    source: Optional[Prefix]
    table: str


class Default(NamedTuple):
    """The default route of a table."""

    device: str
    via: Optional[Address]


class Link(NamedTuple):
    """A port of an RDMA device; ``netdev`` is empty where it has none, as on InfiniBand (S30)."""

    device: str
    netdev: str
    state: str
    physical: str


class PodNetwork(NamedTuple):
    """What a pod shows of its network."""

    nics: Sequence[Nic]
    rules: Sequence[Rule]
    defaults: Mapping[str, Default]
    main_device: str
    links: Sequence[Link]


def of_plain(content: Mapping[str, Any]) -> PodNetwork:
    """From plain data: ``nics``, ``rules``, ``table_defaults``, ``main_default_dev``, ``rdma_links``."""
    nics = [
        Nic(
            text(entry.get("name")),
            find_prefix(entry.get("address")),
            find_address(entry.get("gateway")),
            text(entry.get("broadcast")),
            find_prefix(entry.get("subnet")),
        )
        for _at, entry in entries(content.get("nics"))
    ]
    rules = [
        Rule(
            whole(entry.get("priority")),
            find_destination(entry.get("from")),
            str(entry.get("table")),
        )
        for _at, entry in entries(content.get("rules"))
    ]
    defaults = {
        table: Default(text(mapping(route).get("dev")), find_address(mapping(route).get("via")))
        for table, route in mapping(content, "table_defaults").items()
    }
    links = [
        Link(*[text(entry.get(key)) for key in ("dev", "netdev", "state", "physical")])
        for _at, entry in entries(content.get("rdma_links"))
    ]
    return PodNetwork(nics, rules, defaults, text(content.get("main_default_dev")), links)


def judge(pod: PodNetwork, expected: int, isolated: bool = True) -> list[Issue]:
    """What is wrong with the network of a pod (S126 to S135).

    :param expected: the number of further interfaces.
    :param isolated: whether the nodes are in exclusive mode; else a pod sees all devices of its node (S136).
    """
    found = []
    if len(pod.nics) != expected:
        message = "the pod has %d further interfaces, not %d" % (len(pod.nics), expected)
        found.append(error("nic-count-mismatch", "nics", message))
    for nic in pod.nics:
        found += _address(nic)
        found += _routing(nic, pod)
    found += _rules(pod)
    if pod.main_device and pod.main_device != DEFAULT_INTERFACE:
        message = "the default route is on %s, not on %s" % (pod.main_device, DEFAULT_INTERFACE)
        found.append(error("main-default-mismatch", "main", message))  # S132
    if isolated:
        found += _links(pod, expected)
    return ordered(found)


def _address(nic: Nic) -> Iterator[Issue]:
    """One address, with the length of the pool, inside it, and the right broadcast address (S127, S222, S223)."""
    if nic.address is None:
        yield error("address-missing", nic.name, "the interface has no address")
        return
    if nic.subnet is not None and nic.subnet.masked() != nic.address.masked():
        message = "%s is not an address of %s as its pool gives it" % (nic.address, nic.subnet)
        yield error("prefix-mismatch", nic.name, message)
    if nic.broadcast and nic.address.version == 4:
        last = Address(4, nic.address.last)
        if find_address(nic.broadcast) != last:
            message = "the broadcast address of %s is %s, found %s" % (
                nic.address,
                last,
                quoted(nic.broadcast),
            )
            yield warning("broadcast-mismatch", nic.name, message)


def _tables(nic: Nic, pod: PodNetwork) -> list[str]:
    """The tables for traffic from an interface's own address."""
    if nic.address is None:
        return []
    own = find_destination(str(Address(nic.address.version, nic.address.value)))
    return [rule.table for rule in pod.rules if rule.source == own]


def _routing(nic: Nic, pod: PodNetwork) -> Iterator[Issue]:
    """One rule, to a table whose default route is the gateway on that interface (S128, S129).

    Numbers of tables differ between versions, so only what is in them counts (S130). Without a gateway there is no
    default route (S83).
    """
    if nic.address is None:
        return
    tables = _tables(nic, pod)
    if not tables:
        yield error("rule-missing", nic.name, "no rule leads traffic from %s into a table" % nic.address)
        return
    if len(tables) > 1:
        message = "%d rules lead traffic from %s into tables" % (len(tables), nic.address)
        yield error("rule-duplicate", nic.name, message)
    if nic.gateway is not None and pod.defaults.get(tables[0]) != Default(nic.name, nic.gateway):
        have = pod.defaults.get(tables[0])
        told = "none" if have is None else "via %s on %s" % (have.via, have.device)
        message = "table %s must lead to %s on %s, found %s" % (tables[0], nic.gateway, nic.name, told)
        yield error("table-default-mismatch", nic.name, message)


def _rules(pod: PodNetwork) -> Iterator[Issue]:
    """The kernel gives each rule a number of its own (S131); two interfaces never share a table (S128)."""
    numbers = Counter([rule.priority for rule in pod.rules if rule.priority is not None])
    twice = sorted([number for number, count in numbers.items() if count > 1])
    if twice:
        message = "several rules have the priority %s" % ", ".join([str(number) for number in twice])
        yield warning("rule-priority-duplicate", "rules", message)
    users = Counter([table for nic in pod.nics for table in set(_tables(nic, pod))])
    for nic in pod.nics:
        shared = sorted([table for table in set(_tables(nic, pod)) if users[table] > 1])
        if shared:
            message = "table %s is also that of another interface" % ", ".join(shared)
            yield error("table-shared", nic.name, message)


def _links(pod: PodNetwork, expected: int) -> Iterator[Issue]:
    """Exactly the devices of the pod's own interfaces, each active (S135)."""
    names = {nic.name for nic in pod.nics}
    own = [link for link in pod.links if not link.netdev or link.netdev in names]
    for link in pod.links:
        if link not in own:
            message = "%s belongs to %s, which is no interface of the pod" % (link.device, link.netdev)
            yield error("rdma-foreign-netdev", link.device, message)
        elif link.state != ACTIVE or link.physical != LINK_UP:
            message = "%s is %s and %s" % (link.device, link.state or "unknown", link.physical or "unknown")
            yield error("rdma-not-ready", link.device, message)
    if all(link.netdev for link in own):
        devices = Counter([link.netdev for link in own])
        for called in sorted(names):
            if devices[called] != 1:
                message = "%s has %d RDMA devices, not one" % (called, devices[called])
                yield error("rdma-device-count", called, message)
    elif len(own) != expected:
        message = "the pod has %d RDMA devices, not %d" % (len(own), expected)
        yield error("rdma-count-mismatch", "rdma_links", message)
