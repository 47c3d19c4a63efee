#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: claim_template
short_description: Claims for the RDMA NICs of a node, one request each
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes a ResourceClaimTemplate, or a ResourceClaim, that asks DRANET for the RDMA NICs of a node with one request
    for each, or writes it to a file.
  - The NICs come from the shape, or from the slices that the nodes really publish. In slices the set of NICs that
    most nodes have counts; each other node is named in RV(odd_nodes) and in a warning.
  - A request selects its NIC by the name C(rdmaN), by the PCI address, or by the RDMA device where the NIC has no
    interface (native InfiniBand).
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - rdma.k8s.kube_objects
  - rdma.k8s.attributes.change
options:
  name:
    description: Name of the claim or template.
    type: str
    required: true
  namespace:
    description: Its namespace, which must be that of the pods.
    type: str
    default: default
  kind:
    description: V(ResourceClaimTemplate) gives each pod a claim of its own, V(ResourceClaim) is one claim.
    type: str
    choices: [ResourceClaimTemplate, ResourceClaim]
    default: ResourceClaimTemplate
  device_class:
    description: The DeviceClass of the RDMA NICs.
    type: str
    default: rdma-nic
  shape:
    description: The shape whose NICs are asked for, such as V(BM.GPU.H100.8).
    type: str
  shapes:
    description: Further shapes, or corrections of known ones, as in the policy.
    type: dict
    default: {}
  slices:
    description: ResourceSlice objects from which the NICs are taken.
    type: list
    elements: dict
  from_cluster:
    description: Take the NICs from the slices in the cluster. Then the API server is read with O(state=rendered) as
      well.
    type: bool
  nodes:
    description: The nodes whose slices count. Without it all with slices of DRANET.
    type: list
    elements: str
  oca_network:
    description: The RDMA network of the Oracle Cloud Agent, by which NICs in slices are known that are not called
      C(rdmaN).
    type: str
    default: 10.224.0.0/12
  select_by:
    description:
      - How a request selects its NIC.
      - Without it by V(name); by V(pci) where NICs can have other names than C(rdmaN); by V(rdma_device) on native
        InfiniBand.
    type: str
    choices: [name, pci, rdma_device]
  nics:
    description: Only these NICs, by name, index, PCI address or RDMA device.
    type: list
    elements: str
  count:
    description: Only the first so many NICs.
    type: int
  fabric:
    description: The fabric, when shape or slices do not tell it.
    type: str
    choices: [ipv4, ipv6, infiniband]
  profile:
    description:
      - Name the profile C(oke-rdma) in the claim. A NIC to which DRANET gives no profile yet then fails the claim
        until it can be served, instead of being moved into the pod.
      - Without this option it is named on an IPv4 fabric, and left to DRANET on others.
    type: bool
  provider:
    description:
      - The profile provider with which DRANET runs. V(none) needs O(addresses).
    type: str
    choices: [cloud, webhook, none]
    default: cloud
  addresses:
    description:
      - With O(provider=none) the child of each NIC by request name, with the length of the child range, such as
        C(rdma0) with V(10.208.13.19/12). They belong to one node, so they need O(kind=ResourceClaim).
      - M(rdma.k8s.child_plan_info) tells them.
    type: dict
    default: {}
  node_attributes:
    description:
      - Attributes that the node of the NICs must have, such as C(shape) with V(BM.GPU.H100.8). Names without a
        domain are those of C(oke.dra.net).
      - Each request combines them with the selection of its NIC.
    type: dict
    default: {}
  cel:
    description: Further CEL expressions. Each NIC must meet all of them.
    type: list
    elements: str
    default: []
  gpus:
    description: Ask for so many GPUs in the same claim.
    type: int
    default: 0
  gpu_class:
    description: The DeviceClass of the GPUs.
    type: str
    default: gpu.nvidia.com
  align:
    description:
      - Each GPU shares its PCIe root (V(pcie_root)) or NUMA node (V(numa)) with its NICs. NICs go to GPUs in their
        order, in groups of one size.
      - With slices it is checked that the NICs of a group share it on each node.
    type: str
    choices: [pcie_root, numa]
  replace:
    description:
      - Remove a claim or template with another content and make it anew; the API lets no one change its content. The
        new content is checked by the API server before. A claim that a pod uses is not removed.
    type: bool
    default: false
seealso:
  - module: rdma.k8s.device_class
  - module: rdma.k8s.child_plan_info
  - module: rdma.k8s.workload_template
"""

EXAMPLES = r"""
- name: Each pod of a job gets all NICs of an H100 node
  rdma.k8s.claim_template:
    name: all-nics
    namespace: training
    shape: BM.GPU.H100.8

- name: Take what the nodes publish, two NICs with one GPU under the same PCIe root
  rdma.k8s.claim_template:
    name: gpu-with-nics
    from_cluster: true
    nodes: "{{ groups['h100'] }}"
    count: 2
    gpus: 1
    align: pcie_root

- name: Write a template for native InfiniBand to a file
  rdma.k8s.claim_template:
    name: all-nics
    shape: BM.GPU.GB200.4
    state: rendered
    path: manifests/claim.yaml
"""

RETURN = r"""
manifest:
  description: The objects as YAML.
  returned: success
  type: str
  sample: "---\n# Made by rdma.k8s.claim_template.\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
objects:
  description: The same as data.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: all-nics, namespace:
  training}}]
actions:
  description: What was done, or would be done in check mode.
  returned: success
  type: list
  elements: str
  sample: [create ResourceClaimTemplate training/all-nics]
requests:
  description: The requests for NICs.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the request.
      type: str
      returned: always
      sample: rdma0
    attribute:
      description: Attribute of DRANET by which the NIC is selected.
      type: str
      returned: always
      sample: ifName
    value:
      description: What it must be.
      type: str
      returned: always
      sample: rdma0
    rdma_device:
      description: RDMA device of the NIC; empty when it is not known, or not the same on all nodes. DRANET publishes
        it for NICs without an interface.
      type: str
      returned: always
      sample: mlx5_0
nodes:
  description: The nodes that publish exactly these NICs, or all of them when only some are asked for.
  returned: success
  type: list
  elements: str
  sample: [n1, n2]
odd_nodes:
  description: Nodes whose slices hold other NICs.
  returned: success
  type: list
  elements: dict
  sample: [{node: n3, missing: [rdma7], extra: []}]
notes:
  description: What whoever uses the claim should know.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _claims, _objects


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_claims.OPTIONS,
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "default": "default"},
            "kind": {
                "type": "str",
                "choices": ["ResourceClaimTemplate", "ResourceClaim"],
                "default": "ResourceClaimTemplate",
            },
            "device_class": {"type": "str", "default": "rdma-nic"},
            "profile": {"type": "bool"},
            "provider": {"type": "str", "choices": ["cloud", "webhook", "none"], "default": "cloud"},
            "addresses": {"type": "dict", "default": {}},
            "node_attributes": {"type": "dict", "default": {}},
            "cel": {"type": "list", "elements": "str", "default": []},
            "gpus": {"type": "int", "default": 0},
            "gpu_class": {"type": "str", "default": "gpu.nvidia.com"},
            "align": {"type": "str", "choices": ["pcie_root", "numa"]},
            "replace": {"type": "bool", "default": False},
            **_objects.OPTIONS,
        },
        mutually_exclusive=_claims.EXCLUSIVE,
        required_if=[
            ("state", state, ("shape", "slices", "from_cluster"), True) for state in ("present", "rendered")
        ],
        supports_check_mode=True,
    )

    params = module.params

    def render() -> _objects.Rendering:
        return _claims.render(module)

    _objects.run(module, render, read_cluster=bool(params["from_cluster"]))


if __name__ == "__main__":
    main()
