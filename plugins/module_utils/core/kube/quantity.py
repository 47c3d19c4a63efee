# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kubernetes quantities: ``1k``, ``8Gi``, ``1e3``. Private to rdma.k8s: it may change with any release.

The grammar is the written one (A58): an optional sign, digits with an optional fraction, and one suffix. It is stricter
than Python's own numbers, which take ``1_000`` and other digits than 0 to 9 (A60), and than the Python client, which
takes ``1K`` (A61).
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Optional

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+|)")

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

_LONGEST = 64
"""More characters than any amount of anything needs; what is longer is not taken for a quantity."""
_EXPONENTS = range(-99, 100)


def parse(value: Any) -> Optional[Decimal]:
    """The amount, exactly; ``None``: the value is not a quantity.

    :param value: a text, or a number of a manifest. A boolean is no number (F138).
    """
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _of_text(str(value))
    return None


@lru_cache(maxsize=4096)
def _of_text(text: str) -> Optional[Decimal]:
    found = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    number, suffix = found.groups()
    if suffix in _BINARY:
        return Context(prec=2 * _LONGEST).multiply(Decimal(number), Decimal(1 << _BINARY[suffix]))
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if exponent not in _EXPONENTS:
        return None
    return Decimal(number).scaleb(exponent, Context(prec=2 * _LONGEST))


def whole(value: Any) -> Optional[int]:
    """The amount when it is a whole number that is not negative, as device counts must be (A62)."""
    found = parse(value)
    return int(found) if found is not None and found >= 0 and found == found.to_integral_value() else None


def plain(amount: Decimal) -> str:
    """The amount as a decimal number without exponent and without zeros at its end: ``1000``, ``189.28``."""
    shown = format(amount, "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
