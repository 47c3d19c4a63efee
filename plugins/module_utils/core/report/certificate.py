# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conformance certificate of one node: what was judged, when, by what, and how it came out.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Optional

from .. import codec, finding as model
from ..errors import RdmaError
from .document import NodeRow, ResultDocument

SCHEMA_VERSION = 1
KIND = "rdma.k8s/certificate"
STAMP = "%Y-%m-%dT%H:%M:%SZ"

CONFORMANT, NOT_CONFORMANT, NOT_TOLD = VERDICTS = ("conformant", "not_conformant", "not_told")
"""What a certificate says of its node. ``not_conformant``: a result of severity ``error`` or higher failed and is not
waived. ``not_told``: none did, but one of them is unknown, or nothing was judged at all."""

_COUNTED = (model.CRITICAL, model.ERROR)


@dataclass(frozen=True)
class Run:
    """One judgement that the certificate rests on. ``snapshot`` is the SHA-256 of what the node told."""

    judged_at: str = codec.text()
    collection_version: str = codec.text("")
    collected_at: str = codec.text("")
    snapshot: str = codec.text("")
    target: str = codec.text("")
    child_range: str = codec.text("")
    settings: dict[str, str] = codec.text_map()


@dataclass(frozen=True)
class Certified:
    """How one check came out on the node; ``message`` says why where it did not pass."""

    check: str = codec.text()
    status: str = codec.text()
    severity: str = codec.text(model.ERROR)
    message: str = codec.text("")
    waiver: Optional[model.Waiver] = codec.item(model.Waiver)


@dataclass(frozen=True)
class Certificate:
    """The certificate. Times are UTC, ``YYYY-MM-DDThh:mm:ssZ``; ``digest`` is the SHA-256 of all other fields."""

    node: str = codec.text()
    verdict: str = codec.text()
    issued_at: str = codec.text()
    valid_until: str = codec.text("")
    shape: str = codec.text("")
    network: str = codec.text("")
    fabric: str = codec.text("")
    versions: dict[str, str] = codec.text_map()
    runs: tuple[Run, ...] = codec.items(Run)
    results: tuple[Certified, ...] = codec.items(Certified)
    digest: str = codec.text("")
    kind: str = codec.text(KIND)
    schema_version: int = codec.integer(SCHEMA_VERSION)

    @classmethod
    def from_dict(cls, document: Any) -> Certificate:
        """Read the JSON form.

        :raises RdmaError: ``certificate_not_one``, ``certificate_newer_schema`` or ``document_malformed``.
        """
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise RdmaError(
                "certificate_not_one",
                "This is no certificate: its 'kind' must be %r." % KIND,
                hint="Give a file that 'rdma-k8s certificate issue' wrote.",
            )
        version = document.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RdmaError(
                "certificate_newer_schema",
                "The certificate has schema version %d; this release reads up to version %d."
                % (version, SCHEMA_VERSION),
                hint="Update the collection.",
            )
        return codec.decode(cls, document, "certificate")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: plain data, fields with their default value left out."""
        document: dict[str, Any] = {"kind": self.kind, "schema_version": self.schema_version}
        document.update(codec.encode(self))
        return document

    def counts(self) -> dict[str, int]:
        """Number of results of each status; those that are waived count as ``waived``."""
        counts = dict.fromkeys((*model.STATUSES, "waived"), 0)
        for entry in self.results:
            waived = entry.waiver is not None and entry.status not in (model.PASS, model.SKIP)
            counts["waived" if waived else entry.status] = counts.get(entry.status, 0) + 1
        return counts


def issue(
    documents: Sequence[ResultDocument],
    nodes: Sequence[str],
    issued_at: str,
    valid_until: str = "",
    versions: Optional[Mapping[str, Mapping[str, str]]] = None,
) -> list[Certificate]:
    """The certificates of nodes, in their order. Each document is read once, however many nodes there are.

    :param documents: judgements of the nodes, such as that of preflight and that of the fabric proof. Where two of them
        judged the same check, the later one counts.
    :param versions: what is known of a node's software beside what the documents tell, by the name of the node.
    :raises RdmaError: ``node_unknown`` when no document judged one of the nodes, ``time_malformed``.
    """
    for stamp in (issued_at, valid_until or issued_at):
        _time(stamp)
    judgements: dict[str, list[tuple[ResultDocument, NodeRow]]] = {name: [] for name in nodes}
    results: dict[str, dict[str, Certified]] = {name: {} for name in nodes}
    for document in sorted(documents, key=_judged_at):
        judged = _rows(document, judgements)
        for name, row in judged.items():
            judgements[name].append((document, row))
        for entry in document.findings:
            if entry.node in judged:
                results[entry.node][entry.check] = _certified(entry)
    known = versions or {}
    return [
        _issued(name, judgements[name], results[name], (issued_at, valid_until), known.get(name, {}))
        for name in nodes
    ]


def _rows(document: ResultDocument, names: Container[str]) -> dict[str, NodeRow]:
    """The rows of a document by the names of their nodes, of those that are wanted; of two alike the first one."""
    found: dict[str, NodeRow] = {}
    for row in document.nodes:
        if row.name in names:
            found.setdefault(row.name, row)
    return found


def _issued(
    node: str,
    judgements: Sequence[tuple[ResultDocument, NodeRow]],
    results: Mapping[str, Certified],
    stamps: tuple[str, str],
    versions: Mapping[str, str],
) -> Certificate:
    """The certificate of one node, whose judgements stand in the order of their times.

    :param stamps: when it is issued, and until when it is valid.
    """
    if not judgements:
        raise RdmaError("node_unknown", "No result document judged a node %r." % node, node=node)
    row = judgements[-1][1]
    certificate = Certificate(
        node=node,
        verdict=verdict(tuple(results.values())),
        issued_at=stamps[0],
        valid_until=stamps[1],
        shape=row.shape,
        network=row.network,
        fabric=row.fabric,
        versions={name: text for name, text in sorted(versions.items()) if text},
        runs=tuple([_run(document, row) for document, row in judgements]),
        results=tuple([results[check] for check in sorted(results)]),
    )
    return replace(certificate, digest=digest(certificate))


def after(stamp: str, days: int) -> str:
    """The time some days after another one.

    :raises RdmaError: ``time_malformed``.
    """
    return (_time(stamp) + timedelta(days=days)).strftime(STAMP)


def verdict(results: Sequence[Certified]) -> str:
    """One of :data:`VERDICTS`."""
    counted = [entry for entry in results if entry.severity in _COUNTED and entry.waiver is None]
    if any(entry.status == model.FAIL for entry in counted):
        return NOT_CONFORMANT
    told = any(entry.status == model.PASS for entry in results)
    return NOT_TOLD if not told or any(entry.status == model.UNKNOWN for entry in counted) else CONFORMANT


def digest(certificate: Certificate) -> str:
    """``sha256:`` and the SHA-256 of all fields but the digest, as JSON with sorted keys and no spaces."""
    document = replace(certificate, digest="").to_dict()
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def problems(certificate: Certificate, now: str) -> list[str]:
    """What stands against a certificate, seen by itself; one sentence each.

    :param now: the time at which it is looked at.
    """
    found = []
    if certificate.digest != digest(certificate):
        found.append(
            "The digest is not that of the content: the certificate was changed after it was issued (%s expected, %s "
            "found)." % (digest(certificate), certificate.digest or "none")
        )
    if certificate.verdict not in VERDICTS or certificate.verdict != verdict(certificate.results):
        found.append(
            "The verdict is %r, and the results say %r." % (certificate.verdict, verdict(certificate.results))
        )
    elif certificate.verdict != CONFORMANT:
        found.append("The node is not conformant: %s." % _open(certificate))
    if certificate.issued_at > now:
        found.append("It was issued at %s, which is still to come." % certificate.issued_at)
    if any(run.judged_at > certificate.issued_at for run in certificate.runs):
        found.append("It was issued before the judgement that it rests on.")
    if not certificate.runs:
        found.append("It rests on no judgement.")
    if certificate.valid_until and certificate.valid_until < now:
        found.append("It was valid until %s." % certificate.valid_until)
    return found


def run_of(certificate: Certificate, snapshot: str) -> Optional[Run]:
    """The judgement of a certificate that rests on a snapshot, by its SHA-256."""
    return next((run for run in certificate.runs if snapshot and run.snapshot == snapshot), None)


def differences(certificate: Certificate, again: Sequence[model.Finding]) -> list[str]:
    """What another judgement of the same snapshot says otherwise, one sentence for each check.

    A check that only another run of the certificate judged, such as the fabric proof, is no difference.

    :param again: what that judgement found on the node.
    """
    certified = {entry.check: entry for entry in certificate.results}
    found = []
    for entry in again:
        held = certified.get(entry.check)
        if held is None:
            found.append("%s is %s now, and the certificate does not have it." % (entry.check, entry.status))
        elif held.status != entry.status:
            found.append(
                "%s is %s now, and %s in the certificate." % (entry.check, entry.status, held.status)
            )
        elif (held.waiver is None) != (entry.waiver is None):
            words = ("waived", "not waived") if held.waiver is None else ("not waived", "waived")
            found.append("%s is %s now, and %s in the certificate." % (entry.check, *words))
    return found


def _open(certificate: Certificate) -> str:
    wrong = [
        "%s %s" % (entry.status, entry.check)
        for entry in certificate.results
        if entry.severity in _COUNTED and entry.waiver is None and entry.status in (model.FAIL, model.UNKNOWN)
    ]
    more = ", and %d more" % (len(wrong) - 5) if len(wrong) > 5 else ""
    return ", ".join(wrong[:5]) + more if wrong else "nothing that was judged passed"


def _certified(entry: model.Finding) -> Certified:
    message = "" if entry.status == model.PASS else entry.message
    return Certified(entry.check, entry.status, entry.severity, message, entry.waiver)


def _run(document: ResultDocument, row: NodeRow) -> Run:
    return Run(
        document.created_at,
        document.collection_version,
        row.collected_at,
        row.snapshot,
        document.target,
        document.child_range,
        dict(document.settings),
    )


def _judged_at(document: ResultDocument) -> str:
    return document.created_at


def _time(stamp: str) -> datetime:
    try:
        return datetime.strptime(stamp, STAMP)
    except ValueError as error:
        raise RdmaError(
            "time_malformed",
            "The time %r must be YYYY-MM-DDThh:mm:ssZ." % stamp[:40],
            hint="Give a document that validate wrote.",
        ) from error
