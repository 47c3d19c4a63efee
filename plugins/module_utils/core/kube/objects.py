# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small helpers for Kubernetes objects. Private to rdma.k8s: it may change with any release.

Manifests come from users: any value may be of any type. These helpers give an empty value where the wanted kind is not
there, so that a reader never stumbles; what the API server refuses by itself is left to the API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

NOTHING: dict[str, Any] = {}


def mapping(value: Any, *keys: str) -> dict[str, Any]:
    """The dictionary below ``keys`` of ``value``; an empty one when there is none."""
    for key in keys:
        if not isinstance(value, dict):
            return NOTHING
        value = value.get(key)
    return value if isinstance(value, dict) else NOTHING


def entries(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The dictionaries of a list, each with its position."""
    if isinstance(value, list):
        for position, entry in enumerate(value):
            if isinstance(entry, dict):
                yield position, entry


def merged(found: Mapping[str, Any], wished: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what is wished in them, the rest kept, on every level."""
    out = dict(found)
    for key, value in wished.items():
        there = out.get(key)
        out[key] = (
            merged(there, value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
        )
    return out


def text(value: Any) -> str:
    """The value when it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def kind(content: Any) -> str:
    """``Job``."""
    return text(content.get("kind")) if isinstance(content, dict) else ""


def group(content: Any) -> str:
    """The API group: ``batch`` of ``batch/v1``, empty for the core group."""
    version = text(content.get("apiVersion")) if isinstance(content, dict) else ""
    return version.partition("/")[0] if "/" in version else ""


def name(content: Any) -> str:
    """The name, or the prefix from which the API server makes one."""
    metadata = mapping(content, "metadata")
    return text(metadata.get("name")) or text(metadata.get("generateName"))


def namespace(content: Any) -> str:
    """The namespace; empty: not given."""
    return text(mapping(content, "metadata").get("namespace"))


def ref(content: Any) -> str:
    """``Job default/train``, or ``Job train`` when the namespace is not given."""
    where, called = namespace(content), name(content) or "(no name)"
    return "%s %s" % (kind(content) or "Object", "%s/%s" % (where, called) if where else called)
