# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real SDK against a service on loopback that checks every signature. Nothing else is contacted."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils import news
from ansible_collections.rdma.k8s.plugins.module_utils.cloud import ack_addon as keeper, alibaba
from ansible_collections.rdma.k8s.plugins.module_utils.core.errors import RdmaError
from ansible_collections.rdma.k8s.plugins.modules import ack_addon
from ansible_collections.rdma.k8s.tests.support import change_run, fake_ack
from ansible_collections.rdma.k8s.tests.support.fake_ack import (
    CLUSTER,
    DROPPED_AFTER,
    DROPPED_BEFORE,
    KEY_ID,
    KEY_SECRET,
    TOKEN,
    FakeAck,
    Refuse,
)

READ = ["DescribeClusterDetail", "GetClusterAddonInstance"]
BEFORE = ["DescribeClusterDetail", "DescribeClusterTasks"]
AFTER = ["DescribeTaskInfo", *READ]
LOOK = ["DescribeClusterTasks", "GetClusterAddonInstance"]
SECRETS = (KEY_ID, KEY_SECRET, TOKEN)
PREFIXES = ("ALIBABA", "ALICLOUD")


@pytest.fixture
def cloud() -> Iterator[FakeAck]:
    with FakeAck() as service:
        yield service


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Short waits, and nothing of this machine: no credentials, no proxy, no metadata service, no lock of others."""
    monkeypatch.setattr(alibaba, "BASE_WAIT", 0.02)
    for name in list(os.environ):
        if name.startswith(PREFIXES) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(keeper.tempfile, "tempdir", str(tmp_path))


def options(cloud: FakeAck, **more: Any) -> dict[str, Any]:
    return {
        "cluster_id": CLUSTER,
        "endpoint": cloud.endpoint,
        "protocol": "http",
        "access_key_id": KEY_ID,
        "access_key_secret": KEY_SECRET,
        "poll_interval": 0.02,
        "wait_timeout": 20,
        "timeout": 5,
        "attempts": 3,
        **more,
    }


def shown(result: dict[str, Any]) -> dict[str, Any]:
    assert [text for text in SECRETS if text in json.dumps(result)] == []
    return result


def good(cloud: FakeAck, **more: Any) -> dict[str, Any]:
    result = shown(change_run.good(ack_addon, **options(cloud, **more)))
    assert (cloud.refused, cloud.overlaps) == ([], [])
    return result


def failure(cloud: FakeAck, **more: Any) -> dict[str, Any]:
    result = shown(change_run.failure(ack_addon, **options(cloud, **more)))
    assert "\n" not in result["msg"]
    return result


def again(cloud: FakeAck, **more: Any) -> None:
    """A second run reads twice and writes nothing."""
    cloud.requests.clear()
    result = good(cloud, **more)
    assert (result["changed"], result["actions"], cloud.actions) == (False, [], READ)


def checked(cloud: FakeAck, **more: Any) -> dict[str, Any]:
    """A check only asks (A41); the service is the same afterwards."""
    before = json.dumps([cloud.instance, cloud.tasks])
    result = good(cloud, _ansible_check_mode=True, _ansible_diff=True, **more)
    assert {request.method for request in cloud.requests} == {"GET"}
    assert json.dumps([cloud.instance, cloud.tasks]) == before
    cloud.requests.clear()
    return result


# Install


def test_the_newest_is_installed_when_there_is_none(cloud: FakeAck) -> None:
    """A21, A22, A30: the calls, their order, and a body that is an array."""
    plan = checked(cloud)
    assert (plan["changed"], plan["actions"], plan["addon"]["version"]) == (True, ["install"], "1.1.5")
    result = good(cloud)
    assert cloud.actions == [*READ, "DescribeAddon", *BEFORE, "InstallClusterAddons", *AFTER]
    (order,) = cloud.orders
    assert (order.method, order.path) == ("POST", "/clusters/%s/components/install" % CLUSTER)
    assert order.body == [{"name": "ack-rdma-device-plugin", "version": "1.1.5"}]
    assert result["addon"] == {
        "name": "ack-rdma-device-plugin",
        "state": "active",
        "version": "1.1.5",
        "config": {"customResourceName": "rdma/hca", "podNetwork": "false"},
    }
    assert (result["changed"], result["actions"], result["task_id"]) == (True, ["install"], "T-0001")
    assert result["cluster"]["version"] == "1.34.1-aliyun.1"
    assert "diff" not in result
    again(cloud)


def test_a_version_and_settings_are_installed(cloud: FakeAck) -> None:
    """A22: the configuration is JSON in a text. A32: the service writes true as a text and adds defaults."""
    wish = {"version": "1.1.2", "config": {"podNetwork": True, "customResourceName": "rdma/fabric"}}
    plan = checked(cloud, **wish)
    assert plan["diff"] == {
        "before": {"name": "ack-rdma-device-plugin", "state": "absent", "version": None, "config": {}},
        "after": {
            "name": "ack-rdma-device-plugin",
            "state": "active",
            "version": "1.1.2",
            "config": wish["config"],
        },
    }
    good(cloud, **wish)
    (order,) = cloud.orders
    assert order.body[0]["config"] == '{"customResourceName":"rdma/fabric","podNetwork":true}'
    asked = [request.query for request in cloud.requests if request.action == "DescribeAddon"]
    assert asked == [{"cluster_id": CLUSTER, "version": "1.1.2"}]
    again(cloud, **wish)


def test_a_slow_task_is_waited_for(cloud: FakeAck) -> None:
    cloud.looks = 4
    good(cloud)
    assert cloud.actions.count("DescribeTaskInfo") == 4
    assert cloud.actions[-2:] == READ


def test_the_cluster_is_waited_for_after_the_task(cloud: FakeAck) -> None:
    """A30: task, then cluster, then the add-on."""

    def still_updating() -> None:
        cloud.cluster["state"] = "updating"

    def running() -> None:
        cloud.cluster["state"] = "running"

    cloud.faults["DescribeClusterDetail"] = [running, running, still_updating, still_updating, running]
    good(cloud)
    assert cloud.actions[-5:] == ["DescribeTaskInfo", *["DescribeClusterDetail"] * 3, READ[1]]


def test_without_waiting_only_the_order_is_given(cloud: FakeAck) -> None:
    result = good(cloud, wait=False)
    assert cloud.actions == [
        *READ,
        "DescribeAddon",
        "DescribeClusterTasks",
        "InstallClusterAddons",
        "GetClusterAddonInstance",
    ]
    assert (result["addon"]["state"], result["task_id"]) == ("initial", "T-0001")
    cloud.requests.clear()
    result = good(cloud, wait=False)
    assert (result["changed"], result["actions"], cloud.orders) == (False, [], [])


def test_a_version_that_is_not_offered(cloud: FakeAck) -> None:
    """A29: AddonNotFound is about the catalogue here."""
    result = failure(cloud, version="9.9.9")
    assert (result["code"], cloud.orders) == ("addon_not_offered", [])
    assert "ack-rdma-device-plugin in version 9.9.9 in the catalogue" in result["msg"]


# Settings


@pytest.mark.parametrize("check", [False, True])
def test_an_unknown_key_is_refused_before_anything_is_written(cloud: FakeAck, check: bool) -> None:
    """A38: by the schema that is read at run time."""
    cloud.installed()
    result = failure(cloud, config={"podNetworks": True}, _ansible_check_mode=check)
    assert (result["code"], result["details"]["unknown"]) == ("addon_config_unknown_keys", ["podNetworks"])
    assert result["details"]["known"] == ["customResourceName", "podNetwork", "rdmaMode"]
    assert (result["changed"], cloud.actions) == (False, [*READ, "DescribeAddon"])


def test_a_value_that_the_schema_does_not_list(cloud: FakeAck) -> None:
    result = failure(cloud, config={"rdmaMode": "sole"})
    assert (result["code"], cloud.orders) == ("addon_config_refused", [])
    assert 'must be one of "shared", "exclusive"' in result["msg"]


@pytest.mark.parametrize("schema", ["", "see the console", "[]", "{}"])
def test_without_a_schema_a_warning_says_that_keys_are_not_checked(cloud: FakeAck, schema: str) -> None:
    cloud.schemas["1.1.5"] = schema
    result = good(cloud, config={"podNetworks": True})
    assert len(cloud.orders) == 1
    (warning,) = result["warnings"]
    assert warning.startswith(
        "The catalogue tells no schema for version 1.1.5 of the add-on ack-rdma-device-plugin"
    )
    assert result["catalogue"]["config_schema"] is None


def test_settings_are_changed_and_the_others_kept(cloud: FakeAck) -> None:
    """A25: this order tells no task, so the new one is found among the tasks before and after. A43: the body."""
    cloud.installed(podNetwork="true")
    cloud.tasks.append({"task_id": "T-old", "task_type": "cluster_addon_modify", "state": "success"})
    wish = {"config": {"customResourceName": "rdma/fabric"}}
    plan = checked(cloud, **wish)
    assert plan["actions"] == ["modify-config"]
    assert plan["diff"]["before"]["config"] == {"customResourceName": "rdma/hca", "podNetwork": "true"}
    assert plan["diff"]["after"]["config"] == {"customResourceName": "rdma/fabric", "podNetwork": "true"}
    result = good(cloud, **wish)
    assert cloud.actions == [
        *READ,
        "DescribeAddon",
        *BEFORE,
        "ModifyClusterAddon",
        "DescribeClusterTasks",
        *AFTER,
    ]
    (order,) = cloud.orders
    assert order.path == "/clusters/%s/components/ack-rdma-device-plugin/config" % CLUSTER
    assert order.body == {"config": '{"customResourceName":"rdma/fabric","podNetwork":"true"}'}
    assert result["task_id"] == "T-0002"
    again(cloud, **wish)


def test_the_task_of_a_change_may_show_late(cloud: FakeAck) -> None:
    """A25: tasks that were there before, and tasks of other kinds, are not it."""
    cloud.installed()
    cloud.hidden = ("running",)
    cloud.tasks.append({"task_id": "T-old", "task_type": "cluster_addon_modify", "state": "fail"})

    def shows() -> None:
        cloud.hidden = ()

    def other() -> None:
        cloud.tasks.append({"task_id": "T-other", "task_type": "cluster_addon_upgrade", "state": "fail"})

    cloud.faults["DescribeClusterTasks"] = [lambda: None, other, shows]
    assert good(cloud, config={"podNetwork": True})["task_id"] == "T-0002"


def test_a_change_without_a_task(cloud: FakeAck) -> None:
    """The add-on itself shows that it is done."""
    cloud.installed()
    cloud.hidden = ("running", "success")
    cloud.faults["DescribeClusterTasks"] = [lambda: None, lambda: None, cloud.finish]
    result = good(cloud, config={"podNetwork": True})
    assert (result["task_id"], result["addon"]["config"]["podNetwork"]) == (None, "true")


@pytest.mark.parametrize("value", [True, "true"])
def test_a_truth_and_its_text_are_the_same(cloud: FakeAck, value: Any) -> None:
    """A32."""
    cloud.installed(podNetwork="true")
    again(cloud, config={"podNetwork": value})


def test_a_service_that_does_not_take_the_settings(cloud: FakeAck) -> None:
    cloud.installed()
    cloud.faults["GetClusterAddonInstance"] = [lambda: None, *[cloud.installed] * 3]
    result = failure(cloud, config={"customResourceName": "rdma/fabric"})
    assert (result["code"], result["changed"]) == ("addon_not_applied", True)
    assert "was configured, but of its configuration customResourceName differ" in result["msg"]


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"version": "1.1.5"}, "was upgraded, but its version is 1.1.2, not 1.1.5."),
        ({"state": "absent"}, "was uninstalled, but it is active."),
    ],
)
def test_a_task_that_succeeds_and_changes_nothing(
    cloud: FakeAck, wish: dict[str, Any], sentence: str
) -> None:
    cloud.installed()
    cloud.faults["GetClusterAddonInstance"] = [lambda: None, *[cloud.installed] * 3]
    result = failure(cloud, **wish)
    assert (result["code"], sentence in result["msg"]) == ("addon_not_applied", True), result["msg"]


def test_an_install_that_is_unhealthy_is_done_and_warns(cloud: FakeAck) -> None:
    cloud.faults["GetClusterAddonInstance"] = [
        lambda: None,
        lambda: cloud.installed("1.1.5", state="unhealthy"),
    ]
    result = good(cloud)
    assert (result["changed"], result["addon"]["state"]) == (True, "unhealthy")
    (warning,) = result["warnings"]
    assert warning.endswith("the add-on ack-rdma-device-plugin is installed, and unhealthy; see its pods.")


def test_secrets_in_settings_are_masked(cloud: FakeAck) -> None:
    cloud.schemas["1.1.5"] = ""
    result = change_run.run(
        ack_addon, **options(cloud, config={"apiToken": "Safran-4711"}), _ansible_diff=True
    )
    assert "Safran-4711" in cloud.orders[0].body[0]["config"]
    assert "Safran-4711" not in json.dumps(result)
    assert result["diff"]["after"]["config"]["apiToken"] == "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"


# Upgrade


def test_an_upgrade(cloud: FakeAck) -> None:
    """A23, A31: the versions, and nothing of the settings, since none are wished."""
    cloud.installed(podNetwork="true")
    assert checked(cloud, version="1.1.5")["actions"] == ["upgrade"]
    result = good(cloud, version="1.1.5")
    assert cloud.actions == [*READ, "DescribeAddon", "DescribeAddon", *BEFORE, "UpgradeClusterAddons", *AFTER]
    (order,) = cloud.orders
    assert order.path == "/clusters/%s/components/upgrade" % CLUSTER
    assert order.body == [
        {"component_name": "ack-rdma-device-plugin", "next_version": "1.1.5", "version": "1.1.2"}
    ]
    assert (result["addon"]["version"], result["addon"]["config"]["podNetwork"]) == ("1.1.5", "true")
    again(cloud, version="1.1.5")


def test_an_upgrade_carries_the_settings(cloud: FakeAck) -> None:
    """A23: one call; keys that the new version no longer has are not sent again."""
    cloud.installed(old="1")
    wish = {"version": "1.1.5", "config": {"rdmaMode": "exclusive"}}
    good(cloud, **wish)
    (order,) = cloud.orders
    assert json.loads(order.body[0]["config"]) == {
        "customResourceName": "rdma/hca",
        "podNetwork": "false",
        "rdmaMode": "exclusive",
    }
    again(cloud, **wish)


@pytest.mark.parametrize("check", [False, True])
def test_there_is_no_way_back(cloud: FakeAck, check: bool) -> None:
    """A31."""
    cloud.installed("1.1.5")
    result = failure(cloud, version="1.1.2", _ansible_check_mode=check)
    assert (result["code"], result["changed"]) == ("addon_version_not_upgradable", False)
    assert "has version 1.1.5, and version 1.1.2 is none that it can be upgraded to" in result["msg"]
    assert {request.method for request in cloud.requests} == {"GET"}


# Uninstall


def test_an_uninstall(cloud: FakeAck) -> None:
    """A24, A30: until it is not there."""
    cloud.installed()
    assert checked(cloud, state="absent")["addon"]["state"] == "absent"
    result = good(cloud, state="absent", cleanup_cloud_resources=True)
    assert cloud.actions == [*READ, *BEFORE, "UnInstallClusterAddons", *AFTER]
    (order,) = cloud.orders
    assert order.path == "/clusters/%s/components/uninstall" % CLUSTER
    assert order.body == [{"cleanup_cloud_resources": True, "name": "ack-rdma-device-plugin"}]
    assert (result["addon"]["state"], cloud.instance) == ("absent", None)
    again(cloud, state="absent")


# What is under way


@pytest.mark.parametrize("state", ["initial", "updating", "upgrading", "some-new-state"])
def test_what_is_under_way_is_waited_for(cloud: FakeAck, state: str) -> None:
    """A27, A40: unknown states too; a wait alone is no change."""
    cloud.installed(state=state)

    def settled() -> None:
        cloud.installed()

    cloud.faults["GetClusterAddonInstance"] = [lambda: None, lambda: None, settled]
    result = good(cloud)
    assert (result["changed"], result["actions"], cloud.orders) == (False, ["wait"], [])
    assert result["addon"]["state"] == "active"


def test_what_is_being_removed_is_installed_again(cloud: FakeAck) -> None:
    cloud.installed(state="deleting")

    def gone() -> None:
        cloud.instance = None

    assert checked(cloud)["actions"] == ["wait", "install"]
    cloud.faults["GetClusterAddonInstance"] = [lambda: None, gone]
    result = good(cloud)
    assert (result["actions"], result["addon"]["version"]) == (["wait", "install"], "1.1.5")


def test_what_changed_while_waiting_is_decided_anew(cloud: FakeAck) -> None:
    """Somebody upgrades it just now: nothing is left to do."""
    cloud.installed(state="upgrading")
    cloud.faults["GetClusterAddonInstance"] = [lambda: None, lambda: cloud.installed("1.1.5")]
    result = good(cloud, version="1.1.5")
    assert (result["actions"], cloud.orders) == (["wait"], [])


def test_without_waiting_a_busy_addon_is_an_error(cloud: FakeAck) -> None:
    cloud.installed(state="updating")
    result = failure(cloud, state="absent", wait=False)
    assert (result["code"], result["changed"], cloud.orders) == ("ack_cluster_busy", False, [])
    again_result = good(cloud, wait=False)
    assert (again_result["changed"], again_result["addon"]["state"]) == (False, "updating")


def test_an_unhealthy_addon_warns(cloud: FakeAck) -> None:
    """A40."""
    cloud.installed(state="unhealthy")
    result = good(cloud)
    assert (result["changed"], cloud.orders) == (False, [])
    assert result["warnings"] == [
        "addon_unhealthy: the add-on ack-rdma-device-plugin of the cluster %s is unhealthy; see its pods."
        % CLUSTER
    ]


def test_work_of_others_is_waited_for(cloud: FakeAck) -> None:
    """A30: one change of add-ons at a time. Tasks of other kinds do not matter."""
    cloud.tasks += [
        {"task_id": "T-scale", "task_type": "cluster_scaleout", "state": "running"},
        {"task_id": "T-other", "task_type": "cluster_addon_install", "state": "running"},
    ]

    def done() -> None:
        cloud.tasks[1]["state"] = "success"
        cloud.tasks[0]["state"] = "success"

    cloud.faults["DescribeClusterTasks"] = [lambda: None, done]
    result = good(cloud)
    assert cloud.actions.count("DescribeClusterTasks") == 2
    assert result["task_id"] == "T-0003"
    cloud.tasks[0]["state"] = "running"  # the scaling
    again(cloud)
    good(cloud, state="absent", wait=False)


def test_without_waiting_work_of_others_is_an_error(cloud: FakeAck) -> None:
    cloud.tasks.append({"task_id": "T-1", "task_type": "cluster_addon_install", "state": "running"})
    result = failure(cloud, wait=False)
    assert (result["code"], cloud.orders) == ("ack_cluster_busy", [])
    assert "the task T-1 (cluster_addon_install) is still running" in result["msg"]


def test_two_runs_take_turns(cloud: FakeAck, tmp_path: Path) -> None:
    """A30: on this machine by a lock, so neither sees the other half-way."""
    cloud.looks = 10
    results: list[Any] = []

    def work() -> None:
        results.append(_keeper(cloud).run(False).actions)

    threads = [threading.Thread(target=work) for _number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(results) == [[], ["install"]]
    assert ([order.action for order in cloud.orders], cloud.overlaps) == (["InstallClusterAddons"], [])
    (lock,) = tmp_path.glob("rdma-k8s-ack-*.lock")
    assert lock.stat().st_mode & 0o777 == 0o600


def test_without_waiting_a_taken_lock_is_an_error(cloud: FakeAck, tmp_path: Path) -> None:
    """And with waiting it is one when the time is up."""
    good(cloud)
    (lock,) = tmp_path.glob("rdma-k8s-ack-*.lock")
    cloud.requests.clear()
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = failure(cloud, wait=False)
        assert (result["code"], cloud.requests) == ("ack_cluster_busy", [])
        result = failure(cloud, wait_timeout=1)
        assert (result["code"], cloud.requests) == ("ack_wait_timeout", [])
        good(cloud, _ansible_check_mode=True)  # it only reads
    again(cloud)


def test_a_lock_that_is_a_link_is_refused(cloud: FakeAck, tmp_path: Path) -> None:
    good(cloud)
    (lock,) = tmp_path.glob("rdma-k8s-ack-*.lock")
    lock.unlink()
    target = tmp_path / "target"
    lock.symlink_to(target)
    result = failure(cloud)
    assert (result["code"], target.exists()) == ("ack_cluster_busy", False)


def _keeper(cloud: FakeAck) -> keeper.Keeper:
    service = alibaba.cs(
        alibaba.Credentials(alibaba.Login(KEY_ID, KEY_SECRET)),
        alibaba.Place(endpoint=cloud.endpoint, protocol="http"),
        alibaba.Limits(5, 3),
    )
    wish = keeper.Wish("ack-rdma-device-plugin")
    return keeper.Keeper(service, CLUSTER, wish, keeper.Waits(True, 20, 0.02))


# What fails


def test_a_task_that_fails(cloud: FakeAck) -> None:
    cloud.reason = {"code": "HelmError", "message": "quota exceeded for\nload balancers"}
    result = failure(cloud)
    assert (result["code"], result["changed"], result["actions"]) == ("ack_task_failed", True, ["install"])
    assert "failed: HelmError: quota exceeded for load balancers." in result["msg"]
    assert result["details"]["task_id"] == "T-0001"
    cloud.reason = None
    assert good(cloud)["actions"] == ["install"]


def test_what_it_waits_for_is_told(cloud: FakeAck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = tmp_path / "news"
    paper.touch()
    monkeypatch.setenv(news.VARIABLE, str(paper))
    cloud.looks = 10**6
    failure(cloud, wait_timeout=1)
    assert paper.read_text() == (
        "waiting at most 1 s: the task T-0001 (cluster_addon_install) is still running\n"
    )


def test_a_task_without_a_reason_has_that_of_its_stage(cloud: FakeAck) -> None:
    cloud.reason = {}

    def stage() -> None:
        cloud.tasks[0]["stages"] = [{"message": "started"}, {"message": "no node fits"}]

    cloud.faults["DescribeTaskInfo"] = [stage]
    assert "failed: no node fits." in failure(cloud)["msg"]


def test_a_wait_that_ends_by_its_time_is_taken_up_again(cloud: FakeAck) -> None:
    cloud.looks = 10**6
    started = time.monotonic()
    result = failure(cloud, wait_timeout=1)
    assert time.monotonic() - started < 120  # without the limit it never ends
    assert (result["code"], result["changed"], result["task_id"]) == ("ack_wait_timeout", True, "T-0001")
    assert "the task T-0001 (cluster_addon_install) is still running" in result["msg"]
    cloud.requests.clear()
    cloud.faults["GetClusterAddonInstance"] = [lambda: None, lambda: None, cloud.finish]
    cloud.looks = 1
    cloud._work = {key: (1, *rest) for key, (_looks, *rest) in cloud._work.items()}
    result = good(cloud)
    assert (result["changed"], result["actions"], cloud.orders) == (False, ["wait"], [])
    assert result["addon"]["state"] == "active"


def test_a_broken_cluster_is_not_waited_for(cloud: FakeAck) -> None:
    cloud.cluster["state"] = "deleting"
    result = failure(cloud)
    assert (result["code"], cloud.orders) == ("ack_cluster_broken", [])


def test_a_missing_cluster(cloud: FakeAck) -> None:
    """A29."""
    result = failure(cloud, cluster_id="c999", region="cn-beijing")
    assert (result["code"], cloud.actions) == ("ack_cluster_not_found", ["DescribeClusterDetail"])
    assert result["msg"].startswith(
        "There is no such thing as the cluster c999: 404 ErrorClusterNotFound. Check the id or name, and the region "
        "cn-beijing"
    )


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (Refuse(403, "Forbidden.RAM", "no right for cs:InstallClusterAddons"), "alibaba_forbidden"),
        (Refuse(403, "StatusForbidden"), "alibaba_forbidden"),
        (Refuse(400, "InvalidAddonVersion", "too new"), "alibaba_refused"),
        (Refuse(404, "InvalidAccessKeyId.NotFound"), "alibaba_not_authenticated"),
        (Refuse(401, "Unauthorized"), "alibaba_not_authenticated"),
    ],
)
def test_what_is_refused_is_not_tried_again(cloud: FakeAck, refusal: Refuse, code: str) -> None:
    cloud.faults["InstallClusterAddons"] = [refusal] * 3
    result = failure(cloud)
    assert (result["code"], result["details"]["status"]) == (code, refusal.status)
    assert result["details"]["service_code"] == refusal.code
    assert (result["changed"], len(cloud.orders)) == (False, 1)


@pytest.mark.parametrize("retry_after", [None, 30])
@pytest.mark.parametrize("action", ["DescribeClusterDetail", "InstallClusterAddons"])
def test_throttling_is_waited_out(cloud: FakeAck, action: str, retry_after: Any) -> None:
    """A42: with the header an error of its own class, without it an ordinary one; neither was carried out."""
    cloud.faults[action] = [Refuse(429, "Throttling.User", retry_after=retry_after)] * 2
    good(cloud)
    assert [request.action for request in cloud.requests].count(action) >= 3
    assert [task["task_type"] for task in cloud.tasks] == ["cluster_addon_install"]


def test_the_service_says_how_long_to_wait(cloud: FakeAck) -> None:
    """A42: it tells milliseconds."""
    cloud.faults["GetClusterAddonInstance"] = [Refuse(429, "Throttling.User", retry_after=400)]
    good(cloud)
    first, second = [entry.time for entry in cloud.requests if entry.action == "GetClusterAddonInstance"][:2]
    assert 0.4 <= second - first < 5


@pytest.mark.parametrize("retry_after", [None, 1])
def test_throttling_without_end(cloud: FakeAck, retry_after: Any) -> None:
    cloud.faults["DescribeClusterDetail"] = [Refuse(429, "Throttling.User", retry_after=retry_after)] * 9
    result = failure(cloud)
    assert (result["code"], len(cloud.requests)) == ("alibaba_throttled", 3)
    assert "429 Throttling.User, 3 tries" in result["msg"]


def test_a_question_is_asked_again(cloud: FakeAck) -> None:
    cloud.faults["GetClusterAddonInstance"] = [DROPPED_BEFORE, Refuse(503, "ServiceUnavailable")]
    cloud.faults["DescribeTaskInfo"] = [Refuse(500, "InternalError"), b"<html>busy</html>"]
    good(cloud)
    assert len(cloud.orders) == 1


@pytest.mark.parametrize(
    ("fault", "code", "sentence"),
    [
        (DROPPED_BEFORE, "alibaba_unreachable", "(the connection broke), 3 tries"),
        (Refuse(500, "InternalError"), "alibaba_failed", "500 InternalError: This is a test, 3 tries"),
        (b"<html>log in</html>", "alibaba_unreachable", "(the answer is not JSON), 3 tries"),
        (b"[]", "alibaba_answer_malformed", "cluster must be an object, found a list"),
        (b"{}", "alibaba_answer_malformed", "cluster.state must be a text"),
        (b'{"state": 5}', "alibaba_answer_malformed", "cluster.state must be a text, found 5"),
    ],
)
def test_something_else_answers(cloud: FakeAck, fault: Any, code: str, sentence: str) -> None:
    cloud.faults["DescribeClusterDetail"] = [fault] * 9
    result = failure(cloud)
    assert (result["code"], sentence in result["msg"]) == (code, True), result["msg"]


def test_an_instance_with_settings_that_are_no_json(cloud: FakeAck) -> None:
    cloud.installed()
    assert cloud.instance is not None
    cloud.instance["config"] = "a=b"
    assert failure(cloud)["code"] == "alibaba_answer_malformed"


def test_nothing_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # not listening: a connection is refused
        endpoint = "127.0.0.1:%d" % taken.getsockname()[1]
        result = change_run.failure(
            ack_addon,
            cluster_id=CLUSTER,
            endpoint=endpoint,
            protocol="http",
            access_key_id=KEY_ID,
            access_key_secret=KEY_SECRET,
            attempts=2,
        )
    assert result["code"] == "alibaba_unreachable"
    assert "(nothing listens there, or the name is not known), 2 tries" in result["msg"]


def test_an_answer_that_is_too_late(cloud: FakeAck) -> None:
    cloud.faults["DescribeClusterDetail"] = [lambda: time.sleep(0.5)] * 2
    result = failure(cloud, timeout=0.1, attempts=2)
    assert (result["code"], "no answer within 0.1 seconds" in result["msg"]) == ("alibaba_unreachable", True)


# Lost answers


@pytest.mark.parametrize("fault", [DROPPED_AFTER, Refuse(500, "InternalError", after=True)])
@pytest.mark.parametrize(
    ("start", "wish"),
    [
        (None, {}),
        ("1.1.2", {"version": "1.1.5"}),
        ("1.1.2", {"config": {"podNetwork": True}}),
        ("1.1.2", {"state": "absent"}),
    ],
)
def test_an_order_whose_answer_is_lost_is_not_given_twice(
    cloud: FakeAck, start: Any, wish: dict[str, Any], fault: Any
) -> None:
    """A33: it looks for a new task and at the add-on first."""
    if start:
        cloud.installed(start)
    for action in fake_ack.ORDERS:
        cloud.faults[action] = [fault]
    result = good(cloud, **wish)
    assert (result["changed"], len(cloud.orders), result["task_id"]) == (True, 1, "T-0001")
    assert cloud.actions[-len(LOOK) - len(AFTER) : -len(AFTER)] == LOOK
    again(cloud, **wish)


@pytest.mark.parametrize(("start", "wish"), [(None, {}), ("1.1.2", {"state": "absent"})])
def test_an_order_shows_by_the_addon_alone(cloud: FakeAck, start: Any, wish: dict[str, Any]) -> None:
    """No task is to be seen, but something is under way."""
    if start:
        cloud.installed(start)
    cloud.hidden = ("running", "success")
    for action in fake_ack.ORDERS:
        cloud.faults[action] = [DROPPED_AFTER]
    cloud.faults["DescribeClusterTasks"] = [lambda: None, lambda: None, cloud.finish]
    result = good(cloud, **wish)
    assert (result["changed"], len(cloud.orders), result["task_id"]) == (True, 1, None)
    again(cloud, **wish)


def test_an_answer_that_comes_too_late_to_an_order(cloud: FakeAck) -> None:
    cloud.faults["InstallClusterAddons"] = [lambda: time.sleep(4)]
    result = good(cloud, timeout=3)
    assert (result["changed"], len(cloud.orders)) == (True, 1)


def test_an_order_that_did_not_arrive_is_given_again(cloud: FakeAck) -> None:
    """Only after it was looked for as long as an answer may take, and three times at least."""
    cloud.faults["InstallClusterAddons"] = [DROPPED_BEFORE]
    started = time.monotonic()
    result = good(cloud, timeout=1)
    assert time.monotonic() - started >= 1
    assert (result["changed"], len(cloud.orders), len(cloud.tasks)) == (True, 2, 1)
    first = cloud.actions.index("InstallClusterAddons")
    second = cloud.actions.index("InstallClusterAddons", first + 1)
    looks = (second - first - 1) // 2
    assert (looks >= 3, cloud.actions[first + 1 : second]) == (True, LOOK * looks)


def test_orders_that_never_arrive(cloud: FakeAck) -> None:
    cloud.faults["InstallClusterAddons"] = [DROPPED_BEFORE] * 9
    result = failure(cloud, timeout=2)
    assert (result["code"], result["changed"], len(cloud.orders)) == ("alibaba_answer_lost", False, 3)
    assert "so it may have arrived or not" in result["msg"]


def test_a_service_that_is_gone_after_the_order(cloud: FakeAck) -> None:
    """Nobody can tell, so it is not given again; the next run finds it done."""
    cloud.faults["InstallClusterAddons"] = [DROPPED_AFTER]
    cloud.faults["DescribeClusterTasks"] = [lambda: None, *[DROPPED_BEFORE] * 3]
    result = failure(cloud)
    assert (result["code"], len(cloud.orders)) == ("alibaba_answer_lost", 1)
    cloud.finish()
    again(cloud)


# Credentials and places


def test_a_token_goes_along(cloud: FakeAck) -> None:
    good(cloud, security_token=TOKEN)
    assert {request.headers.get("x-acs-security-token") for request in cloud.requests} == {TOKEN}


@pytest.mark.parametrize("names", alibaba.ENVIRONMENT)
def test_variables_in_their_order(
    cloud: FakeAck, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str, str]
) -> None:
    """A45, A48: the option first, then ALIBABA_CLOUD, then ALICLOUD."""
    cloud.keys = {"first": "1", "second": "2"}
    for name, value in zip(names, ("first", "1", TOKEN)):
        monkeypatch.setenv(name, value)
    if names is alibaba.ENVIRONMENT[0]:
        for name, value in zip(alibaba.ENVIRONMENT[1], ("second", "2", "")):
            monkeypatch.setenv(name, value)
    good(cloud, access_key_id=None, access_key_secret=None)
    assert {request.headers.get("x-acs-security-token") for request in cloud.requests} == {TOKEN}
    assert all("Credential=first," in request.headers["authorization"] for request in cloud.requests)
    cloud.requests.clear()
    good(cloud, access_key_id="second", access_key_secret="2")  # never with the token of another source
    assert all("Credential=second," in request.headers["authorization"] for request in cloud.requests)
    assert {request.headers.get("x-acs-security-token") for request in cloud.requests} == {None}


@pytest.mark.parametrize(
    "given",
    [
        {"access_key_id": KEY_ID},
        {"access_key_secret": KEY_SECRET},
        {"security_token": TOKEN},
    ],
)
def test_half_credentials_are_refused(
    cloud: FakeAck, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "first")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "1")
    result = failure(cloud, **{"access_key_id": None, "access_key_secret": None, **given})
    assert (result["code"], cloud.requests) == ("alibaba_credentials_unusable", [])


def test_a_secret_of_somebody_else(cloud: FakeAck) -> None:
    """The service's own words would show what was signed, the token included."""
    result = failure(cloud, access_key_secret="Pfeffer-1", security_token=TOKEN)
    assert result["code"] == "alibaba_not_authenticated"
    assert "does not accept the credentials from the options" in result["msg"]
    assert "Pfeffer-1" not in json.dumps(result)
    assert cloud.refused == ["The signature is not of this key."]


def test_a_message_of_the_service_that_holds_the_key(cloud: FakeAck) -> None:
    """A49."""
    words = "%s with %s may not" % (KEY_ID, TOKEN)
    cloud.faults["DescribeClusterDetail"] = [Refuse(403, "Forbidden.RAM", words)]
    result = change_run.failure(ack_addon, **options(cloud, security_token=TOKEN))
    assert "(removed) with (removed) may not" in result["msg"]


@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        ("cs.example.org", "http"),
        ("10.0.0.1:8080", "http"),
        ("localhost:80", "http"),
        ("127.0.0.1.example.org", "http"),
        ("https://cs.example.org", "https"),
        ("user@cs.example.org", "https"),
        ("cs.example.org/path", "https"),
        ("cs.example.org?x", "https"),
        ("", "http"),
    ],
)
def test_signed_requests_do_not_leave_in_clear(endpoint: str, protocol: str) -> None:
    with pytest.raises(RdmaError) as caught:
        alibaba.require_place(alibaba.Place("cn-beijing", endpoint, protocol))
    assert caught.value.code == "alibaba_endpoint_refused"


def test_places_that_are_taken() -> None:
    """A35: the region's own endpoint."""
    credentials = alibaba.Credentials(alibaba.Login(KEY_ID, KEY_SECRET))
    for place, host in [
        (alibaba.Place("cn-wulanchabu"), "cs.cn-wulanchabu.aliyuncs.com"),
        (alibaba.Place("cn-beijing", "cs-vpc.example.org:443"), "cs-vpc.example.org:443"),
        (alibaba.Place("", "[::1]:80", "http"), "[::1]:80"),
    ]:
        alibaba.require_place(place)
        assert alibaba.cs(credentials, place, alibaba.Limits()).client._endpoint == host


@pytest.mark.parametrize(
    "wrong",
    [
        {"cluster_id": "../x"},
        {"cluster_id": ""},
        {"name": "Ack_Plugin"},
        {"name": "a/b"},
        {"region": "cn-beijing.example.org"},
    ],
)
def test_names_are_names(cloud: FakeAck, wrong: dict[str, str]) -> None:
    result = failure(cloud, **wrong)
    assert (result["code"], cloud.requests) == ("alibaba_name_malformed", [])


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"timeout": 0}, {"poll_interval": 601}, {"wait_timeout": 0.5}],
)
def test_numbers_have_bounds(cloud: FakeAck, wrong: dict[str, Any]) -> None:
    assert failure(cloud, **wrong)["code"] == "number_out_of_range"


def test_a_region_or_an_endpoint_is_needed() -> None:
    result = change_run.failure(ack_addon, cluster_id=CLUSTER)
    assert "region, endpoint" in result["msg"]


def test_a_proxy_of_the_environment_does_not_see_loopback(
    cloud: FakeAck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    again(cloud, state="absent")
    assert os.environ["http_proxy"] == "http://127.0.0.1:1"


def test_requests_are_never_logged(
    cloud: FakeAck, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A variable makes the SDK log signatures and tokens, between what a module prints."""
    monkeypatch.setenv("DEBUG", "sdk")
    good(cloud, security_token=TOKEN)
    assert capfd.readouterr() == ("", "")


def test_describe_reads_the_catalogue(cloud: FakeAck) -> None:
    cloud.installed()
    result = good(cloud, describe=True)
    assert (result["changed"], cloud.actions) == (False, [*READ, "DescribeAddon"])
    assert result["catalogue"] == {
        "version": "1.1.2",
        "config_schema": fake_ack.SCHEMA,
        "upgradable": ["1.1.5"],
    }


# Processes of their own: the SDK reads its variables when it is imported (A47)


def _process(
    tmp_path: Path, cloud: FakeAck, variables: dict[str, str], **more: Any
) -> subprocess.CompletedProcess:
    given = {key: value for key, value in options(cloud, **more).items() if value is not None}
    program = "from ansible_collections.rdma.k8s.plugins.modules import ack_addon; ack_addon.main()"
    return subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "ALIBABA_CLOUD_ECS_METADATA_DISABLED": "true",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_chain_of_the_sdk(cloud: FakeAck, tmp_path: Path) -> None:
    """A46: a profile of the credentials file."""
    (tmp_path / ".alibabacloud").mkdir()
    profile = "[default]\nenable = true\ntype = access_key\naccess_key_id = %s\naccess_key_secret = %s\n"
    (tmp_path / ".alibabacloud" / "credentials.ini").write_text(profile % (KEY_ID, KEY_SECRET))
    done = _process(tmp_path, cloud, {}, access_key_id=None, access_key_secret=None, state="absent")
    assert (done.returncode, cloud.actions, cloud.refused) == (0, READ, []), done.stdout + done.stderr
    assert [text for text in SECRETS if text in done.stdout + done.stderr] == []


def test_a_chain_that_finds_nothing(cloud: FakeAck, tmp_path: Path) -> None:
    done = _process(tmp_path, cloud, {}, access_key_id=None, access_key_secret=None)
    result = json.loads(done.stdout)
    assert (result["code"], cloud.requests) == ("alibaba_credentials_unusable", [])
    assert "The credentials from the SDK's default chain cannot be used" in result["msg"]


def test_a_missing_library(cloud: FakeAck, tmp_path: Path) -> None:
    (tmp_path / "alibabacloud_cs20151215.py").write_text("raise ImportError('not here')\n")
    done = _process(tmp_path, cloud, {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    result = json.loads(done.stdout)
    assert (result["code"], result["missing_libraries"]) == ("library_missing", ["alibabacloud-cs20151215"])


def test_no_output_of_a_playbook_shows_a_secret(cloud: FakeAck, tmp_path: Path) -> None:
    """A49: with the most talkative setting, by variables and by options, in a task that installs and one that fails."""
    cloud.faults["ModifyClusterAddon"] = [Refuse(403, "Forbidden.RAM", "%s %s" % (KEY_ID, TOKEN))]
    keys = {"access_key_id": KEY_ID, "access_key_secret": KEY_SECRET, "security_token": TOKEN}
    given = {key: value for key, value in options(cloud).items() if key not in keys}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {"name": "Install", "rdma.k8s.ack_addon": given},
            {"name": "Change", "rdma.k8s.ack_addon": {**given, **keys, "config": {"podNetwork": True}}},
        ],
    }
    book = tmp_path / "play.yml"
    book.write_text(json.dumps([play]))
    root = next(entry for entry in sys.path if (Path(entry) / "ansible_collections/rdma/k8s").is_dir())
    done = subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "-vvvv", "--diff", str(book)],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "ANSIBLE_COLLECTIONS_PATH": root,
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_LOG_PATH": str(tmp_path / "log"),
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(sys.path),
            **dict(zip(alibaba.ENVIRONMENT[0], (KEY_ID, KEY_SECRET, TOKEN))),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    text = done.stdout + done.stderr + (tmp_path / "log").read_text()
    assert (done.returncode, "alibaba_forbidden" in text, '"install"' in text) == (2, True, True), text
    assert {request.headers.get("x-acs-security-token") for request in cloud.requests} == {TOKEN}
    assert [secret for secret in SECRETS if secret in text] == []
