#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: python_environment
short_description: Give a node a Python environment with the libraries of this collection
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Makes a virtual environment at C(/opt/rdma-k8s/python) from a directory with wheels of the controller. The node
    needs neither a network nor pip, only the Python that runs this module, 3.9 or newer.
  - Only wheels that C(SHA256SUMS) of that directory lists are used, and only when they have that SHA-256. They must be
    pure Python, each library once; nothing outside of the environment is installed.
  - The environment is made whole beside its place, its libraries are imported as a test, then it is renamed. A node
    never has half of one.
  - P(rdma.k8s.node_undo#module) removes it.
extends_documentation_fragment:
  - rdma.k8s.attributes.change
  - rdma.k8s.attributes.node_change
options:
  wheelhouse:
    description:
      - Directory on the controller with the wheels and C(SHA256SUMS), as C(sha256sum *.whl) writes it.
      - Wheels are copied to the node only when the environment is to be made.
    type: path
    required: true
  wheels:
    description:
      - The wheels by name, with their SHA-256. C(SHA256SUMS) says it when it is not given.
    type: dict
  libraries:
    description: Libraries without which the wheelhouse is refused.
    type: list
    elements: str
    choices: [pyroute2, netaddr]
    default: [pyroute2]
  remote_src:
    description: Whether O(wheelhouse) is on the node.
    type: bool
    default: false
  host_root:
    description:
      - Root of the file system of the node, V(/) on the node itself. The Python that runs the module must be at the
        same path there.
    type: path
    default: /
attributes:
  action:
    description: Has a corresponding action plugin, so that some of the work is done on the controller.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
seealso:
  - module: rdma.k8s.node_undo
"""

EXAMPLES = r"""
- name: Make the environment from a directory of the controller
  rdma.k8s.python_environment:
    wheelhouse: files/wheelhouse
  register: environment

- name: Use it from here on
  ansible.builtin.set_fact:
    ansible_python_interpreter: "{{ environment.interpreter }}"
"""

RETURN = r"""
interpreter:
  description: The Python of the environment.
  returned: success
  type: str
  sample: /opt/rdma-k8s/python/bin/python3
python:
  description: The Python that it was made from.
  returned: success
  type: str
  sample: /usr/bin/python3.11
libraries:
  description: Version of each library in it.
  returned: success
  type: dict
  sample: {"pyroute2": "0.9.7"}
actions:
  description: What was changed, or would be.
  returned: always
  type: list
  elements: str
  sample: [make the directory /opt/rdma-k8s, set /opt/rdma-k8s/python]
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.rdma.k8s.plugins.module_utils import _change, deps
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.module_utils.host import python_environment, wheels


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "wheelhouse": {"type": "path", "required": True},
            "wheels": {"type": "dict"},
            "libraries": {
                "type": "list",
                "elements": "str",
                "choices": ["pyroute2", "netaddr"],
                "default": ["pyroute2"],
            },
            "remote_src": {"type": "bool", "default": False},
            "host_root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )

    def act(changes: _change.Changes, given: dict) -> dict:
        listed = wheels.sums(given["wheelhouse"]) if given["wheels"] is None else given["wheels"]
        wheels.check(listed)
        wheels.require(listed, {name: deps.MINIMUM[name] for name in given["libraries"]})
        state = python_environment.wanted(listed)
        current = python_environment.read(changes.root)
        if current != state or not python_environment.intact(changes.root, state):
            python_environment.require_python(changes.root, state)
            if not (module.check_mode or given["remote_src"]):
                raise RdmaError(
                    "wheels_wanted", "The wheels of %s are not on the node." % given["wheelhouse"]
                )
            changes.directory(os.path.dirname(python_environment.PLACE))
            changes.live(
                "python_environment",
                python_environment.PLACE,
                None if current == state else current,
                state,
                lambda: python_environment.make(changes.root, state, given["wheelhouse"]),
            )
        elif not module.check_mode:
            python_environment.tidy(changes.root, python_environment.PLACE)
        return {
            "interpreter": python_environment.INTERPRETER,
            "python": state["python"],
            "libraries": wheels.versions(listed),
        }

    _change.run(module, "python_environment", act)


if __name__ == "__main__":
    main()
