# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the lock files with known advisories by pip-audit.

The advisories are data of a service (OSV). Where RDMA_K8S_ADVISORIES holds the address of one, such as the usual one of
OSV or a mirror in a closed network, it is asked. Elsewhere a service on loopback stands in, which has no advisory, and
then one of its own: so it is known that each locked release is asked for, and that an advisory ends the audit.

Usage: PYTHON_OF_THE_ENVIRONMENT tests/tools/advisories.py      the last line is `N passed, M failed`
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "RDMA_K8S_ADVISORIES"
LOCKS = ("dev", "next", "browser", "audit")
BAIT = "jinja2"
ADVISORY = {"id": "MADE-UP-1", "details": "Made up.", "modified": "2026-01-01T00:00:00Z", "affected": []}


class Service(ThreadingHTTPServer):
    """Answers as OSV does; `asked` holds names and versions."""

    def __init__(self, bait: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: set[tuple[str, str]] = set()
        self.bait = bait
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        """Where it is asked."""
        return f"http://127.0.0.1:{self.server_port}/v1/query"


class Answer(BaseHTTPRequestHandler):
    """One question about one release."""

    def do_POST(self) -> None:
        """Answer it."""
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, version = question["package"]["name"], question["version"]
        assert isinstance(self.server, Service)
        self.server.asked.add((name, version))
        content = json.dumps({"vulns": [ADVISORY]} if name == self.server.bait else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def audit(lock: str, address: str) -> tuple[int, dict[str, list[str]], str]:
    """Audit one lock file; return the exit code, the advisories of each package, and what was said."""
    words = ["--disable-pip", "--strict", "--progress-spinner", "off", "--format", "json"]
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        *words,
        "--vulnerability-service",
        "osv",
        "--osv-url",
        address,
    ]
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    done = subprocess.run(
        [*command, "--requirement", str(ROOT / "requirements" / f"{lock}.txt")],
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if not done.stdout.strip():
        return done.returncode, {}, done.stderr.strip()[-400:]
    found = {entry["name"]: entry.get("vulns", []) for entry in json.loads(done.stdout)["dependencies"]}
    return done.returncode, {name: [vuln["id"] for vuln in vulns] for name, vulns in found.items()}, ""


def locked(lock: str) -> set[str]:
    """Return the names in a lock file, without those for other systems or Pythons."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    return {name.lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==[^ ;\\]+ \\$", text, re.M)}


def wrong(lock: str) -> str:
    """Audit a lock file and return what is wrong, or nothing."""
    address = os.environ.get(VARIABLE, "")
    if address:
        code, found, said = audit(lock, address)
        named = "; ".join(f"{name}: {', '.join(ids)}" for name, ids in sorted(found.items()) if ids)
        return named or ("" if code == 0 else f"pip-audit ended with exit code {code}: {said}")
    clean, baited = Service(), Service(BAIT)
    code, found, said = audit(lock, clean.address)
    if code:
        return f"pip-audit ended with exit code {code}: {said}"
    lost = locked(lock) - {name.lower() for name, _version in clean.asked}
    if lost:
        return f"nobody asked for {', '.join(sorted(lost))}"
    if BAIT not in locked(lock):
        return ""
    code, found, _said = audit(lock, baited.address)
    return "" if code == 1 and found.get(BAIT) == [ADVISORY["id"]] else f"an advisory for {BAIT} goes unseen"


def main() -> int:
    """Audit all lock files."""
    if not os.environ.get(VARIABLE):
        print(f"skipped: the advisories themselves (no service of advisories is named in {VARIABLE})")
    passed = failed = 0
    for lock in LOCKS:
        sentence = wrong(lock)
        print(f"{'FAIL' if sentence else 'ok':5} requirements/{lock}.txt  {sentence}".rstrip(), flush=True)
        passed, failed = passed + (not sentence), failed + bool(sentence)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
