#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dranet_check
short_description: Whether a cluster can have DRANET, and has it as it was wanted
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Looks at the API of the cluster, and waits for what comes by itself until O(timeout).
  - Fails with all problems that are left, unless O(fail_on_problems) is off.
  - Nothing in the cluster is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
options:
  stage:
    description:
      - V(before) tells whether the cluster can have DRANET, by the version of the API server, the API of devices, the
        nodes, their kubelets, and NRI of their runtimes.
      - V(provider) tells whether a ready pod of the provider is on each node, V(after) also of DRANET, and whether RDMA
        NICs are published with the right attributes.
      - V(unused) tells whether claims have devices, which must not lose their driver.
      - V(stopped) tells whether DaemonSets, or pods of removed ones that are still ending, are left after the removal;
        V(absent) also whether slices are.
    type: str
    choices: [before, provider, after, unused, stopped, absent]
    required: true
  namespace:
    description: Where the DaemonSets are.
    type: str
    default: kube-system
  nodes:
    description: Nodes that must have RDMA NICs. Without it, those that have some in their slices, at least one.
    type: list
    elements: str
    default: []
  node_selector:
    description: Labels of the nodes on which the pods run. Without it, all nodes.
    type: dict
    default: {}
  child_range:
    description:
      - The range that the slices must show.
      - Without it they are not looked at for one, as with a driver that does not publish it.
    type: str
  provider:
    description: Whether the provider of this collection belongs to it.
    type: bool
    default: true
  nri_enabled:
    description: You know that NRI is on, also where the version of the runtime does not tell.
    type: bool
    default: false
  timeout:
    description:
      - Seconds to wait for what comes, or goes, by itself; V(0) looks once.
      - Without it, V(stopped) and V(absent) wait as long as the pods that are left may take to end, and a minute
        longer; the other stages look once.
    type: float
  fail_on_problems:
    description: Whether to fail when problems are left.
    type: bool
    default: true
seealso:
  - module: rdma.k8s.dranet_plan_info
  - module: rdma.k8s.validate
"""

EXAMPLES = r"""
- name: Ask whether the cluster can have DRANET
  rdma.k8s.dranet_check:
    stage: before
  delegate_to: localhost

- name: Wait until pods and slices of a removed DRANET are gone
  rdma.k8s.dranet_check:
    stage: absent
  delegate_to: localhost

- name: Wait until all RDMA NICs can be claimed
  rdma.k8s.dranet_check:
    stage: after
    child_range: 10.208.0.0/12
    timeout: 300
  delegate_to: localhost
"""

RETURN = r"""
problems:
  description: What is not as it must be.
  returned: always
  type: list
  elements: dict
  contains:
    code:
      description: Stable identifier.
      type: str
      returned: always
      sample: dranet_pods_not_ready
    message:
      description: What is wrong.
      type: str
      returned: always
      sample: No ready pod of the DaemonSet kube-system/dranet is on n2.
    hint:
      description: What to do.
      type: str
      returned: always
      sample: Look at the events and logs.
    retryable:
      description: Whether it can heal by itself.
      type: bool
      returned: always
      sample: true
warnings_found:
  description: What may stay as it is for now, such as pods with former settings.
  returned: always
  type: list
  elements: str
  sample: []
nodes:
  description: The nodes with RDMA NICs, after O(stage=after).
  returned: always
  type: list
  elements: str
  sample: [n1, n2]
waited:
  description: Seconds that were waited.
  returned: always
  type: float
  sample: 12.5
"""

from typing import Any
from urllib.parse import quote

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import collect, waiting
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds, standing
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import dranet_state

PAUSE = 3.0


def _judge(params: dict[str, Any], cluster: Any) -> tuple[dranet_state.Judgement, float]:
    """The judgement after the last look, and how long it took to come to it."""
    expected = dranet_state.Expected(
        namespace=params["namespace"],
        nodes=params["nodes"],
        selector={key: str(value) for key, value in params["node_selector"].items()},
        child_range=params["child_range"] or "",
        provider=params["provider"],
        nri=params["nri_enabled"],
    )

    stage, timeout = params["stage"], params["timeout"]
    pods_path = "/api/v1/namespaces/%s/pods" % quote(expected.namespace, safe="")

    def look() -> dranet_state.Judgement:
        snapshot = collect.collect(LiveSource(cluster), cluster.server, dranet_state.SUBSETS)
        pods: list[dranet_state.Leftover] = []
        if stage in dranet_state.REMOVED:
            # After the DaemonSets: a pod whose DaemonSet was there is then seen by either look.
            pods = dranet_state.leftovers(cluster.items(pods_path, labelSelector=dranet_state.POD_SELECTOR))
        return dranet_state.judge(snapshot, stage, expected, pods)

    first, waited = waiting.look_until(_is_final, look, 0, PAUSE)
    timeout = first.patience if timeout is None else timeout
    if _is_final(first) or not timeout:
        return first, waited
    tell, limit = news.teller(), timeout

    def watch(found: dranet_state.Judgement) -> None:
        tell(standing.waiting(limit, [problem.message for problem in found.problems]))

    return waiting.look_until(_is_final, look, timeout, PAUSE, watch)


def _is_final(found: dranet_state.Judgement) -> bool:
    """Whether there is no problem, or one that waiting does not heal."""
    return not found.problems or any(not problem.retryable for problem in found.problems)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "stage": {"type": "str", "choices": list(dranet_state.STAGES), "required": True},
            "namespace": {"type": "str", "default": "kube-system"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "node_selector": {"type": "dict", "default": {}},
            "child_range": {"type": "str"},
            "provider": {"type": "bool", "default": True},
            "nri_enabled": {"type": "bool", "default": False},
            "timeout": {"type": "float"},
            "fail_on_problems": {"type": "bool", "default": True},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    try:
        _module.prepare(module, _kube.LIBRARIES)
        if module.params["timeout"] is not None:
            bounds.require_numbers(module.params, timeout=(0, 3600))
        found, waited = _judge(module.params, _kube.connect(module))
    except RdmaError as error:
        _module.fail(module, error)
    for warning in found.warnings:
        module.warn(warning)
    result = {
        "problems": [problem.to_dict() for problem in found.problems],
        "warnings_found": list(found.warnings),
        "nodes": list(found.nodes),
        "waited": round(waited, 1),
    }
    if found.problems and module.params["fail_on_problems"]:
        first = found.problems[0]
        module.fail_json(msg=" ".join(map(str, found.problems)), code=first.code, **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
