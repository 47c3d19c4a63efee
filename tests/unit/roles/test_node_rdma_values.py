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

from ansible_collections.rdma.k8s.plugins.module_utils.core import nic_places
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.tests.support import fleet

ROLE = Path(__file__).resolve().parents[3] / "roles/node_rdma"


def value(name: str, target: str = "oke_dranet", **given: Any) -> Any:
    """A variable of the role as its tasks see it."""
    loader = DataLoader()
    variables: dict[str, Any] = {}
    for path in ("defaults/main.yml", "vars/main.yml", "vars/%s.yml" % target):
        variables.update(loader.load_from_file(str(ROLE / path), trusted_as_template=True))
    variables["__wanted"] = variables[name]
    variables.update(node_rdma_target=target, __node_rdma_rebooted=False, **given)
    return Templar(loader, variables=variables).template(variables["__wanted"])


def found(snapshot: NodeSnapshot, **changed: Any) -> dict[str, Any]:
    """The answer of nic_info; ``changed`` values go to every NIC."""
    return {"nics": [{**nic, **changed} for nic in nic_places.as_dicts(snapshot)]}


def test_on_oke_the_nics_are_those_of_the_rdma_network() -> None:
    """F73, decision 15: eth0 is an Ethernet port with an RDMA device, too."""
    answer = found(fleet.node("BM.GPU.H100.8", name="n1"))
    rdma_ports = [
        nic["netdev"] or "" for nic in answer["nics"] if nic["device"] and nic["link_layer"] == "Ethernet"
    ]
    assert "eth0" in rdma_ports
    nics = value("__node_rdma_nics", __node_rdma_found=answer)
    assert sorted(nics) == sorted(name for name in rdma_ports if name.startswith("rdma"))
    assert len(nics) == 16


def test_a_node_with_infiniband_has_none_and_owes_nothing() -> None:
    """F81: the port of the default route is the only Ethernet port with an RDMA device."""
    answer = found(fleet.node("BM.GPU.GB200.4", name="n1"))
    assert value("__node_rdma_nics", __node_rdma_found=answer) == []
    assert value("__node_rdma_owes", __node_rdma_found=answer) == []


@pytest.mark.parametrize("target", ["spiderpool_sriov", "ack_lingjun"])
def test_elsewhere_all_but_the_default_route(target: str) -> None:
    """Decision 15; names and networks of other targets are their own."""
    answer = found(fleet.node("BM.GPU.H100.8", name="n1"), rdma_network=False)
    nics = value("__node_rdma_nics", target, __node_rdma_found=answer)
    assert "eth0" not in nics
    assert len(nics) == 16
    assert value("__node_rdma_nics", "oke_dranet", __node_rdma_found=answer) == []


def test_what_the_user_names_is_taken() -> None:
    assert value("__node_rdma_nics", node_rdma_nics=["eth7"]) == ["eth7"]


def test_a_node_without_such_nics_is_told() -> None:
    answer = found(fleet.node("BM.GPU.H100.8", name="n1"), rdma_network=False)
    (owed,) = value("__node_rdma_owes", __node_rdma_found=answer)
    assert owed.startswith("Set node_rdma_nics: no Ethernet NIC of the RDMA network was found")
    assert value("__node_rdma_owes", __node_rdma_found={"skipped": True}) == []


def test_routes_that_are_not_known_exclude_nothing() -> None:
    """The modules refuse then, with the reason."""
    answer = found(fleet.node("BM.GPU.H100.8", name="n1"), default_route=None)
    assert len(value("__node_rdma_nics", __node_rdma_found=answer)) == 16


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
