# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Area OCA: Oracle Cloud Agent, which gives the RDMA NICs their addresses. Private to rdma.k8s: it may change."""

from __future__ import annotations

import json
import re
from typing import Any, Callable, Optional

from ..cluster_snapshot import DriverPod
from ..errors import RdmaError
from ..finding import CRITICAL, ERROR, WARNING
from ..net import Address, parse_prefix
from ..nics import Nic
from ..oke import addressing, layout, oca
from ..oke.constants import DEFAULT_OCA_NETWORK
from ..oke.installed import Program
from ..oke.oca_file import netmask_of
from ..stamps import seconds_between
from .context import Fleet, Node
from .dra import no_driver
from .registry import (
    Outcome,
    bad,
    failed,
    fleet_check,
    listed,
    node_check,
    ok,
    passed,
    rolled_up,
    skipped,
    unclear,
    unknown,
    warned,
)

DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"
NETWORK_FILE = DIRECTORY + "/rdma_network.json"
FEATURES_FILE = DIRECTORY + "/rdma_features_enable.json"
STATE_FILE = "/var/run/oci-hpc/oci-hpc-rdma-configure.json"
ABSENT = "%s does not exist; the defaults apply (RDMA network %s)."
NO_NIC = "No Ethernet RDMA NIC was found on this node."
PLUGINS = ("Compute HPC RDMA Authentication", "Compute HPC RDMA Auto-Configuration")
KNOWN_FLAGS = {
    "overwrite_config_files": False,
    "single_subnet": True,
    "modify_subnet": True,
    "modify_arp": True,
}


@node_check(
    "RDMA-OCA-001",
    "The OCA configuration directory is readable",
    WARNING,
    "Mount the directory into the driver pods (extraVolumes) when OCA uses another RDMA network than the default.",
    needs=("oca",),
    evidence=(DIRECTORY,),
)
def directory(node: Node) -> Outcome:
    """F54, F56."""
    state = node.snapshot.oca.directory if node.snapshot.oca is not None else None
    if state == "present":
        return passed("The directory is readable.")
    if state == "absent":
        return passed(ABSENT % ("The directory", DEFAULT_OCA_NETWORK))
    if state is None:
        return unknown(node.why_not(DIRECTORY, "oca"))
    return warned(
        "The directory is there and cannot be read: the driver would assume %s." % DEFAULT_OCA_NETWORK,
        expected="readable",
        observed=state,
    )


def _network_text(node: Node) -> Any:
    """Text of rdma_network.json, or the outcome that ends the check: absent (skip) or unreadable (unknown)."""
    text = node.snapshot.oca.rdma_network if node.snapshot.oca is not None else None
    if text is None:
        return unknown(node.why_not(NETWORK_FILE, "oca"))
    return text or skipped(ABSENT % ("rdma_network.json", DEFAULT_OCA_NETWORK))


@node_check(
    "RDMA-OCA-002",
    "rdma_network.json can be parsed and names an RDMA network",
    ERROR,
    "Correct the file; the driver falls back to its default network otherwise, and OCA does not.",
    needs=("oca",),
    evidence=(NETWORK_FILE,),
)
def network_file(node: Node) -> Outcome:
    """F51, F52: structure of the file."""
    text = _network_text(node)
    if isinstance(text, Outcome):
        return text
    try:
        network = oca.parse_network(text)
    except RdmaError as error:
        if error.code.startswith("oca_prefix_"):
            return passed("The file is well formed; its value is judged by RDMA-OCA-003.")
        return failed(
            error.message, expected="rdma-network[0].default-settings.rdma_network", observed=error.code
        )
    return passed("rdma_network is %s." % network)


@node_check(
    "RDMA-OCA-003",
    "The RDMA network of OCA is a masked IPv4 prefix",
    ERROR,
    "Write the network with its host bits cleared, for example 10.224.0.0/12.",
    needs=("oca",),
    evidence=(NETWORK_FILE,),
)
def network_value(node: Node) -> Outcome:
    """F52: value of rdma_network."""
    text = _network_text(node)
    if isinstance(text, Outcome):
        return text
    try:
        network = oca.parse_network(text)
    except RdmaError as error:
        if error.code.startswith("oca_prefix_"):
            return failed(error.message, expected="masked IPv4 prefix", observed=error.code)
        return skipped("The file names no network; see RDMA-OCA-002.")
    return passed("%s." % network)


def first_settings(text: str) -> dict[str, Any]:
    """``rdma-network[0]`` of a file that :func:`oca.parse_network` accepts, reduced to its objects."""
    document = json.loads(text)
    entry = document["rdma-network"][0]
    return {key: value for key, value in entry.items() if isinstance(value, dict)}


def _valid_settings(node: Node) -> Any:
    text = _network_text(node)
    if isinstance(text, Outcome):
        return text
    try:
        oca.parse_network(text)
    except RdmaError:
        return skipped("The file names no usable network; see RDMA-OCA-002 and RDMA-OCA-003.")
    return first_settings(text)


@node_check(
    "RDMA-OCA-004",
    "Netmask fields of rdma_network.json agree with its network",
    ERROR,
    "Write the netmask of the RDMA network's length (255.240.0.0 for /12) into subnet-settings.",
    needs=("oca",),
    evidence=(NETWORK_FILE,),
)
def netmask_fields(node: Node) -> Outcome:
    """F55: subnet-settings.netmask and override_netconfig_netmask."""
    settings = _valid_settings(node)
    if isinstance(settings, Outcome):
        return settings
    subnet = settings.get("subnet-settings", {})
    wanted = netmask_of(node.oca_config.network)
    details = []
    for key in ("netmask", "override_netconfig_netmask"):
        found = subnet.get(key)
        if found is not None:
            same = found == wanted
            details.append(
                ok(key) if same else bad(key, "is %r, %s needs %s" % (found, node.oca_config.network, wanted))
            )
    return rolled_up(details, "Netmask %s." % wanted, "The file sets no netmask.", wanted)


@node_check(
    "RDMA-OCA-005",
    "The switches of rdma_network.json are a known combination",
    WARNING,
    "Compare with the image's default; children rely on OCA's own subnet and ARP settings.",
    needs=("oca",),
    evidence=(NETWORK_FILE,),
)
def switches(node: Node) -> Outcome:
    """F55: the combination that OCI documents."""
    settings = _valid_settings(node)
    if isinstance(settings, Outcome):
        return settings
    defaults = settings.get("default-settings", {})
    details = [
        ok(key)
        if defaults[key] is wanted
        else bad(key, "is %s" % json.dumps(defaults[key]), json.dumps(wanted), json.dumps(defaults[key]))
        for key, wanted in KNOWN_FLAGS.items()
        if key in defaults
    ]
    return rolled_up(
        details, "%d switches as documented.", "The file sets none of the switches.", as_status="warn"
    )


@node_check(
    "RDMA-OCA-006",
    "OCA addresses the RDMA NICs in the classic way",
    CRITICAL,
    "Turn host-serial and topology based addressing off; the oke-rdma profile refuses both.",
    needs=("oca",),
    evidence=(FEATURES_FILE,),
)
def address_mode(node: Node) -> Outcome:
    """F53, F59, F142: no file means that the mode is not known, and the whole host is checked instead (OCA-007)."""
    text = node.snapshot.oca.rdma_features_enable if node.snapshot.oca is not None else None
    if text is None:
        return unknown(node.why_not(FEATURES_FILE, "oca"))
    if not text:
        return skipped("rdma_features_enable.json does not exist; the layout is judged by RDMA-OCA-007.")
    try:
        mode = oca.parse_features(text)
    except RdmaError as error:
        return failed(error.message, expected="classic", observed=error.code)
    if mode != "classic":
        return failed("OCA uses %s addressing." % mode, expected="classic", observed=mode)
    return passed("Classic addressing.")


@node_check(
    "RDMA-OCA-007",
    "All RDMA NICs of the host follow the classic layout",
    ERROR,
    "Compare each address with the formula ('rdma-k8s explain RDMA-OCA-012 --node NAME'); fix OCA's configuration.",
    needs=("oca", "links"),
    evidence=(FEATURES_FILE, "rtnetlink", "imds:/vnics/"),
)
def whole_host(node: Node) -> Outcome:
    """F36, F142: only when the address mode is not known."""
    if not node.has_ipv4_children:
        return skipped("The fabric is %s: no classic IPv4 layout." % node.fabric)
    if node.oca_config.address_mode is not None:
        return skipped("The address mode is known (%s)." % node.oca_config.address_mode)
    if not node.ethernet_nics:
        return skipped(NO_NIC)
    if node.vnic is None:
        return unknown(node.why_no_vnic())
    try:
        checked = layout.check_layout(node.interfaces, node.vnic, node.oca_config.network)
    except RdmaError as error:
        if error.retryable:
            return unknown(error.message)
        return failed(error.message, expected=str(error.details.get("expected", "")), observed=error.code)
    return passed("%d NICs follow the layout." % checked)


@node_check(
    "RDMA-OCA-008",
    "The agent is new enough",
    ERROR,
    "Update the Oracle Cloud Agent.",
    needs=("oca",),
    evidence=("oracle-cloud-agent",),
)
def agent_version(node: Node) -> Outcome:
    """DEV-12: compared number by number, never as text."""
    minimum = node.policy.agent_version
    if minimum is None:
        return skipped("No minimum is given (setting 'agent_version').")
    found = node.snapshot.oca.agent_version if node.snapshot.oca is not None else None
    numbers = version_numbers(found or "")
    if not numbers:
        return unknown("The agent's version is not known.")
    if numbers < (version_numbers(minimum) or ()):
        return failed("The agent has version %s." % found, expected=">= %s" % minimum, observed=str(found))
    return passed("Version %s." % found)


def version_numbers(text: str) -> Optional[tuple[int, ...]]:
    """``1.39.0-2`` -> (1, 39, 0); ``None`` when the text does not begin with numbers."""
    match = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", text, re.ASCII)
    return tuple([int(part) for part in match.group().split(".")]) if match else None


@node_check(
    "RDMA-OCA-009",
    "Both RDMA plugins of the agent are enabled",
    CRITICAL,
    "Enable 'Compute HPC RDMA Authentication' and 'Compute HPC RDMA Auto-Configuration' on the instance.",
    needs=("oca",),
    evidence=("imds:/instance/",),
)
def plugins(node: Node) -> Outcome:
    """F58, DEV-10: without both the NICs get no address."""
    states = node.snapshot.oca.plugins if node.snapshot.oca is not None else None
    if not isinstance(states, dict):
        return skipped("Neither the metadata nor the node's files list the agent's plugins.")
    details = []
    for name in PLUGINS:
        state = states.get(name)
        if state is None:
            details.append(bad(name, "is not enabled", "enabled", "absent"))
        elif str(state).upper() == "DISABLED":
            details.append(bad(name, "is disabled", "enabled", str(state)))
        elif str(state).upper() not in ("RUNNING", "ENABLED"):
            details.append(bad(name, "is enabled and does not run (%s)" % state, "running", str(state)))
        else:
            details.append(ok(name))
    return rolled_up(details, "Both plugins are on.", "")


@node_check(
    "RDMA-OCA-010",
    "The agent has finished the configuration of the RDMA NICs",
    ERROR,
    "Wait, then look into the agent's log.",
    needs=("oca",),
    evidence=(STATE_FILE,),
)
def configure_state(node: Node) -> Outcome:
    """The agent writes its progress; 'finished' is the only good end."""
    text = node.snapshot.oca.configure_state if node.snapshot.oca is not None else None
    if text is None:
        return unknown(node.why_not(STATE_FILE, "oca"))
    if not text:
        return skipped("The agent wrote no state file (%s)." % STATE_FILE)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return failed("%s is not JSON." % STATE_FILE, expected="finished", observed="not JSON")
    state = document.get("state") if isinstance(document, dict) else None
    if state != "finished":
        return failed(
            "The agent's state is %s." % json.dumps(state), expected="finished", observed=json.dumps(state)
        )
    return passed("finished.")


@node_check(
    "RDMA-OCA-012",
    "Each RDMA NIC has the address that the OCA layout gives it",
    CRITICAL,
    "Every claim on this NIC fails until it has the expected address: look for swapped names, a wrong OCA network, or "
    "an agent that has not finished.",
    needs=("links",),
    evidence=("rtnetlink", "imds:/vnics/", NETWORK_FILE),
)
def parent_addresses(node: Node) -> Outcome:
    """F13, F35: parent = OCA network + index * block + position; addresses outside the network count as 'other'."""
    if not node.has_ipv4_children:
        return skipped("The fabric is %s: OCA gives no IPv4 address." % node.fabric)
    if not node.ethernet_nics:
        return skipped(NO_NIC)
    if node.vnic is None:
        return unknown(node.why_no_vnic())
    details = []
    for nic, child in node.children:
        try:
            expected = child.parent if isinstance(child, addressing.Child) else _parent(node, nic)
            layout.check_parent_address(node.interfaces[nic.name], expected)
        except RdmaError as error:
            wanted = str(error.details.get("expected", ""))
            found = ", ".join([str(address) for address in node.addresses_of(nic)])
            details.append(bad(nic.name, error.message, wanted, found or "none"))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "%d NICs have their address.", NO_NIC)


def _parent(node: Node, nic: Nic) -> Address:
    """The parent of a NIC that cannot have a child in the range; its own address does not depend on that."""
    return addressing.derive_parent(node.vnic, node.index_of(nic), node.oca_config.network).parent


@node_check(
    "RDMA-OCA-015",
    "The network that the NICs really use is the one that the driver assumes",
    ERROR,
    "Mount the OCA directory into the driver pods, or write rdma_network.json with the network in use.",
    needs=("links", "oca"),
    evidence=("rtnetlink", NETWORK_FILE),
)
def effective_network(node: Node) -> Outcome:
    """F56, DEV-34: without a file OCA may use 192.168.0.0/16 while the driver assumes 10.224.0.0/12."""
    if not node.has_ipv4_children:
        return skipped("The fabric is %s: no IPv4 network." % node.fabric)
    network = node.oca_config.network
    details = []
    for nic in node.ethernet_nics:
        addresses = node.addresses_of(nic)
        if not addresses:
            details.append(unclear(nic.name, "no address yet"))
        elif not any(network.contains(address) for address in addresses):
            legacy = LEGACY_NETWORK.contains(addresses[0])
            more = " (the agent's built-in %s)" % LEGACY_NETWORK if legacy else ""
            message = "%s is outside %s%s" % (addresses[0], network, more)
            details.append(bad(nic.name, message, str(network), str(addresses[0])))
        else:
            details.append(ok(nic.name))
    return rolled_up(details, "All addresses are in %s." % network, NO_NIC)


LEGACY_NETWORK = parse_prefix("192.168.0.0/16")


def _on_range_pods(fleet: Fleet, check: Callable[[Node, Program, DriverPod], Outcome]) -> dict[str, Outcome]:
    """A judgement of the pod on each node that reads the files of OCA, where there are some."""
    outcomes = {}
    missing = no_driver(fleet)
    for node in fleet.nodes:
        entry = fleet.cluster_nodes[node.name]
        held = None if entry is None else fleet.installed.range_pod(entry.name)
        if not _has_files(node):
            outcomes[node.name] = skipped("OCA has no configuration file on this node.")
        elif missing is not None:
            outcomes[node.name] = missing
        elif entry is None:
            outcomes[node.name] = unknown(fleet.why_no_cluster_node(node))
        elif held is None and any(found.daemonset.pods is None for found in fleet.installed.range_source):
            outcomes[node.name] = unknown("The pods of the driver could not be read.")
        elif held is None:
            outcomes[node.name] = skipped("No pod that reads the files is on this node; see RDMA-DRA-001.")
        else:
            outcomes[node.name] = check(node, *held)
    return outcomes


def _has_files(node: Node) -> bool:
    files = node.snapshot.oca
    return files is not None and bool(files.rdma_network or files.rdma_features_enable)


@fleet_check(
    "RDMA-OCA-013",
    "The driver sees the configuration of OCA",
    ERROR,
    "Mount the directory of the node, read-only: extraVolumes and extraVolumeMounts of the chart.",
    needs=("oca",),
    evidence=("daemonsets.apps", DIRECTORY),
    cluster=True,
)
def mounted(fleet: Fleet) -> dict[str, Outcome]:
    """F54, F118: a file that the driver does not see counts as absent, silently, and the default network is taken."""
    return _on_range_pods(fleet, _mounted_on)


def _mounted_on(node: Node, program: Program, pod: DriverPod) -> Outcome:
    if program.has_mounted(DIRECTORY):
        return passed("%s has it mounted." % program.name)
    return failed(
        "%s does not mount %s, and a file is there." % (program.name, DIRECTORY),
        expected=DIRECTORY,
        observed=listed([mount.host for mount in program.container.mounts if mount.host]) or "no directory",
    )


@fleet_check(
    "RDMA-OCA-014",
    "The driver was started after the last change of OCA's files",
    WARNING,
    "Restart the driver pod of the node, drained: the files are read at its start.",
    needs=("oca",),
    evidence=("pods", DIRECTORY),
    cluster=True,
)
def started_later(fleet: Fleet) -> dict[str, Outcome]:
    """F54: the files are read once. Both times are of the clock of the node."""
    return _on_range_pods(fleet, _started_on)


def _started_on(node: Node, program: Program, pod: DriverPod) -> Outcome:
    changed = node.snapshot.oca.modified if node.snapshot.oca is not None else None
    started = seconds_between("1970-01-01T00:00:00Z", pod.started)
    if started is None:
        return unknown("The pod %s does not run." % pod.name)
    if changed is None:
        return unknown("The time of the last change of the files is not known.")
    if started < changed:
        return warned(
            "The pod %s was started %d s before the last change of the files."
            % (pod.name, changed - started),
            expected="started later",
            observed=pod.started,
        )
    return passed("The pod %s was started at %s." % (pod.name, pod.started))
