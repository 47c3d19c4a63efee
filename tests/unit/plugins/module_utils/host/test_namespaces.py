# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Namespaces are made, found, entered and removed; links of a namespace are read without the library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import namespaces, occupants
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.module_utils.host.link_dump import NsLink, read_links
from ansible_collections.rdma.k8s.tests.support.private_node import PrivateNode, in_private_node

NAME = "rdma-k8s-unit"
PLACE = "/run/netns/" + NAME


def test_links_on_the_way_stay_inside_the_root(tmp_path: Path) -> None:
    """The runtime names /var/run/netns/NAME, and /var/run is an absolute link; links of procfs stand for themselves."""
    root = Root(str(tmp_path))
    for name in ("run/netns", "var", "proc/7/ns"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run/netns/cni-x").touch()
    (tmp_path / "proc/7/ns/net").symlink_to("net:[4026531840]")
    links = {"var/run": "/run", "run/netns/a": "/proc/7/ns/net", "run/netns/b": "/run/netns/b"}
    links.update({"run/netns/" + NAME: "/etc/other", "run/netns/up": "../../../../../../run/netns/cni-x"})
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    for options, wanted in (
        ({"path": "/var/run/netns/cni-x"}, "/run/netns/cni-x"),
        ({"path": "/var/run/netns/none"}, "/run/netns/none"),
        ({"path": "/../../run/netns/cni-x"}, "/run/netns/cni-x"),
        ({"path": "/proc/7/ns/net"}, "/proc/7/ns/net"),
        ({"path": "/proc/../var/run/netns/cni-x"}, "/run/netns/cni-x"),
        ({"pid": 7}, "/proc/7/ns/net"),
        ({"name": "cni-x"}, "/run/netns/cni-x"),
        ({"name": "up"}, "/run/netns/cni-x"),
        ({"name": "a"}, "/proc/7/ns/net"),
        ({"name": NAME}, "/run/netns/" + NAME),
    ):
        assert namespaces.place_of(root, **options) == str(tmp_path) + wanted, options
    with pytest.raises(RdmaError) as error:
        namespaces.place_of(root, "b")
    assert error.value.code == "namespace_not_entered"
    assert namespaces.place_of(Root("/"), path="/var/run/netns/x") == "/var/run/netns/x"


@in_private_node
def test_made_entered_and_removed(node: PrivateNode) -> None:
    own = namespaces.own_identity()
    namespaces.make(node.root, NAME)
    with namespaces.opened(PLACE, NAME) as namespace:
        assert namespace.identity != own
        assert [link.name for link in namespaces.inside(namespace, read_links)] == ["lo"]
        assert namespaces.own_identity() == own
        assert namespaces.still_there(PLACE, namespace)
        namespaces.remove(node.root, NAME)
        assert not namespaces.still_there(PLACE, namespace)
    assert not os.path.exists(PLACE)
    namespaces.remove(node.root, NAME)


@in_private_node
def test_what_a_killed_run_leaves_is_used_and_removed(node: PrivateNode) -> None:
    """An empty file, or a second namespace over the first."""
    Path(PLACE).touch()
    assert not namespaces.is_mounted(PLACE)
    namespaces.make(node.root, NAME)
    namespaces.make(node.root, NAME)
    assert namespaces.is_mounted(PLACE)
    namespaces.remove(node.root, NAME)
    assert not os.path.exists(PLACE)


@in_private_node
def test_an_error_inside_comes_out(node: PrivateNode) -> None:
    namespaces.make(node.root, NAME)

    def fail() -> None:
        raise RdmaError("nic_missing", "No such NIC.")

    with namespaces.opened(PLACE, NAME) as namespace, pytest.raises(RdmaError, match="No such NIC"):
        namespaces.inside(namespace, fail)


@in_private_node
def test_every_namespace_is_found_once(node: PrivateNode) -> None:
    """By name, by a mount elsewhere, and by a process; not the own one."""
    namespaces.make(node.root, NAME)
    Path("/run/elsewhere").touch()
    mount = shutil.which("mount") or "mount"
    subprocess.run([mount, "--bind", PLACE, "/run/elsewhere"], check=True)
    unshare = shutil.which("unshare") or "unshare"
    with subprocess.Popen([unshare, "--net", "sleep", "60"]) as pod:
        try:
            assert node.wait_for(lambda: node.is_apart(pod.pid))
            labels = [namespace.label for namespace in namespaces.everyone(node.root)]
            assert labels.count(NAME) == labels.count("far") == 1
            assert "of process %d" % pod.pid in labels
            assert "/run/elsewhere" not in labels
        finally:
            pod.kill()
    namespaces.remove(node.root, NAME)
    assert "/run/elsewhere" in [namespace.label for namespace in namespaces.everyone(node.root)]


@in_private_node
def test_links_are_read_as_iproute2_reads_them(node: PrivateNode) -> None:
    node.ip("link", "add", "child", "link", "rdma0", "type", "macvlan", "mode", "bridge")
    told = {entry["ifname"]: entry for entry in json.loads(node.ip("-d", "-j", "link"))}
    links = {link.name: link for link in read_links()}
    assert set(links) == set(told)
    for name, link in links.items():
        entry = told[name]
        assert (link.index, link.mtu, link.mac) == (entry["ifindex"], entry["mtu"], entry["address"])
        assert link.up == ("UP" in entry["flags"])
        assert link.kind == entry.get("linkinfo", {}).get("info_kind", "")
        assert link.elsewhere == ("link_netnsid" in entry)
    assert links["child"].is_child
    assert links["child"].lower == links["rdma0"].index
    assert links["child"].mode == 4


def test_the_file_of_a_namespace() -> None:
    root = Root("/host")
    assert namespaces.place_of(root, "pod") == "/host/run/netns/pod"
    assert namespaces.place_of(root, path="/var/run/x") == "/host/var/run/x"
    assert namespaces.place_of(root, pid=7) == "/host/proc/7/ns/net"
    for name in ("../x", "a/b", ".", "-x", "a b", "x" * 64):
        with pytest.raises(RdmaError) as caught:
            namespaces.place_of(root, name)
        assert caught.value.code == "namespace_name"


def test_whose_child_it_is() -> None:
    """An ipvlan has the hardware address of its parent, so that equal indexes of two nodes' namespaces differ."""
    parent = NsLink(3, "rdma0", mac="52:54:00:00:00:01")
    same = occupants.Occupant(3, "ipvlan", parent.mac, "rdma0", "namespace pod")
    other = occupants.Occupant(3, "ipvlan", "52:54:00:00:00:02", "rdma0", "namespace pod")
    mac = occupants.Occupant(3, "macvlan", "52:54:00:00:00:03", "x", "namespace pod")
    assert [held.belongs_to(parent) for held in (same, other, mac)] == [True, False, True]
    child = NsLink(9, "rdma0", "ipvlan", parent.mac, lower=3, elsewhere=True)
    assert [held.shares_parent(child) for held in (same, other, mac)] == [True, False, True]
    occupants.refuse_in_use("rdma0", parent, [other])
    with pytest.raises(RdmaError, match="namespace pod has its ipvlan child rdma0"):
        occupants.refuse_in_use("rdma0", parent, [other, same])
    with pytest.raises(RdmaError, match="a claim is allocated for it"):
        occupants.refuse_in_use("rdma0", parent, [], ["rdma0"])
