# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading claims for devices, of ResourceClaims and templates. Private to rdma.k8s: it may change with any release.

Both forms of the API are read: ``exactly`` and ``firstAvailable`` of ``resource.k8s.io/v1``, and the flat requests of
its beta versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Optional

from . import objects

Path = tuple[Any, ...]

CLAIM_KINDS = frozenset(("ResourceClaim", "ResourceClaimTemplate"))


@dataclass(frozen=True)
class Request:
    """A request of a claim, or one of the alternatives of a request (``firstAvailable``).

    :param name: of the request, without that of the alternative.
    :param expressions: CEL expressions of its selectors.
    :param count: how many devices, ``None``: all that match.
    :param alternative: name of the alternative, empty when there is only one way.
    """

    name: str
    path: Path
    device_class: str
    expressions: tuple[str, ...]
    count: Optional[int] = 1
    alternative: str = ""


class Config(NamedTuple):
    """Parameters for a driver; ``requests`` empty: for all requests."""

    path: Path
    requests: tuple[str, ...]
    driver: str
    parameters: Any

    def concerns(self, request: Request) -> bool:
        full = "%s/%s" % (request.name, request.alternative)
        return not self.requests or request.name in self.requests or full in self.requests


class Constraint(NamedTuple):
    """Devices of these requests (empty: of all) have the same value of an attribute."""

    path: Path
    requests: tuple[str, ...]
    attribute: str

    def concerns(self, request: Request) -> bool:
        return not self.requests or request.name in self.requests


@dataclass(frozen=True)
class Claim:
    """What a claim asks for."""

    requests: tuple[Request, ...]
    configs: tuple[Config, ...]
    constraints: tuple[Constraint, ...]

    def parameters(self, request: Request, driver: str) -> Iterator[dict[str, Any]]:
        """The parameters for a driver that concern a request."""
        for config in self.configs:
            if config.driver == driver and config.concerns(request) and isinstance(config.parameters, dict):
                yield config.parameters


DEVICES: Mapping[str, Path] = {
    "ResourceClaim": ("spec", "devices"),
    "ResourceClaimTemplate": ("spec", "spec", "devices"),
    "DeviceClass": ("spec",),
}
"""Where the kinds carry requests (a class has none) and configurations."""


def read(content: Any) -> Claim:
    """The claim of a ResourceClaim or of a ResourceClaimTemplate, or what a DeviceClass adds to claims.

    Empty when the object holds none. A class counts as one request without a name, for what it selects itself.
    """
    kind = objects.kind(content)
    keys = DEVICES[
        "ResourceClaimTemplate" if kind.endswith("Template") else kind if kind in DEVICES else "ResourceClaim"
    ]
    devices = objects.mapping(content, *keys)
    configs = []
    for position, entry in objects.entries(devices.get("config")):
        opaque = objects.mapping(entry, "opaque")
        path = (*keys, "config", position)
        driver = objects.text(opaque.get("driver"))
        configs.append(Config(path, _texts(entry.get("requests")), driver, opaque.get("parameters")))
    constraints = [
        Constraint(
            (*keys, "constraints", position),
            _texts(entry.get("requests")),
            objects.text(entry.get("matchAttribute")),
        )
        for position, entry in objects.entries(devices.get("constraints"))
    ]
    if kind == "DeviceClass":
        requests: tuple[Request, ...] = (Request("", keys, "", expressions(devices)),)
    else:
        requests = tuple(_requests(devices, (*keys, "requests")))
    return Claim(requests, tuple(configs), tuple(constraints))


def _texts(values: Any) -> tuple[str, ...]:
    return tuple([value for value in values if isinstance(value, str)]) if isinstance(values, list) else ()


def _requests(devices: dict[str, Any], path: Path) -> Iterator[Request]:
    for position, entry in objects.entries(devices.get("requests")):
        name, here = objects.text(entry.get("name")), (*path, position)
        if isinstance(entry.get("exactly"), dict):
            yield _request(name, (*here, "exactly"), entry["exactly"])
        elif isinstance(entry.get("firstAvailable"), list) and entry["firstAvailable"]:
            for number, way in objects.entries(entry["firstAvailable"]):
                yield _request(name, (*here, "firstAvailable", number), way, objects.text(way.get("name")))
        else:
            yield _request(name, here, entry)


def _request(name: str, path: Path, entry: dict[str, Any], alternative: str = "") -> Request:
    count = entry.get("count", 1)
    if entry.get("allocationMode") == "All":
        count = None
    elif not isinstance(count, int) or isinstance(count, bool):
        count = 1
    device_class = objects.text(entry.get("deviceClassName"))
    return Request(name, path, device_class, expressions(entry), count, alternative)


def expressions(holder: Any) -> tuple[str, ...]:
    """The CEL expressions of the ``selectors`` of a request, or of the ``spec`` of a DeviceClass."""
    return tuple(
        [
            expression
            for _position, entry in objects.entries(objects.mapping(holder).get("selectors"))
            for expression in [objects.mapping(entry, "cel").get("expression")]
            if isinstance(expression, str)
        ]
    )


_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']|["']([^"']+)["']\s*==\s*device\.driver""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[\??["']([^"']+)["']\]\s*(?:\.\??|\[\??["'])(\w+)(?:["']\])?"""
    r"""(?:\.orValue\([^)]*\))?"""
    r"""(?:\s*==\s*(?:["']([^"']*)["']|(true|false)\b)|\s+in\s+\[([^\]]*)\])?"""
)
_TEXT = re.compile(r"""["']([^"']*)["']""")


def driver(expression: str) -> str:
    """The driver that an expression asks for; empty: it names none."""
    found = _DRIVER.search(expression)
    return (found[1] or found[2]) if found else ""


@lru_cache(maxsize=4096)
def attributes(found: tuple[str, ...]) -> Mapping[str, set[str]]:
    """The attributes that expressions speak of (``dra.net/ifName``), each with the texts to which it is compared.

    An attribute is written as a field or as a key, either of them also as optional; true and false are texts here.
    """
    named: dict[str, set[str]] = {}
    for expression in found:
        for domain, name, equal, truth, among in _ATTRIBUTE.findall(expression):
            values = named.setdefault("%s/%s" % (domain, name), set())
            if equal or truth:
                values.add(equal or truth)
            values.update(_TEXT.findall(among))
    return named
