# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask netplan what it would make of its files (S35, decision 15). Private to rdma.k8s: it may change any time.

``netplan generate`` works on a directory apart, so that nothing of the node changes, and nothing that netplan does not
take is ever written. ``netplan apply`` is never run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator

from ..core.errors import RdmaError
from ..core.nic_mtu import MANAGER, NETWORKD, File, lines_of
from . import commands
from .files import Root, reason_of

DIRECTORIES = ("/lib/netplan", "/etc/netplan", "/run/netplan")
TRIAL = "rdma-k8s-netplan"
"""Directory below /run in which files are tried; only ever ours, gone after each trial."""

_OUTPUT = ("/run/systemd/network", "/run/NetworkManager/system-connections")
_LIMIT = 60.0


def generate(root: Root) -> None:
    """Let netplan write anew what it makes of its files, for the next start of the renderer; nothing is restarted.

    :raises RdmaError: ``tool_missing``, ``command_failed`` or ``command_timeout``
    """
    commands.run(root, ["netplan", "generate"], _LIMIT)


def generated(root: Root, files: Iterable[File]) -> dict[str, str]:
    """What netplan makes of these files: texts by name.

    :raises RdmaError: ``netplan_refused``, ``tool_missing``, ``command_timeout`` or ``file_not_written``
    """
    with _trial(root) as place:
        try:
            for file in files:
                _write(place + file.path, file.text)
        except OSError as error:
            raise _no_trial(error) from error
        done = commands.run(root, ["netplan", "generate", "--root-dir", "/run/" + TRIAL], _LIMIT, codes=None)
        if done.code:
            raise _refused(done)
        return present(Root(place))


def present(root: Root) -> dict[str, str]:
    """What netplan has made of its files: texts by name."""
    found = {}
    for directory in _OUTPUT:
        for name in root.names(directory) or ():
            if "netplan-" in name:
                found[name] = root.read("%s/%s" % (directory, name)) or ""
    return found


def has_mtu(texts: dict[str, str], key: str, mtu: int) -> bool:
    """Whether the files that netplan made for a definition set this MTU."""
    return str(mtu) in mtus(texts, key)


def mtus(texts: dict[str, str], key: str) -> list[str]:
    """The MTUs that these files set for the interfaces of a definition."""
    kinds = {NETWORKD: "10-netplan-%s.network" % key, MANAGER: "netplan-%s.nmconnection" % key}
    return [
        line.value
        for kind, name in kinds.items()
        for line in lines_of(kind, [File(name, texts.get(name, ""))], "")
    ]


def _refused(done: commands.Completed) -> RdmaError:
    said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
    told = [line for line in said if "rror" in line] or said[-1:]  # the last line only points at a place
    return RdmaError(
        "netplan_refused",
        "netplan does not take its files together with ours: %s." % told[-1].strip()[:300].rstrip("."),
        hint="Nothing was written. Look at 'netplan get', and whether netplan takes its files without ours.",
        exit_code=done.code,
    )


def _write(place: str, text: str) -> None:
    os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
    with os.fdopen(
        os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)


@contextlib.contextmanager
def _trial(root: Root) -> Iterator[str]:
    """An empty directory below /run that is gone afterwards, and before when a killed run left it."""
    try:
        place = os.path.join(root.real("/run"), TRIAL)
        _remove(place)
        os.mkdir(place, 0o700)
    except OSError as error:
        raise _no_trial(error) from error
    try:
        yield place
    finally:
        _remove(place)


def _remove(place: str) -> None:
    """Remove our directory, when it is a directory of that name and no link to something else."""
    parent, name = os.path.split(place)
    real = os.path.join(os.path.realpath(parent), TRIAL)
    if (
        name == TRIAL
        and os.path.isdir(place)
        and not os.path.islink(place)
        and os.path.realpath(place) == real
    ):
        shutil.rmtree(place)


def _no_trial(error: OSError) -> RdmaError:
    return RdmaError(
        "file_not_written",
        "/run/%s, in which netplan would try the files, cannot be made: %s." % (TRIAL, reason_of(error)),
        hint="Check space and permissions of /run.",
        path="/run/" + TRIAL,
    )
