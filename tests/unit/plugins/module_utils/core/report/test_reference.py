# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference pages say what the code does: fields with their defaults, metrics, formats, kinds of changes."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import finding as model
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import diff, render, textfile
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import (
    NicRow,
    NodeRow,
    ResultDocument,
)
from ansible_collections.rdma.k8s.tests.support.results import small

ROOT = Path(__file__).resolve().parents[6]
DOCS = ROOT / "docs" / "reference"


def rows(page: str, first: str) -> list[list[str]]:
    """The rows of the tables of a page whose head begins with ``first``, without backquotes."""
    found: list[list[str]] = []
    inside = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
        if cells[0] == first:
            inside = True
        elif inside and not set(cells[0]) <= {"-", " "}:
            found.append(cells)
    return found


def default_of(field: dataclasses.Field[Any]) -> str:
    """The default as the page writes it."""
    if field.name in ("kind", "schema_version"):
        return "required"
    if field.default_factory is not dataclasses.MISSING:
        return "empty"
    words = {"": "empty", (): "empty", True: "true", None: "none", 0: "0"}
    if field.default is dataclasses.MISSING:
        return "required"
    return words.get(field.default, field.default)


@pytest.mark.parametrize(
    ("cls", "first"),
    [(ResultDocument, "Field"), (model.CheckInfo, "Field"), (NodeRow, "Field"), (model.Finding, "Field")],
)
def test_fields_and_defaults(cls: type, first: str) -> None:
    documented = [(row[0], row[2]) for row in rows("result.md", first)]
    for field in dataclasses.fields(cls):
        assert (field.name, default_of(field)) in documented


def test_fields_of_a_nic_and_no_field_that_is_not_there() -> None:
    assert [(row[0], row[2]) for row in rows("result.md", "Field of a NIC")] == [
        (field.name, default_of(field)) for field in dataclasses.fields(NicRow)
    ]
    known = {
        field.name
        for cls in (ResultDocument, model.CheckInfo, NodeRow, model.Finding)
        for field in dataclasses.fields(cls)
    }
    assert {row[0] for row in rows("result.md", "Field")} == known


def test_statuses() -> None:
    assert {row[0] for row in rows("result.md", "Status")} == set(model.STATUSES)


def test_the_example_is_a_result_document() -> None:
    text = (DOCS / "result.md").read_text(encoding="utf-8")
    document = ResultDocument.from_dict(json.loads(re.findall(r"```json\n(.*?)```", text, re.S)[0]))
    assert document.findings[0].check == "RDMA-NODE-017"
    assert model.exit_code(document.findings) == document.exit_code


def test_formats() -> None:
    assert {row[0]: row[1] for row in rows("reports.md", "Format")} == render.FILES


def test_metrics() -> None:
    exported = set(re.findall(r"^# TYPE (\S+) gauge$", "".join(textfile.chunks(small(), 60)), re.M))
    assert {row[0] for row in rows("reports.md", "Metric")} == exported
    values = {
        row[0]: row[1] for row in rows("reports.md", "Result") if row[1] in ("0", "1", "2", "no series")
    }
    assert values == {
        **{name: str(value) for name, value in textfile.STATUS_VALUES.items()},
        "skip": "no series",
    }


def test_kinds_of_changes() -> None:
    assert [row[0] for row in rows("reports.md", "Kind")] == list(diff.KINDS)
