#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spiderpool_plan_info
short_description: The objects of a table of rails, and all that is wrong before one of them is made
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Derives from a table of rails the SriovNetworkNodePolicy, the SpiderIPPool and the SpiderMultusConfig of each rail,
    the SriovNetworkPoolConfig, the values for Spiderpool's chart and a DaemonSet for tests.
  - Judges table, settings, and objects and values that you give besides. Each finding has a code that stays.
  - With O(read) the cluster is asked, too. Its definitions decide which fields there are; what it would drop, and what
    it has no definition for, is refused. Nodes, NICs and objects that are there already must agree.
  - Nothing is changed. The role C(spiderpool_sriov) applies the result.
  - With O(read) the user needs to get CustomResourceDefinitions, to list nodes, pods, DaemonSets, Deployments, Secrets,
    ConfigMaps, ServiceAccounts and the objects of RBAC, and to list what Spiderpool and the SR-IOV operator keep.
    ClusterPolicies of C(nvidia.com) are judged where they may be listed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  rails:
    description:
      - The table, as P(rdma.k8s.rail_table#module) proposes it, or written by hand.
      - A rail has C(pci) or C(name) of the NIC, C(subnet), and as far as it differs from the defaults C(resource),
        C(link_type), C(gateway), C(ranges), C(vfs), C(mtu), C(pkey) and C(vendor).
      - Without C(ranges) all hosts of the subnet but the gateway; without C(gateway) the rail has no way to others.
      - Values are judged, not refused by their types, so that all mistakes are told at once.
    type: list
    elements: raw
    default: []
  link_type:
    description: V(eth) or V(ib), for rails that do not say.
    type: str
    default: ""
  vfs:
    description: Virtual functions of each NIC, for rails that do not say.
    type: int
    default: 8
  mtu:
    description: MTU of physical and virtual functions of Ethernet, for rails that do not say.
    type: int
  node_selector:
    description: Labels of the nodes. It must fit no node without these NICs, because selected nodes are drained.
    type: dict
    default: {}
  nodes:
    description: Names of nodes that must have the rails.
    type: list
    elements: str
    default: []
  namespace:
    description: The namespace of Spiderpool and of the SR-IOV operator.
    type: str
    default: spiderpool
  network_namespace:
    description: The namespace of the networks.
    type: str
    default: spiderpool
  resource_prefix:
    description: The prefix of the resources.
    type: str
    default: spidernet.io
  priority:
    description: Priority of the policies, 0 to 99; the lowest number wins.
    type: int
    default: 99
  netns_mode:
    description: Mode of the RDMA subsystem of the nodes; pods get RDMA devices of their own in V(exclusive) only.
    type: str
    choices: [exclusive, shared]
    default: exclusive
  netns_owner:
    description:
      - Who sets this mode. V(node) is a file on the node, as P(rdma.k8s.netns_mode#module) writes it.
      - V(operator) is C(rdmaMode) of the SriovNetworkPoolConfig, which needs operator 1.4.0 and never works on Ubuntu.
    type: str
    choices: [node, operator]
    default: node
  inject:
    description: A label value by which a pod asks for all rails. Without it pods name their networks.
    type: str
    default: ""
  max_unavailable:
    description:
      - How many nodes may be drained at a time, a number or a percentage. Without it no SriovNetworkPoolConfig is made,
        and there is one at a time.
    type: str
  drain:
    description: Whether nodes must be drained before they are rebooted, which the chart does not do by default.
    type: bool
    default: true
  gpudirect:
    description:
      - Whether NICs must reach the memory of GPUs.
      - Then a ClusterPolicy of the GPU operator that stands against it is an error, else a warning.
    type: bool
    default: false
  spiderpool_version:
    description: The version of Spiderpool where the cluster does not tell it.
    type: str
    default: 1.2.1
  operator_version:
    description: The version of the SR-IOV operator where the cluster does not tell it.
    type: str
    default: 1.3.0
  test_image:
    description: Image of the pods for tests. Without it there are none.
    type: str
    default: ""
  test_namespace:
    description: Namespace of the pods for tests.
    type: str
    default: default
  test_command:
    description: What the pods for tests run.
    type: list
    elements: str
    default: [sleep, infinity]
  test_tolerations:
    description: Taints that the pods for tests tolerate.
    type: list
    elements: dict
    default: []
  default_network:
    description: C(NAMESPACE/NAME) of the network of the cluster, which pods for tests have as their first interface.
    type: str
    default: ""
  manifests:
    description: Further objects, which are judged together with those of the rails.
    type: list
    elements: dict
    default: []
  install:
    description: Whether Spiderpool's chart is installed with RV(values), which are judged then.
    type: bool
    default: false
  values:
    description: Values for the chart, laid over what the other options make.
    type: dict
    default: {}
  set_expressions:
    description: Further values, as for C(helm --set), each C(NAME.NAME=VALUE); laid over O(values).
    type: list
    elements: str
    default: []
  registry:
    description: Registry from which the chart's images are taken in place of their own.
    type: str
    default: ""
  metrics:
    description: Whether the chart brings metrics of RDMA.
    type: bool
    default: false
  grafana:
    description: Whether the chart brings dashboards for Grafana.
    type: bool
    default: false
  gateway_detection:
    description: Whether a pod starts only when its gateways answer; the chart does not do that by default.
    type: bool
    default: true
  inject_include:
    description: Namespaces for whose pods networks are injected; without it, all that are not excluded.
    type: list
    elements: str
    default: []
  inject_exclude:
    description: Namespaces that are passed over in place of the chart's own list.
    type: list
    elements: str
    default: []
  sources:
    description: Addresses from which manifests or charts are taken.
    type: list
    elements: str
    default: []
  targets:
    description: Addresses that a test between pods is to reach.
    type: list
    elements: str
    default: []
  ufm_keys:
    description: The names of the keys of the Secret for ib-kubernetes, never their values.
    type: list
    elements: str
  ib_kubernetes:
    description:
      - How ib-kubernetes is to run, which gives GUIDs to virtual functions and tells UFM their partition keys.
      - Without it its objects are not made.
      - With O(read) its pods get a mark with the version of their Secret, so that they start anew when it changes.
    type: dict
    suboptions:
      image:
        description: Image, with the tag of a release or a digest. Needed; there is no default.
        type: str
        default: ""
      replicas:
        description: Pods, each on a node of its own, of which one leads; 1 to 10.
        type: int
        default: 2
      guid_start:
        description: First GUID that it gives.
        type: str
        default: "02:00:00:00:00:00:00:00"
      guid_end:
        description: Last GUID that it gives.
        type: str
        default: "02:FF:FF:FF:FF:FF:FF:FF"
      node_selector:
        description:
          - Labels of the nodes for it, laid over C(kubernetes.io/os=linux) and C(kubernetes.io/arch=amd64).
          - Without it nodes of the control plane.
        type: dict
        default: {}
      tolerations:
        description: Taints that it tolerates. Without it those of control planes.
        type: list
        elements: dict
      pull_secrets:
        description: Names of Secrets of the registry, in C(kube-system).
        type: list
        elements: str
        default: []
  snapshots:
    description: Nodes as snapshots, see P(rdma.k8s.node_info#module), whose NICs are compared with the rails.
    type: list
    elements: dict
    default: []
  read:
    description: Whether the cluster is asked.
    type: bool
    default: false
  allow_missing_kinds:
    description: Do not refuse when a definition or the network of the cluster is missing, because it comes later.
    type: bool
    default: false
  fail_on_problems:
    description: Fail when something is wrong, with all findings in RV(ignore:details).
    type: bool
    default: true
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.rail_table
  - module: rdma.k8s.cluster_objects
  - module: rdma.k8s.spiderpool_ready_info
"""

EXAMPLES = r"""
- name: Judge a table before there is a cluster
  rdma.k8s.spiderpool_plan_info:
    node_selector:
      node-role.kubernetes.io/rdma: "true"
    link_type: eth
    mtu: 4200
    rails:
      - {pci: "0000:86:00.0", subnet: 172.16.11.0/24, gateway: 172.16.11.254}
      - {pci: "0000:86:00.1", subnet: 172.16.12.0/24, gateway: 172.16.12.254}

- name: List the mistakes of pasted manifests
  rdma.k8s.spiderpool_plan_info:
    rails: "{{ rails }}"
    node_selector: "{{ labels }}"
    manifests: "{{ lookup('ansible.builtin.file', 'guide.yml') | ansible.builtin.from_yaml_all | list }}"
    fail_on_problems: false
  register: plan
"""

RETURN = r"""
rails:
  description: The table with all values, as P(rdma.k8s.rail_table#module) returns it.
  returned: success
  type: list
  elements: dict
  sample: [{number: 1, pci: "0000:86:00.0", resource: gpu1sriov}]
ib_kubernetes:
  description: Account, rights, settings and Deployment of ib-kubernetes, in this order; empty without O(ib_kubernetes).
  returned: success
  type: list
  elements: dict
  sample: []
objects:
  description: Policies, pools and networks, in the order in which they are applied.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: spiderpool.spidernet.io/v2beta1, kind: SpiderIPPool, metadata: {name: gpu1sriov-net}, spec: {}}]
test:
  description: The DaemonSet for tests; empty without an image.
  returned: success
  type: list
  elements: dict
  sample: []
networks:
  description: C(NAMESPACE/NAME) of the networks.
  returned: success
  type: list
  elements: str
  sample: [spiderpool/gpu1sriov-eth]
findings:
  description: All findings.
  returned: success
  type: list
  elements: dict
  contains:
    subject:
      description: What it is about.
      type: str
      returned: always
      sample: rails
    code:
      description: A word that stays.
      type: str
      returned: always
      sample: rootdevice-overlap
    at:
      description: The place in it.
      type: str
      returned: always
      sample: pci
    severity:
      description: V(error) or V(warning).
      type: str
      returned: always
      sample: error
    message:
      description: One sentence.
      type: str
      returned: always
      sample: "the NIC 0000:86:00.0: rails 1, 2 have it, and each needs one of its own"
problems:
  description: The errors among them, as sentences.
  returned: success
  type: list
  elements: str
  sample: []
warnings_found:
  description: The others, as sentences.
  returned: success
  type: list
  elements: str
  sample: []
nodes:
  description: The nodes that the selector fits; null when the cluster was not asked.
  returned: success
  type: list
  elements: str
  sample: [worker1, worker2]
values:
  description: The values for the chart.
  returned: success
  type: dict
  sample: {sriov: {install: true}}
gpu_operator_values:
  description:
    - The values for the chart of the GPU operator with which NICs reach the memory of GPUs, where the driver of the
      NICs is the host's own. As a file they are for C(helm --values).
    - The module does not install the operator.
  returned: success
  type: dict
  sample: {driver: {rdma: {enabled: true, useHostMofed: true}}, gdrcopy: {enabled: true}}
versions:
  description: The versions whose fields and rules were taken.
  returned: success
  type: dict
  sample: {spiderpool: 1.2.1, operator: 1.3.0}
missing:
  description: Definitions that the cluster does not have; null when it was not asked.
  returned: success
  type: list
  elements: str
  sample: []
ours:
  description:
    - What carries the labels of the role in the cluster, in the order in which it is applied.
    - It is null when the cluster was not asked.
  returned: success
  type: list
  elements: dict
  sample: []
left_over:
  description: Those of them that the table does not make any more.
  returned: success
  type: list
  elements: dict
  sample: []
users:
  description: Pods that have resources of policies with these labels, as C(NAMESPACE/NAME).
  returned: success
  type: list
  elements: str
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, _spiderpool

_TEXTS: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
_DICTS: dict[str, Any] = {"type": "list", "elements": "dict", "default": []}
_NO: dict[str, Any] = {"type": "bool", "default": False}
_YES: dict[str, Any] = {"type": "bool", "default": True}
_DICT: dict[str, Any] = {"type": "dict", "default": {}}


def _text(default: str, *choices: str) -> dict[str, Any]:
    return {"type": "str", "default": default, **({"choices": list(choices)} if choices else {})}


_PROGRAM: dict[str, Any] = {
    "image": _text(""),
    "replicas": {"type": "int", "default": 2},
    "guid_start": _text("02:00:00:00:00:00:00:00"),
    "guid_end": _text("02:FF:FF:FF:FF:FF:FF:FF"),
    "node_selector": _DICT,
    "tolerations": {"type": "list", "elements": "dict"},
    "pull_secrets": {**_TEXTS, "no_log": False},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "rails": {"type": "list", "elements": "raw", "default": []},
            "link_type": _text(""),
            "vfs": {"type": "int", "default": 8},
            "mtu": {"type": "int"},
            "node_selector": _DICT,
            "nodes": _TEXTS,
            "namespace": _text("spiderpool"),
            "network_namespace": _text("spiderpool"),
            "resource_prefix": _text("spidernet.io"),
            "priority": {"type": "int", "default": 99},
            "netns_mode": _text("exclusive", "exclusive", "shared"),
            "netns_owner": _text("node", "node", "operator"),
            "inject": _text(""),
            "max_unavailable": {"type": "str"},
            "drain": _YES,
            "gpudirect": _NO,
            "spiderpool_version": _text("1.2.1"),
            "operator_version": _text("1.3.0"),
            "test_image": _text(""),
            "test_namespace": _text("default"),
            "test_command": {"type": "list", "elements": "str", "default": ["sleep", "infinity"]},
            "test_tolerations": _DICTS,
            "default_network": _text(""),
            "manifests": _DICTS,
            "install": _NO,
            "values": _DICT,
            "set_expressions": _TEXTS,
            "registry": _text(""),
            "metrics": _NO,
            "grafana": _NO,
            "gateway_detection": _YES,
            "inject_include": _TEXTS,
            "inject_exclude": _TEXTS,
            "sources": _TEXTS,
            "targets": _TEXTS,
            "ufm_keys": {"type": "list", "elements": "str", "no_log": False},
            "ib_kubernetes": {"type": "dict", "options": _PROGRAM},
            "snapshots": _DICTS,
            "read": _NO,
            "allow_missing_kinds": _NO,
            "fail_on_problems": _YES,
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    libraries = _kube.LIBRARIES if module.params["read"] else ()
    _module.run(module, lambda: _spiderpool.plan(module), libraries)


if __name__ == "__main__":
    main()
