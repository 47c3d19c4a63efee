#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_settings_info
short_description: Tell which settings of a node differ from what is wanted
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Asks several modules at once, in one run on the node, what they would change. A node where all is as wanted costs
    one task then, and not one for each setting.
  - Each module answers as it does in check mode. Nothing is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
options:
  settings:
    description:
      - What is wanted, as names of modules with their options. Their option for NICs may be left out.
      - The names are V(kernel_modules), V(netns_mode), V(oca_config), V(nic_mtu), V(nic_sysctl), V(roce_qos) and
        V(runtime_memlock).
    type: dict
    required: true
  nics:
    description:
      - Interfaces that modules are asked about which set NICs.
      - Without it all Ethernet ports with an RDMA device that are no virtual functions, but for that of the default
        route.
    type: list
    elements: str
    default: []
  only_rdma_network:
    description: Whether only the NICs of the RDMA network of OKE are taken when O(nics) is empty.
    type: bool
    default: false
  host_root:
    description: Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
    type: path
    default: /
seealso:
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Ask what differs
  rdma.k8s.node_settings_info:
    settings:
      netns_mode:
        mode: shared
      nic_sysctl:
        arp_ignore: 1
        arp_announce: 2
  register: look

- name: Show what would be done
  ansible.builtin.debug:
    msg: "{{ look.settings | dict2items | selectattr('key', 'in', look.pending) | map(attribute='value.actions') }}"
"""

RETURN = r"""
pending:
  description:
    - Modules that would change something, that refuse, or that have to say something, such as a reboot that is owed.
  returned: success
  type: list
  elements: str
  sample: [nic_sysctl]
nics:
  description: The interfaces that were asked about.
  returned: success
  type: list
  elements: str
  sample: [rdma0, rdma1]
found:
  description: All NICs of the node as RV(rdma.k8s.nic_info#module:nics); V(none) when they were not looked for.
  returned: success
  type: list
  elements: dict
settings:
  description:
    - The answer of each module by its name, with its return values as in check mode. V(none) when there was no NIC to
      ask about.
    - A module that refuses has C(refused) with C(code) and C(message) instead.
  returned: success
  type: dict
  sample: {nic_sysctl: {changed: true, actions: [set /proc/sys/net/ipv4/conf/rdma1/arp_ignore], left_to_agent: []}}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils._node_settings import NIC_SUBSETS, SETTINGS, ask
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import needs_netlink


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "required": True},
            "nics": {"type": "list", "elements": "str", "default": []},
            "only_rdma_network": {"type": "bool", "default": False},
            "host_root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    given = module.params
    looks = not given["nics"] and any(name in SETTINGS and SETTINGS[name].nics for name in given["settings"])
    netlink = "roce_qos" in given["settings"] or (looks and needs_netlink(given["host_root"], NIC_SUBSETS))

    def act() -> dict:
        wishes = {name: options or {} for name, options in given["settings"].items()}
        return ask(given["host_root"], wishes, given["nics"], given["only_rdma_network"])

    _module.run(module, act, libraries=("pyroute2",) if netlink else ())


if __name__ == "__main__":
    main()
