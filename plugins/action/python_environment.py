# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import wheels


class ActionModule(ActionBase):
    """Checks the wheels on the controller, and copies them to a node that wants them."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        del tmp
        try:
            result.update(self._run_module(task_vars))
        except RdmaError as error:
            result.update(failed=True, msg=str(error), code=error.code, details=dict(error.details))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _run_module(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        arguments = dict(self._task.args)
        if boolean(arguments.get("remote_src", False), strict=False) or not arguments.get("wheelhouse"):
            return self._execute_module(module_args=arguments, task_vars=task_vars)
        directory = self._directory(str(arguments["wheelhouse"]))
        listed = wheels.sums(directory)
        for name, digest in listed.items():
            wheels.load(directory, name, digest)
        arguments.update(wheelhouse=directory, wheels=listed)
        answer = self._execute_module(module_args=arguments, task_vars=task_vars)
        if answer.get("code") != "wheels_wanted":
            return answer
        arguments.update(wheelhouse=self._copy(directory, listed), remote_src=True)
        return self._execute_module(module_args=arguments, task_vars=task_vars)

    def _directory(self, wheelhouse: str) -> str:
        """The wheelhouse, beside the playbook or role as other files are."""
        try:
            return str(self._find_needle("files", os.path.expanduser(wheelhouse)))
        except AnsibleActionFail as error:
            raise self._missing(wheelhouse) from error
        except AnsibleError as error:
            raise self._missing(wheelhouse) from error

    @staticmethod
    def _missing(wheelhouse: str) -> RdmaError:
        return RdmaError(
            "wheelhouse_unreadable",
            "The wheelhouse %s is not on the controller." % wheelhouse,
            hint="Give the directory with the wheels and %s." % wheels.SUMS,
            path=wheelhouse,
        )

    def _copy(self, directory: str, listed: dict[str, str]) -> str:
        """Copy the wheels to the temporary directory of the task on the node."""
        shell = self._connection._shell
        if shell.tmpdir is None:
            self._make_tmp_path()
        places = []
        for name in listed:
            places.append(shell.join_path(shell.tmpdir, name))
            self._transfer_file(os.path.join(directory, name), places[-1])
        self._fixup_perms2([shell.tmpdir, *places])
        return str(shell.tmpdir)
