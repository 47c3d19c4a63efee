# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin that judges, with Ansible's own inventory, variables and templates, and without any host."""

from __future__ import annotations

import dataclasses
import json
import stat
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.action import validate
from ansible_collections.rdma.k8s.plugins.module_utils import judging, progress, records, report_files
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.judge import NodeInput
from ansible_collections.rdma.k8s.plugins.module_utils.core.checks.registry import CATALOGUE
from ansible_collections.rdma.k8s.plugins.module_utils.core.cluster_snapshot import ClusterSnapshot
from ansible_collections.rdma.k8s.plugins.module_utils.core.snapshot import SCHEMA_VERSION, NodeSnapshot
from ansible_collections.rdma.k8s.plugins.modules import validate as documentation
from ansible_collections.rdma.k8s.plugins.plugin_utils import showing
from ansible_collections.rdma.k8s.tests.support import cases, cluster_fleet, fleet
from ansible_collections.rdma.k8s.tests.support.action_plugin import made, task_of
from ansible_collections.rdma.k8s.tests.unit.plugins.action.test_watching import PATIENCE, Screen

OWN = {
    "id": "ACME-001",
    "title": "It has a name",
    "expression": "name != ''",
    "severity": "error",
    "hint": ".",
}


class Recorder:
    """Takes what is displayed."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, text: str) -> None:
        self.shown.append(text)


class Run:
    """The plugin in a play over the hosts of an inventory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: dict[str, dict[str, Any]] = {}
        self.gathered: dict[str, Any] = {}
        self.display = Recorder()

    def add(self, name: str, gathered: Any = None, **variables: Any) -> None:
        """A host with variables of the inventory, and the result of its gathering task."""
        self.hosts[name] = variables
        if gathered is not None:
            self.gathered[name] = gathered

    def action(self, **args: Any) -> tuple[validate.ActionModule, dict[str, Any]]:
        path = self.folder / "hosts.yml"
        path.write_text(yaml.safe_dump({"all": {"hosts": self.hosts}}))
        loader = DataLoader()
        inventory = InventoryManager(loader, sources=[str(path)])
        variables = VariableManager(loader, inventory)
        for host, result in self.gathered.items():
            variables.set_nonpersistent_facts(host, {"rdma_k8s_node": result})
        task_vars = {
            "hostvars": HostVars(inventory, variables, loader),
            "ansible_play_hosts_all": list(self.hosts),
        }
        action = made(
            validate.ActionModule, task_of(args), loader=loader, variables=task_vars, display=self.display
        )
        return action, task_vars

    def __call__(self, **args: Any) -> dict[str, Any]:
        action, task_vars = self.action(**args)
        return action.run(task_vars=task_vars)

    def refused(self, **args: Any) -> str:
        """The sentence of a run that must fail, without a line break."""
        with pytest.raises(AnsibleError) as caught:
            self(**args)
        assert caught.value.__cause__ is None  # Ansible would show the sentence twice
        assert self.display.shown == []
        return str(caught.value)


@pytest.fixture(name="play")
def play_fixture(tmp_path: Path) -> Run:
    return Run(tmp_path)


def snapshot(number: int = 0, name: str = "as-it-calls-itself", compact: bool = True) -> dict[str, Any]:
    return {"snapshot": fleet.node(number=number, name=name).to_dict(compact=compact), "changed": False}


def healthy(play: Run) -> Run:
    for number in range(2):
        play.add("n%d" % number, snapshot(number, compact=bool(number)))
    return play


@pytest.mark.parametrize("show", [True, False])
def test_a_slow_judgement_is_told_beside_the_output(
    play: Run, monkeypatch: pytest.MonkeyPatch, show: bool
) -> None:
    judge, display = judging.judge_now, Screen()

    def slow(*given: Any) -> Any:
        display.told.clear()
        assert display.told.wait(PATIENCE if show else 0.2) == show
        return judge(*given)

    monkeypatch.setattr(judging, "judge_now", slow)
    monkeypatch.setattr(showing.progress, "Progress", partial(progress.Progress, pause=0.02))
    play.display = display  # type: ignore[assignment]
    action, task_vars = healthy(play).action(show=show)
    action.run(task_vars=task_vars)
    told = [text for text, options in display.shown if options == {"stderr": True}]
    assert ("rdma.k8s.validate: still judging 2 nodes, 0 s so far" in told) == show
    assert len(display.shown) == len(told) + show


def rows(path: Path) -> dict[str, Any]:
    return {row.name: row for row in report_files.read_result(str(path)).nodes}


def test_hosts_of_the_play_are_judged_by_their_names_in_the_inventory(play: Run, tmp_path: Path) -> None:
    dest = tmp_path / "new" / "result.json"
    result = healthy(play)(policy=cases.SURROUNDINGS, dest=str(dest))
    assert (result["changed"], result["exit_code"], result["nodes"]) == (False, 0, 2)
    assert (result["counts"]["fail"], result["counts"]["unknown"]) == (0, 0)
    assert set(rows(dest)) == {"n0", "n1"}
    assert result["dest"] == str(dest)
    assert max(map(len, result["summary"])) <= 100
    assert len(play.display.shown) == 1
    assert play.display.shown[0].splitlines()[0] == result["summary"][0]


PODS = {
    "pods": [
        {
            "namespace": "train",
            "name": "worker-0",
            "node": "n0",
            "privileged": False,
            "reason": "",
            "predicates": [{"predicate": "P7", "status": "fail", "message": "net2 has no entry."}],
        }
    ],
    "fabric": {"rows": ["net1"]},
}


def test_running_pods_are_judged_too(play: Run, tmp_path: Path) -> None:
    """What was seen in pods comes into the result, and the matrix of their rails beside it."""
    dest = tmp_path / "r.json"
    result = healthy(play)(
        policy={"target": "spiderpool_sriov", "only": ["RDMA-SRIOV-020"]}, pods=PODS, dest=str(dest)
    )
    assert result["counts"]["fail"] == 1
    (found,) = [entry for entry in report_files.read_result(str(dest)).findings if entry.status == "fail"]
    assert "net2 has no entry." in found.message
    assert result["pod_fabric"] == PODS["fabric"]
    assert json.loads((tmp_path / "pod-fabric.json").read_text()) == PODS["fabric"]
    play.display.shown.clear()
    assert "The option 'pods' has no pods that were looked into." in play.refused(
        policy={}, pods={"pods": []}
    )


def test_the_documentation_names_what_is_returned(play: Run, tmp_path: Path) -> None:
    described = yaml.safe_load(documentation.RETURN)
    judged = healthy(play)(policy={}, dest=str(tmp_path / "r.json"), record=str(tmp_path / "rec"))
    checked = play(input_only=True)
    elsewhere = {"fabric", "pod_fabric"}  # the former in test_proof.py
    assert {*judged, *checked, *elsewhere} - {"changed"} == set(described)
    options = yaml.safe_load(documentation.DOCUMENTATION)["options"]
    assert set(options) == set(validate.ARGUMENT_SPEC)
    for name, spec in validate.ARGUMENT_SPEC.items():
        for key in ("default", "choices", "elements", "type"):
            assert options[name].get(key) == spec.get(key), (name, key)


def test_a_host_without_a_snapshot_is_a_row_with_a_reason(play: Run, tmp_path: Path) -> None:
    healthy(play)
    play.add("nothing")
    play.add("gone", {"unreachable": True, "msg": "Task failed: Failed to connect:\n no route"})
    play.add("old", {"msg": "Module result deserialization failed: x", "module_stderr": "no\n", "rc": 126})
    play.add("newer", {"snapshot": {"schema_version": SCHEMA_VERSION + 1, "name": "x"}})
    play.add("strange", {"snapshot": ["no", "map"]})
    play.add("broken", {"snapshot": {"schema_version": 1, "name": "x", "links": 7}})
    play.add("skipped", {"skipped": True, "skip_reason": "Conditional result was False"})
    dest = tmp_path / "result.json"
    result = play(dest=str(dest))
    assert result["nodes"] == 9
    found = {name: row.reason for name, row in rows(dest).items() if not row.reachable}
    assert found.pop("nothing") == "Nothing was gathered from this node (no variable rdma_k8s_node)."
    assert found.pop("gone") == "Failed to connect: no route"
    assert found.pop("old").startswith("The module did not run (exit code 126): no.")
    newer = found.pop("newer")
    assert newer.startswith("newer: The snapshot of newer has schema version 2; this release reads up to")
    assert found.pop("broken").startswith("broken: snapshot.links must be a list, found 7.")
    assert found == dict.fromkeys(("strange", "skipped"), "The node gave no snapshot.")
    unknown = [f for f in report_files.read_result(str(dest)).findings if f.node == "gone"]
    assert len(unknown) > 40
    assert {entry.status for entry in unknown} == {"unknown"}


def test_what_the_inventory_says_of_a_host(play: Run, tmp_path: Path) -> None:
    for number, rack in enumerate("ab"):
        play.add(
            "n%d" % number,
            snapshot(number),
            rack=rack,
            rdma_network="net-{{ rack }}",
            rdma_child_range="10.208.0.0/{{ 12 if rack == 'a' else 33 }}",
        )
    play.add("n2", snapshot(2), rdma_network=None, rdma_child_range="")
    play.add("n3", snapshot(3), rdma_network="{{ hostvars['n0'].rdma_network }}", rdma_child_range=12)
    dest = tmp_path / "result.json"
    play(dest=str(dest))
    found = rows(dest)
    assert [found[name].network for name in ("n0", "n1", "n3")] == ["net-a", "net-b", "net-a"]
    assert found["n2"].network not in ("", "None", "net-a", "net-b")
    wrong = {
        finding.node: finding.message
        for finding in report_files.read_result(str(dest)).findings
        if finding.check == "RDMA-RANGE-001" and finding.status == "fail"
    }
    assert sorted(wrong) == ["n1", "n3"]
    assert "10.208.0.0/33" in wrong["n1"]


def test_a_variable_that_cannot_be_templated_is_named_with_its_host(play: Run) -> None:
    play.add("n0", snapshot(), rdma_network="net-{{ rack }}")
    sentence = play.refused()
    assert sentence.startswith("rdma_network of host n0: ")
    assert "rack" in sentence


def test_chosen_hosts_alone_are_judged(play: Run) -> None:
    healthy(play)
    assert play(hosts=["n1"])["nodes"] == 1
    play.display.shown.clear()
    assert play.refused(hosts=["n1", "nope"]) == "The inventory has no host 'nope', which is to be judged."
    assert play.refused(hosts=[]).startswith("There is no node to judge.")


def test_another_variable(play: Run) -> None:
    play.add("n0", None, mine=snapshot())
    assert play(variable="mine", policy=cases.SURROUNDINGS)["counts"]["unknown"] == 0


def test_recorded_nodes_need_no_inventory(play: Run, tmp_path: Path) -> None:
    node = fleet.node(name="r0")
    records.save(str(tmp_path / "in"), [NodeInput("r0", node, child_range="10.208.0.0/12", network="blue")])
    result = play(snapshots=str(tmp_path / "in"), record=str(tmp_path / "out"), show=False)
    assert result["recorded"] == [str(tmp_path / "out" / "r0.json")]
    path = tmp_path / "out" / "r0.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == (tmp_path / "in" / "r0.json").read_bytes()
    assert json.loads(path.read_text())["inventory"] == {"child_range": "10.208.0.0/12", "network": "blue"}
    assert play.display.shown == []


def test_hosts_and_recorded_nodes_exclude_each_other(play: Run) -> None:
    assert "mutually exclusive" in play.refused(hosts=["n1"], snapshots="x")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, 0),
        ({"strict": True}, 3),
        ({"strict": True, "threshold": "critical"}, 3),
        ({"policy": {"skip": ["RDMA-TOOL-001"]}, "threshold": "warning"}, 0),
        ({"policy": {"mtu": 9000}}, 4),
        ({"policy": {"mtu": 9000}, "strict": True}, 4),
        ({"policy": {"mtu": 9000}, "threshold": "critical"}, 0),
        (
            {
                "policy": {
                    "mtu": 9000,
                    "waivers": [{"check": "*", "reason": "r", "owner": "o", "expires": "2999-01-01"}],
                },
                "strict": True,
            },
            0,
        ),
    ],
)
def test_threshold_and_strictness(play: Run, options: dict[str, Any], code: int) -> None:
    node = fleet.without(fleet.node(), "firewall", "nftables", "not permitted")
    play.add("n0", {"snapshot": node.to_dict()})
    options = {**options, "policy": {**cases.SURROUNDINGS, **options.get("policy", {})}}
    assert play(**options)["exit_code"] == code


def test_only_the_input(play: Run) -> None:
    result = play(input_only=True, policy={"only": ["RDMA-OCA-*", "RDMA-RANGE-001"], "checks": [OWN]})
    chosen = [check for check in sorted(CATALOGUE) if check.startswith(("RDMA-OCA-", "RDMA-RANGE-001"))]
    assert result == {"changed": False, "checks": [*chosen, "ACME-001"], "child_range": "10.208.0.0/12"}
    assert play.display.shown == []


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ({"childrange": "x"}, "policy has a key 'childrange' that is not known. Known keys: target, "),
        ({"mtu": "big"}, "policy.mtu must be an integer, found 'big'."),
        (
            {"target": "other"},
            "policy.target must be one of oke_dranet, spiderpool_sriov, ack_lingjun, found 'other'.",
        ),
        ({"pod_cidrs": ["10.0.0.1/33"]}, "policy.pod_cidrs: '10.0.0.1/33' is not a network"),
        ({"only": ["RDMA-NOPE-*"]}, "No check has an id like 'RDMA-NOPE-*'."),
        ({"skip": ["*"]}, "The settings 'only' and 'skip' leave no check."),
        (
            {"checks": [{**OWN, "expression": "foo["}]},
            "The expression of ACME-001 is not JMESPath: Invalid jmespath expression: Incomplete expression",
        ),
        ({"checks": [{**OWN, "expresion": "x"}]}, "policy.checks[0] has a key 'expresion'"),
        (
            {"waivers": [{"check": "X-1", "reason": "r", "owner": "o", "expires": "soon"}]},
            "policy.waivers: expires of X-1 must be a date YYYY-MM-DD, found 'soon'.",
        ),
        (
            {"waivers": [{"check": "X-1", "reason": " ", "owner": "o", "expires": "2030-01-01"}]},
            "policy.waivers: reason of X-1 must not be empty.",
        ),
    ],
)
def test_wrong_settings_are_one_sentence_before_anything_is_judged(
    play: Run, policy: dict[str, Any], sentence: str
) -> None:
    healthy(play)
    for input_only in (True, False):
        found = play.refused(input_only=input_only, policy=policy)
        assert found.startswith(sentence)
        assert "\n" not in found


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file or directory."),
        (b"a: [", "cannot be read: it is not YAML (while parsing a flow node"),
        (b"\xff\xfe\x00", "cannot be read: it is not "),
        (b"- a\n", "The policy must be a map of settings, found list."),
        (b"a: *b\n", "cannot be read: it is not YAML (found undefined alias"),
        (
            b"!!python/object:os.system {}\n",
            "cannot be read: it is not YAML (could not determine a constructor",
        ),
        (b"childrange: x\n", "policy has a key 'childrange' that is not known."),
        (
            b"waivers: [{check: X-1, reason: r, owner: o, expires: 2026-13-01}]\n",
            "policy.waivers: expires of X-1 must be a date YYYY-MM-DD, found '2026-13-01'.",
        ),
        (b"max_age: 2026-01-01\n", "policy.max_age must be an integer, found '2026-01-01'."),
        (b"[" * 20000, "cannot be read: it is not YAML"),
    ],
)
def test_a_wrong_policy_file_is_one_sentence(
    play: Run, tmp_path: Path, content: Optional[bytes], sentence: str
) -> None:
    path = tmp_path / "policy.yml"
    if content is not None:
        path.write_bytes(content)
    found = play.refused(input_only=True, policy_file=str(path))
    assert sentence in found
    assert "\n" not in found


def test_settings_lie_over_those_of_the_file(play: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yml"
    path.write_text("child_range: 10.208.0.0/99\nonly: [RDMA-RANGE-001]\n")
    healthy(play)
    assert play(policy_file=str(path))["exit_code"] == 4
    assert play(policy_file=str(path), policy={"child_range": "10.208.0.0/12"})["exit_code"] == 0
    path.write_text("")
    assert play(policy_file=str(path), policy={"only": ["RDMA-RANGE-001"]})["exit_code"] == 0


def test_a_date_that_yaml_would_make_an_object_of(play: Run, tmp_path: Path) -> None:
    path = tmp_path / "policy.yml"
    path.write_text("waivers: [{check: RDMA-NODE-001, reason: r, owner: o, expires: 2030-01-31}]\n")
    assert "checks" in play(input_only=True, policy_file=str(path))


def test_an_unknown_threshold(play: Run) -> None:
    for input_only in (True, False):
        assert "value of threshold must be one of" in play.refused(threshold="all", input_only=input_only)


def test_the_code_of_an_error_is_in_the_result(play: Run) -> None:
    with pytest.raises(AnsibleActionFail) as caught:
        play(policy={"childrange": 1})
    assert caught.value.result["code"] == "policy_unknown_key"


def test_a_result_that_cannot_be_written(play: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written: File exists." in healthy(play).refused(dest=str(tmp_path / "file" / "r.json"))


def test_it_needs_no_connection_and_works_in_check_mode() -> None:
    assert not validate.ActionModule._requires_connection
    assert validate.ActionModule._supports_check_mode


class Variables(Mapping):
    """Stands for the variables of all hosts: each has the same gathered result."""

    def __init__(self, gathered: Any) -> None:
        self.gathered = gathered

    def raw_get(self, _host: str) -> dict[str, Any]:
        return {"node": self.gathered}

    def __getitem__(self, host: str) -> Any:
        return self.raw_get(host)

    def __iter__(self) -> Any:
        return iter(["n"])

    def __len__(self) -> int:
        return 1


def anything() -> st.SearchStrategy[Any]:
    names = st.sampled_from(
        ["snapshot", "msg", "name", "schema_version", "links", "rc", "inventory", "unreachable"]
    )
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.floats(), st.text(max_size=5))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
        max_leaves=10,
    )


@pytest.fixture(scope="module", name="plugin")
def plugin_fixture(tmp_path_factory: pytest.TempPathFactory) -> validate.ActionModule:
    return Run(tmp_path_factory.mktemp("any")).action()[0]


@given(gathered=anything())
def test_whatever_was_registered_gives_a_row(plugin: validate.ActionModule, gathered: Any) -> None:
    found = plugin._input_of("n", Variables(gathered), "node")
    assert found.name == "n"
    assert isinstance(found.snapshot, NodeSnapshot) or found.reason
    assert found.snapshot is None or found.snapshot.name == "n"


def with_cluster(play: Run) -> ClusterSnapshot:
    """Hosts that have other names than their nodes, and the cluster of these, in which one slice is missing."""
    healthy(play)
    cluster = cluster_fleet.healthy([fleet.node(number=number) for number in range(2)])
    return dataclasses.replace(cluster, slices=(cluster.slices or ())[1:])


@pytest.mark.parametrize("compact", [False, True])
def test_a_cluster_is_judged_beside_the_hosts(play: Run, tmp_path: Path, compact: bool) -> None:
    dest, record = tmp_path / "r.json", tmp_path / "recorded"
    cluster = with_cluster(play).to_dict(compact=compact)
    result = play(cluster=cluster, policy=cases.SURROUNDINGS, dest=str(dest), record=str(record))
    assert (result["exit_code"], result["nodes"]) == (4, 2)
    document = report_files.read_result(str(dest))
    assert document.cluster == "training"
    failed = {(entry.node, entry.check) for entry in document.findings if entry.status == "fail"}
    assert failed == {("training", "RDMA-DRA-008"), ("n0", "RDMA-DRA-009"), ("n0", "RDMA-DRA-010")}
    assert str(record / "cluster.json") in result["recorded"]
    again = play(snapshots=str(record), policy=cases.SURROUNDINGS)
    assert again["counts"] == result["counts"]
    alone = play(cluster_file=str(record / "cluster.json"), hosts=["n0"], policy=cases.SURROUNDINGS)
    assert (alone["exit_code"], alone["nodes"]) == (4, 1)


def test_without_a_cluster_nothing_tells_of_one(play: Run, tmp_path: Path) -> None:
    healthy(play)(policy=cases.SURROUNDINGS, dest=str(tmp_path / "r.json"))
    document = report_files.read_result(str(tmp_path / "r.json"))
    assert document.cluster == ""
    assert [info.id for info in document.checks if info.area == "DRA"] == []


def test_a_wrong_cluster_is_one_sentence(play: Run, tmp_path: Path) -> None:
    healthy(play)
    assert play.refused(cluster={"kind": "Node"}).startswith(
        "The option 'cluster': The document is no snapshot of a cluster: its kind is 'Node'"
    )
    assert "cannot be read" in play.refused(cluster_file=str(tmp_path / "none.json"))
    both = play.refused(cluster={"kind": "ClusterSnapshot"}, cluster_file="x")
    assert "mutually exclusive: cluster|cluster_file" in both
