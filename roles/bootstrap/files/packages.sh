# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
#
# Add packages of the distribution and remember which ones came, or remove exactly those. A line before this text sets
# $act to python, library or remove; nothing else from outside goes into it.
#
# Before the first package is added, two lists are on the disk: what is installed, and what the manager of packages says
# that it would add. Only what is on the second one and not on the first one is ours, so that neither a killed run nor
# another program that installs at the same time makes us remove what others brought.
set -u
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
state=/var/lib/rdma-k8s/bootstrap
exec 3>&1

# To the one who started this, also out of a place whose output goes to a file.
say() {
    printf 'refused: %s\n' "$1" >&3
    exit 1
}

manager=none
for each in apt-get dnf yum zypper; do
    if command -v "$each" >/dev/null 2>&1; then
        manager=$each
        break
    fi
done

# What is installed, into a file. A question that fails, or an empty answer, must never look like an empty system: all
# packages would seem to be new.
installed() {
    if [ "$manager" = apt-get ]; then
        # shellcheck disable=SC2016 # the form is dpkg's own
        dpkg-query -W -f '${Package} ${db:Status-Status}\n'
    else
        rpm -qa --qf '%{NAME} installed\n'
    fi >"$state/query" 2>"$state/log" || say "The installed packages cannot be listed: $(tail -n 1 "$state/log")"
    if ! { sed -n 's/ installed$//p' "$state/query" >"$state/names" && sort -u -o "$1" "$state/names"; }; then
        say 'The list of installed packages cannot be written; check the space on /var.'
    fi
    rm -f "$state/query" "$state/names"
    [ -s "$1" ] || say 'The list of installed packages is empty, which cannot be.'
}

settle() {
    if [ -f "$state/before" ]; then
        installed "$state/after"
        [ -f "$state/planned" ] || : >"$state/planned" || exit 1
        comm -13 "$state/before" "$state/after" >"$state/new" || exit 1
        comm -12 "$state/new" "$state/planned" >"$state/ours" || exit 1
        [ -f "$state/added" ] || : >"$state/added" || exit 1
        sort -u -o "$state/all" "$state/added" "$state/ours" || exit 1
        mv "$state/all" "$state/added" || exit 1
        rm -f "$state/before" "$state/planned" "$state/after" "$state/new" "$state/ours"
    fi
}

# The names that the manager would add with a package, into $state/plan, as it prints them when it is told to change
# nothing. dnf and yum end such a run with an error when there is something to do; no list says then that it cannot be.
simulate() {
    case $manager in
    apt-get)
        apt-get -s -y --no-install-recommends install "$1" >"$state/simulation" 2>"$state/log" || return 1
        sed -n 's/^Inst \([^ :]*\).*/\1/p' "$state/simulation" >"$state/plan"
        ;;
    dnf | yum)
        if [ "$manager" = dnf ]; then set -- --setopt=install_weak_deps=False install "$1"; else set -- install "$1"; fi
        "$manager" --assumeno "$@" >"$state/simulation" 2>"$state/log"
        status=$?
        sed -n '/^====/,/^Transaction Summary/s/^ \([^ ][^ ]*\).*/\1/p' "$state/simulation" >"$state/plan" || return 1
        [ "$status" -eq 0 ] || [ -s "$state/plan" ]
        ;;
    zypper)
        zypper --non-interactive install --dry-run --no-recommends "$1" >"$state/simulation" 2>"$state/log" || return 1
        sed -n '/ NEW package/,/^ *$/s/^  *//p' "$state/simulation" | tr -s ' ' '\n' >"$state/plan"
        ;;
    esac
}

# Write both lists. What cannot be simulated is not added.
prepare() {
    settle
    simulate "$1" || return 1
    installed "$state/listing"
    sort -u -o "$state/planned" "$state/plan" || exit 1
    rm -f "$state/plan" "$state/simulation"
    mv "$state/listing" "$state/before" || exit 1
}

add() {
    case $manager in
    apt-get) apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=60 install "$1" ;;
    dnf) dnf -y --setopt=install_weak_deps=False install "$1" ;;
    yum) yum -y install "$1" ;;
    zypper) zypper --non-interactive install --no-recommends "$1" ;;
    esac >"$state/log" 2>&1
}

try() {
    prepare "$1" && add "$1" && return
    [ "$manager" = apt-get ] || return 1
    apt-get -o DPkg::Lock::Timeout=60 update >"$state/log" 2>&1 && prepare "$1" && add "$1"
}

# One name after the other, until one can be added.
first() {
    [ "$manager" != none ] || say 'This system has none of apt-get, dnf, yum and zypper.'
    for each in /var/lib/rdma-k8s "$state"; do
        [ -d "$each" ] || mkdir -m 0700 "$each" || say "The directory $each cannot be made."
    done
    for each in "$@"; do
        if try "$each"; then
            settle
            rm -f "$state/log"
            echo "added $each"
            exit 0
        fi
    done
    reason=$(sed -n '/^E:\|rror\|^No match/p' "$state/log" | tail -n 1)
    settle
    say "None of these packages can be added: $*. $manager says: ${reason:-see $state/log}."
}

# shellcheck disable=SC2154 # the line before this text sets it
case $act in
python)
    if [ "$manager" = apt-get ]; then first python3; fi
    first python3.12 python3.11 python39 python3
    ;;
library)
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
    for each in added log listing plan simulation query names after new ours all planned; do rm -f "$state/$each"; done
    [ ! -d "$state" ] || rmdir "$state"
    ;;
*) say 'No act was given.' ;;
esac
