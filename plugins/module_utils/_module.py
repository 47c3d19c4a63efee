# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all modules share: errors as results, libraries brought along. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from . import bundle
from .core.errors import RdmaError
from .core.snapshot import ReadError


def run(module: AnsibleModule, act: Callable[[], dict[str, Any]], libraries: tuple[str, ...] = ()) -> None:
    """Exit with the result of ``act``, or fail with the message, code and details of its ``RdmaError``.

    :param libraries: third-party libraries that ``act`` needs. One that is missing is taken from what the action plugin
        brought along; when there is nothing yet, the result tells the plugin which ones by ``missing_libraries``.
    """
    try:
        prepare(module, libraries)
        result = act()
    except RdmaError as error:
        fail(module, error)
    module.exit_json(changed=False, **result)


def prepare(module: AnsibleModule, libraries: tuple[str, ...]) -> None:
    """Make the libraries importable, or fail with the names of those that are missing."""
    missing = bundle.prepare(libraries)
    if missing:
        _fail_missing(module, missing, "not installed")


def fail(module: AnsibleModule, error: RdmaError, **outcome: Any) -> None:
    """End with an error and with what was done until then."""
    if error.code == "library_missing":
        _fail_missing(module, [error.details["library"]], error.details["reason"])
    module.fail_json(msg=str(error), code=error.code, details=dict(error.details), **outcome)


def findings(read: Iterable[ReadError], parsed: Iterable[RdmaError]) -> list[dict[str, Any]]:
    """What is wrong with a source, as plain data: reads that failed, then content that is unusable."""
    failed = [
        {
            "code": "read_failed",
            "message": "%s: %s." % (error.source, error.reason),
            "hint": "",
            "retryable": True,
        }
        for error in read
    ]
    unusable = [
        {"code": error.code, "message": error.message, "hint": error.hint, "retryable": error.retryable}
        for error in parsed
    ]
    return failed + unusable


def _fail_missing(module: AnsibleModule, libraries: list[str], reason: str) -> None:
    module.fail_json(
        msg="%s Reason: %s." % (missing_required_lib(" and ".join(libraries)), reason),
        code="library_missing",
        missing_libraries=libraries,
    )
