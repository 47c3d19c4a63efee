# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module roce_qos, run whole over NICs that are stand-ins: a tree, a netlink peer, a tool that keeps state."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot, Route
from ansible_collections.rdma.k8s.plugins.module_utils.host import roce_ports, undo, uplinks
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import roce_qos
from ansible_collections.rdma.k8s.tests.support import change_run, fake_nic
from ansible_collections.rdma.k8s.tests.support.fake_nic import Nics

ETHERNET, INFINIBAND = "Ethernet", "InfiniBand"
SCRIPT = "etc/rdma-k8s/roce-qos.sh"
UNIT = "etc/systemd/system/rdma-k8s-roce-qos.service"
WANTED = "etc/systemd/system/multi-user.target.d/rdma-k8s-roce-qos.conf"
CM0 = "sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"
MLNX_QOS = r"""
import json, os, sys
place = os.path.join(os.environ["TREE"], "mlnx_qos.json")
state = {"trust": "pcp", "pfc": [0] * 8, "map": {}, "dcbx": "Firmware"}
if os.path.exists(place):
    state = json.load(open(place))
words = sys.argv[1:]
assert words[0] == "-i" and words[1].startswith("rdma"), words
option = words[2:3]
if option:
    value = words[3]
    if os.path.exists(os.path.join(os.environ["TREE"], "mlnx_qos.deaf")):
        sys.exit(0)
    if option == ["--trust"]:
        state["trust"] = value
    elif option == ["--pfc"]:
        state["pfc"] = [int(bit) for bit in value.split(",")]
        assert len(state["pfc"]) == 8
    elif option == ["--dscp2prio"]:
        verb, dscp, priority = value.split(",")
        assert verb == "set"
        state["map"][dscp] = int(priority)
    elif option == ["--dcbx"]:
        state["dcbx"] = {"os": "OS", "fw": "Firmware"}[value]
    else:
        sys.exit("Unknown option " + option[0])
    json.dump(state, open(place, "w"))
print("DCBX mode: %s controlled" % state["dcbx"])
print("Priority trust state: %s" % state["trust"])
if state["trust"] == "dscp":
    print("dscp2prio mapping:")
    for priority in range(8):
        values = [dscp for dscp in range(63, -1, -1) if state["map"].get(str(dscp), dscp // 8) == priority]
        print("\tprio:%d dscp:%s" % (priority, "".join("%02d," % value for value in values)))
print("Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,")
print("Cable len: 7")
print("PFC configuration:")
print("\tpriority    0   1   2   3   4   5   6   7")
print("\tenabled     " + "   ".join(map(str, state["pfc"])) + "   ")
print("\tbuffer      0   0   0   0   0   1   0   0   ")
print("tc: 1 ratelimit: unlimited, tsa: vendor")
print("\t priority:  0")
"""


@pytest.fixture(name="place")
def place_fixture() -> Iterator[Path]:
    with change_run.directory() as place:
        yield place


@pytest.fixture(name="nics")
def nics_fixture(place: Path, monkeypatch: pytest.MonkeyPatch) -> Nics:
    nics = Nics(place / "node", place / "nics.json", (ETHERNET, ETHERNET))
    return fake_nic.install(monkeypatch, nics)


def options(nics: Nics, **more: Any) -> dict[str, Any]:
    return {
        "host_root": str(nics.root),
        "interfaces": ["rdma*"],
        "rdma_priority": 5,
        "cnp_priority": 6,
        **more,
    }


def good(nics: Nics, **more: Any) -> dict[str, Any]:
    return change_run.good(roce_qos, **options(nics, **more))


def refused(nics: Nics, code: str, **more: Any) -> dict[str, Any]:
    """A run that must fail before it changes anything."""
    before = {**change_run.contents(nics.root), **nics.probe()}
    result = change_run.failure(roce_qos, **options(nics, **more))
    assert (result["code"], result["changed"]) == (code, False), result
    assert {**change_run.contents(nics.root), **nics.probe()} == before
    return result


def text(nics: Nics, path: str) -> str:
    return (nics.root / path).read_text().strip()


def test_all_settings_of_both_ports(nics: Nics) -> None:
    """S51-S53, S61: DSCP 40 and 48, type of service 160, PFC mask 0x20; other switches of ECN stay as they are."""
    result = good(nics, tcp_ecn=1)
    assert nics.state("rdma0") == {"pfc": 32, "apps": [[40, 5], [48, 6]], "dcbx": 9}
    assert nics.state("rdma1") == nics.state("rdma0")
    ecn = "sys/class/net/rdma0/ecn/"
    assert [text(nics, ecn + "roce_np/enable/%d" % number) for number in range(8)] == list("00000100")
    assert text(nics, ecn + "roce_rp/enable/5") == "1"
    assert text(nics, ecn + "roce_np/cnp_dscp") == "48"
    assert (text(nics, CM0), text(nics, "proc/sys/net/ipv4/tcp_ecn")) == ("160", "1")
    assert text(nics, "sys/class/infiniband/mlx5_1/tc/1/traffic_class") == "Global tclass=160"
    (first, _second) = result["ports"]
    assert (first["name"], first["trust"], first["pfc"], first["dscp_map"]) == (
        "rdma0",
        "dscp",
        32,
        "40:5 48:6",
    )
    assert result["notes"] == [roce_qos.roce_qos.SWITCHES]


def test_the_second_run_changes_nothing(nics: Nics) -> None:
    good(nics)
    state = {**change_run.contents(nics.root), **nics.probe()}
    again = good(nics)
    assert (again["changed"], again["actions"]) == (False, [])
    assert {**change_run.contents(nics.root), **nics.probe()} == state


def test_check_mode_says_exactly_what_a_run_does(nics: Nics) -> None:
    state = {**change_run.contents(nics.root), **nics.probe()}
    predicted = good(nics, tcp_ecn=1, _ansible_check_mode=True, _ansible_diff=True)
    assert {**change_run.contents(nics.root), **nics.probe()} == state
    done = good(nics, tcp_ecn=1, _ansible_diff=True)
    for key in ("changed", "actions", "diff"):
        assert predicted[key] == done[key]
    assert len(done["actions"]) == 22


def test_only_what_is_wrong_is_set(nics: Nics) -> None:
    good(nics)
    nics.change("rdma1", pfc=8)
    assert good(nics)["actions"] == ["set rdma1 pfc"]
    assert nics.state("rdma1")["pfc"] == 32


def test_an_entry_of_the_map_is_replaced_and_others_stay(nics: Nics) -> None:
    """S63: a DSCP value must not have two priorities, so the former entry goes."""
    nics.change("rdma0", apps=[[10, 1], [40, 3]])
    good(nics, interfaces=["rdma0"])
    assert nics.state("rdma0")["apps"] == [[10, 1], [40, 5], [48, 6]]


def test_other_dscp_values(nics: Nics) -> None:
    good(nics, rdma_priority=3, rdma_dscp=26, cnp_priority=7)
    assert nics.state("rdma0") == {"pfc": 8, "apps": [[26, 3], [56, 7]], "dcbx": 9}
    assert text(nics, CM0) == "104"


def test_interfaces_by_device_and_pattern(nics: Nics) -> None:
    result = good(nics, interfaces=["mlx5_1", "rdma1"])
    assert [port["name"] for port in result["ports"]] == ["rdma1"]
    assert nics.state("rdma0")["pfc"] == 0
    assert "rdma7" in refused(nics, "roce_port_missing", interfaces=["rdma0", "rdma7"])["msg"]


def test_values_that_cannot_be_right_together(nics: Nics) -> None:
    """S50."""
    result = refused(nics, "qos_values_refused", rdma_priority=6)
    assert [problem["code"] for problem in result["details"]["problems"]] == ["dscp-equal", "priority-equal"]


def test_infiniband_is_refused_before_anything(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S48."""
    nics = fake_nic.install(monkeypatch, Nics(place / "node", place / "nics.json", (ETHERNET, INFINIBAND)))
    result = refused(nics, "qos_not_ethernet", interfaces=["mlx5_*"])
    assert "InfiniBand on rdma1" in result["msg"]
    assert nics.asked == []


def test_a_driver_without_dcb_is_refused_before_anything(nics: Nics) -> None:
    """L40."""
    nics.without_dcb = {"rdma1"}
    assert "rdma1 has no DCB" in refused(nics, "dcb_unsupported")["msg"]


def test_a_virtual_function_without_dcb_gets_the_rest(nics: Nics) -> None:
    """S53: DCB is that of the parent."""
    nics.without_dcb = {"rdma1"}
    nics.link("sys/bus/pci/devices/0000:3b:00.1/physfn", "../0000:3b:00.0")
    result = good(nics)
    assert text(nics, CM0.replace("mlx5_0", "mlx5_1")) == "160"
    assert any("rdma1: no DCB of its own" in note for note in result["notes"])
    assert "dev rdma1" not in text(nics, SCRIPT)


def test_a_driver_that_ignores_it_is_a_failure(nics: Nics) -> None:
    """S54: taken without an error, and not there; nothing is kept for the next boot."""
    nics.silent = {"rdma0"}
    result = change_run.failure(roce_qos, **options(nics))
    assert result["code"] == "qos_ignored"
    assert "rdma0: trust is pcp, not dscp" in result["msg"]
    assert "rdma1" not in result["msg"]
    assert result["details"]["ports"] == ["rdma0"]
    assert not (nics.root / SCRIPT).exists()


def test_a_driver_that_refuses(nics: Nics) -> None:
    """L41: the error stands in the attribute of the answer."""
    nics.refused = {"rdma0": errno.EPERM}
    result = change_run.failure(roce_qos, **options(nics))
    assert (result["code"], result["msg"][:40]) == ("dcb_failed", "DCB of rdma0: operation not permitted.")


def test_an_interface_that_vanishes_on_the_way(nics: Nics) -> None:
    def vanish() -> None:
        if len([each for each in nics.asked if each[0] == 20]) == 3:
            nics.gone.add("rdma0")

    nics.before_set = vanish
    result = change_run.failure(roce_qos, **options(nics))
    assert (result["code"], result["changed"]) == ("netdev_missing", True)
    assert "rdma0" in result["msg"]
    nics.gone.clear()
    nics.before_set = lambda: None
    good(nics)
    assert nics.state("rdma0")["pfc"] == 32


def test_without_rdma_cm(nics: Nics) -> None:
    """S58."""
    (nics.root / fake_nic.CM).rmdir()
    assert "/sys/kernel/config/rdma_cm" in refused(nics, "rdma_cm_missing")["msg"]


def test_the_kernels_own_driver(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S58: CNP in debugfs, no switches, no traffic class: said, not passed over."""
    nics = Nics(place / "node", place / "nics.json", (ETHERNET,), vendor=False)
    fake_nic.install(monkeypatch, nics)
    debug = "sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/np_cnp_dscp"
    nics.write(debug, "0\n")
    result = good(nics)
    assert text(nics, debug) == "48"
    assert any(note.startswith("rdma0: the driver shows no switches for ECN") for note in result["notes"])
    assert any(note.startswith("rdma0: the device has no traffic class") for note in result["notes"])
    assert "put 48 /" + debug in text(nics, SCRIPT)


def test_firmware_that_negotiates_is_named_or_taken_over(nics: Nics) -> None:
    """S62."""
    nics.change("rdma1", dcbx=8)
    assert any(note.startswith("rdma1: DCBX is not left to the host") for note in good(nics)["notes"])
    assert nics.state("rdma1")["dcbx"] == 8
    result = good(nics, take_dcbx=True)
    assert result["actions"] == ["set rdma1 dcbx", "change /etc/rdma-k8s/roce-qos.sh"]
    assert nics.state("rdma1")["dcbx"] == 9
    assert {entry.outcome for entry in undo.undo(Root(str(nics.root)))} == {"restored"}
    assert nics.state("rdma1")["dcbx"] == 8


def test_dcbx_is_taken_over_at_each_boot(nics: Nics) -> None:
    """S62: firmware negotiates again after a boot; the host takes over before it sets PFC."""
    nics.change("rdma1", dcbx=8)
    good(nics)
    assert "dcbx" not in text(nics, SCRIPT)
    good(nics, take_dcbx=True)
    script = text(nics, SCRIPT)
    assert "run dcb dcbx set dev rdma1 host ieee\n" in script
    assert script.index("dcb dcbx set dev rdma1") < script.index("dcb app replace dev rdma1")


def test_an_empty_list_is_refused_and_keeps_what_is_there(nics: Nics) -> None:
    """A variable without a value would make the next boot lossy."""
    good(nics)
    assert "interfaces" in refused(nics, "nics_none_named", interfaces=[])["msg"]


def test_the_nic_of_the_default_route_is_refused(nics: Nics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 15."""
    snapshot = NodeSnapshot(name="", routes=(Route("default", "rdma1"),))
    monkeypatch.setattr(uplinks.brief, "read", lambda root: snapshot)
    result = refused(nics, "nic_carries_default_route")
    assert "rdma1 carries the default route" in result["msg"]
    assert good(nics, interfaces=["rdma0"])["changed"]


def test_the_next_boot(nics: Nics) -> None:
    """S55: one script, one unit, no loop."""
    good(nics, tcp_ecn=1)
    script = text(nics, SCRIPT)
    assert "run dcb app replace dev rdma0 dscp-prio 40:5 48:6\n" in script
    assert "run dcb pfc set dev rdma1 prio-pfc all:off 5:on\n" in script
    assert "put 160 /sys/kernel/config/rdma_cm/mlx5_1/ports/1/default_roce_tos\n" in script
    assert "put 1 /proc/sys/net/ipv4/tcp_ecn\n" in script
    assert oct((nics.root / SCRIPT).stat().st_mode)[-3:] == "755"
    assert "ExecStart=/bin/sh /%s" % SCRIPT in text(nics, UNIT)
    assert "Wants=rdma-k8s-roce-qos.service" in text(nics, WANTED)
    assert "Restart" not in text(nics, UNIT) + text(nics, WANTED)


def test_not_for_the_next_boot(nics: Nics) -> None:
    good(nics, persist=False)
    assert list((nics.root / "etc").iterdir()) == [nics.root / "etc/systemd"]
    assert list((nics.root / "etc/systemd/system").iterdir()) == []


def test_no_program_for_the_next_boot(nics: Nics) -> None:
    (nics.root / "usr/sbin/dcb").unlink()
    assert "persist: false" in refused(nics, "tool_missing")["msg"]
    assert good(nics, persist=False)["changed"]


def test_undo_restores_all_of_it(nics: Nics) -> None:
    """Decision 16."""
    nics.change("rdma0", apps=[[40, 3]], pfc=8)
    nics.write("sys/class/net/rdma0/ecn/roce_np/cnp_dscp", "7\n")
    before = {**change_run.contents(nics.root), **nics.probe()}
    good(nics, tcp_ecn=1)
    assert {entry.outcome for entry in undo.undo(Root(str(nics.root)), ["roce_qos"])} == {"restored"}
    assert {**change_run.contents(nics.root), **nics.probe()} == before
    assert [entry.record for entry in undo.undo(Root(str(nics.root)))] == []


def test_what_somebody_else_changed_is_left_alone(nics: Nics) -> None:
    good(nics)
    nics.change("rdma1", pfc=129)
    kept = [entry for entry in undo.undo(Root(str(nics.root))) if entry.outcome == "kept"]
    assert [entry.record.name for entry in kept] == ["rdma1 pfc"]
    assert (nics.state("rdma1")["pfc"], nics.state("rdma0")["pfc"]) == (129, 0)


def test_killed_at_every_step(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo restores, and the next run repairs, wherever a run was killed."""
    nics = fake_nic.install(monkeypatch, Nics(place / "node", place / "nics.json", (ETHERNET,)))
    nics.change("rdma0", apps=[[40, 3]])
    given = options(nics)
    good(nics)
    wanted = {path: (nics.root / path).read_text() for path in (SCRIPT, UNIT, WANTED)}
    undo.undo(Root(str(nics.root)))
    acts = change_run.killed_everywhere("roce_qos", given, nics.root, wanted, nics.probe)
    assert acts > 40


# The vendor's tool


@pytest.fixture(name="started")
def started_fixture(nics: Nics, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The driver has no DCB netlink, and the tool is there."""
    nics.without_dcb = {"rdma0", "rdma1"}
    fake_nic.install_tool(nics.root, "usr/bin/mlnx_qos", MLNX_QOS)
    return fake_nic.run_below_root(monkeypatch, nics.root)


def test_the_tool_where_the_driver_needs_it(nics: Nics, started: list[list[str]]) -> None:
    result = good(nics, interfaces=["rdma0"], take_dcbx=True)
    sets = [words[3:] for words in started if len(words) > 3]
    assert sets == [
        ["--dcbx", "os"],
        ["--trust", "dscp"],
        ["--dscp2prio", "set,40,5"],
        ["--dscp2prio", "set,48,6"],
        ["--pfc", "0,0,0,0,0,1,0,0"],
    ]
    (port,) = result["ports"]
    assert (port["trust"], port["pfc"], port["dcbx"]) == ("dscp", 32, 1)
    assert port["dscp_map"].split()[5] == "40-47:5"
    script = text(nics, SCRIPT)
    assert "run mlnx_qos -i rdma0 --pfc 0,0,0,0,0,1,0,0\n" in script
    assert script.index("run mlnx_qos -i rdma0 --dcbx os\n") < script.index("--trust dscp")
    started.clear()
    again = good(nics, interfaces=["rdma0"], take_dcbx=True)
    assert (again["changed"], [words for words in started if len(words) > 3]) == (False, [])


def test_the_tool_that_sets_nothing(nics: Nics, started: list[list[str]]) -> None:
    nics.write("mlnx_qos.deaf", "")
    result = change_run.failure(roce_qos, **options(nics, interfaces=["rdma0"]))
    assert result["code"] == "qos_ignored"
    assert started


def test_undo_through_the_tool(nics: Nics, started: list[list[str]]) -> None:
    good(nics, interfaces=["rdma0"])
    outcomes = {entry.record.name: entry.outcome for entry in undo.undo(Root(str(nics.root)))}
    assert outcomes["rdma0 pfc"] == outcomes["rdma0 trust"] == "restored"
    assert ["--trust", "pcp"] in [words[3:] for words in started]


def test_the_tool_is_not_asked_where_netlink_is_wanted(nics: Nics, started: list[list[str]]) -> None:
    refused(nics, "dcb_unsupported", backend="netlink")
    assert started == []


def test_the_tool_is_wanted_and_missing(nics: Nics) -> None:
    assert "mlnx_qos" in refused(nics, "tool_missing", backend="mlnx_qos")["msg"]


def test_the_tool_fails(nics: Nics, started: list[list[str]]) -> None:
    fake_nic.install_tool(
        nics.root, "usr/bin/mlnx_qos", "import sys; sys.exit('Netlink error: No such device')"
    )
    result = refused(nics, "command_failed", backend="mlnx_qos")
    assert "No such device" in result["msg"]
    assert started


# Privilege and disk


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_the_store_cannot_be_written(nics: Nics) -> None:
    """Nothing is changed without an undo record."""
    (nics.root / "var").write_text("not a directory")
    before = {**change_run.contents(nics.root), **nics.probe()}
    result = change_run.failure(roce_qos, **options(nics))
    assert result["code"] in ("file_not_written", "file_unreadable")
    assert {**change_run.contents(nics.root), **nics.probe()} == before


def test_all_ports_for_a_snapshot(nics: Nics) -> None:
    """The reader of the subset slow names what it cannot tell, for each port."""
    nics.without_dcb = {"rdma1"}
    good(nics, interfaces=["rdma0"])
    found = roce_ports.read_all(Root(str(nics.root)))
    assert found is not None
    assert [(port.name, port.pfc, bool(port.dcb)) for port in found] == [
        ("rdma0", 32, False),
        ("rdma1", None, True),
    ]
    assert (found[1].ecn_np, found[1].cm_tos, found[0].cm_tos) == (0, None, 160)


def test_a_port_that_vanishes_hides_no_other(nics: Nics) -> None:
    nics.gone = {"rdma0"}
    found = roce_ports.read_all(Root(str(nics.root)))
    assert found is not None
    assert "no interface rdma0" in found[0].dcb
    assert found[1].pfc == 0
    with pytest.raises(RdmaError, match="no interface rdma0"):
        roce_ports.dcb.read("rdma0")
