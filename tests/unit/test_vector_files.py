# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test vectors are copies whose bytes never change."""

from __future__ import annotations

import hashlib
from pathlib import Path

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


def test_the_vectors_have_the_recorded_checksums() -> None:
    recorded = dict(line.split("  ", 1)[::-1] for line in (VECTORS / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VECTORS.glob("*.json")}
    assert found == recorded
    assert "oke_child_range.json" in found
