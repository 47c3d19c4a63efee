#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent_info
short_description: Whether the node agent is ready on the nodes that it must cover
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Waits until a pod of the node agent is ready on each node, or until none is left.
  - Fails with the names of the nodes that are not ready when O(timeout) is over, and why.
  - Nothing in the cluster is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
options:
  state:
    description: V(present) waits for the pods; V(absent) waits until the DaemonSet and its pods are gone.
    type: str
    choices: [present, absent]
    default: present
  mode:
    description: The mode in which the agent must be.
    type: str
    choices: [read, write]
    default: read
  namespace:
    description: Namespace of the agent.
    type: str
    default: kube-system
  node_selector:
    description: Labels of the nodes that it must cover. Without it all nodes.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait, at most 3600; V(0) looks once.
    type: float
    default: 0
seealso:
  - module: rdma.k8s.cluster_objects
"""

EXAMPLES = r"""
- name: Wait until the agent is ready
  rdma.k8s.node_agent_info:
    timeout: 300

- name: Is it in mode write on the nodes of one pool?
  rdma.k8s.node_agent_info:
    mode: write
    node_selector:
      oci.oraclecloud.com/pool: gpu
"""

RETURN = r"""
ready:
  description: Nodes with a ready pod in the wanted mode.
  returned: always
  type: list
  elements: str
  sample: [gpu-001, gpu-002]
waiting:
  description: The other nodes that must have one, with the reason.
  returned: always
  type: dict
  sample: {gpu-003: no pod}
open_mounts:
  description:
    - Nodes in mode V(read) where file systems that are mounted below the host's root can be written all the same, since
      the kernel or the runtime cannot make a mount read-only as a whole.
  returned: always
  type: list
  elements: str
  sample: []
waited:
  description: Seconds that it took.
  returned: always
  type: float
  sample: 12.4
"""

from typing import Any
from urllib.parse import quote

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import waiting
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds, node_agent, standing
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

PAUSE = 2.0


def _look(params: dict[str, Any], cluster: Any) -> node_agent.State:
    namespace = quote(params["namespace"], safe="")
    daemonsets = cluster.items(
        "/apis/apps/v1/namespaces/%s/daemonsets" % namespace, fieldSelector="metadata.name=" + node_agent.NAME
    )
    daemonset = next(iter(list(daemonsets)), {})
    pods = list(cluster.items("/api/v1/namespaces/%s/pods" % namespace, labelSelector=node_agent.SELECTOR))
    if params["state"] == "absent":
        return node_agent.left(daemonset, pods)
    labels = ",".join("%s=%s" % pair for pair in sorted(params["node_selector"].items()))
    chosen = {"labelSelector": labels} if labels else {}
    return node_agent.state(params["mode"], daemonset, pods, cluster.items("/api/v1/nodes", **chosen))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "mode": {"type": "str", "choices": ["read", "write"], "default": "read"},
            "namespace": {"type": "str", "default": "kube-system"},
            "node_selector": {"type": "dict", "default": {}},
            "timeout": {"type": "float", "default": 0},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    try:
        _module.prepare(module, _kube.LIBRARIES)
        bounds.require_numbers(module.params, timeout=(0, 3600))
        params, cluster = module.params, _kube.connect(module)
        tell = news.teller()
        found, waited = waiting.look_until(
            lambda state: state.done,
            lambda: _look(params, cluster),
            params["timeout"],
            PAUSE,
            lambda state: tell(standing.waiting(params["timeout"], state.lacking)),
        )
    except RdmaError as error:
        _module.fail(module, error)
    result = {
        "ready": found.ready,
        "waiting": found.waiting,
        "open_mounts": found.open_mounts,
        "waited": round(waited, 1),
    }
    if not found.done:
        error = RdmaError("node_agent_not_ready", found.sentence(waited))
        module.fail_json(msg=str(error), code=error.code, **result)
    if found.open_mounts:
        module.warn(
            "What is mounted below the root of the host can be written by the node agent in mode read on %s: kernel "
            "or runtime cannot make a mount read-only as a whole." % ", ".join(found.open_mounts[:20])
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
