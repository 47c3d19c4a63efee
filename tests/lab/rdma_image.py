# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The in-cluster image without a container engine, by the program that the Containerfile runs too: ``image/build.py``.

The lower layer is large and seldom changes. Nodes have it in their saved state, and get the upper one when they join,
so that an edit of the code costs no new saved state.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import pathlib
import sys
import types

from . import oci, packages, plan
from .errors import LabError
from .image import Cache, apt_sources, remove_tree

IMAGE = "lab.test/rdma-k8s:1"
"""Name of the image in the lab."""
BASE_IMAGE = "lab.test/rdma-k8s-base:1"
"""Name of an image of the lower layer alone."""
HERE = "tests/lab/rdma_image.py"


def tool(name: str) -> types.ModuleType:
    """A program of ``image/`` as a module."""
    path = pathlib.Path(__file__).resolve().parents[2] / "image" / f"{name}.py"
    described = importlib.util.spec_from_file_location(f"rdma_k8s_image_{name}", path)
    if described is None or described.loader is None or not path.is_file():
        raise LabError("no_image_tool", f"{path} cannot be loaded.")
    module = importlib.util.module_from_spec(described)
    # A dataclass looks for its module there.
    sys.modules[described.name] = module
    described.loader.exec_module(module)
    return module


build_tool = tool("build")
sbom_tool = tool("sbom")


def base_key(suite: str, architecture: str) -> str:
    """Hash of what the lower layer is made from; the packages themselves are those of the day it was made."""
    ways = [
        inspect.getsource(part)
        for part in (build_tool.read_package, build_tool.settle, build_tool.layer, build_tool.compiled)
    ]
    return plan.digest(
        suite, architecture, build_tool.words("packages.txt"), build_tool.words("excludes"), ways
    )


def ensure_base(cache: Cache, architecture: str = "amd64") -> bytes:
    """The lower layer, made if need be."""
    name = f"rdma-image-{architecture}"
    key = {"key": base_key(packages.require_debian("Making the in-cluster image"), architecture)}
    with cache.locked():
        if cache.read_json(f"{name}/key.json") != key:
            packages.ensure_tools(("dpkg-deb",), cache.log, cache.progress)
            with (
                cache.progress.step(f"packages of the in-cluster image, {architecture}"),
                cache.building(name) as directory,
            ):
                made = _make_base(cache, architecture, directory / "apt")
                remove_tree(directory / "apt", cache.path)
                (directory / "layer.tar").write_bytes(made)
                (directory / "key.json").write_text(json.dumps(key), encoding="utf-8")
        return (cache.path / name / "layer.tar").read_bytes()


def _make_base(cache: Cache, architecture: str, directory: pathlib.Path) -> bytes:
    def apt(arguments: list[str]) -> None:
        packages.apt(arguments, cache.log)

    try:
        return build_tool.packages_layer(build_tool.fetch(architecture, directory, apt, apt_sources()))
    except build_tool.BuildError as error:
        raise LabError("image_wrong", str(error)) from error


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
    lower = build_tool.read_layer(base)
    bill = sbom_tool.text(lower[build_tool.STATUS].content.decode(), build_tool.version())
    config = {
        "Cmd": list(build_tool.COMMAND),
        "Env": [f"{key}={value}" for key, value in build_tool.ENVIRONMENT.items()],
        "Labels": {
            "org.opencontainers.image.licenses": "GPL-3.0-or-later",
            "org.opencontainers.image.title": "rdma-k8s",
            "org.opencontainers.image.version": build_tool.version(),
        },
        "WorkingDir": "/",
    }
    layers = (base, build_tool.code_layer(bill, build_tool.python_of(lower)))
    return Built(oci.Image(IMAGE, layers, config, architecture, HERE), bill)


def base_archive(base: bytes) -> bytes:
    """An archive of the lower layer alone, which nodes load before they are saved."""
    return oci.archive(oci.Image(BASE_IMAGE, (base,), {"WorkingDir": "/"}))


def write(cache: Cache, directory: pathlib.Path, architectures: tuple[str, ...]) -> list[str]:
    """Write the image as archives, one for each architecture and one for all, and the bills of materials.

    :returns: one line about each architecture.
    :raises LabError: ``image_wrong`` for an image that is too large or has programs of another machine.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lines, images = [], []
    for architecture in architectures:
        built = build(ensure_base(cache, architecture), architecture)
        entries: dict = {}
        for layer in built.image.layers:
            entries.update(build_tool.read_layer(layer))
        try:
            size = build_tool.check(entries, architecture)
        except build_tool.BuildError as error:
            raise LabError("image_wrong", str(error)) from error
        archive = oci.archive(built.image)
        (directory / f"rdma-k8s-{architecture}.tar").write_bytes(archive)
        (directory / f"rdma-k8s-{architecture}.cdx.json").write_text(built.sbom, encoding="utf-8")
        images.append(built.image)
        count = len(json.loads(built.sbom)["components"])
        lines.append(f"{architecture}: {size / 1e6:.1f} MB unpacked, {count} packages, {oci.digest(archive)}")
    if len(images) > 1:
        (directory / "rdma-k8s.tar").write_bytes(oci.archive(*images))
    return lines
