# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CEL for the API server from :mod:`.conditions`. Private to rdma.k8s: it may change with any release.

The value that is judged may be any JSON, so each step down is taken only after a look: first whether there is an
object, then whether it has the key, then whether the value is of the type that comes next. Evaluation stops at the
first of these that fails, so no expression ends in an error.
"""

from __future__ import annotations

import json
from typing import Any

from . import conditions as given
from .conditions import Condition, Path

TYPES = {
    given.TEXT: "string",
    given.FLAG: "bool",
    given.INTEGER: "int",
    given.LIST: "list",
    given.OBJECT: "map",
}


def literal(value: Any) -> str:
    """A text, a flag, an integer or a list of them as CEL."""
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(map(literal, value))
    return json.dumps(value)


def render(condition: Condition, name: str, depth: int = 0) -> str:
    """The condition on the variable ``name`` as an expression that is true or false.

    :param depth: how many :class:`~.conditions.Each` and ``Below`` are around it: each needs a variable of its own.
    """
    if isinstance(condition, given.AllOf):
        return _joined(" && ", condition.conditions, name, depth)
    if isinstance(condition, given.AnyOf):
        return _joined(" || ", condition.conditions, name, depth)
    if isinstance(condition, given.Unless):
        return "!(%s)" % render(condition.condition, name, depth)
    there, value = reach(name, condition.path)
    if isinstance(condition, given.Missing):
        return '!(%s) || %s == ""' % (there, value)
    if isinstance(condition, given.OtherFamily):
        second, other = reach(name, condition.other)
        return "%s && %s && %s" % (there, second, _of_two_families(value, other))
    return "%s && %s" % (there, _test(condition, value, depth))


def reach(name: str, path: Path) -> tuple[str, str]:
    """What tells that there is a value below ``path``, and the expression of that value."""
    steps = []
    for key in path:
        steps.append("type(%s) == map && %s in %s" % (name, literal(key), name))
        name = "%s[%s]" % (name, literal(key))
    steps.append("%s != null" % name)
    return " && ".join(steps), name


def _joined(operator: str, parts: tuple[Condition, ...], name: str, depth: int) -> str:
    return operator.join(["(%s)" % render(part, name, depth) for part in parts])


def _is(value: str, kind: str) -> str:
    return "type(%s) == %s" % (value, TYPES[kind])


def _test(condition: Any, value: str, depth: int) -> str:
    """A condition on a value that is there."""
    if isinstance(condition, given.Set):
        return "true"
    if isinstance(condition, given.Given):
        return '%s != "" && %s != []' % (value, value)
    if isinstance(condition, given.WrongType):
        return _wrong_type(condition, value)
    if isinstance(condition, given.UnknownKey):
        return "%s && !%s.all(k, k in %s)" % (_is(value, given.OBJECT), value, literal(condition.keys))
    if isinstance(condition, given.Below):
        inner = render(condition.condition, "e%d" % depth, depth + 1)
        return "[%s].exists(e%d, %s)" % (value, depth, inner)
    if isinstance(condition, given.Each):
        entry = "e%d" % depth
        inner = render(condition.condition, entry, depth + 1)
        values = "%s.exists(%s, %s)" % (value, entry, inner)
        member = "%s[k%d]" % (value, depth)
        members = "%s.exists(k%d, [%s].exists(%s, %s))" % (value, depth, member, entry, inner)
        return "(%s ? %s : %s && %s)" % (
            _is(value, given.LIST),
            values,
            _is(value, given.OBJECT),
            members,
        )
    if isinstance(condition, (given.Is, given.IsNot)):
        return _one_of(condition, value)
    if isinstance(condition, given.Outside):
        beyond = "%s < %d" % (value, condition.least)
        if condition.most is not None:
            beyond = "(%s || %s > %d)" % (beyond, value, condition.most)
        return "%s && %s" % (_is(value, given.INTEGER), beyond)
    return "%s && %s" % (_is(value, given.TEXT), _test_of_text(condition, value))


def _wrong_type(condition: given.WrongType, value: str) -> str:
    other = "type(%s) != %s" % (value, TYPES[condition.type])
    if condition.type != given.INTEGER or condition.bounds == given.INT64:
        return other
    return "(%s || %s < %d || %s > %d)" % (other, value, condition.bounds[0], value, condition.bounds[1])


def _one_of(condition: Any, value: str) -> str:
    kind = {str: given.TEXT, bool: given.FLAG, int: given.INTEGER}[condition.values[0].__class__]
    inside = "%s in %s" % (value, literal(condition.values))
    return "%s && %s" % (
        _is(value, kind),
        inside if isinstance(condition, given.Is) else "!(%s)" % inside,
    )


def _test_of_text(condition: Any, value: str) -> str:
    if isinstance(condition, given.Matches):
        return "%s.matches(%s)" % (value, literal(condition.pattern))
    if isinstance(condition, given.Mismatches):
        return '%s != "" && !%s.matches(%s)' % (value, value, literal(condition.pattern))
    reader = "isCIDR" if isinstance(condition, given.NoPrefix) else "isIP"
    return '%s != "" && !%s.matches(%s) && !%s(%s)' % (
        value,
        value,
        literal(given.MAPPED),
        reader,
        value,
    )


def _of_two_families(one: str, other: str) -> str:
    texts = "%s && %s" % (_is(one, given.TEXT), _is(other, given.TEXT))
    return "%s && %s && %s && %s != %s" % (texts, _known(one), _known(other), _family(one), _family(other))


def _known(value: str) -> str:
    return "!%s.matches(%s) && (isIP(%s) || isCIDR(%s))" % (value, literal(given.MAPPED), value, value)


def _family(value: str) -> str:
    """The family of an address or prefix: only IPv6 has a colon."""
    return '%s.contains(":")' % value
