# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the lint: what the documents do not tell. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..errors import RdmaError
from ..kube import quantity
from ..net import quoted


@dataclass(frozen=True)
class Option:
    """A setting of rules.

    :param default: what holds when it is not given.
    :param meaning: one sentence for the reference.
    :param expected: what it must be, for messages; ``good`` tells whether a value is.
    """

    default: Any
    meaning: str
    expected: str
    good: Callable[[Any], bool]


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


def _amount(value: Any) -> bool:
    found = quantity.parse(value)
    return found is not None and found > 0


def _taints(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(entry, dict) and isinstance(entry.get("key"), str) for entry in value
    )


OPTIONS: dict[str, Option] = {
    "memlock_unlimited": Option(
        False,
        "The container runtime of the nodes has no limit for locked memory, so IPC_LOCK is not needed.",
        "a boolean",
        _flag,
    ),
    "min_shm": Option("8Gi", "The least size of shared memory.", "a quantity above 0", _amount),
    "profile_provider": Option(
        "cloud",
        "Who resolves profiles of DRANET; with none a claim brings its own addresses.",
        "cloud, webhook or none",
        _one_of("cloud", "webhook", "none"),
    ),
    "resource_name": Option(
        "rdma/hca",
        "Lingjun nodes: the resource of the plugin.",
        "the name of an extended resource",
        lambda value: isinstance(value, str) and "/" in value,
    ),
    "non_host_network": Option(
        False, "Lingjun nodes: the plugin lets pods off the network of the host.", "a boolean", _flag
    ),
    "rdma_mode": Option(
        "shared",
        "Lingjun nodes: the mode of the plugin.",
        "shared or exclusive",
        _one_of("shared", "exclusive"),
    ),
    "taints": Option(
        ({"key": "node-role.alibabacloud.com/lingjun", "effect": "NoSchedule"},),
        "Lingjun nodes: their taints (key, effect, value).",
        "a list of taints, each with a key",
        _taints,
    ),
}
"""The options by name; those of the ACK rules have the defaults of A70."""


def checked(given: Any) -> dict[str, Any]:
    """The options that were given, when each is known and of the right kind.

    :raises RdmaError: ``lint_option_unknown``, ``lint_option_malformed`` (details: ``option``)
    """
    if not isinstance(given, Mapping):
        raise _malformed("options", "a map of options", given)
    for name, value in given.items():
        if name not in OPTIONS:
            raise RdmaError(
                "lint_option_unknown",
                "The lint has no option %s." % quoted(name),
                hint="Options are %s." % ", ".join(OPTIONS),
                option=str(name),
            )
        if not OPTIONS[name].good(value):
            raise _malformed(name, OPTIONS[name].expected, value)
    return dict(given)


def _malformed(name: str, expected: str, value: Any) -> RdmaError:
    return RdmaError(
        "lint_option_malformed",
        "The option %s must be %s, found %s." % (name, expected, quoted(value)),
        hint="Correct the value.",
        option=name,
    )
