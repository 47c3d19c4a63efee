# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NICs that a claim asks for, from shapes and from slices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_nics, shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.slices import OddNode, discover
from ansible_collections.rdma.k8s.tests.support.outcome import error_of


def shape(name: str) -> shapes.Shape:
    """An entry of the table."""
    found = shapes.lookup(name, shapes.DEFAULT_TABLE)
    assert found is not None
    return found


def rail(number: int, **more: Any) -> dict[str, Any]:
    """The attributes of an Ethernet RDMA NIC; ``None`` leaves one out (F101)."""
    found = {
        "dra.net/ifName": "rdma%d" % number,
        "dra.net/pciAddress": "0000:%02x:00.0" % (16 + number),
        "dra.net/rdma": True,
        "dra.net/rdmaDevice": "mlx5_%d" % number,
        "dra.net/ipv4": "10.224.%d.19/12" % (13 + 32 * number),
        **{key.replace("__", "/").replace("_", "."): value for key, value in more.items()},
    }
    return {key: value for key, value in found.items() if value is not None}


def slice_of(
    node: str, devices: Iterable[dict[str, Any]], generation: int = 1, **more: Any
) -> dict[str, Any]:
    """A ResourceSlice."""
    kinds = {bool: "bool", int: "int", str: "string"}
    listed = [
        {"name": "d%d" % number, "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()}}
        for number, attributes in enumerate(devices)
    ]  # fmt: skip
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    return {"spec": {"driver": "dra.net", "nodeName": node, "pool": pool, "devices": listed, **more}}


def selected(nics: Iterable[claim_nics.ClaimNic]) -> list[tuple[str, str, str]]:
    """Request, attribute and value."""
    return [(nic.request, nic.attribute, nic.value) for nic in nics]


# --- shapes


@pytest.mark.parametrize(
    ("name", "by", "first", "last", "count"),
    [
        ("BM.GPU.H100.8", "", ("rdma0", "ifName", "rdma0"), ("rdma15", "ifName", "rdma15"), 16),
        ("BM.GPU.H200.8", "", ("rdma0", "ifName", "rdma0"), ("rdma7", "ifName", "rdma7"), 8),
        (
            "BM.GPU.H100.8",
            "pci",
            ("pci-0000-0c-00-0", "pciAddress", "0000:0c:00.0"),
            ("pci-0000-d5-00-1", "pciAddress", "0000:d5:00.1"),
            16,
        ),
        ("BM.GPU.GB200.4", "", ("mlx5-0", "rdmaDevice", "mlx5_0"), ("mlx5-4", "rdmaDevice", "mlx5_4"), 4),
        (
            "BM.Optimized3.36",
            "",
            ("pci-0000-98-00-0", "pciAddress", "0000:98:00.0"),
            ("pci-0000-98-00-0", "pciAddress", "0000:98:00.0"),
            1,
        ),
    ],
)
def test_nics_of_shapes(name: str, by: str, first: Any, last: Any, count: int) -> None:
    """By name; native InfiniBand by its device (F84); by place where the name depends on the image (F129, F131)."""
    found = selected(claim_nics.of_shape(shape(name), by))
    assert (found[0], found[-1], len(found)) == (first, last, count)


@pytest.mark.parametrize(
    ("name", "by", "reason"),
    [
        ("BM.GPU.GB200.4", "name", "native InfiniBand has no interface in DRANET"),
        ("BM.GPU.H200.8", "pci", "the table of shapes does not hold them"),
        ("BM.GPU.MI355X-v1.8", "rdma_device", "the table of shapes does not hold them"),
        ("BM.GPU.H100.8", "rdma_device", "DRANET tells the RDMA device only of NICs without an interface"),
        ("BM.GPU.B300.8", "rdma_device", "DRANET tells the RDMA device only of NICs without an interface"),
    ],
)
def test_shapes_that_do_not_tell(name: str, by: str, reason: str) -> None:
    """An attribute that the table does not hold, or DRANET does not publish, is refused, not guessed."""
    error = error_of(claim_nics.of_shape, shape(name), by)
    assert (error.code, error.details) == ("claim_nics_unknown", {"shape": name, "by": by})
    assert error.message.endswith(": %s." % reason)


def test_no_device_is_guessed() -> None:
    """The order of the devices of F136 is not known to be that of the names."""
    assert {nic.rdma_device for nic in claim_nics.of_shape(shape("BM.GPU.H100.8"))} == {""}


@pytest.mark.parametrize(
    ("wanted", "count", "found"),
    [
        (None, None, list(range(16))),
        (None, 2, [0, 1]),
        (["rdma10", "3"], None, [3, 10]),
        (["rdma0"], None, [0]),
    ],
)
def test_some_of_them(wanted: Optional[list[str]], count: Optional[int], found: list[int]) -> None:
    """By name or index, in the order of the NICs."""
    nics = claim_nics.of_shape(shape("BM.GPU.H100.8"))
    assert [nic.index for nic in claim_nics.choose(nics, wanted, count)] == found


@pytest.mark.parametrize(
    ("wanted", "count", "code"),
    [
        (["rdma16"], None, "claim_nic_unknown"),
        (["rdma1", "1"], None, "claim_nic_twice"),
        ([], None, "claim_nic_count"),
        (None, 0, "claim_nic_count"),
        (None, 17, "claim_nic_count"),
    ],
)
def test_none_such(wanted: Optional[list[str]], count: Optional[int], code: str) -> None:
    """What is not there, twice, or nothing."""
    nics = claim_nics.of_shape(shape("BM.GPU.H100.8"))
    assert error_of(claim_nics.choose, nics, wanted, count).code == code


# --- slices


def test_what_nodes_agree_on() -> None:
    """Most nodes decide; the others are named with what they lack and have more."""
    good = [rail(number) for number in (10, 2, 0)]
    found = discover(
        [
            slice_of("n1", good),
            slice_of("n2", good),
            slice_of("n3", [*good[:2], rail(7)]),
            slice_of("n4", []),
        ]
    )
    assert selected(found.nics) == [(name, "ifName", name) for name in ("rdma0", "rdma2", "rdma10")]
    assert [nic.rdma_device for nic in found.nics] == ["mlx5_0", "mlx5_2", "mlx5_10"]
    assert [nic.index for nic in found.nics] == [0, 2, 10]
    assert found.nodes == ("n1", "n2")
    assert found.odd == (
        OddNode("n3", ("rdma0",), ("rdma7",)),
        OddNode("n4", ("rdma0", "rdma2", "rdma10"), ()),
    )


def test_devices_that_do_not_count() -> None:
    """NICs of the VCN (F75), devices without RDMA, other drivers; the newest generation of a pool alone."""
    vcn = rail(0, dra_net__ifName="eth1", dra_net__ipv4="10.140.64.9/19")
    plain = rail(1, dra_net__rdma=False)
    other = {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1"}, "devices": [{}]}}
    found = discover(
        [slice_of("n1", [rail(5)], 3), slice_of("n1", [vcn, plain, rail(2)], 4), other, {"spec": None}, None]
    )
    assert [nic.value for nic in found.nics] == ["rdma2"]


def test_nics_that_keep_their_name() -> None:
    """A NIC with an address of the agent's network counts, and is selected by its place (F73, F131)."""
    nic = rail(0, dra_net__ifName="ens800f0np0", dra_net__pciAddress="0000:98:00.0")
    found = discover([slice_of("n1", [nic])])
    assert selected(found.nics) == [("pci-0000-98-00-0", "pciAddress", "0000:98:00.0")]
    elsewhere = dict(nic, **{"dra.net/ipv4": "192.168.0.51/24"})
    assert error_of(discover, [slice_of("n1", [elsewhere])]).code == "slices_no_nics"
    network = parse_prefix("192.168.0.0/16")
    assert len(discover([slice_of("n1", [elsewhere])], oca_network=network).nics) == 1


def test_one_kind_of_name_for_all_nodes() -> None:
    """Where one node calls its NIC otherwise, all are selected by their place, and agree."""
    renamed = rail(1, dra_net__ifName="ens9")
    found = discover([slice_of("n1", [rail(1)]), slice_of("n2", [renamed])])
    assert selected(found.nics) == [("pci-0000-11-00-0", "pciAddress", "0000:11:00.0")]
    assert found.nodes == ("n1", "n2")


def test_native_infiniband() -> None:
    """Devices without an interface are selected by their RDMA device (F84)."""
    bare = [rail(number, dra_net__ifName=None, dra_net__ipv4=None) for number in (3, 1)]
    found = discover([slice_of("n1", bare)])
    assert selected(found.nics) == [("mlx5-1", "rdmaDevice", "mlx5_1"), ("mlx5-3", "rdmaDevice", "mlx5_3")]
    assert found.fabric == "infiniband"
    assert [nic.interface for nic in found.nics] == [False, False]


@pytest.mark.parametrize(
    ("more", "fabric"),
    [
        ({}, "ipv4"),
        ({"dra_net__ipv4": None}, ""),
        ({"dra_net__ipv4": None, "oke_dra_net__rdmaFabricIpv6": True}, "ipv6"),
        ({"dra_net__ipv4": None, "oke_dra_net__rdmaFabricIpv6": False}, "ipv4"),
        ({"dra_net__ipv4": None, "oke_dra_net__rdmaChildIpv4Cidr": "10.208.0.0/12"}, "ipv4"),
    ],
)
def test_the_fabric(more: dict[str, Any], fabric: str) -> None:
    """F70: the attributes of the node; else an address of the agent's network."""
    assert discover([slice_of("n1", [rail(0, **more)])]).fabric == fabric


def test_a_device_that_differs() -> None:
    """The RDMA device of a NIC is told only when it is the same on all nodes."""
    other = rail(0, dra_net__rdmaDevice="mlx5_9")
    found = discover([slice_of("n1", [rail(0), rail(1)]), slice_of("n2", [other, rail(1)])])
    assert [nic.rdma_device for nic in found.nics] == ["", "mlx5_1"]


def test_some_nodes() -> None:
    """Only the nodes that are named count, and each must publish something."""
    slices = [slice_of("n1", [rail(0)]), slice_of("n2", [rail(1)])]
    assert [nic.value for nic in discover(slices, ["n2"]).nics] == ["rdma1"]
    assert error_of(discover, slices, ["n1", "n9"]).details == {"nodes": ["n9"]}
    assert error_of(discover, slices, []).code == "slices_no_nics"


def test_no_majority() -> None:
    """Two sets on as many nodes each: no guess."""
    error = error_of(discover, [slice_of("n1", [rail(0)]), slice_of("n2", [rail(1)])])
    assert (error.code, error.details["nodes"]) == ("slices_disagree", [["n1"], ["n2"]])


def test_a_name_without_a_domain() -> None:
    """Attributes without a domain are those of the driver."""
    bare = {key.replace("dra.net/", ""): value for key, value in rail(4).items()}
    assert [nic.value for nic in discover([slice_of("n1", [bare])]).nics] == ["rdma4"]
