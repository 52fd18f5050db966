// Going through the translation step by step. Nothing moves by itself.

import { h, printable } from "#app/dom";
import { names, unitOf, units } from "#app/views";
import { icon } from "#app/icons";
import { t, percent } from "#app/i18n";

export const name = "transport";
export const inputs = (state) => [state.step, state.playing, state.speed, state.by];

const SPEEDS = [0.5, 1, 2, 4];
const MILLISECONDS = 1000; // of a step at speed 1

/** The steps at which the transport stops: each word's first in a live page that goes by words, else all. */
export function stops(trace, state, live) {
  const all = trace.target.pieces.map((_, step) => step);
  return live && state.by === "words" ? units(trace.target).map((unit) => unit[0]) : all;
}

export function draw({ trace, state, act, live }) {
  const all = stops(trace, state, live);
  const last = all.length - 1;
  const at = all.findLastIndex((step) => step <= state.step);
  const button = (key, sign, on, disabled) =>
    h(
      "button",
      { type: "button", class: `round ${key}`, "aria-label": t(key), title: t(key), onclick: on, disabled },
      icon(sign),
    );
  return h(
    "section",
    { class: "panel transport", "aria-label": t("transport") },
    h(
      "div",
      { class: "buttons" },
      button("back", "back", () => act.step(-1), at === 0),
      button(state.playing ? "pause" : "play", state.playing ? "pause" : "play", () => act.play(), last === 0),
      button("forward", "forward", () => act.step(1), at === last),
    ),
    h(
      "div",
      { class: "slide" },
      h("input", {
        type: "range",
        min: 0,
        max: last,
        step: 1,
        class: "slider",
        "aria-label": t("step"),
        "aria-valuetext": said(trace, state.step),
        oninput: (event) => act.go(all[Number(event.target.value)]),
        value: at,
      }),
      h(
        "div",
        { class: "ticks", "aria-hidden": "true" },
        all.map((step) => h("i", { class: step <= state.step ? "passed" : null })),
      ),
    ),
    h(
      "label",
      { class: "speed" },
      h("span", { class: "unseen" }, t("speed")),
      h(
        "select",
        { title: t("speed"), onchange: (event) => act.set({ speed: Number(event.target.value) }) },
        SPEEDS.map((speed) => h("option", { value: speed, selected: speed === state.speed }, `${speed}×`)),
      ),
    ),
    h("p", { class: "saying", "aria-live": state.playing ? "off" : "polite" }, all.length < trace.target.pieces.length ? word(trace, state, at, all.length) : saying(trace, state.step)),
  );
}

/** The sentence about a word. */
function word(trace, state, at, count) {
  const unit = unitOf(trace.target, "words", state.step);
  return [
    h("b", null, t("word_n", { n: at + 1, count })),
    " ",
    h("bdi", { class: "token", lang: trace.model.target_language }, names(trace.target, "words")[unit]),
  ];
}

function told(trace, step) {
  const { pieces } = trace.target;
  return {
    step: step + 1,
    steps: pieces.length,
    fed: step ? printable(pieces[step - 1].piece) : "<s>",
    piece: printable(pieces[step].piece),
    prob: percent(Math.exp(Math.min(0, pieces[step].log_prob))),
  };
}

const said = (trace, step) => t("saying", told(trace, step));

/** The sentence about a step, its pieces set apart from the words around them. */
function saying(trace, step) {
  const places = told(trace, step);
  return t("saying")
    .split(/(\{\w+\})/)
    .map((part) => {
      const key = /^\{(\w+)\}$/.exec(part)?.[1];
      if (!key) return part;
      return key === "fed" || key === "piece"
        ? h("bdi", { class: "token", lang: trace.model.target_language }, places[key])
        : h("b", null, places[key]);
    });
}

/** Start or stop going on by itself whenever the state says so. */
export function player(store, act) {
  let timer = null;
  const tick = () => {
    const all = act.stops();
    const next = all.find((step) => step > store.state.step);
    if (next !== undefined) store.set({ step: next });
    if (store.state.step >= all.at(-1)) store.set({ playing: false });
    else timer = setTimeout(tick, MILLISECONDS / store.state.speed);
  };
  store.listen((state) => {
    if (!state.playing) {
      clearTimeout(timer);
      timer = null;
    } else timer ??= setTimeout(tick, MILLISECONDS / state.speed);
  });
}
