# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module spiderpool_plan_info does between its options and the core. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ansible.module_utils.basic import AnsibleModule

from . import _kube
from .cluster import spiderpool
from .cluster.client import Cluster
from .core import bounds
from .core.errors import RdmaError
from .core.kube import objects as kube
from .core.snapshot import NodeSnapshot
from .core.spiderpool import deployed, deployment, gpu_operator, ib_kubernetes, names, objects, table
from .core.spiderpool.table import Told


def plan(module: AnsibleModule) -> dict[str, Any]:
    """The return values.

    :raises RdmaError: ``spiderpool_plan_wrong``, ``number_out_of_range``, or one of the codes ``kube_...``.
    """
    params = module.params
    bounds.require_numbers(params, priority=(0, 99))
    setup = _setup(params)
    chart = deployment.Chart(
        registry=params["registry"],
        metrics=params["metrics"],
        grafana=params["grafana"],
        gateway_detection=params["gateway_detection"],
        inject_include=params["inject_include"],
        inject_exclude=params["inject_exclude"],
        more=params["values"],
        expressions=params["set_expressions"],
    )
    values = deployment.chart_values(chart, setup, params["drain"])
    cluster = _kube.connect(module) if params["read"] else None
    live = spiderpool.read(cluster) if cluster is not None else None
    snapshots = [NodeSnapshot.from_dict(entry) for entry in params["snapshots"]]
    found = deployment.decide(_wish(params, setup, values, _program(params, cluster)), live, snapshots)
    told = [entry for entry in found.told if not (params["allow_missing_kinds"] and _is_missing(entry))]
    result = {
        "rails": [
            {**rail._asdict(), "gpus": list(rail.gpus), "ranges": list(rail.ranges)} for rail in found.rails
        ],
        "ib_kubernetes": found.program,
        "objects": found.objects,
        "test": found.test,
        "networks": [
            "%s/%s" % (kube.namespace(entry), kube.name(entry))
            for entry in found.objects
            if kube.kind(entry) == objects.CONFIG
        ],
        "findings": [_plain(entry) for entry in told],
        "problems": [deployment.sentence(entry) for entry in told if entry.issue.severity == "error"],
        "warnings_found": [deployment.sentence(entry) for entry in told if entry.issue.severity != "error"],
        "nodes": found.nodes,
        "values": values,
        "gpu_operator_values": gpu_operator.VALUES,
        "versions": {"spiderpool": found.spiderpool_version, "operator": found.operator_version},
        "missing": None if live is None else deployed.missing(live.definitions),
        **_there(cluster, found, params["resource_prefix"], live),
    }
    if params["fail_on_problems"] and result["problems"]:
        raise RdmaError(
            "spiderpool_plan_wrong",
            "Nothing was changed, because this is wrong: %s" % " ".join(result["problems"]),
            findings=result["findings"],
        )
    return result


def _setup(params: Mapping[str, Any]) -> objects.Setup:
    return objects.Setup(
        node_selector={key: _label(value) for key, value in params["node_selector"].items()},
        operator_namespace=params["namespace"],
        network_namespace=params["network_namespace"],
        resource_prefix=params["resource_prefix"],
        isolated=params["netns_mode"] == names.EXCLUSIVE,
        priority=params["priority"],
        inject=params["inject"],
        spiderpool_version=params["spiderpool_version"],
        operator_version=params["operator_version"],
    )


def _label(value: Any) -> str:
    """YAML reads ``true`` as a truth value, and labels are texts."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _amount(value: Optional[str]) -> Any:
    """A number where the text is one."""
    return int(value) if value is not None and value.isdecimal() else value


def _program(params: Mapping[str, Any], cluster: Optional[Cluster]) -> Optional[ib_kubernetes.Program]:
    """How ib-kubernetes is to run; what is not told is as the program's own manifest has it."""
    given = params["ib_kubernetes"]
    if given is None:
        return None
    told = {key: value for key, value in given.items() if value is not None}
    program = ib_kubernetes.Program(**told)
    labels = {key: _label(value) for key, value in program.node_selector.items()}
    version = "" if cluster is None else spiderpool.secret_version(cluster)
    return program._replace(node_selector=labels, secret_version=version)


def _wish(
    params: Mapping[str, Any],
    setup: objects.Setup,
    values: Mapping[str, Any],
    program: Optional[ib_kubernetes.Program],
) -> deployment.Wish:
    return deployment.Wish(
        rows=params["rails"],
        setup=setup,
        defaults=table.Defaults(params["link_type"], params["vfs"], params["mtu"]),
        netns_mode=params["netns_mode"],
        netns_owner=params["netns_owner"],
        max_unavailable=_amount(params["max_unavailable"]),
        drain=params["drain"],
        nodes=params["nodes"],
        test=deployment.Trial(
            params["test_image"],
            params["test_namespace"],
            params["default_network"],
            params["test_command"],
            params["test_tolerations"],
        ),
        manifests=params["manifests"],
        values=values if params["install"] else None,
        set_expressions=params["set_expressions"],
        sources=params["sources"],
        targets=params["targets"],
        ufm_keys=params["ufm_keys"],
        gpudirect=params["gpudirect"],
        ib_kubernetes=program,
    )


def _is_missing(told: Told) -> bool:
    """What the chart brings."""
    return told.issue.code in ("kind-not-served", "default-network-unknown")


def _plain(told: Told) -> dict[str, Any]:
    return {"subject": told.subject, **told.issue.plain, "message": told.issue.message}


def _there(
    cluster: Optional[Cluster], found: deployment.Plan, prefix: str, live: Optional[deployment.Live]
) -> dict[str, Any]:
    """What the cluster has of ours, and who uses it."""
    if cluster is None or live is None:
        return {"ours": None, "left_over": [], "users": []}
    ours = spiderpool.ours(cluster)
    mine = {kube.name(entry) for entry in ours if kube.kind(entry) == objects.POLICY}
    resources = {
        "%s/%s" % (prefix, kube.text(kube.mapping(policy.spec).get("resourceName")))
        for policy in live.snapshot.sriov_policies or ()
        if policy.name in mine
    }
    users = spiderpool.users(cluster, resources) if resources else []
    wanted = [*found.program, *found.objects, *found.test]
    left = [entry for entry in spiderpool.left_over(ours, wanted) if kube.kind(entry) != "Secret"]
    return {
        "ours": ours,
        "left_over": left,
        "users": ["%s/%s" % (user.namespace, user.name) for user in users],
    }
