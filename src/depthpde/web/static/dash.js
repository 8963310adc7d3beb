"use strict";
/* The dashboard's only script: charts in SVG, live events, the theory instrument. No library. */
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function html(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children);
    return made;
  }

  function spell(value) {
    if (value === null || !Number.isFinite(value)) return "—";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
    return text.replace(/-/g, "−");
  }

  const stepsOf = (count) => `${count} ${count === 1 ? "step" : "steps"}`;

  /* ---- charts ---- */

  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return [0, 1];
    if (low === high) return [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
    return [low, high];
  }

  function niceTicks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough) * power;
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
    return ticks;
  }

  function logTicks(low, high) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const stride = Math.max(1, Math.ceil((last - first) / 6));
    const ticks = [];
    for (let k = first; k <= last; k += stride) {
      for (const digit of last - first > 2 ? [1] : [1, 2, 5]) ticks.push(digit * 10 ** k);
    }
    return ticks.filter((tick) => tick >= low && tick <= high);
  }

  function axis(spec, from, to, count) {
    let [low, high] = spec.range;
    const log = spec.log && low > 0;
    const f = log ? Math.log10 : (value) => value;
    const scale = (to - from) / (f(high) - f(low) || 1);
    const at = (value) => from + (f(value) - f(low)) * scale;
    return { at, low, high, ticks: log ? logTicks(low, high) : niceTicks(low, high, count) };
  }

  function path(x, y, each) {
    let text = "", pen = false;
    for (let k = 0; k < each.x.length; k++) {
      const value = each.y[k];
      if (value === null || !Number.isFinite(value) || (y.low > 0 && value <= 0)) { pen = false; continue; }
      const height = Math.max(-4000, Math.min(8000, y.at(value)));
      text += (pen ? "L" : "M") + x.at(each.x[k]).toFixed(1) + " " + height.toFixed(1);
      pen = true;
    }
    return text;
  }

  class Chart {
    constructor(place) {
      this.place = place;
      this.figure = place.closest("figure");
      this.readout = html("p", "readout quiet");
      this.readout.setAttribute("aria-live", "polite");
      this.legend = html("ul", "keys");
      place.after(this.legend, this.readout);
      new ResizeObserver(() => this.paint()).observe(place);
    }

    draw(spec) {
      this.spec = spec;
      this.paint();
    }

    paint() {
      const spec = this.spec, width = this.place.clientWidth, height = this.place.clientHeight;
      if (!spec || width < 40) return;
      const left = 52, right = 14, top = 22, bottom = 38;
      const xs = spec.series.flatMap((each) => each.x);
      const ys = spec.series.flatMap((each) => each.y).concat((spec.lines || []).map((each) => each.y));
      const x = axis({ range: spec.xRange || extent(xs) }, left, width - right, Math.max(2, width / 90));
      const y = axis({ range: spec.yRange || pad(extent(ys)), log: spec.logY }, height - bottom, top, height / 45);
      this.x = x;
      const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: "0" });
      svg.setAttribute("aria-label", describe(spec));
      const clip = this.place.id + "-clip";
      svg.append(element("clipPath", { id: clip }, element("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom })));
      for (const tick of y.ticks) {
        svg.append(element("line", { class: "grid", x1: left, x2: width - right, y1: y.at(tick), y2: y.at(tick) }));
        svg.append(element("text", { class: "tick", x: left - 6, y: y.at(tick) + 4, "text-anchor": "end" }, spell(tick)));
      }
      for (const tick of x.ticks) {
        svg.append(element("line", { class: "mark", x1: x.at(tick), x2: x.at(tick), y1: height - bottom, y2: height - bottom + 4 }));
        svg.append(element("text", { class: "tick", x: x.at(tick), y: height - bottom + 16, "text-anchor": "middle" }, spell(tick)));
      }
      svg.append(element("text", { class: "name", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, spec.x));
      svg.append(element("text", { class: "name", x: 0, y: 11 }, spec.y));
      const ink = element("g", { "clip-path": `url(#${clip})` });
      for (const line of spec.lines || []) {
        ink.append(element("line", { class: "level", x1: left, x2: width - right, y1: y.at(line.y), y2: y.at(line.y) }));
        ink.append(element("text", { class: "tick", x: width - right - 2, y: y.at(line.y) - 4, "text-anchor": "end" }, `${line.name} ${spell(line.y)}`));
      }
      for (const each of spec.series) {
        if (each.stems) {
          each.x.forEach((at, k) => ink.append(element("line", { class: `stem ${each.role}`, x1: x.at(at), x2: x.at(at), y1: y.at(0), y2: y.at(each.y[k]) })));
        }
        ink.append(element("path", { class: `curve ${each.role}`, d: path(x, y, each), "data-points": each.x.length }));
        if (each.dots) {
          each.x.forEach((at, k) => { if (Number.isFinite(each.y[k])) ink.append(element("circle", { class: `dot ${each.role}`, cx: x.at(at), cy: y.at(each.y[k]), r: 2.5 })); });
        }
      }
      this.cursor = element("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
      svg.append(ink, this.cursor);
      svg.addEventListener("pointermove", (event) => this.point(event.clientX - svg.getBoundingClientRect().left));
      svg.addEventListener("keydown", (event) => this.step(event));
      const focused = this.place.contains(document.activeElement);
      this.place.replaceChildren(svg);
      if (focused) svg.focus();
      this.legend.replaceChildren(...spec.series.map((each) => {
        const sample = element("svg", { width: 28, height: 10, "aria-hidden": "true" }, element("path", { class: `curve ${each.role}`, d: "M1 5L27 5" }));
        return html("li", "", sample, " " + each.name);
      }));
    }

    point(pixel) {
      const all = this.spec.series[0].x;
      if (!all.length) return;
      let best = 0;
      for (let k = 1; k < all.length; k++) {
        if (Math.abs(this.x.at(all[k]) - pixel) < Math.abs(this.x.at(all[best]) - pixel)) best = k;
      }
      this.show(best);
    }

    step(event) {
      const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      const last = this.spec.series[0].x.length - 1;
      this.show(Math.max(0, Math.min(last, (this.at === undefined ? 0 : this.at) + move)));
    }

    show(index) {
      this.at = index;
      const where = this.spec.series[0].x[index];
      this.cursor.setAttribute("x1", this.x.at(where));
      this.cursor.setAttribute("x2", this.x.at(where));
      this.cursor.setAttribute("visibility", "visible");
      const parts = this.spec.series.map((each) => {
        const k = each.x === this.spec.series[0].x ? index : each.x.findLastIndex((at) => at <= where);
        return k < 0 ? null : `${each.name} ${spell(each.y[k])}`;
      });
      this.readout.textContent = `${this.spec.x} ${spell(where)}: ${parts.filter(Boolean).join(", ")}`;
    }
  }

  function pad([low, high]) {
    const room = (high - low) * 0.06;
    return [low >= 0 && low < room * 4 ? 0 : low - room, high + room];
  }

  function describe(spec) {
    const parts = spec.series.filter((each) => each.x.length).map((each) => {
      const [low, high] = extent(each.y);
      return `${each.name}: ${each.x.length} points, from ${spell(each.y[0])} to ${spell(each.y[each.y.length - 1])}, between ${spell(low)} and ${spell(high)}`;
    });
    return `Line chart of ${spec.y} over ${spec.x}. ${parts.join("; ") || "No points yet"}. Arrow keys read the values.`;
  }

  /* ---- live events ---- */

  function listen(url, handlers) {
    const sign = byId("live");
    const say = (words, state) => { sign.textContent = words; sign.dataset.state = state; };
    const source = new EventSource(url);
    source.onopen = () => say("● live", "on");
    source.onerror = () => say("○ not connected, trying again", "off");
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), source));
    }
    window.addEventListener("pagehide", () => source.close());
    return source;
  }

  /* Puts a section the server has drawn in the place of the old one; keeps the keyboard's place. */
  function patch(sections) {
    for (const [id, markup] of Object.entries(sections)) {
      const old = byId(id);
      if (!old) { location.reload(); return; }
      const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const holder = document.createElement("template");
      holder.innerHTML = markup;
      const made = holder.content.firstElementChild;
      old.replaceWith(made);
      if (focused) (made.querySelector(`a[href="${CSS.escape(focused)}"]`) || made).focus();
    }
  }

  function board(place) {
    listen("/events/board", {
      sections: patch,
      structure: (now) => { if (now !== place.dataset.structure) location.reload(); },
    });
  }

  const COLUMNS = ["update", "loss", "accuracy", "rate", "gradient_norm"];

  function run(place) {
    const points = Object.fromEntries(COLUMNS.map((name) => [name, []]));
    const looks = { update: [], loss: [], accuracy: [], ratios: {} };
    const trivial = JSON.parse(place.dataset.trivial);
    const charts = Object.fromEntries(["loss", "accuracy", "ratios", "gradient"].map((name) => [name, new Chart(byId(name + "-plot"))]));

    function draw() {
      const seen = (name) => ({ name: "training", role: "quiet", x: points.update, y: points[name] });
      const judged = (name) => ({ name: "validation", role: "ours", dots: looks.update.length < 80, x: looks.update, y: looks[name] });
      charts.loss.draw({ x: "update", y: "loss", series: [seen("loss"), judged("loss")] });
      charts.accuracy.draw({ x: "update", y: "accuracy, %", series: [seen("accuracy"), judged("accuracy")], lines: trivial });
      charts.gradient.draw({ x: "update", y: "gradient norm", logY: true, yRange: logRange(points.gradient_norm), series: [{ ...seen("gradient_norm"), name: "before clipping" }] });
      const names = Object.keys(looks.ratios);
      byId("ratios-plot").closest("figure").hidden = !names.length;
      if (names.length) {
        charts.ratios.draw({ x: "update", y: "mean over features of the ratio r", series: names.map((name, k) => ({ name, role: `shade-${k % 6}`, x: looks.ratios[name].x, y: looks.ratios[name].y })) });
      }
    }

    function add(lines) {
      for (const each of lines) {
        if (each.kind === "point") {
          for (const name of COLUMNS) points[name].push(each[name] === undefined ? null : each[name]);
        } else if (each.kind === "validation") {
          for (const name of ["update", "loss", "accuracy"]) looks[name].push(each[name] === undefined ? null : each[name]);
          for (const [name, value] of Object.entries(each.ratios || {})) {
            const kept = (looks.ratios[name] = looks.ratios[name] || { x: [], y: [] });
            kept.x.push(each.update);
            kept.y.push(value);
          }
        }
      }
      while (points.update.length > 3000) {
        for (const name of COLUMNS) points[name] = points[name].filter((_, k) => k % 2);
      }
      draw();
    }

    function restart() {
      for (const name of COLUMNS) points[name].length = 0;
      for (const name of ["update", "loss", "accuracy"]) looks[name].length = 0;
      looks.ratios = {};
      draw();
    }

    listen(place.dataset.events, { restart, metrics: add, sections: patch, end: (_, source) => {
      source.close();
      byId("live").textContent = "finished: nothing more will come";
    } });
  }

  function logRange(values) {
    const [low, high] = extent(values.filter((value) => value > 0));
    return low > 0 ? [low / 1.5, high * 1.5] : [1e-3, 1];
  }

  /* ---- the theory instrument ---- */

  function instrument(form) {
    const inputs = Array.from(form.querySelectorAll("input, select"));
    const charts = Object.fromEntries(["signal", "transfer", "stencil", "energy"].map((name) => [name, new Chart(byId(name + "-plot"))]));
    let busy = false, waiting = false;

    async function ask() {
      if (busy) { waiting = true; return; }
      busy = true;
      const query = new URLSearchParams(new FormData(form));
      try {
        const answer = await fetch("/api/instrument?" + query, { headers: { accept: "application/json" } });
        const found = await answer.json();
        if (answer.ok) { show(found); history.replaceState(null, "", "/theory?" + query); }
        else read({ word: "refused", broken: true, why: found.error });
      } catch (error) {
        read({ word: "not connected", broken: true, why: "the dashboard does not answer; is it still running?" });
      }
      busy = false;
      if (waiting) { waiting = false; ask(); }
    }

    function read(said) {
      byId("reading").replaceChildren(html("strong", said.broken ? "broken" : "", (said.broken ? "✗ " : "✓ ") + said.word), ": " + said.why + ".");
    }

    function show(found) {
      const ours = found.reading.broken ? "warning" : "ours";
      const several = found.each_steps.length > 1;
      const mix = several ? `mix of ${found.each_steps.join(", ")} steps` : stepsOf(found.each_steps[0]);
      const single = { name: `one scale of ${stepsOf(found.single_steps)}`, role: "shade-1" };
      const sites = found.signal.before.map((_, k) => k);
      const one = several ? [{ ...single, x: sites, y: found.signal.single }] : [];
      charts.signal.draw({ x: "site", y: "u", yRange: pad(extent(found.signal.before)), series: [{ name: "before", role: "quiet", x: sites, y: found.signal.before }, ...one, { name: mix, role: ours, x: sites, y: found.signal.after }] });
      const omega = found.transfer.omega;
      charts.transfer.draw({
        x: "frequency ω, radians per site", y: found.transfer.quantity, xRange: [0, Math.PI], yRange: [-1.05, 1.15],
        series: [
          ...(several ? found.transfer.each.map((y, k) => ({ name: stepsOf(found.each_steps[k]), role: `shade-${k + 2}`, x: omega, y })) : []),
          ...(several ? [{ ...single, x: omega, y: found.transfer.single }] : []),
          { name: mix, role: ours, x: omega, y: found.transfer.mix },
        ],
      });
      charts.stencil.draw({ x: "distance in sites", y: "weight", series: [{ name: mix, role: ours, stems: true, x: found.stencil.x, y: found.stencil.y }] });
      const shares = found.energy.share.map((share) => Math.max(share, 1e-12));
      charts.energy.draw({ x: "steps", y: "Dirichlet energy, share of the first", logY: true, yRange: logRange([...shares, found.energy.mix]), series: [{ name: "one scale, step by step", role: ours, dots: true, x: found.energy.steps, y: shares }], lines: [{ name: several ? "the mix" : "after the layer", y: Math.max(found.energy.mix, 1e-12) }] });
      read(found.reading);
      const cells = byId("bands").querySelectorAll("td");
      [...found.bands.map((band) => (band.kept === null ? "—" : spell(100 * band.kept) + " %")), spell(found.mass[0] / sites.length), spell(found.mass[1] / sites.length)].forEach((text, k) => { cells[k].textContent = text; });
      byId("instrument").dataset.drawn = String(Number(byId("instrument").dataset.drawn || 0) + 1);
    }

    function moved(event) {
      const ratio = byId("ratio");
      if (event && event.target.id === "scheme") {
        const most = Number(event.target.selectedOptions[0].dataset.max);
        ratio.max = most;
        ratio.step = most > 2 ? 0.02 : 0.005;
      }
      for (const each of inputs) {
        const output = byId(each.id + "-value");
        if (output) output.textContent = each.value;
      }
      ask();
    }

    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", moved);
    moved();
  }

  /* ---- the compare page: a choice redraws the result in place ---- */

  function compare(form) {
    let last = 0;
    form.addEventListener("change", async (event) => {
      if (event.target.id === "grid") {
        location.assign("/compare?" + new URLSearchParams({ grid: event.target.value }));
        return;
      }
      const turn = ++last;
      const address = "/compare?" + new URLSearchParams(new FormData(form));
      const answer = await fetch(address);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (turn !== last) return;
      const made = page.getElementById("result");
      if (!made) { location.assign(address); return; }
      byId("result").replaceWith(made);
      history.replaceState(null, "", address);
    });
  }

  const starts = { board, run, instrument, choice: compare };
  for (const [id, start] of Object.entries(starts)) {
    if (byId(id)) start(byId(id));
  }
})();
