# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program inside a node, as far as it can run without one."""

from __future__ import annotations

import json
import pathlib
import socket
import threading

import pytest

from ansible_collections.rdma.k8s.tests.lab import plan
from ansible_collections.rdma.k8s.tests.lab.guest import node

DOCUMENTS = plan.imds_documents(plan.make_spec(), 1)
DOCUMENT = plan.node_document(plan.make_spec(), 1)
KEY = "Authorization: Bearer Oracle"


def ask(path: str, *headers: str, method: str = "GET") -> tuple[int, str]:
    """The answer of the metadata service to one request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]
    return node.imds_answer(DOCUMENTS, "\r\n".join(lines).encode())


@pytest.mark.parametrize("path", ["/opc/v2/vnics", "/opc/v2/vnics/", "/opc/v2/vnics/?x=1"])
def test_metadata_is_served(path: str) -> None:
    status, body = ask(path, KEY)
    assert status == 200
    assert json.loads(body) == DOCUMENTS["vnics"]


def test_parts_of_the_metadata() -> None:
    assert ask("/opc/v2/instance/shape", KEY) == (200, "LAB.RXE.4")
    assert ask("/opc/v2/vnics/0/privateIp", KEY) == (200, "10.140.77.19")
    assert json.loads(ask("/opc/v2/", "authorization:Bearer Oracle")[1]) == DOCUMENTS


@pytest.mark.parametrize(
    "path",
    ["/opc/v1/host/", "/", "/opc/v2/none", "/opc/v2/vnics/1", "/opc/v2/vnics/x", "/opc/v2/instance/shape/x"],
)
def test_unknown_paths(path: str) -> None:
    assert ask(path, KEY)[0] == 404


@pytest.mark.parametrize(
    "header", ["X: y", "Authorization: Bearer", "Authorization: Basic Oracle", "Authorization: bearer oracle"]
)
def test_the_header_is_required(header: str) -> None:
    """F8."""
    assert ask("/opc/v2/host/", header)[0] == 403


def test_other_requests() -> None:
    assert ask("/opc/v2/host/", KEY, method="PUT")[0] == 405
    assert node.imds_answer(DOCUMENTS, b"nonsense\r\n\r\n")[0] == 400


@pytest.mark.parametrize(("mode", "status"), [(None, b"200"), ("error", b"503")])
def test_a_whole_connection(
    mode: str | None, status: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "IMDS_MODE", str(tmp_path / "mode"))
    if mode:
        (tmp_path / "mode").write_text(mode)
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=node.imds_connection, args=(theirs, DOCUMENTS))
    thread.start()
    with ours:
        ours.sendall(b"GET /opc/v2/instance/shape HTTP/1.1\r\n")
        ours.sendall(f"{KEY}\r\n\r\n".encode())
        answer = b""
        while part := ours.recv(4096):
            answer += part
    thread.join()
    assert answer.split(b" ")[1] == status
    head, body = answer.split(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")


def test_commands_for_a_rail() -> None:
    assert node.rail_commands(DOCUMENT["rails"][1]) == [
        "link set rdma1 mtu 4220 up",
        "address replace 10.224.45.19/12 dev rdma1 noprefixroute",
        "route replace 10.224.0.0/12 dev rdma1 scope link src 10.224.45.19 table 11",
    ]


def test_rails_by_index() -> None:
    assert node.rail_of(DOCUMENT, "3")["name"] == "rdma3"
    with pytest.raises(node.NodeError, match="rails 0 to 3"):
        node.rail_of(DOCUMENT, "4")


class Machine:
    """Remembers commands and files instead of touching this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]):
        self.commands: list[str] = []
        self.files: dict[str, str] = {}
        self.answers = answers
        monkeypatch.setattr(node, "run", self.run)
        monkeypatch.setattr(node, "write", self.files.__setitem__)

    def run(self, *command: str, stdin: str | None = None) -> str:
        """Remember a command; the lines of a batch one by one."""
        self.commands += stdin.splitlines() if stdin else [" ".join(command)]
        return self.answers.get(" ".join(command), "")


def test_laying_out_adds_only_missing_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules have no 'replace', so one that is there must not be added again (F146: the table is text)."""
    rules = [{"priority": 1000, "src": "10.224.13.19", "table": "10"}, {"priority": 32766, "table": "main"}]
    machine = Machine(monkeypatch, {"ip -j rule show": json.dumps(rules)})
    node.lay_out(DOCUMENT, DOCUMENT["rails"][:2])
    added = [command for command in machine.commands if command.startswith("rule")]
    assert added == ["rule add priority 1001 from 10.224.45.19 table 11"]
    assert machine.files["/proc/sys/net/ipv4/conf/rdma0/arp_ignore"] == "1"
    assert machine.files["/proc/sys/net/ipv4/conf/rdma1/arp_announce"] == "2"


def test_swapped_links_keep_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, {})
    done = node.play_swap(DOCUMENT, "0", "1")
    assert done == {"rails": ["0", "1"]}
    assert machine.commands[2:5] == [
        "link set rdma0 name swapping",
        "link set rdma1 name rdma0",
        "link set swapping name rdma1",
    ]
    assert "address replace 10.224.13.19/12 dev rdma1 noprefixroute" in machine.commands
    assert "address replace 10.224.45.19/12 dev rdma0 noprefixroute" in machine.commands
    with pytest.raises(node.NodeError, match="Two different rails"):
        node.play_swap(DOCUMENT, "1", "1")


def test_the_edited_driver_is_loaded_after_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    modules = ("udp_tunnel.ko ", "ib_core.ko x=1", "rdma_rxe.ko ")
    shown = "".join(f"insmod /lib/modules/6/{module}\n" for module in modules)
    machine = Machine(monkeypatch, {"modprobe --show-depends rdma_rxe": shown})
    monkeypatch.setattr(node, "LAB_MODULE", str(tmp_path / "rdma_rxe.ko"))
    with pytest.raises(node.NodeError, match="no edited rxe"):
        node.load_driver("lab")
    (tmp_path / "rdma_rxe.ko").touch()
    node.load_driver("lab")
    assert machine.commands[1:] == [
        "modprobe udp_tunnel",
        "modprobe ib_core",
        f"insmod {tmp_path}/rdma_rxe.ko",
    ]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: node.play_arp(DOCUMENT, "0", "mtu=1"), "use arp_ignore=N"),
        (lambda: node.play_arp(DOCUMENT, "0", "arp_ignore"), "use arp_ignore=N"),
        (lambda: node.play_imds_down(DOCUMENT, "loud"), "use refused, silent or error"),
        (lambda: node.play_namespace(DOCUMENT, "big"), "use named or hidden"),
        (lambda: node.play_oca_malformed(DOCUMENT, "both"), "use network or features"),
        (lambda: node.change_driver("siw"), "use lab or stock"),
    ],
)
def test_bad_arguments_are_named(call, reason: str) -> None:
    with pytest.raises(node.NodeError, match=reason):
        call()


@pytest.fixture
def notes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A node with one fault 'x', whose undo is remembered."""
    undone: list[object] = []
    monkeypatch.setattr(node, "ACTIVE", str(tmp_path / "faults"))
    monkeypatch.setattr(node, "document", lambda: DOCUMENT)
    monkeypatch.setattr(
        node, "FAULTS", {"x": (lambda _node, word: {"word": word}, lambda _node, done: undone.append(done))}
    )
    return undone


def test_a_fault_is_remembered_until_it_is_undone(
    notes: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert node.main(["fault", "x", "a"]) == 0
    assert node.main(["fault", "x", "b"]) == 1
    assert "is in force already" in capsys.readouterr().err
    assert node.main(["active"]) == 0
    assert json.loads(capsys.readouterr().out) == {"x": ["a"]}
    assert node.main(["undo", "x", "--", "active"]) == 0
    assert json.loads(capsys.readouterr().out) == {}
    assert notes == [{"word": "a"}]
    assert node.main(["undo", "x"]) == 1
    assert node.main(["fault", "y"]) == 1
    assert "There is no fault 'y'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["nonsense"], ["active", "--"], ["--", "active"]])
def test_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert node.main(words) == 2
    assert "usage" in capsys.readouterr().err


def test_commands_of_the_system_fail_with_their_own_words() -> None:
    assert node.run("echo", "hello") == "hello\n"
    with pytest.raises(node.NodeError, match=r"sh -c echo no >&2; exit 3: no"):
        node.run("sh", "-c", "echo no >&2; exit 3")


def test_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.time, "sleep", lambda seconds: None)
    left = [1, 2]

    def action(value: str) -> str:
        if left:
            left.pop()
            raise node.NodeError("busy")
        return value

    assert node.retry(5.0, action, "done") == "done"

    def busy() -> None:
        raise node.NodeError("busy")

    with pytest.raises(node.NodeError, match="busy"):
        node.retry(0.0, busy)


@pytest.mark.parametrize("error", [node.NodeError("no document"), FileNotFoundError("no document")])
def test_boot_leaves_the_reason_of_a_failure(
    error: Exception, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "STATE", str(tmp_path / "lab" / "state"))

    def document() -> dict:
        raise error

    monkeypatch.setattr(node, "document", document)
    assert node.main(["boot"]) == 1
    assert (tmp_path / "lab" / "state").read_text() == "failed: no document\n"


def test_settings_of_a_nic_come_after_its_link(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(node, "run", lambda *command, **_more: done.append(command[1]) or "[]")
    monkeypatch.setattr(node, "write", lambda path, _value: done.append(path.rsplit("/", 1)[1]))
    rails = plan.node_document(plan.LabSpec(rails=1), 1)["rails"]
    node.lay_out({}, rails)
    assert done == ["-j", "-batch", *rails[0]["sysctl"]]
