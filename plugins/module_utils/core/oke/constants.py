# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Constants of the OKE profile. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from ..net import Prefix, parse_prefix

PROFILE = "oke-rdma"  # F5
ATTRIBUTE_DOMAIN = "oke.dra.net"  # F5
DEFAULT_OCA_NETWORK: Prefix = parse_prefix("10.224.0.0/12")  # F6
DEFAULT_CHILD_RANGE: Prefix = parse_prefix("10.208.0.0/12")  # F6
MAX_NICS = 16  # F7: RDMA NICs of a node on an IPv4 fabric
TABLE_BASE = 100  # F7: the child of NIC n uses table 100 + n
RULE_PRIORITY = 32000  # F11
SCOPE_LINK = 253  # F12
MIN_LENGTH, MAX_LENGTH = 8, 30  # F27: lengths that a child range may have
RESERVED_RANGES: tuple[Prefix, ...] = tuple(  # F27, in the order in which they are checked
    map(parse_prefix, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4"))
)
ARPHRD_ETHERNET = 1  # F73
ARPHRD_INFINIBAND = 32  # F33
DRIVER = "dra.net"  # F99
READY_ATTRIBUTE = "rdma.k8s/ready"
"""True on a device that can be served now; published by the provider of this collection (F44)."""
