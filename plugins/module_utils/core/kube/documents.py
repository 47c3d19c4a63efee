# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Documents: parsed manifests that know their lines. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Document:
    """One object of a manifest.

    :param content: the parsed object; a dictionary in good cases.
    :param source: the file name, ``-`` for standard input, ``cluster`` for live objects.
    :param line: the line on which the document starts, from 1; 0: there is no file.
    :param lines: the line of each path that is known, such as ``("spec", "containers", 0, "env")``.
    """

    content: Any
    source: str = ""
    line: int = 0
    lines: Mapping[tuple[Any, ...], int] = field(default_factory=dict)

    def line_of(self, path: tuple[Any, ...]) -> int:
        """The line of a path, or of the nearest of its ancestors that is known."""
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return line
        return self.line
