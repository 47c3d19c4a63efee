# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user wants of DRANET in a cluster, checked. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from ..errors import RdmaError
from ..kube import manifest
from ..net import Prefix, quoted
from . import nic_table, options
from .constants import DEFAULT_CHILD_RANGE

MODES = ("native", "webhook")
METHODS = ("auto", "chart", "manifests")
STRATEGIES = ("OnDelete", "RollingUpdate")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
OCA_DIRECTORY = "/etc/oracle-cloud-agent/plugins/oci-hpc/oci-hpc-configure"  # F10
RUN_DIRECTORY = "/var/run/dranet"  # F116
SOCKET = RUN_DIRECTORY + "/rdma-k8s.sock"
WEBHOOK_URL = "unix://" + SOCKET
KUBELET_ROOT = "/var/lib/kubelet"  # F103

_PATHS = ("kubelet_root", "oca_directory")
_IMAGE_HINT = "Write it as REPOSITORY:TAG or REPOSITORY@sha256:DIGEST."


@dataclass(frozen=True)
class DeploymentWish:
    """What the user wants.

    :param mode: who resolves the profile: ``native`` DRANET itself, ``webhook`` the provider of this collection.
    :param method: ``auto``: the chart when it can express everything, else manifests.
    :param version: of DRANET; empty: told from the image or the chart.
    :param abilities: what this DRANET can do, where the table does not know or is wrong.
    :param allow_without_ipvlan: deploy a version without IPvlan children: attributes only, claims fail.
    :param image: of DRANET; ``provider_image``: of the provider, needed in mode ``webhook`` only.
    :param child_range: empty: the default (F6).
    :param oca_directory: mounted read-only where DRANET or the provider reads it (F54); empty: not mounted.
    :param move_ib_interfaces: false keeps native InfiniBand NICs on the host (F84); ``None``: DRANET's default.
    :param nic_table: NICs of nodes that the agent does not configure, for the provider (decision 22).
    :param provider_args, extra_args: further arguments of the provider and of DRANET.
    """

    mode: str = "webhook"
    method: str = "auto"
    version: str = ""
    abilities: Mapping[str, Any] = field(default_factory=dict)
    allow_without_ipvlan: bool = False
    namespace: str = "kube-system"
    image: str = ""
    provider_image: str = ""
    pull_policy: str = "IfNotPresent"
    pull_secrets: Sequence[str] = ()
    child_range: str = ""
    provider_options: Sequence[str] = ()
    oca_directory: str = OCA_DIRECTORY
    move_ib_interfaces: Optional[bool] = False
    uplink_interfaces: Sequence[str] = ()
    filter: str = ""
    device_class: str = "rdma-nic"
    nic_table: Any = None
    imds_url: str = ""
    kubelet_root: str = KUBELET_ROOT
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ({"operator": "Exists"},)
    priority_class: str = "system-node-critical"
    update_strategy: str = "OnDelete"
    resources: Mapping[str, Any] = field(default_factory=dict)
    provider_resources: Mapping[str, Any] = field(default_factory=dict)
    provider_args: Sequence[str] = ()
    extra_args: Sequence[str] = ()
    log_verbosity: int = 4

    @property
    def range(self) -> Prefix:
        """The child range, checked."""
        return _options(self)

    @property
    def flags(self) -> list[str]:
        """The values of ``--cloud-provider-options`` (F92)."""
        own = "%s.%s=%s" % (options.PROVIDER, options.CHILD_RANGE_OPTION, self.child_range)
        return [*([own] if self.child_range else []), *self.provider_options]


def wish(given: Mapping[str, Any]) -> DeploymentWish:
    """The wish of options of a module or a role; what is ``None`` has its default.

    :raises RdmaError: ``dranet_option``, ``name_malformed``, or an error of the options of the provider (F93) or of its
        table of NICs
    """
    known = {entry.name for entry in fields(DeploymentWish)}
    made = DeploymentWish(
        **{key: value for key, value in given.items() if key in known and value is not None}
    )
    _require_choice("mode", made.mode, MODES)
    _require_choice("method", made.method, METHODS)
    _require_choice("update strategy", made.update_strategy, STRATEGIES)
    _require_choice("pull policy", made.pull_policy, PULL_POLICIES)
    manifest.require_name(made.namespace, "The namespace", label=True)
    for name in [*made.pull_secrets, *([made.device_class] if made.device_class else [])]:
        manifest.require_name(name, "A pull secret or the DeviceClass")
    for key in _PATHS:
        value = getattr(made, key)
        if value and (not value.startswith("/") or ".." in value.split("/") or value != value.strip()):
            raise refused(key, value, "a path from the root without '..'", "Correct the path.")
    _require_image("image of DRANET", made.image)
    if made.mode == "webhook":
        _require_image("image of the provider", made.provider_image)
    _options(made)
    if made.nic_table is not None:
        _require_table(made)
    return made


def table_text(table: Any) -> str:
    """The explicit NIC table as the provider reads it; the order counts where entries have no index."""
    return json.dumps(table, indent=2) + "\n"


def _require_table(made: DeploymentWish) -> None:
    """The table is one that the provider takes on each node; it stops at its start otherwise."""
    if not isinstance(made.nic_table, Mapping):
        raise refused("nic_table", made.nic_table, "a mapping of NICs", "Write NIC: child.")
    nodes = made.nic_table.get("nodes")
    for name in nodes if isinstance(nodes, Mapping) and nodes else [""]:
        nic_table.parse(table_text(made.nic_table), made.range, str(name))


def refused(name: str, value: Any, wanted: str, hint: str) -> RdmaError:
    """An option that cannot be."""
    return RdmaError(
        "dranet_option",
        "The option %s is %s, expected %s." % (name, quoted(value), wanted),
        hint=hint,
        option=name,
    )


def _options(made: DeploymentWish) -> Prefix:
    """The range in force; DRANET and the provider stop at start on anything else (F97)."""
    found = options.parse(made.flags).child_range
    return DEFAULT_CHILD_RANGE if found is None else found


def _require_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise refused(name, value, "one of %s" % ", ".join(choices), "Correct it.")


def _require_image(name: str, image: str) -> None:
    """An image is named, and by a tag or a digest: without one, nodes run what was newest when they pulled it."""
    rest, _at, digest = image.partition("@")
    if not image or any(sign.isspace() for sign in image):
        raise refused(name, image, "the name of an image", "%s There is no default." % _IMAGE_HINT)
    if not digest and ":" not in rest.rpartition("/")[2]:
        raise refused(name, image, "a name with a tag or a digest", _IMAGE_HINT)
