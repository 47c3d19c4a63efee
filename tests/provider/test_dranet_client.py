# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider asked by DRANET's own webhook client, built from the module of the release that the lab runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.lab import lab
from ansible_collections.rdma.k8s.tests.lab.image import Cache
from ansible_collections.rdma.k8s.tests.lab.programs import Programs
from ansible_collections.rdma.k8s.tests.lab.progress import Progress
from ansible_collections.rdma.k8s.tests.support.provider_process import Provider

from .conftest import DEVICE, Start


@pytest.fixture(scope="module")
def wire() -> Path:
    return Programs(Cache(lab.default_cache(), Progress(sys.stderr))).wire()


def ask(wire: Path, url: str, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    """What the client understood of each call."""
    lines = "".join(json.dumps(call) + "\n" for call in calls)
    done = subprocess.run([wire, url], input=lines, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_it_is_found_and_has_both_parts(wire: Path, provider: Provider) -> None:
    """F97, F122: otherwise DRANET ends at its start."""
    assert ask(wire, provider.url, {"call": "Capabilities"}) == [{"result": {"cloud": True, "profile": True}}]


def test_the_driver_reads_the_attributes(wire: Path, provider: Provider) -> None:
    """F123: into the types of the Kubernetes API."""
    (found,) = ask(wire, provider.url, {"call": "GetDeviceAttributes", "device": DEVICE})
    assert found["result"]["rdma.k8s/ready"] == {"bool": True}
    assert found["result"]["oke.dra.net/rdmaFabricPlanes"] == {"int": 1}
    assert found["result"]["oke.dra.net/rdmaChildIpv4Cidr"] == {"string": "10.208.0.0/12"}


def test_a_driver_without_ipvlan_cannot_take_the_nic(wire: Path, provider: Provider) -> None:
    """F148: v1.4.0 drops `interface.type` of an answer without a word, so what it merges has a profile and no type.

    With the addresses of an answer it would move the NIC into the pod under the child's address. The provider sees that
    the type did not come back and refuses; its sentence is what the pod's event shows.
    """
    device = {"call": "GetDeviceConfig", "device": DEVICE}
    merged = {"call": "Merge", "device": DEVICE, "config": {}}
    first, second = ask(wire, provider.url, device, merged)
    assert first == second == {"result": {"profile": "oke-rdma", "interface": {}}}
    call = {"call": "GetProfileConfig", "device": DEVICE, "claim_uid": "6a1f", "config": second["result"]}
    (third,) = ask(wire, provider.url, call)
    assert third["error"].startswith("webhook returned HTTP 422: DRANET asks for the child of rdma0 without ")
    assert third["error"].endswith("[driver_without_ipvlan]")


def test_the_sentence_of_a_refused_claim_reaches_the_driver(wire: Path, provider: Provider) -> None:
    """The driver puts the body of an answer behind its own words, as it is."""
    config = {"profile": "oke-rdma", "interface": {"addresses": ["10.0.0.1/8"]}}
    call = {"call": "GetProfileConfig", "device": DEVICE, "claim_uid": "6a1f", "config": config}
    (found,) = ask(wire, provider.url, call)
    assert found["error"].startswith("webhook returned HTTP 422: ")
    assert found["error"].endswith(" [claim_addresses]")
    assert "{" not in found["error"]


def test_release_is_accepted(wire: Path, provider: Provider) -> None:
    """F42: twice, and for a device that is gone."""
    calls = [
        {"call": "ReleaseProfileConfig", "device": device, "claim_uid": "6a1f"}
        for device in (DEVICE, DEVICE, {"name": "pci-0000-ff-00-0"})
    ]
    assert ask(wire, provider.url, *calls) == [{"result": None}] * 3


def test_over_an_address(wire: Path, start: Start) -> None:
    provider = start("--listen", "http://127.0.0.1:0")
    told = next(line for line in provider.lines() if line["event"] == "listen")
    url = next(url for url in told["webhook"] if url.startswith("http"))
    assert ask(wire, url, {"call": "Capabilities"}) == [{"result": {"cloud": True, "profile": True}}]
