# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the area DRA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Optional

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ApiServer,
    ClaimTemplate,
    ClusterSnapshot,
    DeviceClass,
    DeviceRequest,
    DriverAccount,
    OpaqueConfig,
    PrepareEvent,
    RoleRule,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot, ReadError
from ansible_collections.rdma.k8s.tests.support import cluster_fleet as api, fleet
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, H100, SICK, Case

DENIED = "is not allowed"
NO_NODES = "ROLL-002 unknown ROLL-003 unknown ROLL-008 unknown"
"""What the checks of rolls say without the nodes of the cluster."""


def case(
    check: str,
    status: str,
    message: str,
    title: str,
    edit: Callable[[ClusterSnapshot], ClusterSnapshot] = api.same,
    *,
    native: bool = False,
    node: str = api.NAME,
    edit_snapshot: Optional[Callable[[NodeSnapshot], NodeSnapshot]] = None,
    **more: Any,
) -> Case:
    """A case of the cluster, or with ``node`` of one node in it."""
    made = api.of_case(edit, more.get("shape", H100), native)
    return Case(check, status, message, title, edit_snapshot, cluster=made, node=node, **more)


def unread(field: str, source: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """A list that the user may not read."""
    error = ReadError(source, "GET %s is not allowed" % source)
    return lambda cluster: replace(cluster, errors=(error,), **{field: None})


def not_asked(field: str, subset: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """A subset that was not read."""
    return lambda cluster: replace(
        cluster, subsets=tuple([name for name in cluster.subsets if name != subset]), **{field: None}
    )


def no_driver(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return replace(cluster, daemonsets=())


def args(*words: str, name: str = api.DRANET) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_container(cluster, name, args=words)


def not_ready(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_pod(api.edit_daemonset(cluster, api.DRANET, ready=2), api.DRANET, ready=False)


def half_rolled(cluster: ClusterSnapshot) -> ClusterSnapshot:
    old = {
        api.PROVIDER: ["--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.208.0.0/12", "--log-level=debug"]
    }
    cluster = api.edit_daemonset(cluster, api.PROVIDER, updated=2)
    return api.edit_pod(cluster, api.PROVIDER, args=old)


def without_provider(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return replace(cluster, daemonsets=(cluster.daemonsets or ())[:1])


def no_pod_on_the_node(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_daemonset(api.without_pod(cluster, api.DRANET), api.DRANET, desired=2, ready=2, updated=2)


def pods_unread(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_daemonset(cluster, api.DRANET, pods=None)


def rolling(strategy: str, state: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    def edit(cluster: ClusterSnapshot) -> ClusterSnapshot:
        cluster = api.edit_node(cluster, annotations={"rdma-k8s/roll-state": state} if state else {})
        return api.edit_daemonset(cluster, api.DRANET, strategy=strategy)

    return edit


def kubelet(version: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_node(cluster, kubelet=version)


def served(*entries: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: replace(cluster, server=ApiServer("v1.33.1", "", entries))


def from_files(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Files of kubectl do not tell what is served; slices tell it."""
    return replace(cluster, server=ApiServer("v1.34.1"))


def classes(*found: DeviceClass) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: replace(cluster, device_classes=found, claims=())


def template_of(device_class: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    template = ClaimTemplate("ml", "train", (DeviceRequest("nic", device_class),))
    return lambda cluster: replace(cluster, claim_templates=(template,))


def no_slice(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return replace(cluster, slices=(cluster.slices or ())[1:])


def only_the_old_slice(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A newer generation of two slices, of which one is there; the old one does not count any more."""
    old = (cluster.slices or ())[0]
    newer = replace(old, name=old.name + "-2", generation=2, slices=2)
    return replace(cluster, slices=(newer, *(cluster.slices or ())))


def one_device_less(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_slice(cluster, devices=(cluster.slices or ())[0].devices[1:])


def found_by_its_name(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A device whose PCI address and RDMA device are not told."""
    cluster = api.edit_attribute(cluster, "dra.net/pciAddress", None, device=0)
    return api.edit_attribute(cluster, "dra.net/rdmaDevice", None, device=0)


def without_an_attribute(name: str, value: Any = None) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_attribute(cluster, name, value, device=3)


def other_name(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The node has another address in the cluster than its VNIC has."""
    return api.edit_node(cluster, name="10.0.0.9", addresses=("InternalIP 10.0.0.9",))


def event(
    first: str, last: str, pod: str = "worker-10.140.77.19"
) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    entry = PrepareEvent("ml", pod, "10.140.77.19", "the parent rdma3 has no address.", 7, first, last)
    return lambda cluster: replace(cluster, prepare_events=(entry,))


def template(**changes: Any) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    def edit(cluster: ClusterSnapshot) -> ClusterSnapshot:
        keys = {key: value for key, value in changes.items() if key != "priority_class"}
        cluster = api.edit_container(cluster, api.DRANET, **keys)
        return api.edit_daemonset(cluster, api.DRANET, priority_class=changes.get("priority_class", "high"))

    return edit


def digest(value: str, number: int = 0) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_pod(cluster, api.DRANET, number, digest=value)


def no_digests(cluster: ClusterSnapshot) -> ClusterSnapshot:
    for name in (api.DRANET, api.PROVIDER):
        for number in range(3):
            cluster = api.edit_pod(cluster, name, number, digest="")
    return cluster


def deleted(at: str, **changes: Any) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_claim(cluster, deleted=at, **changes)


def of_another_driver(at: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_claim(
        cluster, deleted=at, devices=(), config=(OpaqueConfig("gpu.example"),)
    )


def in_two_networks() -> list[NodeInput]:
    """The sick node is alone in an RDMA network of its own."""
    nodes = [fleet.node(number=number, name=name) for number, name in enumerate((SICK, "", ""))]
    return [NodeInput(node.name, node, network="second" if node.name == SICK else "") for node in nodes]


def account(*rules: RoleRule, version: str = "v1.36.2") -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """The account of DRANET has these rules, on an API server of a version."""
    found = DriverAccount("kube-system", api.DRANET, (api.DRANET,), rules)

    def edit(cluster: ClusterSnapshot) -> ClusterSnapshot:
        server = replace(cluster.server, version=version)
        return replace(cluster, server=server, driver_accounts=(found,))

    return edit


OLD_RULES = api.RULES[:-1]
"""Of a role from before Kubernetes 1.36."""


def own_rule(verb: str, *names: str) -> RoleRule:
    """The right to change what a driver says in a claim."""
    verbs = (verb + ":patch", verb + ":update")
    return RoleRule(("resource.k8s.io",), ("resourceclaims/driver",), verbs, names)


def two_dranets(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A second DRANET for other nodes, with the account that a pod has when none is named, which has no role."""
    first = (cluster.daemonsets or ())[0]
    second = replace(first, name="dranet-b", service_account="", desired=0, ready=0, updated=0, pods=())
    accounts = (*(cluster.driver_accounts or ()), DriverAccount("kube-system", "default"))
    return replace(cluster, daemonsets=(*(cluster.daemonsets or ()), second), driver_accounts=accounts)


def without_nics() -> list[NodeInput]:
    """A node without RDMA NICs, which needs no driver."""
    sick = fleet.node(number=0, name=SICK)
    devices = tuple([device for device in sick.devices or () if device.ports[0].netdev == "eth0"])
    links = tuple([link for link in sick.links or () if not link.name.startswith("rdma")])
    pci = tuple([function for function in sick.pci or () if function.id == "15b3:101d"])
    return [NodeInput(SICK, replace(sick, devices=devices, links=links, pci=pci))]


CASES = [
    # RDMA-DRA-001: F97, F115
    case("RDMA-DRA-001", "pass", "DRANET is ready on all its nodes", "all ready"),
    case(
        "RDMA-DRA-001",
        "fail",
        "kube-system/dranet: 2 of 3 pods are ready (not on 10.140.77.19)",
        "a pod of DRANET that is not ready",
        not_ready,
    ),
    case(
        "RDMA-DRA-001",
        "fail",
        "2 of 3 pods are of the newest template (other arguments on 10.140.77.19)",
        "a provider that is rolled half",
        half_rolled,
    ),
    case("RDMA-DRA-001", "fail", "No DaemonSet of DRANET is in the cluster", "no DRANET", no_driver),
    case(
        "RDMA-DRA-001",
        "fail",
        "provider: DRANET asks it, and it is not in the cluster",
        "no provider behind the webhook",
        without_provider,
    ),
    case(
        "RDMA-DRA-001",
        "fail",
        "sick: no pod of DRANET is on it",
        "an RDMA node without DRANET",
        no_pod_on_the_node,
    ),
    case(
        "RDMA-DRA-001",
        "fail",
        "kube-system/dranet: is wanted on no node",
        "a node selector that matches nothing",
        lambda cluster: api.edit_daemonset(cluster, api.DRANET, desired=0, ready=0, updated=0, pods=()),
    ),
    case(
        "RDMA-DRA-001",
        "unknown",
        "its newest change was not looked at yet",
        "a change that is not looked at yet",
        lambda cluster: api.edit_daemonset(cluster, api.DRANET, generation=3),
    ),
    case(
        "RDMA-DRA-001",
        "unknown",
        "No node of the cluster has the name sick, the address 10.140.77.19 or the host name sick",
        "a node that is not in the cluster",
        other_name,
    ),
    case(
        "RDMA-DRA-001",
        "unknown",
        "the pods of DRANET could not be read",
        "pods of DRANET that may not be read",
        pods_unread,
        also="DRA-008 unknown DRA-015 unknown",
    ),
    case(
        "RDMA-DRA-001",
        "unknown",
        "Not readable: daemonsets.apps: GET daemonsets.apps is not allowed",
        "DaemonSets that may not be read",
        unread("daemonsets", "daemonsets.apps"),
        also="DRA-002 unknown DRA-003 unknown DRA-004 unknown DRA-005 unknown DRA-008 unknown DRA-012 unknown "
        "DRA-013 unknown DRA-015 unknown RANGE-015 unknown RANGE-016 unknown RANGE-017 unknown",
    ),
    case(
        "RDMA-DRA-001",
        "pass",
        "DRANET is ready on all its nodes",
        "a node without RDMA NICs and without DRANET",
        no_pod_on_the_node,
        inputs=without_nics,
    ),
    # RDMA-DRA-002
    case("RDMA-DRA-002", "pass", "OnDelete", "restarts on request"),
    case(
        "RDMA-DRA-002",
        "fail",
        "kube-system/dranet: RollingUpdate, while a roll goes on: 10.140.77.19 (Draining)",
        "a rolling update in a roll",
        rolling("RollingUpdate", "Draining"),
        also="ROLL-002 fail",
    ),
    case(
        "RDMA-DRA-002",
        "pass",
        "no roll goes on",
        "a rolling update without a roll",
        rolling("RollingUpdate", ""),
    ),
    case("RDMA-DRA-002", "pass", "no roll goes on", "a roll that is over", rolling("RollingUpdate", "Done")),
    case(
        "RDMA-DRA-002", "skip", "see RDMA-DRA-001", "strategy without DRANET", no_driver, also="DRA-001 fail"
    ),
    case(
        "RDMA-DRA-002",
        "unknown",
        "The subset 'nodes' of the cluster was not read",
        "a rolling update of nodes that were not read",
        lambda cluster: not_asked("nodes", "nodes")(rolling("RollingUpdate", "")(cluster)),
        also="DRA-001 unknown DRA-006 unknown RANGE-017 unknown " + NO_NODES,
    ),
    # RDMA-DRA-003: F92-F95
    case(
        "RDMA-DRA-003", "pass", "Read by kube-system/dranet, kube-system/rdma-k8s-provider", "options of both"
    ),
    case(
        "RDMA-DRA-003",
        "fail",
        "is not an option of OKE",
        "a misspelt option",
        args("--cloud-provider-options=oke.rdma-child-cidr=10.208.0.0/12", name=api.PROVIDER),
    ),
    case(
        "RDMA-DRA-003",
        "fail",
        "is given twice",
        "an option twice in native mode",
        args(api.OPTION + api.CHILD_RANGE, api.OPTION + api.CHILD_RANGE),
        native=True,
    ),
    case(
        "RDMA-DRA-003",
        "fail",
        "the cloud provider hint 'webhook', expected OKE",
        "an option of OKE with the hint of the webhook",
        args(
            *api.WEBHOOK_ARGS,
            "--cloud-provider-hint",
            "webhook",
            "--cloud-provider-options",
            "oke.rdma-child-ipv4-cidr=10.208.0.0/12",
        ),
    ),
    # RDMA-DRA-004: F87, F105
    case("RDMA-DRA-004", "pass", "cloud", "profiles of the cloud", native=True),
    case("RDMA-DRA-004", "pass", "webhook", "profiles of the webhook"),
    case(
        "RDMA-DRA-004",
        "fail",
        "--profile-provider is none, so profiles and the guard of native InfiniBand do not run",
        "no profiles",
        args("--profile-provider=none", *api.NATIVE_ARGS),
        native=True,
    ),
    # RDMA-DRA-005: F82, F84, F103
    case("RDMA-DRA-005", "pass", "--move-ib-interfaces is off", "native InfiniBand stays", shape=GB200_IB),
    case(
        "RDMA-DRA-005",
        "fail",
        "--move-ib-interfaces is on, and sick, node-001, node-002 have native InfiniBand",
        "native InfiniBand with the default",
        args(*api.WEBHOOK_ARGS),
        shape=GB200_IB,
    ),
    case("RDMA-DRA-005", "skip", "No node of this run has native InfiniBand", "Ethernet alone"),
    # RDMA-DRA-006: F99, F120
    case("RDMA-DRA-006", "pass", "resource.k8s.io/v1 is served; kubelets: v1.34.1", "a cluster with claims"),
    case("RDMA-DRA-006", "pass", "resource.k8s.io/v1", "a cluster from files", from_files),
    case("RDMA-DRA-006", "fail", "on 10.140.77.19", "an old kubelet", kubelet("v1.33.9")),
    case(
        "RDMA-DRA-006",
        "unknown",
        "its version 'next' on 10.140.77.19 is not known",
        "an odd kubelet",
        kubelet("next"),
    ),
    case(
        "RDMA-DRA-006",
        "fail",
        "served is v1beta1",
        "claims of a beta version",
        served("resource.k8s.io/v1beta1/resourceslices"),
    ),
    case(
        "RDMA-DRA-006",
        "unknown",
        "it is not known what the API server serves",
        "no slices in files",
        lambda cluster: replace(from_files(cluster), slices=()),
        also="DRA-008 fail",
    ),
    case(
        "RDMA-DRA-006",
        "unknown",
        "The subset 'nodes' of the cluster was not read",
        "nodes that were not read",
        not_asked("nodes", "nodes"),
        also="DRA-001 unknown RANGE-017 unknown " + NO_NODES,
    ),
    # RDMA-DRA-007: F99
    case("RDMA-DRA-007", "pass", "Selected by: rdma-nic", "a device class"),
    case(
        "RDMA-DRA-007",
        "pass",
        "Selected by: mine",
        "a class that says it the other way round",
        classes(DeviceClass("mine", ("'dra.net'==device.driver && true",))),
    ),
    case(
        "RDMA-DRA-007",
        "fail",
        "None of the 1 device classes selects devices of dra.net",
        "classes of other drivers only",
        classes(DeviceClass("gpu", ('device.driver == "gpu.example"',))),
    ),
    case(
        "RDMA-DRA-007",
        "fail",
        "rdma-nics: the class does not exist, and is named by template ml/train",
        "a template of a class that is not there",
        template_of("rdma-nics"),
    ),
    case(
        "RDMA-DRA-007",
        "unknown",
        DENIED,
        "classes that may not be read",
        unread("device_classes", "deviceclasses.resource.k8s.io"),
    ),
    # RDMA-DRA-008: F99
    case("RDMA-DRA-008", "pass", "3 nodes have published their devices", "all slices"),
    case(
        "RDMA-DRA-008",
        "fail",
        "10.140.77.19: has a pod of DRANET and no slice",
        "a node without slice",
        no_slice,
    ),
    case(
        "RDMA-DRA-008",
        "fail",
        "pool 10.140.77.19 has 1 of 2 slices",
        "a newer generation that is not complete",
        only_the_old_slice,
    ),
    case(
        "RDMA-DRA-008",
        "unknown",
        DENIED,
        "slices that may not be read",
        unread("slices", "resourceslices.resource.k8s.io"),
        also="RANGE-017 unknown",
    ),
    case("RDMA-DRA-008", "skip", "see RDMA-DRA-001", "slices without DRANET", no_driver, also="DRA-001 fail"),
    # RDMA-DRA-009: F1, F70
    case("RDMA-DRA-009", "pass", "16 NICs are offered with a range", "ranges on all devices", node=SICK),
    case(
        "RDMA-DRA-009",
        "fail",
        "rdma3: its device names no child range",
        "a driver without the profile",
        without_an_attribute("oke.dra.net/rdmaChildIpv4Cidr"),
        node=SICK,
    ),
    case(
        "RDMA-DRA-009",
        "fail",
        "rdma0: is in no slice",
        "a NIC that is not offered",
        one_device_less,
        node=SICK,
        also="DRA-010 fail",
    ),
    case("RDMA-DRA-009", "skip", "The fabric is ipv6", "an IPv6 fabric", shape=GB200_V3, node=SICK),
    case(
        "RDMA-DRA-009",
        "unknown",
        "No node of the cluster has the name sick",
        "a node under another name",
        other_name,
        node=SICK,
        also="DRA-010 unknown DRA-017 unknown IMDS-007 unknown OCA-013 unknown OCA-014 unknown RANGE-014 unknown",
    ),
    case(
        "RDMA-DRA-009",
        "unknown",
        DENIED,
        "the slices of a node that may not be read",
        unread("slices", "resourceslices.resource.k8s.io"),
        node=SICK,
        also="DRA-010 unknown DRA-017 unknown IMDS-007 unknown RANGE-014 unknown",
    ),
    # RDMA-DRA-010: F101, DEV-04
    case("RDMA-DRA-010", "pass", "16 NICs are offered with RDMA", "RDMA on all devices", node=SICK),
    case(
        "RDMA-DRA-010",
        "pass",
        "16 NICs",
        "a device that is found by its interface",
        found_by_its_name,
        node=SICK,
    ),
    case("RDMA-DRA-010", "pass", "4 NICs", "native InfiniBand is offered", node=SICK, shape=GB200_IB),
    case(
        "RDMA-DRA-010",
        "fail",
        "rdma3: its device says that it has no RDMA",
        "a NIC that was published without RDMA",
        without_an_attribute("dra.net/rdma", False),
        node=SICK,
    ),
    # RDMA-DRA-011: F44, F97
    case("RDMA-DRA-011", "pass", "No claim fails", "no events"),
    case(
        "RDMA-DRA-011",
        "fail",
        "ml/worker-10.140.77.19: on 10.140.77.19 for 21 minutes: the parent rdma3 has no address",
        "a claim that fails for long",
        event("2026-03-02T08:40:00Z", "2026-03-02T09:00:00Z"),
    ),
    case(
        "RDMA-DRA-011",
        "pass",
        "1 failures, none older than five minutes",
        "a young failure",
        event("2026-03-02T08:58:00Z", "2026-03-02T09:00:00Z"),
    ),
    case(
        "RDMA-DRA-011",
        "pass",
        "No claim fails",
        "a failure that healed",
        event("2026-03-02T08:10:00Z", "2026-03-02T08:40:00Z"),
    ),
    case(
        "RDMA-DRA-011",
        "pass",
        "No claim fails",
        "a failure of a pod that is gone",
        event("2026-03-02T08:40:00Z", "2026-03-02T09:00:00Z", "gone"),
    ),
    case(
        "RDMA-DRA-011",
        "unknown",
        "it is not known since when",
        "an event without times",
        event("", "2026-03-02T09:00:00Z"),
    ),
    case(
        "RDMA-DRA-011",
        "unknown",
        "The subset 'events' of the cluster was not read",
        "events that were not read",
        not_asked("prepare_events", "events"),
    ),
    # RDMA-DRA-012: F115
    case("RDMA-DRA-012", "pass", "all three are set", "pods that are looked after"),
    case(
        "RDMA-DRA-012",
        "warn",
        "has no liveness probe, no priority class, no requests of resources",
        "a bare template",
        template(liveness=False, requests={}, priority_class=""),
    ),
    case(
        "RDMA-DRA-012",
        "warn",
        "kube-system/dranet: has no liveness probe",
        "no probe",
        template(liveness=False),
    ),
    # RDMA-DRA-013: F119
    case("RDMA-DRA-013", "pass", "kube-system/dranet: all rights are there", "all rights"),
    case("RDMA-DRA-013", "pass", "all rights", "an older server", account(*OLD_RULES, version="v1.35.9")),
    case(
        "RDMA-DRA-013",
        "fail",
        "resourceclaims/driver.resource.k8s.io: kube-system/dranet may not associated-node:patch, "
        "associated-node:update for the driver dra.net (its roles: dranet)",
        "an old role on a newer server",
        account(*OLD_RULES, version="v1.36.0"),
    ),
    case(
        "RDMA-DRA-013",
        "fail",
        "for the driver dra.net",
        "a role for another driver",
        account(*OLD_RULES, own_rule("associated-node", "gpu.example.com")),
    ),
    case(
        "RDMA-DRA-013",
        "pass",
        "all rights",
        "a role for drivers of any node and name",
        account(*OLD_RULES, own_rule("arbitrary-node")),
    ),
    case(
        "RDMA-DRA-013",
        "unknown",
        "which Kubernetes 1.36 asks for, and the version of the API server is not known",
        "an old role on a server of an unknown version",
        account(*OLD_RULES, version=""),
    ),
    case(
        "RDMA-DRA-013",
        "pass",
        "all rights",
        "an administrator",
        account(RoleRule(("*",), ("*",), ("*",))),
    ),
    case(
        "RDMA-DRA-013",
        "pass",
        "all rights",
        "a role that names subresources of all resources",
        account(
            *api.RULES[:4],
            api.RULES[5],
            RoleRule(("resource.k8s.io",), ("*/status",), ("patch", "update")),
        ),
    ),
    case(
        "RDMA-DRA-013",
        "fail",
        "nodes: kube-system/dranet may not get",
        "a role for one node",
        account(*api.RULES[1:], RoleRule(("",), ("nodes",), ("get",), ("n1",))),
    ),
    case(
        "RDMA-DRA-013",
        "fail",
        "events: kube-system/dranet may not create, patch, update",
        "a role for events of the newer group",
        account(*api.RULES[:1], *api.RULES[2:], RoleRule(("events.k8s.io",), ("events",), ("*",))),
    ),
    case(
        "RDMA-DRA-013",
        "fail",
        "kube-system/default may not get (its roles: none)",
        "an account without a role",
        two_dranets,
        also="DRA-001 fail",
    ),
    case(
        "RDMA-DRA-013",
        "unknown",
        "Not readable: clusterroles.rbac.authorization.k8s.io",
        "roles that may not be read",
        unread("driver_accounts", "clusterroles.rbac.authorization.k8s.io"),
    ),
    case(
        "RDMA-DRA-013",
        "unknown",
        "The subset 'permissions' of the cluster was not read",
        "a record without roles",
        not_asked("driver_accounts", "permissions"),
    ),
    case("RDMA-DRA-013", "skip", "see RDMA-DRA-001", "rights without DRANET", no_driver, also="DRA-001 fail"),
    # RDMA-DRA-015: F2
    case("RDMA-DRA-015", "pass", "One image each", "one image"),
    case(
        "RDMA-DRA-015",
        "warn",
        "10.140.77.19 run sha256:eeeeeeeeeeee, the others sha256:dddddddddddd",
        "two images",
        digest("sha256:" + "e" * 64),
    ),
    case(
        "RDMA-DRA-015", "skip", "No pod tells which image it runs", "pods that have not started", no_digests
    ),
    # RDMA-DRA-016: DEV-24
    case("RDMA-DRA-016", "pass", "3 claims", "claims at work"),
    case(
        "RDMA-DRA-016",
        "fail",
        "ml/train-10.140.77.19: is being deleted for 31 minutes on 10.140.77.19",
        "a claim that is stuck",
        deleted("2026-03-02T08:30:00Z"),
    ),
    case("RDMA-DRA-016", "pass", "3 claims", "a claim that goes", deleted("2026-03-02T08:59:00Z")),
    case(
        "RDMA-DRA-016",
        "pass",
        "2 claims",
        "a stuck claim of another driver",
        of_another_driver("2026-03-02T08:30:00Z"),
    ),
    case(
        "RDMA-DRA-016",
        "unknown",
        "it is not known since when it is being deleted",
        "a claim with an odd time",
        deleted("yesterday"),
    ),
    case(
        "RDMA-DRA-016",
        "pass",
        "There is no claim with devices of DRANET",
        "no claims",
        lambda cluster: replace(cluster, claims=()),
    ),
    case(
        "RDMA-DRA-016",
        "unknown",
        "The subset 'dra' of the cluster was not read",
        "claims that were not read",
        not_asked("claims", "dra"),
    ),
]
