# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node agent by its role, on a real control plane. What runs in its pods is tested on virtual nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support.role_run import RoleRun

from .conftest import SIMULATED, ControlPlane

SELECTOR = "app.kubernetes.io/name=rdma-k8s-agent"


class Role(RoleRun):
    """The role, and what it makes."""

    def __init__(self, control_plane: ControlPlane, folder: Path) -> None:
        self.control_plane = control_plane
        kubeconfig = str(control_plane.kubeconfig)
        super().__init__(
            "node_agent", folder, kubeconfig=kubeconfig, image="lab.test/rdma-k8s:1", timeout=120
        )

    def pod(self) -> dict[str, Any]:
        """What the DaemonSet makes."""
        text = self.control_plane.kubectl(
            "get", "daemonset", "rdma-k8s-agent", "-n", "kube-system", "-o", "json"
        )
        return json.loads(text)["spec"]["template"]["spec"]

    def made(self) -> list[str]:
        """What there is of it."""
        return self.control_plane.kubectl("get", "all", "-A", "-l", SELECTOR, "-o", "name").split()


@pytest.fixture
def role(control_plane: ControlPlane, tmp_path: Path) -> Role:
    """The role in a directory of its own."""
    return Role(control_plane, tmp_path)


def test_the_life_of_the_agent(role: Role) -> None:
    """Deployed, unchanged, changed to the other mode and back, removed without a trace (decision 23)."""
    assert role.changed("--check") == 1
    assert role.made() == []
    assert role.changed() == 1
    assert len(role.made()) == 1 + SIMULATED
    assert role.changed() == 0

    pod = role.pod()
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {
        "drop": ["ALL"],
        "add": ["DAC_READ_SEARCH", "SYS_CHROOT", "NET_ADMIN"],
    }
    assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (True, False)
    assert (pod["hostNetwork"], pod["automountServiceAccountToken"]) == (True, False)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {mount["mountPath"]: mount.get("recursiveReadOnly") for mount in container["volumeMounts"]} == {
        "/tmp": None,
        "/host": "IfPossible",
    }
    assert not pod.get("hostPID")

    assert role.changed(mode="write") == 1
    security = role.pod()["containers"][0]["securityContext"]
    assert {"SYS_ADMIN", "SYS_MODULE", "NET_ADMIN"} < set(security["capabilities"]["add"])
    assert (security["capabilities"]["drop"], security["privileged"]) == (["ALL"], False)
    assert security["appArmorProfile"] == {"type": "Unconfined"}
    assert role.changed(firewall=False) == 1
    security = role.pod()["containers"][0]["securityContext"]
    assert security["capabilities"]["add"] == ["DAC_READ_SEARCH", "SYS_CHROOT"]
    assert "appArmorProfile" not in security

    assert role.changed(state="absent") == 1
    assert role.made() == []
    assert role.changed(state="absent") == 0


def test_a_node_without_the_agent_is_named(role: Role, control_plane: ControlPlane) -> None:
    """The role fails with the node on which no pod starts, and why; the others do not hide it."""
    control_plane.kubectl("annotate", "node", "sim-0002", "rdma-lab/faults=heartbeat", "--overwrite")
    try:
        sentence = role(timeout=15).failed()
        assert "sim-0002 (no pod)" in sentence or "sim-0002 (the pod rdma-k8s-agent-" in sentence
        assert "sim-0001" not in sentence
    finally:
        control_plane.kubectl("annotate", "node", "sim-0002", "rdma-lab/faults-")
        role(state="absent").good()


def test_there_is_no_agent_without_an_image(role: Role) -> None:
    assert "node_agent_image is not set" in role(image="").failed()
    assert role.made() == []
