# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of Spiderpool's surroundings when the API server does not have it, or does not tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import spiderpool
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.tests.support import api_server
from ansible_collections.rdma.k8s.tests.support.api_server import Answer, Request, status

POLICIES = "/apis/nvidia.com/v1/clusterpolicies"
POLICY = {"metadata": {"name": "cluster-policy"}, "spec": {"gdrcopy": {"enabled": True}}}


def read(tmp_path: Path, answer: Any) -> Any:
    """A cluster that has nothing else."""

    def route(request: Request) -> Any:
        if request.path == POLICIES:
            return answer
        if request.path.startswith(spiderpool.DEFINITIONS) or "/apis/" in request.path:
            return status(404, "not found")
        return Answer({"metadata": {}, "items": []})

    with api_server.serving() as server:
        server.route = route
        return spiderpool.read(connect(server.kubeconfig(tmp_path))).gpu_policies


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (Answer({"metadata": {}, "items": [POLICY]}), [POLICY]),
        (status(404, "the server could not find the requested resource"), []),
        (status(403, "clusterpolicies.nvidia.com is forbidden"), None),
    ],
    ids=["there", "no operator", "no right"],
)
def test_cluster_policies_of_the_gpu_operator(tmp_path: Path, answer: Any, found: Any) -> None:
    assert read(tmp_path, answer) == found


def test_a_server_in_trouble_is_no_cluster_without_the_operator(tmp_path: Path) -> None:
    with pytest.raises(RdmaError) as caught:
        read(tmp_path, status(400, "bad"))
    assert caught.value.code.startswith("kube_")
