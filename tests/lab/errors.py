# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of the lab program."""

from __future__ import annotations


class LabError(Exception):
    """Something the user can act on: one sentence that names the object, what was found, and the way out.

    ``code`` is a stable word for tests and scripts; the text is for people.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code
