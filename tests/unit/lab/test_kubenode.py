# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The second disk of nodes, the images on it, and what a node is sent to join."""

from __future__ import annotations

import io
import json
import pathlib
import tarfile

import pytest

from ansible_collections.rdma.k8s.tests.lab import control, kubenode, oci
from ansible_collections.rdma.k8s.tests.lab.errors import LabError


def members(archive: bytes) -> dict[str, bytes]:
    """The files of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = ((entry.name, tar.extractfile(entry)) for entry in tar.getmembers())
        return {name: file.read() for name, file in files if file}


def test_an_image_is_what_its_digests_say() -> None:
    """Every blob stands under the digest of its content, from the index down to the layer."""
    content = {"/program": b"code", "/other": "/place"}
    files = members(kubenode.oci_image("x.test/y:1", content, "/program", ("PLACE=/p",)))
    for name, content in files.items():
        if name.startswith("blobs/"):
            assert oci.digest(content) == "sha256:" + name.rpartition("/")[2]

    def blob(described: dict) -> bytes:
        content = files["blobs/sha256/" + described["digest"].removeprefix("sha256:")]
        assert len(content) == described["size"]
        return content

    (described,) = json.loads(files["index.json"])["manifests"]
    assert described["annotations"]["io.containerd.image.name"] == "x.test/y:1"
    manifest = json.loads(blob(described))
    config = json.loads(blob(manifest["config"]))
    (layer,) = manifest["layers"]
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    assert config["config"] == {"Entrypoint": ["/program"], "Env": ["PLACE=/p"], "WorkingDir": "/"}
    with tarfile.open(fileobj=io.BytesIO(blob(layer))) as tar:
        program, other = tar.getmember("program"), tar.getmember("other")
        assert program.mode == 0o755
        assert tar.extractfile(program).read() == b"code"
        assert (other.issym(), other.linkname) == (True, "/place")


def test_an_image_without_an_environment_says_nothing_of_one() -> None:
    """The runtime has a default then, with a search path."""
    blobs = members(kubenode.oci_image("a:1", {"/p": b"x"})).values()
    assert not any(b'"Env"' in content for content in blobs)


def test_the_same_program_gives_the_same_image() -> None:
    assert kubenode.oci_image("a:1", {"/p": b"x"}) == kubenode.oci_image("a:1", {"/p": b"x"})
    assert kubenode.oci_image("a:1", {"/p": b"x"}) != kubenode.oci_image("a:1", {"/p": b"y"})


def test_what_a_node_runs_first() -> None:
    script = kubenode.prepare_script(2)
    assert "mount -t ext4 -o ro /dev/vdb /opt/rdma-kube" in script
    assert script.endswith("prepare 10.244.255.128/26 10.96.0.1 10.140.64.3:6443")


def test_files_of_the_disk_know_each_other() -> None:
    files = kubenode.guest_files()
    assert kubenode.IMAGE in files["etc/containerd.toml"].decode()
    assert b"disable = false" in files["etc/containerd.toml"]
    assert kubenode.MOUNT in files["etc/node.sh"].decode()
    assert kubenode.DRANET_PLACE.rpartition("/")[0] in files["etc/node.sh"].decode()
    config = json.loads(files["etc/kubelet.json"])
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["nodeLeaseDurationSeconds"] < control.GRACE


@pytest.fixture
def pki(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with certificates, which are words here."""
    (tmp_path / "pki").mkdir()
    for name in ("ca.crt", "node-node1.crt", "node-node1.key"):
        (tmp_path / "pki" / name).write_text(name)
    return tmp_path


def test_a_node_is_sent_its_own_certificate_only(pki: pathlib.Path) -> None:
    files = kubenode.join_files(pki, 1)
    assert files["kubelet.key"] == b"node-node1.key"
    config = json.loads(files["kubelet.kubeconfig"])
    assert config["clusters"][0]["cluster"]["server"] == "https://10.140.64.3:6443"
    with tarfile.open(fileobj=io.BytesIO(kubenode.join_archive(files))) as tar:
        assert {entry.mode for entry in tar.getmembers()} == {0o600}
        assert set(tar.getnames()) == set(files)


def test_a_node_that_refuses_to_join_says_why(pki: pathlib.Path) -> None:
    with pytest.raises(LabError, match="node1 could not join the cluster: no such place"):
        kubenode.join(["sh", "-c", "cat > /dev/null; echo no such place >&2; exit 3 #"], pki, 1)


def test_a_node_that_joins_gets_the_archive(pki: pathlib.Path, tmp_path: pathlib.Path) -> None:
    kubenode.join(["sh", "-c", f"cat > {tmp_path}/sent #"], pki, 1)
    assert members((tmp_path / "sent").read_bytes())["ca.crt"] == b"ca.crt"
