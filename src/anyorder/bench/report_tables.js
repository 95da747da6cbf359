"use strict";
// The tables of the page: scores, ranks as a heat map, and measures, which come with the page.

function makeTable(view) {
  const { distributions, algorithms, rows, ranks, wins } = view;
  const spread = byId("spread").value;
  const columns = algorithms.map((_, k) => k);
  if (STATE.columns === "rank")
    columns.sort((a, b) => (ranks[a] ?? Infinity) - (ranks[b] ?? Infinity));
  if (STATE.columns === "wins") columns.sort((a, b) => wins[b] - wins[a]);
  const lines = distributions.map((_, k) => k);
  const { by, down } = STATE.sort;
  if (by === "label")
    lines.sort((a, b) =>
      DATA.distributions[distributions[a]].label.localeCompare(
        DATA.distributions[distributions[b]].label,
        "en",
        { numeric: true },
      ),
    );
  const column = algorithms.indexOf(by);
  if (column >= 0) {
    const key = (r) => (rows[r][column] ? rows[r][column].rank : Infinity);
    lines.sort((a, b) => (key(a) === key(b) ? a - b : key(a) - key(b)));
  }
  if (down && (by === "label" || column >= 0)) lines.reverse();

  const head = (text, key) => {
    const button = element("button", { type: "button", "data-sort": key }, text);
    button.addEventListener("click", () => {
      const same = STATE.sort.by === key;
      STATE.sort = same && STATE.sort.down ? { by: null, down: false } : { by: key, down: same };
      draw();
    });
    const cell = element("th", { scope: "col" }, button);
    if (by === key) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    return cell;
  };
  const thead = element(
    "thead",
    {},
    element(
      "tr",
      {},
      head("distribution", "label"),
      ...columns.map((c) => head(DATA.algorithms[algorithms[c]].label, algorithms[c])),
    ),
  );
  const body = element("tbody");
  for (const r of lines) {
    const d = DATA.distributions[distributions[r]];
    const means = rows[r].filter((entry) => entry).map((entry) => entry.mean);
    const name = element("th", { scope: "row" }, d.label);
    const place = placeOf(d.grid, GRID[STATE.place]);
    if (place >= 0 && d.grid[place] !== GRID[STATE.place])
      name.append(element("small", {}, ` at ${d.grid[place].toLocaleString("en-GB")}`));
    body.append(
      element("tr", {}, name, ...columns.map((c) => scoreCell(rows[r][c], means, spread))),
    );
  }
  const foot = (text, key, values, write, best) => {
    const button = element(
      "button",
      { type: "button", "data-columns": key, "aria-pressed": STATE.columns === key },
      text,
    );
    button.addEventListener("click", () => {
      STATE.columns = STATE.columns === key ? null : key;
      draw();
    });
    const top = best(values.filter((v) => v !== null));
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, button),
      ...columns.map((c) => {
        const said = values[c] === null ? "-" : write(values[c]);
        return element(
          "td",
          {},
          values[c] !== null && values[c] === top ? element("b", {}, said) : said,
        );
      }),
    );
  };
  byId("scores").replaceChildren(
    thead,
    body,
    element(
      "tfoot",
      {},
      foot(
        "mean rank",
        "rank",
        ranks,
        (r) => r.toFixed(2),
        (all) => Math.min(...all),
      ),
      foot("wins", "wins", wins, String, (all) => Math.max(1, ...all)),
    ),
  );
}

function scoreCell(entry, means, spread) {
  if (!entry) return element("td", {}, "-");
  const form = formOf(means);
  const cell = element(
    "td",
    {},
    entry.best ? element("b", {}, form(entry.mean)) : form(entry.mean),
    entry.star ? "*" : "",
  );
  const beside = (size) => `± ${formOf(means, size)(size)}`;
  const said = {
    none: () => "",
    interval: () => intervalOf(means, entry),
    sd: () => beside(entry.sd),
    error: () => beside(entry.sd / Math.sqrt(entry.runs)),
  };
  cell.append(" ", element("small", {}, `${entry.rank}/${entry.of}`));
  if (spread !== "none" && entry.sd !== null)
    cell.append(" ", element("small", {}, said[spread]()));
  return cell;
}

const CIVIDIS = [
  [254, 232, 56],
  [222, 201, 88],
  [188, 174, 108],
  [155, 148, 118],
  [125, 124, 120],
  [97, 101, 111],
  [67, 78, 108],
  [26, 56, 111],
  [0, 34, 78],
];

function paint(cell, rank, count) {
  const at = (8 * (rank - 1)) / Math.max(1, count - 1),
    k = Math.min(7, Math.floor(at));
  const rgb = CIVIDIS[k].map((c, i) => Math.round(c + (at - k) * (CIVIDIS[k + 1][i] - c)));
  cell.style.background = `rgb(${rgb})`;
  cell.style.color = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 127 ? "#111111" : "#ffffff";
}

function makeRanks(view) {
  const { algorithms, distributions, rows, ranks } = view;
  const columns = algorithms
    .map((_, k) => k)
    .sort((a, b) => (ranks[a] ?? Infinity) - (ranks[b] ?? Infinity));
  const head = element(
    "tr",
    {},
    element("td"),
    ...columns.map((c) => {
      const look = DATA.algorithms[algorithms[c]];
      return element("th", { scope: "col", class: look.ours ? "ours" : "" }, shortOf(look.label));
    }),
  );
  const open = (r) => {
    STATE.shown = distributions[r];
    draw();
    byId("convergence-title").scrollIntoView({ block: "center" });
    byId("distribution").focus({ preventScroll: true });
  };
  const cells = []; // one of them is reached by Tab, the others by arrows
  const body = rows.map((row, r) => {
    cells.push(
      columns.map((c, k) => {
        const cell = element(
          "td",
          { tabindex: r || k ? -1 : 0 },
          row[c] ? String(row[c].rank) : "-",
        );
        if (row[c]) paint(cell, row[c].rank, algorithms.length);
        cell.title = `${DATA.algorithms[algorithms[c]].label} on ${DATA.distributions[distributions[r]].label}`;
        cell.addEventListener("click", () => open(r));
        cell.addEventListener("keydown", (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            open(r);
          }
          const [down, right] = {
            ArrowUp: [-1, 0],
            ArrowDown: [1, 0],
            ArrowLeft: [0, -1],
            ArrowRight: [0, 1],
          }[event.key] ?? [0, 0];
          const next = cells[r + down]?.[k + right];
          if (!next || next === cell) return;
          event.preventDefault();
          cell.tabIndex = -1;
          next.tabIndex = 0;
          next.focus();
        });
        return cell;
      }),
    );
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, DATA.distributions[distributions[r]].label),
      ...cells[r],
    );
  });
  const means = element(
    "tr",
    {},
    element("th", { scope: "row" }, "mean rank"),
    ...columns.map((c) => {
      const cell = element("td", {}, ranks[c] === null ? "-" : ranks[c].toFixed(1));
      if (ranks[c] !== null) paint(cell, ranks[c], algorithms.length);
      return cell;
    }),
  );
  byId("ranks").replaceChildren(
    element("thead", {}, head),
    element("tbody", {}, ...body),
    element("tfoot", {}, means),
  );
}

// Measures are sorted where they stand; a third time is the order of the campaign again.
function sortMeasures() {
  for (const table of document.querySelectorAll(".measure")) {
    const body = table.tBodies[0],
      given = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, c) =>
      head.firstChild.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[head.ariaSort];
        const order = next === undefined ? "ascending" : next;
        const key = (row) => Number(row.cells[c].dataset.value);
        const rows = [...given];
        const sign = order === "descending" ? -1 : 1;
        const last = (x) => (Number.isNaN(x) ? 1 : 0); // without a value: at the end, either way
        const byValue = (x, y) => last(x) - last(y) || (x === y || last(x) ? 0 : sign * (x - y));
        const byLabel = (a, b) =>
          sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
        if (order)
          rows.sort((a, b) => (c ? byValue(key(a), key(b)) : byLabel(a.cells[0], b.cells[0])));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        body.append(...rows);
      }),
    );
  }
}

function makeMeasures({ algorithms, distributions }) {
  for (const node of document.querySelectorAll(".measure [data-algorithm]"))
    node.hidden = !algorithms.includes(Number(node.dataset.algorithm));
  for (const node of document.querySelectorAll(".measure [data-distribution]"))
    node.hidden = !distributions.includes(Number(node.dataset.distribution));
}
