# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one node needs next, state by state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.roll import machine, planning
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.model import (
    LIMITS,
    ChangeNode,
    Consent,
    DriverPod,
    Evict,
    Fence,
    Marks,
    NodeView,
    Plan,
    Prove,
    Reboot,
    RestartDriver,
    Step,
    Told,
    User,
)
from ansible_collections.rdma.k8s.plugins.module_utils.core.roll.names import ORDER, State

OLD, NEW = "10.224.0.0/12", "10.208.0.0/12"
PLAN = Plan("range", OLD, NEW, ("a",))
TAINT = replace(PLAN, fence="taint")
NAME = planning.digest(PLAN)
STAMP = "2026-01-01T10:00:00Z"
NOW = 1000.0
READY = DriverPod("kube-system", "driver-1", "d1", True, True)
STALE = replace(READY, current=False)
JOB = User(
    "default", "train", "u1", "claim", "default/rdma", owner="Job default/train", owner_kind="Job", ends=True
)
SERVICE = replace(
    JOB, name="serve", uid="u2", owner="ReplicaSet default/serve", owner_kind="ReplicaSet", ends=False
)
HOST = replace(SERVICE, name="tool", uid="u3", reason="host", uses="/dev/infiniband")
BEFORE_APPLIED = ORDER[: ORDER.index(State.APPLIED)]


def marked(state: Optional[State], plan: Plan = PLAN, **more: Any) -> Marks:
    """The marks of a node in a state, as the machine leaves them."""
    name = planning.digest(plan)
    found = Marks(desired=name, state=state, since="2026-01-01T09:00:00Z")
    if state not in (None, State.PENDING, State.RELEASED, State.DONE):
        found = replace(found, lock=name)
        if state is not State.LOCKED:
            found = replace(found, owner=name, initial_unschedulable=False)
    return replace(found, **more)


def node(
    state: Optional[State] = None, plan: Plan = PLAN, marks: Optional[Marks] = None, **more: Any
) -> NodeView:
    """A node in a state, fenced if it is so in that state."""
    found = marks if marks is not None else marked(state, plan)
    fenced = found.owner == planning.digest(plan)
    whole: dict[str, Any] = {
        "unschedulable": fenced and plan.fence == "cordon",
        "fenced_by_rule": fenced and plan.fence == "taint",
        "drivers": (READY,),
        "value": OLD,
        "boot_id": "b1",
        "ready": True,
        **more,
    }
    return NodeView("a", "uid-a", "7", marks=found, **whole)


def step(view: NodeView, plan: Plan = PLAN, limit: State = State.DONE, **told: Any) -> Step:
    """One step of a node that came into its state just now."""
    known = {
        "state": machine.at(plan, view),
        "entered": NOW - 1,
        "tried": True,
        "empty_since": NOW - 60,
        **told,
    }
    return machine.advance(plan, limit, view, Told(**known), NOW, STAMP)


def late(view: NodeView, plan: Plan = PLAN, **told: Any) -> Step:
    """One step of a node that is in its state for as long as it may be."""
    state = machine.at(plan, view)
    assert state is not None
    return step(view, plan, entered=NOW - plan.limits[state], **told)


def entered(found: Step) -> Optional[str]:
    assert found.patch is not None, found
    assert found.patch.version == "7"
    return found.patch.annotations.get("roll-state")


def goes_to(found: Step, state: State, **annotations: Optional[str]) -> None:
    """The step enters a state, and writes just this."""
    assert found.patch is not None, found
    assert found.reason == ""
    assert found.patch.label == state.value
    wanted = {name.replace("_", "-"): text for name, text in annotations.items()}
    assert dict(found.patch.annotations) == {"roll-state": state.value, "roll-since": STAMP, **wanted}


# --- the way of a node


def test_a_node_that_was_not_begun_is_marked_with_the_plan() -> None:
    found = step(node(marks=Marks()))
    goes_to(found, State.PENDING, roll_desired=NAME)
    assert found.patch is not None
    assert found.patch.unschedulable is None


def test_a_node_of_a_roll_that_ended_begins_anew() -> None:
    old = Marks(desired="0ld", applied="0ld", state=State.DONE, attempt=1, error="x", reboots=2, boot_id="b0")
    found = step(node(marks=old))
    assert found.patch is not None
    assert found.patch.annotations["roll-desired"] == NAME
    assert found.patch.annotations["reboots"] is None
    assert found.patch.annotations["roll-attempt"] is None
    assert found.patch.annotations["roll-boot-id"] is None
    assert "roll-applied" not in found.patch.annotations


def test_pending_goes_on_when_the_gate_is_open() -> None:
    goes_to(step(node(State.PENDING)), State.LOCKED, roll_lock=NAME)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ready": False}, "not ready"),
        ({"critical": ("NODE-001 fails", "and more")}, "NODE-001 fails; and more"),
        ({"drivers": ()}, "0 of 1 driver pods"),
        ({"drivers": (READY,), "driver_sets": 2}, "1 of 2 driver pods"),
        ({"drivers": (replace(READY, ready=False),)}, "driver-1 is not ready"),
    ],
)
def test_nothing_is_begun_on_a_node_that_is_not_good(more: dict[str, Any], words: str) -> None:
    view = node(State.PENDING, **more)
    found = step(view)
    assert (found.patch, found.effects) == (None, ())
    assert words in found.reason
    found = late(view)
    assert entered(found) == "Blocked"
    assert words in str(found.patch and found.patch.annotations["roll-last-error"])


def test_the_driver_of_a_node_that_is_fenced_already_need_not_be_good() -> None:
    """Taking a roll back repairs just those."""
    view = node(marks=marked(State.PENDING, owner=NAME), drivers=())
    assert entered(step(view)) == "Locked"
    assert machine.gate(PLAN, view) == ""
    assert "not ready" in step(replace(view, ready=False)).reason


def test_a_locked_node_is_fenced_in_one_patch() -> None:
    found = step(node(State.LOCKED))
    goes_to(found, State.FENCED, roll_owner=NAME, initial_unschedulable="false")
    assert found.patch is not None
    assert found.patch.unschedulable is True
    assert found.effects == ()


def test_a_lock_that_somebody_took_away_is_put_back() -> None:
    found = step(node(marks=marked(State.LOCKED, lock="")))
    assert found.patch is not None
    assert dict(found.patch.annotations) == {"roll-lock": NAME, "roll-since": STAMP}
    assert found.patch.label == "Locked"


def test_a_node_that_others_cordoned_is_remembered_as_such() -> None:
    found = step(node(State.LOCKED, unschedulable=True))
    assert found.patch is not None
    assert found.patch.annotations["initial-unschedulable"] == "true"
    assert found.patch.unschedulable is None


def test_what_the_node_was_before_is_written_only_once() -> None:
    """DEV-28: a controller that died after its cordon does not take it for somebody else's."""
    view = node(marks=marked(State.LOCKED, owner=NAME, initial_unschedulable=False), unschedulable=True)
    found = step(view)
    assert found.patch is not None
    assert "initial-unschedulable" not in found.patch.annotations


def test_the_other_fence_is_a_rule() -> None:
    found = step(node(State.LOCKED, TAINT), TAINT)
    assert found.patch is not None
    assert found.patch.unschedulable is None
    assert found.effects == (Fence(True),)
    waits = node(State.FENCED, TAINT, fenced_by_rule=False)
    assert step(waits, TAINT).effects == (Fence(True),)
    assert entered(late(waits, TAINT)) == "Blocked"
    assert entered(step(node(State.FENCED, TAINT), TAINT)) == "WaitJobs"
    assert step(node(State.LOCKED, TAINT, fenced_by_rule=True), TAINT).effects == ()


def test_a_cordon_of_others_is_no_rule() -> None:
    waits = node(State.FENCED, TAINT, fenced_by_rule=False, unschedulable=True)
    assert step(waits, TAINT).patch is None


def test_a_fenced_node_goes_on() -> None:
    goes_to(step(node(State.FENCED)), State.WAIT_JOBS)


@pytest.mark.parametrize(
    "state",
    [
        State.FENCED,
        State.WAIT_JOBS,
        State.DRAINING,
        State.CLAIMS_RELEASED,
        State.APPLIED,
        State.REBOOTING,
        State.DRIVER_RESTARTED,
        State.VERIFIED,
    ],
)
def test_a_node_that_somebody_uncordons_is_fenced_again(state: State) -> None:
    found = step(node(marks=marked(state, initial_unschedulable=True), unschedulable=False))
    assert found.patch is not None
    assert dict(found.patch.annotations) == {"initial-unschedulable": "false"}
    assert (found.patch.unschedulable, found.patch.label) == (True, state.value)
    assert "somebody took its fence away" in found.reason
    assert found.effects == ()


def test_a_rule_that_somebody_removed_is_made_again() -> None:
    found = step(node(State.DRAINING, TAINT, fenced_by_rule=False), TAINT)
    assert (found.patch, found.effects) == (None, (Fence(True),))
    assert "somebody" in found.reason


@pytest.mark.parametrize("state", [State.PENDING, State.LOCKED, State.RELEASED, State.DONE])
def test_a_node_that_need_not_be_fenced_is_left_schedulable(state: State) -> None:
    found = step(node(state, unschedulable=False))
    assert found.patch is None or "somebody" not in found.reason


# --- jobs

WAITS = replace(PLAN, limits={**LIMITS, State.WAIT_JOBS: 600})


def test_nobody_waits_for_jobs_unless_told_to() -> None:
    assert entered(step(node(State.WAIT_JOBS, users=(JOB,)))) == "Draining"


def test_jobs_are_waited_for_and_services_are_not() -> None:
    found = step(node(State.WAIT_JOBS, WAITS, users=(JOB, SERVICE, replace(JOB, name="two"))), WAITS)
    assert (found.patch, found.effects) == (None, ())
    assert found.reason == "waits for default/train and 1 more"
    assert entered(step(node(State.WAIT_JOBS, WAITS, users=(SERVICE,)), WAITS)) == "Draining"
    assert entered(late(node(State.WAIT_JOBS, WAITS, users=(JOB,)), WAITS)) == "Draining"


def test_jobs_that_must_not_be_evicted_block_the_node() -> None:
    plan = replace(WAITS, consent=Consent(evict_jobs=False))
    assert step(node(State.WAIT_JOBS, plan, users=(JOB,)), plan).patch is None
    found = late(node(State.WAIT_JOBS, plan, users=(JOB,)), plan)
    assert entered(found) == "Blocked"
    assert "default/train did not end" in found.reason
    assert entered(late(node(State.WAIT_JOBS, plan, users=(SERVICE,)), plan)) == "Draining"


# --- draining


def test_pods_are_evicted_once() -> None:
    gone = replace(JOB, uid="u9", leaving=True)
    view = node(State.DRAINING, users=(JOB, SERVICE, gone))
    assert step(view).effects == (Evict((JOB, SERVICE)),)
    found = step(view, evicted=frozenset(("u1",)))
    assert found.effects == (Evict((SERVICE,)),)
    assert found.reason == "drains default/train and 2 more"
    found = step(view, evicted=frozenset(("u1", "u2")))
    assert (found.effects, found.patch) == ((), None)


def test_a_refused_eviction_is_tried_again_when_its_time_has_come() -> None:
    view = node(State.DRAINING, users=(JOB,))
    refused = {"default/train": "the budget allows none"}
    found = step(view, refused=refused, retry_at=NOW + 7)
    assert (found.effects, found.retry) == ((), 7.0)
    assert found.reason == "drains default/train (default/train: the budget allows none)"
    assert step(view, refused=refused, retry_at=NOW).effects == (Evict((JOB,)),)
    found = late(view, refused=refused)
    assert entered(found) == "Blocked"
    assert "the budget allows none" in found.reason


def test_a_drained_node_goes_on() -> None:
    goes_to(step(node(State.DRAINING)), State.CLAIMS_RELEASED)


@pytest.mark.parametrize(
    ("user", "words"),
    [
        (
            replace(JOB, owner_kind="DaemonSet", owner="DaemonSet default/x"),
            "DaemonSet default/x brings it back",
        ),
        (replace(JOB, owner="", owner_kind=""), "nothing makes it anew"),
        (replace(JOB, budgets=2), "2 disruption budgets"),
        (replace(JOB, blocked_by="default/pdb"), "default/pdb"),
    ],
)
def test_pods_that_can_never_go_block_the_node_before_any_is_evicted(user: User, words: str) -> None:
    """DEV-17: the name of the pod is told."""
    found = step(node(State.DRAINING, users=(SERVICE, user)))
    assert entered(found) == "Blocked"
    assert found.effects == ()
    assert "default/train" in found.reason
    assert words in found.reason


def test_consent_lets_them_go() -> None:
    plan = replace(PLAN, consent=Consent(ownerless=True, host_network=True))
    lonely = replace(JOB, owner="", owner_kind="")
    assert step(node(State.DRAINING, plan, users=(lonely, HOST)), plan).effects == (Evict((lonely, HOST)),)


def test_pods_that_use_the_devices_of_the_host_stay_where_only_a_range_changes() -> None:
    assert entered(step(node(State.DRAINING, users=(HOST,)))) == "ClaimsReleased"


def test_pods_that_use_the_devices_of_the_host_block_a_change_of_the_node() -> None:
    plan = replace(PLAN, node_change=True)
    found = step(node(State.DRAINING, plan, users=(HOST,)), plan)
    assert entered(found) == "Blocked"
    assert "default/tool uses /dev/infiniband" in found.reason
    exporter = replace(HOST, owner_kind="DaemonSet")
    assert entered(step(node(State.DRAINING, plan, users=(exporter,)), plan)) == "ClaimsReleased"


# --- claims


def test_claims_are_gone_when_none_was_seen_for_a_while() -> None:
    view = node(State.CLAIMS_RELEASED)
    assert entered(step(view, empty_since=NOW - 5)) == "Applied"
    found = step(view, empty_since=NOW - 4.0)
    assert (found.patch, found.retry) == (None, 1.0)
    found = step(view, empty_since=None)
    assert (found.patch, found.retry) == (None, 5.0)


def test_claims_that_stay_block_the_node() -> None:
    view = node(State.CLAIMS_RELEASED, claims=("default/1", "default/2", "default/3", "default/4"))
    found = step(view, empty_since=None)
    assert found.reason == "claims are not released: default/1, default/2, default/3"
    assert entered(late(view, empty_since=None)) == "Blocked"


def test_a_node_that_does_not_answer_is_not_changed() -> None:
    view = node(State.CLAIMS_RELEASED, ready=False)
    found = step(view)
    assert (found.patch, found.reason) == (None, "the node is not ready")
    assert entered(late(view)) == "Blocked"


@pytest.mark.parametrize("state", [State.CLAIMS_RELEASED, State.APPLIED, State.REBOOTING])
def test_a_node_that_is_used_again_is_drained_again(state: State) -> None:
    found = step(node(marks=marked(state, boot_id="b1"), users=(SERVICE,)))
    goes_to(found, State.DRAINING)
    assert found.effects == ()


@pytest.mark.parametrize("state", [State.APPLIED, State.REBOOTING])
def test_a_node_with_a_claim_is_not_changed(state: State) -> None:
    plan = replace(PLAN, node_change=True, reboot=True)
    found = step(node(marks=marked(state, plan, boot_id="b1"), plan=plan, claims=("default/1",)), plan)
    goes_to(found, State.CLAIMS_RELEASED)


# --- the change


def test_without_a_change_of_the_node_its_driver_is_next() -> None:
    goes_to(step(node(State.APPLIED)), State.DRIVER_RESTARTED)


CHANGES = replace(PLAN, node_change=True, reboot=True)


def test_the_node_is_changed_until_that_is_proven() -> None:
    view = node(State.APPLIED, CHANGES)
    assert step(view, CHANGES).effects == (ChangeNode(),)
    assert step(view, CHANGES, changed=False, trouble="no answer").reason == "no answer"
    assert entered(step(view, CHANGES, changed=True)) == "DriverRestarted"
    found = late(view, CHANGES, trouble="no answer")
    assert entered(found) == "Failed"
    assert found.patch is not None
    assert found.patch.annotations["roll-before"] == "Applied"
    assert found.patch.unschedulable is None
    assert "roll-owner" not in found.patch.annotations


def test_an_owed_reboot_is_done_with_the_boot_id_written_first() -> None:
    found = step(node(State.APPLIED, CHANGES), CHANGES, changed=True, reboot_owed=True)
    goes_to(found, State.REBOOTING, roll_boot_id="b1", reboots="1")
    assert found.effects == ()


def test_a_reboot_that_never_happened_is_not_counted_twice() -> None:
    view = node(marks=marked(State.APPLIED, CHANGES, boot_id="b1", reboots=1), plan=CHANGES)
    goes_to(step(view, CHANGES, changed=True, reboot_owed=True), State.REBOOTING)


def test_a_node_is_rebooted_twice_at_most() -> None:
    told = {"changed": True, "reboot_owed": True}
    once = node(marks=marked(State.APPLIED, CHANGES, boot_id="b0", reboots=1), plan=CHANGES)
    goes_to(step(once, CHANGES, **told), State.REBOOTING, roll_boot_id="b1", reboots="2")
    twice = node(marks=marked(State.APPLIED, CHANGES, boot_id="b0", reboots=2), plan=CHANGES)
    found = step(twice, CHANGES, **told)
    assert entered(found) == "Failed"
    assert "2 times" in found.reason


def test_a_reboot_that_the_plan_does_not_allow_fails_the_node() -> None:
    plan = replace(CHANGES, reboot=False)
    assert entered(step(node(State.APPLIED, plan), plan, changed=True, reboot_owed=True)) == "Failed"


def test_the_reboot_is_asked_for_once_and_proven_by_another_boot() -> None:
    view = node(marks=marked(State.REBOOTING, CHANGES, boot_id="b1", reboots=1), plan=CHANGES)
    assert step(view, CHANGES).effects == (Reboot("b1"),)
    assert step(view, CHANGES).reason == "reboots"
    assert step(view, CHANGES, trouble="no answer").reason == "no answer"
    assert step(view, CHANGES, asked=NOW - 599).effects == ()
    assert step(view, CHANGES, asked=NOW - 600).effects == (Reboot("b1"),)
    assert step(replace(view, boot_id=""), CHANGES, asked=NOW).patch is None
    assert entered(late(view, CHANGES)) == "Failed"
    back = replace(view, boot_id="b2")
    assert entered(step(back, CHANGES)) == "DriverRestarted"
    found = step(replace(back, ready=False), CHANGES)
    assert (found.patch, found.reason) == (None, "has rebooted and is not ready")
    assert entered(late(replace(back, ready=False), CHANGES)) == "Failed"


def test_a_node_that_is_down_counts_neither_users_nor_claims_after_its_reboot() -> None:
    view = node(marks=marked(State.REBOOTING, CHANGES, boot_id="b0"), plan=CHANGES, claims=("default/1",))
    assert entered(step(view, CHANGES)) == "DriverRestarted"


# --- the driver


def test_pods_of_the_old_template_are_deleted_once() -> None:
    other = replace(STALE, name="provider-1", uid="d2")
    view = node(State.DRIVER_RESTARTED, drivers=(STALE, other, replace(READY, uid="d3")))
    assert step(view).effects == (RestartDriver((STALE, other)),)
    assert step(view, deleted=frozenset(("d1",))).effects == (RestartDriver((other,)),)
    found = step(view, deleted=frozenset(("d1", "d2")))
    assert found.effects == ()
    assert found.reason == "replaces driver-1, provider-1"
    assert entered(late(view)) == "Failed"


def test_no_driver_is_deleted_while_somebody_uses_it() -> None:
    view = node(State.DRIVER_RESTARTED, drivers=(STALE,))
    assert entered(step(replace(view, users=(JOB,)))) == "Draining"
    assert entered(step(replace(view, claims=("default/1",)))) == "ClaimsReleased"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"drivers": ()}, "0 of 1 driver pods"),
        ({"driver_sets": 2}, "1 of 2 driver pods"),
        ({"drivers": (READY, replace(READY, name="other", ready=False))}, "other is not ready"),
        ({"ready": False}, "the node is not ready"),
    ],
)
def test_a_driver_that_does_not_come_back_fails_the_node(more: dict[str, Any], words: str) -> None:
    view = node(State.DRIVER_RESTARTED, **more)
    found = step(view)
    assert (found.patch, found.effects) == (None, ())
    assert words in found.reason
    found = late(view)
    assert entered(found) == "Failed"
    assert found.patch is not None
    assert found.patch.annotations["roll-attempt"] == "1"


def test_users_of_the_new_driver_do_not_hold_the_node() -> None:
    """Somebody uncordoned it after its driver was restarted: what landed there has the new value."""
    assert entered(step(node(State.DRIVER_RESTARTED, users=(JOB,), claims=("default/1",)))) == "Verified"


# --- the proof


def test_the_node_must_offer_the_new_value_before_it_is_proven() -> None:
    view = node(State.VERIFIED)
    found = step(view, proven=True)
    assert (found.patch, found.effects) == (None, ())
    assert found.reason == "offers %s, not %s yet" % (OLD, NEW)
    assert step(replace(view, value="")).reason == "offers nothing, not %s yet" % NEW
    assert entered(late(view)) == "Failed"


def test_the_node_is_proven_to_a_peer() -> None:
    view = node(State.VERIFIED, value=NEW)
    told = Told(state=State.VERIFIED, entered=NOW)
    found = machine.advance(PLAN, State.DONE, view, told, NOW, STAMP, peer="b")
    assert found.effects == (Prove("b"),)
    assert step(view).effects == (Prove(""),)
    found = step(view, proven=False, problems=("no ping", "no route"))
    assert found.effects == (Prove(""),)
    assert found.reason == "no ping; no route"
    assert step(view, trouble="no answer").reason == "no answer"
    found = late(view, proven=False, problems=("no ping",))
    assert entered(found) == "Failed"
    assert "no ping" in found.reason


def test_a_proven_node_is_released_in_one_patch() -> None:
    view = node(State.VERIFIED, value=NEW)
    found = step(view, proven=True)
    goes_to(found, State.RELEASED, roll_owner=None, roll_lock=None, initial_unschedulable=None)
    assert found.patch is not None
    assert found.patch.unschedulable is False
    found = step(view, proven=True, limit=State.VERIFIED)
    assert (found.patch, found.effects) == (None, ())
    assert "Released" in found.reason


def test_what_the_proof_could_not_prove_stays_on_the_node() -> None:
    """Until the next roll begins with the node; a proof without a note takes the former one away."""
    view = node(State.VERIFIED, value=NEW)
    found = step(view, proven=True, note="reached nobody")
    goes_to(
        found,
        State.RELEASED,
        roll_owner=None,
        roll_lock=None,
        initial_unschedulable=None,
        roll_note="reached nobody",
    )
    noted = node(marks=marked(State.VERIFIED, note="former"), value=NEW)
    found = step(noted, proven=True)
    assert found.patch is not None
    assert found.patch.annotations["roll-note"] is None
    done = step(node(marks=marked(State.RELEASED, note="reached nobody"), value=NEW))
    assert entered(done) == "Done"
    assert done.patch is not None
    assert "roll-note" not in done.patch.annotations
    begun = step(node(marks=Marks(desired="other", applied="other", state=State.DONE, note="former")))
    assert begun.patch is not None
    assert begun.patch.annotations["roll-note"] is None


def test_a_driver_that_is_old_again_is_replaced_again() -> None:
    view = node(State.VERIFIED, value=NEW, drivers=(STALE,))
    assert entered(step(view, proven=True)) == "DriverRestarted"
    assert entered(step(replace(view, users=(JOB,)), proven=True)) == "Draining"


# --- release


@pytest.mark.parametrize(
    ("marks", "more"),
    [
        ({"initial_unschedulable": True}, {}),
        ({"initial_unschedulable": None}, {}),
        ({"owner": ""}, {"unschedulable": True}),
    ],
)
def test_a_cordon_that_is_not_ours_stays(marks: dict[str, Any], more: dict[str, Any]) -> None:
    """DEV-19, DEV-29."""
    view = node(marks=marked(State.VERIFIED, **marks), value=NEW, **more)
    found = step(view, proven=True)
    assert entered(found) == "Released"
    assert found.patch is not None
    assert found.patch.unschedulable is None


def test_a_node_that_somebody_uncordoned_at_the_end_is_left_so() -> None:
    found = machine.release(PLAN, node(State.DRAINING, unschedulable=False))
    assert found.patch is not None
    assert found.patch.unschedulable is None


def test_the_owner_that_somebody_else_wrote_stays() -> None:
    view = node(marks=marked(State.VERIFIED, owner="other-tool"), value=NEW, unschedulable=True)
    found = machine.release(PLAN, view)
    assert found.patch is not None
    assert "roll-owner" not in found.patch.annotations
    assert found.patch.unschedulable is None


def test_the_rule_goes_with_the_release() -> None:
    view = node(State.VERIFIED, TAINT, value=NEW)
    found = step(view, TAINT, proven=True)
    assert entered(found) == "Released"
    assert found.effects == (Fence(False),)
    assert found.patch is not None
    assert found.patch.unschedulable is None
    left = node(State.RELEASED, TAINT, fenced_by_rule=True)
    assert step(left, TAINT).effects == (Fence(False),)
    found = late(left, TAINT)
    assert entered(found) == "Blocked"
    assert "rule" in found.reason


def test_a_rule_keeps_nobody_whose_plan_has_none() -> None:
    """A rule of somebody else is not taken away by a roll that cordons; without a rule there is nothing to wait for."""
    assert entered(step(node(State.RELEASED, value=NEW, fenced_by_rule=True))) == "Done"
    assert entered(step(node(State.RELEASED, TAINT, value=NEW), TAINT)) == "Done"


def test_a_released_node_is_done() -> None:
    view = node(marks=marked(State.RELEASED, reboots=1, boot_id="b0", attempt=2), value=NEW)
    goes_to(step(view), State.DONE, roll_applied=NAME, reboots=None, roll_boot_id=None, roll_attempt=None)


def test_a_release_that_left_the_owner_is_done_again() -> None:
    found = step(
        node(marks=marked(State.RELEASED, owner=NAME, initial_unschedulable=False), unschedulable=True)
    )
    assert found.patch is not None
    gone = {"roll-owner": None, "initial-unschedulable": None}
    assert dict(found.patch.annotations) == {"roll-since": STAMP, **gone}
    assert (found.patch.label, found.patch.unschedulable) == ("Released", False)


@pytest.mark.parametrize("state", [State.DONE, State.SKIPPED])
def test_nothing_is_left_to_do_at_the_end(state: State) -> None:
    found = step(node(marks=marked(state)))
    assert (found.patch, found.effects, found.reason) == (None, (), "")


def test_letting_go_takes_every_mark_of_ours_away_but_the_last_success() -> None:
    full = marked(
        State.DRAINING, applied="0ld", attempt=1, error="x", before=State.DRAINING, reboots=1, boot_id="b"
    )
    found = machine.release(PLAN, node(marks=full))
    assert found.patch is not None
    assert set(found.patch.annotations.values()) == {None}
    assert len(found.patch.annotations) == 11
    assert "roll-applied" not in found.patch.annotations
    assert (found.patch.label, found.patch.unschedulable) == (None, False)


def test_letting_go_takes_the_rule_away_first() -> None:
    found = machine.release(TAINT, node(State.DRAINING, TAINT))
    assert (found.patch, found.effects) == (None, (Fence(False),))
    found = machine.release(TAINT, node(State.DRAINING, TAINT, fenced_by_rule=False))
    assert found.patch is not None
    assert found.effects == ()


# --- limits


def test_a_node_enters_no_state_that_it_may_not() -> None:
    found = step(node(State.CLAIMS_RELEASED), limit=State.CLAIMS_RELEASED)
    assert (found.patch, found.effects) == (None, ())
    assert found.reason == "waits until it may go on to Applied"


@pytest.mark.parametrize("state", [State.DRAINING, State.CLAIMS_RELEASED])
def test_a_blocked_node_is_usable_while_nothing_was_changed(state: State) -> None:
    """DEV-27: nodes that are cordoned and forgotten add up."""
    found = _blocked(PLAN, state)
    waits = {"users": (JOB,)} if state is State.DRAINING else {"claims": ("default/1",)}
    assert late(node(state, **waits)) == found  # holding is not the default
    assert found.patch is not None
    assert found.patch.unschedulable is False
    assert found.patch.label == "Blocked"
    annotations = dict(found.patch.annotations)
    error = annotations.pop("roll-last-error")
    assert error is not None
    assert error.startswith(state.value)
    gone = {"roll-owner": None, "roll-lock": None, "initial-unschedulable": None}
    rest = {"roll-state": "Blocked", "roll-before": state.value, "roll-attempt": "1", "roll-since": STAMP}
    assert annotations == {**gone, **rest}


def _blocked(plan: Plan, state: State, hold: bool = False, **more: Any) -> Step:
    waits = {"users": (JOB,)} if state is State.DRAINING else {"claims": ("default/1",)}
    told = Told(state=state, entered=NOW - plan.limits[state], tried=True)
    return machine.advance(plan, State.DONE, node(state, plan, **waits, **more), told, NOW, STAMP, hold=hold)


def test_a_blocked_node_gives_its_rule_back() -> None:
    assert _blocked(TAINT, State.DRAINING).effects == (Fence(False),)


@pytest.mark.parametrize(
    ("plan", "hold", "more"),
    [
        (replace(PLAN, release_blocked=False), False, {}),
        (PLAN, True, {}),
        (PLAN, False, {"value": "10.0.0.0/8"}),
        (PLAN, False, {"value": NEW}),
    ],
)
def test_a_blocked_node_keeps_its_fence_where_it_would_offer_another_value(
    plan: Plan, hold: bool, more: dict[str, Any]
) -> None:
    found = _blocked(plan, State.DRAINING, hold, **more)
    assert entered(found) == "Blocked"
    assert found.patch is not None
    assert found.patch.unschedulable is None
    assert "roll-owner" not in found.patch.annotations


def test_a_node_that_offers_nothing_can_be_let_go() -> None:
    found = _blocked(PLAN, State.DRAINING, value="")
    assert found.patch is not None
    assert found.patch.unschedulable is False


@pytest.mark.parametrize(
    ("seconds", "since", "blocked"),
    [
        (899, "2026-01-01T09:45:01Z", False),
        (900, "2026-01-01T09:45:00Z", True),
        (0, "never", False),
        (0, "2026-01-01T12:00:00Z", False),
        (0, "2026-01-01T09:45:00", False),
    ],
)
def test_a_controller_that_did_not_hear_a_node_trusts_its_mark(
    seconds: int, since: str, blocked: bool
) -> None:
    view = node(marks=marked(State.DRAINING, since=since), users=(JOB,))
    found = machine.advance(PLAN, State.DONE, view, Told(), NOW, STAMP)
    assert (found.patch is not None) is blocked


@pytest.mark.parametrize("state", [*ORDER[1:], State.PENDING])
def test_no_state_is_left_for_good_because_of_its_limit(state: State) -> None:
    """Every state that can wait ends in one that is told to people."""
    plan = replace(PLAN, node_change=True, reboot=True, limits=dict.fromkeys(ORDER, 1))
    view = node(
        marks=marked(state, plan, boot_id="b1"),
        plan=plan,
        ready=False,
        drivers=(replace(READY, ready=False),),
        claims=("default/1",) if state is State.CLAIMS_RELEASED else (),
        users=(JOB,) if state in (State.WAIT_JOBS, State.DRAINING) else (),
    )
    found = late(view, plan, empty_since=None)
    if state in (State.DONE, State.RELEASED, State.LOCKED, State.FENCED, State.WAIT_JOBS):
        assert entered(found) != "Failed" if found.patch else state is State.DONE
        return
    assert entered(found) == ("Blocked" if state in BEFORE_APPLIED else "Failed")


# --- again


@pytest.mark.parametrize(
    ("marks", "target"),
    [
        (marked(State.BLOCKED, before=State.DRAINING), "Draining"),
        (marked(State.BLOCKED, before=State.DRAINING, owner=""), "Pending"),
        (marked(State.BLOCKED, before=State.CLAIMS_RELEASED, owner="other"), None),
        (marked(State.BLOCKED, before=State.RELEASED, owner="", lock=""), "Released"),
        (marked(State.FAILED, before=State.VERIFIED), "Verified"),
        (marked(State.FAILED, before=State.APPLIED), "Applied"),
        (marked(State.FAILED, before=State.APPLIED, owner=""), "Applied"),
        (marked(State.FAILED), "Pending"),
    ],
)
def test_a_node_that_stood_beside_is_tried_again_where_it_was(marks: Marks, target: Optional[str]) -> None:
    found = step(node(marks=replace(marks, attempt=2, error="why"), unschedulable=True))
    if target is None:
        assert (found.patch, found.reason) == (None, "the roll other left it half-done")
        return
    assert found.patch is not None
    assert found.patch.annotations["roll-state"] == target
    assert "roll-attempt" not in found.patch.annotations
    assert "roll-last-error" not in found.patch.annotations
    assert found.patch.unschedulable is None


def test_a_node_that_may_not_go_so_far_is_not_tried_again() -> None:
    view = node(marks=marked(State.FAILED, before=State.VERIFIED))
    found = step(view, limit=State.CLAIMS_RELEASED)
    assert (found.patch, found.reason) == (None, "waits until it may go on to Verified")
    assert entered(step(view, limit=State.VERIFIED)) == "Verified"


# --- other rolls


@pytest.mark.parametrize(
    ("marks", "other"),
    [
        (Marks(), ""),
        (Marks(desired="x", state=State.DONE), ""),
        (Marks(desired="x", state=State.PENDING), ""),
        (Marks(desired="x", state=State.SKIPPED), ""),
        (Marks(desired="x"), ""),
        (Marks(desired="x", state=State.LOCKED), "x"),
        (Marks(desired="x", state=State.RELEASED), "x"),
        (Marks(desired="x", state=State.BLOCKED, before=State.DRAINING), ""),
        (Marks(desired="x", state=State.BLOCKED, before=State.APPLIED), "x"),
        (Marks(desired="x", state=State.FAILED, before=State.APPLIED), "x"),
        (Marks(desired="x", state=State.FAILED), ""),
        (Marks(owner="y"), "y"),
        (Marks(desired="x", state=State.DONE, lock="z"), "z"),
        (marked(State.DRAINING, lock="z"), "z"),
        (marked(State.DRAINING), ""),
    ],
)
def test_what_another_roll_left_half_done_is_not_touched(marks: Marks, other: str) -> None:
    view = node(marks=marks)
    assert machine.foreign(PLAN, view) == other
    found = step(view)
    assert (other in found.reason and found.patch is None and not found.effects) if other else found.patch


def test_a_roll_that_takes_another_one_back_goes_on_with_its_nodes() -> None:
    """The fence of the parent is taken over; what the node was before both stays known."""
    plan = replace(PLAN, old=NEW, new=OLD, parent=NAME)
    name = planning.digest(plan)
    left = marked(State.FAILED, before=State.VERIFIED, reboots=2, attempt=1, error="x")
    view = node(marks=left, unschedulable=True, drivers=())
    found = step(view, plan)
    goes_to(
        found,
        State.PENDING,
        roll_desired=name,
        roll_before=None,
        reboots=None,
        roll_attempt=None,
        roll_last_error=None,
    )
    marks = replace(left, desired=name, state=State.PENDING, before=None)
    assert entered(step(replace(view, marks=marks), plan)) == "Locked"
    found = step(replace(view, marks=replace(marks, state=State.LOCKED, lock=name)), plan)
    assert found.patch is not None
    assert found.patch.annotations["roll-owner"] == name
    assert "initial-unschedulable" not in found.patch.annotations
    released = machine.release(plan, view)
    assert released.patch is not None
    assert released.patch.unschedulable is False


# --- what was told


def test_what_was_told_in_another_state_is_forgotten() -> None:
    told = Told(
        state=State.APPLIED,
        entered=1.0,
        tried=True,
        empty_since=2.0,
        evicted=frozenset("e"),
        refused={"a": "b"},
        retry_at=9.0,
        changed=True,
        reboot_owed=True,
        asked=3.0,
        deleted=frozenset("d"),
        proven=True,
        problems=("p",),
        trouble="t",
    )
    found = machine.heard(PLAN, told, node(State.DRIVER_RESTARTED), NOW)
    assert found == Told(
        state=State.DRIVER_RESTARTED,
        entered=NOW,
        tried=True,
        empty_since=2.0,
        evicted=frozenset("e"),
        deleted=frozenset("d"),
    )
    assert machine.heard(PLAN, told, node(State.APPLIED), NOW) == told


def test_a_node_is_tried_when_it_was_seen_at_work() -> None:
    assert not machine.heard(PLAN, Told(), node(State.BLOCKED), NOW).tried
    assert not machine.heard(PLAN, Told(), node(State.FAILED), NOW).tried
    first = machine.heard(PLAN, Told(), node(State.DRAINING), NOW)
    assert first.tried
    assert machine.heard(PLAN, first, node(State.BLOCKED), NOW).tried
    assert machine.heard(PLAN, Told(), node(marks=Marks()), NOW).tried


def test_a_claim_begins_the_wait_anew() -> None:
    told = machine.heard(PLAN, Told(), node(State.CLAIMS_RELEASED), 10.0)
    assert told.empty_since == 10.0
    told = machine.heard(PLAN, told, node(State.CLAIMS_RELEASED), 12.0)
    assert told.empty_since == 10.0
    told = machine.heard(PLAN, told, node(State.CLAIMS_RELEASED, claims=("default/1",)), 13.0)
    assert told.empty_since is None
    told = machine.heard(PLAN, told, node(State.CLAIMS_RELEASED), 14.0)
    assert told.empty_since == 14.0


@pytest.mark.parametrize(
    ("view", "proven", "runs"),
    [
        (node(marks=Marks()), None, False),
        (node(State.PENDING), None, False),
        (node(State.PENDING, ready=False), None, True),
        (node(State.CLAIMS_RELEASED), None, False),
        (node(State.CLAIMS_RELEASED, claims=("default/1",)), None, True),
        (node(State.CLAIMS_RELEASED, ready=False), None, True),
        (node(State.VERIFIED, value=NEW), True, False),
        (node(State.VERIFIED, value=NEW), False, True),
        (node(State.VERIFIED, value=OLD), True, True),
        (node(State.VERIFIED, value=NEW, drivers=(STALE,)), True, True),
        (node(State.DRAINING), None, True),
    ],
)
def test_the_time_of_a_node_that_waits_for_others_does_not_run(
    view: NodeView, proven: Optional[bool], runs: bool
) -> None:
    told = Told(state=machine.at(PLAN, view), entered=1.0, tried=True, proven=proven)
    assert machine.heard(PLAN, told, view, NOW).entered == (1.0 if runs else NOW)


@pytest.mark.parametrize(
    ("view", "empty", "found"),
    [
        (node(State.CLAIMS_RELEASED), NOW - 5, True),
        (node(State.CLAIMS_RELEASED), NOW - 4.9, False),
        (node(State.CLAIMS_RELEASED), None, False),
        (node(State.CLAIMS_RELEASED, unschedulable=False), NOW - 60, False),
        (node(State.CLAIMS_RELEASED, users=(JOB,)), NOW - 60, False),
        (node(State.CLAIMS_RELEASED, users=(HOST,)), NOW - 60, True),
        (node(State.CLAIMS_RELEASED, claims=("default/1",)), NOW - 60, False),
        (node(State.CLAIMS_RELEASED, ready=False), NOW - 60, False),
    ],
)
def test_a_node_is_quiet_when_it_is_fenced_and_empty_for_a_while(
    view: NodeView, empty: Optional[float], found: bool
) -> None:
    assert machine.quiet(PLAN, view, Told(empty_since=empty), NOW) is found
