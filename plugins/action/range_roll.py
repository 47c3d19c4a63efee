# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Carry out a roll on the controller, and show its states while it runs (decision 27)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any, Optional

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import roll_command
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import REQUEST_TIMEOUT, Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_run import News
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.roll_session import Session
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.news import silent
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing

ARGUMENT_SPEC = {
    **roll_command.SPEC,
    "show": {"type": "bool", "default": True},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
    "request_timeout": {"type": "float", "default": REQUEST_TIMEOUT},
}
GOING_ON = ("applied", "resumed", "rolled_back")
"""States that fail when the roll stopped for another reason than that it was told to."""


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _checked, args = self.validate_argument_spec(
            argument_spec=ARGUMENT_SPEC,
            required_if=roll_command.REQUIRED_IF,
            mutually_exclusive=roll_command.EXCLUSIVE,
        )

        def made(timeout: float) -> Cluster:
            return connect(args["kubeconfig"], args["context"], timeout)

        try:
            bounds.require_seconds(args, "request_timeout")
            roll_command.require(args)
            with _told_to_stop() as stop:
                session = Session(
                    made,
                    roll_command.options_of(args),
                    self._show if args["show"] else silent,
                    stop,
                    args["request_timeout"],
                )
                result.update(roll_command.act(args, session, self._task.check_mode))
        except RdmaError as error:
            raise AnsibleActionFail(
                str(error), result={"code": error.code, "details": dict(error.details), "exit_code": 2}
            ) from None
        if args["show"]:
            self._display.display("\n".join(result["summary"]))
        if (
            args["state"] in GOING_ON
            and result["exit_code"]
            and not result.get("stopped")
            and "reason" in result
        ):
            result.update(
                failed=True, msg="The roll is %s: %s." % (result["roll_phase"], result["reason"].rstrip("."))
            )
        return result

    def _show(self, news: News) -> None:
        words = [
            news.node or "roll",
            "%s -> %s" % (news.was, news.now) if news.was else news.now,
            news.reason,
        ]
        # After an interrupt nobody may listen any more; the roll must still come to its end.
        showing.show(self._display, " ".join(filter(None, words))[: showing.WIDTH])


@contextlib.contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """An event that is set when this process is told to end; then the roll pauses and its lease is given back."""
    stop = threading.Event()
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        stop.set()

    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, note)
    except ValueError:  # not the main thread: whoever started us has the signals
        pass
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
