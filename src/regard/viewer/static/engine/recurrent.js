// The recurrent family, one source at a time: the twin of regard/runtime/recurrent.py.

import { CELLS, PREPARE, add, concat, dot, gaussian, linear, maxout, mix, monotonicPlace, normed, predictedPlace, scoresOf, softmax, tanh, under } from "#engine/equations";

const [NUM_PLACES, NUM_RIVALS] = [8, 64];

export const unseen = (name, value) => value;

export class RecurrentEngine {
  /** With `posterior`, given translations are told where their words came from. */
  constructor(options, weights, posterior = false) {
    this.options = options;
    this.posterior = posterior;
    this.attention = options.attention.kind === "none" ? null : options.attention;
    this.cell = CELLS[options.cell];
    this.maxTokens = null;
    this.resetsLate = options.cell === "gru" && "decoder.V" in weights;
    const layers = Array.from({ length: options.num_layers }, (_, layer) => layer);
    this.encoder = layers.map((layer) =>
      ["rightward", "leftward"]
        .map((direction) => [direction, under(`encoder.layers.${layer}.${direction}.`, weights)])
        .filter(([, w]) => w.W),
    );
    this.decoder = under("decoder.", weights);
    this.cells = layers.map((layer) => under(`decoder.cells.${layer}.`, weights));
    this.second = this.attention?.kind === "step-attend-step" ? under("decoder.second.", weights) : null;
    this.scorer = under("decoder.attention.scorer.", weights);
    this.place = under("decoder.attention.place.", weights);
    this.readout = under("readout.", weights);
    this.source = weights["source.weight"];
    this.E = weights["target.weight"] ?? this.source;
    this.W_o = weights.W_o ?? this.E;
    this.b_o = weights.b_o;
  }

  /** Read a source; `real` has a 0 for a token that is erased. */
  start(ids, probe = unseen, real = new Uint8Array(ids.length).fill(1)) {
    let below = probe("source.embedded", embedded(this.source, ids));
    const [finals, ends] = [[], []];
    this.encoder.forEach((directions, layer) => {
      const [outputs, lasts] = [[], []];
      for (const [direction, w] of directions) {
        const name = `encoder.${layer}.${direction}`;
        const states = this.read(below, real, direction === "leftward", w, probe, name);
        outputs.push(probe(`${name}.states`, states.map((state) => this.hidden(state))));
        lasts.push(states.at(direction === "leftward" ? 0 : -1));
      }
      const output = below.map((_, at) => concat(...outputs.map((states) => states[at])));
      below = this.options.residual && layer ? output.map((one, at) => add(one, below[at])) : output;
      finals.push(lasts.at(-1));
      ends.push(concat(...lasts.map((last) => this.hidden(last))));
    });
    return this.begin(probe("memory", below), finals, ends, real, probe);
  }

  /** The state after each token, read in one direction (Bahdanau et al. 2015, A.2.1). */
  read(rows, real, leftward, w, probe, name) {
    const gates = linear(rows, w.W, w.b);
    const states = [];
    let state = new Float32Array(this.options.hidden_size * (this.options.cell === "lstm" ? 2 : 1));
    for (let n = 0; n < rows.length; n++) {
      const at = leftward ? rows.length - 1 - n : n;
      const [after] = this.cell([gates[at]], [state], w, probe, name);
      states[at] = state = real[at] ? after : state;
    }
    return states;
  }

  /** The decoder's state before the first word. */
  begin(h, finals, ends, real, probe) {
    const [w, size] = [this.decoder, this.options.hidden_size];
    let fed = null;
    if (w.V) [fed] = probe("decoder.summary", linear([ends.at(-1)], w.V).map(tanh)); // Cho et al. 2014, A.1
    const layers = finals.map((state, layer) => {
      const W_s = w[`W_s.${layer}`];
      if (this.second) {
        // Sennrich et al. 2017: s_0 = tanh(W_s mean(h) + b_s)
        const share = 1 / Math.max(real.reduce((sum, one) => sum + one, 0), 1);
        const [sums] = linear([mix(Float32Array.from(real, (one) => one * share), h)], W_s, w[`b_s.${layer}`]);
        state = concat(tanh(normed(sums, `norms_of_start.${layer}`, w)), state.subarray(size));
      } else if (W_s) {
        // Bahdanau et al. 2015, A.2.2: s_0 = tanh(W_s h←_1); Cho: tanh(V' c)
        const [s] = linear([fed ?? (this.attention ? state.subarray(0, size) : ends[layer])], W_s);
        state = concat(tanh(s), state.subarray(size));
      }
      return probe(`decoder.${layer}.start`, [state]);
    });
    let memories = null;
    if (this.attention) {
      const { kind, max_positions } = this.attention.scorer;
      if (kind === "location") real = real.map((one, at) => (at < max_positions ? one : 0));
      const keys = probe("attention.keys", PREPARE[kind](h, this.scorer, size));
      memories = { h, keys, real, length: real.reduce((sum, one) => sum + one, 0) };
      if (this.attention.input_feeding) fed = new Float32Array(size);
    }
    return new RecurrentState(layers, 0, memories, fed && [fed]);
  }

  /** Read one more target id in each row. */
  step(state, ids, probe = unseen) {
    const { readout, attention, state: after } = this.advance(state, ids, probe);
    return { logits: probe("logits", linear(readout, this.W_o, this.b_o)), attention, state: after };
  }

  /** A step up to the vector that meets the output matrix. */
  advance(state, ids, probe) {
    const w = this.decoder;
    const y = probe("target.embedded", embedded(this.E, ids));
    let gates = linear(y, this.cells[0].W, this.cells[0].b);
    let [context, weights, entering] = [w.V ? state.fed : null, null, state.fed];
    if (this.attention?.kind === "attend-then-step") {
      ({ context, weights } = this.attend(state.layers.at(-1).map((one) => this.hidden(one)), state, probe));
      entering = context;
    }
    let late = null;
    if (w.C && entering) {
      const extra = linear(entering, w.C);
      if (this.resetsLate) late = extra;
      else gates = gates.map((gate, row) => add(gate, extra[row]));
    }
    let top = gates;
    const layers = this.cells.map((cell, layer) => {
      const below = top;
      if (layer) gates = linear(below, cell.W, cell.b);
      let after = this.cell(gates, state.layers[layer], cell, probe, `decoder.${layer}`, layer ? null : late);
      if (this.second && !layer) {
        // Sennrich et al. 2017: attend with s'_t, then a second step
        ({ context, weights } = this.attend(after.map((one) => this.hidden(one)), state, probe));
        after = this.cell(linear(context, this.second.W, this.second.b), after, this.second, probe, "decoder.second");
      }
      const states = probe(`decoder.${layer}.state`, after);
      top = states.map((one) => this.hidden(one));
      if (this.options.residual && layer) top = top.map((one, row) => add(one, below[row]));
      return states;
    });
    let fed = state.fed;
    const rest = this.posterior ? this.restOf(top, y) : null;
    if (this.attention?.kind === "step-then-attend") {
      ({ context, weights } = this.attend(top, state, probe));
      const both = top.map((one, row) => concat(context[row], one));
      top = probe("attentional", linear(both, w.W_c).map(tanh)); // Luong et al. 2015, eq. 5
      fed = this.attention.input_feeding ? top : null;
    }
    const readout = this.readOut(top, y, context, probe);
    const attention = ids.map((_, row) => (weights ? [[weights[row]]] : []));
    return { readout, attention, rest, state: new RecurrentState(layers, state.step + 1, state.memories, fed) };
  }

  /** Read a source and a target, step by step; the output matrix, the largest, meets all steps at once. */
  force(ids, read, probe = unseen, real = undefined) {
    let state = this.start(ids, probe, real);
    const [readouts, attention, rests] = [[], [], []];
    for (const id of read) {
      const step = this.advance(state, [id], probe);
      state = step.state;
      readouts.push(step.readout[0]);
      attention.push(step.attention[0]);
      rests.push(step.rest?.[0]);
    }
    const logits = probe("logits", linear(readouts, this.W_o, this.b_o));
    if (!this.posterior) return { logits, attention };
    const { memories } = state;
    const shares = this.sharesOf(memories.h);
    const nowhere = Float32Array.from(memories.real, (one) => one / memories.length); // `<s>`
    const origin = read.map((id, step) =>
      step ? this.origin(id, attention[step - 1][0][0], rests[step - 1], logits[step - 1], shares) : nowhere,
    );
    for (const row of origin) probe("attention.posterior", [row]);
    return { logits, attention, origin };
  }

  /** What each memory adds to the sums of the readout, seen alone. */
  sharesOf(h) {
    const { W_c } = this.decoder;
    if (W_c) return linear(h.map((one) => concat(one, new Float32Array(this.options.hidden_size))), W_c);
    return linear(h, this.readout.C_o).map((sum) => normed(sum, "norms.C_o", this.readout));
  }

  /** What all but the context adds to them. */
  restOf(states, y) {
    const { W_c } = this.decoder;
    const w = this.readout;
    if (W_c) return linear(states.map((one) => concat(new Float32Array(W_c.shape[1] - one.length), one)), W_c);
    const from = (rows, name, bias) => linear(rows, w[name], bias).map((sum) => normed(sum, `norms.${name}`, w));
    const [own, last] = [from(states, "U_o", w.b_m), from(y, "V_o")];
    return own.map((one, row) => add(one, last[row]));
  }

  /** Where an id came from: α_i p(y | s, h_i) over its sum (Shankar and Sarawagi 2019). */
  origin(id, weights, rest, logits, shares) {
    const places = [...weights.keys()].sort((one, other) => weights[other] - weights[one]).slice(0, NUM_PLACES);
    const num = Math.min(NUM_RIVALS, logits.length);
    const rivals = Array.from({ length: num }, (_, at) => at); // of each class, the likeliest
    for (let at = num; at < logits.length - (logits.length % num); at++) if (logits[at] > logits[rivals[at % num]]) rivals[at % num] = at;
    const ids = [id, ...rivals.filter((one) => one !== id)];
    let t = places.map((place) => add(rest, shares[place])).map(this.options.readout === "maxout" ? maxout : tanh);
    if (this.readout.P_o) t = linear(t, this.readout.P_o);
    const rows = embedded(this.W_o, ids);
    const joint = t.map((one, at) => {
      const scores = Float32Array.from(ids, (other, n) => dot(one, rows[n]) + this.b_o.values[other]);
      return weights[places[at]] * softmax(scores, scores.map(() => 1))[0];
    });
    const sum = Math.max(joint.reduce((total, one) => total + one, 0), 1e-30);
    const origin = new Float32Array(weights.length);
    places.forEach((place, at) => (origin[place] = joint[at] / sum));
    return origin;
  }

  /** The context c = Σ α_i h_i and its weights α (Bahdanau et al. 2015, eqs. 5-6). */
  attend(queries, { memories, step }, probe) {
    const { window, scorer } = this.attention;
    const steps = queries.map(() => step);
    queries = probe("attention.query", queries);
    const scores = probe("attention.scores", scoresOf(scorer.kind)(queries, memories.keys, this.scorer));
    let weights;
    if (window.kind === "global") {
      const seen = probe("attention.seen", queries.map(() => memories.real));
      weights = scores.map((row, at) => softmax(row, seen[at]));
    } else {
      const { length } = memories;
      const places =
        window.kind === "local-m" ? queries.map(() => monotonicPlace(step, length)) : predictedPlace(queries, length, this.place);
      const centre = probe("attention.place", places).map((place) => Math.min(Math.max(place, 0), length));
      const inside = centre.map((place) => memories.real.map((real, at) => (real && Math.abs(at - place) <= window.half_width ? 1 : 0)));
      const seen = probe("attention.seen", inside);
      weights = scores.map((row, at) => {
        if (!seen[at].includes(1)) return new Float32Array(row.length); // all that is in view was erased
        const looks = softmax(row, seen[at]);
        return window.kind === "local-p" ? looks.map((one, i) => one * gaussian(i - centre[at], window.half_width)) : looks;
      });
    }
    weights = probe("attention.weights", weights, steps);
    return { context: probe("attention.context", weights.map((row) => mix(row, memories.h))), weights };
  }

  /** The vector that meets the output matrix (Bahdanau et al. 2015, A.2.2, eq. 4's s_t). */
  readOut(states, y, context, probe) {
    const w = this.readout;
    let t = states;
    if (w.U_o) {
      const from = (rows, name, bias) => linear(rows, w[name], bias).map((sum) => normed(sum, `norms.${name}`, w));
      const shares = [from(states, "U_o", w.b_m), from(y, "V_o"), ...(context ? [from(context, "C_o")] : [])];
      const sums = states.map((_, row) => shares.map((share) => share[row]).reduce(add));
      t = sums.map(this.options.readout === "maxout" ? maxout : tanh);
    }
    if (w.P_o) t = linear(t, w.P_o);
    return probe("readout", t);
  }

  /** h of a state, which for an LSTM is [h; c]. */
  hidden(state) {
    return state.subarray(0, this.options.hidden_size);
  }
}

/** All the decoder remembers between two steps; the source is the same for all rows. */
class RecurrentState {
  constructor(layers, step, memories, fed) {
    Object.assign(this, { layers, step, memories, fed });
  }

  select(rows) {
    const pick = (all) => rows.map((row) => all[row]);
    return new RecurrentState(this.layers.map(pick), this.step, this.memories, this.fed && pick(this.fed));
  }
}

/** The vector of each id. */
export function embedded({ shape, values }, ids) {
  return ids.map((id) => values.slice(id * shape[1], (id + 1) * shape[1]));
}
