# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the provider: ``python3 -m rdma_k8s_provider``."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from rdma_k8s.core.errors import RdmaError
from rdma_k8s.core.oke import nic_table, nics, oca, webhook
from rdma_k8s.host import oca as oca_files
from rdma_k8s.host.files import Root
from rdma_k8s.version import VERSION

from . import logs, settings as options
from .app import Sources, Webhook, operations
from .metadata import Refresher, Service, Vnics
from .metrics import Metrics
from .node import NodeReader
from .sharing import SharedReader
from .sockets import Place

WRONG_OPTION = 2
PATIENCE = 8.0
"""Seconds that running calls get to end after SIGTERM; the driver gives up after 10 (F122)."""

log = logging.getLogger(logs.LOGGER)


def main() -> int:
    """Read the options, listen, answer until SIGTERM or SIGINT; the exit code."""
    places: list[Place] = []
    try:
        settings = options.read()
        for where in settings.listen:
            places.append(Place(where))
        extra = Place(settings.metrics) if settings.metrics is not None else None
    except RdmaError as error:
        for place in places:
            place.remove()
        sys.stderr.write("rdma_k8s_provider: %s\n" % webhook.sentence_of(error))
        return WRONG_OPTION
    logs.start(settings.log_level)
    return asyncio.run(_serve(settings, places, extra))


def _oca_config(host_root: str) -> oca.OcaConfig:
    """OCA's files, read once (F54)."""
    root = Root(host_root)
    files = oca_files.read(root)
    found = oca.load(files.rdma_network or None, files.rdma_features_enable or None)
    for warning in found.warnings:
        log.warning("oca", extra={"code": warning.code, "reason": str(warning)})
    for entry in root.errors:
        log.warning("oca", extra={"source": entry.source, "reason": entry.reason})
    return found


async def _serve(settings: options.Settings, places: list[Place], extra: Place | None) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics = Metrics()
    config = _oca_config(settings.host_root)
    reader = NodeReader(settings.host_root)
    first = reader.read()
    identified = nics.identify(first.interfaces, config.network)
    provider = webhook.Provider(identified.address_fallback, settings.table)
    _tell_start(settings, config, provider, identified.rdma_nics)
    if identified.rdma_nics and nics.netns_mode(first.netns_mode) == nics.EXCLUSIVE:
        reason = "DRANET refuses the claims of Ethernet NICs in exclusive RDMA namespace mode (F85)"
        log.warning("netns_mode", extra={"reason": reason})
    with ThreadPoolExecutor(1, "node") as for_node, ThreadPoolExecutor(2, "imds") as for_imds:
        shared = SharedReader(reader, for_node, metrics.node_read)
        service = Service(settings.imds_url, settings.host_root, for_imds)

        async def has_rdma_nic() -> bool:
            found = (await shared.read()).interfaces
            return bool(nics.identify(found, config.network).rdma_nics)

        refresher = Refresher(service, metrics, has_rdma_nic)
        sources = Sources(shared, refresher, Vnics(service, metrics), metrics)
        hook = Webhook(settings, config, provider, sources)
        runner = web.AppRunner(hook.application(), access_log=None)
        await runner.setup()
        servers = [await loop.create_server(_protocol(runner), sock=place.socket) for place in places]
        more = web.AppRunner(operations(metrics, refresher.ready.is_set), access_log=None)
        await more.setup()
        if extra is not None:
            servers.append(await loop.create_server(_protocol(more), sock=extra.socket))
        log.info("listen", extra={"webhook": [str(place) for place in places], "metrics": str(extra or "")})
        gc.collect()
        gc.freeze()  # what is here stays; a full collection in the middle of a call need not look at it
        background = loop.create_task(refresher.run())
        background.add_done_callback(lambda _task: stop.set())
        await stop.wait()
        log.info("stop", extra={})
        for place in places:
            place.remove()
        for server in servers:
            server.close()
        if not await hook.idle(PATIENCE):
            log.warning("stop", extra={"reason": "calls still ran after %g s" % PATIENCE})
        await runner.cleanup()
        await more.cleanup()
        if background.done():
            log.critical(
                "stop", extra={"reason": "the reader of the metadata failed"}, exc_info=background.exception()
            )
            return 1
        background.cancel()
    return 0


def _protocol(runner: web.AppRunner) -> web.Server:
    """What a connection is handed to; there once the runner has been set up."""
    if runner.server is None:
        raise AssertionError
    return runner.server


def _tell_start(
    settings: options.Settings, config: oca.OcaConfig, provider: webhook.Provider, found: tuple[str, ...]
) -> None:
    told = {
        "version": VERSION,
        "child_range": str(settings.child_range),
        "oca_network": str(config.network),
        "address_mode": config.address_mode or "not known",
        "rdma_nics": list(found),
        "by_address": provider.by_address,
    }
    log.info("start", extra=told)
    if provider.table:
        listed = [entry.nic for entry in provider.table]
        log.warning("nic_table", extra={"nics": listed, "not_checked": list(nic_table.LOST)})


if __name__ == "__main__":
    sys.exit(main())
