# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Charts that are read from directories and archives."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import chart_files
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

METADATA = "name: dranet\nappVersion: v1.4.0\n"
SCHEMA = '{"type": "object"}'


def directory(place: Path, metadata: str = METADATA, schema: str = SCHEMA) -> str:
    """A chart as a directory; an empty text leaves the file out."""
    for name, text in (("Chart.yaml", metadata), ("values.schema.json", schema)):
        if text:
            (place / name).write_text(text)
    return str(place)


def archive(place: Path, files: dict[str, str]) -> str:
    """A chart as an archive."""
    path = place / "chart.tgz"
    with tarfile.open(path, "w:gz") as made:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return str(path)


def test_both_forms(tmp_path: Path) -> None:
    """They tell the same; a chart inside the chart does not count."""
    files = {
        "dranet/charts/other/Chart.yaml": "name: other\n",
        "dranet/Chart.yaml": METADATA,
        "dranet/values.schema.json": SCHEMA,
    }
    one, two = chart_files.read(directory(tmp_path)), chart_files.read(archive(tmp_path, files))
    assert (one.name, one.app_version, one.schema) == ("dranet", "v1.4.0", {"type": "object"})
    assert (two.name, two.app_version, two.schema) == (one.name, one.app_version, one.schema)


def test_without_a_schema(tmp_path: Path) -> None:
    """Such charts exist."""
    assert chart_files.read(directory(tmp_path, schema="")).schema is None


@pytest.mark.parametrize(("metadata", "schema"), [("", SCHEMA), ("a: [", SCHEMA), (METADATA, "{")])
def test_what_is_no_chart(tmp_path: Path, metadata: str, schema: str) -> None:
    """One error, whatever is wrong."""
    assert error_of(lambda: chart_files.read(directory(tmp_path, metadata, schema))).code == (
        "dranet_chart_unreadable"
    )


def test_what_is_not_there(tmp_path: Path) -> None:
    """Neither a directory nor a file; a file that is no archive; an archive without a chart."""
    (tmp_path / "text").write_text("no archive")
    paths = [str(tmp_path / "none"), str(tmp_path / "text"), archive(tmp_path, {"a/b": "c"})]
    for path in paths:
        assert error_of(lambda path=path: chart_files.read(path)).code == "dranet_chart_unreadable"
