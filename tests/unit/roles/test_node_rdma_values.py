# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the role node_rdma makes of answers of its modules: which NICs it sets up, what it says is owed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.rdma.k8s.plugins.module_utils import _node_settings as node_settings
from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_places
from ansible_collections.rdma.k8s.tests.support import fleet

ROLE = Path(__file__).resolve().parents[3] / "roles/node_rdma"


def value(name: str, target: str = "oke_dranet", **given: Any) -> Any:
    """A variable of the role as its tasks see it."""
    loader = DataLoader()
    variables: dict[str, Any] = {}
    for path in ("defaults/main.yml", "vars/main.yml", "vars/%s.yml" % target):
        variables.update(loader.load_from_file(str(ROLE / path), trusted_as_template=True))
    variables["__wanted"] = variables[name]
    look = {"pending": [], "nics": [], "found": None}
    variables.update(node_rdma_target=target, __node_rdma_rebooted=False, __node_rdma_look=look)
    variables.update(given)
    return Templar(loader, variables=variables).template(variables["__wanted"])


@pytest.mark.parametrize("target", ["oke_dranet", "spiderpool_sriov", "ack_lingjun"])
def test_wishes_are_options_that_the_modules_take(target: str) -> None:
    """Each target's presets, and all that a user may add, are taken as they are."""
    wishes = value("__node_rdma_wishes", target)
    assert list(wishes) == value("__node_rdma_wanted", target)
    every = value(
        "__node_rdma_wishes",
        target,
        node_rdma_oca_network="10.224.0.0/12",
        node_rdma_mtu="4200",
        node_rdma_sysctls={"arp_ignore": 1},
        node_rdma_qos={"rdma_priority": 5, "cnp_priority": 6},
    )
    assert sorted(every) == sorted(node_settings.SETTINGS)
    for name, given in every.items():
        assert node_settings.options_of(name, given, "/")["host_root"] == "/"


def test_what_is_skipped_is_not_asked_for() -> None:
    assert value("__node_rdma_wanted", node_rdma_skip=["netns_mode", "nic_sysctl"]) == [
        "kernel_modules",
        "runtime_memlock",
    ]


def test_the_last_look_counts() -> None:
    """After a reboot, or when modules were loaded, the NICs may be others."""
    first = {"pending": ["nic_sysctl"], "nics": ["rdma0"], "found": []}
    again = {"pending": [], "nics": ["rdma0", "rdma1"], "found": []}
    for name, early, late in (
        ("__node_rdma_nics", ["rdma0"], ["rdma0", "rdma1"]),
        ("__node_rdma_pending", ["nic_sysctl"], []),
    ):
        assert value(name, __node_rdma_look=first, __node_rdma_look_again={"skipped": True}) == early
        assert value(name, __node_rdma_look=first, __node_rdma_look_again=again) == late


def test_a_node_without_such_nics_is_told() -> None:
    nics = nic_places.as_dicts(fleet.node("BM.GPU.H100.8", name="n1"))
    of_none = {"pending": [], "nics": [], "found": [{**nic, "rdma_network": False} for nic in nics]}
    (owed,) = value("__node_rdma_owes", __node_rdma_look=of_none)
    assert owed.startswith("Set node_rdma_nics: no Ethernet NIC of the RDMA network was found")
    assert value("__node_rdma_owes") == []
    native = {
        "pending": [],
        "nics": [],
        "found": nic_places.as_dicts(fleet.node("BM.GPU.GB200.4", name="n1")),
    }
    assert value("__node_rdma_owes", __node_rdma_look=native) == []


def test_without_consent_the_firmware_is_owed() -> None:
    foreseen = {"actions": ["set mstconfig 0000:3b:00.0 LINK_TYPE_P1"], "reboot_required": True}
    owed = value("__node_rdma_owes", __node_rdma_link_foreseen=foreseen, __node_rdma_link={"skipped": True})
    assert owed == ["Firmware: set mstconfig 0000:3b:00.0 LINK_TYPE_P1"]


def test_what_is_owed_after_undoing() -> None:
    undone = {
        "reboot_reasons": ["The RDMA subsystem runs in exclusive mode until a boot brings shared mode."],
        "restart_required": [
            {"component": "agent", "reason": "r", "command": "snap restart oracle-cloud-agent"}
        ],
        "records": [
            {"outcome": "restored", "reason": ""},
            {"outcome": "kept", "reason": "ib_core cannot go back yet: it is in use."},
        ],
    }
    assert value("__node_rdma_owes_undone", __node_rdma_undone=undone) == [
        "Reboot: The RDMA subsystem runs in exclusive mode until a boot brings shared mode.",
        "Restart: snap restart oracle-cloud-agent",
        "ib_core cannot go back yet: it is in use.",
    ]
    nothing = {"reboot_reasons": [], "restart_required": [], "records": []}
    assert value("__node_rdma_owes_undone", __node_rdma_undone=nothing) == []
