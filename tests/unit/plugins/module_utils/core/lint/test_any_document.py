# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever stands in a manifest, the lint answers: no value of a wrong kind stops a rule."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import SEVERITIES, STATUSES
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.registry import RULES
from ansible_collections.rdma.k8s.tests.support.lint_cases import BASES, base

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "text",
    [],
    [None],
    [[]],
    [{}],
    {},
    {"a": None},
    {"a": {"b": []}},
    {1: 2},
]
NAMES = sorted(path.stem for path in BASES.glob("*.yml"))
RICH = """
kind: MPIJob
metadata: {name: rich, namespace: ai}
spec:
  mpiReplicaSpecs:
    Worker:
      replicas: 2
      template:
        metadata: {annotations: {v1.multus-cni.io/default-network: a/b, k8s.v1.cni.cncf.io/networks: '[{"name": "c"}]'}}
        spec:
          hostIPC: true
          securityContext: {runAsUser: 1000, runAsNonRoot: true}
          tolerations: [{operator: Exists}]
          resourceClaims: [{name: x, source: {resourceClaimName: claim}}, {name: y, resourceClaimName: gone}]
          volumes:
            - {name: scripts, configMap: {name: scripts}}
            - {name: ib, hostPath: {path: /dev/infiniband}}
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
          initContainers: [{name: i, restartPolicy: Always, resources: {requests: {rdma/hca: 1}}}]
          containers:
            - name: c
              command: [mpirun, -x, NCCL_IB_GID_INDEX=3, -genv, NCCL_IB_HCA, mlx5]
              args: ["export NCCL_SOCKET_IFNAME=rdma0"]
              envFrom: [{prefix: A_, configMapRef: {name: scripts}}]
              env:
                - {name: NCCL_IB_GID_INDEX, valueFrom: {configMapKeyRef: {name: scripts, key: b}}}
                - {name: NCCL_IB_DISABLE, value: "1"}
              volumeMounts: [{name: scripts, mountPath: /s}, {name: ib, mountPath: /dev/infiniband},
                {name: shm, mountPath: /dev/shm}]
              resources: {limits: {rdma/hca: 1, memory: 1Gi}, claims: [{name: x}]}
              securityContext: {privileged: false, capabilities: {add: [CAP_IPC_LOCK], drop: [ALL]}}
---
kind: ResourceClaim
metadata: {name: claim, namespace: ai}
spec:
  devices:
    requests:
      - {name: a, firstAvailable: [{name: b, deviceClassName: dra.net, count: 2}]}
      - {name: c, deviceClassName: gpu.nvidia.com, allocationMode: All}
    config: [{requests: [a], opaque: {driver: dra.net, parameters: {interface: {name: n, type: Passthrough}}}}]
    constraints: [{requests: [a, c], matchAttribute: dra.net/x}]
---
kind: ConfigMap
metadata: {name: scripts, namespace: ai}
data: {b: "3", run.sh: "export NCCL_IB_GID_INDEX=3"}
---
kind: SpiderMultusConfig
metadata: {name: c, namespace: ai}
spec: {sriov: {resourceName: spidernet.io/x}}
---
kind: Pod
metadata:
  name: live
  annotations: {k8s.v1.cni.cncf.io/network-status: '[{"name": "n", "ips": ["10.0.0.1"]}]'}
status: {phase: Running}
"""
"""Manifests with whatever rules read, right or wrong."""
TARGET = {"ack_job": "ack_lingjun", "rich": "ack_lingjun"}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path of a value."""
    found = [path]
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, below in entries:
        found += places(below, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with something else at a path."""
    if not path:
        return new
    changed = copy.copy(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


def manifests(name: str) -> list[Any]:
    """The objects of clean manifests, or of the rich ones."""
    documents = parse(RICH, "rich.yml") if name == "rich" else base(name)
    return [document.content for document in documents]


def lint(contents: list[Any], **context: Any) -> None:
    documents = [Document(content, "odd.yml", 1) for content in contents]
    for finding in engine.lint(documents, **context):
        assert finding.status in STATUSES
        assert finding.severity in SEVERITIES
        assert finding.rule in RULES
        assert isinstance(finding.message, str)
        assert finding.place
        assert finding.to_finding().node == finding.subject


@pytest.mark.parametrize("name", [*NAMES, "rich"])
def test_each_value_of_clean_manifests_can_be_odd(name: str) -> None:
    """One value at a time, all of the kinds that YAML can express in turn."""
    contents = manifests(name)
    turn = 0
    for number, content in enumerate(contents):
        for path in places(content):
            turn += 1
            for odd in (ODD[turn % len(ODD)], ODD[(turn * 7 + 3) % len(ODD)]):
                changed = [*contents[:number], put(content, path, odd), *contents[number + 1 :]]
                lint(changed, target=TARGET.get(name, ""), complete=bool(turn % 2))


@given(st.data())
def test_several_values_can_be_odd(data: st.DataObject) -> None:
    contents = manifests(data.draw(st.sampled_from([*NAMES, "rich"])))
    for _round in range(3):
        number = data.draw(st.integers(0, len(contents) - 1))
        path = data.draw(st.sampled_from(places(contents[number])))
        contents[number] = put(contents[number], path, data.draw(st.sampled_from(ODD)))
    lint(contents, complete=data.draw(st.booleans()))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=3))
def test_any_document(contents: list[Any]) -> None:
    lint(contents)


@given(st.sampled_from(sorted({kind for rule in RULES.values() for kind in rule.kinds})), VALUES, VALUES)
def test_any_object_of_a_kind(kind: str, metadata: Any, spec: Any) -> None:
    lint([{"kind": kind, "metadata": metadata, "spec": spec}], shape="BM.GPU.H100.8", complete=True)
