#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ack_fabric_info
short_description: The IP version of the compute network of the Lingjun nodes of an ACK cluster
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Asks the cloud for the IP version of the network between the Lingjun nodes of an ACK cluster.
  - Pods with a network of their own can use RDMA only when it is IPv6. With IPv4 the switch of the device plugin for
    such pods is silently without effect. The version is chosen when the Lingjun cluster is made, by a support ticket.
  - No object of Kubernetes tells it. The node pools of the ACK cluster name their Lingjun clusters, and those are
    asked.
extends_documentation_fragment:
  - rdma.k8s.alibaba
  - rdma.k8s.attributes.node_info
options:
  eflo_endpoint:
    description: Address of the service of Lingjun clusters as V(HOST) or V(HOST:PORT). Without it the one of the
      region.
    type: str
requirements:
  - alibabacloud-eflo-controller20221215 >= 3.2.0 (the SDK of Lingjun clusters)
notes:
  - 'The RAM actions: C(cs:DescribeClusterNodePools), C(cs:DescribeClusterNodePoolDetail) and
    C(eflo:DescribeCluster). Nothing is ever changed.'
seealso:
  - module: rdma.k8s.ack_addon
"""

EXAMPLES = r"""
- name: Ask whether pods with a network of their own can use RDMA
  rdma.k8s.ack_fabric_info:
    cluster_id: "{{ ack_cluster_id }}"
    region: cn-beijing
  delegate_to: localhost
  run_once: true
  register: fabric

- name: Stop when they cannot
  ansible.builtin.assert:
    that: fabric.ip_version == 'IPv6'
  run_once: true
"""

RETURN = r"""
ip_version:
  description: V(IPv4) or V(IPv6), when it is known of all Lingjun node pools and the same, else null. A cluster without
    such pools has none.
  returned: success
  type: str
  sample: IPv6
ip_versions:
  description: The versions that there are.
  returned: success
  type: list
  elements: str
  sample: [IPv6]
complete:
  description: Whether the version of every Lingjun node pool is known.
  returned: success
  type: bool
  sample: true
node_pools:
  description: The Lingjun node pools.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id, as in the label C(alibabacloud.com/nodepool-id) of the nodes.
      type: str
      returned: always
      sample: np0123456789abcdef0123456789abcdef
    name:
      description: Name.
      type: str
      returned: always
      sample: lingjun
    lingjun_cluster:
      description: The Lingjun cluster, null when the pool does not name it.
      type: str
      returned: always
      sample: i110000000000000000001
    lingjun_group:
      description: Its group of nodes, likewise.
      type: str
      returned: always
      sample: ng-000000000001
    ip_version:
      description: V(IPv4) or V(IPv6), null when it is not known.
      type: str
      returned: always
      sample: IPv6
    evidence:
      description: Where it is known from, null when it is not.
      type: str
      returned: always
      sample: ComputingIpVersion of the Lingjun cluster i110000000000000000001
unread:
  description: What could not be told, each with C(code), C(message), C(hint), C(retryable) and C(details).
  returned: success
  type: list
  elements: dict
  sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _alibaba, _module
from ansible_collections.rdma.k8s.plugins.module_utils.cloud import ack_fabric

OPTIONS: dict[str, Any] = {**_alibaba.OPTIONS, "eflo_endpoint": {"type": "str"}}


def main() -> None:
    module = AnsibleModule(
        argument_spec=OPTIONS, required_one_of=[("region", "endpoint")], supports_check_mode=True
    )

    def act() -> dict[str, Any]:
        cloud = _alibaba.Cloud(module.params)
        return ack_fabric.read(cloud.ack(), cloud.lingjun, module.params["cluster_id"]).to_dict()

    _module.run(module, act)


if __name__ == "__main__":
    main()
