#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drain
short_description: Evict the pods that use RDMA from nodes, and nothing else
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Fences nodes, waits for jobs when asked to, evicts the pods that M(rdma.k8s.workload_info) names, and waits until no
    claim has devices of these nodes any more. Pods that do not use RDMA stay.
  - Pods go by the eviction API alone, so disruption budgets are respected. An eviction that is refused is asked for
    again, after the time that the API server names, else after 5 seconds. Each pod is meant by its UID, and none is
    asked for twice.
  - When a pod stands in the way that no eviction removes, it fails before anything is changed, and names it. Such are
    pods of DaemonSets, pods without a controller unless O(ownerless), pods whose disruption budget can never allow it,
    and pods that two budgets select.
  - When time is over it fails and says what is left. The fence stays, and the same task, run again, goes on from there.
  - No pod is ever given a grace period of 0, not even one that asks for it, because its claims would then be released
    after it has gone.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
  - rdma.k8s.rdma_users
options:
  nodes:
    description: Names of the Node objects. They are drained at the same time.
    type: list
    elements: str
    required: true
  state:
    description: What to do with the nodes.
    type: str
    choices:
      drained: Fence them and evict their users of RDMA.
      fenced: Only fence them.
      released: Take away the fences of this module, and nobody else's.
      tried: Let the API server tell what a DeviceTaintRule would hit. A rule without effect is made for a moment.
    default: drained
  fence:
    description: How new users are kept away.
    type: str
    choices:
      cordon: No pod at all is scheduled to the node. A cordon of somebody else is left alone and does as well.
      taint: >-
        A DeviceTaintRule keeps new claims away from the devices of O(driver); other pods may still come, also those
        that use RDMA without a claim. Needs an API server that serves it.
      none: Nothing is done. Pods that come meanwhile are evicted too.
    default: cordon
  wait_for_jobs:
    description:
      - Seconds that pods which end by themselves get to do so, at most a week; V(0) does not wait.
      - Nothing is evicted before.
    type: int
    default: 0
  evict_jobs:
    description: Whether what still runs after O(wait_for_jobs) is evicted. Without it that is a failure.
    type: bool
    default: true
  timeout:
    description: Seconds for the pods to go, from the first eviction on, at most a day.
    type: int
    default: 900
  claims_timeout:
    description: Seconds for the claims to be released, when the pods have gone, at most 3600.
    type: int
    default: 300
  grace_period:
    description: Seconds for each pod instead of its own grace period, from 1 to a day.
    type: int
attributes:
  check_mode:
    details: The API server checks fences and evictions without making them, and nothing is waited for. RV(refused)
      tells which evictions would be refused now.
  platform:
    platforms: all
seealso:
  - module: rdma.k8s.workload_info
  - module: kubernetes.core.k8s_drain
    description: Evicts all pods of a node.
"""

EXAMPLES = r"""
- name: Free the RDMA devices of two nodes
  rdma.k8s.drain:
    nodes: [gpu-01, gpu-02]
    wait_for_jobs: 3600
  delegate_to: localhost

- name: Keep CPU pods coming meanwhile
  rdma.k8s.drain:
    nodes: [gpu-01]
    fence: taint
  delegate_to: localhost

- name: Let pods come again
  rdma.k8s.drain:
    nodes: [gpu-01, gpu-02]
    state: released
  delegate_to: localhost
"""

RETURN = r"""
nodes:
  description: The nodes as they were before, see RV(rdma.k8s.workload_info#module:nodes).
  returned: with O(state=drained)
  type: list
  elements: dict
  sample: [{"name": "gpu-01", "ready": true, "unschedulable": false, "users": [], "claims": []}]
evicted:
  description: Pods whose eviction the API server took, as C(namespace/name).
  returned: with O(state=drained)
  type: list
  elements: str
  sample: [default/train-0]
refused:
  description: Pods whose last eviction was refused, with the reason.
  returned: with O(state=drained)
  type: dict
  sample: {}
fences:
  description: What was put up at each node, or taken away. A node whose fence was as it should be is not named.
  returned: always
  type: dict
  sample: {"gpu-01": "cordon"}
hit:
  description: What the API server says that a rule would hit, for each node; empty when it said nothing in time.
  returned: with O(state=tried)
  type: dict
  sample: {"gpu-01": "16 published devices selected. 16 allocated devices selected. 1 pod would be evicted in 1
    namespace if the effect was NoExecute."}
actions:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
  sample: ["cordon gpu-01", "evict default/train-0"]
seconds:
  description: How long the drain took.
  returned: with O(state=drained)
  type: float
  sample: 34.2
calls:
  description: Number of requests to the API server.
  returned: always
  type: int
  sample: 21
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _rdma_users, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.draining import Drainer
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import fence
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.draining import Wish

_DAY = 86400


def _act(params: dict[str, Any], drainer: Drainer) -> None:
    if params["state"] == "drained":
        limits = (params["wait_for_jobs"], params["timeout"], params["claims_timeout"])
        drainer.drain(Wish(_rdma_users.consent(params), *limits))
    elif params["state"] == "fenced":
        drainer.put_up()
    elif params["state"] == "released":
        drainer.take_down()
    else:
        drainer.try_out()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "state": {
                "type": "str",
                "choices": ["drained", "fenced", "released", "tried"],
                "default": "drained",
            },
            "fence": {"type": "str", "choices": list(fence.FENCES), "default": fence.CORDON},
            "wait_for_jobs": {"type": "int", "default": 0},
            "evict_jobs": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 900},
            "claims_timeout": {"type": "int", "default": 300},
            "grace_period": {"type": "int"},
            **_rdma_users.OPTIONS,
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    params, drainer, failed = module.params, None, None
    try:
        _module.prepare(module, _kube.LIBRARIES)
        bounds.require_numbers(
            params, wait_for_jobs=(0, 7 * _DAY), timeout=(1, _DAY), claims_timeout=(1, 3600)
        )
        if params["grace_period"] is not None:
            bounds.require_numbers(params, grace_period=(1, _DAY))
        cluster = _kube.connect(module)
        drainer = Drainer(
            cluster,
            params["nodes"],
            _rdma_users.scope(params, cluster),
            params["fence"],
            grace=params["grace_period"],
            dry_run=module.check_mode,
            tell=news.teller(),
        )
        _act(params, drainer)
    except RdmaError as error:
        failed = error
    result = {}
    if drainer:
        result = _rdma_users.drained(params["state"], drainer.done, _rdma_users.consent(params))
        result["calls"] = cluster.calls
        for warning in _rdma_users.warnings(drainer.done, params["fence"]):
            module.warn(warning)
    if not module._diff:
        result.pop("diff", None)
    if failed is not None:
        _module.fail(module, failed, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
