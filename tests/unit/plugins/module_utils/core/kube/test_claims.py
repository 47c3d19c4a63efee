# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a claim asks for, in both forms of the API, and what its selectors speak of."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.kube import claims
from ansible_collections.rdma.k8s.plugins.module_utils.core.kube.claims import Config, Constraint, Request

NIC = {"deviceClassName": "dra.net", "selectors": [{"cel": {"expression": "x"}}, {"cel": {}}, 1]}


def claim(kind: str = "ResourceClaim", **devices: Any) -> dict[str, Any]:
    spec = {"devices": devices}
    return {"kind": kind, "spec": {"spec": spec} if kind.endswith("Template") else spec}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"exactly": NIC}, [Request("a", ("exactly",), "dra.net", ("x",))]),
        (NIC, [Request("a", (), "dra.net", ("x",))]),
        ({"exactly": {**NIC, "count": 4}}, [Request("a", ("exactly",), "dra.net", ("x",), 4)]),
        ({"exactly": {**NIC, "count": "4"}}, [Request("a", ("exactly",), "dra.net", ("x",), 1)]),
        ({"exactly": {**NIC, "count": True}}, [Request("a", ("exactly",), "dra.net", ("x",), 1)]),
        (
            {"exactly": {**NIC, "allocationMode": "All"}},
            [Request("a", ("exactly",), "dra.net", ("x",), None)],
        ),
        (
            {"firstAvailable": [{"name": "b", **NIC}, {"name": "c", "deviceClassName": "other"}]},
            [
                Request("a", ("firstAvailable", 0), "dra.net", ("x",), 1, "b"),
                Request("a", ("firstAvailable", 1), "other", (), 1, "c"),
            ],
        ),
        ({"exactly": []}, [Request("a", (), "", ())]),
    ],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_requests(kind: str, entry: dict[str, Any], expected: list[Request]) -> None:
    prefix: tuple[Any, ...] = ("spec", "spec") if kind.endswith("Template") else ("spec",)
    found = claims.read(claim(kind, requests=[{"name": "a", **entry}])).requests
    assert [
        Request(request.name, request.path[len(prefix) + 3 :], *_rest(request)) for request in found
    ] == expected
    assert {request.path[: len(prefix) + 3] for request in found} == {(*prefix, "devices", "requests", 0)}


def _rest(request: Request) -> tuple[Any, ...]:
    return request.device_class, request.expressions, request.count, request.alternative


def test_configurations_concern_their_requests() -> None:
    one, other = Request("a", (), "", (), 1, "b"), Request("c", (), "", ())
    for names, concerned in (
        ((), [one, other]),
        (("a",), [one]),
        (("a/b",), [one]),
        (("a/d",), []),
        (("c",), [other]),
    ):
        config = Config((), names, "dra.net", {})
        assert [request for request in (one, other) if config.concerns(request)] == concerned
    constraint = Constraint((), ("c",), "x")
    assert [request for request in (one, other) if constraint.concerns(request)] == [other]
    assert Constraint((), (), "x").concerns(one)


def test_parameters_are_those_for_the_driver_and_the_request() -> None:
    entries = [
        {"requests": ["a"], "opaque": {"driver": "dra.net", "parameters": {"n": 1}}},
        {"requests": ["b"], "opaque": {"driver": "dra.net", "parameters": {"n": 2}}},
        {"requests": ["a"], "opaque": {"driver": "other", "parameters": {"n": 3}}},
        {"opaque": {"driver": "dra.net", "parameters": {"n": 4}}},
        {"opaque": {"driver": "dra.net", "parameters": "text"}},
        {"opaque": "text"},
        7,
    ]
    found = claims.read(claim(requests=[{"name": "a"}], config=entries))
    assert list(found.parameters(found.requests[0], "dra.net")) == [{"n": 1}, {"n": 4}]
    assert [config.path for config in found.configs][1] == ("spec", "devices", "config", 1)


def test_constraints() -> None:
    found = claims.read(claim(constraints=[{"requests": ["a", 1], "matchAttribute": "x/y"}]))
    assert found.constraints == (Constraint(("spec", "devices", "constraints", 0), ("a",), "x/y"),)


@pytest.mark.parametrize(
    ("expression", "driver"),
    [
        ('device.driver == "dra.net"', "dra.net"),
        ("'gpu.nvidia.com' == device.driver && true", "gpu.nvidia.com"),
        ('device.driver != "dra.net"', ""),
        ("", ""),
    ],
)
def test_the_driver_of_an_expression(expression: str, driver: str) -> None:
    assert claims.driver(expression) == driver


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (('device.attributes["dra.net"].ifName == "rdma0"',), {"dra.net/ifName": {"rdma0"}}),
        (
            ("device.attributes['dra.net'].ifName in ['rdma0', \"rdma1\"]",),
            {"dra.net/ifName": {"rdma0", "rdma1"}},
        ),
        (('has(device.attributes["dra.net"].ifName)',), {"dra.net/ifName": set()}),
        (
            ('device.attributes["dra.net"].rdma == true', 'device.attributes["a.b"].c.startsWith("x")'),
            {"dra.net/rdma": {"true"}, "a.b/c": set()},
        ),
        (('device.attributes["dra.net"]["ifName"] == "rdma0"',), {"dra.net/ifName": {"rdma0"}}),
        (('device.attributes[?"dra.net"].?ifName.orValue("") == "rdma0"',), {"dra.net/ifName": {"rdma0"}}),
        (("device.attributes['dra.net'][?'ifName'] in ['a']",), {"dra.net/ifName": {"a"}}),
        ((), {}),
    ],
)
def test_the_attributes_of_expressions(expressions: tuple[str, ...], expected: dict[str, set[str]]) -> None:
    assert claims.attributes(expressions) == expected
