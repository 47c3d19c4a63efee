#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: imds_info
short_description: Read the metadata service of Oracle Cloud as the RDMA driver does
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Asks the endpoints C(/instance/), C(/host/) and C(/vnics/) of the metadata service and parses the answers by the
    rules of DRANET's provider for OKE.
  - Requests go straight to the address of the service. No proxy of the environment is used and no redirect is followed.
  - Documents are reduced to the fields that are used, and cloud identifiers are shortened.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
attributes:
  async:
    description: Supports being used with the C(async) keyword.
    support: full
options:
  url:
    description:
      - Base URL of the service, with a literal link-local or loopback address.
      - Without it the service at V(http://169.254.169.254/opc/v2) is asked.
    type: str
  timeout:
    description: Limit of each request in seconds, at most 600.
    type: float
    default: 5
seealso:
  - module: rdma.k8s.node_info
  - module: rdma.k8s.oca_config_info
"""

EXAMPLES = r"""
- name: Read the metadata
  rdma.k8s.imds_info:
  register: imds

- name: Stop where the address of the primary VNIC is not known
  ansible.builtin.assert:
    that: imds.primary_vnic is not none
    fail_msg: "{{ imds.findings | map(attribute='message') | join(' ') }}"
"""

RETURN = r"""
shape:
  description: Shape of the instance; empty when it is not known.
  returned: success
  type: str
  sample: BM.GPU.H100.8
primary_vnic:
  description: Address and subnet of the first VNIC; V(none) when they are not known.
  returned: success
  type: dict
  contains:
    address:
      description: IPv4 address.
      type: str
      returned: always
      sample: 10.140.77.19
    subnet:
      description: Subnet, masked.
      type: str
      returned: always
      sample: 10.140.64.0/19
fabric:
  description: RDMA fabric data; V(none) when it is absent or a part of it is.
  returned: success
  type: dict
  contains:
    ipv6:
      description: Whether the RDMA network is IPv6.
      type: bool
      returned: always
      sample: false
    planes:
      description: Number of planes.
      type: int
      returned: always
      sample: 1
topology:
  description: Shortened identifiers of the place in the fabric; empty texts where they are not known.
  returned: success
  type: dict
  contains:
    hpc_island_id:
      description: HPC island.
      type: str
      returned: always
      sample: aaaaaaaa7xq
    network_block_id:
      description: Network block.
      type: str
      returned: always
      sample: aaaaaaaab2s
    local_block_id:
      description: Local block.
      type: str
      returned: always
      sample: aaaaaaaac4t
    rack_id:
      description: Rack.
      type: str
      returned: always
      sample: 5f2d7e6c0a1b
    gpu_memory_fabric_id:
      description: GPU memory fabric.
      type: str
      returned: always
      sample: ''
findings:
  description: What could not be read, and what is unusable in the answers.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable name of the problem.
      type: str
      returned: always
      sample: read_failed
    message:
      description: One sentence.
      type: str
      returned: always
      sample: "imds:/host/: HTTP status 404."
    hint:
      description: What to do about it; may be empty.
      type: str
      returned: always
      sample: ''
    retryable:
      description: Whether it can go away without a person acting.
      type: bool
      returned: always
      sample: true
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import imds as parser
from ansible_collections.rdma.k8s.plugins.module_utils.host import imds
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def main() -> None:
    module = AnsibleModule(
        argument_spec={"url": {"type": "str"}, "timeout": {"type": "float", "default": 5}},
        supports_check_mode=True,
    )

    def act() -> dict:
        bounds.require_seconds(module.params, "timeout")
        root = Root()
        documents = imds.read(root, module.params["url"] or "", module.params["timeout"]).documents
        found, unusable = parser.read(documents.host, documents.instance, documents.vnics)
        vnic, fabric = found.vnic, found.fabric
        return {
            "shape": found.shape,
            "primary_vnic": None
            if vnic is None
            else {"address": str(vnic.address), "subnet": str(vnic.subnet)},
            "fabric": None if fabric is None else {"ipv6": fabric.ipv6, "planes": fabric.planes},
            "topology": {
                "hpc_island_id": found.hpc_island_id,
                "network_block_id": found.network_block_id,
                "local_block_id": found.local_block_id,
                "rack_id": found.rack_id,
                "gpu_memory_fabric_id": found.gpu_memory_fabric_id,
            },
            "findings": _module.findings(root.errors, unusable),
        }

    _module.run(module, act)


if __name__ == "__main__":
    main()
