# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configurations and requests of claims, claim templates and device classes. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from . import claim_rules, conditions
from .claim_rules import SELECTS_RDMA_NIC, SELECTS_RDMA_ONLY, ClaimRule, SelectorRule, Violation, Wording
from .conditions import Path
from .constants import DRIVER

DEVICES: Mapping[str, Path] = {
    "ResourceClaim": ("spec", "devices"),
    "ResourceClaimTemplate": ("spec", "spec", "devices"),
    "DeviceClass": ("spec",),
}
"""Where the kinds carry requests (a class has none) and configurations."""

CERTAIN, POSSIBLE = "certain", "possible"


@dataclass(frozen=True)
class Request:
    """One request, or one alternative of it.

    :param name: of the request; :param alternative: of the entry of ``firstAvailable``, else empty.
    :param path: where it stands in the object.
    :param selectors: CEL texts, its own only.
    """

    name: str
    alternative: str
    path: Path
    device_class: str
    selectors: tuple[str, ...]

    def is_meant_by(self, names: list[Any]) -> bool:
        """A configuration with this list of requests is for it; an empty list means all."""
        return not names or self.name in names or "%s/%s" % (self.name, self.alternative) in names


@dataclass(frozen=True)
class View:
    """One configuration for the driver, with what the requests that it is for tell about the devices.

    :param path: of the parameters in the object.
    """

    path: Path
    parameters: Any
    rdma_nic: bool
    rdma_only: bool

    def to_dict(self) -> dict[str, Any]:
        """What the conditions of a scope look at."""
        return {"parameters": self.parameters, "rdma_nic": self.rdma_nic, "rdma_only": self.rdma_only}


def requests(content: Any, kind: str) -> list[Request]:
    """The requests of an object; a device class counts as one, for what it selects itself."""
    path = DEVICES[kind]
    devices = conditions.at(content, path)
    if kind == "DeviceClass":
        return [Request("", "", path, "", _selectors(devices))]
    return [
        request
        for position, entry in enumerate(_list(devices, "requests"))
        for request in _read(entry, (*path, "requests", position))
    ]


def _read(entry: Any, path: Path) -> Iterator[Request]:
    """One entry of ``requests``: ``exactly``, ``firstAvailable``, or the flat form of v1beta1."""
    name = _text(entry, "name")
    alternatives = _list(entry, "firstAvailable")
    for position, alternative in enumerate(alternatives):
        place = (*path, "firstAvailable", position)
        yield Request(
            name,
            _text(alternative, "name"),
            place,
            _text(alternative, "deviceClassName"),
            _selectors(alternative),
        )
    if not alternatives:
        exactly = conditions.at(entry, ("exactly",))
        place, holder = (path, entry) if exactly is None else ((*path, "exactly"), exactly)
        yield Request(name, "", place, _text(holder, "deviceClassName"), _selectors(holder))


def views(
    content: Any, kind: str, class_selectors: Optional[Mapping[str, tuple[str, ...]]] = None
) -> list[View]:
    """The configurations of an object that are for the driver.

    :param class_selectors: selectors of the device classes that are known; they count like those of a request.
    """
    path = DEVICES[kind]
    entries = _configurations(content, kind)
    if not entries:
        return []
    known = class_selectors or {}
    texts = [
        (request, request.selectors + known.get(request.device_class, ()))
        for request in requests(content, kind)
    ]
    found = []
    for position, entry in entries:
        names = _list(entry, "requests")
        chosen = [text for request, selectors in texts if request.is_meant_by(names) for text in selectors]
        found.append(
            View(
                (*path, "config", position, "opaque", "parameters"),
                conditions.at(entry, ("opaque", "parameters")),
                selects_rdma_nic(chosen),
                selects_rdma_only(chosen),
            )
        )
    return found


def parameters(content: Any, kind: str, request: Request) -> list[Any]:
    """The parameters for the driver in an object that are for a request."""
    return [
        conditions.at(entry, ("opaque", "parameters"))
        for _position, entry in _configurations(content, kind)
        if request.is_meant_by(_list(entry, "requests"))
    ]


def _configurations(content: Any, kind: str) -> list[tuple[int, Any]]:
    """The configurations for the driver, with their positions."""
    return [
        (position, entry)
        for position, entry in enumerate(_list(conditions.at(content, DEVICES[kind]), "config"))
        if conditions.at(entry, ("opaque", "driver")) == DRIVER
    ]


def selects_rdma_nic(selectors: Iterable[str]) -> bool:
    """Whether the selectors of a request and of its class choose an Ethernet RDMA NIC (F73)."""
    return _any_matches(SELECTS_RDMA_NIC, selectors)


def selects_rdma_only(selectors: Iterable[str]) -> bool:
    """Whether the selectors of a request and of its class choose a device without an interface (F84)."""
    return _any_matches(SELECTS_RDMA_ONLY, selectors)


def judge(view: View, rule: ClaimRule) -> tuple[str, Optional[Violation]]:
    """Whether a configuration breaks a rule: ``certain``, or ``possible`` when it depends on the device."""
    scope, seen = rule.scope, view.to_dict()
    if conditions.holds(scope.certain, seen):
        certainty = CERTAIN
    elif scope.possible is not None and conditions.holds(scope.possible, seen):
        certainty = POSSIBLE
    else:
        return "", None
    return certainty, claim_rules.first_violation(view.parameters, (rule,))


def breaks(rule: SelectorRule, selectors: tuple[str, ...]) -> bool:
    """Whether the selectors of a request break a rule."""
    return _any_matches(rule.mentions, selectors) and not _any_matches(rule.lacks, selectors)


def _any_matches(wording: Wording, texts: Iterable[str]) -> bool:
    return any(wording.is_in(text) for text in texts)


def _selectors(holder: Any) -> tuple[str, ...]:
    found = (conditions.at(entry, ("cel", "expression")) for entry in _list(holder, "selectors"))
    return tuple(text for text in found if isinstance(text, str))


def _list(value: Any, key: str) -> list[Any]:
    found = conditions.at(value, (key,))
    return found if isinstance(found, list) else []


def _text(value: Any, key: str) -> str:
    found = conditions.at(value, (key,))
    return found if isinstance(found, str) else ""
