# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with two RDMA NICs, its metadata service, and a provider that knows both."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support import provider_tree
from ansible_collections.rdma.k8s.tests.support.fake_imds import FakeImds, ok
from ansible_collections.rdma.k8s.tests.support.provider_process import Provider

PCI = "0000:0c:00.0"
DEVICE = {"mac_address": "b8:3f:d2:00:00:01", "pci_address": PCI, "name": "pci-0000-0c-00-0"}
CONFIG = {"profile": "oke-rdma", "interface": {"type": "IPVLAN"}}
CLAIM = {"device": DEVICE, "claim_uid": "6a1f", "config": CONFIG}
CHILD = {
    "interface": {"type": "IPVLAN", "addresses": ["10.208.13.19/12"], "arpIgnore": 1, "arpAnnounce": 2},
    "routes": [{"destination": "10.208.0.0/12", "source": "10.208.13.19", "scope": 253, "table": 100}],
    "rules": [{"priority": 32000, "source": "10.208.13.19/32", "table": 100}],
}
INTERFACES = {
    "lo": {"arphrd": 772, "addresses": ["127.0.0.1/8"]},
    "eth0": {"arphrd": 1, "addresses": ["10.140.77.19/19"]},
    "rdma0": {"arphrd": 1, "addresses": ["10.224.13.19/12"], "arp_ignore": "1\n", "arp_announce": "2\n"},
    "rdma1": {"arphrd": 1, "addresses": [], "arp_ignore": "1\n", "arp_announce": "2\n"},
}
DEVICES = [
    {"pci_address": PCI, "net": ["rdma0"], "infiniband": [{"name": "mlx5_0", "link_layers": ["Ethernet"]}]},
    {
        "pci_address": "0000:0c:00.1",
        "net": ["rdma1"],
        "infiniband": [{"name": "mlx5_1", "link_layers": ["Ethernet"]}],
    },
]
HOST = ok({"rdmaFabricData": {"ipv6": False, "planes": 1}, "rackId": "rack7"})
INSTANCE = ok({"shape": "BM.GPU.H100.8"})
VNICS = ok([{"privateIp": "10.140.77.19", "subnetCidrBlock": "10.140.64.0/19"}])
GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def answers(**changed: Any) -> dict[str, list[Any]]:
    """What the metadata service says; ``host=[...]`` exchanges the answers of an endpoint."""
    usual = {"host": [HOST], "instance": [INSTANCE], "vnics": [VNICS]}
    return {"/%s/" % name: given for name, given in {**usual, **changed}.items()}


def write_tree(root: Path, **changed: Any) -> Path:
    """The tree of the node; interfaces that are given replace those of the same name."""
    return provider_tree.write(
        root, {**INTERFACES, **changed}, devices=DEVICES, routes=[{"dst": "default"}], netns_mode="Y\n"
    )


Start = Callable[..., Any]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a provider on the usual node; everything ends with the test."""
    with contextlib.ExitStack() as stack:

        def begin(*flags: str, imds: Any = None, wait: bool = True, **more: Any) -> Provider:
            number = len(list(tmp_path.glob("run*")))
            root = tmp_path / "root"
            if not root.exists():
                write_tree(root)
            url = stack.enter_context(FakeImds(answers() if imds is None else imds)).url
            given = {"host_root": root, "imds_url": url, **more}
            made = stack.enter_context(Provider(tmp_path / ("run%d" % number), *flags, **given))
            if wait:
                made.wait_for_metadata()
            return made

        yield begin


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """A provider on the usual node that a module shares."""
    place = tmp_path_factory.mktemp("provider")
    root = write_tree(place / "root")
    with FakeImds(answers()) as imds, Provider(place / "run", host_root=root, imds_url=imds.url) as made:
        made.wait_for_metadata()
        yield made
