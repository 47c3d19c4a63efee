# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab and a cluster have in common: the file that says what was started, and the lock of its directory."""

from __future__ import annotations

import collections.abc
import contextlib
import fcntl
import pathlib
import typing

from .errors import LabError

T = typing.TypeVar("T")


def read(
    path: pathlib.Path, parse: collections.abc.Callable[[str], T], what: str, start: str, again: str
) -> T:
    """What was written down at the start.

    :param what: kind and name; ``start``: the command that starts it; ``again``: what to run when the file is bad.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabError("not_up", f"The {what} is not up; start it with {start}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise LabError("state_bad", f"{path} cannot be read ({error}); run {again}.") from error


def write(path: pathlib.Path, text: str) -> None:
    """Write the file whole, or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.rename(path)


def others(path: pathlib.Path, parse: collections.abc.Callable[[str], T]) -> collections.abc.Iterator[T]:
    """What others of the same kind wrote down; a file that cannot be used is passed over."""
    for other in path.parent.parent.glob(f"*/{path.name}"):
        if other != path:
            try:
                found = parse(other.read_text(encoding="utf-8"))
            except (OSError, ValueError, KeyError, TypeError, LabError):
                continue
            yield found


@contextlib.contextmanager
def locked(directory: pathlib.Path, code: str, what: str) -> collections.abc.Iterator[None]:
    """Keep other commands from starting or ending the same thing meanwhile."""
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(code, f"Another command is starting or ending the {what}.") from None
        yield
