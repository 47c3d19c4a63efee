# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan who probes whom on the controller, in one call; no connection to any node."""

from __future__ import annotations

import math
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils import judging
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds, codec, fabric
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str"},
    "children": {"type": "str", "default": "rdma_k8s_children"},
    "listeners": {"type": "str", "default": "rdma_k8s_listen"},
    "mode": {"type": "str", "choices": list(fabric.MODES), "default": fabric.RING},
    "seed": {"type": "int", "default": 0},
    "rdma_timeout": {"type": "float", "default": 15},
}


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        variables = task_vars or {}
        hosts = args["hosts"] if args["hosts"] is not None else variables.get("ansible_play_hosts_all", [])
        try:
            bounds.require_numbers(args, rdma_timeout=(0, bounds.SECONDS))
            ends = [end for host in hosts for end in self._ends(str(host), variables["hostvars"], args)]
            pairs = fabric.plan_pairs(ends, args["mode"], args["seed"])
        except RdmaError as error:
            raise AnsibleActionFail(str(error), result={"code": error.code}) from None
        by_host: dict[str, list[dict[str, Any]]] = {str(host): [] for host in hosts}
        for pair in pairs:
            by_host[pair.source.node].append(pair.to_dict())
        alone: dict[str, list[int]] = {}
        for host, index in sorted(fabric.lone_rails(ends)):
            alone.setdefault(host, []).append(index)
        result.update(
            changed=False,
            pairs=by_host,
            count=len(pairs),
            mode=args["mode"],
            seed=args["seed"],
            seconds=math.ceil(
                fabric.longest(max(map(len, by_host.values()), default=0), args["rdma_timeout"])
            ),
            alone=alone,
        )
        return result

    def _ends(self, host: str, hostvars: Any, args: dict[str, Any]) -> list[fabric.End]:
        if host not in hostvars:
            raise AnsibleActionFail("The inventory has no host %r, which is to be probed." % host)
        variables = hostvars.raw_get(host)
        children = judging.plain(variables.get(args["children"]) or {})
        listen = judging.plain(variables.get(args["listeners"]) or {})
        section = children.get("fabric") if isinstance(children, dict) else None
        if not isinstance(section, dict):
            return []
        silent = listen.get("silent") if isinstance(listen, dict) else None
        return fabric.ends_of(
            host, codec.decode(fabric.Fabric, section, host), silent if isinstance(silent, dict) else None
        )
