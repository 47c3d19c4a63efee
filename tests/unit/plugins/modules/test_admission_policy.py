# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module without a cluster: what it renders. With one it is tried in tests/cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import admission
from ansible_collections.rdma.k8s.plugins.modules import admission_policy
from ansible_collections.rdma.k8s.tests.support import change_run, module_run


def rendered(**options: Any) -> dict[str, Any]:
    """The return values of `state: rendered`."""
    return module_run.good(admission_policy, state="rendered", **options)


def test_the_manifest_is_the_documents() -> None:
    found = rendered(action="deny", audit=True, prefix="mine")
    settings = admission.settings(prefix="mine", actions=("deny", "audit"))
    assert found["objects"] == admission.documents(settings)
    assert list(yaml.safe_load_all(found["manifest"])) == found["objects"]
    assert found["actions"] == []


def test_the_rules_tell_what_they_do() -> None:
    rules = {(rule["code"], rule["verdict"]) for rule in rendered(action="deny")["rules"]}
    assert {("claim_passthrough", "deny"), ("claim_passthrough", "warn"), ("pod_gid_index", "warn")} <= rules
    assert {rule["verdict"] for rule in rendered()["rules"]} == {"warn"}


def test_the_file_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    options = {"state": "rendered", "path": str(path)}
    assert change_run.run(admission_policy, _ansible_check_mode=True, **options)["changed"] is True
    assert not path.exists()
    assert change_run.run(admission_policy, **options)["changed"] is True
    assert change_run.run(admission_policy, **options)["changed"] is False
    assert len(list(yaml.safe_load_all(path.read_text(encoding="utf-8")))) == 8
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_wrong_rule_ends_the_run() -> None:
    found = module_run.failure(admission_policy, state="rendered", skip_rules=["nonsense"])
    assert found["code"] == "rule_unknown"
