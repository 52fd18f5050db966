// A recurrent model unrolled: one column for each word read and each word said, its vectors in it.

import { h, piece, printable } from "#app/dom";
import { t, fixed } from "#app/i18n";
import { row, rows } from "#app/arrays";
import { headOf } from "#app/data";
import { names } from "#app/views";
import { blocks, formula, largest, strip } from "#app/strips";

export const name = "unrolled";
export const inputs = (state) => [state.step, state.row];

const BLOCKS = 16; // cells of a strip: means of equal parts of the vector

export const can = (trace) => Boolean(trace.states["source.embedded"] && trace.states["target.embedded"]);

export function draw({ trace, state, act, id }) {
  if (!can(trace)) return h("section", { class: "panel unrolled", hidden: true });
  const { states } = trace;
  const last = Object.keys(states).find((key) => /^decoder\.\d+\.state$/.test(key) && !states[nextLayer(key)]);
  const reads = Object.keys(states).filter((key) => /^encoder\.\d+\.\w+\.states$/.test(key));
  const encoder = [...reads.map((key) => [key.includes("leftward") ? "←h_i" : "→h_i", states[key]]).reverse(), ["x_i", states["source.embedded"]]];
  const decoder = [["s_t", states[last]], ["e(y_{t-1})", states["target.embedded"]]];
  const weights = trace.attentions.cross ? rows(headOf(trace.attentions.cross.weights, 0, 0))[state.step] : null;
  const source = names(trace.source, "pieces");
  const target = names(trace.target, "pieces");
  return h(
    "section",
    { class: "panel unrolled", "aria-labelledby": `${id}-unrolled` },
    h("h2", { id: `${id}-unrolled` }, t("unrolled")),
    h("p", { class: "hint" }, t(weights ? "unrolled.attention" : "unrolled.fixed")),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": t("unrolled") },
      side("encoder", trace.model.source_language, encoder, source.length, (place) => ({
        title: source[place],
        note: weights ? `α ${fixed(weights[place], 2)}` : place === source.length - 1 ? t("unrolled.last") : null,
        current: state.row === place,
        onclick: () => act.set({ row: state.row === place ? null : place }),
      })),
      side("decoder", trace.model.target_language, decoder, target.length, (step) => ({
        title: target[step],
        note: t("unrolled.reads", { piece: step ? target[step - 1] : "<s>" }),
        current: state.step === step,
        onclick: () => act.go(step),
      })),
    ),
    nearest(trace, state.row),
  );
}

/** Bring the column of the current step into sight. */
export function after(panel, { changed }) {
  const column = changed && panel.querySelector(".decoder .now");
  if (!column) return;
  const box = column.closest(".scroll");
  const [left, right] = [column.offsetLeft, column.offsetLeft + column.offsetWidth];
  if (left < box.scrollLeft || right > box.scrollLeft + box.clientWidth) box.scrollLeft = left - box.clientWidth / 2;
}

const nextLayer = (key) => key.replace(/\d+/, (layer) => Number(layer) + 1);

/** The columns of a side, in the order in which they are computed. */
function side(role, language, vectors, count, about) {
  const bounds = vectors.map(([, found]) => largest(found.values));
  return h(
    "ol",
    { class: `columns-of ${role}`, lang: language, "aria-label": t(role) },
    Array.from({ length: count }, (_, place) => {
      const { title, note, current, onclick } = about(place);
      return h(
        "li",
        { class: current ? "now" : null },
        h("button", { type: "button", "aria-pressed": String(current), onclick }, h("bdi", null, piece(title))),
        vectors.map(([symbol, found], at) =>
          h("div", { class: "cell" }, formula(symbol), strip(blocks(row(found, place).values, BLOCKS), bounds[at])),
        ),
        note ? h("small", null, note) : null,
      );
    }),
  );
}

/** The pieces whose vectors are most like that of a source piece, in the table of this model. */
function nearest(trace, place) {
  const found = trace.source.nearest?.[place];
  if (!found) return trace.source.nearest ? h("p", { class: "hint" }, t("nearest.hint")) : null;
  const one = printable(trace.source.pieces[place].piece);
  return h(
    "p",
    { class: "nearest", "aria-live": "polite" },
    t("nearest", { piece: one }),
    " ",
    h("span", { lang: trace.model.source_language }, found.map((other, at) => [at ? " · " : null, h("bdi", null, piece(printable(other)))])),
  );
}
