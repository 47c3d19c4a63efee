# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The NCCL variables of a workload. Private to rdma.k8s: it may change with any release.

No GID index anywhere: the index of a child differs from pod to pod (F134), and NCCL selects it itself (A84).
"""

from __future__ import annotations

from ..oke.shapes import IPV6
from .wish import ACK, OKE, WorkloadWish

_FOUR_QPS = ("BM.GPU4.8", "BM.GPU.A100-v2.8", "BM.GPU.B4.8")
_NO_DATA_DIRECT = ("BM.GPU.GB200-v3.4",)


def environment(wish: WorkloadWish) -> dict[str, str]:
    """Names and values, those of the user last and over the others."""
    found: dict[str, str] = {}
    if wish.target == OKE:
        found = _oke(wish)
    elif wish.target == ACK:
        found = _ack(wish)
    found["NCCL_SOCKET_IFNAME"] = socket_interface(wish)
    for name, value in wish.environment.items():
        found.pop(name, None)
        found[name] = str(value)
    return found


def socket_interface(wish: WorkloadWish) -> str:
    """The interface that is no RDMA NIC: that of the pod network, or of the node (A82)."""
    return wish.socket_interface or ("bond0" if wish.on_host_network else "eth0")


def _oke(wish: WorkloadWish) -> dict[str, str]:
    """The values of F135 and F136; F91 for an IPv6 fabric."""
    shape = wish.shape
    hcas = wish.hcas if wish.hcas is not None else (shape.nccl_hcas if shape else ())
    found: dict[str, str] = {}
    if hcas:
        found["NCCL_IB_HCA"] = "=" + ",".join(hcas)  # without the sign mlx5_1 would stand for mlx5_10 too
    if wish.known_fabric == IPV6:
        found["NCCL_IB_ADDR_FAMILY"] = "AF_INET6"
    if not wish.is_infiniband:
        found["NCCL_IB_TC"] = "41"
        found["NCCL_IB_SL"] = "0"
    found["NCCL_IB_TIMEOUT"] = "22"
    if shape and shape.name in _FOUR_QPS:
        found["NCCL_IB_QPS_PER_CONNECTION"] = "4"
    if shape and shape.name in _NO_DATA_DIRECT:
        found["NCCL_IB_DATA_DIRECT"] = "0"
    return found


def _ack(wish: WorkloadWish) -> dict[str, str]:
    """The values of A80; A85 where the pod has an address of its own, which is IPv6 (A9)."""
    found = {"NCCL_IB_HCA": ",".join(wish.hcas) if wish.hcas else "mlx5"}
    if not wish.on_host_network:
        found["NCCL_IB_ADDR_FAMILY"] = "AF_INET6"
    found["NCCL_IB_TC"] = "136"
    found["NCCL_IB_SL"] = "5"
    found["NCCL_IB_TIMEOUT"] = "22"
    found["NCCL_IB_QPS_PER_CONNECTION"] = "8"
    return found
