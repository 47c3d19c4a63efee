# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of ``rdma link`` and port files that no vector has: nothing, and what is malformed (S29-S31)."""

from __future__ import annotations

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core import rdma_text
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError


def test_no_device_is_no_port() -> None:
    assert rdma_text.links_of_text("\n") == []
    assert rdma_text.links_of_json("[]") == []


@pytest.mark.parametrize(
    "line",
    [
        "link mlx5_0 state ACTIVE physical_state LINK_UP",
        "link mlx5_0/x state ACTIVE physical_state LINK_UP",
        "link /1 state ACTIVE physical_state LINK_UP",
        "dev mlx5_0/1 state ACTIVE physical_state LINK_UP",
        "link mlx5_0/1 state ACTIVE",
        "error: Operation not permitted",
    ],
)
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(RdmaError) as caught:
        rdma_text.links_of_text("link mlx5_1/1 state ACTIVE physical_state LINK_UP\n" + line)
    assert (caught.value.code, caught.value.details["found"]) == ("rdma_output_malformed", line)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "link mlx5_0/1 state ACTIVE",
        "{}",
        "[7]",
        '[{"ifname": "mlx5_0", "port": true, "state": "ACTIVE", "physical_state": "LINK_UP"}]',
        '[{"ifname": "mlx5_0", "port": 1, "state": 4, "physical_state": "LINK_UP"}]',
    ],
)
def test_json_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(RdmaError) as caught:
        rdma_text.links_of_json(text)
    assert caught.value.code == "rdma_output_malformed"


def test_json_of_an_infiniband_port_has_its_lids() -> None:
    """S31."""
    text = (
        '[{"ifname": "mlx5_0", "port": 1, "subnet_prefix": "fe80::", "lid": 7, "sm_lid": 1, "lmc": 0,'
        ' "state": "ACTIVE", "physical_state": "LINK_UP"}]'
    )
    (port,) = rdma_text.links_of_json(text)
    assert (dict(port.more), port.netdev, port.ready) == (
        {"subnet_prefix": "fe80::", "lid": 7, "sm_lid": 1, "lmc": 0},
        None,
        True,
    )


@pytest.mark.parametrize(
    ("link_layer", "state", "phys_state", "wanted", "ready"),
    [
        ("InfiniBand", "4: ACTIVE", "5: LinkUp", "infiniband", True),
        ("Ethernet", "4: ACTIVE", "3: Disabled", "roce", False),
        ("Ethernet", "", "5: LinkUp", "roce", False),
        ("Ethernet", "4: ACTIVE", "5: LinkUp", "weather", False),
        ("", "4: ACTIVE", "5: LinkUp", "weather", False),
    ],
)
def test_ready_needs_all_three(
    link_layer: str, state: str, phys_state: str, wanted: str, ready: bool
) -> None:
    """S28, S29: a text without a number is no state; an unknown wish matches nothing, not even an empty file."""
    assert rdma_text.sysfs_port(link_layer, state, phys_state).ready(wanted) is ready
