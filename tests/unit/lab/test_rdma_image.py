# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The in-cluster image: what of packages is in it, what is refused, its bill of materials, two ways to build it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.tests.lab import oci, rdma_image

ROOT = Path(rdma_image.__file__).resolve().parents[2]
build = rdma_image.build_tool
sbom = rdma_image.sbom_tool

STATUS = """\
Package: libc6
Status: install ok installed
Architecture: amd64
Source: glibc
Version: 2.36-9+deb12u14
Depends: libgcc-s1
Description: a library
 with a second line: of text

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: tool
Status: install ok installed
Architecture: all
Version: 1:2
Pre-Depends: libc6 (>= 2.36)
Depends: absent | awk:any, mawk
Description: a tool

Package: mawk
Status: install ok installed
Architecture: amd64
Version: 1.3
Provides: awk (= 1)
"""


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname, info.uid, info.mtime = kind, mode, target, 7, 1_700_000_000
    return info


def test_what_of_a_package_is_in_the_image() -> None:
    """Paths below /bin and /lib are in usr, no bit lends rights, another name of a file is a file."""
    data = tar_of(
        (member("./", tarfile.DIRTYPE), b""),
        (member("./bin", tarfile.DIRTYPE), b""),
        (member("./bin/su", mode=0o4755), b"program"),
        (member("./bin/again", tarfile.LNKTYPE, target="./bin/su"), b""),
        (member("./lib/x86_64-linux-gnu/libx.so", tarfile.SYMTYPE, target="libx.so.1"), b""),
        (member("./usr/share/doc/x/copyright"), b"terms"),
        (member("./usr/share/doc/x/changelog.gz"), b"news"),
    )
    found = build.read_package(data, build.words("excludes"))
    assert found == {
        "usr/bin/su": build.file(b"program", 0o755),
        "usr/bin/again": build.file(b"program", 0o644),
        "usr/lib/x86_64-linux-gnu/libx.so": build.link("libx.so.1"),
        "usr/share/doc/x/copyright": build.file(b"terms"),
    }


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        (member("./../etc/shadow"), "leads out of the root"),
        (member("./dev/sda", tarfile.BLKTYPE), "no file, directory or link"),
    ],
    ids=["outside", "device"],
)
def test_what_no_package_may_have(odd: tarfile.TarInfo, sentence: str) -> None:
    with pytest.raises(build.BuildError, match=sentence):
        build.read_package(tar_of((odd, b"")), [])


def test_the_last_rule_that_fits_decides() -> None:
    rules = ["path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright"]
    assert build.excluded("/usr/share/doc/a/b/readme", rules)
    assert not build.excluded("/usr/share/doc/a/copyright", rules)
    assert not build.excluded("/usr/bin/doc", rules)


def test_a_layer_does_not_depend_on_the_order() -> None:
    entries = {"a/b": build.file(b"1"), "c": build.link("a")}
    made = build.layer(entries)
    assert made == build.layer(dict(reversed(entries.items())))
    assert build.read_layer(made) == {**entries, "a": build.directory()}
    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        assert {(entry.uid, entry.gid, entry.mtime) for entry in tar} == {(0, 0, 0)}


def test_an_image_for_another_machine_is_refused() -> None:
    """The machine is in bytes 18 and 19 of the header: 62 is x86-64, 183 AArch64."""
    arm = b"\x7fELF\x02\x01" + bytes(12) + (183).to_bytes(2, "little")
    entries = {"usr/bin/x": build.file(arm)}
    assert build.check(entries, "arm64") == 4096
    with pytest.raises(build.BuildError, match="programs for other machines: usr/bin/x"):
        build.check(entries, "amd64")
    with pytest.raises(build.BuildError, match="has no program"):
        build.check({"a": build.file(b"text")}, "amd64")


def test_an_image_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "LIMIT", 8191)
    with pytest.raises(build.BuildError, match="has 8192 bytes unpacked, over 8191"):
        build.check({"a": build.file(b"x" * 4097)}, "amd64")


def test_the_bill_of_materials() -> None:
    """What is installed and no more; a need is met by the first alternative that is there, by its name or another."""
    made = sbom.document(STATUS, "1.0")
    assert [(part["name"], part["version"]) for part in made["components"]] == [
        ("libc6", "2.36-9+deb12u14"),
        ("mawk", "1.3"),
        ("tool", "1:2"),
    ]
    libc, mawk, tool = (part["bom-ref"] for part in made["components"])
    assert tool == "pkg:deb/debian/tool@1%3A2?arch=all"
    needs = {entry["ref"]: entry["dependsOn"] for entry in made["dependencies"]}
    assert needs[tool] == [libc, mawk]
    assert needs[libc] == []
    assert needs["pkg:generic/rdma-k8s@1.0"] == [libc, mawk, tool]
    assert made["components"][0]["properties"] == [{"name": "dpkg:source", "value": "glibc"}]
    assert sbom.text(STATUS, "1.0") == sbom.text(STATUS, "1.0")
    assert sbom.document(STATUS, "1.1")["serialNumber"] != made["serialNumber"]


def test_the_upper_layer_has_the_code() -> None:
    """The names under which the provider imports, the bill of materials, and no compiled file of this machine."""
    base = build.layer({build.STATUS: build.file(STATUS.encode())})
    built = rdma_image.build(base)
    upper = build.read_layer(built.image.layers[1])
    assert "usr/lib/rdma-k8s/rdma_k8s/core/oke/profile.py" in upper
    assert "usr/lib/rdma-k8s/rdma_k8s_provider/__main__.py" in upper
    assert upper[build.SBOM].content.decode() == built.sbom
    assert not [path for path in upper if path.startswith("usr/lib/rdma-k8s/") and "test" in path.split("/")]
    # A node that has the lower layer is not sent it again.
    small, whole = (oci.archive(built.image, without=left) for left in ((built.base,), ()))
    assert len(whole) - len(small) >= len(base)


def test_the_containerfile_builds_the_same() -> None:
    """It runs the same program, and starts the same command with the same variables."""
    text = (ROOT / "image" / "Containerfile").read_text(encoding="utf-8")
    assert "RUN python3 /source/image/build.py" in text
    joined = text.replace("\\\n", " ")
    variables = re.search(r"^ENV (.+)$", joined, re.M)
    assert variables is not None
    assert dict(word.split("=", 1) for word in variables[1].split()) == build.ENVIRONMENT
    command = re.search(r"^CMD (\[.+\])$", joined, re.M)
    assert command is not None
    assert tuple(json.loads(command[1])) == build.COMMAND
    copied = set(re.findall(r"^COPY (\S+) /source/(\S+)$", joined, re.M))
    assert copied == {(name, name) for name in ("LICENSES", "image", "plugins/module_utils")}
    # Nothing of the slim image that builds it is in it.
    assert joined.split("FROM ")[-1].startswith("scratch\n")


def test_the_program_says_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "image" / "build.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "build.py: give an architecture (amd64, arm64) and a file to write"
