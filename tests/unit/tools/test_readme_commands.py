# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runner of documented commands: which blocks it takes, and what it leaves to other gates."""

from __future__ import annotations

import pytest

from readme_commands import BLOCK, without_gates

PAGE = """
```shell
one
two
```

```text
three
```

<!-- not run: needs nodes -->

```shell
four
```

<!-- or exit code 2: not here -->
```shell
five
```
"""


def test_blocks_come_with_what_is_said_about_them() -> None:
    found = [(block["script"], block["reason"], block["code"]) for block in BLOCK.finditer(PAGE)]
    assert found == [("one\ntwo\n", None, None), ("four\n", "needs nodes", None), ("five\n", None, "2")]


@pytest.mark.parametrize(
    ("script", "kept", "lost"),
    [
        ("make demo\n", "make demo", []),
        ("make test\n", "", []),
        ("make test  # all\nls\n", "ls", []),
        ("make unit\n", "", ["unit"]),
        ("make testing\n", "make testing", []),
    ],
)
def test_commands_that_are_gates_are_not_run_again(script: str, kept: str, lost: list[str]) -> None:
    assert without_gates(script, "demo:\ntest: venv\n") == (kept, lost)
