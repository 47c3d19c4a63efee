# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All report formats of one result document.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable, Optional

from ..errors import RdmaError
from . import html, jsonfile, junit, markdown, textfile
from .digest import Digest, digest
from .document import ResultDocument

FILES = {
    "json": "result.json",
    "junit": "junit.xml",
    "markdown": "report.md",
    "html": "report.html",
    "textfile": "rdma_k8s.prom",
}
"""Name of each format, and of the file that holds it."""


def stream(
    document: ResultDocument,
    formats: Optional[Iterable[str]] = None,
    expected_interval: Optional[int] = None,
    docs: str = "",
) -> dict[str, Iterator[str]]:
    """File name to the text of the file in pieces, so that a large report never stands in memory as one text.

    :param formats: names of :data:`FILES`; all of them when it is not given.
    :param expected_interval: seconds between two runs, for the textfile.
    :param docs: where the remedy pages are, for the links of the HTML report.
    :raises RdmaError: ``report_format_unknown``, ``docs_address_refused``.
    """
    digests: list[Digest] = []

    def found() -> Digest:
        """One digest for all formats, made when the first one needs it."""
        if not digests:
            digests.append(digest(document))
        return digests[0]

    writers: dict[str, Callable[[], Iterator[str]]] = {
        "json": lambda: jsonfile.chunks(document),
        "junit": lambda: junit.chunks(document),
        "markdown": lambda: markdown.chunks(document, found()),
        "html": lambda: html.chunks(document, docs, found()),
        "textfile": lambda: textfile.chunks(document, expected_interval, found()),
    }
    wanted = list(FILES) if formats is None else list(dict.fromkeys(formats))
    for name in wanted:
        if name not in writers:
            raise RdmaError(
                "report_format_unknown",
                "The report format must be one of %s, found %r." % (", ".join(FILES), name),
                found=name,
            )
    html.docs_address(docs)
    return {FILES[name]: writers[name]() for name in wanted}


def render(document: ResultDocument, formats: Optional[Iterable[str]] = None) -> dict[str, str]:
    """File name to the whole text: ``result.json``, ``junit.xml``, ``report.md``, ``report.html`` and so on."""
    return {name: "".join(pieces) for name, pieces in stream(document, formats).items()}
