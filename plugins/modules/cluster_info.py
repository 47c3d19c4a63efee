#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Read the RDMA side of a Kubernetes cluster
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads nodes, resource slices, claims, the DaemonSets of drivers with their pods, the networks of pods and services,
    objects of Multus, Spiderpool and the SR-IOV operator, admission policies of this collection, failed preparations
    of claims, and changes of the child range (rolls) with the disruption budgets that they respect, into one document,
    the ClusterSnapshot.
  - Lists are read whole, in pages of a thousand objects, and nothing is asked for node by node. A cluster of a thousand
    nodes with DRANET takes some 20 API calls. Where they are served, the kinds of Multus, Spiderpool and the
    SR-IOV operator take up to 8 more, and each namespace with both claims and disruption budgets one; read with
    O(subsets) what you need.
  - What the user may not read is not known then, which RV(snapshot) and a warning tell; the rest is read all the same.
  - Values of environment variables, Secrets, and arguments of programs that sound like secrets are never in it.
  - Nothing in the cluster is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  subsets:
    description:
      - What is read. V(permissions) is what the service account of DRANET may do.
      - V(workloads) are the workloads that ask for networks or devices of Spiderpool. All workloads and pods of the
        cluster are listed for it, up to 12 calls more, so it is read only when it is asked for.
    type: list
    elements: str
    choices: [nodes, dra, drivers, networks, attachments, policies, events, rolls, permissions, workloads]
    default: [nodes, dra, drivers, networks, attachments, policies, events, rolls, permissions]
  src:
    description:
      - Read files instead of the API; the options for the connection are not used then.
      - A snapshot that this module wrote, or the output of C(kubectl get -o json) or C(-o yaml), in one file or in the
        files of a directory and of those below it. A file is named by the plural of what is in it, such as
        C(resourceclaims.json), so that an empty list tells that there are none.
    type: path
  path:
    description:
      - A file on the host where the module runs, for the snapshot. It is replaced in one step, with the mode 0600.
      - The result is RV(ignore:changed) when something else than times is different from what was in the file.
    type: path
  name:
    description: What the cluster is called in the snapshot. Without it O(context), else the address of the API server.
    type: str
  layout:
    description: Lists of objects in RV(snapshot) and in the file as they are, or as tables that are shorter.
    type: str
    choices: [readable, compact]
    default: readable
attributes:
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: none
    details: The cluster is not changed, and the file is replaced as a whole.
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Read the cluster of the current context
  rdma.k8s.cluster_info:
  delegate_to: localhost
  run_once: true
  register: cluster

- name: Show nodes that cannot take pods
  ansible.builtin.debug:
    msg: "{{ cluster.snapshot.nodes | selectattr('unschedulable', 'defined') | map(attribute='name') }}"

- name: Record what a claim needs, for later
  rdma.k8s.cluster_info:
    context: training
    subsets: [nodes, dra, drivers]
    path: recordings/training.json
    layout: compact
  delegate_to: localhost

- name: Check a child range against the networks of the cluster
  rdma.k8s.child_range_check:
    child_range: 10.208.0.0/12
    nodes:
      - {name: n1, address: 10.140.77.19, subnet: 10.140.64.0/19}
    networks: "{{ cluster.networks }}"
  delegate_to: localhost

- name: Read what somebody else recorded with kubectl
  rdma.k8s.cluster_info:
    src: recordings/kubectl
  delegate_to: localhost
"""

RETURN = r"""
snapshot:
  description: The ClusterSnapshot. Its fields are described with the documentation of the collection.
  returned: when O(path) is not given
  type: dict
  contains:
    schema_version:
      description: Version of the form of the document.
      type: int
      returned: always
      sample: 1
    name:
      description: What the cluster is called.
      type: str
      returned: always
      sample: training
    errors:
      description: What could not be read, each with the reason.
      type: list
      elements: dict
      returned: when there are some
      sample: [{"source": "daemonsets.apps", "reason": "GET /apis/apps/v1/daemonsets is not allowed"}]
    nodes:
      description: The nodes. A field that is not there is not known, here and below.
      type: list
      elements: dict
      returned: when known
      sample: [{"name": "n1", "conditions": {"Ready": "True"}}]
    slices:
      description: Resource slices with their devices.
      type: list
      elements: dict
      returned: when known
      sample: [{"name": "n1-dra-net", "driver": "dra.net", "node": "n1"}]
    claims:
      description: Claims.
      type: list
      elements: dict
      returned: when known
      sample: [{"namespace": "default", "name": "train", "allocated": true}]
    daemonsets:
      description: DaemonSets of drivers, device plugins and network plugins.
      type: list
      elements: dict
      returned: when known
      sample: [{"namespace": "kube-system", "name": "dranet", "role": "dranet", "desired": 2, "ready": 2}]
    pod_cidrs:
      description: Whole networks of pods, and the object that names them.
      type: list
      elements: dict
      returned: when known
      sample: [{"cidr": "10.244.0.0/16", "source": "configmap kube-system/kube-flannel-cfg"}]
    service_cidrs:
      description: Whole networks of services, and the object that names them.
      type: list
      elements: dict
      returned: when known
      sample: [{"cidr": "10.96.0.0/16", "source": "servicecidr kubernetes"}]
summary:
  description: How much there is of what; null where it is not known.
  returned: success
  type: dict
  contains:
    nodes:
      description: Number of nodes.
      type: int
      returned: always
      sample: 1000
    ready_nodes:
      description: Number of nodes that are ready.
      type: int
      returned: always
      sample: 999
    slices:
      description: Number of resource slices.
      type: int
      returned: always
      sample: 1000
    devices:
      description: Number of devices in the slices.
      type: int
      returned: always
      sample: 16000
    claims:
      description: Number of claims.
      type: int
      returned: always
      sample: 64
    allocated_claims:
      description: Number of claims that have devices.
      type: int
      returned: always
      sample: 64
    pod_cidrs:
      description: Whole networks of pods.
      type: list
      elements: str
      returned: always
      sample: [10.244.0.0/16]
    service_cidrs:
      description: Whole networks of services.
      type: list
      elements: str
      returned: always
      sample: [10.96.0.0/16]
networks:
  description:
    - The networks of pods and services as the document that O(rdma.k8s.child_range_check#module:networks) and the
      setting C(cluster_networks) of a policy take. What is not known stands in its list C(unread).
    - Where the whole network of pods is not known, the blocks of the nodes are in it.
  returned: success
  type: dict
  contains:
    document:
      description: What it is.
      type: str
      returned: always
      sample: rdma.k8s/networks
    networks:
      description: The IPv4 networks, each with its kind and where it is known from.
      type: list
      elements: dict
      returned: always
      sample: [{"network": "10.96.0.0/16", "kind": "service", "sources": ["servicecidr kubernetes"], "used_by": []}]
    unread:
      description: What could not be told, and why.
      type: list
      elements: dict
      returned: always
      sample: []
calls:
  description: Number of requests to the API server; null with O(src).
  returned: success
  type: int
  sample: 14
path:
  description: The file with the snapshot.
  returned: when O(path) is given
  type: str
  sample: recordings/training.json
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import collect, recorded
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.sources import LiveSource
from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_networks
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    DEFAULT_SUBSETS,
    SUBSETS,
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError


def _read(module: AnsibleModule) -> ClusterSnapshot:
    params = module.params
    if params["src"]:
        return recorded.read(params["src"], params["name"] or "", params["subsets"])
    cluster = _kube.connect(module)
    name = params["name"] or params["context"] or cluster.server
    return collect.collect(LiveSource(cluster), name, params["subsets"])


def _result(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    snapshot = _read(module)
    for error in snapshot.errors:
        module.warn("Not known: %s: %s" % (error.source, error.reason))
    document = snapshot.to_dict(compact=params["layout"] == "compact")
    result: dict[str, Any] = {
        "changed": False,
        "summary": recorded.summary(snapshot),
        "networks": cluster_networks.document(snapshot).to_dict(),
        "calls": None if params["src"] else snapshot.collector.calls,
    }
    if not params["path"]:
        return {**result, "snapshot": document}
    result["changed"] = recorded.write(params["path"], document, module.check_mode)
    return {**result, "path": params["path"]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "subsets": {
                "type": "list",
                "elements": "str",
                "choices": list(SUBSETS),
                "default": list(DEFAULT_SUBSETS),
            },
            "src": {"type": "path"},
            "path": {"type": "path"},
            "name": {"type": "str"},
            "layout": {"type": "str", "choices": ["readable", "compact"], "default": "readable"},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    try:
        _module.prepare(module, () if module.params["src"] else _kube.LIBRARIES)
        result = _result(module)
    except RdmaError as error:
        _module.fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
