#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oca_config_info
short_description: Read the RDMA configuration of the Oracle Cloud Agent as the RDMA driver does
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads C(rdma_network.json) and C(rdma_features_enable.json) of the agent's HPC plugin and says which RDMA network
    and which address mode follow from them by the rules of DRANET's provider for OKE.
  - A missing file gives the default. A file that is unusable gives the default too, and a finding.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
attributes:
  async:
    description: Supports being used with the C(async) keyword.
    support: full
options:
  host_root:
    description: Root of the file system of the node, V(/) on the node itself.
    type: path
    default: /
seealso:
  - module: rdma.k8s.node_info
  - module: rdma.k8s.imds_info
"""

EXAMPLES = r"""
- name: Read the configuration of the agent
  rdma.k8s.oca_config_info:
  register: oca

- name: Stop where addresses do not follow the classic formula
  ansible.builtin.assert:
    that: oca.address_mode in ['classic', none]
"""

RETURN = r"""
directory:
  description: Whether the directory of the files is V(present), V(absent) or V(unreadable).
  returned: success
  type: str
  sample: present
network:
  description: The RDMA network that follows.
  returned: success
  type: str
  sample: 10.224.0.0/12
network_from_file:
  description: Whether RV(network) stands in the file; otherwise it is the driver's default.
  returned: success
  type: bool
  sample: true
address_mode:
  description: V(classic), V(topology) or V(host-serial); V(none) when the mode is not known.
  returned: success
  type: str
  sample: classic
agent_version:
  description: Version of the agent, where a file tells it (the snap does).
  returned: success
  type: str
  sample: 1.52.0-23
modified:
  description: Time of the last change of the two files in seconds since the epoch; V(none) when there is none.
  returned: success
  type: int
  sample: 1772000000
files:
  description: Text of the files without white space; empty for a missing file, V(none) when it is unreadable.
  returned: success
  type: dict
  contains:
    rdma_network:
      description: C(rdma_network.json).
      type: str
      returned: always
      sample: '{"rdma-network":[{"default-settings":{"rdma_network":"10.224.0.0/12"}}]}'
    rdma_features_enable:
      description: C(rdma_features_enable.json).
      type: str
      returned: always
      sample: '{}'
    configure_state:
      description: What the plugin notes about its own progress.
      type: str
      returned: always
      sample: '{"state":"finished"}'
findings:
  description: What could not be read, and what is unusable in the files.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: Stable name of the problem.
      type: str
      returned: always
      sample: oca_prefix_not_masked
    message:
      description: One sentence.
      type: str
      returned: always
      sample: rdma_network.json has rdma_network 10.224.0.1/12 with host bits, expected 10.224.0.0/12.
    hint:
      description: What to do about it; may be empty.
      type: str
      returned: always
      sample: Correct the file, restart the agent, then restart the driver's pods.
    retryable:
      description: Whether it can go away without a person acting.
      type: bool
      returned: always
      sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca as parser
from ansible_collections.rdma.k8s.plugins.module_utils.host import oca
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root


def main() -> None:
    module = AnsibleModule(
        argument_spec={"host_root": {"type": "path", "default": "/"}},
        supports_check_mode=True,
    )

    def act() -> dict:
        root = Root(module.params["host_root"])
        files = oca.read(root)
        found = parser.load(files.rdma_network or None, files.rdma_features_enable or None)
        unusable = [error for error in found.warnings if parser.NETWORK_FILE in error.message]
        return {
            "directory": files.directory,
            "network": str(found.network),
            "network_from_file": bool(files.rdma_network) and not unusable,
            "address_mode": found.address_mode,
            "agent_version": files.agent_version,
            "modified": files.modified,
            "files": {
                "rdma_network": files.rdma_network,
                "rdma_features_enable": files.rdma_features_enable,
                "configure_state": files.configure_state,
            },
            "findings": _module.findings(root.errors, found.warnings),
        }

    _module.run(module, act)


if __name__ == "__main__":
    main()
