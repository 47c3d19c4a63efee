# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks around a cluster from options, run whole in this process.

The cloud itself is asked in ``test_oci_network``.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.modules import child_range_check, oke_network_info
from ansible_collections.rdma.k8s.tests.support import oci_samples as samples
from ansible_collections.rdma.k8s.tests.support.module_run import failure, good

OPTIONS: dict[str, Any] = {
    "pod_cidrs": ["10.244.0.0/16"],
    "service_cidrs": ["10.96.0.0/16", "fd00::/108"],
    "vcn_cidrs": ["10.140.0.0/16"],
    "subnet_cidrs": ["10.140.64.0/19"],
    "peer_cidrs": ["172.20.0.0/16"],
}
NODE = {"name": "n1", "address": "10.140.77.19", "subnet": "10.140.64.0/19"}


def test_networks_from_options_say_so() -> None:
    result = good(oke_network_info, **OPTIONS)
    assert result["complete"] is True
    assert {name: result[name] for name in OPTIONS} == {**OPTIONS, "service_cidrs": ["10.96.0.0/16"]}
    document = result["networks"]
    assert document["cluster"] is None
    assert [(entry["kind"], entry["network"], entry["sources"]) for entry in document["networks"]] == [
        ("pod", "10.244.0.0/16", ["option pod_cidrs"]),
        ("service", "10.96.0.0/16", ["option service_cidrs"]),
        ("vcn", "10.140.0.0/16", ["option vcn_cidrs"]),
        ("subnet", "10.140.64.0/19", ["option subnet_cidrs"]),
        ("peer", "172.20.0.0/16", ["option peer_cidrs"]),
    ]
    assert [entry["network"] for entry in document["ipv6_networks"]] == ["fd00::/108"]


def test_nothing_given_is_nothing_known() -> None:
    result = good(oke_network_info)
    assert (result["networks"]["networks"], result["complete"]) == ([], True)


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_check_takes_the_document_as_it_is(check_mode: bool) -> None:
    """F50: the driver accepts a range inside the pod network; the check names it and who told it."""
    document = good(oke_network_info, _ansible_check_mode=check_mode, **OPTIONS)["networks"]
    result = good(child_range_check, child_range="10.208.0.0/12", nodes=[NODE], networks=document)
    assert (result["ok"], result["problems"], result["not_known"]) == (True, [], [])
    result = good(child_range_check, child_range="10.240.0.0/12", nodes=[NODE], networks=document)
    assert [(entry["code"], entry["message"]) for entry in result["problems"]] == [
        (
            "network_conflict",
            "pod network (option pod_cidrs): 10.244.0.0/16 overlaps the child range 10.240.0.0/12.",
        )
    ]
    assert result["problems"][0]["details"]["sources"] == ["option pod_cidrs"]


def test_options_and_document_count_both() -> None:
    document = good(oke_network_info, pod_cidrs=["10.244.0.0/16"])["networks"]
    result = good(
        child_range_check,
        child_range="10.240.0.0/12",
        nodes=[NODE],
        networks=document,
        service_cidrs=["10.250.0.0/16"],
    )
    assert [entry["message"].partition(" overlaps")[0] for entry in result["problems"]] == [
        "service_cidrs: 10.250.0.0/16",
        "pod network (option pod_cidrs): 10.244.0.0/16",
    ]
    free = result["proposals"][0]["ranges"]
    assert free
    assert "10.240.0.0/15" not in free


def test_what_could_not_be_read_is_told_by_the_check() -> None:
    document = good(oke_network_info, **OPTIONS)["networks"]
    document["unread"] = [{"code": "oci_not_found", "message": "The peers may not be read."}]
    result = good(child_range_check, child_range="10.208.0.0/12", nodes=[NODE], networks=document)
    assert result["not_known"] == ["The peers may not be read."]
    assert result["ok"] is True


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        ({"pod_cidrs": ["10.0.0.0"]}, "network_malformed", "pod_cidrs[0] must be a prefix"),
        ({"vcn_cidrs": ["10.0.0.0/8", "10.0.0.0/08"]}, "network_malformed", "vcn_cidrs[1] must be a prefix"),
        ({"cluster_id": "prod"}, "ocid_malformed", "'prod' is not the OCID of a cluster"),
        ({"cluster_id": samples.CLUSTER, "attempts": 11}, "number_out_of_range", "The option attempts is 11"),
        ({"cluster_id": samples.CLUSTER, "timeout": 0}, "number_out_of_range", "The option timeout is 0"),
        (
            {"cluster_id": samples.CLUSTER, "time_limit": float("nan")},
            "number_out_of_range",
            "time_limit is nan",
        ),
        (
            {"cluster_id": samples.CLUSTER, "network_endpoint": "http://example.org"},
            "oci_endpoint_refused",
            "The network endpoint 'http://example.org' must be https://HOST[:PORT]",
        ),
    ],
)
def test_a_mistake_is_one_sentence(options: dict[str, Any], code: str, sentence: str) -> None:
    result = failure(oke_network_info, **options)
    assert result["code"] == code
    assert sentence in result["msg"]
    assert "\n" not in result["msg"]


def test_a_wrong_document_is_refused_by_the_check() -> None:
    result = failure(child_range_check, child_range="10.208.0.0/12", nodes=[NODE], networks={"networks": []})
    assert result["code"] == "networks_malformed"


def test_without_the_sdk_options_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def absent(name: str, package: Any = None) -> Any:
        if name.partition(".")[0] == "oci":
            raise ImportError("No module named 'oci'")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", absent)
    assert good(oke_network_info, **OPTIONS)["complete"] is True
    result = failure(oke_network_info, cluster_id=samples.CLUSTER)
    assert (result["code"], result["missing_libraries"]) == ("library_missing", ["oci"])
    assert "Failed to import the required Python library (oci)" in result["msg"]


def test_a_pass_phrase_is_not_shown() -> None:
    result = failure(oke_network_info, cluster_id="prod", pass_phrase="open sesame")
    assert "sesame" not in str(result)


def test_it_describes_all_that_it_returns() -> None:
    described = yaml.safe_load(oke_network_info.RETURN)
    result = good(oke_network_info, **OPTIONS)
    assert set(described) == set(result)
    inside = described["networks"]["contains"]
    assert set(inside) == set(result["networks"])
    assert set(inside["networks"]["contains"]) == set(result["networks"]["networks"][0])
    documented = yaml.safe_load(oke_network_info.DOCUMENTATION)["options"]
    assert set(documented) == set(oke_network_info.OPTIONS)


def test_the_examples_of_the_documentation() -> None:
    tasks = yaml.safe_load(oke_network_info.EXAMPLES)
    document = good(oke_network_info, **tasks[2]["rdma.k8s.oke_network_info"])["networks"]
    options = {**tasks[1]["rdma.k8s.child_range_check"], "networks": document}
    assert good(child_range_check, **options)["ok"] is True
