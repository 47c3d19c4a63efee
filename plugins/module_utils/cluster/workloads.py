# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the objects of a cluster that the lint looks at. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.errors import RdmaError
from ..core.kube.documents import Document, live
from ..core.kube.objects import group, kind, text
from ..core.kube.pod_templates import POD_KINDS
from ..core.lint.api_fields import KINDS
from .client import Cluster, Resource

REFERENCES = frozenset(
    (
        "ResourceClaim",
        "ResourceClaimTemplate",
        "DeviceClass",
        "NetworkAttachmentDefinition",
        "SpiderMultusConfig",
        "SpiderIPPool",
        "SriovNetworkNodePolicy",
    )
)
"""Kinds without pods that rules read, or that pods name."""
CONFIG_MAP = "ConfigMap"
DEFINITION = "CustomResourceDefinition"


def read(cluster: Cluster, namespaces: Sequence[str] = ()) -> tuple[list[Document], list[RdmaError]]:
    """The objects of some namespaces, or of all, and the errors of kinds that may not be read.

    Lists are read in pages. Secrets are never read; ConfigMaps are, since pods take variables from them.

    :raises RdmaError: one of the codes ``kube_...`` that do not concern a single kind.
    """
    found: list[Document] = []
    problems: list[RdmaError] = []
    for resource in _wanted(cluster.resources()):
        for namespace in namespaces if resource.namespaced and namespaces else [""]:
            try:
                objects = list(cluster.items(resource.path(namespace)))
            except RdmaError as error:
                if error.code not in ("kube_forbidden", "kube_not_found"):
                    raise
                problems.append(error)
                break
            named = {"apiVersion": resource.group_version, "kind": resource.kind}
            found += live([{**named, **content} for content in objects])
    return found, problems


def _wanted(resources: Iterable[Resource]) -> list[Resource]:
    """The kinds that are read, each group in the version that the server prefers."""
    wanted = POD_KINDS | REFERENCES | {CONFIG_MAP}
    chosen: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        if resource.kind in wanted and (resource.kind != CONFIG_MAP or resource.group_version == "v1"):
            chosen.setdefault((resource.group_version.rpartition("/")[0], resource.kind), resource)
    return list(chosen.values())


def definitions(cluster: Cluster, documents: Iterable[Document]) -> tuple[list[Document], list[RdmaError]]:
    """The definitions (CRDs) of the kinds of documents whose keys are not known, and the errors of those that may not
    be read. A kind that the cluster does not have has none.

    :raises RdmaError: one of the codes ``kube_...`` that do not concern a single kind.
    """
    contents = [document.content for document in documents if isinstance(document.content, dict)]
    kinds = {(text(content.get("apiVersion")), kind(content), group(content)) for content in contents}
    found: list[dict[str, Any]] = []
    problems: list[RdmaError] = []
    names = {
        "%s.%s" % (resource.plural, of_group)
        for version, of_kind, of_group in kinds
        for resource in cluster.resources("/apis" if of_group else "/api")
        if (version, of_kind) not in KINDS and resource.kind == of_kind and resource.group_version == version
    }
    for name in sorted(names):
        try:
            content = cluster.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name)
        except RdmaError as error:
            if error.code == "kube_not_found":
                continue  # a built-in kind, or one of an aggregated server
            if error.code != "kube_forbidden":
                raise
            problems.append(error)
            continue
        found.append({**content, "apiVersion": "apiextensions.k8s.io/v1", "kind": DEFINITION})
    return live(found), problems
