# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files that set lossless RoCE again after a boot (S55). Private to rdma.k8s: it may change with any release.

One shell script with every setting in plain sight, a unit of systemd that runs it once, and a drop-in that makes the
boot want the unit. No loop: what changes a setting later is found by the checks, not fought every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SCRIPT = "/etc/rdma-k8s/roce-qos.sh"
UNIT = "/etc/systemd/system/rdma-k8s-roce-qos.service"
WANTED = "/etc/systemd/system/multi-user.target.d/rdma-k8s-roce-qos.conf"
MANAGED = "Written by rdma.k8s.roce_qos; changes by hand are lost."

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@%+")

_HEAD = """\
#!/bin/sh
# %s
# Each line is one setting. All are tried; the exit code is 1 when one failed.
failed=0
run() { "$@" || { echo "failed: $*" >&2; failed=1; }; }
put() { echo "$1" >"$2" || { echo "failed: $1 to $2" >&2; failed=1; }; }
"""
_TAIL = "exit $failed\n"


def script(ports: Iterable[tuple[str, Sequence[Sequence[str]], Sequence[tuple[str, str]]]]) -> str:
    """The script.

    :param ports: for each port its name, programs with their arguments, and pairs of value and file.
    """
    lines = [_HEAD % MANAGED]
    for name, programs, values in ports:
        lines.append("\n# %s\n" % name)
        lines += ["run %s\n" % " ".join([_word(word) for word in words]) for words in programs]
        lines += ["put %s %s\n" % (_word(value), _word(path)) for value, path in values]
    return "".join([*lines, "\n", _TAIL])


def unit() -> str:
    """The unit: after the network and the drivers of the vendor, once."""
    return (
        "# %s\n"
        "[Unit]\n"
        "Description=Lossless RoCE settings of the RDMA NICs\n"
        "Wants=network-online.target\n"
        "After=network-online.target openibd.service sys-kernel-config.mount sys-kernel-debug.mount\n"
        "ConditionPathExists=%s\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "RemainAfterExit=yes\n"
        "ExecStart=/bin/sh %s\n"
    ) % (MANAGED, SCRIPT, SCRIPT)


def wanted() -> str:
    """The drop-in of the target that every server boots into; it needs neither a link nor a running systemd."""
    return "# %s\n[Unit]\nWants=rdma-k8s-roce-qos.service\n" % MANAGED


def _word(text: str) -> str:
    """A word of the shell; what is not plain is quoted."""
    if text and set(text) <= _PLAIN:
        return text
    return "'%s'" % text.replace("'", "'\\''")
