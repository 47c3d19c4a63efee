# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the fields of built-in kinds from the OpenAPI v3 of a real API server.

Usage: python tests/tools/api_fields.py VERSION FOLDER

FOLDER has one file for each API group that is read: ``core.json`` from ``kubectl get --raw /openapi/v3/api/v1``,
``GROUP.json`` from ``/openapi/v3/apis/GROUP/v1``. Only names are taken. The module is written to
``plugins/module_utils/core/lint/api_fields.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "plugins" / "module_utils" / "core" / "lint" / "api_fields.py"
GROUPS = ("core", "apps", "batch", "resource.k8s.io")
KINDS = {
    "core": ("Pod", "PodTemplate", "ReplicationController"),
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch": ("CronJob", "Job"),
    "resource.k8s.io": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"),
}
UNREAD = {"status", "managedFields"}
"""Fields that the server writes by itself; what is below them is not looked at."""

WIDTH = 110
HEAD = '''\
# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields of the built-in kinds that the lint looks at. Private to rdma.k8s: it may change with any release.

Written by tests/tools/api_fields.py from the OpenAPI v3 of a real API server; do not edit.

A line of ``TYPES`` is a type and its fields, ``field=Type`` where the field holds values of another type; a line that
begins with a space goes on.
"""

from __future__ import annotations

VERSION = "%s"
"""The release of Kubernetes."""

KINDS = {
%s}
"""API version and kind to the type."""

TYPES = """\\
%s"""
'''


class SchemaError(Exception):
    """The OpenAPI has something that the compact form cannot say."""


def module(version: str, documents: dict[str, Any]) -> str:
    """The text of the module.

    :param documents: group to its OpenAPI v3 document.
    """
    types: dict[str, dict[str, str]] = {}
    kinds = []
    for group in GROUPS:
        schemas = documents[group]["components"]["schemas"]
        for kind in KINDS[group]:
            (name,) = [name for name, schema in schemas.items() if _is_kind(schema, group, kind)]
            _take(name, schemas, types)
            api_version = "v1" if group == "core" else group + "/v1"
            kinds.append('    ("%s", "%s"): "%s",\n' % (api_version, kind, _short(name)))
    lines = "".join([_line(name, types[name]) for name in sorted(types)])
    return HEAD % (version, "".join(kinds), lines)


def _is_kind(schema: dict[str, Any], group: str, kind: str) -> bool:
    wanted = {"group": "" if group == "core" else group, "kind": kind, "version": "v1"}
    return wanted in schema.get("x-kubernetes-group-version-kind", ())


def _short(name: str) -> str:
    """``core.Pod`` of ``io.k8s.api.core.v1.Pod``."""
    group, _version, kind = name.split(".")[-3:]
    return "%s.%s" % (group, kind)


def _take(name: str, schemas: dict[str, Any], types: dict[str, dict[str, str]]) -> bool:
    """Take a type with all that it holds; false when it has no fields of its own."""
    properties = schemas[name].get("properties")
    if not properties:
        return False
    if _short(name) in types:
        return True
    fields = types[_short(name)] = {}
    for field, schema in properties.items():
        target = _reference(schema, "%s.%s" % (name, field))
        read = bool(target) and field not in UNREAD and _take(target, schemas, types)
        fields[field] = _short(target) if read else ""
    return True


def _reference(schema: dict[str, Any], where: str) -> str:
    """The type that a field holds, by itself or in a list; empty: none."""
    if "properties" in schema or "oneOf" in schema or "anyOf" in schema:
        raise SchemaError("%s has a form that is not expected" % where)
    held = schema.get("items", schema)
    for entry in [held, *held.get("allOf", ())]:
        if "$ref" in entry:
            return str(entry["$ref"]).rpartition("/")[2]
    values = schema.get("additionalProperties", {})
    if isinstance(values, dict) and ("$ref" in values or "allOf" in values):
        target = str(values.get("$ref") or values["allOf"][0]["$ref"]).rpartition("/")[2]
        if target.rpartition(".")[2] not in ("Quantity", "RawExtension"):
            raise SchemaError("%s is a map of %s" % (where, target))
    return ""


def _line(name: str, fields: dict[str, str]) -> str:
    words = [name] + ["%s=%s" % pair if pair[1] else pair[0] for pair in sorted(fields.items())]
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += " " + word
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the module."""
    version, folder = sys.argv[1], Path(sys.argv[2])
    documents = {
        group: json.loads((folder / (group + ".json")).read_text(encoding="utf-8")) for group in GROUPS
    }
    FILE.write_text(module(version, documents), encoding="utf-8")
    print("%s: %d bytes" % (FILE.name, FILE.stat().st_size))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
