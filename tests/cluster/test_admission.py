# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The admission policies in a real API server, on the cases that the lint and the provider have, too."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import objects
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import Cluster, connect
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint.engine import lint
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import admission
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.claim_rules import POSSIBLE
from ansible_collections.rdma.k8s.plugins.modules import admission_policy
from ansible_collections.rdma.k8s.tests.lab.errors import LabError
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.admission_api import Api, verdicts
from ansible_collections.rdma.k8s.tests.support.claim_cases import Case, claim_cases, pod_cases
from ansible_collections.rdma.k8s.tests.support.random_claims import claim

from .conftest import ControlPlane

PREFIX = "cases"
CHECKS = ("RDMA-WL-002", "RDMA-WL-003", "RDMA-WL-005", "RDMA-WL-014")
BAD = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "bad", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [{"name": "nic", "exactly": {"deviceClassName": "rdma"}}],
            "config": [
                {
                    "opaque": {
                        "driver": "dra.net",
                        "parameters": {"profile": "oke-rdma", "interface": {"type": "Passthrough"}},
                    }
                }
            ],
        }
    },
}


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    """The client of the collection."""
    return connect(str(control_plane.kubeconfig))


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """What shows warnings."""
    found = Api(control_plane.kubeconfig)
    yield found
    found.close()


def wait_until(api: Api, content: dict[str, Any], told: bool, prefix: str = PREFIX) -> None:
    """Policies reach the admission of an API server a moment after they were written.

    :param prefix: begins the name of a policy; with a quotation mark at its end it is the whole name.
    """
    end = time.monotonic() + 30
    while time.monotonic() < end:
        status, found, message = api.create(content)
        if any((entry.policy + "'").startswith(prefix) for entry in found) or prefix in message:
            if told:
                return
        elif not told:
            return
        time.sleep(0.2)
    raise AssertionError("after 30 s the answer is still %s %s %s" % (status, found, message))


def wait_for_all(api: Api, prefix: str) -> None:
    """Each of the four policies begins to count at a time of its own."""
    open_claim = copy.deepcopy(BAD)
    del open_claim["spec"]["devices"]["config"][0]["opaque"]["parameters"]["profile"]
    wait_until(api, BAD, True, prefix + "-claims'")
    wait_until(api, open_claim, True, prefix + "-claims-advice'")
    bad = pod({"resourceClaims": [CLAIM], "terminationGracePeriodSeconds": 0})
    wait_until(api, bad, True, prefix + "-pods'")
    wait_until(api, pod({"resourceClaims": [CLAIM]}, [INDEX]), True, prefix + "-pods-advice'")


@pytest.fixture(scope="module")
def policies(cluster: Cluster, api: Api) -> Iterator[list[dict[str, Any]]]:
    """All policies, warning, and failing when an expression fails: then an object without a fault has a warning."""
    documents = admission.documents(admission.settings(prefix=PREFIX, failure_policy="Fail"))
    objects.present(cluster, documents)
    wait_for_all(api, PREFIX)
    yield documents
    objects.absent(cluster, admission.names(PREFIX))
    wait_until(api, BAD, False)


CLAIM = {"name": "nics", "resourceClaimTemplateName": "nics"}
INDEX = {"name": "NCCL_IB_GID_INDEX", "value": "3"}


def pod(spec: dict[str, Any], env: Any = ()) -> dict[str, Any]:
    """A pod with one container."""
    container = {"name": "main", "image": "lab.test/pod:1", "env": list(env)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "case", "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


@pytest.mark.parametrize("case", claim_cases(), ids=lambda case: case.id)
def test_the_api_server_says_what_the_case_and_the_lint_say(case: Case, api: Api, policies: Any) -> None:
    """F31, F32, F38, F70, F82, F84, F106 to F109: the CEL of the rules, on any parameters, without an error.

    Lint and policy break the same rules, all of them, and tell message and hint in the same words.
    """
    status, told, message = api.create(case.content)
    assert status == 201, message
    found = verdicts(told, PREFIX)
    assert {code: word for code, word in found.items() if case.counts(code)} == case.admission
    places = [entry.text.partition(": ")[0].split(", ") for entry in told if entry.code in case.admission]
    assert not case.admission or any(case.place in place for place in places)
    linted = [
        finding
        for finding in lint([Document(case.content, "", 0, {})])
        if finding.rule in CHECKS and finding.status in ("fail", "warn")
    ]
    assert {(finding.code, finding.status.replace("fail", "deny")) for finding in linted} == {
        (code, word) for code, words in found.items() for word in words.split("+")
    }
    for finding in linted:
        text = "%s %s (%s, %s)" % (finding.message, finding.hint, finding.rule, finding.code)
        assert any(entry.text.endswith(": " + text) for entry in told)


@pytest.mark.parametrize("case", pod_cases(), ids=lambda case: case["name"])
def test_pods(case: dict[str, Any], api: Api, policies: Any) -> None:
    """DEV-11, DEV-24: what a pod alone tells; the lint has the same words for what it finds for sure."""
    content = pod(case["spec"], case.get("env", ()))
    status, told, message = api.create(content)
    assert status == 201, message
    assert verdicts(told, PREFIX) == case["admission"]
    for finding in lint([Document(content, "", 0, {})]):
        if finding.rule == "RDMA-WL-013" and finding.status == "fail":
            assert any("%s %s" % (finding.message, finding.hint) in entry.text for entry in told)


def of_kind(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object of a kind that makes such pods."""
    labels = {"app": "case"}
    template = {"metadata": {"labels": labels}, "spec": pod(spec)["spec"]}
    found: dict[str, Any] = {
        "Deployment": {"selector": {"matchLabels": labels}, "template": template},
        "Job": {"template": {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}},
    }
    found["CronJob"] = {"schedule": "0 0 * * *", "jobTemplate": {"spec": found["Job"]}}
    return {
        "apiVersion": "apps/v1" if kind == "Deployment" else "batch/v1",
        "kind": kind,
        "metadata": {"name": "case", "namespace": "default"},
        "spec": found[kind],
    }


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("Deployment", "spec.template.spec"),
        ("Job", "spec.template.spec"),
        ("CronJob", "spec.jobTemplate.spec.template.spec"),
    ],
)
def test_what_makes_pods_is_judged_where_the_user_writes_it(
    kind: str, place: str, api: Api, policies: Any
) -> None:
    """DEV-24: the warning of a pod that a controller makes would reach nobody."""
    spec = {"resourceClaims": [CLAIM], "terminationGracePeriodSeconds": 0}
    status, told, message = api.create(of_kind(kind, spec))
    assert status == 201, message
    assert verdicts(told, PREFIX) == {"pod_grace_period": "deny"}
    assert told[0].text.startswith(place + ": ")
    made = pod(spec)
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "case", "uid": "1-2-3", "controller": True}
    ]
    assert api.create(made)[1] == []


def test_the_largest_object_is_judged_within_the_cost(api: Api, policies: Any) -> None:
    """As many requests, selectors and configurations as the API server takes, parameters as large, every one wrong."""
    content: dict[str, Any] = copy.deepcopy(BAD)
    devices = content["spec"]["devices"]
    text = 'device.attributes["oke.dra.net"].shape == "%s"' % ("x" * 150)
    devices["requests"] = [
        {
            "name": "r%d" % position,
            "exactly": {"deviceClassName": "rdma", "selectors": [{"cel": {"expression": text}}] * 8},
        }
        for position in range(32)
    ]
    routes = [{"destination": "10.0.%d.0/24" % n, "gateway": "10.0.0.1", "table": n} for n in range(150)]
    parameters = {"profile": "oke-rdma", "interface": {"mtu": 60, "type": "IPVLAN"}, "routes": routes}
    assert 9000 < len(json.dumps(parameters, separators=(",", ":"))) < 10240
    devices["config"] = [
        {"requests": ["r%d" % n], "opaque": {"driver": "dra.net", "parameters": parameters}}
        for n in range(32)
    ]
    status, told, message = api.create(content)
    assert status == 201, message
    assert not [entry for entry in told if "cost" in entry.text], told
    assert verdicts(told, PREFIX) == {
        "config_mtu": "deny",
        "claim_owns_routing": "warn",
        "selector_node_level": "warn",
    }
    (mtu,) = [entry.text for entry in told if entry.code == "config_mtu"]
    assert mtu.startswith(
        "spec.devices.config[0].opaque.parameters, spec.devices.config[1].opaque.parameters, "
        "spec.devices.config[2].opaque.parameters and 29 more: interface.mtu is less than 68."
    )


WRONG_THROUGHOUT = {
    "profile": "x",
    "interface": {
        "name": "a b",
        "type": "MACVLAN",
        "addressing": "some",
        "dhcp": True,
        "addresses": ["x"],
        "mtu": 5,
        "hardwareAddr": "x",
        "gsoMaxSize": 0,
        "arpIgnore": 9,
        "acceptRA": 9,
        "vrf": {},
        "ipvlan": {"mode": "L3"},
        "foo": 1,
    },
    "routes": [{}],
    "rules": [{"priority": -1}],
    "neighbors": [{}],
}


def test_more_than_a_message_can_hold(api: Api, policies: Any) -> None:
    """Many rules in many places: too much for a message of 5 KiB, but told and refused all the same."""
    content: dict[str, Any] = copy.deepcopy(BAD)
    content["spec"]["devices"]["config"] = [
        {"opaque": {"driver": "dra.net", "parameters": WRONG_THROUGHOUT}} for _unused in range(11)
    ]
    content.update({"kind": "ResourceClaimTemplate", "spec": {"spec": content["spec"]}})
    status, told, message = api.create(content)
    assert status == 201, message
    assert [entry.text for entry in told if entry.policy == "cases-claims"] == [admission.TOO_MANY]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"profile": None},
        {"interface": None},
        {"interface": {"vrf": None, "addresses": None, "name": None}},
        {"routes": [None], "rules": [None], "neighbors": [None]},
        {"profile": [], "interface": [[]], "routes": {"a": {"b": 1}}, "ethtool": 5},
        {"interface": {"addresses": {"0": "x"}, "vrf": [], "ipvlan": "L2", "mtu": 1.5}},
        {"routes": [[], "", 0, 1.5, True, {}], "neighbors": [{"destination": 5}]},
        {"interface": {"mtu": 9223372036854775807, "arpIgnore": -9223372036854775808}},
        {"namespace": 1, "in": 2, "__proto__": 3, "": 4, 'a"b': 5},
    ],
)
def test_any_parameters_are_judged_alike(parameters: Any, api: Api, policies: Any) -> None:
    """Opaque parameters are any object: no expression fails, and the lint breaks the same rules."""
    content: dict[str, Any] = copy.deepcopy(BAD)
    content["spec"]["devices"]["config"][0]["opaque"]["parameters"] = parameters
    status, told, message = api.create(content)
    assert status == 201, message
    assert "" not in verdicts(told, PREFIX), told
    found = {
        finding.code
        for finding in lint([Document(content, "", 0, {})])
        if finding.rule in CHECKS and finding.status in ("fail", "warn")
    }
    assert set(verdicts(told, PREFIX)) == found


def test_claims_at_random_are_judged_alike(api: Api, policies: Any) -> None:
    """The two ways to evaluate a condition, on values at the borders of the rules: the same codes, as sure."""
    dice = random.Random(20)
    judged = 0
    while judged < 150:
        content = claim(dice)
        status, told, message = api.create(content)
        assert status == 201, message
        found = verdicts(told, PREFIX)
        if "" in found:
            continue  # the API server cut off the end of a warning that is too long
        judged += 1
        codes: dict[str, set[str]] = {}
        for finding in lint([Document(content, "", 0, {})]):
            if finding.rule in CHECKS and finding.status in ("fail", "warn"):
                codes.setdefault(finding.code, set()).add(finding.status.replace("fail", "deny"))
        assert found == {code: "+".join(sorted(words)) for code, words in codes.items()}, content


def test_the_expressions_fit_the_types_of_the_api(control_plane: ControlPlane, policies: Any) -> None:
    """The controller checks the types of the expressions against the schemas and writes what it dislikes."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = json.loads(control_plane.kubectl("get", "validatingadmissionpolicies", "-o", "json"))["items"]
        statuses = [
            entry.get("status", {}) for entry in found if entry["metadata"]["name"].startswith(PREFIX)
        ]
        if len(statuses) == 4 and all("typeChecking" in status for status in statuses):
            break
        time.sleep(0.5)
    assert [status.get("typeChecking") for status in statuses] == [{}] * 4


def test_a_bad_claim_is_refused_and_what_exists_may_end(
    cluster: Cluster, api: Api, control_plane: ControlPlane
) -> None:
    """F32: refused when it is applied. A claim from before keeps its right to change labels and to be deleted."""
    old = copy.deepcopy(BAD)
    old["metadata"]["name"] = "old"
    old["metadata"]["finalizers"] = ["example.org/wait"]
    assert api.create(old, dry_run=False)[0] == 201
    running = of_kind("Deployment", {"resourceClaims": [CLAIM], "terminationGracePeriodSeconds": 0})
    running["metadata"]["name"] = "running"
    running["spec"]["replicas"] = 0
    assert api.create(running, dry_run=False)[0] == 201
    documents = admission.documents(admission.settings(prefix="refuse", actions=("deny", "audit")))
    objects.present(cluster, documents)
    try:
        wait_for_all(api, "refuse")
        status, _told, message = api.create(BAD)
        assert status == 422
        assert "refuse-claims" in message
        assert message.endswith(
            "spec.devices.config[0].opaque.parameters: The claim sets interface.type Passthrough, but the profile"
            " oke-rdma derives the child itself. Remove interface.type, or write IPVLAN."
            " (RDMA-WL-002, claim_passthrough)"
        )
        told_to_auditors = "validation.policy.admission.k8s.io/validation_failure"
        audit = (control_plane.cluster.directory / "audit.log").read_text(encoding="utf-8")
        assert [line for line in audit.splitlines() if told_to_auditors in line and "refuse-claims" in line]
        control_plane.kubectl("label", "resourceclaim", "old", "team=a")
        control_plane.kubectl(
            "patch", "resourceclaim", "old", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'
        )
        control_plane.kubectl("delete", "resourceclaim", "old", "--timeout=20s")
        bad = pod({"resourceClaims": [CLAIM], "terminationGracePeriodSeconds": 0})
        assert api.create(bad)[0] == 422
        patch = ("patch", "deployment", "running", "--type=merge", "-p")
        control_plane.kubectl(*patch, '{"spec":{"minReadySeconds":5}}')
        with pytest.raises(LabError, match="pod_grace_period"):
            control_plane.kubectl(*patch, '{"spec":{"template":{"spec":{"hostNetwork":true}}}}')
        status, told, _message = api.create(pod({"resourceClaims": [CLAIM]}, [INDEX]))
        assert status == 201
        assert verdicts([entry for entry in told if entry.policy.startswith("refuse")], "refuse") == {
            "pod_gid_index": "warn"
        }
        moved: dict[str, Any] = copy.deepcopy(BAD)
        del moved["spec"]["devices"]["config"][0]["opaque"]["parameters"]["profile"]
        status, told, _message = api.create(moved)
        assert status == 201
        assert [entry for entry in told if entry.policy.startswith("refuse") and POSSIBLE in entry.text]
    finally:
        objects.absent(cluster, admission.names("refuse"))
        control_plane.kubectl("delete", "deployment", "running", "--wait=false")
    wait_until(api, BAD, False, "refuse")


def test_settings_change_the_policies(cluster: Cluster, api: Api) -> None:
    """F105: without a profile provider own addresses are right; rules and namespaces can be left out."""
    addresses: dict[str, Any] = copy.deepcopy(BAD)
    interface = addresses["spec"]["devices"]["config"][0]["opaque"]["parameters"]["interface"]
    interface.update({"type": "IPVLAN", "addresses": ["10.0.0.1/8"], "mtu": 60, "arpIgnore": 7})
    wanted = admission.settings(
        prefix="other",
        actions=("deny",),
        profile_provider="none",
        pods=False,
        skip=("config_mtu",),
        namespace_selector={"matchLabels": {"kubernetes.io/metadata.name": "default"}},
    )
    objects.present(cluster, admission.documents(wanted))
    try:
        wait_until(api, addresses, True, "other")
        status, _told, message = api.create(addresses)
        assert status == 422
        assert message.endswith("(RDMA-WL-002, config_arp)")
        del interface["arpIgnore"]
        status, told, _message = api.create(addresses)
        assert status == 201
        assert not [entry for entry in told if entry.policy.startswith("other")]
        path = "/apis/resource.k8s.io/v1/namespaces/kube-public/resourceclaims?dryRun=All"
        interface["arpIgnore"] = 7
        addresses["metadata"]["namespace"] = "kube-public"
        status, told, _message = api.send("POST", path, addresses)
        assert status == 201
        assert not [entry for entry in told if entry.policy.startswith("other")]
    finally:
        objects.absent(cluster, admission.names("other"))
    addresses["metadata"]["namespace"] = "default"
    wait_until(api, addresses, False, "other")


def test_the_module(control_plane: ControlPlane) -> None:
    """Checked, made, unchanged, changed, removed, and nothing to remove."""
    options = {"kubeconfig": str(control_plane.kubeconfig), "prefix": "module"}

    def present() -> int:
        kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
        return control_plane.kubectl("get", kinds, "-o", "name").count("/module-")

    tried = change_run.good(admission_policy, **options, _ansible_check_mode=True, _ansible_diff=True)
    assert tried["changed"] is True
    assert len(tried["actions"]) == len(tried["diff"]) == 8
    assert present() == 0
    made = change_run.good(admission_policy, **options)
    assert made["actions"] == tried["actions"]
    assert present() == 8
    again = change_run.good(admission_policy, **options, _ansible_diff=True)
    assert (again["changed"], again["actions"], again["diff"]) == (False, [], [])
    denied = change_run.good(admission_policy, **options, action="deny", _ansible_diff=True)
    assert denied["actions"] == [
        "update ValidatingAdmissionPolicyBinding module-claims",
        "update ValidatingAdmissionPolicyBinding module-pods",
    ]
    assert "- Deny" in denied["diff"][0]["after"]
    gone = change_run.good(admission_policy, **options, state="absent", pods=False)
    assert len(gone["actions"]) == 8
    assert present() == 0
    assert change_run.good(admission_policy, **options, state="absent")["changed"] is False


def test_told_is_read_from_the_answer(api: Api, policies: Any) -> None:
    """The reader of warnings itself: what the policy of the case says, whole."""
    _status, told, _message = api.create(BAD)
    assert [entry[:2] for entry in told if entry.policy.startswith(PREFIX)] == [
        ("cases-claims", "claim_passthrough")
    ]
