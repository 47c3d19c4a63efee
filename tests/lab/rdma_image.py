# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The in-cluster image without a container engine: packages of the distribution below, the code of this tree above.

What is in it follows from ``image/packages.txt`` and ``image/excludes``, which the Containerfile reads too. Nothing is
unpacked on this machine and nothing of it runs: packages are read, and written again as layers. So it needs no root,
and the architecture of this machine does not matter.

The lower layer is large and seldom changes. Nodes have it in their saved state, and get the upper one when they join,
so that an edit of the code costs no new saved state.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.util
import io
import json
import pathlib
import posixpath
import re
import subprocess
import tarfile
import types

from . import oci, packages, plan
from .errors import LabError
from .image import Cache, apt_sources, remove_tree

TREE = pathlib.Path(__file__).resolve().parents[2]
IMAGE = "lab.test/rdma-k8s:1"
"""Name of the image in the lab."""
BASE_IMAGE = "lab.test/rdma-k8s-base:1"
"""Name of an image of the lower layer alone."""
MACHINES = {"amd64": 62, "arm64": 183}
"""Architectures, with the number of their machine in the header of an ELF file."""
LIMIT = 150_000_000
"""Bytes that the image has at most, unpacked in blocks of 4096."""
BLOCK = 4096
RECIPE = 1
"""Raise when this code makes another lower layer of the same packages."""
HOME = "usr/lib/rdma-k8s"
SBOM = "usr/share/rdma-k8s/sbom.cdx.json"
MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
"""Directories of the root that are links into usr."""
STATUS = "var/lib/dpkg/status"
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": "/usr/lib/rdma-k8s",
    "PYTHONPYCACHEPREFIX": "/tmp/pycache",
}
"""Variables of the image. Compiled Python is kept where a pod can write, since its root file system is read-only."""
COMMAND = ("python3", "-m", "rdma_k8s_provider")


def words(name: str) -> list[str]:
    """The lines of a file of ``image/`` that say something."""
    lines = (TREE / "image" / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def excluded(path: str, rules: list[str]) -> bool:
    """True when dpkg would leave out a path (absolute) under these lines of its configuration: the last one decides."""
    result = False
    for rule in rules:
        key, _equals, pattern = rule.partition("=")
        # As for dpkg, a star stands for slashes too.
        if fnmatch.fnmatchcase(path, pattern):
            result = key == "path-exclude"
    return result


def merged(path: str) -> str:
    """Where a path of a package lies when bin, lib and sbin are links into usr."""
    first, slash, _rest = path.partition("/")
    return f"usr/{path}" if slash and first in MERGED else path


# --- the lower layer --------------------------------------------------------------------------------------------


def read_package(data: bytes, rules: list[str]) -> dict[str, oci.Entry]:
    """The paths of a package from its file system as tar; no owner, no time, no bit that lends rights."""
    found: dict[str, oci.Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            name = posixpath.normpath(member.name.lstrip("/"))
            if name in (".", *MERGED) or (not member.isdir() and excluded(f"/{name}", rules)):
                continue
            if name.startswith(".."):
                raise LabError("package_odd", f"A package has the path {member.name}, which leads out of it.")
            if member.isdir():
                entry = oci.directory(member.mode & 0o1777)
            elif member.issym():
                entry = oci.link(member.linkname)
            elif member.isfile() or member.islnk():
                content = tar.extractfile(member)
                entry = oci.file(content.read() if content else b"", member.mode & 0o777)
            else:
                raise LabError("package_odd", f"A package has {name}, which is no file, directory or link.")
            found[merged(name)] = entry
    return found


def settle(entries: dict[str, oci.Entry]) -> None:
    """What the scripts of the packages would have done, as far as the image needs it; no package runs here."""
    for path, entry in [(name, entry) for name, entry in entries.items() if entry.kind == "dir"]:
        # A directory whose files are all left out is of no use.
        if path.startswith("usr/share/") and not any(name.startswith(f"{path}/") for name in entries):
            del entries[path], entry
    for name in MERGED:
        if any(path.startswith(f"usr/{name}/") for path in entries):
            entries[name] = oci.link(f"usr/{name}")
    for name, source in (("passwd", "passwd.master"), ("group", "group.master")):
        entries[f"etc/{name}"] = oci.file(entries[f"usr/share/base-passwd/{source}"].content)
    entries["etc/nsswitch.conf"] = oci.file(entries["usr/share/libc-bin/nsswitch.conf"].content)
    entries["usr/bin/sh"] = oci.link("dash")
    entries["var/run"] = oci.link("/run")
    entries["run"] = oci.directory()
    entries["tmp"] = oci.directory(0o1777)


def status_of(controls: list[str]) -> str:
    """The status of dpkg with packages, by their control files: as if they had been installed."""
    paragraphs = []
    for control in controls:
        name, line, rest = control.strip().partition("\n")
        paragraphs.append(f"{name}{line}Status: install ok installed\n{rest}\n")
    return "\n".join(sorted(paragraphs))


def make_base(archives: list[pathlib.Path]) -> bytes:
    """The lower layer, of files of packages."""
    rules = words("excludes")
    entries: dict[str, oci.Entry] = {}
    controls = []
    for path in archives:
        for name, entry in read_package(_dpkg("--fsys-tarfile", path), rules).items():
            if entry.kind != "dir" or name not in entries:
                entries[name] = entry
        controls.append(_dpkg("--field", path).decode())
    settle(entries)
    entries[STATUS] = oci.file(status_of(controls).encode())
    return oci.layer(entries)


def _dpkg(action: str, path: pathlib.Path) -> bytes:
    done = subprocess.run(["dpkg-deb", action, str(path)], capture_output=True, check=False)
    if done.returncode:
        raise LabError("package_broken", f"{path.name}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def download(cache: Cache, architecture: str, directory: pathlib.Path) -> list[pathlib.Path]:
    """Fetch the packages and all that they depend on, as for a machine on which nothing is installed.

    apt gets a state of its own below ``directory``, so the machine's lists and packages are not touched.
    """
    sources = directory / "sources"
    for path in (sources, directory / "lists" / "partial", directory / "cache" / "archives" / "partial"):
        path.mkdir(parents=True, exist_ok=True)
    for path in apt_sources():
        (sources / path.name).write_bytes(path.read_bytes())
    (directory / "status").touch()
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Dir::Cache": directory / "cache",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": sources,
        "Dir::State": directory,
        "Dir::State::lists": directory / "lists",
        "Dir::State::status": directory / "status",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    packages.apt([*options, "update"], cache.log)
    packages.apt([*options, "--yes", "--download-only", "install", *words("packages.txt")], cache.log)
    return sorted((directory / "cache" / "archives").glob("*.deb"))


def base_key(suite: str, architecture: str) -> str:
    """Hash of what the lower layer is made from; the packages themselves are those of the day it was made."""
    return plan.digest(RECIPE, suite, architecture, words("packages.txt"), words("excludes"))


def ensure_base(cache: Cache, architecture: str = "amd64") -> bytes:
    """The lower layer, made if need be."""
    name = f"rdma-image-{architecture}"
    suite = packages.require_debian("Making the in-cluster image")
    key = base_key(suite, architecture)
    place = cache.path / name
    with cache.locked():
        if cache.read_json(f"{name}/key.json") != {"key": key}:
            packages.ensure_tools(("dpkg-deb",), cache.log, cache.progress)
            with (
                cache.progress.step(f"packages of the in-cluster image, {architecture}"),
                cache.building(name) as to,
            ):
                layer = make_base(download(cache, architecture, to / "apt"))
                remove_tree(to / "apt", cache.path)
                (to / "layer.tar").write_bytes(layer)
                (to / "key.json").write_text(json.dumps({"key": key}), encoding="utf-8")
        return (place / "layer.tar").read_bytes()


# --- the upper layer --------------------------------------------------------------------------------------------


def sbom_tool() -> types.ModuleType:
    """The program that writes the bill of materials, as a module."""
    described = importlib.util.spec_from_file_location("rdma_k8s_sbom", TREE / "image" / "sbom.py")
    if described is None or described.loader is None:
        raise LabError("no_sbom", "image/sbom.py cannot be loaded.")
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def version() -> str:
    """The version of the collection, which is that of the image."""
    text = (TREE / "plugins" / "module_utils" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^VERSION = "(.+)"$', text, re.M)
    if not found:
        raise LabError("no_version", "plugins/module_utils/version.py names no version.")
    return found[1]


def code() -> dict[str, oci.Entry]:
    """Our own files in the image."""
    entries = {"host": oci.directory()}
    sources = {
        "rdma_k8s": TREE / "plugins" / "module_utils",
        "rdma_k8s_provider": TREE / "image" / "rdma_k8s_provider",
    }
    for package, source in sources.items():
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entries[f"{HOME}/{package}/{path.relative_to(source)}"] = oci.file(path.read_bytes())
    licence = TREE / "LICENSES" / "GPL-3.0-or-later.txt"
    entries["usr/share/doc/rdma-k8s/copyright"] = oci.file(licence.read_bytes())
    return entries


@dataclasses.dataclass(frozen=True)
class Built:
    """An image of one architecture, with its bill of materials."""

    image: oci.Image
    sbom: str

    @property
    def base(self) -> str:
        """The digest of its lower layer."""
        return oci.digest(self.image.layers[0])


def build(base: bytes, architecture: str = "amd64") -> Built:
    """The image of a lower layer and the code as it stands now."""
    sbom = sbom_tool().text(read_layer(base)[STATUS].content.decode(), version())
    upper = oci.layer({**code(), SBOM: oci.file(sbom.encode())})
    config = {
        "Cmd": list(COMMAND),
        "Env": [f"{key}={value}" for key, value in ENVIRONMENT.items()],
        "Labels": {
            "org.opencontainers.image.licenses": "GPL-3.0-or-later",
            "org.opencontainers.image.title": "rdma-k8s",
            "org.opencontainers.image.version": version(),
        },
        "WorkingDir": "/",
    }
    return Built(oci.Image(IMAGE, (base, upper), config, architecture, "tests/lab/rdma_image.py"), sbom)


def base_archive(base: bytes) -> bytes:
    """An archive of the lower layer alone, which nodes load before they are saved."""
    return oci.archive(oci.Image(BASE_IMAGE, (base,), {"WorkingDir": "/"}))


def code_archive(base: bytes) -> bytes:
    """An archive of the image without its lower layer, for nodes that have it."""
    built = build(base)
    return oci.archive(built.image, without=(built.base,))


# --- looking at it ----------------------------------------------------------------------------------------------


def read_layer(layer: bytes) -> dict[str, oci.Entry]:
    """The entries of a layer that was made here."""
    kinds = {number: name for name, number in oci.KINDS.items()}
    found = {}
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            found[member.name] = oci.Entry(
                kinds[member.type], member.mode, content.read() if content else b"", member.linkname
            )
    return found


def unpacked(entries: dict[str, oci.Entry]) -> int:
    """Bytes that entries take on a disk with blocks of 4096 bytes; directories and links take one block."""
    return sum(max(-(-len(entry.content) // BLOCK), 1) * BLOCK for entry in entries.values())


def strangers(entries: dict[str, oci.Entry], architecture: str) -> list[str]:
    """ELF files that are not for an architecture."""
    wrong = []
    for path, entry in entries.items():
        head = entry.content[:20]
        if head[:4] == b"\x7fELF" and (
            head[4:6] != b"\x02\x01" or int.from_bytes(head[18:20], "little") != MACHINES[architecture]
        ):
            wrong.append(path)
    return wrong


def write(
    cache: Cache, directory: pathlib.Path, architectures: tuple[str, ...] = tuple(MACHINES)
) -> list[str]:
    """Write the image as archives, one for each architecture and one for all, and the bills of materials.

    :returns: one line about each architecture.
    :raises LabError: ``image_wrong`` for an image that is too large or has programs of another machine.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines, images = [], []
    for architecture in architectures:
        built = build(ensure_base(cache, architecture), architecture)
        entries = {path: entry for layer in built.image.layers for path, entry in read_layer(layer).items()}
        size, wrong = unpacked(entries), strangers(entries, architecture)
        if size > LIMIT:
            raise LabError(
                "image_wrong", f"The image for {architecture} has {size} bytes unpacked, over {LIMIT}."
            )
        if wrong:
            raise LabError(
                "image_wrong", f"The image for {architecture} has programs for others: {wrong[0]}."
            )
        archive = oci.archive(built.image)
        (directory / f"rdma-k8s-{architecture}.tar").write_bytes(archive)
        (directory / f"rdma-k8s-{architecture}.cdx.json").write_text(built.sbom, encoding="utf-8")
        images.append(built.image)
        count = len(json.loads(built.sbom)["components"])
        lines.append(
            f"{architecture}: {size / 1e6:.1f} MB unpacked, {count} packages, archive {oci.digest(archive)}"
        )
    if len(images) > 1:
        (directory / "rdma-k8s.tar").write_bytes(oci.archive(*images))
    return lines
