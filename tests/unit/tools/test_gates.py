# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner of the gates: what counts, what fails, what is skipped, and what it says at the end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import gates
from gate_list import ansible_failures
from gate_model import Gate, Job, Outcome, Skip, read_counts, read_junit

JUNIT = """<testsuites><testsuite>
<testcase classname="a" name="good" time="0.5"/>
<testcase classname="a" name="bad" time="0.1"><failure message="no"/></testcase>
<testcase classname="a" name="broken" time="0.1"><error message="no"/></testcase>
<testcase classname="a" name="left" time="0"><skipped message="needs a NIC"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gates, "LOGS", tmp_path)
    return tmp_path


def run(*found: Gate, patterns: list[str] | None = None) -> tuple[list[gates.Row], int]:
    rows = gates.run_all(list(found), patterns)
    return rows, gates.summary(rows)


def gate(name: str, outcome: Outcome, **more: object) -> Gate:
    return Gate(name, "a test", lambda job: outcome, **more)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.rstrip().splitlines()[-1]


def test_gates_and_tests_are_counted_together(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(gate("one", Outcome(passed=3)), gate("two", Outcome()))[1]
    assert code == 0
    assert last_line(capsys) == "5 passed, 0 failed"


def test_a_failed_test_fails_its_gate_and_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = run(gate("one", Outcome(passed=3, failed=1)), gate("two", Outcome()))[1]
    assert code == 1
    assert last_line(capsys) == "4 passed, 2 failed"


def test_what_failed_is_said_again_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """An automatic run may show no more than the end of its output."""
    long = "first\n" + "x" * 2 * gates.SAID + "\nlast"
    failures = [("test_a", "assert 1 == 2"), ("test_b", long)]
    run(gate("one", Outcome(failed=2, failures=failures)), gate("two", Outcome(broken=["no test ran"])))
    end = capsys.readouterr().out.split("slowest gates:")[1]
    assert "failed: one::test_a\n    assert 1 == 2\n" in end
    assert "failed: one::test_b\n    first\n    xxx" in end
    assert "xxx\n    [...]\n    xxx" in end
    assert "xxx\n    last\n" in end
    assert "failed: two\n    no test ran\n" in end


def test_failures_are_read_from_junit(tmp_path: Path) -> None:
    path = tmp_path / "found.xml"
    path.write_text(JUNIT)
    assert read_junit(path).failures == [("a::bad", "no"), ("a::broken", "no")]


def test_failed_tasks_are_found_in_the_output_of_ansible() -> None:
    output = """
TASK [Look] ****
fatal: [n1]: FAILED! => {"msg": "expected"}
...ignoring
TASK [Boot] ****
ok: [n1]
failed: [n2] (item=a) => {"msg": "no answer"}
"""
    assert ansible_failures(output) == 'TASK [Boot]\nfailed: [n2] (item=a) => {"msg": "no answer"}'


def test_a_gate_that_raises_is_a_failure_with_its_reason_in_the_log(logs: Path) -> None:
    def raise_it(job: Job) -> Outcome:
        raise KeyError("lost")

    rows, code = run(Gate("one", "a test", raise_it))
    assert code == 1
    assert rows[0].verdict == "failed"
    assert "KeyError: 'lost'" in (logs / "one.log").read_text()


def test_a_run_of_nothing_fails() -> None:
    assert run(gate("one", Outcome(skips=[Skip("no machine")])))[1] == 1


def test_skips_are_named_with_their_reason(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(passed=1, skips=[Skip("no NIC", "test_a")])
    code = run(gate("one", outcome), gate("two", Outcome(skips=[Skip("no machine")])))[1]
    printed = capsys.readouterr().out
    assert code == 0
    assert "one::test_a: no NIC" in printed
    assert "two: no machine" in printed
    assert printed.rstrip().splitlines()[-1] == "2 passed, 0 failed, 2 skipped"


@pytest.mark.parametrize(
    ("patterns", "verdict"),
    [
        ([], "failed"),
        (["two::*"], "failed"),
        (["one::test_b"], "failed"),
        (["one::test_a"], "passed"),
        (["one::*"], "passed"),
    ],
)
def test_an_automatic_run_accepts_only_listed_skips(patterns: list[str], verdict: str) -> None:
    rows = run(gate("one", Outcome(passed=1, skips=[Skip("no NIC", "test_a")])), patterns=patterns)[0]
    assert rows[0].verdict == verdict


def test_a_gate_waits_for_those_that_it_needs() -> None:
    order = []

    def note(name: str) -> Gate:
        def work(job: Job) -> Outcome:
            order.append(name)
            return Outcome()

        return Gate(name, "a test", work, after=("first",) if name == "second" else ())

    gates.run_all([note("second"), note("first")], None)
    assert order == ["first", "second"]


def test_the_result_file_of_a_test_run_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.xml"
    path.write_text(JUNIT)
    outcome = read_junit(path)
    assert (outcome.passed, outcome.failed) == (1, 2)
    assert outcome.skips == [Skip("needs a NIC", "a::left")]
    assert ("a::good", 0.5) in outcome.times


def test_a_missing_result_file_is_a_failure(tmp_path: Path) -> None:
    assert read_junit(tmp_path / "none.xml").broken


@pytest.mark.parametrize("text", ["", "3 passed", "3 passed, 0 failed and more", "all fine"])
def test_a_missing_closing_line_is_a_failure(text: str) -> None:
    assert read_counts(text).broken


def test_the_last_closing_line_counts() -> None:
    outcome = read_counts("1 passed, 9 failed\nmore\n3 passed, 2 failed\n")
    assert (outcome.passed, outcome.failed, outcome.broken) == (3, 2, [])


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log:
        job = Job("one", log)
        code, output = job.run("sh", "-c", "echo begun; sleep 60", cwd=tmp_path, timeout=0.5)
    assert code == 124
    assert "begun" in output


@pytest.mark.parametrize("polite", [True, False])
def test_what_works_against_no_clock_leaves_the_machine_to_others(logs: Path, polite: bool) -> None:
    """Emulated nodes that wait for a CPU would miss their time limits."""
    begun = os.nice(0)

    def work(job: Job) -> Outcome:
        return Outcome(note=job.run("nice", cwd=logs)[1].splitlines()[-1])

    rows, _code = run(Gate("one", "a test", work, polite=polite))
    assert int(rows[0].outcome.note) == min(begun + 15 * polite, 19)


def seen_together(wanted: dict[str, dict[str, object]]) -> list[frozenset[str]]:
    """Run gates with these settings; at the end of each, those that run then."""
    running, seen = set(), []

    def gate_of(name: str) -> Gate:
        def work(job: Job) -> Outcome:
            running.add(name)
            time.sleep(0.1)
            seen.append(frozenset(running))
            running.discard(name)
            return Outcome()

        return Gate(name, "a test", work, **wanted[name])

    gates.run_all([gate_of(name) for name in wanted], None)
    return seen


def test_gates_of_one_lane_run_one_after_the_other() -> None:
    """Two scenarios at once would take each other's time and ports."""
    lane = {"lane": frozenset({"nodes"})}
    seen = seen_together({"a": lane, "b": lane, "c": {}, "d": {}})
    assert max(len(now & {"a", "b"}) for now in seen) == 1


def test_what_waits_runs_beside_two_others() -> None:
    """A control plane that is waited for leaves its CPU to others; two of them would not."""
    waits = {"waits": True}
    seen = seen_together({"a": waits, "b": waits, "c": {}, "d": {}, "e": {}})
    assert {"a", "c", "d"} in seen
    assert not any({"a", "b"} <= now or {"c", "d", "e"} <= now for now in seen)
