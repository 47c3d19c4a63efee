# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end-to-end test of the lab: boots two nodes and checks what the lab promises, one printed line per assertion.

Sections "rdma system" and "GID table" assert what a stock kernel does; lines marked ``lab rxe`` need the edited driver.
"""

from __future__ import annotations

import json
import time
import typing

from . import faults, lab, plan
from .errors import LabError
from .image import Cache
from .progress import Progress

PATIENCE = 8.0
"""Seconds for which a change of the kernel's tables is awaited; they change within milliseconds, seldom later."""
MODE = "cat /sys/module/ib_core/parameters/netns_mode"
POD = "pod"


class Report:
    """Prints each assertion as it is made and counts them."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def check(self, what: str, good: bool, found: object = "") -> bool:
        """Print one line; with ``good`` false also what was found."""
        if good:
            self.passed += 1
            print(f"pass  {what}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {what}: {found}", flush=True)
        return good

    def equal(self, what: str, found: object, expected: object) -> bool:
        """Check that two values are the same."""
        return self.check(what, found == expected, f"expected {expected!r}, found {found!r}")

    def title(self, text: str) -> None:
        """Print the head of a section."""
        print(f"--- {text}", flush=True)


def gid_of(address: str) -> str:
    """The GID of an IPv4 address, written as sysfs writes it."""
    numbers = [int(part) for part in address.split(".")]
    return "0000:" * 5 + "ffff:{:02x}{:02x}:{:02x}{:02x}".format(*numbers)


class Selftest:
    """All the checks, on one running lab of two nodes with four rails."""

    def __init__(self, this: lab.Lab, report: Report):
        self.lab = this
        self.report = report
        self.spec = this.state().spec
        self.children = [
            str(plan.rail_address(plan.CHILD_RANGE, 0, plan.vnic_address(node))) for node in (1, 2)
        ]
        self.parents = [
            str(plan.rail_address(plan.OCA_NETWORK, 0, plan.vnic_address(node))) for node in (1, 2)
        ]

    # --- helpers ------------------------------------------------------------------------------------------------

    def run(self, script: str, node: int = 1, timeout: float = 60.0) -> tuple[int, str]:
        """Code and trimmed output, standard error behind it, of a script on a node."""
        done = self.lab.node_try(node, script, timeout)
        return done.returncode, (done.stdout + done.stderr).strip()

    def output(self, script: str, node: int = 1) -> str:
        """Trimmed output of a script that must succeed."""
        return self.lab.node_run(node, script).strip()

    def eventually(self, get: typing.Callable[[], typing.Any], expected: object) -> typing.Any:
        """The value of ``get()`` as soon as it is the expected one, else the last one after a while."""
        end = time.monotonic() + PATIENCE
        while (found := get()) != expected and time.monotonic() < end:
            time.sleep(0.1)
        return found

    def fingerprint(self, node: int) -> dict:
        """All that a fault may change on a node."""
        return json.loads(self.lab.node_program(node, "fingerprint"))

    def gids(self, node: int = 1, device: str = "mlx5_0") -> list[str]:
        """The GID entries of a device, as 'GID type netdev'."""
        return self.fingerprint(node)["rdma"][device]["gids"]

    def make_child(self, node: int, namespace: str = POD, address: str = "") -> None:
        """An IPvlan child of rdma0 in a new namespace, as the driver makes it: temporary name, then the parent's."""
        address = address or self.children[node - 1]
        disable = "net.ipv6.conf.default.disable_ipv6=1"
        self.output(
            f"set -e; ip netns add {namespace}; ip netns exec {namespace} sysctl -qw {disable};"
            f"ip link add link rdma0 name tmp0 netns {namespace} type ipvlan mode l2;"
            f"ip -n {namespace} link set tmp0 name rdma0; ip -n {namespace} link set rdma0 up;"
            f"ip -n {namespace} addr add {address}/12 dev rdma0 noprefixroute;"
            f"ip -n {namespace} route add {plan.CHILD_RANGE} dev rdma0 scope link src {address} table 100;"
            f"ip -n {namespace} rule add priority 32000 from {address} table 100",
            node,
        )

    def has_gid(self, address: str, node: int = 1) -> bool:
        """True when the table of mlx5_0 holds a RoCE v2 entry for an address."""
        return any(entry.startswith(f"{gid_of(address)} RoCE v2") for entry in self.gids(node))

    # --- sections -----------------------------------------------------------------------------------------------

    def layout(self) -> None:
        """What a node looks like."""
        self.report.title("layout of the nodes")
        for node in (1, 2):
            print_ = self.fingerprint(node)
            links, name = print_["links"], f"node{node}"
            for rail in range(self.spec.rails):
                address = str(plan.rail_address(plan.OCA_NETWORK, rail, plan.vnic_address(node)))
                found = links.get(f"rdma{rail}", {})
                self.report.equal(
                    f"{name}: rdma{rail} has the OCA address", found.get("addresses"), [f"{address}/12"]
                )
                self.report.equal(f"{name}: rdma{rail} has MTU {plan.MTU}", found.get("mtu"), plan.MTU)
                route = f"{plan.OCA_NETWORK} dev rdma{rail} table {10 + rail} scope link src {address}"
                self.report.check(
                    f"{name}: rdma{rail} has its routing table", route in print_["routes"], print_["routes"]
                )
                rule = f"{1000 + rail}:\tfrom {address} lookup {10 + rail}"
                self.report.check(
                    f"{name}: rdma{rail} has its rule", rule in print_["rules"], print_["rules"]
                )
            vnic = f"{plan.vnic_address(node)}/{plan.VNIC_SUBNET.prefixlen}"
            self.report.equal(
                f"{name}: eth0 has the address of the primary VNIC", links["eth0"]["addresses"], [vnic]
            )
            self.report.equal(
                f"{name}: ARP and path filter settings", print_["sysctl"]["rdma0"], ["1", "2", "0", "2"]
            )
            devices = {f"mlx5_{rail}": "4: ACTIVE" for rail in range(self.spec.rails)}
            states = {device: entry["state"] for device, entry in print_["rdma"].items()}
            self.report.equal(f"{name}: every RDMA port is active", states, devices)
            files = {path.rsplit("/", 1)[1]: text.strip() for path, text in plan.oca_files().items()}
            expected = {"network": files["rdma_network.json"], "features": files["rdma_features_enable.json"]}
            self.report.equal(f"{name}: the OCA files", print_["oca"], expected)
            self.report.equal(
                f"{name}: the clock is right",
                abs(int(self.output("date +%s", node)) - time.time()) < 60,
                True,
            )
        mtu = self.output("ibv_devinfo -d mlx5_0 | grep active_mtu")
        self.report.check("the RDMA port has MTU 4096", "4096 (5)" in mtu, mtu)
        for rail in range(self.spec.rails):
            one, two = (plan.rail_address(plan.OCA_NETWORK, rail, plan.vnic_address(node)) for node in (1, 2))
            code, said = self.run(f"ping -c 1 -W 5 -M do -s 4172 -I {one} {two}")
            self.report.check(f"rail {rail} carries a whole frame to the other node", code == 0, said)
        modules = self.output("cut -d' ' -f1 /proc/modules").split()
        wanted = {"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "mlx5_core", "mlx5_ib"}
        self.report.equal("the RDMA modules are loaded", wanted - set(modules), set())
        self.report.check(
            "the node has Python and no library of ours", self.run("python3 -c 'import pyroute2'")[0] == 1
        )

    def metadata(self) -> None:
        """The metadata service."""
        self.report.title("metadata service")
        script = (
            "import json,sys,urllib.request as r\n"
            "def get(path,headers):\n"
            "    try: return json.load(r.urlopen(r.Request('http://169.254.169.254'+path,headers=headers),timeout=5))\n"
            "    except r.HTTPError as e: return e.code\n"
            "key={'Authorization':'Bearer Oracle'}\n"
            "print(json.dumps([get('/opc/v2/'+p+'/',key) for p in ('host','instance','vnics')]"
            "+[get('/opc/v2/host/',{}), get('/opc/v2/no/',key)]))"
        )
        for node in (1, 2):
            answers = json.loads(self.output(f'python3 -c "{script}"', node))
            documents = plan.imds_documents(self.spec, node)
            for name, found, key in zip(
                ("host", "instance", "vnics"), answers, ("host", "instance", "vnics"), strict=False
            ):
                self.report.equal(f"node{node}: /opc/v2/{name}/", found, documents[key])
            self.report.equal(f"node{node}: without the header it refuses", answers[3], 403)
            self.report.equal(f"node{node}: an unknown path is not found", answers[4], 404)

    def netns_mode(self) -> None:
        """The RDMA namespace mode of the kernel."""
        self.report.title("rdma system and the namespace mode (stock kernel)")
        report, run = self.report, self.run
        report.equal(
            "the mode is shared at boot", run("rdma system show"), (0, "netns shared copy-on-fork on")
        )
        report.equal("the parameter says Y", run(MODE), (0, "Y"))
        code, said = run("echo N > /sys/module/ib_core/parameters/netns_mode")
        report.check(
            "the parameter is read-only, even for root", code != 0 and "Permission denied" in said, said
        )
        report.equal("it can be set to exclusive", run("rdma system set netns exclusive"), (0, ""))
        report.equal("the parameter follows: N", run(MODE), (0, "N"))
        report.equal("and back to shared", run(f"rdma system set netns shared; {MODE}"), (0, "Y"))
        code, said = run("setpriv --reuid=65534 --clear-groups rdma system set netns exclusive")
        report.check("an ordinary user may not", code == 1 and "Operation not permitted" in said, said)
        busy = (1, "error: Device or resource busy")
        report.equal(
            "with a namespace it is busy", run("ip netns add plain; rdma system set netns exclusive"), busy
        )
        report.equal("the mode stays", run(MODE), (0, "Y"))
        report.equal("setting the mode in force is no error", run("rdma system set netns shared"), (0, ""))
        run("ip netns delete plain")
        free = self.eventually(
            lambda: run("rdma system set netns exclusive && rdma system set netns shared"), (0, "")
        )
        report.equal("without the namespace it works again", free, (0, ""))
        run("systemd-run -q --unit=hiding -p PrivateNetwork=yes sleep infinity")
        report.equal("a namespace without a name: ip netns list is empty", run("ip netns list"), (0, ""))
        report.equal("and still it is busy", run("rdma system set netns exclusive"), busy)
        run("systemctl stop hiding")
        free = self.eventually(
            lambda: run("rdma system set netns exclusive && rdma system set netns shared"), (0, "")
        )
        report.equal("when it is gone it works again", free, (0, ""))

    def gid_table(self) -> None:
        """The life of the GID of an IPvlan child."""
        self.report.title("GID table and IPvlan children (stock kernel)")
        report, child = self.report, self.children[0]
        self.output("ip netns add pod")
        code, said = self.run("ip link add link rdma0 name rdma0 netns pod type ipvlan mode l2")
        report.check("the parent's name in one step is refused", code == 2 and "File exists" in said, said)
        self.output("ip netns delete pod")
        before = self.gids()
        parent = [entry for entry in before if entry.startswith(gid_of(self.parents[0]))]
        report.equal("the parent's address has one GID", parent, [f"{gid_of(self.parents[0])} RoCE v2 rdma0"])

        self.make_child(1)
        report.equal("the child's GID appears", self.eventually(lambda: self.has_gid(child), True), True)
        entry = f"{gid_of(child)} RoCE v2 rdma0"
        report.equal("in the parent's table, with the child's link name", self.gids(), [*before, entry])
        index = len(before)
        inside = self.run(f"ip netns exec pod cat /sys/class/infiniband/mlx5_0/ports/1/gids/{index}")
        report.equal("the pod sees it too", inside, (0, gid_of(child)))
        code, said = self.run("ip netns exec pod rdma link show")
        report.check(
            "the pod sees the parent's device, without its link",
            "mlx5_0/1" in said and "netdev" not in said,
            said,
        )
        self.output("ip -n pod link set rdma0 down")
        time.sleep(0.5)
        report.equal("it stays while the child is down", self.has_gid(child), True)
        self.output("ip -n pod link set rdma0 up; ip -n pod addr flush dev rdma0")
        report.equal(
            "it vanishes with the address", self.eventually(lambda: self.has_gid(child), False), False
        )
        self.output(f"ip -n pod addr add {child}/12 dev rdma0 noprefixroute")
        report.equal(
            "it comes back with the address", self.eventually(lambda: self.has_gid(child), True), True
        )
        self.output("ip -n pod link delete rdma0")
        report.equal("it vanishes with the link", self.eventually(lambda: self.has_gid(child), False), False)
        self.output("ip netns delete pod")

        others = [f"10.208.200.{number}" for number in (1, 2, 3, 4)]
        for number, address in enumerate(others[:3]):
            self.make_child(1, f"pod{number}", address)
        table = [*before, *(f"{gid_of(address)} RoCE v2 rdma0" for address in others[:3])]
        report.equal("three children have three GIDs", self.eventually(self.gids, table), table)
        self.output("ip netns delete pod1")
        report.equal(
            "a GID vanishes with the namespace",
            self.eventually(lambda: self.has_gid(others[1]), False),
            False,
        )
        self.make_child(1, "pod3", others[3])
        table[index + 1] = f"{gid_of(others[3])} RoCE v2 rdma0"
        report.equal("the next child takes the index that is free", self.eventually(self.gids, table), table)
        self.output("for pod in pod0 pod2 pod3; do ip netns delete $pod; done")
        report.equal("at the end the table is as before", self.eventually(self.gids, before), before)

        self.eventually(lambda: self.run("rdma system set netns exclusive")[0], 0)
        self.make_child(1)
        report.equal(
            "exclusive mode: the GID is in the host's table",
            self.eventually(lambda: self.has_gid(child), True),
            True,
        )
        report.equal(
            "exclusive mode: the pod sees no device", self.run("ip netns exec pod rdma dev show"), (0, "")
        )
        self.output("ip netns delete pod")
        self.eventually(lambda: self.run("rdma system set netns shared")[0], 0)
        report.equal("shared mode again", self.run(MODE), (0, "Y"))

    def traffic(self, label: str, works: bool) -> None:
        """RDMA between parents and between children; ``works`` tells whether the second is expected to."""
        self.report.title(f"RDMA traffic ({label})")
        code, said = self._rping(self.parents, "")
        self.report.check(f"{label}: rping from parent to parent", code == 0, said)
        for node in (1, 2):
            self.make_child(node)
        one, two = self.children
        code, said = self.run(f"ip netns exec pod ping -c 1 -W 5 -M do -s 4172 -I {one} {two}")
        self.report.check(f"{label}: a child pings the other node's child", code == 0, said)
        code, said = self._rping(self.children, "ip netns exec pod ")
        if works:
            self.report.check(f"{label}: rping from child to child", code == 0, said)
        else:
            self.report.check(f"{label}: rping from child to child is not possible", code != 0, said)
        for node in (1, 2):
            self.output("ip netns delete pod", node)

    def _rping(self, addresses: list[str], prefix: str) -> tuple[int, str]:
        """One rping from node1 to node2 between two addresses, as soon as its server listens."""
        one, two = addresses
        server = f"systemd-run -q --collect --unit=rping timeout 60 {prefix}rping -s -a {two} -C 3"
        listens = "for n in $(seq 100); do rdma resource show cm_id | grep -q LISTEN && exit; sleep 0.1; done; exit 1"
        self.output(f"{server}; {listens}", 2)
        code, said = self.run(f"timeout 15 {prefix}rping -c -a {two} -I {one} -C 3", timeout=60)
        self.run("systemctl stop rping", 2)
        return code, said

    def sysfs(self) -> None:
        """Shapes of real hardware that only the edited driver has."""
        self.report.title("sysfs (lab rxe)")
        device = self.output(
            "readlink -f /sys/class/infiniband/mlx5_0/device /sys/class/net/rdma0/device"
        ).split()
        self.report.check(
            "lab rxe: the RDMA device sits below the hardware of its NIC", len(set(device)) == 1, device
        )

    def each_fault(self, node: int = 1) -> None:
        """Every fault does what it says, and its undo restores everything."""
        self.report.title("faults")
        before = self.fingerprint(node)
        for case in fault_cases(before):
            if case.lab_only and self.spec.driver != "lab":
                continue
            name = " ".join((case.name, *case.arguments)) + (" (lab rxe)" if case.lab_only else "")
            try:
                self.one_fault(node, name, case, before)
            except LabError as error:
                self.report.check(f"fault {name}", False, error)
        self.refusals(node)

    def one_fault(self, node: int, name: str, case: FaultCase, before: dict) -> None:
        """Play one fault, look, take it back, look again."""
        if faults.check(case.name, list(case.arguments), self.spec.rails).kind == "guest":
            # In one call with the look at it, because every call costs a second or two in an emulated machine.
            text = self.lab.node_program(node, "fault", case.name, *case.arguments, "--", "fingerprint")
        else:
            faults.play(self.lab, node, case.name, list(case.arguments))
            text = self.lab.node_program(node, "fingerprint")
        after = case.find(json.loads(text))
        if after != case.expected:
            after = self.eventually(lambda: case.find(self.fingerprint(node)), case.expected)
        self.report.equal(f"fault {name}", after, case.expected)
        faults.undo(self.lab, node, case.name)
        restored = self.eventually(lambda: self.fingerprint(node), before)
        self.report.check(
            f"fault {name}: undo restores the node", restored == before, difference(before, restored)
        )

    def refusals(self, node: int) -> None:
        """Faults that cannot be played are refused in a sentence."""
        faults.play(self.lab, node, "mtu", ["0"])
        for what, action in (
            ("twice", lambda: faults.play(self.lab, node, "mtu", ["0"])),
            ("with a rail that is not there", lambda: faults.play(self.lab, node, "mtu", ["9"])),
            ("that is not in force, taken back", lambda: faults.undo(self.lab, node, "arp")),
        ):
            try:
                action()
                self.report.check(f"a fault {what} is refused", False, "it was played")
            except LabError as error:
                self.report.check(f"a fault {what} is refused: {error}", True)
        faults.undo(self.lab, node, "mtu")


class FaultCase(typing.NamedTuple):
    """One fault, how to find its effect in a fingerprint, and what the effect is."""

    name: str
    arguments: tuple[str, ...]
    find: typing.Callable[[dict], object]
    expected: object
    lab_only: bool = False


def fault_cases(before: dict) -> list[FaultCase]:
    """All faults with their expected effects on a node whose fingerprint was ``before``."""
    links = before["links"]
    own, other = links["rdma0"]["addresses"], links["rdma1"]["addresses"]

    def addresses(name: str) -> typing.Callable[[dict], object]:
        return lambda found: found["links"][name]["addresses"]

    def has_route(text: str) -> typing.Callable[[dict], object]:
        return lambda found: any(line.startswith(text) for line in found["routes"])

    network = before["oca"]["network"]
    return [
        FaultCase("exclusive", (), lambda f: f["netns"], "netns exclusive copy-on-fork on"),
        FaultCase(
            "swap-nics",
            ("0", "1"),
            lambda f: [f["links"][n][k] for n in ("rdma0", "rdma1") for k in ("addresses", "mac")],
            [other, links["rdma1"]["mac"], own, links["rdma0"]["mac"]],
        ),
        FaultCase("address-missing", ("0",), addresses("rdma0"), []),
        FaultCase("address-foreign", ("0",), addresses("rdma0"), ["10.224.13.119/12"]),
        FaultCase("address-foreign", ("1", "192.168.7.9/24"), addresses("rdma1"), ["192.168.7.9/24"]),
        FaultCase("mtu", ("2",), lambda f: f["links"]["rdma2"]["mtu"], 1500),
        FaultCase("mtu", ("2", "4000"), lambda f: f["links"]["rdma2"]["mtu"], 4000),
        FaultCase("arp", ("3",), lambda f: f["sysctl"]["rdma3"], ["1", "0", "0", "2"]),
        FaultCase("arp", ("3", "arp_ignore=0"), lambda f: f["sysctl"]["rdma3"], ["0", "2", "0", "2"]),
        FaultCase("rp-filter", ("3",), lambda f: f["sysctl"]["rdma3"], ["1", "2", "0", "1"]),
        FaultCase("foreign-route", (), has_route("10.213.0.0/16 via 10.140.64.1 dev eth0"), True),
        FaultCase(
            "foreign-route", ("10.216.0.0/14",), has_route("10.216.0.0/14 via 10.140.64.1 dev eth0"), True
        ),
        FaultCase("table-taken", (), has_route("192.0.2.0/24 via 10.140.64.1 dev eth0 table 100"), True),
        FaultCase("stray-child", ("1",), lambda f: "stray1" in f["links"], True),
        FaultCase(
            "oca-malformed", (), lambda f: f["oca"]["network"] != network and bool(f["oca"]["network"]), True
        ),
        FaultCase("oca-unreadable", (), lambda f: f["oca"]["network"], None),
        FaultCase("oca-unreadable", ("features",), lambda f: f["oca"]["features"], None),
        FaultCase("imds-down", (), lambda f: f["imds"], "refused"),
        FaultCase("imds-down", ("silent",), lambda f: f["imds"], "silent"),
        FaultCase("imds-down", ("error",), lambda f: f["imds"], "503"),
        FaultCase("rail-broken", ("1",), lambda f: f["rdma"]["mlx5_1"]["state"], "1: DOWN"),
        FaultCase("namespace", (), lambda f: f["namespaces"], ["lab-busy"]),
        FaultCase("namespace", ("hidden",), lambda f: (f["hidden"], f["namespaces"]), (True, [])),
        FaultCase("rxe-gone", ("3",), lambda f: sorted(f["rdma"]), ["mlx5_0", "mlx5_1", "mlx5_2"]),
        FaultCase(
            "modprobe-second",
            (),
            lambda f: f["modprobe"].get("zz-rdma-lab-second.conf"),
            "options ib_core netns_mode=0",
        ),
        FaultCase(
            "ib-link-layer", ("3",), lambda f: f["rdma"]["mlx5_3"]["link_layer"], "InfiniBand", lab_only=True
        ),
    ]


def difference(before: dict, after: dict) -> str:
    """The parts of two fingerprints that are not equal."""
    return "; ".join(
        f"{key}: {before[key]} became {after.get(key)}" for key in before if before[key] != after.get(key)
    )


def run_selftest(cache: Cache, progress: Progress, cold: bool = False) -> int:
    """Boot, check, end; 0 when every assertion held."""
    this = lab.Lab("selftest", cache, progress)
    report = Report()
    this.down()
    try:
        state = this.up(plan.make_spec(), cold=cold)
        times = this.wait()
        print(
            f"nodes ready after {max(times.values()):.1f} s ({'resumed' if state.warm else 'booted'}, {state.accel})"
        )
        test = Selftest(this, report)
        test.layout()
        test.metadata()
        edited = test.spec.driver == "lab"
        if edited:
            test.sysfs()
            test.traffic("lab rxe", works=True)
        test.each_fault()
        if edited:
            for node in (1, 2):
                this.node_program(node, "driver", "stock")
        test.netns_mode()
        test.gid_table()
        test.traffic("stock rxe", works=False)
        if not edited:
            print("note: the edited driver could not be built here, so nothing marked 'lab rxe' was checked")
    except LabError as error:
        report.check("the selftest came to its end", False, error)
    finally:
        this.down()
    report.equal("no process of the lab is left", this.alive(), [])
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0
