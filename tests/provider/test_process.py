# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of the process: options, sockets, the metadata service that comes and goes, and the end."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.tests.support.provider_process import Client, Provider, environment

from .conftest import CHILD, CLAIM, DEVICE, GONE, HOST, INSTANCE, VNICS, Start, answers, write_tree

OPTION = "--cloud-provider-options"


def run(place: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the provider to its end."""
    return subprocess.run(
        [sys.executable, "-m", "rdma_k8s_provider", *flags],
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# --- options


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ([OPTION, "oke.rdma-child-ipv4-cidr=10.208.0.1/12"], "range_not_masked"),
        ([OPTION, "oke.rdma-child-ipv4-cidr"], "option_format"),
        ([OPTION, "oke.a=1"], "option_unknown"),
        ([OPTION, "gce.a=1"], "option_unknown_provider"),
        (
            [OPTION, "oke.rdma-child-ipv4-cidr=10.0.0.0/8", OPTION, "oke.rdma-child-ipv4-cidr=10.0.0.0/8"],
            "option_duplicate",
        ),
        (
            [OPTION, "oke.rdma-child-ipv4-cidr=10.208.0.0/12", "--cloud-provider-hint", "AWS"],
            "option_hint_mismatch",
        ),
        (["--listen", "/run/x.sock"], "listen_malformed"),
        (["--listen", "unix://relative"], "listen_malformed"),
        (["--listen", "https://127.0.0.1:1"], "listen_malformed"),
        (["--listen", "http://name:80"], "listen_malformed"),
        (["--listen", "http://127.0.0.1:70000"], "listen_malformed"),
        (["--bind-address", ":9178"], "listen_malformed"),
        (["--imds-url", "http://example.test/"], "imds_url_wrong"),
        (["--host-root", "/does/not/exist"], "host_root_missing"),
        (["--nic-table", "/does/not/exist"], "nic_table_unreadable"),
        (["--listen", "unix:///does/not/exist/x.sock"], "listen_failed"),
    ],
)
def test_a_wrong_option_ends_it_at_the_start(tmp_path: Path, flags: list[str], code: str) -> None:
    """F97: one sentence, exit code 2, nothing left behind."""
    listen = [] if "--listen" in flags else ["--listen", "unix://%s/x.sock" % tmp_path]
    done = run(tmp_path, *flags, *listen)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("rdma_k8s_provider: ")
    assert done.stderr.endswith("[%s]\n" % code)
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["packages"]


def test_an_option_that_does_not_exist(tmp_path: Path) -> None:
    assert run(tmp_path, "--no-such-option").returncode == 2


def test_options_that_count(start: Start) -> None:
    """F92-F94: the range of the option is in the answers."""
    provider = start(OPTION, "oke.rdma-child-ipv4-cidr=10.192.0.0/14", "--cloud-provider-hint", "OKE")
    assert provider.call("/GetProfileConfig", CLAIM)[1]["interface"]["addresses"] == ["10.192.13.19/14"]
    found = provider.call("/GetDeviceAttributes", DEVICE)[1]
    assert found["oke.dra.net/rdmaChildIpv4Cidr"] == {"string": "10.192.0.0/14"}


def test_the_files_of_oca_are_read_once(start: Start, tmp_path: Path) -> None:
    """F54: a change counts after a restart; what is unusable is told and the default counts."""
    root = write_tree(tmp_path / "root")
    place = root / "etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
    place.mkdir(parents=True)
    (place / "rdma_network.json").write_text("{")
    provider = start()
    assert [line["code"] for line in provider.lines() if line["event"] == "oca"] == ["oca_json_malformed"]
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    (place / "rdma_features_enable.json").write_text('{"host_serial_based_rdma_ips": true}')
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    again = start().call("/GetProfileConfig", CLAIM)
    assert (again[0], again[1]["error"]["code"]) == (422, "unsupported_address_mode")


def test_a_table_of_nics(start: Start, tmp_path: Path) -> None:
    """A node without OCA and metadata: the table says the child, and the log says what nobody checks."""
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"nodes": {"node-a": {"rdma0": "10.208.9.9/12"}}}))
    flags = ("--nic-table", str(table))
    provider = start(*flags, imds=answers(host=[GONE], instance=[GONE], vnics=[GONE]), NODE_NAME="node-a")
    status, document = provider.call("/GetProfileConfig", CLAIM)
    assert (status, document["interface"]["addresses"]) == (200, ["10.208.9.9/12"])
    assert provider.call("/GetDeviceAttributes", DEVICE) == (200, {"rdma.k8s/ready": {"bool": True}})
    told = next(line for line in provider.lines() if line["event"] == "nic_table")
    assert told["nics"] == ["rdma0"]
    assert "parent address" in told["not_checked"]
    table.write_text('{"rdma0": "10.0.0.1/8"}')
    assert "[nic_table_child]" in run(tmp_path, *flags).stderr


# --- sockets


def test_the_socket_is_private(start: Start) -> None:
    found = os.lstat(start().socket)
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == 0o600


def test_a_stale_socket_is_replaced(start: Start, tmp_path: Path) -> None:
    """A provider that was killed leaves its socket; the next one takes the place, and nothing else stays."""
    first = start()
    first.kill()
    assert first.socket.exists()
    second = start("--listen", "unix://%s" % first.socket)
    client = Client(first.url)
    assert client.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    assert second.terminate() == 0
    assert sorted(path.suffix for path in first.socket.parent.iterdir()) == ["", ""]
    client.close()


def test_what_is_no_socket_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "x.sock"
    place.write_text("mine")
    done = run(tmp_path, "--listen", "unix://%s" % place)
    assert (done.returncode, place.read_text()) == (2, "mine")
    assert "[listen_failed]" in done.stderr


def test_an_ending_provider_leaves_the_socket_of_the_next_one(start: Start) -> None:
    """Two generations overlap while a DaemonSet is updated."""
    first = start()
    second = start("--listen", "unix://%s" % first.socket)
    assert first.terminate() == 0
    assert first.socket.exists()
    client = Client(first.url)
    assert client.call("/health")[0] == 200
    client.close()
    assert second.terminate() == 0
    assert not first.socket.exists()


def test_it_listens_at_an_address_too(start: Start) -> None:
    provider = start("--listen", "http://127.0.0.1:0")
    told = next(line for line in provider.lines() if line["event"] == "listen")
    urls = [url for url in told["webhook"] if url.startswith("http")]
    client = Client(urls[0])
    assert client.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    client.close()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        listen = "unix://%s/x.sock" % tmp_path
        done = run(tmp_path, "--listen", listen, "--bind-address", "127.0.0.1:%d" % port)
    assert done.returncode == 2
    assert "[listen_failed]" in done.stderr
    assert not (tmp_path / "x.sock").exists()


# --- metadata


def test_metadata_that_comes_late(start: Start) -> None:
    """F9, F67: asked every second at first, so a claim that failed heals within a moment."""
    later = answers(host=[GONE, GONE, HOST], instance=[GONE, INSTANCE], vnics=[GONE, VNICS])
    provider = start(imds=later, wait=False)
    provider.wait_for_metadata()
    status, document = provider.call("/GetProfileConfig", CLAIM)
    assert (status, document["error"]["code"]) == (503, "fabric_not_available")
    assert provider.operations.call("/readyz")[0] == 503
    provider.wait_for("rdma_k8s_provider_imds_reads_total", 3)
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)
    assert provider.operations.call("/readyz") == (200, "ok")
    assert provider.metric('rdma_k8s_provider_imds_failures_total{endpoint="host"}') == 2
    told = [
        line["reason"]
        for line in provider.lines()
        if line["event"] == "metadata" and line["endpoint"] == "host"
    ]
    assert told == ["HTTP status 404", "answers again"]


@pytest.mark.parametrize(
    ("path", "body"), [("/GetProfileConfig", CLAIM), ("/GetDeviceAttributes", DEVICE)], ids=["claim", "scan"]
)
def test_without_a_metadata_service(start: Start, path: str, body: dict[str, object]) -> None:
    """F67: nobody answers. Claims say what is missing, the provider is ready after its window, and goes on.

    The next turn is five minutes away then. A claim that lacks metadata has the service asked sooner, and so has a scan
    of DRANET: no claim comes for NICs that are not ready.
    """
    there = threading.Event()

    def host(connection: socket.socket) -> None:
        connection.sendall(HOST if there.is_set() else GONE)

    provider = start(imds=answers(host=[host]))
    assert provider.call("/GetDeviceAttributes", DEVICE)[1]["rdma.k8s/ready"] == {"bool": False}
    assert provider.metric("rdma_k8s_provider_imds_age_seconds") == -1
    began = time.monotonic()
    while provider.operations.call("/readyz")[0] != 200:
        assert time.monotonic() - began < 60
        time.sleep(0.2)
    assert time.monotonic() - began > 10
    assert provider.call("/GetProfileConfig", CLAIM)[1]["error"]["code"] == "fabric_not_available"
    there.set()
    while provider.call(path, body)[1].get("rdma.k8s/ready") != {"bool": True}:
        if path == "/GetProfileConfig" and provider.call(path, body) == (200, CHILD):
            break
        assert time.monotonic() - began < 120
        time.sleep(0.2)
    assert provider.call("/GetProfileConfig", CLAIM) == (200, CHILD)


def test_a_service_that_hangs_holds_up_nothing_else(start: Start) -> None:
    """F122: the driver waits 10 s. A list of VNICs that does not come is a failed read (F49)."""
    free = threading.Event()

    def hang(_connection: socket.socket) -> None:
        free.wait(30)

    provider = start(imds=answers(vnics=[VNICS, hang]))
    outcome: list[Any] = []

    def claim() -> None:
        client = Client(provider.url)
        outcome.append(client.call("/GetProfileConfig", CLAIM))
        client.close()

    began = time.monotonic()
    waiting = threading.Thread(target=claim)
    waiting.start()
    assert provider.call("/health")[0] == 200
    assert provider.operations.call("/healthz")[0] == 200
    waiting.join(20)
    took = time.monotonic() - began
    free.set()
    assert outcome == [(200, CHILD)]
    assert took < 9


# --- the end


def test_running_calls_end_before_the_process(start: Start) -> None:
    """SIGTERM while a claim waits for the list of VNICs: the claim gets its answer, then the socket goes."""
    asked, free = threading.Event(), threading.Event()

    def slow(connection: socket.socket) -> None:
        asked.set()
        free.wait(20)
        connection.sendall(VNICS)

    provider = start(imds=answers(vnics=[VNICS, slow]))
    outcome: list[Any] = []
    waiting = threading.Thread(target=lambda: outcome.append(provider.call("/GetProfileConfig", CLAIM)))
    waiting.start()
    assert asked.wait(20)
    provider.process.terminate()
    deadline = time.monotonic() + 20
    while provider.socket.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not provider.socket.exists()
    assert provider.process.poll() is None
    free.set()
    waiting.join(20)
    assert outcome == [(200, CHILD)]
    assert provider.process.wait(20) == 0
    assert [line["event"] for line in provider.lines()][-2:] == ["stop", "call"]


def test_an_idle_connection_does_not_hold_it_up(start: Start) -> None:
    """The driver keeps its connections open."""
    provider = start()
    assert provider.call("/health")[0] == 200
    began = time.monotonic()
    assert provider.terminate() == 0
    assert time.monotonic() - began < 7


def test_the_interrupt_of_a_keyboard_ends_it_too(start: Start) -> None:
    provider: Provider = start()
    provider.process.send_signal(2)
    assert provider.process.wait(20) == 0
    assert not provider.socket.exists()
