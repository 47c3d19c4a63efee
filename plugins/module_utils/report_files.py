# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read result documents and write report files. Private to rdma.k8s: it may change with any release.

The files of one run are all prepared before the first of them is put in place, each by one rename. A run that is killed
leaves the old reports; its temporary files are removed by a run that comes an hour later, or after that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Optional, Union

from .core import json_text
from .core.errors import RdmaError
from .core.report.document import ResultDocument

_LEFT_OVER_AFTER = 3600
"""Seconds after which a temporary file is taken for one of a run that was killed."""

_BLOCK = 1 << 18

_TEMPORARY = re.compile(r"\.(.+)\.[A-Za-z0-9_]{8}\.tmp\Z")


@dataclass(frozen=True)
class Written:
    """One report file; ``changed`` is false when it had the same bytes before, and then it was not touched."""

    path: str
    changed: bool
    size: int


def read_result(path: str) -> ResultDocument:
    """The result document in a file.

    :raises RdmaError: ``result_unreadable``, ``result_not_json`` or an error of :meth:`ResultDocument.from_dict`.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RdmaError(
            "result_unreadable",
            "The result document %s cannot be read: %s." % (path, getattr(error, "strerror", None) or error),
            hint="Give the result.json that preflight, validate or 'rdma-k8s report' wrote.",
            path=path,
        ) from error
    try:
        document = json_text.loads(text)
    except ValueError as error:
        raise RdmaError(
            "result_not_json",
            "%s is not JSON: %s." % (path, error),
            hint="Give the result.json that preflight, validate or 'rdma-k8s report' wrote.",
            path=path,
        ) from error
    del text
    return ResultDocument.from_dict(document)


def write_reports(
    document: ResultDocument,
    directory: str,
    formats: Optional[Iterable[str]] = None,
    expected_interval: Optional[int] = None,
    dry_run: bool = False,
) -> list[Written]:
    """Write the reports of a document into a directory, which is made when it is not there.

    :param formats: names of ``core.report.render.FILES``; all of them when not given.
    :param expected_interval: seconds between two runs, for the textfile.
    :param dry_run: only tell what would change.
    :raises RdmaError: ``report_format_unknown`` or ``report_not_written``; the old files are untouched then.
    """
    from .core.report.render import stream  # noqa: PLC0415 (who writes no report need not load all formats)

    return write_files(directory, stream(document, formats, expected_interval), dry_run)


def write_files(
    directory: str, files: Mapping[str, Iterable[Union[str, bytes]]], dry_run: bool = False, mode: int = 0o644
) -> list[Written]:
    """Write several files, of which the pieces are given by file name; text as UTF-8. See :func:`write_reports`."""
    prepared: list[tuple[str, str, Written]] = []
    path = directory
    try:
        if not dry_run:
            os.makedirs(directory, mode=0o755, exist_ok=True)
            _remove_left_over(directory, files)
        for name, pieces in files.items():
            path = os.path.join(directory, name)
            temporary = "" if dry_run else _temporary(directory, name)
            prepared.append((temporary, path, Written(path, False, 0)))
            digest, size = _write(temporary, pieces, mode)
            prepared[-1] = (temporary, path, Written(path, digest != _digest(path), size))
        for number, (temporary, path, written) in enumerate(prepared):
            if written.changed and temporary:
                os.replace(temporary, path)
                prepared[number] = ("", path, written)
        if not dry_run:
            _flush_directory(directory)
    except OSError as error:
        raise RdmaError(
            "report_not_written",
            "The report %s cannot be written: %s." % (path, error.strerror or error),
            hint="Check space and permissions of %s." % directory,
            path=path,
        ) from error
    finally:
        for temporary, _path, _written in prepared:
            if temporary:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
    return [written for _temporary, _path, written in prepared]


def _temporary(directory: str, name: str) -> str:
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".%s." % name, suffix=".tmp")
    os.close(handle)
    return temporary


def _write(temporary: str, pieces: Iterable[Union[str, bytes]], mode: int) -> tuple[bytes, int]:
    """Write the pieces to the file, or to none when its name is empty; return their SHA-256 and size in bytes."""
    digest, size = hashlib.sha256(), 0
    with open(temporary or os.devnull, "wb") as file:  # buffered: a raw file may take only a part of a block
        for block in _blocks(pieces):
            digest.update(block)
            size += len(block)
            file.write(block)
        if temporary:
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    return digest.digest(), size


def _blocks(pieces: Iterable[Union[str, bytes]]) -> Iterator[bytes]:
    """The pieces in blocks that are worth a call to the system."""
    block: list[bytes] = []
    held = 0
    for piece in pieces:
        data = piece if isinstance(piece, bytes) else piece.encode("utf-8")
        block.append(data)
        held += len(data)
        if held >= _BLOCK:
            yield b"".join(block)
            block, held = [], 0
    yield b"".join(block)


def _digest(path: str) -> Optional[bytes]:
    """SHA-256 of a file; ``None`` when there is none."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    except FileNotFoundError:
        return None
    return digest.digest()


def _remove_left_over(directory: str, names: Iterable[str]) -> None:
    """Remove temporary files of these reports that a killed run left. A run at the same time keeps its own."""
    wanted = set(names)
    for entry in os.scandir(directory):
        match = _TEMPORARY.match(entry.name)
        if not match or match.group(1) not in wanted or not entry.is_file(follow_symlinks=False):
            continue
        if time.time() - entry.stat(follow_symlinks=False).st_mtime > _LEFT_OVER_AFTER:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)


def _flush_directory(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
