#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_memlock
short_description: Lift the limit of locked memory of the container runtime
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - RDMA pins memory, and a container inherits the limit of its runtime's process. This module gives the units of the
    container runtimes C(LimitMEMLOCK=infinity) by a drop-in file, where they do not have it already.
  - A runtime that runs has the limit after its next start only. RV(restart_required) says so; it is restarted with
    O(restart) alone.
  - A node without a known runtime is left as it is.
  - It needs no library on the node, but systemd.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  units:
    description:
      - Units of runtimes. Without it those of containerd, CRI-O, Docker, k3s and RKE2 that the node has.
    type: list
    elements: str
    default: []
  restart:
    description:
      - Consent to restart a runtime whose process has a lower limit. Containers go on running with containerd and
        CRI-O; with Docker only when it is set up for it. Containers that run keep their limit.
    type: bool
    default: false
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Let containers pin memory
  rdma.k8s.runtime_memlock:
  register: memlock

- name: Say what must be restarted
  ansible.builtin.debug:
    msg: "{{ memlock.units | selectattr('restart_required') | map(attribute='unit') }}"
"""

RETURN = r"""
units:
  description: The runtimes of the node as they are afterwards; in check mode as they are before.
  returned: success
  type: list
  elements: dict
  contains:
    unit:
      description: The unit.
      type: str
      returned: always
      sample: containerd.service
    configured:
      description: The limit of its next start, V(infinity) or bytes.
      type: str
      returned: always
      sample: infinity
    running:
      description: The limit of its process; empty when it does not run.
      type: str
      returned: always
      sample: "65536"
    restart_required:
      description: Whether its process has a lower limit.
      type: bool
      returned: always
      sample: true
restart_required:
  description: Whether one of them must be restarted.
  returned: success
  type: bool
  sample: true
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [write /etc/systemd/system/containerd.service.d/50-rdma-k8s-memlock.conf]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import memlock


def main() -> None:
    module = AnsibleModule(argument_spec=memlock.ARGUMENTS, supports_check_mode=True)
    _change.run(module, "runtime_memlock", memlock.act)


if __name__ == "__main__":
    main()
