# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reference page of the snapshot of a cluster agrees with the code."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import cluster_snapshot, snapshot

from .test_reference import table

PAGE = "reference/cluster-snapshot.md"
SECTIONS = {
    "The document": cluster_snapshot.ClusterSnapshot,
    "collector": cluster_snapshot.ClusterCollector,
    "errors": snapshot.ReadError,
    "server": cluster_snapshot.ApiServer,
    "nodes": cluster_snapshot.ClusterNode,
    "slices": cluster_snapshot.ResourceSlice,
    "devices": cluster_snapshot.SliceDevice,
    "device_classes": cluster_snapshot.DeviceClass,
    "claims": cluster_snapshot.Claim,
    "requests": cluster_snapshot.DeviceRequest,
    "constraints": cluster_snapshot.Constraint,
    "config": cluster_snapshot.OpaqueConfig,
    "allocated devices": cluster_snapshot.AllocatedDevice,
    "reserved_for": cluster_snapshot.Consumer,
    "status": cluster_snapshot.DeviceStatus,
    "claim_templates": cluster_snapshot.ClaimTemplate,
    "taint_rules": cluster_snapshot.DeviceTaintRule,
    "daemonsets": cluster_snapshot.DaemonSet,
    "containers": cluster_snapshot.DriverContainer,
    "mounts": cluster_snapshot.Mount,
    "pods": cluster_snapshot.DriverPod,
    "networks": cluster_snapshot.NetworkRange,
    "objects": cluster_snapshot.ApiObject,
    "rail_workloads": cluster_snapshot.RailWorkload,
    "rail containers": cluster_snapshot.RailContainer,
    "pod_looks": cluster_snapshot.PodLook,
    "answers": cluster_snapshot.PodAnswer,
    "tests": cluster_snapshot.PodTest,
    "sriov_node_states": cluster_snapshot.SriovNodeState,
    "interfaces": cluster_snapshot.SriovInterface,
    "admission_policies": cluster_snapshot.AdmissionPolicy,
    "bindings": cluster_snapshot.PolicyBinding,
    "prepare_events": cluster_snapshot.PrepareEvent,
    "roll_leases": cluster_snapshot.RollLease,
    "rolls": cluster_snapshot.Roll,
    "disruption_budgets": cluster_snapshot.DisruptionBudget,
    "driver_accounts": cluster_snapshot.DriverAccount,
    "role rules": cluster_snapshot.RoleRule,
}


def test_every_class_of_the_schema_has_a_section() -> None:
    classes = {
        held
        for held in vars(cluster_snapshot).values()
        if dataclasses.is_dataclass(held) and held.__module__ == cluster_snapshot.__name__
    }
    assert classes == set(SECTIONS.values()) - {snapshot.ReadError}


@pytest.mark.parametrize("section", SECTIONS)
def test_fields(section: str) -> None:
    fields = [field.name for field in dataclasses.fields(SECTIONS[section])]
    assert list(table(PAGE, section)) == fields


def shown(field: Any) -> str:
    """How the page writes a default."""
    if field.name in ("kind", "schema_version"):
        return "always written"
    if field.default is dataclasses.MISSING:
        return "must be there" if field.default_factory is dataclasses.MISSING else "none"
    words = {None: "not known", "": "empty", (): "none", False: "false"}
    if (field.default in words and field.default != 0) or field.default is False:
        return words[field.default]
    return "empty" if dataclasses.is_dataclass(field.default) else "`%s`" % field.default


@pytest.mark.parametrize("section", SECTIONS)
def test_defaults(section: str) -> None:
    told = table(PAGE, section)
    for field in dataclasses.fields(SECTIONS[section]):
        assert told[field.name][-1] == shown(field), field.name


def test_subsets_are_told() -> None:
    told = re.findall(r"`(\w+)`", table(PAGE, "The document")["subsets"][0])
    assert tuple(told) == cluster_snapshot.SUBSETS
