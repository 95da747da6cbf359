"use strict";
// The page: what is chosen, and everything drawn from it. Labels only ever become text nodes; those
// of figures come escaped.

const STATE = {
  place: 0, // in GRID
  shown: 0, // the distribution whose convergence is drawn
  sort: { by: null, down: false }, // rows: by an algorithm, or "label"
  columns: null, // "rank" or "wins"
  hidden: { distributions: new Set(), algorithms: new Set() },
  words: { distributions: "", algorithms: "" },
};
let DATA, GRID, PICKERS;
const byId = (id) => document.getElementById(id);
const written = (n) => n.toLocaleString("en-GB");
const drawable = (y) => (y === null ? null : Math.max(-1e299, Math.min(1e299, y))); // as views

// By number: which fit the search, and which of those are chosen.
function found(kind) {
  const words = STATE.words[kind].toLowerCase().split(",").map((w) => w.trim()).filter(Boolean);
  const fits = (label) => !words.length || words.some((w) => label.toLowerCase().includes(w));
  return [...DATA[kind].keys()].filter((k) => fits(DATA[kind][k].label));
}
const chosen = (kind) => found(kind).filter((k) => !STATE.hidden[kind].has(k));

function makePicker(kind) {
  const hidden = STATE.hidden[kind];
  const hide = (some, on) => {
    for (const k of some) hidden[on ? "add" : "delete"](k);
    draw();
  };
  const search = element("input", { type: "search", placeholder: "search: one, another",
    "aria-label": `Search ${kind}`,
    oninput: () => draw({ words: { ...STATE.words, [kind]: search.value } }) });
  const boxes = DATA[kind].map((item, k) => {
    const box = element("input", { type: "checkbox", onchange: () => hide([k], !box.checked) });
    return element("label", {}, box, ` ${item.label}`);
  });
  const count = element("output"), head = element("summary", {}, "choose ", count);
  const list = element("details", {}, head, element("div", { class: "choices" }, ...boxes));
  byId(`pick-${kind}`).append(search, " ", button("all", () => hide(found(kind), false)), " ",
    button("none", () => hide(found(kind), true)), list);
  return () => {
    const there = found(kind);
    boxes.forEach((label, k) => {
      label.firstChild.checked = !hidden.has(k);
      label.hidden = !there.includes(k);
    });
    count.textContent = `(${chosen(kind).length} of ${DATA[kind].length})`;
  };
}

// The ends of an axis: of all lines but those that are far below the others.
function endsOf(views) {
  const lows = views.map(([low]) => low).sort((a, b) => b - a);
  const top = Math.max(...views.map(([, high]) => high));
  const reach = 10 * (top - lows[(lows.length - 1) >> 1]);
  const low = reach > 0 ? lows.findLast((x) => x >= top - reach) : lows.at(-1);
  const margin = 0.05 * (top - low) || Math.max(0.5, 1e-9 * Math.abs(top));
  return lows.length ? [low - margin, top + margin] : [0, 1];
}

function makeConvergence({ algorithms, distributions }) {
  if (!distributions.includes(STATE.shown)) STATE.shown = distributions[0] ?? 0;
  const option = (k) => element("option", { value: k }, DATA.distributions[k].label);
  byId("distribution").replaceChildren(...distributions.map(option));
  byId("distribution").value = STATE.shown;
  const d = DATA.distributions[STATE.shown], log = byId("log").checked;
  const shown = algorithms.filter((a) => d.cells[a]?.view);
  const range = endsOf(shown.map((a) => d.cells[a].view[log ? "whole" : "late"]));
  const form = formOf(d.digits), points = [...d.grid.keys()];
  const data = shown.flatMap((a) => {
    const { mean, low, high } = d.cells[a], { band, curve, beyond } = DATA.algorithms[a];
    const there = points.filter((g) => low[g] !== null), back = there.toReversed();
    const end = mean.findLastIndex((m) => m !== null);
    const text = mean.map((m, g) => `${form(m)} ${intervalOf(d.digits, low[g], high[g])}`);
    const x = [...there, ...back].map((g) => d.grid[g]);
    const y = [...there.map((g) => high[g]), ...back.map((g) => low[g])].map(drawable);
    const edge = { ...beyond, x: [d.grid[end]], y: [range[0]], text: [text[end]] };
    const traces = [{ ...band, x, y }, { ...curve, x: d.grid, y: mean.map(drawable), text }];
    return mean[end] < range[0] ? [...traces, edge] : traces;
  });
  const { layout } = DATA.charts.convergence, xaxis = { ...layout.xaxis, ...(log ? d.log : d.x) };
  const yaxis = { ...layout.yaxis, ...d.y, range };
  anyorder.draw(byId("convergence"), { data, layout: { ...layout, xaxis, yaxis } });
}

function makeEcdf({ algorithms, distributions }) {
  const data = algorithms.map((a) => {
    const on = distributions.map((k) => DATA.distributions[k]).filter((d) => d.cells[a]);
    const y = GRID.map((n) => meanOf(on.map((d) => d.cells[a].share[placeOf(d.grid, n)] ?? 0)));
    return { ...DATA.algorithms[a].curve, x: GRID, y, text: y.map((s) => s?.toFixed(3)) };
  });
  anyorder.draw(byId("ecdf"), { data, layout: DATA.charts.ecdf.layout });
}

function makeCritical({ algorithms, rows }) {
  const whole = rows.filter((row) => row.every((e) => e)).map((row) => row.map((e) => e.rank));
  const { layout, dot, few, missing } = DATA.charts.critical, host = byId("critical");
  const said = missing ?? (algorithms.length < 2 || whole.length < 2 ? few : null);
  host.hidden = said !== null;
  byId("critical-text").textContent = said;
  if (said !== null) return;
  const { order, ranks, gap, level } = criticalOf(whole, DATA.tests);
  const p = level ? `< ${level}` : `> ${DATA.tests.friedman.levels[0]}`;
  byId("critical-text").textContent =
    `Mean ranks on the ${whole.length} distributions where all these algorithms have runs, after ` +
    `${written(GRID[STATE.place])} evaluations; p ${p} that they are alike (Friedman). ` +
    "Algorithms whose bars overlap cannot be told apart: their ranks differ by less than the " +
    `critical difference, ${gap.toFixed(2)} (Nemenyi, ${DATA.tests.alpha}).`;
  const data = order.map((c, k) => {
    const { curve } = DATA.algorithms[algorithms[c]], { color } = curve.line;
    const text = [ranks[k].toFixed(2)], error_x = { ...dot.error_x, value: gap / 2, color };
    return { ...curve, ...dot, x: [ranks[k]], y: [k], text, error_x };
  });
  const places = [...order.keys()], ticktext = data.map((trace) => trace.name);
  const xaxis = { ...layout.xaxis, tickvals: places.map((k) => k + 1) };
  const yaxis = { ...layout.yaxis, tickvals: places, ticktext, range: [order.length - 0.4, -0.6] };
  host.style.height = `${90 + 26 * order.length}px`;
  anyorder.draw(host, { data, layout: { ...layout, xaxis, yaxis } });
}

function show(k) {
  draw({ shown: k });
  byId("convergence-title").scrollIntoView({ block: "center" });
  byId("distribution").focus({ preventScroll: true });
}

function draw(changes = {}) {
  Object.assign(STATE, changes);
  const algorithms = chosen("algorithms"), distributions = chosen("distributions");
  const after = GRID[STATE.place];
  const rows = distributions.map((k) => entriesOf(DATA.distributions[k], algorithms, after));
  const ranks = algorithms.map((_, c) => meanOf(rows.map((row) => row[c]?.rank ?? null)));
  const wins = algorithms.map((_, c) => rows.filter((row) => row[c]?.best).length);
  byId("at").textContent = written(after);
  byId("evaluations").setAttribute("aria-valuetext", `after ${written(after)} evaluations`);
  PICKERS.forEach((refresh) => refresh());
  for (const make of [makeTable, makeConvergence, makeRanks, makeEcdf, makeCritical, makeMeasures])
    make({ algorithms, distributions, rows, ranks, wins });
}

async function start() {
  DATA = await unpack(anyorder.data());
  GRID = [...new Set(DATA.distributions.flatMap((d) => d.grid))].sort((a, b) => a - b);
  PICKERS = ["distributions", "algorithms"].map(makePicker);
  const on = (id, kind, change) => byId(id).addEventListener(kind, change);
  on("controls", "submit", (event) => event.preventDefault());
  byId("evaluations").max = byId("evaluations").value = GRID.length - 1;
  on("evaluations", "input", (event) => draw({ place: Number(event.target.value) }));
  on("distribution", "change", (event) => draw({ shown: Number(event.target.value) }));
  for (const id of ["spread", "log"]) on(id, "change", () => draw());
  sortMeasures();
  draw({ place: GRID.length - 1 });
}

start();
