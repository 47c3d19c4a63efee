# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCB netlink: against the kernel of this machine, and against a peer that reads the bytes by itself."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import dcb
from ansible_collections.rdma.k8s.tests.support import fake_nic
from ansible_collections.rdma.k8s.tests.support.fake_nic import Nics

# The kernel of this machine


def needs_netlink() -> None:
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    except OSError as error:
        pytest.skip("no netlink here: %s" % error)


@pytest.mark.parametrize(("netdev", "code"), [("lo", "dcb_unsupported"), ("no-such-nic", "netdev_missing")])
def test_what_the_kernel_says_to_an_interface_without_dcb(netdev: str, code: str) -> None:
    """L40: Operation not supported, and No such device."""
    needs_netlink()
    with pytest.raises(RdmaError) as caught:
        dcb.read(netdev)
    assert caught.value.code == code
    assert netdev in str(caught.value)


# The peer


@pytest.fixture(name="nics")
def nics_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nics:
    nics = Nics(tmp_path / "node", tmp_path / "nics.json", ("Ethernet", "Ethernet"))
    return fake_nic.install(monkeypatch, nics)


def test_reading(nics: Nics) -> None:
    """S60-S63."""
    nics.change("rdma0", pfc=0x28, apps=[[10, 1], [40, 5]], dcbx=8)
    state = dcb.read("rdma0")
    assert (state.pfc, state.apps, state.dcbx, state.trust) == (0x28, ((10, 1), (40, 5)), 8, "dscp")
    assert dcb.read("rdma1").trust == "pcp"
    assert dcb.read_pauses("rdma0") == (tuple(range(8)), tuple(range(100, 108)))


def test_writing(nics: Nics) -> None:
    """S60, S61: one interface, and what is not asked for stays."""
    nics.change("rdma0", apps=[[10, 1]])
    dcb.write("rdma0", "pfc", 0x20)
    dcb.write("rdma0", "dscp_40", 5)
    dcb.write("rdma0", "dcbx", 5)
    assert nics.state("rdma0") == {"pfc": 0x20, "apps": [[10, 1], [40, 5]], "dcbx": 5}
    dcb.write("rdma0", "dscp_40", None)
    assert nics.state("rdma0")["apps"] == [[10, 1]]
    assert nics.state("rdma1")["pfc"] == 0


def test_dcbx_goes_back_to_firmware(nics: Nics) -> None:
    """S62."""
    dcb.write("rdma0", "dcbx", 12)
    assert nics.state("rdma0")["dcbx"] == 8
    nics.refused = {"rdma0": 1}
    with pytest.raises(RdmaError, match="the flags 255 of DCBX"):
        dcb.write("rdma0", "dcbx", 255)


def test_a_value_has_one_priority(nics: Nics) -> None:
    """S63: whatever was there, wrong entries go before the right one comes."""
    nics.change("rdma0", apps=[[40, 3], [40, 4]])
    assert dcb.read("rdma0").get("dscp_40") == [3, 4]
    assert dcb.read("rdma0").map == {40: 4}
    dcb.write("rdma0", "dscp_40", 5)
    assert nics.state("rdma0")["apps"] == [[40, 5]]
    assert [command for command, _netdev in nics.asked if command not in {21, 22}] == [27, 27, 20]
    nics.asked.clear()
    dcb.write("rdma0", "dscp_40", 5)
    assert [command for command, _netdev in nics.asked] == [21]


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EOPNOTSUPP, "dcb_unsupported"), (errno.EINVAL, "dcb_failed"), (1, "dcb_failed")],
)
def test_the_error_in_the_answer(nics: Nics, number: int, code: str) -> None:
    """L41: the kernel reports success for the message, the driver's error stands inside."""
    nics.refused = {"rdma0": number}
    with pytest.raises(RdmaError) as caught:
        dcb.write("rdma0", "pfc", 0x20)
    assert (caught.value.code, caught.value.details["netdev"]) == (code, "rdma0")
    with pytest.raises(RdmaError):
        dcb.write("rdma0", "dcbx", 9)
