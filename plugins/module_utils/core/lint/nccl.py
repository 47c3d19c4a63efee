# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: what the environment tells NCCL. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Optional

from ..finding import ERROR, SKIP
from ..kube.documents import Document
from ..kube.pod_templates import POD_KINDS
from ..oke import pod_rules
from ..oke.shapes import IPV6
from .devices import DEVICE, called, form_of, interface_of
from .environment import Setting, Source, exported
from .model import ACK, Context, Verdict, failed, skipped, unknown
from .pod import Pod, pods
from .registry import over_pods, rule

GID_INDEX = pod_rules.GID_INDEX
SOCKETS = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
HCAS = "NCCL_IB_HCA"

_INDEX = re.compile(pod_rules.FIXED_INDEX)


def told(pod: Pod, sent: list[tuple[Pod, Setting]], names: Iterable[str]) -> list[Setting]:
    """What a pod is told of some variables: by itself, and by the launcher of its object."""
    wanted = frozenset(names)
    own = [
        setting
        for _container, setting in pod.settings
        if setting.name in wanted and not (setting.how == "export" and pod.rdma is False)
    ]  # a launcher without RDMA devices is no rank: what it sends is for the others
    return own + [setting for sender, setting in sent if sender is not pod and setting.name in wanted]


def fixed_index(value: str) -> Optional[int]:
    """The index that a value fixes; ``None``: it leaves the choice to the library, as -1 does (F134)."""
    found = _INDEX.match(value[:40])  # as strtoll reads it: hexadecimal too, what follows is passed over
    return int(found[1], 16 if found[1][:2] in ("0x", "0X") else 10) if found else None


@rule(
    "RDMA-WL-001",
    "No fixed GID index in pods that use children",
    ERROR,
    "Remove the variable: NCCL finds the GID of the child by itself.",
    kinds=POD_KINDS,
)
def gid_index(document: Document, context: Context) -> Iterator[Verdict]:
    """A child has its own GIDs, whose index differs from that of the host's (F134, DEV-11).

    On an IPv6 fabric it is not certain that there is a child (F4), and no index is needed (F91).
    """
    sent = list(exported(pods(document, context)))

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        if pod.host_network:
            yield skipped("The pods are in the network of the host, where the index does not change.")
            return
        if not pod.children and not pod.undecided:
            yield skipped("The pods use no child of an RDMA NIC.")
            return
        settings = told(pod, sent, GID_INDEX)
        unclear = [setting for setting in settings if setting.value is None]
        fixed = [setting for setting in settings if setting.value and fixed_index(setting.value) is not None]
        if not pod.children:
            for setting in fixed[:1] or unclear[:1]:
                yield unknown(
                    setting.path,
                    "%s is set; whether the pods use children could not be told: %s."
                    % (setting.name, pod.undecided),
                )
            return
        if pod.shape and pod.shape.fabric == IPV6:
            for setting in fixed[:1] or unclear[:1]:
                yield unknown(
                    setting.path,
                    "%s is set, and the fabric of %s is IPv6, and the documents of "
                    "DRANET differ on whether a pod gets a child there." % (setting.name, pod.shape.name),
                    hint="Remove the variable: NCCL uses the IPv6 addresses there and no GID index.",
                )
            return
        for setting in fixed:
            yield failed(
                setting.path,
                "%s is fixed to %s%s, and the GID of a child has another index on each NIC and node."
                % (setting.name, (setting.value or "").strip(), _from(setting)),
                expected="not set",
                observed=(setting.value or "").strip(),
            )
        for setting in unclear:
            yield _untold(setting)
        if not fixed and not unclear:
            for source in pod.unread_sources[:1]:
                yield _unread(source, context)

    return over_pods(of_pod, document, context)


def _unread(source: Source, context: Context) -> Verdict:
    """A ConfigMap that is not among the documents, so what it sets is not known."""
    if context.complete:
        return failed(
            source.path,
            "ConfigMap %s does not exist, so the container does not start." % source.name,
            hint="Write the ConfigMap, correct the name, or mark it optional.",
            code="config-map-missing",
        )
    message = "ConfigMap %s, which may set a GID index, is not among the documents." % source.name
    return unknown(source.path, message)


def _untold(setting: Setting) -> Verdict:
    """A variable of which the manifests do not tell the value."""
    if setting.refused:
        return failed(
            setting.path,
            "%s is set, and %s." % (setting.name, setting.refused),
            hint="Correct or remove the entry.",
        )
    return unknown(
        setting.path,
        "%s is set, its value could not be told%s." % (setting.name, _from(setting)),
        hint="Give the lint the object from which the value comes, or look at the value in the running pod.",
    )


def _from(setting: Setting) -> str:
    return " (from %s)" % setting.origin if setting.origin else ""


@rule(
    "RDMA-WL-011",
    "Interfaces and RDMA devices that NCCL is told exist in the pod",
    ERROR,
    "Name eth0 for the bootstrap, and the RDMA devices of the shape for NCCL_IB_HCA, or remove the variable.",
    kinds=POD_KINDS,
)
def names(document: Document, context: Context) -> Iterator[Verdict]:
    """NCCL ends, or falls back to TCP, when no interface or device has a name that it was told (F135, F136, DEV-07)."""
    sent = list(exported(pods(document, context)))

    def of_pod(pod: Pod) -> Iterator[Verdict]:
        settings = told(pod, sent, (*SOCKETS, HCAS))
        if not settings:
            yield skipped("The environment names no interface and no RDMA device.")
        found = [list(_named(pod, setting)) for setting in settings]
        wrong = [verdict for verdicts in found for verdict in verdicts if verdict.status != SKIP]
        yield from wrong
        if found and not wrong and all(found):  # none of them passed
            yield found[0][0]

    return over_pods(of_pod, document, context)


def _named(pod: Pod, setting: Setting) -> Iterator[Verdict]:
    """What is wrong with the names that a variable lists; nothing: they exist."""
    if setting.value is None:
        yield _untold(setting)
    elif setting.name == HCAS:
        yield from _devices(pod, setting, setting.value)
    else:
        yield from _sockets(pod, setting, setting.value)


def listed(value: str) -> tuple[str, list[str]]:
    """The operator of a list of names, and the names: ``^`` leaves out, ``=`` means whole names, else beginnings."""
    operator = value.strip()[:1] if value.strip()[:1] in ("^", "=") else ""
    names_ = [part.strip().partition(":")[0] for part in value.strip().lstrip("^=").split(",")]
    return operator, [name for name in names_ if name]


def _sockets(pod: Pod, setting: Setting, value: str) -> Iterator[Verdict]:
    operator, wanted = listed(value)
    if operator == "^" or not wanted:
        return
    if pod.host_network:
        yield skipped("The pods use the interfaces of the host, which no manifest tells.")
        return
    exact = operator == "=" or setting.name.startswith("GLOO")
    known, numbered, open_ = interfaces(pod)
    for name in wanted:
        if any(name == there or (not exact and there.startswith(name)) for there in known):
            return
        if any(called(name, there) or (not exact and there[:-1].startswith(name)) for there in numbered):
            return
    reason = pod.undecided or open_
    if reason:
        more = {} if pod.undecided else {"hint": "Select the NIC by ifName, or give the lint the shape."}
        yield unknown(
            setting.path,
            "%s names %s; which interfaces the pods get could not be told: %s."
            % (setting.name, ", ".join(wanted), reason),
            **more,
        )
        return
    bare = [device for device in pod.nics if form_of(device) == DEVICE]
    yield failed(
        setting.path,
        "%s names %s, and %s have no such interface%s."
        % (
            setting.name,
            ", ".join(wanted),
            pod.called,
            ": their claims select RDMA devices by rdmaDevice, with which no interface comes" if bare else "",
        ),
        expected="one of %s" % ", ".join([*known, *numbered]),
        observed=value,
    )


def interfaces(pod: Pod) -> tuple[list[str], list[str], str]:
    """The interfaces that a pod with a network of its own has, names with a number (``rdmaN``) that it may have, and
    why it may have others; empty: it has no others.

    The runtime calls the first one eth0, Multus the others net1 and so on; a child has the name of its parent unless
    the claim names it (F41). The parents keep the names of the operating system on some shapes (F131).
    """
    known, numbered, open_ = ["eth0", "lo"], [], ""
    for number, attachment in enumerate(pod.further, 1):
        known.append(attachment.interface or "net%d" % number)
    if pod.injected:
        numbered.append("netN")
    for device in pod.nics:
        if form_of(device) == DEVICE:
            continue
        name = interface_of(device)
        if name:
            known.append(name)
        else:
            netdevs = pod.shape.netdevs if pod.shape else ()
            known += [netdev for netdev in netdevs if not netdev.endswith("N")]
            numbered += [netdev for netdev in netdevs or ("rdmaN",) if netdev.endswith("N")]
            if not netdevs:
                open_ = "the claim leaves open which NIC it is, and the shape how it is called"
    return known, list(dict.fromkeys(numbered)), open_


def _devices(pod: Pod, setting: Setting, value: str) -> Iterator[Verdict]:
    operator, wanted = listed(value)
    shape = pod.shape
    if operator == "^" or not wanted:
        return
    if not pod.host_network and not pod.nics:
        yield skipped("The pods see RDMA devices of their own, whose names no manifest tells.")
    elif pod.context.target == ACK or shape is None or not shape.nccl_hcas:
        yield skipped("The shape of the nodes is not told, or the table does not know its RDMA devices.")
    else:
        there = shape.nccl_hcas
        absent = [
            name
            for name in wanted
            if not any(name == device or (operator != "=" and device.startswith(name)) for device in there)
        ]
        if absent:
            yield failed(
                setting.path,
                "%s names %s, which %s no RDMA NIC of %s."
                % (HCAS, ", ".join(absent), "is" if len(absent) == 1 else "are", shape.name),
                expected="=%s" % ",".join(there),
                observed=value,
            )
