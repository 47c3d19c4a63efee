#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_lint
short_description: Find what in manifests of RDMA workloads cannot work
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Judges Pods, controllers, Jobs, the pods of operators, claims and their templates by the rules of the collection,
    and says for each finding where it is and what to do.
  - The objects come from files, from a variable, or from the API of a cluster, which is read in pages. Objects that a
    controller made from another one among them are judged in that one. Secrets are never read.
  - Findings never fail the module unless O(fail_on) says so. A file that cannot be read does, after the others have
    been judged.
  - Waivers are comments in files and annotations of objects, see the how-to about the lint.
  - Nothing in the cluster is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.kubernetes
options:
  paths:
    description:
      - Manifests (YAML or JSON), or directories with files C(*.yml), C(*.yaml) and C(*.json), on the host where the
        module runs.
    type: list
    elements: path
    default: []
  exclude:
    description: Leave out files and directories of O(paths) whose path or name is like one of these patterns.
    type: list
    elements: str
    default: []
  documents:
    description: Objects, such as a template lookup makes.
    type: list
    elements: dict
  namespaces:
    description: Read the objects of these namespaces from the cluster, and those that belong to no namespace.
    type: list
    elements: str
    default: []
  all_namespaces:
    description:
      - Read the objects of all namespaces from the cluster.
      - Mutually exclusive with O(namespaces).
    type: bool
    default: false
  definitions:
    description:
      - Read from the cluster the CustomResourceDefinitions of the kinds in O(paths) and O(documents), to tell keys that
        the API server would drop.
    type: bool
    default: false
  target:
    description: What the cluster runs. Without it, told for each object by what it asks for.
    type: str
    choices: [oke_dranet, spiderpool_sriov, ack_lingjun]
  shape:
    description: Shape of the nodes for which the workloads are meant, such as V(BM.GPU.H100.8).
    type: str
  shapes:
    description: Shapes that the table does not have, or has otherwise, by name or pattern.
    type: dict
    default: {}
  options:
    description: What no manifest tells, by name; see the page of the rules.
    type: dict
    default: {}
  complete:
    description:
      - The objects are all that exists, so what they name and what is not among them is missing. Otherwise such a
        finding is V(unknown).
      - It does not count when some kind of object may not be read from the cluster.
    type: bool
    default: false
  select:
    description: Only rules whose id is like one of these patterns, such as V(RDMA-WL-*). Without it, all.
    type: list
    elements: str
    default: []
  ignore:
    description: Leave out rules whose id is like one of these patterns.
    type: list
    elements: str
    default: []
  fail_on:
    description:
      - Fail the module when a rule fails at this severity or above, with the findings in the result.
      - With another value than V(never) it is also what counts in RV(exit_code), which is V(error) otherwise.
    type: str
    choices: [never, critical, error, warning, info]
    default: never
  strict:
    description:
      - What is V(unknown), and that no rule had an object to look at, counts in RV(exit_code), too.
      - With O(fail_on) it also fails the module.
    type: bool
    default: false
  dest:
    description:
      - Write a result document there, on the host where the module runs, as P(rdma.k8s.validate#module) does. The
        module P(rdma.k8s.report#module) makes reports of it; an object stands where a node stands.
    type: path
  sarif:
    description: Write the findings there as SARIF 2.1.0, on the host where the module runs.
    type: path
  docs:
    description: Web address of the pages of the rules, for the links in O(sarif).
    type: str
    default: ''
attributes:
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: none
    details: Only the files O(dest) and O(sarif) are written, as a whole.
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
requirements:
  - PyYAML 6.0 or newer, with O(paths)
seealso:
  - module: rdma.k8s.report
  - module: rdma.k8s.cluster_info
"""

EXAMPLES = r"""
- name: Judge the manifests of a repository, and stop when something cannot work
  rdma.k8s.workload_lint:
    paths: [manifests]
    exclude: ['*/charts']
    fail_on: error
    sarif: build/lint.sarif
  delegate_to: localhost
  run_once: true

- name: Judge what runs in two namespaces
  rdma.k8s.workload_lint:
    namespaces: [ml, batch]
    shape: BM.GPU.H100.8
    options:
      memlock_unlimited: true
  delegate_to: localhost
  run_once: true
  register: lint

- name: Judge a job before it is applied
  rdma.k8s.workload_lint:
    documents: "{{ lookup('ansible.builtin.template', 'train.yml.j2') | from_yaml_all | list }}"
    target: oke_dranet
    fail_on: error
  delegate_to: localhost

- name: Judge the whole cluster, for a report
  rdma.k8s.workload_lint:
    all_namespaces: true
    complete: true
    dest: build/workloads/result.json
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
findings:
  description: What is wrong, may be wrong or is waived, by file and line. What passes or is skipped is only counted.
  returned: success, and when findings fail the module
  type: list
  elements: dict
  contains:
    rule:
      description: Id of the rule.
      type: str
      returned: always
      sample: RDMA-WL-013
    status:
      description: V(fail), V(warn) or V(unknown).
      type: str
      returned: always
      sample: fail
    severity:
      description: V(critical), V(error), V(warning) or V(info).
      type: str
      returned: always
      sample: error
    source:
      description: The file, V(documents), or V(cluster).
      type: str
      returned: always
      sample: manifests/train.yml
    line:
      description: The line in the file; null without a file.
      type: int
      returned: always
      sample: 15
    object:
      description: Kind, namespace and name.
      type: dict
      returned: always
      sample: {kind: Job, namespace: ml, name: train}
    path:
      description: Keys and positions from the root of the object.
      type: list
      elements: raw
      returned: always
      sample: [spec, template, spec, terminationGracePeriodSeconds]
    place:
      description: The same as a text.
      type: str
      returned: always
      sample: spec.template.spec.terminationGracePeriodSeconds
    message:
      description: What was found.
      type: str
      returned: always
      sample: A pod is removed at once when it is deleted, so the devices of its claims are not given back.
    hint:
      description: What to do.
      type: str
      returned: always
      sample: Remove terminationGracePeriodSeconds, or set it to at least 1.
    expected:
      description: What was expected.
      type: str
      returned: always
      sample: at least 1 s
    observed:
      description: What was found there.
      type: str
      returned: always
      sample: 0 s
    waiver:
      description: Reason, owner and last day of the waiver; null without one.
      type: dict
      returned: always
      sample: {reason: ends at once by design, owner: ml, expires: '2027-06-30'}
counts:
  description: Number of results by status, and of those that are waived.
  returned: success, and when findings fail the module
  type: dict
  sample: {pass: 31, fail: 1, warn: 0, skip: 20, unknown: 0, waived: 1}
looked_at:
  description: Number of objects at which at least one rule could look, by kind.
  returned: success, and when findings fail the module
  type: dict
  sample: {Job: 2, ResourceClaimTemplate: 1}
passed_over:
  description: Number of other objects, by kind.
  returned: success, and when findings fail the module
  type: dict
  sample: {ConfigMap: 3}
problems:
  description: Files that could not be read, and kinds that may not be read from the cluster.
  returned: success, and when findings fail the module
  type: list
  elements: dict
  sample: []
exit_code:
  description:
    - V(0) nothing counts, V(2) a file could not be read, V(3) something is unknown (with O(strict)), V(4) a failure
      that counts is not waived.
  returned: success, and when findings fail the module
  type: int
  sample: 4
calls:
  description: Number of requests to the API server.
  returned: when the cluster is asked
  type: int
  sample: 21
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _module, judging, workload_lint
from ansible_collections.rdma.k8s.plugins.module_utils.cluster import workloads
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.model import TARGETS
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.outcome import problem_dict


def _run(module: AnsibleModule) -> dict[str, Any]:
    params, now = module.params, judging.now()
    result: dict[str, Any] = {}
    documents, problems = workload_lint.gather(params, nothing=not _asks_cluster(module))
    refused: list[RdmaError] = []
    if _asks_cluster(module):
        cluster = _kube.connect(module)
        if params["definitions"]:
            found, refused = workloads.definitions(cluster, documents)
            documents += found
        if params["namespaces"] or params["all_namespaces"]:
            found, more = workloads.read(cluster, params["namespaces"])
            documents, refused = documents + found, refused + more
        result["calls"] = cluster.calls
    for error in refused:
        module.warn("Not known: %s" % error.message)
    params = {**params, "complete": params["complete"] and not refused}
    outcome = workload_lint.judge(params, documents, problems, now)
    result["changed"] = workload_lint.write(params, outcome, now, module.check_mode)
    told = outcome.to_dict(workload_lint.threshold(params), params["strict"])
    result.update({key: told[key] for key in told if key not in ("kind", "schema_version")})
    result["problems"] += [problem_dict(error) for error in refused]
    if problems:
        _module.fail(module, problems[0], **result)
    if params["fail_on"] != workload_lint.NEVER and outcome.exit_code(params["fail_on"], params["strict"]):
        module.fail_json(msg=outcome.sentence(), code="lint_failed", **result)
    return result


def _asks_cluster(module: AnsibleModule) -> bool:
    return bool(
        module.params["namespaces"] or module.params["all_namespaces"] or module.params["definitions"]
    )


def main() -> None:
    texts = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            "paths": {"type": "list", "elements": "path", "default": []},
            "exclude": texts,
            "documents": {"type": "list", "elements": "dict"},
            "namespaces": texts,
            "all_namespaces": {"type": "bool", "default": False},
            "definitions": {"type": "bool", "default": False},
            "target": {"type": "str", "choices": list(TARGETS)},
            "shape": {"type": "str"},
            "shapes": {"type": "dict", "default": {}},
            "options": {"type": "dict", "default": {}},
            "complete": {"type": "bool", "default": False},
            "select": texts,
            "ignore": texts,
            "fail_on": {
                "type": "str",
                "choices": ["never", "critical", "error", "warning", "info"],
                "default": "never",
            },
            "strict": {"type": "bool", "default": False},
            "dest": {"type": "path"},
            "sarif": {"type": "path"},
            "docs": {"type": "str", "default": ""},
            **_kube.OPTIONS,
        },
        mutually_exclusive=[("namespaces", "all_namespaces")],
        supports_check_mode=True,
    )
    try:
        _module.prepare(module, _kube.LIBRARIES if _asks_cluster(module) else ())
        result = _run(module)
    except RdmaError as error:
        _module.fail(module, error)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
