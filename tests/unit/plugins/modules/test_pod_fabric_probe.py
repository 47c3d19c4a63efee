# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module pod_fabric_probe between pods made of namespaces, with stand-ins for the tools of perftest.

A stand-in does what decides here: the server waits where it was told to, the client finds a server of the same port
with the address that it was given, or says that it cannot connect. What RDMA does between real NICs is not tried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.modules import pod_fabric_probe
from ansible_collections.rdma.k8s.tests.support import rail_pod, rail_scene
from ansible_collections.rdma.k8s.tests.support.rail_scene import Scene, pod

# Device and index must be said; the server's mark is taken away by its client, and ends it.
TOOL = r"""
echo "$0 $*" >> %(place)s/log
name=${0##*/} device= gid= port= target=
while [ $# -gt 0 ]; do
  case $1 in
    -d) device=$2; shift 2 ;;
    -x) gid=$2; shift 2 ;;
    -p) port=$2; shift 2 ;;
    -n | -s) shift 2 ;;
    -F | --report_gbits) shift ;;
    *) target=$1; shift ;;
  esac
done
[ -n "$device" ] && [ -n "$gid" ] || { echo "device or index not said" >&2; exit 3; }
if [ -z "$target" ]; then
  while read -r index nic family address rest; do
    [ "$family" = inet ] || continue
    : > "%(place)s/${address%%/*}:$port"
  done <<END
$(ip -o -4 address show)
END
  while [ -e "%(place)s/%(host)s:$port" ] || [ -e "%(place)s/%(host2)s:$port" ]; do sleep 0.1; done
  exit 0
fi
[ -e "%(place)s/$target:$port" ] || { echo "Couldn't connect to $target:$port" >&2; exit 1; }
rm -f "%(place)s/$target:$port" %(place)s/172.16.*:$port
[ -e "%(place)s/broken-$target" ] && { echo "Completion with error at client" >&2; exit 1; }
echo " Mtu             : 4096[B]"
case $name in
  ib_read_lat)
    echo " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
    echo " 2       1000          3.61           9.48         3.91               3.97" ;;
  *)
    echo " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    echo " 65536      1000             196.82              196.41            0.374622" ;;
esac
"""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with rail_scene.serving(pod_fabric_probe, tmp_path) as found:
        yield found


def add(scene: Scene, place: Path, name: str, node: str, tools: Any = ("ib_read_lat", "ib_write_bw")) -> None:
    host = {"a": 10, "b": 20, "c": 30}[name]
    marks = {"place": place, "host": "172.16.11.%d" % host, "host2": "172.16.12.%d" % host}
    scene.add(pod(name, node), rail_pod.good(host=host, programs=dict.fromkeys(tools, TOOL % marks)))


def test_two_pods_reach_each_other_on_each_rail(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    found = scene.good()
    assert (found["status"], found["problems"]) == ("pass", [])
    assert [(rail["rail"], rail["status"], rail["pairs"]) for rail in found["fabric"]["rails"]] == [
        ("net1", "pass", 2),
        ("net2", "pass", 2),
    ]
    cell = found["fabric"]["rails"][1]["cells"]["rdma/a"]["rdma/b"]
    assert cell == {
        "status": "pass",
        "source_device": "mlx5_8",
        "source_gid_index": 3,
        "target_device": "mlx5_8",
        "target_gid_index": 3,
        "target_address": "172.16.12.20",
        "latency_us": 3.91,
        "bandwidth_gbps": 196.41,
        "mtu": 4096,
    }
    assert len(found["results"]) == 8
    first = next(
        entry for entry in found["results"] if entry["source"] == "rdma/a" and entry["nic"] == "net2"
    )
    assert (first["source_device"], first["target_address"], first["source_gid_index"]) == (
        "mlx5_8",
        "172.16.12.20",
        3,
    )
    for entry in found["pods"]:
        answer = entry["predicates"][-1]
        assert (answer["predicate"], answer["status"], answer["message"]) == (
            "P14",
            "pass",
            "Rails: net1, net2.",
        )
    clients = [line for line in (tmp_path / "log").read_text().splitlines() if "172.16." in line]
    assert all(" -d mlx5_" in line and " -x 3 " in line for line in clients)


def test_a_rail_that_fails_is_told_with_both_ends(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    (tmp_path / "broken-172.16.12.20").touch()
    found = scene.good(tests=["latency"], timeout=10)
    assert found["status"] == "fail"
    assert [rail["status"] for rail in found["fabric"]["rails"]] == ["pass", "fail"]
    assert len(found["problems"]) == 1
    assert found["problems"][0].startswith("rdma/a to rdma/b on net2 (latency): ib_read_lat ended with code ")
    assert "Completion with error" in found["problems"][0]
    assert {entry["predicates"][-1]["status"] for entry in found["pods"]} == {"fail"}


def test_limits_make_a_slow_rail_fail(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    found = scene.good(tests=["bandwidth"], min_bandwidth_gbps=300)
    assert found["status"] == "fail"
    assert "196.41 Gbit/s, less than 300 Gbit/s" in found["problems"][0]


def test_images_without_tools_are_unknown_and_never_passed(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2", tools=())
    found = scene.good()
    assert found["status"] == "unknown"
    assert "share none of the programs ib_read_lat" in found["problems"][0]


def test_pods_of_one_node_prove_nothing(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n1")
    found = scene.good()
    assert (found["status"], found["results"], found["plan"]) == ("unknown", [], [])
    assert found["fabric"]["missing"]["rdma/a"] == {
        "net1": "no pod on another node has this rail",
        "net2": "no pod on another node has this rail",
    }


def test_check_mode_plans_and_sends_nothing(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    found = scene.good(_ansible_check_mode=True)
    assert (found["status"], found["results"]) == ("skip", [])
    assert len([pair for held in found["plan"] for pair in held]) == 4
    assert not (tmp_path / "log").exists()


def test_a_pod_that_cannot_be_looked_into_is_a_problem(scene: Scene, tmp_path: Path) -> None:
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    add(scene, tmp_path, "c", "n3")
    scene.containers.forbidden.add("rdma/c")
    found = scene.good(tests=["latency"])
    assert found["status"] == "unknown"
    assert [problem for problem in found["problems"] if problem.startswith("rdma/c: ")]
    assert {entry["status"] for entry in found["results"]} == {"pass"}


def test_a_server_does_not_stay_when_its_client_cannot_run(scene: Scene, tmp_path: Path) -> None:
    """The client's node goes away in the middle: the server in the other pod is told to end, long before its limit."""
    add(scene, tmp_path, "a", "n1")
    add(scene, tmp_path, "b", "n2")
    (tmp_path / "broken-172.16.11.20").touch()
    (tmp_path / "broken-172.16.12.20").touch()
    (tmp_path / "broken-172.16.11.10").touch()
    (tmp_path / "broken-172.16.12.10").touch()
    found = scene.good(tests=["latency"], timeout=60)
    assert found["status"] == "fail"
    end = time.monotonic() + 60
    while scene.containers.running and time.monotonic() < end:
        time.sleep(0.1)
    assert scene.containers.running == 0
