# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters over the address arithmetic of the core. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Optional

from ansible.errors import AnsibleFilterError

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import find_destination, parse_prefix, quoted
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import addressing, free_ranges
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.constants import (
    DEFAULT_CHILD_RANGE,
    DEFAULT_OCA_NETWORK,
)


def _clear_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except RdmaError as error:
            raise AnsibleFilterError(str(error)) from None

    return wrapped


@_clear_errors
def child_address(
    address: str,
    subnet: str,
    index: int,
    child_range: str = str(DEFAULT_CHILD_RANGE),
    oca_network: str = str(DEFAULT_OCA_NETWORK),
) -> str:
    """The address of the child of NIC ``index`` with the length of the range (F13, F14)."""
    vnic = addressing.read_vnic(str(address), str(subnet))
    number = _number("index", index)
    return str(addressing.derive_child(vnic, number, str(oca_network), str(child_range)).child_address)


@_clear_errors
def child_range_for(
    subnet: str, nics: int = 16, avoid: Iterable[str] = (), supernets: Optional[Iterable[str]] = None
) -> str:
    """The first free child range for the nodes of a subnet (F18)."""
    inside = None if supernets is None else _texts("supernets", supernets)
    wanted = _number("nics", nics)
    return str(free_ranges.first(parse_prefix(str(subnet)), wanted, _texts("avoid", avoid), inside))


@_clear_errors
def cidr_conflicts(network: str, networks: Iterable[str]) -> list[str]:
    """Those of ``networks`` that overlap ``network``; the default route overlaps nothing (F47, F141)."""
    wanted = parse_prefix(str(network))
    return [text for text in _texts("networks", networks) if _overlaps(wanted, text)]


def _overlaps(wanted: Any, text: str) -> bool:
    found = find_destination(text)
    if found is None:
        parse_prefix(text)  # raises the error that says what a network looks like
        return False
    return bool(found.length) and found.overlaps(wanted)


def _number(name: str, value: Any) -> int:
    """A number, also as text, as variables from a command line are."""
    try:
        if not isinstance(value, (bool, float)):
            return int(value)
    except (TypeError, ValueError):
        pass
    raise AnsibleFilterError("%s must be a whole number, found %s." % (name, quoted(value)))


def _texts(name: str, value: Any) -> list[str]:
    """A list of texts; one text alone is a list of one."""
    if isinstance(value, str):
        return [str(value)]
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise AnsibleFilterError("%s must be a list, found %s." % (name, quoted(value)))
    return [str(entry) for entry in value]
