#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oca_config
short_description: Set the RDMA network of the Oracle Cloud Agent
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Gives C(rdma_network.json) of the agent's HPC plugin another RDMA network, together with the netmasks in it that
    depend on it. Every other byte of the file stays as it is.
  - Before anything is written the network is checked. It must hold all RDMA NICs of a node of the primary VNIC subnet,
    and overlap nothing that the node, the metadata service or O(networks) name as in use.
  - The content before the last change is kept beside the file as C(rdma_network.json.previous); what was there before
    the first change is in the undo record of the node.
  - Nothing is restarted. RV(restart_required) names what still works with the former files.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
attributes:
  async:
    description: Supports being used with the C(async) keyword.
    support: full
options:
  state:
    description:
      - V(present) makes the directory and sets O(rdma_network).
      - V(directory) only makes the directory, as a volume of the type DirectoryOrCreate does, with mode 0755. One that
        is there stays as it is.
      - V(absent) removes C(rdma_network.json). Without it the agent itself uses 192.168.0.0/16, while the driver
        assumes 10.224.0.0/12.
    type: str
    choices: [present, directory, absent]
    default: present
  rdma_network:
    description: The RDMA network, an IPv4 prefix with its host bits cleared.
    type: str
  nics:
    description: How many RDMA NICs of a node the network must hold, 1 to 16.
    type: int
    default: 16
  primary_subnet:
    description: Subnet of the node's primary VNIC. Without it the metadata service is asked.
    type: str
  networks:
    description:
      - Networks that the RDMA network must not overlap, lists of prefixes by a name of your choice, such as C(pods) and
        C(services). Subnets of the VNICs and routes of the node are known without it.
    type: dict
    default: {}
  child_range:
    description: The range of the pods' children, which must not overlap either.
    type: str
  replace_unusable:
    description:
      - Whether a C(rdma_network.json) that cannot be understood is replaced by a new one with the network settings
        alone, also one that is no UTF-8. The former one is kept.
    type: bool
    default: false
  driver_started_at:
    description:
      - When the driver's pod of this node started, in seconds since the epoch, as the cluster tells it. With it
        RV(restart_required) names the driver also when it was not started again after an earlier change.
    type: int
  imds_url:
    description: Base URL of the metadata service, with a literal link-local or loopback address.
    type: str
  imds_timeout:
    description: Limit of each request to it in seconds.
    type: float
    default: 5
seealso:
  - module: rdma.k8s.oca_config_info
  - module: rdma.k8s.child_range_check
"""

EXAMPLES = r"""
- name: Set the RDMA network
  rdma.k8s.oca_config:
    rdma_network: 10.160.0.0/11
    child_range: 10.208.0.0/12
    networks:
      pods: [10.240.0.0/12]
      services: [10.96.0.0/16]
  register: oca

- name: Say what must be restarted
  ansible.builtin.debug:
    msg: "{{ item.reason }} {{ item.command }}"
  loop: "{{ oca.restart_required }}"

- name: Make the directory that the driver's pods mount
  rdma.k8s.oca_config:
    state: directory
"""

RETURN = r"""
network:
  description: The RDMA network of the file; V(none) unless O(state=present).
  returned: success
  type: str
  sample: 10.160.0.0/11
netmask:
  description: Its netmask, as it stands in the file; V(none) unless O(state=present).
  returned: success
  type: str
  sample: 255.224.0.0
previous:
  description: Path of the copy of the content before the last change; empty when there is none.
  returned: success
  type: str
  sample: /etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure/rdma_network.json.previous
agent:
  description: The agent's service.
  returned: success
  type: dict
  contains:
    unit:
      description: Its unit; empty when none runs.
      type: str
      returned: always
      sample: snap.oracle-cloud-agent.oracle-cloud-agent.service
    started:
      description: When it started, in seconds since the epoch; V(none) when it is not known.
      type: int
      returned: always
      sample: 1772000000
restart_required:
  description: What must be started again, because it has read the files before their last change.
  returned: success
  type: list
  elements: dict
  contains:
    component:
      description: V(agent) or V(driver).
      type: str
      returned: always
      sample: agent
    reason:
      description: One sentence.
      type: str
      returned: always
      sample: "The agent reads its files when it starts: the files change in this run."
    command:
      description: How to do it by hand.
      type: str
      returned: always
      sample: snap restart oracle-cloud-agent
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [change /etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure/rdma_network.json]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import oca_run


def main() -> None:
    module = AnsibleModule(
        argument_spec=oca_run.ARGUMENTS,
        required_if=[("state", "present", ["rdma_network"])],
        supports_check_mode=True,
    )
    _change.run(module, "oca_config", oca_run.act)


if __name__ == "__main__":
    main()
