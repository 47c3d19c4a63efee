# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many pods on eight rails are linted at 500 documents a second, of CPU time."""

from __future__ import annotations

import copy
import sys
import time

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.documents import Document
from ansible_collections.rdma.k8s.plugins.module_utils.core.lint import engine
from ansible_collections.rdma.k8s.tests.support.lint_cases import base

RAILS, PODS, A_SECOND = 8, 1000, 500


def documents() -> list[Document]:
    of_kind = {document.content["kind"]: document.content for document in base("rails")}
    found = []
    for rail in range(RAILS):
        policy, pool, config = [
            copy.deepcopy(of_kind[kind])
            for kind in ("SriovNetworkNodePolicy", "SpiderIPPool", "SpiderMultusConfig")
        ]
        resource, subnet = "gpu%dsriov" % rail, "172.16.%d" % rail
        policy["metadata"]["name"] = resource
        policy["spec"].update(resourceName=resource, nicSelector={"rootDevices": ["0000:%02x:00.0" % rail]})
        pool["metadata"]["name"] = resource
        pool["spec"] = {"subnet": subnet + ".0/24", "ips": [subnet + ".1-" + subnet + ".200"]}
        config["metadata"]["name"] = resource
        config["spec"]["sriov"].update(resourceName="spidernet.io/" + resource, ippools={"ipv4": [resource]})
        found += [policy, pool, config]
    for number in range(PODS):
        pod = copy.deepcopy(of_kind["Pod"])
        pod["metadata"]["name"] = "train-%d" % number
        found.append(pod)
    return [Document(content, "rails.yml") for content in found]


def test_five_hundred_documents_a_second() -> None:
    given = documents()
    start = time.process_time()
    findings = engine.lint(given)
    spent = time.process_time() - start
    assert {finding.status for finding in findings} == {"pass", "skip"}
    slower = 1 if sys.gettrace() is None else 10  # each line is counted when the coverage is measured
    assert len(given) / spent > A_SECOND / slower
