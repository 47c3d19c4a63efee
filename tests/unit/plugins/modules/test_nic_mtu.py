# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module nic_mtu, run whole: files of every owner over recorded trees, the MTU itself in a network namespace.

Decision 15: live by netlink, kept by a file, tried with ``netplan generate``, never ``netplan apply``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import commands, undo, undo_report
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import nic_mtu, node_undo
from ansible_collections.rdma.k8s.tests.support import change_run

MTU = 4200
HEADER = "# Written by rdma.k8s.nic_mtu: the whole file is replaced.\n"
UUID = "3f1c"
NETWORKD_FILE = "/etc/systemd/network/20-rails.network"
DROP_IN = "/etc/systemd/network/20-rails.network.d/90-rdma-k8s-mtu.conf"
SCRIPT = "/etc/sysconfig/network-scripts/ifcfg-rail0"
PROFILE = "/etc/NetworkManager/system-connections/rail.nmconnection"


class Tree:
    """The recorded tree of a node: eth0 with the default route, rail0, rail1, and a virtual function of rail0."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.links = [
            {"index": 2, "name": "eth0", "mtu": 1500},
            {"index": 3, "name": "rail0", "mtu": 1500},
            {"index": 4, "name": "rail1", "mtu": 1500},
            {"index": 5, "name": "rail0v0", "mtu": 1500},
        ]
        self.routes: list[dict[str, Any]] = [{"family": 2, "link": 2, "gateway": "10.0.0.1"}]
        for link, place in (("rail0", "0c:00.0"), ("rail1", "0c:00.1"), ("rail0v0", "0c:00.2")):
            base = "sys/devices/pci0000:0c/0000:" + place
            for name, text in (("class", "0x020000"), ("vendor", "0x15b3"), ("device", "0x1021")):
                self.write("/%s/%s" % (base, name), text + "\n")
            (path / base / "net" / link).mkdir(parents=True)
            self.link("/sys/class/net/" + link, "../../../%s/net/%s" % (base, link))
            self.link("/%s/net/%s/device" % (base, link), "../../../0000:" + place)
            self.link("/sys/bus/pci/devices/0000:" + place, "../../../../" + base)
        self.link("/sys/devices/pci0000:0c/0000:0c:00.2/physfn", "../0000:0c:00.0")
        self.save()

    def write(self, path: str, text: str) -> None:
        place = self.path / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def link(self, path: str, target: str) -> None:
        place = self.path / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def read(self, path: str) -> str:
        return (self.path / path[1:]).read_text()

    def save(self, **mtus: int) -> None:
        for link in self.links:
            link["mtu"] = mtus.get(str(link["name"]), link["mtu"])
        record = {"links": self.links, "addresses": [], "routes": self.routes, "rules": []}
        self.write("/netlink.json", json.dumps({"rtnetlink": record}))

    # Owners

    def networkd(self, *indexes: int, file: str = NETWORKD_FILE, text: str = "[Match]\nName=rail*\n") -> None:
        for index in indexes:
            self.write(
                "/run/systemd/netif/links/%d" % index, "ADMIN_STATE=configured\nNETWORK_FILE=%s\n" % file
            )
        self.write(file, text)

    def manager(self, profile: str = PROFILE, text: str = "[connection]\nuuid=%s\n" % UUID) -> None:
        self.write("/run/NetworkManager/devices/3", "[device]\nmanaged=true\nconnection-uuid=%s\n" % UUID)
        self.write(profile, text)

    # Runs

    def options(self, *names: str, **options: Any) -> dict[str, Any]:
        given = {"host_root": str(self.path), "nics": list(names or ("rail0",)), "mtu": MTU, "live": False}
        return {**given, **options}

    def good(self, *names: str, **options: Any) -> dict[str, Any]:
        """A run after check mode has foreseen it exactly, and before a second one that changes nothing."""
        given = self.options(*names, **options)
        before = change_run.contents(self.path)
        foreseen = change_run.good(nic_mtu, **given, _ansible_check_mode=True, _ansible_diff=True)
        assert change_run.contents(self.path) == before
        result = change_run.good(nic_mtu, **given, _ansible_diff=True)
        assert result == foreseen
        after = change_run.contents(self.path)
        assert (after != before) == result["changed"]
        assert not change_run.good(nic_mtu, **given)["changed"]
        assert change_run.contents(self.path) == after
        return result

    def refused(self, *names: str, **options: Any) -> dict[str, Any]:
        before = change_run.contents(self.path)
        result = change_run.failure(nic_mtu, **self.options(*names, **options))
        assert change_run.contents(self.path) == before
        return result

    def undo(self) -> None:
        assert {entry.outcome for entry in undo.undo(Root(str(self.path)), ["nic_mtu"])} <= {"restored"}


@pytest.fixture(name="tree")
def tree_fixture() -> Iterator[Tree]:
    with change_run.directory() as place:
        (place / "node").mkdir()
        yield Tree(place / "node")


def owner(result: dict[str, Any]) -> tuple[str, str, str]:
    nic = result["nics"][0]
    return nic["owner"], nic["source"], nic["file"]


# Owners


def test_systemd_networkd_gets_a_drop_in_beside_its_file(tree: Tree) -> None:
    tree.networkd(3)
    before = change_run.contents(tree.path)
    assert owner(tree.good()) == ("systemd-networkd", NETWORKD_FILE, DROP_IN)
    assert tree.read(DROP_IN) == HEADER + "[Link]\nMTUBytes=4200\n"
    assert tree.read(NETWORKD_FILE) == "[Match]\nName=rail*\n"
    tree.undo()
    assert change_run.contents(tree.path) == before


def test_a_drop_in_that_would_reach_other_nics_is_refused(tree: Tree) -> None:
    tree.networkd(3, 4)
    result = tree.refused("rail0")
    assert (result["code"], result["details"]["others"]) == ("mtu_file_shared", ["rail1"])
    assert len(tree.good("rail0", "rail1")["actions"]) == 1


def test_a_later_drop_in_would_overwrite_ours_and_an_earlier_one_not(tree: Tree) -> None:
    tree.networkd(3, text="[Match]\nName=rail0\n[Link]\nMTUBytes=9000\n")
    later = "/run/systemd/network/20-rails.network.d/99-site.conf"
    tree.write("/usr/lib/systemd/network/20-rails.network.d/50-x.conf", "[Link]\nMTUBytes=1500\n")
    tree.write(later, "[Link]\n# MTUBytes=1\n MTUBytes = 9000\n")
    result = tree.refused()
    assert (result["code"], result["details"]["places"]) == ("mtu_overwritten", [later + ":3"])
    tree.write(later, "[Link]\nMTUBytes=4200\n")
    assert owner(tree.good())[2] == ""  # it says what is wanted
    (tree.path / later[1:]).unlink()
    assert owner(tree.good())[2] == DROP_IN


def test_network_manager_gets_a_default_for_this_device(tree: Tree) -> None:
    tree.manager()
    kept = "/etc/NetworkManager/conf.d/90-rdma-k8s-mtu-rail0.conf"
    tree.write(
        "/etc/NetworkManager/conf.d/50-site.conf",
        "[connection-x]\nmatch-device=interface-name:eth*\nethernet.mtu=1500\n[connection]\nethernet.mtu=0\n",
    )
    tree.write(kept.replace("rail0", "rail1"), "[connection-y]\nethernet.mtu=9000\n")  # ours, of another NIC
    assert owner(tree.good()) == ("NetworkManager", PROFILE, kept)
    section = "[connection-rdma-k8s-rail0]\nmatch-device=interface-name:rail0\nethernet.mtu=4200\n"
    assert tree.read(kept) == HEADER + section
    assert tree.read(PROFILE) == "[connection]\nuuid=%s\n" % UUID


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        (PROFILE, "[connection]\nuuid=3f1c\n[ethernet]\nmtu=9000\n", PROFILE + ":4"),
        (
            "/etc/NetworkManager/conf.d/99-site.conf",
            "[connection-z]\nmatch-device=interface-name:rail*\nethernet.mtu=1500\n",
            "/etc/NetworkManager/conf.d/99-site.conf:3",
        ),
        (
            "/run/NetworkManager/conf.d/a.conf",
            "[connection]\nethernet.mtu=1500\n",
            "/run/NetworkManager/conf.d/a.conf:2",
        ),
    ],
)
def test_a_profile_with_an_mtu_of_its_own_is_named(tree: Tree, path: str, text: str, place: str) -> None:
    tree.manager()
    tree.write(path, text)
    result = tree.refused()
    assert (result["code"], result["details"]["places"]) == ("mtu_overwritten", [place])


def test_network_manager_on_network_scripts(tree: Tree) -> None:
    """The profile is an ifcfg file, which NetworkManager reads: its MTU line counts."""
    tree.manager(SCRIPT, 'DEVICE=rail0\nUUID="%s"\nMTU=9000\n' % UUID)
    assert tree.refused()["details"]["places"] == [SCRIPT + ":3"]
    tree.write(SCRIPT, 'DEVICE=rail0\nUUID="%s"\n' % UUID)
    assert owner(tree.good())[:2] == ("NetworkManager", SCRIPT)


def test_network_scripts_get_a_marked_block_and_keep_every_line(tree: Tree) -> None:
    tree.write(SCRIPT, "DEVICE=rail0\nONBOOT=yes")
    os.chmod(tree.path / SCRIPT[1:], 0o640)
    before = change_run.contents(tree.path)
    assert owner(tree.good()) == ("ifcfg", SCRIPT, SCRIPT)
    block = "# rdma.k8s.nic_mtu: begin\nMTU=%d\n# rdma.k8s.nic_mtu: end\n"
    assert tree.read(SCRIPT) == "DEVICE=rail0\nONBOOT=yes\n" + block % 4200
    assert oct((tree.path / SCRIPT[1:]).stat().st_mode)[-3:] == "640"
    tree.good(mtu=9000)
    assert tree.read(SCRIPT) == "DEVICE=rail0\nONBOOT=yes\n" + block % 9000
    tree.undo()
    assert change_run.contents(tree.path) == before
    tree.good()
    tree.good(state="absent", mtu=None)
    assert tree.read(SCRIPT) == "DEVICE=rail0\nONBOOT=yes\n"
    tree.write(SCRIPT, "DEVICE=rail0\nMTU=1500\n")
    assert tree.refused()["details"]["places"] == [SCRIPT + ":2"]
    tree.write(SCRIPT, 'DEVICE=rail0\nMTU="4200"\n')
    assert not tree.good()["changed"]


def test_a_copy_of_a_script_owns_nothing(tree: Tree) -> None:
    """network-scripts and NetworkManager pass over it, so an MTU in it would never be set."""
    for suffix in (".rpmsave", ".bak", "~", ".orig", ".rpmnew"):
        tree.write(SCRIPT + suffix, "DEVICE=rail0\nUUID=%s\n" % UUID)
    assert owner(tree.good())[0] == "none"
    tree.manager("/etc/NetworkManager/system-connections/a.nmconnection~")
    tree.write(PROFILE, "[connection]\nuuid=%s\n" % UUID)
    assert owner(tree.good())[:2] == ("NetworkManager", PROFILE)


def test_a_script_keeps_its_bytes_and_every_line_of_others(tree: Tree) -> None:
    """Another encoding, and an end mark that somebody took away."""
    text = b"DEVICE=rail0\n# f\xfcr\n# rdma.k8s.nic_mtu: begin\nMTU=9000\nIPADDR=10.0.0.1\nONBOOT=yes\n"
    place = tree.path / SCRIPT[1:]
    tree.write(SCRIPT, "")
    place.write_bytes(text)
    tree.good()
    kept = b"DEVICE=rail0\n# f\xfcr\nIPADDR=10.0.0.1\nONBOOT=yes\n"
    assert place.read_bytes() == kept + b"# rdma.k8s.nic_mtu: begin\nMTU=4200\n# rdma.k8s.nic_mtu: end\n"
    tree.undo()
    assert place.read_bytes() == text
    tree.good(state="absent", mtu=None)
    assert place.read_bytes() == kept


def test_a_drop_in_that_other_nics_need_is_not_removed(tree: Tree) -> None:
    tree.networkd(3, 4)
    assert not tree.good("rail0", state="absent", mtu=None)["changed"]
    tree.good("rail0", "rail1")
    result = tree.refused("rail0", state="absent", mtu=None)
    assert (result["code"], result["details"]["others"]) == ("mtu_file_shared", ["rail1"])
    assert tree.good("rail0", "rail1", state="absent", mtu=None)["actions"] == ["remove " + DROP_IN]


def test_the_mtu_of_a_route_is_not_that_of_its_nic(tree: Tree) -> None:
    """systemd.network knows MTUBytes= in [Route], NetworkManager mtu= in [ipv6]."""
    tree.networkd(3, text="[Match]\nName=rail0\n[Route]\nMTUBytes=4200\n")
    tree.write("/etc/systemd/network/20-rails.network.d/99-route.conf", "[Route]\nMTUBytes=1200\n")
    assert owner(tree.good())[2] == DROP_IN
    (tree.path / "run/systemd/netif/links/3").unlink()
    tree.manager(text="[connection]\nuuid=%s\n[ipv6]\nmtu=1280\n" % UUID)
    assert owner(tree.good())[2] == "/etc/NetworkManager/conf.d/90-rdma-k8s-mtu-rail0.conf"


def test_nobody_means_a_udev_rule(tree: Tree) -> None:
    kept = "/etc/udev/rules.d/90-rdma-k8s-mtu-rail0.rules"
    tree.write(
        "/etc/udev/rules.d/95-other.rules", 'KERNEL=="eth*", ATTR{mtu}="9000"\nATTR{mtu}=="1500", RUN+="x"\n'
    )
    assert owner(tree.good()) == ("none", "", kept)
    assert tree.read(kept) == (
        HEADER + 'ACTION=="add", SUBSYSTEM=="net", NAME=="rail0", ATTR{mtu}="4200"\n'
        'ACTION=="add", SUBSYSTEM=="net", NAME=="", KERNEL=="rail0", ATTR{mtu}="4200"\n'
    )
    tree.write("/lib/udev/rules.d/99-late.rules", 'SUBSYSTEM=="net", KERNEL=="rail?", ATTR{mtu}="9000"\n')
    assert tree.refused(mtu=4000)["details"]["places"] == ["/lib/udev/rules.d/99-late.rules:1"]


def test_ifupdown_is_named_and_left_alone(tree: Tree) -> None:
    tree.write("/etc/network/interfaces", "auto lo\niface rail0 inet static\n  address 10.0.0.1/24\n")
    result = tree.refused()
    assert (result["code"], "ifupdown (/etc/network/interfaces)" in result["msg"]) == (
        "mtu_owner_unsupported",
        True,
    )
    assert not tree.good(persist=False)["changed"]


def test_two_owners_are_an_error(tree: Tree) -> None:
    tree.networkd(3)
    tree.manager()
    assert tree.refused()["code"] == "nic_has_two_owners"


@pytest.mark.parametrize("state", ["unmanaged", "pending"])
def test_what_networkd_does_not_manage_is_not_its_own(tree: Tree, state: str) -> None:
    tree.write("/run/systemd/netif/links/3", "ADMIN_STATE=%s\nNETWORK_FILE=%s\n" % (state, NETWORKD_FILE))
    assert owner(tree.good())[0] == "none"


# netplan


class Netplan:
    """Stands in for ``netplan generate``: of each definition, the last file by name with an mtu line wins."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.refuses = False

    def run(self, root: Root, argv: list[str], _limit: float, **_options: Any) -> commands.Completed:
        self.calls.append(list(argv))
        assert argv[:2] == ["netplan", "generate"], "netplan apply is never run"
        if self.refuses:
            said = "z.yaml:3:13: Error: unknown key 'mtuu'\n  x: {mtuu: 1}\n      ^\n"
            return commands.Completed("", said, 1)
        place = Path(root.path + (argv[3] if len(argv) > 2 else ""))
        found: dict[str, str] = {}
        files = [file for name in ("lib", "etc", "run") for file in (place / name / "netplan").glob("*.yaml")]
        for file in sorted(files, key=lambda path: path.name):
            for key, text in re.findall(r"^    (\w+):\n((?:      .*\n)*)", file.read_text(), re.MULTILINE):
                match = re.search(r"mtu: (\d+)", text)
                found[key] = match[1] if match else found.get(key, "")
        output = place / "run/systemd/network"
        output.mkdir(parents=True, exist_ok=True)
        for key, mtu in found.items():
            link = "[Link]\nMTUBytes=%s\n" % mtu if mtu else ""
            (output / ("10-netplan-%s.network" % key)).write_text("[Match]\nName=%s\n%s" % (key, link))
        return commands.Completed("", "", 0)


PLAN = "network:\n  version: 2\n  ethernets:\n    fast:\n      dhcp4: false\n    slow:\n      mtu: 1500\n"
PLANNED = "/run/systemd/network/10-netplan-fast.network"
KEPT = "/etc/netplan/99-rdma-k8s-fast.yaml"


@pytest.fixture(name="planned")
def planned_fixture(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Netplan:
    """rail0 is what netplan calls ``fast``, for systemd-networkd."""
    netplan = Netplan()
    monkeypatch.setattr(commands, "run", netplan.run)
    tree.write("/etc/netplan/01-site.yaml", PLAN)
    netplan.run(Root(str(tree.path)), ["netplan", "generate"], 1)
    netplan.calls.clear()
    tree.networkd(3, file=PLANNED, text=tree.read(PLANNED))
    return netplan


def test_netplan_gets_a_file_of_ours_that_it_has_tried_before(tree: Tree, planned: Netplan) -> None:
    """S35, decision 15."""
    result = change_run.good(nic_mtu, **tree.options())
    assert owner(result) == ("netplan", PLANNED, KEPT)
    assert tree.read(KEPT) == HEADER + "network:\n  version: 2\n  ethernets:\n    fast:\n      mtu: 4200\n"
    assert oct((tree.path / KEPT[1:]).stat().st_mode)[-3:] == "600"  # netplan warns about others
    assert tree.read("/etc/netplan/01-site.yaml") == PLAN
    assert "MTUBytes=4200" in tree.read(PLANNED)
    trial = ["netplan", "generate", "--root-dir", "/run/rdma-k8s-netplan"]
    assert planned.calls == [trial, trial, ["netplan", "generate"]]
    assert not (tree.path / "run/rdma-k8s-netplan").exists()
    planned.calls.clear()
    assert not change_run.good(nic_mtu, **tree.options())["changed"]
    assert planned.calls == [trial, trial]


def test_netplan_is_foreseen_and_undone(tree: Tree, planned: Netplan) -> None:
    before = change_run.contents(tree.path)
    foreseen = change_run.good(nic_mtu, **tree.options(), _ansible_check_mode=True)
    assert change_run.contents(tree.path) == before
    assert foreseen == change_run.good(nic_mtu, **tree.options())
    tree.undo()
    assert not (tree.path / KEPT[1:]).exists()
    change_run.good(nic_mtu, **tree.options())
    planned.calls.clear()
    change_run.good(nic_mtu, **tree.options(state="absent", mtu=None))
    assert (planned.calls, change_run.contents(tree.path)) == ([["netplan", "generate"]], before)


def test_what_netplan_had_no_time_to_generate_is_generated_by_the_next_run(
    tree: Tree, planned: Netplan
) -> None:
    """A run that was killed, or whose netplan failed, behind the file; present and absent, foreseen each time."""

    def regenerated(**options: Any) -> None:
        planned.calls.clear()
        foreseen = change_run.good(nic_mtu, **tree.options(**options), _ansible_check_mode=True)
        assert ["netplan", "generate"] not in planned.calls
        result = change_run.good(nic_mtu, **tree.options(**options))
        assert (result, result["actions"]) == (foreseen, ["generate the files of netplan"])
        assert planned.calls[-1] == ["netplan", "generate"]
        assert not change_run.good(nic_mtu, **tree.options(**options))["changed"]

    old = tree.read(PLANNED)
    change_run.good(nic_mtu, **tree.options())
    new = tree.read(PLANNED)
    tree.write(PLANNED, old + "[Route]\nMTUBytes=4200\n")
    regenerated()
    assert tree.read(PLANNED) == new
    change_run.good(nic_mtu, **tree.options(state="absent", mtu=None))
    tree.write(PLANNED, new)
    regenerated(state="absent", mtu=None)
    assert tree.read(PLANNED) == old


def test_undo_lets_netplan_generate_again(
    tree: Tree, planned: Netplan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a link that comes back would get our MTU after the undo."""
    monkeypatch.setattr(commands, "find", lambda root, name: "/usr/sbin/" + name)
    old = tree.read(PLANNED)
    change_run.good(nic_mtu, **tree.options())
    assert tree.read(PLANNED) != old
    given = {"host_root": str(tree.path), "modules": ["nic_mtu"]}
    change_run.good(node_undo, **given)
    change_run.good(node_undo, **given, state="undone", _ansible_check_mode=True)
    assert tree.read(PLANNED) != old
    change_run.good(node_undo, **given, state="undone")
    assert tree.read(PLANNED) == old
    planned.calls.clear()
    assert not change_run.good(node_undo, **given, state="undone")["changed"]
    assert planned.calls == []


def test_what_netplan_refuses_is_not_written(tree: Tree, planned: Netplan) -> None:
    planned.refuses = True
    result = tree.refused()
    assert (result["code"], "unknown key 'mtuu'" in result["msg"]) == ("netplan_refused", True)


def test_a_later_file_of_netplan_would_overwrite_ours(tree: Tree, planned: Netplan) -> None:
    tree.write("/etc/netplan/99-z.yaml", PLAN.replace("dhcp4: false", "mtu: 9000"))
    result = tree.refused()
    assert result["code"] == "mtu_overwritten"
    assert result["details"]["places"] == ["/etc/netplan/99-z.yaml:5", "/etc/netplan/99-z.yaml:7"]


def test_what_netplan_says_already_needs_no_file(tree: Tree, planned: Netplan) -> None:
    tree.write("/etc/netplan/01-site.yaml", PLAN.replace("dhcp4: false", "mtu: 4200"))
    assert not change_run.good(nic_mtu, **tree.options())["changed"]


def test_without_netplan_there_is_one_clear_error(tree: Tree, planned: Netplan, monkeypatch: Any) -> None:
    del planned
    monkeypatch.undo()
    assert tree.refused()["code"] == "tool_missing"


def test_a_link_in_the_place_of_the_trial_is_not_followed(
    tree: Tree, planned: Netplan, tmp_path: Path
) -> None:
    del planned
    (tmp_path / "precious").write_text("x")
    (tree.path / "run/rdma-k8s-netplan").symlink_to(tmp_path)
    assert tree.refused()["code"] == "file_not_written"
    assert (tmp_path / "precious").read_text() == "x"


def test_what_a_killed_trial_left_is_removed(tree: Tree, planned: Netplan) -> None:
    del planned
    tree.write("/run/rdma-k8s-netplan/etc/netplan/secret.yaml", "x")
    change_run.good(nic_mtu, **tree.options())
    assert not (tree.path / "run/rdma-k8s-netplan").exists()


# Refusals


def test_the_nic_of_the_default_route_is_refused(tree: Tree) -> None:
    result = tree.refused("rail0", "eth0")
    assert (result["code"], "default dev eth0" in result["msg"]) == ("nic_carries_default_route", True)


def test_a_part_of_what_carries_the_default_route_is_refused(tree: Tree) -> None:
    tree.links += [
        {"index": 8, "name": "bond0", "mtu": 1500, "kind": "bond"},
        {"index": 9, "name": "bond0.5", "mtu": 1500, "kind": "vlan", "parent": 8},
    ]
    tree.links[1]["master"] = 8
    tree.routes[0]["link"] = 9
    tree.save()
    assert "default dev bond0.5" in tree.refused("rail0")["msg"]
    assert tree.good("rail1")["changed"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure/rdma_network.json",
        "/var/run/oci-hpc/oci-hpc-rdma-configure.json",
        "/snap/oracle-cloud-agent/current/meta/snap.yaml",
    ],
)
def test_a_nic_of_the_agent_is_refused(tree: Tree, path: str) -> None:
    """F57: the agent sets the MTU of its NICs itself."""
    tree.links[1]["name"] = "rdma0"
    tree.save()
    assert tree.good("rdma0")["changed"]
    tree.write(path, "{}")
    assert tree.refused("rdma0")["code"] == "nic_owned_by_oca"
    assert tree.good("rail1")["changed"]


@pytest.mark.parametrize(
    ("names", "options", "code"),
    [
        (["rail9"], {}, "nic_missing"),
        (["rail0"], {"mtu": 67}, "mtu_out_of_range"),
        (["rail0v0"], {}, "mtu_above_physical"),
        (["rail0"], {"live": True}, "recorded_tree"),
    ],
)
def test_what_cannot_be_is_refused(tree: Tree, names: list[str], options: dict[str, Any], code: str) -> None:
    assert tree.refused(*names, **options)["code"] == code


def test_no_nic_at_all_is_refused(tree: Tree) -> None:
    assert change_run.failure(nic_mtu, **{**tree.options(), "nics": []})["code"] == "nics_none_named"


def test_virtual_functions_stay_below_their_physical_one(tree: Tree) -> None:
    """S36, DEV-20: PF 1500 and VF 4200 is the fault; PF and VF together, and PF 9000 with VF 4200, are none."""
    tree.good("rail0v0", "rail0")
    tree.save(rail0=9000)
    tree.good("rail0v0")
    tree.save(rail0v0=4200)
    result = tree.refused("rail0", mtu=1500)
    assert (result["code"], result["details"]["virtual"]) == ("mtu_below_virtual", "rail0v0")
    tree.good("rail0", "rail0v0", mtu=1500)


# Faults of files


def test_killed_at_any_step_the_next_run_repairs_and_undo_restores(
    tree: Tree, planned: Netplan, monkeypatch: pytest.MonkeyPatch
) -> None:
    del planned
    text = HEADER + "network:\n  version: 2\n  ethernets:\n    fast:\n      mtu: 4200\n"
    trial = tree.path / "run/rdma-k8s-netplan"
    restore = undo.undo

    def undone(root: Root, *owners: Any) -> list[undo.Undone]:
        """As node_undo does: what netplan has generated follows its files."""
        done = restore(root, *owners)
        undo_report.reload_units(root, done)
        return done

    def probe() -> dict[str, str]:
        """A killed trial in /run is gone with the next run."""
        if trial.exists():
            shutil.rmtree(trial)
        return {}

    monkeypatch.setattr(undo, "undo", undone)
    monkeypatch.setattr(commands, "find", lambda root, name: "/usr/sbin/" + name)
    given = tree.options()
    assert change_run.killed_everywhere("nic_mtu", given, tree.path, {KEPT[1:]: text}, probe) >= 10


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, capabilities and namespaces need root")


@needs_root
@pytest.mark.parametrize(
    ("mount", "read_only"), [(["-o", "size=8k"], False), ([], True)], ids=["full", "read-only"]
)
def test_on_a_full_or_read_only_disk_the_old_file_stays(
    tree: Tree, mount: list[str], read_only: bool
) -> None:
    tree.write("/etc/udev/rules.d/90-rdma-k8s-mtu-rail0.rules", "old\n")
    tree.write("/etc/udev/rules.d/other.rules", "x\n")
    result = change_run.mounted("nic_mtu", tree.options(), tree.path / "etc/udev/rules.d", mount, read_only)
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert result["after"] == {"90-rdma-k8s-mtu-rail0.rules": "old\n", "other.rules": "x\n"}


# The MTU itself


SETUP = [
    "ip tuntap add nic0 mode tap",
    "ip link add nic1 type veth peer name peer1",
    "ip link set nic0 up",
    "ip link set nic1 up",
    "ip address add 10.9.0.1/24 dev nic1",
]


@pytest.fixture(name="live")
def live_fixture() -> Iterator[Path]:
    """The root of a node whose interfaces are those of the kernel; it has no files of owners."""
    with change_run.directory() as place:
        root = place / "node"
        (root / "etc").mkdir(parents=True)
        yield root


def options(root: Path, *names: str, **more: Any) -> dict[str, Any]:
    return {"host_root": str(root), "nics": list(names or ("nic0",)), "mtu": MTU, **more}


def show(name: str = "nic0") -> dict[str, Any]:
    return {"command": "ip -j link show " + name}


def mtu_of(shown: str) -> int:
    return json.loads(shown)[0]["mtu"]


@needs_root
def test_the_mtu_is_set_kept_foreseen_and_not_set_again(live: Path) -> None:
    runs = [
        options(live, "nic0", "nic1", _ansible_check_mode=True, _ansible_diff=True),
        show(),
        options(live, "nic0", "nic1", _ansible_diff=True),
        show(),
        show("nic1"),
        options(live, "nic0", "nic1"),
    ]
    foreseen, untouched, done, first, second, again = change_run.in_namespace("nic_mtu", runs, SETUP)
    assert foreseen == done
    assert (mtu_of(untouched), mtu_of(first), mtu_of(second)) == (1500, MTU, MTU)
    assert [(nic["name"], nic["before"], nic["mtu"], nic["owner"]) for nic in done["nics"]] == [
        ("nic0", 1500, MTU, "none"),
        ("nic1", 1500, MTU, "none"),
    ]
    assert (again["changed"], again["actions"]) == (False, [])
    assert (live / "etc/udev/rules.d/90-rdma-k8s-mtu-nic1.rules").exists()


@needs_root
def test_undo_restores_the_mtu_by_itself(live: Path) -> None:
    """Decision 16; without the netlink library."""
    code = (
        "import json, sys\n"
        "from ansible_collections.rdma.k8s.plugins.module_utils.host import undo\n"
        "from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root\n"
        "run = module.main\n"
        "def main():\n"
        "    if '-undo' not in sys.argv:\n"
        "        sys.argv.append('-undo')\n"
        "        run()\n"
        "    sys.modules.update({name: None for name in list(sys.modules) if name.startswith('pyroute2')})\n"
        "    print(json.dumps({'undone': [each.outcome for each in undo.undo(Root(%r))]}))\n"
        "    sys.exit(0)\n"
        "module.main = main\n"
    ) % str(live)
    runs = [options(live), show(), options(live), show()]
    _done, changed, undone, restored = change_run.in_namespace("nic_mtu", runs, SETUP, code)
    assert (mtu_of(changed), mtu_of(restored)) == (MTU, 1500)
    assert set(undone["undone"]) == {"restored"}
    assert not (live / "etc/udev").exists()


@needs_root
def test_the_device_and_the_kernel_bound_the_mtu(live: Path) -> None:
    low, high, shown = change_run.in_namespace(
        "nic_mtu", [options(live, mtu=60), options(live, mtu=65522), show()], SETUP
    )
    assert [result["code"] for result in (low, high)] == ["mtu_out_of_range", "mtu_out_of_range"]
    assert "from 68 to 65521, found 65522" in high["msg"]
    assert mtu_of(shown) == 1500


@needs_root
def test_a_nic_that_disappears_in_the_middle_is_one_clear_error(live: Path) -> None:
    patch = (
        "import subprocess\n"
        "from ansible_collections.rdma.k8s.plugins.module_utils.host import raw_netlink\n"
        "ask = raw_netlink.ask\n"
        "def gone(kind, *more):\n"
        "    if kind == raw_netlink.NEW_LINK:\n"
        "        subprocess.run(['ip', 'link', 'del', 'nic0'], check=True)\n"
        "    return ask(kind, *more)\n"
        "raw_netlink.ask = gone\n"
    )
    (result,) = change_run.in_namespace("nic_mtu", [options(live)], SETUP, patch)
    assert (result["code"], result["failed"]) == ("nic_vanished", True)
    assert not (live / "etc/udev").exists()


@needs_root
def test_without_privilege_there_is_one_clear_error(live: Path) -> None:
    words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    result, shown = change_run.in_namespace("nic_mtu", [options(live), show()], SETUP, words=words)
    assert (result["code"], mtu_of(shown)) == ("not_permitted", 1500)
    assert not (live / "etc/udev").exists()


@needs_root
def test_the_default_route_protects_its_nic_and_the_ports_of_its_bridge(live: Path) -> None:
    setup = [
        *SETUP,
        "ip link add br0 type bridge",
        "ip link set nic0 master br0",
        "ip link set br0 up",
        "ip address add 10.8.0.1/24 dev br0",
        "ip route add default via 10.8.0.2",
    ]
    port, bridge, other = change_run.in_namespace(
        "nic_mtu", [options(live), options(live, "br0"), options(live, "nic1")], setup
    )
    assert [result["code"] for result in (port, bridge)] == ["nic_carries_default_route"] * 2
    assert other["changed"]


@needs_root
@pytest.mark.parametrize("group", [False, True])
def test_the_default_route_by_a_nexthop_object_protects_its_nic(live: Path, group: bool) -> None:
    """Without the kernel's compatibility such a route names no interface itself."""
    setup = [
        "ip tuntap add nic0 mode tap",
        "ip link add nic1 type veth peer name peer1",
        "ip link set nic1 up",
        "ip link set peer1 up",
        "ip address add 10.9.0.1/24 dev nic1",
        "sysctl -qw net.ipv4.nexthop_compat_mode=0",
        "ip nexthop add id 1 via 10.9.0.2 dev nic1",
        *(["ip nexthop add id 9 group 1"] if group else []),
        "ip route add default nhid %d" % (9 if group else 1),
    ]
    carrying, other = change_run.in_namespace("nic_mtu", [options(live, "nic1"), options(live)], setup)
    assert (carrying["code"], "default dev nic1" in carrying["msg"]) == ("nic_carries_default_route", True)
    assert other["changed"]


@needs_root
def test_a_rule_that_sends_everything_to_a_table_protects_its_nic(live: Path) -> None:
    """And one for the addresses of a rail does not (S38)."""
    rail = [
        *SETUP,
        "ip address add 10.8.0.1/24 dev nic0",
        "ip route add default via 10.8.0.2",
        "ip route add default via 10.9.0.2 table 101 onlink dev nic1",
        "ip rule add from 10.9.0.1 lookup 101",
    ]
    runs = [options(live, "nic1"), {"command": "ip rule add lookup 101"}, options(live, "nic1")]
    free, _unused, carrying = change_run.in_namespace("nic_mtu", runs, rail)
    assert free["changed"]
    assert (carrying["code"], "default dev nic1 table 101" in carrying["msg"]) == (
        "nic_carries_default_route",
        True,
    )


def test_a_default_route_without_an_interface_protects_every_nic(tree: Tree) -> None:
    tree.routes[0]["link"] = 0
    tree.save()
    result = tree.refused("rail0")
    assert (result["code"], "the interface of 'default' is not known" in result["msg"]) == (
        "route_list_unknown",
        True,
    )


@needs_root
def test_a_number_that_is_no_mtu_is_refused_before_anything(live: Path) -> None:
    results = change_run.in_namespace(
        "nic_mtu", [options(live, "lo", mtu=mtu) for mtu in (65537, 5 * 10**9, -1)], SETUP
    )
    assert [result["code"] for result in results] == ["mtu_out_of_range"] * 3
    assert not (live / "var").exists()


@needs_root
def test_killed_at_any_step_the_mtu_is_repaired_and_restored(live: Path) -> None:
    patch = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ansible_collections.rdma.k8s.plugins.module_utils.host import link_mtu\n"
        "from ansible_collections.rdma.k8s.tests.support import change_run\n"
        "kept = 'etc/udev/rules.d/90-rdma-k8s-mtu-nic0.rules'\n"
        "probe = lambda: {'mtu': str(link_mtu.read()['nic0'].mtu)}\n"
        "options = {'host_root': %r, 'nics': ['nic0'], 'mtu': 4200}\n"
        'text = (%r + \'\'.join(\'ACTION=="add", SUBSYSTEM=="net", %%s, ATTR{mtu}="4200"\\n\' %% each\n'
        '    for each in (\'NAME=="nic0"\', \'NAME=="", KERNEL=="nic0"\')))\n'
        "print(change_run.killed_everywhere('nic_mtu', options, Path(%r), {kept: text}, probe), file=sys.stderr)\n"
    ) % (str(live), HEADER, str(live))
    assert change_run.in_namespace("nic_mtu", [], SETUP, patch) == []
