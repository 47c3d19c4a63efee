# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is given: a sentence and exit code 2, or an honest answer; never a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments
from ansible_collections.rdma.k8s.tests.support import fleet

FUZZ = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
OPTIONS = [
    *[
        "--policy",
        "--set",
        "--only",
        "--skip",
        "--dir",
        "--format",
        "--no-summary",
        "--exit-code",
        "--threshold",
        "--strict",
    ],
    *[
        "--nodes",
        "--subnet",
        "--range",
        "--oca-network",
        "--nics",
        "--summary",
        "--node",
        "--view",
        "--snapshots",
    ],
    *[
        "--output",
        "--result",
        "--help",
        "--version",
        "--",
        "-",
        "-h",
        "--set=mtu=1",
        "--format=json",
        "--nics=3",
    ],
]
VALUES = [
    *[
        "recorded",
        "n0.json",
        "result.json",
        "case.tar.gz",
        "policy.yml",
        "nodes.txt",
        "nowhere",
        "",
        ".",
        "new",
        "n0",
        "n0/rdma3",
    ],
    *["RDMA-RANGE-013", "RDMA-NODE-017", "ACME-001", "*", "json", "csv", "text", "error", "info", "16", "-1"],
    *[
        "10.208.0.0/12",
        "10.140.64.0/19",
        "10.209.237.19",
        "::1",
        "fd00::/8",
        "mtu=1500",
        "pod_cidrs=10.0.0.0/8",
        "checks=[1]",
    ],
]
WORDS = st.one_of(
    st.sampled_from(list(arguments.COMMANDS)),
    st.sampled_from(OPTIONS),
    st.sampled_from(VALUES),
    st.text(st.characters(exclude_characters="/"), max_size=8),
)


def honest(result: Any, command: str = "") -> None:
    """The contract of every run; the lint judges what it can read, and says of each file that it cannot."""
    assert result.code in (0, 2, 3, 4), result
    assert "Traceback" not in result.err
    if result.code == 2:
        said = result.err.splitlines()
        assert said
        assert all(line.startswith("rdma-k8s: ") and len(line) > 20 for line in said)
        assert command == "lint" or (result.out == "" and len(said) == 1)
        assert "\x1b" not in result.err


def prepare(run: Any, recorded: Path) -> None:
    """Files for the words above, in the current directory."""
    if not Path("recorded").exists():
        Path("recorded").symlink_to(recorded)
        Path("n0.json").write_bytes((recorded / "n0.json").read_bytes())
        Path("policy.yml").write_text("checks: [{id: ACME-001, title: t, expression: 'a'}]\n")
        Path("nodes.txt").write_text("n0 10.140.77.19 10.140.64.0/19\n")
        Path("result.json").write_text(run("report", "n0.json", "--format", "json").good())
        run("bundle", "n0.json", "--output", "case.tar.gz").good()


@FUZZ
@given(st.lists(WORDS, max_size=7))
@example(["report", "recorded", "--dir", "recorded"])
@example(["plan", "--nodes", "-"])
@example(["where", "a/b/c", "--snapshots", "recorded"])
@example(["report", "\ud800"])
@example(["\ud800"])
def test_any_arguments(run, recorded, argv):
    prepare(run, recorded)
    honest(run(*argv), *argv[:1])


@FUZZ
@given(st.sampled_from(list(arguments.COMMANDS)), st.lists(WORDS, max_size=5))
def test_any_arguments_of_a_command(run, recorded, command, argv):
    prepare(run, recorded)
    honest(run(command, *argv), command)


@FUZZ
@given(st.text(max_size=30))
@example("mtu=1" + "0" * 5000)
@example("checks=" + "[" * 5000)
@example("waivers=[{}]")
@example("only=*")
@example('shapes={"A": {"rdma_nics": 1e999}}')
def test_any_setting(run, recorded, text):
    prepare(run, recorded)
    honest(run("report", "n0.json", "--set", text, "--only", "RDMA-NODE-017"))


READERS = [
    ("report", "x.json"),
    ("diff", "x.json", "x.json"),
    ("plan", "x.json"),
    ("explain", "RDMA-RANGE-013", "--node", "n0", "--snapshots", "x.json"),
    ("where", "10.209.237.19", "--snapshots", "x.json"),
    ("where", "n0", "--snapshots", "x.json"),
    ("bundle", "x.json", "--output", "x.tar.gz"),
    ("explain", "--view", "--node", "n0", "--snapshots", "x.json"),
]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=10),
    st.sampled_from(
        ["10.224.13.19/12", "0.0.0.0/0", "::/0", "rdma007", "fe80::1%eth0", "default", "[" * 3000, "\ud800"]
    ),
    st.just([]),
    st.just({}),
    st.just([None]),
)


@FUZZ
@given(
    st.sampled_from(READERS),
    st.one_of(
        st.binary(max_size=200), st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace"))
    ),
)
@example(READERS[0], b'{"name": "n0", "name": "n1"}')
@example(READERS[0], b'{"unreachable": "", "name": "a"}')
@example(READERS[0], b"1e999")
@example(READERS[0], b"NaN")
@example(READERS[0], b"\xef\xbb\xbf{}")
@example(READERS[0], b"\x1f\x8b")
def test_any_file(run, argv, content):
    Path("x.json").write_bytes(content)
    honest(run(*argv), *argv[:1])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON document."""
    found = [path]
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        found += places(entry, (*path, key))
    return found


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


NODE = fleet.node("BM.Optimized3.36", name="n0", subnet="10.0.2.0/24").to_dict()
NODE_PLACES = places(NODE)


@FUZZ
@given(st.sampled_from(READERS), st.sampled_from(NODE_PLACES), JUNK)
def test_any_value_in_a_snapshot(run, argv, place, value):
    Path("x.json").write_text(json.dumps(changed(NODE, place, value)))
    honest(run(*argv), *argv[:1])


@FUZZ
@given(st.data(), JUNK)
def test_any_value_in_a_result(run, recorded, data, value):
    prepare(run, recorded)
    result = json.loads(Path("result.json").read_text())
    result["findings"] = result["findings"][:4]
    place = data.draw(st.sampled_from(places(result)))
    Path("x.json").write_text(json.dumps(changed(result, place, value)))
    honest(run("report", "x.json", "--format", data.draw(st.sampled_from(arguments.FORMATS))))
    honest(run("report", "x.json", "--exit-code"))
    honest(run("diff", "result.json", "x.json"))


@FUZZ
@given(st.data())
def test_any_damage_to_a_bundle(run, recorded, data):
    prepare(run, recorded)
    content = bytearray(Path("case.tar.gz").read_bytes())
    for _time in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    Path("x.json").write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    honest(run("report", "x.json"))


@FUZZ
@given(st.text(max_size=120))
@example("a 10.140.77.19 10.140.64.0/19\u2028b 10.140.77.19 10.140.64.0/19")
@example("a\x1b[2J 10.140.77.19 10.140.64.0/19")
@example("a 10.140.77.19 ::/0")
@example("a ::1 10.140.64.0/19")
def test_any_list_of_nodes(run, text):
    Path("nodes.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    for form in ("text", "csv", "json"):
        honest(run("plan", "--nodes", "nodes.txt", "--subnet", "10.140.64.0/19", "--format", form))


@FUZZ
@given(st.text(max_size=60))
@example("!!python/object/apply:os.system [x]")
@example("&a [*a]")
@example("{" * 3000)
@example("2026-01-01: 1")
@example("checks: [{id: A-1, title: t, expression: '@', severity: 9}]")
@example("checks: {a: b}")
@example("waivers: 5")
@example("only: [5]")
def test_any_policy(run, recorded, text):
    prepare(run, recorded)
    Path("p.yml").write_bytes(text.encode("utf-8", "surrogatepass"))
    honest(run("report", "n0.json", "--policy", "p.yml", "--only", "RDMA-NODE-017"))


@FUZZ
@given(st.text(max_size=20))
@example("10.209.237.19/")
@example("/10.209.237.19")
@example("10.209.237.19%eth0")
@example("fe80::1%eth0")
@example("::ffff:10.209.237.19")
def test_any_name(run, recorded, text):
    prepare(run, recorded)
    honest(run("where", text, "--snapshots", "recorded"))
    honest(run("explain", text, "--snapshots", "n0.json"))
    honest(run("explain", "RANGE-013", "--node", text, "--snapshots", "n0.json"))
