#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_template
short_description: Skeletons of RDMA jobs over several nodes
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Writes a Job, MPIJob or PyTorchJob that can use the RDMA NICs of its target, with one pod on each node. It passes
    C(rdma-k8s lint).
  - Its pods have a /dev/shm in memory, may lock memory, ask for extended resources with equal requests and limits,
    are not privileged and have time to end, and have the NCCL environment of the shape without a GID index.
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - rdma.k8s.kube_objects
  - rdma.k8s.attributes.change
options:
  state:
    description:
      - V(rendered) asks no API server. It returns the manifest, and writes it when O(path) is given.
      - V(present) applies the objects by server-side apply. In check mode the API server checks everything and stores
        nothing.
      - V(absent) removes them.
    type: str
    choices: [present, absent, rendered]
    default: rendered
  name:
    description: Name of the job. The host names of its pods begin with it.
    type: str
    required: true
  namespace:
    description: Its namespace.
    type: str
    default: default
  kind:
    description:
      - V(Job) is an indexed Job with a headless Service. Each pod has E(MASTER_ADDR), E(MASTER_PORT), E(NODE_RANK),
        E(NNODES) and E(GPUS_PER_NODE).
      - V(MPIJob) (C(kubeflow.org/v2beta1)) starts O(command) by C(mpirun) of Open MPI on all pods.
      - V(PyTorchJob) is that of C(kubeflow.org/v1).
    type: str
    choices: [Job, MPIJob, PyTorchJob]
    default: Job
  target:
    description: How pods get RDMA NICs in this cluster.
    type: str
    choices: [oke_dranet, spiderpool_sriov, ack_lingjun]
    default: oke_dranet
  image:
    description: The image. Needed unless O(state=absent).
    type: str
  command:
    description: What each pod runs, for V(MPIJob) what each rank runs. Needed unless O(state=absent).
    type: list
    elements: str
  nodes:
    description: How many pods with GPUs.
    type: int
    default: 2
  gpus:
    description: GPUs of each pod. Without it those of the shape, which the end of its name tells. Needed where it does
      not.
    type: int
  gpu_resource:
    description: The extended resource of the GPUs. Without it C(amd.com/gpu) for shapes with AMD GPUs, else
      C(nvidia.com/gpu).
    type: str
  gpus_in_claim:
    description: The GPUs come with the claim, so no extended resource is asked for.
    type: bool
    default: false
  claim_template:
    description: The ResourceClaimTemplate of the RDMA NICs, for O(target=oke_dranet), see
      M(rdma.k8s.claim_template).
    type: str
  shape:
    description: The shape of the nodes, such as V(BM.GPU.H100.8). The pods are bound to nodes of this instance type.
    type: str
  shapes:
    description: Further shapes, or corrections of known ones, as in the policy.
    type: dict
    default: {}
  fabric:
    description: The fabric, when the shape does not tell it.
    type: str
    choices: [ipv4, ipv6, infiniband]
  hcas:
    description:
      - RDMA devices for E(NCCL_IB_HCA). Without it those of the shape. An empty list leaves the variable out.
      - Give it when the claim asks for some of the NICs only. On native InfiniBand they are in
        RV(rdma.k8s.claim_template#module:requests).
    type: list
    elements: str
  networks:
    description: The networks of the pods for O(target=spiderpool_sriov), in the order of the interfaces C(net1),
      C(net2) and so on.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the NetworkAttachmentDefinition.
        type: str
        required: true
      namespace:
        description: Its namespace. Without it that of the pods.
        type: str
        default: ""
      resource:
        description: The resource of its VFs, such as V(spidernet.io/gpu1sriov).
        type: str
        required: true
  host_network:
    description: For O(target=ack_lingjun) the pods share the network of their node. Without it the compute network of
      the Lingjun cluster must be IPv6, and the device plugin must allow it.
    type: bool
    default: true
  rdma_resource:
    description: For O(target=ack_lingjun) the resource of the device plugin.
    type: str
    default: rdma/hca
  rdma_quantity:
    description: How much of it. In the exclusive mode of the plugin the number of NICs, else 1.
    type: int
    default: 1
  shm:
    description: Size of /dev/shm. It counts to the memory of the pod.
    type: str
    default: 64Gi
  cpu:
    description: Request and limit of processors. Without it neither.
    type: str
    default: ""
  memory:
    description: Request and limit of memory. Without it neither.
    type: str
    default: ""
  grace_seconds:
    description: Time that a pod has to end, at least 1. A claim is not unprepared for a pod that has none.
    type: int
    default: 60
  environment:
    description: Further variables, texts or whole numbers. They win over those of the shape. A GID index is refused,
      except on the network of the node.
    type: dict
    default: {}
  socket_interface:
    description: The interface for E(NCCL_SOCKET_IFNAME). Without it V(eth0), on the network of a Lingjun node
      V(bond0).
    type: str
    default: ""
  node_selector:
    description: Labels that the nodes must have.
    type: dict
    default: {}
  tolerations:
    description: Taints that the pods tolerate. That of Lingjun nodes is among them for O(target=ack_lingjun).
    type: list
    elements: dict
    default: []
  replace:
    description: Remove a job with another content and make it anew; the API lets no one change most of its content.
    type: bool
    default: false
seealso:
  - module: rdma.k8s.claim_template
  - module: rdma.k8s.workload_lint
"""

EXAMPLES = r"""
- name: A job over four H100 nodes
  rdma.k8s.workload_template:
    name: train
    namespace: training
    shape: BM.GPU.H100.8
    claim_template: all-nics
    nodes: 4
    image: registry.example.org/train:1
    command:
      - torchrun
      - --nnodes=$(NNODES)
      - --nproc-per-node=$(GPUS_PER_NODE)
      - --node-rank=$(NODE_RANK)
      - --master-addr=$(MASTER_ADDR)
      - --master-port=$(MASTER_PORT)
      - train.py
    path: manifests/train.yaml

- name: An MPIJob with two VFs for each pod
  rdma.k8s.workload_template:
    name: allreduce
    kind: MPIJob
    target: spiderpool_sriov
    networks:
      - {name: gpu1-sriov, namespace: spiderpool, resource: spidernet.io/gpu1sriov}
      - {name: gpu2-sriov, namespace: spiderpool, resource: spidernet.io/gpu2sriov}
    gpus: 2
    image: registry.example.org/nccl-tests:1
    command: [all_reduce_perf, -b, 1M, -e, 8G, -f, "2"]
    path: manifests/allreduce.yaml
"""

RETURN = r"""
manifest:
  description: The objects as YAML.
  returned: success
  type: str
  sample: "---\n# Made by rdma.k8s.workload_template.\napiVersion: v1\nkind: Service\n"
objects:
  description: The same as data.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: batch/v1, kind: Job, metadata: {name: train, namespace: training}}]
actions:
  description: What was done, or would be done in check mode.
  returned: success
  type: list
  elements: str
  sample: [write manifests/train.yaml]
"""

from dataclasses import fields
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _claims, _objects
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads import render as rendering
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads.wish import Network, WorkloadWish

NETWORK = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "default": ""},
    "resource": {"type": "str", "required": True},
}
NAMES = [entry.name for entry in fields(WorkloadWish)]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_objects.OPTIONS,
            "state": {"type": "str", "choices": ["present", "absent", "rendered"], "default": "rendered"},
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "default": "default"},
            "kind": {"type": "str", "choices": ["Job", "MPIJob", "PyTorchJob"], "default": "Job"},
            "target": {
                "type": "str",
                "choices": ["oke_dranet", "spiderpool_sriov", "ack_lingjun"],
                "default": "oke_dranet",
            },
            "image": {"type": "str"},
            "command": {"type": "list", "elements": "str"},
            "nodes": {"type": "int", "default": 2},
            "gpus": {"type": "int"},
            "gpu_resource": {"type": "str"},
            "gpus_in_claim": {"type": "bool", "default": False},
            "claim_template": {"type": "str"},
            "shape": {"type": "str"},
            "shapes": {"type": "dict", "default": {}},
            "fabric": {"type": "str", "choices": ["ipv4", "ipv6", "infiniband"]},
            "hcas": {"type": "list", "elements": "str"},
            "networks": {"type": "list", "elements": "dict", "options": NETWORK, "default": []},
            "host_network": {"type": "bool", "default": True},
            "rdma_resource": {"type": "str", "default": "rdma/hca"},
            "rdma_quantity": {"type": "int", "default": 1},
            "shm": {"type": "str", "default": "64Gi"},
            "cpu": {"type": "str", "default": ""},
            "memory": {"type": "str", "default": ""},
            "grace_seconds": {"type": "int", "default": 60},
            "environment": {"type": "dict", "default": {}},
            "socket_interface": {"type": "str", "default": ""},
            "node_selector": {"type": "dict", "default": {}},
            "tolerations": {"type": "list", "elements": "dict", "default": []},
            "replace": {"type": "bool", "default": False},
        },
        required_if=[("state", state, ("image", "command")) for state in ("present", "rendered")],
        supports_check_mode=True,
    )
    params = module.params

    def render() -> _objects.Rendering:
        kind, name = params["kind"], params["name"]
        if params["state"] == "absent":
            return _objects.Rendering(rendering.named_objects(kind, name, params["namespace"]), [], {})
        networks = [
            Network(entry["name"], entry["resource"], entry["namespace"]) for entry in params["networks"]
        ]
        given: dict[str, Any] = {key: params[key] for key in NAMES if params.get(key) is not None}
        wish = WorkloadWish(**{**given, "shape": _claims.lookup(params), "networks": networks})
        comment = ["Made by rdma.k8s.workload_template: %s for %s." % (kind, params["target"])]
        return _objects.Rendering(rendering.workload(wish), comment, {})

    _objects.run(module, render)


if __name__ == "__main__":
    main()
