# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which fields the definitions of a cluster have. Private to rdma.k8s: it may change with any release.

No version has every field of the guide (S91), and a field that the definition does not have is dropped without a word
(S92). So the definitions of the cluster decide, not the version that somebody believes to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from ..kube.objects import group, kind, mapping, name
from . import versions
from .issue import Issue, error, whole
from .multus_config import SPIDERPOOL, fields_of as known_fields
from .names import SRIOV
from .objects import CONFIG, POLICY, POOL

PLURALS = {
    POLICY: "sriovnetworknodepolicies.sriovnetwork.openshift.io",
    "SriovNetworkPoolConfig": "sriovnetworkpoolconfigs.sriovnetwork.openshift.io",
    POOL: "spiderippools.spiderpool.spidernet.io",
    CONFIG: "spidermultusconfigs.spiderpool.spidernet.io",
}
"""The definitions of the kinds that rails are made of."""
WITH_MTU, WITHOUT_MTU, WITH_OLD_NAMES = SPIDERPOOL, "1.1.0", "0.9.0"
"""A version for each set of field names that there has been (S91)."""
_PRESERVES = "x-kubernetes-preserve-unknown-fields"


class Fields(NamedTuple):
    """What the definition of SpiderMultusConfig tells: a version with the same fields, and the fields of ``sriov``."""

    version: str
    sriov: frozenset[str]


def fields_of(definition: Mapping[str, Any]) -> Optional[Fields]:
    """The fields of ``sriov`` in a definition; ``None``: it does not tell them."""
    for version in definition_versions(definition):
        spec = mapping(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
        sriov = mapping(spec, "sriov", "properties")
        if sriov:
            old = "rdmaIsolation" not in sriov and "enableRdma" in sriov
            told = WITH_OLD_NAMES if old else WITH_MTU if "mtu" in sriov else WITHOUT_MTU
            return Fields(told, frozenset(sriov))
    return None


def fields_known(version: str) -> frozenset[str]:
    """The fields of ``sriov`` in a version (S91)."""
    found = known_fields(SRIOV, versions.find(version))
    return frozenset() if found is None else found.known


def definition_versions(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The versions that are served."""
    listed = mapping(definition, "spec").get("versions")
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping) and entry.get("served"):
            yield entry


def judge(document: Mapping[str, Any], definitions: Sequence[Mapping[str, Any]]) -> list[Issue]:
    """What the server would drop or refuse of a document, by the definitions of the cluster.

    A kind that none of the definitions is about is one of Kubernetes itself, and says nothing here; one of the kinds
    of :data:`PLURALS` must have a definition.
    """
    called = kind(document)
    own = [entry for entry in definitions if _is_for(entry, document)]
    if not own:
        if called in PLURALS:
            message = "the cluster has no definition of %s: install %s" % (called, _maker(called))
            return [error("kind-not-served", "kind", message)]
        return []
    wanted = str(document.get("apiVersion")).rpartition("/")[2]
    for version in definition_versions(own[0]):
        if version.get("name") == wanted:
            schema = mapping(version, "schema", "openAPIV3Schema")
            return list(_object(document.get("spec"), mapping(schema, "properties", "spec"), "spec"))
    served = ", ".join([str(entry.get("name")) for entry in definition_versions(own[0])])
    message = "the cluster serves %s in the versions %s, not in %s" % (called, served, wanted)
    return [error("kind-not-served", "apiVersion", message)]


def _maker(called: str) -> str:
    return "Spiderpool" if called in (POOL, CONFIG) else "the SR-IOV operator (sriov.install of its chart)"


def _is_for(definition: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    spec = mapping(definition, "spec")
    return spec.get("group") == group(document) and mapping(spec, "names").get("kind") == kind(document)


def _object(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[Issue]:
    """Fields that the schema does not have, required ones that are missing, and values out of its bounds."""
    if not schema or schema.get(_PRESERVES) or value is None:
        return
    if isinstance(value, Mapping):
        yield from _members(value, schema, at)
    elif isinstance(value, list):
        below = mapping(schema, "items")
        for position, entry in enumerate(value):
            yield from _object(entry, below, "%s[%d]" % (at, position))
    else:
        yield from _value(value, schema, at)


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], at: str) -> Iterator[Issue]:
    known, others = mapping(schema, "properties"), schema.get("additionalProperties")
    for key, member in value.items():
        place = "%s.%s" % (at, key)
        if key in known:
            yield from _object(member, known[key], place)
        elif isinstance(others, Mapping):
            yield from _object(member, others, place)
        elif not others and (known or schema.get("type") == "object"):
            message = "the cluster's definition has no such field, and would drop it without a word"
            yield error("field-pruned", place, message)
    required = schema.get("required")
    for key in required if isinstance(required, list) else []:
        if key not in value:
            yield error("field-required", "%s.%s" % (at, key), "the cluster's definition requires it")


def _value(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[Issue]:
    if schema.get("x-kubernetes-int-or-string"):
        return
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": whole(value) is not None,
        "number": isinstance(value, (int, float)) and not isinstance(value, bool),
    }
    wanted = schema.get("type")
    if not fits.get(str(wanted), True):
        yield error("field-type", at, "the cluster's definition has a %s here, found %r" % (wanted, value))
        return
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        message = "the cluster's definition has one of %s here, found %r" % (
            ", ".join([str(entry) for entry in choices]),
            value,
        )
        yield error("field-value", at, message)
    number = whole(value)
    low, high = schema.get("minimum"), schema.get("maximum")
    if number is not None and (
        (isinstance(low, (int, float)) and number < low) or (isinstance(high, (int, float)) and number > high)
    ):
        message = "the cluster's definition has %s to %s here, found %d" % (
            "-" if low is None else low,
            "-" if high is None else high,
            number,
        )
        yield error("field-value", at, message)


def missing(definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The definitions of :data:`PLURALS` that a cluster does not have."""
    there = {name(entry) for entry in definitions}
    return [plural for plural in PLURALS.values() if plural not in there]
