# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s explain``: the way to a verdict, with the numbers of the node."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.cli import worked
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import selected
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.tests.unit.plugins.module_utils.core.checks.cases.fabric import nodes

CATALOGUE = {check.info.id: check for check in selected(Policy(), proven=True)}


def test_what_a_check_is(run):
    out = run("explain", "RDMA-RANGE-013").good()
    assert out.startswith("RDMA-RANGE-013  The children of all nodes are unique and inside the range\n")
    assert re.search(r"^  severity +critical$", out, re.M)
    assert re.search(r"^  remedy page +docs/checks/range.md#rdma-range-013$", out, re.M)
    assert "Formula\n" in out


@pytest.mark.parametrize("name", ["rdma-range-013", "range-013", "RANGE-013"])
def test_short_names(run, name):
    assert run("explain", name).good() == run("explain", "RDMA-RANGE-013").good()


def test_the_arithmetic_of_the_reference_node(run, recorded):
    """F15."""
    out = run("explain", "RDMA-RANGE-013", "--node", "n0", "--snapshots", recorded).good()
    for line in (
        "  primary VNIC  10.140.77.19 in 10.140.64.0/19   (imds:/vnics/)",
        "  RDMA network  10.224.0.0/12   (the driver's default, no file)",
        "  address mode  classic   (rdma_features_enable.json)",
        "  child range   10.208.0.0/12   (setting child_range, the default)",
        "  block    = 2^(32 - 19) = 8192",
        "  position = 10.140.77.19 - 10.140.64.0 = 3347",
        "  offset   = index * 8192 + 3347",
        "  parent   = 10.224.0.0 + offset",
        "  child    = 10.208.0.0 + offset",
    ):
        assert line in out.splitlines()
    rows = [line.split() for line in out.splitlines() if line.startswith("  rdma") and "10.2" in line]
    assert rows[15] == ["rdma15", "15", "126227", "10.225.237.19", "yes", "10.209.237.19", "n-odd", "rdma15"]
    assert "Verdict on n0: fail" in out


def test_a_child_that_nobody_else_has(run, recorded):
    out = run("explain", "RDMA-RANGE-013", "--node", "n1", "--snapshots", recorded).good()
    assert "nobody else" in out
    assert "Verdict on n1: pass" in out


def test_swapped_names(run, recorded):
    out = run("explain", "RDMA-OCA-012", "--node", "n2", "--snapshots", recorded).good()
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("  rdma")}
    assert rows["rdma4"] == ["rdma4", "4", "36117", "10.224.141.21", "10.224.173.21", "yes"]
    assert "expected 10.224.141.21" in " ".join(out.split())
    assert "Verdict on n2: fail" in out


def test_sizes(run, recorded):
    """F18, F19."""
    out = run(
        "explain",
        "RDMA-RANGE-004",
        "--node",
        "n0",
        "--snapshots",
        recorded,
        "--set",
        "child_range=10.192.0.0/17",
    ).good()
    assert "  NICs that fit = min(16, 2^(19 - 17)) = 4" in out.splitlines()
    assert "  16 NICs need a /15 or larger" in out.splitlines()
    assert "Verdict on n0: fail" in out


def test_a_range_smaller_than_the_subnet(run, recorded):
    out = run(
        "explain",
        "RDMA-RANGE-003",
        "--node",
        "n0",
        "--snapshots",
        recorded,
        "--set",
        "child_range=10.192.0.0/20",
    ).good()
    assert "The child range /20 is smaller than the primary VNIC subnet /19." in out
    assert "Verdict on n0: fail" in out


def test_overlaps(run, recorded):
    out = run("explain", "RDMA-RANGE-010", "--node", "n3", "--snapshots", recorded).good()
    rows = [line.split() for line in out.splitlines() if line.startswith("  10.")]
    assert rows[0][:5] == ["10.215.0.0/16", "10.215.0.0", "-", "10.215.255.255", "yes"]
    assert {row[4] for row in rows[1:]} == {"no"}
    assert "Verdict on n3: fail" in out


@pytest.mark.parametrize(
    ("check", "settings", "network"),
    [
        ("RDMA-RANGE-006", "child_range=10.224.0.0/12", "10.224.0.0/12"),
        ("RDMA-RANGE-007", "vcn_cidrs=10.208.0.0/16", "10.208.0.0/16"),
        ("RDMA-RANGE-008", "pod_cidrs=10.208.0.0/16", "10.208.0.0/16"),
        ("RDMA-RANGE-009", "service_cidrs=10.0.0.0/8", "10.0.0.0/8"),
        ("RDMA-RANGE-011", "child_range=10.252.0.0/14", "10.253.19.0/24"),
    ],
)
def test_overlaps_with_given_networks(run, recorded, check, settings, network):
    out = run("explain", check, "--node", "n0", "--snapshots", recorded, "--set", settings).good()
    row = next(line.split() for line in out.splitlines() if line.startswith("  %s " % network))
    assert row[4] == "yes"
    assert "Verdict on n0: fail" in out


def test_the_subnets_of_a_network(run, recorded):
    out = run("explain", "RDMA-RANGE-012", "--node", "n-odd", "--snapshots", recorded).good()
    assert re.search(r"^  10\.140\.64\.0/19 +4$", out, re.M)
    assert re.search(r"^  10\.141\.64\.0/19 +1$", out, re.M)
    assert "Verdict on n-odd: fail" in out


def test_where_an_index_comes_from(run, recorded):
    assert "from its address" in run("explain", "RANGE-005", "--node", "hpc", "--snapshots", recorded).good()
    assert "from its name" in run("explain", "RANGE-005", "--node", "n0", "--snapshots", recorded).good()


@pytest.mark.parametrize("node", ["ib", "v6"])
def test_nothing_is_derived_on_other_fabrics(run, recorded, node):
    out = run("explain", "RDMA-RANGE-013", "--node", node, "--snapshots", recorded).good()
    assert ": nothing is derived." in out
    assert "Verdict on %s: skip" % node in out


def test_a_silent_node(run, recorded):
    out = run("explain", "RDMA-NODE-017", "--node", "gone", "--snapshots", recorded).good()
    assert "Verdict on gone: unknown" in out
    assert "No route to host" in out


@pytest.mark.parametrize("check", CATALOGUE)
def test_every_check_can_be_explained(run, recorded, check):
    """The verdict is that of the report, the values of what the check reads are shown, and it fits a terminal."""
    document = json.loads(run("report", recorded, "--only", check, "--format", "json").good())
    verdicts = {finding["node"]: finding["status"] for finding in document["findings"]}
    for node in ("n1", "v6", "gone"):
        out = run("explain", check, "--node", node, "--snapshots", recorded).good()
        if CATALOGUE[check].scope == "run":
            assert "Verdict on the whole fleet: %s" % verdicts["(fleet)"] in out
            continue
        assert "Verdict on %s: %s" % (node, verdicts[node]) in out
        assert max(map(len, out.splitlines())) <= 100
        shows_values = "Read on %s" % node in out or "Inputs of %s" % node in out
        assert shows_values == (node != "gone" and check != "RDMA-TOOL-002")


def test_the_checks_with_arithmetic_exist():
    assert set(worked.FORMULAS) <= set(CATALOGUE)


def test_values_of_a_check_without_arithmetic(run, recorded):
    out = run("explain", "RDMA-NODE-017", "--node", "n1", "--snapshots", recorded).good()
    row = next(line.split() for line in out.splitlines() if line.startswith("  rdma3 "))
    assert row == [
        "rdma3",
        "mlx5_4/1",
        "0000:2a:00.1",
        "ACTIVE",
        "LinkUp",
        "Ethernet",
        "200",
        "Gb/sec",
        "1500",
        "4096",
    ]
    assert "and 15 more that pass" in out


def test_the_whole_fleet(run, recorded):
    out = run("explain", "RDMA-RANGE-013", "--snapshots", recorded).good()
    assert re.search(r"^  fail +2: n0,n-odd$|^  fail +2: n-odd,n0$", out, re.M)
    assert re.search(r"^  unknown +1: gone$", out, re.M)


def test_a_waived_verdict(run, recorded):
    Path("policy.yml").write_text(
        "waivers: [{check: RDMA-NODE-017, node: n1, reason: known, owner: me, expires: '2999-01-01'}]\n"
    )
    out = run(
        "explain", "RDMA-NODE-017", "--node", "n1", "--snapshots", recorded, "--policy", "policy.yml"
    ).good()
    assert "known (me, until 2999-01-01)" in out


def test_an_own_check(run, recorded):
    Path("policy.yml").write_text(
        "checks:\n"
        "- {id: ACME-001, title: Many NICs, expression: 'length(nics) > `8`', hint: Buy more.}\n"
        "- {id: ACME-002, title: Broken, expression: 'foo.bar'}\n"
    )
    arguments = ("--snapshots", recorded, "--policy", "policy.yml")
    out = run("explain", "ACME-001", "--node", "hpc", *arguments).good()
    assert "length(nics) > `8`" in out
    assert "Verdict on hpc: fail" in out
    assert "Verdict on n0: pass" in run("explain", "ACME-001", "--node", "n0", *arguments).good()
    assert "Verdict on n0: unknown" in run("explain", "ACME-002", "--node", "n0", *arguments).good()
    assert "Buy more." in run("explain", "ACME-001", "--policy", "policy.yml").good()


def test_the_view(run, recorded):
    view = json.loads(run("explain", "--view", "--node", "n1", "--snapshots", recorded).good())
    assert view["derived"]["vnic"] == {"ip": "10.140.77.20", "subnet": "10.140.64.0/19"}
    assert len(view["nics"]) == 16


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["RDMA-RANGE-13"], "There is no check 'RDMA-RANGE-13'; did you mean RDMA-RANGE-013"),
        (["quux"], "There is no check 'quux'. 'rdma-k8s checks' lists the catalogue"),
        ([], "Which check?"),
        (["--view"], "--view needs --node NAME."),
        (["RANGE-013", "--view", "--node", "n1"], "--view is about a node, not about a check."),
        (["--view", "--node", "gone"], "The node gone gave no snapshot"),
        (["--view", "--node", "n9"], "There is no node 'n9'"),
        (["RDMA-RANGE-013", "--node", "n-ood"], "did you mean n-odd?"),
    ],
)
def test_bad_input(run, recorded, arguments, sentence):
    options = ["--snapshots", recorded] if arguments else []
    assert sentence in run("explain", *arguments, *options).refused()


def test_the_records_of_a_proof_are_shown(run, tmp_path):
    """A recorded snapshot with the section of a proof: children, probes, and the verdict on them."""
    for entry in nodes(names=("a", "b"))():
        document = entry.snapshot.to_dict()
        (tmp_path / ("%s.json" % entry.name)).write_text(json.dumps(document))
    out = run("explain", "RDMA-FAB-006", "--node", "a", "--snapshots", str(tmp_path)).good()
    rows = [line.split() for line in out.splitlines()]
    assert ["rdma0", "ready", "10.208.0.1/12", "4", "True"] in rows
    assert ["rdma1", "b", "b8:3f:d2:00:00:01", "3/3", "3/3", "ok"] in rows
    assert "Verdict on a: pass" in out
