# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods as Spiderpool makes them, in namespaces of this machine: interfaces, rules and tables are real.

``/sys/class``, ``/dev/infiniband`` and the programs of an image are files in a directory that is mounted over those of
the machine, in the pod's own mount namespace, which ends with the command that runs in it. No RDMA device is there, so
its files are written as the kernel writes them, and device nodes lead to no driver.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEARCH = "/usr/sbin:/sbin:/usr/bin:/bin"
_ZERO = ":".join(["0000"] * 8)
_NULL = (1, 3)


@dataclass(frozen=True)
class RailPod:
    """A pod with rails ``net1`` to ``netN``; the address on rail K is ``172.16.(10 + K).HOST``.

    :param edit: words behind ``ip`` that are run when everything is made.
    :param foreign: a device of the host that the pod sees, without an interface here.
    :param hidden: programs of the machine that the image does not have.
    :param programs: further programs of the image: name to the text of a script.
    """

    host: int = 10
    rails: int = 2
    length: int = 24
    mtu: int = 1500
    mode: str = "N"
    layer: str = "Ethernet"
    lid: str = "0x11"
    sm_lid: str = "0x1"
    state: str = "4: ACTIVE"
    guid: str = "b83f:d203:00aa:000%d"
    gid_type: str = "RoCE v2"
    files: bool = True
    shift: int = 0
    foreign: bool = False
    memlock: str = ""
    dropped: tuple[str, ...] = ()
    edit: tuple[tuple[str, ...], ...] = ()
    hidden: tuple[str, ...] = ()
    programs: dict[str, str] = field(default_factory=dict)
    shell: tuple[str, ...] = ("sh",)

    def words(self) -> list[str]:
        """What to put before a command so that it runs in the pod."""
        task = json.dumps(dataclasses.asdict(self))
        unshare = shutil.which("unshare") or "/usr/bin/unshare"
        return [unshare, "--mount", "--net", "--propagation", "private", sys.executable, __file__, task]

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """What a program for a shell, which is given to its standard input, prints in the pod."""
        return subprocess.run(
            [*self.words(), *self.shell, "-s", "--", *arguments],
            input=script,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def good(**changes: Any) -> RailPod:
    """A pod with which nothing is wrong, in an image with the programs of rdma-core."""
    pod = RailPod(**changes)
    names = ["mlx5_%d" % (7 + rail) for rail in range(pod.rails)]
    listed = "".join(["echo '    %s          \t%s'\n" % (name, "b83fd20300aa0000") for name in names])
    info = "".join(["echo 'hca_id:\t%s'\necho '\t\t\tactive_mtu:\t\t1024 (3)'\n" % name for name in names])
    programs = {
        "ibv_devices": "echo '    device          \tnode GUID'\n" + listed,
        "ibv_devinfo": info,
        **pod.programs,
    }
    return dataclasses.replace(pod, programs=programs)


def _main() -> None:
    pod = json.loads(sys.argv[1])
    place = Path("/run")
    _run("mount", "-t", "tmpfs", "run", str(place))
    _network(pod)
    _class(pod, place / "class")
    _devices(pod, place / "infiniband")
    path = _image(pod, place / "bin")
    words = sys.argv[2:]
    dropped = ["-all", *["+" + word for word in pod["dropped"]]] if pod["dropped"] else []
    if dropped:
        words = [_tool("setpriv"), "--bounding-set", ",".join(dropped), *words]
    if pod["memlock"]:
        words = [_tool("prlimit"), "--memlock=%s" % pod["memlock"], *words]
    words[0] = shutil.which(words[0], path=path) or words[0]
    os.execve(words[0], words, {"PATH": path})


def _network(pod: dict[str, Any]) -> None:
    ip = _tool("ip")
    _run(ip, "link", "set", "lo", "up")
    _run(ip, "link", "add", "eth0", "type", "bridge")  # of the kinds that every kernel here has
    _run(ip, "link", "set", "eth0", "up")
    _run(ip, "address", "add", "10.1.2.%d/24" % pod["host"], "dev", "eth0")
    _run(ip, "route", "add", "default", "via", "10.1.2.1", "dev", "eth0")
    for rail in range(1, pod["rails"] + 1):
        name, net = "net%d" % rail, "172.16.1%d." % rail
        _run(ip, "link", "add", name, "type", "bridge")
        _run(ip, "link", "set", name, "mtu", str(pod["mtu"]), "up")
        address = "%s%d/%d" % (net, pod["host"], pod["length"])
        _run(ip, "address", "add", address, "brd", "+", "dev", name)
        table = str(100 + rail)
        _run(ip, "route", "add", "default", "via", net + "254", "dev", name, "table", table, "onlink")
        _run(ip, "rule", "add", "from", net + str(pod["host"]), "lookup", table)
    for words in pod["edit"]:
        _run(ip, *words)


def _class(pod: dict[str, Any], place: Path) -> None:
    """The classes of a kernel with RDMA; the files of interfaces are those of this namespace."""
    place.mkdir()
    _run("mount", "-t", "sysfs", "sysfs", "/sys")
    names = [entry.name for entry in Path("/sys/class/net").iterdir() if (entry / "flags").exists()]
    for name in names:
        (place / "net" / name).mkdir(parents=True)
        for file in ("type", "flags", "mtu"):
            (place / "net" / name / file).write_text(
                Path("/sys/class/net", name, file).read_text(encoding="utf-8"), encoding="utf-8"
            )
        state = "up" if int(Path("/sys/class/net", name, "flags").read_text(), 16) & 1 else "down"
        (place / "net" / name / "operstate").write_text(state + "\n", encoding="utf-8")
    rails = [(rail, "mlx5_%d" % (6 + rail), "net%d" % rail) for rail in range(1, pod["rails"] + 1)]
    functions = place / "functions"
    (place / "infiniband_verbs").mkdir()
    (place / "infiniband").mkdir()
    for rail, device, name in rails:
        physical = functions / ("0000:%02x:00.0" % (0x80 + rail))
        virtual = functions / ("0000:%02x:00.2" % (0x80 + rail))
        physical.mkdir(parents=True)
        virtual.mkdir()
        (virtual / "physfn").symlink_to(physical)
        (place / "net" / name / "device").symlink_to(virtual)
        gids = (
            {} if pod["layer"] == "InfiniBand" else {3: ("::ffff:172.16.1%d.%d" % (rail, pod["host"]), name)}
        )
        guid = pod["guid"] % rail if "%" in pod["guid"] else pod["guid"]
        _device(pod, place, device, guid, gids)
        (place / "infiniband" / device / "device").symlink_to(virtual)
        _verbs(place, rail - 1, device, 192 + rail - 1)
    if pod["foreign"]:
        _device(pod, place, "mlx5_0", "b83f:d203:00aa:00ff", {1: ("fe80::1", "ens6f0np0")})
        _verbs(place, 7, "mlx5_0", 199)
    module = place / "module"
    (module / "ib_core" / "parameters").mkdir(parents=True)
    (module / "ib_core" / "parameters" / "netns_mode").write_text(pod["mode"] + "\n", encoding="utf-8")
    _run("mount", "--bind", str(module), "/sys/module")
    _run("mount", "--bind", str(place), "/sys/class")


def _device(
    pod: dict[str, Any], place: Path, device: str, guid: str, gids: dict[int, tuple[str, str]]
) -> None:
    root = place / "infiniband" / device
    port = root / "ports" / "1"
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / folder).mkdir(parents=True)
    values = {
        "state": pod["state"],
        "phys_state": "5: LinkUp",
        "link_layer": pod["layer"],
        "lid": pod["lid"],
        "sm_lid": pod["sm_lid"],
    }
    for name, value in values.items():
        (port / name).write_text(value + "\n", encoding="utf-8")
    (root / "node_guid").write_text(guid + "\n", encoding="utf-8")
    for index in range(16):
        (port / "gids" / str(index)).write_text(_ZERO + "\n", encoding="utf-8")
    for index, (address, netdev) in gids.items():
        text = ipaddress.IPv6Address(address).exploded
        (port / "gids" / str(index)).write_text(text + "\n", encoding="utf-8")
        (port / "gid_attrs/types" / str(index)).write_text(pod["gid_type"] + "\n", encoding="utf-8")
        (port / "gid_attrs/ndevs" / str(index)).write_text(netdev + "\n", encoding="utf-8")


def _verbs(place: Path, number: int, device: str, minor: int) -> None:
    root = place / "infiniband_verbs" / ("uverbs%d" % number)
    root.mkdir()
    (root / "ibdev").write_text(device + "\n", encoding="utf-8")
    (root / "dev").write_text("231:%d\n" % minor, encoding="utf-8")
    (root / "abi_version").write_text("1\n", encoding="utf-8")


def _devices(pod: dict[str, Any], place: Path) -> None:
    _run("mount", "-t", "tmpfs", "dev", "/dev")
    os.mknod("/dev/null", stat.S_IFCHR | 0o666, os.makedev(*_NULL))
    if not pod["files"]:
        return
    os.mkdir("/dev/infiniband")
    for rail in range(pod["rails"]):
        minor = 192 + rail + pod["shift"]
        os.mknod("/dev/infiniband/uverbs%d" % rail, stat.S_IFCHR | 0o666, os.makedev(231, minor))
    os.mknod("/dev/infiniband/rdma_cm", stat.S_IFCHR | 0o666, os.makedev(10, 58))
    del place


def _image(pod: dict[str, Any], place: Path) -> str:
    """The programs of the image: those of the machine without the hidden ones, and its own."""
    place.mkdir()
    for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
        for entry in sorted(Path(folder).iterdir()):
            if entry.name not in pod["hidden"] and not (place / entry.name).exists():
                (place / entry.name).symlink_to(entry)
    for name, text in pod["programs"].items():
        (place / name).unlink(missing_ok=True)
        (place / name).write_text("#!/bin/sh\n" + text, encoding="utf-8")
        (place / name).chmod(0o755)
    for name in pod["hidden"]:
        for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin"):
            found = Path(folder, name)
            if found.is_file() and not found.is_symlink():
                _run("mount", "--bind", "/dev/null", str(found))
    return str(place)


def _tool(name: str) -> str:
    return shutil.which(name, path=SEARCH) or name


def _run(*words: str) -> None:
    done = subprocess.run(
        [_tool(words[0]), *words[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout)


if __name__ == "__main__":
    _main()
