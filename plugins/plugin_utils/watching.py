# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugin of modules that wait for long. Private to rdma.k8s: it may change with any release.

The module runs as any other. Meanwhile it is told what it waits for, see ``module_utils/news.py``, and how long it has
taken. A task in the background is left alone: Ansible itself tells when it asks for it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any, Optional

from ansible import constants
from ansible.plugins.action import normal

from ansible_collections.rdma.k8s.plugins.module_utils import news
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing


class WatchingAction(normal.ActionModule):
    """Runs the module of the same name, and shows what it tells."""

    def run(self, tmp: Optional[str] = None, task_vars: Optional[dict[str, Any]] = None) -> dict[str, Any]:
        with contextlib.nullcontext() if self._task.async_val else self._watched():
            return super().run(tmp, task_vars)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Show lines meanwhile. What a module on another machine tells cannot be read, and with ``no_log`` must not."""
        name, here = showing.name_of(self), self._connection.transport == "local"
        if here and not self._task.no_log:
            with self._file() as path, showing.progress_of(self, name, partial(news.newest, path)):
                yield
            return
        where = name if here else "%s on %s" % (name, self._play_context.remote_addr)
        with showing.progress_of(self, where):
            yield

    @contextlib.contextmanager
    def _file(self) -> Iterator[str]:
        """An empty file of this user, which the environment of the module names."""
        handle, path = tempfile.mkstemp(prefix="rdma-k8s-news-", dir=constants.DEFAULT_LOCAL_TMP)
        os.close(handle)
        before = self._task.environment
        self._task.environment = [*(before or ()), {news.VARIABLE: path}]
        try:
            yield path
        finally:
            self._task.environment = before
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
