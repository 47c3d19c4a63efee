# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks around a cluster, each with where it is known from: the document that range checks take.

Private to rdma.k8s: it may change with any release. The driver cannot see the whole pod and service networks (F50) and
knows only the subnets of one node's VNICs (F45, F46). Whoever knows more writes it down here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ..errors import RdmaError
from ..json_text import Reader
from ..net import Prefix, find_prefix
from ..report.wording import flat

DOCUMENT = "rdma.k8s/networks"
SCHEMA_VERSION = 1

KINDS = {
    "pod": "pod network",
    "service": "service network",
    "vcn": "VCN network",
    "subnet": "subnet",
    "peer": "peered network",
}
"""What a network is to the cluster, and how sentences call it."""

OPTIONS = {
    "pod_cidrs": "pod",
    "service_cidrs": "service",
    "vcn_cidrs": "vcn",
    "subnet_cidrs": "subnet",
    "peer_cidrs": "peer",
}
"""The options by which a user names networks, and the kind that each gives."""

_HINT = "Give the document as rdma.k8s.oke_network_info returned it."
_READER = Reader("networks_malformed", "The document of networks", _HINT)
_GIVEN = Reader("network_malformed", "The networks", "Write lists of networks such as [10.244.0.0/16].")


@dataclass(frozen=True)
class KnownNetwork:
    """A network that is in use.

    :param kind: one of :data:`KINDS`.
    :param network: masked.
    :param sources: where it is known from, at least one.
    :param used_by: what of the cluster uses it, where that is known.
    """

    kind: str
    network: Prefix
    sources: tuple[str, ...]
    used_by: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What it is and who says so, for a sentence."""
        known = ", ".join(self.sources)
        uses = "; used by %s" % ", ".join(self.used_by) if self.used_by else ""
        return "%s (%s%s)" % (KINDS[self.kind], known, uses)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "network": str(self.network),
            "kind": self.kind,
            "sources": list(self.sources),
            "used_by": list(self.used_by),
        }


@dataclass(frozen=True)
class Unread:
    """Networks that could not be told, and why. They are unknown, which is not the same as absent."""

    code: str
    message: str
    hint: str = ""
    retryable: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class NetworkDocument:
    """All that is known. ``cluster`` describes the cluster of the networks, ``None`` when they come from options."""

    networks: tuple[KnownNetwork, ...] = ()
    cluster: Optional[Mapping[str, Any]] = None
    unread: tuple[Unread, ...] = ()

    def of_version(self, version: int) -> list[KnownNetwork]:
        """The networks of one IP version."""
        return [entry for entry in self.networks if entry.network.version == version]

    def of_kind(self, *kinds: str) -> list[KnownNetwork]:
        """The IPv4 networks of these kinds; an IPv6 network overlaps no child range (F27)."""
        return [entry for entry in self.of_version(4) if entry.kind in kinds]

    def conflicts(self, child_range: Prefix) -> list[KnownNetwork]:
        """The networks that share an address with the range."""
        return [entry for entry in self.networks if entry.network.overlaps(child_range)]

    def options(self) -> dict[str, list[str]]:
        """The IPv4 networks as the lists that options and policies take, each network once."""
        return {
            option: list(dict.fromkeys([str(entry.network) for entry in self.of_kind(kind)]))
            for option, kind in OPTIONS.items()
        }

    def with_more(self, other: NetworkDocument) -> NetworkDocument:
        """Both together; a network that both know is one with the sources of both."""
        cluster = self.cluster if self.cluster is not None else other.cluster
        unread = tuple(dict.fromkeys([*self.unread, *other.unread]))
        return NetworkDocument(merged([*self.networks, *other.networks]), cluster, unread)

    def to_dict(self) -> dict[str, Any]:
        """The document as plain data; :func:`parse` reads it."""
        return {
            "document": DOCUMENT,
            "schema_version": SCHEMA_VERSION,
            "cluster": None if self.cluster is None else dict(self.cluster),
            "networks": [entry.to_dict() for entry in self.of_version(4)],
            "ipv6_networks": [entry.to_dict() for entry in self.of_version(6)],
            "unread": [entry.to_dict() for entry in self.unread],
        }


@dataclass
class Collection:
    """Gathers networks from texts of one origin, which ``reader`` knows."""

    reader: Reader
    found: list[KnownNetwork] = field(default_factory=list)

    def add(self, kind: str, text: Any, where: str, source: str, used_by: Iterable[str] = ()) -> None:
        """Note a network, read strictly (F29), masked as the driver masks subnets (F46).

        :param where: the place of the text, for the error.
        :raises RdmaError: with the code of the reader.
        """
        prefix = find_prefix(text)
        if prefix is None:
            raise self.reader.wrong(where, "a prefix of the form <address>/<length>", text)
        self.found.append(KnownNetwork(kind, prefix.masked(), (flat(source),), tuple(map(flat, used_by))))


def merged(networks: Iterable[KnownNetwork]) -> tuple[KnownNetwork, ...]:
    """Each kind and network once, with all its sources and users; sorted by kind, then by network."""
    known: dict[tuple[str, Prefix], KnownNetwork] = {}
    for entry in networks:
        before = known.get((entry.kind, entry.network))
        if before is not None:
            entry = KnownNetwork(  # noqa: PLW2901 (the same network, with more known about it)
                entry.kind,
                entry.network,
                tuple(dict.fromkeys([*before.sources, *entry.sources])),
                tuple(dict.fromkeys([*before.used_by, *entry.used_by])),
            )
        known[(entry.kind, entry.network)] = entry
    order = list(KINDS)
    return tuple(sorted(known.values(), key=lambda entry: (order.index(entry.kind), entry.network)))


def from_options(given: Mapping[str, Any]) -> NetworkDocument:
    """The networks that a user names, lists of prefixes by the names in :data:`OPTIONS`.

    :raises RdmaError: ``network_malformed``.
    """
    collection = Collection(_GIVEN)
    for option, kind in OPTIONS.items():
        for number, text in enumerate(_GIVEN.entries(given.get(option), option)):
            collection.add(kind, text, "%s[%d]" % (option, number), "option %s" % option)
    return NetworkDocument(merged(collection.found))


def parse(document: Any) -> NetworkDocument:
    """Read a document that :meth:`NetworkDocument.to_dict` wrote, strictly where it has a meaning.

    :raises RdmaError: ``networks_malformed`` or ``networks_newer_schema``.
    """
    if document is None:
        raise _READER.wrong("the document", "an object", document)
    members = _READER.members(document, "the document")
    if members.get("document") != DOCUMENT:
        raise _READER.wrong("document", "'%s'" % DOCUMENT, members.get("document"))
    version = _READER.integer(members.get("schema_version"), "schema_version")
    if version is None or version < 1:
        raise _READER.wrong("schema_version", "1", members.get("schema_version"))
    if version > SCHEMA_VERSION:
        raise RdmaError(
            "networks_newer_schema",
            "The document of networks has schema version %d, this release reads up to %d."
            % (version, SCHEMA_VERSION),
            hint="Update the collection, or make the document again with this release.",
            found=version,
        )
    collection = Collection(_READER)
    for name, width in (("networks", 4), ("ipv6_networks", 6)):
        for number, entry in enumerate(_READER.entries(members.get(name), name)):
            _read(collection, entry, "%s[%d]" % (name, number), width)
    cluster = members.get("cluster")
    return NetworkDocument(
        merged(collection.found),
        None if cluster is None else _READER.members(cluster, "cluster"),
        tuple(_unread(members.get("unread"))),
    )


def _read(collection: Collection, entry: Any, where: str, version: int) -> None:
    members = _READER.members(entry, where)
    kind = _READER.text(members.get("kind"), where + ".kind")
    if kind not in KINDS:
        raise _READER.wrong(where + ".kind", "one of %s" % ", ".join(KINDS), members.get("kind"))
    sources = _texts(members.get("sources"), where + ".sources")
    if not sources:
        raise _READER.wrong(where + ".sources", "a list with at least one text", members.get("sources"))
    used_by = _texts(members.get("used_by"), where + ".used_by")
    for source in sources:
        collection.add(kind, members.get("network"), where + ".network", source, used_by)
    if collection.found[-1].network.version != version:
        raise _READER.wrong(where + ".network", "an IPv%d network" % version, members.get("network"))


def _texts(value: Any, where: str) -> list[str]:
    entries = _READER.entries(value, where)
    return [_READER.text(text, "%s[%d]" % (where, number)) for number, text in enumerate(entries)]


def _unread(value: Any) -> Iterator[Unread]:
    for number, entry in enumerate(_READER.entries(value, "unread")):
        where = "unread[%d]" % number
        members = _READER.members(entry, where)
        yield Unread(
            _READER.text(members.get("code"), where + ".code"),
            flat(_READER.text(members.get("message"), where + ".message")),
            flat(_READER.text(members.get("hint"), where + ".hint")),
            bool(_READER.flag(members.get("retryable"), where + ".retryable")),
        )
