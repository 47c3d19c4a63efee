# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a wait says of itself while it lasts. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

from collections.abc import Sequence


def waiting(timeout: float, lacking: Sequence[str]) -> str:
    """``waiting at most 300 s: 3 of 8 pods are ready, and 2 more``.

    :param timeout: seconds.
    :param lacking: what is waited for, in sentences or parts of one, the most telling first.
    """
    words = "waiting at most %g s" % timeout
    if not lacking:
        return words
    more = ", and %d more" % (len(lacking) - 1) if len(lacking) > 1 else ""
    return "%s: %s%s" % (words, lacking[0].rstrip("."), more)
