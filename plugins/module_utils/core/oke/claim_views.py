# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The configurations of claims, claim templates and device classes, as rules look at them. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable, Optional

from ..kube.claims import Claim, Request
from . import claim_rules, conditions
from .claim_rules import SELECTS_RDMA_NIC, SELECTS_RDMA_ONLY, ClaimRule, SelectorRule, Violation, Wording
from .conditions import Path
from .constants import DRIVER

CERTAIN, POSSIBLE = "certain", "possible"

Selectors = Callable[[Request], tuple[str, ...]]
"""The selectors of a request, those of its class with them as far as it is known."""


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


def views(claim: Claim, selectors: Selectors) -> list[View]:
    """The configurations for the driver in a claim, a claim template or a device class."""
    ours = [config for config in claim.configs if config.driver == DRIVER]
    texts = [(request, selectors(request)) for request in claim.requests] if ours else []
    found = []
    for config in ours:
        chosen = [text for request, known in texts if config.concerns(request) for text in known]
        found.append(
            View(
                (*config.path, "opaque", "parameters"),
                config.parameters,
                selects_rdma_nic(chosen),
                selects_rdma_only(chosen),
            )
        )
    return found


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
