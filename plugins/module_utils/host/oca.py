# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the Oracle Cloud Agent (F51-F58). Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
import re
from typing import Optional

from ..core import json_text, redact
from ..core.snapshot import Oca
from .files import Root, reason_of

DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
NETWORK = DIRECTORY + "/rdma_network.json"
FEATURES = DIRECTORY + "/rdma_features_enable.json"
STATE = "/var/run/oci-hpc/oci-hpc-rdma-configure.json"
SNAP = "/snap/oracle-cloud-agent/current/meta/snap.yaml"

_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s+', re.DOTALL)


def read(root: Root, plugins: Optional[dict[str, str]] = None) -> Oca:
    """The files as text, white space between the JSON tokens left out, identifiers and secrets shortened.

    :param plugins: states of the agent's plugins (F58), which no file of the node tells but the metadata service.
    """
    directory = _directory(root)
    known = directory != "unreadable"
    times = [time for time in (root.modified(NETWORK), root.modified(FEATURES)) if time is not None]
    return Oca(
        directory=directory,
        rdma_network=_file(root, NETWORK) if known else None,
        rdma_features_enable=_file(root, FEATURES) if known else None,
        configure_state=_file(root, STATE),
        agent_version=_snap_version(root),
        plugins=plugins,
        modified=max(times) if times else None,
    )


def _directory(root: Root) -> str:
    try:
        os.listdir(root.real(DIRECTORY))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        root.fail(DIRECTORY, reason_of(error))
        return "unreadable"
    return "present"


def _file(root: Root, path: str) -> Optional[str]:
    failed = len(root.errors)
    text = root.read(path)
    if text is None:
        return None if len(root.errors) > failed else ""
    return redact.shortened(squeeze(text)) or "\n"  # a file without content is there, and malformed (F52)


def squeeze(text: str) -> str:
    """JSON text without the white space between its tokens; text that is not JSON stays as it is."""
    try:
        json_text.loads(text)
    except ValueError:
        return text
    return _SPACE.sub(lambda match: match.group(1) or "", text)


def _snap_version(root: Root) -> Optional[str]:
    """The version of the agent where it is a snap (F57); elsewhere no file tells it."""
    match = re.search(
        r"^version:\s*['\"]?([0-9A-Za-z.+~-]{1,40})['\"]?\s*$", root.read(SNAP) or "", re.MULTILINE
    )
    return match.group(1) if match else None
