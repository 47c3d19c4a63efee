# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damage what comes from outside in small ways, and see that the core answers with a value or a typed error.

Each target reads something that nodes, clusters, tools or people write: it is given real samples, with a few random
edits. A case is known by its target and its number, so a failure can be played again; what failed is kept below
build/test/fuzz. CPU time is bounded: every target gets its share, and at least LEAST cases.

``python tests/tools/fuzz.py`` starts it.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import time
import traceback
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core import (
    dcb,
    json_text,
    mlnx_qos,
    mlxconfig,
    modprobe,
    net,
    rdma_text,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import (
    NodeInput,
    judge,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterSnapshot,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import documents, quantity
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import outcome
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import (
    child_range,
    imds,
    oca,
    options,
    profile,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.report import certificate, render, sarif
from ansible_collections.rdma.k8s.plugins.module_utils.core.report.document import (
    ResultDocument,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20.0
LEAST = 40
SLOW = 5.0
"""Seconds of CPU that one case may take; no sample needs a tenth of it."""
NOW = "2026-03-02T09:30:00Z"
MARK = "<img src=x onerror=alert(1)>"
"""In no report may it stand as it is."""

HOSTILE_TEXTS = (
    *("", " ", "\0", "\n", "\u202e", "\ud800", "\u0661", "\ufeff", "é" * 300, "9" * 400, "-1", "0x10", "1e999"),
    *(MARK, "]]>", "-->", "</script>", "{{ 7 * 7 }}", "$(id)", "'; id;'", "../../etc/passwd"),
    *("\x1b[31m", "%s%n", "|", "a|b`c`"),
    *("10.0.0.0/33", "10.0.0.1/8", "010.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "0.0.0.0/0", "255.255.255.255/32"),
)  # fmt: skip
HOSTILE_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**31,
        2**63,
        2**64,
        10**60,
        1.5,
        -0.0,
        1e308,
        [],
        {},
        [[]],
        {"": None},
        [None],
    ),
    *HOSTILE_TEXTS,
)
TOKENS = (
    *HOSTILE_TEXTS,
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "=",
    "\\",
    '"',
    "'",
    "#",
    "&a",
    "*a",
    "!!python/object:x",
    "---",
    "\t",
)


@dataclass(frozen=True)
class Target:
    """What is damaged, and what reads it. ``allowed`` are the errors that it may raise."""

    name: str
    samples: Callable[[], Sequence[Any]]
    call: Callable[[Any], object]
    allowed: tuple[type[BaseException], ...] = (RdmaError,)


# --- damage -------------------------------------------------------------------------------------------------


def damaged_text(chance: random.Random, text: str) -> str:
    """A text with one to four edits."""
    for _unused in range(chance.randint(1, 4)):
        at, end = sorted((chance.randint(0, len(text)), chance.randint(0, len(text))))
        end = min(end, at + chance.choice((1, 4, 40)))
        middle = chance.choice(
            (
                "",
                chance.choice(TOKENS),
                text[at:end] * 2,
                text[at:end].swapcase(),
                chr(chance.randint(0, 0x2FF)),
            )
        )
        text = text[:at] + middle + text[end:]
    return text if chance.random() > 0.05 else text[: chance.randint(0, len(text))]


def damaged_bytes(chance: random.Random, data: bytes) -> bytes:
    """Bytes with one to four edits."""
    found = bytearray(data)
    for _unused in range(chance.randint(1, 4)):
        at = chance.randint(0, len(found))
        found[at : at + chance.choice((0, 1, 4))] = chance.randbytes(chance.choice((0, 1, 2, 4)))
    return bytes(found)


def damaged_document(chance: random.Random, document: Any) -> Any:
    """JSON data with one to four places replaced, removed, doubled, or filled with text from elsewhere in it."""
    document = copy.deepcopy(document)
    for _unused in range(chance.randint(1, 4)):
        holders = list(_holders(document))
        if not holders:
            return chance.choice(HOSTILE_VALUES)
        holder = chance.choice(holders)
        key = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        kind = chance.random()
        if kind < 0.6:
            holder[key] = copy.deepcopy(chance.choice(HOSTILE_VALUES))
        elif kind < 0.7:
            del holder[key]
        elif kind < 0.8 and isinstance(holder[key], str):
            holder[key] = damaged_text(chance, holder[key])
        elif kind < 0.9 and isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[:3]))
        else:
            other = chance.choice(holders)
            if other:
                keys = list(other) if isinstance(other, dict) else range(len(other))
                holder[key] = copy.deepcopy(other[chance.choice(keys)])
    return document


def _holders(document: Any) -> Any:
    """Every list and object with something in it."""
    todo = [document]
    while todo:
        found = todo.pop()
        if isinstance(found, (list, dict)) and found:
            yield found
            todo += list(found.values() if isinstance(found, dict) else found)


def damaged(chance: random.Random, sample: Any) -> Any:
    """A sample with a few random edits."""
    if isinstance(sample, str):
        return damaged_text(chance, sample)
    if isinstance(sample, bytes):
        return damaged_bytes(chance, sample)
    return damaged_document(chance, sample)


# --- samples ------------------------------------------------------------------------------------------------


def _json_files(*patterns: str) -> list[Any]:
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


@cache
def nodes() -> list[Any]:
    """Recorded nodes of each shape."""
    names = ("gpu-01", "gb200-01", "gb200-v3-01", "hpc-03")
    return _json_files(*[f"examples/fleet/{name}.json" for name in names], "examples/lingjun/e01-cn-a1.json")


@cache
def clusters() -> list[Any]:
    """A recorded cluster."""
    return _json_files("examples/lingjun/cluster.json")


@cache
def results() -> list[Any]:
    """The result document of a few recorded nodes."""
    inputs = [NodeInput(str(entry["name"]), NodeSnapshot.from_dict(entry)) for entry in nodes()[:4]]
    return [judge(inputs, Policy(), NOW, "0.1.0").to_dict()]


@cache
def certificates() -> list[Any]:
    """The certificates of the same nodes."""
    document = ResultDocument.from_dict(results()[0])
    names = [row.name for row in document.nodes]
    return [made.to_dict() for made in certificate.issue([document], names, NOW)]


@cache
def manifests() -> list[str]:
    """The manifests that the tests of the lint begin with."""
    folder = ROOT / "tests/unit/plugins/module_utils/core/lint/bases"
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.manifests"))]


def metadata() -> list[Any]:
    """What the metadata service said to recorded nodes: host, instance, vnics."""
    found = [entry.get("imds") or {} for entry in nodes()]
    return [[entry.get("host"), entry.get("instance"), entry.get("vnics")] for entry in found if entry]


POLICY = {
    "child_range": "10.208.0.0/12",
    "vcn_cidrs": ["10.140.0.0/16"],
    "mtu": 4220,
    "checks": [
        {"id": "ACME-001", "title": "x", "expression": "length(devices) > `1`", "severity": "error", "hint": "y"}
    ],
    "waivers": [{"check": "RDMA-NODE-*", "node": "n*", "reason": "r", "owner": "o", "expires": "2030-01-01"}],
    "shapes": {"BM.OWN.8": {"rdma_nics": 8}},
}  # fmt: skip
CLAIM = {
    "profile": "oke-rdma",
    "interface": {"name": "rdma0", "addresses": ["10.208.13.20/12"], "mtu": 4220},
    "routes": [{"destination": "10.208.0.0/12", "table": 100}],
}
NETWORK = '{"rdma-network": [{"default-settings": {"rdma_network": "192.168.0.0/16", "overwrite_config_file": true}}]}'
MODPROBE = "# text\noptions ib_core netns_mode=1\noptions mlx5_core \\\n  prof_sel=2\nblacklist x\n"
RDMA_LINK = (
    "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev rdma0\n"
    "link mlx5_1/1 state DOWN physical_state POLLING\n"
)
RDMA_JSON = '[{"ifname":"mlx5_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"rdma0"}]'
MLNX_QOS = (
    "DCBX mode: OS controlled\nPriority trust state: dscp\ndscp2prio mapping:\n\tprio:0 dscp:07,06,05,04,03,02,01,00,\n"
    "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   0   0   1   0   0\n"
)
MLXCONFIG = (
    "Device #1:\n----------\n\nDevice type:    ConnectX7\nName:           X\nDescription:    Y\n"
    "Device:         0000:0c:00.0\n\n"
    "Configurations:                              Next Boot\n         LINK_TYPE_P1                        ETH(2)\n"
)
FLAGS = ["oke.rdma-child-ipv4-cidr=10.208.0.0/12"]
DCB = b"\x0c\x00\x04\x00" + bytes(range(8)) + b"\x08\x00\x01\x00abcd"


# --- what reads them ----------------------------------------------------------------------------------------


def read_node(document: Any) -> None:
    """A node: what is read comes back as it was written, and can be judged."""
    snapshot = NodeSnapshot.from_dict(document)
    for compact in (False, True):
        again = NodeSnapshot.from_dict(json.loads(json.dumps(snapshot.to_dict(compact))))
        assert again == snapshot, "a snapshot does not come back as it was written"
    judge([NodeInput("n1", snapshot)], Policy(), NOW)


def read_cluster(document: Any) -> None:
    """A cluster: the same."""
    snapshot = ClusterSnapshot.from_dict(document)
    assert ClusterSnapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))) == snapshot
    judge([], Policy(target="ack_lingjun"), NOW, cluster=snapshot)


def read_result(document: Any) -> None:
    """A result: every format can be written, XML is XML, and nothing of it becomes markup."""
    found = render.render(ResultDocument.from_dict(document))
    for name, text in found.items():
        text.encode("utf-8")
        if name.endswith(".xml"):
            ET.fromstring(text)
        if name.endswith((".html", ".md", ".xml")):
            assert MARK not in text, f"{name} holds markup of a node"


def read_certificate(document: Any) -> None:
    """A certificate: damage is seen, or does not matter."""
    read = certificate.Certificate.from_dict(document)
    certificate.problems(read, NOW)
    again = ResultDocument.from_dict(results()[0])
    certificate.differences(read, [entry for entry in again.findings if entry.node == read.node])


def read_manifest(text: str) -> None:
    """Manifests: parsed, judged by every rule, told as JSON, SARIF and a result document."""
    found = outcome.lint(documents.parse(text, "x.yml"), today="2026-03-02")
    json.dumps(found.to_dict(), allow_nan=False)
    json.loads(sarif.text(found, "0.1.0"))
    document = found.result(NOW, "0.1.0")
    assert ResultDocument.from_dict(json.loads(json.dumps(document.to_dict()))) == document


def read_metadata(answers: Any) -> None:
    """The answers of the metadata service."""
    host, instance, vnics = [*answers, None, None, None][:3] if isinstance(answers, list) else (answers,) * 3
    imds.read(host, instance, vnics)
    for call, document in (
        (imds.parse_vnics, vnics),
        (imds.parse_primary_vnic, vnics),
        (imds.parse_vnic_subnets, vnics),
    ):
        try:
            call(document)
        except RdmaError:
            continue


def read_network(text: str) -> None:
    """Addresses and prefixes: the strict and the forgiving reader agree."""
    for find, parse in ((net.find_address, net.parse_address), (net.find_prefix, net.parse_prefix)):
        found = find(text)
        try:
            parsed: object = parse(text)
        except RdmaError:
            parsed = None
        assert found == parsed, f"two readers differ about {text!r}"
    net.find_destination(text)
    try:
        child_range.validate(text)
    except RdmaError:
        return


def read_modprobe(text: str) -> None:
    """Files of modprobe: what is taken out is gone, what is set is there."""
    modprobe.in_file(text, "ib_core")
    left = modprobe.without(text, "ib_core", "netns_mode")
    assert not [entry for entry in modprobe.in_file(left, "ib_core") if entry.option == "netns_mode"]
    made = modprobe.with_setting(text, "ib_core", "netns_mode", "0")
    assert [entry.value for entry in modprobe.in_file(made, "ib_core") if entry.option == "netns_mode"] == [
        "0"
    ]


def read_flags(flags: Any) -> None:
    """The options of the driver, as its command line has them."""
    options.parse(flags if isinstance(flags, list) else [flags])


def read_rdma(text: str) -> None:
    """What the tool rdma prints."""
    for call in (rdma_text.links_of_text, rdma_text.links_of_json):
        try:
            call(text)
        except RdmaError:
            continue


TARGETS = (
    Target("node", nodes, read_node),
    Target("cluster", clusters, read_cluster),
    Target("result", results, read_result),
    Target("certificate", certificates, read_certificate),
    Target("policy", lambda: [POLICY], Policy.from_dict),
    Target("manifest", manifests, read_manifest),
    Target("metadata", metadata, read_metadata),
    Target("claim", lambda: [CLAIM], profile.parse_claim),
    Target("oca network", lambda: [NETWORK], oca.parse_network),
    Target("oca features", lambda: ['{"rdma_addressing_mode": "default"}'], oca.parse_features),
    Target("driver options", lambda: [FLAGS], read_flags),
    Target("address", lambda: ["10.208.0.0/12", "10.140.77.19", "fe80::1", "fd00:9::/64"], read_network, ()),
    Target("json", lambda: [RDMA_JSON, NETWORK], json_text.loads, (ValueError,)),
    Target("modprobe", lambda: [MODPROBE], read_modprobe, ()),
    Target("rdma", lambda: [RDMA_LINK, RDMA_JSON], read_rdma, ()),
    Target("mlnx_qos", lambda: [MLNX_QOS], mlnx_qos.parse, ()),
    Target("mlxconfig", lambda: [MLXCONFIG], mlxconfig.parse, ()),
    Target("dcb", lambda: [DCB], dcb.read_ieee, (ValueError,)),
    Target("quantity", lambda: ["64Gi", "500m", "1e3", "12E"], quantity.parse, ()),
)  # fmt: skip


# --- the run ------------------------------------------------------------------------------------------------


def case(target: Target, seed: int, number: int) -> Any:
    """The input of a case."""
    chance = random.Random(f"{seed}/{target.name}/{number}")
    return damaged(chance, chance.choice(target.samples()))


class Surprise:
    """Keeps what is raised in its block and is not allowed: a surprise is what the run looks for."""

    def __init__(self, allowed: tuple[type[BaseException], ...]) -> None:
        self.allowed, self.text = allowed, ""

    def __enter__(self) -> Surprise:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _place: TracebackType | None
    ) -> bool:
        if error is not None and not isinstance(error, self.allowed):
            self.text = "".join(traceback.format_exception(error, limit=-4))
        return isinstance(error, Exception)


def play(target: Target, found: Any) -> str:
    """Give one input to a target; return what went wrong, or nothing."""
    begin = time.process_time()
    with Surprise(target.allowed) as surprise:
        target.call(found)
    if surprise.text:
        return surprise.text
    spent = time.process_time() - begin
    return f"took {spent:.1f} s of CPU" if spent > SLOW else ""


def fuzz(target: Target, seed: int, seconds: float, work: Path) -> tuple[int, list[int]]:
    """Play cases until the time is over; return how many there were, and the numbers of those that failed."""
    target.samples()
    end, number, failed = time.process_time() + seconds, 0, []
    while number < LEAST or time.process_time() < end:
        found = case(target, seed, number)
        wrong = play(target, found)
        if wrong:
            failed.append(number)
            place = work / f"{target.name.replace(' ', '-')}-{seed}-{number}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{wrong}\n{found!r}\n", encoding="utf-8", errors="backslashreplace")
            if len(failed) == 1:
                print(f"{target.name}, case {number}: {wrong.strip()}", flush=True)
        number += 1
    return number, failed


def main(work: Path) -> int:
    """Play all targets, or one case again; what failed is kept below `work`."""
    parser = argparse.ArgumentParser(prog="tests/tools/fuzz.py", description="Damage input of the core.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of all targets together")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other cases")
    parser.add_argument("--only", choices=[target.name for target in TARGETS], help="one target")
    parser.add_argument("--case", type=int, help="with --only: play this case and print its input")
    given = parser.parse_args()
    chosen = [target for target in TARGETS if given.only in (None, target.name)]
    if given.case is not None:
        found = case(chosen[0], given.seed, given.case)
        wrong = play(chosen[0], found)
        print(ascii(found), wrong or "fine", sep="\n")
        return 1 if wrong else 0
    passed = broken = 0
    for target in chosen:
        count, failed = fuzz(target, given.seed, given.seconds / len(chosen), work)
        again = f", first: --only {target.name!r} --case {failed[0]} --seed {given.seed}" if failed else ""
        print(
            f"{'FAIL' if failed else 'ok':5} {target.name}: {count} cases, {len(failed)} failed{again}",
            flush=True,
        )
        passed, broken = passed + (not failed), broken + bool(failed)
    print(f"{passed} passed, {broken} failed")
    return 1 if broken else 0
