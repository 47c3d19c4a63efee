#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_probe
short_description: Reach peers over the RDMA network from children or NICs
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Probes peers from the children in a network namespace, or from NICs of the host. A probe tells whether the peer's
    address resolves, whether it answers echo requests, whether it answers ones of full size that may not be split, and
    whether an RDMA ping-pong works.
  - One run probes all pairs of a node at the same time, with a few packets and hard limits of time for each.
  - A ping-pong needs a listener on the other side. So run it with O(role=listen) on all nodes, then with O(role=probe)
    on all nodes. A listener ends by itself after O(listen_limit) seconds, or with O(role=stop).
  - The ping-pong is made by C(rping) of rdma-core, which finds the GID by the address. Where that program is missing,
    on either side, the ping-pong is not tried and never counts as passed.
  - A NIC that serves a pod is not used; a claim's NIC is known by its child in another namespace, or by O(claimed).
    Neither are the interfaces of a pod, without O(allow_foreign_namespace).
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  role:
    description: What this node does now.
    type: str
    choices: [listen, probe, stop]
    required: true
  namespace:
    description:
      - Name of a network namespace in C(/run/netns).
      - Without it, O(namespace_path) and O(pid), the NICs of the host are meant.
    type: str
  namespace_path:
    description: Path of a network namespace.
    type: path
  pid:
    description: Process whose network namespace is meant.
    type: int
  nics:
    description:
      - For O(role=listen), the interfaces to listen on.
      - Without it all children of the namespace.
    type: list
    elements: str
    default: []
  pairs:
    description: For O(role=probe), whom to probe; P(rdma.k8s.fabric_plan_info#module) makes this list.
    type: list
    elements: dict
    default: []
    suboptions:
      nic:
        description: Name of the interface that probes.
        type: str
        required: true
      index:
        description: Index of the rail.
        type: int
        required: true
      address:
        description: IPv4 address of the interface that probes.
        type: str
        required: true
      mtu:
        description: Size of a full packet in bytes; V(0) sends none. At most 65535.
        type: int
        default: 0
      peer:
        description: Name of the node that is probed.
        type: str
        required: true
      peer_address:
        description: IPv4 address of the interface that is probed. Names are not looked up.
        type: str
        required: true
      silent:
        description: Why nothing listens there; empty when a listener waits.
        type: str
        default: no listener was started
  claimed:
    description: Names of NICs for which a claim is allocated. They are left alone.
    type: list
    elements: str
    default: []
  allow_foreign_namespace:
    description:
      - Consent to use a namespace that may be a pod's. That is one whose name does not begin with C(rdma-k8s-), when
        a child is in it, or a process that is no listener of this module.
      - Without it, none of its interfaces is used, and the result says so like for one that serves a pod.
    type: bool
    default: false
  full_size:
    description: Whether to send echo requests of full size, too.
    type: bool
    default: true
  count:
    description: Echo requests of each size to each peer, from 1 to 100.
    type: int
    default: 3
  timeout:
    description: Seconds to wait for the last answers, at most 600.
    type: float
    default: 2
  rounds:
    description: Rounds of each ping-pong, at most 1000; V(0) makes none.
    type: int
    default: 10
  rdma_timeout:
    description: Limit of each ping-pong in seconds, at most 600.
    type: float
    default: 15
  port:
    description: Port of the listeners.
    type: int
    default: 18720
  listen_limit:
    description: Seconds after which a listener ends by itself, from 1 to 3600.
    type: int
    default: 300
notes:
  - Listeners leave no undo record. They end by themselves.
attributes:
  check_mode:
    support: partial
    details: Nothing is sent in C(check_mode), so there is nothing to return of the peers.
  idempotent:
    support: partial
    details: Measured times differ from run to run.
seealso:
  - module: rdma.k8s.ipvlan_child
  - module: rdma.k8s.fabric_plan_info
"""

EXAMPLES = r"""
- name: Listen on all children
  rdma.k8s.fabric_probe:
    role: listen
    namespace: rdma-k8s-fabric
  become: true
  register: rdma_k8s_listen

- name: Probe the peers of this node
  rdma.k8s.fabric_probe:
    role: probe
    namespace: rdma-k8s-fabric
    pairs: "{{ plan.pairs[inventory_hostname] }}"
  become: true
  register: rdma_k8s_probes

- name: Probe one peer from a NIC of the host
  rdma.k8s.fabric_probe:
    role: probe
    rounds: 0
    pairs:
      - nic: rdma3
        index: 3
        address: 10.224.109.19
        mtu: 4220
        peer: gpu-02
        peer_address: 10.224.109.20
  become: true
"""

RETURN = r"""
actions:
  description: What was done, or would be done.
  returned: always
  type: list
  elements: str
  sample: [set the RDMA listeners in rdma-k8s-fabric]
listening:
  description: Interfaces on which a listener waits.
  returned: with O(role=listen)
  type: list
  elements: str
  sample: [rdma0, rdma1]
silent:
  description: Interfaces without a listener, and why.
  returned: with O(role=listen)
  type: dict
  sample: {rdma2: "rping is not installed (rdmacm-utils, or librdmacm-utils on Oracle Linux)"}
probes:
  description: What each pair gave, with O(pairs) values and times in microseconds.
  returned: with O(role=probe)
  type: list
  elements: dict
  contains:
    neighbour:
      description: Hardware address that the peer's address resolved to; empty when it did not.
      type: str
      returned: always
      sample: b8:3f:d2:0d:13:00
    received:
      description: Answers to small echo requests, of RV(probes[].sent).
      type: int
      returned: always
      sample: 3
    sent:
      description: Small echo requests.
      type: int
      returned: always
      sample: 3
    rtt_us:
      description: The shortest round trip.
      type: int
      returned: always
      sample: 41
    full_received:
      description: Answers to echo requests of full size, of RV(probes[].full_sent).
      type: int
      returned: always
      sample: 3
    full_sent:
      description: Echo requests of full size.
      type: int
      returned: always
      sample: 3
    full_error:
      description: Why this node could not send a packet of full size.
      type: str
      returned: always
      sample: message too long
    rdma:
      description: V(ok), V(failed), V(no_tool), V(no_listener), V(off), or V(none) when the peer did not answer at all.
      type: str
      returned: always
      sample: ok
    rdma_reason:
      description: Why the ping-pong failed or was not tried.
      type: str
      returned: always
      sample: no end within 15 s
    rdma_us:
      description: Time of one round of the ping-pong, with its share of the connection.
      type: int
      returned: always
      sample: 840
    verdicts:
      description: Status (V(pass), V(fail), V(skip), V(unknown)) and reason of each test.
      type: dict
      returned: always
      sample: {icmp: {status: pass, reason: ""}}
skipped:
  description: Interfaces that serve a pod and were not used, and why.
  returned: with O(role=probe)
  type: dict
  sample: {rdma3: namespace cni-6a1f has its ipvlan child rdma3}
fabric:
  description: The same for M(rdma.k8s.validate).
  returned: success
  type: dict
  sample: {probes: [], expected: 0, problems: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.host.changes import Changes
from ansible_collections.rdma.k8s.plugins.module_utils.host.listeners import PORT
from ansible_collections.rdma.k8s.plugins.module_utils.host.probe_run import OWNER, Place, Run
from ansible_collections.rdma.k8s.plugins.module_utils.host.probing import Limits

PAIR = {
    "nic": {"type": "str", "required": True},
    "index": {"type": "int", "required": True},
    "address": {"type": "str", "required": True},
    "mtu": {"type": "int", "default": 0},
    "peer": {"type": "str", "required": True},
    "peer_address": {"type": "str", "required": True},
    "silent": {"type": "str", "default": "no listener was started"},
}
BOUNDS = {"count": (1, 100), "rounds": (0, 1000), "port": (1, 65535), "listen_limit": (1, 3600)}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "role": {"type": "str", "choices": ["listen", "probe", "stop"], "required": True},
            "namespace": {"type": "str"},
            "namespace_path": {"type": "path"},
            "pid": {"type": "int"},
            "nics": {"type": "list", "elements": "str", "default": []},
            "pairs": {"type": "list", "elements": "dict", "default": [], "options": PAIR},
            "claimed": {"type": "list", "elements": "str", "default": []},
            "allow_foreign_namespace": {"type": "bool", "default": False},
            "full_size": {"type": "bool", "default": True},
            "count": {"type": "int", "default": 3},
            "timeout": {"type": "float", "default": 2},
            "rounds": {"type": "int", "default": 10},
            "rdma_timeout": {"type": "float", "default": 15},
            "port": {"type": "int", "default": PORT},
            "listen_limit": {"type": "int", "default": 300},
            "host_root": {"type": "path", "default": "/"},
        },
        mutually_exclusive=[("namespace", "namespace_path", "pid")],
        supports_check_mode=True,
    )
    options = module.params
    place = Place(options["namespace"] or "", options["namespace_path"] or "", options["pid"])
    names = ("count", "timeout", "rounds", "rdma_timeout", "port", "full_size")
    limits = Limits(*[options[name] for name in names])

    def act(changes: Changes, options: dict) -> dict:
        bounds.require_seconds(options, "timeout", "rdma_timeout")
        bounds.require_numbers(options, **BOUNDS)
        for pair in options["pairs"]:
            bounds.require_numbers(pair, mtu=(0, 65535))
        run = Run(changes, place, options["claimed"], options["allow_foreign_namespace"])
        if options["role"] == "listen":
            return run.listen(options["nics"], options["port"], options["listen_limit"])
        return run.probe(options["pairs"], limits) if options["role"] == "probe" else run.stop()

    _change.run(module, OWNER, act)


if __name__ == "__main__":
    main()
