# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run every case of vector files through the core, print each mismatch and, last, `N passed, M failed`.

Usage: run.py FILE... [--kinds KIND,KIND] [--via-http URL]

With --kinds only the cases of these kinds (operations, in the files of the OKE child range) are judged.
With --via-http a running provider is asked instead of the core: `spawn` starts providers with a node and a metadata
service of their own for every case that its contract can express; with the URL of one that runs (unix:///PATH or
http://ADDRESS:PORT) only the claims that it refuses on any node are judged. Other cases are not applicable, and counted
by kind.
Needs only Python and the libraries of the core (netaddr, jmespath); neither Ansible nor PyYAML.
Exit codes: 0 all passed, 1 a case failed, 2 a file or a case that cannot be judged: an unreadable file, a file of
another kind, a case without an operation, input or expectation, an unknown operation or kind, no case at all. Kinds
that are known and not supported yet are counted by name, and the exit code is 2.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
import types
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "plugins" / "module_utils"


def load_core() -> None:
    """Make `rdma_k8s` importable from this tree, whatever is installed."""
    if "rdma_k8s" in sys.modules:
        return
    package = types.ModuleType("rdma_k8s")
    package.__path__ = [str(CORE)]
    sys.modules["rdma_k8s"] = package


load_core()
sys.path.insert(0, str(HERE))

import ack  # noqa: E402
import oke  # noqa: E402
import spiderpool  # noqa: E402
from compare import NotYetError, UnjudgeableError, cases_of  # noqa: E402

# One line for each family; a file goes to the first that knows it.
ADAPTERS: tuple[Any, ...] = (oke, spiderpool, ack)
CRASHES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Tally(NamedTuple):
    """Counts of the cases of one file."""

    passed: int = 0
    failed: int = 0
    unjudged: int = 0


def read(path: str) -> Any:
    """Parse a vector file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnjudgeableError("cannot be read: %s" % error) from error


def adapter_of(document: Any) -> Any:
    """The adapter of a parsed file."""
    for adapter in ADAPTERS:
        if adapter.matches(document):
            return adapter
    raise UnjudgeableError("not a vector file that is known here")


def run_case(adapter: Any, document: Any, case: Any) -> list[str]:
    """The differences of one case; an exception that is no typed error is one."""
    try:
        return list(adapter.judge(document, case))
    except CRASHES as crash:
        return ["crashed: %s" % "".join(traceback.format_exception_only(type(crash), crash)).strip()]


def chosen(cases: list[Any], adapter: Any, kinds: list[str]) -> list[Any]:
    """The cases of these kinds, all when none is given."""
    if not kinds:
        return cases
    absent = sorted(set(kinds) - {adapter.kind_of(case) for case in cases})
    if absent:
        raise UnjudgeableError("has no case of kind %s" % ", ".join(absent))
    return [case for case in cases if adapter.kind_of(case) in kinds]


def run_via_http(path: str, kinds: list[str], url: str) -> Tally:
    """Run one file through a provider, printing each mismatch and what cannot be asked."""
    import via_http

    document = read(path)
    if adapter_of(document) is not oke:
        raise UnjudgeableError("no provider answers cases of this file")
    cases = chosen(cases_of(document), oke, kinds)
    for case in cases:
        oke.checked(document["schema"], case)
    outcomes, others = via_http.run(url, cases)
    for name, found in outcomes:
        if found:
            print("FAILED %s: %s" % (path, name))
            print("".join("  %s\n" % line for line in found), end="")
    told = ", ".join("%s %d" % entry for entry in sorted(others.items()))
    if others:
        print("%s: %d cases are not applicable: %s" % (path, sum(others.values()), told))
    if not outcomes:
        raise UnjudgeableError("has no case that a provider can be asked")
    failed = len([name for name, found in outcomes if found])
    return Tally(len(outcomes) - failed, failed)


def run_file(path: str, kinds: list[str]) -> Tally:
    """Run one file, printing each mismatch."""
    document = read(path)
    adapter = adapter_of(document)
    cases = chosen(cases_of(document), adapter, kinds)
    if not cases:
        raise UnjudgeableError("has no cases")
    passed = failed = unjudged = 0
    later: Counter[str] = Counter()
    for number, case in enumerate(cases):
        try:
            differences = run_case(adapter, document, case)
        except NotYetError as reason:
            later[str(reason)] += 1
            continue
        except UnjudgeableError as reason:
            print("%s: case %d: %s" % (path, number, reason), file=sys.stderr)
            unjudged += 1
            continue
        if differences:
            print("FAILED %s: %s" % (path, case["name"]))
            print("".join("  %s\n" % line for line in differences), end="")
            failed += 1
        else:
            passed += 1
    if later:
        told = ", ".join("%s %d" % entry for entry in sorted(later.items()))
        print("%s: %d cases not supported yet: %s" % (path, sum(later.values()), told), file=sys.stderr)
    return Tally(passed, failed, unjudged + sum(later.values()))


def main(arguments: list[str]) -> int:
    """Run all files and return the exit code."""
    parser = argparse.ArgumentParser(description="Run the cases of vector files through the core.")
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--kinds", default="", help="judge only cases of these kinds, comma between them")
    parser.add_argument("--via-http", default="", metavar="URL", help="ask this provider, or `spawn`")
    options = parser.parse_args(arguments)
    passed = failed = 0
    judged = bool(options.files)
    if not options.files:
        print("usage: run.py FILE... [--kinds KIND,KIND] [--via-http URL]", file=sys.stderr)
    for path in options.files:
        try:
            kinds = [kind for kind in options.kinds.split(",") if kind]
            url = options.via_http
            tally = run_via_http(path, kinds, url) if url else run_file(path, kinds)
        except UnjudgeableError as reason:
            print("%s: %s" % (path, reason), file=sys.stderr)
            judged = False
            continue
        passed += tally.passed
        failed += tally.failed
        judged = judged and not tally.unjudged
    print("%d passed, %d failed" % (passed, failed))
    if not judged:
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
