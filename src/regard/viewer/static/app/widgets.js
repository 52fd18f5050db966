// Small instruments of lessons: they compute in the page what the text speaks of.

import { h } from "#app/dom";
import { t, fixed, percent } from "#app/i18n";
import { paintMatrix } from "#app/colours";
import { bars } from "#app/strips";
import { chart } from "#app/chart";

/** An instrument by its name; it tells `answer` what the reader has done. */
export function widget({ kind, ...about }, answer, key) {
  const made = WIDGETS[kind]?.(about, answer) ?? null;
  if (made) made.keep = key;
  return made;
}

/** A dictionary that can be asked softly: at temperature 0 it is the dictionary of Python. */
function dictionary({ keys, values, query }, answer) {
  const root = h("div", { class: "widget dictionary" });
  const state = { query, temperature: 0.5 };
  const near = (one, other) => {
    const [a, b] = [new Set(pairs(one)), new Set(pairs(other))];
    const common = [...a].filter((pair) => b.has(pair)).length;
    return common / Math.max(1, Math.sqrt(a.size * b.size));
  };
  const result = h("output", { class: "readout" });
  const list = h("div");
  const update = (told = true) => {
    const scores = keys.map((key) => near(state.query, key));
    const weights = softmax(scores, state.temperature, keys.indexOf(state.query));
    list.replaceChildren(bars(keys.map((key, at) => `${key} → ${values[at]}`), weights, { high: 1, format: (one) => fixed(one, 2) }));
    const best = weights.indexOf(Math.max(...weights));
    result.textContent =
      weights.every((weight) => weight === 0)
        ? "KeyError"
        : t(state.temperature === 0 ? "widget.hard" : "widget.soft", { value: values[best], share: percent(weights[best]) });
    if (!told) return;
    answer("temperature", state.temperature);
    answer("found", weights[best] > 0 ? values[best] : null);
  };
  root.append(
    h("label", null, t("widget.query"), " ", h("input", { type: "text", value: query, maxlength: 40, oninput: (event) => ((state.query = event.target.value), update()) })),
    h("label", null, t("widget.temperature"), " ", h("input", { type: "range", min: 0, max: 1, step: 0.05, value: 0.5, class: "temperature", oninput: (event) => ((state.temperature = Number(event.target.value)), update()) })),
    list,
    result,
  );
  update(false);
  return root;
}

const pairs = (text) => Array.from(` ${text.toLowerCase()} `).map((letter, at, all) => letter + (all[at + 1] ?? ""));

/** A softmax of scores; at temperature 0 a key either is the query, or there is nothing. */
function softmax(scores, temperature, exact) {
  if (temperature === 0) return scores.map((_, at) => Number(at === exact));
  const high = Math.max(...scores);
  const grown = scores.map((score) => Math.exp((score - high) / (0.3 * temperature)));
  const sum = grown.reduce((total, one) => total + one, 0);
  return grown.map((one) => one / sum);
}

/** The sines and cosines of positions, and how like each position is to the others. */
function positions({ count, width }) {
  const table = Array.from({ length: count }, (_, at) =>
    Array.from({ length: width }, (_, place) => {
      const angle = at / 10000 ** ((2 * Math.floor(place / 2)) / width);
      return place % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
  const alike = table.map((one) => table.map((other) => one.reduce((sum, value, at) => sum + value * other[at], 0) / (width / 2)));
  return h(
    "div",
    { class: "widget positions" },
    picture(table, t("widget.positions", { count, width })),
    picture(alike, t("widget.alike")),
  );
}

function picture(matrix, caption) {
  const canvas = h("canvas", { class: "map", role: "img", "aria-label": caption });
  paintMatrix(canvas, matrix, 1, true);
  return h("figure", null, canvas, h("figcaption", { class: "hint" }, caption));
}

/** BLEU by length of the source, measured once: a line for each model. */
function lengths({ bins, lines }, answer) {
  const said = h("output", { class: "readout" }, t("widget.choose"));
  const show = (at) => {
    said.textContent = `${bins[at]}: ${lines.map((line) => `${line.name} ${line.bleu[at]}`).join(", ")}`;
    answer("bin", at === bins.length - 1 ? "last" : at);
  };
  const choices = h(
    "div",
    { class: "choice", role: "group", "aria-label": t("widget.lengths") },
    bins.map((bin, at) => h("button", { type: "button", onclick: () => show(at) }, bin)),
  );
  return h(
    "div",
    { class: "widget lengths" },
    h("p", { class: "hint" }, t("widget.lengths")),
    chart({ bins, lines, label: t("widget.lengths") }),
    choices,
    said,
  );
}

/** The score functions on the same two vectors, which the reader turns. */
function scores(_, answer) {
  const keys = [[1, 0.2], [0.3, 1], [-0.6, 0.7]];
  const out = h("div");
  const state = { angle: 20 };
  const functions = {
    dot: (q, k) => q[0] * k[0] + q[1] * k[1],
    "scaled dot": (q, k) => (q[0] * k[0] + q[1] * k[1]) / Math.SQRT2,
    general: (q, k) => q[0] * (0.4 * k[0] - 1.1 * k[1]) + q[1] * (0.9 * k[0] + 0.5 * k[1]),
    concat: (q, k) => 1.3 * Math.tanh(q[0] + k[0]) + 0.8 * Math.tanh(q[1] - k[1]),
  };
  const update = () => {
    const q = [1.5 * Math.cos((state.angle * Math.PI) / 180), 1.5 * Math.sin((state.angle * Math.PI) / 180)];
    out.replaceChildren(
      ...Object.entries(functions).map(([name, of]) => {
        const values = keys.map((key) => of(q, key));
        const sum = values.reduce((total, value) => total + Math.exp(value), 0);
        return h("div", null, h("b", null, name), bars(["h₁", "h₂", "h₃"], values.map((value) => Math.exp(value) / sum), { high: 1 }));
      }),
    );
    answer("turned", state.angle !== 20);
  };
  const before = answer;
  answer = () => {};
  update();
  answer = before;
  return h(
    "div",
    { class: "widget scores" },
    h("label", null, t("widget.turn"), " ", h("input", { type: "range", min: 0, max: 180, step: 5, value: 20, class: "turn", oninput: (event) => ((state.angle = Number(event.target.value)), update()) })),
    h("div", { class: "several" }, out),
  );
}

const WIDGETS = { dictionary, positions, lengths, scores };
