// The trace as people look at it, with the same numbers as `Trace.heat_map` of regard/trace/views.py.

import { headOf } from "#app/data";
import { rows } from "#app/arrays";
import { printable } from "#app/dom";

const START = "<s>";
const MAX_KEPT = 8; // grids of a trace: a step changes none of them
const kept = new WeakMap();

/** The words of a side, their pieces and names, in order; what is in no word, such as `</s>`, is one itself. */
function named(text) {
  const found = text.words.map((word) => ({
    pieces: word.pieces,
    name: text.letters.slice(word.start, word.end).join(""),
  }));
  const covered = new Set(found.flatMap((unit) => unit.pieces));
  text.pieces.forEach((one, piece) => covered.has(piece) || found.push({ pieces: [piece], name: one.piece }));
  const before = ({ pieces: one }, { pieces: other }) => {
    for (let at = 0; at < Math.min(one.length, other.length); at++)
      if (one[at] !== other[at]) return one[at] - other[at];
    return one.length - other.length;
  };
  return found.sort(before);
}

/** The pieces of each word of a side. */
export const units = (text) => named(text).map((unit) => unit.pieces);

/** Names of the words or pieces of a side. */
export function names(text, by) {
  return by === "pieces"
    ? text.pieces.map((piece) => printable(piece.piece))
    : named(text).map((unit) => printable(unit.name));
}

/** Which unit of words each piece belongs to; the first, of one that touches two. */
export function unitOf(text, by, piece) {
  if (by === "pieces") return piece;
  return units(text).findIndex((unit) => unit.includes(piece));
}

/** Probability of each word or piece of the target. */
export function probs(target, by) {
  const logs = target.pieces.map((piece) => piece.log_prob);
  const groups = by === "pieces" ? logs.map((_, piece) => [piece]) : units(target);
  return groups.map((unit) =>
    Math.exp(
      Math.min(
        0,
        unit.reduce((sum, piece) => sum + logs[piece], 0),
      ),
    ),
  );
}

/** From pieces to words: the sum over a source word's pieces, the mean over a target word's. */
export function toWords(matrix, sourceUnits, targetUnits) {
  const touched = new Map();
  for (const unit of sourceUnits) for (const piece of unit) touched.set(piece, (touched.get(piece) ?? 0) + 1);
  return targetUnits.map((said) =>
    sourceUnits.map((read) => {
      let sum = 0;
      for (const t of said) for (const piece of read) sum += matrix[t][piece] / touched.get(piece) / said.length;
      return sum;
    }),
  );
}

/** Where each piece came from, by the attention that aligns best: `Trace.alignment_TS`. */
export function alignment(trace) {
  const { cross } = trace.attentions;
  const { reading } = trace.model;
  if (!cross || !reading) return trace.target.pieces.map(() => []);
  const looks = reading.posterior
    ? rows(trace.states["attention.posterior"])
    : mean(cross, cross.weights, reading.layer, reading.head);
  // The last piece is read by no step and keeps its own.
  return reading.shifted ? [...looks.slice(1), looks.at(-1)] : looks;
}

/** The mean of the chosen layers and heads, null for all; NaN where one of them may not look. */
export function mean(attention, values, layer, head) {
  const [layers, heads, who, whom] = attention.logs.shape;
  const all = (size, chosen) => (chosen === null ? [...Array(size).keys()] : [chosen]);
  const chosen = all(layers, layer).flatMap((l) => all(heads, head).map((n) => rows(headOf(values, l, n))));
  return Array.from({ length: who }, (_, t) =>
    Array.from({ length: whom }, (_, i) => chosen.reduce((sum, one) => sum + one[t][i], 0) / chosen.length),
  );
}

/** Weights with NaN where a causal attention may not look. */
export function seen(attention, matrix) {
  return attention.causal ? matrix.map((line, t) => line.map((value, i) => (i > t ? NaN : value))) : matrix;
}

/** Layer and head of the mechanics: those that are looked at, else those of the reading. */
export function layerAndHead(trace, state) {
  const { reading } = trace.model;
  const own = state.view === "cross";
  return {
    layer: (own ? state.layer : null) ?? reading?.layer ?? 0,
    head: (own ? state.head : null) ?? reading?.head ?? 0,
  };
}

/** The measures that show what the words of the source do. */
export const OF_EFFECTS = new Set(["erasure", "only"]);

/** Whether what is looked at is the source. */
export const aboutSource = ({ view }) => view === "alignment" || view === "cross";

/** The measures that can be shown of what is looked at. */
export function measures(trace, state) {
  const found = [];
  if (trace.attentions.cross) found.push("weights", "scores");
  if (trace.effects && aboutSource(state) && trace.source.words.length) {
    found.push("erasure");
    if (trace.effects.only_piece) found.push("only");
  }
  return found;
}

/**
 * The grid to draw: names and languages of rows and columns, values (NaN: may not be looked at), texts for cells that
 * say a word, the row of each step, and which units it is in.
 */
export function grid(trace, state) {
  if (!kept.has(trace)) kept.set(trace, new Map());
  const mine = kept.get(trace);
  const key = [state.view, state.layer, state.head, state.by, state.measure].join();
  if (!mine.has(key)) {
    if (mine.size >= MAX_KEPT) mine.delete(mine.keys().next().value);
    mine.set(key, made(trace, state));
  }
  return mine.get(key);
}

function made(trace, state) {
  const { measure } = state;
  if (measure === "erasure") return erasure(trace, state.by);
  if (measure === "only") return only(trace);
  const kind = state.view === "alignment" ? "cross" : state.view;
  // No word has one score, and a decoder reads pieces.
  const by = measure === "scores" || kind === "decoder" ? "pieces" : state.by;
  let matrix = values(trace, state, kind);
  const side = kind === "encoder" ? trace.source : trace.target;
  if (kind === "decoder") {
    const fed = [START, ...trace.target.pieces.slice(0, -1).map((piece) => printable(piece.piece))];
    return { matrix, rows: fed, columns: fed, by, signed: measure === "scores", kind, rowOf: (step) => step };
  }
  if (by === "words") matrix = toWords(matrix, units(trace.source), units(side));
  return {
    matrix,
    rows: names(side, by),
    columns: names(trace.source, by),
    by,
    signed: measure === "scores",
    kind,
    rowOf: (step) => (kind === "encoder" ? -1 : unitOf(trace.target, by, step)),
  };
}

function values(trace, { view, layer, head, measure }, kind) {
  if (view === "alignment" && measure === "weights") return alignment(trace);
  const attention = trace.attentions[kind];
  if (view === "alignment") ({ layer, head } = trace.model.reading);
  const found = mean(attention, measure === "scores" ? attention.scores : attention.weights, layer, head);
  return measure === "weights" ? seen(attention, found) : found;
}

function wordNames(trace) {
  return trace.source.words.map((word) => printable(trace.source.letters.slice(word.start, word.end).join("")));
}

function erasure(trace, by) {
  const changes = trace.effects.erasure;
  const groups = by === "pieces" ? changes.map((_, piece) => [piece]) : units(trace.target);
  return {
    matrix: groups.map((unit) =>
      trace.source.words.map((_, word) => unit.reduce((sum, piece) => sum + changes[piece][word], 0)),
    ),
    rows: names(trace.target, by),
    columns: wordNames(trace),
    by,
    signed: true,
    clips: true,
    kind: "cross",
    rowOf: (step) => unitOf(trace.target, by, step),
  };
}

function only(trace) {
  const { only_piece: pieces, only_log_prob: logs } = trace.effects;
  return {
    matrix: logs.map((line) => line.map((log) => Math.exp(Math.min(0, log)))),
    texts: pieces.map((line) => line.map(printable)),
    rows: names(trace.target, "pieces"),
    columns: wordNames(trace),
    by: "pieces",
    signed: false,
    kind: "cross",
    rowOf: (step) => step,
  };
}

/** The row of weights of a step, over units of the source. Never that of the step after: that is for the map. */
export function ribbons(trace, state) {
  if (!trace.attentions.cross) return [];
  const { layer, head } = state.view === "cross" ? state : trace.model.reading;
  const of = { ...state, measure: "weights", view: "cross", layer, head };
  const { matrix, rowOf } = grid(trace, of);
  return matrix[rowOf(state.step)] ?? [];
}

/** The smallest set of places that have this share of all weight, heaviest first. */
export function heaviest(weights, share) {
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one]);
  const wanted = share * weights.reduce((sum, weight) => sum + weight, 0);
  const kept = [];
  for (let sum = 0; kept.length < order.length && sum < wanted;) {
    sum += weights[order[kept.length]];
    kept.push(order[kept.length]);
  }
  return kept;
}

const CLEAR = 0.2; // a weight below this is no look worth counting

/** Blocks of a map where the order is turned round: rows after each other whose looks go back. */
export function reversals({ matrix, columns, rows, kind, signed, texts }) {
  if (kind !== "cross" || signed || texts) return [];
  const looks = matrix.map((line, r) => {
    const best = line.indexOf(Math.max(...line));
    return line[best] < CLEAR || columns[best] === "</s>" || rows[r] === "</s>" ? -1 : best;
  });
  const found = [];
  for (let first = 0, next; first < looks.length; first = next) {
    for (next = first + 1; looks[next] >= 0 && looks[next] <= looks[next - 1]; ) next++;
    const [high, low] = [looks[first], looks[next - 1]];
    if (low >= 0 && low < high) found.push({ row: first, column: low, height: next - first, width: high - low + 1 });
  }
  return found;
}
