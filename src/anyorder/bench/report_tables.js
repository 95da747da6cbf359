"use strict";
// The tables of the page: scores, ranks as a heat map, and measures, which come with the page.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const button = (text, onclick, attributes = {}) =>
  element("button", { type: "button", onclick, ...attributes }, text);
const line = (head, cells) => element("tr", {}, element("th", { scope: "row" }, head), ...cells);
const compare = (a, b) => a.localeCompare(b, "en", { numeric: true });
const upwards = (values) => (a, b) => (values[a] ?? Infinity) - (values[b] ?? Infinity) || a - b;

function makeTable({ distributions, algorithms, rows, ranks, wins }) {
  const columns = [...algorithms.keys()], lines = [...distributions.keys()];
  if (STATE.columns === "rank") columns.sort(upwards(ranks));
  if (STATE.columns === "wins") columns.sort((a, b) => wins[b] - wins[a]);
  const { by, down } = STATE.sort, column = algorithms.indexOf(by);
  const labelOf = (r) => DATA.distributions[distributions[r]].label;
  if (by === "label") lines.sort((a, b) => compare(labelOf(a), labelOf(b)));
  if (column >= 0) lines.sort(upwards(rows.map((row) => row[column]?.rank)));
  if (down && (by === "label" || column >= 0)) lines.reverse();

  const head = (text, key) => {
    const next = by !== key ? { by: key, down: false } : { by: down ? null : key, down: !down };
    const sort = button(text, () => draw({ sort: next }), { "data-sort": key });
    const order = by === key ? (down ? "descending" : "ascending") : null;
    return element("th", { scope: "col", "aria-sort": order }, sort);
  };
  const heads = columns.map((c) => head(DATA.algorithms[algorithms[c]].label, algorithms[c]));
  const body = lines.map((r) => {
    const d = DATA.distributions[distributions[r]];
    const at = d.grid[placeOf(d.grid, GRID[STATE.place])];
    const made = line(d.label, columns.map((c) => scoreCell(rows[r][c], d.digits)));
    if (at !== undefined && at !== GRID[STATE.place])
      made.firstChild.append(element("small", {}, ` at ${written(at)}`));
    return made;
  });
  const foot = (text, key, values, write, best) => {
    const on = STATE.columns === key, looks = { "data-columns": key, "aria-pressed": on };
    const top = best(...values.filter((v) => v !== null));
    const said = (v) => (v === null ? "-" : v === top ? element("b", {}, write(v)) : write(v));
    const sort = button(text, () => draw({ columns: on ? null : key }), looks);
    return line(sort, columns.map((c) => element("td", {}, said(values[c]))));
  };
  byId("scores").replaceChildren(
    element("thead", {}, element("tr", {}, head("distribution", "label"), ...heads)),
    element("tbody", {}, ...body),
    element("tfoot", {},
      foot("mean rank", "rank", ranks, (r) => r.toFixed(2), Math.min),
      foot("wins", "wins", wins, String, (...all) => Math.max(1, ...all))),
  );
}

function scoreCell(entry, digits) {
  if (!entry) return element("td", {}, "-");
  const { mean, low, high, sd, runs, best, star, rank, of } = entry;
  const text = formOf(digits)(mean), wanted = byId("spread").value;
  const beside = (size) => (sd === null ? "" : `± ${formOf(digits, size)(size)}`);
  const spread = { none: "", interval: intervalOf(digits, low, high), sd: beside(sd),
    error: beside(sd / Math.sqrt(runs)) }[wanted];
  return element("td", {}, best ? element("b", {}, text) : text, star ? "* " : " ",
    element("small", {}, `${rank}/${of}`), " ", element("small", {}, spread));
}

// Colours of ranks: cividis, whose lightness falls, so that it reads in grey as well.
function paint(rank, text, count) {
  if (rank === null) return element("td", {}, "-");
  const shades = DATA.shades, last = shades.length - 1, cell = element("td", {}, text);
  const at = (last * (rank - 1)) / Math.max(1, count - 1), k = Math.min(last - 1, Math.floor(at));
  const rgb = shades[k].map((c, i) => Math.round(c + (at - k) * (shades[k + 1][i] - c)));
  cell.style.background = `rgb(${rgb})`;
  cell.style.color = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 127 ? "#111111" : "#ffffff";
  return cell;
}

function makeRanks({ algorithms, distributions, rows, ranks }) {
  const columns = [...algorithms.keys()].sort(upwards(ranks)), count = algorithms.length;
  const heads = columns.map((c) => {
    const { label, ours } = DATA.algorithms[algorithms[c]];
    return element("th", { scope: "col", class: ours ? "ours" : "", title: label }, label);
  });
  const body = rows.map((row, r) => {
    const cells = columns.map((c) => paint(row[c]?.rank ?? null, `${row[c]?.rank}`, count));
    const made = line(button(DATA.distributions[distributions[r]].label), cells);
    made.addEventListener("click", () => show(distributions[r])); // of its button, too
    return made;
  });
  const means = columns.map((c) => paint(ranks[c], ranks[c]?.toFixed(1), count));
  byId("ranks").replaceChildren(
    element("thead", {}, element("tr", {}, element("td"), ...heads)),
    element("tbody", {}, ...body), element("tfoot", {}, line("mean rank", means)),
  );
}

// Measures are sorted where they stand; a third time is the order of the campaign again.
function sortMeasures() {
  for (const table of document.querySelectorAll(".measure")) {
    const given = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
    const sort = (head, c) => {
      const order = { ascending: "descending", descending: "" }[head.ariaSort] ?? "ascending";
      const sign = order === "descending" ? -1 : 1;
      const key = (row) => Number(row.cells[c].dataset.value); // NaN: at the end, either way
      const byValue = (x, y) => isNaN(x) - isNaN(y) || (x === y || isNaN(x) ? 0 : sign * (x - y));
      const byLabel = (a, b) => sign * compare(a.cells[0].textContent, b.cells[0].textContent);
      const rows = [...given];
      if (order) rows.sort((a, b) => (c ? byValue(key(a), key(b)) : byLabel(a, b)));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (order) head.setAttribute("aria-sort", order);
      table.tBodies[0].append(...rows);
    };
    heads.forEach((head, c) => head.firstChild.addEventListener("click", () => sort(head, c)));
  }
}

function makeMeasures(view) {
  for (const kind of ["algorithm", "distribution"])
    for (const node of document.querySelectorAll(`.measure [data-${kind}]`))
      node.hidden = !view[`${kind}s`].includes(Number(node.dataset[kind]));
}
