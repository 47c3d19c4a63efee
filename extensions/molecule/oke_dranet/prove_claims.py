# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claim RDMA NICs of a cluster that the role oke_dranet brought up, with all that can go wrong; see expected.yml.

The lab's DRANET v1.4.0 makes no IPvlan children. So each claim here is refused, by DRANET or by our provider, and the
NIC stays on the host; which of both refuses, and with what words, is compared. The answer that the provider has for a
DRANET with children is asked for over its socket, for the same device and claim, and a running pod on each node gets
the children that it describes, by ``ipvlan_child``.

Prints one line for each case, and below it what ``kubectl`` shows. Ends with code 1 when anything differs.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent / "preflight"), str(HERE.parent / "fabric"), str(ROOT / "tests")]

import judge_faults  # noqa: E402 (its directory is no package)
import prove_faults  # noqa: E402
from lab import kubenode, lab  # noqa: E402
from lab.cluster import Cluster  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.image import Cache  # noqa: E402
from lab.progress import Progress  # noqa: E402

from rdma_k8s.core.net import parse_address, parse_prefix  # noqa: E402
from rdma_k8s.core.oke import pod_state  # noqa: E402

PATIENCE = 600.0
"""Seconds until something must have come true. A busy machine makes an emulated node slow; a quiet one needs few."""
POLL = 1.0
SYSTEM = "kube-system"
PROVIDER = "rdma-k8s-provider"
SOCKET = "/var/run/dranet/rdma-k8s.sock"
RANGE_OPTION = "--cloud-provider-options=oke.rdma-child-ipv4-cidr="
READY_CLASS, ANY_CLASS = "rdma-nic", "any-rdma-nic"
"""The class of the role, which takes only NICs that can be served, and one that takes every RDMA NIC."""
ASK = """
import http.client, json, socket, sys
for path, body in json.loads(sys.argv[2]):
    call = http.client.HTTPConnection("localhost", timeout=30)
    call.sock = socket.socket(socket.AF_UNIX)
    call.sock.settimeout(30)
    try:
        call.sock.connect(sys.argv[1])
        call.request("POST" if body else "GET", path, body or None)
        answer = call.getresponse()
        print(json.dumps([answer.status, answer.read().decode()]))
    except OSError as error:
        print(json.dumps([0, str(error)]))
"""
"""Asks a webhook on a unix socket: socket, and a list of paths and bodies. Status 0: nobody answers."""
SCAN = "ip link add lab-scan type veth peer name lab-scan2 && ip link del lab-scan"
"""An interface comes and goes, so DRANET looks at the devices now and not within a minute."""
SCAN_SECONDS = 8.0
"""Until DRANET is asked to look again; one scan takes an emulated node with little else to do two seconds."""
ALL_READY = {f"rdma{rail}": True for rail in range(4)}
KILL = """
pid=$({ctr} --namespace k8s.io tasks ls | awk '$1 == "{{container}}" {{{{print $2}}}}')
test -n "$pid" && kill -9 "$pid"
""".format(ctr=f"{kubenode.MOUNT}/bin/ctr")
RENAME = """
set -e
for rail in 0 1 2 3; do ip link set rdma$rail down; ip link set rdma$rail name ens2${rail}f0np0; done
for rail in 0 1 2 3; do ip link set ens2${rail}f0np0 up; done
ip -4 address flush dev ens23f0np0
"""
LATE_ADDRESS = "ip address add 10.224.109.20/12 dev ens23f0np0 noprefixroute"
RENAME_BACK = """
set -e
for rail in 0 1 2 3; do ip link set ens2${rail}f0np0 down; ip link set ens2${rail}f0np0 name rdma$rail; done
python3 - <<'END'
import sys
sys.path.insert(0, "/usr/local/lib/rdma-lab")
import node
found = node.document()
node.wait_for_rails(found)
node.lay_out(found, found["rails"])
END
"""
READ_POD = """
for what in "-d link show" "-4 addr show" "rule show" {tables}; do
  nsenter --net=/proc/{pid}/ns/net ip -j $what | tr -d '\\n'; echo
done
"""
READ_ARP = "nsenter --net=/proc/{pid}/ns/net sh -c 'cd /proc/sys/net/ipv4/conf; cat {names}'"


def until(what: str, done: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """What ``done`` returns as soon as it is true. A server that is too busy to answer is asked again."""
    end = time.monotonic() + patience
    while True:
        trouble = ""
        try:
            found = done()
        except LabError as error:
            found, trouble = None, f"; {error}"
        if found:
            return found
        if time.monotonic() > end:
            raise judge_faults.DriverError(f"{what}: not within {patience:.0f} s{trouble}")
        time.sleep(POLL)


# --- objects ----------------------------------------------------------------------------------------------------


def device_class() -> dict[str, Any]:
    """All RDMA NICs, ready or not: what a user has who does not take the class of the role."""
    expression = 'device.driver == "dra.net" && device.attributes["dra.net"].rdma'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": ANY_CLASS},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def pod(name: str, node: str, claim: str = "") -> dict[str, Any]:
    """A pod on a node that waits, with a claim or without."""
    container: dict[str, Any] = {
        "name": "main",
        "image": kubenode.IMAGE,
        "imagePullPolicy": "Never",
        "args": ["pause"],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [container],
    }
    if claim:
        spec["resourceClaims"] = [{"name": "nic", "resourceClaimName": claim}]
        container["resources"] = {"claims": [{"name": "nic"}]}
    metadata = {"name": name, "namespace": "default", "labels": {"prove": "claims"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def claim(
    name: str, nic: str, config: dict[str, Any] | None, class_name: str, by: str = "ifName"
) -> dict[str, Any]:
    """A claim of one NIC, by an attribute of DRANET; without a NIC, of all NICs of a node."""
    exactly: dict[str, Any] = {"deviceClassName": class_name}
    if nic:
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["dra.net"].{by} == "{nic}"'}}]
    else:
        exactly["allocationMode"] = "All"
    devices: dict[str, Any] = {"requests": [{"name": "nic", "exactly": exactly}]}
    if config is not None:
        devices["config"] = [{"opaque": {"driver": "dra.net", "parameters": config}}]
    metadata = {"name": name, "namespace": "default", "labels": {"prove": "claims"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": devices},
    }


def with_child(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration that a DRANET with children sends: the claim's, and the provider's type (F126)."""
    return {**config, "interface": {"type": "IPVLAN", **config.get("interface", {})}}


# --- the lab ----------------------------------------------------------------------------------------------------


class Driver(prove_faults.Driver):
    """Talks to the cluster, to its nodes and to the providers on them."""

    def __init__(self, lab_name: str, inventory: pathlib.Path, work: pathlib.Path):
        super().__init__(lab_name, inventory, work)
        progress = Progress()
        self.cluster = Cluster(lab_name, Cache(lab.default_cache(), progress), progress)
        self.machines = lab.Lab(lab_name, self.cluster.cache, progress)
        self.nodes = sorted(entry["metadata"]["name"] for entry in self.cluster.object("nodes")["items"])
        self.at_home = self.addresses()
        self.owed: set[str] = set()
        """Nodes whose provider must be replaced before the next look at all NICs."""

    def on(self, node: str, script: str) -> str:
        """The output of a shell script on a node, over one connection: a new one takes an emulated node seconds."""
        return self.machines.node_run(self.machines.check_node(node), script, PATIENCE)

    def show(self, *words: str) -> None:
        """Print what ``kubectl`` says."""
        print(f"      $ kubectl {shlex.join(words)}")
        for line in self.cluster.kubectl(*words).rstrip().splitlines():
            print(f"      {line}")

    def apply(self, *objects: dict[str, Any]) -> None:
        """Make objects."""

        def done() -> bool:
            self.cluster.apply(*objects)
            return True

        until("objects are made", done, 60.0)

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a list of the API, without a program for each look."""
        answer = self.cluster.get(path)
        if answer is None:
            raise LabError("api_silent", f"no answer to {path}")
        return json.loads(answer)["items"]

    def addresses(self) -> dict[str, dict[str, list[str]]]:
        """The IPv4 addresses of the RDMA NICs that are on the hosts, by node."""
        found = {}
        for node, text in self.on_all(dict.fromkeys(self.nodes, "ip -j -4 address show")).items():
            found[node] = {
                link["ifname"]: [f"{entry['local']}/{entry['prefixlen']}" for entry in link["addr_info"]]
                for link in json.loads(text)
                if link["ifname"].startswith("rdma")
            }
        return found

    def moved(self) -> list[str]:
        """A sentence for each NIC that is not on its host with its address."""
        now = self.addresses()
        return [
            f"{node}: {nic} has {now[node].get(nic, 'left the host')}, expected {held}"
            for node, nics in self.at_home.items()
            for nic, held in nics.items()
            if now[node].get(nic) != held
        ]

    def scan(self, *nodes: str) -> None:
        """Let DRANET look at the devices of nodes."""
        self.on_all(dict.fromkeys(nodes or self.nodes, SCAN))

    def devices(self, node: str) -> dict[str, dict[str, Any]]:
        """The attributes of a node's RDMA NICs in its slice, by PCI address; names without ``dra.net/``."""
        found = {}
        for entry in self.items("/apis/resource.k8s.io/v1/resourceslices"):
            if entry["spec"]["nodeName"] != node:
                continue
            for device in entry["spec"].get("devices") or []:
                values = {
                    name.removeprefix("dra.net/"): next(iter(value.values()))
                    for name, value in device["attributes"].items()
                }
                if values.get("rdma"):
                    found[values["pciAddress"]] = {**values, "name": device["name"]}
        return found

    def ready(self, node: str) -> dict[str, Any]:
        """By interface: what the provider says of its readiness, ``None`` when it says nothing."""
        return {values["ifName"]: values.get("rdma.k8s/ready") for values in self.devices(node).values()}

    def wait_ready(self, **wanted: dict[str, Any]) -> None:
        """Wait until the slices of nodes say so; DRANET is asked to look again, but not while it does."""
        next_scan = 0.0

        def done() -> bool:
            nonlocal next_scan
            others = [node for node, values in wanted.items() if self.ready(node) != values]
            if others and time.monotonic() > next_scan:
                self.scan(*others)
                next_scan = time.monotonic() + SCAN_SECONDS
            return not others

        try:
            until(f"readiness {wanted}", done)
        except judge_faults.DriverError as error:
            found = {node: self.ready(node) for node in wanted}
            raise judge_faults.DriverError(f"{error}; it is {found}") from error

    def ask(self, node: str, *calls: tuple[str, dict[str, Any] | None]) -> list[tuple[int, Any]]:
        """Status and answer of the provider on a node to each path and body; a refusal is its text."""
        documents = [(path, json.dumps(body) if body is not None else "") for path, body in calls]
        words = ["python3", "-c", ASK, SOCKET, json.dumps(documents)]
        said = [json.loads(line) for line in self.on(node, shlex.join(words)).splitlines()]
        return [(status, json.loads(text) if status == 200 else text) for status, text in said]

    def resolve(self, node: str, *wanted: tuple[str, str, dict[str, Any]]) -> list[tuple[int, Any]]:
        """What the provider answers to a DRANET with children: for each NIC, UID and configuration of a claim."""
        devices = {values["ifName"]: values for values in self.devices(node).values()}
        calls = []
        for nic, uid, config in wanted:
            device = devices[nic]
            identity = {
                "name": device["name"],
                "pci_address": device["pciAddress"],
                "mac_address": device["mac"],
            }
            body = {"device": identity, "claim_uid": uid, "config": with_child(config)}
            calls.append(("/GetProfileConfig", body))
        return self.ask(node, *calls)

    def events(self, name: str) -> list[str]:
        """Reason and message of the events of the pod and the claim that have this name now."""
        places = (
            "/api/v1/namespaces/default/pods",
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
        )
        held = [entry["metadata"] for place in places for entry in self.items(place)]
        uids = [metadata["uid"] for metadata in held if metadata["name"] == name]
        return [
            " ".join(f"{event['reason']}: {event['message']}".split())
            for event in self.items("/api/v1/namespaces/default/events")
            if event["involvedObject"].get("uid") in uids
        ]

    def wait_told(self, name: str, words: str) -> str:
        """Wait until an event of a pod has these words; what it says."""

        def found() -> str:
            return next((line for line in self.events(name) if words in line), "")

        try:
            return until(f"{name}: an event with {words!r}", found)
        except judge_faults.DriverError as error:
            raise judge_faults.DriverError(f"{error}; its events: {self.events(name)}") from error

    def uid(self, name: str) -> str:
        """The UID of a claim."""
        return self.cluster.object("resourceclaim", name)["metadata"]["uid"]

    def clean(self) -> None:
        """Remove pods and claims, and wait until they are gone."""
        words = ("delete", "pods,resourceclaims", "-l", "prove=claims", "--wait=true")
        self.cluster.kubectl(*words, timeout=PATIENCE)

    def took(self, fault: dict[str, Any]) -> bool:
        """Play a fault that the kernel refuses while it is busy; whether it took it."""
        try:
            self.change([], [fault])
        except judge_faults.DriverError as error:
            if "busy" not in str(error):
                raise
            return False
        return True

    def provider_pod(self, node: str) -> dict[str, Any]:
        """The provider's pod on a node that is not about to go; empty when there is none."""
        words = f"labelSelector=app.kubernetes.io/name={PROVIDER}&fieldSelector=spec.nodeName={node}"
        pods = self.items(f"/api/v1/namespaces/{SYSTEM}/pods?{words}")
        return next((entry for entry in pods if "deletionTimestamp" not in entry["metadata"]), {})

    def answers(self, node: str) -> bool:
        """Whether the provider on a node answers: its start was probed, and DRANET's socket leads to it."""
        return started(self.provider_pod(node)) and self.ask(node, ("/health", None))[0][0] == 200

    def replace_provider(self, ranges: dict[str, str], done: Callable[[dict[str, Any]], bool]) -> None:
        """Replace the provider on nodes at once, on each with a child range of its own, and wait for the new pods.

        :param ranges: by node.
        :param done: tells of a new pod whether it is as it must be.
        """
        before = {}
        for node, text in ranges.items():
            self.set_range(text)
            before[node] = self.provider_pod(node)["metadata"]
            self.cluster.kubectl("delete", "pod", "-n", SYSTEM, before[node]["name"], "--wait=false")
            # The next one would change the pod of this node too if it were not made yet.
            until(f"{node}: a new pod of the provider", lambda node=node: self.new_pod(node, before[node]))
        for node in ranges:
            until(f"{node}: the provider as wanted", lambda node=node: done(self.new_pod(node, before[node])))
            self.owed.discard(node)

    def new_pod(self, node: str, before: dict[str, Any]) -> dict[str, Any]:
        """The provider's pod on a node unless it is still the one with these metadata."""
        found = self.provider_pod(node)
        return found if found and found["metadata"]["uid"] != before["uid"] else {}

    def kill_provider(self, *nodes: str) -> dict[str, dict[str, Any]]:
        """Kill the provider's process on nodes, at once; the pods as they were. The kubelet starts it again."""
        before = {node: self.provider_pod(node) for node in nodes}
        self.on_all({node: KILL.format(container=container_of(found)) for node, found in before.items()})
        return before

    def set_range(self, text: str) -> None:
        """Change the option of the DaemonSet; pods keep theirs until they are replaced (OnDelete)."""
        spec = self.cluster.object("daemonset", PROVIDER, "-n", SYSTEM)["spec"]["template"]["spec"]
        containers = spec["containers"]
        arguments = containers[0]["args"]
        place = next(number for number, word in enumerate(arguments) if word.startswith(RANGE_OPTION))
        change = [
            {
                "op": "replace",
                "path": f"/spec/template/spec/containers/0/args/{place}",
                "value": f"{RANGE_OPTION}{text}",
            }
        ]
        self.cluster.kubectl(
            "patch", "daemonset", PROVIDER, "-n", SYSTEM, "--type=json", "-p", json.dumps(change)
        )

    @contextlib.contextmanager
    def case(self, name: str, told: str) -> Iterator[list[str]]:
        """A case that takes a while: its line with the time, and what was wrong."""
        begin = time.monotonic()
        troubles: list[str] = []
        try:
            yield troubles
        except (judge_faults.DriverError, LabError) as error:
            troubles.append(str(error))
        self.line(name, told, troubles, time.monotonic() - begin)


# --- the cases --------------------------------------------------------------------------------------------------


def bring_up(driver: Driver, expected: dict[str, Any]) -> None:
    """What the role left: pods, devices, their attributes."""
    with driver.case("clean bring-up", "both pods on each node, 4 NICs each, all ready") as troubles:
        driver.clean()
        for node in driver.nodes:
            until(f"{node}: the provider runs", lambda node=node: driver.answers(node))
        driver.wait_ready(**dict.fromkeys(driver.nodes, ALL_READY))
        for node in driver.nodes:
            for device in driver.devices(node).values():
                for name, value in expected["attributes"].items():
                    if device.get(name) != value:
                        troubles.append(
                            f"{node} {device['ifName']}: {name} is {device.get(name)!r}, not {value!r}"
                        )
        troubles.extend(driver.moved())
    driver.show("get", "pods", "-n", SYSTEM, "-o", "wide")
    columns = "NODE:.spec.nodeName,DEVICES:.spec.devices[*].name"
    driver.show("get", "resourceslices", "-o", f"custom-columns={columns}")
    first = next(iter(driver.devices(driver.nodes[0]).values()))
    shown = ("ifName", "ipv4", "rdma", "rdma.k8s/ready", *expected["attributes"])
    print(f"      {driver.nodes[0]} {first['name']}: " + ", ".join(f"{k}={first.get(k)}" for k in shown))
    driver.apply(device_class())


def refusals(driver: Driver, expected: dict[str, Any]) -> None:
    """Claims that are refused while all is well, at the same time on different NICs."""
    entries = expected["refusals"]
    with driver.case("claims that are refused", f"{len(entries)} at once") as troubles:
        driver.apply(
            *(claim(e["name"], e["nic"], e.get("config"), READY_CLASS) for e in entries),
            *(pod(e["name"], e["node"], e["name"]) for e in entries),
        )
        for entry in entries:
            said = driver.wait_told(entry["name"], entry["event"])
            driver.line(f"  {entry['name']}", f"{entry['node']} {entry['nic']}: {said[:300]}", [])
        for node in driver.nodes:
            asked = [entry for entry in entries if entry["node"] == node and "answer" in entry]
            wanted = [
                (entry["nic"], driver.uid(entry["name"]), entry.get("config") or {"profile": "oke-rdma"})
                for entry in asked
            ]
            for entry, (status, text) in zip(asked, driver.resolve(node, *wanted), strict=True):
                wrong = [] if entry["answer"] in str(text) else [f"it answers {text}"]
                told = f"{entry['name']}, asked by itself: HTTP {status}: {str(text)[:300]}"
                driver.line(f"    the provider of {node}", told, wrong)
        troubles.extend(driver.moved())
    driver.show("get", "pods", "-o", "wide")
    driver.show("get", "resourceclaims")
    driver.clean()


def exclusive_and_no_address(driver: Driver, expected: dict[str, Any]) -> None:
    """node1 in exclusive mode; on node2 a NIC with its name and no address, until it gets it."""
    config = {"profile": "oke-rdma"}
    faults = [{"node": "node1", "play": "exclusive"}, {"node": "node2", "play": "address-missing 2"}]
    until("node1: the kernel has forgotten the namespaces of pods", lambda: driver.took(faults[0]))
    driver.change([], faults[1:])
    with driver.case("exclusive RDMA namespaces", "no NIC is ready; the child is refused") as troubles:
        driver.wait_ready(node1=dict.fromkeys(ALL_READY, False), node2={**ALL_READY, "rdma2": False})
        driver.apply(
            claim("exclusive", "rdma0", config, ANY_CLASS), pod("exclusive", "node1", "exclusive"),
            claim("early", "rdma2", config, ANY_CLASS), pod("early", "node2", "early"),
            claim("waits", "rdma2", config, READY_CLASS), pod("waits", "node2", "waits"),
        )  # fmt: skip
        output, code = driver.play(str(HERE / "files" / "child.yml"), "--limit", "node1")
        if code == 0 or expected["exclusive"]["module"] not in output:
            troubles.append(f"ipvlan_child: {output}")
        said = driver.wait_told("exclusive", expected["exclusive"]["event"])
        driver.line("  a claim past the class", said[:300], [])
        modes = driver.on("node1", "rdma system show; rdma link show")
        if "mlx5_0/1" not in modes:
            troubles.append(f"the RDMA device has left the host: {modes}")
    with driver.case("rdmaN without its address", "not ready, the claim fails, then goes on") as troubles:
        said = driver.wait_told("early", expected["no_address"]["event"])
        driver.line("  a claim past the class", said[:300], [])
        said = driver.wait_told("waits", expected["not_allocated"])
        driver.line("  a claim by the class", said[:200], [])
        driver.cluster.kubectl("delete", "pod", "waits")
        driver.change(faults, [])
        driver.wait_ready(node1=ALL_READY, node2=ALL_READY)
        ((status, answer),) = driver.resolve("node2", ("rdma2", driver.uid("early"), config))
        if status != 200 or answer["interface"]["addresses"] != [expected["no_address"]["child"]]:
            troubles.append(f"after the address is there the provider answers {status}: {answer}")
        said = driver.wait_told("early", expected["without_ipvlan"].format(nic="rdma2"))
        driver.line("  the same claim, with the address", said[:300], [])
        driver.line("    the provider, asked by itself", f"HTTP {status}: {json.dumps(answer)}", [])
        troubles.extend(driver.moved())
    driver.clean()


def restarts(driver: Driver, expected: dict[str, Any]) -> None:
    """node1's provider is killed while pods are being prepared; node2's starts again without the metadata service,
    with names of the operating system, and with a NIC that has no address yet.
    """
    config = {"profile": "oke-rdma"}
    silent = [{"node": "node2", "play": "imds-down"}]
    names = {f"ens2{rail}f0np0": rail < 3 for rail in range(4)}
    driver.change([], silent)
    driver.on("node2", RENAME)
    driver.owed.add("node2")
    with driver.case("provider killed in the middle", "started again, the claims go on") as troubles:
        for rail in range(4):
            name = f"during{rail}"
            driver.apply(claim(name, f"rdma{rail}", config, READY_CLASS), pod(name, "node1", name))
        before = driver.kill_provider("node1", "node2")
        for node, old in before.items():
            until(
                f"{node}: another process of the provider",
                lambda node=node, old=old: again(driver, node, old),
            )
        for rail in range(4):
            driver.wait_told(f"during{rail}", expected["without_ipvlan"].format(nic=f"rdma{rail}"))
        driver.wait_ready(node1=ALL_READY)
        if driver.provider_pod("node1")["metadata"]["uid"] != before["node1"]["metadata"]["uid"]:
            troubles.append("it is another pod, not the same one with another process")
        troubles.extend(line for line in driver.moved() if line.startswith("node1"))
    driver.show("get", "pods", "-n", SYSTEM, "-l", f"app.kubernetes.io/name={PROVIDER}", "-o", "wide")
    with driver.case("no metadata when it starts", "nothing is ready, then what can be") as troubles:
        driver.wait_ready(node2=dict.fromkeys(names, False))
        devices = driver.devices("node2").values()
        left = sorted({name for device in devices for name in device if name.startswith("oke.dra.net")})
        if left:
            troubles.append(f"attributes without metadata: {left}")
        driver.change(silent, [])
        driver.wait_ready(node2=names)
        shape = {device.get("oke.dra.net/shape") for device in driver.devices("node2").values()}
        if shape != {expected["attributes"]["oke.dra.net/shape"]}:
            troubles.append(f"the attribute of the shape is {shape}")
    with driver.case(
        "NIC of another name, no address", "never allocated, until the address is there"
    ) as troubles:
        driver.apply(claim("unnamed", "ens23f0np0", config, READY_CLASS), pod("unnamed", "node2", "unnamed"))
        said = driver.wait_told("unnamed", expected["not_allocated"])
        driver.line("  a claim by the class", said[:200], [])
        driver.show("get", "pods", "unnamed", "-o", "wide")
        found = driver.cluster.object("resourceclaim", "unnamed").get("status", {})
        if found.get("allocation"):
            troubles.append(f"the claim was allocated: {found}")
        driver.on("node2", LATE_ADDRESS)
        driver.wait_ready(node2=dict.fromkeys(names, True))
        said = driver.wait_told("unnamed", expected["without_ipvlan"].format(nic="ens23f0np0"))
        driver.line("  the same claim, with the address", said[:300], [])
    driver.clean()
    driver.on("node2", RENAME_BACK)


def ranges(driver: Driver, expected: dict[str, Any]) -> None:
    """A range that is too small on node1, one over the service address on node2, then one that is no range."""
    told = expected["ranges"]
    wrong = {told[kind]["node"]: kind for kind in ("small", "service")}
    config = {"profile": "oke-rdma"}
    with driver.case("wrong ranges", "too small on node1, over the service address on node2") as troubles:
        driver.replace_provider({node: told[kind]["range"] for node, kind in wrong.items()}, started)
        driver.wait_ready(
            **{node: {nic: nic in told[kind]["ready"] for nic in ALL_READY} for node, kind in wrong.items()}
        )
        for node, kind in wrong.items():
            name = f"range-{kind}"
            driver.apply(claim(name, told[kind]["nic"], config, ANY_CLASS), pod(name, node, name))
        for node, kind in wrong.items():
            said = driver.wait_told(f"range-{kind}", told[kind]["event"])
            driver.line(f"  {told[kind]['range']}", f"{node}: {said[:400]}", [])
        troubles.extend(driver.moved())
    with driver.case("a range that is none", "the provider ends at its start and says why") as troubles:
        driver.replace_provider(
            {"node2": told["right"], "node1": told["malformed"]["range"]},
            lambda found: started(found) or restarts_of(found) > 0,
        )
        driver.apply(claim("away", "rdma3", config, ANY_CLASS), pod("away", "node1", "away"))
        name = driver.provider_pod("node1")["metadata"]["name"]
        log = driver.cluster.kubectl("logs", "-n", SYSTEM, name, "--previous")
        if told["malformed"]["log"] not in log:
            troubles.append(f"its log: {log}")
        driver.line("  its log", log.strip()[:300], [])
    with driver.case(
        "the provider is away", "no attribute, claims fail, the NIC stays; then it is back"
    ) as troubles:
        said = driver.wait_told("away", expected["away"])
        driver.line("  a claim past the class", said[:300], [])
        driver.wait_ready(node1=dict.fromkeys(ALL_READY))
        troubles.extend(driver.moved())
        driver.replace_provider({"node1": told["right"]}, started)
        driver.wait_ready(**dict.fromkeys(driver.nodes, ALL_READY))
        said = driver.wait_told("away", expected["without_ipvlan"].format(nic="rdma3"))
        driver.line("  the same claim, when it is back", said[:300], [])
        troubles.extend(driver.moved())
    driver.clean()


def started(found: dict[str, Any]) -> bool:
    """Whether the container of a pod has passed the probe of its start."""
    status = found.get("status", {}).get("containerStatuses") or [{}]
    return bool(status[0].get("started"))


def again(driver: Driver, node: str, before: dict[str, Any]) -> bool:
    """Whether the provider on a node was started once more and answers."""
    found = driver.provider_pod(node)
    return started(found) and restarts_of(found) > restarts_of(before)


def restarts_of(found: dict[str, Any]) -> int:
    """How often the container of a pod was started again."""
    return (found["status"].get("containerStatuses") or [{}])[0].get("restartCount", 0)


def children(driver: Driver, expected: dict[str, Any]) -> None:
    """The provider's answers as children in running pods: as answered, as F147 says, and they reach each other."""
    answers: dict[str, dict[str, Any]] = {}
    pids: dict[str, int] = {}
    with driver.case("what the provider has for the NICs", "4 answers on each node, for allocated claims"):
        for node in driver.nodes:
            driver.apply(
                pod(f"run-{node}", node),
                claim(f"all-{node}", "", {"profile": "oke-rdma"}, READY_CLASS),
                pod(f"all-{node}", node, f"all-{node}"),
            )
        for node in driver.nodes:
            driver.wait_told(f"all-{node}", expected["without_ipvlan"].format(nic="rdma0"))
            uid = driver.uid(f"all-{node}")
            nics = [f"rdma{rail}" for rail in range(4)]
            said = driver.resolve(node, *((nic, uid, {"profile": "oke-rdma"}) for nic in nics))
            for nic, (status, answer) in zip(nics, said, strict=True):
                if status != 200:
                    raise judge_faults.DriverError(f"{node} {nic}: HTTP {status}: {answer}")
            answers[node] = {nic: answer for nic, (_status, answer) in zip(nics, said, strict=True)}
            print(f"      {node} rdma0: {json.dumps(answers[node]['rdma0'])}")
        driver.cluster.kubectl("delete", "pod", *(f"all-{node}" for node in driver.nodes), timeout=PATIENCE)
        for node in driver.nodes:
            until(f"run-{node} runs", lambda node=node: phase(driver, f"run-{node}") == "Running")
            pids[node] = pid_of(driver, node, driver.cluster.object("pod", f"run-{node}"))
    if len(pids) < len(driver.nodes):
        return

    with driver.case(
        "children in a pod of each node", "as answered, as the rules of F147 say, own GID"
    ) as troubles:
        (driver.work / "pods.json").write_text(json.dumps({"pods": pids}), encoding="utf-8")
        result = driver.work / "fabric.json"
        output, code = driver.play(
            str(HERE / "files" / "children.yml"), "-e", f"@{driver.work}/pods.json", "-e", f"result={result}"
        )
        if code:
            raise judge_faults.DriverError(output)
        measured = json.loads(result.read_text(encoding="utf-8"))
        for node in driver.nodes:
            troubles.extend(pod_troubles(driver, node, pids[node], answers[node], measured["children"][node]))
        troubles.extend(driver.moved())
    for node in driver.nodes:
        shown = json.loads(driver.cluster.kubectl("exec", f"run-{node}", "--", "/labpod", "show"))
        print(f"      $ kubectl exec run-{node} -- /labpod show")
        for link in shown["links"]:
            print(f"      {link['name']}: mtu {link['mtu']}, {', '.join(link['addresses'])}")

    with driver.case(
        "two pods on two nodes", "ping, full packets and RDMA ping-pong on 4 rails both ways"
    ) as troubles:
        probes = [(node, probe) for node in driver.nodes for probe in measured["probes"][node]]
        for node, probe in probes:
            wrong = {k: v for k, v in probe["verdicts"].items() if v["status"] != "pass"}
            told = (
                f"{probe['address']} -> {probe['peer_address']}: {probe['received']} of {probe['sent']} echoes, "
                f"{probe['full_received']} of {probe['full_sent']} of full size, RDMA {probe['rdma']}, "
                f"{probe['rtt_us']} us, {probe['rdma_us']} us a round"
            )
            driver.line(f"  run-{node} {probe['nic']}", told, [f"{wrong}"] if wrong else [])
        if len(probes) != 8:
            troubles.append(f"{len(probes)} pairs were probed, expected 8")
    driver.clean()


def phase(driver: Driver, name: str) -> str:
    """The phase of a pod."""
    return driver.cluster.object("pod", name)["status"]["phase"]


def pid_of(driver: Driver, node: str, found: dict[str, Any]) -> int:
    """The first process of a pod's container, as its node counts."""
    name, container = found["metadata"]["name"], container_of(found)
    listed = driver.on(node, f"{kubenode.MOUNT}/bin/ctr --namespace k8s.io tasks ls")
    match = re.search(rf"^{container}\s+([0-9]+)", listed, re.M)
    if not match:
        raise judge_faults.DriverError(f"{node}: no process of {name} in {listed}")
    return int(match[1])


def container_of(found: dict[str, Any]) -> str:
    """The name of a pod's container in the runtime."""
    return found["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")


def pod_troubles(
    driver: Driver, node: str, pid: int, answers: dict[str, Any], rows: list[dict[str, Any]]
) -> list[str]:
    """How a pod differs from the provider's answers, read with ``ip`` in its namespace, and from sysfs."""
    troubles = []
    nics = sorted(answers)
    tables = " ".join(f'"route show table {answers[nic]["routes"][0]["table"]}"' for nic in nics)
    lines = driver.on(node, READ_POD.format(pid=pid, tables=tables)).splitlines()
    links, addresses, rules, *routes = [json.loads(line) if line else [] for line in lines]
    names = " ".join(f"{nic}/arp_ignore {nic}/arp_announce" for nic in nics)
    arp = [int(word) for word in driver.on(node, READ_ARP.format(pid=pid, names=names)).split()]
    gids = driver.on(node, prove_faults.GIDS).splitlines()
    for number, nic in enumerate(nics):
        answer, row = answers[nic], next(entry for entry in rows if entry["nic"] == nic)
        link = next((entry for entry in links if entry["ifname"] == nic), {"linkinfo": {}})
        address = answer["interface"]["addresses"][0]
        output = pod_state.Output(addresses, routes[number], rules)
        destination = parse_prefix(answer["routes"][0]["destination"])
        child = parse_address(address.partition("/")[0])
        index = int(nic.removeprefix("rdma"))
        troubles += [
            f"{node}: {entry.message} [{entry.kind}]"
            for entry in pod_state.problems(nic, index, child, destination, output)
        ]
        own = hex_gid(child)
        held = [line.split() for line in gids if own in line]
        is_ = {
            "kind": link["linkinfo"].get("info_kind"),
            "mode": link["linkinfo"].get("info_data", {}).get("mode"),
            "address": row["address"],
            "arp": arp[2 * number : 2 * number + 2],
            "gid": [
                (line[0].split("/")[0], int(line[0].rpartition("/")[2]), " ".join(line[2:])) for line in held
            ],
        }
        should = {
            "kind": "ipvlan",
            "mode": "l2",
            "address": address,
            "arp": [answer["interface"]["arpIgnore"], answer["interface"]["arpAnnounce"]],
            "gid": [(f"mlx5_{index}", row["gid"], "RoCE v2")],
        }
        wrong = [f"{node} {nic}: {k} is {is_[k]}, expected {v}" for k, v in should.items() if is_[k] != v]
        told = (
            f"{address}, table {answer['routes'][0]['table']}, rule {answer['rules'][0]['priority']} from "
            f"{answer['rules'][0]['source']}, arp {is_['arp']}, GID {row['gid']} of mlx5_{index}"
        )
        driver.line(f"  run-{node} {nic}", told, wrong)
    return troubles


def hex_gid(address: Any) -> str:
    """The GID of an IPv4 address as sysfs prints it (F15)."""
    value = f"{address.value:08x}"
    return f"0000:0000:0000:0000:0000:ffff:{value[:4]}:{value[4:]}"


# The kernel takes the exclusive mode only while there is no other network namespace, so that comes before pods run.
CASES = {
    function.__name__: function
    for function in (refusals, exclusive_and_no_address, children, restarts, ranges)
}


def main() -> int:
    """Read the command line, run, count."""
    parser = judge_faults.arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        action="append",
        choices=list(CASES),
        help="just this case (repeatable)",
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    expected = yaml.safe_load((HERE / "files" / "expected.yml").read_text(encoding="utf-8"))
    driver = Driver(options.lab, options.inventory.absolute(), options.work.absolute())

    def act() -> None:
        bring_up(driver, expected)
        spent = {}
        for name, case in CASES.items():
            if name in (options.only or CASES):
                begin = time.monotonic()
                case(driver, expected)
                spent[name] = time.monotonic() - begin
        if driver.owed:
            driver.replace_provider(dict.fromkeys(driver.owed, expected["ranges"]["right"]), started)
        driver.cluster.kubectl("delete", "deviceclass", ANY_CLASS)
        print("      " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in spent.items()))

    return judge_faults.concluded(driver, act, LabError)


if __name__ == "__main__":
    sys.exit(main())
