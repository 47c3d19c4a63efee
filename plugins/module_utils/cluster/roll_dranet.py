# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DRANET as the target of a roll: its child range is switched. Private to rdma.k8s: it may change with any release.

Behind a webhook the range is an option of the provider, whose pods are then the driver's; without one it is an option
of DRANET itself (decision 6). The option and the strategy OnDelete are written in one patch, so that there is no moment
at which the controller of DaemonSets would replace pods of nodes that are not drained (DEV-23).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core import cluster_reading
from ..core.cluster_snapshot import Claim, ClusterSnapshot
from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, text
from ..core.net import Prefix
from ..core.oke import canary, child_range, range_flag
from ..core.oke.dranet_objects import DRANET, PROVIDER
from ..core.oke.installed import RANGE_ATTRIBUTE
from ..core.roll.model import Proven
from ..core.roll.users import Scope
from . import canary_run
from .client import FIELD_MANAGER, Cluster
from .node_list import NODES

NAMESPACE = "kube-system"
ON_DELETE = "OnDelete"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
_STRATEGIC = "application/strategic-merge-patch+json"
_ATTEMPTS = 5


@dataclass(frozen=True)
class Proof:
    """How a node is proven by a claim, see the module ``dranet_canary``.

    :param image: of this collection; empty: no claim is made.
    """

    image: str = ""
    namespace: str = NAMESPACE
    device_class: str = "rdma-nic"
    pull_policy: str = "IfNotPresent"
    expect: str = canary.CHILD
    ready: bool = True
    timeout: float = 120.0


class DranetRange:
    """The child range of DRANET, see :class:`.roll_target.Target`.

    :param cluster: for changes and single reads.
    :param daemonsets: ``namespace/name`` of those whose option is the range.
    """

    driver_sets = 1
    observes = False

    def __init__(
        self, cluster: Cluster, daemonsets: Sequence[str], scope: Scope, proof: Optional[Proof] = None
    ) -> None:
        self._cluster, self._daemonsets = cluster, tuple(daemonsets)
        self.scope = replace(scope, drivers=frozenset(daemonsets) | scope.drivers)
        self._proof = proof or Proof()

    # --- what is read

    @staticmethod
    def template_of(daemonset: Mapping[str, Any]) -> Hashable:
        """The command line of the driver's container."""
        return _made_from(mapping(daemonset, "spec", "template"))

    @staticmethod
    def made_from(pod: Mapping[str, Any]) -> Hashable:
        """The same of a pod."""
        return _made_from(pod)

    @staticmethod
    def values_of(slice_: Mapping[str, Any]) -> frozenset[str]:
        """The ranges that its devices name (F70)."""
        named = [
            mapping(device, "attributes", RANGE_ATTRIBUTE).get("string")
            for _at, device in entries(mapping(slice_, "spec").get("devices"))
        ]
        return frozenset(value for value in named if isinstance(value, str))

    @staticmethod
    def value_of(node: str, published: Sequence[str]) -> str:
        """The range; while a node names two, both of them, which is never what is wanted."""
        return ", ".join(published)

    def daemonsets(self) -> list[tuple[str, dict[str, Any]]]:
        """The DaemonSets as they are now."""
        return list(zip(self._daemonsets, self._live()))

    @staticmethod
    def observe(node: str) -> None:
        """Slices tell everything."""
        return

    def version(self) -> str:
        """The images of the driver."""
        images = [text(range_flag.container_of(pod_template(entry)).get("image")) for entry in self._live()]
        return ", ".join(sorted(set(images)))

    def value(self) -> str:
        """The range of the option; the default one when there is no option (F6)."""
        found = {range_flag.range_of(range_flag.container_of(pod_template(entry))) for entry in self._live()}
        if len(found) != 1:
            raise _driver_error(
                "The DaemonSets %s have different child ranges: %s."
                % (", ".join(self._daemonsets), ", ".join(sorted(found))),
                "Name those that are to be changed.",
            )
        return found.pop()

    def keep(self) -> str:
        """The update strategies."""
        return json.dumps(
            {
                name: mapping(entry, "spec").get("updateStrategy")
                for name, entry in zip(self._daemonsets, self._live())
            },
            sort_keys=True,
        )

    # --- what is changed

    def prepare(self) -> None:
        """Replace pods on demand only."""
        for name in self._daemonsets:
            self._change(name, lambda live: on_delete() if strategy_of(live) != ON_DELETE else {})

    def switch(self, value: str) -> None:
        """Write the option, and the strategy with it."""
        wanted = str(child_range.validate(value))

        def other(live: Mapping[str, Any]) -> dict[str, Any]:
            container = range_flag.container_of(pod_template(live))
            if range_flag.range_of(container) == wanted and strategy_of(live) == ON_DELETE:
                return {}
            changed = {"name": container.get("name"), **range_flag.with_range(container, wanted)}
            spec = {"template": {"spec": {"containers": [changed]}}, **on_delete()["spec"]}
            return {"spec": spec}

        self.change_all(other)

    def restore(self, kept: str) -> None:
        """Put the update strategies back."""
        try:
            strategies = json.loads(kept)
        except ValueError:
            strategies = None
        for name in self._daemonsets:
            strategy = mapping(strategies, name)
            if not strategy:
                raise _driver_error(
                    "What the roll kept tells no update strategy of %s: %r." % (name, kept[:100]),
                    "Set it by hand.",
                )
            self._change(name, _put_back(strategy))

    @staticmethod
    def change_node(node: str, value: str) -> bool:
        """Nothing: the range is not on the node."""
        return False

    @staticmethod
    def reboot(node: str, boot_id: str) -> None:
        """Never asked for."""
        raise _driver_error("A change of the child range asks for no reboot of %s." % node, "")

    def prove(self, node: str, value: str, peer: Optional[str]) -> Proven:
        """One claim on the node: the child is in the range, it reaches the child of a claim on the peer, and the parent
        stays on its host."""
        proof = self._proof
        if not proof.image:
            return Proven(note=canary.NO_IMAGE)
        wanted: Prefix = child_range.validate(value)
        target, other, why = self._targets(node, peer if proof.expect == canary.CHILD else None)
        trial = canary.Trial(
            target,
            proof.namespace,
            proof.device_class,
            proof.image,
            proof.pull_policy,
            proof.expect,
            suffix="-" + node,
            peer=other,
        )
        seen = canary_run.run(self._cluster, trial, proof.timeout)
        unreached, note = canary.judge_reach(trial, seen, wanted)
        problems = (*canary.judge(trial, seen, wanted), *unreached)
        return Proven(tuple([str(problem) for problem in problems]), why or note)

    # --- below

    def _targets(self, node: str, peer: Optional[str]) -> tuple[canary.Target, Optional[canary.Target], str]:
        """The NIC to be claimed, the one to be reached, and why there is none of those."""
        ready = self._proof.ready
        if not peer:
            return canary.choose(self._around((node,), ()), (node,), "", ready), None, ""
        claims = [cluster_reading.claim(content) for content in self._cluster.items(CLAIMS)]
        try:
            around = self._around((node, peer), claims)
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            gone = canary.NOT_REACHED + "%s, which was proven before it, is gone" % peer
            return canary.choose(self._around((node,), claims), (node,), "", ready), None, gone
        target, other = canary.pair(around, node, peer, ready)
        busy = canary.NOT_REACHED + "%s has no free NIC of a name that is free here, too" % peer
        return target, other, "" if other else busy

    def _around(self, nodes: Sequence[str], claims: Sequence[Claim]) -> ClusterSnapshot:
        """Nodes and their slices."""
        found = [self._cluster.get("%s/%s" % (NODES, quote(name, safe=""))) for name in nodes]
        slices = [
            cluster_reading.resource_slice(content)
            for name in nodes
            for content in self._cluster.items(SLICES, fieldSelector="spec.nodeName=" + name)
        ]
        return ClusterSnapshot(
            nodes=tuple([cluster_reading.node(content) for content in found]),
            slices=tuple(slices),
            claims=tuple(claims),
        )

    def _live(self) -> list[dict[str, Any]]:
        return [_read(self._cluster, name) for name in self._daemonsets]

    def change_all(self, patch_of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        """Patch each DaemonSet by what a function makes of it as it is; an empty patch leaves it."""
        for name in self._daemonsets:
            self._change(name, patch_of)

    def _change(self, name: str, patch_of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
        """Patch a DaemonSet as it is now; one that somebody else changed meanwhile is read again."""
        for attempt in range(1, _ATTEMPTS + 1):
            live = _read(self._cluster, name)
            patch = patch_of(live)
            if not patch:
                return
            patch["metadata"] = {"resourceVersion": mapping(live, "metadata").get("resourceVersion")}
            try:
                self._cluster.send("PATCH", _path(name), patch, _STRATEGIC, fieldManager=FIELD_MANAGER)
                return
            except RdmaError as error:
                if error.code != "kube_conflict" or attempt == _ATTEMPTS:
                    raise


def installed(cluster: Cluster, namespace: str = NAMESPACE) -> tuple[str, ...]:
    """``namespace/name`` of all DaemonSets of the driver that are there.

    :raises RdmaError: ``roll_driver`` when there is none, or an error of the client.
    """
    found = []
    for name in (PROVIDER, DRANET):
        try:
            found.append(find(cluster, namespace, (name,))[0])
        except RdmaError as error:
            if error.code != "roll_driver":
                raise
    return tuple(found) or find(cluster, namespace)


def find(cluster: Cluster, namespace: str = NAMESPACE, names: Sequence[str] = ()) -> tuple[str, ...]:
    """``namespace/name`` of the DaemonSets whose option is the range: the provider's, else DRANET's.

    :param names: those that the operator names.
    :raises RdmaError: ``roll_driver``, or an error of the client.
    """
    if names:
        found = tuple(["%s/%s" % (namespace, name) for name in names])
        for name in found:
            _read(cluster, name)
        return found
    for name in (PROVIDER, DRANET):
        try:
            _read(cluster, "%s/%s" % (namespace, name))
        except RdmaError as error:
            if error.code != "roll_driver":
                raise
        else:
            return ("%s/%s" % (namespace, name),)
    raise _driver_error(
        "The namespace %s has no DaemonSet %s and none %s." % (namespace, PROVIDER, DRANET),
        "Name the DaemonSet whose option is the child range, and its namespace.",
    )


def _read(cluster: Cluster, name: str) -> dict[str, Any]:
    try:
        return cluster.get(_path(name))
    except RdmaError as error:
        if error.code != "kube_not_found":
            raise
        raise _driver_error("There is no DaemonSet %s." % name, "Look at what removed it.") from error


def _path(name: str) -> str:
    where, _slash, called = name.partition("/")
    return "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (quote(where, safe=""), quote(called, safe=""))


def pod_template(daemonset: Mapping[str, Any]) -> dict[str, Any]:
    """The template of its pods."""
    return mapping(daemonset, "spec", "template")


def _made_from(template: Mapping[str, Any]) -> Hashable:
    container = range_flag.container_of(template)
    value = mapping(template, "metadata", "annotations").get(range_flag.ROLL)
    return (tuple(range_flag.words_of(container)), value)


def strategy_of(live: Mapping[str, Any]) -> str:
    """How the pods of a DaemonSet are replaced."""
    return text(mapping(live, "spec", "updateStrategy").get("type"))


def _put_back(strategy: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The patch that gives a DaemonSet this update strategy."""

    def patch_of(live: Mapping[str, Any]) -> dict[str, Any]:
        if mapping(live, "spec").get("updateStrategy") == strategy:
            return {}
        # Another type than OnDelete brings its own settings, which a merge takes over as they were.
        return {"spec": {"updateStrategy": {"rollingUpdate": None, **strategy}}}

    return patch_of


def on_delete() -> dict[str, Any]:
    """The patch after which pods are replaced on demand only."""
    return {"spec": {"updateStrategy": {"type": ON_DELETE, "rollingUpdate": None}}}


def _driver_error(message: str, hint: str) -> RdmaError:
    return RdmaError("roll_driver", message, hint=hint)
