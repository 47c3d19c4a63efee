# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bill of materials and checksums of a release."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import release

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    path = tmp_path / "rdma-k8s-1.2.3.tar.gz"
    path.write_bytes(b"content")
    return path


def test_what_lies_beside_a_tarball(tarball: Path) -> None:
    sbom, sums = release.write(tarball, ROOT)
    assert (sbom.name, sums.name) == ("rdma-k8s-1.2.3.cdx.json", "SHA256SUMS")
    document = json.loads(sbom.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    own = document["metadata"]["component"]
    assert (own["name"], own["version"], own["hashes"][0]["content"]) == (
        "rdma-k8s",
        "1.2.3",
        release.digest(tarball),
    )
    scopes = {component["name"]: component["scope"] for component in document["components"]}
    assert scopes["kubernetes"] == scopes["pyroute2"] == "required"
    assert scopes["oci"] == "optional"
    names = {component["bom-ref"] for component in document["components"]}
    assert set(document["dependencies"][0]["dependsOn"]) == names
    assert len(names) == len(document["components"])


def test_the_same_tarball_gives_the_same_bytes(tarball: Path) -> None:
    before = [path.read_bytes() for path in release.write(tarball, ROOT)]
    assert [path.read_bytes() for path in release.write(tarball, ROOT)] == before


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_checksums_are_those_of_sha256sum(tarball: Path) -> None:
    release.write(tarball, ROOT)
    command = ["sha256sum", "--check", "--strict", release.SUMS]
    assert subprocess.run(command, cwd=tarball.parent, capture_output=True, check=False).returncode == 0
    tarball.write_bytes(b"another")
    assert subprocess.run(command, cwd=tarball.parent, capture_output=True, check=False).returncode != 0


def test_a_name_that_tells_no_version(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"x\.tar\.gz is not named"):
        release.bill(tmp_path / "x.tar.gz", ROOT)
