# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role spiderpool_sriov: its variables, what it passes to the module, what its page says, what it keeps secret."""

from __future__ import annotations

import re
from typing import Any

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.rdma.k8s.plugins.module_utils.cluster import spiderpool
from ansible_collections.rdma.k8s.plugins.module_utils.core.spiderpool import deployment
from ansible_collections.rdma.k8s.plugins.modules import spiderpool_plan_info
from ansible_collections.rdma.k8s.tests.support.playbook import COLLECTION

ROLE = COLLECTION / "roles" / "spiderpool_sriov"
PREFIX = "spiderpool_sriov_"
WITHOUT_DEFAULT = {"node_selector", "mtu", "max_unavailable"}
OF_THE_CLUSTER = {"request_timeout"}


def read(path: str) -> Any:
    """A file of the role."""
    return yaml.safe_load((ROLE / path).read_text(encoding="utf-8"))


def plan_call() -> dict[str, str]:
    """What the role passes to the module."""
    (task,) = read("tasks/plan.yml")
    return dict(task["rdma.k8s.spiderpool_plan_info"])


def test_variables() -> None:
    """The specification has every variable, with its default where it has one."""
    defaults = read("defaults/main.yml")
    options = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: entry["default"] for name, entry in options.items() if "default" in entry} == defaults
    assert set(options) - set(defaults) == {PREFIX + name for name in WITHOUT_DEFAULT}


def test_every_option_of_the_module_is_passed() -> None:
    documented = yaml.safe_load(spiderpool_plan_info.DOCUMENTATION)["options"]
    assert set(documented) | {"kubeconfig", "context"} == set(plan_call())


def test_every_variable_is_used_and_on_the_page() -> None:
    options = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    page = (ROLE / "README.md").read_text(encoding="utf-8")
    used = "".join(path.read_text(encoding="utf-8") for path in sorted(ROLE.glob("[tv]a*s/*.yml")))
    assert [name for name in options if "`%s`" % name not in page] == []
    assert [name for name in options if not re.search(r"\b%s\b" % name, used)] == []


def test_the_secret_is_never_shown() -> None:
    """Only the names of its keys reach the module that judges them."""
    assert plan_call()["ufm_keys"] == "{{ __spiderpool_sriov_ufm_keys if spiderpool_sriov_ufm else omit }}"
    for path in sorted(ROLE.glob("tasks/*.yml")):
        for task in _all(read("tasks/" + path.name)):
            if "__spiderpool_sriov_ufm_secret" in str(task.get("rdma.k8s.cluster_objects")):
                assert task["no_log"] is True
                break


def test_an_empty_value_is_as_none() -> None:
    """S146: an empty certificate switches the verification off, so its key is not among those that are judged."""
    loader = DataLoader()
    template = loader.load_from_file(str(ROLE / "vars/main.yml"), trusted_as_template=True)
    given = {"UFM_USERNAME": "admin", "UFM_PASSWORD": "", "UFM_CERTIFICATE": None, "UFM_PORT": 443}
    templar = Templar(loader, variables={"spiderpool_sriov_ufm": given})
    assert templar.template(template["__spiderpool_sriov_ufm_keys"]) == ["UFM_USERNAME", "UFM_PORT"]


def test_ib_kubernetes_has_the_options_of_the_module() -> None:
    documented = yaml.safe_load(spiderpool_plan_info.DOCUMENTATION)["options"]["ib_kubernetes"]["suboptions"]
    option = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"][PREFIX + "ib_kubernetes"]
    assert set(option["options"]) == set(documented)
    assert {name: entry["type"] for name, entry in option["options"].items()} == {
        name: entry["type"] for name, entry in documented.items()
    }
    page = (ROLE / "README.md").read_text(encoding="utf-8").partition("## ib-kubernetes")[2]
    assert [name for name in documented if "`%s`" % name not in page] == []


def test_ib_kubernetes_outlives_the_rails() -> None:
    """It comes before the rails, and goes after them, when nothing is left that it holds."""
    kinds = read("vars/main.yml")["__spiderpool_sriov_of_program"]
    assert kinds == [resource.kind for resource in spiderpool.PROGRAM]
    made = [task["name"] for task in _all(read("tasks/present.yml"))]
    assert made.index("Tell ib-kubernetes how to reach UFM") < made.index("Run ib-kubernetes")
    assert made.index("Run ib-kubernetes") < made.index("Make policies, pools and networks")
    gone = [task["name"] for task in _all(read("tasks/absent.yml"))]
    assert gone.index("Remove the rails, the pods for tests first") < gone.index("Remove ib-kubernetes")
    assert gone.index("Stop where it has not") < gone.index("Remove the rest")


def _all(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tasks, with those of blocks."""
    return [inner for task in tasks for inner in (task, *_all(task.get("block", [])))]


def test_the_secret_is_found_again() -> None:
    """It carries the labels by which everything is removed, and its kind is looked for."""
    labels = read("vars/main.yml")["__spiderpool_sriov_ufm_name"]["metadata"]["labels"]
    assert labels == deployment.LABELS
    assert "Secret" in [resource.kind for resource in spiderpool.KINDS]
