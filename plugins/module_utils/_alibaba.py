# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that ask Alibaba Cloud. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Optional

from ansible.module_utils.basic import env_fallback

from .cloud import alibaba
from .cloud.ack_addon import Outcome
from .core import bounds
from .core.ack import addon
from .core.ack.addon import Instance

OPTIONS: dict[str, Any] = {
    "cluster_id": {"type": "str", "required": True},
    "region": {"type": "str", "fallback": (env_fallback, ["ALIBABA_CLOUD_REGION_ID", "ALICLOUD_REGION"])},
    "endpoint": {"type": "str"},
    "protocol": {"type": "str", "choices": ["https", "http"], "default": "https"},
    "access_key_id": {"type": "str", "no_log": True},
    "access_key_secret": {"type": "str", "no_log": True},
    "security_token": {"type": "str", "no_log": True},
    "timeout": {"type": "float", "default": 10},
    "attempts": {"type": "int", "default": 5},
}


class Cloud:
    """The cloud as the options describe it: credentials, place, limits.

    :raises RdmaError: those of :mod:`cloud.alibaba` about names, endpoints and credentials, ``number_out_of_range``.
    """

    def __init__(self, params: dict[str, Any]) -> None:
        bounds.require_seconds(params, "timeout")
        bounds.require_numbers(params, attempts=(1, 10))
        alibaba.require_name("cluster", params["cluster_id"])
        self._params = params
        self._place = self._at("endpoint")
        self._limits = alibaba.Limits(params["timeout"], params["attempts"])
        login = alibaba.login_of(
            params["access_key_id"], params["access_key_secret"], params["security_token"], os.environ
        )
        self._credentials = alibaba.Credentials(login)

    def _at(self, option: str) -> alibaba.Place:
        params = self._params
        place = alibaba.Place(params["region"] or "", params[option] or "", params["protocol"])
        alibaba.require_place(place)
        return place

    def ack(self) -> alibaba.Service:
        """The service of ACK."""
        return alibaba.cs(self._credentials, self._place, self._limits)

    def lingjun(self) -> alibaba.Service:
        """The service of Lingjun clusters."""
        return alibaba.eflo(self._credentials, self._at("eflo_endpoint"), self._limits)


def about(name: str, found: Optional[Instance]) -> dict[str, Any]:
    """An add-on as a module returns it."""
    if found is None:
        return {"name": name, "state": "absent", "version": None, "config": {}}
    return {"name": name, "state": found.state, "version": found.version, "config": dict(found.config)}


def result(name: str, outcome: Outcome, diff: bool) -> dict[str, Any]:
    """The return values about what was done, also when it ended half-way."""
    before, after = about(name, outcome.before), about(name, outcome.after)
    found: dict[str, Any] = {
        "changed": outcome.changed,
        "actions": list(outcome.actions),
        "addon": after,
        "task_id": outcome.task_id or None,
        "cluster": outcome.cluster.to_dict() if outcome.cluster else None,
        "catalogue": None,
    }
    if outcome.offer is not None:
        found["catalogue"] = {
            "version": outcome.offer.version,
            "config_schema": addon.schema(outcome.offer.config_schema),
            "upgradable": list(outcome.offer.upgradable),
        }
    if diff:
        found["diff"] = {"before": before, "after": after}
    return found


def secrets(configs: Iterable[Any]) -> set[str]:
    """Texts of configurations that no output may show."""
    return {text for config in configs if config for text in addon.secrets(config)}
