# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The summary for a terminal: what is wrong, on how many nodes, what to do.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import finding as model
from .digest import OPEN, WAIVED, Digest, Group, digest
from .document import ResultDocument
from .wording import count, flat, fold

_COLOURS = {
    model.FAIL: "31",
    model.UNKNOWN: "35",
    model.WARN: "33",
    WAIVED: "36",
    model.PASS: "32",
    "strong": "1",
}
_NODE_WORDS = {
    model.FAIL: "with failures",
    model.UNKNOWN: "not fully told",
    model.WARN: "with warnings",
    WAIVED: "with waived findings only",
    model.PASS: "good",
    model.SKIP: "with nothing to judge",
}
_INDENT = 10


def render(document: ResultDocument, width: int = 100, colour: bool = False, limit: int = 12) -> str:
    """The summary as text that ends with a line break.

    :param width: columns, at least 40; at most 100 are used, because longer lines read badly.
    :param colour: write ANSI colours; the caller knows whether a person looks at a terminal.
    :param limit: how many groups of findings are told in full; the others are counted.
    """
    writer = _Writer(width, colour)
    found = digest(document)
    return "\n".join([line.rstrip() for line in writer.lines(document, found, limit)]) + "\n"


class Lines:
    """Lines with a coloured word in front, for a terminal of ``width`` columns (40 to 100 are used)."""

    def __init__(self, width: int, colour: bool) -> None:
        self.width = max(40, min(width, 100))
        self.colour = colour

    def entry(self, name: str, text: str, word: str = "") -> Iterator[str]:
        """The first lines of an entry: ``word`` (default: ``name``) in the colour of ``name``, then the text."""
        label = self.paint(name, (word or name).upper().ljust(_INDENT))
        first, *rest = _wrap(text, self.width - _INDENT)
        yield label + self.paint("strong", first)
        for line in rest:
            yield " " * _INDENT + self.paint("strong", line)

    def wrapped(self, text: str, most: int = 3) -> Iterator[str]:
        """``text`` below an entry, in ``most`` lines at most."""
        room = self.width - _INDENT
        lines = _wrap(text, room) if text else []
        if len(lines) > most:
            lines = lines[:most]
            lines[-1] = lines[-1][: room - 4] + " ..."
        for line in lines:
            yield " " * _INDENT + line

    def wrap_plain(self, text: str) -> list[str]:
        """``text`` over the full width."""
        return _wrap(text, self.width)

    def paint(self, name: str, text: str) -> str:
        """``text`` in the colour of a verdict, if colours are wanted."""
        code = _COLOURS.get(name)
        return "\x1b[%sm%s\x1b[0m" % (code, text) if self.colour and code else text


class _Writer(Lines):
    def lines(self, document: ResultDocument, found: Digest, limit: int) -> Iterator[str]:
        yield from self.head(document, found)
        shown = [group for group in found.groups if group.verdict in OPEN]
        for reason, nodes in found.silent.items():
            yield ""
            yield from self.entry(model.UNKNOWN, "%s told nothing" % count(len(nodes), "node"))
            yield from self.wrapped(fold([flat(node) for node in nodes]))
            yield from self.wrapped(flat(reason))
        for group in shown[:limit]:
            yield ""
            yield from self.group(group, found.words_for(group.nodes))
        if len(shown) > limit:
            rest = shown[limit:]
            parts = ["%d %s" % (len([g for g in rest if g.verdict == name]), name) for name in OPEN]
            yield ""
            yield "And %s: %s. The reports show all of them." % (
                count(len(rest), "more check"),
                ", ".join([part for part in parts if not part.startswith("0 ")]),
            )
        waived = [group for group in found.groups if group.verdict == WAIVED]
        if waived:
            yield ""
            yield from self.entry(
                WAIVED, "%s waived" % count(sum([len(g.findings) for g in waived]), "finding")
            )
            yield from self.wrapped(", ".join(sorted({flat(group.info.id) for group in waived})))

    def head(self, document: ResultDocument, found: Digest) -> Iterator[str]:
        hosts = found.hosts_by_verdict()
        total = sum([len(names) for names in hosts.values()])
        words = [count(total, "node"), count(len(found.checks), "check")]
        if document.target:
            words.append("target %s" % flat(document.target))
        if document.child_range:
            words.append("child range %s" % flat(document.child_range))
        yield from self.wrap_plain(", ".join(words))
        parts = [(name, "%d %s" % (len(names), _NODE_WORDS[name])) for name, names in hosts.items()]
        lines: list[list[tuple[str, str]]] = []
        for part in parts:
            used = sum([len(text) + 3 for _name, text in lines[-1]]) if lines else self.width
            if used + len(part[1]) > self.width:
                lines.append([])
            lines[-1].append(part)
        for line in lines:
            yield "   ".join([self.paint(name, text) for name, text in line])

    def group(self, group: Group, told: str) -> Iterator[str]:
        title = group.info.title if group.info.title != group.info.id else ""
        yield from self.entry(group.verdict, "%s %s" % (flat(group.info.id), flat(title)))
        where = (
            told
            if told
            else "%s: %s"
            % (
                count(len(group.nodes), "node"),
                fold([flat(node) for node in group.nodes]),
            )
        )
        yield from self.wrapped("%s, %s" % (flat(group.severity), where), most=3)
        messages = group.by_message()
        for findings in list(messages.values())[:3]:
            first = findings[0]
            text = flat(first.message)
            if len(messages) > 1 and not told:
                text = "%s: %s" % (flat(first.node), text)
                if len(findings) > 1:
                    text += " (and %d more like it)" % (len(findings) - 1)
            yield from self.wrapped(text, most=4)
        if len(messages) > 3:
            yield from self.wrapped("... and %s" % count(len(messages) - 3, "other message"))
        if group.info.hint:
            yield from self.wrapped("To do: " + flat(group.info.hint), most=6)


def _wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns, broken at spaces, and inside a long word after a comma where one stands."""
    pieces: list[tuple[str, bool]] = []
    for word in text.split():
        rest, first = word, True
        while len(rest) > width:
            end = rest.rfind(",", 0, width) + 1 or width
            pieces.append((rest[:end], first))
            rest, first = rest[end:], False
        if rest:
            pieces.append((rest, first))
    lines = [""]
    for piece, begins in pieces:
        if not lines[-1]:
            lines[-1] = piece
        elif begins and len(lines[-1]) + 1 + len(piece) <= width:
            lines[-1] += " " + piece
        else:
            lines.append(piece)
    return lines
