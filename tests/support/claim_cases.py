# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims with the verdict of each part that judges them: lint, admission, provider.

A case in ``tests/support/claims/*.yml`` is one claim, claim template or device class in short:

``name``, ``why``
    What it is, and the fact that decides.
``parameters``, or ``config``
    One configuration for all requests, or the list of configurations, each with ``requests``, ``driver``,
    ``parameters``.
``select``, ``selectors``, or ``requests``
    One selector, or the selectors, of the only request, or the list of requests, each with ``name`` and ``select``, or
    with ``first``: its alternatives.
``driver``
    Of the configuration in ``parameters``, ``dra.net`` without.
``kinds``
    The kinds of objects that it is tried as, all three without.
``place``
    Where below the devices the rule is broken, for cases in which that is not the first configuration.
``lint``
    Code of each rule that is broken: ``fail`` or ``warn``, or both with a plus.
``admission``
    The same: ``deny`` (the action that the user wants) or ``warn``.
``provider``
    ``ok`` or the error code for the configurations as they are. ``of the device``: for the configurations after the
    profile of the device was merged in (F43, F110). ``n/a``: why it has no say.

The check catalogue (``validate``) judges nodes and fleets, not claims, so it has no say in any of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FILES = Path(__file__).resolve().parent / "claims"
KINDS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
PREFIX = {
    "ResourceClaim": "spec.devices",
    "ResourceClaimTemplate": "spec.spec.devices",
    "DeviceClass": "spec",
}
CLASS = "some-nic"


@dataclass(frozen=True)
class Case:
    """A case, tried as one kind of object. ``file`` is the name of its file without the ending."""

    file: str
    name: str
    kind: str
    content: dict[str, Any]
    lint: dict[str, str]
    admission: dict[str, str]
    provider: Any
    place: str = ""
    configs: tuple[Any, ...] = field(default=())

    @property
    def id(self) -> str:
        return "%s: %s: %s" % (self.file, self.name, self.kind)

    def counts(self, code: str) -> bool:
        """The cases of the driver list only the rules about every configuration."""
        return self.file != "driver" or code.startswith("config_")


def claim_cases() -> list[Case]:
    """All cases of claims, each once for every kind of object that it names."""
    found = []
    for path in sorted(FILES.glob("*.yml")):
        if path.stem != "pods":
            for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
                found += [_case(path.stem, kind, entry) for kind in entry.get("kinds", KINDS)]
    return found


def pod_cases() -> list[dict[str, Any]]:
    """The cases of pods: name, why, spec, lint (check to status), admission (code to verdict)."""
    return list(yaml.safe_load((FILES / "pods.yml").read_text(encoding="utf-8")))


def _case(file: str, kind: str, entry: dict[str, Any]) -> Case:
    configs = [{"parameters": entry["parameters"]}] if "parameters" in entry else entry["config"]
    default = entry.get("driver", "dra.net")
    devices: dict[str, Any] = {}
    if configs:
        devices["config"] = [
            {
                **(
                    {"requests": config["requests"]} if "requests" in config and kind != "DeviceClass" else {}
                ),
                "opaque": {"driver": config.get("driver", default), "parameters": config["parameters"]},
            }
            for config in configs
        ]
    selectors = _selectors(entry)
    if kind != "DeviceClass":
        devices["requests"] = [_request(request) for request in entry.get("requests", [])] or [
            {"name": "nic", "exactly": {"deviceClassName": CLASS, **selectors}}
        ]
    spec = {
        "ResourceClaim": {"devices": devices},
        "ResourceClaimTemplate": {"spec": {"devices": devices}},
        "DeviceClass": {**devices, **selectors},
    }[kind]
    return Case(
        file,
        entry["name"],
        kind,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "case", **({} if kind == "DeviceClass" else {"namespace": "default"})},
            "spec": spec,
        },
        entry["lint"],
        entry["admission"],
        entry["provider"],
        "%s.%s" % (PREFIX[kind], entry.get("place", "config[0].opaque.parameters")),
        tuple(config["parameters"] for config in configs if config.get("driver", default) == "dra.net"),
    )


def _request(request: dict[str, Any]) -> dict[str, Any]:
    if "first" in request:
        alternatives = [
            {"name": entry["name"], "deviceClassName": CLASS, **_selectors(entry)}
            for entry in request["first"]
        ]
        return {"name": request["name"], "firstAvailable": alternatives}
    return {"name": request["name"], "exactly": {"deviceClassName": CLASS, **_selectors(request)}}


def _selectors(entry: dict[str, Any]) -> dict[str, Any]:
    texts = [entry["select"]] if "select" in entry else entry.get("selectors", [])
    return {"selectors": [{"cel": {"expression": text}} for text in texts]} if texts else {}
