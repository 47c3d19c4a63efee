# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the provider counts, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Mapping

import prometheus_client
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    generate_latest,
)

from rdma_k8s.version import VERSION

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_NAME = "rdma_k8s_provider_"


class Metrics:
    """Counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        # A second series for each metric, which nobody asks for; 0.16 of Debian 12 cannot leave it out.
        getattr(prometheus_client, "disable_created_metrics", bool)()
        self.registry = CollectorRegistry()
        self._calls = Counter(
            _NAME + "calls",
            "Calls by path and error code (ok: none).",
            ("path", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            _NAME + "call_seconds",
            "Time to answer a call.",
            ("path",),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._failures = Counter(
            _NAME + "imds_failures",
            "Failed reads of the metadata service by endpoint.",
            ("endpoint",),
            registry=self.registry,
        )
        self._reads = Counter(
            _NAME + "imds_reads", "Reads of the metadata service in the background.", registry=self.registry
        )
        self._dumps = Counter(
            _NAME + "node_readings", "Readings of the node's kernel.", registry=self.registry
        )
        age = Gauge(
            _NAME + "imds_age_seconds",
            "Seconds since the metadata service last gave the host document; -1: never.",
            registry=self.registry,
        )
        age.set_function(self._age)
        Info(_NAME + "build", "The provider.", registry=self.registry).info({"version": VERSION})
        self._good_at = 0.0

    def call(self, path: str, code: str, seconds: float) -> None:
        """A call was answered."""
        self._calls.labels(path, code).inc()
        self._seconds.labels(path).observe(seconds)

    def node_read(self) -> None:
        """The kernel was read."""
        self._dumps.inc()

    def imds_read(self, reasons: Mapping[str, str]) -> None:
        """The metadata service was read; ``reasons``: what failed, by endpoint."""
        self._reads.inc()
        self.imds_failed(reasons)
        if "host" not in reasons:
            self._good_at = time.monotonic()

    def imds_failed(self, reasons: Mapping[str, str]) -> None:
        """Reads that failed, by endpoint."""
        for endpoint in reasons:
            self._failures.labels(endpoint).inc()

    def _age(self) -> float:
        return time.monotonic() - self._good_at if self._good_at else -1.0

    def text(self) -> bytes:
        """All of it, in the text format of Prometheus."""
        return generate_latest(self.registry)
