#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oke_network_info
short_description: The networks around an OKE cluster, each with where it is known from
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads the whole pod and service networks of an OKE cluster, the networks of its VCN and of the subnets, the subnets
    of VCN-native pods, and the peered networks as far as the cloud tells them.
  - The result is what O(rdma.k8s.child_range_check#module:networks) takes. The RDMA driver sees none of the whole
    networks, so it accepts a child range inside the pod network.
  - It asks the cloud when O(cluster_id) is given. Networks that the cloud does not know, or all of them where there are
    no credentials, are given by O(pod_cidrs), O(service_cidrs), O(vcn_cidrs), O(subnet_cidrs) and O(peer_cidrs).
  - Peers are what local peering gateways get advertised and what the gateway (DRG) of the VCN has routes to. A default
    route there is no network.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
options:
  cluster_id:
    description: OCID of the cluster. Without it nothing is asked.
    type: str
  auth:
    description:
      - Who asks. V(config_file) and V(security_token) take a profile of the SDK's configuration file.
      - V(instance_principal) is the instance on which the module runs, V(resource_principal) what the environment
        variables of a function or job say.
    type: str
    choices: [config_file, security_token, instance_principal, resource_principal]
    default: config_file
  config_file:
    description: Configuration file of the SDK. Without it C(~/.oci/config), or the environment variable
      C(OCI_CONFIG_FILE).
    type: path
  config_profile:
    description: Profile in the configuration file.
    type: str
    default: DEFAULT
  pass_phrase:
    description: Pass phrase of the private key, when the profile does not have it.
    type: str
  region:
    description: Region, such as V(us-ashburn-1). Without it the one of the profile or of the instance.
    type: str
  compartments:
    description: OCIDs of compartments in which there are subnets, node pools or gateways of the cluster's VCN, beside
      the compartments of the cluster and of the VCN. Subnets that the cluster uses are found without it.
    type: list
    elements: str
    default: []
  peers:
    description: Whether to read the peered networks too.
    type: bool
    default: true
  container_engine_endpoint:
    description: Address of the Kubernetes Engine service, V(https://HOST) or on loopback V(http://ADDRESS). Without it
      the one of the region.
    type: str
  network_endpoint:
    description: Address of the network service, likewise.
    type: str
  auth_endpoint:
    description: Address of the service that gives an instance its token, likewise.
    type: str
  timeout:
    description: Seconds for one answer.
    type: float
    default: 10
  time_limit:
    description: Seconds for everything.
    type: float
    default: 120
  attempts:
    description: How often one question is asked when the service is busy or fails, 1 to 10.
    type: int
    default: 4
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
  vcn_cidrs:
    description: Networks of the VCN.
    type: list
    elements: str
    default: []
  subnet_cidrs:
    description: Networks of subnets, which need not be inside the VCN's.
    type: list
    elements: str
    default: []
  peer_cidrs:
    description: Networks that are reached from the VCN, such as peered VCNs and networks behind a VPN.
    type: list
    elements: str
    default: []
requirements:
  - oci >= 2.189.0 (the SDK of Oracle Cloud Infrastructure), only with O(cluster_id)
notes:
  - Run it where the credentials are, most likely with C(delegate_to=localhost).
  - 'The least policy, for the compartments of the cluster and of its VCN: C(read clusters), C(inspect
    cluster-node-pools), C(inspect vcns), C(inspect subnets). With O(peers) also C(inspect local-peering-gateways),
    C(inspect drg-attachments) and C(inspect drg-route-tables). Nothing is ever changed.'
  - The cloud answers 404 both when something does not exist and when it may not be read. Of the cluster and its VCN
    that is an error; of anything else it is in RV(networks.unread), and RV(complete) is false.
  - 'Not told by the cloud, so give them by O(peer_cidrs): networks behind a default route, virtual node pools in
    subnets of another compartment, and what gateways of other VCNs lead to.'
seealso:
  - module: rdma.k8s.child_range_check
"""

EXAMPLES = r"""
- name: Read the networks of the cluster
  rdma.k8s.oke_network_info:
    cluster_id: "{{ oke_cluster_id }}"
    peer_cidrs: [192.168.100.0/22]
  delegate_to: localhost
  run_once: true
  register: around

- name: Check a child range against them
  rdma.k8s.child_range_check:
    child_range: 10.208.0.0/12
    networks: "{{ around.networks }}"
    nodes:
      - {name: n1, address: 10.140.77.19, subnet: 10.140.64.0/19}
  delegate_to: localhost
  run_once: true

- name: The same document without the cloud
  rdma.k8s.oke_network_info:
    pod_cidrs: [10.244.0.0/16]
    service_cidrs: [10.96.0.0/16]
    vcn_cidrs: [10.140.0.0/16]
  delegate_to: localhost
  run_once: true

- name: Ask as the instance on which this runs
  rdma.k8s.oke_network_info:
    cluster_id: ocid1.cluster.oc1.iad.aaaaexample
    auth: instance_principal
"""

RETURN = r"""
networks:
  description: The document that O(rdma.k8s.child_range_check#module:networks) takes.
  returned: success
  type: dict
  contains:
    document:
      description: What it is.
      type: str
      returned: always
      sample: rdma.k8s/networks
    schema_version:
      description: Version of its form.
      type: int
      returned: always
      sample: 1
    cluster:
      description: The cluster that was asked about, null when none was.
      type: dict
      returned: always
      sample: {name: prod, pod_network_types: [OCI_VCN_IP_NATIVE], ip_families: [IPv4]}
    networks:
      description: The IPv4 networks, each kind and network once.
      type: list
      elements: dict
      returned: always
      contains:
        network:
          description: The network.
          type: str
          returned: always
          sample: 10.244.0.0/16
        kind:
          description: V(pod), V(service), V(vcn), V(subnet) or V(peer). A subnet of VCN-native pods is a V(subnet) and
            a V(pod) network.
          type: str
          returned: always
          sample: pod
        sources:
          description: Where it is known from.
          type: list
          elements: str
          returned: always
          sample: [podsCidr of cluster prod]
        used_by:
          description: What of the cluster uses it, where that is known.
          type: list
          elements: str
          returned: always
          sample: []
    ipv6_networks:
      description: The IPv6 networks, likewise. They overlap no child range.
      type: list
      elements: dict
      returned: always
      sample: []
    unread:
      description: What could not be told, and why.
      type: list
      elements: dict
      returned: always
      sample: []
complete:
  description: Whether everything that was asked was answered.
  returned: success
  type: bool
  sample: true
pod_cidrs:
  description: The IPv4 networks of this kind, as other modules and the policy take them.
  returned: success
  type: list
  elements: str
  sample: [10.244.0.0/16]
service_cidrs:
  description: Likewise.
  returned: success
  type: list
  elements: str
  sample: [10.96.0.0/16]
vcn_cidrs:
  description: Likewise.
  returned: success
  type: list
  elements: str
  sample: [10.140.0.0/16]
subnet_cidrs:
  description: Likewise.
  returned: success
  type: list
  elements: str
  sample: [10.140.64.0/19]
peer_cidrs:
  description: Likewise.
  returned: success
  type: list
  elements: str
  sample: [192.168.100.0/22]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.cloud import oci_network
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import networks

OPTIONS: dict[str, Any] = {
    "cluster_id": {"type": "str"},
    "auth": {"type": "str", "choices": list(oci_network.METHODS), "default": "config_file"},
    "config_file": {"type": "path"},
    "config_profile": {"type": "str", "default": "DEFAULT"},
    "pass_phrase": {"type": "str", "no_log": True},
    "region": {"type": "str"},
    "compartments": {"type": "list", "elements": "str", "default": []},
    "peers": {"type": "bool", "default": True},
    "container_engine_endpoint": {"type": "str"},
    "network_endpoint": {"type": "str"},
    "auth_endpoint": {"type": "str"},
    "timeout": {"type": "float", "default": 10},
    "time_limit": {"type": "float", "default": 120},
    "attempts": {"type": "int", "default": 4},
    **{name: {"type": "list", "elements": "str", "default": []} for name in networks.OPTIONS},
}


def _asked(params: dict[str, Any]) -> networks.NetworkDocument:
    bounds.require_seconds(params, "timeout", "time_limit")
    bounds.require_numbers(params, attempts=(1, 10))
    return oci_network.read(
        oci_network.Question(params["cluster_id"], tuple(params["compartments"]), params["peers"]),
        oci_network.Login(
            params["auth"],
            params["config_file"] or "",
            params["config_profile"],
            params["pass_phrase"] or "",
            params["region"] or "",
        ),
        oci_network.Endpoints(
            params["container_engine_endpoint"] or "",
            params["network_endpoint"] or "",
            params["auth_endpoint"] or "",
        ),
        oci_network.Limits(params["timeout"], params["time_limit"], params["attempts"]),
    )


def main() -> None:
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    params = module.params

    def act() -> dict[str, Any]:
        document = networks.from_options(params)
        if params["cluster_id"] is not None:
            document = _asked(params).with_more(document)
        return {"networks": document.to_dict(), "complete": not document.unread, **document.options()}

    _module.run(module, act)


if __name__ == "__main__":
    main()
