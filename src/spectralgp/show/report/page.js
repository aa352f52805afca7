"use strict";
// The figures come from plotly's Python library. Here are the controls of the map, which its own cannot be: they work by
// keyboard, and are read aloud.
(() => {
  const one = (id) => document.getElementById(id);
  const report = JSON.parse(one("report-data").textContent);
  const { figures, templates, names, texts, labels, markers, arrays, along, order, widths } = report;
  const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const { x, y, imputedMean, imputedStd, ...fields } = Object.fromEntries(Object.entries(arrays).map(([name, text]) => [name, floats(text)]));
  const number = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "not observed");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // these buttons and no others: the library's own set has one that sends the picture's data to a server
  const config = {
    responsive: true,
    displaylogo: false,
    plotlyServerURL: "",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };
  const MAX_ROWS = 100;
  const MAX_OPTIONS = 1000;
  const nodes = names.map((_, node) => node);
  const state = { signal: report.start.signal, node: null };
  // imputed values by signal and node
  const imputed = new Map(report.imputed.map((place, number) => [place, [imputedMean[number], imputedStd[number]]]));

  const hasWebGL = Boolean(document.createElement("canvas").getContext("webgl"));
  if (!hasWebGL) figures["map-plot"].data.forEach((trace) => { trace.type = "scatter"; });

  function draw(id, traces = figures[id].data) {
    const layout = { ...figures[id].layout, template: templates[dark.matches ? "dark" : "light"] };
    return Plotly.react(one(id), traces, layout, config);
  }

  function value(field, node) {
    if (field === "residual") return value("observed", node) - value("mean", node);
    return fields[field][state.signal * names.length + node];
  }

  function drawMap() {
    const field = document.querySelector("input[name=field]:checked").value;
    const known = nodes.filter((node) => Number.isFinite(value(field, node)));
    const missing = nodes.filter((node) => !Number.isFinite(value(field, node)));
    const at = (trace, some, more = {}) => {
      const pick = (array) => some.map((node) => array[node]);
      return { ...trace, x: pick(x), y: pick(y), text: pick(texts), customdata: some, ...more };
    };
    const [edges, observed, unobserved, chosen] = figures["map-plot"].data;
    const marker = { ...markers[field].marker, color: known.map((node) => value(field, node)) };
    return draw("map-plot", [
      { ...edges, visible: one("with-edges").checked },
      at(observed, known, { ...markers[field], marker }),
      at(unobserved, missing, { showlegend: missing.length > 0 }),
      at(chosen, state.node === null ? [] : [state.node]),
    ]);
  }

  function readOut(node) {
    const [observed, mean, std, residual] = ["observed", "mean", "std", "residual"].map((field) => value(field, node));
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = names[node];
    const said = [Number.isFinite(observed) ? `observed ${number(observed)}` : "not observed"];
    if (Number.isFinite(mean)) said.push(`predicted ${number(mean)} ± ${number(std)}`);
    const found = imputed.get(state.signal * names.length + node);
    if (found) said.push(`imputed ${number(found[0])} ± ${number(found[1])}`);
    if (Number.isFinite(residual)) said.push(`residual ${number(residual)}`);
    one("readout").replaceChildren(name, `: ${said.join(", ")} (${labels[state.signal]})`);
  }

  function drawNode() {
    const node = Number(one("node").value);
    const at = (field) => order.map((signal) => fields[field][signal * names.length + node]);
    const [observed, mean, std] = ["observed", "mean", "std"].map(at);
    const places = order.map((signal) => along[signal]);
    const text = order.map((signal) => labels[signal]);
    const known = order.map((_, place) => place).filter((place) => Number.isFinite(mean[place]));
    const [predicted, seen, holes] = figures["node-plot"].data.slice(-3);
    const bands = widths.map((width, number) => {
      const ends = (sign) => known.map((place) => mean[place] + sign * width * std[place]);
      const there = known.map((place) => places[place]);
      const trace = figures["node-plot"].data[number];
      return { ...trace, x: [...there, ...there.toReversed()], y: [...ends(1), ...ends(-1).toReversed()] };
    });
    const values = order.map((signal) => imputed.get(signal * names.length + node));
    const isImputed = order.map((_, place) => place).filter((place) => values[place]);
    const array = isImputed.map((place) => widths[0] * values[place][1]);
    figures["node-plot"].layout.yaxis = { ...figures["node-plot"].layout.yaxis, title: { text: texts[node] } };
    return draw("node-plot", [
      ...bands,
      { ...predicted, x: places, y: mean, text },
      { ...seen, x: places, y: observed, text },
      {
        ...holes,
        x: isImputed.map((place) => places[place]),
        y: isImputed.map((place) => values[place][0]),
        text: isImputed.map((place) => text[place]),
        error_y: { ...holes.error_y, array },
        visible: isImputed.length > 0,
      },
    ]);
  }

  function addOption(node) {
    const option = one("node").appendChild(document.createElement("option"));
    option.value = node;
    option.textContent = names[node];
  }

  function choose(node) {
    state.node = node;
    if (!one("node").querySelector(`option[value="${node}"]`)) addOption(node);
    one("node").value = node;
    readOut(node);
    drawMap();
    drawNode();
  }

  function fillTable() {
    const wanted = one("find").value.trim().toLowerCase();
    const found = nodes.filter((node) => names[node].toLowerCase().includes(wanted));
    const shown = found.length > MAX_ROWS ? `the first ${MAX_ROWS} of ${found.length} nodes` : `${found.length} nodes`;
    one("node-caption").textContent = `${labels[state.signal]}: ${shown}`;
    one("node-rows").replaceChildren(...found.slice(0, MAX_ROWS).map(tableRow));
  }

  function tableRow(node) {
    const row = document.createElement("tr");
    const head = row.appendChild(document.createElement("th"));
    head.scope = "row";
    const button = head.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = names[node];
    button.addEventListener("click", () => choose(node));
    for (const field of ["observed", "mean", "std", "residual"]) {
      const found = value(field, node);
      row.insertCell().textContent = Number.isFinite(found) ? number(found) : "–";
    }
    return row;
  }

  function showSignal() {
    state.signal = Number(one("signal").value);
    const label = labels[state.signal];
    one("signal-name").textContent = `${label} (${state.signal + 1} of ${labels.length})`;
    one("signal").setAttribute("aria-valuetext", label);
    if (one("map").querySelector("details").open) fillTable();
    if (state.node !== null) readOut(state.node);
  }

  let isWaiting = false;
  function redrawSoon() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      drawMap();
    });
  }

  const others = Object.keys(figures).filter((id) => id !== "map-plot" && id !== "node-plot");
  one("signal").value = state.signal;
  nodes.slice(0, MAX_OPTIONS).forEach(addOption);
  if (report.start.node >= MAX_OPTIONS) addOption(report.start.node);
  one("node").value = report.start.node;
  showSignal();
  // the map first: it is what a reader waits for
  drawMap().then(() => {
    one("signal").addEventListener("input", () => {
      showSignal();
      redrawSoon();
    });
    document.querySelectorAll("input[name=field], #with-edges").forEach((control) =>
      control.addEventListener("change", redrawSoon),
    );
    one("find").addEventListener("input", fillTable);
    one("map").querySelector("details").addEventListener("toggle", fillTable);
    one("map-plot").on("plotly_hover", ({ points }) => readOut(points[0].customdata));
    one("map-plot").on("plotly_click", ({ points }) => choose(points[0].customdata));
    one("node").addEventListener("change", () => choose(Number(one("node").value)));
    setTimeout(() => {
      drawNode();
      others.forEach((id) => draw(id));
      document.documentElement.dataset.ready = "all";
    }, 0);
  });
  dark.addEventListener("change", () => {
    drawMap();
    drawNode();
    others.forEach((id) => draw(id));
  });
})();
