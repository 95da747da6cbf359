"use strict";
// Drawing: lines with bands and a rule to read them by, and the critical-difference diagram.

const WIDTH = 760,
  HEIGHT = 430,
  LEFT = 72,
  RIGHT = 30,
  TOP = 12,
  BOTTOM = 44;

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A marker by its letter, as Matplotlib has them; the same in figures.py.
function markerOf(look, x, y) {
  const r = look.ours ? 4.6 : 3.5,
    fill = look.colour;
  const corners = (n, turn, inner = null) => {
    const count = inner === null ? n : 2 * n;
    return Array.from({ length: count }, (_, k) => {
      const size = inner !== null && k % 2 ? r * inner : r;
      const angle = ((turn + (360 * k) / count) * Math.PI) / 180;
      return [x + size * Math.sin(angle), y - size * Math.cos(angle)];
    });
  };
  const plus = (turn) => {
    const t = r / 3,
      points = [
        [-t, -r],
        [t, -r],
        [t, -t],
        [r, -t],
        [r, t],
        [t, t],
        [t, r],
        [-t, r],
        [-t, t],
        [-r, t],
        [-r, -t],
        [-t, -t],
      ];
    const c = Math.cos(turn),
      s = Math.sin(turn);
    return points.map(([u, v]) => [x + c * u - s * v, y + s * u + c * v]);
  };
  if (look.marker === "o") return shape("circle", { cx: x, cy: y, r: r * 0.9, fill });
  const thin = [
    [x, y - r],
    [x + 0.6 * r, y],
    [x, y + r],
    [x - 0.6 * r, y],
  ];
  const known = {
    s: () => corners(4, 45),
    "^": () => corners(3, 0),
    D: () => corners(4, 0),
    v: () => corners(3, 180),
    P: () => plus(0),
    X: () => plus(Math.PI / 4),
    "<": () => corners(3, 270),
    ">": () => corners(3, 90),
    "*": () => corners(5, 0, 0.4),
    h: () => corners(6, 0),
    p: () => corners(5, 0),
    d: () => thin,
    8: () => corners(8, 22.5),
    H: () => corners(6, 30),
  };
  const points = known[look.marker]().map(([u, v]) => `${u.toFixed(1)},${v.toFixed(1)}`);
  return shape("polygon", { points: points.join(" "), fill });
}

function swatch(look) {
  const svg = shape("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" });
  svg.append(
    shape("line", { x1: 0, x2: 34, y1: 6, y2: 6, ...strokeOf(look) }),
    markerOf(look, 17, 6),
  );
  return svg;
}

function strokeOf(look) {
  return {
    stroke: look.colour,
    "stroke-width": look.width,
    "stroke-dasharray": look.dashes.join(" "),
    fill: "none",
    "stroke-linejoin": "round",
  };
}

function ticksOf(low, high, count = 6) {
  const rough = (high - low) / count,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    ticks.push(k * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  const leads = high / low > 300 ? [1] : [1, 2, 5];
  for (let p = Math.floor(Math.log10(low)); 10 ** p <= high; p++) {
    for (const m of leads) if (m * 10 ** p >= low && m * 10 ** p <= high) ticks.push(m * 10 ** p);
  }
  return ticks;
}

const plainNumber = (x) => {
  const y = Number(x.toPrecision(7));
  const size = Math.abs(y);
  return size !== 0 && (size >= 1e9 || size < 1e-4)
    ? y.toExponential()
    : y.toLocaleString("en-GB", { maximumFractionDigits: 8 });
};

// Lines with bands. `series`: look, label, mean, and low and high where there is a band, all at
// `grid`. `onPoint(g)` is told which point of the grid is read, or null when it is over.
function drawLines(host, { grid, series, log, view, xlabel, ylabel, title, format, onPoint }) {
  const end = grid[grid.length - 1];
  const start = log ? grid[0] : 0;
  const along = (n) =>
    log && end > start
      ? Math.log(n / start) / Math.log(end / start)
      : (n - start) / (end - start || 1);
  const x = (n) => LEFT + (WIDTH - LEFT - RIGHT) * along(n);
  const y = (v) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (v - view[0]) / (view[1] - view[0]));
  const svg = shape("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    tabindex: 0,
    role: "img",
    "aria-label": title,
  });
  const clip = `${host.id}-clip`;
  svg.append(
    shape(
      "clipPath",
      { id: clip },
      shape("rect", {
        x: LEFT,
        y: TOP - 4,
        width: WIDTH - LEFT - RIGHT + 4,
        height: HEIGHT - TOP - BOTTOM + 4,
      }),
    ),
  );
  for (const v of ticksOf(...view)) {
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }));
    svg.append(shape("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, plainNumber(v)));
  }
  for (const n of log ? logTicks(start, end) : ticksOf(start, end)) {
    svg.append(shape("line", { class: "grid", x1: x(n), x2: x(n), y1: TOP, y2: HEIGHT - BOTTOM }));
    svg.append(
      shape("text", { x: x(n), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, plainNumber(n)),
    );
  }
  svg.append(
    shape("path", { class: "axis", d: `M${LEFT},${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}` }),
    shape(
      "text",
      { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" },
      xlabel,
    ),
    shape(
      "text",
      {
        transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      ylabel,
    ),
  );
  const area = shape("g", { "clip-path": `url(#${clip})` });
  svg.append(area);
  const point = (n, v) => `${x(n).toFixed(1)},${y(v).toFixed(1)}`;
  const bands = shape("g"),
    lines = shape("g");
  area.append(bands, lines);
  // ours are drawn last, on top
  const order = series.map((_, k) => k).sort((a, b) => series[a].look.ours - series[b].look.ours);
  for (const k of order) {
    const { look, mean, low, high } = series[k];
    const there = grid.map((_, g) => g).filter((g) => mean[g] !== null);
    if (low) {
      const wide = there.filter((g) => low[g] !== null);
      const round = [
        ...wide.map((g) => point(grid[g], high[g])),
        ...wide.reverse().map((g) => point(grid[g], low[g])),
      ];
      bands.append(
        shape("polygon", { points: round.join(" "), fill: look.colour, "fill-opacity": 0.15 }),
      );
    }
    lines.append(
      shape("polyline", {
        points: there.map((g) => point(grid[g], mean[g])).join(" "),
        ...strokeOf(look),
      }),
    );
    let next = LEFT + 10 + (150 * k) / series.length; // those of different lines at different places
    for (const g of there) {
      if (x(grid[g]) < next) continue;
      if (mean[g] >= view[0]) lines.append(markerOf(look, x(grid[g]), y(mean[g])));
      next = Math.max(next + 150, x(grid[g]));
    }
  }
  const rule = shape("line", { class: "rule", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  svg.append(rule);
  const tip = element("div", { class: "tip", "aria-live": "polite" });
  tip.hidden = true;
  host.replaceChildren(svg, tip);
  let current = null;
  const read = (g, height = null) => {
    current = g;
    onPoint(g);
    rule.setAttribute("visibility", g === null ? "hidden" : "visible");
    tip.hidden = g === null;
    if (g === null) return;
    rule.setAttribute("x1", x(grid[g]));
    rule.setAttribute("x2", x(grid[g]));
    const found = series.filter((s) => s.mean[g] !== null);
    // the line next to the pointer, or the best
    found.sort((a, b) =>
      height === null
        ? b.mean[g] - a.mean[g]
        : Math.abs(y(a.mean[g]) - height) - Math.abs(y(b.mean[g]) - height),
    );
    const [first] = found;
    tip.textContent =
      `${grid[g].toLocaleString("en-GB")} evaluations` +
      (first ? `, ${shortOf(first.label)}: ${format(first.mean[g])}` : "");
    const share = x(grid[g]) / WIDTH,
      up = first ? Math.max(TOP, y(first.mean[g])) / HEIGHT : 0;
    tip.style.left = share < 0.55 ? `calc(${100 * share}% + 12px)` : "";
    tip.style.right = share < 0.55 ? "" : `calc(${100 - 100 * share}% + 12px)`;
    tip.style.top = `calc(${Math.min(85, 100 * up)}% + 10px)`;
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    let best = 0;
    grid.forEach((n, g) => {
      if (Math.abs(x(n) - at) < Math.abs(x(grid[best]) - at)) best = g;
    });
    read(best, ((event.clientY - box.top) / box.height) * HEIGHT);
  });
  svg.addEventListener("pointerleave", () => read(null));
  svg.addEventListener("blur", () => read(null));
  svg.addEventListener("keydown", (event) => {
    const last = grid.length - 1;
    const to = {
      ArrowLeft: (g) => Math.max(0, g - 1),
      ArrowRight: (g) => Math.min(last, g + 1),
      Home: () => 0,
      End: () => last,
      Escape: () => null,
    }[event.key];
    if (!to) return;
    event.preventDefault();
    read(to(current === null ? last : current));
  });
}

// Mean ranks on a line; bars join those that cannot be told apart (Demšar, JMLR 2006).
function drawCritical(host, found, looks) {
  const count = found.order.length,
    half = Math.ceil(count / 2);
  const width = 960,
    edge = 290,
    line = 62,
    step = 20;
  const x = (r) => edge + ((width - 2 * edge) * (r - 1)) / (count - 1);
  const top = line + 24 + 9 * found.groups.length;
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${top + step * half}`,
    role: "img",
    "aria-label": "Critical-difference diagram of mean ranks",
  });
  const ink = (d, width) => shape("path", { class: "ink", d, "stroke-width": width });
  svg.append(ink(`M${x(1)},${line}H${x(count)}`, 1));
  for (let r = 1; r <= count; r++) {
    svg.append(
      ink(`M${x(r)},${line}v-6`, 1),
      shape("text", { x: x(r), y: line - 10, "text-anchor": "middle" }, String(r)),
    );
  }
  const wide = Math.min(x(1 + found.gap), width - 2);
  svg.append(ink(`M${x(1)},26v-6v3H${wide}v-3v6`, 1.2));
  svg.append(shape("text", { x: x(1), y: 14 }, `critical difference ${found.gap.toFixed(2)}`));
  found.order.forEach((a, k) => {
    const left = k < half,
      look = looks[a];
    const y = top + step * (left ? k : count - 1 - k),
      to = left ? edge - 14 : width - edge + 14;
    svg.append(
      shape("path", {
        d: `M${x(found.ranks[k])},${line}V${y}H${to}`,
        stroke: look.colour,
        "stroke-width": look.width * 0.7,
        fill: "none",
      }),
    );
    const anchor = left ? "end" : "start",
      weight = look.ours ? "bold" : "normal";
    const label = shortOf(look.label, 30);
    svg.append(
      shape(
        "text",
        { x: to + (left ? -5 : 5), y: y + 4, "text-anchor": anchor, "font-weight": weight },
        left ? `${label}  ${found.ranks[k].toFixed(2)}` : `${found.ranks[k].toFixed(2)}  ${label}`,
      ),
    );
  });
  found.groups.forEach(([first, last], g) => {
    svg.append(
      ink(`M${x(found.ranks[first]) - 3},${line + 10 + 9 * g}H${x(found.ranks[last]) + 3}`, 3.5),
    );
  });
  host.replaceChildren(svg);
}
