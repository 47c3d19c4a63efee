# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules through the node agent on a virtual node: they see what they see over SSH, change nothing in mode ``read``,
and change the node in mode ``write``.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from . import lab, rdma_image
from .cluster import Cluster
from .errors import LabError
from .image import Cache

ANSIBLE = "12.3.0"
"""Version of the package `ansible`, which carries the collection of the connection plugin."""
COLLECTION = "ansible_collections/kubernetes/core/"
TIMEOUT = 900.0
INVENTORY = "agent.rdma_k8s.yml"
"""The inventory that leads through the agent."""
DEVICE_READS = ("ibv_devinfo",)
"""What only a device file tells, which a pod without privileges may not open."""
SETTING = "/proc/sys/net/ipv4/conf/rdma0/arp_filter"
SETTINGS = "/etc/sysctl.d/99-zz-rdma-k8s.conf"
"""What the test changes on the node: a value of the kernel, and the file of it."""


def collections(cache: Cache) -> pathlib.Path:
    """A directory with the collection kubernetes.core, taken out of the package `ansible`."""
    name = f"collections-{ANSIBLE}"
    with cache.locked():
        if not (cache.path / name).exists():
            with cache.progress.step("the collection kubernetes.core"), cache.building(name) as directory:
                words = [
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "-d",
                    str(directory),
                    f"ansible=={ANSIBLE}",
                ]
                done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
                if done.returncode:
                    raise LabError(
                        "no_collection", f"pip cannot fetch ansible {ANSIBLE}: {done.stderr.strip()}"
                    )
                (wheel,) = directory.glob("*.whl")
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(directory, [n for n in packed.namelist() if n.startswith(COLLECTION)])
                wheel.unlink()
        return cache.path / name


def play(hosts: str, *tasks: dict, roles: tuple[dict, ...] = ()) -> dict:
    """One play without facts."""
    return {"hosts": hosts, "gather_facts": False, "tasks": list(tasks), "roles": list(roles)}


class Agent:
    """The agent on one node of a cluster, and Ansible that goes through it."""

    def __init__(self, cluster: Cluster, nodes: lab.Lab, ours: pathlib.Path, folder: pathlib.Path):
        self.cluster = cluster
        self.nodes = nodes
        self.folder = folder
        programs = cluster.programs
        search = os.pathsep.join((str(programs.path("kubectl").parent), os.environ.get("PATH", os.defpath)))
        self.environment = {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": f"{ours}{os.pathsep}{collections(cluster.cache)}",
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_HOST_KEY_CHECKING": "false",
            "PATH": search,
        }
        inventory = {
            "plugin": "rdma.k8s.nodes",
            "connection": "agent",
            "kubeconfig": str(cluster.kubeconfig),
            "without_connection": "leave_out",
        }
        (folder / INVENTORY).write_text(json.dumps(inventory), encoding="utf-8")
        text = lab.inventory_text(nodes.state(), cluster.cache.key_file, "nodes")
        (folder / "ssh.yml").write_text(text, encoding="utf-8")

    def ansible(self, plays: list[dict], inventory: str = "localhost,") -> str:
        """Run plays; what Ansible printed."""
        (self.folder / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
        words = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", inventory, "play.yml"]
        done = subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True,
            check=False, timeout=TIMEOUT,
        )  # fmt: skip
        if done.returncode:
            raise LabError("ansible", f"{(done.stdout + done.stderr).strip()[-2000:]}")
        return done.stdout

    def role(self, **variables: object) -> None:
        """Run the role of the agent."""
        chosen = {
            "image": rdma_image.IMAGE,
            "pull_policy": "Never",
            "kubeconfig": str(self.cluster.kubeconfig),
            "node_selector": {"kubernetes.io/hostname": "node1"},
            "timeout": int(TIMEOUT) - 60,
            # With the 10m of the role it gets what others leave, and an emulated node leaves little.
            "resources": {"requests": {"cpu": "500m", "memory": "16Mi"}, "limits": {"memory": "512Mi"}},
            **variables,
        }
        named = {f"node_agent_{key}": value for key, value in chosen.items()}
        named["ansible_python_interpreter"] = sys.executable
        named["ansible_connection"] = "local"
        self.ansible([play("localhost", roles=({"role": "rdma.k8s.node_agent", "vars": named},))])

    def results(self, inventory: str, *tasks: dict) -> list[dict]:
        """What tasks on node1 return; one that fails does not end the others."""
        output = self.folder / "results.json"
        named = [
            {**task, "register": f"result{number}", "ignore_errors": True}
            for number, task in enumerate(tasks)
        ]
        every = ", ".join(task["register"] for task in named)
        keep = {
            "ansible.builtin.copy": {
                "content": "{{ [%s] | to_json }}" % every,
                "dest": str(output),
                "mode": "0600",
            },
            "delegate_to": "localhost",
            "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
        }
        self.ansible([play("node1", *named, keep)], inventory)
        return json.loads(output.read_text(encoding="utf-8"))

    def snapshot(self, inventory: str) -> dict:
        """What node1 tells."""
        options = {"name": "node1", "host_root": "{{ rdma_host_root | default(omit) }}", "imds_timeout": 60}
        (found,) = self.results(inventory, {"rdma.k8s.node_info": options})
        if "snapshot" not in found:
            raise LabError("no_snapshot", f"{inventory}: {found.get('msg') or found}")
        return found["snapshot"]


def comparable(snapshot: dict) -> dict:
    """A snapshot without what differs from read to read, and what needs a device file."""
    found = {key: value for key, value in snapshot.items() if key not in ("collected_at", "collector")}
    found["errors"] = [error for error in found.get("errors", []) if error["source"] not in DEVICE_READS]
    text = json.dumps(found, sort_keys=True)
    kept = json.loads(text)
    for device in kept.get("devices") or []:
        for port in device.get("ports") or []:
            port.pop("active_mtu", None)
    return kept


def differences(one: object, other: object, place: str = "") -> list[str]:
    """Where two documents differ, by the names on the way."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [
            found for key in keys for found in differences(one.get(key), other.get(key), f"{place}.{key}")
        ]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for n, (a, b) in pairs for found in differences(a, b, f"{place}[{n}]")]
    return [] if one == other else [f"{place}: {one!r} and {other!r}"]


def own_root(folder: pathlib.Path) -> pathlib.Path:
    """A directory in which Ansible finds the collection of this tree; a link in ``folder`` where it is in none."""
    tree = pathlib.Path(__file__).resolve().parents[2]
    if tree.parts[-3:] == ("ansible_collections", "rdma", "k8s"):
        return tree.parents[2]
    (folder / "root" / "ansible_collections" / "rdma").mkdir(parents=True)
    (folder / "root" / "ansible_collections" / "rdma" / "k8s").symlink_to(tree)
    return folder / "root"


def run(cluster: Cluster, nodes: lab.Lab) -> str:
    """Deploy the agent on node1, compare what it tells with what SSH tells, write in both modes, remove it."""
    with tempfile.TemporaryDirectory() as place:
        agent = Agent(cluster, nodes, own_root(pathlib.Path(place)), pathlib.Path(place))
        agent.role()
        try:
            seen, direct = agent.snapshot(INVENTORY), agent.snapshot("ssh.yml")
            wrong = differences(comparable(seen), comparable(direct))
            if wrong:
                raise LabError("agent_differs", f"Pod and SSH tell different things: {' | '.join(wrong[:8])}")
            refused = _refused(agent)
            agent.role(mode="write")
            written = _written(agent)
        finally:
            agent.role(state="absent")
        left = cluster.kubectl(
            "get", "all", "-A", "-l", "app.kubernetes.io/name=rdma-k8s-agent", "-o", "name"
        )
        if left.strip():
            raise LabError("agent_left", f"The role left {left.strip()}.")
    same = f"the same snapshot, {len(seen['devices'])} RDMA devices, {len(seen['links'])} links"
    return f"{same}; read: {refused}; write: {written}"


def _change() -> dict:
    options = {"nics": ["rdma0"], "arp_filter": 1, "host_root": "{{ rdma_host_root }}"}
    return {"rdma.k8s.nic_sysctl": options}


def _held(agent: Agent) -> str:
    """The value of the kernel and the file, read over SSH."""
    return agent.nodes.node_run(1, f"cat {SETTING}; cat {SETTINGS} 2>/dev/null || echo no file")


def _refused(agent: Agent) -> str:
    """No file of the host can be written in mode read, also not on a file system mounted below its root."""
    places = "/host /host/run /host/tmp /"
    script = f"for place in {places}; do echo > $place/written && echo $place; done 2>/dev/null; exit 0"
    words = ("-n", "kube-system", "exec", "daemonset/rdma-k8s-agent", "--", "sh", "-c", script)
    written = agent.cluster.kubectl(*words, timeout=TIMEOUT).split()
    if written:
        raise LabError("agent_writes", f"The agent in mode read could write to {', '.join(written)}.")
    before = _held(agent)
    (said,) = agent.results(INVENTORY, _change())
    if not said.get("failed") or "read-only" not in said.get("msg", "").lower() or _held(agent) != before:
        raise LabError("agent_writes", f"A module that writes was not refused in mode read: {said}")
    return said["msg"]


def _written(agent: Agent) -> str:
    """A module changes the node in mode write, once, and takes it back."""
    before = _held(agent)
    undo = {"rdma.k8s.node_undo": {"state": "undone", "host_root": "{{ rdma_host_root }}"}}
    first, second = agent.results(INVENTORY, _change(), _change())
    held = _held(agent)
    (third,) = agent.results(INVENTORY, undo)
    lines = ["1", "net/ipv4/conf/rdma0/arp_filter = 1"]
    found = [line for line in held.splitlines() if line and not line.startswith("#")]
    changed = [bool(said.get("changed")) for said in (first, second, third)]
    if found != lines or changed != [True, False, True] or _held(agent) != before:
        raise LabError(
            "agent_cannot_write",
            f"node1 had {before!r}, then {held!r}, at last {_held(agent)!r}; "
            f"the modules said {first}, {second}, {third}",
        )
    return f"{'; '.join(first['actions'])}, once; undone"
