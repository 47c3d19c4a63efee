# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the objects of a ClusterSnapshot come from: an API server, or files. Private to rdma.k8s: it may change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Optional

from ..core.errors import RdmaError
from ..core.kube import documents
from ..core.kube.objects import entries, group, kind, mapping, name, namespace, text
from .client import Cluster, Resource

PAGE = 1000
"""Objects in a page: 1,000 nodes come in one request."""
FILES = 10_000
"""The most files that are read from a directory."""

KINDS = {
    "nodes": "Node",
    "pods": "Pod",
    "events": "Event",
    "configmaps": "ConfigMap",
    "leases": "Lease",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "daemonsets": "DaemonSet",
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "jobs": "Job",
    "cronjobs": "CronJob",
    "mpijobs": "MPIJob",
    "pytorchjobs": "PyTorchJob",
    "jobsets": "JobSet",
    "leaderworkersets": "LeaderWorkerSet",
    "namespaces": "Namespace",
    "servicecidrs": "ServiceCIDR",
    "ippools": "IPPool",
    "resourceslices": "ResourceSlice",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
    "deviceclasses": "DeviceClass",
    "devicetaintrules": "DeviceTaintRule",
    "validatingadmissionpolicies": "ValidatingAdmissionPolicy",
    "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "network-attachment-definitions": "NetworkAttachmentDefinition",
    "spiderippools": "SpiderIPPool",
    "spidermultusconfigs": "SpiderMultusConfig",
    "sriovnetworknodepolicies": "SriovNetworkNodePolicy",
    "sriovnetworks": "SriovNetwork",
    "sriovibnetworks": "SriovIBNetwork",
    "sriovnetworkpoolconfigs": "SriovNetworkPoolConfig",
    "sriovnetworknodestates": "SriovNetworkNodeState",
}
"""The plural of what is read, and its kind."""
_TOLD_IN_FULL = (
    "resource.k8s.io",
    "networking.k8s.io",
    "admissionregistration.k8s.io",
    "k8s.cni.cncf.io",
    "spiderpool.spidernet.io",
    "sriovnetwork.openshift.io",
    "kubeflow.org",
    "jobset.x-k8s.io",
    "leaderworkerset.x-k8s.io",
    "ray.io",
    "cilium.io",
    "crd.projectcalico.org",
    "oci.oraclecloud.com",
)


class LiveSource:
    """The API server."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def calls(self) -> Optional[int]:
        """API calls so far."""
        return self._cluster.calls

    def version(self) -> tuple[str, str]:
        """Version and platform of the server."""
        found = self._cluster.version()
        return text(found.get("gitVersion")), text(found.get("platform"))

    def served(self) -> Optional[tuple[str, ...]]:
        """What the server serves, see ``ApiServer.served``."""
        found = ["v1"]
        for entry in self._cluster.resources("/apis"):
            group_version = entry.group_version
            in_full = group_version.partition("/")[0] in _TOLD_IN_FULL
            found.append("%s/%s" % (group_version, entry.plural) if in_full else group_version)
        return tuple(dict.fromkeys(found))

    def objects(
        self, api_group: str, plural: str, in_namespace: str = "", **query: Any
    ) -> list[dict[str, Any]]:
        """All objects of a kind.

        :raises RdmaError: ``kube_not_served``, and what a call raises.
        """
        found = self._resource(api_group, plural)
        return list(self._cluster.items(found.path(in_namespace), PAGE, **query))

    def one(self, api_group: str, plural: str, in_namespace: str, named: str) -> dict[str, Any]:
        """One object.

        :raises RdmaError: ``kube_not_served``, ``kube_not_found``, and what a call raises.
        """
        content = self._cluster.get(self._resource(api_group, plural).path(in_namespace, named))
        content.setdefault("kind", KINDS[plural])
        return content

    def _resource(self, api_group: str, plural: str) -> Resource:
        if not api_group:
            return Resource("v1", plural, KINDS[plural], plural not in ("nodes", "namespaces"))
        for found in self._cluster.resources("/apis"):
            if found.plural == plural and found.group_version.partition("/")[0] == api_group:
                return found
        raise RdmaError(
            "kube_not_served",
            "The API server %s serves no %s of %s." % (self._cluster.server, plural, api_group),
        )


class FileSource:
    """Objects in files, as ``kubectl get -o json`` and ``-o yaml`` print them.

    :param path: a file, or a directory that is read with all below it.
    :raises RdmaError: ``records_unreadable``, ``records_empty``, ``manifest_malformed``.
    """

    calls: Optional[int] = None

    def __init__(self, path: str) -> None:
        self._objects: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._told: set[str] = set()
        self._version = ("", "")
        files = list(_files(path))
        if not files:
            raise RdmaError(
                "records_empty",
                "There is no file %s/*.json, *.yaml or *.yml." % path,
                hint="Write the output of kubectl get -o json there, one file for each kind.",
                path=path,
            )
        for file in files:
            # A list of nothing has no kind; the file is named by what was asked for.
            self._told.add(os.path.basename(file).split(".")[0].lower())
            for content in read_objects(file):
                self._take(content)

    def _take(self, content: dict[str, Any]) -> None:
        version = mapping(content, "serverVersion")
        if version:
            self._version = (text(version.get("gitVersion")), text(version.get("platform")))
        elif kind(content):
            self._objects.setdefault((group(content), kind(content)), []).append(content)

    def version(self) -> tuple[str, str]:
        """Version and platform from the output of ``kubectl version -o json``; empty without it."""
        return self._version

    def served(self) -> Optional[tuple[str, ...]]:
        """Files do not tell that."""
        return None

    def objects(
        self, api_group: str, plural: str, in_namespace: str = "", **query: Any
    ) -> list[dict[str, Any]]:
        """All objects of a kind; a selector in ``query`` is not looked at, so the caller sorts out what is not his.

        :raises RdmaError: ``kube_not_recorded`` when no file has such objects, or is named by their plural.
        """
        found = self._objects.get((api_group, KINDS[plural]))
        if found is None and plural not in self._told:
            raise RdmaError("kube_not_recorded", "No file has objects of the kind %s." % KINDS[plural])
        return [content for content in found or () if not in_namespace or namespace(content) == in_namespace]

    def one(self, api_group: str, plural: str, in_namespace: str, named: str) -> dict[str, Any]:
        """One object.

        :raises RdmaError: ``kube_not_recorded``.
        """
        for content in self._objects.get((api_group, KINDS[plural]), ()):
            if namespace(content) == in_namespace and name(content) == named:
                return content
        raise RdmaError("kube_not_recorded", "No file has the %s %s." % (KINDS[plural], named))


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    count = 0
    for directory, below, names in os.walk(path, onerror=_unreadable):
        below.sort()
        for found in sorted(names):
            if found.endswith((".json", ".yaml", ".yml")) and not found.startswith("."):
                count += 1
                if count > FILES:
                    raise RdmaError(
                        "records_unreadable",
                        "%s has more than %d files." % (path, FILES),
                        hint="Give the directory with the output of kubectl alone.",
                        path=path,
                    )
                yield os.path.join(directory, found)


def read_objects(file: str) -> list[dict[str, Any]]:
    """The objects of a file; those of lists one by one.

    :raises RdmaError: ``records_unreadable``, ``manifest_malformed``.
    """
    try:
        with open(file, encoding="utf-8") as handle:
            content = handle.read()
    except (OSError, UnicodeDecodeError) as error:
        raise _not_read(file, error) from error
    found: list[dict[str, Any]] = []
    if file.endswith(".json"):
        try:
            found = list(_unfolded(json.loads(content)))
        except (ValueError, RecursionError) as error:
            raise RdmaError(
                "manifest_malformed",
                "%s is not JSON: %s." % (file, error),
                hint="Write the file anew; it may have been cut off.",
                path=file,
            ) from error
    else:
        for document in documents.parse(content, file):
            found += _unfolded(document.content)
    return found


def _unfolded(content: Any) -> Iterator[dict[str, Any]]:
    """An object, or the objects of a list. Those of a typed list (``NodeList``) have the kind of the list."""
    if not isinstance(content, dict):
        return
    called = kind(content)
    if not called.endswith("List") or not isinstance(content.get("items"), list):
        yield content
        return
    for _at, entry in entries(content["items"]):
        if not kind(entry):
            entry["kind"], entry["apiVersion"] = called[: -len("List")], content.get("apiVersion")
        yield entry


def _unreadable(error: OSError) -> None:
    raise _not_read(str(error.filename), error)


def _not_read(path: str, error: Exception) -> RdmaError:
    return RdmaError(
        "records_unreadable",
        "%s cannot be read: %s." % (path, getattr(error, "strerror", None) or error),
        path=path,
    )
