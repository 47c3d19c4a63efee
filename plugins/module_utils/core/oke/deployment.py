# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How DRANET comes into a cluster: by its chart or by manifests, and why. Private to rdma.k8s: it may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ..errors import RdmaError
from . import chart_schema, dranet_objects, dranet_versions
from .chart_schema import Chart
from .constants import DEFAULT_CHILD_RANGE
from .dranet_versions import NEEDED_TODAY, Abilities
from .dranet_wish import RUN_DIRECTORY, WEBHOOK_URL, DeploymentWish
from .options import CHILD_RANGE_OPTION, PROVIDER as OKE


@dataclass(frozen=True)
class Deployment:
    """The decision.

    :param method: ``chart`` or ``manifests``.
    :param reasons: why, one sentence each; of ``manifests`` each setting that the schema refuses.
    :param lost: what this DRANET cannot do, when it was allowed all the same.
    :param values: for the chart; ``None``: manifests.
    :param dranet: the objects of DRANET; empty: the chart makes them.
    :param provider: the objects of the provider.
    :param more: objects that come last: the DeviceClass.
    :param published_range: what the slices will show; empty: nobody publishes it.
    """

    method: str
    version: str
    abilities: Abilities
    reasons: tuple[str, ...]
    lost: tuple[str, ...]
    values: Optional[dict[str, Any]]
    dranet: tuple[dict[str, Any], ...]
    provider: tuple[dict[str, Any], ...]
    more: tuple[dict[str, Any], ...]
    child_range: str
    published_range: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "method": self.method,
            "version": self.version,
            "abilities": self.abilities._asdict(),
            "reasons": list(self.reasons),
            "lost": list(self.lost),
            "values": self.values,
            "dranet": list(self.dranet),
            "provider": list(self.provider),
            "more": list(self.more),
            "child_range": self.child_range,
            "published_range": self.published_range,
            "needed_today": NEEDED_TODAY,
        }


def decide(wish: DeploymentWish, chart: Optional[Chart] = None) -> Deployment:
    """Decide for a wish and, when there is one, a chart.

    :raises RdmaError: ``dranet_option``, ``dranet_version_unknown``, ``dranet_without_children``,
        ``dranet_without_webhook``, ``dranet_without_profile``, ``dranet_without_options``, ``dranet_without_uplinks``,
        ``dranet_chart_refuses``
    """
    version = dranet_versions.version_of(wish.version, wish.image, chart.app_version if chart else "")
    able = dranet_versions.abilities(version, wish.abilities)
    lost = _require_able(wish, able, version or "the given DRANET")
    values = _values(wish)
    refused = _refused(wish, chart, values)
    if wish.method == "chart" and refused:
        raise RdmaError(
            "dranet_chart_refuses",
            "The chart cannot express what is wanted: %s" % " ".join(refused),
            hint="Use the method auto or manifests, or leave these settings off.",
            refused=refused,
        )
    by_chart = wish.method != "manifests" and not refused
    if by_chart and chart is not None:
        reasons = ["The schema of the chart %s takes every setting." % chart.source]
    elif wish.method == "manifests":
        reasons = ["Manifests were asked for."]
    else:
        reasons = refused
    return Deployment(
        method="chart" if by_chart else "manifests",
        version=version,
        abilities=able,
        reasons=tuple(reasons),
        lost=tuple(lost),
        values=values if by_chart else None,
        dranet=() if by_chart else tuple(dranet_objects.dranet(wish, able)),
        provider=tuple(dranet_objects.provider(wish)) if wish.mode == "webhook" else (),
        more=tuple(dranet_objects.device_class(wish)),
        child_range=str(wish.range),
        published_range=str(wish.range) if wish.mode == "webhook" or able.profile else "",
    )


def _require_able(wish: DeploymentWish, able: Abilities, version: str) -> list[str]:
    """Refuse what a version cannot do; what is lost when the user allows it."""
    lost = []
    if wish.mode == "webhook" and not able.webhook:
        raise _unable("dranet_without_webhook", version, "flags for a webhook (--webhook-url)", "webhook")
    if wish.uplink_interfaces and not able.uplinks:
        raise _unable("dranet_without_uplinks", version, "the flag --uplink-interfaces", "uplink_interfaces")
    if not able.ipvlan_child:
        if not wish.allow_without_ipvlan:
            raise RdmaError(
                "dranet_without_children",
                "DRANET %s cannot make IPvlan children: every claim for an RDMA NIC would fail." % version,
                hint="%s To deploy this one for its attributes only, set allow_without_ipvlan."
                % NEEDED_TODAY,
                version=version,
            )
        lost.append(
            "DRANET %s cannot make IPvlan children: claims for RDMA NICs %s. What works: slices and attributes."
            % (
                version,
                "fail when they are prepared, and the NIC stays on the host"
                if wish.mode == "webhook"
                else "move the NIC into the pod, because nothing gives them a profile",
            )
        )
    if wish.mode == "native":
        lost += _require_native(wish, able, version)
    return lost


def _require_native(wish: DeploymentWish, able: Abilities, version: str) -> list[str]:
    lost = []
    if not able.profile:
        if not wish.allow_without_ipvlan:
            raise _unable("dranet_without_profile", version, "the profile oke-rdma", "mode native")
        lost.append("DRANET %s has no profile oke-rdma: it advertises none on the NICs." % version)
    if not able.options:
        if able.profile and wish.range != DEFAULT_CHILD_RANGE:
            raise _unable("dranet_without_options", version, "--cloud-provider-options", "child range")
        if wish.flags:
            lost.append(
                "DRANET %s does not know --cloud-provider-options: the child range %s is not given to it, and the "
                "attribute rdmaChildIpv4Cidr is not published." % (version, wish.range)
            )
    return lost


def _unable(code: str, version: str, lacking: str, needed_by: str) -> RdmaError:
    return RdmaError(
        code,
        "DRANET %s has not got %s, which %s needs." % (version, lacking, needed_by),
        hint=NEEDED_TODAY,
        version=version,
    )


def _values(wish: DeploymentWish) -> dict[str, Any]:
    """The wish in words of the chart (F96, F117); keys that a chart does not know are found by its schema."""
    repository, _at, digest = wish.image.partition("@")
    head, slash, last = repository.rpartition("/")
    name, _colon, tag = last.partition(":")
    image: dict[str, Any] = {"repository": head + slash + name, "pullPolicy": wish.pull_policy}
    if tag:
        image["tag"] = tag
    if digest:
        image["digest"] = digest
    arguments: dict[str, Any] = {}
    if wish.move_ib_interfaces is not None:
        arguments["moveIBInterfaces"] = wish.move_ib_interfaces
    if wish.filter:
        arguments["filter"] = wish.filter
    if wish.uplink_interfaces:
        arguments["uplinkInterfaces"] = ",".join(wish.uplink_interfaces)
    if wish.extra_args:
        arguments["extraArgs"] = list(wish.extra_args)
    if wish.mode == "webhook":
        arguments.update(cloudProviderHint="webhook", profileProvider="webhook", webhookURL=WEBHOOK_URL)
    elif wish.flags:
        arguments["cloudProviderOptions"] = {OKE: {CHILD_RANGE_OPTION: str(wish.range)}}
    values: dict[str, Any] = {
        "fullnameOverride": dranet_objects.DRANET,
        "image": image,
        "args": arguments,
        "kubeletRootDir": wish.kubelet_root,
        "logVerbosity": wish.log_verbosity,
        "tolerations": [dict(entry) for entry in wish.tolerations],
        "podLabels": {"app.kubernetes.io/part-of": dranet_objects.PART_OF},
    }
    if wish.pull_secrets:
        values["imagePullSecrets"] = [{"name": entry} for entry in wish.pull_secrets]
    if wish.node_selector:
        values["nodeSelector"] = dict(wish.node_selector)
    if wish.resources:
        values["resources"] = dict(wish.resources)
    volumes, mounts = dranet_objects.extra_volumes(wish) if wish.mode == "native" else ([], [])
    if volumes:
        values.update(extraVolumes=volumes, extraVolumeMounts=mounts)
    if wish.update_strategy != "RollingUpdate":  # what a DaemonSet has when nothing is said
        values["updateStrategy"] = {"type": wish.update_strategy}
    if wish.priority_class:
        values["priorityClassName"] = wish.priority_class
    return values


def _refused(wish: DeploymentWish, chart: Optional[Chart], values: dict[str, Any]) -> list[str]:
    """Why the chart cannot be used, one sentence each; empty: it can."""
    if chart is None:
        return ["No chart was given."]
    if chart.schema is None:
        return [
            "The chart %s has no values.schema.json, so nothing tells which settings it knows." % chart.source
        ]
    found = ["The chart does not take %s." % text for text in chart_schema.refusals(chart.schema, values)]
    arguments = ((chart.schema.get("properties") or {}).get("args") or {}).get("properties") or {}
    if not found and wish.mode == "webhook" and "dbPath" not in arguments:
        found.append("The chart does not mount %s, where the socket is." % RUN_DIRECTORY)
    return found
