# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who talks to whom between pods, with which words, and what the outputs of the tools mean (S144)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_address
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import pod_fabric
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool.pod_fabric import End, Limits, Pair

PERFTEST = frozenset((*pod_fabric.TOOLS, "sleep"))


def end(pod: str, node: str, rail: int = 1, tools: frozenset[str] = PERFTEST, gid: Optional[int] = 3) -> End:
    number = int(pod[1:]) if pod[1:].isdigit() else 1
    address = parse_address("172.16.%d.%d" % (10 + rail, 10 + number))
    return End(pod, node, "net%d" % rail, "mlx5_%d" % rail, gid, address, tools)


def names(pairs: list[Pair]) -> list[tuple[str, str, str]]:
    return [(pair.source.nic, pair.source.pod, pair.target.pod) for pair in pairs]


def one_each(count: int, rails: int = 1) -> list[End]:
    return [end("p%d" % at, "n%d" % at, rail) for at in range(count) for rail in range(1, rails + 1)]


@pytest.mark.parametrize("count", [2, 3, 7, 40])
def test_a_ring_has_each_pod_once_at_each_end(count: int) -> None:
    pairs = pod_fabric.plan_pairs(one_each(count))
    assert len(pairs) == count
    assert set(Counter([pair.source.pod for pair in pairs]).values()) == {1}
    assert set(Counter([pair.target.pod for pair in pairs]).values()) == {1}


@pytest.mark.parametrize("mode", pod_fabric.MODES)
def test_pairs_are_of_one_rail_and_of_different_nodes(mode: str) -> None:
    """Whatever the pods are on: never two of one node, never two rails, and nobody is left who has a partner."""
    chance = random.Random(7)
    for _run in range(60):
        ends = [
            end("p%d" % at, "n%d" % chance.randrange(4), rail)
            for at in range(chance.randrange(1, 9))
            for rail in (1, 2)
            if chance.random() < 0.8
        ]
        pairs = pod_fabric.plan_pairs(ends, mode, seed=chance.randrange(99))
        for pair in pairs:
            assert pair.source.node != pair.target.node
            assert pair.source.nic == pair.target.nic
        alone = {(entry.pod, entry.nic) for entry in pod_fabric.lone(ends, pairs)}
        for entry in ends:
            has_partner = any(other.nic == entry.nic and other.node != entry.node for other in ends)
            assert ((entry.pod, entry.nic) in alone) is not has_partner


def test_all_is_everyone_with_everyone_on_another_node() -> None:
    ends = [end("p1", "a"), end("p2", "a"), end("p3", "b")]
    found = {(source, target) for _nic, source, target in names(pod_fabric.plan_pairs(ends, "all"))}
    assert found == {("p1", "p3"), ("p2", "p3"), ("p3", "p1"), ("p3", "p2")}


def test_the_seed_alone_fixes_the_order() -> None:
    ends = one_each(12)
    first = names(pod_fabric.plan_pairs(ends, seed=1))
    assert names(pod_fabric.plan_pairs(list(reversed(ends)), seed=1)) == first
    assert names(pod_fabric.plan_pairs(ends, seed=2)) != first
    with pytest.raises(RdmaError) as caught:
        pod_fabric.plan_pairs(ends, "star")
    assert caught.value.code == "fabric_mode"


def test_rails_come_in_their_order() -> None:
    ends = [end(pod, node, rail) for pod, node in (("p1", "a"), ("p2", "b")) for rail in (10, 2)]
    pairs = pod_fabric.plan_pairs(ends)
    assert [pair.source.nic for pair in pairs] == ["net2", "net2", "net10", "net10"]


def test_no_pod_is_in_two_tests_of_a_round() -> None:
    pairs = pod_fabric.plan_pairs(one_each(9, rails=8))
    found = pod_fabric.rounds(pairs)
    assert sorted(names([pair for held in found for pair in held])) == sorted(names(pairs))
    for held in found:
        pods = [entry.pod for pair in held for entry in pair]
        assert len(pods) == len(set(pods))


PAIR = Pair(end("p1", "a"), end("p2", "b", gid=5))


def words(pair: Pair, tool: str) -> tuple[str, str]:
    only = frozenset((tool, "sleep"))
    pair = Pair(*[entry._replace(tools=only) for entry in pair])
    (probe,) = pod_fabric.plan_tests(pair, 0, ("latency", "bandwidth"))
    assert probe.tool == tool
    return " ".join(probe.server), " ".join(probe.client)


def test_device_gid_and_address_are_always_said() -> None:
    """Each side names its own device and its own index; the target is the other pod's address on the rail."""
    assert words(PAIR, "ib_read_lat") == (
        "ib_read_lat -d mlx5_1 -x 5 -p 18515 -F -n 1000",
        "ib_read_lat -d mlx5_1 -x 3 -p 18515 -F -n 1000 172.16.11.12",
    )
    assert words(PAIR, "ib_write_bw") == (
        "ib_write_bw -d mlx5_1 -x 5 -p 18515 -F -n 1000 -s 65536 --report_gbits",
        "ib_write_bw -d mlx5_1 -x 3 -p 18515 -F -n 1000 -s 65536 --report_gbits 172.16.11.12",
    )
    assert words(PAIR, "ibv_rc_pingpong") == (
        "ibv_rc_pingpong -d mlx5_1 -g 5 -p 18515 -n 1000",
        "ibv_rc_pingpong -d mlx5_1 -g 3 -p 18515 -n 1000 172.16.11.12",
    )
    assert words(PAIR, "rping") == (
        "rping -s -a 172.16.11.12 -p 18515 -C 10",
        "rping -c -a 172.16.11.12 -I 172.16.11.11 -p 18515 -C 10",
    )


def test_infiniband_needs_no_gid() -> None:
    pair = Pair(end("p1", "a", gid=None), end("p2", "b", gid=None))
    assert words(pair, "ib_read_lat")[0] == "ib_read_lat -d mlx5_1 -p 18515 -F -n 1000"
    assert words(pair, "ibv_rc_pingpong")[0] == "ibv_rc_pingpong -d mlx5_1 -p 18515 -n 1000"


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (PERFTEST, PERFTEST, ["ib_read_lat", "ib_write_bw"]),
        (PERFTEST, PERFTEST - {"ib_read_lat"}, ["ib_write_bw"]),
        (PERFTEST, {"ibv_rc_pingpong", "rping", "sleep"}, ["ibv_rc_pingpong"]),
        ({"rping", "sleep"}, PERFTEST, ["rping"]),
        ({"rping", "sleep"}, {"ib_read_lat", "sleep"}, []),
        (PERFTEST - {"sleep"}, PERFTEST, []),
    ],
)
def test_the_tools_that_both_images_have(source: Any, target: Any, found: list[str]) -> None:
    pair = Pair(PAIR.source._replace(tools=frozenset(source)), PAIR.target._replace(tools=frozenset(target)))
    assert [probe.tool for probe in pod_fabric.plan_tests(pair, 0, ("latency", "bandwidth"))] == found
    if not found:
        assert "program" in pod_fabric.why_no_probe(pair)


def test_ports_of_tests_differ() -> None:
    ports = [
        probe.port
        for number in range(200)
        for probe in pod_fabric.plan_tests(PAIR, number, ("latency", "bandwidth"))
    ]
    assert len(ports) == len(set(ports))
    assert 1024 < min(ports) < max(ports) < 32768


HEAD = """---------------------------------------------------------------------------------------
                    RDMA_Read Latency Test
 Dual-port       : OFF\t\tDevice         : mlx5_1
 Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0108 PSN 0x63ad7d
---------------------------------------------------------------------------------------
"""
LATENCY = (
    HEAD
    + """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   \
99% percentile[usec]   99.9% percentile[usec]
 2       1000          3.61           9.48         3.91     \t       3.97        \t0.21   \t\t5.02    \t\t9.48
---------------------------------------------------------------------------------------
"""
)
BANDWIDTH = (
    HEAD
    + """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1000             196.82              196.41 \t\t   0.374622
---------------------------------------------------------------------------------------
"""
)


def result(tool: str, stdout: str = "", code: int = 0, stderr: str = "", limits: Limits = Limits()) -> Any:  # noqa: B008
    only = frozenset((tool, "sleep"))
    pair = Pair(*[entry._replace(tools=only) for entry in PAIR])
    (probe,) = pod_fabric.plan_tests(pair, 0, ("latency", "bandwidth"))
    return pod_fabric.result_of(probe, code, stdout, stderr, limits)


def test_figures_of_perftest() -> None:
    """Columns are found by their names; the unit counts."""
    found = result("ib_read_lat", LATENCY)
    assert (found.status, found.latency_us, found.latency_p99_us, found.mtu) == ("pass", 3.91, 5.02, 4096)
    found = result("ib_write_bw", BANDWIDTH)
    assert (found.status, found.bandwidth_gbps, found.latency_us) == ("pass", 196.41, None)
    mebi = BANDWIDTH.replace("Gb/sec", "MB/sec").replace("196.41", "11682.00")
    assert result("ib_write_bw", mebi).bandwidth_gbps == 98.0
    without = LATENCY.replace("t_typical[usec]", "").replace("3.91     \t", "")
    assert result("ib_read_lat", without).latency_us == 3.97


def test_figures_of_a_ping_pong() -> None:
    said = "8192000 bytes in 0.01 seconds = 7286.39 Mbit/sec\n1000 iters in 0.01 seconds = 8.99 usec/iter\n"
    assert result("ibv_rc_pingpong", said).latency_us == 8.99
    assert result("rping").status == "pass"


@pytest.mark.parametrize("tool", ["ib_read_lat", "ib_write_bw", "ibv_rc_pingpong"])
@pytest.mark.parametrize(
    "said", ["", "nothing of use\n", HEAD, " #bytes #iterations\n", "#bytes t_min\n nan nan\n"]
)
def test_no_figures_are_no_pass(tool: str, said: str) -> None:
    found = result(tool, said)
    assert found.status == "fail"
    assert "told no figures" in found.reason


def test_a_failed_test_says_the_last_words_of_the_tool() -> None:
    found = result("ib_read_lat", HEAD, 1, "Couldn't connect to 172.16.11.12:18515\n----\n")
    assert found.status == "fail"
    assert found.reason == "ib_read_lat ended with code 1: Couldn't connect to 172.16.11.12:18515"
    said = "Completion with error at client\nCouldn't connect to 172.16.11.12:18515\n"
    found = result("ib_read_lat", "", 1, said)
    assert found.reason.endswith(": Completion with error at client"), (
        "later attempts find no server any more"
    )
    assert result("rping", "", 1).reason == "rping ended with code 1: it said nothing"


def test_limits() -> None:
    limits = Limits(latency_us=3.5, bandwidth_gbps=200.0)
    assert result("ib_read_lat", LATENCY, limits=limits).reason == "3.91 us, more than 3.5 us"
    found = result("ib_write_bw", BANDWIDTH, limits=limits)
    assert (found.status, found.reason) == ("fail", "196.41 Gbit/s, less than 200 Gbit/s")
    assert found.bandwidth_gbps == 196.41
    assert result("ib_read_lat", LATENCY, limits=Limits(latency_us=3.91)).status == "pass"
    assert result("ib_write_bw", BANDWIDTH, limits=Limits(bandwidth_gbps=196.41)).status == "pass"


def test_the_matrix() -> None:
    results = [result("ib_read_lat", LATENCY), result("ib_write_bw", BANDWIDTH)]
    (rail,) = pod_fabric.matrix(results)
    assert (rail["rail"], rail["status"], rail["pairs"]) == ("net1", "pass", 1)
    assert (rail["median_latency_us"], rail["median_bandwidth_gbps"]) == (3.91, 196.41)
    assert rail["cells"] == {
        "p1": {
            "p2": {
                "status": "pass",
                "source_device": "mlx5_1",
                "source_gid_index": 3,
                "target_device": "mlx5_1",
                "target_gid_index": 5,
                "target_address": "172.16.11.12",
                "latency_us": 3.91,
                "mtu": 4096,
                "bandwidth_gbps": 196.41,
            }
        }
    }
    (rail,) = pod_fabric.matrix([*results, result("ib_write_bw", "", 1)])
    assert rail["status"] == "fail"
    assert rail["cells"]["p1"]["p2"]["status"] == "fail"
    assert "ended with code 1" in rail["cells"]["p1"]["p2"]["reason"]


def test_what_a_pod_is_told() -> None:
    """P14 of a pod is the worst of the tests at either end; a rail without a test leaves it open."""
    good, wrong = result("ib_read_lat", LATENCY), result("ib_read_lat", "", 1)
    assert pod_fabric.of_pod("p1", [good], {}) == ("pass", "Rails: net1.")
    assert pod_fabric.of_pod("p2", [good, wrong], {})[0] == "fail"
    status, message = pod_fabric.of_pod("p1", [good], {"net2": "the interface has no address"})
    assert (status, message) == ("unknown", "net2: the interface has no address.")
    assert pod_fabric.of_pod("p3", [good], {})[0] == "unknown"
    open_ = pod_fabric.not_tried(PAIR, "latency", "unknown", "the images share no program")
    assert pod_fabric.of_pod("p1", [good, open_], {})[0] == "unknown"
