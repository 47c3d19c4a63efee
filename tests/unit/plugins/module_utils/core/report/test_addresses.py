# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address map: who has not the address it must have."""

from __future__ import annotations

from ansible_collections.rdma.k8s.plugins.module_utils.core.report.addresses import (
    DIFFERS,
    GOOD,
    MISSING,
    TWICE,
    UNDERIVED,
    UNTOLD,
    places,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import NicRow, NodeRow


def node(name: str, *nics: NicRow, network: str = "net", reachable: bool = True) -> NodeRow:
    return NodeRow(name, reachable, network=network, nics=nics)


def nic(index: int, parent: str, observed: str, child: str = "") -> NicRow:
    return NicRow(index, "rdma%d" % index, "mlx5_%d" % index, parent, observed, child)


def test_each_state() -> None:
    found = places(
        [
            node(
                "a",
                nic(0, "10.224.1.1", "10.224.1.1", "10.208.1.1"),
                nic(1, "10.225.1.1", ""),
                nic(2, "10.226.1.1", "10.226.1.9"),
                nic(3, "", "10.227.1.1"),
            ),
            node("b", nic(0, "10.224.1.2", "10.224.1.2"), reachable=False),
            node("c"),
        ]
    )
    assert [place.state for place in found["a"]] == [GOOD, MISSING, DIFFERS, UNDERIVED]
    assert [place.sentence() for place in found["a"]] == [
        "",
        "It has no address; 10.225.1.1 was expected.",
        "It has 10.226.1.9; 10.226.1.1 was expected.",
        "No address could be derived for it.",
    ]
    assert [place.state for place in found["b"]] == [UNTOLD]
    assert found["c"] == []


def test_an_address_or_child_that_two_nics_of_one_network_use() -> None:
    found = places(
        [
            node("a", nic(0, "10.224.1.1", "10.224.1.1", "10.208.1.1")),
            node(
                "b",
                nic(0, "10.224.1.2", "10.224.1.1", "10.208.1.2"),
                nic(1, "10.225.1.2", "10.225.1.2", "10.208.1.1"),
            ),
            node("other", nic(0, "10.224.1.1", "10.224.1.1", "10.208.1.1"), network="another"),
        ]
    )
    assert [place.state for place in found["a"]] == [TWICE]
    assert found["a"][0].others == ("b rdma0", "b rdma1")
    assert found["a"][0].sentence() == "Its address or the child's is used by b rdma0, b rdma1 too."
    assert [place.state for place in found["b"]] == [TWICE, TWICE]
    assert [place.state for place in found["other"]] == [GOOD]


def test_empty_addresses_are_not_the_same_address() -> None:
    found = places([node("a", nic(0, "10.224.1.1", "")), node("b", nic(0, "10.224.1.2", ""))])
    assert [found["a"][0].state, found["b"][0].state] == [MISSING, MISSING]


def test_an_address_that_one_nic_has_twice_as_parent_and_child_is_its_own() -> None:
    assert places([node("a", nic(0, "10.1.1.1", "10.1.1.1", "10.1.1.1"))])["a"][0].state == GOOD
