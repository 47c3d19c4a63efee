# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From objects of the Kubernetes API to the parts of a ClusterSnapshot. Private to rdma.k8s: it may change any time.

The objects come from an API server or from files of users; a value of another kind than expected counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Optional

from . import cluster_snapshot as shapes
from .ack.names import DAEMONSET as ACK_PLUGIN
from .kube import pod_templates
from .kube.devices import plain_attributes, qualified
from .kube.objects import entries, mapping, text
from .kube.selectors import selects
from .redact import REPLACED, redacted
from .roll.names import RECORD
from .spiderpool.names import INJECT, NETWORKS, POOL_ANNOTATIONS, RESOURCE_PREFIX

PREPARE_REASON = "FailedPrepareDynamicResources"
"""The reason of the events with which a kubelet says that it could not prepare a claim."""
OWN_NAME = "rdma.k8s"
OWN_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/part-of")
"""Labels with that value are on what this collection makes; what it applies also has a field manager of that name."""

_OWN_ANNOTATIONS = ("rdma-k8s/", "rdma.k8s/", "sriovnetwork.openshift.io/")
_ROLL_MARKS = ("roll-", "initial-unschedulable", "reboots")
"""What annotations of a roll are called behind their prefix, which a plan can choose."""
_BULKY_LABELS = ("feature.node.kubernetes.io/", "beta.kubernetes.io/")
_OF_NICS = ("sriov", "rdma", "15b3")
_SECRETS = r"--?[\w-]*(?:pass(?:word|phrase)|secret|token|credential|private-?key|api-?key)[\w-]*"
_SECRET_OPTION = re.compile(_SECRETS, re.IGNORECASE)
_SECRET_BEHIND = re.compile("(" + _SECRETS + r"[= ])\S+", re.IGNORECASE)
_USER_IN_URL = re.compile(r"//[^/@\s]+@")
_MESSAGE = 500
_RAIL_ANNOTATIONS = (NETWORKS, *INJECT, *POOL_ANNOTATIONS)
_ORDINARY = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))


# --- nodes -----------------------------------------------------------------------------------------------------------


def node(content: Mapping[str, Any]) -> shapes.ClusterNode:
    """A Node."""
    metadata, spec, status = _parts(content)
    info = mapping(status, "nodeInfo")
    conditions = [entry for _at, entry in entries(status.get("conditions"))]
    since = [text(entry.get("lastTransitionTime")) for entry in conditions if entry.get("type") == "Ready"]
    blocks = _texts(spec.get("podCIDRs")) or _texts([spec.get("podCIDR")])
    return shapes.ClusterNode(
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        created=text(metadata.get("creationTimestamp")),
        labels={k: v for k, v in _text_map(metadata.get("labels")).items() if keeps_label(k)},
        annotations={k: v for k, v in _text_map(metadata.get("annotations")).items() if _is_kept(k)},
        unschedulable=spec.get("unschedulable") is True,
        taints=tuple([_taint(entry) for _at, entry in entries(spec.get("taints"))]),
        addresses=tuple(
            [
                "%s %s" % (text(entry.get("type")), text(entry.get("address")))
                for _at, entry in entries(status.get("addresses"))
            ]
        ),
        provider_id=text(spec.get("providerID")),
        pod_cidrs=blocks,
        architecture=text(info.get("architecture")),
        os=text(info.get("osImage")),
        kernel=text(info.get("kernelVersion")),
        runtime=text(info.get("containerRuntimeVersion")),
        kubelet=text(info.get("kubeletVersion")),
        boot_id=text(info.get("bootID")),
        conditions=_conditions(conditions),
        ready_since=since[0] if since else "",
        capacity=_extended(status.get("capacity")),
        allocatable=_extended(status.get("allocatable")),
    )


def _is_kept(annotation: str) -> bool:
    """Whether an annotation of a node is of this collection, of one of its rolls, or of the SR-IOV operator."""
    return annotation.startswith(_OWN_ANNOTATIONS) or annotation.partition("/")[2].startswith(_ROLL_MARKS)


def keeps_label(key: str) -> bool:
    """Whether a snapshot keeps a label of a node; of the many of node feature discovery those about NICs."""
    return not key.startswith(_BULKY_LABELS) or any(word in key for word in _OF_NICS)


def _extended(quantities: Any) -> dict[str, str]:
    found = _text_map(quantities)
    return {
        name: value
        for name, value in found.items()
        if name not in _ORDINARY and not (name.startswith("hugepages-") and value == "0")
    }


# --- devices and claims ----------------------------------------------------------------------------------------------


def resource_slice(content: Mapping[str, Any]) -> shapes.ResourceSlice:
    """A ResourceSlice, of the API version v1 or an older one."""
    metadata, spec, _status = _parts(content)
    pool, driver = mapping(spec, "pool"), text(spec.get("driver"))
    return shapes.ResourceSlice(
        name=text(metadata.get("name")),
        driver=driver,
        node=text(spec.get("nodeName")),
        pool=text(pool.get("name")),
        generation=_number(pool.get("generation"), 0),
        slices=_number(pool.get("resourceSliceCount"), 1),
        created=text(metadata.get("creationTimestamp")),
        devices=tuple([_device(entry, driver) for _at, entry in entries(spec.get("devices"))]),
    )


def _device(content: Mapping[str, Any], driver: str) -> shapes.SliceDevice:
    basic = mapping(content, "basic") or content  # v1beta1 has one level more
    capacity = {}
    for name, held in mapping(basic, "capacity").items():
        capacity[qualified(name, driver)] = text(held.get("value") if isinstance(held, dict) else held)
    return shapes.SliceDevice(
        name=text(content.get("name")),
        attributes=plain_attributes(mapping(basic, "attributes"), driver),
        capacity=capacity,
        taints=tuple([_taint(entry) for _at, entry in entries(basic.get("taints"))]),
    )


def device_class(content: Mapping[str, Any]) -> shapes.DeviceClass:
    """A DeviceClass."""
    metadata, spec, _status = _parts(content)
    return shapes.DeviceClass(
        name=text(metadata.get("name")),
        selectors=_selectors(spec),
        config=_config(spec.get("config")),
        extended_resource=text(spec.get("extendedResourceName")),
    )


def claim(content: Mapping[str, Any]) -> shapes.Claim:
    """A ResourceClaim."""
    metadata, spec, status = _parts(content)
    allocation = mapping(status, "allocation")
    devices = mapping(spec, "devices")
    owners = [
        text(entry.get("name"))
        for _at, entry in entries(metadata.get("ownerReferences"))
        if entry.get("kind") == "Pod"
    ]
    return shapes.Claim(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        uid=text(metadata.get("uid")),
        created=text(metadata.get("creationTimestamp")),
        deleted=text(metadata.get("deletionTimestamp")),
        owner=owners[0] if owners else "",
        requests=_requests(devices),
        constraints=_constraints(devices),
        config=_config(devices.get("config")),
        allocated=bool(allocation),
        node=_node_of(allocation),
        devices=tuple(
            [
                shapes.AllocatedDevice(
                    request=text(entry.get("request")),
                    driver=text(entry.get("driver")),
                    pool=text(entry.get("pool")),
                    device=text(entry.get("device")),
                )
                for _at, entry in entries(mapping(allocation, "devices").get("results"))
            ]
        ),
        reserved_for=tuple(
            [
                shapes.Consumer(
                    resource=text(entry.get("resource")),
                    name=text(entry.get("name")),
                    uid=text(entry.get("uid")),
                )
                for _at, entry in entries(status.get("reservedFor"))
            ]
        ),
        status=tuple([_device_status(entry) for _at, entry in entries(status.get("devices"))]),
        allocated_at=_allocated_at(metadata, allocation),
    )


def _allocated_at(metadata: Mapping[str, Any], allocation: Mapping[str, Any]) -> str:
    """When the devices were given: what the allocation says, else when its manager last wrote the status.

    A claim that more pods come to share is written again, so the true time can be an earlier one.
    """
    told = text(allocation.get("allocationTimestamp"))
    if told or not allocation:
        return told
    times = [
        text(entry.get("time"))
        for _at, entry in entries(metadata.get("managedFields"))
        if "f:allocation" in mapping(entry, "fieldsV1", "f:status")
    ]
    return max(times, default="")


def _node_of(allocation: Mapping[str, Any]) -> str:
    """The node that an allocation ties the claim to; empty when it is none or several."""
    terms = [entry for _at, entry in entries(mapping(allocation, "nodeSelector").get("nodeSelectorTerms"))]
    names = [
        _texts(field.get("values"))
        for term in terms
        for _at, field in entries(term.get("matchFields"))
        if field.get("key") == "metadata.name"
    ]
    return names[0][0] if len(names) == 1 and len(names[0]) == 1 else ""


def _device_status(entry: Mapping[str, Any]) -> shapes.DeviceStatus:
    network = mapping(entry, "networkData")
    return shapes.DeviceStatus(
        driver=text(entry.get("driver")),
        pool=text(entry.get("pool")),
        device=text(entry.get("device")),
        interface=text(network.get("interfaceName")),
        addresses=_texts(network.get("ips")),
        conditions=_conditions([held for _at, held in entries(entry.get("conditions"))]),
    )


def claim_template(content: Mapping[str, Any]) -> shapes.ClaimTemplate:
    """A ResourceClaimTemplate."""
    metadata, spec, _status = _parts(content)
    devices = mapping(spec, "spec", "devices")
    return shapes.ClaimTemplate(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        requests=_requests(devices),
        constraints=_constraints(devices),
        config=_config(devices.get("config")),
    )


def taint_rule(content: Mapping[str, Any]) -> shapes.DeviceTaintRule:
    """A DeviceTaintRule."""
    metadata, spec, _status = _parts(content)
    selector = mapping(spec, "deviceSelector")
    return shapes.DeviceTaintRule(
        name=text(metadata.get("name")),
        driver=text(selector.get("driver")),
        pool=text(selector.get("pool")),
        device=text(selector.get("device")),
        taint=_taint(mapping(spec, "taint")),
        created=text(metadata.get("creationTimestamp")),
    )


def _requests(devices: Mapping[str, Any]) -> tuple[shapes.DeviceRequest, ...]:
    found = []
    for _at, entry in entries(devices.get("requests")):
        name = text(entry.get("name"))
        alternatives = [held for _number_, held in entries(entry.get("firstAvailable"))]
        if alternatives:
            found += [_request("%s/%s" % (name, text(held.get("name"))), held) for held in alternatives]
        else:
            found.append(_request(name, mapping(entry, "exactly") or entry))  # v1beta1 has no "exactly"
    return tuple(found)


def _request(name: str, content: Mapping[str, Any]) -> shapes.DeviceRequest:
    return shapes.DeviceRequest(
        name=name,
        device_class=text(content.get("deviceClassName")),
        mode=text(content.get("allocationMode")) or "ExactCount",
        count=_number(content.get("count"), 1),
        selectors=_selectors(content),
        tolerations=tuple([_toleration(entry) for _at, entry in entries(content.get("tolerations"))]),
    )


def _selectors(content: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        [text(mapping(entry, "cel").get("expression")) for _at, entry in entries(content.get("selectors"))]
    )


def _constraints(devices: Mapping[str, Any]) -> tuple[shapes.Constraint, ...]:
    return tuple(
        [
            shapes.Constraint(
                requests=_texts(entry.get("requests")),
                match=text(entry.get("matchAttribute")),
                distinct=text(entry.get("distinctAttribute")),
            )
            for _at, entry in entries(devices.get("constraints"))
        ]
    )


def _config(value: Any) -> tuple[shapes.OpaqueConfig, ...]:
    return tuple(
        [
            shapes.OpaqueConfig(
                driver=text(mapping(entry, "opaque").get("driver")),
                requests=_texts(entry.get("requests")),
                parameters=redacted(mapping(entry, "opaque").get("parameters")) or None,
            )
            for _at, entry in entries(value)
        ]
    )


# --- drivers ---------------------------------------------------------------------------------------------------------

_NETWORK = (
    "multus",
    "spiderpool",
    "sriov",
    "kube-proxy",
    "flannel",
    "calico",
    "cilium",
    "native-ip-cni",
    "rdma-cni",
    "terway",
)
_OF_RDMA = ("rdma", "sriov", "hca", "dranet")


def role(content: Mapping[str, Any]) -> str:
    """What a DaemonSet does for RDMA: ``dranet``, ``provider``, ``dra``, ``device-plugin``, ``network``, or nothing.

    A driver for DRA registers at the kubelet through ``plugins_registry`` (F116), as drivers for storage do, and as
    newer device plugins do (A77), of which that of ACK is known by its name.
    """
    metadata, spec, _status = _parts(content)
    pod = mapping(spec, "template", "spec")
    name = text(metadata.get("name"))
    containers = [entry for _at, entry in entries(pod.get("containers"))]
    images = [text(entry.get("image")).rpartition("/")[2] for entry in containers]
    paths = [
        text(mapping(entry, "hostPath").get("path")).rstrip("/") for _at, entry in entries(pod.get("volumes"))
    ]
    registers = any(path.endswith("/plugins_registry") for path in paths)
    if any(image.startswith("dranet") for image in images) or (registers and "dranet" in name):
        return "dranet"
    if is_ours(content):
        return "provider"
    drives = name != ACK_PLUGIN and not any("csi" in word or "registrar" in word for word in [name, *images])
    if registers and drives:
        return "dra"
    if name == ACK_PLUGIN or any(path.endswith("/device-plugins") for path in paths):
        return "device-plugin"
    if any(word in held for word in _NETWORK for held in [name, *images]):
        return "network"
    return ""


def wants_pods(found: shapes.DaemonSet) -> bool:
    """Whether the pods of a DaemonSet are read: those of DRA drivers, and of device plugins for RDMA."""
    if found.role == "device-plugin":
        words = [found.name, *[container.image for container in found.containers]]
        return any(part in word for part in _OF_RDMA for word in words)
    return found.role in ("dranet", "provider", "dra")


def daemonset(content: Mapping[str, Any]) -> shapes.DaemonSet:
    """A DaemonSet without its pods."""
    metadata, spec, status = _parts(content)
    pod = mapping(spec, "template", "spec")
    strategy = mapping(spec, "updateStrategy")
    unavailable = mapping(strategy, "rollingUpdate").get("maxUnavailable")
    volumes = {text(entry.get("name")): entry for _at, entry in entries(pod.get("volumes"))}
    containers = [_container(entry, volumes, True) for _at, entry in entries(pod.get("initContainers"))]
    containers += [_container(entry, volumes, False) for _at, entry in entries(pod.get("containers"))]
    return shapes.DaemonSet(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        role=role(content),
        uid=text(metadata.get("uid")),
        generation=_number(metadata.get("generation"), 0),
        observed_generation=_number(status.get("observedGeneration"), 0),
        strategy=text(strategy.get("type")) or "RollingUpdate",
        max_unavailable="" if unavailable is None else str(unavailable),
        desired=_number(status.get("desiredNumberScheduled"), 0),
        ready=_number(status.get("numberReady"), 0),
        updated=_number(status.get("updatedNumberScheduled"), 0),
        available=_number(status.get("numberAvailable"), 0),
        scheduled=_number(status.get("currentNumberScheduled"), 0),
        misscheduled=_number(status.get("numberMisscheduled"), 0),
        service_account=text(pod.get("serviceAccountName")),
        priority_class=text(pod.get("priorityClassName")),
        host_network=pod.get("hostNetwork") is True,
        node_selector=_text_map(pod.get("nodeSelector")),
        tolerations=tuple([_toleration(entry) for _at, entry in entries(pod.get("tolerations"))]),
        containers=tuple(containers),
    )


def selector_of(content: Mapping[str, Any]) -> str:
    """The label selector of the pods of a DaemonSet, as a list takes it."""
    labels = _text_map(mapping(content, "spec", "selector").get("matchLabels"))
    return ",".join(["%s=%s" % pair for pair in sorted(labels.items())])


def _container(content: Mapping[str, Any], volumes: Mapping[str, Any], init: bool) -> shapes.DriverContainer:
    resources = mapping(content, "resources")
    return shapes.DriverContainer(
        name=text(content.get("name")),
        image=text(content.get("image")),
        init=init,
        command=tuple(without_secrets(_texts(content.get("command")))),
        args=tuple(without_secrets(_texts(content.get("args")))),
        environment=tuple([text(entry.get("name")) for _at, entry in entries(content.get("env"))]),
        mounts=tuple(
            [
                _mount(entry, mapping(volumes.get(text(entry.get("name")))))
                for _at, entry in entries(content.get("volumeMounts"))
            ]
        ),
        privileged=mapping(content, "securityContext").get("privileged") is True,
        liveness=bool(mapping(content, "livenessProbe")),
        readiness=bool(mapping(content, "readinessProbe")),
        requests=_text_map(resources.get("requests")),
        limits=_text_map(resources.get("limits")),
    )


def _mount(content: Mapping[str, Any], volume: Mapping[str, Any]) -> shapes.Mount:
    host = mapping(volume, "hostPath")
    source = ""
    for kind, key in (
        ("configMap", "name"),
        ("secret", "secretName"),
        ("emptyDir", "medium"),
        ("projected", ""),
    ):
        if kind in volume:
            source = ("%s %s" % (kind, text(mapping(volume, kind).get(key)))).rstrip()
    return shapes.Mount(
        path=text(content.get("mountPath")),
        host=text(host.get("path")),
        type=text(host.get("type")),
        source=source,
        read_only=content.get("readOnly") is True,
    )


def without_secrets(words: Iterable[str]) -> list[str]:
    """Arguments of a program; what stands behind an option that sounds like a secret is replaced."""
    found, hidden = [], False
    for word in words:
        if hidden and not word.startswith("-"):
            found.append(REPLACED)
            hidden = False
            continue
        hidden = bool(_SECRET_OPTION.fullmatch(word))
        found.append(_USER_IN_URL.sub("//%s@" % REPLACED, _SECRET_BEHIND.sub(r"\1" + REPLACED, word)))
    return found


def driver_pod(content: Mapping[str, Any], owner: shapes.DaemonSet) -> Optional[shapes.DriverPod]:
    """A pod of a DaemonSet; ``None`` when it belongs to another object."""
    metadata, spec, status = _parts(content)
    owners = [text(entry.get("uid")) for _at, entry in entries(metadata.get("ownerReferences"))]
    if owner.uid not in owners:
        return None
    wanted = {container.name: list(container.args) for container in owner.containers}
    args = {
        text(entry.get("name")): without_secrets(_texts(entry.get("args")))
        for kind in ("initContainers", "containers")
        for _at, entry in entries(spec.get(kind))
    }
    states = [entry for _at, entry in entries(status.get("containerStatuses"))]
    conditions = _conditions([entry for _at, entry in entries(status.get("conditions"))])
    return shapes.DriverPod(
        name=text(metadata.get("name")),
        node=text(spec.get("nodeName")),
        phase=text(status.get("phase")),
        ready=conditions.get("Ready") == "True",
        started=text(mapping(states[0], "state", "running").get("startedAt")) if states else "",
        deleted=text(metadata.get("deletionTimestamp")),
        restarts=max([_number(entry.get("restartCount"), 0) for entry in states] or [0]),
        trouble=_trouble(states) if conditions.get("Ready") != "True" else "",
        digest=text(states[0].get("imageID")).rpartition("@")[2] if states else "",
        revision=_text_map(metadata.get("labels")).get("controller-revision-hash", ""),
        args=args if args != wanted else None,
        created=text(metadata.get("creationTimestamp")),
    )


def _trouble(states: Iterable[Mapping[str, Any]]) -> str:
    """What the first container that does not run waits for, and how it ended before (A98)."""
    for entry in states:
        waiting = text(mapping(entry, "state", "waiting").get("reason"))
        ended = mapping(entry, "lastState", "terminated") or mapping(entry, "state", "terminated")
        words = [waiting] if waiting else []
        if ended:
            reason = text(ended.get("reason")) or "ended"
            words.append("last %s, exit code %d" % (reason, _number(ended.get("exitCode"), 0)))
        if words:
            return ", ".join(words)[:_MESSAGE]
    return ""


# --- what is wanted of nodes and pods --------------------------------------------------------------------------------


def api_object(content: Mapping[str, Any]) -> shapes.ApiObject:
    """An object of Multus, Spiderpool or the SR-IOV operator."""
    metadata, spec, _status = _parts(content)
    annotations = _text_map(metadata.get("annotations"))
    return shapes.ApiObject(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        resource=annotations.get("k8s.v1.cni.cncf.io/resourceName", ""),
        spec=redacted(spec) or None,
        annotations={key: annotations[key] for key in INJECT if key in annotations},
    )


def rail_workloads(
    content: Mapping[str, Any], asking: Mapping[str, dict[str, str]], made: Collection[str]
) -> list[shapes.RailWorkload]:
    """The templates of an object whose pods ask for networks or devices of Spiderpool; none of another object.

    :param asking: the annotations of namespaces that ask for networks, by namespace (S159).
    :param made: the resources that policies make, without their domain.
    """
    found = []
    where = text(mapping(content, "metadata").get("namespace"))
    for template in pod_templates.templates(content):
        own = _text_map(template.metadata.get("annotations"))
        annotations = {key: own[key] for key in _RAIL_ANNOTATIONS if key in own}
        containers = [
            shapes.RailContainer(container.name, _devices_of(container.spec))
            for container in template.containers
            if container.role == pod_templates.MAIN
        ]
        has_device = any(
            key.startswith(RESOURCE_PREFIX + "/") or key.partition("/")[2] in made
            for held in containers
            for key in held.limits
        )
        if annotations or has_device or where in asking:
            found.append(
                shapes.RailWorkload(
                    of_kind=text(content.get("kind")),
                    namespace=where,
                    name=text(mapping(content, "metadata").get("name")),
                    role=template.role,
                    annotations=annotations,
                    namespace_annotations=asking.get(where, {}),
                    containers=tuple(containers),
                )
            )
    return found


def _devices_of(container: Mapping[str, Any]) -> dict[str, str]:
    resources = mapping(container, "resources")
    asked = {**_text_map(resources.get("requests")), **_text_map(resources.get("limits"))}
    return {key: value for key, value in asked.items() if "/" in key}


def has_read_owner(content: Mapping[str, Any], kinds: Collection[str]) -> bool:
    """Whether the object that made this one is of a kind that is read itself; a ReplicaSet is of a Deployment."""
    owners = entries(mapping(content, "metadata").get("ownerReferences"))
    made_by = {text(entry.get("kind")) for _at, entry in owners if entry.get("controller") is True}
    return bool(made_by & {*kinds, "ReplicaSet"})


def asking_annotations(content: Mapping[str, Any]) -> dict[str, str]:
    """The annotations of a namespace that ask for networks in each of its pods (S159)."""
    held = _text_map(mapping(content, "metadata").get("annotations"))
    return {key: held[key] for key in INJECT if key in held}


def sriov_node_state(content: Mapping[str, Any]) -> shapes.SriovNodeState:
    """A SriovNetworkNodeState."""
    metadata, spec, status = _parts(content)
    annotations = _text_map(metadata.get("annotations"))
    wanted = {text(entry.get("pciAddress")): entry for _at, entry in entries(spec.get("interfaces"))}
    return shapes.SriovNodeState(
        node=text(metadata.get("name")),
        namespace=text(metadata.get("namespace")),
        sync=text(status.get("syncStatus")),
        last_error=text(status.get("lastSyncError"))[:_MESSAGE],
        rdma_mode=text(mapping(status, "system").get("rdmaMode")),
        wanted_rdma_mode=text(mapping(spec, "system").get("rdmaMode")),
        desired_state=annotations.get("sriovnetwork.openshift.io/desired-state", ""),
        current_state=annotations.get("sriovnetwork.openshift.io/current-state", ""),
        interfaces=tuple(
            [
                _sriov_interface(entry, wanted.get(text(entry.get("pciAddress"))))
                for _at, entry in entries(status.get("interfaces"))
            ]
        ),
        generation=_number(metadata.get("generation"), 0),
    )


def _sriov_interface(
    content: Mapping[str, Any], wanted: Optional[Mapping[str, Any]]
) -> shapes.SriovInterface:
    wish = wanted or {}
    functions = [entry for _at, entry in entries(content.get("Vfs"))]
    mtus = [found for found in [_integer(entry.get("mtu")) for entry in functions] if found is not None]
    return shapes.SriovInterface(
        pci=text(content.get("pciAddress")),
        name=text(content.get("name")),
        vendor=text(content.get("vendor")),
        device=text(content.get("deviceID")),
        driver=text(content.get("driver")),
        mac=text(content.get("mac")),
        mtu=_integer(content.get("mtu")),
        link_type=text(content.get("linkType")),
        link_speed=text(content.get("linkSpeed")),
        total_vfs=_number(content.get("totalvfs"), 0),
        vfs=len(functions),
        wanted_vfs=_integer(wish.get("numVfs")),
        wanted_mtu=_integer(wish.get("mtu")),
        wanted_link_type=text(wish.get("linkType")),
        num_vfs=_number(content.get("numVfs"), 0),
        vf_drivers=tuple(sorted({text(entry.get("driver")) for entry in functions} - {""})),
        vf_mtu=max(mtus, default=None),
        vfs_without_guid=len([entry for entry in functions if _is_unset(entry.get("guid"))]),
    )


def _is_unset(guid: Any) -> bool:
    """Whether a GUID is there and has no digit but 0 (S117)."""
    return bool(text(guid)) and not text(guid).strip("0:")


def admission_policies(
    policies: Iterable[Mapping[str, Any]], bindings: Iterable[Mapping[str, Any]]
) -> tuple[shapes.AdmissionPolicy, ...]:
    """The ValidatingAdmissionPolicies of this collection with what binds them."""
    bound: dict[str, list[shapes.PolicyBinding]] = {}
    for content in bindings:
        metadata, spec, _status = _parts(content)
        found = shapes.PolicyBinding(
            name=text(metadata.get("name")), actions=_texts(spec.get("validationActions"))
        )
        bound.setdefault(text(spec.get("policyName")), []).append(found)
    return tuple([_policy(content, bound) for content in policies if is_ours(content)])


def is_ours(content: Mapping[str, Any]) -> bool:
    """Whether this collection made an object: by its label, or by who applied it."""
    metadata = mapping(content, "metadata")
    managers = [entry.get("manager") for _at, entry in entries(metadata.get("managedFields"))]
    labels = mapping(metadata, "labels")
    return OWN_NAME in managers or any(labels.get(label) == OWN_NAME for label in OWN_LABELS)


def _policy(
    content: Mapping[str, Any], bound: Mapping[str, list[shapes.PolicyBinding]]
) -> shapes.AdmissionPolicy:
    metadata, spec, status = _parts(content)
    name = text(metadata.get("name"))
    return shapes.AdmissionPolicy(
        name=name,
        failure_policy=text(spec.get("failurePolicy")),
        validations=len(list(entries(spec.get("validations")))),
        warnings=tuple(
            [
                text(entry.get("warning"))[:_MESSAGE]
                for _at, entry in entries(mapping(status, "typeChecking").get("expressionWarnings"))
            ]
        ),
        bindings=tuple(bound.get(name, [])),
    )


def prepare_event(content: Mapping[str, Any]) -> Optional[shapes.PrepareEvent]:
    """An event about a claim that could not be prepared; ``None`` for another one."""
    if content.get("reason") != PREPARE_REASON:
        return None
    involved, series = mapping(content, "involvedObject"), mapping(content, "series")
    metadata, source = mapping(content, "metadata"), mapping(content, "source")
    first = text(content.get("firstTimestamp")) or text(content.get("eventTime"))
    last = text(content.get("lastTimestamp")) or text(series.get("lastObservedTime")) or first
    return shapes.PrepareEvent(
        namespace=text(metadata.get("namespace")),
        pod=text(involved.get("name")),
        node=text(source.get("host")) or text(content.get("reportingInstance")),
        message=text(content.get("message"))[:_MESSAGE],
        count=_number(content.get("count"), _number(series.get("count"), 1)),
        first=first or text(metadata.get("creationTimestamp")),
        last=last or text(metadata.get("creationTimestamp")),
    )


# --- rolls -----------------------------------------------------------------------------------------------------------


def roll_lease(content: Mapping[str, Any]) -> shapes.RollLease:
    """The Lease of rolls."""
    metadata, spec, _status = _parts(content)
    return shapes.RollLease(
        namespace=text(metadata.get("namespace")),
        holder=text(spec.get("holderIdentity")),
        acquired=text(spec.get("acquireTime")),
        renewed=text(spec.get("renewTime")),
        duration=_number(spec.get("leaseDurationSeconds"), 0),
    )


def roll(content: Mapping[str, Any]) -> Optional[shapes.Roll]:
    """The ConfigMap of a roll; ``None`` for another one."""
    metadata = mapping(content, "metadata")
    called = text(metadata.get("name"))
    if not called.startswith(RECORD):
        return None
    plan, record = _document(content, "plan"), _document(content, "record")
    missing = [name for name, found in (("plan", plan), ("record", record)) if found is None]
    plan, record = plan or {}, record or {}
    return shapes.Roll(
        hash=called[len(RECORD) :],
        namespace=text(metadata.get("namespace")),
        created=text(metadata.get("creationTimestamp")),
        changes=text(plan.get("kind")),
        old=text(plan.get("old")),
        new=text(plan.get("new")),
        strategy=text(plan.get("strategy")),
        fence=text(plan.get("fence")),
        budget=_number(plan.get("budget"), 0),
        nodes=_texts(plan.get("nodes")),
        parent=text(plan.get("parent")),
        phase=text(record.get("phase")),
        switched=record.get("switched") is True,
        started=text(record.get("started")),
        reason=text(record.get("reason"))[:_MESSAGE],
        kept=text(record.get("kept")),
        unread="its %s is no JSON object" % " and ".join(missing) if missing else "",
    )


def _document(content: Mapping[str, Any], key: str) -> Optional[dict[str, Any]]:
    """A JSON object in a ConfigMap; ``None``: it is none."""
    try:
        found = json.loads(text(mapping(content, "data").get(key)))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def disruption_budget(
    content: Mapping[str, Any], pods: Optional[Iterable[Mapping[str, Any]]]
) -> shapes.DisruptionBudget:
    """A PodDisruptionBudget.

    :param pods: those of its namespace that have claims; ``None``: not read.
    """
    metadata, spec, status = _parts(content)
    selected = [
        text(mapping(pod, "metadata").get("name"))
        for pod in pods or ()
        if selects(spec.get("selector"), mapping(pod, "metadata", "labels"))
    ]
    return shapes.DisruptionBudget(
        namespace=text(metadata.get("namespace")),
        name=text(metadata.get("name")),
        allowed=_number(status.get("disruptionsAllowed"), 0),
        healthy=_number(status.get("currentHealthy"), 0),
        desired=_number(status.get("desiredHealthy"), 0),
        expected=_number(status.get("expectedPods"), 0),
        pods=None if pods is None else tuple(selected),
    )


# --- permissions -----------------------------------------------------------------------------------------------------


def accounts(found: Iterable[shapes.DaemonSet]) -> list[tuple[str, str]]:
    """Namespace and name of the service accounts of DRANET, each once."""
    own = [(entry.namespace, entry.service_account or "default") for entry in found if entry.role == "dranet"]
    return list(dict.fromkeys(own))


def driver_account(
    namespace: str, name: str, bindings: Iterable[Mapping[str, Any]], roles: Iterable[Mapping[str, Any]]
) -> shapes.DriverAccount:
    """What ClusterRoleBindings give a service account: bindings of itself, and of the groups that it belongs to."""
    bound = [
        text(mapping(content, "roleRef").get("name"))
        for content in bindings
        if any(_is_account(entry, namespace, name) for _at, entry in entries(content.get("subjects")))
    ]
    known = {text(mapping(content, "metadata").get("name")): content for content in roles}
    names = tuple(dict.fromkeys(bound))
    return shapes.DriverAccount(
        namespace=namespace,
        name=name,
        roles=names,
        rules=tuple(
            [
                _role_rule(entry)
                for held in names
                for _at, entry in entries(known.get(held, {}).get("rules"))
                if not entry.get("nonResourceURLs")
            ]
        ),
    )


def _is_account(subject: Mapping[str, Any], namespace: str, name: str) -> bool:
    """Whether a subject of a binding is a service account, by itself, as a user, or as one of a group."""
    kind, called = subject.get("kind"), text(subject.get("name"))
    if kind == "ServiceAccount":
        return (text(subject.get("namespace")), called) == (namespace, name)
    if kind == "User":
        return called == "system:serviceaccount:%s:%s" % (namespace, name)
    groups = ("system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated")
    return kind == "Group" and called in groups


def _role_rule(entry: Mapping[str, Any]) -> shapes.RoleRule:
    return shapes.RoleRule(
        groups=_texts(entry.get("apiGroups")),
        resources=_texts(entry.get("resources")),
        verbs=_texts(entry.get("verbs")),
        names=_texts(entry.get("resourceNames")),
    )


# --- small things ----------------------------------------------------------------------------------------------------


def _parts(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    return mapping(content, "metadata"), mapping(content, "spec"), mapping(content, "status")


def _texts(value: Any) -> tuple[str, ...]:
    return tuple([entry for entry in value if isinstance(entry, str)]) if isinstance(value, list) else ()


def _text_map(value: Any) -> dict[str, str]:
    """Texts as they are; quantities can be numbers in a manifest."""
    found = {}
    for key, held in mapping(value).items():
        if isinstance(held, (str, int)) and not isinstance(held, bool):
            found[str(key)] = str(held)
    return found


def _integer(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any, default: int) -> int:
    found = _integer(value)
    return default if found is None else found


def _conditions(found: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {text(entry.get("type")): text(entry.get("status")) for entry in found}


def _taint(entry: Mapping[str, Any]) -> str:
    value = text(entry.get("value"))
    return "%s%s:%s" % (text(entry.get("key")), "=" + value if value else "", text(entry.get("effect")))


def _toleration(entry: Mapping[str, Any]) -> str:
    """``KEY=VALUE:EFFECT``; ``KEY:EFFECT`` tolerates any value, ``*`` any key, no effect all effects."""
    key, value, effect = text(entry.get("key")) or "*", text(entry.get("value")), text(entry.get("effect"))
    word = key if entry.get("operator") == "Exists" or not value else "%s=%s" % (key, value)
    return "%s:%s" % (word, effect) if effect else word
