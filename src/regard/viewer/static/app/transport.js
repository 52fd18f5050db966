// Going through the translation step by step. Nothing moves by itself.

import { h, printable } from "#app/dom";
import { icon } from "#app/icons";
import { t, percent } from "#app/i18n";

export const name = "transport";
export const inputs = (state) => [state.step, state.playing, state.speed];

const SPEEDS = [0.5, 1, 2, 4];
const MILLISECONDS = 1000; // of a step at speed 1

export function draw({ trace, state, act }) {
  const { pieces } = trace.target;
  const last = pieces.length - 1;
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
      button("back", "back", () => act.step(-1), state.step === 0),
      button(state.playing ? "pause" : "play", state.playing ? "pause" : "play", () => act.play(), last === 0),
      button("forward", "forward", () => act.step(1), state.step === last),
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
        oninput: (event) => act.go(Number(event.target.value)),
        value: state.step,
      }),
      h(
        "div",
        { class: "ticks", "aria-hidden": "true" },
        pieces.map((_, step) => h("i", { class: step <= state.step ? "passed" : null })),
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
    h("p", { class: "saying", "aria-live": state.playing ? "off" : "polite" }, saying(trace, state.step)),
  );
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
export function player(store, numSteps) {
  let timer = null;
  const tick = () => {
    const { state } = store;
    if (state.step < numSteps - 1) store.set({ step: state.step + 1 });
    if (store.state.step >= numSteps - 1) store.set({ playing: false });
    else timer = setTimeout(tick, MILLISECONDS / store.state.speed);
  };
  store.listen((state) => {
    if (!state.playing) {
      clearTimeout(timer);
      timer = null;
    } else timer ??= setTimeout(tick, MILLISECONDS / state.speed);
  });
}
