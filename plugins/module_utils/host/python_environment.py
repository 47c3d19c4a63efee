# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The virtual environment of this collection on a node. Private to rdma.k8s: it may change with any release.

It is at one fixed place, made whole beside it and then renamed. A directory is only ever removed when it is at that
place or at one of the two names beside it and holds the file that says it is ours; that file goes last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from typing import Any, Optional

from ..core import json_text
from ..core.errors import RdmaError
from . import commands, edits, wheels
from .files import Root, reason_of

DIRECTORY = "/opt/rdma-k8s"
PLACE = DIRECTORY + "/python"
INTERPRETER = PLACE + "/bin/python3"
LIMIT = 120.0
"""Seconds that importing the libraries may take."""

_NEW = DIRECTORY + "/.python-new"
_OLD = DIRECTORY + "/.python-old"
_OURS = "rdma-k8s.json"
_PACKAGE = re.compile(r"\w+/__init__[.]py", re.ASCII)


def wanted(wanted_wheels: Mapping[str, str]) -> dict[str, Any]:
    """The state of an environment of the Python that runs this, with these wheels (name to SHA-256)."""
    return {
        "python": os.path.realpath(sys.executable),
        "version": "%d.%d" % sys.version_info[:2],
        "wheels": dict(sorted(wanted_wheels.items())),
    }


def read(root: Root, name: str = PLACE) -> Optional[dict[str, Any]]:
    """The state of the environment; ``None`` when there is none, or one that was never finished.

    :raises RdmaError: ``environment_foreign``.
    """
    place = _place(root, name)
    if not os.path.lexists(place):
        return None
    return _marker(place)


def intact(root: Root, state: Mapping[str, Any]) -> bool:
    """Whether every file of the environment is as it was unpacked, and its Python still there."""
    place = _place(root, PLACE)
    packages = _packages(place, state)
    try:
        with open(os.path.join(place, "files.json"), encoding="utf-8") as file:
            files = json_text.loads(file.read(8 << 20))
        link = os.readlink(os.path.join(place, "bin/python3"))
        return (
            link == state["python"]
            and os.path.exists(edits.place_of(root, link))
            and all(os.stat(os.path.join(packages, path)).st_size == size for path, size in files.items())
        )
    except (OSError, ValueError, AttributeError):
        return False


def require_python(root: Root, state: Mapping[str, Any]) -> None:
    """Refuse a node where the Python that runs this is not at the same path: its environment would be of no use.

    :raises RdmaError: ``environment_without_python`` or ``file_unreadable``.
    """
    if not os.path.exists(edits.place_of(root, state["python"])):
        raise RdmaError(
            "environment_without_python",
            "%s, which runs this, is not on the node at %s." % (state["python"], root.path or "/"),
            hint="Run this with a Python that is at the same path there.",
            path=state["python"],
        )


def make(root: Root, state: Mapping[str, Any], directory: str) -> None:
    """Make the environment anew from the wheels of a directory, check it by importing, put it into its place.

    :raises RdmaError: ``wheel_wrong``, ``wheelhouse_unreadable``, ``file_not_written``, ``environment_foreign``,
        ``environment_broken``.
    """
    contents = {
        name: wheels.load(directory, name, digest) for name, digest in sorted(state["wheels"].items())
    }
    tidy(root, PLACE)
    read(root, PLACE)
    new = _place(root, _NEW)
    mask = os.umask(0o022)
    try:
        os.mkdir(new, 0o700)
        _mark(new, None)
        _try(new, state, _fill(new, state, contents))
        _mark(new, state)
        os.chmod(new, 0o755)  # noqa: S103 (for every user of the node)
        os.sync()
        if os.path.lexists(_place(root, PLACE)):
            os.rename(_place(root, PLACE), _place(root, _OLD))
        os.rename(new, _place(root, PLACE))
        edits.flush(os.path.dirname(new))
    except OSError as error:
        tidy(root, PLACE)
        raise RdmaError(
            "file_not_written",
            "The Python environment %s cannot be made: %s." % (PLACE, reason_of(error)),
            hint="Check space, permissions and whether the file system is read-only; the former one is untouched.",
            path=PLACE,
        ) from error
    except RdmaError:
        tidy(root, PLACE)
        raise
    finally:
        os.umask(mask)
    tidy(root, PLACE)


def write(root: Root, name: str, value: Any) -> None:
    """Remove the environment; what was there before it cannot be anything but nothing.

    :raises RdmaError: ``environment_foreign`` or ``file_not_written``.
    """
    if value is not None:
        raise RdmaError("environment_broken", "A former state of %s cannot be made again." % name)
    _remove(_place(root, PLACE))
    tidy(root, name)


def tidy(root: Root, name: str) -> None:
    """Remove what a killed run left at the place of the environment or beside it."""
    if read(root, name) is None:
        _remove(_place(root, name))
    for path in (_NEW, _OLD):
        _remove(_place(root, path))


def _place(root: Root, path: str) -> str:
    """Where one of our three directories is. The directory above must be a real one, at its own place."""
    above = "%s/%s" % (edits.place_of(root, os.path.dirname(DIRECTORY)), os.path.basename(DIRECTORY))
    if path not in (PLACE, _NEW, _OLD) or os.path.islink(above):
        raise _foreign(path)
    return "%s/%s" % (above, os.path.basename(path))


def _marker(place: str) -> Optional[dict[str, Any]]:
    if os.path.islink(place) or not os.path.isdir(place):
        raise _foreign(place)
    try:
        with open(os.path.join(place, _OURS), encoding="utf-8") as file:
            state = json_text.loads(file.read(1 << 20))
    except FileNotFoundError:
        if os.listdir(place):
            raise _foreign(place) from None
        return None
    except ValueError:
        return None  # killed while the mark was written
    except OSError as error:
        raise _foreign(place) from error
    return state if isinstance(state, dict) else None


def _foreign(place: str) -> RdmaError:
    return RdmaError(
        "environment_foreign",
        "%s is there and was not made by this collection." % place,
        hint="Find out who made it, and move it away.",
        path=place,
    )


def _mark(place: str, state: Optional[Mapping[str, Any]]) -> None:
    with open(os.path.join(place, _OURS), "w", encoding="utf-8") as file:
        json.dump(state, file, indent=2, sort_keys=True)


def _packages(place: str, state: Mapping[str, Any]) -> str:
    return os.path.join(place, "lib", "python" + state["version"], "site-packages")


def _fill(new: str, state: Mapping[str, Any], contents: Mapping[str, bytes]) -> list[str]:
    """Write all files, and return the names that can be imported."""
    python = state["python"]
    text = "home = %s\ninclude-system-site-packages = false\nversion = %s\n"
    _file(os.path.join(new, "pyvenv.cfg"), (text % (os.path.dirname(python), state["version"])).encode())
    os.mkdir(os.path.join(new, "bin"), 0o755)
    os.symlink(python, os.path.join(new, "bin/python3"))
    packages = _packages(new, state)
    os.makedirs(packages, 0o755)
    sizes = {}
    for wheel, content in contents.items():
        for name, data in wheels.members(wheel, content):
            path = os.path.join(packages, name)
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            _file(path, data)
            sizes[name] = len(data)
    _file(os.path.join(new, "files.json"), json.dumps(sizes).encode())
    return sorted(name[: -len("/__init__.py")] for name in sizes if _PACKAGE.fullmatch(name))


def _file(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), 0o644)


_IMPORT = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


def _try(new: str, state: Mapping[str, Any], names: list[str]) -> None:
    """Import the libraries in the new environment; this also leaves their bytecode there."""
    try:
        commands.run(Root("/"), [new + "/bin/python3", "-I", "-c", _IMPORT, *names], LIMIT)
    except RdmaError as error:
        raise RdmaError(
            "environment_broken",
            "The libraries cannot be imported by %s: %s" % (state["python"], error.message),
            hint="Use wheels for this version of Python, with all that they need.",
        ) from error


def _remove(place: str) -> None:
    """Remove one of our directories: its content first, then the mark, then itself."""
    if not os.path.lexists(place):
        return
    _marker(place)
    try:
        for name in sorted(os.listdir(place)):
            path = os.path.join(place, name)
            if name == _OURS:
                continue
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        if os.path.lexists(os.path.join(place, _OURS)):
            os.unlink(os.path.join(place, _OURS))
        os.rmdir(place)
    except OSError as error:
        raise RdmaError(
            "file_not_written",
            "%s cannot be removed: %s." % (place, reason_of(error)),
            path=place,
        ) from error
