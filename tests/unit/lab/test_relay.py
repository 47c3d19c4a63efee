# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The relay carries one connection to the API server."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import subprocess
import sys
import threading

from ansible_collections.rdma.k8s.tests.lab import relay

SCRIPT = pathlib.Path(relay.__file__)


def start(directory: pathlib.Path, guest: socket.socket) -> subprocess.Popen:
    """The relay as QEMU starts it: in the directory of the lab, with the connection as its standard input."""
    return subprocess.Popen([sys.executable, "-I", "-S", str(SCRIPT), "api"], cwd=directory, stdin=guest)


def test_bytes_go_both_ways(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (tmp_path / "api").write_text(f"127.0.0.1:{server.getsockname()[1]}\n")
        guest, inside = socket.socketpair()
        with guest:
            child = start(tmp_path, inside)
            inside.close()
            connection, _address = server.accept()
            with connection:
                sender = threading.Thread(target=guest.sendall, args=(b"q" * 300_000,))
                sender.start()
                got = b""
                while len(got) < 300_000:
                    got += connection.recv(1 << 16)
                sender.join()
                connection.sendall(b"answer")
                assert guest.recv(6) == b"answer"
            assert guest.recv(1) == b""
        assert child.wait(60) == 0


def test_without_a_cluster_the_connection_ends(tmp_path: pathlib.Path) -> None:
    guest, inside = socket.socketpair()
    with guest:
        child = start(tmp_path, inside)
        inside.close()
        assert child.wait(60) == 1
        with contextlib.suppress(ConnectionResetError):
            assert guest.recv(1) == b""


def test_nobody_at_home(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "api").write_text(f"127.0.0.1:{port}\n")
    guest, inside = socket.socketpair()
    with guest, inside:
        assert start(tmp_path, inside).wait(60) == 1
