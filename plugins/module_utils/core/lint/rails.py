# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: rails of Spiderpool, from policies and pools to the pods that ask for them. Private to rdma.k8s.

It may change with any release. The rules of single objects are those of the area SRIOV; here they speak before anything
is applied, and references are followed between the documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

from ..finding import ERROR, WARN
from ..kube import objects
from ..kube.documents import Document
from ..spiderpool import injection, ip_pool, multus_config, node_policy
from ..spiderpool.issue import Issue
from ..spiderpool.names import INJECT, NETWORKS, POOL_ANNOTATIONS
from . import devices as taken
from .devices import SPIDERPOOL_PREFIX
from .model import SPIDERPOOL, Context, Path, Verdict, failed, skipped, unknown, warned
from .pod import Pod
from .registry import pod_rule, rule

POLICY, POOL, CONFIG = "SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig"
_PART = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")


def _contents(context: Context, kind: str) -> list[dict[str, Any]]:
    found: Optional[list[dict[str, Any]]] = context.memo.get("rails " + kind)
    if found is None:
        found = [document.content for document in context.of_kind(kind)]
        context.memo["rails " + kind] = found
    return found


def _asked_by(context: Context, key: str, value: Any) -> list[injection.Config]:
    """The configs with this annotation, as the webhook sees them."""
    found: Optional[dict[tuple[str, str], list[injection.Config]]] = context.memo.get("rails by annotation")
    if found is None:
        found = context.memo["rails by annotation"] = {}
        for content in _contents(context, CONFIG):
            config = injection.config_of(content)
            for name in INJECT:
                if name in config.annotations:
                    found.setdefault((name, objects.text(config.annotations[name])), []).append(config)
    return found.get((key, objects.text(value)), [])


def _verdict(path: Path, issue: Issue) -> Verdict:
    """An issue as a verdict; the place of an issue that is no path is told in its message."""
    message = (
        issue.message if issue.at.startswith(("spec", "metadata")) else "%s: %s" % (issue.at, issue.message)
    )
    make = failed if issue.severity == ERROR else warned
    return make(
        path, _sentence(message), code=issue.code, expected=str(dict(issue.extra).get("canonical", ""))
    )


def _sentence(message: str) -> str:
    """With a capital, unless it begins with a name."""
    first = message.partition(" ")[0]
    found = message if "." in first or "/" in first else message[:1].upper() + message[1:]
    return found.rstrip(".") + "."


def _path(at: str, content: Any) -> Path:
    """``spec.ips[0]`` as keys and positions; the whole object when it is no place in it."""
    parts: list[Any] = []
    for word, number in _PART.findall(at):
        parts.append(int(number) if number else word)
    return tuple(parts) if parts and isinstance(content, dict) and parts[0] in content else ()


# Pods


@pod_rule(
    "RDMA-WL-019",
    "Injection by Spiderpool does not contradict the rest of the pod",
    ERROR,
    "Let Spiderpool inject networks, or name them yourself: not both. Pools belong into the networks.",
    targets=(SPIDERPOOL,),
)
def contradictions(pod: Pod) -> Iterator[Verdict]:
    """S159 to S167: the webhook overrides without a word, or refuses with a sentence that only a controller sees."""
    space = pod.context.find("Namespace", pod.namespace) if pod.namespace else None
    of_namespace = objects.mapping(space.content if space is not None else {}, "metadata", "annotations")
    key, value = injection.asked(pod.annotations, of_namespace)
    if not key:
        yield skipped("Nothing asks Spiderpool to inject networks.")
        return
    configs = _asked_by(pod.context, key, value)
    limits = [taken.asked(container) for container in pod.containers if container.role == "main"]
    judged = injection.judge(
        pod.annotations, limits, configs, pod.namespace, namespace_annotations=of_namespace
    )
    place = (*pod.template.metadata_path, "annotations")
    asked_at = (*place, key) if key in pod.annotations else place if pod.annotations else pod.path
    for issue in judged.issues:
        if issue.code == "inject-no-match" and not pod.context.complete:
            yield from _overridden(pod, place)
            yield unknown(
                asked_at,
                "No SpiderMultusConfig among the documents has %s: %s." % (key, value),
                code=issue.code,
            )
        elif issue.code == "inject-namespace-skipped":
            message = issue.message + "; its filters can be set otherwise"  # S166
            yield warned(asked_at, _sentence(message), code=issue.code)
        else:
            yield _verdict(_of_issue(issue, pod, place, asked_at), issue)


def _of_issue(issue: Issue, pod: Pod, place: Path, asked_at: Path) -> Path:
    """Where the annotation stands that an issue is about."""
    if issue.code == "inject-networks-overwritten":
        return (*place, NETWORKS)
    if issue.code == "inject-ippool-annotation":
        return (*place, next(key for key in POOL_ANNOTATIONS if pod.annotations.get(key)))
    return asked_at


def _overridden(pod: Pod, place: Path) -> Iterator[Verdict]:
    for issue in injection.overridden(pod.annotations):
        yield _verdict(_of_issue(issue, pod, place, place), issue)


@pod_rule(
    "RDMA-WL-020",
    "The devices of Spiderpool that pods ask for are made by a policy",
    ERROR,
    "Write the resource as its policy makes it: prefix, slash, resourceName.",
    targets=(SPIDERPOOL,),
)
def made(pod: Pod) -> Iterator[Verdict]:
    """S119, S230: nothing else makes them, and a pod that asks for another one stays pending."""
    asked = [name for name in pod.amounts if name.startswith(SPIDERPOOL_PREFIX)]
    if not asked:
        yield skipped("The pods ask for no device of Spiderpool.")
        return
    names = _made(pod.context)
    if not names:
        yield skipped("No %s is among the documents." % POLICY)
        return
    for name in asked:
        if name.partition("/")[2] in names:
            continue
        path = (*pod.amounts[name][0][0].path, "resources", "limits", name)
        expected = ", ".join([SPIDERPOOL_PREFIX + called for called in sorted(names)])
        message = "No policy makes %s." % name
        if pod.context.complete:
            yield failed(path, message, expected=expected, observed=name)
        else:
            yield warned(
                path,
                "No policy among the documents makes %s." % name,
                hint="Correct the name, or give the lint the policy as well.",
                expected=expected,
                observed=name,
            )


def _made(context: Context) -> frozenset[str]:
    """What the policies make, without its prefix."""
    found = context.memo.get("policy resources")
    if found is None:
        names = {
            objects.text(objects.mapping(content, "spec").get("resourceName"))
            for content in _contents(context, POLICY)
        }
        found = context.memo["policy resources"] = frozenset(names - {""})
    return frozenset(found)


# Policies, pools, networks


@rule(
    "RDMA-WL-021",
    "Policies, pools and networks of Spiderpool keep their rules and fit each other",
    ERROR,
    "Correct the object; the section of the area SRIOV that tells the code says more.",
    kinds=(POLICY, POOL, CONFIG),
)
def rails(document: Document, context: Context) -> Iterator[Verdict]:
    """S76 to S112, S150: each kind by its own rules; pools and resources that a network names are looked for."""
    content = document.content
    for issue in _issues(context)[id(content)]:
        verdict = _verdict(_path(issue.at, content), issue)
        yield verdict if verdict.status != WARN else verdict._replace(severity="warning")


def _issues(context: Context) -> dict[int, list[Issue]]:
    """What is wrong with all policies, pools and configs, by the identity of the content."""
    found: Optional[dict[int, list[Issue]]] = context.memo.get("rails issues")
    if found is None:
        policies, pools, configs = [_contents(context, kind) for kind in (POLICY, POOL, CONFIG)]
        of_configs = multus_config.judge_all(
            configs,
            [objects.name(pool) for pool in pools] or None,
            [_maker(policy) for policy in policies] or None,
        )
        found = {id(content): issues for content, issues in zip(configs, of_configs)}
        for content, verdict in zip(pools, ip_pool.judge_all(pools, pools)):
            found[id(content)] = verdict.issues
        for content, issues in zip(policies, node_policy.judge_all(policies, None, policies)):
            found[id(content)] = [*issues, *node_policy.unknown_fields(content)]
        context.memo["rails issues"] = found
    return found


def _maker(content: dict[str, Any]) -> multus_config.Policy:
    spec = objects.mapping(content, "spec")
    return multus_config.Policy(
        objects.text(spec.get("resourceName")), objects.text(spec.get("linkType")).lower()
    )
