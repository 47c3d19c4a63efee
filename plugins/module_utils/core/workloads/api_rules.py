# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API server would refuse in a pod. Private to rdma.k8s: it may change with any release.

It would do so late, and of a job that an operator turns into pods only the operator would be told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import RdmaError
from ..kube import quantity
from ..net import quoted

_VARIABLE = re.compile(r"(?!\.\.)[-._A-Za-z][-._A-Za-z0-9]*")
_WORD = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")

_LONGEST_PREFIX = 253
_QUOTA_PREFIX = "requests."
"""The name of a resource must also fit into a quota, where this stands before it."""

_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def require_variable(job: str, name: Any, value: Any) -> None:
    """A variable of the environment: a name that every release takes, and a text or a whole number.

    :raises RdmaError: ``workload_environment``
    """
    problem = ""
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name) or name == ".":
        problem = "the variable %s, expected a name of letters, digits, '_', '-' and '.', without a digit at its start"
        problem %= quoted(name)
    elif isinstance(value, bool) or not isinstance(value, (str, int)):
        problem = "%s with the value %s, expected a text or a whole number" % (name, quoted(value))
    if problem:
        raise RdmaError(
            "workload_environment",
            "The environment of %s has %s." % (job, problem),
            hint="Correct it; put quotes around a value such as true, null or 1.5 that is meant as a text.",
            variable=name if isinstance(name, str) else repr(name),
        )


def require_resource(job: str, option: str, name: Any) -> None:
    """The name of an extended resource: it has a domain, as nvidia.com/gpu has.

    :raises RdmaError: ``workload_malformed``
    """
    prefix, slash, _rest = name.partition("/") if isinstance(name, str) else ("", "", "")
    if not slash or not _is_key(name) or len(_QUOTA_PREFIX + prefix) > _LONGEST_PREFIX:
        raise _malformed(job, option, "is %s, expected a resource such as nvidia.com/gpu" % quoted(name))


def require_selector(job: str, selector: Mapping[Any, Any]) -> None:
    """Labels of nodes.

    :raises RdmaError: ``workload_malformed``
    """
    for key, value in selector.items():
        if not _is_key(key):
            raise _malformed(
                job, "node_selector", "has the label %s, which is no name of a label" % quoted(key)
            )
        if not _is_label_value(value):
            raise _malformed(
                job,
                "node_selector",
                "wants %s to be %s, expected a text of at most 63 letters, digits, '-', '_' and '.'"
                % (key, quoted(value)),
            )


def require_toleration(job: str, toleration: Mapping[Any, Any]) -> None:
    """A toleration of a pod.

    :raises RdmaError: ``workload_malformed``
    """
    problem = _problem_of(toleration)
    if problem:
        raise _malformed(job, "tolerations", "has %s: %s" % (quoted(dict(toleration)), problem))


def _problem_of(toleration: Mapping[Any, Any]) -> str:
    """What is wrong with a toleration; empty: nothing."""
    for field in toleration:
        if field not in _TOLERATION:
            return "%s is no field of it; fields are %s" % (quoted(field), ", ".join(_TOLERATION))
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect") or ""
    seconds = toleration.get("tolerationSeconds")
    if operator not in ("Equal", "Exists"):
        return "operator must be Equal or Exists"
    if key and not _is_key(key):
        return "key is no name of a taint"
    if not key and operator != "Exists":
        return "without a key, operator must be Exists"
    if operator == "Exists" and value:
        return "with the operator Exists there is no value"
    if not _is_label_value(value):
        return "value must be a text of at most 63 letters, digits, '-', '_' and '.'"
    if effect and effect not in _EFFECTS:
        return "effect must be one of %s" % ", ".join(_EFFECTS)
    if seconds is not None and (not isinstance(seconds, int) or isinstance(seconds, bool)):
        return "tolerationSeconds must be a whole number"
    if seconds is not None and effect != "NoExecute":
        return "tolerationSeconds needs the effect NoExecute"
    return ""


def require_sizes(kind: str, name: str, shm: Any, cpu: Any, memory: Any) -> None:
    """The quantities of a container; /dev/shm counts to its memory. Empty: none.

    :raises RdmaError: ``workload_shm``, and ``workload_malformed`` for processors
    """
    job = "%s %s" % (kind, name)
    size, limit, processors = quantity.parse(shm), quantity.parse(memory), quantity.parse(cpu)
    problem = ""
    if size is None or size <= 0:
        problem = "shm is %s, expected a size such as 64Gi" % quoted(shm)
    elif memory and limit is None:
        problem = "memory is %s, expected a size such as 512Gi" % quoted(memory)
    elif limit is not None and size > limit:
        problem = "shm is %s, more than the memory of %s, to which it counts" % (shm, memory)
    if problem:
        raise RdmaError("workload_shm", "%s cannot be made: %s." % (job, problem), hint="Correct the size.")
    if cpu and (processors is None or processors <= 0):
        raise _malformed(
            job, "cpu", "is %s, expected a number of processors such as 32 or 500m" % quoted(cpu)
        )


def _is_key(value: Any) -> bool:
    """A name with or without a domain, as labels, taints and resources have."""
    if not isinstance(value, str):
        return False
    prefix, slash, word = value.rpartition("/")
    good = not slash or (len(prefix) <= _LONGEST_PREFIX and bool(_PREFIX.fullmatch(prefix)))
    return good and bool(_WORD.fullmatch(word))


def _is_label_value(value: Any) -> bool:
    return isinstance(value, str) and (not value or bool(_WORD.fullmatch(value)))


def _malformed(job: str, option: str, problem: str) -> RdmaError:
    return RdmaError(
        "workload_malformed",
        "%s cannot be made: %s %s." % (job, option, problem),
        hint="Correct it; the API server would refuse it.",
        option=option,
    )
