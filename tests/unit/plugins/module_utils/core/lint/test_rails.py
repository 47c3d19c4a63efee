# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many pods, and many rails, are linted at 500 documents a second, of CPU time; more of them take no longer each."""

from __future__ import annotations

import copy
import sys
import time
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.names import RDMA_INJECT
from ansible_collections.rdma.k8s.tests.support.lint_cases import base

A_SECOND = 500
SUBNETS, ONE_SUBNET, ONE_CARD = "a subnet each", "ranges of one subnet", "the same card of other nodes"


def documents(rails: int, pods: int, shape: str = SUBNETS, inject: str = "rails") -> list[Document]:
    """Policy, pool and network of each rail, and pods; ``inject`` is what networks and pods are found by."""
    of_kind = {document.content["kind"]: document.content for document in base("rails")}
    found = []
    for rail in range(rails):
        policy, pool, config = [
            copy.deepcopy(of_kind[kind])
            for kind in ("SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig")
        ]
        resource, net, host = "gpu%dsriov" % rail, "10.%d.%d" % divmod(rail, 250), rail * 8 + 1
        policy["metadata"]["name"] = pool["metadata"]["name"] = config["metadata"]["name"] = resource
        policy["spec"].update(
            resourceName=resource, nicSelector={"rootDevices": ["%04x:%02x:00.0" % divmod(rail, 256)]}
        )
        pool["spec"] = {"subnet": net + ".0/24", "ips": [net + ".1-" + net + ".200"]}
        if shape == ONE_CARD:
            policy["spec"].update(
                nicSelector={"rootDevices": ["0000:86:00.0"], "pfNames": ["ens1"]},
                nodeSelector={"rdma": "y", "kubernetes.io/hostname": "w%d" % rail},
            )
        elif shape == ONE_SUBNET:
            first, last = ["10.0.%d.%d" % divmod(number, 256) for number in (host, host + 6)]
            pool["spec"] = {"subnet": "10.0.0.0/16", "ips": ["%s-%s" % (first, last)]}
        config["metadata"]["annotations"] = {RDMA_INJECT: inject % rail if "%" in inject else inject}
        config["spec"]["sriov"].update(resourceName="spidernet.io/" + resource, ippools={"ipv4": [resource]})
        found += [policy, pool, config]
    for number in range(pods):
        pod = copy.deepcopy(of_kind["Pod"])
        pod["metadata"]["name"] = "train-%d" % number
        pod["metadata"]["annotations"] = {RDMA_INJECT: inject % number if "%" in inject else inject}
        found.append(pod)
    return [Document(content, "rails.yml") for content in found]


@pytest.mark.parametrize(("rails", "pods"), [(8, 1000), (600, 100)])
def test_five_hundred_documents_a_second(rails: int, pods: int) -> None:
    given = documents(rails, pods)
    start = time.process_time()
    findings = engine.lint(given)
    spent = time.process_time() - start
    assert {finding.status for finding in findings} == {"pass", "skip"}
    slower = 1 if sys.gettrace() is None else 10  # each line is counted when the coverage is measured
    assert len(given) / spent > A_SECOND / slower


def calls(given: list[Document]) -> int:
    """How many functions the lint calls, and how often generators go on: the same in each run, unlike seconds."""
    count = 0

    def tell(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        findings = engine.lint(given, complete=True)
    finally:
        sys.setprofile(before)
    assert {finding.status for finding in findings} == {"pass", "skip"}
    return count


@pytest.mark.parametrize("shape", [SUBNETS, ONE_SUBNET, ONE_CARD])
def test_the_work_grows_with_the_rails_and_not_with_their_square(shape: str) -> None:
    """Four times the rails, each with a pod, are at most five times the calls; each with each would be sixteen."""
    few, many = [documents(rails, rails, shape, "rail%d") for rails in (50, 200)]
    engine.lint(few)  # what is read once for the whole process
    assert calls(many) < 5 * calls(few)
