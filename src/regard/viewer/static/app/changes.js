// What was changed by hand, and what came of it: before and now, with and without attention.

import { h, printable } from "#app/dom";
import { currentLanguage, t, fixed, percent } from "#app/i18n";
import { differing } from "#app/differ";
import { intervention } from "#app/header";

/** The kinds of changes that a link may ask for. */
export const TYPES = new Set(["look", "prefix", "force", "head_off", "positions_off", "mask_off"]);

/** Whether two changes are of the same thing. */
export function same(one, other) {
  const keys = ["type", "step", "layer", "head", "kind"];
  return keys.every((key) => (one[key] ?? null) === (other[key] ?? null));
}

/** The words of a translation. */
export function wordsOf(entry) {
  const { words, text } = entry.trace.target;
  const letters = Array.from(text);
  return words.map((word) => letters.slice(word.start, word.end).join(""));
}

/** The changes, each to be undone or left out for a while, and both translations. */
export function draw({ state, before, now, twin, language, on }) {
  if (!before || !now) return h("section", { hidden: true });
  if (!state.changes.length) return twin ? both({ state, now, twin, language }) : h("section", { hidden: true });
  const [old, fresh] = [before[state.part], now[0]];
  const [was, is] = [wordsOf(old), wordsOf(fresh)];
  return h(
    "section",
    { class: "panel changes", "aria-label": t("changes") },
    h(
      "ul",
      { class: "chips-of" },
      state.changes.map((change) =>
        h(
          "li",
          { class: `change${change.off ? " off" : ""}` },
          h(
            "button",
            {
              type: "button",
              "aria-pressed": String(!change.off),
              title: t("change.toggle"),
              onclick: () => on.set({ changes: state.changes.map((one) => (one === change ? { ...one, off: !one.off } : one)) }),
            },
            "✎ ",
            h("bdi", null, described(change)),
          ),
          h(
            "button",
            {
              type: "button",
              class: "undo",
              "aria-label": `${t("undo")}: ${described(change)}`,
              title: t("undo"),
              onclick: () => on.set({ changes: state.changes.filter((one) => one !== change) }),
            },
            "↶",
          ),
        ),
      ),
    ),
    h(
      "dl",
      { class: "versions", lang: language, "aria-live": "polite" },
      version("before", was, is, old),
      // Until the answer is there, what is shown is not yet what the changes make of it.
      state.busy ? h("div", { class: "now" }, h("dt", { lang: currentLanguage() }, t("now")), h("dd", null, "…")) : version("now", is, was, fresh),
    ),
  );
}

/** The two translations, with and without attention. */
function both({ state, now, twin, language }) {
  const [mine, its] = [now[0], twin[Math.min(state.part, twin.length - 1)]];
  return h(
    "section",
    { class: "panel changes both", "aria-label": t("compare.label") },
    h(
      "dl",
      { class: "versions", lang: language },
      version("with", wordsOf(mine), wordsOf(its), mine),
      version("without", wordsOf(its), wordsOf(mine), its),
    ),
  );
}

function version(key, words, others, entry) {
  const marks = new Set(differing(words, others));
  return h(
    "div",
    { class: key },
    h("dt", { lang: currentLanguage() }, t(key)),
    h(
      "dd",
      null,
      words.map((word, at) => [marks.has(at) ? h("mark", null, printable(word)) : printable(word), " "]),
      h("small", { lang: currentLanguage() }, t("log_prob_of", { value: fixed(entry.trace.target.log_prob, 1) })),
    ),
  );
}

function described(change) {
  if (change.type === "prefix") return t("change.prefix", { text: printable(change.text) });
  if (change.type === "force") return t("change.force", { text: printable(change.text) });
  if (change.type !== "look" || !change.name) return intervention(change);
  const told = { word: printable(change.word), name: printable(change.name) };
  return change.share === 1
    ? t("change.gaze", told)
    : t("change.weight", { ...told, share: percent(change.share ?? 0) });
}
