#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_objects
short_description: Objects of the Kubernetes API as they are written down
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Applies objects by server-side apply, removes them, or writes them to a file.
  - The roles of this collection use it, so that no other collection is needed for it.
  - Objects are applied in the order in which they are given, and removed in the opposite order; a removed object is
    gone when the module ends.
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - rdma.k8s.kube_objects
  - rdma.k8s.attributes.change
options:
  documents:
    description:
      - The objects. Objects of O(src) come behind them.
      - At least one of O(documents) and O(src) is needed.
    type: list
    elements: dict
  src:
    description:
      - Manifests (YAML or JSON), or directories with files C(*.yml), C(*.yaml) and C(*.json), on the host where the
        module runs. A list of kind C(List) stands for its entries.
    type: list
    elements: path
  namespace:
    description:
      - Namespace of the objects that belong to one and do not name it. Without it, V(default).
      - An object of a kind that belongs to none keeps none.
      - Not used with O(state=rendered), as only an API server knows which kinds belong to a namespace.
    type: str
seealso:
  - module: rdma.k8s.cluster_info
"""

EXAMPLES = r"""
- name: Apply a manifest
  rdma.k8s.cluster_objects:
    src: [manifests/queue.yaml]
    namespace: training

- name: Make a ConfigMap
  rdma.k8s.cluster_objects:
    documents:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: nccl
          namespace: training
        data:
          NCCL_DEBUG: WARN

- name: Remove it again
  rdma.k8s.cluster_objects:
    state: absent
    documents:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: nccl
          namespace: training
"""

RETURN = r"""
manifest:
  description: The objects as YAML.
  returned: success
  type: str
  sample: "---\napiVersion: v1\nkind: ConfigMap\n"
objects:
  description: The same as data.
  returned: success
  type: list
  elements: dict
  sample: [{apiVersion: v1, kind: ConfigMap, metadata: {name: nccl, namespace: training}}]
actions:
  description: What was done, or would be done in check mode. When the module fails, what was done until then.
  returned: always
  type: list
  elements: str
  sample: [create ConfigMap training/nccl]
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _objects, manifest_files
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import objects


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "documents": {"type": "list", "elements": "dict"},
            "src": {"type": "list", "elements": "path"},
            "namespace": {"type": "str"},
            **_objects.OPTIONS,
        },
        required_one_of=[("documents", "src")],
        supports_check_mode=True,
    )
    params = module.params

    def render() -> _objects.Rendering:
        documents = [
            manifest_files.require_object(entry, "Document %d of documents" % number)
            for number, entry in enumerate(params["documents"] or [], 1)
        ]
        if params["src"]:
            documents += manifest_files.objects(params["src"])
        if params["namespace"] and params["state"] != "rendered":
            documents = objects.placed(_kube.connect(module), documents, params["namespace"])
        return _objects.Rendering(documents, ["Made by rdma.k8s.cluster_objects."], {})

    _objects.run(module, render)


if __name__ == "__main__":
    main()
