# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights of the service account of DRANET (F119). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cluster_snapshot import RoleRule
from .dranet_objects import RULES

ALL = "*"
GRANULAR_FROM = (1, 36)
"""From this version of the API server on a driver needs a right of its own for what it says in a claim (F119)."""
GRANULAR = "resourceclaims/driver"
_NEAR, _ANY = "associated-node:", "arbitrary-node:"


class Right(NamedTuple):
    """Verbs on a resource, of one object of a name or, without a name, of all."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""

    @property
    def subject(self) -> str:
        """The resource as ``kubectl`` names it."""
        return "%s.%s" % (self.resource, self.group) if self.group else self.resource


def needed() -> list[Right]:
    """What the releases of DRANET need, and its main line after v1.4.0 too (F119)."""
    return [
        Right(group, resource, verbs, name)
        for group, resources, verbs, names in RULES
        for resource in resources
        for name in names or ("",)
    ]


def lacking(right: Right, rules: Sequence[RoleRule]) -> tuple[str, ...]:
    """The verbs of a right that no rule gives."""
    return tuple([verb for verb in right.verbs if not any(_gives(rule, right, verb) for rule in rules)])


def _gives(rule: RoleRule, right: Right, verb: str) -> bool:
    """Whether a rule allows a verb. Who may change claims of any node may change those of its own node (F119)."""
    verbs = [verb]
    if verb.startswith(_NEAR):
        verbs.append(_ANY + verb[len(_NEAR) :])
    return (
        _has(rule.groups, [right.group])
        and _has(rule.resources, _spellings(right.resource))
        and _has(rule.verbs, verbs)
        and (not rule.names or right.name in rule.names)
    )


def _spellings(resource: str) -> list[str]:
    """How a rule can name a resource; ``*/SUBRESOURCE`` is that of all resources."""
    _plural, slash, below = resource.partition("/")
    return [resource, "*/" + below] if slash else [resource]


def _has(held: Sequence[str], wanted: Iterable[str]) -> bool:
    return ALL in held or any(word in held for word in wanted)
