# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ARP and reverse path settings of NICs: on a tree, and in a network namespace of this machine's kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot, Route
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    link_mtu,
    nic_sysctl as host_part,
    oca,
    uplinks,
)
from ansible_collections.rdma.k8s.plugins.modules import nic_sysctl
from ansible_collections.rdma.k8s.tests.support import change_run

CONF = "proc/sys/net/ipv4/conf"
WANTED = {"arp_ignore": 1, "arp_announce": 2, "rp_filter": 2}
TEXT = (
    "# Managed by rdma.k8s.nic_sysctl: RDMA NICs that share a network.\n"
    "net/ipv4/conf/rdma0/arp_announce = 2\n"
    "net/ipv4/conf/rdma0/arp_ignore = 1\n"
    "net/ipv4/conf/rdma0/rp_filter = 2\n"
    "net/ipv4/conf/rdma1/arp_announce = 2\n"
    "net/ipv4/conf/rdma1/arp_ignore = 1\n"
    "net/ipv4/conf/rdma1/rp_filter = 2\n"
)


@pytest.fixture(name="host")
def host_fixture() -> Iterator[Path]:
    with change_run.directory() as host:
        for name in ("all", "default", "rdma0", "rdma1"):
            (host / CONF / name).mkdir(parents=True)
            for key in host_part.VALUES:
                (host / CONF / name / key).write_text("0\n")
        (host / "etc/sysctl.d").mkdir(parents=True)
        yield host


def options(host: Path, **more: Any) -> dict[str, Any]:
    return {"host_root": str(host), "nics": ["rdma0", "rdma1"], **WANTED, **more}


def value(host: Path, nic: str, name: str) -> str:
    return (host / CONF / nic / name).read_text().strip()


def agent(host: Path, **default: Any) -> None:
    place = host / oca.NETWORK[1:]
    place.parent.mkdir(parents=True)
    settings = {"rp_filter": "2", "arp_ignore": "1", "arp_announce": "2"}
    entry = {"default-settings": {"modify_arp": True, **default}, "arp-settings": settings}
    place.write_text(json.dumps({"rdma-network": [entry]}))


def test_all_nics_get_all_settings_once(host: Path) -> None:
    foreseen = change_run.good(nic_sysctl, **options(host), _ansible_check_mode=True)
    assert value(host, "rdma0", "arp_ignore") == "0"
    done = change_run.good(nic_sysctl, **options(host))
    assert done == foreseen
    assert done["changed"]
    assert (host / host_part.FILE[1:]).read_text() == TEXT
    assert [value(host, "rdma1", name) for name in WANTED] == ["1", "2", "2"]
    assert value(host, "rdma1", "arp_filter") == "0"
    assert value(host, "all", "rp_filter") == "0"
    assert change_run.good(nic_sysctl, **options(host))["changed"] is False


def test_the_larger_setting_of_all_counts(host: Path) -> None:
    """F79: the kernel uses the larger one of all and the interface; with 1 on all, 0 on a NIC means nothing."""
    (host / CONF / "all/rp_filter").write_text("1\n")
    before = change_run.contents(host)
    result = change_run.failure(nic_sysctl, **options(host, rp_filter=0))
    assert result["code"] == "sysctl_overruled"
    assert "net.ipv4.conf.all.rp_filter is 1" in result["msg"]
    assert change_run.contents(host) == before
    assert change_run.good(nic_sysctl, **options(host, rp_filter=2))["changed"]


def test_what_the_agent_sets_is_left_to_it(host: Path) -> None:
    """F55: modify_arp with arp-settings; arp_filter is none of them."""
    agent(host)
    result = change_run.good(nic_sysctl, **options(host, arp_filter=1))
    assert [
        (each["nic"], each["name"], each["found"], each["agent"]) for each in result["left_to_agent"]
    ] == [
        (nic, name, "0", wanted)
        for nic in ("rdma0", "rdma1")
        for name, wanted in (("arp_announce", "2"), ("arp_ignore", "1"), ("rp_filter", "2"))
    ]
    assert (value(host, "rdma0", "arp_ignore"), value(host, "rdma0", "arp_filter")) == ("0", "1")
    assert "arp_ignore" not in (host / host_part.FILE[1:]).read_text()
    taken = change_run.good(nic_sysctl, **options(host, take_from_agent=True))
    assert taken["left_to_agent"] == []
    assert value(host, "rdma0", "arp_ignore") == "1"


@pytest.mark.parametrize("how", ["off", "cut off", "of another kind"])
def test_an_agent_that_sets_nothing_is_no_reason(host: Path, how: str) -> None:
    agent(host, modify_arp=False)
    if how == "cut off":
        (host / oca.NETWORK[1:]).write_text('{"rdma-network": [')
    elif how == "of another kind":
        (host / oca.NETWORK[1:]).write_text("[]")
    assert change_run.good(nic_sysctl, **options(host))["left_to_agent"] == []


@pytest.mark.parametrize("name", ["rdma7", "../../etc", "all", "default", "", "a b"])
def test_names_that_are_no_nic(host: Path, name: str) -> None:
    before = change_run.contents(host)
    result = change_run.failure(nic_sysctl, **options(host, nics=["rdma0", name]))
    assert result["code"] == "netdev_missing"
    assert repr(name) in result["msg"]
    assert change_run.contents(host) == before


def test_nothing_to_set_is_refused_and_keeps_what_is_there(host: Path) -> None:
    """An empty list, or no setting, would remove the file of all NICs."""
    change_run.good(nic_sysctl, **options(host))
    before = change_run.contents(host)
    none = change_run.failure(nic_sysctl, **options(host, nics=[]))
    assert (none["code"], none["changed"]) == ("nics_none_named", False)
    bare = change_run.failure(nic_sysctl, host_root=str(host), nics=["rdma0"])
    assert "one of the following is required: accept_local, arp_announce" in bare["msg"]
    assert change_run.contents(host) == before


@pytest.mark.parametrize("part", ["itself", "a bond", "unknown"])
def test_the_nic_of_the_default_route_is_refused(
    host: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 15, with the code that nic_mtu uses."""
    found = {"rdma0": link_mtu.Device(2, "rdma0", 1500), "rdma1": link_mtu.Device(3, "rdma1", 1500)}
    if part == "a bond":
        found = {
            "rdma0": link_mtu.Device(2, "rdma0", 1500),
            "rdma1": link_mtu.Device(3, "rdma1", 1500, master=4),
            "bond0": link_mtu.Device(4, "bond0", 1500),
        }
    over = {"itself": "rdma1", "a bond": "bond0", "unknown": ""}[part]
    routes = None if part == "unknown" else (Route("default", over),)
    monkeypatch.setattr(uplinks, "devices", lambda root: found)
    monkeypatch.setattr(uplinks.brief, "read", lambda root: NodeSnapshot(name="", routes=routes))
    before = change_run.contents(host)
    result = change_run.failure(nic_sysctl, **options(host))
    assert result["code"] == ("route_list_unknown" if part == "unknown" else "nic_carries_default_route")
    assert change_run.contents(host) == before
    if part != "unknown":
        assert "rdma1 carries the default route of the node (default dev %s)" % over in result["msg"]
        assert change_run.good(nic_sysctl, **options(host, nics=["rdma0"]))["changed"]


def test_without_persist_no_file_is_touched(host: Path) -> None:
    assert change_run.good(nic_sysctl, **options(host, persist=False))["changed"]
    assert not (host / host_part.FILE[1:]).exists()


def test_killed_before_any_act(host: Path) -> None:
    number = change_run.killed_everywhere(
        "nic_sysctl",
        options(host, nics=["rdma0"]),
        host,
        {host_part.FILE[1:]: TEXT[: TEXT.index("net/ipv4/conf/rdma1")]},
    )
    assert number > 10


def test_on_the_kernel_of_this_machine() -> None:
    """The namespace ends with the run; records would be of this machine, so none are made."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    given = {"nics": ["rdma0"], "arp_ignore": 1, "arp_announce": 2, "persist": False}
    path = "/proc/sys/net/ipv4/conf/rdma0/arp_"
    patch = "from ansible_collections.rdma.k8s.plugins.module_utils.host import store\n"
    patch += "import contextlib\n"
    patch += "store.remember = lambda *each: None\n"
    patch += "store.lock = lambda root: contextlib.nullcontext()\n"
    runs = [given, {"command": "cat %signore %sannounce" % (path, path)}, given]
    setup = ["ip link add rdma0 type veth peer name far0"]
    first, shown, second = change_run.in_namespace("nic_sysctl", runs, setup, patch)
    assert (first["changed"], second["changed"]) == (True, False)
    assert shown.split() == ["1", "2"]


def test_all_that_is_returned_is_described(host: Path) -> None:
    agent(host)
    result = change_run.good(nic_sysctl, **options(host))
    described = yaml.safe_load(nic_sysctl.RETURN)
    assert set(result) - {"changed"} == set(described)
    assert set(result["left_to_agent"][0]) == set(described["left_to_agent"]["contains"])
