# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prove the fabric of a lab with everything broken that a proof must find, and compare with ``expected.yml``.

Prints one line for each step: what was broken, what the module or the playbook said, the state afterwards. Ends with
code 1 when anything differs. What a child looks like is read on the node with ``ip`` and from sysfs, not by this
collection.
"""

from __future__ import annotations

import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import time
from typing import Any

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "preflight"))

import judge_faults  # noqa: E402 (its directory is no package)

NAMESPACE = "rdma-k8s-fabric"
LOOK = f"""
for what in "-d -j link show dev rdma0" "-j -4 addr show dev rdma0" "-j rule" "-j route show table 100"; do
  ip -n {NAMESPACE} $what | tr -d '\\n'; echo
done
ip netns exec {NAMESPACE} cat /proc/sys/net/ipv4/conf/rdma0/arp_ignore /proc/sys/net/ipv4/conf/rdma0/arp_announce
ip -j link show dev rdma0 | tr -d '\\n'; echo
"""
GIDS = """
cd /sys/class/infiniband
for gid in $(grep -l 0000:0000:0000:0000:0000:ffff:0ad0: */ports/1/gids/*); do
  echo "$gid $(cat $gid) $(cat ${gid%/gids/*}/gid_attrs/types/${gid##*/})"
done
"""
BREAK = {
    "node1": """
ip netns add pod
ip link add link rdma3 name tmp3 netns pod type ipvlan mode l2
ip -n pod link set tmp3 name rdma3
ip -n pod addr add 10.208.109.19/12 dev rdma3
ip -n pod link set rdma3 up
""",
    "node2": """
nft -f - <<'END'
table netdev broken {
  chain rail0 { type filter hook ingress device "rdma0" priority 0; icmp type echo-request drop; }
  chain rail2 { type filter hook ingress device "rdma2" priority 0; meta length > 2000 drop; }
}
END
""",
}
MEND = {"node1": "ip netns del pod", "node2": "nft delete table netdev broken"}


class Driver(judge_faults.Driver):
    """Runs the playbooks and commands on one lab."""

    def on(self, node: str, script: str) -> str:
        """The output of a shell script on a node."""
        command = [sys.executable, str(judge_faults.LAB), "ssh", "--name", self.lab, node, "--", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise judge_faults.DriverError(f"{node}: {script.strip()}: {(done.stdout + done.stderr).strip()}")
        return done.stdout

    def on_all(self, scripts: dict[str, str]) -> dict[str, str]:
        """One script on each node at the same time."""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return dict(zip(scripts, pool.map(self.on, scripts, scripts.values()), strict=True))

    def play(self, *words: str) -> tuple[str, int]:
        """Output and exit code of ansible-playbook."""
        command = [
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            str(self.inventory),
            *words,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.work)
        return f"{shlex.join(command)}:\n{done.stdout}{done.stderr}", done.returncode

    def prove(self, name: str, *options: str) -> tuple[judge_faults.Said, dict[str, Any], int]:
        """What one run of the proof said, what it measured, and the exit code of ansible-playbook."""
        directory = self.work / name
        policy = HERE.parent / "preflight" / "files" / "policy.yml"
        extra = [
            "-e",
            f"report_dir={directory}",
            "-e",
            f"policy={policy}",
            "-e",
            "seed=7",
            "-e",
            "rdma_timeout=60",
        ]
        output, code = self.play("rdma.k8s.conformance", *extra, *options)
        if not (directory / "result.json").exists():
            raise judge_faults.DriverError(output)
        document = json.loads((directory / "result.json").read_text(encoding="utf-8"))
        measured = json.loads((directory / "fabric.json").read_text(encoding="utf-8"))
        return judge_faults.said_in(document), measured, code

    def left(self) -> list[str]:
        """A sentence for everything of a proof that is still on a node."""
        troubles = []
        for node, found in self.on_all(dict.fromkeys(MEND, f"ls /run/netns; {GIDS}")).items():
            if NAMESPACE in found:
                troubles.append(f"{node}: the namespace {NAMESPACE} is there")
            gids = [line for line in found.splitlines() if "0ad0:6d13" not in line and "gids/" in line]
            troubles += [f"{node}: a GID is left: {line}" for line in gids]
        return troubles


def child_troubles(node: str, found: str, gids: str, wanted: dict[str, Any]) -> list[str]:
    """What is not as the profile makes a child, read with ``ip`` and from sysfs (F14, F38-F41, F134)."""
    lines = found.splitlines()
    link, addresses, rules, routes = [json.loads(line) for line in lines[:4]]
    parent = json.loads(lines[6])[0]
    info = link[0]["linkinfo"]
    held = [f"{entry['local']}/{entry['prefixlen']}" for entry in addresses[0]["addr_info"]]
    rule = [entry for entry in rules if entry.get("src") == wanted["address"]]
    found_gids = [line.split(" ", 2) for line in gids.splitlines() if wanted["gid"] in line]
    is_ = {
        "kind": info["info_kind"],
        "mode": info["info_data"]["mode"],
        "flags": info["info_data"].get("mode_flag", "bridge"),
        "mtu": link[0]["mtu"] == parent["mtu"],
        "up": "UP" in link[0]["flags"],
        "address": held,
        "rule": [(entry["priority"], entry["table"]) for entry in rule],
        "route": [(entry["dst"], entry["dev"], entry["scope"], entry["prefsrc"]) for entry in routes],
        "arp": lines[4:6],
        "gid": [(entry[0].split("/")[0], entry[2]) for entry in found_gids],
    }
    should = {
        "kind": "ipvlan",
        "mode": "l2",
        "flags": "bridge",
        "mtu": True,
        "up": True,
        "address": [f"{wanted['address']}/12"],
        "rule": [(32000, "100")],
        "route": [("10.208.0.0/12", "rdma0", "link", wanted["address"])],
        "arp": ["1", "2"],
        "gid": [("mlx5_0", "RoCE v2")],
    }
    return [
        f"{node}: {name} is {is_[name]}, expected {value}"
        for name, value in should.items()
        if is_[name] != value
    ]


def run(driver: Driver, expected: dict[str, Any], first: pathlib.Path) -> None:
    """All steps."""
    clean = judge_faults.expected_clean(expected, sorted(MEND))
    document = json.loads((first / "result.json").read_text(encoding="utf-8"))
    measured = json.loads((first / "fabric.json").read_text(encoding="utf-8"))
    troubles = judge_faults.differences(judge_faults.said_in(document), clean)
    rails = [entry["index"] for entry in measured["latency"]]
    if (measured["pairs"], measured["failed"], rails) != (8, [], [0, 1, 2, 3]):
        troubles.append(f"fabric.json has {measured}")
    driver.line("clean nodes", "9 checks pass on both, 8 pairs on 4 rails", troubles + driver.left())

    begin = time.monotonic()
    output, code = driver.play(str(HERE / "files" / "child.yml"))
    troubles = [] if code == 0 else output.splitlines()
    if not troubles:
        looks = driver.on_all(dict.fromkeys(MEND, f"{LOOK}echo ==={GIDS}"))
        for node, wanted in expected["children"].items():
            found, _mark, gids = looks[node].partition("===\n")
            troubles += child_troubles(node, found, gids, wanted)
    driver.line(
        "one child, as a killed run leaves it", "as the profile makes it", troubles, time.monotonic() - begin
    )

    begin = time.monotonic()
    driver.change([], expected["faults"])
    driver.on_all(BREAK)
    said, measured, code = driver.prove("broken")
    wanted = judge_faults.expected_with(clean, expected["findings"])
    troubles = judge_faults.differences(said, wanted)
    if code != judge_faults.PLAYBOOK_ENDS["fails"]:
        troubles.append(f"ansible-playbook ended with code {code}")
    for name, value in expected["measured"].items():
        if measured[name] != value:
            troubles.append(f"fabric.json: {name} is {measured[name]}, expected {value}")
    if "rdma3" not in driver.on("node1", "ip -n pod -br link"):
        troubles.append("the child of the pod is gone")
    for name, told in expected["broken"].items():
        driver.line(name, told, [])
    driver.line(
        "all of these at once",
        "found, and nothing is left",
        troubles + driver.left(),
        time.monotonic() - begin,
    )

    begin = time.monotonic()
    driver.on_all(MEND)
    driver.change(expected["faults"], [])
    said, _measured, code = driver.prove("check", "--check")
    troubles = [
        f"{key} is {value}" for key, value in said.items() if value[0] != "unknown" and "FAB" in key[1]
    ]
    if code:
        troubles.append(f"ansible-playbook ended with code {code}")
    driver.line("check mode", "all unknown, nothing made", troubles + driver.left(), time.monotonic() - begin)

    begin = time.monotonic()
    said, _measured, code = driver.prove("last")
    troubles = judge_faults.differences(said, clean) + ([f"ended with code {code}"] if code else [])
    driver.line("clean again", "the clean list", troubles + driver.left(), time.monotonic() - begin)


def main() -> int:
    """Read the command line, run, count."""
    parser = judge_faults.arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "--first", required=True, type=pathlib.Path, metavar="DIR", help="reports of a first run"
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    expected = yaml.safe_load((HERE / "files" / "expected.yml").read_text(encoding="utf-8"))
    driver = Driver(options.lab, options.inventory.absolute(), options.work.absolute())
    return judge_faults.concluded(driver, lambda: run(driver, expected, options.first))


if __name__ == "__main__":
    sys.exit(main())
