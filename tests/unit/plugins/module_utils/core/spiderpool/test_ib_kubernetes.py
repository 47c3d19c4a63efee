# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of ib-kubernetes, and what is wrong with a wish for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterNode
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import (
    deployment,
    ib_kubernetes,
    objects,
    table,
    ufm,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.ib_kubernetes import Program
from ansible_collections.rdma.k8s.tests.support import rails
from ansible_collections.rdma.k8s.tests.support.sriov_crds import CRDS

IMAGE = "registry.example/ib-kubernetes:v1.2.0"
PROGRAM = Program(IMAGE)
KEYS = list(ufm.KEYS)
NEW, OLD = ({key: ""} for key in ib_kubernetes.CONTROL_PLANE)
ROWS = [
    {
        "pci": rails.PLACES[0],
        "subnet": "172.16.11.0/24",
        "link_type": "ib",
        "vfs": 8,
        "resource": "gpu1sriov",
        "pkey": "0x10",
    }
]


def named(program: Program) -> dict[str, dict[str, Any]]:
    """The objects by their kinds, each of which there is once."""
    found = ib_kubernetes.documents(program)
    assert len({entry["kind"] for entry in found}) == len(found)
    return {entry["kind"]: entry for entry in found}


def pod(program: Program) -> dict[str, Any]:
    return dict(named(program)["Deployment"]["spec"]["template"]["spec"])


def node(called: str, **labels: str) -> ClusterNode:
    return ClusterNode(name=called, labels={**ib_kubernetes.PLATFORM, **labels})


def codes(issues: Any) -> list[tuple[str, str, str]]:
    return [(issue.code, issue.at, issue.severity) for issue in issues]


def test_fields_are_as_the_server_keeps_them() -> None:
    """A reference is one value for the server, which adds the version; without it each run would send it again."""
    (container,) = pod(PROGRAM)["containers"]
    references = [entry["valueFrom"].get("fieldRef") for entry in container["env"]]
    assert [entry["apiVersion"] for entry in references if entry] == ["v1"] * 3


def test_what_is_made_first_is_needed_first() -> None:
    assert list(named(PROGRAM)) == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
    ]


def test_rights_are_the_least() -> None:
    """Pods and networks everywhere; its own lease; no Secrets, no star, nothing that makes or removes objects."""
    found = named(PROGRAM)
    everywhere = {
        (group, resource): set(rule["verbs"])
        for rule in found["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert everywhere == {
        ("", "pods"): {"get", "list", "watch", "patch", "update"},
        ("k8s.cni.cncf.io", "network-attachment-definitions"): {"get", "list", "watch", "patch", "update"},
    }
    for rule in found["Role"]["rules"]:
        assert rule["verbs"] == ["create"] or rule["resourceNames"] == ["ib-kubernetes-leader"]
    for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        assert found[binding]["roleRef"]["kind"] == role
        assert found[binding]["roleRef"]["name"] == found[role]["metadata"]["name"]
        assert found[binding]["subjects"] == [
            {"kind": "ServiceAccount", **found["ServiceAccount"]["metadata"]}
        ]
    assert pod(PROGRAM)["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]


def test_everything_in_a_namespace_is_where_the_secret_is() -> None:
    for kind, entry in named(PROGRAM).items():
        wanted = None if kind.startswith("Cluster") else ufm.NAMESPACE
        assert entry["metadata"].get("namespace") == wanted


def test_the_pods_are_nobody() -> None:
    found = pod(PROGRAM)
    (container,) = found["containers"]
    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["securityContext"]["runAsUser"] > 0
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "volumes" not in found


def test_it_is_told_what_it_reads() -> None:
    """S146, S149: all keys of ConfigMap and Secret reach the program; what must be there is not optional."""
    found = named(PROGRAM)
    variables = {entry["name"]: entry["valueFrom"] for entry in pod(PROGRAM)["containers"][0]["env"]}
    settings = {
        name: value["configMapKeyRef"] for name, value in variables.items() if "configMapKeyRef" in value
    }
    assert set(settings) == set(found["ConfigMap"]["data"])
    assert {entry["name"] for entry in settings.values()} == {found["ConfigMap"]["metadata"]["name"]}
    secrets = {name: value["secretKeyRef"] for name, value in variables.items() if "secretKeyRef" in value}
    assert set(secrets) == set(ufm.KEYS)
    assert {name for name, value in secrets.items() if not value.get("optional")} == set(ufm.REQUIRED)
    assert {entry["name"] for entry in secrets.values()} == {"ib-kubernetes-ufm-secret"}
    assert all(value["key"] == name for name, value in {**settings, **secrets}.items())
    assert found["ConfigMap"]["data"]["DAEMON_SM_PLUGIN"] == "ufm"


def test_each_pod_has_a_node_of_the_control_plane() -> None:
    """S148: two pods apart; a new one cannot come before an old one has gone."""
    spec = named(PROGRAM)["Deployment"]["spec"]
    found = pod(PROGRAM)
    labels = spec["template"]["metadata"]["labels"]
    assert spec["replicas"] == 2
    assert spec["selector"]["matchLabels"] == labels
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    (apart,) = found["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart == {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    terms = found["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = [term["matchExpressions"][0]["key"] for term in terms["nodeSelectorTerms"]]
    assert keys == list(ib_kubernetes.CONTROL_PLANE)
    assert [entry["key"] for entry in found["tolerations"]] == keys
    chosen = pod(PROGRAM._replace(node_selector={"role": "infra"}, tolerations=(), pull_secrets=["reg"]))
    assert chosen["nodeSelector"] == {**ib_kubernetes.PLATFORM, "role": "infra"}
    assert "nodeAffinity" not in chosen["affinity"]
    assert "tolerations" not in chosen
    assert chosen["imagePullSecrets"] == [{"name": "reg"}]


def test_pods_start_anew_for_another_secret_and_another_range() -> None:
    """Both are read at the start only; what did not change makes no new pods."""

    def template(program: Program) -> Any:
        return named(program)["Deployment"]["spec"]["template"]

    known = PROGRAM._replace(secret_version="7")
    assert template(known) == template(PROGRAM._replace(secret_version="7"))
    assert template(known) != template(PROGRAM._replace(secret_version="8"))
    assert template(known) != template(known._replace(guid_end="02:00:00:00:00:00:00:FF"))


def test_a_good_wish() -> None:
    assert codes(ib_kubernetes.judge(PROGRAM, KEYS, True)) == []
    by_digest = PROGRAM._replace(image="localhost:5000/a/ib-kubernetes@sha256:" + "0" * 64)
    assert codes(ib_kubernetes.judge(by_digest, KEYS, True)) == []


@pytest.mark.parametrize(
    ("more", "code", "at"),
    [
        ({"image": ""}, "ib-kubernetes-image", "image"),
        ({"image": "a b:1"}, "ib-kubernetes-image", "image"),
        ({"image": "registry.example/:1"}, "ib-kubernetes-image", "image"),
        ({"image": "mellanox/ib-kubernetes"}, "ib-kubernetes-image-not-pinned", "image"),
        ({"image": "localhost:5000/ib-kubernetes"}, "ib-kubernetes-image-not-pinned", "image"),
        ({"image": "x/ib-kubernetes:latest"}, "ib-kubernetes-image-not-pinned", "image"),
        ({"replicas": 0}, "ib-kubernetes-replicas", "replicas"),
        ({"replicas": 11}, "ib-kubernetes-replicas", "replicas"),
        ({"guid_start": "02:00"}, "guid-syntax", "guid_start"),
        ({"guid_end": "02:FF:FF:FF:FF:FF:FF:FF "}, "guid-syntax", "guid_end"),
        ({"guid_start": "00:00:00:00:00:00:00:00"}, "guid-unusable", "guid_start"),
        ({"guid_end": "ff:ff:ff:ff:ff:ff:ff:ff"}, "guid-unusable", "guid_end"),
        ({"guid_start": "03:00:00:00:00:00:00:00"}, "guid-order", "guid_end"),
        ({"pull_secrets": ["A b"]}, "name-malformed", "pull_secrets"),
    ],
)
def test_a_wrong_wish(more: dict[str, Any], code: str, at: str) -> None:
    """S149, S154."""
    assert codes(ib_kubernetes.judge(PROGRAM._replace(**more), KEYS, True)) == [(code, at, "error")]


def test_a_wish_that_does_nothing() -> None:
    """S146, S153: without the Secret it ends, without a network nobody asks it."""
    assert codes(ib_kubernetes.judge(PROGRAM, None, True)) == [("ib-kubernetes-without-ufm", "ufm", "error")]
    assert codes(ib_kubernetes.judge(PROGRAM, KEYS, False)) == [("ib-kubernetes-unused", "", "warning")]


@pytest.mark.parametrize(
    ("nodes", "more", "good"),
    [
        ([node("a", **NEW), node("b", **OLD)], {}, True),
        ([node("a", **NEW), node("b")], {}, False),
        ([node("a", **NEW)], {"replicas": 1}, True),
        ([node("a", role="infra"), node("b", role="infra")], {"node_selector": {"role": "infra"}}, True),
        ([node("a", role="infra"), node("b")], {"node_selector": {"role": "infra"}}, False),
        ([node(called, **NEW, **{"kubernetes.io/arch": "arm64"}) for called in "ab"], {}, False),
    ],
)
def test_each_pod_needs_a_node(nodes: list[ClusterNode], more: dict[str, Any], good: bool) -> None:
    found = codes(ib_kubernetes.judge_nodes(PROGRAM._replace(**more), nodes))
    assert found == ([] if good else [("ib-kubernetes-no-node", "node_selector", "error")])


# --- with the rails


def wish(**more: Any) -> deployment.Wish:
    given: dict[str, Any] = {
        "rows": ROWS,
        "setup": objects.Setup(dict(rails.LABELS)),
        "defaults": table.Defaults(),
        "ufm_keys": KEYS,
        "ib_kubernetes": PROGRAM,
    }
    return deployment.Wish(**{**given, **more})


def told(plan: deployment.Plan) -> list[tuple[str, str]]:
    return [(entry.subject, entry.issue.code) for entry in plan.told]


def test_it_is_a_part_of_the_plan() -> None:
    plan = deployment.decide(wish())
    assert told(plan) == []
    for entry in plan.program:
        assert deployment.LABELS.items() <= entry["metadata"]["labels"].items()
    assert [entry["kind"] for entry in plan.program] == list(named(PROGRAM))
    assert deployment.decide(wish(ib_kubernetes=None)).program == []


def test_a_network_must_ask_it() -> None:
    """S153: only a rail with a key is handled."""
    plan = deployment.decide(wish(rows=[{**ROWS[0], "pkey": ""}]))
    assert told(plan) == [("ib-kubernetes", "ib-kubernetes-unused")]


def test_a_network_of_others_may_ask_it() -> None:
    rows = [{**ROWS[0], "pkey": ""}]
    network = deployment.decide(wish()).objects[-1]
    named_otherwise = {**network, "metadata": {"name": "other", "namespace": "spiderpool"}}
    plan = deployment.decide(wish(rows=rows, manifests=[named_otherwise]))
    assert ("ib-kubernetes", "ib-kubernetes-unused") not in told(plan)


def test_the_cluster_must_have_nodes_for_it() -> None:
    cluster = replace(
        rails.cluster("w1"), ip_pools=(), multus_configs=(), sriov_policies=(), sriov_pool_configs=()
    )
    plan = deployment.decide(wish(), deployment.Live(cluster, CRDS, False))
    assert ("ib-kubernetes", "ib-kubernetes-no-node") in told(plan)


def test_a_variable_that_no_shell_replaced_is_told() -> None:
    plan = deployment.decide(wish(ib_kubernetes=Program("${REGISTRY}/ib-kubernetes:1")))
    assert ("Deployment kube-system/ib-kubernetes", "variable-unexpanded") in told(plan)
