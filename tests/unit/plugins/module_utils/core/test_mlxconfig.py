# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What mlxconfig and mstconfig print, in the form that their sources and public threads show (S66-S69)."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import mlxconfig
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError

DUAL = """
Device #1:
----------

Device type:        ConnectX6
Name:               MCX653106A-HDA_Ax
Description:        ConnectX-6 VPI adapter card; HDR IB (200Gb/s) and 200GbE; dual-port QSFP56
Device:             0000:3b:00.0

Configurations:                                          Default             Current             Next Boot
        MEMIC_BAR_SIZE                              0                    0                    0
        HOST_CHAINING_DESCRIPTORS                   Array[0..7]          Array[0..7]          Array[0..7]
*       NUM_OF_VFS                                  0                    8                    8
*       SRIOV_EN                                    False(0)             True(1)              True(1)
RO      MULTI_PORT_VHCA_EN                          False(0)             False(0)             False(0)
*       LINK_TYPE_P1                                IB(1)                IB(1)                ETH(2)
        LINK_TYPE_P2                                IB(1)                IB(1)                IB(1)
        ROCE_CC_PRIO_MASK_P1                        255                  255                  255
The '*' shows parameters with next value different from default/current value.
"""
SHORT = """
Device #1:
----------

Device type:    ConnectX3
Device:         0000:05:00.0

Configurations:                              Next Boot
         SRIOV_EN                            True(1)
         LINK_TYPE_P1                        VPI(3)
         LINK_TYPE_P2                        ETH(2)
"""


def test_a_card_with_two_ports() -> None:
    """S66, S67: default, current, next; the asterisk; settings that are read-only or arrays."""
    query = mlxconfig.parse(DUAL)
    assert dict(query.facts)["Device type"] == "ConnectX6"
    assert len(query.settings) == 8
    assert query.settings["NUM_OF_VFS"] == mlxconfig.Setting("NUM_OF_VFS", "8", "8", "0", True)
    assert query.settings["MULTI_PORT_VHCA_EN"].next == "False"
    assert query.settings["HOST_CHAINING_DESCRIPTORS"].current == "Array[0..7]"
    assert query.ports == {
        1: mlxconfig.Setting("LINK_TYPE_P1", "ETH", "IB", "IB", True),
        2: mlxconfig.Setting("LINK_TYPE_P2", "IB", "IB", "IB", False),
    }


@pytest.mark.parametrize(
    ("wanted", "ports", "to_set", "pending", "owed"),
    [
        ("eth", None, {"LINK_TYPE_P2": 2}, (1,), True),
        ("ib", None, {"LINK_TYPE_P1": 1}, (), False),  # back before the reset: nothing is owed
        ("eth", [1], {}, (1,), True),
        ("ib", [2], {}, (), False),
        ("eth", [2, 2], {"LINK_TYPE_P2": 2}, (), True),
    ],
)
def test_three_states_of_a_port(
    wanted: str, ports: Optional[list[int]], to_set: dict[str, int], pending: Any, owed: bool
) -> None:
    """S69: right now, right after the next reset, still to be set."""
    plan = mlxconfig.plan(mlxconfig.parse(DUAL), wanted, ports)
    assert (plan.configurable, dict(plan.set), plan.pending, plan.reboot_required) == (
        True,
        to_set,
        pending,
        owed,
    )


def test_a_card_that_tells_the_next_value_only() -> None:
    """S66, S67: VPI is neither of the two."""
    query = mlxconfig.parse(SHORT)
    plan = mlxconfig.plan(query, "eth")
    assert (dict(plan.set), plan.reboot_required) == ({"LINK_TYPE_P1": 2}, True)
    assert mlxconfig.plan(query, "eth", [2]).reboot_required is False


def test_a_card_without_the_setting() -> None:
    """S68."""
    text = "".join([line + "\n" for line in DUAL.splitlines() if "LINK_TYPE" not in line])
    plan = mlxconfig.plan(mlxconfig.parse(text), "ib", [1])
    assert (plan.configurable, dict(plan.set), plan.reboot_required) == (False, {}, False)


def test_a_card_with_the_setting_has_it_whatever_ports_are_meant() -> None:
    """S68: an empty list of ports is no verdict on the card."""
    plan = mlxconfig.plan(mlxconfig.parse(DUAL), "ib", [])
    assert (plan.configurable, dict(plan.set)) == (True, {})


def test_a_port_that_the_card_does_not_have() -> None:
    with pytest.raises(RdmaError) as caught:
        mlxconfig.plan(mlxconfig.parse(DUAL), "ib", [1, 3])
    assert (caught.value.code, caught.value.details["ports"]) == ("link_type_port_unknown", [3])


@pytest.mark.parametrize(
    "text", ["", "-E- No such device\n", "LINK_TYPE_P1\n", "LINK_TYPE_P1 IB(1)\n", " X a b\n"]
)
def test_texts_that_are_no_table(text: str) -> None:
    assert mlxconfig.parse(text).ports == {}


@pytest.mark.parametrize(
    ("model", "engine", "dpu"),
    [
        ("EMBEDDED_CPU(1)", "ENABLED(0)", True),
        ("EMBEDDED_CPU(1)", "DISABLED(1)", False),
        ("SEPERATED_HOST(0)", "ENABLED(0)", False),
    ],
)
def test_a_bluefield(model: str, engine: str, dpu: bool) -> None:
    """S72."""
    text = " INTERNAL_CPU_MODEL  %s  %s  %s\n INTERNAL_CPU_OFFLOAD_ENGINE  %s  %s  %s\n"
    assert mlxconfig.is_dpu(mlxconfig.parse(text % (*[model] * 3, *[engine] * 3))) is dpu
    assert mlxconfig.is_dpu(mlxconfig.parse(DUAL)) is False


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (("IB", "InfiniBand", "0207"), ()),
        (("ETH", "Ethernet", "0200"), ()),
        ((None, "Ethernet", None), ()),
        (("VPI", "Ethernet", "0200"), ()),
        (("IB", None, "0280"), ()),
        (
            ("ETH", "InfiniBand", "0207"),
            (
                "the firmware says Ethernet",
                "link_layer in sysfs says InfiniBand",
                "the PCI class says InfiniBand",
            ),
        ),
        (("IB", None, "0200"), ("the firmware says InfiniBand", "the PCI class says Ethernet")),
    ],
)
def test_three_answers_to_one_question(answers: Any, found: tuple[str, ...]) -> None:
    """S28, S75."""
    assert mlxconfig.contradictions(*answers) == found
