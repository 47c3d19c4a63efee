# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s where``: from an address to its NIC and back. The numbers are those of F15."""

from __future__ import annotations

import json

import pytest


def facts(out: str) -> dict[str, str]:
    """The labelled lines below the first sentence."""
    pairs = [line.strip().split("  ", 1) for line in out.splitlines() if line.startswith("  ")]
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


def test_a_child(run, healthy):
    out = run("where", "10.209.237.19", "--snapshots", healthy).good()
    assert out.startswith("10.209.237.19 is the child of rdma15 on n0.\n")
    assert facts(out) == {
        "node": "n0 (BM.GPU.H100.8)",
        "primary VNIC": "10.140.77.19 in 10.140.64.0/19",
        "fabric": "ipv4",
        "RDMA network": "10.224.0.0/12, the default",
        "child range": "10.208.0.0/12",
        "NIC": "rdma15, index 15",
        "RDMA device": "mlx5_17 port 1",
        "PCI": "0000:d5:00.1",
        "MAC": "b8:3f:d2:0d:13:0f",
        "position": "3347 in blocks of 8192",
        "parent": "10.225.237.19, held",
        "child": "10.209.237.19/12",
        "child's route": "10.208.0.0/12 table 115 src 10.209.237.19",
        "child's rule": "32000: from 10.209.237.19 lookup 115",
    }
    assert out == run("where", "10.209.237.19/12", "--snapshots", healthy).good()


def test_another_range(run, healthy):
    """F17."""
    arguments = ("--snapshots", healthy, "--set", "child_range=10.192.0.0/14")
    assert "is the child of rdma15 on n0." in run("where", "10.193.237.19", *arguments).good()
    assert "Nobody has 10.209.237.19" in run("where", "10.209.237.19", *arguments).good()


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("10.225.237.20", "10.225.237.20 is the parent address of rdma15 on n1; the NIC holds it."),
        ("10.140.77.20", "10.140.77.20 is the primary VNIC address of n1."),
        ("10.253.20.1", "10.253.20.1 is on cni0 of n1."),
        ("fe80::ba3f:d2ff:fe90:d14", "fe80::ba3f:d2ff:fe90:d14 is on eth0 of n1."),
        ("fe80:0::ba3f:d2ff:fe90:0d14", "fe80::ba3f:d2ff:fe90:d14 is on eth0 of n1."),
    ],
)
def test_other_addresses(run, recorded, address, sentence):
    assert run("where", address, "--snapshots", recorded).good().splitlines()[0] == sentence


def test_an_address_on_the_wrong_nic(run, recorded):
    out = run("where", "10.224.173.21", "--snapshots", recorded).good()
    assert out.startswith("10.224.173.21 has 2 uses:\n")
    assert "10.224.173.21 is on rdma4 of n2, where 10.224.141.21 is expected." in out
    assert "10.224.173.21 is the parent address of rdma5 on n2; the NIC does not hold it." in out


def test_one_child_of_two_nodes(run, recorded):
    out = run("where", "10.208.13.19", "--snapshots", recorded).good()
    assert "is the child of rdma0 on n0." in out
    assert "is the child of rdma0 on n-odd." in out


@pytest.mark.parametrize(
    ("address", "sentences"),
    [
        (
            "10.209.237.99",
            ["NIC index 15", "primary address 10.140.77.99", "position 3427", "no recorded node has that"],
        ),
        ("10.225.237.99", ["parent address of NIC index 15", "10.140.77.99"]),
        ("10.140.77.99", ["primary subnet 10.140.64.0/19 it is host position 3427"]),
        ("10.208.255.255", ["NIC index 7", "10.140.95.255"]),
        ("10.212.0.1", ["NIC index 32", "but: NIC index 32 is too large: the largest is 15."]),
        ("8.8.8.8", ["It is in none of the child ranges, RDMA networks and primary subnets of these nodes."]),
        ("fd00::1", ["It is in none of the child ranges"]),
    ],
)
def test_nobodys_address(run, healthy, address, sentences):
    out = " ".join(run("where", address, "--snapshots", healthy).good().split())
    assert out.startswith("Nobody has %s (2 recorded nodes looked at)." % address)
    assert [sentence for sentence in sentences if sentence not in out] == []


def test_a_node_that_lacks_the_nic(run, recorded):
    out = " ".join(run("where", "10.208.1.58", "--snapshots", recorded).good().split())
    assert "NIC index 1 of the node with primary address 10.0.2.58 in 10.0.2.0/24 (position 58)" in out
    assert "that is hpc, which has no such NIC." in out


def test_a_silent_node_is_named(run, recorded):
    assert (
        "(8 recorded nodes looked at, 1 more told nothing)"
        in run("where", "8.8.8.8", "--snapshots", recorded).good()
    )


def test_a_node(run, healthy):
    out = run("where", "n0", "--snapshots", healthy).good()
    rows = [line.split() for line in out.splitlines() if line.startswith("  rdma")]
    assert len(rows) == 16
    assert rows[0] == [
        "rdma0",
        "0",
        "10.224.13.19",
        "yes",
        "10.208.13.19/12",
        "0000:0c:00.0",
        "b8:3f:d2:0d:13:00",
    ]
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize(
    "name", ["n0/rdma15", "n0/mlx5_17", "n0/0000:d5:00.1", "n0/b8:3f:d2:0d:13:0f", "n0/15"]
)
def test_a_nic_by_any_of_its_names(run, healthy, name):
    out = run("where", name, "--snapshots", healthy).good()
    assert out.startswith("rdma15 on n0\n")
    assert facts(out)["child"] == "10.209.237.19/12"


def test_a_nic_that_the_os_named(run, recorded):
    """F131, F34: the index comes from the address."""
    found = facts(run("where", "hpc/ens800f0np0", "--snapshots", recorded).good())
    assert (found["NIC"], found["child"]) == ("ens800f0np0, index 0", "10.208.0.58/12")


@pytest.mark.parametrize("node", ["ib", "v6"])
def test_fabrics_without_ipv4_children(run, recorded, node):
    out = run("where", node, "--snapshots", recorded).good()
    assert "none: NICs get no IPv4 child on this fabric" in out
    assert "10.208." not in out


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("n-od", "There is no node 'n-od' among the 9 recorded ones; did you mean n-odd"),
        ("10.209.237", "There is no node '10.209.237' among the 9 recorded ones"),
        ("10.209.237.019", "There is no node '10.209.237.019'"),
        ("n1/rdma16", "n1 has no RDMA NIC 'rdma16'; did you mean rdma"),
        ("n1/eth0", "n1 has no RDMA NIC 'eth0'"),
        ("gone", "The node gone gave no snapshot: ssh: connect to host gone port 22: No route to host"),
        ("", "There is no node ''"),
        ("/", "There is no node ''"),
    ],
)
def test_bad_names(run, recorded, what, sentence):
    assert sentence in run("where", what, "--snapshots", recorded).refused()


def test_json(run, recorded):
    found = json.loads(run("where", "10.209.237.20", "--snapshots", recorded, "--format", "json").good())
    assert found["address"] == "10.209.237.20"
    assert found["would_be"] == []
    (match,) = found["matches"]
    assert (match["kind"], match["node"], match["nic"]["name"]) == ("child", "n1", "rdma15")
    assert match["nic"]["table"] == 115
    found = json.loads(run("where", "10.209.237.99", "--snapshots", recorded, "--format", "json").good())
    assert found["matches"] == []
    assert {(entry["index"], entry["primary"]) for entry in found["would_be"]} == {
        (15, "10.140.77.99"),
        (15, "10.141.77.99"),
    }
    found = json.loads(run("where", "n1", "--snapshots", recorded, "--format", "json").good())
    assert [nic["index"] for nic in found["nics"]] == list(range(16))


def test_where_the_snapshots_are(run, recorded, elsewhere, monkeypatch):
    assert (
        run("where", "n1")
        .refused()
        .startswith("No recorded snapshots are given. Say --snapshots DIR, set RDMA_K8S_SNAPSHOTS")
    )
    (elsewhere / "snapshots").symlink_to(recorded)
    assert run("where", "n1").good().startswith("n1\n")
    monkeypatch.setenv("RDMA_K8S_SNAPSHOTS", "nowhere")
    assert run("where", "n1").refused().startswith("nowhere cannot be read")
    monkeypatch.setenv("RDMA_K8S_SNAPSHOTS", str(recorded))
    assert run("where", "n1", "--snapshots", "nowhere2").refused().startswith("nowhere2 cannot be read")


def test_a_result_document_has_no_snapshots(run, recorded, tmp_path):
    run("report", recorded, "--dir", tmp_path, "--format", "json").good()
    assert (
        "is a result document; recorded snapshots are needed here."
        in run("where", "n1", "--snapshots", tmp_path).refused()
    )
