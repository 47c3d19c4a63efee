# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # Modules that change objects of the Kubernetes API, and can write them to a file instead.
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) applies the objects by server-side apply. In check mode the API server checks everything and stores
        nothing.
      - V(absent) removes them.
      - V(rendered) asks no API server. It returns the manifest, and writes it when O(path) is given.
    type: str
    choices: [present, absent, rendered]
    default: present
  path:
    description:
      - A file for the manifest. It is replaced as a whole in one step, with the mode 0644.
      - It is left alone with O(state=absent).
    type: path
  force:
    description:
      - Take over objects that somebody else made under the same name, and fields that somebody else holds; remove
        such objects with O(state=absent).
      - Without it the module fails and names who made the object.
    type: bool
    default: false
notes:
  - Objects are applied with the field manager C(rdma.k8s). An object is taken for one of this collection when that
    manager applied it.
attributes:
  platform:
    platforms: all
"""
