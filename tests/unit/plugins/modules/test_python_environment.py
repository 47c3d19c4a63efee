# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python environment of a node: from verified wheels, whole or not at all, removed by undo."""

from __future__ import annotations

import io
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    python_environment as env,
    store,
    undo,
    wheels as wheel_files,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import node_undo, python_environment
from ansible_collections.rdma.k8s.tests.support import change_run, wheelhouse


def run(**options: Any) -> dict[str, Any]:
    return change_run.run(python_environment, **options)


@pytest.fixture(name="house")
def house_fixture(tmp_path: Path) -> Path:
    return wheelhouse.small(tmp_path / "house")


@pytest.fixture(name="host")
def host_fixture(tmp_path: Path) -> Path:
    host = tmp_path / "host"
    (host / "opt").mkdir(parents=True)
    executable = Path(os.path.realpath(env.sys.executable))
    (host / executable.parent.relative_to("/")).mkdir(parents=True)
    (host / executable.relative_to("/")).touch()
    return host


def options(host: Path, house: Path) -> dict[str, Any]:
    return {"host_root": str(host), "wheelhouse": str(house), "remote_src": True}


def said(host: Path, code: str) -> str:
    """What the Python of the environment prints, isolated from everything around it."""
    python = str(host) + env.INTERPRETER
    return subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def leftovers(host: Path) -> list[str]:
    return sorted(path.name for path in (host / "opt").rglob("*") if path.name.startswith("."))


def test_a_node_without_this_python_is_refused(host: Path, house: Path) -> None:
    """The link of the environment would point at nothing, and each run would make it anew."""
    (host / Path(os.path.realpath(env.sys.executable)).relative_to("/")).unlink()
    for check in (True, False):
        result = run(**options(host, house), _ansible_check_mode=check)
        assert (result["code"], result["changed"]) == ("environment_without_python", False)
        assert "same path there" in result["msg"]
    assert os.listdir(host / "opt") == []


def test_an_absolute_link_stays_inside_the_root(host: Path, house: Path, tmp_path: Path) -> None:
    """A node's /opt can be a link to a place of the node, which is not that place of the machine that looks."""
    outside = tmp_path / "data"
    outside.mkdir()
    (host / "opt").rmdir()
    (host / "opt").symlink_to(outside)
    inside = host / outside.relative_to("/")
    inside.mkdir(parents=True)
    assert run(**options(host, house))["changed"]
    assert os.listdir(outside) == []
    assert (inside / "rdma-k8s/python/bin/python3").is_symlink()
    assert run(**options(host, house))["changed"] is False
    assert {entry.outcome for entry in undo.undo(Root(str(host)))} == {"restored"}
    assert (os.listdir(inside), os.listdir(outside)) == ([], [])


def test_an_environment_is_made_once(host: Path, house: Path) -> None:
    foreseen = run(**options(host, house), _ansible_check_mode=True)
    assert os.listdir(host / "opt") == []
    done = run(**options(host, house))
    for result in (foreseen, done):
        result.pop("invocation", None)
    assert done == foreseen
    assert done["actions"] == ["make the directory /opt/rdma-k8s", "set /opt/rdma-k8s/python"]
    assert done["libraries"] == {"pyroute2": "0.9.1"}
    assert said(host, "import pyroute2; print(pyroute2.WHO)") == "made up"
    prefix, base = said(host, "import sys; print(sys.prefix); print(sys.base_prefix)").splitlines()
    assert prefix == str(host) + env.PLACE
    assert base != prefix
    assert leftovers(host) == []
    assert run(**options(host, house))["changed"] is False


def test_other_wheels_replace_it_and_undo_removes_all(host: Path, house: Path, tmp_path: Path) -> None:
    run(**options(host, house))
    newer = wheelhouse.small(tmp_path / "newer", "0.9.2", b"WHO = 'newer'\n")
    assert run(**options(host, newer))["actions"] == ["set /opt/rdma-k8s/python"]
    assert said(host, "import pyroute2; print(pyroute2.WHO)") == "newer"
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored", "restored"]
    assert os.listdir(host / "opt") == []
    assert store.records(Root(str(host))) == []


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_environment_is_made_anew(host: Path, house: Path, damage: str) -> None:
    run(**options(host, house))
    (path,) = (host / "opt/rdma-k8s/python").rglob("pyroute2/__init__.py")
    if damage == "missing":
        path.unlink()
    else:
        path.write_text("WHO")
    assert run(**options(host, house))["changed"] is True
    assert said(host, "import pyroute2; print(pyroute2.WHO)") == "made up"
    assert run(**options(host, house))["changed"] is False


def test_a_library_that_cannot_be_imported_leaves_nothing(host: Path, tmp_path: Path) -> None:
    house = wheelhouse.small(tmp_path / "bad", text=b"import no_such_library\n")
    result = run(**options(host, house))
    assert result["code"] == "environment_broken"
    assert "No module named 'no_such_library'" in result["msg"]
    assert not os.path.lexists(str(host) + env.PLACE)
    assert leftovers(host) == []
    assert [each.outcome for each in undo.undo(Root(str(host)))] == ["restored"]
    assert os.listdir(host / "opt") == []


@pytest.mark.parametrize("kind", ["directory", "link", "file"])
def test_what_is_not_ours_is_never_touched(host: Path, house: Path, tmp_path: Path, kind: str) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data").write_text("theirs")
    place = Path(str(host) + env.PLACE)
    place.parent.mkdir()
    if kind == "directory":
        precious.rename(place)
        precious = place
    elif kind == "link":
        place.symlink_to(precious)
    else:
        place.write_text("theirs")
    result = run(**options(host, house))
    assert (result["code"], result["changed"]) == ("environment_foreign", False)
    with pytest.raises(RdmaError):
        env.write(Root(str(host)), env.PLACE, None)
    assert place.is_file() or (precious / "data").read_text() == "theirs"


def test_a_link_above_is_refused(host: Path, house: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (host / "opt/rdma-k8s").symlink_to(tmp_path / "elsewhere")
    assert run(**options(host, house))["code"] == "environment_foreign"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_the_wheels_are_asked_for_when_they_are_wanted_only(host: Path, house: Path) -> None:
    given = {"host_root": str(host), "wheelhouse": "/not/on/the/node", "wheels": wheel_files.sums(str(house))}
    asked = run(**given)
    assert (asked["code"], asked["changed"]) == ("wheels_wanted", False)
    assert run(**given, _ansible_check_mode=True)["changed"] is True
    run(**options(host, house))
    assert run(**given)["changed"] is False


WRONG = {
    "no list": (None, "wheelhouse_unreadable", "SHA256SUMS"),
    "no checksum": ("nonsense\n", "wheelhouse_wrong", "line 1"),
    "a path": ("%s  ../x-1-py3-none-any.whl\n" % ("0" * 64), "wheelhouse_wrong", "no name of a wheel"),
    "compiled": (
        "%s  pyroute2-1.0-cp311-cp311-linux_x86_64.whl\n" % ("0" * 64),
        "wheelhouse_wrong",
        "py3-none-any",
    ),
    "twice": (
        "".join("%s  %s\n" % ("0" * 64, "Pyroute2-%d.0-py3-none-any.whl" % each) for each in (1, 2)),
        "wheelhouse_wrong",
        "pyroute2 twice",
    ),
    "lacking": ("%s  netaddr-1.3.0-py3-none-any.whl\n" % ("0" * 64), "wheelhouse_wrong", "lacks pyroute2"),
    "old": ("%s  pyroute2-0.5.14-py3-none-any.whl\n" % ("0" * 64), "wheelhouse_wrong", "0.7.2 or newer"),
    "gone": ("%s  pyroute2-0.9.9-py3-none-any.whl\n" % ("0" * 64), "wheelhouse_unreadable", "0.9.9"),
    "changed": ("%s  %s\n" % ("0" * 64, wheelhouse.NAME), "wheel_wrong", "expected 000"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_wheelhouse_is_refused(host: Path, house: Path, case: str) -> None:
    text, code, part = WRONG[case]
    (house / "SHA256SUMS").unlink()
    if text is not None:
        (house / "SHA256SUMS").write_text(text)
    result = run(**options(host, house))
    assert result["code"] == code
    assert part in result["msg"]
    assert not os.path.lexists(str(host) + env.PLACE)


EVIL = {
    "no archive": b"PK not really",
    "outside": wheelhouse.wheel({"../../evil.py": b"x"}),
    "absolute": wheelhouse.wheel({"/evil.py": b"x"}),
    "more than a library": wheelhouse.wheel({"pyroute2-0.9.1.data/scripts/x": b"x"}),
    "not its record": wheelhouse.wheel(
        {"pyroute2/__init__.py": b"x = 1\n"}, record="pyroute2/__init__.py,sha256=AA,6\n"
    ),
    "not recorded": wheelhouse.wheel(
        {"pyroute2/__init__.py": b""}, record="pyroute2-0.9.1.dist-info/RECORD,,\n"
    ),
}


@pytest.mark.parametrize("case", EVIL)
def test_a_wrong_wheel_is_refused(host: Path, tmp_path: Path, case: str) -> None:
    house = wheelhouse.write(tmp_path / "evil", {wheelhouse.NAME: EVIL[case]})
    result = run(**options(host, house))
    assert result["code"] == "wheel_wrong", result
    assert not os.path.lexists(str(host) + env.PLACE)
    assert not list(tmp_path.rglob("evil.py"))
    assert leftovers(host) == []


def test_a_wheel_that_unpacks_to_too_much_is_refused(
    host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_files, "LARGEST", 20000)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pyroute2/big.py", b"#" * 30000)
        archive.writestr("pyroute2-0.9.1.dist-info/RECORD", b"")
    house = wheelhouse.write(tmp_path / "big", {wheelhouse.NAME: content.getvalue()})
    assert run(**options(host, house))["code"] == "wheel_wrong"


def prepared(top: Path, kind: str, newer: Path) -> tuple[Path, dict[str, Any]]:
    """A node, and a run on it that makes an environment, or replaces one."""
    host = top / kind
    executable = os.path.realpath(env.sys.executable)
    (host / "opt").mkdir(parents=True)
    (host / os.path.dirname(executable)[1:]).mkdir(parents=True)
    (host / executable[1:]).touch()
    return host, options(host, newer)


@pytest.mark.parametrize("kind", ["first", "another"])
def test_killed_before_any_act_the_next_run_repairs_and_undo_removes(tmp_path: Path, kind: str) -> None:
    old = wheelhouse.small(tmp_path / "old")
    new = wheelhouse.small(tmp_path / "new", "0.9.2", b"WHO = 'new'\n")

    def start(name: str) -> tuple[Path, dict[str, Any]]:
        host, wanted = prepared(tmp_path, name, new)
        if kind == "another":
            run(**options(host, old))
        return host, wanted

    number, died = 0, True
    while died:
        number += 1
        host, wanted = start(str(number))
        died = change_run.killed(python_environment, wanted, number)
        if number % 3:
            assert "failed" not in run(**wanted), number
            assert said(host, "import pyroute2; print(pyroute2.WHO)") == "new"
            assert leftovers(host) == [], number
            assert run(**wanted)["changed"] is False
        undo.undo(Root(str(host)))
        assert os.listdir(host / "opt") == [], number
        assert store.records(Root(str(host))) == [], number
    assert number > 10


def test_killed_undo_is_finished_by_the_next(house: Path, tmp_path: Path) -> None:
    number, died = 0, True
    while died:
        number += 1
        again = tmp_path / ("undo%d" % number)
        prepared(tmp_path, again.name, house)
        run(**options(again, house))
        died = change_run.killed(node_undo, {"host_root": str(again), "state": "undone"}, number)
        undo.undo(Root(str(again)))
        assert os.listdir(again / "opt") == [], number
        assert store.records(Root(str(again))) == [], number
    assert number > 10


def test_all_that_is_returned_is_described(host: Path, house: Path) -> None:
    result = run(**options(host, house))
    assert set(result) - {"changed", "invocation", "warnings"} == set(
        yaml.safe_load(python_environment.RETURN)
    )
