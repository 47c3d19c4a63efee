# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of one kind, listed once, then followed by a watch. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Callable

from ..core.errors import RdmaError
from ..core.kube.objects import mapping, text
from .client import Cluster

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class Follower:
    """One kind of object, listed and then followed.

    :param take: gets an object that is there.
    :param drop: gets the key of an object that is there no more.
    :param changed: is called after something was taken or dropped.
    """

    def __init__(  # noqa: PLR0917
        self,
        cluster: Cluster,
        path: str,
        query: Mapping[str, Any],
        take: Callable[[str, dict[str, Any]], None],
        drop: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.path = path
        self.trouble = ""
        """Why nothing is heard at the moment; empty: everything is."""
        self.listed = threading.Event()
        self._cluster, self._query = cluster, query
        self._take, self._drop, self._changed = take, drop, changed
        self._keys: set[str] = set()
        self._over = threading.Event()
        self._watch: Any = None
        self._thread = threading.Thread(target=self._run, name="rdma-follow " + path, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; the thread may need a moment."""
        self._over.set()
        watch = self._watch
        if watch is not None:
            watch.close()

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended."""
        self._thread.join(seconds)

    def _run(self) -> None:
        version, pause = "", _FIRST_PAUSE
        while not self._over.is_set():
            try:
                if not version:
                    version = self._list()
                self._watch = self._cluster.watch(self.path, version, **self._query)
                if self._over.is_set():
                    self._watch.close()
                    return
                self._say("")
                pause = _FIRST_PAUSE
                for kind, content in self._watch:
                    version = text(mapping(content, "metadata").get("resourceVersion")) or version
                    self._event(kind, content)
            except RdmaError as error:
                if self._over.is_set():
                    return
                if error.code == "kube_expired":
                    version = ""
                    continue
                self._say(str(error))
                self._over.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._changed()

    def _list(self) -> str:
        version, found = "", set()
        for page in self._cluster.pages(self.path, **self._query):
            version = text(mapping(page, "metadata").get("resourceVersion"))
            for content in page["items"]:
                key = key_of(content)
                found.add(key)
                self._take(key, content)
        for key in self._keys - found:
            self._drop(key)
        self._keys = found
        self.listed.set()
        self._changed()
        return version

    def _event(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "BOOKMARK":
            return
        key = key_of(content)
        if kind == "DELETED":
            self._keys.discard(key)
            self._drop(key)
        else:
            self._keys.add(key)
            self._take(key, content)
        self._changed()


def key_of(content: Mapping[str, Any]) -> str:
    """``namespace/name`` of an object, or its name."""
    metadata = mapping(content, "metadata")
    where, name = text(metadata.get("namespace")), text(metadata.get("name"))
    return "%s/%s" % (where, name) if where else name
