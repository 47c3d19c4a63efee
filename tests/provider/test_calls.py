# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls of a real process over its real socket: answers, errors with their status, what is logged and counted."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support.provider_process import Client, Provider

from .conftest import CHILD, CLAIM, CONFIG, DEVICE, GONE, Start, answers, write_tree

OTHER = {**DEVICE, "pci_address": "0000:0c:00.1", "name": "pci-0000-0c-00-1"}


def test_what_the_provider_can(provider: Provider) -> None:
    """F122."""
    assert provider.call("/health") == (200, {"cloudProvider": True, "profileProvider": True})


def test_the_four_calls(provider: Provider) -> None:
    """F43, F70, F38, F42."""
    assert provider.call("/GetDeviceAttributes", DEVICE) == (
        200,
        {
            "oke.dra.net/rackId": {"string": "rack7"},
            "oke.dra.net/shape": {"string": "BM.GPU.H100.8"},
            "oke.dra.net/rdmaFabricIpv6": {"bool": False},
            "oke.dra.net/rdmaFabricPlanes": {"int": 1},
            "oke.dra.net/rdmaChildIpv4Cidr": {"string": "10.208.0.0/12"},
            "rdma.k8s/ready": {"bool": True},
        },
    )
    assert provider.call("/GetDeviceConfig", DEVICE) == (200, CONFIG)
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    assert provider.call("/ReleaseProfileConfig", CLAIM) == (200, {})
    assert provider.call("/ReleaseProfileConfig", CLAIM) == (200, {})
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)


def test_a_nic_without_its_address_is_not_ready(provider: Provider) -> None:
    """F35, F44: a claim for it fails and can be tried again."""
    assert provider.call("/GetDeviceAttributes", OTHER)[1]["rdma.k8s/ready"] == {"bool": False}
    status, document = provider.call("/GetProfileConfig", {**CLAIM, "device": OTHER})
    assert (status, document["error"]["code"]) == (503, "parent_address_missing")
    assert document["error"]["details"] == {"interface": "rdma1", "expected": "10.224.45.19"}


def test_an_error_is_a_sentence_unless_json_is_accepted(provider: Provider) -> None:
    """The driver accepts nothing in particular and puts the body into the event of the pod."""
    claim = {**CLAIM, "config": {**CONFIG, "interface": {"type": "Passthrough"}}}
    status, text = provider.call("/GetProfileConfig", claim, as_json=False)
    assert status == 422
    assert isinstance(text, str)
    assert text.endswith("[claim_passthrough]")
    assert "\n" not in text
    assert "{" not in text
    status, document = provider.call("/GetProfileConfig", claim)
    error = document["error"]
    assert (status, error["code"], error["retryable"]) == (422, "claim_passthrough", False)
    assert text == "%s %s [claim_passthrough]" % (error["message"], error["hint"])


@pytest.mark.parametrize(
    ("path", "more", "status", "code"),
    [
        ("/GetProfileConfig", {"body": b"{"}, 400, "request_malformed"),
        ("/GetProfileConfig", {"body": b""}, 400, "request_malformed"),
        ("/GetDeviceConfig", {"document": []}, 400, "request_malformed"),
        (
            "/GetDeviceAttributes",
            {"document": {"name": "x", "pci_address": "../x"}},
            400,
            "request_malformed",
        ),
        ("/GetProfileConfig", {}, 405, "method_not_allowed"),
        ("/GetProfileConfig", {"document": CLAIM, "method": "PUT"}, 405, "method_not_allowed"),
        ("/health", {"document": {}}, 405, "method_not_allowed"),
        ("/", {}, 404, "unknown_path"),
        ("/getprofileconfig", {"document": CLAIM}, 404, "unknown_path"),
        ("/GetProfileConfig/", {"document": CLAIM}, 404, "unknown_path"),
        ("/metrics", {}, 404, "unknown_path"),
        ("/GetProfileConfig", {"body": b"[" + b" " * (4 << 20) + b"]"}, 413, "body_too_large"),
    ],
)
def test_what_is_no_call(provider: Provider, path: str, more: dict[str, Any], status: int, code: str) -> None:
    """Each mistake has its own status and code, and the provider goes on."""
    client = Client(provider.url)
    found, document = client.call(path, **more)
    client.close()
    assert (found, document["error"]["code"]) == (status, code)
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)


def test_a_whole_claim_fits(provider: Provider) -> None:
    """F124: newer drivers send the ResourceClaim, which may have a megabyte and more."""
    claim = {**CLAIM, "claim": {"metadata": {"annotations": {"a": "x" * 1_500_000}}}}
    assert provider.call("/GetProfileConfig", claim) == (200, CHILD)


def test_bytes_as_the_driver_sends_them(provider: Provider) -> None:
    """F124: one request as Go writes it, answered with a length and an end."""
    body = json.dumps(CLAIM, separators=(",", ":")).encode()
    head = b"POST /GetProfileConfig HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\n"
    head += b"Content-Length: %d\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n" % len(
        body
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(provider.socket))
        connection.sendall(head + body)
        answer = b""
        while b"\r\n\r\n" not in answer or not answer.endswith(b"}"):
            answer += connection.recv(65536)
    first, _separator, rest = answer.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Encoding" not in first
    assert json.loads(rest) == CHILD


def test_each_call_is_one_line(provider: Provider) -> None:
    """Path, device, claim, status, milliseconds, code; nothing of the configuration."""
    before = len(provider.lines())
    provider.call("/GetProfileConfig", {**CLAIM, "claim_uid": "uid-1"})
    provider.call("/GetProfileConfig", {**CLAIM, "claim_uid": "uid-2", "config": None})
    good, bad = [line for line in provider.lines()[before:] if line["event"] == "call"]
    assert good.pop("ms") >= 0
    assert good.pop("time").endswith("Z")
    assert good == {
        "level": "info",
        "event": "call",
        "path": "/GetProfileConfig",
        "claim": "uid-1",
        "device": "pci-0000-0c-00-0",
        "pci": "0000:0c:00.0",
        "status": 200,
    }
    assert (bad["level"], bad["code"], bad["status"], bad["claim"]) == (
        "warning",
        "config_missing",
        422,
        "uid-2",
    )


def test_what_is_counted(provider: Provider) -> None:
    good = 'rdma_k8s_provider_calls_total{code="ok",path="/GetProfileConfig"}'
    bad = 'rdma_k8s_provider_calls_total{code="config_missing",path="/GetProfileConfig"}'
    before = provider.metric(good), provider.metric(bad)
    provider.call("/GetProfileConfig", CLAIM)
    provider.call("/GetProfileConfig", {**CLAIM, "config": None})
    assert (provider.metric(good), provider.metric(bad)) == (before[0] + 1, before[1] + 1)
    assert provider.metric("rdma_k8s_provider_build_info") == 1
    assert provider.metric("rdma_k8s_provider_imds_age_seconds") >= 0
    assert provider.metric('rdma_k8s_provider_call_seconds_count{path="/GetProfileConfig"}') >= 2


def test_paths_that_nobody_knows_are_counted_together(provider: Provider) -> None:
    """Whoever calls cannot make series without end."""
    for number in range(3):
        provider.call("/x%d" % number)
    text = provider.operations.call("/metrics")[1]
    assert 'path="other"' in text
    assert "/x1" not in text


def test_health_and_readiness(provider: Provider) -> None:
    assert provider.operations.call("/healthz") == (200, "ok")
    assert provider.operations.call("/readyz") == (200, "ok")
    assert provider.operations.call("/other")[0] == 404


def test_calls_see_the_node_as_it_is(start: Start, tmp_path: Path) -> None:
    """F34, F35, F77: addresses and ARP values are read for each call, so a claim heals by itself."""
    root = write_tree(tmp_path / "root")
    provider = start()
    claim = {**CLAIM, "device": OTHER}
    assert provider.call("/GetProfileConfig", claim)[0] == 503
    healed = {"arphrd": 1, "addresses": ["10.224.45.19/12"], "arp_ignore": "2\n", "arp_announce": "1\n"}
    write_tree(root, rdma1=healed)
    status, document = provider.call("/GetProfileConfig", claim)
    assert status == 200
    assert document["interface"] == {
        "type": "IPVLAN",
        "addresses": ["10.208.45.19/12"],
        "arpIgnore": 2,
        "arpAnnounce": 1,
    }
    assert provider.call("/GetDeviceAttributes", OTHER)[1]["rdma.k8s/ready"] == {"bool": True}


def test_a_virtio_nic_is_found_below_its_virtio_device(start: Start, tmp_path: Path) -> None:
    """The function of a virtual machine's NIC has no directory of its own for interfaces, as in the lab."""
    root = write_tree(tmp_path / "root")
    function = root / "sys/bus/pci/devices" / DEVICE["pci_address"]
    (function / "virtio3").mkdir()
    (function / "net").rename(function / "virtio3" / "net")
    assert start().call("/GetProfileConfig", CLAIM) == (200, CHILD)


def test_the_layout_is_compared_until_it_was_right(start: Start, tmp_path: Path) -> None:
    """F36: a NIC that is wrong later does not stop the others."""
    root = write_tree(tmp_path / "root")
    provider = start()
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    wrong = {"arphrd": 1, "addresses": ["10.224.45.99/12"], "arp_ignore": "1\n", "arp_announce": "2\n"}
    write_tree(root, rdma1=wrong)
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    assert start().call("/GetProfileConfig", CLAIM)[1]["error"]["code"] == "layout_mismatch"


def test_the_service_address_of_the_cluster(start: Start) -> None:
    """F48: from the environment of the process."""
    provider = start(KUBERNETES_SERVICE_HOST="10.208.0.1")
    assert provider.call("/GetProfileConfig", CLAIM)[1]["error"]["code"] == "service_address_conflict"


def test_a_list_of_vnics_that_cannot_be_read_only_warns(start: Start) -> None:
    """F49: the primary VNIC is known, the fresh list is not."""
    vnics = answers()["/vnics/"]
    provider = start(imds=answers(vnics=[*vnics, GONE]))
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    assert [line["reason"] for line in provider.lines() if line["event"] == "vnics"] == ["HTTP status 404"]
