"use strict";
// The page of studies. Parts come from the page itself or from its server; each is shown where the
// page has a place for it. Texts of a study are put in as text, never as HTML.
(() => {
  const parts = new Map();
  const byId = (id) => document.getElementById(id);
  const file = byId("data"); // of a page that is a file
  let source, skew = 0, chosen = readAddress();

  function make(tag, text, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }
  const row = (tag, cells) => {
    const made = make("tr");
    made.append(...cells.map((cell) => (cell instanceof Node ? cell : make(tag, cell))));
    return made;
  };

  // --- what is chosen, in the address ---------------------------------------------------------
  function readAddress() {
    const found = new URLSearchParams(location.hash.slice(1));
    return { studies: found.getAll("study"), variable: found.get("variable"),
      objective: found.get("objective"), influence: found.has("influence") };
  }
  function query() {
    const made = new URLSearchParams(chosen.studies.map((name) => ["study", name]));
    if (chosen.variable !== null) made.set("variable", chosen.variable);
    if (chosen.objective !== null) made.set("objective", chosen.objective);
    if (chosen.influence) made.set("influence", "1");
    return made.toString();
  }
  function choose(change) {
    Object.assign(chosen, change);
    history.replaceState(null, "", `#${query()}`);
    if (file) showAll();
    else connect();
  }

  // --- data -------------------------------------------------------------------------------------
  function connect() {
    source?.close();
    const status = byId("status");
    source = new EventSource(`events?${query()}`);
    let first = true;
    source.onmessage = (event) => {
      if (first) for (const key of parts.keys()) if (/^\d/.test(key)) parts.delete(key);
      first = false;
      take(JSON.parse(event.data));
    };
    source.onopen = () => { status.textContent = "live"; status.className = ""; };
    source.onerror = () => {
      status.textContent = "The server does not answer; what is below is the last it sent.";
      status.className = "lost";
      first = true;
    };
  }
  function take(message) {
    skew = message.now - Date.now() / 1000;
    for (const [key, part] of Object.entries(message.parts)) parts.set(key, part);
    const changed = Object.keys(message.parts);
    if (changed.includes("shown")) showAll();
    else new Set(changed.map((key) => key.split("/").at(-1))).forEach(show);
  }

  // --- parts -----------------------------------------------------------------------------------
  const special = { studies: showStudies, variables: showVariables, objectives: showObjectives };
  function showAll() {
    Object.values(special).forEach((update) => update());
    document.querySelectorAll("[data-figure]").forEach((place) => show(place.dataset.figure));
    document.querySelectorAll("[data-part]").forEach((place) => show(place.dataset.part));
  }
  function show(name) {
    special[name]?.();
    document.querySelectorAll(`[data-figure="${name}"]`).forEach((place) =>
      fill(place, parts.get(name), place.dataset.label));
    for (const place of document.querySelectorAll(`[data-part="${name}"]`)) {
      const shown = parts.get("shown") ?? [];
      while (place.children.length > shown.length) remove(place.lastChild);
      shown.forEach((study, k) => {
        const panel = place.children[k] ?? place.appendChild(make("div"));
        let title = panel.querySelector(":scope > h3");
        if (shown.length > 1 && !title) panel.prepend((title = make("h3")));
        if (title) title.textContent = shown.length > 1 ? study : "";
        const body = panel.querySelector(":scope > div") ?? panel.appendChild(make("div"));
        const part = parts.get(`${k}/${name}`) ?? (file && parts.get(`${k}/${name}/${variable()}`));
        (writers[name] ?? fill)(body, part, `${place.dataset.label}, ${study}`, k);
      });
    }
  }
  function remove(element) {
    element.querySelectorAll(".js-plotly-plot").forEach(anyorder.forget);
    element.remove();
  }
  // A figure, or the sentence that is in its place.
  function fill(place, part, label) {
    if (part?.figure) {
      let chart = place.querySelector(".chart");
      if (!chart) {
        place.replaceChildren((chart = make("div", undefined, { class: "chart", role: "img" })));
      }
      chart.setAttribute("aria-label", label);
      anyorder.draw(chart, part.figure);
      return chart;
    }
    place.querySelectorAll(".chart").forEach(anyorder.forget);
    place.replaceChildren(make("p", part ? part.note : "…", { class: "note" }));
    return null;
  }

  function showStudies() {
    const rows = parts.get("studies") ?? [], shown = parts.get("shown") ?? [];
    byId("studies").hidden = rows.length < 2 || Boolean(file);
    const body = byId("studies").querySelector("tbody"), focused = document.activeElement?.value;
    body.replaceChildren(...rows.map((study) => {
      const box = make("input", undefined, { type: "checkbox", value: study.name });
      box.checked = shown.includes(study.name);
      box.addEventListener("change", () => {
        const others = shown.filter((name) => name !== study.name);
        const wanted = box.checked ? [...others.slice(-3), study.name] : others;
        choose({ studies: wanted.length ? wanted : [study.name], variable: null });
      });
      const label = make("label");
      label.append(box, ` ${study.name}`);
      const cell = make("td");
      cell.append(label);
      if (study.problem) return row("td", [cell, study.problem]);
      const of = study.budget === null ? "" : ` of ${study.budget.toLocaleString("en")}`;
      return row("td", [cell, study.state, study.evaluations.toLocaleString("en") + of,
        study.failures.toLocaleString("en"), study.best ?? "–"]);
    }));
    if (focused) [...body.querySelectorAll("input")].find((box) => box.value === focused)?.focus();
  }

  const variable = () => chosen.variable ?? parts.get("variables")?.of ?? 0;
  function showVariables() {
    const found = parts.get("variables");
    if (!found) return;
    fillSelect(byId("variable"), found.names, variable());
    byId("more").textContent = found.more ? `${found.more} more explain less of the variance` : "";
  }
  function showObjectives() {
    const found = parts.get("objectives");
    byId("objectives").hidden = !found || Boolean(file);
    byId("several").hidden = !found;
    if (found) fillSelect(byId("objective"), found.names, chosen.objective ?? found.of);
  }
  function fillSelect(select, names, value) {
    const known = JSON.stringify(names);
    if (select.dataset.names !== known)
      select.replaceChildren(...names.map((name, k) => make("option", name, { value: k })));
    select.dataset.names = known;
    if (document.activeElement !== select) select.value = value;
  }

  // --- what is not a figure ----------------------------------------------------------------------
  const writers = {
    facts(place, part) {
      if (!part || part.note) return void fill(place, part);
      const table = make("table", undefined, { class: "facts" });
      table.append(...part.rows.map(([name, text]) => {
        const made = row("td", [make("th", name, { scope: "row" }), text]);
        return made;
      }));
      const bar = make("progress", undefined, { max: 1, "aria-label": "share of the budget" });
      if (part.share !== null) bar.value = part.share;
      place.replaceChildren(...(part.share === null ? [] : [bar]), table);
    },
    running(place, part) {
      if (!part) return;
      const now = Date.now() / 1000 + skew, state = part.alive ? "running" : "not answered";
      const going = part.running.map((one) => {
        const since = one.since === null ? "waits"
          : part.alive ? `${state} for ${(now - one.since).toFixed(0)} s` : state;
        return row("td", [`${one.number}`, since, one.point]);
      });
      const failed = part.failures.map((one) => {
        const made = row("td", [`${one.number}`, one.status, `${one.message}; at ${one.point}`]);
        made.className = "bad";
        return made;
      });
      const table = (title, rows, more) => {
        if (!rows.length) return make("p", more, { class: "note" });
        const made = make("table", undefined, { class: "events" });
        made.append(make("caption", title), ...rows);
        return made;
      };
      const left = part.open > going.length ? `, the first ${going.length} of ${part.open}` : "";
      place.replaceChildren(
        table(part.alive ? `Running now${left}` : `Without an answer${left}`, going,
          part.alive ? "Nothing has been running for more than a second." : "Nothing is running."),
        table("The last failures", failed, "No evaluation has failed."));
    },
    parallel(place, part, label, k) {
      const chart = fill(place, part, label);
      if (chart) listen(chart, k);
      if (chart) drawLines(k);
    },
    points(place, part, label, k) {
      if (!part || part.note) return void fill(place, part);
      const columns = JSON.stringify([part.record, part.variables]);
      if (place.dataset.columns !== columns) build(place, part, k);
      place.dataset.columns = columns;
      drawRows(k);
      drawLines(k);
    },
  };
  setInterval(() => parts.get("0/running")?.alive && !file && show("running"), 1000);

  // --- the best points: ranges, filter, order ------------------------------------------------------
  const states = []; // of each study
  const state = (k) => (states[k] ??= { ranges: new Map(), filter: "", by: "", down: false });
  const place = (name, k) => document.querySelector(`[data-part="${name}"]`).children[k];
  const axes = (k) => parts.get(`${k}/parallel`)?.figure?.layout.xaxis.ticktext ?? [];

  function chooseRows(k) {
    drawRows(k);
    drawLines(k);
  }
  // Which ranks, from 1, are in all ranges and pass the filter.
  function keptRanks(k) {
    const { ranges, filter } = state(k), part = parts.get(`${k}/points`), names = axes(k);
    const lines = new Map(parts.get(`${k}/parallel`)?.figure?.data.map((one) => [one.name, one.y]));
    const passes = condition(filter, part?.variables ?? [], part?.record ?? []);
    const kept = new Set();
    for (let rank = 1; rank <= Math.max(lines.size, part?.rows?.length ?? 0); rank++) {
      const line = lines.get(`rank ${rank}`), found = part?.rows?.[rank - 1];
      const inside = [...ranges].every(([name, [low, high]]) => {
        const y = line?.[names.indexOf(name)];
        return !names.includes(name) || (y != null && y >= low && y <= high);
      });
      if (inside && (!filter || (found && passes(found)))) kept.add(rank);
    }
    return kept;
  }
  // A filter: conditions such as depth >= 3, and words that a row contains, separated by commas.
  function condition(text, variables, record) {
    const tests = text.split(",").map((one) => one.trim()).filter(Boolean).map((one) => {
      const [, name, sign, wanted] = /^(.*?)\s*(<=|>=|!=|=|<|>)\s*(.*)$/.exec(one) ?? [];
      const cell = reader(name, variables, record);
      if (!cell) return (found) => [...found.record, ...found.point].some((value) =>
        value.toLowerCase().includes(one.toLowerCase()));
      return (found) => {
        const order = compare(cell(found), wanted);
        return { "<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0,
          "=": order === 0, "!=": order !== 0 }[sign] && cell(found) !== "";
      };
    });
    return (found) => tests.every((test) => test(found));
  }
  function reader(name, variables, record) {
    const at = variables.indexOf(name), own = record.indexOf(name);
    if (at >= 0) return (found) => found.point[at];
    return own >= 0 ? (found) => found.record[own] : null;
  }
  const plain = (text) => (text.startsWith('"') ? JSON.parse(text) : text);
  function compare(a, b) {
    const [x, y] = [plain(a), plain(b)];
    if (x !== "" && y !== "" && !isNaN(x) && !isNaN(y)) return Number(x) - Number(y);
    return x < y ? -1 : Number(x > y);
  }

  function listen(chart, k) {
    if (chart.dataset.heard || !chart.on) {
      if (!chart.dataset.heard) setTimeout(() => listen(chart, k), 100);
      return;
    }
    chart.dataset.heard = "yes";
    chart.on("plotly_selected", (event) => {
      if (!event?.range) return;
      const sorted = (range) => [...range].sort((a, b) => a - b), [left, right] = sorted(event.range.x);
      axes(k).forEach((name, at) => {
        if (at >= left && at <= right) state(k).ranges.set(name, sorted(event.range.y));
      });
      chooseRows(k);
    });
    for (const name of ["plotly_deselect", "plotly_doubleclick"])
      chart.on(name, () => {
        state(k).ranges.clear();
        chooseRows(k);
      });
  }
  function drawLines(k) {
    const chart = place("parallel", k)?.querySelector(".chart"), names = axes(k);
    const figure = parts.get(`${k}/parallel`)?.figure;
    if (!chart || !figure) return;
    const kept = keptRanks(k);
    const data = figure.data.map((one) => ({ ...one,
      opacity: kept.has(Number(one.name.slice(5))) ? 1 : 0.07 }));
    const shapes = [...state(k).ranges].filter(([name]) => names.includes(name)).map(
      ([name, [y0, y1]]) => ({ type: "rect", x0: names.indexOf(name) - 0.08, y0, y1,
        x1: names.indexOf(name) + 0.08, line: { width: 1, color: "#808080" },
        fillcolor: "rgba(128,128,128,0.3)" }));
    anyorder.draw(chart, { data, layout: { ...figure.layout, shapes, selections: [] } });
  }

  const FORMS = { Python: (part, rows) => literal(asJson(part, rows)), JSON: asJson, CSV: asCsv };
  function build(place, part, k) {
    const tools = make("div", undefined, { class: "tools" });
    const filter = make("input", undefined, { type: "search", "aria-label": "filter",
      placeholder: `filter, such as ${plain(part.variables[0])} = ${plain(part.rows[0].point[0])}` });
    filter.value = state(k).filter;
    filter.addEventListener("input", () => {
      state(k).filter = filter.value;
      chooseRows(k);
    });
    const said = make("small", "", { role: "status" });
    tools.append(filter, ...Object.entries(FORMS).map(([name, form]) => {
      const button = make("button", `Copy ${name}`, { type: "button" });
      button.addEventListener("click", async () => {
        const rows = shownRows(k);
        const done = await copy(form(parts.get(`${k}/points`), rows.map(([, one]) => one)));
        said.textContent = done ? `${rows.length} points copied as ${name}` : "not copied";
      });
      return button;
    }), said);
    const scroll = make("div", undefined, { class: "scroll", tabindex: 0, role: "region",
      "aria-label": "the best points" });
    const made = make("table", undefined, { class: "best" }), head = make("thead");
    head.append(row("th", ["rank", ...part.record, ...part.variables].map((name) => {
      const cell = make("th", undefined, { scope: "col" });
      const button = make("button", name, { type: "button", title: name });
      button.addEventListener("click", () => {
        const own = state(k);
        own.down = own.by === name ? !own.down : false;
        own.by = name;
        drawRows(k);
      });
      cell.append(button);
      return cell;
    })));
    made.append(head, make("tbody"));
    scroll.append(made);
    place.replaceChildren(tools, scroll);
  }
  // The rows that are chosen, with their ranks, in the order that is chosen.
  function shownRows(k) {
    const part = parts.get(`${k}/points`), kept = keptRanks(k), { by, down } = state(k);
    const rows = part.rows.map((one, at) => [at + 1, one]).filter(([rank]) => kept.has(rank));
    const cell = reader(by, part.variables, part.record);
    if (cell) rows.sort((a, b) => compare(cell(a[1]), cell(b[1])));
    return down ? rows.reverse() : rows;
  }
  function drawRows(k) {
    const made = place("points", k)?.querySelector("table"), { by, down } = state(k);
    if (!made || !parts.get(`${k}/points`)?.rows) return;
    for (const cell of made.tHead.rows[0].cells)
      cell.ariaSort = cell.textContent === by ? (down ? "descending" : "ascending") : null;
    made.tBodies[0].replaceChildren(...shownRows(k).map(([rank, one]) => row("td",
      [`${rank}`, ...[...one.record, ...one.point].map((text) =>
        text === "" ? make("td", "absent", { class: "absent" }) : `${plain(text)}`)])));
  }

  // --- copies: cells are JSON already ---------------------------------------------------------------
  const LITERALS = { true: "True", false: "False", null: "None", NaN: "float('nan')",
    Infinity: "float('inf')", "-Infinity": "-float('inf')" };
  const literal = (text) => text.replace(
    /"(?:[^"\\]|\\.)*"|true|false|null|NaN|-?Infinity/g, (found) => LITERALS[found] ?? found);
  function asJson(part, rows) {
    const points = rows.map(({ point }) => {
      const cells = part.variables.map((name, at) => [name, point[at]]).filter(([, text]) => text);
      if (!part.named) return `[${point.join(", ")}]`;
      return `{${cells.map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
    });
    return `[\n${points.map((text) => `  ${text}`).join(",\n")}\n]\n`;
  }
  function asCsv(part, rows) {
    const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [[...part.variables, ...part.record],
      ...rows.map((one) => [...one.point, ...one.record].map((text) => `${plain(text)}`))];
    return `${lines.map((cells) => cells.map(quote).join(",")).join("\n")}\n`;
  }
  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // an address that is not this machine's has no clipboard
      const area = make("textarea", text);
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }

  byId("title").textContent = document.title;
  byId("variable").addEventListener("change", (event) => choose({ variable: event.target.value }));
  byId("objective").addEventListener("change", (event) => choose({ objective: event.target.value }));
  byId("interact").open = chosen.influence || Boolean(file);
  byId("interact").addEventListener("toggle", () => {
    if (!file && byId("interact").open !== chosen.influence)
      choose({ influence: byId("interact").open });
  });
  if (file) {
    const found = anyorder.data();
    for (const [key, part] of Object.entries(found.parts)) parts.set(key, part);
    skew = found.now - Date.now() / 1000;
    byId("status").textContent = `as of ${new Date(found.now * 1000).toLocaleString()}`;
    showAll();
  } else connect();
})();
