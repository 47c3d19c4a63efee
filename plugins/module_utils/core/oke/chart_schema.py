# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a Helm chart can express, told by its schema. Private to rdma.k8s: it may change with any release.

Only what decides is read: which keys a level knows, types, lists of values and patterns. Helm itself checks the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ..kube.objects import mapping, text
from ..net import quoted

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


@dataclass(frozen=True)
class Chart:
    """A chart that was read.

    :param source: where it was read.
    :param schema: ``values.schema.json``; ``None``: the chart has none, so that a misspelt value would be ignored.
    """

    source: str
    name: str = ""
    app_version: str = ""
    schema: Optional[Mapping[str, Any]] = field(default=None)


def chart(source: str, metadata: Any, schema: Any) -> Chart:
    """The chart of its parsed files ``Chart.yaml`` and ``values.schema.json``."""
    return Chart(
        source,
        text(mapping(metadata).get("name")),
        text(mapping(metadata).get("appVersion")),
        schema if isinstance(schema, Mapping) else None,
    )


def refusals(schema: Any, value: Any, path: str = "") -> list[str]:
    """What a schema does not take of a value, one text for each place: ``args: it has no key webhookURL``."""
    if schema is False:
        return ["%s: nothing is allowed here" % (path or "values")]
    if not isinstance(schema, Mapping):
        return []
    where = path or "values"
    kinds = schema.get("type")
    wanted = [kinds] if isinstance(kinds, str) else list(kinds or [])
    if wanted and not any(_is(value, kind) for kind in wanted):
        return ["%s: it must be %s" % (where, " or ".join(wanted))]
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return ["%s: %s is none of %s" % (where, quoted(value), ", ".join(map(str, choices)))]
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and not _matches(pattern, value):
        return ["%s: %s does not match %s" % (where, quoted(value), pattern)]
    found: list[str] = []
    if isinstance(value, Mapping):
        known = mapping(schema, "properties")
        for key, entry in value.items():
            below = "%s.%s" % (path, key) if path else str(key)
            if key in known:
                found += refusals(known[key], entry, below)
            elif schema.get("additionalProperties") is False:
                found.append("%s: it has no key %s" % (where, key))
            else:
                found += refusals(schema.get("additionalProperties"), entry, below)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            found += refusals(schema.get("items"), entry, "%s[%d]" % (where, number))
    return found


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES.get(kind, object))


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # a pattern that Python does not know is left to Helm
        return True
