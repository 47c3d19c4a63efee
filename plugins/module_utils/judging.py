# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From files and variables to a judgement, for playbooks and the command line. Private to rdma.k8s: it may change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Optional

from . import deps
from .core.checks.judge import NodeInput, judge
from .core.checks.policy import Policy
from .core.cluster_snapshot import ClusterSnapshot
from .core.errors import RdmaError
from .core.report.document import ResultDocument
from .core.stamps import STAMP
from .garbage import without_collection
from .version import VERSION


def policy_from(path: Optional[str] = None, settings: Optional[Mapping[str, Any]] = None) -> Policy:
    """The policy of a YAML file, with single settings laid over it.

    :raises RdmaError: ``policy_unreadable``, or what :meth:`Policy.from_dict` raises.
    """
    document: Any = _yaml_file(path) if path else {}
    if settings and isinstance(document or {}, dict):  # a file with something else is refused as it is
        document = {**(document or {}), **plain(settings)}
    return Policy.from_dict(document)


def _yaml_file(path: str) -> Any:
    yaml, reason = deps.yaml(), ""
    try:
        with open(path, encoding="utf-8") as stream:
            return plain(yaml.load(stream, _loader(yaml)))
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = "it is not YAML (%s)" % " ".join(str(error).split())
    raise RdmaError(
        "policy_unreadable",
        "The policy %s cannot be read: %s." % (path, reason),
        hint="Give a YAML file with settings as in examples/policy.yml.",
        path=path,
    )


def _loader(yaml: Any) -> Any:
    """The safe loader without dates: a wrong one is refused where its setting is read, which can name the setting."""
    dates = "tag:yaml.org,2002:timestamp"
    resolvers = {
        first: [entry for entry in entries if entry[0] != dates]
        for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": resolvers})


def plain(value: Any) -> Any:
    """JSON data of what YAML or Ansible made: dates become text, marked or tagged types the plain ones."""
    try:
        return json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise RdmaError("policy_malformed", "The settings are not plain data: %s." % error) from error


def now() -> str:
    """The time as result documents write it: UTC, ``YYYY-MM-DDThh:mm:ssZ``."""
    return datetime.now(timezone.utc).strftime(STAMP)


def judge_now(
    inputs: Sequence[NodeInput], policy: Policy, cluster: Optional[ClusterSnapshot] = None
) -> ResultDocument:
    """Judge the nodes, and the cluster when there is one, at this moment.

    :raises RdmaError: ``no_nodes``, or what :func:`judge` raises.
    """
    if not inputs and cluster is None:
        raise RdmaError(
            "no_nodes",
            "There is no node to judge.",
            hint="Give an inventory with hosts, or a directory with recorded snapshots.",
        )
    with without_collection():
        return judge(inputs, policy, now(), VERSION, cluster)
