# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module whole in this process: arguments in, JSON out."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args


def run(module: Any, **options: Any) -> dict[str, Any]:
    """Run a module and return what it printed; its exit code and ``failed`` agree."""
    output = io.StringIO()
    with patch_module_args(options), contextlib.redirect_stdout(output), pytest.raises(SystemExit) as stop:
        module.main()
    result: dict[str, Any] = json.loads(output.getvalue())
    assert (stop.value.code == 0) == (not result.get("failed", False))
    assert result.get("changed", False) is False
    return result


def good(module: Any, **options: Any) -> dict[str, Any]:
    """The return values of a run that did not fail, without those of Ansible itself."""
    result = run(module, **options)
    assert "failed" not in result, result
    return {key: value for key, value in result.items() if key not in ("changed", "invocation")}


def failure(module: Any, **options: Any) -> dict[str, Any]:
    """The result of a run that failed."""
    result = run(module, **options)
    assert result["failed"]
    return result
