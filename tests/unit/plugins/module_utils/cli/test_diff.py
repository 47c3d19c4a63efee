# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``rdma-k8s diff``: what changed between results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import records
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.tests.support import fleet


@pytest.fixture
def results(run, tmp_path) -> dict[str, Path]:
    """Three results: n1 is good, then has a wrong MTU, then is good again; n2 vanishes, n3 appears."""
    paths = {}
    for number, name in enumerate(("first", "second", "third")):
        nodes = [fleet.node(number=index, name="n%d" % index) for index in (0, 1, 2 if number == 0 else 3)]
        if name == "second":
            nodes[1] = fleet.edit_link(nodes[1], "rdma3", mtu=1500)
        folder = tmp_path / name
        records.save(str(folder), [NodeInput(node.name, node) for node in nodes])
        document = json.loads(run("report", folder, "--format", "json").good())
        document["created_at"] = "2026-03-0%dT09:00:00Z" % (number + 1)
        paths[name] = tmp_path / (name + ".json")
        paths[name].write_text(json.dumps(document))
    return paths


def test_new(run, results):
    out = run("diff", results["first"], results["second"]).good()
    assert "1 new" in out
    assert "RDMA-NODE-017" in out
    assert "1 node appeared" in out
    assert "n3" in out
    assert "vanished" in out
    assert max(map(len, out.splitlines())) <= 100


def test_fixed(run, results):
    assert "1 fixed" in run("diff", results["second"], results["third"], "--exit-code").good()


def test_flapping(run, results):
    assert "1 flapping" in run("diff", results["first"], results["second"], results["third"]).good()


@pytest.mark.parametrize(
    ("names", "options", "code"),
    [
        (("first", "second"), [], 0),
        (("first", "second"), ["--exit-code"], 4),
        (("first", "second"), ["--exit-code", "--threshold", "critical"], 0),
        (("first", "second"), ["--exit-code", "--threshold", "critical", "--strict"], 3),
        (("second", "third"), ["--exit-code", "--strict"], 0),
        (("second", "second"), ["--exit-code"], 0),
    ],
)
def test_exit_codes(run, results, names, options, code):
    assert run("diff", *[results[name] for name in names], *options).code == code


def test_json(run, results):
    document = json.loads(run("diff", results["first"], results["second"], "--format", "json").good())
    assert document["counts"]["new"] == 1
    assert document["nodes"]["appeared"] == ["n3"]
    assert document["nodes"]["vanished"] == ["n2"]


def test_recordings_are_judged_at_their_time(run, tmp_path, recorded, healthy):
    """An older and a newer recording can be compared without a result, and keep their order."""
    out = run("diff", healthy, recorded).good()
    assert out.startswith("2026-03-02T09:00:00Z to 2026-03-02T09:00:00Z, 2 documents\n")
    assert "new" in out


def test_the_wrong_order_is_refused(run, results):
    assert "are not in the order of their times" in run("diff", results["second"], results["first"]).refused()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere", "nowhere"], "nowhere cannot be read"),
        (["bad.json", "bad.json"], "bad.json is neither JSON nor a bundle"),
        (["empty.json", "empty.json"], "empty.json: snapshot.name must be present"),
        (["only-one"], "The following arguments are required: NEW"),
        (["x", "y", "--strict"], "--strict has no effect without --exit-code."),
    ],
)
def test_bad_input(run, arguments, sentence):
    Path("bad.json").write_text("{")
    Path("empty.json").write_text("{}")
    assert sentence in run("diff", *arguments).refused()
