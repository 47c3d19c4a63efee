# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the readers of YAML and JSON share: a value with its lines, and the errors of a text.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import RdmaError

Path = tuple[Any, ...]
"""Keys and positions from the root of a value."""

MAX_DEPTH = 200
"""How deep mappings and sequences may be nested; far more than any object of Kubernetes has."""

MARK = "rdma-k8s:"
"""What a comment for rdma-k8s begins with."""

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{\{-?[ \t]*$", re.MULTILINE)
_TAB = re.compile(r"^[ -]*\t")


@dataclass(frozen=True)
class Duplicate:
    """A key that stands twice in one mapping: ``first`` is the line of the one that is lost, ``line`` of the other."""

    path: Path
    first: int
    line: int


@dataclass(frozen=True)
class TextValue:
    """A value of a text.

    :param line: where it starts.
    :param lines: the line of each path in it.
    :param quoted: first and last position in the text of each scalar in quotes, or block, that has ``MARK`` in it.
    """

    value: Any
    line: int
    lines: Mapping[Path, int]
    duplicates: Sequence[Duplicate]
    quoted: Sequence[tuple[int, int]] = ()


class TextError(Exception):
    """A text cannot be read. ``line`` is 1-based, 0 when it is not known; ``problem`` goes on a sentence."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


def malformed(text: str, source: str, error: TextError) -> RdmaError:
    """The error of a text for people."""
    where = "%s, line %d" % (source, error.line) if error.line else source
    found = _TEMPLATE.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        return RdmaError(
            "manifest_template",
            "%s, line %d: this is a template, expected a manifest: it has '{{', which Helm or another program replaces."
            % (source, line),
            hint="Render it first, as with 'helm template CHART | rdma-k8s lint -'.",
            source=source,
            line=line,
        )
    hint = "Expected YAML or JSON as 'kubectl apply' takes it."
    lines = text.split("\n")
    if 0 < error.line <= len(lines) and _TAB.match(lines[error.line - 1]):
        hint = "Indent with spaces: YAML allows no tabs there."
    return RdmaError(
        "manifest_malformed",
        "%s: the text cannot be read: %s." % (where, error.problem),
        hint=hint,
        source=source,
        line=error.line,
    )
