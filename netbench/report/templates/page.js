"use strict";
// The page works without this script; it sorts, filters and hides columns.
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
// What a reader sees of a cell: not a record that it can open.
const text = (cell) => (cell ? ($("pre", cell) ? $("summary", cell) : cell).textContent.trim().replace(/ †$/, "") : "");
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
      return (row) => [...row.cells].some((cell) => text(cell).toLowerCase().includes(word));
    }
    const levels = (m[2] ?? m[3]).split("|");
    return (row) => levels.includes(text(row.cells[at]));
  });
  return (row) => tests.every((test) => test(row));
}
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
  apply();
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
// A drawing as a file to paste: on white, twice as large as it is shown.
function saving(image) {
  const button = make("button", { type: "button", class: "png", "aria-label": `save as PNG: ${image.alt}` }, "PNG");
  button.addEventListener("click", () => {
    const canvas = make("canvas", { width: 2 * image.width, height: 2 * image.height }), to = canvas.getContext("2d");
    to.fillStyle = "#fff";
    to.fillRect(0, 0, canvas.width, canvas.height);
    to.drawImage(image, 0, 0, canvas.width, canvas.height);
    make("a", { href: canvas.toDataURL(), download: `${image.alt.replace(/[^\w.-]+/g, "-")}.png` }).click();
  });
  $("figcaption", image.closest("figure")).append(" ", button);
}
// What a link leads to is unfolded; on paper all is.
function unfold() {
  const to = location.hash && document.getElementById(location.hash.slice(1));
  for (let at = to; at; at = at.parentElement) if (at.matches(".fold")) at.open = true;
  if (to) to.scrollIntoView();
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
for (const image of $$("figure img")) saving(image);
addEventListener("hashchange", unfold);
unfold();
matchMedia("print").addEventListener("change", (print) => { if (print.matches) { for (const each of $$(".fold")) each.open = true; fit(); } else for (const table of $$("table.data")) table.style.zoom = ""; });
})();
