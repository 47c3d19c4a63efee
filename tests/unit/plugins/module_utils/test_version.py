# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One version everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("galaxy.yml", r"^version: (\S+)$"),
        ("pyproject.toml", r'^version = "(\S+)"$'),
    ],
)
def test_the_version_of_the_sources(name: str, pattern: str) -> None:
    assert re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.M) == [VERSION]


def test_it_is_a_semantic_version() -> None:
    """Galaxy refuses any other."""
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", VERSION)
