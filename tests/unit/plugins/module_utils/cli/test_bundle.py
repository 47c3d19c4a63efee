# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s bundle``: the same bytes for the same content, nothing secret in it, read back without trust."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.cli import archive
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import fleet

POLICY = "child_range: 10.208.0.0/12\npod_cidrs: [10.240.0.0/12]\nmax_age: 600\n"


@pytest.fixture
def bundle(run, recorded) -> Path:
    """A bundle with policy and result, beside the result."""
    Path("policy.yml").write_text(POLICY)
    run("report", recorded, "--policy", "policy.yml", "--dir", "out", "--format", "json").good()
    run(
        "bundle", recorded, "--policy", "policy.yml", "--result", "out/result.json", "--output", "case.tar.gz"
    ).good()
    return Path("case.tar.gz").resolve()


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def repacked(content: dict[str, Any], kind: bytes = tarfile.REGTYPE, link: str = "") -> Path:
    """An archive with these members; a value that is no bytes is written as JSON."""
    path = Path("other.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        for name, value in content.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            member.size = len(data) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(data))
    return path


MANIFEST = {"kind": archive.KIND, "schema_version": 1, "judged_at": ""}
TOP = archive.TOP


def test_what_is_in_it(run, recorded, bundle):
    found = members(bundle)
    names = {"n0", "n1", "n2", "n3", "n-odd", "hpc", "ib", "v6", "gone"}
    assert set(found) == {
        *["%s/%s.json" % (TOP, name) for name in ("manifest", "policy", "result")],
        *["%s/snapshots/%s.json" % (TOP, name) for name in names],
    }
    manifest = json.loads(found[TOP + "/manifest.json"])
    result = json.loads(Path("out/result.json").read_text())
    assert manifest == {
        "kind": "rdma.k8s/bundle",
        "schema_version": 1,
        "collection_version": result["collection_version"],
        "collectors": ["0.1.0"],
        "judged_at": result["created_at"],
        "nodes": 9,
    }
    assert json.loads(found[TOP + "/policy.json"]) == {"max_age": 600, "pod_cidrs": ["10.240.0.0/12"]}


def test_the_same_content_gives_the_same_bytes(run, recorded, bundle):
    os.utime(recorded / "n1.json", (1, 1))
    run(
        "bundle",
        recorded,
        "--policy",
        "policy.yml",
        "--result",
        "out/result.json",
        "--output",
        "again.tar.gz",
    ).good()
    assert Path("again.tar.gz").read_bytes() == bundle.read_bytes()
    with tarfile.open(bundle) as tar:
        found = {
            (member.mtime, member.uid, member.gid, member.uname, member.gname, member.mode) for member in tar
        }
    assert found == {(0, 0, 0, "", "", 0o600)}
    assert bundle.stat().st_mode & 0o777 == 0o600


def test_it_replays(run, recorded, bundle):
    """The verdict of the site, with its policy and at its time, so that age and waivers count as they did."""
    here = run("report", "out/result.json").good()
    assert run("report", bundle).good() == here
    replayed = json.loads(run("report", bundle, "--format", "json").good())
    assert replayed == json.loads(Path("out/result.json").read_text())
    assert run("report", bundle, "--exit-code").code == 4


def test_other_settings_for_a_bundle(run, bundle):
    assert "MTU 4220" in run("report", bundle, "--set", "mtu=1500", "--only", "RDMA-NODE-017").good()
    Path("policy.yml").write_text("mtu: 1500\n")
    document = json.loads(run("report", bundle, "--policy", "policy.yml", "--format", "json").good())
    assert "pod_cidrs" not in document["settings"]


def test_other_commands_read_it(run, bundle):
    assert "is the child of rdma15 on n1." in run("where", "10.209.237.20", "--snapshots", bundle).good()
    assert (
        "Verdict on n1: fail" in run("explain", "RDMA-NODE-017", "--node", "n1", "--snapshots", bundle).good()
    )
    assert "Child range" in run("plan", bundle, "--summary").good()
    assert "still" in run("diff", bundle, bundle).good()
    assert run("bundle", bundle, "--output", "copy.tar.gz").good().startswith("Wrote copy.tar.gz")
    assert members(Path("copy.tar.gz")) == members(bundle)


def test_secrets_are_not_in_it(run, tmp_path):
    secret, ocid = "hunter2", "ocid1.instance.oc1.phx.abcdefghijklmnopqrstuvwxyz0123456789"
    node = fleet.edit_host_document(fleet.node(name="n0"), "networkBlockId", ocid)
    node = fleet.edit_oca(node, rdma_network='{"password": "%s"}' % secret)
    silent = NodeInput("gone", reason="no route to %s" % ocid)
    folder = tmp_path / "recorded"
    folder.mkdir()
    (folder / "n0.json").write_text(json.dumps(node.to_dict()))  # as if not redacted when it was recorded
    records.save(str(folder), [silent])
    Path("policy.yml").write_text(
        "waivers: [{check: A, reason: %s, owner: me, expires: '2999-01-01'}]\n" % ocid
    )
    run("bundle", folder, "--policy", "policy.yml", "--output", "case.tar.gz").good()
    content = b"".join(members(Path("case.tar.gz")).values())
    assert secret.encode() not in content
    assert ocid.encode() not in content
    assert content.count(b"ocid1.instance..yz0123456789") == 3


def test_a_bundle_without_a_result(run, recorded):
    run("bundle", recorded, "--output", "case.tar.gz").good()
    assert TOP + "/result.json" not in members(Path("case.tar.gz"))
    assert run("report", "case.tar.gz").good().startswith("9 nodes, ")


def test_a_bundle_that_was_packed_again(run, bundle):
    """By hand, with directory entries and a leading dot: nothing unsafe in that."""
    content = {"./" + name: data for name, data in members(bundle).items()}
    path = repacked(content)
    assert run("report", path).good() == run("report", bundle).good()


@pytest.mark.parametrize(
    ("name", "kind", "link", "problem"),
    [
        ("../../evil.json", tarfile.REGTYPE, "", "is none of the files of a bundle"),
        ("/etc/passwd", tarfile.REGTYPE, "", "is none of the files of a bundle"),
        (TOP + "/snapshots/../../x.json", tarfile.REGTYPE, "", "is none of the files of a bundle"),
        (TOP + "/snapshots/a/b.json", tarfile.REGTYPE, "", "is none of the files of a bundle"),
        (TOP + "/run.sh", tarfile.REGTYPE, "", "is none of the files of a bundle"),
        (TOP + "/snapshots/a.json", tarfile.SYMTYPE, "/etc/passwd", "is not a plain file"),
        (TOP + "/snapshots/a.json", tarfile.LNKTYPE, "/etc/passwd", "is not a plain file"),
        (TOP + "/snapshots/a.json", tarfile.FIFOTYPE, "", "is not a plain file"),
        (TOP + "/snapshots/a.json", tarfile.CHRTYPE, "", "is not a plain file"),
    ],
)
def test_unsafe_members_are_refused(run, name, kind, link, problem):
    path = repacked({name: b"{}"}, kind, link)
    before = sorted(os.listdir("."))
    assert "other.tar.gz is refused: %r %s." % (name, problem) in run("report", path).refused()
    assert sorted(os.listdir(".")) == before


def test_the_same_member_twice(run, bundle):
    with tarfile.open("twice.tar.gz", "w:gz") as tar:
        for _time in range(2):
            tar.addfile(tarfile.TarInfo(TOP + "/manifest.json"), io.BytesIO())
    sentence = run("report", "twice.tar.gz").refused()
    assert "is there twice" in sentence or "is not JSON" in sentence


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"MAX_MEMBER": 100}, "is larger than"),
        ({"MAX_TOTAL": 5000}, "it unpacks to more than"),
        ({"MAX_MEMBERS": 3}, "is one file too many"),
    ],
)
def test_size_limits(run, bundle, monkeypatch, limits, problem):
    for name, value in limits.items():
        monkeypatch.setattr(archive, name, value)
    assert problem in run("report", bundle).refused()


def test_a_bomb_is_stopped_early(run, monkeypatch):
    """A gigabyte of zeros in a megabyte: the reader stops at the limit."""
    monkeypatch.setattr(archive, "MAX_TOTAL", 1 << 20)
    with tarfile.open("bomb.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo(TOP + "/snapshots/a.json")
        member.size = 32 << 20
        tar.addfile(member, io.BytesIO(bytes(member.size)))
    assert "it unpacks to more than 1 MiB" in run("report", "bomb.tar.gz").refused()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "holds no manifest of a bundle"),
        ({"manifest": {"kind": "x"}}, "holds no manifest of a bundle"),
        ({"manifest": MANIFEST}, "holds no recorded snapshot"),
        (
            {"manifest": {**MANIFEST, "schema_version": 2}},
            "has schema version 2; this release reads up to version 1.",
        ),
        ({"manifest": {**MANIFEST, "schema_version": "1"}}, "has schema version"),
        ({"manifest": MANIFEST, "policy": []}, "policy.json is no map of settings"),
        ({"manifest": MANIFEST, "policy": b"{"}, "policy.json is not JSON"),
        ({"manifest": MANIFEST, "result": {}}, "This is not a result document"),
        ({"manifest": MANIFEST, "snapshots/a": {"name": "a", "schema_version": 99}}, "has schema version 99"),
        (
            {"manifest": MANIFEST, "snapshots/a": {"name": 1}},
            "snapshots/a.json: snapshot.name must be a text",
        ),
        ({"manifest": MANIFEST, "snapshots/a": b"\xff"}, "snapshots/a.json is not JSON"),
    ],
)
def test_damaged_content(run, content, problem):
    path = repacked({"%s/%s.json" % (TOP, name): value for name, value in content.items()})
    assert problem in run("report", path).refused()


def test_a_wrong_policy_in_a_bundle(run):
    content = {"manifest": MANIFEST, "policy": {"mtu": "big"}, "snapshots/a": {"name": "a"}}
    path = repacked({"%s/%s.json" % (TOP, name): value for name, value in content.items()})
    assert "policy.mtu must be an integer" in run("report", path).refused()


@pytest.mark.parametrize("size", [2, 100, 5000])
def test_a_cut_archive(run, bundle, size):
    Path("cut.tar.gz").write_bytes(bundle.read_bytes()[:size])
    assert "cut.tar.gz is damaged: " in run("report", "cut.tar.gz").refused()


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 2048])
def test_a_gzip_that_is_no_archive(run, content):
    Path("x.gz").write_bytes(gzip.compress(content))
    assert run("report", "x.gz").refused().startswith("x.gz ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere", "--output", "x"], "nowhere cannot be read"),
        (["{recorded}", "--output", "."], "--output '.' names no file."),
        (["{recorded}", "--output", "new/"], "--output 'new/' names no file."),
        (["{recorded}", "--output", "file/x.tar.gz"], "cannot be written"),
        (["{recorded}", "--output", "x.tar.gz", "--result", "{recorded}"], "is no result document."),
        (["{recorded}"], "The following arguments are required: --output"),
    ],
)
def test_bad_input(run, recorded, arguments, sentence):
    Path("file").write_text("x")
    assert (
        sentence
        in run("bundle", *[word.replace("{recorded}", str(recorded)) for word in arguments]).refused()
    )


@pytest.mark.parametrize("name", ["../x", ".x", "a/b"])
def test_a_node_name_that_is_no_file_name(run, name, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"name": name}))
    assert "cannot be a file name" in run("bundle", tmp_path, "--output", "x.tar.gz").refused()
    assert not Path("x.tar.gz").exists()


def test_an_old_archive_stays_when_the_new_one_fails(run, recorded, bundle, monkeypatch):
    def refuse(*_arguments: Any, **_options: Any) -> Optional[bytes]:
        raise OSError(28, "No space left on device")

    before = bundle.read_bytes()
    monkeypatch.setattr(os, "fsync", refuse)
    assert "No space left on device" in run("bundle", recorded, "--output", bundle).refused()
    assert bundle.read_bytes() == before
    assert sorted(path.name for path in bundle.parent.iterdir() if "case" in path.name) == ["case.tar.gz"]


def test_a_disk_that_becomes_full(command, recorded, bundle):
    """The system takes a part of the archive and then no more: that must not look like a whole archive."""
    before = bundle.read_bytes()
    code = (
        "import resource, signal, sys; from rdma_k8s.cli.main import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "sys.exit(main(['bundle', %r, '--output', %r]))" % (str(recorded), str(bundle))
    )
    words, environment = command
    done = subprocess.run([words[0], "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("rdma-k8s: The report %s cannot be written: " % bundle)
    assert bundle.read_bytes() == before
    assert sorted(path.name for path in bundle.parent.iterdir() if "case" in path.name) == ["case.tar.gz"]
