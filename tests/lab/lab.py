# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a lab: up, wait, inventory, ssh, down, and what stands in its state file."""

from __future__ import annotations

import collections.abc
import dataclasses
import fcntl
import json
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time

from . import kubenode, plan, process, qemu, state_file
from .errors import LabError
from .image import Cache, Image, remove_tree
from .programs import Programs
from .progress import Progress

FIRST_PORT = 22220
"""Base of the ssh ports: node1 is at the base plus 1."""
PORT_STEP = 20
PORT_BLOCKS = 50
LONGEST_CONTROL_PATH = 80
GUEST_PROGRAM = ("python3", "-I", "-S", "/usr/local/lib/rdma-lab/node.py")
BOOT_TIMEOUT = 600.0
BANNER_PATIENCE = 2.0
LONGEST_PATIENCE = 30.0
"""Seconds for which a banner of sshd is awaited at first and at last."""


API_FILE = "api"
"""Where a node's relay reads where the API server is."""
RELAY = shlex.join(
    [sys.executable, "-I", "-S", str(pathlib.Path(__file__).resolve().with_name("relay.py")), API_FILE]
)


def each_node(nodes: collections.abc.Iterable[int], do: collections.abc.Callable[[int], object]) -> None:
    """Call ``do`` for all nodes at once and raise the first error when all are through."""
    errors: dict[int, LabError] = {}

    def one(node: int) -> None:
        try:
            do(node)
        except LabError as error:
            errors[node] = error

    threads = [threading.Thread(target=one, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for node in sorted(errors):
        raise errors[node]


def default_cache() -> pathlib.Path:
    """The cache directory: RDMA_LAB_CACHE, else rdma-k8s-lab in the user's cache directory."""
    own = os.environ.get("RDMA_LAB_CACHE")
    if own:
        return pathlib.Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base).absolute() / "rdma-k8s-lab"


def port_free(port: int) -> bool:
    """True when nothing listens at ``port`` of this machine's loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose_base_port(
    wish: int | None, nodes: int, reserved: set[int], free: collections.abc.Callable[[int], bool] = port_free
) -> int:
    """The base of the ssh ports: the wish if its ports are free, else the first free block."""
    if wish is not None:
        if not 1024 <= wish <= 65535 - plan.MAX_NODES:
            raise LabError("port_range", f"--base-port {wish}: use 1024 to {65535 - plan.MAX_NODES}.")
        busy = [port for port in range(wish + 1, wish + nodes + 1) if port in reserved or not free(port)]
        if busy:
            raise LabError("port_busy", f"--base-port {wish}: port {busy[0]} is in use; choose another base.")
        return wish
    for base in range(FIRST_PORT, FIRST_PORT + PORT_STEP * PORT_BLOCKS, PORT_STEP):
        if all(port not in reserved and free(port) for port in range(base + 1, base + nodes + 1)):
            return base
    raise LabError(
        "port_busy", f"No block of {nodes} free ports from {FIRST_PORT} on; choose one with --base-port."
    )


@dataclasses.dataclass
class State:
    """What a started lab remembers, in ``lab.json`` of its run directory."""

    name: str
    spec: plan.LabSpec
    base_port: int
    accel: str
    image: str
    warm: bool
    started: float
    disk: str = ""

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(dict(dataclasses.asdict(self), version=1), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> State:
        """The state in a file's text."""
        values = json.loads(text)
        if values.pop("version", None) != 1:
            raise LabError(
                "state_version", "The lab was started by another version of this program; end it with down."
            )
        return cls(**dict(values, spec=plan.LabSpec(**values["spec"])))

    def nodes(self) -> range:
        """The numbers of the nodes."""
        return range(1, self.spec.nodes + 1)

    def port(self, node: int) -> int:
        """The port on 127.0.0.1 that leads to a node's sshd."""
        return self.base_port + node


def ssh_options(key: pathlib.Path) -> list[str]:
    """Options for ssh to a node: our key only, no questions and no memory of host keys, which change with images."""
    return [
        *("-i", str(key), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
        *(
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "GlobalKnownHostsFile=/dev/null",
        ),
        *("-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-F", "none"),
    ]


def inventory_text(state: State, key: pathlib.Path, group: str) -> str:
    """An Ansible inventory in YAML with every node in one group; strings are quoted as JSON, which YAML reads too."""
    quote = json.dumps
    common = [option for option in ssh_options(key)[2:] if option not in ("-F", "none")]
    lines = ["---", f"{group}:", "  vars:", "    ansible_host: 127.0.0.1", "    ansible_user: root"]
    lines += [f"    ansible_ssh_private_key_file: {quote(str(key))}"]
    lines += [f"    ansible_ssh_common_args: {quote(shlex.join(common))}"]
    # As Ansible's own, without compression, which costs an emulated processor more than it saves.
    lines += ['    ansible_ssh_args: "-o ControlMaster=auto -o ControlPersist=60s"']
    lines += ["    ansible_python_interpreter: /usr/bin/python3", "    ansible_pipelining: true", "  hosts:"]
    for node in state.nodes():
        lines += [f"    node{node}:", f"      ansible_port: {state.port(node)}"]
    return "\n".join(lines) + "\n"


class Lab:
    """One lab, by name, in the cache directory."""

    def __init__(self, name: str, cache: Cache, progress: Progress):
        self.name = plan.check_name(name)
        self.cache = cache
        self.progress = progress
        self.directory = cache.path / "run" / self.name

    # --- state --------------------------------------------------------------------------------------------------

    def _state_file(self) -> pathlib.Path:
        return self.directory / "lab.json"

    def state(self) -> State:
        """The state of this lab, or an error that says how to start it."""
        return state_file.read(
            self._state_file(),
            State.from_json,
            f"lab {self.name!r}",
            f"up --name {self.name}",
            "down and up",
        )

    def _pid_files(self) -> dict[pathlib.Path, str]:
        """Every pid file that this lab can have, with the name by which its process is known."""
        files = {
            self.directory / f"node{n}.pid": qemu.process_name(self.name, n)
            for n in range(1, plan.MAX_NODES + 1)
        }
        files[self.directory / "switch.pid"] = self._switch_name()
        return files

    def _switch_name(self) -> str:
        return f"rdma-lab-{self.name}-switch"

    def alive(self) -> list[str]:
        """Names of the processes of this lab that run."""
        return [name for file, name in self._pid_files().items() if process.running(file, name)]

    def check_node(self, text: str) -> int:
        """The number of the node called ``node2`` or ``2``."""
        state = self.state()
        number = text.removeprefix("node")
        if not number.isascii() or not number.isdigit() or int(number) not in state.nodes():
            raise LabError(
                "node_unknown", f"There is no node {text!r}: this lab has node1 to node{state.spec.nodes}."
            )
        return int(number)

    # --- up -----------------------------------------------------------------------------------------------------

    def up(
        self, spec: plan.LabSpec, *, base_port: int | None = None, cold: bool = False, accel: str = "auto"
    ) -> State:
        """Start the lab: from a saved state, which is made when there is none, or with ``cold`` by a real boot."""
        qemu.check_host()
        self.cache.claim()
        self.directory.mkdir(parents=True, exist_ok=True)
        with state_file.locked(self.directory, "lab_busy", f"lab {self.name!r}"):
            if self.alive():
                raise LabError(
                    "already_up", f"The lab {self.name!r} is up already; run down first, or use --name."
                )
            self._clear(everything=True)
            accel = qemu.choose_accel(accel)
            image = self.cache.ensure_image(spec.driver)
            spec = dataclasses.replace(spec, driver=image.driver)
            disk = kubenode.ensure_disk(self.cache, Programs(self.cache)) if spec.kube else None
            build = qemu.qemu_build() + (disk.key if disk else "")
            state = self._reserve(spec, base_port, accel, image, str(disk.raw) if disk else "")
            try:
                saved = None
                if not cold:
                    saved = (
                        self.cache.path / f"warm-{image.key}-{qemu.state_key(spec, image.key, accel, build)}"
                    )
                    self._ensure_saved(state, image, saved)
                    state = dataclasses.replace(state, warm=True, started=time.time())
                self._start(state, image, saved)
            except BaseException:
                self._end_all()
                self._clear()
                raise
            return state

    def _reserve(
        self, spec: plan.LabSpec, base_port: int | None, accel: str, image: Image, disk: str = ""
    ) -> State:
        """Choose the ports and write them down at once, so that two labs that start together get different ones."""
        with (self.cache.path / "ports.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            port = choose_base_port(base_port, spec.nodes, self._reserved_ports())
            state = State(self.name, spec, port, accel, str(image.path), False, time.time(), disk)
            self._write_state(state)
            return state

    def _reserved_ports(self) -> set[int]:
        """Ports of other labs, also of those whose nodes do not listen yet."""
        ports: set[int] = set()
        for other in state_file.others(self._state_file(), State.from_json):
            ports.update(other.port(node) for node in other.nodes())
        return ports

    def _start(self, state: State, image: Image, saved: pathlib.Path | None) -> None:
        """Start the processes; each node's disk is a copy of the saved one, or an empty layer over the image."""
        self._write_state(state)
        if state.spec.nodes != 2:
            self._start_switch(state.spec)
        children = {}
        for node in state.nodes():
            files = qemu.NodeFiles(
                kernel=str(image.kernel),
                initrd=str(image.initrd),
                disk=f"node{node}.qcow2",
                document=f"node{node}.json",
                console=f"node{node}.console",
                pid=f"node{node}.pid",
                qmp=f"node{node}.qmp",
                kube=state.disk,
                relay=RELAY,
            )
            document = json.dumps(plan.node_document(state.spec, node), sort_keys=True)
            (self.directory / files.document).write_text(document, encoding="utf-8")
            disk = self.directory / files.disk
            if saved is None:
                self._run(
                    "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.root), str(disk)
                )
            else:
                self._run("cp", "--reflink=auto", "--sparse=always", str(saved / disk.name), str(disk))
            start = qemu.Start(self.name, state.accel, state.port(node), resume=saved is not None)
            command = qemu.node_command(state.spec, node, files, start)
            children[node] = self._spawn(command, f"node{node}.log")
        for node, child in children.items():
            self._await_qemu(node, child)

    def _spawn(self, command: list[str], log: str) -> subprocess.Popen:
        """Start a process of the lab that outlives this program."""
        with (self.directory / log).open("wb") as out:
            return subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError("command_failed", f"{command[0]}: {done.stderr.strip() or done.returncode}")

    def _await_qemu(self, node: int, child: subprocess.Popen) -> None:
        """Wait until a node's QEMU answers on its control socket, which it does when a saved state is loaded."""
        connection = process.wait_for_qmp(self.directory, f"node{node}.qmp", lambda: child.poll() is None)
        if connection is None:
            log = self.directory / f"node{node}.log"
            reason = log.read_text(encoding="utf-8", errors="replace").strip().replace("\n", " | ")
            raise LabError("qemu_failed", f"QEMU of node{node} ended at once: {reason or child.returncode}")
        connection.close()

    def _start_switch(self, spec: plan.LabSpec) -> None:
        script = pathlib.Path(__file__).with_name("railswitch.py")
        command = [
            sys.executable,
            "-I",
            "-S",
            str(script),
            self._switch_name(),
            str(spec.nodes),
            str(spec.rails),
        ]
        child = self._spawn(command, "switch.log")
        (self.directory / "switch.pid").write_text(f"{child.pid}\n", encoding="utf-8")
        last = self.directory / qemu.switch_socket(spec.rails - 1, spec.nodes)
        end = time.monotonic() + 10
        while not last.exists():
            if child.poll() is not None or time.monotonic() > end:
                raise LabError(
                    "switch_failed",
                    f"The switch of the rails did not start; see {self.directory}/switch.log.",
                )
            time.sleep(0.02)

    def _ensure_saved(self, state: State, image: Image, saved: pathlib.Path) -> None:
        """Make the saved state if there is none; two labs of one kind that start together make it once."""
        with (self.cache.path / "saving.lock").open("w") as lock:
            if not (saved / "done").exists():
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    self.progress.say("another lab saves its state; waiting for it")
                    fcntl.flock(lock, fcntl.LOCK_EX)
            if not (saved / "done").exists():
                self._save(state, image, saved)

    def _save(self, state: State, image: Image, saved: pathlib.Path) -> None:
        """Boot the nodes once and keep them, memory and all, as ``saved``."""
        with self.progress.step(
            f"first start of this kind of lab: booting {state.spec.nodes} node(s) to save their state"
        ):
            remove_tree(saved, self.cache.path)
            self._start(dataclasses.replace(state, warm=False), image, None)
            self.wait(quiet=True)
            if state.spec.kube:
                self.prepare_kube()
            for node in state.nodes():
                self.node_run(node, "sync; echo 3 > /proc/sys/vm/drop_caches")
                self.close_connection(node)
                with process.Qmp(self.directory, f"node{node}.qmp") as qmp:
                    trouble = qmp.monitor(f"savevm {qemu.SNAPSHOT}")
                    if trouble.strip():
                        raise LabError("savevm", f"QEMU could not save node{node}: {trouble.strip()}")
            self._end_all()
            saved.mkdir(parents=True)
            for node in state.nodes():
                shutil.move(self.directory / f"node{node}.qcow2", saved / f"node{node}.qcow2")
            (saved / "done").touch()

    def _write_state(self, state: State) -> None:
        state_file.write(self._state_file(), state.to_json())

    # --- wait ---------------------------------------------------------------------------------------------------

    def wait(self, timeout: float = BOOT_TIMEOUT, quiet: bool = False) -> dict[int, float]:
        """Wait until every node is laid out and answers ssh; seconds since the start, by node."""
        state = self.state()
        times: dict[int, float] = {}
        troubles: dict[int, str] = {}

        def watch(node: int) -> None:
            try:
                self._wait_for_node(state, node, timeout)
                times[node] = time.time() - state.started
                if not quiet:
                    print(f"node{node} ready after {times[node]:.1f} s", flush=True)
            except LabError as error:
                troubles[node] = str(error)

        threads = [threading.Thread(target=watch, args=(node,)) for node in state.nodes()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if troubles:
            raise LabError("not_ready", " ".join(troubles[node] for node in sorted(troubles)))
        return times

    def _wait_for_node(self, state: State, node: int, timeout: float) -> None:
        end = time.monotonic() + timeout
        pid_file, name = self.directory / f"node{node}.pid", qemu.process_name(self.name, node)
        # QEMU accepts a connection before the guest listens, so only the banner of sshd proves anything.
        patience, begin = BANNER_PATIENCE, time.monotonic()
        while not self._banner(state.port(node), patience):
            # On a busy machine sshd may need longer for its banner, and each new connection costs it even more.
            if time.monotonic() - begin >= patience:
                patience = min(patience * 1.5, LONGEST_PATIENCE)
            if not process.running(pid_file, name):
                raise LabError(
                    "qemu_gone", f"node{node}: its QEMU has ended; see {self.directory}/node{node}.log."
                )
            if time.monotonic() > end:
                console = self.directory / f"node{node}.console"
                raise LabError("not_ready", f"node{node} did not boot in {timeout:.0f} s; see {console}.")
            time.sleep(0.05)
            begin = time.monotonic()
        # A resumed node's clock stands where it was saved. A booting one is asked once and answers when it is done.
        script = f"date -s @{time.time():.0f} > /dev/null; " if state.warm else ""
        script += "until [ -s /run/rdma-lab/state ]; do sleep 0.2; done; cat /run/rdma-lab/state"
        trouble = ""
        while (left := end - time.monotonic()) > 0:
            done = self.node_try(node, script, timeout=left)
            if done.stdout.startswith("ready"):
                return
            if done.stdout.startswith("failed"):
                raise LabError("layout_failed", f"node{node} could not be laid out: {done.stdout.strip()}")
            trouble = done.stderr.strip()
            time.sleep(0.2)
        raise LabError(
            "not_ready", f"node{node} answers ssh but is not ready after {timeout:.0f} s: {trouble}"
        )

    @staticmethod
    def _banner(port: int, patience: float) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), patience) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def prepare_kube(self) -> None:
        """Start containerd on every node and load the test image, where that was not done yet."""
        each_node(
            self.state().nodes(),
            lambda node: self.node_run(node, kubenode.prepare_script(node), kubenode.PREPARE_TIMEOUT),
        )

    # --- talking to nodes ---------------------------------------------------------------------------------------

    def _control_path(self, node: int) -> pathlib.Path | None:
        """Socket of a shared ssh connection; None where its path would be too long for one."""
        path = self.directory / f"ssh{node}"
        return path if len(str(path)) <= LONGEST_CONTROL_PATH else None

    def ssh_command(self, node: int, *, shared: bool = False, terminal: bool = False) -> list[str]:
        """The ssh command line for a node; ``shared`` keeps the connection for a minute for the next command."""
        state = self.state()
        command = ["ssh", *ssh_options(self.cache.key_file), "-p", str(state.port(node))]
        path = self._control_path(node)
        if shared and path:
            command += ["-o", "ControlMaster=auto", "-o", f"ControlPath={path}", "-o", "ControlPersist=60"]
        if terminal:
            command += ["-t"]
        return [*command, "root@127.0.0.1"]

    def node_try(self, node: int, script: str, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a shell script on a node and return how it went."""
        command = [*self.ssh_command(node, shared=True), script]
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no answer within {timeout:.0f} s")

    def node_run(self, node: int, script: str, timeout: float = 120.0) -> str:
        """Run a shell script on a node and return what it prints; raise when it fails."""
        done = self.node_try(node, script, timeout)
        if done.returncode:
            reason = (done.stderr or done.stdout).strip() or f"code {done.returncode}"
            raise LabError("node_command", f"node{node}: {reason}")
        return done.stdout

    def node_program(self, node: int, *arguments: str) -> str:
        """Run the lab's program inside a node."""
        return self.node_run(node, shlex.join([*GUEST_PROGRAM, *arguments]))

    def close_connection(self, node: int) -> None:
        """End the shared ssh connection of a node."""
        path = self._control_path(node)
        if path and path.exists():
            command = ["ssh", "-F", "none", "-O", "exit", "-o", f"ControlPath={path}", "root@127.0.0.1"]
            subprocess.run(command, capture_output=True, check=False)

    # --- down ---------------------------------------------------------------------------------------------------

    def down(self) -> list[str]:
        """End every process of this lab and forget it; the names of the processes that were ended."""
        ended = self._end_all()
        self._clear()
        return ended

    def _end_all(self) -> list[str]:
        for node in range(1, plan.MAX_NODES + 1):
            self.close_connection(node)
        return [name for file, name in self._pid_files().items() if process.end(file, name)]

    def _clear(self, everything: bool = False) -> None:
        """Remove the run directory's files. The lock stays because somebody may hold it, logs stay for a look."""
        for path in self.directory.glob("*"):
            if path.name != "lock" and (everything or path.suffix not in (".log", ".console")):
                path.unlink(missing_ok=True)
