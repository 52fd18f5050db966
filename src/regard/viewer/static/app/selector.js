// Which attention to look at: the one that aligns best, one head of one layer, or a mean.

import { h } from "#app/dom";
import { t, fixed } from "#app/i18n";
import { isDark, paintMatrix } from "#app/colours";
import { mean, seen } from "#app/views";

export const name = "selector";
export const inputs = (state) => [state.view, state.layer, state.head];

const VIEWS = ["alignment", "cross", "encoder", "decoder"];

export function draw({ trace, state, act, live, id }) {
  const kinds = Object.keys(trace.attentions);
  const [layers, heads] = trace.attentions.cross?.logs.shape ?? [0, 0];
  if (kinds.length < 2 && layers * heads < 2) return h("section", { class: "panel selector", hidden: true });
  return h(
    "section",
    { class: "panel selector", "aria-labelledby": `${id}-selector` },
    h(
      "div",
      { class: "row-of" },
      h("h2", { id: `${id}-selector` }, t("selector")),
      h(
        "div",
        { class: "choice", role: "group", "aria-label": t("selector") },
        VIEWS.filter((view) => view === "alignment" || kinds.includes(view)).map((view) =>
          h(
            "button",
            {
              type: "button",
              class: view,
              "aria-pressed": String(state.view === view),
              title: t(`view.${view}.title`),
              onclick: () => act.look(view),
            },
            t(`view.${view}`),
          ),
        ),
      ),
    ),
    h("p", { class: "hint what" }, described(trace, state)),
    thumbnails(trace, state, act),
    live ? switches(trace, state, live) : null,
  );
}

/** What can be switched off: the head in focus, positions, the mask. */
function switches(trace, state, live) {
  const { reading } = trace.model;
  const kind = state.view === "alignment" ? "cross" : state.view;
  const { layer, head } = state.view === "alignment" ? reading : state;
  const button = (change, text, disabled) =>
    h(
      "button",
      {
        type: "button",
        class: `off-${change.type}`,
        "aria-pressed": String(live.has(change)),
        disabled,
        onclick: () => live.toggle(change),
      },
      text,
    );
  const one = layer === null || head === null ? t("off.choose") : t("off.head", { where: place(layer, head) });
  return h(
    "div",
    { class: "switches", role: "group", "aria-label": t("off") },
    button({ type: "head_off", kind, layer, head }, one, layer === null || head === null),
    trace.attentions.decoder ? button({ type: "positions_off" }, t("off.positions")) : null,
    trace.attentions.decoder ? button({ type: "mask_off" }, t("off.mask")) : null,
  );
}

/** A layer and one of its heads, or the mean of them, in words. */
const place = (layer, head) =>
  `${t("layer_n", { n: layer + 1 })}, ${head === null ? t("mean_of_heads") : t("head_n", { n: head + 1 })}`;

/** What is being looked at, in words. */
function described(trace, { view, layer, head }) {
  const { reading } = trace.model;
  if (view === "alignment")
    if (reading.posterior) return t("reading.posterior");
    return t(reading.shifted ? "reading.shifted" : "reading.plain", { where: place(reading.layer, reading.head) });
  const where = layer === null ? t("mean_of_all") : place(layer, head);
  return t("looking", { view: t(`view.${view}.title`), where });
}

function thumbnails(trace, state, act) {
  const kind = state.view === "alignment" ? "cross" : state.view;
  const attention = trace.attentions[kind];
  const [layers, heads] = attention.logs.shape;
  const { reading } = trace.model;
  const chosen = state.view === "alignment" ? { layer: reading.layer, head: reading.head } : state;
  const places = [...Array(heads).keys(), null];
  const one = (layer, head) => {
    const pressed = chosen.layer === layer && chosen.head === head;
    const reads = kind === "cross" && reading.layer === layer && reading.head === head;
    const about = [place(layer, head)];
    if (head !== null) about.push(t("entropy", { value: fixed(attention.heads[layer][head].entropy, 2) }));
    if (reads) about.push(t("badge"));
    const title = about.join(" — ");
    return h(
      "button",
      {
        type: "button",
        class: `thumbnail${head === null ? " mean" : ""}${reads ? " reads" : ""}`,
        "data-number": head === null ? "x̄" : head + 1,
        "aria-pressed": String(pressed),
        "aria-label": title,
        title,
        tabindex: pressed || (chosen.layer === null && layer === 0 && head === 0) ? 0 : -1,
        "data-at": `${layer}.${head ?? heads}`,
        onclick: () =>
          act.set({
            view: kind,
            layer,
            head,
            pin: null,
            ...(state.measure === "scores" ? {} : { measure: "weights" }),
          }),
      },
      canvas(`${kind}.${layer}.${head}`, () => seen(attention, mean(attention, attention.weights, layer, head))),
    );
  };
  return h(
    "div",
    { class: "scroll" },
    h(
      "div",
      { class: "thumbnails", role: "group", "aria-label": t("thumbnails"), onkeydown: walk },
      [...Array(layers).keys()].map((layer) =>
        h(
          "div",
          { class: "layer" },
          h("span", { class: "name", "aria-hidden": "true" }, t("layer_short", { n: layer + 1 })),
          places.map((head) => one(layer, head)),
        ),
      ),
      h(
        "button",
        {
          type: "button",
          class: "whole",
          "aria-pressed": String(state.view !== "alignment" && state.layer === null),
          onclick: () => act.set({ view: kind, layer: null, head: null, pin: null }),
        },
        t("mean_of_all"),
      ),
    ),
  );
}

/** A small picture; painted once for each attention, because a model may have many. */
function canvas(key, values) {
  const element = h("canvas", { class: "map", "data-key": key, "aria-hidden": "true" });
  element.paint = (one) => {
    const look = `${key} ${isDark()}`;
    if (one.painted === look) return;
    const matrix = values();
    paintMatrix(
      one,
      matrix,
      matrix.flat().reduce((most, value) => Math.max(most, value || 0), 1e-9),
      false,
    );
    one.painted = look;
  };
  return element;
}

function walk(event) {
  const [layer, head] = event.target.dataset.at?.split(".").map(Number) ?? [];
  if (layer === undefined) return;
  const to = {
    ArrowUp: [layer - 1, head],
    ArrowDown: [layer + 1, head],
    ArrowLeft: [layer, head - 1],
    ArrowRight: [layer, head + 1],
  }[event.key];
  const next = to && event.currentTarget.querySelector(`[data-at="${to.join(".")}"]`);
  if (!to) return;
  event.preventDefault();
  next?.focus();
}

/** The next or previous head or layer of what is looked at; from the reading one comes to its own layer first. */
export function turned(trace, state, axis, by) {
  const kind = state.view === "alignment" ? "cross" : state.view;
  const attention = trace.attentions[kind];
  if (!attention) return {};
  const [layers, heads] = attention.logs.shape;
  const { reading } = trace.model;
  const from = state.view === "alignment" ? reading : state;
  const around = (place, size) => ((((place ?? (by > 0 ? -1 : size)) + by) % size) + size) % size;
  if (axis === "head") return { view: kind, layer: from.layer ?? 0, head: around(from.head, heads), pin: null };
  return { view: kind, layer: around(from.layer, layers), head: from.head, pin: null };
}
