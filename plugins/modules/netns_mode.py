#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: netns_mode
short_description: Set the network namespace mode of the RDMA subsystem
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Brings the RDMA subsystem of a node to V(shared) or V(exclusive) mode, now by RDMA netlink and at the next boot by a
    file for modprobe. Where C(ib_core) is loaded from an initramfs that would give it another mode, the initramfs is
    built anew; otherwise it is left alone.
  - The running mode is compared first, and nothing that is right is written again. When nothing sets the mode and the
    kernel's default is what is wanted, no file is made.
  - The kernel refuses to switch while any other network namespace is alive, which is so on every node that runs pods.
    Then the mode of the next boot is set, RV(reboot_required) is true, and RV(reboot_reason) names what keeps the
    namespaces alive. This module never reboots.
  - A setting of somebody else that contradicts is never overwritten in silence. It fails with the code
    C(second_owner) before anything is changed.
  - It needs no library on the node.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  mode:
    description: The wanted mode. The DRANET profile of OKE needs V(shared), SR-IOV with isolated pods V(exclusive).
    type: str
    choices: [shared, exclusive]
    required: true
  path:
    description: The managed file in C(/etc/modprobe.d). Other lines in it stay.
    type: path
    default: /etc/modprobe.d/ib_core.conf
  foreign:
    description:
      - What to do with other modprobe files that set the mode.
      - V(report) names them in RV(foreign), and fails when one sets another mode.
      - V(clean) takes the setting out of them and leaves their other lines. For a file that a package owns, one of the
        same name in C(/etc/modprobe.d) takes its place. The file of the sriov-network-operator is never touched.
      - The kernel command line is only reported. Where it sets another mode, the next boot brings that one.
    type: str
    choices: [report, clean]
    default: report
  plan:
    description:
      - Name of what these reboots are for. When two reboots that were asked for under one name did not bring the mode,
        the third is refused with the code C(reboot_budget_spent).
      - Without it the name follows from O(mode). A name whose mode is reached counts from zero again.
    type: str
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Shared mode, as DRANET on OKE needs it
  rdma.k8s.netns_mode:
    mode: shared
  become: true
  register: mode

- name: Reboot where it is owed
  ansible.builtin.reboot:
  become: true
  when: mode.reboot_required

- name: Exclusive mode, also where an old guide left lines in other files
  rdma.k8s.netns_mode:
    mode: exclusive
    foreign: clean
  become: true
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
  sample: [change /etc/modprobe.d/ib_core.conf, set RDMA namespace mode]
mode:
  description: The wanted mode.
  returned: success
  type: str
  sample: shared
running_mode:
  description: The mode of the running kernel now; none when C(ib_core) is not loaded.
  returned: success
  type: str
  sample: exclusive
running_mode_before:
  description: The mode before this task.
  returned: success
  type: str
  sample: exclusive
boot_mode:
  description: The mode that the next boot brings; none when a value in the way is not valid.
  returned: success
  type: str
  sample: shared
boot_mode_before:
  description:
    - The mode that the next boot would have brought before this task, with the initramfs of each kernel looked into.
    - None also when it depends on the kernel that is booted.
  returned: success
  type: str
  sample: exclusive
reboot_required:
  description: Whether only a reboot can bring the wanted mode.
  returned: success
  type: bool
  sample: true
reboot_reason:
  description: Why, as a sentence; empty when no reboot is owed.
  returned: success
  type: str
  sample: >-
    The RDMA subsystem runs in exclusive mode and cannot be switched to shared mode, because another network namespace
    is alive: process 812 (pause).
namespaces:
  description: What keeps other network namespaces alive, when the running mode is another one than wanted; at most 8.
  returned: success
  type: list
  elements: str
  sample: [process 812 (pause)]
foreign:
  description: Settings of the mode outside the managed file.
  returned: success
  type: list
  elements: dict
  contains:
    source:
      description: Path of the file, or C(/proc/cmdline).
      type: str
      returned: always
      sample: /etc/modprobe.d/rdma.conf
    line:
      description: Line in the file.
      type: int
      returned: always
      sample: 1
    value:
      description: The text of the value.
      type: str
      returned: always
      sample: "0"
    mode:
      description: The mode that it means; none for a value that the kernel refuses.
      type: str
      returned: always
      sample: exclusive
    cleaned:
      description: Whether it was taken out, or would be in check mode.
      type: bool
      returned: always
      sample: false
initramfs:
  description: The initramfs images of the installed kernels.
  returned: success
  type: list
  elements: dict
  contains:
    image:
      description: Path of the image.
      type: str
      returned: always
      sample: /boot/initrd.img-6.8.0-1035-oracle
    kernel:
      description: Release of its kernel.
      type: str
      returned: always
      sample: 6.8.0-1035-oracle
    has_module:
      description: Whether C(ib_core) is inside, so that its options are read there.
      type: bool
      returned: always
      sample: true
    mode_before:
      description: The mode that the files in it gave before this task; none without the module.
      type: str
      returned: always
      sample: exclusive
    rebuilt:
      description: Whether it was built anew, or would be in check mode.
      type: bool
      returned: always
      sample: true
notes:
  description: What is left for a person to see; also shown as warnings.
  returned: success
  type: list
  elements: str
  sample: ["The mode is also set by /etc/modprobe.d/rdma.conf:1; keep one setting."]
code:
  description: Code of the error, see the page of error codes.
  returned: failure
  type: str
  sample: second_owner
details:
  description: The values that the error message mentions.
  returned: failure
  type: dict
  sample: {places: ["/etc/modprobe.d/sriov_network_operator_modules_config.conf:1"], operator: true}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import netns_mode


def main() -> None:
    module = AnsibleModule(argument_spec=netns_mode.ARGUMENTS, supports_check_mode=True)

    def act(changes: _change.Changes, given: dict) -> dict:
        result = netns_mode.act(changes, given)
        for note in result["notes"]:
            module.warn(note)
        return result

    _change.run(module, "netns_mode", act)


if __name__ == "__main__":
    main()
