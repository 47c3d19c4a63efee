# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for secrets finds each kind, and leaves alone what only looks a little like one.

Every secret here is made up, and put together when the test runs, so that the search does not find this file.
"""

from __future__ import annotations

import pytest

import security
from security import Found

SECRETS = {
    "private key": "-----BEGIN %s PRIVATE KEY-----" % "RSA",
    "access key of AWS": "id=AKIA" + "ABCDEFGH12345678",
    "access key of Alibaba Cloud": "LTAI" + "5tAbCdEfGhIjKlMnOp12",
    "key of Google": "AIza" + "b" * 35,
    "token of GitHub": "ghp_" + "a1" * 18,
    "token of GitLab": "glpat-" + "a1b2c3d4e5f6g7h8i9j0",
    "token of Slack": "xoxb-" + "1234567890-abc",
    "token of a package index": "pypi-" + "A" * 50,
    "web token": ".".join(["eyJ" + "a" * 20, "eyJ" + "b" * 20, "c" * 20]),
    "client key of a kubeconfig": "client-key-data: " + "QUJD" * 20,
    "password in an address": "https://me:" + "hunter22@registry.acme.io/x",
    "value of a secret": "api_token = '" + "0a1b2c3d4e5f6a7b8c9d0e1f'",
}
HARMLESS = (
    "sha256:" + "0a1b2c3d" * 8,
    "password: '{{ vault_password }}'",
    "token: ''",
    "secret_name: 'the-name-of-a-secret-object'",
    "https://example.invalid/a:b@c",
    "https://user:word@mirror.example:8443/x",
    "https://user:word@example.org/x",
    "http://{user}:{password}@host/",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk me@example",
    "-----BEGIN PUBLIC KEY-----",
    "AKIA is the beginning of a key",
)


def test_each_kind_has_an_example() -> None:
    assert set(SECRETS) == set(security.KINDS)


@pytest.mark.parametrize("kind", SECRETS)
def test_found(kind: str) -> None:
    found = list(security.secrets_in("one\n\n" + SECRETS[kind] + "\n", "a.txt"))
    assert Found(kind, "a.txt", 3) in found


@pytest.mark.parametrize("text", HARMLESS)
def test_left_alone(text: str) -> None:
    assert list(security.secrets_in(text, "a.txt")) == []


def test_what_counts(capsys: pytest.CaptureFixture[str]) -> None:
    known, new = Found("B1", "a.py", 3, "Known."), Found("B1", "b.py", 4, "New.")
    assert security.verdict([known], {("B1", "a.py"): "a reason"}, 10) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok    a.py:3: B1, accepted: a reason",
        "10 passed, 0 failed",
    ]
    assert security.verdict([known, new], {("B1", "a.py"): "a reason"}, 10) == 1
    assert "FAIL  b.py:4: B1 New." in capsys.readouterr().out
    assert security.verdict([], {("B1", "a.py"): "a reason"}, 10) == 1
    assert "is accepted and not found" in capsys.readouterr().out


def test_every_reason_is_one() -> None:
    for reason in (*security.ACCEPTED.values(), *security.SECRETS_ACCEPTED.values()):
        assert len(reason.split()) > 3
