# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that write objects of the API to files; nothing here has a cluster."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.rdma.k8s.plugins.modules import claim_template, device_class, workload_template
from ansible_collections.rdma.k8s.tests.support import change_run

MODULES: list[tuple[Any, dict[str, Any]]] = [
    (device_class, {}),
    (claim_template, {"name": "nics", "shape": "BM.GPU.H100.8"}),
    (
        workload_template,
        {"name": "train", "claim_template": "nics", "image": "x", "command": ["y"], "gpus": 8},
    ),
]


def slice_of(node: str, *names: str) -> dict[str, Any]:
    """A slice with NICs of these names."""
    devices = [
        {
            "name": name,
            "attributes": {
                "dra.net/ifName": {"string": name},
                "dra.net/rdma": {"bool": True},
                "dra.net/rdmaDevice": {"string": "mlx5_%s" % name[-1]},
                "oke.dra.net/rdmaFabricIpv6": {"bool": False},
            },
        }
        for name in names
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": "dra.net", "nodeName": node, "pool": pool, "devices": devices}}


def good(module: Any, **options: Any) -> dict[str, Any]:
    """The result of a run that did not fail."""
    result = change_run.run(module, state="rendered", **options)
    assert not result.get("failed"), result
    return result


@pytest.mark.parametrize(("module", "options"), MODULES, ids=["class", "template", "workload"])
def test_a_file(module: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """Check mode writes nothing; then written whole with the mode 0644, unchanged, and written anew."""
    file = tmp_path / "new" / "manifest.yaml"
    tried = good(module, **options, path=str(file), _ansible_check_mode=True, _ansible_diff=True)
    assert (tried["changed"], tried["actions"]) == (True, ["write %s" % file])
    assert not file.parent.exists()
    (difference,) = tried["diff"]
    assert (difference["before"], difference["after"]) == ("", tried["manifest"])
    assert good(module, **options, path=str(file))["changed"] is True
    assert file.read_text() == tried["manifest"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert list(yaml.safe_load_all(file.read_text())) == tried["objects"]
    again = good(module, **options, path=str(file), _ansible_diff=True)
    assert (again["changed"], again["actions"], again["diff"]) == (False, [], [])
    file.write_text("something else\n")
    changed = good(module, **options, path=str(file), _ansible_diff=True)
    assert (changed["changed"], changed["diff"][0]["before"]) == (True, "something else\n")
    assert [entry.name for entry in file.parent.iterdir()] == ["manifest.yaml"]


@pytest.mark.parametrize(("module", "options"), MODULES, ids=["class", "template", "workload"])
def test_no_file(module: Any, options: dict[str, Any]) -> None:
    """Without a path nothing changes, and a comment tells what made the manifest."""
    result = good(module, **options)
    assert (result["changed"], result["actions"]) == (False, [])
    assert result["manifest"].startswith("---\n# Made by rdma.k8s.%s" % module.__name__.rpartition(".")[2])


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """A file stands where the directory should be."""
    (tmp_path / "file").write_text("")
    result = change_run.run(device_class, state="rendered", path=str(tmp_path / "file" / "manifest.yaml"))
    assert result["code"] == "manifest_not_written"
    assert "Not a directory" in result["msg"] or "File exists" in result["msg"]


def test_nics_from_slices() -> None:
    """The profile is named on an IPv4 fabric; the odd node is told and warned of; devices are known."""
    slices = [slice_of("n%d" % number, "rdma0", "rdma1") for number in (1, 2)] + [slice_of("n3", "rdma1")]
    result = good(claim_template, name="nics", slices=slices)
    assert result["nodes"] == ["n1", "n2"]
    assert result["odd_nodes"] == [{"node": "n3", "missing": ["rdma0"], "extra": []}]
    assert "Node n3 does not publish rdma0." in str(result["warnings"])
    assert [entry["rdma_device"] for entry in result["requests"]] == ["mlx5_0", "mlx5_1"]
    (made,) = result["objects"]
    assert made["spec"]["spec"]["devices"]["config"][0]["opaque"]["parameters"] == {"profile": "oke-rdma"}
    assert "from the slices of 2 nodes, for 2 RDMA NICs" in result["manifest"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"shape": "BM.GPU.H100.8"}, True),
        ({"shape": "BM.GPU.H100.8", "profile": False}, False),
        ({"shape": "BM.GPU.B300.8"}, False),
        ({"shape": "BM.GPU.B300.8", "profile": True}, True),
        ({"shape": "BM.GPU.GB300.4"}, False),
        ({"shape": "BM.GPU.GB300.4", "fabric": "ipv4"}, True),
        ({"shape": "BM.GPU.GB200.4"}, False),
    ],
)
def test_when_the_profile_is_named(options: dict[str, Any], named: bool) -> None:
    """F4, F44, F82: on an IPv4 fabric, unless the user decides."""
    (made,) = good(claim_template, name="nics", **options)["objects"]
    assert ("config" in made["spec"]["spec"]["devices"]) is named


def test_own_addresses() -> None:
    """What is lost stands in the result and at the top of the file (F87, F105)."""
    options: dict[str, Any] = {"name": "n1", "kind": "ResourceClaim", "provider": "none", "nics": ["0"]}
    result = good(claim_template, **options, shape="BM.GPU.H100.8", addresses={"rdma0": "10.208.13.19/12"})
    assert "not restored" in result["notes"][0]
    assert "# " + result["notes"][0] in result["manifest"]


@pytest.mark.parametrize(
    ("module", "options", "code"),
    [
        (claim_template, {"name": "nics", "shape": "BM.GPU.H900.8"}, "shape_unknown"),
        (
            claim_template,
            {"name": "nics", "shape": "A", "shapes": {"A": {"rdma_nics": 2, "x": 1}}},
            "shape_malformed",
        ),
        (claim_template, {"name": "nics", "slices": []}, "slices_no_nics"),
        (
            claim_template,
            {"name": "nics", "slices": [slice_of("n1", "rdma0")], "oca_network": "10/8"},
            "prefix_malformed",
        ),
        (claim_template, {"name": "N", "shape": "BM.GPU.H100.8"}, "name_malformed"),
        (device_class, {"cel": [""]}, "cel_empty"),
        (claim_template, {"name": "nics", "shape": ""}, "claim_source_missing"),
        (claim_template, {"name": "nics", "from_cluster": False}, "claim_source_missing"),
        (claim_template, {"name": "nics", "shape": "", "fabric": "ipv4"}, "claim_source_missing"),
        (claim_template, {"name": "nics", "shape": "BM.GPU.H100.8", "gpus": -1}, "claim_gpu_count"),
        (
            workload_template,
            {"name": "train", "image": "x", "command": ["y"], "gpus": 1},
            "workload_incomplete",
        ),
        (workload_template, {"name": "t", "image": "x", "command": ["y"], "shape": "B"}, "shape_unknown"),
    ],
)
def test_refused(module: Any, options: dict[str, Any], code: str) -> None:
    """The code of the error is in the result."""
    result = change_run.run(module, state="rendered", **options)
    assert (result["failed"], result["code"]) == (True, code)


@pytest.mark.parametrize(
    ("module", "options", "said"),
    [
        (claim_template, {"name": "nics"}, "shape"),
        (claim_template, {"name": "nics", "shape": "a", "nics": ["0"], "count": 1}, "mutually exclusive"),
        (workload_template, {"name": "train"}, "image"),
    ],
)
def test_options_that_do_not_fit(module: Any, options: dict[str, Any], said: str) -> None:
    """Ansible itself says which option is missing or too much."""
    result = change_run.run(module, state="rendered", **options)
    assert result["failed"]
    assert said in result["msg"]


def test_a_shape_of_the_user() -> None:
    """A shape that is added has its NICs."""
    shapes = {"LAB.SIM.4": {"rdma_nics": 4, "fabric": "ipv4"}}
    result = good(claim_template, name="nics", shape="LAB.SIM.4", shapes=shapes)
    assert [entry["name"] for entry in result["requests"]] == ["rdma0", "rdma1", "rdma2", "rdma3"]


def test_a_shape_by_a_pattern() -> None:
    """The pods go to nodes of the shape that is asked for, not of the pattern in the table, and have its GPUs."""
    shapes = {"BM.GPU.NEW.*": {"rdma_nics": 4, "fabric": "ipv4"}}
    options = {"name": "train", "claim_template": "nics", "image": "x", "command": ["y"]}
    result = good(workload_template, **options, shape="BM.GPU.NEW.4", shapes=shapes)
    pod = result["objects"][-1]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "BM.GPU.NEW.4"}
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "4"}


def test_a_workload_on_spiderpool() -> None:
    """Networks of the options reach the annotation and the resources."""
    networks = [{"name": "gpu1", "resource": "spidernet.io/gpu1", "namespace": "pool"}]
    result = good(
        workload_template,
        name="train",
        target="spiderpool_sriov",
        image="x",
        command=["y"],
        networks=networks,
        gpus=8,
        environment={"A": 1},
    )
    template = result["objects"][-1]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "pool/gpu1"}
    assert {"name": "A", "value": "1"} in template["spec"]["containers"][0]["env"]
