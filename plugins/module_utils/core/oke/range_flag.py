# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The child range on the command line of a container. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ..errors import RdmaError
from ..kube.objects import entries, mapping, text
from .constants import DEFAULT_CHILD_RANGE
from .dranet_objects import DRANET, PROVIDER
from .installed import OPTION, Settings, flags
from .options import CHILD_RANGE_OPTION, PROVIDER as OKE

PARTS = ("command", "args")
ROLL = "rdma-k8s/roll-value"
"""Annotation of the template of a driver whose pods do not have the value on their command line."""


def container_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """The container of the driver in the template of a DaemonSet, or in a pod; empty: there is none.

    The one that has the option, else the one that is named as the driver, else the first.
    """
    found = [entry for _at, entry in entries(mapping(template, "spec").get("containers"))]
    for entry in found:
        if OPTION in flags(words_of(entry)):
            return entry
    for entry in found:
        if any(word in text(entry.get("name")) for word in (PROVIDER, "provider", DRANET)):
            return entry
    return found[0] if found else {}


def words_of(container: Mapping[str, Any]) -> list[str]:
    """The command line of a container, its program first if it is given."""
    return [word for part in PARTS for word in container.get(part) or () if isinstance(word, str)]


def range_of(container: Mapping[str, Any]) -> str:
    """The child range with which a container runs; the default one when it has no option (F6).

    :raises RdmaError: the error with which the program ends (F93).
    """
    found = Settings(flags(words_of(container))).child_range()
    if isinstance(found, RdmaError):
        raise found
    return str(DEFAULT_CHILD_RANGE if found is None else found)


def with_range(container: Mapping[str, Any], value: str) -> dict[str, list[str]]:
    """The parts of the command line that must be other ones for another child range.

    The option takes the place of the one that is there, in whichever form; else it comes last (F92, F94).
    """
    option = "--%s=%s.%s=%s" % (OPTION, OKE, CHILD_RANGE_OPTION, value)
    for part in PARTS:
        words = [word for word in container.get(part) or () if isinstance(word, str)]
        place = _place(words)
        if place is not None:
            return {part: [*words[:place], option, *_without(words[place:])]}
    return {"args": [*(container.get("args") or ()), option]}


def _place(words: Sequence[str]) -> Optional[int]:
    for place, word in enumerate(words):
        if _is_option(word):
            return place
    return None


def _without(words: Sequence[str]) -> list[str]:
    """The words without the option and its values."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif _is_option(word):
            skip = "=" not in word
        else:
            kept.append(word)
    return kept


def _is_option(word: str) -> bool:
    return word.startswith("-") and word.lstrip("-").partition("=")[0] == OPTION
