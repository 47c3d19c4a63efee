#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ack_verify
short_description: Wait until the device plugin serves all Lingjun nodes of ACK
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Looks at the DaemonSet of C(ack-rdma-device-plugin), at its pods and at what each Lingjun node offers of the RDMA
    resource, until nothing is wrong or the time is over. All Lingjun nodes must have a ready pod and the resource,
    allocatable as much as there is.
  - A good look is repeated after O(settle) seconds, because amounts of before can stand there for a while after a
    restart of a kubelet or of the plugin.
  - When it fails, the logs of the pods that are not ready, or whose nodes have nothing, are read, and lines that are
    known are explained. A log explains a failure, it never decides one.
  - Tokens prove that the plugin registered, not that a pod can use RDMA; P(rdma.k8s.ack_pod_test#module) tries that.
  - The user needs to get DaemonSets, to list pods, and to get C(pods/log) in O(namespace), and to list nodes.
  - Nothing in the cluster is changed. The module does not fail when it finds something wrong; see RV(status).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
options:
  daemonset:
    description: Name of the DaemonSet.
    type: str
    default: ack-rdma-dp-ds
  namespace:
    description: Its namespace.
    type: str
    default: kube-system
  resource_name:
    description: The resource, as the add-on was told to call it.
    type: str
    default: rdma/hca
  mode:
    description:
      - How the plugin is used. In the mode V(exclusive) a node has one token for each NIC, else 1000.
    type: str
    choices: [shared_host_network, shared, exclusive]
    default: shared_host_network
  expected:
    description: Tokens that a node must have. Another number is a warning.
    type: int
  timeout:
    description: Seconds to wait for a good state, 0 to 3600. With V(0) a state that is wrong is told at once.
    type: int
    default: 300
  settle:
    description: Seconds until a good look is repeated, 0 to 600. With V(0) one look is enough.
    type: int
    default: 20
  log_pods:
    description: The most pods whose logs are read, 0 to 50.
    type: int
    default: 5
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.ack_addon
  - module: rdma.k8s.ack_pod_test
"""

EXAMPLES = r"""
- name: Wait until every Lingjun node has RDMA
  rdma.k8s.ack_verify:
    kubeconfig: ack.kubeconfig
  delegate_to: localhost
  run_once: true
  register: plugin

- name: Stop when something is wrong
  ansible.builtin.assert:
    that: plugin.status != 'fail'
    fail_msg: "{{ plugin.problems | join(' ') }}"

- name: Look once at a plugin in exclusive mode with four NICs in a node
  rdma.k8s.ack_verify:
    mode: exclusive
    expected: 4
    timeout: 0
    settle: 0
"""

RETURN = r"""
status:
  description: V(fail) when pods on some node cannot get devices, V(warn), or V(ok).
  returned: success
  type: str
  sample: ok
problems:
  description: What is wrong, and what the logs say about it, in sentences.
  returned: success
  type: list
  elements: str
  sample: ["e01-cn-a1: no ready pod of the plugin runs there (expected one, found none)."]
reasons:
  description: What is wrong, for programs.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable name of the reason, such as V(ds-node-uncovered) or V(resource-allocatable-zero).
      type: str
      returned: always
    status:
      description: V(fail) or V(warn).
      type: str
      returned: always
    subject:
      description: The node; empty when it is about the DaemonSet.
      type: str
      returned: always
    message:
      description: The reason in words.
      type: str
      returned: always
    expected:
      description: What was expected.
      type: str
      returned: always
    observed:
      description: What was found.
      type: str
      returned: always
  sample: []
daemonset:
  description: The numbers of the status of the DaemonSet; null when there is none.
  returned: success
  type: dict
  sample: {generation: 1, observed: 1, desired: 2, ready: 2, available: 2, updated: 2, scheduled: 2, misscheduled: 0}
nodes:
  description: The Lingjun nodes, and other nodes that have the resource; null is an amount that is not told.
  returned: success
  type: list
  elements: dict
  sample: [{name: e01-cn-a1, capacity: 1000, allocatable: 1000}]
pods:
  description: The pods of the plugin.
  returned: success
  type: list
  elements: dict
  sample: [{name: ack-rdma-dp-ds-x, node: e01-cn-a1, ready: true, restarts: 0, state: running}]
logs:
  description: What the logs of failing pods say; RV(ignore:unread) has the reasons for logs that cannot be read.
  returned: success
  type: list
  elements: dict
  sample: []
waited:
  description: Seconds that it took.
  returned: success
  type: float
  sample: 20.3
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import ack_verify
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names, pod_test
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.manifest import require_name
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads.api_rules import require_resource


def _verify(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    bounds.require_numbers(params, timeout=(0, 3600), settle=(0, 600), log_pods=(0, 50))
    require_name(params["namespace"], "A namespace", label=True)
    require_name(params["daemonset"], "A DaemonSet")
    require_resource("The verification", "resource_name", params["resource_name"])
    wish = ack_verify.Wish(
        daemonset=params["daemonset"],
        namespace=params["namespace"],
        resource=params["resource_name"],
        rdma_mode=names.EXCLUSIVE if params["mode"] == pod_test.EXCLUSIVE else names.SHARED,
        expected=params["expected"],
        timeout=params["timeout"],
        settle=params["settle"],
        logs=params["log_pods"],
    )
    found = ack_verify.verify(_kube.connect(module), wish, tell=news.teller())
    look = found.look
    return {
        "status": found.status,
        "problems": found.sentences,
        "reasons": [reason._asdict() for reason in found.reasons],
        "daemonset": look.rollout._asdict() if look.rollout is not None else None,
        "nodes": [entry._asdict() for entry in look.nodes],
        "pods": [entry._asdict() for entry in look.pods],
        "logs": list(found.logs),
        "waited": found.waited,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "daemonset": {"type": "str", "default": "ack-rdma-dp-ds"},
            "namespace": {"type": "str", "default": "kube-system"},
            "resource_name": {"type": "str", "default": "rdma/hca"},
            "mode": {"type": "str", "choices": list(pod_test.MODES), "default": pod_test.SHARED_HOST_NETWORK},
            "expected": {"type": "int"},
            "timeout": {"type": "int", "default": 300},
            "settle": {"type": "int", "default": 20},
            "log_pods": {"type": "int", "default": 5},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _verify(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
