# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way from the parameters of a module to the nodes of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils import _fleet
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing, fleet as core_fleet
from ansible_collections.rdma.k8s.tests.support import fleet, node_tree
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

SUBNET = "10.140.64.0/19"


def params(**given_ones: Any) -> dict[str, Any]:
    return {"nodes": None, "snapshot": None, "host_root": "/", **given_ones}


def described(name: str = "n1", nics: int = 16, **more: Any) -> dict[str, Any]:
    entry = {"name": name, "address": "10.140.77.19", "subnet": SUBNET, "nics": nics}
    return {**entry, "oca_network": "10.224.0.0/12", **more}


def test_described_nodes() -> None:
    found = _fleet.members(params(nodes=[described(), described("n2", 0, oca_network="192.168.0.0/16")]))
    assert [member.node for member in found] == [
        core_fleet.FleetNode("n1", "10.140.77.19", SUBNET, tuple(range(16))),
        core_fleet.FleetNode("n2", "10.140.77.19", SUBNET, (), "192.168.0.0/16"),
    ]
    assert [member.arp for member in found] == [{}, {}]


@pytest.mark.parametrize("nics", [-1, 65, 10**9])
def test_a_number_of_nics_that_no_node_has(nics: int) -> None:
    error = error_of(_fleet.members, params(nodes=[described(nics=nics)]))
    assert error.code == "nic_count"
    assert "nics of node n1 must be a number from 0 to 64, found %d." % nics == error.message


def test_a_name_that_is_given_twice() -> None:
    error = error_of(_fleet.members, params(nodes=[described("b"), described("a"), described("b")]))
    assert (error.code, error.details) == ("node_twice", {"node": "b"})
    twice = [fleet.node(name="s").to_dict()] * 2
    assert error_of(_fleet.members, params(snapshot=twice)).code == "node_twice"


@pytest.mark.parametrize("compact", [False, True])
def test_snapshots_tell_address_nics_and_arp(compact: bool) -> None:
    node = fleet.edit_arp(fleet.node("BM.GPU.GB200-v2.4", name="s"), "rdma1", ignore="strange")
    node = fleet.edit_arp(node, "rdma2", ignore="2", announce="1")
    (member,) = _fleet.members(params(snapshot=[node.to_dict(compact=compact)]))
    assert (member.node.name, member.node.address, member.node.subnet) == ("s", "10.140.77.19", SUBNET)
    assert list(member.node.nics) == [0, 1, 2, 3]
    usual = {"arp_ignore": 1, "arp_announce": 2}
    assert member.arp == {0: usual, 1: None, 2: {"arp_ignore": 2, "arp_announce": 1}, 3: usual}


def test_a_nic_without_index_has_no_arp_entry() -> None:
    node = fleet.node("BM.Optimized3.36")
    nic = next(link.name for link in node.links or () if "100G" not in link.name and link.mtu == 4220)
    nameless = fleet.edit_link(node, nic, addresses=())
    (member,) = _fleet.members(params(snapshot=[nameless.to_dict()]))
    assert member.arp == {}


def test_the_node_on_which_it_runs(tmp_path: Path) -> None:
    tree = node_tree.write(tmp_path / "tree", fleet.node("BM.GPU.GB200-v2.4", name="own"), gid_table=2)
    (member,) = _fleet.members(params(host_root=str(tree.root)))
    assert (member.node.name, list(member.node.nics)) == ("own", [0, 1, 2, 3])
    assert member.arp[3] == {"arp_ignore": 1, "arp_announce": 2}
    assert _fleet.libraries(params(host_root=str(tree.root))) == ()


def test_which_library_is_needed() -> None:
    assert _fleet.libraries(params()) == ("pyroute2",)
    assert _fleet.libraries(params(nodes=[])) == ()
    assert _fleet.libraries(params(snapshot=[])) == ()


def test_a_snapshot_that_is_none() -> None:
    assert error_of(_fleet.members, params(snapshot=[{"links": 7, "name": "x"}])).code == "document_malformed"
    newer = {"schema_version": 99, "name": "x"}
    assert error_of(_fleet.members, params(snapshot=[newer])).code == "snapshot_newer_schema"


def test_plain_data() -> None:
    vnic = addressing.read_vnic("10.140.77.19", SUBNET)
    child = addressing.derive_child(vnic, 15)
    found = addressing.routing(child.child, parse_prefix("10.208.0.0/12"), 15)
    assert _fleet.plain(found.route) == {
        "destination": "10.208.0.0/12",
        "source": "10.209.237.19",
        "scope": 253,
        "table": 115,
    }
    assert _fleet.plain(found.rule) == {"priority": 32000, "source": "10.209.237.19/32", "table": 115}


def test_clashes_name_their_holders() -> None:
    nodes = [member.node for member in _fleet.members(params(nodes=[described("a", 1), described("b", 1)]))]
    assert _fleet.clashes(core_fleet.plan_fleet(nodes)) == [
        {"child": "10.208.13.19", "holders": ["a 0", "b 0"]}
    ]


@given(
    st.lists(
        st.builds(
            described,
            st.sampled_from("abc"),
            st.integers(-2, 70),
            address=st.text(max_size=9),
            subnet=st.one_of(st.text(max_size=9), st.just(SUBNET)),
            oca_network=st.text(max_size=9),
        ),
        max_size=4,
    )
)
def test_any_description_gives_members_or_a_sentence(nodes: list[dict[str, Any]]) -> None:
    try:
        found = _fleet.members(params(nodes=nodes))
    except RdmaError as error:
        assert error.code in ("nic_count", "node_twice")  # noqa: PT017
        return
    assert len(found) == len(nodes)
    plan = core_fleet.plan_fleet([member.node for member in found])
    assert plan.count + len(plan.errors) == sum(entry["nics"] for entry in nodes)
