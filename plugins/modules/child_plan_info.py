#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: child_plan_info
short_description: The children of the RDMA NICs of a node or a fleet
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Derives, for each RDMA NIC, the parent address that the Oracle Cloud Agent gives and the child that the C(oke-rdma)
    profile gives in a pod, with its route, its rule and its ARP settings.
  - Looks at the node on which it runs, or at the nodes that O(nodes) or O(snapshot) describe.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
  - rdma.k8s.fleet
options:
  child_range:
    description: The child range.
    type: str
    default: 10.208.0.0/12
seealso:
  - module: rdma.k8s.child_range_check
"""

EXAMPLES = r"""
- name: See the children of this node
  rdma.k8s.child_plan_info:
  register: plan

- name: Plan two nodes that do not exist yet
  rdma.k8s.child_plan_info:
    nodes:
      - {name: n1, address: 10.140.77.19, subnet: 10.140.64.0/19, nics: 16}
      - {name: n2, address: 10.140.77.20, subnet: 10.140.64.0/19, nics: 16}
    child_range: 10.192.0.0/14
  delegate_to: localhost
"""

RETURN = r"""
nodes:
  description: The nodes in the order in which they were given.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the node.
      type: str
      returned: always
      sample: n1
    children:
      description: The NICs that have a child.
      type: list
      elements: dict
      returned: always
      contains:
        index:
          description: Index of the NIC.
          type: int
          returned: always
          sample: 15
        parent:
          description: Address of the NIC on the host.
          type: str
          returned: always
          sample: 10.225.237.19
        child:
          description: Address of the child with the length of the range.
          type: str
          returned: always
          sample: 10.209.237.19/12
        table:
          description: Route table of the child.
          type: int
          returned: always
          sample: 115
        route:
          description: The route of the child.
          type: dict
          returned: always
          sample: {destination: 10.208.0.0/12, scope: 253, source: 10.209.237.19, table: 115}
        rule:
          description: The rule of the child.
          type: dict
          returned: always
          sample: {priority: 32000, source: 10.209.237.19/32, table: 115}
        arp:
          description: ARP settings that the child takes over from the NIC; null when they are not known or not usable.
          type: dict
          returned: always
          sample: {arp_announce: 2, arp_ignore: 1}
    errors:
      description: The NICs that have no child, and why.
      type: list
      elements: dict
      returned: always
      contains:
        index:
          description: Index of the NIC.
          type: int
          returned: always
          sample: 8
        code:
          description: Stable identifier of the error.
          type: str
          returned: always
          sample: outside_child_range
        message:
          description: What is wrong and what to do.
          type: str
          returned: always
          sample: "The child of NIC index 8 with a /19 subnet lies outside the child range 10.192.0.0/16"
clashes:
  description: Addresses that several NICs would get.
  returned: success
  type: list
  elements: dict
  sample: [{child: 10.208.13.19, holders: ["n1 0", "n2 0"]}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _fleet, _module
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing, fleet


def main() -> None:
    module = AnsibleModule(
        argument_spec={"child_range": {"type": "str", "default": "10.208.0.0/12"}, **_fleet.OPTIONS},
        mutually_exclusive=_fleet.EXCLUSIVE,
        supports_check_mode=True,
    )

    def act() -> dict[str, Any]:
        members = _fleet.members(module.params)
        plan = fleet.plan_fleet([member.node for member in members], module.params["child_range"])
        rows: dict[str, Any] = {
            member.node.name: {"name": member.node.name, "children": [], "errors": []} for member in members
        }
        arp = {member.node.name: member.arp for member in members}
        for name, index, child in plan.children():
            found = addressing.routing(child.child, plan.child_range, index)
            rows[name]["children"].append(
                {
                    "index": index,
                    "parent": str(child.parent),
                    "child": str(child.child_address),
                    "table": child.table,
                    "route": _fleet.plain(found.route),
                    "rule": _fleet.plain(found.rule),
                    "arp": arp[name].get(index),
                }
            )
        for entry in plan.errors:
            error = {"index": entry.nic_index, "code": entry.error.code, "message": str(entry.error)}
            rows[entry.node]["errors"].append(error)
        return {"nodes": list(rows.values()), "clashes": _fleet.clashes(plan)}

    _module.run(module, act, libraries=_fleet.libraries(module.params))


if __name__ == "__main__":
    main()
