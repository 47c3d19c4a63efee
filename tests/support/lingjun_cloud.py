# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cloud whose tasks deploy the plugin of Lingjun nodes into a real cluster, and take it away."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names
from ansible_collections.rdma.k8s.tests.support.fake_ack import CLUSTER, KEY_ID, KEY_SECRET, FakeAck
from ansible_collections.rdma.k8s.tests.support.lingjun_cluster import plugin

KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": KEY_ID, "ALIBABA_CLOUD_ACCESS_KEY_SECRET": KEY_SECRET}
"""The environment of a user of this cloud."""


class Cloud(FakeAck):
    """The cloud.

    :param plane: the cluster; it has ``kubectl``.
    :param ip_version: of the computing network.
    """

    def __init__(self, plane: Any, ip_version: str) -> None:
        super().__init__()
        group = {"eflo_node_group": {"cluster_id": "i1", "group_id": "ng-1"}}
        about = {"nodepool_id": "np0001", "name": "lingjun", "type": "lingjun"}
        self.pools = [{"nodepool_info": about, "scaling_group": {"desired_size": 2}, **group}]
        self.lingjun = {"i1": {"ClusterId": "i1", "ComputingIpVersion": ip_version}}
        self._plane = plane
        self.faults["InstallClusterAddons"] = [self._deploy]
        self.faults["UnInstallClusterAddons"] = [self._take_away]

    def _deploy(self) -> None:
        self._plane.kubectl("apply", "-f", "-", stdin=json.dumps(plugin()))

    def _take_away(self) -> None:
        self._plane.kubectl("delete", "ds", names.DAEMONSET, "-n", names.NAMESPACE)

    def options(self, **more: Any) -> dict[str, Any]:
        """Variables of the role for this cloud, for pods with a network of their own."""
        return {
            "ack_lingjun_manage_addon": True,
            "ack_lingjun_cluster_id": CLUSTER,
            "ack_lingjun_region": "cn-beijing",
            "ack_lingjun_endpoint": self.endpoint,
            "ack_lingjun_eflo_endpoint": self.endpoint,
            "ack_lingjun_protocol": "http",
            "ack_lingjun_mode": "shared",
            "ack_lingjun_addon_config": {"podNetwork": True},
            "ack_lingjun_verify_timeout": 60,
            **more,
        }
