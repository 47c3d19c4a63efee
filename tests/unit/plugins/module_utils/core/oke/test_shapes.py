# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import shapes
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

TABLE = shapes.DEFAULT_TABLE


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(
            (name, 16)
            for name in ("BM.GPU4.8", "BM.GPU.A100-v2.8", "BM.GPU.B4.8", "BM.GPU.H100.8", "BM.GPU.B300.8")
        ),
        *((name, 8) for name in ("BM.GPU.H200.8", "BM.GPU.B200.8", "BM.GPU.MI300X.8", "BM.GPU.MI355X-v1.8")),
        *((name, 8) for name in ("BM.GPU.GB200-v3.4", "BM.GPU.GB300.4")),
        *((name, 4) for name in ("BM.GPU.GB200.4", "BM.GPU.GB200-v2.4")),
        *((name, 1) for name in ("BM.HPC2.36", "BM.Optimized3.36")),
    ],
)
def test_the_number_of_rdma_nics(name: str, count: int) -> None:
    """F128."""
    shape = shapes.lookup(name, TABLE)
    assert shape is not None
    assert shape.rdma_nics == count


def test_the_places_of_the_nics() -> None:
    """F129: in the order of the indexes."""
    h100 = shapes.lookup("BM.GPU.H100.8", TABLE)
    assert h100 is not None
    assert (h100.pci[0], h100.pci[1], h100.pci[2], h100.pci[15]) == (
        "0000:0c:00.0",
        "0000:0c:00.1",
        "0000:2a:00.0",
        "0000:d5:00.1",
    )
    gb200 = shapes.lookup("BM.GPU.GB200-v3.4", TABLE)
    assert gb200 is not None
    assert gb200.pci[-1] == "0012:03:00.1"


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("BM.GPU4.8", [0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]),
        ("BM.GPU.B4.8", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17]),
        ("BM.GPU.H100.8", [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17]),
        ("BM.GPU.H200.8", [0, 3, 4, 5, 6, 9, 10, 11]),
        ("BM.GPU.B300.8", [0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21]),
        ("BM.GPU.MI300X.8", [0, 2, 3, 4, 5, 7, 8, 9]),
        ("BM.GPU.GB300.4", [0, 1, 2, 3, 5, 6, 7, 8]),
        ("BM.GPU.GB200.4", [0, 1, 3, 4]),
        ("BM.Optimized3.36", [2]),
    ],
)
def test_the_devices_for_nccl(name: str, numbers: list[int]) -> None:
    """F136: the gaps are the VCN NICs."""
    shape = shapes.lookup(name, TABLE)
    assert shape is not None
    assert shape.nccl_hcas == tuple("mlx5_%d" % number for number in numbers)


def test_fabrics() -> None:
    """F91, F129."""
    fabrics = {shape.name: (shape.fabric, shape.link_layer, shape.mtu) for shape in TABLE}
    assert fabrics["BM.GPU.H100.8"] == ("ipv4", "Ethernet", 4220)
    assert fabrics["BM.GPU.B300.8"] == ("ipv6", "Ethernet", 4220)
    assert fabrics["BM.GPU.GB200.4"] == ("infiniband", "InfiniBand", None)
    assert fabrics["BM.GPU.GB300.4"] == ("", "", None)


def test_every_built_in_entry_passes_the_rules_for_users() -> None:
    """The table is held to the rules that it sets."""
    for shape in TABLE:
        given_fields = {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(shape)
            if field.name != "name" and (value := getattr(shape, field.name)) not in ("", None)
        }
        assert shapes.lookup(shape.name, shapes.extend((), {shape.name: given_fields})) == shape


def test_a_user_changes_and_adds_shapes() -> None:
    """Only the given fields change; the most specific entry wins."""
    table = shapes.extend(
        TABLE,
        {
            "BM.GPU.H100.8": {"rate_gbps": 200},
            "BM.GPU.*": {"rdma_nics": 2},
            "BM.GPU.NEW.*": {"rdma_nics": 8, "fabric": "ipv4", "pci": []},
            "BM.GPU.NEW.4": {"rdma_nics": 4},
        },
    )
    found = {
        name: shapes.lookup(name, table)
        for name in ("BM.GPU.H100.8", "BM.GPU.X", "BM.GPU.NEW.8", "BM.GPU.NEW.4")
    }
    assert [shape and shape.rdma_nics for shape in found.values()] == [16, 2, 8, 4]
    h100 = found["BM.GPU.H100.8"]
    assert h100 is not None
    assert (h100.rate_gbps, len(h100.pci)) == (200, 16)
    assert shapes.lookup("VM.Standard", table) is None
    assert shapes.lookup("BM.GPU.H100.8", TABLE) != h100


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (None, "must be a map from shape name"),
        ([{"name": "X"}], "must be a map from shape name"),
        ({7: {}}, "must have a name"),
        ({"a b": {}}, "must have a name"),
        ({"X": None}, "X: must be a map of fields"),
        ({"X": {}}, "X: rdma_nics is missing"),
        ({"X": {"rdma_nics": 2, "colour": "red"}}, "colour is not a field"),
        ({"X": {"rdma_nics": 2, 3: 4}}, "3 is not a field"),
        ({"X": {"rdma_nics": True}}, "rdma_nics must be a number from 0 to 64, found True"),
        ({"X": {"rdma_nics": 65}}, "rdma_nics must be a number"),
        ({"X": {"rdma_nics": 2.0}}, "rdma_nics must be a number"),
        ({"X": {"rdma_nics": 17, "fabric": "ipv4"}}, "at most 16 on an IPv4 fabric"),
        (
            {"X": {"rdma_nics": 2, "fabric": "roce"}},
            "fabric must be one of ipv4, ipv6, infiniband, found 'roce'",
        ),
        (
            {"X": {"rdma_nics": 2, "fabric": "ipv6", "link_layer": "InfiniBand"}},
            "must be Ethernet on fabric ipv6",
        ),
        ({"X": {"rdma_nics": 2, "fabric": "infiniband", "link_layer": "Ethernet"}}, "must be InfiniBand"),
        ({"X": {"rdma_nics": 2, "pci": ["0000:0c:00.0"]}}, "pci must list rdma_nics=2 entries, found 1"),
        ({"X": {"rdma_nics": 1, "pci": ["0000:0C:00.0"]}}, "pci must be a list of PCI addresses"),
        ({"X": {"rdma_nics": 2, "pci": ["0000:0c:00.0", "0000:0c:00.0"]}}, "each once"),
        ({"X": {"rdma_nics": 1, "pci": "0000:0c:00.0"}}, "pci must be a list"),
        ({"X": {"rdma_nics": 1, "pci": [["0000:0c:00.0"]]}}, "pci must be a list"),
        ({"X": {"rdma_nics": 1, "mtu": 67}}, "mtu must be"),
        ({"X": {"rdma_nics": 1, "rate_gbps": float("nan")}}, "rate_gbps must be"),
        ({"X": {"rdma_nics": 1, "rate_gbps": "400"}}, "rate_gbps must be"),
        ({"BM.GPU.H100.8": {"rdma_nics": 8}}, "pci must list rdma_nics=8 entries, found 16"),
    ],
)
def test_a_wrong_entry_is_refused(entries: Any, words: str) -> None:
    """With the shape, the field, what is expected and what was found."""
    error = error_of(shapes.extend, TABLE, entries)
    assert error.code == "shape_malformed"
    assert words in error.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["rdma_nics", "fabric", "link_layer", "pci", "rate_gbps", "mtu", "nccl_hcas", "netdevs"]
)


@settings(max_examples=50)
@given(JSON | st.dictionaries(st.text(max_size=4), st.dictionaries(FIELDS, JSON)))
def test_any_entries_give_a_table_or_one_error(entries: Any) -> None:
    """Whatever stands in the YAML of a user."""
    found = outcome(shapes.extend, TABLE, entries)
    assert found.code in ("", "shape_malformed")
