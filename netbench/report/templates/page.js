"use strict";
// The page works without this script; it sorts, filters, and lays out the records that are there.
(() => {
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const MISSING = "-", LEAST_ROWS = 8, UNITS = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

// Light, dark, or as the system has it. Where nothing can be stored, it lasts as long as the page.
const THEMES = ["system", "light", "dark"];
function themes() {
  const button = make("button", { type: "button" });
  const show = (theme) => {
    if (theme === "system") delete document.body.dataset.theme;
    else document.body.dataset.theme = theme;
    button.textContent = `theme: ${theme}`;
  };
  let theme = "system";
  try { theme = localStorage.getItem("netbench-theme") || theme; } catch { /* forbidden here */ }
  if (!THEMES.includes(theme)) theme = "system";
  show(theme);
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    show(theme);
    try { localStorage.setItem("netbench-theme", theme); } catch { /* forbidden here */ }
  });
  $("#bar").append(button);
}

// Tables: sort by a column, filter by words, hide columns.
const text = (cell) => (cell ? cell.textContent.trim().replace(/ †$/, "") : "");
function amount(words) {
  const found = /^[<(]?([-+]?[\d.,]*\d)\s?([KMGT])?/.exec(words);
  return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] || 1) : NaN;
}
const byWords = new Intl.Collator("en", { numeric: true });
function sorter(rows, at) {
  const words = new Map(rows.map((row) => [row, text(row.cells[at])]));
  const numbers = new Map(rows.map((row) => [row, amount(words.get(row))]));
  const missing = (row) => words.get(row) === MISSING || words.get(row) === "";
  const numeric = rows.every((row) => missing(row) || !Number.isNaN(numbers.get(row)));
  return (a, b, sign) => missing(a) - missing(b) || sign * (
    numeric ? numbers.get(a) - numbers.get(b) : byWords.compare(words.get(a), words.get(b)));
}
function sortable(table) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], original = [...body.rows];
  heads.forEach((head, at) => {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" };
      const order = next[head.getAttribute("aria-sort") || "none"];
      for (const each of heads) each.removeAttribute("aria-sort");
      if (order === "none") return body.append(...original);
      head.setAttribute("aria-sort", order);
      const compare = sorter(original, at), sign = order === "ascending" ? 1 : -1;
      return body.append(...[...original].sort((a, b) => compare(a, b, sign)));
    });
  });
}
// `send=splice|sendfile pin=none 17`: words of a row, or levels of its columns.
function matcher(names, filter) {
  const tests = [...filter.matchAll(/([^\s="]+)=(?:"([^"]*)"|(\S*))|"([^"]*)"|(\S+)/g)].map((m) => {
    const at = m[1] === undefined ? -1 : names.indexOf(m[1]);
    if (at < 0) {
      const word = (m[4] ?? m[0]).toLowerCase();
      return (row) => row.textContent.toLowerCase().includes(word);
    }
    const levels = (m[2] ?? m[3]).split("|");
    return (row) => levels.includes(text(row.cells[at]));
  });
  return (row) => tests.every((test) => test(row));
}
const filters = new Map();
function tools(table) {
  const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
  const names = heads.map((head) => head.textContent.trim());
  const search = make("input", { type: "search", placeholder: "words, or column=level" });
  const told = make("output", { "aria-live": "polite" });
  const apply = () => {
    const wanted = matcher(names, search.value);
    let count = 0;
    for (const row of rows) count += !(row.hidden = !wanted(row));
    told.textContent = search.value ? `${count} of ${rows.length} rows` : `${rows.length} rows`;
  };
  search.addEventListener("input", apply);
  const columns = make("details", {}, make("summary", {}, "columns"));
  heads.forEach((head, at) => {
    const box = make("input", { type: "checkbox" });
    box.checked = true;
    box.addEventListener("change", () => {
      for (const row of [table.tHead.rows[0], ...rows]) row.cells[at].hidden = !box.checked;
    });
    columns.append(make("label", {}, box, ` ${names[at]}`));
  });
  const bar = make("div", { class: "tools" }, make("label", {}, "filter ", search), columns, told);
  table.parentNode.before(bar);
  filters.set(table, (words) => { search.value = words; apply(); });
  apply();
}

// A run: its record as tables. Everything is put in as text.
const parse = (line) => JSON.parse(line, (key, value, context) =>
  typeof value === "number" && !Number.isSafeInteger(value) && context && /^-?\d+$/.test(context.source)
    ? BigInt(context.source) : value);
const plain = (value) => (value === null || value === undefined ? MISSING
  : typeof value === "object" ? JSON.stringify(value, (k, v) => (typeof v === "bigint" ? String(v) : v)) : String(value));
const total = (value) => (Array.isArray(value)
  ? value.reduce((sum, each) => (typeof sum === "bigint" || typeof each === "bigint" ? BigInt(sum) + BigInt(each) : sum + each), 0) : value);
const streams = (value) => (Array.isArray(value) && value.length > 1 ? ` (${value.length} streams)` : "");
const grouped = (value) => (typeof value === "number" || typeof value === "bigint" ? value.toLocaleString("en") : plain(value));
function between(edges) {
  const [first, last] = edges.map(total);
  if (typeof first === "bigint" || typeof last === "bigint") return BigInt(last) - BigInt(first);
  return last - first;
}
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
function tabular(caption, heads, rows) {
  const body = rows.map(({ id, cells }) => make("tr", id ? { id } : {}, ...cells.map((cell, at) => {
    const is = heads[at].numeric ? { class: "n" } : heads[at].wide ? { class: "w" } : {};
    return make("td", is, ...(Array.isArray(cell) ? cell : [cell]));
  })));
  const row = make("tr", {}, ...heads.map((h) => make("th", { scope: "col", ...(h.numeric ? { class: "n" } : {}) }, h.name)));
  const table = make("table", {}, make("caption", {}, caption), make("thead", {}, row), make("tbody", {}, ...body));
  return make("div", { class: "wide", role: "group", tabindex: "0", "aria-label": caption }, table);
}
const head = (name, numeric = false, wide = false) => ({ name, numeric, wide });
function counters(record, id, units) {
  const sides = ["sender", "receiver"].map((side) => record[side] || {}), names = new Map();
  const put = (name, at, value) => { if (!names.has(name)) names.set(name, []); names.get(name)[at] = value; };
  sides.forEach((side, at) => {
    for (const [meter, value] of Object.entries(side)) {
      if (!isObject(value) || meter === "tool") put(meter, at, value);
      else for (const [name, edges] of Object.entries(value)) put(`${meter}.${name}`, at, edges);
    }
  });
  const of = (value) => (Array.isArray(value) && value.length === 2
    ? [grouped(total(value[0])) + streams(value[0]), grouped(total(value[1])), grouped(between(value))]
    : [value === undefined ? "" : grouped(value), "", ""]);
  const rows = [...names].map(([name, values]) => ({
    id: `${id}-${name}`,
    cells: [name, name === "time_ns" ? "ns" : units[name] || "", ...of(values[0]), ...of(values[1])],
  }));
  const heads = [head("counter"), head("unit"), ...["sender", "receiver"].flatMap((side) =>
    [`${side}: open`, "close", "between"].map((name) => head(name, true)))];
  return tabular("Raw counters at the edges of the window", heads, rows);
}
// The names of counters and of metrics in a formula lead to their rows.
function linked(formula, id, known) {
  return formula.split(/([A-Za-z_]\w*(?:\.\w+)*)/).map((word, at) => {
    const name = word === "window" ? "time_ns" : word;
    return at % 2 && known.has(name) ? make("a", { href: `#${id}-${name}` }, word) : word;
  });
}
function metrics(article, record, facts) {
  const id = article.id, values = article.dataset.values.split(","), known = new Set(["time_ns"]);
  facts.metrics.forEach(([name], at) => values[at] && known.add(name));
  for (const side of ["sender", "receiver"]) {
    for (const [meter, value] of Object.entries(record[side] || {})) {
      known.add(meter);
      if (isObject(value)) for (const name of Object.keys(value)) known.add(`${meter}.${name}`);
    }
  }
  const rows = facts.metrics.flatMap(([name, title, unit, formula], at) => (values[at]
    ? [{ id: `${id}-${name}`, cells: [title, values[at], unit, linked(formula, id, known)] }] : []));
  return tabular("Metrics, and the counters that they follow from", [head("metric"), head("value", true), head("unit"), head("formula", false, true)], rows);
}
function graph(samples) {
  const sides = samples.split(";").map((part) => {
    const [side, ...points] = part.split(" ");
    return [side, points.map((point) => point.split(",").map(Number))];
  });
  const svg = $("svg", $("#graph").content).cloneNode(true), all = sides.flatMap(([, points]) => points);
  const most = Math.max(...all.map(([, rate]) => rate)) || 1, last = Math.max(...all.map(([at]) => at)) || 1;
  for (const [side, points] of sides) {
    // Each rate is that of the time since the point before.
    const y = (rate) => (120 - 110 * rate / most).toFixed(1);
    $(`.${side}`, svg).setAttribute("d", points.map(([at, rate], i) =>
      `${i ? "V" : "M40 "}${y(rate)}H${(40 + 410 * at / last).toFixed(1)}`).join(""));
  }
  $(".top", svg).textContent = most;
  $(".last", svg).textContent = `${last} ms`;
  $("title", svg).textContent = sides.map(([side, points]) => `${side}: ${points.map(([at, rate]) => `${rate} Gb/s at ${at} ms`).join(", ")}`).join("; ");
  return make("figure", { class: "graph" }, svg, make("figcaption", {}, "Throughput between samples [Gb/s]: receiver solid, sender dashed"));
}
function settings(record) {
  const rows = ["sender", "receiver"].flatMap((side) => Object.entries(record.settings?.[side] || {}).map(([name, note]) =>
    ({ cells: [name, side, note.asked === null ? "left to the kernel" : plain(note.asked), plain(note.read), note.after ? plain(note.after) : ""] })));
  for (const [name, change] of Object.entries(record.settings?.moved || {})) rows.push({ cells: [name, "moved along", plain(change[0]), plain(change[1]), ""] });
  return rows.length ? [tabular("Settings, as asked and as read back", ["setting", "side", "asked", "read", "after the run"].map((name) => head(name)), rows)] : [];
}
function proof(record) {
  const rows = ["sender", "receiver"].flatMap((side) => Object.entries(record.proof?.[side] || {}).map(([name, edges]) =>
    ({ cells: [name, side, ...[0, 1, 2].map((at) => (at in edges ? grouped(total(edges[at])) : ""))] })));
  return rows.length ? [tabular("Proof of mechanism", [head("counter"), head("side"), head("open", true), head("close", true), head("drained", true)], rows)] : [];
}
function captures(record) {
  const rows = Object.entries(record.captures || {}).map(([name, found]) => ({ cells: [name, plain(found.value), plain(found.unit), plain(found.text)] }));
  return rows.length ? [tabular("What the tool printed", [head("metric"), head("value", true), head("unit"), head("as printed", false, true)], rows)] : [];
}
function way(article) {
  const panels = $$(".run"), at = panels.indexOf(article), links = [];
  if (at > 0) links.push(make("a", { href: `#${panels[at - 1].id}` }, "previous run"));
  if (at + 1 < panels.length) links.push(make("a", { href: `#${panels[at + 1].id}` }, "next run"));
  for (const figure of $$("figure[id]")) {
    if ($(`a[href="#${article.id}"]`, figure)) links.push(make("a", { href: `#${figure.id}` }, `plot: ${$("figcaption", figure).textContent.split(/[,;]/)[0]}`));
  }
  return make("nav", { "aria-label": "Around this run" }, ...links);
}
// Records that are packed, as lines.
let unpacked;
function unpack() {
  unpacked ??= new Response(new Blob([Uint8Array.from(atob($("#packed").textContent), (c) => c.charCodeAt(0))])
    .stream().pipeThrough(new DecompressionStream("deflate-raw"))).text().then((all) => all.split("\n"));
  return unpacked;
}
async function layOut(article) {
  if (article.dataset.done) return;
  article.dataset.done = "yes";
  const facts = JSON.parse($("#facts").textContent);
  if (article.dataset.packed !== undefined) {
    const pre = make("pre", { tabindex: "0", "aria-label": "record" }, (await unpack())[Number(article.dataset.packed)]);
    $(".packed", article).replaceWith(pre);
  }
  const pre = $("pre", article);
  let record;
  try { record = parse(pre.textContent); } catch { return; }
  const levels = Object.entries(record.factors || {}).flatMap(([name, level]) => [make("dt", {}, name), make("dd", {}, plain(level))]);
  const parts = [way(article), make("dl", {}, ...levels), metrics(article, record, facts)];
  if (article.dataset.samples) parts.push(graph(article.dataset.samples));
  parts.push(counters(record, article.id, facts.units), ...settings(record), ...proof(record), ...captures(record));
  pre.before(...parts);
  const details = make("details", {}, make("summary", {}, "The record as it was stored"));
  pre.replaceWith(details);
  details.append(pre);
  wired(article);
}
function listRuns(article) {
  const all = $("#all-runs");
  if (article.dataset.done || !all) return;
  article.dataset.done = "yes";
  const mine = new Set($$(".its a", article).map((link) => link.getAttribute("href")));
  const rows = [...all.tBodies[0].rows].filter((row) => mine.has($("a", row).getAttribute("href")));
  if (!rows.length) return;
  const table = make("table", {}, make("caption", {}, "Its runs"), all.tHead.cloneNode(true), make("tbody", {}));
  for (const button of $$("th button", table)) button.replaceWith(...button.childNodes);
  for (const sorted of $$("[aria-sort]", table)) sorted.removeAttribute("aria-sort");
  table.tBodies[0].append(...rows.map((row) => row.cloneNode(true)));
  for (const row of $$("[hidden]", table)) row.hidden = false;
  article.append(make("div", { class: "wide", role: "group", tabindex: "0", "aria-label": "Its runs" }, table));
  wired(article);
}

// Where a link leads is laid out when it is shown; the run is marked in the plots.
async function route() {
  let target = null;
  try { target = document.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* no address of this page */ }
  const run = /^#(run-\d+)/.exec(location.hash);
  const panel = run ? document.getElementById(run[1]) : target;
  if (!panel || !panel.classList.contains("panel")) return;
  if (panel.classList.contains("run")) {
    await layOut(panel);
    for (const mark of $$("svg a.here")) mark.classList.remove("here");
    for (const mark of $$(`svg a[href="#${panel.id}"]`)) mark.classList.add("here");
  } else {
    listRuns(panel);
  }
  const shown = document.getElementById(decodeURIComponent(location.hash.slice(1))) || panel;
  if (shown !== target) { location.replace(location.hash); }
  shown.scrollIntoView();
  (shown === panel ? $("h3", panel) : panel).focus({ preventScroll: true });
}
// A number leads where its row does.
const lead = (row) => $("a[href^='#cell-'], a[href^='#run'], a[href$='.html']", row);
function wired(root) {
  for (const row of $$("tbody tr", root)) if (lead(row)) row.classList.add("to");
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href='#runs']");
  if (link && $("#all-runs")) filters.get($("#all-runs"))?.(link.dataset.only || "");
  const cell = event.target.closest("tr.to td.n");
  if (!cell || event.target.closest("a, button, input") || String(getSelection())) return;
  const to = $("a", cell) || lead(cell.parentNode);
  if (to) to.click();
});
// The points of a plot are one stop of the tab key; arrows go from one to the next.
function points() {
  for (const svg of $$("figure svg")) {
    const links = $$("a", svg);
    if (!links.length) continue;
    links[0].setAttribute("tabindex", "0");
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const at = links.indexOf(document.activeElement);
      if (!step || at < 0) return;
      event.preventDefault();
      links[Math.min(links.length - 1, Math.max(0, at + step))].focus();
    });
  }
}
// Two results of an index: the command that compares them.
function choosing(table) {
  const told = $("#compare"), chosen = [];
  const say = () => {
    const quoted = chosen.map((box) => (/^[\w./:+-]+$/.test(box.value) ? box.value : `'${box.value.replaceAll("'", "'\\''")}'`));
    $("code", told).textContent = chosen.length === 2 ? `python -m netbench compare ${quoted.join(" ")}` : "choose two results";
  };
  for (const row of table.tBodies[0].rows) {
    const cell = row.cells[0], box = make("input", { type: "checkbox", "aria-label": `compare ${row.dataset.folder}` });
    if (!row.dataset.folder) continue;
    box.value = row.dataset.folder;
    box.addEventListener("change", () => {
      if (box.checked) chosen.push(box);
      else chosen.splice(chosen.indexOf(box), 1);
      if (chosen.length > 2) chosen.shift().checked = false;
      say();
    });
    cell.prepend(box, " ");
  }
  told.hidden = false;
  say();
}
// What is wider than paper is made smaller for it.
function fit() {
  for (const table of $$("table.data")) {
    table.style.zoom = "";
    const room = $("main").clientWidth, wide = table.scrollWidth;
    if (room && wide > room) table.style.zoom = Math.max(0.3, room / wide);
  }
}
themes();
for (const table of $$("table.data")) {
  if (table.dataset.choose !== undefined) choosing(table);
  sortable(table);
  if (table.tBodies[0].rows.length >= LEAST_ROWS || table.id === "all-runs") tools(table);
}
points();
wired(document);
addEventListener("hashchange", route);
matchMedia("print").addEventListener("change", (print) => { if (print.matches) fit(); else for (const table of $$("table.data")) table.style.zoom = ""; });
route();
})();
