# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of a roll to the node agent, one line of JSON each, and its answers (decision 23)."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oca_file
from ansible_collections.rdma.k8s.plugins.module_utils.host import (
    agent_step,
    commands,
    netns_mode,
    oca,
    oca_run,
)
from ansible_collections.rdma.k8s.plugins.module_utils.host.changes import Changes
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.plugins.module_utils.host.reboots import BOOT_ID

BOOT = "2d433627-3169-4e39-b688-7fecab5b21e9"


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The root of a node that has booted, and where the agent of the cloud has its file."""
    for path, text in (
        (BOOT_ID, BOOT + "\n"),
        (oca.NETWORK, oca_file.new_file(parse_prefix("10.224.0.0/12"))),
    ):
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return tmp_path


def asked(host: Path, step: str, **options: Any) -> Any:
    """What the program prints for an order."""
    order = json.dumps({"step": step, "host_root": str(host), "options": options})
    target = io.StringIO()
    agent_step.main(io.StringIO(order + "\nmore"), target)
    (line,) = target.getvalue().splitlines()
    return json.loads(line)


@pytest.mark.parametrize("line", ["", "no json", "[]", '{"step": "format_disk"}', '{"options": {}}'])
def test_an_order_that_is_none(line: str) -> None:
    assert agent_step.run(line)["error"]["code"] == "agent_step"


def test_a_look(host: Path) -> None:
    """A node whose kernel has no RDMA has no mode."""
    found = asked(host, "look")["result"]
    assert found == {"netns_mode": "", "oca_network": "10.224.0.0/12", "boot_id": BOOT}
    (host / oca.NETWORK.lstrip("/")).write_text("no json", "utf-8")
    assert asked(host, "look")["result"] == {"netns_mode": "", "oca_network": "", "boot_id": BOOT}


def test_a_reboot_ends_one_boot_only(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that comes again after the boot does nothing."""
    ran: list[list[str]] = []
    monkeypatch.setattr(commands, "run", lambda root, words, limit: ran.append(list(words)))
    assert asked(host, "reboot", boot_id="another")["result"] == {"asked": False, "boot_id": BOOT}
    assert asked(host, "reboot")["result"]["asked"] is False
    assert ran == []
    assert asked(host, "reboot", boot_id=BOOT)["result"] == {"asked": True, "boot_id": BOOT}
    assert [words[-1] for words in ran] == ["reboot"]


def test_the_namespace_mode(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The options of the module, with its defaults; refusals are told as they are."""
    given: list[Any] = []

    def act(changes: Changes, options: Any) -> dict[str, Any]:
        given.append((changes.root.path, options))
        if options["foreign"] == "clean":
            raise RdmaError("second_owner", "Somebody else.", hint="Ask.", places=["a"])
        return {"reboot_required": True}

    monkeypatch.setattr(netns_mode, "act", act)
    assert asked(host, "netns_mode", mode="exclusive")["result"] == {
        "changed": False,
        "reboot_required": True,
    }
    assert given == [
        (
            str(host),
            {
                "mode": "exclusive",
                "path": "/etc/modprobe.d/ib_core.conf",
                "foreign": "report",
                "plan": None,
                "host_root": "/",
            },
        )
    ]
    error = asked(host, "netns_mode", mode="exclusive", foreign="clean")["error"]
    assert (error["code"], error["hint"], error["details"]) == ("second_owner", "Ask.", {"places": ["a"]})


def test_the_agent_of_the_cloud_reads_its_file_again(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F57: it reads it when it starts; the driver is none of this step's business."""
    owed = [
        {"component": "agent", "reason": "x", "command": "snap restart oracle-cloud-agent"},
        {"component": "driver", "reason": "x", "command": "kubectl"},
    ]
    ran: list[list[str]] = []
    monkeypatch.setattr(oca_run, "act", lambda changes, options: {"restart_required": owed})
    monkeypatch.setattr(commands, "run", lambda root, words, limit: ran.append(list(words)))
    told = asked(host, "oca_network", rdma_network="10.160.0.0/11")["result"]
    assert told["restarted"] == ["snap restart oracle-cloud-agent"]
    assert ran == [["snap", "restart", "oracle-cloud-agent"]]


def test_every_step_takes_a_root() -> None:
    assert sorted(agent_step.STEPS) == ["look", "netns_mode", "oca_network", "reboot"]
    assert Root("/host").path == "/host"
