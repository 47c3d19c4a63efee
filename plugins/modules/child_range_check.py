#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: child_range_check
short_description: Check one child range against a node or a fleet and its cluster
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Says whether a child range works for the nodes of one RDMA network, how many NICs of a node it holds, which network,
    route or address is in its way, and which free ranges would do.
  - The driver checks one claim on one node and stops at the first mistake. This looks at all nodes and at the networks
    that only you know, and reports every mistake.
  - Conflicts are a result, not a failure of the module, unless O(fail_on_problems) is set.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
  - rdma.k8s.fleet
options:
  child_range:
    description: The range to check.
    type: str
    required: true
  vcn_cidrs:
    description: Networks of the VCN.
    type: list
    elements: str
    default: []
  pod_cidrs:
    description: Pod networks of the cluster, whole.
    type: list
    elements: str
    default: []
  service_cidrs:
    description: Service networks of the cluster, whole.
    type: list
    elements: str
    default: []
  peer_cidrs:
    description: Networks that are reached from the VCN, such as peered VCNs and networks behind a VPN.
    type: list
    elements: str
    default: []
  networks:
    description:
      - The networks around the cluster as a document, RV(rdma.k8s.oke_network_info#module:networks). They count beside
        those of the other options, and a problem names where the network is known from.
      - What the document says could not be read is in RV(not_known).
    type: dict
  supernets:
    description:
      - Networks in which free ranges are looked for, in this order.
      - Without it the private networks, then the shared address space.
    type: list
    elements: str
  fail_on_problems:
    description: Whether to fail when there is a problem.
    type: bool
    default: false
seealso:
  - module: rdma.k8s.child_plan_info
  - module: rdma.k8s.oke_network_info
"""

EXAMPLES = r"""
- name: Check the default range for two nodes and the cluster's networks
  rdma.k8s.child_range_check:
    child_range: 10.208.0.0/12
    nodes:
      - {name: n1, address: 10.140.77.19, subnet: 10.140.64.0/19}
      - {name: n2, address: 10.140.77.20, subnet: 10.140.64.0/19}
    pod_cidrs: [10.244.0.0/16]
    service_cidrs: [10.96.0.0/16]
  delegate_to: localhost
  register: check

- name: Say which ranges would do
  ansible.builtin.debug:
    var: check.proposals
"""

RETURN = r"""
ok:
  description: Whether there is no problem.
  returned: success
  type: bool
  sample: false
child_range:
  description: The range, null when it is not valid.
  returned: success
  type: str
  sample: 10.208.0.0/12
problems:
  description: Everything that is wrong. Equal problems of several nodes are one entry.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable identifier of the problem.
      type: str
      returned: always
      sample: network_conflict
    message:
      description: What is wrong.
      type: str
      returned: always
      sample: "pod_cidrs: 10.215.0.0/16 overlaps the child range 10.208.0.0/12."
    hint:
      description: What to do.
      type: str
      returned: always
      sample: Choose a child range beside it.
    nodes:
      description: The nodes that have the problem; empty when it belongs to no node.
      type: list
      elements: str
      returned: always
      sample: []
    details:
      description: The values that the message names.
      type: dict
      returned: always
      sample: {network: 10.215.0.0/16}
capacity:
  description: What the range holds, for each primary subnet.
  returned: success
  type: list
  elements: dict
  contains:
    subnet:
      description: Primary subnet.
      type: str
      returned: always
      sample: 10.140.64.0/19
    nodes:
      description: Number of nodes in it.
      type: int
      returned: always
      sample: 2
    needed:
      description: Number of NICs of a node that the range must hold.
      type: int
      returned: always
      sample: 16
    held:
      description: Number of NICs of a node that it holds, null when the range is not valid.
      type: int
      returned: always
      sample: 16
    length:
      description: Prefix length of the smallest range that holds them, null when none does.
      type: int
      returned: always
      sample: 15
proposals:
  description: Free ranges, the first of them for 16 NICs.
  returned: success
  type: list
  elements: dict
  contains:
    length:
      description: Prefix length.
      type: int
      returned: always
      sample: 15
    nics:
      description: Number of NICs of a node that such a range holds.
      type: int
      returned: always
      sample: 16
    ranges:
      description: Free ranges of this length, at most three.
      type: list
      elements: str
      returned: always
      sample: [10.0.0.0/15, 10.2.0.0/15, 10.4.0.0/15]
not_known:
  description: Networks that the document of O(networks) could not tell, as sentences. They may be in the way too.
  returned: success
  type: list
  elements: str
  sample: []
children:
  description: Number of NICs that get a child.
  returned: success
  type: int
  sample: 32
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _fleet, _module
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import networks, range_check

NETWORKS = ("vcn_cidrs", "pod_cidrs", "service_cidrs", "peer_cidrs")


def main() -> None:
    spec: dict[str, Any] = {name: {"type": "list", "elements": "str", "default": []} for name in NETWORKS}
    module = AnsibleModule(
        argument_spec={
            "networks": {"type": "dict"},
            "child_range": {"type": "str", "required": True},
            "supernets": {"type": "list", "elements": "str"},
            "fail_on_problems": {"type": "bool", "default": False},
            **spec,
            **_fleet.OPTIONS,
        },
        mutually_exclusive=_fleet.EXCLUSIVE,
        supports_check_mode=True,
    )
    params = module.params

    def act() -> dict[str, Any]:
        supernets = params["supernets"]
        document = networks.NetworkDocument()
        if params["networks"] is not None:
            document = networks.parse(params["networks"])
        report = range_check.check_fleet(
            params["child_range"],
            [member.node for member in _fleet.members(params)],
            [
                *range_check.parse_networks({name: params[name] for name in NETWORKS}),
                *range_check.of_document(document),
            ],
            None if supernets is None else [parse_prefix(text) for text in supernets],
        ).to_dict()
        report["not_known"] = [entry.message for entry in document.unread]
        if params["fail_on_problems"] and report["problems"]:
            first = report["problems"][0]
            raise RdmaError(
                first["code"],
                "The child range %s has %s: %s"
                % (
                    params["child_range"],
                    "a problem"
                    if len(report["problems"]) == 1
                    else "problems (%d), the first" % len(report["problems"]),
                    first["message"],
                ),
                hint=first["hint"],
                **report,
            )
        return {"ok": not report["problems"], **report}

    _module.run(module, act, libraries=("netaddr", *_fleet.libraries(params)))


if __name__ == "__main__":
    main()
