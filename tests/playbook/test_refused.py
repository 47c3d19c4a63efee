# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What preflight refuses with a sentence, before it asks any node."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import SCHEMA_VERSION
from ansible_collections.rdma.k8s.tests.support.playbook import Result, Run, together

OWN_CHECK = {"id": "ACME-1", "title": "t", "expression": "foo[", "severity": "error"}
WAIVER = {"check": "RDMA-NODE-034", "reason": "r", "owner": "o", "expires": "2030-02-30"}


def test_a_newer_snapshot_is_refused_by_the_name_of_its_file(run: Run, healthy: Path) -> None:
    shutil.copytree(healthy, run.folder / "mixed")
    newer = json.loads((healthy / "n1.json").read_text())
    newer["schema_version"] = SCHEMA_VERSION + 1
    (run.folder / "mixed" / "n1.json").write_text(json.dumps(newer))
    run.reports.mkdir()
    (run.reports / "report.md").write_text("old")
    sentence = run("-e", "snapshots=mixed").failed()
    assert sentence.startswith(
        "mixed/n1.json: The snapshot of n1 has schema version %d" % (SCHEMA_VERSION + 1)
    )
    assert "Update the collection" in sentence
    assert [path.name for path in run.reports.iterdir()] == ["report.md"]


def mistakes() -> dict[str, tuple[str, str]]:
    """Name of a mistake: its words for the command line, and the beginning of the sentence."""
    return {
        "key": ("policy=key.yml", "policy has a key 'childrange' that is not known. Known keys: target, "),
        "date": (
            "policy=date.yml",
            "policy.waivers: expires of RDMA-NODE-034 must be a date YYYY-MM-DD, found '2030-02-30'.",
        ),
        "jmespath": ("policy=jmespath.yml", "The expression of ACME-1 is not JMESPath: "),
        "missing": (
            "policy=missing.yml",
            "The policy missing.yml cannot be read: No such file or directory.",
        ),
        "yaml": ("policy=yaml.yml", "The policy yaml.yml cannot be read: it is not YAML ("),
        "inline": ('{"rdma_policy": {"mtu": "big"}}', "policy.mtu must be an integer, found 'big'."),
        "threshold": ("threshold=erorr", "value of threshold must be one of: critical, error, warning, info"),
        "strict": ("strict=perhaps", "argument 'strict' is of type "),
    }


@pytest.fixture
def asked(run: Run) -> Callable[[], int]:
    """An inventory of two hosts; gives how often one of them was asked anything."""
    run.inventory({name: run.interpreter(name) for name in ("n0", "n1")})
    return lambda: run.starts("n0") + run.starts("n1")


def test_wrong_settings_are_one_sentence_and_no_node_is_asked(run: Run, asked: Callable[[], int]) -> None:
    (run.folder / "key.yml").write_text("childrange: 10.208.0.0/12\n")
    (run.folder / "date.yml").write_text(
        "waivers:\n  - %s\n" % json.dumps(WAIVER).replace('"2030-02-30"', "2030-02-30")
    )
    (run.folder / "jmespath.yml").write_text(yaml.safe_dump({"checks": [OWN_CHECK]}))
    (run.folder / "yaml.yml").write_text("child_range: [\n")
    found = mistakes()
    calls = [lambda word=word: run("-e", word) for word, _sentence in found.values()]
    for (name, (_word, sentence)), result in zip(found.items(), together(*calls)):
        assert result.failed().startswith(sentence), name
        assert len(result.sentences) == 1, name
        assert result.failed().count(sentence) == 1, name
    assert asked() == 0
    assert not run.reports.exists()


@pytest.mark.both_legs
def test_a_run_that_would_judge_nothing_is_refused(run: Run, asked: Callable[[], int], healthy: Path) -> None:
    empty = Run(run.controller, run.folder / "empty")
    empty.folder.mkdir()
    recorded = {"snapshots": str(healthy)}
    results: list[Result] = together(
        empty,
        lambda: run("-e", "nodes=h100"),
        lambda: run("-e", "nodes=n1", "--limit", "n0"),
        lambda: run("--limit", "n0", variables=recorded),
        lambda: run("--limit", "n0", "-e", "threshold=erorr"),
    )
    sentences = [result.failed() for result in results]
    for sentence, where in zip(sentences, ["'all'", "'h100'", "'n1' and --limit 'n0'"]):
        assert sentence == (
            "There is no node to judge: the inventory has no host that matches %s. "
            "Give an inventory with -i, or recorded snapshots with -e snapshots=DIR." % where
        )
    assert sentences[3].startswith("--limit chooses hosts of the inventory, and recorded nodes are none.")
    assert sentences[4].startswith("value of threshold must be one of")
    assert [len(result.sentences) for result in results] == [1] * 5
    assert asked() == 0
    assert not run.reports.exists()
    assert not empty.reports.exists()


def test_recordings_that_are_not_there(run: Run) -> None:
    (run.folder / "nothing").mkdir()
    results = together(lambda: run("-e", "snapshots=nothing"), lambda: run("-e", "snapshots=missing"))
    assert results[0].failed().startswith("The directory nothing holds no recorded snapshot (NAME.json).")
    assert results[1].failed().startswith("The recorded snapshots in missing cannot be read: No such file")
    assert not run.reports.exists()
