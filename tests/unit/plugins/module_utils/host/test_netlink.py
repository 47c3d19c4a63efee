# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Netlink against the kernel of this machine, in network namespaces that the tests make and remove."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    FirewallRule,
    NodeSnapshot,
    Route,
    Rule,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host import rdma_netlink, rtnetlink
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.module_utils.host.records import PortRecord, RdmaRecord

SCRIPT = """
import json, sys
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect
print(json.dumps(collect("n", "/", sys.argv[1:]).to_dict(compact=True)))
"""
NFT_SCRIPT = """
from pyroute2.nftables.main import NFTables
with NFTables(nfgen_family=2) as nft:
    nft.table("add", name="filter")
    nft.chain("add", table="filter", name="in", hook="input", type="filter", policy=0)
    nft.chain("add", table="filter", name="fwd", hook="forward", type="filter", policy=0)
    nft.chain("add", table="filter", name="out", hook="output", type="filter", policy=1)
"""


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(name="netns")
def netns_fixture() -> Iterator[str]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("making a network namespace needs root and iproute2")
    name = "rdmak8s-%d" % os.getpid()
    ip("netns", "add", name)
    try:
        yield name
    finally:
        ip("netns", "del", name)


def inside(netns: str, *words: str) -> str:
    return ip("netns", "exec", netns, *words)


def run(netns: str, script: str, *words: str) -> str:
    return inside(
        netns, "env", "PYTHONPATH=%s" % os.pathsep.join(sys.path), sys.executable, "-c", script, *words
    )


def read(netns: str, *subsets: str) -> NodeSnapshot:
    return NodeSnapshot.from_dict(json.loads(run(netns, SCRIPT, *subsets)))


def batch(netns: str, text: str) -> None:
    for line in text.strip().splitlines():
        ip("-n", netns, *line.split())


LINKS = """
link add rdma0 type veth peer name away
link add pod0 type veth peer name pod1
link add br0 type bridge
link add rdma1 type veth peer name away1
link set rdma1 master br0
link add link rdma0 name mac0 type macvlan mode bridge
link set rdma0 mtu 4220 up
link set away up
link set br0 up
link set pod0 up
link set pod1 up
link set lo up
addr add 10.224.13.19/12 dev rdma0
addr add fd10::7/64 dev rdma0 nodad
addr add 10.99.0.1/32 dev lo
"""


def test_links_and_addresses_of_a_namespace(netns: str) -> None:
    batch(netns, LINKS)
    found = read(netns, "links")
    links = {link.name: link for link in found.links or ()}
    assert found.errors == ()
    assert set(links) == {"lo", "rdma0", "rdma1", "br0", "mac0"}
    rdma0 = links["rdma0"]
    assert (rdma0.kind, rdma0.mtu, rdma0.state, rdma0.arphrd) == ("veth", 4220, "up", 1)
    assert {"10.224.13.19/12", "fd10::7/64"} <= set(rdma0.addresses)
    assert rdma0.arp is not None
    assert rdma0.arp.ignore == "0"
    assert (links["rdma1"].master, links["rdma1"].state) == ("br0", "down")
    assert (links["mac0"].kind, links["mac0"].parent) == ("macvlan", "rdma0")
    assert links["br0"].kind == "bridge"
    assert links["lo"].addresses == ("10.99.0.1/32",)
    oracle = {entry["ifname"]: entry for entry in json.loads(ip("-n", netns, "-j", "addr"))}
    for name, link in links.items():
        assert link.mac == oracle[name]["address"]
        assert link.mtu == oracle[name]["mtu"]
        wanted = ["%s/%d" % (entry["local"], entry["prefixlen"]) for entry in oracle[name]["addr_info"]]
        assert [address for address in wanted if not address.startswith(("127.", "::1/"))] == list(
            link.addresses
        )


def test_addresses_that_are_not_unique_yet(netns: str) -> None:
    """A65: on a link that is down the check for duplicates has not begun."""
    batch(netns, LINKS + "addr add fd11::9/64 dev rdma1\n")
    links = {link.name: link for link in read(netns, "links").links or ()}
    assert links["rdma1"].addresses == links["rdma1"].unusable == ("fd11::9/64",)
    assert "10.224.13.19/12" not in links["rdma0"].unusable


ROUTES = """
route add 10.208.0.0/12 dev rdma0 scope link src 10.224.13.19 table 115
route add default via 10.224.0.1 dev rdma0 proto dhcp metric 100
route add 10.1.2.3 dev rdma0
route add 10.7.0.0/16 nexthop via 10.224.0.1 dev rdma0 nexthop via 10.224.0.2 dev rdma0
route add 10.8.0.0/16 via inet6 fd10::1 dev rdma0
route add blackhole 10.66.0.0/16
route add unreachable 10.67.0.0/16
-6 route add default via fd10::1 dev rdma0 proto ra metric 1024
-6 route add fd20::/48 via fd10::1 dev rdma0 table 70000
rule add from 10.208.13.19 lookup 100 priority 32000
rule add not from 10.0.0.0/8 to 10.9.0.0/16 iif rdma0 fwmark 0x4/0xff lookup 7 priority 50
rule add from all ipproto udp dport 4791-4800 lookup 9 priority 60
rule add priority 70 prohibit
rule add from all lookup main suppress_prefixlength 0 priority 80
-6 rule add from fd10::7 lookup 7 priority 90
-6 rule add from all lookup 8 priority 91
"""


def test_routes_of_all_tables_and_rules(netns: str) -> None:
    batch(netns, LINKS)
    batch(netns, ROUTES)
    found = read(netns, "routes")
    assert found.errors == ()
    routes = [str(route) for route in found.routes or ()]
    # Order is the kernel's; the connected IPv6 route of the address carries the kernel's metric.
    assert sorted(route for route in routes if not route.startswith("fd10::/64")) == sorted(
        [
            "10.208.0.0/12 dev rdma0 table 115 src 10.224.13.19",
            "default dev rdma0 via 10.224.0.1 proto dhcp metric 100",
            "10.1.2.3 dev rdma0",
            "10.7.0.0/16 dev rdma0 via 10.224.0.1",
            "10.7.0.0/16 dev rdma0 via 10.224.0.2",
            "10.8.0.0/16 dev rdma0 via fd10::1",
            "10.224.0.0/12 dev rdma0 src 10.224.13.19",
            "::/0 dev rdma0 via fd10::1 proto ra metric 1024",
            "fd20::/48 dev rdma0 table 70000 via fd10::1 metric 1024",
        ]
    )
    assert "fd10::/64 dev rdma0 metric 256" in routes
    assert [str(rule) for rule in found.rules or ()] == [
        "0: from all lookup 255",
        "50: from 10.0.0.0/8 lookup 7 not to 10.9.0.0/16 iif rdma0 fwmark 0x4 fwmask 0xff",
        "60: from all lookup 9 ipproto 17 dport 4791-4800",
        "70: from all lookup 0 prohibit",
        "80: from all lookup 254 suppress_prefixlength 0",
        "32000: from 10.208.13.19 lookup 100",
        "32766: from all lookup 254",
        "32767: from all lookup 253",
        "90: from fd10::7 lookup 7",
        "91: from all lookup 8 inet6",
    ]
    assert Rule(32000, "10.208.13.19", 100) in (found.rules or ())
    assert Route("10.1.2.3", "rdma0") in (found.routes or ())


def test_many_routes_are_read_whole(netns: str, tmp_path: Path) -> None:
    batch(netns, LINKS)
    lines = [
        "route add 10.%d.%d.0/24 dev rdma0" % (64 + number // 256, number % 256) for number in range(3000)
    ]
    (tmp_path / "batch").write_text("\n".join(lines) + "\n")
    ip("-n", netns, "-batch", str(tmp_path / "batch"))
    found = read(netns, "routes")
    assert len([route for route in found.routes or () if route.dst.endswith("0/24")]) == 3000


def test_packet_filter_chains_of_the_kernel(netns: str) -> None:
    try:
        run(netns, NFT_SCRIPT)
    except subprocess.CalledProcessError:
        pytest.skip("the kernel of this machine has no nftables")
    found = read(netns, "firewall")
    assert found.errors == ()
    assert found.firewall == (FirewallRule("ip", "filter", "in", "input", "drop", "policy drop"),)


def test_the_namespaces_of_the_machine_are_named(netns: str) -> None:
    assert netns in (collect("n", "/", ["links"]).namespaces or ())


def test_this_machine_as_iproute2_sees_it() -> None:
    if shutil.which("ip") is None:
        pytest.skip("the comparison needs iproute2")
    found = collect("n", "/", ["links", "routes", "rdma"])
    assert {error.source for error in found.errors} <= {
        "rdma-netlink",
        "/sys/module/ib_core/parameters/netns_mode",
    }
    oracle = {entry["ifname"]: entry for entry in json.loads(ip("-j", "link"))}
    assert {link.name for link in found.links or ()} <= set(oracle)
    assert len(found.routes or ()) >= len(json.loads(ip("-j", "-4", "route")))


# RDMA netlink


def test_without_ib_core_the_answer_is_typed_and_nothing_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sys").mkdir()
    root = Root(str(tmp_path))
    monkeypatch.setattr(rdma_netlink.deps, "load", None)
    assert rdma_netlink.read(root) is None
    assert [(error.source, error.reason) for error in root.errors] == [
        ("rdma-netlink", "ib_core is not loaded")
    ]


def test_the_kernel_of_this_machine_answers_or_refuses_honestly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is opened although ib_core is not loaded: a kernel that cannot load it has no such family."""
    root = Root()
    there = root.exists(rdma_netlink.IB_CORE)
    monkeypatch.setattr(root, "exists", lambda _path: True)
    found = rdma_netlink.read(root)
    if found is None:
        assert not there
        assert [error.reason for error in root.errors] == ["protocol not supported"]
    else:
        assert found.netns_mode in (0, 1)


def attribute(number: int, content: bytes) -> bytes:
    return struct.pack("=HH", len(content) + 4, number) + content + b"\0" * (-len(content) % 4)


class FakeKernel:
    """A socket that answers as nldev does: bytes of S10 and S11, decoded by the message class of the reader."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, dict[str, Any]]] = []

    def nlm_request(self, message: Any, operation: int, flags: int) -> Iterator[Any]:
        self.asked.append((operation, flags, dict(message["attrs"])))
        index = dict(message["attrs"]).get("DEV_INDEX", 0)
        if operation == 5126:
            yield self._decoded(
                attribute(66, b"\x01")
                + attribute(93, b"\x00")
                + attribute(103, b"\x01")
                + attribute(150, b"zz")
            )
        elif operation == 5121:
            for number in (3, 7):
                name = attribute(2, b"mlx5_%d\0" % number)
                yield self._decoded(
                    attribute(1, struct.pack("=I", number)) + name + attribute(6, b"\x11" * 8)
                )
        elif index == 3:
            state = attribute(12, b"\x04") + attribute(13, b"\x05")
            yield self._decoded(
                attribute(1, struct.pack("=I", 3)) + attribute(2, b"mlx5_3\0") + attribute(3, struct.pack("=I", 1))
                + state + attribute(50, struct.pack("=I", 9)) + attribute(51, b"rdma3\0")
            )  # fmt: skip
        else:  # an InfiniBand port names no interface (S30)
            yield self._decoded(attribute(3, struct.pack("=I", 2)) + attribute(12, b"\x02"))

    @staticmethod
    def _decoded(attributes: bytes) -> Any:
        header = struct.pack("=IHHII", 16 + len(attributes), 5125, 0, 1, 1)
        message = rdma_netlink._message_class()(header + attributes)
        message.decode()
        return message


def test_the_answers_of_nldev_are_read() -> None:
    kernel = FakeKernel()
    assert rdma_netlink._ask_all(kernel) == RdmaRecord(
        1,
        0,
        (PortRecord("mlx5_3", 1, "rdma3", 4, 5), PortRecord("mlx5_7", 2, "", 2, 0)),
    )
    assert kernel.asked == [
        (5126, 0x5, {}),
        (5121, 0x301, {}),
        (5125, 0x301, {"DEV_INDEX": 3}),
        (5125, 0x301, {"DEV_INDEX": 7}),
    ]


def test_requests_are_the_bytes_that_the_kernel_expects() -> None:
    message = rdma_netlink._message_class()()
    message["attrs"] = [("DEV_INDEX", 7)]
    message["header"]["type"] = 5125
    message.encode()
    assert bytes(message.data)[16:] == attribute(1, struct.pack("=I", 7))


# Errors


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.EPERM, "x"), "operation not permitted"),
        (KeyError("IFLA_IFNAME"), "KeyError: 'IFLA_IFNAME'"),
        (struct.error("short"), "error: short"),
    ],
)
def test_an_error_is_one_line(error: Exception, text: str) -> None:
    assert rtnetlink.explain(error) == text


def test_an_error_of_the_kernel_is_told_by_its_name() -> None:
    from pyroute2 import NetlinkError

    assert rtnetlink.explain(NetlinkError(16, "x")) == "device or resource busy"


@pytest.mark.parametrize(("interruptions", "outcome"), [(0, [7]), (2, [7]), (3, None)])
def test_an_interrupted_dump_is_asked_again(interruptions: int, outcome: Any) -> None:
    import pyroute2

    calls = []

    def ask() -> Iterator[int]:
        calls.append(1)
        yield 7
        if len(calls) <= interruptions:
            raise pyroute2.NetlinkDumpInterrupted

    if outcome is None:
        with pytest.raises(pyroute2.NetlinkDumpInterrupted):
            rtnetlink._dump(pyroute2, ask)
    else:
        assert rtnetlink._dump(pyroute2, ask) == outcome
    assert len(calls) == min(interruptions + 1, 3)
