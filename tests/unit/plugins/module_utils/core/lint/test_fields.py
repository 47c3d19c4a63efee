# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RDMA-WL-018: keys that the API server would drop."""

from __future__ import annotations

import copy

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import live, parse
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import api_fields, engine, fields

RULE = "RDMA-WL-018"
JOB = yaml.safe_load("""\
apiVersion: batch/v1
kind: Job
metadata: {name: train, labels: {any: thing}, annotations: {any/other: thing}}
spec:
  completions: 2
  backoffLimit: 0
  template:
    spec:
      nodeSelector: {any.thing/here: x}
      containers:
        - name: main
          env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
          resources: {limits: {nvidia.com/gpu: 8}, claims: [{name: rdma, request: one}]}
          securityContext: {capabilities: {add: [IPC_LOCK]}}
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]
      resourceClaims: [{name: rdma, resourceClaimTemplateName: t}]
status: {anything: [that, {the: server}, wrote]}
""")
CLAIM = yaml.safe_load("""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec:
  spec:
    devices:
      requests:
        - name: one
          exactly:
            deviceClassName: rdma
            selectors: [{cel: {expression: "true"}}]
      constraints: [{requests: [one], matchAttribute: dra.net/x}]
      config: [{requests: [one], opaque: {driver: dra.net, parameters: {interface: {anything: 1}}}}]
""")
PODS = ("spec", "template", "spec")


def told(*contents, which=0):
    documents = live(copy.deepcopy(list(contents)))
    return [
        finding
        for finding in engine.lint(documents)
        if finding.rule == RULE and finding.document is documents[which]
    ]


def changed(content, path, value):
    content = copy.deepcopy(content)
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return content


@pytest.mark.parametrize("content", [JOB, CLAIM], ids=["Job", "ResourceClaimTemplate"])
def test_good(content):
    (finding,) = told(content)
    assert finding.status == "pass"


@pytest.mark.parametrize(
    ("path", "part", "hint"),
    [
        ((*PODS, "resourceClaim"), "; perhaps resourceClaims is meant.", "Write resourceClaims in place of"),
        ((*PODS, "ResourceClaims"), "; perhaps resourceClaims is meant.", "Write resourceClaims"),
        ((*PODS, "containers", 0, "enviroment"), "so the API server drops it.", "Correct the key"),
        ((*PODS, "containers", 0, "securitycontext"), "perhaps securityContext is meant.", ""),
        (
            (*PODS, "containers", 0, "resourceClaims"),
            "it is a key of spec.template.spec",
            "mind the indentation",
        ),
        (
            (*PODS, "containers", 0, "limits"),
            "it is a key of spec.template.spec.containers[0].resources",
            "Move",
        ),
        ((*PODS, "containers", 0, "resources", "claims", 0, "requst"), "perhaps request is meant.", ""),
        ((*PODS, "volumes", 0, "emptyDir", "size"), "The key size is not known in", ""),
        (("spec", "containers"), "The key containers is not known in spec,", ""),
        (("Spec",), "is not known in the object, so the API server drops it; perhaps spec is meant.", ""),
        (("metadata", "label"), "perhaps labels is meant.", ""),
        (("spec", "template", "resourceClaims"), "it is a key of spec.template.spec", ""),
    ],
)
def test_unknown_keys(path, part, hint):
    (finding,) = told(changed(JOB, path, ["x"]))
    assert (finding.status, finding.severity, finding.path) == ("fail", "error", path)
    assert part in finding.message
    assert hint in finding.hint
    assert (finding.observed, finding.code) == (path[-1], "unknown-key")
    assert finding.expected


def test_a_claim_template():
    (finding,) = told(changed(CLAIM, ("spec", "spec", "devices", "request"), []))
    assert finding.message.endswith("perhaps requests is meant.")
    (finding,) = told(changed(CLAIM, ("spec", "devices"), {}))
    assert "The key devices is not known in spec," in finding.message
    assert finding.message.endswith("it is a key of spec.spec.")


def test_only_keys_count_not_types():
    assert told(changed(JOB, (*PODS, "volumes"), "text"))[0].status == "pass"
    assert told(changed(JOB, ("spec",), [1]))[0].status == "pass"


def test_another_version_is_looked_at_in_its_pods_only():
    other = {**JOB, "apiVersion": "batch/v2"}
    assert told(changed(other, ("spec", "newer"), []))[0].status == "pass"
    (finding,) = told(changed(other, (*PODS, "resourceClaim"), []))
    assert finding.path == (*PODS, "resourceClaim")


@pytest.mark.parametrize("content", [{"apiVersion": "v1", "kind": "ConfigMap"}, ["x"], "x", {}, {"kind": 5}])
def test_what_is_not_known_is_skipped(content):
    (finding,) = told(content)
    assert finding.status == "skip"


def test_many_unknown_keys_are_cut():
    findings = told(changed(JOB, ("spec", "template"), {"k%d" % number: 1 for number in range(100)}))
    assert len(findings) == fields.MOST + 1
    assert findings[-1].message == "More than 20 keys are not known."


def test_duplicate_keys():
    """Of two equal keys the first is lost, in an object of any kind."""
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: 1\n  b: 2\n  a: 3\n"
    (finding,) = [entry for entry in engine.lint(parse(text, "f")) if entry.rule == RULE]
    assert (finding.status, finding.line, finding.path) == ("fail", 6, ("data", "a"))
    assert finding.message == "The key a stands twice; its value in line 4 is lost."


CRD = yaml.safe_load("""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
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
                any: {type: object, additionalProperties: true}
                list: {type: array, items: {type: object, properties: {a: {type: string}}}}
                deep: {type: array, items: {type: array, items: {type: object, properties: {a: {}}}}}
                empty: {type: object}
                either: {x-kubernetes-int-or-string: true}
                embedded: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
    - name: v2
    - text
""")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"count": 1, "either": "x"}, None),
        ({"cuont": 1}, ("cuont",)),
        ({"open": {"x": {"y": 1}}}, None),
        ({"open": {"sub": {"y": 1}}}, ("open", "sub", "y")),
        ({"map": {"x": {"a": "1"}}}, None),
        ({"map": {"x": {"b": "1"}}}, ("map", "x", "b")),
        ({"texts": {"x": "y"}, "any": {"x": {"y": 1}}}, None),
        ({"list": [{"a": "1"}, {"b": "1"}]}, ("list", 1, "b")),
        ({"deep": [[{"a": 1}], [{"b": 1}]]}, ("deep", 1, 0, "b")),
        ({"empty": {"x": 1}}, ("empty", "x")),
        ({"embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}}, None),
        ({"embedded": {"metadata": {"nam": "x"}}}, ("embedded", "metadata", "nam")),
    ],
)
def test_kinds_whose_definition_is_given(spec, path):
    """Pruning as the API server does it for structural schemas; tests/cluster compares it with the server."""
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}
    (finding,) = told(CRD, thing, which=1)
    assert (finding.status, finding.path) == (("pass", ()) if path is None else ("fail", ("spec", *path)))
    assert told(thing)[0].status == "skip"
    assert told(CRD, {**thing, "apiVersion": "example.org/v2"}, which=1)[0].status == "skip"


def test_definitions_that_keep_everything_or_make_no_sense():
    kept = changed(CRD, ("spec", "preserveUnknownFields"), True)
    thing = {"apiVersion": "example.org/v1", "kind": "Thing", "x": 1}
    assert told(kept, thing, which=1)[0].status == "skip"
    for broken in ({"kind": fields.CRD}, {"kind": fields.CRD, "spec": {"versions": [{"schema": 5}]}}):
        assert fields.of_definition(broken) == {}


def test_the_recorded_fields_are_whole():
    kinds = fields.builtin()
    assert set(kinds) == set(api_fields.KINDS)
    assert {"spec", "metadata", "kind"} <= set(kinds["v1", "Pod"].keys)
    pod = kinds["v1", "Pod"].keys["spec"].keys
    assert pod["containers"].keys["resources"].keys["claims"].keys.keys() == {"name", "request"}
    assert pod["nodeSelector"] is None
