// The question: a sentence and a model, and what is to be known about the answer.

import { h, printable } from "#app/dom";
import { t, languageName } from "#app/i18n";
import { memory } from "#app/store";

export const FIRST = { model: "fr-en-rnn", text: "L'accord sur la zone économique européenne a été signé en août 1992." };
export const MAX_TEXT = 600; // characters: what a server traces

/** The field for a sentence, the list of models, the button that puts the model without attention beside. */
export function question({ state, models, model, without, on }) {
  return h(
    "form",
    { class: "asking", "aria-label": t("ask"), onsubmit: (event) => (event.preventDefault(), on.submit()) },
    h(
      "label",
      { class: "sentence-field" },
      h("span", { class: "unseen" }, t("ask.text")),
      h("textarea", {
        rows: 1,
        maxlength: MAX_TEXT,
        lang: model?.source,
        placeholder: t("ask.text"),
        spellcheck: "false",
        value: state.text,
        oninput: (event) => on.typed(event.currentTarget.value),
        onkeydown: (event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          on.submit();
        },
      }),
    ),
    h(
      "label",
      null,
      h("span", { class: "unseen" }, t("ask.model")),
      h(
        "select",
        { class: "model", onchange: (event) => on.choose(event.currentTarget.value) },
        models.map((one) =>
          h(
            "option",
            { value: one.name, selected: one.name === state.model },
            `${one.name} · ${languageName(one.source)} → ${languageName(one.target)}`,
          ),
        ),
      ),
    ),
    h("button", { type: "submit", class: "go", "aria-busy": String(state.busy) }, t("ask.go")),
    h(
      "button",
      {
        type: "button",
        class: "compare",
        "aria-pressed": String(state.compare),
        disabled: !without,
        title: without ? null : t("compare.none"),
        onclick: () => on.set({ compare: !state.compare }),
      },
      t("compare"),
    ),
  );
}

/** A field for a translation of the reader's own: how likely does the model hold each of its words? */
function reference(model, on) {
  const read = (form) => form.querySelector("textarea").value.trim();
  return h(
    "form",
    {
      class: "giving editor",
      "aria-label": t("give"),
      onsubmit: (event) => {
        event.preventDefault();
        on.given(read(event.currentTarget));
      },
    },
    h(
      "label",
      null,
      h("span", null, t("give.label")),
      h("textarea", { rows: 1, maxlength: MAX_TEXT, lang: model?.target, spellcheck: "false" }),
    ),
    h("button", { type: "submit", class: "go" }, t("give.go")),
  );
}

/** That the guard has translated around something that the model cannot say, so that the picture lacks it. */
function around(trace) {
  const whole = trace?.whole;
  if (!whole?.flags.includes("around")) return null;
  return h("p", { class: "hint around" }, t("around"), " ", h("bdi", null, printable(whole.text)));
}

/** What went wrong, which sentence of several is shown, and hints. */
export function remarks({ state, before, viewer, model, note, on }) {
  const several = before?.length > 1;
  return h(
    "div",
    { class: "asked" },
    state.error ? h("p", { class: "error", role: "alert" }, state.error) : null,
    state.giving ? reference(model, on) : null,
    several
      ? h(
          "div",
          { class: "choice parts", role: "group", "aria-label": t("parts") },
          before.map((_, part) =>
            h(
              "button",
              {
                type: "button",
                "aria-pressed": String(part === state.part),
                onclick: () => on.set({ part, changes: [] }),
              },
              part + 1,
            ),
          ),
        )
      : null,
    viewer?.store && state.lesson === null && !state.changes.length && !memory.get("moved") && viewer.trace.attentions.cross
      ? h("p", { class: "first-hint" }, t(state.text === FIRST.text ? "first_hint.example" : "first_hint"))
      : null,
    state.text.length >= MAX_TEXT ? h("p", { class: "hint too-long" }, t("ask.long", { most: MAX_TEXT })) : null,
    around(before?.[state.part]?.trace),
    note ? h("p", { class: "hint" }, t(note)) : null,
    viewer?.trace?.attentions.decoder ? h("p", { class: "hint" }, t("transformer.hint")) : null,
  );
}
