# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shlex

from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
name: netns
short_description: Run on this machine, in a network namespace
description:
  - For tests only; the collection does not offer this plugin to its users.
  - A host is a network namespace of this machine, with its own links, addresses, routes, rules, neighbours and network
    sysctls; files of C(/etc/netns/NAMESPACE) lie over those of C(/etc). Everything else is the machine's.
  - Needs root and C(ip) of iproute2.
author: The rdma.k8s authors
version_added: 0.1.0
extends_documentation_fragment:
  - connection_pipelining
options:
  namespace:
    description: Name of the network namespace.
    type: str
    default: inventory_hostname
    vars:
      - name: inventory_hostname
      - name: ansible_netns
  become_success_timeout:
    description: Seconds to wait for become to succeed.
    type: int
    default: 10
    vars:
      - name: ansible_netns_become_success_timeout
  become_strip_preamble:
    description: Whether to strip the output of become that comes before that of the command.
    type: bool
    default: true
    vars:
      - name: ansible_netns_become_strip_preamble
"""


class Connection(LocalConnection):
    """The connection to a network namespace: each command runs inside it; files are the machine's own."""

    transport = "netns"

    def exec_command(
        self, cmd: str, in_data: bytes | None = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command in the namespace. A namespace that is not there is an error of ``ip``, code 1."""
        words = ["ip", "netns", "exec", self.get_option("namespace"), "/bin/sh", "-c", cmd]
        return super().exec_command(shlex.join(words), in_data=in_data, sudoable=sudoable)
