# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules: what is there, what keeps one out, the order of loading, and whether it takes effect (S3, S41)."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import kernel_modules as core
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

RELEASE = "6.8.0-90-generic"
DEPENDS = core.parse_depends(
    "kernel/drivers/infiniband/core/ib_core.ko.zst:\n"
    "kernel/drivers/infiniband/core/ib_uverbs.ko.zst: kernel/drivers/infiniband/core/ib_core.ko.zst\n"
    "kernel/drivers/infiniband/core/rdma-cm.ko: kernel/a/ib_cm.ko kernel/a/ib_core.ko.zst\n"
    "kernel/a/ib_cm.ko.xz: kernel/drivers/infiniband/core/ib_core.ko.zst\n"
    "updates/dkms/nvidia-peermem.ko: updates/dkms/nvidia.ko kernel/a/ib_uverbs.ko kernel/a/ib_core.ko\n"
)


def kernel(**changes: Any) -> core.Kernel:
    given: dict[str, Any] = {"release": RELEASE, "depends": DEPENDS, **changes}
    return core.Kernel(**given)


def code_of(*wanted: str, files: Any = (), line: str = "", persist: bool = True, **changes: Any) -> str:
    try:
        return " ".join(core.to_load(wanted, kernel(**changes), core.blocks(files, line), persist))
    except RdmaError as error:
        return error.code


def test_names_are_those_of_the_kernel() -> None:
    assert core.names_of(["mlx5-ib", "mlx5_ib", "rdma_cm"]) == ["mlx5_ib", "rdma_cm"]
    for text in ("", "../x", "a b", "x.ko", "-f", "a\nb", "a/b"):
        with pytest.raises(RdmaError) as caught:
            core.names_of([text])
        assert caught.value.code == "kernel_module_name_malformed"


def test_our_file_stays_in_its_directory() -> None:
    assert core.path_of("rdma-k8s") == "/etc/modules-load.d/rdma-k8s.conf"
    for text in ("", "../x", "a/b", ".x", "a\n"):
        with pytest.raises(RdmaError) as caught:
            core.path_of(text)
        assert caught.value.code == "file_name_malformed"


def test_proc_modules_tells_uses_and_users() -> None:
    found = core.parse_loaded(
        "nvidia_peermem 16384 0 - Live 0x0 (OE)\nib_core 1 3 nvidia_peermem,ib_uverbs, Live 0x0\nshort 1\n"
    )
    assert found == {
        "nvidia_peermem": core.Loaded(0),
        "ib_core": core.Loaded(3, ("nvidia_peermem", "ib_uverbs")),
    }


def test_what_is_needed_first_is_loaded_first() -> None:
    assert DEPENDS["rdma_cm"] == ("ib_core", "ib_cm")
    assert code_of("rdma_cm", "ib_uverbs") == "ib_core ib_cm rdma_cm ib_uverbs"
    assert code_of("rdma_cm", loaded={"ib_core": core.Loaded()}) == "ib_cm rdma_cm"
    assert code_of("ib_core", builtin=frozenset({"ib_core"}), depends=None) == ""
    assert code_of("rdma_cm", builtin=core.parse_builtin("kernel/x/ib_core.ko\n\n")) == "ib_cm rdma_cm"


@pytest.mark.parametrize(
    ("changes", "code", "part"),
    [
        ({}, "kernel_module_missing", "gdrdrv does not exist for the running kernel 6.8.0-90-generic."),
        ({"elsewhere": {"gdrdrv": ("6.8.0-85",)}}, "kernel_module_missing", "only for 6.8.0-85."),
        ({"depends": None}, "kernel_modules_unreadable", "/lib/modules/6.8.0-90-generic/modules.dep"),
        ({"loaded": {"gdrdrv": core.Loaded()}}, "kernel_module_missing", "no boot would load it"),
    ],
)
def test_a_module_that_does_not_exist_for_this_kernel(changes: Any, code: str, part: str) -> None:
    with pytest.raises(RdmaError) as caught:
        core.to_load(["ib_core", "gdrdrv"], kernel(**changes), [], True)
    assert caught.value.code == code
    assert part in caught.value.message


def test_a_loaded_module_need_not_be_installed_when_it_is_for_now_only() -> None:
    assert code_of("gdrdrv", loaded={"gdrdrv": core.Loaded()}, persist=False) == ""


FILES = [
    ("/etc/modprobe.d/a.conf", "# blacklist ib_core\noptions ib_core x=1\nblacklist rdma-cm\n"),
    (
        "/usr/lib/modprobe.d/b.conf",
        "install ib_cm \\\n  /bin/false\ninstall ib_uverbs /sbin/modprobe -i ib_uverbs\n",
    ),
]


def test_lines_that_keep_a_module_out_are_found_with_their_place() -> None:
    found = core.blocks(FILES, "ro module_blacklist=nouveau,x modprobe.blacklist=ib-core module_blacklist")
    assert [(block.module, block.place, block.always) for block in found] == [
        ("rdma_cm", "/etc/modprobe.d/a.conf:3", False),
        ("ib_cm", "/usr/lib/modprobe.d/b.conf:1", True),
        ("nouveau", "/proc/cmdline", True),
        ("x", "/proc/cmdline", True),
        ("ib_core", "/proc/cmdline", False),
    ]


@pytest.mark.parametrize(
    ("wanted", "persist", "loaded", "line", "answer"),
    [
        ("rdma_cm", True, (), "", "kernel_module_blocked"),
        ("rdma_cm", False, (), "", "kernel_module_blocked"),  # ib_cm, which it needs, has an install line
        ("rdma_cm", False, ("ib_cm", "ib_core"), "", "rdma_cm"),  # blacklist counts at boot only
        ("rdma_cm", True, ("ib_cm", "ib_core", "rdma_cm"), "", "kernel_module_blocked"),
        ("rdma_cm", False, ("ib_cm", "ib_core", "rdma_cm"), "", ""),
        ("ib_uverbs", True, (), "", "ib_core ib_uverbs"),  # its install line loads it
        (
            "ib_uverbs",
            True,
            (),
            "modprobe.blacklist=ib_core",
            "ib_core ib_uverbs",
        ),  # needed, so loaded all the same
        ("ib_uverbs", True, (), "module_blacklist=ib_core", "kernel_module_blocked"),
    ],
)
def test_what_a_line_keeps_out_and_what_not(
    wanted: str, persist: bool, loaded: tuple[str, ...], line: str, answer: str
) -> None:
    """modprobe.d(5): blacklist is for aliases and for the start of the system, install for every load."""
    now = {name: core.Loaded() for name in loaded}
    assert code_of(wanted, files=FILES, line=line, persist=persist, loaded=now) == answer


def test_the_refusal_names_every_line() -> None:
    with pytest.raises(RdmaError) as caught:
        core.to_load(["rdma_cm"], kernel(), core.blocks(FILES, ""), True)
    assert caught.value.message == (
        "rdma_cm, ib_cm must not be loaded, say 2 lines: /etc/modprobe.d/a.conf:3 'blacklist rdma-cm'; "
        "/usr/lib/modprobe.d/b.conf:1 'install ib_cm   /bin/false'."
    )


# Effects


def loaded(text: str) -> dict[str, core.Loaded]:
    """``NAME:USES:USER,USER`` for each module."""
    found = {}
    for word in text.split():
        name, uses, users = word.split(":")
        found[name] = core.Loaded(int(uses), tuple(filter(None, users.split(","))))
    return found


@pytest.mark.parametrize(
    ("modules", "driver", "usable", "reason"),
    [
        ("nvidia_peermem:0: ib_core:3:ib_uverbs", (RELEASE, (), False), False, "there is no dma-buf path"),
        (
            "nvidia_peermem:0: nvidia:5:nvidia_peermem",
            ("5.4.0", (), True),
            False,
            "nothing of the RDMA stack uses it",
        ),
        ("nvidia_peermem:1:", ("5.4.0", (), None), True, "it is in use (1)"),
        ("nvidia_peermem:0: ib_core:3:nvidia_peermem", (RELEASE, (), None), True, "registered with ib_core"),
        ("nvidia_peermem:0:", (RELEASE, ("nv_mem_nc",), False), True, "registered it as nv_mem_nc"),
        ("nvidia_peermem:0:", (RELEASE, ("amdkfd",), False), False, "nothing of the RDMA stack"),
        ("nvidia_peermem:0:", (RELEASE, (), True), True, "hands out dma-bufs"),
        ("nvidia:5:", ("5.12.0", (), True), True, "is not loaded; the open GPU driver"),
        ("nvidia:5:", ("5.11.9", (), True), False, "is not loaded, and there is no dma-buf"),
        ("nvidia_peermem:0:", (RELEASE, (), None), None, "does not say which one"),
        ("nvidia_peermem:0:", ("weird", (), True), None, "does not say which one"),
    ],
)
def test_peer_memory_is_judged_by_its_effect(
    modules: str, driver: Any, usable: Optional[bool], reason: str
) -> None:
    """DEV-35: use count 0 and no dma-buf is a failure, a use count of 1 is none."""
    effect = core.peer_memory(core.PeerEvidence(loaded(modules), *driver))
    assert effect.usable is usable
    assert reason in effect.reason


@pytest.mark.parametrize(
    ("is_loaded", "majors", "device", "usable", "reason"),
    [
        (True, {"gdrdrv": 511}, 511, True, "is the device of the module"),
        (True, {"gdrdrv": 511}, None, False, "there is no device"),
        (True, {"gdrdrv": 511}, 510, False, "driver number 510, the module has 511"),
        (True, {}, 511, False, "no character device"),
        (False, {"gdrdrv": 511}, 511, False, "not loaded"),
    ],
)
def test_gdrdrv_needs_its_device_file(
    is_loaded: bool, majors: Any, device: Optional[int], usable: bool, reason: str
) -> None:
    """S41."""
    effect = core.gdr_copy(is_loaded, majors, device)
    assert (effect.usable, reason in effect.reason) == (usable, True)


def test_numbers_of_block_devices_are_no_numbers_of_character_devices() -> None:
    text = "Character devices:\n  1 mem\n511 gdrdrv\n\nBlock devices:\n  8 sd\n"
    assert core.parse_majors(text) == {"mem": 1, "gdrdrv": 511}


def test_only_what_certainly_has_no_effect_is_refused() -> None:
    core.require_effect([core.Effect("a", True, ""), core.Effect("b", None, "")])
    with pytest.raises(RdmaError) as caught:
        core.require_effect([core.Effect("a", True, ""), core.Effect("b", False, "it sleeps", "Wake it.")])
    assert str(caught.value) == "The kernel module b has no effect: it sleeps. Wake it."


def test_the_open_driver_says_so() -> None:
    assert core.is_open_driver("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57\n") is True
    assert core.is_open_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1\n") is False
    assert core.is_open_driver(None) is None
