# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make two wheelhouses of the pyroute2 that this Python has: a right one, and one whose wheel has another byte.

    make_wheelhouse.py DIRECTORY DIRECTORY

No network is needed. The wheel holds the installed files as they are.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[3] / "tests/support/wheelhouse.py"


def main(right: Path, changed: Path) -> None:
    """Write both."""
    spec = importlib.util.spec_from_file_location("wheelhouse", SUPPORT)
    assert spec is not None
    assert spec.loader is not None
    wheelhouse = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheelhouse)
    installed = importlib.metadata.distribution("pyroute2")
    info = "pyroute2-%s.dist-info" % installed.version
    files = {}
    for file in installed.files or ():
        inside = file.parts[0] in ("pyroute2", "pr2modules") or (
            file.parts[0] == info and file.name in ("METADATA", "entry_points.txt")
        )
        if inside and file.suffix != ".pyc":
            files[str(file)] = Path(str(file.locate())).read_bytes()
    name = "pyroute2-%s-py3-none-any.whl" % installed.version
    content = wheelhouse.wheel(files, info)
    for directory in (right, changed):
        wheelhouse.write(directory, {name: content})
    (changed / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    print("%s, %d files" % (name, len(files)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
