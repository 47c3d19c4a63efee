# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s lint``: judge manifests, say what is wrong and where. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .. import manifest_files
from ..core import json_text
from ..core.errors import RdmaError
from ..core.finding import ERROR, EXIT_GOOD, EXIT_USAGE, summarise
from ..core.lint.outcome import WAIVED, Judged, Outcome, lint
from ..core.report.wording import count, flat
from ..judging import now
from ..report_files import write_files
from ..version import VERSION
from .report import refuse_idle_options
from .terminal import Terminal

_COLOURS = {WAIVED: "dim"}
_KINDS = 6
"""How many kinds of objects the summary names."""


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 2 when a text could not be read, else 0, with ``--exit-code`` the exit code of the findings."""
    refuse_idle_options(arguments)
    time = now()
    standard_input = sys.stdin.buffer if "-" in arguments.paths and sys.stdin is not None else None
    found = manifest_files.read(arguments.paths, arguments.exclude, standard_input)
    terminal.doing("judging the objects of %s" % count(found.texts, "file"))
    outcome = lint(
        found.documents,
        today=time[:10],
        select=arguments.select,
        ignore=arguments.ignore,
        problems=found.problems,
        target=arguments.target or "",
        complete=arguments.complete,
        shape=arguments.shape or "",
        options=_options(arguments.option),
    )
    text = "" if arguments.format == "text" else _formatted(outcome, arguments, time)
    to_file = arguments.output not in (None, "", "-")
    if to_file:
        folder, name = os.path.split(arguments.output)
        if not name:
            raise RdmaError("usage", "--output names a directory.", hint="Give the name of a file.")
        written = text or "".join([line + "\n" for line in _plain(outcome, found.texts)])
        write_files(folder or ".", {name: [written]})
    if text and not to_file:
        terminal.write(text)
    else:
        _print(terminal, outcome, found.texts)
    for error in outcome.problems:
        terminal.flush()
        sys.stderr.write("rdma-k8s: %s\n" % flat(str(error)))
    if outcome.problems:
        return EXIT_USAGE
    if not arguments.exit_code:
        return EXIT_GOOD
    return outcome.exit_code(arguments.threshold or ERROR, arguments.strict)


def _options(given: Sequence[str]) -> dict[str, Any]:
    """Names and values of ``--option``; the lint itself says which there are."""
    found: dict[str, Any] = {}
    for option in given:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise RdmaError("setting_malformed", "--option %r must be NAME=VALUE." % option)
        found[name] = {"true": True, "false": False}.get(value, value)
        if value[:1] in ("[", "{"):
            try:
                found[name] = json_text.loads(value)
            except ValueError as error:
                raise RdmaError(
                    "setting_malformed", "--option %s: the value is not JSON: %s." % (name, error)
                ) from error
    return found


def _formatted(outcome: Outcome, arguments: Namespace, time: str) -> str:
    threshold = arguments.threshold or ERROR
    if arguments.format == "json":
        return json.dumps(outcome.to_dict(threshold, arguments.strict), indent=1) + "\n"
    if arguments.format == "sarif":
        from ..core.report import sarif  # noqa: PLC0415 (only for this format)

        return sarif.text(outcome, VERSION, arguments.docs, os.getcwd())
    from ..core.report import jsonfile  # noqa: PLC0415 (only for this format)

    return "".join(
        jsonfile.chunks(
            outcome.result(
                time, VERSION, arguments.target or "", threshold=threshold, strict=arguments.strict
            )
        )
    )


class _Collected(Terminal):
    """A terminal that keeps its lines."""

    def __init__(self) -> None:
        super().__init__(None)
        self.kept: list[str] = []

    def write(self, text: str) -> None:
        self.kept.append(text)


def _plain(outcome: Outcome, texts: int) -> list[str]:
    collected = _Collected()
    _print(collected, outcome, texts)
    return "".join(collected.kept).splitlines()


def _print(terminal: Terminal, outcome: Outcome, texts: int) -> None:
    told: set[tuple[str, str]] = set()
    for entry in outcome.shown:
        _entry(terminal, entry, told)
    if outcome.shown:
        terminal.lines("")
    _summary(terminal, outcome, texts)


def _entry(terminal: Terminal, entry: Judged, told: set[tuple[str, str]]) -> None:
    """A finding; what to do is said once for each rule."""
    finding, waiver = entry
    source = flat(finding.document.source)
    where = "%s:%d" % (source, finding.line) if finding.line else source
    word = terminal.paint(_COLOURS.get(entry.verdict, entry.verdict), entry.verdict.upper())
    terminal.lines("%s: %s %s %s" % (where, word, finding.rule, flat(finding.subject)))
    place = "" if finding.place == "(object)" else "%s: " % finding.place
    terminal.paragraph(place + finding.message, "    ")
    if waiver is not None:
        until = " until %s" % waiver.expires if waiver.expires else ""
        owner = " by %s" % waiver.owner if waiver.owner else ""
        terminal.paragraph("Waived%s%s: %s" % (until, owner, waiver.reason), "    ")
        return
    values = [(name, getattr(finding, name)) for name in ("expected", "observed")]
    parts = ["%s %s" % pair for pair in values if pair[1]]
    if parts:
        terminal.paragraph("; ".join(parts)[:1].upper() + "; ".join(parts)[1:] + ".", "    ")
    if finding.hint and (finding.rule, finding.hint) not in told:
        told.add((finding.rule, finding.hint))
        terminal.paragraph("To do: " + finding.hint, "    ")


def _summary(terminal: Terminal, outcome: Outcome, texts: int) -> None:
    looked, passed_over = outcome.looked_at, outcome.passed_over
    files = count(texts, "file")
    if looked:
        objects = count(sum(looked.values()), "object")
        terminal.paragraph("Looked at %s in %s: %s." % (objects, files, _kinds(looked)), "")
        counts = dict(outcome.counts)
        waived = counts.pop(WAIVED)
        text = summarise(counts) + (", %d waived" % waived if waived else "")
        bad = outcome.counts["fail"]
        terminal.lines(terminal.paint("fail" if bad else "pass", text))
    else:
        terminal.paragraph("Looked at nothing: no rule reads an object in %s." % files, "")
    if passed_over:
        objects = count(sum(passed_over.values()), "other object")
        terminal.paragraph("Passed over %s: %s." % (objects, _kinds(passed_over)), "")
    if outcome.problems:
        terminal.paragraph("%s could not be read." % count(len(outcome.problems), "file"), "")


def _kinds(kinds: Counter[str]) -> str:
    shown = ["%s %d" % (flat(kind), number) for kind, number in kinds.most_common(_KINDS)]
    rest = len(kinds) - _KINDS
    return ", ".join(shown) + (" and %s" % count(rest, "more kind") if rest > 0 else "")
