# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lies beside the tarball of a release: its bill of materials in CycloneDX form, and the checksums of both.

The same tarball gives the same bytes: there is no time in it, and its number follows from its content.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from pathlib import Path
from typing import Any

SCHEMA = "http://cyclonedx.org/schema/bom-1.5.schema.json"
SUMS = "SHA256SUMS"
REQUIREMENTS = {
    "requirements.txt": "required",
    "requirements-node.txt": "optional",
    "requirements-cloud.txt": "optional",
}
_NAME = re.compile(r"(?P<name>[a-z0-9]+-[a-z0-9]+)-(?P<version>\d+\.\d+\.\d+)\.tar\.gz")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def libraries(root: Path) -> list[dict[str, Any]]:
    """Return the components that the requirements name. Their versions are the least ones, since none is delivered."""
    found: dict[str, dict[str, Any]] = {}
    for file, scope in REQUIREMENTS.items():
        for line in (root / file).read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            name, version = line.split(">=")
            purl = f"pkg:pypi/{name.lower()}"
            component = {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "purl": purl,
                "scope": scope,
                "properties": [{"name": "rdma.k8s:version", "value": f">={version}"}],
            }
            found.setdefault(name, component)
    return [found[name] for name in sorted(found)]


def bill(tarball: Path, root: Path) -> dict[str, Any]:
    """Return the bill of materials of a tarball: the collection, delivered, and the libraries, not delivered."""
    named = _NAME.fullmatch(tarball.name)
    if named is None:
        raise SystemExit(f"release: {tarball.name} is not named NAMESPACE-NAME-VERSION.tar.gz.")
    own = f"pkg:generic/{named['name']}@{named['version']}"
    components = libraries(root)
    document: dict[str, Any] = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": named["name"],
                "version": named["version"],
                "purl": own,
                "licenses": [{"license": {"id": "GPL-3.0-or-later"}}],
                "hashes": [{"alg": "SHA-256", "content": digest(tarball)}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": own, "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"], "dependsOn": []} for component in components),
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def write(tarball: Path, root: Path) -> list[Path]:
    """Write the bill of materials and the checksums beside a tarball; return their paths."""
    sbom = tarball.with_name(tarball.name.removesuffix(".tar.gz") + ".cdx.json")
    sbom.write_text(json.dumps(bill(tarball, root), indent=1) + "\n", encoding="utf-8")
    sums = tarball.with_name(SUMS)
    sums.write_text("".join(f"{digest(path)}  {path.name}\n" for path in (tarball, sbom)), encoding="utf-8")
    return [sbom, sums]
