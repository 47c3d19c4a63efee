# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of failing plugin pods mean: explained, never decided (A53)."""

from __future__ import annotations

import time

import pytest

from ansible_collections.rdma.k8s.plugins.module_utils.core.ack import plugin_logs


@pytest.mark.parametrize(
    ("line", "code"),
    [
        # the public ancestors of the plugin write these (A53, A72)
        (
            'missing RDMA device spec for device 0000:04:00.0, RDMA device \\"rdma_cm\\" not found"',
            "log-device-files-missing",
        ),
        (
            'missing RDMA device spec for device 0000:04:00.0, RDMA device \\"issm\\" not found"',
            "log-issm-missing",
        ),
        ("Warning: no devices in device pool, creating empty resource server for hca", "log-no-devices"),
        ('2026/03/02 09:00:00 exposing "0" devices', "log-zero-devices"),
        ("incorrect system RDMA mode, expected shared", "log-netns-mode"),
        ("RDMA subsystem namespace awareness mode is set to exclusive", "log-netns-mode"),
        ("Could not register device plugin: rpc error", "log-registration"),
        ("registration with kubelet failed: connection refused", "log-registration"),
        ("No pci.ids DB files found", "log-pci-ids"),
    ],
)
def test_a_known_sentence_is_explained(line: str, code: str) -> None:
    (found,) = plugin_logs.explain(["starting", line, "bye"])
    assert found.code == code
    assert found.line == line.strip()[:200]
    assert found.times == 1
    assert found.meaning.endswith(".")
    assert found.hint.endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        'exposing "1000" devices',
        "100 devices found",
        "rdma/hca server registered with kubelet",
        "device 0000:0c:00.0 added",
        "mlx5_bond_0 is up",
        "RDMA subsystem namespace awareness mode is shared",
        "",
    ],
)
def test_a_usual_line_is_not_explained(line: str) -> None:
    assert plugin_logs.explain([line]) == []


def test_sentences_are_counted_and_come_once() -> None:
    lines = ['exposing "0" devices', "x", 'exposing "0" devices again', "no devices in device pool"]
    assert [(entry.code, entry.times, entry.line) for entry in plugin_logs.explain(lines)] == [
        ("log-no-devices", 1, "no devices in device pool"),
        ("log-zero-devices", 2, 'exposing "0" devices again'),
    ]


def test_only_the_end_of_a_long_log_is_read() -> None:
    lines = ["no devices in device pool"] + ["x"] * plugin_logs.MOST_LINES
    assert plugin_logs.explain(lines) == []


@pytest.mark.parametrize("word", ["rdma system ", "register ", "error ", "0 ", "missing rdma device spec "])
def test_a_line_made_to_hold_up_the_reader_does_not(word: str) -> None:
    started = time.process_time()
    plugin_logs.explain([word * 100000] * 20)
    assert time.process_time() - started < 10
