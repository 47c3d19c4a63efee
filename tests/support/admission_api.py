# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask an API server what its admission policies say of an object, without storing it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes.client
import kubernetes.config

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.admission import SEPARATOR

PATHS = {
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "Pod": "/api/v1/namespaces/default/pods",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "CronJob": "/apis/batch/v1/namespaces/default/cronjobs",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
}

_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_POLICY = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']*)' with binding '[^']*': (.*)", re.DOTALL
)
_CODE = re.compile(r"\((RDMA-[A-Z]+-[0-9]+), ([a-z0-9_]+)\)$")


class Told(NamedTuple):
    """What a policy tells of one rule: the name of the policy, the code of the rule, and the whole text."""

    policy: str
    code: str
    text: str


class Api:
    """An API server."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client = kubernetes.config.new_client_from_config(str(kubeconfig))

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def create(self, content: dict[str, Any], dry_run: bool = True) -> tuple[int, list[Told], str]:
        """Create an object: the status, what the policies warn of, and the message of a refusal."""
        path = PATHS[content["kind"]] + "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.send("POST", path, content)

    def send(self, method: str, path: str, content: Any) -> tuple[int, list[Told], str]:
        """Send a document."""
        configuration = self._client.configuration
        answer = self._client.rest_client.pool_manager.request(
            method,
            configuration.host + path,
            # As kubectl writes it: opaque parameters are compared byte by byte when a claim is changed.
            body=json.dumps(content, separators=(",", ":"), sort_keys=True),
            headers={"Content-Type": "application/json"},
            timeout=30,
        )
        told = []
        for header in answer.headers.getlist("Warning"):
            for text in _WARNING.findall(header):
                found = _POLICY.match(re.sub(r"\\(.)", r"\1", text))
                for part in found.group(2).split(SEPARATOR) if found else ():
                    code = _CODE.search(part)
                    told.append(Told(found.group(1), code.group(2) if code else "", part))
        body = json.loads(answer.data)
        return answer.status, told, body.get("message", "") if answer.status >= 400 else ""


def verdicts(told: list[Told], prefix: str) -> dict[str, str]:
    """Code to verdict: ``deny`` for the policies that take the user's action, else ``warn``."""
    found: dict[str, set[str]] = {}
    for entry in told:
        assert entry.policy.startswith(prefix), entry
        found.setdefault(entry.code, set()).add("warn" if entry.policy.endswith("-advice") else "deny")
    return {code: "+".join(sorted(words)) for code, words in found.items()}
