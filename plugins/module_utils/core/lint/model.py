# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the lint works on and what it says. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Optional

from ..finding import FAIL, SKIP, UNKNOWN, WARN, Finding
from ..kube import objects
from ..kube.documents import Document
from ..kube.pod_templates import PodTemplate, templates
from ..oke.shapes import DEFAULT_TABLE, Shape, Table, lookup

OKE, SPIDERPOOL, ACK = TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")

Path = tuple[Any, ...]
"""Keys and positions from the root of a document: ``("spec", "containers", 0, "env")``."""


class Verdict(NamedTuple):
    """What a rule says of a place in a document; the engine adds the rule, its severity and its hint.

    :param severity: only where it is not the severity of the rule.
    :param code: a stable word for the reason, for rules that have several.
    :param container: name of the container that is meant, where the path leads to something else.
    """

    status: str
    path: Path
    message: str = ""
    expected: str = ""
    observed: str = ""
    hint: str = ""
    severity: str = ""
    code: str = ""
    container: str = ""


def failed(path: Path, message: str, **more: str) -> Verdict:
    return Verdict(FAIL, path, message, **more)


def warned(path: Path, message: str, **more: str) -> Verdict:
    return Verdict(WARN, path, message, **more)


def skipped(reason: str, path: Path = (), **more: str) -> Verdict:
    return Verdict(SKIP, path, reason, **more)


GIVE = "Give the lint the object that the message names as well, or say that there are no others (complete)."


def unknown(path: Path, reason: str, **more: str) -> Verdict:
    """The hint is what to give the lint: what the rule advises may be done already."""
    return Verdict(UNKNOWN, path, reason, **{"hint": GIVE, **more})


@dataclass(frozen=True)
class LintFinding:
    """What one rule says of one place of one document. Statuses and severities are those of :mod:`..finding`."""

    rule: str
    status: str
    severity: str
    document: Document
    path: Path
    message: str
    hint: str = ""
    expected: str = ""
    observed: str = ""
    code: str = ""
    container: str = ""

    @property
    def subject(self) -> str:
        """``Job default/train``."""
        return objects.ref(self.document.content)

    @property
    def line(self) -> int:
        """The line in the file, 0 when there is none."""
        return self.document.line_of(self.path)

    @property
    def place(self) -> str:
        """``spec.containers[0].env``; ``(object)`` for the whole."""
        return dotted(self.path) or "(object)"

    def to_finding(self) -> Finding:
        """The same in the form that reports take: the object stands where a node stands."""
        where = "%s:%d" % (self.document.source, self.line) if self.line else self.document.source
        return Finding(
            check=self.rule,
            node=self.subject,
            status=self.status,
            severity=self.severity,
            message=self.message,
            expected=self.expected,
            observed=self.observed,
            evidence=("%s %s" % (where, self.place),),
        )


def dotted(path: Path) -> str:
    """``spec.containers[0].env``; keys that are no plain words stand in brackets: ``["rdma/hca"]``."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += "[%d]" % part
        elif part.replace("-", "").replace("_", "").isalnum():
            shown += ".%s" % part if shown else part
        else:
            shown += '["%s"]' % part
    return shown


@dataclass(frozen=True)
class Context:
    """What the lint knows besides the document at hand.

    :param documents: all documents; references are followed between them.
    :param target: one of :data:`TARGETS`; empty: told for each object by what it asks for.
    :param complete: the documents are all that exists: a reference that is missing is then wrong, else not known.
    :param shapes: the shape table; :param shape: the shape of the nodes for which the workloads are meant.
    :param options: settings of the rules of a target, such as ``non_host_network``.
    """

    documents: tuple[Document, ...] = ()
    target: str = ""
    complete: bool = False
    shapes: Table = DEFAULT_TABLE
    shape: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _by_kind(self) -> dict[str, dict[str, list[Document]]]:
        """Documents by kind and name."""
        found: dict[str, dict[str, list[Document]]] = {}
        for document in self.documents:
            of_kind = found.setdefault(objects.kind(document.content), {})
            of_kind.setdefault(objects.name(document.content), []).append(document)
        return found

    @cached_property
    def _exact(self) -> dict[tuple[str, str, str], Document]:
        """Documents by kind, name and namespace, the first of each."""
        found: dict[tuple[str, str, str], Document] = {}
        for document in self.documents:
            content = document.content
            found.setdefault(
                (objects.kind(content), objects.name(content), objects.namespace(content)), document
            )
        return found

    def of_kind(self, kind: str) -> list[Document]:
        """All documents of a kind."""
        return [document for named in self._by_kind.get(kind, {}).values() for document in named]

    def namespaces(self, kind: str, name: str) -> list[str]:
        """The namespaces in which documents of this kind and name stand."""
        found = {
            objects.namespace(document.content) for document in self._by_kind.get(kind, {}).get(name, [])
        }
        return sorted(found - {""})

    def find(self, kind: str, name: str, namespace: Optional[str] = None) -> Optional[Document]:
        """The document of this kind and name.

        Without ``namespace`` the kind has none. A manifest that names no namespace goes where the user applies it,
        so an empty namespace, here or there, fits any; the exact one is preferred.
        """
        if namespace is not None:
            exact = self._exact.get((kind, name, namespace)) or self._exact.get((kind, name, ""))
            if exact is not None or namespace:
                return exact
        candidates = self._by_kind.get(kind, {}).get(name)
        return candidates[0] if candidates else None

    def claim_template(self, namespace: str, name: str) -> Optional[Document]:
        return self.find("ResourceClaimTemplate", name, namespace)

    def claim(self, namespace: str, name: str) -> Optional[Document]:
        return self.find("ResourceClaim", name, namespace)

    def device_class(self, name: str) -> Optional[Document]:
        return self.find("DeviceClass", name)

    def nad(self, namespace: str, name: str) -> Optional[Document]:
        return self.find("NetworkAttachmentDefinition", name, namespace)

    def config_map(self, namespace: str, name: str) -> Optional[Document]:
        return self.find("ConfigMap", name, namespace)

    @cached_property
    def _templates(self) -> dict[int, tuple[PodTemplate, ...]]:
        return {}

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What rules worked out of all documents together."""
        return {}

    @cached_property
    def pods(self) -> dict[int, Any]:
        """The pods of documents that were read already, see :func:`..pod.pods`."""
        return {}

    @cached_property
    def claims(self) -> dict[int, Any]:
        """The claims that were read already, see :func:`..pod.claim_of`."""
        return {}

    def templates(self, document: Document) -> tuple[PodTemplate, ...]:
        """The pod templates of one of the documents, read once for all rules."""
        found = self._templates.get(id(document))
        if found is None:
            found = self._templates[id(document)] = templates(document.content)
        return found

    @cached_property
    def expected(self) -> Optional[Shape]:
        """The entry of the shape table; ``None``: no shape was given, or the table does not know it."""
        return lookup(self.shape, self.shapes) if self.shape else None
