# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host gave no snapshot, in one line. Private to rdma.k8s: it may change with any release.

Ansible tells three kinds of failure: with a message; without one, when the module broke off (the message is in the
error that ``failed_when`` held back); and "deserialization failed" with what the host printed, when no module ran at
all: no interpreter, one that is too old, a password that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NO_MODULE = "Module result deserialization failed"
_NO_INTERPRETER = "The module interpreter"
_PREFIX = "Task failed: "
_ASIDE = re.compile(r"debug\d: |OpenSSH_|(Shared c|C)onnection to \S+ closed|\s*$|\s*\^+\s*$")
_NOT_STARTED = (126, 127)
_LONGEST = 300
_HINT = " Set ansible_python_interpreter of this host to a Python 3.9 or newer."


def no_snapshot(gathered: Mapping[str, Any]) -> str:
    """The reason, from the result of the task that was to gather."""
    message = _flat(gathered.get("msg"))
    while message.startswith(_PREFIX):
        message = message[len(_PREFIX) :]
    if message.startswith(_NO_MODULE):
        return _no_module(gathered)
    if message:
        return message + _HINT if message.startswith(_NO_INTERPRETER) else message
    held_back = getattr(gathered.get("failed_when_suppressed_exception"), "event", None)
    message = _flat(getattr(held_back, "msg", ""))
    if message:
        return "The module broke off: %s.%s" % (message.rstrip("."), _HINT)
    return "The node gave no snapshot."


def _no_module(gathered: Mapping[str, Any]) -> str:
    """What the host printed instead of a result: the first line when nothing started, else the last one."""
    lines = [
        line
        for name in ("module_stdout", "module_stderr")
        for line in str(gathered.get(name) or "").splitlines()
        if not _ASIDE.match(line)
    ]
    code = gathered.get("rc")
    told = _flat(lines[0 if code in _NOT_STARTED else -1]) if lines else "nothing was printed"
    sentence = "The module did not run (exit code %s): %s." % (code, told.rstrip("."))
    return sentence if told.startswith(("sudo:", "su:")) else sentence + _HINT


def _flat(value: Any) -> str:
    text = " ".join(str(value or "").split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
