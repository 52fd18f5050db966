// From a text to its trace: the twin of regard/trace (make.py, compose.py, recorded.py, effects.py).
// Arrays stand in the document as `{shape, values}`; `packed` makes the file that Python reads.

import { Recorder, RequestError, checkInterventions, matcher, probeOf, tampered } from "#engine/interventions";
import { BOS, EOS, FIRST_BYTE, NUM_RESERVED, normalize, toOriginal, words } from "#engine/tokenizer";
import { Tree, bestIds, lengthFactor, logNormaliser, search } from "#engine/search";

const MAX_PIECES = 200;
const MAX_PIECES_WITH_STATES = 60;
const [NUM_DROPPED, NUM_CANDIDATES, NUM_NEAREST] = [5, 10, 8];
const LEAST_LOG_PROB = -1e4;

const short = (number) => Number(Math.max(number, LEAST_LOG_PROB).toPrecision(6));
const rounded = (number) => Number(number.toFixed(4));
const safe = (text) => text.replace(/[\ud800-\udfff]/gu, "�");
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

/**
 * What the model itself does with a text. `asked`: text, interventions, prefix or force, effects, gates.
 * Effects take most of the time: `effects(isStale)` computes them, with pauses in which somebody else can be answered.
 */
export async function trace(model, asked) {
  const { facts, engine, source, target } = model;
  const { interventions = [], effects = false, gates = false } = asked;
  const started = performance.now();
  const read = readSource(source, asked.text, engine);
  const ids = read.pieces.map(({ id }) => id);
  checkInterventions(interventions, facts.design, read.pieces);
  const record = gates ? facts.design.gates : [];
  const [stepping, whole] = [false, true].map((one) => (interventions.length ? tampered(engine, probeOf(interventions, facts.design, one)) : engine));
  const targetIds = (what, text) => within(what, target.encode(normalize(text).characters).ids, engine);
  const [given, prefix] = [asked.force ?? null, asked.prefix ?? null].map((text, at) => text === null ? null : targetIds(["the given translation", "the prefix"][at], text));
  if (given && !given.length) throw new RequestError("the given translation is blank; leave it out to have the text translated");
  const mode = given ? "forced" : facts.search.beam_size === 1 ? "greedy" : "beam";
  const tree = mode === "beam" ? new Tree(NUM_DROPPED) : null;
  const last = lastSource(model, ids.join());
  const said = given ? { ids: given, complete: true } : search(stepping, ids, facts.search, prefix ?? [], { tree, ...roadOf(last, prefix, interventions) });
  said.all = said.complete ? [...said.ids, EOS] : said.ids;
  const late = interventions.find((one) => one.type === "look" && one.step >= said.all.length);
  if (late) throw new RequestError(`there is no step ${late.step + 1}: the translation has ${said.all.length} steps`);
  const searched = performance.now();
  const detailed = Math.max(ids.length - 1, said.ids.length) < MAX_PIECES_WITH_STATES;
  const kept = detailed ? [...facts.design.states, ...record] : facts.about.reading?.posterior ? ["attention.posterior"] : [];
  const seen = readAgain(whole, ids, said, kept);
  if (given) said.score = sum(seen.logProbs) / lengthFactor(seen.logProbs.length, 1);
  const recorded = performance.now();
  const clean = (text) => (text === null ? null : safe(normalize(text).characters.join("")));
  const request = {
    text: safe(asked.text), mode, search: given ? {} : facts.search, prefix: clean(asked.prefix ?? null), forced: clean(asked.force ?? null),
    interventions: interventions.map(completed), effects, record,
  };
  const numForced = given ? said.all.length : Math.min(prefix?.length ?? 0, said.all.length);
  const document_ = {
    format: "regard-trace/1",
    id: await traceId(facts, request),
    created: new Date().toISOString().replace(/\.\d+Z/, "+00:00"),
    generator: facts.generator,
    model: facts.about,
    request: { ...request, part: null, features: null },
    whole: null,
    source: { text: safe(asked.text), pieces: read.pieces, words: wordsOf(asked.text, read.spans, ids.length - 1), nearest: detailed ? (last.nearest ??= nearestPieces(source, engine.source, ids)) : null },
    target: targetSection(target, said, seen, numForced),
    attentions: Object.entries(facts.design.attentions).map(([kind, names]) => attentionSection(kind, names, seen, facts, interventions)),
    states: Object.fromEntries(Array.from(seen.recorder.seen.keys()).filter((name) => kept.some((one) => matcher(one).test(name))).map((name) => [name, stateOf(name, seen, facts)])),
    beam: tree && beamSection(target, tree, said, facts.search.beam_size),
    effects: null,
    metrics: metricsSection(said, seen, facts.about.reading),
    timing: null,
    warnings: warningsOf(facts, ids.length - 1, said, detailed, given),
  };
  document_.timing = { search: rounded(searched - started), record: rounded(recorded - searched), effects: null };
  const wanted = effects && detailed;
  return { document: document_, effects: async (isStale) => (wanted ? effectsOf(stepping, whole, ids, said, seen, asked.text, read, target, isStale) : null) };
}

/** What is kept of the source that was read last, so that a change of its translation is answered sooner. */
const lastSource = (model, key) => (model.last?.key === key ? model.last : (model.last = { key, nearest: null, trail: [] }));

/** Where a search begins: forced looks leave all steps before the first of them as they were. The plain search is noted down. */
function roadOf({ trail }, prefix, interventions) {
  if (prefix || !interventions.every(({ type }) => type === "look")) return {};
  if (!interventions.length) return { trail: trail.length ? null : trail };
  return { from: trail[Math.min(...interventions.map(({ step }) => step), trail.length - 1)] ?? null };
}

/** The pieces of a text, `</s>` last, with spans in it. */
function readSource(tokenizer, text, engine) {
  const normalized = normalize(text, { foldQuotes: true });
  if (!normalized.characters.length) throw new RequestError("the text is blank; give a sentence to look at");
  const { ids, spans: inside } = tokenizer.encode(normalized.characters);
  within("the text", ids, engine);
  const letters = Array.from(safe(text));
  const spans = inside.map((span) => toOriginal(normalized, span, letters.length));
  spans.push([spans.at(-1)[1], spans.at(-1)[1]]);
  const surfaces = surfacesOf(letters, spans);
  const pieces = [...ids, EOS].map((id, at) => ({ piece: safe(tokenizer.pieces[id]), id, surface: surfaces[at], start: spans[at][0], end: spans[at][1] }));
  return { pieces, spans };
}

function within(what, ids, engine) {
  const most = Math.min(MAX_PIECES, engine.maxTokens ?? MAX_PIECES);
  if (ids.length + 1 > most) throw new RequestError(`${what} has ${ids.length + 1} pieces and a picture shows no more than ${most}; give one sentence`);
  return ids;
}

/** What each piece adds to a text; the last one has what is left. */
function surfacesOf(letters, spans) {
  let place = 0;
  return spans.map(([, end], at) => {
    const start = place;
    place = at === spans.length - 1 ? letters.length : Math.max(place, end);
    return letters.slice(start, place).join("");
  });
}

/** The words with their pieces, `</s>` aside; a mere space belongs to the word after it. */
function wordsOf(text, spans, numPieces) {
  const found = words(safe(text)).map(([start, end]) => ({ start, end, pieces: [] }));
  spans.forEach(([start, end], piece) => {
    const touched = start < end ? found.filter((word) => word.start < end && word.end > start) : [];
    touched.forEach((word) => word.pieces.push(piece));
    if (!touched.length && piece < numPieces) (found.find((word) => word.start >= start) ?? found.at(-1))?.pieces.push(piece);
  });
  found.forEach((word) => word.pieces.sort((one, other) => one - other));
  return found.filter((word) => word.pieces.length);
}

/** For each id, the pieces whose embeddings have the largest cosine with its own. */
function nearestPieces(tokenizer, { shape: [size, width], values }, ids) {
  const dot = (one, other) => {
    let total = 0;
    for (let at = 0; at < width; at++) total += values[one * width + at] * values[other * width + at];
    return total;
  };
  const norms = Float64Array.from({ length: size }, (_, id) => Math.max(Math.sqrt(dot(id, id)), 1e-9));
  return ids.map((id) => {
    const cosines = norms.map((norm, other) => (other < NUM_RESERVED || other === id ? -Infinity : dot(id, other) / norm));
    return bestIds(cosines, NUM_NEAREST).filter((one) => cosines[one] > -Infinity).map((one) => safe(tokenizer.pieces[one]));
  });
}

/** Let the engine read the source and what was said, with a recorder on. */
function readAgain(engine, ids, said, kept) {
  const recorder = new Recorder(["*.scores", "*.weights", "*.seen", ...kept]);
  const { logits, attention, origin } = engine.force(ids, fed(said), recorder.probe);
  return { recorder, logits, attention, origin, logProbs: logProbsOf(logits, said) };
}

/** What the decoder reads at each step: `<s>`, then what it has said. */
const fed = (said) => [BOS, ...said.all.slice(0, -1)];
const logProbsOf = (logits, said) => said.all.map((id, step) => Math.max(logits[step][id] - logNormaliser(logits[step]), LEAST_LOG_PROB));

function targetSection(tokenizer, said, { logits, logProbs }, numForced) {
  const { text: raw, spans } = tokenizer.decode(said.ids);
  const [text, letters] = [safe(raw), Array.from(raw)];
  if (said.complete) spans.push([letters.length, letters.length]);
  const surfaces = surfacesOf(Array.from(text), spans);
  const pieces = said.all.map((id, step) => {
    const [row, whole] = [logits[step], logNormaliser(logits[step])];
    const best = bestIds(row, NUM_CANDIDATES);
    let [entropy, rank] = [0, 1];
    for (const logit of row) {
      if (logit > -Infinity) entropy -= Math.exp(logit - whole) * (logit - whole);
      if (logit > row[id]) rank++;
    }
    return {
      piece: safe(tokenizer.pieces[id]), id, surface: surfaces[step], start: spans[step][0], end: spans[step][1],
      log_prob: short(logProbs[step]), entropy: short(entropy), rank, forced: step < numForced,
      candidates: { ids: best, pieces: best.map((one) => safe(tokenizer.pieces[one])), log_probs: best.map((one) => short(row[one] - whole)) },
    };
  });
  return { text, pieces, words: wordsOf(text, spans, said.ids.length), complete: said.complete, log_prob: sum(logProbs), score: said.score, flags: [] };
}

/** Scores and weights of all layers of an attention, in the order layers, heads, who, whom. */
function attentionSection(kind, names, { recorder }, { design }, interventions) {
  const all = (name, what) => {
    const values = recorder.seen.get(`${name}.${what}`);
    return name === "attention" ? [values.flat()] : values[0]; // of each step, or of all heads at once
  };
  const [logs, sums, weights, heads] = [[], [], [], []];
  let others = false;
  for (const name of names) {
    const [scores, looks] = [all(name, "scores"), all(name, "weights")];
    const seen = name === "attention" ? all(name, "seen")[0] : recorder.seen.get(`${name}.seen`)[0];
    scores.forEach((rows, head) =>
      rows.forEach((row, at) => {
        const masked = Array.from(row, (score, place) => (seen[at][place] ? score : -Infinity));
        const total = logNormaliser(masked);
        sums.push(total);
        masked.forEach((score, place) => {
          const log = Math.min(score - total, 0);
          others ||= Math.abs(Math.exp(log) - looks[head][at][place]) > 1e-5;
          logs.push(log);
          weights.push(looks[head][at][place]);
        });
      }),
    );
    heads.push(looks.map(headOf));
  }
  const shape = [names.length, design.num_heads, sums.length / names.length / design.num_heads, logs.length / sums.length];
  const lifted = interventions.some((one) => one.type === "mask_off");
  return {
    kind,
    log_weights: { shape, values: Float32Array.from(logs) },
    log_sums: { shape: shape.slice(0, 3), values: Float32Array.from(sums) },
    weights: others ? { shape, values: Float32Array.from(weights) } : null,
    causal: kind === "decoder" && !lifted,
    normalised: design.rows_sum_to_one,
    heads,
  };
}

const entropyOf = (row) => -row.reduce((total, one) => total + (one > 0 ? one * Math.log(one) : 0), 0);
const meanOf = (numbers) => sum(numbers) / numbers.length;

/** How a head looks in general. */
function headOf(rows) {
  const distances = rows.map((row, at) => {
    const place = at / Math.max(rows.length - 1, 1);
    return row.reduce((total, one, column) => total + one * Math.abs(place - column / Math.max(row.length - 1, 1)), 0);
  });
  return { entropy: rounded(meanOf(rows.map(entropyOf))), diagonality: rounded(1 - meanOf(distances)) };
}

/** A recorded quantity: a row for each source piece or each step; of queries, keys, values and heads (heads, rows, width). */
function stateOf(name, { recorder }, { design }) {
  const seen = recorder.seen.get(name);
  const rows = (seen.length > 1 && name.includes(".leftward.") ? seen.toReversed() : seen).flat();
  if (typeof rows[0] === "number") return { shape: [rows.length], values: Float32Array.from(rows) };
  const width = rows[0].length;
  if (name === "decoder.summary" || name.endsWith(".start")) return { shape: [width], values: Float32Array.from(rows[0]) };
  const values = new Float32Array(rows.length * width);
  if (!/\.(self|cross)\.(query|keys|values|heads)$/.test(name)) {
    rows.forEach((row, at) => values.set(row, at * width));
    return { shape: [rows.length, width], values };
  }
  const size = width / design.num_heads;
  rows.forEach((row, at) => {
    for (let head = 0; head < design.num_heads; head++) values.set(row.subarray(head * size, (head + 1) * size), (head * rows.length + at) * size);
  });
  return { shape: [design.num_heads, rows.length, size], values };
}

function beamSection(tokenizer, tree, said, size) {
  const nodes = tree.nodes.map((node) => ({ ...node, piece: safe(tokenizer.pieces[node.id]), log_prob: short(node.log_prob), score: short(node.score) }));
  return { size, nodes, best: tree.path(said.all) };
}

/** Where each step looked by the attention that aligns best. */
function looksOf(attention, { layer, head }) {
  return attention.map((layers) => (head === null ? layers[layer][0].map((_, at) => meanOf(layers[layer].map((row) => row[at]))) : layers[layer][head]));
}

function metricsSection(said, { attention, origin, logProbs }, reading) {
  const perplexity = Math.exp(Math.min(-sum(logProbs) / logProbs.length, 700));
  const none = { perplexity, coverage: null, coverage_penalty: null, coverage_deviation: null, entropy_out: null, entropy_in: null };
  if (!reading) return none;
  const looks = (reading.posterior ? origin : looksOf(attention, reading)).map((row) => Array.from(row));
  const coverage = looks[0].map((_, place) => sum(looks.map((row) => row[place])));
  return {
    perplexity,
    coverage: coverage.map(short),
    coverage_penalty: sum(coverage.map((one) => Math.log(Math.min(Math.max(one, 1e-4), 1)))),
    coverage_deviation: -meanOf(coverage.map((one) => Math.log1p((1 - one) ** 2))),
    entropy_out: meanOf(looks.map(entropyOf)),
    entropy_in: meanOf(coverage.map((whole, place) => entropyOf(looks.map((row) => row[place] / Math.max(whole, 1e-12))))),
  };
}

/** What each source word does: what is said without it, and what would be said from it alone. */
async function effectsOf(stepping, whole, ids, said, seen, text, { spans }, tokenizer, isStale) {
  const all = wordsOf(text, spans, ids.length - 1).map(({ pieces }) => pieces);
  const erased = [];
  for (const pieces of all) {
    await pause(isStale);
    const real = Uint8Array.from(ids, (_, at) => (pieces.includes(at) ? 0 : 1));
    erased.push(logProbsOf(whole.force(ids, fed(said), undefined, real).logits, said));
  }
  const erasure = said.all.map((_, step) => erased.map((row) => rounded(row[step] - seen.logProbs[step])));
  if (!seen.attention[0].length || !all.length) return { erasure, only_id: null, only_piece: null, only_log_prob: null };
  const only = await onlyLooks(stepping, ids, said, seen, all, isStale);
  return {
    erasure,
    only_id: only.map((row) => row.map(({ id }) => id)),
    only_piece: only.map((row) => row.map(({ id }) => safe(tokenizer.pieces[id]))),
    only_log_prob: only.map((row) => row.map(({ logProb }) => rounded(logProb))),
  };
}

/** What each step would say if it looked at one source word only; all steps before it are as they were. */
async function onlyLooks(engine, ids, said, { attention }, all, isStale) {
  let state = engine.start(ids);
  const found = [];
  for (const [step, id] of fed(said).entries()) {
    await pause(isStale);
    const heads = attention[step].flat();
    const mean = ids.map((_, place) => meanOf(heads.map((row) => row[place])));
    const looks = all.map((pieces) => {
      const row = new Float32Array(ids.length);
      const total = sum(pieces.map((piece) => mean[piece] + 1e-6));
      pieces.forEach((piece) => (row[piece] = (mean[piece] + 1e-6) / total));
      return row;
    });
    // The first row goes on as it was, the others look at a word each and are forgotten.
    const forced = (rows) => [rows[0], ...looks];
    const probe = (name, value) => {
      if (name !== "attention.weights" && !name.endsWith(".cross.weights")) return value;
      return value[0] instanceof Float32Array ? forced(value) : value.map(forced);
    };
    const rows = [0, ...all.map(() => 0)];
    const after = engine.step(state.select(rows), rows.map(() => id), probe);
    state = after.state.select([0]);
    const best = after.logits.slice(1).map((logits) => ({ logits, id: bestIds(logits, 1)[0] }));
    found.push(best.map(({ logits, id: one }) => ({ id: one, logProb: logits[one] - logNormaliser(logits) })));
  }
  return found;
}

/** Let messages come in; an error if nobody waits for the rest any more. */
async function pause(isStale) {
  await new Promise((go) => setTimeout(go));
  if (isStale()) throw new RequestError("nobody waits for this any more");
}

function warningsOf({ split_above }, numPieces, said, detailed, given) {
  const unknown = said.ids.filter((id) => id >= FIRST_BYTE && id < NUM_RESERVED).length;
  return [
    given && unknown > Math.max(3, Math.floor(said.ids.length / 3)) && "the translation is unlike what the model has learnt to say",
    split_above !== null && numPieces > split_above && `\`translate\` would split this text: the model has learnt from texts of up to ${split_above} pieces`,
    !detailed && `above ${MAX_PIECES_WITH_STATES} pieces only the attention is kept: no states, no effects`,
    !said.complete && "the translation did not come to an end and was cut",
  ].filter(Boolean);
}

/** An intervention with all its fields, in the order of regard/trace/document.py. */
function completed({ type, step, weights, layer = null, head = null, kind = "cross" }) {
  if (type === "look") return { type, step, weights, layer, head };
  return type === "head_off" ? { type, kind, layer, head } : { type };
}

/** The hash of the model and the request, which Python writes as JSON in the same way. */
async function traceId({ about, search_json }, request) {
  if (!globalThis.crypto?.subtle) return "0".repeat(64);
  const text = about.sha256 + json(request, request.mode === "forced" ? "{}" : search_json);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function json(request, search) {
  const float = (one) => (Number.isInteger(one) ? one.toFixed(1) : Math.abs(one) < 1e-5 ? one.toExponential() : String(one));
  const change = (one) => {
    const entries = Object.entries(one).map(([key, value]) => `"${key}":${key === "weights" ? `[${value.map(float)}]` : JSON.stringify(value)}`);
    return `{${entries}}`;
  };
  const written = { search, interventions: `[${request.interventions.map(change)}]` };
  return `{${Object.entries(request).map(([key, value]) => `"${key}":${written[key] ?? JSON.stringify(value)}`)}}`;
}
