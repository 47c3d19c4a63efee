# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a container runtime makes for the pod test of Lingjun nodes, so that its program runs as it does in a pod.

Mount and network namespaces of their own, a /dev in memory with device nodes, shared memory with a size, limits and
capabilities of a container: these are real. /sys/class is a tree of files, as this machine has no RDMA device, and its
device nodes lead to /dev/null, or to no driver where an open is to fail. All of it ends with the program.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CAPABILITIES = (
    "chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,"
    "audit_write,setfcap"
)
"""What containerd gives to a container of root."""
_NULL, _NO_DRIVER = (1, 3), (239, 77)
_LIMIT = 60
_SYS_RESOURCE = 1 << 24


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device. GIDs are triples of index, type and interface, by GID."""

    device: str
    state: str = "4: ACTIVE"
    layer: str = "Ethernet"
    gids: dict[str, tuple[int, str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Container:
    """What the runtime, the kubelet and the device plugin gave to a container.

    :param files: device files by name: ``open``, ``denied``, or ``none`` for an ordinary file.
    :param verbs: RDMA device of each uverbs file that the kernel shows.
    :param interfaces: addresses of the interfaces of the pod, and of the host on its network.
    :param memlock: bytes that may be locked.
    :param shm: options of the mount at /dev/shm; empty: nothing is mounted there.
    """

    files: dict[str, str] = field(default_factory=dict)
    verbs: dict[str, str] = field(default_factory=dict)
    ports: tuple[Port, ...] = ()
    interfaces: dict[str, list[str]] = field(default_factory=lambda: {"eth0": []})
    no_ipv6: bool = False
    memlock: int = 65536
    added: str = "ipc_lock,sys_resource"
    shm: str = "size=1g"


def lingjun(bonds: int = 4, own_network: bool = False) -> Container:
    """A pod of shared mode on a good node with LACP bonds (A18), on the network of the host or on its own."""
    names = ["mlx5_bond_%d" % number for number in range(bonds)]
    files = {"rdma_cm": "open"}
    interfaces: dict[str, list[str]] = {"eth0": ["2001:db8:9::7/96"]} if own_network else {"eth0": []}
    ports = []
    for number, name in enumerate(names):
        files.update({"uverbs%d" % number: "open", "umad%d" % number: "open", "issm%d" % number: "open"})
        gids = {
            "fe80:0000:0000:0000:0000:0000:0000:000%x" % number: (0, "RoCE v2", "bond%d" % number),
            "0000:0000:0000:0000:0000:ffff:0a14:000%x" % number: (1, "IB/RoCE v1", "bond%d" % number),
        }
        if own_network:
            gids["2001:0db8:0010:0000:0000:0000:0000:000%x" % number] = (2, "RoCE v2", "bond%d" % number)
            gids["2001:0db8:0009:0000:0000:0000:0000:000%x" % number] = (3, "RoCE v2", "eth0")
        else:
            gids["0000:0000:0000:0000:0000:ffff:0a14:010%x" % number] = (3, "RoCE v2", "bond%d" % number)
            interfaces["bond%d" % number] = []
        ports.append(Port(name, gids=gids))
    verbs = {"uverbs%d" % number: name for number, name in enumerate(names)}
    return Container(files, verbs, tuple(ports), interfaces)


def can_give_sys_resource() -> bool:
    """Whether this machine has CAP_SYS_RESOURCE to give: it may be a container that lacks it itself."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("CapBnd:"):
            return bool(int(line.split()[1], 16) & _SYS_RESOURCE)
    return False


def as_given(container: Container, evidence: dict[str, Any]) -> dict[str, Any]:
    """The evidence with CAP_SYS_RESOURCE, where it was to be given and this machine has none to give."""
    if "sys_resource" not in container.added or can_give_sys_resource():
        return evidence
    return {**evidence, "caps": "%016x" % (int(evidence["caps"], 16) | _SYS_RESOURCE)}


def run(container: Container, script: str, shell: tuple[str, ...] = ("sh",)) -> tuple[str, str]:
    """What the program prints in it, and its termination message.

    :param shell: the words of the shell that runs it.
    """
    task = {"container": dataclasses.asdict(container), "script": script, "shell": list(shell)}
    program = shutil.which("unshare") or "/usr/bin/unshare"
    done = subprocess.run(
        [program, "--mount", "--net", "--propagation", "private", sys.executable, __file__],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        timeout=_LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["code"] == 0, told
    assert told["errors"] == "", told
    return told["printed"], told["message"]


def _main() -> None:
    task = json.load(sys.stdin)
    container: dict[str, Any] = task["container"]
    programs = {
        name: shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin") or name for name in ("ip", "setpriv")
    }
    _network(container, programs["ip"])
    _class(container)
    _devices(container)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (container["memlock"], container["memlock"]))
    words = CAPABILITIES + ("," + container["added"] if container["added"] else "")
    bounding = "-all," + ",".join(["+" + word for word in words.split(",")])
    done = subprocess.run(
        [programs["setpriv"], "--bounding-set", bounding, *task["shell"], "-c", task["script"]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    message = Path("/dev/termination-log").read_text(encoding="utf-8")
    print(
        json.dumps(
            {"code": done.returncode, "printed": done.stdout, "errors": done.stderr, "message": message}
        )
    )


def _network(container: dict[str, Any], ip: str) -> None:
    for name, addresses in container["interfaces"].items():
        _run(ip, "link", "add", name, "type", "bridge")  # of the kinds that every kernel here has
        switch = Path("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name)
        switch.write_text("1" if container["no_ipv6"] else "0", encoding="utf-8")
        _run(ip, "link", "set", name, "up")
        for address in addresses:
            _run(ip, "address", "add", address, "dev", name, "nodad")


def _class(container: dict[str, Any]) -> None:
    """The device classes of a kernel with RDMA, over those of this machine."""
    place = Path("/sys/class")
    _run("mount", "-t", "tmpfs", "class", str(place))
    for name in container["interfaces"]:
        (place / "net" / name).mkdir(parents=True)
    for name, device in container["verbs"].items():
        (place / "infiniband_verbs" / name).mkdir(parents=True)
        (place / "infiniband_verbs" / name / "ibdev").write_text(device + "\n", encoding="utf-8")
    for port in container["ports"]:
        root = place / "infiniband" / port["device"] / "ports" / "1"
        for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
            (root / folder).mkdir(parents=True)
        (root / "state").write_text(port["state"] + "\n", encoding="utf-8")
        (root / "link_layer").write_text(port["layer"] + "\n", encoding="utf-8")
        for index in range(16):
            (root / "gids" / str(index)).write_text(":".join(["0000"] * 8) + "\n", encoding="utf-8")
        for gid, (index, kind, interface) in port["gids"].items():
            (root / "gids" / str(index)).write_text(gid + "\n", encoding="utf-8")
            (root / "gid_attrs/types" / str(index)).write_text(kind + "\n", encoding="utf-8")
            (root / "gid_attrs/ndevs" / str(index)).write_text(interface + "\n", encoding="utf-8")


def _devices(container: dict[str, Any]) -> None:
    place = Path("/dev")
    while os.path.ismount("/dev/shm"):
        _run("umount", "--lazy", "/dev/shm")  # that of this machine, in this mount namespace alone
    _run("mount", "-t", "tmpfs", "dev", str(place))
    os.mknod(place / "null", stat.S_IFCHR | 0o666, os.makedev(*_NULL))
    (place / "termination-log").touch()
    (place / "shm").mkdir()
    if container["shm"]:
        _run("mount", "-t", "tmpfs", "-o", container["shm"], "shm", str(place / "shm"))
    if container["files"]:
        (place / "infiniband").mkdir()
    for name, state in container["files"].items():
        path = place / "infiniband" / name
        if state == "none":
            path.touch()
        else:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(*(_NULL if state == "open" else _NO_DRIVER)))


def _run(*words: str) -> None:
    program = shutil.which(words[0], path="/usr/sbin:/sbin:/usr/bin:/bin") or words[0]
    done = subprocess.run(
        [program, *words[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, (words, done.stdout)


if __name__ == "__main__":
    _main()
