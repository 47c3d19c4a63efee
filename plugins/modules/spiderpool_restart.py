#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: spiderpool_restart
short_description: Restart Spiderpool's controller when its configuration is newer than its pods
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - The controller reads its ConfigMap when it starts, and nothing restarts it when the content changes. Until then it
    injects no networks although the configuration says so, or goes on although it says no more.
  - The pods are made anew when one of them is older than the content of a ConfigMap that they mount, by the times of
    the API server. Otherwise nothing is changed, so that a second run does nothing.
  - They are made anew by an annotation of their template, as C(kubectl rollout restart) does it, in the order that the
    strategy of the Deployment has. The module waits until all of them are new and available. While none is available,
    no pod can be made in the namespaces of the webhook.
  - The namespaces of the webhook do not stand in the ConfigMap. They need new values of the chart, and no restart.
  - The user needs to get and patch Deployments, to get ConfigMaps and to list pods, in the namespace of Spiderpool.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.watched
  - rdma.k8s.kubernetes
options:
  namespace:
    description: The namespace of Spiderpool.
    type: str
    default: spiderpool
  name:
    description: The Deployment of the controller.
    type: str
    default: spiderpool-controller
  timeout:
    description: Seconds for the pods to be new and available, 1 to 3600.
    type: int
    default: 300
attributes:
  check_mode:
    details: The API server checks the patch without making it, and nothing is waited for.
  platform:
    platforms: all
seealso:
  - module: rdma.k8s.spiderpool_plan_info
  - module: rdma.k8s.spiderpool_ready_info
"""

EXAMPLES = r"""
- name: Let the controller read its configuration
  rdma.k8s.spiderpool_restart:
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
configured_at:
  description: When the content of the ConfigMaps was written last; empty when the API server does not tell.
  returned: always
  type: str
  sample: "2026-11-30T17:43:49Z"
configuration:
  description: The ConfigMaps that the pods mount.
  returned: always
  type: list
  elements: str
  sample: [spiderpool-conf]
older:
  description: The pods that were older than that.
  returned: always
  type: list
  elements: str
  sample: [spiderpool-controller-7d9f8-x2x4k]
actions:
  description: What was done, or would be done in check mode.
  returned: always
  type: list
  elements: str
  sample: [restart Deployment spiderpool/spiderpool-controller]
waited:
  description: Seconds until the pods were new and available.
  returned: always
  type: float
  sample: 21.4
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, news
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.spiderpool_restart import Restarter
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.manifest import require_name
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.restart import MARK


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "namespace": {"type": "str", "default": "spiderpool"},
            "name": {"type": "str", "default": "spiderpool-controller"},
            "timeout": {"type": "int", "default": 300},
            **_kube.OPTIONS,
        },
        supports_check_mode=True,
    )
    params, restarter, failed = module.params, None, None
    try:
        _module.prepare(module, _kube.LIBRARIES)
        bounds.require_numbers(params, timeout=(1, 3600))
        require_name(params["namespace"], "A namespace", label=True)
        require_name(params["name"], "A Deployment")
        restarter = Restarter(_kube.connect(module), params["namespace"], params["name"])
        restarter.run(params["timeout"], module.check_mode, news.teller())
    except RdmaError as error:
        failed = error
    result = dict(restarter.result) if restarter else {}
    if restarter and module._diff:
        texts = ["%s: %s\n" % (MARK, mark) if mark else "" for mark in restarter.marks]
        result["diff"] = {"before": texts[0], "after": texts[1]}
    if failed is not None:
        _module.fail(module, failed, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
