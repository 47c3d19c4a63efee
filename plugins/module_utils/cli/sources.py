# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a command is given: snapshots, result documents, bundles, a policy.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union, get_args, get_type_hints

from .. import judging, records
from ..core import json_text
from ..core.checks.judge import NodeInput, judge
from ..core.checks.policy import Policy
from ..core.cluster_snapshot import KIND as CLUSTER_KIND, ClusterSnapshot
from ..core.errors import RdmaError
from ..core.report.document import KIND, ResultDocument
from ..core.stamps import seconds_between
from ..version import VERSION
from . import archive
from .near import did_you_mean

DEFAULT_SNAPSHOTS = "snapshots"
SNAPSHOTS_VARIABLE = "RDMA_K8S_SNAPSHOTS"


@dataclass(frozen=True)
class Source:
    """What a path holds: nodes to judge, a result document, or both (a bundle with its result).

    ``cluster`` is that of the nodes, when it was recorded. ``policy`` and ``judged_at`` are those of a bundle.
    """

    path: str
    nodes: Optional[Sequence[NodeInput]] = None
    result: Optional[ResultDocument] = None
    policy: Any = None
    judged_at: str = ""
    cluster: Optional[ClusterSnapshot] = None


def read(path: str) -> Source:
    """Read a directory of snapshots, a snapshot of a node or a cluster, a bundle or a result document.

    A directory whose only JSON file is ``result.json`` is one with reports, and its result document is read; beside it
    there can be the cluster that preflight read.

    :raises RdmaError: ``source_unreadable``, ``source_not_json``, or what the reader of the content raises.
    """
    if os.path.isdir(path):
        report = os.path.join(path, "result.json")
        others = {name for name in _names(path) if name.endswith(".json")} - {records.CLUSTER_FILE}
        if os.path.isfile(report) and len(others) == 1:
            return read(report)
        found = records.recording(path)
        return Source(path, nodes=found.nodes, cluster=found.cluster)
    content = _content(path)
    if archive.is_archive(content):
        bundle = archive.unpack(path, content)
        return Source(path, bundle.nodes, bundle.result, bundle.policy, bundle.judged_at, bundle.cluster)
    try:
        document = json_text.loads(content.decode("utf-8"))
    except ValueError as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise RdmaError(
            "source_not_json",
            "%s is neither JSON nor a bundle: %s." % (path, reason),
            hint="Give a directory of recorded snapshots, one snapshot, a bundle or a result.json.",
            path=path,
        ) from error
    if isinstance(document, dict) and document.get("kind") == CLUSTER_KIND:
        return Source(path, nodes=[], cluster=records.cluster_from(document, path))
    if isinstance(document, dict) and "kind" in document:
        return Source(path, result=_result(document, path))
    return Source(path, nodes=[records.node_input(document, path)])


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> RdmaError:
    return RdmaError(
        "source_unreadable",
        "%s cannot be read: %s." % (path or "''", getattr(error, "strerror", None) or error),
        hint="Give a directory of recorded snapshots, one snapshot, a bundle or a result.json.",
        path=path,
    )


def _result(document: Any, path: str) -> ResultDocument:
    if document.get("kind") != KIND:
        raise RdmaError(
            "result_not_a_result",
            "%s is no result document: its 'kind' is %s, expected %r."
            % (path, json.dumps(document["kind"])[:60], KIND),
            path=path,
        )
    try:
        return ResultDocument.from_dict(document)
    except RdmaError as error:
        raise RdmaError(
            error.code, "%s: %s" % (path, error.message), hint=error.hint, **{**error.details, "path": path}
        ) from error


def recorded(path: Optional[str]) -> Source:
    """The recorded nodes of ``--snapshots``, of ``$RDMA_K8S_SNAPSHOTS``, or of the directory ``snapshots``.

    :raises RdmaError: ``snapshots_not_given``, ``snapshots_needed``, or an error of :func:`read`.
    """
    chosen = path if path is not None else os.environ.get(SNAPSHOTS_VARIABLE) or None
    if chosen is None:
        if not os.path.isdir(DEFAULT_SNAPSHOTS):
            raise RdmaError(
                "snapshots_not_given",
                "No recorded snapshots are given.",
                hint="Say --snapshots DIR, set %s, or run where a directory '%s' is."
                % (SNAPSHOTS_VARIABLE, DEFAULT_SNAPSHOTS),
            )
        chosen = DEFAULT_SNAPSHOTS
    return with_nodes(read(chosen))


def with_nodes(source: Source) -> Source:
    """The source itself when it has snapshots.

    :raises RdmaError: ``snapshots_needed`` when it is a result document.
    """
    if source.nodes is None:
        raise RdmaError(
            "snapshots_needed",
            "%s is a result document; recorded snapshots are needed here." % source.path,
            hint="A result document does not hold what the nodes told. Record with 'preflight -e record=DIR'.",
            path=source.path,
        )
    return source


def policy_of(source: Source, path: Optional[str], settings: Sequence[str]) -> Policy:
    """The policy of ``--policy``, else of the bundle, else the default; ``--set`` is laid over it.

    :raises RdmaError: ``setting_malformed``, ``setting_unknown``, or an error of the policy.
    """
    given = _settings(settings)
    if path is None and source.policy is not None:
        return judging.policy_from(None, {**source.policy, **given})
    return judging.policy_from(path, given)


def _settings(settings: Sequence[str]) -> dict[str, Any]:
    types = get_type_hints(Policy)
    found: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise RdmaError("setting_malformed", "--set %r must be KEY=VALUE." % setting)
        if key not in types:
            raise RdmaError(
                "setting_unknown",
                "The policy has no setting %r%s" % (key, did_you_mean(key, types)),
                hint="Settings: %s." % ", ".join(types),
            )
        found[key] = _value(key, value.strip(), types[key])
    return found


def _value(key: str, text: str, kind: Any) -> Any:
    kinds = get_args(kind) if Union in (getattr(kind, "__origin__", None),) else (kind,)
    if text[:1] in ("[", "{"):
        try:
            return json_text.loads(text)
        except ValueError as error:
            raise RdmaError(
                "setting_malformed", "--set %s: the value is not JSON: %s." % (key, error)
            ) from error
    if int in kinds:
        if not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise RdmaError("setting_malformed", "--set %s: %r is not a whole number." % (key, text))
        return int(text)
    if tuple[str, ...] in kinds:
        return [part.strip() for part in text.split(",") if part.strip()]
    if str in kinds:
        return text
    raise RdmaError(
        "setting_malformed", "--set %s: the value must be JSON; a policy file reads better." % key
    )


def judged(source: Source, policy: Policy) -> ResultDocument:
    """The result document of a source: judged now, or for a bundle at the time of its result, so that it replays.

    :raises RdmaError: ``no_nodes``, or what the judgement raises.
    """
    nodes = source.nodes or []
    if source.judged_at and nodes:
        return judge(nodes, policy, source.judged_at, VERSION, source.cluster)
    return judging.judge_now(nodes, policy, source.cluster)


def is_time(text: str) -> bool:
    """Whether a text is a time as result documents write it."""
    return seconds_between(text, text) is not None


def selecting(policy: Policy, only: Iterable[str], skip: Iterable[str]) -> Policy:
    """The policy with ``--only`` and ``--skip`` in place of its own ``only`` and ``skip``, where they are given."""
    return replace(policy, only=tuple(only) or policy.only, skip=tuple(skip) or policy.skip)


def node_named(name: str, nodes: Iterable[NodeInput]) -> NodeInput:
    """The node of this name.

    :raises RdmaError: ``node_unknown``, with names that look like it.
    """
    known = {node.name: node for node in nodes}
    if name not in known:
        raise RdmaError(
            "node_unknown",
            "There is no node %r among the %d recorded ones%s"
            % (name, len(known), did_you_mean(name, known, _for_example(known))),
            node=name,
        )
    return known[name]


def _for_example(names: Iterable[str]) -> str:
    shown = sorted(names)[:3]
    return " (%s, ...)." % ", ".join(shown) if shown else "."
