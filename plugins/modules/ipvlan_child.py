#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ipvlan_child
short_description: Make or remove the IPvlan children of RDMA NICs in a network namespace
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Gives a network namespace the child of each RDMA NIC exactly as the C(oke-rdma) profile gives it to a pod. The mode
    is L2 with the flag bridge, the name that of the parent, the MTU and the ARP settings those of the parent, the
    address that of the formula with the length of the child range. A link-scope route stands in table 100 + index, and
    a source rule leads to it.
  - What the profile refuses is refused with the same codes, since the same code computes both.
  - Finds the GID of each child in the table of its parent's device, by address and type, and waits until it is there.
  - A child that is there already is compared field by field and repaired. Something else under its name is refused.
  - When one step fails, all that this run made is removed again.
  - The child has the address that a pod's claim would get. So a NIC that has a child anywhere on the node, or an
    allocated claim, is never touched; this is looked at again right before each NIC. Keep new pods with RDMA claims
    away from the node meanwhile, for example by a cordon.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
  - rdma.k8s.attributes.libraries
options:
  state:
    description:
      - V(present) makes or repairs the children, V(absent) removes them and sees their GIDs vanish.
      - V(absent) in a namespace whose name begins with C(rdma-k8s-), without O(nics), removes the namespace too, with
        the listeners of M(rdma.k8s.fabric_probe) in it. That is also the way to remove what a killed run left.
      - V(absent) in any other namespace needs O(nics). It removes only what V(present) would have made there, an IPvlan
        link with its parent's name, the address of the formula or none, and no claim in O(claimed). Anything else may
        be a pod's, so it fails and removes nothing.
    type: str
    choices: [present, absent]
    default: present
  nics:
    description:
      - Names of RDMA NICs on the host.
      - Without it all RDMA NICs of the node, or for V(absent) all children of a namespace of this collection.
    type: list
    elements: str
    default: []
  namespace:
    description:
      - Name of a network namespace in C(/run/netns).
      - One whose name begins with C(rdma-k8s-) belongs to this collection. It is made when it is not there. Any other
        must exist.
    type: str
  namespace_path:
    description: Path of a network namespace.
    type: path
  pid:
    description: Process whose network namespace is meant, for example of a container of a pod.
    type: int
  child_range:
    description: The child range, as the option C(oke.rdma-child-ipv4-cidr) of the driver has it.
    type: str
    default: 10.208.0.0/12
  claimed:
    description: Names of NICs for which a claim is allocated. They are left alone.
    type: list
    elements: str
    default: []
  refused:
    description:
      - What to do about NICs that are in use, refused by the profile, or for which something fails. V(fail) fails the
        task and makes nothing, V(skip) leaves them out and says so in RV(children).
    type: str
    choices: [fail, skip]
    default: fail
  gid_timeout:
    description: Seconds to wait for a GID to appear or to vanish, at most 600.
    type: float
    default: 5
  service_host:
    description: The address of the cluster's API service as pods see it, for the conflict check of the profile.
    type: str
  imds_url:
    description:
      - Base URL of the metadata service, with a literal link-local or loopback address.
      - Without it the service of Oracle Cloud at V(http://169.254.169.254/opc/v2) is asked.
    type: str
  imds_timeout:
    description: Limit of each request to the metadata service in seconds, at most 600.
    type: float
    default: 5
notes:
  - The undo record is that of the namespace, when this module made it; undoing removes it with all children. Children
    in another namespace have none, since they go away with it. Remove them with O(state=absent) and O(nics).
  - Nothing of this survives a reboot.
seealso:
  - module: rdma.k8s.fabric_probe
  - module: rdma.k8s.child_plan_info
"""

EXAMPLES = r"""
- name: Give all free RDMA NICs a child in a namespace of our own
  rdma.k8s.ipvlan_child:
    namespace: rdma-k8s-fabric
    refused: skip
  become: true
  register: made

- name: Show their GID indexes
  ansible.builtin.debug:
    msg: "{{ made.children | items2dict(key_name='nic', value_name='gid') }}"

- name: Remove them, and the namespace
  rdma.k8s.ipvlan_child:
    namespace: rdma-k8s-fabric
    state: absent
  become: true

- name: Make one child in the namespace of a container
  rdma.k8s.ipvlan_child:
    nics: [rdma3]
    pid: 41277
  become: true
"""

RETURN = r"""
actions:
  description: What was done, or would be done.
  returned: always
  type: list
  elements: str
  sample: [set the child of rdma0 in rdma-k8s-fabric]
namespace:
  description: The namespace, as it was named.
  returned: success
  type: str
  sample: rdma-k8s-fabric
children:
  description: One entry for each NIC.
  returned: success
  type: list
  elements: dict
  contains:
    nic:
      description: Name of the NIC on the host, and of the child in the namespace.
      type: str
      returned: always
      sample: rdma3
    index:
      description: Index of the NIC, V(-1) when it is not known.
      type: int
      returned: always
      sample: 3
    state:
      description:
        - V(ready), V(in_use) when the NIC was left alone, V(refused) by the profile, V(failed), or V(planned) in
          C(check_mode).
      type: str
      returned: always
      sample: ready
    address:
      description: Address of the child with the length of the range.
      type: str
      returned: always
      sample: 10.208.109.19/12
    mtu:
      description: MTU of the child.
      type: int
      returned: always
      sample: 4220
    device:
      description: RDMA device of the NIC.
      type: str
      returned: always
      sample: mlx5_3
    port:
      description: Port of that device.
      type: int
      returned: always
      sample: 1
    gid:
      description: Index of the child's GID of type RoCE v2; V(none) when the NIC has no RDMA device.
      type: int
      returned: always
      sample: 5
    code:
      description: Error code, when there is no child.
      type: str
      returned: always
      sample: nic_in_use
    reason:
      description: Why there is no child.
      type: str
      returned: always
      sample: "rdma3 is in use: namespace cni-6a1f has its ipvlan child rdma3."
    gone:
      description: After O(state=absent), whether no GID of the child is left.
      type: bool
      returned: always
      sample: true
fabric:
  description: The same for M(rdma.k8s.fabric_plan_info) and M(rdma.k8s.validate).
  returned: success
  type: dict
  sample: {children: [{nic: rdma3, index: 3}]}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.host.changes import Changes
from ansible_collections.rdma.k8s.plugins.module_utils.host.child_run import OWNER, Run, Where, Wish


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "nics": {"type": "list", "elements": "str", "default": []},
            "namespace": {"type": "str"},
            "namespace_path": {"type": "path"},
            "pid": {"type": "int"},
            "child_range": {"type": "str", "default": "10.208.0.0/12"},
            "claimed": {"type": "list", "elements": "str", "default": []},
            "refused": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
            "gid_timeout": {"type": "float", "default": 5},
            "service_host": {"type": "str"},
            "host_root": {"type": "path", "default": "/"},
            "imds_url": {"type": "str"},
            "imds_timeout": {"type": "float", "default": 5},
        },
        mutually_exclusive=[("namespace", "namespace_path", "pid")],
        required_one_of=[("namespace", "namespace_path", "pid")],
        supports_check_mode=True,
    )
    options = module.params
    wish = Wish(
        Where(options["namespace"] or "", options["namespace_path"] or "", options["pid"]),
        options["nics"],
        options["child_range"],
        options["claimed"],
        options["refused"] == "skip",
        options["gid_timeout"],
        options["service_host"],
        options["imds_url"] or "",
        options["imds_timeout"],
    )

    def act(changes: Changes, options: dict) -> dict:
        bounds.require_seconds(options, "gid_timeout", "imds_timeout")
        run = Run(changes, wish)
        return run.present() if options["state"] == "present" else run.absent()

    _change.run(module, OWNER, act, libraries=("pyroute2",))


if __name__ == "__main__":
    main()
