# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Policies from files and variables, and the judgement of this moment."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils import judging
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.policy import Policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.stamps import seconds_between
from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION
from ansible_collections.rdma.k8s.tests.support import cases, fleet
from ansible_collections.rdma.k8s.tests.support.outcome import error_of

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "policy.yml"
WAIVER = {"check": "RDMA-NODE-001", "reason": "r", "owner": "o", "expires": "2030-01-31"}


def test_nothing_given_is_the_default_policy() -> None:
    assert judging.policy_from() == Policy.from_dict({}) == judging.policy_from(None, {})


def test_the_example_is_a_policy() -> None:
    policy = judging.policy_from(str(EXAMPLE))
    assert policy.pod_cidrs == ("10.240.0.0/12",)
    assert [check.id for check in policy.checks] == ["ACME-001"]


def test_settings_replace_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("mtu: 4220\npod_cidrs: [10.0.0.0/8]\n")
    policy = judging.policy_from(str(path), {"mtu": 9000, "child_range": "10.192.0.0/12"})
    assert (policy.mtu, policy.pod_cidrs, policy.child_range) == (9000, ("10.0.0.0/8",), "10.192.0.0/12")


@pytest.mark.parametrize("date", ["2030-01-31", '"2030-01-31"', "'2030-01-31'", "!!str 2030-01-31"])
def test_a_date_with_and_without_quotes(tmp_path: Path, date: str) -> None:
    path = tmp_path / "p.yml"
    path.write_text("waivers: [{check: RDMA-NODE-001, reason: r, owner: o, expires: %s}]" % date)
    assert judging.policy_from(str(path)) == Policy.from_dict({"waivers": [WAIVER]})


def test_a_date_as_ansible_gives_it() -> None:
    """Ansible makes a date of an unquoted one in an inventory."""
    settings_ = {"waivers": [{**WAIVER, "expires": datetime.date(2030, 1, 31)}]}
    assert judging.policy_from(None, settings_) == Policy.from_dict({"waivers": [WAIVER]})


@pytest.mark.parametrize(
    "date",
    [
        "2030-02-30",
        "2030-13-01",
        "0000-01-01",
        "'2030-01- 1'",
        "30.1.2030",
        "2030-01-31 00:00:00",
        "true",
        "7",
    ],
)
def test_a_wrong_date_is_named(tmp_path: Path, date: str) -> None:
    path = tmp_path / "p.yml"
    path.write_text("waivers: [{check: RDMA-NODE-001, reason: r, owner: o, expires: %s}]" % date)
    error = error_of(judging.policy_from, str(path))
    assert "expires" in error.message
    assert error.code in ("policy_value", "document_malformed")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a: [", "it is not YAML (while parsing a flow node"),
        (b"a: 1\n---\nb: 2\n", "it is not YAML (expected a single document"),
        (b"a: !!python/name:os.system\n", "it is not YAML (could not determine a constructor"),
        (b"\tx: 1\n", "it is not YAML (while scanning for the next token"),
        (b"x: \xff\n", "it is not UTF-8"),
        (b"x: \x00\n", "it is not YAML (unacceptable character"),
        (b"[" * 20000, "it is not YAML ("),
    ],
)
def test_what_is_no_yaml(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "p.yml"
    path.write_bytes(content)
    error = error_of(judging.policy_from, str(path))
    assert error.code == "policy_unreadable"
    assert error.message.startswith("The policy %s cannot be read: %s" % (path, sentence))
    assert "\n" not in str(error)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        error = error_of(judging.policy_from, str(path))
        assert (error.code, error.details["path"]) == ("policy_unreadable", str(path))


def test_a_file_that_is_no_map_and_settings_over_it(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("- mtu\n")
    assert error_of(judging.policy_from, str(path)).code == "policy_malformed"
    assert error_of(judging.policy_from, str(path), {"mtu": 9000}).code == "policy_malformed"


def test_data_that_refers_to_itself() -> None:
    loop: dict[str, Any] = {}
    loop["checks"] = loop
    assert error_of(judging.policy_from, None, loop).code == "policy_malformed"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(st.binary(max_size=40), st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace")))
)
def test_any_file_is_a_policy_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.yml"
    path.write_bytes(content)
    try:
        assert isinstance(judging.policy_from(str(path)), Policy)
    except RdmaError as error:
        assert error.code.startswith(("policy_", "document_"))  # noqa: PT017


def test_now_is_a_stamp() -> None:
    before = datetime.datetime.now(datetime.timezone.utc)
    stamp = judging.now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp)
    assert 0 <= (seconds_between(before.strftime("%Y-%m-%dT%H:%M:%SZ"), stamp) or 0) <= 60


def test_the_judgement_says_when_and_by_which_version() -> None:
    node = fleet.node()
    document = judging.judge_now([NodeInput(node.name, node)], Policy.from_dict(cases.SURROUNDINGS))
    assert document.collection_version == VERSION
    assert abs(seconds_between(document.created_at, judging.now()) or 0) <= 60
    assert document.exit_code == 0


def test_no_nodes() -> None:
    error = error_of(judging.judge_now, [], Policy.from_dict({}))
    assert (error.code, bool(error.hint)) == ("no_nodes", True)
