# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s report``: judge, print the summary, write the reports. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import os
from argparse import Namespace

from ..core.errors import RdmaError
from ..core.finding import ERROR, EXIT_GOOD, exit_code
from ..core.report import summary
from ..core.report.document import ResultDocument
from ..core.report.render import FILES, stream
from ..core.report.wording import count
from ..report_files import write_reports
from . import sources
from .near import did_you_mean
from .terminal import Terminal


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0, with ``--exit-code`` the exit code of the findings."""
    formats = _formats(arguments)
    refuse_idle_options(arguments)
    document = _document(arguments, terminal)
    written = []
    if arguments.dir is not None:
        terminal.doing("writing the reports to %s" % arguments.dir)
        written = write_reports(document, arguments.dir, formats)
    elif formats:
        for pieces in stream(document, formats).values():
            for piece in pieces:
                terminal.write(piece)
    if not arguments.no_summary and not (formats and arguments.dir is None):
        terminal.write(summary.render(document, terminal.width, terminal.colour))
        if written:
            terminal.lines("", "Reports in %s: %s" % (arguments.dir, ", ".join(map(_name, written))))
    if not arguments.exit_code:
        return EXIT_GOOD
    return exit_code(document.findings, arguments.threshold or ERROR, arguments.strict)


def refuse_idle_options(arguments: Namespace) -> None:
    """A run with ``--strict`` that always ends with 0 would be a silent pass in CI.

    :raises RdmaError: ``usage`` when the exit code is modified and not asked for.
    """
    if (arguments.strict or arguments.threshold) and not arguments.exit_code:
        option = "--strict" if arguments.strict else "--threshold"
        raise RdmaError("usage", "%s has no effect without --exit-code." % option, hint="Add --exit-code.")


def _name(written: object) -> str:
    return os.path.basename(getattr(written, "path", ""))


def _formats(arguments: Namespace) -> list[str]:
    """The formats asked for, empty: all of them in ``--dir``, or none."""
    if arguments.format is None:
        return list(FILES) if arguments.dir is not None else []
    formats = [name.strip() for name in arguments.format.split(",") if name.strip()]
    for name in formats:
        if name not in FILES:
            raise RdmaError(
                "report_format_unknown",
                "There is no report format %r%s" % (name, did_you_mean(name, FILES)),
                hint="Formats: %s." % ", ".join(FILES),
            )
    if not formats:
        raise RdmaError("usage", "--format names no format.", hint="Formats: %s." % ", ".join(FILES))
    if len(formats) > 1 and arguments.dir is None:
        raise RdmaError("usage", "Standard output takes one format.", hint="Add --dir DIR to write several.")
    return formats


def _document(arguments: Namespace, terminal: Terminal) -> ResultDocument:
    source = sources.read(arguments.source)
    if source.nodes is None and source.result is not None:
        for option in ("policy", "set", "only", "skip"):
            if getattr(arguments, option):
                raise RdmaError(
                    "usage",
                    "%s is judged already, so --%s has no effect." % (arguments.source, option),
                    hint="Give the recorded snapshots to judge them again.",
                )
        return source.result
    if (
        arguments.dir is not None
        and os.path.isdir(arguments.source)
        and _same(arguments.source, arguments.dir)
    ):
        raise RdmaError(
            "usage",
            "--dir is the directory of the snapshots; reports would be taken for snapshots.",
            hint="Give another directory.",
        )
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    terminal.doing("judging %s" % count(len(source.nodes or ()), "node"))
    return sources.judged(source, sources.selecting(policy, arguments.only, arguments.skip))


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
