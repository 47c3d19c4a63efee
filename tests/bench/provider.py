# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast the provider answers when all NICs of a node are prepared at once, and what it keeps.

Usage: python tests/bench/provider.py [--calls N] [--recorded] [--realtime] [--out FILE]

A node with 16 RDMA NICs, 110 further interfaces and 200 routes; 16 connections send one claim each at the same moment,
again and again, and the clock runs until each has its answer. As root the node is a network namespace of its own, whose
kernel is asked by netlink; else, or with --recorded, it is a recorded tree. Prints one JSON object. Exit code 1 when a
target is missed: 20 ms for 99 of 100 answers, 60 MB resident, no growth of more than 1 MB over the calls. With
--realtime (root) nothing else of the machine runs in between, as if it had nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import provider_tree
from fake_imds import FakeImds, ok
from provider_process import Provider, memory_of

NICS, OTHERS, ROUTES = 16, 110, 200
P99_MS, RESIDENT_MB, GROWTH_MB = 20.0, 60.0, 1.0
INSIDE = "RDMA_K8S_BENCH_INSIDE"
IMDS = {
    "/host/": [ok({"rdmaFabricData": {"ipv6": False, "planes": 1}})],
    "/instance/": [ok({"shape": "BM.GPU.H100.8"})],
    "/vnics/": [ok([{"privateIp": "10.140.77.19", "subnetCidrBlock": "10.140.64.0/19"}])],
}


def parent(index: int) -> str:
    """The parent address of a NIC: blocks of 8192 (F13)."""
    offset = index * 8192 + 3347
    return "10.%d.%d.%d" % (224 + (offset >> 16), offset >> 8 & 255, offset & 255)


def pci(index: int) -> str:
    """The PCI address of a NIC."""
    return "0000:%02x:00.%d" % (16 + index // 2, index % 2)


def interfaces() -> dict[str, Any]:
    """All interfaces in the form of the vectors."""
    found: dict[str, Any] = {
        "lo": {"arphrd": 772, "addresses": ["127.0.0.1/8"]},
        "eth0": {"arphrd": 1, "addresses": ["10.140.77.19/19"]},
    }
    for index in range(NICS):
        found["rdma%d" % index] = {
            "arphrd": 1,
            "addresses": [parent(index) + "/12"],
            "arp_ignore": "1\n",
            "arp_announce": "2\n",
        }
    for index in range(OTHERS):
        found["pod%d" % index] = {"arphrd": 1, "addresses": []}
    return found


def routes() -> list[str]:
    """The destinations of the routes beside those of the addresses."""
    return ["172.16.%d.%d/32" % (index // 250, index % 250 + 1) for index in range(ROUTES)]


def write_tree(root: Path, recorded: bool) -> None:
    """The tree of the node; without recorded answers of netlink where the kernel has the interfaces."""
    devices = [
        {
            "pci_address": pci(index),
            "net": ["rdma%d" % index],
            "infiniband": [{"name": "mlx5_%d" % index, "link_layers": ["Ethernet"]}],
        }
        for index in range(NICS)
    ]
    listed = [{"dst": text} for text in routes()]
    provider_tree.write(root, interfaces(), devices=devices, routes=listed, netns_mode="Y\n")
    if not recorded:
        (root / "netlink.json").unlink()


def make_interfaces() -> None:
    """Make the interfaces and routes in this network namespace, which must be one of our own."""
    lines = ["link set lo up"]
    names = [name for name in interfaces() if name.startswith("pod")]
    pairs = [("eth0", "far"), *[("rdma%d" % index, "far%d" % index) for index in range(NICS)]]
    for one, other in [*pairs, *zip(names[::2], names[1::2], strict=True)]:
        lines.append("link add %s type veth peer name %s" % (one, other))
    for name, entry in interfaces().items():
        if name != "lo":
            lines += ["addr add %s dev %s" % (text, name) for text in entry["addresses"]]
            lines.append("link set %s up" % name)
    lines += ["route add %s dev pod0" % text for text in routes()]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)


def request(index: int) -> bytes:
    """The bytes of a claim for a NIC, as Go's client sends them."""
    body = json.dumps(
        {
            "device": {
                "pci_address": pci(index),
                "name": "pci-" + pci(index).replace(":", "-").replace(".", "-"),
            },
            "claim_uid": "3bedf067-0000-4000-8000-%012d" % index,
            "config": {"profile": "oke-rdma", "interface": {"type": "IPVLAN"}},
        }
    ).encode()
    head = (
        "POST /GetProfileConfig HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\n"
        "Content-Length: %d\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n" % len(body)
    )
    return head.encode() + body


class Burst:
    """Connections that send at the same moment."""

    def __init__(self, path: Path) -> None:
        self.sockets: list[socket.socket] = []
        for _index in range(NICS):
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.connect(str(path))
            self.sockets.append(made)
        self.requests = [request(index) for index in range(NICS)]

    def send(self) -> list[float]:
        """One claim for each NIC; the seconds until each was answered."""
        waiting = {made.fileno(): made for made in self.sockets}
        began = time.perf_counter()
        for made, data in zip(self.sockets, self.requests, strict=True):
            made.sendall(data)
        found = []
        poll = select.epoll()
        for handle in waiting:
            poll.register(handle, select.EPOLLIN)
        while waiting:
            for handle, _event in poll.poll(30):
                answer = waiting[handle].recv(65536)
                found.append(time.perf_counter() - began)
                if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"}]}"):
                    raise SystemExit("not the answer of a claim: %r" % answer[:600])
                poll.unregister(handle)
                del waiting[handle]
        poll.close()
        return found


def run(calls: int, recorded: bool) -> dict[str, Any]:
    """Measure, and the results as one object."""
    with tempfile.TemporaryDirectory(prefix="rdma-k8s-bench-") as name:
        place = Path(name)
        write_tree(place / "root", recorded)
        with (
            FakeImds(IMDS) as imds,
            Provider(place / "run", host_root=place / "root", imds_url=imds.url) as provider,
        ):
            provider.wait_for_metadata()
            burst = Burst(provider.socket)
            for _warm in range(20):
                burst.send()
            memory, worked = [memory_of(provider.process.pid)], cpu_of(provider.process.pid)
            times: list[float] = []
            began = time.perf_counter()
            bursts: list[float] = []
            for _round in range(calls // NICS):
                found = burst.send()
                times += found
                bursts.append(found[-1])
            seconds = time.perf_counter() - began
            memory.append(memory_of(provider.process.pid))
            worked = cpu_of(provider.process.pid) - worked
            readings = provider.metric("rdma_k8s_provider_node_readings_total")
            answered = provider.metric("rdma_k8s_provider_calls_total")
    bursts.sort()
    told = {
        "node": "recorded tree" if recorded else "network namespace",
        "python": "%d.%d.%d" % sys.version_info[:3],
        "nics": NICS,
        "calls": len(times),
        "realtime": os.sched_getscheduler(0) == os.SCHED_FIFO,
        "seconds": round(seconds, 1),
        "cpu_ms_for_all_nics": round(worked * 1000 * NICS / len(times), 2),
        "calls_per_reading": round(answered / readings, 1),
        "all_nics_ms": {
            "best": round(bursts[0] * 1000, 2),
            "p10": round(bursts[len(bursts) // 10] * 1000, 2),
            "p50": round(bursts[len(bursts) // 2] * 1000, 2),
        },
        "load": [round(value, 1) for value in os.getloadavg()],
        "processors": os.cpu_count(),
    }
    return {**told, **results(sorted(times), memory)}


def cpu_of(pid: int) -> float:
    """The seconds that a process has worked."""
    fields = Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def results(times: list[float], memory: list[int]) -> dict[str, Any]:
    """What has a target."""

    def at(share: float) -> float:
        return round(times[min(len(times) - 1, int(len(times) * share))] * 1000, 2)

    resident, growth = memory[1] / 1e6, (memory[1] - memory[0]) / 1e6
    met = at(0.99) < P99_MS and resident < RESIDENT_MB and growth < GROWTH_MB
    return {
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "max_ms": round(times[-1] * 1000, 2),
        "resident_mb": round(resident, 1),
        "growth_mb": round(growth, 2),
        "targets": {"p99_ms": P99_MS, "resident_mb": RESIDENT_MB, "growth_mb": GROWTH_MB},
        "met": met,
    }


def main() -> int:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description="Measure the provider.")
    parser.add_argument("--calls", type=int, default=10000)
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    recorded = options.recorded or os.geteuid() != 0
    if not recorded and INSIDE not in os.environ:
        command = ["unshare", "--net", sys.executable, *sys.argv]
        return subprocess.run(command, check=False, env={**os.environ, INSIDE: "1"}).returncode
    if not recorded:
        make_interfaces()
    found = run(options.calls, recorded)
    text = json.dumps(found, indent=2)
    print(text)
    if options.out:
        Path(options.out).write_text(text + "\n")
    return 0 if found["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
