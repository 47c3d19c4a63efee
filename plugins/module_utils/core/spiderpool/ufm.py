# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Secret from which ib-kubernetes learns how to reach UFM. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SECRET, NAMESPACE = "ib-kubernetes-ufm-secret", "kube-system"
"""Where the program looks for it (S146)."""
REQUIRED = ("UFM_USERNAME", "UFM_PASSWORD", "UFM_ADDRESS")
CERTIFICATE = "UFM_CERTIFICATE"
OPTIONAL = ("UFM_HTTP_SCHEMA", "UFM_PORT", CERTIFICATE)
"""Keys that the program reads (S146)."""
KEYS = (*REQUIRED, *OPTIONAL)


class SecretVerdict(NamedTuple):
    """Keys that are missing and keys that nobody reads, in order; ``tls_verified``: the server is verified."""

    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    tls_verified: bool

    @property
    def is_ok(self) -> bool:
        return not self.missing


def judge(keys: Iterable[str]) -> SecretVerdict:
    """Look at the names of the keys, never at their values; without a certificate anybody can answer (S146, S147)."""
    given = set(keys)
    return SecretVerdict(
        tuple(sorted(set(REQUIRED) - given)),
        tuple(sorted(given - set(KEYS))),
        CERTIFICATE in given,
    )
