# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a lab, its ports, its inventory, and what happens when something is not as it should be."""

from __future__ import annotations

import io
import pathlib
import shlex
import socket
import subprocess
import sys
import threading
import time

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.lab import lab, packages, plan, process, qemu
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.lab.image import Cache, Image
from ansible_collections.rdma.k8s.tests.lab.progress import Progress

STATE = lab.State("one", plan.make_spec(nodes=3), 22220, "tcg", "/c/image-1", True, 1000.0)


@pytest.fixture
def this(tmp_path: pathlib.Path) -> lab.Lab:
    """The lab 'one' of an empty cache."""
    return lab.Lab("one", Cache(tmp_path, Progress(io.StringIO())), Progress(io.StringIO()))


def put_state(this: lab.Lab, state: lab.State = STATE) -> None:
    """A state file for a lab."""
    this.directory.mkdir(parents=True, exist_ok=True)
    (this.directory / "lab.json").write_text(state.to_json())


def test_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMA_LAB_CACHE", "/a/b")
    assert lab.default_cache() == pathlib.Path("/a/b")
    monkeypatch.delenv("RDMA_LAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert lab.default_cache() == pathlib.Path("/x/rdma-k8s-lab")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/u")
    assert lab.default_cache() == pathlib.Path("/home/u/.cache/rdma-k8s-lab")


def test_state_survives_its_file() -> None:
    assert lab.State.from_json(STATE.to_json()) == STATE
    assert list(STATE.nodes()) == [1, 2, 3]
    assert STATE.port(3) == 22223


def test_bad_states(this: lab.Lab) -> None:
    with pytest.raises(LabError, match="is not up; start it with up --name one"):
        this.state()
    put_state(this)
    assert this.state() == STATE
    for text in ("", "[]", '{"version": 1}', '{"version": 1, "spec": {"nodes": 2, "colour": 1}}'):
        (this.directory / "lab.json").write_text(text)
        with pytest.raises(LabError) as caught:
            this.state()
        assert caught.value.code in ("state_bad", "state_version")
    (this.directory / "lab.json").write_text('{"version": 2}')
    with pytest.raises(LabError, match="another version"):
        this.state()


@pytest.mark.parametrize("text", ["2", "node2"])
def test_names_of_nodes(text: str, this: lab.Lab) -> None:
    put_state(this)
    assert this.check_node(text) == 2


@pytest.mark.parametrize("text", ["0", "4", "node", "node4", "nodenode1", "x", "", "-1", "\u0662"])
def test_nodes_that_are_not_there(text: str, this: lab.Lab) -> None:
    put_state(this)
    with pytest.raises(LabError, match="this lab has node1 to node3"):
        this.check_node(text)


def test_ports() -> None:
    busy = {22222, 22245}
    assert lab.choose_base_port(None, 2, set(), lambda port: True) == 22220
    assert lab.choose_base_port(None, 2, {22221}, lambda port: True) == 22240
    assert lab.choose_base_port(None, 2, set(), lambda port: port not in busy) == 22240
    assert lab.choose_base_port(None, 5, set(), lambda port: port not in busy) == 22260
    assert lab.choose_base_port(30000, 2, set(), lambda port: True) == 30000
    with pytest.raises(LabError, match="port 30002 is in use"):
        lab.choose_base_port(30000, 2, {30002}, lambda port: True)
    with pytest.raises(LabError, match="use 1024 to"):
        lab.choose_base_port(80, 2, set(), lambda port: True)
    with pytest.raises(LabError, match="No block of 2 free ports"):
        lab.choose_base_port(None, 2, set(), lambda port: False)


def test_a_port_in_use_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not lab.port_free(port)
    assert lab.port_free(port)


def test_ports_of_other_labs_are_reserved(this: lab.Lab) -> None:
    put_state(this)
    other = lab.Lab("two", this.cache, this.progress)
    assert other._reserved_ports() == {22221, 22222, 22223}
    assert this._reserved_ports() == set()
    (this.directory / "lab.json").write_text("half")
    assert other._reserved_ports() == set()


def test_inventory() -> None:
    text = lab.inventory_text(STATE, pathlib.Path('/a "b"/key'), "rails")
    data = yaml.safe_load(text)
    assert list(data) == ["rails"]
    assert data["rails"]["hosts"] == {f"node{node}": {"ansible_port": 22220 + node} for node in (1, 2, 3)}
    values = data["rails"]["vars"]
    assert values["ansible_host"] == "127.0.0.1"
    assert values["ansible_ssh_private_key_file"] == '/a "b"/key'
    assert values["ansible_pipelining"] is True
    words = shlex.split(values["ansible_ssh_common_args"])
    assert "StrictHostKeyChecking=no" in words
    assert "UserKnownHostsFile=/dev/null" in words
    assert "BatchMode=yes" in words


def test_ssh_command(this: lab.Lab) -> None:
    put_state(this)
    words = this.ssh_command(2)
    assert words[:3] == ["ssh", "-i", str(this.cache.key_file)]
    assert words[-3:] == ["-p", "22222", "root@127.0.0.1"]
    assert f"ControlPath={this.directory}/ssh2" in this.ssh_command(2, shared=True)
    assert this.ssh_command(2, terminal=True)[-2:] == ["-t", "root@127.0.0.1"]


def test_a_long_cache_path_gives_up_the_shared_connection(tmp_path: pathlib.Path) -> None:
    this = lab.Lab("one", Cache(tmp_path / ("d" * 90), Progress(io.StringIO())), Progress(io.StringIO()))
    put_state(this)
    assert not any(word.startswith("ControlPath") for word in this.ssh_command(1, shared=True))


def test_down_ends_what_runs_and_forgets(this: lab.Lab) -> None:
    put_state(this)
    name = qemu.process_name("one", 2)
    script = "import time; print('up', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", script, name], stdout=subprocess.PIPE)
    assert child.stdout
    child.stdout.readline()  # until then its command line can still be this program's
    try:
        (this.directory / "node2.pid").write_text(str(child.pid))
        (this.directory / "node2.console").write_text("kept")
        assert this.alive() == [name]
        assert this.down() == [name]
        assert [path.name for path in this.directory.iterdir()] == ["node2.console"]
        assert this.down() == []
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def ready(this: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> lab.Lab:
    """A lab on a machine with a QEMU and an image, where nothing is really started."""
    image = Image(this.cache.path / "image-k", "k", "6.12", "stock")
    monkeypatch.setattr(packages, "ensure_tools", lambda *arguments: None)
    monkeypatch.setattr(this.cache, "ensure_image", lambda driver: image)
    monkeypatch.setattr(qemu, "qemu_build", lambda: "QEMU 7.2")
    monkeypatch.setattr(qemu, "check_host", lambda: None)
    monkeypatch.setattr(qemu, "choose_accel", lambda wish: "tcg")
    return this


def test_a_lab_that_is_up_is_not_started_again(ready: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "alive", lambda: ["rdma-lab-one-node1"])
    with pytest.raises(LabError, match="is up already; run down first"):
        ready.up(plan.make_spec())


def test_a_start_that_fails_leaves_nothing(ready: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr(ready, "_run", lambda *command: None)
    monkeypatch.setattr(ready, "_spawn", lambda command, log: started.append(command[2]) or object())

    def fails(node: int, child: object) -> None:
        raise LabError("qemu_failed", f"QEMU of node{node} ended at once: no")

    monkeypatch.setattr(ready, "_await_qemu", fails)
    with pytest.raises(LabError, match="QEMU of node1 ended at once: no"):
        ready.up(plan.make_spec(), cold=True)
    assert started == ["rdma-lab-one-node1", "rdma-lab-one-node2"]
    assert not (ready.directory / "lab.json").exists()


def test_the_state_tells_which_driver_was_had(ready: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_start", lambda state, image, saved: ready._write_state(state))
    state = ready.up(plan.make_spec(driver="lab"), cold=True)
    assert (state.spec.driver, state.warm) == ("stock", False)
    assert ready.state() == state


def test_a_saved_state_is_made_once(ready: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def save(state: lab.State, image: Image, saved: pathlib.Path) -> None:
        calls.append("save")
        saved.mkdir(parents=True)
        (saved / "done").touch()

    monkeypatch.setattr(ready, "_save", save)
    monkeypatch.setattr(
        ready, "_start", lambda state, image, saved: calls.append((state.warm, saved.name[:7]))
    )
    ready.up(plan.make_spec())
    ready.up(plan.make_spec())
    ready.up(plan.make_spec(rails=2))
    assert calls == ["save", (True, "warm-k-"), (True, "warm-k-"), "save", (True, "warm-k-")]


def test_two_labs_of_one_kind_save_its_state_once(this: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    this.cache.claim()
    saved = this.cache.path / "warm-k-1"
    calls = []

    def save(_self: object, _state: object, _image: object, saved: pathlib.Path) -> None:
        calls.append(threading.current_thread().name)
        saved.mkdir()
        time.sleep(0.3)
        (saved / "done").touch()

    monkeypatch.setattr(lab.Lab, "_save", save)
    labs = [lab.Lab(name, this.cache, this.progress) for name in ("one", "two")]
    threads = [threading.Thread(target=one._ensure_saved, args=(None, None, saved)) for one in labs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


def test_a_qemu_that_ends_says_why(this: lab.Lab) -> None:
    this.directory.mkdir(parents=True)
    child = this._spawn(
        [sys.executable, "-c", "import sys; sys.exit('Could not set up host forwarding rule')"], "node1.log"
    )
    with pytest.raises(LabError, match="QEMU of node1 ended at once: Could not set up host forwarding rule"):
        this._await_qemu(1, child)


def test_the_switch_is_started_and_ended(this: lab.Lab) -> None:
    this.directory.mkdir(parents=True)
    this._start_switch(plan.make_spec(nodes=3, rails=2))
    sockets = {path.name for path in this.directory.glob("rail*")}
    assert sockets == {f"rail{rail}-port{node}" for rail in (0, 1) for node in (1, 2, 3)}
    assert this.alive() == ["rdma-lab-one-switch"]
    assert process.running(this.directory / "switch.pid", "rdma-lab-one-switch")
    assert this.down() == ["rdma-lab-one-switch"]
    assert this.alive() == []


def test_all_nodes_at_once_and_the_first_trouble() -> None:
    done = []

    def work(node: int) -> None:
        if node % 2:
            raise LabError("odd", f"node{node} is odd")
        done.append(node)

    with pytest.raises(LabError, match="node1 is odd"):
        lab.each_node(range(1, 5), work)
    assert sorted(done) == [2, 4]


def test_a_slow_sshd_is_given_more_time(this: lab.Lab) -> None:
    """A banner that comes late is waited for on the same connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def late() -> None:
            connection, _address = server.accept()
            with connection:
                time.sleep(0.3)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = threading.Thread(target=late)
        thread.start()
        assert this._banner(server.getsockname()[1], 5.0)
        thread.join()
        assert not this._banner(server.getsockname()[1], 0.1)
