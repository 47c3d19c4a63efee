# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The JSON form: what is read back is what was written."""

from __future__ import annotations

import json

from hypothesis import given

from ansible_collections.rdma.k8s.plugins.module_utils.core.report import jsonfile
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.bench.make_result import make
from ansible_collections.rdma.k8s.tests.support.results import documents, small


def text_of(document: ResultDocument) -> str:
    return "".join(jsonfile.chunks(document))


@given(documents())
def test_any_document_comes_back(document: ResultDocument) -> None:
    text = text_of(document)
    assert ResultDocument.from_dict(json.loads(text)) == document
    assert text == text_of(document)
    text.encode("ascii")


def test_it_is_the_form_of_to_dict() -> None:
    assert json.loads(text_of(small())) == small().to_dict()


def test_one_finding_is_one_line() -> None:
    lines = text_of(make(3, 10)).splitlines()
    findings = [line for line in lines if line.startswith('{"check"')]
    assert len(findings) == 30
    assert [json.loads(line.rstrip(","))["check"] for line in findings[:2]] == [
        "RDMA-NODE-001",
        "RDMA-NODE-002",
    ]
    assert lines[0] == "{"
    assert lines[1:3] == ['"kind": "rdma.k8s/result",', '"schema_version": 1,']


def test_an_empty_document() -> None:
    assert json.loads(text_of(ResultDocument("2026-03-02T09:30:00Z"))) == {
        "kind": "rdma.k8s/result",
        "schema_version": 1,
        "created_at": "2026-03-02T09:30:00Z",
        "checks": [],
        "nodes": [],
        "findings": [],
    }
