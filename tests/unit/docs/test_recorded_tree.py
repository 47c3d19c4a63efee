# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page about recorded trees says what the reader reads."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import Route
from ansible_collections.rdma.k8s.plugins.module_utils.host import records
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect

PAGE = (Path(__file__).resolve().parents[3] / "docs/reference/recorded-tree.md").read_text()
TABLES = {
    "rtnetlink": {
        "links": records.LinkRecord,
        "addresses": records.AddressRecord,
        "routes": records.RouteRecord,
        "rules": records.RuleRecord,
        "ports": records.PortRecord,
    },
    "nftables": {"chains": records.ChainRecord, "rules": records.PacketRuleRecord},
    "dcb": {"interfaces": records.DcbInterface},
}


def tables() -> list[dict[str, set[str]]]:
    """The keys of each list, table by table of the page."""
    found: list[dict[str, set[str]]] = []
    name = ""
    for line in PAGE.splitlines():
        if line.startswith("| List |"):
            found.append({})
        match = re.match(r"\| (?:`(\w+)`)? ?\| (`[^|]*`) \|", line)
        if match and found:
            name = match[1] or name
            found[-1].setdefault(name, set()).update(re.findall(r"`(\w+)`", match[2]))
    return found


def test_every_key_of_each_record_is_described() -> None:
    wanted = [
        {name: {field.name for field in fields(cls)} for name, cls in part.items()}
        for part in TABLES.values()
    ]
    assert tables() == wanted


def test_the_example_is_a_tree(tmp_path: Path) -> None:
    example = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (tmp_path / "netlink.json").write_text(example[1])
    assert set(json.loads(example[1])) == {"rtnetlink", "rdma", "nftables", "dcb", "counters"}
    found = collect("n", str(tmp_path), ["links", "routes", "firewall"])
    assert found.errors == ()
    assert found.routes == (Route("10.224.0.0/12", "rdma0", src="10.224.13.19"),)
    assert [(link.name, link.state, link.addresses) for link in found.links or ()] == [
        ("rdma0", "up", ("10.224.13.19/12",))
    ]
