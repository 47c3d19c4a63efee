# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What packet filter rules decide about RoCE v2: rules as the kernel hands them out, and the walk through chains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import FirewallRule
from ansible_collections.rdma.k8s.plugins.module_utils.host import firewall, kernel, nftables
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.module_utils.host.records import (
    ChainRecord,
    FilterRecord,
    PacketRuleRecord,
)

# Expressions as Linux 6.18 hands them out for rules that nft 1.0.6 and iptables-nft 1.8.9 made, and what they mean.
RULES = json.loads((Path(__file__).parents[3] / "data/nftables/rules.json").read_text())


def judged(expressions: str, sets: Any) -> PacketRuleRecord:
    elements = {
        name: tuple((bytes.fromhex(key), flags, bytes.fromhex(data)) for key, flags, data in entries)
        for name, entries in sets.items()
    }
    attributes = {"TABLE": "t", "CHAIN": "c", "EXPRESSIONS": bytes.fromhex(expressions)}
    return nftables._rule("inet", attributes, lambda name: elements[name])


@pytest.mark.parametrize("case", RULES, ids=lambda case: case["rule"])
def test_a_rule_is_judged(case: dict[str, Any]) -> None:
    found = judged(case["expressions"], case["sets"])
    assert (found.match, found.verdict, found.target, found.names_port, found.text) == (
        case["match"], case["verdict"], case["target"], case["names_port"], case["text"]
    )  # fmt: skip


def test_the_cases_hold_each_outcome() -> None:
    assert {case["match"] for case in RULES} == {"always", "perhaps", "never"}
    assert {case["verdict"] for case in RULES} == {"", "accept", "drop", "reject", "jump", "goto", "return"}


@settings(deadline=None)
@given(case=st.sampled_from(RULES), data=st.data())
def test_a_cut_or_changed_message_is_no_crash(case: dict[str, Any], data: st.DataObject) -> None:
    raw = bytearray.fromhex(case["expressions"])
    for at in data.draw(st.lists(st.integers(0, max(0, len(raw) - 1)), max_size=3)):
        if raw:
            raw[at] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    found = nftables._rule("ip", {"TABLE": "t", "CHAIN": "c", "EXPRESSIONS": cut}, lambda _name: ())
    assert found.match in ("always", "perhaps", "never")


# The walk


def rule(
    chain: str, match: str, verdict: str, target: str = "", names_port: bool = False
) -> PacketRuleRecord:
    return PacketRuleRecord(
        "inet", "t", chain, match, verdict, target, names_port, "%s %s" % (match, verdict)
    )


def told(*rules: PacketRuleRecord, policy: str = "accept", hook: str = "input") -> list[tuple[str, str, str]]:
    chains = (ChainRecord("inet", "t", "in", hook, 0, policy), ChainRecord("inet", "t", "sub"))
    found = firewall.decisions(FilterRecord(chains, rules))
    assert found is not None
    return [(entry.chain, entry.verdict, entry.text) for entry in found]


@pytest.mark.parametrize(
    ("rules", "policy", "outcome"),
    [
        ([], "accept", []),
        ([], "drop", [("in", "drop", "policy drop")]),
        ([("in", "always", "drop")], "accept", [("in", "drop", "always drop")]),
        ([("in", "always", "accept"), ("in", "always", "drop")], "drop", []),
        (
            [("in", "perhaps", "accept"), ("in", "always", "reject")],
            "accept",
            [("in", "reject", "always reject")],
        ),
        ([("in", "perhaps", "drop")], "accept", []),
        ([("in", "never", "drop")], "accept", []),
        ([("in", "perhaps", "drop", "", True)], "accept", [("in", "drop", "perhaps drop")]),
        ([("in", "always", "accept", "", True)], "drop", [("in", "accept", "always accept")]),
        ([("in", "perhaps", "accept", "", True)], "accept", [("in", "perhaps", "perhaps accept")]),
        (
            [("in", "always", "jump", "sub"), ("sub", "always", "drop")],
            "accept",
            [("sub", "drop", "always drop")],
        ),
        ([("in", "perhaps", "jump", "sub"), ("sub", "always", "drop")], "accept", []),
        (
            [("in", "always", "jump", "sub"), ("sub", "always", "return"), ("sub", "always", "drop")],
            "accept",
            [],
        ),
        (
            [("in", "always", "jump", "sub"), ("in", "always", "drop")],
            "accept",
            [("in", "drop", "always drop")],
        ),
        ([("in", "always", "goto", "sub"), ("in", "always", "drop")], "accept", []),
        (
            [("in", "perhaps", "goto", "sub"), ("in", "always", "drop")],
            "accept",
            [("in", "drop", "always drop")],
        ),
        ([("in", "always", "goto", "sub")], "drop", [("in", "drop", "policy drop")]),
        ([("in", "always", "jump", "sub"), ("sub", "always", "accept")], "drop", []),
        ([("in", "always", "jump", "none")], "drop", [("in", "drop", "policy drop")]),
        ([("in", "always", "return"), ("in", "always", "accept")], "drop", [("in", "drop", "policy drop")]),
        ([("in", "perhaps", "return"), ("in", "always", "drop")], "accept", [("in", "drop", "always drop")]),
    ],
)
def test_the_walk_through_chains(rules: list[Any], policy: str, outcome: list[Any]) -> None:
    assert told(*[rule(*entry) for entry in rules], policy=policy) == outcome


def test_only_hooks_that_the_host_s_own_traffic_passes_count() -> None:
    for hook, seen in (("input", 1), ("output", 1), ("ingress", 1), ("forward", 0), ("", 0)):
        assert len(told(policy="drop", hook=hook)) == seen


def test_a_loop_of_jumps_ends() -> None:
    loop = [rule("in", "always", "jump", "sub"), *[rule("sub", "always", "jump", "sub")] * 5]
    chains = (ChainRecord("inet", "t", "in", "input", 0, "drop"),)
    assert firewall.decisions(FilterRecord(chains, tuple(loop))) is None


def test_the_base_chains_come_in_the_order_of_their_priority() -> None:
    chains = (
        ChainRecord("ip", "late", "in", "input", 10, "drop"),
        ChainRecord("ip", "early", "in", "input", -10, "drop"),
    )
    assert firewall.decisions(FilterRecord(chains)) == (
        FirewallRule("ip", "early", "in", "input", "drop", "policy drop"),
        FirewallRule("ip", "late", "in", "input", "drop", "policy drop"),
    )


# When nothing may be asked


def test_tables_of_the_legacy_iptables_are_told_and_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/ip_tables_names").write_text("nat\nfilter\n")
    root = Root(str(tmp_path))
    assert nftables.read(root, "6.8") is None
    assert [error.reason for error in root.errors] == [
        "tables of the legacy iptables are not read: nat, filter"
    ]


def test_a_kernel_without_nf_tables_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nftables.deps, "load", None)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text("mlx5_core 1 0 - Live 0x0\n")
    root = Root(str(tmp_path))
    assert nftables.read(root, "6.8") == FilterRecord()
    assert root.errors == []
    (tmp_path / "lib/modules/6.8").mkdir(parents=True)
    (tmp_path / "lib/modules/6.8/modules.builtin").write_text("kernel/net/netfilter/nf_tables.ko\n")
    assert kernel.may_have(root, "nf_tables", "6.8")
    (tmp_path / "lib/modules/6.8/modules.builtin").unlink()
    (tmp_path / "sys/module/nf_tables").mkdir(parents=True)
    assert kernel.may_have(root, "nf_tables", "6.8")
