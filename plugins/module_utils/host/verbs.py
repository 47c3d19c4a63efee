# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The MTU in use of each RDMA port. Private to rdma.k8s: it may change with any release.

Neither sysfs nor RDMA netlink tells it; only a verbs call does, which differs from driver to driver. So the tool of
rdma-core is asked, where it is installed. A recorded tree holds the tool's text in its file ``ibv_devinfo.txt``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Optional

from .files import Root

TOOL = "ibv_devinfo"
RECORDED = "/ibv_devinfo.txt"
TIMEOUT = 10.0
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LIMIT = 1 << 20
_LINE = re.compile(r"\s*(hca_id|port|active_mtu):\s+(\S+)", re.ASCII)

Mtus = dict[tuple[str, int], int]


def active_mtus(root: Root, recorded: bool) -> Mtus:
    """RDMA MTU in bytes by device and port; without an answer the map is empty and the reason is in ``errors``."""
    text = root.read(RECORDED, _LIMIT) if recorded else _ask(root)
    if recorded and text is None:
        root.fail(TOOL, "not recorded")
    return parse(text or "")


def _ask(root: Root) -> Optional[str]:
    tool = None if root.path else shutil.which(TOOL, path=_PATH)
    if tool is None:
        root.fail(TOOL, "cannot be asked from outside the node" if root.path else "not installed (rdma-core)")
        return None
    try:
        answer = subprocess.run(
            [tool],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        root.fail(
            TOOL,
            "no answer within %g s" % TIMEOUT if isinstance(error, subprocess.TimeoutExpired) else str(error),
        )
        return None
    if answer.returncode:
        words = answer.stderr.decode("utf-8", "replace").split()
        root.fail(TOOL, " ".join(words)[:200] or "exit code %d" % answer.returncode)
    return answer.stdout.decode("utf-8", "replace")


def parse(text: str) -> Mtus:
    """Read the tool's text: ``hca_id: NAME``, below it ``port: N`` and ``active_mtu: BYTES (code)``."""
    found: Mtus = {}
    device, port = "", 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match.groups()
        if key == "hca_id":
            device, port = value, 0
        elif not value.isdecimal() or len(value) > 9:
            continue
        elif key == "port":
            port = int(value)
        elif device and port:
            found[(device, port)] = int(value)
    return found
