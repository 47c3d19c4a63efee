# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error codes that the sources raise, found by reading the sources.

A code is the first argument of ``RdmaError``, or the argument of a function or class that hands it on to ``RdmaError``
(``_refusal(code, ...)``, ``Reader(code, ...)``). Codes that are computed otherwise are reported, so that nothing is
overlooked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

ERROR = "RdmaError"


@dataclass
class Codes:
    """Codes with the files that raise them, and places whose code could not be read."""

    found: dict[str, set[str]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


def of_files(paths: Iterable[Path]) -> Codes:
    """The codes of some Python files."""
    return of_sources({str(path): path.read_text(encoding="utf-8") for path in paths})


def of_sources(sources: dict[str, str]) -> Codes:
    """The codes of some sources by name."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    makers = _makers(trees.values())
    codes = Codes()
    for name, tree in trees.items():
        for call, parameters in _calls(tree):
            at = makers.get(_name(call.func))
            if at is None:
                continue
            _read(codes, name, _argument(call, at), parameters)
    return codes


def _makers(trees: Iterable[ast.Module]) -> dict[str, tuple[int, str]]:
    """Callables that take a code: name to place and name of the argument."""
    makers = {ERROR: (0, "code")}
    trees = list(trees)
    while True:
        known = dict(makers)
        for tree in trees:
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    _add_function(makers, node)
                elif isinstance(node, ast.ClassDef) and node.name != ERROR:
                    _add_class(makers, node)
        if makers == known:
            return makers


def _add_function(makers: dict[str, tuple[int, str]], function: ast.FunctionDef) -> None:
    if function.name.startswith("__"):
        return
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    for call in [node for node in ast.walk(function) if isinstance(node, ast.Call)]:
        at = makers.get(_name(call.func))
        value = _argument(call, at) if at is not None else None
        if isinstance(value, ast.Name) and value.id in names:
            makers[function.name] = (names.index(value.id), value.id)


def _add_class(makers: dict[str, tuple[int, str]], cls: ast.ClassDef) -> None:
    """A class whose methods raise with ``self.code`` takes the code when it is made."""
    uses = [
        call
        for call in ast.walk(cls)
        if isinstance(call, ast.Call)
        and _name(call.func) == ERROR
        and isinstance(_argument(call, (0, "code")), ast.Attribute)
        and ast.unparse(_argument(call, (0, "code")) or call) == "self.code"
    ]
    if uses:
        makers[cls.name] = (0, "code")


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, set[str]]]:
    """Every call with the names of the arguments of the functions around it."""
    todo: list[tuple[ast.AST, set[str]]] = [(tree, set())]
    while todo:
        node, names = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            names = names | {argument.arg for argument in node.args.args + node.args.kwonlyargs}
        if isinstance(node, ast.Call):
            yield node, names
        todo += [(child, names) for child in ast.iter_child_nodes(node)]


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _argument(call: ast.Call, at: tuple[int, str]) -> Optional[ast.expr]:
    place, name = at
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[place] if len(call.args) > place else None


def _read(codes: Codes, source: str, value: Optional[ast.expr], parameters: set[str]) -> None:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        codes.found.setdefault(value.value, set()).add(source)
    elif isinstance(value, ast.IfExp):
        _read(codes, source, value.body, parameters)
        _read(codes, source, value.orelse, parameters)
    elif isinstance(value, ast.Name) and value.id in parameters:
        pass  # the caller of this function says it
    elif isinstance(value, ast.Attribute) and value.attr == "code":
        pass  # an error that is raised again, or the code of the object
    elif isinstance(value, ast.Subscript) and ast.unparse(value.slice) == "'code'":
        pass  # likewise, as plain data
    else:
        codes.unread.append("%s: %s" % (source, ast.unparse(value) if value is not None else "no code"))
