#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_node_state_info
short_description: How far the SR-IOV operator is on each node, and why it does not get on
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Looks at the SriovNetworkNodeStates beside what the SriovNetworkNodePolicies want of each node, and waits until all
    nodes are ready, through drain, reboot and return.
  - A node is ready when its state says C(Succeeded) without an error, nothing is wanted or under way (C(Idle) twice),
    each physical function has the number of virtual functions that the policies want, as number and as list, the node
    itself is ready, and its resources can be allocated. C(Succeeded) alone says nothing; a fresh state has it before
    any policy reached the node.
  - A good look must hold for O(settle) seconds, because states flip.
  - Between two looks the module watches the states, and asks for nothing.
  - While it waits it shows each change of a phase with the seconds since the first look; see O(show).
  - It ends early when each node that is left is stuck, and tells why; see RV(nodes).
  - The user needs to list nodes and, in the group C(sriovnetwork.openshift.io), to list SriovNetworkNodePolicies and
    SriovNetworkPoolConfigs, to list and watch SriovNetworkNodeStates, and to get SriovOperatorConfigs.
  - Nothing in the cluster is changed. The module does not fail when nodes are not ready; see RV(state).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  nodes:
    description:
      - Names of the nodes that must get ready.
      - Without it, all of which a policy wants something.
    type: list
    elements: str
    default: []
  resource_prefix:
    description: The prefix of the resources, C(sriov.resourcePrefix) of the chart of Spiderpool.
    type: str
    default: spidernet.io
  allocatable:
    description: Whether the resources must be allocatable on the nodes, too.
    type: bool
    default: true
  timeout:
    description: Seconds to wait, 0 to 86400. With V(0) there is one look.
    type: int
    default: 0
  settle:
    description: Seconds for which a good look must hold, 0 to 600. They count within O(timeout).
    type: int
    default: 10
  stuck_after:
    description:
      - Seconds without any change after which a node is stuck, 10 to 86400. A reboot of a large machine can take half
        an hour.
    type: int
    default: 1800
  show:
    description:
      - Whether to display which node comes into which phase while the module waits, which node is stuck, and each
        minute without a change how many nodes are in which phase.
      - A module can print nothing before its end, so this is done on the controller. It works for tasks that run
        there, as with C(delegate_to=localhost), without C(become), C(environment) and C(async), with the Python
        library C(kubernetes) for Ansible itself; with C(-v) Ansible tells when it cannot be done.
      - Elsewhere the phases are seen at the end, in RV(nodes).
    type: bool
    default: true
attributes:
  action:
    description: Has a corresponding action plugin, so that the work can be done on the controller.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: full
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.validate
  - module: rdma.k8s.rail_table
"""

EXAMPLES = r"""
- name: Wait for up to two hours until all nodes have their virtual functions
  rdma.k8s.sriov_node_state_info:
    timeout: 7200
  delegate_to: localhost
  run_once: true
  register: rails

- name: Stop with the reasons
  ansible.builtin.assert:
    that: rails.state == 'ready'
    fail_msg: "{{ rails.problems | join(' ') }}"

- name: Look once at two nodes
  rdma.k8s.sriov_node_state_info:
    nodes: [worker1, worker2]
  delegate_to: localhost
"""

RETURN = r"""
state:
  description:
    - V(ready) when all nodes are.
    - V(progress) when some node is under way, or may be, and the time is over.
    - V(failed) when none of the nodes that are left gets on, and the operator failed on one of them; V(stuck) when it
      failed on none.
    - V(missing) when no policy wants anything of any node.
  returned: success
  type: str
  sample: ready
settled:
  description: Whether the good look has held for O(settle) seconds.
  returned: success
  type: bool
  sample: true
problems:
  description: What is wrong, in sentences, of stuck nodes with what to do.
  returned: success
  type: list
  elements: str
  sample: ["worker2 cannot be drained and stays cordoned. Look for PodDisruptionBudgets without a disruption left."]
nodes:
  description: The nodes.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the node.
      type: str
      returned: always
      sample: worker1
    phase:
      description:
        - V(missing), V(waiting) for the operator, V(configuring), V(queued) for a drain, V(draining), V(drained),
          V(rebooting), V(back) after a reboot that this run saw, V(failed), V(registering) when only the resources are
          missing, or V(ready).
      type: str
      returned: always
      sample: draining
    reasons:
      description: The conditions that the node does not meet.
      type: list
      elements: str
      returned: always
      sample: ["the current state is 'Draining', not Idle"]
    stuck:
      description: Why the node does not get on, with C(code), C(message) and C(hint); null when it may.
      type: dict
      returned: always
      sample: null
    since:
      description: Seconds for which nothing has changed on the node, as far as this run saw.
      type: float
      returned: always
      sample: 12.5
    phases:
      description: The phases that this run saw, in order, with the seconds in each, C(phase) and C(seconds).
      type: list
      elements: dict
      returned: always
      sample: [{phase: queued, seconds: 41.2}, {phase: draining, seconds: 12.5}]
    boots:
      description: Reboots that this run saw.
      type: int
      returned: always
      sample: 1
history:
  description: When which node came into which phase, in seconds since the first look.
  returned: success
  type: list
  elements: dict
  sample: [{at: 0.0, node: worker1, phase: queued}, {at: 41.2, node: worker1, phase: draining}]
disable_drain:
  description: Whether the operator reboots nodes without a drain, which ends all that runs there; null when not told.
  returned: success
  type: bool
  sample: true
waited:
  description: Seconds that it took.
  returned: success
  type: float
  sample: 612.4
looks:
  description: How often the cluster was looked at.
  returned: success
  type: int
  sample: 23
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _sriov_states


def main() -> None:
    module = AnsibleModule(argument_spec=_sriov_states.SPEC, supports_check_mode=True)
    _module.run(module, lambda: _sriov_states.wait(module.params), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
