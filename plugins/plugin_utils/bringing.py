# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin of modules that need pure Python libraries on a node. Private to rdma.k8s: it may change any time.

The module is run as always, with the SHA-256 of the archive that the controller could bring in its environment. A node
that has the libraries, installed or kept from an earlier run, needs nothing more. Else the module says what is missing,
the archive is copied into the temporary directory of the task, and the module is run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.rdma.k8s.plugins.module_utils import bundle, deps
from ansible_collections.rdma.k8s.plugins.plugin_utils import archives

display = Display()


class BringingAction(ActionBase):
    """Runs the module of the same name; ``LIBRARIES`` are what it needs."""

    LIBRARIES: tuple[str, ...] = ()

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        del tmp
        try:
            result.update(self._run_module(task_vars))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _run_module(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        try:
            archive = archives.archive(
                {library: deps.MINIMUM[library] for library in self.LIBRARIES},
                Path(constants.config.get_config_value("ANSIBLE_HOME")) / "rdma.k8s",
            )
        except archives.NotAvailableError as error:
            answer = self._execute_module(task_vars=task_vars)
            if answer.pop("missing_libraries", None):
                answer["msg"] = "%s It cannot be brought along either: %s" % (answer["msg"], error)
            return answer
        try:
            answer = self._execute(task_vars, {bundle.DIGEST: archive.digest})
            if answer.pop("missing_libraries", None):
                answer = self._bring(archive, task_vars)
        finally:
            if archive.temporary:
                Path(archive.path).unlink(missing_ok=True)
        return answer

    def _bring(self, archive: archives.Archive, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Copy the archive to the node and run the module again."""
        display.vv("copying %s" % ", ".join(self.LIBRARIES), host=self._play_context.remote_addr)
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()
        place = self._connection._shell.join_path(self._connection._shell.tmpdir, "libraries.zip")
        self._transfer_file(archive.path, place)
        self._fixup_perms2([self._connection._shell.tmpdir, place])
        answer = self._execute(task_vars, {bundle.DIGEST: archive.digest, bundle.ARCHIVE: place})
        answer.pop("missing_libraries", None)
        return answer

    def _execute(self, task_vars: dict[str, Any] | None, variables: dict[str, str]) -> dict[str, Any]:
        """Run the module with further variables in its environment."""
        self._task.environment.append(variables)
        try:
            return self._execute_module(task_vars=task_vars)
        finally:
            self._task.environment.remove(variables)
