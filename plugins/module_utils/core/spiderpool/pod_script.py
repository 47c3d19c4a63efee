# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that run inside a pod: one that looks, one that runs a test. Private to rdma.k8s: it may change.

Both need a POSIX shell and are sent to its standard input, so that the request that starts it stays short: some proxies
in front of an API server refuse a line of more than 8 KiB. Nothing that comes from outside is put into them.
"""

from __future__ import annotations

from ..kube import pod_shell

SCHEMA = 1
"""Version of the line that :data:`LOOK` prints."""

SHELL = ("sh", "-s", "--")
"""The command that is run in the container; arguments of a program follow."""

LOOK = (
    r"""
set -u
R=${1-}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin:/opt/mellanox/iproute2/sbin
LC_ALL=C
v= out= first=1
char() {
  case $1 in
    *[!A-Za-z0-9_.:\;/,=+@\|\(\)\<\>\*%\ -]*) v='?' ;;
    *) v=$1 ;;
  esac
}
"""
    + pod_shell.FUNCTIONS
    + r"""row() {
  comma
  w=
  for x in "$@"; do char "$x"; w="$w,\"$v\""; done
  out="$out[${w#,}]"
}
rows() {
  out="$out,\"$1\":["; first=1
  set -f
  while read -r l; do
    l=${l%%\\*}
    set -- $l
    l="$*"
    [ -n "$l" ] || continue
    char "$l"; comma; out="$out\"$v\""
  done
  set +f
  out="$out]"
}
bdf() {
  v=
  p=$(cd -P "$1" 2>/dev/null && pwd -P) && v=${p##*/}
}

# the process: capabilities, locked memory, the namespace mode of RDMA
"""
    + pod_shell.PROCESS
    + r"""line "$R/sys/module/ib_core/parameters/netns_mode"; mode=$v
out="{\"schema\":1,\"caps\":\"$caps\",\"memlock\":[\"$soft\",\"$hard\"],\"mode\":\"$mode\""

# interfaces: name, type, flags, MTU, state, PCI address of the function and of its physical function
out="$out,\"links\":["; first=1
for place in "$R"/sys/class/net/*; do
  [ -r "$place/flags" ] || continue
  name=${place##*/}
  line "$place/type"; kind=$v
  line "$place/flags"; flags=$v
  line "$place/mtu"; mtu=$v
  line "$place/operstate"; state=$v
  bdf "$place/device"; pci=$v
  bdf "$place/device/physfn"; pf=$v
  row "$name" "$kind" "$flags" "$mtu" "$state" "$pci" "$pf"
done
out="$out]"

# addresses, rules, routes: by ip, else what /proc tells
ip=$(command -v ip 2>/dev/null)
char "$ip"; out="$out,\"ip\":\"$v\""
if [ -n "$ip" ]; then
  for part in addresses rules routes; do
    case $part in
      addresses) t=$("$ip" -o addr show </dev/null 2>/dev/null) ;;
      rules) t=$("$ip" rule show </dev/null 2>/dev/null) ;;
      routes) t=$("$ip" route show table all </dev/null 2>/dev/null) ;;
    esac
    if [ $? = 0 ]; then
      rows "$part" <<END
$t
END
    fi
  done
fi
[ -r /proc/net/route ] && rows main < /proc/net/route
[ -z "$ip" ] && [ -r /proc/net/fib_trie ] && rows fib < /proc/net/fib_trie

# RDMA devices, ports, GIDs that are set
out="$out,\"devices\":["; first=1
[ -d "$R/sys/class/infiniband" ] && there=1 || there=0
for place in "$R"/sys/class/infiniband/*; do
  [ -d "$place" ] || continue
  line "$place/node_guid"; guid=$v
  bdf "$place/device"; pci=$v
  row "${place##*/}" "$guid" "$pci"
done
out="$out],\"class\":$there,\"ports\":["; first=1
for port in "$R"/sys/class/infiniband/*/ports/*; do
  [ -r "$port/state" ] || continue
  device=${port%/ports/*}; device=${device##*/}
  line "$port/state"; state=$v
  line "$port/phys_state"; phys=$v
  line "$port/link_layer"; layer=$v
  line "$port/lid"; lid=$v
  line "$port/sm_lid"; sm=$v
  row "$device" "${port##*/}" "$state" "$phys" "$layer" "$lid" "$sm"
done
out="$out],\"gids\":["; first=1
for gid in "$R"/sys/class/infiniband/*/ports/*/gids/*; do
  line "$gid"; value=$v
  case $value in
    '' | 0000:0000:0000:0000:0000:0000:0000:0000 | fe80:0000:0000:0000:0000:0000:0000:0000) continue ;;
  esac
  port=${gid%/gids/*}; at=${gid##*/}
  device=${port%/ports/*}; device=${device##*/}
  line "$port/gid_attrs/types/$at"; kind=$v
  line "$port/gid_attrs/ndevs/$at"; netdev=$v
  row "$device" "${port##*/}" "$at" "$kind" "$netdev" "$value"
done
out="$out]"

# device files: what the kernel has, what the container has
out="$out,\"verbs\":["; first=1
for place in "$R"/sys/class/infiniband_verbs/uverbs*; do
  [ -r "$place/ibdev" ] || continue
  line "$place/ibdev"; device=$v
  line "$place/dev"; number=$v
  line "$place/abi_version"; abi=$v
  row "${place##*/}" "$device" "$number" "$abi"
done
out="$out]"
if command -v ls >/dev/null 2>&1; then
  out="$out,\"files\":["; first=1
  for file in "$R"/dev/infiniband/*; do
    [ -e "$file" ] || continue
    set -- $(ls -lnL "$file" 2>/dev/null </dev/null)
    case ${1-} in
      c*) row "${file##*/}" "${5%,}:${6-}" ;;
      *) row "${file##*/}" "" ;;
    esac
  done
  out="$out]"
fi

# what the library of the image finds, and the programs that it has
if command -v ibv_devices >/dev/null 2>&1; then
  rows library <<END
$(ibv_devices </dev/null 2>/dev/null)
END
fi
if command -v ibv_devinfo >/dev/null 2>&1; then
  rows info <<END
$(ibv_devinfo </dev/null 2>/dev/null)
END
fi
out="$out,\"tools\":["; first=1
for tool in ib_read_lat ib_write_bw ibv_rc_pingpong rping sleep; do
  command -v "$tool" >/dev/null 2>&1 && { comma; out="$out\"$tool\""; }
done
printf '%s]}\n' "$out"
exit 0
"""
).lstrip("\n")
"""POSIX sh. It prints one line of JSON; with an argument it looks below that directory for ``/sys`` and ``/dev``."""

RUN = r"""
main() {
  set -u
  PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
  limit=$1 tries=$2
  shift 2
  guard= watch= busy= code=127
  trap 'end 143' HUP INT TERM
  exec 3<&0
  ( trap 'kill "$nap" 2>/dev/null; exit 0' TERM
    sleep "$limit" & nap=$!
    wait "$nap" && kill -TERM $$ ) </dev/null >/dev/null 2>&1 3<&- &
  guard=$!
  ( while read -r nothing; do :; done; kill -TERM $$ ) <&3 >/dev/null 2>&1 3<&- &
  watch=$!
  exec 3<&-
  while [ "$tries" -gt 0 ]; do
    busy=1
    "$@" </dev/null &
    wait "$!"
    code=$?
    busy=
    [ "$code" = 0 ] && break
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] && sleep 1
  done
  end "$code"
}
end() {
  trap '' HUP INT TERM
  tool=$!
  kill $guard $watch 2>/dev/null
  if [ -n "$busy" ]; then
    kill "$tool" 2>/dev/null
    # a signal before the program has begun is lost
    ( sleep 1; kill -KILL "$tool" ) </dev/null >/dev/null 2>&1 &
  fi
  exit "$1"
}
main "$@"; exit
""".lstrip("\n")
"""POSIX sh. Arguments: seconds, attempts, the program and its arguments.

The program ends in time, and when nobody is there any more: its own input stays open as long as somebody waits.
"""
