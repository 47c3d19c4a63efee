#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_info
short_description: Read the NICs of a node with their RDMA ports
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Joins network interfaces, RDMA devices and their ports, GID tables, PCI functions and ARP settings of one node, one
    entry for each NIC.
  - A port belongs to the interface that the kernel names for it by RDMA netlink. Only where it names none, as for
    native InfiniBand, does the PCI address decide, and only when it is unambiguous.
  - Nothing is changed.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
options:
  host_root:
    description:
      - Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
      - When it holds a file C(netlink.json), it is a recorded tree and the answers of netlink come from that file.
    type: path
    default: /
seealso:
  - module: rdma.k8s.node_info
"""

EXAMPLES = r"""
- name: Read the NICs
  rdma.k8s.nic_info:
  register: node

- name: Show the ports that are not active
  ansible.builtin.debug:
    msg: "{{ node.nics | rejectattr('state', 'in', ['ACTIVE', none]) | map(attribute='name') }}"
"""

RETURN = r"""
nics:
  description:
    - The NICs in the order of their interfaces, then RDMA ports without an interface.
    - A value is V(none) where the node does not tell it.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the interface, else device and port.
      type: str
      returned: always
      sample: rdma0
    index:
      description: The number in a name of the form C(rdmaN).
      type: int
      returned: always
      sample: 0
    netdev:
      description: Name of the interface.
      type: str
      returned: always
      sample: rdma0
    device:
      description: Name of the RDMA device.
      type: str
      returned: always
      sample: mlx5_0
    port:
      description: Number of the port of the RDMA device.
      type: int
      returned: always
      sample: 1
    state:
      description: Logical state of the port.
      type: str
      returned: always
      sample: ACTIVE
    phys_state:
      description: Physical state of the port.
      type: str
      returned: always
      sample: LinkUp
    link_layer:
      description: V(Ethernet) or V(InfiniBand).
      type: str
      returned: always
      sample: Ethernet
    rate:
      description: Rate of the port as the kernel prints it.
      type: str
      returned: always
      sample: 400 Gb/sec (4X NDR)
    active_mtu:
      description: MTU of the RDMA port, where a recording tells it; the kernel tells it only to users of the device.
      type: int
      returned: always
      sample: 4096
    gids:
      description: The used entries of the GID table, by address. Indexes change, so match by address and type.
      type: list
      elements: dict
      returned: always
      contains:
        address:
          description: The GID; an IPv4-mapped one as IPv4 address.
          type: str
          returned: always
          sample: 10.224.13.19
        entries:
          description: Index and type of each entry with this address; V(v1), V(v2) (RoCE v2) or V(ib).
          type: list
          elements: dict
          returned: always
          sample: [{"index": 2, "type": "v1"}, {"index": 3, "type": "v2"}]
        netdev:
          description: The interface of the entries, when it is another one than that of the port.
          type: str
          returned: always
          sample: net1
    guid:
      description: GUID of the RDMA device.
      type: str
      returned: always
      sample: b83fd203000d1300
    firmware:
      description: Firmware version.
      type: str
      returned: always
      sample: 28.43.2566
    mac:
      description: Hardware address of the interface.
      type: str
      returned: always
      sample: b8:3f:d2:0d:13:00
    mtu:
      description: MTU of the interface.
      type: int
      returned: always
      sample: 4220
    link_state:
      description: V(up) or V(down), as the administrator set it.
      type: str
      returned: always
      sample: up
    master:
      description: The bond or bridge that the interface is a member of.
      type: str
      returned: always
      sample: bond0
    addresses:
      description: Addresses of the interface with their lengths.
      type: list
      elements: str
      returned: always
      sample: [10.224.13.19/12]
    arp_ignore:
      description: Text of the sysctl of the interface.
      type: str
      returned: always
      sample: "1"
    arp_announce:
      description: Text of the sysctl of the interface.
      type: str
      returned: always
      sample: "2"
    arp_filter:
      description: Text of the sysctl of the interface.
      type: str
      returned: always
      sample: "0"
    rp_filter:
      description: Text of the sysctl of the interface.
      type: str
      returned: always
      sample: "2"
    pci:
      description: Address of the PCI function.
      type: str
      returned: always
      sample: "0000:0c:00.0"
    driver:
      description: Driver that is bound to the PCI function.
      type: str
      returned: always
      sample: mlx5_core
    numa:
      description: NUMA node of the PCI function.
      type: int
      returned: always
      sample: 0
    vf_of:
      description: PCI address of the physical function, for a virtual function.
      type: str
      returned: always
      sample: "0000:0c:00.0"
    vfs:
      description: Number of virtual functions that a physical function has.
      type: int
      returned: always
      sample: 0
    rdma_network:
      description:
        - Whether the NIC is one of the RDMA network of an OKE node, by its name C(rdmaN), an address of the network of
          the Oracle Cloud Agent, or as a port of InfiniBand.
      type: bool
      returned: always
      sample: true
    default_route:
      description:
        - How the default route goes over the NIC, itself or as a part of a bond, a bridge or below a VLAN. Empty when
          it does not.
      type: str
      returned: always
      sample: default dev eth0
rdma:
  description: The RDMA subsystem.
  returned: success
  type: dict
  contains:
    netns_mode:
      description: V(shared) or V(exclusive), as the kernel tells it by RDMA netlink.
      type: str
      returned: when known
      sample: shared
    netns_parameter:
      description: Text of the parameter file of C(ib_core).
      type: str
      returned: when known
      sample: "Y"
    copy_on_fork:
      description: Whether the kernel copies pinned pages on fork.
      type: bool
      returned: when known
      sample: true
errors:
  description: Reads that failed.
  returned: success
  type: list
  elements: dict
  contains:
    source:
      description: A path, C(rtnetlink) or C(rdma-netlink).
      type: str
      returned: always
      sample: rdma-netlink
    reason:
      description: Why.
      type: str
      returned: always
      sample: ib_core is not loaded
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core import codec, nic_places
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect, needs_netlink

SUBSETS = ("rdma", "links", "routes", "pci", "oca")


def main() -> None:
    module = AnsibleModule(
        argument_spec={"host_root": {"type": "path", "default": "/"}},
        supports_check_mode=True,
    )
    root = module.params["host_root"]

    def act() -> dict:
        snapshot = collect(host_root=root, subsets=SUBSETS)
        return {
            "nics": nic_places.as_dicts(snapshot),
            "rdma": codec.encode(snapshot.rdma),
            "errors": codec.encode(snapshot.errors),
        }

    _module.run(module, act, libraries=("pyroute2",) if needs_netlink(root, SUBSETS) else ())


if __name__ == "__main__":
    main()
