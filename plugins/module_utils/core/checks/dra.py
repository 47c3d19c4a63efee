# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area DRA: DRANET as the API of the cluster tells it. Private to rdma.k8s: it may change with any release.

These checks need a snapshot of the cluster, and take part in a run only when it has one. Those about the driver as a
whole give one result for the cluster; what is to be right on each node is judged on each node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Callable, Optional

from .. import nics as joined
from ..cluster_snapshot import Claim, ClusterSnapshot, DriverAccount, PrepareEvent, SliceDevice
from ..errors import RdmaError
from ..finding import CRITICAL, ERROR, WARNING, Detail
from ..oke import driver_rights, shapes
from ..oke.constants import DRIVER
from ..oke.installed import MOVE_IB, PROFILE_PROVIDER, RANGE_ATTRIBUTE, WEBHOOK, Program
from ..stamps import seconds_between
from .context import Fleet, Node
from .reads import needs, unread, why_unread
from .registry import (
    Outcome,
    bad,
    cluster_check,
    failed,
    fleet_check,
    listed,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
)

NO_DRIVER = "No DaemonSet of DRANET is in the cluster; see RDMA-DRA-001."
OLDEST_KUBERNETES = (1, 34)
DRA_GROUP, DRA_VERSION = "resource.k8s.io", "v1"
OUR_WEBHOOK = "rdma-k8s"
FAILING_AFTER = 300
"""Seconds after which a claim that cannot be prepared counts: before that it may heal by itself."""
FAILING_WITHIN = 600
"""An event whose last occurrence is older than these seconds tells of a claim that is prepared, or gone."""
STUCK_AFTER = 600
"""Seconds after which a claim that is being deleted counts as stuck."""
ROLL_STATE = re.compile(r"rdma[-.]k8s/roll-state")
ROLL_ENDED = ("", "Done")

_SELECTS = re.compile(
    r"""device\.driver\s*==\s*["']%s["']|["']%s["']\s*==\s*device\.driver""" % ((re.escape(DRIVER),) * 2)
)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


def with_driver(check: Callable[[Fleet], Outcome]) -> Callable[[Fleet], Outcome]:
    """Unknown where the DaemonSets are not known, skipped where DRANET is none of them."""

    def guarded(fleet: Fleet) -> Outcome:
        missing = no_driver(fleet)
        return missing if missing is not None else check(fleet)

    guarded.__doc__ = check.__doc__
    return guarded


def no_driver(fleet: Fleet) -> Optional[Outcome]:
    """Why nothing can be said about DRANET."""
    missing = unread(fleet.installed.cluster, "daemonsets")
    return missing or (None if fleet.installed.dranet else skipped(NO_DRIVER))


def _programs(fleet: Fleet) -> tuple[Program, ...]:
    """DRANET, and the provider that it asks."""
    installed = fleet.installed
    return (*installed.dranet, *installed.provider) if installed.webhook else installed.dranet


@cluster_check(
    "RDMA-DRA-001",
    "DRANET is ready and of one version on every RDMA node",
    CRITICAL,
    "Look at the pods that are missing or not ready: 'kubectl describe' tells why, their log what they refuse.",
    evidence=("daemonsets.apps", "pods"),
)
def running(fleet: Fleet) -> Outcome:
    """F97, F115: desired = ready = updated, and a pod on each node of the run that has RDMA NICs."""
    missing = no_driver(fleet)
    if missing is not None and missing.status != "skip":
        return missing
    if missing is not None:
        return failed(
            "No DaemonSet of DRANET is in the cluster.", expected="a DaemonSet of DRANET", observed="none"
        )
    details = [detail for found in _programs(fleet) for detail in _counted(found)]
    asked = [found.settings.last("webhook-url") for found in fleet.installed.dranet]
    if fleet.installed.webhook and not fleet.installed.provider and any(OUR_WEBHOOK in url for url in asked):
        details.append(bad("provider", "DRANET asks it, and it is not in the cluster", "a DaemonSet", "none"))
    return rolled_up([*details, *_on_nodes(fleet)], "DRANET is ready on all its nodes.", "")


def _counted(found: Program) -> list[Detail]:
    """The numbers of a DaemonSet's status."""
    entry = found.daemonset
    if entry.observed_generation < entry.generation:
        return [unclear(found.name, "its newest change was not looked at yet")]
    details = []
    if not entry.desired:
        details.append(bad(found.name, "is wanted on no node", "the RDMA nodes", "0"))
    for what, number in (("ready", entry.ready), ("of the newest template", entry.updated)):
        if number < entry.desired:
            told = "%d of %d pods are %s" % (number, entry.desired, what)
            details.append(
                bad(found.name, told + _late(found, what == "ready"), str(entry.desired), str(number))
            )
    return details or [ok(found.name)]


def _late(found: Program, ready: bool) -> str:
    """The nodes of the pods that are not ready, or not of the template of most."""
    if ready:
        names = [node for node, pod in found.pods.items() if node and not pod.ready]
        return " (not on %s)" % listed(sorted(names)) if names else ""
    names = [node for node, pod in found.pods.items() if node and pod.args is not None]
    return " (other arguments on %s)" % listed(sorted(names)) if names else ""


def _on_nodes(fleet: Fleet) -> list[Detail]:
    """One detail for each node of the run that has RDMA NICs."""
    programs = fleet.installed.dranet
    if any(found.daemonset.pods is None for found in programs):
        return [unclear("pods", "the pods of DRANET could not be read")]
    details = []
    for node in fleet.nodes:
        if not node.nics:
            continue
        entry = fleet.cluster_nodes[node.name]
        if entry is None:
            details.append(unclear(node.name, fleet.why_no_cluster_node(node)))
        elif any(entry.name in found.pods for found in programs):
            details.append(ok(node.name))
        else:
            details.append(bad(node.name, "no pod of DRANET is on it", "a pod", "none"))
    return details


@cluster_check(
    "RDMA-DRA-002",
    "DRANET is updated on request while a roll goes on",
    ERROR,
    "Set 'updateStrategy.type: OnDelete': a rolling update restarts the driver on nodes that are not drained.",
    evidence=("daemonsets.apps", "nodes"),
)
@with_driver
def strategy(fleet: Fleet) -> Outcome:
    """A definition of this project: a change of the range drains a node before its driver is restarted."""
    rolling = [found for found in _programs(fleet) if found.daemonset.strategy != "OnDelete"]
    if not rolling:
        return passed("OnDelete.")
    missing = unread(fleet.installed.cluster, "nodes")
    if missing is not None:
        return missing
    rolled = [
        "%s (%s)" % (node.name, state)
        for node in fleet.installed.cluster.nodes or ()
        for key, state in node.annotations.items()
        if ROLL_STATE.fullmatch(key) and state not in ROLL_ENDED
    ]
    names = listed([found.name for found in rolling])
    if not rolled:
        return passed("%s: %s; no roll goes on." % (names, rolling[0].daemonset.strategy))
    return failed(
        "%s: %s, while a roll goes on: %s." % (names, rolling[0].daemonset.strategy, listed(rolled)),
        expected="OnDelete",
        observed=rolling[0].daemonset.strategy,
    )


@cluster_check(
    "RDMA-DRA-003",
    "The options of the provider can be read",
    ERROR,
    "Write one '--cloud-provider-options=oke.rdma-child-ipv4-cidr=RANGE': the program stops at its start otherwise.",
    evidence=("daemonsets.apps",),
)
@with_driver
def option_form(fleet: Fleet) -> Outcome:
    """F92-F95: of DRANET and of the provider behind its webhook; each as the program itself reads them."""
    details = []
    for found in _programs(fleet):
        read = found.settings.child_range()
        if isinstance(read, RdmaError):
            details.append(bad(found.name, read.message.rstrip("."), read.hint, read.code))
        else:
            details.append(ok(found.name))
    return rolled_up(details, "Read by %s." % listed([found.name for found in _programs(fleet)]), "")


@cluster_check(
    "RDMA-DRA-004",
    "Profiles are resolved",
    ERROR,
    "Set '--profile-provider=cloud', or 'webhook' with the provider: with 'none' claims carry addresses of their own.",
    evidence=("daemonsets.apps",),
)
@with_driver
def profiles(fleet: Fleet) -> Outcome:
    """F87, F105: 'none' drops the profile without a word, and a NIC of the type Passthrough is really moved."""
    details = []
    for found in fleet.installed.dranet:
        value = found.settings.profile_provider
        if value in ("cloud", WEBHOOK):
            details.append(ok(found.name))
        else:
            told = "--%s is %s, so profiles and the guard of native InfiniBand do not run" % (
                PROFILE_PROVIDER,
                value,
            )
            details.append(bad(found.name, told, "cloud or webhook", value))
    return rolled_up(details, "Profiles are resolved by: %s." % listed(_resolvers(fleet)), "")


def _resolvers(fleet: Fleet) -> list[str]:
    return sorted({found.settings.profile_provider for found in fleet.installed.dranet})


@cluster_check(
    "RDMA-DRA-005",
    "Native InfiniBand stays on the node",
    CRITICAL,
    "Start DRANET with '--move-ib-interfaces=false' (chart: args.moveIBInterfaces).",
    evidence=("daemonsets.apps", "/sys/class/infiniband"),
)
@with_driver
def native_infiniband(fleet: Fleet) -> Outcome:
    """F82, F84, F103: with the default nothing is published for a native device that has an interface."""
    native = [node.name for node in fleet.nodes if node.fabric == shapes.INFINIBAND]
    if not native:
        return skipped("No node of this run has native InfiniBand.")
    details = []
    for found in fleet.installed.dranet:
        if found.settings.moves_infiniband:
            told = "--%s is on, and %s have native InfiniBand" % (MOVE_IB, listed(native))
            details.append(bad(found.name, told, "false", found.settings.last(MOVE_IB, "true (the default)")))
        else:
            details.append(ok(found.name))
    return rolled_up(details, "--%s is off." % MOVE_IB, "")


@cluster_check(
    "RDMA-DRA-006",
    "The cluster has claims as DRANET uses them",
    CRITICAL,
    "Take Kubernetes 1.34 or newer, where resource.k8s.io/v1 is on.",
    evidence=("/apis", "nodes"),
)
def kubernetes(fleet: Fleet) -> Outcome:
    """F99, F120: resource.k8s.io/v1 is served, and the kubelet of each node is not older than 1.34."""
    cluster = fleet.installed.cluster
    details = [_served(cluster)]
    if cluster.nodes is None:
        details.append(unclear("nodes", why_unread(cluster, "nodes")))
    old: dict[str, list[str]] = {}
    for node in cluster.nodes or ():
        old.setdefault(node.kubelet, []).append(node.name)
    for version, names in sorted(old.items()):
        match = _VERSION.match(version)
        if match is None:
            details.append(unclear("kubelet", "its version %r on %s is not known" % (version, listed(names))))
        elif (int(match.group(1)), int(match.group(2))) < OLDEST_KUBERNETES:
            details.append(bad("kubelet %s" % version, "on %s" % listed(names), "1.34 or newer", version))
        else:
            details.append(ok("kubelet %s" % version))
    return rolled_up(
        details, "%s/%s is served; kubelets: %s." % (DRA_GROUP, DRA_VERSION, listed(sorted(old))), ""
    )


def _served(cluster: ClusterSnapshot) -> Detail:
    subject, wanted = DRA_GROUP, "%s/%s" % (DRA_GROUP, DRA_VERSION)
    if cluster.server.served is None:
        if any(cluster.slices or ()):
            return ok(subject)
        return unclear(subject, "it is not known what the API server serves")
    versions = sorted(
        {entry.split("/")[1] for entry in cluster.server.served if entry.startswith(DRA_GROUP + "/")}
    )
    if DRA_VERSION in versions:
        return ok(subject)
    return bad(
        subject, "served is %s" % (listed(versions) or "no version"), wanted, listed(versions) or "none"
    )


@cluster_check(
    "RDMA-DRA-007",
    "A device class selects the devices of DRANET",
    ERROR,
    "Make one with the module device_class; a claim names a class.",
    evidence=("deviceclasses.resource.k8s.io",),
)
@needs("device_classes")
def device_class(fleet: Fleet) -> Outcome:
    """F99: the driver of the devices is dra.net. Classes that claims and templates name must exist, too."""
    cluster = fleet.installed.cluster
    known = {entry.name for entry in cluster.device_classes or ()}
    chosen = [
        entry.name
        for entry in cluster.device_classes or ()
        if any(_SELECTS.search(text) for text in entry.selectors)
    ]
    if not chosen:
        return failed(
            "None of the %d device classes selects devices of %s." % (len(known), DRIVER),
            expected='device.driver == "%s"' % DRIVER,
            observed=listed(sorted(known)) or "none",
        )
    wanted: dict[str, list[str]] = {}
    for kind, objects in (("template", cluster.claim_templates or ()), ("claim", cluster.claims or ())):
        for entry in objects:
            for request in entry.requests:
                if request.device_class and request.device_class not in known:
                    named = "%s %s/%s" % (kind, entry.namespace, entry.name)
                    wanted.setdefault(request.device_class, []).append(named)
    details = [
        bad(
            name,
            "the class does not exist, and is named by %s" % listed(list(dict.fromkeys(users))),
            "a class",
            "none",
        )
        for name, users in sorted(wanted.items())
    ]
    return rolled_up([*details, *[ok(name) for name in chosen]], "Selected by: %s." % listed(chosen), "")


@cluster_check(
    "RDMA-DRA-008",
    "The slices of every node are there and complete",
    ERROR,
    "Look at the log of the driver pod of the node; when it is ready, restart it.",
    evidence=("resourceslices.resource.k8s.io",),
)
@with_driver
@needs("slices")
def slices(fleet: Fleet) -> Outcome:
    """F99: one pool for each node; all slices of its newest generation are there."""
    if any(found.daemonset.pods is None for found in fleet.installed.dranet):
        return unknown(
            "The pods of DRANET could not be read, so it is not known which nodes have slices to publish."
        )
    nodes = {name for found in fleet.installed.dranet for name in found.pods if name}
    details = []
    for name in sorted(nodes):
        held = fleet.installed.slices.get(name, [])
        if not held:
            details.append(bad(name, "has a pod of DRANET and no slice", "a slice", "none"))
            continue
        pools = {entry.pool: entry.slices for entry in held}
        short = [
            "pool %s has %d of %d slices" % (pool, len([1 for entry in held if entry.pool == pool]), count)
            for pool, count in pools.items()
            if len([1 for entry in held if entry.pool == pool]) != count
        ]
        details.append(bad(name, "; ".join(short), "all slices", "some") if short else ok(name))
    return rolled_up(details, "%d nodes have published their devices.", "No pod of DRANET is on any node.")


def published(check: Callable[[Node, list[SliceDevice]], Outcome], fleet: Fleet) -> dict[str, Outcome]:
    """A judgement of what each node publishes; unknown where that is not known."""
    missing = no_driver(fleet) or unread(fleet.installed.cluster, "slices")
    outcomes = {}
    for node in fleet.nodes:
        entry = fleet.cluster_nodes[node.name]
        if missing is not None:
            outcomes[node.name] = missing
        elif entry is None:
            outcomes[node.name] = unknown(fleet.why_no_cluster_node(node))
        else:
            outcomes[node.name] = check(node, fleet.installed.devices(entry.name))
    return outcomes


def device_of(nic: joined.Nic, devices: Iterable[SliceDevice]) -> Optional[SliceDevice]:
    """The device of a NIC: by its PCI address, else by its RDMA device, else by its interface (F100, F101)."""
    wanted = (
        ("pciAddress", nic.pci),
        ("rdmaDevice", nic.device.name if nic.device is not None else ""),
        ("ifName", nic.link.name if nic.link is not None else ""),
    )
    held = list(devices)
    for name, value in wanted:
        for device in held if value else ():
            if device.attributes.get("%s/%s" % (DRIVER, name)) == value:
                return device
    return None


@fleet_check(
    "RDMA-DRA-009",
    "Every RDMA NIC is offered with its child range",
    ERROR,
    "A driver without the profile oke-rdma offers a NIC that no claim can use as told: see the role oke_dranet.",
    needs=("links",),
    evidence=("resourceslices.resource.k8s.io",),
    cluster=True,
)
def offered(fleet: Fleet) -> dict[str, Outcome]:
    """F1, F70: who resolves the profile publishes the range on every device of an IPv4 fabric, and nobody else does."""
    return published(_offered_on, fleet)


def _offered_on(node: Node, devices: list[SliceDevice]) -> Outcome:
    if not node.has_ipv4_children:
        return skipped("The fabric is %s: no range is published." % node.fabric)
    if node.metadata.fabric is None:
        return skipped("The metadata has no fabric data, without which no range is published.")
    details = []
    for nic in node.ethernet_nics:
        device = device_of(nic, devices)
        if device is None:
            details.append(bad(nic.name, "is in no slice", "a device", "none"))
        elif not device.attributes.get(RANGE_ATTRIBUTE):
            details.append(bad(nic.name, "its device names no child range", RANGE_ATTRIBUTE, "absent"))
        else:
            details.append(ok(nic.name))
    return rolled_up(
        details, "%d NICs are offered with a range.", "No Ethernet RDMA NIC was found on this node."
    )


@fleet_check(
    "RDMA-DRA-010",
    "Every RDMA NIC is offered as one with RDMA",
    ERROR,
    "Restart the driver pod of the node: it looks for RDMA devices when a NIC appears, and they may have come later.",
    needs=("devices",),
    evidence=("resourceslices.resource.k8s.io",),
    cluster=True,
)
def with_rdma(fleet: Fleet) -> dict[str, Outcome]:
    """F101, DEV-04: NICs were published as if they had no RDMA after a driver was installed."""
    return published(_with_rdma_on, fleet)


def _with_rdma_on(node: Node, devices: list[SliceDevice]) -> Outcome:
    details = []
    for nic in node.nics:
        device = device_of(nic, devices)
        if device is None:
            details.append(bad(nic.name, "is in no slice", "a device", "none"))
        elif device.attributes.get(DRIVER + "/rdma") is not True:
            details.append(bad(nic.name, "its device says that it has no RDMA", "true", "false"))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs are offered with RDMA.", "The node has no RDMA NIC.")


@cluster_check(
    "RDMA-DRA-011",
    "No claim fails for longer than five minutes",
    ERROR,
    "The message is that of the driver; look its cause up in the checks of the node, areas OCA, IMDS and RANGE.",
    evidence=("events",),
)
@needs("prepare_events")
def failing(fleet: Fleet) -> Outcome:
    """F44, F97: a young failure may heal by itself, as that of a NIC without its address yet."""
    cluster = fleet.installed.cluster
    details = [
        found for found in [_failing(event, cluster) for event in cluster.prepare_events or ()] if found
    ]
    if not details:
        return passed("No claim fails.")
    return rolled_up(details, "%d failures, none older than five minutes.", "")


def _failing(event: PrepareEvent, cluster: ClusterSnapshot) -> Optional[Detail]:
    """What an event says about now; ``None`` when it is over."""
    subject = "%s/%s" % (event.namespace, event.pod)
    if cluster.claims is not None and not any(
        claim.namespace == event.namespace and consumer.name == event.pod
        for claim in cluster.claims
        for consumer in claim.reserved_for
    ):
        return None  # the pod is gone
    since = seconds_between(event.first, cluster.collected_at)
    ago = seconds_between(event.last, cluster.collected_at)
    if since is None or ago is None:
        return unclear(subject, "it is not known since when: %s" % event.message)
    if ago > FAILING_WITHIN:
        return None
    if since <= FAILING_AFTER:
        return ok(subject)
    told = "on %s for %d minutes: %s" % (event.node or "a node", since // 60, event.message.rstrip("."))
    return bad(subject, told, "prepared", "%d times" % event.count)


@cluster_check(
    "RDMA-DRA-012",
    "The pods of the driver are looked after",
    WARNING,
    "Set a liveness probe, a priority class and requests of resources; the chart has no liveness probe.",
    evidence=("daemonsets.apps",),
)
@with_driver
def template(fleet: Fleet) -> Outcome:
    """F115: without a priority class a full node evicts the driver; without a probe a driver that hangs stays."""
    details = []
    for found in _programs(fleet):
        lacks = [
            word
            for word, there in (
                ("liveness probe", found.container.liveness),
                ("priority class", bool(found.daemonset.priority_class)),
                ("requests of resources", bool(found.container.requests)),
            )
            if not there
        ]
        details.append(
            bad(found.name, "has no %s" % ", no ".join(lacks), "all three", "not " + ", ".join(lacks))
            if lacks
            else ok(found.name)
        )
    return rolled_up(
        details,
        "%s: all three are set." % listed([found.name for found in _programs(fleet)]),
        "",
        as_status="warn",
    )


@cluster_check(
    "RDMA-DRA-013",
    "The account of DRANET has the rights that it needs",
    ERROR,
    "Bind a ClusterRole with these verbs to the service account: the chart and the role oke_dranet make one.",
    evidence=("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"),
)
@with_driver
@needs("driver_accounts")
def rights(fleet: Fleet) -> Outcome:
    """F119: by ClusterRoles, since nodes and slices have no namespace and claims are in any."""
    cluster = fleet.installed.cluster
    accounts = cluster.driver_accounts or ()
    known = {(entry.namespace, entry.name): entry for entry in accounts}
    details = []
    for found in fleet.installed.dranet:
        wanted = (found.daemonset.namespace, found.daemonset.service_account or "default")
        account = known.pop(wanted, None)
        if account is not None:
            details += _rights_of(account, cluster.server.version)
    return rolled_up(
        details,
        "%s: all rights are there." % listed(_accounts(accounts)),
        "No account is known.",
    )


def _accounts(accounts: Iterable[DriverAccount]) -> list[str]:
    return ["%s/%s" % (entry.namespace, entry.name) for entry in accounts]


def _rights_of(account: DriverAccount, version: str) -> list[Detail]:
    """One detail for each resource."""
    match = _VERSION.match(version)
    server = (int(match.group(1)), int(match.group(2))) if match else None
    bound = "its roles: %s" % (listed(account.roles) or "none")
    details = []
    for right in driver_rights.needed():
        verbs = driver_rights.lacking(right, account.rules)
        on = " for the driver %s" % right.name if right.name else ""
        granular = right.resource == driver_rights.GRANULAR
        if not verbs:
            details.append(ok(right.subject))
        elif granular and server is None:
            told = (
                "may not %s%s, which Kubernetes 1.36 asks for, and the version of the API server is not known"
            )
            details.append(unclear(right.subject, told % (", ".join(verbs), on)))
        elif not granular or server is None or server >= driver_rights.GRANULAR_FROM:
            told = "%s/%s may not %s%s (%s)" % (account.namespace, account.name, ", ".join(verbs), on, bound)
            details.append(bad(right.subject, told, ", ".join(right.verbs), "not " + ", ".join(verbs)))
    return details


@cluster_check(
    "RDMA-DRA-015",
    "All nodes run one image of the driver",
    WARNING,
    "Name the image by its digest, and delete the pods with another one, drained, one node after the other.",
    evidence=("pods",),
)
@with_driver
def one_image(fleet: Fleet) -> Outcome:
    """F2: the defaults differ between versions, so two versions can mean two ranges."""
    details = []
    for found in _programs(fleet):
        if found.daemonset.pods is None:
            details.append(unclear(found.name, "its pods could not be read"))
            continue
        digests: dict[str, list[str]] = {}
        for node, pod in sorted(found.pods.items()):
            if pod.digest:
                digests.setdefault(pod.digest, []).append(node)
        usual = max(digests, key=lambda digest: (len(digests[digest]), digest), default="")
        for digest, nodes in digests.items():
            if digest != usual:
                told = "%s run %s, the others %s" % (listed(nodes), digest[:19], usual[:19])
                details.append(bad(found.name, told, usual, digest))
        if digests and set(digests) == {usual}:
            details.append(ok(found.name))
    return rolled_up(
        details,
        "One image each: %s." % listed([found.name for found in _programs(fleet)]),
        "No pod tells which image it runs.",
        as_status="warn",
    )


@cluster_check(
    "RDMA-DRA-016",
    "No claim is stuck in deletion",
    ERROR,
    "Bring back the driver pod of the node: it must release the devices before the claim can go.",
    evidence=("resourceclaims.resource.k8s.io",),
)
@needs("claims")
def stuck(fleet: Fleet) -> Outcome:
    """DEV-24: a claim waits for its driver; where that is away, it waits for ever."""
    cluster = fleet.installed.cluster
    own = [claim for claim in cluster.claims or () if _is_ours(claim)]
    details = []
    for claim in own:
        age = seconds_between(claim.deleted, cluster.collected_at) if claim.deleted else None
        subject = "%s/%s" % (claim.namespace, claim.name)
        if claim.deleted and age is None:
            details.append(unclear(subject, "it is not known since when it is being deleted"))
        elif age is not None and age > STUCK_AFTER:
            on = " on %s" % claim.node if claim.node else ""
            told = "is being deleted for %d minutes%s" % (age // 60, on)
            details.append(bad(subject, told, "gone", claim.deleted))
        else:
            details.append(ok(subject))
    if not details:
        return passed("There is no claim with devices of DRANET.")
    return rolled_up(details, "%d claims.", "")


def _is_ours(claim: Claim) -> bool:
    """Whether a claim has, or wants by its configuration, devices of DRANET; of one without either nobody knows."""
    drivers = {device.driver for device in claim.devices} | {config.driver for config in claim.config}
    return DRIVER in drivers or not drivers
