// The Transformer (Vaswani et al. 2017), one source at a time: the twin of regard/runtime/transformer.py.

import { add, concat, layerNorm, linear, mix, sinusoids, softmax, under } from "#engine/equations";
import { embedded, unseen } from "#engine/recurrent";

const SUMS = { own: "own_sum.norm.", cross: "cross_sum.norm.", feed_forward: "feed_forward_sum.norm." };

export class TransformerEngine {
  constructor(options, weights) {
    this.options = options;
    this.maxTokens = options.positions.kind === "learned" ? options.positions.max_positions : null;
    const layers = (side, count) =>
      Array.from({ length: count }, (_, layer) => {
        const inner = under(`${side}.${layer}.`, weights);
        const norms = Object.entries(SUMS).map(([part, name]) => [`${part}_norm`, under(name, inner)]);
        const parts = Object.keys(SUMS).map((part) => [part, under(`${part}.`, inner)]);
        return Object.fromEntries([...parts, ...norms]);
      });
    this.encoder = layers("encoder", options.num_encoder_layers);
    this.decoder = layers("decoder", options.num_decoder_layers);
    this.norms = { encoder: under("encoder_norm.", weights), decoder: under("decoder_norm.", weights) };
    this.positions = { source: weights.source_positions, target: weights.target_positions };
    this.source = weights["source.weight"];
    this.E = weights["target.weight"] ?? this.source;
    this.W_o = weights.W_o ?? this.E;
  }

  /** Read a source; `real` has a 0 for a token that is erased. */
  start(ids, probe = unseen, real = new Uint8Array(ids.length).fill(1)) {
    let x = this.place("source", this.source, ids, 0, probe);
    this.encoder.forEach((w, layer) => {
      const name = `encoder.${layer}`;
      const { q, k, v } = this.split(linear(this.enter(x, w.own_norm), w.own.W_QKV));
      const { mixed } = this.attend(q, q.map(() => ({ k, v, seen: real })), w.own, probe, `${name}.self`);
      x = probe(`${name}.self.sum`, this.leave(x, mixed, w.own_norm));
      x = probe(`${name}.states`, this.feedForward(x, w, probe, `${name}.feed_forward`));
    });
    const memory = probe("memory", this.norms.encoder.weight ? x.map((one) => layerNorm(one, this.norms.encoder)) : x);
    const size = this.options.hidden_size;
    const source = this.decoder.map((w) => {
      const kv = linear(memory, w.cross.W_KV);
      return { k: kv.map((one) => one.subarray(0, size)), v: kv.map((one) => one.subarray(size)), seen: real };
    });
    return new TransformerState([this.decoder.map(() => ({ k: [], v: [] }))], 0, source);
  }

  /** Read one more target id in each row. */
  step(state, ids, probe = unseen) {
    return this.decode(state, ids, ids.map((_, row) => row), ids.map(() => state.step), probe);
  }

  /** Read a source and a target, all positions at once. */
  force(ids, read, probe = unseen, real = undefined) {
    return this.decode(this.start(ids, probe, real), read, read.map(() => 0), read.map((_, step) => step), probe);
  }

  /** Read ids: the nth belongs to a row and a step. Steps of one row see those before them. */
  decode(state, ids, rowOf, stepOf, probe) {
    const past = state.past.map((layers) => layers.map(({ k, v }) => ({ k: k.slice(), v: v.slice() })));
    let x = this.place("target", this.E, ids, state.step, probe, stepOf);
    const attention = ids.map(() => []);
    this.decoder.forEach((w, layer) => {
      const name = `decoder.${layer}`;
      const { q, k, v } = this.split(linear(this.enter(x, w.own_norm), w.own.W_QKV));
      ids.forEach((_, at) => (past[rowOf[at]][layer].k.push(k[at]), past[rowOf[at]][layer].v.push(v[at])));
      const keys = q.map((_, at) => {
        const own = past[rowOf[at]][layer];
        return { ...own, seen: Uint8Array.from(own.k, (_, place) => (place <= stepOf[at] ? 1 : 0)) };
      });
      const { mixed } = this.attend(q, keys, w.own, probe, `${name}.self`, stepOf);
      x = probe(`${name}.self.sum`, this.leave(x, mixed, w.own_norm));
      const queries = linear(this.enter(x, w.cross_norm), w.cross.W_Q);
      const looked = this.attend(queries, queries.map(() => state.source[layer]), w.cross, probe, `${name}.cross`, stepOf);
      x = probe(`${name}.cross.sum`, this.leave(x, looked.mixed, w.cross_norm));
      x = probe(`${name}.states`, this.feedForward(x, w, probe, `${name}.feed_forward`));
      attention.forEach((one, at) => one.push(looked.weights.map((head) => head[at])));
    });
    const { decoder } = this.norms;
    const readout = probe("readout", decoder.weight ? x.map((one) => layerNorm(one, decoder)) : x);
    const logits = probe("logits", linear(readout, this.W_o));
    return { logits, attention, state: new TransformerState(past, stepOf.at(-1) + 1, state.source) };
  }

  /** The embeddings, √d times those of words (section 3.4), plus the positions (section 3.5). */
  place(side, E, ids, first, probe, stepOf = ids.map((_, at) => first + at)) {
    const size = this.options.hidden_size;
    const words = probe(`${side}.embedded`, embedded(E, ids).map((x) => x.map((one) => one * Math.sqrt(size))));
    const learned = this.positions[side];
    if (learned && Math.max(...stepOf) >= this.maxTokens)
      throw new Error(`a sequence is longer than the ${this.maxTokens} positions this model has learnt; shorten it`);
    const positions = stepOf.map((at) => (learned ? embedded(learned, [at])[0] : sinusoids(at, size)));
    const placed = probe(`${side}.positions`, positions);
    return words.map((x, at) => add(x, placed[at]));
  }

  split(rows) {
    const size = this.options.hidden_size;
    const part = (at) => rows.map((one) => one.subarray(at * size, (at + 1) * size));
    return { q: part(0), k: part(1), v: part(2) };
  }

  /** Concat(heads) W_O with head = softmax(Q K^T / √d_k) V (eq. 1), and the weights (heads, queries, keys). */
  attend(queries, keys, w, probe, name, stepOf = null) {
    const heads = Array.from({ length: this.options.num_heads }, (_, head) => head);
    const width = this.options.hidden_size / heads.length;
    queries = probe(`${name}.query`, queries);
    probe(`${name}.keys`, keys[0].k);
    probe(`${name}.values`, keys[0].v);
    const score = (q, { k }, first) => {
      const scores = new Float32Array(k.length);
      for (let at = 0; at < k.length; at++) {
        let sum = 0;
        for (let d = first; d < first + width; d++) sum += q[d] * k[at][d];
        scores[at] = sum / Math.sqrt(width);
      }
      return scores;
    };
    const scores = probe(`${name}.scores`, heads.map((head) => queries.map((q, at) => score(q, keys[at], head * width))));
    const seen = probe(`${name}.seen`, keys.map((one) => one.seen));
    const softened = scores.map((rows) => rows.map((row, at) => softmax(row, seen[at])));
    const weights = probe(`${name}.weights`, softened, stepOf);
    const mixed = queries.map((_, at) => concat(...heads.map((head) => mix(weights[head][at], keys[at].v, width, head * width))));
    return { mixed: probe(`${name}.output`, linear(probe(`${name}.heads`, mixed), w.W_O)), weights };
  }

  /** The sub-layer max(0, x W_1 + b_1) W_2 + b_2 (eq. 2) and its residual. */
  feedForward(x, { feed_forward: f, feed_forward_norm: norm }, probe, name) {
    const hidden = linear(this.enter(x, norm), f.W_1, f.b_1).map((row) => row.map((one) => Math.max(one, 0)));
    const output = linear(probe(`${name}.inner`, hidden), f.W_2, f.b_2);
    return this.leave(x, probe(`${name}.output`, output), norm);
  }

  /** What a sub-layer is given: x, or LayerNorm(x) before each sub-layer. */
  enter(x, norm) {
    return this.options.norm === "pre" ? x.map((one) => layerNorm(one, norm)) : x;
  }

  /** x + Sublayer, normalised after it as in section 3.1 if not before. */
  leave(x, output, norm) {
    const sums = x.map((one, at) => add(one, output[at]));
    return this.options.norm === "pre" ? sums : sums.map((one) => layerNorm(one, norm));
  }
}

/** All the decoder remembers: keys and values of each row's target so far, and those of the source. */
class TransformerState {
  constructor(past, step, source) {
    Object.assign(this, { past, step, source });
  }

  select(rows) {
    return new TransformerState(rows.map((row) => this.past[row]), this.step, this.source);
  }
}
