# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes a Kubernetes node of a virtual node: a second disk with programs and images, and joining a cluster."""

from __future__ import annotations

import base64
import dataclasses
import json
import pathlib
import shlex
import shutil
import subprocess

from . import control, oci, packages, plan, qemu, rdma_image
from .errors import LabError
from .image import GUEST, Cache, remove_tree
from .programs import Programs
from .progress import run_logged

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "dranet", "kubelet")
"""Programs of ours that a node gets."""
DEBIAN = ("runc", "containernetworking-plugins")
"""Packages of the distribution whose programs a node gets, without being installed."""
CNI = ("bridge", "host-local", "ipvlan", "loopback", "ptp", "static")
IMAGE = "lab.test/pod:1"
"""Name of the test image; the pause container runs it too."""
DRANET_IMAGE = "lab.test/dranet"
"""Repository of the image of DRANET; its tag is the version."""
PCI_NAMES = "C 02  Network controller\n"
"""Names of PCI devices for DRANET. At every scan it reads all of its own, which takes an emulated node seconds."""
DRANET_PLACE = "/var/lib/kubelet/plugins/rdma-lab/dranet"
"""Where pods of DRANET find its program."""
RECIPE = 4
SLACK = 16 << 20
MOUNT = "/opt/rdma-kube"
PREPARE_TIMEOUT = 600.0
JOIN_TIMEOUT = 300.0


def oci_image(
    name: str, files: dict[str, bytes | str], entry: str | None = None, environment: tuple[str, ...] = ()
) -> bytes:
    """A tar file in OCI layout with one image of a few files: programs by their content, links by what they lead to.

    ``entry`` is the program that runs when a pod names no other.
    """
    layers = rdma_image.build_tool
    entries = {"tmp": layers.directory(0o1777), "etc": layers.directory()}
    for path, content in files.items():
        entries[path.lstrip("/")] = (
            layers.link(content) if isinstance(content, str) else layers.file(content, 0o755)
        )
    config: dict = {"Entrypoint": [entry], "WorkingDir": "/"} if entry else {"WorkingDir": "/"}
    if environment:
        config["Env"] = list(environment)
    return oci.archive(oci.Image(name, (layers.layer(entries),), config))


def images(programs: Programs, base: bytes) -> dict[str, bytes]:
    """The images that a node is given, by the name of their file; ``base`` is the lower layer of the in-cluster image.

    DRANET's holds a link instead of the program, which is large: its pods see the kubelet's directory of plugins, and
    the node has the program there.
    """
    pod = oci_image(IMAGE, {"/labpod": programs.path("labpod").read_bytes()}, "/labpod")
    dranet = oci_image(
        f"{DRANET_IMAGE}:{programs.dranet}",
        {"/dranet": DRANET_PLACE, "/pci.ids": PCI_NAMES.encode()},
        environment=("PATH=/", "PCIDB_PATH=/pci.ids"),
    )
    return {"labpod.tar": pod, "dranet.tar": dranet, "rdma-k8s-base.tar": rdma_image.base_archive(base)}


def kubelet_config() -> str:
    """The kubelet's configuration; time-outs are generous because an emulated processor is slow."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": "/etc/kubernetes/kubelet.crt",
        "tlsPrivateKeyFile": "/etc/kubernetes/kubelet.key",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "nodeLeaseDurationSeconds": control.LEASE,
        "nodeStatusUpdateFrequency": "10s",
        "runtimeRequestTimeout": "15m",
        "syncFrequency": "30s",
        "volumeStatsAggPeriod": "10m",
        # The images were put there by hand; nothing could bring them again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "20Mi", "nodefs.available": "2%", "imagefs.available": "2%"},
        "maxPods": 40,
        "serializeImagePulls": False,
        "enableDebuggingHandlers": True,
        "logging": {"flushFrequency": "5s"},
    }
    return json.dumps(config, indent=2) + "\n"


@dataclasses.dataclass(frozen=True)
class Disk:
    """The second disk of nodes: a raw file system that is never written to."""

    path: pathlib.Path
    key: str

    @property
    def raw(self) -> pathlib.Path:
        """The file."""
        return self.path / "kube.raw"


def guest_files() -> dict[str, bytes]:
    """The small files of the disk, by path."""
    files = {f"etc/{path.name}": path.read_bytes() for path in sorted((GUEST / "kube").iterdir())}
    files["etc/kubelet.json"] = kubelet_config().encode()
    return files


def disk_key(programs: Programs, base: bytes) -> str:
    """Hash of what goes into the disk; ``base`` is the lower layer of the in-cluster image."""
    built = (programs.key(), programs.driver_key(), programs.own_key())
    return plan.digest(
        RECIPE, built, PROGRAMS, DEBIAN, CNI, IMAGE, PCI_NAMES, guest_files(), oci.digest(base)
    )


def ensure_disk(cache: Cache, programs: Programs) -> Disk:
    """The disk, made if need be."""
    programs.ensure()
    base = rdma_image.ensure_base(cache)
    key = disk_key(programs, base)
    disk = Disk(programs.store / f"disk-{key}", key)
    if disk.raw.exists():
        return disk
    with programs.locked():
        if disk.raw.exists():
            return disk
        packages.require_debian("Making the disk of Kubernetes nodes")
        packages.ensure_tools(("mke2fs", "dpkg-deb"), cache.log, cache.progress)
        with (
            cache.progress.step("the disk of Kubernetes nodes"),
            cache.building(f"{programs.store.name}/{disk.path.name}") as directory,
        ):
            _fill(cache, programs, directory, base)
        for path in programs.store.glob("disk-*"):
            if path != disk.path and path.is_dir():
                remove_tree(path, programs.store)
    return disk


def _fill(cache: Cache, programs: Programs, directory: pathlib.Path, base: bytes) -> None:
    tree = directory / "tree"
    for name in ("bin", "cni", "etc", "images"):
        (tree / name).mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy2(programs.path(name), tree / "bin" / name)
    for name, content in guest_files().items():
        (tree / name).write_bytes(content)
    debian = directory / "debian"
    try:
        found = packages.download(list(DEBIAN), debian / "packages", cache.log)
    except LabError:
        packages.apt_update(cache.log)
        found = packages.download(list(DEBIAN), debian / "packages", cache.log)
    for package in found:
        run_logged(["dpkg-deb", "--extract", str(package), str(debian / "tree")], cache.log)
    shutil.copy2(debian / "tree" / "usr" / "sbin" / "runc", tree / "bin" / "runc")
    for name in CNI:
        shutil.copy2(debian / "tree" / "usr" / "lib" / "cni" / name, tree / "cni" / name)
    for name, content in images(programs, base).items():
        (tree / "images" / name).write_bytes(content)
    size = sum(path.stat().st_size + 4096 for path in tree.rglob("*")) * 102 // 100 + SLACK
    raw = directory / "kube.raw"
    with raw.open("wb") as file:
        file.truncate(size // 4096 * 4096)
    options = [
        "-q",
        "-F",
        "-t",
        "ext4",
        "-O",
        "^has_journal,^metadata_csum",
        "-m",
        "0",
        "-N",
        "256",
        "-d",
        str(tree),
    ]
    run_logged(["mke2fs", *options, str(raw)], cache.log, env=packages.environment())
    raw.chmod(0o444)
    remove_tree(tree, cache.path)
    remove_tree(debian, cache.path)


def prepare_script(node: int) -> str:
    """What a node runs before it is saved: mount the disk, start containerd, load the image."""
    api = f"{qemu.API_ADDRESS}:{qemu.API_PORT}"
    words = [
        "sh", f"{MOUNT}/etc/node.sh", "prepare", str(control.pod_block(node)), str(control.SERVICE_ADDRESS), api,
    ]  # fmt: skip
    mount = f"mkdir -p {MOUNT}; mountpoint -q {MOUNT} || mount -t ext4 -o ro /dev/vdb {MOUNT}"
    return f"{mount} && {shlex.join(words)}"


def join_files(directory: pathlib.Path, node: int) -> dict[str, bytes]:
    """The files that take a node into the cluster whose files are in ``directory``, by name below /etc/kubernetes."""
    pki = directory / "pki"
    raw = {
        "ca": pki / "ca.crt",
        "certificate": pki / f"node-node{node}.crt",
        "key": pki / f"node-node{node}.key",
    }
    encoded = {f"{name}-data": base64.b64encode(path.read_bytes()).decode() for name, path in raw.items()}
    server = f"https://{qemu.API_ADDRESS}:{qemu.API_PORT}"
    return {
        "ca.crt": raw["ca"].read_bytes(),
        "kubelet.crt": raw["certificate"].read_bytes(),
        "kubelet.key": raw["key"].read_bytes(),
        "kubelet.kubeconfig": control.kubeconfig(server, encoded).encode(),
        "kubelet.json": kubelet_config().encode(),
    }


def join_archive(files: dict[str, bytes]) -> bytes:
    """The files as a tar archive that only root can read when it is unpacked."""
    return oci.tar_of(files, 0o600)


def join(command: list[str], directory: pathlib.Path, node: int) -> None:
    """Send a node its files and start its kubelet; ``command`` is the ssh command line that leads to it."""
    script = (
        "mkdir -p /etc/kubernetes && tar -xf - -C /etc/kubernetes && "
        f"sh {MOUNT}/etc/node.sh join {plan.vnic_address(node)}"
    )
    done = subprocess.run(
        [*command, script],
        input=join_archive(join_files(directory, node)),
        capture_output=True,
        timeout=JOIN_TIMEOUT,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError("join_failed", f"node{node} could not join the cluster: {said or done.returncode}")


def load_image(command: list[str], built: rdma_image.Built, node: int) -> str:
    """Give a node the in-cluster image; ``command`` is the ssh command line that leads to it.

    Most nodes have its lower layer. One that was started with other packages is sent that too.

    :returns: what was sent, ``code`` or ``all``.
    """
    code = oci.archive(built.image, without=(built.base,))
    try:
        done = _import(command, code)
        if done.returncode and b"not found" in done.stderr:
            done = _import(command, oci.archive(built.image))
            code = b""
    except subprocess.TimeoutExpired as error:
        raise LabError(
            "load_failed", f"node{node} took over {error.timeout:.0f} s to load an image."
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError("load_failed", f"node{node} could not load an image: {said or done.returncode}")
    return "code" if code else "all"


def _import(command: list[str], archive: bytes) -> subprocess.CompletedProcess[bytes]:
    words = [*command, f"{MOUNT}/bin/ctr --namespace k8s.io images import -"]
    return subprocess.run(words, input=archive, capture_output=True, timeout=JOIN_TIMEOUT, check=False)
