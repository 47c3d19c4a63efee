# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the other tests of this folder build upon."""

from __future__ import annotations

import json

from .conftest import RAILS, SIMULATED, ControlPlane


def test_simulated_nodes_publish_their_nics(control_plane: ControlPlane) -> None:
    """The API that claims need (F120), and as many devices as DRANET would publish."""
    slices = json.loads(control_plane.kubectl("get", "resourceslices.v1.resource.k8s.io", "-o", "json"))[
        "items"
    ]
    devices = [device for entry in slices for device in entry["spec"]["devices"]]
    assert {entry["spec"]["driver"] for entry in slices} == {"dra.net"}
    assert len(devices) == SIMULATED * RAILS
