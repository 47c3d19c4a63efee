# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The MTU of NICs: bounds, order, protection, owners, and the lines of others (S35, S36, decision 15)."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_mtu as core
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route, Rule


def nics(**mtus: int) -> dict[str, core.Nic]:
    """``pf0v1`` is a virtual function of ``pf0``; devices take 68 to 9978."""
    found = {}
    for index, (name, mtu) in enumerate(mtus.items(), 2):
        physical = name.partition("v")[0] if "v" in name else ""
        lowers = tuple([other for other in mtus if other.startswith(name + "v")])
        found[name] = core.Nic(name, index, mtu, 68, 9978, physical, lowers)
    return found


def order(mtu: int, known: dict[str, core.Nic], *wanted: str) -> str:
    try:
        return " ".join([nic.name for nic in core.in_order(wanted or list(known), known, mtu)])
    except RdmaError as error:
        return error.code


@pytest.mark.parametrize(
    ("mtu", "known", "wanted", "expected"),
    [
        (4220, nics(pf0v0=1500, pf0=1500), (), "pf0 pf0v0"),  # raised: the physical one first
        (1500, nics(pf0=4220, pf0v0=4220), (), "pf0v0 pf0"),  # lowered: the virtual one first
        (4220, nics(pf0=9000, pf0v0=1500), ("pf0v0",), "pf0v0"),
        (4220, nics(pf0=1500, pf0v0=1500), ("pf0v0",), "mtu_above_physical"),
        (1500, nics(pf0=4220, pf0v0=4220), ("pf0",), "mtu_below_virtual"),
        (4220, nics(pf0=9000, pf0v0=4220), ("pf0",), "pf0"),
        (67, nics(pf0=1500), (), "mtu_out_of_range"),
        (68, nics(pf0=1500), (), "pf0"),
        (9978, nics(pf0=1500), (), "pf0"),
        (9979, nics(pf0=1500), (), "mtu_out_of_range"),
    ],
)
def test_a_virtual_function_is_never_above_its_physical_one(
    mtu: int, known: dict[str, core.Nic], wanted: tuple[str, ...], expected: str
) -> None:
    """S36: PF at least VF, at every moment; a VF does not follow its PF."""
    assert order(mtu, known, *wanted) == expected


def test_a_device_without_limits_takes_what_the_kernel_takes() -> None:
    bare = {"a": core.Nic("a", 2, 1500), "b": core.Nic("b", 3, 1500, 0, 0), "c": core.Nic("c", 4, 1500, 1280)}
    assert order(65536, bare, "a", "b") == "a b"
    assert order(65537, bare, "a") == order(5 * 10**9, bare, "b") == "mtu_out_of_range"
    assert order(67, bare, "a") == order(1279, bare, "c") == "mtu_out_of_range"


def test_names_are_checked_before_anything_else() -> None:
    known = nics(pf0=1500, pf1=1500)
    assert core.require_names(["pf1", "pf0", "pf1"], known) == ["pf1", "pf0"]
    for names, code in (([], "nics_none_named"), (["pf9"], "nic_missing")):
        with pytest.raises(RdmaError) as caught:
            core.require_names(names, known)
        assert caught.value.code == code
    strange = {"a b": core.Nic("a b", 9, 1500)}  # the kernel allows more than a file name should hold
    with pytest.raises(RdmaError):
        core.require_names(["a b"], strange)


STACK = [
    core.Nic("eth0", 2, 1500, above="bond0"),
    core.Nic("bond0", 3, 1500, above="br0"),
    core.Nic("br0", 4, 1500),
    core.Nic("br0.7", 5, 1500, below="br0"),
    core.Nic("rail0", 6, 1500),
]


@pytest.mark.parametrize(
    ("routes", "carrying"),
    [
        ([Route("default", dev="br0.7")], "eth0 bond0 br0 br0.7"),
        ([Route("default", dev="rail0", table=151), Route("default", dev="br0")], "eth0 bond0 br0"),
        ([Route("default", dev="br0"), Route("::/0", dev="rail0")], "eth0 bond0 br0"),
        ([Route("::/0", dev="rail0")], "rail0"),
        ([Route("default", dev="rail0"), Route("default", dev="eth0", metric=9)], "eth0 rail0"),
        ([Route("10.0.0.0/8", dev="rail0")], ""),
        ([Route("0.0.0.0/1", dev="rail0"), Route("128.0.0.0/1", dev="rail0")], "rail0"),
        ([Route("128.0.0.0/1", dev="rail0"), Route("default", dev="br0")], "eth0 bond0 br0 rail0"),
        ([Route("default", dev="rail0", table=101), Route("10.0.0.0/8", dev="br0")], "rail0"),
        ([Route("::/1", dev="rail0")], "rail0"),
    ],
)
def test_the_default_route_is_followed_down_to_its_nics(routes: list[Route], carrying: str) -> None:
    """S38: rails can have a default route in a table of their own, which is none of the node."""
    found = [nic.name for nic in STACK if core.default_over(nic.name, STACK, routes)]
    assert found == carrying.split()


@pytest.mark.parametrize(
    ("rules", "carrying"),
    [
        ([], False),
        ([Rule(100, "10.0.0.7", 101)], False),
        ([Rule(100, "all", 101, "fwmark 1")], False),
        ([Rule(100, "all", 7)], False),
        ([Rule(100, "all", 101)], True),
        ([Rule(0, "all", 255), Rule(100, "all", 101, "inet6"), Rule(32766)], True),
    ],
)
def test_a_rule_for_everything_makes_another_table_the_nodes(rules: list[Rule], carrying: bool) -> None:
    """S38: a rule for the addresses of a rail does not."""
    routes = [Route("default", dev="rail0", table=101), Route("default", dev="br0")]
    assert bool(core.default_over("rail0", STACK, routes, rules)) == carrying
    assert core.default_over("eth0", STACK, routes, rules)


def test_a_default_route_without_an_interface_is_known_as_such() -> None:
    """Then every NIC could be the one that carries it."""
    assert core.unknown_default([Route("10.0.0.0/8"), Route("default", dev="eth0")]) == ""
    assert core.unknown_default([Route("10.0.0.0/8", dev="eth0"), Route("default")]) == "default"
    assert core.unknown_default([Route("8000::/1", table=7)]) == "8000::/1 table 7"


def test_children() -> None:
    """An ipvlan always has the MTU of its parent; others are lowered with it and never raised."""
    assert [core.becomes("ipvlan", mtu, 4220) for mtu in (1500, 9000)] == [4220, 4220]
    assert [core.becomes("macvlan", mtu, 4220) for mtu in (1500, 9000)] == [1500, 4220]


@pytest.mark.parametrize(
    ("value", "same"),
    [("4096", True), ("4K", True), ("4k", True), ("4M", False), ("K", False), ("4096 ", False)],
)
def test_networkd_knows_suffixes(value: str, same: bool) -> None:
    assert core.says(core.Line("/x", 1, value), 4096) == same


def lines(kind: str, text: str, path: str = "/etc/x.conf") -> list[str]:
    return [line.value for line in core.lines_of(kind, [core.File(path, text)], "rail0")]


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        (core.NETWORKD, "[Link]\nMTUBytes=1500\n#MTUBytes=1\n;MTUBytes=2\n MTUBytes = 9K\n", ["1500", "9K"]),
        (core.NETWORKD, "[Route]\nMTUBytes=1400\n[ Link]\nMTUBytes=1\n[Link]\nMTUBytes=9000\n", ["9000"]),
        (core.NETWORKD, "MTUBytes=1400\n", []),
        (core.MANAGER, "[ethernet]\nmtu=9000\nmtu-x=1\n", ["9000"]),
        (core.MANAGER, "[ipv6]\nmtu=1280\n[802-3-ethernet]\nmtu=9000\n[connection]\nmtu=1\n", ["9000"]),
        (core.MANAGER, "[main]\nethernet.mtu=1\n[connection-x]\n802-3-ethernet.mtu=2\n", ["2"]),
        (core.MANAGER, "[connection-a]\nmatch-device=interface-name:rail1\nethernet.mtu=1\n", []),
        (
            core.MANAGER,
            "[connection-a]\nethernet.mtu=1\nmatch-device=interface-name:eth0,interface-name:rail*\n",
            ["1"],
        ),
        (core.MANAGER, "[connection-a]\nmatch-device=mac:52:54:00:00:00:01\nethernet.mtu=1\n", ["1"]),
        (
            core.MANAGER,
            "[connection-a]\nmatch-device=interface-name:=eth0\n[connection]\nethernet.mtu=1\n",
            ["1"],
        ),
        (core.NOBODY, 'KERNEL=="eth*|rail0", ATTR{mtu}="9000"\n', ["9000"]),
        (core.NOBODY, 'NAME=="eth0", ATTR{mtu}="9000"\nATTR{mtu}=="1500", X="1"\n', []),
        (core.NOBODY, 'DRIVERS=="mlx5_core", ATTR{mtu}="9000"\n', ["9000"]),
        (core.IFCFG, "MTU='9000'\nMTU_X=1\n# MTU=1\n", ["9000"]),
        (
            core.NETPLAN,
            "      mtu: 9000\n      # mtu: 1\n    x: {a: 1, mtu: 1500}\n  y: # mtu: 2\n",
            ["9000", "1500"],
        ),
    ],
)
def test_lines_of_others(kind: str, text: str, values: list[str]) -> None:
    """What cannot be judged counts: an owner that may overwrite is named."""
    assert lines(kind, text) == values


def test_what_is_ours_is_not_of_others() -> None:
    assert lines(core.NETWORKD, "MTUBytes=1\n", "/etc/systemd/network/a.network.d/90-rdma-k8s-mtu.conf") == []
    file, _mode = core.file_of(
        core.Owner(core.IFCFG, "/s/ifcfg-rail0"), "rail0", 4200, "DEVICE=rail0\nMTU=9000\n"
    )
    found = core.lines_of(core.IFCFG, [file], "rail0")
    assert [str(line) for line in found] == ["/s/ifcfg-rail0:2"]
    assert core.without_block(file.text) == "DEVICE=rail0\nMTU=9000\n"
    again, _mode = core.file_of(core.Owner(core.IFCFG, "/s/ifcfg-rail0"), "rail0", 4200, file.text)
    assert again == file


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({}, "none"),
        (
            {"networkd": "ADMIN_STATE=configured\nNETWORK_FILE=/run/a.network\n"},
            "systemd-networkd (/run/a.network)",
        ),
        ({"networkd": "ADMIN_STATE=configured\nNETWORK_FILE=\n"}, "none"),
        (
            {"networkd": "ADMIN_STATE=failed\nNETWORK_FILE=/run/systemd/network/10-netplan-a.b.network\n"},
            "netplan (/run/systemd/network/10-netplan-a.b.network)",
        ),
        ({"manager": "[device]\nmanaged=false\nconnection-uuid=u\n"}, "none"),
        ({"manager": "[device]\nmanaged=true\n"}, "none"),
        ({"manager": "[device]\nmanaged=true\nconnection-uuid=u\n"}, "NetworkManager"),
        (
            {
                "manager": "managed=1\nconnection-uuid=u\n",
                "profiles": (
                    core.File("/x", "uuid=v\n"),
                    core.File("/run/NetworkManager/system-connections/netplan-a.nmconnection", "uuid=u\n"),
                ),
            },
            "netplan (/run/NetworkManager/system-connections/netplan-a.nmconnection)",
        ),
        ({"ifcfg": (core.File("/s/ifcfg-x", 'DEVICE="rail0"\n'),)}, "ifcfg (/s/ifcfg-x)"),
        ({"ifcfg": (core.File("/s/ifcfg-rail0", ""),)}, "ifcfg (/s/ifcfg-rail0)"),
        ({"ifcfg": (core.File("/s/ifcfg-rail01", ""),)}, "none"),
        ({"interfaces": (core.File("/i", "iface rail0 inet manual\n"),)}, "ifupdown (/i)"),
        ({"interfaces": (core.File("/i", "# iface rail0\niface rail01 inet manual\n"),)}, "none"),
    ],
)
def test_owners(found: dict[str, Any], expected: str) -> None:
    """S35, S38: what runs has the first word."""
    assert str(core.owner_of("rail0", core.Evidence(**found))) == expected


def test_a_definition_of_netplan_that_no_file_name_holds_is_refused() -> None:
    with pytest.raises(RdmaError) as caught:
        core.file_of(core.Owner(core.NETPLAN, "/x", "a/../b"), "rail0", 4200)
    assert caught.value.code == "mtu_owner_unsupported"


BEGIN, END = "# rdma.k8s.nic_mtu: begin\n", "# rdma.k8s.nic_mtu: end\n"


@pytest.mark.parametrize(
    ("text", "rest", "others"),
    [
        ("A=1\n" + BEGIN + "MTU=1\n" + END + "B=2\n", "A=1\nB=2\n", []),
        ("A=1\n" + BEGIN + "MTU=1\nIPADDR=10.0.0.1\nONBOOT=yes\n", "A=1\nIPADDR=10.0.0.1\nONBOOT=yes\n", []),
        (BEGIN + "IPADDR=10.0.0.1\nMTU=7\n", "IPADDR=10.0.0.1\nMTU=7\n", ["7"]),
        (BEGIN + "B=2\nMTU=1\nC=3\n" + END + "MTU=7\n", "B=2\nC=3\nMTU=7\n", ["7"]),
        (BEGIN + BEGIN + "MTU=1\n" + END + "MTU=7", "MTU=7", ["7"]),
        (BEGIN + "MTU=1\nB=2\n" + BEGIN + "MTU=1\n" + END, "B=2\n", []),
        ("A=1\n" + END + "MTU=7\n", "A=1\nMTU=7\n", ["7"]),
        (BEGIN + "MTU=1", "", []),
        (BEGIN, "", []),
    ],
)
def test_only_our_lines_are_taken_out_of_a_script(text: str, rest: str, others: list[str]) -> None:
    """Whatever somebody did to our marks: no line of theirs is lost."""
    assert core.without_block(text) == rest
    assert lines(core.IFCFG, text) == others
