# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B11: each role a second time, against its first run.

Seconds are those between the first and the last task of the role, so that what Ansible needs to start is not in them,
as in the scenario ``node_rdma``. Before the first run there is one in check mode: it compiles and caches what would
else make every first run slow.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import make_result
import measure
import paths

TURNS, MORE = ("check", "first", "second"), ("third", "fourth")
"""Runs of a role, and more of them for a role with a target: then a second run is the median of three."""
SCENARIO = paths.ROOT / "build" / "molecule" / "node_rdma" / "said"
"""What the scenario node_rdma noted in its last run on this machine."""

WHOLE, STAND_INS, ANEW = "whole", "with stand-ins", "computed anew each time"
"""What the first run does here. Whole: all that it does for a user. With stand-ins for packages, images or cards it is
shorter than that, and the share of the second run larger. Anew: there is nothing that a second run could leave out."""

MEASURED = ("report", "ufm_host", "bootstrap", "node_agent", "oke_dranet", "spiderpool_sriov", "ack_lingjun")
NODE, CLUSTER, CONTROLLER = "a node in a mount namespace", "the native control plane", "the controller"
ELSEWHERE = {
    "nic_driver": "tests/unit/roles/test_nic_driver.py: no change; its package manager is a stand-in, so no time",
    "node_rdma": "the scenario node_rdma, which demands no change and less than 40 %; it has not run here",
    "bootstrap": "tests/playbook/test_bootstrap.py: no change; its mount namespace needs root, so no time here",
}
"""Roles that are not measured here, and where their second run is proven."""


@dataclass(frozen=True)
class Pair:
    """Both runs of a role.

    :param kind: what the first run does here, one of the constants above.
    :param changed: what each run changed.
    """

    role: str
    where: str
    kind: str
    first: float
    second: float
    changed: tuple[int, int]

    @property
    def share(self) -> float:
        """The second run, in percent of the first."""
        return self.second / self.first * 100

    @property
    def row(self) -> list[Any]:
        """A row of :data:`HEADS`."""
        return [self.role, self.where, self.kind, self.first, self.second, self.share, *self.changed]


HEADS = [
    "role",
    "where",
    "first run",
    "seconds of the first",
    "of the second",
    "% of the first",
    "changed by the first",
    "by the second",
]


def play(role: str, hosts: str, folder: Path) -> list[dict[str, Any]]:
    """A play of one role that notes its seconds in ``folder``, in a file for each turn."""
    here = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    return [
        {
            "hosts": hosts,
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
            if hosts == "localhost"
            else {},
            "pre_tasks": [{"ansible.builtin.set_fact": {"began": "{{ now().timestamp() }}"}}],
            "roles": ["rdma.k8s." + role],
            "post_tasks": [
                {
                    "ansible.builtin.copy": {
                        "content": "{{ now().timestamp() - began | float }}",
                        "dest": str(folder / "seconds-") + "{{ turn }}",
                        "mode": "0600",
                    },
                    "delegate_to": "localhost",
                    "check_mode": False,
                    "changed_when": False,
                    "vars": here,
                }
            ],
        }
    ]


def changes(text: str) -> int:
    """How many tasks changed something, by the recap of a run."""
    found = re.findall(r"^\S+ +: ok=\d+ +changed=(\d+) ", text, re.M)
    if not found:
        raise measure.BenchError("the run has no recap:\n%s" % text[-2000:])
    return sum(map(int, found))


def turns_of(kind: str) -> tuple[str, ...]:
    """How often a role runs."""
    return (*TURNS, *MORE) if kind == WHOLE else TURNS


def pair(role: str, where: str, kind: str, folder: Path, texts: Mapping[str, str]) -> Pair:
    """What both runs were, out of what they printed and noted."""
    _check, first, *later = turns_of(kind)
    seconds = {turn: float((folder / ("seconds-" + turn)).read_text()) for turn in (first, *later)}
    changed = (changes(texts[first]), sum(changes(texts[turn]) for turn in later))
    if changed[0] == 0:
        raise measure.BenchError("the first run of %s changed nothing:\n%s" % (role, texts[first][-2000:]))
    return Pair(role, where, kind, seconds[first], median(seconds[turn] for turn in later), changed)


def of_scenario(folder: Path = SCENARIO) -> list[Pair]:
    """node_rdma on nodes of the lab, if the scenario has run here: the node with the larger share."""
    found = []
    for path in sorted(folder.glob("*-second.json")):
        again = json.loads(path.read_text(encoding="utf-8"))
        once = json.loads(path.with_name(path.name.replace("-second", "-first")).read_text(encoding="utf-8"))
        changed = (len(once["done"]), len(again["done"]))
        seconds = (once["seconds"], again["seconds"])
        found.append(Pair("node_rdma", "nodes of the lab, by the scenario", WHOLE, *seconds, changed))
    return sorted(found, key=lambda entry: entry.share)[-1:]


def measured() -> list[Pair]:
    """All roles that run here."""
    paths.make_importable()
    with tempfile.TemporaryDirectory() as name:
        bench = _Bench(Path(name))
        found = [bench.report(), bench.ufm_host()]
        if os.geteuid() == 0:
            found.append(bench.bootstrap())
        return [*found, *of_scenario(), *bench.on_cluster()]


class _Bench:
    """Runs roles in a home of their own."""

    def __init__(self, folder: Path) -> None:
        from ansible_collections.rdma.k8s.tests.support import playbook

        (folder / "home").mkdir()
        self.folder = folder
        self.controller = playbook.Controller(folder / "home", folder / "compiled")

    def place(self, role: str, hosts: str = "localhost") -> Path:
        """A directory with the play of a role."""
        work = self.folder / role
        work.mkdir()
        (work / "play.yml").write_text(json.dumps(play(role, hosts, work)), encoding="utf-8")
        return work

    def runs(
        self, role: str, where: str, kind: str, env: Mapping[str, str] | None = None, **variables: Any
    ) -> Pair:
        """A role on the controller, three times."""
        from ansible_collections.rdma.k8s.tests.support import playbook

        work = self.place(role)
        run = playbook.Run(self.controller, work, "play.yml")
        texts = {}
        for turn in turns_of(kind):
            named = {
                name if name.startswith(role) else "%s_%s" % (role, name): value
                for name, value in variables.items()
            }
            words = ["--check"] if turn == "check" else []
            done = run(*words, variables={**named, "turn": turn}, env=env)
            texts[turn] = self.good(role, turn, done.code, done.text)
        return pair(role, where, kind, work, texts)

    @staticmethod
    def good(role: str, turn: str, code: int, text: str) -> str:
        """The output of a run that ended well."""
        if code:
            raise measure.BenchError("%s, %s run: exit code %d:\n%s" % (role, turn, code, text[-3000:]))
        return text

    def report(self) -> Pair:
        """Reports of 200 nodes with 100 checks."""
        from ansible_collections.rdma.k8s.plugins.module_utils import report_files

        source = self.folder / "source"
        report_files.write_reports(make_result.make(200, 100), str(source))
        return self.runs(
            "report",
            CONTROLLER,
            ANEW,
            result=str(source / "result.json"),
            directory=str(self.folder / "reports"),
        )

    def ufm_host(self) -> Pair:
        """A key of 4096 bits, its certificate, and the restart of what is no UFM."""
        place = self.folder / "ufm"
        for name in ("certs", "private", "bin"):
            (place / name).mkdir(parents=True)
        program = place / "bin" / "docker"
        program.write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
        program.chmod(0o755)
        return self.runs(
            "ufm_host", CONTROLLER, WHOLE, names=["127.0.0.1", "ufm.example"],
            certificate_path=str(place / "certs" / "ufm.crt"), key_path=str(place / "private" / "ufm.key"),
            restart="container", container_program=str(program),
        )  # fmt: skip

    def bootstrap(self) -> Pair:
        """The real library from a wheelhouse, on a node that has an empty /opt and /var/lib."""
        from ansible_collections.rdma.k8s.tests.support import covered_node, playbook

        work = self.place("bootstrap", "all")
        house = self.folder / "house"
        maker = paths.ROOT / "extensions" / "molecule" / "node_rdma" / "make_wheelhouse.py"
        command = [sys.executable, str(maker), str(house), str(self.folder / "changed")]
        subprocess.run(command, check=True, capture_output=True)
        commands = []
        for turn in turns_of(WHOLE):
            variables = json.dumps({"bootstrap_wheelhouse": str(house), "turn": turn})
            commands.append(
                [str(playbook.BIN / "ansible-playbook"), "-i", "n1,", "-c", "local", str(work / "play.yml"),
                 "-e", variables, *(["--check"] if turn == "check" else [])]
            )  # fmt: skip
        done = covered_node.run(commands, self.controller.environment())
        texts = {
            turn: self.good("bootstrap", turn, entry.code, entry.text)
            for turn, entry in zip(turns_of(WHOLE), done)
        }
        return pair("bootstrap", NODE, WHOLE, work, texts)

    def on_cluster(self) -> Iterator[Pair]:
        """The roles that talk to a cluster, each alone on one control plane."""
        from ansible_collections.rdma.k8s.tests.lab import control, lab
        from ansible_collections.rdma.k8s.tests.lab.cluster import Cluster
        from ansible_collections.rdma.k8s.tests.lab.image import Cache, remove_tree
        from ansible_collections.rdma.k8s.tests.lab.progress import Progress

        progress = Progress(sys.stderr)
        cache = Cache(lab.default_cache(), progress)
        plane = Cluster("bench" + uuid.uuid4().hex[:6], cache, progress)
        try:
            plane.up(control.ClusterSpec(simulated=4, simulated_rails=2))
            kubeconfig = str(plane.kubeconfig)
            yield self.runs(
                "node_agent", CLUSTER, STAND_INS, kubeconfig=kubeconfig, image="lab.test/rdma-k8s:1"
            )
            yield self.runs(
                "oke_dranet", CLUSTER, STAND_INS, kubeconfig=kubeconfig, helm=str(plane.programs.path("helm")),
                image="lab.test/dranet:v1.4.0", provider_image="lab.test/rdma-k8s:1", verify=False,
                allow_without_ipvlan=True,
            )  # fmt: skip
            yield self._spiderpool(plane)
            yield self._lingjun(plane)
        finally:
            plane.down()
            remove_tree(plane.directory, cache.path)

    def _spiderpool(self, plane: Any) -> Pair:
        """Chart and two rails on two nodes, whose cards an actor plays."""
        from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
        from ansible_collections.rdma.k8s.tests.support import spiderpool_cluster, sriov_crds

        cluster = connect(str(plane.kubeconfig))
        places = ("0000:0c:00.0", "0000:2a:00.0")
        nodes = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))[:2]
        hand = sriov_crds.Operator(cluster, places)
        for node in nodes:
            hand.label(node, bench="true")
        rails = [
            {"pci": place, "subnet": "172.16.%d.0/24" % number, "gateway": "172.16.%d.254" % number}
            for number, place in enumerate(places, 11)
        ]
        chart = spiderpool_cluster.write_chart(self.folder, plane.programs)
        with spiderpool_cluster.Actor(cluster, nodes, places):
            return self.runs(
                "spiderpool_sriov", CLUSTER, STAND_INS, kubeconfig=str(plane.kubeconfig), chart=str(chart),
                helm=str(plane.programs.path("helm")), node_selector={"bench": "true"}, rails=rails, nodes=nodes,
                link_type="eth", timeout=120, network_timeout=60, max_unavailable=1,
            )  # fmt: skip

    def _lingjun(self, plane: Any) -> Pair:
        """The add-on ordered from a cloud on loopback, which deploys the plugin on two nodes."""
        from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
        from ansible_collections.rdma.k8s.tests.support import lingjun_cloud, lingjun_cluster

        cluster = connect(str(plane.kubeconfig))
        nodes = sorted(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes"))[2:]
        found = lingjun_cluster.Lingjun(cluster, nodes, plane.directory)
        for node in nodes:
            found.adopt(node)
        with lingjun_cloud.Cloud(plane, "IPv6") as cloud:
            return self.runs(
                "ack_lingjun", CLUSTER, STAND_INS, env=lingjun_cloud.KEYS, kubeconfig=str(plane.kubeconfig),
                **cloud.options(),
            )  # fmt: skip
