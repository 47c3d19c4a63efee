# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""B11: a second run that changes something or takes too long is a missed target, and no role is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.bench import run

second_run, measure = run.benches.second_run, run.benches.second_run.measure
ROLES = Path(__file__).resolve().parents[3] / "roles"
RECAP = """\
TASK [x] ***
changed: [n1] => changed=9
PLAY RECAP ***
n1                         : ok=9    changed=%d    unreachable=0    failed=0
localhost                  : ok=1    changed=1    unreachable=0    failed=0
"""


def test_changes_are_those_of_the_recap() -> None:
    assert second_run.changes(RECAP % 12) == 13
    with pytest.raises(measure.BenchError, match="no recap"):
        second_run.changes("nothing")


NOTHING = "localhost : ok=1    changed=0    unreachable=0\n"


@pytest.mark.parametrize(
    ("kind", "share", "changed"), [("WHOLE", 37.5, (2, 13)), ("STAND_INS", 25, (2, 0)), ("ANEW", 25, (2, 0))]
)
def test_runs_make_a_pair(tmp_path: Path, kind: str, share: float, changed: tuple[int, int]) -> None:
    for turn, seconds in (("first", 8.0), ("second", 2.0), ("third", 9.0), ("fourth", 3.0)):
        (tmp_path / ("seconds-" + turn)).write_text(str(seconds))
    texts = {"first": RECAP % 1, "second": NOTHING, "third": RECAP % 12, "fourth": NOTHING}
    found = second_run.pair("x", second_run.NODE, getattr(second_run, kind), tmp_path, texts)
    assert (found.share, found.changed) == (share, changed)
    assert len(found.row) == len(second_run.HEADS)
    with pytest.raises(measure.BenchError, match="first run of x changed nothing"):
        second_run.pair("x", "", getattr(second_run, kind), tmp_path, {**texts, "first": NOTHING})


def test_the_scenario_is_read_when_it_has_run(tmp_path: Path) -> None:
    assert second_run.of_scenario(tmp_path) == []
    for node, first, second in (("node1", 100, 5), ("node2", 40, 8)):
        for turn, seconds, done in (("first", first, ["a", "b"]), ("second", second, [])):
            (tmp_path / ("%s-%s.json" % (node, turn))).write_text(
                json.dumps({"seconds": seconds, "done": done, "owed": []})
            )
    (found,) = second_run.of_scenario(tmp_path)
    assert (found.role, found.share, found.changed) == ("node_rdma", 20, (2, 0))


def test_a_play_notes_the_seconds_of_its_role(tmp_path: Path) -> None:
    (made,) = json.loads(json.dumps(second_run.play("report", "localhost", tmp_path)))
    assert made["roles"] == ["rdma.k8s.report"]
    (note,) = made["post_tasks"]
    assert note["ansible.builtin.copy"]["dest"] == "%s/seconds-{{ turn }}" % tmp_path
    assert (note["check_mode"], note["changed_when"]) == (False, False)


def test_no_role_is_forgotten() -> None:
    there = {path.name for path in ROLES.iterdir() if (path / "tasks").is_dir()}
    assert set(second_run.MEASURED) | set(second_run.ELSEWHERE) == there
    for why in second_run.ELSEWHERE.values():
        named = why.partition(":")[0]
        if named.startswith("tests/"):
            assert (ROLES.parent / named).is_file()


def made(kind: str, second: float, changed: int) -> Any:
    return second_run.Pair("ufm_host", "x", kind, 10.0, second, (3, changed))


@pytest.mark.parametrize(
    ("pair", "missed"),
    [
        (made(second_run.WHOLE, 3.9, 0), []),
        (made(second_run.WHOLE, 4.1, 0), ["B11: ufm_host, of its first run"]),
        (made(second_run.STAND_INS, 9, 0), []),
        (made(second_run.STAND_INS, 1, 1), ["B11: changed by all second runs"]),
    ],
)
def test_targets(pair: Any, missed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_run, "measured", lambda: [pair])
    bench = run.benches.second_runs()
    assert run.missed([bench], quick=False) == missed
    rows = {row[0]: row for row in bench.table}
    assert set(rows) == {"role", "ufm_host", *second_run.ELSEWHERE}
    assert {len(row) for row in bench.table} == {len(second_run.HEADS)}
    assert "%g" % pair.second in "\n".join(run.table_lines(bench.table))
