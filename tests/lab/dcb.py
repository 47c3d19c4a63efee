# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCB on the NICs of a node: no virtual NIC has a driver with DCB, so a small kernel module lends them one.

The netlink interface and the table of applications are those of the node's own kernel. The module is built when it is
first asked for, from its one source file and the kernel's headers, and kept in the cache.
"""

from __future__ import annotations

import base64
import pathlib
import shutil

from . import packages, plan, rxe
from .errors import LabError
from .image import Cache
from .lab import Lab
from .progress import Progress, run_logged

NAME = "rdma_lab_dcb"
SOURCE = pathlib.Path(__file__).with_name("dcb_parts") / f"{NAME}.c"
PLACE = f"/run/{NAME}.ko"


def directory_name(abi: str) -> str:
    """Name in the cache of the module for one kernel, by a hash of its source."""
    return f"dcb-{abi}-{plan.digest([SOURCE.read_text(encoding='utf-8')])}"


def ensure(cache: Cache, abi: str) -> pathlib.Path:
    """The module for this kernel, built if need be."""
    name = directory_name(abi)
    module = cache.path / name / f"{NAME}.ko"
    with cache.locked():
        if not module.exists():
            with cache.progress.step("module that lends DCB to NICs"), cache.building(name) as directory:
                build(abi, directory, cache.log, cache.progress)
    return module


def build(abi: str, directory: pathlib.Path, log: pathlib.Path, progress: Progress) -> None:
    """Fetch the headers and compile; leaves the module in ``directory``."""
    work = directory / "work"
    build_tree = unpack_headers(abi, work, log)
    source = work / "source"
    source.mkdir(parents=True)
    shutil.copy(SOURCE, source)
    (source / "Makefile").write_text(f"obj-m := {NAME}.o\n", encoding="utf-8")
    compiler = rxe.find_compiler((build_tree / ".kernelvariables").read_text(encoding="utf-8"))
    if packages.find_tool(compiler) is None:
        packages.install([compiler], log, progress)
    options = ["CONFIG_DEBUG_INFO_BTF_MODULES="]
    command = ["make", "-s", "-C", str(build_tree), f"M={source}", *options, "modules"]
    run_logged(command, log, env=packages.environment())
    built = source / f"{NAME}.ko"
    run_logged(["strip", "--strip-debug", "-o", str(directory / built.name), str(built)], log)
    shutil.rmtree(work)


def unpack_headers(abi: str, work: pathlib.Path, log: pathlib.Path) -> pathlib.Path:
    """Unpack the kernel's headers and build tools below ``work``; the tree to build in."""
    version = abi.rsplit("-", 1)[0]
    names = [f"linux-headers-{abi}", f"linux-headers-{version}-common"]
    tools = [f"linux-kbuild-{version}", f"linux-kbuild-{'.'.join(abi.split('.')[:2])}"]
    names += [name for name in tools if rxe._known(name)][:1]
    headers = work / "headers"
    for file in packages.download(names, work / "deb", log):
        run_logged(["dpkg-deb", "--extract", str(file), str(headers)], log)
    shutil.rmtree(work / "deb")
    build_tree = headers / "usr" / "src" / f"linux-headers-{abi}"
    common = headers / "usr" / "src" / f"linux-headers-{version}-common"
    (build_tree / "Makefile").write_text(f"include {common}/Makefile\n", encoding="utf-8")
    return build_tree


def lend(lab: Lab, node: int, nics: list[str], silent: list[str]) -> None:
    """Load the module on a node for some NICs; those in ``silent`` forget what they are told."""
    strange = sorted(set(silent) - set(nics))
    if strange or not nics:
        raise LabError(
            "dcb_nics", f"name the NICs that get DCB; not among them: {', '.join(strange) or 'none'}"
        )
    abi = lab.node_run(node, "uname -r").strip()
    module = base64.b64encode(ensure(lab.cache, abi).read_bytes()).decode("ascii")
    words = [f"nics={','.join(nics)}", *([f"silent={','.join(silent)}"] if silent else [])]
    take_back(lab, node)
    lab.node_run(node, f"base64 -d > {PLACE} <<'END'\n{module}\nEND\ninsmod {PLACE} {' '.join(words)}")


def take_back(lab: Lab, node: int) -> None:
    """Unload the module, if it is there."""
    lab.node_run(node, f"if [ -d /sys/module/{NAME} ]; then rmmod {NAME}; fi")
