# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What leaves a site is shortened first. Private to rdma.k8s: it may change with any release.

Addresses and PCI places stay: without them a recording proves nothing. Cloud identifiers keep their kind and the end of
their unique part, so that equal ones stay equal; values behind keys that sound like secrets are replaced.
"""

from __future__ import annotations

import re
from typing import Any

KEPT = 12
"""How many characters of the unique part of an identifier stay."""

REPLACED = "(removed)"

_OCID = re.compile(r"ocid1\.([a-z0-9_]+)\.([A-Za-z0-9_.-]*[A-Za-z0-9_-])")
_WORDS = r"pass(?:word|phrase)|secret|token|private[_-]?key|credential|api[_-]?key"
_SECRET_KEY = re.compile(_WORDS + "|authorized_keys", re.IGNORECASE)
_SECRET_IN_TEXT = re.compile(
    r'("[^"\\]*(?:%s)[^"\\]*"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|\[[^\[\]]*\])' % _WORDS,
    re.IGNORECASE,
)


def shortened(text: str) -> str:
    """A text with every OCID in it shortened to ``ocid1.KIND..END``, and quoted secrets in it replaced."""
    return _SECRET_IN_TEXT.sub(r'\1"%s"' % REPLACED, _OCID.sub(_short, text))


def _short(found: re.Match[str]) -> str:
    kind, rest = found.groups()
    return "ocid1.%s..%s" % (kind, rest.rpartition(".")[2][-KEPT:])


def redacted(value: Any) -> Any:
    """JSON data with all its texts shortened and the values of secret keys replaced; the structure stays."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, list):
        return [redacted(entry) for entry in value]
    if isinstance(value, dict):
        return {
            key: _removed(entry) if _SECRET_KEY.search(key) else redacted(entry)
            for key, entry in value.items()
        }
    return value


def _removed(value: Any) -> Any:
    """What stands behind a secret key, with every text and number in it replaced."""
    if isinstance(value, list):
        return [_removed(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _removed(entry) for key, entry in value.items()}
    if isinstance(value, bool) or value in (None, ""):
        return value
    return REPLACED
