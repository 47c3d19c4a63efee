# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of every page is run as it is written, or as far as it can be without nodes and without a cluster.

The table :data:`RULES` says how a command is tested: the first rule whose expression fits the whole command counts. A
command that no rule fits, and a rule that fits no command, are failures. What cannot run here is named with the reason,
and its words are still read by a shell.

The sandbox of a page holds what its reader has: recorded nodes, a policy, an inventory, earlier results, manifests.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml

from ansible_collections.rdma.k8s.tests.lab import cli as lab
from ansible_collections.rdma.k8s.tests.support import documented
from ansible_collections.rdma.k8s.tests.support.documented import Command
from ansible_collections.rdma.k8s.tests.support.playbook import BIN, COLLECTION, LIMIT, Controller

ALL = documented.commands()
PAGES = sorted({command.page for command in ALL})
NETWORKS = {
    "document": "rdma.k8s/networks",
    "schema_version": 1,
    "networks": [{"kind": "vcn", "network": "10.140.0.0/16", "sources": ["VCN prod-vcn"], "used_by": []}],
    "ipv6_networks": [],
    "unread": [],
}
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  tolerations: [{key: node-role.alibabacloud.com/lingjun, operator: Exists, effect: NoSchedule}]
  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}]
  containers:
    - name: train
      image: registry.example/train:1
      resources: {limits: {rdma/hca: "1"}, requests: {rdma/hca: "1"}}
      securityContext: {capabilities: {add: [IPC_LOCK, SYS_RESOURCE]}}
      volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""


@dataclass(frozen=True)
class Sandbox:
    """A directory for the commands of one page."""

    controller: Controller
    folder: Path
    known: dict[str, int]

    def shell(self, line: str, stdin: str = "") -> int:
        """Run one line as a reader does; return its exit code. What Ansible did in a page before is not done again."""
        if line in self.known:
            return self.known[line]
        done = self.run(line, stdin)
        if done.returncode not in (0, 3, 4):
            print(line, done.stdout[-2000:], done.stderr[-2000:])
        if line.startswith("ansible"):
            self.known[line] = done.returncode
        return done.returncode

    def run(self, line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one line in the environment of a reader."""
        env = self.controller.environment(PYTHONPATH=str(self.folder.parent / "packages"))
        env["PATH"] = "%s:%s" % (self.folder.parent / "bin", env["PATH"])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line],
            cwd=self.folder,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done


# --- how a command is tested --------------------------------------------------------------------------------


def run(*codes: int) -> Callable[[Command, Sandbox], None]:
    """Run it as it is written; it must end with one of these codes."""

    def tested(command: Command, sandbox: Sandbox) -> None:
        assert sandbox.shell(command.line) in (codes or (0,)), command

    return tested


def fed(command: Command, sandbox: Sandbox) -> None:
    """Run what stands behind the first pipe; a manifest takes the place of what another program would write."""
    _left, line = command.line.split("|", 1)
    assert sandbox.shell(line, (sandbox.folder / "manifests" / "pod.yml").read_text("utf-8")) == 0, command


def variables(words: list[str], known: frozenset[str]) -> None:
    """Each variable that is set with ``-e`` means something."""
    given: list[str] = []
    for option, value in zip(words, words[1:]):
        if option != "-e" or value.startswith("@"):
            continue
        given += json.loads(value) if value.startswith("{") else [value.split("=", 1)[0]]
    assert sorted(set(given) - known) == [], words


def syntax(command: Command, sandbox: Sandbox) -> None:
    """A playbook of this collection that needs a cluster or root on nodes: its options, its variables, its syntax."""
    words = shlex.split(command.line)
    name = next(word for word in words if word.startswith("rdma.k8s.")).rsplit(".", 1)[-1]
    known = documented.playbook_variables(name) | documented.all_role_variables()
    variables(words, known)
    if "@settings.yml" in words:
        shown = [command.page, "docs/howto/bring-up.md"]
        settings = [
            doc for page in shown for doc in documented.yaml_of(COLLECTION / page) if isinstance(doc, dict)
        ]
        assert sorted(set(settings[0]) - known) == []
        (sandbox.folder / "settings.yml").write_text(yaml.safe_dump(settings[0]), encoding="utf-8")
    assert sandbox.shell(command.line + " --syntax-check") == 0, command


def own_playbook(page: str) -> Callable[[Command, Sandbox], None]:
    """A playbook that a page shows in full: its options, its variables, its syntax."""

    def tested(command: Command, sandbox: Sandbox) -> None:
        words = shlex.split(command.line)
        plays = [
            doc
            for doc in documented.yaml_of(COLLECTION / page)
            if documented.is_play(doc) and "roles" in doc[0]
        ]
        assert plays, "%s shows no playbook with a role" % page
        variables(words, documented.all_role_variables())
        name = next(word for word in words if word.endswith(".yml") and word != "inventory.yml")
        (sandbox.folder / name).write_text(yaml.safe_dump(plays[-1]), encoding="utf-8")
        assert sandbox.shell(command.line + " --syntax-check") == 0, command

    return tested


def module(command: Command, sandbox: Sandbox) -> None:
    """A module that needs a cluster or root on nodes: its options exist, and their values are possible."""
    words = shlex.split(command.line)
    name = words[words.index("-m") + 1]
    raw = words[words.index("-a") + 1]
    given = json.loads(raw) if raw.startswith("{") else dict(word.split("=", 1) for word in raw.split())
    options = documented.module_options(name.rsplit(".", 1)[-1])
    assert sorted(set(given) - set(options)) == [], command
    for option, value in given.items():
        choices = options[option].get("choices")
        assert choices is None or value in choices, command


def make(command: Command, sandbox: Sandbox) -> None:
    """Another gate runs it, or it takes too long: make knows how."""
    done = subprocess.run(
        ["make", "-n", *shlex.split(command.line)[1:]], cwd=COLLECTION, capture_output=True, check=False
    )
    assert done.returncode == 0, (command, done.stderr)


def lab_command(command: Command, sandbox: Sandbox) -> None:
    """The lab's own tests run it: here its command line must be understood."""
    assert lab.parser().parse_args(shlex.split(command.line)[2:]), command


def options_of(command: Command, sandbox: Sandbox) -> None:
    """A program of ours that needs a lab or a socket: it exists, and knows the options."""
    words = shlex.split(command.line)
    last = 3 if words[1] == "-m" else 2
    env = {**sandbox.controller.environment(), "PYTHONPATH": str(COLLECTION / "image")}
    done = subprocess.run(
        [sys.executable, *words[1:last], "--help"],
        cwd=COLLECTION,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (command, done.stderr)
    assert [word for word in words if word.startswith("--") and word not in done.stdout] == [], command


def installs(command: Command, sandbox: Sandbox) -> None:
    """It changes the reader's Python, as the tests' own environment was changed: what it asks for is there."""
    wanted = [word for word in shlex.split(command.line) if re.fullmatch(r"[a-z0-9]+>=[0-9.]+", word)]
    for word in wanted:
        name, version = word.split(">=")
        found = [int(part) for part in metadata.version(name).split(".")]
        assert found >= [int(part) for part in version.split(".")], command


def tutorial(command: Command, sandbox: Sandbox) -> None:
    """A playbook of a tutorial: it ends well, prints what the page shows, and has nothing to do a second time."""
    first = sandbox.run(command.line)
    assert first.returncode == 0, (command, first.stdout, first.stderr)
    if " -e " in command.line:  # with nodes of the reader
        return
    shown = [text for language, text in documented.blocks(COLLECTION / command.page) if language == "text"]
    assert [line for text in shown for line in text.splitlines() if line not in first.stdout] == []
    again = sandbox.run(command.line)
    assert re.search(r"ok=[1-9]\d* +changed=0 +unreachable=0 +failed=0", again.stdout), (
        command,
        again.stdout,
    )


def installs_the_clone(command: Command, sandbox: Sandbox) -> None:
    """Install the collection from the sources into a place of the sandbox, and find there what tutorials name."""
    place = sandbox.folder / "installed"
    done = subprocess.run(
        [str(BIN / word) if word == "ansible-galaxy" else word for word in shlex.split(command.line)],
        cwd=COLLECTION,
        env=sandbox.controller.environment(ANSIBLE_COLLECTIONS_PATH=str(place)),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, (command, done.stderr)
    installed = place / "ansible_collections" / "rdma" / "k8s"
    assert (installed / "MANIFEST.json").is_file()
    assert (installed / "examples" / "tutorials" / "oke.yml").is_file()
    assert (installed / "plugins" / "modules" / "node_info.py").is_file()


def parts(line: str) -> list[list[str]]:
    """The words of each command of a line, split at pipes, redirections and the like; nothing is expanded."""
    lexer = shlex.shlex(line.replace("\n", " "), posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;()<>"):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in found if words]


def refused_filters(line: str) -> list[str]:
    """The expressions of ``jq`` and ``grep`` in a line that these programs do not understand. No file is read."""
    bad = []
    for words in parts(line):
        if words[0] == "jq":
            options = [word for word in words[1:] if word.startswith("-")]
            shown = next((word for word in words[1:] if not word.startswith("-")), "")
            command, good = ["jq", "-n", *options, shown], (0, 5)  # 5: null has nothing to iterate over
        elif words[0] == "grep":
            command, good = _grep(words[1:]), (1,)  # nothing fits an empty input
        else:
            continue
        done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
        if done.returncode not in good:
            bad.append("%s: %s" % (" ".join(command), done.stderr.strip()))
    return bad


def _grep(words: list[str]) -> list[str]:
    """The same ``grep`` on its standard input: options but ``-r``, patterns, no files."""
    command, rest = ["grep"], list(words)
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        if word == "-e":
            command += [word, rest.pop(0)]
        else:
            word = word if word.startswith("--") else word.replace("r", "")
            command += [word] if word != "-" else []
    if "-e" in command:
        return command
    return [*command, "--", next(word for word in rest if word != "--")]


def elsewhere(reason: str) -> Callable[[Command, Sandbox], None]:
    """It needs what this machine has not; names of ours in it must be those of the sources."""

    def tested(command: Command, sandbox: Sandbox) -> None:
        assert reason
        page = COLLECTION / command.page
        sources = _sources() + "".join(
            text for language, text in documented.blocks(page) if language == "yaml"
        )
        names = re.findall(r"\brdma[.-]k8s[/.-][a-z-]+(?:/[a-z-]+)?", command.line)
        lost = [
            name
            for name in names
            if name.rstrip("-") not in sources and '"%s"' % name.split("/")[-1].rstrip("-") not in sources
        ]
        assert lost == [], command
        assert refused_filters(command.line) == [], command

    return tested


def _sources() -> str:
    """The text of plugins, roles and manifests."""
    if not hasattr(_sources, "text"):
        files = [
            path
            for folder in ("plugins", "roles", "playbooks", "image")
            for path in (COLLECTION / folder).rglob("*")
            if path.suffix in (".py", ".yml", ".yaml", ".j2")
        ]
        files.append(COLLECTION / "execution-environment.yml")
        _sources.text = "".join(path.read_text("utf-8") for path in files)  # type: ignore[attr-defined]
    return str(_sources.text)  # type: ignore[attr-defined]


def part_of_a_shell(command: Command, sandbox: Sandbox) -> None:
    """It sets what the next command of the page needs; the tests have it set already."""


NODE = "reads or changes a node with RDMA NICs"
IMDS = "asks the metadata service of a cloud's instance"
API = "asks the API server of a cluster; the gates api and cluster test what it shows"
ON_NODES = (
    *(
        "ip",
        "rdma",
        "cat",
        "grep",
        "ls",
        "lsmod",
        "lspci",
        "lsinitramfs",
        "dmesg",
        "dcb",
        "stat",
        "sysctl",
        "systemctl",
    ),
    *(
        "journalctl",
        "readlink",
        "tr",
        "ibv_devinfo",
        "nft",
        "snap",
        "rpm",
        "containerd",
        "echo",
        "update-initramfs",
    ),
)
DRANET = "looks into the sources or the program of DRANET"

RULES: tuple[tuple[str, Callable[[Command, Sandbox], None]], ...] = (
    # The command line, on the sandbox of the page.
    (r"(helm|kustomize|kubectl) [^|]*\| rdma-k8s lint - .*|helm [^|]*\| rdma-k8s lint -", fed),
    (r"rdma-k8s report recorded .*--exit-code --strict.*", run(4)),  # the fleet with faults on purpose
    (r"rdma-k8s .*", run()),
    (r"ssh-keygen -Y .*", run()),
    (r"tar -tzf case\.tar\.gz", run()),
    (r"mkdir .*", run()),
    (r"cp -r examples/\S+ mine/\S+|rm mine/.*|sed -i .* mine/.*", run()),  # the tutorials mend a recording
    (r"python3 -m venv \S+", run()),
    (r"kinds=.*", part_of_a_shell),
    (r'eval "\$\(register-python-argcomplete rdma-k8s\)"', run()),
    # Playbooks, modules and the inventory.
    (r"ansible-playbook rdma\.k8s\.preflight .*(kubeconfig=|rdma_k8s\.yml).*", syntax),
    (
        r"ansible-playbook rdma\.k8s\.preflight -e snapshots=examples/fleet .*",
        run(2),
    ),  # it has faults on purpose
    (r"ansible-playbook rdma\.k8s\.preflight -e snapshots=recorded .*", run(2)),
    (r"ansible-playbook rdma\.k8s\.preflight -e '\{.*", syntax),
    (r"ansible-playbook rdma\.k8s\.preflight -i /tmp/lab.yml .*", syntax),
    (r"ansible-playbook rdma\.k8s\.preflight -i inventory\.yml.*", run()),
    (r"ansible-playbook rdma\.k8s\..*", syntax),
    (r"ansible-playbook examples/tutorials/.*", tutorial),
    (r"ansible-playbook -i inventory\.yml configure\.yml.*", own_playbook("docs/howto/configure-a-node.md")),
    (r"ansible-playbook deploy\.yml.*", own_playbook("docs/howto/deploy-on-oke.md")),
    (r"ansible-playbook agent\.yml.*", own_playbook("docs/howto/without-ssh.md")),
    (r"ansible-playbook site\.yml.*", own_playbook("roles/ack_lingjun/README.md")),
    (r"ansible \S+ (-i inventory\.yml )?(-b )?-m rdma\.k8s\..*", module),
    (r"ansible (localhost|all|gpu-07) (-i inventory\.yml )?-m ansible\.builtin\.(debug|ping).*", run()),
    (r"ansible-inventory .*", elsewhere(API)),
    # Our own programs.
    (r"make .*", make),
    (r"python3 tests/lab .*", lab_command),
    (r"(\.venv/bin/)?python3? (tests/roll/run\.py|extensions/.*|-m rdma_k8s_provider) .*", options_of),
    (
        r"\.venv/bin/python tests/bench/page\.py .*",
        elsewhere("needs results of make bench; a unit test calls it"),
    ),
    (r"python3 image/build\.py .*", elsewhere("builds the root of an image from packages of a distribution")),
    (
        r"\. \S+/bin/activate|cd \$\(python tests/tools/tree\.py\)|export ANSIBLE_COLLECTIONS_PATH=.*",
        part_of_a_shell,
    ),
    (r"(python3 -m )?pip install .*", installs),
    (r"python3 -m pip download .*|sha256sum .*", elsewhere("fetches wheels from an index of packages")),
    (r"promtool .*", elsewhere("the gate monitoring runs it")),
    (
        r"molecule test -s conformance",
        elsewhere("needs root on nodes; test_molecule_example.py plays its steps"),
    ),
    (r"ansible-runner run .*", elsewhere("needs a project of AWX; test_runner.py runs both jobs")),
    (r"ansible-galaxy collection install \.", installs_the_clone),
    (
        r"ansible-galaxy collection (install|verify) .*",
        elsewhere("the gates install, verify and readme run it"),
    ),
    (
        r"ansible-builder build .*",
        elsewhere("needs a base image; the gate ee makes the context of the image"),
    ),
    (r"buildah .*", elsewhere("needs a base image from a registry")),
    # What only a node, a cluster or a cloud can answer.
    (r"(kubectl|sleep 300; kubectl|for kind in) .*", elsewhere(API)),
    (r"curl .*169\.254\.169\.254.*", elsewhere(IMDS)),
    (r"oci .*", elsewhere("asks the API of a cloud")),
    (r"(go|dranet|helm) .*|go mod tidy|(ls|grep) .*\bpkg.*|grep -rn 'oke-rdma' \.", elsewhere(DRANET)),
    (r"jq .*recorded/gpu-07\.json", run()),
    (r"jq .*", elsewhere(NODE)),
    (r"(%s) .*" % "|".join(ON_NODES), elsewhere(NODE)),
    (r"(for ns in|for i in|cd /sys/class).*", elsewhere(NODE)),
)


def rule(command: Command) -> Optional[int]:
    """The number of the rule for a command."""
    for number, (expression, _tested) in enumerate(RULES):
        if re.fullmatch(expression, command.line, re.S):
            return number
    return None


# --- the sandbox --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def prepared(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader has, to be copied for each page."""
    home = tmp_path_factory.mktemp("reader")
    folder = home / "page"
    folder.mkdir()
    (home / "bin").mkdir()
    (home / "packages").mkdir()
    (home / "packages" / "rdma_k8s").symlink_to(COLLECTION / "plugins" / "module_utils")
    program = home / "bin" / "rdma-k8s"
    program.write_text("#!/bin/sh\nexec '%s' -m rdma_k8s.cli.main \"$@\"\n" % sys.executable)
    program.chmod(0o755)
    (folder / "examples").symlink_to(COLLECTION / "examples")
    (folder / "extensions").symlink_to(COLLECTION / "extensions")
    shutil.copytree(COLLECTION / "examples" / "fleet", folder / "recorded")
    for name in (
        "gpu-01.json",
        "gpu-02.json",
    ):  # with nothing wrong; what an inventory in the sandbox leads to
        (home / "good").mkdir(exist_ok=True)
        shutil.copy(COLLECTION / "examples" / "fleet" / name, home / "good")
    shutil.copy(COLLECTION / "examples" / "policy.yml", folder)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"gpu-07": local, "gpu-08": local}
    inventory = {
        "all": {
            "vars": {"snapshots": str(home / "good"), "rdma_child_range": "10.208.0.0/12"},
            "hosts": hosts,
        }
    }
    (folder / "inventory.yml").write_text(yaml.safe_dump(inventory))
    (folder / "prod.rdma_k8s.yml").write_text("plugin: rdma.k8s.nodes\n")
    (folder / "nodes.txt").write_text("gpu-21 10.140.77.40\n")
    (folder / "networks.json").write_text(json.dumps(NETWORKS))
    (folder / "crds").mkdir()
    (folder / "manifests").mkdir()
    (folder / "manifests" / "pod.yml").write_text(POD)
    results(Sandbox(controller, folder, {}))
    make_key = [
        "ssh-keygen",
        "-q",
        "-t",
        "ed25519",
        "-N",
        "",
        "-C",
        "a test",
        "-f",
        str(folder / "release-key"),
    ]
    subprocess.run(make_key, check=True)
    public = (folder / "release-key.pub").read_text("utf-8")
    (folder / "allowed_signers").write_text("fabric@example.org " + public)
    return folder


def results(sandbox: Sandbox) -> None:
    """Judge the example fleet, and keep the result under each name that pages use, in the order of their times."""
    assert (
        sandbox.shell("rdma-k8s report examples/fleet --policy examples/policy.yml --dir made --format json")
        == 0
    )
    document = json.loads((sandbox.folder / "made" / "result.json").read_text("utf-8"))
    shutil.rmtree(sandbox.folder / "made")
    names = ("accepted", "monday", "tuesday", "wednesday", "yesterday", "rdma-report/result", "today")
    for number, name in enumerate((*names, "after/result", "build/report/result", "result")):
        path = sandbox.folder / (name + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**document, "created_at": "2026-03-02T09:%02d:00Z" % number}))


@pytest.fixture(scope="module")
def known() -> dict[str, int]:
    """Exit codes of what Ansible ran in pages before."""
    return {}


@pytest.fixture
def sandbox(
    controller: Controller, prepared: Path, known: dict[str, int], tmp_path: Path
) -> Iterator[Sandbox]:
    """A sandbox for one page, removed with its test."""
    for name in ("bin", "packages"):
        (tmp_path / name).symlink_to(prepared.parent / name)
    folder = tmp_path / "page"
    shutil.copytree(prepared, folder, symlinks=True)
    return Sandbox(controller, folder, known)


# --- the tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("console", "$ one\nits output\n# two as root\n", ["one", "two as root"]),
        ("console", "$ one \\\n    --more\n$ two\n", ["one --more", "two"]),
        ("console", "$ one |\n    two\noutput\n", ["one |\ntwo"]),
        ("console", "$ for x in y; do\n>   one; done\n", ["for x in y; do\n  one; done"]),
        ("sh", "# a remark\none\ntwo\n", ["one", "two"]),
    ],
)
def test_what_a_block_holds(language: str, text: str, found: list[str]) -> None:
    assert documented.commands_of(language, text) == found


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("kubectl get pods -o json | jq -r '.items[] | .metadata.name'", 0),
        ("kubectl get pods -o json | jq -r '.items[ | .metadata.name'", 1),
        ("curl -s http://x/ | jq '.a' | grep -E '^(a|b)'", 0),
        ("curl -s http://x/ | jq '.a' | grep -E '^(a|b'", 1),
        ("grep -rn netns_mode /etc/modprobe.d", 0),
        ("kubectl get pods -o yaml | grep -A1 -- --provider", 0),
        ("kubectl get daemonsets -A | grep -i -e rdma -e sriov", 0),
        ("grep --no-such-option x /etc/hosts", 1),
    ],
)
def test_filters_that_are_not_understood_are_found(line: str, count: int) -> None:
    assert len(refused_filters(line)) == count


def test_there_are_commands() -> None:
    assert len(ALL) > 250
    assert len(PAGES) > 30


def test_every_command_has_a_rule_and_every_rule_a_command() -> None:
    found = {command: rule(command) for command in ALL}
    assert [command for command, number in found.items() if number is None] == []
    assert [RULES[number][0] for number in range(len(RULES)) if number not in found.values()] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page(page: str, sandbox: Sandbox) -> None:
    """In their order, in one sandbox; before that, a shell reads every one of them."""
    mine = [command for command in ALL if command.page == page]
    for command in mine:
        done = subprocess.run(["bash", "-n", "-c", command.line], capture_output=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    for command in mine:
        number = rule(command)
        assert number is not None, command
        RULES[number][1](command, sandbox)


def tasks_in(document: Any) -> Iterator[tuple[str, Any]]:
    """Names and arguments of our modules anywhere in a document."""
    if isinstance(document, list):
        for entry in document:
            yield from tasks_in(entry)
    elif isinstance(document, dict):
        for key, value in document.items():
            if isinstance(key, str) and key.startswith("rdma.k8s."):
                yield key.rsplit(".", 1)[-1], value
            else:
                yield from tasks_in(value)


def roles_in(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and variables of our roles anywhere in a document."""
    if isinstance(document, list):
        for entry in document:
            yield from roles_in(entry)
    elif isinstance(document, dict):
        role = document.get("role")
        include = document.get("ansible.builtin.include_role") or document.get("ansible.builtin.import_role")
        name = role or (include or {}).get("name", "")
        if isinstance(name, str) and name.startswith("rdma.k8s."):
            yield name.rsplit(".", 1)[-1], document.get("vars") or {}
        for value in document.values():
            yield from roles_in(value)


def test_yaml_of_pages_names_what_exists() -> None:
    """Options of modules and variables of roles, in every block of YAML."""
    lost, seen = [], 0
    for page in documented.pages():
        name = str(page.relative_to(COLLECTION))
        for document in documented.yaml_of(page):
            for task, given in tasks_in(document):
                seen += 1
                options = documented.module_options(task)
                lost += [(name, task, option) for option in given or {} if option not in options]
            for role, given in roles_in(document):
                seen += 1
                unknown = [option for option in given if option not in documented.role_variables(role)]
                lost += [(name, role, option) for option in unknown if option.startswith(role)]
    assert lost == []
    assert seen > 40
