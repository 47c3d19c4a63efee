# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a cluster: its control plane on this machine, simulated nodes, and the virtual nodes that join it."""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from . import control, kubenode, lab, oci, plan, process, rdma_image, state_file
from .errors import LabError
from .image import Cache, remove_tree
from .programs import Programs
from .progress import Progress

START_TIMEOUT = 180.0
REGISTER_TIMEOUT = 1.0
"""Seconds more for each simulated node, on a machine that has much else to do."""
READY_TIMEOUT = 600.0
POLL = 0.1
KEPT = (".log",)
"""Files of a cluster that stay after its end, for a look."""


@dataclasses.dataclass
class State:
    """What a started cluster remembers, in ``cluster.json`` of its directory."""

    name: str
    base_port: int
    spec: control.ClusterSpec
    kubernetes: str
    started: float

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(dict(dataclasses.asdict(self), version=1), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> State:
        """The state in a file's text."""
        values = json.loads(text)
        if values.pop("version", None) != 1:
            raise LabError(
                "state_version",
                "The cluster was started by another version of this program; end it with cluster down.",
            )
        return cls(**dict(values, spec=control.ClusterSpec(**values["spec"])))


def choose_base_port(reserved: set[int], free: collections.abc.Callable[[int], bool] = lab.port_free) -> int:
    """The first port of a block of which none is in use or reserved by another cluster."""
    for base in range(
        control.FIRST_PORT, control.FIRST_PORT + control.PORT_STEP * control.PORT_BLOCKS, control.PORT_STEP
    ):
        if all(port not in reserved and free(port) for port in control.ports(base)):
            return base
    raise LabError("port_busy", f"No block of free ports from {control.FIRST_PORT} on; end another cluster.")


class Cluster:
    """One cluster, by name, in the cache directory. The lab of the same name may lend it its nodes."""

    def __init__(self, name: str, cache: Cache, progress: Progress):
        self.name = plan.check_name(name)
        self.cache = cache
        self.progress = progress
        self.programs = Programs(cache)
        self.directory = cache.path / "cluster" / self.name
        self._children: dict[str, subprocess.Popen] = {}

    # --- state --------------------------------------------------------------------------------------------------

    def _state_file(self) -> pathlib.Path:
        return self.directory / "cluster.json"

    def state(self) -> State:
        """The state of this cluster, or an error that says how to start it."""
        return state_file.read(
            self._state_file(),
            State.from_json,
            f"cluster {self.name!r}",
            f"cluster up --name {self.name}",
            "cluster down and cluster up",
        )

    def _write_state(self, state: State) -> None:
        state_file.write(self._state_file(), state.to_json())

    def plane(self, state: State | None = None) -> control.Plane:
        """All that follows from the state."""
        state = state or self.state()
        return control.Plane(self.name, state.base_port, self.directory, self.programs.path, state.spec)

    def _pid_file(self, part: str) -> pathlib.Path:
        return self.directory / f"{part}.pid"

    def alive(self) -> list[str]:
        """The parts that run."""
        return [
            part
            for part in control.PARTS
            if process.running(self._pid_file(part), control.process_name(self.name, part))
        ]

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"

    # --- up -----------------------------------------------------------------------------------------------------

    def up(self, spec: control.ClusterSpec) -> State:
        """Start the control plane and the simulator, and wait until they answer."""
        self.cache.claim()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        self.programs.ensure()
        with self._locked():
            if self.alive():
                raise LabError(
                    "already_up",
                    f"The cluster {self.name!r} is up already; run cluster down first, or use --name.",
                )
            self._clear(everything=True)
            state = self._reserve(spec)
            try:
                self._start(state)
            except BaseException:
                self._end_all()
                self._state_file().unlink(missing_ok=True)
                raise
            return state

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return state_file.locked(self.directory, "cluster_busy", f"cluster {self.name!r}")

    def _reserve(self, spec: control.ClusterSpec) -> State:
        with (self.cache.path / "ports.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            base = choose_base_port(self._reserved_ports())
            state = State(self.name, base, spec, self.programs.kubernetes, time.time())
            self._write_state(state)
            return state

    def _reserved_ports(self) -> set[int]:
        def ports_of(text: str) -> set[int]:
            return set(control.ports(State.from_json(text).base_port))

        return set().union(*state_file.others(self._state_file(), ports_of))

    def _start(self, state: State) -> None:
        plane = self.plane(state)
        (self.directory / "pki").mkdir(mode=0o700, exist_ok=True)
        self._run(str(self.programs.path("labkube")), *control.certificate_arguments(plane))
        for name, text in control.files(plane).items():
            path = self.directory / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o600)
        for part in ("etcd", "egress"):
            self._spawn(plane, part)
        # The API server tries etcd until it answers; nobody has to wait for that first.
        self._spawn(plane, "kube-apiserver")
        self._wait("kube-apiserver", lambda: self.get("/readyz") == b"ok")
        self._spawn(plane, "kube-controller-manager")
        self._spawn(plane, "kube-scheduler")
        for part, port in (
            ("kube-controller-manager", "controller-manager"),
            ("kube-scheduler", "scheduler"),
        ):
            self._wait(part, lambda port=port: self._healthy(plane.port(port)))
        # A pod can be made only where its namespace has a service account.
        self._wait("kube-controller-manager", self._has_account)
        if state.spec.simulated:
            self._spawn(plane, "simulator")
            patience = START_TIMEOUT + state.spec.simulated * REGISTER_TIMEOUT
            self._wait("simulator", lambda: b"registered " in self.log_of("simulator"), patience)

    def _has_account(self) -> bool:
        return bool(self.get("/api/v1/namespaces/default/serviceaccounts/default"))

    def _spawn(self, plane: control.Plane, part: str) -> None:
        """Start a part; its name is the first word of its command line, so that it can be recognised."""
        command = control.command(plane, part)
        name = control.process_name(self.name, part)
        with (self.directory / f"{part}.log").open("wb") as out:
            child = subprocess.Popen(
                [name, *command[1:]],
                executable=command[0],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "GOGC": "75"},
            )
        self._pid_file(part).write_text(f"{child.pid}\n", encoding="utf-8")
        self._children[part] = child

    def _wait(
        self, part: str, done: collections.abc.Callable[[], bool], patience: float = START_TIMEOUT
    ) -> None:
        end = time.monotonic() + patience
        while not done():
            # Not alive(): for a moment after its start a process has no command line yet.
            if self._children[part].poll() is not None:
                tail = self.log_of(part).decode(errors="replace").strip().splitlines()[-3:]
                raise LabError("part_ended", f"{part} ended at once: {' | '.join(tail) or 'it said nothing'}")
            if time.monotonic() > end:
                raise LabError(
                    "part_silent",
                    f"{part} is not ready after {patience:.0f} s; see {self.directory}/{part}.log.",
                )
            time.sleep(POLL)

    def log_of(self, part: str) -> bytes:
        """What a part has said so far."""
        try:
            return (self.directory / f"{part}.log").read_bytes()
        except OSError:
            return b""

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise LabError("command_failed", f"{command[0]}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    # --- virtual nodes ------------------------------------------------------------------------------------------

    def join(self, nodes: lab.Lab, timeout: float = READY_TIMEOUT) -> dict[int, float]:
        """Take the nodes of a lab into the cluster and wait until they are ready; seconds that each took."""
        state, plane = nodes.state(), self.plane()
        if not state.spec.kube:
            raise LabError(
                "lab_without_kube",
                f"The lab {nodes.name!r} was not started with --kube; end it with down first.",
            )
        begin = time.monotonic()
        # Through this file a connection from a node finds the API server.
        (nodes.directory / lab.API_FILE).write_text(f"127.0.0.1:{plane.port('api')}\n", encoding="utf-8")
        nodes.prepare_kube()
        image = rdma_image.build(rdma_image.ensure_base(self.cache))

        def one(node: int) -> None:
            with process.Qmp(nodes.directory, f"node{node}.qmp") as qmp:
                address = plan.vnic_address(node)
                way = f"tcp:127.0.0.1:{plane.kubelet_port(node)}-{address}:{control.KUBELET_PORT}"
                trouble = qmp.monitor(f"hostfwd_add management {way}")
                if trouble.strip():
                    raise LabError("hostfwd", f"QEMU cannot forward to node{node}: {trouble.strip()}")
            kubenode.load_image(nodes.ssh_command(node), image, node)
            kubenode.join(nodes.ssh_command(node), self.directory, node)

        lab.each_node(state.nodes(), one)
        times: dict[int, float] = {}
        while len(times) < state.spec.nodes:
            for node in state.nodes():
                if node not in times and self.node_ready(f"node{node}"):
                    times[node] = time.monotonic() - begin
            if time.monotonic() - begin > timeout:
                missing = ", ".join(f"node{node}" for node in state.nodes() if node not in times)
                raise LabError(
                    "node_not_ready",
                    f"{missing}: not ready after {timeout:.0f} s; look with ssh NODE -- journalctl -u kubelet.",
                )
            time.sleep(POLL)
        for node in state.nodes():
            block = str(control.pod_block(node))
            patch = json.dumps({"spec": {"podCIDR": block, "podCIDRs": [block]}})
            self.kubectl("patch", "node", f"node{node}", "--type=merge", "-p", patch)
        return times

    def load_image(self, nodes: lab.Lab) -> str:
        """Give the nodes the in-cluster image with the code as it is now; what was loaded, in one sentence."""
        built = rdma_image.build(rdma_image.ensure_base(self.cache))
        lab.each_node(
            nodes.state().nodes(), lambda node: kubenode.load_image(nodes.ssh_command(node), built, node)
        )
        return f"{rdma_image.IMAGE} with {oci.digest(built.image.layers[-1])} above"

    def node_ready(self, name: str) -> bool:
        """True when a node says that it is ready."""
        answer = self.get(f"/api/v1/nodes/{name}")
        conditions = json.loads(answer)["status"].get("conditions", []) if answer else []
        return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)

    # --- talking to the API -------------------------------------------------------------------------------------

    def _context(self) -> ssl.SSLContext:
        pki = self.directory / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(str(pki / "admin.crt"), str(pki / "admin.key"))
        return context

    def get(self, path: str, timeout: float = 10.0) -> bytes | None:
        """What the API server answers to a reader; None when it does not, or says no."""
        try:
            url = self.plane().url() + path
            with urllib.request.urlopen(url, context=self._context(), timeout=timeout) as answer:
                return answer.read()
        except (urllib.error.URLError, OSError):
            return None

    def _healthy(self, port: int) -> bool:
        # These parts make themselves a certificate that nobody signs; only their word "ok" is wanted.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{port}/healthz", context=context, timeout=5
            ) as answer:
                return answer.read() == b"ok"
        except (urllib.error.URLError, OSError):
            return False

    def kubectl_command(self, *words: str) -> list[str]:
        """The command line of kubectl for this cluster."""
        return [str(self.programs.path("kubectl")), f"--kubeconfig={self.kubeconfig}", *words]

    def kubectl(self, *words: str, stdin: str | None = None, timeout: float = 120.0) -> str:
        """Run kubectl and return what it prints; raise with its own words when it fails."""
        done = self.kubectl_try(*words, stdin=stdin, timeout=timeout)
        if done.returncode:
            raise LabError(
                "kubectl", f"kubectl {' '.join(words[:3])}: {done.stderr.strip() or done.returncode}"
            )
        return done.stdout

    def kubectl_try(
        self, *words: str, stdin: str | None = None, timeout: float = 120.0
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return how it went."""
        self.state()
        command = self.kubectl_command(*words)
        try:
            return subprocess.run(
                command, input=stdin or "", capture_output=True, text=True, check=False, timeout=timeout
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no answer within {timeout:.0f} s")

    def helm(self, *words: str) -> str:
        """Run Helm for this cluster and return what it prints."""
        return self._run(str(self.programs.path("helm")), f"--kubeconfig={self.kubeconfig}", *words)

    def install_dranet(self, *values: str) -> str:
        """Install the driver from its own chart, with more ``--set`` values if need be; the driver's version."""
        image = kubenode.DRANET_IMAGE
        settings = [
            f"image.repository={image}",
            f"image.tag={self.programs.dranet}",
            "image.pullPolicy=Never",
        ]
        words = [word for value in (*settings, *values) for word in ("--set", value)]
        chart = str(self.programs.chart)
        self.helm("upgrade", "--install", "dranet", chart, "--namespace", "kube-system", *words)
        return self.programs.dranet

    def apply(self, *objects: dict) -> None:
        """Create objects or bring them up to date."""
        document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(document))

    def object(self, *words: str) -> dict:
        """One object or list, as ``kubectl get`` gives it."""
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    # --- down ---------------------------------------------------------------------------------------------------

    def down(self) -> list[str]:
        """End every part and remove all files but the logs; the names of the parts that were ended."""
        if not self.directory.exists():
            return []
        with self._locked():
            ended = self._end_all()
            self._clear()
            return ended

    def _end_all(self) -> list[str]:
        return [
            part
            for part in reversed(control.PARTS)
            if process.end(self._pid_file(part), control.process_name(self.name, part), patience=10.0)
        ]

    def _clear(self, everything: bool = False) -> None:
        for path in self.directory.glob("*"):
            if path.is_dir() and not path.is_symlink():
                remove_tree(path, self.directory)
            elif path.name != "lock" and (everything or path.suffix not in KEPT):
                path.unlink(missing_ok=True)
