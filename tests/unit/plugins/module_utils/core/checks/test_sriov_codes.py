# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every code of the rules of Spiderpool's objects is told by exactly one check of the area SRIOV."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import judge, sriov
from ansible_collections.rdma.k8s.tests.support.paths import ROOT

RULES = json.loads((ROOT / "tests" / "vectors" / "spiderpool_cases.json").read_text("utf-8"))["rules"]
SOURCES = ROOT / "plugins" / "module_utils" / "core" / "spiderpool"


@pytest.mark.parametrize("kind", ["ippool", "node-policy", "multus-config"])
def test_rules_of_the_vectors(kind: str) -> None:
    assert set(RULES[kind]) - set(sriov.OF_CODE) == set()


@pytest.mark.parametrize("name", ["ip_pool", "node_policy", "multus_config"])
def test_codes_in_the_sources(name: str) -> None:
    text = (SOURCES / (name + ".py")).read_text("utf-8")
    found = set(re.findall(r'(?:error|warning)\(\s*"([a-z-]+)"', text))
    assert len(found) > 5
    assert found - set(sriov.OF_CODE) == set()


def test_each_code_once_and_for_a_check_that_exists() -> None:
    words = " ".join(sriov._CODES.values()).split()
    assert len(words) == len(set(words))
    assert {"RDMA-SRIOV-" + number for number in sriov._CODES} <= set(judge.CATALOGUE)
