# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The style sheet of the HTML report.

Private to rdma.k8s: it may change with any release.
"""

from __future__ import annotations

STYLE = r"""
:root {
  color-scheme: light dark;
  --page: #f6f7f9;
  --surface: #ffffff;
  --sunken: #eef0f3;
  --line: #dcdfe5;
  --line-strong: #b4bac5;
  --text: #171b22;
  --muted: #535b69;
  --accent: #1f5fbf;
  --accent-soft: #e8effb;
  --fail: #b3201a;
  --fail-soft: #fdeceb;
  --unknown: #6334b9;
  --unknown-soft: #f1ebfd;
  --warn: #85520a;
  --warn-soft: #fdf3dc;
  --waived: #0c6570;
  --waived-soft: #e2f5f6;
  --pass: #16703f;
  --pass-soft: #e7f5ec;
  --skip: #5a6270;
  --skip-soft: #eef0f3;
  --shadow: 0 1px 2px rgb(16 24 40 / 6%);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0e1116;
    --surface: #161b22;
    --sunken: #1f2630;
    --line: #2b333f;
    --line-strong: #566070;
    --text: #e8ebf0;
    --muted: #a4adbb;
    --accent: #86b4f9;
    --accent-soft: #1b2a43;
    --fail: #ff9c94;
    --fail-soft: #3d1b1a;
    --unknown: #c8b0ff;
    --unknown-soft: #2c2247;
    --warn: #f1c368;
    --warn-soft: #38290d;
    --waived: #77d3dd;
    --waived-soft: #10343a;
    --pass: #76d69d;
    --pass-soft: #12301f;
    --skip: #a4adbb;
    --skip-soft: #1f2630;
    --shadow: none;
  }
}
* {
  box-sizing: border-box;
}
html {
  scroll-padding-top: 7rem;
  -webkit-text-size-adjust: 100%;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--text);
  font:
    15px/1.5 system-ui,
    -apple-system,
    "Segoe UI",
    Roboto,
    "Noto Sans",
    "DejaVu Sans",
    sans-serif;
}
h1,
h2,
h3,
p,
ul,
ol,
dl,
dd,
figure {
  margin: 0;
  padding: 0;
}
ul,
ol {
  list-style: none;
}
h1 {
  font-size: 1.9rem;
  line-height: 1.2;
  letter-spacing: -0.02em;
  font-weight: 650;
  text-wrap: balance;
}
h2 {
  font-size: 1.15rem;
  letter-spacing: -0.01em;
  font-weight: 650;
}
h3 {
  font-size: 1rem;
  font-weight: 600;
}
button,
input,
select {
  font: inherit;
  color: inherit;
}
button {
  cursor: pointer;
}
code,
.mono {
  font-family: var(--mono);
  font-size: 0.87em;
  overflow-wrap: anywhere;
}
.muted {
  color: var(--muted);
}
[hidden] {
  display: none !important;
}
.hidden {
  position: absolute;
  width: 1px;
  height: 1px;
  overflow: hidden;
  clip-path: inset(50%);
  white-space: nowrap;
}
:focus-visible {
  outline: 2px solid var(--accent);
  outline-offset: 2px;
  border-radius: 4px;
}
.skip-link {
  position: absolute;
  left: -999px;
  top: 0;
  background: var(--surface);
  padding: 0.5rem 1rem;
  z-index: 9;
}
.skip-link:focus {
  left: 1rem;
}
svg.icon {
  width: 1em;
  height: 1em;
  flex: none;
  vertical-align: -0.14em;
}
.v-fail {
  color: var(--fail);
}
.v-unknown {
  color: var(--unknown);
}
.v-warn {
  color: var(--warn);
}
.v-waived {
  color: var(--waived);
}
.v-pass {
  color: var(--pass);
}
.v-skip {
  color: var(--skip);
}

/* Head of the page */
.wrap {
  max-width: 1180px;
  margin: 0 auto;
  padding: 0 1.25rem;
}
.top {
  padding-block: 1.9rem 1.4rem;
}
.brand {
  display: flex;
  flex-wrap: wrap;
  gap: 0.3rem 0.65rem;
  align-items: center;
  color: var(--muted);
  font-size: 0.87rem;
}
.brand b {
  color: var(--text);
  font-weight: 600;
}
.brand svg {
  width: 22px;
  height: 22px;
}
.top h1 {
  margin: 0.75rem 0 0.9rem;
  max-width: 46rem;
}
.bar {
  display: block;
  width: 100%;
  height: 10px;
  border-radius: 5px;
}
.legend {
  display: flex;
  flex-wrap: wrap;
  gap: 0.25rem 1.25rem;
  margin-top: 0.6rem;
  font-size: 0.9rem;
}
.legend li {
  display: flex;
  gap: 0.4rem;
  align-items: center;
}
.facts {
  display: flex;
  flex-wrap: wrap;
  gap: 0.35rem 2rem;
  margin-top: 1.1rem;
  font-size: 0.87rem;
}
.facts div {
  display: flex;
  gap: 0.5rem;
}
.facts dt {
  color: var(--muted);
}
.facts dd {
  font-family: var(--mono);
  font-size: 0.95em;
  overflow-wrap: anywhere;
}

/* Filters */
.tools {
  position: sticky;
  top: 0;
  z-index: 5;
  border-block: 1px solid var(--line);
  background: color-mix(in srgb, var(--page) 92%, transparent);
  backdrop-filter: blur(8px);
}
.tools .wrap {
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem 0.9rem;
  align-items: center;
  padding-block: 0.6rem;
}
.search {
  position: relative;
  flex: 1 1 15rem;
}
.search input {
  width: 100%;
  height: 2.25rem;
  padding: 0 2.2rem 0 0.75rem;
  border: 1px solid var(--line-strong);
  border-radius: 8px;
  background: var(--surface);
}
.search input::placeholder {
  color: var(--muted);
  opacity: 1;
}
.search kbd {
  position: absolute;
  right: 0.55rem;
  top: 0.5rem;
  padding: 0 0.4rem;
  border: 1px solid var(--line);
  border-radius: 4px;
  color: var(--muted);
  font: 12px/1.2rem var(--mono);
  pointer-events: none;
}
.chips {
  display: flex;
  flex-wrap: wrap;
  gap: 0.3rem;
}
.chip {
  display: inline-flex;
  gap: 0.4rem;
  align-items: center;
  height: 2.25rem;
  padding: 0 0.7rem;
  border-radius: 8px;
  border: 1px solid var(--line);
  background: var(--surface);
  font-size: 0.87rem;
  white-space: nowrap;
}
.chip:hover {
  border-color: var(--line-strong);
}
.chip[aria-pressed="true"] {
  border-color: var(--accent);
  background: var(--accent-soft);
  box-shadow: inset 0 0 0 1px var(--accent);
}
.chip small {
  color: var(--muted);
  font-size: 0.95em;
  font-variant-numeric: tabular-nums;
}
.chip:disabled {
  opacity: 0.55;
  cursor: default;
}
.found {
  display: flex;
  gap: 1rem;
  margin-left: auto;
  font-size: 0.85rem;
  color: var(--muted);
}
.link {
  border: 0;
  background: none;
  padding: 0;
  color: var(--accent);
  text-decoration: underline;
  text-underline-offset: 2px;
}

.link.small {
  margin-left: 0.5rem;
  font-size: 0.85rem;
  font-weight: 400;
}

/* Sections */
main > section {
  margin: 1.75rem 0 2.25rem;
}
.section-head {
  display: flex;
  flex-wrap: wrap;
  gap: 0.3rem 1rem;
  align-items: baseline;
  margin-bottom: 0.7rem;
}
.section-head p {
  color: var(--muted);
  font-size: 0.9rem;
}
.card {
  background: var(--surface);
  border: 1px solid var(--line);
  border-radius: 12px;
  box-shadow: var(--shadow);
}
.scroll,
.wide,
.map {
  position: relative; /* so that what is hidden from view cannot widen the page */
}
.scroll {
  overflow: auto;
  max-height: min(70vh, 46rem);
  border-radius: 12px;
}
.more {
  display: block;
  width: 100%;
  padding: 0.65rem;
  border: 0;
  border-top: 1px solid var(--line);
  background: none;
  color: var(--accent);
}
.empty {
  padding: 1.5rem;
  color: var(--muted);
  text-align: center;
}

/* Tables */
table {
  border-collapse: separate;
  border-spacing: 0;
  width: 100%;
  font-variant-numeric: tabular-nums;
}
th {
  text-align: left;
  font-weight: 600;
}
.matrix th,
.matrix td {
  padding: 0;
  border-bottom: 1px solid var(--line);
}
.matrix tbody tr:last-child > * {
  border-bottom: 0;
}
.matrix thead th {
  position: sticky;
  top: 0;
  z-index: 2;
  background: var(--surface);
  padding: 0.6rem 0.75rem;
  font-size: 0.8rem;
  color: var(--muted);
  border-bottom: 1px solid var(--line-strong);
  white-space: nowrap;
}
.matrix tbody th {
  position: sticky;
  left: 0;
  z-index: 1;
  background: var(--surface);
}
.matrix thead th:first-child {
  left: 0;
  z-index: 3;
}
.matrix td.shape {
  padding: 0 0.75rem;
  color: var(--muted);
  font-size: 0.87rem;
  white-space: nowrap;
}
.cell {
  display: flex;
  gap: 0.7rem;
  align-items: center;
  width: 100%;
  min-height: 2.4rem;
  padding: 0.3rem 0.75rem;
  border: 0;
  background: none;
  text-align: left;
  white-space: nowrap;
  border-radius: 0;
}
.cell:focus-visible {
  outline-offset: -2px;
  border-radius: 4px;
}
.cell span {
  display: inline-flex;
  gap: 0.35rem;
  align-items: center;
  font-weight: 600;
}
.cell span.v-pass,
.cell span.v-skip {
  font-weight: 400;
}
.cell.quiet span {
  opacity: 0.92;
}
.cell:hover {
  background: var(--sunken);
}
td.t-fail {
  background: var(--fail-soft);
}
td.t-unknown {
  background: var(--unknown-soft);
}
td.t-warn {
  background: var(--warn-soft);
}
td.t-waived {
  background: var(--waived-soft);
}
.name .mono {
  font-size: 0.92em;
  font-weight: 400;
  white-space: nowrap;
}
.name.attention .mono {
  font-weight: 700;
}
.plain {
  font-size: 0.9rem;
}
.plain th,
.plain td {
  padding: 0.4rem 0.7rem;
  border-bottom: 1px solid var(--line);
  vertical-align: top;
  overflow-wrap: break-word;
}
.plain .mono {
  overflow-wrap: break-word;
}
.plain .state {
  min-width: 13rem;
}
.parts td {
  min-width: 6rem;
  max-width: 22rem;
}
.plain thead th {
  color: var(--muted);
  font-size: 0.8rem;
  white-space: nowrap;
}
.plain tbody tr:last-child > * {
  border-bottom: 0;
}
.plain th[scope="row"] {
  font-weight: 500;
}
.plain .nowrap {
  white-space: nowrap;
}

/* What to act on */
.group {
  display: grid;
  grid-template-columns: 1.5rem 1fr;
  gap: 0.1rem 0.6rem;
  padding: 0.95rem 1.1rem;
  border-bottom: 1px solid var(--line);
}
.group:last-child {
  border-bottom: 0;
}
.group > svg {
  margin-top: 0.2rem;
  width: 1.15rem;
  height: 1.15rem;
}
.group h3 {
  display: flex;
  flex-wrap: wrap;
  gap: 0.1rem 0.6rem;
  align-items: baseline;
  margin-bottom: 0.15rem;
}
.group h3 code {
  color: var(--muted);
  font-weight: 400;
  font-size: 0.84em;
}
.group h3 button {
  font-size: 1rem;
  border: 0;
  background: none;
  padding: 0;
  font-weight: 600;
  text-align: left;
}
.group h3 button:hover {
  text-decoration: underline;
}
.tag {
  padding: 0.05rem 0.5rem;
  border-radius: 99px;
  background: var(--sunken);
  color: var(--muted);
  font-size: 0.8rem;
  font-weight: 500;
}
.group p {
  max-width: 62rem;
  overflow-wrap: anywhere;
}
.todo {
  margin-top: 0.35rem;
  padding-left: 0.75rem;
  border-left: 3px solid var(--line-strong);
}
.names {
  display: flex;
  flex-wrap: wrap;
  gap: 0.3rem;
  margin-top: 0.5rem;
}
.names button {
  border: 1px solid var(--line);
  border-radius: 6px;
  background: var(--surface);
  padding: 0.05rem 0.5rem;
  font: 0.84rem/1.6 var(--mono);
}
.names button:hover {
  border-color: var(--accent);
  color: var(--accent);
}

/* Address map */
.map {
  display: flex;
  overflow: auto;
  max-height: min(75vh, 52rem);
  border-radius: 12px;
}
.map-names {
  position: sticky;
  left: 0;
  z-index: 2;
  flex: none;
  background: var(--surface);
  border-right: 1px solid var(--line);
}
.map-names li {
  display: flex;
  align-items: center;
  height: 36px;
  padding: 0 0.8rem;
}
.map-names li:first-child {
  height: 52px;
  align-items: end;
  padding-bottom: 0.35rem;
  color: var(--muted);
  font-size: 0.8rem;
}
.map-names button {
  border: 0;
  background: none;
  padding: 0;
  font: 0.85rem var(--mono);
  white-space: nowrap;
}
.map-names button:hover {
  text-decoration: underline;
}
.map-body {
  flex: none;
  padding-right: 0.6rem;
}
.map svg {
  display: block;
}
.map text {
  font: 11px var(--mono);
  fill: var(--text);
}
.map .rail {
  font:
    600 12px system-ui,
    sans-serif;
}
.map .soft {
  fill: var(--muted);
}
.map rect {
  fill: var(--sunken);
  stroke: none;
}
.map circle {
  fill: var(--surface);
}
.map .s1 rect,
.map .s2 rect {
  fill: var(--fail-soft);
  stroke: var(--fail);
  stroke-width: 1.5;
}
.map .s1 rect {
  stroke-dasharray: 4 3;
}
.map .s3 rect {
  fill: var(--warn-soft);
  stroke: var(--warn);
  stroke-width: 1.5;
}
.map .s4 rect {
  fill: none;
  stroke: var(--line-strong);
}
.map .s5 rect {
  fill: var(--unknown-soft);
  stroke: var(--unknown);
  stroke-dasharray: 2 3;
}
.map .s1 .main,
.map .s2 .main {
  fill: var(--fail);
  font-weight: 700;
}
.map .s3 .main {
  fill: var(--warn);
  font-weight: 700;
}
.map .s5 .main {
  fill: var(--unknown);
}
.map g[data-node] {
  cursor: pointer;
}
.keys {
  display: flex;
  flex-wrap: wrap;
  gap: 0.3rem 1.4rem;
  margin: 0.7rem 0 0;
  font-size: 0.87rem;
  color: var(--muted);
}
.keys li {
  display: flex;
  gap: 0.5rem;
  align-items: center;
}
.cards > li + li {
  margin-top: 0.8rem;
}
.key {
  width: 26px;
  height: 16px;
  border-radius: 4px;
  background: var(--sunken);
  text-align: center;
  font: 700 11px/14px var(--mono);
}
.key.k1 {
  border: 1.5px dashed var(--fail);
  background: var(--fail-soft);
  color: var(--fail);
}
.key.k2 {
  border: 1.5px solid var(--fail);
  background: var(--fail-soft);
  color: var(--fail);
}
.key.k3 {
  border: 1.5px solid var(--warn);
  background: var(--warn-soft);
  color: var(--warn);
}
.key.k4 {
  border: 1.5px solid var(--line-strong);
  background: none;
}
.key.k5 {
  border: 1.5px dotted var(--unknown);
  background: var(--unknown-soft);
  color: var(--unknown);
}
select {
  height: 2.1rem;
  border: 1px solid var(--line-strong);
  border-radius: 8px;
  background: var(--surface);
  padding: 0 0.6rem;
  max-width: 100%;
}
details > summary {
  cursor: pointer;
  padding: 0.5rem 0;
  font-weight: 600;
}
.card > details > summary {
  padding: 0.75rem 1.1rem;
}

/* Drill-down */
dialog {
  width: min(800px, 100vw);
  max-width: none;
  height: 100dvh;
  max-height: none;
  margin: 0 0 0 auto;
  padding: 0;
  border: 0;
  border-left: 1px solid var(--line);
  background: var(--surface);
  color: var(--text);
  overflow: hidden;
}
dialog[open] {
  display: flex;
  flex-direction: column;
}
dialog::backdrop {
  background: rgb(10 14 20 / 45%);
}
.drawer-head {
  display: flex;
  gap: 1rem;
  align-items: start;
  padding: 1.2rem 1.4rem 0.9rem;
  border-bottom: 1px solid var(--line);
}
.drawer-head > div {
  flex: 1;
  min-width: 0;
}
.drawer-head h2 {
  font-size: 1.3rem;
  overflow-wrap: anywhere;
  outline: none;
}
.drawer-body {
  flex: 1;
  overflow: auto;
  padding: 1.1rem 1.4rem 3rem;
}
.drawer-body > * + * {
  margin-top: 1.1rem;
}
.close {
  flex: none;
  width: 2.25rem;
  height: 2.25rem;
  border: 1px solid var(--line);
  border-radius: 8px;
  background: none;
  font-size: 1.1rem;
}
.close:hover {
  border-color: var(--line-strong);
}
.finding {
  border: 1px solid var(--line);
  border-left: 4px solid currentColor;
  border-radius: 8px;
  padding: 0.8rem 1rem;
}
.finding .title svg {
  margin-right: 0.5rem;
}
.finding > * {
  color: var(--text);
}
.finding > .muted {
  color: var(--muted);
}
.finding > .v-waived {
  color: var(--waived);
}
.finding > * + * {
  margin-top: 0.45rem;
}
.finding .title {
  display: flex;
  flex-wrap: wrap;
  gap: 0.1rem 0.6rem;
  align-items: baseline;
}
.finding .title button {
  border: 0;
  background: none;
  padding: 0;
  font-weight: 600;
  text-align: left;
}
.finding .title button:hover {
  text-decoration: underline;
}
.compare {
  display: grid;
  grid-template-columns: max-content 1fr;
  gap: 0.15rem 1rem;
  font-size: 0.92rem;
}
.compare dt {
  color: var(--muted);
}
.compare dd {
  font: 0.92em/1.6 var(--mono);
  overflow-wrap: anywhere;
  white-space: pre-wrap;
}
.rows > li {
  display: grid;
  grid-template-columns: 1.2rem 1fr;
  gap: 0 0.5rem;
  padding: 0.45rem 0;
  border-bottom: 1px solid var(--line);
  font-size: 0.93rem;
}
.rows > li > svg {
  margin-top: 0.25rem;
}
.rows > li:last-child {
  border-bottom: 0;
}
.rows button {
  border: 0;
  background: none;
  padding: 0;
  text-align: left;
}
.rows button:hover {
  text-decoration: underline;
}
.callout {
  padding: 0.75rem 1rem;
  border-radius: 8px;
  background: var(--unknown-soft);
  color: var(--unknown);
}
.wide {
  overflow-x: auto;
}
footer {
  padding: 1rem 0 3rem;
  color: var(--muted);
  font-size: 0.87rem;
}
noscript table {
  background: var(--surface);
}

@media (max-width: 700px) {
  body {
    font-size: 16px;
  }
  h1 {
    font-size: 1.5rem;
  }
  .wrap {
    padding: 0 0.9rem;
  }
  .top {
    padding-block: 1.2rem 1rem;
  }
  .tools {
    position: static;
  }
  html {
    scroll-padding-top: 1rem;
  }
  .search {
    flex-basis: 100%;
  }
  .search kbd,
  .matrix .shape {
    display: none;
  }
  .scroll,
  .map {
    max-height: none;
  }
  .cell {
    padding: 0.3rem 0.6rem;
    gap: 0.5rem;
    min-height: 2.75rem;
  }
  .chip,
  .names button {
    display: inline-flex;
    align-items: center;
    min-height: 2.5rem;
  }
  .group {
    padding: 0.9rem 0.8rem;
  }
  .drawer-head,
  .drawer-body {
    padding-inline: 1rem;
  }
  .facts {
    flex-direction: column;
  }
}
@media (prefers-reduced-motion: no-preference) {
  dialog[open] {
    animation: in 0.16s ease-out;
  }
  @keyframes in {
    from {
      transform: translateX(24px);
      opacity: 0;
    }
  }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff;
    --surface: #fff;
    --sunken: #f1f2f4;
    --line: #ccd0d7;
    --line-strong: #888;
    --text: #000;
    --muted: #444;
    --fail: #a11410;
    --fail-soft: #fdeceb;
    --unknown: #5527a8;
    --unknown-soft: #f1ebfd;
    --warn: #74460a;
    --warn-soft: #fdf3dc;
    --waived: #0c5862;
    --waived-soft: #e2f5f6;
    --pass: #0f5c33;
    --skip: #444;
    --shadow: none;
  }
  @page {
    margin: 14mm;
  }
  body {
    font-size: 10pt;
  }
  * {
    print-color-adjust: exact;
    -webkit-print-color-adjust: exact;
  }
  .tools,
  .skip-link,
  .more,
  dialog,
  .no-print {
    display: none !important;
  }
  .wrap {
    max-width: none;
    padding: 0;
  }
  .scroll,
  .map {
    max-height: none;
    overflow: visible;
  }
  .matrix thead th,
  .matrix tbody th {
    position: static;
  }
  thead {
    display: table-header-group;
  }
  tr,
  .group {
    break-inside: avoid;
  }
  .cell {
    min-height: 0;
    padding: 0.12rem 0.5rem;
  }
  .wide {
    overflow: visible;
  }
  .plain {
    font-size: 8pt;
  }
  .plain th,
  .plain td {
    padding: 0.15rem 0.4rem;
  }
  .plain .state {
    min-width: 0;
  }
  .map {
    zoom: 0.62;
  }
  h2 {
    break-after: avoid;
  }
}
"""
