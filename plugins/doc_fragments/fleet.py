# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Which nodes a plan is about.
    DOCUMENTATION = r"""
options:
  nodes:
    description:
      - The nodes, described.
      - Mutually exclusive with O(snapshot). Without both the module reads the node on which it runs.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the node.
        type: str
        required: true
      address:
        description: IPv4 address of the primary VNIC.
        type: str
        required: true
      subnet:
        description: Subnet of the primary VNIC.
        type: str
        required: true
      nics:
        description: Number of RDMA NICs, with the indexes from 0 on.
        type: int
        default: 16
      oca_network:
        description: The RDMA network of the Oracle Cloud Agent on this node.
        type: str
        default: 10.224.0.0/12
  snapshot:
    description:
      - The nodes as snapshots, for example RV(rdma.k8s.node_info#module:snapshot) of several hosts.
      - Mutually exclusive with O(nodes).
    type: list
    elements: dict
  host_root:
    description: Root of the file system of the node, when the module reads the node on which it runs.
    type: path
    default: /
"""
