# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Result documents for the tests of reports: a small one with each kind of result, and many that are hostile."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core import finding as model
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import CheckInfo, Detail, Finding, Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import (
    NicRow,
    NodeRow,
    ResultDocument,
)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "]]> <!-- & \" ' ` \\",
    "| a | b |\n# heading\n- [x](javascript:alert(1)) @everyone <b>",
    "\x1b[31mred\x1b[0m\x00\x07\r\n\ttab",
    "half \ud800 pair \udfff, \u202egnp.exe, \u2028 \u2029 \ufeff \uffff",
    'a",node="b"} 1\nrdma_k8s_check_status{id="x\\',
    "https://evil.example/ www.evil.example $HOME `id` ${x} {{ 7 * 7 }}",
    "\x01 NODE \x01",
    "",
)
"""Texts that break a format which forgets to escape."""


def small(**changes: object) -> ResultDocument:
    """Four nodes and the fleet, with each status, a waiver, an unreachable node, and one without any result."""
    checks = (
        CheckInfo(
            "RDMA-NODE-001",
            "Netns mode is right",
            "critical",
            "NODE",
            "Set the mode.",
            "checks/RDMA-NODE-001.md",
        ),
        CheckInfo(
            "RDMA-NODE-017", "MTU is right", "error", "NODE", "Set the MTU.", "checks/RDMA-NODE-017.md"
        ),
        CheckInfo("RDMA-OCA-012", "Address is as derived", "critical", "OCA"),
        CheckInfo("RDMA-RANGE-013", "Children are unique", "critical", "RANGE", "Choose another range."),
    )
    nics = (
        NicRow(0, "rdma0", "mlx5_0", "10.224.1.20", "10.224.1.20", "10.208.1.20"),
        NicRow(1, "rdma1", "mlx5_1", "10.225.1.20", "10.225.9.9", "10.209.1.20"),
    )
    nodes = (
        NodeRow("n1", True, "", "BM.GPU.H100.8", "net", "ipv4", "2026-03-02T09:29:00Z", "ab" * 32, nics),
        NodeRow("n2", True, "", "BM.GPU.H100.8", "net", "ipv4", "2026-03-02T09:29:01Z", "cd" * 32),
        NodeRow("n10", False, "No answer over SSH within 30 s."),
        NodeRow("n11"),
    )
    findings = (
        Finding(
            "RDMA-NODE-001",
            "n1",
            "fail",
            "critical",
            "The mode of n1 is exclusive.",
            "shared",
            "exclusive",
            ("/sys/x",),
        ),
        Finding(
            "RDMA-NODE-017",
            "n1",
            "warn",
            "error",
            "Two NICs of n1 differ.",
            details=(Detail("rdma0", "pass"), Detail("rdma1", "warn", "too small", "4220", "1500")),
            duration_ms=0.25,
        ),
        Finding(
            "RDMA-OCA-012",
            "n1",
            "fail",
            "critical",
            "Wrong address.",
            waiver=Waiver("being moved", "net team", "2026-04-01"),
        ),
        Finding(
            "RDMA-NODE-001", "n2", "fail", "critical", "The mode of n2 is exclusive.", "shared", "exclusive"
        ),
        Finding("RDMA-NODE-017", "n2", "pass", "error", "The MTU is 4220.", duration_ms=1),
        Finding("RDMA-OCA-012", "n2", "skip", "critical", "No OCA on this node."),
        Finding("RDMA-NODE-001", "n10", "unknown", "critical", "No answer over SSH within 30 s."),
        Finding("RDMA-NODE-017", "n10", "unknown", "error", "No answer over SSH within 30 s."),
        Finding("RDMA-RANGE-013", model.FLEET, "unknown", "critical", "One node told no addresses."),
    )
    values: dict[str, object] = {
        "created_at": "2026-03-02T09:30:00Z",
        "collection_version": "0.1.0",
        "target": "oke_dranet",
        "child_range": "10.208.0.0/12",
        "exit_code": 4,
        "checks": checks,
        "nodes": nodes,
        "findings": findings,
        "settings": {"pod_cidrs": "10.244.0.0/16"},
    }
    values.update(changes)
    return ResultDocument(**values)


def documents() -> st.SearchStrategy[ResultDocument]:
    """Documents with any text in every field, node names and ids that repeat, and statuses that nobody defined.

    Hypothesis finds the texts, a seed says where they stand: drawing each field by itself is slow on a busy machine.
    """
    anything = st.text(st.characters(exclude_categories=()), max_size=20)
    palette = st.lists(st.one_of(st.sampled_from(HOSTILE), anything), min_size=1, max_size=4)
    return st.builds(_filled, palette, st.integers(0, 2**32))


def _filled(palette: list[str], seed: int) -> ResultDocument:
    rng = random.Random(seed)

    def text() -> str:
        return rng.choice([*palette, "plain"])

    def texts() -> tuple[str, ...]:
        return tuple([text() for _unused in range(rng.randrange(3))])

    def name() -> str:
        return rng.choice(["n1", "n2", model.FLEET, *palette])

    def check() -> str:
        return rng.choice(["RDMA-NODE-001", "RDMA-OCA-012", "custom", *palette])

    def status() -> str:
        return rng.choice([*model.STATUSES, "strange"])

    def severity() -> str:
        return rng.choice([*model.SEVERITIES, *palette])

    def detail() -> Detail:
        return Detail(text(), status(), text(), text(), text())

    def nic() -> NicRow:
        return NicRow(rng.randrange(-1, 20), text(), text(), text(), text(), text())

    def finding() -> Finding:
        waiver = Waiver(text(), text(), text()) if rng.random() < 0.3 else None
        took = rng.random() * 10 if rng.random() < 0.3 else None
        parts = tuple([detail() for _unused in range(rng.randrange(3))])
        return Finding(
            check(), name(), status(), severity(), text(), text(), text(), texts(), parts, waiver, took
        )

    def row(node: str) -> NodeRow:
        nics = tuple([nic() for _unused in range(rng.randrange(3))])
        return NodeRow(node, rng.random() < 0.7, text(), text(), text(), text(), text(), text(), nics)

    ids = dict.fromkeys([check() for _unused in range(rng.randrange(4))])
    names = dict.fromkeys([name() for _unused in range(rng.randrange(4))])
    return ResultDocument(
        rng.choice(["2026-03-02T09:30:00Z", *palette]),
        text(),
        text(),
        text(),
        rng.randrange(5),
        tuple([CheckInfo(one, text(), severity(), text(), text(), text()) for one in ids]),
        tuple([row(one) for one in names]),
        tuple([finding() for _unused in range(rng.randrange(8))]),
        {text(): text() for _unused in range(rng.randrange(3))},
    )


def drenched(text: str) -> ResultDocument:
    """The small document with ``text`` appended to every text of it but ids, statuses and times."""
    document = small().to_dict()
    kept = {"id", "check", "status", "severity", "kind", "created_at", "collected_at", "area"}

    def soak(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: soak(held, name) for name, held in value.items()}
        if isinstance(value, list):
            return [soak(held, key) for held in value]
        return value + text if isinstance(value, str) and key not in kept else value

    return ResultDocument.from_dict(soak(document))
