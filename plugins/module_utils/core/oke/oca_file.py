# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Another RDMA network in ``rdma_network.json``, everything else byte for byte as it was (F51, F55).

Private to rdma.k8s: it may change with any release. The file holds more than is known here, so it is never written
anew from what was parsed: only the text of the values that change is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

from ..errors import RdmaError
from ..net import Prefix, ipv4_text
from . import oca

Path = tuple[Union[str, int], ...]

_ENTRY: Path = ("rdma-network", 0)
NETWORK: Path = (*_ENTRY, "default-settings", "rdma_network")
NETMASKS: tuple[Path, ...] = (
    (*_ENTRY, "subnet-settings", "netmask"),
    (*_ENTRY, "subnet-settings", "override_netconfig_netmask"),
)
"""The fields beside the network itself that depend on it; all of them must be changed together (F55)."""

_SPACE = re.compile(r"[ \t\n\r]*")
_VALUE = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=str
)  # only the end of a value matters
_REPAIRABLE = (
    "oca_no_entries",
    "oca_no_rdma_network",
    "oca_prefix_parse_error",
    "oca_prefix_not_ipv4",
    "oca_prefix_not_masked",
)


def netmask_of(network: Prefix) -> str:
    """``255.240.0.0`` for a /12."""
    return ipv4_text((1 << 32) - (1 << (32 - network.length)))


def new_file(network: Prefix) -> str:
    """The text of a file for a node that has none: the network settings that OCI documents (F55)."""
    entry = {
        "default-settings": {
            "rdma_network": str(network),
            "overwrite_config_files": False,
            "single_subnet": True,
            "modify_subnet": True,
            "modify_arp": True,
        },
        "subnet-settings": {path[-1]: netmask_of(network) for path in NETMASKS},
    }
    return json.dumps({"rdma-network": [entry]}, indent=4) + "\n"


def with_network(text: Optional[str], network: Prefix) -> str:
    """The text of the file with this RDMA network and the netmasks that go with it.

    A file that names it already comes back unchanged. Fields that are not there, or null, are added.

    :param text: the file as it is; ``None``: there is none.
    :raises RdmaError: ``oca_json_malformed``: no JSON, or a wrong type where the network stands.
    """
    if text is None:
        return new_file(network)
    try:
        oca.parse_network(text)
    except RdmaError as error:
        if error.code not in _REPAIRABLE:
            raise
    for path in reversed(NETMASKS):  # what is missing is put in front
        text = _with_value(text, path, netmask_of(network))
    return _with_value(text, NETWORK, str(network))


class _Member(NamedTuple):
    key: Union[str, int]
    start: int
    end: int


def _with_value(text: str, path: Path, value: str) -> str:
    at = _skip(text, 0)
    for depth, key in enumerate(path):
        opening = "[" if isinstance(key, int) else "{"
        if text[at] != opening:
            if text.startswith("null", at):
                return _replaced(text, at, _end(text, at), _nested(path[depth:], value))
            raise RdmaError(
                "oca_json_malformed",
                "%s: %s must be %s." % (oca.NETWORK_FILE, _name(path[:depth]), _KIND[opening]),
                hint="Compare the file with that of a new node, or replace it whole.",
                where=_name(path[:depth]),
            )
        found = [member for member in _members(text, at) if member.key == key]
        if not found:
            return _inserted(text, at, _nested(path[depth:], value))
        at = found[-1].start  # of a name that stands twice, every reader takes the last
    end = _end(text, at)
    return text if text[at:end] == json.dumps(value) else _replaced(text, at, end, value)


_KIND = {"{": "an object", "[": "a list"}


def _name(path: Path) -> str:
    return ".".join([str(part) for part in path]) or "the document"


def _nested(path: Path, value: str) -> Any:
    """The value inside the objects and lists that the path names."""
    inner: Any = value
    for key in reversed(path):
        inner = [inner] if isinstance(key, int) else {key: inner}
    return inner


def _replaced(text: str, start: int, end: int, value: Any) -> str:
    return text[:start] + json.dumps(value) + text[end:]


def _inserted(text: str, at: int, addition: Any) -> str:
    """The members of ``addition`` in front of those of the object or list that starts at ``at``, laid out alike."""
    first = _skip(text, at + 1)
    empty = text[first] in "}]"
    inside = json.dumps(addition)[1:-1]
    return "%s%s%s%s%s" % (
        text[: at + 1],
        "" if empty else text[at + 1 : first],
        inside,
        "" if empty else ",",
        text[first:] if empty else (text[at + 1 : first] or " ") + text[first:],
    )


def _members(text: str, at: int) -> Iterator[_Member]:
    """The members of the object or list that starts at ``at`` with the places of their values."""
    closing = "}" if text[at] == "{" else "]"
    at, number = _skip(text, at + 1), 0
    while text[at] != closing:
        key: Union[str, int] = number
        if closing == "}":
            key, at = _VALUE.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        end = _end(text, at)
        yield _Member(key, at, end)
        at, number = _skip(text, end), number + 1
        if text[at] == ",":
            at = _skip(text, at + 1)


def _end(text: str, start: int) -> int:
    return _VALUE.raw_decode(text, start)[1]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
