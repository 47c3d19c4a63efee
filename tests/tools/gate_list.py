# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates, one function each. They check whatever the tree holds; a gate with nothing to check fails."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

import debian
import interpreters
import tree
from gate_model import Gate, Job, Outcome, Skip, missing, read_counts, read_junit, verdict

CORE_COVERAGE = 95
INSTALL = tree.BUILD / "install"
RESULTS = tree.BUILD / "test"
STATES = tree.BUILD / "molecule"
NO_PYTHON = 3  # the exit code of make_venv.py when no Python fits
OLDEST_PYTHON = "3.9"
CORE_TESTS = "tests/unit/plugins/module_utils/core/"
ON_NODES = ("tests/unit/plugins/modules/", "tests/unit/plugins/module_utils/host/")
"""Tests of what runs on nodes. The core runs there, too; each Python plays its vectors, see the gate vectors."""
WITHOUT_ANSIBLE = (
    *("bench", "cloud", "docs", "examples", "lab", "monitoring", "tools", "test_architecture.py"),
    *("plugins/module_utils/cli", "plugins/module_utils/cluster", "plugins/module_utils/core"),
)
"""What in tests/unit says nothing about a release of ansible-core; the core has the vectors on each Python."""
VECTORS = (
    ("tests/vectors/oke_child_range.json",),
    ("tests/vectors/spiderpool_cases.json",),
    ("tests/vectors/ack_cases.json",),
)
WITH_KUBELETS = frozenset({"oke_dranet", "range_change"})
"""Scenarios with two emulated kubelets, which take too long beside all other gates. `make e2e` runs them, too."""
EVERY_SCENARIO = "RDMA_K8S_EVERY_SCENARIO"
"""The variable of the environment with which `make e2e` asks for them."""
NO_LAB = 3
"""Exit code of `tests/lab check` on a machine that cannot run the lab."""
ISOLATED = frozenset({"ansible-test"})
NODES = frozenset({"nodes"})


def tool(name: str) -> Path:
    """Return the path of a program of the development environment."""
    return tree.BIN / name


# --- style, types, licences ---------------------------------------------------------------------------------


def ruff(job: Job) -> Outcome:
    """Check the code with ruff."""
    return verdict(job.run(tool("ruff"), "check", ".")[0], "ruff found something")


def ruff_format(job: Job) -> Outcome:
    """Check that ruff would not format anything differently."""
    return verdict(
        job.run(tool("ruff"), "format", "--check", "--diff", ".")[0], "some files are not formatted"
    )


def mypy(job: Job) -> Outcome:
    """Check the types: strictly in the core and in the tools, elsewhere as far as there are types."""
    package = "ansible_collections.rdma.k8s.plugins.module_utils"
    outcome = verdict(
        job.run(tool("mypy"), "--strict", "-p", f"{package}.core")[0], "the core has type errors"
    )
    outcome.add(verdict(job.run(tool("mypy"), "-p", package)[0], "module_utils has type errors"))
    files = sorted((tree.COPY / "tests" / "tools").glob("*.py"))
    env = {**tree.environment(), "MYPYPATH": str(tree.COPY / "tests" / "tools")}
    options = ("--strict", "--no-namespace-packages", "--no-explicit-package-bases")
    code = job.run(tool("mypy"), *options, *files, env=env)[0]
    outcome.add(verdict(code, "tests/tools has type errors"))
    return outcome


def reuse(job: Job) -> Outcome:
    """Check that every file names its licence."""
    return verdict(job.run(tool("reuse"), "lint", "--lines")[0], "some files have no licence")


def changelog(job: Job) -> Outcome:
    """Check the changelog fragments, and that the changelog files are what antsibull-changelog makes."""
    outcome = verdict(job.run(tool("antsibull-changelog"), "lint")[0], "a changelog fragment is wrong")
    code = job.run(tool("python"), "tests/tools/changelog.py", "--check")[0]
    outcome.add(verdict(code, "CHANGELOG.* differ from the fragments; run `make changelog`"))
    return outcome


def ansible_lint(job: Job) -> Outcome:
    """Run ansible-lint with its strictest profile."""
    code, output = job.run(tool("ansible-lint"), "--profile", "production", "--offline", "--nocolor")
    outcome = verdict(code, "ansible-lint found something")
    if re.search(r"\b0 files processed|in 0 files", output):
        outcome.broken.append("ansible-lint found no file to look at")
    return outcome


def yamllint(job: Job) -> Outcome:
    """Check the YAML files."""
    return verdict(job.run(tool("yamllint"), "--strict", ".")[0], "yamllint found something")


# --- tests without a node -----------------------------------------------------------------------------------


def environment_of(job: Job, kind: str) -> Path | Outcome:
    """Make one of the environments of make_venv.py; return its Python, or how the gate ends without it."""
    code = job.run(sys.executable, "tests/tools/make_venv.py", kind, cwd=tree.ROOT)[0]
    if code == NO_PYTHON:
        return Outcome(skips=[Skip(f"this machine has no Python that fits requirements/{kind}.txt")])
    if code:
        return verdict(code, f"the environment build/venv-{kind} could not be made")
    return tree.BUILD / f"venv-{kind}" / "bin" / "python"


PARALLEL = ("-n", "2", "--dist", "loadfile")


def shells(job: Job) -> None:
    """Have the smallest shell of container images: the programs that run inside pods are tested in it."""
    debian.get(job, ("busybox",), "busybox-static")


def pytest(job: Job, python: Path, name: str, *words: str | Path, **variables: str) -> Outcome:
    """Run tests with the given Python and return their counts."""
    junit = RESULTS / f"{name}.xml"
    junit.unlink(missing_ok=True)
    cache = f"cache_dir={tree.BUILD / 'cache' / name}"
    env = {**tree.environment(), "COVERAGE_FILE": str(RESULTS / f"{name}.coverage"), **variables}
    code = job.run(python, "-m", "pytest", "-q", "-o", cache, "--junit-xml", junit, *words, env=env)[0]
    outcome = read_junit(junit)
    if code == 5 or not outcome.passed + outcome.failed:
        outcome.broken.append("no test ran")
    elif code not in (0, 1):
        outcome.broken.append(f"pytest ended with exit code {code}")
    return outcome


def units(job: Job) -> Outcome:
    """Run the unit tests, and demand that those of the core cover its branches."""
    shells(job)
    measured = ("--cov=plugins/module_utils/core", "--cov-branch", "--cov-report=")
    outcome = pytest(job, tool("python"), "units-core", *PARALLEL, *measured, CORE_TESTS)
    outcome.add(pytest(job, tool("python"), "units", *PARALLEL, f"--ignore={CORE_TESTS}", "tests/unit"))
    env = {**tree.environment(), "COVERAGE_FILE": str(RESULTS / "units-core.coverage")}
    code, output = job.run(tool("coverage"), "report", f"--fail-under={CORE_COVERAGE}", env=env)
    total = re.search(r"^TOTAL.*?([\d.]+)%", output, re.M)
    outcome.note = f"coverage of the core {total[1]} %" if total else ""
    outcome.add(verdict(code, f"the tests cover less than {CORE_COVERAGE} % of the core's branches"))
    return outcome


def vectors(job: Job) -> Outcome:
    """Run the test vectors on each Python, without Ansible, PyYAML and pyroute2, as the runner promises."""
    if not (tree.COPY / "tests" / "vectors" / "run.py").is_file():
        return missing("tests/vectors/run.py", "the vectors")
    hidden = RESULTS / "hidden"
    hidden.mkdir(parents=True, exist_ok=True)
    for name in ("ansible", "ansible_collections", "yaml", "pyroute2", "rdma_k8s"):
        sentence = "the vectors must run without this package"
        (hidden / f"{name}.py").write_text(f"raise ImportError({sentence!r}, name={name!r})\n")
    env = {**tree.environment(), "PYTHONPATH": str(hidden)}
    pythons = interpreters.find(tree.NODE_PYTHONS)
    outcome = Outcome(note="Python " + " ".join(pythons))
    for python, words in itertools.product((tool("python"), *pythons.values()), VECTORS):
        code, output = job.run(python, "tests/vectors/run.py", *words, env=env)
        found = read_counts(output)
        if not found.failed:
            found.add(verdict(code, f"the runner of the vectors failed for {words[0]}"))
        if not found.passed + found.failed:
            found.broken.append(f"no vector of {words[0]} ran")
        outcome.add(found)
    return outcome


def provider(job: Job) -> Outcome:
    """Check the provider's types, test it as a process, and send it the vectors that its contract can express."""
    if not (tree.COPY / "image" / "rdma_k8s_provider").is_dir():
        return missing("image/rdma_k8s_provider", "the provider")
    packages = RESULTS / "provider"
    packages.mkdir(parents=True, exist_ok=True)
    for name, source in (
        ("rdma_k8s", "plugins/module_utils"),
        ("rdma_k8s_provider", "image/rdma_k8s_provider"),
    ):
        (packages / name).unlink(missing_ok=True)
        (packages / name).symlink_to(tree.COPY / source)
    env = {**tree.environment(), "MYPYPATH": str(packages)}
    options = ("--strict", "--follow-imports", "silent", "-p", "rdma_k8s_provider")
    code = job.run(tool("mypy"), *options, cwd=packages, env=env)[0]
    outcome = verdict(code, "the provider has type errors")
    outcome.add(pytest(job, tool("python"), "provider", *PARALLEL, "tests/provider"))
    words = ("tests/vectors/run.py", "tests/vectors/oke_child_range.json", "--via-http", "spawn")
    code, output = job.run(tool("python"), *words)
    found = read_counts(output)
    if not found.failed:
        found.add(verdict(code, "the vectors could not be sent to the provider"))
    outcome.add(found)
    return outcome


def next_leg(job: Job) -> Outcome:
    """Run what can tell releases of ansible-core or Python apart on the newest ones."""
    python = environment_of(job, "next")
    if isinstance(python, Outcome):
        return python
    shells(job)
    ignored = (f"--ignore=tests/unit/{part}" for part in WITHOUT_ANSIBLE)
    outcome = pytest(job, python, "next-leg", *PARALLEL, *ignored, "tests/unit", RDMA_K8S_FEWER_EXAMPLES="1")
    env = {"PATH": f"{python.parent}:{tree.path_variable()}"}
    marked = ("-m", "both_legs", "tests/playbook")
    outcome.add(pytest(job, python, "next-leg-playbook", *PARALLEL, *marked, **env))
    return outcome


def playbook(job: Job) -> Outcome:
    """Run the preflight playbook as a user does: on recorded nodes, on this machine, over SSH."""
    debian.get(job, ("ssh",), "openssh-client")
    debian.get(job, ("sshd",), "openssh-server")
    return pytest(job, tool("python"), "playbook", *PARALLEL, "tests/playbook")


# --- ansible-test -------------------------------------------------------------------------------------------


def ansible_test(job: Job, *words: str) -> tuple[int, str]:
    """Run ansible-test in the copy."""
    env = tree.ansible_test_environment(tool("python"))
    return job.run(tool("ansible-test"), *words, "--color", "no", env=env)


def named_failures(output: str) -> list[str]:
    """Return the tests that ansible-test lists at its end as failed."""
    found = re.search(r"^FATAL: The \d+ \w+ test\(s\) listed below .*\n((?:(?!\w+:).+\n?)*)", output, re.M)
    return found[1].split("\n")[:-1] if found else []


def sanity(job: Job) -> Outcome:
    """Run every sanity test for the controller's Python and all Pythons of nodes that this machine has.

    Pylint, which takes longer than all others together, reads what is delivered; the tests have ruff.
    """
    outcome = Outcome()
    for words in (("--skip-test", "pylint"), ("--test", "pylint", "plugins/")):
        code, output = ansible_test(job, "sanity", "--local", *words)
        ran = set(re.findall(r"^Running sanity test (.+)$", output, re.M))
        failed = named_failures(output)
        skipped = re.findall(r"WARNING: Skipping sanity test (.+?) (?:because|due to) (.+)$", output, re.M)
        outcome.passed += max(len(ran) - len(failed), 0)
        outcome.failed += len(failed)
        outcome.failures += [(test, "") for test in failed]
        outcome.skips += [Skip(reason, re.sub("[\"']", "", test)) for test, reason in skipped]
        if code and not failed:
            outcome.broken.append(f"ansible-test sanity {' '.join(words)} ended with exit code {code}")
        if not ran:
            outcome.broken.append(f"no sanity test ran for {' '.join(words)}")
    return outcome


def units_oldest(job: Job) -> Outcome:
    """Run the unit tests of what runs on nodes on the oldest Python of nodes."""
    if OLDEST_PYTHON not in interpreters.find((OLDEST_PYTHON,)):
        return Outcome(skips=[Skip(f"this machine has no Python {OLDEST_PYTHON}")])
    shells(job)
    results = tree.COPY / "tests" / "output" / "junit"
    for old in results.glob(f"python{OLDEST_PYTHON}-*.xml"):
        old.unlink()
    words = ("--venv", "--python", OLDEST_PYTHON, "--num-workers", "2", *ON_NODES)
    code = ansible_test(job, "units", *words)[0]
    outcome = Outcome()
    for path in sorted(results.glob(f"python{OLDEST_PYTHON}-*.xml")):
        outcome.add(read_junit(path))
    if code and not outcome.failed:
        outcome.broken.append(f"ansible-test units ended with exit code {code}")
    if not outcome.passed + outcome.failed:
        outcome.broken.append("no unit test ran")
    return outcome


def integration(job: Job) -> Outcome:
    """Run the integration targets that need nothing but this machine."""
    targets = tree.COPY / "tests" / "integration" / "targets"
    names = sorted(path.parents[1].name for path in targets.glob("*/tasks/main.yml"))
    names += sorted(path.parent.name for path in targets.glob("*/runme.sh"))
    names = [name for name in names if not name.startswith("setup_")]
    if not names:
        return Outcome(broken=["tests/integration/targets has no target"])
    code, output = ansible_test(
        job, "integration", "--local", "--allow-destructive", "--allow-root", "--continue-on-error"
    )
    ran = set(re.findall(r"^Running (\S+) integration test", output, re.M))
    failed = named_failures(output)
    outcome = Outcome(passed=max(len(ran) - len(failed), 0), failed=len(failed))
    if code and not failed:
        outcome.broken.append(f"ansible-test integration ended with exit code {code}")
    outcome.skips += [Skip("its aliases exclude it here", name) for name in names if name not in ran]
    if not ran:
        outcome.broken.append("no integration target ran")
    return outcome


# --- documentation and the tarball --------------------------------------------------------------------------


def docs(job: Job) -> Outcome:
    """Check the documentation of all plugins and roles and the pages of the site."""
    options = (
        "--plugin-docs",
        "--skip-rstcheck",
        "--check-extra-docs-refs",
        "--validate-collection-refs",
        "self",
    )
    command = (tool("antsibull-docs"), "lint-collection-docs", *options, ".")
    return verdict(job.run(*command)[0], "antsibull-docs found something")


def install(job: Job) -> Outcome:
    """Build the tarball, install it in an empty place, check the documentation of every plugin there."""
    shutil.rmtree(INSTALL, ignore_errors=True)
    INSTALL.mkdir(parents=True)
    code = job.run(tool("python"), "tests/tools/tree.py", "--build", cwd=tree.ROOT)[0]
    if code:
        return verdict(code, "the tarball could not be built")
    tarball = next(tree.DIST.glob("*.tar.gz"))
    env = {**tree.environment(), "ANSIBLE_COLLECTIONS_PATH": str(INSTALL)}
    command = (tool("ansible-galaxy"), "collection", "install", tarball, "-p", INSTALL, "--offline")
    code, output = job.run(*command, cwd=INSTALL, env=env)
    if code or "was installed successfully" not in output:
        return Outcome(broken=["the tarball could not be installed"])
    size = tarball.stat().st_size // 1024
    folder = INSTALL / "ansible_collections" / "rdma" / "k8s"
    code, output = job.run(
        tool("python"), tree.ROOT / "tests/tools/plugin_docs.py", folder, cwd=INSTALL, env=env
    )
    outcome = read_counts(output)
    outcome.note = f"tarball {size} kB"
    if code and not outcome.failed:
        outcome.broken.append("the documentation of the installed plugins could not be checked")
    return outcome


def environment_image(job: Job) -> Outcome:
    """Let ansible-builder make the context of the execution environment, and find what the collection needs in it."""
    tarball = next(tree.DIST.glob("*.tar.gz"), None)
    if tarball is None:
        return Outcome(broken=["there is no tarball for the execution environment"])
    work = RESULTS / "environment-image"
    shutil.rmtree(work, ignore_errors=True)
    (work / "build" / "dist").mkdir(parents=True)
    shutil.copy2(tarball, work / "build" / "dist")
    shutil.copy2(tree.COPY / "execution-environment.yml", work)
    outcome = verdict(
        job.run(tool("ansible-builder"), "create", cwd=work)[0], "ansible-builder refuses the file"
    )
    wanted = re.findall(r"^ +- name: (\S+)$", (work / "execution-environment.yml").read_text(), re.M)
    outcome.broken += [
        f"execution-environment.yml names {name}, which is not in the context"
        for name in wanted
        if not (work / "context" / "_build" / name).is_file()
    ]
    code, output = job.run(tool("ansible-builder"), "introspect", INSTALL)
    outcome.add(verdict(code, "ansible-builder cannot read the installed collection"))
    found = set(re.findall(r"^- ['\"]?([\w.-]+)", output, re.M))
    lines = (tree.COPY / "requirements.txt").read_text().splitlines()
    needed = {re.split("[<>=]", line)[0] for line in lines if line and line[0] != "#"}
    needed -= {"ansible-core", "PyYAML"}  # the first brings the second, and ansible-builder leaves both out
    needed.add("openssh-client")
    if needed - found:
        outcome.broken.append(f"the image would lack {', '.join(sorted(needed - found))}")
    return outcome


def verify(job: Job) -> Outcome:
    """Let ansible-galaxy verify the checksums of what was installed."""
    env = {**tree.environment(), "ANSIBLE_COLLECTIONS_PATH": str(INSTALL)}
    command = (tool("ansible-galaxy"), "collection", "verify", "rdma.k8s", "--offline", "-p", INSTALL)
    code, output = job.run(*command, cwd=INSTALL, env=env)
    outcome = verdict(code, "the installed collection differs from its manifest")
    if "Successfully verified" not in output:
        outcome.broken.append("ansible-galaxy verified nothing")
    return outcome


def importer(job: Job) -> Outcome:
    """Import the tarball as Galaxy would."""
    settings = RESULTS / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nrun_ansible_lint = False\ncheck_required_tags = True\n")
    work = RESULTS / "galaxy-importer"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    tarball = next(tree.DIST.glob("*.tar.gz"), None)
    if tarball is None:
        return Outcome(broken=["there is no tarball to import"])
    env = {**tree.environment(), "GALAXY_IMPORTER_CONFIG": str(settings)}
    code, output = job.run(tool("python"), "-m", "galaxy_importer.main", tarball, cwd=work, env=env)
    outcome = verdict(code, "the Galaxy importer refuses the tarball")
    if "Importer processing completed successfully" not in output:
        outcome.broken.append("the Galaxy importer did not say that it completed")
    if re.search(r"^(ERROR|WARNING)\b", output, re.M):
        outcome.broken.append("the Galaxy importer complained")
    return outcome


def monitoring(job: Job) -> Outcome:
    """Let promtool check the alerts, play their tests, and parse every expression of the dashboard."""
    program = debian.find(("promtool",)) or debian.unpacked(job, "prometheus", "usr/bin/promtool")
    if program is None:
        return Outcome(skips=[Skip("this machine has neither promtool nor the package that brings it")])
    folder = tree.COPY / "monitoring"
    outcome = verdict(
        job.run(program, "check", "rules", folder / "alerts.yml")[0], "promtool refuses the alerts"
    )
    code = job.run(program, "test", "rules", folder / "alerts-test.yml")[0]
    outcome.add(verdict(code, "an alert says something else than its test"))
    panels = json.loads((folder / "dashboard.json").read_text())["panels"]
    asked = [target["expr"].replace("$node", ".*") for panel in panels for target in panel["targets"]]
    rules = [{"record": f"dashboard:{number}", "expr": expr} for number, expr in enumerate(asked)]
    made = RESULTS / "dashboard-rules.yml"
    made.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    outcome.add(verdict(job.run(program, "check", "rules", made)[0], "promtool refuses the dashboard"))
    return outcome


def readme(job: Job) -> Outcome:
    """Run the commands of the README exactly as they are written."""
    if not (tree.COPY / "README.md").is_file():
        return missing("README.md", "its commands")
    code, output = job.run(tool("python"), "tests/tools/readme_commands.py", "README.md", cwd=tree.ROOT)
    outcome = read_counts(output)
    outcome.skips = [
        Skip(reason, command) for command, reason in re.findall(r"^not run: (.+) \((.+)\)$", output, re.M)
    ]
    if code and not outcome.failed:
        outcome.broken.append("the commands of the README could not be run")
    return outcome


def browser(job: Job) -> Outcome:
    """Use the HTML report in a real browser, from a file."""
    program = os.environ.get("RDMA_K8S_CHROMIUM") or debian.get(
        job, debian.CHROMIUM, "chromium", "fonts-dejavu-core"
    )
    if program is None:
        return Outcome(skips=[Skip("this machine has no Chromium, and this user cannot install it")])
    python = environment_of(job, "browser")
    if isinstance(python, Outcome):
        return python
    env = {"RDMA_K8S_CHROMIUM": program, "RDMA_K8S_SCREENSHOTS": str(RESULTS / "screenshots")}
    return pytest(job, python, "browser", "-rP", "tests/browser", **env)


def own_runner(job: Job, script: str, *words: str, trouble: str, python: Path | None = None) -> Outcome:
    """Run a script of tests/tools whose last line counts, and return its counts."""
    code, output = job.run(python or tool("python"), script, *words, cwd=tree.ROOT)
    outcome = read_counts(output)
    outcome.skips = [
        Skip(reason, test) for test, reason in re.findall(r"^skipped: (.+) \((.+)\)$", output, re.M)
    ]
    outcome.failures = [
        (line.split("  ")[0][:80], line) for line in re.findall(r"^FAIL +(.+)$", output, re.M)
    ]
    if code and not outcome.failed:
        outcome.broken.append(trouble)
    return outcome


def security(job: Job) -> Outcome:
    """Look for dangerous code in what is delivered, and for secrets in all files."""
    outcome = own_runner(job, "tests/tools/security.py", "bandit", trouble="bandit could not be run")
    outcome.add(
        own_runner(job, "tests/tools/security.py", "secrets", trouble="the files could not be searched")
    )
    return outcome


def fuzz(job: Job) -> Outcome:
    """Damage what comes from outside, for a bounded time, and see the core answer with a value or a typed error."""
    return own_runner(job, "tests/tools/fuzz.py", trouble="the core could not be fuzzed")


def advisories(job: Job) -> Outcome:
    """Compare the lock files with known advisories."""
    python = environment_of(job, "audit")
    if isinstance(python, Outcome):
        return python
    return own_runner(job, "tests/tools/advisories.py", trouble="pip-audit could not be run", python=python)


def collectors(job: Job) -> Outcome:
    """Read the same nodes with every Python of nodes, and with the oldest and the newest pyroute2."""
    return own_runner(job, "tests/tools/collectors.py", trouble="the collectors could not be compared")


# --- speed and nodes ----------------------------------------------------------------------------------------


def bench_gate(job: Job) -> Outcome:
    """Hold the collector to its CPU ratio and to one module task a host, measured in this run."""
    if not (tree.COPY / "tests" / "bench" / "gate.py").is_file():
        return missing("tests/bench/gate.py", "the cost of the collector")
    code, output = job.run(tool("python"), "tests/bench/gate.py", cwd=tree.ROOT)
    outcome = read_counts(output)
    if code and not outcome.failed:
        outcome.broken.append("the bench gate failed")
    return outcome


def no_lab(job: Job) -> str:
    """Return the reason why the lab's nodes cannot run here, or nothing; what they need is installed if it can be."""
    code, output = job.run(tool("python"), "tests/lab", "check")
    return output.rstrip().splitlines()[-1] if code == NO_LAB else ""


def lab(job: Job) -> Outcome:
    """Let the lab check itself: what its nodes look like, what its faults do, what their kernel says."""
    if not (tree.COPY / "tests" / "lab" / "__main__.py").is_file():
        return missing("tests/lab", "the lab")
    reason = no_lab(job)
    if reason:
        return Outcome(skips=[Skip(reason)])
    code, output = job.run(tool("python"), "tests/lab", "selftest")
    outcome = read_counts(output)
    if code and not outcome.failed:
        outcome.broken.append(f"the selftest of the lab ended with exit code {code}")
    return outcome


def api(job: Job) -> Outcome:
    """Test what talks to the Kubernetes API on a real control plane, which this starts natively."""
    return pytest(job, tool("python"), "api", "tests/cluster")


def cluster(job: Job) -> Outcome:
    """Let the lab's control plane with simulated nodes check itself; `make e2e` has virtual nodes, too."""
    if not (tree.COPY / "tests" / "lab" / "cluster_test.py").is_file():
        return missing("tests/lab/cluster_test.py", "the lab's cluster")
    code, output = job.run(tool("python"), "tests/lab", "cluster", "test", "--only", "native")
    outcome = read_counts(output)
    if code and not outcome.failed:
        outcome.broken.append(f"the test of the cluster ended with exit code {code}")
    return outcome


def ansible_failures(output: str) -> str:
    """Return the tasks that failed in runs of Ansible, each with what it said; ignored failures are left out."""
    lines, task, found = output.splitlines(), "", []
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        if line.startswith(("TASK [", "RUNNING HANDLER [")):
            task = line.rstrip("* ")
        elif re.match(r"(fatal|failed): ", line) and after != "...ignoring":
            found.append(f"{task}\n{line}")
    return "\n".join(found)


def state_of_its_own(name: str) -> dict[str, str]:
    """Return the environment of a scenario that begins anew.

    Molecule keeps its state by the name of the project's directory, which all clones share: what an interrupted run
    left there would make the next one, in whatever clone, take nodes for started that are not.
    """
    place = STATES / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return {**tree.environment(), "MOLECULE_EPHEMERAL_DIRECTORY": str(place)}


def molecule(job: Job) -> Outcome:
    """Run the molecule scenarios, each of which makes and ends its own nodes."""
    folder = tree.COPY / "extensions" / "molecule"
    left = frozenset() if os.environ.get(EVERY_SCENARIO) else WITH_KUBELETS
    names = sorted({path.parent.name for path in folder.glob("*/molecule.yml")} - left)
    if not names:
        return missing("extensions/molecule/*/molecule.yml", "the collection on real nodes")
    outcome = Outcome()
    for name in names:
        on_lab = "tasks/lab_up.yml" in (folder / name / "create.yml").read_text()
        reason = no_lab(job) if on_lab else "this user is not root" * (os.geteuid() != 0)
        if reason:
            outcome.skips.append(Skip(reason, name))
            continue
        begin = time.monotonic()
        code, output = job.run(tool("molecule"), "test", "-s", name, env=state_of_its_own(name))
        outcome.times.append((name, time.monotonic() - begin))
        if code:
            outcome.failed += 1
            said = ansible_failures(output)
            outcome.failures.append((name, said or f"molecule ended with exit code {code}"))
        else:
            outcome.passed += 1
    return outcome


# Emulated nodes keep little more than one CPU busy and take the longest, then comes what waits for a control plane. So
# these begin, and all else runs beside them.
GATES: list[Gate] = [
    Gate("molecule", "scenarios on nodes of the lab", molecule, polite=False, lane=NODES),
    Gate("api", "what talks to the Kubernetes API, on a real control plane", api, polite=False, waits=True),
    Gate("lab", "the lab of virtual nodes checks itself", lab, polite=False, lane=NODES),
    Gate("cluster", "the lab's control plane checks itself", cluster, polite=False, lane=NODES),
    Gate("ruff", "code style and common mistakes", ruff),
    Gate("ruff-format", "code format", ruff_format),
    Gate("reuse", "a licence for every file", reuse),
    Gate("changelog", "changelog fragments", changelog),
    Gate("yamllint", "YAML style", yamllint),
    Gate("mypy", "types, strict in the core", mypy),
    Gate("vectors", "the test vectors, without Ansible", vectors),
    Gate("units", "unit tests with branch coverage of the core", units),
    Gate("ansible-lint", "Ansible content, production profile", ansible_lint),
    Gate("install", "build, install from the tarball, complete documentation of every plugin", install),
    Gate("verify", "checksums of the installed collection", verify, after=("install",)),
    Gate("ee", "the execution environment, by ansible-builder", environment_image, after=("install",)),
    Gate("importer", "the Galaxy importer", importer, after=("install",)),
    Gate("docs", "documentation markup and references", docs),
    Gate("monitoring", "alerts and dashboard, by promtool", monitoring),
    Gate("security", "dangerous code by bandit, secrets in all files", security),
    Gate("advisories", "lock files against known advisories, by pip-audit", advisories),
    Gate("fuzz", "damaged input of the core, for a bounded time", fuzz),
    Gate("collectors", "what reads a node, on each Python and with two releases of pyroute2", collectors),
    Gate("sanity", "ansible-test sanity", sanity, lane=ISOLATED),
    Gate(
        f"units-{OLDEST_PYTHON}",
        f"ansible-test units of what runs on nodes, on Python {OLDEST_PYTHON}",
        units_oldest,
        lane=ISOLATED,
    ),
    Gate("integration", "ansible-test integration, targets for this machine", integration, lane=ISOLATED),
    Gate("playbook", "the preflight playbook, recorded, local and over SSH", playbook),
    Gate("next-leg", "unit tests and preflight on the newest ansible-core and Python", next_leg),
    Gate("readme", "the commands of the README", readme, after=("install",)),
    Gate(
        "provider", "the provider as a process, DRANET's client, the vectors through it", provider, alone=True
    ),
    Gate("browser", "the HTML report in a real browser", browser, alone=True),
    Gate("bench-gate", "CPU ratio and number of module tasks", bench_gate, alone=True),
]
