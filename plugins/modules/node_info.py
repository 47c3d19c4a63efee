#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_info
short_description: Read all that a node tells about its RDMA side
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads RDMA devices, ports and GID tables, network interfaces, addresses, routes and rules, PCI functions, ARP
    settings, kernel modules and their options, the files of the Oracle Cloud Agent, the metadata service and the packet
    filter rules for RoCE of one node, in one task.
  - Nothing is judged and nothing is changed. P(rdma.k8s.validate#module) judges the snapshots of all nodes on the
    controller.
  - A source that cannot be read is an entry of RV(snapshot.errors), not a failure of the module.
extends_documentation_fragment:
  - rdma.k8s.attributes.node_info
  - rdma.k8s.attributes.libraries
options:
  name:
    description:
      - Name of the node in the snapshot, usually the name that the inventory uses.
      - Without it the host name is used.
    type: str
  subsets:
    description:
      - What to read.
      - V(slow) is read only when it is named, since it costs seconds or starts programs of the node.
    type: list
    elements: str
    choices: [kernel, rdma, links, routes, pci, oca, imds, firewall, slow]
    default: [kernel, rdma, links, routes, pci, oca, imds, firewall]
  host_root:
    description:
      - Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
      - When it holds a file C(netlink.json), it is a recorded tree and the answers of netlink come from that file.
    type: path
    default: /
  imds_url:
    description:
      - Base URL of the metadata service, with a literal link-local or loopback address.
      - Without it the service of Oracle Cloud at V(http://169.254.169.254/opc/v2) is asked. For a recorded tree its
        file C(imds.json) is read instead.
    type: str
  imds_timeout:
    description: Limit of each request to the metadata service in seconds, at most 600.
    type: float
    default: 5
  layout:
    description:
      - V(readable) writes lists of objects, V(compact) writes them as tables with each key only once, for the way to
        the controller. All modules and commands of this collection read both.
    type: str
    choices: [readable, compact]
    default: readable
seealso:
  - module: rdma.k8s.nic_info
"""

EXAMPLES = r"""
- name: Read all
  rdma.k8s.node_info:
    name: "{{ inventory_hostname }}"
  register: node

- name: Read all, also what is slow
  rdma.k8s.node_info:
    name: "{{ inventory_hostname }}"
    subsets: [kernel, rdma, links, routes, pci, oca, imds, firewall, slow]
  register: node

- name: Read from a recorded tree, without the metadata service
  rdma.k8s.node_info:
    host_root: /srv/recorded/n7
    subsets: [kernel, rdma, links, routes, pci, oca]
  delegate_to: localhost
"""

RETURN = r"""
snapshot:
  description:
    - The snapshot. Fields with their default value are left out.
    - A field that is V(none) or left out was not gathered or could not be read. An empty list means that there is
      nothing.
    - With O(layout=compact) a list of objects is a table with the keys C(columns) and C(rows).
  returned: success
  type: dict
  contains:
    schema_version:
      description: Version of the form of the snapshot.
      type: int
      returned: always
      sample: 1
    name:
      description: Name of the node.
      type: str
      returned: always
      sample: gpu-001
    collected_at:
      description: When it was read, in UTC.
      type: str
      returned: always
      sample: '2026-03-02T09:00:00Z'
    subsets:
      description: What was read.
      type: list
      elements: str
      returned: always
      sample: [kernel, rdma, links, routes, pci, oca, imds, firewall]
    collector:
      description: Versions of the collection, of Python and of pyroute2, and how long it took in milliseconds.
      type: dict
      returned: always
      sample: {version: 0.1.0, python: 3.10.12, pyroute2: 0.9.7, duration_ms: 84}
    host:
      description: Names and versions of the machine, its last boot in seconds since the epoch.
      type: dict
      returned: always
      sample: {hostname: gpu-001, kernel: 6.8.0-1035-oracle, architecture: x86_64, os: ubuntu, os_version: '22.04'}
    errors:
      description: Reads that failed.
      type: list
      elements: dict
      returned: when there are some
      sample: [{source: rdma-netlink, reason: ib_core is not loaded}]
    rdma:
      description: Mode of the RDMA subsystem by RDMA netlink, and the text of the parameter file of C(ib_core).
      type: dict
      returned: when known
      sample: {netns_mode: shared, netns_parameter: 'Y', copy_on_fork: true}
    module_options:
      description: Settings of options of C(ib_core) in files and on the kernel command line; the last one wins.
      type: list
      elements: dict
      returned: when the subset V(kernel) is read
      sample: [{source: /etc/modprobe.d/rdma.conf, option: netns_mode, value: '1', line: 1, modified: 1772000000}]
    modules:
      description: Kernel modules of interest that are there, with V(live), V(loading), V(unloading) or V(builtin).
      type: dict
      returned: when the subset V(kernel) is read
      sample: {ib_core: live, mlx5_core: live, mlx5_ib: live}
    char_devices:
      description: Files of C(/dev/infiniband) that belong to no single device.
      type: list
      elements: str
      returned: when the subset V(rdma) is read
      sample: [rdma_cm]
    pci:
      description:
        - Network functions as a text of address, identifier, class, driver and NUMA node.
        - Then V(vf-of) and the address of the physical function, or V(vfs) and the number of virtual ones.
      type: list
      elements: str
      returned: when the subset V(pci) is read
      sample: ['0000:0c:00.0 15b3:1021 0200 mlx5_core 0']
    links:
      description: Network interfaces, without the ends of veth pairs and other virtual ones that hold no address.
      type: list
      elements: dict
      returned: when the subset V(links) is read
      sample:
        - name: rdma0
          mac: b8:3f:d2:0d:13:00
          mtu: 4220
          state: up
          pci: '0000:0c:00.0'
          addresses: [10.224.13.19/12]
          arp: 1 2 0 2
    arp_all:
      description: The ARP settings of all interfaces in the order ignore, announce, filter, rp_filter.
      type: str
      returned: when the subset V(links) is read
      sample: 0 0 0 2
    devices:
      description: RDMA devices with their ports and GID tables.
      type: list
      elements: dict
      returned: when the subset V(rdma) is read
      sample:
        - name: mlx5_0
          pci: '0000:0c:00.0'
          guid: b83fd203000d1300
          firmware: 28.43.2566
          board: MT_0000000838
          uverbs: uverbs0
          ports:
            - state: ACTIVE
              phys_state: LinkUp
              link_layer: Ethernet
              rate: 400 Gb/sec (4X NDR)
              netdev: rdma0
              gids: ['2v1,3v2 10.224.13.19']
    routes:
      description: Unicast routes of all tables and both families in the words of iproute2.
      type: list
      elements: str
      returned: when the subset V(routes) is read
      sample: ['10.224.0.0/12 dev rdma0 src 10.224.13.19']
    rules:
      description: Policy rules of both families in the words of iproute2.
      type: list
      elements: str
      returned: when the subset V(routes) is read
      sample: ['32000: from 10.208.13.19 lookup 100']
    namespaces:
      description: Names of the network namespaces in C(/run/netns).
      type: list
      elements: str
      returned: when the subset V(links) is read
      sample: [cni-6a1f]
    imds:
      description: Documents of the metadata service, reduced to the fields in use, identifiers shortened.
      type: dict
      returned: when the subset V(imds) is read
      sample:
        instance: {shape: BM.GPU.H100.8}
        host: {rdmaFabricData: {ipv6: false, planes: 1}}
        vnics: [{privateIp: 10.140.77.19, subnetCidrBlock: 10.140.64.0/19}]
    oca:
      description: Files of the Oracle Cloud Agent as text without white space; empty for a missing file.
      type: dict
      returned: when the subset V(oca) is read
      sample: {directory: present, rdma_network: '', rdma_features_enable: '{}', agent_version: 1.52.0-23}
    firewall:
      description: Packet filter rules and policies of nftables that decide about UDP port 4791.
      type: list
      elements: dict
      returned: when the subset V(firewall) is read
      sample: [{family: inet, table: filter, chain: input, hook: input, verdict: drop, text: policy drop}]
    slow:
      description: What the subset V(slow) read, one key for each source.
      type: dict
      returned: when the subset V(slow) is read
      sample:
        initramfs: [{image: /boot/initrd.img-6.8.0-1035-oracle, kernel: 6.8.0-1035-oracle, has_module: true}]
        reboots: []
    fabric:
      description: What a proof of the fabric saw. This module does not return it; C(rdma.k8s.conformance) adds it.
      type: dict
      returned: in recordings of a proof
      sample: {expected: 2, problems: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _module
from ansible_collections.rdma.k8s.plugins.module_utils.core import bounds
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import DEFAULT_SUBSETS, SUBSETS
from ansible_collections.rdma.k8s.plugins.module_utils.host.collect import collect, needs_netlink
from ansible_collections.rdma.k8s.plugins.module_utils.version import VERSION


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str"},
            "subsets": {
                "type": "list",
                "elements": "str",
                "choices": list(SUBSETS),
                "default": list(DEFAULT_SUBSETS),
            },
            "host_root": {"type": "path", "default": "/"},
            "imds_url": {"type": "str"},
            "imds_timeout": {"type": "float", "default": 5},
            "layout": {"type": "str", "choices": ["readable", "compact"], "default": "readable"},
        },
        supports_check_mode=True,
    )
    options = module.params

    def act() -> dict:
        bounds.require_seconds(options, "imds_timeout")
        snapshot = collect(
            options["name"] or "",
            options["host_root"],
            options["subsets"],
            imds_url=options["imds_url"] or "",
            imds_timeout=options["imds_timeout"],
            version=VERSION,
        )
        return {"snapshot": snapshot.to_dict(compact=options["layout"] == "compact")}

    needed = needs_netlink(options["host_root"], options["subsets"])
    _module.run(module, act, libraries=("pyroute2",) if needed else ())


if __name__ == "__main__":
    main()
