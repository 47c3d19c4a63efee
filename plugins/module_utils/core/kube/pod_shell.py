# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pieces of the programs that run in pods, for any POSIX shell. Private to rdma.k8s: it may change with any release.

A program defines ``char``, which puts what a string of JSON may hold of its argument into ``v``, and builds its line in
``out``.
"""

from __future__ import annotations

FUNCTIONS = r"""line() {
  v=
  [ -r "$1" ] && { read -r v < "$1"; } 2>/dev/null
  char "$v"
}
comma() {
  if [ "$first" = 1 ]; then first=0; else out="$out,"; fi
}
"""
"""``line FILE`` reads the first line of a file into ``v``; ``comma`` begins the next element."""

PROCESS = r"""caps= soft= hard=
while read -r key value rest; do
  [ "$key" = CapEff: ] && caps=$value
done < /proc/self/status
while read -r a b c value more rest; do
  [ "$a $b $c" = "Max locked memory" ] && { soft=$value; hard=$more; }
done < /proc/self/limits
"""
"""Capabilities and limits of locked memory, of the shell itself, into ``caps``, ``soft`` and ``hard``."""
