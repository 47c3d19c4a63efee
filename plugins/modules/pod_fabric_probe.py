#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_fabric_probe
short_description: Prove that pods on different nodes reach each other, rail by rail
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Looks into running pods as P(rdma.k8s.pod_rdma_info#module) does, then runs RDMA tests between pods on different
    nodes, from C(net1) to C(net1), from C(net2) to C(net2), and so on.
  - Device, index of the GID and the address of the other pod on the same rail are said to the tools, never left to
    their guess.
  - Uses C(ib_read_lat) and C(ib_write_bw) where both images have them, else C(ibv_rc_pingpong), else C(rping). Without
    any of them a pair is V(unknown). The images need C(sh) and C(sleep), and no Python.
  - Tests of one pod never run at the same time. Each ends in time by itself, also when this module is killed.
  - The user needs to get and list pods, and to get and create C(pods/exec), in O(namespace).
  - The module does not fail when a test does; see RV(status).
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
    description: Labels of the pods. Without it and without O(names) all pods of the namespace.
    type: str
    default: ''
  container:
    description:
      - The container in which the tests run. Without it the one that the annotation
        C(kubectl.kubernetes.io/default-container) names, else the first.
    type: str
    default: ''
  netns_mode:
    description: The RDMA namespace mode of the nodes. Without it each pod tells that of its own node.
    type: str
    choices: [exclusive, shared]
  mode:
    description:
      - With V(ring) each pod talks to one other of its rail, in an order that O(seed) fixes. With V(all) it talks to
        every other one, which grows with the square of the pods.
    type: str
    choices: [ring, all]
    default: ring
  seed:
    description: Fixes the order in the ring.
    type: int
    default: 0
  tests:
    description: What is measured. Both stress the network; V(bandwidth) fills a rail for a moment.
    type: list
    elements: str
    choices: [latency, bandwidth]
    default: [latency, bandwidth]
  max_latency_us:
    description: A test with a larger latency fails. Without it any will do.
    type: float
  min_bandwidth_gbps:
    description: A test with a smaller bandwidth, in 10^9 bits per second, fails. Without it any will do.
    type: float
  parallel:
    description: How many tests run at the same time, 1 to 100.
    type: int
    default: 10
  timeout:
    description: Seconds for one test, and for the look into one pod.
    type: float
    default: 30
attributes:
  check_mode:
    support: partial
    details: Looks into the pods and plans; sends nothing. RV(results) is empty, and P14 is V(skip).
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.pod_rdma_info
  - module: rdma.k8s.validate
"""

EXAMPLES = r"""
- name: Prove the rails between the pods of the test DaemonSet
  rdma.k8s.pod_fabric_probe:
    namespace: rdma-test
    label_selector: app=rdma-tools
    min_bandwidth_gbps: 180
  delegate_to: localhost
  run_once: true
  register: proof

- name: Show the median of each rail
  ansible.builtin.debug:
    msg: "{{ proof.fabric.rails | items2dict(key_name='rail', value_name='median_bandwidth_gbps') }}"

- name: Stop when a rail is not good
  ansible.builtin.assert:
    that: proof.status == 'pass'
    fail_msg: "{{ proof.problems | join(' ') }}"
"""

RETURN = r"""
status:
  description: The worst of all tests. V(fail), V(unknown), V(pass), or V(skip) when nothing was tried.
  returned: success
  type: str
  sample: pass
problems:
  description: Tests that failed or could not be made, in sentences.
  returned: success
  type: list
  elements: str
  sample: ["rdma-test/tools-a to rdma-test/tools-b on net3 (latency): ib_read_lat ended with code 1: Failed status 12."]
fabric:
  description: The result as a matrix.
  returned: success
  type: dict
  contains:
    pairs:
      description: How many pairs there are.
      type: int
      returned: always
    rails:
      description:
        - One entry for each rail. C(rail), C(status), C(pairs), C(median_latency_us), C(median_bandwidth_gbps), and in
          C(cells) from pod to pod devices and GID indexes of both ends, address and figures.
      type: list
      elements: dict
      returned: always
    failed:
      description: The results that are not good, as in RV(results).
      type: list
      elements: dict
      returned: always
    missing:
      description: Rails of pods that could not be tested, with the reason, by pod.
      type: dict
      returned: always
  sample:
    pairs: 2
    rails:
      - rail: net1
        status: pass
        pairs: 2
        median_latency_us: 3.91
        median_bandwidth_gbps: 196.4
        cells: {}
    failed: []
    missing: {}
results:
  description: Every test, with its tool, devices, GID indexes, figures, status and reason.
  returned: success
  type: list
  elements: dict
  sample: []
plan:
  description: The pairs, in rounds in which no pod stands twice.
  returned: success
  type: list
  elements: list
  sample: [[{rail: net1, source: rdma-test/tools-a, target: rdma-test/tools-b}]]
pods:
  description: The pods as P(rdma.k8s.pod_rdma_info#module) returns them, with the answer P14.
  returned: success
  type: list
  elements: dict
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _pods
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import pod_looks, pod_traffic
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import SKIP
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_fabric


def _probe(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    wish = _pods.wish_of(params)
    traffic = pod_traffic.Wish(
        params["mode"],
        params["seed"],
        tuple(dict.fromkeys(params["tests"])),
        pod_fabric.Limits(params["max_latency_us"], params["min_bandwidth_gbps"]),
        params["parallel"],
        params["timeout"],
    )
    cluster = _kube.connect(module)
    found = pod_looks.look(cluster, wish)
    plan = pod_traffic.plan(found, traffic)
    results: list[pod_fabric.Result] = []
    if not module.check_mode:
        results = pod_traffic.run(cluster, found, plan, traffic)
        found = pod_traffic.with_traffic(found, results, plan)
    return {
        "status": SKIP if module.check_mode else pod_traffic.status(found),
        "problems": [] if module.check_mode else pod_traffic.problems(found, results, plan),
        "fabric": pod_traffic.summary(results, plan),
        "results": [result.to_dict() for result in results],
        "plan": [
            [{"rail": pair.source.nic, "source": pair.source.pod, "target": pair.target.pod} for pair in held]
            for held in plan.rounds
        ],
        "pods": [entry.to_dict() for entry in found],
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_pods.OPTIONS,
            "mode": {"type": "str", "choices": list(pod_fabric.MODES), "default": pod_fabric.RING},
            "seed": {"type": "int", "default": 0},
            "tests": {
                "type": "list",
                "elements": "str",
                "choices": ["latency", "bandwidth"],
                "default": ["latency", "bandwidth"],
            },
            "max_latency_us": {"type": "float"},
            "min_bandwidth_gbps": {"type": "float"},
            **_kube.OPTIONS,
        },
        mutually_exclusive=[("names", "label_selector")],
        supports_check_mode=True,
    )
    _module.run(module, lambda: _probe(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
