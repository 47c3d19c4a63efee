# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab's test of a pod makes, and what it takes for a difference."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_evidence, pod_predicates
from ansible_collections.rdma.k8s.tests.lab import pod_test

PORT = ["1", "4: ACTIVE", "5: LinkUp", "Ethernet", "0x0000", "0x0000"]
DEVICES = ["mlx5_%d" % number for number in range(4)]
TOLD: dict[str, Any] = {
    "schema": 1,
    "caps": "00000000a80465fb",
    "memlock": ["65536", "65536"],
    "mode": "Y",
    "links": [
        ["eth0", "1", "0x1003", "1500", "up", "", ""],
        ["lo", "772", "0x9", "65536", "unknown", "", ""],
        ["net1", "1", "0x1003", "1500", "up", "", ""],
    ],
    "ip": "",
    "main": [
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT",
        "eth0 00000000 C1FFF40A 0003 0 0 0 00000000 0 0 0",
        "net1 000B10AC 00000000 0001 0 0 0 00FFFFFF 0 0 0",
    ],
    "fib": ["|-- 172.16.11.10", "/32 host LOCAL"],
    "devices": [[name, "0200:00ff:fe01:%04x" % number, ""] for number, name in enumerate(DEVICES)],
    "class": 1,
    "ports": [[name, *PORT] for name in DEVICES],
    "gids": [],
    "verbs": [["uverbs%d" % n, name, "231:%d" % (192 + n), "1"] for n, name in enumerate(DEVICES)],
    "files": [],
    "tools": ["sleep"],
}
"""What the program prints in such a pod, from the parts of /proc and /sys that it reads there."""


def result(**changes: Any) -> dict[str, Any]:
    """What the module makes of it."""
    evidence = pod_evidence.evidence_of({**copy.deepcopy(TOLD), **changes})
    answers = pod_predicates.judge(evidence, pod_predicates.Around(nics=1))
    return {
        "node": "node1",
        "reason": "",
        "evidence": evidence.to_dict(),
        "predicates": [answer.to_dict() for answer in answers],
    }


def test_a_pod_as_it_should_be() -> None:
    assert pod_test.wrong(result()) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"mode": "N"}, ["namespace mode", "answers"]),
        ({"links": TOLD["links"][:2]}, ["interfaces", "answers"]),
        ({"fib": ["|-- 172.16.11.11", "/32 host LOCAL"]}, ["interfaces"]),
        ({"main": TOLD["main"][:1]}, ["interfaces", "default route", "answers"]),
        ({"devices": TOLD["devices"][1:]}, ["devices"]),
        (
            {"gids": [["mlx5_0", "1", "3", "RoCE v2", "net1", "0000:0000:0000:0000:0000:ffff:ac10:0b0a"]]},
            ["answers"],
        ),
        ({"files": [["uverbs0", "231:192"]]}, ["device files"]),
        ({"caps": "00000000a80425fb"}, ["answers"]),
        ({"rules": ["0: from all lookup local"]}, ["answers"]),
    ],
)
def test_what_differs_is_named(changes: dict[str, Any], what: list[str]) -> None:
    found = pod_test.wrong(result(**changes))
    assert [sentence.split(" [")[0].split(" {")[0].split(" '")[0] for sentence in found] == what


def test_a_pod_that_told_nothing() -> None:
    assert pod_test.wrong({"reason": "no shell", "evidence": None}) == ["it told nothing: no shell"]


def test_the_pods_are_read_from_what_ansible_prints() -> None:
    pods = [{"name": "a"}]
    line = "localhost | SUCCESS => " + json.dumps({"changed": False, "pods": pods})
    assert pod_test.read("a warning\n%s\n" % line) == pods
    assert pod_test.read("localhost | FAILED! => {}\n") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_the_interface_is_made_in_the_namespace_of_the_pod(tmp_path: Path) -> None:
    """With a real iproute2: it is up, and no other namespace is touched."""
    script = tmp_path / "script"
    script.write_text(
        "set -eu\nmount -t tmpfs tmpfs /run\nip netns add other\nip netns add pod\n"
        "ip link add veth0 type veth peer name eth0 netns pod\nip link set veth0 up\n"
        "ip -n pod addr add 10.244.1.5/26 dev eth0\nip -n pod link set eth0 up\n"
        "( %s )\nip -n pod -br -4 addr show dev net1\nip -n other -br link\n( %s )\n"
        % (pod_test.nic_script("10.244.1.5"), pod_test.nic_script("10.244.1.50"))
    )
    shell, unshare = shutil.which("sh"), shutil.which("unshare")
    assert shell
    assert unshare
    done = subprocess.run(
        [unshare, "--net", "--mount", shell, str(script)],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0].partition("@")[0] for line in lines] == ["net1", "lo"]
    assert lines[0][1:] == ["UP", pod_test.ADDRESS]
    assert (done.returncode, done.stderr.strip()) == (1, "no namespace has 10.244.1.50")
