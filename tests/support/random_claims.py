# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Claims at random: parameters that are mostly of the right form, with values at the borders of the rules."""

from __future__ import annotations

import random
from typing import Any

from ansible_collections.rdma.k8s.plugins.module_utils.core.oke.claim_rules import PARAMETERS

TEXTS = (
    "", "IPVLAN", "Passthrough", "SLAAC", "DHCP", "Static", "Unnumbered", "L2", "Bridge", "oke-rdma", "x", "a b", "..",
    "a\n", "é", "net1", "10.0.0.0/8", "10.0.0.1", "10.0.0.1\n", "10.0.0.01/8", "10.0.0.0/+8", "1.2.3.4/08",
    "1.2.3.4/33", "0.0.0.0/0", "fd00::1", "fd00::/8", "fd00::1/64 ", "fd00::0:1.2.3.4", "1::2::3", "::/0", "::1/128",
    "::ffff:1.2.3.4", "fe80::1%eth0", "b8:3f:d2:00:00:01", "00:00:5e:00:53:01-02", "0000.5e00.5301",
)  # fmt: skip
NUMBERS = (
    -(2**31) - 1,
    -1,
    0,
    1,
    2,
    3,
    4,
    8,
    67,
    68,
    253,
    254,
    255,
    256,
    1279,
    1280,
    32767,
    32768,
    2**31,
    2**63 - 1,
)
SELECTORS = (
    'device.attributes["dra.net"].ifName == "rdma0"',
    'device.attributes["dra.net"]["ifName"] == "rdma7"',
    'device.attributes[?"dra.net"].?ifName.orValue("") == "rdma1"',
    "device.attributes['dra.net'].ifName in ['rdma1']",
    'device.attributes["dra.net"].rdmaDevice == "mlx5_0"',
    '!has(device.attributes["dra.net"].rdmaDevice)',
    'device.attributes["dra.net"].rdma',
    'device.attributes["rdma.k8s"].ready',
    'device.attributes["oke.dra.net"].shape == "x"',
)


def claim(dice: random.Random) -> dict[str, Any]:
    """A claim with one request and one configuration."""
    chosen = dice.sample(SELECTORS, dice.randint(0, 2))
    exactly: dict[str, Any] = {"deviceClassName": "some-nic"}
    if chosen:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in chosen]
    config = {"opaque": {"driver": "dra.net", "parameters": _object(PARAMETERS, dice)}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "random", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "nic", "exactly": exactly}], "config": [config]}},
    }


def _value(schema: Any, dice: random.Random) -> Any:
    """A value of the form of the schema, or one time in eight of some other form."""
    if dice.random() < 0.125:
        odd = [None, True, False, 1.5, dice.choice(NUMBERS), dice.choice(TEXTS), [], {}, ["x"], {"a": 1}]
        return dice.choice(odd)
    if isinstance(schema, list):
        return [_value(schema[0], dice) for _unused in range(dice.randint(0, 2))]
    if isinstance(schema, tuple):
        return dice.choice(NUMBERS)
    if isinstance(schema, str):
        return dice.choice(TEXTS) if schema == "text" else dice.random() < 0.5
    return _object(schema, dice)


def _object(schema: Any, dice: random.Random) -> dict[str, Any]:
    if "*" in schema:
        return {key: _value(schema["*"], dice) for key in ("rx-checksum", "b") if dice.random() < 0.5}
    found = {key: _value(below, dice) for key, below in schema.items() if dice.random() < 0.35}
    if dice.random() < 0.05:
        found[dice.choice(("Profile", "x y", "in"))] = 1
    return found
