# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Manifests that we write. Private to rdma.k8s: it may change with any release.

The same documents give the same bytes: keys stay in the order in which they are given, nothing is wrapped, texts of
several lines are block texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ... import deps
from ..errors import RdmaError
from ..net import quoted

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PART = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
"""A part of a subdomain: the API server limits the whole, not each part."""

_DOUBTFUL = re.compile(r"[-+.]?[0-9.].*|[yYnN=]")
"""Texts that PyYAML writes plain and that kubectl, which has another reader, may take for a number or a truth."""


def text(documents: Iterable[Mapping[str, Any]], comment: Iterable[str] = ()) -> str:
    """The documents as YAML, with a comment at the top.

    :param comment: lines; each becomes a comment line of its own.
    :raises RdmaError: ``library_missing``.
    """
    yaml = deps.yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]
        """Lists below their key, no anchors, so that each object can be read alone."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            """A list is indented."""
            return super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            """No anchors."""
            return True

    Dumper.add_representer(str, _represent_text)
    head = "".join(["# %s\n" % line if line else "#\n" for entry in comment for line in entry.split("\n")])
    pieces = [
        yaml.dump(
            dict(document),
            Dumper=Dumper,
            sort_keys=False,
            default_flow_style=False,
            width=10**6,
            allow_unicode=True,
        )
        for document in documents
    ]
    return "---\n" + head + "---\n".join(pieces)


def _represent_text(dumper: Any, value: str) -> Any:
    style = "|" if "\n" in value else "'" if _DOUBTFUL.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def require_name(value: Any, what: str, label: bool = False) -> str:
    """The name of an object, checked as the API server does.

    :param what: what has the name, for the message.
    :param label: a DNS label (63 characters, no dots), as a part of a pod or a Service must have it; otherwise a DNS
        subdomain (253 characters in all, whatever the length of its parts).
    :raises RdmaError: ``name_malformed`` (details: ``name``, ``what``)
    """
    good = isinstance(value, str) and (
        _LABEL.fullmatch(value)
        if label
        else len(value) <= 253 and all(_PART.fullmatch(part) for part in value.split("."))
    )
    if not good:
        raise RdmaError(
            "name_malformed",
            "%s must have a name of %s, found %s."
            % (
                what,
                "at most 63 characters a-z, 0-9 and '-', with a letter or digit at both ends"
                if label
                else "at most 253 characters a-z, 0-9, '-' and '.', with a letter or digit at the ends of each part",
                quoted(value),
            ),
            hint="Give another name.",
            name=value if isinstance(value, str) else repr(value),
            what=what,
        )
    return str(value)


def label_of(text_value: str, prefix: str = "") -> str:
    """A DNS label for something that has another kind of name: ``mlx5_0`` -> ``mlx5-0`` (F100)."""
    made = re.sub(r"[^a-z0-9]+", "-", (prefix + text_value).lower()).strip("-")
    return made[:63].rstrip("-")
