# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for the SR-IOV operator on the controller where that can be, and show the phases of the nodes meanwhile."""

from __future__ import annotations

from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils import _kube, _sriov_states, bundle
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=_sriov_states.SPEC)
        reason = self._reason() if args["show"] and args["timeout"] else "nothing is to be shown"
        if not reason:
            result.update(self._waited(args))
            return result
        self._display.vv("rdma.k8s.sriov_node_state_info: phases are told at the end: %s" % reason)
        in_background = bool(self._task.async_val) and not self._connection.has_native_async
        try:
            result.update(self._execute_module(task_vars=task_vars, wrap_async=in_background))
        finally:
            if not in_background:
                self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _reason(self) -> str:
        """Why the work cannot be done in this process as the module would do it; empty: it can."""
        if self._connection.transport != "local":
            return "the task runs on another machine"
        if self._play_context.become:
            return "the task runs as another user"
        if any(self._task.environment or ()):
            return "the task has an environment of its own"
        if self._task.async_val:
            return "the task is async"
        missing = bundle.prepare(_kube.LIBRARIES)
        return "Ansible itself lacks %s" % ", ".join(missing) if missing else ""

    def _waited(self, args: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"changed": False, **_sriov_states.wait(args, self._show)}
        except RdmaError as error:
            raise AnsibleActionFail(
                str(error), result={"code": error.code, "details": dict(error.details)}
            ) from None

    def _show(self, line: str) -> None:
        showing.show(self._display, line)
