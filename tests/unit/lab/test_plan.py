# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab is made of: addresses, shapes, documents."""

from __future__ import annotations

import ipaddress
import json
import re

import pytest

from ansible_collections.rdma.k8s.tests.lab import plan
from ansible_collections.rdma.k8s.tests.lab.errors import LabError


def code_of(function, *arguments, **options) -> str:
    """The code of the error that a call raises."""
    with pytest.raises(LabError) as caught:
        function(*arguments, **options)
    return caught.value.code


@pytest.mark.parametrize(
    ("rail", "parent", "child"),
    [
        (0, "10.224.13.19", "10.208.13.19"),
        (1, "10.224.45.19", "10.208.45.19"),
        (7, "10.224.237.19", "10.208.237.19"),
        (8, "10.225.13.19", "10.209.13.19"),
        (15, "10.225.237.19", "10.209.237.19"),
    ],
)
def test_node1_is_the_reference_node(rail: int, parent: str, child: str) -> None:
    """F15."""
    vnic = plan.vnic_address(1)
    assert str(vnic) == "10.140.77.19"
    assert str(plan.rail_address(plan.OCA_NETWORK, rail, vnic)) == parent
    assert str(plan.rail_address(plan.CHILD_RANGE, rail, vnic)) == child


def test_address_that_does_not_fit() -> None:
    """F19: a /19 range holds exactly one NIC of a /19 subnet."""
    network = ipaddress.IPv4Network("10.192.0.0/19")
    assert str(plan.rail_address(network, 0, plan.vnic_address(1))) == "10.192.13.19"
    assert code_of(plan.rail_address, network, 1, plan.vnic_address(1)) == "address_fit"


def test_all_nodes_fit_and_differ() -> None:
    addresses = {
        plan.rail_address(network, rail, plan.vnic_address(node))
        for network in (plan.OCA_NETWORK, plan.CHILD_RANGE)
        for node in range(1, plan.MAX_NODES + 1)
        for rail in range(plan.MAX_RAILS)
    }
    assert len(addresses) == 2 * plan.MAX_NODES * plan.MAX_RAILS
    assert all(plan.vnic_address(node) in plan.VNIC_SUBNET for node in range(1, plan.MAX_NODES + 1))
    for one, two in (
        (plan.OCA_NETWORK, plan.CHILD_RANGE),
        (plan.OCA_NETWORK, plan.VNIC_SUBNET),
        (plan.CHILD_RANGE, plan.VNIC_SUBNET),
    ):
        assert not one.overlaps(two)


def test_spec_fills_in_what_follows() -> None:
    assert plan.make_spec() == plan.LabSpec(2, 4, "virtio", False, 512, "LAB.RXE.4", "lab")
    assert plan.make_spec(rails=2).shape == "LAB.RXE.2"
    assert plan.make_spec(shape="BM.GPU.H100.8").rails == 16
    assert plan.make_spec(shape="BM.GPU.H100.8", rails=3).rails == 3


@pytest.mark.parametrize(
    ("wishes", "code"),
    [
        ({"nodes": 0}, "nodes_range"),
        ({"nodes": 17}, "nodes_range"),
        ({"rails": 0}, "rails_range"),
        ({"rails": 17}, "rails_range"),
        ({"nic": "mlx5"}, "nic_unknown"),
        ({"driver": "siw"}, "driver_unknown"),
        ({"mem": 128}, "mem_range"),
        ({"mem": 513}, "mem_range"),
        ({"shape": "BM.Nowhere"}, "shape_unknown"),
        ({"shape": "LAB.RXE.17"}, "shape_unknown"),
    ],
)
def test_wishes_that_cannot_be(wishes: dict, code: str) -> None:
    assert code_of(plan.make_spec, **wishes) == code


@pytest.mark.parametrize("name", ["a", "default", "two-labs", "x1"])
def test_names(name: str) -> None:
    assert plan.check_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "../x", "a b", "a" * 25, "a\n"])
def test_bad_names(name: str) -> None:
    assert code_of(plan.check_name, name) == "name_bad"


def test_macs_and_the_rules_that_name_them() -> None:
    rules = plan.udev_rules().splitlines()[1:]
    assert len(rules) == plan.MAX_RAILS
    for node, rail in ((1, 0), (2, 7), (16, 15)):
        matching = []
        for line in rules:
            pattern = re.search(r'ATTR\{address\}=="([^"]+)"', line)
            assert pattern
            if re.fullmatch(pattern[1].replace("*", ".*"), plan.mac(node, rail)):
                matching.append(line)
        assert [line.rsplit("NAME=", 1)[1] for line in matching] == [f'"rdma{rail}"']
        assert not any(
            re.fullmatch(line.split('address}=="')[1].split('"')[0].replace("*", ".*"), plan.mac(node, None))
            for line in rules
        )
    assert all('DRIVERS=="?*"' in line for line in rules)


def test_places_of_a_real_server() -> None:
    """F129: the H100 server has dual-port cards at eight buses."""
    places = plan.pci_places(plan.make_spec(shape="BM.GPU.H100.8", numa=True))
    assert [(place.bus, place.function) for place in places[:4]] == [
        (0x0C, 0),
        (0x0C, 1),
        (0x2A, 0),
        (0x2A, 1),
    ]
    assert {place.bus for place in places} == set(plan.CARD_BUSES)
    assert [place.numa_node for place in places] == [0] * 8 + [1] * 8


def test_places_of_lab_shapes() -> None:
    assert [place.bus for place in plan.pci_places(plan.make_spec(numa=True))] == list(plan.CARD_BUSES[:4])
    assert len(set(plan.pci_places(plan.make_spec(rails=11)))) == 11
    assert plan.pci_places(plan.make_spec(shape="BM.HPC2.36")) == (plan.PciPlace(0x5E, 0, 0),)
    assert plan.pci_places(plan.make_spec(shape="BM.Optimized3.36")) == (plan.PciPlace(0x98, 0, 1),)


def test_metadata_of_a_node() -> None:
    documents = plan.imds_documents(plan.make_spec(), 2)
    (vnic,) = documents["vnics"]
    assert ipaddress.ip_address(vnic["privateIp"]) in ipaddress.ip_network(vnic["subnetCidrBlock"])
    assert documents["instance"]["shape"] == "LAB.RXE.4"
    assert documents["host"]["rdmaFabricData"] == {"ipv6": False, "planes": 1}
    topology = documents["host"]["rdmaTopologyData"]
    assert re.fullmatch(r"ocid1\.hpcisland\.oc1\.lab\.[a-z2-7]{60}", topology["customerHPCIslandId"])
    assert (
        topology["customerHostId"]
        != plan.imds_documents(plan.make_spec(), 1)["host"]["rdmaTopologyData"]["customerHostId"]
    )
    assert "rdmaTopologyData" not in plan.imds_documents(plan.make_spec(shape="BM.HPC2.36"), 1)["host"]
    json.dumps(documents)


def test_oca_files_are_classic() -> None:
    files = {path.rsplit("/", 1)[1]: json.loads(text) for path, text in plan.oca_files().items()}
    assert (
        files["rdma_network.json"]["rdma-network"][0]["default-settings"]["rdma_network"] == "10.224.0.0/12"
    )
    assert set(files["rdma_features_enable.json"].values()) == {False}


def test_document_of_a_node() -> None:
    document = plan.node_document(plan.make_spec(rails=3), 2)
    assert [rail["name"] for rail in document["rails"]] == ["rdma0", "rdma1", "rdma2"]
    assert document["rails"][1] == {
        "index": 1,
        "name": "rdma1",
        "mac": "52:54:00:01:02:01",
        "address": "10.224.45.20",
        "prefix": 12,
        "network": "10.224.0.0/12",
        "mtu": 4220,
        "table": 11,
        "priority": 1001,
        "sysctl": {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"},
        "rdma_device": "mlx5_1",
    }


def test_tables_of_the_profile_are_left_alone() -> None:
    """F7: tables 100 to 115 belong to children."""
    document = plan.node_document(plan.make_spec(rails=16), 1)
    assert not {rail["table"] for rail in document["rails"]} & set(range(100, 116))


def test_digest_depends_on_everything() -> None:
    values = ["a", b"a", {"a": b"a"}, {"a": b"b"}, ("a", "b"), ("ab",), None]
    assert len({plan.digest(value) for value in values}) == len(values)
    assert plan.digest({"a": 1, "b": 2}) == plan.digest({"b": 2, "a": 1})
