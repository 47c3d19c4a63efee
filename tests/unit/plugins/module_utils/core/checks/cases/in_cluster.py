# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cases of the areas RANGE, OCA and IMDS that compare a node with what the cluster runs and publishes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterSnapshot,
    DeviceStatus,
    DeviceTaintRule,
    Mount,
    NetworkRange,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import NodeSnapshot, ReadError
from ansible_collections.rdma.k8s.tests.support import cluster_fleet as api
from ansible_collections.rdma.k8s.tests.support.cases import GB200_IB, GB200_V3, SICK

from .dra import (
    args,
    case,
    in_two_networks,
    no_driver,
    other_name,
    pods_unread,
    unread,
    without_an_attribute,
    without_provider,
)

RANGE = "oke.dra.net/rdmaChildIpv4Cidr"
OLD_OPTION = api.OPTION + api.OLD_RANGE


def networks(**fields: Any) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """Networks of the cluster, each as a list of texts, or ``None``: not known."""
    found = {
        name: None if cidrs is None else tuple([NetworkRange(cidr, "the API") for cidr in cidrs])
        for name, cidrs in fields.items()
    }
    errors = tuple([ReadError(name.replace("_cidrs", " CIDRs"), "No setting names it.") for name in found])
    return lambda cluster: replace(cluster, errors=errors if None in found.values() else (), **found)


def old_pod(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """The provider's pod on the sick node has not been restarted since the option changed."""
    return api.edit_pod(cluster, api.PROVIDER, args={api.PROVIDER: [OLD_OPTION]})


def bad_pod(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_pod(cluster, api.PROVIDER, args={api.PROVIDER: [api.OPTION + "10.208.0.1/12"]})


def old_devices(cluster: ClusterSnapshot) -> ClusterSnapshot:
    return api.edit_attribute(cluster, RANGE, api.OLD_RANGE)


def fenced(**changes: Any) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    """Devices in the old range on a node that is kept from new claims."""
    return lambda cluster: api.edit_node(old_devices(cluster), **changes)


def tainted_devices(cluster: ClusterSnapshot) -> ClusterSnapshot:
    rule = DeviceTaintRule("roll", "dra.net", "10.140.77.19", "", "rdma.k8s/roll:NoSchedule")
    return replace(old_devices(cluster), taint_rules=(rule,))


def one_device_tainted(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A rule about one device does not fence its node."""
    rule = DeviceTaintRule("broken", "dra.net", "10.140.77.19", "pci-0000-0c-00-0", "broken:NoSchedule")
    return replace(old_devices(cluster), taint_rules=(rule,))


def old_child(cluster: ClusterSnapshot) -> ClusterSnapshot:
    status = DeviceStatus("dra.net", "10.140.77.19", "pci-0000-0c-00-0", "net0", ("10.240.13.19/15",))
    return api.edit_claim(cluster, status=(status,))


def no_ranges(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """A driver without the profile: no option, no attribute, no child."""
    for number in range(3):
        cluster = api.edit_attribute(cluster, RANGE, None, number)
    return replace(args("--v=4")(cluster), claims=())


def hint(text: str, name: str = api.DRANET) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    words = [text, api.OPTION + api.CHILD_RANGE] if text else [api.OPTION + api.CHILD_RANGE]
    return args(*words, name=name)


def another_cloud(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Discovery found no OKE on one node: its devices have no attribute of it."""
    for name in ("hpcIslandId", "networkBlockId", "localBlockId", "rackId", "shape", "rdmaFabricIpv6"):
        cluster = api.edit_attribute(cluster, "oke.dra.net/" + name, None)
    cluster = api.edit_attribute(cluster, "oke.dra.net/rdmaFabricPlanes", None)
    return hint("")(api.edit_attribute(cluster, RANGE, None))


def mounts(*paths: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    held = tuple([Mount("/host" + path, path) for path in paths])
    return lambda cluster: api.edit_container(cluster, api.PROVIDER, mounts=held)


def started(at: str) -> Callable[[ClusterSnapshot], ClusterSnapshot]:
    return lambda cluster: api.edit_pod(cluster, api.PROVIDER, started=at)


def no_time(node: NodeSnapshot) -> NodeSnapshot:
    assert node.oca is not None
    return replace(node, oca=replace(node.oca, modified=None))


CASES = [
    # RDMA-RANGE-008, 009: F48, F50
    case("RDMA-RANGE-008", "pass", "1 pod CIDRs are apart", "a pod network of the API", node=SICK),
    case(
        "RDMA-RANGE-008",
        "fail",
        "10.209.0.0/16 overlaps 10.208.0.0/12",
        "a pod network of the API in the range",
        networks(pod_cidrs=["10.209.0.0/16"]),
        node=SICK,
    ),
    case(
        "RDMA-RANGE-008",
        "unknown",
        "The whole pod network of the cluster training is not known: No setting names it.",
        "a pod network that nobody names",
        networks(pod_cidrs=None),
        node=SICK,
        settings={"pod_cidrs": None},
    ),
    case(
        "RDMA-RANGE-008",
        "pass",
        "1 pod CIDRs are apart",
        "a pod network that only the setting names",
        networks(pod_cidrs=None),
        node=SICK,
    ),
    case(
        "RDMA-RANGE-009",
        "fail",
        "10.211.0.0/16 overlaps 10.208.0.0/12",
        "a service network of the API in the range",
        networks(service_cidrs=["10.96.0.0/16", "10.211.0.0/16"]),
        node=SICK,
    ),
    case(
        "RDMA-RANGE-009",
        "unknown",
        "The whole service network of the cluster training is not known",
        "a service network that nobody names",
        networks(service_cidrs=None),
        node=SICK,
        settings={"service_cidrs": None},
    ),
    # RDMA-RANGE-014: F24, F70, F94
    case("RDMA-RANGE-014", "pass", "10.208.0.0/12: of the driver and of the devices", "one range", node=SICK),
    case(
        "RDMA-RANGE-014", "pass", "10.208.0.0/12", "a cluster without DRANET", no_driver, node=SICK, also=""
    ),
    case(
        "RDMA-RANGE-014",
        "pass",
        "10.208.0.0/12",
        "a driver without a range",
        no_ranges,
        native=True,
        node=SICK,
        also="DRA-009 fail",
    ),
    case(
        "RDMA-RANGE-014",
        "fail",
        "pod rdma-k8s-provider-0: its option is 10.240.0.0/15",
        "a pod with the old option",
        old_pod,
        node=SICK,
    ),
    case(
        "RDMA-RANGE-014",
        "fail",
        "devices: published is 10.240.0.0/15",
        "devices with the old range",
        old_devices,
        node=SICK,
    ),
    case("RDMA-RANGE-014", "fail", "pod rdma-k8s-provider-0", "a pod with a bad option", bad_pod, node=SICK),
    # RDMA-RANGE-015: F2, F94
    case("RDMA-RANGE-015", "pass", "10.208.0.0/12", "a range in the option", native=True),
    case("RDMA-RANGE-015", "pass", "10.208.0.0/12", "the default of the provider", args(name=api.PROVIDER)),
    case(
        "RDMA-RANGE-015",
        "warn",
        "no range is set, so the version of the driver decides",
        "the default of a driver",
        args("--cloud-provider-hint=OKE"),
        native=True,
    ),
    case(
        "RDMA-RANGE-015",
        "skip",
        "a webhook that is not of this collection",
        "another webhook",
        lambda cluster: without_provider(
            args("--profile-provider=webhook", "--webhook-url=http://x")(cluster)
        ),
    ),
    # RDMA-RANGE-016: F95, F98
    case("RDMA-RANGE-016", "pass", "OKE", "the hint OKE", native=True),
    case("RDMA-RANGE-016", "pass", "webhook", "the webhook"),
    case("RDMA-RANGE-016", "pass", "OKE", "no hint, and OKE found", hint(""), native=True),
    case(
        "RDMA-RANGE-016",
        "fail",
        "--cloud-provider-hint is AWS",
        "another hint",
        hint("--cloud-provider-hint=AWS"),
        native=True,
        also="DRA-003 fail",
    ),
    case(
        "RDMA-RANGE-016",
        "fail",
        "discovery found another provider on 10.140.77.19",
        "no hint, and another provider found",
        another_cloud,
        native=True,
    ),
    case(
        "RDMA-RANGE-016",
        "unknown",
        "Not readable: resourceslices.resource.k8s.io",
        "no hint, and slices that may not be read",
        lambda cluster: unread("slices", "resourceslices.resource.k8s.io")(hint("")(cluster)),
        native=True,
        also="DRA-008 unknown RANGE-017 unknown",
    ),
    # RDMA-RANGE-017: F24
    case("RDMA-RANGE-017", "pass", "10.208.0.0/12, and no other range", "one range alive"),
    case(
        "RDMA-RANGE-017",
        "fail",
        "10.240.0.0/15: alive on 10.140.77.19 (devices), beside 10.208.0.0/12 on 3 nodes",
        "devices in two ranges",
        old_devices,
    ),
    case(
        "RDMA-RANGE-017",
        "fail",
        "10.140.77.19 (child of claim ml/train-10.140.77.19)",
        "a child in the old range",
        old_child,
    ),
    case("RDMA-RANGE-017", "fail", "(option of the driver)", "a driver with the old option", old_pod),
    case(
        "RDMA-RANGE-017",
        "pass",
        "and no other range",
        "two RDMA networks with a range each",
        lambda cluster: replace(old_pod(old_devices(cluster)), claims=()),
        inputs=in_two_networks,
        settings={"child_range": api.CHILD_RANGE},
    ),
    case(
        "RDMA-RANGE-017",
        "fail",
        "alive on 10.140.77.19 (child of claim ml/train-10.140.77.19), beside 10.240.0.0/15",
        "two ranges in one of two networks",
        lambda cluster: old_pod(old_devices(cluster)),
        inputs=in_two_networks,
        settings={"child_range": api.CHILD_RANGE},
    ),
    case(
        "RDMA-RANGE-017",
        "pass",
        "no other range",
        "a cordoned node",
        fenced(unschedulable=True),
        also="ROLL-003 warn",
    ),
    case(
        "RDMA-RANGE-017",
        "pass",
        "no other range",
        "a node with our taint",
        fenced(taints=("rdma.k8s/unverified:NoSchedule",)),
    ),
    case("RDMA-RANGE-017", "pass", "no other range", "a node with tainted devices", tainted_devices),
    case("RDMA-RANGE-017", "fail", "10.140.77.19", "a node with one tainted device", one_device_tainted),
    case("RDMA-RANGE-017", "fail", "10.140.77.19", "a foreign taint", fenced(taints=("gpu=1:NoSchedule",))),
    case(
        "RDMA-RANGE-017",
        "skip",
        "No node that takes work names a range",
        "no range anywhere",
        no_ranges,
        native=True,
        also="RANGE-015 warn",
    ),
    # RDMA-OCA-013: F54, F118
    case("RDMA-OCA-013", "pass", "kube-system/rdma-k8s-provider has it mounted", "the directory", node=SICK),
    case("RDMA-OCA-013", "pass", "has it mounted", "the directory in DRANET", native=True, node=SICK),
    case(
        "RDMA-OCA-013",
        "pass",
        "has it mounted",
        "a directory above it",
        mounts("/etc/oracle-cloud-agent/"),
        node=SICK,
    ),
    case("RDMA-OCA-013", "pass", "has it mounted", "the whole host", mounts("/"), node=SICK),
    case(
        "RDMA-OCA-013",
        "fail",
        "does not mount /etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure, and a file is there",
        "another directory",
        mounts("/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-con", "/sys"),
        node=SICK,
    ),
    case(
        "RDMA-OCA-013",
        "skip",
        "OCA has no configuration file on this node",
        "no file",
        mounts(),
        node=SICK,
        features_file=False,
    ),
    case("RDMA-OCA-013", "skip", "see RDMA-DRA-001", "no driver that reads it", no_driver, node=SICK),
    case(
        "RDMA-OCA-013",
        "skip",
        "No pod that reads the files is on this node",
        "no provider on the node",
        lambda cluster: api.without_pod(cluster, api.PROVIDER),
        node=SICK,
    ),
    case(
        "RDMA-OCA-013",
        "unknown",
        "The pods of the driver could not be read",
        "pods of the driver that may not be read",
        pods_unread,
        native=True,
        node=SICK,
        also="OCA-014 unknown",
    ),
    # RDMA-OCA-014: F54
    case(
        "RDMA-OCA-014",
        "pass",
        "was started at 2026-02-26T08:00:00Z",
        "a driver that started later",
        node=SICK,
    ),
    case(
        "RDMA-OCA-014",
        "warn",
        "was started 400 s before the last change of the files",
        "a driver that is older than the files",
        started("2026-02-25T05:06:40Z"),
        node=SICK,
    ),
    case(
        "RDMA-OCA-014",
        "unknown",
        "The pod rdma-k8s-provider-0 does not run",
        "a pod that waits",
        started(""),
        node=SICK,
    ),
    case(
        "RDMA-OCA-014",
        "unknown",
        "The time of the last change of the files is not known",
        "files without a time",
        node=SICK,
        edit_snapshot=no_time,
    ),
    # RDMA-IMDS-007: F9, F66, F70
    case("RDMA-IMDS-007", "pass", "7 attributes", "devices as the metadata says", node=SICK),
    case(
        "RDMA-IMDS-007",
        "warn",
        "oke.dra.net/hpcIslandId: published is 'isl9', the metadata has 'isl1'",
        "an island that changed",
        without_an_attribute("oke.dra.net/hpcIslandId", "isl9"),
        node=SICK,
    ),
    case(
        "RDMA-IMDS-007",
        "warn",
        "oke.dra.net/rdmaFabricIpv6",
        "a fabric that changed",
        without_an_attribute("oke.dra.net/rdmaFabricIpv6", True),
        node=SICK,
    ),
    case("RDMA-IMDS-007", "pass", "7 attributes", "an IPv6 fabric is published", node=SICK, shape=GB200_V3),
    case(
        "RDMA-IMDS-007", "pass", "7 attributes", "native InfiniBand is published", node=SICK, shape=GB200_IB
    ),
    case(
        "RDMA-IMDS-007",
        "skip",
        "No RDMA device is published",
        "no devices",
        lambda cluster: api.edit_slice(cluster, devices=()),
        node=SICK,
        also="DRA-009 fail DRA-010 fail",
    ),
    case(
        "RDMA-IMDS-007",
        "unknown",
        "No node of the cluster has the name sick",
        "metadata of a node under another name",
        other_name,
        node=SICK,
        also="DRA-009 unknown DRA-010 unknown DRA-017 unknown OCA-013 unknown OCA-014 unknown RANGE-014 unknown",
    ),
]
