# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that ``ansible-doc`` shows every plugin and role of an installed collection completely.

Usage: python tests/tools/plugin_docs.py FOLDER      FOLDER is .../ansible_collections/rdma/k8s

Prints each gap and, last, ``N passed, M failed``, counting plugins and roles.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

import tree

# Folder under plugins/ -> plugin type of ansible-doc. Action plugins have the documentation of their module.
TYPES = {
    "callback": "callback",
    "connection": "connection",
    "filter": "filter",
    "inventory": "inventory",
    "lookup": "lookup",
    "modules": "module",
    "test": "test",
}
ATTRIBUTES = ("check_mode", "diff_mode")
FOREIGN = frozenset(["option cache_prefix has no type"])
"""What Ansible's own fragments lack; the option is in every inventory plugin that can be cached."""


def ansible_doc(*words: str) -> Any:
    """Return what ansible-doc prints as JSON."""
    command = [str(tree.BIN / "ansible-doc"), "--json", *words]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"plugin_docs: ansible-doc {' '.join(words)} failed: {done.stderr.decode('utf-8', 'replace')}"
        )
    return json.loads(done.stdout)


def undescribed(values: dict[str, Any], below: str, where: str) -> list[str]:
    """Return a sentence for each entry of an option or return tree that has no description or no type."""
    gaps = []
    for name, value in values.items():
        path = f"{where} {name}"
        if not value.get("description"):
            gaps.append(f"{path} has no description")
        if not value.get("type"):
            gaps.append(f"{path} has no type")
        gaps += undescribed(value.get(below) or {}, below, path)
    return gaps


def plugin_gaps(kind: str, shown: dict[str, Any]) -> list[str]:
    """Return what is missing in the documentation of one plugin."""
    doc, returned, examples = shown.get("doc") or {}, shown.get("return"), shown.get("examples")
    gaps = [
        f"no {key}"
        for key in ("short_description", "description", "author", "version_added")
        if not doc.get(key)
    ]
    gaps += [
        gap for gap in undescribed(doc.get("options") or {}, "suboptions", "option") if gap not in FOREIGN
    ]
    if kind in ("module", "filter", "lookup", "test"):
        gaps += undescribed(returned, "contains", "return value") if returned else ["no RETURN"]
    if not str(examples or "").strip():
        gaps.append("no EXAMPLES")
    elif kind == "module" and not isinstance(yaml.safe_load(str(examples)), list):
        gaps.append("EXAMPLES is no list of tasks")
    elif kind == "inventory" and not all(
        isinstance(source, dict) and "plugin" in source for source in yaml.safe_load_all(str(examples))
    ):
        gaps.append("EXAMPLES are no sources of an inventory")
    if kind == "module":
        attributes = doc.get("attributes") or {}
        gaps += [
            f"attribute {name} is not documented"
            for name in ATTRIBUTES
            if not attributes.get(name, {}).get("support")
        ]
        gaps += [
            f"return value {name} does not say when"
            for name, value in (returned or {}).items()
            if not value.get("returned")
        ]
    return gaps


def role_gaps(shown: dict[str, Any]) -> list[str]:
    """Return what is missing in the argument specification of one role."""
    points = shown.get("entry_points") or {}
    gaps = [] if points else ["no entry point is documented"]
    for name, point in points.items():
        gaps += [
            f"entry point {name}: no {key}"
            for key in ("short_description", "description")
            if not point.get(key)
        ]
        gaps += undescribed(point.get("options") or {}, "options", f"entry point {name}: option")
    return gaps


def main(folder: Path) -> int:
    """Check the collection in `folder`."""
    passed = failed = 0
    for place, kind in TYPES.items():
        files = [
            path for path in sorted((folder / "plugins" / place).glob("*.py")) if path.stem != "__init__"
        ]
        names = [f"rdma.k8s.{path.stem}" for path in files]
        shown = ansible_doc("-t", kind, *names) if names else {}
        for name in names:
            gaps = plugin_gaps(kind, shown[name]) if shown.get(name) else ["ansible-doc shows nothing"]
            passed, failed = passed + (not gaps), failed + bool(gaps)
            print(
                "\n".join(
                    [
                        f"{kind} {name}: {'complete' if not gaps else 'incomplete'}",
                        *("  " + gap for gap in gaps),
                    ]
                )
            )
    roles = [f"rdma.k8s.{path.name}" for path in sorted((folder / "roles").glob("*")) if path.is_dir()]
    shown = ansible_doc("-t", "role", *roles) if roles else {}
    for name in roles:
        gaps = role_gaps(shown[name]) if shown.get(name) else ["ansible-doc shows nothing"]
        passed, failed = passed + (not gaps), failed + bool(gaps)
        print(
            "\n".join(
                [f"role {name}: {'complete' if not gaps else 'incomplete'}", *("  " + gap for gap in gaps)]
            )
        )
    if not passed + failed:
        print("the collection has no plugin and no role")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
