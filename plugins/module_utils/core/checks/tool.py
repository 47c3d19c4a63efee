# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area TOOL: is the judgement itself complete and fresh. Private to rdma.k8s: it may change with any release.

These checks look at the run, not at a node's hardware: they get what :func:`~.judge.judge` knows about itself.
"""

from __future__ import annotations

from collections.abc import Collection

from ..finding import ERROR, WARNING, Detail, Finding
from ..stamps import seconds_between
from .context import Fleet, Node
from .policy import Policy
from .registry import (
    CATALOGUE,
    Outcome,
    bad,
    failed,
    node_check,
    ok,
    passed,
    rolled_up,
    run_check,
    skipped,
    unknown,
    warned,
)


@node_check(
    "RDMA-TOOL-002",
    "The snapshot is fresh",
    WARNING,
    "Gather again; a node changes while nobody looks.",
    evidence=("collected_at",),
)
def freshness(node: Node) -> Outcome:
    """A snapshot older than the policy's max_age says how the node was, not how it is."""
    limit = node.policy.max_age
    if limit is None:
        return skipped("No limit is given (setting 'max_age').")
    age = seconds_between(node.snapshot.collected_at, node.judged_at)
    if age is None:
        return unknown("The snapshot does not say when it was made.")
    if age > limit:
        return warned(
            "The snapshot is %d s old." % age, expected="at most %d s" % limit, observed="%d s" % age
        )
    return passed("%d s old." % max(age, 0))


@run_check(
    "RDMA-TOOL-001",
    "Every selected check has a result for every node",
    ERROR,
    "A node without an answer is not a good node: repair the connection, then run again.",
)
def completeness(
    fleet: Fleet, findings: Collection[Finding], unreachable: Collection[str], today: str
) -> Outcome:
    """Unreachable nodes have only unknown results."""
    if unreachable:
        names = ", ".join(sorted(unreachable)[:6]) + (" and more" if len(unreachable) > 6 else "")
        return failed(
            "%d of %d nodes gave no snapshot: %s."
            % (len(unreachable), len(unreachable) + len(fleet.nodes), names),
            expected="every node",
            observed="%d nodes" % len(fleet.nodes),
        )
    return passed("%d nodes, every check has a result." % len(fleet.nodes))


@run_check(
    "RDMA-TOOL-003",
    "Every waiver is valid and names an existing check",
    WARNING,
    "Renew or remove the waiver; correct the check's id.",
)
def waivers(fleet: Fleet, findings: Collection[Finding], unreachable: Collection[str], today: str) -> Outcome:
    """An expired waiver does not count any more, so its result is back in the report."""
    return rolled_up(
        [_waiver_detail(rule.check, rule.expires, today, fleet.policy) for rule in fleet.policy.waivers],
        "%d waivers are valid.",
        "No waiver is given.",
        as_status="warn",
    )


def _waiver_detail(check: str, expires: str, today: str, policy: Policy) -> Detail:
    known = set(CATALOGUE) | {custom.id for custom in policy.checks}
    if "*" not in check and check not in known:
        return bad(check, "no check has this id", "an existing id", check)
    if expires < today:
        return bad(check, "the waiver expired on %s" % expires, "today or later", expires)
    return ok(check)
