# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the OKE child range: each operation of the file is one function from input to result object."""

from __future__ import annotations

from typing import Any, Callable

from compare import Unjudgeable, as_json, detail_differences, differences, names
from rdma_k8s.core.errors import RdmaError
from rdma_k8s.core.net import parse_address, parse_prefix
from rdma_k8s.core.oke import addressing, child_range
from rdma_k8s.core.oke.constants import DEFAULT_CHILD_RANGE, DEFAULT_OCA_NETWORK

OPERATIONS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], dict[str, Any]]]] = {}


def operation(*required: str) -> Callable[[Any], Any]:
    """Register a function under its name, with the members that its input must have."""

    def register(function: Any) -> Any:
        OPERATIONS[function.__name__] = (required, function)
        return function

    return register


# --- conversion of the types of the schema


def vnic_of(value: Any) -> Any:
    """The type `vnic`: {ip, subnet} or null."""
    return None if value is None else addressing.read_vnic(value["ip"], value["subnet"])


def oca_network_of(given: dict[str, Any]) -> Any:
    """The optional member `oca_network`, as text."""
    return given.get("oca_network", str(DEFAULT_OCA_NETWORK))


def child_range_of(given: dict[str, Any]) -> Any:
    """The optional member `child_range`, as text."""
    return given.get("child_range", str(DEFAULT_CHILD_RANGE))


def vnic_object(vnic: Any) -> Any:
    """A VNIC as the schema writes it."""
    return None if vnic is None else {"ip": str(vnic.address), "subnet": str(vnic.subnet)}


# --- addresses


@operation("vnic", "nic_index")
def derive_child(given: dict[str, Any]) -> dict[str, Any]:
    child = addressing.derive_child(
        vnic_of(given["vnic"]), given["nic_index"], oca_network_of(given), child_range_of(given)
    )
    return {
        "parent": str(child.parent),
        "child": str(child.child),
        "child_address": str(child.child_address),
        "offset": child.offset,
        "block_size": child.block_size,
        "host_position": child.host_position,
        "table": child.table,
    }


@operation("vnic", "nic_index")
def derive_parent(given: dict[str, Any]) -> dict[str, Any]:
    parent = addressing.derive_parent(vnic_of(given["vnic"]), given["nic_index"], oca_network_of(given))
    return {
        "parent": str(parent.parent),
        "offset": parent.offset,
        "block_size": parent.block_size,
        "host_position": parent.host_position,
    }


@operation("vnic", "address")
def invert_index(given: dict[str, Any]) -> dict[str, Any]:
    return {"nic_index": addressing.invert_index(vnic_of(given["vnic"]), given["address"], oca_network_of(given))}


@operation("child", "child_range", "nic_index")
def profile_routing(given: dict[str, Any]) -> dict[str, Any]:
    routing = addressing.routing(
        parse_address(given["child"]), parse_prefix(given["child_range"]), given["nic_index"]
    )
    return {"address": str(routing.address), "route": route_object(routing.route), "rule": rule_object(routing.rule)}


def route_object(route: Any) -> dict[str, Any]:
    """A route of the profile as the schema writes it."""
    return {**vars(route), "destination": str(route.destination), "source": str(route.source)}


def rule_object(rule: Any) -> dict[str, Any]:
    """A rule of the profile as the schema writes it."""
    return {**vars(rule), "source": str(rule.source)}


# --- the range


@operation("value")
def validate_child_range(given: dict[str, Any]) -> dict[str, Any]:
    prefix = child_range.validate(given["value"])
    return {"child_range": str(prefix), "addresses": prefix.size}


@operation("subnet_prefix_len")
def range_for_16_nics(given: dict[str, Any]) -> dict[str, Any]:
    return {"child_prefix_len": child_range.length_for_16_nics(given["subnet_prefix_len"])}


@operation("subnet_prefix_len", "child_prefix_len")
def range_capacity(given: dict[str, Any]) -> dict[str, Any]:
    return child_range.capacity(given["subnet_prefix_len"], given["child_prefix_len"]).__dict__


# --- the family of files


def matches(document: Any) -> bool:
    """Tell whether a parsed file is one of OKE child range vectors."""
    schema = document.get("schema") if isinstance(document, dict) else None
    ops = schema.get("ops") if isinstance(schema, dict) else None
    return isinstance(ops, dict) and bool(set(ops) & set(OPERATIONS))


def cases(document: Any) -> list[Any]:
    """The cases of a file; their names must be unique."""
    found = document.get("cases")
    if not isinstance(found, list):
        raise Unjudgeable("'cases' is not a list")
    called = [case.get("name") for case in found if isinstance(case, dict)]
    twice = sorted({str(name) for name in called if called.count(name) > 1})
    if twice:
        raise Unjudgeable("names are not unique: %s" % ", ".join(twice))
    return found


def judge(document: Any, case: Any) -> list[str]:
    """Run one case through the core and compare."""
    run, given, expected = checked(document["schema"], case)
    try:
        got = run(given)
    except RdmaError as error:
        return error_differences(expected, error)
    return differences(expected, got)


def checked(schema: dict[str, Any], case: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Function, input and expectation of a case; raises `Unjudgeable` for one that is malformed or unknown."""
    if not isinstance(case, dict) or not isinstance(case.get("name"), str):
        raise Unjudgeable("is not an object with a name")
    for key in ("input", "expect"):
        if not isinstance(case.get(key), dict):
            raise Unjudgeable("%s: %r is missing or is not an object" % (case["name"], key))
    op = case.get("op")
    if not isinstance(op, str) or op not in OPERATIONS or op not in schema["ops"]:
        raise Unjudgeable("%s: unknown operation %r" % (case["name"], op))
    required, run = OPERATIONS[op]
    missing = [key for key in required if key not in case["input"]]
    if missing:
        raise Unjudgeable("%s: the input has no %s" % (case["name"], ", ".join(missing)))
    check_kinds(schema, case)
    return run, case["input"], case["expect"]


def check_kinds(schema: dict[str, Any], case: dict[str, Any]) -> None:
    """Every kind that a case expects must be one that its file lists."""
    expected = case["expect"]
    for key, listed in (("error", "error_kinds"), ("warnings", "error_kinds"), ("problems", "problem_kinds")):
        kinds = expected.get(key, [])
        for kind in [kinds] if key == "error" and key in expected else kinds:
            if not isinstance(kind, str) or kind not in schema.get(listed, {}):
                raise Unjudgeable("%s: unknown kind %r in %r" % (case["name"], kind, key))
    if not isinstance(expected.get("details", {}), dict):
        raise Unjudgeable("%s: 'details' is not an object" % case["name"])


def error_differences(expected: dict[str, Any], error: RdmaError) -> list[str]:
    """Compare an error of the core with the expectation of a case."""
    if expected.get("error") != error.code:
        return ["expected %s" % as_json(expected), "got      error %s: %s" % (error.code, error)]
    found = detail_differences(expected.get("details", {}), error)
    if error.code == "outside_child_range":
        found += unnamed(error)
    return found


def unnamed(error: RdmaError) -> list[str]:
    """What the message of `outside_child_range` must name by the schema, and does not."""
    details = error.details
    wanted = [details["nic_index"], details["subnet_prefix_len"], details["child_range"]]
    if details["prefix_len_for_16"] is not None:
        wanted.append(details["prefix_len_for_16"])
    return ["the message does not name %s: %s" % (value, error.message) for value in wanted if not names(error.message, value)]
