# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s checks``: list the catalogue. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from argparse import Namespace
from fnmatch import fnmatchcase

from ..core import codec
from ..core.checks.judge import catalogue
from ..core.errors import RdmaError
from ..core.finding import CheckInfo
from ..core.lint.outcome import rules
from .near import did_you_mean
from .terminal import Terminal

MANIFEST = "manifest"
"""The scope of a rule of the lint."""


def everything() -> list[tuple[CheckInfo, str]]:
    """Every check and every rule of the lint, each with its scope."""
    known = [(check.info, check.scope) for check in catalogue()]
    return known + [(entry.info, MANIFEST) for _id, entry in rules().items()]


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0."""
    pattern = arguments.pattern or "*"
    known = everything()
    chosen = [entry for entry in known if fnmatchcase(entry[0].id, pattern)]
    if not chosen:
        raise RdmaError(
            "check_unknown",
            "No check has an id like %r%s"
            % (pattern, did_you_mean(pattern, [info.id for info, _scope in known])),
            hint="Ids look like RDMA-NODE-001; '*' stands for any text.",
        )
    if arguments.format == "json":
        documents = [{**codec.encode(info), "scope": scope} for info, scope in chosen]
        terminal.write(json.dumps(documents, indent=1) + "\n")
    else:
        terminal.table(
            ("ID", "SEVERITY", "TITLE"),
            [(info.id, info.severity, info.title) for info, _scope in chosen],
            indent="",
        )
    return 0
