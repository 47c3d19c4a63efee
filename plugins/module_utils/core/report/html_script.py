# Copyright: (c) 2026, The rdma.k8s authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The script of the HTML report.

Private to rdma.k8s: it may change with any release. ``html.py`` describes the data that it reads. It builds the page
with DOM calls alone (no markup from text), so that no name or message from a node can become code.
"""

from __future__ import annotations

SCRIPT = r"""
"use strict";
(() => {
  // One letter per verdict, most urgent first, as in the data.
  const LETTERS = "fuwaps";
  const WORDS = ["fail", "unknown", "warn", "waived", "pass", "skip"];
  const [FAIL, UNKNOWN, WARN, WAIVED, PASS, SKIP] = [0, 1, 2, 3, 4, 5];
  const RAIL_WORDS = [
    "as derived",
    "no address",
    "other address",
    "address used twice",
    "not derived",
    "not told",
  ];
  const ROWS = 24,
    GROUPS = 25,
    MAP_ROWS = 40,
    NAMES = 14;

  const block = (id) => JSON.parse(document.getElementById(id).textContent);
  const $ = (id) => document.getElementById(id);
  const head = block("data-head");
  const areas = head.areas;
  const checks = head.checks.map(([id, title, severity, area, hint, doc]) => ({
    id,
    title,
    severity,
    area,
    hint,
    doc,
  }));
  const nodes = head.nodes.map(
    ([name, letter, reachable, reason, shape, network, fabric, collected, snapshot]) => ({
      name,
      verdict: LETTERS.indexOf(letter),
      reachable,
      reason,
      shape,
      network,
      fabric,
      collected,
      snapshot,
    }),
  );
  const places = head.places; // per node: one letter per check, "." where there is no result
  const nodeOf = new Map(nodes.map((node, index) => [node.name, index]));
  const checkOf = new Map(checks.map((check, index) => [check.id, index]));
  const code = new Int8Array(128).fill(-1);
  for (let v = 0; v < 6; v++) code[LETTERS.charCodeAt(v)] = v;

  // Messages and addresses are large: read when they are needed, or when the page is idle.
  const lazy = (read) => {
    let value;
    return () => (value === undefined ? (value = read()) : value);
  };
  const findings = lazy(() => {
    const data = block("data-findings");
    const cut = (record) =>
      [record[2], record[3], record[4]]
        .map((index) => data.strings[index])
        .join("\n")
        .toLowerCase();
    data.haystack = data.records.map(cut);
    return data;
  });
  const rails = lazy(() => block("data-rails"));

  // --- small helpers ---------------------------------------------------------------------------------------

  const SVG = "http://www.w3.org/2000/svg";
  const set = (element, props, children) => {
    for (const [key, value] of Object.entries(props || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  };
  const h = (tag, props, ...children) => set(document.createElement(tag), props, children);
  const s = (tag, props, ...children) => set(document.createElementNS(SVG, tag), props, children);
  const icon = (verdict) =>
    s(
      "svg",
      { class: "icon v-" + WORDS[verdict], "aria-hidden": "true" },
      s("use", { href: "#icon-" + WORDS[verdict] }),
    );
  const figures = new Intl.NumberFormat("en");
  const figure = (number) => figures.format(number);
  const many = (number, noun, plural) => figure(number) + " " + (number === 1 ? noun : plural || noun + "s");
  const rank = (severity) => {
    const at = head.severities.indexOf(severity);
    return at < 0 ? 9 : at;
  };
  const nodeRoute = (node) => "#node/" + encodeURIComponent(nodes[node].name);
  const checkRoute = (check) => "#check/" + encodeURIComponent(checks[check].id);
  const go = (route) => {
    if (location.hash === route) openRoute();
    else location.hash = route;
  };
  const nodeButton = (node) =>
    h("button", { type: "button", onclick: () => go(nodeRoute(node)) }, nodes[node].name);

  // A finding with its texts. In the data the name of the node is one sign, so that equal texts are stored once.
  const finding = (node, check, id) => {
    const { records, strings } = findings();
    const [letter, severity, message, expected, observed, evidence, details, waiver] = records[id];
    const name = nodes[node].name;
    const text = (index) => strings[index].replaceAll("\u0001", name);
    return {
      node,
      check,
      id,
      verdict: LETTERS.indexOf(letter),
      severity: head.severities[severity],
      message: text(message),
      expected: text(expected),
      observed: text(observed),
      evidence: evidence.map(text),
      details: details.map((row) => row.map(text)),
      waiver: waiver ? waiver.map(text) : null,
    };
  };
  const recordsAt = (node, check) => {
    const id = findings().cells[node][check];
    return id === -1 ? [] : Array.isArray(id) ? id : [id];
  };

  // --- filter ----------------------------------------------------------------------------------------------

  const filter = { text: "", verdicts: new Set(), areas: new Set() };
  let view = null;

  // Which results match. Returns the nodes with at least one, counts per node, area and verdict, and groups per check.
  const apply = () => {
    const query = filter.text.trim().toLowerCase();
    const A = areas.length;
    const verdictOn = WORDS.map((_, v) => !filter.verdicts.size || filter.verdicts.has(v));
    const checkOn = checks.map((check) => !filter.areas.size || filter.areas.has(check.area));
    const checkHit = query
      ? checks.map(({ id, title }) => (id + " " + title).toLowerCase().includes(query))
      : null;
    const recordHit = query ? findings().haystack.map((text) => text.includes(query)) : null;
    const counts = new Uint16Array(nodes.length * A * 6);
    const groups = Array.from({ length: checks.length * 6 }, () => null);
    const found = [],
      silent = [];
    let total = 0;
    nodes.forEach((node, n) => {
      const nodeHit =
        !query ||
        [node.name, node.shape, node.network, node.fabric, node.reason].some((text) =>
          text.toLowerCase().includes(query),
        );
      const row = places[n];
      const cells = query && !nodeHit ? findings().cells[n] : null;
      let hits = 0;
      for (let c = 0; c < row.length; c++) {
        const v = code[row.charCodeAt(c)];
        if (v < 0 || !verdictOn[v] || !checkOn[c]) continue;
        if (cells && !checkHit[c]) {
          const id = cells[c];
          if (!(Array.isArray(id) ? id.some((one) => recordHit[one]) : recordHit[id])) continue;
        }
        hits++;
        counts[(n * A + checks[c].area) * 6 + v]++;
        if (v < PASS && (node.reachable || v !== UNKNOWN))
          (groups[c * 6 + v] = groups[c * 6 + v] || []).push(n);
      }
      const empty = !/[a-z]/.test(row);
      const told = node.reachable && !empty;
      const alone = empty && nodeHit && verdictOn[UNKNOWN] && !filter.areas.size;
      if (hits || alone) {
        found.push(n);
        if (!told && !head.noNodes[n]) silent.push(n);
      }
      total += hits;
    });
    const list = [];
    groups.forEach((members, at) => {
      if (members) list.push({ check: Math.floor(at / 6), verdict: at % 6, nodes: members });
    });
    list.sort(
      (a, b) =>
        a.verdict - b.verdict ||
        rank(checks[a.check].severity) - rank(checks[b.check].severity) ||
        b.nodes.length - a.nodes.length ||
        (checks[a.check].id < checks[b.check].id ? -1 : 1),
    );
    return {
      found,
      counts,
      groups: list,
      silent,
      total,
      active: Boolean(query || filter.verdicts.size || filter.areas.size),
    };
  };

  // What stands below the matrix waits until the matrix is on the screen.
  let waiting = 0;
  const soon = (work, after = 0) => {
    clearTimeout(waiting);
    requestAnimationFrame(() => {
      clearTimeout(waiting);
      waiting = setTimeout(work, after);
    });
  };

  const refresh = () => {
    view = apply();
    const hosts = view.found.filter((n) => !head.noNodes[n]).length;
    $("found").textContent = view.active
      ? many(hosts, "node") + " and " + many(view.total, "result") + " match"
      : many(hosts, "node") + ", " + many(view.total, "result");
    $("reset").hidden = !view.active;
    drawMatrix();
    soon(() => {
      drawGroups();
      if (mapDrawn) soon(drawMap, 150);
    });
  };

  const chip = (parent, label, content, chosen, value) => {
    const button = h(
      "button",
      { type: "button", class: "chip", "aria-pressed": "false", "aria-label": label },
      ...content,
    );
    button.addEventListener("click", () => {
      if (!chosen.delete(value)) chosen.add(value);
      button.setAttribute("aria-pressed", String(chosen.has(value)));
      refresh();
    });
    parent.append(button);
  };

  const drawFilters = () => {
    const totals = [0, 0, 0, 0, 0, 0],
      byArea = areas.map(() => 0);
    places.forEach((row) => {
      for (let c = 0; c < row.length; c++) {
        const v = code[row.charCodeAt(c)];
        if (v < 0) continue;
        totals[v]++;
        byArea[checks[c].area]++;
      }
    });
    WORDS.forEach((word, v) => {
      if (totals[v]) {
        const content = [icon(v), word, h("small", {}, figure(totals[v]))];
        chip($("verdicts"), word + ", " + many(totals[v], "result"), content, filter.verdicts, v);
      }
    });
    if (areas.length > 1) {
      areas.forEach((area, a) =>
        chip($("areas"), "area " + area + ", " + many(byArea[a], "result"), [area], filter.areas, a),
      );
    }
    let timer = 0;
    $("search").addEventListener("input", (event) => {
      filter.text = event.target.value;
      clearTimeout(timer);
      timer = setTimeout(refresh, 30);
    });
    $("reset").addEventListener("click", () => {
      filter.text = $("search").value = "";
      filter.verdicts.clear();
      filter.areas.clear();
      document.querySelectorAll(".chip").forEach((button) => button.setAttribute("aria-pressed", "false"));
      refresh();
      $("search").focus();
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !$("drawer").open) {
        event.preventDefault();
        $("search").focus();
      }
    });
  };

  // --- nodes and areas -------------------------------------------------------------------------------------

  let drawn = 0,
    shownAreas = [],
    scrolled = false;
  const scroller = $("matrix").closest(".scroll");
  const body = () => $("matrix").tBodies[0];

  const drawMatrix = () => {
    shownAreas = areas.map((_, a) => a).filter((a) => !filter.areas.size || filter.areas.has(a));
    const row = $("matrix").tHead.rows[0];
    row.replaceChildren(
      h("th", { scope: "col" }, "Node"),
      h("th", { scope: "col", class: "shape" }, "Shape"),
      ...shownAreas.map((a) => h("th", { scope: "col" }, areas[a])),
    );
    body().replaceChildren();
    if (scrolled) scroller.scrollTop = 0; // only then: it makes the browser lay out the page once more
    scrolled = false;
    drawn = 0;
    moreRows(ROWS);
    const first = body().querySelector("button");
    if (first) first.tabIndex = 0;
    $("no-node").hidden = view.found.length > 0;
    $("matrix").hidden = !view.found.length;
  };

  const cellText = (counts) =>
    counts
      .map((number, v) => (number ? number + " " + WORDS[v] : ""))
      .filter(Boolean)
      .join(", ") || "no result";

  const matrixRow = (n) => {
    const node = nodes[n];
    const name = h(
      "th",
      { scope: "row", class: node.verdict < PASS ? "name attention" : "name" },
      h(
        "button",
        { type: "button", class: "cell", tabindex: "-1", onclick: () => go(nodeRoute(n)) },
        h("span", { class: "v-" + WORDS[node.verdict] }, icon(node.verdict)),
        h("span", { class: "mono" }, node.name),
        h("span", { class: "hidden" }, WORDS[node.verdict]),
      ),
    );
    const cells = shownAreas.map((a) => {
      const from = (n * areas.length + a) * 6;
      const counts = Array.from(view.counts.subarray(from, from + 6));
      const worst = counts.findIndex((number) => number > 0);
      const open = counts.slice(0, PASS).some((number) => number);
      const parts = counts
        .map((number, v) => [v, number])
        .filter(([v, number]) => number && (open ? v < PASS : v === worst))
        .map(([v, number]) => h("span", { class: "v-" + WORDS[v] }, icon(v), String(number)));
      if (worst < 0) return h("td", {}, h("span", { class: "hidden" }, "no result"));
      return h(
        "td",
        { class: worst < PASS ? "t-" + WORDS[worst] : null },
        h(
          "button",
          {
            type: "button",
            class: open ? "cell" : "cell quiet",
            tabindex: "-1",
            "aria-label": node.name + ", " + areas[a] + ": " + cellText(counts),
            onclick: () => go(nodeRoute(n) + "/" + encodeURIComponent(areas[a])),
          },
          ...parts,
        ),
      );
    });
    return h(
      "tr",
      {},
      name,
      h("td", { class: "shape" }, node.shape || (head.noNodes[n] ? head.noNodes[n][1] : "")),
      ...cells,
    );
  };

  const moreRows = (number) => {
    const rows = view.found.slice(drawn, drawn + number).map(matrixRow);
    drawn += rows.length;
    body().append(...rows);
    const rest = view.found.length - drawn;
    $("more-rows").hidden = rest <= 0;
    $("more-rows").textContent = "Show " + figure(Math.min(rest, 500)) + " more of " + many(rest, "node");
  };

  // Arrow keys move through the matrix; only one of its buttons is reached with Tab.
  const moveInMatrix = (event) => {
    const button = event.target.closest("button.cell");
    const step = {
      ArrowDown: [1, 0],
      ArrowUp: [-1, 0],
      ArrowRight: [0, 1],
      ArrowLeft: [0, -1],
      PageDown: [10, 0],
      PageUp: [-10, 0],
      Home: [0, -99],
      End: [0, 99],
    }[event.key];
    if (!button || !step || event.altKey || event.metaKey) return;
    event.preventDefault();
    const row = button.closest("tr");
    const line = [...row.querySelectorAll("button.cell")];
    let at = row.rowIndex - 1 + step[0];
    if (event.ctrlKey && step[1]) at = step[1] < 0 ? 0 : view.found.length - 1;
    at = Math.max(0, Math.min(at, view.found.length - 1));
    while (at >= drawn) moreRows(ROWS);
    const target = [...body().rows[at].querySelectorAll("button.cell")];
    const column = Math.max(0, Math.min(line.indexOf(button) + step[1], target.length - 1));
    focusCell(target[column]);
  };
  const focusCell = (button) => {
    body()
      .querySelectorAll('button[tabindex="0"]')
      .forEach((one) => {
        one.tabIndex = -1;
      });
    button.tabIndex = 0;
    button.focus();
  };

  // --- what to act on --------------------------------------------------------------------------------------

  let groupsShown = GROUPS;
  const nameList = (members) => {
    const list = h("div", { class: "names" });
    const fill = (number) => {
      list.replaceChildren(...members.slice(0, number).map(nodeButton));
      if (members.length > number) {
        list.append(
          h(
            "button",
            { type: "button", class: "no-print", onclick: () => fill(number + 500) },
            "+ " + figure(members.length - number) + " more",
          ),
        );
      }
    };
    fill(NAMES);
    return list;
  };

  const groupCard = ({ check, verdict, nodes: members }) => {
    const info = checks[check];
    const messages = new Map();
    for (const n of members) {
      for (const id of recordsAt(n, check)) if (!messages.has(id)) messages.set(id, n);
      if (messages.size > 3) break;
    }
    const lines = [...messages].slice(0, 3).map(([id, n]) => {
      const one = finding(n, check, id);
      return h(
        "p",
        {},
        members.length > 1 && messages.size > 1 ? [h("code", {}, nodes[n].name), " "] : [],
        one.message,
      );
    });
    const told = members.length === 1 ? head.noNodes[members[0]] : null;
    return h(
      "article",
      { class: "group" },
      icon(verdict),
      h(
        "div",
        {},
        h(
          "h3",
          {},
          h("button", { type: "button", onclick: () => go(checkRoute(check)) }, info.title),
          h("span", { class: "tag" }, WORDS[verdict] + " \u00b7 " + info.severity),
          h("span", { class: "tag" }, told ? told[0] : many(members.length, "node")),
          h("code", {}, info.id),
        ),
        ...lines,
        info.hint ? h("p", { class: "todo" }, info.hint) : null,
        told ? null : nameList(members),
      ),
    );
  };

  const drawGroups = () => {
    const list = $("groups");
    groupsShown = GROUPS;
    const reasons = new Map();
    for (const n of view.silent) {
      const reason = nodes[n].reason || head.noResult;
      if (!reasons.has(reason)) reasons.set(reason, []);
      reasons.get(reason).push(n);
    }
    const silent = [...reasons].map(([reason, members]) =>
      h(
        "article",
        { class: "group" },
        icon(UNKNOWN),
        h(
          "div",
          {},
          h("h3", {}, many(members.length, "node") + " told nothing", h("span", { class: "tag" }, "unknown")),
          h("p", {}, reason),
          nameList(members),
        ),
      ),
    );
    const openGroups = view.groups;
    const fill = () => {
      list.replaceChildren(...silent, ...openGroups.slice(0, groupsShown).map(groupCard));
      if (!list.childElementCount) {
        list.append(
          h(
            "p",
            { class: "empty" },
            view.active ? "No finding matches the filter." : "Nothing. All is as it must be.",
          ),
        );
      }
      if (openGroups.length > groupsShown) {
        list.append(
          h(
            "button",
            {
              type: "button",
              class: "more",
              onclick: () => {
                groupsShown += 100;
                fill();
              },
            },
            "Show " + many(openGroups.length - groupsShown, "more finding"),
          ),
        );
      }
    };
    fill();
    drawGroups.all = () => {
      groupsShown = openGroups.length;
      fill();
    };
    const acts = openGroups.filter((group) => group.verdict < WAIVED).length;
    $("groups-note").textContent =
      many(acts, "check") +
      (acts === 1 ? " is" : " are") +
      " not good" +
      (openGroups.length > acts ? ", " + many(openGroups.length - acts, "waived", "waived") : "");
  };

  // --- address map -----------------------------------------------------------------------------------------

  let mapDrawn = false,
    mapRows = MAP_ROWS;
  const place = ([index, name, device, parent, observed, child, state, others]) => {
    const { strings } = rails();
    return {
      index,
      name: strings[name],
      device: strings[device],
      parent,
      observed: observed === 0 ? parent : observed,
      child,
      state,
      others: others ? others.map((one) => strings[one]) : [],
    };
  };
  const isWrong = (one) => one.state > 0 && one.state < 5;
  const placesOf = (n) => rails().nodes[n].map(place);
  const sentence = (one) =>
    [
      "",
      "No address; " + one.parent + " was expected.",
      "Has " + one.observed + "; " + one.parent + " was expected.",
      "Used by " + one.others.join(", ") + " too.",
      "No address could be derived.",
      "The node told nothing.",
    ][one.state];

  const groupsOf = (address) => (address.includes(":") ? address.split(":") : address.split("."));
  // The leading part that all addresses of a rail share, at most all but the last two groups.
  const common = (addresses) => {
    if (!addresses.length) return "";
    const separator = addresses[0].includes(":") ? ":" : ".";
    const first = groupsOf(addresses[0]);
    let length = Math.max(0, first.length - 2);
    for (const address of addresses) {
      const parts = groupsOf(address);
      let same = 0;
      while (same < length && parts[same] === first[same]) same++;
      length = same;
    }
    return length ? first.slice(0, length).join(separator) + separator : "";
  };

  // What does not depend on the filter: rails of one network, their common prefixes, its nodes with wrong ones first.
  const models = new Map();
  const modelOf = (network) => {
    if (models.has(network)) return models.get(network);
    const members = nodes
      .map((_, n) => n)
      .filter((n) => rails().nodes[n].length && rails().network[n] === network);
    const table = new Map(members.map((n) => [n, placesOf(n)]));
    const wrong = new Map(members.map((n) => [n, table.get(n).filter(isWrong).length]));
    members.sort((a, b) => wrong.get(b) - wrong.get(a)); // stable: the order of the matrix within
    const columns = new Map();
    for (const one of [...table.values()].flat()) {
      if (!columns.has(one.index)) columns.set(one.index, []);
      columns.get(one.index).push(one);
    }
    const indexes = [...columns.keys()].sort((a, b) => a - b);
    const prefix = {};
    for (const index of indexes) {
      const column = columns.get(index);
      prefix[index] = {
        parent: common(column.map((one) => one.parent).filter(Boolean)),
        child: common(column.map((one) => one.child).filter(Boolean)),
        name: column[0].name || "NIC " + index,
      };
    }
    const model = { members, table, indexes, prefix };
    models.set(network, model);
    return model;
  };

  const drawMap = () => {
    mapDrawn = true;
    const inView = new Set(view.found);
    const { members, table, indexes, prefix } = modelOf(Number($("network").value || 0));
    const all = members.filter((n) => inView.has(n));
    const shown = all.slice(0, mapRows);
    const W = 9,
      NAME = 52,
      ROW = 36;
    const cut = (text, start) => (text.startsWith(start) ? text.slice(start.length) : text);
    let longest = 7;
    for (const n of shown) {
      for (const one of table.get(n)) {
        longest = Math.max(
          longest,
          cut(one.observed, prefix[one.index].parent).length,
          cut(one.child, prefix[one.index].child).length,
        );
      }
    }
    for (const index of indexes)
      longest = Math.max(longest, prefix[index].parent.length, prefix[index].child.length);
    const namesWide = 30 + 7.2 * Math.max(11, ...shown.map((n) => nodes[n].name.length));
    const spare = Math.floor(($("map").clientWidth - namesWide - 16) / Math.max(1, indexes.length));
    const width = Math.max(Math.round(longest * 6.7 + W), Math.min(spare, 96));
    const svg = s("svg", {
      role: "img",
      width: indexes.length * width + 6,
      height: NAME + shown.length * ROW + 4,
      "aria-label": mapSummary(shown, table),
    });
    indexes.forEach((index, x) =>
      svg.append(
        s("text", { class: "rail", x: x * width + 8, y: 16 }, prefix[index].name),
        s("text", { class: "soft", x: x * width + 8, y: 31 }, prefix[index].parent),
        s("text", { class: "soft", x: x * width + 8, y: 45 }, prefix[index].child),
      ),
    );
    shown.forEach((n, y) => {
      for (const one of table.get(n)) {
        const left = indexes.indexOf(one.index) * width + 4,
          top = NAME + y * ROW + 2;
        const own =
          { 1: "none", 5: "?" }[one.state] || cut(one.observed || one.parent, prefix[one.index].parent);
        const cell = s(
          "g",
          { class: "s" + one.state, "data-node": n },
          s("rect", { x: left, y: top, width: width - 5, height: ROW - 4, rx: 5 }),
          s("text", { class: "main", x: left + 5, y: top + 13 }, own),
          s("text", { class: "soft", x: left + 5, y: top + 26 }, cut(one.child, prefix[one.index].child)),
        );
        const badge = { 1: FAIL, 2: FAIL, 3: WARN }[one.state];
        if (badge !== undefined) {
          cell.append(
            s("circle", { cx: left + width - 10, cy: top + 2, r: 8 }),
            s("use", {
              class: "v-" + WORDS[badge],
              href: "#icon-" + WORDS[badge],
              x: left + width - 16,
              y: top - 4,
              width: 12,
              height: 12,
            }),
          );
        }
        if (one.state) cell.append(s("title", {}, nodes[n].name + " " + one.name + ": " + sentence(one)));
        svg.append(cell);
      }
    });
    svg.addEventListener("click", (event) => {
      const cell = event.target.closest("g[data-node]");
      if (cell) go(nodeRoute(Number(cell.getAttribute("data-node"))) + "/addresses");
    });
    const names = h(
      "ul",
      { class: "map-names" },
      h("li", { "aria-hidden": "true" }, "parent, child"),
      ...shown.map((n) => h("li", {}, nodeButton(n))),
    );
    const scroller = h(
      "div",
      { class: "map", tabindex: "0", role: "group", "aria-label": "Address map" },
      names,
      h("div", { class: "map-body" }, svg),
    );
    const parts = shown.length
      ? [scroller]
      : [h("p", { class: "empty" }, "No node with RDMA addresses matches the filter.")];
    if (all.length > shown.length) {
      parts.push(
        h(
          "button",
          {
            type: "button",
            class: "more",
            onclick: () => {
              mapRows += 200;
              drawMap();
            },
          },
          "Show " +
            figure(Math.min(200, all.length - shown.length)) +
            " more of " +
            many(all.length - shown.length, "node"),
        ),
      );
    }
    $("map").replaceChildren(...parts);
    drawFaults(
      all.flatMap((n) =>
        table
          .get(n)
          .filter(isWrong)
          .map((one) => [n, one]),
      ),
    );
    $("map-note").textContent = rails().networks.length === 1 ? rails().networks[0] : "";
    drawMap.all = () => {
      mapRows = all.length;
      drawMap();
    };
  };

  const mapSummary = (shown, table) => {
    const counts = [0, 0, 0, 0, 0, 0];
    for (const n of shown) for (const one of table.get(n)) counts[one.state]++;
    return (
      "Addresses of " +
      many(shown.length, "node") +
      ": " +
      counts
        .map((number, state) => (number ? number + " " + RAIL_WORDS[state] : ""))
        .filter(Boolean)
        .join(", ") +
      ". The table below names each one that is not as derived."
    );
  };

  const railTable = (rows, withNode) =>
    h(
      "div",
      { class: "wide", tabindex: "0", role: "group", "aria-label": withNode ? "Wrong addresses" : "Addresses" },
      h(
        "table",
        { class: "plain" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            withNode ? h("th", { scope: "col" }, "Node") : null,
            ...["NIC", "Derived", "Found", "Child", "State"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          ...rows.map(([n, one]) =>
            h(
              "tr",
              {},
              withNode ? h("td", { class: "mono nowrap" }, nodes[n].name) : null,
              h(
                "th",
                { scope: "row", class: "mono nowrap" },
                one.name || "NIC " + one.index,
                one.device ? " (" + one.device + ")" : "",
              ),
              h("td", { class: "mono nowrap" }, one.parent || "-"),
              h("td", { class: "mono nowrap" }, one.observed || "-"),
              h("td", { class: "mono nowrap" }, one.child || "-"),
              h(
                "td",
                { class: "state " + ["", "v-fail", "v-fail", "v-warn", "v-fail", "v-unknown"][one.state] },
                one.state ? sentence(one) : RAIL_WORDS[0],
              ),
            ),
          ),
        ),
      ),
    );

  const drawFaults = (faults) => {
    const fold = $("map-faults");
    fold.hidden = !faults.length;
    if (!faults.length) return;
    const table = faults.slice(0, 500);
    fold.replaceChildren(
      h("summary", {}, many(faults.length, "address is", "addresses are") + " not as derived"),
      railTable(table, true),
    );
    if (faults.length > table.length)
      fold.append(
        h(
          "p",
          { class: "empty" },
          many(faults.length - table.length, "more", "more") + ": filter to see them.",
        ),
      );
  };

  // --- all checks ------------------------------------------------------------------------------------------

  const drawChecks = () => {
    const counts = checks.map(() => [0, 0, 0, 0, 0, 0]);
    places.forEach((row) => {
      for (let c = 0; c < row.length; c++) {
        const v = code[row.charCodeAt(c)];
        if (v >= 0) counts[c][v]++;
      }
    });
    $("checks").replaceChildren(
      h(
        "thead",
        {},
        h("tr", {}, ...["Check", "Title", "Severity", ...WORDS].map((name) => h("th", { scope: "col" }, name))),
      ),
      h(
        "tbody",
        {},
        ...checks.map((check, c) =>
          h(
            "tr",
            {},
            h("th", { scope: "row", class: "mono nowrap" }, check.id),
            h(
              "td",
              {},
              h("button", { type: "button", class: "link", onclick: () => go(checkRoute(c)) }, check.title),
            ),
            h("td", {}, check.severity),
            ...counts[c].map((number, v) =>
              h("td", { class: number && v < PASS ? "v-" + WORDS[v] : "muted" }, String(number)),
            ),
          ),
        ),
      ),
    );
  };

  // --- drill-down ------------------------------------------------------------------------------------------

  const facts = (pairs) =>
    h(
      "dl",
      { class: "facts" },
      ...pairs
        .filter(([, value]) => value)
        .map(([key, value]) => h("div", {}, h("dt", {}, key), h("dd", {}, value))),
    );

  const remedy = (check) => {
    if (!check.doc) return null;
    const page = head.docs
      ? h("a", { href: head.docs + check.doc, rel: "noreferrer" }, check.doc)
      : h("code", {}, check.doc);
    return h("p", { class: "muted" }, "Remedy page: ", page);
  };

  const isOpen = (row) => row[1] !== "pass" && row[1] !== "skip";
  // The parts tell more than their sum, so the sum is shown only where no part compares anything.
  const comparison = (one) =>
    (one.expected || one.observed) && !one.details.some((row) => isOpen(row) && (row[3] || row[4]))
      ? h(
          "dl",
          { class: "compare" },
          one.expected ? [h("dt", {}, "Expected"), h("dd", {}, one.expected)] : [],
          one.observed ? [h("dt", {}, "Observed"), h("dd", {}, one.observed)] : [],
        )
      : null;

  const detailTable = (rows) => {
    if (!rows.length) return null;
    const bad = rows.filter(isOpen);
    const fine = rows.length - bad.length;
    const wanted = [3, 4].filter((column) => bad.some((row) => row[column]));
    const titles = ["Part", "Result", ...wanted.map((column) => (column === 3 ? "Expected" : "Observed"))];
    const line = (row) => {
      const verdict = WORDS.indexOf(row[1]);
      return h(
        "tr",
        {},
        h("th", { scope: "row", class: "mono nowrap" }, row[0]),
        h(
          "td",
          {},
          verdict < 0 ? "" : icon(verdict),
          " ",
          row[2] ? [h("span", { class: "hidden" }, row[1] + ": "), row[2]] : row[1],
        ),
        ...wanted.map((column) => h("td", { class: "mono" }, row[column])),
      );
    };
    return h(
      "div",
      {},
      bad.length
        ? h(
            "div",
            { class: "wide", tabindex: "0", role: "group", "aria-label": "Parts" },
            h(
              "table",
              { class: "plain parts" },
              h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
              h("tbody", {}, ...bad.map(line)),
            ),
          )
        : null,
      fine ? h("p", { class: "muted" }, many(fine, "part is", "parts are") + " as expected.") : null,
    );
  };

  const findingBody = (one) => [
    comparison(one),
    detailTable(one.details),
    one.waiver
      ? h(
          "p",
          { class: "v-waived" },
          "Waived until " + one.waiver[2] + " by " + one.waiver[1] + ": " + one.waiver[0],
        )
      : null,
    one.evidence.length
      ? h(
          "p",
          { class: "muted" },
          "Read from ",
          ...one.evidence.flatMap((text, i) => [i ? ", " : "", h("code", {}, text)]),
        )
      : null,
  ];

  const findingCard = (one) => {
    const check = checks[one.check];
    return h(
      "li",
      { class: "finding v-" + WORDS[one.verdict] },
      h(
        "div",
        { class: "title" },
        h(
          "button",
          { type: "button", onclick: () => go(checkRoute(one.check)) },
          icon(one.verdict),
          check.title,
        ),
        h("span", { class: "tag" }, WORDS[one.verdict] + " \u00b7 " + one.severity),
        h("code", { class: "muted" }, check.id),
      ),
      h("p", {}, one.message),
      ...findingBody(one),
      check.hint ? h("p", { class: "todo" }, check.hint) : null,
      remedy(check),
    );
  };

  const quietList = (list) =>
    h(
      "ul",
      { class: "rows" },
      ...list.map((one) =>
        h(
          "li",
          {},
          icon(one.verdict),
          h(
            "div",
            {},
            h("button", { type: "button", onclick: () => go(checkRoute(one.check)) }, checks[one.check].title),
            " ",
            h("code", { class: "muted" }, checks[one.check].id),
            h("p", { class: "muted" }, one.message),
          ),
        ),
      ),
    );

  const foldOf = (title, list) => {
    if (!list.length) return null;
    const fold = h("details", {}, h("summary", {}, title));
    fold.addEventListener("toggle", () => {
      if (fold.open && fold.childElementCount === 1) fold.append(quietList(list));
    });
    return fold;
  };

  const showNode = (n, part) => {
    const node = nodes[n];
    const area = areas.indexOf(part);
    const list = [];
    for (let c = 0; c < checks.length; c++) {
      if (area < 0 || checks[c].area === area) for (const id of recordsAt(n, c)) list.push(finding(n, c, id));
    }
    list.sort((a, b) => a.verdict - b.verdict || rank(a.severity) - rank(b.severity));
    const open = list.filter((one) => one.verdict < PASS && (node.reachable || one.verdict !== UNKNOWN));
    const quiet = list.filter((one) => !open.includes(one));
    const tab = (label, route, on) =>
      h(
        "button",
        { type: "button", class: "chip", "aria-pressed": String(on), onclick: () => go(route) },
        label,
      );
    const rows = rails().nodes[n].map((row) => [n, place(row)]);
    const title = [
      icon(node.verdict),
      " ",
      h("span", { class: "mono" }, node.name),
      h("span", { class: "hidden" }, ", " + WORDS[node.verdict]),
    ];
    return [
      title,
      facts([
        ["Shape", node.shape],
        ["Network", node.network],
        ["Fabric", node.fabric],
        ["Read at", node.collected],
        ["Snapshot", node.snapshot.slice(0, 12)],
      ]),
      [
        node.reachable ? null : h("p", { class: "callout" }, node.reason || "The node was not reachable."),
        areas.length > 1
          ? h(
              "div",
              { class: "chips" },
              tab("All areas", nodeRoute(n), area < 0),
              ...areas.map((name, a) => tab(name, nodeRoute(n) + "/" + encodeURIComponent(name), a === area)),
            )
          : null,
        open.length
          ? h("ul", { class: "cards" }, ...open.map(findingCard))
          : h(
              "p",
              { class: "muted" },
              list.length && node.reachable ? "Nothing to act on here." : "Nothing is known here.",
            ),
        foldOf(
          many(quiet.filter((one) => one.verdict === UNKNOWN).length, "check is", "checks are") + " unknown",
          quiet.filter((one) => one.verdict === UNKNOWN),
        ),
        foldOf(
          many(quiet.filter((one) => one.verdict === PASS).length, "check passes", "checks pass"),
          quiet.filter((one) => one.verdict === PASS),
        ),
        foldOf(
          many(quiet.filter((one) => one.verdict === SKIP).length, "check does", "checks do") + " not apply",
          quiet.filter((one) => one.verdict === SKIP),
        ),
        rows.length ? h("h3", { id: "addresses" }, "Addresses") : null,
        rows.length ? railTable(rows, false) : null,
      ],
    ];
  };

  // The names as Ansible's --limit takes them.
  const copyButton = (names) => {
    const copy = (event) => {
      navigator.clipboard.writeText(names.join(",")).then(
        () => {
          event.target.textContent = "Copied";
        },
        () => {
          event.target.textContent = names.join(",");
        },
      );
    };
    return navigator.clipboard && names.length > 1
      ? h("button", { type: "button", class: "link small", onclick: copy }, "Copy names for --limit")
      : "";
  };

  const showCheck = (c) => {
    const check = checks[c];
    const byVerdict = WORDS.map(() => []);
    nodes.forEach((_, n) =>
      recordsAt(n, c).forEach((id) => {
        byVerdict[LETTERS.indexOf(findings().records[id][0])].push([n, id]);
      }),
    );
    const sections = byVerdict.flatMap((members, v) => {
      if (!members.length) return [];
      const messages = new Map();
      members.forEach(([n, id]) => {
        if (!messages.has(id)) messages.set(id, []);
        messages.get(id).push(n);
      });
      const entries = [...messages].sort((a, b) => b[1].length - a[1].length);
      const card = ([id, list]) => {
        const one = finding(list[0], c, id);
        return h(
          "li",
          { class: "finding v-" + WORDS[v] },
          h("p", {}, one.message),
          ...(v < PASS ? findingBody(one) : []),
          head.noNodes[list[0]] ? null : nameList(list),
        );
      };
      const content = h("ul", { class: "cards" });
      const fill = (number) => {
        content.replaceChildren(...entries.slice(0, number).map(card));
        if (entries.length > number) {
          content.append(
            h(
              "li",
              {},
              h(
                "button",
                { type: "button", class: "more", onclick: () => fill(number + 100) },
                "Show " + many(entries.length - number, "more message"),
              ),
            ),
          );
        }
      };
      const title = [icon(v), " " + many(members.length, "node") + ": " + WORDS[v]];
      if (v < PASS) {
        fill(30);
        return [h("h3", {}, ...title, " ", copyButton(members.map(([n]) => nodes[n].name))), content];
      }
      const fold = h("details", {}, h("summary", {}, ...title));
      fold.addEventListener("toggle", () => {
        if (fold.open && fold.childElementCount === 1) {
          fill(20);
          fold.append(content);
        }
      });
      return [fold];
    });
    return [
      [check.title],
      facts([
        ["Check", check.id],
        ["Area", areas[check.area]],
        ["Severity", check.severity],
      ]),
      [
        check.hint ? h("div", {}, h("h3", {}, "What to do"), h("p", { class: "todo" }, check.hint)) : null,
        remedy(check),
        ...sections,
      ],
    ];
  };

  const openRoute = () => {
    const drawer = $("drawer");
    let parts = [];
    try {
      parts = location.hash.slice(1).split("/").map(decodeURIComponent);
    } catch {
      parts = [];
    }
    const [kind, name, part] = parts;
    const index = kind === "node" ? nodeOf.get(name) : kind === "check" ? checkOf.get(name) : undefined;
    if (index === undefined) {
      if (drawer.open) drawer.close();
      return;
    }
    const [title, sub, content] = kind === "node" ? showNode(index, part) : showCheck(index);
    $("drawer-title").replaceChildren(...title);
    $("drawer-facts").replaceChildren(sub);
    $("drawer-body").replaceChildren(...content.filter(Boolean));
    if (!drawer.open) drawer.showModal();
    $("drawer-body").scrollTop = 0;
    if (part === "addresses" && $("addresses")) $("addresses").scrollIntoView();
    $("drawer-title").focus();
  };

  // --- start -----------------------------------------------------------------------------------------------

  drawFilters();
  view = apply();
  drawMatrix();
  $("found").textContent =
    many(view.found.filter((n) => !head.noNodes[n]).length, "node") + ", " + many(view.total, "result");
  $("matrix").addEventListener("keydown", moveInMatrix);
  $("matrix").addEventListener("focusin", (event) => {
    const button = event.target.closest("button.cell");
    if (button && button.tabIndex !== 0) {
      body()
        .querySelectorAll('button[tabindex="0"]')
        .forEach((one) => {
          one.tabIndex = -1;
        });
      button.tabIndex = 0;
    }
  });
  $("more-rows").addEventListener("click", () => moreRows(500));
  scroller.addEventListener(
    "scroll",
    () => {
      scrolled = true;
      if (
        scroller.scrollHeight > scroller.clientHeight + 10 &&
        scroller.scrollTop + scroller.clientHeight > scroller.scrollHeight - 600
      ) {
        if (drawn < view.found.length) moreRows(ROWS);
      }
    },
    { passive: true },
  );

  const later = () => {
    drawGroups();
    drawChecks();
    const networks = rails().networks;
    if (rails().nodes.some((row) => row.length)) {
      $("map-section").hidden = false;
      networks.forEach((name, index) => $("network").append(h("option", { value: String(index) }, name)));
      $("network").parentElement.hidden = networks.length < 2;
      $("network").addEventListener("change", () => {
        mapRows = MAP_ROWS;
        drawMap();
      });
      drawMap();
    }
    $("drawer-close").addEventListener("click", () => $("drawer").close());
    $("drawer").addEventListener("click", (event) => {
      if (event.target === $("drawer")) $("drawer").close();
    });
    $("drawer").addEventListener("close", () => {
      if (location.hash.length > 1) history.pushState(null, "", "#");
    });
    window.addEventListener("hashchange", openRoute);
    window.addEventListener("beforeprint", () => {
      while (drawn < view.found.length) moreRows(1000);
      if (drawGroups.all) drawGroups.all();
      if (drawMap.all) drawMap.all();
      document.querySelectorAll("main > section details").forEach((fold) => {
        if (fold.id === "map-faults") fold.open = true;
      });
    });
    document.documentElement.dataset.ready = "yes";
    if (location.hash.length > 1) openRoute();
  };
  // After the first paint, and when all of the file has been read.
  const start = () => requestAnimationFrame(() => setTimeout(later, 0));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
"""
