# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of another target than the default one: they are listed and explained, and judged where they belong."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.rdma.k8s.examples import make_lingjun

LINGJUN = Path(make_lingjun.__file__).resolve().parent / "lingjun"
WITH_POLICY = ("--policy", LINGJUN / "policy.yml")


def test_the_catalogue_lists_them(run):
    out = run("checks", "RDMA-ACK-*").good()
    assert "RDMA-ACK-001" in out
    assert "RDMA-ACK-004" in out


def test_one_of_the_cluster_is_explained(run):
    out = run("explain", "RDMA-ACK-001", "--snapshots", LINGJUN, *WITH_POLICY).good()
    assert "the cluster as its API tells it" in out
    assert "fail    1: lingjun" in out
    assert "Verdict on the cluster: fail" in out
    assert "ack-rdma-dp-ds: not all pods are ready" in out
    assert "--node NAME" not in out  # no node has a verdict of its own that could be explained


def test_one_of_nodes_says_how_to_ask_for_one(run):
    out = run("explain", "RDMA-ACK-021", "--snapshots", LINGJUN, *WITH_POLICY).good()
    assert "warn    1: e01-cn-a3" in out
    assert "With --node NAME this shows how the verdict on that node came about." in out
    assert "Verdict on" not in out


def test_one_of_a_node_is_explained(run):
    out = run("explain", "ack-021", "--node", "e01-cn-a3", "--snapshots", LINGJUN, *WITH_POLICY).good()
    assert "Verdict on e01-cn-a3: warn" in out
    assert "bond1: reth3 is down." in out


def test_another_target_skips_it(run):
    out = run("explain", "RDMA-ACK-021", "--node", "e01-cn-a3", "--snapshots", LINGJUN).good()
    assert "The target is oke_dranet; this is for ack_lingjun." in out


def test_the_report_of_a_lingjun_cluster(run):
    out = run("report", LINGJUN, *WITH_POLICY, "--only", "RDMA-ACK-*").good()
    assert "target ack_lingjun" in out
    assert "child range" not in out
    assert "1000 tokens are offered, and the host has no RDMA device." in out
