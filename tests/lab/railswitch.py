# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch for labs that are not exactly two nodes: it learns addresses and passes frames between unix sockets.

Run by the lab in its run directory as ``railswitch.py NAME NODES RAILS``. Frames go out at the place where their
destination was last seen, or everywhere else of the same rail. A node that is not there loses its frames, as on a wire.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys

LARGEST_FRAME = 65536 + 64
BURST = 64


class Rail:
    """One rail: who was seen where."""

    def __init__(self, ports: list[int]):
        self.ports = ports
        self.seen: dict[bytes, int] = {}

    def destinations(self, frame: bytes, port: int) -> list[int]:
        """Ports that ``frame``, which came in at ``port``, goes out at; learns its sender."""
        target, sender = frame[:6], frame[6:12]
        if not sender[:1] or sender[0] & 1 == 0:
            self.seen[sender] = port
        if target in self.seen:
            return [self.seen[target]] if self.seen[target] != port else []
        return [other for other in self.ports if other != port]


def serve(nodes: int, rails: int) -> None:
    """Pass frames for ever."""
    selector = selectors.DefaultSelector()
    switches = [Rail(list(range(1, nodes + 1))) for _rail in range(rails)]
    for rail in range(rails):
        for port in range(1, nodes + 1):
            name = f"rail{rail}-port{port}"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            endpoint = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            endpoint.bind(name)
            endpoint.setblocking(False)
            selector.register(endpoint, selectors.EVENT_READ, (endpoint, rail, port))
    while True:
        for key, _events in selector.select():
            endpoint, rail, port = key.data
            for _unused in range(BURST):
                try:
                    frame = endpoint.recv(LARGEST_FRAME)
                except BlockingIOError:
                    break
                for other in switches[rail].destinations(frame, port):
                    with contextlib.suppress(OSError):
                        endpoint.sendto(frame, f"rail{rail}-node{other}")


if __name__ == "__main__":
    serve(int(sys.argv[2]), int(sys.argv[3]))
