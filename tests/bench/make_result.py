# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make a result document of any size for tests and benchmarks: the same arguments give the same document.

Usage: make_result.py NODES [CHECKS [FILE]]     (default: 150 checks; to standard output)
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

try:
    from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import (
        CheckInfo,
        Detail,
        Finding,
        Waiver,
        exit_code,
    )
    from ansible_collections.rdma.k8s.plugins.module_utils.core.report import jsonfile
    from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import (
        NicRow,
        NodeRow,
        ResultDocument,
    )
except ImportError:  # run by hand, outside the tree of the collection
    from rdma_k8s.core.finding import CheckInfo, Detail, Finding, Waiver, exit_code
    from rdma_k8s.core.report import jsonfile
    from rdma_k8s.core.report.document import NicRow, NodeRow, ResultDocument

NICS = 16
CREATED = "2026-03-02T09:30:00Z"
_SUBJECTS = (
    ("netns mode of the RDMA subsystem", "shared", "exclusive"),
    ("MTU of each RDMA NIC", "4220", "1500"),
    ("state of each RDMA port", "ACTIVE", "DOWN"),
    ("rate of each RDMA port", "400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"),
    ("address of each RDMA NIC", "as derived from the OCA network", "another address"),
    ("ARP settings of each RDMA NIC", "ignore 1, announce 2, filter 0", "ignore 0, announce 0, filter 0"),
    ("kernel modules", "ib_core, ib_uverbs, mlx5_core, mlx5_ib, rdma_cm, rdma_ucm", "rdma_ucm missing"),
    ("firmware of the RDMA NICs", "28.39.3560", "28.36.1010"),
    ("children of the node", "inside the range and unique", "used twice"),
    ("routes of the node", "no overlap with the child range", "10.208.0.0/16 overlaps"),
)
_AREAS = (("NODE", 0.42), ("OCA", 0.66), ("IMDS", 0.78), ("RANGE", 1.0))
_SEVERITIES = ("critical", "error", "error", "error", "warning", "info")


def checks(number: int) -> tuple[CheckInfo, ...]:
    """A catalogue of ``number`` checks in four areas."""
    made = []
    for index in range(number):
        area = next(name for name, share in _AREAS if index < share * number or share == 1.0)
        subject = _SUBJECTS[index % len(_SUBJECTS)][0]
        check = "RDMA-%s-%03d" % (area, index + 1)
        made.append(
            CheckInfo(
                check,
                "The %s is right (%d)" % (subject, index + 1),
                _SEVERITIES[index % len(_SEVERITIES)],
                area,
                "Set the %s again with the node_rdma role, then run preflight on this node." % subject,
                "checks/%s.md" % check,
            )
        )
    return tuple(made)


def make(nodes: int, number: int = 150, seed: int = 1) -> ResultDocument:
    """``nodes`` nodes, each judged by ``number`` checks: about 1 in 100 unreachable, 1 in 20 with something wrong."""
    rng = random.Random(seed)
    catalogue = checks(number)
    rows: list[NodeRow] = []
    findings: list[Finding] = []
    for index in range(nodes):
        row = _node(index, rng, len(str(nodes)))
        rows.append(row)
        sick = rng.random() < 0.05 or index == 2
        for place, info in enumerate(catalogue):
            findings.append(_finding(row, info, place, sick, rng))
    return ResultDocument(
        created_at=CREATED,
        collection_version="0.1.0",
        target="oke_dranet",
        child_range="10.208.0.0/12",
        exit_code=exit_code(findings),
        checks=catalogue,
        nodes=tuple(rows),
        findings=tuple(findings),
        settings={"oca_network": "10.224.0.0/12", "pod_networks": "10.244.0.0/16"},
    )


def _node(index: int, rng: random.Random, digits: int) -> NodeRow:
    name = "gpu-%0*d" % (max(3, digits), index + 1)
    if rng.random() < 0.01 and index:
        return NodeRow(name, False, "No answer over SSH within 30 s.")
    host = 20 + index
    nics = []
    for nic in range(NICS):
        parent = "10.%d.%d.%d" % (224 + nic, 16 + host // 250, host % 250)
        child = "10.%d.%d.%d" % (208 + nic, 16 + host // 250, host % 250)
        draw = rng.random()
        observed = parent
        if draw < 0.001:
            observed = ""
        elif draw < 0.002:
            observed = "10.%d.%d.%d" % (224 + nic, 200 + host // 250, host % 250)
        nics.append(NicRow(nic, "rdma%d" % nic, "mlx5_%d" % nic, parent, observed, child))
    return NodeRow(
        name,
        shape="BM.GPU.H100.8" if index % 10 else "BM.GPU.GB200.4",
        network="10.224.0.0/12 over 10.0.%d.0/20" % (16 * (index // 4000)),
        fabric="ipv4",
        collected_at=CREATED,
        snapshot="%064x" % rng.getrandbits(256),
        nics=tuple(nics),
    )


def _finding(row: NodeRow, info: CheckInfo, place: int, sick: bool, rng: random.Random) -> Finding:
    subject, good, bad = _SUBJECTS[place % len(_SUBJECTS)]
    if not row.reachable:
        return Finding(
            info.id, row.name, "unknown", info.severity, "The node was not reachable: %s" % row.reason
        )
    took = round(rng.random() * 0.3, 3)
    evidence = ("/sys/class/infiniband/*/ports/1", "rtnetlink links")
    draw = rng.random()
    if place % 37 == 5:
        return Finding(
            info.id,
            row.name,
            "skip",
            info.severity,
            "The shape %s has no such setting." % row.shape,
            duration_ms=took,
        )
    if sick and draw < 0.05:
        nic = rng.randrange(NICS)
        return Finding(
            info.id,
            row.name,
            ("fail", "fail", "warn", "unknown")[rng.randrange(4)],
            info.severity,
            "The %s is %s on rdma%d of %s; %s was expected." % (subject, bad, nic, row.name, good),
            good,
            bad,
            evidence,
            tuple(
                Detail("rdma%d" % n, "fail" if n == nic else "pass", "", good, bad if n == nic else good)
                for n in range(NICS)
            ),
            Waiver("Replacement is on its way.", "fabric team", "2026-04-30") if draw < 0.005 else None,
            took,
        )
    if place % 10 == 4:  # a message that is another one on each node
        message = "rdma0 of %s has %s, its child will have %s." % (
            row.name,
            row.nics[0].parent,
            row.nics[0].child,
        )
        return Finding(info.id, row.name, "pass", info.severity, message, evidence=evidence, duration_ms=took)
    message = "The %s is %s." % (subject, good)
    return Finding(info.id, row.name, "pass", info.severity, message, good, good, evidence, duration_ms=took)


def main(arguments: list[str]) -> int:
    """Write one document."""
    if not 1 <= len(arguments) <= 3 or not all(argument.isdecimal() for argument in arguments[:2]):
        print(__doc__, file=sys.stderr)
        return 2
    document = make(int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 150)
    text = "".join(jsonfile.chunks(document))
    if len(arguments) > 2:
        Path(arguments[2]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
