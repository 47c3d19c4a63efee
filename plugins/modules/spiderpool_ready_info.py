#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spiderpool_ready_info
short_description: Wait until networks, ib-kubernetes and pods for tests are there, or gone
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Spiderpool's controller makes a NetworkAttachmentDefinition of each SpiderMultusConfig; pods that name one before
    are refused or start without it.
  - A DaemonSet that fits no node has no pod that is not ready, which proves nothing; so the number of nodes is
    compared.
  - ib-kubernetes holds pods and networks back until it has told UFM that they go. So it must run until they are gone.
  - The user needs to get NetworkAttachmentDefinitions, DaemonSets and Deployments, and to list pods.
  - Nothing is changed. The module does not fail when something is not ready; see RV(ready).
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
options:
  state:
    description:
      - V(present) waits until all is ready.
      - V(absent) waits until no NetworkAttachmentDefinition of the networks and no pod for tests is left.
    type: str
    choices: [present, absent]
    default: present
  networks:
    description: The networks, each as C(NAMESPACE/NAME).
    type: list
    elements: str
    default: []
  test:
    description: The DaemonSet for tests, as P(rdma.k8s.spiderpool_plan_info#module) returns it. Without it none.
    type: dict
  deployment:
    description: The Deployment of ib-kubernetes, from the same module. Without it none. V(absent) does not look at it.
    type: dict
  nodes:
    description: How many nodes must have a pod, 1 to 100000. Without it one.
    type: int
  timeout:
    description: Seconds to wait, 0 to 3600. With V(0) there is one look.
    type: int
    default: 0
attributes:
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
seealso:
  - module: rdma.k8s.spiderpool_plan_info
  - module: rdma.k8s.sriov_node_state_info
"""

EXAMPLES = r"""
- name: Wait for the networks
  rdma.k8s.spiderpool_ready_info:
    networks: "{{ plan.networks }}"
    timeout: 120
  register: networks

- name: Stop where one is missing
  ansible.builtin.assert:
    that: networks.ready
    fail_msg: "{{ networks.problems | join(' ') }}"
"""

RETURN = r"""
ready:
  description: Whether all is there, or gone.
  returned: success
  type: bool
  sample: true
problems:
  description: What is missing, or still there, in sentences.
  returned: success
  type: list
  elements: str
  sample: []
pods:
  description: How many pods for tests are ready, or still there.
  returned: success
  type: int
  sample: 2
waited:
  description: Seconds until the last look.
  returned: success
  type: float
  sample: 3.1
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import spiderpool
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.waiting import look_until
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds, standing
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.manifest import require_name

PAUSE = 1.0


def _wait(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    bounds.require_numbers(params, timeout=(0, 3600))
    if params["nodes"] is not None:
        bounds.require_numbers(params, nodes=(1, 100000))
    for called in params["networks"]:
        namespace, _slash, name = called.partition("/")
        require_name(namespace, "A namespace", label=True)
        require_name(name, "A network")
    cluster = _kube.connect(module)

    def look() -> spiderpool.Ready:
        if params["state"] == "absent":
            return spiderpool.look_gone(cluster, params["networks"], params["test"])
        return spiderpool.look(
            cluster, params["networks"], params["test"], params["nodes"], params["deployment"]
        )

    tell = news.teller()
    found, waited = look_until(
        lambda seen: not seen.problems,
        look,
        params["timeout"],
        PAUSE,
        lambda seen: tell(standing.waiting(params["timeout"], seen.problems)),
    )
    return {
        "ready": not found.problems,
        "problems": list(found.problems),
        "pods": found.pods,
        "waited": round(waited, 1),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "networks": {"type": "list", "elements": "str", "default": []},
            "test": {"type": "dict"},
            "deployment": {"type": "dict"},
            "nodes": {"type": "int"},
            "timeout": {"type": "int", "default": 0},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    _module.run(module, lambda: _wait(module), _kube.LIBRARIES)


if __name__ == "__main__":
    main()
