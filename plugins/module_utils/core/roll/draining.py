# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a drain of nodes goes on, decided from what was read last. Private to rdma.k8s: it may change with any release.

First jobs get time to end, then what is left is evicted, then the claims must be released. A drain that runs out of
time fails; the same drain, started again, goes on where it stopped, because nothing but the cluster remembers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Optional

from ..errors import RdmaError
from ..report.wording import count
from . import users
from .model import Consent, User

_SHOWN = 8
_LONGEST = 5.0
AGAIN = "The same drain, started again, goes on from here."


class Phase(Enum):
    """How far it is."""

    JOBS = "wait for jobs"
    PODS = "evict"
    CLAIMS = "wait for claims"
    DONE = "drained"


@dataclass(frozen=True)
class Look:
    """A node as it was read: its users, and ``namespace/name`` of the claims that still have devices there."""

    node: str
    users: tuple[User, ...] = ()
    claims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What the operator wants; times in seconds.

    :param jobs: for pods that end by themselves to do so; 0: do not wait for them.
    :param pods: for evictions, from the first one on.
    :param claims: for claims to be released, when the pods have gone.
    :param settle: between the fence and the look that counts, so that a pod that was on its way there has arrived.
    :param apart: between two looks that both show nothing.
    """

    consent: Consent = Consent()
    jobs: float = 0.0
    pods: float = 900.0
    claims: float = 300.0
    settle: float = 2.0
    apart: float = 1.0


@dataclass(frozen=True)
class Progress:
    """Where the drain is. ``since``: when the phase began, ``fenced``: when the last fence was put up, ``empty``: when
    the nodes were first seen empty, all in monotonic seconds."""

    since: float
    fenced: float
    phase: Phase = Phase.JOBS
    empty: Optional[float] = None


def require_possible(looks: Iterable[Look], consent: Consent) -> None:
    """No pod stands in the way that no eviction removes; asked before anything is changed.

    :raises RdmaError: ``drain_blocked``
    """
    found = [
        (look.node, user, reason)
        for look in looks
        for user, reason in users.choose(look.users, consent).blocking
    ]
    if not found:
        return
    shown = [
        "%s/%s on %s (%s): %s" % (user.namespace, user.name, node, user.uses, reason)
        for node, user, reason in found
    ]
    raise RdmaError(
        "drain_blocked",
        "%s in the way of the drain: %s." % (_pods(len(found), "stands", "stand"), _listed(shown, "; ")),
        hint="Nothing is evicted from a node while one of its pods cannot go. Deal with them, and start again.",
        pods=[_told(node, user, reason) for node, user, reason in found],
    )


def advance(progress: Progress, looks: Sequence[Look], wish: Wish, now: float) -> tuple[Progress, list[User]]:
    """What the last look makes of the drain, and the pods whose eviction is to be asked for.

    :raises RdmaError: ``drain_blocked``, ``drain_jobs_running``, ``drain_timeout``, ``drain_claims_held``
    """
    if progress.phase is Phase.DONE:
        held_or_used = any(look.claims or users.choose(look.users, wish.consent).waits_for for look in looks)
        return (Progress(now, progress.fenced, Phase.PODS) if held_or_used else progress), []
    if progress.phase is Phase.JOBS:
        running = _jobs(looks, wish.consent)
        if running and now - progress.since < wish.jobs:
            return progress, []
        if running and not wish.consent.evict_jobs:
            raise _still_running(running, wish)
        progress = Progress(now, progress.fenced, Phase.PODS)
    require_possible(looks, wish.consent)
    choices = {look.node: users.choose(look.users, wish.consent) for look in looks}
    remaining = [(node, user) for node, choice in choices.items() for user in choice.waits_for]
    if remaining:
        if progress.phase is Phase.CLAIMS:  # a pod came after all
            progress = Progress(now, progress.fenced, Phase.PODS)
        if now - progress.since >= wish.pods:
            raise _too_slow(remaining, wish)
        return progress, [user for choice in choices.values() for user in choice.evict]
    if progress.phase is Phase.PODS:
        progress = Progress(now, progress.fenced, Phase.CLAIMS)
    held = [(look.node, claim) for look in looks for claim in look.claims]
    if held:
        if now - progress.since >= wish.claims:
            raise _held(held, wish)
        return replace(progress, empty=None), []
    if progress.empty is None:
        progress = replace(progress, empty=now)
    elif now - progress.empty >= wish.apart and now - progress.fenced >= wish.settle:
        return replace(progress, phase=Phase.DONE), []
    return progress, []


def standing(progress: Progress, looks: Sequence[Look], wish: Wish) -> str:
    """What is waited for, in a line for people, such as ``waiting at most 900 s for 3 pods on 2 nodes to go``."""
    waits = [(look.node, user) for look in looks for user in users.choose(look.users, wish.consent).waits_for]
    if progress.phase is Phase.JOBS:
        found = [(node, user) for node, user in waits if user.ends]
        return _waiting(wish.jobs, found, "job pod", "to end")
    if progress.phase is Phase.PODS:
        return _waiting(wish.pods, waits, "pod", "to go")
    held = [(look.node, claim) for look in looks for claim in look.claims]
    if held:
        return _waiting(wish.claims, held, "claim", "to be released")
    return "looking once more at empty nodes"


def _waiting(limit: float, found: Sequence[tuple[str, Any]], noun: str, become: str) -> str:
    where = count(len({node for node, _thing in found}), "node")
    return "waiting at most %g s for %s on %s %s" % (limit, count(len(found), noun), where, become)


def pause(progress: Progress, wish: Wish, now: float) -> float:
    """Seconds until the next look is due, if nothing is heard before: when the time of the phase is over, or as soon as
    a look at empty nodes counts."""
    if progress.empty is not None:
        due = max(progress.empty + wish.apart, progress.fenced + wish.settle)
    else:
        limits = {Phase.JOBS: wish.jobs, Phase.PODS: wish.pods, Phase.CLAIMS: wish.claims}
        due = progress.since + limits.get(progress.phase, 0.0)
    return min(max(due - now, 0.05), _LONGEST)


def _jobs(looks: Iterable[Look], consent: Consent) -> list[tuple[str, User]]:
    """The pods that end by themselves and are to be gone."""
    return [
        (look.node, user)
        for look in looks
        for user in users.choose(look.users, consent).waits_for
        if user.ends
    ]


def _still_running(running: Sequence[tuple[str, User]], wish: Wish) -> RdmaError:
    owners = sorted({user.owner or "Pod %s/%s" % (user.namespace, user.name) for _node, user in running})
    return RdmaError(
        "drain_jobs_running",
        "After %g seconds these still run: %s." % (wish.jobs, _listed(owners)),
        hint="Wait longer for jobs, or allow to evict what still runs then. Nothing was evicted. " + AGAIN,
        retryable=True,
        pods=[_told(node, user) for node, user in running],
    )


def _too_slow(remaining: Sequence[tuple[str, User]], wish: Wish) -> RdmaError:
    shown = ["%s/%s on %s" % (user.namespace, user.name, node) for node, user in remaining]
    return RdmaError(
        "drain_timeout",
        "After %g seconds %s there: %s." % (wish.pods, _pods(len(shown), "is", "are"), _listed(shown)),
        hint="The fence stays. " + AGAIN,
        retryable=True,
        pods=[_told(node, user) for node, user in remaining],
    )


def _held(held: Sequence[tuple[str, str]], wish: Wish) -> RdmaError:
    shown = ["%s on %s" % (claim, node) for node, claim in held]
    return RdmaError(
        "drain_claims_held",
        "%g seconds after the last pod went these claims still have devices: %s."
        % (wish.claims, _listed(shown)),
        hint="See what they are reserved for, and whether the driver answers: kubectl describe resourceclaim. "
        + AGAIN,
        retryable=True,
        claims=[{"node": node, "claim": claim} for node, claim in held],
    )


def refused(error: RdmaError, reasons: Mapping[str, str]) -> RdmaError:
    """The same error, with what the API server said to the last eviction of each pod.

    :param reasons: UID of a pod to the words.
    """
    pods = [
        {**pod, "reason": pod["reason"] or reasons.get(pod["uid"], "")}
        for pod in error.details.get("pods", ())
    ]
    said = sorted({pod["reason"] for pod in pods if pod["uid"] in reasons})
    message = "%s %s" % (error.message, " ".join(said[:_SHOWN])) if said else error.message
    return RdmaError(error.code, message, error.hint, error.retryable, **{**error.details, "pods": pods})


def _told(node: str, user: User, reason: str = "") -> dict[str, Any]:
    return {
        "node": node,
        "namespace": user.namespace,
        "name": user.name,
        "uid": user.uid,
        "owner": user.owner,
        "uses": user.uses,
        "reason": reason,
    }


def _pods(number: int, one: str, several: str) -> str:
    return "1 pod %s" % one if number == 1 else "%d pods %s" % (number, several)


def _listed(shown: Sequence[str], between: str = ", ") -> str:
    more = len(shown) - _SHOWN
    return between.join(shown[:_SHOWN]) + (" and %d more" % more if more > 0 else "")
