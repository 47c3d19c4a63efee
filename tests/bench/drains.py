# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B13: our drain against kubectl drain of the same pods, on a real API server, with real evictions.

API server, scheduler, controllers and kubectl are real. The kubelets are those of the lab's simulator: a pod ends after
the time that it was given. Both commands are measured from outside, from their start to their end.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import measure
import paths

import playbooks

NODES, ROUNDS = 3, 2
STOP = "3"
"""Seconds that a pod takes to end: long enough that both have to wait for it."""


@dataclass(frozen=True)
class Drain:
    """One drain of some nodes.

    :param tool: ``kubectl`` or ``rdma.k8s``.
    :param wall: seconds of the whole command; ``inside``: what our module says that it took.
    :param start: seconds of the same command with a module that does nothing, right before.
    """

    tool: str
    nodes: int
    wall: float
    cpu: float
    inside: float = 0.0
    start: float = 0.0


@dataclass(frozen=True)
class Compared:
    """Both tools, on as many nodes at a time. Seconds a node, medians: each of the numbers is one of a clock."""

    nodes: int
    kubectl: float
    ours: float
    start: float
    inside: float
    drains: int

    @property
    def over(self) -> float:
        """What our command takes more, a node, without the start of Ansible, which a roll does not have for each."""
        return self.ours - self.start - self.kubectl

    @property
    def row(self) -> list[Any]:
        """A row of :data:`HEADS`."""
        return [self.nodes, self.drains, self.kubectl, self.ours, self.start, self.inside, self.over]


HEADS = [
    "nodes at a time",
    "drains of each",
    "kubectl drain, s a node",
    "rdma.k8s.drain, s a node",
    "start of Ansible, s a node",
    "the module by its own clock, s a node",
    "more without the start, s a node",
]


def compare(drains: Sequence[Drain], nodes: int) -> Compared:
    """Medians of the drains of so many nodes at a time."""
    theirs = [drain for drain in drains if drain.nodes == nodes and drain.tool == "kubectl"]
    ours = [drain for drain in drains if drain.nodes == nodes and drain.tool != "kubectl"]
    if not theirs or len(theirs) != len(ours):
        raise measure.BenchError("%d and %d drains of %d nodes" % (len(theirs), len(ours), nodes))
    return Compared(
        nodes=nodes,
        kubectl=median(drain.wall for drain in theirs) / nodes,
        ours=median(drain.wall for drain in ours) / nodes,
        start=median(drain.start for drain in ours) / nodes,
        inside=median(drain.inside for drain in ours) / nodes,
        drains=len(ours),
    )


def outcome(output: str) -> dict[str, Any]:
    """The result of a module in what the command ``ansible`` prints."""
    _before, mark, text = output.partition(" => ")
    if not mark:
        raise measure.BenchError("ansible told no result:\n%s" % output[-2000:])
    found: dict[str, Any] = json.JSONDecoder().raw_decode(text)[0]
    return found


def measured(nodes: int = NODES, rounds: int = ROUNDS) -> list[Drain]:
    """Drain each node alone and all at once, with both tools in turn, and see each time that the right pods went."""
    paths.make_importable()
    sys.path.append(str(playbooks.BENCH.parent / "roll"))
    import slots
    from stage import stage

    class Users(slots.Slot):
        """Pods that take a while to end."""

        def _deployment(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
            made = super()._deployment(name, spec)
            made["spec"]["template"]["metadata"]["annotations"]["rdma-lab/stop-seconds"] = STOP
            made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 30
            return made

    found: list[Drain] = []
    with stage(1, nodes, kind=Users) as ready, tempfile.TemporaryDirectory() as name:
        (slot,) = ready.slots
        slots.until("everything runs", slot.good)
        bench = _Bench(ready, slot, playbooks.Playground(Path(name), {"all": {"hosts": {"localhost": {}}}}))
        bench.ours(slot.nodes[:1])  # what later runs find in caches
        bench.give_back(slots.until)
        turns = [[node] for node in slot.nodes] + [list(slot.nodes)]
        for number in range(rounds):
            for turn in turns:
                pair: list[Callable[[Sequence[str]], Drain]] = [bench.kubectl, bench.ours]
                for act in pair if number % 2 == 0 else reversed(pair):
                    found.append(bench.judged(act, turn))
                    bench.give_back(slots.until)
    return found


class _Bench:
    """The two tools on one cluster."""

    def __init__(self, ready: Any, slot: Any, ground: playbooks.Playground) -> None:
        self.ready, self.slot, self.ground = ready, slot, ground

    def kubectl(self, nodes: Sequence[str]) -> Drain:
        """``kubectl drain`` of the pods that use RDMA."""
        words = ("--ignore-daemonsets", "--pod-selector=app=train", "--timeout=120s")
        done = measure.run(self.ready.cluster.kubectl_command("drain", *nodes, *words))
        _good("kubectl drain", done)
        return Drain("kubectl", len(nodes), done.wall, done.cpu)

    def ours(self, nodes: Sequence[str]) -> Drain:
        """The module drain, by the command ``ansible``."""
        options = {"kubeconfig": str(self.ready.cluster.kubeconfig), "nodes": list(nodes)}
        start = self._ansible("ansible.builtin.ping", {"data": "pong"})
        done = self._ansible("rdma.k8s.drain", options)
        inside = float(outcome(done.output)["seconds"])
        return Drain("rdma.k8s", len(nodes), done.wall, done.cpu, inside, start.wall)

    def _ansible(self, module: str, options: dict[str, Any]) -> measure.Run:
        command = [
            str(Path(self.ground.program).with_name("ansible")), "localhost", "-c", "local",
            "-e", "ansible_python_interpreter=%s" % sys.executable, "-m", module, "-a", json.dumps(options),
        ]  # fmt: skip
        done = measure.run(command, self.ground.environment, self.ground.folder)
        _good(module, done)
        return done

    def judged(self, act: Callable[[Sequence[str]], Drain], nodes: Sequence[str]) -> Drain:
        """A drain after which the users of these nodes are gone, and no other pod."""
        before = self._pods()
        drain = act(nodes)
        gone = {uid for uid in before if uid not in self._pods()}
        wanted = {uid for uid, (app, node) in before.items() if app == "train" and node in nodes}
        if gone != wanted or len(wanted) != len(nodes):
            raise measure.BenchError(
                "%s removed %d pods of %s, expected %d users of RDMA"
                % (drain.tool, len(gone), ", ".join(nodes), len(wanted))
            )
        return drain

    def give_back(self, until: Callable[..., Any]) -> None:
        """Uncordon all nodes, and wait for new pods on them."""
        _good("uncordon", measure.run(self.ready.cluster.kubectl_command("uncordon", *self.slot.nodes)))
        for (
            node
        ) in self.slot.all_nodes():  # what our fence has written, so that the next one is not ours again
            self.slot.clean(node)
        until("everything runs again", self.slot.good)

    def _pods(self) -> dict[str, tuple[str, str]]:
        """App and node of the pods that are not being deleted."""
        return {
            uid: (app, pod["spec"].get("nodeName", ""))
            for app in ("train", "cpu", "rdma-k8s-provider")
            for uid, pod in self.slot.pods(app, running=False).items()
        }


def _good(what: str, done: measure.Run) -> None:
    if done.code:
        raise measure.BenchError("%s ended with exit code %d:\n%s" % (what, done.code, done.output[-2000:]))
