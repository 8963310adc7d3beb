/* The theory page: move a slider, and the package computes everything anew. */

import { Chart, extent, logRange, make, pad, spell } from "./chart.js";

const FLOOR = 1e-12;
const stepsOf = (count) => `${count} ${count === 1 ? "step" : "steps"}`;

export function instrument(form) {
  const byId = (id) => document.getElementById(id);
  const charts = {};
  for (const name of ["signal", "transfer", "stencil", "energy"]) {
    charts[name] = new Chart(byId(`${name}-plot`));
  }
  let busy = false;
  let waiting = false;

  /* One question at a time, the newest next: as fast as the answers come, never behind. */
  async function ask() {
    if (busy) {
      waiting = true;
      return;
    }
    busy = true;
    const query = new URLSearchParams(new FormData(form));
    try {
      const answer = await fetch(`/api/instrument?${query}`);
      const found = await answer.json();
      if (answer.ok) {
        show(found);
        history.replaceState(null, "", `/theory?${query}`);
      } else {
        read({ word: "refused", broken: true, why: found.error });
      }
    } catch (error) {
      read({ word: "not connected", broken: true, why: "is the dashboard still running?" });
    }
    busy = false;
    if (waiting) {
      waiting = false;
      ask();
    }
  }

  function read(said) {
    const word = make("strong", said.broken ? "broken" : "", `${said.broken ? "✗" : "✓"} ${said.word}`);
    byId("reading").replaceChildren(word, `: ${said.why}.`);
  }

  function show(found) {
    const several = found.each_steps.length > 1;
    const ours = {
      role: found.reading.broken ? "warning" : "ours",
      name: several ? `mix of ${found.each_steps.join(", ")} steps` : stepsOf(found.each_steps[0]),
    };
    const single = { role: "shade-1", name: `one scale of ${stepsOf(found.single_steps)}` };
    drawSignal(found.signal, ours, several ? single : null);
    drawTransfer(found, ours, several ? single : null);
    charts.stencil.draw({
      x: "distance in sites", y: "weight", series: [{ ...ours, stems: true, ...found.stencil }],
    });
    drawEnergy(found.energy, ours, several);
    read(found.reading);
    tabulate(found);
    form.dataset.drawn = String(Number(form.dataset.drawn || 0) + 1);
  }

  function drawSignal(signal, ours, single) {
    const x = signal.before.map((_, site) => site);
    const series = [{ name: "before", role: "quiet", x, y: signal.before }];
    if (single) series.push({ ...single, x, y: signal.single });
    series.push({ ...ours, x, y: signal.after });
    charts.signal.draw({ x: "site", y: "u", yRange: pad(extent(signal.before)), series });
  }

  function drawTransfer(found, ours, single) {
    const { omega: x, each, mix, quantity } = found.transfer;
    const series = [];
    if (single) {
      each.forEach((y, k) => {
        series.push({ name: stepsOf(found.each_steps[k]), role: `shade-${k + 2}`, x, y });
      });
      series.push({ ...single, x, y: found.transfer.single });
    }
    series.push({ ...ours, x, y: mix });
    charts.transfer.draw({
      x: "frequency ω, radians per site", y: quantity, series,
      xRange: [0, Math.PI], yRange: [-1.05, 1.15],
    });
  }

  function drawEnergy(energy, ours, several) {
    const y = energy.share.map((share) => Math.max(share, FLOOR));
    const mix = Math.max(energy.mix, FLOOR);
    charts.energy.draw({
      x: "steps", y: "Dirichlet energy, share of the first", logY: true,
      yRange: logRange([...y, mix]),
      series: [{ role: ours.role, name: "one scale, step by step", dots: true, x: energy.steps, y }],
      lines: [{ name: several ? "the mix" : "after the layer", y: mix }],
    });
  }

  function tabulate(found) {
    const kept = found.bands.map((band) => (band.kept === null ? "—" : `${spell(100 * band.kept)} %`));
    const means = found.mass.map((mass) => spell(mass / found.signal.before.length));
    const cells = byId("bands").querySelectorAll("td");
    [...kept, ...means].forEach((text, k) => {
      cells[k].textContent = text;
    });
  }

  function moved(event) {
    const scheme = byId("scheme");
    const ratio = byId("ratio");
    if (event && event.target === scheme) {
      ratio.max = scheme.selectedOptions[0].dataset.max;
      ratio.step = Number(ratio.max) > 2 ? 0.02 : 0.005;
    }
    for (const output of form.querySelectorAll("output")) {
      output.textContent = byId(output.htmlFor.value).value;
    }
    ask();
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", moved);
  moved();
}
