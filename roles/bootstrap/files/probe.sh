# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=sh
#
# Say, one per line: the manager of packages, what bootstrap added, and each Python with the libraries that it has, new
# enough.
# Nothing is changed, and nothing from outside goes into it.
set -u
for each in apt-get dnf yum zypper; do
    if command -v "$each" >/dev/null 2>&1; then
        printf 'manager %s\n' "$each"
        break
    fi
done
if [ -s /var/lib/rdma-k8s/bootstrap/added ] || [ -s /var/lib/rdma-k8s/bootstrap/before ]; then
    printf 'added %s\n' "$(tr '\n' ' ' </var/lib/rdma-k8s/bootstrap/added 2>/dev/null)"
fi
seen=' '
for each in /opt/rdma-k8s/python/bin/python3 /usr/bin/python3 /usr/bin/python3.[0-9] /usr/bin/python3.[0-9][0-9] \
    /usr/local/bin/python3 /usr/local/bin/python3.[0-9] /usr/local/bin/python3.[0-9][0-9] /usr/libexec/platform-python; do
    [ -x "$each" ] || continue
    real=$(readlink -f "$each")
    case $each in /opt/*) real=$each ;; esac
    case $seen in *" $real "*) continue ;; esac
    seen="$seen$real "
    "$each" -I -c '
import sys
libraries = []
if sys.version_info >= (3, 9):
    import importlib.metadata
    for name, oldest in (("pyroute2", (0, 7, 2)), ("netaddr", (0, 10, 0))):
        try:
            found = importlib.metadata.version(name).split(".")
        except importlib.metadata.PackageNotFoundError:
            continue
        if tuple(int(part) if part.isdigit() else 0 for part in found[:3]) >= oldest:
            libraries.append(name)
print("python", sys.argv[1], "%d.%d" % sys.version_info[:2], *libraries)
' "$each" 2>/dev/null </dev/null
done
exit 0
