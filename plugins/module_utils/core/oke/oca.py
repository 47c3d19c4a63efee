# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two files of the Oracle Cloud Agent that decide about RDMA addresses (F51-F54).

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, TypeVar

from ..errors import RdmaError
from ..json_text import Reader
from ..net import Prefix, find_prefix, quoted
from .constants import DEFAULT_OCA_NETWORK

T = TypeVar("T")

CLASSIC, TOPOLOGY, HOST_SERIAL = "classic", "topology", "host-serial"

NETWORK_FILE = "rdma_network.json"
FEATURES_FILE = "rdma_features_enable.json"

_HINT = "Correct the file, restart OCA, then restart the pods of the driver, which read it once."
_NETWORK = Reader("oca_json_malformed", NETWORK_FILE, _HINT)
_FEATURES = Reader("oca_features_malformed", FEATURES_FILE, _HINT)


@dataclass(frozen=True)
class OcaConfig:
    """What the driver makes of the two files (F54).

    :param network: the RDMA network, the default when the file is missing or unusable.
    :param address_mode: ``classic``, ``topology``, ``host-serial``, or ``None``: not known, not classic (F142).
    :param warnings: why a file is unusable; a missing file gives none.
    """

    network: Prefix = DEFAULT_OCA_NETWORK
    address_mode: Optional[str] = None
    warnings: tuple[RdmaError, ...] = ()


def parse_network(text: str) -> Prefix:
    """The RDMA network of ``rdma_network.json``: ``rdma_network`` of the first entry (F51).

    :raises RdmaError: in this order (F52) ``oca_json_malformed``, ``oca_no_entries``, ``oca_no_rdma_network``,
        ``oca_prefix_parse_error``, ``oca_prefix_not_ipv4``, ``oca_prefix_not_masked``
    """
    document = _NETWORK.members(_NETWORK.json(text), "the document")
    entries = _NETWORK.entries(document.get("rdma-network"), "rdma-network")
    values = [_value_of_entry(entry, "rdma-network[%d]" % number) for number, entry in enumerate(entries)]
    if not values:
        raise _unusable("oca_no_entries", "has no entry in rdma-network")
    if not values[0]:
        raise _unusable("oca_no_rdma_network", "has no rdma_network in the first entry")
    return _network(values[0])


def _value_of_entry(entry: object, where: str) -> str:
    members = _NETWORK.members(entry, where)
    where += ".default-settings"
    settings = _NETWORK.members(members.get("default-settings"), where)
    return _NETWORK.text(settings.get("rdma_network"), where + ".rdma_network")


def _network(value: str) -> Prefix:
    prefix = find_prefix(value)
    if prefix is None:
        raise _unusable(
            "oca_prefix_parse_error", "has rdma_network %s, which is not a prefix" % quoted(value)
        )
    if prefix.version != 4:
        raise _unusable("oca_prefix_not_ipv4", "has rdma_network %s, which is not IPv4" % prefix)
    if not prefix.is_masked:
        raise _unusable(
            "oca_prefix_not_masked",
            "has rdma_network %s with host bits, expected %s" % (prefix, prefix.masked()),
        )
    return prefix


def _unusable(code: str, problem: str) -> RdmaError:
    return RdmaError(code, "%s %s." % (NETWORK_FILE, problem), hint=_HINT)


def parse_features(text: str) -> str:
    """The address mode of ``rdma_features_enable.json`` (F53).

    :raises RdmaError: ``oca_features_malformed``
    """
    document = _FEATURES.members(_FEATURES.json(text), "the document")
    names = ("host_serial_based_rdma_ips", "ipv4_topology_based_rdma_ips")
    host_serial, topology = [_FEATURES.flag(document.get(name), name) for name in names]
    if host_serial:
        return HOST_SERIAL
    return TOPOLOGY if topology else CLASSIC


def load(rdma_network_text: Optional[str], features_text: Optional[str]) -> OcaConfig:
    """What the driver works with (F54). ``None``: the file does not exist. Never raises."""
    warnings: list[RdmaError] = []
    network = _usable(parse_network, rdma_network_text, warnings)
    mode = _usable(parse_features, features_text, warnings)
    return OcaConfig(network or DEFAULT_OCA_NETWORK, mode, tuple(warnings))


def _usable(parse: Callable[[str], T], text: Optional[str], warnings: list[RdmaError]) -> Optional[T]:
    if text is None:
        return None
    try:
        return parse(text)
    except RdmaError as error:
        warnings.append(error)
        return None
