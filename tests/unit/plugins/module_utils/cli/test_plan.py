# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s plan``: the children of a fleet, what is in their way, what would fit."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import fleet

REFERENCE = "n0 10.140.77.19 10.140.64.0/19\n"


def nodes_file(text: str) -> str:
    Path("nodes.txt").write_text(text)
    return "nodes.txt"


def rows(out: str) -> list[list[str]]:
    """The rows of a text plan, without head and summary."""
    lines = out.split("\n\n", maxsplit=1)[0].splitlines()
    assert lines[0].split() == ["NODE", "NIC", "INDEX", "PARENT", "CHILD", "TABLE"]
    return [line.split() for line in lines[1:]]


def test_the_reference_node(run):
    """F15."""
    found = rows(run("plan", "--nodes", nodes_file(REFERENCE)).good())
    assert len(found) == 16
    assert found[0] == ["n0", "rdma0", "0", "10.224.13.19", "10.208.13.19/12", "100"]
    assert found[7] == ["n0", "rdma7", "7", "10.224.237.19", "10.208.237.19/12", "107"]
    assert found[8] == ["n0", "rdma8", "8", "10.225.13.19", "10.209.13.19/12", "108"]
    assert found[15] == ["n0", "rdma15", "15", "10.225.237.19", "10.209.237.19/12", "115"]


def test_another_range(run):
    """F17."""
    found = rows(run("plan", "--nodes", nodes_file(REFERENCE), "--range", "10.192.0.0/14").good())
    assert found[15][4] == "10.193.237.19/14"


def test_columns_stand_below_each_other(run):
    text = "a 10.140.77.19\na-node-with-a-long-name 10.140.64.1\n"
    out = run("plan", "--nodes", nodes_file(text), "--subnet", "10.140.64.0/19").good()
    lines = out.split("\n\n", maxsplit=1)[0].splitlines()
    for column in ("NIC", "INDEX", "PARENT", "CHILD", "TABLE"):
        place = lines[0].index(column)
        assert {line[place - 1] for line in lines} == {" "}
        assert " " not in {line[place] for line in lines}


def test_the_summary(run):
    out = run("plan", "--nodes", nodes_file(REFERENCE), "--summary").good()
    assert out.splitlines() == [
        "",
        "Child range 10.208.0.0/12: 1 node, 16 children",
        "  Subnet 10.140.64.0/19: 16 NICs a node needed, 16 fit; a /15 holds them",
        "  Rule of each child: 32000: from CHILD lookup TABLE",
        "  No conflict.",
    ]


def test_csv(run):
    text = REFERENCE + '"odd",10.140.77.20,10.140.64.0/19\n=cmd 10.140.77.21 10.140.64.0/19\n'
    result = run("plan", "--nodes", nodes_file(text), "--nics", "2", "--format", "csv")
    found = list(csv.DictReader(io.StringIO(result.good())))
    assert found[1] == {
        "node": "n0",
        "nic": "rdma1",
        "index": "1",
        "parent": "10.224.45.19",
        "child": "10.208.45.19/12",
        "table": "101",
        "rule": "32000: from 10.208.45.19 lookup 101",
    }
    assert [row["node"] for row in found[2:]] == ['"odd"', '"odd"', "'=cmd", "'=cmd"]


def test_json(run):
    document = json.loads(
        run("plan", "--nodes", nodes_file(REFERENCE), "--nics", "2", "--format", "json").good()
    )
    assert document["kind"] == "rdma.k8s/plan"
    assert document["children"][1] == {
        "node": "n0",
        "nic": "rdma1",
        "index": 1,
        "parent": "10.224.45.19",
        "child": "10.208.45.19/12",
        "table": 101,
        "rule": "32000: from 10.208.45.19 lookup 101",
    }
    assert document["networks"][0]["problems"] == []
    assert document["networks"][0]["capacity"][0] == {
        "subnet": "10.140.64.0/19",
        "nodes": 1,
        "needed": 2,
        "held": 16,
        "length": 18,
    }
    out = run("plan", "--nodes", nodes_file(REFERENCE), "--summary", "--format", "json").good()
    assert json.loads(out)["children"] == []


def test_a_range_that_is_too_small(run):
    """F26: /16 with a /19 subnet holds indexes 0 to 7."""
    arguments = ("plan", "--nodes", nodes_file(REFERENCE), "--range", "10.192.0.0/16")
    out = run(*arguments).good()
    assert len(rows(out)) == 8
    assert "8 children, 8 NICs without" in out
    assert "a /15 holds them" in out
    assert "FREE      10.0.0.0/15, 10.2.0.0/15, 10.4.0.0/15, each holds 16 NICs of every node" in out
    assert run(*arguments, "--exit-code").code == 4
    assert run(*arguments, "--nics", "8", "--exit-code").good()
    document = json.loads(run(*arguments, "--format", "json").good())
    assert [entry["index"] for entry in document["networks"][0]["without_child"]] == list(range(8, 16))
    result = run(*arguments, "--format", "csv")
    assert len(result.out.splitlines()) == 9
    assert "16 are needed" in result.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--range", "10.224.0.0/12"],
            "The OCA RDMA network 10.224.0.0/12 overlaps the child range 10.224.0.0/12.",
        ),
        (["--range", "10.128.0.0/12"], "overlaps the child range 10.128.0.0/12"),
        (
            ["--set", "pod_cidrs=10.208.0.0/16"],
            "pod network: 10.208.0.0/16 overlaps the child range 10.208.0.0/12.",
        ),
        (["--set", "peer_cidrs=10.0.0.0/8"], "peered network: 10.0.0.0/8 overlaps"),
        (["--oca-network", "10.224.0.0/18"], "10.224.0.0/18"),
    ],
)
def test_conflicts(run, options, sentence):
    result = run("plan", "--nodes", nodes_file(REFERENCE), "--summary", "--exit-code", *options)
    assert result.code == 4
    assert sentence in " ".join(result.out.split())
    assert "CONFLICT" in result.out
    assert max(map(len, result.out.splitlines())) <= 100


def test_free_ranges_keep_away_from_what_is_in_use(run):
    options = [
        "--range",
        "10.224.0.0/12",
        "--set",
        "vcn_cidrs=10.0.0.0/12",
        "--set",
        "pod_cidrs=10.16.0.0/13",
    ]
    out = run("plan", "--nodes", nodes_file(REFERENCE), "--summary", *options).good()
    assert "FREE      10.24.0.0/15, 10.26.0.0/15, 10.28.0.0/15" in out


def test_nodes_of_two_subnets(run):
    """F23."""
    text = REFERENCE + "odd 10.141.77.19 10.141.64.0/19\n"
    out = " ".join(run("plan", "--nodes", nodes_file(text), "--summary").good().split())
    assert "The nodes of one RDMA network have 2 primary VNIC subnets" in out
    assert "16 child addresses would be given more than once" in out


def test_only_a_subnet(run):
    assert (
        run("plan", "--subnet", "10.140.64.0/19", "--exit-code").good().splitlines()[-1] == "  No conflict."
    )
    result = run("plan", "--subnet", "10.140.64.0/19", "--range", "10.208.0.0/17", "--exit-code")
    assert result.code == 4
    assert "FREE" in result.out
    assert "(any)" not in result.out
    document = json.loads(
        run("plan", "--subnet", "10.140.64.0/19", "--range", "10.208.0.0/17", "--format", "json").good()
    )
    assert document["children"] == []
    assert "(any)" not in json.dumps(document)


def test_recorded_snapshots(run, recorded):
    out = run("plan", recorded).good()
    found = rows(out)
    assert ["n0", "rdma15", "15", "10.225.237.19", "10.209.237.19/12", "115"] in found
    assert ["hpc", "ens800f0np0", "0", "10.224.0.58", "10.208.0.58/12", "100"] in found
    words = " ".join(out.split())
    assert "The host route to 10.215.0.0/16 overlaps the child range 10.208.0.0/12. 1 node: n3" in words
    assert "LEFT OUT 1 node: gone: ssh: connect" in words
    assert "1 node: ib: The fabric is infiniband" in words
    assert "1 node: v6: The fabric is ipv6" in words
    assert max(map(len, out.splitlines())) <= 100
    document = json.loads(run("plan", recorded, "--format", "json").good())
    assert {entry["node"] for entry in document["left_out"]} == {"gone", "ib", "v6"}
    assert len(document["networks"]) == 2


def test_recorded_snapshots_under_other_conditions(run, healthy):
    assert len(rows(run("plan", healthy, "--nics", "4").good())) == 8
    out = run(
        "plan", healthy, "--oca-network", "192.168.0.0/16", "--subnet", "10.140.0.0/16", "--summary"
    ).good()
    assert "10.140.0.0/16" in out
    assert "192.168.0.0/16" in out


def test_a_nic_without_an_index(run, tmp_path):
    """F44: neither the name nor an address of the agent."""
    node = fleet.edit_links(fleet.node("BM.Optimized3.36", subnet="10.0.2.0/24", name="hpc"), addresses=())
    records.save(str(tmp_path), [NodeInput("hpc", node)])
    result = run("plan", tmp_path, "--exit-code")
    assert result.code == 4
    assert "LEFT OUT  ens800f0np0 of 1 node: hpc: " in result.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The list of nodes nodes.txt is empty."),
        ("# nothing\n\n", "The list of nodes nodes.txt is empty."),
        ("n0\n", "nodes.txt, line 1 must be NAME ADDRESS [SUBNET], found 1 words."),
        (
            "n0 10.140.77.19 10.140.64.0/19 16\n",
            "nodes.txt, line 1 must be NAME ADDRESS [SUBNET], found 4 words.",
        ),
        ("n0 10.140.77.19\n", "nodes.txt, line 1 names no subnet for n0, and --subnet is not given."),
        (REFERENCE * 2, "nodes.txt, line 2 names n0 a second time."),
    ],
)
def test_bad_lists(run, text, sentence):
    assert sentence in run("plan", "--nodes", nodes_file(text)).refused()


@pytest.mark.parametrize(
    "text",
    ["n0 10.140.77.019 10.140.64.0/19", "n0 10.140.77.19 10.140.64.0", "n0 x y", "n0 10.1.1.1 10.2.0.0/16"],
)
def test_a_node_that_cannot_be_planned_is_a_conflict(run, text):
    """A wrong address is one node's problem; the others are still planned."""
    result = run("plan", "--nodes", nodes_file(REFERENCE + text.replace("n0", "bad")), "--exit-code")
    assert result.code == 4
    assert len(rows(result.out)) == 16
    assert "1 node: bad" in result.out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "There is nothing to plan."),
        (["--nodes", "nowhere"], "The list of nodes nowhere cannot be read: No such file or directory."),
        (["--nodes", "a\0b"], "cannot be read"),
        (["--subnet", "10.140.64.0"], "'10.140.64.0' is not a prefix"),
        (["--subnet", "fd00::/64"], "--subnet fd00::/64 is not IPv4."),
        (["--subnet", "10.140.64.0/19", "--nics", "17"], "--nics must be a number from 1 to 16, found '17'."),
        (["--subnet", "10.140.64.0/19", "--nics", "0"], "--nics must be a number from 1 to 16"),
        (["--subnet", "10.140.64.0/19", "--nics", "\u0661"], "--nics must be a number from 1 to 16"),
        (
            ["--subnet", "10.140.64.0/19", "--range", "10.208.0.1/12"],
            "has host bits set. Write 10.208.0.0/12.",
        ),
        (["--subnet", "10.140.64.0/19", "--range", "10.0.0.0/31"], "has length 31, expected 8 to 30"),
        (["--subnet", "10.140.64.0/19", "--range", ""], "The child range"),
        (["--subnet", "10.140.64.0/19", "--oca-network", "x"], "'x' is not a prefix"),
        (["--subnet", "10.140.64.0/19", "--policy", "nowhere.yml"], "The policy nowhere.yml cannot be read"),
        (["nowhere", "--nodes", "x"], "Give snapshots or --nodes, not both."),
    ],
)
def test_bad_input(run, arguments, sentence):
    assert sentence in run("plan", *arguments).refused()


def test_a_list_from_standard_input(program):
    out = program("plan", "--nodes", "-", "--nics", "1", stdin="# comment\n\n" + REFERENCE).good()
    assert rows(out) == [["n0", "rdma0", "0", "10.224.13.19", "10.208.13.19/12", "100"]]
    assert "is not UTF-8" in run_bytes(program)


def run_bytes(program) -> str:
    Path("latin.txt").write_bytes(b"n\xe9 10.140.77.19 10.140.64.0/19\n")
    return program("plan", "--nodes", Path("latin.txt").resolve()).refused()


def test_ten_thousand_nodes(command, tmp_path):
    """B1: 160,000 rows in at most 100 MiB; the time is measured by the benchmark."""
    words, environment = command
    with open(tmp_path / "nodes", "w", encoding="ascii") as file:
        for number in range(256, 10256):
            file.write("gpu-%05d 10.140.%d.%d\n" % (number, number >> 8, number & 255))
    code = (  # the program's own peak: what wait4 tells has that of the process that started it, too
        "import sys; from rdma_k8s.cli.main import main; code = main(sys.argv[1:]); "
        "sys.stderr.write(open('/proc/self/status').read()); sys.exit(code)"
    )
    argv = [words[0], "-c", code, "plan", "--nodes", str(tmp_path / "nodes"), "--subnet", "10.140.0.0/16"]
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, env=environment, check=True)
    peak = re.search(rb"VmHWM:\s+(\d+) kB", done.stderr)
    found = rows((tmp_path / "out").read_text())
    assert len(found) == 160_000
    assert len({row[4] for row in found}) == 160_000
    assert found[-1] == ["gpu-10255", "rdma15", "15", "10.239.40.15", "10.223.40.15/12", "115"]
    assert peak is not None
    assert 1 << 20 < int(peak[1]) * 1024 <= 100 << 20


def test_a_list_needs_neither_checks_nor_yaml(command, tmp_path):
    """A plan of a list must not wait for what it does not use."""
    words, environment = command
    (tmp_path / "nodes").write_text(REFERENCE)
    code = (
        "import sys; from rdma_k8s.cli.main import main; main(['plan', '--nodes', 'nodes']);"
        "print([name for name in sys.modules if 'checks' in name or name in ('yaml', 'jmespath', 'hashlib')])"
    )
    done = subprocess.run(
        [words[0], "-c", code], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.decode().splitlines()[-1] == "[]"


def networks_file(**changes: object) -> str:
    """A document of networks, as ``oke_network_info`` returns it."""
    document = {
        "document": "rdma.k8s/networks",
        "schema_version": 1,
        "networks": [
            {
                "kind": "pod",
                "network": "10.208.0.0/16",
                "sources": ["podsCidr of cluster prod"],
                "used_by": [],
            },
            {"kind": "vcn", "network": "10.140.0.0/16", "sources": ["VCN prod-vcn"], "used_by": []},
        ],
        "ipv6_networks": [],
        "unread": [],
        **changes,
    }
    Path("networks.json").write_text(json.dumps(document))
    return "networks.json"


UNREAD = [{"code": "oci_not_found", "message": "The peers of prod may not be read."}]


@pytest.mark.parametrize("source", [["--nodes"], ["--subnet", "10.140.64.0/19"], ["recorded"]])
def test_networks_of_a_document(run, recorded, source):
    """F50: the same verdict as by ``child_range_check``, with the source of each network."""
    if source == ["--nodes"]:
        source = ["--nodes", nodes_file(REFERENCE)]
    options = [*([recorded] if source == ["recorded"] else source), "--networks", networks_file()]
    result = run("plan", *options, "--summary", "--exit-code")
    assert result.code == 4
    told = "pod network (podsCidr of cluster prod): 10.208.0.0/16 overlaps the child range 10.208.0.0/12."
    assert told in " ".join(result.out.split())
    document = json.loads(run("plan", *options, "--format", "json").good())
    found = [entry for entry in document["networks"][0]["problems"] if entry["code"] == "network_conflict"]
    assert [(entry["message"], entry["details"]["sources"]) for entry in found] == [
        (told, ["podsCidr of cluster prod"])
    ]
    assert document["not_known"] == []


def test_a_document_in_the_policy_gives_the_same(run):
    held = json.loads(Path(networks_file(unread=UNREAD)).read_text())
    Path("policy.yml").write_text(json.dumps({"cluster_networks": held}))
    nodes = ["--nodes", nodes_file(REFERENCE), "--format", "json", "--summary"]
    by_policy = json.loads(run("plan", *nodes, "--policy", "policy.yml").good())
    assert by_policy == json.loads(run("plan", *nodes, "--networks", "networks.json").good())
    assert by_policy["not_known"] == ["The peers of prod may not be read."]


def test_what_a_document_does_not_know_is_told(run):
    options = ["--nodes", nodes_file(REFERENCE), "--networks", networks_file(unread=UNREAD, networks=[])]
    assert "UNKNOWN   The peers of prod may not be read." in run("plan", *options, "--summary").good()
    result = run("plan", *options, "--format", "csv")
    assert "rdma-k8s: not known: The peers of prod may not be read." in result.err
    assert result.code == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "networks.json cannot be read: No such file or directory"),
        (b"{", "networks.json cannot be read: it is not JSON"),
        (b"\xff\xfe", "networks.json cannot be read: it is not JSON"),
        (b"[]", "The document of networks: the document must be an object, found a list"),
    ],
)
def test_a_document_that_cannot_be_read(run, content, sentence):
    if content is not None:
        Path("networks.json").write_bytes(content)
    result = run("plan", "--nodes", nodes_file(REFERENCE), "--networks", "networks.json")
    assert result.code == 2
    assert sentence in result.err
