# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rule: keys that the API server would drop without a word. Private to rdma.k8s: it may change with any release.

The keys of built-in kinds come from :mod:`.api_fields`, those of other kinds from a CustomResourceDefinition among the
documents. A kind of neither, which has pod templates, is looked at in these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Optional, Union

from ..finding import ERROR
from ..kube import objects
from ..kube.documents import Document
from . import api_fields
from .model import Context, Path, Verdict, dotted, failed, skipped
from .registry import rule

CRD = "CustomResourceDefinition"
MOST = 20
"""How many keys of one document are told."""


class Known:
    """The keys of a mapping that are kept.

    :param keys: key to what its value holds; ``None``: nothing that is looked at.
    :param rest: what values below any other key hold, for maps; ``None``: there is no other key.
    :param kept: other keys are kept as well.
    """

    __slots__ = ("kept", "keys", "rest")

    def __init__(
        self,
        keys: Mapping[str, Optional[Known]],
        rest: Optional[Known] = None,
        kept: bool = False,
    ) -> None:
        self.keys = keys
        self.rest = rest
        self.kept = kept


@rule(
    "RDMA-WL-018",
    "The API server keeps every key of the object",
    ERROR,
    "Correct the key, or remove it: the API server stores the object without it.",
)
def keys(document: Document, context: Context) -> Iterator[Verdict]:
    """Keys that are not in the schema are pruned, and of two equal keys one is lost; kubectl may not even warn."""
    for duplicate in document.duplicates:
        yield failed(
            duplicate.path,
            "The key %s stands twice; its value in line %d is lost." % (duplicate.path[-1], duplicate.first),
            expected="each key once",
            observed=dotted(duplicate.path),
            code="duplicate",
        )
    content = document.content
    places = _places(document, context)
    if not places:
        if not document.duplicates:
            yield skipped("The keys of this kind are not known; give its CustomResourceDefinition as well.")
        return
    told = 0
    for path, value, known in places:
        for where, above in _unknown(value, known, path, [(path, known)]):
            told += 1
            if told > MOST:
                yield failed((), "More than %d keys are not known." % MOST, code="more")
                return
            yield _verdict(where, above, content)


def _places(document: Document, context: Context) -> list[tuple[Path, Any, Known]]:
    """Parts of a document with the keys that they may have."""
    content = document.content
    if not isinstance(content, dict):
        return []
    version, kind = objects.text(content.get("apiVersion")), objects.kind(content)
    known = builtin().get((version, kind)) or custom(context).get((version, kind))
    if known is not None:
        return [((), content, known)]
    pods = builtin()["v1", "Pod"].keys["spec"] or Known({}, kept=True)
    return [
        (template.path, template.spec, pods)
        for template in context.templates(document)
        if not template.partial  # its keys are those of the kind that it adds to
    ]


def _unknown(
    value: Union[dict[str, Any], list[Any]], known: Known, path: Path, above: list[tuple[Path, Known]]
) -> Iterator[tuple[Path, list[tuple[Path, Known]]]]:
    """Paths of keys that are not known, each with the mappings around it, the outermost first."""
    if isinstance(value, dict):
        held, rest = known.keys, known.rest
        for key, entry in value.items():
            if key in held:
                below = held[key]
            elif rest is not None:
                below = rest
            elif known.kept:
                continue
            else:
                yield (*path, key), above
                continue
            if below is not None and isinstance(entry, (dict, list)):
                where = (*path, key)
                yield from _unknown(entry, below, where, [*above, (where, below)])
    else:
        for position, entry in enumerate(value):
            if isinstance(entry, (dict, list)):
                where = (*path, position)
                yield from _unknown(entry, known, where, [*above[:-1], (where, known)])


def _verdict(path: Path, above: list[tuple[Path, Known]], content: Any) -> Verdict:
    key = str(path[-1])
    here = above[-1][1]
    hint = ""
    near = [name for name in here.keys if name.lower() == key.lower()] or get_close_matches(
        key, here.keys, 1, 0.75
    )
    outer = [where for where, known in reversed(above[:-1]) if key in known.keys]
    inner = [name for name, known in here.keys.items() if known is not None and key in known.keys]
    where = dotted(path[:-1]) or "the object"
    if outer:
        near_by = "it is a key of %s." % (dotted(outer[0]) or "the object")
        hint = "Move %s: mind the indentation." % key
    elif near:
        near_by = "perhaps %s is meant." % near[0]
        hint = "Write %s in place of %s." % (near[0], key)
    elif inner:
        near_by = "it is a key of %s." % dotted((*path[:-1], inner[0]))
        hint = "Move %s: mind the indentation." % key
    else:
        near_by = ""
    message = "The key %s is not known in %s, so the API server drops it" % (key, where)
    return failed(
        path,
        message + ("; %s" % near_by if near_by else "."),
        hint=hint,
        expected=", ".join(sorted(here.keys)[:12]) + (", ..." if len(here.keys) > 12 else ""),
        observed=key,
        code="unknown-key",
    )


@lru_cache(maxsize=1)
def builtin() -> dict[tuple[str, str], Known]:
    """API version and kind to the keys of built-in kinds."""
    fields: dict[str, list[tuple[str, str]]] = {}
    for line in api_fields.TYPES.replace("\n ", " ").splitlines():
        name, *words = line.split()
        fields[name] = [(field, target) for field, _equals, target in [word.partition("=") for word in words]]
    made: dict[str, dict[str, Optional[Known]]] = {name: {} for name in fields}
    types = {name: Known(held) for name, held in made.items()}
    for name, pairs in fields.items():
        made[name].update([(field, types[target] if target else None) for field, target in pairs])
    return {kind: types[name] for kind, name in api_fields.KINDS.items()}


def custom(context: Context) -> dict[tuple[str, str], Known]:
    """API version and kind to the keys of the kinds whose definitions are among the documents."""
    found: Optional[dict[tuple[str, str], Known]] = context.memo.get("definitions")
    if found is None:
        found = context.memo["definitions"] = {}
        for document in context.of_kind(CRD):
            found.update(of_definition(document.content))
    return found


def of_definition(content: Any) -> dict[tuple[str, str], Known]:
    """API version and kind to the keys of what a CustomResourceDefinition defines."""
    spec = objects.mapping(content, "spec")
    kind = objects.text(objects.mapping(spec, "names").get("kind"))
    group = objects.text(spec.get("group"))
    found = {}
    for _position, version in objects.entries(spec.get("versions")):
        schema = objects.mapping(version, "schema", "openAPIV3Schema")
        known = _of_schema(schema, root=True) if schema and not spec.get("preserveUnknownFields") else None
        if known is not None:
            found["%s/%s" % (group, objects.text(version.get("name"))), kind] = known
    return found


def _of_schema(schema: Any, root: bool = False) -> Optional[Known]:
    """The keys of a structural schema; ``None``: nothing to look at."""
    while isinstance(schema, dict) and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    found: dict[str, Optional[Known]] = {
        key: _of_schema(held) for key, held in objects.mapping(schema, "properties").items()
    }
    if root or schema.get("x-kubernetes-embedded-resource"):
        found.update({"apiVersion": None, "kind": None, "metadata": builtin()["v1", "Pod"].keys["metadata"]})
    rest = schema.get("additionalProperties")
    kept = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or rest is True
    if isinstance(rest, dict):
        below = _of_schema(rest)
        if below is None:
            kept = True
        return Known(found, below, kept)
    return Known(found, None, kept)
