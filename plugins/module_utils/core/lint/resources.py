# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: extended resources. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..finding import ERROR
from ..kube import objects, quantity
from .devices import is_extended
from .model import Verdict, failed, skipped
from .pod import Pod
from .registry import pod_rule


@pod_rule(
    "RDMA-WL-012",
    "Extended resources: whole numbers, the request equal to the limit",
    ERROR,
    "Write the resource under limits only, as a whole number.",
)
def extended(pod: Pod) -> Iterator[Verdict]:
    """The API server refuses devices in parts, and a request that differs from its limit (A62)."""
    if not pod.amounts:
        yield skipped("The pods ask for no extended resource.")
    for container in pod.containers:
        resources = objects.mapping(container.spec, "resources")
        requests, limits = objects.mapping(resources, "requests"), objects.mapping(resources, "limits")
        path = (*container.path, "resources")
        for name in {**requests, **limits}:
            if not is_extended(name):
                continue
            part = "limits" if name in limits else "requests"
            amount: Any = limits.get(name, requests.get(name))
            found = quantity.whole(amount)
            if found is None:
                yield failed(
                    (*path, part, name),
                    "%s is given in whole devices." % name,
                    expected="a whole number",
                    observed=str(amount)[:40],
                )
            elif name not in limits:
                yield failed(
                    (*path, part, name),
                    "%s is requested without a limit, which the API server refuses." % name,
                    expected="limits: %d" % found,
                )
            elif name in requests and quantity.parse(requests[name]) != quantity.parse(amount):
                yield failed(
                    (*path, "requests", name),
                    "The request for %s differs from its limit." % name,
                    expected=str(amount)[:40],
                    observed=str(requests[name])[:40],
                )
