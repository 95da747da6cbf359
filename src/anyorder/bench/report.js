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
  const wanted = words
    .toLowerCase()
    .split(",")
    .map((w) => w.trim())
    .filter(Boolean);
  return !wanted.length || wanted.some((word) => label.toLowerCase().includes(word));
}

// Which are chosen, by number: those that fit the search and are not hidden.
function chosen(kind) {
  return DATA[kind]
    .map((_, k) => k)
    .filter((k) => fits(DATA[kind][k].label, STATE.words[kind]) && !STATE.hidden[kind].has(k));
}

function toggle(kind, k) {
  const hidden = STATE.hidden[kind];
  if (!hidden.delete(k)) hidden.add(k);
}

// --- what is chosen -------------------------------------------------------------------------

function makePicker(kind) {
  const host = byId(`pick-${kind}`);
  const search = element("input", {
    type: "search",
    placeholder: "search: one, another",
    "aria-label": `Search ${kind}`,
  });
  const all = element("button", { type: "button" }, "all");
  const none = element("button", { type: "button" }, "none");
  const count = element("output");
  const choices = element("div", { class: "choices" });
  const boxes = DATA[kind].map((item, k) => {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => {
      toggle(kind, k);
      draw();
    });
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
  search.addEventListener("input", () => {
    STATE.words[kind] = search.value;
    draw();
  });
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

// --- figures ----------------------------------------------------------------------------------

// A legend that hides and shows algorithms; `lines(a)` are the texts after a label.
function makeLegend(host, caption, heads, members, lines) {
  const body = members.map((a) => {
    const look = DATA.algorithms[a],
      on = !STATE.hidden.algorithms.has(a);
    const button = element(
      "button",
      { type: "button", "aria-pressed": on, "data-algorithm": a },
      swatch(look),
      shortOf(look.label),
    );
    if (look.ours) button.className = "ours";
    button.addEventListener("click", () => {
      toggle("algorithms", a);
      draw();
      host.querySelector(`[data-algorithm="${a}"]`)?.focus(); // it was drawn anew
    });
    const texts = on ? lines(a) : heads.map(() => "");
    return element("tr", {}, element("td", {}, button), ...texts.map((t) => element("td", {}, t)));
  });
  host.replaceChildren(
    element("caption", {}, caption),
    element(
      "thead",
      {},
      element("tr", {}, element("td"), ...heads.map((h) => element("th", { scope: "col" }, h))),
    ),
    element("tbody", {}, ...body),
  );
}

const after = (n) => `after ${n.toLocaleString("en-GB")} evaluations`;
const searched = () =>
  DATA.algorithms
    .map((_, a) => a)
    .filter((a) => fits(DATA.algorithms[a].label, STATE.words.algorithms));

function makeConvergence(view) {
  const { algorithms, distributions } = view;
  const select = byId("distribution");
  if (!distributions.includes(STATE.shown) && distributions.length) [STATE.shown] = distributions;
  select.replaceChildren(
    ...distributions.map((k) => element("option", { value: k }, DATA.distributions[k].label)),
  );
  select.value = STATE.shown;
  const d = DATA.distributions[STATE.shown],
    log = byId("log").checked;
  const series = algorithms
    .filter((a) => d.cells[a])
    .map((a) => ({ look: DATA.algorithms[a], label: DATA.algorithms[a].label, ...d.cells[a] }));
  const entries = (g) => entriesOf(d, algorithms, d.grid[g], DATA.level);
  const ends = series
    .map((s) => s.mean.filter((m) => m !== null).pop())
    .filter((m) => m !== undefined);
  const format = formOf(ends);
  const legend = (g) => {
    const place = g === null ? Math.max(0, placeOf(d.grid, GRID[STATE.place])) : g;
    const found = entries(place);
    makeLegend(
      byId("convergence-legend"),
      after(d.grid[place]),
      ["mean", "95 % interval", "rank"],
      searched().filter((a) => d.cells[a]),
      (a) => {
        const entry = found[algorithms.indexOf(a)];
        if (!entry) return ["-", "", ""];
        const band = entry.low === null ? "" : intervalOf(ends, entry);
        return [format(entry.mean) + (entry.star ? "*" : ""), band, `${entry.rank}/${entry.of}`];
      },
    );
  };
  legend(null);
  const end = d.grid[d.grid.length - 1];
  // as figures.py: from the lowest mean after a twentieth of the budget, to tell the ends apart
  const starts = series
    .map((s) => s.mean.find((m, g) => m !== null && (log || d.grid[g] >= end / 20)))
    .filter((m) => m !== undefined);
  const low = Math.min(...starts),
    high = Math.max(...ends),
    margin = 0.05 * (high - low) || 0.5;
  const view_ = series.length && starts.length ? [low - margin, high + margin] : [0, 1];
  drawLines(byId("convergence"), {
    grid: d.grid,
    series,
    log,
    view: view_,
    format,
    onPoint: legend,
    xlabel: "evaluations",
    ylabel: "mean best value",
    title: `Convergence on ${d.label}`,
  });
}

function makeEcdf(view) {
  const { algorithms, distributions } = view;
  const series = algorithms.map((a) => {
    const on = distributions.map((k) => DATA.distributions[k]).filter((d) => d.cells[a]);
    const mean = GRID.map((n) =>
      meanOf(
        on.map((d) => {
          const g = placeOf(d.grid, n);
          return g < 0 ? 0 : d.cells[a].share[g];
        }),
      ),
    );
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
  drawLines(byId("ecdf"), {
    grid: GRID,
    series,
    log: true,
    view: [0, 1],
    format,
    onPoint: legend,
    xlabel: "evaluations",
    ylabel: "share of (run, target) pairs reached",
    title: "Share of targets reached",
  });
}

function makeCritical({ algorithms, rows }) {
  const whole = rows
    .filter((row) => row.every((entry) => entry))
    .map((row) => row.map((entry) => entry.rank));
  const text = byId("critical-text");
  if (algorithms.length < 2 || whole.length < 2) {
    text.textContent =
      "This needs two algorithms at least, and two distributions on which all of them have runs.";
    byId("critical").replaceChildren();
    return;
  }
  const found = criticalOf(whole, DATA.quantiles);
  const p = found.p < 0.001 ? "< 0.001" : `= ${found.p.toFixed(3)}`;
  text.textContent =
    `Mean ranks on the ${whole.length} distributions where all chosen algorithms have runs, ${after(GRID[STATE.place])}; ` +
    `p ${p} that they do not differ (Friedman). A bar joins those that cannot be told apart (Nemenyi, ${DATA.alpha}).`;
  drawCritical(
    byId("critical"),
    found,
    algorithms.map((a) => DATA.algorithms[a]),
  );
}

// --- all of it --------------------------------------------------------------------------------

function draw() {
  const algorithms = chosen("algorithms"),
    distributions = chosen("distributions");
  const rows = distributions.map((k) =>
    entriesOf(DATA.distributions[k], algorithms, GRID[STATE.place], DATA.level),
  );
  const ranks = algorithms.map((_, c) => meanOf(rows.map((row) => (row[c] ? row[c].rank : null))));
  const wins = algorithms.map((_, c) => rows.filter((row) => row[c] && row[c].best).length);
  const view = { algorithms, distributions, rows, ranks, wins };
  byId("at").textContent = GRID[STATE.place].toLocaleString("en-GB");
  byId("evaluations").setAttribute("aria-valuetext", after(GRID[STATE.place]));
  PICKERS.forEach((refresh) => refresh());
  const all = [makeTable, makeConvergence, makeRanks, makeEcdf, makeCritical, makeMeasures];
  for (const make of all) make(view);
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
byId("evaluations").addEventListener("input", (event) => {
  STATE.place = Number(event.target.value);
  draw();
});
sortMeasures();
byId("spread").addEventListener("change", draw);
byId("log").addEventListener("change", draw);
byId("distribution").addEventListener("change", (event) => {
  STATE.shown = Number(event.target.value);
  draw();
});
draw();
