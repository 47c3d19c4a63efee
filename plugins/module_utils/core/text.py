# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small readings of text, as strict as the driver's. Private to rdma.k8s: it may change with any release."""

from __future__ import annotations

import re
from typing import Optional

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")


def trim(text: str) -> str:
    """The text without white space around it: the Unicode property, unlike ``str.strip``, which also takes some
    control characters."""
    return text.strip(_SPACE)


def int32(text: str) -> Optional[int]:
    """A decimal integer of signed 32 bits: an optional sign and ASCII digits, leading zeros allowed (F78).

    ``None`` when the text is none; ``int()`` takes more.
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    value = int(found[1] + found[2])
    return value if -(2**31) <= value < 2**31 else None


def shown(text: str) -> str:
    """The text for a message or a result: what stands for bytes that are no UTF-8 is replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
