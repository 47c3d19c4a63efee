# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The IP version of the compute network of Lingjun nodes, as the cloud tells it (A9, A63).

Private to rdma.k8s: it may change with any release. Only reads. No field of Kubernetes tells it: the node pools of the
ACK cluster name their Lingjun clusters (A20), and those are asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .. import deps
from ..core.ack import answers
from ..core.ack.answers import LINGJUN, Pool
from ..core.errors import RdmaError
from . import alibaba


@dataclass
class Fabric:
    """Lingjun node pools with the version of their network; ``unread`` says why one is not known."""

    pools: list[tuple[Pool, str]] = field(default_factory=list)
    unread: list[RdmaError] = field(default_factory=list)

    @property
    def versions(self) -> list[str]:
        """The versions that there are."""
        return sorted({version for _pool, version in self.pools if version})

    @property
    def version(self) -> Optional[str]:
        """The version when it is known of every pool, and is one."""
        known = [version for _pool, version in self.pools]
        return known[0] if known and known[0] and len(set(known)) == 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The return values of a module."""
        return {
            "ip_version": self.version,
            "ip_versions": self.versions,
            "complete": not self.unread,
            "node_pools": [
                {
                    "id": pool.id,
                    "name": pool.name,
                    "lingjun_cluster": pool.lingjun_cluster or None,
                    "lingjun_group": pool.lingjun_group or None,
                    "ip_version": version or None,
                    "evidence": "ComputingIpVersion of the Lingjun cluster %s" % pool.lingjun_cluster
                    if version
                    else None,
                }
                for pool, version in self.pools
            ],
            "unread": [error.to_dict() for error in self.unread],
        }


def read(service: alibaba.Service, lingjun: Callable[[], alibaba.Service], cluster_id: str) -> Fabric:
    """Ask for the node pools of a cluster, then for each Lingjun cluster that they name, once.

    :param service: of ACK.
    :param lingjun: makes the service of Lingjun clusters; called only when there is one to ask for.
    :raises RdmaError: those of :mod:`alibaba`, unless it is about one Lingjun cluster.
    """
    models = deps.alibaba_cs("alibabacloud_cs20151215.models")
    what = "the node pools of the cluster %s" % cluster_id
    asked = models.DescribeClusterNodePoolsRequest()
    call = service.client.describe_cluster_node_pools_with_options
    found = answers.pools(service.read(what, call, cluster_id, asked))
    fabric = Fabric()
    known: dict[str, str] = {}
    other: Optional[alibaba.Service] = None
    for listed in found:
        if listed.kind != LINGJUN and not listed.lingjun_cluster:
            continue
        pool = listed if listed.lingjun_cluster else _detail(service, cluster_id, listed)
        name = pool.lingjun_cluster
        if not name:
            fabric.unread.append(_nameless(pool))
        elif name not in known:
            other = other or lingjun()
            known[name] = _version(other, name, fabric.unread)
        fabric.pools.append((pool, known.get(name, "")))
    return fabric


def _detail(service: alibaba.Service, cluster_id: str, pool: Pool) -> Pool:
    """The pool by itself: the list need not name its Lingjun cluster (A63)."""
    call = service.client.describe_cluster_node_pool_detail_with_options
    what = "the node pool %s (%s)" % (pool.name, pool.id)
    return answers.pool(service.read(what, call, cluster_id, pool.id))


def _version(service: alibaba.Service, name: str, unread: list[RdmaError]) -> str:
    models = deps.alibaba_eflo("alibabacloud_eflo_controller20221215.models")
    call = service.client.describe_cluster_with_options
    what = "the Lingjun cluster %s" % name
    try:
        version = answers.ip_version(service.read(what, call, models.DescribeClusterRequest(cluster_id=name)))
    except RdmaError as error:
        if error.code in ("alibaba_not_authenticated", "alibaba_credentials_unusable"):
            raise
        unread.append(error)
        return ""
    if not version:
        unread.append(
            RdmaError(
                "ack_ip_version_untold",
                "The cloud does not tell the IP version of the network of %s." % what,
                hint="Ask its support, or look at the addresses of the RDMA interfaces on the nodes.",
                lingjun_cluster=name,
            )
        )
    return version


def _nameless(pool: Pool) -> RdmaError:
    return RdmaError(
        "ack_ip_version_untold",
        "The node pool %s (%s) names no Lingjun cluster, so the IP version of its network cannot be asked for."
        % (pool.name, pool.id),
        hint="Look at the pool in the console, or at the addresses of the RDMA interfaces on the nodes.",
        node_pool=pool.id,
    )
