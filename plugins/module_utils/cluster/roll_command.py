# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``range_roll`` does for each of its states. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..core import bounds
from ..core.errors import RdmaError
from ..core.oke import canary, child_range
from ..core.roll import planning, status, table
from ..core.roll.model import Consent, NodeView, Plan, Thresholds
from ..core.roll.names import PREFIX, Phase, State, Strategy
from . import roll_node
from .roll_dranet import Proof
from .roll_lease import DURATION
from .roll_run import ABORT, GO_ON, WORKERS, Ended, stamp
from .roll_session import RANGE, Options, Session, exit_code
from .roll_store import NAMESPACE, Stored

STATES = ("planned", "applied", "resumed", "aborted", "rolled_back", "status")
WORKING = frozenset(("applied", "resumed", "aborted", "rolled_back"))
"""States for which the cluster is changed."""

SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": list(STATES), "default": "planned"},
    "kind": {"type": "str", "choices": ["range", "netns_mode", "oca_network"], "default": "range"},
    "child_range": {"type": "str"},
    "old_range": {"type": "str"},
    "value": {"type": "str"},
    "agent_namespace": {"type": "str", "default": "kube-system"},
    "node_options": {"type": "dict", "default": {}},
    "roll": {"type": "str"},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "strategy": {"type": "str", "choices": [entry.value for entry in Strategy], "default": "drain_all"},
    "canary": {"type": "int"},
    "blocks": {"type": "dict", "default": {}},
    "budget": {"type": "str", "default": "1"},
    "min_one": {"type": "bool", "default": False},
    "fence": {"type": "str", "choices": ["cordon", "taint"], "default": "cordon"},
    "evict_ownerless": {"type": "bool", "default": False},
    "evict_host_network": {"type": "bool", "default": False},
    "evict_jobs": {"type": "bool", "default": True},
    "wait_for_jobs": {"type": "int", "default": 0},
    "limits": {"type": "dict", "default": {}},
    "max_consecutive_failed": {"type": "int", "default": 2},
    "max_failed_percent": {"type": "int", "default": 10},
    "max_blocked": {"type": "int", "default": 3},
    "release_blocked": {"type": "bool", "default": True},
    "accept_problems": {"type": "bool", "default": False},
    "reason": {"type": "str", "default": ""},
    "resources": {"type": "list", "elements": "str", "default": []},
    "networks": {"type": "list", "elements": "str", "default": []},
    "namespace": {"type": "str", "default": NAMESPACE},
    "driver_namespace": {"type": "str", "default": "kube-system"},
    "daemonsets": {"type": "list", "elements": "str", "default": []},
    "prefix": {"type": "str", "default": PREFIX},
    "proof_image": {"type": "str", "default": ""},
    "proof_namespace": {"type": "str", "default": "kube-system"},
    "proof_device_class": {"type": "str", "default": "rdma-nic"},
    "proof_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
    "proof_expect": {"type": "str", "choices": list(canary.EXPECTATIONS), "default": "child"},
    "proof_ready": {"type": "bool", "default": True},
    "proof_timeout": {"type": "float", "default": 120},
    "max_runtime": {"type": "float", "default": 0},
    "workers": {"type": "int", "default": WORKERS},
    "lease_duration": {"type": "float", "default": DURATION},
    "force_unlock": {"type": "bool", "default": False},
    "wait_for_lease": {"type": "bool", "default": True},
}  # fmt: skip
"""The arguments, without those of the connection."""

REQUIRED_IF = [
    ("state", "planned", ["child_range", "value"], True),
    ("state", "applied", ["child_range", "value"], True),
]
EXCLUSIVE = [("child_range", "value")]


def require(params: Mapping[str, Any]) -> None:
    """See to it that numbers are in bounds.

    :raises RdmaError: ``number_out_of_range``.
    """
    bounds.require_numbers(
        params,
        proof_timeout=(1, 3600),
        lease_duration=(3, 3600),
        workers=(1, 64),
        max_runtime=(0, 30 * 86400),
        wait_for_jobs=(0, 30 * 86400),
        max_consecutive_failed=(1, 1000),
        max_failed_percent=(0, 100),
        max_blocked=(0, 10000),
    )


def options_of(params: Mapping[str, Any]) -> Options:
    """How a roll is carried out."""
    return Options(
        namespace=params["namespace"],
        driver_namespace=params["driver_namespace"],
        daemonsets=tuple(params["daemonsets"]),
        resources=tuple(params["resources"]),
        networks=tuple(params["networks"]),
        prefix=params["prefix"],
        proof=Proof(
            image=params["proof_image"],
            namespace=params["proof_namespace"],
            device_class=params["proof_device_class"],
            pull_policy=params["proof_pull_policy"],
            expect=params["proof_expect"],
            ready=params["proof_ready"],
            timeout=params["proof_timeout"],
        ),
        agent_namespace=params["agent_namespace"],
        node_options=params["node_options"],
        lease_duration=params["lease_duration"],
        force_unlock=params["force_unlock"],
        wait_for_lease=params["wait_for_lease"],
        workers=params["workers"],
        max_runtime=params["max_runtime"],
    )


def act(params: Mapping[str, Any], session: Session, check_mode: bool = False) -> dict[str, Any]:
    """Do what a state asks for; the result of the task.

    :raises RdmaError: an error of the planning, of the roll or of the client.
    """
    state = params["state"]
    if state == "planned" or (state == "applied" and not params["roll"]):
        return _planned_or_applied(params, session, check_mode)
    stored = session.chosen(params["roll"] or "")
    if state == "status":
        return _result(session, stored, False)
    if state == "applied":
        _require_same(params, stored)
    if state == "rolled_back":
        return _taken_back(params, session, stored, check_mode)
    if check_mode:
        return _result(session, stored, not stored.over)
    if state == "aborted":
        before = stored if stored.record.phase is Phase.ABORTED else None
        return _ran(session, session.run(stored, ABORT, params["reason"]), before)
    if stored.over:
        return _result(session, stored, False)
    return _ran(session, session.run(stored, GO_ON))


def _planned_or_applied(params: Mapping[str, Any], session: Session, check_mode: bool) -> dict[str, Any]:
    new = _wanted(params)
    if params["state"] == "applied":
        half_done = session.open()
        wanted = (params["kind"], new)
        if (
            half_done is not None and (half_done.plan.kind, half_done.plan.new) == wanted
        ):  # carried out as it was planned then
            if check_mode:
                return _result(session, half_done, True)
            return _ran(session, session.run(half_done, GO_ON))
    try:
        plan, views = _plan(params, session, new)
    except RdmaError as error:
        if error.code != "roll_values" or params["old_range"]:
            raise
        return _nothing(session, new)
    found = table.table(plan, views)
    result = {
        "plan": found.to_dict(),
        "problems": list(found.problems),
        "roll": planning.digest(plan),
        "summary": table.lines(found),
    }
    if params["state"] == "planned" or check_mode:
        return {
            **result,
            "changed": params["state"] == "applied",
            "roll_phase": Phase.PLANNED.value,
            "exit_code": 0,
            "calls": session.calls,
        }
    if found.problems and not params["accept_problems"]:
        raise RdmaError(
            "roll_problems",
            "The plan %s has problems: %s." % (planning.digest(plan), "; ".join(found.problems)),
            hint="Resolve them, or set accept_problems.",
            problems=list(found.problems),
        )
    stored = session.begin(plan)
    return {**result, **_ran(session, session.run(stored, GO_ON))}


def _nothing(session: Session, new: str) -> dict[str, Any]:
    """No node offers another range."""
    return {
        "changed": False,
        "roll": "",
        "roll_phase": Phase.COMPLETE.value,
        "exit_code": 0,
        "reason": "",
        "problems": [],
        "summary": ["The driver is told %s, and no node offers another range." % new],
        "calls": session.calls,
    }


def _plan(params: Mapping[str, Any], session: Session, new: str) -> tuple[Plan, dict[str, NodeView]]:
    return session.plan(
        new,
        params["nodes"],
        str(child_range.validate(params["old_range"])) if params["old_range"] else "",
        kind=params["kind"],
        strategy=Strategy(params["strategy"]),
        canary=params["canary"],
        blocks={str(name): str(block) for name, block in params["blocks"].items()},
        budget=params["budget"],
        min_one=params["min_one"],
        fence=params["fence"],
        consent=Consent(params["evict_ownerless"], params["evict_host_network"], params["evict_jobs"]),
        thresholds=Thresholds(
            params["max_consecutive_failed"], params["max_failed_percent"], params["max_blocked"]
        ),
        limits=_limits(params),
        release_blocked=params["release_blocked"],
    )


def _taken_back(
    params: Mapping[str, Any], session: Session, stored: Stored, check_mode: bool
) -> dict[str, Any]:
    if stored.plan.parent and not stored.over:  # it was begun before, so it goes on
        back = stored
    elif stored.plan.parent:
        if not params["roll"]:  # the latest roll took back the one before: nothing is left to do
            return _result(session, stored, False)
        raise RdmaError(
            "roll_ended",
            "The roll %s has itself taken back the roll %s." % (stored.name, stored.plan.parent),
            hint="Plan a new roll to the range that you want.",
            roll=stored.name,
        )
    else:
        plan = session.back(stored)
        if check_mode:
            return {
                **_result(session, stored, True),
                "roll": planning.digest(plan),
                "nodes_taken_back": list(plan.nodes),
            }
        back = session.begin(plan)
    if check_mode:
        return _result(session, back, True)
    return _ran(session, session.run(back, GO_ON))


def _require_same(params: Mapping[str, Any], stored: Stored) -> None:
    """``applied`` with the name of a stored roll goes on with it; the range must be the one of its plan."""
    wanted = _wanted(params)
    if (params["kind"], wanted) != (stored.plan.kind, stored.plan.new):
        raise RdmaError(
            "roll_other_range",
            "The roll %s changes the %s to %s, not to %s."
            % (stored.name, stored.plan.kind, stored.plan.new, wanted),
            hint="Name another roll, or none.",
            roll=stored.name,
        )


def _wanted(params: Mapping[str, Any]) -> str:
    """The value that the nodes are to offer.

    :raises RdmaError: ``roll_value``, or an error of the range or prefix.
    """
    kind = params["kind"]
    needed = "child_range" if kind == RANGE else "value"
    if not params[needed]:
        raise RdmaError(
            "roll_value",
            "A roll of the kind %s needs %s." % (kind, needed),
            hint="Give it, and leave the other one out.",
        )
    return (
        str(child_range.validate(params[needed])) if kind == RANGE else roll_node.parsed(kind, params[needed])
    )


def _limits(params: Mapping[str, Any]) -> dict[State, int]:
    """Seconds for states, by their names.

    :raises RdmaError: ``roll_limits``.
    """
    found = {State.WAIT_JOBS: params["wait_for_jobs"]}
    for name, seconds in params["limits"].items():
        try:
            found[State(name)] = int(seconds)
        except (ValueError, TypeError):
            raise RdmaError(
                "roll_limits",
                "The limit %s: %r is no state with a number of seconds." % (name, seconds),
                hint="States are %s." % ", ".join(state.value for state in State),
            ) from None
    return found


def _ran(session: Session, ended: Ended, before: Optional[Stored] = None) -> dict[str, Any]:
    reasons = session.roll.reasons if session.roll is not None else {}
    seen = status.look(ended.stored.plan, ended.stored.record, ended.views, stamp(), reasons)
    result = _told(session, ended.stored, seen)
    result.update(
        changed=before is None or before.record != ended.stored.record,
        reason=ended.reason,
        take_back=ended.take_back,
        unrestored=list(ended.unrestored),
        stopped=ended.stopped,
    )
    return result


def _result(session: Session, stored: Stored, changed: bool) -> dict[str, Any]:
    views = session.marks_of(stored)
    seen = status.look(stored.plan, stored.record, views, stamp())
    return {**_told(session, stored, seen), "changed": changed, "reason": stored.record.reason}


def _told(session: Session, stored: Stored, seen: status.Status) -> dict[str, Any]:
    return {
        "roll": stored.name,
        "parent": stored.plan.parent,
        "roll_phase": stored.record.phase.value,
        "exit_code": exit_code(stored.record.phase),
        "status": seen.to_dict(),
        "summary": status.lines(seen),
        "calls": session.calls,
    }
