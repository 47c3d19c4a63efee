# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lint rules: further networks of pods, and the devices behind them. Private to rdma.k8s: it may change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Optional

from .. import json_text
from ..finding import ERROR
from ..kube import objects
from ..kube.documents import Document
from ..spiderpool.names import NETWORKS
from .devices import SPIDERPOOL_PREFIX
from .model import Context, Path, Verdict, failed, skipped, unknown
from .networks import Attachment, resources_of
from .pod import Pod
from .registry import pod_rule, rule

STATUS = "k8s.v1.cni.cncf.io/network-status"


def _annotation(pod: Pod, key: str = NETWORKS) -> Path:
    return (*pod.template.metadata_path, "annotations", key)


def _place(pod: Pod, attachment: Attachment) -> Path:
    """The annotation that names a network."""
    return _annotation(pod, next(key for key, found in pod.named_networks if found == attachment))


def _named(attachments: list[Attachment]) -> str:
    """The names of networks, each once."""
    return ", ".join(dict.fromkeys([_name(attachment) for attachment in attachments]))


def _name(attachment: Attachment) -> str:
    return "%s/%s" % (attachment.namespace, attachment.name) if attachment.namespace else attachment.name


def _unjudgeable(pod: Pod) -> Optional[Verdict]:
    """Why the networks of a pod cannot be judged against its resources."""
    if pod.injected:
        return skipped("Spiderpool sets networks and resources when the pod is made (%s)." % pod.injected)
    if pod.bad_networks:
        return unknown(
            _annotation(pod, pod.bad_networks[0][0]),
            "The annotation could not be read.",
            hint="Correct the annotation: names with commas, or a list in JSON.",
        )
    return None


@pod_rule(
    "RDMA-WL-006",
    "As many networks as devices of each resource",
    ERROR,
    "Ask for exactly one device for each network that the resource stands behind.",
    _unjudgeable,
)
def balance(pod: Pod) -> Iterator[Verdict]:
    """Each network takes one device of its resource; a device without a network is lost to all (S164, DEV-22)."""
    wanted = Counter(attachment.resource for attachment in pod.attachments if attachment.resource)
    behind = resources_of(pod.context)
    asked = [
        name for name in pod.amounts if name in wanted or name in behind or name.startswith(SPIDERPOOL_PREFIX)
    ]
    open_ = [attachment for attachment in pod.attachments if attachment.document is None]
    if not asked:
        yield skipped("The pods ask for no device of a network.")
    elif open_ and not pod.context.complete:
        yield unknown(
            _place(pod, open_[0]),
            "The definition of %s is not among the documents, so its resource is not known." % _named(open_),
        )
    else:
        for name in asked:
            found = pod.amount(name)
            if found is None or found == wanted[name] or found == 0:
                continue  # an amount that is no number is told by WL-012, none at all by WL-007
            container = pod.amounts[name][0][0]
            yield failed(
                (*container.path, "resources", "limits", name),
                "%d of %s, and %s of the pods %s it."
                % (
                    found,
                    name,
                    "%d network%s" % (wanted[name], "s" if wanted[name] > 1 else "")
                    if wanted[name]
                    else "no network",
                    "use" if wanted[name] > 1 else "uses",
                ),
                expected=str(wanted[name]),
                observed=str(found),
            )


@pod_rule(
    "RDMA-WL-007",
    "A network with a device behind it has a request for the device",
    ERROR,
    "Add the resource to the limits of a container, as often as networks use it.",
    _unjudgeable,
)
def device_behind(pod: Pod) -> Iterator[Verdict]:
    """Without a request no device is allocated, and the network cannot be attached (S90, S119, DEV-22)."""
    if not pod.attachments:
        yield skipped("The pods have no further network.")
        return
    open_ = [attachment for attachment in pod.attachments if attachment.document is None]
    by_resource: dict[str, list[Attachment]] = {}
    for attachment in pod.attachments:
        if attachment.resource and pod.amount(attachment.resource) == 0:  # no number: told by WL-012
            by_resource.setdefault(attachment.resource, []).append(attachment)
    for resource, attachments in by_resource.items():
        yield failed(
            _place(pod, attachments[0]),
            "%s needs a device of %s, and no container asks for one." % (_named(attachments), resource),
            expected="%s: %d" % (resource, len(attachments)),
            observed=", ".join(pod.amounts) or "no extended resource",
        )
    if open_ and not by_resource and not pod.context.complete:
        yield unknown(
            _place(pod, open_[0]), "The definition of %s is not among the documents." % _named(open_)
        )


@pod_rule(
    "RDMA-WL-008",
    "The networks of a pod are defined in the namespace that it names",
    ERROR,
    "Correct the name, write namespace/name, or define the network.",
)
def defined(pod: Pod) -> Iterator[Verdict]:
    """A network without a namespace is looked for in that of the pod; Multus refuses the pod else (S90)."""
    for key, reason in pod.bad_networks:
        yield failed(
            _annotation(pod, key),
            "The networks cannot be read: %s." % reason,
            observed=str(pod.annotations[key])[:80],
        )
    if pod.bad_networks:
        return
    if pod.injected:
        yield skipped("Spiderpool sets the networks when the pod is made (%s)." % pod.injected)
    elif not pod.attachments:
        yield skipped("The pods have no further network.")
    absent = [
        (key, attachment)
        for key, attachment in pod.named_networks
        if attachment.document is None and not pod.injected
    ]
    for key, attachment in dict.fromkeys(absent):
        elsewhere = pod.context.namespaces("NetworkAttachmentDefinition", attachment.name)
        note = ", only in namespace %s" % ", ".join(elsewhere) if elsewhere else ""
        if pod.context.complete:
            yield failed(
                _annotation(pod, key),
                "Network %s does not exist%s." % (_name(attachment), note),
                observed=_name(attachment),
            )
        else:
            yield unknown(
                _annotation(pod, key),
                "Network %s is not defined among the documents%s." % (_name(attachment), note),
            )


@rule(
    "RDMA-WL-017",
    "No address of a network is given to two pods",
    ERROR,
    "Delete one of the pods, and look for the lease that was given twice.",
    kinds=("Pod",),
)
def unique(document: Document, context: Context) -> Iterator[Verdict]:
    """Address management has given one address twice before; both pods then lose packets (DEV-33)."""
    own = addresses(document)
    if not own:
        yield skipped("The pod does not tell the addresses that it was given.")
        return
    holders = _holders(context)
    for network, address in own:
        others = [
            other
            for other in holders[network, address]
            if objects.ref(other.content) != objects.ref(document.content)  # the same pod may be given twice
        ]
        if others:
            yield failed(
                ("metadata", "annotations", STATUS),
                "%s of network %s is also given to %s."
                % (address, network, ", ".join(sorted({objects.ref(other.content) for other in others}))),
                observed=address,
            )


def addresses(document: Document) -> list[tuple[str, str]]:
    """Network and address of each interface that a running pod tells of, but not of its default network."""
    status = objects.mapping(document.content, "metadata", "annotations").get(STATUS)
    phase = objects.mapping(document.content, "status").get("phase")
    if not isinstance(status, str) or phase in ("Succeeded", "Failed"):
        return []
    try:
        entries = json_text.loads(status)
    except ValueError:
        return []
    return [
        (objects.text(entry.get("name")), address)
        for _position, entry in objects.entries(entries)
        if entry.get("default") is not True and isinstance(entry.get("ips"), list)
        for address in entry["ips"]
        if isinstance(address, str)
    ]


def _holders(context: Context) -> dict[tuple[str, str], list[Document]]:
    found: dict[tuple[str, str], list[Document]] = context.memo.setdefault("addresses", {})
    if not found:
        for document in context.of_kind("Pod"):
            for key in addresses(document):
                found.setdefault(key, []).append(document)
    return found
