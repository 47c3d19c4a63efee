# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment of containers, wherever it is set. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ..kube import objects
from ..kube.documents import Document
from ..kube.pod_templates import Container
from .model import Path

if TYPE_CHECKING:
    from .pod import Pod

_ASSIGNED = re.compile(r"""(?<![\w$#{])([A-Z][A-Z0-9_]*)=("[^"\n]*"|'[^'\n]*'|[^\s;&|"')]*)""")
_GENV = re.compile(r"-g?env\s+([A-Z][A-Z0-9_]*)\s+(\S+)")
_EXPORTED = re.compile(r"(?<!\S)-x\s+([A-Z][A-Z0-9_]*)(?=\s|=|$)")
EVERYWHERE = "kube-root-ca.crt"
"""The ConfigMap that Kubernetes itself writes into every namespace; no script is in it."""

_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")


class Setting(NamedTuple):
    """A variable of the environment. ``value`` is ``None`` when only the running pod knows it.

    :param how: ``env``, ``envFrom``, ``command``, ``script``, or ``export`` when a launcher sends it to all ranks.
    :param origin: of a value that stands in another document: what to call it.
    :param refused: why the pod does not start with it; empty: it does, as far as the documents tell.
    """

    name: str
    value: Optional[str]
    path: Path
    how: str
    origin: str = ""
    refused: str = ""


def of(container: Container, pod: Pod) -> Iterator[Setting]:
    """The variables of a container: from its environment, its ConfigMaps, its command line and its scripts."""
    spec = container.spec
    yield from _environment(container, pod).values()
    for key in ("command", "args"):
        words = spec.get(key)
        if isinstance(words, list):
            for position, word in enumerate(words):
                if isinstance(word, str) and ("=" in word or "env" in word):
                    mpi = position > 0 and words[position - 1] == "-x"
                    yield from _of_text(word, (*container.path, key, position), mpi)
            yield from _of_words(words, (*container.path, key))
    yield from _of_scripts(container, pod)


def _environment(container: Container, pod: Pod) -> dict[str, Setting]:
    """What counts of ``envFrom`` and ``env``: a later source overrides an earlier one, and ``env`` overrides both."""
    found: dict[str, Setting] = {}
    for source in sources(container, pod):
        if source.document is not None:
            for key, value in objects.mapping(source.document.content, "data").items():
                if isinstance(key, str):
                    text = value if isinstance(value, str) else None
                    name = source.prefix + key
                    found[name] = Setting(name, text, source.path, "envFrom", "ConfigMap %s" % source.name)
    for position, entry in objects.entries(container.spec.get("env")):
        name = objects.text(entry.get("name"))
        if name:
            value, origin = _value(entry, pod)
            refused = _refused(entry, pod)
            found[name] = Setting(name, value, (*container.path, "env", position), "env", origin, refused)
    return found


class Source(NamedTuple):
    """A ConfigMap that a container is given. ``document`` is ``None`` when it is not among the documents.

    :param optional: the container starts without it.
    """

    path: Path
    name: str
    document: Optional[Document]
    optional: bool
    prefix: str = ""


def sources(container: Container, pod: Pod) -> Iterator[Source]:
    """The ConfigMaps of ``envFrom``, in their order."""
    for position, entry in objects.entries(container.spec.get("envFrom")):
        path, prefix = (*container.path, "envFrom", position), objects.text(entry.get("prefix"))
        yield from _source(objects.mapping(entry, "configMapRef"), path, pod, prefix)


def mounts(container: Container, pod: Pod) -> Iterator[Source]:
    """The ConfigMaps that the container mounts, also as a part of a projected volume."""
    mounted = {
        objects.text(entry.get("name")) for _at, entry in objects.entries(container.spec.get("volumeMounts"))
    }
    for position, volume in objects.entries(pod.spec.get("volumes")):
        if objects.text(volume.get("name")) in mounted:
            path = (*pod.path, "volumes", position)
            yield from _source(objects.mapping(volume, "configMap"), path, pod)
            for _at, part in objects.entries(objects.mapping(volume, "projected").get("sources")):
                yield from _source(objects.mapping(part, "configMap"), path, pod)


def _source(reference: dict[str, Any], path: Path, pod: Pod, prefix: str = "") -> Iterator[Source]:
    name = objects.text(reference.get("name"))
    if name and name != EVERYWHERE:
        document = pod.context.config_map(pod.namespace, name)
        yield Source(path, name, document, reference.get("optional") is True, prefix)


def _refused(entry: dict[str, Any], pod: Pod) -> str:
    """Why the pod does not start with an entry of ``env``; empty: it does, as far as the documents tell."""
    value = entry.get("value")
    if value is not None and not isinstance(value, str):
        return "its value is no text, which the API server refuses; write it in quotes"
    reference = objects.mapping(entry, "valueFrom", "configMapKeyRef")
    for source in _source(reference, (), pod) if pod.context.complete else ():
        if source.document is None and not source.optional:
            return "ConfigMap %s does not exist, so the container does not start" % source.name
    return ""


def _value(entry: dict[str, Any], pod: Pod) -> tuple[Optional[str], str]:
    """The value of an entry of ``env`` and where it stands; ``None``: only the running pod knows it."""
    source = entry.get("valueFrom")
    if not isinstance(source, dict):
        value = "" if entry.get("value") is None else entry["value"]
        return (value if isinstance(value, str) and "$(" not in value else None), ""
    reference = objects.mapping(source, "configMapKeyRef")
    name, key = objects.text(reference.get("name")), objects.text(reference.get("key"))
    document = pod.context.config_map(pod.namespace, name) if name else None
    value = objects.mapping(document.content, "data").get(key) if document is not None else None
    return (value if isinstance(value, str) else None), "ConfigMap %s" % name if name else "its source"


def _of_text(text: str, path: Path, mpi: bool = False, origin: str = "") -> Iterator[Setting]:
    """The variables that a command or a script sets: ``export A=1``, ``A=1 program``, ``-x A=1``, ``-genv A 1``."""
    text = _COMMENT.sub("", text)
    for found in _ASSIGNED.finditer(text):
        value = found[2].strip("\"'")
        before = text[: found.start()].rstrip()
        how = "export" if mpi or before.endswith("-x") else "script" if origin else "command"
        yield Setting(found[1], None if "$" in value or "`" in value else value, path, how, origin)
    for found in _GENV.finditer(text):
        yield Setting(found[1], None if "$" in found[2] else found[2], path, "export", origin)


def _of_words(words: list[Any], path: Path) -> Iterator[Setting]:
    """``-genv A 1`` as three words."""
    for position, word in enumerate(words[:-2]):
        if word in ("-genv", "-env") and isinstance(words[position + 1], str):
            value = words[position + 2]
            text = value if isinstance(value, str) and "$" not in value else None
            yield Setting(words[position + 1], text, (*path, position + 1), "export")


def _of_scripts(container: Container, pod: Pod) -> Iterator[Setting]:
    """What scripts set that a ConfigMap mounts into the container."""
    for source in mounts(container, pod):
        data = objects.mapping(source.document.content, "data") if source.document is not None else {}
        for key, text in data.items():
            if isinstance(text, str):
                yield from _of_text(text, source.path, origin="ConfigMap %s, %s" % (source.name, key))


def exported(all_pods: tuple[Pod, ...]) -> Iterator[tuple[Pod, Setting]]:
    """What the launcher of an MPI job sends to the ranks on all pods of the object: ``mpirun -x A=1``, ``-x A``."""
    for pod in all_pods:
        for container, setting in pod.settings:
            if setting.how == "export" or setting.name in _sent(container):
                yield pod, setting


def _sent(container: Container) -> set[str]:
    """The names that ``-x`` sends with the value that the launcher itself has."""
    found: set[str] = set()
    for key in ("command", "args"):
        words = container.spec.get(key)
        if isinstance(words, list):
            texts = [word for word in words if isinstance(word, str)]
            if any("-x" in word for word in texts):
                found.update(_EXPORTED.findall(_COMMENT.sub("", " ".join(texts))))
    return found
