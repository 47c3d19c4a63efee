# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the GPU operator lets NICs reach the memory of GPUs (S41). Private to rdma.k8s: it may change any time.

Its chart makes one ClusterPolicy of its values, under the same names. The operator loads ``nvidia_peermem`` and
``gdrdrv`` from the pods of its driver; where it runs none of them, the settings have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..kube import objects as kube
from .issue import error, warning
from .table import Told

VALUES: dict[str, Any] = {
    "driver": {"rdma": {"enabled": True, "useHostMofed": True}},
    "gdrcopy": {"enabled": True},
}
"""The values for its chart where the driver of the NICs is the host's own (S41)."""
KIND = "ClusterPolicy"


def judge(policies: Iterable[Mapping[str, Any]], needed: bool) -> Iterator[Told]:
    """What stands against it in the policies of a cluster; without the operator nothing.

    :param needed: whether NICs must reach the memory of GPUs; otherwise all findings are warnings. GDRCopy only makes
        small copies faster, so its absence always is one.
    """
    make = error if needed else warning
    for policy in policies:
        subject = "%s %s" % (KIND, kube.name(policy))
        spec = kube.mapping(policy, "spec")
        driver = kube.mapping(spec, "driver")
        if driver.get("enabled") is False or driver.get("useNvidiaDriverCRD") is True:
            what = (
                "the operator installs no driver, so it loads neither nvidia_peermem nor gdrdrv: load them on the nodes"
                if driver.get("enabled") is False
                else "NVIDIADriver objects decide, not this one: set rdma and gdrcopy there"
            )
            yield Told(subject, warning("gpudirect-elsewhere", "spec.driver", what))
            continue
        rdma = kube.mapping(driver, "rdma")
        if rdma.get("enabled") is not True:
            message = (
                "nvidia_peermem is not loaded, so NICs reach the memory of GPUs by dma-bufs only, if at all"
            )
            yield Told(subject, make("gpudirect-off", "spec.driver.rdma.enabled", message))
        elif rdma.get("useHostMofed") is not True:
            message = (
                "the pods of the GPU driver wait for a driver of the NICs in a pod, and take none of the host"
            )
            yield Told(subject, make("gpudirect-host-driver-off", "spec.driver.rdma.useHostMofed", message))
        if kube.mapping(spec, "gdrcopy").get("enabled") is not True:
            message = "gdrdrv is not loaded, so small messages of GPUs are slow"
            yield Told(subject, warning("gdrcopy-off", "spec.gdrcopy.enabled", message))
