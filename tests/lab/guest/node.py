# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's program inside a node: lays the node out at boot, serves the metadata, plays faults and takes them back.

It runs on the node's own Python with nothing but the standard library, as root::

    node.py boot                         lay out rails and RDMA devices as the node's document says
    node.py imds                         serve the metadata documents at 169.254.169.254
    node.py fault NAME [ARGUMENT...]     play a fault
    node.py undo NAME                    take a fault back
    node.py active                       the faults in force, as JSON
    node.py driver lab|stock             load that build of rxe and make the RDMA devices again
    node.py fingerprint                  all that a fault may change, as JSON

Several commands in one call stand with ``--`` between them.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time

DOCUMENT = "/sys/firmware/qemu_fw_cfg/by_name/opt/rdma-lab/node/raw"
STATE = "/run/rdma-lab/state"
IMDS_MODE = "/run/rdma-lab/imds-mode"
ACTIVE = "/var/lib/rdma-lab/faults"
LAB_MODULE = "/usr/local/lib/rdma-lab/rdma_rxe.ko"
SECOND_OPTIONS = "/etc/modprobe.d/zz-rdma-lab-second.conf"
IMDS_ADDRESS = "169.254.169.254"
OCA_DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
GIDS_READ = 16
"""Entries of a GID table that a fingerprint reads; new ones take the lowest free index."""
OCA_FILES = {"network": "rdma_network.json", "features": "rdma_features_enable.json"}
BUSY_NAMESPACE = "lab-busy"
HIDDEN_UNIT = "lab-hidden"


class NodeError(Exception):
    """A request that cannot be met, said in one sentence."""


def run(*command: str, stdin: str | None = None) -> str:
    """Run a command and return what it prints; raise ``NodeError`` with its own words when it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NodeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip() or done.returncode}")
    return done.stdout


def retry(seconds: float, action, *arguments):
    """Repeat an action that may be refused for a moment (namespaces go away late), for at most ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        try:
            return action(*arguments)
        except NodeError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def write(path: str, text: str) -> None:
    """Write a file in place; for sysfs and proc as well as for ordinary files."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path: str) -> str | None:
    """The trimmed content of a file, or None when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None


def document() -> dict:
    """What the lab told this node; the firmware configuration module is loaded if need be."""
    if not os.path.exists(DOCUMENT):
        run("modprobe", "qemu_fw_cfg")
    with open(DOCUMENT, encoding="utf-8") as file:
        return json.load(file)


def rail_of(node: dict, text: str) -> dict:
    """The rail with index ``text``."""
    for rail in node["rails"]:
        if str(rail["index"]) == text:
            return rail
    raise NodeError(f"There is no rail {text}: this node has rails 0 to {len(node['rails']) - 1}.")


# --- layout ---------------------------------------------------------------------------------------------------------


def rail_commands(rail: dict, link: str | None = None) -> list[str]:
    """The ``ip -batch`` lines that give a link the address and the route of ``rail`` (repeatable)."""
    link = link or rail["name"]
    address = rail["address"]
    return [
        f"link set {link} mtu {rail['mtu']} up",
        f"address replace {address}/{rail['prefix']} dev {link} noprefixroute",
        f"route replace {rail['network']} dev {link} scope link src {address} table {rail['table']}",
    ]


def lay_out(node: dict, rails: list[dict]) -> None:
    """Give the rails their MTU, address, route, rule and sysctls; what is already so stays so.

    The sysctls come last: the directory of a NIC that has just been renamed is made anew a moment after its new name
    can be seen, and a change of the link waits for the end of that.
    """
    lines = [line for rail in rails for line in rail_commands(rail)]
    rules = {
        (rule.get("src"), str(rule.get("table"))) for rule in json.loads(run("ip", "-j", "rule", "show"))
    }
    for rail in rails:
        if (rail["address"], str(rail["table"])) not in rules:
            lines.append(f"rule add priority {rail['priority']} from {rail['address']} table {rail['table']}")
    run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")
    for rail in rails:
        for name, value in rail["sysctl"].items():
            write(f"/proc/sys/net/ipv4/conf/{rail['name']}/{name}", value)


def wait_for_rails(node: dict, seconds: float = 30.0) -> None:
    """Wait until udev has named every NIC."""
    end = time.monotonic() + seconds
    while True:
        missing = [
            rail["name"] for rail in node["rails"] if not os.path.exists(f"/sys/class/net/{rail['name']}")
        ]
        if not missing:
            return
        if time.monotonic() > end:
            raise NodeError(f"NICs that did not appear: {', '.join(missing)}.")
        time.sleep(0.05)


def load_driver(build: str) -> None:
    """Load one build of rxe: the distribution's, or the lab's edited one."""
    if build == "stock":
        run("modprobe", "rdma_rxe")
        return
    if not os.path.exists(LAB_MODULE):
        raise NodeError("This image has no edited rxe; use the driver 'stock'.")
    for line in run("modprobe", "--show-depends", "rdma_rxe").splitlines():
        words = line.split()
        if words and words[0] == "insmod" and not words[1].endswith("/rdma_rxe.ko"):
            run("modprobe", os.path.basename(words[1]).split(".")[0])
    run("insmod", LAB_MODULE)


def add_rdma_device(rail: dict) -> None:
    """Put the rail's RDMA device on its NIC."""
    run("rdma", "link", "add", rail["rdma_device"], "type", "rxe", "netdev", rail["name"])


def boot() -> None:
    """Lay the whole node out, once after each boot, and leave the outcome in the state file."""
    os.makedirs(os.path.dirname(STATE), exist_ok=True)
    try:
        node = document()
        for path, text in node["files"].items():
            # A node that boots again keeps what it has, faults included.
            if not os.path.lexists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                write(path, text)
        write(
            "/etc/hosts", f"127.0.0.1 localhost\n{node['imds']['vnics'][0]['privateIp']} {node['hostname']}\n"
        )
        load_driver(node["driver"])
        # What a node with ConnectX cards has loaded; the modules load without such a card.
        run("modprobe", "--all", "rdma_ucm", "mlx5_ib")
        wait_for_rails(node)
        lay_out(node, node["rails"])
        for rail in node["rails"]:
            add_rdma_device(rail)
        retry(30.0, imds_answers)
    except (NodeError, OSError) as error:
        write(STATE, f"failed: {error}\n")
        raise
    write(STATE, "ready\n")


def change_driver(build: str) -> None:
    """Exchange the running rxe for another build of it; addresses and names stay."""
    if build not in ("lab", "stock"):
        raise NodeError(f"There is no driver {build!r}: use lab or stock.")
    node = document()
    present = {entry["ifname"] for entry in json.loads(run("rdma", "-j", "dev", "show"))}
    for rail in node["rails"]:
        if rail["rdma_device"] in present:
            run("rdma", "link", "delete", rail["rdma_device"])
    retry(5.0, run, "rmmod", "rdma_rxe")
    load_driver(build)
    for rail in node["rails"]:
        add_rdma_device(rail)


# --- metadata service -----------------------------------------------------------------------------------------------


def imds_answer(documents: dict, request: bytes) -> tuple[int, str]:
    """Status and body for one HTTP request; only ``Authorization: Bearer Oracle`` opens /opc/v2/ (F8)."""
    lines = request.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3:
        return 400, '{"code": "BadRequest"}'
    headers = {
        name.strip().lower(): value.strip()
        for name, _colon, value in (line.partition(":") for line in lines[1:])
    }
    if words[0] != "GET":
        return 405, '{"code": "MethodNotAllowed"}'
    if headers.get("authorization") != "Bearer Oracle":
        return 403, '{"code": "Forbidden"}'
    parts = [part for part in words[1].partition("?")[0].split("/") if part]
    if parts[:2] != ["opc", "v2"]:
        return 404, '{"code": "NotFound"}'
    value: object = documents
    for part in parts[2:]:
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]  # type: ignore[index]
        except (KeyError, IndexError, ValueError, TypeError):
            return 404, '{"code": "NotFound"}'
    return 200, value if isinstance(value, str) else json.dumps(value, indent=2)


def imds_connection(client: socket.socket, documents: dict) -> None:
    """Answer one request and close, in the mode that the mode file asks for."""
    with client:
        client.settimeout(30)
        request = b""
        try:
            while b"\r\n\r\n" not in request and len(request) < 65536:
                part = client.recv(4096)
                if not part:
                    return
                request += part
            mode = read(IMDS_MODE)
            if mode == "silent":
                time.sleep(60)
                return
            status, body = (503, "busy") if mode == "error" else imds_answer(documents, request)
            kind = "application/json" if body[:1] in "{[" else "text/plain"
            head = (
                f"HTTP/1.1 {status} Lab\r\nContent-Type: {kind}\r\nContent-Length: {len(body.encode())}\r\n"
            )
            client.sendall(f"{head}Connection: close\r\n\r\n{body}".encode())
        except OSError:
            return


def imds() -> None:
    """Serve for ever. The address is put on the loopback device, so no other link appears."""
    documents = document()["imds"]
    run("ip", "address", "replace", f"{IMDS_ADDRESS}/32", "dev", "lo")
    with socket.create_server((IMDS_ADDRESS, 80), backlog=64) as server:
        while True:
            client, _peer = server.accept()
            threading.Thread(target=imds_connection, args=(client, documents), daemon=True).start()


def imds_status(seconds: float = 1.0) -> str:
    """How the service answers right now: a status number, ``refused`` or ``silent``."""
    try:
        with socket.create_connection((IMDS_ADDRESS, 80), seconds) as client:
            client.sendall(
                b"GET /opc/v2/instance/shape HTTP/1.1\r\nHost: lab\r\nAuthorization: Bearer Oracle\r\n\r\n"
            )
            return client.recv(64).decode("latin-1").split(" ")[1]
    except TimeoutError:
        return "silent"
    except (OSError, IndexError):
        return "refused"


def imds_answers() -> None:
    """Raise ``NodeError`` unless the service answers."""
    status = imds_status()
    if status != "200":
        raise NodeError(f"The metadata service does not answer yet: {status}.")


# --- faults ---------------------------------------------------------------------------------------------------------
# A fault is a pair of functions. The first plays it and returns what its undo needs to know; the second takes it back.
# The names and arguments stand a second time in faults.py of the lab program; a test compares the two.


def netns_mode(mode: str) -> None:
    """Set the RDMA namespace mode, patiently: a namespace that was just deleted still counts for a moment."""
    retry(5.0, run, "rdma", "system", "set", "netns", mode)


def play_exclusive(node: dict) -> dict:
    netns_mode("exclusive")
    return {}


def undo_exclusive(node: dict, done: dict) -> None:
    netns_mode("shared")


def exchange(first: dict, second: dict, first_rail: dict, second_rail: dict) -> None:
    """Exchange the names of two links; each keeps its hardware, its address and its route."""
    one, two = first["name"], second["name"]
    lines = [f"link set {one} down", f"link set {two} down"]
    lines += [f"link set {one} name swapping", f"link set {two} name {one}", f"link set swapping name {two}"]
    lines += rail_commands(first_rail, two) + rail_commands(second_rail, one)
    run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")


def play_swap(node: dict, one: str, two: str) -> dict:
    first, second = rail_of(node, one), rail_of(node, two)
    if first is second:
        raise NodeError("Two different rails are needed.")
    exchange(first, second, first, second)
    return {"rails": [one, two]}


def undo_swap(node: dict, done: dict) -> None:
    first, second = (rail_of(node, text) for text in done["rails"])
    exchange(first, second, second, first)
    lay_out(node, [first, second])


def play_address_missing(node: dict, rail: str) -> dict:
    this = rail_of(node, rail)
    run("ip", "address", "delete", f"{this['address']}/{this['prefix']}", "dev", this["name"])
    return {"rail": rail}


def undo_rail(node: dict, done: dict) -> None:
    """Lay one rail out again, which repairs everything that was taken from it."""
    lay_out(node, [rail_of(node, done["rail"])])


def play_address_foreign(node: dict, rail: str, address: str = "") -> dict:
    this = rail_of(node, rail)
    if not address:
        # A position of the same block that no lab node has: inside the OCA network, but not this node's.
        head, last = this["address"].rsplit(".", 1)
        address = f"{head}.{(int(last) + 100) % 256}/{this['prefix']}"
    play_address_missing(node, rail)
    run("ip", "address", "add", address, "dev", this["name"], "noprefixroute")
    return {"rail": rail, "address": address}


def undo_address_foreign(node: dict, done: dict) -> None:
    run("ip", "address", "delete", done["address"], "dev", rail_of(node, done["rail"])["name"])
    undo_rail(node, done)


def play_mtu(node: dict, rail: str, mtu: str = "1500") -> dict:
    run("ip", "link", "set", rail_of(node, rail)["name"], "mtu", mtu)
    return {"rail": rail}


def play_arp(node: dict, rail: str, setting: str = "arp_announce=0") -> dict:
    name, equals, value = setting.partition("=")
    if not equals or name not in ("arp_ignore", "arp_announce", "arp_filter"):
        raise NodeError(f"{setting!r}: use arp_ignore=N, arp_announce=N or arp_filter=N.")
    path = f"/proc/sys/net/ipv4/conf/{rail_of(node, rail)['name']}/{name}"
    before = read(path)
    write(path, value)
    return {"path": path, "before": before}


def play_rp_filter(node: dict, rail: str, value: str = "1") -> dict:
    path = f"/proc/sys/net/ipv4/conf/{rail_of(node, rail)['name']}/rp_filter"
    before = read(path)
    write(path, value)
    return {"path": path, "before": before}


def undo_value(node: dict, done: dict) -> None:
    write(done["path"], done["before"])


def play_foreign_route(node: dict, network: str = "10.213.0.0/16") -> dict:
    run("ip", "route", "add", network, "via", node["gateway"], "dev", "eth0")
    return {"network": network}


def undo_foreign_route(node: dict, done: dict) -> None:
    run("ip", "route", "delete", done["network"], "via", node["gateway"], "dev", "eth0")


def play_table_taken(node: dict, table: str = "100") -> dict:
    run("ip", "route", "add", "192.0.2.0/24", "via", node["gateway"], "dev", "eth0", "table", table)
    run("ip", "rule", "add", "priority", "500", "to", "192.0.2.0/24", "table", table)
    return {"table": table}


def undo_table_taken(node: dict, done: dict) -> None:
    run("ip", "rule", "delete", "priority", "500", "to", "192.0.2.0/24", "table", done["table"])
    run("ip", "route", "flush", "table", done["table"])


def play_stray_child(node: dict, rail: str) -> dict:
    parent, child = rail_of(node, rail)["name"], f"stray{rail}"
    run("ip", "link", "add", "link", parent, "name", child, "type", "ipvlan", "mode", "l2")
    return {"child": child}


def undo_stray_child(node: dict, done: dict) -> None:
    run("ip", "link", "delete", done["child"])


def oca_path(which: str) -> str:
    """Path of one of the two OCA files."""
    if which not in OCA_FILES:
        raise NodeError(f"{which!r}: use network or features.")
    return f"{OCA_DIRECTORY}/{OCA_FILES[which]}"


def play_oca_malformed(node: dict, which: str = "network") -> dict:
    path = oca_path(which)
    write(path, node["files"][path][:40])
    return {"path": path}


def play_oca_unreadable(node: dict, which: str = "network") -> dict:
    # Root may read every file whatever its mode; a directory in its place it cannot read.
    path = oca_path(which)
    os.unlink(path)
    os.mkdir(path)
    return {"path": path}


def undo_oca(node: dict, done: dict) -> None:
    path = done["path"]
    if os.path.isdir(path):
        os.rmdir(path)
    write(path, node["files"][path])


def play_imds_down(node: dict, how: str = "refused") -> dict:
    if how == "refused":
        run("systemctl", "stop", "lab-imds.service")
    elif how in ("silent", "error"):
        write(IMDS_MODE, how)
    else:
        raise NodeError(f"{how!r}: use refused, silent or error.")
    return {}


def undo_imds_down(node: dict, done: dict) -> None:
    if os.path.exists(IMDS_MODE):
        os.unlink(IMDS_MODE)
    run("systemctl", "start", "lab-imds.service")
    retry(30.0, imds_answers)


def play_namespace(node: dict, how: str = "named") -> dict:
    if how == "named":
        run("ip", "netns", "add", BUSY_NAMESPACE)
    elif how == "hidden":
        options = ["--property=PrivateNetwork=yes", f"--unit={HIDDEN_UNIT}", "--quiet"]
        run("systemd-run", *options, "sleep", "infinity")
    else:
        raise NodeError(f"{how!r}: use named or hidden.")
    return {"how": how}


def undo_namespace(node: dict, done: dict) -> None:
    if done["how"] == "named":
        run("ip", "netns", "delete", BUSY_NAMESPACE)
    else:
        run("systemctl", "stop", f"{HIDDEN_UNIT}.service")


def play_rxe_gone(node: dict, rail: str) -> dict:
    run("rdma", "link", "delete", rail_of(node, rail)["rdma_device"])
    return {"rail": rail}


def undo_rxe_gone(node: dict, done: dict) -> None:
    add_rdma_device(rail_of(node, done["rail"]))


def play_modprobe_second(node: dict, value: str = "0") -> dict:
    write(SECOND_OPTIONS, f"options ib_core netns_mode={value}\n")
    return {}


def undo_modprobe_second(node: dict, done: dict) -> None:
    os.unlink(SECOND_OPTIONS)


def play_ib_link_layer(node: dict, rail: str) -> dict:
    path = "/sys/module/rdma_rxe/parameters/lab_ib_link"
    if not os.path.exists(path):
        raise NodeError(
            "Only the edited rxe can claim an InfiniBand link layer; start the lab with --driver lab."
        )
    write(path, rail_of(node, rail)["rdma_device"])
    return {"path": path, "before": "none"}


FAULTS: dict = {
    "address-foreign": (play_address_foreign, undo_address_foreign),
    "address-missing": (play_address_missing, undo_rail),
    "arp": (play_arp, undo_value),
    "exclusive": (play_exclusive, undo_exclusive),
    "foreign-route": (play_foreign_route, undo_foreign_route),
    "ib-link-layer": (play_ib_link_layer, undo_value),
    "imds-down": (play_imds_down, undo_imds_down),
    "modprobe-second": (play_modprobe_second, undo_modprobe_second),
    "mtu": (play_mtu, undo_rail),
    "namespace": (play_namespace, undo_namespace),
    "oca-malformed": (play_oca_malformed, undo_oca),
    "oca-unreadable": (play_oca_unreadable, undo_oca),
    "rp-filter": (play_rp_filter, undo_value),
    "rxe-gone": (play_rxe_gone, undo_rxe_gone),
    "stray-child": (play_stray_child, undo_stray_child),
    "swap-nics": (play_swap, undo_swap),
    "table-taken": (play_table_taken, undo_table_taken),
}


def note_of(name: str) -> str:
    """The file that remembers a fault in force."""
    return f"{ACTIVE}/{name}.json"


def fault(name: str, *arguments: str) -> None:
    """Play a fault and remember it. One that is in force already is refused."""
    if name not in FAULTS:
        raise NodeError(f"There is no fault {name!r}.")
    if os.path.exists(note_of(name)):
        raise NodeError(f"The fault {name} is in force already; undo it first.")
    done = FAULTS[name][0](document(), *arguments)
    os.makedirs(ACTIVE, exist_ok=True)
    write(note_of(name), json.dumps({"arguments": arguments, "done": done}))


def undo(name: str) -> None:
    """Take a fault back that is in force."""
    note = read(note_of(name))
    if name not in FAULTS or note is None:
        raise NodeError(f"The fault {name} is not in force.")
    FAULTS[name][1](document(), json.loads(note)["done"])
    os.unlink(note_of(name))


def active() -> None:
    """Print the faults in force with their arguments."""
    notes = {name: read(note_of(name)) for name in FAULTS}
    print(
        json.dumps({name: json.loads(note)["arguments"] for name, note in notes.items() if note is not None})
    )


# --- fingerprint ----------------------------------------------------------------------------------------------------


def gid_table(device: str) -> list[str]:
    """The filled GID entries of a device's port as 'GID type netdev', in the order of their index."""
    entries = []
    port = f"/sys/class/infiniband/{device}/ports/1"
    for index in range(GIDS_READ):
        kind = read(f"{port}/gid_attrs/types/{index}")
        if kind is not None:
            entries.append(f"{read(f'{port}/gids/{index}')} {kind} {read(f'{port}/gid_attrs/ndevs/{index}')}")
    return entries


def fingerprint() -> None:
    """Print what faults may change. Taking a fault back must restore every value of it."""
    links = {
        link["ifname"]: {
            "mtu": link["mtu"],
            "flags": sorted(set(link["flags"]) & {"UP", "LOWER_UP"}),
            "mac": link["address"],
            "addresses": sorted(
                f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["family"] == "inet"
            ),
        }
        for link in json.loads(run("ip", "-j", "address", "show"))
    }
    names = [name for name in links if name.startswith("rdma")]
    sysctls = ("arp_ignore", "arp_announce", "arp_filter", "rp_filter")
    devices = sorted(os.listdir("/sys/class/infiniband"))
    print(
        json.dumps(
            {
                "links": links,
                "routes": sorted(
                    line.strip() for line in run("ip", "-4", "route", "show", "table", "all").splitlines()
                ),
                "rules": sorted(line.strip() for line in run("ip", "rule", "show").splitlines()),
                "sysctl": {
                    n: [read(f"/proc/sys/net/ipv4/conf/{n}/{s}") for s in sysctls] for n in sorted(names)
                },
                "netns": run("rdma", "system", "show").strip(),
                "namespaces": run("ip", "netns", "list").split(),
                "rdma": {
                    device: {
                        "state": read(f"/sys/class/infiniband/{device}/ports/1/state"),
                        "link_layer": read(f"/sys/class/infiniband/{device}/ports/1/link_layer"),
                        "gids": gid_table(device),
                    }
                    for device in devices
                },
                "oca": {which: read(oca_path(which)) for which in OCA_FILES},
                "modprobe": {
                    name: read(f"/etc/modprobe.d/{name}") for name in sorted(os.listdir("/etc/modprobe.d"))
                },
                "imds": imds_status(),
                "hidden": subprocess.run(
                    ["systemctl", "is-active", "--quiet", f"{HIDDEN_UNIT}.service"], check=False
                ).returncode
                == 0,
            }
        )
    )


COMMANDS: dict = {
    "boot": boot,
    "imds": imds,
    "fault": fault,
    "undo": undo,
    "active": active,
    "driver": change_driver,
    "fingerprint": fingerprint,
}


def main(arguments: list[str]) -> int:
    """Run one command, or several with ``--`` between them; errors go to standard error as a sentence, exit code 1."""
    calls: list[list[str]] = [[]]
    for word in arguments:
        calls[-1].append(word) if word != "--" else calls.append([])
    if not all(call and call[0] in COMMANDS for call in calls):
        print(f"usage: node.py {'|'.join(COMMANDS)} ... [-- COMMAND ...]", file=sys.stderr)
        return 2
    try:
        for call in calls:
            COMMANDS[call[0]](*call[1:])
    except (NodeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
