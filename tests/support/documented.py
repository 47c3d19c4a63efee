# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands and the YAML of all pages, and what the plugins, roles and playbooks that they name understand."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .playbook import COLLECTION

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.M | re.S)
_PROMPT = re.compile(r"[$#] ")
COMMANDS = ("console", "shell", "sh", "bash")
FOLDERS = ("docs", "examples", "image", "monitoring", "roles")
"""Where pages are. The README of the collection has a runner of its own, ``tests/tools/readme_commands.py``."""


@dataclass(frozen=True)
class Command:
    """A command as a page shows it; ``page`` is the path of the page, ``line`` is one line for the shell."""

    page: str
    line: str

    @property
    def program(self) -> str:
        """The first word."""
        return self.line.split()[0]


def pages() -> list[Path]:
    """All Markdown pages below :data:`FOLDERS`."""
    found = [path for folder in FOLDERS for path in (COLLECTION / folder).rglob("*.md")]
    return sorted(found)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of the code blocks of a page, in order."""
    for _indent, language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield language, textwrap.dedent(text)


def commands_of(language: str, text: str) -> list[str]:
    """The commands of one block.

    A line that begins with a prompt begins a command; it goes on after a backslash or a pipe at the end of a line, and
    on lines that begin with ``> ``. A block without any prompt is a script, one command a line.
    """
    lines = text.splitlines()
    prompts = language == "console" or any(line.startswith("$ ") for line in lines)
    found: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on:
            found[-1] += "\n" + re.sub(r"^>? +", "", line)
        elif prompts and line.startswith("> ") and found:
            found[-1] += "\n" + line[2:]
        elif prompts and _PROMPT.match(line):
            found.append(line[2:])
        elif not prompts and line.strip() and not line.startswith("#"):
            found.append(line)
        else:
            continue
        goes_on = found[-1].rstrip().endswith(("\\", "|"))
    return [re.sub(r" *\\\n *", " ", command) for command in found]


def commands() -> list[Command]:
    """Every command of every page, in order."""
    return [
        Command(str(page.relative_to(COLLECTION)), line)
        for page in pages()
        for language, text in blocks(page)
        if language in COMMANDS
        for line in commands_of(language, text)
    ]


def yaml_of(page: Path) -> list[Any]:
    """The YAML documents of a page, in order."""
    texts = [text for language, text in blocks(page) if language in ("yaml", "yml")]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def is_play(document: Any) -> bool:
    """Tell whether a document is a playbook."""
    return isinstance(document, list) and bool(document) and all("hosts" in play for play in document if play)


@functools.cache
def module_options(name: str) -> dict[str, Any]:
    """The options of a module of this collection, by name."""
    text = (COLLECTION / "plugins" / "modules" / (name + ".py")).read_text(encoding="utf-8")
    found = re.search(r'^DOCUMENTATION = r?"""\n(.*?)^"""', text, re.M | re.S)
    assert found is not None, name
    document = yaml.safe_load(found[1])
    options: dict[str, Any] = dict(document.get("options", {}))
    for fragment in document.get("extends_documentation_fragment", []):
        options.update(_fragment(fragment))
    return options


@functools.cache
def _fragment(name: str) -> dict[str, Any]:
    """The options of one of our documentation fragments, ``rdma.k8s.FILE[.PART]``."""
    _namespace, _collection, file, *part = name.split(".")
    text = (COLLECTION / "plugins" / "doc_fragments" / (file + ".py")).read_text(encoding="utf-8")
    wanted = part[0].upper() if part else "DOCUMENTATION"
    found = re.search(r'^    %s = r?"""\n(.*?)^"""' % wanted, text, re.M | re.S)
    assert found is not None, name
    return dict(yaml.safe_load(textwrap.dedent(found[1])).get("options", {}))


@functools.cache
def role_variables(name: str) -> frozenset[str]:
    """The variables of a role."""
    specs = yaml.safe_load(
        (COLLECTION / "roles" / name / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    )
    return frozenset(
        option for spec in specs["argument_specs"].values() for option in spec.get("options", {})
    )


def all_role_variables() -> frozenset[str]:
    """The variables of all roles."""
    names = [path.parents[1].name for path in (COLLECTION / "roles").glob("*/meta/argument_specs.yml")]
    return frozenset().union(*[role_variables(name) for name in names])


def playbook_variables(name: str) -> frozenset[str]:
    """What the first lines of a playbook say can be set, and the words of its tasks."""
    files = [COLLECTION / "playbooks" / (name + ".yml"), *(COLLECTION / "playbooks" / "tasks").glob("*.yml")]
    return frozenset(re.findall(r"[a-z][a-z0-9_]+", "".join(file.read_text("utf-8") for file in files)))
