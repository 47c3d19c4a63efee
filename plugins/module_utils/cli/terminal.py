# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Standard output: colours, width, text that cannot harm. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Optional, TextIO

from ..core.report.wording import flat
from ..progress import Progress

COLUMNS = 100
"""The most columns that a text for people uses."""

_COLOURS = {"fail": "31", "unknown": "35", "warn": "33", "pass": "32", "strong": "1", "dim": "2"}


class OutputError(Exception):
    """Standard output cannot be written; ``error`` says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Terminal:
    """A text stream, and what is known about who reads it.

    Colours are used on a terminal only, and not when ``NO_COLOR`` is set or ``TERM`` is ``dumb``.
    """

    def __init__(self, stream: Optional[TextIO]) -> None:
        self.stream = stream
        interactive = stream is not None and stream.isatty()
        self.interactive = interactive
        self.progress: Optional[Progress] = None
        self.colour = interactive and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.width = (
            min(COLUMNS, max(40, shutil.get_terminal_size((COLUMNS, 24)).columns)) if interactive else COLUMNS
        )
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> None:
        """Write as it is.

        :raises OutputError: the reader went away, or the device is full.
        """
        if self.stream is None:
            raise OutputError(OSError(9, "standard output is closed"))
        try:
            self.stream.write(text)
        except OSError as error:
            raise OutputError(error) from error
        if self.progress is not None and self.interactive:
            self.progress.spoke()

    def doing(self, what: str) -> None:
        """Tell the progress, where there is one, what is being done from now on: ``judging 12 nodes``."""
        if self.progress is not None:
            self.progress.doing(what)

    def flush(self) -> None:
        """Hand over what is still in the buffer. Errors as for :meth:`write`."""
        if self.stream is None:
            return
        try:
            self.stream.flush()
        except OSError as error:
            raise OutputError(error) from error

    def lines(self, *lines: str) -> None:
        """Write lines."""
        self.write("".join([line.rstrip() + "\n" for line in lines]))

    def paint(self, name: str, text: str) -> str:
        """The text in the colour of a status, or ``strong`` or ``dim``; plain where colours are not wanted."""
        code = _COLOURS.get(name)
        return "\x1b[%sm%s\x1b[0m" % (code, text) if self.colour and code else text

    def heading(self, text: str) -> None:
        """An empty line and a title."""
        self.lines("")
        self.title(text)

    def title(self, text: str) -> None:
        """A line in strong letters."""
        self.lines(self.paint("strong", flat(text)))

    def paragraph(self, text: str, indent: str = "  ", first: str = "", colour: str = "") -> None:
        """Text broken into lines that fit. ``first`` stands before the first line instead of the indent.

        :param colour: of ``first`` when it is given, else of all lines; see :meth:`paint`.
        """
        wrapped = textwrap.wrap(
            flat(text),
            self.width,
            initial_indent=first or indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        if first and wrapped:
            self.lines(self.paint(colour, first) + wrapped[0][len(first) :], *wrapped[1:])
        else:
            self.lines(*[self.paint(colour, line) for line in wrapped])

    def pairs(self, pairs: Iterable[tuple[str, str]], indent: str = "  ") -> None:
        """Label and text, the texts below each other."""
        kept = [(label, text) for label, text in pairs if text]
        width = max([len(label) for label, _text in kept], default=0)
        room = indent + " " * (width + 2)
        for label, text in kept:
            self.paragraph(text, room, indent + label.ljust(width + 2))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
        """Columns as wide as they must be; columns in which every cell is empty are left out. The last column is cut
        where the line would not fit."""
        cells = [list(head), *[[flat(cell) for cell in row] for row in rows]]
        kept = [number for number in range(len(head)) if any(row[number] for row in cells[1:])]
        widths = [max([len(row[number]) for row in cells]) for number in kept]
        for position, row in enumerate(cells):
            parts = [row[number].ljust(width) for number, width in zip(kept, widths)]
            line = (indent + "  ".join(parts)).rstrip()
            line = line if len(line) <= self.width else line[: self.width - 3] + "..."
            self.lines(self.paint("dim", line) if position == 0 else line)
