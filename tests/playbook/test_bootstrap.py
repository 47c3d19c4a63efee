# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role bootstrap with the real command, on a node that is this machine with empty directories of its own.

The managers of packages are stand-ins in PATH; what the role asks them for and what it makes of their answers is real.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import deps
from ansible_collections.rdma.k8s.tests.support import covered_node, wheelhouse
from ansible_collections.rdma.k8s.tests.support.playbook import BIN, COLLECTION, Controller

PYTHON = "/usr/bin/python3"
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "roles": ["rdma.k8s.bootstrap"],
        "post_tasks": [
            {
                "ansible.builtin.debug": {
                    "msg": "interpreter {{ ansible_python_interpreter | default('none') }}"
                }
            }
        ],
    }
]
STORE = ["find", "/opt", "/var/lib", "-mindepth", "1", "-not", "-path", "/var/lib/rdma-k8s*"]
APT = """#!/bin/sh
# Stand-in of apt-get: knows the packages below @, a directory with a script for each.
echo "$@" >>@/asked
for last in "$@"; do :; done
case " $* " in
*" update "*) exit 0 ;;
esac
[ -x "@/packages/$last" ] || { echo "E: Unable to locate package $last" >&2; exit 100; }
case $1 in
-s) printf 'Inst lib%s (1)\\nInst %s (1)\\n' "$last" "$last"; exit 0 ;;
esac
"@/packages/$last" && printf '%s\\nlib%s\\n' "$last" "$last" >>@/installed
"""
DPKG_QUERY = """#!/bin/sh
sed 's/$/ installed/' @/installed
"""
DPKG = """#!/bin/sh
echo "dpkg $@" >>@/asked
[ ! -e @/needed ] || { echo "dpkg: error: something depends on $2" >&2; exit 1; }
shift
for each in "$@"; do grep -vx "$each" @/installed >@/rest; mv @/rest @/installed; done
"""


@pytest.fixture(autouse=True)
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounts need root")


@pytest.fixture(name="house")
def house_fixture(tmp_path: Path) -> Path:
    return wheelhouse.small(tmp_path / "house")


@pytest.fixture(name="fakes")
def fakes_fixture(tmp_path: Path) -> Path:
    """A directory for PATH with a manager of packages that knows none yet."""
    fakes = tmp_path / "fakes"
    (fakes / "packages").mkdir(parents=True)
    (fakes / "installed").write_text("base-files\n")
    for name, text in (("apt-get", APT), ("dpkg", DPKG), ("dpkg-query", DPKG_QUERY)):
        program(fakes / name, text.replace("@", str(fakes)) if name == "dpkg-query" else text)
    for name in ("apt-get", "dpkg"):
        text = (fakes / name).read_text().replace("@/", str(fakes) + "/").replace("below @", "below")
        program(fakes / name, text)
    return fakes


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


class Node:
    """Runs of the role on one node, which forgets everything at the end."""

    def __init__(self, controller: Controller, folder: Path, fakes: Path) -> None:
        (folder / "play.yml").write_text(json.dumps(PLAY))
        self.play = str(folder / "play.yml")
        self.environment = controller.environment()
        self.environment["PATH"] = str(fakes) + os.pathsep + self.environment["PATH"]

    def command(self, *words: str, **variables: Any) -> list[str]:
        given = json.dumps({"bootstrap_" + name: value for name, value in variables.items()})
        return [str(BIN / "ansible-playbook"), "-i", "n1,", "-c", "local", self.play, "-e", given, *words]

    def run(self, *commands: list[str], **options: Any) -> list[covered_node.Done]:
        return covered_node.run(commands, self.environment, **options)


@pytest.fixture(name="node")
def node_fixture(controller: Controller, tmp_path: Path, fakes: Path) -> Node:
    return Node(controller, tmp_path, fakes)


def recap(done: covered_node.Done) -> tuple[int, int]:
    found = re.search(r"changed=(\d+) .*failed=(\d+)", done.text)
    assert found is not None, done.text
    return int(found[1]), int(found[2])


def message(done: covered_node.Done) -> str:
    assert recap(done)[1] == 1, done.text
    (sentence,) = re.findall(r'^fatal: .*"msg": "(.*)"}$', done.text, re.M)
    return str(sentence)


def test_from_a_wheelhouse_and_back(node: Node, house: Path) -> None:
    """Check mode says what happens, the second run changes nothing, absent leaves nothing."""
    present, absent = {"wheelhouse": str(house)}, {"wheelhouse": str(house), "state": "absent"}
    program_of = "/opt/rdma-k8s/python/bin/python3"
    foreseen, nothing, done, library, again, foreseen_absent, gone, left, gone_again = node.run(
        node.command("--check", **present),
        STORE,
        node.command(**present),
        [program_of, "-I", "-c", "import pyroute2; print(pyroute2.WHO)"],
        node.command(**present),
        node.command("--check", **absent),
        node.command(**absent),
        STORE,
        node.command(**absent),
    )
    assert (recap(foreseen), nothing.text) == ((1, 0), "")
    assert "interpreter /usr/" in foreseen.text
    assert recap(done) == (1, 0)
    assert "interpreter %s" % program_of in done.text
    assert library.text == "made up\n"
    assert recap(again) == (0, 0)
    assert "interpreter %s" % program_of in again.text
    assert (recap(foreseen_absent), recap(gone), left.text) == ((1, 0), (1, 0), "")
    assert recap(gone_again) == (0, 0)


def test_a_changed_wheel_is_refused_on_the_controller(node: Node, house: Path) -> None:
    (house / wheelhouse.NAME).write_bytes(b"something else")
    done, left = node.run(node.command(wheelhouse=str(house)), STORE)
    assert "has SHA-256" in message_of_module(done)
    assert left.text == ""


def message_of_module(done: covered_node.Done) -> str:
    assert recap(done)[1] == 1, done.text
    (sentence,) = re.findall(r"^\[ERROR\]: Task failed: (?:Action failed: )?(.*)$", done.text, re.M)
    return str(sentence)


def test_a_wheelhouse_that_is_not_there(node: Node) -> None:
    (done,) = node.run(node.command(wheelhouse="/no/such/directory"))
    assert "The wheelhouse /no/such/directory is not on the controller." in message_of_module(done)


PACKAGES = "/usr/local/lib/python3.11/dist-packages"


def test_from_packages_and_back(node: Node, fakes: Path) -> None:
    """Exactly what came is removed: the package and the one that came with it."""
    place = Path(PACKAGES)
    if not place.is_dir() or not Path("/usr/bin/python3.11").exists():
        pytest.skip("this machine's Python has no place for packages that can be covered")
    install = "mkdir -p {0}/pyroute2 {0}/pyroute2-0.7.2.dist-info && : >{0}/pyroute2/__init__.py && "
    install += (
        "printf 'Metadata-Version: 2.1\\nName: pyroute2\\nVersion: 0.7.2\\n' >{0}/pyroute2-0.7.2.dist-info/"
    )
    install += "METADATA"
    program(fakes / "packages/python3-pyroute2", "#!/bin/sh\n" + install.format(PACKAGES) + "\n")
    foreseen, done, again, foreseen_absent, absent, left = node.run(
        node.command("--check"),
        node.command(),
        node.command(),
        node.command("--check", state="absent"),
        node.command(state="absent"),
        STORE,
        empty=["/opt", "/var/lib", PACKAGES],
    )
    assert (recap(foreseen), recap(done), recap(again)) == ((1, 0), (1, 0), (0, 0))
    assert "interpreter " + PYTHON in done.text
    assert (recap(foreseen_absent), recap(absent), left.text) == ((1, 0), (1, 0), "")
    assert "libpython3-pyroute2 python3-pyroute2" in foreseen_absent.text
    assert (fakes / "installed").read_text() == "base-files\n"
    assert (fakes / "asked").read_text().splitlines() == [
        "-s -y --no-install-recommends install python3-pyroute2",
        "-y --no-install-recommends -o DPkg::Lock::Timeout=60 install python3-pyroute2",
        "dpkg --purge libpython3-pyroute2 python3-pyroute2",
    ]


def test_packages_that_are_not_there_are_one_clear_message(node: Node) -> None:
    (done,) = node.run(node.command())
    assert message(done) == (
        "n1 did not get pyroute2 from its packages. None of these packages can be added: python3-pyroute2. "
        "apt-get says: E: Unable to locate package python3-pyroute2. "
        "Give a directory with wheels as bootstrap_wheelhouse."
    )


def test_forbidden_packages_are_one_clear_message(node: Node) -> None:
    (done,) = node.run(node.command(packages=False))
    assert message(done) == (
        "n1 has no Python with pyroute2, and bootstrap_packages forbids to add a package. "
        "Give a directory with wheels as bootstrap_wheelhouse."
    )


PYTHONS = sorted(
    {os.path.realpath(path) for path in map(str, Path("/usr/bin").glob("python3*")) if "config" not in path}
    | {
        os.path.realpath(path)
        for path in map(str, Path("/usr/local/bin").glob("python3*"))
        if "config" not in path
    }
)


def test_a_node_without_a_python(node: Node, fakes: Path, house: Path) -> None:
    """Raw alone works there. The stand-in of the package uncovers the Python of this machine."""
    program(
        fakes / "packages/python3",
        "#!/bin/sh\n" + "".join("umount %s\n" % path for path in PYTHONS) + "exit 0\n",
    )
    forbidden, foreseen, done = node.run(
        node.command(packages=False),
        node.command("--check", wheelhouse=str(house)),
        node.command(wheelhouse=str(house)),
        hidden=PYTHONS,
    )
    assert message(forbidden).startswith(
        "n1 has no Python 3.9 or newer, and bootstrap_packages forbids to add one."
    )
    assert recap(foreseen) == (1, 0)
    assert recap(done) == (2, 0), done.text
    assert "interpreter /opt/rdma-k8s/python/bin/python3" in done.text


def test_a_python_that_cannot_be_added_is_one_clear_message(node: Node) -> None:
    (done,) = node.run(node.command(), hidden=PYTHONS)
    assert message(done) == (
        "n1 has no Python 3.9 or newer. None of these packages can be added: python3. "
        "apt-get says: E: Unable to locate package python3."
    )


def test_packages_that_others_need_are_named_and_stay(node: Node, fakes: Path) -> None:
    (fakes / "needed").touch()
    start = "mkdir -p /var/lib/rdma-k8s/bootstrap && echo python3-pyroute2 >/var/lib/rdma-k8s/bootstrap/added"
    _made, done, left = node.run(
        ["sh", "-c", start], node.command(state="absent"), ["cat", "/var/lib/rdma-k8s/bootstrap/added"]
    )
    assert (
        "cannot be removed (python3-pyroute2): dpkg: error: something depends on python3-pyroute2"
        in message(done)
    )
    assert left.text == "python3-pyroute2\n"


def test_packages_of_a_killed_run_are_known(node: Node, fakes: Path) -> None:
    """The list from before the packages came is on the disk; the next run compares."""
    (fakes / "installed").write_text("base-files\npython3-pyroute2\n")
    start = "cd /var/lib && mkdir -p rdma-k8s/bootstrap && echo base-files >rdma-k8s/bootstrap/before"
    start += " && echo python3-pyroute2 >rdma-k8s/bootstrap/planned"
    _made, done, left = node.run(["sh", "-c", start], node.command(state="absent"), STORE)
    assert recap(done) == (1, 0)
    assert left.text == ""
    assert (fakes / "installed").read_text() == "base-files\n"


def test_the_probe_knows_the_oldest_versions() -> None:
    text = (COLLECTION / "roles/bootstrap/files/probe.sh").read_text()
    found = dict(re.findall(r'\("(\w+)", \(([\d, ]+)\)\)', text))
    assert {name: version.replace(", ", ".") for name, version in found.items()} == {
        name: deps.MINIMUM[name] for name in ("pyroute2", "netaddr")
    }
