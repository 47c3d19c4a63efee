# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A role of the collection on the controller, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.rdma.k8s.tests.support.playbook import Controller, Result, Run


class RoleRun:
    """Runs a role in a directory and home of its own.

    :param role: its short name, with which its variables begin.
    :param folder: an empty directory.
    :param always: variables of each run, without the name of the role.
    """

    def __init__(self, role: str, folder: Path, **always: Any) -> None:
        home, work = folder / "home", folder / "run"
        home.mkdir()
        work.mkdir()
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}"},
            "roles": ["rdma.k8s." + role],
        }
        (work / "play.yml").write_text(json.dumps([play]))
        self.role, self.always = role, always
        self.run = Run(Controller(home, folder / "compiled"), work, "play.yml")

    def __call__(self, *words: str, **variables: Any) -> Result:
        """Run it."""
        chosen = {**self.always, **variables}
        named = {"%s_%s" % (self.role, key): value for key, value in chosen.items()}
        return self.run(*words, variables=named)

    def changed(self, *words: str, **variables: Any) -> int:
        """Run it; how many tasks changed something."""
        text = self(*words, **variables).good()
        return int(text.rpartition("changed=")[2].split()[0])
