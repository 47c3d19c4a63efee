# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the nodes of a fleet should be like. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from functools import cached_property
from typing import Any, Optional

from .. import codec
from ..ack import fabric_ip, names
from ..errors import RdmaError
from ..finding import ERROR, SEVERITIES, Waiver
from ..net import Prefix, parse_prefix
from ..oke import networks, shapes
from ..oke.networks import NetworkDocument
from ..roce_qos import Wish, wish
from ..spiderpool import names as spiderpool

OKE, SPIDERPOOL, ACK = TARGETS = ("oke_dranet", "spiderpool_sriov", "ack_lingjun")
NETNS_MODES = ("shared", "exclusive")
NETWORK_KINDS = ("vcn_cidrs", "pod_cidrs", "service_cidrs", "peer_cidrs")


@dataclass(frozen=True)
class WaiverRule:
    """Accepts results: ``check`` and ``node`` may be patterns with ``*``; ``expires`` is the last day that counts."""

    check: str = codec.text()
    reason: str = codec.text()
    owner: str = codec.text()
    expires: str = codec.text()
    node: str = codec.text("*")

    def as_waiver(self) -> Waiver:
        return Waiver(self.reason, self.owner, self.expires)


@dataclass(frozen=True)
class CustomCheck:
    """A check of the user: a JMESPath expression over the node's view that must give true; null means not known."""

    id: str = codec.text()
    title: str = codec.text()
    expression: str = codec.text()
    severity: str = codec.text(ERROR)
    hint: str = codec.text("")


@dataclass(frozen=True)
class Policy:
    """Wished state and known surroundings; every value has the default of a stock OKE cluster where there is one.

    Values without a universal truth (CIDRs of the cluster, an agent version) have no default: the checks that need them
    are skipped and say which setting they want. ``mtu`` is in bytes, ``max_age`` in seconds.
    """

    target: str = codec.text("oke_dranet")
    netns_mode: str = codec.text("shared")
    child_range: str = codec.text("10.208.0.0/12")
    fabric: Optional[str] = codec.text(None)
    mtu: Optional[int] = codec.integer(None)
    arp_ignore: str = codec.text("1")
    arp_announce: str = codec.text("2")
    arp_filter: Optional[str] = codec.text(None)
    agent_version: Optional[str] = codec.text(None)
    max_age: Optional[int] = codec.integer(None)
    rdma_priority: Optional[int] = codec.integer(None)
    cnp_priority: Optional[int] = codec.integer(None)
    rdma_dscp: Optional[int] = codec.integer(None)
    cnp_dscp: Optional[int] = codec.integer(None)
    vcn_cidrs: Optional[tuple[str, ...]] = codec.texts(None)
    pod_cidrs: Optional[tuple[str, ...]] = codec.texts(None)
    service_cidrs: Optional[tuple[str, ...]] = codec.texts(None)
    peer_cidrs: Optional[tuple[str, ...]] = codec.texts(None)
    cluster_networks: Any = codec.anything()
    resource_name: str = codec.text(names.RESOURCE)
    rdma_mode: str = codec.text(names.SHARED)
    non_host_network: bool = codec.boolean(False)
    resource_count: Optional[int] = codec.integer(None)
    plugin_version: Optional[str] = codec.text(None)
    compute_ip_version: Optional[str] = codec.text(None)
    resource_prefix: str = codec.text(spiderpool.RESOURCE_PREFIX)
    shapes: Any = codec.anything()
    checks: tuple[CustomCheck, ...] = codec.items(CustomCheck)
    waivers: tuple[WaiverRule, ...] = codec.items(WaiverRule)
    only: tuple[str, ...] = codec.texts()
    skip: tuple[str, ...] = codec.texts()

    @classmethod
    def from_dict(cls, document: Any) -> Policy:
        """Read a policy, strictly: a key that is not known is refused, since it is most likely a typing error.

        :raises RdmaError: ``policy_malformed``, ``policy_unknown_key``, ``policy_value`` or ``document_malformed``.
        """
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise RdmaError(
                "policy_malformed",
                "The policy must be a map of settings, found %s." % type(document).__name__,
            )
        _refuse_unknown_keys(document, cls, "policy")
        for name, item_class in (("checks", CustomCheck), ("waivers", WaiverRule)):
            entries = document.get(name)  # what is no list is refused below
            for number, entry in enumerate(entries if isinstance(entries, list) else []):
                if isinstance(entry, dict):
                    _refuse_unknown_keys(entry, item_class, "policy.%s[%d]" % (name, number))
        policy = codec.decode(
            cls, {key: value for key, value in document.items() if value is not None}, "policy"
        )
        policy._validate()
        return policy

    def _validate(self) -> None:
        _one_of("policy.target", self.target, TARGETS)
        _one_of("policy.netns_mode", self.netns_mode, NETNS_MODES)
        _one_of("policy.rdma_mode", self.rdma_mode, names.MODES)
        _plugin(self)
        if not self.resource_prefix or "/" in self.resource_prefix:
            raise RdmaError(
                "policy_value",
                "policy.resource_prefix is a domain without a slash, found %r." % self.resource_prefix,
            )
        if self.fabric is not None:
            _one_of("policy.fabric", self.fabric, shapes.FABRICS)
        for kind in NETWORK_KINDS:
            for text in getattr(self, kind) or ():
                _network("policy.%s" % kind, text)
        for custom in self.checks:
            _one_of("policy.checks: severity of %s" % custom.id, custom.severity, SEVERITIES)
            if custom.id.startswith("RDMA-") or "-" not in custom.id:
                raise RdmaError(
                    "policy_value",
                    "The id of an own check must be PREFIX-NAME with a prefix other than RDMA, found %r."
                    % custom.id,
                    hint="Take your organisation's short name as prefix, for example ACME-001.",
                )
        ids = [custom.id for custom in self.checks]
        for custom in self.checks:
            if ids.count(custom.id) > 1:
                raise RdmaError("policy_value", "policy.checks has the id %r more than once." % custom.id)
        for waiver in self.waivers:
            _date("policy.waivers: expires of %s" % waiver.check, waiver.expires)
            for key in ("reason", "owner"):
                if not getattr(waiver, key).strip():
                    raise RdmaError(
                        "policy_value", "policy.waivers: %s of %s must not be empty." % (key, waiver.check)
                    )
        _qos(self)
        self.shape_table  # noqa: B018 (a wrong shape entry is refused here, not in the middle of a run)
        self.around  # noqa: B018 (likewise a wrong document of networks)

    @cached_property
    def shape_table(self) -> Any:
        """The built-in shape table, extended by the user's entries."""
        return shapes.extend(shapes.DEFAULT_TABLE, self.shapes) if self.shapes else shapes.DEFAULT_TABLE

    @cached_property
    def qos(self) -> Optional[Wish]:
        """How RDMA traffic is to be marked; ``None`` without the two priorities."""
        if self.rdma_priority is None or self.cnp_priority is None:
            return None
        return wish(self.rdma_priority, self.cnp_priority, self.rdma_dscp, self.cnp_dscp)[0]

    @cached_property
    def around(self) -> NetworkDocument:
        """The document of networks around the cluster; an empty one when none was given."""
        return NetworkDocument() if self.cluster_networks is None else networks.parse(self.cluster_networks)

    @cached_property
    def networks(self) -> dict[str, tuple[Prefix, ...]]:
        """The given networks by kind (see :data:`NETWORK_KINDS`); a kind that was not given is left out."""
        given = {kind: getattr(self, kind) for kind in NETWORK_KINDS}
        return {
            kind: tuple([parse_prefix(text) for text in texts])
            for kind, texts in given.items()
            if texts is not None
        }


def _qos(policy: Policy) -> None:
    given = [policy.rdma_priority, policy.cnp_priority, policy.rdma_dscp, policy.cnp_dscp]
    if None in given[:2]:
        if any(value is not None for value in given):
            raise RdmaError("policy_value", "policy.rdma_priority and policy.cnp_priority belong together.")
        return
    problems = wish(given[0] or 0, given[1] or 0, given[2], given[3])[1]
    if problems:
        raise RdmaError("policy_value", " ".join(["policy: %s" % problem.message for problem in problems]))


def _plugin(policy: Policy) -> None:
    if policy.resource_count is not None and policy.resource_count < 1:
        raise RdmaError(
            "policy_value", "policy.resource_count must be 1 or more, found %d." % policy.resource_count
        )
    if policy.plugin_version is not None and fabric_ip.version_of(policy.plugin_version) is None:
        raise RdmaError(
            "policy_value",
            "policy.plugin_version must begin like 1.1.5 or v1.1.5, found %r." % policy.plugin_version,
        )


def _refuse_unknown_keys(document: dict[Any, Any], cls: Any, where: str) -> None:
    known = [entry.name for entry in fields(cls)]
    for key in document:
        if key not in known:
            raise RdmaError(
                "policy_unknown_key",
                "%s has a key %r that is not known." % (where, key),
                hint="Known keys: %s." % ", ".join(known),
                key=str(key),
            )


def _one_of(where: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        raise RdmaError(
            "policy_value", "%s must be one of %s, found %r." % (where, ", ".join(allowed), found)
        )


def _network(where: str, text: str) -> None:
    try:
        parse_prefix(text)
    except RdmaError as error:
        raise RdmaError(
            "policy_value", "%s: %r is not a network in the form ADDRESS/LENGTH." % (where, text)
        ) from error


def _date(where: str, text: str) -> None:
    parts = text.split("-")
    try:
        known = (
            [len(part) for part in parts] == [4, 2, 2]
            and all(part.isascii() and part.isdigit() for part in parts)
            and bool(date(*map(int, parts)))
        )
    except ValueError:
        known = False
    if not known:
        raise RdmaError("policy_value", "%s must be a date YYYY-MM-DD, found %r." % (where, text))
