# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The canary: one claim for one NIC, and a witness on its node. Private to rdma.k8s: it may change with any release.

The canary pod has the claim; its init container tells what the pod has under the name of the NIC. The witness is in the
network namespace of the host and tells whether the parent is still there. Both say it in their termination messages, so
nobody needs the right to read logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional

from ..cluster_snapshot import ClusterSnapshot
from ..errors import RdmaError
from ..kube.objects import entries, mapping, text
from ..net import Prefix, find_address
from ..roll.names import TAINT
from . import claims
from .claims import API_VERSION
from .constants import DRIVER, READY_ATTRIBUTE
from .dranet_objects import PART_OF

NAME = "rdma-k8s-canary"
WITNESS = "rdma-k8s-witness"
SELECTOR = "app.kubernetes.io/name in (%s, %s)" % (NAME, WITNESS)
"""Finds the pods and claims of all canaries."""
REQUEST = "nic"
CHILD, REFUSED = "child", "refused"
EXPECTATIONS = (CHILD, REFUSED)

PORT = 18515
"""TCP port of the canary that is to be reached, in its own network namespace."""
REACH_SECONDS = 30
"""For which a canary tries to reach the other one."""
NOT_REACHED = "no child reached another node: "
"""How notes begin that say why that was not tried."""
NO_IMAGE = "not proven by a claim: no proof_image is given"
ALONE = NOT_REACHED + "none was proven before it"
CHILDLESS = NOT_REACHED + "this driver makes none (proof_expect is refused)"

_ADDRESS = """\
import fcntl, json, socket, struct, sys, time

def address_of(name):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        return socket.inet_ntoa(fcntl.ioctl(asked, 0x8915, struct.pack("256s", name.encode()))[20:24])

def tell(found):
    with open("/dev/termination-log", "w") as message:
        message.write(json.dumps(found))

"""

LOOK = (
    _ADDRESS
    + """\
from rdma_k8s.host.link_dump import read_links
found = {}
for link in read_links():
    if link.name == sys.argv[1]:
        found = {"name": link.name, "kind": link.kind, "mac": link.mac, "mtu": link.mtu, "up": link.up}
        try:
            found["address"] = address_of(link.name)
        except OSError:
            pass
tell(found)
"""
)
"""Tells kind, MAC and IPv4 address of an interface of its network namespace."""

SERVE = (
    _ADDRESS
    + """\
with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[1].encode())
    except PermissionError:
        pass  # a kernel before 5.7; the address alone decides there
    server.bind((address_of(sys.argv[1]), int(sys.argv[2])))
    server.listen()
    server.settimeout(3600)
    while True:
        caller, address = server.accept()
        try:
            with caller:
                caller.sendall(json.dumps({"seen": address[0]}).encode() + b"\\n")
        except OSError:
            pass
"""
)
"""Answers who connects to the address of an interface, through that interface, with the address that it sees."""

REACH = (
    _ADDRESS
    + """\
own, end = address_of(sys.argv[1]), time.monotonic() + float(sys.argv[4])
found = {}
while "seen" not in found:
    try:
        with socket.create_connection((sys.argv[2], int(sys.argv[3])), 3, (own, 0)) as made:
            found = {"seen": json.loads(made.makefile().readline())["seen"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        found = {"error": str(error)}
        if time.monotonic() > end:
            break
        time.sleep(1)
tell(found)
"""
)
"""Connects from the address of an interface to :data:`SERVE`; tells the address that was seen there, or the error."""

_HOLD = "import time\ntime.sleep(3600)\n"


@dataclass(frozen=True)
class Target:
    """The NIC that the canary claims."""

    node: str
    nic: str
    mac: str = ""


@dataclass(frozen=True)
class Trial:
    """What is tried: the NIC, and how it is claimed.

    :param image: of this collection, for both pods.
    :param expect: ``child`` or ``refused``.
    :param suffix: of the names of its objects, so that several can be tried at once.
    :param peer: a NIC whose child is to be reached from the one of the target; ``None``: nobody is.
    :param serves: it is the one that is to be reached.
    """

    target: Target
    namespace: str
    device_class: str
    image: str
    pull_policy: str = "IfNotPresent"
    expect: str = CHILD
    suffix: str = ""
    peer: Optional[Target] = None
    serves: bool = False

    @property
    def other(self) -> Optional[Trial]:
        """The canary that is to be reached."""
        if self.peer is None:
            return None
        return replace(self, target=self.peer, suffix=self.suffix + "-peer", peer=None, serves=True)

    @property
    def name(self) -> str:
        """Name of the pod, and of its claim."""
        return NAME + self.suffix

    @property
    def witness(self) -> str:
        """Name of the pod that looks at the host."""
        return WITNESS + self.suffix


@dataclass(frozen=True)
class Seen:
    """What happened. ``None``: not told.

    :param child: the interface of the name of the NIC in the pod; empty: there is none.
    :param parent: the same on the host while the canary ran, or could not.
    :param refusal: the event with which the claim was refused.
    :param met: the child of the canary that is to be reached; ``met_claimed``: it got its NIC; ``met_refusal``: as
        above.
    :param reached: what came of reaching it.
    """

    running: bool = False
    child: Optional[Mapping[str, Any]] = None
    parent: Optional[Mapping[str, Any]] = None
    refusal: str = ""
    met: Optional[Mapping[str, Any]] = None
    met_claimed: bool = False
    met_refusal: str = ""
    reached: Optional[Mapping[str, Any]] = None


def choose(snapshot: ClusterSnapshot, nodes: Sequence[str] = (), nic: str = "", ready: bool = True) -> Target:
    """A NIC that nobody has; the first one of those that fit what is given.

    :param nodes: where it may be; empty: anywhere.
    :param ready: only a NIC that the provider can serve now.
    :raises RdmaError: ``canary_no_nic``
    """
    for found in _free(snapshot, nodes, nic, ready):
        return found
    raise RdmaError(
        "canary_no_nic",
        "There is no free RDMA NIC%s%s that could be claimed for a proof."
        % (" " + nic if nic else "", " on %s" % ", ".join(nodes) if nodes else ""),
        hint="Look at the slices and at the claims, or leave the canary off.",
        retryable=True,
    )


def pair(
    snapshot: ClusterSnapshot, node: str, peer: str, ready: bool = True
) -> tuple[Target, Optional[Target]]:
    """A free NIC of a node, and the one of the same name on its peer: rails reach themselves. ``None``: none is free.

    :raises RdmaError: ``canary_no_nic``: the node has none.
    """
    others = {found.nic: found for found in reversed(list(_free(snapshot, (peer,), "", ready)))}
    for found in _free(snapshot, (node,), "", ready):
        if found.nic in others:
            return found, others[found.nic]
    return choose(snapshot, (node,), "", ready), None


def _free(snapshot: ClusterSnapshot, nodes: Sequence[str], nic: str, ready: bool) -> Iterator[Target]:
    taken = {(device.pool, device.device) for claim in snapshot.claims or () for device in claim.devices}
    up = {entry.name for entry in snapshot.nodes or () if entry.ready}
    for entry in sorted(snapshot.slices or (), key=lambda found: found.node):
        if entry.driver != DRIVER or entry.node not in up or (nodes and entry.node not in nodes):
            continue
        for device in entry.devices:
            held = device.attributes
            name = str(held.get(DRIVER + "/ifName") or "")
            fits = held.get(DRIVER + "/rdma") is True and name and (not nic or name == nic)
            if fits and (entry.pool, device.name) not in taken and (held.get(READY_ATTRIBUTE) or not ready):
                yield Target(entry.node, name, str(held.get(DRIVER + "/mac") or ""))


def claim(trial: Trial) -> dict[str, Any]:
    """The claim. A driver without children is asked for one by name: it refuses the word, as it decodes claims strictly
    (F106), where a claim without settings would depend on its provider."""
    expression = 'device.attributes["%s"].ifName == "%s"' % (DRIVER, trial.target.nic)
    devices: dict[str, Any] = {
        "requests": [
            {
                "name": REQUEST,
                "exactly": {
                    "deviceClassName": trial.device_class,
                    "selectors": [{"cel": {"expression": expression}}],
                    # Devices that a roll has fenced are proven before they are let go (decision 25).
                    "tolerations": [{"key": TAINT, "operator": "Exists"}],
                },
            }
        ]
    }
    if trial.expect == REFUSED:
        parameters = {"interface": {"type": "IPVLAN"}}
        devices["config"] = [
            {"requests": [REQUEST], "opaque": {"driver": DRIVER, "parameters": parameters}},
        ]
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": _metadata(NAME, trial.suffix, trial.namespace),
        "spec": {"devices": devices},
    }


def pod(trial: Trial, address: str = "") -> dict[str, Any]:
    """The pod with the claim.

    :param address: of the child that it is to reach; empty: it reaches nobody.
    """
    nic = trial.target.nic
    look = _container("look", trial, LOOK, nic)
    stays = (
        _container("serve", trial, SERVE, nic, str(PORT))
        if trial.serves
        else _container("hold", trial, _HOLD)
    )
    containers = [stays]
    if address:
        containers.append(_container("reach", trial, REACH, nic, address, str(PORT), str(REACH_SECONDS)))
    for container in (look, *containers):
        container["resources"] = {"claims": [{"name": REQUEST}]}
    spec = _on_node(trial.target)
    spec["resourceClaims"] = [{"name": REQUEST, "resourceClaimName": trial.name}]
    return _pod(NAME, trial, {**spec, "initContainers": [look], "containers": containers})


def witness(trial: Trial) -> dict[str, Any]:
    """The pod that looks at the host."""
    look = _container("look", trial, LOOK, trial.target.nic)
    return _pod(WITNESS, trial, {**_on_node(trial.target), "hostNetwork": True, "containers": [look]})


def removable(namespace: str, suffix: str = "") -> list[dict[str, Any]]:
    """What a canary can leave, the claim last: it goes when its pod has gone."""
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
        for name in (NAME + suffix, WITNESS + suffix)
    ]
    held = {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": NAME + suffix, "namespace": namespace},
    }
    return [*pods, held]


def told(
    live: Optional[Mapping[str, Any]], init: bool = False, container: str = ""
) -> Optional[dict[str, Any]]:
    """What a container said when it ended; ``None``: it has not ended, or said nothing that can be read.

    :param live: the pod; ``init``: its init container instead of its container.
    :param container: its name; empty: the first one.
    """
    key = "initContainerStatuses" if init else "containerStatuses"
    for _at, status in entries(mapping(live, "status").get(key)):
        if container and status.get("name") != container:
            continue
        message = text(mapping(status, "state", "terminated").get("message"))
        try:
            found = json.loads(message)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None
    return None


def claimed(live: Optional[Mapping[str, Any]]) -> bool:
    """Whether a claim got its NIC."""
    return bool(mapping(live, "status", "allocation"))


def refusal(events: Sequence[Any]) -> str:
    """The message with which a driver refused to prepare the claim of a pod; empty: it did not."""
    for _at, event in entries(list(events)):
        if event.get("reason") == "FailedPrepareDynamicResources":
            return text(event.get("message"))
    return ""


def judge(trial: Trial, seen: Seen, child_range: Optional[Prefix]) -> list[RdmaError]:
    """What is not as it must be; empty: it is proven.

    :param child_range: where the child must have its address; ``None``: anywhere.
    """
    target = trial.target
    where = "%s of %s" % (target.nic, target.node)
    problems = []
    parent = seen.parent
    if parent is None:
        problems.append(
            _canary_error(
                "canary_no_witness", "Nothing tells whether %s is still on its host." % where, target
            )
        )
    elif not parent or (target.mac and parent.get("mac") != target.mac):
        problems.append(
            RdmaError(
                "canary_parent_left",
                "%s is not on its host while a pod has claimed it; found %s."
                % (where, _shown(parent) or "nothing of this name"),
                hint="Stop: this DRANET moves the NIC. Its addresses, routes and rules are lost until the agent or a "
                "reboot restores them.",
                node=target.node,
                nic=target.nic,
            )
        )
    if trial.expect == REFUSED:
        if seen.running:
            problems.append(
                _canary_error(
                    "canary_not_refused",
                    "A claim for a child of %s was served by a DRANET that is said to have none." % where,
                    target,
                )
            )
        elif not seen.refusal:
            problems.append(
                _canary_error(
                    "canary_silent",
                    "The claim for %s was neither served nor refused in time." % where,
                    target,
                )
            )
        return problems
    if not seen.running or seen.child is None:
        problems.append(
            RdmaError(
                "canary_not_served",
                "The claim for %s was not served in time: %s."
                % (where, seen.refusal.rstrip(".") or "the pod does not run, and no event says why"),
                hint="Look at the events of the pod and at the logs of DRANET and of the provider on the node.",
                node=target.node,
                nic=target.nic,
            )
        )
        return problems
    if not _is_child(seen.child, child_range):
        problems.append(
            RdmaError(
                "canary_no_child",
                "The pod has %s as %s, expected an IPvlan child%s."
                % (
                    _shown(seen.child) or "nothing",
                    target.nic,
                    " with an address of %s" % child_range if child_range else "",
                ),
                hint="Look at what the provider answered for this NIC.",
                node=target.node,
                nic=target.nic,
            )
        )
    return problems


def judge_reach(trial: Trial, seen: Seen, child_range: Optional[Prefix]) -> tuple[tuple[RdmaError, ...], str]:
    """What is not as it must be between the two canaries, and why it was not tried, in words; both empty: it is proven.

    What is wrong with the child of the target is told by :func:`judge` alone.
    """
    if trial.expect == REFUSED:
        return (), CHILDLESS
    if trial.peer is None:
        return (), ALONE
    near, far = trial.target, trial.peer
    there = "%s of %s" % (far.nic, far.node)
    if seen.met is None and not seen.met_claimed:
        return (), NOT_REACHED + "%s could not be claimed in time" % there
    if seen.met is None or not _is_child(seen.met, child_range):
        found = seen.met_refusal.rstrip(".") or "the pod does not run, and no event says why"
        if seen.met is not None:
            found = "its pod has %s" % (_shown(seen.met) or "nothing")
        return (
            RdmaError(
                "canary_no_peer",
                "%s is to be reached from %s of %s, and its claim got no IPvlan child%s: %s."
                % (there, near.nic, near.node, " of %s" % child_range if child_range else "", found),
                hint="%s was proven before: look at the logs of DRANET and of the provider there." % far.node,
                node=near.node,
                nic=near.nic,
                peer=far.node,
            ),
        ), ""
    if not seen.running or seen.child is None or not _is_child(seen.child, child_range):
        return (), ""
    own, wanted = seen.child.get("address"), seen.met.get("address")
    if seen.reached is not None and seen.reached.get("seen") == own:
        return (), ""
    if seen.reached is None:
        why = "its container told nothing in time"
    elif "seen" in seen.reached:
        why = "the connection came from %s" % seen.reached["seen"]
    else:
        why = text(seen.reached.get("error")).rstrip(".") or "no reason is told"
    return (
        RdmaError(
            "canary_unreached",
            "The child %s of %s on %s does not reach the child %s of %s on %s: %s."
            % (own, near.nic, near.node, wanted, far.nic, far.node, why),
            hint="Look at rule and routes of the child in a pod on %s, and whether the fabric, its switches and its "
            "security lists let the new range through between the two nodes (TCP port %d)."
            % (near.node, PORT),
            node=near.node,
            nic=near.nic,
            peer=far.node,
        ),
    ), ""


def _is_child(link: Mapping[str, Any], child_range: Optional[Prefix]) -> bool:
    """An IPvlan child, with an address of the range if there is one."""
    address = find_address(link.get("address"))
    fits = child_range is None or (address is not None and child_range.contains(address))
    return link.get("kind") == "ipvlan" and fits


def _canary_error(code: str, message: str, target: Target) -> RdmaError:
    hint = "Look at the events of the pods %s and %s." % (NAME, WITNESS)
    return RdmaError(code, message, hint=hint, node=target.node, nic=target.nic)


def _shown(link: Mapping[str, Any]) -> str:
    if not link:
        return ""
    words = [str(link.get("kind") or "a device"), str(link.get("mac") or ""), str(link.get("address") or "")]
    return " ".join(word for word in words if word)


def _metadata(name: str, suffix: str, namespace: str) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/name": name,  # without the suffix: names of nodes may be longer than labels
        "app.kubernetes.io/part-of": PART_OF,
        **claims.LABELS,
    }
    return {"name": name + suffix, "namespace": namespace, "labels": labels}


def _pod(name: str, trial: Trial, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = _metadata(name, trial.suffix, trial.namespace)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _on_node(target: Target) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [target.node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"operator": "Exists"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
    }


def _container(name: str, trial: Trial, program: str, *arguments: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": trial.image,
        "imagePullPolicy": trial.pull_policy,
        "command": ["python3", "-c", program, *arguments],
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
