# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM lab: virtual nodes with a real Debian kernel, real RDMA devices and an OCI-like surrounding.

Run it as ``python3 tests/lab COMMAND``. It needs Python 3.11 or newer and only the standard library.
"""
