# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Would applying a document change a live object? Private to rdma.k8s: it may change with any release.

The answer is sought in what the server keeps of the last apply: which fields its manager set. When a document has just
these fields with just these values, applying it again does nothing, and need not be sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_OUTSIDE = frozenset(("apiVersion", "kind"))
_OF_METADATA = frozenset(("name", "namespace"))


def is_applied(document: Mapping[str, Any], live: Mapping[str, Any], manager: str) -> bool:
    """Whether a live object has all of a document, set by a manager that set nothing else.

    ``False`` also when it cannot be told: then the server decides.
    """
    owned = _owned(live, manager)
    if owned is None:
        return False
    wanted = {key: value for key, value in document.items() if key not in _OUTSIDE}
    metadata = wanted.get("metadata")
    if isinstance(metadata, Mapping):
        kept = {key: value for key, value in metadata.items() if key not in _OF_METADATA}
        wanted = {**wanted, "metadata": kept}
        if not kept:
            del wanted["metadata"]
    return _same(wanted, live, owned)


def _owned(live: Mapping[str, Any], manager: str) -> Any:
    """The fields that a manager applied to the object itself; ``None``: it applied none."""
    for entry in (live.get("metadata") or {}).get("managedFields") or []:
        is_apply = entry.get("operation") == "Apply" and not entry.get("subresource")
        if is_apply and entry.get("manager") == manager and entry.get("apiVersion") == live.get("apiVersion"):
            return entry.get("fieldsV1")
    return None


def _same(wanted: Any, live: Any, owned: Any) -> bool:
    """Whether a value is there as wanted, and all that is owned below it is wanted."""
    fields = {key: below for key, below in owned.items() if key != "."} if isinstance(owned, dict) else None
    if fields is None:
        return False
    if not fields:  # a plain value, or one that is set as a whole
        return bool(wanted == live)
    if isinstance(wanted, Mapping):
        if not isinstance(live, Mapping) or {"f:%s" % key for key in wanted} != set(fields):
            return False
        return all(
            key in live and _same(value, live[key], fields["f:%s" % key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(fields) and all(_has(wanted, live, key, fields[key]) for key in fields)
    return False


def _has(wanted: list[Any], live: list[Any], key: str, owned: Any) -> bool:
    """Whether an item of a list that is merged by keys, or of a set, is in both lists and the same."""
    form, _colon, told = key.partition(":")
    try:
        content = json.loads(told)
    except ValueError:
        return False
    if form == "v":
        return content in wanted and content in live
    if form != "k" or not isinstance(content, dict):
        return False
    ours = [entry for entry in wanted if _fits(entry, content)]
    theirs = [entry for entry in live if _fits(entry, content)]
    return len(ours) == 1 and len(theirs) == 1 and _same(ours[0], theirs[0], owned)


def _fits(entry: Any, key: Mapping[str, Any]) -> bool:
    return isinstance(entry, Mapping) and all(
        name in entry and entry[name] == value for name, value in key.items()
    )
