// What lies below the stage: each part opens and closes, and stays so.

import { h } from "#app/dom";
import { t } from "#app/i18n";
import { can as canUnroll } from "#app/unrolled";
import { can as canMultiply } from "#app/matrices";
import { FORMS } from "#app/picture";
import { saving } from "#app/save";

export const name = "drawers";
export const inputs = (state) => [state.open, state.said];

/** Panels that can be closed, by the names under which they are opened. */
export const DRAWERS = { map: "heatmap", heads: "selector", likely: "candidates", steps: "mechanics", unrolled: "unrolled", matrices: "matrices", beam: "beam" };

export function draw({ trace, state, act, live }) {
  const can = {
    map: true,
    heads: Object.keys(trace.attentions).length > 1 || (trace.attentions.cross?.logs.shape[1] ?? 0) > 1,
    likely: true,
    steps: true,
    unrolled: canUnroll(trace),
    matrices: canMultiply(trace),
    beam: Boolean(trace.beam),
  };
  return h(
    "section",
    { class: "drawers", "aria-label": t("drawers") },
    Object.keys(DRAWERS)
      .filter((one) => can[one])
      .map((one) =>
        h(
          "button",
          {
            type: "button",
            class: `drawer-${one}`,
            "aria-expanded": String(state.open.includes(one)),
            onclick: () => act.toggle(one),
          },
          t(`drawer.${one}`),
        ),
      ),
    live
      ? [h("button", { type: "button", class: "give", onclick: () => live.give() }, t("give")), live.saving()]
      : [
          h("span", { class: "hint no-engine" }, t("reason.saved")),
          saving({ forms: FORMS, file: act.picture, say: (what) => act.set({ said: t(what.message ?? what) }) }),
          state.said ? h("p", { class: "hint", role: "status" }, state.said) : null,
        ],
  );
}
