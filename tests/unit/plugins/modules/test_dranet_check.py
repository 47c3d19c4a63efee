# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long dranet_check looks again, and what it tells meanwhile; tests/cluster has it on a real API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import news
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import dranet_state
from ansible_collections.rdma.k8s.plugins.modules import dranet_check
from ansible_collections.rdma.k8s.tests.support import change_run

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
PENDING = RdmaError("dranet_not_ready", "2 of 3 pods of dranet are ready.", "Wait.", retryable=True)
BROKEN = RdmaError("dranet_kubernetes_old", "The API server is of version v1.33.", "Update it.")


class Check:
    """The module with looks that a test gives, and what it tells."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[dranet_state.Judgement] = []
        self.paper = folder / "news"
        self.paper.touch()
        monkeypatch.setenv(news.VARIABLE, str(self.paper))
        monkeypatch.setattr(dranet_check, "PAUSE", 0.01)
        monkeypatch.setattr(dranet_check.collect, "collect", lambda *_given: None)
        monkeypatch.setattr(dranet_state, "judge", lambda *_given: self.looks.pop(0))
        config = folder / "kubeconfig"
        config.write_text(json.dumps(CONFIG))
        self.options = {"kubeconfig": str(config), "fail_on_problems": False}


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    return Check(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("problems", "seconds", "told"),
    [
        ([(PENDING,), (PENDING,), ()], 60, "waiting at most 60 s: 2 of 3 pods of dranet are ready\n"),
        ([(PENDING, PENDING), (BROKEN,)], 60, ""),
        ([()], 60, ""),
        ([(PENDING,)], 0, ""),
    ],
)
def test_what_it_waits_for_is_told(check: Check, problems: list[Any], seconds: int, told: str) -> None:
    check.looks = [dranet_state.Judgement(found, (), ()) for found in problems]
    found = change_run.good(dranet_check, timeout=seconds, stage="after", **check.options)
    assert [entry["code"] for entry in found["problems"]] == [error.code for error in problems[-1]]
    assert check.paper.read_text() == told
    assert check.looks == []
