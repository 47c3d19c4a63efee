# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area TOOL: the judgement about itself."""

from __future__ import annotations

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import FLEET
from ansible_collections.rdma.k8s.tests.support import fleet
from ansible_collections.rdma.k8s.tests.support.cases import Case


def one_unreachable() -> list[NodeInput]:
    node = fleet.node(number=1)
    return [NodeInput("gpu-07", None, "ssh: connect timed out"), NodeInput(node.name, node)]


def waiver(**changes: str) -> dict[str, object]:
    entry = {
        "check": "RDMA-NODE-017",
        "reason": "replaced in April",
        "owner": "fabric team",
        "expires": "2026-04-30",
    }
    return {"waivers": [{**entry, **changes}]}


CASES = [
    Case(
        "RDMA-TOOL-001",
        "fail",
        "1 of 2 nodes gave no snapshot: gpu-07",
        "an unreachable node",
        inputs=one_unreachable,
        node=FLEET,
    ),
    Case("RDMA-TOOL-001", "pass", "3 nodes", "healthy", node=FLEET),
    Case(
        "RDMA-TOOL-002",
        "warn",
        "The snapshot is 300 s old",
        "an old snapshot",
        settings={"max_age": 60},
    ),
    Case("RDMA-TOOL-002", "skip", "setting 'max_age'", "no limit"),
    Case("RDMA-TOOL-002", "pass", "300 s old", "young enough", settings={"max_age": 300}),
    Case(
        "RDMA-TOOL-002",
        "unknown",
        "does not say when it was made",
        "no time in the snapshot",
        lambda node: fleet.replace(node, collected_at=""),
        settings={"max_age": 300},
    ),
    Case(
        "RDMA-TOOL-003",
        "warn",
        "the waiver expired on 2026-03-01",
        "an expired waiver",
        settings=waiver(expires="2026-03-01"),
        node=FLEET,
    ),
    Case(
        "RDMA-TOOL-003",
        "warn",
        "RDMA-NODE-999: no check has this id",
        "a waiver for a check that does not exist",
        settings=waiver(check="RDMA-NODE-999"),
        node=FLEET,
    ),
    Case("RDMA-TOOL-003", "skip", "No waiver is given", "no waiver", node=FLEET),
    Case("RDMA-TOOL-003", "pass", "1 waivers are valid", "a valid waiver", settings=waiver(), node=FLEET),
]
