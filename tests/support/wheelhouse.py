# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels of made-up and of installed libraries, and directories of them."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_OF_AN_INSTALLATION = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Files of a distribution that its installation has added."""


def wheel(files: Mapping[str, bytes], info: str = "pyroute2-0.9.1.dist-info", record: str = "") -> bytes:
    """A wheel with these files and a record of them; ``record`` replaces the record."""
    content = io.BytesIO()
    lines = []
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            lines.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
        archive.writestr(info + "/RECORD", record or "".join([*lines, "%s/RECORD,,\n" % info]))
    return content.getvalue()


def write(directory: Path, wheels: Mapping[str, bytes]) -> Path:
    """A wheelhouse with these wheels and their checksums."""
    directory.mkdir(exist_ok=True)
    lines = []
    for name, content in wheels.items():
        (directory / name).write_bytes(content)
        lines.append("%s  %s\n" % (hashlib.sha256(content).hexdigest(), name))
    (directory / "SHA256SUMS").write_text("".join(lines))
    return directory


NAME = "pyroute2-0.9.1-py3-none-any.whl"


def small(directory: Path, version: str = "0.9.1", text: bytes = b"WHO = 'made up'\n") -> Path:
    """A wheelhouse with one small library that calls itself pyroute2."""
    content = wheel({"pyroute2/__init__.py": text}, "pyroute2-%s.dist-info" % version)
    return write(directory, {"pyroute2-%s-py3-none-any.whl" % version: content})


def repacked(distribution: str) -> tuple[str, bytes]:
    """File name and content of a wheel of what is installed here: to install it again, no index is needed."""
    found = metadata.distribution(distribution)
    files = {}
    for entry in found.files or ():
        path = Path(str(found.locate_file(entry)))
        kept = ".." not in entry.parts and entry.suffix != ".pyc" and entry.name not in _OF_AN_INSTALLATION
        if kept and path.is_file():
            files[str(entry)] = path.read_bytes()
    (info,) = {name.split("/")[0] for name in files if re.fullmatch("[^/]+[.]dist-info/METADATA", name)}
    tag = re.findall("^Tag: (.+)$", files[info + "/WHEEL"].decode(), re.M)[0]
    return "%s-%s.whl" % (info.removesuffix(".dist-info"), tag), wheel(files, info)
