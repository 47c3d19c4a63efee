# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module that changes nothing, whole in this process: arguments in, JSON out."""

from __future__ import annotations

from typing import Any

from ansible_collections.rdma.k8s.tests.support import change_run


def run(module: Any, **options: Any) -> dict[str, Any]:
    """Run a module that changes nothing and return what it printed."""
    result = change_run.run(module, **options)
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
