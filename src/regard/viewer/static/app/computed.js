// The numbers of one step, each computed here from those before it where the trace has them, and compared with the model's.

import { row, rows } from "#app/arrays";
import { headOf } from "#app/data";
import { largest } from "#app/strips";

export const AGREES = 1e-2; // of states that have eleven bits

/** Vectors mixed by weights: Σ α_i h_i. */
export function mix(weights, vectors) {
  const mixed = new Float64Array(vectors[0].length);
  vectors.forEach((values, place) => values.forEach((value, at) => (mixed[at] += weights[place] * value)));
  return mixed;
}

/** The largest difference of two vectors. */
export function difference(one, other) {
  return one.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0);
}

/** Numbers that were computed here, and whether they are those of the model; the model's own where none could be. */
function checked(found, wanted, size = largest(wanted ?? found ?? [])) {
  if (!found || !wanted) return { values: found ?? wanted, agrees: null };
  return { values: found, agrees: difference(found, wanted) <= AGREES * Math.max(1, size) };
}

/**
 * What a drawing of this step shows: rows of a number or vector for each source piece, from below; the vector they are
 * mixed into; the query; the vectors that follow. `card` is the place of the card that computes it, -1 for what is given.
 * Null without attention.
 */
export function computed(trace, cards, step, layer, head) {
  const { cross } = trace.attentions;
  if (!cross) return null;
  const own = ([scores, weights]) => ({ scores: [...scores], weights: [...weights] });
  const model = own([cross.scores, cross.weights].map((values) => rows(headOf(values, layer, head))[step]));
  const card = (key) => cards.findIndex((one) => one.key === key);
  const made = card("qkv") < 0 ? recurrent : transformer;
  return { ...made({ trace, cards, card, step, layer, head, model }), card, model };
}

function recurrent({ trace, cards, card, step, model }) {
  const { states } = trace;
  const at = (name, where = step) => (states[name] ? row(states[name], where).values : null);
  const memory = states.memory ? rows(states.memory) : null;
  const weights = weighed(trace, model);
  const asks = cards[card("score")].shows[0];
  // What comes before the attention, within the step, has a card of its own in Nematus's cell only.
  const query = { symbol: asks.symbol, card: card("first_step"), values: at(asks.name), role: "decoder" };
  const cell = cards.find(({ key }) => key === "cell_with_context" || key === "second_step");
  const context = {
    symbol: "c_t",
    card: card("context"),
    role: "context",
    ...checked(memory && mix(weights.values, memory), at("attention.context")),
  };
  const chain = [];
  if (cell) chain.push({ symbol: "s_t", card: card(cell.key), role: "decoder", ...stepped(trace, cell, step, query.values) });
  else {
    const whole = context.values && query.values ? [...context.values, ...query.values] : null;
    chain.push({ symbol: "v_t", card: card("concat"), role: "context", values: whole, agrees: whole ? true : null });
    chain.push({ symbol: "s~_t", card: card("attentional"), role: "decoder", values: at("attentional"), agrees: null });
  }
  return {
    below: [
      { symbol: "h_i", card: -1, role: "encoder", vectors: memory },
      { symbol: "e_i", card: card("score"), role: "decoder", numbers: model.scores, agrees: null },
      { symbol: "α_i", card: card("softmax"), role: "context", numbers: weights.values, agrees: weights.agrees, weights: true },
    ],
    mixed: context,
    query,
    chain,
    // Where the word that was said last goes in: Bahdanau's cell comes after the attention, others before it.
    reads: card("cell_with_context") >= 0 ? "chain" : "query",
    entersChain: true,
    fresh: cell ? gate(trace, cell, step, "update") : null,
  };
}

function transformer({ trace, cards, card, step, layer, head, model }) {
  const of = (what) => {
    const found = trace.states[`decoder.${layer}.cross.${what}`];
    return found ? row(found, head) : null;
  };
  const [q, k, v, z] = ["query", "keys", "values", "heads"].map(of);
  const root = cards[card("product")].shows[0].scale;
  const query = q && row(q, step).values;
  const wanted = model.scores.map((score) => score * root);
  const products = k && query ? rows(k).map((key) => key.reduce((sum, value, at) => sum + value * query[at], 0)) : null;
  const product = checked(products, wanted);
  const scale = checked(products?.map((one) => one / root), model.scores);
  const weights = weighed(trace, { ...model, scores: scale.agrees ? scale.values : model.scores });
  const weighted = v && rows(v).map((values, place) => values.map((value) => value * weights.values[place]));
  const readout = trace.states.readout ? row(trace.states.readout, step).values : null;
  return {
    below: [
      { symbol: "k_i", card: card("qkv"), role: "encoder", vectors: k && rows(k) },
      { symbol: "q·k_i", card: card("product"), role: "decoder", numbers: product.values, agrees: product.agrees },
      { symbol: "e_i", card: card("scale"), role: "decoder", numbers: scale.values, agrees: scale.agrees },
      { symbol: "α_i", card: card("softmax"), role: "context", numbers: weights.values, agrees: weights.agrees, weights: true },
      { symbol: "α_i v_i", card: card("weigh_values"), role: "context", vectors: weighted, bound: v && largest(v.values) },
    ],
    mixed: {
      symbol: "z",
      card: card("sum"),
      role: "context",
      ...checked(v && mix(weights.values, rows(v)), z && row(z, step).values, v ? largest(v.values) : 1),
    },
    query: { symbol: "q", card: card("qkv"), role: "decoder", values: query },
    chain: [{ symbol: "readout", card: card("heads_and_output"), role: "decoder", values: readout, agrees: null, far: true }],
    reads: "query",
    entersChain: false,
    root,
  };
}

/** The softmax of scores; the model's weights where they are none: under a Gaussian window, or set by hand. */
function weighed(trace, { scores, weights }) {
  const high = scores.reduce((most, score) => (score > most ? score : most), -Infinity);
  const grown = scores.map((score) => (Number.isFinite(score) ? Math.exp(score - high) : 0));
  const sum = grown.reduce((total, one) => total + one, 0);
  const found = checked(grown.map((one) => one / sum), weights);
  return found.agrees ? found : { values: weights, agrees: null };
}

/** A gate of the cell of a card at this step; null if it was not recorded. */
function gate(trace, { shows }, step, name) {
  const found = trace.states[shows.find((show) => show.name.endsWith(`.${name}`))?.name];
  return found ? row(found, step).values : null;
}

/** s_t = (1 - z) s_{t-1} + z s~ of a gated cell whose gates were recorded; a second step goes on from the first. */
function stepped(trace, cell, step, first) {
  const name = cell.shows.find((show) => show.symbol === "s_t").name;
  const { [name]: states, [name.replace(/state$/, "start")]: start } = trace.states;
  if (!states) return checked(null, null);
  const [z, candidate] = ["update", "candidate"].map((one) => gate(trace, cell, step, one));
  const last = step ? row(states, step - 1).values : start?.values;
  // In a deep decoder the second step is that of the first layer, and s_t the state of the last.
  const deep = cell.key === "second_step" && !name.startsWith("decoder.0.");
  const before = deep ? null : cell.key === "second_step" ? first : last;
  const now = row(states, step).values;
  return checked(z && candidate && before ? now.map((_, at) => (1 - z[at]) * before[at] + z[at] * candidate[at]) : null, now);
}
