// One step of a decoder as a drawing: boxes that hold its numbers, filled card by card.

import { h, s, printable } from "#app/dom";
import { t, fixed, percent } from "#app/i18n";
import { css, inkOn, shaded } from "#app/colours";
import { computed } from "#app/computed";
import { blocks, largest, lowered } from "#app/strips";

// Both are in the page; the style shows the one that fits the panel.
const SIZES = { wide: { width: 640, most: 8, cells: 16 }, narrow: { width: 312, most: 4, cells: 12 } };
const [LEFT, RIGHT, GAP, BESIDE] = [58, 16, 30, 18]; // room for symbols, for the line of the query, between rows, between boxes
const [TALL, LOW, WORDS, SAID] = [58, 26, 20, 82]; // heights: a vector with its numbers, a number, names, what is said
const MAX_COLUMN = 92;
const NUM_SAID = 3;
const HEAD = { up: "m-4 6l4-6 4 6", down: "m-4-6l4 6 4-6", left: "m6-4l-6 4 6 4" };

/** A piece as a word of a sentence: without the sign of its beginning. */
const plain = (text) => printable(text).replace(/^▁(?=.)/, "");

/** The drawing and what its current card says; null for a model without attention. */
export function drawing({ trace, cards, state, layer, head, act, id }) {
  const step = computed(trace, cards, state.step, layer, head);
  if (!step) return null;
  const about = { step, trace, at: state.step, micro: state.micro, act, source: trace.source.pieces.map(({ piece }) => plain(piece)) };
  return h(
    "div",
    { class: "drawing" },
    h("p", { class: "told", role: "status" }, told(about, cards[state.micro])),
    Object.entries(SIZES).map(([kind, size]) => picture(kind, size, about, `${id}-${kind}`)),
    h("p", { class: "hint" }, t("drawing.tick")),
  );
}

/** What a card does, in a sentence with its numbers. Words of the models are set apart from it. */
function told({ step, trace, at, source }, card) {
  const read = at ? plain(trace.target.pieces[at - 1].piece) : "<s>";
  if (!card) return filled("told", { read, said: plain(trace.target.pieces[at].piece) });
  const { scores, weights } = step.model;
  const order = [...weights.keys()].sort((one, other) => weights[other] - weights[one]);
  const numbers = order.slice(0, 2).map((place) => `${fixed(weights[place], 2)} × ${source[place]}`);
  const best = trace.target.pieces[at].candidates;
  const high = scores.indexOf(Math.max(...scores.filter(Number.isFinite)));
  const byHand = card.key === "softmax" && !step.below.find((row) => row.weights).agrees;
  const key = card.key === "cell_with_context" && !step.fresh ? "cell" : byHand ? "set" : card.key;
  return filled(`told.${key}`, {
    read,
    word: source[high],
    looked: source[order[0]],
    score: number(scores[high]),
    product: number(scores[high] * (step.root ?? 1)),
    root: fixed(step.root ?? 1, 2),
    weight: fixed(weights[order[0]], 3),
    sum: fixed(weights.reduce((total, one) => total + one, 0), 3),
    mixture: [...numbers, ...(order.length > 2 ? ["…"] : [])].join(" + "),
    fresh: step.fresh ? percent(step.fresh.reduce((total, one) => total + one, 0) / step.fresh.length) : "",
    size: step.chain[0].values?.length ?? "?",
    said: plain(best?.pieces[0] ?? trace.target.pieces[at].piece),
    prob: percent(Math.exp(best?.log_probs[0] ?? trace.target.pieces[at].log_prob)),
  });
}

const OF_MODELS = new Set(["read", "said", "word", "looked", "mixture"]);

function filled(key, places) {
  const parts = t(key).split(/\{(\w+)\}/);
  return parts.map((part, at) => (at % 2 ? (OF_MODELS.has(part) ? h("bdi", null, places[part]) : places[part]) : lowered(part)));
}

function picture(kind, { width, most, cells }, about, id) {
  const { step, trace, at, micro, act, source } = about;
  const { places, rest } = columns(step.model.weights, most);
  const count = places.length + (rest.length ? 1 : 0);
  const column = Math.min(MAX_COLUMN, (width - LEFT - RIGHT) / count);
  const half = (width - LEFT - RIGHT - BESIDE) / 2;
  const known = (box) => micro === null || box.card <= micro;
  const draw = { width, cells, column, known, micro, act, centre: (one) => LEFT + column * (one + 0.5) };

  // From above: what is said, the vectors that lead to it, the mixture beside the query, the rows of the source.
  const chain = [...step.chain].reverse();
  const chainAt = (place) => SAID + GAP + place * (TALL + GAP);
  const mixedAt = chainAt(chain.length);
  let y = mixedAt + TALL + GAP + 8;
  const rows = [...step.below].reverse().map((row) => {
    const placed = { ...row, y, height: LOW };
    y += LOW + GAP;
    return placed;
  });
  const height = y - GAP + WORDS;
  const mixed = { ...step.mixed, x: LEFT, y: mixedAt, width: half, height: TALL };
  const query = { ...step.query, x: LEFT + half + BESIDE, y: mixedAt, width: half, height: TALL };
  const boxes = chain.map((box, place) => ({ ...box, x: LEFT, y: chainAt(place), width: half, height: TALL }));
  const last = boxes.at(-1); // the one that the mixture goes into
  const embedded = trace.states["target.embedded"];
  const readsWord = at ? plain(trace.target.pieces[at - 1].piece) : "<s>";
  const word = { symbol: "y_{t-1}", card: -1, role: "embedding", text: readsWord, x: query.x, y: last.y, width: half, height: TALL };
  if (embedded) Object.assign(word, { symbol: "e(y_{t-1})", values: embedded.values.subarray(at * embedded.shape[1], (at + 1) * embedded.shape[1]) });

  return s(
    "svg",
    { class: `step-of ${kind}`, viewBox: `0 0 ${width} ${height}`, style: { "--width": `${width}px` }, role: "img", "aria-labelledby": `${id}-title ${id}-desc` },
    s("title", { id: `${id}-title` }, t("drawing", { step: at + 1 })),
    s("desc", { id: `${id}-desc` }, described(about, places, known, readsWord)),
    lines({ draw, rows, mixed, query, boxes, word, step, places, rest }),
    [...rows].reverse().map((row) => cellsOf(row, places, rest, draw)),
    places.map((place, one) => s("text", { class: "name", x: draw.centre(one), y: height - 5 }, shortened(source[place], column, 7.2))),
    rest.length ? s("text", { class: "name rest", x: draw.centre(count - 1), y: height - 5 }, t("drawing.rest", { count: rest.length })) : null,
    [mixed, query, ...boxes, word].map((box) => vectorBox(box, draw)),
    saidBox(about, draw),
  );
}

/** The pieces with the most weight, in their order, and the others. */
function columns(weights, most) {
  const all = [...weights.keys()];
  const places = all.sort((one, other) => weights[other] - weights[one]).slice(0, weights.length <= most + 1 ? most + 1 : most);
  return { places: places.sort((one, other) => one - other), rest: [...weights.keys()].filter((place) => !places.includes(place)) };
}

/** What leads from box to box. */
function lines({ draw, rows, mixed, query, boxes, word, step, places, rest }) {
  const all = [];
  const add = (path, box, role, { wide = 1.5, head = "up", far = false } = {}) =>
    all.push(s("path", { class: `way ${role}${draw.known(box) ? "" : " to-come"}${far ? " far" : ""}`, d: path + (HEAD[head] ?? ""), "stroke-width": wide }));
  const middle = (box) => box.x + box.width / 2;
  const numbers = step.below.findIndex((row) => row.numbers);
  const first = rows.at(-1 - numbers); // the row that the query goes to
  const count = places.length + (rest.length ? 1 : 0);
  const weights = step.model.weights;
  for (let one = 0; one < count; one++) {
    const x = draw.centre(one);
    rows.slice(0, -1).forEach((row, place) => add(`M${x} ${rows[place + 1].y}V${row.y + LOW}`, row, row.role));
    const weight = one < places.length ? weights[places[one]] : rest.reduce((sum, place) => sum + weights[place], 0);
    const to = middle(mixed) + (one - (count - 1) / 2) * 8;
    const [from, end] = [rows[0].y, mixed.y + TALL];
    add(`M${x} ${from}C${x} ${from - 20} ${to} ${end + 20} ${to} ${end}`, mixed, "context", { wide: draw.known(mixed) ? 0.75 + 7 * weight : 1.5, head: null });
    add(`M${x - 10} ${first.y + LOW + GAP / 2}V${first.y + LOW}`, first, "decoder");
  }
  const rail = first.y + LOW + GAP / 2;
  const right = draw.width - 4;
  add(`M${query.x + query.width} ${query.y + TALL / 2}H${right}V${rail}H${draw.centre(0) - 10}`, first, "decoder", { head: null });
  const last = boxes.at(-1);
  add(`M${middle(mixed)} ${mixed.y}V${last.y + TALL}`, last, "context", { far: last.far });
  if (step.entersChain) {
    const turn = mixed.y - GAP / 2;
    add(`M${query.x + query.width / 4} ${query.y}V${turn}H${last.x + 0.75 * last.width}V${last.y + TALL}`, last, "decoder");
  }
  if (step.reads === "chain") add(`M${word.x} ${word.y + TALL / 2}H${last.x + last.width}`, last, "embedding", { head: "left" });
  else add(`M${query.x + 0.6 * query.width} ${word.y + TALL}V${query.y}`, query, "embedding", { head: "down", far: last.far });
  boxes.forEach((box, place) => {
    const above = place ? boxes[place - 1] : { card: Infinity };
    const end = place ? boxes[place - 1].y + TALL : SAID;
    add(`M${middle(box)} ${box.y}V${end}`, place ? above : { card: saidCard(step) }, "decoder");
  });
  return all;
}

const saidCard = (step) => Math.max(...["says", "output", "heads_and_output"].map(step.card));

/** A row: a number or a vector for each piece, with its symbol and the number of its card. */
function cellsOf(row, places, rest, draw) {
  const known = draw.known(row);
  const bound = row.bound ?? largest((row.vectors ?? []).flatMap((values) => largest(values)));
  const wide = draw.column - 6;
  const frame = (one, fill = null) =>
    s("rect", { class: known ? null : "empty", x: draw.centre(one) - wide / 2, y: row.y, width: wide, height: LOW, rx: 5, fill });
  const all = places.map((place, one) => {
    if (!known) return frame(one);
    if (row.vectors) return [frame(one), strip(row.vectors[place], bound, draw.centre(one) - wide / 2 + 4, row.y + 6, wide - 8, LOW - 12, 8)];
    const value = row.numbers?.[place];
    const colour = row.weights ? shaded(value, 1, false) : null;
    return [
      frame(one, colour && css(colour)),
      s("text", { class: "value", x: draw.centre(one), y: row.y + 17, fill: colour && inkOn(colour) }, Number.isFinite(value) ? number(value, row.weights ? 3 : 2) : "–"),
    ];
  });
  if (rest.length) {
    const sum = rest.reduce((total, place) => total + (row.numbers?.[place] ?? 0), 0);
    all.push(frame(places.length), known ? s("text", { class: "value rest", x: draw.centre(places.length), y: row.y + 17 }, row.weights ? `Σ ${fixed(sum, 2)}` : "…") : null);
  }
  return group(row, draw, [
    all,
    badge(row, 10, row.y + LOW / 2, draw),
    s("text", { class: "symbol-of", x: LEFT - 2, y: row.y + 11 }, sign(row.symbol)),
    known ? tick(row, LEFT - 2, row.y + 24) : null,
  ]);
}

/** A box with a vector: its symbol, its blocks, its first numbers. */
function vectorBox(box, draw) {
  const { x, y, width, height, values, text } = box;
  const known = draw.known(box);
  const size = Math.floor((width - 28) / 36);
  return group(box, draw, [
    s("rect", { class: known ? null : "empty", x, y, width, height, rx: 7 }),
    s("text", { class: "symbol-of start", x: x + 13, y: y + 17 }, sign(box.symbol)),
    text ? s("text", values ? { class: "word", x: x + width - 8, y: y + 16 } : { class: "word only", x: x + width / 2, y: y + 38 }, shortened(text, width - (values ? 70 : 16), 7.6)) : null,
    known && values ? strip(values, largest(values), x + 8, y + 23, width - 16, 12, draw.cells) : null,
    known && values ? s("text", { class: "first-numbers", x: x + 8, y: y + 50 }, [...values].slice(0, size).map((one) => fixed(one, 2)).join(" "), " …") : null,
    known && !values && !text ? s("text", { class: "first-numbers", x: x + 8, y: y + 40 }, t("not_recorded")) : null,
    known ? tick(box, x + width - 8, y + 16) : null,
    badge(box, x, y, draw),
  ]);
}

/** The likeliest words, each with a bar. */
function saidBox({ step, trace, at }, draw) {
  const box = { card: saidCard(step), role: "said" };
  const known = draw.known(box);
  const { candidates, id } = trace.target.pieces[at];
  const width = draw.width - LEFT - RIGHT;
  const bar = width / 2 - 20;
  const words = (candidates?.pieces ?? []).slice(0, NUM_SAID).map((piece, place) => {
    const prob = Math.exp(Math.min(0, candidates.log_probs[place]));
    const y = 22 + place * 23;
    const chosen = candidates.ids[place] === id ? " chosen" : "";
    return [
      s("text", { class: `candidate${chosen}`, x: LEFT + 12, y: y + 4 }, shortened(plain(piece), width / 2 - 70, 7.6)),
      s("text", { class: `value end${chosen}`, x: LEFT + width / 2 - 8, y: y + 4 }, percent(prob)),
      s("rect", { class: "track", x: LEFT + width / 2, y: y - 6, width: bar, height: 10, rx: 3 }),
      s("rect", { class: "share", x: LEFT + width / 2, y: y - 6, width: Math.max(1, bar * prob), height: 10, rx: 3 }),
    ];
  });
  return group(box, draw, [
    s("rect", { class: known ? null : "empty", x: LEFT, y: 2, width, height: SAID - 4, rx: 7 }),
    known ? words : s("text", { class: "symbol-of start", x: LEFT + 12, y: 26 }, sign("y_t")),
    badge(box, LEFT, 10, draw),
  ]);
}

/** What belongs to one card; a click goes to it. */
function group(box, draw, inside) {
  const now = box.card >= 0 && box.card === draw.micro ? " now" : "";
  const go = box.card >= 0 ? { onclick: () => draw.act.set({ micro: box.card }) } : null;
  return s("g", { class: `part ${box.role}${now}${draw.known(box) ? "" : " to-come"}`, ...go }, inside);
}

function badge({ card }, x, y, { micro }) {
  if (card < 0) return null;
  return s(
    "g",
    { class: `badge${card === micro ? " now" : ""}` },
    s("circle", { cx: x, cy: y, r: 9 }),
    s("text", { x, y: y + 4 }, card + 1),
  );
}

const tick = ({ agrees }, x, y) =>
  agrees === null || agrees === undefined ? null : s("text", { class: `tick-of${agrees ? "" : " not"}`, x, y }, agrees ? "✓" : "✗");

function strip(values, bound, x, y, width, height, count) {
  if (!values) return null;
  const all = blocks(Float32Array.from(values), count);
  // Means of blocks are smaller than the numbers they are of.
  const high = Math.max(largest(all), bound / 4);
  const cell = width / all.length;
  return [...all].map((value, at) =>
    s("rect", { class: "value-of", x: rounded(x + at * cell), y, width: rounded(cell), height, fill: css(shaded(value, high, true)) }),
  );
}

const rounded = (value) => Math.round(100 * value) / 100;
const number = (value, decimals = 2) => (Number.isFinite(value) ? fixed(value, Math.abs(value) >= 100 ? 1 : decimals) : "–");
const shortened = (text, width, letter) => (text.length * letter <= width ? text : `${text.slice(0, Math.max(1, Math.floor(width / letter) - 1))}…`);

/** A symbol with its subscripts lowered. */
function sign(text) {
  const parts = text.replace(/([a-z])~/g, "$1\u0303").split(/(_\{[^}]*\}|_[A-Za-z0-9])/);
  let down = 0;
  return parts.filter(Boolean).map((part) => {
    const low = part.startsWith("_");
    const shift = (low ? 3 : 0) - down;
    down += shift;
    return s("tspan", { dy: shift, "font-size": low ? "0.75em" : null }, part.replace(/^_\{?|\}$/g, ""));
  });
}

/** The numbers of the drawing in words. */
function described({ step, trace, at, source }, places, known, read) {
  const rows = step.below.filter((row) => row.numbers && known(row));
  const each = places.map((place) =>
    `${source[place]}: ${rows.map((row) => `${spoken(row)} ${number(row.numbers[place], row.weights ? 3 : 2)}`).join(", ")}`,
  );
  const { candidates } = trace.target.pieces[at];
  const said = known({ card: saidCard(step) })
    ? (candidates?.pieces ?? []).slice(0, NUM_SAID).map((piece, place) => `${plain(piece)} ${percent(Math.exp(Math.min(0, candidates.log_probs[place])))}`)
    : [];
  const parts = [t("unrolled.reads", { piece: read }), rows.length ? each.join("; ") : "", said.length ? `${t("target")}: ${said.join(", ")}` : ""];
  return parts.filter(Boolean).join(". ");
}

/** What a screen reader says for a row of numbers. */
const spoken = (row) => t(row.weights ? "drawing.weight" : row.symbol === "e_i" ? "drawing.score" : "drawing.product");
