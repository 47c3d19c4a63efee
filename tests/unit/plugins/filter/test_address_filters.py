# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters: the values of the reference node, the same answers as the core, and a sentence for what is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.filter import child_address, child_range_for, cidr_conflicts
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Address, Prefix, parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing, child_range
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import RESERVED_RANGES
from ansible_collections.rdma.k8s.tests.support.outcome import outcome

PLUGINS = {
    "child_address": child_address,
    "child_range_for": child_range_for,
    "cidr_conflicts": cidr_conflicts,
}
FILTERS: dict[str, Callable[..., Any]] = {
    name: plugin.FilterModule().filters()[name] for name, plugin in PLUGINS.items()
}
SUBNET = "10.140.64.0/19"


def refused(name: str, *args: Any, **options: Any) -> str:
    with pytest.raises(AnsibleFilterError) as caught:
        FILTERS[name](*args, **options)
    assert caught.value.__cause__ is None
    return str(caught.value)


@pytest.mark.parametrize("name", PLUGINS)
def test_a_file_holds_its_filter_and_describes_all_its_options(name: str) -> None:
    assert list(PLUGINS[name].FilterModule().filters()) == [name]
    described = yaml.safe_load(Path(PLUGINS[name].__file__).with_suffix(".yml").read_text())
    options = described["DOCUMENTATION"]["options"]
    parameters = inspect.signature(FILTERS[name]).parameters
    assert list(options) == ["_input", *list(parameters)[1:]]
    for option, parameter in list(zip(options.values(), parameters.values())):
        assert bool(option.get("required")) == (parameter.default is inspect.Parameter.empty)
        if option.get("default"):
            assert option["default"] == parameter.default


def test_the_child_of_the_reference_node() -> None:
    """F15."""
    assert FILTERS["child_address"]("10.140.77.19", SUBNET, 15) == "10.209.237.19/12"
    assert FILTERS["child_address"]("10.140.77.19", SUBNET, "0") == "10.208.13.19/12"
    found = FILTERS["child_address"](
        "10.140.77.19", SUBNET, 1, child_range="100.64.0.0/10", oca_network="192.168.0.0/16"
    )
    assert found == "100.64.45.19/10"


@given(st.integers(0, 2**13 - 1), st.integers(-1, 17))
def test_the_child_is_that_of_the_core(position: int, index: int) -> None:
    address = Address(4, parse_prefix(SUBNET).value + position)
    expected = outcome(addressing.derive_child, addressing.read_vnic(str(address), SUBNET), index)
    if expected.code:
        assert refused("child_address", str(address), SUBNET, index).startswith(expected.message)
    else:
        assert FILTERS["child_address"](str(address), SUBNET, index) == str(expected.value.child_address)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("10.140.7.19", SUBNET, 0),
            "The primary VNIC address 10.140.7.19 is outside its subnet 10.140.64.0/19.",
        ),
        (("10.140.77.19", SUBNET, 16), "NIC index 16 is too large"),
        (("10.140.77.19", SUBNET, "first"), "index must be a whole number, found 'first'."),
        (("10.140.77.19", SUBNET, 1.5), "index must be a whole number, found 1.5."),
        (("10.140.77.19", SUBNET, True), "index must be a whole number, found True."),
        (("10.140.77.19", SUBNET, None), "index must be a whole number, found None."),
        (("10.140.77.019", SUBNET, 0), "10.140.77.019"),
        ((None, SUBNET, 0), "None"),
        (("10.140.77.19", SUBNET, 0, "10.208.0.1/12"), "10.208.0.1/12"),
    ],
)
def test_what_has_no_child(args: tuple[Any, ...], sentence: str) -> None:
    assert sentence in refused("child_address", *args)


def test_a_free_range() -> None:
    assert FILTERS["child_range_for"](SUBNET) == "10.0.0.0/15"
    assert FILTERS["child_range_for"](SUBNET, nics=1) == "10.0.0.0/19"
    assert FILTERS["child_range_for"](SUBNET, avoid=["10.0.0.0/9", "default"]) == "10.128.0.0/15"
    assert FILTERS["child_range_for"](SUBNET, avoid="10.0.0.0/9") == "10.128.0.0/15"
    assert FILTERS["child_range_for"](SUBNET, supernets=["172.16.0.0/12", "10.0.0.0/8"]) == "172.16.0.0/15"


@given(
    st.integers(16, 28),
    st.integers(1, 16),
    st.lists(st.builds(Prefix, st.just(4), st.integers(0, 2**32 - 1), st.integers(1, 32)), max_size=6),
)
def test_a_proposed_range_holds_all_nics_and_overlaps_nothing(
    length: int, nics: int, avoid: list[Prefix]
) -> None:
    subnet = Prefix(4, parse_prefix("10.140.64.0/19").value, length).masked()
    try:
        text = FILTERS["child_range_for"](str(subnet), nics=nics, avoid=[str(entry) for entry in avoid])
    except AnsibleFilterError as error:
        assert "range" in str(error)  # noqa: PT017
        return
    found = child_range.validate(text)
    assert child_range.capacity(subnet.length, found.length).nics >= nics
    assert not any(found.overlaps(entry) for entry in [subnet, *avoid, *RESERVED_RANGES])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nics": 0}, "A node with 0 RDMA NICs cannot be planned"),
        ({"nics": "many"}, "nics must be a whole number, found 'many'."),
        ({"supernets": ["10.140.64.0/18"]}, "No free /15 range is left in 10.140.64.0/18."),
        ({"supernets": ["10.0.0.0"]}, "'10.0.0.0' is not a prefix"),
        ({"avoid": ["x"]}, "'x' is not a prefix"),
        ({"avoid": 7}, "avoid must be a list, found 7."),
        ({"supernets": {"a": 1}}, "supernets must be a list, found"),
    ],
)
def test_no_free_range(options: dict[str, Any], sentence: str) -> None:
    assert sentence in refused("child_range_for", SUBNET, **options)


def test_an_ipv6_subnet_has_no_range() -> None:
    assert "is not IPv4" in refused("child_range_for", "fd00::/64")


def test_networks_in_the_way() -> None:
    networks = [
        "10.210.0.0/16",
        "10.0.0.0/16",
        "default",
        "10.209.0.1",
        "10.0.0.0/8",
        "fd00::/8",
        "0.0.0.0/0",
    ]
    assert FILTERS["cidr_conflicts"]("10.208.0.0/12", networks) == [
        "10.210.0.0/16",
        "10.209.0.1",
        "10.0.0.0/8",
    ]
    assert FILTERS["cidr_conflicts"]("10.208.0.0/12", []) == []
    assert FILTERS["cidr_conflicts"]("10.208.0.0/12", "10.209.0.1") == ["10.209.0.1"]
    assert FILTERS["cidr_conflicts"]("fd00::/8", ["fd00:1::/64", "10.0.0.0/8"]) == ["fd00:1::/64"]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("10.208.0.0", []), "'10.208.0.0' is not a prefix"),
        (("10.208.0.0/12", ["10.0.0.0/33"]), "'10.0.0.0/33' is not a prefix"),
        (("10.208.0.0/12", ["10.0.0.00/8"]), "'10.0.0.00/8' is not a prefix"),
        (("10.208.0.0/12", [None]), "'None' is not a prefix"),
        (("10.208.0.0/12", None), "networks must be a list, found None."),
    ],
)
def test_what_is_no_network(args: tuple[Any, ...], sentence: str) -> None:
    assert sentence in refused("cidr_conflicts", *args)


def junk() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just(SUBNET)
    )
    return st.one_of(
        leaves, st.lists(leaves, max_size=3), st.dictionaries(st.text(max_size=3), leaves, max_size=2)
    )


@given(st.sampled_from(sorted(FILTERS)), junk(), junk(), junk())
def test_any_input_gives_a_value_or_a_sentence(name: str, one: Any, two: Any, three: Any) -> None:
    args = (one, two, three) if name != "cidr_conflicts" else (one, two)
    try:
        FILTERS[name](*args)
    except AnsibleFilterError as error:
        assert str(error)  # noqa: PT017
