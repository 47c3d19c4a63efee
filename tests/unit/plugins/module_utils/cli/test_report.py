# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s report``: the verdict, its exit code, its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FAULTS = [
    "RDMA-NODE-011",
    "RDMA-NODE-017",
    "RDMA-OCA-012",
    "RDMA-RANGE-010",
    "RDMA-RANGE-012",
    "RDMA-RANGE-013",
]


def test_the_summary_says_what_is_wrong_and_what_to_do(run, recorded):
    out = run("report", recorded).good()
    assert out.startswith("9 nodes, ")
    assert "1 node told nothing\n          gone\n" in out
    assert [check for check in FAULTS if check not in out] == []
    assert "rdma3: MTU 1500." in out
    assert "To do: " in out
    assert max(map(len, out.splitlines())) <= 100
    assert "\x1b" not in out


def test_a_healthy_fleet(run, healthy):
    out = run("report", healthy, "--exit-code", "--skip", "RDMA-RANGE-00*").good()
    assert "2 good" in out
    assert "FAIL" not in out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--exit-code"], 4),
        (["--exit-code", "--threshold", "critical"], 4),
        (["--exit-code", "--threshold", "critical", "--only", "RDMA-NODE-017"], 0),
        (["--exit-code", "--only", "RDMA-NODE-017"], 4),
        (["--exit-code", "--only", "RDMA-NODE-001"], 0),
        (["--exit-code", "--only", "RDMA-NODE-001", "--strict"], 3),
        (["--exit-code", "--only", "RDMA-NODE-017", "--strict"], 4),
        (["--exit-code", "--only", "RDMA-NODE-017", "--skip", "RDMA-NODE-01*", "--no-summary"], 2),
    ],
)
def test_exit_codes(run, recorded, options, code):
    assert run("report", recorded, *options).code == code


@pytest.mark.parametrize("option", [["--strict"], ["--threshold", "info"]])
def test_an_option_without_effect_is_refused(run, recorded, option):
    """A run in CI with --strict alone would pass for ever."""
    assert (
        run("report", recorded, *option).refused()
        == "%s has no effect without --exit-code. Add --exit-code." % option[0]
    )


def test_all_formats_are_written(run, recorded, tmp_path):
    out = run("report", recorded, "--dir", tmp_path / "reports").good()
    names = {"result.json", "junit.xml", "report.md", "report.html", "rdma_k8s.prom"}
    assert {path.name for path in (tmp_path / "reports").iterdir()} == names
    assert out.splitlines()[-1].startswith("Reports in %s: " % (tmp_path / "reports"))
    document = json.loads((tmp_path / "reports" / "result.json").read_text())
    assert document["exit_code"] == 4
    assert len(document["nodes"]) == 9


def test_some_formats_are_written(run, recorded, tmp_path):
    assert run("report", recorded, "--dir", tmp_path, "--format", "json, junit", "--no-summary").good() == ""
    assert {path.name for path in tmp_path.iterdir()} == {"result.json", "junit.xml"}


def test_one_format_goes_to_standard_output(run, recorded):
    document = json.loads(run("report", recorded, "--format", "json").good())
    assert document["kind"] == "rdma.k8s/result"


def test_a_result_document_is_read_back(run, recorded, tmp_path):
    run("report", recorded, "--dir", tmp_path, "--format", "json").good()
    from_file = run("report", tmp_path / "result.json").good()
    assert from_file == run("report", tmp_path).good()  # a directory with reports
    assert from_file.startswith("9 nodes, ")
    assert run("report", tmp_path, "--exit-code").code == 4


@pytest.mark.parametrize("option", [["--only", "X"], ["--set", "mtu=1"], ["--policy", "x"], ["--skip", "X"]])
def test_a_result_document_is_not_judged_again(run, recorded, tmp_path, option):
    run("report", recorded, "--dir", tmp_path, "--format", "json").good()
    assert "is judged already, so %s has no effect" % option[0] in run("report", tmp_path, *option).refused()


def test_settings_are_laid_over_the_policy(run, recorded):
    Path("policy.yml").write_text("mtu: 1500\npod_cidrs: [10.244.0.0/16]\n")
    arguments = (
        "report",
        recorded,
        "--only",
        "RDMA-NODE-017",
        "--exit-code",
        "--no-summary",
        "--policy",
        "policy.yml",
    )
    assert run(*arguments).code == 4  # the NICs have 4220
    out = run("report", recorded, "--only", "RDMA-NODE-017", "--policy", "policy.yml").good()
    assert "MTU 4220" in out
    assert (
        "MTU 4220"
        not in run(
            "report", recorded, "--only", "RDMA-NODE-017", "--policy", "policy.yml", "--set", "mtu=4220"
        ).good()
    )


def test_settings_of_every_kind(run, recorded):
    document = json.loads(
        run(
            "report",
            recorded,
            "--format",
            "json",
            "--set",
            "pod_cidrs=10.244.0.0/16, 10.240.0.0/13",
            "--set",
            "max_age=600",
            "--set",
            'shapes={"BM.NEW.1": {"rdma_nics": 1}}',
            "--set",
            "netns_mode=shared",
        ).good()
    )
    assert document["settings"]["pod_cidrs"] == "10.244.0.0/16, 10.240.0.0/13"
    assert document["settings"]["max_age"] == "600"


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("mtu", "--set 'mtu' must be KEY=VALUE."),
        ("=1", "--set '=1' must be KEY=VALUE."),
        ("mtu=big", "--set mtu: 'big' is not a whole number."),
        ("mtu=\u0661", "is not a whole number."),
        ("chld_range=10.0.0.0/8", "did you mean child_range?"),
        ("shapes=x", "the value must be JSON"),
        ("shapes={", "--set shapes: the value is not JSON"),
        ("netns_mode=both", "policy.netns_mode must be one of shared, exclusive, found 'both'."),
        ("pod_cidrs=10.244.0.0", "'10.244.0.0' is not a network"),
    ],
)
def test_bad_settings(run, recorded, setting, sentence):
    assert sentence in run("report", recorded, "--set", setting).refused()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "is not YAML"),
        ("- a\n", "The policy must be a map of settings, found list."),
        ("child_rnge: x\n", "policy has a key 'child_rnge' that is not known."),
        (
            "waivers: [{check: A, reason: r, owner: o, expires: soon}]\n",
            "must be a date YYYY-MM-DD, found 'soon'",
        ),
        ("checks: [{id: ACME-1, title: t, expression: 'a ['}]\n", "The expression of ACME-1 is not JMESPath"),
    ],
)
def test_bad_policies(run, recorded, text, sentence):
    Path("policy.yml").write_text(text)
    assert sentence in run("report", recorded, "--policy", "policy.yml").refused()


def test_a_missing_policy(run, recorded):
    assert (
        run("report", recorded, "--policy", "nowhere.yml")
        .refused()
        .startswith("The policy nowhere.yml cannot be read: ")
    )


def test_own_checks_and_waivers(run, recorded):
    Path("policy.yml").write_text(
        "checks: [{id: ACME-001, title: Kernel is new, expression: 'host.kernel > `6`', severity: error}]\n"
        "waivers: [{check: RDMA-NODE-017, node: n1, reason: known, owner: me, expires: '2999-01-01'}]\n"
    )
    out = run("report", recorded, "--policy", "policy.yml", "--only", "RDMA-NODE-017").good()
    assert "1 finding waived" in out
    assert "ACME-001" in out


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (["--format", "jsn"], "There is no report format 'jsn'; did you mean json?"),
        (["--format", "json,html"], "Standard output takes one format."),
        (["--format", ","], "--format names no format."),
        (["--only", "RDMA-NODE-999"], "No check has an id like 'RDMA-NODE-999'."),
        (["--only", "RDMA-NODE-017", "--skip", "*"], "leave no check"),
    ],
)
def test_bad_options(run, recorded, option, sentence):
    assert sentence in run("report", recorded, *option).refused()


def test_reports_do_not_go_between_the_snapshots(run, recorded):
    before = sorted(recorded.iterdir())
    assert (
        "--dir is the directory of the snapshots"
        in run("report", recorded, "--dir", recorded / ".").refused()
    )
    assert sorted(recorded.iterdir()) == before


def test_a_directory_that_cannot_be_written(run, recorded):
    Path("file").write_text("x")
    assert "cannot be written" in run("report", recorded, "--dir", "file/reports").refused()


def test_one_snapshot(run, recorded):
    assert run("report", recorded / "n1.json").good().startswith("1 node, ")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.json", b"{", "x.json is neither JSON nor a bundle: "),
        ("x.json", b"\xff\xfe", "x.json is neither JSON nor a bundle: it is not UTF-8."),
        ("x.json", b'{"kind": "other"}', "x.json is no result document: its 'kind' is \"other\""),
        (
            "x.json",
            b'{"kind": "rdma.k8s/result", "schema_version": 99, "created_at": ""}',
            "has schema version 99",
        ),
        (
            "x.json",
            b'{"name": "a", "schema_version": 2}',
            "The snapshot of a has schema version 2; this release reads",
        ),
        ("x.json", b'{"name": 7}', "x.json: snapshot.name must be a text, found 7."),
        ("x.json", b"[" * 100000, "nested too deeply"),
        ("x.json", b"", "x.json is neither JSON nor a bundle: "),
        ("x.json", b"null", "snapshot must be an object, found None."),
    ],
)
def test_bad_files(run, name, content, sentence):
    Path(name).write_bytes(content)
    assert sentence in run("report", name).refused()


def test_bad_files_in_a_directory(run, recorded, tmp_path):
    for path in recorded.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "zz.json").write_text("{")
    assert run("report", tmp_path).refused().startswith("%s is not JSON: " % (tmp_path / "zz.json"))


def test_two_snapshots_of_one_node(run, recorded, tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes((recorded / "n1.json").read_bytes())
    assert "Two snapshots have the node name 'n1'." in run("report", tmp_path).refused()


def test_nothing_to_judge(run, tmp_path):
    assert "holds no recorded snapshot" in run("report", tmp_path).refused()
    assert "nowhere cannot be read: No such file or directory." in run("report", "nowhere").refused()
    assert "cannot be read" in run("report", "a\0b").refused()


def test_text_that_could_harm_a_terminal(run, recorded, tmp_path):
    snapshot = json.loads((recorded / "n1.json").read_text())
    snapshot["name"] = "evil\x1b[2J\u202e"
    (tmp_path / "x.json").write_text(json.dumps(snapshot))
    out = run("report", tmp_path).good()
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "evil" in out
