# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lint before a real API server: live objects, recorded keys, and what the server really drops."""

from __future__ import annotations

import copy
import importlib.util
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import api_fields, engine
from ansible_collections.rdma.k8s.plugins.modules import workload_lint
from ansible_collections.rdma.k8s.tests.support import change_run

from .conftest import ControlPlane

RULE = "RDMA-WL-013"
KEYS = "RDMA-WL-018"
JOB = yaml.safe_load("""\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      resourceClaims: [{name: rdma, resourceClaimTemplateName: t}]
      containers: [{name: main, image: x, resources: {claims: [{name: rdma}]}}]
""")
CRD = yaml.safe_load("""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.lint.example.org}
spec:
  group: lint.example.org
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                count: {type: integer}
                open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {sub: {type: object}}}
                map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}
                texts: {type: object, additionalProperties: {type: string}}
                list: {type: array, items: {type: object, properties: {a: {type: string}}}}
                deep: {type: array, items: {type: array, items: {type: object, properties: {a: {type: string}}}}}
                empty: {type: object}
                either: {x-kubernetes-int-or-string: true}
                embedded: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
""")
THING = {
    "apiVersion": "lint.example.org/v1",
    "kind": "Thing",
    "metadata": {"name": "odd"},
    "spec": {
        "count": 1,
        "cuont": 1,
        "open": {"x": {"y": 1}, "sub": {"gone": 1}},
        "map": {"x": {"a": "1", "gone": "1"}},
        "texts": {"x": "y"},
        "list": [{"a": "1"}, {"gone": "1"}],
        "deep": [[{"a": "1"}, {"gone": "1"}]],
        "empty": {"gone": 1},
        "either": "x",
        "embedded": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", "gone": 1},
            "spec": {"gone": 1},
            "gone": 1,
        },
    },
}


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    name = "lint" + uuid.uuid4().hex[:8]
    control_plane.kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        control_plane.kubectl("delete", "job", "--all", "-n", name)
        control_plane.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0")
        control_plane.kubectl("delete", "namespace", name, "--timeout=60s")


def put(control_plane: ControlPlane, namespace: str, content: Any, *words: str) -> None:
    control_plane.kubectl("apply", "-n", namespace, "-f", "-", *words, stdin=json.dumps(content))


def run(control_plane: ControlPlane, **options: Any) -> dict[str, Any]:
    return change_run.run(
        workload_lint, **{"select": [RULE], "kubeconfig": str(control_plane.kubeconfig), **options}
    )


def test_live_objects(control_plane: ControlPlane, namespace: str) -> None:
    """A Job is read, its pods are judged in it, and other namespaces are left alone."""
    put(control_plane, namespace, JOB)
    words = ("-n", namespace, "-l", "job-name=train", "--for=create", "--timeout=60s")
    control_plane.kubectl("wait", "pod", *words)
    result = run(control_plane, namespaces=[namespace])
    (finding,) = result["findings"]
    assert finding["object"] == {"kind": "Job", "namespace": namespace, "name": "train"}
    assert (finding["source"], finding["line"], result["exit_code"]) == ("cluster", None, 4)
    assert result["passed_over"]["Pod"] == 1
    assert result["calls"] < 30
    assert run(control_plane, namespaces=["default"])["findings"] == []
    everywhere = run(control_plane, all_namespaces=True, _ansible_check_mode=True)
    assert finding in everywhere["findings"]


def test_what_may_not_be_read_is_told(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """A user who sees Jobs only: the rest is not known, so nothing is called missing."""
    put(control_plane, namespace, JOB)
    for words in (
        ("create", "serviceaccount", "poor", "-n", namespace),
        ("create", "role", "poor", "-n", namespace, "--verb=list", "--resource=jobs.batch"),
        (
            "create",
            "rolebinding",
            "poor",
            "-n",
            namespace,
            "--role=poor",
            "--serviceaccount=%s:poor" % namespace,
        ),
    ):
        control_plane.kubectl(*words)
    config = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    token = control_plane.kubectl("create", "token", "poor", "-n", namespace).strip()
    config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
    poor = tmp_path / "kubeconfig"
    poor.write_text(yaml.safe_dump(config), encoding="utf-8")
    poor.chmod(0o600)
    result = run(control_plane, namespaces=[namespace], kubeconfig=str(poor), complete=True, select=[])
    assert RULE in [finding["rule"] for finding in result["findings"]]
    assert {"kube_forbidden"} == {problem["code"] for problem in result["problems"]}
    assert "failed" not in result
    assert [f for f in result["findings"] if "does not exist" in f["message"]] == []


def test_the_recorded_keys_are_those_of_this_server(control_plane: ControlPlane) -> None:
    """tests/tools/api_fields.py makes the same module of the OpenAPI of the server that runs here."""
    tool = _tool()
    documents = {}
    for group in tool.GROUPS:
        path = "/openapi/v3/" + ("api/v1" if group == "core" else "apis/%s/v1" % group)
        documents[group] = json.loads(control_plane.kubectl("get", "--raw", path))
    version = json.loads(control_plane.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    assert version == api_fields.VERSION
    assert tool.module(version, documents) == tool.FILE.read_text(encoding="utf-8")


def _tool() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "tools" / "api_fields.py"
    spec = importlib.util.spec_from_file_location("api_fields_tool", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_server_drops_what_the_lint_names(control_plane: ControlPlane, namespace: str) -> None:
    """Each path that the lint names in an object is gone from what the server stored, and nothing else is."""
    odd = copy.deepcopy(JOB)
    pods = odd["spec"]["template"]["spec"]
    pods.update({"resourceClaim": [], "gone": {"x": 1}})
    pods["containers"][0].update({"resourceClaims": [], "securityContext": {"capability": {}}})
    odd["metadata"]["label"] = {"x": "y"}
    _compare(control_plane, namespace, [odd])
    control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(CRD))
    control_plane.kubectl(
        "wait", "--for=condition=Established", "crd/things.lint.example.org", "--timeout=30s"
    )
    _compare(control_plane, namespace, [THING, CRD])
    result = run(control_plane, documents=[THING], definitions=True, select=[KEYS])
    assert len(result["findings"]) == 9
    control_plane.kubectl("delete", "crd", "things.lint.example.org")


def _compare(control_plane: ControlPlane, namespace: str, contents: list[Any]) -> None:
    put(control_plane, namespace, contents[0], "--validate=false")
    words = (contents[0]["kind"].lower(), contents[0]["metadata"]["name"], "-n", namespace, "-o", "json")
    stored = json.loads(control_plane.kubectl("get", *words))
    documents = live(contents)
    named = {
        finding.path
        for finding in engine.lint(documents)
        if finding.rule == KEYS and finding.document is documents[0] and finding.status == "fail"
    }
    assert named == set(_missing(contents[0], stored, ()))
    assert named


def _missing(given: Any, stored: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The outermost paths that the server did not store."""
    if isinstance(given, dict):
        for key, value in given.items():
            if key not in stored:
                yield (*path, key)
            else:
                yield from _missing(value, stored[key], (*path, key))
    elif isinstance(given, list):
        for position, value in enumerate(given):
            yield from _missing(value, stored[position], (*path, position))
