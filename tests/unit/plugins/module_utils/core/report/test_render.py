# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All formats together: names, choices, one document and the same bytes each time."""

from __future__ import annotations

import json

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import render
from ansible_collections.rdma.k8s.tests.bench.make_result import make
from ansible_collections.rdma.k8s.tests.support.results import small


def test_every_format_has_its_file() -> None:
    files = render.render(small())
    assert list(files) == ["result.json", "junit.xml", "report.md", "report.html", "rdma_k8s.prom"]
    assert json.loads(files["result.json"]) == small().to_dict()
    assert all(text.endswith("\n") for text in files.values())


def test_the_same_document_gives_the_same_bytes() -> None:
    assert render.render(make(20, 30)) == render.render(make(20, 30))


def test_only_what_is_wanted_and_once() -> None:
    assert list(render.render(small(), ["textfile", "json", "textfile"])) == ["rdma_k8s.prom", "result.json"]


def test_an_unknown_format_is_refused_before_anything_is_rendered() -> None:
    with pytest.raises(
        RdmaError, match="must be one of json, junit, markdown, html, textfile, found 'pdf'"
    ) as caught:
        render.stream(small(), ["json", "pdf"])
    assert caught.value.code == "report_format_unknown"


def test_options_reach_their_format() -> None:
    files = {
        name: "".join(pieces)
        for name, pieces in render.stream(small(), None, 60, "https://docs.example/x").items()
    }
    assert "rdma_k8s_check_expected_interval_seconds 60\n" in files["rdma_k8s.prom"]
    assert '"docs":"https://docs.example/x/"' in files["report.html"]


def test_an_address_that_is_refused_is_told_before_anything_is_rendered() -> None:
    with pytest.raises(RdmaError) as caught:
        render.stream(small(), None, None, "javascript:x")
    assert caught.value.code == "docs_address_refused"
