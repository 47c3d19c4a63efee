# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the real ``ansible-inventory`` on sources of the plugin ``rdma.k8s.nodes``, in a directory of its own."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ansible_collections.rdma.k8s.tests.support.playbook import BIN, LIMIT, Controller

SOURCE = "prod.rdma_k8s.yml"


@dataclass(frozen=True)
class Listed:
    """What a run printed."""

    code: int
    output: str
    errors: str

    @property
    def data(self) -> dict[str, Any]:
        """The inventory of ``--list``. That a text may not be a template is not part of the value here."""
        found = _plain(json.loads(self.output))
        assert isinstance(found, dict)
        return found

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        """The variables of each host."""
        found = self.data["_meta"]["hostvars"]
        assert isinstance(found, dict)
        return found

    @property
    def said(self) -> str:
        """What a person reads beside the inventory, on one line: Ansible wraps it."""
        return " ".join(self.errors.split())

    def group(self, name: str) -> list[str]:
        """The hosts of a group; none when there is no such group."""
        return list(self.data.get(name, {}).get("hosts", []))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            value["__ansible_unsafe"]
            if list(value) == ["__ansible_unsafe"]
            else {k: _plain(v) for k, v in value.items()}
        )
    return [_plain(entry) for entry in value] if isinstance(value, list) else value


@dataclass
class InventoryRun:
    """A directory with sources."""

    controller: Controller
    folder: Path
    kubeconfig: str

    def source(self, name: str = SOURCE, **options: Any) -> Path:
        """Write a source; the kubeconfig is that of the test unless the options say something else."""
        options = {"plugin": "rdma.k8s.nodes", "kubeconfig": self.kubeconfig, **options}
        path = self.folder / name
        path.write_text(yaml.safe_dump({k: v for k, v in options.items() if v is not None}), encoding="utf-8")
        return path

    def __call__(self, *words: str, sources: tuple[str, ...] = (SOURCE,), **env: str) -> Listed:
        """Run it: ``--list`` without other words."""
        command = [str(BIN / "ansible-inventory"), *(words or ("--list",))]
        for name in sources:
            command += ["-i", name]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.controller.environment(COLUMNS="1000", **env),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return Listed(done.returncode, done.stdout, re.sub(r"\x1b\[[0-9;]*m", "", done.stderr))
