// What might have been said at the current step.

import { h, printable } from "#app/dom";
import { t, fixed } from "#app/i18n";
import { bars } from "#app/strips";

export const name = "candidates";
export const inputs = (state) => [state.step];

export function draw({ trace, state, id }) {
  const { entropy, rank } = trace.target.pieces[state.step];
  const facts = [
    rank !== null && t("rank", { rank }),
    entropy !== null && t("entropy", { value: fixed(entropy, 2) }),
  ].filter(Boolean);
  return h(
    "section",
    { class: "panel candidates", "aria-labelledby": `${id}-candidates` },
    h(
      "div",
      { class: "row-of" },
      h("h2", { id: `${id}-candidates` }, t("candidates")),
      h("span", { class: "hint" }, facts.join(" · ")),
    ),
    list(trace, state.step, 10),
  );
}

/** The likeliest pieces of a step with their probabilities; the one that was said is marked. */
export function list(trace, step, count) {
  const { candidates, id } = trace.target.pieces[step];
  if (!candidates) return h("p", { class: "hint missing" }, t("not_recorded"));
  const pieces = candidates.pieces.slice(0, count).map(printable);
  const probs = candidates.log_probs.slice(0, count).map((log) => Math.exp(Math.min(0, log)));
  return bars(pieces, probs, {
    language: trace.model.target_language,
    role: "likely",
    high: 1,
    mark: candidates.ids.slice(0, count).indexOf(id),
  });
}
