# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine makes of rules, targets, options and references."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.finding import Finding
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine, options
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import Context, LintFinding, dotted
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.pod import pods, target_of
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.registry import RULES, rule
from ansible_collections.rdma.k8s.tests.support.lint_cases import base


def test_a_finding_knows_its_line_and_its_object() -> None:
    text = (
        "kind: Pod\nmetadata: {name: a, namespace: ai}\nspec:\n"
        "  terminationGracePeriodSeconds: 0\n  resourceClaims: [{name: x}]\n"
    )
    (found,) = [finding for finding in engine.lint(parse(text, "pod.yml")) if finding.status == "fail"]
    assert (found.rule, found.line, found.subject) == ("RDMA-WL-013", 4, "Pod ai/a")
    assert found.to_finding() == Finding(
        "RDMA-WL-013",
        "Pod ai/a",
        "fail",
        "error",
        found.message,
        found.expected,
        found.observed,
        ("pod.yml:4 spec.terminationGracePeriodSeconds",),
    )


def test_a_finding_about_a_whole_live_object_has_no_line() -> None:
    found = LintFinding("R", "pass", "error", Document({"kind": "Job"}, "cluster"), (), "")
    assert found.to_finding().evidence == ("cluster (object)",)
    assert found.subject == "Job (no name)"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), ""),
        (("spec", "containers", 0, "env"), "spec.containers[0].env"),
        (("limits", "rdma/hca"), 'limits["rdma/hca"]'),
        ((0, "a"), "[0].a"),
        (("volume-mounts", "a_b"), "volume-mounts.a_b"),
    ],
)
def test_a_path_as_text(path: tuple[Any, ...], shown: str) -> None:
    assert dotted(path) == shown


def test_every_rule_answers_for_the_objects_of_its_kinds() -> None:
    """A rule that says nothing has passed the object; other objects have no result of it."""
    findings = engine.lint(base("oke_job"))
    for document in base("oke_job"):
        kind = document.content["kind"]
        answered = {finding.rule for finding in findings if finding.document is document}
        wanted = {check for check, entry in RULES.items() if kind in entry.kinds and not entry.targets}
        assert answered >= wanted


def test_findings_come_by_document_and_rule() -> None:
    checks = [finding.rule for finding in engine.lint(base("plain")[:1])]
    assert checks == sorted(checks)


def test_a_rule_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        rule("RDMA-WL-001", "again", "error", "")(lambda document, context: ())


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("oke_job", "oke_dranet"),
        ("oke_mpi", "oke_dranet"),
        ("ack_job", "ack_lingjun"),
        ("sriov_pod", "spiderpool_sriov"),
        ("plain", ""),
    ],
)
def test_the_target_is_told_by_what_is_asked_for(name: str, target: str) -> None:
    documents = base(name)
    assert target_of(documents[0], Context(documents=tuple(documents))) == target
    assert target_of(documents[0], Context(documents=tuple(documents), target="ack_lingjun")) == "ack_lingjun"


@pytest.mark.parametrize("given", [{name: entry.default} for name, entry in options.OPTIONS.items()])
def test_a_default_is_a_good_value(given: dict[str, Any]) -> None:
    assert options.checked(given) == given


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"min-shm": "8Gi"}, "lint_option_unknown", "no option 'min-shm'"),
        ({"min_shm": "8GB"}, "lint_option_malformed", "min_shm must be a quantity above 0, found '8GB'"),
        ({"min_shm": "0"}, "lint_option_malformed", "quantity"),
        ({"memlock_unlimited": "yes"}, "lint_option_malformed", "a boolean"),
        ({"rdma_mode": "mixed"}, "lint_option_malformed", "shared or exclusive"),
        ({"taints": [{"effect": "NoSchedule"}]}, "lint_option_malformed", "each with a key"),
        ({"resource_name": "hca"}, "lint_option_malformed", "extended resource"),
        (["min_shm"], "lint_option_malformed", "a map of options"),
    ],
)
def test_an_option_that_is_not_good(given: Any, code: str, words: str) -> None:
    with pytest.raises(RdmaError, match=words) as error:
        engine.lint([], options=given)
    assert error.value.code == code


def document(kind: str, name: str, namespace: str = "") -> Document:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return Document({"kind": kind, "metadata": metadata}, "x.yml")


def test_references_prefer_their_own_namespace() -> None:
    here, there, nowhere = (
        document("ConfigMap", "a", "ai"),
        document("ConfigMap", "a", "b"),
        document("ConfigMap", "a"),
    )
    both = Context(documents=(there, nowhere, here))
    assert both.config_map("ai", "a") is here
    assert both.config_map("b", "a") is there
    assert both.config_map("c", "a") is nowhere
    assert both.config_map("", "a") is nowhere
    assert Context(documents=(there,)).config_map("ai", "a") is None
    assert Context(documents=(there,)).config_map("", "a") is there
    assert both.config_map("ai", "b") is None
    assert Context(documents=(document("DeviceClass", "a"),)).device_class("a") is not None


def test_an_init_container_alone_makes_its_pod_one_that_uses_rdma() -> None:
    """DEV-17: such pods are among those that a drain for RDMA must find."""
    content = {
        "kind": "Pod",
        "spec": {
            "initContainers": [{"name": "probe", "resources": {"limits": {"spidernet.io/gpu1sriov": 1}}}]
        },
    }
    only = Document(content, "x.yml")
    (pod,) = pods(only, Context(documents=(only,)))
    assert pod.rdma is True
    assert [container.name for container in pod.rdma_containers] == ["probe"]
    assert pod.amount("spidernet.io/gpu1sriov") == 1


def test_a_network_that_is_used_often_is_told_once() -> None:
    annotations = {"k8s.v1.cni.cncf.io/networks": ",".join(["rdma-vf"] * 16)}
    pod = {"kind": "Pod", "metadata": {"name": "a", "annotations": annotations}, "spec": {"containers": []}}
    for complete in (True, False):
        findings = engine.lint([Document(pod, "x.yml")], complete=complete)
        told = [finding for finding in findings if finding.rule == "RDMA-WL-008"]
        assert len(told) == 1
        assert told[0].message.count("rdma-vf") == 1
