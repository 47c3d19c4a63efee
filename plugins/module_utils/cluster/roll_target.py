# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll asks of the system that it changes. Private to rdma.k8s: it may change with any release.

Everything that a roll does to a target can be done again without harm.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Optional, Protocol

from ..core.roll.model import Proven
from ..core.roll.users import Scope


class Target(Protocol):
    """A driver whose nodes offer a value.

    ``scope`` says who uses RDMA, and which DaemonSets (``namespace/name``) are the driver. Each node has a pod of
    ``driver_sets`` of them.
    """

    scope: Scope
    driver_sets: int
    observes: bool
    """Whether :meth:`observe` must be called to learn what a node offers."""

    def observe(self, node: str) -> None:
        """Look at the node itself; :meth:`value_of` tells from then on what was seen.

        :raises RdmaError: an error of the target or of the client.
        """

    def template_of(self, daemonset: Mapping[str, Any]) -> Hashable:
        """What decides whether a pod was made from the template of the driver as it is now."""

    def made_from(self, pod: Mapping[str, Any]) -> Hashable:
        """The same of a pod of the driver."""

    def values_of(self, slice_: Mapping[str, Any]) -> frozenset[str]:
        """The values that the devices of a ResourceSlice name."""

    def value_of(self, node: str, published: Sequence[str]) -> str:
        """What a node offers; empty: nothing.

        :param published: the values that its devices name.
        """

    def daemonsets(self) -> list[tuple[str, dict[str, Any]]]:
        """The DaemonSets of the driver as they are now, each by ``namespace/name``.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def version(self) -> str:
        """The version of the driver: another one makes another plan.

        :raises RdmaError: an error of the client.
        """

    def value(self) -> str:
        """The value that the driver is told for the whole cluster.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def keep(self) -> str:
        """What must be restored at the end; nothing is changed, and it is never empty.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def prepare(self) -> None:
        """See to it that no pod of the driver is replaced by anybody but the roll.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def switch(self, value: str) -> None:
        """Tell the driver the value, for each pod that is made from now on.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def restore(self, kept: str) -> None:
        """Put back what :meth:`keep` gave.

        :raises RdmaError: ``roll_driver``, or an error of the client.
        """

    def change_node(self, node: str, value: str) -> bool:
        """Change the node itself; whether a reboot is owed then.

        :raises RdmaError: an error of the target or of the client.
        """

    def reboot(self, node: str, boot_id: str) -> None:
        """Boot a node, if it still has this boot id.

        :raises RdmaError: an error of the target or of the client.
        """

    def prove(self, node: str, value: str, peer: Optional[str]) -> Proven:
        """What is not as it must be on a node that offers the value, and what could not be proven; nothing that was
        made for the proof is left.

        :param peer: a node that is proven already, to be reached.
        :raises RdmaError: an error of the target or of the client.
        """
