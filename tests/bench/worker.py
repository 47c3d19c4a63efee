# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measurement in a process of its own; prints a JSON object. Started by ``run.py`` and ``gate.py``."""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path
from typing import Any, Callable

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "support")]

import paths  # noqa: E402

paths.make_importable()

from ansible_collections.rdma.k8s.plugins.module_utils import judging  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core import net  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy  # noqa: E402
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot  # noqa: E402
from ansible_collections.rdma.k8s.tests.support import fleet  # noqa: E402
from ansible_collections.rdma.k8s.tests.support.cases import SURROUNDINGS  # noqa: E402

SUBNET, OCA_NETWORK, RANGE = "10.140.0.0/16", "10.224.0.0/12", "10.208.0.0/12"
NICS = 16


def peak_kib() -> int:
    """The highest resident memory of this process (that of its parent does not count, unlike in getrusage)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1])
    return 0


def timed(work: Callable[[], Any]) -> dict[str, Any]:
    """Seconds on the clock, CPU seconds, and growth of the peak memory of a piece of work."""
    gc.collect()
    before = peak_kib()
    cpu, wall = time.process_time(), time.perf_counter()
    kept = work()
    found = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    return {**found, "grown_kib": peak_kib() - before, "peak_kib": peak_kib(), "kept": kept}


def node_rows(count: int) -> list[tuple[str, str]]:
    """Name and address of the nodes of one /16."""
    first = int(IPv4Network(SUBNET)[0]) + 10
    return [("gpu-%05d" % number, net.ipv4_text(first + number)) for number in range(count)]


# B1


def plan(count: int) -> dict[str, Any]:
    """The whole plan: strict parsing, derivation with all checks, uniqueness, one line of text for each child."""
    from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.fleet import FleetNode, plan_fleet

    rows = node_rows(count)

    def work() -> int:
        nodes = [FleetNode(name, address, SUBNET, range(NICS), OCA_NETWORK) for name, address in rows]
        made = plan_fleet(nodes, RANGE)
        assert not made.errors
        assert not made.clashes
        text = "\n".join(made.text_rows())
        assert text.count("\n") == count * NICS - 1
        return len(text)

    return timed(work)


def plan_with_objects(count: int, library: str) -> dict[str, Any]:
    """The same with an object of a library for each network and address, as one would write it."""
    import netaddr

    rows = node_rows(count)
    if library == "netaddr":
        network, address_of = netaddr.IPNetwork, netaddr.IPAddress
    else:
        network, address_of = ip_network, IPv4Address

    def work() -> int:
        subnet, oca, wanted = network(SUBNET), network(OCA_NETWORK), network(RANGE)
        size, base = 1 << 16, int(subnet[0])
        lines, seen = [], set()
        for name, text in rows:
            address = address_of(text)
            assert address in subnet
            position = int(address) - base
            for index in range(NICS):
                offset = index * size + position
                parent, child = oca[offset], wanted[offset]
                assert parent in oca
                assert child in wanted
                assert child not in seen
                seen.add(child)
                lines.append("%s %d %s %s/%d %d" % (name, index, parent, child, 12, 100 + index))
        return len("\n".join(lines))

    return timed(work)


# B2


def prefixes(count: int) -> list[str]:
    """Texts of prefixes as routes of a fleet have them: of lengths 8 to 32, one in 50 inside the range."""
    source = random.Random(1)
    inside = int(IPv4Network(RANGE)[0])
    texts = []
    for number in range(count):
        length = source.randint(8, 32)
        address = source.getrandbits(32) if number % 50 else inside | source.getrandbits(20)
        texts.append("%s/%d" % (net.ipv4_text(address >> (32 - length) << (32 - length)), length))
    return texts


def overlap(count: int, way: str) -> dict[str, Any]:
    """One range against many prefixes from text."""
    import netaddr

    texts = prefixes(count)

    def work() -> int:
        if way == "core":
            found = net.scan(net.parse_prefix(RANGE), texts)
            assert not found.malformed
            return len(found.overlapping)
        if way == "ipaddress":
            wanted = ip_network(RANGE)
            return sum([ip_network(text).overlaps(wanted) for text in texts])
        wide = netaddr.IPNetwork(RANGE)
        first, last = wide.first, wide.last
        networks = [netaddr.IPNetwork(text) for text in texts]
        return sum([network.first <= last and network.last >= first for network in networks])

    return timed(work)


def queries(count: int, ranges: int, way: str) -> dict[str, Any]:
    """Many ranges against many prefixes: with the index, or one after the other."""
    texts = prefixes(count)
    index = net.PrefixIndex([net.parse_prefix(text) for text in texts])
    wanted = [
        net.parse_prefix("%s/16" % net.ipv4_text(number << 16)) for number in range(4096, 4096 + ranges)
    ]
    parsed = [ip_network(text) for text in texts] if way == "ipaddress" else []

    def work() -> int:
        if way == "index":
            return sum([index.overlaps(prefix) for prefix in wanted])
        return sum([any(map(ip_network(str(prefix)).overlaps, parsed)) for prefix in wanted])

    return timed(work)


# B3


def collect(root: str) -> dict[str, Any]:
    """The collector on a recorded tree, in a fresh process: the first call, as on a node."""
    from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect as collect_node

    def work() -> int:
        snapshot = collect_node(name="node", host_root=root)
        text = json.dumps(snapshot.to_dict(compact=True), separators=(",", ":"))
        assert len(snapshot.devices or ()) >= NICS
        assert not [error for error in snapshot.errors if not error.source.startswith("imds")], (
            snapshot.errors
        )
        return len(text.encode())

    return timed(work)


# B4


def snapshot_texts(count: int) -> list[str]:
    """Recorded H100 nodes, as the module returns them."""
    return [
        json.dumps(
            fleet.node(number=number, name="gpu-%05d" % number, subnet=SUBNET).to_dict(compact=True),
            separators=(",", ":"),
        )
        for number in range(count)
    ]


def judgement(count: int) -> dict[str, Any]:
    """The whole catalogue over snapshots."""
    texts = snapshot_texts(count)
    policy = Policy.from_dict(SURROUNDINGS)
    loaded = timed(lambda: [NodeSnapshot.from_dict(json.loads(text)) for text in texts])
    inputs = [NodeInput(snapshot.name, snapshot) for snapshot in loaded.pop("kept")]
    judged = timed(lambda: judging.judge_now(inputs, policy))
    document = judged.pop("kept")
    assert document.exit_code == 0
    assert len(document.nodes) == count
    judged["grown_kib"] += loaded["grown_kib"]
    judged["load_seconds"] = loaded["seconds"]
    judged["load_cpu_seconds"] = loaded["cpu_seconds"]
    judged["checks"] = len(document.checks)
    judged["findings"] = len(document.findings)
    return {**judged, "kept": 0}


# B9


def lint(count: int) -> dict[str, Any]:
    """Text to documents, and all rules over them: workloads of each target, their claims and networks, a service."""
    import yaml

    from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import parse
    from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
    from ansible_collections.rdma.k8s.tests.support.lint_cases import BASES

    # Rails are policies of a whole cluster: beside them the pods of the other texts would be judged by these, too.
    paths = [path for path in sorted(BASES.glob("*.manifests")) if path.stem != "rails"]
    bases = [path.read_text(encoding="utf-8") for path in paths]
    texts: list[str] = []
    held = 0
    while held < count:
        text = bases[len(texts) % len(bases)].replace("namespace: ai", "namespace: ai-%d" % len(texts))
        texts.append(text)
        held += text.count("\n---\n")
    read = timed(lambda: [document for text in texts for document in parse(text, "bench.yml")])
    documents = read.pop("kept")
    judged = timed(lambda: engine.lint(documents, complete=True))
    findings = judged.pop("kept")
    assert not [finding for finding in findings if finding.status in ("fail", "warn", "unknown")]
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    plain = timed(lambda: [list(yaml.load_all(text, Loader=loader)) for text in texts])
    return {
        "documents": len(documents),
        "findings": len(findings),
        "read_cpu_seconds": read["cpu_seconds"],
        "rules_cpu_seconds": judged["cpu_seconds"],
        "yaml_cpu_seconds": plain["cpu_seconds"],
        "cpu_seconds": read["cpu_seconds"] + judged["cpu_seconds"],
        "kept": 0,
    }


# B12


def detection() -> dict[str, Any]:
    """Every fault of the catalogue's cases, injected one after the other, and the healthy fleets."""
    from ansible_collections.rdma.k8s.tests.support import detection as detect

    found = timed(detect.inject_all)
    rows = [
        {
            "check": entry.case.check,
            "fault": entry.case.title,
            "found": entry.found,
            "milliseconds": round(entry.milliseconds, 1),
            "false_alarms": list(entry.false_alarms),
        }
        for entry in found.pop("kept")
    ]
    healthy = detect.healthy_results()
    clean = [alarm for _shape, document in healthy for alarm in detect.alarms_of(document)]
    results = sum(len(document.findings) for _shape, document in healthy)
    return {**found, "rows": rows, "clean_results": results, "clean_alarms": clean, "kept": 0}


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "plan": plan,
    "plan_with_objects": plan_with_objects,
    "overlap": overlap,
    "queries": queries,
    "collect": collect,
    "judgement": judgement,
    "lint": lint,
    "detection": detection,
}


if __name__ == "__main__":
    words = [int(word) if word.isdecimal() else word for word in sys.argv[2:]]
    print(json.dumps(MEASUREMENTS[sys.argv[1]](*words)))
