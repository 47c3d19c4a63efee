# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vectors of the OKE child range: each operation of the file is one function from input to result object."""

from __future__ import annotations

from typing import Any, Callable

from compare import UnjudgeableError, as_json, detail_differences, differences, names

from rdma_k8s.core.errors import RdmaError
from rdma_k8s.core.net import parse_address, parse_prefix
from rdma_k8s.core.oke import (
    addressing,
    child_range,
    conflicts,
    constants,
    imds,
    layout,
    nics,
    oca,
    options,
    pod_state,
    profile,
)
from rdma_k8s.core.snapshot import Route

OPERATIONS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], dict[str, Any]]]] = {}


def operation(*required: str) -> Callable[[Any], Any]:
    """Register a function under its name, with the members that its input must have."""

    def register(function: Any) -> Any:
        OPERATIONS[function.__name__] = (required, function)
        return function

    return register


# --- conversion of the types of the schema


def vnic_of(value: Any) -> Any:
    """The type `vnic`: {ip, subnet} or null; an absent member is unreadable, like null (F25)."""
    return None if value is None else addressing.read_vnic(value.get("ip"), value.get("subnet"))


def oca_network_of(given: dict[str, Any]) -> Any:
    """The optional member `oca_network`, as text; null is absent."""
    return text_or(given.get("oca_network"), constants.DEFAULT_OCA_NETWORK)


def child_range_of(given: dict[str, Any]) -> Any:
    """The optional member `child_range`, as text; null is absent."""
    return text_or(given.get("child_range"), constants.DEFAULT_CHILD_RANGE)


def text_or(value: Any, default: Any) -> Any:
    """A member, or the text of its default when it is null or absent; an empty text is a value."""
    return str(default) if value is None else value


def vnic_object(vnic: Any) -> Any:
    """A VNIC as the schema writes it."""
    return None if vnic is None else {"ip": str(vnic.address), "subnet": str(vnic.subnet)}


def interface_of(name: str, value: dict[str, Any]) -> Any:
    """One entry of the type `interfaces`."""
    return nics.Interface(
        name,
        value.get("arphrd"),
        nics.addresses_of(value.get("addresses") or ()),
        value.get("arp_ignore"),
        value.get("arp_announce"),
    )


def interfaces_of(value: dict[str, Any]) -> dict[str, Any]:
    """The type `interfaces`."""
    return {name: interface_of(name, entry) for name, entry in value.items()}


def device_of(value: dict[str, Any]) -> Any:
    """The type `device`. A link layer that is null is an unreadable file, which is not InfiniBand (F81)."""
    net = value.get("net")
    return nics.Device(
        value.get("pci_address") or "",
        value.get("mac") or "",
        None if net is None else tuple(net),
        tuple(
            nics.RdmaDevice(entry["name"], tuple(layer or "" for layer in entry.get("link_layers") or ()))
            for entry in value.get("infiniband") or ()
        ),
    )


def routes_of(value: Any) -> Any:
    """The type `host_routes`."""
    if value is None:
        return None
    return [Route(entry["dst"], type=entry.get("type") or "unicast") for entry in value]


def metadata_of(value: Any) -> Any:
    """The type `metadata`."""
    if value is None:
        return None
    return imds.Metadata(fabric=imds.parse_fabric(value.get("fabric")), vnic=vnic_of(value.get("vnic")))


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
    return {
        "nic_index": addressing.invert_index(vnic_of(given["vnic"]), given["address"], oca_network_of(given))
    }


@operation("child", "child_range", "nic_index")
def profile_routing(given: dict[str, Any]) -> dict[str, Any]:
    routing = addressing.routing(
        parse_address(given["child"]), parse_prefix(given["child_range"]), given["nic_index"]
    )
    return {
        "address": str(routing.address),
        "route": route_object(routing.route),
        "rule": rule_object(routing.rule),
    }


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


@operation("child_range", "vnics", "host_routes", "kubernetes_service_host")
def check_conflicts(given: dict[str, Any]) -> dict[str, Any]:
    conflicts.check(
        parse_prefix(given["child_range"]),
        given["vnics"],
        routes_of(given["host_routes"]),
        given["kubernetes_service_host"],
    )
    return {"ok": True}


# --- files of OCA


@operation("content")
def parse_oca_network(given: dict[str, Any]) -> dict[str, Any]:
    return {"oca_network": str(oca.parse_network(given["content"]))}


@operation("content")
def parse_oca_features(given: dict[str, Any]) -> dict[str, Any]:
    return {"address_mode": oca.parse_features(given["content"])}


@operation("rdma_network_json", "rdma_features_enable_json")
def load_oca_config(given: dict[str, Any]) -> dict[str, Any]:
    config = oca.load(given["rdma_network_json"], given["rdma_features_enable_json"])
    return {
        "oca_network": str(config.network),
        "address_mode": config.address_mode,
        "warnings": [warning.code for warning in config.warnings],
    }


# --- metadata


@operation("host", "instance")
def imds_attributes(given: dict[str, Any]) -> dict[str, Any]:
    metadata, _errors = imds.read(given["host"], given["instance"])
    return {"attributes": imds.attributes(metadata, parse_prefix(child_range_of(given)))}


METADATA = {
    "hpcIslandId": "hpc_island_id",
    "networkBlockId": "network_block_id",
    "localBlockId": "local_block_id",
    "rackId": "rack_id",
    "gpuMemoryFabricId": "gpu_memory_fabric_id",
    "shape": "shape",
}


@operation("current", "next")
def merge_metadata(given: dict[str, Any]) -> dict[str, Any]:
    current, new = [whole_metadata_of(given[key]) for key in ("current", "next")]
    merged = imds.merge(current, new)
    fabric = None if merged.fabric is None else vars(merged.fabric)
    texts = {key: getattr(merged, name) for key, name in METADATA.items()}
    return {"merged": {**texts, "rdmaFabric": fabric, "primaryVnic": vnic_object(merged.vnic)}}


def whole_metadata_of(value: Any) -> Any:
    """The metadata of `merge_metadata`; a text that is null or absent is empty."""
    if value is None:
        return None
    texts = {name: value.get(key) or "" for key, name in METADATA.items()}
    return imds.Metadata(
        **texts, fabric=imds.parse_fabric(value.get("rdmaFabric")), vnic=vnic_of(value.get("primaryVnic"))
    )


@operation("value")
def ocid_suffix(given: dict[str, Any]) -> dict[str, Any]:
    return {"suffix": imds.ocid_suffix(given["value"])}


@operation("vnics")
def parse_primary_vnic(given: dict[str, Any]) -> dict[str, Any]:
    return {"vnic": vnic_object(imds.parse_primary_vnic(given["vnics"]))}


@operation("vnics")
def parse_vnic_subnets(given: dict[str, Any]) -> dict[str, Any]:
    return {"subnets": [str(subnet) for subnet in imds.parse_vnic_subnets(given["vnics"])]}


# --- NICs


@operation("claim_arp_ignore", "claim_arp_announce", "sysctl_arp_ignore", "sysctl_arp_announce")
def arp_policy(given: dict[str, Any]) -> dict[str, Any]:
    policy = nics.arp_policy(
        given["claim_arp_ignore"],
        given["claim_arp_announce"],
        given["sysctl_arp_ignore"],
        given["sysctl_arp_announce"],
    )
    return dict(vars(policy))


@operation("content")
def netns_mode(given: dict[str, Any]) -> dict[str, Any]:
    return {"mode": nics.netns_mode(given["content"])}


@operation("name")
def nic_index_of_name(given: dict[str, Any]) -> dict[str, Any]:
    return {"nic_index": nics.nic_index_of_name(given["name"])}


@operation("interfaces")
def identify_rdma_nics(given: dict[str, Any]) -> dict[str, Any]:
    found = nics.identify(interfaces_of(given["interfaces"]), parse_prefix(oca_network_of(given)))
    return {"address_fallback": found.address_fallback, "rdma_nics": list(found.rdma_nics)}


@operation("device", "netns_mode")
def native_ib_guard(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "native_infiniband": nics.guard_native_infiniband(device_of(given["device"]), given["netns_mode"])
    }


@operation()
def device_name(given: dict[str, Any]) -> dict[str, Any]:
    return {"name": nics.device_name(given.get("pci_address") or "", given.get("if_name") or "")}


@operation("interface", "addresses", "expected")
def check_parent_address(given: dict[str, Any]) -> dict[str, Any]:
    interface = nics.Interface(given["interface"], addresses=nics.addresses_of(given["addresses"] or ()))
    layout.check_parent_address(interface, parse_address(given["expected"]))
    return {"ok": True}


@operation("interfaces", "vnic")
def check_layout(given: dict[str, Any]) -> dict[str, Any]:
    network = parse_prefix(oca_network_of(given))
    return {
        "checked": layout.check_layout(interfaces_of(given["interfaces"]), vnic_of(given["vnic"]), network)
    }


# --- claims, options, pods


@operation("config")
def check_claim_request(given: dict[str, Any]) -> dict[str, Any]:
    profile.check_claim(profile.parse_claim(given["config"]))
    return {"ok": True}


@operation(
    "config",
    "device",
    "netns_mode",
    "metadata",
    "oca",
    "interfaces",
    "vnics",
    "host_routes",
    "kubernetes_service_host",
)
def resolve_profile(given: dict[str, Any]) -> dict[str, Any]:
    files = given["oca"] or {}
    node = profile.Node(
        interfaces=interfaces_of(given["interfaces"]),
        netns_mode=given["netns_mode"],
        metadata=metadata_of(given["metadata"]),
        oca=oca.OcaConfig(
            parse_prefix(files.get("network") or str(constants.DEFAULT_OCA_NETWORK)),
            files.get("address_mode"),
        ),
        child_range=child_range_of(given),
        vnics=given["vnics"],
        host_routes=routes_of(given["host_routes"]),
        service_host=given["kubernetes_service_host"],
    )
    found = profile.resolve(profile.parse_claim(given["config"]), device_of(given["device"]), node)
    if found.network_config is None:
        return {"network_config": None, "reason": found.reason}
    return {"network_config": found.network_config.to_dict()}


@operation("flags", "hint", "discovered")
def parse_options(given: dict[str, Any]) -> dict[str, Any]:
    found = options.parse(given["flags"] or (), given["hint"], given["discovered"])
    chosen = None if found.child_range is None else str(found.child_range)
    return {"child_range": chosen, "ignored": found.ignored}


@operation("if_name", "nic_index", "child", "child_range", "addr_json", "route_json", "rule_json")
def pod_ip_state(given: dict[str, Any]) -> dict[str, Any]:
    found = pod_state.problems(
        given["if_name"],
        given["nic_index"],
        parse_address(given["child"]),
        parse_prefix(given["child_range"]),
        pod_state.Output(given["addr_json"], given["route_json"], given["rule_json"]),
    )
    return {"problems": [problem.kind for problem in found]}


# --- the family of files


def matches(document: Any) -> bool:
    """Tell whether a parsed file is one of OKE child range vectors."""
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, dict):
        return False
    tables = [schema.get(key) for key in ("ops", "error_kinds", "problem_kinds")]
    return all(isinstance(table, dict) for table in tables) and bool(set(schema["ops"]) & set(OPERATIONS))


def kind_of(case: Any) -> str:
    """The operation of a case; empty when it has none."""
    op = case.get("op") if isinstance(case, dict) else None
    return op if isinstance(op, str) else ""


def judge(document: Any, case: Any) -> list[str]:
    """Run one case through the core and compare."""
    run, given, expected = checked(document["schema"], case)
    try:
        got = run(given)
    except RdmaError as error:
        return error_differences(expected, error)
    return differences(expected, got)


def checked(schema: dict[str, Any], case: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Function, input and expectation of a case; raises `UnjudgeableError` for one that is malformed or unknown."""
    if not isinstance(case, dict) or not isinstance(case.get("name"), str):
        raise UnjudgeableError("is not an object with a name")
    for key in ("input", "expect"):
        if not isinstance(case.get(key), dict):
            raise UnjudgeableError("%s: %r is missing or is not an object" % (case["name"], key))
    op = case.get("op")
    if not isinstance(op, str) or op not in OPERATIONS or op not in schema["ops"]:
        raise UnjudgeableError("%s: unknown operation %r" % (case["name"], op))
    required, run = OPERATIONS[op]
    missing = [key for key in required if key not in case["input"]]
    if missing:
        raise UnjudgeableError("%s: the input has no %s" % (case["name"], ", ".join(missing)))
    check_kinds(schema, case)
    return run, case["input"], case["expect"]


def check_kinds(schema: dict[str, Any], case: dict[str, Any]) -> None:
    """Every kind that a case expects must be one that its file lists."""
    expected = case["expect"]
    for key, listed in (("error", "error_kinds"), ("warnings", "error_kinds"), ("problems", "problem_kinds")):
        if key not in expected:
            continue
        kinds = [expected[key]] if key == "error" else expected[key]
        if not isinstance(kinds, list):
            raise UnjudgeableError("%s: %r is not a list" % (case["name"], key))
        for kind in kinds:
            if not isinstance(kind, str) or kind not in schema[listed]:
                raise UnjudgeableError("%s: unknown kind %r in %r" % (case["name"], kind, key))
    if not isinstance(expected.get("details", {}), dict):
        raise UnjudgeableError("%s: 'details' is not an object" % case["name"])
    others = sorted(set(expected) - {"error", "details"})
    if "error" in expected and others:
        raise UnjudgeableError("%s: %s stands next to 'error'" % (case["name"], ", ".join(map(repr, others))))


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
    return [
        "the message does not name %s: %s" % (value, error.message)
        for value in wanted
        if not names(error.message, value)
    ]
