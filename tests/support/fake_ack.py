# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alibaba Cloud on loopback: answers as the APIs of ACK and of Lingjun clusters do, and checks each signature.

It dispatches on the header ``x-acs-action`` (A43), keeps one cluster with add-ons that are installed by tasks, and
remembers what it was asked and ordered.
"""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from ansible_collections.rdma.k8s.tests.support.loopback_service import LoopbackService

CLUSTER = "c0123456789abcdef0123456789abcdef"
PLUGIN = "ack-rdma-device-plugin"
KEY_ID, KEY_SECRET, TOKEN = "LTAIkeyOfNobody", "Kardamom-secret-7", "Zimt-token-9"

_AUTHORIZATION = re.compile(
    "ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([a-z0-9;-]+),Signature=([0-9a-f]{64})"
)
ORDERS = ("InstallClusterAddons", "UpgradeClusterAddons", "ModifyClusterAddon", "UnInstallClusterAddons")

SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "customResourceName": {"type": "string", "default": "rdma/hca"},
        "rdmaMode": {"type": "string", "enum": ["shared", "exclusive"]},
        "podNetwork": {"type": "boolean"},
    },
}


@dataclass
class Request:
    """What came in."""

    action: str
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str] = field(repr=False)
    time: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Refuse:
    """Answer with an error, instead of what was asked or after it was carried out."""

    status: int
    code: str
    message: str = "This is a test."
    retry_after: Optional[int] = None
    after: bool = False


class _Drop:
    """Close the connection without an answer."""

    def __init__(self, after: bool) -> None:
        self.after = after


DROPPED_BEFORE, DROPPED_AFTER = _Drop(False), _Drop(True)
"""The order does not arrive; the order is carried out and the answer is lost."""

Fault = Union[Refuse, _Drop, bytes, Callable[[], None]]
"""An error, a lost answer, another body, or what happens before the right answer."""


class FakeAck(LoopbackService):
    """The service. It runs in threads until :meth:`close`.

    :ivar faults: what to do instead of the right answer, by action, each once, in turn.
    :ivar requests: what came in, in order.
    :ivar refused: why signatures were not accepted.
    :ivar looks: how often a task is looked at before it ends.
    :ivar reason: when set, tasks fail with this error.
    :ivar hidden: states of tasks that are missing in the list.
    :ivar overlaps: orders that came while another task was running.
    """

    def __init__(self, catalogue: Optional[dict[str, Any]] = None) -> None:
        self.cluster: dict[str, Any] = {
            "cluster_id": CLUSTER,
            "name": "training",
            "state": "running",
            "current_version": "1.34.1-aliyun.1",
            "cluster_spec": "ack.pro.small",
            "profile": "Default",
            "region_id": "cn-beijing",
        }
        self.versions = ["1.1.2", "1.1.5"] if catalogue is None else list(catalogue)
        self.schemas = {version: json.dumps(SCHEMA) for version in self.versions}
        self.schemas.update(catalogue or {})
        self.instance: Optional[dict[str, Any]] = None
        self.defaults: dict[str, Any] = {"customResourceName": "rdma/hca", "podNetwork": "false"}
        self.tasks: list[dict[str, Any]] = []
        self.pools: list[dict[str, Any]] = []
        self.details: dict[str, Any] = {}
        self.lingjun: dict[str, Any] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self.overlaps: list[str] = []
        self.looks = 1
        self.reason: Optional[dict[str, str]] = None
        self.hidden: tuple[str, ...] = ()
        self.keys = {KEY_ID: KEY_SECRET}
        self._work: dict[str, tuple[int, Callable[[], None], Callable[[], None]]] = {}
        self._lock = threading.RLock()
        self.serve()

    # What tests ask

    @property
    def actions(self) -> list[str]:
        """The actions that came in, in order."""
        return [request.action for request in self.requests]

    @property
    def orders(self) -> list[Request]:
        """The requests that write."""
        return [request for request in self.requests if request.action in ORDERS]

    def installed(self, version: str = "1.1.2", state: str = "active", **config: Any) -> None:
        """Start with an add-on."""
        self.instance = {
            "name": PLUGIN,
            "version": version,
            "state": state,
            "config": json.dumps({**self.defaults, **config}),
        }

    # Answers

    def post(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.get(request)

    def get(self, request: http.server.BaseHTTPRequestHandler) -> None:
        parts = urllib.parse.urlsplit(request.path)
        content = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in request.headers.items()}
        text = content.decode()
        body = json.loads(text) if text and "json" in headers.get("content-type", "") else text
        noted = Request(
            headers.get("x-acs-action", ""),
            request.command,
            urllib.parse.unquote(parts.path),
            dict(urllib.parse.parse_qsl(parts.query)),
            body,
            headers,
        )
        with self._lock:
            self.requests.append(noted)
            problem = self._problem(request, parts, content, headers)
            if problem:
                self.refused.append(problem)
                _error(request, Refuse(400, "SignatureDoesNotMatch", "Signed: %s" % headers))
                return
            waiting = self.faults.get(noted.action)
            fault = waiting.pop(0) if waiting else None
        if callable(fault):
            fault()
        with self._lock:
            if isinstance(fault, Refuse) and not fault.after:
                _error(request, fault)
            elif fault is DROPPED_BEFORE:
                _hang_up(request)
            elif isinstance(fault, bytes):
                _send(request, 200, fault)
            else:
                self._right(request, noted, fault)

    def _right(self, handler: Any, request: Request, fault: Any) -> None:
        answer = getattr(self, "_" + re.sub("(?<!^)(?=[A-Z])", "_", request.action).lower(), None)
        try:
            if answer is None:
                raise KeyError("InvalidAction.NotFound")
            found = answer(request)
        except KeyError as error:
            _error(handler, Refuse(404, error.args[0]))
            return
        if isinstance(fault, Refuse):
            _error(handler, fault)
        elif fault is DROPPED_AFTER:
            _hang_up(handler)
        else:
            _send(handler, 200, b"" if found is None else json.dumps(found).encode())

    def _problem(
        self, handler: Any, parts: urllib.parse.SplitResult, content: bytes, headers: dict[str, str]
    ) -> str:
        """What is wrong with the signature of a request; empty when it is right."""
        found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if found is None:
            return "The Authorization header has another form."
        key_id, names, signature = found.groups()
        if key_id not in self.keys:
            return "The key id is not known."
        digest = hashlib.sha256(content).hexdigest()
        if headers.get("x-acs-content-sha256") != digest:
            return "The digest is not of this body."
        query = sorted(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        lines = [
            handler.command,
            parts.path,
            "&".join("%s=%s" % (_encoded(key), _encoded(value)) for key, value in query),
            "".join("%s:%s\n" % (name, headers.get(name, "").strip()) for name in names.split(";")),
            names,
            digest,
        ]
        text = "ACS3-HMAC-SHA256\n" + hashlib.sha256("\n".join(lines).encode()).hexdigest()
        right = hmac.new(self.keys[key_id].encode(), text.encode(), hashlib.sha256).hexdigest()
        return "" if hmac.compare_digest(right, signature) else "The signature is not of this key."

    # Questions (A21)

    def _need_cluster(self, request: Request) -> None:
        if request.path.split("/")[2] != CLUSTER:
            raise KeyError("ErrorClusterNotFound")

    def _describe_cluster_detail(self, request: Request) -> Any:
        self._need_cluster(request)
        return self.cluster

    def _get_cluster_addon_instance(self, request: Request) -> Any:
        self._need_cluster(request)
        if self.instance is None or not request.path.endswith("/addon_instances/" + PLUGIN):
            raise KeyError("AddonNotFound")
        return self.instance

    def _describe_addon(self, request: Request) -> Any:
        version = request.query.get("version") or self.versions[-1]
        if version not in self.versions or request.path != "/addons/" + PLUGIN:
            raise KeyError("AddonNotFound")
        if request.query.get("cluster_id") != CLUSTER:
            raise KeyError("ErrorClusterNotFound")
        newer = self.versions[self.versions.index(version) + 1 :]
        return {
            "name": PLUGIN,
            "version": version,
            "config_schema": self.schemas[version],
            "newer_versions": [{"version": entry, "upgradable": True} for entry in newer],
            "supported_actions": ["Install", "Upgrade", "Modify", "Uninstall"],
        }

    def _describe_cluster_tasks(self, request: Request) -> Any:
        self._need_cluster(request)
        number, size = int(request.query["page_number"]), int(request.query["page_size"])
        shown = list(reversed([task for task in self.tasks if task["state"] not in self.hidden]))
        return {
            "tasks": shown[(number - 1) * size : number * size],
            "page_info": {"page_number": number, "page_size": size, "total_count": len(shown)},
        }

    def _describe_task_info(self, request: Request) -> Any:
        found = [task for task in self.tasks if request.path == "/tasks/" + task["task_id"]]
        if not found:
            raise KeyError("TaskNotFound")
        self._progress(found[0])
        return {**found[0], "cluster_id": CLUSTER}

    def _describe_cluster_node_pools(self, request: Request) -> Any:
        self._need_cluster(request)
        return {"nodepools": self.pools}

    def _describe_cluster_node_pool_detail(self, request: Request) -> Any:
        self._need_cluster(request)
        return self.details[request.path.rpartition("/")[2]]

    def _describe_cluster(self, request: Request) -> Any:
        """Of Lingjun clusters (A63)."""
        name = dict(urllib.parse.parse_qsl(request.body)).get("ClusterId", "")
        if name not in self.lingjun:
            raise KeyError("Cluster.NotFound")
        return self.lingjun[name]

    # Orders

    def _install_cluster_addons(self, request: Request) -> Any:
        (item,) = request.body
        if self.instance is not None:
            raise KeyError("AddonAlreadyInstalled")
        wished = json.loads(item["config"]) if item.get("config") else {}
        self.instance = {"name": item["name"], "version": item["version"], "state": "initial", "config": "{}"}
        return self._start(request, "cluster_addon_install", self._becomes(item["version"], wished))

    def _upgrade_cluster_addons(self, request: Request) -> Any:
        (item,) = request.body
        found = self._there()
        found["state"] = "upgrading"
        wished = json.loads(item["config"]) if item.get("config") else json.loads(found["config"])
        return self._start(request, "cluster_addon_upgrade", self._becomes(item["next_version"], wished))

    def _modify_cluster_addon(self, request: Request) -> Any:
        found = self._there()
        found["state"] = "updating"
        self._start(
            request,
            "cluster_addon_modify",
            self._becomes(found["version"], json.loads(request.body["config"])),
        )
        return None

    def _un_install_cluster_addons(self, request: Request) -> Any:
        (_item,) = request.body
        self._there()["state"] = "deleting"

        def gone() -> None:
            self.instance = None

        return self._start(request, "cluster_addon_uninstall", gone)

    def _there(self) -> dict[str, Any]:
        if self.instance is None:
            raise KeyError("AddonNotFound")
        return self.instance

    def _becomes(self, version: str, config: dict[str, Any]) -> Callable[[], None]:
        """The add-on after a task: the service adds defaults, and writes booleans as texts (A32)."""
        texts = {
            key: str(value).lower() if isinstance(value, bool) else value for key, value in config.items()
        }

        def act() -> None:
            self.instance = {
                "name": PLUGIN,
                "version": version,
                "state": "active",
                "config": json.dumps({**self.defaults, **texts}),
            }

        return act

    def _start(self, request: Request, kind: str, effect: Callable[[], None]) -> Any:
        if any(task["state"] == "running" and "addon" in task["task_type"] for task in self.tasks):
            self.overlaps.append(request.action)
        number = "T-%04d" % (len(self.tasks) + 1)
        self.tasks.append({"task_id": number, "task_type": kind, "state": "running"})
        self.cluster["state"] = "updating"
        before = dict(self.instance or {}, state="active") if kind != "cluster_addon_install" else None

        def undo() -> None:
            self.instance = before

        self._work[number] = (self.looks, effect, undo)
        return {"cluster_id": CLUSTER, "task_id": number, "request_id": "R-1"}

    def finish(self) -> None:
        """Let all tasks end now."""
        for task in self.tasks:
            while task["state"] == "running":
                self._progress(task)

    def _progress(self, task: dict[str, Any]) -> None:
        if task["task_id"] not in self._work:
            return
        left, effect, undo = self._work.pop(task["task_id"])
        if left > 1:
            self._work[task["task_id"]] = (left - 1, effect, undo)
            return
        self.cluster["state"] = "running"
        if self.reason is None:
            task["state"] = "success"
            effect()
        else:
            task.update(state="fail", error=self.reason)
            undo()


def _encoded(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~")


def _send(handler: Any, status: int, body: bytes, headers: Optional[dict[str, str]] = None) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json;charset=utf-8")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


def _error(handler: Any, refusal: Refuse) -> None:
    body = {"code": refusal.code, "message": refusal.message, "requestId": "R-7"}
    more = {} if refusal.retry_after is None else {"x-acs-retry-after": str(refusal.retry_after)}
    _send(handler, refusal.status, json.dumps(body).encode(), more)


def _hang_up(handler: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
