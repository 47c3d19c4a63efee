# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edited rxe ("lab rxe"): the distribution's own driver with a few places changed, built from its source package.

The stock driver looks routes up in the first network namespace, listens for RoCE only there, and knows a received
packet only by the NIC itself. A hardware NIC has none of these limits, so the stock driver carries no traffic for an
IPvlan child. The edits remove the three limits and add shapes that only real hardware has. No kernel source is kept
with this program: it is fetched when the driver is built, and edited in place.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

from . import packages, plan
from .errors import LabError
from .progress import Progress, run_logged

MODULE = "rdma_rxe.ko"
SOURCE = "drivers/infiniband/sw/rxe"
PARTS = pathlib.Path(__file__).with_name("rxe_parts")
GIDS = 64
"""Entries of a GID table of the edited driver; the stock one has 1024, cards have some 256."""


@dataclasses.dataclass(frozen=True)
class Edit:
    """One change of one file: ``anchor`` is a regular expression that must match exactly once."""

    file: str
    why: str
    anchor: str
    replacement: str


def part(name: str) -> str:
    """A piece of C out of ``rxe_parts``, without the comment that stands at its head."""
    text = (PARTS / f"{name}.c").read_text(encoding="utf-8")
    return text.partition("*/\n\n")[2]


EDITS = (
    Edit(
        "rxe_net.c",
        "the per-namespace data of the edits below",
        r"#include <net/udp_tunnel\.h>\n",
        "#include <net/netns/generic.h>\n#include <net/udp_tunnel.h>\n",
    ),
    Edit(
        "rxe_net.c",
        "send: look an IPv4 route up in the namespace of the address' own link",
        r"ip_route_output_key\(&init_net, &fl\)",
        "ip_route_output_key(dev_net(ndev), &fl)",
    ),
    Edit(
        "rxe_net.c",
        "send: the same for IPv6",
        r"ipv6_dst_lookup_flow\(sock_net\(recv_sockets\.sk6->sk\),\s*recv_sockets\.sk6->sk, &fl6,",
        "ipv6_dst_lookup_flow(dev_net(ndev), NULL, &fl6,",
    ),
    Edit(
        "rxe_net.c",
        "receive: a stacked link belongs to the RDMA device of a link below it",
        r"static int rxe_udp_encap_recv\(",
        part("device_below") + "\nstatic int rxe_udp_encap_recv(",
    ),
    Edit(
        "rxe_net.c",
        "receive: use it where the driver knows no device",
        r"\t\trxe = rxe_get_dev_from_net\(vlan_dev_real_dev\(ndev\)\);\n",
        "\t\trxe = rxe_get_dev_from_net(vlan_dev_real_dev(ndev));\n\tif (!rxe)\n\t\trxe = lab_device_below(ndev);\n",
    ),
    Edit(
        "rxe_net.c",
        "receive: listen in every network namespace, not only in the first",
        r"void rxe_net_exit\(void\)\n\{\n",
        part("sockets") + "\nvoid rxe_net_exit(void)\n{\n\tunregister_pernet_subsys(&lab_namespaces);\n",
    ),
    Edit(
        "rxe_net.c",
        "receive: register it",
        r"(?<=int rxe_net_init\(void\)\n\{\n)\tint err;\n",
        "\tint err = register_pernet_subsys(&lab_namespaces);\n\n\tif (err)\n\t\treturn err;\n",
    ),
    Edit(
        "rxe_param.h",
        "a GID table that an emulated node reads in a moment: who looks for the device of a NIC reads every entry",
        r"(?<=RXE_PORT_GID_TBL_LEN)(\s*=\s*)1024,",
        f" = {GIDS},",
    ),
    Edit(
        "rxe_verbs.c",
        "options for shapes that the stock driver does not have",
        r'#include "rxe_hw_counters\.h"\n',
        '#include "rxe_hw_counters.h"\n\n' + part("options"),
    ),
    Edit(
        "rxe_verbs.c",
        "fake InfiniBand link layer, for discovery only",
        r"\treturn IB_LINK_LAYER_ETHERNET;\n",
        "\tif (sysfs_streq(lab_ib_link, dev_name(&ibdev->dev)))\n\t\treturn IB_LINK_LAYER_INFINIBAND;\n\n"
        "\treturn IB_LINK_LAYER_ETHERNET;\n",
    ),
    Edit(
        "rxe_verbs.c",
        "two GIDs for each address, as hardware has",
        r"\timmutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;\n",
        "\timmutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;\n"
        "\tif (lab_roce_v1)\n\t\timmutable->core_cap_flags |= RDMA_CORE_CAP_PROT_ROCE;\n",
    ),
    Edit(
        "rxe_verbs.c",
        "movable between namespaces in exclusive mode",
        r"\t\t?\.alloc_ucontext = rxe_alloc_ucontext,\n",
        "\t.alloc_ucontext = rxe_alloc_ucontext,\n\t.disassociate_ucontext = lab_disassociate,\n",
    ),
    Edit(
        "rxe_verbs.c",
        "place in sysfs",
        r"\terr = ib_register_device\(dev, ibdev_name, NULL\);\n",
        "\tif (lab_parent)\n\t\tdev->dev.parent = ndev->dev.parent;\n\n"
        "\terr = ib_register_device(dev, ibdev_name, NULL);\n",
    ),
)
"""All changes, in the order in which they are made."""


def directory_name(abi: str) -> str:
    """Name in the cache of the driver for one kernel, by a hash of the edits."""
    return f"driver-{abi}-{plan.digest([dataclasses.astuple(edit) for edit in EDITS])}"


def apply_edits(file: str, text: str, edits: tuple[Edit, ...] = EDITS) -> str:
    """``text`` of ``file`` with all its edits; raises ``edit_unfit`` where the source differs from what they expect."""
    for edit in edits:
        if edit.file != file:
            continue
        text, count = re.subn(edit.anchor, edit.replacement.replace("\\", "\\\\"), text)
        if count != 1:
            raise LabError(
                "edit_unfit",
                f"the edit of {file} for {edit.why!r} fits {count} places instead of one: this kernel's rxe differs",
            )
    return text


def find_compiler(kernel_variables: str) -> str:
    """The compiler that the kernel's headers ask for, such as ``gcc-12``."""
    match = re.search(r"\bgcc-\d+\b", kernel_variables)
    return match[0] if match else "gcc"


def build(abi: str, directory: pathlib.Path, log: pathlib.Path, progress: Progress) -> None:
    """Fetch, edit and compile; leaves the module in ``directory``.

    Headers and build tools are unpacked beside the source instead of being installed. The headers name each other by
    absolute path in one line, which is pointed at the unpacked copy.
    """
    flavour = abi.rsplit("-", 1)
    work = directory / "work"
    series = ".".join(abi.split(".")[:2])
    names = [f"linux-headers-{abi}", f"linux-headers-{flavour[0]}-common", f"linux-source-{series}"]
    kbuild = [f"linux-kbuild-{flavour[0]}", f"linux-kbuild-{series}"]
    for name in kbuild:
        if _known(name):
            names.append(name)
            break
    files = packages.download(names, work / "deb", log)
    headers = work / "headers"
    for file in files:
        if not file.name.startswith("linux-source-"):
            run_logged(["dpkg-deb", "--extract", str(file), str(headers)], log)
    (source_package,) = (file for file in files if file.name.startswith("linux-source-"))
    _unpack_source(source_package, series, work / "source", log)
    shutil.rmtree(work / "deb")

    source = work / "source" / SOURCE
    for name in sorted({edit.file for edit in EDITS}):
        path = source / name
        path.write_text(apply_edits(name, path.read_text(encoding="utf-8")), encoding="utf-8")

    build_tree = headers / "usr" / "src" / f"linux-headers-{abi}"
    common = headers / "usr" / "src" / f"linux-headers-{flavour[0]}-common"
    (build_tree / "Makefile").write_text(f"include {common}/Makefile\n", encoding="utf-8")
    compiler = find_compiler((build_tree / ".kernelvariables").read_text(encoding="utf-8"))
    if packages.find_tool(compiler) is None:
        packages.install([compiler], log, progress)
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    options = ["CONFIG_RDMA_RXE=m", "CONFIG_DEBUG_INFO_BTF_MODULES="]
    command = ["make", "-s", jobs, "-C", str(build_tree), f"M={source}", *options, "modules"]
    run_logged(command, log, env=packages.environment())
    run_logged(["strip", "--strip-debug", "-o", str(directory / MODULE), str(source / MODULE)], log)
    shutil.rmtree(work)


def _known(package: str) -> bool:
    """True when apt knows a package of this name."""
    done = subprocess.run(
        ["apt-cache", "show", package], capture_output=True, check=False, env=packages.environment()
    )
    return done.returncode == 0


def _unpack_source(package: pathlib.Path, series: str, target: pathlib.Path, log: pathlib.Path) -> None:
    """Take only the driver out of the source package; the archive inside it is never written to disk."""
    target.mkdir(parents=True)
    archive = f"./usr/src/linux-source-{series}.tar.xz"
    pattern = f"*/{SOURCE}/*"
    with log.open("ab") as errors:
        stages = (
            ["dpkg-deb", "--fsys-tarfile", str(package)],
            ["tar", "--extract", "--to-stdout", archive],
            ["xz", "--decompress", "--stdout", "--threads=0"],
            ["tar", "--extract", "--strip-components=1", "--wildcards", f"--directory={target}", pattern],
        )
        running: list[subprocess.Popen] = []
        for number, stage in enumerate(stages):
            stdin = running[-1].stdout if running else subprocess.DEVNULL
            stdout = subprocess.PIPE if number < len(stages) - 1 else errors
            running.append(subprocess.Popen(stage, stdin=stdin, stdout=stdout, stderr=errors))
        for process in running[:-1]:
            # Only the next stage may hold the pipe, or the stage before never sees that it has ended.
            if process.stdout:
                process.stdout.close()
        codes = [process.wait() for process in running]
    if any(codes):
        raise LabError("source_unpack", f"{package.name} could not be unpacked (codes {codes}; see {log}).")
