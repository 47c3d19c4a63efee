# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of a run of the benchmarks as a part of the page."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
RESULTS = """\
# Benchmarks

Machine: cpu X, cpus 2.

| id | what | measured | target | met |
| --- | --- | --- | --- | --- |
| B4 | x | 1 s | at most 3 s | yes |

## B4 The whole catalogue

- baseline: y: 2

```text
curve
```

## B9 Lint
"""


@pytest.fixture(scope="module")
def page() -> Any:
    spec = importlib.util.spec_from_file_location("bench_page", ROOT / "tests" / "bench" / "page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_become_a_part_of_a_page(page: Any) -> None:
    text = page.section(RESULTS, "2026-03-02T09:00:00Z", ["b4-time.svg"])
    assert text.splitlines() == [
        "Measured on 2026-03-02.",
        "",
        "Machine: cpu X, cpus 2.",
        "",
        "| id | what | measured | target | met |",
        "| --- | --- | --- | --- | --- |",
        "| B4 | x | 1 s | at most 3 s | yes |",
        "",
        "### B4 The whole catalogue",
        "",
        "- baseline: y: 2",
        "",
        "![Time of B4 over nodes](images/bench-b4-time.svg)",
        "",
        "### B9 Lint",
    ]


def test_a_curve_without_a_picture_stays_text(page: Any) -> None:
    assert "curve" in page.section(RESULTS, "2026-03-02T09:00:00Z", [])


def test_the_place_is_filled_again(page: Any) -> None:
    empty = "above\n%s\n%s\nbelow\n" % (page.BEGIN, page.END)
    once = page.placed(empty, "text\n")
    assert once == "above\n%s\n\ntext\n\n%s\nbelow\n" % (page.BEGIN, page.END)
    assert page.placed(once, "text\n") == once
    with pytest.raises(SystemExit, match="no place for results"):
        page.placed("above", "text")


def test_the_page_has_a_place_and_names_every_benchmark(page: Any) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.placed(text, "x") != text
    assert [number for number in range(1, 15) if "| B%d |" % number not in text] == []
