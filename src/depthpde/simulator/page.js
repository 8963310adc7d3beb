// Draws the pictures of a system's page from the numbers in it. No library, no network.
const data = JSON.parse(document.getElementById("data").textContent);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const STOPS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const MARGIN = 56, SIDE = 100, LEGEND = 170;

function shade(x) {
  const at = Math.max(0, Math.min(1, x)) * 4, i = Math.min(3, Math.floor(at));
  return STOPS[i].map((a, k) => Math.round(a + (STOPS[i + 1][k] - a) * (at - i)));
}

function range(values) {
  const finite = values.flat(9).filter(Number.isFinite);
  return [finite.reduce((a, b) => Math.min(a, b), Infinity),
          finite.reduce((a, b) => Math.max(a, b), -Infinity)];
}

function drawImage(canvas, rows, low, high) {
  const height = rows.length, width = rows[0].length;
  const small = document.createElement("canvas");
  small.width = width;
  small.height = height;
  const pen = small.getContext("2d"), pixels = pen.createImageData(width, height);
  rows.flat().forEach((value, k) => {
    const [r, g, b] = shade((value - low) / (high - low || 1));
    pixels.data.set([r, g, b, 255], 4 * k);
  });
  pen.putImageData(pixels, 0, 0);
  const target = canvas.getContext("2d");
  target.imageSmoothingEnabled = false;
  const scale = data.view === "image" ? Math.min(canvas.width / width, canvas.height / height) : 0;
  const [w, h] = scale ? [width * scale, height * scale] : [canvas.width, canvas.height];
  target.clearRect(0, 0, canvas.width, canvas.height);
  target.drawImage(small, (canvas.width - w) / 2, (canvas.height - h) / 2, w, h);
}

function label(value, isLog) {
  if (isLog) return "1e" + value.toFixed(1);
  return value && Math.abs(value) < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(3));
}

function drawCurves({ id, series, logs, names }) {
  const canvas = document.getElementById(id), pen = canvas.getContext("2d");
  const W = canvas.width, H = canvas.height, legend = series.length > 1 ? LEGEND : 16;
  const [fx, fy] = logs.map((isLog) => (isLog ? Math.log10 : (v) => v));
  const xs = range(series.map((s) => s.x.map(fx))), ys = range(series.map((s) => s.y.map(fy)));
  if (ys[0] === ys[1]) { ys[0] -= 1; ys[1] += 1; }  // a constant runs through the middle
  const X = (v) => SIDE + ((fx(v) - xs[0]) / (xs[1] - xs[0] || 1)) * (W - SIDE - legend);
  const Y = (v) => H - MARGIN - ((fy(v) - ys[0]) / (ys[1] - ys[0] || 1)) * (H - 1.6 * MARGIN);
  pen.clearRect(0, 0, W, H);
  pen.font = "20px system-ui";
  pen.fillStyle = color("--quiet");
  pen.strokeStyle = color("--rule");
  pen.strokeRect(SIDE, 0.6 * MARGIN, W - SIDE - legend, H - 1.6 * MARGIN);
  pen.fillText(label(xs[0], logs[0]), SIDE, H - MARGIN + 24);
  pen.textAlign = "right";
  pen.fillText(label(xs[1], logs[0]), W - legend, H - MARGIN + 24);
  pen.fillText(label(ys[1], logs[1]), SIDE - 10, 0.6 * MARGIN + 14);
  pen.fillText(label(ys[0], logs[1]), SIDE - 10, H - MARGIN);
  pen.textAlign = "center";
  pen.fillText(names[0], SIDE + (W - SIDE - legend) / 2, H - 8);
  pen.textAlign = "left";
  pen.fillText(names[1], SIDE, 0.6 * MARGIN - 10);
  series.forEach((each, i) => {
    const hue = series.length > 1 ? `hsl(${(i * 360) / series.length} 65% 45%)` : color("--accent");
    pen.strokeStyle = pen.fillStyle = hue;
    pen.lineWidth = 2.5;
    pen.beginPath();
    each.x.forEach((x, k) => (k ? pen.lineTo(X(x), Y(each.y[k])) : pen.moveTo(X(x), Y(each.y[k]))));
    pen.stroke();
    if (series.length > 1) pen.fillText(each.name, W - legend + 8, 0.6 * MARGIN + 22 + 24 * i);
  });
}

function drawTokens(canvas, tokens) {
  const pen = canvas.getContext("2d"), W = canvas.width, H = canvas.height, R = 0.44 * H;
  pen.clearRect(0, 0, W, H);
  pen.strokeStyle = color("--rule");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(W / 2, H / 2, R, 0, 7);
  pen.stroke();
  tokens.forEach((token, i) => {
    const near = token.length > 2 ? token[2] : 0;  // the third coordinate points at the reader
    pen.globalAlpha = 0.65 + 0.35 * near;
    pen.fillStyle = `hsl(${(i * 360) / tokens.length} 60% 50%)`;
    pen.beginPath();
    pen.arc(W / 2 + R * token[0], H / 2 - R * token[1], 7 + 2 * near, 0, 7);
    pen.fill();
  });
  pen.globalAlpha = 1;
}

const stage = document.getElementById("stage");
let frame = data.view === "image" ? data.frames.length - 1 : 0, playing = false;

function drawFrame() {
  if (!stage) return;
  document.getElementById("t").textContent = "t = " + data.times[frame].toPrecision(3);
  document.getElementById("at").value = frame;
  if (data.view === "tokens") drawTokens(stage, data.frames[frame]);
  else drawImage(stage, data.frames[frame], ...data.range);
}

function tick() {
  if (!playing) return;
  frame = (frame + 1) % data.frames.length;
  drawFrame();
  setTimeout(() => requestAnimationFrame(tick), 60);
}

function drawAll() {
  const field = document.getElementById("field");
  if (field) drawImage(field, data.field, ...range(data.field));
  data.curves.forEach(drawCurves);
  drawFrame();
}

if (stage) {
  document.getElementById("play").onclick = (event) => {
    playing = !playing;
    event.target.textContent = playing ? "Pause" : "Play";
    tick();
  };
  document.getElementById("at").oninput = (event) => {
    frame = +event.target.value;
    drawFrame();
  };
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
