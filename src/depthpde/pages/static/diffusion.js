/* What one diffusion layer does to a signal, computed in the page:

     u ← mean over scales k of D(r)^{s_k} u,      s_k = steps · (1, 4, 16)

   No-flux ends; neighbours stand `dilation` sites apart. The package's operators are the judge:
   tests/pages/static/test_diffusion.py holds every scheme and setting against them. */

export const LENGTH = 128;
export const MODES = 97;
export const FACTORS = [1, 4, 16];
export const LIMITS = { steps: [1, 16], scales: [1, 3], dilation: [1, 8] };
export const BANDS = ["low", "low-mid", "high-mid", "high"];
const EDGE = 48; // the stencil is drawn at most so many sites to either side

/* stable: beyond it some field grows; sign: up to it no wave changes its sign; most: how far the
   slider goes, a little beyond `stable`, so that instability can be seen. s = 4 sin²(δω/2). */
export const SCHEMES = {
  explicit: {
    stable: 1 / 2, sign: 1 / 4, most: 0.6,
    gain: (r, s) => 1 - r * s,
    step: (u, r, d) => u.map((value, i) => value + r * slope(u, i, d)),
  },
  backward_euler: {
    stable: Infinity, sign: Infinity, most: 4,
    gain: (r, s) => 1 / (1 + r * s),
    step: (u, r, d) => solve(u, r, d),
  },
  crank_nicolson: {
    stable: Infinity, sign: 1 / 2, most: 4,
    gain: (r, s) => (1 - (r * s) / 2) / (1 + (r * s) / 2),
    step: (u, r, d) => solve(u, r / 2, d).map((value, i) => 2 * value - u[i]),
  },
  exact: {
    stable: Infinity, sign: Infinity, most: 4,
    gain: (r, s) => Math.exp(-r * s),
  },
  upwind: {
    stable: 1, sign: 1 / 2, most: 1.2, causal: true,
    step: (u, r, d) => u.map((value, i) => (i < d ? value : value + r * (u[i - d] - value))),
  },
};

export const SIGNALS = {
  steps: (noise) => noise.map((z, i) => [0, 1, 0.25, -0.75][Math.floor((4 * i) / LENGTH)] + 0.15 * z),
  spike: (noise) => noise.map((_, i) => (i === LENGTH / 2 ? 1 : 0)),
  waves: (noise) => noise.map((_, i) => sum([3, 24, 96].map(
    (k) => Math.cos((Math.PI * k * (i + 0.5)) / LENGTH) / 3))),
  noise: (noise) => noise.map((z) => z / 2),
};

const sum = (values) => values.reduce((total, value) => total + value, 0);
const meanOf = (rows) => Array.from(rows[0], (_, i) => sum(rows.map((row) => row[i])) / rows.length);
const mixOf = (fields, several) => meanOf(several.map((count) => fields.get(count)));

/* (Lu)_i: what both neighbours lie above site i; an end has one neighbour. */
function slope(u, i, d) {
  const left = i >= d ? u[i - d] - u[i] : 0;
  const right = i + d < u.length ? u[i + d] - u[i] : 0;
  return left + right;
}

/* x with (I − rL) x = y, by elimination along every chain of sites δ apart. */
function solve(y, r, d) {
  const carry = new Float64Array(y.length);
  const x = y.slice();
  for (let i = 0; i < y.length; i++) {
    const below = i >= d ? r : 0;
    const above = i + d < y.length ? r : 0;
    const pivot = 1 + above + below - (below ? below * carry[i - d] : 0);
    carry[i] = above / pivot;
    x[i] = (y[i] + (below ? below * x[i - d] : 0)) / pivot;
  }
  for (let i = y.length - 1 - d; i >= 0; i--) x[i] += carry[i] * x[i + d];
  return x;
}

/* Return count → D(r)^count u for several counts of steps: one walk serves all of them. */
export function evolve(u, { scheme, ratio, dilation }, counts) {
  const start = Float64Array.from(u);
  if (scheme === "exact") {
    return new Map(counts.map((count) => [count, semigroup(start, ratio * count, dilation)]));
  }
  const { step } = SCHEMES[scheme];
  const [wanted, found] = [new Set(counts), new Map()];
  let field = start;
  for (let count = 0; found.size < wanted.size; count++) {
    if (wanted.has(count)) found.set(count, field);
    field = step(field, ratio, dilation);
  }
  return found;
}

/* exp(tL) u: each cosine of each chain is damped by itself. */
function semigroup(u, t, d) {
  const out = u.slice();
  for (let phase = 0; phase < Math.min(d, u.length); phase++) {
    const chain = u.filter((_, i) => i % d === phase);
    const n = chain.length;
    const damped = cosines(chain).map((c, k) => c * Math.exp(-4 * t * Math.sin((Math.PI * k) / (2 * n)) ** 2));
    const table = waves(n);
    for (let i = 0; i < n; i++) {
      let value = 0;
      for (let k = 0; k < n; k++) value += damped[k] * table[k * n + i];
      out[phase + i * d] = value;
    }
  }
  return out;
}

const tables = new Map();

/* The cosines of a chain of n sites, mode by mode; orthonormal, and kept once they are known. */
function waves(n) {
  if (!tables.has(n)) {
    tables.set(n, Float64Array.from({ length: n * n }, (_, at) => {
      const [k, i] = [Math.floor(at / n), at % n];
      return Math.sqrt((k ? 2 : 1) / n) * Math.cos((Math.PI * k * (i + 0.5)) / n);
    }));
  }
  return tables.get(n);
}

function cosines(u) {
  const [n, table] = [u.length, waves(u.length)];
  return u.map((_, k) => {
    let value = 0;
    for (let i = 0; i < n; i++) value += u[i] * table[k * n + i];
    return value;
  });
}

export function makeSignal(name) {
  return SIGNALS[name](normals(LENGTH));
}

/* Normal numbers that are the same at every call and in every browser: mulberry32, Box–Muller. */
function normals(count) {
  let state = 1;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
  return Array.from({ length: count }, () => (
    Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform())));
}

/* H(ω) of so many steps as [real, imaginary]; only upwind has an imaginary part. */
function response({ scheme, ratio: r, dilation: d }, omega, steps) {
  const { gain } = SCHEMES[scheme];
  if (gain) return [gain(r, 4 * Math.sin((d * omega) / 2) ** 2) ** steps, 0];
  const [re, im] = [1 - r + r * Math.cos(d * omega), -r * Math.sin(d * omega)];
  const [size, angle] = [Math.hypot(re, im) ** steps, Math.atan2(im, re) * steps];
  return [size * Math.cos(angle), size * Math.sin(angle)];
}

export function eachSteps(setting) {
  return FACTORS.slice(0, setting.scales).map((factor) => factor * setting.steps);
}

function transfer(setting, several, single) {
  const omega = Array.from({ length: MODES }, (_, k) => (Math.PI * k) / (MODES - 1));
  const { causal = false } = SCHEMES[setting.scheme];
  const shown = (counts) => omega.map((w) => {
    const parts = counts.map((steps) => response(setting, w, steps));
    const [re, im] = meanOf(parts);
    return causal ? Math.hypot(re, im) : re;
  });
  return {
    omega, mix: shown(several), each: several.map((steps) => shown([steps])), single: shown([single]),
    quantity: causal ? "|H(ω)|" : "H(ω)",
  };
}

function stencil(setting, several) {
  const half = Math.min(EDGE, Math.max(...several) * setting.dilation + 2);
  const spike = Array.from({ length: 4 * EDGE + 1 }, (_, i) => (i === 2 * EDGE ? 1 : 0));
  const weights = mixOf(evolve(spike, setting, several), several);
  const x = Array.from({ length: 2 * half + 1 }, (_, i) => i - half);
  return { x, y: x.map((distance) => weights[2 * EDGE + distance]) };
}

/* Half the squared slope between neighbours. */
function dirichlet(u, d) {
  let total = 0;
  for (let i = d; i < u.length; i++) total += (u[i] - u[i - d]) ** 2;
  return total / 2;
}

/* Where the energy is looked at: about 32 counts, to the end of the longest scale. */
function milestones(several) {
  const last = Math.max(...several, 16);
  const stride = Math.max(1, Math.floor(last / 32));
  return Array.from({ length: Math.ceil(last / stride) + 1 }, (_, k) => k * stride);
}

/* The share of each frequency band's energy that is kept; null where there was none. */
function bands(before, after) {
  const [old, now] = [before, after].map((u) => {
    const squares = Array.from(cosines(u), (c) => c * c);
    return BANDS.map((_, b) => sum(squares.filter((__, k) => Math.floor((4 * k) / u.length) === b)));
  });
  return BANDS.map((name, b) => ({ name, kept: old[b] > 1e-12 ? now[b] / old[b] : null }));
}

/* In words: what this ratio does, and whether it is within its bounds. */
export function read(setting) {
  const { stable, sign } = SCHEMES[setting.scheme];
  const short = (value, digits) => String(Number(value.toPrecision(digits)));
  const gain = Math.hypot(...response(setting, Math.PI / setting.dilation, 1));
  if (setting.ratio > stable) {
    const most = Math.max(...eachSteps(setting));
    const grown = `the roughest wave grows by ${short(gain, 3)} a step: ×${short(gain ** most, 2)} after ${most} steps`;
    return { word: "unstable", broken: true, why: `beyond ${stable} ${grown}` };
  }
  if (setting.ratio > sign) {
    return {
      word: "stable, signs flip", broken: false,
      why: `beyond ${sign} the roughest waves change their sign at every step`,
    };
  }
  const limit = sign < Infinity ? `up to ${sign}` : "at any ratio";
  return {
    word: "stable, signs kept", broken: false,
    why: `${limit} every wave only shrinks; the roughest keeps ${short(gain, 3)} a step`,
  };
}

/* Everything that is drawn for one setting { scheme, ratio, steps, scales, dilation, signal }. */
export function measure(setting) {
  const several = eachSteps(setting);
  const single = Math.round(sum(several) / several.length);
  const before = makeSignal(setting.signal);
  const steps = milestones(several);
  const fields = evolve(before, setting, [...several, single, ...steps]);
  const after = mixOf(fields, several);
  const start = dirichlet(before, setting.dilation);
  const share = (u) => dirichlet(u, setting.dilation) / start;
  return {
    eachSteps: several, singleSteps: single,
    stencil: stencil(setting, several),
    transfer: transfer(setting, several, single),
    energy: { steps, share: steps.map((count) => share(fields.get(count))), mix: share(after) },
    signal: { before, after, single: Array.from(fields.get(single)) },
    bands: bands(before, after),
    mass: [sum(before), sum(after)],
    reading: read(setting),
  };
}
