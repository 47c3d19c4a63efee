# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge all snapshots on the controller, in one call; no connection to any node."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.color import ANSIBLE_COLOR

from ansible_collections.rdma.k8s.plugins.module_utils import judging, records, report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core import fabric, finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.custom import compile_checks
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput, selected
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import jsonfile, summary
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import ResultDocument
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.wording import count
from ansible_collections.rdma.k8s.plugins.plugin_utils import reasons, showing

ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str"},
    "variable": {"type": "str", "default": "rdma_k8s_node"},
    "snapshots": {"type": "path"},
    "cluster": {"type": "dict"},
    "cluster_file": {"type": "path"},
    "proof": {"type": "dict", "default": {}},
    "pods": {"type": "dict", "default": {}},
    "policy": {"type": "dict", "default": {}},
    "policy_file": {"type": "path"},
    "input_only": {"type": "bool", "default": False},
    "dest": {"type": "path"},
    "record": {"type": "path"},
    "threshold": {"type": "str", "default": "error", "choices": list(finding.SEVERITIES)},
    "strict": {"type": "bool", "default": False},
    "show": {"type": "bool", "default": True},
}


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec=ARGUMENT_SPEC,
            mutually_exclusive=[("hosts", "snapshots"), ("proof", "snapshots"), ("cluster", "cluster_file")],
        )
        try:
            policy = judging.policy_from(args["policy_file"], args["policy"])
            if args["input_only"]:
                own = [check.info.id for check in compile_checks(policy.checks)]
                result.update(
                    changed=False,
                    checks=[check.info.id for check in selected(policy)] + own,
                    child_range=policy.child_range,
                )
                return result
            with showing.progress_of(self, showing.name_of(self), shown=args["show"]) as progress:
                document = self._judge(args, task_vars or {}, policy, result, progress.doing)
        except RdmaError as error:
            raise AnsibleActionFail(str(error), result={"code": error.code}) from None
        if args["show"]:
            self._display.display(summary.render(document, colour=ANSIBLE_COLOR))
        return result

    def _judge(
        self,
        args: dict[str, Any],
        task_vars: dict[str, Any],
        policy: Policy,
        result: dict[str, Any],
        doing: Callable[[str], None],
    ) -> ResultDocument:
        """Judge, put what there is to return into ``result``, and write the files.

        :param doing: takes what is being done.
        """
        doing("reading the snapshots")
        inputs, cluster = self._inputs(args, task_vars)
        pods = judging.plain(args["pods"])
        if pods:
            cluster = records.with_pods(cluster, pods)
        doing("judging %s" % count(len(inputs), "node"))
        document = judging.judge_now(inputs, policy, cluster)
        doing("writing the results of %s" % count(len(inputs), "node"))
        code = finding.exit_code(document.findings, args["threshold"], args["strict"])
        result.update(
            changed=False,
            exit_code=code,
            counts=document.counts(),
            summary=summary.render(document).splitlines(),
            nodes=len(document.nodes),
        )
        if args["record"]:
            result["recorded"] = records.save(args["record"], inputs, cluster)
        files = {}
        if args["proof"]:
            result["fabric"] = fabric.summary({entry.name: _section(entry) for entry in inputs})
            files["fabric.json"] = iter([json.dumps(result["fabric"], indent=1) + "\n"])
        if pods.get("fabric"):
            result["pod_fabric"] = pods["fabric"]
            files["pod-fabric.json"] = iter([json.dumps(result["pod_fabric"], indent=1) + "\n"])
        if args["dest"]:
            directory, name = os.path.split(args["dest"])
            report_files.write_files(directory or ".", {name: jsonfile.chunks(document), **files})
            result["dest"] = args["dest"]
        return document

    def _inputs(
        self, args: dict[str, Any], task_vars: dict[str, Any]
    ) -> tuple[Sequence[NodeInput], Optional[ClusterSnapshot]]:
        cluster = None
        if args["cluster_file"]:
            cluster = records.load_cluster(args["cluster_file"])
        elif args["cluster"]:
            cluster = records.cluster_from(judging.plain(args["cluster"]), "The option 'cluster'")
        if args["snapshots"]:
            found = records.recording(args["snapshots"])
            return found.nodes, cluster or found.cluster
        return self._nodes(args, task_vars), cluster

    def _nodes(self, args: dict[str, Any], task_vars: dict[str, Any]) -> list[NodeInput]:
        hosts = args["hosts"] if args["hosts"] is not None else task_vars.get("ansible_play_hosts_all", [])
        hostvars = task_vars["hostvars"]
        for host in hosts:
            if host not in hostvars:
                raise AnsibleActionFail("The inventory has no host %r, which is to be judged." % str(host))
        if args["proof"]:
            return [self._proof_of(str(host), hostvars, args) for host in hosts]
        return [self._input_of(str(host), hostvars, args["variable"]) for host in hosts]

    def _proof_of(self, host: str, hostvars: Any, args: dict[str, Any]) -> NodeInput:
        """What the steps of a proof registered on a host, as the section of its snapshot."""
        variables = hostvars.raw_get(host)
        gathered = {step: variables.get(name) for step, name in args["proof"].items()}
        first = gathered.get(fabric.STEPS[0])
        if not isinstance(first, dict) or first.get("unreachable"):
            return NodeInput(
                host,
                reason=reasons.no_snapshot(first) if isinstance(first, dict) else "Nothing was gathered.",
            )
        parts: list[Any] = []
        problems = {}
        for step in fabric.STEPS:
            told = gathered.get(step)
            if isinstance(told, dict) and isinstance(told.get("fabric"), dict):
                parts.append(judging.plain(told["fabric"]))
            elif isinstance(told, dict) and not told.get("skipped"):
                problems[step] = reasons.no_snapshot(told)
        section = fabric.merged([*parts, {"problems": problems}])
        node = variables.get(args["variable"])
        known = node.get("snapshot") if isinstance(node, dict) else None
        document = {
            "subsets": ["fabric"],
            "collected_at": judging.now(),
            **(judging.plain(known) if isinstance(known, dict) else {}),
            "name": host,
            "fabric": section,
        }
        try:
            return records.node_input(document, host)
        except RdmaError as error:
            return NodeInput(host, reason=str(error))

    def _input_of(self, host: str, hostvars: Any, variable: str) -> NodeInput:
        variables = hostvars.raw_get(host)
        gathered = variables.get(variable)
        if not isinstance(gathered, dict):
            return NodeInput(host, reason="Nothing was gathered from this node (no variable %s)." % variable)
        if not isinstance(gathered.get("snapshot"), dict):
            return NodeInput(host, reason=reasons.no_snapshot(gathered))
        try:
            node = records.node_input({**judging.plain(gathered["snapshot"]), "name": host}, host)
        except RdmaError as error:
            return NodeInput(host, reason=str(error))
        own = {**variables, "hostvars": hostvars}
        return NodeInput(
            host,
            node.snapshot,
            child_range=self._text(host, own, "rdma_child_range"),
            network=self._text(host, own, "rdma_network"),
        )

    def _text(self, host: str, variables: dict[str, Any], name: str) -> str:
        """A variable of a host as text, templated with the variables of this host, not of the one that judges."""
        value = variables.get(name)
        if value is not None and self._templar.is_template(value):
            try:
                value = self._templar.copy_with_new_env(available_variables=variables).template(value)
            except AnsibleError as error:
                raise AnsibleActionFail("%s of host %s: %s" % (name, host, error)) from None
        return "" if value is None else str(value)


def _section(entry: NodeInput) -> fabric.Fabric:
    found = entry.snapshot.fabric if entry.snapshot is not None else None
    return found if found is not None else fabric.Fabric()
