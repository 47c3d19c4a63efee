# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of a roll as they are now, from lists that are followed by watches. Private to rdma.k8s: it may change.

Each kind of object is listed once and then followed in a thread of its own. Of an object only what is needed is kept,
of pods only those that may use RDMA and those of the driver. A view of a node is made anew when something of it
changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, text
from ..core.roll import marks, users
from ..core.roll.eviction import Budgets
from ..core.roll.model import DriverPod, Marks, NodeView
from ..core.roll.names import PREFIX
from ..core.roll.users import Known
from .client import Cluster
from .following import Follower, key_of
from .node_list import NODES
from .rdma_users import BUDGETS, CLAIMS, PODS
from .roll_dranet import SLICES
from .roll_target import Target

RULE_NAME = "rdma-roll-"
"""The rule that fences a node has this and the name of the node as its name."""

_PATIENCE = 60.0


@dataclass(frozen=True)
class _Node:
    name: str
    uid: str
    version: str
    created: str
    ready: bool
    unschedulable: bool
    leaving: bool
    marks: Marks
    boot_id: str


@dataclass(frozen=True)
class _Driver:
    pod: DriverPod
    daemonset: str
    made_from: Any
    leaving: bool


@dataclass(frozen=True)
class _Slice:
    node: str
    pool: str
    generation: int
    values: frozenset[str]


class World:
    """Everything that a roll looks at.

    :param cluster: for lists and watches alone.
    :param rules: where rules that taint devices are; empty: nodes are not fenced by them.
    """

    def __init__(self, cluster: Cluster, target: Target, prefix: str = PREFIX, rules: str = "") -> None:
        self._target, self._scope, self._prefix = target, target.scope, prefix
        self._heard = threading.Condition()
        self._dirty: set[str] = set()
        self._news = False
        self._views: dict[str, NodeView] = {}
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self._pods_of: dict[str, set[str]] = {}
        self._drivers: dict[str, _Driver] = {}
        self._drivers_of: dict[str, set[str]] = {}
        self._node_of_pod: dict[str, str] = {}
        self._known = Known()
        self._claims_of: dict[str, set[str]] = {}
        self._slices: dict[str, _Slice] = {}
        self._slices_of: dict[str, set[str]] = {}
        self._budgets: dict[str, dict[str, Any]] = {}
        self._templates: dict[str, Any] = {}
        self._rules: set[str] = set()
        self._cluster = cluster
        self._followers = [
            self._follow(NODES, self._take_node, self._drop_node),
            self._follow(PODS, self._take_pod, self._drop_pod, fieldSelector="spec.nodeName!="),
            self._follow(CLAIMS, self._take_claim, self._drop_claim),
            self._follow(
                SLICES, self._take_slice, self._drop_slice, fieldSelector="spec.driver=" + self._scope.driver
            ),
            self._follow(BUDGETS, self._take_budget, self._drop_budget),
        ]
        for name in sorted(self._scope.drivers):
            where, called = name.split("/")
            path = "/apis/apps/v1/namespaces/%s/daemonsets" % where
            self._followers.append(
                self._follow(
                    path, self._take_template, self._drop_template, fieldSelector="metadata.name=" + called
                )
            )
        if rules:
            self._followers.append(self._follow(rules, self._take_rule, self._drop_rule))

    # --- for the loop

    def start(self, patience: float = _PATIENCE) -> None:
        """Read everything, and follow it from then on.

        :raises RdmaError: what stands against it.
        """
        for follower in self._followers:
            follower.start()
        end = time.monotonic() + patience
        for follower in self._followers:
            while not follower.listed.wait(0.05):
                if time.monotonic() > end or (follower.trouble and not _may_heal(follower.trouble)):
                    self.stop()
                    raise RdmaError(
                        "roll_blind",
                        "%s could not be read: %s"
                        % (follower.path, follower.trouble or "no answer in time."),
                        hint="Give the user of the kubeconfig the right to list and watch it.",
                    )

    def stop(self) -> None:
        """End all watches."""
        for follower in self._followers:
            follower.stop()
        for follower in self._followers:
            follower.join(5.0)

    def blind(self) -> str:
        """Why what is known may be out of date; empty: it is not."""
        for follower in self._followers:
            if follower.trouble:
                return follower.trouble
        return ""

    def wait(self, seconds: float) -> None:
        """Until something changed, or the time is over."""
        with self._heard:
            if not self._news:
                self._heard.wait(max(0.0, seconds))
            self._news = False

    def wake(self) -> None:
        """Let :meth:`wait` end."""
        with self._heard:
            self._news = True
            self._heard.notify_all()

    def views(self) -> dict[str, NodeView]:
        """All nodes of the cluster by name, as they are now. Views of nodes without news are the same objects."""
        with self._heard:
            dirty, self._dirty = self._dirty, set()
            for name in dirty:
                node = self._nodes.get(name)
                if node is None:
                    self._views.pop(name, None)
                else:
                    self._views[name] = self._view(node)
            return dict(self._views)

    def view(self, name: str) -> Optional[NodeView]:
        """One node as it is now; ``None``: it is not there."""
        with self._heard:
            node = self._nodes.get(name)
            if node is None:
                return None
            if name in self._dirty or name not in self._views:
                self._dirty.discard(name)
                self._views[name] = self._view(node)
            return self._views[name]

    def touch(self, name: str) -> None:
        """The view of a node must be made anew."""
        with self._heard:
            self._touch((name,))

    def read_pods(self, cluster: Cluster, node: str) -> None:
        """Read the pods of a node now, for a step that must not be taken because a watch is late.

        :raises RdmaError: an error of the client.
        """
        found = {key_of(pod): pod for pod in cluster.items(PODS, fieldSelector="spec.nodeName=" + node)}
        with self._heard:
            known = set(self._pods_of.get(node, ())) | set(self._drivers_of.get(node, ()))
        for key, pod in found.items():
            self._take_pod(key, pod)
        for key in known - set(found):
            self._drop_pod(key)

    def put_template(self, name: str, content: Mapping[str, Any]) -> None:
        """A DaemonSet of the driver (``namespace/name``) as a call of ours returned it."""
        self._take_template(name, content)

    def put_node(self, content: dict[str, Any]) -> None:
        """A node as a call of ours returned it."""
        self._take_node(key_of(content), content)

    def drop_node(self, name: str) -> None:
        """A node that is there no more."""
        self._drop_node(name)

    def created(self, name: str) -> str:
        """When a node was created, RFC 3339."""
        with self._heard:
            node = self._nodes.get(name)
            return node.created if node else ""

    def with_driver(self) -> set[str]:
        """Names of the nodes that have a pod of the driver."""
        with self._heard:
            return {name for name, held in self._drivers_of.items() if held} & set(self._nodes)

    def publishing(self) -> set[str]:
        """Names of the nodes whose devices name a value."""
        with self._heard:
            return {entry.node for entry in self._slices.values() if entry.values} & set(self._nodes)

    def stale(self) -> list[str]:
        """Names of nodes with a pod of the driver that was made from a former template.

        A node that vanished leaves such a pod behind for a while, which nothing replaces.
        """
        with self._heard:
            return sorted(
                {
                    self._node_of_pod[key]
                    for key, held in self._drivers.items()
                    if held.made_from != self._templates.get(held.daemonset)
                }
                & set(self._nodes)
            )

    # --- views

    def _view(self, node: _Node) -> NodeView:
        pods = [self._pods[key] for key in self._pods_of.get(node.name, ())]
        uids = {text(pod["metadata"].get("uid")) for pod in pods}
        near = self._claims_of.get(node.name, set()).union(*(self._claims_of.get(uid, ()) for uid in uids))
        claims = [self._known.claims[key] for key in near]
        return NodeView(
            name=node.name,
            uid=node.uid,
            version=node.version,
            ready=node.ready,
            unschedulable=node.unschedulable,
            marks=node.marks,
            users=tuple(users.users(pods, self._known, self._scope)),
            claims=tuple(users.claims_on(node.name, claims, self._scope, uids)),
            drivers=tuple(sorted(self._driver_pods(node.name), key=lambda pod: pod.name)),
            driver_sets=self._target.driver_sets,
            value=self._target.value_of(node.name, self._values(node.name)),
            boot_id=node.boot_id,
            fenced_by_rule=node.name in self._rules,
            critical=("the node is being deleted",) if node.leaving else (),
        )

    def _driver_pods(self, node: str) -> Iterator[DriverPod]:
        for key in self._drivers_of.get(node, ()):
            held = self._drivers[key]
            current = held.made_from == self._templates.get(held.daemonset)
            pod = held.pod
            yield DriverPod(pod.namespace, pod.name, pod.uid, pod.ready and not held.leaving, current)

    def _values(self, node: str) -> list[str]:
        held = [self._slices[key] for key in self._slices_of.get(node, ())]
        newest: dict[str, int] = {}
        for entry in held:
            newest[entry.pool] = max(newest.get(entry.pool, 0), entry.generation)
        return sorted(
            {value for entry in held if entry.generation == newest[entry.pool] for value in entry.values}
        )

    # --- news

    def _follow(self, path: str, take: Any, drop: Any, **query: str) -> Follower:
        return Follower(self._cluster, path, query, take, drop, self.wake)

    def _touch(self, names: Iterable[str]) -> None:
        self._dirty.update(names)
        self._news = True

    def _take_node(self, key: str, content: dict[str, Any]) -> None:
        metadata, status = mapping(content, "metadata"), mapping(content, "status")
        version = text(metadata.get("resourceVersion"))
        node = _Node(
            name=key,
            uid=text(metadata.get("uid")),
            version=version,
            created=text(metadata.get("creationTimestamp")),
            ready=_ready(status),
            unschedulable=mapping(content, "spec").get("unschedulable") is True,
            leaving=bool(metadata.get("deletionTimestamp")),
            marks=marks.read(mapping(metadata, "annotations"), self._prefix),
            boot_id=text(mapping(status, "nodeInfo").get("bootID")),
        )
        with self._heard:
            before = self._nodes.get(key)
            if before is not None and before.uid == node.uid and _older(version, before.version):
                return  # our own call has told something newer already
            self._nodes[key] = node
            self._touch((key,))

    def _drop_node(self, key: str) -> None:
        with self._heard:
            self._nodes.pop(key, None)
            self._touch((key,))

    def _take_pod(self, key: str, content: dict[str, Any]) -> None:
        node = text(mapping(content, "spec").get("nodeName"))
        metadata = mapping(content, "metadata")
        daemonset = self._daemonset_of(metadata)
        slim: dict[str, Any] = {}
        if not daemonset:
            slim = users.slim_pod(content, self._scope)
            if not self._may_use(slim):
                self._drop_pod(key)
                return
        with self._heard:
            self._forget_pod(key)
            self._node_of_pod[key] = node
            if daemonset:
                pod = DriverPod(
                    namespace=text(metadata.get("namespace")),
                    name=text(metadata.get("name")),
                    uid=text(metadata.get("uid")),
                    ready=_ready(mapping(content, "status")),
                    current=False,
                )
                leaving = bool(metadata.get("deletionTimestamp"))
                self._drivers[key] = _Driver(pod, daemonset, self._target.made_from(content), leaving)
                self._drivers_of.setdefault(node, set()).add(key)
            else:
                self._pods[key] = slim
                self._pods_of.setdefault(node, set()).add(key)
            self._touch((node,))

    def _drop_pod(self, key: str) -> None:
        with self._heard:
            if key in self._node_of_pod:
                self._touch((self._node_of_pod[key],))
                self._forget_pod(key)

    def _forget_pod(self, key: str) -> None:
        node = self._node_of_pod.pop(key, None)
        if node is None:
            return
        self._pods.pop(key, None)
        self._drivers.pop(key, None)
        for index in (self._pods_of, self._drivers_of):
            _discard(index, node, key)

    def _daemonset_of(self, metadata: Mapping[str, Any]) -> str:
        for _at, owner in entries(metadata.get("ownerReferences")):
            name = "%s/%s" % (text(metadata.get("namespace")), text(owner.get("name")))
            if owner.get("kind") == "DaemonSet" and name in self._scope.drivers:
                return name
        return ""

    def _may_use(self, slim: Mapping[str, Any]) -> bool:
        if slim["spec"].get("resourceClaims") or slim["status"].get("extendedResourceClaimStatus"):
            return True
        return bool(users.reasons(slim, _NOTHING, self._scope))

    def _take_claim(self, key: str, content: dict[str, Any]) -> None:
        slim = users.slim_claim(content)
        with self._heard:
            self._touch_claim(key)
            self._forget_claim(key)
            self._known.claims[key] = slim
            for place in _places(slim):
                self._claims_of.setdefault(place, set()).add(key)
            self._touch_claim(key)

    def _drop_claim(self, key: str) -> None:
        with self._heard:
            self._touch_claim(key)
            self._forget_claim(key)

    def _forget_claim(self, key: str) -> None:
        slim = self._known.claims.pop(key, None)
        for place in _places(slim or {}):
            _discard(self._claims_of, place, key)

    def _touch_claim(self, key: str) -> None:
        """Nodes on whose devices it is, and those of pods that have it."""
        slim = self._known.claims.get(key)
        if slim is None:
            return
        places = _places(slim)
        self._touch(places & set(self._nodes))
        held = {text(entry.get("uid")) for _at, entry in entries(slim["status"].get("reservedFor"))}
        if held:
            self._touch(
                self._node_of_pod[name]
                for name, pod in self._pods.items()
                if pod["metadata"].get("uid") in held
            )

    def _take_slice(self, key: str, content: dict[str, Any]) -> None:
        spec = mapping(content, "spec")
        pool = mapping(spec, "pool")
        generation = pool.get("generation")
        made = _Slice(
            node=text(spec.get("nodeName")),
            pool=text(pool.get("name")),
            generation=generation if isinstance(generation, int) else 0,
            values=self._target.values_of(content),
        )
        with self._heard:
            self._forget_slice(key)
            self._slices[key] = made
            self._slices_of.setdefault(made.node, set()).add(key)
            self._touch((made.node,))

    def _drop_slice(self, key: str) -> None:
        with self._heard:
            self._forget_slice(key)

    def _forget_slice(self, key: str) -> None:
        before = self._slices.pop(key, None)
        if before is not None:
            _discard(self._slices_of, before.node, key)
            self._touch((before.node,))

    def _take_budget(self, key: str, content: dict[str, Any]) -> None:
        with self._heard:
            self._budgets[key] = {
                "metadata": {
                    name: content["metadata"].get(name) for name in ("namespace", "name", "generation")
                },
                "spec": mapping(content, "spec"),
                "status": mapping(content, "status"),
            }
            self._count_budgets()

    def _drop_budget(self, key: str) -> None:
        with self._heard:
            self._budgets.pop(key, None)
            self._count_budgets()

    def _count_budgets(self) -> None:
        self._known.budgets = Budgets(self._budgets.values())
        self._touch(name for name, held in self._pods_of.items() if held)

    def _take_template(self, key: str, content: Mapping[str, Any]) -> None:
        made = self._target.template_of(content)
        with self._heard:
            self._templates[key] = made
            self._touch(self._drivers_of)

    def _drop_template(self, key: str) -> None:
        with self._heard:
            self._templates.pop(key, None)
            self._touch(self._drivers_of)

    def _take_rule(self, key: str, content: dict[str, Any]) -> None:
        spec = mapping(content, "spec")
        if not key.startswith(RULE_NAME) or mapping(spec, "taint").get("effect") != "NoSchedule":
            return
        with self._heard:
            self._rules.add(key[len(RULE_NAME) :])
            self._touch((key[len(RULE_NAME) :],))

    def _drop_rule(self, key: str) -> None:
        with self._heard:
            self._rules.discard(key[len(RULE_NAME) :])
            self._touch((key[len(RULE_NAME) :],))


_NOTHING = Known()


def _places(slim: Mapping[str, Any]) -> set[str]:
    """Pools of the devices of a claim, and UIDs of those for which it is reserved."""
    status = mapping(slim, "status")
    found = {
        text(entry.get("pool"))
        for _at, entry in entries(mapping(status, "allocation", "devices").get("results"))
    }
    found.update(text(entry.get("uid")) for _at, entry in entries(status.get("reservedFor")))
    return found


def _discard(index: dict[str, set[str]], place: str, key: str) -> None:
    held = index.get(place)
    if held is not None:
        held.discard(key)
        if not held:
            del index[place]


def _ready(status: Mapping[str, Any]) -> bool:
    return any(
        entry.get("type") == "Ready" and entry.get("status") == "True"
        for _at, entry in entries(status.get("conditions"))
    )


def _older(version: str, other: str) -> bool:
    """Whether a version came before another one: they are numbers that grow."""
    return version.isdigit() and other.isdigit() and int(version) < int(other)


def _may_heal(trouble: str) -> bool:
    return "is not allowed" not in trouble


def rules_path(cluster: Cluster) -> Optional[tuple[str, str]]:
    """Where the API server serves rules that taint devices, and the group and version; ``None``: it does not.

    :raises RdmaError: an error of the client.
    """
    for found in cluster.resources("/apis"):
        if found.plural == "devicetaintrules" and found.group_version.startswith("resource.k8s.io/"):
            return found.path(), found.group_version
    return None
