# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a call to the Kubernetes API was about, and why it failed. Private to rdma.k8s: it may change any time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from ..core.errors import RdmaError
from ..core.kube.objects import entries, mapping, text

_SHOWN = 400
_UNTYPED = "failed to create typed patch object"
"""How server-side apply refuses a field that it does not know, with status 500 of all."""
_DENIED = re.compile(
    r"ValidatingAdmissionPolicy .* denied request|admission webhook .* denied the request", re.S
)
_MAY_COME_RIGHT = frozenset((429, 500, 502, 503, 504))


@dataclass(frozen=True)
class Call:
    """One call: method and path, and what RBAC makes of them."""

    server: str
    method: str
    path: str
    verb: str
    resource: str
    """Plural with subresource, empty for a path that is no resource."""
    group: str
    namespace: str

    def __str__(self) -> str:
        return "%s %s at %s" % (self.method, self.path, self.server)

    @property
    def details(self) -> dict[str, Any]:
        """What every error about the call tells for programs."""
        return {"server": self.server, "verb": self.verb, "path": self.path}

    @property
    def right(self) -> str:
        """The right that the call needs, as a role names it."""
        if not self.resource:
            return 'verb "%s" for the path %s' % (self.verb, self.path)
        where = " in the namespace %s" % self.namespace if self.namespace else ""
        return 'verb "%s" for "%s" of the API group "%s"%s' % (self.verb, self.resource, self.group, where)


def call_of(server: str, method: str, path: str) -> Call:
    """Take apart the path of a call, such as ``/apis/apps/v1/namespaces/a/daemonsets/b/status``."""
    parts = [unquote(part) for part in path.split("/") if part]
    group, rest = "", []
    if parts[:1] == ["api"] and len(parts) > 2:
        rest = parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    if not rest:
        return Call(server, method, path, method.lower(), "", "", "")
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    named = len(rest) > 1
    verbs = {"GET": "get" if named else "list", "POST": "create", "PUT": "update"}
    verb = verbs.get(method, method.lower())
    return Call(server, method, path, verb, "/".join(rest[:1] + rest[2:]), group, namespace)


def error_of_answer(call: Call, code: int, body: bytes, headers: Mapping[str, str]) -> RdmaError:
    """The error for an answer that is no success.

    :param body: the answer, as a rule a ``Status`` object.
    """
    status = _status(body)
    said = str(status.get("message") or body[:_SHOWN].decode("utf-8", "replace")).strip() or "no reason given"
    found = {**call.details, "status": code}
    causes = [entry for _at, entry in entries(mapping(status, "details").get("causes"))]
    say = "%s was refused: %s" % (call, _sentence(said))
    if code < 500 and _DENIED.search(said):  # with 403, 422 or what the policy or webhook chose
        return RdmaError("kube_denied", "%s was denied: %s" % (call, _sentence(said)), **found)
    if code == 401:
        return RdmaError(
            "kube_unauthorized",
            "%s was refused: the credentials are missing, wrong or expired." % call,
            hint="Log in again, or give a kubeconfig with a token or certificate that is still valid.",
            **found,
        )
    if code == 403:
        return _not_allowed(call, said, found)
    if code == 404:
        hint = "Check the name, and that the cluster serves this API."
        return RdmaError("kube_not_found", "%s: not found. %s" % (call, _sentence(said)), hint=hint, **found)
    if code == 409:
        return _conflicting(call, said, causes, found)
    if code == 410:
        return RdmaError("kube_expired", say, hint="Read again from the beginning.", retryable=True, **found)
    if code in (400, 422) or (code == 500 and _UNTYPED in said):
        return RdmaError(
            "kube_invalid", say, hint="Correct the fields that are named.", fields=_fields(causes), **found
        )
    if code == 429:
        return RdmaError(
            "kube_throttled",
            say,
            hint="Try again later.",
            retryable=True,
            wait=wait_of(status, headers),
            causes=[text(cause.get("message")) for cause in causes],
            **found,
        )
    if code in _MAY_COME_RIGHT:
        return RdmaError(
            "kube_failed",
            say,
            hint="Try again; if it stays, look into the log of the API server.",
            retryable=True,
            **found,
        )
    return RdmaError("kube_refused", say, **found)


def wait_of(status: Mapping[str, Any], headers: Mapping[str, str]) -> float:
    """For how many seconds the server asks to wait, 0 when it does not say (a date is not understood)."""
    told = headers.get("Retry-After") or str(mapping(status, "details").get("retryAfterSeconds") or "")
    return float(told) if told.isascii() and told.isdigit() and len(told) < 6 else 0.0


def continued(body: bytes) -> str:
    """The token with which an expired list goes on, empty when there is none.

    The rest is then from a later time than the pages before; nothing comes twice and nothing that stays is left out.
    """
    return text(mapping(_status(body), "metadata").get("continue"))


def unreachable(call: Call, reason: str) -> RdmaError:
    """The error for a connection that does not come about or breaks."""
    return RdmaError(
        "kube_unreachable",
        "%s did not work: the API server cannot be reached (%s)." % (call, reason),
        hint="Check the address in the kubeconfig, the network between here and the server, and proxy variables.",
        retryable=True,
        **call.details,
    )


def untrusted(call: Call, reason: str) -> RdmaError:
    """The error for TLS that fails."""
    return RdmaError(
        "kube_tls",
        "%s did not work: TLS with the API server failed (%s)." % (call, reason),
        hint="Check certificate-authority-data and tls-server-name of the cluster in the kubeconfig, and the clocks.",
        **call.details,
    )


def too_slow(call: Call, seconds: float) -> RdmaError:
    """The error for an answer that is not complete in time."""
    return RdmaError(
        "kube_timeout",
        "%s had no complete answer after %g seconds." % (call, seconds),
        hint="Raise request_timeout, or look whether the API server is overloaded.",
        retryable=True,
        **call.details,
    )


def senseless(call: Call, found: str) -> RdmaError:
    """The error for an answer that is no JSON object."""
    return RdmaError(
        "kube_malformed",
        "%s gave no JSON object, but %s." % (call, found),
        hint="Check that the address in the kubeconfig is that of a Kubernetes API server, not of a proxy before it.",
        **call.details,
    )


def _not_allowed(call: Call, said: str, found: dict[str, Any]) -> RdmaError:
    if "system:anonymous" in said:
        hint = "No credentials were sent. Check the user of the context in the kubeconfig."
    else:
        hint = "Give the user a role with the %s." % call.right
    return RdmaError(
        "kube_forbidden",
        "%s is not allowed: %s" % (call, _sentence(said)),
        hint=hint,
        resource=call.resource,
        group=call.group,
        namespace=call.namespace,
        **found,
    )


def _conflicting(call: Call, said: str, causes: list[dict[str, Any]], found: dict[str, Any]) -> RdmaError:
    owned = any(cause.get("reason") == "FieldManagerConflict" for cause in causes)
    return RdmaError(
        "kube_conflict",
        "%s was refused: %s" % (call, _sentence(said)),
        hint="Leave these fields to their owner, or take them over by force."
        if owned
        else "Somebody else changed the object. Read it again.",
        retryable=not owned,
        fields=_fields(causes),
        **found,
    )


def _fields(causes: list[dict[str, Any]]) -> list[str]:
    return ["%s: %s" % (cause.get("field"), cause.get("message")) for cause in causes]


def _status(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _sentence(said: str) -> str:
    said = " ".join(said.split())
    said = said if len(said) <= 2 * _SHOWN else said[: 2 * _SHOWN] + "..."
    return said if said.endswith((".", "!", "?")) else said + "."
