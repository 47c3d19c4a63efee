# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An add-on of an ACK cluster, made as wished. Private to rdma.k8s: it may change with any release.

What there is is read first (A33); then one order is given, and waited for until the task succeeded, the cluster is
running again and the add-on is as wished (A30). An order whose answer is lost is not given again before it is clear
that it did not arrive.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from .. import deps
from ..core import standing
from ..core.ack import addon, answers
from ..core.ack.addon import Instance, Offer, Plan, Wish
from ..core.ack.answers import Cluster, Task
from ..core.errors import RdmaError
from ..core.kube.objects import merged
from . import alibaba

MOST_PAGES = 20
PAGE = 50
MOST_ORDERS = 3
"""How often one order is given, when it did not arrive."""
LOOKS = 3
"""How often it is looked, at least, before an order counts as not arrived, or an add-on as not as wished."""

_ADDON_TASK = re.compile("addon|component")
"""Kinds of tasks that are about add-ons."""
_MODIFY_TASK = "cluster_addon_modify"
RUNNING = "running"
BROKEN = ("failed", "deleting", "deleted", "delete_failed")
"""States of a cluster that never become running."""

_ORDERS = {
    addon.INSTALL: "installed",
    addon.UPGRADE: "upgraded",
    addon.MODIFY: "configured",
    addon.UNINSTALL: "uninstalled",
}


@dataclass(frozen=True)
class Waits:
    """Whether to wait, how long at most for everything, and seconds between two looks (A30)."""

    wait: bool = True
    timeout: float = 1800.0
    poll: float = 5.0


@dataclass
class Outcome:
    """What was done, or would be, and what there was before and is after."""

    plan: Plan = field(default_factory=Plan)
    actions: list[str] = field(default_factory=list)
    before: Optional[Instance] = None
    after: Optional[Instance] = None
    task_id: str = ""
    cluster: Optional[Cluster] = None
    offer: Optional[Offer] = None
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether something was written, or would be."""
        return any(action != addon.WAIT for action in self.actions)


class Keeper:
    """Makes one add-on of one cluster as wished.

    :param cleanup: whether an uninstall takes the add-on's resources of the cloud along (A24).
    :param describe: read the catalogue also when nothing is written.
    :param tell: takes what is waited for, after each look that is not the last one.
    :ivar outcome: what was done until now, also after an error.
    """

    def __init__(
        self,
        service: alibaba.Service,
        cluster_id: str,
        wish: Wish,
        waits: Waits,
        *,
        cleanup: bool = False,
        describe: bool = False,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.service = service
        self.client = service.client
        self.cluster_id = cluster_id
        self.wish = wish
        self.waits = waits
        self.cleanup = cleanup
        self.describe = describe
        self.tell = tell
        self.models = deps.alibaba_cs("alibabacloud_cs20151215.models")
        self.deadline = time.monotonic() + waits.timeout
        self.outcome = Outcome()
        self._seen: set[str] = set()

    def run(self, check: bool) -> Outcome:
        """Read, decide, and unless it is a check, act.

        :raises RdmaError: those of :mod:`alibaba`; ``addon_not_offered``, ``addon_version_not_upgradable``,
            ``addon_config_unknown_keys``, ``addon_config_refused``, ``addon_not_applied``, ``ack_cluster_busy``,
            ``ack_cluster_broken``, ``ack_task_failed`` or ``ack_wait_timeout``.
        """
        if check:
            self._look()
            self.outcome.actions = list(self.outcome.plan.actions)
            self._foresee()
            return self.outcome
        with self._alone():
            self._look()
            while self.waits.wait and addon.WAIT in self.outcome.plan.actions:
                self._done(addon.WAIT)
                self._decide(self._settle())
            self._act()
        return self.outcome

    def configs(self) -> list[dict[str, Any]]:
        """The configurations that were read or would be there."""
        found = (self.outcome.before, self.outcome.after)
        return [dict(instance.config) for instance in found if instance is not None]

    # Reading

    def _cluster(self) -> Cluster:
        call = self.client.describe_cluster_detail_with_options
        return answers.cluster(self.service.read("the cluster %s" % self.cluster_id, call, self.cluster_id))

    def _instance(self) -> Optional[Instance]:
        call = self.client.get_cluster_addon_instance_with_options
        what = "the add-on %s of the cluster %s" % (self.wish.name, self.cluster_id)
        try:
            found = answers.instance(self.service.read(what, call, self.cluster_id, self.wish.name))
        except RdmaError as error:
            if error.code != "addon_not_found":
                raise
            return None
        return None if found.state == addon.GONE else found

    def _offer(self, version: Optional[str]) -> Offer:
        asked = self.models.DescribeAddonRequest(cluster_id=self.cluster_id, version=version)
        what = "the add-on %s%s in the catalogue of the cluster %s" % (
            self.wish.name,
            " in version %s" % version if version else "",
            self.cluster_id,
        )
        call = self.client.describe_addon_with_options
        try:
            return answers.offer(self.service.read(what, call, self.wish.name, asked))
        except RdmaError as error:
            if error.code != "addon_not_found":
                raise
            raise RdmaError(
                "addon_not_offered",
                "There is no such thing as %s." % what,
                hint="Check name and version in the console: what is offered depends on the cluster.",
                **error.details,
            ) from error

    def _tasks(self) -> list[Task]:
        """The tasks of the cluster that are about add-ons."""
        found: list[Task] = []
        number = read = 0
        total = 1
        while read < total and number < MOST_PAGES:
            number += 1
            asked = self.models.DescribeClusterTasksRequest(page_number=number, page_size=PAGE)
            what = "the tasks of the cluster %s" % self.cluster_id
            call = self.client.describe_cluster_tasks_with_options
            page, total = answers.tasks(self.service.read(what, call, self.cluster_id, asked))
            if not page:
                break
            read += len(page)
            found += [task for task in page if _ADDON_TASK.search(task.kind)]
        return found

    def _task(self, task_id: str) -> Task:
        what = "the task %s" % task_id
        return answers.task(self.service.read(what, self.client.describe_task_info_with_options, task_id))

    # Deciding

    def _look(self) -> None:
        self.outcome.cluster = self._cluster()
        self.outcome.before = self._instance()
        self._decide(self.outcome.before)

    def _decide(self, found: Optional[Instance]) -> None:
        """Set the plan for what there is, with the catalogue asked where it matters; refuse what must not be sent."""
        out = self.outcome
        out.after = found
        upgradable: tuple[str, ...] = ()
        if found is not None and addon.needs_offer(found, self.wish):
            upgradable = self._offer(found.version).upgradable
        out.plan = addon.plan(found, self.wish, upgradable)
        if out.plan.refusal is not None:
            raise out.plan.refusal
        if addon.UNHEALTHY in out.plan.warnings:
            self._warn(
                "addon_unhealthy: the add-on %s of the cluster %s is unhealthy; see its pods."
                % (self.wish.name, self.cluster_id)
            )
        if self.describe or {addon.INSTALL, addon.UPGRADE, addon.MODIFY} & set(out.plan.actions):
            version = self.wish.version
            if version is None and found is not None and found.state != "deleting":
                version = found.version
            out.offer = self._offer(version)
            if out.plan.changed and self.wish.config:
                self._check_config(version or out.offer.version, out.offer, self.wish.config)

    def _check_config(self, version: str, offer: Offer, config: Mapping[str, Any]) -> None:
        rules = addon.schema(offer.config_schema) if offer.version == version else None
        if rules is None:
            self._warn(
                "The catalogue tells no schema for version %s of the add-on %s, so the keys of the configuration are "
                "not checked." % (version, self.wish.name)
            )
        else:
            addon.require_known(self.wish.name, version, config, rules)

    def _foresee(self) -> None:
        """What there will be after the plan."""
        found, plan = self.outcome.after, self.outcome.plan
        if not self.wish.present:
            self.outcome.after = None
        elif plan.changed:
            config = self._config()
            told = json.loads(config) if config is not None else dict(found.config) if found else {}
            version = found.version if found and addon.MODIFY in plan.actions else self._target()
            self.outcome.after = Instance(version, "active", told)

    def _warn(self, text: str) -> None:
        if text not in self.outcome.warnings:
            self.outcome.warnings.append(text)

    # Acting

    def _act(self) -> None:
        if not self.outcome.plan.changed:
            return
        for action in self.outcome.plan.actions:
            if action == addon.WAIT:
                raise self._busy("the add-on is %s" % (self.outcome.after and self.outcome.after.state))
            self._quiet()
            self._order(action)
            if self.waits.wait:
                self._finish(action)
            else:
                self.outcome.after = self._instance()

    def _busy(self, text: str) -> RdmaError:
        return RdmaError(
            "ack_cluster_busy",
            "Of the cluster %s %s, and it is not to be waited for." % (self.cluster_id, text),
            hint="Run it again later, or with 'wait'.",
            retryable=True,
        )

    def _order(self, action: str) -> None:
        """Give an order once; again only when it did not arrive."""
        for number in range(1, MOST_ORDERS + 1):
            try:
                body = self._give(action)
            except RdmaError as error:
                if error.code != alibaba.LOST:
                    raise
                if not self._arrived(action, error):
                    if number == MOST_ORDERS:
                        raise
                    continue
            else:
                self.outcome.task_id = answers.task_id(body)
            self._done(action)
            return

    def _done(self, action: str) -> None:
        if action not in self.outcome.actions:
            self.outcome.actions.append(action)

    def _give(self, action: str) -> Any:
        models, client, name = self.models, self.client, self.wish.name
        what = "the add-on %s of the cluster %s to be %s" % (name, self.cluster_id, _ORDERS[action])
        call: Callable[..., Any]
        if action == addon.INSTALL:
            item = models.InstallClusterAddonsRequestBody(
                name=name, version=self._target(), config=self._config()
            )
            call, asked = (
                client.install_cluster_addons_with_options,
                models.InstallClusterAddonsRequest(body=[item]),
            )
        elif action == addon.UPGRADE:
            found = self.outcome.after
            item = models.UpgradeClusterAddonsRequestBody(
                component_name=name,
                version=found.version if found else None,
                next_version=self.wish.version,
                config=self._config(),
            )
            call, asked = (
                client.upgrade_cluster_addons_with_options,
                models.UpgradeClusterAddonsRequest(body=[item]),
            )
        elif action == addon.UNINSTALL:
            item = models.UnInstallClusterAddonsRequestAddons(name=name, cleanup_cloud_resources=self.cleanup)
            call, asked = (
                client.un_install_cluster_addons_with_options,
                models.UnInstallClusterAddonsRequest(addons=[item]),
            )
        else:
            asked = models.ModifyClusterAddonRequest(config=self._config())
            call = client.modify_cluster_addon_with_options
            self.service.write(what, call, self.cluster_id, name, asked)
            return None  # it tells no task (A25)
        return self.service.write(what, call, self.cluster_id, asked)

    def _target(self) -> str:
        """The version to install: the one that is wished, or the newest (A26)."""
        return self.wish.version or (self.outcome.offer.version if self.outcome.offer else "")

    def _config(self) -> Optional[str]:
        """The configuration to send: what there is with what is wished; ``None``: leave it to the service."""
        if self.wish.config is None:
            return None
        found, offer = self.outcome.after, self.outcome.offer
        kept: dict[str, Any] = {}
        if found is not None and found.state != "deleting":
            told = offer is not None and offer.version == (self.wish.version or found.version)
            rules = addon.schema(offer.config_schema) if offer is not None and told else None
            kept = addon.without_unknown(found.config, rules)
        return addon.encoded(merged(kept, self.wish.config))

    def _arrived(self, action: str, lost: RdmaError) -> bool:
        """Look whether an order whose answer is lost arrived: by a new task, or by what there is now."""
        end = time.monotonic() + self.service.limits.timeout  # it may still be on its way
        look = 0
        while look < LOOKS or time.monotonic() < end:
            if look:
                self.tell("waiting for signs of an order whose answer is lost")
                time.sleep(self.waits.poll)
            look += 1
            try:
                new = self._new_task(action)
                found = self._instance()
            except RdmaError as error:
                raise lost from error
            if new is not None:
                self.outcome.task_id = new.id
                return True
            if self._as_wished(action, found) or (found is not None and found.busy):
                return True
            if action == addon.INSTALL and found is not None:
                return True
        return False

    def _new_task(self, action: str) -> Optional[Task]:
        """A task that was not there before the order; the kind is documented for changes of settings only (A25)."""
        for task in self._tasks():
            if task.id not in self._seen and (action != addon.MODIFY or task.kind == _MODIFY_TASK):
                return task
        return None

    def _as_wished(self, action: str, found: Optional[Instance]) -> bool:
        if action == addon.UNINSTALL:
            return found is None
        if found is None or (action != addon.MODIFY and found.version != self._target()):
            return False
        return not addon.differences(self.wish.config or {}, found.config)

    # Waiting

    def _left(self, what: str) -> None:
        """Wait until the next look, or end when there is no time left."""
        if time.monotonic() + self.waits.poll > self.deadline:
            raise RdmaError(
                "ack_wait_timeout",
                "After %g seconds %s." % (self.waits.timeout, what),
                hint="Run it again: it goes on from there. Give a longer wait_timeout where this is usual.",
                retryable=True,
                task_id=self.outcome.task_id,
            )
        self.tell(standing.waiting(self.waits.timeout, [what]))
        time.sleep(self.waits.poll)

    def _settle(self) -> Optional[Instance]:
        """The instance when nothing is under way any more."""
        while True:
            found = self._instance()
            if found is None or not found.busy:
                return found
            self._left("the add-on %s is still %s" % (self.wish.name, found.state))

    def _running(self) -> None:
        while True:
            self.outcome.cluster = cluster = self._cluster()
            state = cluster.state.lower()
            if state == RUNNING:
                return
            if state in BROKEN:
                raise RdmaError(
                    "ack_cluster_broken",
                    "The cluster %s is %s, so nothing can be done with its add-ons."
                    % (self.cluster_id, state),
                    hint="See the cluster in the console.",
                    state=state,
                )
            self._left("the cluster %s is still %s" % (self.cluster_id, state))

    def _quiet(self) -> None:
        """Wait until nobody else works at the add-ons of the cluster, and remember the tasks that there are."""
        while True:
            if self.waits.wait:
                self._running()
            tasks = self._tasks()
            open_tasks = [task for task in tasks if task.state == RUNNING]
            if not open_tasks:
                self._seen = {task.id for task in tasks}
                return
            text = "the task %s (%s) is still %s" % (
                open_tasks[0].id,
                open_tasks[0].kind,
                open_tasks[0].state,
            )
            if not self.waits.wait:
                raise self._busy(text)
            self._left(text)

    def _finish(self, action: str) -> None:
        """Wait for the task, the cluster and the add-on, in this order (A30)."""
        if not self.outcome.task_id:
            self._find_task(action)
        if self.outcome.task_id:
            self._await_task(self.outcome.task_id)
        self._running()
        for look in range(LOOKS):
            self.outcome.after = found = self._settle()
            if self._as_wished(action, found):
                break
            if look < LOOKS - 1:
                self._left("the add-on %s is not as wished yet" % self.wish.name)
        else:
            raise self._not_applied(action, found)
        if found is not None and found.state == "unhealthy":
            self._warn(
                "addon_unhealthy: the add-on %s is %s, and unhealthy; see its pods."
                % (self.wish.name, _ORDERS[action])
            )

    def _find_task(self, action: str) -> None:
        """The new task of an order that told none; there may be none when all is done already (A25)."""
        for look in range(LOOKS):
            if look:
                self._left("the task of the order is not to be seen")
            new = self._new_task(action)
            if new is not None:
                self.outcome.task_id = new.id
                return
            if look and self._as_wished(action, self._instance()):
                return

    def _await_task(self, task_id: str) -> None:
        while True:
            task = self._task(task_id)
            if task.done:
                return
            if task.failed:
                raise RdmaError(
                    "ack_task_failed",
                    "The task %s (%s) of the cluster %s failed: %s."
                    % (task.id, task.kind, self.cluster_id, task.reason.rstrip(".") or "no reason is told"),
                    hint="See the task in the console, mend what it names, and run it again.",
                    task_id=task.id,
                    reason=task.reason,
                )
            self._left("the task %s (%s) is still %s" % (task.id, task.kind, task.state))

    def _not_applied(self, action: str, found: Optional[Instance]) -> RdmaError:
        if action == addon.UNINSTALL or found is None:
            text = "it is %s" % (found.state if found else "not there")
        elif action != addon.MODIFY and found.version != self._target():
            text = "its version is %s, not %s" % (found.version, self._target())
        else:
            text = "of its configuration %s differ" % ", ".join(
                addon.differences(self.wish.config or {}, found.config)
            )
        return RdmaError(
            "addon_not_applied",
            "The cloud says that the add-on %s of the cluster %s was %s, but %s."
            % (self.wish.name, self.cluster_id, _ORDERS[action], text),
            hint="Read the add-on's page for what the service makes of these values, and see the task in the console.",
            task_id=self.outcome.task_id,
        )

    # One at a time

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Serialised with others on this machine who work at the same cluster (A30); those elsewhere show as tasks."""
        name = hashlib.sha256(self.cluster_id.encode()).hexdigest()[:16]
        place = Path(tempfile.gettempdir()) / ("rdma-k8s-ack-%d-%s.lock" % (os.getuid(), name))
        try:
            handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RdmaError(
                "ack_cluster_busy",
                "The lock %s for the cluster %s cannot be opened: %s."
                % (place, self.cluster_id, error.strerror),
                hint="It must be an ordinary file of the user who runs this.",
                path=str(place),
            ) from error
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if not self.waits.wait:
                        raise self._busy("another process changes the add-ons") from error
                    self._left("another process still works at the cluster %s" % self.cluster_id)
            yield
        finally:
            os.close(handle)
