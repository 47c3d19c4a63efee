# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin that writes reports: files, check mode, comparisons, mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.rdma.k8s.plugins.action import report
from ansible_collections.rdma.k8s.plugins.module_utils import progress, report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import diff, render
from ansible_collections.rdma.k8s.plugins.modules import report as documentation
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing
from ansible_collections.rdma.k8s.tests.support.action_plugin import made, task_of
from ansible_collections.rdma.k8s.tests.support.results import small
from ansible_collections.rdma.k8s.tests.unit.plugins.action.test_watching import PATIENCE, Screen


def run(check_mode: bool = False, **args: Any) -> dict[str, Any]:
    return made(report.ActionModule, task_of(args, check_mode=check_mode)).run(task_vars={})


def refused(**args: Any) -> str:
    with pytest.raises(AnsibleError) as caught:
        run(**args)
    assert caught.value.__cause__ is None  # Ansible would show the sentence twice
    return str(caught.value)


@pytest.fixture(name="result")
def result_fixture(tmp_path: Path) -> str:
    report_files.write_reports(small(), str(tmp_path / "judged"), ["json"])
    return str(tmp_path / "judged" / "result.json")


def test_all_formats_and_nothing_to_do_the_second_time(result: str, tmp_path: Path) -> None:
    dest = tmp_path / "reports"
    first = run(result=result, dest=str(dest))
    assert first["changed"] is True
    assert {Path(file["path"]).name for file in first["files"]} == set(render.FILES.values())
    assert {path.name for path in dest.iterdir()} == set(render.FILES.values())
    assert all(Path(file["path"]).stat().st_size == file["size"] for file in first["files"])
    second = run(result=result, dest=str(dest))
    assert second["changed"] is False
    assert not any(file["changed"] for file in second["files"])
    assert "changes" not in second


def test_check_mode_tells_and_writes_nothing(result: str, tmp_path: Path) -> None:
    dest = tmp_path / "reports"
    told = run(check_mode=True, result=result, dest=str(dest))
    assert told["changed"] is True
    assert not dest.exists()
    run(result=result, dest=str(dest))
    assert run(check_mode=True, result=result, dest=str(dest))["changed"] is False


def test_options_reach_the_reports(result: str, tmp_path: Path) -> None:
    run(
        result=result,
        dest=str(tmp_path),
        formats=["textfile", "html"],
        expected_interval=60,
        docs="https://d.example",
    )
    assert "rdma_k8s_check_expected_interval_seconds 60\n" in (tmp_path / "rdma_k8s.prom").read_text()
    assert '"docs":"https://d.example/"' in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "report.md").exists()


def test_what_changed_since_earlier_documents(result: str, tmp_path: Path) -> None:
    older = replace(
        small(), created_at="2026-03-01T09:30:00Z", findings=(Finding("RDMA-NODE-001", "n1", "pass"),)
    )
    report_files.write_reports(older, str(tmp_path / "older"), ["json"])
    told = run(
        result=result,
        dest=str(tmp_path),
        formats=["json"],
        previous=[str(tmp_path / "older" / "result.json")],
    )
    assert list(told["changes"]) == list(diff.KINDS)
    assert told["changes"]["new"] > 0
    assert json.loads((tmp_path / "changes.json").read_text())["counts"] == told["changes"]
    assert (tmp_path / "changes.md").read_text().startswith("# RDMA conformance: what changed\n")


def test_mistakes_are_one_sentence_and_write_nothing(result: str, tmp_path: Path) -> None:
    dest = tmp_path / "reports"
    missing = str(tmp_path / "none.json")
    assert "none.json cannot be read: No such file or directory." in refused(result=missing, dest=str(dest))
    assert "none.json cannot be read" in refused(result=result, dest=str(dest), previous=[missing])
    assert "http, https or a relative path" in refused(
        result=result, dest=str(dest), docs="javascript:alert(1)"
    )
    assert "value of formats must be one or more of" in refused(
        result=result, dest=str(dest), formats=["pdf"]
    )
    assert "missing required arguments: dest" in refused(result=result)
    assert not dest.exists()


def test_slow_work_is_told_beside_the_output(
    result: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen()
    written = report_files.write_files

    def slow(*given: Any, **options: Any) -> Any:
        screen.told.clear()
        assert screen.told.wait(PATIENCE), "nothing was displayed"
        return written(*given, **options)

    monkeypatch.setattr(report_files, "write_files", slow)
    monkeypatch.setattr(showing.progress, "Progress", partial(progress.Progress, pause=0.02))
    monkeypatch.setattr(showing, "show", lambda _display, *told, **options: screen.display(*told, **options))
    run(result=result, dest=str(tmp_path))
    text, options = screen.shown[-1]
    assert text == "rdma.k8s.report: still writing the reports of 4 nodes, 0 s so far"
    assert options == {"stderr": True}


def test_the_documentation_names_options_and_results(result: str, tmp_path: Path) -> None:
    options = yaml.safe_load(documentation.DOCUMENTATION)["options"]
    assert set(options) == set(report.ARGUMENT_SPEC)
    for name, spec in report.ARGUMENT_SPEC.items():
        for key in ("default", "choices", "elements", "type", "required"):
            assert options[name].get(key) == spec.get(key), (name, key)
    told = run(result=result, dest=str(tmp_path), previous=[result])
    described = yaml.safe_load(documentation.RETURN)
    assert set(told) - {"changed"} == set(described)
    assert set(told["files"][0]) == set(described["files"]["contains"])
