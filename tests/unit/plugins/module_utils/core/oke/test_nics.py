# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs: which they are, what they hold, what guards them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import Address, parse_address
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import layout, nics
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import read_vnic
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Arp, Link
from ansible_collections.rdma.k8s.tests.support.outcome import error_of, outcome

VNIC = read_vnic("10.140.77.19", "10.140.64.0/19")


def interface(name: str, *addresses: str, arphrd: Any = 1) -> nics.Interface:
    """An interface with addresses."""
    return nics.Interface(name, arphrd, nics.addresses_of(addresses))


def test_interfaces_of_a_snapshot() -> None:
    """F73, F78: addresses are values, ARP settings stay text."""
    links = [
        Link("rdma0", addresses=("10.224.13.19/12", "fe80::1/64"), arp=Arp("1", None)),
        Link("ib0", arphrd=32),
        Link("gone", arphrd=None),
    ]
    found = nics.interfaces_of(links)
    assert found["rdma0"].addresses == (parse_address("10.224.13.19"), parse_address("fe80::1"))
    assert (found["rdma0"].arp_ignore, found["rdma0"].arp_announce) == ("1", None)
    assert [found[name].is_ethernet for name in ("rdma0", "ib0", "gone")] == [True, False, False]


def test_what_is_no_address_stands_for_none() -> None:
    """F29: it can match nothing, so the NIC is without its address."""
    assert nics.addresses_of(["10.0.0.1", "10.0.0.2/8", "default", "x", "10.0.0.01", None]) == (
        parse_address("10.0.0.1"),
        parse_address("10.0.0.2"),
    )


def test_link_local_and_ipv6_addresses_do_not_count() -> None:
    """F75: also when the OCA network is the link-local one."""
    assert nics.identify({"a": interface("a", "169.254.3.1/16", "fe80::1/64")}).rdma_nics == ()
    held = interface("a", "169.254.3.1/16", "192.0.2.1/24", "10.224.0.1/12")
    assert [str(address) for address in held.ipv4_addresses] == ["192.0.2.1", "10.224.0.1"]


def test_the_guard_names_the_device_and_the_setting() -> None:
    """F82."""
    device = nics.Device("0000:0c:00.0", "aa", (), (nics.RdmaDevice("mlx5_0", ("InfiniBand\n",)),))
    assert "mlx5_0" in error_of(nics.guard_native_infiniband, device, "Y").message
    assert "--move-ib-interfaces=false" in error_of(nics.guard_native_infiniband, device, "Y").hint
    device = nics.Device("0000:0c:00.0", infiniband=device.infiniband)
    assert "netns_mode=1" in error_of(nics.guard_native_infiniband, device, "N").hint
    assert nics.native_infiniband(nics.Device("0000:0c:00.0", infiniband=(nics.RdmaDevice("a"),))) is None


def test_arp_errors_name_the_interface_the_value_and_the_expectation() -> None:
    """F78."""
    assert error_of(nics.arp_policy, None, None, "4\n", None, "rdma3").message == (
        "The host's arp_ignore of rdma3 is 4, expected one of 0, 1, 2, 3, 8."
    )
    assert "'x\\n'" in error_of(nics.arp_policy, None, None, "1", "x\n").message
    error = error_of(nics.arp_policy, 1, None, None, None, "rdma3")
    assert error.message == "Neither the claim nor the host of rdma3 gives interface.arpAnnounce."


def test_the_name_of_a_device() -> None:
    """F100: the PCI address wins; a device without both has no name."""
    assert nics.device_name("0000:0c:00.0", "eth0") == "pci-0000-0c-00-0"
    assert error_of(nics.device_name).code == "device_without_name"
    assert nics.device_name(if_name="eth0\n") == "net-mv2gqmak"
    assert nics.device_name(if_name="\ud800").startswith("net-")


def test_the_index_of_a_nic() -> None:
    """F34: the name needs no address; else the first address in the OCA network decides."""
    assert layout.nic_index_of(interface("rdma7"), None) == 7
    assert layout.nic_index_of(interface("ens1", "192.0.2.1", "10.224.173.19", "10.224.205.19"), VNIC) == 5
    error = error_of(layout.nic_index_of, interface("ens1", "192.0.2.1"), VNIC)
    assert (error.code, error.retryable) == ("no_oca_address_yet", True)


def test_the_parent_address() -> None:
    """F35, F37: nothing there yet can heal, another address cannot."""
    expected = parse_address("10.224.13.19")
    layout.check_parent_address(interface("rdma0", "192.0.2.1", "10.224.13.19/12"), expected)
    assert error_of(layout.check_parent_address, interface("rdma0"), expected).retryable
    error = error_of(layout.check_parent_address, interface("rdma0", "10.224.13.20"), expected)
    assert (error.message, error.retryable) == ("rdma0 holds 10.224.13.20, expected 10.224.13.19.", False)


def test_the_layout_skips_a_nic_without_an_oca_address() -> None:
    """F36: and goes on with the next."""
    found = {entry.name: entry for entry in (interface("rdma0"), interface("rdma1", "10.224.45.19/12"))}
    assert layout.check_layout(found, VNIC) == 1


def test_the_layout_needs_an_address_and_a_vnic() -> None:
    """F36."""
    assert error_of(layout.check_layout, {}, VNIC).retryable
    assert (
        error_of(layout.check_layout, {"rdma0": interface("rdma0", "10.224.13.19")}, None).code
        == "vnic_missing"
    )


@given(st.text() | st.from_regex(r"rdma[0-9]{0,12}x?"))
def test_any_text_as_a_name(name: str) -> None:
    """F74, F100: an index below 2^31 or none; always a device name that a DNS label can hold."""
    index = nics.nic_index_of_name(name)
    assert index is None or (name.startswith("rdma") and 0 <= index < 2**31)
    if name:
        device = nics.device_name(if_name=name)
        assert device == name or set(device) <= set("net-abcdefghijklmnopqrstuvwxyz234567")


def test_a_name_with_many_digits() -> None:
    """F74: leading zeros pass, whatever their number."""
    assert nics.nic_index_of_name("rdma" + "0" * 5000 + "3") == 3
    assert nics.nic_index_of_name("rdma" + "1" * 5000) is None


@given(st.none() | st.text(), st.none() | st.text(), st.none() | st.text())
def test_any_text_of_the_host(mode: Any, ignore: Any, announce: Any) -> None:
    """F78, F83."""
    assert nics.netns_mode(mode) in (nics.SHARED, nics.EXCLUSIVE)
    found = outcome(nics.arp_policy, None, None, ignore, announce)
    if found.code:
        assert found.code in ("arp_parse_error", "arp_unsupported_value", "arp_missing")
    else:
        assert found.value.arp_ignore in nics.ARP_IGNORE_VALUES


@given(
    st.dictionaries(
        st.sampled_from(["rdma0", "rdma10", "rdma2", "eth0", "ens1"]),
        st.builds(
            nics.Interface,
            st.just(""),
            st.sampled_from([None, 1, 32]),
            st.lists(st.builds(Address, st.just(4), st.integers(0x0AE00000, 0x0AE0FFFF)), max_size=2).map(
                tuple
            ),
        ),
    )
)
def test_identification_is_by_name_or_by_address_never_both(interfaces: Any) -> None:
    """F73, F76, F139: text order; the fallback only without names."""
    found = nics.identify(interfaces)
    named = [nics.nic_index_of_name(name) is not None for name in found.rdma_nics]
    assert all(named) if not found.address_fallback else not any(named)
    assert list(found.rdma_nics) == sorted(found.rdma_nics)
    assert all(interfaces[name].arphrd == 1 for name in found.rdma_nics)
