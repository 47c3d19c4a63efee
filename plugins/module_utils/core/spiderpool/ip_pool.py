# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SpiderIPPool: subnet, ranges, gateway, routes, and the pools beside it. Private to rdma.k8s.

It may change with any release.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple, Optional

from ..kube.objects import mapping, name
from ..net import Address, Prefix, PrefixIndex, find_address, find_prefix, quoted
from .issue import Issue, error, ordered, warning, whole

KNOWN = frozenset(
    (
        "subnet",
        "ipVersion",
        "ips",
        "excludeIPs",
        "gateway",
        "routes",
        "podAffinity",
        "namespaceAffinity",
        "namespaceName",
        "nodeAffinity",
        "nodeName",
        "multusName",
        "default",
        "disable",
    )
)
"""Fields of the specification (S76)."""
REMOVED = frozenset(("vlan",))
"""Fields that ended with version 1.0.0 (S76)."""
ROUTE = frozenset(("dst", "gw"))
_LONGEST_WITH_BROADCAST = 30

Interval = tuple[int, int]


class Verdict(NamedTuple):
    """What is wrong with a pool, and how many addresses it has to give."""

    addresses: int
    issues: list[Issue]


class _Pool(NamedTuple):
    """A pool as far as it could be read. ``subnet`` has no host bits; ``free`` are the addresses that it gives."""

    name: str
    subnet: Optional[Prefix]
    free: list[Interval]
    issues: list[Issue]


def judge(
    pool: Mapping[str, Any],
    existing: Iterable[Mapping[str, Any]] = (),
    need: Optional[int] = None,
    families: Iterable[int] = (4, 6),
) -> Verdict:
    """What is wrong with a pool, see :func:`judge_all`.

    :param need: the number of pods that must get an address.
    """
    return judge_all([pool], existing, {} if need is None else {name(pool): need}, families)[0]


def judge_all(
    pools: Iterable[Mapping[str, Any]],
    existing: Iterable[Mapping[str, Any]],
    need: Optional[Mapping[str, int]] = None,
    families: Iterable[int] = (4, 6),
) -> list[Verdict]:
    """What is wrong with each pool (S76 to S81). Only pools that meet are compared, so hundreds of them take no longer
    each than a few.

    After a subnet with host bits everything else is judged by the network that it is in.

    :param existing: all pools; one of the same name is taken for an older form of the one that is judged.
    :param need: the number of pods that must get an address, by the name of the pool.
    :param families: the IP versions that are enabled in Spiderpool (S77).
    """
    others, enabled = _Pools(existing), frozenset(families)
    return [_judge(pool, others, (need or {}).get(name(pool)), enabled) for pool in pools]


def _judge(pool: Mapping[str, Any], others: _Pools, need: Optional[int], families: frozenset[int]) -> Verdict:
    read = _read(pool)
    spec = mapping(pool, "spec")
    found = [*read.issues, *_version(spec, read.subnet, families), *_fields(spec)]
    if read.subnet is not None:
        found += _gateway(spec, read.subnet, read.free)
        found += _routes(spec, read.subnet)
        found += _edges(read.subnet, read.free)
        for other in others.near(read.subnet, read.free):
            if other.name != read.name:
                found += _against(read.subnet, other)
    count = sum([last - first + 1 for first, last in read.free])
    if need is not None and count < need:
        message = "%d pods need an address and the pool has %d" % (need, count)
        found.append(error("pool-too-small", "spec.ips", message))
    return Verdict(count, ordered(found))


class _Pools:
    """Many pools, made ready to find those that a pool could meet."""

    def __init__(self, pools: Iterable[Mapping[str, Any]]) -> None:
        self._pools = [_read(pool) for pool in pools]
        self._of_subnet: dict[Prefix, list[int]] = {}
        for position, pool in enumerate(self._pools):
            if pool.subnet is not None:
                self._of_subnet.setdefault(pool.subnet, []).append(position)
        self._subnets = list(self._of_subnet)
        self._index = PrefixIndex(self._subnets)
        self._spans: dict[Prefix, _Spans] = {}

    def near(self, subnet: Prefix, free: list[Interval]) -> list[_Pool]:
        """The pools of other subnets that overlap, and those of this one that give an address of ``free``."""
        found: set[int] = set()
        for place in self._index.overlapping(subnet):
            other = self._subnets[place]
            if other != subnet:
                found.update(self._of_subnet[other])
                continue
            if other not in self._spans:
                self._spans[other] = _Spans(
                    [(at, span) for at in self._of_subnet[other] for span in self._pools[at].free]
                )
            found |= self._spans[other].owners(free)
        return [self._pools[position] for position in sorted(found)]


class _Spans:
    """Intervals of addresses, each with its owner, in the order of their first addresses."""

    def __init__(self, owned: Iterable[tuple[int, Interval]]) -> None:
        rows = sorted([(first, last, owner) for owner, (first, last) in owned])
        self._rows = rows
        self._starts = [row[0] for row in rows]
        self._reach = [*accumulate([row[1] for row in rows], max)]  # the last address of all rows up to here

    def owners(self, intervals: Iterable[Interval]) -> set[int]:
        """Whose intervals have an address in common with one of these."""
        found = set()
        for first, last in intervals:
            at = bisect_right(self._starts, last)
            while at and self._reach[at - 1] >= first:
                at -= 1
                if self._rows[at][1] >= first:
                    found.add(self._rows[at][2])
        return found


def _read(pool: Mapping[str, Any]) -> _Pool:
    spec = mapping(pool, "spec")
    given = find_prefix(spec.get("subnet"))
    subnet = None if given is None else given.masked()
    found = []
    if given is None:
        message = "the subnet is a prefix such as 172.16.11.0/24, found %s" % quoted(spec.get("subnet"))
        found.append(error("subnet-syntax", "spec.subnet", message))
    elif not given.is_masked:
        message = "%s has host bits; its network is %s" % (given, subnet)
        found.append(error("subnet-not-canonical", "spec.subnet", message, canonical=str(subnet)))
    ranges: dict[str, list[Interval]] = {}
    for key in ("ips", "excludeIPs"):
        listed = spec.get(key)
        ranges[key] = []
        for position, entry in enumerate(listed if isinstance(listed, list) else []):
            interval = _interval(entry, "spec.%s[%d]" % (key, position), subnet)
            if isinstance(interval, Issue):
                found.append(interval)
            else:
                ranges[key].append(interval)
    return _Pool(name(pool), subnet, _without(_merged(ranges["ips"]), _merged(ranges["excludeIPs"])), found)


def _interval(entry: Any, at: str, subnet: Optional[Prefix]) -> Any:
    """First and last address of an entry, or what is wrong with it (S79)."""
    head, hyphen, tail = entry.partition("-") if isinstance(entry, str) else ("", "", "")
    first, last = find_address(head), find_address(tail if hyphen else head)
    if first is None or last is None or first.zone or last.zone or first.version != last.version:
        message = "a range is an address, or two with '-' and no blanks, found %s" % quoted(entry)
        return error("range-syntax", at, message)
    if last.value < first.value:
        return error("range-reversed", at, "the range %s ends before it begins" % entry)
    if subnet is not None and not (subnet.contains(first) and subnet.contains(last)):
        return error("range-outside-subnet", at, "%s is not inside %s" % (entry, subnet))
    return first.value, last.value


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _without(intervals: list[Interval], taken: list[Interval]) -> list[Interval]:
    """Both in order, and each without overlaps."""
    found = []
    for first, last in intervals:
        start = first
        for begin, end in taken:
            if end < start or last < begin:
                continue
            if start < begin:
                found.append((start, begin - 1))
            start = end + 1
        if start <= last:
            found.append((start, last))
    return found


def _holds(intervals: Iterable[Interval], value: int) -> bool:
    return any(first <= value <= last for first, last in intervals)


def _version(spec: Mapping[str, Any], subnet: Optional[Prefix], enabled: frozenset[int]) -> Iterator[Issue]:
    """4 or 6 as a number, that of the subnet, and enabled (S76, S77)."""
    given, at = spec.get("ipVersion"), "spec.ipVersion"
    if given is not None and whole(given) not in (4, 6):
        yield error("ipversion-type", at, "ipVersion is the number 4 or 6, found %s" % quoted(given))
    elif given is not None and subnet is not None and given != subnet.version:
        yield error("ipversion-mismatch", at, "ipVersion is %d and the subnet %s" % (given, subnet))
    if subnet is not None and subnet.version not in enabled:
        message = "IPv%d is not enabled in Spiderpool" % subnet.version
        yield error("ip-family-disabled", "spec.subnet", message)


def _fields(spec: Mapping[str, Any]) -> Iterator[Issue]:
    """A field that the API does not know is dropped without a word (S92); an affinity must not be empty (S77)."""
    for key in spec:
        if key in REMOVED:
            yield error("field-removed", "spec.%s" % key, "the field ended with Spiderpool 1.0.0")
        elif key not in KNOWN:
            yield error("field-unknown", "spec.%s" % key, "a SpiderIPPool has no such field")
    if spec.get("podAffinity") == {}:
        yield error("pod-affinity-empty", "spec.podAffinity", "an affinity that is given must not be empty")


def _gateway(spec: Mapping[str, Any], subnet: Prefix, free: list[Interval]) -> Iterator[Issue]:
    """Inside the subnet and never given to a pod (S80); without one there is no default route (S83)."""
    at, given = "spec.gateway", spec.get("gateway")
    if given in (None, ""):
        return
    gateway = find_address(given)
    if gateway is None or gateway.zone:
        yield error("gateway-syntax", at, "the gateway is an address, found %s" % quoted(given))
    elif not subnet.contains(gateway):
        yield error("gateway-outside-subnet", at, "%s is not inside %s" % (gateway, subnet))
    else:
        if _holds(free, gateway.value):
            yield error("gateway-in-ips", at, "%s is also one of the addresses for pods" % gateway)
        if gateway.value in _ends(subnet).values():
            message = "%s is the network or the broadcast address of %s" % (gateway, subnet)
            yield warning("gateway-not-a-host", at, message)


def _ends(subnet: Prefix) -> dict[str, int]:
    """Network and broadcast address; only longer IPv4 prefixes than /30 and IPv6 have none."""
    if subnet.version != 4 or subnet.length > _LONGEST_WITH_BROADCAST:
        return {}
    return {"network": subnet.network, "broadcast": subnet.last}


def _edges(subnet: Prefix, free: list[Interval]) -> Iterator[Issue]:
    """Admission lets them pass (S80), and a pod with one of them cannot talk."""
    for kind, value in _ends(subnet).items():
        if _holds(free, value):
            message = "%s is the %s address of %s" % (Address(4, value), kind, subnet)
            yield warning("pool-includes-%s-address" % kind, "spec.ips", message)


def _routes(spec: Mapping[str, Any], subnet: Prefix) -> Iterator[Issue]:
    """Destination and gateway, by these names; no default route, no destination twice (S81)."""
    seen = set()
    listed = spec.get("routes")
    for position, route in enumerate(listed if isinstance(listed, list) else []):
        at = "spec.routes[%d]" % position
        if not isinstance(route, dict) or set(route) != ROUTE or not all(route.values()):
            yield error("route-fields", at, "a route has dst and gw, and nothing else")
            continue
        destination, gateway = find_prefix(route["dst"]), find_address(route["gw"])
        if destination is None or destination.version != subnet.version:
            message = "a destination is an IPv%d prefix, found %s" % (subnet.version, quoted(route["dst"]))
            yield error("route-dst-syntax", at, message)
        elif destination.length == 0:
            yield error("route-default-dst", at, "the default route is made by the field gateway")
        elif destination.masked() in seen:
            yield error("route-dst-duplicate", at, "%s is given twice" % destination)
        else:
            seen.add(destination.masked())
        if gateway is None or not subnet.contains(gateway):
            message = "the gateway %s is not inside %s" % (quoted(route["gw"]), subnet)
            yield error("route-gw-outside-subnet", at, message)


def _against(subnet: Prefix, other: _Pool) -> Iterator[Issue]:
    """Two pools that are near each other: one subnet and no common address, or subnets that do not meet (S77, S78)."""
    if subnet != other.subnet:
        message = "%s overlaps %s of pool %s" % (subnet, other.subnet, other.name)
        yield error("subnet-overlap", "spec.subnet", message, other=other.name)
    else:
        message = "pool %s has some of these addresses" % other.name
        yield error("ips-overlap", "spec.ips", message, other=other.name)
