# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules share that change objects of the Kubernetes API. Private to rdma.k8s: it may change any time.

A module builds its documents; :func:`run` does what its option ``state`` says with them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ansible.module_utils.basic import AnsibleModule

from . import _kube, _module, report_files
from .cluster import objects
from .core.errors import RdmaError
from .core.kube import manifest

OPTIONS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent", "rendered"], "default": "present"},
    "path": {"type": "path"},
    "force": {"type": "bool", "default": False},
    **_kube.OPTIONS,
}


class Rendering(NamedTuple):
    """What a module made of its options.

    :param documents: the objects, in the order in which they are applied.
    :param comment: lines for the top of the manifest.
    :param values: further return values of the module.
    """

    documents: Sequence[dict[str, Any]]
    comment: Sequence[str]
    values: dict[str, Any]


def run(module: AnsibleModule, render: Callable[[], Rendering], *, read_cluster: bool = False) -> None:
    """Render, then apply, remove or only write, as the options say; the module ends here.

    :param read_cluster: ``render`` reads the API itself, so its library is needed for ``rendered`` as well.
    """
    state = module.params["state"]
    done: list[objects.Outcome] = []
    try:
        talks = read_cluster or state != "rendered"
        _module.prepare(module, _kube.LIBRARIES if talks else ())
        rendering = render()
        result = _act(module, rendering, done)
    except RdmaError as error:
        _module.fail(module, error, changed=objects.changed(done), actions=_actions(done))
    module.exit_json(**result, **rendering.values)


def _act(module: AnsibleModule, rendering: Rendering, outcomes: list[objects.Outcome]) -> dict[str, Any]:
    params = module.params
    documents = list(rendering.documents)
    text = manifest.text(documents, rendering.comment)
    if params["state"] == "present":
        objects.present(
            _kube.connect(module),
            documents,
            dry_run=module.check_mode,
            force=params["force"],
            replace=params.get("replace", False),
            done=outcomes,
        )
    elif params["state"] == "absent":
        objects.absent(
            _kube.connect(module),
            documents,
            dry_run=module.check_mode,
            force=params["force"],
            done=outcomes,
        )
    differences = objects.diff(outcomes, manifest.text)
    written = False
    if params["path"] and params["state"] != "absent":
        written, difference = _write(params["path"], text, module.check_mode)
        differences += [difference] if written else []
    result: dict[str, Any] = {
        "changed": objects.changed(outcomes) or written,
        "actions": _actions(outcomes) + (["write %s" % params["path"]] if written else []),
        "manifest": text,
        "objects": documents,
    }
    if module._diff:
        result["diff"] = differences
    return result


def _actions(outcomes: Sequence[objects.Outcome]) -> list[str]:
    return ["%s %s" % (outcome.action, outcome.reference) for outcome in outcomes if outcome.action]


def _write(path: str, text: str, dry_run: bool) -> tuple[bool, dict[str, str]]:
    """Write the manifest; whether the file was another one before, and the difference."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            before = file.read()
    except OSError:
        before = ""
    directory, name = os.path.split(os.path.abspath(path))
    try:
        written = report_files.write_files(directory, {name: [text]}, dry_run)
    except RdmaError as error:
        raise RdmaError(
            "manifest_not_written",
            "The manifest %s cannot be written: %s." % (path, _reason(error)),
            hint="Check space and permissions of %s." % directory,
            path=path,
        ) from error
    return written[0].changed, {
        "before_header": path,
        "after_header": path,
        "before": before,
        "after": text,
    }


def _reason(error: RdmaError) -> str:
    cause = error.__cause__
    return str(getattr(cause, "strerror", None) or cause or error)
