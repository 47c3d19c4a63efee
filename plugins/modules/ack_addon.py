#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ack_addon
short_description: Install, upgrade, configure or remove an add-on of an ACK cluster
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes an add-on of an ACK cluster as wished, by the API of the cloud. By default it is the RDMA device plugin of
    Lingjun nodes.
  - It reads first and gives one order, or none when the add-on is as wished. Then it waits until the task succeeded,
    the cluster is running and the add-on shows what was wished.
  - There is no way back to an older version, so a version that the catalogue does not list as an upgrade is refused.
  - An order whose answer is lost is not given again before it is clear that it did not arrive.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.watched
  - rdma.k8s.alibaba
options:
  name:
    description: Name of the add-on.
    type: str
    default: ack-rdma-device-plugin
  state:
    description: Whether it is installed.
    type: str
    choices: [present, absent]
    default: present
  version:
    description: Version, exactly as the catalogue writes it. Without it the newest is installed, and an installed one
      is kept whatever its version.
    type: str
  config:
    description:
      - Settings of the add-on. Only the keys that are given count; what else there is stays as it is.
      - V(true) and V("true") mean the same, since the service turns one into the other.
      - When the catalogue has a schema for the version, a key that is not in it is refused before anything is written.
      - Without the option the settings are left alone.
    type: dict
  describe:
    description: Read the catalogue in any case, and return RV(catalogue). It has the keys that O(config) may have.
    type: bool
    default: false
  cleanup_cloud_resources:
    description: Whether removing the add-on also removes what it made in the cloud.
    type: bool
    default: false
  wait:
    description: Whether to wait until it is done. Without it the order is given and nothing more; an order that cannot
      be given at once is an error.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait, for everything together, 1 to 86400. A run that ends by it can simply be repeated.
    type: float
    default: 1800
  poll_interval:
    description: Seconds between two looks.
    type: float
    default: 5
notes:
  - 'The RAM actions, on the cluster: C(cs:DescribeClusterDetail), C(cs:GetClusterAddonInstance), C(cs:DescribeAddon),
    C(cs:DescribeClusterTasks), C(cs:DescribeTaskInfo), and for changes C(cs:InstallClusterAddons),
    C(cs:UpgradeClusterAddons), C(cs:ModifyClusterAddon), C(cs:UnInstallClusterAddons). The condition key
    C(cs:AddonNames) limits the add-ons.'
  - Runs on one machine work at one cluster one after the other. Work from elsewhere is seen by its tasks and waited
    for.
  - Values of O(config) behind keys that sound like secrets are masked in what is returned.
seealso:
  - module: rdma.k8s.ack_fabric_info
"""

EXAMPLES = r"""
- name: Install the RDMA device plugin, or leave it as it is
  rdma.k8s.ack_addon:
    cluster_id: "{{ ack_cluster_id }}"
    region: cn-beijing
  delegate_to: localhost
  run_once: true

- name: See which settings it has
  rdma.k8s.ack_addon:
    cluster_id: "{{ ack_cluster_id }}"
    region: cn-beijing
    describe: true
  check_mode: true
  delegate_to: localhost
  run_once: true
  register: plugin

- name: Upgrade it and give the resource another name
  rdma.k8s.ack_addon:
    cluster_id: "{{ ack_cluster_id }}"
    region: cn-beijing
    version: 1.1.5
    config:
      customResourceName: rdma/fabric
  delegate_to: localhost
  run_once: true

- name: Remove it
  rdma.k8s.ack_addon:
    cluster_id: "{{ ack_cluster_id }}"
    region: cn-beijing
    state: absent
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
actions:
  description: What was done, or would be done in check mode, in order. V(wait) alone is no change.
  returned: always, once the add-on was read
  type: list
  elements: str
  sample: [upgrade]
addon:
  description: The add-on afterwards, or as it would be in check mode.
  returned: always, once the add-on was read
  type: dict
  contains:
    name:
      description: Name.
      type: str
      returned: always
      sample: ack-rdma-device-plugin
    state:
      description: What the service says, or V(absent).
      type: str
      returned: always
      sample: active
    version:
      description: Version, null when it is absent.
      type: str
      returned: always
      sample: 1.1.5
    config:
      description: Its settings, with those that the service added.
      type: dict
      returned: always
      sample: {customResourceName: rdma/hca}
task_id:
  description: The task of the last order, null without one.
  returned: always, once the add-on was read
  type: str
  sample: T-65a0c0b2c1d2e3f405000001
cluster:
  description: The cluster.
  returned: always, once the add-on was read
  type: dict
  contains:
    name:
      description: Name.
      type: str
      returned: always
      sample: training
    state:
      description: What the service says.
      type: str
      returned: always
      sample: running
    version:
      description: Version of Kubernetes.
      type: str
      returned: always
      sample: 1.34.1-aliyun.1
    spec:
      description: Edition of the cluster.
      type: str
      returned: always
      sample: ack.pro.small
    profile:
      description: Kind of the cluster.
      type: str
      returned: always
      sample: Default
    region:
      description: Region.
      type: str
      returned: always
      sample: cn-beijing
catalogue:
  description: What the catalogue says, null when it was not asked.
  returned: always, once the add-on was read
  type: dict
  contains:
    version:
      description: The version that this is about.
      type: str
      returned: always
      sample: 1.1.5
    config_schema:
      description: JSON schema of the settings, null when the catalogue has none.
      type: dict
      returned: always
      sample: {type: object, properties: {customResourceName: {type: string}}}
    upgradable:
      description: Versions to which that version can be upgraded.
      type: list
      elements: str
      returned: always
      sample: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _alibaba, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cloud import ack_addon, alibaba
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import names
from ansible_collections.rdma.k8s.plugins.module_utils.core.ack.addon import Wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

OPTIONS: dict[str, Any] = {
    **_alibaba.OPTIONS,
    "name": {"type": "str", "default": names.PLUGIN},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "version": {"type": "str"},
    "config": {"type": "dict"},
    "describe": {"type": "bool", "default": False},
    "cleanup_cloud_resources": {"type": "bool", "default": False},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "float", "default": 1800},
    "poll_interval": {"type": "float", "default": 5},
}


def _keeper(params: dict[str, Any]) -> ack_addon.Keeper:
    bounds.require_numbers(params, wait_timeout=(1, 86400))
    bounds.require_seconds(params, "poll_interval")
    alibaba.require_name("add-on", params["name"])
    return ack_addon.Keeper(
        _alibaba.Cloud(params).ack(),
        params["cluster_id"],
        Wish(params["name"], params["state"] == "present", params["version"] or None, params["config"]),
        ack_addon.Waits(params["wait"], params["wait_timeout"], params["poll_interval"]),
        cleanup=params["cleanup_cloud_resources"],
        describe=params["describe"],
        tell=news.teller(),
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec=OPTIONS, required_one_of=[("region", "endpoint")], supports_check_mode=True
    )
    params = module.params
    module.no_log_values.update(_alibaba.secrets([params["config"]]))
    outcome: dict[str, Any] = {}
    try:
        keeper = _keeper(params)
        try:
            keeper.run(module.check_mode)
        finally:
            module.no_log_values.update(_alibaba.secrets(keeper.configs()))
            outcome = _alibaba.result(params["name"], keeper.outcome, module._diff)
    except RdmaError as error:
        _module.fail(module, error, **outcome)
    for text in keeper.outcome.warnings:
        module.warn(text)
    module.exit_json(**outcome)


if __name__ == "__main__":
    main()
