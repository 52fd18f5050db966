// Greedy and beam search of one source: the twin of regard/search. A prefix is what a translation must begin with.

import { BOS, EOS } from "#engine/tokenizer";

/** log Σ exp(logit): log_prob = logit - logNormaliser. */
export function logNormaliser(logits) {
  let [largest, sum] = [-Infinity, 0];
  for (let id = 0; id < logits.length; id++) if (logits[id] > largest) largest = logits[id];
  for (let id = 0; id < logits.length; id++) sum += Math.exp(logits[id] - largest);
  return largest + Math.log(sum);
}

/** The ids with the highest scores, best first and of equals the first; `<pad>` and `<s>` are never said. */
export function bestIds(logits, count) {
  const best = [];
  for (let id = EOS; id < logits.length; id++) {
    if (best.length === count && logits[id] <= logits[best.at(-1)]) continue;
    let place = best.length;
    while (place && logits[id] > logits[best[place - 1]]) place--;
    best.splice(place, 0, id);
    if (best.length > count) best.pop();
  }
  return best;
}

/** lp(Y) = ((5 + |Y|) / 6)^α (Wu et al. 2016, eq. 14), `</s>` counted; score = log_prob / lp(Y). */
export const lengthFactor = (numTokens, penalty) => ((5 + numTokens) / 6) ** penalty;

/** Scores with those of forbidden ids at minus infinity: a prefix allows one id as long as it lasts. */
function bound(logits, prefix, step) {
  if (step >= prefix.length) return logits;
  const only = new Float32Array(logits.length).fill(-Infinity);
  only[prefix[step]] = logits[prefix[step]];
  return only;
}

/**
 * The best translation of a source: `{ids, complete, score}`; a beam search adds what it tried to a tree, and to `trail`
 * where it stood before each step. `from` is such a place of an earlier search, to go on from.
 */
export function search(engine, source, options, prefix = [], { tree = null, trail = null, from = null } = {}) {
  const limit = Math.floor(options.max_ratio * source.length) + options.extra_tokens + prefix.length;
  const numSteps = Math.min(limit, engine.maxTokens ?? Infinity);
  const found = beam(engine, source, options, prefix, numSteps, { tree, trail, from });
  if (!found || !Number.isFinite(found.score))
    throw new Error("the model computes scores that are not finite, so its weights are damaged or far too large");
  return found;
}

/** What was said after `<s>`, without `</s>`. */
function finished(said, score) {
  const complete = said.at(-1) === EOS;
  return { ids: said.slice(1, complete ? -1 : undefined), complete, score };
}

/**
 * Each step looks at the likeliest continuations of the open hypotheses. Those among the best `beam_size` that say
 * `</s>` are finished; the best `beam_size` that do not stay open. The search is done when it has `beam_size` finished
 * ones and no open one scores, at its present length, above the worst. With a `beam_size` of 1 it is greedy.
 */
function beam(engine, source, { beam_size: size, length_penalty }, prefix, numSteps, { tree, trail, from }) {
  let { first, state, rows } = from ?? { first: 0, state: engine.start(source), rows: [{ said: [BOS], logProb: 0 }] };
  const kept = from ? [...from.kept] : [];
  if (from) tree?.begin(from.tree.nodes, first);
  for (let step = first; step < numSteps; step++) {
    trail?.push({ first: step, state, rows, kept: [...kept], tree });
    const after = engine.step(state, rows.map(({ said }) => said.at(-1)));
    const factor = lengthFactor(step + 1, length_penalty);
    const atLimit = step + 1 === numSteps;
    const offers = rows.flatMap(({ said, logProb }, row) => {
      const logits = bound(after.logits[row], prefix, step);
      const start = logProb - logNormaliser(after.logits[row]);
      return bestIds(logits, size + 2).map((id) => ({ row, id, logProb: start + logits[id], said: [...said, id] }));
    });
    const possible = offers.filter(({ logProb }) => logProb > -Infinity).sort((one, other) => other.logProb - one.logProb);
    possible.forEach((one, rank) => (one.leaves = rank < size && (one.id === EOS || atLimit)));
    for (const one of possible.filter(({ leaves }) => leaves)) kept.push({ ...one, step, score: one.logProb / factor });
    kept.sort(byRank).splice(size);
    const open = possible.filter(({ id }) => id !== EOS).slice(0, size);
    tree?.add(possible, atLimit ? [] : open, factor);
    const worst = kept.length === size ? kept.at(-1).score : -Infinity;
    if (atLimit || !open.length || !(open[0].logProb / factor > worst)) break;
    rows = open;
    state = after.state.select(open.map(({ row }) => row));
  }
  return kept.length ? finished(kept[0].said, kept[0].score) : null;
}

/** Complete ones first, then by score; of equals the first one found. */
function byRank(one, other) {
  const ends = (hypothesis) => Number(hypothesis.id === EOS);
  return ends(other) - ends(one) || other.score - one.score || one.step - other.step || one.row - other.row;
}

/** What a beam search tried, and what became of it; of those dropped only the best. */
export class Tree {
  constructor(numDropped) {
    Object.assign(this, { numDropped, nodes: [], rows: [null], numSteps: 0 });
  }

  /** Begin with what was tried before this step. */
  begin(nodes, step) {
    this.nodes = nodes.filter((node) => node.step < step);
    this.numSteps = step;
    if (step) this.rows = [...this.nodes.keys()].filter((at) => nodes[at].step === step - 1 && nodes[at].fate === "open");
  }

  add(possible, open, factor) {
    const dropped = new Set(possible.filter((one) => !one.leaves && !open.includes(one)).slice(0, this.numDropped));
    const found = new Map();
    for (const one of possible) {
      if (!one.leaves && !open.includes(one) && !dropped.has(one)) continue;
      const fate = open.includes(one) ? "open" : one.leaves ? "finished" : "dropped";
      found.set(one, this.nodes.length);
      const { id, logProb } = one;
      this.nodes.push({ parent: this.rows[one.row], step: this.numSteps, id, log_prob: logProb, score: logProb / factor, fate });
    }
    this.rows = open.map((one) => found.get(one));
    this.numSteps++;
  }

  /** The nodes that say these ids, first to last. */
  path(ids) {
    const path = [];
    ids.forEach((id, step) =>
      path.push(this.nodes.findIndex((node) => node.step === step && node.id === id && node.parent === (path.at(-1) ?? null))),
    );
    return path;
  }
}
