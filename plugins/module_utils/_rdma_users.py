# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that are about the pods which use RDMA. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from typing import Any

from .cluster import rdma_users
from .cluster.client import Cluster
from .cluster.draining import Done
from .core.ack.names import DAEMONSET as ACK_PLUGIN
from .core.kube.objects import entries, mapping
from .core.oke.constants import DRIVER
from .core.oke.dranet_objects import DRANET, PROVIDER
from .core.roll import fence, users
from .core.roll.draining import Look
from .core.roll.model import Consent, User
from .core.roll.users import Scope
from .core.spiderpool.names import RDMA_INJECT, RESOURCE_PREFIX

OPTIONS: dict[str, Any] = {
    "driver": {"type": "str", "default": DRIVER},
    "resources": {"type": "list", "elements": "str", "default": ["rdma/*", RESOURCE_PREFIX + "/*"]},
    "networks": {"type": "list", "elements": "str", "default": []},
    "driver_daemonsets": {
        "type": "list",
        "elements": "str",
        "default": ["kube-system/" + name for name in (DRANET, PROVIDER, ACK_PLUGIN)],
    },
    "ownerless": {"type": "bool", "default": False},
    "host_network": {"type": "bool", "default": False},
}


def scope(params: dict[str, Any], cluster: Cluster) -> Scope:
    """What counts as RDMA, by the options and by what the cluster itself says."""
    given = Scope(
        params["driver"],
        tuple(params["resources"]),
        tuple(params["networks"]),
        asking=(RDMA_INJECT,),
        drivers=frozenset(params["driver_daemonsets"]),
    )
    return rdma_users.widen(cluster, given)


def consent(params: dict[str, Any]) -> Consent:
    """What the operator allows."""
    return Consent(params["ownerless"], params["host_network"], params.get("evict_jobs", True))


def told(look: Look, node: dict[str, Any], allowed: Consent) -> dict[str, Any]:
    """A node with its users, as plain data; each user with what a drain would make of it."""
    choice = users.choose(look.users, allowed)
    ready = any(
        entry.get("type") == "Ready" and entry.get("status") == "True"
        for _at, entry in entries(mapping(node, "status").get("conditions"))
    )
    listed = [
        *(_user(user, "evict") for user in choice.evict),
        *(_user(user, "leaving") for user in choice.leaving),
        *(_user(user, "stays") for user in choice.stays),
        *(_user(user, "blocks", reason) for user, reason in choice.blocking),
    ]
    return {
        "name": look.node,
        "ready": ready,
        "unschedulable": mapping(node, "spec").get("unschedulable") is True,
        "users": sorted(listed, key=lambda user: (user["namespace"], user["name"])),
        "claims": list(look.claims),
    }


def summary(looks: list[dict[str, Any]]) -> dict[str, Any]:
    """How much there is of what, over all nodes."""
    listed = [user for look in looks for user in look["users"]]
    return {
        "nodes": len(looks),
        "nodes_in_use": sum(1 for look in looks if look["users"] or look["claims"]),
        "pods": len(listed),
        "owners": sorted({user["owner"] for user in listed if user["owner"]}),
        "blocking": sum(1 for user in listed if user["drain"] == "blocks"),
    }


def drained(state: str, done: Done, allowed: Consent) -> dict[str, Any]:
    """What the module ``drain`` returns of what was done, also when it failed."""
    taken = list(done.evictions.taken.values()) if done.evictions else []
    evicted = ["%s/%s" % (user.namespace, user.name) for user in taken]
    words = _TAKEN_DOWN if state == "released" else _PUT_UP
    found: dict[str, Any] = {
        "changed": bool(done.fences or taken),
        "fences": dict(done.fences),
        "actions": [
            *(words[kind] % node for node, kind in sorted(done.fences.items())),
            *("evict %s" % pod for pod in evicted),
        ],
        "diff": _difference(state, done, taken),
    }
    if state == "tried":
        found["hit"] = dict(done.hit)
    if state == "drained":
        names = {
            user.uid: "%s/%s" % (user.namespace, user.name) for look in done.looks for user in look.users
        }
        reasons = done.evictions.reasons if done.evictions else {}
        found.update(
            nodes=[told(look, done.nodes[look.node], allowed) for look in done.looks],
            evicted=evicted,
            refused={names.get(uid, uid): reason for uid, reason in reasons.items()},
            seconds=done.seconds,
        )
    return found


def warnings(done: Done, kind: str) -> list[str]:
    """What the fence does not do: a taint of devices holds back claims, and no pod that uses RDMA without one."""
    if kind != fence.RULE:
        return []
    found = sorted({look.node for look in done.looks for user in look.users if user.reason != users.CLAIM})
    if not found:
        return []
    return [
        "Pods use RDMA without a claim on %s. A taint of its devices does not keep such pods away, a cordon does."
        % ", ".join(found)
    ]


_PUT_UP = {fence.CORDON: "cordon %s", fence.RULE: "taint the devices of %s"}
_TAKEN_DOWN = {fence.CORDON: "uncordon %s", fence.RULE: "remove the taint of the devices of %s"}


def _difference(state: str, done: Done, taken: list[User]) -> dict[str, Any]:
    """Fence and users of each node, before and after."""
    gone = {user.uid for user in taken}
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for node in sorted(done.nodes):
        users_of = next((look.users for look in done.looks if look.node == node), ())
        for side, fenced in ((before, state == "released"), (after, state != "released")):
            side[node] = {
                "fence": done.fences[node] if node in done.fences and fenced else "",
                "pods": [
                    "%s/%s" % (user.namespace, user.name)
                    for user in users_of
                    if side is before or user.uid not in gone
                ],
            }
    return {"before": before, "after": after}


def _user(user: User, becomes: str, problem: str = "") -> dict[str, Any]:
    return {
        "namespace": user.namespace,
        "name": user.name,
        "uid": user.uid,
        "reason": user.reason,
        "uses": user.uses,
        "claims": list(user.claims),
        "owner": user.owner,
        "ends": user.ends,
        "grace": user.grace,
        "drain": becomes,
        "problem": problem,
    }
