# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of nodes, the choice of the accelerator, and the key of a saved state."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from ansible_collections.rdma.k8s.tests.lab import plan, qemu
from ansible_collections.rdma.k8s.tests.lab.errors import LabError

FILES = qemu.NodeFiles(
    "/i/vmlinux", "/i/initrd", "node1.qcow2", "node1.json", "node1.console", "node1.pid", "node1.qmp"
)
START = qemu.Start("one", "tcg", 22221)


def command(node: int = 1, start: qemu.Start = START, **wishes: object) -> list[str]:
    """The command line of a node of a lab with these wishes."""
    return qemu.node_command(plan.make_spec(**wishes), node, FILES, start)


def options(words: list[str], name: str) -> list[str]:
    """The values of all options called ``name``."""
    return [words[number + 1] for number, word in enumerate(words) if word == name]


def test_whole_command() -> None:
    words = command(rails=1)
    assert words[:3] == ["qemu-system-x86_64", "-name", "rdma-lab-one-node1"]
    assert options(words, "-accel") == ["tcg,thread=multi,tb-size=256"]
    assert options(words, "-m") == ["512"]
    assert options(words, "-kernel") == ["/i/vmlinux"]
    assert options(words, "-initrd") == ["/i/initrd"]
    assert options(words, "-fw_cfg") == ["name=opt/rdma-lab/node,file=node1.json"]
    assert options(words, "-pidfile") == ["node1.pid"]
    assert options(words, "-netdev") == [
        (
            "user,id=management,ipv6=off,restrict=on,net=10.140.64.0/19,host=10.140.64.1,dns=10.140.64.2,"
            "dhcpstart=10.140.64.9,hostfwd=tcp:127.0.0.1:22221-10.140.77.19:22"
        ),
        "dgram,id=rail0,local.type=unix,local.path=rail0-node1,remote.type=unix,remote.path=rail0-node2",
    ]
    assert options(words, "-device")[-1] == (
        "virtio-net-pci,host_mtu=9000,speed=200000,duplex=full,mq=off,id=nic0,netdev=rail0,mac=52:54:00:01:01:00,"
        "romfile=,bus=pcie.0,addr=0x8"
    )
    (append,) = options(words, "-append")
    assert "lab.address=10.140.77.19/19 lab.gateway=10.140.64.1" in append
    assert "systemd.hostname=node1" in append
    assert "-loadvm" not in words


def test_a_resumed_node_loads_its_state() -> None:
    assert command(start=dataclasses.replace(START, resume=True))[-2:] == ["-loadvm", "ready"]


def test_two_nodes_are_each_others_peer() -> None:
    ends = []
    for node in (1, 2):
        (netdev,) = [
            value for value in options(command(node, rails=1), "-netdev") if value.startswith("dgram")
        ]
        values = dict(part.split("=", 1) for part in netdev.split(",")[1:])
        ends.append((values["local.path"], values["remote.path"]))
    assert ends[0] == tuple(reversed(ends[1]))


@pytest.mark.parametrize("nodes", [1, 3, 16])
def test_other_numbers_of_nodes_use_the_switch(nodes: int) -> None:
    netdevs = [
        value
        for value in options(command(nodes, nodes=nodes, rails=2), "-netdev")
        if value.startswith("dgram")
    ]
    assert [value.rsplit("remote.path=", 1)[1] for value in netdevs] == [
        f"rail0-port{nodes}",
        f"rail1-port{nodes}",
    ]


@pytest.mark.parametrize("nic", plan.NICS)
def test_places_on_the_bus_are_unique(nic: str) -> None:
    devices = options(command(rails=16, nic=nic), "-device")
    places = [device.rsplit("addr=", 1)[1] for device in devices]
    assert len(places) == len(set(places)) == 19
    assert all(int(place, 16) < 0x1F for place in places), "0x1f belongs to the chipset"


def test_management_nic_is_found_first() -> None:
    devices = [device for device in options(command(rails=4), "-device") if "-net-pci" in device]
    numbers = {
        device.split("netdev=")[1].split(",")[0]: int(device.rsplit("0x", 1)[1], 16) for device in devices
    }
    assert min(numbers, key=lambda name: numbers[name]) == "management"


def test_numa_places() -> None:
    words = command(rails=4, nic="e1000e", numa=True)
    assert options(words, "-numa") == ["node,nodeid=0,memdev=mem0,cpus=0", "node,nodeid=1,memdev=mem1"]
    assert [value.split("size=")[1] for value in options(words, "-object")] == ["256M", "256M"]
    roots = [value for value in options(words, "-device") if value.startswith("pxb-pcie")]
    assert [value.split("bus_nr=")[1] for value in roots] == [
        "11,numa_node=0",
        "41,numa_node=0",
        "64,numa_node=0",
        "87,numa_node=0",
    ]
    nics = [value for value in options(words, "-device") if value.startswith("e1000e")]
    assert [value.split("bus=")[1] for value in nics] == [
        f"card{bus},addr=0x0.0" for bus in ("0c", "2a", "41", "58")
    ]


def test_dual_port_cards_share_a_slot() -> None:
    words = command(nic="e1000e", numa=True, shape="BM.GPU.H100.8", mem=1024)
    nics = [value.split("bus=")[1] for value in options(words, "-device") if value.startswith("e1000e")]
    assert nics[:2] == ["card0c,addr=0x0.0,multifunction=on", "card0c,addr=0x0.1"]
    assert len([value for value in options(words, "-device") if value.startswith("pcie-root-port")]) == 8


def test_state_key_depends_on_what_a_state_depends_on() -> None:
    spec = plan.make_spec()
    base = qemu.state_key(spec, "image", "tcg", "QEMU 7.2")
    assert base == qemu.state_key(plan.make_spec(), "image", "tcg", "QEMU 7.2")
    others = [
        qemu.state_key(spec, "other", "tcg", "QEMU 7.2"),
        qemu.state_key(spec, "image", "kvm", "QEMU 7.2"),
        qemu.state_key(spec, "image", "tcg", "QEMU 8.0"),
        *(
            qemu.state_key(plan.make_spec(**wishes), "image", "tcg", "QEMU 7.2")
            for wishes in (
                {"nodes": 3},
                {"rails": 2},
                {"mem": 768},
                {"nic": "e1000e"},
                {"numa": True},
                {"driver": "stock"},
            )
        ),
        qemu.state_key(plan.make_spec(shape="BM.GPU.H200.8", rails=4), "image", "tcg", "QEMU 7.2"),
    ]
    assert len({base, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("text", "version"),
    [("QEMU emulator version 7.2.22 (Debian 1:7.2)", (7, 2)), ("QEMU emulator version 10.0.0", (10, 0))],
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert qemu.parse_version(text) == version


def test_no_version() -> None:
    with pytest.raises(LabError, match="names no version"):
        qemu.parse_version("hello")


@pytest.fixture
def fake_qemu(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A program called like QEMU, alone on the PATH."""
    program = tmp_path / qemu.BINARY
    program.write_text("#!/bin/sh\necho QEMU emulator version 7.1.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return program


def test_an_old_qemu_is_refused(fake_qemu: pathlib.Path) -> None:
    with pytest.raises(LabError, match=r"is 7\.1; the lab needs 7\.2"):
        qemu.qemu_build()
    fake_qemu.write_text("#!/bin/sh\necho QEMU emulator version 7.2.0\n")
    assert qemu.qemu_build().startswith("QEMU emulator version 7.2.0 ")
    fake_qemu.unlink()
    with pytest.raises(LabError, match="not on the PATH"):
        qemu.qemu_build()


def test_kvm_needs_the_module_of_the_processor(tmp_path: pathlib.Path) -> None:
    """A software hypervisor answers at the device as well, so the device alone proves nothing."""
    (tmp_path / "kvm").mkdir()
    (tmp_path / "kvm_pvm").mkdir()
    assert not qemu.kvm_works(tmp_path, "/dev/null")
    (tmp_path / "kvm_intel").mkdir()
    assert not qemu.kvm_works(tmp_path, "/dev/null"), "this device answers no KVM_CREATE_VM"
    assert not qemu.kvm_works(tmp_path, str(tmp_path / "missing"))


def test_choice_of_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "kvm_works", lambda: False)
    assert qemu.choose_accel("auto") == "tcg"
    with pytest.raises(LabError, match="use --accel tcg"):
        qemu.choose_accel("kvm")
    monkeypatch.setattr(qemu, "kvm_works", lambda: True)
    assert qemu.choose_accel("auto") == "kvm"
    assert qemu.choose_accel("tcg") == "tcg"
    assert options(command(start=dataclasses.replace(START, accel="kvm")), "-cpu") == ["host"]


def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu.platform, "machine", lambda: "aarch64")
    with pytest.raises(LabError, match="Linux on aarch64"):
        qemu.check_host()


def test_a_node_of_a_cluster_has_a_second_disk_and_a_way_to_the_api() -> None:
    files = dataclasses.replace(FILES, kube="/k/kube.raw", relay="python3 /r,1/relay.py api")
    words = qemu.node_command(plan.make_spec(kube=True), 1, files, START)
    (management, *_rails) = options(words, "-netdev")
    assert "restrict=on" in management
    assert management.endswith(",guestfwd=tcp:10.140.64.3:6443-cmd:python3 /r,,1/relay.py api")
    assert "if=none,id=kube,file=/k/kube.raw,format=raw,readonly=on" in options(words, "-drive")
    assert options(words, "-m") == ["1024"]


def test_the_saved_state_of_a_cluster_node_is_another_one() -> None:
    keys = {
        qemu.state_key(plan.make_spec(kube=kube, mem=1024), "image", "tcg", build)
        for kube in (False, True)
        for build in ("q", "q+disk")
    }
    assert len(keys) == 4
