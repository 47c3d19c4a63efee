# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
#
# Add packages of the distribution and remember which ones came, or remove exactly those. A line before this text sets
# $act to python, library or remove; nothing else from outside goes into it.
#
# The list of what is installed is on the disk before the first package is added, so that a run that is killed in the
# middle is known by the next one.
set -u
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
state=/var/lib/rdma-k8s/bootstrap

say() {
    printf 'refused: %s\n' "$1"
    exit 1
}

manager=none
for each in apt-get dnf yum zypper; do
    if command -v "$each" >/dev/null 2>&1; then
        manager=$each
        break
    fi
done

installed() {
    if [ "$manager" = apt-get ]; then
        # shellcheck disable=SC2016 # the form is dpkg's own
        dpkg-query -W -f '${Package} ${db:Status-Status}\n' | sed -n 's/ installed$//p'
    else
        rpm -qa --qf '%{NAME}\n'
    fi | sort -u
}

settle() {
    if [ -f "$state/before" ]; then
        installed >"$state/after" || say 'The list of installed packages cannot be written; check the space on /var.'
        comm -13 "$state/before" "$state/after" >"$state/new" || exit 1
        cat "$state/added" "$state/new" 2>/dev/null | sort -u >"$state/all"
        mv "$state/all" "$state/added" || exit 1
        rm -f "$state/before" "$state/after" "$state/new"
    fi
}

remember() {
    for each in /var/lib/rdma-k8s "$state"; do
        [ -d "$each" ] || mkdir -m 0700 "$each" || say "The directory $each cannot be made."
    done
    settle
    installed >"$state/listing" || say 'The list of installed packages cannot be written; check the space on /var.'
    mv "$state/listing" "$state/before" || exit 1
}

add() {
    case $manager in
    apt-get)
        apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=60 install "$@" && return
        apt-get -o DPkg::Lock::Timeout=60 update && apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=60 install "$@"
        ;;
    dnf) dnf -y --setopt=install_weak_deps=False install "$@" ;;
    yum) yum -y install "$@" ;;
    zypper) zypper --non-interactive install --no-recommends "$@" ;;
    *) say 'This system has none of apt-get, dnf, yum and zypper.' ;;
    esac
}

# One name after the other, until one can be added.
first() {
    for each in "$@"; do
        if add "$each" >"$state/log" 2>&1; then
            settle
            rm -f "$state/log"
            echo "added $each"
            exit 0
        fi
    done
    reason=$(sed -n '/^E:\|rror/p' "$state/log" | tail -n 1)
    settle
    say "None of these packages can be added: $*. $manager says: ${reason:-see $state/log}."
}

# shellcheck disable=SC2154 # the line before this text sets it
case $act in
python)
    remember
    if [ "$manager" = apt-get ]; then first python3; fi
    first python3.12 python3.11 python39 python3
    ;;
library)
    remember
    first python3-pyroute2
    ;;
remove)
    settle
    if [ -s "$state/added" ]; then
        names=$(tr '\n' ' ' <"$state/added")
        # shellcheck disable=SC2086 # one word for each package
        case $manager in
        apt-get) dpkg --purge $names >"$state/log" 2>&1 ;;
        *) rpm -e $names >"$state/log" 2>&1 ;;
        esac || say "The packages that bootstrap added cannot be removed (${names% }): $(tail -n 1 "$state/log")"
        echo "removed ${names% }"
    fi
    rm -f "$state/added" "$state/log" "$state/listing"
    [ ! -d "$state" ] || rmdir "$state"
    ;;
*) say 'No act was given.' ;;
esac
