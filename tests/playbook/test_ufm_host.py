# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ufm_host with the real openssl on files in a directory; what it restarts is a program that notes its calls.

Clients are real, too: a TLS server on loopback has the pair, and a client knows the certificate and nothing else, as
ib-kubernetes does.
"""

from __future__ import annotations

import getpass
import grp
import json
import os
import shutil
import socket
import ssl
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support.playbook import Result, Run

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")

NAMES = ["127.0.0.1", "2001:db8::1", "ufm.example"]
NOTES = """#!/bin/sh
echo "$0 $*" >> '%(calls)s'
case "$1" in
  cat|inspect) [ ! -e '%(folder)s/gone' ] || { echo 'no such thing' >&2; exit 1; } ;;
  show) echo ActiveState=active; echo LoadState=loaded ;;
  restart) [ ! -e '%(folder)s/broken' ] || { echo 'it does not start' >&2; exit 1; } ;;
esac
"""


class Ufm:
    """A host of UFM: its two files, and what was restarted."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.folder = folder / "ufm"
        self.calls = self.folder / "calls"
        self.certificate, self.key = self.folder / "certs" / "ufm.crt", self.folder / "private" / "ufm.key"
        for place in (self.certificate.parent, self.key.parent, self.folder / "bin"):
            place.mkdir(parents=True)
        for program in ("systemctl", "docker"):
            path = self.folder / "bin" / program
            path.write_text(NOTES % {"calls": self.calls, "folder": self.folder})
            path.chmod(0o755)
        self.run = run
        run.playbook = "play.yml"
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
            "roles": ["rdma.k8s.ufm_host"],
            "tasks": [
                {
                    "ansible.builtin.copy": {
                        "content": "{{ [ufm_host_certificate, ufm_host_result] | to_json }}",
                        "dest": str(self.folder / "told"),
                        "mode": "0600",
                    },
                    "changed_when": False,
                    "check_mode": False,
                }
            ],
        }
        (run.folder / "play.yml").write_text(json.dumps([play]))
        self.always = {
            "names": NAMES,
            "key_bits": 2048,
            "certificate_path": str(self.certificate),
            "key_path": str(self.key),
            "owner": getpass.getuser(),
            "group": grp.getgrgid(os.getgid()).gr_name,
            "restart": "container",
            "container_program": str(self.folder / "bin" / "docker"),
        }

    def __call__(self, *words: str, **more: Any) -> Result:
        path = os.pathsep.join([str(self.folder / "bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        variables = {"ufm_host_" + key: value for key, value in {**self.always, **more}.items()}
        return self.run(*words, variables=variables, env={"PATH": path})

    def changes(self, *words: str, **more: Any) -> int:
        """How many tasks changed something."""
        return _changed(self(*words, **more))

    def restarts(self) -> list[str]:
        """What was restarted since the last time."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return [os.path.basename(line) for line in lines if " restart " in line]

    def told(self) -> tuple[str, dict[str, Any]]:
        """The facts of the last run."""
        certificate, result = json.loads((self.folder / "told").read_text())
        return certificate, result

    def files(self) -> dict[str, bytes]:
        """All files of both directories."""
        return {
            path.name: path.read_bytes()
            for folder in (self.certificate.parent, self.key.parent)
            for path in folder.iterdir()
        }

    def pair(
        self, *words: str, names: str = "IP:127.0.0.1", days: int = 90, stem: str = "mine"
    ) -> dict[str, str]:
        """A pair that somebody else made, as files of the controller."""
        key, certificate = self.folder / (stem + ".key"), self.folder / (stem + ".crt")
        extension = ["-addext", "subjectAltName=" + names] if names else []
        openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", str(days), "-subj", "/CN=127.0.0.1",
            "-keyout", str(key), "-out", str(certificate), *extension, *words,
        )  # fmt: skip
        return {"certificate_file": str(certificate), "key_file": str(key)}

    def install(self, given: dict[str, str], mode: int = 0o600) -> None:
        """Put a pair where UFM reads it."""
        shutil.copy(given["certificate_file"], self.certificate)
        shutil.copy(given["key_file"], self.key)
        self.key.chmod(mode)


def _changed(result: Result) -> int:
    result.good()
    return result.recap("localhost")["changed"]


def openssl(*words: str) -> str:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def talk(ufm: Ufm, name: str, pem: str) -> bytes:
    """What a client hears that knows the certificate only, and that never looks at its subject."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ufm.certificate, ufm.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
                    connection.sendall(b"ufm")
            except (OSError, ssl.SSLError):
                return  # the client did not want it

        server = threading.Thread(target=serve)
        server.start()
        client = ssl.create_default_context(cadata=pem)
        client.hostname_checks_common_name = False
        try:
            with (
                socket.create_connection(listener.getsockname()) as raw,
                client.wrap_socket(raw, server_hostname=name) as connection,
            ):
                return connection.recv(3)
        finally:
            server.join()


@pytest.fixture
def ufm(run: Run, tmp_path: Path) -> Ufm:
    return Ufm(run, tmp_path)


def test_a_pair_is_made_once(ufm: Ufm) -> None:
    """S155, S156: clients verify it by each name; the second run changes nothing."""
    planned = ufm("--check")
    assert _changed(planned) > 0
    assert "would be made" in planned.text
    assert ufm.files() == {}
    assert ufm.restarts() == []

    assert ufm.changes() > 0
    assert ufm.restarts() == ["docker restart ufm"]
    assert sorted(ufm.files()) == ["ufm.crt", "ufm.key"]
    assert (mode(ufm.key), mode(ufm.certificate)) == (0o600, 0o644)
    certificate, result = ufm.told()
    assert certificate == ufm.certificate.read_text()
    assert certificate.startswith("-----BEGIN CERTIFICATE-----")
    assert (result["changed"], result["restarted"], result["kept"]) == (True, True, [])
    openssl("pkey", "-in", str(ufm.key), "-noout", "-passin", "pass:")
    for name in NAMES:
        assert talk(ufm, name, certificate) == b"ufm"
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(ufm, "other.example", certificate)

    before = ufm.files()
    assert ufm.changes() == 0
    assert ufm.files() == before
    assert ufm.restarts() == []
    assert ufm.told()[0] == certificate
    assert ufm.told()[1]["changed"] is False


def test_the_pair_of_the_guide_is_replaced_and_kept(ufm: Ufm) -> None:
    """S155, S156, S233: a certificate with a name in its subject only. Its key was readable for all."""
    ufm.install(ufm.pair(names=""), mode=0o644)
    with pytest.raises(ssl.SSLCertVerificationError):
        talk(ufm, "127.0.0.1", ufm.certificate.read_text())
    old = {path.read_bytes() for path in (ufm.key, ufm.certificate)}
    assert ufm.changes() > 0
    kept = [Path(path) for path in ufm.told()[1]["kept"]]
    assert {path.read_bytes() for path in kept} == old
    assert [mode(path) for path in kept if path.parent == ufm.key.parent] == [0o600]
    assert ufm.told()[1]["reasons"] == ["it has no subjectAltName"]
    assert talk(ufm, "127.0.0.1", ufm.told()[0]) == b"ufm"
    assert ufm.restarts() == ["docker restart ufm"]


GOOD = "IP:127.0.0.1,IP:2001:db8:0:0::1,DNS:ufm.example,DNS:more.example"


def test_yours_is_taken_and_judged(ufm: Ufm) -> None:
    """Also in check mode; what is wrong with it changes nothing."""
    told = ufm("--check", **ufm.pair(stem="wrong")).failed()
    assert "Nothing was changed" in told
    assert "its subjectAltName lacks 2001:db8::1, ufm.example" in told
    assert ufm.files() == {}

    given = ufm.pair(names=GOOD)
    assert ufm.changes("--check", **given) > 0
    assert ufm.files() == {}
    done = ufm("--diff", **given, restart="service")
    assert _changed(done) > 0
    key = Path(given["key_file"]).read_text()
    assert key.splitlines()[1] not in done.text
    assert ufm.files() == {"ufm.crt": Path(given["certificate_file"]).read_bytes(), "ufm.key": key.encode()}
    assert mode(ufm.key) == 0o600
    assert ufm.restarts() == ["systemctl restart ufmd"]
    assert ufm.changes(**given) == 0
    assert ufm.restarts() == []


def test_a_restart_that_failed_is_made_good(ufm: Ufm) -> None:
    """Else UFM would have the old certificate for ever: nothing differs in the next run."""
    (ufm.folder / "broken").touch()
    assert "it does not start" in ufm().trouble
    before = {name: content for name, content in ufm.files().items() if not name.endswith(".restart")}
    assert sorted(before) == ["ufm.crt", "ufm.key"]
    ufm.restarts()
    (ufm.folder / "broken").unlink()
    assert ufm.changes() > 0
    assert ufm.restarts() == ["docker restart ufm"]
    assert ufm.files() == before


def test_what_cannot_be_restarted_is_told_before(ufm: Ufm) -> None:
    (ufm.folder / "gone").touch()
    assert "there is no container ufm on localhost to restart: no such thing" in ufm().failed()
    assert ufm.files() == {}
    assert ufm.changes(restart="none") > 0
    assert sorted(ufm.files()) == ["ufm.crt", "ufm.key"]
    assert ufm.told()[1]["restarted"] is False
    assert ufm.restarts() == []


def test_a_host_without_ufm_is_told(ufm: Ufm) -> None:
    """What only the host can tell; the rest of the input is judged by tests of the role without a run."""
    assert "The directories of" in ufm(key_path="/nowhere/ufm.key").failed()
    assert ufm.files() == {}
