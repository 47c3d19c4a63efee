# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The result document as JSON, one finding a line.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .. import codec
from .document import ResultDocument

_LISTS = ("checks", "nodes", "findings")
_dumps = json.JSONEncoder(separators=(", ", ": ")).encode


def chunks(document: ResultDocument) -> Iterator[str]:
    """The text in pieces. One check, node or finding is one line, so that ``grep`` and line-wise diffs work."""
    head = {"kind": document.kind, "schema_version": document.schema_version}
    head.update(_scalars(document))
    yield "{\n" + ",\n".join(["%s: %s" % (_dumps(key), _dumps(value)) for key, value in head.items()])
    for name in _LISTS:
        yield ",\n%s: [" % _dumps(name)
        before = "\n"
        for entry in getattr(document, name):
            yield before + _dumps(codec.encode(entry))
            before = ",\n"
        yield "\n]" if before == ",\n" else "]"
    yield "\n}\n"


def _scalars(document: ResultDocument) -> dict[str, Any]:
    """The fields of the document that are not its long lists, those with their default left out."""
    encoded: dict[str, Any] = codec.encode(ResultDocument(**{**vars(document), **dict.fromkeys(_LISTS, ())}))
    return encoded
