# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s certificate``: issued for the nodes of a recording, verified with and without it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import sources

POLICY = "pod_cidrs: [10.240.0.0/12]\n"


@pytest.fixture
def certificates(run, recorded) -> Path:
    """Certificates of the small fleet."""
    Path("policy.yml").write_text(POLICY)
    run("certificate", "issue", recorded, "--policy", "policy.yml", "--output", "out").good()
    return Path("out")


def edited(path: Path, **change: Any) -> Path:
    """The same file with other values, beside it."""
    document = {**json.loads(path.read_text()), **change}
    other = path.with_name("edited.json")
    other.write_text(json.dumps(document))
    return other


def test_one_file_for_each_node(run, recorded, certificates):
    names = {"n0", "n1", "n2", "n3", "n-odd", "hpc", "ib", "v6", "gone"}
    assert {path.name for path in certificates.iterdir()} == {name + ".certificate.json" for name in names}
    verdicts = {
        path.name.split(".")[0]: json.loads(path.read_text())["verdict"] for path in certificates.iterdir()
    }
    assert verdicts["ib"] == "conformant"
    assert verdicts["n1"] == "not_conformant"
    assert verdicts["gone"] == "not_told"
    document = json.loads((certificates / "ib.certificate.json").read_text())
    assert document["versions"]["kernel"]
    assert document["runs"][0]["settings"]["pod_cidrs"] == "10.240.0.0/12"


@pytest.mark.parametrize(("node", "code"), [("ib", 0), ("n1", 4), ("gone", 3)])
def test_exit_code_of_issue(run, recorded, node, code):
    words = ("certificate", "issue", recorded, "--node", node, "--output", "out")
    assert run(*words).code == 0
    found = run(*words, "--exit-code")
    assert (found.code, found.err) == (code, "")
    assert [path.name for path in Path("out").iterdir()] == [node + ".certificate.json"]


def test_verify(run, recorded, certificates):
    out = run("certificate", "verify", certificates / "ib.certificate.json").good()
    assert out.startswith("GOOD      ib, conformant\n")
    found = run("certificate", "verify", certificates / "n1.certificate.json")
    assert found.code == 4
    assert "REFUSED   n1, not conformant" in found.out
    assert "RDMA-NODE-017" in found.out


def test_verify_judges_again(run, recorded, certificates):
    words = ("certificate", "verify", certificates / "ib.certificate.json", "--snapshots", recorded)
    assert "judged again for" in run(*words, "--policy", "policy.yml").good()
    found = run(*words, "--set", "mtu=9000", "--set", "fabric=ipv4")
    assert found.code == 4
    assert "in the certificate." in found.out


def test_a_recording_is_judged_once_for_however_many_certificates(run, recorded, certificates, monkeypatch):
    judged, times = sources.judged, []

    def counted(source, policy):
        times.append(source.judged_at)
        return judged(source, policy)

    monkeypatch.setattr(sources, "judged", counted)
    files = sorted(certificates.iterdir())
    found = run("certificate", "verify", *files, "--snapshots", recorded, "--policy", "policy.yml")
    assert (
        found.out.count("judged again for") == len(files) - 1
    )  # that of the node that is gone has no snapshot
    issued = json.loads(files[0].read_text())
    assert times == ["", issued["runs"][0]["judged_at"]]


def test_another_recording(run, recorded, certificates):
    shutil.copytree(recorded, "other")
    changed = json.loads(Path("other/ib.json").read_text())
    changed["host"]["kernel"] = "6.9"
    Path("other/ib.json").write_text(json.dumps(changed))
    words = ("certificate", "verify", certificates / "ib.certificate.json", "--snapshots", "other")
    found = run(*words)
    assert found.code == 4
    assert "is not one that the certificate rests on" in " ".join(found.out.split())
    Path("other/ib.json").unlink()
    found = run(*words)
    assert found.code == 4
    assert "No snapshot of ib is recorded in other." in found.out


def test_a_changed_certificate(run, certificates):
    found = run("certificate", "verify", edited(certificates / "ib.certificate.json", shape="other"))
    assert found.code == 4
    assert "The digest is not that of the content" in found.out


def test_results_of_two_runs(run, recorded, certificates):
    run("report", recorded, "--dir", "reports", "--only", "RDMA-NODE-*", "--format", "json").good()
    run("certificate", "issue", recorded, "reports/result.json", "--node", "ib", "--output", "both").good()
    document = json.loads(Path("both/ib.certificate.json").read_text())
    assert len(document["runs"]) == 2
    run("certificate", "verify", "both/ib.certificate.json", "--snapshots", recorded).good()


def test_days(run, recorded):
    run("certificate", "issue", recorded, "--node", "ib", "--days", "90", "--output", "out").good()
    path = Path("out/ib.certificate.json")
    assert "valid until" in run("certificate", "verify", path).good()
    assert json.loads(path.read_text())["valid_until"] > json.loads(path.read_text())["issued_at"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("issue", "SNAPSHOTS"), "Say where the certificates go."),
        (("issue", "SNAPSHOTS", "--output", "x", "--snapshots", "y"), "--snapshots belongs to verify."),
        (("issue", "SNAPSHOTS", "--output", "x", "--node", "n9"), "No source has a node 'n9'"),
        (("issue", "SNAPSHOTS", "--output", "x", "--days", "-1"), "--days must be a whole number"),
        (("issue", "SNAPSHOTS", "--output", "x", "--days", "9999"), "--days must be a whole number"),
        (("issue", "result.json", "--output", "x", "--set", "mtu=1"), "The sources are judged already"),
        (("verify", "CERTIFICATE", "--output", "x"), "--output belongs to issue."),
        (("verify", "CERTIFICATE", "--days", "3"), "--days belongs to issue."),
        (("verify", "CERTIFICATE", "--exit-code"), "--exit-code belongs to issue."),
        (("verify", "CERTIFICATE", "--set", "mtu=1"), "--policy has no effect without --snapshots."),
        (("verify", "nowhere.json"), "The certificate nowhere.json cannot be read: No such file"),
        (("verify", "policy.yml"), "The certificate policy.yml cannot be read"),
        (("verify", "result.json"), "result.json: This is no certificate"),
        (("revoke", "x"), "invalid choice"),
    ],
)
def test_refused(run, recorded, certificates, words, sentence):
    run("report", recorded, "--dir", ".", "--format", "json").good()
    named = {"SNAPSHOTS": recorded, "CERTIFICATE": certificates / "ib.certificate.json"}
    assert sentence in run("certificate", *[named.get(word, word) for word in words]).refused()
