#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_rdma_info
short_description: Look into running pods of Spiderpool and SR-IOV
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Runs a small program in each pod that tells, in one line of JSON, what the pod has of its networks and of RDMA.
    That is judged here by fourteen predicates, P1 to P14.
  - The predicates look at the number of interfaces, addresses and prefixes, rules and tables, the default route,
    RDMA devices and their isolation, GIDs, GUIDs, device files, locked memory, MTU, InfiniBand, and the library of the
    image.
  - What cannot be read makes its predicate V(unknown) with the reason. It is never taken for good.
  - The program is for a POSIX shell and changes nothing. It uses C(ip), C(ls), C(ibv_devices) and C(ibv_devinfo) where
    the image has them, and no Python.
  - The user needs to get and list pods, and to get and create C(pods/exec), in O(namespace). Where SpiderIPPools and
    SriovNetworkNodeStates may be listed, addresses are compared with the pools, and MTUs with those of the physical
    functions; else these predicates are V(unknown).
  - The module does not fail when a pod lacks something; see RV(status).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  namespace:
    description: Namespace of the pods.
    type: str
    required: true
  names:
    description:
      - Names of the pods.
      - Mutually exclusive with O(label_selector).
    type: list
    elements: str
    default: []
  label_selector:
    description:
      - Labels of the pods, such as C(app=rdma-tools). Without it and without O(names) all pods of the namespace.
    type: str
    default: ''
  container:
    description:
      - The container that is looked into. Without it the one that the annotation
        C(kubectl.kubernetes.io/default-container) names, else the first.
    type: str
    default: ''
  nics:
    description: How many interfaces each pod should have beside the first. Without it as many as Multus says it made.
    type: int
  netns_mode:
    description:
      - The RDMA namespace mode of the nodes. Without it each pod tells that of its own node. In V(shared) mode P6 is
        skipped.
    type: str
    choices: [exclusive, shared]
  parallel:
    description: How many pods are looked into at the same time, 1 to 100.
    type: int
    default: 10
  timeout:
    description: Seconds for one pod.
    type: float
    default: 30
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.pod_fabric_probe
  - module: rdma.k8s.validate
"""

EXAMPLES = r"""
- name: Look into the pods of the test DaemonSet
  rdma.k8s.pod_rdma_info:
    namespace: rdma-test
    label_selector: app=rdma-tools
    nics: 8
  delegate_to: localhost
  run_once: true
  register: pods

- name: Stop when a pod is not right
  ansible.builtin.assert:
    that: pods.status == 'pass'
    fail_msg: "{{ pods.problems | join(' ') }}"

- name: Which GID index NCCL needs in one pod
  rdma.k8s.pod_rdma_info:
    namespace: training
    names: [worker-0]
  delegate_to: localhost
  register: worker

- name: Show it
  ansible.builtin.debug:
    msg: "{{ worker.pods[0].gid_index }}"
"""

RETURN = r"""
status:
  description: The worst of all pods. V(fail), V(warn), V(unknown), V(pass), or V(skip).
  returned: success
  type: str
  sample: pass
problems:
  description: What is wrong or not known, in sentences with the pod and the predicate.
  returned: success
  type: list
  elements: str
  sample: ["rdma-test/tools-x7 P7: net2: no device has a RoCE v2 entry for 172.16.12.10/24 on this interface."]
counts:
  description: How many answers of all pods have each status.
  returned: success
  type: dict
  sample: {pass: 24, fail: 1, warn: 0, skip: 4, unknown: 1}
pods:
  description: The pods.
  returned: success
  type: list
  elements: dict
  contains:
    namespace:
      description: The namespace.
      type: str
      returned: always
    name:
      description: The pod.
      type: str
      returned: always
    node:
      description: The node that it runs on.
      type: str
      returned: always
    container:
      description: The container that was looked into.
      type: str
      returned: always
    privileged:
      description: Whether that container is privileged. It sees more than others then.
      type: bool
      returned: always
    status:
      description: The worst of its answers.
      type: str
      returned: always
    reason:
      description: Why the pod told nothing; empty when it did.
      type: str
      returned: always
    predicates:
      description:
        - The answers, each with C(predicate), C(title), C(status), C(message), C(hint) and C(issues). The latter have a
          stable C(code), the place C(at), C(severity) and C(message).
      type: list
      elements: dict
      returned: always
    evidence:
      description: What the pod told; null when it told nothing. C(unread) has the reason for each part that is missing.
      type: dict
      returned: always
    gid_index:
      description: By device the index of the GID that applications need, such as for C(NCCL_IB_GID_INDEX).
      type: dict
      returned: always
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _pods
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import pod_looks
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import FAIL, STATUSES, UNKNOWN, WARN
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_predicates


def _look(module: AnsibleModule) -> dict[str, Any]:
    wish = _pods.wish_of(module.params)
    found = pod_looks.look(_kube.connect(module), wish)
    answers = [(entry.ref, answer) for entry in found for answer in entry.answers]
    return {
        "status": pod_predicates.worst([answer for _ref, answer in answers]),
        "problems": pod_looks.problems(found, (FAIL, WARN, UNKNOWN)),
        "counts": {
            status: len([answer for _ref, answer in answers if answer.status == status])
            for status in STATUSES
        },
        "pods": [entry.to_dict() for entry in found],
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_pods.OPTIONS,
            "nics": {"type": "int"},
            **_kube.OPTIONS,
        },
        mutually_exclusive=[("names", "label_selector")],
        supports_check_mode=True,
    )
    _module.run(module, lambda: _look(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
