# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One JSON object a line on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = "rdma_k8s_provider"
_STANDARD = frozenset([*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"])


class JsonFormatter(logging.Formatter):
    """``time``, ``level``, ``event`` and whatever the call gave as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": "%s.%03dZ" % (seconds, record.msecs),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update({name: value for name, value in vars(record).items() if name not in _STANDARD})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def start(level: str) -> None:
    """Send everything to stderr, libraries from warnings on."""
    for unused in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        setattr(logging, unused, False)  # nothing of it is in a line, and each costs time
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(LOGGER).setLevel(level.upper())
