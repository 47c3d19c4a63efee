# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find and read manifests. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, Optional

from .core.errors import RdmaError
from .core.kube.documents import STDIN, Document, parse

SUFFIXES = (".yml", ".yaml", ".json")
MAX_BYTES = 64 << 20
"""The largest file that is read."""

_HINT = "Give a manifest, a directory with manifests, or '-' for standard input."


@dataclass
class Manifests:
    """What was found: documents of the texts that could be read, and errors of the others."""

    documents: list[Document] = field(default_factory=list)
    problems: list[RdmaError] = field(default_factory=list)
    texts: int = 0


def read(
    paths: Sequence[str], exclude: Iterable[str] = (), standard_input: Optional[BinaryIO] = None
) -> Manifests:
    """Read files, the manifests below directories, and standard input (``-``).

    A text without the word ``apiVersion`` holds no object of Kubernetes and is not looked into.

    Below directories only regular files are read, and links to directories are not followed; what is named itself can
    also be a pipe. A file that has several names is read once.

    :param exclude: patterns of paths, or of names of files and directories, that are left out.
    :raises RdmaError: ``manifests_missing`` when there is nothing to read.
    """
    found = Manifests()
    sources: dict[str, tuple[str, bool]] = {}
    patterns = [os.path.normpath(pattern) for pattern in exclude]
    for path in paths:
        for source, named in _files(path, patterns, found.problems):
            sources.setdefault(_identity(source), (source, named))
    for source, named in sources.values():
        try:
            text = _text(source, standard_input, named)
            found.texts += bool(text.strip()) or source != STDIN
            if "apiVersion" in text:
                found.documents += parse(text, source)
        except RdmaError as error:
            if error.code == "library_missing":
                raise
            found.problems.append(error)
    if not found.texts and not found.problems:
        raise RdmaError(
            "manifests_missing",
            "There is no manifest to look at in %s."
            % ", ".join(["standard input" if p == STDIN else p for p in paths]),
            hint=_HINT,
        )
    return found


def objects(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of manifests that are to be applied: every text must be readable, every document an object.

    :raises RdmaError: ``manifests_missing``, ``manifest_unreadable``, ``manifest_malformed``, ``manifest_template``,
        ``library_missing``.
    """
    found = read(paths)
    if found.problems:
        raise found.problems[0]
    return [
        require_object(document.content, "%s line %d" % (document.source, document.line))
        for document in found.documents
    ]


def require_object(content: Any, where: str) -> dict[str, Any]:
    """A document that names what it is, as every object of the API does.

    :param where: what to call it in the message.
    :raises RdmaError: ``manifest_malformed``
    """
    found = content if isinstance(content, dict) else {}
    metadata = found.get("metadata")
    values = [
        found.get("apiVersion"),
        found.get("kind"),
        (metadata if isinstance(metadata, dict) else {}).get("name"),
    ]
    for key, value in zip(("apiVersion", "kind", "metadata.name"), values):
        if not isinstance(value, str) or not value:
            raise RdmaError(
                "manifest_malformed",
                "%s has %s %r, expected a text." % (where, key, value),
                hint="Give apiVersion, kind and metadata.name.",
                where=where,
            )
    return found


def _files(path: str, exclude: Sequence[str], problems: list[RdmaError]) -> Iterator[tuple[str, bool]]:
    """The files at a path, and whether they are named themselves; what cannot be walked goes to the problems."""

    def refuse(error: OSError) -> None:
        problems.append(_unreadable(str(error.filename), error.strerror or str(error)))

    if path == STDIN or not os.path.isdir(path):
        yield path, True  # a file that was named is read, whatever it is called
        return
    for folder, folders, names in os.walk(path, onerror=refuse):
        folders[:] = sorted([name for name in folders if _wanted(folder, name, exclude)])
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and _wanted(folder, name, exclude):
                yield os.path.join(folder, name), False


def _identity(source: str) -> str:
    """What two names of one file have in common."""
    try:
        return source if source == STDIN else os.path.realpath(source)
    except ValueError:  # a zero byte
        return source


def _wanted(folder: str, name: str, exclude: Sequence[str]) -> bool:
    path = os.path.normpath(os.path.join(folder, name))
    return not name.startswith(".") and not any(
        fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in exclude
    )


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting, should a pipe have taken the place of the file meanwhile."""
    return os.open(path, flags | os.O_NONBLOCK)


def _text(source: str, standard_input: Optional[BinaryIO], named: bool) -> str:
    try:
        if source == STDIN:
            content = standard_input.read(MAX_BYTES + 1) if standard_input is not None else b""
        elif not named and not stat.S_ISREG(os.stat(source).st_mode):
            raise _unreadable(source, "it is no regular file")
        else:
            with open(source, "rb", opener=None if named else _open_at_once) as stream:
                content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise _unreadable(source, "it is larger than %d MiB" % (MAX_BYTES >> 20))
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable(source, "it is not UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _unreadable(source, getattr(error, "strerror", None) or str(error)) from error


def _unreadable(source: str, reason: str) -> RdmaError:
    return RdmaError(
        "manifest_unreadable",
        "The manifest %s cannot be read: %s." % (source or "''", reason),
        hint=_HINT,
        source=source,
    )
