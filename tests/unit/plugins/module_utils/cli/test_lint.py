# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s lint``: what it reads, what it prints, how it ends."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils import manifest_files
from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import TARGETS
from ansible_collections.rdma.k8s.tests.support.lint_cases import POD

COLLECTION = Path(__file__).resolve().parents[5]
ONLY = ("--select", "RDMA-WL-013", "--select", "RDMA-TOOL-003")


@pytest.fixture
def manifests(tmp_path, monkeypatch):
    """A directory ``m`` with a bad and a good manifest, where the tests run."""
    monkeypatch.chdir(tmp_path)
    Path("m/deep").mkdir(parents=True)
    Path("m/.hidden").mkdir()
    Path("m/bad.yml").write_text(POD % ("bad", 0), encoding="utf-8")
    Path("m/deep/good.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "ConfigMap"}), encoding="utf-8"
    )
    Path("m/deep/good.yaml").write_text(POD % ("good", 30), encoding="utf-8")
    Path("m/.hidden/bad.yml").write_text(POD % ("hidden", 0), encoding="utf-8")
    Path("m/readme.txt").write_text("apiVersion: [", encoding="utf-8")
    return tmp_path


def standard_input(monkeypatch, text):
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_text(run, manifests):
    """File and line, rule, object; the sentence with its place; values; what to do; and what was looked at."""
    (finding,) = json.loads(run("lint", "m", *ONLY, "--format", "json").good())["findings"]
    sentence = "spec.terminationGracePeriodSeconds: %s" % finding["message"]
    values = "Expected %s; observed %s." % (finding["expected"], finding["observed"])
    expected = [
        "m/bad.yml:5: FAIL RDMA-WL-013 Pod ml/bad",
        *textwrap.wrap(sentence, 100, initial_indent="    ", subsequent_indent="    "),
        "    " + values,
        *textwrap.wrap("To do: " + finding["hint"], 100, initial_indent="    ", subsequent_indent="    "),
        "",
        "Looked at 2 objects in 3 files: Pod 2.",
        "1 fail, 1 pass",
        "Passed over 1 other object: ConfigMap 1.",
    ]
    assert run("lint", "m", *ONLY).good().splitlines() == expected


def test_the_remedy_is_said_once(run, manifests):
    out = run("lint", "m/bad.yml", "m/.hidden/bad.yml", "m/bad.yml", *ONLY).good()
    assert (out.count("FAIL"), out.count("To do:")) == (2, 1)


def test_exit_codes(run, manifests):
    assert run("lint", "m", *ONLY).code == 0
    assert run("lint", "m", *ONLY, "--exit-code").code == 4
    assert run("lint", "m", *ONLY, "--exit-code", "--threshold", "critical").code == 0
    assert run("lint", "m/deep", *ONLY, "--exit-code", "--strict").code == 0
    assert run("lint", "m/deep/good.json", "--exit-code").code == 0
    assert run("lint", "m/deep/good.json", "--exit-code", "--strict").code == 3
    assert "has no effect without --exit-code" in run("lint", "m", "--strict").refused()
    assert "did you mean" in run("lint", "m", "--select", "RDMA-WL-01").refused()


def test_nothing_to_look_at_is_said(run, manifests):
    out = run("lint", "m/deep/good.json").good()
    assert out == (
        "Looked at nothing: no rule reads an object in 1 file.\nPassed over 1 other object: ConfigMap 1.\n"
    )


def test_a_text_without_objects_is_not_read(run, manifests):
    Path("m/values.yml").write_text("a: [\n{{ nonsense", encoding="utf-8")
    assert run("lint", "m/values.yml").good() == "Looked at nothing: no rule reads an object in 1 file.\n"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_standard_input_is_refused(run, monkeypatch, text):
    standard_input(monkeypatch, text)
    assert run("lint", "-").refused().startswith("There is no manifest to look at in standard input.")


def test_a_directory_without_manifests_is_refused(run, manifests):
    Path("empty").mkdir()
    assert "There is no manifest to look at in empty." in run("lint", "empty").refused()
    assert (
        "no manifest to look at in m"
        in run("lint", "m", "--exclude", "*.y*ml", "--exclude", "m/deep").refused()
    )


def test_exclude(run, manifests):
    assert "Looked at 1 object in 1 file" in run("lint", "m", *ONLY, "--exclude", "deep").good()
    assert "Looked at 1 object in 2 files" in run("lint", "m", *ONLY, "--exclude", "m/bad.*").good()


@pytest.mark.parametrize("pattern", ["m/deep/", "./m/deep", "m//deep", "deep/"])
@pytest.mark.parametrize("path", ["m", "./m/"])
def test_the_spelling_of_a_path_does_not_matter_to_exclude(run, manifests, path, pattern):
    assert "Looked at 1 object in 1 file" in run("lint", path, *ONLY, "--exclude", pattern).good()


def test_a_file_is_read_once(run, manifests):
    Path("m/link.yml").symlink_to("bad.yml")
    out = run("lint", "m/bad.yml", "./m/bad.yml", str(manifests / "m"), *ONLY).good()
    assert out.count("FAIL") == 1
    assert "Looked at 2 objects in 3 files" in out


def test_names_in_upper_case(run, manifests):
    Path("m/bad.yml").rename("m/BAD.YML")
    assert "m/BAD.YML:5: FAIL" in run("lint", "m", *ONLY).good()


def test_what_is_no_regular_file_is_told(run, manifests):
    """A pipe below a directory would be waited for without end."""
    os.mkfifo("m/pipe.yml")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("m/socket.yml")
        Path("m/zero.json").symlink_to("/dev/zero")
        result = run("lint", "m", *ONLY)
    assert result.code == 2
    assert [line.partition(".\n")[0] for line in result.err.splitlines() if "rdma-k8s:" in line] == [
        "rdma-k8s: The manifest m/%s cannot be read: it is no regular file. %s" % (name, manifest_files._HINT)
        for name in ("pipe.yml", "socket.yml", "zero.json")
    ]
    assert "m/bad.yml:5: FAIL" in result.out


def test_a_file_that_becomes_a_pipe(run, manifests, monkeypatch):
    """Between the look and the opening."""
    os.mkfifo("m/pipe.yml")
    monkeypatch.setattr(manifest_files.stat, "S_ISREG", bool)
    assert run("lint", "m", *ONLY).code == 0


def test_a_directory_that_cannot_be_read_is_told(run, manifests, monkeypatch):
    walk = os.scandir

    def refuse(path):
        if str(path).endswith("deep"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return walk(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = run("lint", "m", *ONLY)
    assert result.code == 2
    assert "The manifest m/deep cannot be read: Permission denied." in result.err
    assert "m/bad.yml:5: FAIL" in result.out


def test_standard_input(run, monkeypatch):
    standard_input(monkeypatch, POD % ("bad", 0))
    assert "-:5: FAIL RDMA-WL-013 Pod ml/bad\n" in run("lint", "-", *ONLY).good()


def test_what_cannot_be_read_is_told_and_the_rest_is_judged(run, manifests):
    Path("m/chart.yml").write_text("apiVersion: v1\nkind: {{ .Kind }}\n", encoding="utf-8")
    Path("m/cut.yml").write_text("apiVersion: v1\na: [\n", encoding="utf-8")
    Path("m/latin.yml").write_bytes(b"apiVersion: \xe4")
    result = run("lint", "m", "missing.yml", *ONLY, "--exit-code")
    assert result.code == 2
    assert "FAIL RDMA-WL-013" in result.out
    assert "4 files could not be read.\n" in result.out
    lines = result.err.splitlines()
    assert [line[: line.index(":", 10)] for line in lines] == [
        "rdma-k8s: m/chart.yml, line 2",
        "rdma-k8s: m/cut.yml, line 3",
        "rdma-k8s: The manifest m/latin.yml cannot be read",
        "rdma-k8s: The manifest missing.yml cannot be read",
    ]
    sarif = json.loads(run("lint", "m", *ONLY, "--format", "sarif").out)
    assert len(sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"]) == 3


def test_a_file_that_is_too_large(run, manifests, monkeypatch):
    monkeypatch.setattr(manifest_files, "MAX_BYTES", 10)
    assert "m/bad.yml cannot be read: it is larger than 0 MiB" in run("lint", "m/bad.yml").err


def test_waivers_are_shown(run, manifests):
    text = "# rdma-k8s: waive RDMA-WL-013 until=2999-01-01 owner=ml ends at once by design\n" + POD % (
        "bad",
        0,
    )
    Path("m/bad.yml").write_text(text, encoding="utf-8")
    result = run("lint", "m/bad.yml", *ONLY, "--exit-code")
    assert result.code == 0
    assert "m/bad.yml:6: WAIVED RDMA-WL-013 Pod ml/bad\n" in result.out
    assert "    Waived until 2999-01-01 by ml: ends at once by design\n" in result.out
    assert "no result, 1 waived\n" in result.out


def test_json(run, manifests):
    document = json.loads(run("lint", "m", *ONLY, "--format", "json").good())
    assert (document["kind"], document["exit_code"]) == ("rdma.k8s/lint", 4)
    assert [(found["source"], found["line"]) for found in document["findings"]] == [("m/bad.yml", 5)]


def test_output_to_a_file(run, manifests):
    out = run("lint", "m", *ONLY, "--format", "sarif", "--output", "lint.sarif").good()
    assert "FAIL RDMA-WL-013" in out
    assert json.loads(Path("lint.sarif").read_text())["version"] == "2.1.0"
    assert Path("lint.sarif").stat().st_mode & 0o777 == 0o644
    out = run("lint", "m", *ONLY, "--output", "lint.txt").good()
    assert Path("lint.txt").read_text() == out
    assert run("lint", "m", *ONLY, "--output", "-").good() == out
    found = json.loads(run("lint", "m", *ONLY, "--format", "json", "--output", "-").good())
    assert found["kind"] == "rdma.k8s/lint"
    assert not Path("-").exists()
    assert "--output names a directory" in run("lint", "m", "--output", "m/").refused()


def test_the_result_is_one_that_report_reads(run, manifests):
    run("lint", "m", *ONLY, "--format", "result", "--output", "result.json").good()
    out = run("report", "result.json").good()
    assert "RDMA-WL-013" in out
    assert "Pod ml/bad" in out
    assert run("report", "result.json", "--exit-code").code == 4


def test_lines_fit(run, manifests):
    Path("long.yml").write_text(POD % ("x" * 60, 0), encoding="utf-8")
    assert max(map(len, run("lint", "long.yml", *ONLY).good().splitlines())) <= 100


def test_names_cannot_harm_the_terminal(run, manifests):
    Path("evil.yml").write_text(POD % (json.dumps("\x1b[31mred\n"), 0), encoding="utf-8")
    out = run("lint", "evil.yml", *ONLY).good()
    assert "\x1b" not in out
    assert "Pod ml/\ufffd[31mred\n" in out


def test_options(run, manifests):
    taints = 'taints=[{"key": "a"}]'
    assert run("lint", "m", "--option", "memlock_unlimited=true", "--option", taints).good()
    for option, sentence in {
        "memlock": "--option 'memlock' must be NAME=VALUE.",
        "taints=[": "--option taints: the value is not JSON",
        "memlock_unlimited=yes": "The option memlock_unlimited must be a boolean",
        "nonsense=1": "The lint has no option",
    }.items():
        assert sentence in run("lint", "m", "--option", option).refused()


def test_an_unknown_shape_is_refused(run, manifests):
    assert run("lint", "m", *ONLY, "--shape", "BM.GPU.H100.8").good()
    sentence = run("lint", "m", "--shape", "BM.GPU.H1000.8").refused()
    assert "The shape 'BM.GPU.H1000.8' is not in the table of shapes; did you mean BM.GPU.H100.8?" in sentence


def test_rules_are_listed_and_explained(run, healthy):
    assert "RDMA-WL-013" in run("checks", "RDMA-WL-*").good()
    (document,) = json.loads(run("checks", "RDMA-WL-013", "--format", "json").good())
    assert document["scope"] == "manifest"
    out = run("explain", "wl-013").good()
    assert out.startswith("RDMA-WL-013  Pods with claims get time to end\n")
    assert "docs/checks/wl.md#rdma-wl-013" in out
    refused = run("explain", "WL-013", "--node", "n0", "--snapshots", healthy).refused()
    assert refused.startswith("RDMA-WL-013 is a rule about manifests, so no node has a verdict.")


def test_the_targets_are_those_of_the_lint():
    assert arguments.TARGETS == TARGETS


def test_a_pipe_is_read(command, manifests):
    """Process substitution gives a file that can be read once."""
    words, environment = command
    shell = 'exec "$@" lint <(cat m/bad.yml) --exit-code --select RDMA-WL-013'
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stderr


def test_the_hook_of_pre_commit(program, manifests):
    """The declared entry, run with files as pre-commit hands them over: it stops the commit at a failure only."""
    (hook,) = yaml.safe_load((COLLECTION / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    command, *words = hook["entry"].split()
    scripts = (COLLECTION / "pyproject.toml").read_text(encoding="utf-8").partition("[project.scripts]")[2]
    assert '%s = "rdma_k8s.cli.main:main"' % command in scripts.partition("[tool.")[0]
    assert hook["language"] == "python"
    assert hook["types_or"] == ["yaml", "json"]
    bad, good = str(manifests / "m/bad.yml"), str(manifests / "m/deep/good.yaml")
    other = str(manifests / "m/deep/good.json")
    assert program(*words, *ONLY, good, other).code == 0
    assert program(*words, *ONLY, other).code == 0  # a commit without workloads
    stopped = program(*words, *ONLY, good, bad)
    assert stopped.code == 4
    assert "%s:5: FAIL" % bad in stopped.out
