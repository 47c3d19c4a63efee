# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module ``workload_lint`` does. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional

from . import manifest_files
from .core.errors import RdmaError
from .core.finding import ERROR
from .core.kube.documents import Document, live
from .core.lint.outcome import Outcome, lint
from .core.oke.shapes import DEFAULT_TABLE, extend
from .core.report import jsonfile, sarif
from .core.report.document import ResultDocument
from .report_files import read_result, write_files
from .version import VERSION

NEVER = "never"
VARIABLE = "documents"
"""The source of documents that came as an option."""


def gather(params: Mapping[str, Any], nothing: bool) -> tuple[list[Document], list[RdmaError]]:
    """The documents of the options ``paths`` and ``documents``, and what could not be read.

    :param nothing: there is no other source.
    :raises RdmaError: ``manifests_missing``.
    """
    if nothing and not params["paths"] and params["documents"] is None:
        raise RdmaError(
            "manifests_missing",
            "None of paths, documents, namespaces and all_namespaces is given, so there is nothing to judge.",
            hint="Give one of them.",
        )
    documents = live(params["documents"] or (), VARIABLE)
    if not params["paths"]:
        return documents, []
    found = manifest_files.read(params["paths"], params["exclude"])
    return found.documents + documents, found.problems


def judge(
    params: Mapping[str, Any], documents: Sequence[Document], problems: Sequence[RdmaError], now: str
) -> Outcome:
    """Judge documents as the options say.

    :param now: UTC, ``YYYY-MM-DDThh:mm:ssZ``.
    :raises RdmaError: ``check_unknown``, ``shape_unknown``, ``shape_malformed``, or what the options raise.
    """
    return lint(
        documents,
        today=now[:10],
        select=params["select"],
        ignore=params["ignore"],
        problems=problems,
        target=params["target"] or "",
        shape=params["shape"] or "",
        shapes=extend(DEFAULT_TABLE, params["shapes"]),
        complete=params["complete"],
        options=params["options"],
    )


def threshold(params: Mapping[str, Any]) -> str:
    """The lowest severity whose failures count."""
    return ERROR if params["fail_on"] == NEVER else str(params["fail_on"])


def write(params: Mapping[str, Any], outcome: Outcome, now: str, dry_run: bool) -> bool:
    """Write the files that are asked for; true when one changed, or would. Times alone are no change.

    :raises RdmaError: ``report_not_written``, ``docs_address_refused``.
    """
    changed = False
    if params["dest"]:
        document = outcome.result(
            now,
            VERSION,
            params["target"] or "",
            threshold=threshold(params),
            strict=params["strict"],
        )
        before = _before(params["dest"])
        if before is not None and replace(document, created_at=before.created_at) == before:
            document = before
        changed |= _put(params["dest"], "".join(jsonfile.chunks(document)), dry_run)
    if params["sarif"]:
        changed |= _put(params["sarif"], sarif.text(outcome, VERSION, params["docs"], os.getcwd()), dry_run)
    return changed


def _before(path: str) -> Optional[ResultDocument]:
    if not os.path.exists(path):
        return None
    try:
        return read_result(path)
    except RdmaError:  # whatever it is, it is replaced
        return None


def _put(path: str, text: str, dry_run: bool) -> bool:
    folder, name = os.path.split(path)
    return any(written.changed for written in write_files(folder or ".", {name: [text]}, dry_run))
