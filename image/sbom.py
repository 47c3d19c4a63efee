# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bill of materials of the image in CycloneDX form, made from the status of dpkg.

python3 sbom.py STATUS VERSION FILE    STATUS is var/lib/dpkg/status of the root file system, VERSION that of the image

The same packages give the same bytes: there is no time in it, and its number follows from its content.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.parse
import uuid
from pathlib import Path
from typing import Any

SCHEMA = "http://cyclonedx.org/schema/bom-1.5.schema.json"
DISTRIBUTION = "debian"
INSTALLED = "install ok installed"


def packages(status: str) -> list[dict[str, str]]:
    """The installed packages of a dpkg status, sorted by name; of a field only its first line."""
    found = []
    for paragraph in re.split(r"\n\n+", status.strip()):
        lines = (line for line in paragraph.splitlines() if line[:1].strip())
        fields = {
            key: value.strip() for key, colon, value in (line.partition(":") for line in lines) if colon
        }
        if fields.get("Status") == INSTALLED:
            found.append(fields)
    return sorted(found, key=lambda fields: (fields["Package"], fields["Architecture"]))


def reference(fields: dict[str, str]) -> str:
    """The package URL of a package."""
    version = urllib.parse.quote(fields["Version"], safe="")
    return f"pkg:deb/{DISTRIBUTION}/{fields['Package']}@{version}?arch={fields['Architecture']}"


def needs(fields: dict[str, str], providers: dict[str, str]) -> list[str]:
    """References of the packages that a package depends on; of alternatives the first that is there."""
    found = set()
    text = ",".join(fields[key] for key in ("Pre-Depends", "Depends") if key in fields)
    for group in filter(None, text.split(",")):
        names = (re.split(r"[\s:(]", part.strip(), maxsplit=1)[0] for part in group.split("|"))
        there = next((providers[name] for name in names if name in providers), None)
        if there:
            found.add(there)
    return sorted(found)


def provided(fields: dict[str, str]) -> list[str]:
    """Names under which a package is known: its own and those that it provides."""
    more = [part.split("(")[0].strip() for part in fields.get("Provides", "").split(",")]
    return [fields["Package"], *filter(None, more)]


def document(status: str, version: str) -> dict[str, Any]:
    """The bill of materials of an image of ours with these packages."""
    found = packages(status)
    own = f"pkg:generic/rdma-k8s@{version}"
    providers: dict[str, str] = {}
    for fields in found:
        for name in provided(fields):
            providers.setdefault(name, reference(fields))
    # A package is known by its own name first.
    providers.update({fields["Package"]: reference(fields) for fields in found})
    components = [
        {
            "type": "library",
            "bom-ref": reference(fields),
            "name": fields["Package"],
            "version": fields["Version"],
            "purl": reference(fields),
            "properties": [{"name": "dpkg:source", "value": fields.get("Source", fields["Package"])}],
        }
        for fields in found
    ]
    dependencies = [{"ref": reference(fields), "dependsOn": needs(fields, providers)} for fields in found]
    made: dict[str, Any] = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": own,
                "name": "rdma-k8s",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "GPL-3.0-or-later"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [reference(fields) for fields in found]}, *dependencies],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return {**made, "serialNumber": f"urn:uuid:{number}"}


def text(status: str, version: str) -> str:
    """The bill of materials as the text of a file."""
    return json.dumps(document(status, version), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    source, release, target = sys.argv[1:]
    Path(target).write_text(text(Path(source).read_text(encoding="utf-8"), release), encoding="utf-8")
