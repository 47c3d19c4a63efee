# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subset slow: counters within a second, links in the kernel log, RoCE settings of a recorded tree."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import KernelLog, LinkDowns, NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.host import kernel_log, port_counters
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support import fake_nic
from ansible_collections.rdma.k8s.tests.support.fake_nic import Nics

PORT = "sys/class/infiniband/mlx5_%d/ports/1/%s"


@pytest.fixture(name="nics")
def nics_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nics:
    nics = Nics(tmp_path / "node", tmp_path / "nics.json", ("Ethernet", "Ethernet"))
    return fake_nic.install(monkeypatch, nics)


def count(nics: Nics, number: int, **values: int) -> None:
    for name, value in values.items():
        folder = "counters" if name.startswith("port_") else "hw_counters"
        nics.write(PORT % (number, "%s/%s" % (folder, name)), "%d\n" % value)


def test_what_the_counters_gain(nics: Nics, monkeypatch: pytest.MonkeyPatch) -> None:
    """S65: differences, not totals; what a driver does not count is not known; one that went back is not, either."""
    count(nics, 0, port_rcv_packets=1000, port_xmit_packets=10, out_of_buffer=5, out_of_sequence=7)
    count(nics, 1, rcvd_pkts=50, sent_pkts=60, rcvd_rnr_err=9)

    def later(seconds: float) -> None:
        assert seconds == 1.0
        count(nics, 0, port_rcv_packets=1500, port_xmit_packets=30, out_of_buffer=5, out_of_sequence=9)
        count(nics, 1, rcvd_pkts=55, sent_pkts=62, rcvd_rnr_err=3)

    monkeypatch.setattr(port_counters.time, "sleep", later)
    found = port_counters.read_all(Root(str(nics.root)))
    assert found is not None
    first, second = found
    assert (first.name, first.packets, first.out_of_buffer, first.out_of_sequence, first.discarded) == (
        "rdma0",
        520,
        0,
        2,
        None,
    )
    assert (second.packets, second.out_of_buffer) == (7, None)
    assert (first.pause_sent, first.pause_received) == ("", "")


def test_pause_frames_that_move(nics: Nics, monkeypatch: pytest.MonkeyPatch) -> None:
    """S61."""
    answers = iter([((0,) * 8, (5,) * 8), ((0, 0, 0, 0, 0, 12, 0, 0), (5, 5, 5, 9, 5, 5, 5, 4))])
    monkeypatch.setattr(port_counters.dcb, "read_pauses", lambda _netdev: next(answers))
    nics.root.joinpath("sys/class/infiniband/mlx5_1").unlink()
    (found,) = port_counters.read_all(Root(str(nics.root)), 0.0) or ()
    assert (found.pause_sent, found.pause_received) == ("5:12", "3:4")


def test_a_node_without_ports_loses_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_counters.time, "sleep", lambda _seconds: pytest.fail("nobody has to wait"))
    root = Root(str(tmp_path))
    assert port_counters.read_all(root) == ()
    assert kernel_log.read(root) == KernelLog()


HOUR = 3600
UPTIME = 30 * HOUR


def record(hour: float, text: str) -> str:
    return "6,%d,%d,-;%s\n SUBSYSTEM=pci\n" % (int(hour * 10), int(hour * HOUR * 1000000), text)


LOG = "".join(
    [
        record(2, "mlx5_core 0000:3b:00.0 rdma0: Link down"),  # more than a day ago
        record(7, "mlx5_core 0000:3b:00.0 rdma0: Link down"),
        record(7.1, "mlx5_core 0000:3b:00.0 rdma0: Link up"),
        record(8, "mlx5_core 0000:3b:00.1 ens1f1 (renamed): Link down"),
        record(9, "e1000e 0000:3b:00.1 rdma1: NIC Link is Down"),
        record(10, "bond0: (slave rdma1): link status definitely down, disabling slave"),
        record(11, "rdma1: NIC Link is Down"),
        record(12, "eth0: Link is Down"),
        "not a record\n",
    ]
)


def test_links_that_went_down_within_a_day(nics: Nics) -> None:
    """By PCI address, which no renaming changes, else by name; only of RDMA interfaces."""
    nics.write("dev/kmsg", LOG)
    nics.write("proc/uptime", "%d.25 100.00\n" % UPTIME)
    root = Root(str(nics.root))
    assert kernel_log.read(root) == KernelLog(86400, (LinkDowns("rdma0", 1), LinkDowns("rdma1", 3)))
    assert root.errors == []


def test_a_log_that_was_overwritten_tells_how_far_it_reaches(nics: Nics) -> None:
    nics.write("dev/kmsg", record(29, "rdma0: Link down"))
    nics.write("proc/uptime", "%d.25 100.00\n" % UPTIME)
    found = kernel_log.read(Root(str(nics.root)))
    assert found == KernelLog(3600, (LinkDowns("rdma0", 1), LinkDowns("rdma1", 0)))


def test_a_log_that_cannot_be_read(nics: Nics) -> None:
    nics.write("proc/uptime", "%d.25 100.00\n" % UPTIME)
    root = Root(str(nics.root))
    assert kernel_log.read(root) is None
    assert [error.source for error in root.errors] == ["/dev/kmsg"]


def test_the_log_of_this_machine(nics: Nics) -> None:
    """The device gives one record for each read, and an end."""
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("/dev/kmsg cannot be read here")
    handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        lines = kernel_log._records(handle)
    except PermissionError:
        pytest.skip("/dev/kmsg cannot be read here")
    finally:
        os.close(handle)
    assert lines
    assert all(kernel_log._HEAD.match(line) for line in lines)


def test_a_recorded_tree(nics: Nics) -> None:
    """A tree with netlink.json asks nobody: DCB and counters come from there."""
    nics.write("dev/kmsg", LOG)
    nics.write("proc/uptime", "%d.25 100.00\n" % UPTIME)
    answers = {
        "dcb": {"interfaces": [{"netdev": "rdma0", "pfc": 32, "map": "40:5 48:6", "dcbx": 9}]},
        "counters": {"ports": [{"device": "mlx5_0", "netdev": "rdma0", "seconds": 1.0, "packets": 7}]},
    }
    nics.write("netlink.json", json.dumps(answers))
    slow = collect("n", str(nics.root), ["slow"]).slow
    assert nics.asked == []
    assert slow is not None
    assert slow.qos is not None
    assert slow.counters is not None
    assert [(port.name, port.pfc, port.trust, bool(port.dcb)) for port in slow.qos] == [
        ("rdma0", 32, "dscp", False),
        ("rdma1", None, None, True),
    ]
    assert (slow.qos[0].ecn_np, slow.qos[0].cnp_dscp, slow.qos[0].traffic_class) == (0, 26, -1)
    assert [port.packets for port in slow.counters] == [7]


def test_a_recorded_tree_without_them(nics: Nics) -> None:
    nics.write("netlink.json", '{"dcb": {"interfaces": [{"netdev": "rdma0", "pfc": 1, "map": "99:1"}]}}')
    found = collect("n", str(nics.root), ["slow"])
    assert found.slow is not None
    assert (found.slow.qos, found.slow.counters, found.slow.kernel_log) == (None, None, None)
    assert {"dcb-netlink", "port-counters", "/dev/kmsg"} <= {error.source for error in found.errors}
    assert NodeSnapshot.from_dict(found.to_dict()) == found
