# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Outcomes of a lint in which every form of a finding comes, for what is written of them."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Waiver
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import LintFinding
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.outcome import Judged, Outcome, catalogue

RULE = "RDMA-WL-013"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: main
      image: x
    - name: side
      image: y
"""
IMAGE = ("spec", "containers", 1, "image")


def outcome(*entries: Judged, problems: Any = ()) -> Outcome:
    """An outcome of these findings."""
    documents = list({id(entry.finding.document): entry.finding.document for entry in entries}.values())
    return Outcome(documents, entries, list(catalogue().values()), problems)


def entry(
    document: Any = None,
    path: Any = IMAGE,
    status: str = "fail",
    severity: str = "error",
    waiver: Any = None,
    **more: str,
) -> Judged:
    """A finding of a pod in a file."""
    document = document or parse(POD, "manifests/pod one.yml")[0]
    finding = LintFinding(RULE, status, severity, document, path, "It is wrong.", "Repair it.", **more)
    return Judged(finding, waiver)


ALL = [
    entry(expected="a", observed="b"),
    entry(status="warn", severity="critical"),
    entry(status="unknown"),
    entry(severity="info", waiver=Waiver("by design", "ml", "2027-01-01")),
    entry(live([{"kind": "Job", "metadata": {"name": "j", "namespace": "n"}}])[0]),
    entry(parse(POD, "-")[0]),
    entry(parse(POD, "/srv/pod.yml")[0], path=()),
    entry(status="pass"),
    entry(status="skip"),
]
PROBLEMS = [
    RdmaError("manifest_malformed", "bad.yml, line 3: no.", source="bad.yml", line=3),
    RdmaError("manifest_unreadable", "x: no.", source="x"),
]
