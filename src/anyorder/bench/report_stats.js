"use strict";
// The numbers of the page: decoding, ranks, tests. As in stats.py and tables.py, for what is chosen.

// Whole numbers and differences back to values; a point without a value is null.
function decode(data) {
  const sums = (steps) => {
    let last = 0;
    return steps.map((step) => (step === null ? null : (last += step)));
  };
  for (const d of data.distributions) {
    d.grid = sums(d.grid);
    const value = (k) => (k === null ? null : Number(`${k}e${-d.decimals}`));
    for (const cell of d.cells) {
      if (!cell) continue;
      const mean = sums(cell.mean);
      const end = (sign, gaps) =>
        mean.map((m, g) => value(gaps[g] === null ? null : m + 100 * sign * gaps[g]));
      cell.low = end(-1, cell.below);
      cell.high = end(1, cell.above);
      cell.mean = mean.map(value);
      cell.rank = cell.rank.map((r) => (r === null ? null : r / 2));
      cell.share = sums(cell.share).map((s) => s / 1e4);
    }
  }
  return data;
}

// The last point of a grid that is not after `evaluations`; -1 before the first.
function placeOf(grid, evaluations) {
  let low = 0,
    high = grid.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (grid[middle] <= evaluations) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// 1 for the lowest, ties averaged, null is not ranked: of ranks among all, those among some.
function ranksOf(values) {
  return values.map((x) => {
    if (x === null) return null;
    let below = 0,
      equal = 0;
    for (const y of values) {
      if (y !== null && y < x) below += 1;
      if (y === x) equal += 1;
    }
    return below + (equal + 1) / 2;
  });
}

function meanOf(values) {
  const found = values.filter((x) => x !== null);
  return found.length ? found.reduce((a, b) => a + b, 0) / found.length : null;
}

function logGamma(x) {
  let shift = 0;
  while (x < 12) shift += Math.log(x++); // Stirling's series is good from there on
  const tail = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / x ** 2) / x ** 2) / x ** 2) / x;
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2 + tail - shift;
}

// The regularised incomplete beta function: continued fraction DLMF 8.17.22 by Lentz's method.
function incompleteBeta(a, b, x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  const beta = logGamma(a) + logGamma(b) - logGamma(a + b);
  let c = 1,
    d = 1 / (1 - ((a + b) * x) / (a + 1)),
    value = d;
  for (let m = 1; m < 10000; m++) {
    const steps = [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ];
    for (const step of steps) {
      c = 1 + step / c;
      d = 1 / (1 + step * d);
      value *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return (Math.exp(a * Math.log(x) + b * Math.log1p(-x) - beta) / a) * value;
}

// Two-sided p-value of Welch's t-test; NaN where there is none.
function welch(x, y) {
  if (x.sd === null || y.sd === null || x.mean === null || y.mean === null) return NaN;
  const vx = x.sd ** 2 / x.runs,
    vy = y.sd ** 2 / y.runs,
    gap = x.mean - y.mean;
  if (vx + vy === 0) return gap === 0 ? 1 : 0;
  const freedom = (vx + vy) ** 2 / (vx ** 2 / (x.runs - 1) + vy ** 2 / (y.runs - 1));
  return incompleteBeta(freedom / 2, 0.5, freedom / (freedom + gap ** 2 / (vx + vy)));
}

// A row of the table: for each chosen algorithm what it has after so many evaluations, or null.
function entriesOf(d, algorithms, evaluations, level) {
  const g = placeOf(d.grid, evaluations);
  const entries = algorithms.map((a) => {
    const cell = d.cells[a];
    if (!cell || g < 0 || cell.rank[g] === null) return null;
    return {
      mean: cell.mean[g],
      low: cell.low[g],
      high: cell.high[g],
      sd: cell.sd[g],
      runs: cell.runs,
      all: cell.rank[g],
      rank: 0,
      of: 0,
      best: false,
      star: false,
    };
  });
  const found = entries.filter((entry) => entry);
  const ranks = ranksOf(entries.map((entry) => (entry ? entry.all : null)));
  const order = [...found].sort((x, y) => x.all - y.all);
  entries.forEach((entry, k) => {
    if (!entry) return;
    Object.assign(entry, { rank: ranks[k], of: found.length, best: entry.all === order[0].all });
  });
  if (order.length > 1 && order[0].all < order[1].all) {
    order[0].star = welch(order[0], order[1]) < level;
  }
  return entries;
}

// The regularised upper incomplete gamma function: its series, or DLMF 8.9.2 by Lentz's method.
function upperGamma(a, x) {
  if (x <= 0) return 1;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a,
      sum = term;
    for (let n = 1; term > 1e-17 * sum; n++) sum += term *= x / (a + n);
    return 1 - front * sum;
  }
  let b = x + 1 - a,
    c = 1e300,
    d = 1 / b,
    value = d;
  for (let n = 1; n < 10000; n++) {
    b += 2;
    c = b - (n * (n - a)) / c;
    d = 1 / (b - n * (n - a) * d);
    value *= c * d;
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return front * value;
}

// The p-value of Friedman's test, of ranks by distribution and algorithm.
function friedman(table) {
  const rows = table.length,
    k = table[0].length,
    expected = (k + 1) / 2;
  let varied = 0,
    between = 0;
  for (const row of table) for (const r of row) varied += (r - expected) ** 2;
  for (let a = 0; a < k; a++) {
    between += (table.reduce((sum, row) => sum + row[a], 0) - rows * expected) ** 2;
  }
  if (varied === 0) return 1;
  return upperGamma((k - 1) / 2, ((k - 1) * between) / varied / 2);
}

// Mean ranks, the critical difference of Nemenyi's test, and stretches that cannot be told apart.
function criticalOf(table, quantiles) {
  const rows = table.length,
    k = table[0].length;
  const means = table[0].map((_, a) => meanOf(table.map((row) => row[a])));
  const order = means.map((_, a) => a).sort((a, b) => means[a] - means[b] || a - b);
  const gap = (quantiles[k - 2] / Math.SQRT2) * Math.sqrt((k * (k + 1)) / (6 * rows));
  const groups = [];
  for (let i = 0; i < k; i++) {
    let j = i;
    while (j + 1 < k && means[order[j + 1]] <= means[order[i]] + gap) j += 1;
    if (j > i && (!groups.length || j > groups[groups.length - 1][1])) groups.push([i, j]);
  }
  return { order, ranks: order.map((a) => means[a]), gap, groups, p: friedman(table) };
}

// How to write the numbers of a row: 5 digits of the largest, 4 if it is less than 1, and two of a
// spread, unless it is but rounding.
function formOf(means, spread = 0) {
  const finite = means.filter((m) => m !== null).map(Math.abs);
  const size = Math.max(0, ...finite);
  const infinite = (write) => (x) => (x === null ? "-inf" : write(x));
  let decimals = 0;
  if (size >= 1e9 || !finite.every((m) => m === Math.round(m))) {
    if (size >= 1e9 || (size > 0 && size < 1e-6)) {
      return infinite((x) => x.toExponential(4).replace(/e([+-])(\d)$/, "e$10$2"));
    }
    decimals = Math.max(0, (size >= 1 ? 4 : 3) - Math.floor(Math.log10(size)));
  }
  if (spread > 1e-9 * size) {
    decimals = Math.min(100, Math.max(decimals, 1 - Math.floor(Math.log10(spread))));
  }
  return infinite((x) => {
    const text = x.toFixed(decimals);
    return size < 1 && Math.abs(x) < 1 && decimals ? text.replace("0.", ".") : text;
  });
}

function intervalOf(means, { low, high }) {
  const form = formOf(means, (high - low) / 2);
  return `[${form(low)}, ${form(high)}]`;
}

// A long label without its middle, since ends tell labels apart; as figures.py.
function shortOf(label, most = 40) {
  const half = Math.floor(most / 2);
  return label.length <= most ? label : `${label.slice(0, half)}…${label.slice(half + 1 - most)}`;
}
