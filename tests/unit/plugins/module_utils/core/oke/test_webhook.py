# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the provider answers: for each kind of device, each kind of claim, each broken request."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Optional

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import (
    conflicts,
    nic_table,
    nics,
    profile,
    webhook,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.addressing import read_vnic
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.imds import Fabric, Metadata
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.oca import OcaConfig
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

RANGE = parse_prefix("10.208.0.0/12")
PCI = "0000:0c:00.0"
MAC = "b8:3f:d2:00:00:01"
PARENT = nics.addresses_of(["10.224.13.19/12"])
NODE = profile.Node(
    interfaces={
        "rdma0": nics.Interface("rdma0", 1, PARENT, "1\n", "2\n"),
        "rdma9": nics.Interface("rdma9", 1, (), "1\n", "2\n"),
        "ens800f0np0": nics.Interface("ens800f0np0", 1, (), "1\n", "2\n"),
        "eth0": nics.Interface("eth0", 1, nics.addresses_of(["10.140.77.19/19"]), "0\n", "0\n"),
        "ib0": nics.Interface("ib0", 32),
    },
    netns_mode="Y\n",
    metadata=Metadata(
        shape="BM.GPU.H100.8", fabric=Fabric(False, 1), vnic=read_vnic("10.140.77.19", "10.140.64.0/19")
    ),
)
IPV6 = replace(NODE, metadata=Metadata(fabric=Fabric(True, 1)))
UNKNOWN = replace(NODE, metadata=None)
ROCE = (nics.RdmaDevice("mlx5_0", ("Ethernet",)),)
NATIVE = (nics.RdmaDevice("mlx5_3", ("InfiniBand\n",)),)
CHILD = {"profile": "oke-rdma", "interface": {"type": "IPVLAN"}}
NOTHING = {"interface": {}}
REFUSED = {"profile": "oke-rdma", "interface": {}}
CONFIG = {"profile": "oke-rdma", "interface": {"type": "IPVLAN"}}
ANSWER = {
    "interface": {"type": "IPVLAN", "addresses": ["10.208.13.19/12"], "arpIgnore": 1, "arpAnnounce": 2},
    "routes": [{"destination": "10.208.0.0/12", "source": "10.208.13.19", "scope": 253, "table": 100}],
    "rules": [{"priority": 32000, "source": "10.208.13.19/32", "table": 100}],
}


def device(net: Optional[tuple[str, ...]] = ("rdma0",), infiniband: Any = ROCE, **more: Any) -> nics.Device:
    return nics.Device(**{"pci_address": PCI, "mac": MAC, **more}, net=net, infiniband=infiniband)


OS_NAMED = device(("ens800f0np0",))
WITH_ADDRESS = replace(
    NODE,
    interfaces={
        "ens800f0np0": nics.Interface("ens800f0np0", 1, PARENT, "1\n", "2\n"),
        "eth0": NODE.interfaces["eth0"],
    },
)
BY_ADDRESS = webhook.Provider(by_address=True)

DEVICES: dict[str, tuple[nics.Device, profile.Node, webhook.Provider, Any, bool]] = {
    "an RDMA NIC that resolves (F43)": (device(), NODE, webhook.Provider(), CHILD, True),
    "its address is not there yet (F35)": (device(("rdma9",)), NODE, webhook.Provider(), CHILD, False),
    "metadata not known: profile, so that claims fail (F31)": (
        device(),
        UNKNOWN,
        webhook.Provider(),
        CHILD,
        False,
    ),
    "IPv6 fabric: the NIC moves (F4)": (device(), IPV6, webhook.Provider(), NOTHING, True),
    "OS name, no address (F44)": (OS_NAMED, NODE, BY_ADDRESS, NOTHING, False),
    "OS name with an OCA address (F73)": (OS_NAMED, WITH_ADDRESS, BY_ADDRESS, CHILD, True),
    "OS name with an address, but named NICs at start (F76)": (
        OS_NAMED,
        WITH_ADDRESS,
        webhook.Provider(),
        NOTHING,
        False,
    ),
    "the NIC of the VCN (F75)": (device(("eth0",)), NODE, webhook.Provider(), NOTHING, False),
    "no PCI address": (device((), (), pci_address=""), NODE, webhook.Provider(), NOTHING, False),
    "the interface is in a pod": (device(()), NODE, webhook.Provider(), NOTHING, False),
    "native InfiniBand without an interface (F82)": (
        device((), NATIVE, mac=""),
        NODE,
        webhook.Provider(),
        NOTHING,
        True,
    ),
    "native InfiniBand with IPoIB (F82)": (
        device(("ib0",), NATIVE),
        NODE,
        webhook.Provider(),
        REFUSED,
        False,
    ),
    "native InfiniBand in exclusive mode (F82)": (
        device((), NATIVE, mac=""),
        replace(NODE, netns_mode="N\n"),
        webhook.Provider(),
        REFUSED,
        False,
    ),
    "exclusive mode: the driver refuses the child (F85)": (
        device(),
        replace(NODE, netns_mode="N\n"),
        webhook.Provider(),
        CHILD,
        False,
    ),
    "exclusive mode, IPv6 fabric: the NIC moves (F4)": (
        device(),
        replace(IPV6, netns_mode="N\n"),
        webhook.Provider(),
        NOTHING,
        True,
    ),
    "OCA in another mode (F59)": (
        device(),
        replace(NODE, oca=OcaConfig(address_mode="topology")),
        webhook.Provider(),
        CHILD,
        False,
    ),
    "a route overlaps the range (F47)": (
        device(),
        replace(NODE, host_routes=conflicts.RouteTable([Route("10.211.0.0/16")])),
        webhook.Provider(),
        CHILD,
        False,
    ),
}


@pytest.mark.parametrize("case", DEVICES.values(), ids=DEVICES)
def test_a_device_has_the_configuration_of_its_kind(case: Any) -> None:
    """F43, F82, F4: the profile only where a child or a refusal is wanted."""
    asked, node, provider, expected, _ready = case
    assert webhook.device_config(asked, node, provider).document == expected


@pytest.mark.parametrize("case", DEVICES.values(), ids=DEVICES)
def test_a_device_is_ready_when_a_claim_would_be_served(case: Any) -> None:
    """F44: what is not ready is never allocated."""
    asked, node, provider, _config, ready = case
    assert webhook.attributes(asked, node, provider)["rdma.k8s/ready"] == {"bool": ready}


@pytest.mark.parametrize("case", DEVICES.values(), ids=DEVICES)
def test_ready_says_what_a_claim_gets(case: Any) -> None:
    """A device with type IPVLAN is ready exactly when a claim without settings resolves, and the driver takes it."""
    asked, node, provider, config, ready = case
    if config != CHILD:
        return
    request = webhook.ClaimRequest(webhook.DeviceRequest("x"), "u", CONFIG)
    try:
        webhook.profile_config(request, asked, node, provider)
    except RdmaError:
        assert not ready
    else:
        assert ready == (node.netns_mode != "N\n")


def test_attributes_of_a_node() -> None:
    """F70: the same for every device; the range of the option, not of the metadata."""
    node = replace(NODE, child_range=parse_prefix("10.192.0.0/14"))
    found = webhook.attributes(device(), node, webhook.Provider())
    assert found == {
        "oke.dra.net/shape": {"string": "BM.GPU.H100.8"},
        "oke.dra.net/rdmaFabricIpv6": {"bool": False},
        "oke.dra.net/rdmaFabricPlanes": {"int": 1},
        "oke.dra.net/rdmaChildIpv4Cidr": {"string": "10.192.0.0/14"},
        "rdma.k8s/ready": {"bool": True},
    }


def test_without_metadata_only_readiness_is_told() -> None:
    """F67: no snapshot yet."""
    assert webhook.attributes(device(), UNKNOWN, webhook.Provider()) == {"rdma.k8s/ready": {"bool": False}}


@pytest.mark.parametrize(("text", "published"), [("r" * 64, True), ("r" * 65, False), ("ä" * 33, False)])
def test_a_text_that_the_api_refuses_is_left_out(text: str, published: bool) -> None:
    """F71: it would make the whole slice invalid; the limit counts bytes."""
    node = replace(NODE, metadata=replace(NODE.metadata, rack_id=text))
    found = webhook.attributes(device(), node, webhook.Provider())
    assert ("oke.dra.net/rackId" in found) is published
    assert found["rdma.k8s/ready"] == {"bool": True}


# --- claims


def asked_for(config: Any, of: nics.Device = device(), node: profile.Node = NODE, **more: Any) -> Any:  # noqa: B008
    request = webhook.ClaimRequest(webhook.DeviceRequest("x"), "u", config)
    return webhook.profile_config(request, of, node, webhook.Provider(**more))


def test_the_answer_to_a_claim() -> None:
    """F126: the example of the contract."""
    assert asked_for(CONFIG).document == ANSWER


def test_the_same_claim_gets_the_same_answer() -> None:
    """F124: the calls are idempotent, also after a claim that was refused."""
    first = asked_for(CONFIG)
    assert error_of(asked_for, {**CONFIG, "profile": "x"}).code == "unsupported_profile"
    assert (
        error_of(asked_for, {"profile": "oke-rdma", "interface": {"type": "Passthrough"}}).code
        == "claim_passthrough"
    )
    assert asked_for(CONFIG) == first


@pytest.mark.parametrize("interface", [{}, {"type": ""}, None])
def test_a_driver_that_does_not_know_the_type_gets_no_address(interface: Any) -> None:
    """F148: it would drop the type of the answer as well, and move the NIC with the child's address into the pod."""
    error = error_of(asked_for, {"profile": "oke-rdma", "interface": interface})
    assert error.code == "driver_without_ipvlan"
    assert "rdma0" in error.message
    assert webhook.status_of(error) == 422


def test_an_ipv6_fabric_gives_no_configuration() -> None:
    """F4: no child, whoever asks; the reason is for the log."""
    assert asked_for(REFUSED, node=IPV6) == webhook.Answer(NOTHING, "fabric_ipv6")


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (None, "config_missing"),
        ({"interface": {}}, "unsupported_profile"),
        ([], "config_malformed"),
        ({"profile": "oke-rdma", "interface": {"addresses": ["10.0.0.1/8"]}}, "claim_addresses"),
        ({"profile": "oke-rdma", "interface": {"arpIgnore": "1"}}, "config_malformed"),
    ],
)
def test_a_claim_that_is_refused(config: Any, code: str) -> None:
    """F31, F32: steps 1, 2 and 4."""
    error = error_of(asked_for, config)
    assert error.code == code
    assert webhook.status_of(error) == 422


def test_what_can_heal_is_another_status() -> None:
    """F37: metadata, VNIC and addresses come by themselves."""
    for node, of in ((UNKNOWN, device()), (NODE, device(("rdma9",)))):
        error = error_of(asked_for, CONFIG, of, node)
        assert (error.retryable, webhook.status_of(error)) == (True, 503)


def test_the_sentence_for_the_event_is_one_line() -> None:
    """The driver puts the body behind its own words; the code stands at the end."""
    error = RdmaError("some_code", "First\nsentence.", hint="Do  this.")
    assert webhook.sentence_of(error) == "First sentence. Do this. [some_code]"


# --- requests


def test_a_request_of_the_driver() -> None:
    """F126, and what newer drivers send besides (F124)."""
    body = {"mac_address": MAC, "pci_address": "0000:0C:00.0", "name": "pci-0000-0c-00-0"}
    assert webhook.device_request(body) == webhook.DeviceRequest("pci-0000-0c-00-0", PCI, MAC)
    claim = {"device": body, "claim_uid": "6a1f", "config": CONFIG, "claim": {"metadata": {}}}
    assert webhook.claim_request(webhook.decode(json.dumps(claim).encode())) == webhook.ClaimRequest(
        webhook.DeviceRequest("pci-0000-0c-00-0", PCI, MAC), "6a1f", CONFIG
    )


def test_what_health_says() -> None:
    """F122: both capabilities; one that is not announced is never asked for (F125)."""
    body = json.dumps(dict(webhook.CAPABILITIES)).encode()
    assert webhook.decode(body) == {"cloudProvider": True, "profileProvider": True}


@pytest.mark.parametrize("said", [{"name": "rdma0"}, {"pci_address": PCI}])
def test_a_device_that_is_told_by_one_word(said: dict[str, str]) -> None:
    """A virtual NIC has no PCI address."""
    found = webhook.device_request(said)
    assert found == webhook.DeviceRequest(said.get("name", ""), said.get("pci_address", ""), "")


def test_what_a_device_is_to_the_node() -> None:
    """What the driver said, and what the node knows of it."""
    request = webhook.DeviceRequest("pci-0000-0c-00-0", PCI, MAC)
    assert webhook.device_of(request, ("rdma0",), ROCE) == nics.Device(PCI, MAC, ("rdma0",), ROCE)
    assert webhook.device_of(request) == nics.Device(PCI, MAC, (), ())


def test_an_interface_of_another_kind_is_no_ethernet_nic() -> None:
    """F73: not by its name alone; ARPHRD 32 is InfiniBand."""
    node = replace(NODE, interfaces={"rdma0": nics.Interface("rdma0", 32)})
    assert not webhook.is_ethernet_rdma_nic(device(), node, webhook.Provider())


def test_a_body_that_is_no_text_is_shown_in_part() -> None:
    error = error_of(webhook.decode, b"0123456789abcdefghi\xffX and more")
    assert ("0123456789abcdefghi" in error.message, "X" in error.message) == (True, False)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff{}", b"NaN", b'{"a": Infinity}', b"[" * 100000])
def test_what_is_no_json(body: bytes) -> None:
    assert webhook.status_of(error_of(webhook.decode, body)) == 400


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        {},
        {"name": ""},
        {"name": 3},
        {"name": "x", "pci_address": 5},
        {"name": "x", "mac_address": {}},
        {"name": "x", "pci_address": "../../etc"},
        {"name": "x", "pci_address": "0000:0c:00.0/../.."},
        {"name": "x", "pci_address": "0000:0c:00.8"},
        {"pci_address": "0000:0c:00.0\n"},
    ],
)
def test_a_device_that_is_none(document: Any) -> None:
    """A PCI address becomes a path, so nothing else passes."""
    assert error_of(webhook.device_request, document).code == "request_malformed"
    assert error_of(webhook.claim_request, {"device": document}).code == "request_malformed"


@pytest.mark.parametrize("document", [None, [], 1, {"device": {"name": "x"}, "claim_uid": 7}])
def test_a_claim_that_is_none(document: Any) -> None:
    assert error_of(webhook.claim_request, document).code == "request_malformed"


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5)
)
def test_nothing_in_a_request_raises_anything_else(value: Any) -> None:
    """Whatever the members are, the answer is an error of this project or a configuration."""
    statuses = []
    of = {"name": "x", "pci_address": value}
    for document in (value, {"device": value}, {"device": of, "config": value}):
        try:
            request = webhook.claim_request(document)
            webhook.profile_config(request, device(), NODE, webhook.Provider())
        except RdmaError as error:
            statuses.append(webhook.status_of(error))
    assert set(statuses) <= {400, 422, 503}


# --- the table


def table(text: Any, node_name: str = "") -> tuple[nic_table.Entry, ...]:
    return nic_table.parse(text if isinstance(text, str) else json.dumps(text), RANGE, node_name)


def test_a_table_of_nics() -> None:
    """F14: children with the length of the range. The index comes from the name, the table, or the place."""
    found = table(
        {
            "rdma3": "10.208.0.3/12",
            "0000:0C:00.1": "10.208.0.4/12",
            "eth5": {"child": "10.208.0.5/12", "index": 7},
        }
    )
    assert [(entry.nic, str(entry.child), entry.index) for entry in found] == [
        ("rdma3", "10.208.0.3/12", 3),
        ("0000:0c:00.1", "10.208.0.4/12", 1),
        ("eth5", "10.208.0.5/12", 7),
    ]


def test_a_table_for_many_nodes() -> None:
    text = {"nodes": {"a": {"rdma0": "10.208.0.1/12"}, "b": {"rdma0": "10.208.0.2/12"}}}
    assert [str(entry.child) for entry in table(text, "b")] == ["10.208.0.2/12"]
    assert table(text, "c") == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "nic_table_malformed"),
        ([], "nic_table_malformed"),
        ({"rdma0": 1}, "nic_table_malformed"),
        ({"a name": "10.208.0.1/12"}, "nic_table_malformed"),
        ({"rdma0": {"child": "10.208.0.1/12", "idx": 1}}, "nic_table_malformed"),
        ({"rdma16": "10.208.0.1/12"}, "nic_table_malformed"),
        ({"nodes": []}, "nic_table_malformed"),
        ({"nodes": {"": 5}}, "nic_table_malformed"),
        ({"rdma0": {"child": "10.208.0.1/12", "index": -1}}, "nic_table_malformed"),
        ({"rdma0": "10.208.0.1"}, "nic_table_child"),
        ({"rdma0": "10.208.0.1/13"}, "nic_table_child"),
        ({"rdma0": "10.224.0.1/12"}, "nic_table_child"),
        ({"rdma0": "fd00::1/64"}, "nic_table_child"),
        ({"rdma0": {}}, "nic_table_child"),
        ({"rdma0": "10.208.0.1/12", "rdma1": "10.208.0.1/12"}, "nic_table_duplicate"),
        ({"rdma1": "10.208.0.1/12", "eth1": "10.208.0.2/12"}, "nic_table_duplicate"),
        (
            {"0000:0C:00.1": "10.208.0.1/12", "0000:0c:00.1": {"child": "10.208.0.2/12", "index": 5}},
            "nic_table_duplicate",
        ),
    ],
)
def test_a_table_that_is_refused(text: Any, code: str) -> None:
    """It is refused at the start, not when a claim comes."""
    assert error_of(table, text).code == code


LISTED = {"table": table({"ens800f0np0": {"child": "10.208.4.9/12", "index": 2}})}


def test_a_listed_nic_needs_neither_metadata_nor_oca() -> None:
    """The table stands in for the derivation (F25, F34-F36)."""
    node = replace(UNKNOWN, oca=OcaConfig(address_mode="topology"))
    assert asked_for(CONFIG, OS_NAMED, node, **LISTED).document == {
        "interface": {"type": "IPVLAN", "addresses": ["10.208.4.9/12"], "arpIgnore": 1, "arpAnnounce": 2},
        "routes": [{"destination": "10.208.0.0/12", "source": "10.208.4.9", "scope": 253, "table": 102}],
        "rules": [{"priority": 32000, "source": "10.208.4.9/32", "table": 102}],
    }
    provider = webhook.Provider(**LISTED)
    assert webhook.device_config(OS_NAMED, node, provider).document == CHILD
    assert webhook.is_ready(OS_NAMED, node, provider)


def test_a_listed_nic_by_its_pci_address() -> None:
    found = table({PCI.upper(): {"child": "10.208.4.9/12", "index": 0}})
    assert asked_for(CONFIG, OS_NAMED, UNKNOWN, table=found).document["interface"]["addresses"] == [
        "10.208.4.9/12"
    ]


def test_a_listed_nic_that_owns_its_routing() -> None:
    """F38."""
    config = {**CONFIG, "rules": [{"priority": 1, "source": "10.0.0.0/8", "table": 7}]}
    assert set(asked_for(config, OS_NAMED, UNKNOWN, **LISTED).document) == {"interface"}


@pytest.mark.parametrize(
    ("config", "of", "node", "code"),
    [
        ({"profile": "x"}, OS_NAMED, NODE, "unsupported_profile"),
        ({**CONFIG, "interface": {"dhcp": True}}, OS_NAMED, NODE, "claim_dhcp"),
        (CONFIG, replace(OS_NAMED, net=("ens800f0np0", "eth0")), NODE, "pci_net_count"),
        (CONFIG, OS_NAMED, replace(NODE, interfaces={}), "hardware_type_unreadable"),
        (CONFIG, OS_NAMED, replace(NODE, host_routes=[Route("10.0.0.0/8")]), "host_route_conflict"),
        (CONFIG, OS_NAMED, replace(NODE, service_host="10.208.0.1"), "service_address_conflict"),
        (REFUSED, OS_NAMED, NODE, "driver_without_ipvlan"),
    ],
)
def test_what_is_still_checked_of_a_listed_nic(
    config: Any, of: nics.Device, node: profile.Node, code: str
) -> None:
    """The claim, the device, the conflicts of the range; an error of the last names the interface."""
    error = error_of(asked_for, config, of, node, **LISTED)
    assert error.code == code
    if code.endswith("conflict"):
        assert error.message.startswith("ens800f0np0: ")


# --- routes for many claims


@given(st.lists(st.sampled_from(["default", "10.211.0.0/16", "10.0.0.0/8", "172.16.0.0/12", "fd00::/8"])))
def test_a_table_of_routes_says_what_the_routes_say(destinations: list[str]) -> None:
    """F47: found once, the same first conflict."""
    routes = [Route(text) for text in destinations]
    shared = conflicts.RouteTable(routes)
    assert list(shared) == routes
    for _again in range(2):
        plain, kept = (
            [error.details["network"] for error in conflicts.of_node(RANGE, [], kind, None)]
            for kind in (routes, shared)
        )
        assert plain == kept
