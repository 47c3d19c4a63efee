#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: link_type
short_description: Read and set the link type of RDMA cards
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Compares the link type, Ethernet or InfiniBand, that a card works with now, that of its next reset, and the wished
    one, and writes the wished one into its firmware where it is missing.
  - C(mlxconfig) or C(mstconfig) is used, whichever the node has, and C(devlink) for cards of the driver C(mlx4_core),
    where the change takes effect at once.
  - Nothing is reset. RV(reboot_required) says that the node must be rebooted, or the firmware reset, before the card
    works with the wished type. Some machines need to be switched off for it. When two reboots did not bring the type,
    the module refuses with the code V(reboot_budget_spent) instead of asking for a third.
  - All cards are asked before the first one is written. A card without the setting, whose type is fixed, is refused
    with the code V(link_type_not_configurable) unless it has the wished type.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  devices:
    description:
      - PCI addresses, interfaces or RDMA devices, at least one. Ports of one card are set together, whichever is named.
    type: list
    elements: str
    required: true
  link_type:
    description: The wished type. Without it the types are only read.
    type: str
    choices: [eth, ib]
  ports:
    description: Numbers of the ports that are meant, at least one. Without it all ports of each card.
    type: list
    elements: int
  allow_firmware:
    description:
      - Consent to write into firmware. Without it the module fails with the code V(consent_missing) when something
        must be written, also in check mode.
    type: bool
    default: false
  tool:
    description: The tool to use.
    type: str
    choices: [auto, mlxconfig, mstconfig, devlink]
    default: auto
seealso:
  - module: rdma.k8s.roce_qos
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Read the link types
  rdma.k8s.link_type:
    devices: [mlx5_0, mlx5_1]
  register: cards

- name: Make a card an Ethernet card
  rdma.k8s.link_type:
    devices: ["0000:3b:00.0"]
    link_type: eth
    allow_firmware: true
  register: cards

- name: Say that a reboot is owed
  ansible.builtin.debug:
    msg: Reboot this node.
  when: cards.reboot_required
"""

RETURN = r"""
reboot_required:
  description: Whether a card works with another type than that of its next reset.
  returned: success
  type: bool
  sample: true
cards:
  description: The cards as they are read afterwards; in check mode as they are before.
  returned: success
  type: list
  elements: dict
  contains:
    pci:
      description: PCI address of the first function.
      type: str
      returned: always
      sample: "0000:3b:00.0"
    tool:
      description: The tool that was used.
      type: str
      returned: always
      sample: mstconfig
    configurable:
      description: Whether the card has the setting.
      type: bool
      returned: always
      sample: true
    ports:
      description: The ports.
      type: list
      elements: dict
      returned: always
      contains:
        port:
          description: Number of the port.
          type: int
          returned: always
          sample: 1
        default:
          description: V(IB), V(ETH) or V(VPI), as the card was made; V(none) where the tool does not tell.
          type: str
          returned: always
          sample: IB
        current:
          description: The type that the card works with.
          type: str
          returned: always
          sample: IB
        next:
          description: The type after the next reset.
          type: str
          returned: always
          sample: ETH
        link_layer:
          description: What sysfs says, V(Ethernet) or V(InfiniBand); V(none) without an RDMA device.
          type: str
          returned: always
          sample: InfiniBand
    set:
      description: Settings that must still be written, with their numbers; in check mode what would be written.
      type: dict
      returned: always
      sample: {}
    pending:
      description: Ports that wait for a reset only.
      type: list
      elements: int
      returned: always
      sample: [1]
    reboot_required:
      description: Whether this card waits for a reset.
      type: bool
      returned: always
      sample: true
    contradictions:
      description: Where firmware, sysfs and PCI class differ about the present type.
      type: list
      elements: str
      returned: always
      sample: []
    wanted:
      description: The wished type.
      type: str
      returned: always
      sample: eth
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: ["set mstconfig 0000:3b:00.0 LINK_TYPE_P1"]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import firmware, link_type


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "required": True},
            "link_type": {"type": "str", "choices": ["eth", "ib"]},
            "ports": {"type": "list", "elements": "int"},
            "allow_firmware": {"type": "bool", "default": False},
            "tool": {"type": "str", "choices": ["auto", *firmware.TOOLS], "default": "auto"},
            "host_root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )

    def act(changes: _change.Changes, given: dict) -> dict:
        return link_type.apply(
            changes,
            given["devices"],
            given["link_type"],
            ports=given["ports"],
            tool=given["tool"],
            allow_firmware=given["allow_firmware"],
        )

    _change.run(module, link_type.OWNER, act)


if __name__ == "__main__":
    main()
