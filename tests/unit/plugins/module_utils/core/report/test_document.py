# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result document: counts, its catalogue, and what it refuses to read."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.tests.support.results import small


def test_counts_tell_waived_results_apart() -> None:
    assert small().counts() == {"pass": 1, "fail": 2, "warn": 1, "skip": 1, "unknown": 3, "waived": 1}


def test_check_info() -> None:
    info = small().check_info("RDMA-OCA-012")
    assert info is not None
    assert info.title == "Address is as derived"
    assert small().check_info("RDMA-OCA-999") is None


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"kind": "other"}, "result_not_a_result", None),
        ({"schema_version": 2}, "result_newer_schema", None),
        ({"created_at": 7}, "document_malformed", "result.created_at"),
        ({"findings": [{"check": "c", "node": "n"}]}, "document_malformed", "result.findings[0].status"),
        (
            {"nodes": [{"name": "n", "nics": [{"index": "0"}]}]},
            "document_malformed",
            "result.nodes[0].nics[0].index",
        ),
        ({"settings": {"a": 1}}, "document_malformed", "result.settings.a"),
    ],
)
def test_a_document_that_is_wrong_is_refused(changes: dict[str, Any], code: str, where: str | None) -> None:
    with pytest.raises(RdmaError) as caught:
        ResultDocument.from_dict({**small().to_dict(), **changes})
    assert caught.value.code == code
    assert caught.value.details.get("where") == where


def test_keys_that_are_not_known_are_ignored() -> None:
    assert ResultDocument.from_dict({**small().to_dict(), "later": {"x": 1}}) == small()
