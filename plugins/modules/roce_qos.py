#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: roce_qos
short_description: Make the RoCE ports of a node lossless
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Lets the ports trust DSCP, turns PFC on for the priority of RDMA traffic alone, maps the DSCP values of RDMA traffic
    and of congestion notification packets (CNP) to their priorities, turns ECN on for RDMA traffic, and marks the
    traffic by the type of service of RDMA-CM and, where the driver has it, of the device.
  - Everything is read again afterwards. A driver that takes a setting without an error and does not have it is a
    failure.
  - The kernel is asked by DCB netlink. Where a driver needs the vendor's C(mlnx_qos), that is used.
  - Ports with the link layer InfiniBand are refused, and so are an interface whose driver has no DCB and the NIC of the
    default route. All that happens before anything is changed. A virtual function without DCB of its own gets the rest.
  - The settings are lost at a boot. With O(persist) a unit of systemd sets them again, once.
  - The switches are not looked at. They need the same priorities with PFC and ECN, or nothing here helps.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
  - rdma.k8s.attributes.libraries
options:
  interfaces:
    description:
      - Names of interfaces or RDMA devices, with C(*) and C(?) as wildcards. Each must fit at least one RDMA port.
      - The list must be the whole one for the node, since the file for the next boot has these ports and no others.
    type: list
    elements: str
    required: true
  rdma_priority:
    description: Priority of RDMA traffic, 0 to 7. It must be the one that the switches treat as lossless.
    type: int
    required: true
  cnp_priority:
    description: Priority of CNP, another one.
    type: int
    required: true
  rdma_dscp:
    description:
      - DSCP value of RDMA traffic, one of the eight that belong to its priority.
      - Without it, eight times the priority.
    type: int
  cnp_dscp:
    description: DSCP value of CNP, in the same way.
    type: int
  backend:
    description:
      - How trust, PFC and map are set. V(auto) takes netlink where the driver answers, else C(mlnx_qos) where it is
        installed.
    type: str
    choices: [auto, netlink, mlnx_qos]
    default: auto
  take_dcbx:
    description:
      - Whether the host takes DCBX over from firmware that negotiates with the switch and can override what is set
        here. Without it such a port is a warning. With O(persist) it is taken over at each boot, too.
    type: bool
    default: false
  tcp_ecn:
    description: The sysctl C(net.ipv4.tcp_ecn) of the whole node. Without it the sysctl stays as it is.
    type: int
    choices: [0, 1, 2]
  persist:
    description:
      - Whether the settings are set again at each boot, by C(/etc/rdma-k8s/roce-qos.sh) and the unit
        C(rdma-k8s-roce-qos.service). It needs the program C(dcb) of iproute2, or C(mlnx_qos), on the node.
      - V(false) leaves these files as they are.
    type: bool
    default: true
seealso:
  - module: rdma.k8s.link_type
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Make the RDMA NICs lossless on priority 5
  rdma.k8s.roce_qos:
    interfaces: [rdma*]
    rdma_priority: 5
    cnp_priority: 6
  register: qos

- name: Say what this node cannot prove
  ansible.builtin.debug:
    msg: "{{ qos.notes }}"

- name: Use other DSCP values, for the running system only
  rdma.k8s.roce_qos:
    interfaces: [ens6f0np0, ens6f1np1]
    rdma_priority: 3
    rdma_dscp: 26
    cnp_priority: 6
    persist: false
"""

RETURN = r"""
ports:
  description: The ports with their settings as they are read afterwards; in check mode as they are before.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The interface, else device and port.
      type: str
      returned: always
      sample: rdma0
    device:
      description: Name of the RDMA device.
      type: str
      returned: always
      sample: mlx5_0
    port:
      description: Number of its port.
      type: int
      returned: always
      sample: 1
    netdev:
      description: Name of the interface.
      type: str
      returned: always
      sample: rdma0
    link_layer:
      description: V(Ethernet).
      type: str
      returned: always
      sample: Ethernet
    dcb:
      description: Why there is no DCB; empty where there is.
      type: str
      returned: always
      sample: ''
    dcbx:
      description: Flags of DCBX as in the kernel's C(dcbnl.h), 1 for the host, 2 for firmware; V(none) without DCBX.
      type: int
      returned: always
      sample: 9
    trust:
      description: V(dscp) or V(pcp).
      type: str
      returned: always
      sample: dscp
    pfc:
      description: The priorities with PFC as a bit mask.
      type: int
      returned: always
      sample: 32
    dscp_map:
      description: DSCP values with their priorities.
      type: str
      returned: always
      sample: 40:5 48:6
    ecn_np:
      description: The priorities with a notification point as a bit mask; V(none) where the driver does not show it.
      type: int
      returned: always
      sample: 32
    ecn_rp:
      description: The priorities with a reaction point, in the same way.
      type: int
      returned: always
      sample: 32
    cnp_dscp:
      description: DSCP value of CNP; V(none) where the driver does not show it.
      type: int
      returned: always
      sample: 48
    cm_tos:
      description: Type of service of new connections of RDMA-CM.
      type: int
      returned: always
      sample: 160
    cm_mode:
      description: Default GID type of RDMA-CM.
      type: str
      returned: always
      sample: RoCE v2
    traffic_class:
      description: The traffic class that the device forces, -1 for none; V(none) where the driver has no such setting.
      type: int
      returned: always
      sample: 160
notes:
  description: What this node cannot prove or does not have.
  returned: success
  type: list
  elements: str
  sample:
    - The switches are not proven. They must carry the same priorities with PFC and ECN, or nothing here helps.
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [set rdma0 dscp_40, set rdma0 dscp_48, set rdma0 pfc]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import roce_qos


def main() -> None:
    module = AnsibleModule(argument_spec=roce_qos.ARGUMENTS, supports_check_mode=True)
    _change.run(module, roce_qos.OWNER, roce_qos.act, libraries=("pyroute2",))


if __name__ == "__main__":
    main()
