// The source above, the translation below, and ribbons from the current step to what it looked at.

import { h, s, morph, piece } from "#app/dom";
import { t, percent, fixed } from "#app/i18n";
import { names, probs, ribbons, heaviest, unitOf, units } from "#app/views";

export const name = "timeline";
export const inputs = (state) => [state.step, state.by, state.view, state.layer, state.head];

const SHARE = 0.9;
const COLUMNS_BELOW = 560; // pixels: narrower, and the two texts stand beside each other

export function draw({ trace, state, act }) {
  const { by, step } = state;
  const weights = ribbons(trace, state);
  const shown = new Set(heaviest(weights, SHARE));
  const current = unitOf(trace.target, by, step);
  const said = probs(trace.target, by);
  const firsts = by === "pieces" ? said.map((_, piece) => piece) : units(trace.target).map((unit) => unit[0]);
  const read = names(trace.source, by).map((text, place) =>
    h(
      "span",
      {
        class: `chip${shown.has(place) ? " read" : ""}`,
        "data-place": place,
        title: weights.length ? fixed(weights[place]) : null,
        style: { "--share": weights[place] ?? 0 },
      },
      h("bdi", { class: "text" }, piece(text)),
      h("small", null, shown.has(place) ? fixed(weights[place], 2) : "\u00a0"),
    ),
  );
  const spoken = names(trace.target, by).map((text, place) => {
    const given = trace.target.pieces[firsts[place]].forced;
    return h(
      "button",
      {
        type: "button",
        "data-place": place,
        "aria-current": place === current ? "step" : null,
        class: `chip${place === current ? " current" : place > current ? " later" : ""}${given ? " given" : ""}`,
        title: given ? t("given") : null,
        onclick: () => act.go(firsts[place]),
        style: { "--share": said[place] },
      },
      h("bdi", { class: "text" }, piece(text)),
      h("small", null, percent(said[place])),
    );
  });
  return h(
    "section",
    { class: "panel timeline", "aria-label": t("timeline") },
    h("div", { class: "row-of" }, h("h2", null, t("timeline")), byWords(state, act)),
    h(
      "div",
      { class: "scroll" },
      h(
        "div",
        { class: "stage" },
        s("svg", { class: "ribbons", "aria-hidden": "true" }),
        side("source", trace.model.source_language, read),
        side("target", trace.model.target_language, spoken),
      ),
    ),
    trace.attentions.cross ? h("p", { class: "hint" }, t("timeline.hint", { share: percent(SHARE) })) : null,
  );
}

function side(name_, language, chips) {
  return h(
    "div",
    { class: `side ${name_}` },
    h("span", { class: "role", "aria-hidden": "true" }, t(name_)),
    h("div", { class: "chips", lang: language, role: "group", "aria-label": t(name_) }, chips),
  );
}

function byWords(state, act) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": t("by") },
    ["words", "pieces"].map((by) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": String(state.by === by),
          onclick: () => act.set({ by, pin: null }),
          class: by,
        },
        t(`by.${by}`),
      ),
    ),
  );
}

/** Draw the ribbons: only now are the places of the chips known. */
export function after(panel, { trace, state }) {
  const stage = panel.querySelector(".stage");
  stage.classList.toggle("columns", panel.clientWidth < COLUMNS_BELOW);
  const columns = stage.classList.contains("columns");
  const weights = ribbons(trace, state);
  const frame = stage.getBoundingClientRect();
  const place = (chip) => {
    const box = chip.getBoundingClientRect();
    const [x, y] = [box.left - frame.left, box.top - frame.top];
    return {
      left: x,
      right: x + box.width,
      top: y,
      bottom: y + box.height,
      x: x + box.width / 2,
      y: y + box.height / 2,
    };
  };
  const from = stage.querySelector(".target .current");
  const svg = stage.querySelector("svg.ribbons");
  const paths = [];
  if (from) {
    const start = place(from);
    for (const to of heaviest(weights, SHARE).reverse()) {
      const end = place(stage.querySelector(`.source [data-place="${to}"]`));
      const d = columns
        ? curve(start.left, start.y, end.right, end.y, true)
        : curve(start.x, start.top, end.x, end.bottom, false);
      const weight = weights[to];
      paths.push(
        s("path", {
          d,
          "stroke-width": (1 + 13 * weight).toFixed(2),
          "stroke-opacity": (0.22 + 0.6 * weight).toFixed(3),
        }),
      );
    }
    follow(panel.querySelector(".scroll"), from);
  }
  morph(
    svg,
    s("svg", { class: "ribbons", "aria-hidden": "true", width: stage.scrollWidth, height: stage.scrollHeight }, paths),
  );
}

function curve(x1, y1, x2, y2, sideways) {
  const [a, b] = sideways
    ? [
        [(x1 + x2) / 2, y1],
        [(x1 + x2) / 2, y2],
      ]
    : [
        [x1, (y1 + y2) / 2],
        [x2, (y1 + y2) / 2],
      ];
  return `M${[x1, y1].map(Math.round)}C${[...a, ...b, x2, y2].map(Math.round)}`;
}

/** Scroll the box, and only the box, so that the current word can be seen. */
function follow(box, chip) {
  const [outer, inner] = [box.getBoundingClientRect(), chip.getBoundingClientRect()];
  if (inner.left < outer.left || inner.right > outer.right) box.scrollLeft += inner.left - outer.left - outer.width / 2;
  if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 2;
}
