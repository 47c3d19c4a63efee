# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""SpiderMultusConfig: its fields, and what it must agree with. Private to rdma.k8s: it may change with any release.

Admission looks at the object alone: whether pools and resources exist, whether type and mode fit the node, it does not
ask (S88).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .. import json_text
from ..kube.objects import mapping, text
from ..net import quoted
from . import versions
from .issue import Issue, error, is_between, ordered, warning, whole
from .names import (
    CNI_VERSION,
    CNI_VERSIONS,
    CUSTOM,
    ETHERNET,
    EXCLUSIVE,
    IB_SRIOV,
    INFINIBAND,
    RESOURCE_PREFIX,
    SHARED,
    SRIOV,
    SUBCONFIGS,
)

SPIDERPOOL = "1.2.1"
"""The version whose fields are taken unless another is given."""
COMMON = frozenset(
    (*SUBCONFIGS.values(), "cniType", "enableCoordinator", "disableIPAM", "coordinator", "chainCNIJsonData")
)
"""Fields of the specification (S84, S90)."""
POOLS = frozenset(("ipv4", "ipv6", "matchMasterSubnet"))
MOST_VLAN = 4094
MOST_PKEY = 0x7FFF
MOST_PKEYS = 128
"""Partition keys of a node at most: the table of a port has no more places (S151)."""
_LAST_OLD = versions.Version(1, 0, 0, False, ((True, 0, "rc"), (False, 4, "4")))
_MTU_IN = (versions.Version(1, 0, 2), versions.Version(1, 0, 3))
_MTU_FROM = (1, 2, 0)
_LINK_STATES = ("auto", "enable", "disable")
_PKEY = re.compile(r"0x[0-9A-Fa-f]{1,16}")
_WILD = re.compile(r"[*?\[\]]")
_FITTING = {SRIOV: ETHERNET, IB_SRIOV: INFINIBAND}
_BY_DEFAULT = {SRIOV: False, IB_SRIOV: True}
"""Whether the RDMA device of a pod is isolated when the config does not say (S86, S87)."""


class Policy(NamedTuple):
    """What a config must agree with: the resource that a policy makes, the link type, the MTU of its PFs."""

    resource: str
    link_type: str = ""
    pf_mtu: Optional[int] = None


class Fields(NamedTuple):
    """The fields of ``sriov`` and ``ibsriov`` in one version (S91): those that it has, and those that it had before."""

    known: frozenset[str]
    removed: frozenset[str]
    isolation: str
    """The field that isolates the RDMA device."""
    ib_kubernetes: str


def policy_of(content: Mapping[str, Any]) -> Policy:
    """From plain data: ``resourceName``, ``linkType``, ``pfMtu``."""
    return Policy(
        text(content.get("resourceName")),
        text(content.get("linkType")).lower(),
        whole(content.get("pfMtu")),
    )


def fields_of(cni: str, version: Optional[versions.Version]) -> Optional[Fields]:
    """The fields of a type (S85, S86) in a version (S91); ``None``: this page does not know them."""
    old = version is not None and version <= _LAST_OLD
    isolation = "enableRdma" if old and cni == SRIOV else "rdmaIsolation"
    ib_kubernetes = "ibKubernetesEnabled" if old else "enableIbKubernetes"
    if cni == SRIOV:
        known = {"resourceName", "vlanID", "minTxRateMbps", "maxTxRateMbps", "ippools", isolation}
        if version is None or version in _MTU_IN or version[:3] >= _MTU_FROM:
            known.add("mtu")
        return Fields(frozenset(known), frozenset(() if old else ("enableRdma",)), isolation, ib_kubernetes)
    if cni == IB_SRIOV:
        known = {"resourceName", "pkey", "linkState", "ippools", isolation, ib_kubernetes}
        removed = frozenset(() if old else ("ibKubernetesEnabled",))
        return Fields(frozenset(known), removed, isolation, ib_kubernetes)
    return None


def judge_all(
    configs: Iterable[Mapping[str, Any]],
    pools: Optional[Iterable[str]] = None,
    policies: Optional[Iterable[Policy]] = None,
    *,
    netns_mode: Optional[str] = None,
    resource_prefix: str = RESOURCE_PREFIX,
    spiderpool_version: str = SPIDERPOOL,
) -> list[list[Issue]]:
    """What is wrong with each config.

    :param pools: the names of all pools; ``None``: not known, as with the following.
    :param policies: what the policies of the operator make.
    :param netns_mode: ``exclusive`` or ``shared``: the mode of the nodes.
    """
    names = None if pools is None else frozenset(pools)
    makers = None if policies is None else _by_resource(policies)
    return [
        _judge(
            config,
            names,
            makers,
            netns_mode=netns_mode,
            resource_prefix=resource_prefix,
            spiderpool_version=spiderpool_version,
        )
        for config in configs
    ]


def _by_resource(policies: Iterable[Policy]) -> dict[str, list[Policy]]:
    found: dict[str, list[Policy]] = {}
    for policy in policies:
        found.setdefault(policy.resource, []).append(policy)
    return found


def _judge(
    config: Mapping[str, Any],
    pools: Optional[Collection[str]],
    policies: Optional[Mapping[str, Sequence[Policy]]],
    *,
    netns_mode: Optional[str],
    resource_prefix: str,
    spiderpool_version: str,
) -> list[Issue]:
    spec = mapping(config, "spec")
    given = spec.get("cniType")
    cni = CUSTOM if given in (None, "") else text(given)
    found = [*_type(spec, cni, given), *_cni_version(config), *_chain(spec, cni)]
    part = SUBCONFIGS.get(cni, "")
    below = spec.get(part)
    if not isinstance(below, dict):
        return ordered(found)
    at = "spec.%s" % part
    fields = fields_of(cni, versions.find(spiderpool_version))
    found += _fields(below, at, fields, spiderpool_version)
    found += _ranges(below, at)
    if pools is not None:
        found += _pools(mapping(below, "ippools"), at, pools)
    found += _shared_resource(below, at, netns_mode)
    if fields is not None:
        found += _isolation(below, at, cni, fields, netns_mode)
        found += _partition(below, at, fields)
        issues, makers = _resource(below, at, _FITTING[cni], policies, resource_prefix)
        found += issues
        if "mtu" in fields.known:
            found += _mtu(below, at, makers)
    return ordered(found)


def _type(spec: Mapping[str, Any], cni: str, given: Any) -> Iterator[Issue]:
    """One type, its own part and no other (S84); a field that the API does not know is dropped (S92)."""
    if cni not in SUBCONFIGS:
        message = "cniType is one of %s, found %s" % (", ".join(SUBCONFIGS), quoted(given))
        yield error("cnitype-invalid", "spec.cniType", message)
    own = SUBCONFIGS.get(cni, "")
    if own and spec.get(own) is None:
        yield error("subconfig-missing", "spec.%s" % own, "cniType %s needs the part %s" % (cni, own))
    for key, value in spec.items():
        if key not in COMMON:
            yield error("field-unknown", "spec.%s" % key, "a SpiderMultusConfig has no such field here")
        elif key in SUBCONFIGS.values() and value is not None and own and key != own:
            yield error("subconfig-extra", "spec.%s" % key, "the part does not belong to cniType %s" % cni)


def _cni_version(config: Mapping[str, Any]) -> Iterator[Issue]:
    given = mapping(config, "metadata", "annotations").get(CNI_VERSION)
    if given is not None and given not in CNI_VERSIONS:
        message = "%s is one of %s, found %s" % (CNI_VERSION, ", ".join(CNI_VERSIONS), quoted(given))
        yield error("cni-version-invalid", "metadata.annotations", message)  # S90


def _chain(spec: Mapping[str, Any], cni: str) -> Iterator[Issue]:
    """ib-sriov moves the RDMA device itself, so the plugin rdma behind it finds none (S90, S218)."""
    chain = spec.get("chainCNIJsonData")
    for position, entry in enumerate(chain if isinstance(chain, list) else []):
        at = "spec.chainCNIJsonData[%d]" % position
        try:
            plugin = json_text.loads(entry) if isinstance(entry, str) else None
        except ValueError:
            plugin = None
        if not isinstance(plugin, dict):
            yield error("chain-syntax", at, "an entry is the text of a JSON object")
        elif cni == IB_SRIOV and plugin.get("type") == "rdma":
            yield error("rdma-behind-ib-sriov", at, "ib-sriov moves the RDMA device itself: leave rdma out")


def _fields(below: Mapping[str, Any], at: str, fields: Optional[Fields], version: str) -> Iterator[Issue]:
    """No released version has every field of the guide (S91), and unknown ones are dropped without a word (S92)."""
    for key in below if fields is not None else ():
        if fields is not None and key not in fields.known:
            place = "%s.%s" % (at, key)
            if key in fields.removed:
                yield error("field-removed", place, "the field ended before Spiderpool %s" % version)
            else:
                yield error("field-unknown", place, "Spiderpool %s has no such field here" % version)
    for key in mapping(below, "ippools"):
        if key not in POOLS:
            message = "pools are listed below %s" % ", ".join(sorted(POOLS))
            yield error("field-unknown", "%s.ippools.%s" % (at, key), message)


def _ranges(below: Mapping[str, Any], at: str) -> Iterator[Issue]:
    """Bounds of the numbers and choices (S85, S86)."""
    for key, most, code in (("vlanID", MOST_VLAN, "vlan-range"), ("mtu", None, "mtu-range")):
        value = below.get(key)
        if value is not None and not is_between(value, 0, most):
            bounds = "at least 0" if most is None else "from 0 to %d" % most
            message = "%s is a whole number %s, found %s" % (key, bounds, quoted(value))
            yield error(code, "%s.%s" % (at, key), message)
    low, high = whole(below.get("minTxRateMbps")), whole(below.get("maxTxRateMbps"))
    if low is not None and high is not None and low > high:
        message = "the least rate %s is above the highest, %s" % (quoted(low), quoted(high))
        yield error("txrate-order", at + ".minTxRateMbps", message)
    state = below.get("linkState")
    if state not in (None, *_LINK_STATES):
        message = "linkState is one of %s, found %s" % (", ".join(_LINK_STATES), quoted(state))
        yield error("linkstate-invalid", at + ".linkState", message)


def _pools(ippools: Mapping[str, Any], at: str, pools: Collection[str]) -> Iterator[Issue]:
    """A pool that does not exist stops a pod only when it starts (S88, S93)."""
    for family in ("ipv4", "ipv6"):
        listed = ippools.get(family)
        for position, called in enumerate(listed if isinstance(listed, list) else []):
            place = "%s.ippools.%s[%d]" % (at, family, position)
            if isinstance(called, str) and _WILD.search(called):
                pattern = called.replace("[^", "[!")
                if not any(fnmatch.fnmatchcase(pool, pattern) for pool in pools):
                    yield error(
                        "ippool-wildcard-no-match", place, "no pool has such a name: %s" % quoted(called)
                    )
            elif not isinstance(called, str) or called not in pools:
                yield error("ippool-missing", place, "there is no pool %s" % quoted(called))


def _shared_resource(below: Mapping[str, Any], at: str, netns_mode: Optional[str]) -> Iterator[Issue]:
    """The shared plugin and its CNI types work in shared mode only; a node has one mode (S171, S177)."""
    resource = below.get("rdmaResourceName")
    if resource and netns_mode == EXCLUSIVE:
        message = "the nodes are in exclusive mode, and %s is a resource of the shared plugin" % quoted(
            resource
        )
        yield error("shared-needs-shared-mode", at + ".rdmaResourceName", message)


def _isolation(
    below: Mapping[str, Any], at: str, cni: str, fields: Fields, netns_mode: Optional[str]
) -> Iterator[Issue]:
    """The default is off for sriov and on for ib-sriov, and both must fit the mode of the nodes (S86, S87)."""
    given = below.get(fields.isolation)
    isolated = _BY_DEFAULT[cni] if given is None else given is True
    place = "%s.%s" % (at, fields.isolation)
    how = "%s is %s%s" % (fields.isolation, str(isolated).lower(), " by default" if given is None else "")
    if isolated and netns_mode == SHARED:
        message = "%s, which needs nodes in exclusive mode; they are in shared mode" % how
        yield error("isolation-needs-exclusive", place, message)
    if not isolated and netns_mode == EXCLUSIVE:
        message = "%s, so the pod does not get its RDMA device on nodes in exclusive mode" % how
        yield warning("exclusive-without-isolation", place, message)


def _partition(below: Mapping[str, Any], at: str, fields: Fields) -> Iterator[Issue]:
    """A partition key is a text such as 0x1000 (S150), and only ib-kubernetes makes it count (S153)."""
    pkey = below.get("pkey")
    if pkey is None or "pkey" not in fields.known:
        return
    if not isinstance(pkey, str):
        message = "the key is a text such as '0x1000', found %s" % quoted(pkey)
        yield error("pkey-type", at + ".pkey", message)
    elif not _PKEY.fullmatch(pkey) or int(pkey, 16) > MOST_PKEY:
        message = "the key is 0x and hexadecimal digits, at most 0x%x, found %s" % (MOST_PKEY, quoted(pkey))
        yield error("pkey-format", at + ".pkey", message)
    if below.get(fields.ib_kubernetes) is not True:
        message = "nobody enforces the key without %s: true" % fields.ib_kubernetes
        yield warning("pkey-not-enforced", "%s.%s" % (at, fields.ib_kubernetes), message)


def _resource(
    below: Mapping[str, Any],
    at: str,
    fitting: str,
    policies: Optional[Mapping[str, Sequence[Policy]]],
    prefix: str,
) -> tuple[list[Issue], Sequence[Policy]]:
    """The resource is prefix and name of a policy (S88, S119); with it the policies that make it."""
    place, given = at + ".resourceName", text(below.get("resourceName"))
    if not given:
        message = "the resource of the virtual functions is not given"
        return [error("resource-name-missing", place, message)], []
    if "/" not in given:
        message = "a resource has its prefix: %s/%s" % (prefix, given)
        return [error("resource-prefix-missing", place, message)], []
    if policies is None:
        return [], []
    domain, _slash, called = given.partition("/")
    makers = policies.get(called, ()) if domain == prefix else ()
    if not makers:
        return [error("resource-unknown", place, "no policy makes %s" % quoted(given))], []
    wrong = {policy.link_type for policy in makers if policy.link_type} - {fitting}
    if wrong:  # S75
        message = "the type is for linkType %s, and the policy has %s" % (fitting, min(wrong))
        return [error("cni-linktype-mismatch", "spec.cniType", message)], makers
    return [], makers


def _mtu(below: Mapping[str, Any], at: str, makers: Sequence[Policy]) -> Iterator[Issue]:
    """A virtual function is never above its PF, and does not follow it (S36)."""
    mtu = whole(below.get("mtu"))
    lowest = min([policy.pf_mtu for policy in makers if policy.pf_mtu is not None], default=None)
    if mtu is not None and lowest is not None and mtu > lowest:
        message = "a virtual function cannot have more than the %d of its PF, found %d" % (lowest, mtu)
        yield error("mtu-exceeds-pf", at + ".mtu", message)


def is_isolated(config: Mapping[str, Any], spiderpool_version: str = SPIDERPOOL) -> Optional[bool]:
    """Whether a config isolates the RDMA device of a pod (S87); ``None``: its type moves no virtual function."""
    spec = mapping(config, "spec")
    cni = text(spec.get("cniType"))
    fields = fields_of(cni, versions.find(spiderpool_version))
    if fields is None:
        return None
    given = mapping(spec, SUBCONFIGS[cni]).get(fields.isolation)
    return _BY_DEFAULT[cni] if given is None else given is True


def pools_of(below: Mapping[str, Any]) -> list[str]:
    """The names of the pools of a part, of both families."""
    lists = [mapping(below, "ippools").get(family) for family in ("ipv4", "ipv6")]
    return [
        entry for listed in lists if isinstance(listed, list) for entry in listed if isinstance(entry, str)
    ]
