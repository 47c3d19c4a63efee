#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_verdict
short_description: Show on the nodes of a cluster what a judgement found, and let pods in
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Labels each Node object with C(rdma.k8s/verdict) and C(rdma.k8s/judged), so that C(kubectl get nodes -L
    rdma.k8s/verdict,rdma.k8s/judged) shows the verdict and its age.
  - The verdict is C(fail) when a check at or above O(threshold) failed, C(unknown) when the node told nothing or a
    critical check could not be told, C(warn) when something else is not right, else C(pass). Waived results do not
    count.
  - A node that joins can be kept free of pods by the taint C(rdma.k8s/unverified:NoSchedule), which a node pool sets
    when it makes the node, or this module with O(state=fenced). It goes when the verdict is C(pass) or C(warn), and
    never otherwise.
  - Taints and labels of others are left alone. A node that has all that it should have is not written. Where nothing
    but the time is another one it is written, and the result is not RV(ignore:changed).
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.kubernetes
options:
  state:
    description: What to do with the nodes.
    type: str
    choices:
      judged: Write the verdicts of O(result), and let pods on good nodes.
      fenced: Keep pods away from nodes that have no verdict yet.
      absent: Take labels and taint away.
    default: judged
  result:
    description: The result document that M(rdma.k8s.validate) wrote. Required with O(state=judged).
    type: path
  nodes:
    description:
      - Names of hosts. Without it all nodes of O(result), or, with O(state=fenced) and O(state=absent), all nodes of
        the cluster.
    type: list
    elements: str
  node_names:
    description: Name of a host to the name of its Node object, where the two differ.
    type: dict
    default: {}
  threshold:
    description: The lowest severity whose failures make the verdict C(fail).
    type: str
    choices: [critical, error, warning, info]
    default: error
  strict:
    description: Whether any result that is C(unknown) makes the verdict C(unknown).
    type: bool
    default: false
attributes:
  check_mode:
    details: The API server checks each change without making it.
  platform:
    platforms: all
seealso:
  - module: rdma.k8s.validate
"""

EXAMPLES = r"""
- name: Keep pods away from nodes that were never judged
  rdma.k8s.node_verdict:
    state: fenced
    nodes: "{{ ansible_play_hosts_all }}"
  delegate_to: localhost
  run_once: true

- name: Show what was found
  rdma.k8s.node_verdict:
    result: rdma-report/result.json
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
verdicts:
  description: Name of each Node object to its verdict.
  returned: with O(state=judged)
  type: dict
  sample: {"gpu-01": "pass", "gpu-02": "fail"}
actions:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
  sample: ["label gpu-01 pass", "let pods on gpu-01"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, report_files
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import node_list, node_marks
from ansible_collections.rdma.k8s.plugins.module_utils.core import finding, node_verdict
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["judged", "fenced", "absent"], "default": "judged"},
            "result": {"type": "path"},
            "nodes": {"type": "list", "elements": "str"},
            "node_names": {"type": "dict", "default": {}},
            "threshold": {"type": "str", "choices": list(finding.SEVERITIES), "default": finding.ERROR},
            "strict": {"type": "bool", "default": False},
            **_kube.OPTIONS,
        },
        required_if=[("state", "judged", ["result"])],
        supports_check_mode=True,
    )
    params, done = module.params, []
    result = {}
    try:
        _module.prepare(module, _kube.LIBRARIES)
        name_of = {host: str(node) for host, node in params["node_names"].items()}
        hosts = params["nodes"]
        decide = {"fenced": node_verdict.fence, "absent": node_verdict.clear}.get(params["state"])
        if decide is None:
            document = report_files.read_result(params["result"])
            verdicts = node_verdict.verdicts(document, params["threshold"], params["strict"])
            hosts = list(verdicts) if hosts is None else hosts
            found = {name_of.get(host, host): verdicts.get(host, finding.UNKNOWN) for host in hosts}
            judged = node_verdict.label_time(document.created_at)
            result["verdicts"] = found

            def decide(node):
                return node_verdict.mark(node, found[node["metadata"]["name"]], judged)

        cluster = _kube.connect(module)
        if hosts is None:
            names = [node["metadata"]["name"] for node in cluster.items(node_list.NODES)]
        else:
            names = [name_of.get(host, host) for host in hosts]
        node_marks.write(cluster, decide, set(names), done, module.check_mode)
    except RdmaError as error:
        _module.fail(module, error, changed=_changed(done), actions=_actions(done))
    if module._diff:
        result["diff"] = {
            "before": {change.node: change.before for change in done},
            "after": {change.node: change.after for change in done},
        }
    module.exit_json(changed=_changed(done), actions=_actions(done), **result)


def _changed(done: list) -> bool:
    return any(change.matters for change in done)


def _actions(done: list) -> list:
    return [action for change in done for action in change.actions]


if __name__ == "__main__":
    main()
