# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host gave no snapshot: one line, with what the host itself said, and what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.plugin_utils.reasons import no_snapshot

HINT = " Set ansible_python_interpreter of this host to a Python 3.9 or newer."
NO_MODULE = "Module result deserialization failed: No start of json char found"


def printed(stderr: str = "", stdout: str = "", rc: int = 1) -> dict[str, Any]:
    return {"msg": NO_MODULE, "module_stderr": stderr, "module_stdout": stdout, "rc": rc}


@pytest.mark.parametrize(
    ("gathered", "reason"),
    [
        ({}, "The node gave no snapshot."),
        ({"msg": None}, "The node gave no snapshot."),
        ({"msg": " two\n  lines "}, "two lines"),
        (
            {"msg": "Task failed: Failed to connect to the host via ssh: no route", "unreachable": True},
            "Failed to connect to the host via ssh: no route",
        ),
        (
            {"msg": "The module interpreter '/opt/python' was not found.", "rc": 127},
            "The module interpreter '/opt/python' was not found." + HINT,
        ),
        (
            printed("/bin/sh: 1: /etc/passwd: Permission denied\n", rc=126),
            "The module did not run (exit code 126): /bin/sh: 1: /etc/passwd: Permission denied." + HINT,
        ),
        (
            printed("pyenv: python3.13: command not found\n\nNote: see\nthe help.\n", rc=127),
            "The module did not run (exit code 127): pyenv: python3.13: command not found." + HINT,
        ),
        (
            printed(
                '  File "x.py", line 3\n    from __future__ import annotations\n    ^\nSyntaxError: no\n'
            ),
            "The module did not run (exit code 1): SyntaxError: no." + HINT,
        ),
        (printed(rc=0), "The module did not run (exit code 0): nothing was printed." + HINT),
        (
            printed("Shared connection to 127.0.0.1 closed.\r\n", "/bin/sh: 1: /x: not found\r\n", 127),
            "The module did not run (exit code 127): /bin/sh: 1: /x: not found." + HINT,
        ),
        (
            printed("OpenSSH_9.2\ndebug1: Reading\nSegmentation fault\ndebug2: done\n", rc=139),
            "The module did not run (exit code 139): Segmentation fault." + HINT,
        ),
        (
            printed("sudo: a password is required\n"),
            "The module did not run (exit code 1): sudo: a password is required.",
        ),
        (
            {
                "failed_when_suppressed_exception": SimpleNamespace(
                    event=SimpleNamespace(msg="'type' object is not subscriptable.")
                )
            },
            "The module broke off: 'type' object is not subscriptable." + HINT,
        ),
        ({"failed_when_suppressed_exception": "(traceback unavailable)"}, "The node gave no snapshot."),
    ],
)
def test_reason(gathered: dict[str, Any], reason: str) -> None:
    assert no_snapshot(gathered) == reason


def values() -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text(), max_size=2))


@given(
    st.dictionaries(
        st.sampled_from(["msg", "rc", "module_stdout", "module_stderr", "failed_when_suppressed_exception"]),
        st.one_of(values(), st.just(NO_MODULE)),
    )
)
def test_any_result_gives_one_short_line(gathered: dict[str, Any]) -> None:
    reason = no_snapshot(gathered)
    assert reason.strip()
    assert len(reason.splitlines()) == 1
    assert len(reason) < 500
