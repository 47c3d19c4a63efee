# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shells of this machine that a container image may have as its ``sh``."""

from __future__ import annotations

import shutil

SHELLS = [
    words for words in (("sh",), ("dash",), ("bash", "--posix"), ("busybox", "sh")) if shutil.which(words[0])
]
