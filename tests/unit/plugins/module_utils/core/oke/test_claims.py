# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims and classes that we write."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import documents, manifest
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import claim_nics, claims, profile, shapes
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.claims import ClaimWish
from ansible_collections.rdma.k8s.tests.support.outcome import error_of


def nics(name: str = "BM.GPU.H100.8", count: int = 0) -> tuple[claim_nics.ClaimNic, ...]:
    """The NICs of a shape."""
    shape = shapes.lookup(name, shapes.DEFAULT_TABLE)
    assert shape is not None
    return claim_nics.choose(claim_nics.of_shape(shape), count=count or None)


def wish(**more: Any) -> ClaimWish:
    """A claim for two NICs."""
    return ClaimWish(**{"name": "nics", "nics": nics(count=2), **more})


def devices(made: ClaimWish) -> Any:
    """``devices`` of the claim."""
    spec = claims.claim(made)["spec"]
    return (spec["spec"] if made.kind == claims.TEMPLATE else spec)["devices"]


def expressions(made: ClaimWish) -> list[str]:
    """The expressions of the first request."""
    return [entry["cel"]["expression"] for entry in devices(made)["requests"][0]["exactly"]["selectors"]]


NAMED = 'has(device.attributes["dra.net"].ifName) && device.attributes["dra.net"].ifName == "rdma0"'


def test_one_request_each() -> None:
    """All NICs of the node in one claim, one request each (F121), selected as the guide does."""
    found = devices(wish(nics=nics()))
    assert [request["name"] for request in found["requests"]] == ["rdma%d" % index for index in range(16)]
    assert {request["exactly"]["deviceClassName"] for request in found["requests"]} == {"rdma-nic"}
    assert expressions(wish(nics=nics())) == [NAMED]
    assert list(found) == ["requests"]


def test_template_and_claim() -> None:
    """A template holds the same spec one level deeper."""
    template, claim = claims.claim(wish()), claims.claim(wish(kind="ResourceClaim", namespace="a"))
    assert template["spec"]["spec"] == claim["spec"]
    assert (template["kind"], claim["kind"]) == ("ResourceClaimTemplate", "ResourceClaim")
    assert claim["metadata"] == {
        "name": "nics",
        "namespace": "a",
        "labels": {"app.kubernetes.io/managed-by": "rdma.k8s"},
    }


def test_the_profile_named() -> None:
    """A claim that names the profile names nothing else, and the profile accepts it (F32)."""
    (entry,) = devices(wish(profile=True))["config"]
    assert entry == {"opaque": {"driver": "dra.net", "parameters": {"profile": "oke-rdma"}}}
    profile.check_claim(profile.parse_claim(entry["opaque"]["parameters"]))


def test_the_profile_is_for_nics_alone() -> None:
    """GPUs of the claim are not meant; a device without an interface has no profile (F82)."""
    (entry,) = devices(wish(profile=True, gpus=1))["config"]
    assert entry["requests"] == ["rdma0", "rdma1"]
    assert "config" not in devices(wish(nics=nics("BM.GPU.GB200.4"), profile=True))


@pytest.mark.parametrize(
    ("name", "value", "expression"),
    [
        ("shape", "BM.GPU.H100.8", '["oke.dra.net"].shape == "BM.GPU.H100.8"'),
        ("rdmaFabricPlanes", 1, '["oke.dra.net"].rdmaFabricPlanes == 1'),
        ("rdmaFabricIpv6", False, '["oke.dra.net"].rdmaFabricIpv6 == false'),
        ("example.org/rail", 'a"b\\', '["example.org"].rail == "a\\"b\\\\"'),
    ],
)
def test_attributes_of_the_node(name: str, value: Any, expression: str) -> None:
    """F70: each request selects the NIC as well; values are quoted."""
    (found,) = expressions(wish(node_attributes={name: value}))
    first, second = found.split("\n&& ")
    assert first == NAMED
    assert second.endswith(" && device.attributes" + expression)
    assert second.startswith("has(device.attributes")


def test_an_attribute_that_is_true() -> None:
    """A truth is not compared."""
    (found,) = expressions(wish(node_attributes={"rdmaFabricIpv6": True}))
    place = 'device.attributes["oke.dra.net"].rdmaFabricIpv6'
    assert found.endswith("\n&& has(%s) && %s" % (place, place))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ifName", "rdma0"),
        ("shape", 1),
        ("shape", ""),
        ("shape", None),
        ("rdmaFabricPlanes", True),
        ("rdmaFabricPlanes", "1"),
        ("rdmaFabricIpv6", 1),
        ("example.org/a-b", "c"),
        ('a"/b', "c"),
        ("example.org/rail", 1.5),
        ("example.org/rail", ["a"]),
    ],
)
def test_attributes_that_are_none(name: str, value: Any) -> None:
    """A name that is no attribute of the node, or a value of another type (F70, F138)."""
    assert error_of(claims.claim, wish(node_attributes={name: value})).code == "claim_attribute"


def test_further_expressions() -> None:
    """They are selectors of their own; an empty one and one beyond the limit of the API are refused."""
    assert expressions(wish(cel=["true"])) == [NAMED, "true"]
    assert len(expressions(wish(cel=["x" * 10240]))) == 2
    long = error_of(claims.claim, wish(cel=["x" * 10241]))
    assert (long.code, long.hint) == (
        "cel_too_long",
        "Give several shorter expressions; a device must meet all of them.",
    )
    empty = error_of(claims.claim, wish(cel=[""]))
    assert (empty.code, empty.hint) == ("cel_empty", "Leave it out.")


# --- GPUs


@pytest.mark.parametrize(
    ("count", "gpus", "groups"),
    [
        (2, 1, [["gpu0", "rdma0", "rdma1"]]),
        (4, 2, [["gpu0", "rdma0", "rdma1"], ["gpu1", "rdma2", "rdma3"]]),
        (2, 2, [["gpu0", "rdma0"], ["gpu1", "rdma1"]]),
        (1, 2, [["gpu0", "gpu1", "rdma0"]]),
        (2, 4, [["gpu0", "gpu1", "rdma0"], ["gpu2", "gpu3", "rdma1"]]),
        (2, 6, [["gpu0", "gpu1", "gpu2", "rdma0"], ["gpu3", "gpu4", "gpu5", "rdma1"]]),
    ],
)
@pytest.mark.parametrize(
    ("align", "attribute"),
    [("pcie_root", "resource.kubernetes.io/pcieRoot"), ("numa", "resource.kubernetes.io/numaNode")],
)
def test_alignment(count: int, gpus: int, groups: list[list[str]], align: str, attribute: str) -> None:
    """F101, F129: one constraint for each group of GPUs and NICs."""
    found = devices(wish(nics=nics(count=count), gpus=gpus, align=align))
    assert [entry["requests"] for entry in found["constraints"]] == groups
    assert {entry["matchAttribute"] for entry in found["constraints"]} == {attribute}
    asked = [entry["name"] for entry in found["requests"]]
    assert asked == ["rdma%d" % n for n in range(count)] + ["gpu%d" % n for n in range(gpus)]
    assert found["requests"][-1]["exactly"] == {"deviceClassName": "gpu.nvidia.com"}


@pytest.mark.parametrize(("count", "gpus"), [(3, 2), (2, 3), (2, 0)])
def test_numbers_that_do_not_fit(count: int, gpus: int) -> None:
    """Neither number is a multiple of the other, or there is no GPU to align with."""
    made = wish(nics=nics(count=count), gpus=gpus, align="pcie_root")
    assert error_of(claims.claim, made).code == "claim_align"


def test_alignment_on_the_nodes() -> None:
    """NICs that go with one GPU and have different roots, or none, are named with their node."""
    made = wish(gpus=1, align="pcie_root")
    root = "resource.kubernetes.io/pcieRoot"
    same: dict[str, Any] = {"rdma0": {root: "pci0000:0b"}, "rdma1": {root: "pci0000:0b"}}
    claims.check_alignment(made, {"n1": same})
    claims.check_alignment(wish(gpus=1), {"n1": {"rdma0": {}, "rdma1": {}}})
    for other, said in (({root: "pci0000:0c"}, "pci0000:0c"), ({}, "(none)")):
        error = error_of(claims.check_alignment, made, {"n1": same, "n2": {**same, "rdma1": other}})
        assert (error.code, error.details["node"]) == ("claim_align", "n2")
        assert "the NICs rdma0, rdma1 have the values pci0000:0b, %s of" % said in error.message


@pytest.mark.parametrize(("gpus", "code"), [(16, ""), (17, "claim_too_large")])
def test_the_size(gpus: int, code: str) -> None:
    """The API takes 32 requests."""
    made = wish(nics=nics(), gpus=gpus)
    if code:
        assert error_of(claims.claim, made).code == code
    else:
        assert len(devices(made)["requests"]) == 32


@pytest.mark.parametrize("count", [-1, -20])
def test_fewer_gpus_than_none(count: int) -> None:
    """Refused by what is wrong, also where NICs and GPUs together are few."""
    error = error_of(claims.claim, wish(nics=nics(), gpus=count))
    assert (error.code, error.details["gpus"]) == ("claim_gpu_count", count)
    assert error.message == "ResourceClaimTemplate nics asks for %d GPUs, expected 0 or more." % count


def test_no_nic() -> None:
    """A claim for nothing is none."""
    assert error_of(claims.claim, wish(nics=())).code == "claim_nic_count"


# --- own addresses


def own(**more: Any) -> ClaimWish:
    """A claim of one node that brings its addresses."""
    addresses = {"rdma0": "10.208.13.19/12", "rdma1": "10.208.45.19/12"}
    return wish(**{"kind": "ResourceClaim", "provider": "none", "addresses": addresses, **more})


def test_own_addresses() -> None:
    """What the profile would set (F15, F38, F39, F79), each for its own request."""
    first, second = devices(own())["config"]
    assert (first["requests"], second["requests"]) == (["rdma0"], ["rdma1"])
    assert second["opaque"]["parameters"] == {
        "interface": {"type": "IPVLAN", "addresses": ["10.208.45.19/12"], "arpIgnore": 1, "arpAnnounce": 2},
        "routes": [{"destination": "10.208.0.0/12", "source": "10.208.45.19", "scope": 253, "table": 101}],
        "rules": [{"priority": 32000, "source": "10.208.45.19/32", "table": 101}],
    }
    assert "moves the RDMA NIC into the pod" in claims.notes(own())[0]
    assert claims.notes(wish()) == []
    assert "feature gate" in claims.notes(wish(gpus=1, align="numa"))[0]
    assert "--move-ib-interfaces=false" in claims.notes(wish(nics=nics("BM.GPU.GB200.4")))[0]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"kind": "ResourceClaimTemplate"}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "10.208.13.19/12"}}, "claim_own_addresses"),
        ({"addresses": {}}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "10.208.13.19/12", "rdma1": "10.208.13.19/12"}}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "10.208.13.19", "rdma1": "10.208.45.19/12"}}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "10.208.13.19/12", "rdma1": "10.192.45.19/14"}}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "fd00::1/64", "rdma1": "fd00::2/64"}}, "claim_own_addresses"),
        ({"addresses": {"rdma0": "169.254.0.1/16", "rdma1": "169.254.0.2/16"}}, "range_reserved"),
        ({"provider": "cloud"}, "claim_own_addresses"),
        ({"nics": nics("BM.GPU.GB200.4")}, "claim_own_addresses"),
    ],
)
def test_addresses_that_cannot_be(more: dict[str, Any], code: str) -> None:
    """F24, F27, F32, F109, and a template that would give one address to many pods."""
    assert error_of(claims.claim, own(**more)).code == code


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"provider": "cloud"}, "provider cloud gives its own (F32)"),
        ({"nics": nics("BM.GPU.GB200.4")}, "a device without an interface takes none (F109)"),
        ({"addresses": {}}, "addresses are given for nothing, expected one for each of rdma0, rdma1"),
        ({"addresses": {"rdma1": "10.208.45.19/12"}}, "addresses are given for rdma1, expected one for each"),
    ],
)
def test_why_addresses_cannot_be(more: dict[str, Any], said: str) -> None:
    """F32, F109."""
    assert said in error_of(claims.claim, own(**more)).message


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("10.208.0.0/12", "rdma1, 10.208.0.0/12, is the network address of 10.208.0.0/12"),
        ("10.223.255.255/12", "rdma1, 10.223.255.255/12, is the broadcast address of 10.208.0.0/12"),
    ],
)
def test_addresses_that_no_interface_has(address: str, said: str) -> None:
    """The first and the last address of the range are refused by name, those beside them are taken."""
    error = error_of(claims.claim, own(addresses={"rdma0": "10.208.13.19/12", "rdma1": address}))
    assert (error.code, said in error.message) == ("claim_own_addresses", True)
    assert devices(own(addresses={"rdma0": "10.208.0.1/12", "rdma1": "10.223.255.254/12"}))


# --- classes


def test_the_class() -> None:
    """Driver and RDMA; the attribute of readiness on demand (F44); the user's own expressions apart."""
    (plain,) = claims.device_class("rdma-nic")["spec"]["selectors"]
    lines = plain["cel"]["expression"].split("\n&& ")
    rdma = 'device.attributes["dra.net"].rdma'
    assert lines == ['device.driver == "dra.net"', "has(%s) && %s" % (rdma, rdma)]
    ready, further = claims.device_class("a", True, ["true"])["spec"]["selectors"]
    place = 'device.attributes["rdma.k8s"].ready'
    assert ready["cel"]["expression"].split("\n&& ") == [*lines, "has(%s) && %s" % (place, place)]
    assert further == {"cel": {"expression": "true"}}


@pytest.mark.parametrize(
    "made",
    [wish(name="A"), wish(namespace="a.b"), wish(device_class="a_b"), wish(gpus=1, gpu_class="")],
)
def test_names(made: ClaimWish) -> None:
    """Names that the API refuses are refused here."""
    assert error_of(claims.claim, made).code == "name_malformed"


@pytest.mark.parametrize(
    ("missing", "extra", "sentence"),
    [
        ((), (), None),
        (("rdma7",), (), "Node n3 does not publish rdma7."),
        (
            ("rdma7",),
            ("rdma8", "rdma9"),
            "Node n3 does not publish rdma7 and publishes rdma8, rdma9 as well.",
        ),
    ],
)
def test_odd_nodes(missing: Any, extra: Any, sentence: Any) -> None:
    """One sentence for a node that is not like the others."""
    assert claims.odd_sentence("n3", missing, extra) == sentence


@pytest.mark.parametrize("name", [entry.name for entry in shapes.DEFAULT_TABLE])
@pytest.mark.parametrize("profile_named", [True, False])
def test_what_the_lint_says(name: str, profile_named: bool) -> None:
    """Claims of all shapes, with attributes of the node and GPUs, pass our own rules."""
    asked = nics(name)
    gpus = 8 if len(asked) in (8, 16) else 1
    align = "pcie_root" if len(asked) % gpus == 0 else ""
    made = wish(nics=asked, profile=profile_named, gpus=gpus, align=align, node_attributes={"shape": name})
    text = manifest.text([claims.device_class("rdma-nic"), claims.claim(made)])
    found = engine.lint(documents.parse(text, "x.yaml"), complete=True, shape=name)
    assert [entry for entry in found if entry.status not in ("pass", "skip")] == []
    assert {entry.rule for entry in found if entry.status == "pass"} >= {"RDMA-WL-003"}
