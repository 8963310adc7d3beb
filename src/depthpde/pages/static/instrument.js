/* The instrument: move a slider, and everything answers at once, on any page that holds its form. */

import { Chart, extent, logRange, make, pad, spell } from "./chart.js";
import { LIMITS, SCHEMES, SIGNALS, measure } from "./diffusion.js";

const FLOOR = 1e-12;
const stepsOf = (count) => `${count} ${count === 1 ? "step" : "steps"}`;

export function instrument(form) {
  const byId = (id) => document.getElementById(id);
  const charts = {};
  for (const name of ["signal", "transfer", "stencil", "energy"]) {
    charts[name] = new Chart(byId(`${name}-plot`));
  }

  /* The form offers what the numbers know. */
  function offer() {
    for (const [id, names] of [["scheme", Object.keys(SCHEMES)], ["signal", Object.keys(SIGNALS)]]) {
      byId(id).replaceChildren(...names.map((name) => new Option(name.replaceAll("_", " "), name)));
    }
    for (const [id, [low, high]] of Object.entries(LIMITS)) Object.assign(byId(id), { min: low, max: high });
  }

  /* The address holds the setting, so that it can be shared. A file keeps it behind #, because
     browsers refuse a file any other change of its address. */
  function restore() {
    const words = new URLSearchParams(location.search || location.hash.slice(1));
    stretch(words.get("scheme"));
    for (const control of form.elements) {
      const word = words.get(control.name);
      const fits = control.tagName !== "SELECT" || [...control.options].some((each) => each.value === word);
      if (word !== null && fits) control.value = word;
    }
  }

  function keep() {
    const mark = location.protocol === "file:" ? "#" : "?";
    history.replaceState(null, "", mark + new URLSearchParams(new FormData(form)));
  }

  /* The slider of the ratio ends a little beyond the scheme's bound. */
  function stretch(scheme) {
    const ratio = byId("ratio");
    const { most } = SCHEMES[scheme in SCHEMES ? scheme : byId("scheme").value];
    Object.assign(ratio, { max: most, step: most > 2 ? 0.02 : 0.005 });
  }

  function setting() {
    const { scheme, signal, ...numbers } = Object.fromEntries(new FormData(form));
    const known = Object.fromEntries(Object.entries(numbers).map(([name, word]) => [name, Number(word)]));
    return { scheme, signal, ...known };
  }

  function read(said) {
    const word = make("strong", said.broken ? "broken" : "", `${said.broken ? "✗" : "✓"} ${said.word}`);
    byId("reading").replaceChildren(word, `: ${said.why}.`);
  }

  function show(found) {
    const several = found.eachSteps.length > 1;
    const ours = {
      role: found.reading.broken ? "warning" : "ours",
      name: several ? `mix of ${found.eachSteps.join(", ")} steps` : stepsOf(found.eachSteps[0]),
    };
    const single = { role: "shade-1", name: `one scale of ${stepsOf(found.singleSteps)}` };
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
        series.push({ name: stepsOf(found.eachSteps[k]), role: `shade-${k + 2}`, x, y });
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

  function moved() {
    stretch();
    for (const output of form.querySelectorAll("output")) {
      output.textContent = byId(output.htmlFor.value).value;
    }
    show(measure(setting()));
  }

  offer();
  restore();
  form.addEventListener("submit", (event) => event.preventDefault());
  let pause;
  form.addEventListener("input", () => {
    moved();
    clearTimeout(pause); // browsers refuse an address that changes at every pixel of a drag
    pause = setTimeout(keep, 150);
  });
  moved();
}
