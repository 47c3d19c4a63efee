# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How DRANET is deployed: what versions can do, what charts can express, and the objects."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import (
    chart_schema,
    deployment,
    dranet_objects,
    dranet_versions,
    dranet_wish,
)
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

BASE: dict[str, Any] = {"image": "r.test/dranet:v1.4.0", "provider_image": "r.test/rdma-k8s:1"}
CHILDREN = {"ipvlan_child": True}
TABLE = {"nodes": {"a": {"rdma1": "10.208.0.1/12", "rdma0": "10.208.0.2/12"}}}

RELEASED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "fullnameOverride": {"type": "string"},
        "image": {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: {"type": "string"} for key in ("repository", "tag", "pullPolicy")},
        },
        "imagePullSecrets": {"type": "array"},
        "podLabels": {"type": "object"},
        "logVerbosity": {"type": "integer"},
        "kubeletRootDir": {"type": "string"},
        "nodeSelector": {"type": "object"},
        "tolerations": {"type": "array"},
        "resources": {"type": "object", "properties": {"requests": {"type": "object"}}},
        "args": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "filter": {"type": "string"},
                "moveIBInterfaces": {"type": "boolean"},
                "cloudProviderHint": {"enum": ["OKE", "NONE"]},
            },
        },
    },
}
"""What a released chart takes (F117), in short."""

LATER = copy.deepcopy(RELEASED)
LATER["properties"].update(extraVolumes={"type": "array"}, extraVolumeMounts={"type": "array"})
LATER["properties"]["args"]["properties"].update(
    dbPath={"type": "string"},
    cloudProviderHint={"enum": ["OKE", "webhook"]},
    profileProvider={"enum": ["cloud", "webhook", "none"]},
    webhookURL={"type": "string"},
    cloudProviderOptions={
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "oke": {"additionalProperties": False, "properties": {"rdma-child-ipv4-cidr": {"type": "string"}}}
        },
    },
)
"""What a later chart takes (F96, F117, F118)."""

WHOLE = copy.deepcopy(LATER)
WHOLE["properties"].update(updateStrategy={"type": "object"}, priorityClassName={"type": "string"})
"""A chart that takes everything; none does yet."""


def decide(schema: Any = None, **options: Any) -> deployment.Deployment:
    """The decision for options and a schema."""
    chart = None if schema is None else chart_schema.chart("c", {"name": "dranet"}, schema)
    return deployment.decide(dranet_wish.wish({**BASE, **options}), chart)


def daemonset(documents: Any, name: str) -> dict[str, Any]:
    """The DaemonSet of a name."""
    (found,) = [d for d in documents if d["kind"] == "DaemonSet" and d["metadata"]["name"] == name]
    return dict(found)


# --- versions


@pytest.mark.parametrize(
    ("stated", "image", "app_version", "version"),
    [
        ("", "r/dranet:v1.4.0", "stable", "v1.4.0"),
        ("", "r:5000/dranet:1.4.0@sha256:ab", "", "v1.4.0"),
        ("", "r:5000/dranet@sha256:ab", "v1.4.0", "v1.4.0"),
        ("main", "r/dranet:v1.4.0", "", "main"),
        ("mine", "r/dranet:v1.4.0", "", "mine"),
        ("", "r/dranet:latest", "stable", ""),
        ("", "r/dranet:v1.4", "v1.4.0-rc1", ""),
    ],
)
def test_the_version(stated: str, image: str, app_version: str, version: str) -> None:
    """The user's word, the tag, what the chart says; a text that is no release tells nothing."""
    assert dranet_versions.version_of(stated, image, app_version) == version


def test_what_the_table_says() -> None:
    """F1, F96, F103, F117, F118: v1.4.0 has the flags for a webhook only, the main line has children too."""
    assert dranet_versions.abilities("v1.4.0", {}) == dranet_versions.Abilities(webhook=True)
    main = dranet_versions.abilities("main", {})
    assert (main.ipvlan_child, main.webhook, main.webhook_values, main.extra_volumes) == (True,) * 4
    assert (main.options, main.profile) == (False, False)
    assert dranet_versions.abilities("main", {"profile": True}).profile


def test_a_version_nobody_looked_at() -> None:
    """It is not guessed; the user can state all abilities of the program."""
    error = error_of(lambda: dranet_versions.abilities("v1.5.0", {"ipvlan_child": True}))
    assert error.code == "dranet_version_unknown"
    assert error.details["missing"] == ["webhook", "options", "profile", "uplinks"]
    stated = dict.fromkeys(dranet_versions.PROGRAM, True)
    assert dranet_versions.abilities("v1.5.0", stated).uplinks


@pytest.mark.parametrize("stated", [{"ipvlan": True}, {"ipvlan_child": "yes"}, {"ipvlan_child": 1}])
def test_abilities_that_are_none(stated: dict[str, Any]) -> None:
    """A misspelt ability is no ability."""
    assert error_of(lambda: dranet_versions.abilities("v1.4.0", stated)).code == "dranet_option"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "dranet_without_children"),
        ({"mode": "native"}, "dranet_without_children"),
        ({"abilities": {**CHILDREN, "webhook": False}}, "dranet_without_webhook"),
        ({"mode": "native", "abilities": CHILDREN}, "dranet_without_profile"),
        (
            {
                "mode": "native",
                "abilities": {**CHILDREN, "profile": True},
                "child_range": "10.192.0.0/14",
            },
            "dranet_without_options",
        ),
        ({"abilities": CHILDREN, "uplink_interfaces": ["eth0"]}, "dranet_without_uplinks"),
        ({"image": "r/dranet:v9.9.9"}, "dranet_version_unknown"),
        ({"image": "r/dranet"}, "dranet_option"),
        ({"image": ""}, "dranet_option"),
        ({"provider_image": ""}, "dranet_option"),
        ({"mode": "both"}, "dranet_option"),
        ({"kubelet_root": "var/lib/kubelet"}, "dranet_option"),
        ({"oca_directory": "/etc/../root"}, "dranet_option"),
        ({"nic_table": ["rdma0"]}, "dranet_option"),
        ({"nic_table": {"rdma0": "10.1.0.1/12"}}, "nic_table_child"),
        ({"nic_table": {"nodes": {"a": {"rdma0": "10.208.0.1/12"}, "b": {"rdma0": 1}}}}, "nic_table_malformed"),
        ({"namespace": "a.b"}, "name_malformed"),
        ({"device_class": "A"}, "name_malformed"),
        ({"child_range": "10.208.0.1/12"}, "range_not_masked"),
        ({"provider_options": ["oke.x=1"]}, "option_unknown"),
        ({"child_range": "10.192.0.0/14", "provider_options": ["oke.rdma-child-ipv4-cidr=10.0.0.0/12"]},
         "option_duplicate"),
    ],
)  # fmt: skip
def test_what_is_refused(options: dict[str, Any], code: str) -> None:
    """Before anything is touched, with the options judged as the driver does at its start (F93, F97)."""
    assert error_of(lambda: decide(**options)).code == code


def test_which_dranet_is_needed() -> None:
    """The refusal says it in one sentence, and how to go on all the same (F1)."""
    error = error_of(decide)
    assert dranet_versions.NEEDED_TODAY in error.hint
    assert "allow_without_ipvlan" in error.hint


def test_what_is_lost() -> None:
    """In mode native nothing keeps the NIC on the host (F32, F44); the range is not given to a DRANET that would die of
    the flag (F97), so nobody publishes it."""
    webhook = decide(allow_without_ipvlan=True)
    assert len(webhook.lost) == 1
    assert "the NIC stays on the host" in webhook.lost[0]
    assert webhook.published_range == "10.208.0.0/12"
    native = decide(mode="native", allow_without_ipvlan=True, child_range="10.192.0.0/14")
    assert [
        ("move the NIC" in text, "no profile" in text, "10.192.0.0/14" in text) for text in native.lost
    ] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert not any("cloud-provider-options" in word for word in container(native)["args"])
    assert (native.child_range, native.published_range) == ("10.192.0.0/14", "")


def container(made: deployment.Deployment) -> dict[str, Any]:
    """The container of DRANET."""
    return dict(daemonset(made.dranet, "dranet")["spec"]["template"]["spec"]["containers"][0])


# --- charts


def test_a_released_chart() -> None:
    """Each setting that it refuses is named (F96, F117)."""
    made = decide(RELEASED, abilities=CHILDREN)
    assert made.method == "manifests"
    assert made.values is None
    assert list(made.reasons) == [
        "The chart does not take args.cloudProviderHint: 'webhook' is none of OKE, NONE.",
        "The chart does not take args: it has no key profileProvider.",
        "The chart does not take args: it has no key webhookURL.",
        "The chart does not take values: it has no key updateStrategy.",
        "The chart does not take values: it has no key priorityClassName.",
    ]


PLAIN = {"update_strategy": "RollingUpdate", "priority_class": ""}


@pytest.mark.parametrize(
    ("schema", "options", "refused"),
    [
        (LATER, {"abilities": CHILDREN, **PLAIN}, []),
        (WHOLE, {"abilities": CHILDREN}, []),
        (LATER, {"abilities": CHILDREN}, ["updateStrategy", "priorityClassName"]),
        (RELEASED, {"mode": "native", "allow_without_ipvlan": True, "oca_directory": "", **PLAIN}, []),
        (
            RELEASED,
            {"mode": "native", "allow_without_ipvlan": True, **PLAIN},
            ["extraVolumes", "extraVolumeMounts"],
        ),
        (
            LATER,
            {
                "mode": "native",
                "abilities": {**CHILDREN, "profile": True, "options": True},
                "child_range": "10.192.0.0/14",
                **PLAIN,
            },
            [],
        ),
        (LATER, {"abilities": CHILDREN, "extra_args": ["--x"], **PLAIN}, ["extraArgs"]),
        (
            LATER,
            {"abilities": {**CHILDREN, "uplinks": True}, "uplink_interfaces": ["eth0"], **PLAIN},
            ["uplinkInterfaces"],
        ),
        (LATER, {"abilities": CHILDREN, "image": "r/dranet:v1.4.0@sha256:ab", **PLAIN}, ["digest"]),
    ],
)
def test_which_settings_a_chart_takes(schema: Any, options: dict[str, Any], refused: list[str]) -> None:
    """What the schema decides; a forced chart fails with the same words."""
    made = decide(schema, **options)
    assert made.method == ("manifests" if refused else "chart")
    assert (made.dranet == ()) == (not refused)
    if not refused:
        assert "takes every setting" in made.reasons[0]
        assert chart_schema.refusals(schema, made.values) == []
        return
    assert len(made.reasons) == len(refused)
    for reason, key in zip(made.reasons, refused):
        assert reason.endswith("no key %s." % key)
    error = error_of(lambda: decide(schema, method="chart", **options))
    assert error.code == "dranet_chart_refuses"
    assert error.details["refused"] == list(made.reasons)


def test_the_values() -> None:
    """F96: the option of the range; F118: volumes as they are."""
    made = decide(
        LATER,
        mode="native",
        abilities=dict.fromkeys(dranet_versions.PROGRAM, True),
        child_range="10.192.0.0/14",
        image="r.test:5000/a/dranet:v1",
        **PLAIN,
    )
    assert made.values is not None
    assert made.values["image"] == {
        "repository": "r.test:5000/a/dranet",
        "tag": "v1",
        "pullPolicy": "IfNotPresent",
    }
    assert made.values["args"] == {
        "moveIBInterfaces": False,
        "cloudProviderOptions": {"oke": {"rdma-child-ipv4-cidr": "10.192.0.0/14"}},
    }
    assert made.values["extraVolumes"][0]["hostPath"] == {
        "path": dranet_wish.OCA_DIRECTORY,
        "type": "DirectoryOrCreate",
    }
    assert made.values["extraVolumeMounts"][0]["readOnly"] is True
    assert made.published_range == "10.192.0.0/14"


@pytest.mark.parametrize("method", ["auto", "manifests"])
def test_without_a_chart(method: str) -> None:
    """Manifests; with the method chart that is an error."""
    assert decide(abilities=CHILDREN, method=method).method == "manifests"
    assert error_of(lambda: decide(abilities=CHILDREN, method="chart")).code == "dranet_chart_refuses"


def test_a_chart_without_a_schema() -> None:
    """It would ignore what it does not know."""
    chart = chart_schema.chart("c", {}, None)
    wish = dranet_wish.wish({**BASE, "abilities": CHILDREN})
    assert "no values.schema.json" in deployment.decide(wish, chart).reasons[0]


def test_a_chart_without_the_directory_of_the_socket() -> None:
    """F116: the socket is in /var/run/dranet, which charts mount together with the database."""
    schema = copy.deepcopy(WHOLE)
    del schema["properties"]["args"]["properties"]["dbPath"]
    made = decide(schema, abilities=CHILDREN)
    assert made.reasons == ("The chart does not mount /var/run/dranet, where the socket is.",)


@pytest.mark.parametrize(
    ("schema", "value", "texts"),
    [
        ({"type": "integer"}, True, ["values: it must be integer"]),
        ({"type": ["integer", "null"]}, None, []),
        ({"type": "number"}, 1, []),
        ({"enum": ["a"]}, "b", ["values: 'b' is none of a"]),
        ({"pattern": "^a$"}, "b", ["values: 'b' does not match ^a$"]),
        ({"pattern": "(?<x>"}, "b", []),
        (False, 1, ["values: nothing is allowed here"]),
        (True, 1, []),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, ["a: it must be string"]),
        ({"items": {"type": "string"}}, ["a", 1], ["values[1]: it must be string"]),
        ({"properties": {"a": {"additionalProperties": False}}}, {"a": {"b": 1}}, ["a: it has no key b"]),
        ({}, {"a": 1}, []),
    ],
)
def test_the_schema(schema: Any, value: Any, texts: list[str]) -> None:
    """The words of JSON schema that decide."""
    assert chart_schema.refusals(schema, value) == texts


# --- objects


def test_dranet() -> None:
    """F115, F116, F119, and what charts lack: OnDelete, a priority class, a liveness probe."""
    made = decide(abilities=CHILDREN)
    found = daemonset(made.dranet, "dranet")["spec"]
    pod = found["template"]["spec"]
    assert found["updateStrategy"] == {"type": "OnDelete"}
    assert pod["priorityClassName"] == "system-node-critical"
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    mounts = {entry["mountPath"] for entry in container(made)["volumeMounts"]}
    assert mounts == {
        "/var/lib/kubelet/plugins",
        "/var/lib/kubelet/plugins_registry",
        "/var/run/nri",
        "/var/run/netns",
        "/dev/infiniband",
        "/sys/fs/bpf",
        "/var/run/dranet",
    }
    assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container(made))
    assert container(made)["args"][0] == "/dranet"
    assert {
        "--profile-provider=webhook",
        "--cloud-provider-hint=webhook",
        "--move-ib-interfaces=false",
    } <= set(container(made)["args"])
    assert "--webhook-url=unix:///var/run/dranet/rdma-k8s.sock" in container(made)["args"]
    (role,) = [entry for entry in made.dranet if entry["kind"] == "ClusterRole"]
    (driver,) = [rule for rule in role["rules"] if rule["resources"] == ["resourceclaims/driver"]]
    assert driver["resourceNames"] == ["dra.net"]
    assert len(role["rules"]) == 6
    (waiting,) = pod["initContainers"]
    compile(waiting["command"][2], "wait", "exec")
    assert waiting["command"][3] == "/var/run/dranet/rdma-k8s.sock"
    assert waiting["image"] == BASE["provider_image"]


def test_native() -> None:
    """No provider, no init container; the agent's files where DRANET reads them (F10, F54)."""
    made = decide(
        mode="native",
        abilities={**CHILDREN, "profile": True, "options": True},
        child_range="10.192.0.0/14",
        oca_directory="/srv/oca",
    )
    assert made.provider == ()
    pod = daemonset(made.dranet, "dranet")["spec"]["template"]["spec"]
    assert "initContainers" not in pod
    assert "--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.192.0.0/14" in container(made)["args"]
    (volume,) = [entry for entry in pod["volumes"] if entry["name"] == "oca-hpc-config"]
    assert volume["hostPath"] == {"path": "/srv/oca", "type": "DirectoryOrCreate"}
    (mount,) = [entry for entry in container(made)["volumeMounts"] if entry["name"] == "oca-hpc-config"]
    assert mount["mountPath"] == dranet_wish.OCA_DIRECTORY
    assert mount["readOnly"] is True
    assert "rdma.k8s" not in json.dumps(made.more[0]["spec"])


def test_references_are_as_the_server_keeps_them() -> None:
    """The server adds the version of a reference, and compares it as one value: without it each run would send it."""
    made = decide(abilities=CHILDREN)
    for documents, name in ((made.dranet, "dranet"), (made.provider, "rdma-k8s-provider")):
        (only,) = daemonset(documents, name)["spec"]["template"]["spec"]["containers"]
        assert [entry["valueFrom"]["fieldRef"] for entry in only["env"]] == [
            {"apiVersion": "v1", "fieldPath": "spec.nodeName"}
        ]


def test_the_provider_has_no_privilege() -> None:
    """No capability, no writable mount but that of the socket, no account; ready before DRANET starts (decision 20)."""
    made = decide(abilities=CHILDREN, nic_table=TABLE, imds_url="http://127.0.0.1:9/opc/v2")
    pod = daemonset(made.provider, "rdma-k8s-provider")["spec"]["template"]["spec"]
    (only,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["hostNetwork"] is True
    assert only["securityContext"] == {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert [entry["mountPath"] for entry in only["volumeMounts"] if not entry.get("readOnly")] == [
        "/var/run/dranet"
    ]
    assert only["args"] == [
        "--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.208.0.0/12",
        "--listen=unix:///var/run/dranet/rdma-k8s.sock",
        "--bind-address=127.0.0.1:9178",
        "--imds-url=http://127.0.0.1:9/opc/v2",
        "--nic-table=/etc/rdma-k8s/nic-table.json",
    ]
    (table,) = [entry for entry in made.provider if entry["kind"] == "ConfigMap"]
    assert json.loads(table["data"]["nic-table.json"]) == TABLE
    assert only["env"][0]["name"] == "NODE_NAME"
    other = decide(abilities=CHILDREN, nic_table={"rdma0": "10.208.0.3/12"})
    marks = [
        daemonset(each.provider, "rdma-k8s-provider")["spec"]["template"]["metadata"]["annotations"]
        for each in (made, other)
    ]
    assert marks[0] != marks[1]


def test_labels_and_class() -> None:
    """Everything can be found by one label; the class selects ready NICs where the provider tells (F44)."""
    made = decide(abilities=CHILDREN)
    for document in [*made.dranet, *made.provider, *made.more]:
        assert document["metadata"]["labels"]["app.kubernetes.io/part-of"] == dranet_objects.PART_OF
    assert "rdma.k8s" in json.dumps(made.more[0]["spec"])
    assert decide(abilities=CHILDREN, device_class="").more == ()


def test_settings_of_pods() -> None:
    """Selector, tolerations, secrets, resources and nothing where nothing is wanted."""
    made = decide(
        abilities=CHILDREN,
        node_selector={"gpu": "yes"},
        tolerations=[],
        pull_secrets=["reg"],
        priority_class="",
        resources={"requests": {"cpu": "1"}},
        move_ib_interfaces=True,
        filter="true",
        extra_args=["--v=9"],
        provider_args=["--log-level=debug"],
    )
    for documents, name in ((made.dranet, "dranet"), (made.provider, "rdma-k8s-provider")):
        pod = daemonset(documents, name)["spec"]["template"]["spec"]
        assert pod["nodeSelector"] == {"gpu": "yes"}
        assert pod["imagePullSecrets"] == [{"name": "reg"}]
        assert not {"tolerations", "priorityClassName"} & set(pod)
    assert container(made)["resources"] == {"requests": {"cpu": "1"}}
    assert {"--move-ib-interfaces=true", "--filter=true"} <= set(container(made)["args"])
    assert container(made)["args"][-1] == "--v=9"
