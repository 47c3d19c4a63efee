# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a roll: its order, its size, its name, its text. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Optional, Union

from ..errors import RdmaError
from ..json_text import Reader
from ..net import quoted
from .model import LIMITS, Consent, NodeView, Plan, Record, Thresholds
from .names import PREFIX, Phase, State, Strategy

DIGEST = 16
"""Hexadecimal digits of the name of a roll."""

_HINT = "The text was changed by somebody; end that roll by hand and plan a new one."
_PERCENT = re.compile(r"(\d{1,3})\s*%", re.ASCII)


def make(
    kind: str,
    old: str,
    new: str,
    nodes: Mapping[str, NodeView],
    *,
    strategy: Strategy = Strategy.DRAIN_ALL,
    canary: Optional[int] = None,
    blocks: Optional[Mapping[str, str]] = None,
    budget: Union[int, str] = 1,
    min_one: bool = False,
    fence: str = "cordon",
    consent: Optional[Consent] = None,
    thresholds: Optional[Thresholds] = None,
    limits: Optional[Mapping[State, int]] = None,
    release_blocked: bool = True,
    node_change: bool = False,
    reboot: bool = False,
    driver: str = "",
    parent: str = "",
    prefix: str = PREFIX,
) -> Plan:
    """Plan a roll over these nodes.

    Nodes that nobody uses come first, and nodes of one network block together; the canary stands in front of all, in
    two blocks where there are two.

    :param canary: how many nodes come first, alone; ``None``: two if there are two blocks, else one.
    :param budget: a number of nodes, or a share of them as in ``10%``, rounded down.
    :param min_one: a share that comes to nothing means one node.
    :param limits: seconds for some of the states; the others keep theirs.
    :raises RdmaError: ``roll_nodes``, ``roll_values``, ``roll_budget``, ``roll_canary``, ``roll_fence``.
    """
    if not nodes:
        raise RdmaError("roll_nodes", "A roll needs at least one node, found none.", hint="Name the nodes.")
    if not new or old == new:
        raise RdmaError(
            "roll_values",
            "The nodes offer %s and are to offer %s: there is nothing to change."
            % (quoted(old), quoted(new)),
            hint="Name the value that the nodes are to offer.",
        )
    if fence not in ("cordon", "taint"):
        raise RdmaError("roll_fence", "The fence must be cordon or taint, found %s." % quoted(fence))
    known = {name: block for name, block in (blocks or {}).items() if name in nodes and block}
    ordered = _ordered(nodes, known)
    first = _canary(ordered, known, canary)
    return Plan(
        kind=kind,
        old=old,
        new=new,
        nodes=(*first, *(name for name in ordered if name not in first)),
        strategy=strategy,
        canary=first,
        blocks=known,
        budget=size(budget, len(nodes), min_one),
        fence=fence,
        consent=consent or Consent(),
        thresholds=thresholds or Thresholds(),
        limits={**LIMITS, **(limits or {})},
        release_blocked=release_blocked,
        node_change=node_change,
        reboot=reboot,
        driver=driver,
        parent=parent,
        prefix=prefix,
    )


def size(budget: Union[int, str], nodes: int, min_one: bool = False) -> int:
    """The number of nodes that a budget allows of ``nodes``; a share is rounded down.

    :raises RdmaError: ``roll_budget``: not a number or share, or one with which nothing ever moves.
    """
    text = str(budget).strip()
    share = _PERCENT.fullmatch(text)
    if share and int(share[1]) <= 100:
        found = nodes * int(share[1]) // 100
        if not found and min_one:
            found = 1
    elif isinstance(budget, bool) or not (text.isascii() and text.isdigit()):
        raise RdmaError(
            "roll_budget",
            "The budget must be a number of nodes or a share of them as in 10%%, found %s." % quoted(budget),
        )
    else:
        found = int(text)
    if found < 1:
        raise RdmaError(
            "roll_budget",
            "The budget %s of %d nodes allows no node, so that nothing would ever move." % (text, nodes),
            hint="Name a number of nodes, a larger share, or allow one node at least.",
        )
    return found


def digest(plan: Plan) -> str:
    """The name of a roll: a hash of everything that was planned."""
    found: Optional[str] = plan.__dict__.get("_digest")
    if found is None:
        found = _hash(dump(plan))
        plan.__dict__["_digest"] = found  # plans never change, and each step of each node asks
    return found


def back(plan: Plan, nodes: Optional[Mapping[str, NodeView]] = None, driver: Optional[str] = None) -> Plan:
    """The plan that takes a roll back: old and new change places, over the nodes that it reached.

    :param nodes: as they are now; ``None``: all nodes of the plan. A node which the roll neither changed nor fences
        has nothing to be taken back.
    :param driver: version of the driver now; ``None``: as it was.
    :raises RdmaError: ``roll_nodes``: it reached no node.
    """
    name = digest(plan)
    names = plan.nodes
    if nodes is not None:
        reached = {found for found, node in nodes.items() if _reached(node, name)}
        names = (*(found for found in plan.nodes if found in reached), *sorted(reached - set(plan.nodes)))
        # What is broken comes first: nothing can be lost there, and it uses up the budget as long as it is broken.
        names = tuple(sorted(names, key=lambda found: nodes[found].marks.state is not State.FAILED))
    if not names:
        raise RdmaError(
            "roll_nodes", "The roll %s reached no node, so that there is nothing to take back." % name
        )
    return replace(
        plan,
        old=plan.new,
        new=plan.old,
        nodes=names,
        canary=names[:1],
        blocks={found: block for found, block in plan.blocks.items() if found in names},
        driver=plan.driver if driver is None else driver,
        parent=name,
    )


def first_record(plan: Plan, started: str, parent: Optional[Record] = None) -> Record:
    """The record with which a roll begins.

    :param started: RFC 3339.
    :param parent: record of the roll that this one takes back; what that one kept must be restored by this one.
    """
    return Record(started=started, kept=parent.kept if parent and plan.parent else "")


def dump(plan: Plan) -> str:
    """A plan as JSON, always the same for the same plan."""
    content = {entry.name: getattr(plan, entry.name) for entry in fields(plan)}
    content["strategy"] = plan.strategy.value
    content["consent"] = dict(vars(plan.consent))
    content["thresholds"] = dict(vars(plan.thresholds))
    content["limits"] = {state.value: seconds for state, seconds in plan.limits.items()}
    content["blocks"] = dict(plan.blocks)
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def load(text: str) -> Plan:
    """The plan of a JSON text. Its name is the hash of that very text, whatever a plan may consist of today.

    :raises RdmaError: ``roll_plan``: it is not one.
    """
    reader = Reader("roll_plan", "The plan of the roll", _HINT)
    content = _known(reader, reader.json(text), Plan, "the plan")
    consent = _known(reader, content.pop("consent", None), Consent, "consent")
    thresholds = _known(reader, content.pop("thresholds", None), Thresholds, "thresholds")
    limits = reader.members(content.pop("limits", None), "limits")
    blocks = reader.members(content.pop("blocks", None), "blocks")
    strategy = _word(reader, Strategy, content.pop("strategy", Strategy.DRAIN_ALL.value), "strategy")
    values = {name: _plain(reader, Plan, name, value) for name, value in content.items()}
    missing = [name for name in ("kind", "old", "new", "nodes") if name not in values]
    if missing:
        raise reader.wrong("the plan", "an object with " + ", ".join(missing), content)
    plan = Plan(
        strategy=strategy,
        consent=Consent(**{name: _plain(reader, Consent, name, value) for name, value in consent.items()}),
        thresholds=Thresholds(
            **{name: _plain(reader, Thresholds, name, value) for name, value in thresholds.items()}
        ),
        limits={
            _word(reader, State, name, "limits"): reader.integer(seconds, "limits.%s" % name) or 0
            for name, seconds in limits.items()
        },
        blocks={name: reader.text(block, "blocks.%s" % name) for name, block in blocks.items()},
        **values,
    )
    plan.__dict__["_digest"] = _hash(text)
    return plan


def dump_record(record: Record) -> str:
    """A record as JSON."""
    return json.dumps({**vars(record), "phase": record.phase.value}, sort_keys=True, separators=(",", ":"))


def load_record(text: str) -> Record:
    """The record of a JSON text.

    :raises RdmaError: ``roll_record``: it is not one.
    """
    reader = Reader("roll_record", "The record of the roll", _HINT)
    content = _known(reader, reader.json(text), Record, "the record")
    phase = _word(reader, Phase, content.pop("phase", Phase.PLANNED.value), "phase")
    return Record(
        phase=phase, **{name: _plain(reader, Record, name, value) for name, value in content.items()}
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST]


# --- pieces ----------------------------------------------------------------------------------------------------------


def _ordered(nodes: Mapping[str, NodeView], blocks: Mapping[str, str]) -> list[str]:
    """Blocks with fewer users first, each block as a whole, idle nodes first in it."""
    load_of: dict[str, int] = {}
    for name, node in nodes.items():
        block = blocks.get(name, "")
        load_of[block] = load_of.get(block, 0) + bool(node.users)
    return sorted(
        nodes,
        key=lambda name: (
            load_of[blocks.get(name, "")],
            blocks.get(name, ""),
            bool(nodes[name].users),
            name,
        ),
    )


def _canary(ordered: list[str], blocks: Mapping[str, str], wanted: Optional[int]) -> tuple[str, ...]:
    heads: dict[str, str] = {}
    for name in ordered:
        heads.setdefault(blocks.get(name, ""), name)
    if wanted is None:
        wanted = min(2, len(heads), len(ordered))
    if wanted < 1:
        raise RdmaError("roll_canary", "A roll needs at least one canary, found %d." % wanted)
    apart = [*heads.values(), *(name for name in ordered if name not in heads.values())]
    return tuple(apart[:wanted])


def _reached(node: NodeView, name: str) -> bool:
    marks = node.marks
    if name in (marks.applied, marks.owner):
        return True
    place = marks.before if marks.state in (State.BLOCKED, State.FAILED) else marks.state
    return marks.desired == name and place in _CHANGED


_CHANGED = (
    State.APPLIED,
    State.REBOOTING,
    State.DRIVER_RESTARTED,
    State.VERIFIED,
    State.RELEASED,
    State.DONE,
)


def _known(reader: Reader, value: Any, shape: Any, where: str) -> dict[str, Any]:
    content = dict(reader.members(value, where))
    strange = sorted(set(content) - {entry.name for entry in fields(shape)})
    if strange:
        raise reader.wrong(where, "an object without the member", strange[0])
    return content


def _plain(reader: Reader, shape: Any, name: str, value: Any) -> Any:
    """A member that is a text, a number, a flag or a list of texts, as its type says."""
    kind = next(entry.type for entry in fields(shape) if entry.name == name)
    if kind == "bool":
        return bool(reader.flag(value, name))
    if kind == "int":
        return reader.integer(value, name) or 0
    if kind == "str":
        return reader.text(value, name)
    return tuple([reader.text(entry, name) for entry in reader.entries(value, name)])


def _word(reader: Reader, words: Any, value: Any, where: str) -> Any:
    try:
        return words(value)
    except ValueError:
        known = ", ".join(str(word.value) for word in words)
        raise reader.wrong(where, "one of " + known, value) from None
