# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sign of life on standard error, for commands that work for long. Private: it may change with any release."""

from __future__ import annotations

import contextlib
from typing import Optional, TextIO

from .. import progress
from ..core.report.wording import flat


class Progress(progress.Progress):
    """Writes to a stream. That is never standard output, which may be read by a program; a stream that is not there or
    is broken is no error."""

    def __init__(self, stream: Optional[TextIO], pause: float = progress.PAUSE) -> None:
        super().__init__(self._write, pause, pause)
        self._stream = stream
        self.doing("reading")

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        with contextlib.suppress(OSError, ValueError):  # nobody is there to be told
            self._stream.write("rdma-k8s: %s\n" % flat(text))
            self._stream.flush()
