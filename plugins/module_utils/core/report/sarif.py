# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outcome of a lint as SARIF 2.1.0, which code hosts and editors show at the line.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from .. import finding as model
from ..errors import RdmaError
from ..finding import CheckInfo
from ..kube.documents import STDIN
from ..lint.model import LintFinding, Path
from ..lint.outcome import Judged, Outcome
from .html import docs_address
from .wording import clean

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
REPOSITORY = "https://example.invalid/rdma-k8s"
"""Where the project lives, as galaxy.yml says; a test keeps both equal."""

DOCS = REPOSITORY + "/docs/"
_ROOT = "%SRCROOT%"
_FINGERPRINT = "rdmaK8sLint/v1"
_PATH = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")
"""The bytes that stand for themselves in the path of an address."""
_LEVELS = {model.CRITICAL: "error", model.ERROR: "error", model.WARNING: "warning", model.INFO: "note"}


def document(outcome: Outcome, version: str, docs: str = "", root: str = "") -> dict[str, Any]:
    """The log: one run with its rules, results and what could not be read.

    A failure has the level of its severity, a ``warn`` the level ``warning``; ``unknown`` is a result of the kind
    ``open`` without a level. Waived findings are there with their suppression. What passes or is skipped is left out.

    :param docs: where the pages of the rules are; the repository of the project when empty.
    :param root: absolute path of the repository; names of files below it become relative.
    :raises RdmaError: ``docs_address_refused``.
    """
    address = docs_address(docs) or DOCS
    positions = {info.id: number for number, info in enumerate(outcome.rules)}
    seen: Counter[str] = Counter()
    suppressed = any(entry.waiver is not None for entry in outcome.shown)
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "rdma-k8s",
                "informationUri": REPOSITORY,
                "version": version,
                "semanticVersion": version,
                "rules": [_rule(info, address) for info in outcome.rules],
            }
        },
        "automationDetails": {"id": "rdma-k8s-lint/"},
        "originalUriBaseIds": {
            _ROOT: {
                "description": {"text": "The directory in which rdma-k8s ran: the root of the repository."}
            }
        },
        "invocations": [
            {
                "executionSuccessful": not outcome.problems,
                "toolExecutionNotifications": [_notification(error, root) for error in outcome.problems],
            }
        ],
        "results": [_result(entry, positions, seen, suppressed, root=root) for entry in outcome.shown],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def text(outcome: Outcome, version: str, docs: str = "", root: str = "") -> str:
    """The log as text that ends with a line break. Errors as for :func:`document`."""
    return json.dumps(document(outcome, version, docs, root), indent=1) + "\n"


def _rule(info: CheckInfo, address: str) -> dict[str, Any]:
    uri = address + info.doc
    return {
        "id": info.id,
        "shortDescription": {"text": info.title + "."},
        "fullDescription": {"text": "%s. %s" % (info.title, info.hint)},
        "help": {
            "text": "%s\n\nMore: %s" % (info.hint, uri),
            "markdown": "%s\n\n[More about %s](%s)" % (info.hint, info.id, uri),
        },
        "helpUri": uri,
        "defaultConfiguration": {"level": _LEVELS[info.severity]},
        "properties": {"tags": ["kubernetes", "rdma", info.area.lower()], "severity": info.severity},
    }


def _result(
    entry: Judged, positions: dict[str, int], seen: Counter[str], suppressed: bool, *, root: str
) -> dict[str, Any]:
    finding, waiver = entry
    unknown = finding.status == model.UNKNOWN
    level = "warning" if finding.status == model.WARN else _LEVELS[finding.severity]
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": positions[finding.rule],
        "kind": "open" if unknown else "fail",
        "level": "none" if unknown else level,
        "message": {"text": clean(_sentence(finding))},
        "locations": [_location(finding, root)],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(finding, seen)},
        "properties": {"severity": finding.severity, "status": finding.status, "path": clean(finding.place)},
    }
    for name in ("expected", "observed"):
        value = getattr(finding, name)
        if value:
            result["properties"][name] = clean(value)
    if suppressed:
        result["suppressions"] = []
        if waiver is not None:
            details = [("until", waiver.expires), ("owner", waiver.owner)]
            told = "".join([" (%s %s)" % pair for pair in details if pair[1]])
            suppression = {
                "kind": "inSource",
                "status": "accepted",
                "justification": clean(waiver.reason) + clean(told),
            }
            result["suppressions"].append(suppression)
    return result


def _sentence(finding: LintFinding) -> str:
    return " ".join([part for part in (finding.message, finding.hint) if part])


def _location(finding: LintFinding, root: str) -> dict[str, Any]:
    where = clean("%s %s" % (finding.subject, finding.place))
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": where, "name": clean(finding.subject), "kind": "object"}]
    }
    if finding.document.line:  # a live object stands in no file
        location["physicalLocation"] = _physical(finding.document.source, finding.line, root)
    return location


def _physical(source: str, line: int, root: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(source, root)}
    if line:
        physical["region"] = {"startLine": line}
    return physical


def _artifact(source: str, root: str) -> dict[str, Any]:
    """The address of a file: below the root when its name is relative, else that of the machine."""
    if source == STDIN:
        return {"uri": "stdin", "uriBaseId": _ROOT}
    if root and source.startswith(root.rstrip("/") + "/"):
        source = source[len(root.rstrip("/")) + 1 :]
    text = clean(source).replace("\\", "/")
    path = "".join([chr(byte) if byte in _PATH else "%%%02X" % byte for byte in text.encode("utf-8")])
    if path.startswith("/"):
        return {"uri": "file://" + path}
    while path.startswith("./"):
        path = path[2:]
    return {"uri": path, "uriBaseId": _ROOT}


def _fingerprint(finding: LintFinding, seen: Counter[str]) -> str:
    """The same for the same finding when lines or entries move; equal findings are counted."""
    parts = (finding.rule, finding.subject, _named(finding.document.content, finding.path), finding.code)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]
    seen[digest] += 1
    return "%s:%d" % (digest, seen[digest])


def _named(content: Any, path: Path) -> str:
    """A path in which the entries of a list have their names in place of their positions, where they have one."""
    parts: list[str] = []
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            content = None
        name = content.get("name") if isinstance(key, int) and isinstance(content, dict) else None
        parts.append(name if isinstance(name, str) else str(key))
    return "/".join(parts)


def _notification(error: RdmaError, root: str) -> dict[str, Any]:
    notification: dict[str, Any] = {
        "descriptor": {"id": error.code},
        "level": "error",
        "message": {"text": clean(str(error))},
    }
    source, line = error.details.get("source"), error.details.get("line")
    if isinstance(source, str) and source:
        notification["locations"] = [
            {"physicalLocation": _physical(source, line if isinstance(line, int) else 0, root)}
        ]
    return notification
