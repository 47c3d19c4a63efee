# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An SSH server of a test's own, on a loopback port, with its own keys, ended by its process id.

Where the tests run as root, the server gets a mount namespace with a user of its own in ``/etc/passwd``, whose home is
a directory of the test, seen at ``/mnt``: nothing of the machine changes, and the login is not root's. Elsewhere it
serves the user who runs the tests.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

NEEDED = ("sshd", "ssh", "ssh-keygen")
_USER, _ID, _HOME = "preflight", 47321, "/mnt"
_PLACES = os.pathsep.join(["/usr/local/sbin", "/usr/sbin", "/sbin", os.environ.get("PATH", os.defpath)])
_CONFIG = """\
ListenAddress 127.0.0.1:%(port)d
HostKey %(folder)s/host_key
PidFile none
AuthorizedKeysFile %(authorized)s
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowUsers %(user)s
PrintMotd no
MaxStartups %(startups)s
Subsystem sftp internal-sftp
"""
_ENTER = (
    'mkdir -p /run/sshd && mount --bind "$1" /etc/passwd && mount --bind "$2" /mnt && shift 2 && exec "$@"'
)


@dataclass(frozen=True)
class Server:
    """A running server. ``home`` is the directory of the user as the test sees it, ``seen_home`` as the user does.

    ``fresh`` tells whether that home was made for the test.
    """

    port: int
    folder: Path
    user: str
    uid: int
    home: Path
    seen_home: str
    python: str
    fresh: bool

    def host(self, **more: Any) -> dict[str, Any]:
        """The variables of an inventory for this host."""
        options = "-F none -o UserKnownHostsFile=%s -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
        return {
            "ansible_connection": "ssh",
            "ansible_host": "127.0.0.1",
            "ansible_port": self.port,
            "ansible_user": self.user,
            "ansible_ssh_private_key_file": str(self.folder / "user_key"),
            "ansible_ssh_common_args": options % (self.folder / "known_hosts"),
            **more,
        }


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in NEEDED if shutil.which(name, path=_PLACES) is None]


@contextmanager
def serve(folder: Path, together: int = 10) -> Iterator[Server]:
    """A server while the context lasts; ``folder`` takes its files.

    :param together: how many may be logging in at the same time; sshd hangs up on some of more than that.
    """
    for name in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    python = _python(for_others=True)
    private = os.geteuid() == 0 and python is not None and _can_have_a_namespace()
    if private:
        own = Server(0, folder, _USER, _ID, folder / "home", _HOME, python or "", True)
        own.home.mkdir()
        os.chown(own.home, _ID, _ID)
    else:
        me = pwd.getpwuid(os.geteuid())
        interpreter = _python(for_others=False) or sys.executable
        own = Server(0, folder, me.pw_name, me.pw_uid, Path(me.pw_dir), me.pw_dir, interpreter, False)
    process: Optional[subprocess.Popen[bytes]] = None
    try:
        for _attempt in range(5):
            port = _free_port()
            process = _start(own, port, together)
            if _answers(process, port):
                break
        else:
            raise RuntimeError((folder / "sshd.log").read_text(encoding="utf-8", errors="replace"))
        public = (folder / "host_key.pub").read_text(encoding="utf-8")
        (folder / "known_hosts").write_text("[127.0.0.1]:%d %s" % (port, public), encoding="utf-8")
        yield Server(**{**vars(own), "port": port})
    finally:
        if process is not None:
            process.terminate()
            process.wait(30)


def _start(own: Server, port: int, together: int) -> subprocess.Popen[bytes]:
    folder = own.folder
    authorized = folder / "authorized_keys"
    shutil.copyfile(folder / "user_key.pub", authorized)
    if own.fresh:
        shutil.copyfile(authorized, own.home / "authorized_keys")
        (own.home / "authorized_keys").chmod(0o644)
    values = {
        "port": port,
        "folder": folder,
        "startups": "%d:30:%d" % (together, 10 * together),
        "user": own.user,
        "authorized": "%s/authorized_keys" % (_HOME if own.fresh else folder),
    }
    config = folder / "sshd_config"
    config.write_text(_CONFIG % values, encoding="utf-8")
    command = [str(shutil.which("sshd", path=_PLACES)), "-D", "-e", "-f", str(config)]
    if own.fresh:
        users = folder / "passwd"
        line = "%s:*:%d:%d::%s:/bin/sh\n" % (_USER, _ID, _ID, _HOME)
        users.write_text(Path("/etc/passwd").read_text(encoding="utf-8") + line, encoding="utf-8")
        users.chmod(0o644)
        command = _namespace("sh", "-c", _ENTER, "sh", str(users), str(own.home), *command)
    elif os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with (folder / "sshd.log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _namespace(*command: str) -> list[str]:
    return ["unshare", "--mount", "--propagation", "private", *command]


def _can_have_a_namespace() -> bool:
    if shutil.which("unshare") is None or not os.path.isdir(_HOME):
        return False
    check = 'mount --bind /etc/passwd /etc/passwd && mount --bind "$1" /mnt'
    done = subprocess.run(_namespace("sh", "-c", check, "sh", "/tmp"), stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def _python(for_others: bool) -> Optional[str]:
    """A Python 3.9 or newer, with ``for_others`` one that every user can start."""
    own = getattr(sys, "_base_executable", sys.executable)
    for candidate in ("/usr/bin/python3", "/usr/local/bin/python3", own):
        path = Path(candidate)
        if not path.exists() or (for_others and not _is_open(path.resolve())):
            continue
        code = "import sys; sys.exit(sys.version_info < (3, 9))"
        if subprocess.run([candidate, "-c", code], check=False).returncode == 0:
            return candidate
    return None


def _is_open(path: Path) -> bool:
    return all(entry.stat().st_mode & 0o001 for entry in [path, *path.parents])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server greets; false when it ended instead, as it does when the port was taken meanwhile."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            pass
        time.sleep(0.05)
    if process.poll() is None:
        process.terminate()
        process.wait(30)
    return False
