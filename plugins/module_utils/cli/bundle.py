# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``rdma-k8s bundle``: one archive for support. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from argparse import Namespace

from ..core.errors import RdmaError
from ..core.report.wording import count
from ..report_files import write_files
from . import archive, sources
from .terminal import Terminal


def run(arguments: Namespace, terminal: Terminal) -> int:
    """Returns 0."""
    source = sources.with_nodes(sources.read(arguments.source))
    nodes = source.nodes or ()
    policy = sources.policy_of(source, arguments.policy, arguments.set)
    result, judged_at = source.result, source.judged_at
    if arguments.result is not None:
        result = sources.read(arguments.result).result
        if result is None:
            raise RdmaError(
                "result_not_a_result",
                "%s is no result document." % arguments.result,
                hint="Give the result.json that preflight or 'rdma-k8s report' wrote.",
            )
        judged_at = result.created_at
    directory, name = os.path.split(arguments.output)
    if not name or os.path.isdir(arguments.output):
        raise RdmaError(
            "usage", "--output %r names no file." % arguments.output, hint="Say --output FILE.tar.gz."
        )
    terminal.doing("packing %s" % count(len(nodes), "snapshot"))
    content = archive.pack(nodes, policy, result, judged_at, source.cluster)
    write_files(directory or ".", {name: [content]}, mode=0o600)
    parts = ["%d snapshots" % len(nodes), "the policy"] + (
        ["the cluster"] if source.cluster is not None else []
    )
    parts += ["the result"] if result is not None else []
    terminal.paragraph(
        "Wrote %s (%d kB): %s. OCIDs are shortened and secrets removed; names and addresses are in it."
        % (arguments.output, -(-len(content) // 1000), ", ".join(parts)),
        indent="",
    )
    return 0
