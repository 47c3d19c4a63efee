# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of antsibull-nox.toml, for those who know nox. `make test` is the complete run."""

from __future__ import annotations

import sys

import nox

try:
    import antsibull_nox
except ImportError:
    sys.exit("Install antsibull-nox in the environment of nox.")

antsibull_nox.load_antsibull_nox_toml()

if __name__ == "__main__":
    nox.main()
