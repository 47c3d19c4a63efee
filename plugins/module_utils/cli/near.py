# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may have been meant. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable


def near(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Known words that look like ``word``, the nearest first; case does not count."""
    import difflib  # noqa: PLC0415 (only needed when something is wrong)

    spellings: dict[str, list[str]] = {}
    for name in known:
        spellings.setdefault(name.lower(), []).append(name)
    found = difflib.get_close_matches(word.lower()[:200], list(spellings), most, 0.6)
    return [name for spelling in found for name in spellings[spelling]][:most]


def did_you_mean(word: str, known: Iterable[str], otherwise: str = ".") -> str:
    """The end of a sentence about a word that is not known: ``; did you mean A or B?``, else ``otherwise``."""
    found = near(word, known)
    return "; did you mean %s?" % " or ".join(found) if found else otherwise
