# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strict addresses and prefixes."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core import net
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

IPV4_ADDRESSES = ["0.0.0.0", "10.224.13.19", "255.255.255.255"]
IPV6_ADDRESSES = ["::", "::1", "1::", "fd00::19", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8", "::ffff:10.208.0.1"]
NO_ADDRESSES = [
    *(
        "",
        " ",
        "10",
        "10.0.0",
        "10.0.0.0.0",
        "10.0.0.256",
        "10.0.0.-1",
        "10.0.0.01",
        " 10.0.0.1",
        "10.0.0.1 ",
        "10.0.0.1\n",
    ),
    *(
        "10.0.0.1/8",
        "10.0.0.1%eth0",
        "10..0.1",
        ".10.0.0.1",
        "0x0a.0.0.1",
        "1_0.0.0.1",
        "+1.0.0.1",
        "\uff11.0.0.1",
        "10.0.0.\u0661",
    ),
    *(
        ":",
        ":::",
        "1:::2",
        "1::2::3",
        ":1",
        "1:",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        "12345::",
        "g::",
    ),
    *(
        "::1%",
        "%eth0",
        "::1.2.3",
        "::01.2.3.4",
        "1.2.3.4::",
        "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6::1.2.3.4",
        "::\uff11",
    ),
    *("::1/64", "[::1]", "1.2.3.4%::", "\x00", "\ud800", "1" * 5000),
]


@pytest.mark.parametrize("text", IPV4_ADDRESSES + IPV6_ADDRESSES)
def test_an_address_is_read_and_written(text: str) -> None:
    """F29; the text form is the one of RFC 5952."""
    assert str(net.parse_address(text)) == text
    assert net.parse_address(text).version == (6 if ":" in text else 4)


@pytest.mark.parametrize("text", NO_ADDRESSES, ids=net.quoted)
def test_what_is_no_address_is_refused(text: str) -> None:
    """F29: no spaces, leading zeros, lengths, zones on IPv4, digits of other scripts."""
    assert net.find_address(text) is None
    with pytest.raises(RdmaError, match="is not an IP address") as caught:
        net.parse_address(text)
    assert caught.value.code == "address_malformed"


def test_forms_that_mean_the_same_address() -> None:
    """F29: groups may have leading zeros and upper case letters, the last two groups may be an IPv4 address."""
    assert str(net.parse_address("FD00:0:0:0:0:0:0:0019")) == "fd00::19"
    assert str(net.parse_address("1:2:3:4:5:6:1.2.3.4")) == "1:2:3:4:5:6:102:304"
    assert str(net.parse_address("1:2:3:4:5:6:7::")) == "1:2:3:4:5:6:7:0"
    assert str(net.parse_address("::ffff:a0d:1")) == "::ffff:10.13.0.1"


def test_a_zone_belongs_to_ipv6() -> None:
    """F69: a zone is possible on an IPv6 address; it may hold anything."""
    address = net.parse_address("fe80::1%eth0")
    assert (address.zone, str(address)) == ("eth0", "fe80::1%eth0")
    assert net.parse_address("fe80::1%a%b/c").zone == "a%b/c"


@pytest.mark.parametrize("value", [None, True, 7, 1.5, b"10.0.0.1", ["10.0.0.1"], {}])
def test_what_is_no_text_is_refused(value: object) -> None:
    """F29."""
    assert net.find_address(value) is None
    assert net.find_prefix(value) is None
    assert net.find_destination(value) is None
    for parse in (net.parse_address, net.parse_prefix):
        with pytest.raises(RdmaError):
            parse(value)


@pytest.mark.parametrize(
    "text",
    ["10.208.0.0/12", "0.0.0.0/0", "10.0.0.1/32", "fd00::/16", "::/0", "::1/128", "::ffff:10.208.0.0/108"],
)
def test_a_prefix_is_read_and_written(text: str) -> None:
    """F29: an IPv4-mapped prefix is IPv6."""
    prefix = net.parse_prefix(text)
    assert str(prefix) == text
    assert prefix.version == (6 if ":" in text else 4)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "/",
            "/12",
            "10.208.0.0",
            "10.208.0.0/",
            "10.208.0.0/33",
            "10.208.0.0/012",
            "10.208.0.0/-1",
            "10.208.0.0/+12",
        ),
        *(
            "10.208.0.0/1_2",
            "10.208.0.0/ 12",
            "10.208.0.0/12 ",
            "10.208.0.0/12\n",
            "10.208.0.0/\u0661\u0662",
            "10.208.0.0/00",
        ),
        *(
            "10.208.0.0/255.240.0.0",
            "10.208.0.0/0.15.255.255",
            "10.208/12",
            "10.208.0.0//12",
            "10.208.0.0/12/12",
        ),
        *(
            "fd00::/129",
            "fd00::/064",
            "fd00::/",
            "fd00::%eth0/64",
            "fd00::/6 4",
            "fd00::/1234",
            "10.208.0.0/" + "1" * 5000,
        ),
    ],
    ids=net.quoted,
)
def test_what_is_no_prefix_is_refused(text: str) -> None:
    """F29, F137."""
    assert net.find_prefix(text) is None
    with pytest.raises(RdmaError, match="<address>/<length>") as caught:
        net.parse_prefix(text)
    assert caught.value.code == "prefix_malformed"


def test_the_host_bits_of_a_prefix_are_kept() -> None:
    """F27: the mask is a rule of its own, and its message gives the masked form."""
    prefix = net.parse_prefix("10.209.3.1/12")
    assert not prefix.is_masked
    assert (str(prefix), str(prefix.masked())) == ("10.209.3.1/12", "10.208.0.0/12")
    assert prefix.masked().is_masked
    assert (prefix.size, prefix.last) == (1 << 20, net.parse_address("10.223.255.255").value)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("10.208.0.0/12", "10.208.0.0/12", True),
        ("10.208.0.0/12", "10.223.255.255/32", True),
        ("10.208.0.0/12", "10.224.0.0/12", False),
        ("10.208.0.0/12", "10.207.0.0/16", False),
        ("10.208.0.0/12", "0.0.0.0/0", True),
        ("10.208.0.1/12", "10.209.0.0/16", True),
        ("fd00::/8", "fd12::/16", True),
        ("fd00::/8", "fe00::/8", False),
        ("::/0", "0.0.0.0/0", False),
    ],
)
def test_overlap(one: str, other: str, expected: bool) -> None:
    """F26: equal, wider and narrower overlap, adjacent ones do not; two families never do."""
    first, second = net.parse_prefix(one), net.parse_prefix(other)
    assert first.overlaps(second) is expected
    assert second.overlaps(first) is expected


def test_an_address_inside_a_prefix() -> None:
    """F48: first and last address are inside."""
    prefix = net.parse_prefix("10.208.0.0/12")
    inside = [prefix.contains(net.parse_address(text)) for text in ("10.208.0.0", "10.223.255.255")]
    outside = [
        prefix.contains(net.parse_address(text))
        for text in ("10.224.0.0", "10.207.255.255", "::ffff:10.208.0.1")
    ]
    assert inside == [True, True]
    assert outside == [False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("169.254.0.0", True), ("169.255.0.0", False), ("fe80::1", True), ("febf::1", True), ("fec0::1", False)],
)
def test_link_local(text: str, expected: bool) -> None:
    """F35, F47."""
    assert net.parse_address(text).is_link_local is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("default", "0.0.0.0/0"),
        ("10.208.0.0/12", "10.208.0.0/12"),
        ("10.208.0.9", "10.208.0.9/32"),
        ("fd00::1", "fd00::1/128"),
    ],
)
def test_the_destination_of_a_route(text: str, expected: str) -> None:
    """F40, F141: host routes print without a length, the default route as a word."""
    assert str(net.find_destination(text)) == expected
    assert net.find_destination(text + "x") is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "'a'"),
        ("\ud800\x00", "'\\ud800\\x00'"),
        ("x" * 100, "'" + "x" * 57 + "'..."),
        (True, "True"),
        (None, "None"),
        pytest.param(10**5000, "a very large number", id="large"),
        ({"a": 1}, "an object"),
        ([[[]]], "a list"),
        (object(), "no JSON value"),
    ],
)
def test_a_value_in_a_message_is_short_and_safe(value: object, expected: str) -> None:
    """A message is one line, whatever was found."""
    assert net.quoted(value) == expected


def test_a_scan_tells_what_overlaps_and_what_is_malformed() -> None:
    """F29, B2: positions, in order; the other family is read and does not overlap."""
    texts = [
        "10.208.0.0/12",
        "10.224.0.0/12",
        "0.0.0.0/0",
        "10.208.0.0",
        "fd00::/8",
        "10.215.7.0/24",
        "x",
        "10.0.0.0/08",
    ]
    assert net.scan(net.parse_prefix("10.208.0.0/12"), texts) == ([0, 2, 5], [3, 6, 7])
    assert net.scan(net.parse_prefix("fd12::/16"), texts) == ([4], [3, 6, 7])
    assert net.scan(net.parse_prefix("::/0"), ["0.0.0.0/0", None]) == ([], [1])  # type: ignore[list-item]


def test_the_outermost_prefixes() -> None:
    """What another one contains adds nothing."""
    texts = ["10.1.0.0/16", "10.0.0.0/8", "fd00::/8", "10.0.0.0/8", "11.0.0.1/24", "0.0.0.0/8"]
    found = net.PrefixIndex([net.parse_prefix(text) for text in texts]).outermost()
    assert [str(entry) for entry in found] == ["0.0.0.0/8", "10.0.0.0/8", "11.0.0.0/24", "fd00::/8"]


def test_the_index_sees_behind_nested_prefixes() -> None:
    """B2: a prefix inside another one hides nothing of it."""
    texts = ["9.0.0.0/8", "11.0.0.0/8", "11.1.0.0/16", "11.1.2.0/24", "12.0.0.0/8"]
    index = net.PrefixIndex([net.parse_prefix(text) for text in texts])
    assert index.overlapping(net.parse_prefix("11.5.0.0/16")) == [1]
    assert index.overlaps(net.parse_prefix("11.5.0.0/16"))
    assert not index.overlaps(net.parse_prefix("10.0.0.0/8"))
    assert not index.overlaps(net.parse_prefix("13.0.0.0/8"))


PREFIXES = st.builds(
    net.Prefix,
    st.just(4),
    st.integers(0, 2**32 - 1) | st.integers(0, 255).map(lambda n: n << 24),
    st.integers(0, 32),
) | st.builds(net.Prefix, st.just(6), st.integers(0, 2**128 - 1) | st.just(0), st.integers(0, 128))


@given(st.lists(PREFIXES, max_size=30), PREFIXES)
def test_the_index_answers_like_a_comparison_of_all(prefixes: list[net.Prefix], wanted: net.Prefix) -> None:
    """B2."""
    expected = [position for position, prefix in enumerate(prefixes) if prefix.overlaps(wanted)]
    index = net.PrefixIndex(prefixes)
    assert index.overlapping(wanted) == expected
    assert index.overlaps(wanted) is bool(expected)


@given(PREFIXES, PREFIXES)
def test_overlap_equals_the_standard_library(one: net.Prefix, other: net.Prefix) -> None:
    """F26."""
    first, second = [ipaddress.ip_network(str(prefix), strict=False) for prefix in (one, other)]
    expected = first.version == second.version and first.overlaps(second)  # type: ignore[arg-type]
    assert one.overlaps(other) is expected


@given(PREFIXES)
def test_every_prefix_is_read_back(prefix: net.Prefix) -> None:
    """F29."""
    assert net.parse_prefix(str(prefix)) == prefix
    assert net.parse_address(str(prefix).rpartition("/")[0]).value == prefix.value


ALPHABET = st.text("0123456789.:/%abcfx +-_\u0661\uff11\x00\n", max_size=24)
NEAR_ADDRESSES = st.builds(
    lambda text, place, more: text[:place] + more + text[place:],
    st.sampled_from([*IPV4_ADDRESSES, *IPV6_ADDRESSES, "10.208.0.0/12", "fd00::/64"]),
    st.integers(0, 20),
    ALPHABET.map(lambda text: text[:2]),
)


@given(st.text() | ALPHABET | NEAR_ADDRESSES)
def test_what_is_read_is_what_the_standard_library_reads(text: str) -> None:
    """F29, F137: whatever passes here passes there with the same value; the other way it is the standard library that
    takes too much."""
    address = net.find_address(text)
    if address is not None:
        assert int(ipaddress.ip_address(text.partition("%")[0])) == address.value
    prefix = net.find_prefix(text)
    if prefix is not None:
        network = ipaddress.ip_network(text, strict=False)
        assert (int(network.network_address), network.prefixlen) == (prefix.network, prefix.length)
    assert (net.scan(net.parse_prefix("10.0.0.0/8"), [text]).malformed == [0]) is (prefix is None)


@given(ALPHABET | NEAR_ADDRESSES)
def test_what_the_standard_library_refuses_is_refused(text: str) -> None:
    """F29: no text is taken that no parser takes."""
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        assert net.find_address(text) is None
