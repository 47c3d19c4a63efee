# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API of ACK and of the Lingjun service answered, read strictly. Private to rdma.k8s: it may change any time.

What is missing is absent; what has a wrong type, or lacks what an answer must tell, is an error that names the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ..json_text import Reader
from ..report.wording import flat
from .addon import Instance, Offer

_READER = Reader(
    "alibaba_answer_malformed",
    "The answer of the cloud",
    "Something between this machine and the cloud may answer in its place.",
)
LINGJUN = "lingjun"
"""The type of node pools of Lingjun nodes (A20)."""

DONE, FAILED = "success", ("fail", "failed")
_LONGEST = 400


@dataclass(frozen=True)
class Cluster:
    """An ACK cluster (A21)."""

    name: str
    state: str
    version: str
    spec: str
    profile: str
    region: str

    def to_dict(self) -> dict[str, str]:
        """The cluster as a module returns it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Task:
    """A task of a cluster. ``reason`` is what the service says of a failed one."""

    id: str
    kind: str
    state: str
    reason: str

    @property
    def done(self) -> bool:
        """It succeeded."""
        return self.state == DONE

    @property
    def failed(self) -> bool:
        """It failed (A30)."""
        return self.state in FAILED


@dataclass(frozen=True)
class Pool:
    """A node pool, and the Lingjun cluster that it belongs to (A20); empty: not told."""

    id: str
    name: str
    kind: str
    lingjun_cluster: str
    lingjun_group: str


def cluster(body: Any) -> Cluster:
    """The answer of DescribeClusterDetail."""
    found = _object(body, "cluster")
    return Cluster(
        _text(found, "cluster.name"),
        _needed(found, "cluster.state"),
        _text(found, "cluster.current_version"),
        _text(found, "cluster.cluster_spec"),
        _text(found, "cluster.profile"),
        _text(found, "cluster.region_id"),
    )


def instance(body: Any) -> Instance:
    """The answer of GetClusterAddonInstance; its configuration is JSON in a text (A21)."""
    found = _object(body, "addon")
    config: Any = found.get("config")
    if isinstance(config, str):
        config = _READER.json(config) if config.strip() else None
    return Instance(
        _text(found, "addon.version"),
        _needed(found, "addon.state").lower(),
        _READER.members(config, "addon.config"),
    )


def offer(body: Any) -> Offer:
    """The answer of DescribeAddon (A31)."""
    found = _object(body, "offer")
    targets = []
    for number, entry in enumerate(_READER.entries(found.get("newer_versions"), "offer.newer_versions")):
        where = "offer.newer_versions[%d]" % number
        newer = _READER.members(entry, where)
        if _READER.flag(newer.get("upgradable"), where + ".upgradable"):
            targets.append(_needed(newer, where + ".version"))
    return Offer(_needed(found, "offer.version"), _text(found, "offer.config_schema"), tuple(targets))


def task(body: Any, where: str = "task") -> Task:
    """The answer of DescribeTaskInfo, or one entry of DescribeClusterTasks."""
    found = _object(body, where)
    return Task(
        _needed(found, where + ".task_id"),
        _text(found, where + ".task_type"),
        _needed(found, where + ".state").lower(),
        _reason(found, where),
    )


def tasks(body: Any) -> tuple[list[Task], int]:
    """One page of DescribeClusterTasks, and how many there are on all pages."""
    found = _object(body, "tasks")
    entries = _READER.entries(found.get("tasks"), "tasks.tasks")
    page = _READER.members(found.get("page_info"), "tasks.page_info")
    total = _READER.integer(page.get("total_count"), "tasks.page_info.total_count")
    read = [task(entry, "tasks.tasks[%d]" % number) for number, entry in enumerate(entries)]
    return read, len(read) if total is None else total


def task_id(body: Any) -> str:
    """The task that a write started; empty when the answer names none (A25)."""
    return _text(_READER.members(body, "the answer"), "the answer.task_id")


def pools(body: Any) -> list[Pool]:
    """The answer of DescribeClusterNodePools."""
    found = _object(body, "pools")
    entries = _READER.entries(found.get("nodepools"), "pools.nodepools")
    return [pool(entry, "pools.nodepools[%d]" % number) for number, entry in enumerate(entries)]


def pool(body: Any, where: str = "pool") -> Pool:
    """The answer of DescribeClusterNodePoolDetail, or one entry of the list."""
    found = _object(body, where)
    about = _READER.members(found.get("nodepool_info"), where + ".nodepool_info")
    group = _READER.members(found.get("eflo_node_group"), where + ".eflo_node_group")
    return Pool(
        _needed(about, where + ".nodepool_info.nodepool_id"),
        _text(about, where + ".nodepool_info.name"),
        _text(about, where + ".nodepool_info.type").lower(),
        _text(group, where + ".eflo_node_group.cluster_id"),
        _text(group, where + ".eflo_node_group.group_id"),
    )


def ip_version(body: Any) -> str:
    """The compute network's version in the answer of DescribeCluster (A63): ``IPv4``, ``IPv6``, or empty."""
    found = _object(body, "lingjun")
    told = _text(found, "lingjun.ComputingIpVersion").strip()
    known = {"ipv4": "IPv4", "ipv6": "IPv6", "": ""}.get(told.lower())
    if known is None:
        raise _READER.wrong("lingjun.ComputingIpVersion", "IPv4 or IPv6", told)
    return known


def _object(body: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise _READER.wrong(where, "an object", body)
    return body


def _text(found: Mapping[str, Any], where: str) -> str:
    return _READER.text(found.get(where.rpartition(".")[2]), where)


def _needed(found: Mapping[str, Any], where: str) -> str:
    value = _text(found, where)
    if not value:
        raise _READER.wrong(where, "a text", None)
    return value


def _reason(found: Mapping[str, Any], where: str) -> str:
    """Why a task failed: its error, else what its last stage or event says."""
    error = _READER.members(found.get("error"), where + ".error")
    words = [_text(error, where + ".error.code"), _text(error, where + ".error.message")]
    text = ": ".join(word for word in words if word)
    if not text:
        text = _last(found, where, "stages") or _last(found, where, "events")
    return flat(text)[:_LONGEST]


def _last(found: Mapping[str, Any], where: str, name: str) -> str:
    told: Optional[str] = ""
    for number, entry in enumerate(_READER.entries(found.get(name), "%s.%s" % (where, name))):
        place = "%s.%s[%d]" % (where, name, number)
        told = _text(_READER.members(entry, place), place + ".message") or told
    return told or ""
