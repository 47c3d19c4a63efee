# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod on a virtual node is looked into through its kubelet, as pod_rdma_info does it: by the real exec subresource.

The pod gets a further interface by hand, since no Multus runs there. Its image has a shell and no program ``ip``, so
what /proc tells is read. It sees the devices of the node, of which none has a GID for it: that must be told.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from . import lab, rdma_image
from .agent_test import own_root
from .cluster import Cluster
from .errors import LabError

NAME, NODE = "looked-into", 1
NIC = "net1"
ADDRESS = "172.16.11.10/24"
TIMEOUT = 600.0
POD_TIMEOUT = 300
"""Seconds for the program in the pod; an emulated node starts one slowly."""
ANSWERS = {
    "P1": "pass",
    "P3": "unknown",
    "P5": "pass",
    "P6": "skip",
    "P7": "fail",
    "P9": "unknown",
    "P10": "pass",
    "P14": "skip",
}
"""Status by predicate; those that are left out depend on what else the cluster has."""


def pod() -> dict:
    """A pod that waits; it may lock memory, whatever the limit of its node is (S140)."""
    container = {
        "name": "main",
        "image": rdma_image.IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
        "securityContext": {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}},
    }
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"kubernetes.io/hostname": f"node{NODE}"},
        "containers": [container],
    }
    metadata = {"name": NAME, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def nic_script(pod_address: str) -> str:
    """Makes a further interface in the namespace that has the address of the pod, with its other end on the node."""
    return f"""set -eu
for place in /run/netns/*; do
    name=${{place##*/}}
    ip -n "$name" -o -4 addr show dev eth0 2>/dev/null | grep -qF ' {pod_address}/' || continue
    ip link add {NIC}peer type veth peer name {NIC} netns "$name"
    ip link set {NIC}peer up
    ip -n "$name" addr add {ADDRESS} brd + dev {NIC}
    ip -n "$name" link set {NIC} up
    until ip -n "$name" -br link show dev {NIC} | grep -q ' UP '; do sleep 0.2; done
    exit 0
done
echo 'no namespace has {pod_address}' >&2
exit 1
"""


def look(cluster: Cluster, folder: pathlib.Path, *names: str, nics: int) -> list[dict]:
    """What the module tells of some pods."""
    options = {
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": "default",
        "names": list(names),
        "nics": nics,
        "timeout": POD_TIMEOUT,
    }
    program = pathlib.Path(sys.executable).parent / "ansible"
    if not program.exists():
        raise LabError("ansible", f"There is no {program}; run the lab with the Python of .venv.")
    words = [
        str(program),
        *("localhost", "-i", "localhost,", "-c", "local", "-o"),
        *("-e", json.dumps({"ansible_python_interpreter": sys.executable})),
        *("-m", "rdma.k8s.pod_rdma_info", "-a", json.dumps(options)),
    ]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(own_root(folder)),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
    }
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    found = read(done.stdout)
    if done.returncode or found is None:
        raise LabError("ansible", f"{(done.stdout + done.stderr).strip()[-2000:]}")
    return found


def read(printed: str) -> list[dict] | None:
    """The pods in what Ansible printed, one line for each host; ``None``: there are none."""
    for line in printed.splitlines():
        start, arrow, rest = line.partition(" => ")
        if arrow and start.startswith("localhost | SUCCESS"):
            return json.loads(rest)["pods"]
    return None


def wrong(told: dict) -> list[str]:
    """How what was told of the pod differs from what it has."""
    if told["reason"] or not told["evidence"]:
        return [f"it told nothing: {told['reason']}"]
    evidence = told["evidence"]
    interfaces = [(entry["name"], entry["up"], entry["addresses"]) for entry in evidence["interfaces"]]
    answers = {entry["predicate"]: entry["status"] for entry in told["predicates"]}
    pairs = [
        ("node", told["node"], f"node{NODE}"),
        ("interfaces", interfaces, [(NIC, True, [ADDRESS])]),
        ("default route", evidence["main_default_dev"], "eth0"),
        ("namespace mode", evidence["netns_mode"], "shared"),
        (
            "devices",
            sorted(device["name"] for device in evidence["devices"]),
            [f"mlx5_{n}" for n in range(4)],
        ),
        ("device files", evidence["files"], {}),
        ("answers", {number: answers.get(number) for number in ANSWERS}, ANSWERS),
    ]
    return [f"{what} {found!r}, not {wanted!r}" for what, found, wanted in pairs if found != wanted]


def run(cluster: Cluster, nodes: lab.Lab, mute: str) -> str:
    """Look into the pod, and into one without a shell, of which the reason must be told.

    :param mute: the name of a running pod whose image has no shell.
    """
    address = cluster.object("pod", NAME)["status"]["podIP"]
    nodes.node_run(NODE, nic_script(address))
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        told, silent = look(cluster, folder, NAME, mute, nics=1)
    found = wrong(told)
    if found:
        raise LabError("pod_differs", f"The pod tells something else: {' | '.join(found)}")
    said = {entry["status"] for entry in silent["predicates"]}
    if "sh" not in silent["reason"] or said != {"unknown"}:
        raise LabError("pod_differs", f"A pod without a shell: {silent['reason']!r}, answers {sorted(said)}")
    counts = [answer["status"] for answer in told["predicates"]]
    told_of = ", ".join(f"{status} {counts.count(status)}" for status in sorted(set(counts)))
    return f"{told_of}; without a shell: {silent['reason'][:60]}"
