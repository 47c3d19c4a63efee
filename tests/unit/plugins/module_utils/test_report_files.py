# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of reports: in one step, never half, never more than asked."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support.results import small


def test_all_reports(tmp_path: Path) -> None:
    target = tmp_path / "new" / "reports"
    written = report_files.write_reports(small(), str(target))
    assert sorted(path.name for path in target.iterdir()) == [
        "junit.xml",
        "rdma_k8s.prom",
        "report.html",
        "report.md",
        "result.json",
    ]
    for entry in written:
        status = os.stat(entry.path)
        assert stat.S_IMODE(status.st_mode) == 0o644
        assert status.st_size == entry.size
        assert entry.changed
    assert report_files.read_result(str(target / "result.json")) == small()


def test_a_second_run_touches_nothing(tmp_path: Path) -> None:
    report_files.write_reports(small(), str(tmp_path))
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    written = report_files.write_reports(small(), str(tmp_path))
    assert not any(entry.changed for entry in written)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path) -> None:
    target = tmp_path / "reports"
    written = report_files.write_reports(small(), str(target), ["json"], dry_run=True)
    assert [(entry.changed, entry.size > 1000) for entry in written] == [(True, True)]
    assert not target.exists()
    report_files.write_reports(small(), str(target), ["json"])
    assert not report_files.write_reports(small(), str(target), ["json"], dry_run=True)[0].changed
    assert report_files.write_reports(small(exit_code=0), str(target), ["json"], dry_run=True)[0].changed


def test_an_error_while_rendering_leaves_the_old_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old a")
    (tmp_path / "b").write_text("old b")

    def breaks() -> Iterator[str]:
        yield "half"
        raise RdmaError("no", "No.")

    with pytest.raises(RdmaError, match="No"):
        report_files.write_files(str(tmp_path), {"a": iter(["new a"]), "b": breaks()})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old a", "b": "old b"}


def test_a_full_disk_leaves_the_old_files() -> None:
    with pytest.raises(
        RdmaError, match=r"The report /dev/full/x cannot be written: Not a directory\."
    ) as caught:
        report_files.write_reports(small(), "/dev/full/x", ["markdown"])
    assert caught.value.code == "report_not_written"


def test_a_directory_in_the_place_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(RdmaError, match=r"report\.md cannot be written: Is a directory") as caught:
        report_files.write_reports(small(), str(tmp_path), ["json", "markdown"])
    assert caught.value.code == "report_not_written"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "report.md").symlink_to(victim)
    report_files.write_reports(small(), str(tmp_path), ["markdown"])
    assert victim.read_text() == "precious"
    assert not (tmp_path / "report.md").is_symlink()


def test_left_overs_of_a_killed_run_go_and_those_of_a_running_one_stay(tmp_path: Path) -> None:
    names = (".report.md.abcdefgh.tmp", ".report.md.ijklmnop.tmp", ".x.abcdefgh.tmp")
    old, young, foreign = [tmp_path / name for name in names]
    for path in (old, young, foreign):
        path.write_text("half")
    for path in (old, foreign):
        os.utime(path, (time.time() - 7200,) * 2)
    report_files.write_reports(small(), str(tmp_path), ["markdown"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, foreign.name, "report.md"])


def test_a_run_that_is_killed_leaves_the_old_report(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("old")
    program = """
        import os, sys, time
        sys.path.insert(0, sys.argv[1])
        from ansible_collections.rdma.k8s.plugins.module_utils import report_files

        def pieces():
            yield "new " * 100000
            print("writing", flush=True)
            time.sleep(60)

        report_files.write_files(sys.argv[2], {"result.json": iter(["{}"]), "report.md": pieces()})
    """
    marker = Path("ansible_collections", "rdma", "k8s", "galaxy.yml")
    root = next(Path(entry) for entry in sys.path if Path(entry, marker).exists())
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(root), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / "report.md").read_text() == "old"
    assert not (tmp_path / "result.json").exists()
    assert {path.suffix for path in tmp_path.iterdir()} == {".md", ".tmp"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "result_unreadable"),
        (b"\xff\xfe", "result_unreadable"),
        (b"", "result_not_json"),
        (b'{"kind": NaN}', "result_not_json"),
        (b"[" * 100000, "result_not_json"),
        (b"[]", "result_not_a_result"),
        (b'{"kind": "other"}', "result_not_a_result"),
        (b'{"kind": "rdma.k8s/result", "schema_version": 99}', "result_newer_schema"),
        (b'{"kind": "rdma.k8s/result", "schema_version": 1}', "document_malformed"),
        (b'{"kind": "rdma.k8s/result", "created_at": "x", "findings": [{"check": 1}]}', "document_malformed"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "result.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RdmaError) as caught:
        report_files.read_result(str(path))
    assert caught.value.code == code
