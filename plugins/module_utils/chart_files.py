# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a Helm chart, a directory or an archive. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
import os
import tarfile
from typing import Any, Optional

from . import deps
from .core.errors import RdmaError
from .core.oke.chart_schema import Chart, chart

_LIMIT = 4 << 20
_FILES = ("Chart.yaml", "values.schema.json")


def read(path: str) -> Chart:
    """The chart at a path.

    :raises RdmaError: ``dranet_chart_unreadable``, ``library_missing``
    """
    yaml = deps.yaml()
    try:
        texts = _archived(path) if os.path.isfile(path) else _unpacked(path)
        metadata, schema = texts["Chart.yaml"], texts["values.schema.json"]
        if metadata is None:
            raise _unreadable(path, "it has no Chart.yaml")
        return chart(path, yaml.safe_load(metadata), None if schema is None else _json(path, schema))
    except (OSError, tarfile.TarError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error


def _unpacked(path: str) -> dict[str, Optional[str]]:
    found: dict[str, Optional[str]] = dict.fromkeys(_FILES)
    if not os.path.isdir(path):
        raise _unreadable(path, "there is neither a directory nor a file")
    for name in _FILES:
        place = os.path.join(path, name)
        if os.path.isfile(place):
            with open(place, "rb") as stream:
                found[name] = stream.read(_LIMIT).decode("utf-8")
    return found


def _archived(path: str) -> dict[str, Optional[str]]:
    """The two files of the outermost chart of an archive; nothing is unpacked."""
    found: dict[str, Optional[str]] = dict.fromkeys(_FILES)
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            parts = member.name.split("/")
            if len(parts) == 2 and parts[1] in _FILES and member.isfile():
                stream = archive.extractfile(member)
                if stream is not None:
                    found[parts[1]] = stream.read(_LIMIT).decode("utf-8")
    return found


def _json(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _unreadable(path, "values.schema.json is not JSON: %s" % error) from error


def _unreadable(path: str, reason: str) -> RdmaError:
    return RdmaError(
        "dranet_chart_unreadable",
        "The chart %s cannot be read: %s." % (path, reason),
        hint="Give the directory of a chart, or the archive that 'helm pull' or 'helm package' made.",
        path=path,
    )
