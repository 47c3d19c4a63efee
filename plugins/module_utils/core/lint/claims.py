# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: what claims for DRANET say, by the one table of claim rules. Private to rdma.k8s."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..finding import ERROR, INFO, SKIP
from ..kube import objects
from ..kube.claims import DEVICES
from ..kube.documents import Document
from ..oke import claim_rules, claim_views
from ..oke.claim_rules import NODE_LEVEL_SELECTOR, POSSIBLE
from ..oke.constants import DRIVER
from . import devices
from .model import Context, Verdict, failed, skipped, warned
from .registry import rule

NO_CONFIGURATION = "It has no configuration for the driver %s." % DRIVER
NO_REQUEST = "It has no request."


@rule(
    claim_rules.WL_CLAIM,
    "The profile and the driver accept the configuration",
    ERROR,
    "Remove what the message names; an RDMA NIC needs no configuration.",
    kinds=DEVICES,
)
def configuration(document: Document, context: Context) -> Iterator[Verdict]:
    """What the profile (F32) and the driver (F106 to F108) refuse when the claim is prepared."""
    bare = list(_without_addresses(document, context)) if _provider(context) == "none" else []
    yield from bare
    for verdict in _configurations(document, context, claim_rules.WL_CLAIM):
        if not bare or verdict.status != SKIP:
            yield verdict


@rule(
    claim_rules.WL_ROUTING,
    "The profile sets the routing of the child",
    INFO,
    "Check that the routing leads to the whole child range, or remove it.",
    kinds=DEVICES,
)
def routing(document: Document, context: Context) -> Iterator[Verdict]:
    """A claim with routes, rules or a VRF gets none from the profile (F38)."""
    yield from _configurations(document, context, claim_rules.WL_ROUTING)


@rule(
    claim_rules.WL_INFINIBAND,
    "Claims for native InfiniBand configure no interface",
    ERROR,
    "Select by rdmaDevice without a configuration, or an Ethernet RDMA NIC by ifName.",
    kinds=DEVICES,
)
def infiniband(document: Document, context: Context) -> Iterator[Verdict]:
    """A device that is selected by rdmaDevice has no interface (F84), so nothing of one can be set (F109)."""
    yield from _configurations(document, context, claim_rules.WL_INFINIBAND)


@rule(
    claim_rules.WL_SELECTOR,
    "A selector tells the RDMA NICs from the other devices of the node",
    ERROR,
    NODE_LEVEL_SELECTOR.hint,
    kinds=DEVICES,
)
def selectors(document: Document, context: Context) -> Iterator[Verdict]:
    """An attribute of the node is on each of its devices (F70), so alone it may choose any of them."""
    kind = objects.kind(document.content)
    requests = devices.claim_of(document, context).requests
    if not requests:
        yield skipped(NO_REQUEST)
    for request in requests:
        known = context.device_class(request.device_class) is not None
        if claim_views.breaks(NODE_LEVEL_SELECTOR, devices.selectors_of(request, context)):
            say = failed if kind != "DeviceClass" and (known or context.complete) else warned
            yield say(
                (*request.path, "selectors"),
                NODE_LEVEL_SELECTOR.message,
                hint=NODE_LEVEL_SELECTOR.hint,
                code=NODE_LEVEL_SELECTOR.code,
            )


def _without_addresses(document: Document, context: Context) -> Iterator[Verdict]:
    """Requests for RDMA NICs to which no configuration gives an address: without a provider nobody does (F105)."""
    claim = devices.claim_of(document, context)
    for request in claim.requests if objects.kind(document.content) != "DeviceClass" else ():
        selectors_ = devices.selectors_of(request, context)
        if not claim_views.selects_rdma_nic(selectors_) or claim_views.selects_rdma_only(selectors_):
            continue
        found = list(claim.parameters(request, DRIVER))
        of_class = context.device_class(request.device_class)
        if of_class is not None:
            its = devices.claim_of(of_class, context)
            found += its.parameters(its.requests[0], DRIVER)
        if not any(_brings_addresses(objects.mapping(entry, "interface")) for entry in found):
            yield failed(
                request.path,
                "Request %s is for an RDMA NIC and brings no address, and no provider resolves a profile."
                % (request.name or "without a name"),
                hint="Set interface.addresses for the request, or let a provider resolve the profile.",
                code="addresses_missing",
            )


def _brings_addresses(interface: dict[str, Any]) -> bool:
    """Whether an interface has addresses, gets them by itself, is to have none, or is the NIC of the host."""
    return (
        bool(interface.get("addresses"))
        or interface.get("dhcp") is True
        or interface.get("addressing") in ("DHCP", "SLAAC", "Unnumbered")
        or interface.get("type") == "Passthrough"
    )


def _configurations(document: Document, context: Context, check: str) -> Iterator[Verdict]:
    """What the rules of a check say of each configuration of a claim, a template or a class."""
    claim = devices.claim_of(document, context)
    views = claim_views.views(claim, lambda request: devices.selectors_of(request, context))
    if not views:
        yield skipped(NO_CONFIGURATION)
    for view in views:
        for entry in claim_rules.RULES:
            if entry.check == check and claim_rules.applies(entry, _provider(context)):
                certainty, violation = claim_views.judge(view, entry)
                if violation is None:
                    continue
                sure = certainty == claim_views.CERTAIN
                say = failed if sure and entry.severity == ERROR else warned
                yield say(
                    (*view.path, *violation.path),
                    entry.message if sure else "%s %s" % (entry.message, POSSIBLE),
                    hint=entry.hint,
                    observed=violation.found,
                    severity=entry.severity,
                    code=entry.code,
                )


def _provider(context: Context) -> str:
    """Who resolves profiles in the cluster that the documents are for."""
    return str(context.options.get("profile_provider", claim_rules.PROFILE_PROVIDERS[0]))
