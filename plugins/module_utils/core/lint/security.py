# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: how the pod itself is set up. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator

from ..finding import ERROR
from ..kube.documents import Document
from ..kube.pod_templates import POD_KINDS
from .model import Context, Verdict, failed, skipped
from .registry import rule


@rule(
    "RDMA-WL-013",
    "Pods with claims get time to end",
    ERROR,
    "Remove terminationGracePeriodSeconds, or set it to at least 1.",
    kinds=POD_KINDS,
)
def grace_period(document: Document, context: Context) -> Iterator[Verdict]:
    """A grace period of 0 removes the pod before its claims are unprepared (kubernetes/kubernetes#131513)."""
    with_claims = [template for template in context.templates(document) if template.spec.get("resourceClaims")]
    if not with_claims:
        yield skipped("The pods use no resource claims.")
    for template in with_claims:
        if template.spec.get("terminationGracePeriodSeconds") == 0:
            yield failed(
                (*template.path, "terminationGracePeriodSeconds"),
                "The pod is removed at once when it is deleted, so the devices of its claims are not given back.",
                expected="at least 1 s",
                observed="0 s",
            )
