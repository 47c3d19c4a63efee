# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # How to reach the API of a cluster.
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - File with clusters, users and contexts.
      - Without it the files of the variable E(KUBECONFIG), else C(~/.kube/config). Inside a pod without these files
        the service account of the pod is used.
      - If not set, the value of the environment variable E(K8S_AUTH_KUBECONFIG) is used.
    type: path
  context:
    description:
      - Context of the file. Without it the current one.
      - If not set, the value of the environment variable E(K8S_AUTH_CONTEXT) is used.
    type: str
  request_timeout:
    description: Seconds that one request may take, repeated attempts included.
    type: float
    default: 30.0
requirements:
  - kubernetes 31.0.0 or newer
"""
