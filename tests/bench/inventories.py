# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a large cluster: a server on loopback with real client and real Ansible before it.

Usage: python tests/bench/inventories.py serve N     pages of N nodes and their slices; prints its port, then serves
       python tests/bench/inventories.py read FILE   fill an inventory from a source; prints a JSON object
       python tests/bench/inventories.py models KUBECONFIG   read the same with the classes of the official client
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

BENCH = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCH), str(BENCH.parent / "support")]

import measure as measuring  # noqa: E402
import paths  # noqa: E402

PAGE = 500


def pages(count: int, make: Callable[[int], dict[str, Any]]) -> list[bytes]:
    """A list as the API server sends it in pages."""
    found = []
    for first in range(0, count, PAGE):
        last = min(first + PAGE, count)
        metadata = {"resourceVersion": "1", **({"continue": str(last)} if last < count else {})}
        page = {
            "kind": "List",
            "apiVersion": "v1",
            "metadata": metadata,
            "items": [*map(make, range(first, last))],
        }
        found.append(json.dumps(page, separators=(",", ":")).encode())
    return found


def serve(count: int) -> None:
    """Serve nodes and slices until somebody ends it."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import inventory_objects as objects
    from ansible_collections.rdma.k8s.tests.support.list_api import NODES, SLICES

    found = {NODES: pages(count, objects.large_node), SLICES: pages(count, objects.piece)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            split = urlsplit(self.path)
            first = int(parse_qs(split.query).get("continue", ["0"])[0])
            body = found[split.path][first // PAGE]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    size = sum(map(len, [*found[NODES], *found[SLICES]]))
    print(json.dumps({"port": server.server_address[1], "bytes": size}), flush=True)
    server.serve_forever()


def read(source: str) -> dict[str, Any]:
    """Fill an inventory as every command of Ansible does; what Ansible itself needs to start does not count.

    The collection is not imported before: Ansible must be the one that finds it.
    """
    from ansible.inventory.manager import InventoryManager
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader
    from ansible.utils.display import Display

    Display().verbosity = 2
    init_plugin_loader()
    loader = DataLoader()
    cpu, wall = time.process_time(), time.perf_counter()
    inventory = InventoryManager(loader, sources=[source])
    return {
        "cpu_seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - wall,
        "hosts": len(inventory.hosts),
        "networks": len([name for name in inventory.groups if name.startswith("rdma_network_10_")]),
        "groups": len(inventory.groups),
    }


def models(kubeconfig: str) -> dict[str, Any]:
    """Read the same lists into the classes of the official client, page by page, and do nothing with them."""
    cpu, wall = time.process_time(), time.perf_counter()
    from kubernetes import client, config

    api = config.new_client_from_config(kubeconfig)
    count = 0
    for call in (client.CoreV1Api(api).list_node, client.ResourceV1Api(api).list_resource_slice):
        token = None
        while True:
            found = call(limit=PAGE, _continue=token) if token else call(limit=PAGE)
            count += len(found.items)
            token = found.metadata._continue
            if not token:
                break
    return {"cpu_seconds": time.process_time() - cpu, "seconds": time.perf_counter() - wall, "objects": count}


def measured(count: int, rounds: int, with_models: bool) -> dict[str, Any]:
    """The best of some runs, each in a fresh process; then one out of the cache, and how many calls they made."""
    paths.make_importable()
    from ansible_collections.rdma.k8s.tests.support import api_server, playbook

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "ANSIBLE_COLLECTIONS_PATH": str(playbook.ROOT),
            "ANSIBLE_HOME": str(folder / "home"),
            "HOME": str(folder),
        }

        def run(what: str, argument: str) -> dict[str, Any]:
            done = measuring.run(
                [sys.executable, __file__, what, argument], {**env, "ANSIBLE_VERBOSITY": "2"}
            )
            if done.code:
                raise measuring.BenchError(f"{what} ended with exit code {done.code}:\n{done.output[-2000:]}")
            calls = [line for line in done.output.splitlines() if line.startswith("rdma.k8s.nodes:")]
            found: dict[str, Any] = json.loads(done.output.splitlines()[-1])
            return {**found, "peak_mib": done.peak_kib / 1024, "said": calls[-1] if calls else ""}

        command = [sys.executable, __file__, "serve", str(count)]
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                told = json.loads(server.stdout.readline())
                file = api_server.kubeconfig(folder, f"http://127.0.0.1:{told['port']}", token="none")
                source = folder / "large.rdma_k8s.yml"
                source.write_text(f"plugin: rdma.k8s.nodes\nkubeconfig: {file}\n")
                runs = [run("read", str(source)) for _round in range(rounds)]
                source.write_text(
                    f"plugin: rdma.k8s.nodes\nkubeconfig: {file}\ncache: true\n"
                    f"cache_plugin: ansible.builtin.jsonfile\ncache_connection: {folder}/cache\n"
                )
                run("read", str(source))
                cached = run("read", str(source))
                by_models = run("models", file) if with_models else {}
            finally:
                server.terminate()
    best = min(runs, key=lambda found: float(found["cpu_seconds"]))
    return {**best, "bytes": told["bytes"], "cached": cached, "models": by_models}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        print(json.dumps({"read": read, "models": models}[sys.argv[1]](sys.argv[2])))
