// What must hold in every trace, as in regard/trace/checks.py. A page that draws wrong numbers is worse than none.

import { row, rows } from "#app/arrays";

const ROW_TOLERANCE = 2e-3;
const CONTEXT_TOLERANCE = 1e-2;
const SUM_TOLERANCE = 1e-3;

/** What does not hold, first to last: the key of a message and what it is about. */
export function* problems(trace) {
  for (const side of ["source", "target"]) yield* text(side, trace[side]);
  const said = trace.target.pieces.reduce((sum, piece) => sum + piece.log_prob, 0);
  if (Math.abs(said - trace.target.log_prob) > SUM_TOLERANCE * trace.target.pieces.length) yield { key: "log_prob" };
  for (const attention of Object.values(trace.attentions)) yield* looks(attention, trace);
  yield* reading(trace);
  for (const [name, { values }] of Object.entries(trace.states))
    if (!values.every(Number.isFinite)) yield { key: "numbers", detail: name };
  yield* context(trace);
  yield* beam(trace);
  yield* effects(trace);
}

function* text(side, { text, pieces, words }) {
  // Python counts characters, JavaScript halves of some of them.
  const length = Array.from(text).length;
  if (!pieces.length || pieces.map((piece) => piece.surface).join("") !== text) yield { key: "surfaces", detail: side };
  const outside = ({ start, end }) => !(0 <= start && start <= end && end <= length);
  if (pieces.some(outside)) yield { key: "outside", detail: side };
  if (words.some((word) => outside(word) || word.pieces.some((piece) => !Number.isInteger(piece) || piece < 0 || piece >= pieces.length)))
    yield { key: "outside", detail: side };
}

function* looks(attention, trace) {
  const { kind, weights, logs, sums } = attention;
  const [source, target] = [trace.source.pieces.length, trace.target.pieces.length];
  const wanted = { cross: [target, source], encoder: [source, source], decoder: [target, target] }[kind];
  const [layers, heads, who, whom] = logs.shape;
  const shape = [layers, heads, ...(wanted ?? [])];
  const same = (one) => one.length === 4 && one.every((size, axis) => size === shape[axis] && size > 0);
  if (!wanted || !same(logs.shape) || !same(weights.shape) || sums.values.length !== layers * heads * who) {
    yield { key: "shape", detail: `${kind} ${logs.shape.join(" × ")}` };
    return;
  }
  if (attention.heads.length !== layers || attention.heads.some((layer) => layer.length !== heads))
    yield { key: "shape", detail: `${kind} heads` };
  if (![...weights.values].every(Number.isFinite) || !sums.values.every(Number.isFinite))
    yield { key: "numbers", detail: kind };
  for (let line = 0; line < layers * heads * who; line++) {
    const values = weights.values.subarray(line * whom, (line + 1) * whom);
    const sum = values.reduce((total, value) => total + value, 0);
    if (sum > 1 + ROW_TOLERANCE || (attention.normalised && sum < 1 - ROW_TOLERANCE) || values.some((one) => one < 0)) {
      yield { key: "sum", detail: `${kind}: ${sum.toFixed(4)}` };
      return;
    }
    if (attention.causal && values.subarray((line % who) + 1).some((value) => value !== 0)) {
      yield { key: "causal", detail: kind };
      return;
    }
  }
}

function* reading(trace) {
  const chosen = trace.model.reading;
  const cross = trace.attentions.cross;
  if (!chosen !== !cross) yield { key: "reading" };
  if (!chosen || !cross) return;
  const [layers, heads] = cross.logs.shape;
  const inside = (place, size) => Number.isInteger(place) && place >= 0 && place < size;
  if (!inside(chosen.layer, layers) || !(chosen.head === null || inside(chosen.head, heads))) yield { key: "reading" };
}

function* context(trace) {
  const { memory, "attention.context": mixed } = trace.states;
  const cross = trace.attentions.cross;
  if (!memory || !mixed || !cross) return;
  if (
    mixed.shape[1] !== memory.shape[1] ||
    memory.shape[0] !== cross.logs.shape[3] ||
    mixed.shape[0] !== cross.logs.shape[2]
  ) {
    yield { key: "context" };
    return;
  }
  const states = rows(memory);
  const largest = memory.values.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  const weights = rows(row(row(cross.weights, 0), 0));
  for (const [step, wanted] of rows(mixed).entries())
    if (difference(mix(weights[step], states), wanted) > CONTEXT_TOLERANCE * largest) {
      yield { key: "context" };
      return;
    }
}

function* beam({ beam, target }) {
  if (!beam) return;
  const follows = ({ parent, step }, number) =>
    parent === null ? step === 0 : parent < number && beam.nodes[parent]?.step === step - 1;
  if (!beam.nodes.every(follows)) yield { key: "beam" };
  else if (beam.best.map((one) => beam.nodes[one]?.id).join() !== target.pieces.map((piece) => piece.id).join())
    yield { key: "beam" };
}

function* effects({ effects, target, source }) {
  for (const name of effects ? ["erasure", "only_piece", "only_log_prob"] : []) {
    const found = effects[name];
    if (found && (found.length !== target.pieces.length || found.some((one) => one.length !== source.words.length)))
      yield { key: "effects", detail: name };
  }
}

/** Vectors mixed by weights: Σ α_i h_i. */
export function mix(weights, vectors) {
  const mixed = new Float64Array(vectors[0].length);
  vectors.forEach((vector, place) => vector.forEach((value, at) => (mixed[at] += weights[place] * value)));
  return mixed;
}

/** The largest difference of two vectors. */
export function difference(one, other) {
  return one.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0);
}
