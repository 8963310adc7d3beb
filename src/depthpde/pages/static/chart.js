/* Line charts in SVG: pointed at or walked with the arrow keys, coloured by the style sheet. */

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 52, right: 14, top: 27, bottom: 38 };
const NAME_ROOM = 13; // pixels a line's name needs
const KEYS = {
  ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity,
};

function shape(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function make(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function spell(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "—";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const far = size >= 1e5 || size < 1e-3;
  const text = far ? value.toExponential(1) : String(Number(value.toPrecision(4)));
  return text.replace(/-/g, "−");
}

/* Least and largest of the numbers there are; never of no width. */
export function extent(values) {
  const known = values.filter((value) => value !== null && Number.isFinite(value));
  if (!known.length) return [0, 1];
  const low = known.reduce((a, b) => Math.min(a, b));
  const high = known.reduce((a, b) => Math.max(a, b));
  const room = low === high ? (Math.abs(low) || 1) * 0.1 : 0;
  return [low - room, high + room];
}

/* A little room around a range; zero stays an end where it is near. */
export function pad([low, high]) {
  const room = (high - low) * 0.06;
  return [low >= 0 && low < room * 4 ? 0 : low - room, high + room];
}

export function logRange(values) {
  const [low, high] = extent(values.filter((value) => value > 0));
  return low > 0 ? [low / 1.5, high * 1.5] : [1e-3, 1];
}

function niceTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    ticks.push(k * step);
  }
  return ticks;
}

function logTicks(low, high) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const stride = Math.max(1, Math.ceil((last - first) / 6));
  const digits = last - first > 2 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let k = first; k <= last; k += stride) {
    for (const digit of digits) ticks.push(digit * 10 ** k);
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

function axis([low, high], log, from, to, count) {
  const scale = log ? Math.log10 : (value) => value;
  const unit = (to - from) / (scale(high) - scale(low) || 1);
  const at = (value) => from + (scale(value) - scale(low)) * unit;
  return { at, log, ticks: log ? logTicks(low, high) : niceTicks(low, high, count) };
}

function outline(x, y, each) {
  let text = "";
  let pen = false;
  each.x.forEach((where, k) => {
    const value = each.y[k];
    if (value === null || !Number.isFinite(value) || (y.log && value <= 0)) {
      pen = false;
      return;
    }
    const height = Math.max(-4000, Math.min(8000, y.at(value)));
    text += `${pen ? "L" : "M"}${x.at(where).toFixed(1)} ${height.toFixed(1)}`;
    pen = true;
  });
  return text;
}

function describe(spec) {
  const parts = spec.series.filter((each) => each.x.length).map((each) => {
    const [low, high] = extent(each.y).map(spell);
    const ends = `from ${spell(each.y[0])} to ${spell(each.y[each.y.length - 1])}`;
    return `${each.name}: ${each.x.length} points, ${ends}, between ${low} and ${high}`;
  });
  const said = parts.join("; ") || "No points yet";
  return `Line chart of ${spec.y} over ${spec.x}. ${said}. Arrow keys read the values.`;
}

/* Draws into an element:
   { x, y: names of the axes, logY, xRange, yRange,
     series: [{ name, role, x: [], y: [], dots, stems }], lines: [{ name, y }] } */
export class Chart {
  constructor(place) {
    this.place = place;
    this.readout = make("p", "readout quiet");
    this.readout.setAttribute("aria-live", "polite");
    this.legend = make("ul", "keys");
    place.after(this.legend, this.readout);
    new ResizeObserver(() => this.paint()).observe(place);
  }

  draw(spec) {
    this.spec = spec;
    this.paint();
  }

  paint() {
    const width = this.place.clientWidth;
    const height = this.place.clientHeight;
    if (!this.spec || width < 40) return;
    const frame = {
      width, height, left: MARGIN.left, right: width - MARGIN.right,
      top: MARGIN.top, bottom: height - MARGIN.bottom,
    };
    const { series, lines = [], logY = false, xRange, yRange } = this.spec;
    const xs = xRange || extent(series.flatMap((each) => each.x));
    const ys = yRange || pad(extent([...series, ...lines].flatMap((each) => each.y)));
    const x = axis(xs, false, frame.left, frame.right, Math.max(2, width / 90));
    const y = axis(ys, logY && ys[0] > 0, frame.bottom, frame.top, height / 45);
    const svg = shape("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: "0",
      "aria-label": describe(this.spec),
    });
    svg.append(...this.axes(frame, x, y), this.ink(frame, x, y));
    this.x = x;
    this.cursor = shape("line", {
      class: "cursor", y1: frame.top, y2: frame.bottom, visibility: "hidden",
    });
    svg.append(this.cursor);
    this.replace(svg);
  }

  axes(frame, x, y) {
    const parts = [];
    for (const tick of y.ticks) {
      const at = y.at(tick);
      parts.push(
        shape("line", { class: "grid", x1: frame.left, x2: frame.right, y1: at, y2: at }),
        shape("text", { class: "tick", x: frame.left - 6, y: at + 4, "text-anchor": "end" }, spell(tick)),
      );
    }
    for (const tick of x.ticks) {
      const at = x.at(tick);
      parts.push(
        shape("line", { class: "mark", x1: at, x2: at, y1: frame.bottom, y2: frame.bottom + 4 }),
        shape("text", { class: "tick", x: at, y: frame.bottom + 16, "text-anchor": "middle" }, spell(tick)),
      );
    }
    const middle = (frame.left + frame.right) / 2;
    parts.push(
      shape("text", { class: "name", x: middle, y: frame.height - 4, "text-anchor": "middle" }, this.spec.x),
      shape("text", { class: "name", x: 0, y: 11 }, this.spec.y),
    );
    return parts;
  }

  ink(frame, x, y) {
    const clip = `${this.place.id}-clip`;
    const window = shape("rect", {
      x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top,
    });
    const ink = shape("g", { "clip-path": `url(#${clip})` }, shape("clipPath", { id: clip }, window));
    const names = [];
    const named = []; // heights of the names at the right; one that is close goes to the left
    for (const line of (this.spec.lines || []).toSorted((a, b) => a.y - b.y)) {
      const at = y.at(line.y);
      const crowded = named.some((other) => Math.abs(other - at) < NAME_ROOM);
      if (!crowded) named.push(at);
      const end = crowded
        ? { x: frame.left + 4, "text-anchor": "start" }
        : { x: frame.right - 2, "text-anchor": "end" };
      ink.append(
        shape("line", { class: "level", x1: frame.left, x2: frame.right, y1: at, y2: at }),
      );
      names.push(
        shape("text", { class: "tick level-name", y: at - 4, ...end }, `${line.name} ${spell(line.y)}`),
      );
    }
    for (const each of this.spec.series) {
      const known = each.x.map((where, k) => [x.at(where), each.y[k]]).filter(([, v]) => Number.isFinite(v));
      for (const [at, value] of each.stems ? known : []) {
        ink.append(shape("line", { class: `stem ${each.role}`, x1: at, x2: at, y1: y.at(0), y2: y.at(value) }));
      }
      ink.append(shape("path", {
        class: `curve ${each.role}`, d: outline(x, y, each), "data-points": each.x.length,
      }));
      for (const [at, value] of each.dots ? known : []) {
        ink.append(shape("circle", { class: `dot ${each.role}`, cx: at, cy: y.at(value), r: 2.5 }));
      }
    }
    ink.append(...names); // last, so that no curve strikes them out
    return ink;
  }

  replace(svg) {
    svg.addEventListener("pointermove", (event) => {
      this.point(event.clientX - svg.getBoundingClientRect().left);
    });
    svg.addEventListener("keydown", (event) => this.step(event));
    const focused = this.place.contains(document.activeElement);
    this.place.replaceChildren(svg);
    if (focused) svg.focus();
    this.legend.replaceChildren(...this.spec.series.map((each) => {
      const line = shape("path", { class: `curve ${each.role}`, d: "M1 5L27 5" });
      const sample = shape("svg", { width: 28, height: 10, "aria-hidden": "true" }, line);
      return make("li", "", sample, ` ${each.name}`);
    }));
  }

  point(pixel) {
    const far = this.spec.series[0].x.map((where) => Math.abs(this.x.at(where) - pixel));
    if (far.length) this.show(far.indexOf(far.reduce((a, b) => Math.min(a, b))));
  }

  step(event) {
    const last = this.spec.series[0].x.length - 1;
    if (!(event.key in KEYS) || last < 0) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(last, (this.at || 0) + KEYS[event.key])));
  }

  show(index) {
    const first = this.spec.series[0];
    const where = first.x[index];
    this.at = index;
    this.cursor.setAttribute("x1", this.x.at(where));
    this.cursor.setAttribute("x2", this.x.at(where));
    this.cursor.setAttribute("visibility", "visible");
    const parts = this.spec.series.map((each) => {
      const k = each.x === first.x ? index : each.x.findLastIndex((at) => at <= where);
      return k < 0 ? null : `${each.name} ${spell(each.y[k])}`;
    });
    this.readout.textContent = `${this.spec.x} ${spell(where)}: ${parts.filter(Boolean).join(", ")}`;
  }
}
