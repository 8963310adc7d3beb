"use strict";
(function () {
  const style = getComputedStyle(document.documentElement);
  const paint = (name) => style.getPropertyValue("--" + name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const settings = { displayModeBar: false, responsive: true };
  const DASHES = ["dot", "dash", "dashdot"];
  const SYMBOLS = ["circle-open", "square-open", "diamond-open"];

  function looks(role, index) {
    if (role === "ours") return { color: paint("accent"), width: 3, dash: "solid", symbol: "circle" };
    if (role === "warning") return { color: paint("warning"), width: 2, dash: "solid", symbol: "x" };
    if (role === "formula") return { color: paint("ink"), width: 1.5, dash: "dash", symbol: "cross" };
    return { color: paint("baseline"), width: 2, dash: DASHES[index % 3], symbol: SYMBOLS[index % 3] };
  }

  function traces(data) {
    let baselines = 0;
    return data.series.map((each) => {
      const look = looks(each.role, each.role === "baseline" ? baselines++ : 0);
      if (data.bars) {
        const pattern = each.role === "baseline" ? { shape: "/", size: 6, solidity: 0.4 } : { shape: "" };
        return { type: "bar", name: each.name, x: each.x, y: each.y, marker: { color: look.color, pattern } };
      }
      return {
        type: "scatter", mode: each.role === "warning" ? "lines+markers" : "lines", name: each.name,
        x: each.x, y: each.y, line: { color: look.color, width: look.width, dash: look.dash },
        marker: { color: look.color, symbol: look.symbol, size: 6 },
      };
    });
  }

  function axis(title, logarithmic) {
    return {
      title: { text: title, standoff: 8 }, type: logarithmic ? "log" : "-", gridcolor: paint("rule"),
      linecolor: paint("baseline"), zeroline: false, ticks: "outside", tickcolor: paint("baseline"),
      exponentformat: "power", automargin: true, nticks: 7,
    };
  }

  function layout(data) {
    return {
      margin: { l: 56, r: 12, t: 8, b: 44 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: paint("ink") },
      hoverlabel: { font: { family: "system-ui, sans-serif" } }, hovermode: data.bars ? "x" : "closest",
      xaxis: axis(data.x, data.logX), yaxis: axis(data.y, data.logY),
      legend: { orientation: "h", y: -0.28, yanchor: "top", x: 0 }, bargap: 0.35,
    };
  }

  const figures = Array.from(document.querySelectorAll("script.figure")).map((script) => ({
    id: script.dataset.for, data: JSON.parse(script.textContent),
  }));

  const controls = ["ratio", "slow", "medium", "fast"].map((id) => document.getElementById(id));
  const omegas = Array.from({ length: 91 }, (_, k) => (Math.PI * k) / 90);
  const response = (r, steps) => omegas.map((w) => Math.pow(1 - 4 * r * Math.sin(w / 2) ** 2, steps));

  function bandShares(h) {
    const shares = [0, 0, 0, 0], counts = [0, 0, 0, 0];
    h.forEach((value, k) => {
      const band = Math.min(3, Math.floor((4 * k) / (omegas.length - 1)));
      shares[band] += value * value;
      counts[band] += 1;
    });
    return shares.map((share, band) => share / counts[band]);
  }

  function verdict(r, steps) {
    const gain = Math.abs(1 - 4 * r);
    if (r > 0.5) {
      return ["unstable", true, "beyond 1/2 the roughest mode grows by " + gain.toFixed(2) +
        " a step: ×" + Math.pow(gain, Math.max(...steps)).toPrecision(2) + " after " + Math.max(...steps) + " steps."];
    }
    const collapsed = Math.max(...steps) === Math.min(...steps);
    const scales = collapsed
      ? " All scales take the same steps: the mix is one scale."
      : " The mix keeps more than one scale of the same mean (Jensen).";
    if (r > 0.25) return ["stable, signs flip", false, "between 1/4 and 1/2 rough modes change sign at every step."];
    return ["stable, signs kept", false, "up to 1/4 every mode only shrinks." + scales];
  }

  function instrument() {
    const [r, ...steps] = controls.map((control) => Number(control.value));
    controls.forEach((control) => {
      document.getElementById(control.id + "-value").textContent = control.value;
    });
    const scales = steps.map((s) => response(r, s));
    const mix = omegas.map((_, k) => (scales[0][k] + scales[1][k] + scales[2][k]) / 3);
    const mean = steps.reduce((a, b) => a + b) / 3;
    const single = omegas.map((w) => {
      const base = 1 - 4 * r * Math.sin(w / 2) ** 2;
      return Math.sign(base) ** Math.round(mean) * Math.pow(Math.abs(base), mean);
    });
    const named = (name, y, role) => ({ name, x: omegas, y, role });
    const data = {
      x: "frequency ω, radians per site", y: "H(ω)", logX: false, logY: false, bars: false,
      series: [
        named("slow", scales[0], "baseline"), named("medium", scales[1], "baseline"),
        named("fast", scales[2], "baseline"), named("single, same mean", single, "formula"),
        named("mix", mix, r > 0.5 ? "warning" : "ours"),
      ],
    };
    const shape = layout(data);
    shape.yaxis.range = [-1.05, 1.05];
    shape.xaxis.range = [0, Math.PI];
    Plotly.react("instrument-plot", traces(data), shape, settings);
    showBands(bandShares(mix), bandShares(single));
    const [word, broken, why] = verdict(r, steps);
    const reading = document.getElementById("reading");
    const strong = document.createElement("span");
    strong.className = broken ? "word broken" : "word";
    strong.textContent = word + ": ";
    reading.replaceChildren(strong, why);
  }

  function showBands(mix, single) {
    const cells = [];
    const text = (value) => {
      const span = document.createElement("span");
      span.textContent = value;
      return span;
    };
    const bar = (value, kind) => {
      const i = document.createElement("i");
      i.className = kind;
      i.style.width = 100 * Math.min(1, value) + "%";
      return i;
    };
    const percent = (value) => {
      if (value > 10) return "> 1000 %";
      if (value < 1e-5) return "< 0.001 %";
      return String(Number((100 * value).toPrecision(2))) + " %";
    };
    ["low", "low-mid", "high-mid", "high"].forEach((name, band) => {
      cells.push(text(name), bar(mix[band], "mix"), text("mix " + percent(mix[band])),
        bar(single[band], "single"), text("single " + percent(single[band])));
    });
    document.getElementById("bands").replaceChildren(...cells);
  }

  function draw() {
    figures.forEach((figure) => Plotly.react(figure.id, traces(figure.data), layout(figure.data), settings));
    instrument();
  }

  controls.forEach((control) => control.addEventListener("input", instrument));
  dark.addEventListener("change", draw);
  draw();
})();
