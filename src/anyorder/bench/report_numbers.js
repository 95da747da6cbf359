"use strict";
// The numbers of the page for what is chosen: ranks and formats. Tests come from Python.

async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// The last point of a grid that is not after `evaluations`; -1 before the first.
const placeOf = (grid, evaluations) => grid.findLastIndex((n) => n <= evaluations);

function meanOf(values) {
  const found = values.filter((x) => x !== null);
  return found.length ? found.reduce((a, b) => a + b, 0) / found.length : null;
}

// A row of the table: for each chosen algorithm what it has after so many evaluations, or null.
function entriesOf(d, algorithms, evaluations) {
  const g = placeOf(d.grid, evaluations);
  const has = (a) => g >= 0 && d.cells[a] && d.cells[a].rank[g] !== null;
  const order = algorithms.filter(has).sort((a, b) => d.cells[a].rank[g] - d.cells[b].rank[g]);
  const all = order.map((a) => d.cells[a].rank[g]); // among all algorithms
  const [first, second] = order;
  const pair = `${Math.min(first, second)}-${Math.max(first, second)}`;
  const star = all[0] < all[1] && d.better[pair]?.[g] === "1";
  return algorithms.map((a) => {
    if (!has(a)) return null;
    const { mean, low, high, sd, rank, runs } = d.cells[a];
    return {
      mean: mean[g], low: low[g], high: high[g], sd: sd[g], runs, of: all.length,
      rank: (all.indexOf(rank[g]) + all.lastIndexOf(rank[g])) / 2 + 1, // ties share the mean
      best: rank[g] === all[0], star: star && a === first,
    };
  });
}

// Mean ranks, the best first, and the tests of Friedman and Nemenyi by Python's quantiles.
function criticalOf(table, { ranges, friedman }) {
  const rows = table.length, k = table[0].length;
  const means = table[0].map((_, a) => meanOf(table.map((row) => row[a])));
  const order = [...means.keys()].sort((a, b) => means[a] - means[b] || a - b);
  const off = (ranks) => ranks.reduce((sum, r) => sum + (r - (k + 1) / 2) ** 2, 0);
  const statistic = ((k - 1) * rows ** 2 * off(means)) / (off(table.flat()) || 1);
  const level = friedman.levels.findLast((_, i) => statistic >= friedman.quantiles[k - 2][i]);
  const gap = (ranges[k - 2] / Math.SQRT2) * Math.sqrt((k * (k + 1)) / (6 * rows));
  return { order, ranks: order.map((a) => means[a]), gap, level };
}

// How to write the numbers of a row, as typeset.py: with as many decimals as show two digits of a
// spread, unless it is but rounding.
function formOf({ size, decimals }, spread = 0) {
  const more = spread > 1e-9 * size ? 1 - Math.floor(Math.log10(spread)) : 0;
  const places = Math.min(100, Math.max(decimals, more));
  return (x) => {
    if (x === null) return "-inf";
    if (decimals === null) return x.toExponential(4).replace(/e([+-])(\d)$/, "e$10$2");
    const text = x.toFixed(places);
    return size < 1 && Math.abs(x) < 1 && places ? text.replace("0.", ".") : text;
  };
}

function intervalOf(digits, low, high) {
  if (low === null) return "";
  const form = formOf(digits, (high - low) / 2);
  return `[${form(low)}, ${form(high)}]`;
}
