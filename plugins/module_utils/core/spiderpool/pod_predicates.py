# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The predicates P1 to P14 on a running pod: fourteen answers with their reasons. Private to rdma.k8s.

It may change with any release. The rules stand in :mod:`.pod_network` and :mod:`.pod_rdma`; here each of their codes
gets its predicate, and what was not read makes its predicate ``unknown`` unless something that was read is wrong
already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from ..finding import ERROR, FAIL, PASS, SKIP, UNKNOWN, WARN
from ..kube.objects import entries, mapping, name, text
from ..net import Address, Prefix, find_address, find_prefix
from . import pod_network, pod_rdma
from .issue import Issue, error, ordered, whole
from .names import SHARED
from .pod_evidence import Evidence

TITLES = {
    "P1": "The pod has one interface for each of its networks, and the first one",
    "P2": "Each interface is up and has one address, in its pool's subnet and with the length of it",
    "P3": "Traffic from each address has one rule and a table of its own",
    "P4": "The table of each interface leads to the gateway of its pool",
    "P5": "The default route of the pod is on its first interface",
    "P6": "The pod sees the RDMA devices of its interfaces, active, and no others",
    "P7": "Each interface has a GID of type RoCE v2 with its address",
    "P8": "No device has a GUID of zeros",
    "P9": "The container has the device file of each device",
    "P10": "The container may lock memory",
    "P11": "No MTU is above that of the physical function, and both ends use the same",
    "P12": "InfiniBand ports are active, with an address by a subnet manager",
    "P13": "The library of the image finds the devices that the kernel has",
    "P14": "The pod reaches pods on other nodes, rail by rail",
}
"""The predicates by number (S126 to S144)."""

_CODES = {
    "P1": "nic-count-mismatch",
    "P2": "address-missing address-several prefix-mismatch broadcast-mismatch nic-down",
    "P3": "rule-missing rule-duplicate table-shared rule-priority-duplicate",
    "P4": "table-default-mismatch",
    "P5": "main-default-mismatch",
    "P6": "rdma-foreign-netdev rdma-not-ready rdma-device-count rdma-count-mismatch",
    "P7": "gid-missing",
    "P8": "guid-unset",
    "P9": "uverbs-missing uverbs-foreign",
    "P10": "memlock-limited",
    "P11": "mtu-exceeds-pf active-mtu-differs",
    "P12": "ib-not-active ib-lid-invalid ib-sm-missing",
    "P13": "verbs-missing",
}
OF_CODE = {code: number for number, codes in _CODES.items() for code in codes.split()}
"""The predicate that tells a code."""

HINTS = {
    "P1": "Compare the networks of the pod with its annotations; look at the events of the pod and the log of Multus.",
    "P2": "Compare the subnet of the pool with what is meant, and look at the SpiderEndpoint of the pod.",
    "P3": "Set tunePodRoutes of the SpiderCoordinator to true, and make the pod anew.",
    "P4": "Give the pool its gateway, and make the pod anew.",
    "P5": "Look at the annotation for the default route interface, and at the mode of the SpiderCoordinator.",
    "P6": "Set rdmaIsolation of the network, with the nodes in exclusive mode.",
    "P7": "Look at the address of the interface; the driver makes the GID when the address is set.",
    "P8": "Let the operator bind the virtual function anew; it sets the GUIDs.",
    "P9": "Delete the pod so that a new one gets its files; look at the SR-IOV device plugin on the node.",
    "P10": "Add the capability IPC_LOCK to the container.",
    "P11": "Raise the MTU of the physical function, or lower that of the network; see RDMA-SRIOV-012.",
    "P12": "Look at the subnet manager: virtualisation must be on. Set linkState of the network to enable.",
    "P13": "Use an image with the rdma-core or OFED libraries that fit the driver of the host.",
    "P14": "Prove the rails with rdma.k8s.pod_fabric_probe.",
}


class Predicate(NamedTuple):
    """An answer. ``issues`` are what is wrong, with stable codes; ``message`` is the sentence for people."""

    number: str
    status: str
    message: str
    issues: tuple[Issue, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "predicate": self.number,
            "title": TITLES[self.number],
            "status": self.status,
            "message": self.message,
            "hint": HINTS[self.number] if self.status in (FAIL, WARN) else "",
            "issues": [{**issue.plain, "message": issue.message} for issue in self.issues],
        }


@dataclass(frozen=True)
class Around:
    """What the cluster tells of a pod; ``None`` and a missing key: not known, with the reason in ``unread``.

    :param nics: how many further interfaces it was given.
    :param mode: the RDMA namespace mode of its node; empty: as the pod itself tells.
    :param pools: subnet and gateway of each interface's pool.
    :param pf_mtu: MTU of the physical functions of its node by PCI address.
    """

    nics: Optional[int] = None
    mode: str = ""
    pools: Mapping[str, tuple[Prefix, Optional[Address]]] = field(default_factory=dict)
    pf_mtu: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def pools_of(
    evidence: Evidence, pools: Iterable[Mapping[str, Any]]
) -> dict[str, tuple[Prefix, Optional[Address]]]:
    """Subnet and gateway of the pool that each interface's address is from; the narrowest that holds it."""
    known = []
    for pool in pools:
        spec = mapping(pool, "spec")
        subnet = find_prefix(spec.get("subnet"))
        if subnet is not None:
            known.append((subnet.masked(), find_address(spec.get("gateway")), name(pool)))
    found = {}
    for entry in evidence.interfaces:
        if entry.address is None:
            continue
        own = Address(entry.address.version, entry.address.value)
        around = [pool for pool in known if pool[0].version == own.version and pool[0].contains(own)]
        if around:
            subnet, gateway, _name = max(around, key=_narrow)
            found[entry.name] = (subnet, gateway)
    return found


def _narrow(pool: tuple[Prefix, Optional[Address], str]) -> tuple[int, str]:
    return pool[0].length, pool[2]


def pf_mtus(state: Mapping[str, Any]) -> dict[str, int]:
    """MTU by PCI address of the interfaces in a SriovNetworkNodeState (S113)."""
    found = {}
    for _at, entry in entries(mapping(state, "status").get("interfaces")):
        mtu = whole(entry.get("mtu"))
        if mtu is not None:
            found[text(entry.get("pciAddress"))] = mtu
    return found


def judge(evidence: Evidence, around: Around) -> list[Predicate]:
    """The answers P1 to P14; P14 is ``skip`` here, since looking at one pod does not try it."""
    mode = around.mode or evidence.mode
    network = evidence.network(around.pools)
    expected = len(evidence.interfaces) if around.nics is None else around.nics
    issues = list(pod_network.judge(network, expected, mode != SHARED))
    issues += _interfaces(evidence)
    verdict = pod_rdma.judge(evidence.rdma(around.pf_mtu), mode != SHARED)
    issues += verdict.issues
    by_number: dict[str, list[Issue]] = {number: [] for number in TITLES}
    for issue in ordered(issues):
        by_number[OF_CODE[issue.code]].append(issue)
    return [
        _answer(number, by_number[number], _not_told(number, evidence, around, mode), evidence, mode)
        for number in TITLES
    ]


def _interfaces(evidence: Evidence) -> Iterator[Issue]:
    """An interface is up and has one address of a version (S127)."""
    for entry in evidence.interfaces:
        if not entry.up:
            yield error("nic-down", entry.name, "the interface is down")
        for version in (4, 6):
            held = [str(prefix) for prefix, _broadcast in entry.addresses if prefix.version == version]
            if len(held) > 1:
                message = "the interface has %d addresses of IPv%d: %s" % (
                    len(held),
                    version,
                    ", ".join(held),
                )
                yield error("address-several", entry.name, message)


def _answer(number: str, issues: Sequence[Issue], unknown: str, evidence: Evidence, mode: str) -> Predicate:
    idle = _not_for(number, evidence, mode)
    if idle:
        return Predicate(number, SKIP, idle)
    if number in _NOTHING_READ and unknown and any(part in evidence.unread for part in _NOTHING_READ[number]):
        return Predicate(
            number, UNKNOWN, _sentence([unknown])
        )  # an issue would only tell that nothing was read
    wrong = [issue for issue in issues if issue.severity == ERROR]
    if wrong:
        return Predicate(number, FAIL, _told(wrong), tuple(issues))
    if unknown:
        return Predicate(number, UNKNOWN, _sentence([unknown]), tuple(issues))
    if issues:
        return Predicate(number, WARN, _told(issues), tuple(issues))
    return Predicate(number, PASS, _good(number, evidence, mode))


_NOTHING_READ = {
    "P1": ("interfaces",),
    "P2": ("interfaces", "addresses"),
    "P3": ("interfaces", "addresses", "rules"),
    "P4": ("interfaces", "addresses", "rules", "routes"),
    "P5": ("main",),
    "P6": ("interfaces", "devices"),
    "P7": ("interfaces", "addresses", "devices"),
    "P8": ("devices",),
    "P9": ("devices", "files"),
    "P10": ("rights",),
    "P11": ("interfaces",),
    "P12": ("devices",),
    "P13": ("devices", "library"),
}
"""Parts without which a predicate cannot be told at all."""


def _not_told(number: str, evidence: Evidence, around: Around, mode: str) -> str:
    """Why a predicate cannot be told; empty: it can."""
    for part in _NOTHING_READ.get(number, ()):
        if part in evidence.unread:
            return evidence.unread[part]
    names = [entry.name for entry in evidence.interfaces]
    if number == "P1" and around.nics is None:
        return around.unread.get("nics", "Nothing tells how many networks the pod has")
    if number in ("P2", "P4"):
        missing = [called for called in names if called not in around.pools]
        if missing:
            return "The pool of %s is not known: %s" % (
                ", ".join(missing),
                around.unread.get("pools", "no SpiderIPPool has the address"),
            )
    if number == "P5" and not evidence.main_device:
        return "The pod has no default route in its main table, or only one of IPv6"
    if number == "P6" and not mode:
        return "The namespace mode of RDMA is not told; in shared mode a pod sees the devices of others"
    if number in ("P8", "P9", "P12", "P13"):
        if not evidence.devices:
            return "The pod sees no RDMA device"
        if not _own(evidence, mode):
            return "Which of the devices is the pod's own is not known: in shared mode its GID tells, and there is none"
    if number == "P8":
        unset = [device["name"] for device in evidence.devices if not device["node_guid"]]
        return "The GUID of %s is not readable" % ", ".join(unset) if unset else ""
    return _unknown_mtu(evidence, around) if number == "P11" else ""


def _unknown_mtu(evidence: Evidence, around: Around) -> str:
    missing = [
        entry.name for entry in evidence.interfaces if entry.mtu is None or entry.pf not in around.pf_mtu
    ]
    if missing:
        reason = around.unread.get("pf_mtu", "the state of the node does not tell it")
        return "The MTU of the physical function of %s is not known: %s" % (", ".join(missing), reason)
    return ""


def _not_for(number: str, evidence: Evidence, mode: str) -> str:
    """Why a predicate does not apply; empty: it does."""
    if number == "P14":
        return "Traffic was not tried; the module pod_fabric_probe does."
    layers = {device["link_layer"] for device in evidence.devices}
    if number == "P6" and mode == SHARED:
        return "In shared mode a pod sees the RDMA devices of its whole node; P7 tells which are its own."
    if number == "P7" and layers == {"InfiniBand"}:
        return "On InfiniBand no GID stands for the address of an interface."
    if number == "P12" and evidence.devices and "InfiniBand" not in layers:
        return "The pod has no InfiniBand device."
    if (
        number in ("P2", "P3", "P4", "P7", "P11")
        and not evidence.interfaces
        and not evidence.unread.get("interfaces")
    ):
        return "The pod has no further interface; P1 tells whether it should."
    return ""


def _told(issues: Iterable[Issue]) -> str:
    return _sentence([_about(issue) for issue in issues])


def _about(issue: Issue) -> str:
    """The message behind its place, unless it names the place itself."""
    if issue.message.startswith(issue.at + " "):
        return issue.message
    return "%s: %s" % (issue.at, issue.message)


def _sentence(parts: Sequence[str], shown: int = 4) -> str:
    more = ["and %d more" % (len(parts) - shown)] if len(parts) > shown else []
    return "; ".join([*parts[:shown], *more]).rstrip(".") + "."


def _own(evidence: Evidence, mode: str) -> list[str]:
    """The devices that the answers are about."""
    return [device.name for device in pod_rdma.own(evidence.rdma(), mode != SHARED)]


def _good(number: str, evidence: Evidence, mode: str) -> str:
    if number == "P5":
        return "The default route is on %s." % evidence.main_device
    if number == "P10":
        return "Memory can be locked."
    if number in ("P6", "P8", "P9", "P12", "P13"):
        return "Devices: %s." % ", ".join(_own(evidence, mode))
    return "Interfaces: %s." % (", ".join([entry.name for entry in evidence.interfaces]) or "the first one")


# Several pods


def compared(all_evidence: Mapping[str, Evidence]) -> dict[str, list[Issue]]:
    """The pods whose MTU in use on a rail is not that of most pods there, with the issue (S141).

    :param all_evidence: by pod.
    """
    rails: dict[str, dict[str, int]] = {}
    for pod, evidence in all_evidence.items():
        for nic, device in pod_rdma.devices_by_nic(evidence.rdma()).items():
            if device.active_mtu is not None:
                rails.setdefault(nic, {})[pod] = device.active_mtu
    found: dict[str, list[Issue]] = {}
    for nic, held in sorted(rails.items()):
        counts = Counter(held.values())
        usual = max(counts, key=lambda value: (counts[value], value))
        for pod, mtu in held.items():
            if mtu != usual:
                message = "the MTU in use is %d, and %d on the same rail of other pods" % (mtu, usual)
                found.setdefault(pod, []).append(error("active-mtu-differs", nic, message))
    return found


def with_ends(answers: Sequence[Predicate], issues: Sequence[Issue], unknown: str) -> list[Predicate]:
    """The answers with what the comparison of pods adds to P11.

    :param unknown: why the MTU in use of this pod is not known; empty: it is, or there is no other pod.
    """
    found = []
    for answer in answers:
        if answer.number == "P11" and answer.status != SKIP:
            if issues:
                both = ordered([*answer.issues, *issues])
                answer = Predicate("P11", FAIL, _told(both), tuple(both))  # noqa: PLW2901
            elif unknown and answer.status == PASS:
                answer = Predicate("P11", UNKNOWN, _sentence([unknown]))  # noqa: PLW2901
        found.append(answer)
    return found


def with_traffic(answers: Sequence[Predicate], status: str, message: str) -> list[Predicate]:
    """The answers with that of P14, which a test of traffic gave."""
    return [Predicate("P14", status, message) if answer.number == "P14" else answer for answer in answers]


def nothing_read(reason: str) -> list[Predicate]:
    """The answers of a pod that could not be looked at."""
    return [Predicate(number, UNKNOWN, reason) for number in TITLES]


def worst(answers: Iterable[Predicate]) -> str:
    """The status of a pod: the worst of fail, warn, unknown; else ``pass``, or ``skip`` when nothing applied."""
    found = {answer.status for answer in answers}
    return next((status for status in (FAIL, WARN, UNKNOWN, PASS) if status in found), SKIP)
