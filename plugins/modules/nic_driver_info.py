#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_driver_info
short_description: Whether the installed driver of NVIDIA's NICs is the one that runs
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Compares the modules C(mlx5_core) and C(mlx5_ib) that run with those that the next boot would load, by version and
    by the sum of their sources, and looks whether each physical function is bound and has an RDMA device.
  - A package that is installed proves nothing, since the driver that it replaces runs until the next boot.
  - Virtual functions are left out; they may belong to pods.
  - Nothing is changed. The module does not fail when the driver is not ready; see RV(ready).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
options:
  host_root:
    description: Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
    type: path
    default: /
requirements:
  - modinfo on the node
seealso:
  - module: rdma.k8s.kernel_modules
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Look at the driver
  rdma.k8s.nic_driver_info:
  register: driver

- name: Say what is owed
  ansible.builtin.debug:
    msg: "{{ driver.reboot_reason }}"
  when: driver.reboot_required
"""

RETURN = r"""
ready:
  description: Whether the installed driver runs, and every physical function is bound and has an RDMA device.
  returned: success
  type: bool
  sample: true
reboot_required:
  description: Whether another driver is installed than runs.
  returned: success
  type: bool
  sample: false
reboot_reason:
  description: Why; empty when none is owed.
  returned: success
  type: str
  sample: ""
problems:
  description: What else is wrong, in sentences.
  returned: success
  type: list
  elements: str
  sample: []
version:
  description: The version of C(mlx5_core) that runs; empty when it tells none, as modules of the kernel itself.
  returned: success
  type: str
  sample: 25.07-0.9.7
modules:
  description: The modules.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
      sample: mlx5_core
    running:
      description: C(version) and C(srcversion) as it runs; null when it is not loaded.
      type: dict
      returned: always
      sample: {version: 25.07-0.9.7, srcversion: 4C0A7E9B2F1D3A5E6B7C8D9}
    installed:
      description: The same as the next boot would load it; null when this kernel has none.
      type: dict
      returned: always
      sample: {version: 25.07-0.9.7, srcversion: 4C0A7E9B2F1D3A5E6B7C8D9}
    file:
      description: Its file.
      type: str
      returned: always
      sample: /lib/modules/6.8.0-90-generic/updates/dkms/mlx5_core.ko.zst
functions:
  description: The physical functions of NICs of NVIDIA.
  returned: success
  type: list
  elements: dict
  sample: [{address: "0000:86:00.0", driver: mlx5_core, has_device: true}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_driver as core
from ansible_collections.rdma.k8s.plugins.module_utils.host import nic_driver
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def _look(root: Root) -> dict[str, Any]:
    modules, functions = nic_driver.modules(root), nic_driver.functions(root)
    verdict = core.judge(modules, functions)
    running = modules[0].running
    return {
        "ready": verdict.is_ready,
        "reboot_required": bool(verdict.reboot_reason),
        "reboot_reason": verdict.reboot_reason,
        "problems": list(verdict.problems),
        "version": running.version if running is not None else "",
        "modules": [
            {
                "name": module.name,
                "running": module.running._asdict() if module.running is not None else None,
                "installed": module.installed._asdict() if module.installed is not None else None,
                "file": module.file,
            }
            for module in modules
        ],
        "functions": [
            {"address": entry.pci.address, "driver": entry.pci.driver, "has_device": entry.has_device}
            for entry in functions
        ],
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={"host_root": {"type": "path", "default": "/"}}, supports_check_mode=True
    )
    _module.run(module, lambda: _look(Root(module.params["host_root"])))


if __name__ == "__main__":
    main()
