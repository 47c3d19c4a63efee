# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of the design that no linter knows, each with a proof that it can fail.

A rule is a function that takes files (path -> text) and returns sentences about what breaks it. It is run on the tree,
where it must find nothing, and on a small bad example, where it must find something.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
# The checkout itself, also when this is the copy of it in build/root.
CHECKOUT = str(ROOT).partition("/build/root/")[0]
UTILS = "plugins/module_utils/"
CORE = UTILS + "core/"

Files = Mapping[str, str]
Rule = Callable[[Files], "list[str]"]


def tracked() -> list[str]:
    """Return the files of the work tree that git knows or would take."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


@pytest.fixture(scope="module")
def files() -> Files:
    """Return the text files of the tree."""
    texts = {}
    for name in tracked():
        content = (ROOT / name).read_bytes()
        if b"\0" not in content[:4096]:
            texts[name] = content.decode("utf-8")
    return texts


# --- what a file imports ---------------------------------------------------------------------------------------------


@functools.cache
def parsed(path: str, text: str) -> ast.Module:
    """Return the syntax tree of a file; most rules look at the same files."""
    return ast.parse(text, path)


def python_files(files: Files, prefix: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield path and syntax tree of the Python files below `prefix`."""
    for path, text in files.items():
        if path.startswith(prefix) and path.endswith(".py"):
            yield path, parsed(path, text)


def imports(path: str, module: ast.Module) -> set[str]:
    """Return what a file imports, at any depth; what is in the collection as its path without `.py`."""
    found = set()
    own = "ansible_collections.rdma.k8s."
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*path.split("/")[: -node.level], *([base] if base else [])])
            elif base.startswith(own):
                base = base[len(own) :]
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__", "find_spec"):
                found.add(str(node.args[0].value))
    return {
        name.removeprefix(own).replace(".", "/") if name.startswith((own, "plugins.")) else name
        for name in found
    }


def reached(path: str, trees: Mapping[str, set[str]]) -> set[str]:
    """Return every file of the collection that `path` imports, also through others."""
    seen, todo = set(), [path]
    while todo:
        for name in trees.get(todo.pop(), set()):
            target = f"{name}.py"
            if target in trees and target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


# --- rules -----------------------------------------------------------------------------------------------------------

IMPURE = frozenset(
    [
        "asyncio",
        "builtins",
        "ctypes",
        "fcntl",
        "getpass",
        "glob",
        "http",
        "importlib",
        "io",
        "locale",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "random",
        "secrets",
        "select",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "urllib",
        "uuid",
    ]
)
IMPURE_CALLS = frozenset(["open", "print", "input", "eval", "exec", "compile", "__import__", "breakpoint"])
CLOCKS = frozenset(["now", "utcnow", "today", "fromtimestamp"])


def core_is_pure(files: Files) -> list[str]:
    """The core has no I/O, no clock, no environment, no ansible, and knows none of the other rooms."""
    allowed = (CORE.rstrip("/"), UTILS + "deps")
    found = []
    for path, module in python_files(files, CORE):
        for name in sorted(imports(path, module)):
            top = name.split(".")[0]
            other_room = name.startswith(UTILS) and not name.startswith(allowed)
            if top in IMPURE or top.startswith("ansible") or other_room:
                found.append(f"{path} imports {name}")
        for node in ast.walk(module):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                    found.append(f"{path}:{node.lineno} calls {node.func.id}")
                if isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS:
                    found.append(f"{path}:{node.lineno} asks the clock: {node.func.attr}")
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "sys"
            ):
                # Sharing equal texts is pure; arguments, paths and streams are not.
                if node.attr != "intern":
                    found.append(f"{path}:{node.lineno} uses sys.{node.attr}")
            elif isinstance(node, ast.ImportFrom) and node.module == "sys":
                found += [
                    f"{path} imports sys.{alias.name}" for alias in node.names if alias.name != "intern"
                ]
    return found


def rooms_stay_apart(files: Files) -> list[str]:
    """host, cluster and cloud never import each other, nor the checks, and nothing there imports plugins."""
    found = []
    forbidden = {
        UTILS + "host/": (UTILS + "cluster", UTILS + "cloud", UTILS + "cli", CORE + "checks"),
        UTILS + "cluster/": (UTILS + "host", UTILS + "cloud", UTILS + "cli", CORE + "checks"),
        UTILS + "cloud/": (UTILS + "host", UTILS + "cluster", UTILS + "cli", CORE + "checks"),
        UTILS: ("plugins/modules", "plugins/action", "plugins/filter", "plugins/inventory"),
    }
    for prefix, names in forbidden.items():
        for path, module in python_files(files, prefix):
            found += [
                f"{path} imports {name}" for name in sorted(imports(path, module)) if name.startswith(names)
            ]
    return found


def the_cloud_knows_the_core_only(files: Files) -> list[str]:
    """What asks a cloud imports the core and the libraries, nothing else of this collection."""
    found = []
    for path, module in python_files(files, UTILS + "cloud/"):
        for name in sorted(imports(path, module)):
            own = name.startswith("plugins") and name not in (UTILS.rstrip("/"), UTILS + "deps")
            if own and not name.startswith((CORE, CORE.rstrip("/"), UTILS + "cloud", UTILS + "deps.")):
                found.append(f"{path} imports {name}")
    return found


def libraries_come_from_deps(files: Files) -> list[str]:
    """Only deps.py imports a library; it and the packages that run outside Ansible import no ansible."""
    found = []
    for path, module in python_files(files, "plugins/"):
        bridge = re.fullmatch(UTILS + r"_\w+\.py", path)
        for name in sorted(imports(path, module)):
            top = name.split(".")[0]
            inside = name.startswith(("plugins", "."))
            if top.startswith("ansible"):
                if path.startswith(UTILS) and not bridge:
                    found.append(f"{path} imports {name}")
            elif not inside and top not in sys.stdlib_module_names and path != UTILS + "deps.py":
                found.append(f"{path} imports {name}")
    return found


def utilities_import_relatively(files: Files) -> list[str]:
    """module_utils also runs under the name rdma_k8s, so it names neither its own place nor that name."""
    found = []
    for path, module in python_files(files, UTILS):
        for node in ast.walk(module):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            bad = [name for name in names if name.startswith(("ansible_collections", "rdma_k8s", "plugins"))]
            found += [f"{path}:{node.lineno} imports {name} absolutely" for name in bad]
    return found


def collectors_do_not_judge(files: Files) -> list[str]:
    """A module that reads a node never reaches the checks: they would travel to every node for nothing."""
    trees = {path: imports(path, module) for path, module in python_files(files, "plugins/")}
    found = []
    for path in sorted(trees):
        if path.startswith("plugins/modules/"):
            reach = reached(path, trees)
            checks = sorted(name for name in reach if name.startswith(CORE + "checks/"))
            if checks and any(name.startswith(UTILS + "host/") for name in reach):
                found.append(f"{path} reads a node and reaches {checks[0]}")
    return found


def no_package_files(files: Files) -> list[str]:
    """No __init__.py under plugins, its folders are namespace packages; no __main__.py, which Galaxy refuses."""
    names = ("/__init__.py", "/__main__.py")
    return [path for path in files if path.startswith("plugins/") and path.endswith(names)]


def nothing_catches_everything(files: Files) -> list[str]:
    """No `except Exception`, no bare `except`: a surprise must be seen. Tidying up and raising it again is fine."""
    found = []
    for path, module in python_files(files, ""):
        for node in ast.walk(module):
            if isinstance(node, ast.ExceptHandler):
                kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                names = {getattr(kind, "id", "everything" if kind is None else "") for kind in kinds}
                last = node.body[-1]
                again = isinstance(last, ast.Raise) and last.exc is None
                if names & {"everything", "Exception", "BaseException"} and not again:
                    found.append(f"{path}:{node.lineno} catches everything")
    return found


# REUSE-IgnoreStart
HEADER = (
    "# Copyright: (c) 2026, The rdma.k8s authors\n"
    "# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or "
    "https://www.gnu.org/licenses/gpl-3.0.txt)\n"
    "# SPDX-License-Identifier: GPL-3.0-or-later\n"
)
# REUSE-IgnoreEnd


def sources_have_the_header(files: Files) -> list[str]:
    """Each source begins with copyright, licence and SPDX line (after a first line that names a program)."""
    found = []
    for path, text in files.items():
        body = re.sub(r"\A(#!.*\n|---\n)", "", text)
        if path.endswith((".py", ".sh", ".yml", ".yaml")) and "/fragments/" not in path:
            generated = path == "changelogs/changelog.yaml" or path.startswith(
                ("tests/unit/data/", "examples/")
            )
            if not generated and not body.lstrip("\n").startswith(HEADER):
                found.append(f"{path} does not begin with the header")
    return found


# --- modules ---------------------------------------------------------------------------------------------------------

DOCUMENTS = ("DOCUMENTATION", "EXAMPLES", "RETURN")
CODE_LINES = 120


def documents(module: ast.Module) -> dict[str, tuple[str, int, int]]:
    """Return the documents of a plugin: name -> text, first and last line."""
    found = {}
    for node in module.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in DOCUMENTS:
                    found[target.id] = (node.value.value, node.lineno, node.end_lineno or node.lineno)
    return found


def modules_are_thin(files: Files) -> list[str]:
    """The code part of a module, without documents, comments and empty lines, has less than 120 lines."""
    found = []
    for path, module in python_files(files, "plugins/modules/"):
        spans = [range(first, last + 1) for _text, first, last in documents(module).values()]
        lines = [
            line
            for number, line in enumerate(files[path].splitlines(), 1)
            if line.strip() and not line.strip().startswith("#") and not any(number in span for span in spans)
        ]
        if len(lines) >= CODE_LINES:
            found.append(f"{path} has {len(lines)} lines of code, {CODE_LINES - 1} are allowed")
    return found


def fragments(files: Files) -> dict[str, dict[str, object]]:
    """Return the documentation fragments: name as used in a plugin -> content."""
    found = {}
    for path, module in python_files(files, "plugins/doc_fragments/"):
        for node in ast.walk(module):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                        part = "" if target.id == "DOCUMENTATION" else "." + target.id.lower()
                        name = f"rdma.k8s.{path.rsplit('/', 1)[1][:-3]}{part}"
                        found[name] = yaml.safe_load(node.value.value) or {}
    return found


def modules_are_documented(files: Files) -> list[str]:
    """A module documents check mode and diff mode, what it returns, and shows examples."""
    found, shared = [], fragments(files)
    for path, module in python_files(files, "plugins/modules/"):
        texts = documents(module)
        for name in DOCUMENTS:
            if name not in texts or not yaml.safe_load(texts[name][0]):
                found.append(f"{path} has no {name}")
        doc = yaml.safe_load(texts["DOCUMENTATION"][0]) if "DOCUMENTATION" in texts else {}
        used = doc.get("extends_documentation_fragment", [])
        attributes: dict[str, dict[str, object]] = {}
        for source in [shared.get(name, {}) for name in ([used] if isinstance(used, str) else used)] + [doc]:
            for name, value in (source.get("attributes") or {}).items():
                attributes.setdefault(name, {}).update(value)
        for name in ("check_mode", "diff_mode"):
            if not attributes.get(name, {}).get("support"):
                found.append(f"{path} does not document {name}")
    return found


def modules_are_in_a_group(files: Files) -> list[str]:
    """Each module is in one action group of meta/runtime.yml, and each entry there is a module."""
    modules = {Path(path).stem for path, _module in python_files(files, "plugins/modules/")}
    groups = (yaml.safe_load(files.get("meta/runtime.yml", "")) or {}).get("action_groups") or {}
    entries = [name for members in groups.values() for name in members if isinstance(name, str)]
    found = [f"{name} is in no action group" for name in sorted(modules - set(entries))]
    found += [f"{name} is no module" for name in sorted(set(entries) - modules)]
    return found + [f"{name} is in two groups" for name in sorted(set(entries)) if entries.count(name) > 1]


# --- roles and the rest ----------------------------------------------------------------------------------------------


def role_defaults_match(files: Files) -> list[str]:
    """The defaults of a role stand in its argument specification and in defaults/main.yml, and are the same."""
    found = []
    for role in sorted(
        {path.split("/")[1] for path in files if path.startswith("roles/") and path.count("/") > 1}
    ):
        spec_path, defaults_path = f"roles/{role}/meta/argument_specs.yml", f"roles/{role}/defaults/main.yml"
        if spec_path not in files:
            found.append(f"{spec_path} is missing")
            continue
        points = yaml.safe_load(files[spec_path])["argument_specs"]
        options = {
            name: value for point in points.values() for name, value in (point.get("options") or {}).items()
        }
        specified = {name: value["default"] for name, value in options.items() if "default" in value}
        defaults = yaml.safe_load(files.get(defaults_path, "")) or {}
        for name in sorted(set(specified) | set(defaults)):
            if name not in options:
                found.append(f"{defaults_path}: {name} is not in the specification")
            elif name not in specified or name not in defaults:
                found.append(f"{role}: {name} has a default in one place only")
            elif (type(specified[name]), specified[name]) != (type(defaults[name]), defaults[name]):
                found.append(
                    f"{role}: {name} is {specified[name]!r} in the specification, {defaults[name]!r} in defaults"
                )
        found += [
            f"{role}: {name} does not begin with {role}_"
            for name in sorted(options)
            if not name.startswith(role)
        ]
    return found


# Written in parts, so that this file does not hold what it forbids.
REGISTRIES = (
    "pypi org",
    "files pythonhosted org",
    "registry npmjs org",
    "deb debian org",
    "proxy golang org",
    "crates io",
)
MACHINE_PATHS = (
    r"/home/(?!user\b)[a-z][\w.-]{2,}/",
    r"/Users/[A-Za-z][\w.-]*/",
    r"/root/\.(?:cache|config|local|pyenv|ansible)\b",
)


def nothing_of_one_machine(files: Files) -> list[str]:
    """No file names a folder of somebody's machine or the host of a package registry."""
    top = Path(CHECKOUT)
    words = [r"(?<![\w.-])" + r"\.".join(name.split()) + r"\b" for name in REGISTRIES] + list(MACHINE_PATHS)
    if len(top.parts) > 2:
        words.append(re.escape(f"{top}/"))
    pattern = re.compile("|".join(words))
    found = []
    for path, text in files.items():
        if not path.startswith("LICENSES/") and path != "tests/unit/test_architecture.py":
            found += [f"{path} contains {match[0]}" for match in pattern.finditer(text)]
    return found


def versions_agree(files: Files) -> list[str]:
    """The collection and its command line have one version, and ask for the same libraries."""
    collection = yaml.safe_load(files["galaxy.yml"])["version"]
    found = []
    if f'\nversion = "{collection}"\n' not in files["pyproject.toml"]:
        found.append(f"pyproject.toml does not say version {collection}")
    if f'VERSION = "{collection}"' not in files.get(UTILS + "version.py", ""):
        found.append(f"{UTILS}version.py does not say version {collection}")
    wanted = re.findall(r"^([A-Za-z]\S+>=\S+)$", files["requirements.txt"], re.M)
    found += [
        f"pyproject.toml does not ask for {name}"
        for name in wanted
        if f'"{name}"' not in files["pyproject.toml"]
    ]
    return [sentence for sentence in found if "ansible-core" not in sentence]


# --- each rule on the tree, and on what it must refuse ---------------------------------------------------------------

MODULE = 'DOCUMENTATION = """\nmodule: x\nattributes:\n  check_mode: {support: full}\n"""\n'
BAD: list[tuple[Rule, dict[str, str], str]] = [
    (core_is_pure, {CORE + "x.py": "import os\n"}, "imports os"),
    (core_is_pure, {CORE + "x.py": "def f():\n    from pathlib import Path\n"}, "imports pathlib"),
    (
        core_is_pure,
        {CORE + "x.py": "from ansible.module_utils.basic import AnsibleModule\n"},
        "imports ansible",
    ),
    (core_is_pure, {CORE + "oke/x.py": "from ...host import sysfs\n"}, "imports plugins/module_utils/host"),
    (
        core_is_pure,
        {CORE + "x.py": "from ..cluster.api import get\n"},
        "imports plugins/module_utils/cluster",
    ),
    (core_is_pure, {CORE + "x.py": "text = open('x').read()\n"}, "calls open"),
    (core_is_pure, {CORE + "x.py": "import sys\nprogram = sys.argv[0]\n"}, "uses sys.argv"),
    (core_is_pure, {CORE + "x.py": "from sys import argv\n"}, "imports sys.argv"),
    (core_is_pure, {CORE + "x.py": "import datetime\nt = datetime.datetime.now()\n"}, "asks the clock"),
    (
        rooms_stay_apart,
        {UTILS + "host/x.py": "from ..cluster import api\n"},
        "imports plugins/module_utils/cluster",
    ),
    (
        rooms_stay_apart,
        {UTILS + "cluster/x.py": "from ..host import sysfs\n"},
        "imports plugins/module_utils/host",
    ),
    (
        rooms_stay_apart,
        {UTILS + "host/x.py": "from ..core.checks import node\n"},
        "imports plugins/module_utils/core/checks",
    ),
    (
        rooms_stay_apart,
        {UTILS + "cloud/x.py": "from ..cluster import client\n"},
        "imports plugins/module_utils/cluster",
    ),
    (
        rooms_stay_apart,
        {UTILS + "cluster/x.py": "from ..cloud.oci_network import read\n"},
        "imports plugins/module_utils/cloud",
    ),
    (
        the_cloud_knows_the_core_only,
        {UTILS + "cloud/x.py": "from .. import deps, records\nfrom ..core import net\n"},
        "imports plugins/module_utils/records",
    ),
    (libraries_come_from_deps, {CORE + "x.py": "import netaddr\n"}, "imports netaddr"),
    (
        libraries_come_from_deps,
        {"plugins/filter/x.py": "def f():\n    import jmespath\n"},
        "imports jmespath",
    ),
    (libraries_come_from_deps, {UTILS + "host/x.py": "import_module('pyroute2')\n"}, "imports pyroute2"),
    (libraries_come_from_deps, {UTILS + "deps.py": "import ansible\n"}, "imports ansible"),
    (
        utilities_import_relatively,
        {UTILS + "host/x.py": "import rdma_k8s.core\n"},
        "imports rdma_k8s.core absolutely",
    ),
    (
        utilities_import_relatively,
        {UTILS + "x.py": "from ansible_collections.rdma.k8s.plugins.module_utils.core import y\n"},
        "absolutely",
    ),
    (
        collectors_do_not_judge,
        {
            "plugins/modules/x.py": "from ..module_utils.host import a\nfrom ..module_utils.core import b\n",
            UTILS + "host/a.py": "",
            CORE + "b.py": "from .checks import c\n",
            CORE + "checks/c.py": "",
        },
        "reaches plugins/module_utils/core/checks/c.py",
    ),
    (no_package_files, {"plugins/modules/__init__.py": ""}, "__init__.py"),
    (no_package_files, {UTILS + "cli/__main__.py": ""}, "__main__.py"),
    (nothing_catches_everything, {"x.py": "try:\n    f()\nexcept Exception:\n    pass\n"}, "x.py:3"),
    (
        nothing_catches_everything,
        {"x.py": "try:\n    f()\nexcept (OSError, BaseException):\n    pass\n"},
        "x.py:3",
    ),
    (nothing_catches_everything, {"x.py": "try:\n    f()\nexcept:\n    pass\n"}, "x.py:3"),
    (sources_have_the_header, {"x.py": HEADER.replace("2026", "1999")}, "header"),
    (sources_have_the_header, {"x.yml": "---\na: b\n"}, "header"),
    (modules_are_thin, {"plugins/modules/x.py": MODULE + "a = 1\n" * CODE_LINES}, "120 lines of code"),
    (modules_are_documented, {"plugins/modules/x.py": MODULE}, "does not document diff_mode"),
    (modules_are_documented, {"plugins/modules/x.py": MODULE}, "has no RETURN"),
    (modules_are_in_a_group, {"plugins/modules/x.py": ""}, "x is in no action group"),
    (modules_are_in_a_group, {"meta/runtime.yml": "action_groups: {node: [y]}"}, "y is no module"),
    (
        role_defaults_match,
        {
            "roles/r/meta/argument_specs.yml": "argument_specs: {main: {options: {r_a: {default: '1'}, b: {}}}}",
            "roles/r/defaults/main.yml": "r_a: 1\nr_c: 2\n",
        },
        "r_a is '1' in the specification, 1 in defaults",
    ),
    (role_defaults_match, {"roles/r/tasks/main.yml": "---\n"}, "argument_specs.yml is missing"),
    (nothing_of_one_machine, {"x": "cd /home" + "/somebody/x"}, "/home" + "/somebody/"),
    (nothing_of_one_machine, {"x": "https://" + "pypi" + ".org/simple"}, "pypi" + ".org"),
    (nothing_of_one_machine, {"x": CHECKOUT + "/x"}, "contains"),
    (
        versions_agree,
        {
            "galaxy.yml": "version: 1.2.3",
            "pyproject.toml": '\nversion = "1.2.4"\n',
            "requirements.txt": "netaddr>=1\n",
        },
        "version 1.2.3",
    ),
]
RULES = list(dict.fromkeys(rule for rule, _files, _sentence in BAD))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule, files: Files) -> None:
    assert rule(files) == []


@pytest.mark.parametrize(
    ("rule", "example", "sentence"), BAD, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_rule_can_fail(rule: Rule, example: dict[str, str], sentence: str) -> None:
    assert any(sentence in found for found in rule(example)), rule(example)


def test_every_rule_is_proven() -> None:
    rules = {
        value
        for value in globals().values()
        if callable(value)
        and getattr(value, "__annotations__", {}) == {"files": "Files", "return": "list[str]"}
    }
    assert rules == set(RULES)


def test_a_good_module_passes() -> None:
    module = (
        'DOCUMENTATION = """\nmodule: x\nextends_documentation_fragment: [rdma.k8s.attributes]\n'
        'attributes:\n  check_mode: {support: full}\n"""\nEXAMPLES = "- a: b"\nRETURN = "a: b"\n'
    )
    fragment = 'class ModuleDocFragment:\n    DOCUMENTATION = "attributes: {diff_mode: {support: none}}"\n'
    example = {"plugins/modules/x.py": module, "plugins/doc_fragments/attributes.py": fragment}
    assert modules_are_documented(example) == []
    assert modules_are_thin(example) == []
