# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role oke_dranet: what it removes is what it makes, and its variables are those of the modules."""

from __future__ import annotations

import json
from typing import Any

import yaml

from ansible_collections.rdma.k8s.plugins.modules import dranet_plan_info
from ansible_collections.rdma.k8s.tests.support import change_run
from ansible_collections.rdma.k8s.tests.support.playbook import COLLECTION

ROLE = COLLECTION / "roles" / "oke_dranet"
NAMESPACE = "rdma"


def read(path: str) -> Any:
    """A file of the role."""
    return yaml.safe_load((ROLE / path).read_text(encoding="utf-8"))


def names(documents: Any) -> list[tuple[str, str, str, str]]:
    """What identifies objects."""
    return [
        (each["apiVersion"], each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", ""))
        for each in documents
    ]


def test_all_that_is_made_is_removed() -> None:
    """The lists of the removal name every object of a plan with everything, in the same order."""
    plan = change_run.good(
        dranet_plan_info,
        image="r.test/dranet:main",
        provider_image="r.test/rdma-k8s:1",
        version="main",
        namespace=NAMESPACE,
        nic_table={"rdma0": "10.208.0.1/12"},
    )
    text = json.dumps(read("vars/main.yml"))
    for variable, value in (("namespace", NAMESPACE), ("device_class", "rdma-nic")):
        text = text.replace("{{ oke_dranet_%s }}" % variable, value)
    removed = json.loads(text)
    assert names(removed["__oke_dranet_ours"]) == names(plan["provider"])
    assert names(removed["__oke_dranet_driver"]) == names(plan["dranet"])
    assert names(removed["__oke_dranet_class"]) == names(plan["more"])


def test_variables() -> None:
    """The specification has every variable with its default, and every option of the plan is a variable."""
    defaults = read("defaults/main.yml")
    options = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: entry.get("default") for name, entry in options.items()} == defaults
    documented = yaml.safe_load(dranet_plan_info.DOCUMENTATION)["options"]
    assert {"oke_dranet_" + name for name in documented} <= set(defaults)
    for name, entry in documented.items():
        own = options["oke_dranet_" + name]
        assert own.get("choices") == entry.get("choices"), name
        assert own["type"] == entry["type"], name
        assert (own["default"] or None) == (entry.get("default") or None), name


def test_the_readme_names_every_variable() -> None:
    """In the table of the README."""
    text = (ROLE / "README.md").read_text(encoding="utf-8")
    missing = [name for name in read("defaults/main.yml") if "`%s`" % name not in text]
    assert missing == []
