#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: admission_policy
short_description: Refuse claims when they are applied that would fail when their pod starts
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes ValidatingAdmissionPolicies and their bindings from the rules of claims, or writes them to a file. The API
    server then judges resource claims, claim templates and device classes for the driver C(dra.net), and pods.
  - The rules, their codes and their words are those of the lint (RDMA-WL-002, RDMA-WL-003, RDMA-WL-005, RDMA-WL-013,
    RDMA-WL-014) and of the provider.
  - There are four policies. C(PREFIX-claims) and C(PREFIX-pods) hold what fails for sure and take O(action).
    C(PREFIX-claims-advice) and C(PREFIX-pods-advice) hold what depends on the device, what a policy cannot tell alone,
    and what works with a consequence; they warn and never deny.
  - What exists already is not judged again, unless its specification changes.
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - rdma.k8s.kube_objects
  - rdma.k8s.attributes.change
options:
  action:
    description:
      - What happens to an object that breaks a rule for sure.
      - V(warn) accepts it and tells the user, V(deny) refuses it.
    type: str
    choices: [warn, deny]
    default: warn
  audit:
    description: Write each broken rule to the audit log of the API server as well, those of the advice included.
    type: bool
    default: false
  failure_policy:
    description:
      - What happens when the API server cannot evaluate a policy, for instance because an expression became too
        expensive. V(Ignore) accepts the object, V(Fail) does O(action).
    type: str
    choices: [Ignore, Fail]
    default: Ignore
  profile_provider:
    description:
      - Who resolves profiles, as DRANET's option C(--profile-provider) says.
      - With V(none) no profile is resolved and claims bring their own addresses, so the rules of the profile are left
        out.
    type: str
    choices: [cloud, webhook, none]
    default: cloud
  pods:
    description:
      - Judge pods, and what makes pods (Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob).
      - Pods that one of these made are not judged a second time.
    type: bool
    default: true
  skip_rules:
    description: Codes of rules to leave out, see the reference of the rules.
    type: list
    elements: str
    default: []
  namespace_selector:
    description:
      - A label selector of Kubernetes for the namespaces in which the policies count. Without it they count in all.
      - Device classes have no namespace and are always judged.
    type: dict
  prefix:
    description: Begins the names of all objects.
    type: str
    default: rdma-k8s
seealso:
  - module: rdma.k8s.claim_template
  - module: rdma.k8s.device_class
notes:
  - With O(state=absent) all objects are removed that this module may have made under O(prefix), whatever the other
    options say.
  - ValidatingAdmissionPolicies are part of every API server from Kubernetes 1.30 on.
"""

EXAMPLES = r"""
- name: Warn about claims that cannot work
  rdma.k8s.admission_policy:

- name: Refuse them
  rdma.k8s.admission_policy:
    action: deny
    audit: true

- name: Refuse them in the namespaces of teams only
  rdma.k8s.admission_policy:
    action: deny
    namespace_selector:
      matchExpressions:
        - {key: team, operator: Exists}

- name: Write the policies to a file
  rdma.k8s.admission_policy:
    action: deny
    state: rendered
    path: manifests/claims.yaml

- name: Remove the policies
  rdma.k8s.admission_policy:
    state: absent
"""

RETURN = r"""
manifest:
  description: The objects as YAML.
  returned: success
  type: str
  sample: "---\n# Rules of claims.\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n"
objects:
  description: The same as data.
  returned: success
  type: list
  elements: dict
  sample: [{kind: ValidatingAdmissionPolicy, metadata: {name: rdma-k8s-claims}}]
actions:
  description: What was done, or would be done in check mode.
  returned: success
  type: list
  elements: str
  sample: [create ValidatingAdmissionPolicy rdma-k8s-claims]
rules:
  description: The rules that the policies hold.
  returned: success
  type: list
  elements: dict
  contains:
    code:
      description: The code of the rule.
      type: str
      returned: always
      sample: claim_passthrough
    check:
      description: The rule of the lint.
      type: str
      returned: always
      sample: RDMA-WL-002
    verdict:
      description: O(action), or V(warn) for advice.
      type: str
      returned: always
      sample: deny
    message:
      description: What the user reads.
      type: str
      returned: always
      sample: The claim sets interface.type Passthrough, but the profile oke-rdma derives the child itself.
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _objects
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import admission


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "action": {"type": "str", "choices": ["warn", "deny"], "default": "warn"},
            "audit": {"type": "bool", "default": False},
            "failure_policy": {"type": "str", "choices": ["Ignore", "Fail"], "default": "Ignore"},
            "profile_provider": {"type": "str", "choices": ["cloud", "webhook", "none"], "default": "cloud"},
            "pods": {"type": "bool", "default": True},
            "skip_rules": {"type": "list", "elements": "str", "default": []},
            "namespace_selector": {"type": "dict"},
            "prefix": {"type": "str", "default": "rdma-k8s"},
            **_objects.OPTIONS,
        },
        supports_check_mode=True,
    )
    params = module.params

    def render() -> _objects.Rendering:
        settings = admission.settings(
            prefix=params["prefix"],
            actions=(params["action"], *(("audit",) if params["audit"] else ())),
            failure_policy=params["failure_policy"],
            profile_provider=params["profile_provider"],
            pods=params["pods"],
            skip=tuple(params["skip_rules"]),
            namespace_selector=params["namespace_selector"],
        )
        documents = (
            admission.names(settings.prefix) if params["state"] == "absent" else admission.documents(settings)
        )
        comment = ["Made by rdma.k8s.admission_policy: the rules of claims, in CEL."]
        return _objects.Rendering(documents, comment, {"rules": admission.listing(settings)})

    _objects.run(module, render)


if __name__ == "__main__":
    main()
