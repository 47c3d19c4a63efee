# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rails from snapshots of nodes, and objects from rails that break none of the rules."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import (
    Gpu,
    Link,
    NodeSnapshot,
    PciFunction,
    RdmaDevice,
    RdmaPort,
    Route,
    Slow,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import (
    ip_pool,
    node_policy,
    objects,
    rails,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.objects import Setup
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.rails import Wish
from ansible_collections.rdma.k8s.tests.support import fleet

WISH = Wish("172.16.0.0/16")
SETUP = Setup({"rdma": "true"})


def node(
    name: str = "w1", count: int = 2, layer: str = "Ethernet", gpus: Optional[str] = "near", **more: Any
) -> NodeSnapshot:
    """NICs at 86:00.0, 87:00.0 ... with GPUs beside them, and a management NIC; GPUs in the order opposite to them."""
    places = ["0000:%02x:00.0" % (0x86 + number) for number in range(count)]
    functions = [PciFunction("0000:01:00.0", "15b3:101d", "0200", "mlx5_core", 0)]
    functions += [PciFunction(place, "15b3:101d", "0200", "mlx5_core", 1) for place in places]
    links = [Link("eno1", pci="0000:01:00.0", mtu=1500)]
    links += [Link("ens%d" % number, pci=place, mtu=4200) for number, place in enumerate(places, 1)]
    devices = [
        RdmaDevice("mlx5_0", "0000:01:00.0", ports=(RdmaPort(1, netdev="eno1", link_layer="Ethernet"),))
    ]
    devices += [
        RdmaDevice("mlx5_%d" % number, place, ports=(RdmaPort(1, link_layer=layer),))
        for number, place in enumerate(places, 1)
    ]
    slow = None
    if gpus is not None:
        found = [
            Gpu("0000:%02x:00.0" % (0xF0 - number), "10de:2330", 1, (place,) if gpus == "near" else ())
            for number, place in enumerate(places)
        ]
        slow = Slow(gpus=tuple(found))
    return NodeSnapshot(
        name=name,
        pci=tuple(functions),
        links=tuple(links),
        devices=tuple(devices),
        routes=(Route("default", "eno1", via="10.0.0.1"),),
        slow=slow,
        **more,
    )


def refused(snapshots: list[NodeSnapshot], wish: Wish) -> RdmaError:
    with pytest.raises(RdmaError) as caught:
        rails.propose(snapshots, wish)
    return caught.value


def test_rails_stand_in_the_order_of_their_gpus() -> None:
    found = rails.propose([node(), node("w2")], WISH)
    first, second = found.rails
    assert first == rails.Rail(
        number=1,
        pci="0000:87:00.0",
        name="ens2",
        link_type="eth",
        vendor="15b3",
        gpus=("0000:ef:00.0",),
        affinity="pcie",
        resource="gpu1sriov",
        subnet="172.16.0.0/24",
        gateway="172.16.0.254",
        ranges=("172.16.0.1-172.16.0.253",),
        vfs=8,
        mtu=4200,
    )
    assert (second.pci, second.subnet, second.resource) == ("0000:86:00.0", "172.16.1.0/24", "gpu2sriov")
    assert found.notes == ()


def test_the_nic_of_the_default_route_is_no_rail() -> None:
    """Also when it has RDMA, and when no GPU is known."""
    found = rails.propose([node(gpus=None)], WISH)
    assert [rail.pci for rail in found.rails] == ["0000:86:00.0", "0000:87:00.0"]
    assert [rail.affinity for rail in found.rails] == ["unknown", "unknown"]
    assert "subset slow" in found.notes[0]


def test_without_bridges_the_numa_node_decides() -> None:
    found = rails.propose([node(gpus="numa")], WISH)
    assert [(rail.pci, rail.affinity) for rail in found.rails] == [
        ("0000:86:00.0", "numa"),
        ("0000:87:00.0", "numa"),
    ]
    assert "NUMA" in found.notes[0]


def test_a_nic_for_two_gpus_is_one_rail() -> None:
    snapshot = node(count=1)
    twins = tuple([Gpu("0000:%02x:00.0" % bus, "10de:2330", 1, ("0000:86:00.0",)) for bus in (0xA0, 0xA1)])
    (rail,) = rails.propose([replace(snapshot, slow=Slow(gpus=twins))], WISH).rails
    assert rail.gpus == ("0000:a0:00.0", "0000:a1:00.0")


def test_virtual_functions_are_no_rails() -> None:
    snapshot = node(count=1)
    function = PciFunction("0000:86:00.2", "15b3:101e", "0200", "mlx5_core", 1, "0000:86:00.0")
    device = RdmaDevice("mlx5_9", "0000:86:00.2", ports=(RdmaPort(1),))
    more = replace(
        snapshot,
        pci=(*(snapshot.pci or ()), function),
        devices=(*(snapshot.devices or ()), device),
        slow=None,
    )
    assert [rail.pci for rail in rails.propose([more], WISH).rails] == ["0000:86:00.0"]


def test_a_real_shape() -> None:
    """Sixteen NICs of an H100 node, two beside each GPU, and not that of the VCN.

    The names have zeros, so that text order is their order (S163).
    """
    places = fleet.MODELS["BM.GPU.H100.8"].places
    gpus = [
        Gpu("0000:%s:00.0" % place[5:7].replace("0c", "0f"), "10de:2330", 0, (place, other))
        for place, other in zip(places[::2], places[1::2])
    ]
    nodes = [
        replace(fleet.node(number=number, name="n%d" % number), slow=Slow(gpus=tuple(gpus)))
        for number in range(3)
    ]
    found = rails.propose(nodes, WISH)
    assert {rail.pci for rail in found.rails} == set(places)
    names = [rail.resource for rail in found.rails]
    assert (len(names), names[0], names[-1]) == (16, "gpu01sriov", "gpu16sriov")
    assert sorted(names) == names


@pytest.mark.parametrize(
    ("gateway", "told", "ranges"),
    [
        ("last", "172.16.0.254", "172.16.0.1-172.16.0.253"),
        ("first", "172.16.0.1", "172.16.0.2-172.16.0.254"),
        ("none", "", "172.16.0.1-172.16.0.254"),
    ],
)
def test_gateways(gateway: str, told: str, ranges: str) -> None:
    """S80, S83: never one of the addresses for pods."""
    rail = rails.propose([node()], WISH._replace(gateway=gateway)).rails[0]
    assert (rail.gateway, rail.ranges) == (told, (ranges,))


@pytest.mark.parametrize(
    ("wish", "code", "message"),
    [
        (Wish("172.16.11.0/16"), "rails_network", "without host bits"),
        (Wish("fd00::/64"), "rails_network", "IPv4"),
        (Wish("172.16.0.0/24", 24), "rails_network", "2 rails need one each"),
        (Wish("172.16.0.0/24", 31), "rails_network", "24 to 30"),
        (Wish("172.16.0.0/16", 29), "rails_network", "need 8 addresses of each rail, and a /29 has 5"),
        (WISH._replace(vfs=0), "rails_wish", "1 to 128"),
        (WISH._replace(vfs=129), "rails_wish", "1 to 128"),
        (WISH._replace(resource="gpu"), "rails_wish", "{rail}"),
        (WISH._replace(gateway="middle"), "rails_wish", "last, first, none"),
        (WISH._replace(pkeys=("0x10",)), "rails_wish", "rail 1 is Ethernet"),
    ],
)
def test_wishes_that_cannot_be(wish: Wish, code: str, message: str) -> None:
    error = refused([node()], wish)
    assert error.code == code
    assert message in str(error)


def test_nodes_that_are_not_alike_need_tables_of_their_own() -> None:
    error = refused([node("w1"), node("w2"), node("w3", count=1)], WISH)
    assert error.code == "rails_differ"
    assert error.details["groups"] == [["w1", "w2"], ["w3"]]
    assert refused([node("w1"), node("w2", layer="InfiniBand")], WISH).code == "rails_differ"


def test_no_nic_is_no_rail() -> None:
    assert refused([NodeSnapshot(name="w1")], WISH).code == "rails_none"
    assert refused([], WISH).code == "rails_none"


def test_what_one_should_know() -> None:
    small = node("w2")
    links = tuple([replace(link, mtu=1500) if link.name == "ens2" else link for link in small.links or ()])
    functions = tuple(
        [
            replace(function, total_vfs=4, vfs=1) if function.address == "0000:87:00.0" else function
            for function in small.pci or ()
        ]
    )
    found = rails.propose([node("w1"), replace(small, links=links, pci=functions)], WISH)
    assert found.rails[0].mtu == 1500
    assert [note.partition(":")[0] for note in found.notes] == ["Rail 1", "Rail 1"]
    assert "the firmware of w2" in found.notes[0]


# Objects


CASES = [
    ([node()], WISH, SETUP),
    ([node(layer="InfiniBand")], WISH, SETUP),
    ([node(layer="InfiniBand")], WISH._replace(pkeys=("0x10", "0x7fff")), SETUP),
    ([node(layer="InfiniBand")], WISH._replace(pkeys=("0x10",)), SETUP._replace(spiderpool_version="1.1.0")),
    ([node(count=12)], WISH._replace(gateway="none"), SETUP._replace(inject="rails")),
    ([node()], WISH._replace(resource="rail_{rail}", mtu=1500), SETUP._replace(isolated=False)),
    ([node()], WISH, SETUP._replace(spiderpool_version="0.9.1")),
    ([node()], WISH, SETUP._replace(spiderpool_version="1.1.0", resource_prefix="example.org")),
    ([fleet.node()], WISH._replace(length=28), SETUP._replace(operator_namespace="sriov", priority=10)),
]


@pytest.mark.parametrize(("snapshots", "wish", "setup"), CASES)
def test_derived_objects_break_no_rule(snapshots: list[NodeSnapshot], wish: Wish, setup: Setup) -> None:
    """S76, S85, S86, S101: neither an error nor a warning by the rules that answer the vectors, in the right mode."""
    proposed = rails.propose(snapshots, wish).rails
    documents = objects.derive(proposed, setup)
    mode = "exclusive" if setup.isolated else "shared"
    assert objects.problems(documents, setup, mode) == []
    by_kind: dict[str, list[Any]] = {}
    for document in documents:
        by_kind.setdefault(document["kind"], []).append(document)
    assert {kind: len(found) for kind, found in by_kind.items()} == dict.fromkeys(
        ("SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig"), len(proposed)
    )
    nics = [
        node_policy.Nic("x%d" % r.number, r.pci, r.vendor, "101d", 64, 8, 9000, r.link_type) for r in proposed
    ]
    nodes = [node_policy.Node("w1", SETUP.node_selector, nics)]
    policies = by_kind["SriovNetworkNodePolicy"]
    for told in node_policy.judge_all(policies, nodes, policies, operator_namespace=setup.operator_namespace):
        assert told == []
    for pool in by_kind["SpiderIPPool"]:
        verdict = ip_pool.judge(pool, by_kind["SpiderIPPool"], need=len(snapshots) * wish.vfs)
        assert verdict.issues == []


def test_the_rules_do_see_these_objects() -> None:
    """A derived object with a mistake is told, so the test above can fail."""
    documents = objects.derive(rails.propose([node()], WISH).rails, SETUP)
    assert objects.problems(documents, SETUP, "shared") != []
    wrong = copy.deepcopy(documents)
    wrong[0]["spec"]["nicSelector"]["rootDevices"] = wrong[1]["spec"]["nicSelector"]["rootDevices"]
    assert any("root device" in problem for problem in objects.problems(wrong, SETUP))
    wrong = copy.deepcopy(documents)
    wrong[2]["metadata"]["name"] = "other"
    assert any("there is no pool" in problem for problem in objects.problems(wrong, SETUP))
    wrong = copy.deepcopy(documents)
    wrong[3]["spec"]["subnet"] = "172.16.1.1/24"
    assert any("host bits" in problem for problem in objects.problems(wrong, SETUP))
    assert any("no '-'" in problem for problem in objects.problems(
        objects.derive(rails.propose([node()], WISH._replace(resource="gpu-{rail}")).rails, SETUP), SETUP))  # fmt: skip


def test_infiniband_has_no_mtu_and_a_key_that_is_enforced() -> None:
    """S86, S112, S153."""
    wish = WISH._replace(pkeys=("0x10",))
    policy, *_more, network = objects.derive(
        rails.propose([node(count=1, layer="InfiniBand")], wish).rails, SETUP
    )
    assert (policy["spec"]["linkType"], "mtu" in policy["spec"]) == ("ib", False)
    assert network["spec"] == {
        "cniType": "ib-sriov",
        "ibsriov": {
            "resourceName": "spidernet.io/gpu1sriov",
            "ippools": {"ipv4": ["gpu1sriov-net"]},
            "rdmaIsolation": True,
            "pkey": "0x10",
            "enableIbKubernetes": True,
        },
    }


@pytest.mark.parametrize(
    ("version", "isolation", "mtu"),
    [("1.2.1", "rdmaIsolation", True), ("1.1.0", "rdmaIsolation", False), ("0.9.1", "enableRdma", False)],
)
def test_fields_follow_the_version(version: str, isolation: str, mtu: bool) -> None:
    """S91."""
    setup = SETUP._replace(spiderpool_version=version)
    part = objects.derive(rails.propose([node()], WISH).rails, setup)[-1]["spec"]["sriov"]
    assert (part[isolation], "mtu" in part) == (True, mtu)
