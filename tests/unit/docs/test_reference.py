# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reference pages of snapshot, policy and shapes agree with the code, and their examples are accepted by it."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.module_utils.core import fabric, snapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks import policy
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import shapes

from .pages import page

SNAPSHOT, POLICY, SHAPES = "reference/snapshot.md", "reference/policy.md", "reference/shapes.md"
SECTIONS = {
    "The document": snapshot.NodeSnapshot,
    "collector": snapshot.Collector,
    "host": snapshot.HostInfo,
    "errors": snapshot.ReadError,
    "rdma": snapshot.RdmaSystem,
    "module_options": snapshot.ModuleOption,
    "links": snapshot.Link,
    "devices": snapshot.RdmaDevice,
    "ports": snapshot.RdmaPort,
    "imds": snapshot.Imds,
    "oca": snapshot.Oca,
    "firewall": snapshot.FirewallRule,
    "slow": snapshot.Slow,
    "initramfs": snapshot.Initramfs,
    "reboots": snapshot.RebootPlan,
    "fabric": fabric.Fabric,
    "children": fabric.FabricChild,
    "probes": fabric.FabricProbe,
}
ROWS = {
    "pci": snapshot.PciFunction,
    "gids": snapshot.GidGroup,
    "routes": snapshot.Route,
    "rules": snapshot.Rule,
    "gpus": snapshot.Gpu,
}


def table(name: str, section: str) -> dict[str, list[str]]:
    """The rows of the first table of a section, by the name in their first cell."""
    lines = re.findall(r"^\| `([^`]+)` \|(.*)\|$", page(name).section(section), re.MULTILINE)
    return {field: [cell.strip() for cell in rest.split("|")] for field, rest in lines}


def blocks(name: str, language: str, section: str = "") -> list[str]:
    """The code blocks of a language on a page, or in a section of it."""
    text = page(name).section(section) if section else page(name).text
    return re.findall(r"^```%s\n(.*?)^```$" % language, text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("section", SECTIONS)
def test_fields_of_the_snapshot(section: str) -> None:
    fields = [field.name for field in dataclasses.fields(SECTIONS[section])]
    assert sorted(table(SNAPSHOT, section)) == sorted(fields)


@pytest.mark.parametrize("section", SECTIONS)
def test_defaults_of_the_snapshot(section: str) -> None:
    """``not known`` stands for null, ``must be there`` for a field without a default."""
    for field in dataclasses.fields(SECTIONS[section]):
        if field.name == "schema_version":
            continue
        told = table(SNAPSHOT, section)[field.name][-1]
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        assert told.startswith("must be there") == required, field.name
        assert told.startswith("not known") == (not required and field.default is None), field.name


@pytest.mark.parametrize("section", ROWS)
def test_row_examples_are_read_and_written_the_same(section: str) -> None:
    (block,) = blocks(SNAPSHOT, "text", section)
    rows = [line for line in block.splitlines() if not line.startswith("ADDRESS")]
    assert rows
    assert [str(ROWS[section].parse(line)) for line in rows] == rows


def test_subsets_are_told() -> None:
    told = re.findall(r"`(\w+)`", table(SNAPSHOT, "The document")["subsets"][0])
    assert tuple(told) == snapshot.SUBSETS


def test_both_layouts_of_the_example_are_one_document() -> None:
    readable, compact = [json.loads(block) for block in blocks(SNAPSHOT, "json", "Two layouts")]
    node = snapshot.NodeSnapshot.from_dict({"name": "n", **readable})
    assert node == snapshot.NodeSnapshot.from_dict({"name": "n", **compact})
    assert node.to_dict(compact=True)["links"] == compact["links"]


def settings() -> dict[str, str]:
    """Text of each setting on the page of the policy."""
    parts = re.split(r"^### `(\w+)`$", page(POLICY).section("Settings"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def test_settings_of_the_policy() -> None:
    assert list(settings()) == [field.name for field in dataclasses.fields(policy.Policy)]


@pytest.mark.parametrize("name", settings())
def test_defaults_of_the_policy(name: str) -> None:
    default = getattr(policy.Policy(), name)
    text = settings()[name]
    if default in (None, ()):
        assert re.search(r"Default:\s+none\b", text)
    else:
        assert re.search(r'Default:\s+`"?%s"?`' % re.escape(str(default)), text)


@pytest.mark.parametrize(
    ("section", "cls"), [("Own checks", policy.CustomCheck), ("Waivers", policy.WaiverRule)]
)
def test_keys_of_checks_and_waivers(section: str, cls: Any) -> None:
    rows = table(POLICY, section)
    assert sorted(rows) == sorted([field.name for field in dataclasses.fields(cls)])
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING
        assert (rows[field.name][-1] == "must be there") == required
        if not required and field.default:
            assert rows[field.name][-1] == "`%s`" % field.default


POLICY_EXAMPLES = [
    (name, number)
    for name in (POLICY, SHAPES, "howto/own-checks-and-waivers.md", "howto/preflight.md")
    for number, _block in enumerate(blocks(name, "yaml"))
]


@pytest.mark.parametrize(("name", "number"), POLICY_EXAMPLES)
def test_policy_examples_are_accepted(name: str, number: int) -> None:
    """YAML blocks on these pages are policies, apart from inventories and tasks, which are lists or have ``all``."""
    document = json.loads(json.dumps(yaml.safe_load(blocks(name, "yaml")[number]), default=str))
    if isinstance(document, dict) and "all" not in document:
        assert policy.Policy.from_dict(document) != policy.Policy()


def test_the_shape_table() -> None:
    rows = re.findall(r"^\| (BM\.[\w.-]+) \| (\d+) \|(.*)\|$", page(SHAPES).text, re.MULTILINE)
    told = {name: (int(nics), [cell.strip() for cell in rest.split("|")]) for name, nics, rest in rows}
    wanted = {}
    for shape in shapes.DEFAULT_TABLE:
        cells = [shape.fabric, shape.link_layer, str(shape.mtu or ""), numbers(shape.nccl_hcas)]
        wanted[shape.name] = (shape.rdma_nics, cells)
    assert told == wanted
    assert {shape.rate_gbps for shape in shapes.DEFAULT_TABLE} == {None}


def numbers(devices: tuple[str, ...]) -> str:
    """``mlx5_0 mlx5_1 mlx5_3`` -> ``0-1, 3``."""
    runs: list[list[int]] = []
    for number in sorted(int(device.rpartition("_")[2]) for device in devices):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in runs)


def test_the_places_of_the_shape_table() -> None:
    rows = re.findall(r"^\| (BM\.[\w.-]+) \| (`.*`) \|$", page(SHAPES).text, re.MULTILINE)
    told = {name: tuple(re.findall(r"`([^`]+)`", cell)) for name, cell in rows}
    assert told == {shape.name: shape.pci for shape in shapes.DEFAULT_TABLE if shape.pci}


def test_the_fields_of_a_shape() -> None:
    told = set(table(SHAPES, "Extend it"))
    assert told == {field.name for field in dataclasses.fields(shapes.Shape)} - {"name"}
