# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that run inside a pod, run for real in namespaces with rails, with and without the tools of an image."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.net import find_address, find_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_evidence, pod_predicates
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_evidence import Evidence
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_predicates import Around
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_script import LOOK, RUN
from ansible_collections.rdma.k8s.tests.support import rail_pod
from ansible_collections.rdma.k8s.tests.support.shells import SHELLS

POOLS = [
    {
        "metadata": {"name": "gpu%d" % rail},
        "spec": {"subnet": "172.16.1%d.0/24" % rail, "gateway": "172.16.1%d.254" % rail},
    }
    for rail in (1, 2)
]
PF_MTU = {"0000:81:00.0": 4200, "0000:82:00.0": 4200}
GOOD = {"P12": "skip", "P14": "skip"}
NO_IP = {**GOOD, "P3": "unknown", "P4": "unknown"}


def looked(pod: rail_pod.RailPod) -> Evidence:
    done = pod.run(LOOK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    document = pod_evidence.read(done.stdout)
    assert document is not None
    return pod_evidence.evidence_of(document)


def judged(evidence: Evidence, **around: Any) -> dict[str, pod_predicates.Predicate]:
    known = {"nics": 2, "pools": pod_predicates.pools_of(evidence, POOLS), "pf_mtu": PF_MTU, **around}
    return {answer.number: answer for answer in pod_predicates.judge(evidence, Around(**known))}


def not_passed(evidence: Evidence, **around: Any) -> dict[str, str]:
    return {
        number: answer.status
        for number, answer in judged(evidence, **around).items()
        if answer.status != "pass"
    }


@pytest.mark.parametrize("shell", SHELLS, ids=[" ".join(shell) for shell in SHELLS])
def test_a_good_pod_passes_in_every_shell(shell: tuple[str, ...]) -> None:
    evidence = looked(rail_pod.good(shell=shell))
    assert not_passed(evidence) == GOOD
    assert dict(evidence.unread) == {}
    assert [(entry.name, str(entry.address), entry.pf) for entry in evidence.interfaces] == [
        ("net1", "172.16.11.10/24", "0000:81:00.0"),
        ("net2", "172.16.12.10/24", "0000:82:00.0"),
    ]
    assert evidence.mode == "exclusive"
    assert evidence.main_device == "eth0"
    assert evidence.files == {"uverbs0": "231:192", "uverbs1": "231:193", "rdma_cm": "10:58"}


FAULTS: list[tuple[str, dict[str, Any], dict[str, str], str, str]] = [
    # S126
    ("a rail too few", {"rails": 1}, {"P1": "fail"}, "nic-count-mismatch", "not 2"),
    # S127
    ("an interface is down", {"edit": (("link", "set", "net2", "down"),)}, {}, "nic-down", "net2"),
    ("a wrong length", {"length": 16}, {"P2": "fail"}, "prefix-mismatch", "as its pool gives it"),
    (
        "a second address",
        {"edit": (("address", "add", "172.16.12.99/32", "dev", "net2"),)},
        {"P2": "fail"},
        "address-several",
        "2 addresses",
    ),
    (
        "another broadcast address",
        {
            "edit": (
                ("address", "delete", "172.16.12.10/24", "dev", "net2"),
                ("address", "add", "172.16.12.10/24", "brd", "10.1.19.255", "dev", "net2"),
                ("route", "add", "default", "via", "172.16.12.254", "dev", "net2", "table", "102", "onlink"),
            )
        },
        {"P2": "warn"},
        "broadcast-mismatch",
        "10.1.19.255",
    ),
    # S128
    (
        "a rule is missing",
        {"edit": (("rule", "delete", "from", "172.16.12.10", "lookup", "102"),)},
        {"P3": "fail"},
        "rule-missing",
        "no rule leads",
    ),
    # S129
    (
        "a table leads elsewhere",
        {"edit": (("route", "replace", "default", "via", "172.16.11.254", "dev", "net1", "table", "102"),)},
        {"P4": "fail"},
        "table-default-mismatch",
        "net2",
    ),
    # S132
    (
        "the default route is on a rail",
        {"edit": (("route", "replace", "default", "via", "172.16.11.254", "dev", "net1"),)},
        {"P5": "fail"},
        "main-default-mismatch",
        "net1",
    ),
    # S135
    (
        "a device of the host",
        {"foreign": True},
        {"P6": "fail", "P9": "fail", "P13": "fail"},
        "rdma-foreign-netdev",
        "mlx5_0",
    ),
    # S137
    ("GIDs of version 1", {"gid_type": "IB/RoCE v1"}, {"P7": "fail"}, "gid-missing", "RoCE v2"),
    # S138
    ("a GUID of zeros", {"guid": "0000:0000:0000:0000"}, {"P8": "fail"}, "guid-unset", "zeros"),
    # S139
    ("files of other devices", {"shift": 8}, {"P9": "fail"}, "uverbs-foreign", "231:192"),
    ("no device files", {"files": False}, {"P9": "fail"}, "uverbs-missing", "none"),
    # S140
    (
        "little memory can be locked",
        {"memlock": "65536:65536", "dropped": ("chown", "net_admin")},
        {"P10": "fail"},
        "memlock-limited",
        "65536",
    ),
    # S141
    ("an MTU above that of the function", {"mtu": 9000}, {"P11": "fail"}, "mtu-exceeds-pf", "9000"),
    # S142
    (
        "InfiniBand without a subnet manager",
        {"layer": "InfiniBand", "lid": "0xffff", "sm_lid": "0x0", "state": "2: INIT"},
        {"P6": "fail", "P7": "skip", "P12": "fail"},
        "ib-sm-missing",
        "no subnet manager",
    ),
    # S143
    (
        "a library that finds nothing",
        {"programs": {"ibv_devices": "echo 'Failed to get IB devices list' >&2; exit 1"}},
        {"P13": "fail"},
        "verbs-missing",
        "library of the image",
    ),
]


@pytest.mark.parametrize(
    ("changes", "expected", "code", "said"),
    [fault[1:] for fault in FAULTS],
    ids=[fault[0] for fault in FAULTS],
)
def test_a_fault_has_its_predicate(
    changes: dict[str, Any], expected: dict[str, str], code: str, said: str
) -> None:
    evidence = looked(rail_pod.good(**changes))
    answers = judged(evidence)
    answer = answers[pod_predicates.OF_CODE[code]]
    assert code in [issue.code for issue in answer.issues], answer
    assert said in answer.message
    if expected:
        held = {number: status for number, status in not_passed(evidence).items() if number != "P12"}
        wanted = {"P14": "skip", **expected}
        assert held == {number: status for number, status in wanted.items() if number != "P12"}
        assert answers["P12"].status == expected.get("P12", "skip")


@pytest.mark.parametrize(
    ("changes", "expected", "reason"),
    [
        ({"hidden": ("ip",)}, NO_IP, "The image has no program ip"),
        ({"hidden": ("ls",)}, {**GOOD, "P9": "unknown"}, "The image has no program ls"),
        (
            {"programs": {"ibv_devices": ""}, "hidden": ("ibv_devices",)},
            {**GOOD, "P13": "unknown"},
            "The image has no program ibv_devices",
        ),
        ({"mode": ""}, {**GOOD, "P6": "unknown"}, "The namespace mode of RDMA is not told"),
    ],
    ids=["ip", "ls", "ibv_devices", "mode"],
)
def test_what_an_image_cannot_tell_is_unknown(
    changes: dict[str, Any], expected: dict[str, str], reason: str
) -> None:
    pod = rail_pod.good(**changes)
    for name in pod.hidden:
        pod.programs.pop(name, None)
    evidence = looked(pod)
    assert not_passed(evidence) == expected
    for number, status in expected.items():
        if status == "unknown":
            assert judged(evidence)[number].message.startswith(reason)


def test_without_ip_addresses_come_from_proc() -> None:
    """The local addresses of the fib and the on-link routes of the main table tell the same as ip."""
    with_ip, without = looked(rail_pod.good()), looked(rail_pod.good(hidden=("ip",)))
    assert [entry.address for entry in without.interfaces] == [entry.address for entry in with_ip.interfaces]
    assert without.main_device == with_ip.main_device


def test_pools_that_are_not_known_leave_it_open() -> None:
    evidence = looked(rail_pod.good())
    found = judged(evidence, pools={}, unread={"pools": "SpiderIPPools may not be listed"})
    assert {number: found[number].status for number in ("P2", "P4")} == {"P2": "unknown", "P4": "unknown"}
    assert "may not be listed" in found["P2"].message


def test_shared_mode_sees_more_and_is_judged_by_its_gids() -> None:
    """S136: P7 takes the place of P6 there."""
    evidence = looked(rail_pod.good(mode="Y", foreign=True))
    assert not_passed(evidence) == {**GOOD, "P6": "skip"}
    assert judged(evidence)["P9"].message == "Devices: mlx5_7, mlx5_8."


@pytest.mark.parametrize(
    ("changes", "answers"),
    [
        ({"gid_type": "IB/RoCE v1"}, {"P7": "fail", "P8": "unknown", "P9": "unknown", "P13": "unknown"}),
        (
            {"layer": "InfiniBand"},
            {"P7": "skip", "P8": "unknown", "P9": "unknown", "P12": "unknown", "P13": "unknown"},
        ),
    ],
)
def test_shared_mode_without_a_device_of_its_own(changes: dict[str, Any], answers: dict[str, str]) -> None:
    """S136: no GID tells which of the devices is the pod's; so nothing of them is taken for good."""
    found = looked(rail_pod.good(mode="Y", **changes))
    assert not_passed(found) == {
        **GOOD,
        "P6": "skip",
        **answers,
        **({} if "layer" in changes else {"P12": "skip"}),
    }
    assert "in shared mode its GID tells" in judged(found)["P9"].message


def test_infiniband_pods_pass() -> None:
    """S142: LID, subnet manager and state are there; no GID stands for an address."""
    assert not_passed(looked(rail_pod.good(layer="InfiniBand"))) == {"P7": "skip", "P14": "skip"}


def test_odd_names_and_answers_cannot_leave_the_line() -> None:
    """What a container says is data: quotes and line ends in a name become a question mark."""
    evidence = looked(rail_pod.good(programs={"ibv_devices": "printf 'a\"]} b83fd20300aa0000\\n\\001\\n'"}))
    assert evidence.library == ()
    assert judged(evidence)["P13"].status == "fail"


def shell(words: tuple[str, ...], *arguments: str, leave: bool = False) -> tuple[int, str, float]:
    """Exit code, output and seconds of a test. The input stays open until it ends, unless one leaves."""
    started = time.monotonic()
    with subprocess.Popen(
        [*words, "-s", "--", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(RUN)
        program.stdin.flush()
        if leave:
            program.stdin.close()
        printed = program.stdout.read()
        code = program.wait(60)
    return code, printed, time.monotonic() - started


@pytest.mark.parametrize("words", SHELLS, ids=[" ".join(words) for words in SHELLS])
def test_a_test_ends_in_time_whatever_it_does(words: tuple[str, ...]) -> None:
    code, _printed, seconds = shell(words, "1", "1", "sleep", "50")
    assert code == 143
    assert seconds < 40
    assert shell(words, "20", "1", "printf", "%s|", "a b", "$HOME;`id`")[:2] == (0, "a b|$HOME;`id`|")


@pytest.mark.parametrize("words", SHELLS, ids=[" ".join(words) for words in SHELLS])
def test_a_test_ends_when_nobody_waits_for_it(words: tuple[str, ...]) -> None:
    """A server whose client is done, or whose controller has died, does not stay in the pod."""
    code, _printed, seconds = shell(words, "50", "1", "sleep", "50", leave=True)
    assert code == 143
    assert seconds < 40


@pytest.mark.parametrize("words", SHELLS, ids=[" ".join(words) for words in SHELLS])
def test_a_test_is_tried_again(words: tuple[str, ...]) -> None:
    assert shell(words, "20", "3", "sh", "-c", "echo tried; exit 4")[:2] == (4, "tried\n" * 3)
    assert shell(words, "20", "3", "echo", "once")[:2] == (0, "once\n")
    assert shell(words, "20", "1", "/nonexistent/tool")[0] == 127


@pytest.mark.parametrize("told", ["", "{", '{"schema":2}', "[]", '{"schema":1', "null", '"x"'])
def test_what_is_no_evidence(told: str) -> None:
    assert pod_evidence.read(told) is None


@pytest.mark.parametrize(
    "key", ["links", "addresses", "rules", "routes", "main", "devices", "ports", "gids", "verbs"]
)
@pytest.mark.parametrize("value", [None, 7, [7], [["a"]], {"a": 1}, [[1, 2, 3, 4, 5, 6, 7]]])
def test_evidence_of_any_shape_is_read_without_a_stumble(key: str, value: Any) -> None:
    evidence = pod_evidence.evidence_of({"schema": 1, "class": 1, key: value})
    answers = pod_predicates.judge(evidence, Around())
    assert len(answers) == 14
    assert [answer.status for answer in answers if answer.number in ("P2", "P6", "P8", "P9")] != ["pass"] * 4
    assert answers[0].status == "unknown"


def test_nothing_at_all_passes_nowhere() -> None:
    answers = pod_predicates.judge(pod_evidence.evidence_of({"schema": 1}), Around())
    assert {answer.status for answer in answers} == {"unknown", "skip"}


def test_the_narrowest_pool_counts() -> None:
    evidence = Evidence(
        interfaces=(
            pod_evidence.Interface("net1", True, 1500, "", "", ((find_prefix("172.16.11.10/24"), ""),)),  # type: ignore[arg-type]
        )
    )
    wide = {"metadata": {"name": "wide"}, "spec": {"subnet": "172.16.0.0/16"}}
    found = pod_predicates.pools_of(evidence, [POOLS[0], wide])
    assert found == {"net1": (find_prefix("172.16.11.0/24"), find_address("172.16.11.254"))}
