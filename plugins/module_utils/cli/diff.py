# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s diff``: what changed between results. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace

from ..core.errors import RdmaError
from ..core.finding import ERROR, EXIT_GOOD
from ..core.report import diff
from ..core.report.document import ResultDocument
from ..core.report.wording import count
from . import sources
from .report import refuse_idle_options
from .terminal import Terminal


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0, with ``--exit-code`` 4 when something fails that did not fail before."""
    refuse_idle_options(arguments)
    paths = [arguments.old, arguments.new, *arguments.more]
    documents = [_document(path, arguments, terminal) for path in paths]
    times = [document.created_at for document in documents]
    if times != sorted(times):
        raise RdmaError(
            "comparison_order",
            "The results are not in the order of their times: %s." % ", ".join(times),
            hint="Give the oldest first.",
        )
    terminal.doing("comparing %s" % count(len(documents), "result"))
    comparison = diff.compare(documents)
    if arguments.format == "json":
        terminal.write(json.dumps(comparison.to_dict(), indent=1) + "\n")
    else:
        terminal.write(diff.render_text(comparison, terminal.width, terminal.colour))
    if not arguments.exit_code:
        return EXIT_GOOD
    return comparison.exit_code(arguments.threshold or ERROR, arguments.strict)


def _document(path: str, arguments: Namespace, terminal: Terminal) -> ResultDocument:
    """The result of a path. Recorded nodes without a result are judged at the time of their newest snapshot, so that
    recordings stay in order, and a waiver counts when it counted then."""
    terminal.doing("reading %s" % path)
    source = sources.read(path)
    if source.result is not None:
        return source.result
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    terminal.doing("judging the nodes of %s" % path)
    times = [node.snapshot.collected_at for node in source.nodes or () if node.snapshot is not None]
    known = [time for time in times if sources.is_time(time)]
    return sources.judged(replace(source, judged_at=source.judged_at or max(known, default="")), policy)
