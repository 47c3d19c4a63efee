# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ipvlan_child on a live node of its own: made, verified, repaired, refused, removed, killed anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import children
from ansible_collections.rdma.k8s.plugins.modules import ipvlan_child, node_undo
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.private_node import CHILD, MTU, PrivateNode, in_private_node

OURS = "rdma-k8s-test"
CLEAN = ["rdma0", "rdma1"]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def make(node: PrivateNode, **options: Any) -> dict[str, Any]:
    return change_run.good(
        ipvlan_child, **_given({"namespace": OURS, "nics": CLEAN, **node.options, **options})
    )


def refused(node: PrivateNode, **options: Any) -> dict[str, Any]:
    return change_run.failure(
        ipvlan_child, **_given({"namespace": OURS, "nics": CLEAN, **node.options, **options})
    )


def remove(node: PrivateNode, **options: Any) -> dict[str, Any]:
    return change_run.good(ipvlan_child, **{"namespace": OURS, "state": "absent", **node.options, **options})


@in_private_node
def test_children_as_the_profile_makes_them(node: PrivateNode) -> None:
    """F15, F39, F41: two NICs of the reference node."""
    host = node.look()
    result = make(node)
    assert result["changed"]
    rows = {row["nic"]: row for row in result["children"]}
    for index, nic in enumerate(CLEAN):
        assert rows[nic]["state"] == "ready"
        assert rows[nic]["address"] == CHILD[index] + "/12"
        assert rows[nic]["mtu"] == MTU
        assert rows[nic]["gid"] is not None
        assert CHILD[index] in node.gids(index)
    found = node.look(OURS)
    assert found["links"] == CLEAN
    assert found["addresses"] == ["rdma0@if3 UP 10.208.13.19/12", "rdma1@if5 UP 10.208.45.19/12"]
    assert found["rules"][:2] == [
        "32000: from 10.208.13.19 lookup 100",
        "32000: from 10.208.45.19 lookup 101",
    ]
    assert "10.208.0.0/12 dev rdma0 table 100 scope link src 10.208.13.19" in found["routes"]
    assert "10.208.0.0/12 dev rdma1 table 101 scope link src 10.208.45.19" in found["routes"]
    assert node.look() == host


@in_private_node
def test_check_mode_predicts_and_the_second_run_changes_nothing(node: PrivateNode) -> None:
    before = node.look()
    predicted = make(node, _ansible_check_mode=True, _ansible_diff=True)
    assert node.look() == before
    assert node.namespaces() == ["far"]
    assert [row["state"] for row in predicted["children"]] == ["planned", "planned"]
    done = make(node, _ansible_diff=True)
    assert (predicted["changed"], predicted["actions"]) == (True, done["actions"])
    assert predicted["diff"] == done["diff"]
    again = make(node)
    assert not again["changed"]
    assert again["children"] == done["children"]
    assert not make(node, _ansible_check_mode=True)["changed"]


@in_private_node
def test_an_existing_child_is_repaired_field_by_field(node: PrivateNode) -> None:
    """Each way in which a child can differ from F14, F38-F41 and F111, alone and then all at once."""
    made = make(node)
    wanted = node.look(OURS)

    def sysctl(name: str, value: str) -> None:
        def write() -> None:
            with open("/proc/sys/net/ipv4/conf/rdma0/%s" % name, "w", encoding="ascii") as file:
                file.write(value)

        node.inside(OURS, write)

    def words(*lines: str) -> None:
        for line in lines:
            node.ip("-n", OURS, *line.split())

    faults = {
        "mtu": lambda: words("link set rdma0 mtu 1500"),
        "arp_ignore": lambda: sysctl("arp_ignore", "0"),
        "arp_announce": lambda: sysctl("arp_announce", "1"),
        "address": lambda: words("addr del 10.208.13.19/12 dev rdma0", "addr add 10.208.13.19/16 dev rdma0"),
        "second address": lambda: words("addr add 192.0.2.1/24 dev rdma0"),
        "down": lambda: words("link set rdma0 down"),
        "route": lambda: words("route del 10.208.0.0/12 table 100"),
        "other route": lambda: words("route add 10.0.0.0/8 dev rdma0 table 100"),
        "route source": lambda: words(
            "route del 10.208.0.0/12 table 100", "route add 10.208.0.0/12 dev rdma0 scope link table 100"
        ),
        "rule": lambda: words("rule del from 10.208.13.19"),
        "rule priority": lambda: words(
            "rule del from 10.208.13.19", "rule add from 10.208.13.19 table 100 priority 100"
        ),
        "rule table": lambda: words("rule add from 10.208.13.19 table 200 priority 7"),
    }
    for name, play in [
        *faults.items(),
        ("several", lambda: [faults[key]() for key in ("mtu", "down", "rule")]),
    ]:
        play()
        assert make(node, _ansible_check_mode=True)["changed"], name
        result = make(node)
        assert result["actions"] == ["set the child of rdma0 in rdma-k8s-test"], name
        assert node.look(OURS) == wanted, name
        assert result["children"] == made["children"], name
        assert not make(node)["changed"], name


@in_private_node
def test_something_else_under_the_name_is_refused(node: PrivateNode) -> None:
    node.ip("netns", "add", "pod")
    node.ip("-n", "pod", "link", "add", "rdma0", "type", "veth", "peer", "name", "other")
    before = node.look("pod")
    for state in ("present", "absent"):
        result = refused(node, namespace="pod", nics=["rdma0"], state=state)
        assert (result["code"], result["changed"]) == ("child_foreign", False)
        assert "veth" in result["msg"]
    assert node.look("pod") == before
    rows = make(node, namespace="pod", refused="skip")["children"]
    assert [(row["nic"], row["state"]) for row in rows] == [("rdma0", "in_use"), ("rdma1", "ready")]


@in_private_node
def test_a_child_of_a_pod_with_another_address_is_left_alone(node: PrivateNode) -> None:
    """Decision 31: a pod that was prepared with another range keeps what it has."""
    node.ip("netns", "add", "pod")
    make(node, namespace="pod", nics=["rdma0"], child_range="10.192.0.0/12")
    before = node.look("pod")
    result = refused(node, namespace="pod", nics=["rdma0"])
    assert result["code"] == "child_foreign"
    assert node.look("pod") == before


@in_private_node
def test_a_nic_in_use_is_never_touched(node: PrivateNode) -> None:
    """Decision 31: by a child in any namespace, on the host, or by an allocated claim."""
    node.ip("netns", "add", "pod")
    make(node, namespace="pod", nics=["rdma0"])
    host, pod = node.look(), node.look("pod")
    result = refused(node)
    assert (result["code"], result["changed"]) == ("nic_in_use", False)
    assert "rdma0 is in use: namespace pod has its macvlan child rdma0" in result["msg"]
    assert node.namespaces() == ["far", "pod"]
    for check in (True, False):
        skipped = make(node, refused="skip", _ansible_check_mode=check)
        rows = {row["nic"]: row for row in skipped["children"]}
        assert rows["rdma0"]["state"] == "in_use"
        assert rows["rdma1"]["state"] == ("planned" if check else "ready")
    assert node.look("pod") == pod
    remove(node)
    only = make(node, refused="skip", claimed=["rdma1"])
    assert [row["code"] for row in only["children"]] == ["nic_in_use", "nic_in_use"]
    assert (only["changed"], node.namespaces()) == (False, ["far", "pod"])
    assert node.look() == host
    node.ip("link", "add", "stray", "link", "rdma1", "type", "macvlan")
    assert "the host has its macvlan child stray" in refused(node, nics=["rdma1"])["msg"]


@in_private_node
def test_a_child_of_a_nic_of_another_node_is_no_use_of_ours(node: PrivateNode) -> None:
    """Two nodes in one kernel, as in a test or with nested containers: indexes of interfaces repeat between them."""
    index = node.ip("-o", "link", "show", "rdma1").partition(":")[0]
    for name in ("node2", "pod2"):
        node.ip("netns", "add", name)
    node.ip("-n", "node2", "link", "add", "rdma1", "index", index, "type", "veth")
    node.ip("-n", "node2", "link", "add", "link", "rdma1", "name", "net1", "type", "macvlan")
    node.ip("-n", "node2", "link", "set", "net1", "netns", "pod2")
    assert make(node)["changed"]
    node.ip("link", "add", "link", "rdma1", "name", "net2", "type", "macvlan")
    node.ip("link", "set", "net2", "netns", "pod2")
    remove(node)
    result = refused(node)
    assert result["code"] == "nic_in_use"
    assert "net2" in result["msg"]


@in_private_node
def test_what_the_profile_refuses_is_refused_with_its_codes(node: PrivateNode) -> None:
    """F25, F27, F35, F45."""
    for options, code in (
        ({"child_range": "10.208.0.1/12"}, "range_not_masked"),
        ({"child_range": "10.224.0.0/12"}, "oca_network_overlaps_child_range"),
        ({"nics": ["rdma9"]}, "nic_missing"),
        ({"nics": ["rdma0"], "imds_url": "http://127.0.0.1:1/opc/v2"}, "fabric_not_available"),
    ):
        result = refused(node, **options)
        assert result["code"] == code, (options, result)
        assert (result["changed"], node.namespaces()) == (False, ["far"])
    node.ip("addr", "flush", "dev", "rdma1")
    assert refused(node)["code"] == "parent_address_missing"
    rows = make(node, refused="skip")["children"]
    assert [(row["state"], row["code"]) for row in rows] == [
        ("ready", ""),
        ("refused", "parent_address_missing"),
    ]


@in_private_node
def test_removed_with_the_namespace_and_the_gids(node: PrivateNode) -> None:
    host = node.look()
    make(node)
    assert remove(node, _ansible_check_mode=True)["changed"]
    assert node.namespaces() == ["far", OURS]
    result = remove(node)
    assert [(row["nic"], row["gone"]) for row in result["children"]] == [("rdma0", True), ("rdma1", True)]
    assert CHILD[0] not in node.gids(0)
    assert (node.namespaces(), node.look()) == (["far"], host)
    assert os.listdir("/var/lib/rdma-k8s/undo") == []
    assert not remove(node)["changed"]


@in_private_node
def test_undone_with_the_namespace(node: PrivateNode) -> None:
    """Decision 16: the record is that of the namespace, and what is inside goes with it."""
    host = node.look()
    make(node)
    done = change_run.good(node_undo, state="undone", modules=["ipvlan_child"])
    assert done["changed"]
    assert node.namespaces() == ["far"]
    assert node.gids_gone(CHILD[0])
    assert node.look() == host
    assert not change_run.good(node_undo, state="undone", modules=["ipvlan_child"])["changed"]


@in_private_node
def test_removed_from_a_namespace_of_somebody_else(node: PrivateNode) -> None:
    node.ip("netns", "add", "pod")
    node.ip("-n", "pod", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
    before = node.look("pod")
    make(node, namespace="pod")
    for count in (2, 0):
        result = remove(node, namespace="pod", nics=CLEAN)
        assert (len(result["children"]), result["changed"]) == (count, count > 0)
    assert node.look("pod") == before


@in_private_node
def test_what_a_pod_may_have_is_not_removed(node: PrivateNode) -> None:
    """Decision 31: without a name, of another kind, name, parent or address, or with a claim."""
    node.ip("netns", "add", "pod")
    make(node, namespace="pod")
    for name, kind, parent in (("net1", "macvlan", "rdma0"), ("tap1", "macvtap", "rdma1")):
        node.ip("link", "add", name, "link", parent, "type", kind)
        node.ip("link", "set", name, "netns", "pod")
    node.ip("-n", "pod", "addr", "add", "10.99.0.7/24", "dev", "net1")

    def kept(code: str, **options: Any) -> str:
        for check in (True, False):
            before = node.look("pod")
            result = refused(
                node, **{"namespace": "pod", "state": "absent", **options}, _ansible_check_mode=check
            )
            assert (result["code"], result["changed"]) == (code, False), options
            assert node.look("pod") == before, options
        return str(result["msg"])

    kept("children_not_named", nics=None)
    kept("child_foreign", nics=["net1"])
    kept("child_foreign", nics=["rdma0", "tap1"])
    assert "a claim is allocated" in kept("nic_in_use", claimed=["rdma1"])
    assert "not 10.192." in kept("child_foreign", child_range="10.192.0.0/12")
    node.ip("-n", "pod", "link", "set", "rdma0", "name", "x")
    node.ip("-n", "pod", "link", "set", "rdma1", "name", "rdma0")
    assert "another parent" in kept("child_foreign", nics=["rdma0"])
    node.ip("-n", "pod", "link", "del", "rdma0")
    node.ip("-n", "pod", "link", "set", "tap1", "name", "rdma1")
    assert "macvtap" in kept("child_foreign", nics=["rdma1"])
    node.ip("-n", "pod", "link", "set", "x", "name", "rdma0")
    for name, parent in (("rk8s-0123abcd", "rdma0"), ("rk8s-0123abce", "rdma1"), ("rk8s-other", "rdma0")):
        node.ip("link", "add", name, "link", parent, "type", "macvlan")
        node.ip("link", "set", name, "netns", "pod")
    assert remove(node, namespace="pod", nics=["rdma0"])["changed"]
    assert node.look("pod")["links"] == ["net1", "rdma1", "rk8s-0123abce", "rk8s-other"]


@in_private_node
def test_no_gid_leaves_nothing(node: PrivateNode) -> None:
    host = node.look()
    node.gids_follow = False
    result = refused(node, gid_timeout=0.2)
    assert (result["code"], result["changed"]) == ("gid_missing", False)
    assert "10.208.13.19" in result["msg"]
    assert (node.namespaces(), node.look()) == (["far"], host)
    assert os.listdir("/var/lib/rdma-k8s/undo") == []
    skipped = make(node, refused="skip", gid_timeout=0.2)
    assert [(row["state"], row["code"]) for row in skipped["children"]] == [("failed", "gid_missing")] * 2
    assert (skipped["changed"], node.namespaces(), node.look()) == (False, ["far"], host)


def _in_the_middle(act: Callable[[], Any]) -> None:
    """Let something happen while a child gets its ARP settings, before it has an address."""
    write, happened = children._write, []

    def write_later(path: str, value: int) -> None:
        if not happened:
            happened.append(True)
            act()
        write(path, value)

    children._write = write_later


@pytest.mark.parametrize("refusal", ["fail", "skip"])
def test_a_nic_that_disappears_leaves_nothing(refusal: str) -> None:
    @in_private_node
    def test(node: PrivateNode) -> None:
        ip = shutil.which("ip") or ""
        _in_the_middle(lambda: _on_the_host(ip, "link", "del", "rdma0"))
        if refusal == "fail":
            result = refused(node, nics=["rdma1", "rdma0"])
            assert result["code"] == "child_not_made"
            assert "rdma0" in result["msg"]
            assert node.namespaces() == ["far"]
        else:
            rows = make(node, nics=["rdma0", "rdma1"], refused="skip")["children"]
            assert [(row["state"], row["code"]) for row in rows] == [
                ("failed", "child_not_made"),
                ("ready", ""),
            ]
            assert node.look(OURS)["links"] == ["rdma1"]

    test()


def _on_the_host(*words: str) -> None:
    """From a thread that is in another namespace: the first thread of the process still is the host's."""
    nsenter = shutil.which("nsenter") or "nsenter"
    subprocess.run([nsenter, "--net=/proc/%d/ns/net" % os.getpid(), *words], check=True)


@in_private_node
def test_a_namespace_that_vanishes_leaves_nothing(node: PrivateNode) -> None:
    host = node.look()
    node.ip("netns", "add", "pod")
    _in_the_middle(lambda: node.ip("netns", "del", "pod"))
    result = refused(node, namespace="pod", gid_timeout=0.3)
    assert result["code"] == "namespace_missing"
    assert node.look() == host
    assert node.gids_gone(CHILD[0])


@in_private_node
def test_a_namespace_that_is_not_there_or_is_the_host(node: PrivateNode) -> None:
    open("/run/netns/file", "w", encoding="ascii").close()
    for options, code in (
        ({"namespace": "pod"}, "namespace_missing"),
        ({"namespace": "file"}, "namespace_missing"),
        ({"namespace": "../x"}, "namespace_name"),
        ({"namespace": None, "pid": 999999999}, "namespace_missing"),
        ({"namespace": None, "namespace_path": "/proc/self/ns/net"}, "namespace_is_host"),
    ):
        result = refused(node, **options)
        assert (result["code"], result["changed"]) == (code, False), options
    assert not remove(node, namespace="pod", nics=CLEAN)["changed"]


@in_private_node
def test_a_process_names_the_namespace(node: PrivateNode) -> None:
    unshare = shutil.which("unshare") or "unshare"
    with subprocess.Popen([unshare, "--net", "sleep", "60"]) as pod:
        try:
            assert node.wait_for(lambda: node.is_apart(pod.pid))
            result = make(node, namespace=None, pid=pod.pid)
            assert [row["state"] for row in result["children"]] == ["ready", "ready"]
            assert not make(node, namespace=None, pid=pod.pid)["changed"]
            assert "of process %d has its macvlan child" % pod.pid in refused(node)["msg"]
        finally:
            pod.kill()


@in_private_node
def test_without_privilege_nothing_is_made(node: PrivateNode) -> None:
    host = node.look()
    node.drop_privileges()
    result = refused(node)
    assert (result["code"], node.namespaces()) == ("namespace_not_made", ["far"])
    assert "become: true" in result["msg"]
    assert node.look() == host
    assert refused(node, namespace="far")["code"] == "namespace_not_entered"


@in_private_node
def test_killed_anywhere_the_next_run_repairs(node: PrivateNode) -> None:
    """Before each act: then a run makes what is wanted, or a removal leaves nothing, whichever comes next."""
    options = {"namespace": OURS, "nics": ["rdma0"], **node.options}
    host = node.look()
    make(node, nics=["rdma0"])
    wanted = node.look(OURS)
    remove(node)
    number = 0
    while change_run.killed(ipvlan_child, options, number + 1):
        number += 1
        if number % (2 if change_run.THOROUGH else 6) == 1:
            make(node, nics=["rdma0"])
            assert node.look(OURS) == wanted, number
            assert not make(node, nics=["rdma0"])["changed"], number
        remove(node)
        assert (node.namespaces(), node.look()) == (["far"], host), number
    assert node.look(OURS) == wanted
    assert number > 20
    number = 0
    while change_run.killed(ipvlan_child, {**options, "nics": [], "state": "absent"}, number + 1):
        number += 1
        remove(node)
        assert (node.namespaces(), node.look()) == (["far"], host), number
        make(node, nics=["rdma0"])
        assert node.look(OURS) == wanted, number
    assert (node.namespaces(), node.look()) == (["far"], host)
    assert number > 5
