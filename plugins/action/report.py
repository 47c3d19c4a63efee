# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the reports of a result document on the controller; no connection to any node."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils import report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import diff, render
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.wording import count
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing

ARGUMENT_SPEC = {
    "result": {"type": "path", "required": True},
    "dest": {"type": "path", "required": True},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": list(render.FILES),
        "default": list(render.FILES),
    },
    "previous": {"type": "list", "elements": "path", "default": []},
    "expected_interval": {"type": "int"},
    "docs": {"type": "str", "default": ""},
}


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        try:
            with showing.progress_of(self, showing.name_of(self)) as progress:
                written = self._write(args, result, progress.doing)
        except RdmaError as error:
            raise AnsibleActionFail(str(error), result={"code": error.code}) from None
        result["changed"] = any(file.changed for file in written)
        result["files"] = [
            {"path": file.path, "changed": file.changed, "size": file.size} for file in written
        ]
        return result

    def _write(
        self, args: dict[str, Any], result: dict[str, Any], doing: Callable[[str], None]
    ) -> list[report_files.Written]:
        """Write the reports; how many results changed is put into ``result``.

        :param doing: takes what is being done.
        """
        doing("reading the results")
        document = report_files.read_result(args["result"])
        files = render.stream(document, args["formats"], args["expected_interval"], args["docs"])
        if args["previous"]:
            doing("comparing the results")
            documents = [report_files.read_result(path) for path in args["previous"]]
            comparison = diff.compare([*documents, document])
            files["changes.md"] = diff.render_markdown(comparison)
            files["changes.json"] = iter([json.dumps(comparison.to_dict(), indent=1) + "\n"])
            result["changes"] = {kind: len(comparison.of(kind)) for kind in diff.KINDS}
        doing("writing the reports of %s" % count(len(document.nodes), "node"))
        return report_files.write_files(args["dest"], files, dry_run=self._task.check_mode)
