# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result document as JSON, one finding a line.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any, Callable

from .. import codec
from .document import ResultDocument

_LISTS = ("checks", "nodes", "findings")
_REPEATED = frozenset((str, tuple))
_dumps = json.JSONEncoder(separators=(", ", ": ")).encode


def chunks(document: ResultDocument) -> Iterator[str]:
    """The text in pieces. One check, node or finding is one line, so that ``grep`` and line-wise diffs work."""
    head = {"kind": document.kind, "schema_version": document.schema_version}
    head.update(_scalars(document))
    encode = _encoder()
    yield "{\n" + ",\n".join(["%s: %s" % (_dumps(key), _dumps(value)) for key, value in head.items()])
    for name in _LISTS:
        yield ",\n%s: [" % _dumps(name)
        before = "\n"
        for entry in getattr(document, name):
            yield before + encode(entry)
            before = ",\n"
        yield "\n]" if before == ",\n" else "]"
    yield "\n}\n"


def _scalars(document: ResultDocument) -> dict[str, Any]:
    """The fields of the document that are not its long lists, those with their default left out."""
    encoded: dict[str, Any] = codec.encode(ResultDocument(**{**vars(document), **dict.fromkeys(_LISTS, ())}))
    return encoded


def _encoder() -> Callable[[Any], str]:
    """A function that writes the JSON text of what ``codec.encode`` makes of a value.

    Names and messages come again thousands of times in a large document, so their texts are made once.
    """
    known: dict[Any, str] = {}
    plans: dict[type, list[tuple[str, str, Any]]] = {}

    def encode(value: Any) -> str:
        kind = type(value)
        if kind is tuple:
            return "[%s]" % ", ".join([encode(entry) for entry in value])
        if not dataclasses.is_dataclass(kind):
            return _dumps(value)
        plan = plans.get(kind)
        if plan is None:
            plan = plans[kind] = [
                (entry.name, _dumps(entry.name) + ": ", entry.default) for entry in dataclasses.fields(kind)
            ]
        parts = []
        for name, key, default in plan:
            held = getattr(value, name)
            if held == default:  # a field without a default is equal to no value
                continue
            if type(held) in _REPEATED:
                text = known.get(held)
                if text is None:
                    text = known[held] = encode(held)
                parts.append(key + text)
            else:
                parts.append(key + encode(held))
        return "{%s}" % ", ".join(parts)

    return encode
