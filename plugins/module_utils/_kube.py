# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that talk to the Kubernetes API. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule, env_fallback

from .cluster.client import REQUEST_TIMEOUT, Cluster, connect as _connect
from .core import bounds

OPTIONS: dict[str, Any] = {
    "kubeconfig": {"type": "path", "fallback": (env_fallback, ["K8S_AUTH_KUBECONFIG"])},
    "context": {"type": "str", "fallback": (env_fallback, ["K8S_AUTH_CONTEXT"])},
    "request_timeout": {"type": "float", "default": REQUEST_TIMEOUT},
}
LIBRARIES = ("kubernetes",)


def connect(module: AnsibleModule) -> Cluster:
    """The cluster that the options of a module name.

    :raises RdmaError: ``kube_config``, ``library_missing``, ``number_out_of_range``.
    """
    return connect_as(module.params)


def connect_as(params: Mapping[str, Any]) -> Cluster:
    """The same for options that were checked elsewhere.

    :raises RdmaError: ``kube_config``, ``library_missing``, ``number_out_of_range``.
    """
    bounds.require_seconds(params, "request_timeout")
    return _connect(params["kubeconfig"], params["context"], params["request_timeout"])
