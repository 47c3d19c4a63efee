# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""DRANET and the provider as a cluster runs them: their flags, and the child range that each node really has.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Optional

from ..cluster_snapshot import (
    ClusterNode,
    ClusterSnapshot,
    DaemonSet,
    DriverContainer,
    DriverPod,
    ResourceSlice,
    SliceDevice,
)
from ..errors import RdmaError
from ..net import Prefix
from . import options
from .constants import ATTRIBUTE_DOMAIN, DRIVER

DRANET, PROVIDER = "dranet", "provider"
PROVIDER_PACKAGE = "rdma_k8s_provider"
OPTION = "cloud-provider-options"
HINT = "cloud-provider-hint"
PROFILE_PROVIDER = "profile-provider"
MOVE_IB = "move-ib-interfaces"
WEBHOOK = "webhook"
RANGE_ATTRIBUTE = ATTRIBUTE_DOMAIN + "/rdmaChildIpv4Cidr"
OWN_PREFIX = "rdma.k8s/"
"""Taints of this collection have keys that begin so."""

_BOOLEAN = frozenset(
    (MOVE_IB, "logtostderr", "alsologtostderr", "one_output", "skip_headers", "add_dir_header")
)
_FALSE = frozenset(("0", "f", "F", "false", "False", "FALSE"))
_FENCES = (":NoSchedule", ":NoExecute")


def flags(words: Sequence[str]) -> dict[str, list[str]]:
    """The flags of a Go program by name without dashes, each with its values in order; a switch alone is ``true``."""
    found: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            follows = bool(rest) and name not in _BOOLEAN and not rest[0].startswith("-")
            value = rest.pop(0) if follows else "true"
        found.setdefault(name, []).append(value)
    return found


@dataclass(frozen=True)
class Settings:
    """The flags of one program."""

    flags: Mapping[str, Sequence[str]]

    def last(self, name: str, default: str = "") -> str:
        """The value that counts: that of the last occurrence."""
        values = self.flags.get(name)
        return values[-1] if values else default

    @property
    def hint(self) -> str:
        """``--cloud-provider-hint`` (F95, F98)."""
        return self.last(HINT)

    @property
    def profile_provider(self) -> str:
        """``--profile-provider`` (F105)."""
        return self.last(PROFILE_PROVIDER, "cloud")

    @property
    def moves_infiniband(self) -> bool:
        """``--move-ib-interfaces``, on by default (F103)."""
        return self.last(MOVE_IB, "true") not in _FALSE

    @property
    def options(self) -> Sequence[str]:
        """Each ``--cloud-provider-options`` (F92)."""
        return self.flags.get(OPTION, ())

    def child_range(self) -> Any:
        """The range in force, ``None`` when none is written, or the :class:`RdmaError` that stops the program."""
        try:
            found = options.parse(self.options, self.hint)
        except RdmaError as error:
            return error
        return found.child_range if any(self.options) else None


@dataclass(frozen=True)
class Program:
    """A DaemonSet with its one container that is the program."""

    daemonset: DaemonSet
    container: DriverContainer

    @property
    def name(self) -> str:
        return "%s/%s" % (self.daemonset.namespace, self.daemonset.name)

    @cached_property
    def settings(self) -> Settings:
        """As the DaemonSet wants them."""
        return Settings(flags([*self.container.command[1:], *self.container.args]))

    def settings_of(self, pod: DriverPod) -> Settings:
        """As a pod has them, which can be older ones."""
        args = (pod.args or {}).get(self.container.name) if pod.args is not None else None
        if args is None:
            return self.settings
        return Settings(flags([*self.container.command[1:], *args]))

    @cached_property
    def pods(self) -> dict[str, DriverPod]:
        """The pod of each node, by the name of the node; one that is going away only when there is no other."""
        found: dict[str, DriverPod] = {}
        for pod in sorted(self.daemonset.pods or (), key=lambda pod: (not pod.deleted, pod.started)):
            found[pod.node] = pod
        return found

    def has_mounted(self, path: str) -> bool:
        """Whether the container sees a directory of the node: it, or one above it, is mounted."""
        held = [mount.host.rstrip("/") or "/" for mount in self.container.mounts if mount.host]
        return any(host in (path, "/") or path.startswith(host + "/") for host in held)


class Installed:
    """What a cluster runs of the target ``oke_dranet``."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.cluster = cluster

    @cached_property
    def dranet(self) -> tuple[Program, ...]:
        """DRANET; more than one when pools of nodes have their own."""
        return self._programs(DRANET, "dranet")

    @cached_property
    def provider(self) -> tuple[Program, ...]:
        """The provider of this collection, without its node agent."""
        return tuple([found for found in self._programs(PROVIDER, PROVIDER) if _is_provider(found)])

    def _programs(self, role: str, word: str) -> tuple[Program, ...]:
        return tuple(
            [
                Program(entry, _main(entry, word))
                for entry in self.cluster.daemonsets or ()
                if entry.role == role and any(not container.init for container in entry.containers)
            ]
        )

    @cached_property
    def webhook(self) -> bool:
        """Whether DRANET asks a webhook for profiles or attributes."""
        return any(WEBHOOK in (found.settings.profile_provider, found.settings.hint) for found in self.dranet)

    @property
    def range_source(self) -> tuple[Program, ...]:
        """The programs whose option is the child range: the provider behind the webhook, else DRANET itself."""
        return self.provider if self.webhook else self.dranet

    def range_pod(self, node: str) -> Optional[tuple[Program, DriverPod]]:
        """The pod on a node whose option is the child range."""
        for program in self.range_source:
            pod = program.pods.get(node)
            if pod is not None:
                return program, pod
        return None

    @cached_property
    def slices(self) -> dict[str, list[ResourceSlice]]:
        """The slices of DRANET by node, of the newest generation of each pool only."""
        newest: dict[tuple[str, str], int] = {}
        own = [entry for entry in self.cluster.slices or () if entry.driver == DRIVER and entry.node]
        for entry in own:
            key = (entry.node, entry.pool)
            newest[key] = max(newest.get(key, entry.generation), entry.generation)
        found: dict[str, list[ResourceSlice]] = {}
        for entry in own:
            if entry.generation == newest[entry.node, entry.pool]:
                found.setdefault(entry.node, []).append(entry)
        return found

    def devices(self, node: str) -> list[SliceDevice]:
        """The devices that a node publishes."""
        return [device for entry in self.slices.get(node, ()) for device in entry.devices]

    def published_ranges(self, node: str) -> list[str]:
        """The child ranges that the devices of a node name, each once."""
        named = [device.attributes.get(RANGE_ATTRIBUTE) for device in self.devices(node)]
        return list(dict.fromkeys([value for value in named if isinstance(value, str)]))

    def optioned_range(self, node: str) -> Optional[Prefix]:
        """The range of the option with which the pod on a node runs; ``None``: no pod, or no usable option."""
        held = self.range_pod(node)
        if held is None:
            return None
        found = held[0].settings_of(held[1]).child_range()
        return found if isinstance(found, Prefix) else None

    def fence(self, node: ClusterNode) -> str:
        """What keeps new pods with claims off a node; empty: nothing."""
        if node.unschedulable:
            return "cordoned"
        for taint in node.taints:
            if taint.startswith(OWN_PREFIX) and taint.endswith(_FENCES):
                return "taint %s" % taint
        for rule in self.cluster.taint_rules or ():
            whole = rule.driver in ("", DRIVER) and rule.pool in ("", node.name) and not rule.device
            if whole and rule.taint.endswith(_FENCES):
                return "device taint rule %s" % rule.name
        return ""


def _is_provider(found: Program) -> bool:
    words = [*found.container.command, *found.container.args]
    return PROVIDER in found.daemonset.name or any(PROVIDER_PACKAGE in word for word in words)


def _main(daemonset: DaemonSet, word: str) -> DriverContainer:
    """The container that a word in its name or image tells, else the first."""
    running = [container for container in daemonset.containers if not container.init]
    named = [entry for entry in running if word in entry.name or word in entry.image.rpartition("/")[2]]
    return (named or running)[0]
