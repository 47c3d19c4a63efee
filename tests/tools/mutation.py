# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the core in small ways, one at a time, and see whether the unit tests notice.

Usage: python tests/tools/mutation.py [--since REV] [--minutes N] [--tests PATH] [FILE ...]

Without files: those of the core that differ from REV (default: origin/main; all of the core where that does not exist).
Each mutant runs only the tests that reach its line, in a forked process that reads the changed source from memory:
nothing on disk changes. Ends after N minutes (default 10) and says how many mutants it tried. Survivors are printed;
one that no test can ever notice belongs into ``tests/mutation-equivalents.yml`` with the reason. Exit code 1 when a
mutant survived that is not listed there, or when an entry there names no mutant.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import coverage
import pytest
import yaml
from hypothesis import settings

import tree
from gate_model import read_junit

CORE = "plugins/module_utils/core"
TESTS = "tests/unit/plugins/module_utils/core"
RESULTS = tree.BUILD / "mutation"
WORKERS = 2
MOST_TESTS = 150
SECONDS = 30

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, how it reads, and the whole changed source."""

    path: str
    line: int
    name: str
    source: str


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield changed copies of one node."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            if type(operator) in SWAPS:
                changed = copy.deepcopy(node)
                changed.ops[index] = SWAPS[type(operator)]()  # type: ignore[call-overload]
                yield changed
    elif isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign) and type(node.op) in SWAPS:
        changed_op = copy.deepcopy(node)
        changed_op.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        yield changed_op
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, copy.deepcopy(node.orelse), copy.deepcopy(node.body))
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield ast.Pass()


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def places(module: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, str]]:
    """Yield parent, field, index in it, child and the name of the enclosing function, outside annotations."""
    todo: list[tuple[ast.AST, str]] = [(module, "module")]
    while todo:
        parent, inside = todo.pop()
        if isinstance(parent, ast.FunctionDef | ast.ClassDef):
            inside = parent.name if inside == "module" else f"{inside}.{parent.name}"
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    yield parent, field, index, child, inside
                    todo.append((child, inside))


def mutants(path: str, text: str) -> list[Mutant]:
    """Return every mutant of one file; the names are unique and do not depend on line numbers."""
    module, found, names = ast.parse(text), [], dict[str, int]()
    for parent, field, index, child, inside in list(places(module)):
        for changed in changes(child):
            ast.fix_missing_locations(ast.copy_location(changed, child))
            _put(parent, field, index, changed)
            source = ast.unparse(module)
            _put(parent, field, index, child)
            before, after = (" ".join(ast.unparse(node).split())[:70] for node in (child, changed))
            name = f"{path} {inside}: {before} -> {after}"
            names[name] = names.get(name, 0) + 1
            unique = name if names[name] == 1 else f"{name} #{names[name]}"
            found.append(Mutant(path, getattr(child, "lineno", getattr(parent, "lineno", 0)), unique, source))
    return found


def _put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


class ChangedSource(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one module, under each of its names, from a text instead of its file."""

    def __init__(self, names: set[str], source: str) -> None:
        self.names, self.source = names, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Answer for the one module."""
        return importlib.util.spec_from_loader(fullname, self) if fullname in self.names else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source as the module."""
        exec(compile(self.source, f"<mutant of {module.__name__}>", "exec"), module.__dict__)


def pytest_words(tests: Sequence[str]) -> list[str]:
    """Return the arguments for a run of these tests that stops at the first failure."""
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0", "--no-header"]
    return [*quiet, *tests]


def reach(where: str) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """Run the tests once.

    Return path -> line -> tests that execute it (line 0: any line), and the seconds that each test took.
    """
    junit = RESULTS / "tests.xml"
    data_file = RESULTS / "coverage"
    env = {**tree.environment(), "COVERAGE_FILE": str(data_file)}
    words = [
        *pytest_words([where]),
        "--cov",
        "--cov-context=test",
        "--cov-report=",
        "--junit-xml",
        str(junit),
    ]
    command = [str(tree.BIN / "python"), "-m", "pytest", *words]
    done = subprocess.run(
        command, cwd=tree.COPY, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        print(done.stdout.decode("utf-8", "replace"))
        raise SystemExit(
            "mutation: the tests fail on the unchanged core, so nothing can be learned from mutants."
        )
    data = coverage.CoverageData(str(data_file))
    data.read()
    found: dict[str, dict[int, set[str]]] = {}
    for file in data.measured_files():
        name = os.path.relpath(file, tree.COPY) if os.path.isabs(file) else file
        lines = {
            line: {c.split("|")[0] for c in contexts if c}
            for line, contexts in data.contexts_by_lineno(file).items()
        }
        found[name] = {**lines, 0: set().union(*lines.values())}
    return found, dict(read_junit(junit).times)


def batches(tests: set[str], seconds: dict[str, float]) -> list[list[str]]:
    """Return the tests in batches of a few seconds, the quick ones first."""
    times = {}
    for test in tests:
        # The result file writes a file and its class with dots: a/b.py::C::t[x] is a.b.C::t[x] there.
        plain, bracket, parameters = test.partition("[")
        *place, name = plain.replace(".py::", "::").replace("/", ".").split("::")
        times[test] = seconds.get(f"{'.'.join(place)}::{name}{bracket}{parameters}", 1.0)
    found: list[list[str]] = []
    room = 0.0
    for test in sorted(tests, key=lambda name: (times[name], name)):
        if not found or times[test] > room or len(found[-1]) == MOST_TESTS:
            found.append([])
            room = SECONDS / 4
        found[-1].append(test)
        room -= times[test]
    return found


def start(mutant: Mutant, tests: list[str]) -> int:
    """Fork a process that runs `tests` on the mutant; return its process id. Its exit code 0: nothing was noticed."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(SECONDS)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    dotted = mutant.path.removesuffix(".py").replace("/", ".")
    names = {f"ansible_collections.rdma.k8s.{dotted}", dotted.replace("plugins.module_utils", "rdma_k8s")}
    sys.meta_path.insert(0, ChangedSource(names, mutant.source))
    settings.register_profile("mutation", max_examples=25, deadline=None, database=None)
    settings.load_profile("mutation")
    os._exit(int(pytest.main(pytest_words(tests))))


def run(todo: list[tuple[Mutant, list[list[str]]]], seconds: float) -> tuple[list[Mutant], int]:
    """Run mutants until all are done or the time is over; return survivors and the number tried.

    A mutant survives when none of its batches of tests notices it.
    """
    end, running = time.monotonic() + seconds, dict[int, tuple[Mutant, list[list[str]]]]()
    survivors, tried = [], 0
    waiting = list(reversed(todo))
    while running or (waiting and time.monotonic() < end):
        while waiting and len(running) < WORKERS and time.monotonic() < end:
            mutant, left = waiting.pop()
            tried += 1
            if left:
                running[start(mutant, left[0])] = (mutant, left[1:])
            else:
                survivors.append(mutant)
        if running:
            pid, status = os.wait()
            mutant, left = running.pop(pid)
            if os.waitstatus_to_exitcode(status):
                continue
            if left:
                running[start(mutant, left[0])] = (mutant, left[1:])
            else:
                survivors.append(mutant)
    return survivors, tried


def changed_files(since: str) -> list[str]:
    """Return the files of the core that differ from `since`, all of them when there is no such revision."""
    every = sorted(name for name in tree.listed_files() if name.startswith(CORE) and name.endswith(".py"))
    command = ["git", "-C", str(tree.ROOT), "diff", "--name-only", since, "--", CORE]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return every if done.returncode else [name for name in every if name in done.stdout.decode().splitlines()]


def main(argv: list[str]) -> int:
    """Choose the mutants, run them, report."""
    parser = argparse.ArgumentParser(
        description="Change the core in small ways and see whether the unit tests notice."
    )
    parser.add_argument("--since", default="origin/main")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--tests", default=TESTS)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args(argv)
    begin = time.monotonic()
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.chdir(tree.sync())
    os.environ.update(tree.environment())
    files = options.files or changed_files(options.since)
    if not files:
        print(f"no file of the core differs from {options.since}")
        return 0
    every = [mutant for name in files for mutant in mutants(name, Path(name).read_text())]
    tests, seconds = reach(options.tests)
    todo = []
    for mutant in every:
        lines = tests.get(mutant.path, {})
        # What runs at import has no test of its own: any test of the file may notice.
        names = lines.get(mutant.line) or (lines.get(0, set()) if mutant.line in lines else set())
        todo.append((mutant, batches(names, seconds)))
    random.Random(0).shuffle(todo)
    print(f"{len(every)} mutants in {len(files)} file(s), {options.minutes:g} minutes at most", flush=True)
    survivors, tried = run(todo, options.minutes * 60 - (time.monotonic() - begin))
    listed = yaml.safe_load((tree.ROOT / "tests" / "mutation-equivalents.yml").read_text())["equivalents"]
    known = {entry["mutant"] for entry in listed if entry["reason"].strip()}
    gone = sorted(name for name in known - {mutant.name for mutant in every} if name.split(" ")[0] in files)
    equivalent = [mutant for mutant in survivors if mutant.name in known]
    left = sorted(
        (mutant for mutant in survivors if mutant.name not in known), key=lambda mutant: mutant.name
    )
    for mutant in left:
        print(f"survived: {mutant.name} (line {mutant.line})")
    for name in gone:
        print(f"no such mutant, remove it from tests/mutation-equivalents.yml: {name}")
    counts = {
        "mutants": len(every),
        "tried": tried,
        "noticed": tried - len(survivors),
        "equivalent": len(equivalent),
        "survived": len(left),
        "seconds": round(time.monotonic() - begin, 1),
    }
    result = {**counts, "files": files, "survivors": [mutant.name for mutant in left]}
    (RESULTS / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print(", ".join(f"{value} {name}" for name, value in counts.items()))
    if not tried:
        print("no mutant was tried: the time was over before")
    return 1 if left or gone or not tried else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
