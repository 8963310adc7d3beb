/* The page of a run: curves that grow while it learns. */

import { Chart, logRange } from "./chart.js";
import { listen, patch } from "./live.js";

const COLUMNS = ["update", "loss", "accuracy", "gradient_norm"];
const MOST = 3000;

const either = (value) => (value === undefined ? null : value);

export function run(place) {
  const trivial = JSON.parse(place.dataset.trivial);
  const charts = {};
  for (const name of ["loss", "accuracy", "ratios", "gradient"]) {
    charts[name] = new Chart(document.getElementById(`${name}-plot`));
  }
  let points, looks, ratios;

  function restart() {
    points = Object.fromEntries(COLUMNS.map((name) => [name, []]));
    looks = { update: [], loss: [], accuracy: [] };
    ratios = {};
    draw();
  }

  function draw() {
    const seen = (name) => ({ name: "training", role: "quiet", x: points.update, y: points[name] });
    const dots = looks.update.length < 80;
    const judged = (name) => ({ name: "validation", role: "ours", dots, x: looks.update, y: looks[name] });
    const x = "update";
    charts.loss.draw({ x, y: "loss", series: [seen("loss"), judged("loss")] });
    charts.accuracy.draw({
      x, y: "accuracy, %", lines: trivial, series: [seen("accuracy"), judged("accuracy")],
    });
    charts.gradient.draw({
      x, y: "gradient norm", logY: true, yRange: logRange(points.gradient_norm),
      series: [{ ...seen("gradient_norm"), name: "before clipping" }],
    });
    const names = Object.keys(ratios);
    charts.ratios.place.closest("figure").hidden = !names.length;
    if (names.length) {
      const series = names.map((name, k) => ({ name, role: `shade-${k % 6}`, ...ratios[name] }));
      charts.ratios.draw({ x, y: "mean over features of the ratio r", series });
    }
  }

  function add(lines) {
    for (const each of lines) {
      if (each.kind === "point") {
        for (const name of COLUMNS) points[name].push(either(each[name]));
        continue;
      }
      for (const name of Object.keys(looks)) looks[name].push(either(each[name]));
      for (const [name, value] of Object.entries(each.ratios)) {
        ratios[name] = ratios[name] || { x: [], y: [] };
        ratios[name].x.push(each.update);
        ratios[name].y.push(value);
      }
    }
    while (points.update.length > MOST) {
      for (const name of COLUMNS) points[name] = points[name].filter((_, k) => k % 2);
    }
    draw();
  }

  restart();
  listen(place.dataset.events, { restart, metrics: add, sections: patch });
}
