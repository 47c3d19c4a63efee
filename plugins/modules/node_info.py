#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Read all that a node tells about its RDMA side
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads RDMA devices, ports and GID tables, network interfaces, addresses, routes and rules, PCI functions, ARP
    settings, kernel modules and their options, the files of the Oracle Cloud Agent, the metadata service and the packet
    filter rules for RoCE of one node, in one task.
  - Nothing is judged and nothing is changed. P(rdma.k8s.validate#module) judges the snapshots of all nodes on the
    controller.
  - A source that cannot be read is an entry of RV(snapshot.errors), not a failure of the module.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
options:
  name:
    description:
      - Name of the node in the snapshot, usually the name that the inventory uses.
      - Without it the host name is used.
    type: str
  subsets:
    description: What to read.
    type: list
    elements: str
    choices: [kernel, rdma, links, routes, pci, oca, imds, firewall]
    default: [kernel, rdma, links, routes, pci, oca, imds, firewall]
  host_root:
    description:
      - Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
      - When it holds a file C(netlink.json), it is a recorded tree and the answers of netlink come from that file.
    type: path
    default: /
  imds_url:
    description:
      - Base URL of the metadata service, with a literal link-local or loopback address.
      - Without it the service of Oracle Cloud at V(http://169.254.169.254/opc/v2) is asked. For a recorded tree its
        file C(imds.json) is read instead.
    type: str
  imds_timeout:
    description: Limit of each request to the metadata service in seconds.
    type: float
    default: 5
  layout:
    description:
      - V(readable) writes lists of objects, V(compact) writes them as tables with each key only once, for the way to
        the controller. All modules and commands of this collection read both.
    type: str
    choices: [readable, compact]
    default: readable
seealso:
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Read all
  rdma.k8s.node_info:
    name: "{{ inventory_hostname }}"
  register: node

- name: Read from a recorded tree, without the metadata service
  rdma.k8s.node_info:
    host_root: /srv/recorded/n7
    subsets: [kernel, rdma, links, routes, pci, oca]
  delegate_to: localhost
"""

RETURN = r"""
snapshot:
  description:
    - The snapshot. Fields with their default value are left out.
    - A field that is not there or null was not gathered or could not be read; an empty list means that there is
      nothing.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import SUBSETS
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect, needs_netlink
from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "subsets": {
                "type": "list",
                "elements": "str",
                "choices": list(SUBSETS),
                "default": list(SUBSETS),
            },
            "host_root": {"type": "path", "default": "/"},
            "imds_url": {"type": "str"},
            "imds_timeout": {"type": "float", "default": 5},
            "layout": {"type": "str", "choices": ["readable", "compact"], "default": "readable"},
        },
        supports_check_mode=True,
    )
    options = module.params

    def act() -> dict:
        snapshot = collect(
            options["name"] or "",
            options["host_root"],
            options["subsets"],
            imds_url=options["imds_url"] or "",
            imds_timeout=options["imds_timeout"],
            version=VERSION,
        )
        return {"snapshot": snapshot.to_dict(compact=options["layout"] == "compact")}

    needed = needs_netlink(options["host_root"], options["subsets"])
    _module.run(module, act, libraries=("pyroute2",) if needed else ())


if __name__ == "__main__":
    main()
