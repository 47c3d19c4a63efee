#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_table
short_description: Propose the rails of nodes with SR-IOV, and the objects that make them
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Finds the NIC beside each GPU, which must be at the same place in all nodes, and gives each such rail a resource, a
    subnet with gateway and range, virtual functions, an MTU and, on InfiniBand, a partition key.
  - From the table it derives a SriovNetworkNodePolicy, a SpiderIPPool and a SpiderMultusConfig for each rail, which
    agree with one another; names and keys of yours that break a rule are refused.
  - A NIC is beside a GPU when PCI bridges join them without the processor. Where that is so for no NIC, the NUMA node
    decides; where no GPU is known, each NIC with an RDMA port is a rail. The interface with the default route is none.
  - Nothing is asked and nothing is changed; give RV(objects) to P(rdma.k8s.cluster_objects#module).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
options:
  snapshots:
    description:
      - The nodes as snapshots, for example RV(rdma.k8s.node_info#module:snapshot) of several hosts, with the subset
        C(slow) for their GPUs.
    type: list
    elements: dict
    required: true
  supernet:
    description: An IPv4 network that nothing else uses; the subnets of the rails are cut from it.
    type: str
    required: true
  subnet_length:
    description: Prefix length of each subnet. It must hold a virtual function of each node, and the gateway.
    type: int
    default: 24
  gateway:
    description: Which address of a subnet is the gateway, or V(none); without one a rail has no way to other networks.
    type: str
    choices: [last, first, none]
    default: last
  vfs:
    description: Virtual functions of each NIC, 1 to 128.
    type: int
    default: 8
  mtu:
    description:
      - MTU of physical and virtual functions of Ethernet.
      - Without it, what the NICs have; the smallest, where they differ.
    type: int
  pkeys:
    description: Partition keys for InfiniBand such as V(0x10), one for each rail, or one for all.
    type: list
    elements: str
    default: []
  resource:
    description:
      - Name of the resources; C({rail}) stands for the number of the rail, with zeros before it from 10 rails on.
    type: str
    default: gpu{rail}sriov
  resource_prefix:
    description: The prefix of the resources, C(sriov.resourcePrefix) of the chart of Spiderpool.
    type: str
    default: spidernet.io
  node_selector:
    description: Labels of the nodes. It should fit no node without these NICs, because selected nodes are drained.
    type: dict
    required: true
  namespace:
    description: The namespace of the SR-IOV operator; policies elsewhere are ignored.
    type: str
    default: spiderpool
  network_namespace:
    description: The namespace of the networks.
    type: str
    default: spiderpool
  isolated:
    description:
      - Whether pods get an RDMA device of their own, which goes with nodes in exclusive mode. On nodes in shared mode
        it must be off.
    type: bool
    default: true
  inject:
    description:
      - A label value by which a pod asks for all rails, with the annotation C(cni.spidernet.io/rdma-resource-inject).
      - Without it a pod names its networks.
    type: str
    default: ""
  spiderpool_version:
    description: The version of Spiderpool; some fields exist in some versions only.
    type: str
    default: 1.2.1
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.node_info
  - module: rdma.k8s.cluster_objects
  - module: rdma.k8s.sriov_node_state_info
"""

EXAMPLES = r"""
- name: Read all nodes
  rdma.k8s.node_info:
    subsets: [rdma, links, routes, pci, slow]
  register: node

- name: Propose the rails
  rdma.k8s.rail_table:
    snapshots: "{{ ansible_play_hosts | map('extract', hostvars, ['node', 'snapshot']) }}"
    supernet: 172.16.0.0/16
    node_selector:
      node-role.kubernetes.io/rdma: "true"
    inject: rails
  delegate_to: localhost
  run_once: true
  register: table

- name: Make them
  rdma.k8s.cluster_objects:
    documents: "{{ table.objects }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
rails:
  description: The table.
  returned: success
  type: list
  elements: dict
  contains:
    number:
      description: Number of the rail, from 1 on.
      type: int
      returned: always
      sample: 1
    pci:
      description: PCI address of the physical function, the same in all nodes.
      type: str
      returned: always
      sample: "0000:86:00.0"
    name:
      description: Its interface; empty where the nodes call it differently.
      type: str
      returned: always
      sample: ens6f0np0
    link_type:
      description: V(eth) or V(ib); empty when it is not known.
      type: str
      returned: always
      sample: eth
    vendor:
      description: PCI vendor.
      type: str
      returned: always
      sample: 15b3
    gpus:
      description: PCI addresses of the GPUs beside it, in the first node.
      type: list
      elements: str
      returned: always
      sample: ["0000:89:00.0"]
    affinity:
      description: How that is known, V(pcie), V(numa) or V(unknown).
      type: str
      returned: always
      sample: pcie
    resource:
      description: Name of the resource, without its prefix.
      type: str
      returned: always
      sample: gpu1sriov
    subnet:
      description: Subnet.
      type: str
      returned: always
      sample: 172.16.0.0/24
    gateway:
      description: Gateway; empty without one.
      type: str
      returned: always
      sample: 172.16.0.254
    ranges:
      description: Addresses for pods.
      type: list
      elements: str
      returned: always
      sample: [172.16.0.1-172.16.0.253]
    vfs:
      description: Virtual functions of each node.
      type: int
      returned: always
      sample: 8
    mtu:
      description: MTU; null when it is not known.
      type: int
      returned: always
      sample: 4200
    pkey:
      description: Partition key; empty without one.
      type: str
      returned: always
      sample: ""
objects:
  description: The manifests, policies first, then pools, then networks.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderIPPool, metadata: {name: gpu1sriov-net}, spec: {}}]
notes:
  description: What to know of the rails, such as a firmware that must change, in sentences.
  returned: success
  type: list
  elements: str
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.manifest import require_name
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import names, objects, rails


def _table(params: dict[str, Any]) -> dict[str, Any]:
    require_name(params["namespace"], "A namespace", label=True)
    require_name(params["network_namespace"], "A namespace", label=True)
    require_name(params["resource_prefix"], "A prefix of resources")
    if params["mtu"] is not None:
        bounds.require_numbers(params, mtu=(576, 65535))
    wish = rails.Wish(
        supernet=params["supernet"],
        length=params["subnet_length"],
        vfs=params["vfs"],
        resource=params["resource"],
        gateway=params["gateway"],
        mtu=params["mtu"],
        pkeys=params["pkeys"],
    )
    setup = objects.Setup(
        node_selector={key: str(value) for key, value in params["node_selector"].items()},
        operator_namespace=params["namespace"],
        network_namespace=params["network_namespace"],
        resource_prefix=params["resource_prefix"],
        isolated=params["isolated"],
        inject=params["inject"],
        spiderpool_version=params["spiderpool_version"],
    )
    found = rails.propose([NodeSnapshot.from_dict(entry) for entry in params["snapshots"]], wish)
    derived = objects.derive(found.rails, setup)
    problems = objects.problems(derived, setup, names.EXCLUSIVE if setup.isolated else names.SHARED)
    if problems:
        raise RdmaError(
            "rails_wish", " ".join(problems), hint="Correct the options that these values come from."
        )
    return {
        "rails": [
            {**rail._asdict(), "gpus": list(rail.gpus), "ranges": list(rail.ranges)} for rail in found.rails
        ],
        "objects": derived,
        "notes": list(found.notes),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "snapshots": {"type": "list", "elements": "dict", "required": True},
            "supernet": {"type": "str", "required": True},
            "subnet_length": {"type": "int", "default": 24},
            "gateway": {"type": "str", "choices": list(rails.GATEWAYS), "default": rails.LAST},
            "vfs": {"type": "int", "default": 8},
            "mtu": {"type": "int"},
            "pkeys": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "resource": {"type": "str", "default": "gpu{rail}sriov"},
            "resource_prefix": {"type": "str", "default": names.RESOURCE_PREFIX},
            "node_selector": {"type": "dict", "required": True},
            "namespace": {"type": "str", "default": names.NAMESPACE},
            "network_namespace": {"type": "str", "default": names.NAMESPACE},
            "isolated": {"type": "bool", "default": True},
            "inject": {"type": "str", "default": ""},
            "spiderpool_version": {"type": "str", "default": "1.2.1"},
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _table(module.params))


if __name__ == "__main__":
    main()
