# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata reader against a real server on loopback: limits, retries, wrong answers, proxies, redirects."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given, settings, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import imds as parser
from ansible_collections.rdma.k8s.plugins.module_utils.host import imds
from ansible_collections.rdma.k8s.plugins.module_utils.host.files import Root
from ansible_collections.rdma.k8s.tests.support.fake_imds import FakeImds, ok

TAIL = "a" * 60
HOST = {
    "id": "ocid1.host.oc1..secret",
    "networkBlockId": "nb",
    "rackId": "rack7",
    "rdmaTopologyData": {
        "customerHPCIslandId": "ocid1.hpcisland.oc1.phx." + TAIL,
        "customerGpuMemoryFabric": None,
    },
    "rdmaFabricData": {"ipv6": False, "planes": 1, "more": "x"},
}
INSTANCE = {
    "shape": "BM.GPU.H100.8",
    "metadata": {"ssh_authorized_keys": "a secret", "user_data": "another secret"},
    "compartmentId": "ocid1.compartment.oc1..x",
    "agentConfig": {
        "allPluginsDisabled": False,
        "pluginsConfig": [
            {"name": "Compute HPC RDMA Authentication", "desiredState": "ENABLED"},
            {"name": "Bastion", "desiredState": "ENABLED"},
            {"name": 7},
            "x",
        ],
    },
}
VNICS = [
    {
        "privateIp": "10.140.77.19",
        "subnetCidrBlock": "10.140.64.0/19",
        "vnicId": "ocid1.vnic.oc1..x",
        "vlanTag": 0,
    }
]
GOOD: dict[str, list[Any]] = {"/host/": [ok(HOST)], "/instance/": [ok(INSTANCE)], "/vnics/": [ok(VNICS)]}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds, "_PAUSE", 0.01)


def ask(
    answers: dict[str, list[Any]], timeout: float = 5.0
) -> tuple[imds.Answers, dict[str, str], FakeImds, float]:
    root = Root()
    with FakeImds(answers) as service:
        started = time.monotonic()
        found = imds.read(root, service.url, timeout)
        spent = time.monotonic() - started
    return found, {error.source: error.reason for error in root.errors}, service, spent


def only(answer: Any, timeout: float = 5.0) -> tuple[Any, str, int, float]:
    """The vnics document, its error and the number of requests for it when it is answered in this way."""
    entries = answer if isinstance(answer, list) else [answer]
    found, errors, service, spent = ask({**GOOD, "/vnics/": entries}, timeout)
    assert set(errors) <= {"imds:/vnics/"}
    return (
        found.documents.vnics,
        errors.get("imds:/vnics/", ""),
        service.paths().count("/opc/v2/vnics/"),
        spent,
    )


def test_documents_are_reduced_to_what_is_used() -> None:
    found, errors, service, _spent = ask(GOOD)
    assert errors == {}
    assert found.documents.host == {
        "networkBlockId": "nb",
        "rackId": "rack7",
        "rdmaTopologyData": {"customerHPCIslandId": "ocid1.hpcisland.." + TAIL},
        "rdmaFabricData": {"ipv6": False, "planes": 1},
    }
    assert found.documents.instance == {"shape": "BM.GPU.H100.8"}
    assert found.documents.vnics == [{"privateIp": "10.140.77.19", "subnetCidrBlock": "10.140.64.0/19"}]
    assert found.plugins == {"Compute HPC RDMA Authentication": "ENABLED"}
    assert "secret" not in json.dumps([found.documents.host, found.documents.instance, found.plugins])
    assert service.paths() == ["/opc/v2/instance/", "/opc/v2/host/", "/opc/v2/vnics/"]
    for head in service.requests:
        assert "\r\nAuthorization: Bearer Oracle\r\n" in head
        assert "\r\nHost: 127.0.0.1:%d\r\n" % service.port in head


def test_all_plugins_disabled_is_told() -> None:
    config = {**INSTANCE["agentConfig"], "allPluginsDisabled": True}  # type: ignore[dict-item]
    found = ask({**GOOD, "/instance/": [ok({**INSTANCE, "agentConfig": config})]})[0]
    assert found.plugins == {"Compute HPC RDMA Authentication": "DISABLED"}


def test_ipv6_loopback_works() -> None:
    root = Root()
    with FakeImds(GOOD, socket.AF_INET6) as service:
        assert imds.read(root, service.url).documents.instance == {"shape": "BM.GPU.H100.8"}
    assert "\r\nHost: [::1]:%d\r\n" % service.port in service.requests[0]


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"])
def test_no_proxy_of_the_environment_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeImds({}) as proxy:
        monkeypatch.setenv(name, "http://127.0.0.1:%d" % proxy.port)
        monkeypatch.delenv("no_proxy", raising=False)
        found, errors, service, _spent = ask(GOOD)
    assert (errors, proxy.requests, len(service.requests)) == ({}, [], 3)
    assert found.documents.vnics is not None


def test_no_redirect_is_followed() -> None:
    with FakeImds(GOOD) as other:
        answer = (
            b"HTTP/1.1 302 Found\r\nLocation: %s/vnics/\r\nContent-Length: 0\r\n\r\n" % other.url.encode()
        )
        assert only(answer)[:3] == (None, "HTTP status 302", 1)
    assert other.requests == []


def test_a_slow_answer_ends_at_the_limit() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _second in range(100):
            connection.sendall(b" ")
            time.sleep(0.05)

    def drip_head(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(100):
            connection.sendall(b"X-%d: y\r\n" % number)
            time.sleep(0.05)

    def forever(connection: socket.socket) -> None:
        for _number in range(100):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            time.sleep(0.05)

    def silent(_connection: socket.socket) -> None:
        time.sleep(1.5)

    for answer in (drip, drip_head, forever, silent):
        document, error, requests, spent = only(answer, timeout=0.5)
        assert (document, error, requests) == (None, "no complete answer within 0.5 s", 1)
        assert 0.4 < spent < 20


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP status 503"),
        (b"HTTP/1.1 429 Slow down\r\nContent-Length: 0\r\n\r\n", "HTTP status 429"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n[]",
            "not HTTP: IncompleteRead(2 bytes read, 48 more expected)",
        ),
        (b"", "remote end closed connection without response"),
        (b"garbage\r\n\r\n", "not HTTP: garbage"),
    ],
)
def test_what_may_pass_is_retried(bad: bytes, error: str) -> None:
    document, reason, requests, _spent = only([bad, bad, ok(VNICS)])
    assert (document is not None, reason, requests) == (True, "", 3)
    assert only(bad)[:3] == (None, error, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 204, 301])
def test_a_refusal_is_not_retried(status: int) -> None:
    assert only(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)[:3] == (
        None,
        "HTTP status %d" % status,
        1,
    )


@pytest.mark.parametrize(
    ("body", "start"),
    [
        (b"", "not JSON: "),
        (b"{", "not JSON: "),
        (b"[NaN]", "not JSON: NaN is not JSON"),
        (b"\xff\xfe", "not JSON: "),
        (b"[" * 100000, "not JSON: nested too deeply"),
        (b"<html>", "not JSON: "),
        (b" " * (2 << 20), "more than 1048576 bytes"),
    ],
)
def test_content_that_is_no_document(body: bytes, start: str) -> None:
    document, error, requests, _spent = only(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    assert (document, requests) == (None, 1)
    assert error.startswith(start)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_chunked_answers() -> None:
    body = json.dumps(VNICS).encode()
    pieces = b"".join([b"1\r\n%c\r\n" % byte for byte in body])
    assert only(CHUNKED + pieces + b"0\r\n\r\n")[1] == ""
    for garbage in (
        b"zz\r\n[]\r\n0\r\n\r\n",
        b"5\r\n[]",
        b"-1\r\n[]\r\n",
        b"ffffffffffffffffffff\r\n[]",
        b"\r\n",
        b"1;x=" + b"y" * 70000,
    ):
        document, error, _requests, _spent = only(CHUNKED + garbage)
        assert document is None
        assert error.startswith(("not HTTP: ", "not JSON: "))


def test_nobody_listens() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        root = Root()
        started = time.monotonic()
        found = imds.read(root, "http://127.0.0.1:%d/opc/v2" % closed.getsockname()[1])
    assert found == imds.Answers(imds.Imds())
    assert {error.source: error.reason for error in root.errors} == dict.fromkeys(
        ("imds:/instance/", "imds:/host/", "imds:/vnics/"), "connection refused"
    )
    assert time.monotonic() - started < 60  # three attempts in all, not three for each endpoint


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/opc/v2",
        "http://metadata.google.internal",
        "https://169.254.169.254/opc/v2",
        "http://10.0.0.1/opc/v2",
        "http://8.8.8.8",
        "http://169.254.169.254.example.com/",
        "http://user@169.254.169.254/",
        "http://169.254.169.254/a b",
        "http://169.254.169.254/\r\nX: y",
        "http://169.254.169.254:99999/",
        "http://169.254.169.254/?x=1",
        "http://[::ffff:8.8.8.8]/",
        "http://0177.0.0.1/",
        "file:///etc/passwd",
        "169.254.169.254",
        "http://",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(RdmaError) as caught:
        imds.read(Root(), url)
    assert caught.value.code == "imds_url_wrong"


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://169.254.169.254/opc/v2", ("169.254.169.254", 80, "/opc/v2")),
        ("http://127.0.0.1:8080", ("127.0.0.1", 8080, "")),
        ("http://[::1]:80/x/", ("::1", 80, "/x")),
    ],
)
def test_link_local_and_loopback_addresses_are_taken(url: str, found: tuple[str, int, str]) -> None:
    assert imds._checked(url) == found


# Recorded answers


def test_a_recorded_tree_answers_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netlink.json").write_text("{}")
    (tmp_path / "imds.json").write_text(
        json.dumps({"host": HOST, "vnics": {"error": "no complete answer within 5 s"}})
    )
    monkeypatch.setattr(socket, "create_connection", None)
    root = Root(str(tmp_path))
    found = imds.read(root)
    assert found.documents.host is not None
    assert (found.documents.instance, found.documents.vnics) == (None, None)
    assert {error.source: error.reason for error in root.errors} == {
        "imds:/instance/": "not recorded",
        "imds:/vnics/": "no complete answer within 5 s",
    }


# Reduction keeps what the driver would see (F62-F69)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.sampled_from(
        [
            1.0,
            0.5,
            1e300,
            "",
            "ocid1.hpcisland.oc1.phx." + "b" * 70,
            "ocid",
            "x.ocid",
            "ocid.",
            "a.b",
            "10.0.0.1",
        ]
    )
    | st.text(max_size=5)
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
)
TOPOLOGY = (
    "customerHPCIslandId",
    "customerNetworkBlock",
    "customerLocalBlock",
    "customerGpuMemoryFabric",
    "customerHostId",
)


def members(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional={**fields, "unused": ANY})


HOSTS = members(
    networkBlockId=ANY,
    rackId=ANY,
    rdmaTopologyData=members(**dict.fromkeys(TOPOLOGY, SCALARS)) | ANY,
    rdmaFabricData=members(ipv6=SCALARS, planes=SCALARS) | ANY,
)
VNIC_LISTS = st.lists(
    members(privateIp=SCALARS, subnetCidrBlock=SCALARS, subnetCidrBlocks=st.lists(SCALARS, max_size=2) | ANY)
    | ANY,
    max_size=3,
)


def outcome(parse: Callable[[Any], Any], document: Any) -> Any:
    try:
        return parse(document)
    except RdmaError as error:
        return error.code


@settings(deadline=None)
@given(document=HOSTS | ANY)
def test_the_reduced_host_document_means_the_same(document: Any) -> None:
    reduced = json.loads(json.dumps(imds.reduce(document, imds._FIELDS["host"]), allow_nan=False))
    found, wanted = outcome(parser.parse_host, reduced), outcome(parser.parse_host, document)
    if not isinstance(
        wanted, str
    ):  # top-level identifiers are raw text (F64), here they are shortened as well
        wanted = parser.replace(
            wanted,
            **{name: imds.shortened(getattr(wanted, name)) for name in ("rack_id", "network_block_id")},
        )
        if isinstance(document, dict) and document.get("rdmaTopologyData") is not None:
            wanted = parser.replace(
                wanted, network_block_id=outcome(parser.parse_host, document).network_block_id
            )
    assert found == wanted


@settings(deadline=None)
@given(document=VNIC_LISTS | ANY)
def test_the_reduced_vnics_document_means_the_same(document: Any) -> None:
    reduced = json.loads(json.dumps(imds.reduce(document, imds._FIELDS["vnics"]), allow_nan=False))
    for parse in (parser.parse_primary_vnic, parser.parse_vnic_subnets):
        assert outcome(parse, reduced) == outcome(parse, document)


@settings(deadline=None)
@given(
    text=st.text(max_size=300)
    | st.lists(st.sampled_from(["ocid1", "ocid", ".", "x", "phx", "y" * 70])).map(".".join)
)
def test_shortening_keeps_the_suffix_and_is_stable(text: str) -> None:
    short = imds.shortened(text)
    assert len(short) <= 330
    assert imds.shortened(short) == short
    assert outcome(parser.ocid_suffix, short) == outcome(parser.ocid_suffix, text)


def test_null_is_an_answer() -> None:
    found, errors, _service, _spent = ask({path: [ok(None)] for path in GOOD})
    assert errors == {}
    assert (found.documents.host, found.documents.instance, found.documents.vnics) == ({}, {}, [])
