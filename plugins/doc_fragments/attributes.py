# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later


from __future__ import annotations


class ModuleDocFragment:
    # The attributes of modules that read from a node.
    NODE_INFO = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the result that it would return without it.
    support: full
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: none
    details: Nothing is changed.
  idempotent:
    description: When run twice in a row outside of C(check_mode), with the same arguments, the second run says that
      nothing changed.
    support: full
  platform:
    description: Systems that this can run on.
    support: full
    platforms: linux
"""

    # The attributes of modules that change something.
    CHANGE = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return the result that it would return without it.
    support: full
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: full
  idempotent:
    description: When run twice in a row outside of C(check_mode), with the same arguments, the second run says that
      nothing changed.
    support: full
  platform:
    description: Systems that this can run on.
    support: full
    platforms: linux
"""

    # For modules that change a node, beside CHANGE.
    NODE_CHANGE = r"""
options:
  host_root:
    description: Root of the file system of the node. V(/) on the node itself, the mount point of the host in a pod.
    type: path
    default: /
notes:
  - Each change leaves an undo record below C(/var/lib/rdma-k8s/undo) on the node.
"""

    # For a module with an action plugin that brings libraries along.
    LIBRARIES = r"""
options: {}
notes:
  - The node needs Python 3.9 or newer and nothing else. When the Python library C(pyroute2) is not installed there, it
    is copied from the controller into the directory C(.cache/rdma.k8s) in the home of the user that runs the module,
    for the modules of this collection alone, and kept there for the next run.
requirements:
  - pyroute2 0.7.2 or newer on the controller, or on the node
attributes:
  action:
    description: Has a corresponding action plugin, so that some of the work is done on the controller.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
"""

    # For a module that works on the controller and changes no node.
    CONTROLLER = r"""
options: {}
attributes:
  action:
    description: Has a corresponding action plugin, so that the work is done on the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and return the result that it would return without it.
    support: full
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: none
    details: No node is changed.
  idempotent:
    description: When run twice in a row outside of C(check_mode), with the same arguments, the second run says that
      nothing changed.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
  platform:
    description: Systems that this can run on.
    support: full
    platforms: all
"""

    # For a module that tells what it waits for, see plugin_utils/watching.py.
    WATCHED = r"""
options: {}
notes:
  - When the task runs for more than ten seconds, lines on standard error tell what is waited for and how long it has
    taken. There is at most one each ten seconds, and one a minute when nothing has changed.
  - A module can print nothing before its end, so the controller shows the lines. What is waited for can be told when
    the task runs there, as with C(delegate_to=localhost). On other hosts, with C(become_user) for a user other than
    root, and with C(no_log), only the time is told; with C(async) nothing is.
attributes:
  action:
    description: Has a corresponding action plugin, so that the controller can show what the module waits for.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: full
"""
