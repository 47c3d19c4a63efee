# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ValidatingAdmissionPolicies from the rules of claims. Private to rdma.k8s: it may change with any release.

There are up to four policies, each with a binding:

- ``claims``: what would fail when the claim is prepared; the action that the user wants.
- ``claims-advice``: what depends on the device, and what works with a consequence; it never denies.
- ``pods``: what of a pod fails for sure; the action that the user wants.
- ``pods-advice``: what a policy cannot tell alone, since it does not see the claims of a pod; it never denies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ..errors import RdmaError
from ..finding import ERROR
from ..kube.claims import DEVICES
from ..net import quoted
from . import cel, claim_rules, pod_rules
from .cel import literal
from .claim_rules import (
    NODE_LEVEL_SELECTOR,
    RULES,
    SELECTS_RDMA_NIC,
    SELECTS_RDMA_ONLY,
    ClaimRule,
    SelectorRule,
    Wording,
)
from .conditions import Condition
from .constants import DRIVER

WARN, DENY, AUDIT = ACTIONS = ("warn", "deny", "audit")

GROUP_VERSION = "admissionregistration.k8s.io/v1"
MOST_CONFIGS = 32
"""The API server takes no more configurations or requests in one object."""


@dataclass(frozen=True)
class Settings:
    """How the policies are made.

    :param prefix: begins the names of all objects.
    :param actions: what happens to an object that breaks a rule for sure, of :data:`ACTIONS`.
    :param failure_policy: ``Fail`` or ``Ignore``: what happens when the API server cannot evaluate a policy.
    :param profile_provider: of :data:`~.claim_rules.PROFILE_PROVIDERS`; ``none`` leaves the rules of the profile out.
    :param pods: judge pods and what makes them, too.
    :param skip: codes of rules to leave out.
    :param namespace_selector: a LabelSelector; ``None``: all namespaces.
    """

    prefix: str = "rdma-k8s"
    actions: tuple[str, ...] = (WARN,)
    failure_policy: str = "Ignore"
    profile_provider: str = "cloud"
    pods: bool = True
    skip: tuple[str, ...] = ()
    namespace_selector: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Validation:
    """One rule in a policy: a variable with the places where it is broken, and its message.

    :param places: an expression: a list of texts, where in the object the rule is broken.
    """

    code: str
    check: str
    message: str
    places: str


@dataclass(frozen=True)
class Policy:
    """A policy before it is written down."""

    name: str
    description: str
    resources: tuple[Mapping[str, Any], ...]
    variables: tuple[tuple[str, str], ...]
    validations: tuple[Validation, ...]
    denies: bool
    conditions: tuple[tuple[str, str], ...] = field(default=())


def settings(**options: Any) -> Settings:
    """Settings that can be made into policies.

    :raises RdmaError: ``rule_unknown``, ``admission_prefix``.
    """
    wanted = Settings(**options)
    known = codes()
    for code in wanted.skip:
        if code not in known:
            raise RdmaError(
                "rule_unknown",
                "There is no rule %s to leave out." % quoted(code),
                hint="The rules are %s." % ", ".join(known),
                rule=code,
            )
    if not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", wanted.prefix):
        raise RdmaError(
            "admission_prefix",
            "The prefix %s cannot begin the name of an object." % quoted(wanted.prefix),
            hint="Take at most 63 small letters, digits and dashes; begin and end with a letter or digit.",
            prefix=wanted.prefix,
        )
    return wanted


def codes() -> list[str]:
    """The codes of all rules that a policy can hold."""
    return (
        [rule.code for rule in RULES] + [NODE_LEVEL_SELECTOR.code] + [rule.code for rule in pod_rules.RULES]
    )


def listing(settings: Settings) -> list[dict[str, str]]:
    """The rules of the policies as plain data."""
    action = next(action for action in (DENY, WARN) if action in settings.actions)
    return [
        {
            "code": item.code,
            "check": item.check,
            "verdict": action if policy.denies else WARN,
            "message": item.message,
        }
        for policy in policies(settings)
        for item in policy.validations
    ]


def documents(settings: Settings) -> list[dict[str, Any]]:
    """The policies and their bindings, each policy before its binding."""
    found = []
    for policy in policies(settings):
        if policy.validations:
            found += [_policy(policy, settings), _binding(policy, settings)]
    return found


def names(prefix: str) -> list[dict[str, Any]]:
    """What :func:`documents` may ever have made under a prefix, in its order: enough to remove it."""
    return [
        {"apiVersion": GROUP_VERSION, "kind": kind, "metadata": {"name": "%s-%s" % (prefix, name)}}
        for name in NAMES
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    ]


NAMES = ("claims", "claims-advice", "pods", "pods-advice")


def policies(settings: Settings) -> list[Policy]:
    """The policies, some of them without validations when the settings leave all out."""
    wanted = [
        rule
        for rule in RULES
        if rule.code not in settings.skip and claim_rules.applies(rule, settings.profile_provider)
    ]
    certain = [_judged(rule, rule.scope.certain) for rule in wanted if rule.severity == ERROR]
    advice = [
        _judged(rule, rule.scope.possible, claim_rules.POSSIBLE)
        for rule in wanted
        if rule.severity == ERROR and rule.scope.possible is not None
    ]
    advice += [_judged(rule, rule.scope.certain) for rule in wanted if rule.severity != ERROR]
    if NODE_LEVEL_SELECTOR.code not in settings.skip:
        advice.append(_selecting(NODE_LEVEL_SELECTOR))
    found = [
        Policy("claims", "Claims whose preparation fails.", CLAIMS, VIEWS, tuple(certain), True, CHANGED),
        Policy("claims-advice", "Claims to look at.", CLAIMS, VIEWS, tuple(advice), False, CHANGED),
    ]
    if settings.pods:
        for name, about, denies in (
            ("pods", "Pods with claims that cannot end well.", True),
            ("pods-advice", "Pods with claims to look at.", False),
        ):
            rules = [
                rule for rule in pod_rules.RULES if rule.certain is denies and rule.code not in settings.skip
            ]
            found.append(Policy(name, about, PODS, POD_SPEC, tuple(map(_of_pod, rules)), denies, POD_CHANGED))
    return found


# --- claims

CLAIMS: tuple[Mapping[str, Any], ...] = (
    {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["resourceclaims", "resourceclaimtemplates", "deviceclasses"],
    },
)

CHANGED = (("specification-changed", 'request.operation == "CREATE" || object.spec != oldObject.spec'),)
"""Labels and finalizers of what exists already may always change: a claim must be able to end."""


def _selects(wording: Wording, holder: str) -> str:
    """A selector of a request, or of an alternative, matches. Looking for the word first costs little."""
    found = "s.cel.expression.contains(%s) && s.cel.expression.matches(%s)" % (
        literal(wording.word),
        literal(wording.pattern),
    )
    return "(has(%s.selectors) && %s.selectors.exists(s, has(s.cel) && %s))" % (holder, holder, found)


def _names(wording: Wording) -> str:
    """For each request the names of what selects so: its own, or ``request/alternative``."""
    return (
        "variables.requests.map(r, has(r.exactly) ? (%s ? [dyn(r.name)] : []) : has(r.firstAvailable) ?"
        " r.firstAvailable.filter(q, %s).map(q, dyn(r.name + '/' + q.name)) : [])"
        % (_selects(wording, "r.exactly"), _selects(wording, "q"))
    )


def _chosen(variable: str) -> str:
    """Configuration ``i`` is meant for one of the requests that a variable names."""
    names = "variables.configs[i].requests"
    return (
        "variables.%s.exists(l, l.exists(n, !has(%s) || size(%s) == 0 || n in %s || n.split('/')[0] in %s))"
        % (variable, names, names, names, names)
    )


VIEWS: tuple[tuple[str, str], ...] = (
    ("kind", "request.kind.kind"),
    (
        "holder",
        (
            'variables.kind == "DeviceClass" ? dyn(object).spec : variables.kind == "ResourceClaim" ?'
            " (has(dyn(object).spec.devices) ? dyn(object).spec.devices : dyn({})) :"
            " (has(dyn(object).spec.spec.devices) ? dyn(object).spec.spec.devices : dyn({}))"
        ),
    ),
    (
        "place",
        " : ".join(
            [
                "variables.kind == %s ? %s" % (literal(kind), literal(".".join(path)))
                for kind, path in DEVICES.items()
            ]
            + ['""']
        ),
    ),
    ("configs", "has(variables.holder.config) ? variables.holder.config : dyn([])"),
    (
        "requests",
        (
            'variables.kind == "DeviceClass" ? dyn([{"name": dyn(""), "exactly": dyn(variables.holder)}]) :'
            " has(variables.holder.requests) ? variables.holder.requests : dyn([])"
        ),
    ),
    ("rdma_nics", _names(SELECTS_RDMA_NIC)),
    ("rdma_only", _names(SELECTS_RDMA_ONLY)),
    ("positions", literal(list(range(MOST_CONFIGS)))),
    (
        "views",
        "variables.positions.filter(i, i < size(variables.configs) && has(variables.configs[i].opaque)"
        " && variables.configs[i].opaque.driver == %s)"
        '.map(i, {"at": dyn(variables.place + ".config[" + string(i) + "].opaque.parameters"),'
        ' "parameters": dyn(variables.configs[i].opaque.parameters),'
        ' "rdma_nic": dyn(%s), "rdma_only": dyn(%s)})'
        % (literal(DRIVER), _chosen("rdma_nics"), _chosen("rdma_only")),
    ),
)
"""What the validations look at: the twin of :mod:`.claim_views`."""


def _judged(rule: ClaimRule, scope: Optional[Condition], more: str = "") -> Validation:
    gate = cel.render(scope, "v") if scope is not None else "false"
    broken = '(%s) && [v["parameters"]].exists(p, %s)' % (gate, cel.render(rule.condition, "p"))
    message = " ".join([text for text in (rule.message, more, rule.hint) if text])
    return Validation(
        rule.code, rule.check, message, 'variables.views.filter(v, %s).map(v, v["at"])' % broken
    )


def _selecting(rule: SelectorRule) -> Validation:
    def broken(holder: str) -> str:
        return "(%s && !%s)" % (_selects(rule.mentions, holder), _selects(rule.lacks, holder))

    places = (
        "variables.positions.filter(i, i < size(variables.requests) && [variables.requests[i]].exists(r,"
        " has(r.exactly) ? %s : has(r.firstAvailable) && r.firstAvailable.exists(q, %s)))"
        '.map(i, variables.place + (variables.kind == "DeviceClass" ? "" : ".requests[" + string(i) + "]"))'
    )
    return Validation(
        rule.code,
        rule.check,
        "%s %s" % (rule.message, rule.hint),
        places % (broken("r.exactly"), broken("q")),
    )


# --- pods

PODS: tuple[Mapping[str, Any], ...] = (
    {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    },
    {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments", "statefulsets", "daemonsets", "replicasets"],
    },
    {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["jobs", "cronjobs"],
    },
)

_OF_CRON_JOB, _OF_OTHERS = "spec.jobTemplate.spec.template.spec", "spec.template.spec"

POD_CHANGED = (
    (
        "pods-changed",  # an old object may still be scaled, suspended and resumed
        (
            'request.operation == "CREATE" || (request.kind.kind == "CronJob" ?'
            " object.%s != oldObject.%s : object.%s != oldObject.%s)"
        )
        % (_OF_CRON_JOB, _OF_CRON_JOB, _OF_OTHERS, _OF_OTHERS),
    ),
    (
        "not-judged-before",
        # What a controller makes was judged where the user wrote it, and its warnings would reach nobody.
        (
            "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists("
            'o, has(o.controller) && o.controller && o.apiVersion in ["apps/v1", "batch/v1"])'
        ),
    ),
)

POD_SPEC: tuple[tuple[str, str], ...] = (
    (
        "place",
        'request.kind.kind == "Pod" ? "spec" : request.kind.kind == "CronJob" ? %s : %s'
        % (literal(_OF_CRON_JOB), literal(_OF_OTHERS)),
    ),
    (
        "spec",
        'request.kind.kind == "Pod" ? dyn(object).spec : request.kind.kind == "CronJob" ?'
        " dyn(object).%s : dyn(object).%s" % (_OF_CRON_JOB, _OF_OTHERS),
    ),
)


def _of_pod(rule: pod_rules.PodRule) -> Validation:
    places = "(%s) ? [variables.place] : []" % cel.render(rule.condition, "variables.spec")
    return Validation(rule.code, rule.check, "%s %s" % (rule.message, rule.hint), places)


# --- writing


def text_of(validation: Validation) -> str:
    """What the user reads, behind the places."""
    return "%s (%s, %s)" % (validation.message, validation.check, validation.code)


def _policy(policy: Policy, settings: Settings) -> dict[str, Any]:
    """A policy as the API server takes it.

    It has one validation that tells all that is wrong: of several, a refusal would show the first only, and the
    controller that checks types compiles every variable again for each of them.
    """
    variables = [*policy.variables, *((item.code, item.places) for item in policy.validations)]
    variables.append(("broken", " + ".join(map(_told, policy.validations))))
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {
            "name": "%s-%s" % (settings.prefix, policy.name),
            "labels": _labels(settings),
            "annotations": {"rdma-k8s/description": policy.description},
        },
        "spec": {
            "failurePolicy": settings.failure_policy,
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "resourceRules": [{**rule, "scope": "*"} for rule in policy.resources],
            },
            "matchConditions": [
                {"name": name, "expression": expression} for name, expression in policy.conditions
            ],
            "variables": [{"name": name, "expression": expression} for name, expression in variables],
            "validations": [
                {
                    "expression": "size(variables.broken) == 0",
                    "message": TOO_MANY,
                    "messageExpression": "variables.broken.join(%s)" % literal(SEPARATOR),
                    "reason": "Invalid",
                }
            ],
        },
    }


TOO_MANY = "More rules are broken than a message can hold; rdma-k8s lint tells them."
"""The API server shows it instead of a message of more than 5 KiB."""

SEPARATOR = " | "
"""Between the rules that one object breaks: a message has no line breaks."""


def _told(item: Validation) -> str:
    """A list with the message of a rule, empty when it is not broken. Of many places three are named."""
    places = "variables.%s" % item.code
    return (
        "(size({0}) == 0 ? [] : [(size({0}) > 3 ? {0}[0] + ', ' + {0}[1] + ', ' + {0}[2] + ' and ' +"
        " string(size({0}) - 3) + ' more' : {0}.join(', ')) + {1}])"
    ).format(places, literal(": " + text_of(item)))


def _binding(policy: Policy, settings: Settings) -> dict[str, Any]:
    name = "%s-%s" % (settings.prefix, policy.name)
    actions: Iterable[str] = settings.actions
    if not policy.denies:
        actions = [WARN, *([AUDIT] if AUDIT in settings.actions else [])]
    spec: dict[str, Any] = {
        "policyName": name,
        "validationActions": [action.capitalize() for action in sorted(actions, key=ACTIONS.index)],
    }
    if settings.namespace_selector is not None:
        spec["matchResources"] = {
            "matchPolicy": "Equivalent",
            "namespaceSelector": dict(settings.namespace_selector),
            "objectSelector": {},
        }
    return {
        "apiVersion": GROUP_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": _labels(settings)},
        "spec": spec,
    }


def _labels(settings: Settings) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "rdma.k8s", "app.kubernetes.io/instance": settings.prefix}
