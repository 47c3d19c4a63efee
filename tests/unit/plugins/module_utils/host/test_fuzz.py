# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever stands in the files of a node: a snapshot comes out that can be written and read back, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect
from ansible_collections.rdma.k8s.tests.support import fleet, node_tree

QUIET = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

STRANGE = (
    *(b"", b"\n", b"-", b"=", b" ", b"0x", b"0x02", b"0x020000", b"-1", b"9" * 30, b"4: ", b": ACTIVE", b"null"),
    *(b"[]", b"{}", b"NaN", b'"x"', b"[" * 5000, b"1e999", b'{"rdma-network":[{}]}', b"options ib_core", b"\xff"),
    *(b"options ib_core netns_mode\\\n=0", b"ib_core.netns_mode", b"RoCE v2", "\u0661".encode(), b"a" * 70000),
    *(b"fe80:0000:0000:0000:0000:0000:0000:0001", b"mlx5_0 - Live", b"btime x", b"1\x00", b"../../x"),
)  # fmt: skip
CONTENT = (
    st.binary(max_size=40)
    | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.sampled_from(STRANGE)
)


@pytest.fixture(scope="module", name="tree")
def tree_fixture(tmp_path_factory: pytest.TempPathFactory) -> node_tree.NodeTree:
    root = tmp_path_factory.mktemp("fuzz") / "tree"
    return node_tree.write(root, fleet.node("BM.Optimized3.36"), gid_table=4)


def files_of(root: Path) -> list[str]:
    return sorted(
        [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    )


def check(root: Path) -> NodeSnapshot:
    found = collect("n", str(root))
    for compact in (False, True):
        text = json.dumps(found.to_dict(compact), allow_nan=False)
        text.encode("utf-8")
        assert NodeSnapshot.from_dict(json.loads(text)) == found
    return found


@QUIET
@given(data=st.data())
def test_garbage_in_any_file(tree: node_tree.NodeTree, data: st.DataObject) -> None:
    names = files_of(tree.root)
    saved = {}
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True), "files"):
        place = tree.root / name
        saved[place] = place.read_bytes()
        place.write_bytes(data.draw(CONTENT, name))
    try:
        check(tree.root)
    finally:
        for place, content in saved.items():
            place.write_bytes(content)


def test_garbage_in_every_file_one_by_one(tree: node_tree.NodeTree) -> None:
    for name in files_of(tree.root):
        place = tree.root / name
        saved = place.read_bytes()
        for content in (b"", b"\xff\x00 ="):
            place.write_bytes(content)
            check(tree.root)
        place.write_bytes(saved)


def test_every_file_missing_a_directory_a_loop_or_a_pipe(tree: node_tree.NodeTree) -> None:
    for name in files_of(tree.root):
        place = tree.root / name
        saved = place.read_bytes()
        for make in (
            lambda _place: None,
            Path.mkdir,
            lambda at: at.symlink_to(at.name),
            lambda at: os.mkfifo(str(at)),
        ):
            place.unlink()
            make(place)
            if name == "netlink.json" and not os.path.lexists(place):
                place.write_bytes(saved)  # without it the tree is no recorded one
                continue
            check(tree.root)
            if place.is_dir() and not place.is_symlink():
                place.rmdir()
                place.write_bytes(saved)
            elif os.path.lexists(place):
                place.unlink()
                place.write_bytes(saved)
            else:
                place.write_bytes(saved)


@pytest.mark.parametrize(
    "name", ["mlx5 0", "=", "a\nb", "mlx5_\udcff", "uverbs0", "-", "..x", "\u0661", "0000:98:00.0", "x" * 200]
)
@pytest.mark.parametrize(
    "place",
    [
        "sys/class/infiniband",
        "sys/class/infiniband_verbs",
        "dev/infiniband",
        "sys/bus/pci/devices",
        "run/netns",
    ],
)
def test_strange_names(place: str, name: str, tmp_path: Path) -> None:
    tree = node_tree.write(tmp_path / "tree", fleet.node("BM.Optimized3.36"), gid_table=4)
    encoded = os.fsencode(str(tree.root / place)) + b"/" + name.encode("utf-8", "surrogateescape")
    os.makedirs(os.path.dirname(encoded), exist_ok=True)
    if not os.path.lexists(encoded):
        os.makedirs(encoded + b"/ports/1/gids")
    (tree.root / place).mkdir(exist_ok=True)
    check(tree.root)


KEYS = (
    *("links", "addresses", "routes", "rules", "ports", "chains", "index", "name", "family", "dst", "error", "link"),
    *("length", "table", "address", "hook", "netns_mode", "device", "port", "columns", "rows", "verdict", "chain"),
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 300) | st.just(2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6) | st.sampled_from(["10.0.0.1", "fe80::1", "rdma0", "ipvlan", "a b", "="]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(KEYS),
        inner,
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@QUIET
@given(document=st.fixed_dictionaries({"rtnetlink": JSON, "rdma": JSON, "nftables": JSON}) | JSON)
def test_garbage_in_the_answers_of_netlink(tree: node_tree.NodeTree, document: Any) -> None:
    saved = (tree.root / "netlink.json").read_bytes()
    (tree.root / "netlink.json").write_text(json.dumps(document))
    try:
        check(tree.root)
    finally:
        (tree.root / "netlink.json").write_bytes(saved)


TEXTS = st.text(max_size=8) | st.sampled_from(["10.224.0.0", "::", "rdma0", "=", "- -", "10.0.0.1/8"])
NUMBERS = st.integers(-1, 2**33) | st.sampled_from([0, 1, 2, 10, 32, 128, 254])
RECORD = st.fixed_dictionaries(
    {
        "links": st.lists(
            st.fixed_dictionaries(
                {
                    "index": NUMBERS,
                    "name": TEXTS,
                    "kind": TEXTS,
                    "master": NUMBERS,
                    "parent": NUMBERS,
                    "flags": NUMBERS,
                }
            ),
            max_size=3,
        ),
        "addresses": st.lists(
            st.fixed_dictionaries({"link": NUMBERS, "address": TEXTS, "length": NUMBERS}), max_size=3
        ),
        "routes": st.lists(
            st.fixed_dictionaries(
                {
                    "family": NUMBERS,
                    "dst": TEXTS,
                    "length": NUMBERS,
                    "link": NUMBERS,
                    "gateway": TEXTS,
                    "source": TEXTS,
                }
                | {"scope": NUMBERS, "protocol": NUMBERS, "metric": NUMBERS, "table": NUMBERS}
            ),
            max_size=3,
        ),
        "rules": st.lists(
            st.fixed_dictionaries(
                {"family": NUMBERS, "priority": NUMBERS, "source": TEXTS, "length": NUMBERS, "table": NUMBERS}
                | {"action": NUMBERS, "selectors": TEXTS}
            ),
            max_size=3,
        ),
    }
)


@QUIET
@given(record=RECORD)
def test_strange_values_in_the_answers_of_rtnetlink(tree: node_tree.NodeTree, record: Any) -> None:
    saved = (tree.root / "netlink.json").read_bytes()
    (tree.root / "netlink.json").write_text(json.dumps({"rtnetlink": record}))
    try:
        check(tree.root)
    finally:
        (tree.root / "netlink.json").write_bytes(saved)


def test_a_root_that_is_a_file_or_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "none", tmp_path / "a\0b"):
        with pytest.raises(RdmaError):
            collect("n", str(place))
    shutil.rmtree(tmp_path)
