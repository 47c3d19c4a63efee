# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find and read manifests. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import BinaryIO, Optional

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

    :param exclude: patterns of paths, or of names of files and directories, that are left out.
    :raises RdmaError: ``manifests_missing`` when there is nothing to read.
    """
    found = Manifests()
    patterns = list(exclude)
    for source in dict.fromkeys([name for path in paths for name in _files(path, patterns)]):
        try:
            text = _text(source, standard_input)
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


def _files(path: str, exclude: Sequence[str]) -> Iterator[str]:
    if path == STDIN or not os.path.isdir(path):
        yield path  # a file that was named is read, whatever it is called
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted([name for name in folders if _wanted(folder, name, exclude)])
        for name in sorted(names):
            if name.endswith(SUFFIXES) and _wanted(folder, name, exclude):
                yield os.path.join(folder, name)


def _wanted(folder: str, name: str, exclude: Sequence[str]) -> bool:
    path = os.path.join(folder, name)
    return not name.startswith(".") and not any(
        fnmatchcase(path, pattern) or fnmatchcase(name, pattern) for pattern in exclude
    )


def _text(source: str, standard_input: Optional[BinaryIO]) -> str:
    try:
        if source == STDIN:
            content = standard_input.read(MAX_BYTES + 1) if standard_input is not None else b""
        else:
            with open(source, "rb") as stream:
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
