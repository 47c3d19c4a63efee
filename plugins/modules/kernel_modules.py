#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_modules
short_description: Load kernel modules now and at each boot, and prove that they take effect
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Loads modules that are neither loaded nor built in, and names all of them in one file of C(/etc/modules-load.d),
    whose whole content is managed.
  - All modules are judged before the first is loaded. One that does not exist for the running kernel, and one that a
    line of a modprobe file or of the kernel command line keeps out, is an error that names the kernel, or the line.
  - C(nvidia_peermem) and C(gdrdrv) can be loaded and do nothing. They are judged by their effect.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
attributes:
  async:
    description: Supports being used with the C(async) keyword.
    support: full
options:
  modules:
    description: Names of modules; dashes and underscores are the same.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(present) loads the modules and writes the file.
      - V(absent) removes the file. Nothing is unloaded, since a NIC or a job can be using it.
    type: str
    choices: [present, absent]
    default: present
  load:
    description: Whether modules that are not there are loaded now.
    type: bool
    default: true
  persist:
    description: Whether the file is written, so that they are loaded at each boot.
    type: bool
    default: true
  file:
    description:
      - Name of the file in C(/etc/modules-load.d), without C(.conf). Several lists need several names.
      - A file that this module did not write is neither replaced nor removed; the task fails with C(file_foreign).
    type: str
    default: rdma-k8s
  verify:
    description:
      - Whether a module without effect is an error. C(nvidia_peermem) takes effect when the RDMA stack uses it, or when
        the GPU driver can hand out dma-bufs instead; C(gdrdrv) when C(/dev/gdrdrv) is its device.
      - In check mode a module that would be loaded cannot be judged.
    type: bool
    default: true
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Load what RDMA needs
  rdma.k8s.kernel_modules:
    modules: [ib_uverbs, rdma_ucm, mlx5_ib]

- name: Load what brings GPU memory to the NIC, and see that it does
  rdma.k8s.kernel_modules:
    modules: [nvidia_peermem, gdrdrv]
    file: rdma-k8s-gpu
"""

RETURN = r"""
modules:
  description: What each module was before, V(loaded), V(builtin) or V(absent).
  returned: success
  type: dict
  sample: {ib_uverbs: loaded, rdma_ucm: absent}
kernel:
  description: Release of the running kernel.
  returned: success
  type: str
  sample: 6.8.0-90-generic
file:
  description: The managed file.
  returned: success
  type: str
  sample: /etc/modules-load.d/rdma-k8s.conf
effects:
  description: For each module of which that can be told, whether it does what it is loaded for.
  returned: success
  type: list
  elements: dict
  contains:
    module:
      description: Its name.
      type: str
      returned: always
      sample: nvidia_peermem
    usable:
      description: Whether it takes effect; V(none) when that cannot be told.
      type: bool
      returned: always
      sample: true
    reason:
      description: What shows it.
      type: str
      returned: always
      sample: it is registered with ib_core
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [set rdma_ucm, write /etc/modules-load.d/rdma-k8s.conf]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.host import kernel_modules


def main() -> None:
    module = AnsibleModule(argument_spec=kernel_modules.ARGUMENTS, supports_check_mode=True)
    _change.run(module, "kernel_modules", kernel_modules.act)


if __name__ == "__main__":
    main()
