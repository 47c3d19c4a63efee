# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module oca_config, run whole over the tree of a node: what it writes, keeps, refuses, and says to restart."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca
from ansible_collections.rdma.k8s.plugins.module_utils.host import undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import oca_config
from ansible_collections.rdma.k8s.tests.support import change_run, fleet, node_tree

PLACE = "etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
FILE = PLACE + "/rdma_network.json"
KEPT = FILE + ".previous"
WANTED = "10.160.0.0/11"
DAY = 1772000000
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, owners and capabilities need root")

TEXT = (
    '{"version": 7, "rdma-network": [{"default-settings": {"rdma_network": "10.224.0.0/12"},'
    ' "subnet-settings": {"netmask": "255.240.0.0"}, "own": [1.50, null]}], "rdma-settings": [{"mtu": "4220"}]}\n'
)
AFTER = (
    TEXT.replace("10.224.0.0/12", WANTED)
    .replace("255.240.0.0", "255.224.0.0")
    .replace('{"netmask"', '{"override_netconfig_netmask": "255.224.0.0", "netmask"')
)


@pytest.fixture(name="tree")
def tree_fixture() -> Iterator[Path]:
    """A node of the reference subnet 10.140.64.0/19 with sixteen NICs; its agent started before its files."""
    with change_run.directory() as place:
        root = place / "node"
        node_tree.write(root, fleet.node("BM.GPU.H100.8", name="n1"), gid_table=1)
        (root / FILE).write_text(TEXT)
        for path in (root / PLACE).iterdir():
            os.utime(path, (DAY, DAY))
        yield root


def agent_started(root: Path, at: int, unit: str = "oracle-cloud-agent.service") -> None:
    """Let the agent's service have two processes; the first started at this time."""
    boot = DAY - 5000
    (root / "proc/stat").write_text("cpu 1 2\nbtime %d\n" % boot)
    ticks = (at - boot) * os.sysconf("SC_CLK_TCK")
    for pid, start in (("41", ticks + 900), ("40", ticks)):
        place = root / "proc" / pid
        place.mkdir(parents=True, exist_ok=True)
        fields = ["S"] + ["0"] * 18 + [str(start)] + ["0"] * 20
        (place / "stat").write_text("%s (agent ) x) %s\n" % (pid, " ".join(fields)))
    group = root / "sys/fs/cgroup/system.slice" / unit
    group.mkdir(parents=True, exist_ok=True)
    (group / "cgroup.procs").write_text("41\n40\n")


def good(root: Path, **options: Any) -> dict[str, Any]:
    return change_run.good(oca_config, host_root=str(root), **options)


def refused(root: Path, **options: Any) -> dict[str, Any]:
    before = change_run.contents(root)
    result = change_run.failure(oca_config, host_root=str(root), **options)
    assert change_run.contents(root) == before
    assert result["changed"] is False
    return result


def test_a_new_network_changes_three_values_and_keeps_the_previous_file(tree: Path) -> None:
    """F51, F55."""
    result = good(tree, rdma_network=WANTED)
    assert (tree / FILE).read_text() == AFTER
    assert (tree / KEPT).read_text() == TEXT
    assert (result["changed"], result["network"], result["netmask"]) == (True, WANTED, "255.224.0.0")
    assert result["previous"] == "/" + KEPT
    assert result["actions"] == ["write /" + KEPT, "change /" + FILE]
    assert oct((tree / FILE).stat().st_mode)[-3:] == "644"
    again = good(tree, rdma_network=WANTED)
    assert (again["changed"], again["actions"]) == (False, [])
    assert (tree / KEPT).read_text() == TEXT


def test_check_mode_says_exactly_what_a_run_does(tree: Path) -> None:
    before = change_run.contents(tree)
    predicted = good(tree, rdma_network=WANTED, _ansible_check_mode=True, _ansible_diff=True)
    assert change_run.contents(tree) == before
    assert predicted == good(tree, rdma_network=WANTED, _ansible_diff=True)
    assert [entry["after"] for entry in predicted["diff"]] == [TEXT, AFTER]


def test_undo_restores_the_file_of_before_the_first_change(tree: Path) -> None:
    """Decision 16."""
    before = change_run.contents(tree)
    good(tree, rdma_network=WANTED)
    good(tree, rdma_network="10.160.0.0/12")
    assert (tree / KEPT).read_text() == AFTER
    outcomes = [entry.outcome for entry in undo.undo(Root(str(tree)), ["oca_config"])]
    assert outcomes == ["restored", "restored"]
    assert change_run.contents(tree) == before


def test_the_mode_of_the_file_stays_and_its_copy_has_it_too(tree: Path) -> None:
    """Who could not read the file cannot read its copy."""
    (tree / FILE).chmod(0o640)
    good(tree, rdma_network=WANTED)
    assert [oct((tree / name).stat().st_mode)[-3:] for name in (FILE, KEPT)] == ["640", "640"]
    assert not good(tree, rdma_network=WANTED)["changed"]
    (tree / KEPT).unlink()
    good(tree, state="absent")
    assert oct((tree / KEPT).stat().st_mode)[-3:] == "640"


def test_a_file_in_another_encoding_is_replaced_when_asked_and_kept_byte_for_byte(tree: Path) -> None:
    old = TEXT.encode().replace(b"version", b"versi\xf3n")
    (tree / FILE).write_bytes(old)
    result = refused(tree, rdma_network=WANTED)
    assert (result["code"], "is not UTF-8" in result["msg"]) == ("oca_json_malformed", True)
    good(tree, rdma_network=WANTED, replace_unusable=True)
    assert str(oca.parse_network((tree / FILE).read_text())) == WANTED
    assert (tree / KEPT).read_bytes() == old
    undo.undo(Root(str(tree)))
    assert (tree / FILE).read_bytes() == old


@pytest.mark.parametrize("nics", [0, -5, 17])
def test_a_node_has_1_to_16_rdma_nics(tree: Path, nics: int) -> None:
    """F18: of none, any network would be large enough."""
    result = refused(tree, rdma_network="10.160.0.0/15", nics=nics)
    assert (result["code"], "expected 1 to 16" in result["msg"]) == ("nic_count", True)


@pytest.mark.parametrize("given", ["10.240.0.0/12", None, 7])
def test_networks_are_lists(tree: Path, given: Any) -> None:
    result = refused(tree, rdma_network=WANTED, networks={"pods": given})
    assert result["code"] == "network_malformed"
    assert "pods: %r is not a list of prefixes." % given in result["msg"]


def test_a_node_without_a_file_gets_one_and_a_directory_like_directoryorcreate(tree: Path) -> None:
    """F54: 0755, owned by who makes it."""
    for name in os.listdir(tree / PLACE):
        (tree / PLACE / name).unlink()
    (tree / PLACE).rmdir()
    old = os.umask(0o077)
    try:
        good(tree, state="directory")
        assert oct((tree / PLACE).stat().st_mode)[-4:] == "0755"
        assert os.listdir(tree / PLACE) == []
        result = good(tree, rdma_network=WANTED)
    finally:
        os.umask(old)
    assert oct((tree / FILE).stat().st_mode)[-3:] == "644"
    assert str(oca.parse_network((tree / FILE).read_text())) == WANTED
    assert result["previous"] == ""
    assert not good(tree, state="directory")["changed"]


def test_absent_removes_the_file_and_keeps_its_content(tree: Path) -> None:
    """F56 says what the agent does without it."""
    result = good(tree, state="absent")
    assert not (tree / FILE).exists()
    assert (tree / KEPT).read_text() == TEXT
    assert [entry["component"] for entry in result["restart_required"]] == ["agent", "driver"]
    assert not good(tree, state="absent")["changed"]


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        ({"rdma_network": "10.160.0.1/11"}, "oca_network_malformed", "expected 10.160.0.0/11"),
        ({"rdma_network": "10.192.0.0/16"}, "oca_network_too_small", "expected /15 or shorter"),
        ({"rdma_network": "10.128.0.0/12"}, "subnet_overlaps_oca_network", "10.140.64.0/19"),
        (
            {"rdma_network": WANTED, "networks": {"pods": ["10.176.0.0/16"]}},
            "oca_network_conflict",
            "pods 10.176",
        ),
        ({"rdma_network": WANTED, "networks": {"pods": ["10.176.0.0"]}}, "network_malformed", "pods"),
        ({"rdma_network": WANTED, "child_range": "10.176.0.0/12"}, "oca_network_conflict", "child range"),
        ({"rdma_network": WANTED, "child_range": "10.176.0.1/12"}, "range_not_masked", "10.176.0.0/12"),
        (
            {"rdma_network": WANTED, "primary_subnet": "10.140.0.0/11"},
            "oca_network_too_small",
            "16 are needed",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tree: Path, options: dict[str, Any], code: str, part: str
) -> None:
    """F133, F18, F25, F45: size, then everything in use."""
    result = refused(tree, **options)
    assert result["code"] == code
    assert part in result["msg"]


def test_a_host_route_is_a_conflict_and_the_route_of_an_rdma_nic_is_not(tree: Path) -> None:
    """F47; a network that grows around the one in use must be possible."""
    netlink = json.loads((tree / "netlink.json").read_text())
    assert any(route["dst"] == "10.224.0.0" for route in netlink["rtnetlink"]["routes"])
    good(tree, rdma_network="10.224.0.0/13", _ansible_check_mode=True)
    index = next(link["index"] for link in netlink["rtnetlink"]["links"] if link["name"] == "eth0")
    route = next(route for route in netlink["rtnetlink"]["routes"] if route["dst"] == "10.224.0.0")
    netlink["rtnetlink"]["routes"].append({**route, "dst": "10.231.1.0", "length": 24, "link": index})
    (tree / "netlink.json").write_text(json.dumps(netlink))
    result = refused(tree, rdma_network="10.224.0.0/13")
    assert "overlaps the host route to 10.231.1.0/24" in result["msg"]


def test_without_metadata_the_size_cannot_be_judged(tree: Path) -> None:
    """F133."""
    (tree / "imds.json").unlink()
    assert refused(tree, rdma_network=WANTED)["code"] == "primary_subnet_unknown"
    good(tree, rdma_network=WANTED, primary_subnet="10.140.64.0/19")


def test_a_broken_file_is_refused_and_replaced_only_when_asked(tree: Path) -> None:
    """F52."""
    (tree / FILE).write_text("{")
    result = refused(tree, rdma_network=WANTED)
    assert (result["code"], "not JSON" in result["msg"]) == ("oca_json_malformed", True)
    good(tree, rdma_network=WANTED, replace_unusable=True)
    assert (tree / KEPT).read_text() == "{"
    assert str(oca.parse_network((tree / FILE).read_text())) == WANTED


def test_a_file_that_is_a_directory_is_one_clear_error(tree: Path) -> None:
    (tree / FILE).unlink()
    (tree / FILE).mkdir()
    assert refused(tree, rdma_network=WANTED)["code"] == "file_unreadable"


# Restarts


def restarts(result: dict[str, Any]) -> list[str]:
    return [entry["component"] for entry in result["restart_required"]]


def test_a_change_needs_both_restarts(tree: Path) -> None:
    """F54, F57."""
    agent_started(tree, DAY + 100, "snap.oracle-cloud-agent.oracle-cloud-agent.service")
    result = good(tree, rdma_network=WANTED)
    assert restarts(result) == ["agent", "driver"]
    assert result["restart_required"][0]["command"] == "snap restart oracle-cloud-agent"
    assert result["agent"] == {
        "unit": "snap.oracle-cloud-agent.oracle-cloud-agent.service",
        "started": DAY + 100,
    }


@pytest.mark.parametrize(
    ("agent", "driver", "expected"),
    [
        (DAY - 60, None, ["agent"]),
        (DAY + 60, None, []),
        (DAY - 1, None, []),
        (None, None, []),
        (DAY + 60, DAY - 60, ["driver"]),
        (DAY + 60, DAY + 90, []),
        (DAY - 60, DAY - 30, ["agent", "driver"]),
    ],
)
def test_a_restart_that_nobody_made_is_noticed(
    tree: Path, agent: Any, driver: Any, expected: list[str]
) -> None:
    """F54, F57, OCA-014: the files are newer than the process; one second is the resolution of the boot time."""
    if agent is not None:
        agent_started(tree, agent)
    options = {"rdma_network": "10.224.0.0/12"}
    good(tree, **options)
    for name in os.listdir(tree / PLACE):
        os.utime(tree / PLACE / name, (DAY, DAY))
    result = good(tree, **options, **({} if driver is None else {"driver_started_at": driver}))
    assert (result["changed"], restarts(result)) == (False, expected)


def test_a_removed_file_still_shows_when_it_was_removed(tree: Path) -> None:
    agent_started(tree, DAY + 60)
    good(tree, state="absent")
    assert restarts(good(tree, state="absent")) == ["agent"]


# Faults


def test_killed_at_any_step_the_next_run_repairs_and_undo_restores(tree: Path) -> None:
    options = {"host_root": str(tree), "rdma_network": WANTED}
    acts = change_run.killed_everywhere("oca_config", options, tree, {FILE: AFTER, KEPT: TEXT})
    assert acts >= 8


@needs_root
@pytest.mark.parametrize(
    ("mount", "read_only"), [(["-o", "size=8k"], False), ([], True)], ids=["full", "read-only"]
)
def test_on_a_full_or_read_only_disk_the_old_file_stays(
    tree: Path, mount: list[str], read_only: bool
) -> None:
    options = {"host_root": str(tree), "rdma_network": WANTED}
    result = change_run.mounted("oca_config", options, tree / PLACE, mount, read_only)
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert ("read-only file system" if read_only else "no space left") in result["msg"].lower()
    assert result["after"] == {name: (tree / PLACE / name).read_text() for name in os.listdir(tree / PLACE)}


@needs_root
def test_without_privilege_there_is_one_clear_error(tree: Path) -> None:
    os.chown(tree / PLACE, 12345, 12345)
    result = change_run.without_privilege("oca_config", {"host_root": str(tree), "rdma_network": WANTED})
    assert (result["failed"], result["code"]) == (True, "file_not_written")
    assert "permission denied" in result["msg"].lower()
    assert (tree / FILE).read_text() == TEXT
    assert not (tree / KEPT).exists()
