# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is missing on this machine, and which kernel is the newest."""

from __future__ import annotations

import io
import pathlib

import pytest

from ansible_collections.rdma.k8s.tests.lab import packages
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

QUIET = Progress(io.StringIO())


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        (["linux-image-6.1.0-9-amd64", "linux-image-6.1.0-47-amd64"], "6.1.0-47-amd64"),
        (["linux-image-6.12.99+deb12-amd64", "linux-image-6.12.117+deb12-amd64"], "6.12.117+deb12-amd64"),
        (["linux-image-6.12.9+deb12-amd64", "linux-image-6.1.0-57-amd64"], "6.12.9+deb12-amd64"),
        (["linux-image-6.12.48+deb13-amd64", "linux-image-amd64"], "6.12.48+deb13-amd64"),
        (
            [
                "linux-image-6.12-amd64",
                "linux-image-6.12.118+deb12-cloud-amd64",
                "linux-image-6.12.118+deb12-rt-amd64",
                "linux-image-6.12.118+deb12-amd64-dbg",
                "linux-image-6.12.118+deb12-amd64-unsigned",
                "linux-image-6.12.100+deb12-amd64",
            ],
            "6.12.100+deb12-amd64",
        ),
        (["linux-image-amd64", "linux-image-6.12.118+deb12-arm64"], None),
        ([], None),
    ],
)
def test_newest_kernel(names: list[str], newest: str | None) -> None:
    assert packages.newest_kernel(names) == newest


def test_missing_tools_are_named_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        packages, "find_tool", lambda tool: None if tool in ("ssh", "ssh-keygen", "qemu-img") else "/x"
    )
    assert packages.missing_packages(packages.RUN_TOOLS) == ["openssh-client", "qemu-utils"]


def test_every_tool_has_a_package() -> None:
    for tools in (packages.RUN_TOOLS, packages.BUILD_TOOLS, packages.DRIVER_TOOLS):
        assert set(tools) <= set(packages.TOOLS)


def test_administrators_programs_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "depmod"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(packages, "ADMIN_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert packages.find_tool("depmod") == str(program)
    assert packages.find_tool("mmdebstrap") is None
    assert packages.environment()["PATH"].endswith(str(tmp_path))


def write_release(path: pathlib.Path, text: str) -> pathlib.Path:
    """An os-release file."""
    path.write_text(text)
    return path


def test_distribution(tmp_path: pathlib.Path) -> None:
    debian = write_release(tmp_path / "a", 'PRETTY_NAME="Debian"\nVERSION_CODENAME=bookworm\nID=debian\n')
    assert packages.distribution(debian) == ("debian", "bookworm")
    fedora = write_release(tmp_path / "b", 'ID="fedora"\nVERSION_ID=40\n')
    assert packages.distribution(fedora) == ("fedora", "")
    assert packages.distribution(tmp_path / "missing") == ("", "")


def test_other_distributions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "distribution", lambda: ("fedora", ""))
    with pytest.raises(LabError, match=r"Building needs Debian and its package sources; this is fedora\."):
        packages.require_debian("Building")
    with pytest.raises(LabError, match="Missing here, by their Debian packages: qemu-utils"):
        packages.install(["qemu-utils"], pathlib.Path("/nonexistent"), QUIET)
    monkeypatch.setattr(packages, "distribution", lambda: ("debian", "bookworm"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LabError, match="needs apt-get"):
        packages.require_debian("Building")


def test_without_root_the_command_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\nexit 9\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(packages, "distribution", lambda: ("debian", "bookworm"))
    monkeypatch.setattr(packages.os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="as root run: apt-get install bc make"):
        packages.install(["bc", "make"], tmp_path / "log", QUIET)
    with pytest.raises(LabError, match="needs root"):
        packages.require_root("Building")
    packages.install([], tmp_path / "log", QUIET)


def test_old_lists_are_renewed_and_the_lock_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """The first install fails for want of a list; the update meets a lock once; then the install goes through."""
    apt = tmp_path / "apt-get"
    apt.write_text(
        f"""#!/bin/sh
echo "$@" >> {tmp_path}/calls
case "$*" in
  *update*) if [ -e {tmp_path}/fresh ]; then exit 0; fi; touch {tmp_path}/fresh
            echo "E: Could not get lock /x" >&2; exit 100 ;;
  *install*) [ "$(grep -c update {tmp_path}/calls)" -ge 2 ] ;;
esac
"""
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(packages, "distribution", lambda: ("debian", "bookworm"))
    monkeypatch.setattr(packages.os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages.time, "sleep", lambda seconds: None)
    packages.install(["bc"], tmp_path / "log", QUIET)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    assert [("install" if "install" in call else "update") for call in calls] == [
        "install",
        "update",
        "update",
        "install",
    ]
    assert all("DPkg::Lock::Timeout=300" in call for call in calls)
