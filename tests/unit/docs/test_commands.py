# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every command of this project that a page shows exists, and what it is shown to print is what it prints."""

from __future__ import annotations

import io
import re
import shlex
from typing import Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import arguments, main
from ansible_collections.rdma.k8s.plugins.module_utils.cli.terminal import Terminal

from .pages import ROOT, Page, all_pages

_BLOCK = re.compile(r"^```(?:console|shell)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_PLUGIN = re.compile(r"\brdma\.k8s\.([a-z_]+)\b")
PROMPT = "$ "


def blocks() -> list[tuple[str, str]]:
    """Name of the page and text of every block of commands."""
    return [
        (str(page.path.relative_to(ROOT)), block)
        for page in all_pages()
        for block in _BLOCK.findall(page.text)
    ]


def commands() -> list[tuple[str, str, str]]:
    """Name of the page, a command, and what it is shown to print (up to the next command)."""
    found = []
    for name, block in blocks():
        parts = re.split(r"^(?:\$ |(?=rdma-k8s |ansible-playbook |make ))", block, flags=re.MULTILINE)
        for part in parts[1:]:
            command, _unused, output = part.replace("\\\n", " ").partition("\n")
            found.append((name, re.sub(r"\s+#\s.*$", "", command).strip(), output))
    return found


OWN = [entry for entry in commands() if entry[1].startswith("rdma-k8s ")]
SHOWN = [
    (name, line, output)
    for name, line, output in commands()
    if output.strip() and line.startswith(("rdma-k8s ", "ansible-playbook "))
]


def test_there_are_commands() -> None:
    assert len(OWN) > 10
    assert len(SHOWN) >= 3


@pytest.mark.parametrize(("name", "line"), [entry[:2] for entry in OWN])
def test_arguments_are_understood(name: str, line: str) -> None:
    assert arguments.parse(shlex.split(line)[1:], Terminal(io.StringIO())) is not None, name


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.path.name)
def test_commands_in_sentences_exist(page: Page) -> None:
    """Code in a sentence: ``rdma-k8s report`` names a command, ``make unit`` a target."""
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    lost = []
    for span in _SPAN.findall(page.prose):
        words = span.split()
        if (
            words[:1] == ["rdma-k8s"]
            and len(words) > 1
            and words[1].islower()
            and words[1] not in arguments.COMMANDS
        ):
            lost.append(span)
        if words[:1] == ["make"] and len(words) == 2 and words[1] not in targets:
            lost.append(span)
    assert lost == []


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.path.name)
def test_make_targets_in_blocks_exist(page: Page) -> None:
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    used = {
        word
        for block in _BLOCK.findall(page.text)
        for word in re.findall(r"^\$? ?make ([a-z0-9-]+)", block, re.M)
    }
    assert sorted(used - targets) == []


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.path.name)
def test_plugins_exist(page: Page) -> None:
    lost = []
    for name in set(_PLUGIN.findall(page.text)):
        places = ["modules/%s.py", "inventory/%s.py", "filter/%s.yml"]
        places = ["plugins/" + place for place in places] + ["playbooks/%s.yml", "roles/%s/meta"]
        if not any((ROOT / (place % name)).exists() for place in places):
            lost.append(name)
    assert lost == []


def as_own_command(line: str) -> Optional[list[str]]:
    """The arguments of ``rdma-k8s`` that print the same; ``None`` when it reads what is not in the repository."""
    words = shlex.split(line)
    if words[:2] == ["ansible-playbook", "rdma.k8s.preflight"]:
        given = dict(word.split("=", 1) for word in words[3::2])
        words = [
            "rdma-k8s",
            "report",
            given.get("snapshots", "recorded"),
            "--policy",
            given.get("policy", ""),
        ]
    files = [word for word in words if "/" in word and not re.search(r"\d/\d", word)]
    known = all((ROOT / word).exists() or word.split("/")[0].startswith(("gpu", "gb200")) for word in files)
    return words[1:] if known else None


@pytest.mark.parametrize(("name", "line", "output"), SHOWN)
def test_shown_output_is_true(
    name: str, line: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line ``...`` ends what is compared."""
    words = as_own_command(line)
    assert words is not None, "%s: an output is shown that nobody can check" % name
    monkeypatch.chdir(ROOT)
    main.main(words)
    printed = capsys.readouterr().out.rstrip("\n").splitlines()
    shown = output.rstrip("\n").splitlines()
    if "..." in shown:
        shown = shown[: shown.index("...")]
        while not shown[-1]:
            shown.pop()
        printed = printed[: len(shown)]
    assert printed == shown
