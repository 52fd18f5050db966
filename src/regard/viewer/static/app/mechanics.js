// The mechanics of the current step, card by card, as regard/design.py orders them.

import { h, piece, printable } from "#app/dom";
import { t, translated, fixed } from "#app/i18n";
import { row, rows } from "#app/arrays";
import { headOf } from "#app/data";
import { names, layerAndHead, units } from "#app/views";
import { strip, vector, bars, formula, largest } from "#app/strips";
import { list } from "#app/candidates";
import { AGREES, difference, mix } from "#app/computed";
import { drawing } from "#app/drawing";
import { icon } from "#app/icons";

export const name = "mechanics";
export const inputs = (state) => [state.step, state.view, state.layer, state.head, state.micro];

const SEEN = 8; // rows of a card that are in sight without scrolling
const ROLES = {
  score: "encoder",
  qkv: "encoder",
  context: "context",
  sum: "context",
  weigh_values: "context",
  cell: "decoder",
  cell_with_context: "decoder",
  first_step: "decoder",
  second_step: "decoder",
  fixed: "context",
};

export function draw({ trace, cards, state, act, id }) {
  const { layer, head } = layerAndHead(trace, state);
  const layered = cards.some((card) => card.shows.some((show) => show.name.includes("{l}")));
  const long = trace.attentions.cross && trace.source.pieces.length > SEEN;
  const hints = [
    layered && t("mechanics.where", { layer: layer + 1, head: head + 1 }),
    units(trace.target).length < trace.target.pieces.length && t("mechanics.pieces"),
    state.view === "alignment" && trace.model.reading?.shifted && t(trace.model.reading.posterior ? "mechanics.posterior" : "mechanics.shifted"),
    long && t("mechanics.heaviest"),
  ];
  return h(
    "section",
    { class: "panel mechanics", "aria-labelledby": `${id}-mechanics` },
    h(
      "div",
      { class: "row-of" },
      h("h2", { id: `${id}-mechanics` }, t("mechanics", { step: state.step + 1 })),
      micro(cards, state, act),
    ),
    h("p", { class: "hint" }, hints.filter(Boolean).join(" ")),
    drawing({ trace, cards, state, layer, head, act, id: `${id}-drawing` }),
    h(
      "ol",
      { class: "cards", tabindex: 0, "aria-label": t("mechanics.cards") },
      cards.map((card, place) =>
        h(
          "li",
          {
            class: `card ${ROLES[card.key] ?? ""}${state.micro === null || place <= state.micro ? "" : " to-come"}`,
            "aria-current": place === state.micro ? "step" : null,
          },
          h("h3", null, h("span", { class: "step-number" }, place + 1), title(card)),
          h("p", { class: "formula" }, formula(translated("formula", card.formula) ?? card.formula)),
          card.shows.map((show) => shown(trace, card, show, state.step, layer, head)),
          agreement(trace, card, state.step, layer, head),
        ),
      ),
    ),
  );
}

/** Bring the drawing into sight when a reader goes through its cards, and the card, where cards scroll beside it. */
export function after(panel, { changed, state: { micro: now } }) {
  if (panel.micro !== undefined && panel.micro !== now) panel.querySelector(".drawing")?.scrollIntoView({ block: "nearest" });
  panel.micro = now;
  const card = changed && panel.querySelector(".card[aria-current]");
  const box = card && card.closest(".cards");
  if (box && box.scrollHeight > box.clientHeight) box.scrollTop = card.offsetTop - box.offsetTop - 8;
}

/** Going through the cards one by one. */
function micro(cards, state, act) {
  const button = (key, by) =>
    h(
      "button",
      { type: "button", class: `round micro-${key}`, "aria-label": t(`micro.${key}`), title: t(`micro.${key}`), onclick: () => act.micro(by, cards.length) },
      icon(key),
    );
  return h(
    "span",
    { class: "micro", role: "group", "aria-label": t("micro") },
    button("back", -1),
    h("span", { class: "hint" }, state.micro === null ? t("micro.all") : `${state.micro + 1} / ${cards.length}`),
    button("forward", 1),
  );
}

function title(card) {
  const key = `card.${card.key}`;
  return t(key) === key ? card.title : t(key);
}

function shown(trace, card, show, step, layer, head) {
  if (show.form === "candidates") return list(trace, step, 5);
  if (["vector", "vectors", "weighted"].includes(show.form)) return vectors(trace, card, show, step, layer, head);
  const { cross } = trace.attentions;
  if (!cross) return null;
  const values = [...rows(headOf(show.form === "weights" ? cross.weights : cross.scores, layer, head))[step]];
  const order = inOrder(trace, step, layer, head);
  const source = names(trace.source, "pieces");
  const sum = values.reduce((total, value) => total + value, 0);
  return h(
    "div",
    { class: "numbers-of" },
    symbol(card, show),
    bars(order.map((place) => source[place]), order.map((place) => values[place] * show.scale), {
      language: trace.model.source_language,
      role: "attention",
      high: show.form === "weights" ? 1 : 0,
    }),
    show.form === "weights" ? h("p", { class: "sum" }, t("sum", { value: fixed(sum, 3) })) : null,
  );
}

/** The places of the source; where not all are in sight, those with the most weight come first. */
function inOrder(trace, step, layer, head) {
  const places = [...trace.source.pieces.keys()];
  if (places.length <= SEEN || !trace.attentions.cross) return places;
  const weights = rows(headOf(trace.attentions.cross.weights, layer, head))[step];
  return places.sort((one, other) => weights[other] - weights[one]);
}

/** What the numbers are called, unless the formula above has just said it. */
const symbol = (card, show) =>
  card.formula === show.symbol ? null : h("span", { class: "symbol" }, formula(show.symbol));

/** The state of a card, of the current layer and head if it has such; null if it was not recorded. */
function recorded(trace, show, layer, head) {
  const found = trace.states[show.name.replace("{l}", layer)];
  if (!found) return null;
  return show.name.includes("{l}") ? row(found, head) : found;
}

function vectors(trace, card, show, step, layer, head) {
  const found = recorded(trace, show, layer, head);
  if (!found) {
    const name_ = show.name.replace("{l}", layer);
    return h("p", { class: "hint missing" }, formula(show.symbol), " ", t("not_recorded"), " ", h("code", null, name_));
  }
  if (show.form === "vector")
    return vector(show.symbol, found.shape.length === 1 ? found.values : row(found, step).values);
  const weights = rows(headOf(trace.attentions.cross.weights, layer, head))[step];
  const weighted = show.form === "weighted";
  const all = rows(found);
  const bound = largest(found.values);
  return h(
    "div",
    { class: "numbers-of" },
    symbol(card, show),
    h(
      "ol",
      { class: "strips", tabindex: 0, lang: trace.model.source_language },
      inOrder(trace, step, layer, head).map((place) => {
        const name_ = printable(trace.source.pieces[place].piece);
        const values = weighted ? all[place].map((value) => value * weights[place]) : all[place];
        return h("li", null, h("bdi", { class: "name", title: name_ }, piece(name_)), strip(values, bound));
      }),
    ),
  );
}

/** Mix the vectors again, here, and say whether what the model computed is the same. */
function agreement(trace, card, step, layer, head) {
  const pair = {
    context: ["memory", "attention.context"],
    sum: [`decoder.${layer}.cross.values`, `decoder.${layer}.cross.heads`],
  }[card.key];
  const [from, to] = (pair ?? []).map((name_) => trace.states[name_]);
  if (!from || !to || !trace.attentions.cross) return null;
  const byHead = card.key === "sum";
  const weights = rows(headOf(trace.attentions.cross.weights, layer, head))[step];
  const vectors_ = byHead ? row(from, head) : from;
  const mixed = mix(weights, rows(vectors_));
  const wanted = row(byHead ? row(to, head) : to, step).values;
  return agreeing(difference(mixed, wanted), largest(vectors_.values));
}

/** Whether numbers computed in the page are those of the model: their largest difference, beside their size. */
export function agreeing(most, size) {
  const agrees = most <= AGREES * Math.max(1, size);
  return h(
    "span",
    { class: `agreement${agrees ? "" : " not"}` },
    h("span", { "aria-hidden": "true" }, agrees ? "✓ " : "✗ "),
    t(agrees ? "agrees" : "disagrees", { most: most.toExponential(1) }),
  );
}
