# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs for each mode of the plugin of Lingjun nodes, and a job as the vendor's guide shows it, before the lint."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import documents, manifest
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads import render, wish
from ansible_collections.rdma.k8s.plugins.module_utils.core.workloads.wish import WorkloadWish

MODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "shared_host_network": ({}, {}),
    "shared": ({"host_network": False, "fabric": "ipv6"}, {"non_host_network": True}),
    "exclusive": (
        {"host_network": False, "fabric": "ipv6", "rdma_quantity": 4},
        {"non_host_network": True, "rdma_mode": "exclusive"},
    ),
}
"""What the skeleton and the lint are told in each mode (A6)."""
GUIDE = """\
apiVersion: batch/v1
kind: Job
metadata: {name: hps-benchmark}
spec:
  parallelism: 1
  template:
    spec:
      hostNetwork: true
      restartPolicy: Never
      tolerations:
        - operator: Exists
      containers:
        - name: hps-benchmark
          image: registry.example.org/hps:1
          command: [sh, -c, python /workspace/wdl_8gpu_outbrain.py]
          workingDir: /root
          resources:
            limits: {nvidia.com/gpu: 8, rdma/hca: 1}
          securityContext:
            capabilities: {add: [SYS_RESOURCE, IPC_LOCK]}
          volumeMounts:
            - {name: shm, mountPath: /dev/shm}
      volumes:
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: 8Gi}
"""
"""The fields of the job of the guide, without its remarks."""


def linted(text: str, **options: Any) -> list[tuple[str, str, str]]:
    """What is not right: rule, code and severity."""
    found = engine.lint(documents.parse(text, "x.yaml"), target="ack_lingjun", options=options)
    return [
        (entry.rule, entry.code, entry.severity) for entry in found if entry.status not in ("pass", "skip")
    ]


@pytest.mark.parametrize("kind", wish.KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_skeletons_of_each_mode(mode: str, kind: str) -> None:
    """A6, A69: nothing to remark in its own mode."""
    asked, options = MODES[mode]
    made = WorkloadWish(
        name="train",
        target=wish.ACK,
        image="example.org/train:1",
        command=["train"],
        kind=kind,
        gpus=8,
        **asked,
    )
    assert linted(manifest.text(render.workload(made)), **options) == []


@pytest.mark.parametrize(
    ("made", "judged", "code"),
    [
        ("shared", "shared_host_network", "hostnetwork-required"),
        ("shared_host_network", "shared", "hostnetwork-unneeded"),
        ("shared_host_network", "exclusive", "hostnetwork-forbidden"),
        ("exclusive", "shared", "rdma-quantity-excess"),
    ],
)
def test_a_skeleton_of_another_mode_is_noticed(made: str, judged: str, code: str) -> None:
    """A6, A69."""
    job = WorkloadWish(
        name="train",
        target=wish.ACK,
        image="example.org/train:1",
        command=["train"],
        gpus=8,
        **MODES[made][0],
    )
    found = linted(manifest.text(render.workload(job)), **MODES[judged][1])
    assert [entry[1] for entry in found] == [code]


def test_the_job_of_the_guide_has_two_remarks() -> None:
    """A69: on the network of the host names of Services do not resolve, and it tolerates the taints of broken nodes."""
    assert linted(GUIDE) == [
        ("RDMA-ACK-005", "hostnetwork-dns-policy", "warning"),
        ("RDMA-ACK-009", "toleration-too-broad", "info"),
    ]


def test_the_job_of_the_guide_off_the_host_network() -> None:
    """A8: without the line that the guide says to remove, and without the switch of the plugin, it is an error."""
    text = GUIDE.replace("      hostNetwork: true\n", "")
    assert [entry[1] for entry in linted(text)] == ["hostnetwork-required", "toleration-too-broad"]
    assert [entry[1] for entry in linted(text, non_host_network=True)] == ["toleration-too-broad"]
