#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: validate
short_description: Judge the RDMA side of a fleet
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Runs the catalogue of checks over the snapshots of all nodes, once, on the controller. Questions between nodes (one
    subnet, unique children, the odd one out) are answered in the same call.
  - A node without a snapshot is judged V(unknown) in every check; it never disappears from the result.
  - Takes the snapshots from what P(rdma.k8s.node_info#module) registered on the hosts of the play, or from a directory
    of recorded snapshots.
extends_documentation_fragment:
  - rdma.k8s.attributes.controller
options:
  hosts:
    description:
      - The hosts to judge. Without it all hosts of the play, also those that could not be reached.
      - Mutually exclusive with O(snapshots).
    type: list
    elements: str
  variable:
    description: Name of the variable in which the task with P(rdma.k8s.node_info#module) registered its result.
    type: str
    default: rdma_k8s_node
  snapshots:
    description:
      - Directory of recorded snapshots (one file per node), or one such file.
      - Mutually exclusive with O(hosts).
    type: path
  cluster:
    description:
      - What the API of the cluster told, the value RV(rdma.k8s.cluster_info#module:snapshot). The checks that judge a
        cluster run then, and the cluster has a row of its own in the reports.
      - Without it they do not run, unless a directory of O(snapshots) holds a C(cluster.json).
      - Mutually exclusive with O(cluster_file).
    type: dict
  cluster_file:
    description: The same in a file, as P(rdma.k8s.cluster_info#module) writes it.
    type: path
  proof:
    description:
      - Judge a fabric proof. Step of the proof (V(children), V(probes), V(cleanup)) to the name of the variable in
        which its task registered its result on the hosts.
      - Mutually exclusive with O(snapshots).
    type: dict
    default: {}
  pods:
    description:
      - Judge running pods, too. What a task with P(rdma.k8s.pod_rdma_info#module) or
        P(rdma.k8s.pod_fabric_probe#module) registered.
      - Without a cluster only the checks of these records judge one.
      - With the result of the latter and O(dest), the matrix of the rails is written to C(pod-fabric.json) beside it.
    type: dict
    default: {}
  policy:
    description:
      - Settings of the policy, laid over those of O(policy_file). What is not set has the default of a stock OKE
        cluster.
      - A setting that does not exist is refused. See the policy reference in the documentation of the collection.
    type: dict
    default: {}
  policy_file:
    description: YAML file with the policy.
    type: path
  input_only:
    description: Only check the policy, judge nothing. Use it before nodes are asked, so that a mistake costs no time.
    type: bool
    default: false
  dest:
    description: Where to write the result document (JSON), on the controller. The file is written atomically.
    type: path
  record:
    description:
      - Directory in which to record the snapshots, one file per node, on the controller.
      - Cloud identifiers are shortened and values that look like secrets are removed.
    type: path
  threshold:
    description: The lowest severity whose failures count in RV(exit_code).
    type: str
    choices: [critical, error, warning, info]
    default: error
  strict:
    description: Whether V(unknown) results count in RV(exit_code).
    type: bool
    default: false
  show:
    description: Whether to print the summary.
    type: bool
    default: true
attributes:
  check_mode:
    details: O(dest) and O(record) are written in C(check_mode) too, since they are the result.
seealso:
  - module: rdma.k8s.node_info
  - module: rdma.k8s.cluster_info
"""

EXAMPLES = r"""
- name: Gather one snapshot of each node
  rdma.k8s.node_info:
    layout: compact
  register: rdma_k8s_node
  failed_when: false
  ignore_unreachable: true

- name: Judge all of them
  rdma.k8s.validate:
    policy:
      child_range: 10.208.0.0/12
      pod_cidrs: [10.244.0.0/16]
    dest: build/report/result.json
  run_once: true

- name: Judge a recorded fleet
  rdma.k8s.validate:
    snapshots: examples/fleet
    policy_file: examples/policy.yml

- name: Read the cluster
  rdma.k8s.cluster_info:
    context: training
  delegate_to: localhost
  run_once: true
  register: rdma_k8s_cluster

- name: Judge the nodes and the cluster that they are in
  rdma.k8s.validate:
    cluster: "{{ rdma_k8s_cluster.snapshot }}"
  run_once: true
"""

RETURN = r"""
exit_code:
  description:
    - V(0) nothing counts, V(3) something is unknown (with O(strict)), V(4) a failure at or above O(threshold) is not
      waived.
  returned: unless O(input_only)
  type: int
  sample: 4
counts:
  description: Number of results by status, and of those that are waived.
  returned: unless O(input_only)
  type: dict
  sample: {pass: 410, fail: 3, warn: 1, skip: 22, unknown: 0, waived: 1}
nodes:
  description: Number of nodes that were judged.
  returned: unless O(input_only)
  type: int
  sample: 12
summary:
  description: The summary as lines of at most 100 columns.
  returned: unless O(input_only)
  type: list
  elements: str
  sample: ["12 nodes, 55 checks, target oke_dranet, child range 10.208.0.0/12"]
fabric:
  description:
    - What the fabric proof showed. Number of pairs, tests that failed, pairs that work one way only, NICs that are cut
      off by rail, round trips by rail, node and peer in microseconds.
    - With O(dest), it is also written to C(fabric.json) in the same directory.
  returned: with O(proof)
  type: dict
  sample: {pairs: 8, failed: [], one_way: [], cut_off: {}, latency: []}
pod_fabric:
  description:
    - The matrix of the rails between pods, as P(rdma.k8s.pod_fabric_probe#module) returned it.
    - With O(dest), it is also written to C(pod-fabric.json) in the same directory.
  returned: with O(pods) that have one
  type: dict
  sample: {pairs: 2, rails: [], failed: [], missing: {}}
dest:
  description: The file with the result document.
  returned: when O(dest) is given
  type: str
  sample: build/report/result.json
recorded:
  description: The files with the recorded snapshots.
  returned: when O(record) is given
  type: list
  elements: str
  sample: [recorded/gpu-01.json]
child_range:
  description: The child range of the policy.
  returned: with O(input_only)
  type: str
  sample: 10.208.0.0/12
checks:
  description: Ids of the checks that the policy selects.
  returned: with O(input_only)
  type: list
  elements: str
  sample: [RDMA-IMDS-001, RDMA-NODE-001]
"""
