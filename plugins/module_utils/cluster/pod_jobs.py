# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the pod test of Lingjun nodes as Jobs, and take them away again. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ..core.ack import pod_test
from ..core.ack.pod_test import NODE_ANNOTATION, RUN_LABEL, PodTest, Problem, State, Verdict
from ..core.ack.verdict import UNKNOWN
from ..core.errors import RdmaError
from ..core.kube.objects import mapping, name, text
from .client import Cluster

AT_ONCE = 50
"""Jobs that are there at the same time."""
_PAUSE, _GONE = 1.0, 60.0


class NodeResult(NamedTuple):
    """What the test of one node showed; ``pod`` is the name that the pod had."""

    node: str
    pod: str
    verdict: Verdict


def dry_run(cluster: Cluster, test: PodTest, nodes: Sequence[str], run: str) -> None:
    """Let the API server check Job and pod of each node, admission included; nothing is stored.

    :raises RdmaError: one of the codes ``kube_...``.
    """
    for node in nodes:
        made = pod_test.job(test, node, run)
        template = made["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**made["metadata"], **template["metadata"]},
            "spec": template["spec"],
        }
        cluster.send("POST", _path(test), made, dryRun="All", fieldValidation="Strict")
        cluster.send("POST", _path(test, "pods"), pod, dryRun="All")


def told(results: Sequence[NodeResult]) -> dict[str, Any]:
    """The results as plain data: ``status``, ``problems`` in sentences, ``results`` by node."""
    problems = [(result.node, problem) for result in results for problem in result.verdict.problems]
    return {
        "status": pod_test.verdict([problem for _node, problem in problems]).status,
        "problems": ["%s: %s %s" % (node, problem.message, problem.hint) for node, problem in problems],
        "results": [
            {
                "node": result.node,
                "pod": result.pod,
                "status": result.verdict.status,
                "problems": [problem._asdict() for problem in result.verdict.problems],
                "evidence": result.verdict.evidence,
            }
            for result in results
        ],
    }


class Runner:
    """One run of the test.

    :param run: a label that no other run has.
    :param sleep: waits; ``clock``: monotonic seconds. They are arguments for tests.
    """

    def __init__(
        self,
        cluster: Cluster,
        test: PodTest,
        run: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.left: list[str] = []
        """Names of Jobs and pods that are still there after :meth:`results`."""
        self._cluster, self._test, self._run = cluster, test, run
        self._sleep, self._clock = sleep, clock

    def results(self, nodes: Sequence[str]) -> list[NodeResult]:
        """Test the nodes, some at a time, and remove the Jobs, also when something fails.

        :raises RdmaError: one of the codes ``kube_...``; a Job that was made is removed all the same.
        """
        found: list[NodeResult] = []
        for at in range(0, len(nodes), AT_ONCE):
            part = nodes[at : at + AT_ONCE]
            jobs: list[dict[str, Any]] = []
            try:
                for node in part:
                    made = pod_test.job(self._test, node, self._run)
                    jobs.append(made)  # before it is sent: an answer that is lost leaves a Job as well
                    self._cluster.send("POST", _path(self._test), made, fieldValidation="Strict")
                found += self._waited_for(part)
            finally:
                self.left += self._remove(jobs)
        return found

    def _waited_for(self, nodes: Sequence[str]) -> list[NodeResult]:
        end = self._clock() + self._test.seconds
        while True:
            states = self._states(nodes)
            if all(state.done for state in states.values()) or self._clock() >= end:
                break
            self._sleep(_PAUSE)
        return [NodeResult(node, state.pod, self._verdict(state)) for node, state in states.items()]

    def _states(self, nodes: Sequence[str]) -> dict[str, State]:
        jobs = {_node_of(job): job for job in self._made("jobs")}
        pods: dict[str, list[dict[str, Any]]] = {}
        for pod in self._made("pods"):
            pods.setdefault(_node_of(pod), []).append(pod)
        found = {}
        for node in nodes:
            job = jobs.get(node, {})
            events = [] if pods.get(node) or not job else self._events(job)
            found[node] = pod_test.state(job, pods.get(node, ()), events)
        return found

    def _made(self, kind: str) -> list[dict[str, Any]]:
        path = _path(self._test) if kind == "jobs" else _path(self._test, "pods")
        return list(self._cluster.items(path, labelSelector="%s=%s" % (RUN_LABEL, self._run)))

    def _events(self, job: dict[str, Any]) -> list[str]:
        """Why the Job controller can make no pod; nothing when events may not be read."""
        query = "involvedObject.uid=%s,reason=FailedCreate" % mapping(job, "metadata").get("uid")
        try:
            found = list(self._cluster.items(_path(self._test, "events"), 20, fieldSelector=query))
        except RdmaError:
            return []
        return [text(event.get("message")) for event in found]

    def _verdict(self, state: State) -> Verdict:
        told = state.told
        evidence = pod_test.read(told) if told else None
        if evidence is None and state.pod and (told or state.done):
            told = self._log(state.pod) or told  # a message is cut off after 4096 bytes, a log is not
            evidence = pod_test.read(told) if told else None
        if evidence is not None:
            return pod_test.judge(self._test, evidence)
        if state.problem is not None:
            return pod_test.verdict([state.problem])
        message = "What the pod told is cut off, or no evidence: %r." % told[-60:]
        hint = "Allow reading pods/log, or use an image with a plain shell."
        return pod_test.verdict([Problem("pod-unreadable", UNKNOWN, message, hint)])

    def _log(self, pod: str) -> str:
        path = _path(self._test, "pods") + "/%s/log" % pod
        try:
            return self._cluster.text(path, container=pod_test.CONTAINER, tailLines=5)
        except RdmaError:
            return ""

    def _remove(self, jobs: Sequence[dict[str, Any]]) -> list[str]:
        """Remove Jobs, wait until the pods have gone, and tell what stays: a Job removes itself after a while, too."""
        left = []
        for job in jobs:
            try:
                self._cluster.delete(job)
            except RdmaError:
                left.append(name(job))
        end = self._clock() + _GONE
        while True:
            try:
                there = [name(pod) for pod in self._made("pods")]
            except RdmaError:
                there = []
            if not there or self._clock() >= end:
                return [*left, *there]
            self._sleep(_PAUSE)


def _path(test: PodTest, kind: str = "") -> str:
    if kind:
        return "/api/v1/namespaces/%s/%s" % (test.namespace, kind)
    return "/apis/batch/v1/namespaces/%s/jobs" % test.namespace


def _node_of(content: dict[str, Any]) -> str:
    return text(mapping(content, "metadata", "annotations").get(NODE_ANNOTATION))
