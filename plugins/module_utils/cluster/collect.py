# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a cluster into a ClusterSnapshot. Private to rdma.k8s: it may change with any release.

Lists are read whole, in pages of a thousand; nothing is asked for node by node. What cannot be read is ``None`` with a
reason, and the rest is read all the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Optional, Union

from ..core import cluster_networks as networks, cluster_reading as reading
from ..core.cluster_snapshot import (
    DEFAULT_SUBSETS,
    RAIL_WORKLOADS,
    SUBSETS,
    ApiServer,
    Claim,
    ClusterCollector,
    ClusterSnapshot,
    DaemonSet,
    DisruptionBudget,
    NetworkRange,
    RailWorkload,
    Roll,
    RollLease,
)
from ..core.errors import RdmaError
from ..core.kube.objects import mapping, namespace, text
from ..core.roll.names import LEASE, RECORD_LABELS
from ..core.snapshot import ReadError
from ..version import VERSION
from .sources import KINDS, FileSource, LiveSource

Source = Union[LiveSource, FileSource]
Objects = Optional[list[dict[str, Any]]]

EVENTS = 200
"""How many events are kept, the latest."""

_DRA, _SRIOV, _SPIDER = "resource.k8s.io", "sriovnetwork.openshift.io", "spiderpool.spidernet.io"
_ADMISSION, _CALICO = "admissionregistration.k8s.io", "crd.projectcalico.org"
_RBAC = "rbac.authorization.k8s.io"
_CLAIMS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("slices", "resourceslices", reading.resource_slice),
    ("device_classes", "deviceclasses", reading.device_class),
    ("claims", "resourceclaims", reading.claim),
    ("claim_templates", "resourceclaimtemplates", reading.claim_template),
    ("taint_rules", "devicetaintrules", reading.taint_rule),
)
_ATTACHMENTS: tuple[tuple[str, str, str, Callable[[Any], Any]], ...] = (
    ("network_attachments", "k8s.cni.cncf.io", "network-attachment-definitions", reading.api_object),
    ("ip_pools", _SPIDER, "spiderippools", reading.api_object),
    ("multus_configs", _SPIDER, "spidermultusconfigs", reading.api_object),
    ("sriov_policies", _SRIOV, "sriovnetworknodepolicies", reading.api_object),
    ("sriov_networks", _SRIOV, "sriovnetworks", reading.api_object),
    ("sriov_ib_networks", _SRIOV, "sriovibnetworks", reading.api_object),
    ("sriov_pool_configs", _SRIOV, "sriovnetworkpoolconfigs", reading.api_object),
    ("sriov_node_states", _SRIOV, "sriovnetworknodestates", reading.sriov_node_state),
)
_NO_MORE = frozenset(("kube_unreachable", "kube_timeout", "kube_tls", "kube_unauthorized"))
"""After these errors nothing more is asked."""
_NO_POD_RANGE = "No setting of kube-proxy or of a known network plugin names the whole pod network."
_NO_SERVICE_RANGE = "The API has no ServiceCIDR objects, and no setting names the service network."


def collect(source: Source, name: str = "", subsets: Sequence[str] = DEFAULT_SUBSETS) -> ClusterSnapshot:
    """Read what the subsets ask for.

    :param name: what the cluster is called.
    :raises RdmaError: what the first call raises, when the API server does not answer at all.
    """
    start = time.monotonic()
    version, platform = source.version()
    run = _Collection(source)
    fields: dict[str, Any] = {"server": ApiServer(version, platform, source.served())}
    if "nodes" in subsets:
        fields["nodes"] = run.read("", "nodes", reading.node)
    if "dra" in subsets:
        for field, plural, shape in _CLAIMS:
            fields[field] = run.read(_DRA, plural, shape)
    if "drivers" in subsets:
        fields["daemonsets"] = run.daemonsets()
    if "networks" in subsets:
        fields["pod_cidrs"], fields["service_cidrs"] = run.pod_cidrs(), run.service_cidrs()
    if "attachments" in subsets:
        for field, group, plural, shape in _ATTACHMENTS:
            fields[field] = run.read(group, plural, shape)
    if "policies" in subsets:
        fields["admission_policies"] = run.policies()
    if "events" in subsets:
        fields["prepare_events"] = run.events()
    if "rolls" in subsets:
        fields["roll_leases"] = leases = run.roll_leases()
        fields["rolls"] = run.rolls(leases or ())
        fields["disruption_budgets"] = run.disruption_budgets(fields.get("claims"))
    if "permissions" in subsets:
        fields["driver_accounts"] = run.driver_accounts()
    if "workloads" in subsets:
        fields["rail_workloads"] = run.rail_workloads()
    return ClusterSnapshot(
        name=name,
        collected_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        subsets=tuple([subset for subset in SUBSETS if subset in subsets]),
        collector=ClusterCollector(VERSION, source.calls, round((time.monotonic() - start) * 1000)),
        errors=tuple(run.errors),
        **fields,
    )


class _Collection:
    """One run: what was read already, and what failed."""

    def __init__(self, source: Source) -> None:
        self.errors: list[ReadError] = []
        self._source = source
        self._stopped = ""
        self._daemonsets: Optional[tuple[Objects]] = None
        self._config_maps: dict[tuple[str, str], Optional[dict[str, Any]]] = {}

    def objects(self, group: str, plural: str, namespace: str = "", **query: Any) -> Objects:
        """All objects of a kind, none when it is not served; ``None``: not known, with an entry in ``errors``."""
        return self._try(
            _source_of(group, plural),
            lambda: self._source.objects(group, plural, namespace, **query),
            {"kube_not_served": []},
        )

    def read(self, group: str, plural: str, shape: Callable[[Any], Any]) -> Optional[tuple[Any, ...]]:
        """All objects of a kind in the shape of the snapshot."""
        found = self.objects(group, plural)
        return None if found is None else tuple([shape(content) for content in found])

    def daemonsets(self) -> Optional[tuple[DaemonSet, ...]]:
        """The DaemonSets that have to do with RDMA or the network, drivers with their pods."""
        found = self._raw_daemonsets()
        if found is None:
            return None
        kept = [(content, reading.daemonset(content)) for content in found if reading.role(content)]
        return tuple([self._with_pods(content, daemonset) for content, daemonset in kept])

    def _with_pods(self, content: dict[str, Any], daemonset: DaemonSet) -> DaemonSet:
        selector = reading.selector_of(content)
        if not reading.wants_pods(daemonset) or not selector:
            return daemonset
        pods = self.objects("", "pods", daemonset.namespace, labelSelector=selector)
        if pods is None:
            return daemonset
        shaped = [reading.driver_pod(pod, daemonset) for pod in pods]
        return replace(daemonset, pods=tuple([pod for pod in shaped if pod is not None]))

    def _raw_daemonsets(self) -> Objects:
        if self._daemonsets is None:
            found = self.objects("apps", "daemonsets")
            for content in found or ():  # a typed list leaves the kind out
                content.setdefault("kind", KINDS["daemonsets"])
            self._daemonsets = (found,)
        return self._daemonsets[0]

    def pod_cidrs(self) -> Optional[tuple[NetworkRange, ...]]:
        """The whole pod networks, as the settings of what gives the addresses name them."""
        daemonsets = self._raw_daemonsets() or []
        found = [entry for content in daemonsets for entry in networks.pod_ranges(content)]
        if any(_name(content).startswith("calico") for content in daemonsets):
            pools = self.objects(_CALICO, "ippools") or []
            found += [
                entry
                for content in pools
                for entry in networks.pod_ranges(dict(content, kind=KINDS["ippools"]))
            ]
        for wanted in networks.config_maps(daemonsets):
            if not found or wanted.name != networks.PROXY:  # its setting repeats what the network plugin has
                found += self._named_by(wanted.namespace, wanted.name, networks.pod_ranges)
        found = found or self._named_by(networks.SYSTEM, networks.KUBEADM, networks.pod_ranges)
        return self._ranges("pod CIDRs", found, _NO_POD_RANGE)

    def service_cidrs(self) -> Optional[tuple[NetworkRange, ...]]:
        """The whole service networks."""
        objects = self.objects("networking.k8s.io", "servicecidrs")
        found = [
            entry
            for content in objects or ()
            for entry in networks.service_ranges(dict(content, kind=KINDS["servicecidrs"]))
        ]
        if not found:
            found = self._named_by(networks.SYSTEM, networks.KUBEADM, networks.service_ranges)
        return self._ranges("service CIDRs", found, _NO_SERVICE_RANGE)

    def _named_by(
        self, namespace: str, name: str, ranges: Callable[[Any], list[NetworkRange]]
    ) -> list[NetworkRange]:
        """The networks that a ConfigMap names; none when it is not there. It is read once."""
        if (namespace, name) not in self._config_maps:
            self._config_maps[namespace, name] = self._try(
                "configmaps %s/%s" % (namespace, name),
                lambda: self._source.one("", "configmaps", namespace, name),
                {"kube_not_found": None, "kube_not_recorded": None},
            )
        content = self._config_maps[namespace, name]
        return [] if content is None else ranges(content)

    def _ranges(
        self, source: str, found: Iterable[NetworkRange], without: str
    ) -> Optional[tuple[NetworkRange, ...]]:
        ranges = networks.merged(found)
        if not ranges:
            self.errors.append(ReadError(source, without))
        return ranges or None

    def policies(self) -> Any:
        """The admission policies of this collection."""
        policies = self.objects(_ADMISSION, "validatingadmissionpolicies")
        if policies is None:
            return None
        bindings: Objects = []
        if any(reading.is_ours(content) for content in policies):
            bindings = self.objects(_ADMISSION, "validatingadmissionpolicybindings")
        return None if bindings is None else reading.admission_policies(policies, bindings)

    def events(self) -> Any:
        """The latest events about claims that could not be prepared."""
        found = self.objects("", "events", fieldSelector="reason=" + reading.PREPARE_REASON)
        if found is None:
            return None
        shaped = [event for event in map(reading.prepare_event, found) if event is not None]
        shaped.sort(key=_last, reverse=True)
        if len(shaped) > EVENTS:
            self.errors.append(
                ReadError("events", "%d events, the latest %d are kept" % (len(shaped), EVENTS))
            )
        return tuple(shaped[:EVENTS])

    def roll_leases(self) -> Optional[tuple[RollLease, ...]]:
        """The Leases of rolls; more than one when rolls have used more than one namespace."""
        found = self.objects("coordination.k8s.io", "leases", fieldSelector="metadata.name=" + LEASE)
        if found is None:
            return None
        return tuple([reading.roll_lease(content) for content in found if _name(content) == LEASE])

    def rolls(self, leases: Iterable[RollLease]) -> Optional[tuple[Roll, ...]]:
        """The records of rolls, which stand beside their Leases."""
        wanted = ",".join(["%s=%s" % pair for pair in sorted(RECORD_LABELS.items())])
        shaped: list[Optional[Roll]] = []
        for place in sorted({lease.namespace for lease in leases} or {networks.SYSTEM}):
            found = self.objects("", "configmaps", place, labelSelector=wanted)
            if found is None:
                return None
            shaped += [reading.roll(content) for content in found]
        return tuple([roll for roll in shaped if roll is not None])

    def disruption_budgets(self, claims: Optional[Iterable[Claim]]) -> Optional[tuple[DisruptionBudget, ...]]:
        """The budgets, in namespaces with claims in use with the pods that have them: one list for a namespace."""
        found = self.objects("policy", "poddisruptionbudgets")
        if found is None:
            return None
        if claims is None:
            return tuple([reading.disruption_budget(content, None) for content in found])
        users: dict[str, set[str]] = {}
        for claim in claims:
            users.setdefault(claim.namespace, set()).update([entry.uid for entry in claim.reserved_for])
        pods: dict[str, Objects] = {}
        for place in sorted({namespace(content) for content in found}):
            held = self.objects("", "pods", place) if users.get(place) else []
            pods[place] = None if held is None else [pod for pod in held if _uid(pod) in users[place]]
        return tuple([reading.disruption_budget(content, pods[namespace(content)]) for content in found])

    def driver_accounts(self) -> Any:
        """What the service accounts of DRANET may do; in a cluster without it nothing more is asked for."""
        found = self._raw_daemonsets()
        if found is None:
            return None
        accounts = reading.accounts([reading.daemonset(content) for content in found])
        lists = []
        for plural in ("clusterrolebindings", "clusterroles") if accounts else ():
            # A server that does not serve them decides in another way, so nothing is known of the accounts.
            ask = partial(self._source.objects, _RBAC, plural)
            lists.append(self._try(_source_of(_RBAC, plural), ask, {}))
        if None in lists:
            return None
        return tuple([reading.driver_account(namespace, name, *lists) for namespace, name in accounts])

    def rail_workloads(self) -> Optional[tuple[RailWorkload, ...]]:
        """The workloads that ask for networks or devices of Spiderpool. Objects that another one of them made are left
        out: a webhook changes pods, and what the user wrote stands in their controller."""
        policies = self.objects(_SRIOV, "sriovnetworknodepolicies")
        spaces = self.objects("", "namespaces")
        lists = [self.objects(group, plural) for group, plural in RAIL_WORKLOADS]
        if policies is None or spaces is None or None in lists:
            return None
        made = {text(mapping(content, "spec").get("resourceName")) for content in policies}
        asking = {_name(content): reading.asking_annotations(content) for content in spaces}
        asking = {called: held for called, held in asking.items() if held}
        kinds = [KINDS[plural] for _group, plural in RAIL_WORKLOADS if plural != "pods"]
        found: list[RailWorkload] = []
        for (_group, plural), held in zip(RAIL_WORKLOADS, lists):
            for content in held or ():
                if not reading.has_read_owner(content, kinds):
                    content.setdefault("kind", KINDS[plural])  # a typed list leaves it out
                    found += reading.rail_workloads(content, asking, made)
        return tuple(found)

    def _try(self, source: str, ask: Callable[[], Any], instead: dict[str, Any]) -> Any:
        """What ``ask`` gives, or for some errors something else; ``None`` with a reason for the others."""
        if self._stopped:
            self.errors.append(ReadError(source, "not asked for after: " + self._stopped))
            return None
        try:
            return ask()
        except RdmaError as error:
            if error.code in instead:
                return instead[error.code]
            if error.code in _NO_MORE:
                self._stopped = error.code
            self.errors.append(ReadError(source, str(error)))
            return None


def _source_of(group: str, plural: str) -> str:
    return "%s.%s" % (plural, group) if group else plural


def _name(content: dict[str, Any]) -> str:
    return text(mapping(content, "metadata").get("name"))


def _uid(content: dict[str, Any]) -> str:
    return text(mapping(content, "metadata").get("uid"))


def _last(event: Any) -> str:
    return event.last
