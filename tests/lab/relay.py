# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection from a node to the API server: QEMU starts this for each, with the connection as standard input.

``relay.py FILE`` reads ADDRESS:PORT from a file, so that a lab may be started, saved and resumed before its cluster is
there. Without the file the connection ends, which a kubelet takes as a server that is not up yet.
"""

from __future__ import annotations

import contextlib
import pathlib
import select
import socket
import sys

SIZE = 1 << 16


def pipe(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side has said all; a half-closed connection to an API server is of no use."""
    partner = {one: other, other: one}
    with contextlib.suppress(OSError):
        while True:
            for source in select.select(list(partner), [], [])[0]:
                data = source.recv(SIZE)
                if not data:
                    return
                partner[source].sendall(data)


def main(arguments: list[str]) -> int:
    """Connect, and carry bytes."""
    try:
        host, port = pathlib.Path(arguments[0]).read_text(encoding="utf-8").strip().rsplit(":", 1)
        server = socket.create_connection((host, int(port)), 5)
    except (OSError, ValueError):
        return 1
    server.settimeout(None)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    guest = socket.socket(fileno=0)
    with guest, server:
        pipe(guest, server)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
