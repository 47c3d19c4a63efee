# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider as a process of its own, and a client for it. Needs nothing but the standard library here."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional, Union

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class ProviderError(Exception):
    """The provider did not start, or ended."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Calls one provider, at ``unix:///PATH`` or ``http://ADDRESS:PORT``; the connection is kept."""

    def __init__(self, url: str, timeout: float = 20.0) -> None:
        if url.startswith("unix://"):
            self._connection: http.client.HTTPConnection = _UnixConnection(url[len("unix://") :], timeout)
        else:
            self._connection = http.client.HTTPConnection(
                url.rsplit("://", maxsplit=1)[-1].rstrip("/"), timeout=timeout
            )

    def call(
        self,
        path: str,
        document: Any = None,
        method: str = "",
        as_json: bool = True,
        body: Optional[bytes] = None,
    ) -> tuple[int, Any]:
        """Status and answer: a JSON value, or text where the answer is none.

        :param document: what is sent as JSON; ``body`` instead is sent as it is.
        :param as_json: say that JSON is accepted, as DRANET does not.
        """
        data = json.dumps(document).encode() if body is None and document is not None else body
        headers = {"Content-Type": "application/json"}
        if as_json:
            headers["Accept"] = "application/json"
        self._connection.request(method or ("GET" if data is None else "POST"), path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.headers.get_content_type() == "application/json":
            return answer.status, json.loads(text)
        return answer.status, text

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def environment(directory: Path, **variables: Optional[str]) -> dict[str, str]:
    """The environment in which ``python -m rdma_k8s_provider`` works: as in the image, with links to the sources."""
    packages = directory / "packages"
    if not packages.is_dir():
        packages.mkdir(parents=True)
        (packages / "rdma_k8s").symlink_to(ROOT / "plugins" / "module_utils")
        (packages / "rdma_k8s_provider").symlink_to(ROOT / "image" / "rdma_k8s_provider")
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    kept.update({"PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"})
    kept.update({name: value for name, value in variables.items() if value is not None})
    return kept


class Provider:
    """A running provider with its socket in ``directory``. Use it in a ``with`` statement."""

    def __init__(
        self,
        directory: Path,
        *flags: str,
        host_root: Union[str, Path] = "/",
        imds_url: str = "http://127.0.0.1:1/opc/v2",
        **variables: Optional[str],
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.socket = directory / "rdma-k8s.sock"
        self.log = directory / "log"
        self.url = "unix://%s" % self.socket
        command = [
            sys.executable,
            "-m",
            "rdma_k8s_provider",
            "--listen",
            self.url,
            "--bind-address",
            "127.0.0.1:0",
        ]
        command += ["--imds-url", imds_url, "--host-root", str(host_root), *flags]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(directory, **variables),
                cwd=directory,
            )
        try:
            self.operations = Client("http://" + self._address())
        except BaseException:
            self.kill()
            raise
        self.client = Client(self.url)

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_error: Any) -> None:
        self.client.close()
        self.operations.close()
        self.kill()

    def lines(self) -> list[dict[str, Any]]:
        """The log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def _address(self) -> str:
        """The address of the metrics, once it listens."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for line in self.lines():
                if line["event"] == "listen":
                    return str(line["metrics"]).split("://")[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise ProviderError("it did not start: %s" % self.log.read_text()[-2000:])

    def call(self, path: str, document: Any = None, **more: Any) -> tuple[int, Any]:
        """See :meth:`Client.call`."""
        return self.client.call(path, document, **more)

    def metric(self, name: str) -> float:
        """The sum of the samples whose line begins with a text."""
        text = self.operations.call("/metrics")[1]
        return sum(float(value) for value in re.findall(r"^%s[^ ]* ([^ ]+)$" % re.escape(name), text, re.M))

    def wait_for(self, name: str, least: float) -> None:
        """Wait until a metric is at least this."""
        deadline = time.monotonic() + PATIENCE
        while self.metric(name) < least:
            if time.monotonic() > deadline:
                raise ProviderError("%s stays below %g" % (name, least))
            time.sleep(0.02)

    def wait_for_metadata(self) -> None:
        """Wait until the metadata service has been read once."""
        self.wait_for("rdma_k8s_provider_imds_reads_total", 1)

    def terminate(self) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """End it in any case."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


def memory_of(pid: int) -> int:
    """Resident bytes of a process that are not shared with a file."""
    text = Path("/proc/%d/status" % pid).read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", text, re.M)
    return int(found[1]) * 1024 if found else 0
