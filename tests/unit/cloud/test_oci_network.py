# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real SDK against a service on loopback that checks every signature. Nothing else is contacted."""

from __future__ import annotations

import http.server
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.rdma.k8s.plugins.module_utils.cloud import oci_network
from ansible_collections.rdma.k8s.plugins.module_utils.cloud.oci_network import (
    Endpoints,
    Limits,
    Login,
    Question,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.networks import NetworkDocument
from ansible_collections.rdma.k8s.plugins.modules import child_range_check, oke_network_info
from ansible_collections.rdma.k8s.tests.support import fake_oci, module_run, oci_samples as samples
from ansible_collections.rdma.k8s.tests.support.fake_oci import FakeOci
from ansible_collections.rdma.k8s.tests.support.module_run import failure, good

GET_CLUSTER = "%s/clusters/%s" % (samples.ENGINE, samples.CLUSTER)
GET_VCN = "%s/vcns/%s" % (samples.NETWORK, samples.VCN)
SUBNETS = samples.NETWORK + "/subnets"
PEERINGS = samples.NETWORK + "/localPeeringGateways"
API_KEY = "%s/%s/%s" % (fake_oci.TENANCY, fake_oci.USER, fake_oci.FINGERPRINT)
LIMITS = Limits(timeout=5, total=30, attempts=3)


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return fake_oci.new_key()


@pytest.fixture
def cloud(key: rsa.RSAPrivateKey) -> Iterator[FakeOci]:
    with FakeOci({API_KEY: key.public_key()}) as service:
        yield service


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short waits, and nothing of this machine: no configuration, no proxy, no metadata service."""
    monkeypatch.setattr(oci_network, "BASE_WAIT", 0.02)
    for name in list(os.environ):
        if name.startswith("OCI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OCI_METADATA_BASE_URL", "http://127.0.0.1:1/opc/v2")


@pytest.fixture
def login(tmp_path: Path, key: rsa.RSAPrivateKey) -> Login:
    return Login(config_file=str(fake_oci.write_config(tmp_path, key)))


def read(
    cloud: FakeOci, login: Login, limits: Limits = LIMITS, auth: str = "", **question: Any
) -> NetworkDocument:
    asked = Question(**{"cluster_id": samples.CLUSTER, **question})
    return oci_network.read(asked, login, Endpoints(cloud.url, cloud.url, auth), limits)


def refusal(*arguments: Any, **options: Any) -> RdmaError:
    with pytest.raises(RdmaError) as caught:
        read(*arguments, **options)
    error = caught.value
    assert "\n" not in str(error)
    assert "PRIVATE KEY" not in str(error) + repr(error.details)
    return error


def lists(document: NetworkDocument) -> dict[str, list[str]]:
    return document.options()


EVERYTHING = {
    "pod_cidrs": ["10.140.128.0/18", "10.244.0.0/16"],
    "service_cidrs": ["10.96.0.0/16"],
    "vcn_cidrs": ["10.140.0.0/16", "172.16.0.0/20"],
    "subnet_cidrs": [
        "10.140.0.0/28",
        "10.140.1.0/24",
        "10.140.64.0/19",
        "10.140.128.0/18",
        "172.16.0.0/24",
    ],
    "peer_cidrs": ["10.20.0.0/16", "192.168.10.0/24", "192.168.11.0/24", "192.168.64.0/18"],
}


# What is read


def test_all_networks_of_a_cluster(cloud: FakeOci, login: Login) -> None:
    """F50: the pod and service networks as a whole, which no node shows."""
    document = read(cloud, login)
    assert (lists(document), document.unread) == (EVERYTHING, ())
    assert document.cluster is not None
    assert document.cluster["name"] == "prod"
    assert [str(entry.network) for entry in document.of_version(6)] == [
        "2603:c020:4000:1200::/64",
        "2603:c020:4000:1200::/56",
        "2603:c020:4000:1200::/64",
    ]
    assert cloud.refused == []


def test_both_compartments_and_all_pages_are_asked(cloud: FakeOci, login: Login) -> None:
    cloud.page_size = 1
    assert lists(read(cloud, login)) == EVERYTHING
    pages = [entry for entry in cloud.requests if entry.startswith(SUBNETS + "?")]
    assert len([entry for entry in pages if samples.NETWORK_COMPARTMENT in entry]) == 5
    assert len([entry for entry in pages if samples.COMPARTMENT in entry]) == 1
    assert all("vcnId=" + samples.VCN in entry for entry in pages)
    assert [re.findall("page=(p[0-9]+)", entry) for entry in pages][-4:] == [["p1"], ["p2"], ["p3"], ["p4"]]


def test_a_used_subnet_of_another_compartment_is_found(cloud: FakeOci, login: Login) -> None:
    """A VCN's subnets may be in any compartment; only what the cluster uses is known by its OCID."""
    read(cloud, login)
    assert cloud.requests[-1] == "%s/%s" % (SUBNETS, samples.subnet_id("elsewhere"))
    third = "ocid1.compartment.oc1..aaaathird"
    cloud.requests.clear()
    read(cloud, login, compartments=(third,))
    assert [entry for entry in cloud.requests if entry.startswith(SUBNETS + "/")] == []
    assert [entry for entry in cloud.requests if entry.startswith(SUBNETS + "?compartmentId=" + third)]


def test_peers_can_be_left_out(cloud: FakeOci, login: Login) -> None:
    document = read(cloud, login, peers=False)
    assert lists(document) == {**EVERYTHING, "peer_cidrs": []}
    assert [entry for entry in cloud.requests if "Peering" in entry or "drg" in entry] == []


def test_an_attachment_that_is_gone_or_has_no_table(cloud: FakeOci, login: Login) -> None:
    cloud.resources[samples.NETWORK + "/drgAttachments"] = [
        samples.attachment(lifecycleState="DETACHED"),
        samples.attachment(drgRouteTableId=None),
    ]
    document = read(cloud, login)
    assert "10.20.0.0/16" not in lists(document)["peer_cidrs"]
    assert document.unread == ()


# Credentials


def test_a_sealed_key_and_its_pass_phrase(cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    path = str(fake_oci.write_config(tmp_path, key, pass_phrase="Kardamom 7"))
    assert lists(read(cloud, Login(config_file=path, pass_phrase="Kardamom 7"))) == EVERYTHING
    for wrong in ("", "Kardamom 8"):
        error = refusal(cloud, Login(config_file=path, pass_phrase=wrong))
        assert error.code == "oci_config_unusable"
        assert "Kardamom" not in str(error)
    assert "Kardamom" not in repr(Login(pass_phrase="Kardamom 7"))


def test_a_profile_of_the_usual_place(cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    (tmp_path / ".oci").mkdir()
    path = fake_oci.write_config(tmp_path / ".oci", key)
    path.write_text(path.read_text().replace("[DEFAULT]", "[DEFAULT]\n[work]"))
    assert lists(read(cloud, Login(profile="work"))) == EVERYTHING
    error = refusal(cloud, Login(profile="other"))
    assert error.code == "oci_config_unusable"
    assert "Profile 'other' not found in config file" in error.message


def test_requests_are_never_logged(
    cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey, capfd: pytest.CaptureFixture[str]
) -> None:
    """A profile may ask for a log; it would print signatures between what a module prints."""
    path = fake_oci.write_config(tmp_path, key, log_requests="True")
    read(cloud, Login(config_file=str(path)))
    assert capfd.readouterr() == ("", "")


def test_a_session_token(cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    given = fake_oci.token(key)
    cloud.keys = {"ST$" + given: key.public_key()}
    (tmp_path / "token").write_text(given + "\n")
    path = fake_oci.write_config(tmp_path, key, user=None, security_token_file="~/token")
    login = Login("security_token", str(path))
    assert lists(read(cloud, login)) == EVERYTHING
    (tmp_path / "token").unlink()
    assert "No such file" in refusal(cloud, login).message
    path = fake_oci.write_config(tmp_path, key)
    error = refusal(cloud, Login("security_token", str(path)))
    assert "cannot be used: security_token_file is missing." in error.message


def test_an_instance_principal(
    cloud: FakeOci, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The SDK reads certificate and region from the metadata service and changes them for a token."""
    monkeypatch.setenv("OCI_METADATA_BASE_URL", cloud.url + "/opc/v2")
    cloud.instance_key = fake_oci.new_key()
    cloud.keys = {}
    document = read(cloud, Login("instance_principal"), auth=cloud.url)
    assert (lists(document), cloud.refused) == (EVERYTHING, [])
    assert "/v1/x509" in cloud.requests
    assert [entry for entry in cloud.keys if entry.startswith("ST$")]
    assert capfd.readouterr() == ("", "")


def test_a_machine_that_is_no_instance(cloud: FakeOci, monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    error = refusal(cloud, Login("instance_principal"))
    assert error.code == "oci_unreachable"
    assert (
        "The service that gives the credentials: no answer (nothing listens there, or the name is not known)."
        in error.message
    )
    assert time.monotonic() - started < 60
    monkeypatch.setenv("OCI_METADATA_BASE_URL", cloud.url + "/opc/v2")  # it answers 404 to all
    assert refusal(cloud, Login("instance_principal")).code == "oci_not_found"


def test_a_token_that_is_refused(cloud: FakeOci, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_METADATA_BASE_URL", cloud.url + "/opc/v2")
    cloud.instance_key = fake_oci.new_key()
    cloud.faults["/v1/x509"] = [401] * 5
    error = refusal(cloud, Login("instance_principal"), auth=cloud.url)
    assert error.code == "oci_not_authenticated"
    assert "credentials (instance principal)" in error.message


def test_a_resource_principal(
    cloud: FakeOci, key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot be used: " in refusal(cloud, Login("resource_principal")).message
    monkeypatch.setenv("OCI_RESOURCE_PRINCIPAL_RPST", "no token")
    monkeypatch.setenv("OCI_RESOURCE_PRINCIPAL_VERSION", "2.2")
    monkeypatch.setenv("OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM", fake_oci.pem(key).decode())
    assert refusal(cloud, Login("resource_principal")).code == "oci_config_unusable"
    given = fake_oci.token(key)
    cloud.keys = {"ST$" + given: key.public_key()}
    for name, value in {
        "VERSION": "2.2",
        "RPST": given,
        "PRIVATE_PEM": fake_oci.pem(key).decode(),
        "REGION": "us-ashburn-1",
    }.items():
        monkeypatch.setenv("OCI_RESOURCE_PRINCIPAL_" + name, value)
    assert lists(read(cloud, Login("resource_principal"))) == EVERYTHING


def test_a_key_of_somebody_else(cloud: FakeOci, login: Login) -> None:
    cloud.keys = {API_KEY: fake_oci.new_key().public_key()}
    error = refusal(cloud, login)
    assert (error.code, error.details["status"], error.retryable) == ("oci_not_authenticated", 401, False)
    assert "does not accept the credentials (profile DEFAULT of %s)" % login.config_file in error.message
    assert cloud.refused == ["The signature is not of this key."]
    assert len(cloud.requests) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"user": None}, "user is missing"),
        ({"fingerprint": "0a:0b"}, "fingerprint is malformed"),
        ({"region": None, "tenancy": None}, "region is missing, tenancy is missing"),
        ({"key_file": "/nowhere/key.pem"}, "the key_file's value '/nowhere/key.pem'"),
    ],
)
def test_a_profile_with_a_mistake(
    cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey, changes: dict[str, Any], sentence: str
) -> None:
    error = refusal(cloud, Login(config_file=str(fake_oci.write_config(tmp_path, key, **changes))))
    assert error.code == "oci_config_unusable"
    assert sentence in error.message
    assert cloud.requests == []


def test_files_that_are_no_configuration(cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    error = refusal(cloud, Login(config_file=str(tmp_path / "none")))
    assert "Could not find config file at %s" % (tmp_path / "none") in error.message
    (tmp_path / "text").write_text("hello\n")
    assert refusal(cloud, Login(config_file=str(tmp_path / "text"))).code == "oci_config_unusable"
    path = fake_oci.write_config(tmp_path, key)
    (tmp_path / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    assert refusal(cloud, Login(config_file=str(path))).code == "oci_config_unusable"


def test_a_region_is_a_name(cloud: FakeOci, login: Login) -> None:
    assert lists(read(cloud, replace(login, region="eu-frankfurt-1"))) == EVERYTHING
    error = refusal(cloud, replace(login, region="x.example.org/"))
    assert (error.code, cloud.requests[13:]) == ("oci_config_unusable", [])


# Endpoints


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "http://10.0.0.1:8080",
        "http://localhost",
        "http://127.0.0.1.example.org",
        "http://127.0.0.1:x",
        "ftp://127.0.0.1",
        "https://",
        "https://user@example.org",
        "https://example.org/path",
        "https://example.org?query",
        "127.0.0.1",
    ],
)
@pytest.mark.parametrize("name", ["container_engine", "network", "auth"])
def test_signed_requests_do_not_leave_in_clear(url: str, name: str) -> None:
    with pytest.raises(RdmaError) as caught:
        oci_network.read(Question(samples.CLUSTER), Login(), Endpoints(**{name: url}), LIMITS)
    assert (caught.value.code, caught.value.details["endpoint"]) == ("oci_endpoint_refused", name)


def test_a_proxy_of_the_environment_does_not_see_loopback(
    cloud: FakeOci, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert lists(read(cloud, login)) == EVERYTHING


def test_a_redirect_is_not_followed(cloud: FakeOci, login: Login) -> None:
    def redirect(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", cloud.url + "/elsewhere")
        request.send_header("Content-Length", "0")
        request.end_headers()

    cloud.faults[GET_CLUSTER] = [redirect] * 9
    error = refusal(cloud, login)
    assert (error.code, "it answered with a redirect" in error.message) == ("oci_unreachable", True)
    assert "/elsewhere" not in cloud.requests


@pytest.mark.parametrize(
    "text", ["", "prod", "ocid1.vcn.oc1.iad.aaaa", "ocid1.cluster.oc1/../x", "ocid1.cluster.oc1.iad.a?b=c"]
)
def test_a_cluster_is_named_by_its_ocid(cloud: FakeOci, login: Login, text: str) -> None:
    error = refusal(cloud, login, cluster_id=text)
    assert (error.code, error.details["value"], cloud.requests) == ("ocid_malformed", text, [])
    assert refusal(cloud, login, compartments=("x/y",)).code == "ocid_malformed"


# What goes wrong


def test_an_unknown_cluster(cloud: FakeOci, login: Login) -> None:
    error = refusal(cloud, login, cluster_id="ocid1.cluster.oc1.iad.aaaaother")
    assert (error.code, error.details["status"]) == ("oci_not_found", 404)
    assert error.details["service_code"] == "NotAuthorizedOrNotFound"
    assert re.fullmatch("[0-9A-F/]{32,}", error.details["request_id"])
    assert "The cluster ocid1.cluster..aaaaother: it does not exist, or the credentials" in error.message
    assert "may not read it" in error.message
    assert len(cloud.requests) == 1


def test_a_vcn_that_may_not_be_read(cloud: FakeOci, login: Login) -> None:
    del cloud.resources[GET_VCN]
    error = refusal(cloud, login)
    assert error.code == "oci_not_found"
    assert error.message.startswith("The VCN of cluster prod: it does not exist, or")


def test_a_list_that_may_not_be_read_is_unknown_not_empty(cloud: FakeOci, login: Login) -> None:
    del cloud.resources[PEERINGS]
    document = read(cloud, login)
    assert lists(document)["peer_cidrs"] == ["10.20.0.0/16"]
    assert [entry.code for entry in document.unread] == ["oci_not_found", "oci_not_found"]
    assert document.unread[1].message.startswith(
        "The local peering gateways of cluster prod in compartment ocid1.compartment..aaaanetwork: it does"
    )


def test_a_used_subnet_that_may_not_be_read(cloud: FakeOci, login: Login) -> None:
    del cloud.resources["%s/%s" % (SUBNETS, samples.subnet_id("elsewhere"))]
    document = read(cloud, login)
    assert "172.16.0.0/24" not in lists(document)["subnet_cidrs"]
    (lost,) = document.unread
    assert lost.message.startswith("The subnet ocid1.subnet..aaaelsewhere: it does not exist, or")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_asks_again_within_limits(cloud: FakeOci, login: Login, status: int) -> None:
    cloud.faults[GET_CLUSTER] = [status] * 2
    cloud.faults[PEERINGS] = [status]
    assert lists(read(cloud, login)) == EVERYTHING
    assert cloud.asked(GET_CLUSTER) == 3


@pytest.mark.parametrize(("status", "code"), [(429, "oci_throttled"), (500, "oci_failed")])
def test_it_does_not_ask_for_ever(cloud: FakeOci, login: Login, status: int, code: str) -> None:
    cloud.faults[GET_CLUSTER] = [status] * 9
    error = refusal(cloud, login)
    assert (error.code, error.retryable, cloud.asked(GET_CLUSTER)) == (code, True, 3)
    assert "%d %s" % (status, fake_oci.CODES[status]) in error.message
    assert "3 tries" in error.message


def test_what_is_refused_is_not_asked_again(cloud: FakeOci, login: Login) -> None:
    cloud.faults[GET_CLUSTER] = [400] * 9
    error = refusal(cloud, login)
    assert (error.code, error.retryable, cloud.asked(GET_CLUSTER)) == ("oci_refused", False, 1)
    assert "400 InvalidParameter: This is a test." in error.message


def test_an_expired_token_in_the_middle_ends_it(cloud: FakeOci, login: Login) -> None:
    cloud.faults[SUBNETS] = [401]
    assert refusal(cloud, login).code == "oci_not_authenticated"


def test_a_slow_answer_is_waited_for_and_a_slower_one_not(cloud: FakeOci, login: Login) -> None:
    cloud.faults[GET_CLUSTER] = [0.3]
    assert lists(read(cloud, login)) == EVERYTHING
    cloud.faults[GET_CLUSTER] = [1.0] * 9
    error = refusal(cloud, login, Limits(timeout=0.2, total=20, attempts=2))
    assert (error.code, error.retryable) == ("oci_unreachable", True)
    assert "no answer within 0.2 seconds" in error.message


def test_the_whole_has_a_limit(cloud: FakeOci, login: Login) -> None:
    """Each drop comes in time, all of them do not."""

    def drip(request: http.server.BaseHTTPRequestHandler) -> None:
        body = json.dumps(samples.cluster()).encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        for position in range(len(body)):
            request.wfile.write(body[position : position + 1])
            request.wfile.flush()
            time.sleep(0.05)

    def tolerant(request: http.server.BaseHTTPRequestHandler) -> None:
        try:
            drip(request)
        except OSError:
            request.close_connection = True  # the client ended

    cloud.faults[GET_CLUSTER] = [tolerant]
    started = time.monotonic()
    error = refusal(cloud, login, Limits(timeout=5, total=1, attempts=1))
    assert error.message == "The cloud did not answer all questions within 1 seconds."
    assert time.monotonic() - started < 30  # the whole answer would take longer


def test_nothing_listens(login: Login) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: a connection is refused
        url = "http://127.0.0.1:%d" % taken.getsockname()[1]
        with pytest.raises(RdmaError) as caught:
            oci_network.read(Question(samples.CLUSTER), login, Endpoints(url, url), LIMITS)
    assert caught.value.code == "oci_unreachable"
    assert "aaaaprod: no answer (nothing listens there, or the name is not known)." in caught.value.message


def test_a_connection_that_breaks_once(cloud: FakeOci, login: Login) -> None:
    def hang_up(request: http.server.BaseHTTPRequestHandler) -> None:
        request.connection.shutdown(socket.SHUT_RDWR)
        request.close_connection = True

    cloud.faults[GET_CLUSTER] = [hang_up]
    assert lists(read(cloud, login)) == EVERYTHING
    cloud.faults[GET_CLUSTER] = [hang_up] * 20
    assert refusal(cloud, login).code == "oci_unreachable"


def body(content: bytes) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    return lambda request: fake_oci.send(request, 200, content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<html>log in</html>", "cluster must be an object, found '<html>log in</html>'"),
        (b"[]", "cluster must be an object, found a list"),
        (b"{}", "cluster.vcnId must be a text"),
        (b"\xff\xfe", "cannot be read"),
        (b'{"vcnId": "../x", "compartmentId": "ocid1.compartment.oc1..a"}', "'../x', which leads to the VCN"),
    ],
)
def test_something_else_answers(cloud: FakeOci, login: Login, content: bytes, sentence: str) -> None:
    cloud.faults[GET_CLUSTER] = [body(content)]
    error = refusal(cloud, login)
    assert error.code == "oci_answer_malformed"
    assert sentence in error.message


def test_a_list_that_is_none(cloud: FakeOci, login: Login) -> None:
    cloud.faults[SUBNETS] = [body(b'{"items": []}')]
    (lost,) = read(cloud, login).unread
    assert lost.code == "oci_answer_malformed"
    assert "must be a list, found an object" in lost.message


def test_a_list_without_end(cloud: FakeOci, login: Login) -> None:
    again = {"opc-next-page": "p0"}
    cloud.faults[SUBNETS] = [lambda request: fake_oci.send(request, 200, b"[]", again)] * 9
    (lost, _other) = read(cloud, login).unread
    assert lost.code == "oci_answer_malformed"
    assert "has no last page (2 were read)" in lost.message


def test_a_surprise_is_not_swallowed(cloud: FakeOci, login: Login, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oci_network.threading, "excepthook", lambda _arguments: None)
    monkeypatch.setattr(oci_network.oci_answers, "place_of", lambda _cluster: None)
    with pytest.raises(RuntimeError, match="ended without an outcome"):
        read(cloud, login)


# The module


def options(cloud: FakeOci, login: Login, **more: Any) -> dict[str, Any]:
    return {
        "cluster_id": samples.CLUSTER,
        "config_file": login.config_file,
        "container_engine_endpoint": cloud.url,
        "network_endpoint": cloud.url,
        "timeout": 5,
        "time_limit": 30,
        **more,
    }


def test_the_module_feeds_the_check(cloud: FakeOci, login: Login) -> None:
    """F45-F50: each conflict names the network and who told it, the driver's blind spots included."""
    result = good(oke_network_info, **options(cloud, login, peer_cidrs=["10.209.0.0/16", "10.244.0.0/16"]))
    assert result["complete"] is True
    assert result["networks"]["cluster"]["id"] == samples.CLUSTER
    assert result["peer_cidrs"] == [
        "10.20.0.0/16",
        "10.209.0.0/16",
        "10.244.0.0/16",
        *EVERYTHING["peer_cidrs"][1:],
    ]
    node = {"name": "n1", "address": "10.140.77.19", "subnet": "10.140.64.0/19"}
    networks = result["networks"]
    check = good(child_range_check, child_range="10.208.0.0/12", nodes=[node], networks=networks)
    assert [entry["message"] for entry in check["problems"]] == [
        "peered network (option peer_cidrs): 10.209.0.0/16 overlaps the child range 10.208.0.0/12."
    ]
    check = good(child_range_check, child_range="10.128.0.0/12", nodes=[node], networks=networks)
    told = [entry["message"] for entry in check["problems"] if entry["code"] == "network_conflict"]
    assert told == [
        "%s overlaps the child range 10.128.0.0/12." % text
        for text in (
            "pod network (subnet pods of VCN prod-vcn; used by pods of node pool gpu): 10.140.128.0/18",
            "VCN network (VCN prod-vcn): 10.140.0.0/16",
            "subnet (subnet api of VCN prod-vcn; used by API endpoint): 10.140.0.0/28",
            "subnet (subnet lb of VCN prod-vcn; used by load balancers): 10.140.1.0/24",
            "subnet (subnet gpu of VCN prod-vcn; used by nodes of node pool gpu): 10.140.64.0/19",
            "subnet (subnet pods of VCN prod-vcn; used by pods of node pool gpu): 10.140.128.0/18",
        )
    ]


def test_the_module_says_what_it_could_not_read(cloud: FakeOci, login: Login) -> None:
    del cloud.resources[PEERINGS]
    result = good(oke_network_info, **options(cloud, login))
    assert result["complete"] is False
    assert {entry["code"] for entry in result["networks"]["unread"]} == {"oci_not_found"}


def test_the_module_fails_with_one_sentence(cloud: FakeOci, login: Login) -> None:
    cloud.keys = {}
    result = failure(oke_network_info, **options(cloud, login, pass_phrase="Kardamom 7"))
    assert (result["code"], result["details"]["status"]) == ("oci_not_authenticated", 401)
    assert "\n" not in result["msg"]
    assert "Kardamom" not in str(result)


def test_the_module_never_shows_a_pass_phrase(cloud: FakeOci, tmp_path: Path, key: rsa.RSAPrivateKey) -> None:
    path = str(fake_oci.write_config(tmp_path, key, pass_phrase="Kardamom 7"))
    login = Login(config_file=path)
    result = module_run.run(oke_network_info, **options(cloud, login, pass_phrase="Kardamom 7"))
    assert result["complete"] is True
    assert "Kardamom" not in json.dumps(result)
    (described,) = [entry for name, entry in oke_network_info.OPTIONS.items() if name == "pass_phrase"]
    assert described["no_log"] is True
