# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# First process of a lab node: drivers for disk and network, the address of the management NIC, then the real root.
# shellcheck shell=sh
B=/bin/busybox
"$B" mount -t devtmpfs dev /dev
"$B" mount -t proc proc /proc
for module in /modules/*; do "$B" insmod "$module" 2>/dev/null; done

value() {
    for word in $("$B" cat /proc/cmdline); do
        case $word in "$1"=*) echo "${word#*=}" ;; esac
    done
}

"$B" ip link set lo up
"$B" ip link set eth0 up
"$B" ip address add "$(value lab.address)" dev eth0
"$B" ip route add default via "$(value lab.gateway)" dev eth0

tries=0
while [ ! -b /dev/vda ] && [ $tries -lt 500 ]; do
    "$B" usleep 10000
    tries=$((tries + 1))
done
if ! "$B" mount -t ext4 -o rw,noatime /dev/vda /root; then
    echo "lab: the root file system of this node cannot be mounted"
    "$B" poweroff -f
fi
"$B" umount /proc
"$B" mount --move /dev /root/dev
exec "$B" switch_root /root /sbin/init
