# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The calls of the webhook, as an application of aiohttp."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from rdma_k8s.core.errors import RdmaError
from rdma_k8s.core.oke import oca, profile, webhook
from rdma_k8s.core.oke.nics import Device

from .metadata import Refresher, Vnics
from .metrics import Metrics
from .settings import Settings
from .sharing import SharedReader

LIMIT = 4 << 20
"""Largest body: a whole claim, which newer drivers send, is below the limit of etcd."""
_WAITS_FOR_METADATA = frozenset(["fabric_not_available", "vnic_not_available"])

log = logging.getLogger("rdma_k8s_provider")


@dataclass(frozen=True)
class Sources:
    """Where answers come from, and what counts them."""

    reader: SharedReader
    refresher: Refresher
    vnics: Vnics
    metrics: Metrics


class Webhook:
    """Answers the calls. It keeps nothing of a claim: the same call gives the same answer (F42, F124)."""

    def __init__(
        self, settings: Settings, config: oca.OcaConfig, provider: webhook.Provider, sources: Sources
    ) -> None:
        self._settings = settings
        self._oca = config
        self._provider = provider
        self._reader = sources.reader
        self._refresher = sources.refresher
        self._vnics = sources.vnics
        self._metrics = sources.metrics
        self._service_host = os.environ.get("KUBERNETES_SERVICE_HOST")
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._posts: dict[str, Callable[[Any, dict[str, Any]], Awaitable[Any]]] = {
            "/GetDeviceAttributes": self._attributes,
            "/GetDeviceConfig": self._device_config,
            "/GetProfileConfig": self._profile_config,
            "/ReleaseProfileConfig": self._release,
        }

    def application(self) -> web.Application:
        """The application for the runner."""
        made = web.Application(client_max_size=LIMIT)
        made.router.add_route("*", "/{path:.*}", self._handle)
        return made

    async def idle(self, patience: float) -> bool:
        """Wait until no call runs; whether that came to be in time."""
        try:
            await asyncio.wait_for(self._idle.wait(), patience)
        except asyncio.TimeoutError:
            return False
        return True

    async def _handle(self, request: web.Request) -> web.Response:
        began = time.perf_counter()
        told: dict[str, Any] = {}
        self._running += 1
        self._idle.clear()
        try:
            answer = await self._answer(request, told)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
        known = request.path == "/health" or request.path in self._posts
        path = request.path if known else "other"
        seconds = time.perf_counter() - began
        code = told.get("code", "")
        self._metrics.call(path, code or "ok", seconds)
        level = logging.INFO if answer.status == 200 else logging.WARNING
        if path == "/health" and answer.status == 200:
            level = logging.DEBUG
        told = {"path": request.path[:100], **told, "status": answer.status, "ms": round(seconds * 1000, 1)}
        log.log(level, "call", extra=told)
        return answer

    async def _answer(self, request: web.Request, told: dict[str, Any]) -> web.Response:
        if request.path == "/health":
            if request.method not in ("GET", "HEAD"):
                error = RdmaError("method_not_allowed", "/health is asked with GET.")
                return _refused(request, told, 405, error, "GET")
            return web.json_response(dict(webhook.CAPABILITIES))
        call = self._posts.get(request.path)
        if call is None:
            error = RdmaError("unknown_path", "There is nothing at %s." % request.path[:100])
            return _refused(request, told, 404, error)
        if request.method != "POST":
            error = RdmaError("method_not_allowed", "%s is asked with POST." % request.path)
            return _refused(request, told, 405, error, "POST")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            error = RdmaError("body_too_large", "The request has more than %d bytes." % LIMIT)
            return _refused(request, told, 413, error)
        try:
            return web.json_response(await call(webhook.decode(body), told))
        except RdmaError as error:
            told["code"] = error.code
            told["text"] = error.message
            if error.code in _WAITS_FOR_METADATA:
                self._refresher.want()
            return _error(request, webhook.status_of(error), error)

    # --- the calls

    async def _attributes(self, document: Any, told: dict[str, Any]) -> Any:
        asked = webhook.device_request(document)
        device, node = await self._look(asked, told)
        known = node.metadata
        incomplete = known is None or known.fabric is None or known.vnic is None
        if incomplete and webhook.is_ethernet_rdma_nic(device, node, self._provider):
            # No claim will ask for it: the class of the NICs waits for their readiness.
            self._refresher.want()
        return webhook.attributes(device, node, self._provider)

    async def _device_config(self, document: Any, told: dict[str, Any]) -> Any:
        asked = webhook.device_request(document)
        device, node = await self._look(asked, told)
        found = webhook.device_config(device, node, self._provider)
        if found.reason:
            told["reason"] = found.reason
        return found.document

    async def _profile_config(self, document: Any, told: dict[str, Any]) -> Any:
        asked = webhook.claim_request(document)
        told["claim"] = asked.claim_uid
        device, node = await self._look(asked.device, told)
        found = webhook.profile_config(asked, device, node, self._provider)
        if found.reason:
            told["reason"] = found.reason
        elif self._oca.address_mode is None and self._provider.listed(device) is None:
            # The layout of the host was right once, and is not compared again (F36).
            self._oca = replace(self._oca, address_mode=oca.CLASSIC)
        return found.document

    async def _release(self, document: Any, told: dict[str, Any]) -> Any:
        asked = webhook.claim_request(document)
        told.update({"device": asked.device.name, "pci": asked.device.pci_address, "claim": asked.claim_uid})
        return {}

    async def _look(self, asked: webhook.DeviceRequest, told: dict[str, Any]) -> tuple[Device, profile.Node]:
        told.update({"device": asked.name, "pci": asked.pci_address})
        vnics = await self._vnics.document()
        reading = await self._reader.read(asked.pci_address)
        below = reading.devices.get(asked.pci_address)
        net, infiniband = (below.net, below.infiniband) if below is not None else ((), ())
        node = profile.Node(
            interfaces=reading.interfaces,
            netns_mode=reading.netns_mode,
            metadata=self._refresher.metadata,
            oca=self._oca,
            child_range=self._settings.child_range,
            vnics=vnics,
            host_routes=reading.routes,
            service_host=self._service_host,
        )
        if reading.errors:
            told["unreadable"] = ["%s: %s" % (entry.source, entry.reason) for entry in reading.errors]
        return webhook.device_of(asked, net, infiniband), node


def _refused(
    request: web.Request, told: dict[str, Any], status: int, error: RdmaError, allow: str = ""
) -> web.Response:
    told["code"] = error.code
    answer = _error(request, status, error)
    if allow:
        answer.headers["Allow"] = allow
    return answer


def _error(request: web.Request, status: int, error: RdmaError) -> web.Response:
    """The error as text, which is what a pod's event shows; as JSON for whoever says that they accept JSON."""
    if "application/json" in request.headers.get("Accept", ""):
        return web.json_response({"error": error.to_dict()}, status=status)
    return web.Response(status=status, text=webhook.sentence_of(error))


def operations(metrics: Metrics, ready: Callable[[], bool]) -> web.Application:
    """``/metrics``, ``/healthz`` and ``/readyz``."""

    async def show(_request: web.Request) -> web.Response:
        return web.Response(
            body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def alive(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def is_ready(_request: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="The metadata service has not told everything yet.")

    made = web.Application()
    made.router.add_get("/metrics", show)
    made.router.add_get("/healthz", alive)
    made.router.add_get("/readyz", is_ready)
    return made
