# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change the child range of a cluster under load with the playbook, look in the middle, and take it back.

The lab's DRANET v1.4.0 makes no IPvlan children and refuses every claim of an RDMA NIC. So the jobs here claim a NIC
that DRANET does serve, a dummy interface beside the RDMA NICs: what is evicted, waited for and released is real, and
the range is read where it is published, on the RDMA NICs.

Prints one line for each case, and what the playbook says. Ends with code 1 when anything differs from what is promised.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("oke_dranet", "preflight", "fabric")]
sys.path[:0] = [str(HERE.parents[2] / "tests")]

import judge_faults  # noqa: E402 (its directory is no package)
import prove_claims  # noqa: E402
from lab import kubenode  # noqa: E402
from lab.errors import LabError  # noqa: E402
from prove_claims import PROVIDER, SYSTEM, until  # noqa: E402

OLD, NEW = "10.208.0.0/12", "10.192.0.0/12"
NIC = "labnic0"
MAKE_NIC = f"ip link show {NIC} >/dev/null 2>&1 || ip link add {NIC} type dummy; ip link set {NIC} up"
LOOK_SECONDS = 20.0
"""Until DRANET is asked to look again; it looks by itself each minute."""
ATTRIBUTE = "oke.dra.net/rdmaChildIpv4Cidr"
SAID = re.compile(r"(roll|plan) |node\d* |[0-9a-f]{16}: |[*] |  (strategy|rolling) |\d+[. ]")
"""Lines of a plan, of a roll, of a status."""
MIDDLE = ("ClaimsReleased", "Applied", "DriverRestarted", "Verified")


def objects(nodes: list[str]) -> list[dict[str, Any]]:
    """A job with a claim and a deployment without one on each node."""
    expression = f'device.driver == "dra.net" && device.attributes["dra.net"].ifName == "{NIC}"'
    request = {"name": "nic", "exactly": {"deviceClassName": NIC}}
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": NIC},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": NIC, "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
    ]
    for node in nodes:
        train = spec(node, "OnFailure")
        train["resourceClaims"] = [{"name": "nic", "resourceClaimTemplateName": NIC}]
        train["containers"][0]["resources"] = {"claims": [{"name": "nic"}]}
        for kind, group, name, pod, more in (
            ("Job", "batch/v1", "train", train, {"backoffLimit": 20}),
            ("Deployment", "apps/v1", "web", spec(node, "Always"), {}),
        ):
            labels = {"app": name, "on": node}
            wanted = {"template": {"metadata": {"labels": labels}, "spec": pod}, **more}
            if kind == "Deployment":
                wanted["selector"] = {"matchLabels": labels}
            metadata = {"name": f"{name}-{node}", "namespace": "default"}
            found.append({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": wanted})
    return found


def spec(node: str, restart: str) -> dict[str, Any]:
    """A pod that waits on a node."""
    container = {
        "name": "main",
        "image": kubenode.IMAGE,
        "imagePullPolicy": "Never",
        "args": ["pause"],
    }
    return {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
    }


class Driver(prove_claims.Driver):
    """Runs the playbook while DRANET is asked to look often."""

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list of the API."""
        found: list[dict[str, Any]] = json.loads(self.cluster.kubectl("get", "--raw", path))["items"]
        return found

    def pods(self, app: str) -> dict[str, str]:
        """UIDs of the pods that run, by node."""
        return {
            pod["spec"]["nodeName"]: pod["metadata"]["uid"]
            for pod in self.items(f"/api/v1/namespaces/default/pods?labelSelector=app={app}")
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def both(self, app: str) -> dict[str, str]:
        """The same when one runs on each node, else nothing."""
        found = self.pods(app)
        return found if sorted(found) == self.nodes else {}

    def ranges(self) -> set[Any]:
        """What the RDMA NICs of all nodes name."""
        return {values.get(ATTRIBUTE) for node in self.nodes for values in self.devices(node).values()}

    def nics(self) -> list[str]:
        """The nodes that offer the NIC that is claimed here."""
        return [
            entry["spec"]["nodeName"]
            for entry in self.items("/apis/resource.k8s.io/v1/resourceslices")
            for device in entry["spec"].get("devices") or []
            if device["attributes"].get("dra.net/ifName", {}).get("string") == NIC
        ]

    def offer(self) -> None:
        """Wait until each node offers the NIC; the kernel deletes a dummy with the namespace of the pod that had it."""
        self.on_all(dict.fromkeys(self.nodes, MAKE_NIC))
        self.looking(f"{NIC} is offered", lambda: sorted(set(self.nics())) == self.nodes)

    def looking(self, what: str, done: Callable[[], Any]) -> Any:
        """What ``done`` returns as soon as it is true; DRANET is asked to look at the devices until then."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(LOOK_SECONDS):
                self.scan()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            return until(what, done)
        finally:
            over.set()
            thread.join()

    def states(self) -> set[str]:
        """The states of the nodes."""
        return {
            node["metadata"].get("labels", {}).get("rdma-k8s/roll-state", "")
            for node in self.items("/api/v1/nodes")
        }

    def change(self, *words: str) -> list[str]:  # type: ignore[override]
        """The command that changes the range."""
        settings = ("-e", f"kubeconfig={self.cluster.kubeconfig}", "-e", "judge=false", "-e", "confirm=true")
        program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        return [program, "rdma.k8s.change_child_range", *settings, "-e", "roll_budget=2", *words]

    def say(self, text: str) -> None:
        """Show what a roll said."""
        for line in text.splitlines():
            if SAID.match(line):
                print("      " + line)

    def run(self, *words: str) -> str:
        """One run of the playbook."""
        done = subprocess.run(self.change(*words), capture_output=True, text=True, check=False, cwd=self.work)
        if done.returncode:
            raise judge_faults.DriverError(done.stdout + done.stderr)
        return done.stdout

    def under_way(self, *words: str) -> tuple[str, str]:
        """A run that carries something out, and what another run said of it in the middle."""
        log = self.work / f"run-{time.monotonic_ns()}.txt"
        with log.open("w", encoding="utf-8") as output:
            began = subprocess.Popen(
                self.change(*words), stdout=output, stderr=subprocess.STDOUT, cwd=self.work
            )
            until("the middle of the roll", lambda: began.poll() is not None or self.states() & set(MIDDLE))
            if began.poll():
                raise judge_faults.DriverError(log.read_text(encoding="utf-8"))
            middle = self.run("-e", "action=status")
            self.looking("the end of the roll", lambda: began.poll() is not None)
        text = log.read_text(encoding="utf-8")
        if began.returncode:
            raise judge_faults.DriverError(text)
        return text, middle

    def promised(self, wanted: str, web: dict[str, str], train: dict[str, str]) -> list[str]:
        """What is not as it must be after a roll."""
        troubles = []
        if self.ranges() != {wanted}:
            troubles.append(f"the NICs name {self.ranges()}, expected {wanted}")
        if self.pods("web") != web:
            troubles.append(f"CPU pods are {self.pods('web')}, they were {web}")
        for node in self.items("/api/v1/nodes"):
            name, marks = node["metadata"]["name"], node["metadata"].get("annotations", {})
            if node["spec"].get("unschedulable"):
                troubles.append(f"{name} is cordoned")
            left = [word for word in ("roll-owner", "roll-lock") if "rdma-k8s/" + word in marks]
            if left or marks.get("rdma-k8s/roll-state") != "Done":
                troubles.append(f"{name} has the marks {marks}")
        kept = self.cluster.object("daemonset", PROVIDER, "-n", SYSTEM)["spec"]["updateStrategy"]["type"]
        if kept != "OnDelete":
            troubles.append(f"the update strategy is {kept}")
        self.offer()
        back = until("the jobs run again", lambda: self.both("train"))
        same = [node for node in self.nodes if back[node] == train[node]]
        if same:
            troubles.append(f"the jobs on {same} were not evicted")
        return troubles


def main() -> int:
    """The whole story; 0 when everything went as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("lab", "inventory", "work"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    work = pathlib.Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    driver = Driver(options.lab, pathlib.Path(options.inventory), work)
    web: dict[str, str] = {}
    train: dict[str, str] = {}
    with driver.case("work on both nodes", "a job with a claim and a CPU pod on each"):
        driver.offer()
        driver.apply(*objects(driver.nodes))
        train = until("the jobs run", lambda: driver.both("train"))
        web = until("the CPU pods run", lambda: driver.both("web"))
        driver.looking("the range is published", lambda: driver.ranges() == {OLD})
    driver.show("get", "pods", "-o", "wide")
    driver.show("get", "resourceclaims")
    if driver.failed:
        return 1
    with driver.case("plan", "two jobs would be hit, and no CPU pod") as troubles:
        planned = driver.run("-e", "action=plan", "-e", f"child_range={NEW}")
        driver.say(planned)
        for node in driver.nodes:
            if f"Job default/train-{node}" not in planned:
                troubles.append(f"the job on {node} is not in the plan")
        if "web-" in planned:
            troubles.append("a CPU pod is in the plan")
    with driver.case("apply", f"{OLD} to {NEW}, CPU pods stay, jobs come again") as troubles:
        text, middle = driver.under_way("-e", f"child_range={NEW}")
        driver.say(text)
        print("      status in the middle:")
        driver.say(middle)
        if not any(state in middle for state in MIDDLE):
            troubles.append(f"the status in the middle is {middle}")
        troubles.extend(driver.promised(NEW, web, train))
        train = driver.pods("train")
    driver.show("get", "nodes", "-L", "rdma-k8s/roll-state")
    if driver.failed:
        return 1
    with driver.case("rollback", f"{NEW} to {OLD}, CPU pods stay, jobs come again") as troubles:
        text, middle = driver.under_way("-e", "action=rollback")
        driver.say(text)
        troubles.extend(driver.promised(OLD, web, train))
    driver.show("get", "pods", "-o", "wide")
    driver.show("get", "configmaps", "-n", SYSTEM, "-l", "app.kubernetes.io/component=rdma-roll")
    return 1 if driver.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(str(error))
