# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the lint rules over documents. Private to rdma.k8s: it may change with any release.

A file of rules is imported here by name, so that what is seen statically is all there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from ..finding import PASS
from ..kube import objects
from ..kube.documents import Document
from . import attachments, claims, fields, lingjun, memory, nccl, placement, rails, resources, security
from .model import Context, LintFinding
from .options import checked
from .pod import target_of
from .registry import RULES, Rule

RULE_FILES = (attachments, claims, fields, lingjun, memory, nccl, placement, rails, resources, security)
_SORTED = [RULES[check] for check in sorted(RULES)]


@lru_cache(maxsize=256)
def _rules_for(kind: str, target: str) -> tuple[Rule, ...]:
    """The rules for a kind of object of a target, by their ids."""
    return tuple(
        [
            entry
            for entry in _SORTED
            if (not entry.kinds or kind in entry.kinds) and (not entry.targets or target in entry.targets)
        ]
    )


def lint(documents: Iterable[Document], **context: Any) -> list[LintFinding]:
    """What every rule says of every document; the keywords are the fields of :class:`~.model.Context`.

    A rule that reads a kind of object has at least one finding for each object of the kind: ``pass`` when the rule
    found nothing. An object of a kind that no rule reads has none.

    :raises RdmaError: for options, see :func:`~.options.checked`.
    """
    context["options"] = checked(context.get("options", {}))
    known = Context(documents=tuple(documents), **context)
    return [finding for document in known.documents for finding in judge(document, known)]


def judge(document: Document, context: Context) -> Iterator[LintFinding]:
    """What every rule says of one document."""
    for entry in _rules_for(objects.kind(document.content), target_of(document, context)):
        yield from _findings(entry, document, context)


def _findings(entry: Rule, document: Document, context: Context) -> Iterator[LintFinding]:
    info = entry.info
    silent = True
    for verdict in entry.run(document, context):
        silent = False
        yield LintFinding(
            rule=info.id,
            status=verdict.status,
            severity=verdict.severity or info.severity,
            document=document,
            path=verdict.path,
            message=verdict.message,
            hint=verdict.hint or info.hint,
            expected=verdict.expected,
            observed=verdict.observed,
            code=verdict.code,
            container=verdict.container,
        )
    if silent:
        yield LintFinding(info.id, PASS, info.severity, document, (), "", info.hint)
