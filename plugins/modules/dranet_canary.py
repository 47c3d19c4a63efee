#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dranet_canary
short_description: Prove with one claim that a NIC stays on its host
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Claims one free RDMA NIC for a pod, looks from inside the pod and from the host, and removes all that it made.
  - Fails when the NIC left its host, or when the outcome is not the one of O(expect).
  - Nothing is done in check mode.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  namespace:
    description: Where the pods and the claim are made.
    type: str
    default: kube-system
  image:
    description: Image of this collection, for both pods.
    type: str
    required: true
  pull_policy:
    description: When the node pulls the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  device_class:
    description: DeviceClass of the claim.
    type: str
    default: rdma-nic
  nodes:
    description: Nodes on which the NIC may be; the first one that has a free NIC is taken. Without it, any node.
    type: list
    elements: str
    default: []
  nic:
    description: The NIC. Without it, the first free one.
    type: str
  ready:
    description: Take only a NIC that the provider says it can serve.
    type: bool
    default: true
  expect:
    description:
      - V(child) expects an IPvlan child in the pod.
      - V(refused) expects a driver without children to refuse a claim that asks for one.
    type: str
    choices: [child, refused]
    default: child
  child_range:
    description: The range in which the child must have its address. Without it, any address will do.
    type: str
  timeout:
    description: Seconds that the pod may take to run or to be refused; the look at the host gets as much.
    type: float
    default: 120
attributes:
  check_mode:
    support: partial
    details: It chooses a NIC and ends.
  diff_mode:
    details: What it makes, it removes.
  platform:
    platforms: all
seealso:
  - module: rdma.k8s.dranet_check
"""

EXAMPLES = r"""
- name: Prove that claims leave the NICs where they are
  rdma.k8s.dranet_canary:
    image: registry.example.com/rdma-k8s:0.1.0
    child_range: 10.208.0.0/12
  delegate_to: localhost
"""

RETURN = r"""
node:
  description: The node of the NIC.
  returned: success
  type: str
  sample: n1
nic:
  description: The NIC.
  returned: success
  type: str
  sample: rdma0
child:
  description: What the pod had; null when it did not run.
  returned: success
  type: dict
  sample: {address: 10.208.13.19, kind: ipvlan, mac: "02:00:00:01:00:01", mtu: 4220, name: rdma0, up: true}
parent:
  description: What was on the host meanwhile.
  returned: success
  type: dict
  sample: {address: 10.224.13.19, kind: "", mac: "02:00:00:01:00:01", mtu: 4220, name: rdma0, up: true}
refusal:
  description: The event with which the claim was refused; empty when it was not.
  returned: success
  type: str
  sample: ""
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import canary_run, collect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import canary, child_range, dranet_wish


def _prove(params: dict[str, Any], cluster: Cluster, check_mode: bool) -> dict[str, Any]:
    bounds.require_numbers(params, timeout=(1, 3600))
    wanted = child_range.validate(params["child_range"]) if params["child_range"] else None
    snapshot = collect.collect(LiveSource(cluster), cluster.server, ("nodes", "dra"))
    target = canary.choose(snapshot, params["nodes"], params["nic"] or "", params["ready"])
    result: dict[str, Any] = {"node": target.node, "nic": target.nic}
    if check_mode:
        return {**result, "skipped": True}
    trial = canary.Trial(
        target,
        params["namespace"],
        params["device_class"],
        params["image"],
        params["pull_policy"],
        params["expect"],
    )
    seen = canary_run.run(cluster, trial, params["timeout"])
    problems = canary.judge(trial, seen, wanted)
    result.update(child=seen.child, parent=seen.parent, refusal=seen.refusal)
    if problems:
        first = problems[0]
        raise RdmaError(first.code, " ".join(map(str, problems)), **result)
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "default": "kube-system"},
            "image": {"type": "str", "required": True},
            "pull_policy": {
                "type": "str",
                "choices": list(dranet_wish.PULL_POLICIES),
                "default": "IfNotPresent",
            },
            "device_class": {"type": "str", "default": "rdma-nic"},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "nic": {"type": "str"},
            "ready": {"type": "bool", "default": True},
            "expect": {"type": "str", "choices": list(canary.EXPECTATIONS), "default": "child"},
            "child_range": {"type": "str"},
            "timeout": {"type": "float", "default": 120},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    params = module.params
    _module.run(module, lambda: _prove(params, _kube.connect(module), module.check_mode), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
