#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: dranet_plan_info
short_description: How DRANET would be deployed, and why
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Decides from what you want, from what a version of DRANET can do and from the schema of its chart whether the chart
    can express it, and returns the values for the chart, or the objects as manifests, with the reasons.
  - Refuses what the version cannot do, and says which DRANET can.
  - Nothing is read from or changed in a cluster. The role C(oke_dranet) applies the result.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
options:
  mode:
    description:
      - V(webhook) lets the provider of this collection resolve the profile C(oke-rdma), with any DRANET that has IPvlan
        children and the flags for a webhook.
      - V(native) lets DRANET resolve it, which needs a DRANET with the profile built in.
    type: str
    choices: [native, webhook]
    default: webhook
  method:
    description:
      - V(auto) takes the chart when its schema takes every setting, else manifests.
      - V(chart) fails when the schema refuses a setting, and names it. V(manifests) never takes the chart.
    type: str
    choices: [auto, chart, manifests]
    default: auto
  chart:
    description: Directory or archive of the chart of DRANET. Without it, manifests.
    type: path
  version:
    description:
      - Version of DRANET, V(main) for its main line.
      - Without it, the tag of the image, then what the chart says.
    type: str
  abilities:
    description:
      - What this DRANET can do, where the table does not know it or is wrong, such as a build of your own; each true or
        false.
    type: dict
    default: {}
  allow_without_ipvlan:
    description: Take a DRANET that cannot make IPvlan children, for its slices and attributes only. Claims then fail.
    type: bool
    default: false
  namespace:
    description: Where the objects are.
    type: str
    default: kube-system
  image:
    description: Image of DRANET, with a tag or a digest.
    type: str
    required: true
  provider_image:
    description: Image of this collection, with a tag or a digest. Needed for O(mode=webhook).
    type: str
  pull_policy:
    description: When nodes pull the images.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  pull_secrets:
    description: Names of Secrets with credentials for the registries.
    type: list
    elements: str
    default: []
  child_range:
    description: Range of the addresses of children. Without it the default, 10.208.0.0/12.
    type: str
  provider_options:
    description: Further values of C(--cloud-provider-options), each one pair.
    type: list
    elements: str
    default: []
  oca_directory:
    description:
      - Directory of the nodes with the files of the Oracle Cloud Agent. It is mounted read-only, and made when it is
        missing. An empty text mounts none.
    type: str
    default: /etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure
  move_ib_interfaces:
    description:
      - V(false) leaves native InfiniBand NICs on the host, as the profile demands. It changes nothing on nodes
        without such NICs.
    type: bool
    default: false
  uplink_interfaces:
    description: Interfaces that are uplinks and never offered, for fabrics whose NICs get default routes.
    type: list
    elements: str
    default: []
  filter:
    description: CEL expression that devices must meet to be published. Without it that of DRANET.
    type: str
  device_class:
    description: Name of the DeviceClass for the RDMA NICs. An empty text makes none.
    type: str
    default: rdma-nic
  nic_table:
    description:
      - Explicit NICs of nodes that the agent does not configure, for the provider, each with its child.
      - For several nodes, such a mapping for each below C(nodes).
    type: dict
  imds_url:
    description: Address of the metadata service, for the provider. Without it that of the cloud.
    type: str
  kubelet_root:
    description: Data directory of the kubelets.
    type: str
    default: /var/lib/kubelet
  node_selector:
    description: Labels of the nodes on which the pods run. Without it, all.
    type: dict
    default: {}
  tolerations:
    description: Taints that the pods tolerate.
    type: list
    elements: dict
    default: [{operator: Exists}]
  priority_class:
    description: Priority class of the pods. An empty text leaves it off.
    type: str
    default: system-node-critical
  update_strategy:
    description: With V(OnDelete) a change reaches a node when its pod is deleted, so that no claim loses its driver.
    type: str
    choices: [OnDelete, RollingUpdate]
    default: OnDelete
  resources:
    description: Requests and limits of DRANET. Without it the requests of its chart.
    type: dict
    default: {}
  provider_resources:
    description: Requests and limits of the provider.
    type: dict
    default: {}
  provider_args:
    description: Further arguments of the provider.
    type: list
    elements: str
    default: []
  extra_args:
    description: Further arguments of DRANET.
    type: list
    elements: str
    default: []
  log_verbosity:
    description: How much DRANET logs.
    type: int
    default: 4
seealso:
  - module: rdma.k8s.cluster_objects
  - module: rdma.k8s.child_range_check
"""

EXAMPLES = r"""
- name: See how DRANET would be deployed
  rdma.k8s.dranet_plan_info:
    image: registry.example.com/dranet:v1.4.0
    provider_image: registry.example.com/rdma-k8s:0.1.0
    chart: charts/dranet
    abilities: {ipvlan_child: true}
  delegate_to: localhost
  register: plan

- name: Say why
  ansible.builtin.debug:
    var: plan.reasons
"""

RETURN = r"""
method:
  description: What it comes to, V(chart) or V(manifests).
  returned: success
  type: str
  sample: manifests
version:
  description: The version of DRANET; empty when it is not known.
  returned: success
  type: str
  sample: v1.4.0
abilities:
  description: What it can do.
  returned: success
  type: dict
  sample: {extra_volumes: false, ipvlan_child: true, options: false, profile: false, uplinks: false, webhook: true,
    webhook_values: false}
reasons:
  description: Why, one sentence each. Of manifests, each setting that the schema of the chart refuses.
  returned: success
  type: list
  elements: str
  sample: ["The chart does not take args: it has no key webhookURL."]
lost:
  description: What does not work with this DRANET, when it was allowed all the same.
  returned: success
  type: list
  elements: str
  sample: []
values:
  description: Values for the chart; null when the method is V(manifests).
  returned: success
  type: dict
  sample: null
dranet:
  description: The objects of DRANET; empty when the chart makes them.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: v1, kind: ServiceAccount, metadata: {name: dranet, namespace: kube-system}}]
provider:
  description: The objects of the provider; empty with O(mode=native).
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: rdma-k8s-provider, namespace: kube-system}}]
more:
  description: Objects that come last.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: rdma-nic}}]
child_range:
  description: The child range in force.
  returned: success
  type: str
  sample: 10.208.0.0/12
published_range:
  description: The range that the slices will show; empty when this DRANET publishes none.
  returned: success
  type: str
  sample: 10.208.0.0/12
needed_today:
  description: Which DRANET is needed today, in one sentence.
  returned: success
  type: str
  sample: Children need a DRANET with the interface type IPVLAN.
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module, chart_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import deployment, dranet_wish as wishes

_LIST: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
_DICT: dict[str, Any] = {"type": "dict", "default": {}}
_TOLERATIONS: list[dict[str, str]] = [{"operator": "Exists"}]


def _result(params: dict[str, Any]) -> dict[str, Any]:
    wish = wishes.wish(params)
    chart = chart_files.read(params["chart"]) if params["chart"] else None
    return deployment.decide(wish, chart).to_dict()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "choices": list(wishes.MODES), "default": "webhook"},
            "method": {"type": "str", "choices": list(wishes.METHODS), "default": "auto"},
            "chart": {"type": "path"},
            "version": {"type": "str"},
            "abilities": _DICT,
            "allow_without_ipvlan": {"type": "bool", "default": False},
            "namespace": {"type": "str", "default": "kube-system"},
            "image": {"type": "str", "required": True},
            "provider_image": {"type": "str"},
            "pull_policy": {
                "type": "str",
                "choices": list(wishes.PULL_POLICIES),
                "default": "IfNotPresent",
            },
            "pull_secrets": {**_LIST, "no_log": False},
            "child_range": {"type": "str"},
            "provider_options": _LIST,
            "oca_directory": {"type": "str", "default": wishes.OCA_DIRECTORY},
            "move_ib_interfaces": {"type": "bool", "default": False},
            "uplink_interfaces": _LIST,
            "filter": {"type": "str"},
            "device_class": {"type": "str", "default": "rdma-nic"},
            "nic_table": {"type": "dict"},
            "imds_url": {"type": "str"},
            "kubelet_root": {"type": "str", "default": wishes.KUBELET_ROOT},
            "node_selector": _DICT,
            "tolerations": {"type": "list", "elements": "dict", "default": _TOLERATIONS},
            "priority_class": {"type": "str", "default": "system-node-critical"},
            "update_strategy": {"type": "str", "choices": list(wishes.STRATEGIES), "default": "OnDelete"},
            "resources": _DICT,
            "provider_resources": _DICT,
            "provider_args": _LIST,
            "extra_args": _LIST,
            "log_verbosity": {"type": "int", "default": 4},
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _result(module.params))


if __name__ == "__main__":
    main()
