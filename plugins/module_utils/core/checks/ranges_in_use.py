# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area RANGE: which child range the driver has, and whether two are alive. Private to rdma.k8s: it may change.

These checks need a snapshot of the cluster, and take part in a run only when it has one.
"""

from __future__ import annotations

from ..errors import RdmaError
from ..finding import CRITICAL, WARNING, Detail
from ..net import find_prefix
from ..oke.constants import ATTRIBUTE_DOMAIN, DEFAULT_CHILD_RANGE, DRIVER, MAX_LENGTH, MIN_LENGTH
from ..oke.installed import HINT, WEBHOOK
from ..oke.options import HINT as OKE_HINT
from .context import Fleet
from .dra import with_driver
from .reads import needs, why_unread
from .registry import (
    Outcome,
    bad,
    cluster_check,
    listed,
    ok,
    rolled_up,
    skipped,
    unclear,
)

MOST = 6
"""How many nodes are named for a range that should not be there."""

Ranges = dict[str, list[tuple[str, str]]]
"""Range to the nodes on which it is alive, each with where it was seen."""


@cluster_check(
    "RDMA-RANGE-015",
    "The child range is written down, not left to the driver's default",
    WARNING,
    "Set 'oke.rdma-child-ipv4-cidr' explicitly: the default was 10.240.0.0/15, 10.222.0.0/15 and 10.208.0.0/12.",
    evidence=("daemonsets.apps",),
)
@with_driver
def written_down(fleet: Fleet) -> Outcome:
    """F2, F94. The default of the provider of this collection is fixed; that of a driver depends on its version."""
    if fleet.installed.webhook and not fleet.installed.provider:
        return skipped("The profiles are those of a webhook that is not of this collection.")
    details = []
    for found in fleet.installed.range_source:
        if any(found.settings.options) or fleet.installed.webhook:
            details.append(ok(found.name))
        else:
            told = "no range is set, so the version of the driver decides"
            details.append(bad(found.name, told, "an option", "none"))
    known = listed(
        [str(found.settings.child_range() or DEFAULT_CHILD_RANGE) for found in fleet.installed.range_source]
    )
    return rolled_up(details, "%s." % known, "", as_status="warn")


@cluster_check(
    "RDMA-RANGE-016",
    "The options are those of the provider that is in use",
    CRITICAL,
    "Set '--cloud-provider-hint=OKE': another provider ignores the option, or the driver does not start.",
    evidence=("daemonsets.apps", "resourceslices.resource.k8s.io"),
)
@with_driver
def right_provider(fleet: Fleet) -> Outcome:
    """F95, F98: a hint that names another provider stops the driver; where there is none, discovery decides, and what
    it found shows in the attributes of the devices."""
    details = []
    for found in fleet.installed.range_source:
        hint = found.settings.hint
        read = found.settings.child_range()
        if isinstance(read, RdmaError) and read.code == "option_hint_mismatch":
            details.append(bad(found.name, "--%s is %s" % (HINT, hint), OKE_HINT, hint))
        elif hint in ("", OKE_HINT):
            details.append(ok(found.name))
        else:
            details.append(bad(found.name, "--%s is %s, so no range applies" % (HINT, hint), OKE_HINT, hint))
    if not fleet.installed.webhook:
        details += _discovered(fleet)
    good = "%s." % (WEBHOOK if fleet.installed.webhook else OKE_HINT)
    return rolled_up(details, good, "The provider is a webhook that is not of this collection.")


def _discovered(fleet: Fleet) -> list[Detail]:
    """Without a hint: the nodes on which no RDMA device has an attribute of the provider OKE."""
    if all(found.settings.hint for found in fleet.installed.range_source):
        return []
    if fleet.installed.cluster.slices is None:
        return [
            unclear(
                "slices",
                why_unread(fleet.installed.cluster, "slices"),
            )
        ]
    without = []
    for node in sorted(fleet.installed.slices):
        rdma = [
            entry for entry in fleet.installed.devices(node) if entry.attributes.get(DRIVER + "/rdma") is True
        ]
        if rdma and not any(name.startswith(ATTRIBUTE_DOMAIN) for entry in rdma for name in entry.attributes):
            without.append(node)
    told = "no device has an attribute of OKE, so discovery found another provider on %s" % listed(without)
    return [bad("discovery", told, OKE_HINT, "another")] if without else []


@cluster_check(
    "RDMA-RANGE-017",
    "One child range is alive on the nodes that take work",
    CRITICAL,
    "Finish the change of the range or roll it back, and keep nodes with the other range fenced until then.",
    evidence=("resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io", "pods", "nodes"),
)
@with_driver
@needs("nodes", "slices")
def one_alive(fleet: Fleet) -> Outcome:
    """F24: devices, options and children in two ranges do not reach each other. A fenced node takes no new claim."""
    cluster = fleet.installed.cluster
    groups: dict[str, Ranges] = {}
    networks = _networks(fleet)
    claims = _of_claims(fleet)
    for node in sorted(cluster.nodes or (), key=lambda entry: entry.name):
        network = networks.get(node.name) if len(set(networks.values())) > 1 else ""
        if network is None or fleet.installed.fence(node):
            continue
        found = {**claims.get(node.name, {}), **_of_driver(fleet, node.name)}
        for text, where in found.items():
            groups.setdefault(network, {}).setdefault(text, []).append((node.name, where))
    details = [detail for network, ranges in groups.items() for detail in _compared(network, ranges)]
    only = listed([text for ranges in groups.values() for text in ranges])
    return rolled_up(details, "%s, and no other range." % only, "No node that takes work names a range.")


def _compared(network: str, ranges: Ranges) -> list[Detail]:
    """One detail for each range of a network: only that of most nodes is right."""
    usual = max(ranges, key=lambda text: (len(ranges[text]), text), default="")
    details = []
    for text, held in sorted(ranges.items()):
        label = "%s %s" % (network, text) if network else text
        if text == usual:
            details.append(ok(label))
        else:
            names = listed(["%s (%s)" % entry for entry in held], MOST)
            told = "alive on %s, beside %s on %d nodes" % (names, usual, len(ranges[usual]))
            details.append(bad(label, told, usual, text))
    return details


def _networks(fleet: Fleet) -> dict[str, str]:
    """The RDMA network of each node of the cluster that is a node of the run."""
    found = {}
    for node in fleet.nodes:
        entry = fleet.cluster_nodes[node.name]
        if entry is not None and node.has_ipv4_children:
            found[entry.name] = fleet.network_names[node.name]
    return found


def _of_driver(fleet: Fleet, node: str) -> dict[str, str]:
    """The ranges of the devices and of the driver's option on a node, with where they were seen."""
    option = fleet.installed.optioned_range(node)
    found = {} if option is None else {str(option): "option of the driver"}
    return {**found, **dict.fromkeys(fleet.installed.published_ranges(node), "devices")}


def _of_claims(fleet: Fleet) -> dict[str, dict[str, str]]:
    """The ranges of the children of claims by node: a child has the length of its range (F13)."""
    found: dict[str, dict[str, str]] = {}
    for claim in fleet.installed.cluster.claims or ():
        for status in claim.status:
            for address in status.addresses if status.driver == DRIVER else ():
                prefix = find_prefix(address)
                if prefix is not None and prefix.version == 4 and MIN_LENGTH <= prefix.length <= MAX_LENGTH:
                    where = "child of claim %s/%s" % (claim.namespace, claim.name)
                    found.setdefault(status.pool, {})[str(prefix.masked())] = where
    return found
