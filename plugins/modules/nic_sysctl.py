#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_sysctl
short_description: Set the ARP and reverse path settings of RDMA NICs
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Sets what RDMA NICs need that are in one network, all NICs and all settings in one go, now and for each boot by the
    file C(/etc/sysctl.d/99-zz-rdma-k8s.conf). Its whole content is managed.
  - The kernel takes the larger one of the settings of C(all) and of the interface. Where that makes a wanted setting
    void, the module says so and changes nothing.
  - What the Oracle Cloud Agent sets itself is left to it and named in RV(left_to_agent).
  - At least one of the five settings is needed.
  - It needs no library on the node.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  nics:
    description:
      - Names of interfaces. The list must be the whole one for the node, and it must not be empty.
      - The NIC of the default route is refused, also as a part of a bond, a bridge or below a VLAN.
    type: list
    elements: str
    required: true
  arp_ignore:
    description: Answer ARP requests only for addresses of the NIC itself, with V(1).
    type: int
    choices: [0, 1, 2, 3, 8]
  arp_announce:
    description: Ask with the address of the NIC only, with V(2).
    type: int
    choices: [0, 1, 2]
  arp_filter:
    description: Answer ARP requests only when the answer would leave by this NIC, with V(1).
    type: int
    choices: [0, 1]
  rp_filter:
    description: V(0) for none, V(2) for loose. V(1), strict, drops what arrives on all NICs but one.
    type: int
    choices: [0, 1, 2]
  accept_local:
    description: Accept packets with an own address as their source, with V(1).
    type: int
    choices: [0, 1]
  take_from_agent:
    description:
      - Whether settings are set that the Oracle Cloud Agent sets itself, which is so when C(modify_arp) of its
        C(rdma_network.json) is true and C(arp-settings) name them. It may set them back.
    type: bool
    default: false
  persist:
    description: Whether the file is written.
    type: bool
    default: true
seealso:
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Keep the rails of a node apart
  rdma.k8s.nic_sysctl:
    nics: [rdma0, rdma1, rdma2, rdma3]
    arp_ignore: 1
    arp_announce: 2
    rp_filter: 2
"""

RETURN = r"""
left_to_agent:
  description: The settings that the Oracle Cloud Agent sets itself.
  returned: success
  type: list
  elements: dict
  contains:
    nic:
      description: Name of the interface.
      type: str
      returned: always
      sample: rdma0
    name:
      description: The setting.
      type: str
      returned: always
      sample: arp_ignore
    found:
      description: What it is.
      type: str
      returned: always
      sample: "1"
    agent:
      description: What the agent's file says.
      type: str
      returned: always
      sample: "1"
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [set /proc/sys/net/ipv4/conf/rdma0/arp_ignore, write /etc/sysctl.d/99-zz-rdma-k8s.conf]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import nic_sysctl


def main() -> None:
    module = AnsibleModule(
        argument_spec=nic_sysctl.ARGUMENTS,
        required_one_of=[sorted(nic_sysctl.VALUES)],
        supports_check_mode=True,
    )
    _change.run(module, "nic_sysctl", nic_sysctl.act)


if __name__ == "__main__":
    main()
