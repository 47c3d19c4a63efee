# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a roll keeps in the cluster: its plan and record, and its marks on nodes. Private to rdma.k8s: it may change.

A ConfigMap holds the plan, which never changes and whose hash is the name of the roll, and the record, which does.
Each write names the version that it was decided from, so that it fails when somebody else wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.roll import planning
from ..core.roll.conduct import ENDS
from ..core.roll.marks import LABEL
from ..core.roll.model import NodePatch, Plan, Record
from ..core.roll.names import RECORD, RECORD_LABELS, Phase
from .client import FIELD_MANAGER, Cluster
from .node_list import NODES

NAMESPACE = "kube-system"
ROLLS = "app.kubernetes.io/component=rdma-roll"
_MERGE = "application/merge-patch+json"
_PLAN, _RECORD = "plan", "record"


@dataclass(frozen=True)
class Stored:
    """A roll as it is in the cluster.

    :param name: hash of its plan.
    :param version: of the ConfigMap; ``created``: when it was made, RFC 3339, by the clock of the API server.
    """

    name: str
    plan: Plan
    record: Record
    version: str
    created: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing is left to be done."""
        return self.record.phase in ENDS


class Store:
    """The rolls of a cluster.

    :param namespace: where their ConfigMaps are.
    """

    def __init__(self, cluster: Cluster, namespace: str = NAMESPACE) -> None:
        self._cluster, self.namespace = cluster, namespace

    # --- plans and records

    def rolls(self) -> list[Stored]:
        """All rolls, the latest first.

        :raises RdmaError: ``roll_plan`` or ``roll_record`` when somebody changed one, or an error of the client.
        """
        found = list(self._rolls())
        return sorted(found, key=lambda roll: (roll.record.started, roll.name), reverse=True)

    def load(self, name: str) -> Stored:
        """One roll.

        :param name: the hash of its plan.
        :raises RdmaError: ``roll_unknown``, ``roll_plan``, ``roll_record``, or an error of the client.
        """
        try:
            return self._read(self._cluster.get(self._path(name)))
        except RdmaError as error:
            if error.code != "kube_not_found":
                raise
            raise RdmaError(
                "roll_unknown",
                "There is no roll %s in the namespace %s." % (name, self.namespace),
                hint="Ask for the status without a name to see which ones there are.",
                roll=name,
            ) from None

    def create(self, plan: Plan, record: Record) -> Stored:
        """Store a plan with its first record; if it is there already, as it is there.

        :raises RdmaError: an error of the client.
        """
        name = planning.digest(plan)
        content = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": RECORD + name, "namespace": self.namespace, "labels": dict(RECORD_LABELS)},
            "data": {_PLAN: planning.dump(plan), _RECORD: planning.dump_record(record)},
        }
        try:
            made = self._cluster.send("POST", self._path(), content, fieldManager=FIELD_MANAGER)
        except RdmaError as error:
            # After an answer that was lost the object may be there: it is the plan itself that its name tells.
            if error.code != "kube_conflict" and not error.retryable:
                raise
            return self.load(name)
        return self._read(made)

    def write(self, stored: Stored, record: Record) -> Stored:
        """Put another record in the place of that of ``stored``.

        :raises RdmaError: ``roll_rewritten`` when somebody else wrote it, or an error of the client.
        """
        body = {
            "metadata": {"resourceVersion": stored.version},
            "data": {_RECORD: planning.dump_record(record)},
        }
        try:
            return self._read(
                self._cluster.send("PATCH", self._path(stored.name), body, _MERGE, fieldManager=FIELD_MANAGER)
            )
        except RdmaError as error:
            if error.code.startswith("roll_lease") or (error.code != "kube_conflict" and not error.retryable):
                raise
            failed = error
        found = self.load(stored.name)
        if found.record == record:  # the answer was lost, not the write
            return found
        if found.version == stored.version:
            raise failed
        raise RdmaError(
            "roll_rewritten",
            "The record of the roll %s was written by somebody else while this controller has the lease."
            % stored.name,
            hint="Look who did that (managedFields of the ConfigMap %s), then resume."
            % (RECORD + stored.name),
            roll=stored.name,
        ) from failed

    def forget(self, keep: int) -> None:
        """Remove the oldest rolls that are over, but so many.

        :raises RdmaError: an error of the client.
        """
        rolls = self.rolls()
        parents = {roll.plan.parent for roll in rolls[:keep]}
        for roll in rolls[keep:]:
            if roll.over and roll.name not in parents:
                try:
                    self._cluster.send("DELETE", self._path(roll.name))
                except RdmaError as error:
                    if error.code != "kube_not_found":
                        raise

    # --- nodes

    def patch_node(self, plan: Plan, name: str, patch: NodePatch) -> dict[str, Any]:
        """Write the marks of a node, and its fence, in one patch; the node as it is then.

        :raises RdmaError: ``kube_conflict`` when the node changed since the patch was decided, ``kube_not_found``, or
            another error of the client.
        """
        annotations = {plan.prefix + key: value for key, value in patch.annotations.items()}
        body: dict[str, Any] = {
            "metadata": {
                "resourceVersion": patch.version,
                "annotations": annotations,
                "labels": {plan.prefix + LABEL: patch.label},
            }
        }
        if patch.unschedulable is not None:
            body["spec"] = {"unschedulable": patch.unschedulable or None}
        return self._cluster.send("PATCH", node_path(name), body, _MERGE, fieldManager=FIELD_MANAGER)

    # --- below

    def _path(self, name: str = "") -> str:
        path = "/api/v1/namespaces/%s/configmaps" % quote(self.namespace, safe="")
        return "%s/%s" % (path, quote(RECORD + name, safe="")) if name else path

    def _rolls(self) -> Iterator[Stored]:
        for content in self._cluster.items(self._path(), labelSelector=ROLLS):
            yield self._read(content)

    @staticmethod
    def _read(content: dict[str, Any]) -> Stored:
        name = text(mapping(content, "metadata").get("name"))[len(RECORD) :]
        data = mapping(content, "data")
        plan = planning.load(text(data.get(_PLAN)))
        if planning.digest(plan) != name:
            raise RdmaError(
                "roll_plan",
                "The plan in the ConfigMap %s is not the one that its name tells: its hash is %s."
                % (RECORD + name, planning.digest(plan)),
                hint="Somebody changed it. End that roll by hand and plan a new one.",
                roll=name,
            )
        record = planning.load_record(text(data.get(_RECORD)))
        metadata = mapping(content, "metadata")
        return Stored(
            name, plan, record, text(metadata.get("resourceVersion")), text(metadata.get("creationTimestamp"))
        )


def node_path(name: str) -> str:
    """Where a node is."""
    return "%s/%s" % (NODES, quote(name, safe=""))


def unfinished(rolls: list[Stored]) -> Optional[Stored]:
    """The roll that is not over; of several the latest. One that was aborted counts until it is taken back."""
    taken_back = {roll.plan.parent for roll in rolls if roll.record.phase is Phase.ROLLED_BACK}
    for roll in rolls:
        if not roll.over and roll.name not in taken_back:
            return roll
    return None
