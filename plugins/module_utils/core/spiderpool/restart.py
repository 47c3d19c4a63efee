# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether Spiderpool's controller works with an older configuration. Private to rdma.k8s: it may change any time.

The controller reads its ConfigMap when it starts (S166, S168), and the chart does not restart it for another content.
All times that are compared are those of the API server: when it took the content, and when it took a pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..kube.objects import entries, mapping, name, ref, text
from ..stamps import seconds_between

MARK = "rdma-k8s/configuration-of"
"""Annotation of the pods with the time of the configuration for which they were made anew."""
_OVER = ("Succeeded", "Failed")


class Standing(NamedTuple):
    """What one look tells.

    :param changed_at: when the content of the configuration was written last; empty: not told.
    :param mark: the value of :data:`MARK` in the Deployment, empty without one.
    :param older: pods that are older than the configuration.
    :param problems: why the Deployment is not as it should be after a restart, in sentences.
    """

    changed_at: str
    mark: str
    older: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def wants_restart(self) -> bool:
        """Whether a restart is to begin; one that is under way is none of these."""
        return bool(self.older) and self.mark != self.changed_at

    @property
    def is_current(self) -> bool:
        """Whether all pods have the configuration and are available."""
        return not self.older and not self.problems


def config_maps(deployment: Mapping[str, Any]) -> list[str]:
    """The names of the ConfigMaps that the pods of a Deployment mount; their values have other names in some charts."""
    volumes = mapping(deployment, "spec", "template", "spec").get("volumes")
    found = {text(mapping(volume, "configMap").get("name")) for _at, volume in entries(volumes)}
    return sorted(found - {""})


def written_at(config_map: Mapping[str, Any]) -> str:
    """When the content of a ConfigMap was written last, as a stamp; empty: not told.

    An entry of a manager has one time for all of its fields, so a label that came with a content counts, too.
    """
    metadata = mapping(config_map, "metadata")
    times = [text(metadata.get("creationTimestamp"))]
    for _at, entry in entries(metadata.get("managedFields")):
        fields = mapping(entry, "fieldsV1")
        if "f:data" in fields or "f:binaryData" in fields:
            times.append(text(entry.get("time")))
    return _latest(times)


def look(
    deployment: Mapping[str, Any],
    configuration: Sequence[Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
) -> Standing:
    """What is so now.

    :param configuration: the ConfigMaps of :func:`config_maps`.
    :param pods: those that the selector of the Deployment fits.
    """
    changed_at = _latest([written_at(entry) for entry in configuration])
    older = [
        name(pod)
        for pod in pods
        if text(mapping(pod, "status").get("phase")) not in _OVER
        and not mapping(pod, "metadata").get("deletionTimestamp")
        and _is_older(text(mapping(pod, "metadata").get("creationTimestamp")), changed_at)
    ]
    mark = mapping(deployment, "spec", "template", "metadata", "annotations").get(MARK)
    return Standing(changed_at, text(mark), tuple(sorted(older)), tuple(_problems(deployment)))


def patch(changed_at: str) -> dict[str, Any]:
    """A merge patch that makes the pods anew, one after the other, as the strategy of the Deployment says."""
    return {"spec": {"template": {"metadata": {"annotations": {MARK: changed_at}}}}}


def _problems(deployment: Mapping[str, Any]) -> list[str]:
    status, metadata = mapping(deployment, "status"), mapping(deployment, "metadata")
    wanted = mapping(deployment, "spec").get("replicas", 1)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        return ["nobody has looked at the new specification of %s" % ref(deployment)]
    found = []
    for field, words in (("updatedReplicas", "are new"), ("availableReplicas", "are available")):
        if status.get(field, 0) < wanted:
            found.append("%d of %d pods of %s %s" % (status.get(field, 0), wanted, ref(deployment), words))
    if status.get("replicas", 0) > status.get("updatedReplicas", 0):
        found.append("%s has older pods still" % ref(deployment))
    return found


def _is_older(stamp: str, than: str) -> bool:
    """Whether a stamp is certainly the earlier one; they have whole seconds."""
    seconds = seconds_between(stamp, than)
    return seconds is not None and seconds > 0


def _latest(stamps: Sequence[str]) -> str:
    found = ""
    for stamp in stamps:
        if seconds_between(stamp, stamp) is not None and (not found or _is_older(found, stamp)):
            found = stamp
    return found
