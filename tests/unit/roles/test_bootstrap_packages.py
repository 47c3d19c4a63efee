# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of the role bootstrap: what it calls its own, against managers of packages that keep their state.

The script runs with its own directory moved below a temporary one, and with a PATH that has the stand-ins and a few
harmless programs only, so that no manager of this machine can be reached.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "roles/bootstrap/files/packages.sh"
HARMLESS = ("comm", "mkdir", "mv", "rm", "rmdir", "sed", "sort", "tail", "tr")
STAND_IN = """#!%s
import os, sys
place = %r
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
def names(file):
    path = os.path.join(place, file)
    return open(path).read().split() if os.path.exists(path) else []
def save(file, values):
    with open(os.path.join(place, file), "w") as out:
        out.write("\\n".join(sorted(set(values))))
def broken(what):
    path = os.path.join(place, "broken-" + what)
    if os.path.exists(path):
        word = open(path).read()
        os.remove(path)
        return word or "silent"
    return ""
def others():
    save("installed", names("installed") + names("others"))
new = [each for each in names("needs") if each not in names("installed")]
with open(os.path.join(place, "calls"), "a") as out:
    out.write(" ".join([name, *words]) + "\\n")
if name in ("dpkg-query", "rpm") and words[0] in ("-W", "-qa"):
    how = broken("query")
    if how == "fails":
        print("the data base is locked", file=sys.stderr)
        sys.exit(2)
    print("" if how else "\\n".join("%%s installed" %% each for each in names("installed")))
    print("left-over config-files" if name == "dpkg-query" else "")
elif name in ("dpkg", "rpm"):
    assert words[0] in ("--purge", "-e"), words
    save("installed", set(names("installed")) - set(words[1:]))
elif "update" in words:
    save("known", ["yes"])
elif not names("known"):
    print("E: Unable to locate package %%s" %% words[-1], file=sys.stderr)
    sys.exit(100)
elif "-s" in words:
    print("The following NEW packages will be installed:\\n  " + " ".join(new))
    print("".join("Inst %%s (1.0 Some:1 [all])\\n" %% each for each in new), end="")
    print("Inst old:amd64 [1.0] (1.1 Some:1 [amd64])\\nConf old:amd64 (1.1 Some:1 [amd64])")
elif "--assumeno" in words:
    if not new:
        print("Nothing to do.")
        sys.exit(0)
    print("Last metadata expiration check: 0:01:00 ago.\\nDependencies resolved.\\n" + "=" * 60)
    print(" Package   Architecture Version Repository Size\\n" + "=" * 60 + "\\nInstalling:")
    print("".join(" %%s\\n      noarch 1.0 some 1 k\\n" %% each for each in new), end="")
    print("\\nTransaction Summary\\n" + "=" * 60 + "\\nInstall %%d Packages\\n" %% len(new))
    print("Operation aborted.", file=sys.stderr)
    sys.exit(1)
elif "--dry-run" in words:
    print("Loading repository data...\\n\\nThe following 2 NEW packages are going to be installed:")
    print("  " + " ".join(new[:1]) + "\\n  " + " ".join(new[1:]) + "\\n\\n2 new packages to install.")
else:
    assert "install" in words, words
    others()
    how = broken("install")
    if how:
        print("E: 404 Not Found", file=sys.stderr)
        sys.exit(100)
    save("installed", names("installed") + new)
    if os.path.exists(os.path.join(place, "kill")):
        os.remove(os.path.join(place, "kill"))
        os.kill(os.getppid(), 9)
"""


class Node:
    """A node with one manager of packages.

    Files of ``place`` are its state: ``installed``, ``needs`` (what the wished package brings), ``others`` (what
    another program adds while ours waits), ``known`` (the lists of packages are there).
    """

    def __init__(self, place: Path, manager: str = "apt-get") -> None:
        self.place = place
        self.state = place / "rdma-k8s/bootstrap"
        (place / "bin").mkdir()
        for name in HARMLESS:
            program = shutil.which(name)
            assert program is not None
            (place / "bin" / name).symlink_to(program)
        query = ("dpkg", "dpkg-query") if manager == "apt-get" else ("rpm",)
        for name in (manager, *query) if manager else ():
            (place / "bin" / name).write_text(STAND_IN % (sys.executable, str(place)))
            (place / "bin" / name).chmod(0o755)
        self.write("installed", "base-files kubelet libc6 old")
        self.write("needs", "python3-netifaces python3-pyroute2")
        self.write("known", "yes")
        text = SCRIPT.read_text().replace("/var/lib/rdma-k8s", str(place / "rdma-k8s"))
        assert "/var/" not in text.replace("space on /var", "")
        self.script = text

    def write(self, name: str, text: str = "") -> None:
        (self.place / name).write_text(text)

    def names(self, name: str = "installed") -> list[str]:
        return (self.place / name).read_text().split()

    def run(self, act: str) -> tuple[int, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", "act=%s\n%s" % (act, self.script)],
            env={"PATH": str(self.place / "bin")},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout

    @property
    def added(self) -> list[str]:
        return (self.state / "added").read_text().split()


@pytest.fixture(name="node")
def node_fixture(tmp_path: Path) -> Node:
    return Node(tmp_path)


OURS = ["python3-netifaces", "python3-pyroute2"]
BEFORE = ["base-files", "kubelet", "libc6", "old"]


@pytest.mark.parametrize("manager", ["apt-get", "dnf", "yum", "zypper"])
def test_what_came_is_remembered_and_removed(tmp_path: Path, manager: str) -> None:
    node = Node(tmp_path, manager)
    assert node.run("library") == (0, "added python3-pyroute2\n")
    assert (node.added, node.names()) == (OURS, sorted([*BEFORE, *OURS]))
    assert [path.name for path in node.state.iterdir()] == ["added"]
    assert node.run("library") == (0, "added python3-pyroute2\n")  # nothing to do, and nothing forgotten
    assert node.added == OURS
    assert node.run("remove") == (0, "removed %s\n" % " ".join(OURS))
    assert node.names() == BEFORE
    assert not node.state.exists()


@pytest.mark.parametrize("manager", ["apt-get", "dnf", "zypper"])
def test_what_another_program_adds_meanwhile_is_not_ours(tmp_path: Path, manager: str) -> None:
    """The manager waits for its lock while another one installs; these packages are never removed by us."""
    node = Node(tmp_path, manager)
    node.write("others", "linux-image-6.8 unattended")
    assert node.run("library")[0] == 0
    assert node.added == OURS
    assert node.run("remove")[0] == 0
    assert node.names() == sorted([*BEFORE, "linux-image-6.8", "unattended"])


@pytest.mark.parametrize("manager", ["apt-get", "dnf", "zypper"])
def test_a_killed_run_is_settled_without_what_came_later(tmp_path: Path, manager: str) -> None:
    node = Node(tmp_path, manager)
    node.write("kill")
    assert node.run("library")[0] == -9
    node.write("installed", " ".join([*node.names(), "mlnx-ofed"]))
    assert node.run("remove") == (0, "removed %s\n" % " ".join(OURS))
    assert node.names() == sorted([*BEFORE, "mlnx-ofed"])


@pytest.mark.parametrize("how", ["fails", "silent"])
@pytest.mark.parametrize("manager", ["apt-get", "dnf"])
def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path, manager: str, how: str) -> None:
    """An empty list before would make every package of the node ours."""
    node = Node(tmp_path, manager)
    node.write("broken-query", how)
    code, text = node.run("library")
    assert code == 1
    assert text.startswith("refused: ")
    assert ("the data base is locked" if how == "fails" else "is empty") in text
    assert node.names() == BEFORE
    calls = (node.place / "calls").read_text().splitlines()
    assert [
        call for call in calls if " install " in call and " -s " not in call and "--assumeno" not in call
    ] == []
    assert node.run("library")[0] == 0
    assert node.added == OURS


def test_a_list_that_cannot_be_read_afterwards_is_refused_and_read_later(node: Node) -> None:
    node.write("kill")
    node.run("library")
    node.write("broken-query", "silent")
    code, text = node.run("remove")
    assert (code, text[:9]) == (1, "refused: ")
    assert node.run("remove") == (0, "removed %s\n" % " ".join(OURS))


def test_lists_of_packages_are_fetched_when_one_is_not_known(node: Node) -> None:
    (node.place / "known").unlink()
    assert node.run("library")[0] == 0
    assert node.added == OURS


def test_what_fails_is_told_and_leaves_nothing_to_remove(node: Node) -> None:
    """The reason of the manager is in the answer that the role shows."""
    (node.place / "known").unlink()
    (node.place / "bin/apt-get").write_text(
        "#!/bin/sh\necho 'E: Temporary failure resolving' >&2\nexit 100\n"
    )
    code, text = node.run("python")
    assert code == 1
    assert text == (
        "refused: None of these packages can be added: python3. apt-get says: E: Temporary failure resolving.\n"
    )
    assert node.run("remove") == (0, "")
    assert not node.state.exists()


def test_an_installation_that_fails_is_tried_again_with_new_lists(node: Node) -> None:
    node.write("broken-install", "once")
    assert node.run("library")[0] == 0
    assert node.added == OURS


def test_a_node_without_a_manager_is_refused_where_the_role_reads(tmp_path: Path) -> None:
    code, text = Node(tmp_path, "").run("library")
    assert (code, text) == (1, "refused: This system has none of apt-get, dnf, yum and zypper.\n")


def test_the_environment_of_the_test_reaches_no_manager(node: Node) -> None:
    """The guard of this file itself."""
    found = {name for name in os.listdir(node.place / "bin") if name not in HARMLESS}
    assert found == {"apt-get", "dpkg", "dpkg-query"}
