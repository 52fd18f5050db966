// The stage: the source above, the translation below, ribbons from the current word to what it looked at. Where there
// is an engine, a ribbon can be dragged to another word, weights set by keys, and a translated word edited.

import { h, s, morph, piece, printable } from "#app/dom";
import { t, percent, fixed } from "#app/i18n";
import { grid, names, probs, ribbons, heaviest, unitOf, units } from "#app/views";
import { blocks, strip } from "#app/strips";
import { drag, keyed } from "#app/gaze";

export const name = "timeline";
export const inputs = (state) => [state.step, state.by, state.view, state.layer, state.head, state.edit, state.marks];

const SHARE = 0.9;
const LOOKS = 0.15; // of a word's weight: what answers "who looked at me?"
const COLUMNS_BELOW = 560; // pixels: narrower, and the two texts stand beside each other
const [SLOT, CHIP, MOST] = [760, 66, 32]; // so they do in a slot of two where words do not fit side by side, but for long texts

export function draw({ trace, cards, state, act, live }) {
  const { by, step } = state;
  const weights = ribbons(trace, state);
  const current = unitOf(trace.target, by, step);
  const movable = Boolean(live && weights.length && !live.can("look"));
  return h(
    "section",
    { class: `panel timeline${movable ? " movable" : ""}`, "aria-label": t("timeline") },
    h(
      "div",
      { class: "row-of" },
      h("h2", null, t(weights.length ? "timeline" : "timeline.without")),
      h("bdi", { class: "hint model-of" }, printable(trace.model.label)),
      byWords(state, act),
    ),
    h(
      "div",
      { class: "scroll" },
      h(
        "div",
        { class: "stage" },
        s("svg", { class: "ribbons", "aria-hidden": "true" }),
        side("source", trace.model.source_language, read(trace, state, act, live, weights, movable)),
        weights.length ? null : bottleneck(trace, cards),
        side("target", trace.model.target_language, spoken(trace, state, act, live, current, movable)),
      ),
    ),
    state.edit === null || !live ? null : editor(trace, state, act, live),
    weights.length
      ? h("p", { class: "hint" }, t(movable ? "timeline.move" : "timeline.hint", { share: percent(SHARE) }))
      : h("p", { class: "hint" }, t("timeline.fixed")),
  );
}

/** The words that were read. Where weights can be set each is a slider. */
function read(trace, state, act, live, weights, movable) {
  const shown = new Set(heaviest(weights, SHARE));
  const top = heaviest(weights, 1e-9)[0] ?? 0;
  return names(trace.source, state.by).map((text, place) => {
    const weight = weights[place];
    const slider = movable && {
      role: "slider",
      tabindex: place === top ? 0 : -1,
      "aria-label": t("weight_of", { word: text }),
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": Math.round(100 * weight),
      "aria-valuetext": percent(weight),
      onkeydown: (event) => pressed(event, place, weight, act, live),
    };
    return h(
      "span",
      {
        class: `chip${shown.has(place) ? " read" : ""}`,
        "data-place": place,
        title: weights.length ? `${fixed(weight)}${lookers(trace, state, place)}` : null,
        style: { "--share": weight ?? 0 },
        onpointerover: (event) => light(event, trace, state, place, true),
        onpointerout: (event) => light(event, trace, state, place, false),
        ...slider,
      },
      h("bdi", { class: "text" }, piece(text)),
      h("small", null, shown.has(place) ? fixed(weight, 2) : "\u00a0"),
    );
  });
}

/** The words that were said. */
function spoken(trace, state, act, live, current, movable) {
  const { by } = state;
  const said = probs(trace.target, by);
  const firsts = by === "pieces" ? said.map((_, one) => one) : units(trace.target).map((unit) => unit[0]);
  return names(trace.target, by).map((text, place) => {
    const given = trace.target.pieces[firsts[place]].forced;
    const marks = state.marks?.includes(place) ? " differs" : "";
    return h(
      "button",
      {
        type: "button",
        "data-place": place,
        "aria-current": place === current ? "step" : null,
        class: `chip${place === current ? " current" : place > current ? " later" : ""}${given ? " given" : ""}${marks}`,
        title: given ? t("given") : live ? t("edit.how") : null,
        onclick: () => act.go(firsts[place]),
        ondblclick: live ? () => act.edit(place) : null,
        onkeydown: live ? (event) => void (event.key === "F2" && act.edit(place)) : null,
        onpointerdown: movable ? (event) => grasp(event, firsts[place], act, live) : null,
        style: { "--share": said[place] },
      },
      h("bdi", { class: "text" }, piece(text)),
      h("small", null, percent(said[place])),
    );
  });
}

function pressed(event, place, weight, act, live) {
  const share = event.ctrlKey || event.metaKey || event.altKey ? null : keyed(event, weight);
  if (share !== null) live.look(place, share);
  else if (["ArrowLeft", "ArrowRight"].includes(event.key)) {
    const next = event.key === "ArrowLeft" ? "previousElementSibling" : "nextElementSibling";
    event.currentTarget[next]?.focus();
  } else return;
  event.preventDefault();
}

/** Begin to drag the ribbon of a translated word. */
function grasp(event, step, act, live) {
  if (event.button) return;
  const stage = event.currentTarget.closest(".stage");
  const chip = event.currentTarget;
  const frame = stage.getBoundingClientRect();
  const sideways = stage.classList.contains("columns");
  event.currentTarget.releasePointerCapture?.(event.pointerId);
  drag(event, stage, {
    draw(x, y) {
      const start = boxOf(chip, frame);
      const path =
        stage.querySelector("path.hand") ?? stage.querySelector("svg.ribbons").appendChild(s("path", { class: "hand" }));
      const [fromX, fromY] = sideways ? [start.left, start.y] : [start.x, start.top];
      path.setAttribute("d", curve(fromX, fromY, x - frame.left, y - frame.top, sideways));
    },
    drop(place, far) {
      stage.querySelector("path.hand")?.remove();
      if (!far) return;
      // The click that ends a drag chooses nothing.
      addEventListener("click", (click) => click.stopPropagation(), { capture: true, once: true });
      setTimeout(() => act.go(step));
      if (place !== null) setTimeout(() => live.look(place, 1, step));
    },
  });
}

/** The words that looked at a source word, in words. */
function lookers(trace, state, place) {
  const found = lookersOf(trace, state, place).map((row) => names(trace.target, state.by)[row]);
  return found.length ? `\n${t("lookers", { words: found.join(", ") })}` : "";
}

function lookersOf(trace, state, place) {
  if (!trace.attentions.cross) return [];
  const view = state.view === "cross" ? state : { ...state, view: "alignment" };
  const { matrix } = grid(trace, { ...view, measure: "weights" });
  return matrix.flatMap((line, row) => (line[place] >= LOOKS ? [row] : []));
}

function light(event, trace, state, place, on) {
  const stage = event.currentTarget.closest(".stage");
  const rows = on ? lookersOf(trace, state, place) : [];
  for (const chip of stage.querySelectorAll(".target .chip"))
    chip.classList.toggle("looker", rows.includes(Number(chip.dataset.place)));
}

/** The one vector that everything passes through, where there is no attention. */
function bottleneck(trace, cards) {
  const show = cards.find((card) => card.key === "fixed")?.shows.find((one) => trace.states[one.name]);
  const values = show && trace.states[show.name].values;
  return h(
    "div",
    { class: "bottleneck" },
    values ? strip(blocks(values, 16)) : h("span", { class: "strip" }),
    h("small", null, t("bottleneck", { count: values?.length ?? "" })),
  );
}

/** The likeliest pieces of a word's first step, and room for any other text. */
function editor(trace, state, act, live) {
  const units_ = state.by === "pieces" ? trace.target.pieces.map((_, one) => [one]) : units(trace.target);
  const step = units_[state.edit][0];
  const { candidates } = trace.target.pieces[step];
  const word = names(trace.target, state.by)[state.edit];
  const choose = (text) => (act.edit(null), live.edit(step, text));
  return h(
    "form",
    {
      class: "editor",
      "aria-label": t("edit.label", { word }),
      onsubmit: (event) => {
        event.preventDefault();
        const text = event.currentTarget.querySelector("input").value.trim();
        if (text) choose(text);
      },
      onkeydown: (event) => {
        if (event.key === "Escape") act.edit(null);
      },
    },
    h(
      "label",
      null,
      h("bdi", null, t("edit.instead", { word })),
      h("input", { type: "text", lang: trace.model.target_language, maxlength: 200, autocomplete: "off" }),
    ),
    h("button", { type: "submit", class: "go" }, t("edit.go")),
    h("button", { type: "button", onclick: () => act.edit(null) }, t("edit.cancel")),
    h(
      "div",
      { class: "options", lang: trace.model.target_language },
      (candidates?.pieces ?? []).slice(0, 10).map((one, place) => {
        const text = printable(one).replace(/▁/g, " ").trim();
        if (!text || one === "</s>") return null;
        return h(
          "button",
          { type: "button", class: "option", onclick: () => choose(one.replace(/▁/g, " ")) },
          text,
          " ",
          h("small", null, percent(Math.exp(candidates.log_probs[place]))),
        );
      }),
    ),
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
          onclick: () => act.set({ by, pin: null, edit: null }),
          class: by,
        },
        t(`by.${by}`),
      ),
    ),
  );
}

/** Draw the ribbons: only now are the places of the chips known. */
export function after(panel, { trace, state, changed }) {
  const stage = panel.querySelector(".stage");
  const width = panel.clientWidth;
  const num = stage.querySelectorAll(".source .chip").length;
  stage.classList.toggle("columns", width < COLUMNS_BELOW || (width < SLOT && num <= MOST && num * CHIP > width));
  const columns = stage.classList.contains("columns");
  const weights = ribbons(trace, state);
  const svg = stage.querySelector("svg.ribbons");
  svg.setAttribute("width", 0); // ribbons of a wider stage would keep it as wide
  const frame = stage.getBoundingClientRect();
  const place = (chip) => boxOf(chip, frame);
  const from = stage.querySelector(".target .current");
  const join = (start, end) =>
    columns ? curve(start.left, start.y, end.right, end.y, true) : curve(start.x, start.top, end.x, end.bottom, false);
  const paths = [];
  const middle = stage.querySelector(".bottleneck");
  if (from && middle) {
    const waist = place(middle);
    for (const chip of stage.querySelectorAll(".source .chip"))
      paths.push(s("path", { d: join(waist, place(chip)), class: "funnel" }));
    paths.push(s("path", { d: join(place(from), waist), "stroke-width": 8, "stroke-opacity": 0.5 }));
  } else if (from) {
    const start = place(from);
    for (const to of heaviest(weights, SHARE).reverse()) {
      const weight = weights[to];
      paths.push(
        s("path", {
          d: join(start, place(stage.querySelector(`.source [data-place="${to}"]`))),
          "stroke-width": (1 + 13 * weight).toFixed(2),
          "stroke-opacity": (0.22 + 0.6 * weight).toFixed(3),
        }),
      );
    }
  }
  if (from) follow(panel.querySelector(".scroll"), from);
  morph(
    svg,
    s("svg", { class: "ribbons", "aria-hidden": "true", width: stage.scrollWidth, height: stage.scrollHeight }, paths),
  );
  const field = panel.querySelector(".editor input");
  if (changed && field && !panel.querySelector(".editor").contains(document.activeElement)) field.focus();
}

function boxOf(chip, frame) {
  const box = chip.getBoundingClientRect();
  const [x, y] = [box.left - frame.left, box.top - frame.top];
  return { left: x, right: x + box.width, top: y, bottom: y + box.height, x: x + box.width / 2, y: y + box.height / 2 };
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
