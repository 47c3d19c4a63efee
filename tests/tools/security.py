# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look for dangerous code with bandit, and for secrets in every file that git lists.

What was looked at and is right stands in ACCEPTED, with the reason; an entry that finds nothing any more is a failure.

Usage: python tests/tools/security.py bandit|secrets      the last line is `N passed, M failed`
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree

CODE = ("plugins", "image", "examples", "docs", "setup.py")
LEAST = ("MEDIUM", "HIGH")
"""Severities that count. Below is what every program that starts another one does; ruff has rules for that, too."""

COMMANDS = "B404 B603 B607"
"""Starting programs is what this collection does; they are lists of words, which ruff guards."""

SHM = "the path of the memory of a container, in which nothing is made"
ACCEPTED: dict[tuple[str, str], str] = {
    ("B103", "plugins/module_utils/host/python_environment.py"): "an environment for every user of the node",
    ("B108", "plugins/inventory/nodes.py"): "a directory in the file system of a pod that no other user has",
    ("B108", "plugins/module_utils/core/ack/pod_test.py"): SHM,
    ("B108", "plugins/module_utils/core/lint/memory.py"): SHM,
    ("B108", "plugins/module_utils/core/workloads/pods.py"): SHM,
    ("B113", "plugins/module_utils/core/lint/resources.py"): "the requests of a container, not the library",
}

_WORD = r"[A-Za-z0-9_.\-]*"
KINDS: dict[str, str] = {
    "private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    "access key of AWS": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "access key of Alibaba Cloud": r"\bLTAI[0-9A-Za-z]{12,24}\b",
    "key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "token of GitHub": r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{60,})\b",
    "token of GitLab": r"\bgl(?:pat|rt|dt|ptt)-[0-9A-Za-z_-]{20,}",
    "token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{10,}",
    "token of a package index": r"\bpypi-[0-9A-Za-z_-]{40,}",
    "web token": r"\beyJ[0-9A-Za-z_-]{15,}\.eyJ[0-9A-Za-z_-]{15,}\.[0-9A-Za-z_-]{15,}",
    "client key of a kubeconfig": r"client-key-data:\s*[0-9A-Za-z+/=]{60,}",
    "password in an address": (
        r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"`<>{}$]{1,64}:[^\s/:@'\"`<>{}$]{3,64}@"
        r"(?!(?:[\w-]+\.)*(?:example|invalid|test|localhost)\b)"  # reserved for texts like those of this project
    ),
    "value of a secret": (
        rf"(?i)\b{_WORD}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|private[_-]?key){_WORD}['\"]?\s*[:=]\s*"
        r"['\"](?=[^'\"]*[0-9])(?=[^'\"]*[A-Za-z])[0-9A-Za-z+/=_\-]{20,}['\"]"
    ),
}
"""What a secret looks like. Hashes and lock files are full of random characters, so length and entropy tell nothing."""

EXCEPT = re.compile(r"requirements/.*\.txt|.*\.(?:png|gz|woff2?|ico)")


@dataclass(frozen=True)
class Found:
    """A kind of trouble in a file."""

    kind: str
    path: str
    line: int
    text: str = ""


def bandit() -> list[Found]:
    """Return what bandit finds in the code that is delivered."""
    command = [str(tree.BIN / "bandit"), "--quiet", "--recursive", "--format", "json", "--exit-zero"]
    done = subprocess.run(
        [*command, *CODE], cwd=tree.COPY, stdout=subprocess.PIPE, check=True, env=tree.environment()
    )
    document = json.loads(done.stdout)
    if document["errors"]:
        raise SystemExit(f"security: bandit could not read everything: {document['errors'][:3]}")
    if document["metrics"]["_totals"]["loc"] < 1000:
        raise SystemExit("security: bandit found almost no code")
    return [
        Found(
            entry["test_id"], entry["filename"].removeprefix("./"), entry["line_number"], entry["issue_text"]
        )
        for entry in document["results"]
        if entry["issue_severity"] in LEAST and entry["test_id"] not in COMMANDS.split()
    ]


def secrets_in(text: str, path: str) -> Iterator[Found]:
    """Yield what looks like a secret in a text."""
    for kind, expression in KINDS.items():
        for found in re.finditer(expression, text):
            yield Found(kind, path, text.count("\n", 0, found.start()) + 1)


SECRETS_ACCEPTED: dict[tuple[str, str], str] = {
    (
        "private key",
        "tests/unit/cloud/test_oci_network.py",
    ): "begin and end of a key with four letters between",
    (
        "password in an address",
        "tests/unit/plugins/module_utils/core/test_cluster_reading.py",
    ): "an address from which the password must go",
}


def secrets() -> list[Found]:
    """Return what looks like a secret in the files that git lists."""
    found: list[Found] = []
    for name in tree.listed_files():
        path = tree.ROOT / name
        if EXCEPT.fullmatch(name) or path.is_symlink():
            continue
        found += secrets_in(path.read_bytes().decode("utf-8", "replace"), name)
    return found


def verdict(found: list[Found], accepted: dict[tuple[str, str], str], counted: int) -> int:
    """Print what is not accepted and what is accepted for nothing; return the exit code."""
    new = [entry for entry in found if (entry.kind, entry.path) not in accepted]
    stale = sorted(set(accepted) - {(entry.kind, entry.path) for entry in found})
    for entry in new:
        print(f"FAIL  {entry.path}:{entry.line}: {entry.kind} {entry.text}".rstrip())
    for kind, path in stale:
        print(
            f"FAIL  {path}: {kind} is accepted and not found; take the entry out of tests/tools/security.py"
        )
    for entry in found:
        if entry not in new:
            print(
                f"ok    {entry.path}:{entry.line}: {entry.kind}, accepted: {accepted[entry.kind, entry.path]}"
            )
    failed = len(new) + len(stale)
    print(f"{max(counted - failed, 0)} passed, {failed} failed")
    return 1 if failed else 0


def main(what: str) -> int:
    """Look for one kind of trouble."""
    if what == "bandit":
        return verdict(bandit(), ACCEPTED, len(list(Path(tree.COPY / "plugins").rglob("*.py"))))
    if what == "secrets":
        return verdict(secrets(), SECRETS_ACCEPTED, len(tree.listed_files()))
    raise SystemExit(f"security: say bandit or secrets, not {what!r}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2] or [""]))
