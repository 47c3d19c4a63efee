# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver of the scenario oke_dranet: what it asks, what it takes for wrong; and its file of expectations."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import pathlib
import sys
import types
import typing

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_address
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import options, profile, webhook
from ansible_collections.rdma.k8s.tests.lab import faults, plan

SCENARIO = pathlib.Path(__file__).resolve().parents[3] / "extensions" / "molecule" / "oke_dranet"
EXPECTED = yaml.safe_load((SCENARIO / "files" / "expected.yml").read_text(encoding="utf-8"))
REFUSALS = {entry["name"]: entry for entry in EXPECTED["refusals"]}
CHILD_NETWORK = ipaddress.IPv4Network(EXPECTED["ranges"]["right"])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> types.ModuleType:
    """The driver as a module; it finds the package by the name that it has outside Ansible, installed or not."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "rdma_k8s").symlink_to(SCENARIO.parents[2] / "plugins" / "module_utils")
    sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location("prove_claims", SCENARIO / "prove_claims.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def provider_says(config: typing.Any) -> str:
    """The refusal of a configuration by itself, as the provider writes it (F32); empty when it is none."""
    try:
        profile.check_claim(profile.parse_claim(config))
    except RdmaError as error:
        return webhook.sentence_of(error)
    return ""


@pytest.mark.parametrize("name", [name for name, entry in REFUSALS.items() if "[" in entry["event"]])
def test_the_provider_refuses_what_reaches_it_with_these_words(name: str) -> None:
    """DHCP, addresses and other profiles are fields that DRANET v1.4.0 knows (F106), so the provider sees them."""
    assert REFUSALS[name]["event"] in provider_says(REFUSALS[name]["config"])


@pytest.mark.parametrize(
    "name", [name for name, entry in REFUSALS.items() if entry.get("answer", "").startswith("[")]
)
def test_the_provider_would_refuse_what_dranet_does_not_let_through(
    program: types.ModuleType, name: str
) -> None:
    entry = REFUSALS[name]
    assert entry["answer"] in provider_says(program.with_child(entry["config"]))


@pytest.mark.parametrize("name", [name for name, entry in REFUSALS.items() if "/" in entry.get("answer", "")])
def test_the_expected_children_follow_from_the_formula(name: str) -> None:
    """The child has the position of the node in block number N of the child range (F12)."""
    entry = REFUSALS[name]
    vnic = plan.vnic_address(int(entry["node"].removeprefix("node")))
    rail = int(entry["nic"].removeprefix("rdma"))
    assert entry["answer"] == f"{plan.rail_address(CHILD_NETWORK, rail, vnic)}/12"


def test_no_nic_is_claimed_twice_at_once() -> None:
    """Claims stand beside each other; a second one for a NIC would wait for the first instead of being refused."""
    pairs = [(entry["node"], entry["nic"]) for entry in EXPECTED["refusals"]]
    assert len(pairs) == len(set(pairs)) == 8


@pytest.mark.parametrize("name", ["right", "small", "service"])
def test_the_ranges_are_ranges(name: str) -> None:
    """They get past the option, so that what refuses is the resolution (F94)."""
    entry = EXPECTED["ranges"][name]
    text = entry if name == "right" else entry["range"]
    assert str(options.parse([f"oke.rdma-child-ipv4-cidr={text}"], "").child_range) == text


def test_the_malformed_range_is_refused_with_its_text() -> None:
    """F94, F97."""
    entry = EXPECTED["ranges"]["malformed"]
    with pytest.raises(RdmaError) as caught:
        options.parse([f"oke.rdma-child-ipv4-cidr={entry['range']}"], "")
    assert entry["log"] in webhook.sentence_of(caught.value)


def test_the_faults_of_the_scenario_exist() -> None:
    source = (SCENARIO / "prove_claims.py").read_text(encoding="utf-8")
    for fault in ("exclusive", "address-missing", "imds-down"):
        assert f'"play": "{fault}' in source
        assert fault in faults.FAULTS


def test_the_type_of_the_device_is_merged_below_the_claim(program: types.ModuleType) -> None:
    """The claim's value wins (F110)."""
    assert program.with_child({"profile": "oke-rdma"}) == {
        "profile": "oke-rdma",
        "interface": {"type": "IPVLAN"},
    }
    own = {"interface": {"type": "Passthrough", "mtu": 1500}}
    assert program.with_child(own) == own
    assert program.with_child({"interface": {"dhcp": True}})["interface"] == {"type": "IPVLAN", "dhcp": True}


def test_gids_are_looked_for_as_sysfs_prints_them(program: types.ModuleType) -> None:
    """F15."""
    found = program.hex_gid(parse_address("10.208.13.19"))
    assert found == "0000:0000:0000:0000:0000:ffff:0ad0:0d13"


def test_a_claim_without_a_nic_is_for_all(program: types.ModuleType) -> None:
    one = program.claim("a", "rdma0", None, "c")["spec"]["devices"]
    assert one == {
        "requests": [
            {
                "name": "nic",
                "exactly": {
                    "deviceClassName": "c",
                    "selectors": [{"cel": {"expression": 'device.attributes["dra.net"].ifName == "rdma0"'}}],
                },
            }
        ]
    }
    every = program.claim("a", "", {"profile": "p"}, "c")["spec"]["devices"]
    assert every["requests"][0]["exactly"] == {"deviceClassName": "c", "allocationMode": "All"}
    assert every["config"] == [{"opaque": {"driver": "dra.net", "parameters": {"profile": "p"}}}]


def test_waiting_ends_with_the_name_of_what_did_not_come(program: types.ModuleType) -> None:
    with pytest.raises(program.judge_faults.DriverError, match="the moon: not within 0 s"):
        program.until("the moon", lambda: None, patience=0)
    assert program.until("a number", lambda: 7, patience=0) == 7


ANSWER = {
    "interface": {"type": "IPVLAN", "addresses": ["10.208.13.19/12"], "arpIgnore": 1, "arpAnnounce": 2},
    "routes": [{"destination": "10.208.0.0/12", "source": "10.208.13.19", "scope": 253, "table": 100}],
    "rules": [{"priority": 32000, "source": "10.208.13.19/32", "table": 100}],
}
LINK = {"ifname": "rdma0", "linkinfo": {"info_kind": "ipvlan", "info_data": {"mode": "l2"}}}
ADDRESS = {"ifname": "rdma0", "addr_info": [{"local": "10.208.13.19", "prefixlen": 12}]}
RULE = {"priority": 32000, "src": "10.208.13.19", "table": "100"}
ROUTE = {"dst": "10.208.0.0/12", "dev": "rdma0", "scope": "link", "prefsrc": "10.208.13.19"}
GID = "mlx5_0/ports/1/gids/4 0000:0000:0000:0000:0000:ffff:0ad0:0d13 RoCE v2"
ROW = {"nic": "rdma0", "address": "10.208.13.19/12", "gid": 4}


class Node:
    """A node on which a pod looks like this, and the lines of the driver."""

    def __init__(self, link: typing.Any, rule: typing.Any, arp: str, gids: str) -> None:
        self.read = "".join(f"{json.dumps([entry])}\n" for entry in (link, ADDRESS, rule, ROUTE))
        self.arp = arp
        self.gids = gids
        self.wrong: list[str] = []

    def on(self, node: str, script: str) -> str:
        assert node == "node1"
        if "arp_ignore" in script:
            return self.arp
        return self.gids if "infiniband" in script else self.read

    def line(self, what: str, told: str, troubles: list[str]) -> None:
        self.wrong += troubles


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, []),
        ({"link": {**LINK, "linkinfo": {"info_kind": "macvlan"}}}, ["kind is macvlan", "mode is None"]),
        ({"rule": {**RULE, "priority": 100}}, ["pod_rule_priority"]),
        ({"rule": {**RULE, "src": "10.208.13.20"}}, ["pod_rule_missing"]),
        ({"arp": "0\n2\n"}, ["arp is [0, 2]"]),
        ({"gids": ""}, ["gid is []"]),
        ({"gids": GID.replace("RoCE v2", "IB/RoCE v1")}, ["gid is"]),
    ],
    ids=["clean", "another kind", "priority", "no rule", "arp", "no GID", "another type of GID"],
)
def test_what_a_pod_lacks_is_found(
    program: types.ModuleType, changed: dict[str, typing.Any], words: list[str]
) -> None:
    """F14, F38 to F41, F134, F147."""
    node = Node(**{"link": LINK, "rule": RULE, "arp": "1\n2\n", "gids": GID, **changed})
    found = program.pod_troubles(node, "node1", 41, {"rdma0": ANSWER}, [ROW]) + node.wrong
    assert len(found) == len(words)
    for word, sentence in zip(words, found, strict=True):
        assert word in sentence


def test_the_process_of_one_container_is_killed(program: types.ModuleType) -> None:
    script = program.KILL.format(container="ab12")
    assert """awk '$1 == "ab12" {print $2}'""" in script
    assert "pkill" not in script


@pytest.mark.parametrize(
    ("status", "is_started"),
    [
        ({}, False),
        ({"containerStatuses": []}, False),
        ({"containerStatuses": [{"started": False}]}, False),
        ({"containerStatuses": [{"started": True}]}, True),
    ],
)
def test_a_pod_is_started_when_its_probe_says_so(
    program: types.ModuleType, status: dict, is_started: bool
) -> None:
    assert program.started({"status": status}) is is_started


def test_every_case_runs(program: types.ModuleType) -> None:
    assert list(program.CASES) == ["refusals", "exclusive_and_no_address", "children", "restarts", "ranges"]
