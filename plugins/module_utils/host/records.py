# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What netlink tells, as plain records. Private to rdma.k8s: it may change with any release.

The live readers make these records from the kernel's answers, and a recorded tree holds them in ``netlink.json`` (see
:func:`load`). Numbers are those of the kernel's interfaces, so that what they mean is decided in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ..core import codec, json_text
from ..core.errors import RdmaError
from ..core.snapshot import PortCounters
from .files import Root

FILE = "/netlink.json"
LIMIT = 64 << 20


@dataclass(frozen=True)
class LinkRecord:
    """RTM_NEWLINK: ``parent`` is IFLA_LINK, ``elsewhere`` says that it counts in another network namespace."""

    index: int = codec.integer()
    name: str = codec.text()
    arphrd: int = codec.integer(1)
    flags: int = codec.integer(0)
    kind: str = codec.text("")
    mac: str = codec.text("")
    mtu: Optional[int] = codec.integer(None)
    operstate: str = codec.text("")
    master: int = codec.integer(0)
    parent: int = codec.integer(0)
    elsewhere: bool = codec.boolean(False)


@dataclass(frozen=True)
class AddressRecord:
    """RTM_NEWADDR: the local address with its prefix length, ``link`` is the interface's index, ``flags`` are the first
    eight of the kernel's."""

    link: int = codec.integer()
    address: str = codec.text()
    length: int = codec.integer()
    flags: int = codec.integer(0)


@dataclass(frozen=True)
class RouteRecord:
    """RTM_NEWROUTE, one record for each next hop; an empty ``dst`` with length 0 is the default route."""

    family: int = codec.integer()
    dst: str = codec.text("")
    length: int = codec.integer(0)
    type: int = codec.integer(1)
    table: int = codec.integer(254)
    link: int = codec.integer(0)
    gateway: str = codec.text("")
    source: str = codec.text("")
    scope: int = codec.integer(0)
    protocol: int = codec.integer(0)
    metric: int = codec.integer(0)


@dataclass(frozen=True)
class RuleRecord:
    """RTM_NEWRULE; ``selectors`` holds the further conditions as iproute2 words them (``iif eth0``)."""

    family: int = codec.integer()
    priority: int = codec.integer(0)
    source: str = codec.text("")
    length: int = codec.integer(0)
    table: int = codec.integer(0)
    action: int = codec.integer(1)
    selectors: str = codec.text("")


@dataclass(frozen=True)
class PortRecord:
    """RDMA_NLDEV_CMD_PORT_GET: ``netdev`` is RDMA_NLDEV_ATTR_NDEV_NAME, states as in S29."""

    device: str = codec.text()
    port: int = codec.integer()
    netdev: str = codec.text("")
    state: int = codec.integer(0)
    phys_state: int = codec.integer(0)


@dataclass(frozen=True)
class RdmaRecord:
    """RDMA_NLDEV_CMD_SYS_GET (S11, S12: netns mode 0 exclusive, 1 shared) and the ports of all devices."""

    netns_mode: Optional[int] = codec.integer(None)
    copy_on_fork: Optional[int] = codec.integer(None)
    ports: tuple[PortRecord, ...] = codec.items(PortRecord)


@dataclass(frozen=True)
class RtnetlinkRecord:
    """The answers of rtnetlink; a part that was not asked for is empty."""

    links: tuple[LinkRecord, ...] = codec.items(LinkRecord)
    addresses: tuple[AddressRecord, ...] = codec.items(AddressRecord)
    routes: tuple[RouteRecord, ...] = codec.items(RouteRecord)
    rules: tuple[RuleRecord, ...] = codec.items(RuleRecord)


@dataclass(frozen=True)
class ChainRecord:
    """A chain of nftables; ``hook`` and ``policy`` are set for base chains of type filter or route only."""

    family: str = codec.text()
    table: str = codec.text()
    name: str = codec.text()
    hook: str = codec.text("")
    priority: int = codec.integer(0)
    policy: str = codec.text("")


@dataclass(frozen=True)
class PacketRuleRecord:
    """A rule of nftables as RoCE v2 sees it: ``match`` is ``always``, ``perhaps`` or ``never``."""

    family: str = codec.text()
    table: str = codec.text()
    chain: str = codec.text()
    match: str = codec.text("perhaps")
    verdict: str = codec.text("")
    target: str = codec.text("")
    names_port: bool = codec.boolean(False)
    text: str = codec.text("")


@dataclass(frozen=True)
class FilterRecord:
    """Chains and rules of nftables, in the order of the kernel."""

    chains: tuple[ChainRecord, ...] = codec.items(ChainRecord)
    rules: tuple[PacketRuleRecord, ...] = codec.items(PacketRuleRecord)


@dataclass(frozen=True)
class DcbInterface:
    """DCB of one interface: set of lossless priorities, map from DSCP to priority (``0-7:0 40:5``), flags of DCBX.

    Without ``pfc`` its driver has no DCB.
    """

    netdev: str = codec.text()
    pfc: Optional[int] = codec.integer(None)
    map: str = codec.text("")
    dcbx: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class DcbRecord:
    """DCB_CMD_IEEE_GET and DCB_CMD_GDCBX of the interfaces that have an RDMA port (S60)."""

    interfaces: tuple[DcbInterface, ...] = codec.items(DcbInterface)


@dataclass(frozen=True)
class CounterRecord:
    """What the counters of the RDMA ports gained while the tree was recorded."""

    ports: tuple[PortCounters, ...] = codec.items(PortCounters)


def is_recorded(root: Root) -> bool:
    """Whether the root holds the recorded answers of a node, so that nothing of the running system may be asked."""
    return bool(root.path) and root.exists(FILE)


def load(root: Root, path: str = FILE) -> Optional[dict[str, Any]]:
    """The object in a JSON file of a recorded tree; ``None`` when there is no such file.

    ``netlink.json`` has the keys ``rtnetlink`` (:class:`RtnetlinkRecord`), ``rdma`` (:class:`RdmaRecord`), ``nftables``
    (:class:`FilterRecord`), ``dcb`` (:class:`DcbRecord`) and ``counters`` (:class:`CounterRecord`). A value
    ``{"error": "text"}`` says that this source could not be read, a missing key that it was not recorded. Malformed
    content is an error of the source, not an exception.
    """
    if not root.path or not root.exists(path):
        return None
    text = root.read(path, LIMIT)
    if text is None:
        return {}
    try:
        document = json_text.loads(text)
    except ValueError as error:
        root.fail(path, "not JSON: %s" % str(error)[:200])
        return {}
    if not isinstance(document, dict):
        root.fail(path, "not a JSON object")
        return {}
    return document


def part(root: Root, document: dict[str, Any], key: str, source: str, cls: Any) -> Any:
    """The record of one source of a recorded tree, or ``None`` with the reason among the errors."""
    value = document.get(key)
    if value is None:
        root.fail(source, "not recorded")
        return None
    if isinstance(value, dict) and "error" in value:
        root.fail(source, str(value["error"])[:200])
        return None
    try:
        found = codec.decode(cls, value, "%s:%s" % (FILE[1:], key))
    except RdmaError as error:
        root.fail(source, error.message)
        return None
    if cls is RtnetlinkRecord and _has_negative(found):
        root.fail(source, "a negative number, which rtnetlink does not have")
        return None
    return found


def _has_negative(answers: RtnetlinkRecord) -> bool:
    records = (*answers.links, *answers.addresses, *answers.routes, *answers.rules)
    return any(isinstance(value, int) and value < 0 for record in records for value in vars(record).values())
