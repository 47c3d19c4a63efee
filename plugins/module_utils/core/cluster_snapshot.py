# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ClusterSnapshot: what the API of one cluster told. Private to rdma.k8s: it may change with any release.

The JSON form is public (``docs/reference/cluster-snapshot.md``) and versioned by ``schema_version``. As in the snapshot
of a node, ``None`` means "not known", with the reason in ``errors`` when it was asked for, and an empty list means
"none there". Values of environment variables, Secrets and arguments that look like secrets are never in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from . import codec
from .errors import RdmaError
from .snapshot import ReadError

KIND = "ClusterSnapshot"
SCHEMA_VERSION = 1
DEFAULT_SUBSETS = (
    "nodes",
    "dra",
    "drivers",
    "networks",
    "attachments",
    "policies",
    "events",
    "rolls",
    "permissions",
)
"""What is read when nothing is asked for."""
SUBSETS = (*DEFAULT_SUBSETS, "workloads")
"""All that can be asked for."""


@dataclass(frozen=True)
class ClusterCollector:
    """Who made the snapshot: version of the collection, API calls and milliseconds it took."""

    version: str = codec.text("")
    calls: Optional[int] = codec.integer(None)
    duration_ms: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class ApiServer:
    """The API server: its version, and the resources that it serves as ``GROUP/VERSION/PLURAL``, the preferred version
    of a group first. Of groups that no check needs only what they are called is kept: ``GROUP/VERSION``."""

    version: str = codec.text("")
    platform: str = codec.text("")
    served: Optional[tuple[str, ...]] = codec.texts(None)

    def serves(self, group: str, plural: str) -> Optional[bool]:
        """Whether any version of a resource is served; ``None``: not known."""
        if self.served is None:
            return None
        return any(entry.startswith(group + "/") and entry.endswith("/" + plural) for entry in self.served)


@dataclass(frozen=True)
class ClusterNode:
    """A node. ``taints`` as ``KEY=VALUE:EFFECT``, ``addresses`` as ``TYPE ADDRESS``, ``conditions`` type to status.

    ``capacity`` and ``allocatable`` hold extended resources and huge pages only. Of the annotations those of this
    collection and of the SR-IOV operator are kept.
    """

    name: str = codec.text()
    uid: str = codec.text("")
    created: str = codec.text("")
    labels: dict[str, str] = codec.text_map()
    annotations: dict[str, str] = codec.text_map()
    unschedulable: bool = codec.boolean(False)
    taints: tuple[str, ...] = codec.texts()
    addresses: tuple[str, ...] = codec.texts()
    provider_id: str = codec.text("")
    pod_cidrs: tuple[str, ...] = codec.texts()
    architecture: str = codec.text("")
    os: str = codec.text("")
    kernel: str = codec.text("")
    runtime: str = codec.text("")
    kubelet: str = codec.text("")
    boot_id: str = codec.text("")
    conditions: dict[str, str] = codec.text_map()
    ready_since: str = codec.text("")
    capacity: dict[str, str] = codec.text_map()
    allocatable: dict[str, str] = codec.text_map()

    @property
    def ready(self) -> bool:
        """Whether the kubelet says that the node is ready."""
        return self.conditions.get("Ready") == "True"


@dataclass(frozen=True)
class SliceDevice:
    """A device. ``attributes`` from ``DOMAIN/NAME`` to a text, a number, a truth value, a list of them, or
    ``{"version": TEXT}``; ``capacity`` from name to quantity."""

    name: str = codec.text()
    attributes: dict[str, Any] = codec.anything({})
    capacity: dict[str, str] = codec.text_map()
    taints: tuple[str, ...] = codec.texts()


@dataclass(frozen=True)
class ResourceSlice:
    """What a driver publishes for a node (F99); ``node`` is empty for devices that belong to no single node."""

    name: str = codec.text()
    driver: str = codec.text("")
    node: str = codec.text("")
    pool: str = codec.text("")
    generation: int = codec.integer(0)
    slices: int = codec.integer(1)
    created: str = codec.text("")
    devices: tuple[SliceDevice, ...] = codec.items(SliceDevice)


@dataclass(frozen=True)
class OpaqueConfig:
    """Parameters for a driver, as they are; ``requests`` is empty when they are for all requests."""

    driver: str = codec.text("")
    requests: tuple[str, ...] = codec.texts()
    parameters: Any = codec.anything()


@dataclass(frozen=True)
class DeviceRequest:
    """A request of a claim; one of several that would do is named ``REQUEST/NAME``. ``selectors`` are CEL."""

    name: str = codec.text()
    device_class: str = codec.text("")
    mode: str = codec.text("ExactCount")
    count: int = codec.integer(1)
    selectors: tuple[str, ...] = codec.texts()
    tolerations: tuple[str, ...] = codec.texts()


@dataclass(frozen=True)
class Constraint:
    """Devices of ``requests`` (empty: all) have one value of an attribute, or all different ones."""

    requests: tuple[str, ...] = codec.texts()
    match: str = codec.text("")
    distinct: str = codec.text("")


@dataclass(frozen=True)
class DeviceClass:
    """A device class."""

    name: str = codec.text()
    selectors: tuple[str, ...] = codec.texts()
    config: tuple[OpaqueConfig, ...] = codec.items(OpaqueConfig)
    extended_resource: str = codec.text("")


@dataclass(frozen=True)
class AllocatedDevice:
    """A device that a claim has."""

    request: str = codec.text("")
    driver: str = codec.text("")
    pool: str = codec.text("")
    device: str = codec.text("")


@dataclass(frozen=True)
class DeviceStatus:
    """What a driver tells about a device that it prepared. ``conditions`` from type to status."""

    driver: str = codec.text("")
    pool: str = codec.text("")
    device: str = codec.text("")
    interface: str = codec.text("")
    addresses: tuple[str, ...] = codec.texts()
    conditions: dict[str, str] = codec.text_map()


@dataclass(frozen=True)
class Consumer:
    """Who may use a claim: a pod as a rule."""

    resource: str = codec.text("pods")
    name: str = codec.text("")
    uid: str = codec.text("")


@dataclass(frozen=True)
class Claim:
    """A claim. ``allocated`` says whether it has devices; ``node`` is the node they are on, ``owner`` the pod that it
    was made for, ``deleted`` when its deletion was asked for (DRA-016), ``allocated_at`` when its devices were last
    given by the scheduler (ROLL-006)."""

    namespace: str = codec.text()
    name: str = codec.text()
    uid: str = codec.text("")
    created: str = codec.text("")
    deleted: str = codec.text("")
    owner: str = codec.text("")
    requests: tuple[DeviceRequest, ...] = codec.items(DeviceRequest)
    constraints: tuple[Constraint, ...] = codec.items(Constraint)
    config: tuple[OpaqueConfig, ...] = codec.items(OpaqueConfig)
    allocated: bool = codec.boolean(False)
    node: str = codec.text("")
    devices: tuple[AllocatedDevice, ...] = codec.items(AllocatedDevice)
    reserved_for: tuple[Consumer, ...] = codec.items(Consumer)
    status: tuple[DeviceStatus, ...] = codec.items(DeviceStatus)
    allocated_at: str = codec.text("")


@dataclass(frozen=True)
class ClaimTemplate:
    """A template of claims."""

    namespace: str = codec.text()
    name: str = codec.text()
    requests: tuple[DeviceRequest, ...] = codec.items(DeviceRequest)
    constraints: tuple[Constraint, ...] = codec.items(Constraint)
    config: tuple[OpaqueConfig, ...] = codec.items(OpaqueConfig)


@dataclass(frozen=True)
class DeviceTaintRule:
    """A rule that taints devices; the fields that select are empty when they select all."""

    name: str = codec.text()
    driver: str = codec.text("")
    pool: str = codec.text("")
    device: str = codec.text("")
    taint: str = codec.text("")
    created: str = codec.text("")


@dataclass(frozen=True)
class Mount:
    """A directory or file in a container: ``host`` is the path on the node, ``type`` what Kubernetes checks there
    (F116), ``source`` another kind of volume, such as ``configMap NAME``."""

    path: str = codec.text()
    host: str = codec.text("")
    type: str = codec.text("")
    source: str = codec.text("")
    read_only: bool = codec.boolean(False)


@dataclass(frozen=True)
class DriverContainer:
    """A container of a pod template. Of the environment only the names are kept."""

    name: str = codec.text()
    image: str = codec.text("")
    init: bool = codec.boolean(False)
    command: tuple[str, ...] = codec.texts()
    args: tuple[str, ...] = codec.texts()
    environment: tuple[str, ...] = codec.texts()
    mounts: tuple[Mount, ...] = codec.items(Mount)
    privileged: bool = codec.boolean(False)
    liveness: bool = codec.boolean(False)
    readiness: bool = codec.boolean(False)
    requests: dict[str, str] = codec.text_map()
    limits: dict[str, str] = codec.text_map()


@dataclass(frozen=True)
class DriverPod:
    """A pod of a DaemonSet. ``digest`` is the image that its first container runs. ``args`` are those of its containers
    by name when they are not those of the DaemonSet, as after a change with the strategy OnDelete; else ``None``.
    ``trouble`` says why a pod that is not ready waits, and how its container ended. ``created`` is when the pod was
    made, ``started`` when its container last started."""

    name: str = codec.text()
    node: str = codec.text("")
    phase: str = codec.text("")
    ready: bool = codec.boolean(False)
    started: str = codec.text("")
    deleted: str = codec.text("")
    restarts: int = codec.integer(0)
    trouble: str = codec.text("")
    digest: str = codec.text("")
    revision: str = codec.text("")
    args: Optional[dict[str, list[str]]] = codec.anything()
    created: str = codec.text("")


@dataclass(frozen=True)
class DaemonSet:
    """A DaemonSet of a driver. ``role`` is ``dranet``, ``provider``, ``dra``, ``device-plugin`` or ``network``.

    The numbers are those of its status; ``scheduled`` and ``misscheduled`` are ``None`` in older records. ``pods`` are
    read for the roles but ``network``; ``None``: not read.
    """

    namespace: str = codec.text()
    name: str = codec.text()
    role: str = codec.text("")
    uid: str = codec.text("")
    generation: int = codec.integer(0)
    observed_generation: int = codec.integer(0)
    strategy: str = codec.text("RollingUpdate")
    max_unavailable: str = codec.text("")
    desired: int = codec.integer(0)
    ready: int = codec.integer(0)
    updated: int = codec.integer(0)
    available: int = codec.integer(0)
    scheduled: Optional[int] = codec.integer(None)
    misscheduled: Optional[int] = codec.integer(None)
    service_account: str = codec.text("")
    priority_class: str = codec.text("")
    host_network: bool = codec.boolean(False)
    node_selector: dict[str, str] = codec.text_map()
    tolerations: tuple[str, ...] = codec.texts()
    containers: tuple[DriverContainer, ...] = codec.items(DriverContainer)
    pods: Optional[tuple[DriverPod, ...]] = codec.items(DriverPod, None)


@dataclass(frozen=True)
class RoleRule:
    """What a role allows: ``*`` stands for all; ``names`` is empty when it is for all objects."""

    groups: tuple[str, ...] = codec.texts()
    resources: tuple[str, ...] = codec.texts()
    verbs: tuple[str, ...] = codec.texts()
    names: tuple[str, ...] = codec.texts()


@dataclass(frozen=True)
class DriverAccount:
    """A service account of DRANET, the ClusterRoles that it has in all namespaces, and what these allow (F119).

    A role that is bound and does not exist is among ``roles`` and allows nothing.
    """

    namespace: str = codec.text()
    name: str = codec.text()
    roles: tuple[str, ...] = codec.texts()
    rules: tuple[RoleRule, ...] = codec.items(RoleRule)


@dataclass(frozen=True)
class NetworkRange:
    """A network that the cluster gives addresses from, as it is written there, and the object that says so."""

    cidr: str = codec.text()
    source: str = codec.text("")


@dataclass(frozen=True)
class ApiObject:
    """An object of Multus, Spiderpool or the SR-IOV operator: what somebody wants (``spec``), as it is."""

    name: str = codec.text()
    namespace: str = codec.text("")
    resource: str = codec.text("")
    spec: Any = codec.anything()
    annotations: dict[str, str] = codec.text_map()


@dataclass(frozen=True)
class RailContainer:
    """A container of a workload, and the extended resources that it asks for."""

    name: str = codec.text()
    limits: dict[str, str] = codec.text_map()


RAIL_WORKLOADS = (
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("kubeflow.org", "mpijobs"),
    ("kubeflow.org", "pytorchjobs"),
    ("jobset.x-k8s.io", "jobsets"),
    ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    ("", "pods"),
)
"""Groups and plurals of the kinds that may be a :class:`RailWorkload`."""


@dataclass(frozen=True)
class RailWorkload:
    """A workload whose pods ask for networks or devices of Spiderpool: one template of pods, or one pod without a
    controller. ``role`` is which template of the object. Of the annotations those about networks are kept, and of the
    namespace's those that ask for networks; init containers are left out."""

    of_kind: str = codec.text()
    namespace: str = codec.text("")
    name: str = codec.text("")
    role: str = codec.text("")
    annotations: dict[str, str] = codec.text_map()
    namespace_annotations: dict[str, str] = codec.text_map()
    containers: tuple[RailContainer, ...] = codec.items(RailContainer)


@dataclass(frozen=True)
class PodAnswer:
    """An answer about a running pod: the number of the predicate (``P1`` to ``P14``), its status and its sentence."""

    predicate: str = codec.text()
    status: str = codec.text()
    message: str = codec.text("")


@dataclass(frozen=True)
class PodTest:
    """What was measured from a pod to another one on one rail, with what the programs were told (S144).

    ``reason`` says why it is not good. Without a GID index (``None``) none was said, as on InfiniBand; figures that are
    ``None`` were not measured.
    """

    rail: str = codec.text()
    target: str = codec.text()
    status: str = codec.text()
    reason: str = codec.text("")
    source_device: str = codec.text("")
    source_gid_index: Optional[int] = codec.integer(None)
    target_device: str = codec.text("")
    target_gid_index: Optional[int] = codec.integer(None)
    target_address: str = codec.text("")
    latency_us: Optional[float] = codec.number(None)
    bandwidth_gbps: Optional[float] = codec.number(None)
    mtu: Optional[int] = codec.integer(None)


@dataclass(frozen=True)
class PodLook:
    """A running pod that was looked into. ``reason`` says why it told nothing; ``tests`` went out from it."""

    namespace: str = codec.text()
    name: str = codec.text()
    node: str = codec.text("")
    privileged: bool = codec.boolean(False)
    reason: str = codec.text("")
    answers: tuple[PodAnswer, ...] = codec.items(PodAnswer)
    tests: tuple[PodTest, ...] = codec.items(PodTest)


@dataclass(frozen=True)
class SriovInterface:
    """An interface in the state of a node: what it has (``vfs`` of ``total_vfs``), and what is wanted (``None``:
    nothing).

    ``num_vfs`` is the number that is set, ``vfs`` how many are listed. Of those that are listed ``vf_drivers`` are the
    drivers, ``vf_mtu`` is the largest MTU, and ``vfs_without_guid`` counts those with a GUID of zeros. ``num_vfs`` is
    ``None`` in older records, which have none of these.
    """

    pci: str = codec.text()
    name: str = codec.text("")
    vendor: str = codec.text("")
    device: str = codec.text("")
    driver: str = codec.text("")
    mac: str = codec.text("")
    mtu: Optional[int] = codec.integer(None)
    link_type: str = codec.text("")
    link_speed: str = codec.text("")
    total_vfs: int = codec.integer(0)
    vfs: int = codec.integer(0)
    wanted_vfs: Optional[int] = codec.integer(None)
    wanted_mtu: Optional[int] = codec.integer(None)
    wanted_link_type: str = codec.text("")
    num_vfs: Optional[int] = codec.integer(None)
    vf_drivers: tuple[str, ...] = codec.texts()
    vf_mtu: Optional[int] = codec.integer(None)
    vfs_without_guid: int = codec.integer(0)


@dataclass(frozen=True)
class SriovNodeState:
    """What the SR-IOV operator tells about a node: summary of a SriovNetworkNodeState. ``generation`` counts the
    changes of what is wanted; 0: not told."""

    node: str = codec.text()
    namespace: str = codec.text("")
    sync: str = codec.text("")
    last_error: str = codec.text("")
    rdma_mode: str = codec.text("")
    wanted_rdma_mode: str = codec.text("")
    desired_state: str = codec.text("")
    current_state: str = codec.text("")
    interfaces: tuple[SriovInterface, ...] = codec.items(SriovInterface)
    generation: int = codec.integer(0)


@dataclass(frozen=True)
class PolicyBinding:
    """What binds a policy: ``actions`` such as ``Warn``, ``Deny``."""

    name: str = codec.text()
    actions: tuple[str, ...] = codec.texts()


@dataclass(frozen=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy of this collection. ``warnings`` are those of the API server about its CEL."""

    name: str = codec.text()
    failure_policy: str = codec.text("")
    validations: int = codec.integer(0)
    warnings: tuple[str, ...] = codec.texts()
    bindings: tuple[PolicyBinding, ...] = codec.items(PolicyBinding)


@dataclass(frozen=True)
class PrepareEvent:
    """A claim that could not be prepared for a pod (DRA-011)."""

    namespace: str = codec.text()
    pod: str = codec.text()
    node: str = codec.text("")
    message: str = codec.text("")
    count: int = codec.integer(1)
    first: str = codec.text("")
    last: str = codec.text("")


@dataclass(frozen=True)
class RollLease:
    """The Lease of rolls: who drives one. ``holder`` is empty when nobody does; ``duration`` in seconds."""

    namespace: str = codec.text()
    holder: str = codec.text("")
    acquired: str = codec.text("")
    renewed: str = codec.text("")
    duration: int = codec.integer(0)


@dataclass(frozen=True)
class Roll:
    """The record of a roll: what its plan wants, and how far it is. ``hash`` is its name, ``changes``
    what it changes: ``range``, ``netns_mode`` or ``oca_network``.

    ``nodes`` are in the order in which they come; ``parent`` is the hash of the roll that it takes back. ``kept`` is
    what it must restore at its end, as the target wrote it. ``unread`` says why the record could not be understood.
    """

    hash: str = codec.text()
    namespace: str = codec.text("")
    created: str = codec.text("")
    changes: str = codec.text("")
    old: str = codec.text("")
    new: str = codec.text("")
    strategy: str = codec.text("")
    fence: str = codec.text("")
    budget: int = codec.integer(0)
    nodes: tuple[str, ...] = codec.texts()
    parent: str = codec.text("")
    phase: str = codec.text("")
    switched: bool = codec.boolean(False)
    started: str = codec.text("")
    reason: str = codec.text("")
    kept: str = codec.text("")
    unread: str = codec.text("")


@dataclass(frozen=True)
class DisruptionBudget:
    """A PodDisruptionBudget: the numbers of its status (``expected`` pods, ``desired`` of them healthy at least), and
    of the pods that it selects the names of those with claims; ``pods`` is ``None`` when they were not read."""

    namespace: str = codec.text()
    name: str = codec.text()
    allowed: int = codec.integer(0)
    healthy: int = codec.integer(0)
    desired: int = codec.integer(0)
    expected: int = codec.integer(0)
    pods: Optional[tuple[str, ...]] = codec.texts(None)

    @property
    def never(self) -> bool:
        """Whether it allows no eviction even when all of its pods are healthy."""
        return 0 < self.expected <= self.desired


@dataclass(frozen=True)
class ClusterSnapshot:
    """All that was read from one cluster. See the module's docstring for the meaning of ``None`` and of empty lists."""

    name: str = codec.text("")
    kind: str = codec.text("")
    schema_version: int = codec.integer(SCHEMA_VERSION)
    collected_at: str = codec.text("")
    subsets: tuple[str, ...] = codec.texts()
    collector: ClusterCollector = codec.item(ClusterCollector, ClusterCollector())
    errors: tuple[ReadError, ...] = codec.items(ReadError)
    server: ApiServer = codec.item(ApiServer, ApiServer())
    nodes: Optional[tuple[ClusterNode, ...]] = codec.items(ClusterNode, None)
    slices: Optional[tuple[ResourceSlice, ...]] = codec.items(ResourceSlice, None)
    device_classes: Optional[tuple[DeviceClass, ...]] = codec.items(DeviceClass, None)
    claims: Optional[tuple[Claim, ...]] = codec.items(Claim, None)
    claim_templates: Optional[tuple[ClaimTemplate, ...]] = codec.items(ClaimTemplate, None)
    taint_rules: Optional[tuple[DeviceTaintRule, ...]] = codec.items(DeviceTaintRule, None)
    daemonsets: Optional[tuple[DaemonSet, ...]] = codec.items(DaemonSet, None)
    pod_cidrs: Optional[tuple[NetworkRange, ...]] = codec.items(NetworkRange, None)
    service_cidrs: Optional[tuple[NetworkRange, ...]] = codec.items(NetworkRange, None)
    network_attachments: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    ip_pools: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    multus_configs: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    sriov_policies: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    sriov_networks: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    sriov_ib_networks: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    sriov_pool_configs: Optional[tuple[ApiObject, ...]] = codec.items(ApiObject, None)
    sriov_node_states: Optional[tuple[SriovNodeState, ...]] = codec.items(SriovNodeState, None)
    admission_policies: Optional[tuple[AdmissionPolicy, ...]] = codec.items(AdmissionPolicy, None)
    prepare_events: Optional[tuple[PrepareEvent, ...]] = codec.items(PrepareEvent, None)
    roll_leases: Optional[tuple[RollLease, ...]] = codec.items(RollLease, None)
    rolls: Optional[tuple[Roll, ...]] = codec.items(Roll, None)
    disruption_budgets: Optional[tuple[DisruptionBudget, ...]] = codec.items(DisruptionBudget, None)
    driver_accounts: Optional[tuple[DriverAccount, ...]] = codec.items(DriverAccount, None)
    rail_workloads: Optional[tuple[RailWorkload, ...]] = codec.items(RailWorkload, None)
    pod_looks: Optional[tuple[PodLook, ...]] = codec.items(PodLook, None)

    @classmethod
    def from_dict(cls, document: Any) -> ClusterSnapshot:
        """Read the JSON form.

        :raises RdmaError: ``snapshot_newer_schema``, ``snapshot_not_of_cluster`` or ``document_malformed``.
        """
        if not isinstance(document, dict) or document.get("kind") != KIND:
            raise RdmaError(
                "snapshot_not_of_cluster",
                "The document is no snapshot of a cluster: its kind is %s, expected %s."
                % (repr(document.get("kind")) if isinstance(document, dict) else "not there", KIND),
                hint="Give what the module cluster_info wrote.",
            )
        version = document.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RdmaError(
                "snapshot_newer_schema",
                "The snapshot of the cluster %s has schema version %d; this release reads up to version %d."
                % (document.get("name", ""), version, SCHEMA_VERSION),
                hint="Update the collection on the machine that judges, or record the snapshot with this release.",
                schema_version=version,
                supported=SCHEMA_VERSION,
            )
        return codec.decode(cls, document, "cluster")

    def to_dict(self, compact: bool = False) -> dict[str, Any]:
        """The JSON form: plain data, fields with their default value left out.

        :param compact: the layout in which lists of objects are tables; ``from_dict`` reads both.
        """
        document: dict[str, Any] = {"schema_version": self.schema_version}
        document.update(codec.encode(self, compact))
        document["kind"] = KIND
        return document

    def error_of(self, *sources: str) -> str:
        """Why a read of one of these sources failed; empty when it did not."""
        for error in self.errors:
            if error.source in sources:
                return "%s: %s" % (error.source, error.reason) if error.reason else error.source
        return ""
