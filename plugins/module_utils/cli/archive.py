# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The archive of ``bundle``: the same bytes for the same content, read without trust.

Private to rdma.k8s: it may change with any release.

A bundle is a gzipped tar with ``manifest.json``, ``snapshots/NAME.json`` for each node, and where they are known
``cluster.json``, ``policy.json`` and ``result.json``, all below one directory. Reading never writes a file: members are
taken from the stream one by one, only plain files with these names, up to fixed sizes.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .. import records
from ..core import codec, json_text
from ..core.checks.judge import NodeInput
from ..core.checks.policy import Policy
from ..core.cluster_snapshot import ClusterSnapshot
from ..core.errors import RdmaError
from ..core.redact import redacted
from ..core.report.document import ResultDocument
from ..version import VERSION

KIND = "rdma.k8s/bundle"
SCHEMA_VERSION = 1
TOP = "rdma-k8s-bundle"
MAX_MEMBER = 256 << 20
MAX_TOTAL = 1 << 30
MAX_MEMBERS = 100_000

_MAGIC = b"\x1f\x8b"
_NAME = re.compile(TOP + r"/(?:(manifest|policy|result|cluster)|snapshots/[^/\0]+)\.json")
_HINT = "Give the archive as 'rdma-k8s bundle' wrote it."


@dataclass
class Bundle:
    """What an archive holds. ``policy`` is plain data, ``judged_at`` the time of the result."""

    nodes: list[NodeInput] = field(default_factory=list)
    policy: Any = None
    result: Optional[ResultDocument] = None
    judged_at: str = ""
    cluster: Optional[ClusterSnapshot] = None


# Writing


def pack(
    nodes: Sequence[NodeInput],
    policy: Policy,
    result: Optional[ResultDocument] = None,
    judged_at: str = "",
    cluster: Optional[ClusterSnapshot] = None,
) -> bytes:
    """The bytes of a bundle; the same content gives the same bytes.

    :raises RdmaError: ``record_name`` when the name of a node cannot be a file name.
    """
    packed = io.BytesIO()
    zipped = gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0)
    with zipped, tarfile.open(mode="w", fileobj=zipped, format=tarfile.PAX_FORMAT) as tar:
        for name, document in _members(nodes, policy, result, judged_at, cluster):
            text = json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
            content = text.encode("ascii")
            member = tarfile.TarInfo("%s/%s.json" % (TOP, name))
            member.size, member.mode, member.mtime = len(content), 0o600, 0
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def _members(
    nodes: Sequence[NodeInput],
    policy: Policy,
    result: Optional[ResultDocument],
    judged_at: str,
    cluster: Optional[ClusterSnapshot],
) -> Iterator[tuple[str, Any]]:
    yield (
        "manifest",
        {
            "kind": KIND,
            "schema_version": SCHEMA_VERSION,
            "collection_version": VERSION,
            "collectors": sorted(
                {node.snapshot.collector.version for node in nodes if node.snapshot is not None}
            ),
            "judged_at": judged_at,
            "nodes": len(nodes),
        },
    )
    yield "policy", redacted(codec.encode(policy))
    if result is not None:
        yield "result", redacted(result.to_dict())
    if cluster is not None:
        yield "cluster", records.cluster_document(cluster)
    for node in sorted(nodes, key=lambda node: node.name):
        yield "snapshots/" + records.file_name(node.name)[: -len(records.SUFFIX)], records.document(node)


# Reading


def is_archive(content: bytes) -> bool:
    """Whether bytes look like a bundle (gzip)."""
    return content.startswith(_MAGIC)


def unpack(path: str, content: bytes) -> Bundle:
    """Read a bundle. ``path`` names it in errors.

    :raises RdmaError: ``bundle_unsafe``, ``bundle_damaged``, ``bundle_newer_schema``, or an error of a document in it,
        always with the name of the archive.
    """
    bundle = Bundle()
    documents = dict(_documents(path, content))
    manifest = documents.pop(TOP + "/manifest.json", None)
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise RdmaError("bundle_damaged", "%s holds no manifest of a bundle." % path, hint=_HINT, path=path)
    version = manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version > SCHEMA_VERSION:
        raise RdmaError(
            "bundle_newer_schema",
            "%s has schema version %s; this release reads up to version %d."
            % (path, json.dumps(version)[:20], SCHEMA_VERSION),
            hint="Update rdma-k8s.",
            path=path,
        )
    judged_at = manifest.get("judged_at")
    bundle.judged_at = judged_at if isinstance(judged_at, str) else ""
    bundle.policy = documents.pop(TOP + "/policy.json", None)
    if bundle.policy is not None and not isinstance(bundle.policy, dict):
        raise RdmaError(
            "bundle_damaged", "%s: policy.json is no map of settings." % path, hint=_HINT, path=path
        )
    result = documents.pop(TOP + "/result.json", None)
    if result is not None:
        bundle.result = _named(path, lambda: ResultDocument.from_dict(result))
    cluster = documents.pop(TOP + "/cluster.json", None)
    if cluster is not None:
        bundle.cluster = records.cluster_from(cluster, "%s:cluster.json" % path)
    for name in sorted(documents):
        bundle.nodes.append(records.node_input(documents[name], "%s:%s" % (path, name[len(TOP) + 1 :])))
    if not bundle.nodes and bundle.cluster is None:
        raise RdmaError("records_empty", "%s holds no recorded snapshot." % path, hint=_HINT, path=path)
    return bundle


def _named(path: str, read: Any) -> Any:
    try:
        return read()
    except RdmaError as error:
        raise RdmaError(error.code, "%s: %s" % (path, error.message), hint=error.hint, path=path) from error


def _documents(path: str, content: bytes) -> Iterator[tuple[str, Any]]:
    for name, data in _files(path, content):
        try:
            yield name, json_text.loads(data.decode("utf-8"))
        except ValueError as error:
            raise RdmaError(
                "bundle_damaged", "%s: %s is not JSON: %s." % (path, name, error), hint=_HINT, path=path
            ) from error


def _files(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as unzipped:
            limited: Any = _Limited(unzipped, path)
            with tarfile.open(fileobj=limited, mode="r|") as tar:
                for member in tar:
                    if member.isdir():
                        continue
                    name = member.name[2:] if member.name.startswith("./") else member.name
                    _refuse_unsafe(path, member, name, seen)
                    seen.add(name)
                    stream = tar.extractfile(member)
                    if stream is not None:
                        yield name, stream.read()
    except (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError) as error:
        raise RdmaError(
            "bundle_damaged", "%s is damaged: %s." % (path, error), hint=_HINT, path=path
        ) from error


def _refuse_unsafe(path: str, member: tarfile.TarInfo, name: str, seen: set[str]) -> None:
    reason = ""
    if not member.isfile() or member.issparse():
        reason = "is not a plain file"
    elif not _NAME.fullmatch(name):
        reason = "is none of the files of a bundle"
    elif name in seen:
        reason = "is there twice"
    elif member.size > MAX_MEMBER:
        reason = "is larger than %d MiB" % (MAX_MEMBER >> 20)
    elif len(seen) >= MAX_MEMBERS:
        reason = "is one file too many"
    if reason:
        raise RdmaError(
            "bundle_unsafe",
            "%s is refused: %r %s." % (path, member.name[:200], reason),
            hint=_HINT,
            path=path,
        )


class _Limited:
    """A stream that ends with an error instead of growing without bound."""

    def __init__(self, stream: gzip.GzipFile, path: str) -> None:
        self.stream = stream
        self.path = path
        self.left = MAX_TOTAL

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise RdmaError(
                "bundle_unsafe",
                "%s is refused: it unpacks to more than %d MiB." % (self.path, MAX_TOTAL >> 20),
                hint=_HINT,
                path=self.path,
            )
        return data
