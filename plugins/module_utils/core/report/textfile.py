# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A result document for Prometheus' textfile collector.

``docs/reference/reports.md`` says what each metric means. A file must not hold one series twice, or the collector
refuses all of it: several findings of one check on one node are exported as the most urgent of them.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Optional

from .. import finding as model
from .digest import WAIVED, Digest, digest, verdict, worst
from .document import ResultDocument
from .wording import HARMFUL

STATUS_VALUES = {model.PASS: 0, model.WARN: 0, WAIVED: 0, model.FAIL: 1, model.UNKNOWN: 2}
"""Values of ``rdma_k8s_check_status``. ``skip`` has none: a check that does not apply has no series."""

_SPECIAL = re.compile('[\\\\"\n]|[\t\r]|' + HARMFUL.pattern)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": " ", "\r": " "}


def label(text: str) -> str:
    """``text`` as the value of a label, without its quotes."""
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match.group(), "\ufffd"), text)


def labels(texts: Iterable[str]) -> dict[str, str]:
    """Each text as the value of a label; texts that are written alike are told apart by a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in sorted(texts):
        told, number = label(text), 1
        while told in taken:
            number += 1
            told = "%s (%d)" % (label(text), number)
        taken.add(told)
        found[text] = told
    return found


def seconds(moment: str) -> Optional[int]:
    """Seconds since the epoch of ``YYYY-MM-DDThh:mm:ssZ``; ``None`` for any other text."""
    try:
        parsed = datetime.datetime.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    return calendar.timegm(parsed.timetuple())


def chunks(
    document: ResultDocument, expected_interval: Optional[int] = None, found: Optional[Digest] = None
) -> Iterator[str]:
    """The text in pieces.

    :param found: the digest of the document, when the caller has it.
    :param expected_interval: seconds between two runs, as the one who schedules them promises.
    """
    series = _merge(document)
    told = found or digest(document)
    ids = labels({check for check, _node in series})
    nodes = labels({node for _check, node in series} | {node.name for node in told.nodes})

    def key(entry: tuple[str, str]) -> str:
        return '{id="%s",node="%s"}' % (ids[entry[0]], nodes[entry[1]])

    yield from _metric(
        "rdma_k8s_check_status",
        "Result of a check: 0 nothing to do (pass, warn or waived), 1 fail, 2 unknown. Skipped checks have none.",
        ("%s %d" % (key(entry), STATUS_VALUES[name]) for entry, name in series.items() if name != model.SKIP),
    )
    for wanted, metric, text in (
        (model.WARN, "rdma_k8s_check_warning", "The check warns: it works, but look at it."),
        (WAIVED, "rdma_k8s_check_waived", "The check is not good, and a person accepted that until a date."),
    ):
        yield from _metric(
            metric, text, (key(entry) + " 1" for entry, name in series.items() if name == wanted)
        )
    durations: dict[tuple[str, str], float] = {}
    for finding in document.findings:
        if finding.duration_ms is not None:
            entry = (finding.check, finding.node)
            durations[entry] = durations.get(entry, 0.0) + finding.duration_ms / 1000
    yield from _metric(
        "rdma_k8s_check_duration_seconds",
        "Time that judging the check took.",
        ("%s %.9g" % (key(entry), value) for entry, value in durations.items()),
    )
    yield from _per_node(document, told, nodes)
    if expected_interval is not None:
        yield from _metric(
            "rdma_k8s_check_expected_interval_seconds",
            "Time between two runs, as promised.",
            [" %d" % expected_interval],
        )


def _merge(document: ResultDocument) -> dict[tuple[str, str], str]:
    series: dict[tuple[str, str], str] = {}
    for finding in document.findings:
        key, name = (finding.check, finding.node), verdict(finding)
        series[key] = worst([series[key], name]) if key in series else name
    return series


def _per_node(document: ResultDocument, found: Digest, names: dict[str, str]) -> Iterator[str]:
    nodes = found.nodes
    yield from _metric(
        "rdma_k8s_node_status",
        "Most urgent result of a node: 0 nothing to do, 1 fail, 2 unknown (not reachable included).",
        ['{node="%s"} %d' % (names[node.name], STATUS_VALUES.get(node.verdict(), 0)) for node in nodes],
    )
    moments = [
        (node.name, seconds((node.row.collected_at if node.row else "") or document.created_at))
        for node in nodes
    ]
    yield from _metric(
        "rdma_k8s_check_last_run_timestamp_seconds",
        "When the state of the node that was judged was read, in seconds since the epoch.",
        ['{node="%s"} %d' % (names[name], moment) for name, moment in moments if moment is not None],
    )


def _metric(name: str, text: str, lines: Iterable[str]) -> Iterator[str]:
    """A metric with its head, which is left out when there is no line."""
    head = "# HELP %s %s\n# TYPE %s gauge\n" % (name, text, name)
    for line in lines:
        yield "%s%s%s\n" % (head, name, line)
        head = ""
