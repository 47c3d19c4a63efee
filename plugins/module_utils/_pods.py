# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that look into running pods. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cluster.pod_looks import Wish
from .core import bounds
from .core.kube.manifest import require_name

OPTIONS: dict[str, Any] = {
    "namespace": {"type": "str", "required": True},
    "names": {"type": "list", "elements": "str", "default": []},
    "label_selector": {"type": "str", "default": ""},
    "container": {"type": "str", "default": ""},
    "netns_mode": {"type": "str", "choices": ["exclusive", "shared"]},
    "parallel": {"type": "int", "default": 10},
    "timeout": {"type": "float", "default": 30},
}


def wish_of(params: Mapping[str, Any]) -> Wish:
    """Which pods the options of a module mean.

    :raises RdmaError: ``number_out_of_range``, ``name_malformed``.
    """
    bounds.require_numbers(params, parallel=(1, 100))
    bounds.require_seconds(params, "timeout")
    if params.get("nics") is not None:
        bounds.require_numbers(params, nics=(0, 256))
    require_name(params["namespace"], "A namespace", label=True)
    for called in params["names"]:
        require_name(called, "A pod")
    return Wish(
        params["namespace"],
        tuple(dict.fromkeys(params["names"])),
        params["label_selector"],
        params["container"],
        params.get("nics"),
        params["netns_mode"] or "",
        params["parallel"],
        params["timeout"],
    )
