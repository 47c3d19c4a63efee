# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the definitions of a cluster have, and what they would drop."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import deployed
from ansible_collections.rdma.k8s.tests.support.sriov_crds import CRDS

DEFINITIONS = {crd["spec"]["names"]["kind"]: crd for crd in CRDS}
CONFIG: dict[str, Any] = {
    "apiVersion": "spiderpool.spidernet.io/v2beta1",
    "kind": "SpiderMultusConfig",
    "metadata": {"name": "x"},
    "spec": {"cniType": "sriov", "sriov": {"resourceName": "a/b", "mtu": 4200}},
}
POLICY: dict[str, Any] = {
    "apiVersion": "sriovnetwork.openshift.io/v1",
    "kind": "SriovNetworkNodePolicy",
    "metadata": {"name": "x"},
    "spec": {
        "resourceName": "a",
        "nodeSelector": {"a": "b"},
        "numVfs": 8,
        "nicSelector": {"rootDevices": ["0000:86:00.0"]},
    },
}


def without(*fields: str, **more: Any) -> dict[str, Any]:
    """The definition of SpiderMultusConfig with other fields of ``sriov``."""
    found = copy.deepcopy(DEFINITIONS["SpiderMultusConfig"])
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    sriov = schema["properties"]["spec"]["properties"]["sriov"]["properties"]
    for field in fields:
        del sriov[field]
    sriov.update(more)
    return found


@pytest.mark.parametrize(
    ("definition", "version", "mtu", "isolation"),
    [
        (without(), "1.2.1", True, "rdmaIsolation"),
        (without("mtu"), "1.1.0", False, "rdmaIsolation"),
        (without("mtu", "rdmaIsolation", enableRdma={"type": "boolean"}), "0.9.0", False, "enableRdma"),
    ],
)
def test_the_fields_tell_a_version(definition: Any, version: str, mtu: bool, isolation: str) -> None:
    """S91: whatever the images say, the names are those that the definition has."""
    found = deployed.fields_of(definition)
    assert found is not None
    assert found.version == version
    assert deployed.fields_known(version) == found.sriov
    assert (("mtu" in found.sriov), isolation in found.sriov) == (mtu, True)


@pytest.mark.parametrize(
    "definition", [{}, {"spec": {"versions": "x"}}, {"spec": {"versions": [{"served": False}]}}]
)
def test_a_definition_that_tells_nothing(definition: Any) -> None:
    assert deployed.fields_of(definition) is None


def codes(document: Any, *definitions: Any) -> list[tuple[str, str]]:
    """Without definitions they are those of the cluster."""
    (known,) = definitions or (CRDS,)
    return [(issue.code, issue.at) for issue in deployed.judge(document, known)]


def test_what_fits() -> None:
    assert codes(CONFIG) == []
    assert codes(POLICY) == []
    assert codes({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}) == []


@pytest.mark.parametrize(
    ("change", "code", "at"),
    [
        ({"sriov": {"enableRdma": True}}, "field-pruned", "spec.sriov.enableRdma"),
        ({"ippools": {"ipv4": ["a"]}}, "field-pruned", "spec.ippools"),
        ({"sriov": {"ippools": {"ipv5": []}}}, "field-pruned", "spec.sriov.ippools.ipv5"),
        ({"sriov": {"mtu": "4200"}}, "field-type", "spec.sriov.mtu"),
        ({"sriov": {"rdmaIsolation": "yes"}}, "field-type", "spec.sriov.rdmaIsolation"),
        ({"ibsriov": {"pkey": 1000}}, "field-type", "spec.ibsriov.pkey"),
        ({"cniType": "roce"}, "field-value", "spec.cniType"),
        ({"sriov": {"vlanID": 4095}}, "field-value", "spec.sriov.vlanID"),
        ({"sriov": {"mtu": -1}}, "field-value", "spec.sriov.mtu"),
        ({"chainCNIJsonData": [1]}, "field-type", "spec.chainCNIJsonData[0]"),
    ],
)
def test_what_the_server_would_drop_or_refuse(change: dict[str, Any], code: str, at: str) -> None:
    """S84 to S86, S92."""
    assert codes({**CONFIG, "spec": {**CONFIG["spec"], **change}}) == [(code, at)]


def test_a_missing_field_and_free_maps() -> None:
    """S101: labels of a selector are free, and must be texts."""
    spec = {key: value for key, value in POLICY["spec"].items() if key != "numVfs"}
    assert codes({**POLICY, "spec": spec}) == [("field-required", "spec.numVfs")]
    odd = {**POLICY["spec"], "nodeSelector": {"a": True}}
    assert codes({**POLICY, "spec": odd}) == [("field-type", "spec.nodeSelector.a")]
    free = {"cniType": "macvlan", "macvlan": {"anything": [{"x": 1}]}}
    assert codes({**CONFIG, "spec": free}) == []


def test_numbers_that_may_be_texts() -> None:
    """S120."""
    pool = {
        "apiVersion": "sriovnetwork.openshift.io/v1",
        "kind": "SriovNetworkPoolConfig",
        "spec": {"maxUnavailable": "10%"},
    }
    assert codes(pool) == []
    assert codes({**pool, "spec": {"rdmaMode": "exclusive"}}) == [("field-pruned", "spec.rdmaMode")]  # S26


def test_a_kind_without_a_definition() -> None:
    (issue,) = deployed.judge(CONFIG, [DEFINITIONS["SriovNetworkNodePolicy"]])
    assert (issue.code, issue.at) == ("kind-not-served", "kind")
    assert issue.message.endswith("install Spiderpool")
    (issue,) = deployed.judge(POLICY, [])
    assert "sriov.install" in issue.message
    (issue,) = deployed.judge({**CONFIG, "apiVersion": "spiderpool.spidernet.io/v1"}, CRDS)
    assert issue.message == "the cluster serves SpiderMultusConfig in the versions v2beta1, not in v1"


def test_which_definitions_are_missing() -> None:
    assert deployed.missing(CRDS) == []
    assert deployed.missing([]) == list(deployed.PLURALS.values())
