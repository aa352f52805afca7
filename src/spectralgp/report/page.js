"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const one = (id) => document.getElementById(id);
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  const floats = (text) => new Float32Array(bytes(text));
  const integers = (text) => new Int32Array(bytes(text));
  const number = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "not observed");
  // plotly reads a little markup in texts: a name is no markup
  const plain = (text) =>
    String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\s+/g, " ");
  const short = (text) => plain(text.length > 80 ? `${text.slice(0, 77)}...` : text);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  // these buttons and no others: the library's own set has one that sends the picture's data to a server
  const config = {
    responsive: true,
    displaylogo: false,
    plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };
  const MOST_ROWS = 100;
  const MOST_VECTOR = 3000; // marks that are drawn as vectors; more are drawn by WebGL, where the browser has it

  const hasWebGL = (() => {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  })();
  const marksFor = (count) => (count > MOST_VECTOR && hasWebGL ? "scattergl" : "scatter");

  const axis = (title, more = {}) => ({
    title: { text: title, standoff: 8 },
    gridcolor: colour("grid"),
    linecolor: colour("line"),
    zerolinecolor: colour("line"),
    automargin: true,
    ...more,
  });
  const layout = (more) => ({
    paper_bgcolor: colour("paper"),
    plot_bgcolor: colour("paper"),
    font: { color: colour("ink"), family: "system-ui, sans-serif", size: 13 },
    margin: { l: 50, r: 12, t: 28, b: 44 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") } },
    ...more,
  });

  // ------------------------------------------------------------------------------------------------ the map

  const map = data.map;
  const n = map.names.length;
  const x = floats(map.x);
  const y = floats(map.y);
  const fields = { observed: floats(map.observed), mean: floats(map.mean), std: floats(map.std) };
  const TITLES = { observed: "observed", mean: "predicted", std: "standard deviation", residual: "observed - predicted" };
  const texts = map.names.map(short);
  const state = { signal: 0, field: "observed", node: null };

  function values(field) {
    const from = state.signal * n;
    if (field !== "residual") return fields[field].subarray(from, from + n);
    const found = new Float32Array(n);
    for (let node = 0; node < n; node += 1) found[node] = fields.observed[from + node] - fields.mean[from + node];
    return found;
  }

  function nodesByValue() {
    const found = values(state.field);
    const known = [];
    const missing = [];
    for (let node = 0; node < n; node += 1) (Number.isFinite(found[node]) ? known : missing).push(node);
    const pick = (array, nodes) => nodes.map((node) => array[node]);
    return { known, missing, found, pick };
  }

  const starts = integers(map.starts);
  const ends = integers(map.ends);
  function edgeLines() {
    const across = new Array(3 * starts.length).fill(null);
    const up = new Array(3 * starts.length).fill(null);
    starts.forEach((start, edge) => {
      across[3 * edge] = x[start];
      up[3 * edge] = y[start];
      across[3 * edge + 1] = x[ends[edge]];
      up[3 * edge + 1] = y[ends[edge]];
    });
    return { across, up };
  }
  const noLines = { across: [], up: [] };
  let lines = null; // made when they are first asked for
  function edges() {
    if (!one("with-edges").checked) return noLines;
    lines = lines || edgeLines();
    return lines;
  }

  function mapTraces() {
    const { known, missing, found, pick } = nodesByValue();
    const { across, up } = edges();
    const type = marksFor(Math.max(n, starts.length));
    const size = Math.max(3, Math.min(14, 420 / Math.sqrt(n)));
    const range = map.ranges[state.field] || map.ranges.value;
    const bar = {
      orientation: "h", y: -0.02, yanchor: "top", thickness: 12, len: 0.9, outlinewidth: 0, nticks: 6,
      title: { text: TITLES[state.field], side: "bottom" },
    };
    const marker = {
      size, color: pick(found, known), cmin: range[0], cmax: range[1], colorbar: bar,
      colorscale: state.field === "residual" ? "RdBu" : "Viridis",
      line: { width: n > 2000 ? 0 : 0.5, color: colour("ink") },
    };
    const chosen = state.node === null ? [] : [state.node];
    return [
      { type, mode: "lines", x: across, y: up, hoverinfo: "skip", showlegend: false,
        line: { width: n > 2000 ? 0.5 : 1, color: colour("edge") } },
      { type, mode: "markers", x: pick(x, known), y: pick(y, known), text: pick(texts, known),
        customdata: known, marker, showlegend: false, name: "observed",
        hovertemplate: `%{text}<br>${TITLES[state.field]}: %{marker.color:.4g}<extra></extra>` },
      { type, mode: "markers", x: pick(x, missing), y: pick(y, missing), text: pick(texts, missing),
        customdata: missing, name: "not observed", showlegend: missing.length > 0,
        marker: { size, symbol: "circle-open", color: colour("ink") },
        hovertemplate: "%{text}<br>not observed<extra></extra>" },
      { type: "scatter", mode: "markers", x: pick(x, chosen), y: pick(y, chosen), hoverinfo: "skip", showlegend: false,
        marker: { size: size + 10, symbol: "circle-open", color: colour("residual"), line: { width: 3 } } },
    ];
  }

  const nowhere = { visible: false, constrain: "domain" };
  function mapLayout() {
    return layout({
      margin: { l: 4, r: 4, t: 28, b: 64 },
      hovermode: "closest",
      dragmode: "pan",
      uirevision: "map",
      xaxis: { ...nowhere },
      yaxis: { ...nowhere, scaleanchor: "x", scaleratio: map.aspect },
    });
  }

  const drawMap = () => Plotly.react(one("map-plot"), mapTraces(), mapLayout(), config);

  function readOut(node) {
    const at = state.signal * n + node;
    const observed = fields.observed[at];
    const mean = fields.mean[at];
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = map.names[node];
    const rest = `: observed ${number(observed)}, predicted ${number(mean)} ± ${number(fields.std[at])}`;
    const residual = Number.isFinite(observed) ? `, residual ${number(observed - mean)}` : "";
    one("readout").replaceChildren(name, document.createTextNode(`${rest}${residual} (${map.labels[state.signal]})`));
  }

  function fillTable() {
    const wanted = one("find").value.trim().toLowerCase();
    const rows = [];
    let count = 0;
    for (let node = 0; node < n; node += 1) {
      if (wanted && !map.names[node].toLowerCase().includes(wanted)) continue;
      count += 1;
      if (rows.length < MOST_ROWS) rows.push(tableRow(node));
    }
    const shown = rows.length < count ? `the first ${rows.length} of ${count} nodes` : `${count} nodes`;
    one("node-caption").textContent = `${map.labels[state.signal]}: ${shown}`;
    one("node-rows").replaceChildren(...rows);
  }

  function tableRow(node) {
    const at = state.signal * n + node;
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = map.names[node];
    button.addEventListener("click", () => {
      state.node = node;
      readOut(node);
      drawMap();
    });
    head.append(button);
    row.append(head);
    const observed = fields.observed[at];
    for (const value of [observed, fields.mean[at], fields.std[at], observed - fields.mean[at]]) {
      const cell = document.createElement("td");
      cell.textContent = Number.isFinite(value) ? number(value) : "–";
      row.append(cell);
    }
    return row;
  }

  function showSignal() {
    const label = map.labels[state.signal];
    one("signal-name").textContent = `${label} (${state.signal + 1} of ${map.labels.length})`;
    one("signal").setAttribute("aria-valuetext", label);
    if (one("map").querySelector("details").open) fillTable();
    if (state.node !== null) readOut(state.node);
  }

  let waiting = false;
  function redrawSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawMap();
    });
  }

  function listen() {
    one("signal").addEventListener("input", (event) => {
      state.signal = Number(event.target.value);
      showSignal();
      redrawSoon();
    });
    document.querySelectorAll('input[name="field"]').forEach((choice) =>
      choice.addEventListener("change", () => {
        state.field = choice.value;
        redrawSoon();
      }),
    );
    one("with-edges").addEventListener("change", redrawSoon);
    one("find").addEventListener("input", fillTable);
    one("map").querySelector("details").addEventListener("toggle", fillTable);
    one("map-plot").on("plotly_hover", (event) => readOut(event.points[0].customdata));
    one("map-plot").on("plotly_click", (event) => readOut(event.points[0].customdata));
  }

  // -------------------------------------------------------------------------------------- the other pictures

  function drawFilters() {
    const bands = data.bands;
    const traces = [];
    const carry = bands.filters.some((filter) => filter.which === "carry");
    const DASHES = { signal: "solid", residual: "dash", carry: "dashdot" };
    for (const filter of bands.filters) {
      const yaxis = filter.which === "carry" ? "y3" : "y";
      traces.push({
        type: "scatter", mode: "lines", yaxis, hoverinfo: "skip", showlegend: false, fill: "toself",
        x: [...bands.grid, ...[...bands.grid].reverse()], y: [...filter.high, ...[...filter.low].reverse()],
        line: { width: 0 }, fillcolor: colour(`${filter.which}-band`),
      });
      traces.push({
        type: "scatter", mode: "lines", yaxis, x: bands.grid, y: filter.mean, name: filter.label,
        line: { width: 2.5, color: colour(filter.which), dash: DASHES[filter.which] },
        hovertemplate: "λ = %{x:.3g}: %{y:.4g}",
      });
    }
    const width = bands.edges[1] - bands.edges[0];
    const middles = bands.eigenvalues.map((_, bin) => bands.edges[bin] + width / 2);
    traces.push({
      type: "bar", yaxis: "y2", x: middles, y: bands.eigenvalues, width, name: "share of the eigenvalues",
      marker: { color: colour("bars") }, hovertemplate: "%{y:.1%} of the eigenvalues<extra></extra>",
    });
    traces.push({
      type: "scatter", mode: "lines+markers", yaxis: "y2", x: middles, y: bands.energy, name: "share of the data's energy",
      line: { color: colour("ink"), width: 1.5, shape: "hvh" }, marker: { size: 4, color: colour("ink") },
      hovertemplate: "%{y:.1%} of the energy<extra></extra>",
    });
    const domains = bands.filters.length === 0 ? { y2: [0, 1], y: [0, 0], y3: [0, 0] }
      : carry ? { y2: [0, 0.28], y3: [0.34, 0.58], y: [0.64, 1] } : { y2: [0, 0.34], y: [0.4, 1], y3: [0, 0] };
    const axes = { xaxis: axis(`λ of the ${bands.laplacian}`, { anchor: "y2", zeroline: false }) };
    axes.yaxis2 = axis("share", { domain: domains.y2, tickformat: ".0%", rangemode: "tozero" });
    if (bands.filters.length) axes.yaxis = axis("filters g, h", { domain: domains.y });
    if (carry) axes.yaxis3 = axis("filter b", { domain: domains.y3 });
    Plotly.react(one("filter-plot"), traces, layout({ ...axes, bargap: 0, hovermode: "x" }), config);
  }

  function drawScatter() {
    const found = data.scatter;
    const observed = floats(found.observed);
    const mean = floats(found.mean);
    const half = floats(found.half);
    const nodes = integers(found.nodes);
    const groups = { inside: [], outside: [] };
    let low = Infinity;
    let high = -Infinity;
    for (let at = 0; at < observed.length; at += 1) {
      groups[Math.abs(observed[at] - mean[at]) <= half[at] ? "inside" : "outside"].push(at);
      low = Math.min(low, observed[at], mean[at]);
      high = Math.max(high, observed[at], mean[at]);
    }
    const trace = (name, at, marker) => ({
      type: marksFor(observed.length), mode: "markers", name,
      x: at.map((place) => mean[place]), y: at.map((place) => observed[place]),
      text: at.map((place) => `${texts[nodes[place]]}, ${short(found.labels[place])}`),
      hovertemplate: "%{text}<br>predicted %{x:.4g}, observed %{y:.4g}<extra></extra>", marker,
    });
    const traces = [
      trace("inside its 90% interval", groups.inside, { size: 5, opacity: 0.6, color: colour("signal") }),
      trace("outside", groups.outside, { size: 6, opacity: 0.8, symbol: "diamond", color: colour("residual") }),
      { type: "scatter", mode: "lines", x: [low, high], y: [low, high], name: "observed = predicted", hoverinfo: "skip",
        line: { color: colour("faint"), dash: "dash", width: 1.5 } },
    ];
    const more = { xaxis: axis("predicted"), yaxis: axis("observed"), hovermode: "closest" };
    Plotly.react(one("scatter-plot"), traces, layout(more), config);
  }

  function drawCalibration() {
    const found = data.calibration;
    const diagonal = { color: colour("faint"), dash: "dash", width: 1.5 };
    const band = { type: "scatter", mode: "lines", hoverinfo: "skip", fill: "toself", line: { width: 0 },
      fillcolor: colour("band"), name: "90% of calibrated" };
    Plotly.react(one("coverage-plot"), [
      { ...band, x: [...found.levels, ...[...found.levels].reverse()], y: [...found.high, ...[...found.low].reverse()] },
      { type: "scatter", mode: "lines", x: [0, 1], y: [0, 1], name: "calibrated", hoverinfo: "skip", line: diagonal },
      { type: "scatter", mode: "lines", x: found.levels, y: found.covered, name: "observed",
        line: { color: colour("signal"), width: 2.5 }, hovertemplate: "%{y:.1%} in %{x:.0%} intervals<extra></extra>" },
    ], layout({
      xaxis: axis("probability of the interval", { range: [0, 1], tickformat: ".0%" }),
      yaxis: axis("share of values inside", { range: [0, 1], tickformat: ".0%" }),
    }), config);
    const width = found.edges[1] - found.edges[0];
    Plotly.react(one("pit-plot"), [
      { type: "bar", x: found.density.map((_, bin) => found.edges[bin] + width / 2), y: found.density, width,
        name: "observed", marker: { color: colour("bars"), line: { color: colour("paper"), width: 1 } },
        hovertemplate: "density %{y:.2f}<extra></extra>" },
      { ...band, x: [0, 1, 1, 0], y: [found.band[0], found.band[0], found.band[1], found.band[1]] },
      { type: "scatter", mode: "lines", x: [0, 1], y: [1, 1], name: "calibrated", hoverinfo: "skip", line: diagonal },
    ], layout({
      xaxis: axis("predicted probability of a lower value", { range: [0, 1] }),
      yaxis: axis("density", { rangemode: "tozero" }),
      bargap: 0,
    }), config);
  }

  const others = [drawFilters, drawScatter, drawCalibration];
  // the map first: it is what a reader waits for
  drawMap().then(() => {
    listen();
    showSignal();
    document.documentElement.dataset.ready = "map";
    others.forEach((draw, place) => setTimeout(() => {
      draw();
      if (place === others.length - 1) document.documentElement.dataset.ready = "all";
    }, 0));
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    drawMap();
    others.forEach((draw) => draw());
  });
})();
