# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the root file system of the image: packages of the distribution below, the code of this tree above.

python3 image/build.py ARCHITECTURE FILE.tar    writes it, and FILE.cdx.json beside it; ARCHITECTURE: amd64 or arm64

It needs Debian, Python and what ``image/``, ``LICENSES/`` and ``plugins/module_utils/`` hold. Nothing is installed, and
nothing of the image runs: packages are read, and written again as layers. So it needs no root, and the image may be for
another architecture than the machine. The same packages give the same bytes.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import fnmatch
import io
import os
import pathlib
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[1]
MACHINES = {"amd64": 62, "arm64": 183}
"""Architectures, with the number of their machine in the header of an ELF file."""
LIMIT = 150_000_000
"""Bytes that the image has at most, unpacked in blocks of 4096."""
BLOCK = 4096
HOME = "usr/lib/rdma-k8s"
SBOM = "usr/share/rdma-k8s/sbom.cdx.json"
MERGED = ("bin", "lib", "lib32", "lib64", "libx32", "sbin")
"""Directories of the root that are links into usr."""
STATUS = "var/lib/dpkg/status"
KINDS = {"dir": tarfile.DIRTYPE, "file": tarfile.REGTYPE, "link": tarfile.SYMTYPE}
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "PYTHONPATH": "/usr/lib/rdma-k8s",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Variables of the image. Compiled Python comes with it; a pod could not write it, as its root is read-only."""
COMMAND = ("python3", "-m", "rdma_k8s_provider")


class BuildError(Exception):
    """The image cannot be made, said in one sentence."""


# --- layers -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Entry:
    """One path of a layer. Everything belongs to root and is as old as the epoch."""

    kind: str
    mode: int = 0o755
    content: bytes = b""
    target: str = ""


def directory(mode: int = 0o755) -> Entry:
    """A directory."""
    return Entry("dir", mode)


def file(content: bytes, mode: int = 0o644) -> Entry:
    """A file."""
    return Entry("file", mode, content)


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry("link", 0o777, target=target)


def layer(entries: collections.abc.Mapping[str, Entry]) -> bytes:
    """A layer, a tar file, with these paths (relative to the root), sorted; directories above them are made.

    It is not compressed: unpacking it would cost an emulated processor more than reading it.
    """
    complete = dict(entries)
    for path in entries:
        for parent in pathlib.PurePosixPath(path).parents[:-1]:
            complete.setdefault(str(parent), directory())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(complete):
            entry = complete[path]
            member = tarfile.TarInfo(path)
            member.type, member.mode, member.linkname = KINDS[entry.kind], entry.mode, entry.target
            member.size = len(entry.content)
            tar.addfile(member, io.BytesIO(entry.content))
    return out.getvalue()


def read_layer(data: bytes) -> dict[str, Entry]:
    """The entries of a layer that was made here."""
    kinds = {number: name for name, number in KINDS.items()}
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            found[member.name] = Entry(
                kinds[member.type], member.mode, content.read() if content else b"", member.linkname
            )
    return found


# --- the lower layer: packages ----------------------------------------------------------------------------------


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


def read_package(data: bytes, rules: list[str]) -> dict[str, Entry]:
    """The paths of a package from its file system as tar; no owner, no time, no bit that lends rights.

    :raises BuildError: for a path that leads out of the root, or is no file, directory or link.
    """
    found: dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            name = posixpath.normpath(member.name.lstrip("/"))
            if name.split("/")[0] == "..":
                raise BuildError(f"A package has the path {member.name}, which leads out of the root.")
            if name in (".", *MERGED) or (not member.isdir() and excluded(f"/{name}", rules)):
                continue
            if member.isdir():
                entry = directory(member.mode & 0o1777)
            elif member.issym():
                entry = link(member.linkname)
            elif member.isfile() or member.islnk():
                # Another name of a file becomes a file of its own.
                content = tar.extractfile(member)
                entry = file(content.read() if content else b"", member.mode & 0o777)
            else:
                raise BuildError(f"A package has {name}, which is no file, directory or link.")
            found[merged(name)] = entry
    return found


def settle(entries: dict[str, Entry]) -> None:
    """Do what the scripts of the packages would have done, as far as the image needs it; no script runs."""
    used = {
        str(parent) for path, entry in entries.items() if entry.kind != "dir" for parent in _parents(path)
    }
    for path in [name for name in entries if name.startswith("usr/share/")]:
        # A directory whose files are all left out is of no use.
        if entries[path].kind == "dir" and path not in used:
            del entries[path]
    for name in MERGED:
        if f"usr/{name}" in used:
            entries[name] = link(f"usr/{name}")
    for name, source in (
        ("passwd", "base-passwd/passwd.master"),
        ("group", "base-passwd/group.master"),
        ("nsswitch.conf", "libc-bin/nsswitch.conf"),
    ):
        if f"usr/share/{source}" not in entries:
            raise BuildError(f"No package has /usr/share/{source}, of which /etc/{name} is made.")
        entries[f"etc/{name}"] = file(entries[f"usr/share/{source}"].content)
    entries["usr/bin/sh"] = link("dash")
    entries["run"], entries["var/run"] = directory(), link("/run")
    entries["tmp"] = directory(0o1777)


def _parents(path: str) -> tuple[pathlib.PurePosixPath, ...]:
    return tuple(pathlib.PurePosixPath(path).parents)[:-1]


def status_of(controls: list[str]) -> str:
    """The status of dpkg with packages, by their control files: as if they had been installed."""
    paragraphs = []
    for control in controls:
        name, line, rest = control.strip().partition("\n")
        paragraphs.append(f"{name}{line}Status: install ok installed\n{rest}\n")
    return "\n".join(sorted(paragraphs))


def packages_layer(archives: list[pathlib.Path]) -> bytes:
    """The lower layer, of files of packages."""
    rules = words("excludes")
    entries: dict[str, Entry] = {}
    controls = []
    for path in archives:
        for name, entry in read_package(_dpkg("--fsys-tarfile", path), rules).items():
            if entry.kind != "dir" or name not in entries:
                entries[name] = entry
        controls.append(_dpkg("--field", path).decode())
    settle(entries)
    entries[STATUS] = file(status_of(controls).encode())
    return layer({**entries, **compiled(entries, python_of(entries))})


def _dpkg(action: str, path: pathlib.Path) -> bytes:
    done = subprocess.run(["dpkg-deb", action, str(path)], capture_output=True, check=False)
    if done.returncode:
        raise BuildError(f"{path.name}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def sources(base: pathlib.Path = pathlib.Path("/etc/apt")) -> list[pathlib.Path]:
    """The files with the package sources of this machine."""
    files = [base / "sources.list", *sorted((base / "sources.list.d").glob("*"))]
    return [path for path in files if path.suffix in (".list", ".sources") and path.is_file()]


def fetch(
    architecture: str,
    where: pathlib.Path,
    apt: collections.abc.Callable[[list[str]], None],
    from_files: collections.abc.Iterable[pathlib.Path],
) -> list[pathlib.Path]:
    """Fetch the packages and all that they depend on, as for a machine on which nothing is installed.

    apt gets a state of its own below ``where``, so the machine's lists and packages are not touched.

    :param apt: runs apt-get with arguments.
    :param from_files: files with package sources.
    """
    parts = where / "sources"
    for path in (parts, where / "lists" / "partial", where / "cache" / "archives" / "partial"):
        path.mkdir(parents=True, exist_ok=True)
    for path in from_files:
        (parts / path.name).write_bytes(path.read_bytes())
    (where / "status").touch()
    settings = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Dir::Cache": where / "cache",
        # Slim images empty this directory after each call.
        "Dir::Cache::archives": where / "cache" / "archives",
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": parts,
        "Dir::State": where,
        "Dir::State::lists": where / "lists",
        "Dir::State::status": where / "status",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    apt([*options, "update"])
    apt([*options, "--yes", "--download-only", "install", *words("packages.txt")])
    return sorted((where / "cache" / "archives").glob("*.deb"))


# --- compiled Python --------------------------------------------------------------------------------------------


def python_of(entries: collections.abc.Mapping[str, Entry]) -> str:
    """The version of Python in a layer, like ``3.11``; empty when there is none."""
    found = (re.fullmatch(r"usr/lib/python(3\.[0-9]+)/os\.py", path) for path in entries)
    return next((match[1] for match in found if match), "")


def compiled(entries: collections.abc.Mapping[str, Entry], version: str) -> dict[str, Entry]:
    """What Python would make of its sources when it first reads them: that takes a node longer than all else it does.

    The code stands for its source without a look at it, so no time of a file matters. Only a Python of the image's own
    version can make it; where this machine has none, nothing is made, and the image is as good but starts later.
    """
    python = next((path for path in (sys.executable, "/usr/bin/python3") if _is_python(path, version)), "")
    sources_of = {
        path: entry.content
        for path, entry in entries.items()
        if entry.kind == "file" and path.endswith(".py") and path.startswith("usr/lib/")
    }
    if not python or not sources_of:
        return {}
    with tempfile.TemporaryDirectory() as place:
        for path, content in sources_of.items():
            target = pathlib.Path(place) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        # A source that does not compile is left as it is; packages have some for other versions.
        command = [python, "-s", "-S", "-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
        # With a seed, sets of constants are written in the same order each time.
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONHASHSEED": "0"}
        subprocess.run([*command, "-s", place, "-p", "/", place], check=False, cwd=place, env=environment)
        root = pathlib.Path(place)
        return {
            str(path.relative_to(root)): file(path.read_bytes())
            for path in sorted(root.rglob("__pycache__/*.pyc"))
        }


def _is_python(path: str, version: str) -> bool:
    script = "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"
    try:
        done = subprocess.run([path, "-I", "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.stdout.split() == [version, "cpython"]


# --- the upper layer: ours --------------------------------------------------------------------------------------


def version() -> str:
    """The version of the collection, which is that of the image."""
    text = (TREE / "plugins" / "module_utils" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'^VERSION = "(.+)"$', text, re.M)
    if not found:
        raise BuildError("plugins/module_utils/version.py names no version.")
    return found[1]


def code_layer(sbom: str, python: str) -> bytes:
    """The upper layer: our own files, for the Python of this version, and the bill of materials."""
    entries = {"host": directory(), SBOM: file(sbom.encode())}
    homes = {
        "rdma_k8s": TREE / "plugins" / "module_utils",
        "rdma_k8s_provider": TREE / "image" / "rdma_k8s_provider",
    }
    for package, source in homes.items():
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entries[f"{HOME}/{package}/{path.relative_to(source)}"] = file(path.read_bytes())
    licence = TREE / "LICENSES" / "GPL-3.0-or-later.txt"
    entries["usr/share/doc/rdma-k8s/copyright"] = file(licence.read_bytes())
    return layer({**entries, **compiled(entries, python)})


# --- looking at it ----------------------------------------------------------------------------------------------


def unpacked(entries: collections.abc.Mapping[str, Entry]) -> int:
    """Bytes that entries take on a disk with blocks of 4096 bytes; directories and links take one block."""
    return sum(max(-(-len(entry.content) // BLOCK), 1) * BLOCK for entry in entries.values())


def strangers(entries: collections.abc.Mapping[str, Entry], architecture: str) -> list[str]:
    """ELF files that are not for an architecture: 64 bits, little-endian, its machine."""
    wrong = []
    for path, entry in entries.items():
        head = entry.content[:20]
        if head[:4] == b"\x7fELF" and (
            head[4:6] != b"\x02\x01" or int.from_bytes(head[18:20], "little") != MACHINES[architecture]
        ):
            wrong.append(path)
    return wrong


def check(entries: collections.abc.Mapping[str, Entry], architecture: str) -> int:
    """The size of an image in bytes.

    :raises BuildError: for one that is too large, has programs of another machine, or has none at all.
    """
    size, wrong = unpacked(entries), strangers(entries, architecture)
    if size > LIMIT:
        raise BuildError(f"The image for {architecture} has {size} bytes unpacked, over {LIMIT}.")
    if wrong:
        raise BuildError(f"The image for {architecture} has programs for other machines: {wrong[0]}.")
    if not any(entry.content[:4] == b"\x7fELF" for entry in entries.values()):
        raise BuildError(f"The image for {architecture} has no program.")
    return size


def main(architecture: str, output: pathlib.Path) -> None:
    """Write a root file system and its bill of materials."""
    import sbom  # noqa: PLC0415 - beside this file, found when it runs as a program

    if architecture not in MACHINES:
        raise BuildError(f"{architecture} is none of {', '.join(MACHINES)}.")

    def apt(arguments: list[str]) -> None:
        done = subprocess.run(
            ["apt-get", "-q", *arguments], env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False
        )
        if done.returncode:
            raise BuildError(f"apt-get ended with code {done.returncode}.")

    with tempfile.TemporaryDirectory() as place:
        lower = read_layer(packages_layer(fetch(architecture, pathlib.Path(place), apt, sources())))
    bill = sbom.text(lower[STATUS].content.decode(), version())
    entries = {**lower, **read_layer(code_layer(bill, python_of(lower)))}
    size = check(entries, architecture)
    output.write_bytes(layer(entries))
    output.with_suffix(".cdx.json").write_text(bill, encoding="utf-8")
    sys.stdout.write(f"{architecture}: {size / 1e6:.1f} MB unpacked\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], pathlib.Path(sys.argv[2]))
    except BuildError as error:
        sys.exit(f"build.py: {error}")
    except IndexError:
        sys.exit(f"build.py: give an architecture ({', '.join(MACHINES)}) and a file to write")
