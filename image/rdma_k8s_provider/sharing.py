# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Readings of the node for calls that wait at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Optional

from .node import NodeReader, Reading


class SharedReader:
    """Lets calls share one reading, which never began before the call came.

    While a reading runs, whoever comes waits for the next one; that begins when the running one has ended, for all who
    wait by then. So 16 claims at once cost two readings, not 16.
    """

    def __init__(self, reader: NodeReader, executor: Executor, count: Callable[[], None]) -> None:
        self._reader = reader
        self._executor = executor
        self._count = count
        self._wanted: set[str] = set()
        self._next: Optional[asyncio.Future[Reading]] = None
        self._running: Optional[asyncio.Task[None]] = None

    async def read(self, pci_address: str = "") -> Reading:
        """A reading that begins after this was called, with the device."""
        loop = asyncio.get_running_loop()
        if self._next is None:
            self._next = loop.create_future()
        self._wanted.add(pci_address)
        if self._running is None:
            self._running = loop.create_task(self._work())
        return await asyncio.shield(self._next)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)  # whose requests have arrived already come along
        while self._next is not None:
            waiting, wanted = self._next, self._wanted
            self._next, self._wanted = None, set()
            self._count()
            reading = loop.run_in_executor(self._executor, self._reader.read, wanted)
            await asyncio.wait([reading])
            error = reading.exception()
            if error is None:
                waiting.set_result(reading.result())
            else:
                waiting.set_exception(error)
        self._running = None
