"use strict";
// The page: what is chosen, and everything drawn from it. Labels only ever become text nodes.

const DATA = decode(JSON.parse(document.getElementById("data").textContent));
const GRID = [...new Set(DATA.distributions.flatMap((d) => d.grid))].sort((a, b) => a - b);
const STATE = {
  place: GRID.length - 1, // in GRID
  shown: 0, // the distribution whose convergence is drawn
  sort: { by: null, down: false }, // rows: by an algorithm, or "label"
  columns: null, // "rank" or "wins"
  hidden: { distributions: new Set(), algorithms: new Set() },
  words: { distributions: "", algorithms: "" },
};
const byId = (id) => document.getElementById(id);

function fits(label, words) {
  const wanted = words.toLowerCase().split(",").map((w) => w.trim()).filter(Boolean);
  return !wanted.length || wanted.some((word) => label.toLowerCase().includes(word));
}

// Which are chosen, by number: those that fit the search and are not hidden.
function chosen(kind) {
  return DATA[kind].map((_, k) => k).filter((k) => fits(DATA[kind][k].label, STATE.words[kind]) && !STATE.hidden[kind].has(k));
}

function toggle(kind, k) {
  const hidden = STATE.hidden[kind];
  if (!hidden.delete(k)) hidden.add(k);
}

// --- what is chosen -------------------------------------------------------------------------

function makePicker(kind) {
  const host = byId(`pick-${kind}`);
  const search = element("input", { type: "search", placeholder: "search: one, another", "aria-label": `Search ${kind}` });
  const all = element("button", { type: "button" }, "all");
  const none = element("button", { type: "button" }, "none");
  const count = element("output");
  const choices = element("div", { class: "choices" });
  const boxes = DATA[kind].map((item, k) => {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => { toggle(kind, k); draw(); });
    const label = element("label", {}, box, ` ${item.label}`);
    choices.append(label);
    return { box, label };
  });
  const every = (hide) => {
    DATA[kind].forEach((item, k) => {
      if (!fits(item.label, STATE.words[kind])) return;
      if (hide) STATE.hidden[kind].add(k);
      else STATE.hidden[kind].delete(k);
    });
    draw();
  };
  all.addEventListener("click", () => every(false));
  none.addEventListener("click", () => every(true));
  search.addEventListener("input", () => { STATE.words[kind] = search.value; draw(); });
  const list = element("details", {}, element("summary", {}, "choose "), choices);
  list.firstChild.append(count);
  host.append(search, " ", all, " ", none, list);
  return () => {
    boxes.forEach(({ box, label }, k) => {
      box.checked = !STATE.hidden[kind].has(k);
      label.hidden = !fits(DATA[kind][k].label, STATE.words[kind]);
    });
    count.textContent = `(${chosen(kind).length} of ${DATA[kind].length})`;
  };
}

// --- scores -----------------------------------------------------------------------------------

function makeTable(view) {
  const { distributions, algorithms, rows, ranks, wins } = view;
  const spread = byId("spread").value;
  const columns = algorithms.map((_, k) => k);
  if (STATE.columns === "rank") columns.sort((a, b) => (ranks[a] ?? Infinity) - (ranks[b] ?? Infinity));
  if (STATE.columns === "wins") columns.sort((a, b) => wins[b] - wins[a]);
  const lines = distributions.map((_, k) => k);
  const { by, down } = STATE.sort;
  if (by === "label") lines.sort((a, b) => DATA.distributions[distributions[a]].label.localeCompare(DATA.distributions[distributions[b]].label, "en", { numeric: true }));
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
  const thead = element("thead", {}, element("tr", {}, head("distribution", "label"), ...columns.map((c) => head(DATA.algorithms[algorithms[c]].label, algorithms[c]))));
  const body = element("tbody");
  for (const r of lines) {
    const d = DATA.distributions[distributions[r]];
    const form = formOf(rows[r].filter((entry) => entry).map((entry) => entry.mean));
    const name = element("th", { scope: "row" }, d.label);
    const place = placeOf(d.grid, GRID[STATE.place]);
    if (place >= 0 && d.grid[place] !== GRID[STATE.place]) name.append(element("small", {}, ` at ${d.grid[place].toLocaleString("en-GB")}`));
    body.append(element("tr", {}, name, ...columns.map((c) => scoreCell(rows[r][c], form, spread))));
  }
  const foot = (text, key, values, write, best) => {
    const button = element("button", { type: "button", "data-columns": key, "aria-pressed": STATE.columns === key }, text);
    button.addEventListener("click", () => { STATE.columns = STATE.columns === key ? null : key; draw(); });
    const top = best(values.filter((v) => v !== null));
    return element("tr", {}, element("th", { scope: "row" }, button), ...columns.map((c) => {
      const said = values[c] === null ? "-" : write(values[c]);
      return element("td", {}, values[c] !== null && values[c] === top ? element("b", {}, said) : said);
    }));
  };
  byId("scores").replaceChildren(thead, body, element("tfoot", {},
    foot("mean rank", "rank", ranks, (r) => r.toFixed(2), (all) => Math.min(...all)),
    foot("wins", "wins", wins, String, (all) => Math.max(1, ...all))));
}

function scoreCell(entry, form, spread) {
  if (!entry) return element("td", {}, "-");
  const cell = element("td", {}, entry.best ? element("b", {}, form(entry.mean)) : form(entry.mean), entry.star ? "*" : "");
  const said = { none: () => "", interval: () => `[${form(entry.low)}, ${form(entry.high)}]`,
                 sd: () => `± ${form(entry.sd)}`, error: () => `± ${form(entry.sd / Math.sqrt(entry.runs))}` };
  cell.append(" ", element("small", {}, `${entry.rank}/${entry.of}`));
  if (spread !== "none" && entry.sd !== null) cell.append(" ", element("small", {}, said[spread]()));
  return cell;
}

// --- figures ----------------------------------------------------------------------------------

// A legend that hides and shows algorithms; `lines(a)` are the texts after a label.
function makeLegend(host, caption, heads, members, lines) {
  const body = members.map((a) => {
    const look = DATA.algorithms[a], on = !STATE.hidden.algorithms.has(a);
    const button = element("button", { type: "button", "aria-pressed": on, "data-algorithm": a }, swatch(look), look.label);
    if (look.ours) button.className = "ours";
    button.addEventListener("click", () => {
      toggle("algorithms", a);
      draw();
      host.querySelector(`[data-algorithm="${a}"]`)?.focus(); // it was drawn anew
    });
    const texts = on ? lines(a) : heads.map(() => "");
    return element("tr", {}, element("td", {}, button), ...texts.map((t) => element("td", {}, t)));
  });
  host.replaceChildren(element("caption", {}, caption), element("thead", {}, element("tr", {}, element("td"), ...heads.map((h) => element("th", { scope: "col" }, h)))), element("tbody", {}, ...body));
}

const after = (n) => `after ${n.toLocaleString("en-GB")} evaluations`;
const searched = () => DATA.algorithms.map((_, a) => a).filter((a) => fits(DATA.algorithms[a].label, STATE.words.algorithms));

function makeConvergence(view) {
  const { algorithms, distributions } = view;
  const select = byId("distribution");
  if (!distributions.includes(STATE.shown) && distributions.length) [STATE.shown] = distributions;
  select.replaceChildren(...distributions.map((k) => element("option", { value: k }, DATA.distributions[k].label)));
  select.value = STATE.shown;
  const d = DATA.distributions[STATE.shown], log = byId("log").checked;
  const series = algorithms.filter((a) => d.cells[a]).map((a) => ({ look: DATA.algorithms[a], label: DATA.algorithms[a].label, ...d.cells[a] }));
  const entries = (g) => entriesOf(d, algorithms, d.grid[g], DATA.level);
  const ends = series.map((s) => s.mean.filter((m) => m !== null).pop()).filter((m) => m !== undefined);
  const format = formOf(ends);
  const legend = (g) => {
    const place = g === null ? Math.max(0, placeOf(d.grid, GRID[STATE.place])) : g;
    const found = entries(place);
    makeLegend(byId("convergence-legend"), after(d.grid[place]), ["mean", "95 % interval", "rank"], searched().filter((a) => d.cells[a]), (a) => {
      const entry = found[algorithms.indexOf(a)];
      if (!entry) return ["-", "", ""];
      const band = entry.low === null ? "" : `[${format(entry.low)}, ${format(entry.high)}]`;
      return [format(entry.mean) + (entry.star ? "*" : ""), band, `${entry.rank}/${entry.of}`];
    });
  };
  legend(null);
  const end = d.grid[d.grid.length - 1];
  // as figures.py: from the lowest mean after a twentieth of the budget, to tell the ends apart
  const starts = series.map((s) => s.mean.find((m, g) => m !== null && (log || d.grid[g] >= end / 20))).filter((m) => m !== undefined);
  const low = Math.min(...starts), high = Math.max(...ends), margin = 0.05 * (high - low) || 0.5;
  const view_ = series.length && starts.length ? [low - margin, high + margin] : [0, 1];
  drawLines(byId("convergence"), { grid: d.grid, series, log, view: view_, format, onPoint: legend,
    xlabel: "evaluations", ylabel: "mean best value", title: `Convergence on ${d.label}` });
}

function makeEcdf(view) {
  const { algorithms, distributions } = view;
  const series = algorithms.map((a) => {
    const on = distributions.map((k) => DATA.distributions[k]).filter((d) => d.cells[a]);
    const mean = GRID.map((n) => meanOf(on.map((d) => {
      const g = placeOf(d.grid, n);
      return g < 0 ? 0 : d.cells[a].share[g];
    })));
    return { look: DATA.algorithms[a], label: DATA.algorithms[a].label, mean };
  });
  const format = (share) => share.toFixed(3);
  const legend = (g) => {
    const place = g === null ? STATE.place : g;
    makeLegend(byId("ecdf-legend"), after(GRID[place]), ["share"], searched(), (a) => {
      const share = series[algorithms.indexOf(a)].mean[place];
      return [share === null ? "-" : format(share)];
    });
  };
  legend(null);
  drawLines(byId("ecdf"), { grid: GRID, series, log: true, view: [0, 1], format, onPoint: legend,
    xlabel: "evaluations", ylabel: "share of (run, target) pairs reached", title: "Share of targets reached" });
}

const CIVIDIS = [[254, 232, 56], [222, 201, 88], [188, 174, 108], [155, 148, 118], [125, 124, 120], [97, 101, 111], [67, 78, 108], [26, 56, 111], [0, 34, 78]];

function paint(cell, rank, count) {
  const at = (8 * (rank - 1)) / Math.max(1, count - 1), k = Math.min(7, Math.floor(at));
  const rgb = CIVIDIS[k].map((c, i) => Math.round(c + (at - k) * (CIVIDIS[k + 1][i] - c)));
  cell.style.background = `rgb(${rgb})`;
  cell.style.color = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 127 ? "#111111" : "#ffffff";
}

function makeRanks(view) {
  const { algorithms, distributions, rows, ranks } = view;
  const columns = algorithms.map((_, k) => k).sort((a, b) => (ranks[a] ?? Infinity) - (ranks[b] ?? Infinity));
  const head = element("tr", {}, element("td"), ...columns.map((c) => {
    const look = DATA.algorithms[algorithms[c]];
    return element("th", { scope: "col", class: look.ours ? "ours" : "" }, look.label);
  }));
  const open = (r) => {
    STATE.shown = distributions[r];
    draw();
    byId("convergence-title").scrollIntoView({ block: "center" });
    byId("distribution").focus({ preventScroll: true });
  };
  const cells = []; // one of them is reached by Tab, the others by arrows
  const body = rows.map((row, r) => {
    cells.push(columns.map((c, k) => {
      const cell = element("td", { tabindex: r || k ? -1 : 0 }, row[c] ? String(row[c].rank) : "-");
      if (row[c]) paint(cell, row[c].rank, algorithms.length);
      cell.title = `${DATA.algorithms[algorithms[c]].label} on ${DATA.distributions[distributions[r]].label}`;
      cell.addEventListener("click", () => open(r));
      cell.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(r); }
        const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
        const next = cells[r + down]?.[k + right];
        if (!next || next === cell) return;
        event.preventDefault();
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
      return cell;
    }));
    return element("tr", {}, element("th", { scope: "row" }, DATA.distributions[distributions[r]].label), ...cells[r]);
  });
  const means = element("tr", {}, element("th", { scope: "row" }, "mean rank"), ...columns.map((c) => {
    const cell = element("td", {}, ranks[c] === null ? "-" : ranks[c].toFixed(1));
    if (ranks[c] !== null) paint(cell, ranks[c], algorithms.length);
    return cell;
  }));
  byId("ranks").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body), element("tfoot", {}, means));
}

function makeCritical({ algorithms, rows }) {
  const whole = rows.filter((row) => row.every((entry) => entry)).map((row) => row.map((entry) => entry.rank));
  const text = byId("critical-text");
  if (algorithms.length < 2 || whole.length < 2) {
    text.textContent = "This needs two algorithms at least, and two distributions on which all of them have runs.";
    byId("critical").replaceChildren();
    return;
  }
  const found = criticalOf(whole, DATA.quantiles);
  const p = found.p < 0.001 ? "< 0.001" : `= ${found.p.toFixed(3)}`;
  text.textContent = `Mean ranks on the ${whole.length} distributions where all chosen algorithms have runs, ${after(GRID[STATE.place])}; ` +
    `p ${p} that they do not differ (Friedman). A bar joins those that cannot be told apart (Nemenyi, ${DATA.alpha}).`;
  drawCritical(byId("critical"), found, algorithms.map((a) => DATA.algorithms[a]));
}

// --- all of it --------------------------------------------------------------------------------

function draw() {
  const algorithms = chosen("algorithms"), distributions = chosen("distributions");
  const rows = distributions.map((k) => entriesOf(DATA.distributions[k], algorithms, GRID[STATE.place], DATA.level));
  const ranks = algorithms.map((_, c) => meanOf(rows.map((row) => (row[c] ? row[c].rank : null))));
  const wins = algorithms.map((_, c) => rows.filter((row) => row[c] && row[c].best).length);
  const view = { algorithms, distributions, rows, ranks, wins };
  byId("at").textContent = GRID[STATE.place].toLocaleString("en-GB");
  byId("evaluations").setAttribute("aria-valuetext", after(GRID[STATE.place]));
  PICKERS.forEach((refresh) => refresh());
  for (const make of [makeTable, makeConvergence, makeRanks, makeEcdf, makeCritical]) make(view);
}

function dark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

document.documentElement.classList.add("js");
const PICKERS = ["distributions", "algorithms"].map(makePicker);
byId("theme").textContent = dark() ? "Light" : "Dark";
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  byId("theme").textContent = dark() ? "Light" : "Dark";
});
byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("evaluations").max = GRID.length - 1;
byId("evaluations").value = STATE.place;
byId("evaluations").addEventListener("input", (event) => { STATE.place = Number(event.target.value); draw(); });
byId("spread").addEventListener("change", draw);
byId("log").addEventListener("change", draw);
byId("distribution").addEventListener("change", (event) => { STATE.shown = Number(event.target.value); draw(); });
draw();
