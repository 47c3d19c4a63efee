# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ending processes by pid file, and QEMU's control socket; with real processes and a real socket."""

from __future__ import annotations

import json
import pathlib
import socket
import subprocess
import sys
import threading

import pytest

from ansible_collections.rdma.k8s.tests.lab import process
from ansible_collections.rdma.k8s.tests.lab.errors import LabError

SLEEPER = "import time, sys; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def start(script: str, name: str, directory: pathlib.Path) -> tuple[subprocess.Popen, pathlib.Path]:
    """A process with ``name`` among its arguments, and its pid file."""
    child = subprocess.Popen([sys.executable, "-c", script, name], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.readline()
    file = directory / f"{name}.pid"
    file.write_text(f"{child.pid}\n")
    return child, file


def finish(child: subprocess.Popen) -> None:
    """Take a child away, whatever the test did."""
    if child.poll() is None:
        child.kill()
    child.wait()
    assert child.stdout
    child.stdout.close()


@pytest.mark.parametrize("script", [SLEEPER, STUBBORN])
def test_our_process_is_ended(script: str, tmp_path: pathlib.Path) -> None:
    child, file = start(script, "rdma-lab-a-node1", tmp_path)
    try:
        assert process.running(file, "rdma-lab-a-node1")
        assert process.end(file, "rdma-lab-a-node1", patience=0.5)
        assert not process.running(file, "rdma-lab-a-node1")
        assert not file.exists()
    finally:
        finish(child)


def test_another_process_of_that_number_lives_on(tmp_path: pathlib.Path) -> None:
    """The name must be a whole argument: a longer name is another lab's."""
    child, file = start(SLEEPER, "rdma-lab-a-node11", tmp_path)
    try:
        assert not process.running(file, "rdma-lab-a-node1")
        assert not process.end(file, "rdma-lab-a-node1")
        assert child.poll() is None
        assert not file.exists()
    finally:
        finish(child)


@pytest.mark.parametrize("text", ["", "x", "4194305000"])
def test_bad_pid_files(text: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.pid"
    file.write_text(text)
    assert not process.running(file, "a")
    if text != "4194305000":
        assert process.read_pid(file) is None
        assert not process.end(file, "a")
        assert not file.exists()


def test_no_pid_file(tmp_path: pathlib.Path) -> None:
    assert not process.end(tmp_path / "none.pid", "a")


def serve(path: pathlib.Path, answers: list[list[dict]]) -> tuple[threading.Thread, list[dict]]:
    """A stand-in for QEMU's end of the control socket: for each command one list of messages."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    received: list[dict] = []

    def run() -> None:
        connection, _peer = listener.accept()
        with listener, connection, connection.makefile("rw", encoding="utf-8") as file:
            file.write(json.dumps({"QMP": {}}) + "\n")
            file.flush()
            for messages in [[{"return": {}}], *answers]:
                received.append(json.loads(file.readline()))
                for message in messages:
                    file.write(json.dumps(message) + "\n")
                file.flush()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, received


def test_control_socket(tmp_path: pathlib.Path) -> None:
    answers = [
        [{"event": "RESUME"}, {"return": 7}],
        [{"return": ""}],
        [{"error": {"desc": "no such device"}}],
    ]
    thread, received = serve(tmp_path / "q.qmp", answers)
    with process.Qmp(tmp_path, "q.qmp") as qmp:
        assert qmp.command("set_link", name="nic1", up=False) == 7
        assert qmp.monitor("savevm ready") == ""
        with pytest.raises(LabError, match="QEMU refused stop: no such device"):
            qmp.command("stop")
        thread.join()
        with pytest.raises((LabError, OSError)):
            qmp.command("stop")
    assert received == [
        {"execute": "qmp_capabilities", "arguments": {}},
        {"execute": "set_link", "arguments": {"name": "nic1", "up": False}},
        {"execute": "human-monitor-command", "arguments": {"command-line": "savevm ready"}},
        {"execute": "stop", "arguments": {}},
    ]


def test_a_long_path_to_the_socket_does_not_matter(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    thread, received = serve(pathlib.Path("q.qmp"), [])
    process.Qmp(deep, "q.qmp").close()
    thread.join()
    assert len(received) == 1


def test_waiting_for_a_qemu_that_ends(tmp_path: pathlib.Path) -> None:
    alive = iter([True, True, False])
    assert process.wait_for_qmp(tmp_path, "none.qmp", lambda: next(alive)) is None
    with pytest.raises(LabError, match="does not open its control socket"):
        process.wait_for_qmp(tmp_path, "none.qmp", lambda: True, seconds=0.05)
