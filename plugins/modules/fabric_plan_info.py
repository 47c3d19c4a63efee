#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_plan_info
short_description: Tell who probes whom on the RDMA network
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes the list of pairs for P(rdma.k8s.fabric_probe#module) of every host, once, on the controller, from what
    P(rdma.k8s.ipvlan_child#module) and the listeners registered on the hosts.
  - On each rail the nodes stand in a ring whose order follows from a seed. Each probes the next node and the one behind
    it, and is probed by them. So the work of a node does not grow with the number of nodes, a node at fault is seen by
    up to four others, and the same seed gives the same pairs again.
extends_documentation_fragment:
  - rdma.k8s.attributes.controller
options:
  hosts:
    description:
      - The hosts to plan for.
      - Without it all hosts of the play.
    type: list
    elements: str
  children:
    description: Name of the variable in which the task with P(rdma.k8s.ipvlan_child#module) registered its result.
    type: str
    default: rdma_k8s_children
  listeners:
    description:
      - Name of the variable in which the task with P(rdma.k8s.fabric_probe#module) and C(role=listen) registered its
        result.
    type: str
    default: rdma_k8s_listen
  mode:
    description: V(ring) for the ring, V(all) for all pairs of each rail, which grows with the square of the nodes.
    type: str
    choices: [ring, all]
    default: ring
  seed:
    description: Fixes the order in the ring.
    type: int
    default: 0
  rdma_timeout:
    description:
      - The limit of each ping-pong in seconds, as it will be given to P(rdma.k8s.fabric_probe#module), for RV(seconds).
      - V(0) when there will be none.
    type: float
    default: 15
seealso:
  - module: rdma.k8s.fabric_probe
"""

EXAMPLES = r"""
- name: Plan who probes whom
  rdma.k8s.fabric_plan_info:
    seed: 7
  run_once: true
  register: plan
"""

RETURN = r"""
pairs:
  description: The pairs of each host, as O(rdma.k8s.fabric_probe#module:pairs) takes them.
  returned: success
  type: dict
  sample:
    gpu-01:
      - nic: rdma0
        index: 0
        address: 10.208.13.19
        mtu: 4220
        peer: gpu-02
        peer_address: 10.208.13.20
        silent: ""
count:
  description: Number of all pairs.
  returned: success
  type: int
  sample: 128
mode:
  description: As O(mode).
  returned: success
  type: str
  sample: ring
seed:
  description: As O(seed).
  returned: success
  type: int
  sample: 0
seconds:
  description:
    - After so many seconds the host with the most pairs has an answer, or none, to each probe. What it takes to reach
      the host and to start the module comes on top.
    - This is for C(count) and C(timeout) as they are without being given.
  returned: success
  type: int
  sample: 18
alone:
  description: Hosts with NICs whose rail has no other host, so that nobody can probe them.
  returned: success
  type: dict
  sample: {gpu-01: [3]}
"""
