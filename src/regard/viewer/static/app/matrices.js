// Attention of a head as matrices, for all words at once: softmax(Q Kᵀ / √d_k) V; and for one word in six steps.

import { h, piece } from "#app/dom";
import { t, fixed } from "#app/i18n";
import { row, rows } from "#app/arrays";
import { paintMatrix } from "#app/colours";
import { headOf } from "#app/data";
import { layerAndHead, names } from "#app/views";
import { bars, formula, largest, vector } from "#app/strips";
import { agreeing } from "#app/mechanics";
import { mix } from "#app/computed";

export const name = "matrices";
export const inputs = (state) => [state.view, state.layer, state.head, state.row, state.view === "encoder" ? null : state.step];

/** Which attention is shown: the encoder's own if it is looked at, else that from the decoder to the source. */
function looked(trace, state) {
  if (state.view !== "encoder") return { kind: "cross", by: "decoder", within: "cross", ...layerAndHead(trace, state) };
  return { kind: "encoder", by: "encoder", within: "self", layer: state.layer ?? 0, head: state.head ?? 0 };
}

const stateOf = (trace, { by, within, layer, head }, what) => {
  const found = trace.states[`${by}.${layer}.${within}.${what}`];
  return found ? row(found, head) : null;
};

export const can = (trace) => Object.keys(trace.states).some((key) => /\.(self|cross)\.keys$/.test(key));

export function draw({ trace, state, act, id }) {
  if (!can(trace)) return h("section", { class: "panel matrices", hidden: true });
  const at = looked(trace, state);
  const [q, k, v, z] = ["query", "keys", "values", "heads"].map((what) => stateOf(trace, at, what));
  const heading = [
    h("h2", { id: `${id}-matrices` }, t("matrices")),
    h("span", { class: "hint" }, t(`view.${at.kind}`), " · ", t("mechanics.where", { layer: at.layer + 1, head: at.head + 1 })),
  ];
  const frame = (...inside) =>
    h("section", { class: "panel matrices", "aria-labelledby": `${id}-matrices` }, h("div", { class: "row-of" }, heading), inside);
  if (!q) return frame(h("p", { class: "hint missing" }, t("not_recorded")));
  const attention = trace.attentions[at.kind];
  const scores = headOf(attention.scores, at.layer, at.head);
  const weights = headOf(attention.weights, at.layer, at.head);
  const whom = names(trace.source, "pieces");
  const who = at.kind === "cross" ? names(trace.target, "pieces") : whom;
  const place = Math.min(who.length - 1, at.kind === "cross" ? state.step : (state.row ?? 0));
  const choose = (other) => (at.kind === "cross" ? act.go(other) : act.set({ row: other }));
  const root = Math.sqrt(q.shape[1]);
  const grid = (symbol, matrix, shape, signed, marked) => figure(symbol, matrix, shape, signed, marked, choose);
  return frame(
    h("p", { class: "formula" }, formula("Z = softmax(Q Kᵀ / √d_k) V")),
    h(
      "div",
      { class: "equation", tabindex: 0, role: "group", "aria-label": t("matrices") },
      h(
        "ol",
        { class: "who", "aria-label": t("matrices.rows") },
        who.map((word, one) =>
          h("li", null, h("button", { type: "button", "aria-pressed": String(one === place), onclick: () => choose(one) }, h("bdi", null, piece(word)))),
        ),
      ),
      grid("Q", q, "T × d_k", true, place),
      grid("Kᵀ", transposed(k), "d_k × S", true, null),
      grid("Q Kᵀ / √d_k", scores, "T × S", true, place),
      grid("softmax", weights, "T × S", false, place),
      grid("V", v, "S × d_k", true, null),
      grid("Z", z, "T × d_k", true, place),
    ),
    h(
      "p",
      null,
      agreeing(difference(product(q, k, root), scores.values), largest(scores.values)),
      agreeing(difference(mixed(weights, v), z.values), largest(v.values)),
    ),
    h("h3", null, t("matrices.one", { piece: who[place] })),
    steps({ trace, who: place, whom, q, v, z, scores, weights, root }),
  );
}

/** The six steps of one word: q, products, scale, softmax, weighted values, sum. */
function steps({ trace, who, whom, q, v, z, scores, weights, root }) {
  const language = trace.model.source_language;
  const score = [...row(scores, who).values];
  const weight = [...row(weights, who).values];
  const card = (number, text, ...inside) =>
    h("li", { class: "card" }, h("h3", null, h("span", { class: "step-number" }, number), formula(text)), inside);
  return h(
    "ol",
    { class: "cards" },
    card(1, "q = W_Q x, k_i = W_K x_i, v_i = W_V x_i", vector("q", row(q, who).values)),
    card(2, "q · k_i", bars(whom, score.map((value) => value * root), { language, role: "attention" })),
    card(3, `e_i = q · k_i / √d_k = q · k_i / ${fixed(root, 2)}`, bars(whom, score, { language, role: "attention" })),
    card(4, "α_i = exp(e_i) / Σ_j exp(e_j)", bars(whom, weight, { language, role: "attention", high: 1 })),
    card(5, "α_i v_i", h("ol", { class: "strips", tabindex: 0, lang: language }, rows(v).map((values, place) =>
      h("li", null, h("bdi", { class: "name" }, piece(whom[place])), canvas([values.map((value) => value * weight[place])], largest(v.values), true, "strip")),
    ))),
    card(6, "z = Σ_i α_i v_i", vector("z", row(z, who).values)),
  );
}

function figure(symbol, matrix, shape, signed, marked, choose) {
  const lines = rows(matrix);
  const pick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    choose(Math.min(lines.length - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * lines.length))));
  };
  return h(
    "figure",
    { class: marked === null ? "free" : null, style: { "--rows": lines.length, "--columns": matrix.shape[1] } },
    h(
      "div",
      { class: "held", onclick: marked === null ? null : pick },
      canvas(lines, signed ? largest(matrix.values.filter(Number.isFinite)) : 1, signed, "map", t("matrices.matrix", { symbol, rows: lines.length, columns: matrix.shape[1] })),
      marked === null ? null : h("i", { class: "row-mark", style: { "--at": marked } }),
    ),
    h("figcaption", null, formula(symbol), h("small", null, formula(shape))),
  );
}

function canvas(lines, bound, signed, kind, label = null) {
  const element = h("canvas", { class: kind, ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) });
  element.paint = (one) => paintMatrix(one, lines, bound, signed);
  return element;
}

function transposed({ shape: [height, width], values }) {
  return { shape: [width, height], values: Float32Array.from(values, (_, at) => values[(at % height) * width + Math.floor(at / height)]) };
}

/** Q Kᵀ / √d_k, computed here. */
function product(q, k, root) {
  return rows(q).flatMap((one) => rows(k).map((other) => one.reduce((sum, value, at) => sum + value * other[at], 0) / root));
}

const mixed = (weights, v) => rows(weights).flatMap((line) => [...mix(line, rows(v))]);

/** The largest difference, of what can be seen. */
const difference = (found, wanted) =>
  wanted.reduce((most, value, at) => (Number.isFinite(value) ? Math.max(most, Math.abs(value - found[at])) : most), 0);
