#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_undo
short_description: List and undo what this collection changed on a node
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Each module that changes a node keeps a record of what was there before, below C(/var/lib/rdma-k8s/undo). This
    module lists the records, or restores what they describe, the last change first.
  - Only what still is as this collection left it is restored. What somebody else changed since is left alone and said.
  - One object that cannot be restored does not stop the others; the module fails after it has done the rest.
  - What is restored has no record any more, so that a second run changes nothing.
  - Where a file of a unit of systemd was restored, systemd reads its units again; where one of netplan was, what it
    makes of its files is generated again. Nothing is restarted.
  - Where a file for modprobe was restored, each initramfs that took it along is built anew, also one of a kernel that
    was installed since.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
  - rdma.k8s.attributes.libraries
notes:
  - Undoing leaves no undo record itself.
  - A setting that is read at boot is restored for the next boot; RV(reboot_required) says when a reboot is owed.
options:
  state:
    description:
      - V(listed) changes nothing and returns what V(undone) would do.
      - V(undone) restores.
    type: str
    choices: [listed, undone]
    default: listed
  modules:
    description:
      - Only what these modules changed, by their names with or without C(rdma.k8s.).
      - Without it all changes of this collection are meant, also the environment that
        P(rdma.k8s.python_environment#module) made.
    type: list
    elements: str
  allow_firmware:
    description:
      - Consent to write settings of firmware back, such as a link type. Without it they are V(kept), also with
        O(state=listed).
    type: bool
    default: false
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: See what was changed on this node
  rdma.k8s.node_undo:
  register: changes

- name: Take the changes of two modules back
  rdma.k8s.node_undo:
    state: undone
    modules: [nic_mtu, roce_qos]

- name: Take everything back
  rdma.k8s.node_undo:
    state: undone
"""

RETURN = r"""
records:
  description:
    - One entry for each object that this collection changed, the last change first.
    - An object that is back at its value before by itself is not among them.
  returned: always
  type: list
  elements: dict
  contains:
    module:
      description: The module that changed it first.
      type: str
      returned: always
      sample: nic_mtu
    kind:
      description: V(file), V(directory), V(value) (of the kernel) or another kind of setting.
      type: str
      returned: always
      sample: file
    name:
      description: The object.
      type: str
      returned: always
      sample: /etc/modprobe.d/ib_core.conf
    outcome:
      description:
        - V(restored); V(kept) when it was changed by somebody else since, is in use, or needs consent; V(gone) when
          there is no such object now; V(failed).
        - In check mode and with O(state=listed) it is what would become of it.
      type: str
      returned: always
      sample: restored
    reason:
      description: A sentence, for V(kept), V(gone) and V(failed).
      type: str
      returned: always
      sample: ""
    changed_at:
      description: When this collection changed it last.
      type: str
      returned: always
      sample: "2026-08-01T12:00:00Z"
reboot_required:
  description: Whether the node must be rebooted before all that was restored, or would be, counts.
  returned: always
  type: bool
  sample: true
reboot_reasons:
  description: Why, a sentence for each reason.
  returned: always
  type: list
  elements: str
  sample: [The RDMA subsystem runs in exclusive mode until a boot brings shared mode.]
restart_required:
  description: What still works with what was there before the undo.
  returned: always
  type: list
  elements: dict
  contains:
    component:
      description: V(agent), V(driver), or a unit of systemd.
      type: str
      returned: always
      sample: agent
    reason:
      description: Why.
      type: str
      returned: always
      sample: "The agent reads its files when it starts: the files change in this run."
    command:
      description: What starts it again.
      type: str
      returned: always
      sample: snap restart oracle-cloud-agent
actions:
  description: What was restored, or would be.
  returned: always
  type: list
  elements: str
  sample: [restore /etc/modprobe.d/ib_core.conf]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import undo, undo_owed, undo_report
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["listed", "undone"], "default": "listed"},
            "modules": {"type": "list", "elements": "str"},
            "allow_firmware": {"type": "bool", "default": False},
            "host_root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    root = Root(module.params["host_root"])
    owners = undo_report.owners_of(module.params["modules"])
    only_tell = module.check_mode or module.params["state"] == "listed"
    done: list = []
    reasons: list = []
    restarts: list = []
    error = None
    try:
        _module.prepare(module, undo_report.libraries(root, owners))
        done = undo.undo(root, owners, only_tell, () if module.params["allow_firmware"] else undo.FIRMWARE)
        if module.params["state"] == "undone":
            error = undo_report.failure(done)
        reasons, restarts = undo_owed.reboots(root, done), undo_owed.restarts(root, done)
        if not only_tell:
            undo_report.reload_units(root, done)
    except RdmaError as caught:
        error = error or caught
    restored = [each for each in done if each.outcome == "restored"]
    result = {
        "records": [undo_report.entry(each) for each in done],
        "actions": [],
        "changed": False,
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "restart_required": restarts,
    }
    if module.params["state"] == "undone":
        result["changed"] = bool(restored)
        result["actions"] = [undo_report.action(each) for each in restored]
        if module._diff:
            result["diff"] = [undo_report.difference(each) for each in restored]
    if error is not None:
        _module.fail(module, error, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
