# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DRANET and the provider as a cluster runs them. The rest is told by the cases of the checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import (
    ClusterNode,
    ClusterSnapshot,
    DaemonSet,
    DeviceTaintRule,
    DriverContainer,
    DriverPod,
    Mount,
    ResourceSlice,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.installed import (
    Installed,
    Program,
    Settings,
    flags,
)
from ansible_collections.rdma.k8s.tests.support import cluster_fleet as api, fleet


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {}),
        (("--a=1", "-b=2", "--a=3"), {"a": ["1", "3"], "b": ["2"]}),
        (("--a", "1", "--b"), {"a": ["1"], "b": ["true"]}),
        (("--move-ib-interfaces", "false"), {"move-ib-interfaces": ["true"]}),  # as Go reads a switch
        (
            ("-m", "rdma_k8s_provider", "--x", "--y=a=b"),
            {"m": ["rdma_k8s_provider"], "x": ["true"], "y": ["a=b"]},
        ),
        (("serve", "-", "--a=", "--", "--b=1"), {"a": [""]}),
    ],
)
def test_flags_are_read_as_go_reads_them(words: tuple[str, ...], found: dict[str, list[str]]) -> None:
    assert flags(words) == found


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "False", "FALSE"])
def test_a_switch_that_is_off(text: str) -> None:
    """F82, F103: on by default."""
    assert not Settings(flags(["--move-ib-interfaces=" + text])).moves_infiniband
    assert Settings({}).moves_infiniband


def test_the_node_agent_is_no_provider() -> None:
    """Both are of this collection, and have one role in the snapshot."""
    agent = DaemonSet("kube-system", "rdma-k8s-agent", "provider", containers=(DriverContainer("agent"),))
    by_program = replace(
        agent, name="mine", containers=(DriverContainer("x", command=("python3", "-m", "rdma_k8s_provider")),)
    )
    only_init = replace(agent, name="provider", containers=(DriverContainer("x", init=True),))
    found = Installed(ClusterSnapshot(daemonsets=(agent, by_program, only_init))).provider
    assert [entry.name for entry in found] == ["kube-system/mine"]


def test_a_provider_is_known_by_its_program_too() -> None:
    """In a word of its command or of its arguments."""
    agent = DaemonSet("a", "mine", "provider", containers=(DriverContainer("x", command=("sleep",)),))
    by_argument = replace(
        agent, name="own", containers=(DriverContainer("x", args=("-m", "rdma_k8s_provider.main")),)
    )
    found = Installed(ClusterSnapshot(daemonsets=(agent, by_argument))).provider
    assert [entry.name for entry in found] == ["a/own"]


def program(**container: Any) -> Program:
    """DRANET with one container."""
    daemonset = DaemonSet("a", "dranet", "dranet", containers=(DriverContainer("dranet", **container),))
    return Installed(ClusterSnapshot(daemonsets=(daemonset,))).dranet[0]


def test_the_command_is_no_flag_and_what_follows_it_is() -> None:
    """F92: flags can stand in the command, behind the name of the program, and before the arguments."""
    found = program(command=("/dranet", "--profile-provider=none", "--v=1"), args=("--v=4",))
    assert found.settings.flags == {"profile-provider": ["none"], "v": ["1", "4"]}
    other = found.settings_of(DriverPod("p", args={"dranet": ["--v=5"]}))
    assert other.flags == {"profile-provider": ["none"], "v": ["1", "5"]}


def test_the_settings_of_a_program() -> None:
    """F95, F98, F103, F105: the last occurrence counts, and what is not said has its default."""
    found = program(
        args=("--cloud-provider-hint=AWS", "--cloud-provider-hint=OKE", "--profile-provider=none")
    )
    assert (found.settings.hint, found.settings.profile_provider) == ("OKE", "none")
    plain = program().settings
    assert (plain.hint, plain.profile_provider, list(plain.options)) == ("", "cloud", [])


def test_an_option_that_stops_the_program() -> None:
    """F93: the error itself, not a range that is not known."""
    found = program(args=("--cloud-provider-options=oke.rdma-child-ipv4-cidr=10.208.0.1/12",))
    error = found.settings.child_range()
    assert isinstance(error, RdmaError)
    assert program(args=("--v=4",)).settings.child_range() is None


@pytest.mark.parametrize(
    ("hosts", "seen"),
    [
        ((), False),
        (("",), False),
        (("/etc/oca/files",), True),
        (("/etc/oca/files/",), True),
        (("/etc/oca",), True),
        (("/etc/oc",), False),
        (("/etc/oca/files/more",), False),
        (("/",), True),
        (("/sys", "/etc"), True),
    ],
)
def test_whether_a_directory_is_mounted(hosts: tuple[str, ...], seen: bool) -> None:
    """F54: it, or one above it; a mount that is no directory of the node does not count."""
    mounts = tuple([Mount("/host", host) for host in hosts])
    assert program(mounts=mounts).has_mounted("/etc/oca/files") is seen


def test_slices_of_the_newest_generation() -> None:
    """F99: of each pool; those of other drivers, and of no node, are left out."""

    def made(name: str, generation: int, **more: Any) -> ResourceSlice:
        return ResourceSlice(
            name, **{"driver": "dra.net", "node": "n1", "pool": "p", **more}, generation=generation
        )

    slices = (
        made("old", 1),
        made("one", 2),
        made("two", 2),
        made("other-pool", 1, pool="q"),
        made("other-node", 1, node="n2"),
        made("foreign", 9, driver="gpu.example"),
        made("network", 3, node=""),
    )
    found = Installed(ClusterSnapshot(slices=slices)).slices
    assert {node: [entry.name for entry in held] for node, held in found.items()} == {
        "n1": ["one", "two", "other-pool"],
        "n2": ["other-node"],
    }


def test_the_container_of_the_driver_among_others() -> None:
    containers = (
        DriverContainer("wait", init=True),
        DriverContainer("log", "registry.example/dranet-mirror/log:1"),
        DriverContainer(
            "main", "registry.example/networking/dranet:v1.4.0", args=("--profile-provider=none",)
        ),
    )
    found = Installed(
        ClusterSnapshot(daemonsets=(DaemonSet("a", "b", "dranet", containers=containers),))
    ).dranet[0]
    assert (found.container.name, found.settings.profile_provider) == ("main", "none")


def test_the_pod_that_stays_counts() -> None:
    """While a pod is made anew, the one that goes away is there, too."""
    going = DriverPod("old", "n1", started="2026-01-01T00:00:00Z", deleted="2026-01-02T00:00:00Z")
    coming = DriverPod("new", "n1", started="2026-01-02T00:00:01Z")
    for pods in ((going, coming), (coming, going)):
        daemonset = DaemonSet("a", "dranet", "dranet", containers=(DriverContainer("dranet"),), pods=pods)
        assert Installed(ClusterSnapshot(daemonsets=(daemonset,))).dranet[0].pods["n1"].name == "new"


def test_the_range_of_a_node() -> None:
    """F94: the pod's own option; without a pod, or with a bad option, there is none."""
    cluster = api.healthy([fleet.node(number=number) for number in range(2)])
    cluster = api.edit_pod(
        cluster, api.PROVIDER, args={"other": [], api.PROVIDER: [api.OPTION + "10.240.0.0/15"]}
    )
    cluster = api.edit_pod(cluster, api.PROVIDER, 1, args={"other": []})
    found = Installed(cluster)
    assert [str(found.optioned_range(node)) for node in ("10.140.77.19", "10.140.77.20", "x")] == [
        "10.240.0.0/15",
        "10.208.0.0/12",
        "None",
    ]
    bad = api.edit_pod(cluster, api.PROVIDER, args={api.PROVIDER: [api.OPTION + "10.240.0.1/15"]})
    assert Installed(bad).optioned_range("10.140.77.19") is None


@pytest.mark.parametrize(
    ("node", "rules", "fence"),
    [
        (ClusterNode("n1"), (), ""),
        (ClusterNode("n1", unschedulable=True), (), "cordoned"),
        (
            ClusterNode("n1", taints=("a:NoSchedule", "rdma.k8s/b=c:NoExecute")),
            (),
            "taint rdma.k8s/b=c:NoExecute",
        ),
        (ClusterNode("n1", taints=("rdma.k8s/b:PreferNoSchedule",)), (), ""),
        (
            ClusterNode("n1"),
            (DeviceTaintRule("r", "dra.net", "n1", "", "x:NoSchedule"),),
            "device taint rule r",
        ),
        (ClusterNode("n1"), (DeviceTaintRule("r", "", "", "", "x:NoExecute"),), "device taint rule r"),
        (ClusterNode("n1"), (DeviceTaintRule("r", "dra.net", "n2", "", "x:NoSchedule"),), ""),
        (ClusterNode("n1"), (DeviceTaintRule("r", "gpu.example", "", "", "x:NoSchedule"),), ""),
        (ClusterNode("n1"), (DeviceTaintRule("r", "dra.net", "n1", "d", "x:NoSchedule"),), ""),
        (ClusterNode("n1"), (DeviceTaintRule("r", "dra.net", "n1", "", "x:None"),), ""),
    ],
)
def test_what_fences_a_node(node: ClusterNode, rules: tuple[DeviceTaintRule, ...], fence: str) -> None:
    assert Installed(ClusterSnapshot(nodes=(node,), taint_rules=rules)).fence(node) == fence


def test_nothing_is_known_of_an_empty_cluster() -> None:
    found = Installed(ClusterSnapshot())
    assert (found.dranet, found.provider, found.webhook, found.range_pod("n1")) == ((), (), False, None)
    assert (found.devices("n1"), found.published_ranges("n1")) == ([], [])
