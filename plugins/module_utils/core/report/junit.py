# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A result document as JUnit XML, for CI systems.

One test suite is one node, the class name of a case is the area of its check. ``fail`` is a failure, ``unknown`` an
error, ``skip`` and waived results are skipped, ``warn`` passes and tells its text in ``system-out``.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

from .. import finding as model
from .digest import NO_RESULT, WAIVED, area_of, verdict
from .document import NodeRow, ResultDocument
from .wording import HARMFUL

_SPECIAL = re.compile('[&<>"\t\n\r]|' + HARMFUL.pattern)
_ENTITIES = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?=Z$)")


def escape(text: str) -> str:
    """``text`` for an attribute or the content of an element; characters that XML 1.0 forbids become U+FFFD."""
    return _SPECIAL.sub(lambda match: _ENTITIES.get(match.group(), "\ufffd"), text)


def chunks(document: ResultDocument) -> Iterator[str]:
    """The text in pieces, one test suite each."""
    by_node: dict[str, list[model.Finding]] = {row.name: [] for row in document.nodes}
    for finding in document.findings:
        by_node.setdefault(finding.node, []).append(finding)
    suites = {node: _totals(findings) for node, findings in by_node.items()}
    totals = [sum([suite[number] for suite in suites.values()]) for number in range(3)]
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<testsuites name="rdma.k8s" tests="%d" failures="%d" errors="%d">\n' % tuple(totals)
    rows = {row.name: row for row in document.nodes}
    areas = {info.id: escape(info.area) for info in document.checks}
    titles = {info.id: escape("%s %s" % (info.id, info.title)) for info in document.checks}
    hints = {info.id: info.hint for info in document.checks}
    for node, findings in by_node.items():
        yield _suite(document, node, rows.get(node), suites[node])
        for finding in findings:
            check = finding.check
            if check not in areas:
                areas[check], titles[check], hints[check] = escape(area_of(check)), escape(check), ""
            yield _case(finding, areas[check], titles[check], hints[check])
        if not findings:
            row = rows[node]
            reason = NO_RESULT if row.reachable else row.reason
            yield '<testcase classname="NODE" name="Results of the node">'
            yield '<error message="%s" type="unknown"/></testcase>\n' % escape(reason)
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _totals(findings: list[model.Finding]) -> tuple[int, int, int, int]:
    """Tests, failures, errors and skipped of one suite; a node without any finding is one error."""
    if not findings:
        return 1, 0, 1, 0
    verdicts = [verdict(finding) for finding in findings]
    return (
        len(verdicts),
        verdicts.count(model.FAIL),
        verdicts.count(model.UNKNOWN),
        verdicts.count(model.SKIP) + verdicts.count(WAIVED),
    )


def _suite(
    document: ResultDocument, node: str, row: Optional[NodeRow], totals: tuple[int, int, int, int]
) -> str:
    text = '<testsuite name="%s" tests="%d" failures="%d" errors="%d" skipped="%d"' % (escape(node), *totals)
    moment = _TIME.match((row.collected_at if row else "") or document.created_at)
    if moment:
        text += ' timestamp="%s"' % moment.group()
    text += ">\n"
    if row is not None:
        properties = [
            ("shape", row.shape),
            ("network", row.network),
            ("fabric", row.fabric),
            ("snapshot", row.snapshot),
        ]
        lines = [
            '<property name="%s" value="%s"/>' % (key, escape(value)) for key, value in properties if value
        ]
        if lines:
            text += "<properties>%s</properties>\n" % "".join(lines)
    return text


def _case(finding: model.Finding, area: str, title: str, hint: str) -> str:
    text = '<testcase classname="%s" name="%s"' % (area, title)
    if finding.duration_ms is not None:
        text += ' time="%.6f"' % (finding.duration_ms / 1000)
    name = verdict(finding)
    if name == model.PASS:
        return text + "/>\n"
    message = escape(finding.message)
    if name == model.SKIP:
        return '%s><skipped message="%s"/></testcase>\n' % (text, message)
    if name == WAIVED and finding.waiver is not None:
        reason = escape(_waiver(finding.waiver))
        return '%s><skipped message="%s"/>%s</testcase>\n' % (text, reason, _out(finding, hint))
    if name == model.WARN:
        return "%s>%s</testcase>\n" % (text, _out(finding, hint))
    element = "failure" if name == model.FAIL else "error"
    return '%s><%s message="%s" type="%s">%s</%s></testcase>\n' % (
        text,
        element,
        message,
        escape(finding.severity),
        escape(body(finding, hint)),
        element,
    )


def _out(finding: model.Finding, hint: str) -> str:
    return "<system-out>%s</system-out>" % escape(
        "%s: %s\n%s" % (finding.status, finding.message, body(finding, hint))
    )


def _waiver(waiver: model.Waiver) -> str:
    return "waived until %s by %s: %s" % (waiver.expires, waiver.owner, waiver.reason)


def body(finding: model.Finding, hint: str) -> str:
    """The lines below the message: expected, observed, the parts that are wrong, evidence, what to do."""
    lines = [
        "%s: %s" % (label, value)
        for label, value in (("Expected", finding.expected), ("Observed", finding.observed))
        if value
    ]
    for detail in finding.details:
        if detail.status not in (model.PASS, model.SKIP):
            lines.append("%s: %s %s" % (detail.subject, detail.status, detail.message))
    if finding.evidence:
        lines.append("Read from: %s" % ", ".join(finding.evidence))
    if hint:
        lines.append("To do: %s" % hint)
    return "\n".join(lines)
