# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every relative link of the documentation leads somewhere, and every page can be reached from the first one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .pages import DOCS, Page, all_pages, slug

PAGES = {page.path: page for page in all_pages()}


def split(page: Page, target: str) -> tuple[Path, str]:
    """File and anchor of a relative link."""
    name, _unused, anchor = target.partition("#")
    return ((page.path.parent / name).resolve() if name else page.path), anchor


def relative_links(page: Page) -> list[str]:
    return [target for target in page.links() if "://" not in target and not target.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.path.name)
def test_links_resolve(page: Page) -> None:
    broken = []
    for target in relative_links(page):
        path, anchor = split(page, target)
        if not path.exists():
            broken.append("%s: no such file" % target)
        elif anchor and path in PAGES and anchor not in PAGES[path].anchors():
            broken.append("%s: no such anchor" % target)
    assert broken == []


def test_every_page_is_reachable_from_the_index() -> None:
    todo, seen = [DOCS / "index.md"], set()
    while todo:
        path = todo.pop()
        if path not in PAGES or path in seen:
            continue
        seen.add(path)
        todo += [split(PAGES[path], target)[0] for target in relative_links(PAGES[path])]
    assert sorted(str(path) for path in PAGES if DOCS in path.parents and path not in seen) == []


def test_the_site_lists_every_page_once() -> None:
    """The lists of ``docsite/index.rst``, with its patterns, hold all pages of the documentation."""
    text = (DOCS / "docsite" / "index.rst").read_text(encoding="utf-8")
    patterns = re.findall(r"^   pages/(\S+)$", text, re.MULTILINE)
    listed = [path for pattern in patterns for path in DOCS.glob(pattern + ".md")]
    assert sorted(listed) == sorted(path for path in PAGES if DOCS in path.parents)


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.path.name)
def test_one_title(page: Page) -> None:
    assert len(page.headings(1)) == 1


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("RDMA-NODE-001", "rdma-node-001"),
        ("What a `None` means", "what-a-none-means"),
        ("Facts: Linux, RDMA devices", "facts-linux-rdma-devices"),
        ("See [this](there.md)", "see-this"),
    ],
)
def test_slug(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_links_in_code_are_text_and_anchors_are_counted() -> None:
    text = "# A\n\n`[x](nowhere.md)` [y](there.md#b)\n\n```\n[z](nowhere.md)\n## C\n```\n\n## B\n\n## B\n"
    text += '\n<a id="q"></a>\n'
    page = Page(DOCS / "x.md", text)
    assert page.links() == ["there.md#b"]
    assert page.anchors() == {"a", "b", "b-1", "q"}
