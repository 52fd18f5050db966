// Vectors as strips of coloured cells, numbers as bars, formulas with their subscripts.

import { h, piece } from "#app/dom";
import { t, fixed } from "#app/i18n";
import { paintMatrix } from "#app/colours";

const FIRST = 5;

/** A vector: a cell for each number, orange below and purple above 0; the pointer tells index and value. */
export function strip(values, bound = largest(values)) {
  const element = h("canvas", {
    class: "strip",
    role: "img",
    "aria-label": t("strip", { count: values.length, first: first(values) }),
    onpointermove: ({ currentTarget: canvas, clientX }) => {
      const box = canvas.getBoundingClientRect();
      const at = Math.min(
        values.length - 1,
        Math.max(0, Math.floor(((clientX - box.left) / box.width) * values.length)),
      );
      canvas.title = `[${at}] ${fixed(values[at], 4)}`;
    },
  });
  element.paint = (canvas) => paintMatrix(canvas, [values], bound, true);
  return element;
}

/** The strip of a vector with its first numbers, and all of them to copy. */
export function vector(symbol, values) {
  return h(
    "div",
    { class: "vector" },
    h("div", { class: "row-of" }, h("span", { class: "symbol" }, formula(symbol)), strip(values)),
    h(
      "details",
      { class: "figures" },
      h(
        "summary",
        null,
        h("code", null, `[${first(values)}${values.length > FIRST ? " …" : ""}]`),
        " ",
        h("span", { class: "hint" }, t("vector", { count: values.length, length: fixed(Math.hypot(...values), 3) })),
      ),
      h("code", { class: "all", tabindex: 0 }, [...values].map((value) => fixed(value, 4)).join(" ")),
    ),
  );
}

/** A bar with its number for each name, the longest for `high` or, without it, for the largest number. */
export function bars(names, values, { language, role, mark = -1, high = 0, format = fixed } = {}) {
  const known = values.filter(Number.isFinite);
  const most = high || Math.max(1e-9, ...known.map(Math.abs));
  return h(
    "ol",
    {
      class: `bars${known.some((value) => value < 0) ? " both" : ""} ${role ?? ""}`,
      lang: language,
      tabindex: role === "attention" ? 0 : null,
    },
    names.map((name, place) => {
      const value = values[place];
      const seen = Number.isFinite(value);
      return h(
        "li",
        { class: place === mark ? "mark" : null },
        h("bdi", { class: "name", title: name }, piece(name)),
        h(
          "span",
          { class: "bar", "aria-hidden": "true" },
          seen ? h("i", { class: value < 0 ? "below" : null, style: { "--part": Math.abs(value) / most } }) : null,
        ),
        h("span", { class: "value" }, seen ? format(value) : t("masked")),
      );
    }),
  );
}

/** `s_{t-1}`, `W_a`, `s~` with subscripts and tilde; everything else as it stands. */
export const formula = (text) => h("span", { class: "math" }, lowered(text));

/** The parts of a text, what follows a `_` set lower. */
export function lowered(text) {
  const parts = text.replace(/([a-z])~/g, "$1\u0303").split(/(_\{[^}]*\}|_[A-Za-z0-9])/);
  return parts.map((part) => (part.startsWith("_") ? h("sub", null, part.replace(/^_\{?|\}$/g, "")) : part));
}

/** A vector by the means of equal parts of it: fewer cells are easier to look at. */
export function blocks(values, count) {
  const size = values.length / Math.min(count, values.length);
  return Float32Array.from({ length: Math.min(count, values.length) }, (_, at) => {
    const part = values.subarray(Math.floor(at * size), Math.floor((at + 1) * size));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

const first = (values) => [...values.slice(0, FIRST)].map((value) => fixed(value, 3)).join(" ");
export const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
