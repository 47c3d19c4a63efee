# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One controller at a time: the Lease of rolls. Private to rdma.k8s: it may change with any release.

A lease has expired when its record stayed the same for its duration on our own clock (decision 28); the times that are
written into it are for people. Whoever holds it renews it in a thread of its own, and writes nothing any more once no
renewal succeeded for two thirds of the duration, so that two controllers never write at the same time.
"""

from __future__ import annotations

import contextlib
import datetime
import getpass
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Optional
from urllib.parse import quote

from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from ..core.roll.names import LEASE, PREFIX
from .client import FIELD_MANAGER, Cluster

DURATION = 60.0
"""Seconds."""
_GOOD = 2 / 3
"""Share of the duration for which writes go on after the last renewal that succeeded."""
_RENEW = 1 / 4
_ROLL = PREFIX + "roll"
"""Annotation of the lease: the roll for which it is held."""
_MERGE = "application/merge-patch+json"


class Lease:
    """The lease of one controller.

    :param cluster: for the lease alone, so that its calls wait for no others. A call must end well within the duration.
    :param rolls: hash of the plan that is carried out, and of the one that it takes back.
    :param holder: who we are; see :func:`holder`.
    :param duration: seconds.
    """

    def __init__(  # noqa: PLR0917
        self,
        cluster: Cluster,
        namespace: str,
        rolls: tuple[str, ...],
        holder: str,
        duration: float = DURATION,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._rolls, self.holder, self._duration = cluster, rolls, holder, duration
        self._clock = clock
        self._list = "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % quote(namespace, safe="")
        self._path = "%s/%s" % (self._list, LEASE)
        self._good = -1e9
        self._lost = ""
        self._version = ""
        self._over = threading.Event()
        self._thread: Optional[threading.Thread] = None

    # --- to have it

    def acquire(
        self, force: bool = False, wait: Callable[[str, float], bool] = lambda why, left: False
    ) -> None:
        """Take the lease and keep it.

        It is free when nobody holds it. One of the same roll is free as well when its holder was a process of this
        machine that has ended, or when it has expired; one of another roll is only taken by force.

        :param force: whoever holds it is declared dead by the operator.
        :param wait: is told why it is not free and how long that may last in seconds, and waits a moment; false: give
            up.
        :raises RdmaError: ``roll_locked``, or an error of the client.
        """
        seen, since = "", self._clock()
        while True:
            live = self._find()
            held = mapping(live, "spec")
            who = text(held.get("holderIdentity"))
            roll = text(mapping(live, "metadata", "annotations").get(_ROLL))
            version = text(mapping(live, "metadata").get("resourceVersion"))
            if version != seen:
                seen, since = version, self._clock()
            lasts = _seconds(held.get("leaseDurationSeconds"), self._duration)
            left = since + lasts - self._clock()
            free = (
                not who
                or who == self.holder
                or force
                or (roll in self._rolls and (left <= 0 or has_ended(who)))
            )
            if free:
                if self._take(live):
                    break
                continue
            why = "%s holds the lease for the roll %s" % (who, roll or "(unknown)")
            if roll not in self._rolls or not wait(why, left):
                raise RdmaError(
                    "roll_locked",
                    "Another controller works on a roll: %s." % why,
                    hint="Wait for it. If it is dead, resume its roll; it can be taken over %g seconds after its last "
                    "sign of life, or at once with force_unlock." % lasts,
                    retryable=True,
                    holder=who,
                    roll=roll,
                )
        self._thread = threading.Thread(target=self._renew_always, name="rdma-roll-lease", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Allow a write, or not.

        :raises RdmaError: ``roll_lease_lost``: somebody else has the lease; ``roll_lease_stale``: it could not be
            renewed for too long, which may heal.
        """
        if self._lost:
            raise RdmaError(
                "roll_lease_lost",
                "The lease %s was taken by %s; this controller writes nothing any more."
                % (LEASE, self._lost),
                hint="Let that one go on.",
                holder=self._lost,
            )
        silent = self._clock() - self._good
        if silent > self._duration * _GOOD:
            raise RdmaError(
                "roll_lease_stale",
                "The lease %s could not be renewed for %d seconds; nothing is written until it is."
                % (LEASE, silent),
                hint="Look whether the API server can be reached.",
                retryable=True,
            )

    @property
    def lost(self) -> bool:
        """Whether somebody else has it."""
        return bool(self._lost)

    def release(self) -> None:
        """Give it back, if it is still ours; errors do not matter, as it expires."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(self._duration)
        if self._lost or self._good < 0:
            return
        body = {
            "metadata": {"resourceVersion": self._version, "annotations": {_ROLL: None}},
            "spec": {"holderIdentity": None},
        }
        with contextlib.suppress(RdmaError):
            self._cluster.send("PATCH", self._path, body, _MERGE, fieldManager=FIELD_MANAGER)
        self._lost = "nobody, because it was given back"

    # --- below

    def _find(self) -> dict[str, Any]:
        return self._cluster.find(self._path) or {}

    def _body(self) -> dict[str, Any]:
        return {
            "metadata": {"annotations": {_ROLL: self._rolls[0]}},
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": max(1, round(self._duration)),
                "renewTime": _now(),
            },
        }

    def _take(self, live: dict[str, Any]) -> bool:
        """Write ourselves into it; false when somebody was faster."""
        began = self._clock()
        body = self._body()
        body["spec"]["acquireTime"] = body["spec"]["renewTime"]
        try:
            if live:
                body["metadata"]["resourceVersion"] = mapping(live, "metadata").get("resourceVersion")
                changes = mapping(live, "spec").get("leaseTransitions")
                body["spec"]["leaseTransitions"] = (changes if isinstance(changes, int) else 0) + 1
                made = self._cluster.send("PATCH", self._path, body, _MERGE, fieldManager=FIELD_MANAGER)
            else:
                body.update(apiVersion="coordination.k8s.io/v1", kind="Lease")
                body["metadata"]["name"] = LEASE
                made = self._cluster.send("POST", self._list, body, fieldManager=FIELD_MANAGER)
        except RdmaError as error:
            if error.code == "kube_conflict":
                return False
            raise
        self._keep(made, began)
        return True

    def _keep(self, made: dict[str, Any], began: float) -> None:
        self._version = text(mapping(made, "metadata").get("resourceVersion"))
        self._good = began  # when it was sent, not when it was answered

    def _renew_always(self) -> None:
        pause = self._duration * _RENEW
        while not self._over.wait(pause) and not self._lost:
            pause = self._duration * (_RENEW if self._renew() else _RENEW / 4)

    def _renew(self) -> bool:
        began = self._clock()
        body = self._body()
        body["metadata"]["resourceVersion"] = self._version
        try:
            self._keep(
                self._cluster.send("PATCH", self._path, body, _MERGE, fieldManager=FIELD_MANAGER), began
            )
            return True
        except RdmaError as error:
            if error.code not in ("kube_conflict", "kube_not_found"):
                return False
        try:  # somebody wrote it, perhaps we ourselves with an answer that was lost
            live = self._find()
        except RdmaError:
            return False
        who = text(mapping(live, "spec").get("holderIdentity"))
        if who != self.holder:
            self._lost = who or "nobody: it was deleted or given back by somebody"
            return False
        self._version = text(mapping(live, "metadata").get("resourceVersion"))
        return False


# --- who holds it ----------------------------------------------------------------------------------------------------


def holder() -> str:
    """Who we are: user, machine, its boot, process and when that began, and a random part."""
    process = _process(os.getpid())
    boot, space = _this_machine()
    words = (_user(), socket.gethostname(), boot[:8], space, str(os.getpid()), process, uuid.uuid4().hex[:8])
    return "%s@%s/%s/%s/%s/%s/%s" % words


def has_ended(who: str) -> bool:
    """Whether a holder was a process that ran here, since the last boot, and has ended; false: nobody can tell."""
    parts = who.split("/")
    boot, space = _this_machine()
    if len(parts) != 6 or not boot or not space or parts[1:3] != [boot[:8], space]:
        return False
    if not parts[3].isdigit() or not parts[4] or parts[0].partition("@")[0] != _user():
        return False  # processes of others may be hidden from us
    return _process(int(parts[3])) != parts[4]


def _this_machine() -> tuple[str, str]:
    """The boot of the kernel, and the space of process numbers in it; empty where there is no Linux."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return boot, os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return "", ""


def _process(number: int) -> str:
    """When a process began, in ticks since the boot; empty: there is none, or it is only waited for by its parent."""
    try:
        fields = (
            Path("/proc/%d/stat" % number).read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        )
    except OSError:
        return ""
    words = fields.split()
    return words[19] if len(words) > 19 and words[0] not in ("Z", "X") else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "uid-%d" % os.getuid()


def _seconds(found: Any, default: float) -> float:
    return float(found) if isinstance(found, int) and found > 0 else default


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
