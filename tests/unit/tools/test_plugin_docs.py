# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What counts as a complete documentation of an inventory plugin."""

from __future__ import annotations

from typing import Any

import pytest

from plugin_docs import plugin_gaps

SOURCE = "---\nplugin: a.b.c\n"


def shown(examples: str = SOURCE, **options: Any) -> dict[str, Any]:
    """What ansible-doc says of a plugin."""
    doc = dict.fromkeys(("short_description", "description", "author", "version_added"), "text")
    return {"doc": {**doc, "options": options}, "examples": examples}


@pytest.mark.parametrize(
    ("told", "gaps"),
    [
        (shown(), []),
        (shown(SOURCE + SOURCE), []),
        (shown(cache_prefix={"description": "of Ansible itself"}), []),
        (shown(own_prefix={"description": "ours"}), ["option own_prefix has no type"]),
        (shown(""), ["no EXAMPLES"]),
        (shown(SOURCE + "---\n- name: A task\n"), ["EXAMPLES are no sources of an inventory"]),
        (shown("---\nnodes: 7\n"), ["EXAMPLES are no sources of an inventory"]),
    ],
)
def test_gaps(told: dict[str, Any], gaps: list[str]) -> None:
    assert plugin_gaps("inventory", told) == gaps
