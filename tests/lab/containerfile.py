# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds image/Containerfile with Buildah, without containers (isolation ``chroot``), and compares what comes out.

Buildah gets a storage of its own; the slim image that it starts from is made of the distribution's packages.
"""

from __future__ import annotations

import gzip
import io
import json
import pathlib
import tarfile

from . import oci, packages, rdma_image
from .errors import LabError
from .image import Cache, apt_sources, remove_tree
from .progress import run_logged

BASE = "lab.test/debian:1"
TARGET = "lab.test/rdma-k8s:containerfile"
SHOWN = 5

Paths = dict[str, tuple[int, bytes, str]]
"""Of each path its mode, its content, and what it leads to."""


def compare(cache: Cache, architecture: str) -> str:
    """Build for an architecture and compare with the image of the lab; one line about it.

    :raises LabError: ``image_differs``, or the errors of the programs.
    """
    packages.require_root("Building with Buildah")
    suite = packages.require_debian("Building with Buildah")
    packages.ensure_tools(("mmdebstrap", "buildah"), cache.log, cache.progress)
    place = cache.path / "buildah"
    remove_tree(place, cache.path)
    place.mkdir(parents=True)
    try:
        with cache.progress.step("a slim image to build with"):
            _base(cache, suite, place)
        with cache.progress.step(f"the Containerfile by Buildah, {architecture}"):
            built = _build(cache, architecture, place)
    finally:
        remove_tree(place, cache.path)
    wanted = _lab(cache, architecture)
    wrong = sorted(path for path in {*wanted, *built} if wanted.get(path) != built.get(path))
    if wrong:
        raise LabError(
            "image_differs", f"{len(wrong)} paths are not as in the lab: {', '.join(wrong[:SHOWN])}"
        )
    return f"{architecture}: the Containerfile gives the same {len(wanted)} paths"


def _base(cache: Cache, suite: str, place: pathlib.Path) -> None:
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", suite, str(place / "base.tar")]
    run_logged([*command, *map(str, apt_sources())], cache.log, env=packages.environment())
    config = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}
    image = oci.Image(BASE, ((place / "base.tar").read_bytes(),), config)
    (place / "base.oci").write_bytes(oci.archive(image))
    (place / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')


def _build(cache: Cache, architecture: str, place: pathlib.Path) -> Paths:
    storage = ["--root", str(place / "storage"), "--runroot", str(place / "run"), "--storage-driver", "vfs"]
    policy = ["--signature-policy", str(place / "policy.json")]

    def buildah(*words: str) -> None:
        run_logged(["buildah", *storage, *words], cache.log, cwd=rdma_image.build_tool.TREE)

    buildah("pull", *policy, f"oci-archive:{place / 'base.oci'}")
    platform = ["--platform", f"linux/{architecture}", "--build-arg", "BUILDPLATFORM=linux/amd64"]
    options = ["--isolation", "chroot", "--pull-never", "--build-arg", f"BASE={BASE}", *platform]
    buildah("build", *policy, *options, "--tag", TARGET, "--file", "image/Containerfile", ".")
    buildah("push", *policy, TARGET, f"oci-archive:{place / 'built.oci'}")
    return _unpacked(place / "built.oci", architecture)


def _unpacked(archive: pathlib.Path, architecture: str) -> Paths:
    found: Paths = {}
    with tarfile.open(archive) as tar:

        def blob(described: dict) -> bytes:
            file = tar.extractfile("blobs/sha256/" + described["digest"].removeprefix("sha256:"))
            return file.read() if file else b""

        index = tar.extractfile("index.json")
        manifest = json.loads(blob(json.loads(index.read() if index else b"")["manifests"][0]))
        said = json.loads(blob(manifest["config"]))["architecture"]
        if said != architecture:
            raise LabError("image_differs", f"The image calls itself {said}, not {architecture}.")
        for entry in manifest["layers"]:
            content = blob(entry)
            data = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            found.update(_paths(data))
    return found


def _paths(layer: bytes) -> Paths:
    found: Paths = {}
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        for member in tar:
            name = member.name.strip("/")
            if name in ("", "."):
                continue
            file = tar.extractfile(member) if member.isfile() or member.islnk() else None
            # The mode of a link means nothing.
            mode, target = (0, member.linkname) if member.issym() else (member.mode & 0o7777, "")
            found[name] = (mode, file.read() if file else b"", target)
    return found


def _lab(cache: Cache, architecture: str) -> Paths:
    built = rdma_image.build(rdma_image.ensure_base(cache, architecture), architecture)
    found: Paths = {}
    for layer in built.image.layers:
        found.update(_paths(layer))
    return found
