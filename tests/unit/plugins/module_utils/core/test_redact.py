# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaves a site: identifiers shortened wherever they stand, secrets gone, all else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ansible_collections.rdma.k8s.plugins.module_utils.core.redact import (
    KEPT,
    REPLACED,
    redacted,
    shortened,
)
from ansible_collections.rdma.k8s.tests.support import fleet

UNIQUE = "anyhqljtniwq6syc3nex55sep5w34qbwmw6TAIL"
SHORT = UNIQUE[-KEPT:]
INSTANCE = "ocid1.instance.oc1.phx." + UNIQUE
TENANCY = "ocid1.tenancy.oc1.." + UNIQUE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (INSTANCE, "ocid1.instance.." + SHORT),
        (TENANCY, "ocid1.tenancy.." + SHORT),
        ("ocid1.vcn.oc1.iad." + UNIQUE, "ocid1.vcn.." + SHORT),
        ("ocid1.vcn.oc1.iad.short", "ocid1.vcn..short"),
        (
            "<%s> and (%s)" % (INSTANCE, TENANCY),
            "<ocid1.instance..%s> and (ocid1.tenancy..%s)" % (SHORT, SHORT),
        ),
        ("No answer from %s. Next." % INSTANCE, "No answer from ocid1.instance..%s. Next." % SHORT),
        ("%s..." % INSTANCE, "ocid1.instance..%s..." % SHORT),
        ("/x/%s/y" % INSTANCE, "/x/ocid1.instance..%s/y" % SHORT),
        ("ocid1.instance.", "ocid1.instance."),
        ("10.224.13.19 0000:0c:00.0 fe80::1", "10.224.13.19 0000:0c:00.0 fe80::1"),
    ],
)
def test_an_identifier_keeps_its_kind_and_its_end(text: str, expected: str) -> None:
    assert shortened(text) == expected
    assert shortened(expected) == expected


SECRETS = ["password", "passphrase", "Secret", "client_secret", "token", "auth-token"]
SECRETS += ["private_key", "privateKey", "credential", "apiKey", "api-key"]


@pytest.mark.parametrize("name", SECRETS)
def test_the_value_of_a_secret_key_is_replaced(name: str) -> None:
    assert redacted({name: "hunter2"}) == {name: REPLACED}
    assert redacted([{"a": {name: ["hunter2", {"b": "hunter2"}, 7]}}]) == [
        {"a": {name: [REPLACED, {"b": REPLACED}, REPLACED]}}
    ]
    for secret in ("hunter2", 'a "quoted" \\ one', 17, 1.5e3, ["one", "two"]):
        text = json.dumps({"before": "x", name: secret, "behind": "y"})
        assert shortened(text) == json.dumps({"before": "x", name: REPLACED, "behind": "y"})


def test_what_says_that_there_is_a_secret_stays() -> None:
    document = {"has_token": True, "password": "", "secret": None, "passed": "x", "pass": 3, "keys": ["a"]}
    assert redacted(document) == document


def test_addresses_stay() -> None:
    snapshot = fleet.node("BM.GPU.GB200-v2.4").to_dict()
    found = redacted(snapshot)
    for part in ("links", "devices", "pci", "routes", "rules", "oca"):
        assert found[part] == snapshot[part]


def leaves() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.text(max_size=10),
        st.sampled_from([INSTANCE, TENANCY, "at %s." % INSTANCE, '{"token": "hunter2"}']),
    )


def documents() -> st.SearchStrategy[Any]:
    keys = st.one_of(st.text(max_size=5), st.sampled_from(["token", "x", "private_key"]))
    return st.recursive(
        leaves(),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
        max_leaves=12,
    )


@given(documents())
def test_nothing_secret_is_left_and_a_second_time_changes_nothing(document: Any) -> None:
    found = redacted(document)
    text = json.dumps(found)
    assert UNIQUE not in text
    assert "hunter2" not in text
    assert redacted(found) == found


@given(documents())
def test_the_structure_stays(document: Any) -> None:
    def outline(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: outline(entry) for key, entry in value.items()}
        return [outline(entry) for entry in value] if isinstance(value, list) else ()

    assert outline(redacted(document)) == outline(document)


@given(st.text())
def test_any_text_gives_a_text(text: str) -> None:
    found = shortened(text)
    assert isinstance(found, str)
    assert shortened(found) == found


@pytest.mark.parametrize(
    "piece", ["ocid1.", "ocid1.a.", '"token":', '"', '"token": "', "[", '"token": [[', "\\"]
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert len(shortened(text)) <= 2 * len(text)
