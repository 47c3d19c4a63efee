# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When Spiderpool's controller works with an older configuration, by what the API server tells."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import restart

NOON = "2026-11-30T12:00:00Z"
LATER = "2026-11-30T12:00:01Z"


def config(*times: tuple[str, str], created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """A ConfigMap whose fields were written at these times."""
    fields = [{"manager": "m", "time": time, "fieldsV1": {field: {}}} for field, time in times]
    return {"metadata": {"name": "spiderpool-conf", "creationTimestamp": created, "managedFields": fields}}


def pod(created: str, name: str = "c-1", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": created, **metadata},
        "status": {"phase": phase},
    }


def deployment(mark: str = "", wanted: int = 2, generation: int = 2, **status: int) -> dict[str, Any]:
    told = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, **status}
    annotations = {restart.MARK: mark} if mark else {}
    return {
        "kind": "Deployment",
        "metadata": {"name": "c", "namespace": "spiderpool", "generation": generation},
        "spec": {"replicas": wanted, "template": {"metadata": {"annotations": annotations}}},
        "status": told,
    }


@pytest.mark.parametrize(
    ("content", "at"),
    [
        (config(("f:data", NOON)), NOON),
        (config(("f:data", NOON), ("f:data", LATER)), LATER),
        (config(("f:binaryData", LATER), ("f:data", NOON)), LATER),
        (config(("f:metadata", LATER), ("f:data", NOON)), NOON),  # somebody wrote a label
        (config(created=NOON), NOON),
        (config(("f:data", "soon"), created="never"), ""),
        ({}, ""),
    ],
)
def test_when_the_content_was_written(content: dict[str, Any], at: str) -> None:
    assert restart.written_at(content) == at


@pytest.mark.parametrize(
    ("pods", "older"),
    [
        ([pod(NOON)], ("c-1",)),
        ([pod(LATER)], ()),  # the same second: the chart makes both at once
        ([pod(NOON), pod(LATER, "c-2")], ("c-1",)),
        ([pod(NOON, phase="Failed")], ()),
        ([pod(NOON, deletionTimestamp=LATER)], ()),
        ([pod("")], ()),
        ([], ()),
    ],
)
def test_which_pods_are_older(pods: list[dict[str, Any]], older: tuple[str, ...]) -> None:
    found = restart.look(deployment(), [config(("f:data", LATER))], pods)
    assert (found.older, found.wants_restart, found.is_current) == (older, bool(older), not older)


def test_a_restart_that_is_under_way_is_no_reason_for_another() -> None:
    configuration = [config(("f:data", LATER))]
    under_way = restart.look(deployment(LATER), configuration, [pod(NOON)])
    assert (under_way.older, under_way.wants_restart, under_way.is_current) == (("c-1",), False, False)
    changed_again = restart.look(deployment(NOON), configuration, [pod(NOON)])
    assert changed_again.wants_restart


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (deployment(generation=3), "nobody has looked"),
        (deployment(updatedReplicas=1), "1 of 2 pods of Deployment spiderpool/c are new"),
        (deployment(availableReplicas=0), "0 of 2 pods of Deployment spiderpool/c are available"),
        (deployment(replicas=3), "has older pods still"),
        ({**deployment(), "status": {}}, "nobody has looked"),
    ],
)
def test_a_rollout_that_is_not_over(content: dict[str, Any], words: str) -> None:
    found = restart.look(content, [config(("f:data", NOON))], [pod(LATER)])
    assert words in "; ".join(found.problems)
    assert not found.is_current
    assert not found.wants_restart


def test_the_config_maps_are_those_that_the_pods_mount() -> None:
    volumes = [{"configMap": {"name": "b"}}, {"configMap": {"name": "a"}}, {"hostPath": {"path": "/x"}}, 7]
    assert restart.config_maps({"spec": {"template": {"spec": {"volumes": volumes}}}}) == ["a", "b"]
    assert restart.config_maps({}) == []


def test_the_patch_is_seen_again() -> None:
    annotations = restart.patch(NOON)["spec"]["template"]["metadata"]["annotations"]
    assert restart.look({"spec": restart.patch(NOON)["spec"]}, [], []).mark == NOON
    assert list(annotations) == [restart.MARK]
