# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata service: read in the background, and its list of VNICs read fresh for claims (F9, F60-F69)."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, Optional

from rdma_k8s.core.oke.imds import Metadata, merge, read as read_documents
from rdma_k8s.core.snapshot import Imds
from rdma_k8s.host import imds
from rdma_k8s.host.files import Root

from .metrics import Metrics

WINDOW = 15.0
"""Seconds after the start in which the service is asked every second (F9)."""
POLL, REFRESH, JITTER = 1.0, 300.0, 0.1
VNICS_AGE = 30.0
"""Seconds for which a list of VNICs counts as fresh, a failed read too (F9)."""
VNICS_PATIENCE = 4.0
"""The longest a claim waits for the list: the driver gives up after 10 s (F122)."""
SOONER = 5.0
"""How often a claim that lacks metadata may have the service asked out of turn."""

log = logging.getLogger("rdma_k8s_provider")


class Service:
    """The metadata service, asked in a thread of its own, so that one that hangs holds nothing else up."""

    def __init__(self, url: str, host_root: str, executor: Executor) -> None:
        self._url = url
        self._host_root = host_root
        self._executor = executor

    async def ask(self, *endpoints: str, timeout: float = imds.TIMEOUT) -> tuple[Imds, dict[str, str]]:
        """The documents, and by endpoint why there is none."""
        root = Root(self._host_root)
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._executor, imds.read, root, self._url, timeout, endpoints)
        reasons = {entry.source.split("/")[1]: entry.reason for entry in root.errors}
        return found.documents, reasons


class Refresher:
    """Keeps what the service said last, field by field (F68). A read that fails changes nothing and ends nothing."""

    def __init__(
        self, service: Service, metrics: Metrics, has_rdma_nic: Callable[[], Awaitable[bool]]
    ) -> None:
        self.metadata: Optional[Metadata] = None
        self.ready = asyncio.Event()
        self._service = service
        self._metrics = metrics
        self._has_rdma_nic = has_rdma_nic
        self._sooner = asyncio.Event()
        self._last_try = 0.0
        self._said: dict[str, str] = {}

    async def run(self) -> None:
        """Read at once, every second until it is complete or the window has passed, then every five minutes (F9)."""
        began = time.monotonic()
        while True:
            complete = await self._read()
            if complete or time.monotonic() - began >= WINDOW:
                self.ready.set()
                await self._pause(REFRESH * (1 + JITTER * random.random()))  # noqa: S311 (spreads requests)
            else:
                await self._pause(POLL)

    async def _pause(self, seconds: float) -> None:
        self._sooner.clear()
        try:
            await asyncio.wait_for(self._sooner.wait(), seconds)
        except asyncio.TimeoutError:
            return

    def want(self) -> None:
        """A claim lacks metadata: ask again before the next turn, but not more often than every few seconds."""
        if time.monotonic() - self._last_try >= SOONER:
            self._sooner.set()

    async def _read(self) -> bool:
        """One read; whether everything is known now."""
        self._last_try = time.monotonic()
        wants_vnic = (self.metadata is None or self.metadata.vnic is None) and await self._has_rdma_nic()
        endpoints = ("host", "instance", "vnics") if wants_vnic else ("host", "instance")
        documents, reasons = await self._service.ask(*endpoints)
        new, errors = read_documents(documents.host, documents.instance, documents.vnics)
        for error in errors:
            reasons["vnics" if error.code.startswith("vnic") else error.code.partition("_")[0]] = (
                error.message
            )
        if (documents.host, documents.instance, documents.vnics) != (None, None, None):
            self.metadata = merge(self.metadata, new)
        self._metrics.imds_read(reasons)
        self._tell(reasons)
        has_vnic = not wants_vnic or (self.metadata is not None and self.metadata.vnic is not None)
        return "host" not in reasons and "vnics" not in reasons and has_vnic

    def _tell(self, reasons: dict[str, str]) -> None:
        """A line for each change, not one for each failed read."""
        for endpoint in sorted({*reasons, *self._said}):
            reason = reasons.get(endpoint, "")
            if reason != self._said.get(endpoint, ""):
                level = logging.WARNING if reason else logging.INFO
                log.log(level, "metadata", extra={"endpoint": endpoint, "reason": reason or "answers again"})
        self._said = dict(reasons)


class Vnics:
    """The document of ``/vnics/`` for the conflict check: at most 30 seconds old, read once for all who wait (F46)."""

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service = service
        self._metrics = metrics
        self._document: Any = None
        self._at = float("-inf")
        self._reading: Optional[asyncio.Task[None]] = None

    async def document(self) -> Any:
        """The document, ``None``: the read failed, which only warns (F49)."""
        if time.monotonic() - self._at < VNICS_AGE:
            return self._document
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())
        try:
            await asyncio.wait_for(asyncio.shield(self._reading), VNICS_PATIENCE)
        except asyncio.TimeoutError:
            log.warning("vnics", extra={"reason": "no answer within %g s" % VNICS_PATIENCE})
            return None
        return self._document

    async def _read(self) -> None:
        try:
            documents, reasons = await self._service.ask("vnics")
            self._document = None if "vnics" in reasons else documents.vnics
            self._at = time.monotonic()
            if reasons:
                self._metrics.imds_failed(reasons)
                log.warning("vnics", extra={"reason": "; ".join(reasons.values())})
        finally:
            self._reading = None
