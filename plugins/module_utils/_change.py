# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that change a node. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule

from . import _module
from .core.errors import RdmaError
from .host.changes import Changes
from .host.files import Root


def run(
    module: AnsibleModule,
    owner: str,
    act: Callable[[Changes, dict[str, Any]], dict[str, Any]],
    libraries: tuple[str, ...] = (),
) -> None:
    """Like :func:`_module.run`, for a module that changes the node (below its option ``host_root``, if it has that).

    The result has ``changed`` and ``actions``, also when it fails half-way, and ``diff`` when that is asked for.

    :param owner: name of the module, for the undo records.
    :param act: makes the changes with the options, and returns the further values of the result.
    """
    root = Root(module.params.get("host_root") or "/")
    changes = Changes(root, owner, module.check_mode)
    try:
        with changes:
            _module.prepare(module, libraries)
            result = act(changes, module.params)
    except RdmaError as error:
        _module.fail(module, error, **_outcome(module, changes))
    module.exit_json(**_outcome(module, changes), **result)


def _outcome(module: AnsibleModule, changes: Changes) -> dict[str, Any]:
    outcome = changes.result()
    if not module._diff:
        del outcome["diff"]
    return outcome
