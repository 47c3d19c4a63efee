# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end-to-end test of the lab: boots two nodes and checks what the lab promises, one printed line per assertion.

Sections "rdma system" and "GID table" assert what a stock kernel does; lines marked ``lab rxe`` need the edited driver.
A command on an emulated node costs a second or two, so each section sends its commands as one script, and both nodes
work at the same time where they can.
"""

from __future__ import annotations

import collections.abc
import concurrent.futures
import json
import shlex
import time
import typing

from . import faults, lab, plan
from .errors import LabError
from .image import Cache
from .progress import Progress

PATIENCE = 8.0
"""Seconds for which a change of the kernel's tables is awaited; they change within milliseconds, seldom later."""
MODE = "cat /sys/module/ib_core/parameters/netns_mode"
BUSY = (1, "error: Device or resource busy")
SWITCH = "eventually rdma system set netns exclusive && rdma system set netns shared"

FUNCTIONS = rf"""
eventually() {{ for _ in $(seq {int(PATIENCE * 10)}); do "$@" && return; sleep 0.1; done 2>/dev/null; "$@"; }}
gids() {{
    local port=/sys/class/infiniband/mlx5_0/ports/1 n gid type link
    for n in $(seq 0 15); do
        read -r type < $port/gid_attrs/types/$n || continue
        read -r gid < $port/gids/$n; read -r link < $port/gid_attrs/ndevs/$n
        echo "$gid $type $link"
    done 2>/dev/null
}}
has() {{ gids | grep -q "^$1 RoCE v2 "; }}
lacks() {{ ! has "$1"; }}
table() {{ [ "$(gids)" = "$1" ]; }}
child() {{ # NAMESPACE ADDRESS: as the driver makes it, with a temporary name and then the parent's
    set -e
    ip netns add "$1"
    ip netns exec "$1" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
    ip link add link rdma0 name tmp0 netns "$1" type ipvlan mode l2
    ip -n "$1" -batch - <<COMMANDS
link set tmp0 name rdma0
link set rdma0 up
addr add $2/12 dev rdma0 noprefixroute
route add {plan.CHILD_RANGE} dev rdma0 scope link src $2 table 100
rule add priority 32000 from $2 table 100
COMMANDS
}}
ask() {{ # PATH [HEADER]: the answer of the metadata service, head and body
    exec 3<> /dev/tcp/169.254.169.254/80
    printf 'GET /opc/v2/%s HTTP/1.1\r\nHost: lab\r\n%s\r\n' "$1" "${{2:+$2$'\r'$'\n'}}" >&3
    cat <&3
}}
"""
"""Shell functions for the scripts of the sections."""


class Report:
    """Prints each assertion as it is made and counts them."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self._begin = time.monotonic()

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
        """Print the head of a section, with the seconds so far."""
        print(f"--- {text} [{time.monotonic() - self._begin:.0f} s]", flush=True)


def gid_of(address: str) -> str:
    """The GID of an IPv4 address, written as sysfs writes it."""
    numbers = [int(part) for part in address.split(".")]
    return "0000:" * 5 + "ffff:{:02x}{:02x}:{:02x}{:02x}".format(*numbers)


def batch(steps: collections.abc.Iterable[str]) -> str:
    """One script that runs every step in a shell of its own and prints its code and its output, each ended by NUL."""
    lines = [f'said=$( ( {step}\n) 2>&1 ); printf "%s\\0%s\\0" $? "$said"' for step in steps]
    return FUNCTIONS + "\n".join(lines) + "\n"


def batch_results(text: str) -> list[tuple[int, str]]:
    """Code and trimmed output of each step of a ``batch``."""
    parts = text.split("\0")[:-1]
    return [(int(code), said.strip()) for code, said in zip(parts[::2], parts[1::2], strict=True)]


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

    def steps(self, node: int, *steps: str) -> list[tuple[int, str]]:
        """Code and output of several steps on a node, in one call."""
        found = batch_results(self.lab.node_run(node, batch(steps), timeout=300))
        if len(found) != len(steps):
            raise LabError("node_command", f"node{node} answered {len(found)} of {len(steps)} steps.")
        return found

    def both(self, action: typing.Callable[[int], typing.Any]) -> list[typing.Any]:
        """What ``action`` returns for node 1 and node 2, which work at the same time."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(action, (1, 2)))

    def fingerprint(self, node: int) -> dict:
        """All that a fault may change on a node."""
        return json.loads(self.lab.node_program(node, "fingerprint"))

    def eventually(self, get: typing.Callable[[], typing.Any], expected: object) -> typing.Any:
        """The value of ``get()`` as soon as it is the expected one, else the last one after a while."""
        end = time.monotonic() + PATIENCE
        while (found := get()) != expected and time.monotonic() < end:
            time.sleep(0.1)
        return found

    # --- sections -----------------------------------------------------------------------------------------------

    def layout(self) -> list[dict]:
        """What a node looks like; the fingerprints of both nodes."""
        self.report.title("layout of the nodes")
        pings = [
            f"ping -c 1 -W 5 -M do -s 4172 -I {one} {two}"
            for one, two in (
                (plan.rail_address(plan.OCA_NETWORK, rail, plan.vnic_address(node)) for node in (1, 2))
                for rail in range(self.spec.rails)
            )
        ]

        def look(node: int) -> tuple[dict, float, list[tuple[int, str]]]:
            found = self.steps(
                node,
                f"{' '.join(lab.GUEST_PROGRAM)} fingerprint",
                "echo $EPOCHSECONDS",
                "cut -d' ' -f1 /proc/modules",
                "python3 -c 'import pyroute2'",
                "ibv_devinfo -d mlx5_0 | grep active_mtu",
                *(pings if node == 1 else []),
            )
            return json.loads(found[0][1]), time.time() - float(found[1][1]), found[2:]

        looks = self.both(look)
        for node, (print_, late, (modules, library, mtu, *answers)) in zip((1, 2), looks, strict=True):
            name = f"node{node}"
            self.links(name, node, print_)
            self.report.check(f"{name}: the clock is right", abs(late) < 60, f"{late:.0f} s late")
            wanted = {"ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "mlx5_core", "mlx5_ib"}
            self.report.equal(f"{name}: the RDMA modules are loaded", wanted - set(modules[1].split()), set())
            self.report.equal(f"{name}: the node has Python and no library of ours", library[0], 1)
            self.report.check(f"{name}: the RDMA port has MTU 4096", "4096 (5)" in mtu[1], mtu[1])
            for rail, (code, said) in enumerate(answers):
                self.report.check(f"rail {rail} carries a whole frame to the other node", code == 0, said)
        return [print_ for print_, _late, _rest in looks]

    def links(self, name: str, node: int, print_: dict) -> None:
        """Addresses, routes, rules, settings, ports and files in a fingerprint."""
        links = print_["links"]
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
            self.report.check(f"{name}: rdma{rail} has its rule", rule in print_["rules"], print_["rules"])
            settings = print_["sysctl"].get(f"rdma{rail}")
            self.report.equal(f"{name}: rdma{rail} has its ARP settings", settings, ["1", "2", "0", "2"])
        vnic = f"{plan.vnic_address(node)}/{plan.VNIC_SUBNET.prefixlen}"
        self.report.equal(
            f"{name}: eth0 has the address of the primary VNIC", links["eth0"]["addresses"], [vnic]
        )
        devices = {f"mlx5_{rail}": "4: ACTIVE" for rail in range(self.spec.rails)}
        states = {device: entry["state"] for device, entry in print_["rdma"].items()}
        self.report.equal(f"{name}: every RDMA port is active", states, devices)
        files = {path.rsplit("/", 1)[1]: text.strip() for path, text in plan.oca_files().items()}
        expected = {"network": files["rdma_network.json"], "features": files["rdma_features_enable.json"]}
        self.report.equal(f"{name}: the OCA files", print_["oca"], expected)

    def metadata(self) -> None:
        """The metadata service."""
        self.report.title("metadata service")
        key = "'Authorization: Bearer Oracle'"
        documents = ("host", "instance", "vnics")
        questions = [f"ask {name}/ {key}" for name in documents] + ["ask host/", f"ask no/ {key}"]
        for node, answers in zip((1, 2), self.both(lambda node: self.steps(node, *questions)), strict=True):
            heads = [said.partition("\n\n")[0].split(" ")[1:2] for _code, said in answers]
            expected = plan.imds_documents(self.spec, node)
            for name, (_code, said) in zip(documents, answers, strict=False):
                body = said.partition("\n\n")[2]
                self.report.check(
                    f"node{node}: /opc/v2/{name}/", body and json.loads(body) == expected[name], said
                )
            self.report.equal(f"node{node}: without the header it refuses", heads[3], ["403"])
            self.report.equal(f"node{node}: an unknown path is not found", heads[4], ["404"])

    def netns_mode(self) -> None:
        """The RDMA namespace mode of the kernel."""
        self.report.title("rdma system and the namespace mode (stock kernel)")
        facts: list[tuple[str, str, tuple[int, str] | str]] = [
            ("the mode is shared at boot", "rdma system show", (0, "netns shared copy-on-fork on")),
            ("the parameter says Y", MODE, (0, "Y")),
            (
                "the parameter is read-only, even for root",
                "echo N > /sys/module/ib_core/parameters/netns_mode",
                "Permission denied",
            ),
            ("it can be set to exclusive", "rdma system set netns exclusive", (0, "")),
            ("the parameter follows: N", MODE, (0, "N")),
            ("and back to shared", f"rdma system set netns shared; {MODE}", (0, "Y")),
            (
                "an ordinary user may not",
                "setpriv --reuid=65534 --clear-groups rdma system set netns exclusive",
                "Operation not permitted",
            ),
            ("with a namespace it is busy", "ip netns add plain; rdma system set netns exclusive", BUSY),
            ("the mode stays", MODE, (0, "Y")),
            ("setting the mode in force is no error", "rdma system set netns shared", (0, "")),
            ("without the namespace it works again", f"ip netns delete plain; {SWITCH}", (0, "")),
            (
                "a namespace without a name: ip netns list is empty",
                "systemd-run -q --unit=hiding -p PrivateNetwork=yes sleep infinity; ip netns list",
                (0, ""),
            ),
            ("and still it is busy", "rdma system set netns exclusive", BUSY),
            ("when it is gone it works again", f"systemctl stop hiding; {SWITCH}", (0, "")),
        ]
        self.facts(1, facts)

    def facts(self, node: int, facts: list[tuple[str, str, tuple[int, str] | str]]) -> list[str]:
        """Check what, step and expectation of each fact: code and output, or a part of the output of a failure.

        Returns the outputs, for checks that need more than a comparison.
        """
        found = self.steps(node, *(step for _what, step, _expected in facts))
        for (what, _step, expected), (code, said) in zip(facts, found, strict=True):
            if isinstance(expected, str):
                self.report.check(what, code != 0 and expected in said, (code, said))
            else:
                self.report.equal(what, (code, said), expected)
        return [said for _code, said in found]

    def gid_table(self, before: list[str]) -> None:
        """The life of the GID of an IPvlan child; ``before`` is the table of mlx5_0 of node1."""
        self.report.title("GID table and IPvlan children (stock kernel)")
        gid, child = gid_of(self.children[0]), self.children[0]
        parent = f"{gid_of(self.parents[0])} RoCE v2 rdma0"
        others = [f"10.208.200.{number}" for number in (1, 2, 3, 4)]
        entries = [f"{gid_of(address)} RoCE v2 rdma0" for address in others]
        three = "\n".join([*before, *entries[:3]])
        reused = "\n".join([*before, entries[0], entries[3], entries[2]])
        start, good = "\n".join(before), (0, "")
        self.facts(
            1,
            [
                (
                    "the parent's name in one step is refused",
                    "ip netns add pod; ip link add link rdma0 name rdma0 netns pod type ipvlan mode l2",
                    "File exists",
                ),
                (
                    "the parent's address has one GID",
                    f"ip netns delete pod; gids | grep '^{parent[:39]}'",
                    (0, parent),
                ),
                ("the child's GID appears", f"child pod {child}; eventually has {gid}", good),
                (
                    "in the parent's table, with the child's link name",
                    "gids",
                    (0, f"{start}\n{gid} RoCE v2 rdma0"),
                ),
                (
                    "the pod sees it too",
                    f"ip netns exec pod cat /sys/class/infiniband/mlx5_0/ports/1/gids/{len(before)}",
                    (0, gid),
                ),
                (
                    "the pod sees the parent's device, without its link",
                    "found=$(ip netns exec pod rdma link show); [[ $found = *mlx5_0/1* && $found != *netdev* ]]",
                    good,
                ),
                (
                    "it stays while the child is down",
                    f"ip -n pod link set rdma0 down; sleep 0.5; has {gid}",
                    good,
                ),
                (
                    "it vanishes with the address",
                    f"ip -n pod link set rdma0 up; ip -n pod addr flush dev rdma0; eventually lacks {gid}",
                    good,
                ),
                (
                    "it comes back with the address",
                    f"ip -n pod addr add {child}/12 dev rdma0 noprefixroute; eventually has {gid}",
                    good,
                ),
                ("it vanishes with the link", f"ip -n pod link delete rdma0; eventually lacks {gid}", good),
                (
                    "three children have three GIDs",
                    "ip netns delete pod; "
                    + "; ".join(f"(child pod{n} {others[n]})" for n in range(3))
                    + f"; eventually table '{three}'; gids",
                    (0, three),
                ),
                (
                    "a GID vanishes with the namespace",
                    f"ip netns delete pod1; eventually lacks {gid_of(others[1])}",
                    good,
                ),
                (
                    "the next child takes the index that is free",
                    f"(child pod3 {others[3]}); eventually table '{reused}'; gids",
                    (0, reused),
                ),
                (
                    "at the end the table is as before",
                    f"for pod in pod0 pod2 pod3; do ip netns delete $pod; done; eventually table '{start}'; gids",
                    (0, start),
                ),
                (
                    "exclusive mode: the GID is in the host's table",
                    f"eventually rdma system set netns exclusive; child pod {child}; eventually has {gid}",
                    good,
                ),
                ("exclusive mode: the pod sees no device", "ip netns exec pod rdma dev show", good),
                (
                    "shared mode again",
                    f"ip netns delete pod; eventually rdma system set netns shared; {MODE}",
                    (0, "Y"),
                ),
            ],
        )

    def traffic(self, label: str, works: bool) -> None:
        """RDMA between parents and between children; ``works`` tells whether the second is expected to."""
        self.report.title(f"RDMA traffic ({label})")
        inside = "ip netns exec pod "
        listens = "eventually eval 'rdma resource show cm_id | grep -q LISTEN'"
        servers = [
            f"systemd-run -q --collect --unit=rping timeout 60 {prefix}rping -s -a {addresses[1]} -C 3; {listens}"
            for prefix, addresses in (("", self.parents), (inside, self.children))
        ]
        clients = [
            f"timeout {seconds} {prefix}rping -c -a {addresses[1]} -I {addresses[0]} -C 3"
            for seconds, prefix, addresses in (
                (30, "", self.parents),
                (30 if works else 4, inside, self.children),
            )
        ]
        child = [f"child pod {address}" for address in self.children]
        self.both(lambda node: self.steps(node, child[node - 1], *servers[: node - 1]))
        ping = f"{inside}ping -c 1 -W 5 -M do -s 4172 -I {self.children[0]} {self.children[1]}"
        parents, pinged = self.steps(1, clients[0], ping)
        self.report.check(f"{label}: rping from parent to parent", parents[0] == 0, parents)
        self.report.check(f"{label}: a child pings the other node's child", pinged[0] == 0, pinged)
        (started,) = self.steps(2, f"systemctl stop rping 2>/dev/null; {servers[1]}")
        self.report.check(f"{label}: a server listens at the child's address", started[0] == 0, started)
        (children,) = self.steps(1, clients[1])
        what = f"{label}: rping from child to child" + ("" if works else " is not possible")
        self.report.check(what, (children[0] == 0) == works, children)
        self.both(lambda node: self.steps(node, "systemctl stop rping 2>/dev/null; ip netns delete pod"))

    def sysfs(self) -> None:
        """Shapes of real hardware that only the edited driver has."""
        self.report.title("sysfs (lab rxe)")
        (said,) = self.steps(1, "readlink -f /sys/class/infiniband/mlx5_0/device /sys/class/net/rdma0/device")
        places = said[1].split()
        self.report.check(
            "lab rxe: the RDMA device sits below the hardware of its NIC",
            len(places) == 2 and len(set(places)) == 1,
            said,
        )

    def each_fault(self, before: list[dict]) -> None:
        """Every fault does what it says, and its undo restores everything; each node plays one half of them.

        ``before`` holds the fingerprints of both nodes.
        """
        self.report.title("faults")
        halves = []
        for node in (1, 2):
            cases = fault_cases(before[node - 1])[node - 1 :: 2]
            halves.append([case for case in cases if self.spec.driver == "lab" or not case.lab_only])
        looks = self.both(lambda node: self.play_all(node, halves[node - 1]))
        for node, cases, found in zip((1, 2), halves, looks, strict=True):
            for case in cases:
                name = " ".join((case.name, *case.arguments)) + (" (lab rxe)" if case.lab_only else "")
                try:
                    self.judge_fault(
                        node, name, case, before[node - 1], found.get((case.name, case.arguments))
                    )
                except LabError as error:
                    self.report.check(f"fault {name}", False, error)
        self.refusals(1)

    def play_all(self, node: int, cases: list[FaultCase]) -> dict[tuple, tuple[dict, dict]]:
        """Fingerprints with each fault and after its undo, by name and arguments, all in one call.

        What happens outside of the nodes is left out, and what comes behind a fault that could not be played.
        """
        inside = [
            case
            for case in cases
            if faults.check(case.name, list(case.arguments), self.spec.rails).kind == "guest"
        ]
        words: list[str] = []
        for case in inside:
            words += ["fault", case.name, *case.arguments, "--", "fingerprint", "--"]
            words += ["undo", case.name, "--", "fingerprint", "--"]
        done = self.lab.node_try(node, shlex.join([*lab.GUEST_PROGRAM, *words[:-1]]), timeout=300)
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        keys = [(case.name, case.arguments) for case in inside]
        return dict(zip(keys, zip(looks[::2], looks[1::2], strict=False), strict=False))

    def judge_fault(
        self, node: int, name: str, case: FaultCase, before: dict, looks: tuple[dict, dict] | None
    ) -> None:
        """Check one fault by its two fingerprints; without them, or when the kernel was slow, play it alone."""
        if looks is None or case.find(looks[0]) != case.expected or looks[1] != before:
            looks = self.play_alone(node, case, before)
        self.report.equal(f"fault {name}", case.find(looks[0]), case.expected)
        self.report.check(
            f"fault {name}: undo restores the node", looks[1] == before, difference(before, looks[1])
        )

    def play_alone(self, node: int, case: FaultCase, before: dict) -> tuple[dict, dict]:
        """Play one fault, look, take it back, look again; both looks wait for tables that change late."""
        if case.name in json.loads(self.lab.node_program(node, "active")):
            faults.undo(self.lab, node, case.name)
        faults.play(self.lab, node, case.name, list(case.arguments))
        looks: list[dict] = []

        def look() -> dict:
            looks.append(self.fingerprint(node))
            return looks[-1]

        self.eventually(lambda: case.find(look()), case.expected)
        played = looks[-1]
        faults.undo(self.lab, node, case.name)
        return played, self.eventually(look, before)

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
    head, last = own[0].partition("/")[0].rsplit(".", 1)
    foreign = f"{head}.{int(last) + 100}/12"

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
        FaultCase("address-foreign", ("0",), addresses("rdma0"), [foreign]),
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
    # A name for each checkout, so that two of them can run their tests at the same time.
    this = lab.Lab(f"selftest-{plan.digest(__file__)[:8]}", cache, progress)
    report = Report()
    this.down()
    try:
        state = this.up(plan.make_spec(), cold=cold)
        times = this.wait()
        how = "resumed" if state.warm else "booted"
        print(f"nodes ready after {max(times.values()):.1f} s ({how}, {state.accel})")
        test = Selftest(this, report)
        before = test.layout()
        test.metadata()
        edited = test.spec.driver == "lab"
        if edited:
            test.sysfs()
            test.traffic("lab rxe", works=True)
        test.each_fault(before)
        if edited:
            test.both(lambda node: this.node_program(node, "driver", "stock"))
        test.netns_mode()
        test.gid_table(before[0]["rdma"]["mlx5_0"]["gids"])
        test.traffic("stock rxe", works=False)
        if not edited:
            print("note: the edited driver could not be built here, so nothing marked 'lab rxe' was checked")
    except LabError as error:
        report.check("the selftest came to its end", False, error)
    finally:
        this.down()
    report.title("end")
    report.equal("no process of the lab is left", this.alive(), [])
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0
