# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and objects, judged by the module, run whole in this process. A cluster is asked in tests/cluster."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.report_files import read_result
from ansible_collections.rdma.k8s.plugins.modules import workload_lint
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.lint_cases import POD, base

RULE = "RDMA-WL-013"
OBJECT = yaml.safe_load(POD % ("bad", 0))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m/charts").mkdir(parents=True)
    Path("m/bad.yml").write_text(POD % ("bad", 0), encoding="utf-8")
    Path("m/good.yml").write_text(POD % ("good", 30), encoding="utf-8")
    Path("m/charts/t.yml").write_text("apiVersion: v1\nkind: {{ .Kind }}\n", encoding="utf-8")


def run(**options: Any) -> dict[str, Any]:
    return change_run.run(workload_lint, **{"select": [RULE, "RDMA-TOOL-*"], **options})


def good(**options: Any) -> dict[str, Any]:
    result = run(**options)
    assert "failed" not in result, result
    return result


@pytest.mark.parametrize("check_mode", [False, True])
def test_files(check_mode):
    result = good(paths=["m"], exclude=["charts"], _ansible_check_mode=check_mode)
    (finding,) = result["findings"]
    assert (finding["rule"], finding["status"], finding["source"], finding["line"]) == (
        RULE,
        "fail",
        "m/bad.yml",
        5,
    )
    assert finding["object"] == {"kind": "Pod", "namespace": "ml", "name": "bad"}
    assert finding["path"] == ["spec", "terminationGracePeriodSeconds"]
    assert (result["exit_code"], result["changed"]) == (4, False)
    assert (result["counts"]["fail"], result["counts"]["pass"]) == (1, 1)
    assert (result["looked_at"], result["passed_over"], result["problems"]) == ({"Pod": 2}, {}, [])
    assert "calls" not in result


def test_objects():
    result = good(documents=[OBJECT, {"apiVersion": "v1", "kind": "List", "items": [OBJECT]}])
    assert [(found["source"], found["line"]) for found in result["findings"]] == [("documents", None)] * 2
    assert good(documents=[])["exit_code"] == 0
    assert good(documents=[], strict=True)["exit_code"] == 3


def test_files_and_objects_together():
    assert len(good(paths=["m/bad.yml"], documents=[OBJECT])["findings"]) == 2


def test_nothing_is_refused():
    result = run()
    assert (result["failed"], result["code"]) == (True, "manifests_missing")
    Path("empty").mkdir()
    assert run(paths=["empty"])["code"] == "manifests_missing"


def test_fail_on():
    result = run(paths=["m/bad.yml"], fail_on="error")
    assert (result["failed"], result["code"], result["exit_code"]) == (True, "lint_failed", 4)
    assert result["msg"].startswith(
        "The lint found 1 fail. The first: %s, Pod ml/bad at m/bad.yml:5: " % RULE
    )
    assert len(result["findings"]) == 1
    assert good(paths=["m/bad.yml"], fail_on="critical")["exit_code"] == 0
    assert good(paths=["m/good.yml"], fail_on="info")["exit_code"] == 0
    result = run(documents=[{"apiVersion": "v1", "kind": "ConfigMap"}], fail_on="error", strict=True)
    assert result["msg"] == "The lint looked at nothing: no rule reads one of 1 objects."


def test_a_file_that_cannot_be_read_fails_after_the_others():
    result = run(paths=["m"])
    assert (result["failed"], result["code"], result["exit_code"]) == (True, "manifest_template", 2)
    assert result["msg"].startswith("m/charts/t.yml, line 2: this is a template")
    assert len(result["findings"]) == 1
    assert result["problems"][0]["line"] == 2


def test_waivers():
    text = "# rdma-k8s: waive %s owner=ml by design\n%s" % (RULE, POD % ("bad", 0))
    Path("m/bad.yml").write_text(text, encoding="utf-8")
    result = good(paths=["m/bad.yml"], fail_on="info", strict=True)
    assert result["counts"]["waived"] == 1
    assert result["findings"][0]["waiver"] == {"reason": "by design", "owner": "ml", "expires": ""}


def test_rules_that_do_not_exist():
    assert run(paths=["m/bad.yml"], ignore=["RDMA-XX-*"])["code"] == "check_unknown"


def test_the_result_document_and_sarif():
    options = {"paths": ["m/bad.yml"], "dest": "build/result.json", "sarif": "lint.sarif"}
    planned = good(**options, _ansible_check_mode=True)
    assert planned["changed"] is True
    assert not Path("build").exists()
    assert good(**options)["changed"] is True
    document = read_result("build/result.json")
    assert [row.name for row in document.nodes] == ["Pod ml/bad"]
    assert document.exit_code == 4
    assert json.loads(Path("lint.sarif").read_text())["version"] == "2.1.0"
    Path("build/result.json").write_text(
        Path("build/result.json").read_text().replace(document.created_at, "2020-01-01T00:00:00Z")
    )
    assert good(**options)["changed"] is False
    assert read_result("build/result.json").created_at == "2020-01-01T00:00:00Z"
    Path("m/bad.yml").write_text(POD % ("bad", 5), encoding="utf-8")
    assert good(**options)["changed"] is True
    Path("build/result.json").write_text("nonsense")
    assert good(**options)["changed"] is True


def test_options():
    assert run(documents=[OBJECT], options={"nonsense": 1})["code"] == "lint_option_unknown"
    contents = [copy.deepcopy(document.content) for document in base("oke_job")]
    del contents[0]["spec"]["template"]["spec"]["containers"][0]["securityContext"]
    assert good(documents=contents, select=["RDMA-WL-009"])["counts"]["fail"] == 1
    told = good(documents=contents, select=["RDMA-WL-009"], options={"memlock_unlimited": True})
    assert (told["counts"]["fail"], told["counts"]["skip"]) == (0, 1)


def test_shapes():
    assert run(documents=[OBJECT], shape="BM.NEW.8")["code"] == "shape_unknown"
    assert good(documents=[OBJECT], shape="BM.NEW.8", shapes={"BM.NEW.*": {"rdma_nics": 8}})["findings"]
