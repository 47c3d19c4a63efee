#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_info
short_description: Tell which pods use RDMA, and why
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Lists the pods of nodes that use RDMA. A pod does when one of its claims has devices of O(driver), when one of its
    containers, init containers or sidecars asks for one of O(resources), when an annotation puts it on an RDMA network,
    or when it is privileged or on the host's network and mounts C(/dev/infiniband).
  - Says of each what M(rdma.k8s.drain) would do with it, so that what stands in the way of a drain is known before.
  - Pods that are over and static pods are no users.
  - Nothing in the cluster is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
  - rdma.k8s.rdma_users
options:
  nodes:
    description: Names of the Node objects. Without it all nodes.
    type: list
    elements: str
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.drain
"""

EXAMPLES = r"""
- name: Who uses RDMA on two nodes?
  rdma.k8s.workload_info:
    nodes: [gpu-01, gpu-02]
  delegate_to: localhost
  register: workload

- name: Stop when a drain could not work
  ansible.builtin.assert:
    that: workload.summary.blocking == 0
    fail_msg: "{{ workload.nodes | map(attribute='users') | flatten | selectattr('drain', 'eq', 'blocks') }}"
"""

RETURN = r"""
nodes:
  description: The nodes, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
      sample: gpu-01
    ready:
      description: Whether it is ready.
      type: bool
      returned: always
      sample: true
    unschedulable:
      description: Whether it is cordoned.
      type: bool
      returned: always
      sample: false
    users:
      description: Pods that use RDMA, by namespace and name.
      type: list
      elements: dict
      returned: always
      contains:
        namespace:
          description: Namespace of the pod.
          type: str
          returned: always
          sample: default
        name:
          description: Name of the pod.
          type: str
          returned: always
          sample: train-0
        uid:
          description: UID of the pod.
          type: str
          returned: always
          sample: 0d5c6f0e-5a0f-4a39-9f0a-6d1f8f3f3c11
        reason:
          description: The strongest reason, V(claim), V(resource), V(network) or V(host).
          type: str
          returned: always
          sample: claim
        uses:
          description: What it uses, for all reasons.
          type: str
          returned: always
          sample: default/train-0-rdma-x7k2p
        claims:
          description: Its claims with devices of the driver.
          type: list
          elements: str
          returned: always
          sample: [default/train-0-rdma-x7k2p]
        owner:
          description: The controller that made it; empty when there is none.
          type: str
          returned: always
          sample: Job default/train
        ends:
          description: Whether it ends by itself, because its containers are not started again.
          type: bool
          returned: always
          sample: true
        grace:
          description: Its grace period in seconds.
          type: int
          returned: always
          sample: 30
        drain:
          description: What a drain would make of it, V(evict), V(leaving), V(stays) or V(blocks).
          type: str
          returned: always
          sample: evict
        problem:
          description: Why it blocks a drain; empty when it does not.
          type: str
          returned: always
          sample: ""
    claims:
      description: Claims that have devices of the driver on the node.
      type: list
      elements: str
      returned: always
      sample: [default/train-0-rdma-x7k2p]
summary:
  description: How much there is of what.
  returned: success
  type: dict
  contains:
    nodes:
      description: Number of nodes.
      type: int
      returned: always
      sample: 2
    nodes_in_use:
      description: Number of nodes with users or claims.
      type: int
      returned: always
      sample: 1
    pods:
      description: Number of pods that use RDMA.
      type: int
      returned: always
      sample: 1
    owners:
      description: The controllers of these pods.
      type: list
      elements: str
      returned: always
      sample: [Job default/train]
    blocking:
      description: Number of pods that would block a drain.
      type: int
      returned: always
      sample: 0
calls:
  description: Number of requests to the API server.
  returned: success
  type: int
  sample: 7
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _rdma_users
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import rdma_users


def _read(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    cluster = _kube.connect(module)
    nodes = rdma_users.nodes(cluster, params["nodes"])
    looks = rdma_users.look(cluster, list(nodes), _rdma_users.scope(params, cluster))
    allowed = _rdma_users.consent(params)
    told = [_rdma_users.told(look, nodes[look.node], allowed) for look in looks]
    return {"nodes": told, "summary": _rdma_users.summary(told), "calls": cluster.calls}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str"},
            **_rdma_users.OPTIONS,
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _read(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
