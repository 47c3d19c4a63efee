# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images as files: archives in OCI layout. The same content gives the same bytes."""

from __future__ import annotations

import collections.abc
import dataclasses
import hashlib
import io
import json
import tarfile


def digest(content: bytes) -> str:
    """The digest by which an image knows a part of it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclasses.dataclass(frozen=True)
class Image:
    """An image: its layers, the lowest first, and what runs in it by default (``config`` of its configuration)."""

    name: str
    layers: tuple[bytes, ...]
    config: dict
    architecture: str = "amd64"
    created_by: str = "tests/lab"


def archive(*images: Image, without: collections.abc.Collection[str] = ()) -> bytes:
    """A tar file in OCI layout with images: one, or one for each architecture.

    :param without: digests of layers that are left out, because whoever reads the archive has them already.
    """
    blobs: dict[str, bytes] = {}

    def put(kind: str, content: bytes) -> dict:
        blobs[digest(content)] = content
        return {
            "mediaType": f"application/vnd.oci.image.{kind}",
            "digest": digest(content),
            "size": len(content),
        }

    described = []
    for image in images:
        config = {
            "architecture": image.architecture,
            "os": "linux",
            "config": image.config,
            "rootfs": {"type": "layers", "diff_ids": [digest(content) for content in image.layers]},
            "history": [{"created_by": image.created_by} for _layer in image.layers],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": put("config.v1+json", _json(config)),
            "layers": [put("layer.v1.tar", content) for content in image.layers],
        }
        entry = put("manifest.v1+json", _json(manifest))
        if len(images) > 1:
            entry["platform"] = {"architecture": image.architecture, "os": "linux"}
        described.append(entry)
    index: dict = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
    if len(images) > 1:
        # Tools name one entry of the outer index, so several architectures are an index of their own.
        described = [put("index.v1+json", _json({**index, "manifests": described}))]
    name = images[0].name
    described[0]["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    }
    inside = {
        "oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
        "index.json": _json({**index, "manifests": described}),
    }
    for key in sorted(blobs):
        if key not in without:
            inside[f"blobs/sha256/{key.removeprefix('sha256:')}"] = blobs[key]
    return tar_of(inside, 0o644)


def tar_of(files: dict[str, bytes], mode: int) -> bytes:
    """The files as a tar archive, all with one mode."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _json(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
