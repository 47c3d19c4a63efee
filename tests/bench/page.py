# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put the results of a run of the benchmarks into docs/benchmarks.md, and its curves beside it.

Usage: python tests/bench/page.py [FOLDER]      the folder of `make bench` (default: build/bench)
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_TEXT_CURVE = re.compile(r"```text\n.*?```\n?", re.S)


def section(results: str, created_at: str, curves: list[str]) -> str:
    """The results as a part of a page: headings one level lower, curves as pictures in the place of text.

    :param results: the content of results.md.
    :param curves: names of the pictures, such as ``b4-time.svg`` (over nodes) or ``b10-time-over-forks.svg``.
    """
    lines = []
    for part in re.split(r"^(?=## )", results.partition("\n")[2].strip(), flags=re.M):
        name = re.match(r"## (\S+)", part)
        mine = [curve for curve in curves if name and curve.split("-")[0] == name[1].lower()]
        text = _TEXT_CURVE.sub("", part) if mine else part
        if name:
            text = "#" + text
        lines.append(text.strip())
        for curve in mine:
            what, _over, over = curve.removesuffix(".svg").partition("-")[2].partition("-over-")
            words = (what.replace("-", " ").capitalize(), name[1] if name else "", over or "nodes", curve)
            lines.append("![%s of %s over %s](images/bench-%s)" % words)
    body = "\n\n".join(line for line in lines if line)
    return "Measured on %s.\n\n%s\n" % (created_at[:10], re.sub(r"\n{3,}", "\n\n", body))


def placed(page: str, text: str) -> str:
    """The page with these results in the place of the former ones."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit("page: docs/benchmarks.md has no place for results (%s, %s)" % (BEGIN, END))
    return "%s%s\n\n%s\n%s%s" % (before, BEGIN, text, END, after)


def main(folder: Path) -> int:
    """Write the page and its pictures."""
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    curves = sorted(path.name for path in folder.glob("*.svg"))
    text = section((folder / "results.md").read_text(encoding="utf-8"), document["created_at"], curves)
    PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    for name in curves:
        shutil.copyfile(folder / name, IMAGES / ("bench-" + name))
    print("wrote docs/benchmarks.md and %d pictures" % len(curves))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "bench"))
