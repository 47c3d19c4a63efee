# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module link_type, run whole against programs that keep the state of a firmware: next now, current at a reset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.host import undo
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.modules import link_type, node_undo
from ansible_collections.rdma.k8s.tests.support import change_run, fake_nic
from ansible_collections.rdma.k8s.tests.support.fake_nic import Nics

CARD = "0000:3b:00.0"
TOOL = r"""
import json, os, sys
place = os.path.join(os.environ["TREE"], "firmware.json")
everything = json.load(open(place))
words = sys.argv[1:]
assert words[0] == "-d", words
name, words = words[1], words[2:]
card = everything.get(name)
if card is None:
    print("-E- Failed to open device: %s. No such file or directory" % name, file=sys.stderr)
    sys.exit(1)
if card.get("locked"):
    print("-E- Failed to open device: %s. Operation not permitted" % name)
    sys.exit(3)
rows = card["rows"]
print("\nDevice #1:\n----------\n\nDevice type:        ConnectX6\nName:               MCX653106A-HDA_Ax")
print("Device:             %s\n" % name)
if words == ["-e", "query"]:
    print("Configurations:                                          Default             Current             Next Boot")
    for row, (default, current, following) in rows.items():
        mark = "*" if following != default or following != current else " "
        print("%s       %-44s%-21s%-21s%s" % (mark, row, default, current, following))
    print("The '*' shows parameters with next value different from default/current value.")
elif words[:2] == ["-y", "set"]:
    row, number = words[2].split("=")
    if row not in rows:
        print("-E- The Device doesn't support %s parameter" % row, file=sys.stderr)
        sys.exit(1)
    if not card.get("deaf"):
        rows[row][2] = {"1": "IB(1)", "2": "ETH(2)", "3": "VPI(3)"}[number]
        json.dump(everything, open(place, "w"))
    print("\n Apply new Configuration? (y/n) [n] : y\nApplying... Done!")
    print("-I- Please reboot machine to load new configurations.")
else:
    sys.exit("unknown words %s" % words)
"""
DEVLINK = r"""
import json, os, sys
place = os.path.join(os.environ["TREE"], "devlink.json")
ports = json.load(open(place))
if sys.argv[1:] == ["-j", "port", "show"]:
    print(json.dumps({"port": ports}))
else:
    assert sys.argv[1:3] == ["port", "set"] and sys.argv[4] == "type", sys.argv
    ports[sys.argv[3]]["type"] = sys.argv[5]
    json.dump(ports, open(place, "w"))
"""


@pytest.fixture(name="place")
def place_fixture() -> Iterator[Path]:
    with change_run.directory() as place:
        yield place


class Firmware:
    """Cards with two ports, ``link_type`` in their firmware, programs in the tree."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch, layers: tuple[str, ...], tool: str) -> None:
        self.nics = Nics(place / "node", place / "nics.json", layers)
        self.root = self.nics.root
        fake_nic.install_tool(self.root, "usr/bin/" + tool, TOOL)
        self.started = fake_nic.run_below_root(patch, self.root)
        kind = {"Ethernet": "ETH(2)", "InfiniBand": "IB(1)"}
        rows = {
            "LINK_TYPE_P%d" % port: ["IB(1)", kind[layer], kind[layer]]
            for port, layer in enumerate(layers, 1)
        }
        self.save({CARD: {"rows": {"SRIOV_EN": ["False(0)", "True(1)", "True(1)"], **rows}}})

    def save(self, cards: dict[str, Any]) -> None:
        (self.root / "firmware.json").write_text(json.dumps(cards))

    def card(self) -> dict[str, Any]:
        return dict(json.loads((self.root / "firmware.json").read_text())[CARD])

    def edit(self, **values: Any) -> None:
        self.save({CARD: {**self.card(), **values}})

    def reset(self) -> None:
        """What a reboot does."""
        rows = {name: [row[0], row[2], row[2]] for name, row in self.card()["rows"].items()}
        self.edit(rows=rows)

    def sets(self) -> list[list[str]]:
        return [words for words in self.started if "set" in words]

    def good(self, **more: Any) -> dict[str, Any]:
        return change_run.good(link_type, **{"host_root": str(self.root), "devices": [CARD], **more})

    def refused(self, code: str, **more: Any) -> dict[str, Any]:
        before = change_run.contents(self.root)
        given = {"host_root": str(self.root), "devices": [CARD], **more}
        result = change_run.failure(link_type, **given)
        assert (result["code"], result["changed"]) == (code, False), result
        assert change_run.contents(self.root) == before
        return result


@pytest.fixture(name="card")
def card_fixture(place: Path, monkeypatch: pytest.MonkeyPatch) -> Firmware:
    """A card with two InfiniBand ports; mstconfig."""
    return Firmware(place, monkeypatch, ("InfiniBand", "InfiniBand"), "mstconfig")


WISH = {"link_type": "eth", "allow_firmware": True}


def test_reading_changes_nothing(card: Firmware) -> None:
    result = card.good(devices=["mlx5_0", "mlx5_1", CARD])
    assert (result["changed"], result["reboot_required"]) == (False, False)
    (found,) = result["cards"]
    assert (found["pci"], found["tool"], found["contradictions"]) == (CARD, "mstconfig", [])
    assert found["ports"][1] == {
        "port": 2,
        "default": "IB",
        "current": "IB",
        "next": "IB",
        "link_layer": "InfiniBand",
    }
    assert card.sets() == []


def test_both_ports_are_set_and_a_reboot_is_owed(card: Firmware) -> None:
    """S67, S69: set, then pending, then right."""
    result = card.good(**WISH)
    assert [words[1:] for words in card.sets()] == [
        ["-d", CARD, "-y", "set", "LINK_TYPE_P1=2"],
        ["-d", CARD, "-y", "set", "LINK_TYPE_P2=2"],
    ]
    (found,) = result["cards"]
    assert (result["changed"], result["reboot_required"], found["pending"]) == (True, True, [1, 2])
    again = card.good(**WISH)
    assert (again["changed"], again["actions"], again["reboot_required"]) == (False, [], True)
    card.reset()
    after = card.good(**WISH)
    assert (after["changed"], after["reboot_required"]) == (False, False)


def test_firmware_kernel_and_pci_class_disagree(card: Firmware) -> None:
    """S75: after a reset that the kernel has not seen."""
    card.good(**WISH)
    card.reset()
    (found,) = card.good()["cards"]
    assert found["contradictions"][0] == "port 1: the firmware says Ethernet"
    assert len(found["contradictions"]) == 6


def test_one_port_of_two(card: Firmware) -> None:
    card.good(ports=[2], **WISH)
    assert card.card()["rows"]["LINK_TYPE_P1"][2] == "IB(1)"
    assert card.card()["rows"]["LINK_TYPE_P2"][2] == "ETH(2)"
    card.refused("link_type_port_unknown", ports=[3], **WISH)


REBOOTS = "var/lib/rdma-k8s/reboots.json"


def boot(card: Firmware, number: int) -> None:
    card.nics.write("proc/sys/kernel/random/boot_id", "boot-%d\n" % number)


def test_a_third_reboot_is_refused(card: Firmware) -> None:
    """DEV-01, S69: the card needs a power cycle, which no reboot is."""
    boot(card, 1)
    assert card.good(**WISH)["reboot_required"]
    assert card.good(**WISH)["reboot_required"]  # asking twice in a boot counts once
    boot(card, 2)
    assert card.good(**WISH)["reboot_required"]
    (entry,) = json.loads((card.root / REBOOTS).read_text())["plans"]
    assert (entry["plan"], entry["boots"]) == ("link_type %s eth" % CARD, ["boot-1", "boot-2"])
    boot(card, 3)
    for check in (True, False):
        result = card.refused("reboot_budget_spent", _ansible_check_mode=check, **WISH)
        assert "2 reboots did not give %s the link type Ethernet" % CARD in result["msg"]
    assert card.good()["reboot_required"]  # reading counts nothing and refuses nothing
    card.reset()
    assert not card.good(**WISH)["reboot_required"]
    assert not (card.root / REBOOTS).exists()


def test_a_third_reboot_is_refused_before_the_first_write(card: Firmware) -> None:
    """Something sets the firmware back at each boot."""
    for number in (1, 2):
        boot(card, number)
        card.good(**WISH)
        card.edit(rows={name: [*row[:2], row[1]] for name, row in card.card()["rows"].items()})
    boot(card, 3)
    card.started.clear()
    card.refused("reboot_budget_spent", **WISH)
    assert card.sets() == []


def test_check_mode_counts_no_reboot(card: Firmware) -> None:
    boot(card, 1)
    assert card.good(_ansible_check_mode=True, **WISH)["reboot_required"]
    assert not (card.root / REBOOTS).exists()


def test_empty_lists_are_refused(card: Firmware) -> None:
    """A variable without a value is no wish, and a card that has the setting is no card without it."""
    assert "Nothing is named in devices" in card.refused("nics_none_named", devices=[], **WISH)["msg"]
    assert "Nothing is named in ports" in card.refused("nics_none_named", ports=[], **WISH)["msg"]


def test_without_consent_nothing_is_written(card: Firmware) -> None:
    """Decision 15; also in check mode, since a run would fail."""
    for check in (False, True):
        result = card.refused("consent_missing", link_type="eth", _ansible_check_mode=check)
        assert "LINK_TYPE_P1, LINK_TYPE_P2 must be set on %s" % CARD in result["msg"]
        assert "allow_firmware: true" in result["msg"]
    assert card.good(link_type="ib")["changed"] is False  # nothing to write, nothing to consent to


def test_check_mode_says_exactly_what_a_run_does(card: Firmware) -> None:
    before = change_run.contents(card.root)
    predicted = card.good(_ansible_check_mode=True, _ansible_diff=True, **WISH)
    assert (change_run.contents(card.root), card.sets()) == (before, [])
    done = card.good(_ansible_diff=True, **WISH)
    for key in ("changed", "actions", "diff", "reboot_required"):
        assert predicted[key] == done[key]


def test_a_fixed_type(card: Firmware) -> None:
    """S68: its own verdict, unless the type is the wished one."""
    card.edit(rows={"SRIOV_EN": ["False(0)", "True(1)", "True(1)"]})
    result = card.refused("link_type_not_configurable", **WISH)
    assert "fixed to InfiniBand, and Ethernet was asked for" in result["msg"]
    assert "Replace the card" in result["msg"]
    (found,) = card.good(link_type="ib")["cards"]
    assert (found["configurable"], found["ports"][0]["link_layer"]) == (False, "InfiniBand")


def test_lockdown(card: Firmware) -> None:
    """S73."""
    card.edit(locked=True)
    card.nics.write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
    result = card.refused("firmware_locked_down", **WISH)
    assert "none [integrity] confidentiality" in result["msg"]
    assert "disablePlugins" in result["msg"]


def test_a_bluefield_in_dpu_mode(card: Firmware) -> None:
    """S72; reading is allowed, and so is a wish that is met."""
    dpu = {
        "INTERNAL_CPU_MODEL": ["EMBEDDED_CPU(1)"] * 3,
        "INTERNAL_CPU_OFFLOAD_ENGINE": ["ENABLED(0)"] * 3,
    }
    card.edit(rows={**card.card()["rows"], **dpu})
    card.refused("link_type_dpu", **WISH)
    assert card.good(link_type="ib")["changed"] is False


def test_a_tool_that_writes_nothing(card: Firmware) -> None:
    card.edit(deaf=True)
    result = change_run.failure(link_type, host_root=str(card.root), devices=[CARD], **WISH)
    assert (result["code"], result["changed"]) == ("link_type_ignored", True)


def test_no_tool(card: Firmware) -> None:
    (card.root / "usr/bin/mstconfig").unlink()
    assert "mlxconfig or mstconfig" in card.refused("tool_missing", **WISH)["msg"]
    assert "mlxconfig is needed" in card.refused("tool_missing", tool="mlxconfig")["msg"]


def test_the_vendors_tool_comes_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S66, S71."""
    card = Firmware(place, monkeypatch, ("Ethernet",), "mlxconfig")
    fake_nic.install_tool(card.root, "usr/bin/mstconfig", TOOL)
    assert card.good()["cards"][0]["tool"] == "mlxconfig"
    assert card.good(tool="mstconfig")["cards"][0]["tool"] == "mstconfig"


def test_a_card_that_goes_away(card: Firmware) -> None:
    card.save({})
    assert "No such file" in card.refused("firmware_refused", **WISH)["msg"]


def test_names(card: Firmware) -> None:
    assert card.good(devices=["rdma1"])["cards"][0]["pci"] == CARD
    for name in ("eth7", "0000:99:00.0", "mlx5_9"):
        assert name in card.refused("link_type_device_unknown", devices=[CARD, name], **WISH)["msg"]


def test_undo_writes_the_former_type_back(card: Firmware) -> None:
    """Decision 16: it counts from the next reset, as the change did."""
    before = change_run.contents(card.root)
    card.good(**WISH)
    assert {entry.outcome for entry in undo.undo(Root(str(card.root)), ["link_type"])} == {"restored"}
    assert change_run.contents(card.root) == before


def undone(card: Firmware, **more: Any) -> dict[str, Any]:
    return change_run.good(node_undo, **{"host_root": str(card.root), "state": "undone", **more})


def test_undo_writes_firmware_with_consent_alone(card: Firmware) -> None:
    """Decision 15: what needs consent on the way there needs it on the way back, too."""
    card.good(**WISH)
    card.reset()
    card.started.clear()
    told = undone(card)
    assert card.sets() == []
    assert [(each["outcome"], each["name"].split()[-1]) for each in told["records"]] == [
        ("kept", "LINK_TYPE_P2"),
        ("kept", "LINK_TYPE_P1"),
    ]
    assert "allow_firmware: true" in told["records"][0]["reason"]
    assert (told["changed"], told["reboot_required"]) == (False, False)
    foreseen = undone(card, allow_firmware=True, _ansible_check_mode=True)
    assert card.sets() == []
    done = undone(card, allow_firmware=True)
    assert foreseen == done
    assert len(card.sets()) == 2
    assert (done["changed"], done["reboot_required"]) == (True, True)
    assert done["reboot_reasons"][0] == (
        "mstconfig %s LINK_TYPE_P2 is IB in firmware again, which counts from the next reset, usually a reboot."
        % CARD
    )
    assert undone(card)["records"] == []


def test_undo_before_the_reset_owes_no_reboot(card: Firmware) -> None:
    """S69: the card never worked with the other type."""
    card.good(**WISH)
    done = undone(card, allow_firmware=True)
    assert (done["changed"], done["reboot_required"], done["reboot_reasons"]) == (True, False, [])


def test_what_is_back_by_itself_needs_no_consent(card: Firmware) -> None:
    card.good(**WISH)
    card.edit(rows={name: [*row[:2], row[1]] for name, row in card.card()["rows"].items()})
    card.started.clear()
    assert undone(card)["records"] == []
    assert (card.sets(), undone(card, state="listed")["records"]) == ([], [])


def test_killed_at_every_step(card: Firmware) -> None:
    acts = change_run.killed_everywhere(
        "link_type", {"host_root": str(card.root), "devices": [CARD], "ports": [2], **WISH}, card.root, {}
    )
    assert acts > 4


@pytest.fixture(name="old")
def old_fixture(place: Path, monkeypatch: pytest.MonkeyPatch) -> Firmware:
    """A card of the driver mlx4_core: two ports on one function, devlink (S74)."""
    card = Firmware(place, monkeypatch, ("InfiniBand",), "mstconfig")
    fake_nic.install_tool(card.root, "sbin/devlink", DEVLINK)
    card.nics.write("sys/bus/pci/drivers/mlx4_core/uevent", "")
    card.nics.link("sys/bus/pci/devices/%s/driver" % CARD, "../../../bus/pci/drivers/mlx4_core")
    ports = {"pci/%s/%d" % (CARD, number): {"type": "ib"} for number in (1, 2)}
    (card.root / "devlink.json").write_text(json.dumps({**ports, "pci/0000:99:00.0/1": {"type": "eth"}}))
    return card


def test_devlink_changes_at_once(old: Firmware) -> None:
    """S74."""
    assert old.good()["cards"][0]["tool"] == "devlink"
    old.refused("consent_missing", link_type="eth")
    result = old.good(**WISH)
    assert (result["changed"], result["reboot_required"]) == (True, False)
    assert [words for words in old.started if "set" in words] == [
        ["/sbin/devlink", "port", "set", "pci/%s/%d" % (CARD, number), "type", "eth"] for number in (1, 2)
    ]
    assert old.good(**WISH)["changed"] is False
    assert {entry.outcome for entry in undo.undo(Root(str(old.root)))} == {"restored"}
    assert json.loads((old.root / "devlink.json").read_text())["pci/%s/2" % CARD] == {"type": "ib"}


def test_devlink_prints_something_else(old: Firmware) -> None:
    fake_nic.install_tool(old.root, "sbin/devlink", "print('no ports')")
    assert "something else than ports" in old.refused("command_failed", **WISH)["msg"]
