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

_BRACES_AT_END = re.compile(r"\{\{-?$")
_BEFORE_BRACES = re.compile(
    r"""(?<![^\s,\[{:(-])(?:"(?:[^"\\]|\\.?)*"?|'[^']*'?)"""  # a text in quotes, or its begin
    r"""|(?<!\S)\#.*"""  # a comment
    r"""|(\{\{)"""
)
_BLOCK = re.compile(r"(?:^|[:\s-])[|>][-+0-9]*$")
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
    lines = text.split("\n")
    line = _template_line(lines, error.line) if "{{" in text else 0
    if line:
        return RdmaError(
            "manifest_template",
            "%s, line %d: this is a template, expected a manifest: it has '{{', which Helm or another program replaces."
            % (source, line),
            hint="Render it first, as with 'helm template CHART | rdma-k8s lint -'.",
            source=source,
            line=line,
        )
    hint = "Expected YAML or JSON as 'kubectl apply' takes it."
    if 0 < error.line <= len(lines) and _TAB.match(lines[error.line - 1]):
        hint = "Indent with spaces: YAML allows no tabs there."
    return RdmaError(
        "manifest_malformed",
        "%s: the text cannot be read: %s." % (where, error.problem),
        hint=hint,
        source=source,
        line=error.line,
    )


def _template_line(lines: Sequence[str], broken: int) -> int:
    """The line on which a template shows, 0: none. Braces in quotes, blocks and comments are what manifests have too.

    In the line that is broken they count wherever they stand.
    """
    block = -1  # how far the line is indented whose block is being read
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if stripped and indent <= block:
            block = -1
        if block < 0 or number == broken:
            start = _opening(line, number == broken) if "{{" in line else -1
            if start >= 0 and (line.rfind("}}") > start + 1 or _BRACES_AT_END.search(stripped)):
                return number
        if block < 0 and _BLOCK.search(stripped[-16:]) and not stripped.startswith("#"):
            content = line.lstrip(" -")
            block = indent if content[:1] in ("|", ">") else len(line) - len(content)
    return 0


def _opening(line: str, anywhere: bool) -> int:
    """Where the first braces of a line stand, -1: nowhere but in quotes and comments."""
    if anywhere:
        return line.find("{{")
    return next((match.start() for match in _BEFORE_BRACES.finditer(line) if match[1]), -1)
