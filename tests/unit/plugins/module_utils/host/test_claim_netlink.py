# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The short reading of rtnetlink against the whole one, on the kernel of this machine and on made-up messages."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import claim_netlink, raw_netlink
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def test_it_reads_what_the_whole_reading_has() -> None:
    """Links, IPv4 addresses and IPv4 destinations of this network namespace, in the same order."""
    root = Root("/")
    whole = raw_netlink.read(root)
    links, addresses, routes = [
        read(root) for read in (claim_netlink.links, claim_netlink.addresses, claim_netlink.routes)
    ]
    assert root.errors == []
    assert whole is not None
    assert links is not None
    assert [(link.index, link.name, link.arphrd) for link in links] == [
        (link.index, link.name, link.arphrd) for link in whole.links
    ]
    assert [(entry.link, entry.address, entry.length) for entry in addresses or ()] == [
        (entry.link, entry.address, entry.length) for entry in whole.addresses if ":" not in entry.address
    ]
    wanted = dict.fromkeys([(route.dst, route.length) for route in whole.routes if route.family == 2])
    assert [(route.dst, route.length) for route in routes or ()] == list(wanted)


def attribute(kind: int, data: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def answer(monkeypatch: pytest.MonkeyPatch, *bodies: bytes) -> None:
    monkeypatch.setattr(raw_netlink, "dump", lambda kind, body: list(bodies))


def route(length: int, kind: int, dst: bytes, table: int) -> bytes:
    head = struct.pack("=8BI", 2, length, 0, 0, table, 0, 0, kind, 0)
    return head + attribute(15, struct.pack("=I", table)) + (attribute(1, dst) if dst else b"")


def test_routes_once_each_and_unicast_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """F47: all tables, no local, broadcast or blackhole routes; a second route to a network says nothing new."""
    answer(
        monkeypatch,
        route(0, 1, b"", 254),
        route(12, 1, bytes([10, 224, 0, 0]), 254),
        route(12, 1, bytes([10, 224, 0, 0]), 100),
        route(32, 2, bytes([10, 208, 0, 9]), 255),
        route(32, 1, bytes([10, 209, 1, 1]), 200),
    )
    found = claim_netlink.routes(Root("/"))
    assert [(entry.dst, entry.length, entry.family) for entry in found or ()] == [
        ("", 0, 2),
        ("10.224.0.0", 12, 2),
        ("10.209.1.1", 32, 2),
    ]


def test_an_address_of_a_tunnel_is_the_local_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """IFA_ADDRESS is the other end there."""
    head = struct.pack("=BBBBI", 2, 32, 0, 0, 7)
    answer(monkeypatch, head + attribute(1, bytes([10, 0, 0, 2])) + attribute(2, bytes([10, 0, 0, 1])), head)
    found = claim_netlink.addresses(Root("/"))
    assert [(entry.link, entry.address, entry.length) for entry in found or ()] == [(7, "10.0.0.1", 32)]


@pytest.mark.parametrize("name", ["links", "addresses", "routes"])
@pytest.mark.parametrize("failure", [PermissionError(1, ""), struct.error("short")])
def test_a_read_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, name: str, failure: Any) -> None:
    def fail(kind: int, body: bytes) -> Any:
        raise failure

    monkeypatch.setattr(raw_netlink, "dump", fail)
    root = Root("/")
    assert getattr(claim_netlink, name)(root) is None
    assert [entry.source for entry in root.errors] == ["rtnetlink:" + name]


def test_a_broken_message_ends_its_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A length that leads nowhere does not lead round in circles."""
    head = struct.pack("=BxHiII", 0, 1, 3, 0, 0)
    answer(monkeypatch, head + struct.pack("=HH", 0, 9))
    found = claim_netlink.links(Root("/"))
    assert [(link.index, link.name) for link in found or ()] == [(3, "")]
