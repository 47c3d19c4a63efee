# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which DRANET can do what. Private to rdma.k8s: it may change with any release.

Only what was looked at stands in the table (``docs/contributing/dranet-versions.md``); of any other version the user
says what it can do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from ..errors import RdmaError
from ..net import quoted


class Abilities(NamedTuple):
    """What one version of DRANET can do.

    The first five are abilities of the program, the last two of its chart.
    """

    ipvlan_child: bool = False
    """A claim can ask for an IPvlan child (F1, #241)."""
    webhook: bool = False
    """``--profile-provider``, ``--webhook-url`` and the hint ``webhook`` (F103, F105)."""
    options: bool = False
    """``--cloud-provider-options`` (F92, #357)."""
    profile: bool = False
    """The profile ``oke-rdma`` is built in (F1, #340)."""
    uplinks: bool = False
    """``--uplink-interfaces`` (F90, F103)."""
    webhook_values: bool = False
    """The chart has values for the webhook (F117)."""
    extra_volumes: bool = False
    """The chart takes further volumes (F118)."""


PROGRAM = Abilities._fields[:5]
TABLE: dict[str, Abilities] = {
    "v1.4.0": Abilities(webhook=True),
    "main": Abilities(ipvlan_child=True, webhook=True, webhook_values=True, extra_volumes=True),
}
"""By version; ``main``: the main line as it was after v1.4.0."""

NEEDED_TODAY = (
    "Children need a DRANET with the interface type IPVLAN: no release up to v1.4.0 has it, the main line after v1.4.0 "
    "has (#241), so build that and use the mode webhook; the mode native also needs the profile oke-rdma (#340), which "
    "is only proposed."
)
"""Which DRANET a user needs (decision of the design: say it in one sentence)."""

_RELEASE = re.compile(r"v?(\d{1,4}\.\d{1,4}\.\d{1,4})", re.ASCII)


def version_of(stated: str, image: str, app_version: str) -> str:
    """The version: as the user states it, else the tag of the image, else what the chart says; empty: not known.

    :param image: ``REPOSITORY:TAG``, with a digest or without.
    """
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    for text in (stated, tag, app_version):
        release = _RELEASE.fullmatch(text)
        if release:
            return "v" + release[1]
        if text in TABLE or (text and text == stated):
            return text
    return ""


def abilities(version: str, stated: Mapping[str, Any]) -> Abilities:
    """What a version can do: what the user states, and the table for the rest.

    :raises RdmaError: ``dranet_option`` when something is stated that is none, ``dranet_version_unknown`` when the
        table does not have the version and the user does not state all abilities of its program.
    """
    for name, value in stated.items():
        if name not in Abilities._fields or not isinstance(value, bool):
            raise RdmaError(
                "dranet_option",
                "The ability %s of DRANET is %s, expected one of %s with true or false."
                % (quoted(name), quoted(value), ", ".join(Abilities._fields)),
                hint="Correct the abilities.",
                ability=str(name),
            )
    known: Optional[Abilities] = TABLE.get(version)
    missing = [] if known else [name for name in PROGRAM if name not in stated]
    if missing:
        raise RdmaError(
            "dranet_version_unknown",
            "What DRANET %s can do is not known here, expected one of %s."
            % (version or "of an unknown version", " and ".join(TABLE)),
            hint="State the version, or its abilities %s as true or false." % ", ".join(missing),
            version=version,
            missing=missing,
        )
    return (known or Abilities())._replace(**stated)
