#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ack_pod_test
short_description: Try what a pod on Lingjun nodes of ACK gets
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Starts a Job on each of the nodes that asks for the RDMA resource as jobs of users do. Its container looks at
    itself and tells what it sees in one line of JSON, which is judged here. The Jobs are removed afterwards.
  - It looks at C(/dev/infiniband) (which files are there, and whether they may be opened), at the state of the ports of
    the pod's devices, at their GIDs of RoCE v2, at the limit of locked memory, at the capabilities IPC_LOCK and
    SYS_RESOURCE, at C(/dev/shm), and, where the pod has a network of its own, at IPv6 in it.
  - The container runs a program for a POSIX shell that starts no other program. Any image with a shell will do; the
    image of your own jobs tells most. It sends nothing over RDMA.
  - The line is read from the termination message of the container, and from its log when it is longer than 4096 bytes.
  - The user needs to create, list and delete Jobs, and to list pods in O(namespace). Where the pods are refused, events
    tell why when they may be listed.
  - In check mode the API server checks Jobs and pods, admission included, and nothing is made.
  - The module does not fail when a pod lacks something; see RV(status).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  nodes:
    description: Names of the nodes. Each gets a Job; 50 are there at the same time.
    type: list
    elements: str
    required: true
  image:
    description: Image with a POSIX shell C(sh).
    type: str
    required: true
  mode:
    description:
      - How the plugin is used. With V(shared_host_network) the pod is in the network of its node, else it has a network
        of its own, which needs a Lingjun compute network with IPv6.
    type: str
    choices: [shared_host_network, shared, exclusive]
    default: shared_host_network
  resource_name:
    description: The resource that the pod asks for.
    type: str
    default: rdma/hca
  amount:
    description: How much of it, 1 to 64. In exclusive mode the number of NICs; else 1 gives all of them.
    type: int
    default: 1
  namespace:
    description:
      - Namespace of the Jobs. It must allow the two capabilities and the network of the host, so the level of Pod
        Security must be C(privileged) there.
    type: str
    default: default
  shm_size:
    description: Size of the volume at C(/dev/shm). No memory of it is used.
    type: str
    default: 1Gi
  tolerations:
    description: Further tolerations. Those of the default taint of Lingjun nodes and of C(rdma.k8s/unverified) are
      always there.
    type: list
    elements: dict
    default: []
  pull_secrets:
    description: Names of Secrets of the namespace with credentials for the image.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that a Job may take, the pull of the image included, 10 to 3600.
    type: int
    default: 180
attributes:
  check_mode:
    support: partial
    details: Whether the API server takes the Jobs is checked. What the pods would see is not known.
  diff_mode:
    details: Nothing stays changed.
  platform:
    platforms: all
seealso:
  - module: rdma.k8s.ack_verify
"""

EXAMPLES = r"""
- name: Look at two nodes from the inside of a pod
  rdma.k8s.ack_pod_test:
    nodes: [e01-cn-a1, e01-cn-a2]
    image: registry.example.org/train:1
    namespace: training
  delegate_to: localhost
  run_once: true
  register: pods

- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ pods.problems }}"
"""

RETURN = r"""
status:
  description:
    - The worst of all nodes. V(fail), V(warn), V(unknown) when a pod did not tell, V(ok), or V(skip) in check mode.
  returned: success
  type: str
  sample: ok
problems:
  description: What is wrong, in sentences with the node.
  returned: success
  type: list
  elements: str
  sample: ["e01-cn-a1: No port of the pod's devices is active. Look at the links on the node."]
results:
  description: What each node showed.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: The node.
      type: str
      returned: always
    pod:
      description: Name that the pod had.
      type: str
      returned: always
    status:
      description: The verdict.
      type: str
      returned: always
    problems:
      description: What is wrong, each with C(code), C(status), C(message) and C(hint).
      type: list
      elements: dict
      returned: always
    evidence:
      description: What the container told, as it is.
      type: dict
      returned: always
  sample: []
left:
  description: Jobs and pods of the test that could not be removed. They remove themselves after five minutes.
  returned: success
  type: list
  elements: str
  sample: []
"""

import uuid
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import pod_jobs
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import pod_test


def _test(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    bounds.require_numbers(params, amount=(1, 64), timeout=(10, 3600))
    nodes = list(dict.fromkeys(params["nodes"]))
    test = pod_test.PodTest(
        image=params["image"],
        resource_name=params["resource_name"],
        mode=params["mode"],
        namespace=params["namespace"],
        tokens=params["amount"],
        shm=params["shm_size"],
        tolerations=params["tolerations"],
        pull_secrets=params["pull_secrets"],
        seconds=params["timeout"],
    )
    pod_test.require(test, nodes)
    cluster = _kube.connect(module)
    run = uuid.uuid4().hex[:8]
    if module.check_mode:
        pod_jobs.dry_run(cluster, test, nodes, run)
        return {"status": "skip", "problems": [], "results": [], "left": []}
    runner = pod_jobs.Runner(cluster, test, run)
    results = runner.results(nodes)
    for name in runner.left:
        module.warn("%s of the pod test is still there in namespace %s." % (name, test.namespace))
    return {**pod_jobs.told(results), "left": runner.left}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "image": {"type": "str", "required": True},
            "mode": {"type": "str", "choices": list(pod_test.MODES), "default": pod_test.SHARED_HOST_NETWORK},
            "resource_name": {"type": "str", "default": "rdma/hca"},
            "amount": {"type": "int", "default": 1},
            "namespace": {"type": "str", "default": "default"},
            "shm_size": {"type": "str", "default": "1Gi"},
            "tolerations": {"type": "list", "elements": "dict", "default": []},
            "pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "timeout": {"type": "int", "default": 180},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _test(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
