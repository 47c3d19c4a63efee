# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes of a cluster as hosts. The decisions are in ``module_utils/core/inventory.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: The nodes of a Kubernetes cluster as hosts, grouped by what matters for RDMA
version_added: 0.1.0
author:
  - The rdma.k8s authors (@rdma-k8s)
description:
  - Makes a host of each node, with groups by target, shape, RDMA network, place in the fabric and readiness.
  - Reads nodes, the ResourceSlices of DRANET and, with O(connection=agent), the pods of the node agent. That is six
    calls to the API for a thousand nodes.
  - The name of the source file ends in C(.rdma_k8s.yml), C(.rdma_k8s.yaml), or is C(nodes.yml) or C(nodes.yaml).
  - "Each host is in one group of each kind, with the value behind it: C(rdma_target_), C(rdma_shape_),
    C(rdma_network_), C(rdma_hpc_island_), C(rdma_network_block_), C(rdma_local_block_). What cannot be told is in the
    group that ends in C(unknown), and the variable RV(ignore:rdma_k8s_node.unknown) says why."
  - "Each host is in C(rdma_nodes), and in C(rdma_ready) or C(rdma_not_ready). A cordoned node is in C(rdma_cordoned),
    one without a way to reach it in C(rdma_no_connection)."
  - In the name of a group each character that is no letter, digit or underscore becomes an underscore. When two values
    would get one name, both get a digest behind it, and a warning says so.
  - "The targets: C(oke_dranet) is a node of Oracle Cloud with slices of DRANET, or without anything installed but with
    a shape that has RDMA NICs; C(spiderpool_sriov) a node with the signs of the SR-IOV operator (its label, its
    annotation, resources of C(spidernet.io)); C(ack_lingjun) one with the label C(alibabacloud.com/lingjun-worker).
    C(none) has no sign, C(ambiguous) signs of several, C(unknown) none while the slices cannot be read."
  - Nodes are in one RDMA network when they have the same network of the Oracle Cloud Agent and the same primary subnet.
    Both follow from the addresses of the RDMA NICs in the slices and the address of the node.
options:
  plugin:
    description: Says that the file is for this plugin.
    type: str
    required: true
    choices: [rdma.k8s.nodes]
  label_selector:
    description:
      - Only nodes with these labels, as C(kubectl get nodes --selector) takes it.
    type: str
    default: ""
  targets:
    description: Only nodes of these targets. Empty for all.
    type: list
    elements: str
    choices: [oke_dranet, spiderpool_sriov, ack_lingjun, none, ambiguous, unknown]
    default: []
  connection:
    description: How Ansible reaches a node.
    type: str
    choices:
      ssh: At an address of the node, see O(address_types).
      agent: Through the pod of the node agent on the node, with the connection plugin of the collection
        C(kubernetes.core), which must be installed.
    default: ssh
  address_types:
    description: Types of the address for O(connection=ssh). The first one that the node has is taken.
    type: list
    elements: str
    choices: [InternalIP, ExternalIP, Hostname, InternalDNS, ExternalDNS]
    default: [InternalIP]
  user:
    description: User for O(connection=ssh), set as C(ansible_user). Without it that of Ansible's settings.
    type: str
  port:
    description: Port for O(connection=ssh), set as C(ansible_port). Without it that of Ansible's settings.
    type: int
  agent_namespace:
    description: Namespace of the node agent, with O(connection=agent).
    type: str
    default: kube-system
  agent_selector:
    description: Labels of the pods of the node agent, as C(kubectl get pods --selector) takes it, with
      O(connection=agent).
    type: str
    default: app.kubernetes.io/name=rdma-k8s-agent
  agent_container:
    description: Container of these pods. Without it the first one.
    type: str
  agent_host_root:
    description:
      - Where these pods have the root of the host's file system. It becomes the variable C(rdma_host_root), which the
        playbooks hand to modules as their option C(host_root).
    type: str
    default: /host
  without_connection:
    description:
      - What becomes of a node that has no address of the wanted types, or no ready pod of the node agent.
      - A warning names the nodes in both cases.
    type: str
    choices:
      keep: It is a host in the group C(rdma_no_connection). With O(connection=agent) it cannot be reached, also not
        over SSH; else its name is tried.
      leave_out: It is no host.
    default: keep
  primary_subnets:
    description:
      - The subnets of the primary VNICs, such as C(10.140.64.0/19), if you know them.
      - Without it the subnet follows from the addresses. That works for a node with at least two RDMA NICs whose
        addresses are in the slices.
    type: list
    elements: str
    default: []
  rdma_network_key:
    description:
      - A label or an annotation of the nodes whose value names their RDMA network. It wins over addresses.
    type: str
    default: ""
  labels:
    description: Labels of the node that become RV(ignore:rdma_k8s_node.labels).
    type: list
    elements: str
    default: []
  annotations:
    description: Annotations of the node that become RV(ignore:rdma_k8s_node.annotations).
    type: list
    elements: str
    default: []
  host_prefix:
    description:
      - Stands before the name of each host. Needed to have two clusters in one inventory whose nodes have the same
        names.
    type: str
    default: ""
  group_prefix:
    description: Stands before the name of each group.
    type: str
    default: rdma_
extends_documentation_fragment:
  - rdma.k8s.kubernetes
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
notes:
  - "Each host has the variable C(rdma_k8s_node) with C(name), C(uid), C(provider_id) (its end), C(target),
    C(shape), C(ready), C(cordoned), C(rdma_network),
    C(oca_network), C(primary_subnet), C(child_range), C(fabric_ipv6), C(fabric_planes), C(hpc_island),
    C(network_block), C(local_block), C(rack), C(gpu_memory_fabric), C(rdma_devices) (their number in the slices),
    C(labels), C(annotations) and C(unknown) (what could not be told, and why)."
  - Texts that are not known are empty. C(fabric_ipv6), C(fabric_planes) and C(rdma_devices) are then C(none).
  - C(hpc_island), C(network_block) and C(local_block) are attributes of the slices, else labels of OKE, whose values
    are hashes of the same. A node with the label only has the attribute of other nodes with this label, if any.
  - With O(connection=agent) each host has also the variables C(rdma_host_root), C(ansible_pipelining),
    C(ansible_python_interpreter) and C(ansible_remote_tmp), which fit the image of this collection; O(compose) changes
    them.
  - What is read may be kept with O(cache). It is read again when the options that decide what is read, or the contents
    of the kubeconfig, change. Names of agent pods are kept too, so use a short O(cache_timeout) with
    O(connection=agent).
  - The user needs the right to list C(nodes), C(resourceslices) of C(resource.k8s.io), and C(pods) in
    O(agent_namespace) with O(connection=agent). Without the right for slices the hosts are there, and a warning says
    which groups are unknown.
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
# The smallest one: prod.rdma_k8s.yml. All nodes, over SSH, from the current context.
---
plugin: rdma.k8s.nodes
---
# One cluster of several, only nodes for RDMA on OKE, kept for ten minutes.
plugin: rdma.k8s.nodes
kubeconfig: ~/.kube/prod
context: prod-iad
targets: [oke_dranet]
user: opc
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/rdma-k8s
cache_timeout: 600
---
# Without SSH, through the node agent; nodes without a ready agent are left out.
plugin: rdma.k8s.nodes
connection: agent
without_connection: leave_out
---
# Own variables and groups.
plugin: rdma.k8s.nodes
label_selector: nvidia.com/gpu.present=true
labels: [topology.kubernetes.io/zone]
strict: true
compose:
  rdma_child_range: rdma_k8s_node.child_range
groups:
  usable: rdma_k8s_node.ready and not rdma_k8s_node.cordoned
keyed_groups:
  - key: rdma_k8s_node.labels['topology.kubernetes.io/zone']
    prefix: zone
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn, Optional

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import node_list
from ansible_collections.rdma.k8s.plugins.module_utils.cluster.client import connect
from ansible_collections.rdma.k8s.plugins.module_utils.core import inventory as core
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.core.net import parse_prefix
from ansible_collections.rdma.k8s.plugins.module_utils.garbage import without_collection

ENDINGS = (".rdma_k8s.yml", ".rdma_k8s.yaml")
NAMES = ("nodes.yml", "nodes.yaml")
AGENT = "kubernetes.core.kubectl"


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Nodes as hosts."""

    NAME = "rdma.k8s.nodes"

    def verify_file(self, path: str) -> bool:
        """Take files by name only: what is in them is checked when they are read."""
        name = os.path.basename(path)
        return bool(super().verify_file(path)) and (name.endswith(ENDINGS) or name in NAMES)

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory from a source file, out of the cache if that is wanted and fresh."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        with without_collection():
            self._make(path, cache)

    def _make(self, path: str, cache: bool) -> None:
        try:
            wishes = self._wishes()
            facts = self._facts(path, cache)
            found = core.build(facts["nodes"], facts["slices"], self._connection(facts), wishes)
        except RdmaError as error:
            raise AnsibleParserError("%s: %s" % (path, error)) from error
        if not facts["nodes"]:
            selector = self.get_option("label_selector")
            found.warnings.append(
                "The cluster has no node%s" % (" with the labels %s" % selector if selector else "")
            )
        for warning in found.warnings:
            self.display.warning("%s: %s" % (path, warning))
        self._refuse_strangers(found, path)
        self._fill(found)

    # --- what the options say ----------------------------------------------------------------------------------------

    def _wishes(self) -> core.Wishes:
        return core.Wishes(
            targets=self.get_option("targets"),
            subnets=[parse_prefix(str(text)).masked() for text in self.get_option("primary_subnets")],
            network_key=self.get_option("rdma_network_key"),
            labels=self.get_option("labels"),
            annotations=self.get_option("annotations"),
            host_prefix=self.get_option("host_prefix"),
            group_prefix=self.get_option("group_prefix"),
            keep_unconnected=self.get_option("without_connection") == "keep",
        )

    def _query(self) -> node_list.Query:
        key = self.get_option("rdma_network_key")
        more = [key] if key else []
        agent = None
        if self.get_option("connection") == "agent":
            agent = (self._required("agent_namespace"), self._required("agent_selector"))
        return node_list.Query(
            selector=self.get_option("label_selector"),
            labels=[*self.get_option("labels"), *more],
            annotations=[*self.get_option("annotations"), *more],
            agent=agent,
        )

    def _required(self, option: str) -> str:
        value = self.get_option(option)
        if not value:
            raise AnsibleParserError("connection is agent, so the option %s must not be empty" % option)
        return str(value)

    def _connection(self, facts: Mapping[str, Any]) -> core.Connection:
        if self.get_option("connection") == "ssh":
            return core.by_ssh(
                self.get_option("address_types"), self.get_option("user") or "", self.get_option("port")
            )
        given = {
            "ansible_connection": AGENT,
            "ansible_kubectl_namespace": self.get_option("agent_namespace"),
            "ansible_kubectl_container": self.get_option("agent_container"),
            "ansible_kubectl_kubeconfig": self.get_option("kubeconfig"),
            "ansible_kubectl_context": self.get_option("context"),
            # One call for a task instead of six, and nothing is written but below /tmp.
            "ansible_pipelining": True,
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_remote_tmp": "/tmp/.ansible",  # noqa: S108 - a directory of the pod alone
            "rdma_host_root": self.get_option("agent_host_root"),
        }
        return core.by_agent(facts["pods"], {name: value for name, value in given.items() if value})

    # --- what is read ------------------------------------------------------------------------------------------------

    def _facts(self, path: str, cache: bool) -> Mapping[str, Any]:
        """What the API says, or said."""
        query = self._query()
        if not self.get_option("cache"):
            return self._read(query)
        key = "%s_%s" % (self.get_cache_key(path), self._digest(query))
        facts = self._kept(key) if cache else None
        if facts is None:
            facts = self._read(query)
            self._cache[key] = {"format": core.FACTS, "facts": json.dumps(facts)}
        return facts

    def _read(self, query: node_list.Query) -> Mapping[str, Any]:
        cluster = connect(
            self.get_option("kubeconfig"), self.get_option("context"), self.get_option("request_timeout")
        )
        facts = node_list.read(cluster, query)
        self.display.vv(
            "rdma.k8s.nodes: %d nodes in %d calls to %s"
            % (len(facts["nodes"]), cluster.calls, cluster.server)
        )
        return facts

    def _kept(self, key: str) -> Optional[Mapping[str, Any]]:
        """What an earlier run left in the cache; a cache that is broken is said, and read past."""
        try:
            entry = self._cache[key]
        except KeyError:
            return None
        except (
            AnsibleError,
            TypeError,
            ValueError,
        ) as error:  # the last two: Ansible's own wrapping is broken
            self._say_broken(str(error))
            return None
        try:
            if entry["format"] != core.FACTS:
                return None  # of another release of this collection
            facts = json.loads(entry["facts"])
            if {"nodes", "slices", "pods"} - set(facts):
                raise KeyError("nodes, slices or pods")
        except (KeyError, TypeError, ValueError) as error:
            self._say_broken("%s: %s" % (type(error).__name__, error))
            return None
        self.display.vv("rdma.k8s.nodes: %d nodes from the cache, no call" % len(facts["nodes"]))
        return facts

    def _say_broken(self, reason: str) -> None:
        self.display.warning(
            "rdma.k8s.nodes: the cache cannot be used, the cluster is read again: %s" % reason
        )

    def _digest(self, query: node_list.Query) -> str:
        """Changes with all that decides what is read, so that the cache of one cluster is not that of another."""
        named = [self.get_option("kubeconfig"), self.get_option("context")]
        named += [os.environ.get(name) for name in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "K8S_AUTH_CONTEXT")]
        digest = hashlib.sha256(json.dumps([named, repr(query)]).encode())
        files = named[0] or named[2] or named[3] or "~/.kube/config"
        for file in files.split(os.pathsep):
            try:
                with open(os.path.expanduser(file), "rb") as opened:
                    digest.update(opened.read())
            except OSError:
                digest.update(b"none")
        return digest.hexdigest()[:16]

    # --- what becomes of it ------------------------------------------------------------------------------------------

    def _refuse_strangers(self, found: core.Inventory, path: str) -> None:
        """Two clusters may have nodes of one name; as one host they would be mixed up."""
        for name, variables in found.hosts.items():
            other = self.inventory.hosts.get(name)
            known = other.vars.get("rdma_k8s_node") if other else None
            if known and known["uid"] != variables["rdma_k8s_node"]["uid"]:
                self._refuse(name, path)

    def _refuse(self, name: str, path: str) -> NoReturn:
        raise AnsibleParserError(
            "%s: the host %s is in the inventory already, as a node of another cluster. Give one of the two sources "
            "a host_prefix." % (path, name)
        )

    def _fill(self, found: core.Inventory) -> None:
        strict = self.get_option("strict")
        compose, groups, keyed = (self.get_option(name) for name in ("compose", "groups", "keyed_groups"))
        for name, variables in found.hosts.items():
            self.inventory.add_host(name)
            host = self.inventory.hosts[name]
            for key, value in variables.items():
                # The inventory itself would copy each text to note where it is from: a fifth of the whole time.
                host.set_variable(key, value)
        for group, names in found.groups.items():
            self.inventory.add_group(group)
            for name in names:
                self.inventory.add_child(group, name)
        if not (compose or groups or keyed):
            return
        for name, variables in found.hosts.items():
            self._set_composite_vars(compose, variables, name, strict=strict)
            self._add_host_to_composed_groups(groups, variables, name, strict=strict)
            self._add_host_to_keyed_groups(keyed, variables, name, strict=strict)
