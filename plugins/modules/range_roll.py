#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: range_roll
short_description: Change the child range of DRANET over many nodes
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Plans a change of the child range, carries it out under load, resumes it, aborts it, or takes it back. The workloads
    that use RDMA are drained through the eviction API, all others stay.
  - One task on the controller works on all nodes at once and shows what happens while it runs. What it did so far is
    written on the nodes, in a ConfigMap and in a Lease, so that whoever comes next finds it and goes on, whatever
    happened to the controller in the meantime.
  - With O(strategy=drain_all) no node gets the new range before all nodes are drained, and no node is released before
    all of them are proven, so that no job ever has pods in both ranges.
  - The range is an option of the provider of this collection when there is one, else of DRANET.
extends_documentation_fragment:
  - rdma.k8s.attributes.controller
  - rdma.k8s.kubernetes
options:
  state:
    description:
      - V(planned) makes the plan and tells what it would disturb. Nothing is changed.
      - V(applied) carries the plan out; a roll of the same plan that is not over goes on.
      - V(resumed) goes on with the roll that is not over.
      - V(aborted) stops it for good. Before the first node was changed all nodes are released; afterwards those stay
        fenced that are not proven.
      - V(rolled_back) carries out the plan that takes a roll back, over the nodes that it reached.
      - V(status) tells how far a roll is.
      - V(applied), V(resumed) and V(rolled_back) fail when the roll stopped by itself before its end.
    type: str
    choices: [planned, applied, resumed, aborted, rolled_back, status]
    default: planned
  kind:
    description:
      - What is changed. V(range) is the child range.
      - V(netns_mode) is the namespace mode of RDMA, V(oca_network) the RDMA network of the Oracle Cloud Agent. Both are
        settings of the nodes, which the node agent changes; it must be deployed in the mode C(write). The first one may
        boot the nodes.
    type: str
    choices: [range, netns_mode, oca_network]
    default: range
  child_range:
    description: The range that the nodes are to offer. Needed for O(state=planned) and O(state=applied).
    type: str
  value:
    description: The same of another O(kind), such as V(exclusive) or V(10.224.0.0/12).
    type: str
  agent_namespace:
    description: Where the node agent runs.
    type: str
    default: kube-system
  node_options:
    description: Further options of the step on the node, as M(rdma.k8s.netns_mode) or M(rdma.k8s.oca_config) has them.
    type: dict
    default: {}
  old_range:
    description: The range that they offer now. Without it the one that the driver is told.
    type: str
  roll:
    description:
      - Name of a roll, as RV(roll) told it. Without it the roll that is not over, else the latest.
      - With O(state=applied) the stored roll of this name is carried out instead of a plan made from the other options.
    type: str
  nodes:
    description: The nodes. Without it all that have a pod of the driver.
    type: list
    elements: str
    default: []
  strategy:
    description:
      - V(drain_all) drains all nodes, changes them in batches, and releases all of them.
      - V(rolling) takes each node through all steps within the budget. While it runs the nodes offer two ranges, which
        do not reach each other; it is for jobs that stay on one node.
    type: str
    choices: [drain_all, rolling]
    default: drain_all
  canary:
    description: How many nodes come first, one by one. Without it two when there are two blocks, else one.
    type: int
  blocks:
    description: Network block of each node, by its name. Nodes of one block come together.
    type: dict
    default: {}
  budget:
    description: Nodes that may be under change at once, outages that others made included; a number, or a share as
      V(10%).
    type: str
    default: "1"
  min_one:
    description: A share that comes to less than one node means one.
    type: bool
    default: false
  fence:
    description:
      - V(cordon) keeps all new pods away from the nodes.
      - V(taint) taints their RDMA devices by a DeviceTaintRule, which only keeps pods with claims away. The API server
        must serve that kind.
    type: str
    choices: [cordon, taint]
    default: cordon
  evict_ownerless:
    description: Evict pods that no controller brings back.
    type: bool
    default: false
  evict_host_network:
    description: Evict pods that open the RDMA devices of the host without a claim or a resource.
    type: bool
    default: false
  evict_jobs:
    description: Evict pods of jobs that still run when O(wait_for_jobs) is over. Otherwise their node is blocked.
    type: bool
    default: true
  wait_for_jobs:
    description: Seconds for which the end of jobs is waited for, before anything is evicted.
    type: int
    default: 0
  limits:
    description: Seconds that a node may stay in a state, by the name of the state, such as C(Draining).
    type: dict
    default: {}
  max_consecutive_failed:
    description: The roll is aborted when so many nodes in a row failed.
    type: int
    default: 2
  max_failed_percent:
    description: The roll is aborted when more than this share of the nodes failed.
    type: int
    default: 10
  max_blocked:
    description: The roll pauses when more nodes than this are blocked.
    type: int
    default: 3
  release_blocked:
    description: Release a node that got blocked, when nothing was changed there yet.
    type: bool
    default: true
  accept_problems:
    description: Carry out a plan although RV(problems) is not empty.
    type: bool
    default: false
  reason:
    description: Why the roll is aborted, for those who look at it later.
    type: str
    default: ""
  resources:
    description: Extended resources that count as RDMA, beside those that the cluster tells; V(*) stands for anything.
    type: list
    elements: str
    default: []
  networks:
    description: Networks (C(namespace/name)) that count as RDMA, beside those that the cluster tells.
    type: list
    elements: str
    default: []
  namespace:
    description: Where the ConfigMaps and the Lease of rolls are.
    type: str
    default: kube-system
  driver_namespace:
    description: Where the DaemonSets of the driver are.
    type: str
    default: kube-system
  daemonsets:
    description: Names of the DaemonSets whose option is the range. Without it the provider, else DRANET.
    type: list
    elements: str
    default: []
  prefix:
    description: Prefix of the annotations and the label on nodes.
    type: str
    default: rdma-k8s/
  proof_image:
    description:
      - Image of this collection. With it each node is proven by a claim, as M(rdma.k8s.dranet_canary) does, whose child
        must reach the child of a claim on a node that was proven before.
      - Without it a node is proven by its driver pod and by what its devices say.
      - What could not be proven, and why, is in RV(status) and RV(summary).
    type: str
    default: ""
  proof_namespace:
    description: Where the pods and the claim of the proof are made.
    type: str
    default: kube-system
  proof_device_class:
    description: DeviceClass of the claim.
    type: str
    default: rdma-nic
  proof_pull_policy:
    description: When the node pulls the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  proof_expect:
    description:
      - V(child) expects an IPvlan child in the new range, V(refused) a driver without children to refuse.
      - With V(refused) no node can be shown to reach another one, which is told.
    type: str
    choices: [child, refused]
    default: child
  proof_ready:
    description: Claim only a NIC that the provider says it can serve.
    type: bool
    default: true
  proof_timeout:
    description: Seconds that the pod of the proof may take.
    type: float
    default: 120
  max_runtime:
    description:
      - Seconds after which the roll pauses, to be resumed by another task. 0 for no limit.
      - It is what ends a wait for others, such as for a node that somebody leaves cordoned while the budget is 1.
    type: float
    default: 0
  workers:
    description: Nodes on which this task works at the same time. It bounds calls, not the budget.
    type: int
    default: 8
  lease_duration:
    description: Seconds after which a controller that died may be replaced by another one.
    type: float
    default: 60
  force_unlock:
    description: Take the lease at once. Only for a holder that is known to be dead.
    type: bool
    default: false
  wait_for_lease:
    description: Wait until the lease of a controller that died has expired.
    type: bool
    default: true
  show:
    description: Show what happens.
    type: bool
    default: true
notes:
  - A task that is interrupted (SIGINT, SIGTERM) ends the steps under way, pauses the roll and gives the lease back.
  - The user of the kubeconfig needs the rights that C(docs/howto/range-change.md) lists.
attributes:
  check_mode:
    details: The plan is made, nothing is changed.
  diff_mode:
    details: The result tells the state of each node.
seealso:
  - module: rdma.k8s.child_range_check
  - module: rdma.k8s.drain
  - module: rdma.k8s.workload_info
"""

EXAMPLES = r"""
- name: Show what a change would disturb
  rdma.k8s.range_roll:
    child_range: 172.16.0.0/12
  delegate_to: localhost
  run_once: true

- name: Change the range, ten nodes at once
  rdma.k8s.range_roll:
    state: applied
    child_range: 172.16.0.0/12
    budget: 10
    wait_for_jobs: 3600
    proof_image: registry.example.com/rdma-k8s:0.1.0
  delegate_to: localhost
  run_once: true
  register: roll

- name: Bring all nodes to exclusive RDMA namespaces, and boot those that need it
  rdma.k8s.range_roll:
    state: applied
    kind: netns_mode
    value: exclusive
    budget: 10%
  delegate_to: localhost
  run_once: true

- name: Take it back
  rdma.k8s.range_roll:
    state: rolled_back
    roll: "{{ roll.roll }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
roll:
  description: Name of the roll, the hash of its plan.
  returned: success
  type: str
  sample: 4f0cee20c5d39a3e
parent:
  description: Name of the roll that it takes back; empty when it takes back none.
  returned: when O(state) is not V(planned)
  type: str
  sample: ""
roll_phase:
  description: C(Planned), C(Draining), C(Canary), C(Rolling), C(Releasing), C(RollingBack), C(Paused), C(Aborted),
    C(RolledBack) or C(Complete).
  returned: success
  type: str
  sample: Complete
exit_code:
  description: 0 when the roll ended well, 3 when it is not over, 4 when it was aborted, 2 after an error.
  returned: always
  type: int
  sample: 0
reason:
  description: Why it paused or was aborted, or for whom it waits.
  returned: when O(state) is not V(planned)
  type: str
  sample: ""
stopped:
  description: It paused because it was told to, or because O(max_runtime) was over.
  returned: when a roll was carried out
  type: bool
  sample: false
take_back:
  description: It was aborted at its canary, so that taking it back touches no other node.
  returned: when a roll was carried out
  type: bool
  sample: false
unrestored:
  description: Nodes whose driver pods are still of the former template. Because of them the update strategy of the
    driver was left at OnDelete.
  returned: when a roll was carried out
  type: list
  elements: str
  sample: []
plan:
  description: The plan as a table, with what each strategy would disturb.
  returned: when O(state) is V(planned) or V(applied), and a plan was made
  type: dict
  sample: {roll: 4f0cee20c5d39a3e, chosen: drain_all, disruptions: [], nodes: [], problems: []}
problems:
  description: What stands in the way of the plan.
  returned: when a plan was made
  type: list
  elements: str
  sample: []
status:
  description: How far the roll is, with the state of each node, the estimated time that is left, and under C(notes)
    what proofs could not prove, with the number of nodes.
  returned: when O(state) is not V(planned)
  type: dict
  sample: {roll: 4f0cee20c5d39a3e, phase: Complete, percent: 100, counts: {Done: 4}, left: null, nodes: [], notes: {}}
summary:
  description: The plan or the status as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["4f0cee20c5d39a3e: Complete, 100 %, for 4m"]
calls:
  description: Number of requests to the API server.
  returned: success
  type: int
  sample: 108
code:
  description: Code of the error.
  returned: failure
  type: str
  sample: roll_locked
"""
