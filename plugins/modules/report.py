#!/usr/bin/python

# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Write the reports of a result document
version_added: 0.1.0
author: The rdma.k8s authors (@rdma-k8s)
description:
  - Reads the result document that P(rdma.k8s.validate#module) wrote and writes reports from it, all on the controller.
    JSON, JUnit XML, Markdown, one HTML page that works offline, and a file for the textfile collector of Prometheus.
  - With earlier result documents it also writes what changed since, in Markdown and JSON.
  - All files are prepared before the first one is put in place. A run that is killed leaves the old reports.
  - A file that would get the bytes it has is not touched.
extends_documentation_fragment:
  - rdma.k8s.attributes.controller
options:
  result:
    description: The result document, on the controller.
    type: path
    required: true
  dest:
    description: Directory for the reports, on the controller. It is made when it is not there.
    type: path
    required: true
  formats:
    description: What to write.
    type: list
    elements: str
    choices: [json, junit, markdown, html, textfile]
    default: [json, junit, markdown, html, textfile]
  previous:
    description:
      - Earlier result documents, on the controller. With at least one, C(changes.md) and C(changes.json) tell what is
        new, fixed and still there; with two, also what is flapping.
      - A file that is not there is an error; leave the option out on the first run.
    type: list
    elements: path
    default: []
  expected_interval:
    description: Seconds between two runs, for the textfile, so that an alert can tell that a result is stale.
    type: int
  docs:
    description: Where the remedy pages are, a web address or a path relative to the HTML page, for its links to them.
    type: str
    default: ''
attributes:
  idempotent:
    details: The reports hold no time but those of the result document.
seealso:
  - module: rdma.k8s.validate
"""

EXAMPLES = r"""
- name: Write all reports
  rdma.k8s.report:
    result: rdma-report/result.json
    dest: rdma-report
  run_once: true

- name: Write metrics for node_exporter, and what changed since yesterday
  rdma.k8s.report:
    result: rdma-report/result.json
    dest: /var/lib/node_exporter/textfile
    formats: [textfile]
    previous: [archive/yesterday.json]
    expected_interval: 86400
  run_once: true
"""

RETURN = r"""
files:
  description: The report files, with whether each one changed and its size in bytes.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file.
      type: str
      sample: rdma-report/report.html
    changed:
      description: Whether it was written, or would be in C(check_mode).
      type: bool
      sample: true
    size:
      description: Size in bytes.
      type: int
      sample: 48210
changes:
  description: Number of changes of each kind since the earlier documents.
  returned: when O(previous) is given
  type: dict
  sample: {new: 2, flapping: 0, still: 1, gone: 0, fixed: 4}
"""
