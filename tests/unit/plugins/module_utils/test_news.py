# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a module tells while it works, and who may read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import news


@pytest.fixture(name="file")
def file_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "news"
    path.touch()
    monkeypatch.setenv(news.VARIABLE, str(path))
    return path


def test_only_the_newest_line_is_kept(file: Path) -> None:
    tell = news.teller()
    assert news.newest(str(file)) == ""
    tell("waiting at most 300 s: 3 of 8 pods are ready")
    tell("waiting:\n 4 of\t8")
    assert file.read_text() == "waiting: 4 of 8\n"
    assert news.newest(str(file)) == "waiting: 4 of 8"


def test_the_same_is_not_written_again(file: Path) -> None:
    tell = news.teller()
    tell("at work")
    file.write_text("")
    tell("at  work")
    assert file.read_text() == ""


def test_a_line_that_is_being_written_is_no_line(file: Path) -> None:
    file.write_text("waiting at mo")
    assert news.newest(str(file)) == ""


def test_a_long_line_is_cut(file: Path) -> None:
    news.teller()("ä" * 5000)
    assert len(file.read_bytes()) == 4096
    assert set(news.newest(str(file))[:-1]) == {"ä"}


def test_where_nobody_reads_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(news.VARIABLE, raising=False)
    assert news.teller() is news.silent
    missing = tmp_path / "missing"
    monkeypatch.setenv(news.VARIABLE, str(missing))
    news.teller()("lost")
    assert not missing.exists()
    assert news.newest(str(missing)) == ""


def test_what_is_no_file_of_its_own_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    link = tmp_path / "link"
    link.symlink_to(target)
    for path in (link, tmp_path, Path("/dev/null")):
        monkeypatch.setenv(news.VARIABLE, str(path))
        news.teller()("lost")
    assert target.read_text() == "kept"
