# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that we make and remove, on a real API server."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import objects
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import manifest


@pytest.fixture
def cluster(control_plane: Any) -> Cluster:
    """Calls to the API server."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture
def name(control_plane: Any) -> Iterator[str]:
    """A name of its own for each test; what has it is gone after the test."""
    mark = "t" + uuid.uuid4().hex[:8]
    yield mark
    for kind in ("deviceclass", "resourceclaim", "resourceclaimtemplate", "configmap"):
        control_plane.kubectl("delete", kind, mark, "--ignore-not-found", "--wait=false")


def device_class(name: str, expression: str = 'device.driver == "dra.net"') -> dict[str, Any]:
    """A DeviceClass."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "rdma.k8s"}},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def claim(name: str, kind: str = "ResourceClaimTemplate", request: str = "nic") -> dict[str, Any]:
    """A claim or a template; the first of its 16 requests has a name of its own."""
    names = [request] + ["nic-%d" % number for number in range(15)]
    requests = [{"name": entry, "exactly": {"deviceClassName": "x"}} for entry in names]
    spec: dict[str, Any] = {"devices": {"requests": requests}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": spec} if kind.endswith("Template") else spec,
    }


def live(control_plane: Any, kind: str, name: str) -> dict[str, Any]:
    """What kubectl finds; empty: nothing."""
    text = control_plane.kubectl("get", kind, name, "-o", "json", "--ignore-not-found")
    return json.loads(text) if text else {}


def foreign(control_plane: Any, document: dict[str, Any]) -> None:
    """A colleague applies something."""
    words = ("apply", "--server-side", "--force-conflicts", "--field-manager=colleague", "-f", "-")
    control_plane.kubectl(*words, stdin=json.dumps(document))


def error_of(act: Callable[[], Any]) -> RdmaError:
    """The error that an act ends with."""
    with pytest.raises(RdmaError) as caught:
        act()
    return caught.value


def test_make_change_remove(control_plane: Any, cluster: Cluster, name: str) -> None:
    """Made, unchanged, changed with both texts in the diff, removed, and nothing to remove."""
    wanted = device_class(name)
    (made,) = objects.present(cluster, [wanted])
    assert (made.action, made.before) == ("create", None)
    stored = live(control_plane, "deviceclass", name)
    assert stored["spec"]["selectors"] == wanted["spec"]["selectors"]

    (again,) = objects.present(cluster, [wanted])
    assert again.action == ""
    assert live(control_plane, "deviceclass", name) == stored

    (changed,) = objects.present(cluster, [device_class(name, "true")])
    assert changed.action == "update"
    (difference,) = objects.diff([changed], manifest.text)
    assert 'device.driver == "dra.net"' in difference["before"]
    assert "expression: 'true'" in difference["after"]
    assert difference["before_header"] == "DeviceClass %s" % name

    (gone,) = objects.absent(cluster, [wanted])
    assert (gone.action, gone.after) == ("delete", None)
    assert not live(control_plane, "deviceclass", name)
    (nothing,) = objects.absent(cluster, [wanted])
    assert nothing.action == ""


def test_dry_run_leaves_nothing(control_plane: Any, cluster: Cluster, name: str) -> None:
    """A dry run tells what would be done, in each direction, and stores nothing."""
    (made,) = objects.present(cluster, [device_class(name)], dry_run=True)
    assert made.action == "create"
    assert made.after is not None
    assert not live(control_plane, "deviceclass", name)

    objects.present(cluster, [device_class(name)])
    stored = live(control_plane, "deviceclass", name)
    (same,) = objects.present(cluster, [device_class(name)], dry_run=True)
    (changed,) = objects.present(cluster, [device_class(name, "true")], dry_run=True)
    (gone,) = objects.absent(cluster, [device_class(name)], dry_run=True)
    assert [same.action, changed.action, gone.action] == ["", "update", "delete"]
    assert live(control_plane, "deviceclass", name) == stored


def test_dry_run_checks_the_object(cluster: Cluster, name: str) -> None:
    """The server's own validation speaks in a dry run as well: here CEL that does not compile."""
    error = error_of(lambda: objects.present(cluster, [device_class(name, "device.nothing(")], dry_run=True))
    assert error.code == "kube_invalid"


def test_unknown_field(cluster: Cluster, name: str) -> None:
    """A field that the server does not know is refused, not dropped."""
    wrong = device_class(name)
    wrong["spec"]["selector"] = []
    assert error_of(lambda: objects.present(cluster, [wrong])).code == "kube_invalid"


@pytest.mark.parametrize("act", [objects.present, objects.absent])
def test_object_of_somebody_else(control_plane: Any, cluster: Cluster, name: str, act: Any) -> None:
    """An object with our name that somebody else made stays as it is; who it was is in the message."""
    foreign(control_plane, device_class(name, "false"))
    stored = live(control_plane, "deviceclass", name)
    error = error_of(lambda: act(cluster, [device_class(name)]))
    assert error.code == "object_foreign"
    assert error.message == "DeviceClass %s exists, and it was made by colleague, not by rdma.k8s." % name
    assert live(control_plane, "deviceclass", name) == stored
    (outcome,) = act(cluster, [device_class(name)], force=True)
    assert outcome.action == ("update" if act is objects.present else "delete")


def test_take_over_the_same(control_plane: Any, cluster: Cluster, name: str) -> None:
    """Taking over an object that is as we want it is a change once: it becomes ours."""
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(device_class(name)))
    assert [objects.present(cluster, [device_class(name)], force=True)[0].action for turn in (1, 2)] == [
        "update",
        "",
    ]


def test_field_of_somebody_else(control_plane: Any, cluster: Cluster, name: str) -> None:
    """An object of ours, in which somebody else took a field: the field and its owner are named."""
    objects.present(cluster, [device_class(name)])
    theirs = device_class(name, "false")
    del theirs["metadata"]["labels"]
    foreign(control_plane, theirs)
    error = error_of(lambda: objects.present(cluster, [device_class(name)]))
    assert error.code == "kube_conflict"
    assert "colleague" in str(error)
    assert ".spec.selectors" in str(error)
    assert objects.present(cluster, [device_class(name)], force=True)[0].action == "update"


def test_content_that_cannot_change(control_plane: Any, cluster: Cluster, name: str) -> None:
    """The spec of a template cannot be changed; it is replaced only when that is asked for."""
    objects.present(cluster, [claim(name)])
    before = live(control_plane, "resourceclaimtemplate", name)
    other = claim(name, request="other")
    error = error_of(lambda: objects.present(cluster, [other]))
    assert error.code == "object_immutable"
    assert error.message.startswith("ResourceClaimTemplate default/%s exists" % name)
    (dry,) = objects.present(cluster, [other], replace=True, dry_run=True)
    assert dry.action == "replace"
    assert live(control_plane, "resourceclaimtemplate", name) == before
    (done,) = objects.present(cluster, [other], replace=True)
    assert (done.action, done.after) == ("replace", dry.after)
    after = live(control_plane, "resourceclaimtemplate", name)
    assert after["spec"]["spec"]["devices"]["requests"][0]["name"] == "other"
    assert objects.present(cluster, [other], replace=True)[0].action == ""


def test_replacement_is_checked_before_the_old_goes(control_plane: Any, cluster: Cluster, name: str) -> None:
    """A new content that the server refuses leaves the old object where it is."""
    objects.present(cluster, [claim(name)])
    wrong = copy.deepcopy(claim(name, request="Not A Label"))
    assert error_of(lambda: objects.present(cluster, [wrong], replace=True)).code == "kube_invalid"
    assert live(control_plane, "resourceclaimtemplate", name)


def test_claim_in_use(control_plane: Any, cluster: Cluster, name: str) -> None:
    """A claim that a pod uses is neither removed nor replaced; the pod is named."""
    wanted = claim(name, "ResourceClaim")
    del wanted["spec"]["devices"]["requests"][1:]
    wanted["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = name
    other = copy.deepcopy(wanted)
    other["spec"]["devices"]["requests"][0]["name"] = "other"
    objects.present(cluster, [device_class(name), wanted])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceClaims": [{"name": "nic", "resourceClaimName": name}],
            "containers": [{"name": "main", "image": "x", "resources": {"claims": [{"name": "nic"}]}}],
        },
    }
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(pod))
    try:
        control_plane.kubectl(
            "wait", "--for=jsonpath={.status.reservedFor[0].name}=%s" % name, "resourceclaim", name, "--timeout=60s"
        )  # fmt: skip
        for act in (
            lambda: objects.absent(cluster, [wanted]),
            lambda: objects.present(cluster, [other], replace=True),
        ):
            error = error_of(act)
            assert error.code == "object_in_use"
            assert error.message == "ResourceClaim default/%s is in use by %s." % (name, name)
    finally:
        control_plane.kubectl("delete", "pod", name, "--force", "--grace-period=0")


def test_object_that_stays(
    control_plane: Any, cluster: Cluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object with a finalizer that nobody takes away: removing it, and replacing it, fails and names it."""
    wanted = claim(name)
    wanted["metadata"]["finalizers"] = ["example.org/hold"]
    objects.present(cluster, [wanted])
    monkeypatch.setattr(objects, "PATIENCE", 1.0)
    try:
        error = error_of(lambda: objects.absent(cluster, [wanted]))
        assert (error.code, error.details["finalizers"]) == ("object_stays", ["example.org/hold"])
        other = claim(name, request="other")
        assert error_of(lambda: objects.present(cluster, [other], replace=True)).code == "object_stays"
    finally:
        free = json.dumps({"metadata": {"finalizers": None}})
        control_plane.kubectl("patch", "resourceclaimtemplate", name, "--type=merge", "-p", free)
    assert not live(control_plane, "resourceclaimtemplate", name)


def test_what_was_done_before_an_error(control_plane: Any, cluster: Cluster, name: str) -> None:
    """The second object is refused; the first is there, and it is told."""
    done: list[objects.Outcome] = []
    wrong = claim(name, request="Not A Label")
    error_of(lambda: objects.present(cluster, [device_class(name), wrong], done=done))
    assert [outcome.action for outcome in done] == ["create"]
    assert live(control_plane, "deviceclass", name)
