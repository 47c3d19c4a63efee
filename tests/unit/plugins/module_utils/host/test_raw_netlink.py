# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""rtnetlink read without the library says what the library says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import raw_netlink
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root

SETUP = """
ip link set lo up
ip tuntap add nic0 mode tap
ip link add nic1 type veth peer name peer1
ip link add br0 type bridge
ip link set nic0 master br0
ip link set nic0 mtu 4220
ip link set nic0 address 02:00:00:00:00:07
ip link set nic0 up
ip link set nic1 up
ip link set peer1 up
ip link set br0 up
ip address add 10.9.0.1/24 dev nic1
ip address add 10.9.1.1/32 dev br0
ip address add fd00::1/64 dev nic1 nodad
ip route add default via 10.9.0.2 metric 50
ip route add 10.224.0.0/12 dev nic1 src 10.9.0.1 table 115 scope link
ip route add 10.50.0.0/16 nexthop via 10.9.0.3 dev nic1 nexthop via 10.9.0.4 dev nic1
ip route add 10.60.0.0/16 via inet6 fd00::2 dev nic1
ip route add blackhole 10.70.0.0/16
ip route add fd01::/48 via fd00::2 metric 5
ip route add 10.80.0.7 dev nic1 table 5000 proto 12
ip rule add from 10.9.0.1 lookup 115 priority 100
ip rule add fwmark 7 lookup 5000 priority 101
ip rule add lookup 5000 priority 102
ip rule add not from 10.9.0.0/24 to 10.0.0.0/8 lookup 5000 priority 103
ip rule add lookup main suppress_prefixlength 0 priority 104
ip -6 rule add lookup 5000 priority 105
"""

COMPARE = """
import json, sys
from dataclasses import asdict
from ansible_collections.rdma.k8s.plugins.module_utils.host import raw_netlink, rtnetlink
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
library, raw = rtnetlink.read(Root(), True, True), raw_netlink.read(Root())
print(json.dumps([asdict(library), asdict(raw)]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_links_addresses_and_routes_are_those_of_the_library() -> None:
    script = "set -e\n%s\nexec %s -" % (SETUP, sys.executable)
    unshare = shutil.which("unshare")
    assert unshare
    done = subprocess.run(
        [unshare, "--net", "sh", "-c", script],
        input=COMPARE,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    assert done.returncode == 0, done.stderr
    library, raw = json.loads(done.stdout)
    assert raw["links"] == library["links"]
    assert raw["addresses"] == library["addresses"]
    assert raw["routes"] == library["routes"]
    # of selectors only whether there are any
    assert [{**rule, "selectors": bool(rule["selectors"])} for rule in raw["rules"]] == [
        {**rule, "selectors": bool(rule["selectors"])} for rule in library["rules"]
    ]
    assert [rule["priority"] for rule in raw["rules"] if rule["selectors"]] == [101, 103, 104]
    assert {route["dst"] for route in raw["routes"]} >= {
        "10.224.0.0",
        "10.50.0.0",
        "10.60.0.0",
        "fd01::",
        "10.80.0.7",
    }
    assert [link["mtu"] for link in raw["links"] if link["name"] == "nic0"] == [4220]


def test_what_the_kernel_does_not_answer_is_an_error_of_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_arguments: Any) -> Any:
        raise PermissionError(1, "")

    monkeypatch.setattr(raw_netlink, "ask", refuses)
    root = Root()
    assert raw_netlink.read(root) is None
    assert [(error.source, error.reason) for error in root.errors] == [
        ("rtnetlink", "operation not permitted")
    ]


def test_a_dump_that_is_interrupted_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def interrupted(*arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) < 3:
            raise raw_netlink._InterruptedError
        return iter([b"x"])

    monkeypatch.setattr(raw_netlink, "ask", interrupted)
    assert raw_netlink.dump(raw_netlink.GET_LINK, b"") == [b"x"]
    asked[:] = []
    monkeypatch.setattr(raw_netlink, "_ATTEMPTS", 2)
    with pytest.raises(InterruptedError):
        raw_netlink.dump(raw_netlink.GET_LINK, b"")


def test_a_damaged_message_ends_the_reading() -> None:
    assert raw_netlink.attributes(b"\x02\0\x01\0") == {}
    assert raw_netlink.attributes(b"\x08\0\x04\0\x01\0\0\0\x01") == {4: b"\x01\0\0\0"}
    assert raw_netlink.number(b"\x01") == raw_netlink.number(None) == 0
    assert list(raw_netlink._messages(b"\x04\0\0\0" + b"\0" * 12)) == []


def test_the_tree_of_a_node_that_is_no_record_is_read_with_the_kernel(tmp_path: Path) -> None:
    from ansible_collections.rdma.k8s.plugins.module_utils.host import brief

    (tmp_path / "etc").mkdir()
    found = brief.read(Root(str(tmp_path)))
    assert found.routes is not None
    assert found.oca is not None
    assert found.oca.directory == "absent"
