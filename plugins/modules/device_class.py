#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: device_class
short_description: The DeviceClass for the RDMA NICs of DRANET
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes the DeviceClass that claims for RDMA NICs name, or writes it to a file.
  - It selects devices of the driver C(dra.net) whose attribute C(rdma) is true.
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - rdma.k8s.kube_objects
  - rdma.k8s.attributes.change
options:
  name:
    description: Name of the DeviceClass.
    type: str
    default: rdma-nic
  require_ready:
    description:
      - Select only devices of which the provider of this collection says that they can be served now, by the
        attribute C(rdma.k8s/ready).
      - A NIC that keeps the name of the operating system moves into the pod when its claim is prepared before the
        Oracle Cloud Agent gave it an address. With this option the scheduler waits instead.
      - Without that provider no device has the attribute, so nothing is selected.
    type: bool
    default: false
  cel:
    description: Further CEL expressions. A device must meet all of them.
    type: list
    elements: str
    default: []
seealso:
  - module: rdma.k8s.claim_template
"""

EXAMPLES = r"""
- name: Make the class
  rdma.k8s.device_class:

- name: Write a class for virtual functions to a file
  rdma.k8s.device_class:
    name: rdma-vf
    cel:
      - has(device.attributes["dra.net"].isSriovVf) && device.attributes["dra.net"].isSriovVf
    state: rendered
    path: manifests/device-class.yaml
"""

RETURN = r"""
manifest:
  description: The objects as YAML.
  returned: success
  type: str
  sample: "---\n# The RDMA NICs of DRANET.\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
objects:
  description: The same as data.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: rdma-nic}}]
actions:
  description: What was done, or would be done in check mode.
  returned: success
  type: list
  elements: str
  sample: [create DeviceClass rdma-nic]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _objects
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claims


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "rdma-nic"},
            "require_ready": {"type": "bool", "default": False},
            "cel": {"type": "list", "elements": "str", "default": []},
            **_objects.OPTIONS,
        },
        supports_check_mode=True,
    )
    params = module.params

    def render() -> _objects.Rendering:
        made = claims.device_class(params["name"], params["require_ready"], params["cel"])
        comment = ["Made by rdma.k8s.device_class: the RDMA NICs of DRANET."]
        return _objects.Rendering([made], comment, {})

    _objects.run(module, render)


if __name__ == "__main__":
    main()
