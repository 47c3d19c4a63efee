# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of reboots and the subset ``slow`` that tells it (DEV-01)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import RebootPlan
from ansible_collections.rdma.k8s.plugins.module_utils.host import reboots
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support import fleet, initramfs_image as image, node_tree


@pytest.fixture(name="root")
def root_fixture(tmp_path: Path) -> Root:
    boot(Root(str(tmp_path)), "a")
    return Root(str(tmp_path))


def boot(root: Root, name: str) -> None:
    place = Path(root.path + reboots.BOOT_ID)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(name + "\n")


def test_a_request_counts_once_in_a_boot_and_by_plan(root: Root) -> None:
    for name in ("a", "a", "b"):
        boot(root, name)
        reboots.request(root, "one", "because")
    reboots.request(root, "two", "likewise")
    assert reboots.plans(root) == [
        RebootPlan("one", "because", ("a", "b")),
        RebootPlan("two", "likewise", ("b",)),
    ]
    assert reboots.spent(root, "one") is None, "asking again in this boot is no third reboot"
    boot(root, "c")
    assert reboots.spent(root, "one") == RebootPlan("one", "because", ("a", "b"))
    assert reboots.spent(root, "two") is None
    assert reboots.spent(root, "three") is None


def test_a_plan_that_is_reached_is_forgotten(root: Root) -> None:
    reboots.forget(root, "one")
    assert not Path(root.path + reboots.FILE).exists()
    reboots.request(root, "one", "x")
    reboots.request(root, "two", "x")
    reboots.forget(root, "one")
    assert [plan.plan for plan in reboots.plans(root)] == ["two"]
    reboots.forget(root, "two")
    assert not Path(root.path + reboots.FILE).exists()


def test_a_record_that_is_no_file_is_told(root: Root) -> None:
    Path(root.path + reboots.FILE).mkdir(parents=True)
    assert reboots.read_all(root) is None
    assert [(error.source, error.reason) for error in root.errors] == [(reboots.FILE, "not a regular file")]


def test_the_subset_slow_tells_images_and_reboots(tmp_path: Path) -> None:
    """And nothing of it is read by default."""
    snapshot = fleet.node("BM.GPU.H100.8")
    tree = node_tree.write(tmp_path / "tree", snapshot, gid_table=8)
    release = snapshot.host.kernel
    tree.write("boot/initrd.img-" + release, "")
    files = {image.MODULE % release: b"x", "etc/modprobe.d/rdma.conf": b"options ib_core netns_mode=1\n"}
    (tree.root / ("boot/initrd.img-" + release)).write_bytes(image.early() + image.archive(files))
    reboots.request(Root(str(tree.root)), "netns_mode shared", "because")
    assert collect("n", str(tree.root)).slow is None
    found = collect("n", str(tree.root), ["slow"])
    assert found.slow is not None
    assert found.slow.initramfs is not None
    assert [(entry.image, entry.has_module, entry.options[0].value) for entry in found.slow.initramfs] == [
        ("/boot/initrd.img-" + release, True, "1")
    ]
    assert found.slow.reboots == (RebootPlan("netns_mode shared", "because", (snapshot.host.boot_id,)),)
    assert type(found).from_dict(found.to_dict()).slow == found.slow
    assert type(found).from_dict(found.to_dict(compact=True)).slow == found.slow
