# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What iproute2's ``rdma`` prints, and the port files of sysfs. Private to rdma.k8s: it may change with any release.

Netlink is the reader of this collection (S4); these are for recorded outputs and for what people paste.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from . import codec, json_text
from .errors import RdmaError
from .net import quoted

ACTIVE, LINK_UP = "ACTIVE", "LINK_UP"
STATE_ACTIVE, PHYS_STATE_LINK_UP = 4, 5
_LINK_LAYERS = {"roce": "Ethernet", "ethernet": "Ethernet", "infiniband": "InfiniBand", "ib": "InfiniBand"}
_NUMBERS = ("lid", "sm_lid", "lmc")


@dataclass(frozen=True)
class PortLine:
    """One port of ``rdma link``. ``more`` holds what only InfiniBand ports have: subnet prefix and the lids (S30)."""

    device: str
    port: int
    state: str
    physical: str
    netdev: Optional[str] = None
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the port is active and its link is up, both (S29)."""
        return self.state == ACTIVE and self.physical == LINK_UP


@dataclass(frozen=True)
class SysfsPort:
    """The files ``link_layer``, ``state`` and ``phys_state`` of a port (S28, S29); ``None``: not a number."""

    link_layer: str
    state: Optional[int]
    phys_state: Optional[int]

    def matches(self, wanted: str) -> bool:
        """Whether the link layer is that of ``roce`` or ``infiniband``."""
        return self.link_layer == _LINK_LAYERS.get(wanted.lower())

    def ready(self, wanted: str) -> bool:
        """Whether the port has the wanted link layer, is active, and its link is up."""
        up = self.state == STATE_ACTIVE and self.phys_state == PHYS_STATE_LINK_UP
        return up and self.matches(wanted)


def pairs(text: str) -> dict[str, str]:
    """Words that come as name and value, in any number and order (S18); a last name without a value is left out."""
    words = text.split()
    return dict(zip(words[0::2], words[1::2]))


def links_of_text(text: str) -> list[PortLine]:
    """The ports that ``rdma link`` prints as text (S30): one line a port, an InfiniBand port has no interface.

    :raises RdmaError: ``rdma_output_malformed``.
    """
    return [_link_of_line(line) for line in text.splitlines() if line.strip()]


def _link_of_line(line: str) -> PortLine:
    head, _unused, rest = line.strip().partition(" ")
    place, _unused, rest = rest.strip().partition(" ")
    device, slash, number = place.rpartition("/")
    port, values = codec.natural(number), pairs(rest)
    if head != "link" or not slash or not device or port is None:
        raise _malformed("a line 'link DEVICE/PORT state ...'", line)
    if "state" not in values or "physical_state" not in values:
        raise _malformed("the words state and physical_state", line)
    return _port(device, port, values)


def links_of_json(text: str) -> list[PortLine]:
    """The ports that ``rdma -j link`` prints (S31).

    :raises RdmaError: ``rdma_output_malformed``.
    """
    try:
        document = json_text.loads(text)
    except ValueError as error:
        raise _malformed("JSON", text) from error
    if not isinstance(document, list):
        raise _malformed("a list of ports", text)
    return [_link_of_object(entry) for entry in document]


def _link_of_object(entry: Any) -> PortLine:
    values = entry if isinstance(entry, dict) else {}
    texts = [values.get(key) for key in ("ifname", "state", "physical_state")]
    port = values.get("port")
    if (
        not all(isinstance(value, str) for value in texts)
        or isinstance(port, bool)
        or not isinstance(port, int)
    ):
        raise _malformed("the keys ifname, port, state and physical_state", str(entry))
    return _port(str(values["ifname"]), port, values)


def _port(device: str, port: int, values: dict[str, Any]) -> PortLine:
    more: list[tuple[str, Any]] = []
    for key in ("subnet_prefix", *_NUMBERS):
        value = values.get(key)
        if value is None:
            continue
        number = codec.natural(value) if key in _NUMBERS and isinstance(value, str) else None
        more.append((key, value if number is None else number))
    return PortLine(
        device, port, values["state"], values["physical_state"], values.get("netdev"), tuple(more)
    )


def sysfs_port(link_layer: str, state: str, phys_state: str) -> SysfsPort:
    """A port from the texts of its three files (``Ethernet``, ``4: ACTIVE``, ``5: LinkUp``)."""
    numbers = [codec.natural(text.partition(":")[0].strip()) for text in (state, phys_state)]
    return SysfsPort(link_layer.strip(), numbers[0], numbers[1])


def _malformed(expected: str, found: str) -> RdmaError:
    return RdmaError(
        "rdma_output_malformed",
        "The output of rdma link must have %s, found %s." % (expected, quoted(found.strip())),
        hint="Give the output of 'rdma link' or 'rdma -j link' as it was printed.",
        found=found.strip()[:200],
    )
