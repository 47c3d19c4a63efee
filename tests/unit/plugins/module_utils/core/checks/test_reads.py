# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was not read is unknown, with the reason."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import reads
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.context import Fleet
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import Outcome, passed
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import SUBSETS, ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import ReadError

ALL = ClusterSnapshot(subsets=SUBSETS, **dict.fromkeys(reads.SOURCES, ()))


def message(cluster: ClusterSnapshot, *wanted: str) -> str:
    """What is said; the status is unknown."""
    found = reads.unread(cluster, *wanted)
    assert found is not None
    assert found.status == "unknown"
    return found.message


@pytest.mark.parametrize("field", reads.SOURCES)
def test_each_field_has_its_reason(field: str) -> None:
    """The subset that was not asked for, or the error of any of its sources."""
    assert field in {entry.name for entry in fields(ClusterSnapshot)}
    subset, *sources = reads.SOURCES[field]
    assert subset in SUBSETS
    without = replace(ALL, **{field: None})
    assert reads.unread(ALL, field) is None
    asked = tuple(entry for entry in SUBSETS if entry != subset)
    assert (
        message(replace(without, subsets=asked), field)
        == "The subset '%s' of the cluster was not read." % subset
    )
    for source in sources:
        refused = replace(without, errors=(ReadError(source, "not allowed."),))
        assert message(refused, field) == "Not readable: %s: not allowed." % source
        assert reads.why_unread(refused, field) == "Not readable: %s: not allowed" % source


def test_the_first_that_is_missing_is_told() -> None:
    """And a check is asked only when nothing is."""

    @reads.needs("nodes", "slices")
    def check(fleet: Fleet) -> Outcome:
        """A check."""
        return passed("asked")

    assert check.__doc__ == "A check."
    without = replace(ALL, nodes=None, slices=None, subsets=("nodes",))
    assert message(without, "slices", "nodes").startswith("The subset 'dra'")
    for cluster, status in ((ALL, "pass"), (without, "unknown"), (replace(ALL, slices=None), "unknown")):
        assert check(Fleet([], Policy(), cluster)).status == status
