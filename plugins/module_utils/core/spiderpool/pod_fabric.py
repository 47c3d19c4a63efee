# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of traffic between pods on different nodes: who talks to whom, with which words, and what came out.

Private to rdma.k8s: it may change with any release. Device, index of the GID and address are always said: the guesses
of the tools are wrong where a pod has several rails (S144).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..finding import FAIL, PASS, SKIP, UNKNOWN
from ..net import Address
from . import pod_rdma
from .names import INFINIBAND
from .pod_evidence import Evidence

RING, ALL = MODES = ("ring", "all")
LATENCY, BANDWIDTH, ECHO = KINDS = ("latency", "bandwidth", "echo")
READ_LAT, WRITE_BW, PINGPONG, RPING = TOOLS = ("ib_read_lat", "ib_write_bw", "ibv_rc_pingpong", "rping")
"""Programs for tests, those that tell most first. The last two tell that messages pass, and no speed to rely on."""
GUARD = "sleep"
"""What the image needs beside them: it ends a test in time."""
FIRST_PORT, PORTS = 18515, 2000
ITERATIONS = 1000
CELL = (
    *("source_device", "source_gid_index", "target_device", "target_gid_index", "target_address"),
    *("latency_us", "bandwidth_gbps", "mtu"),
)
"""What the matrix has of each test, beside status and reason."""
_MIB = 1 << 20
_COLUMNS = re.compile(
    r"#bytes|#iterations|t_min|t_max|t_typical|t_avg|t_stdev|99\.9% percentile|99% percentile"
    r"|BW peak|BW average|MsgRate"
)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_MTU = re.compile(r"^\s*Mtu\s*:\s*([0-9]+)\[B\]", re.MULTILINE)
_PINGPONG = re.compile(r"([0-9]+) iters in [0-9.]+ seconds = ([0-9.]+) usec/iter")
_NO_SERVER = re.compile(r"(?i)(?:could ?n[o']t|cannot|can't|unable to|failed to) connect|connection refused")
_RULER = re.compile(r"[-*= ]*")


class End(NamedTuple):
    """One end of a test: a rail of a pod. ``gid_index`` is ``None`` on InfiniBand, where none is needed."""

    pod: str
    node: str
    nic: str
    device: str
    gid_index: Optional[int]
    address: Address
    tools: frozenset[str] = frozenset()


class Pair(NamedTuple):
    """A directed test: ``source`` is the client, ``target`` the server."""

    source: End
    target: End


class Probe(NamedTuple):
    """What is run for a pair: words of server and client; ``kind`` is what it measures."""

    pair: Pair
    kind: str
    tool: str
    port: int
    server: tuple[str, ...]
    client: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What one test showed. ``None``: not measured.

    :param latency_us: ``ib_read_lat``: the typical time of a read, there and back; ``ibv_rc_pingpong``: of a message
        there and one back.
    :param bandwidth_gbps: average of ``ib_write_bw`` in 10^9 bits per second.
    :param mtu: MTU in use on the path, as the program told it.
    """

    nic: str
    source: str
    target: str
    kind: str
    status: str
    tool: str = ""
    reason: str = ""
    latency_us: Optional[float] = None
    latency_p99_us: Optional[float] = None
    bandwidth_gbps: Optional[float] = None
    mtu: Optional[int] = None
    source_device: str = ""
    target_device: str = ""
    source_gid_index: Optional[int] = None
    target_gid_index: Optional[int] = None
    target_address: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return dict(self.__dict__)


def ends_of(pod: str, node: str, evidence: Evidence) -> tuple[list[End], dict[str, str]]:
    """The rails of a pod that can be tested, and the reasons for those that cannot, by interface."""
    rdma = evidence.rdma()
    verdict = pod_rdma.judge(rdma)
    devices = pod_rdma.devices_by_nic(rdma)
    ends, why = [], {}
    for entry in evidence.interfaces:
        device = devices.get(entry.name)
        if entry.address is None:
            why[entry.name] = "the interface has no address"
        elif device is None:
            why[entry.name] = "no RDMA device of the pod has a GID of type RoCE v2 with its address"
        else:
            gid = None if device.link_layer == INFINIBAND else verdict.gid_index.get(device.name)
            address = Address(entry.address.version, entry.address.value)
            ends.append(End(pod, node, entry.name, device.name, gid, address, frozenset(evidence.tools)))
    return ends, why


# Who talks to whom


def plan_pairs(ends: Iterable[End], mode: str = RING, seed: int = 0) -> list[Pair]:
    """The pairs of all rails, netK to netK, always between different nodes, in the order of rails and pods.

    ``ring``: on each rail the pods stand in an order that the seed fixes, pods of one node apart, and each talks to the
    next one that is on another node; so each is once a client and mostly once a server. ``all``: every pod talks to
    every other one on another node, in both directions.

    :raises RdmaError: ``fabric_mode`` for another mode.
    """
    if mode not in MODES:
        raise RdmaError("fabric_mode", "Pairs are %s; found %r." % (" or ".join(MODES), mode))
    rails: dict[str, list[End]] = {}
    for end in ends:
        rails.setdefault(end.nic, []).append(end)
    found: list[Pair] = []
    for nic in sorted(rails, key=natural):
        members = _apart(rails[nic], seed)
        for at, source in enumerate(members):
            others = [*members[at + 1 :], *members[:at]]
            others = [other for other in others if other.node != source.node]
            found += [Pair(source, other) for other in (others if mode == ALL else others[:1])]
    return found


def natural(called: str) -> tuple[Any, ...]:
    """net2 before net10; texts and numbers are not compared with each other."""
    return tuple(
        [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split("([0-9]+)", called)]
    )


def _apart(members: Iterable[End], seed: int) -> list[End]:
    """In an order that the seed fixes, the first pods of all nodes before the second ones."""
    nodes: dict[str, list[End]] = {}
    for end in sorted(members, key=lambda end: _shuffled(seed, end.nic, end.pod)):
        nodes.setdefault(end.node, []).append(end)
    layers = max([len(held) for held in nodes.values()], default=0)
    return [held[layer] for layer in range(layers) for held in nodes.values() if layer < len(held)]


def _shuffled(seed: int, nic: str, pod: str) -> str:
    return hashlib.sha256(("%d/%s/%s" % (seed, nic, pod)).encode("utf-8", "surrogatepass")).hexdigest()


def lone(ends: Sequence[End], pairs: Iterable[Pair]) -> list[End]:
    """The rails of pods that take part in no pair, since no pod on another node has the rail."""
    used = {(end.pod, end.nic) for pair in pairs for end in pair}
    return [end for end in ends if (end.pod, end.nic) not in used]


def rounds(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """The pairs in groups in which no pod stands twice, so that no test takes another's bandwidth."""
    found: list[tuple[set[str], list[Pair]]] = []
    for pair in pairs:
        pods = {pair.source.pod, pair.target.pod}
        for busy, held in found:
            if not busy & pods:
                busy.update(pods)
                held.append(pair)
                break
        else:
            found.append((set(pods), [pair]))
    return [held for _busy, held in found]


# What is run


def plan_tests(pair: Pair, number: int, kinds: Collection[str]) -> list[Probe]:
    """The tests of a pair with the programs that both images have; none when they share no program.

    :param number: of the pair, for ports that no other test uses.
    :param kinds: what is to be measured. Without the programs of perftest one ping-pong stands for all of it.
    """
    both = pair.source.tools & pair.target.tools
    if GUARD not in both:
        return []
    port = FIRST_PORT + number * len(KINDS) % PORTS
    chosen = []
    if LATENCY in kinds and READ_LAT in both:
        chosen.append((LATENCY, READ_LAT))
    if BANDWIDTH in kinds and WRITE_BW in both:
        chosen.append((BANDWIDTH, WRITE_BW))
    if not chosen and PINGPONG in both:
        chosen.append((LATENCY, PINGPONG))
    if not chosen and RPING in both:
        chosen.append((ECHO, RPING))
    return [_probe(pair, kind, tool, port + at) for at, (kind, tool) in enumerate(chosen)]


def why_no_probe(pair: Pair) -> str:
    """Why :func:`plan_tests` has none."""
    both = pair.source.tools & pair.target.tools
    if GUARD not in both:
        return "an image has no program %s, without which a test could last for ever" % GUARD
    return "the images share none of the programs %s" % ", ".join(TOOLS)


def _probe(pair: Pair, kind: str, tool: str, port: int) -> Probe:
    server, client = _words(pair, pair.target, tool, port), _words(pair, pair.source, tool, port)
    if tool == RPING:
        return Probe(
            pair,
            kind,
            tool,
            port,
            (tool, "-s", "-a", str(pair.target.address), *server),
            (tool, "-c", "-a", str(pair.target.address), "-I", str(pair.source.address), *client),
        )
    return Probe(pair, kind, tool, port, (tool, *server), (tool, *client, str(pair.target.address)))


def _words(pair: Pair, end: End, tool: str, port: int) -> tuple[str, ...]:
    """Device, GID index and port. ``rping`` finds the device by the address, which is the rail's own."""
    if tool == RPING:
        return ("-p", str(port), "-C", "10")
    if tool == PINGPONG:
        gid = () if end.gid_index is None else ("-g", str(end.gid_index))
        return ("-d", end.device, *gid, "-p", str(port), "-n", str(ITERATIONS))
    gid = () if end.gid_index is None else ("-x", str(end.gid_index))
    six = ("--ipv6",) if pair.target.address.version == 6 else ()
    more = ("-s", "65536", "--report_gbits") if tool == WRITE_BW else ()
    return ("-d", end.device, *gid, *six, "-p", str(port), "-F", "-n", str(ITERATIONS), *more)


# What came out


class Limits(NamedTuple):
    """What is good enough; ``None``: anything. There is no truth for all fabrics (decision 4)."""

    latency_us: Optional[float] = None
    bandwidth_gbps: Optional[float] = None


def result_of(probe: Probe, code: int, stdout: str, stderr: str, limits: Limits) -> Result:
    """The result of a test from what its client printed.

    :param code: exit code of the client.
    """
    figures: dict[str, Any] = {}
    reason = ""
    if code:
        reason = "%s ended with code %d: %s" % (probe.tool, code, last_words(stdout, stderr))
    elif probe.tool in (READ_LAT, WRITE_BW):
        figures = _perftest(stdout)
        wanted = "latency_us" if probe.tool == READ_LAT else "bandwidth_gbps"
        if figures.get(wanted) is None:
            reason = "%s told no figures: %s" % (probe.tool, last_words(stdout, stderr))
    elif probe.tool == PINGPONG:
        match = _PINGPONG.search(stdout)
        if match is None:
            reason = "%s told no figures: %s" % (probe.tool, last_words(stdout, stderr))
        else:
            figures = {"latency_us": float(match[2])}
    reason = reason or _too_slow(figures, limits)
    return _result(probe.pair, probe.kind, FAIL if reason else PASS, reason, probe.tool, **figures)


def failed(probe: Probe, reason: str) -> Result:
    """A test whose client could not be run: nothing is known of the rail."""
    return _result(probe.pair, probe.kind, UNKNOWN, reason, probe.tool)


def not_tried(pair: Pair, kind: str, status: str, reason: str) -> Result:
    """A pair without a test."""
    return _result(pair, kind, status, reason)


def _result(pair: Pair, kind: str, status: str, reason: str, tool: str = "", **figures: Any) -> Result:
    return Result(
        pair.source.nic,
        pair.source.pod,
        pair.target.pod,
        kind,
        status,
        tool,
        reason,
        source_device=pair.source.device,
        target_device=pair.target.device,
        source_gid_index=pair.source.gid_index,
        target_gid_index=pair.target.gid_index,
        target_address=str(pair.target.address),
        **figures,
    )


def _perftest(stdout: str) -> dict[str, Any]:
    """The last row of figures below the names of its columns, and the MTU."""
    names: list[str] = []
    unit, row = "", []  # type: str, list[float]
    for line in stdout.splitlines():
        if line.lstrip().startswith("#bytes"):
            names, unit = _COLUMNS.findall(line), "MB/sec" if "[MB/sec]" in line else "Gb/sec"
        elif names:
            words = line.split()
            if len(words) >= len(names) and all(_NUMBER.fullmatch(word) for word in words):
                row = [float(word) for word in words]
    held = dict(zip(names, row))
    mtu = _MTU.search(stdout)
    bandwidth = held.get("BW average")
    if bandwidth is not None and unit == "MB/sec":
        bandwidth = bandwidth * _MIB * 8 / 1e9
    return {
        "latency_us": held.get("t_typical", held.get("t_avg")),
        "latency_p99_us": held.get("99% percentile"),
        "bandwidth_gbps": None if bandwidth is None else round(bandwidth, 2),
        "mtu": int(mtu[1]) if mtu is not None else None,
    }


def last_words(stdout: str, stderr: str) -> str:
    """The last line that says something, of the errors before the output.

    A client that failed finds no server when it tries again; so that says least.
    """
    for said in (stderr, stdout):
        lines = [" ".join(line.split()) for line in said.splitlines() if not _RULER.fullmatch(line)]
        telling = [line for line in lines if not _NO_SERVER.search(line)]
        if lines:
            return (telling or lines)[-1][:200].rstrip(".")
    return "it said nothing"


def _too_slow(figures: Mapping[str, Any], limits: Limits) -> str:
    latency, bandwidth = figures.get("latency_us"), figures.get("bandwidth_gbps")
    if limits.latency_us is not None and latency is not None and latency > limits.latency_us:
        return "%g us, more than %g us" % (latency, limits.latency_us)
    if limits.bandwidth_gbps is not None and bandwidth is not None and bandwidth < limits.bandwidth_gbps:
        return "%g Gbit/s, less than %g Gbit/s" % (bandwidth, limits.bandwidth_gbps)
    return ""


# What it means


def matrix(results: Iterable[Result]) -> list[dict[str, Any]]:
    """One entry for each rail: the medians, and from pod to pod status and figures of each test."""
    rails: dict[str, list[Result]] = {}
    for result in results:
        rails.setdefault(result.nic, []).append(result)
    return [_rail(nic, rails[nic]) for nic in sorted(rails, key=natural)]


def _rail(nic: str, results: Sequence[Result]) -> dict[str, Any]:
    cells: dict[str, dict[str, dict[str, Any]]] = {}
    for result in results:
        cell = cells.setdefault(result.source, {}).setdefault(result.target, {"status": result.status})
        cell["status"] = _worse(cell["status"], result.status)
        for key in CELL:
            value = getattr(result, key)
            if value not in (None, ""):
                cell[key] = value
        if result.reason:
            cell.setdefault("reason", result.reason)
    return {
        "rail": nic,
        "status": worst([result.status for result in results]),
        "pairs": len({(result.source, result.target) for result in results}),
        "median_latency_us": median([result.latency_us for result in results]),
        "median_bandwidth_gbps": median([result.bandwidth_gbps for result in results]),
        "cells": cells,
    }


def median(values: Iterable[Optional[float]]) -> Optional[float]:
    held = sorted([value for value in values if value is not None])
    return held[len(held) // 2] if held else None


def worst(statuses: Iterable[str]) -> str:
    """The worst of fail, unknown, pass; ``skip`` when nothing was tried."""
    found = set(statuses)
    return next((status for status in (FAIL, UNKNOWN, PASS) if status in found), SKIP)


def _worse(one: str, other: str) -> str:
    return worst([one, other])


def of_pod(pod: str, results: Iterable[Result], missing: Mapping[str, str]) -> tuple[str, str]:
    """Status and sentence of P14 for a pod: the tests that it took part in, at either end (S144).

    :param missing: rails of it that could not be tested, with the reason.
    """
    own = [result for result in results if pod in (result.source, result.target)]
    wrong = [result for result in own if result.status == FAIL]
    if wrong:
        return FAIL, _sentence(["%s to %s on %s: %s" % _who(result) for result in wrong])
    open_ = ["%s to %s on %s: %s" % _who(result) for result in own if result.status == UNKNOWN]
    open_ += ["%s: %s" % entry for entry in sorted(missing.items())]
    if open_:
        return UNKNOWN, _sentence(open_)
    if not own:
        return UNKNOWN, "The pod took part in no test."
    rails = sorted({result.nic for result in own}, key=natural)
    return PASS, "Rails: %s." % ", ".join(rails)


def _who(result: Result) -> tuple[str, str, str, str]:
    return result.source, result.target, result.nic, result.reason


def _sentence(parts: Sequence[str], shown: int = 4) -> str:
    more = ["and %d more" % (len(parts) - shown)] if len(parts) > shown else []
    return "; ".join([*parts[:shown], *more]).rstrip(".") + "."
