# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alerts and the dashboard ask for metrics that are really written, with labels that they really have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.report import textfile
from ansible_collections.rdma.k8s.tests.support import results

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "monitoring"
SUFFIXES = ("_total", "_bucket", "_sum", "_count")
METRIC = re.compile(r"\brdma_k8s_\w+")


def expressions() -> list[str]:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    asked = [rule["expr"] for group in groups for rule in group["rules"]]
    asked += [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return asked + [
        entry["query"]["query"] for entry in dashboard["templating"]["list"] if entry["type"] == "query"
    ]


@pytest.fixture(scope="module")
def written() -> set[str]:
    """Every metric of the textfile and of the provider, by the names that a scrape shows."""
    text = "".join(textfile.chunks(results.small(), expected_interval=3600))
    source = (ROOT / "image" / "rdma_k8s_provider" / "metrics.py").read_text()
    provider = {"rdma_k8s_provider_" + name for name in re.findall(r'_NAME \+ "(\w+)"', source)}
    return set(re.findall(r"^# TYPE (\w+) gauge$", text, re.M)) | provider


def base(name: str) -> str:
    return next((name[: -len(end)] for end in SUFFIXES if name.endswith(end)), name)


@pytest.mark.parametrize("expression", expressions())
def test_only_metrics_that_are_written_are_asked_for(written: set[str], expression: str) -> None:
    asked = METRIC.findall(expression)
    assert asked
    assert [name for name in asked if base(name) not in written and name not in written] == []


def test_every_metric_of_a_node_is_shown_or_watched(written: set[str]) -> None:
    asked = {base(name) for expression in expressions() for name in METRIC.findall(expression)}
    unseen = {name for name in written if name not in asked and base(name) not in asked}
    assert unseen == {
        "rdma_k8s_check_duration_seconds",  # for who tunes a run
        "rdma_k8s_provider_build",
        "rdma_k8s_provider_imds_reads",
        "rdma_k8s_provider_node_readings",
    }


def test_each_alert_is_played() -> None:
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    played = yaml.safe_load((FOLDER / "alerts-test.yml").read_text())["tests"]
    names = {rule["alert"] for group in groups for rule in group["rules"]}
    said = {
        case["alertname"] for test in played for case in test["alert_rule_test"] if case.get("exp_alerts")
    }
    assert names - said == set()
