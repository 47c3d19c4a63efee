# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a ClusterPolicy of the GPU operator means for NICs that are to reach the memory of GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.objects import merged
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import gpu_operator


def policy(**spec: Any) -> dict[str, Any]:
    """One that the values of the guide make, with a difference."""
    return {"metadata": {"name": "cluster-policy"}, "spec": merged(gpu_operator.VALUES, spec)}


OFF = ("gpudirect-off", "spec.driver.rdma.enabled")
HOST = ("gpudirect-host-driver-off", "spec.driver.rdma.useHostMofed")
COPY = ("gdrcopy-off", "spec.gdrcopy.enabled")
ELSEWHERE = ("gpudirect-elsewhere", "spec.driver")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (policy(), []),
        (policy(driver={"enabled": True}), []),
        (policy(driver={"rdma": {"enabled": False}}), [OFF]),
        (policy(driver={"rdma": {"useHostMofed": False}}), [HOST]),
        (policy(gdrcopy={"enabled": False}), [COPY]),
        (policy(gdrcopy=None, driver=None), [OFF, COPY]),
        (policy(driver={"rdma": {"enabled": "yes"}}), [OFF]),
        (policy(driver={"enabled": False}), [ELSEWHERE]),
        (policy(driver={"useNvidiaDriverCRD": True}), [ELSEWHERE]),
        ({"metadata": {"name": "cluster-policy"}}, [OFF, COPY]),
    ],
)
def test_each_setting(content: dict[str, Any], found: list[tuple[str, str]]) -> None:
    """S41."""
    told = list(gpu_operator.judge([content], needed=False))
    assert [(entry.issue.code, entry.issue.at) for entry in told] == found
    assert {entry.issue.severity for entry in told} <= {"warning"}
    assert {entry.subject for entry in told} <= {"ClusterPolicy cluster-policy"}


def test_what_is_an_error_when_it_is_needed() -> None:
    off = policy(driver={"rdma": {"enabled": False}}, gdrcopy={"enabled": False})
    host = policy(driver={"rdma": {"useHostMofed": False}})
    told = gpu_operator.judge([off, host, policy(driver={"enabled": False})], needed=True)
    assert [(entry.issue.code, entry.issue.severity) for entry in told] == [
        ("gpudirect-off", "error"),
        ("gdrcopy-off", "warning"),
        ("gpudirect-host-driver-off", "error"),
        ("gpudirect-elsewhere", "warning"),
    ]


def test_without_the_operator_nothing_is_wrong() -> None:
    assert list(gpu_operator.judge([], needed=True)) == []
