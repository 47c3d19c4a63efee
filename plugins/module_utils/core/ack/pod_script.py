# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program of the test pod: what a container sees of RDMA, as one line of JSON. Private to rdma.k8s.

It needs a POSIX shell and nothing else, so that any image can run it: the one of the user's own jobs tells most. It
starts no program and changes nothing. Of the device files only ``uverbs*`` and ``rdma_cm`` are opened: opening
``issm*`` would change the port (A79).

The line is the container's termination message as well, which is read with the pod: no connection to the kubelet is
needed for it.
"""

from __future__ import annotations

from ..kube import pod_shell

SCHEMA = 1
"""Version of the line."""

SCRIPT = (
    r"""
set -u
v= out= first=1
char() {
  case $1 in
    *[!A-Za-z0-9_.:/,=+@\ -]*) v='?' ;;
    *) v=$1 ;;
  esac
}
"""
    + pod_shell.FUNCTIONS
    + r"""
# what the kernel says of this process
"""
    + pod_shell.PROCESS
    + r"""shm_type= shm_options= shm_mounted=0
while read -r source place kind options rest; do
  [ "$place" = /dev/shm ] && { shm_mounted=1; shm_type=$kind; shm_options=$options; }
done < /proc/mounts
char "$shm_options"; shm_options=$v
char "$shm_type"; shm_type=$v
out="{\"schema\":1,\"caps\":\"$caps\",\"memlock\":[\"$soft\",\"$hard\"]"
out="$out,\"shm\":{\"mounted\":$shm_mounted,\"type\":\"$shm_type\",\"options\":\"$shm_options\"}"

# device files: open, denied, there (not tried), or no device at all
out="$out,\"files\":{"; first=1
for file in /dev/infiniband/*; do
  [ -e "$file" ] || continue
  state=there
  if [ ! -c "$file" ]; then
    state=none
  else
    case ${file##*/} in
      uverbs* | rdma_cm)
        if ( : <> "$file" ) 2>/dev/null; then state=open; else state=denied; fi ;;
    esac
  fi
  char "${file##*/}"
  comma; out="$out\"$v\":\"$state\""
done
out="$out}"

# which device a uverbs file belongs to
out="$out,\"verbs\":{"; first=1
for place in /sys/class/infiniband_verbs/uverbs*; do
  [ -e "$place/ibdev" ] || continue
  line "$place/ibdev"; device=$v
  char "${place##*/}"
  comma; out="$out\"$v\":\"$device\""
done
out="$out}"

# ports: device, port, state, link layer, and GIDs of RoCE v2: IPv4, IPv6, and those of interfaces of this pod
out="$out,\"ports\":["; first=1
for port in /sys/class/infiniband/*/ports/*; do
  [ -e "$port/state" ] || continue
  device=${port%/ports/*}; device=${device##*/}
  line "$port/state"; state=$v
  line "$port/link_layer"; layer=$v
  four=0 six=0 own_four=0 own_six=0
  for gid in "$port"/gids/*; do
    line "$gid"; value=$v
    case $value in
      '' | fe80:* | 0000:0000:0000:0000:0000:0000:0000:0000) continue ;;
    esac
    at=${gid##*/}
    line "$port/gid_attrs/types/$at"
    [ "$v" = "RoCE v2" ] || continue
    line "$port/gid_attrs/ndevs/$at"
    own=0
    [ -n "$v" ] && [ -e "/sys/class/net/$v" ] && own=1
    case $value in
      0000:0000:0000:0000:0000:ffff:*) four=$((four + 1)); own_four=$((own_four + own)) ;;
      *) six=$((six + 1)); own_six=$((own_six + own)) ;;
    esac
  done
  char "$device"
  comma; out="$out[\"$v\",\"${port##*/}\",\"$state\",\"$layer\",$four,$six,$own_four,$own_six]"
done
out="$out]"

# IPv6 of the network of this pod: the switch of each interface, addresses that are not link-local
out="$out,\"no_ipv6\":{"; first=1
for place in /proc/sys/net/ipv6/conf/*; do
  [ -r "$place/disable_ipv6" ] || continue
  case ${place##*/} in default | lo) continue ;; esac
  line "$place/disable_ipv6"; value=$v
  char "${place##*/}"
  comma; out="$out\"$v\":\"$value\""
done
out="$out},\"ipv6\":["; first=1
if [ -r /proc/net/if_inet6 ]; then
  while read -r address index prefix scope flags name; do
    case $scope in 00 | 40) [ "$name" = lo ] || { char "$name"; comma; out="$out\"$v\""; } ;; esac
  done < /proc/net/if_inet6
fi
line /sys/module/ib_core/parameters/netns_mode
out="$out],\"netns_mode\":\"$v\"}"
printf '%s\n' "$out"
[ -w /dev/termination-log ] && printf '%s\n' "$out" > /dev/termination-log
exit 0
"""
).lstrip("\n")
"""POSIX sh, of which only builtins are used."""
