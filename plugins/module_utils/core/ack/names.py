# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and numbers of ACK and its Lingjun nodes. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

PLUGIN = "ack-rdma-device-plugin"
"""The add-on (A1)."""
DAEMONSET, NAMESPACE = "ack-rdma-dp-ds", "kube-system"
"""What the add-on runs as (A1)."""
RESOURCE = "rdma/hca"
"""The resource, unless the install form names another one (A7)."""
TOKENS = 1000
"""Tokens of a node in shared mode (A2, A56)."""

SHARED, EXCLUSIVE = MODES = ("shared", "exclusive")
"""Modes of the plugin (A5); they have nothing to do with the mode of the RDMA subsystem (A76)."""

WORKER_LABEL, WORKER_VALUE = "alibabacloud.com/lingjun-worker", "true"
"""What tells a Lingjun node (A13, A16)."""
POOL_LABEL = "alibabacloud.com/nodepool-id"
KEPT_LABELS = (
    "service.alibabacloud.com/exclude-node",
    "alibabacloud.com/lingjun-hpnzone",
    "alibabacloud.com/lingjun-zoneid",
    "alibabacloud.com/lingjun-machine-type",
    "alibabacloud.com/lingjun-network-type",
    "k8s.aliyun.com/exclusive-mode-eni-type",
)
"""Further labels that must not be deleted (A14)."""
ENI_LABEL, ENI_VALUE = "k8s.aliyun.com/exclusive-mode-eni-type", "eniOnly"

TAINT_KEY = "node-role.alibabacloud.com/lingjun"
"""Key of the default taint: no value, effect NoSchedule (A13)."""

KUBERNETES = (1, 31)
"""The oldest Kubernetes with Lingjun pools (A10)."""
KERNEL = (5, 10)
"""The oldest kernel of a Lingjun node (A11)."""
CGROUP_V2_FROM = (1, 35)
"""From this Kubernetes on the nodes need cgroup v2 (A11)."""
OFF_HOST_FROM, EXCLUSIVE_FROM = (1, 1, 0), (1, 1, 5)
"""Plugin versions that know pods with a network of their own, and the exclusive mode (A3)."""
