// The equations of the papers, one function each: the twin of regard/runtime/equations.py.
// `rows` are arrays of Float32Array, one for each hypothesis or token; `w` holds the weights of one part of a model.

/** The weights whose names start with a prefix, without it. */
export function under(prefix, weights) {
  const found = Object.entries(weights).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(found.map(([name, weight]) => [name.slice(prefix.length), weight]));
}

/** W x + b for each row x. Four rows share each weight that is read, and two weights each number of a row. */
export function linear(rows, W, b = null) {
  const [height, width] = W.shape;
  const w = W.values;
  const sums = rows.map(() => (b ? new Float32Array(b.values) : new Float32Array(height)));
  let first = 0;
  for (; first + 4 <= rows.length; first += 4) multiplyFour(w, width, rows.slice(first, first + 4), sums.slice(first, first + 4));
  for (; first < rows.length; first++) multiplyOne(w, width, rows[first], sums[first]);
  return sums;
}

/** Eight sums at a time: each waits for its last product. */
function multiplyFour(w, width, [x0, x1, x2, x3], [y0, y1, y2, y3]) {
  for (let out = 0; out < y0.length; out += 2) {
    const one = out * width;
    const other = out + 1 < y0.length ? one + width : one; // the last one alone is summed twice
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
    for (let i = 0; i < width; i++) {
      const u = w[one + i], v = w[other + i];
      const a = x0[i], b = x1[i], c = x2[i], d = x3[i];
      s0 += u * a, s1 += u * b, s2 += u * c, s3 += u * d;
      t0 += v * a, t1 += v * b, t2 += v * c, t3 += v * d;
    }
    y0[out] += s0, y1[out] += s1, y2[out] += s2, y3[out] += s3;
    if (other > one) y0[out + 1] += t0, y1[out + 1] += t1, y2[out + 1] += t2, y3[out + 1] += t3;
  }
}

/** Four sums at a time: each waits for the last product, so that four run beside each other. */
function multiplyOne(w, width, x, y) {
  for (let out = 0, at = 0; out < y.length; out++) {
    const end = at + width;
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0, i = 0;
    for (; at + 3 < end; at += 4, i += 4) {
      s0 += w[at] * x[i];
      s1 += w[at + 1] * x[i + 1];
      s2 += w[at + 2] * x[i + 2];
      s3 += w[at + 3] * x[i + 3];
    }
    for (; at < end; at++, i++) s0 += w[at] * x[i];
    y[out] += s0 + s1 + s2 + s3;
  }
}

export function add(x, y) {
  const sum = new Float32Array(x.length);
  for (let at = 0; at < x.length; at++) sum[at] = x[at] + y[at];
  return sum;
}
export const sigmoid = (x) => x.map((value) => 0.5 * (Math.tanh(0.5 * value) + 1));
export const tanh = (x) => x.map(Math.tanh);

export function dot(x, y) {
  let sum = 0;
  for (let at = 0; at < x.length; at++) sum += x[at] * y[at];
  return sum;
}

export function concat(...parts) {
  const whole = new Float32Array(parts.reduce((size, part) => size + part.length, 0));
  let place = 0;
  for (const part of parts) whole.set(part, place), (place += part.length);
  return whole;
}

/** exp(e_i) / Σ exp(e_j) over what is seen only; 0 elsewhere. */
export function softmax(scores, seen) {
  let largest = -Infinity;
  scores.forEach((score, at) => seen[at] && (largest = Math.max(largest, score)));
  const exponents = scores.map((score, at) => (seen[at] ? Math.exp(score - largest) : 0));
  const sum = exponents.reduce((total, one) => total + one, 0);
  return exponents.map((one) => one / sum);
}

/** Ba et al. 2016, eqs. 3-4: (x - mean) / deviation, times a gain, plus a bias. */
export function layerNorm(x, { weight, bias }) {
  const mean = x.reduce((sum, one) => sum + one, 0) / x.length;
  const variance = x.reduce((sum, one) => sum + (one - mean) ** 2, 0) / x.length;
  const deviation = Math.sqrt(variance + 1e-5);
  return x.map((one, at) => ((one - mean) / deviation) * weight.values[at] + bias.values[at]);
}

/** x after the layer norm of this name, if the model has it. */
export const normed = (x, name, w) =>
  w[`${name}.weight`] ? layerNorm(x, { weight: w[`${name}.weight`], bias: w[`${name}.bias`] }) : x;

/** U h of each row, normalised if layers are. */
const recurrent = (index, rows, w) => linear(rows, w[`U.${index}`]).map((x) => normed(x, `norms.${1 + index}`, w));

/** h_t = tanh(W x_t + U h_{t-1} + b) (Elman 1990). */
export function plainCell(gates, states, w) {
  const inner = recurrent(0, states, w);
  return gates.map((gate, row) => tanh(add(normed(gate, "norms.0", w), inner[row])));
}

/**
 * Bahdanau et al. 2015, A.1.1 and A.2.2: z = σ(W_z x + U_z s), r = σ(W_r x + U_r s), s~ = tanh(W x + U (r s)),
 * s_t = (1 - z) s + z s~. With C c apart as `late`, Cho et al. 2014, A.1.2: s~ = tanh(W x + r (U s + C c)).
 */
export function gatedCell(gates, states, w, probe, name, late = null) {
  const size = states[0].length;
  const inputs = gates.map((gate) => normed(gate, "norms.0", w));
  const inner = recurrent(0, states, w);
  const zr = inputs.map((input, row) => {
    const sums = add(inner[row], input);
    return sigmoid(late ? add(sums, late[row]) : sums);
  });
  const z = probe(`${name}.update`, zr.map((one) => one.slice(0, size)));
  const r = probe(`${name}.reset`, zr.map((one) => one.slice(size)));
  const seen = recurrent(1, late ? states : states.map((s, row) => s.map((one, at) => one * r[row][at])), w);
  const candidate = inputs.map((input, row) =>
    seen[row].map((one, at) => {
      const inside = late ? r[row][at] * (one + late[row][2 * size + at]) : one;
      return Math.tanh(input[2 * size + at] + inside);
    }),
  );
  const s_new = probe(`${name}.candidate`, candidate);
  return states.map((s, row) => s.map((one, at) => one + z[row][at] * (s_new[row][at] - one)));
}

/** A gated cell that resets after the product (Marian, cuDNN, PyTorch): s~ = tanh(W x + b + r (U s + b_U)). */
export function lateGatedCell(gates, states, w, probe, name) {
  const size = states[0].length;
  const inputs = gates.map((gate) => normed(gate, "norms.0", w));
  const inner = recurrent(0, states, w);
  const zr = inputs.map((input, row) => sigmoid(add(input.subarray(0, 2 * size), inner[row])));
  const z = probe(`${name}.update`, zr.map((one) => one.slice(0, size)));
  const r = probe(`${name}.reset`, zr.map((one) => one.slice(size)));
  const last = (row, at) => inner[row][2 * size + at] + (w.b_U ? w.b_U.values[at] : 0);
  const candidate = r.map((reset, row) => reset.map((one, at) => Math.tanh(inputs[row][2 * size + at] + one * last(row, at))));
  const s_new = probe(`${name}.candidate`, candidate);
  return states.map((s, row) => s.map((one, at) => one + z[row][at] * (s_new[row][at] - one)));
}

/** [i f o g] = [σ σ σ tanh](W x + U h), c_t = f c + i g, h_t = o tanh(c_t) (Zaremba et al. 2014). */
export function longShortTermCell(gates, states, w, probe, name) {
  const size = states[0].length / 2;
  const inner = recurrent(0, states.map((hc) => hc.subarray(0, size)), w);
  const sums = gates.map((gate, row) => add(normed(gate, "norms.0", w), inner[row]));
  const gate = (at) => sums.map((sum) => sigmoid(sum.slice(at * size, (at + 1) * size)));
  const i = probe(`${name}.input`, gate(0));
  const f = probe(`${name}.forget`, gate(1));
  const o = probe(`${name}.output`, gate(2));
  const g = probe(`${name}.candidate`, sums.map((sum) => tanh(sum.slice(3 * size))));
  const memory = states.map((hc, row) => f[row].map((one, at) => one * hc[size + at] + i[row][at] * g[row][at]));
  const c = probe(`${name}.memory`, memory);
  return c.map((one, row) => {
    const seen = tanh(normed(one, "norm_of_memory", w));
    return concat(o[row].map((open, at) => open * seen[at]), one);
  });
}

export const CELLS = { rnn: plainCell, gru: gatedCell, "gru-after": lateGatedCell, lstm: longShortTermCell };

/** The keys of `dot`: h, or the sum of its two directions. */
function prepareDot(memory, w, querySize) {
  return memory.map((h) => {
    const key = new Float32Array(querySize);
    h.forEach((one, at) => (key[at % querySize] += one));
    return key;
  });
}
const scaled = (keys, querySize) => keys.map((key) => key.map((one) => one / Math.sqrt(querySize)));
const prepareScaledDot = (memory, w, querySize) => scaled(prepareDot(memory, w, querySize), querySize);
const prepareGeneral = (memory, w) => linear(memory, w.W_a);
const prepareScaledGeneral = (memory, w, querySize) => scaled(prepareGeneral(memory, w), querySize);
const prepareAdditive = (memory, w) => linear(memory, w.U_a, w.b_a).map((key) => normed(key, "norm_of_keys", w));
/** The keys of `location`: for position i row i of W_a, whatever stands there. */
function prepareLocation(memory, { W_a }, querySize) {
  const row = (at) => (at < W_a.shape[0] ? W_a.values.slice(at * querySize, (at + 1) * querySize) : new Float32Array(querySize));
  return memory.map((_, at) => row(at));
}

export const PREPARE = {
  dot: prepareDot,
  "scaled-dot": prepareScaledDot,
  general: prepareGeneral,
  "scaled-general": prepareScaledGeneral,
  additive: prepareAdditive,
  location: prepareLocation,
};

/** e_i = s . key_i (Luong et al. 2015, section 3.1). */
const productScores = (queries, keys) => queries.map((s) => Float32Array.from(keys, (key) => dot(s, key)));

/** e_i = v_a . tanh(W_a s + U_a h_i + b_a) (Bahdanau et al. 2015, A.1.2). */
function additiveScores(queries, keys, w) {
  return linear(queries, w.W_a).map((one) => {
    const q = normed(one, "norm_of_query", w);
    return Float32Array.from(keys, (key) => {
      let sum = 0;
      for (let at = 0; at < q.length; at++) sum += w.v_a.values[at] * Math.tanh(q[at] + key[at]);
      return sum;
    });
  });
}

export const scoresOf = (kind) => (kind === "additive" ? additiveScores : productScores);

/** p_t = t, the last source token once the source has ended (Luong et al. 2015, local-m). */
export const monotonicPlace = (step, length) => Math.min(step, length - 1);

/** p_t = S sigmoid(v_p . tanh(W_p s)) (Luong et al. 2015, eq. 9). */
export function predictedPlace(queries, length, { W_p, v_p }) {
  return linear(queries, W_p).map((one) => length * 0.5 * (Math.tanh(0.5 * dot(tanh(one), v_p.values)) + 1));
}

/** exp(-(i - p_t)² / 2σ²) with σ = D/2 (Luong et al. 2015, eq. 10). */
export const gaussian = (offset, halfWidth) => Math.exp(-(offset * offset) / (2 * (halfWidth / 2) ** 2));

/** The larger of each two neighbours (Goodfellow et al. 2013; Bahdanau et al. 2015, A.2.2). */
export function maxout(x) {
  return Float32Array.from({ length: x.length / 2 }, (_, at) => Math.max(x[2 * at], x[2 * at + 1]));
}

/** Σ_i α_i h_i. */
export function mix(weights, rows, width = rows[0].length, first = 0) {
  const sum = new Float64Array(width);
  weights.forEach((weight, at) => {
    if (weight) for (let d = 0; d < width; d++) sum[d] += weight * rows[at][first + d];
  });
  return Float32Array.from(sum);
}

/** PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5). */
export function sinusoids(position, size) {
  return Float32Array.from({ length: size }, (_, at) => {
    const angle = position / 10_000 ** ((at - (at % 2)) / size);
    return at % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}
