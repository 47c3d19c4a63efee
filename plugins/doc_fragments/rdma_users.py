# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Which pods use RDMA, and what may be done with them.
    DOCUMENTATION = r"""
options:
  driver:
    description: The driver whose devices make a claim one of RDMA.
    type: str
    default: dra.net
  resources:
    description:
      - Extended resources of RDMA; C(*) stands for anything.
      - Resources of the SR-IOV operator's policies with C(isRdma) are added by themselves.
    type: list
    elements: str
    default: [rdma/*, spidernet.io/*]
  networks:
    description:
      - RDMA networks of Multus as C(namespace/name); C(*) stands for anything.
      - Networks whose definition names a resource of O(resources) are added by themselves.
    type: list
    elements: str
    default: []
  driver_daemonsets:
    description: DaemonSets as C(namespace/name) that are the driver itself. Their pods are not told.
    type: list
    elements: str
    default: [kube-system/dranet, kube-system/rdma-k8s-provider, kube-system/ack-rdma-dp-ds]
  ownerless:
    description: Evict pods that no controller makes anew. Without it such a pod blocks a drain.
    type: bool
    default: false
  host_network:
    description:
      - Evict pods that open the RDMA devices of the host by themselves. Without it they stay, and nobody waits for
        them. Those of DaemonSets, such as exporters and device plugins, always stay.
    type: bool
    default: false
"""
