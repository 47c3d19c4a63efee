# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of lint rules: clean manifests, one edit each, and exactly what the lint must say."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding

HERE = Path(__file__).resolve().parents[1] / "unit" / "plugins" / "module_utils" / "core" / "lint"
BASES = HERE / "bases"
CASES = HERE / "cases"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: ml}
spec:
  terminationGracePeriodSeconds: %s
  resourceClaims: [{name: rdma, resourceClaimTemplateName: t}]
  containers: [{name: main, resources: {claims: [{name: rdma}]}}]
"""
"""A pod by name and grace period in seconds, of which 0 fails RDMA-WL-013."""
NOT_GOOD = ("fail", "warn", "unknown")
PODS = {
    "Job": "spec.template.spec",
    "Deployment": "spec.template.spec",
    "MPIJob": "spec.mpiReplicaSpecs.Worker.template.spec",
    "Pod": "spec",
}
"""What ``@`` in the path of an edit stands for: the pods of the object."""


@dataclass(frozen=True)
class Case:
    """One edit of clean manifests and what comes of it.

    :param rule: the rule that is meant, :param status: of its worst finding, whose message contains ``message``.
    :param base: the clean manifests, a file of the folder ``bases``; empty: ``manifests`` are all.
    :param edits: values by path; the first part of a path is the kind of the document. ``null`` takes a value away.
    :param manifests: further documents.
    :param also: the other rules that the edit makes fail, warn or unknown, with their status: all of them.
    :param context: keywords of the lint.
    """

    rule: str
    status: str
    name: str
    topic: str
    base: str = ""
    message: str = ""
    at: str = ""
    edits: dict[str, Any] = field(default_factory=dict)
    manifests: str = ""
    also: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    code: str = ""

    @property
    def id(self) -> str:
        return "%s-%s-%s" % (self.rule[5:], self.status, self.name.replace(" ", "_"))

    def documents(self) -> list[Document]:
        """The documents after the edit."""
        found = list(base(self.base)) if self.base else []
        if self.manifests:
            found += parse(self.manifests, "case.yml")
        contents = [copy.deepcopy(document.content) for document in found]
        for path, value in self.edits.items():
            kind, _dot, rest = path.partition(".")
            parts = rest.replace("@", PODS.get(kind, "@")).split(".")
            kinds = [content for content in contents if content["kind"] == kind]
            edit(kinds[0], parts, value)
        return [
            Document(content, document.source, document.line, document.lines)
            for content, document in zip(contents, found)
        ]

    def findings(self) -> list[LintFinding]:
        return engine.lint(self.documents(), **self.context)


@cache
def base(name: str) -> Sequence[Document]:
    """Clean manifests."""
    return parse((BASES / ("%s.manifests" % name)).read_text(encoding="utf-8"), "%s.yml" % name)


@cache
def cases() -> Sequence[Case]:
    """All cases, of every topic."""
    found = []
    for path in sorted(CASES.glob("*.yml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
            found.append(Case(topic=path.stem, **{**entry, "rule": "RDMA-" + entry["rule"]}))
    return tuple(found)


def edit(content: Any, path: Sequence[str], value: Any) -> None:
    """Set a value below a path, or take it away when it is ``None``; a dot in a key is written as ``~``."""
    *before, last = [int(part) if part.isdigit() else part.replace("~", ".") for part in path]
    for part in before:
        content = content.setdefault(part, {}) if isinstance(content, dict) else content[part]
    if value is None:
        del content[last]
    elif isinstance(content, list) and last == len(content):
        content.append(value)
    else:
        content[last] = value


def not_good(findings: Sequence[LintFinding]) -> dict[str, str]:
    """The worst status of each rule that does not pass everywhere."""
    found: dict[str, str] = {}
    for finding in findings:
        if finding.status in NOT_GOOD:
            before = found.get(finding.rule, "unknown")
            found[finding.rule] = min(before, finding.status, key=("fail", "warn", "unknown").index)
    return found


def status_of(findings: Sequence[LintFinding], rule: str) -> str:
    """The status of a rule over all documents: the worst, else pass when it passed somewhere."""
    statuses = {finding.status for finding in findings if finding.rule == rule}
    return next((status for status in (*NOT_GOOD, "pass", "skip") if status in statuses), "absent")
