# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program itself: help, version, usage, colours, lost outputs, signals."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments, main as cli
from ansible_collections.rdma.k8s.plugins.module_utils.cli.terminal import OutputError, Terminal
from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION


def test_version(program):
    assert program("--version").good() == "rdma-k8s %s\n" % VERSION


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help(run, argv):
    out = run(*argv).good()
    assert [name for name in arguments.COMMANDS if "\n    %s" % name not in out] == []
    assert "exit codes:" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("name", arguments.COMMANDS)
def test_help_of_a_command(run, name):
    out = run(name, "--help").good()
    assert out.startswith("usage: rdma-k8s %s " % name)
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["reprt"], "There is no command 'reprt'; did you mean report? Commands: report, diff, plan, "),
        (["xyzzy"], "There is no command 'xyzzy'. Commands: "),
        ([""], "There is no command ''."),
        (["--nonsense"], "rdma-k8s --help"),
        (["report"], "The following arguments are required: SOURCE. See 'rdma-k8s report --help'."),
        (["report", "a", "b"], "Unrecognized arguments: b."),
        (["report", "a", "--thresh", "info"], "Unrecognized arguments: --thresh info."),
        (["report", "a", "--threshold", "bad"], "invalid choice: 'bad'"),
        (["checks", "NO-SUCH"], "No check has an id like 'NO-SUCH'"),
    ],
)
def test_wrong_usage(run, argv, sentence):
    assert sentence in run(*argv).refused()


def test_the_catalogue(run):
    out = run("checks").good()
    assert out.splitlines()[0].split() == ["ID", "SEVERITY", "TITLE"]
    assert len(out.splitlines()) > 50
    assert max(map(len, out.splitlines())) <= 100
    assert {line.split("-")[1] for line in run("checks", "RDMA-RANGE-*").good().splitlines()[1:]} == {"RANGE"}
    documents = json.loads(run("checks", "RDMA-RANGE-013", "--format", "json").good())
    assert documents[0]["id"] == "RDMA-RANGE-013"
    assert documents[0]["scope"] == "fleet"


def test_every_command_runs_as_a_program(program, recorded):
    """Without Ansible, under the name that the package has when it is installed."""
    source = ["--snapshots", recorded]
    assert program("report", recorded).good().startswith("9 nodes, ")
    assert program("report", recorded, "--exit-code", "--no-summary").code == 4
    assert program("diff", recorded, recorded).good().startswith("2026-03-02")
    assert "10.209.237.19/12" in program("plan", recorded).good()
    assert "Verdict on n0: fail" in program("explain", "RDMA-RANGE-013", "--node", "n0", *source).good()
    assert "child of rdma15" in program("where", "10.209.237.19", *source).good()
    assert program("bundle", recorded, "--output", "case.tar.gz").good().startswith("Wrote case.tar.gz")
    assert program("report", "case.tar.gz").good().startswith("9 nodes, ")
    assert "RDMA-NODE-001" in program("checks").good()
    assert program("where", "n99", *source).refused().startswith("There is no node 'n99'")


def test_ansible_is_not_imported(command, recorded, tmp_path):
    words, environment = command
    code = (
        "import sys; from rdma_k8s.cli.main import main; main(['report', %r]);"
        "print([name for name in sys.modules if name.split('.')[0] in ('ansible', 'pyroute2')])"
        % str(recorded)
    )
    done = subprocess.run(
        [words[0], "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.decode().splitlines()[-1] == "[]"


def on_a_terminal(command, argv: list[str], variables: dict[str, str]) -> str:
    """What a command writes to a terminal of 80 columns."""
    words, environment = command
    leader, follower = pty.openpty()
    env = {**environment, "TERM": "xterm", "COLUMNS": "80", **variables}
    child = subprocess.Popen([*words, *argv], stdout=follower, stderr=subprocess.PIPE, env=env)
    os.close(follower)
    pieces = []
    with contextlib.suppress(OSError):  # the other end was closed
        for piece in iter(lambda: os.read(leader, 4096), b""):
            pieces.append(piece)
    os.close(leader)
    assert child.communicate()[1] == b""
    assert child.returncode == 0
    return b"".join(pieces).decode()


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_on_a_terminal(command, recorded, variables, coloured):
    text = on_a_terminal(command, ["report", str(recorded)], variables)
    assert ("\x1b[31m" in text) == coloured


@pytest.mark.parametrize(
    "argv",
    [
        ["report", "{}"],
        ["plan", "{}", "--summary"],
        ["explain", "RANGE-012", "--snapshots", "{}"],
        ["explain", "RANGE-012", "--node", "n0", "--snapshots", "{}"],
        ["where", "10.209.237.20", "--snapshots", "{}"],
        ["checks"],
    ],
)
def test_colours_change_nothing_else(command, recorded, argv):
    words = [word.replace("{}", str(recorded)) for word in argv]
    plain = on_a_terminal(command, words, {"NO_COLOR": "1"})
    coloured = on_a_terminal(command, words, {})
    assert re.sub("\x1b\\[[0-9]*m", "", coloured) == plain
    assert "\ufffd" not in plain
    assert max(len(line) for line in plain.splitlines()) <= 80


def test_the_reader_goes_away(command, recorded):
    """As in ``rdma-k8s plan ... | head -1``: no traceback, and the exit code of a broken pipe."""
    words, environment = command
    argv = [*words, "plan", str(recorded)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == cli.EXIT_BROKEN_PIPE


def test_reports_are_written_before_the_reader_goes_away(command, recorded, tmp_path):
    words, environment = command
    argv = [*words, "report", str(recorded), "--dir", str(tmp_path / "out")]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.wait()
    assert (tmp_path / "out" / "result.json").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device(command, recorded):
    words, environment = command
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [*words, "report", str(recorded)],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.decode() == "rdma-k8s: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize(("redirection", "code"), [(">&-", 1), ("2>&-", 0), (">&- 2>&-", 1)])
def test_closed_outputs(command, recorded, redirection, code):
    words, environment = command
    script = '"$@" %s' % redirection
    argv = ["sh", "-c", script, "sh", *words, "report", str(recorded)]
    done = subprocess.run(argv, capture_output=True, env=environment, check=False)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_interrupted(command, tmp_path):
    """Ctrl-C while it waits for a list of nodes."""
    words, environment = command
    os.mkfifo(tmp_path / "nodes")
    argv = [*words, "plan", "--nodes", str(tmp_path / "nodes"), "--subnet", "10.140.64.0/19"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    finally:
        signal.signal(signal.SIGINT, before)
    with open(tmp_path / "nodes", "wb"):  # returns when the command has opened the list, too
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert (out, err) == (b"", b"")
    assert child.returncode == cli.EXIT_INTERRUPTED == 130


def test_text_that_the_output_cannot_show(run, command, recorded, tmp_path):
    """Half of a surrogate pair in a snapshot, and an output that knows ASCII only."""
    snapshot = json.loads((recorded / "n1.json").read_text())
    snapshot["imds"]["instance"]["shape"] = "caf\u00e9 \ud83d"
    (tmp_path / "x.json").write_text(json.dumps(snapshot))
    words, environment = command
    env = {**environment, "PYTHONIOENCODING": "ascii"}
    for argv in (
        ["where", "n1", "--snapshots"],
        ["explain", "IMDS-002", "--node", "n1", "--snapshots"],
        ["report"],
        ["plan"],
    ):
        done = subprocess.run([*words, *argv, str(tmp_path)], capture_output=True, env=env, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    for name in ("json", "junit", "markdown", "html", "textfile"):
        assert run("report", tmp_path, "--format", name).good()


@pytest.mark.parametrize(
    "argv",
    [
        ["report", "{}"],
        ["where", "{name}", "--snapshots", "{}"],
        ["where", "{name}/rdma0", "--snapshots", "{}"],
        ["where", "10.140.77.20", "--snapshots", "{}"],
        ["explain", "NODE-017", "--node", "{name}", "--snapshots", "{}"],
        ["explain", "RANGE-012", "--node", "{name}", "--snapshots", "{}"],
        ["explain", "NODE-017", "--snapshots", "{}"],
        ["plan", "{}"],
        ["diff", "{}", "{}"],
        ["where", "\x1b[2J", "--snapshots", "{}"],
    ],
)
def test_names_cannot_control_a_terminal(run, recorded, tmp_path, argv):
    name = "evil\x1b[2J\u202e\n"
    snapshot = json.loads((recorded / "n1.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps({**snapshot, "name": name, "inventory": {"network": name}}))
    result = run(*[word.replace("{name}", name).replace("{}", str(tmp_path)) for word in argv])
    assert result.code in (0, 2)
    text = result.out + result.err
    assert [mark for mark in ("\x1b", "\u202e") if mark in text] == []
    assert max(map(len, text.splitlines())) <= 100 or result.code == 2


def test_a_table_leaves_out_empty_columns_and_fits():
    out = io.StringIO()
    Terminal(out).table(("A", "B", "C"), [("1", "", "x" * 200), ("22", "", "y")])
    lines = out.getvalue().splitlines()
    assert lines[0] == "  A   C"
    assert lines[1] == "  1   " + "x" * 91 + "..."
    assert lines[2] == "  22  y"


def test_an_output_that_fails():
    class Broken(io.StringIO):
        def write(self, _text: str) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(OutputError, match="Input/output error"):
        Terminal(Broken()).lines("x")
