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
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")


class Setting(NamedTuple):
    """A variable of the environment. ``value`` is ``None`` when only the running pod knows it.

    :param how: ``env``, ``envFrom``, ``command``, ``script``, or ``export`` when a launcher sends it to all ranks.
    :param origin: of a value that stands in another document: what to call it.
    """

    name: str
    value: Optional[str]
    path: Path
    how: str
    origin: str = ""


def of(container: Container, pod: Pod) -> Iterator[Setting]:
    """The variables of a container: from its environment, its ConfigMaps, its command line and its scripts."""
    spec = container.spec
    for path, name, document, prefix in sources(container, pod):
        if document is not None:
            data = objects.mapping(document.content, "data")
            for key, value in data.items():
                if isinstance(key, str):
                    text = value if isinstance(value, str) else None
                    yield Setting(prefix + key, text, path, "envFrom", "ConfigMap %s" % name)
    for position, entry in objects.entries(spec.get("env")):
        name = objects.text(entry.get("name"))
        if name:
            value, origin = _value(entry, pod)
            yield Setting(name, value, (*container.path, "env", position), "env", origin)
    for key in ("command", "args"):
        words = spec.get(key)
        if isinstance(words, list):
            for position, word in enumerate(words):
                if isinstance(word, str) and ("=" in word or "env" in word):
                    mpi = position > 0 and words[position - 1] == "-x"
                    yield from _of_text(word, (*container.path, key, position), mpi)
            yield from _of_words(words, (*container.path, key))
    yield from _of_scripts(container, pod)


def sources(container: Container, pod: Pod) -> Iterator[tuple[Path, str, Optional[Document], str]]:
    """The ConfigMaps of ``envFrom``: place, name, document, prefix of the variables."""
    for position, entry in objects.entries(container.spec.get("envFrom")):
        name = objects.text(objects.mapping(entry, "configMapRef").get("name"))
        if name:
            document = pod.context.config_map(pod.namespace, name)
            yield (
                (*container.path, "envFrom", position),
                name,
                document,
                objects.text(entry.get("prefix")),
            )


def _value(entry: dict[str, Any], pod: Pod) -> tuple[Optional[str], str]:
    """The value of an entry of ``env`` and where it stands; ``None``: only the running pod knows it."""
    source = entry.get("valueFrom")
    if not isinstance(source, dict):
        value = entry.get("value", "")
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
    mounted = {
        objects.text(entry.get("name")) for _at, entry in objects.entries(container.spec.get("volumeMounts"))
    }
    for position, volume in objects.entries(pod.spec.get("volumes")):
        name = objects.text(objects.mapping(volume, "configMap").get("name"))
        if name and objects.text(volume.get("name")) in mounted:
            document = pod.context.config_map(pod.namespace, name)
            data = objects.mapping(document.content, "data") if document is not None else {}
            for key, text in data.items():
                if isinstance(text, str):
                    origin = "ConfigMap %s, %s" % (name, key)
                    yield from _of_text(text, (*pod.path, "volumes", position), origin=origin)


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
