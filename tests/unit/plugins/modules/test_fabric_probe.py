# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module fabric_probe between live namespaces: what it sees of good peers, broken ones and missing tools."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.host import commands, listeners, namespaces
from ansible_collections.rdma.k8s.plugins.modules import fabric_probe, ipvlan_child
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.private_node import (
    CHILD,
    FAR,
    MTU,
    PrivateNode,
    in_private_node,
)

OURS = "rdma-k8s-test"

# A stand-in for rping: the server waits, the client needs what the real one needs and takes the time it is told to.
RPING = """#!/bin/sh
echo "$@" >> %(log)s
case " $* " in
  *" -s "*) exec sleep 600 ;;
esac
[ -f %(hang)s ] && exec sleep 600
[ -f %(fail)s ] && { echo "cma event RDMA_CM_EVENT_REJECTED, error 28" >&2; exit 1; }
exit 0
"""


def children(node: PrivateNode, **options: Any) -> None:
    change_run.good(ipvlan_child, namespace=OURS, nics=["rdma0", "rdma1"], **node.options, **options)


def pair(rail: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "nic": "rdma%d" % rail,
        "index": rail,
        "address": CHILD[rail],
        "mtu": MTU,
        "peer": "far",
        "peer_address": FAR[rail],
        "silent": "",
        **changes,
    }


def probe(*pairs: dict[str, Any], **options: Any) -> dict[str, Any]:
    return change_run.good(
        fabric_probe, **{"role": "probe", "namespace": OURS, "pairs": list(pairs), "timeout": 0.5, **options}
    )


def statuses(result: dict[str, Any], number: int = 0) -> dict[str, str]:
    return {test: verdict["status"] for test, verdict in result["probes"][number]["verdicts"].items()}


def install_rping(node: PrivateNode) -> Path:
    """Put the stand-in where a program is looked for first; the directory is in the test's own mount namespace."""
    place = Path("/run/tools")
    place.mkdir()
    for name in ("log", "hang", "fail"):
        (place / name).unlink(missing_ok=True)
    tool = place / "rping"
    tool.write_text(RPING % {name: place / name for name in ("log", "hang", "fail")})
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    commands.PATH = (str(place), *commands.PATH)  # type: ignore[assignment]
    commands.find.__defaults__ = (commands.PATH,)
    del node
    return place


@in_private_node
def test_good_peers_of_all_rails(node: PrivateNode) -> None:
    children(node)
    result = probe(pair(0), pair(1))
    assert not result["changed"]
    for number in (0, 1):
        found = result["probes"][number]
        assert statuses(result, number) == {
            "neighbour": "pass",
            "icmp": "pass",
            "full_size": "pass",
            "rdma": "skip",
        }
        assert (found["sent"], found["received"]) == (3, 3)
        assert (found["full_size"], found["full_sent"], found["full_received"]) == (MTU, 3, 3)
        assert 0 < found["rtt_us"] < 500000
        assert len(found["neighbour"]) == 17
    assert result["fabric"]["expected"] == 2
    assert [entry["nic"] for entry in result["fabric"]["probes"]] == ["rdma0", "rdma1"]


@in_private_node
def test_without_the_tool_the_ping_pong_is_skipped_and_never_passed(node: PrivateNode) -> None:
    children(node)
    verdict = probe(pair())["probes"][0]["verdicts"]["rdma"]
    assert verdict["status"] == "skip"
    assert verdict["reason"].startswith("rping is not installed")
    install_rping(node)
    verdict = probe(pair(silent="rping is not installed (rdmacm-utils)"))["probes"][0]["verdicts"]["rdma"]
    assert verdict == {"status": "skip", "reason": "far: rping is not installed (rdmacm-utils)"}
    verdict = probe(pair(), rounds=0)["probes"][0]["verdicts"]["rdma"]
    assert verdict == {"status": "skip", "reason": "switched off"}


@in_private_node
def test_a_dead_rail_does_not_resolve(node: PrivateNode) -> None:
    children(node)
    node.ip("-n", "far", "link", "set", "far1", "down")
    result = probe(pair(0), pair(1))
    assert statuses(result, 0)["icmp"] == "pass"
    assert statuses(result, 1) == {"neighbour": "fail", "icmp": "skip", "full_size": "skip", "rdma": "skip"}
    assert result["probes"][1]["neighbour"] == ""


@in_private_node
def test_all_rails_are_probed_at_once(node: PrivateNode) -> None:
    """Two that are dead take the patience that one takes."""
    children(node)
    for end in ("far0", "far1"):
        node.ip("-n", "far", "link", "set", end, "down")
    patience = 15.0
    started = time.monotonic()
    result = probe(pair(0), pair(1), timeout=patience)
    spent = time.monotonic() - started
    assert [statuses(result, number)["neighbour"] for number in (0, 1)] == ["fail", "fail"]
    assert patience <= spent < 2 * patience


@in_private_node
def test_a_peer_that_answers_no_echo(node: PrivateNode) -> None:
    children(node)
    node.inside("far", lambda: Path("/proc/sys/net/ipv4/icmp_echo_ignore_all").write_text("1"))
    result = probe(pair())
    assert statuses(result) == {"neighbour": "pass", "icmp": "fail", "full_size": "skip", "rdma": "skip"}


@in_private_node
def test_a_peer_that_answers_no_arp(node: PrivateNode) -> None:
    """F78: arp_ignore 8 answers nobody."""
    children(node)
    node.inside("far", lambda: Path("/proc/sys/net/ipv4/conf/far0/arp_ignore").write_text("8"))
    assert statuses(probe(pair()))["neighbour"] == "fail"


@in_private_node
def test_a_small_mtu_at_the_far_end(node: PrivateNode) -> None:
    """S36: small packets pass, ones of full size do not."""
    children(node)
    node.ip("-n", "far", "link", "set", "far0", "mtu", "1500")
    result = probe(pair())
    assert statuses(result) == {"neighbour": "pass", "icmp": "pass", "full_size": "fail", "rdma": "skip"}
    assert (
        "of 3 packets of 4220 bytes answered, small ones all"
        in result["probes"][0]["verdicts"]["full_size"]["reason"]
    )
    assert statuses(probe(pair(), full_size=False))["full_size"] == "skip"


@in_private_node
def test_a_small_mtu_at_this_end(node: PrivateNode) -> None:
    children(node)
    result = probe(pair(mtu=9000))
    assert result["probes"][0]["full_error"] == "message too long"
    assert "a packet of 9000 bytes cannot be sent" in result["probes"][0]["verdicts"]["full_size"]["reason"]
    assert statuses(result)["icmp"] == "pass"


@in_private_node
def test_from_a_nic_of_the_host(node: PrivateNode) -> None:
    parent = "10.224.13.19"
    node.ip("-n", "far", "addr", "add", "10.224.13.20/12", "dev", "far0")
    result = probe(pair(address=parent, peer_address="10.224.13.20"), namespace=None)
    assert statuses(result)["full_size"] == "pass"


@in_private_node
def test_a_nic_in_use_does_not_probe(node: PrivateNode) -> None:
    """Decision 31: by a child elsewhere, or by a claim."""
    node.ip("netns", "add", "pod")
    change_run.good(ipvlan_child, namespace="pod", nics=["rdma0"], **node.options)
    result = probe(pair(address="10.224.13.19"), namespace=None)
    assert (result["probes"], list(result["skipped"])) == ([], ["rdma0"])
    assert "namespace pod has its macvlan child rdma0" in result["skipped"]["rdma0"]
    assert result["fabric"]["problems"] == {"probe of rdma0": result["skipped"]["rdma0"]}
    assert list(probe(pair(), namespace="pod", claimed=["rdma0"])["skipped"]) == ["rdma0"]
    assert len(probe(pair(), namespace="pod", allow_foreign_namespace=True)["probes"]) == 1
    listen = change_run.good(fabric_probe, role="listen", nics=["rdma0"])
    assert (listen["listening"], list(listen["silent"])) == ([], ["rdma0"])


@in_private_node
def test_a_namespace_that_may_be_a_pods_is_not_used(node: PrivateNode) -> None:
    """Decision 31: a child, or a process of somebody else, makes it one; only consent lets it be used."""
    install_rping(node)
    node.ip("netns", "add", "pod")
    change_run.good(ipvlan_child, namespace="pod", nics=["rdma0"], **node.options)

    def used(reason: str, **options: Any) -> None:
        result = change_run.good(fabric_probe, role="probe", pairs=[pair()], timeout=0.5, **options)
        listen = change_run.good(fabric_probe, role="listen", nics=["rdma0"], **options)
        if reason:
            assert (result["probes"], listen["listening"]) == ([], [])
            for said in (result["skipped"]["rdma0"], listen["silent"]["rdma0"]):
                assert "may be a pod's: it has %s (" % reason in said
                assert "allow_foreign_namespace" in said
        else:
            assert (len(result["probes"]), listen["listening"]) == (1, ["rdma0"])
            change_run.good(fabric_probe, role="stop", **options)

    for where in ({"namespace": "pod"}, {"namespace_path": "/run/netns/pod"}):
        used("its macvlan child rdma0", **where)
        used("", allow_foreign_namespace=True, **where)
    node.ip("-n", "pod", "link", "del", "rdma0")
    node.ip("-n", "pod", "link", "add", "rdma0", "type", "veth", "peer", "name", "other")
    node.ip("-n", "pod", "addr", "add", CHILD[0] + "/12", "dev", "rdma0")
    used("", namespace="pod")
    with subprocess.Popen(
        [shutil.which("nsenter") or "nsenter", "--net=/run/netns/pod", "sleep", "60"]
    ) as pod:
        try:
            assert node.wait_for(lambda: node.is_apart(pod.pid))
            used("process %d" % pod.pid, namespace="pod")
            used("", namespace="pod", allow_foreign_namespace=True)
        finally:
            pod.kill()


@in_private_node
def test_errors_are_told(node: PrivateNode) -> None:
    children(node)
    for options, code in (
        ({"namespace": "nowhere"}, "namespace_missing"),
        ({"pairs": [pair(address="10.1.2.3")]}, "probe_source_missing"),
        ({"role": "listen", "nics": ["rdma7"]}, "nic_missing"),
        ({"pairs": [pair()] * 10001}, "probe_too_many"),
    ):
        given = {"role": "probe", "namespace": OURS, "pairs": [pair()], **options}
        assert change_run.failure(fabric_probe, **given)["code"] == code, options
    node.drop_privileges()
    assert change_run.failure(fabric_probe, role="probe", pairs=[pair()])["code"] == "probe_not_permitted"


@in_private_node
def test_nothing_is_sent_in_check_mode(node: PrivateNode) -> None:
    children(node)
    install_rping(node)
    result = probe(pair(), _ansible_check_mode=True)
    assert (result["probes"], result["fabric"]["expected"]) == ([], 1)
    listen = change_run.good(fabric_probe, role="listen", namespace=OURS, _ansible_check_mode=True)
    assert listen["changed"]
    assert running(node) == []


def running(node: PrivateNode) -> list[int]:
    with namespaces.opened("/run/netns/" + OURS, OURS) as namespace:
        return listeners.running(node.root, namespace)


@in_private_node
def test_listeners_and_the_ping_pong(node: PrivateNode) -> None:
    tools = install_rping(node)
    children(node)
    listen = change_run.good(fabric_probe, role="listen", namespace=OURS, _ansible_diff=True)
    assert (listen["listening"], listen["silent"], listen["changed"]) == (["rdma0", "rdma1"], {}, True)
    assert len(running(node)) >= 2
    assert not change_run.good(fabric_probe, role="listen", namespace=OURS)["changed"]
    result = probe(pair(0), pair(1))
    assert statuses(result)["rdma"] == statuses(result, 1)["rdma"] == "pass"
    words = (tools / "log").read_text().splitlines()
    assert "-s -P -a %s -p 18720" % CHILD[0] in words
    assert "-c -a %s -I %s -p 18720 -C 10" % (FAR[1], CHILD[1]) in words
    (tools / "fail").touch()
    verdict = probe(pair())["probes"][0]["verdicts"]["rdma"]
    assert verdict["status"] == "fail"
    assert "RDMA_CM_EVENT_REJECTED" in verdict["reason"]
    (tools / "hang").touch()
    started = time.monotonic()
    verdict = probe(pair(), rdma_timeout=0.5)["probes"][0]["verdicts"]["rdma"]
    assert (verdict["status"], verdict["reason"]) == ("fail", "no end within 0.5 s")
    assert time.monotonic() - started < 60
    assert change_run.good(fabric_probe, role="stop", namespace=OURS)["changed"]
    assert running(node) == []
    assert not change_run.good(fabric_probe, role="stop", namespace=OURS)["changed"]


@in_private_node
def test_a_listener_that_cannot_start_is_told(node: PrivateNode) -> None:
    tools = install_rping(node)
    (tools / "rping").write_text("#!/bin/sh\necho 'rdma_bind_addr: No such device' >&2\nexit 1\n")
    children(node)
    listen = change_run.good(fabric_probe, role="listen", namespace=OURS, nics=["rdma0"])
    assert listen["silent"] == {"rdma0": "rping ended at once: rdma_bind_addr: No such device"}


@in_private_node
def test_removing_the_namespace_ends_its_listeners(node: PrivateNode) -> None:
    """A listener keeps its namespace alive, and with it children and GIDs."""
    install_rping(node)
    children(node)
    change_run.good(fabric_probe, role="listen", namespace=OURS)
    pids = running(node)
    change_run.good(ipvlan_child, namespace=OURS, state="absent", **node.options)
    assert node.wait_for(lambda: not any(os.path.exists("/proc/%d/ns/net" % pid) for pid in pids))
    assert node.namespaces() == ["far"]
    assert node.gids_gone(CHILD[0])


@in_private_node
def test_killed_anywhere_the_next_run_listens_or_ends_all(node: PrivateNode) -> None:
    install_rping(node)
    children(node)
    options = {"role": "listen", "namespace": OURS}
    number = 0
    while change_run.killed(fabric_probe, options, number + 1):
        number += 1
        if number % 2:
            assert change_run.good(fabric_probe, **options)["listening"] == ["rdma0", "rdma1"]
            assert listening(node) == 2, number
        change_run.good(fabric_probe, role="stop", namespace=OURS)
        assert running(node) == [], number
    assert listening(node) == 2
    assert number >= 2


def listening(node: PrivateNode) -> int:
    with namespaces.opened("/run/netns/" + OURS, OURS) as namespace:
        return listeners.count(node.root, namespace)
