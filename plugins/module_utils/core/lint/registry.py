# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of lint rules. Private to rdma.k8s: it may change with any release.

A rule is a function of one document and the :class:`~.model.Context`. It says what it finds as
:class:`~.model.Verdict`: nothing at all means that the document passes, ``skip`` needs a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..finding import SKIP, CheckInfo
from ..kube.documents import Document
from ..kube.pod_templates import POD_KINDS
from .model import Context, Verdict, skipped
from .pod import Pod, pods

Run = Callable[[Document, Context], Iterable[Verdict]]


@dataclass(frozen=True)
class Rule:
    """A registered rule.

    :param kinds: kinds of objects that it reads; empty: every kind.
    :param targets: targets for which it speaks; empty: all.
    """

    info: CheckInfo
    run: Run
    kinds: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()


RULES: dict[str, Rule] = {}


def rule(
    check: str,
    title: str,
    severity: str,
    hint: str,
    *,
    kinds: Iterable[str] = (),
    targets: Iterable[str] = (),
) -> Callable[[Any], Any]:
    """Register a function ``(document, context) -> verdicts`` under an id such as ``RDMA-WL-001``."""
    area = check.split("-")[1]
    info = CheckInfo(check, title, severity, area, hint, "checks/%s.md#%s" % (area.lower(), check.lower()))

    def decorate(function: Any) -> Any:
        if check in RULES:
            raise ValueError("rule %s is registered twice" % check)
        RULES[check] = Rule(info, function, frozenset(kinds), frozenset(targets))
        return function

    return decorate


def pod_rule(
    check: str,
    title: str,
    severity: str,
    hint: str,
    unless: Callable[[Pod], Optional[Verdict]] = lambda _pod: None,
    **more: Any,
) -> Callable[[Any], Any]:
    """Register a function ``pod -> verdicts`` that is asked for each pod template of an object.

    The object passes when one of its templates does and none is wrong; it is skipped when all of them are.

    :param unless: why a pod is not judged, as a rule a skip; the function is not asked for such a pod.
    """

    def decorate(function: Callable[[Pod], Iterable[Verdict]]) -> Any:
        def of_pod(pod: Pod) -> Iterable[Verdict]:
            apart = unless(pod)
            return function(pod) if apart is None else (apart,)

        def run(document: Document, context: Context) -> Iterator[Verdict]:
            return over_pods(of_pod, document, context)

        run.__doc__ = function.__doc__
        rule(check, title, severity, hint, kinds=POD_KINDS, **more)(run)
        return function

    return decorate


def over_pods(
    function: Callable[[Pod], Iterable[Verdict]], document: Document, context: Context
) -> Iterator[Verdict]:
    """What a function says of the pods of a document, see :func:`pod_rule`."""
    skips: list[Verdict] = []
    judged = False
    for pod in pods(document, context):
        silent = True
        for verdict in function(pod):
            silent = False
            if verdict.status == SKIP:
                skips.append(verdict)
            else:
                judged = True
                yield verdict
        judged = judged or silent
    if not judged:
        yield skips[0] if skips else skipped("The object holds no pod template.")
