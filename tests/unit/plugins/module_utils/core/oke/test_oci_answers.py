# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks from the cloud's answers: pods in subnets, both families, peers, what is gone, what is malformed."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke import oci_answers
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.oci_answers import Answers, DrgRoutes
from ansible_collections.rdma.k8s.tests.support import oci_samples as samples


def answers(**changes: Any) -> Answers:
    """Everything of the sample."""
    every = samples.resources()
    whole: dict[str, Any] = {
        "cluster": samples.cluster(),
        "vcn": samples.vcn(),
        "subnets": every[samples.NETWORK + "/subnets"],
        "node_pools": every[samples.ENGINE + "/nodePools"],
        "peerings": every[samples.NETWORK + "/localPeeringGateways"],
        "drg_routes": [
            DrgRoutes(
                samples.attachment(),
                every["%s/drgRouteTables/%s/drgRouteRules" % (samples.NETWORK, samples.DRG_TABLE)],
            )
        ],
    }
    return Answers(**{**whole, **changes})


def found(kind: str, **changes: Any) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The networks of a kind, both families: sources and users by network."""
    document = oci_answers.to_document(answers(**changes))
    return {
        str(entry.network): (entry.sources, entry.used_by)
        for entry in document.networks
        if entry.kind == kind
    }


def test_pods_have_the_overlay_and_the_subnets_of_native_pools() -> None:
    source, user = ("subnet pods of VCN prod-vcn",), ("pods of node pool gpu",)
    assert found("pod") == {
        "10.244.0.0/16": (("podsCidr of cluster prod",), ()),
        "10.140.128.0/18": (source, user),
        "2603:c020:4000:1200::/64": (source, user),
    }


def test_pod_subnets_of_an_overlay_pool_do_not_count() -> None:
    """The API may keep the subnets of an earlier choice; only a native pool puts pods into them."""
    pool = samples.node_pool("gpu", ["gpu"], ["pods"])
    pool["nodeConfigDetails"]["nodePoolPodNetworkOptionDetails"]["cniType"] = "FLANNEL_OVERLAY"
    assert list(found("pod", node_pools=[pool])) == ["10.244.0.0/16"]


def test_both_families_stand_in_one_text() -> None:
    options = {
        "kubernetesNetworkConfig": {
            "podsCidr": "10.244.0.0/16,fd00:eeee:eeee:0000::/96",
            "servicesCidr": "10.96.0.0/16, fd00:eeee:eeee:0001::/108",
        }
    }
    changed = samples.cluster(options=options)
    assert "fd00:eeee:eeee::/96" in found("pod", cluster=changed)
    assert list(found("service", cluster=changed)) == ["10.96.0.0/16", "fd00:eeee:eeee:1::/108"]
    document = oci_answers.to_document(answers(cluster=changed))
    assert document.options()["service_cidrs"] == ["10.96.0.0/16"]


def test_a_vcn_has_all_its_networks() -> None:
    assert found("vcn") == dict.fromkeys(
        ["10.140.0.0/16", "172.16.0.0/20", "2603:c020:4000:1200::/56"], (("VCN prod-vcn",), ())
    )
    old = samples.vcn(cidrBlocks=None, ipv6CidrBlocks=None)
    assert list(found("vcn", vcn=old)) == ["10.140.0.0/16"]
    private = samples.vcn(
        cidrBlock=None,
        cidrBlocks=[],
        byoipv6CidrBlocks=["2001:db8::/48"],
        ipv6PrivateCidrBlocks=["fd12::/48"],
    )
    assert list(found("vcn", vcn=private)) == [
        "2001:db8::/48",
        "2603:c020:4000:1200::/56",
        "fd12::/48",
    ]


def test_subnets_say_what_uses_them() -> None:
    uses = {network: used_by for network, (_sources, used_by) in found("subnet").items()}
    assert uses == {
        "10.140.0.0/28": ("API endpoint",),
        "10.140.1.0/24": ("load balancers",),
        "10.140.64.0/19": ("nodes of node pool gpu",),
        "10.140.128.0/18": ("pods of node pool gpu",),
        "2603:c020:4000:1200::/64": ("pods of node pool gpu",),
        "172.16.0.0/24": ("nodes of node pool ops",),
    }


def test_a_subnet_may_have_several_networks() -> None:
    several = samples.subnet("gpu", "10.140.64.0/19", ipv4CidrBlocks=["10.140.64.0/19", "10.140.32.0/19"])
    assert list(found("subnet", subnets=[several])) == ["10.140.32.0/19", "10.140.64.0/19"]


def test_old_pools_list_their_subnets_directly() -> None:
    pool = samples.node_pool("gpu", [], [], subnetIds=[samples.subnet_id("gpu")], nodeConfigDetails=None)
    assert found("subnet", node_pools=[pool])["10.140.64.0/19"][1] == ("nodes of node pool gpu",)


def test_peers_are_what_is_advertised_and_routed() -> None:
    """The default route is no network, as on a host (F47); the way back into the VCN is no peer."""
    storage, old = (
        "advertised to local peering gateway storage",
        "advertised to local peering gateway old-style",
    )
    assert {network: sources[0] for network, (sources, _users) in found("peer").items()} == {
        "192.168.10.0/24": storage,
        "192.168.11.0/24": storage,
        "192.168.64.0/18": old,
        "10.20.0.0/16": "route of DRG attachment prod-drg",
    }


@pytest.mark.parametrize(
    "rule",
    [
        samples.drg_rule("10.99.0.0/16", isBlackhole=True),
        samples.drg_rule("10.99.0.0/16", destinationType="SERVICE_CIDR_BLOCK"),
        samples.drg_rule("::/0"),
    ],
)
def test_routes_that_lead_nowhere_do_not_count(rule: dict[str, Any]) -> None:
    assert found("peer", peerings=[], drg_routes=[DrgRoutes(samples.attachment(), [rule])]) == {}


def test_what_is_deleted_does_not_count() -> None:
    pool = samples.node_pool("gpu", ["gpu"], ["pods"], lifecycleState="DELETED")
    peer = samples.peering("x", ["192.168.0.0/24"], lifecycleState="TERMINATING")
    assert list(found("pod", node_pools=[pool])) == ["10.244.0.0/16"]
    assert found("peer", peerings=[peer], drg_routes=[]) == {}
    with pytest.raises(RdmaError) as caught:
        oci_answers.place_of(samples.cluster(lifecycleState="DELETED"))
    assert (caught.value.code, caught.value.message) == ("oci_not_found", "The cluster prod is deleted.")


def test_a_cluster_says_where_it_is() -> None:
    place = oci_answers.place_of(samples.cluster())
    assert (place.name, place.vcn, place.compartment) == ("prod", samples.VCN, samples.COMPARTMENT)
    assert oci_answers.place_of(samples.cluster(name=None)).name == "ocid1.cluster..aaaaprod"
    assert oci_answers.to_document(answers()).cluster == {
        "id": samples.CLUSTER,
        "name": "prod",
        "kubernetes_version": "v1.34.1",
        "vcn_id": samples.VCN,
        "endpoint_subnet_id": samples.subnet_id("api"),
        "pod_network_types": ["OCI_VCN_IP_NATIVE"],
        "ip_families": ["IPv4"],
    }


def test_a_bare_cluster_is_enough() -> None:
    bare = {"id": samples.CLUSTER, "vcnId": samples.VCN, "compartmentId": samples.COMPARTMENT}
    document = oci_answers.to_document(
        Answers(cluster=bare, vcn={"id": samples.VCN, "cidrBlock": "10.0.0.0/16"})
    )
    assert [entry.label for entry in document.networks] == ["VCN network (VCN ocid1.vcn..aaaavcn)"]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"cluster": samples.cluster(options=[])}, "cluster.options must be an object, found a list"),
        (
            {"cluster": samples.cluster(options={"kubernetesNetworkConfig": {"podsCidr": 4}})},
            "cluster.options.kubernetesNetworkConfig.podsCidr must be a text, found 4",
        ),
        (
            {"cluster": samples.cluster(options={"kubernetesNetworkConfig": {"podsCidr": "10.0.0.0/8,"}})},
            "cluster.options.kubernetesNetworkConfig.podsCidr must be a prefix of the form <address>/<length>",
        ),
        (
            {"vcn": samples.vcn(cidrBlocks=["10.0.0.0/08"])},
            "vcn.cidrBlocks must be a prefix of the form <address>/<length>, found '10.0.0.0/08'",
        ),
        ({"vcn": samples.vcn(cidrBlocks=[None, 5])}, "vcn.cidrBlocks[1] must be a text, found 5"),
        (
            {"subnets": [samples.subnet("gpu", "x")]},
            "subnets[0].cidrBlock must be a prefix of the form <address>/<length>, found 'x'",
        ),
        ({"subnets": ["x"]}, "subnets[0] must be an object, found 'x'"),
        ({"node_pools": [[]]}, "nodePools[0] must be an object, found a list"),
        (
            {"node_pools": [samples.node_pool("a", [], [], nodeConfigDetails={"placementConfigs": "x"})]},
            "nodePools[0].nodeConfigDetails.placementConfigs must be a list, found 'x'",
        ),
        (
            {"peerings": [samples.peering("a", ["10.0.0.0/8", 7])]},  # type: ignore[list-item]
            "localPeeringGateways[0].peerAdvertisedCidrDetails[1] must be a text, found 7",
        ),
        (
            {"drg_routes": [DrgRoutes(samples.attachment(), [samples.drg_rule("10.0.0.0")])]},
            "drgRouteRules[0].destination must be a prefix of the form <address>/<length>, found '10.0.0.0'",
        ),
    ],
)
def test_an_answer_that_is_not_as_it_must_be_names_the_place(changes: dict[str, Any], where: str) -> None:
    """F29 also for what the service says: a text that is read differently would hide a conflict."""
    with pytest.raises(RdmaError) as caught:
        oci_answers.to_document(answers(**changes))
    assert caught.value.code == "oci_answer_malformed"
    assert caught.value.message.startswith("The answer of the cloud: " + where), caught.value.message


@pytest.mark.parametrize("key", ["vcnId", "compartmentId"])
def test_a_cluster_without_a_place_is_refused(key: str) -> None:
    with pytest.raises(RdmaError) as caught:
        oci_answers.place_of(samples.cluster(**{key: None}))
    assert "cluster.%s must be a text, found None" % key in caught.value.message


def test_what_could_not_be_read_stays_in_the_document() -> None:
    lost = RdmaError("oci_throttled", "The peers: no.", hint="Later.", retryable=True)
    document = oci_answers.to_document(answers(unread=[lost]))
    assert [entry.to_dict() for entry in document.unread] == [
        {"code": "oci_throttled", "message": "The peers: no.", "hint": "Later.", "retryable": True}
    ]
