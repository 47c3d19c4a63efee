# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QEMU: what can run here, and the command line of one node (a pure function, so that it can be tested and hashed)."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import platform
import re
import shutil
import subprocess

from . import plan
from .errors import LabError

BINARY = "qemu-system-x86_64"
OLDEST = (7, 2)
"""The first QEMU with ``-netdev dgram``, which the rails are made of."""
KVM_CREATE_VM = 0xAE01
KERNEL_OPTIONS = "console=ttyS0 net.ifnames=0 root=/dev/vda rw quiet random.trust_cpu=on"
FAST_OPTIONS = "mitigations=off init_on_alloc=0 nokaslr audit=0 apparmor=0 selinux=0"
"""Kernel options that only save time in an emulated machine."""
API_ADDRESS = plan.vnic_gateway() + 2
API_PORT = 6443
"""Where a node of a cluster finds the API server: an address that only its own network has."""
SNAPSHOT = "ready"
"""Name of the saved state inside the disk of a warm node."""


@dataclasses.dataclass(frozen=True)
class NodeFiles:
    """The files that one QEMU process uses. All but the image's are names in its working directory.

    ``kube`` is the disk with the programs of a cluster, ``relay`` the command that carries a connection to its API.
    """

    kernel: str
    initrd: str
    disk: str
    document: str
    console: str
    pid: str
    qmp: str
    kube: str = ""
    relay: str = ""


@dataclasses.dataclass(frozen=True)
class Start:
    """How a node is started: for which lab, by which accelerator, sshd at which port, resumed or not."""

    lab: str
    accel: str
    port: int
    resume: bool = False


def kvm_works(sys_module: pathlib.Path = pathlib.Path("/sys/module"), device: str = "/dev/kvm") -> bool:
    """True only where hardware runs an unmodified kernel.

    A working KVM_CREATE_VM is no proof: a software hypervisor answers it too and then fails in the guest's first
    instructions. So the module that drives the processor's own virtualisation must be loaded as well.
    """
    if not any((sys_module / name).exists() for name in ("kvm_intel", "kvm_amd")):
        return False
    try:
        import fcntl

        kvm = os.open(device, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.close(fcntl.ioctl(kvm, KVM_CREATE_VM, 0))
        finally:
            os.close(kvm)
    except (ImportError, OSError):
        return False
    return True


def choose_accel(wish: str) -> str:
    """``kvm`` or ``tcg`` for the wish ``auto``, ``kvm`` or ``tcg``."""
    if wish == "auto":
        return "kvm" if kvm_works() else "tcg"
    if wish == "kvm" and not kvm_works():
        raise LabError(
            "kvm_missing", "--accel kvm: hardware KVM does not work on this machine; use --accel tcg."
        )
    return wish


def parse_version(text: str) -> tuple[int, int]:
    """Major and minor number in the output of ``qemu --version``."""
    match = re.search(r"version (\d+)\.(\d+)", text)
    if not match:
        raise LabError("qemu_version", f"{BINARY} --version says {text.strip()!r}, which names no version.")
    return int(match[1]), int(match[2])


def qemu_build() -> str:
    """One line that names this very QEMU; saved states belong to it. Refuses one that is too old."""
    path = shutil.which(BINARY)
    if path is None:
        raise LabError("qemu_missing", f"{BINARY} is not on the PATH.")
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    version = parse_version(text)
    if version < OLDEST:
        raise LabError(
            "qemu_old",
            f"{BINARY} is {version[0]}.{version[1]}; the lab needs {OLDEST[0]}.{OLDEST[1]} or newer.",
        )
    return f"{text.splitlines()[0]} {os.stat(path).st_size}"


def check_host() -> None:
    """Refuse a machine that cannot run the nodes at all."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        found = f"{platform.system()} on {platform.machine()}"
        raise LabError("host_unfit", f"The lab's nodes are x86_64 Linux machines; this is {found}.")


def process_name(lab: str, node: int) -> str:
    """The ``-name`` of a node's QEMU, by which it is recognised before it is ended."""
    return f"rdma-lab-{lab}-node{node}"


def rail_socket(rail: int, node: int) -> str:
    """Name of the socket at which a node listens for the frames of one rail."""
    return f"rail{rail}-node{node}"


def switch_socket(rail: int, node: int) -> str:
    """Name of the socket at which the switch listens for one node's frames on one rail."""
    return f"rail{rail}-port{node}"


def _accel_options(accel: str) -> list[str]:
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=256", "-cpu", "Nehalem,+rdrand"]


def _numa_options(spec: plan.LabSpec) -> list[str]:
    """Two NUMA nodes (only the first has a processor), and one PCIe root per card so that it sits at its own bus."""
    half = spec.mem // 2
    options = []
    for node in (0, 1):
        options += ["-object", f"memory-backend-ram,id=mem{node},size={half}M"]
        options += ["-numa", f"node,nodeid={node},memdev=mem{node}" + (",cpus=0" if node == 0 else "")]
    buses = dict.fromkeys((place.bus, place.numa_node) for place in plan.pci_places(spec))
    for slot, (bus, numa_node) in enumerate(buses, start=1):
        root = (
            f"pxb-pcie,id=root{bus:02x},bus=pcie.0,addr=0x{7 + slot:x},bus_nr={bus - 1},numa_node={numa_node}"
        )
        options += ["-device", root]
        options += [
            "-device",
            f"pcie-root-port,id=card{bus:02x},bus=root{bus:02x},chassis={slot},slot={slot}",
        ]
    return options


def _rail_options(spec: plan.LabSpec, node: int, rail: int) -> list[str]:
    # Two nodes need no switch between them: each sends to the other's socket.
    peer = rail_socket(rail, 3 - node) if spec.nodes == 2 else switch_socket(rail, node)
    local = rail_socket(rail, node)
    netdev = f"dgram,id=rail{rail},local.type=unix,local.path={local},remote.type=unix,remote.path={peer}"
    if spec.nic == "virtio":
        device = f"virtio-net-pci,host_mtu={plan.LINK_MTU},speed=200000,duplex=full,mq=off"
    else:
        device = "e1000e"
    device += f",id=nic{rail},netdev=rail{rail},mac={plan.mac(node, rail)},romfile="
    if spec.numa:
        places = plan.pci_places(spec)
        place = places[rail]
        device += f",bus=card{place.bus:02x},addr=0x0.{place.function}"
        if place.function == 0 and sum(other.bus == place.bus for other in places) > 1:
            device += ",multifunction=on"
    else:
        device += f",bus=pcie.0,addr=0x{8 + rail:x}"
    return ["-netdev", netdev, "-device", device]


def node_command(spec: plan.LabSpec, node: int, files: NodeFiles, start: Start) -> list[str]:
    """The command line of the QEMU of node ``node``; ``start.port`` on 127.0.0.1 leads to its sshd.

    The management NIC has the address of the primary VNIC and reaches nothing but its own machine. It sits at the
    lowest slot, so it is found first and is eth0.
    """
    address, gateway = plan.vnic_address(node), plan.vnic_gateway()
    append = (
        f"{KERNEL_OPTIONS} {FAST_OPTIONS} systemd.machine_id={node:032x} systemd.hostname=node{node}"
        f" lab.address={address}/{plan.VNIC_SUBNET.prefixlen} lab.gateway={gateway}"
    )
    management = (
        f"user,id=management,ipv6=off,restrict=on,net={plan.VNIC_SUBNET},host={gateway},dns={gateway + 1},"
        f"dhcpstart={gateway + 8},hostfwd=tcp:127.0.0.1:{start.port}-{address}:22"
    )
    if spec.kube:
        # A comma would end the option.
        relay = files.relay.replace(",", ",,")
        management += f",guestfwd=tcp:{API_ADDRESS}:{API_PORT}-cmd:{relay}"
    command = [
        BINARY,
        "-name",
        process_name(start.lab, node),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
    ]
    command += [
        "-M",
        "q35,usb=off,vmport=off",
        *_accel_options(start.accel),
        "-smp",
        "1",
        "-m",
        str(spec.mem),
    ]
    command += ["-kernel", files.kernel, "-initrd", files.initrd, "-append", append]
    command += ["-fw_cfg", f"name=opt/rdma-lab/node,file={files.document}"]
    command += ["-serial", f"file:{files.console}", "-pidfile", files.pid]
    command += ["-qmp", f"unix:{files.qmp},server=on,wait=off"]
    command += ["-netdev", management]
    command += [
        "-device",
        f"virtio-net-pci,netdev=management,mac={plan.mac(node, None)},romfile=,bus=pcie.0,addr=0x2",
    ]
    command += ["-drive", f"if=none,id=disk,file={files.disk},format=qcow2,cache=unsafe,discard=unmap"]
    command += ["-device", "virtio-blk-pci,drive=disk,bus=pcie.0,addr=0x3"]
    command += ["-device", "virtio-rng-pci,bus=pcie.0,addr=0x4"]
    if spec.kube:
        command += ["-drive", f"if=none,id=kube,file={files.kube},format=raw,readonly=on"]
        command += ["-device", "virtio-blk-pci,drive=kube,bus=pcie.0,addr=0x5"]
    if spec.numa:
        command += _numa_options(spec)
    for rail in range(spec.rails):
        command += _rail_options(spec, node, rail)
    if start.resume:
        command += ["-loadvm", SNAPSHOT]
    return command


def state_key(spec: plan.LabSpec, image: str, accel: str, build: str) -> str:
    """Hash of all that a saved state depends on: the QEMU, every node's command line and document, the image."""
    files = NodeFiles("kernel", "initrd", "disk", "document", "console", "pid", "qmp")
    start = Start("any", accel, 0)
    nodes = [
        (node_command(spec, node, files, start), plan.node_document(spec, node))
        for node in range(1, spec.nodes + 1)
    ]
    return plan.digest(image, build, nodes)
