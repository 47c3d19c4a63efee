# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""``python -m rdma_k8s.cli``. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
