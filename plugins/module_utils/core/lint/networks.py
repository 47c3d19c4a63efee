# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Further networks of pods, by annotations. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

from .. import json_text
from ..kube import objects
from ..kube.documents import Document
from .model import Context

DEFAULT_NETWORK = "v1.multus-cni.io/default-network"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"

_SHORT = re.compile(r"(?:([a-z0-9.-]+)/)?([a-z0-9.-]+)(?:@([^\s/@,]+))?")


class Attachment(NamedTuple):
    """A further network of a pod. ``document`` is its definition; ``resource`` the device resource behind it."""

    namespace: str
    name: str
    interface: str
    document: Optional[Document]
    resource: str


def parse(value: Any) -> list[tuple[str, str, str]]:
    """Namespace, name and interface of each network of an annotation: a JSON list, or names with commas.

    :raises ValueError: neither of them.
    """
    if not isinstance(value, str):
        raise ValueError("it is not a text")
    if value.lstrip()[:1] in ("[", "{"):
        try:
            found = json_text.loads(value)
        except ValueError as problem:
            raise ValueError("it is not JSON: %s" % problem) from None
        found = found if isinstance(found, list) else [found]
        if not all(isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in found):
            raise ValueError("an entry has no name")
        return [
            (objects.text(entry.get("namespace")), entry["name"], objects.text(entry.get("interface")))
            for entry in found
        ]
    listed = []
    for part in value.split(","):
        match = _SHORT.fullmatch(part.strip())
        if match is None:
            raise ValueError("%r is not the name of a network" % part.strip())
        listed.append((match[1] or "", match[2], match[3] or ""))
    return listed


def find(namespace: str, name: str, context: Context) -> tuple[Optional[Document], str]:
    """The definition of a network and the device resource behind it.

    A SpiderMultusConfig stands for the definition that Spiderpool makes of it (S90).
    """
    document = context.nad(namespace, name) or context.find("SpiderMultusConfig", name, namespace)
    return document, _resource(document) if document is not None else ""


def _resource(document: Document) -> str:
    """The device resource behind a network: an annotation of its definition, or a setting for Spiderpool."""
    annotations = objects.mapping(document.content, "metadata", "annotations")
    if objects.kind(document.content) != "SpiderMultusConfig":
        return objects.text(annotations.get(RESOURCE_NAME))
    for value in objects.mapping(document.content, "spec").values():
        resource = objects.text(objects.mapping(value).get("resourceName"))
        if resource:
            return resource
    return ""


def resources_of(context: Context) -> frozenset[str]:
    """The device resources behind all networks that the documents define."""
    found: Optional[frozenset[str]] = context.memo.get("network resources")
    if found is None:
        names = {
            _resource(document)
            for kind in ("NetworkAttachmentDefinition", "SpiderMultusConfig")
            for document in context.of_kind(kind)
        }
        found = context.memo["network resources"] = frozenset(names - {""})
    return found
