# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shape table: what a node of an OCI shape should have (F128-F136).

Private to rdma.k8s: it may change with any release. Users extend the table in YAML; the text is parsed outside the
core, :func:`extend` takes the plain data::

    BM.GPU.H100.8:        # in the table: only the given fields change
      rate_gbps: 200
    BM.GPU.NEW.*:         # matches many shapes; the most specific entry wins
      rdma_nics: 8
      fabric: ipv4
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Callable, Optional

from ..errors import RdmaError
from ..net import quoted
from .constants import MAX_NICS

IPV4, IPV6, INFINIBAND = FABRICS = ("ipv4", "ipv6", "infiniband")
LINK_LAYERS = ("Ethernet", "InfiniBand")

_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")
_NAME = re.compile(r"[A-Za-z0-9._*-]{1,80}")
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,40}")


@dataclass(frozen=True)
class Shape:
    """What is expected of a node. Empty or ``None``: not known, so nothing is expected.

    :param name: the shape, or a pattern with ``*``.
    :param rdma_nics: number of RDMA NICs.
    :param fabric: ``ipv4``, ``ipv6`` or ``infiniband``. The metadata of a node is more reliable.
    :param link_layer: of the RDMA ports, as the kernel writes it.
    :param pci: PCI addresses, in the order of the NIC indexes.
    :param rate_gbps: rate of each port, in Gb/s.
    :param mtu: MTU of the RDMA interfaces, in bytes.
    :param nccl_hcas: RDMA devices for NCCL_IB_HCA, in the order of the table of F136.
    :param netdevs: how the RDMA interfaces are called; ``N`` stands for the index.
    :param modules: kernel modules of the NICs.
    """

    name: str
    rdma_nics: int
    fabric: str = ""
    link_layer: str = ""
    pci: tuple[str, ...] = ()
    rate_gbps: Optional[float] = None
    mtu: Optional[int] = None
    nccl_hcas: tuple[str, ...] = ()
    netdevs: tuple[str, ...] = ("rdmaN",)
    modules: tuple[str, ...] = ("mlx5_core", "mlx5_ib")


Table = tuple[Shape, ...]
"""Shapes, the most specific name first."""


def lookup(shape: str, table: Table) -> Optional[Shape]:
    """The entry for a shape: its own name, else the most specific pattern; ``None``: the shape is not known."""
    for entry in table:
        if entry.name == shape or ("*" in entry.name and fnmatchcase(shape, entry.name)):
            return entry
    return None


def extend(table: Table, user_entries: Any) -> Table:
    """The table with entries of a user: a map from name or pattern to fields (see the top of this file).

    For a name that is in the table, only the given fields change; another one needs ``rdma_nics``.

    :raises RdmaError: ``shape_malformed`` (details: ``shape``, ``field``)
    """
    if not isinstance(user_entries, dict):
        raise _malformed("the shapes", "", "must be a map from shape name to fields", user_entries)
    entries = {entry.name: entry for entry in table}
    for name, given in user_entries.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _malformed(
                "a shape", "", "must have a name of letters, digits, '.', '_', '-' and '*'", name
            )
        entries[name] = _entry(name, entries.get(name), given)
    return _sorted(entries.values())


def _sorted(entries: Any) -> Table:
    return tuple(sorted(entries, key=lambda entry: ("*" in entry.name, -len(entry.name), entry.name)))


def _entry(name: str, known: Optional[Shape], given: Any) -> Shape:
    if not isinstance(given, dict):
        raise _malformed(name, "", "must be a map of fields", given)
    values = {}
    for key, value in given.items():
        if key not in _FIELDS:
            raise _malformed(name, str(key), "is not a field; fields are %s" % ", ".join(_FIELDS), key)
        expected, read = _FIELDS[key]
        values[key] = read(value)
        if values[key] is None:
            raise _malformed(name, key, "must be %s" % expected, value)
    if known is None and "rdma_nics" not in values:
        raise _malformed(name, "rdma_nics", "is missing", None)
    return _consistent(replace(known or Shape(name, 0), **values))


def _consistent(shape: Shape) -> Shape:
    """Fields that speak of the same thing must agree."""
    for key, entries in (("pci", shape.pci), ("nccl_hcas", shape.nccl_hcas)):
        if entries and len(entries) != shape.rdma_nics:
            raise _malformed(
                shape.name, key, "must list rdma_nics=%d entries" % shape.rdma_nics, len(entries)
            )
    if shape.fabric == IPV4 and shape.rdma_nics > MAX_NICS:
        raise _malformed(shape.name, "rdma_nics", "must be at most 16 on an IPv4 fabric", shape.rdma_nics)
    wanted = {"": shape.link_layer, INFINIBAND: "InfiniBand"}.get(shape.fabric, "Ethernet")
    if shape.link_layer and shape.link_layer != wanted:
        raise _malformed(
            shape.name, "link_layer", "must be %s on fabric %s" % (wanted, shape.fabric), shape.link_layer
        )
    return shape


def _malformed(shape: str, field: str, problem: str, found: Any) -> RdmaError:
    return RdmaError(
        "shape_malformed",
        "%s: %s%s, found %s." % (shape, field + " " if field else "", problem, quoted(found)),
        hint="Correct the entry in the shapes of the user.",
        shape=shape,
        field=field,
    )


def _one_of(*choices: str) -> Callable[[Any], Optional[str]]:
    return lambda value: value if isinstance(value, str) and value in choices else None


def _number(lowest: float, highest: float, whole: bool) -> Callable[[Any], Any]:
    kinds = int if whole else (int, float)

    def read(value: Any) -> Any:
        good = isinstance(value, kinds) and not isinstance(value, bool) and lowest <= value <= highest
        return value if good else None

    return read


def _texts(pattern: re.Pattern[str]) -> Callable[[Any], Optional[tuple[str, ...]]]:
    def read(value: Any) -> Optional[tuple[str, ...]]:
        if not isinstance(value, list):
            return None
        entries = [entry for entry in value if isinstance(entry, str) and pattern.fullmatch(entry)]
        return tuple(entries) if len(value) == len(entries) == len(set(entries)) else None

    return read


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rdma_nics": ("a number from 0 to 64", _number(0, 64, True)),
    "fabric": ("one of %s" % ", ".join(FABRICS), _one_of(*FABRICS)),
    "link_layer": ("one of %s" % ", ".join(LINK_LAYERS), _one_of(*LINK_LAYERS)),
    "pci": ("a list of PCI addresses such as 0000:0c:00.0, each once", _texts(_PCI)),
    "rate_gbps": ("a number of Gb/s", _number(1, 100000, False)),
    "mtu": ("a number of bytes from 68 to 65535", _number(68, 65535, True)),
    "nccl_hcas": ("a list of RDMA device names, each once", _texts(_WORD)),
    "netdevs": ("a list of interface names, each once", _texts(_WORD)),
    "modules": ("a list of kernel modules, each once", _texts(_WORD)),
}


def _pairs(*slots: str) -> tuple[str, ...]:
    """PCI addresses of dual-port cards: functions 0 and 1 of each slot."""
    return tuple(["%s.%d" % (slot, function) for slot in slots for function in (0, 1)])


def _mlx5(*ranges: Sequence[int]) -> tuple[str, ...]:
    """Device names of numbers; a pair is a range with both ends."""
    return tuple(["mlx5_%d" % number for entry in ranges for number in range(entry[0], entry[-1] + 1)])


def _roce(name: str, rdma_nics: int, fabric: str = IPV4, **more: Any) -> Shape:
    return Shape(name, rdma_nics, fabric, "Ethernet", mtu=4220, **more)


_A100 = _mlx5((1, 12), (14, 17))
_HOPPER_8 = _mlx5((0,), (3, 6), (9, 11))
_GRACE_8 = _mlx5((0, 3), (5, 8))
_GRACE_4 = _mlx5((0, 1), (3, 4))

DEFAULT_TABLE: Table = _sorted(
    [
        _roce("BM.GPU4.8", 16, nccl_hcas=_mlx5((0, 3), (6, 17))),
        _roce("BM.GPU.A100-v2.8", 16, nccl_hcas=_A100),
        _roce("BM.GPU.B4.8", 16, nccl_hcas=_A100),
        _roce(
            "BM.GPU.H100.8",
            16,
            pci=_pairs(*["0000:%s:00" % bus for bus in ("0c", "2a", "41", "58", "86", "a5", "bd", "d5")]),
            nccl_hcas=_mlx5((0, 1), (3, 10), (12, 17)),
        ),
        _roce("BM.GPU.B300.8", 16, IPV6, nccl_hcas=_mlx5((0, 1), (7, 14), (16, 21))),
        _roce("BM.GPU.H200.8", 8, nccl_hcas=_HOPPER_8),
        _roce("BM.GPU.B200.8", 8, nccl_hcas=_HOPPER_8),
        _roce("BM.GPU.MI300X.8", 8, nccl_hcas=_mlx5((0,), (2, 5), (7, 9))),
        Shape("BM.GPU.MI355X-v1.8", 8, modules=()),  # its NICs are not of the mlx5 family (F135)
        _roce(
            "BM.GPU.GB200-v3.4",
            8,
            IPV6,
            pci=_pairs(*["%s:03:00" % domain for domain in ("0000", "0002", "0010", "0012")]),
            nccl_hcas=_GRACE_8,
        ),
        Shape(
            "BM.GPU.GB300.4", 8, nccl_hcas=_GRACE_8
        ),  # single plane; four planes use virtual functions (F130)
        Shape("BM.GPU.GB200.4", 4, INFINIBAND, "InfiniBand", nccl_hcas=_GRACE_4, netdevs=()),
        Shape("BM.GPU.GB200-v2.4", 4, nccl_hcas=_GRACE_4),
        _roce("BM.HPC2.36", 1, pci=("0000:5e:00.0",)),
        _roce(
            "BM.Optimized3.36",
            1,
            pci=("0000:98:00.0",),
            nccl_hcas=("mlx5_2",),
            netdevs=("rdmaN", "ens800f0np0"),  # the name depends on the image (F131)
        ),
    ]
)
"""The shapes of F128, with what F129 to F136 tell of them. The facts give no rate."""
