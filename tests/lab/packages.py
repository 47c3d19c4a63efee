# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The distribution's packages: what is missing, how it gets here, which kernel is the newest."""

from __future__ import annotations

import collections.abc
import os
import pathlib
import re
import shutil
import subprocess
import time

from .errors import LabError
from .progress import Progress, run_logged

TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "cpio": "cpio",
    "depmod": "kmod",
    "zstd": "zstd",
    "xz": "xz-utils",
    "tar": "tar",
    "make": "make",
    "bc": "bc",
    "strip": "binutils",
    "dpkg-deb": "dpkg",
    "buildah": "buildah",
}
"""Programs that the lab calls, with the Debian package of each."""
RUN_TOOLS = ("qemu-system-x86_64", "qemu-img", "ssh", "ssh-keygen")
BUILD_TOOLS = ("mmdebstrap", "mke2fs", "cpio", "depmod", "zstd", "xz", "dpkg-deb")
DRIVER_TOOLS = ("make", "bc", "strip", "tar", "xz", "dpkg-deb")
ADMIN_PATH = "/usr/local/sbin:/usr/sbin:/sbin"
LOCK_WAIT = 300
"""Seconds for which another user of apt is waited for."""
KERNEL_PACKAGE = re.compile(r"linux-image-(\d+\.\d+(?:\.\d+)?(?:-\d+|\+deb\d+(?:u\d+)?)-amd64)")


def find_tool(tool: str) -> str | None:
    """Path of a program, also when it is in a directory that only root has on the PATH."""
    return shutil.which(tool, path=os.environ.get("PATH", os.defpath) + os.pathsep + ADMIN_PATH)


def environment() -> dict[str, str]:
    """The environment for programs of the distribution: administrator's directories on the PATH, plain English."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + ADMIN_PATH
    return {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def distribution(path: pathlib.Path = pathlib.Path("/etc/os-release")) -> tuple[str, str]:
    """Id and code name of this distribution, such as ``("debian", "bookworm")``; empty where it does not say."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    values = {key: value.strip("\"'") for key, _equals, value in (line.partition("=") for line in lines)}
    return values.get("ID", ""), values.get("VERSION_CODENAME", "")


def require_debian(what: str) -> str:
    """Code name of this Debian, or an error that says that ``what`` is only possible on Debian."""
    name, suite = distribution()
    if name != "debian" or not suite:
        raise LabError(
            "not_debian", f"{what} needs Debian and its package sources; this is {name or 'unknown'}."
        )
    if shutil.which("apt-get") is None:
        raise LabError("no_apt", f"{what} needs apt-get, which is not on the PATH.")
    return suite


def require_root(what: str) -> None:
    """Refuse to go on without root where only root can do it."""
    if os.geteuid():
        raise LabError(
            "not_root", f"{what} needs root: run it once as root; a lab from a finished image does not."
        )


def missing_packages(tools: collections.abc.Iterable[str]) -> list[str]:
    """Packages of those ``tools`` that are not here."""
    return sorted({TOOLS[tool] for tool in tools if find_tool(tool) is None})


def apt(arguments: list[str], log: pathlib.Path, cwd: pathlib.Path | None = None) -> None:
    """Run apt-get; wait while somebody else has its locks."""
    end = time.monotonic() + LOCK_WAIT
    command = ["apt-get", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_WAIT}", *arguments]
    while True:
        try:
            return run_logged(command, log, cwd=cwd, env=environment())
        except LabError as error:
            if "Could not get lock" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(2)


def apt_update(log: pathlib.Path) -> None:
    """Fetch the package lists."""
    apt(["update"], log)


def install(packages: list[str], log: pathlib.Path, progress: Progress) -> None:
    """Install Debian packages, with fresh lists when the present ones do not do; needs root."""
    if not packages:
        return
    wanted = " ".join(packages)
    name, _suite = distribution()
    if name != "debian" or shutil.which("apt-get") is None:
        raise LabError(
            "tools_missing", f"Missing here, by their Debian packages: {wanted}. Install them and try again."
        )
    if os.geteuid():
        raise LabError("tools_missing", f"Debian packages are missing; as root run: apt-get install {wanted}")
    arguments = ["install", "--yes", "--no-install-recommends", *packages]
    with progress.step(f"installing {wanted}"):
        try:
            apt(arguments, log)
        except LabError:
            apt_update(log)
            apt(arguments, log)


def ensure_tools(tools: collections.abc.Iterable[str], log: pathlib.Path, progress: Progress) -> None:
    """Bring the packages of all ``tools`` that are missing."""
    install(missing_packages(tools), log, progress)


def download(packages: list[str], directory: pathlib.Path, log: pathlib.Path) -> list[pathlib.Path]:
    """Fetch packages into ``directory`` without installing them; the files, sorted by name."""
    directory.mkdir(parents=True, exist_ok=True)
    # The sandbox user of apt need not be able to write there.
    apt(["-o", "APT::Sandbox::User=root", "download", *packages], log, cwd=directory)
    return sorted(directory.glob("*.deb"))


def version_key(text: str) -> list[tuple[int, int | str]]:
    """Sort key of a kernel version, number by number, so that 6.12.117 is newer than 6.12.99."""
    return [(1, int(part)) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text) if part]


def newest_kernel(names: collections.abc.Iterable[str]) -> str | None:
    """The newest kernel ABI among package names such as ``linux-image-6.12.117+deb12-amd64``; None without any.

    Only plain signed kernels count: no cloud, rt, unsigned or debug variants, no meta packages.
    """
    found = [match[1] for match in map(KERNEL_PACKAGE.fullmatch, names) if match]
    return max(found, key=version_key, default=None)


def detect_kernel(log: pathlib.Path, progress: Progress, fresh: bool = False) -> str:
    """The newest kernel ABI that the package sources offer; fetches the lists when they know none."""
    for attempt in range(2):
        if attempt or fresh:
            with progress.step("fetching the package lists"):
                apt_update(log)
        done = subprocess.run(
            ["apt-cache", "pkgnames", "linux-image-"],
            capture_output=True,
            text=True,
            check=False,
            env=environment(),
        )
        abi = newest_kernel(done.stdout.split())
        if abi and (attempt or fresh or _available(abi)):
            return abi
    raise LabError(
        "no_kernel", "The package sources offer no package linux-image-VERSION-amd64; see apt-cache policy."
    )


def _available(abi: str) -> bool:
    """True when apt knows a place to fetch that kernel from (old lists name kernels that are gone)."""
    shown = subprocess.run(
        ["apt-cache", "show", f"linux-image-{abi}"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    return "Filename:" in shown.stdout
