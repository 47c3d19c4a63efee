# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make the RoCE ports of a node lossless, and prove by reading that they are. Private to rdma.k8s.

All refusals come before the first change. Then each port gets the map, PFC, congestion notification and, last, the mark
on new connections, so that marked traffic never meets a port that is not ready for it. Then everything is read again:
a driver that took a setting and does not have it is a failure (S54). Only what was proven is kept for the next boot.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from ..core import roce_qos, roce_unit
from ..core.errors import RdmaError
from ..core.roce_qos import ROCE_V2, Difference, PortQos, Wish
from . import commands, dcb, mlnx_qos, roce_ports, uplinks
from .changes import Changes, write_value
from .files import Root, reason_of
from .roce_ports import Port

OWNER = "roce_qos"
AUTO, NETLINK, TOOL = BACKENDS = ("auto", "netlink", "mlnx_qos")
TCP_ECN = "/proc/sys/net/ipv4/tcp_ecn"
SWITCHES = "The switches are not proven: they must carry the same priorities with PFC and ECN, or nothing here helps."
_DCB_TOOL = "dcb"


@dataclass(frozen=True)
class Options:
    """What the module was asked for: patterns of interfaces or devices, the wish, and how."""

    interfaces: Sequence[str]
    wish: Wish
    backend: str = AUTO
    take_dcbx: bool = False
    tcp_ecn: Optional[int] = None
    persist: bool = True


def apply(changes: Changes, options: Options) -> dict[str, Any]:
    """Bring the ports to the wished state.

    :returns: ``ports`` with the state of each port after the changes (in check mode: before them), ``notes`` with
        what remains open.
    :raises RdmaError: ``nics_none_named``, ``roce_port_missing``, ``qos_not_ethernet``, ``nic_carries_default_route``,
        ``route_list_unknown``, ``dcb_unsupported``, ``rdma_cm_missing``, ``tool_missing`` before the first change;
        ``qos_ignored``, ``netdev_missing``, ``value_not_written`` and the like later.
    """
    root = changes.root
    chosen = choose(root, options.interfaces)
    uplinks.require_other(root, [port.netdev for port in chosen if port.netdev])
    backends = {port: _backend(root, port, options.backend) for port in chosen}
    if not roce_ports.is_mounted(root):
        raise RdmaError(
            "rdma_cm_missing",
            "%s does not exist, so RDMA-CM cannot be given a type of service." % roce_ports.CONFIGFS,
            hint="Load the module rdma_cm and mount configfs at /sys/kernel/config.",
            path=roce_ports.CONFIGFS,
        )
    boot_tool = _boot_tool(root, options, backends.values())
    for port in chosen:
        _change_port(changes, options, port, backends[port])
    if options.tcp_ecn is not None:
        changes.value(TCP_ECN, str(options.tcp_ecn))
    found = [_read(root, port, backends[port]) for port in chosen]
    if not changes.check_mode:
        _refuse_ignored(options.wish, found)
    _persist(changes, options, chosen, found, boot_tool)
    return {"ports": [as_dict(port) for port in found], "notes": notes(found)}


def choose(root: Root, patterns: Iterable[str]) -> list[Port]:
    """The ports whose interface or device fits a pattern; every pattern must fit something.

    :raises RdmaError: ``nics_none_named``, ``roce_port_missing`` or ``qos_not_ethernet`` (S48).
    """
    wanted = list(patterns)
    if not wanted:
        raise RdmaError("nics_none_named", "No NIC is named in interfaces.", hint="Name the interfaces.")
    known = roce_ports.ports(root)
    chosen: list[Port] = []
    for pattern in wanted:
        fitting = [
            port
            for port in known
            if (port.netdev and fnmatch.fnmatchcase(port.netdev, pattern))
            or fnmatch.fnmatchcase(port.device, pattern)
        ]
        if not fitting:
            raise RdmaError(
                "roce_port_missing",
                "No RDMA port has an interface or device %s; this node has %s."
                % (pattern, ", ".join([port.name for port in known]) or "none"),
                hint="See the names with rdma.k8s.nic_info.",
                pattern=pattern,
            )
        chosen += [port for port in fitting if port not in chosen]
    roce_qos.refuse_infiniband(
        [PortQos(port.device, port.port, port.netdev, port.link_layer) for port in chosen]
    )
    return chosen


def _backend(root: Root, port: Port, asked: str) -> str:
    """How DCB of a port is set: netlink, the tool where the driver needs it, empty for a VF without DCB (S53)."""
    if asked != TOOL:
        try:
            dcb.read(port.netdev)
            return NETLINK
        except RdmaError as error:
            if error.code != "dcb_unsupported":
                raise
            if port.is_vf:
                return ""
            if asked == NETLINK or commands.find(root, mlnx_qos.TOOL) is None:
                raise
    mlnx_qos.read(root, port.netdev)
    return TOOL


def _state(root: Root, port: Port, backend: str) -> dcb.State:
    if not backend:
        raise dcb.unsupported(port.netdev)
    return mlnx_qos.read(root, port.netdev) if backend == TOOL else dcb.read(port.netdev)


def _read(root: Root, port: Port, backend: str) -> PortQos:
    if not root.exists("%s/%s" % (roce_ports.NET, port.netdev)):
        raise _gone(port)

    def ask(asked: Port) -> dcb.State:
        return _state(root, asked, backend)

    found = roce_ports.read(root, port, ask)
    if backend and found.dcb:
        raise dcb.unsupported(port.netdev)
    return found


def _gone(port: Port) -> RdmaError:
    return RdmaError(
        "netdev_missing",
        "There is no interface %s any more." % port.netdev,
        hint="See in the kernel log why it went away.",
        netdev=port.netdev,
    )


def _change_port(changes: Changes, options: Options, port: Port, backend: str) -> None:
    root, wish = changes.root, options.wish
    if backend:
        _change_dcb(changes, options, port, backend)
    before = _read(root, port, backend)
    for setting, side in (("ecn_np", "roce_np"), ("ecn_rp", "roce_rp")):
        if getattr(before, setting) is not None:
            changes.value(port.ecn_enable(side, wish.rdma_priority), "1")
    if before.cnp_dscp is not None:
        path = next(path for path in port.cnp_files if root.exists(path))
        changes.value(path, str(wish.cnp_dscp))
    _change_cm(changes, wish, port)
    if before.traffic_class is not None:
        path = port.traffic_class_file

        def force() -> None:
            write_value(root, path, str(wish.traffic_class))

        changes.live("traffic_class", path, before.traffic_class, wish.traffic_class, force)


def _change_dcb(changes: Changes, options: Options, port: Port, backend: str) -> None:
    root, netdev = changes.root, port.netdev
    state = _state(root, port, backend)
    kind, wish = _KINDS[backend], options.wish

    def change(setting: str, value: Any) -> None:
        def write() -> None:
            _write(root, backend, netdev, setting, value)

        changes.live(kind, "%s %s" % (netdev, setting), state.get(setting), value, write)

    if options.take_dcbx and state.dcbx is not None:
        change("dcbx", _taken(state.dcbx))
    if backend == TOOL:
        change("trust", roce_qos.DSCP)
    for dscp, priority in wish.dscp_map.items():
        if backend == TOOL:
            change("dscp_%d" % dscp, priority)
        else:
            _change_entry(changes, netdev, dscp, priority, state.priorities(dscp))
    change("pfc", wish.pfc)


def _taken(flags: int) -> int:
    """Flags of DCBX with the host as the one that negotiates (S62)."""
    return flags & ~roce_qos.DCBX_LLD | roce_qos.DCBX_HOST


def _change_entry(changes: Changes, netdev: str, dscp: int, priority: int, held: list[int]) -> None:
    """One message a step, so that a run that is killed between two of them leaves a state that its record knows."""
    name = "%s dscp_%d" % (netdev, dscp)
    left = list(held)
    for wrong in held:
        if wrong != priority:
            before = dcb.told(left)
            left.remove(wrong)

            def remove(wrong: int = wrong) -> None:
                dcb.remove_dscp(netdev, dscp, wrong)

            changes.live(_KINDS[NETLINK], name, before, dcb.told(left), remove)

    def add() -> None:
        dcb.add_dscp(netdev, dscp, priority)

    changes.live(_KINDS[NETLINK], name, dcb.told(left), priority, add)


def _write(root: Root, backend: str, netdev: str, setting: str, value: Any) -> None:
    if backend == TOOL:
        mlnx_qos.write(root, netdev, setting, value)
    else:
        dcb.write(netdev, setting, value)


def _change_cm(changes: Changes, wish: Wish, port: Port) -> None:
    """Type of service and GID type of RDMA-CM. A new directory shows what the device has: 0 and RoCE v2 where nobody
    changed it (S58), which check mode cannot ask."""
    root, path = changes.root, port.cm_directory
    there = os.path.isdir(root.path + path)

    def make() -> None:
        write_cm_directory(root, path, True)

    changes.live("rdma_cm", path, there, True, make)
    fresh = changes.check_mode and not there
    changes.value(port.cm_file("default_roce_mode"), ROCE_V2, ROCE_V2 if fresh else None)
    changes.value(port.cm_file("default_roce_tos"), str(wish.traffic_class), "0" if fresh else None)


def _refuse_ignored(wish: Wish, found: Iterable[PortQos]) -> None:
    """S54: what was taken without an error must be there."""
    lost: list[tuple[str, Difference]] = []
    for port in found:
        differences = roce_qos.other_differences(wish, port)
        if not port.dcb:
            differences = (*roce_qos.dcb_differences(wish, port), *differences)
        lost += [(port.name, difference) for difference in differences]
    if lost:
        raise RdmaError(
            "qos_ignored",
            "The driver took the settings without an error and does not have them: %s."
            % "; ".join(["%s: %s" % (name, difference.message) for name, difference in lost]),
            hint="Look at the kernel log, at the version of driver and firmware, and at who negotiates DCBX; "
            "backend: mlnx_qos asks the tool of the vendor.",
            ports=sorted({name for name, _difference in lost}),
        )


def as_dict(port: PortQos) -> dict[str, Any]:
    """A port as the result of the module has it."""
    values = {name: getattr(port, name) for name in port.__dataclass_fields__}
    return {"name": port.name, **values}


def notes(found: Sequence[PortQos]) -> list[str]:
    """What this node cannot prove or does not have."""
    said = [SWITCHES]
    taken = [port.name for port in found if not port.dcb and roce_qos.overridable(port)]
    if taken:
        said.append(
            "%s: DCBX is not left to the host, so firmware or switch can change trust and PFC again; "
            "take_dcbx changes that." % ", ".join(taken)
        )
    without = [port.name for port in found if port.dcb]
    if without:
        said.append("%s: no DCB of its own; a virtual function has that of its parent." % ", ".join(without))
    for setting, text in (
        (
            "ecn_np",
            "the driver shows no switches for ECN, so that it is on for this priority was not checked",
        ),
        ("cnp_dscp", "the DSCP value of CNP can be neither read nor set"),
        (
            "traffic_class",
            "the device has no traffic class; programs without RDMA-CM must ask for it themselves",
        ),
    ):
        names = [port.name for port in found if getattr(port, setting) is None]
        if names:
            said.append("%s: %s." % (", ".join(names), text))
    return said


# The next boot


def _boot_tool(root: Root, options: Options, backends: Iterable[str]) -> str:
    """The program that sets DCB at boot: that of iproute2, or that of the vendor where it is what sets it now."""
    used = set(backends) - {""}
    if not options.persist or not used:
        return ""
    tool = mlnx_qos.TOOL if TOOL in used else _DCB_TOOL
    if commands.find(root, tool) is None:
        if tool == _DCB_TOOL and commands.find(root, mlnx_qos.TOOL) is not None:
            return mlnx_qos.TOOL
        raise RdmaError(
            "tool_missing",
            "The program %s is needed to set DCB again at boot, and it is not on this node." % tool,
            hint="Install it (iproute2 5.11 or newer), or give persist: false and run this again after a boot.",
            tool=tool,
        )
    return tool


def _persist(
    changes: Changes, options: Options, chosen: Sequence[Port], found: Sequence[PortQos], tool: str
) -> None:
    if not options.persist:
        return
    lines = [
        (port.name, _programs(options, port, state, tool), _values(changes.root, options, port, state))
        for port, state in zip(chosen, found)
    ]
    if options.tcp_ecn is not None:
        lines.append(("TCP", [], [(str(options.tcp_ecn), TCP_ECN)]))
    changes.file(roce_unit.SCRIPT, roce_unit.script(lines), 0o755)
    changes.file(roce_unit.UNIT, roce_unit.unit())
    changes.file(roce_unit.WANTED, roce_unit.wanted())


_DCBX_WORDS = {1: "host", 2: "lld-managed", 4: "cee", 8: "ieee", 16: "static"}
"""The flags of DCBX as the program of iproute2 has them; it sets those that are named and clears the others."""


def _programs(options: Options, port: Port, state: PortQos, tool: str) -> list[list[str]]:
    wish = options.wish
    made = ["mkdir", "-p", port.cm_directory]
    loaded = ["modprobe", "rdma_cm"]
    if state.dcb or not tool:
        return [loaded, made]
    taken = [_taken(state.dcbx)] if options.take_dcbx and state.dcbx is not None else []
    if tool == mlnx_qos.TOOL:
        settings = [
            *[("dcbx", flags) for flags in taken],
            ("trust", roce_qos.DSCP),
            *[("dscp_%d" % dscp, value) for dscp, value in wish.dscp_map.items()],
        ]
        words = [mlnx_qos.words(setting, value) for setting, value in [*settings, ("pfc", wish.pfc)]]
        return [*[[tool, "-i", port.netdev, *each] for each in words], loaded, made]
    entries = ["%d:%d" % entry for entry in wish.dscp_map.items()]
    words = [[word for flag, word in _DCBX_WORDS.items() if flag & flags] for flags in taken]
    return [
        *[[tool, "dcbx", "set", "dev", port.netdev, *each] for each in words],
        [tool, "app", "replace", "dev", port.netdev, "dscp-prio", *entries],
        [tool, "pfc", "set", "dev", port.netdev, "prio-pfc", "all:off", "%d:on" % wish.rdma_priority],
        loaded,
        made,
    ]


def _values(root: Root, options: Options, port: Port, state: PortQos) -> list[tuple[str, str]]:
    wish = options.wish
    values = []
    for setting, side in (("ecn_np", "roce_np"), ("ecn_rp", "roce_rp")):
        if getattr(state, setting) is not None:
            values.append(("1", port.ecn_enable(side, wish.rdma_priority)))
    if state.cnp_dscp is not None:
        values.append((str(wish.cnp_dscp), next(path for path in port.cnp_files if root.exists(path))))
    values.append((ROCE_V2, port.cm_file("default_roce_mode")))
    values.append((str(wish.traffic_class), port.cm_file("default_roce_tos")))
    if state.traffic_class is not None:
        values.append((str(wish.traffic_class), port.traffic_class_file))
    return values


# Undo: how the kinds of records are read and written


_KINDS = {NETLINK: "dcb", TOOL: "mlnx_qos"}


def read_dcb(_root: Root, name: str) -> Any:
    """The name is `INTERFACE SETTING`."""
    netdev, setting = name.split()
    return dcb.read(netdev).get(setting)


def write_dcb(root: Root, name: str, value: Any) -> None:
    netdev, setting = name.split()
    _write(root, NETLINK, netdev, setting, value)


def read_mlnx_qos(root: Root, name: str) -> Any:
    netdev, setting = name.split()
    return mlnx_qos.read(root, netdev).get(setting)


def write_mlnx_qos(root: Root, name: str, value: Any) -> None:
    netdev, setting = name.split()
    _write(root, TOOL, netdev, setting, value)


def read_cm_directory(root: Root, path: str) -> Any:
    return os.path.isdir(root.path + path)


def write_cm_directory(root: Root, path: str, value: Any) -> None:
    """Make or remove the directory of a device for RDMA-CM. The settings live in the device, not in the directory.

    :raises RdmaError: ``rdma_cm_refused``.
    """
    try:
        if value:
            os.mkdir(root.path + path)
        else:  # configfs removes what it shows inside; any other directory must be empty
            os.rmdir(root.path + path)
    except FileExistsError:
        return
    except OSError as error:
        raise RdmaError(
            "rdma_cm_refused",
            "The directory %s cannot be %s: %s." % (path, "made" if value else "removed", reason_of(error)),
            hint="Check that the RDMA device exists and that this runs as root.",
            path=path,
        ) from error


def read_traffic_class(root: Root, path: str) -> Any:
    return roce_ports.read_traffic_class(root, path)


def write_traffic_class(root: Root, path: str, value: Any) -> None:
    write_value(root, path, str(value))


ARGUMENTS: dict[str, dict[str, Any]] = {
    "interfaces": {"type": "list", "elements": "str", "required": True},
    "rdma_priority": {"type": "int", "required": True},
    "cnp_priority": {"type": "int", "required": True},
    "rdma_dscp": {"type": "int"},
    "cnp_dscp": {"type": "int"},
    "backend": {"type": "str", "choices": list(BACKENDS), "default": AUTO},
    "take_dcbx": {"type": "bool", "default": False},
    "tcp_ecn": {"type": "int", "choices": [0, 1, 2]},
    "persist": {"type": "bool", "default": True},
    "host_root": {"type": "path", "default": "/"},
}
"""Options of the module ``roce_qos``."""


def act(changes: Changes, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the module ``roce_qos`` does; its result.

    :param given: values for :data:`ARGUMENTS`.
    :raises RdmaError: see :func:`apply`.
    """
    wish = roce_qos.valid_wish(
        given["rdma_priority"], given["cnp_priority"], given["rdma_dscp"], given["cnp_dscp"]
    )
    options = Options(
        interfaces=given["interfaces"],
        wish=wish,
        backend=given["backend"],
        take_dcbx=given["take_dcbx"],
        tcp_ecn=given["tcp_ecn"],
        persist=given["persist"],
    )
    return apply(changes, options)
