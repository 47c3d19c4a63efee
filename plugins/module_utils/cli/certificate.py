# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s certificate``: issue and verify. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .. import judging, records
from ..core import json_text
from ..core.checks.judge import NodeInput
from ..core.errors import RdmaError
from ..core.finding import EXIT_FAIL, EXIT_GOOD, EXIT_UNKNOWN, Finding, summarise
from ..core.report import certificate as core
from ..core.report.certificate import Certificate
from ..core.report.document import ResultDocument
from ..core.report.wording import count
from ..report_files import write_files
from ..version import VERSION
from . import sources
from .near import did_you_mean
from .terminal import Terminal

SUFFIX = ".certificate.json"
MOST_DAYS = 3660
JUDGEMENTS_KEPT = 4
"""Certificates of one fleet rest on a few runs; the results of each can be hundreds of megabytes."""
ISSUES = ("output", "node", "days", "exit_code")
"""Options that only issuing has."""


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0 or what the two actions say."""
    return _issue(arguments, terminal) if arguments.action == "issue" else _verify(arguments, terminal)


def _issue(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0; with ``--exit-code`` 4 when a node is not conformant, else 3 when one could not be told."""
    if arguments.output is None:
        raise RdmaError("usage", "Say where the certificates go.", hint="Add --output DIR.")
    if arguments.snapshots is not None:
        raise RdmaError("usage", "--snapshots belongs to verify.", hint="Give the snapshots as FILE.")
    days = _days(arguments.days)
    documents, inputs = _judged(arguments, terminal)
    issued_at = judging.now()
    valid_until = core.after(issued_at, days) if days else ""
    known = {row.name for document in documents for row in document.nodes}
    for name in arguments.node:
        if name not in known:
            raise RdmaError(
                "node_unknown", "No source has a node %r%s" % (name, did_you_mean(name, known)), node=name
            )
    names = sorted(set(arguments.node) or known)
    terminal.doing("issuing the certificates of %s" % count(len(names), "node"))
    versions = {name: _versions(node) for name, node in inputs.items()}
    issued = core.issue(documents, names, issued_at, valid_until, versions)
    files = {_file_name(entry.node): [json.dumps(entry.to_dict(), indent=1) + "\n"] for entry in issued}
    write_files(arguments.output, files)
    terminal.table(
        ("NODE", "VERDICT", "RESULTS", "DIGEST"),
        [
            (
                entry.node,
                entry.verdict.replace("_", " "),
                summarise(_statuses(entry)),
                entry.digest[:19] + "...",
            )
            for entry in issued
        ],
    )
    terminal.lines("", "%d certificates in %s" % (len(issued), arguments.output))
    if not arguments.exit_code:
        return EXIT_GOOD
    verdicts = {entry.verdict for entry in issued}
    if core.NOT_CONFORMANT in verdicts:
        return EXIT_FAIL
    return EXIT_UNKNOWN if core.NOT_TOLD in verdicts else EXIT_GOOD


def _judged(arguments: Namespace, terminal: Terminal) -> tuple[list[ResultDocument], dict[str, NodeInput]]:
    """The result documents of all sources, and the nodes of those that are recordings."""
    documents: list[ResultDocument] = []
    inputs: dict[str, NodeInput] = {}
    for path in arguments.files:
        terminal.doing("reading %s" % path)
        source = sources.read(path)
        if source.nodes is None and source.result is not None:
            documents.append(source.result)
            continue
        policy = sources.policy_of(source, arguments.policy, arguments.set)
        terminal.doing("judging %s" % count(len(source.nodes or ()), "node"))
        documents.append(sources.judged(source, policy))
        inputs.update((node.name, node) for node in source.nodes or ())
    if (arguments.policy or arguments.set) and not inputs:
        raise RdmaError(
            "usage",
            "The sources are judged already, so --policy and --set have no effect.",
            hint="Give the recorded snapshots to judge them again.",
        )
    return documents, inputs


def _days(text: str) -> int:
    """:raises RdmaError: ``usage``."""
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) <= MOST_DAYS):
        raise RdmaError(
            "usage", "--days must be a whole number from 0 to %d, found %r." % (MOST_DAYS, text[:20])
        )
    return int(text)


def _versions(node: object) -> Mapping[str, str]:
    """What runs on the node, as far as its snapshot tells."""
    snapshot = node.snapshot if isinstance(node, NodeInput) else None
    if snapshot is None:
        return {}
    firmware = {device.firmware for device in snapshot.devices or () if device.firmware}
    system = " ".join([text for text in (snapshot.host.os, snapshot.host.os_version) if text])
    return {
        "collector": snapshot.collector.version,
        "kernel": snapshot.host.kernel,
        "system": system,
        "firmware": ", ".join(sorted(firmware)),
        "agent": (snapshot.oca.agent_version or "") if snapshot.oca is not None else "",
    }


def _file_name(node: str) -> str:
    return records.file_name(node)[: -len(records.SUFFIX)] + SUFFIX


def _statuses(entry: Certificate) -> dict[str, int]:
    counts: dict[str, int] = {}
    for result in entry.results:
        counts[result.status] = counts.get(result.status, 0) + 1
    return counts


def _verify(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 4 when something stands against one of the certificates, else 0."""
    for name in ISSUES:
        given = getattr(arguments, name)
        if given and (name != "days" or given != "0"):
            raise RdmaError("usage", "--%s belongs to issue." % name.replace("_", "-"))
    recorded = None
    if arguments.snapshots is not None:
        recorded = _Recorded(sources.recorded(arguments.snapshots), arguments)
    if recorded is None and (arguments.policy or arguments.set):
        raise RdmaError("usage", "--policy has no effect without --snapshots.", hint="Add --snapshots DIR.")
    now = judging.now()
    wrong = 0
    for path in arguments.files:
        certificate = _read(path)
        terminal.doing("verifying the certificate of %s" % certificate.node)
        found = core.problems(certificate, now)
        proven: list[str] = []
        if recorded is not None:
            more, proven = _against(recorded, certificate)
            found += more
        wrong += bool(found)
        _tell(terminal, certificate, found, proven)
    return EXIT_FAIL if wrong else EXIT_GOOD


class _Recorded:
    """The recorded snapshots, judged once for each time that certificates name, however many rest on it."""

    def __init__(self, source: sources.Source, arguments: Namespace) -> None:
        self.path = source.path
        self._source = source
        self._policy = sources.policy_of(source, arguments.policy, arguments.set)
        rows = sources.judged(source, self._policy).nodes
        self.digests = {row.name: row.snapshot for row in rows}
        """The SHA-256 of each node's snapshot; empty: there is none."""
        self._judged: dict[str, dict[str, list[Finding]]] = {}

    def results(self, node: str, judged_at: str) -> list[Finding]:
        """What the snapshot of a node gives when all of them are judged for a time."""
        if judged_at not in self._judged:
            if len(self._judged) >= JUDGEMENTS_KEPT:
                self._judged.clear()
            again = sources.judged(replace(self._source, judged_at=judged_at), self._policy)
            of_nodes: dict[str, list[Finding]] = {}
            for entry in again.findings:
                of_nodes.setdefault(entry.node, []).append(entry)
            self._judged[judged_at] = of_nodes
        return self._judged[judged_at].get(node, [])


def _against(recorded: _Recorded, certificate: Certificate) -> tuple[list[str], list[str]]:
    """What the recorded snapshots say against a certificate, and what they prove."""
    if certificate.node not in recorded.digests:
        return ["No snapshot of %s is recorded in %s." % (certificate.node, recorded.path)], []
    digest = recorded.digests[certificate.node]
    run = core.run_of(certificate, digest)
    if run is None:
        return [
            "The recorded snapshot is not one that the certificate rests on (SHA-256 %s)."
            % (digest or "none")
        ], []
    again = recorded.results(certificate.node, run.judged_at)
    proven = ["the snapshot has the SHA-256 of the certificate"]
    found = core.differences(certificate, again)
    if not found:
        proven.append("judged again for %s: the same %d results" % (run.judged_at, len(again)))
    elif run.collection_version != VERSION:
        found.append(
            "It was judged by version %s, this is %s: results may differ for that."
            % (run.collection_version or "?", VERSION)
        )
    return found, proven


def _read(path: str) -> Certificate:
    """:raises RdmaError: ``certificate_unreadable``, or an error of :meth:`Certificate.from_dict`."""
    try:
        with open(path, encoding="utf-8") as stream:
            document = json_text.loads(stream.read())
    except (OSError, ValueError) as error:
        raise RdmaError(
            "certificate_unreadable",
            "The certificate %s cannot be read: %s." % (path, getattr(error, "strerror", None) or error),
            hint="Give a file that 'rdma-k8s certificate issue' wrote.",
            path=path,
        ) from error
    try:
        return Certificate.from_dict(document)
    except RdmaError as error:
        raise RdmaError(error.code, "%s: %s" % (path, error.message), hint=error.hint, path=path) from error


def _tell(terminal: Terminal, certificate: Certificate, found: Sequence[str], proven: Sequence[str]) -> None:
    colour = "fail" if found else "pass"
    terminal.paragraph(
        "%s, %s" % (certificate.node, certificate.verdict.replace("_", " ")),
        first="REFUSED   " if found else "GOOD      ",
        colour=colour,
    )
    runs = ", ".join(
        ["%s by rdma.k8s %s" % (run.judged_at, run.collection_version or "?") for run in certificate.runs]
    )
    versions = ", ".join(["%s %s" % pair for pair in certificate.versions.items()])
    terminal.pairs(
        [
            ("issued", certificate.issued_at),
            ("valid until", certificate.valid_until),
            ("judged", runs),
            ("shape", certificate.shape),
            ("versions", versions),
            ("results", summarise(_statuses(certificate))),
            ("proven", "; ".join(proven)),
            ("digest", certificate.digest),
        ],
        indent="          ",
    )
    for sentence in found:
        terminal.paragraph(sentence, indent="          ", colour="fail")
    terminal.lines("")
