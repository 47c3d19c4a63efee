#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_mtu
short_description: Set the MTU of NICs, now and for the next boot
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Sets the MTU of interfaces by netlink, and keeps it by a file of whoever configures the interface. That is found out
    for each of them; it can be netplan, systemd-networkd, NetworkManager, the network scripts, or nobody.
  - The file is one of our own beside those of the owner, or a marked block in C(ifcfg-NAME). No line of others is
    changed. Where such a line sets another MTU and counts more, that is an error that names it.
  - What netplan is to read is tried with C(netplan generate) in a directory apart. C(netplan apply) is never run, and
    no service is restarted.
  - The NIC of the default route, and the NICs of the Oracle Cloud Agent, are refused. Where it cannot be told which NIC
    carries the default route, all are.
  - The MTU must be one that the device takes, and a virtual function never gets more than its physical one has.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
attributes:
  async:
    description: Supports being used with the C(async) keyword.
    support: full
options:
  nics:
    description: Names of interfaces of the host.
    type: list
    elements: str
    required: true
  mtu:
    description: The MTU in bytes.
    type: int
  state:
    description:
      - V(present) sets O(mtu).
      - V(absent) removes our files for the interfaces. Their MTU stays until the next boot. A file that is for further
        interfaces is only removed when all of them are named.
    type: str
    choices: [present, absent]
    default: present
  live:
    description: Whether the MTU is set now.
    type: bool
    default: true
  persist:
    description: Whether the MTU is kept for the next boot.
    type: bool
    default: true
seealso:
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Give the physical functions an MTU that holds RDMA messages of 4096 bytes
  rdma.k8s.nic_mtu:
    nics: [ens1f0np0, ens2f0np0]
    mtu: 4200
  register: mtu

- name: Say who keeps it
  ansible.builtin.debug:
    msg: "{{ item.name }}: {{ item.owner }}, {{ item.file or item.source }}"
  loop: "{{ mtu.nics }}"
"""

RETURN = r"""
nics:
  description: What became of each NIC, in the order of O(nics).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
      sample: ens1f0np0
    before:
      description: Its MTU before.
      type: int
      returned: always
      sample: 1500
    mtu:
      description: Its MTU now, or after the run that check mode predicts.
      type: int
      returned: always
      sample: 4200
    owner:
      description: Who configures it, V(netplan), V(systemd-networkd), V(NetworkManager), V(ifcfg), V(ifupdown) or
        V(none).
      type: str
      returned: always
      sample: netplan
    source:
      description: The file in which it is configured; empty when there is none.
      type: str
      returned: always
      sample: /run/systemd/network/10-netplan-ens1f0np0.network
    file:
      description: Our file that keeps the MTU; empty when none is needed, or nothing is kept.
      type: str
      returned: always
      sample: /etc/netplan/99-rdma-k8s-ens1f0np0.yaml
    children:
      description: What is made of the NIC, on the host and in pods, and what its MTU becomes. An ipvlan follows its
        parent; a macvlan or VLAN is only lowered with it.
      type: list
      elements: dict
      returned: always
      sample: [{name: rdma0, kind: ipvlan, where: namespace cni-1, mtu: 4200}]
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [set ens1f0np0, write /etc/netplan/99-rdma-k8s-ens1f0np0.yaml]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import nic_mtu


def main() -> None:
    module = AnsibleModule(
        argument_spec=nic_mtu.ARGUMENTS,
        required_if=[("state", "present", ["mtu"])],
        supports_check_mode=True,
    )
    _change.run(module, "nic_mtu", nic_mtu.act)


if __name__ == "__main__":
    main()
