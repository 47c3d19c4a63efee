# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The pages of the documentation as data: headings, anchors, links, code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)(```+)[^\n]*\n(.*?)^ *\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *#*$", re.MULTILINE)
_NAMED = re.compile(r'<a (?:id|name)="([^"]+)">')
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)(?: \"[^\"]*\")?\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]: *(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One Markdown file. ``prose`` is its text without code blocks and comments."""

    path: Path
    text: str

    @property
    def prose(self) -> str:
        return _FENCE.sub("", _COMMENT.sub("", self.text))

    def headings(self, level: int = 0) -> list[str]:
        """The texts of the headings, of one level or of all."""
        return [text for marks, text in _HEADING.findall(self.prose) if not level or len(marks) == level]

    def anchors(self) -> set[str]:
        """What a link can point to on this page, as the usual renderers name it."""
        found = set(_NAMED.findall(self.prose))
        for heading in self.headings():
            anchor, number = slug(heading), 0
            while anchor in found:
                number += 1
                anchor = "%s-%d" % (slug(heading), number)
            found.add(anchor)
        return found

    def links(self) -> list[str]:
        """The targets of all links, in order; links inside code are text."""
        prose = _SPAN.sub("", self.prose)
        return [*_LINK.findall(prose), *_REFERENCE.findall(prose)]

    def section(self, heading: str) -> str:
        """The text below a heading of level 2, up to the next one."""
        parts = re.split(r"^## +(.+?) *$", self.text, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2]))[heading]


def slug(heading: str) -> str:
    """The anchor of a heading: lower case, spaces as dashes, other punctuation left out."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def page(name: str) -> Page:
    """A page by its path below ``docs``."""
    path = DOCS / name
    return Page(path, path.read_text(encoding="utf-8"))


def all_pages() -> list[Page]:
    """Every Markdown page of the documentation, and the README where there is one."""
    paths = [*sorted(DOCS.rglob("*.md")), *[path for path in [ROOT / "README.md"] if path.is_file()]]
    return [Page(path, path.read_text(encoding="utf-8")) for path in paths]


def sources(*folders: str) -> list[Path]:
    """The Python and YAML files below some folders of the repository, without what test runners wrote."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    written = ROOT / "tests" / "output"
    return [
        path
        for path in found
        if path.suffix in (".py", ".yml", ".yaml") and written not in path.parents and path.is_file()
    ]
