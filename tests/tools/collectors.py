# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the same nodes with every Python of nodes and with the oldest and the newest pyroute2: all must tell the same.

The nodes are recorded trees of three shapes and, for a user who may make one, a network namespace of this machine with
an interface, an address, a route and a rule, which the running kernel tells.

Usage: python tests/tools/collectors.py      the last line is `N passed, M failed`, or `N passed, M failed, K skipped`
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import interpreters
import tree

WORK = tree.BUILD / "test" / "collectors"
SHAPES = ("BM.GPU.H100.8", "BM.GPU.GB200.4", "BM.Optimized3.36")
READER = tree.ROOT / "tests" / "support" / "collect_once.py"
NAMESPACE = " && ".join(
    (
        "ip link set lo up",
        "ip link add rdma7 address 02:00:00:00:00:07 type veth peer name peer7 address 02:00:00:00:00:08",
        "ip link set rdma7 addrgenmode none && ip link set peer7 addrgenmode none",
        "ip addr add 10.9.8.7/24 dev rdma7",
        "ip addr add fd00:9::7/64 dev rdma7 nodad",
        "ip link set rdma7 up && ip link set peer7 up",
        "ip route add 10.77.0.0/16 via 10.9.8.1 table 107",
        "ip rule add from 10.9.8.7 lookup 107 priority 32000",
        'exec "$@"',
    )
)
"""Of our own words alone; what is started comes as arguments."""
TOLD = ("10.9.8.7/24", "fd00:9::7/64", "10.77.0.0/16", "32000")


def minimum() -> str:
    """Return the oldest pyroute2 that the collection takes."""
    text = (tree.ROOT / "requirements-node.txt").read_text(encoding="utf-8")
    return str(re.findall(r"^pyroute2>=(\S+)$", text, re.M)[0])


def locked() -> str:
    """Return the pyroute2 that the lock file names."""
    text = (tree.ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    return str(re.findall(r"^pyroute2==(\S+)", text, re.M)[0])


def library(version: str) -> Path:
    """Return a folder with one release of pyroute2; it is pure Python, so all interpreters can share it."""
    folder = tree.BUILD / "cache" / f"pyroute2-{version}"
    if not (folder / "pyroute2").is_dir():
        fresh = folder.with_name(folder.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--target", str(fresh), f"pyroute2=={version}"], check=True)
        fresh.rename(folder)
    return folder


def package() -> Path:
    """Return a folder in which the package has the name that it has outside Ansible."""
    folder = WORK / "package"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "rdma_k8s"
    link.unlink(missing_ok=True)
    link.symlink_to(tree.COPY / "plugins" / "module_utils")
    return folder


def trees() -> list[Path]:
    """Write the recorded trees and return their folders."""
    tree.sync()
    sys.path.insert(0, str(tree.COLLECTIONS))
    support = "ansible_collections.rdma.k8s.tests.support."
    fleet, node_tree = (importlib.import_module(support + name) for name in ("fleet", "node_tree"))

    found = []
    for shape in SHAPES:
        folder = WORK / "trees" / shape
        shutil.rmtree(folder, ignore_errors=True)
        node_tree.write(folder, fleet.node(shape, name="node"), gid_table=8)
        found.append(folder)
    return found


def read(python: Path, folder: Path, packages: Path, root: str) -> dict[str, Any]:
    """Let one interpreter read one node."""
    command = [str(python), "-B", str(READER), root]
    if root == "/":
        command = ["unshare", "--net", "sh", "-ec", NAMESPACE, "sh", *command]
    env = {
        "PATH": f"{os.defpath}:/usr/sbin:/sbin",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": f"{packages}:{folder}",
    }
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        return {"error": done.stderr.strip()[-400:]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Read every node with every pair of versions and compare."""
    pythons = interpreters.find(tree.NODE_PYTHONS)
    releases = (minimum(), locked())
    packages, nodes = package(), [str(folder) for folder in trees()]
    if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("ip"):
        nodes.append("/")
    else:
        print("skipped: the running kernel (this user may make no network namespace)")
    passed = failed = 0
    for root in nodes:
        first: dict[str, Any] = {}
        # A recorded tree has the answers of netlink in it, so the library is not asked.
        for release in releases if root == "/" else releases[-1:]:
            for version, python in pythons.items():
                found = read(python, library(release), packages, root)
                first = first or found
                wrong = found.get("error", "")
                if not wrong and not found["by"]["python"].startswith(version + "."):
                    wrong = f"read by Python {found['by']['python']}"
                asked = release if root == "/" else ""
                if not wrong and found["by"]["pyroute2"] != asked:
                    wrong = f"read by pyroute2 {found['by']['pyroute2']}"
                if not wrong and found["snapshot"] != first.get("snapshot"):
                    wrong = "tells something else than the first"
                if not wrong and root == "/":
                    text = json.dumps(found["snapshot"])
                    wrong = ", ".join(f"{word} is missing" for word in TOLD if word not in text)
                name = "the running kernel" if root == "/" else Path(root).name
                by = f"Python {version}" + (f", pyroute2 {asked}" if asked else "")
                print(f"{'FAIL' if wrong else 'ok':5} {name}, {by}  {wrong}".rstrip())
                passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
