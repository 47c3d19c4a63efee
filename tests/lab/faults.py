# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults that a lab can play: their names, arguments and where they happen.

A fault of the kind ``guest`` is carried out by ``guest/node.py`` inside the node, one of the kind ``host`` from
outside, through QEMU. Each has an undo that restores what was.
"""

from __future__ import annotations

import dataclasses

from . import plan, process
from .errors import LabError
from .lab import Lab


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault. ``arguments`` names its arguments in order; those in brackets may be left out."""

    name: str
    summary: str
    arguments: tuple[str, ...] = ()
    kind: str = "guest"

    @property
    def least(self) -> int:
        """How many arguments must be given."""
        return sum(not argument.startswith("[") for argument in self.arguments)

    @property
    def usage(self) -> str:
        """Name and arguments, as one types them."""
        return " ".join((self.name, *self.arguments))


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("address-foreign", "the NIC has an address that is not its own", ("RAIL", "[ADDRESS/LENGTH]")),
        Fault("address-missing", "the NIC has no address", ("RAIL",)),
        Fault("arp", "an ARP setting of the NIC is wrong", ("RAIL", "[NAME=VALUE]")),
        Fault("exclusive", "the running RDMA namespace mode is exclusive"),
        Fault("foreign-route", "a route of the host lies in the child range", ("[NETWORK]",)),
        Fault("ib-link-layer", "the RDMA device says InfiniBand (lab rxe, for discovery only)", ("RAIL",)),
        Fault("imds-down", "the metadata service is refused, silent, or answers with an error", ("[HOW]",)),
        Fault("modprobe-second", "a second modprobe file sets the RDMA namespace mode", ("[VALUE]",)),
        Fault("mtu", "the NIC has another MTU", ("RAIL", "[MTU]")),
        Fault("namespace", "a network namespace is alive, by name or hidden in a service", ("[HOW]",)),
        Fault("oca-malformed", "an OCA file (network or features) is cut off", ("[FILE]",)),
        Fault("oca-unreadable", "an OCA file (network or features) is a directory", ("[FILE]",)),
        Fault("rail-broken", "the cable of the NIC is out", ("RAIL",), kind="host"),
        Fault("rp-filter", "the reverse path filter of the NIC is strict", ("RAIL", "[VALUE]")),
        Fault("rxe-gone", "the RDMA device of the NIC is gone", ("RAIL",)),
        Fault("stray-child", "an IPvlan child of the NIC was left on the host", ("RAIL",)),
        Fault("swap-nics", "two NICs have each other's names", ("RAIL", "RAIL")),
        Fault("table-taken", "something else uses a routing table of the profile", ("[TABLE]",)),
    )
}


def check(name: str, arguments: list[str], rails: int) -> Fault:
    """The fault called ``name`` if its arguments fit, else an error that shows how it is used."""
    fault = FAULTS.get(name)
    if fault is None:
        raise LabError("fault_unknown", f"There is no fault {name!r}: use one of {', '.join(FAULTS)}.")
    if not fault.least <= len(arguments) <= len(fault.arguments):
        raise LabError("fault_usage", f"Usage: fault NODE {fault.usage}")
    for kind, text in zip(fault.arguments, arguments, strict=False):
        if kind == "RAIL" and not (text.isascii() and text.isdigit() and int(text) < rails):
            raise LabError("fault_usage", f"Fault {name}: rail {text!r} is not one of 0 to {rails - 1}.")
    return fault


def play(lab: Lab, node: int, name: str, arguments: list[str]) -> None:
    """Play a fault on a node."""
    fault = check(name, arguments, lab.state().spec.rails)
    if fault.kind == "guest":
        lab.node_program(node, "fault", name, *arguments)
        return
    note = lab.directory / f"node{node}.{name}"
    if note.exists():
        raise LabError("fault_active", f"The fault {name} is in force on node{node} already; undo it first.")
    _set_link(lab, node, int(arguments[0]), up=False)
    note.write_text(arguments[0], encoding="utf-8")


def undo(lab: Lab, node: int, name: str) -> None:
    """Take a fault of a node back."""
    fault = FAULTS.get(name)
    if fault is None:
        raise LabError("fault_unknown", f"There is no fault {name!r}: use one of {', '.join(FAULTS)}.")
    if fault.kind == "guest":
        lab.node_program(node, "undo", name)
        return
    note = lab.directory / f"node{node}.{name}"
    if not note.exists():
        raise LabError("fault_inactive", f"The fault {name} is not in force on node{node}.")
    _set_link(lab, node, int(note.read_text(encoding="utf-8")), up=True)
    note.unlink()


def _set_link(lab: Lab, node: int, rail: int, up: bool) -> None:
    """Plug the cable of a rail in or out. Both ends of QEMU's own link go down, so the guest sees no carrier."""
    if not 0 <= rail < plan.MAX_RAILS:
        raise LabError("fault_usage", f"There is no rail {rail}.")
    with process.Qmp(lab.directory, f"node{node}.qmp") as qmp:
        qmp.command("set_link", name=f"nic{rail}", up=up)
