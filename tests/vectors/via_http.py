# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the OKE child range through a running provider: what its contract can express, in the words of DRANET.

Each case becomes a node: a recorded tree, a metadata service on loopback, and a provider that knows no other node. The
claim is sent as a driver with IPvlan children sends it, which merges the type of the device's configuration into it.
Cases that need the same metadata, options and files of OCA share a process; the tree is exchanged between them.

What the contract does not show is not compared: the name of a native InfiniBand device (only that it is one that can be
served), and details of errors that are neither exposed nor in the message.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import oke
from compare import differences

from rdma_k8s.core.errors import RdmaError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import provider_tree
from fake_imds import FakeImds, ok
from provider_process import Client, Provider

GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
READY = "rdma.k8s/ready"
DEVICE = {
    "pci_address": "0000:0c:00.0",
    "mac": "",
    "net": ["rdma0"],
    "infiniband": [{"name": "mlx5_0", "link_layers": ["Ethernet"]}],
}
FABRIC = {"ipv6": False, "planes": 1}
VNIC = {"ip": "172.16.0.1", "subnet": "172.16.0.0/30"}
"""The smallest subnet, so that any range of a case holds the child of rdma0."""
PARENT = "10.224.0.1/12"


class Node:
    """The node of a case: what the provider reads there, and the claim that is sent."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.case = case
        self.op: str = case["op"]
        self.given: dict[str, Any] = case["input"]
        self.device: dict[str, Any] = DEVICE
        self.interfaces: dict[str, Any] = {
            "rdma0": {"arphrd": 1, "addresses": [PARENT], "arp_ignore": "1\n", "arp_announce": "2\n"}
        }
        self.routes: Any = ()
        self.netns_mode: Optional[str] = "Y\n"
        self.oca: dict[str, Any] = {}
        self.host: Any = {"rdmaFabricData": FABRIC}
        self.instance: Any = {"shape": "BM.GPU.H100.8"}
        self.vnic: Any = VNIC
        self.vnics: Any = [vnic_entry(VNIC)]
        self.service_host: Optional[str] = None
        self.child_range: Optional[str] = self.given.get("child_range")
        self.config: Any = {"profile": "oke-rdma", "interface": {}}
        getattr(self, "_" + self.op)()

    def _resolve_profile(self) -> None:
        given = self.given
        metadata = given["metadata"]
        self.device = given["device"]
        self.interfaces = given["interfaces"]
        self.routes = given["host_routes"]
        self.netns_mode = given["netns_mode"]
        self.oca = given["oca"] or {}
        self.host = None if metadata is None else {"rdmaFabricData": metadata.get("fabric")}
        self.vnic = None if metadata is None else metadata.get("vnic")
        self.vnics = given["vnics"]
        self.service_host = given["kubernetes_service_host"]
        self.config = given["config"]
        if metadata is None:
            self.instance = None

    def _check_conflicts(self) -> None:
        self.routes = self.given["host_routes"]
        self.vnics = self.given["vnics"]
        self.service_host = self.given["kubernetes_service_host"]

    def _check_claim_request(self) -> None:
        self.config = self.given["config"]

    def _native_ib_guard(self) -> None:
        self.device = self.given["device"]
        self.netns_mode = self.given["netns_mode"]
        self.interfaces = {}

    def _imds_attributes(self) -> None:
        self.host = self.given["host"]
        self.instance = self.given["instance"]

    def key(self) -> str:
        """What a process knows for its whole life: cases that agree in it share one.

        A provider compares the layout of the host until it was right once (F36), so a case about that has its own.
        """
        expected = str(self.case["expect"].get("error", ""))
        named = any(name.startswith("rdma") for name in self.interfaces)
        known = [self.host, self.instance, self.vnic, self.vnics, self.child_range, self.service_host]
        return json.dumps(
            [known, self.oca, named, expected if expected.startswith("layout") else ""], sort_keys=True
        )

    def write(self, root: Path) -> Path:
        """The recorded tree."""
        return provider_tree.write(
            root,
            self.interfaces,
            devices=[self.device],
            routes=self.routes,
            netns_mode=self.netns_mode,
            oca=self.oca,
        )

    def answers(self) -> dict[str, list[Any]]:
        """What the metadata service says. The first list of VNICs is the one in which the primary VNIC is found."""
        first = GONE if self.vnic is None else ok([vnic_entry(self.vnic)])
        later = GONE if self.vnics is None else ok(self.vnics)
        return {
            "/host/": [answer(self.host)],
            "/instance/": [answer(self.instance)],
            "/vnics/": [first, later] if self.vnic is not None else [GONE],
        }

    def flags(self) -> list[str]:
        """The options of the provider."""
        option = "--cloud-provider-options=oke.rdma-child-ipv4-cidr=%s"
        return [] if self.child_range is None else [option % self.child_range]


def answer(document: Any) -> bytes:
    """The answer with a document; ``None``: the request fails."""
    return GONE if document is None else ok(document)


def vnic_entry(vnic: dict[str, Any]) -> dict[str, Any]:
    """An entry of `/vnics/` for the type `vnic`."""
    return {"privateIp": vnic["ip"], "subnetCidrBlock": vnic["subnet"]}


# --- calls


def request_of(device: dict[str, Any]) -> dict[str, Any]:
    """The device as DRANET names it: members without a value are left out."""
    named = {"mac_address": device["mac"], "pci_address": device["pci_address"]}
    name = (
        "pci-" + device["pci_address"].replace(":", "-").replace(".", "-")
        if device["pci_address"]
        else "dev0"
    )
    return {**{key: value for key, value in named.items() if value}, "name": name}


def as_sent(config: Any) -> Any:
    """The configuration with the type of the device's one, where the claim has none of its own."""
    interface = config.get("interface", {}) if isinstance(config, dict) else None
    if not isinstance(interface, dict) or interface.get("type"):
        return config
    return {**config, "interface": {**interface, "type": "IPVLAN"}}


def claim_of(node: Node) -> dict[str, Any]:
    """The body of GetProfileConfig; no configuration is no member."""
    body: dict[str, Any] = {"device": request_of(node.device), "claim_uid": "6a1f"}
    if node.config is not None:
        body["config"] = as_sent(node.config)
    return body


def ask(client: Client, node: Node) -> dict[str, Any]:
    """What the provider gives for a case, in the form of the vectors.

    :raises RdmaError: the error that it answers.
    """
    if node.op == "imds_attributes":
        found = succeeded(client.call("/GetDeviceAttributes", request_of(node.device)))
        found.pop(READY)
        return {"attributes": found}
    if node.op == "native_ib_guard":
        return guard(client, node)
    found = succeeded(client.call("/GetProfileConfig", claim_of(node)))
    if node.op != "resolve_profile":
        return {"ok": True}
    if found == {"interface": {}}:
        return {"network_config": None, "reason": "fabric_ipv6"}
    return {"network_config": found}


def guard(client: Client, node: Node) -> dict[str, Any]:
    """The guard as the driver sees it: a device that passes has no profile and is ready (F43, F82)."""
    config = succeeded(client.call("/GetDeviceConfig", request_of(node.device)))
    ready = succeeded(client.call("/GetDeviceAttributes", request_of(node.device)))[READY]["bool"]
    if config.get("profile"):
        succeeded(client.call("/GetProfileConfig", claim_of(node)))
    if config != {"interface": {}}:
        return {"native_infiniband": config}
    name = node.case["expect"].get("native_infiniband")
    return {"native_infiniband": name if ready == (name is not None) else {"ready": ready}}


def succeeded(answered: tuple[int, Any]) -> Any:
    """The document of an answer with status 200.

    :raises RdmaError: of another one
    """
    status, document = answered
    if status == 200:
        return document
    error = document["error"]
    expected = 400 if error["code"] == "request_malformed" else 503 if error["retryable"] else 422
    if status != expected:
        raise ValueError("status %d for %s, expected %d" % (status, error["code"], expected))
    raise RdmaError(error["code"], error["message"], error["hint"], error["retryable"], **error["details"])


def judge(client: Client, node: Node) -> list[str]:
    """The differences of one case."""
    expected = node.case["expect"]
    try:
        got = ask(client, node)
    except RdmaError as error:
        return oke.error_differences(expected, error)
    return differences(expected, got)


# --- running


@contextlib.contextmanager
def spawned(nodes: list[Node], place: Path) -> Iterator[Provider]:
    """A provider for cases that agree, with the tree of the first one."""
    use(nodes[0], place)
    with (
        FakeImds(nodes[0].answers()) as imds,
        Provider(
            place / "provider",
            *nodes[0].flags(),
            host_root=place / "root",
            imds_url=imds.url,
            KUBERNETES_SERVICE_HOST=nodes[0].service_host,
        ) as provider,
    ):
        provider.wait_for_metadata()
        yield provider


def use(node: Node, place: Path) -> None:
    """Make the tree of a case the root of the host."""
    number = len(list(place.glob("tree*")))
    node.write(place / ("tree%d" % number))
    link = place / "link"
    link.symlink_to("tree%d" % number)
    link.rename(place / "root")


def through_spawned(cases: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Judge the cases with providers of their own."""
    groups: dict[str, list[Node]] = {}
    for node in map(Node, cases):
        groups.setdefault(node.key(), []).append(node)
    for nodes in groups.values():
        with tempfile.TemporaryDirectory(prefix="rdma-k8s-") as name, spawned(nodes, Path(name)) as provider:
            for node in nodes:
                use(node, Path(name))
                yield node.case, judge(provider.client, node)


def through_url(url: str, cases: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Judge with a provider that runs already: only claims that it refuses whatever the node is like."""
    client = Client(url)
    for case in cases:
        yield case, judge(client, Node(case))
    client.close()


def expressible(case: dict[str, Any], url: str) -> bool:
    """Whether a provider at this URL, or one that is started for the case, can be asked about it."""
    if url == "spawn":
        return hasattr(Node, "_" + case["op"])
    return case["op"] == "check_claim_request" and "error" in case["expect"]


def run(url: str, cases: list[dict[str, Any]]) -> tuple[list[tuple[str, list[str]]], dict[str, int]]:
    """The outcome of each case by name, and how many are not applicable, by operation."""
    asked = [case for case in cases if expressible(case, url)]
    others: dict[str, int] = {}
    for case in cases:
        if not expressible(case, url):
            others[case["op"]] = others.get(case["op"], 0) + 1
    judged = through_spawned(asked) if url == "spawn" else through_url(url, asked)
    return [(case["name"], found) for case, found in judged], others
