# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result document: the one source of every report. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from .. import codec, finding as model
from ..errors import RdmaError

SCHEMA_VERSION = 1
KIND = "rdma.k8s/result"


@dataclass(frozen=True)
class NicRow:
    """One RDMA NIC of the address map: parent as derived, address as found, child as derived (no prefix lengths)."""

    index: int = codec.integer()
    name: str = codec.text("")
    device: str = codec.text("")
    parent: str = codec.text("")
    observed: str = codec.text("")
    child: str = codec.text("")


@dataclass(frozen=True)
class NodeRow:
    """One node of the run. ``reachable`` false: every result of it is ``unknown`` because of ``reason``.

    ``snapshot`` is the SHA-256 of the snapshot's canonical JSON, ``network`` names its RDMA network,
    ``fabric`` is ``ipv4``, ``ipv6``, ``infiniband`` or empty when it could not be told.
    """

    name: str = codec.text()
    reachable: bool = codec.boolean(True)
    reason: str = codec.text("")
    shape: str = codec.text("")
    network: str = codec.text("")
    fabric: str = codec.text("")
    collected_at: str = codec.text("")
    snapshot: str = codec.text("")
    nics: tuple[NicRow, ...] = codec.items(NicRow)


@dataclass(frozen=True)
class ResultDocument:
    """All results of one judgement. ``created_at`` is UTC, ``YYYY-MM-DDThh:mm:ssZ``.

    ``cluster`` is the name under which the findings about the cluster stand; empty: no cluster was judged.
    """

    created_at: str = codec.text()
    collection_version: str = codec.text("")
    target: str = codec.text("")
    child_range: str = codec.text("")
    exit_code: int = codec.integer(0)
    checks: tuple[model.CheckInfo, ...] = codec.items(model.CheckInfo)
    nodes: tuple[NodeRow, ...] = codec.items(NodeRow)
    findings: tuple[model.Finding, ...] = codec.items(model.Finding)
    settings: dict[str, str] = codec.text_map()
    cluster: str = codec.text("")
    kind: str = codec.text(KIND)
    schema_version: int = codec.integer(SCHEMA_VERSION)

    @classmethod
    def from_dict(cls, document: Any) -> ResultDocument:
        """Read the JSON form.

        :raises RdmaError: ``result_not_a_result``, ``result_newer_schema`` or ``document_malformed``.
        """
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise RdmaError(
                "result_not_a_result",
                "This is not a result document: its 'kind' must be %r." % KIND,
                hint="Give the result.json that preflight, validate or 'rdma-k8s report' wrote.",
            )
        version = document.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RdmaError(
                "result_newer_schema",
                "The result document has schema version %d; this release reads up to version %d."
                % (version, SCHEMA_VERSION),
                hint="Update the collection.",
                schema_version=version,
                supported=SCHEMA_VERSION,
            )
        return codec.decode(cls, document, "result")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: plain data, fields with their default value left out."""
        document: dict[str, Any] = {"kind": self.kind, "schema_version": self.schema_version}
        document.update(codec.encode(self))
        return document

    def check_info(self, check: str) -> Optional[model.CheckInfo]:
        """The catalogue entry of a check, if the document has it."""
        for info in self.checks:
            if info.id == check:
                return info
        return None

    @property
    def no_nodes(self) -> dict[str, str]:
        """What findings name in the place of a node and is none, with the words for it."""
        found = {model.FLEET: "whole fleet"}
        if self.cluster:
            found[self.cluster] = "the cluster"
        return found

    def counts(self) -> dict[str, int]:
        """Number of findings per status; waived findings that are not ``pass`` or ``skip`` count as ``waived``."""
        counts = dict.fromkeys(model.STATUSES, 0)
        counts["waived"] = 0
        for entry in self.findings:
            waived = entry.waiver is not None and entry.status not in (model.PASS, model.SKIP)
            counts["waived" if waived else entry.status] += 1
        return counts
