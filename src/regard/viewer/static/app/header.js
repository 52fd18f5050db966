// What was translated, by what, and what is to be known about it.

import { h, printable } from "#app/dom";
import { t, translated, fixed, grouped, languageName } from "#app/i18n";

export const name = "header";
export const inputs = () => [];

export function draw({ trace, live }) {
  const { source, target, model } = trace;
  return h(
    "header",
    { class: "panel about" },
    live
      ? null
      : h(
          "div",
          { class: "sentences" },
          sentence("source", source.text, model.source_language),
          sentence("target", target.text, model.target_language),
        ),
    h(
      "dl",
      { class: "facts" },
      facts(trace).map(([key, value, term]) => h("div", null, h("dt", { title: term }, t(key)), h("dd", null, value))),
    ),
    notes(trace),
  );
}

function sentence(side, text, language) {
  return h(
    "p",
    { class: `sentence ${side}` },
    h("span", { class: "role" }, t(side)),
    h("bdi", { class: "text", lang: language }, printable(text) || "∅"),
  );
}

function facts({ model, target, request, metrics, took }) {
  const { source_language: from, target_language: to } = model;
  const languages = from && to ? `${languageName(from)} → ${languageName(to)}` : null;
  const search =
    request.search.beam_size > 1 ? t("search.beam", { size: request.search.beam_size }) : t(`search.${request.mode}`);
  return [
    ["fact.model", h("bdi", null, printable(model.label))],
    ["fact.kind", t(`kind.${model.kind}`)],
    languages && ["fact.languages", languages],
    ["fact.parameters", grouped(model.num_parameters)],
    ["fact.search", search],
    took !== undefined && ["fact.took", took < 1000 ? `${Math.max(1, Math.round(took))} ms` : `${fixed(took / 1000, 1)} s`],
    ["fact.log_prob", fixed(target.log_prob, 2), "log-probability"],
    ["fact.perplexity", fixed(metrics.perplexity, 2), "perplexity"],
  ].filter(Boolean);
}

function notes({ target, request, warnings, model }) {
  const found = [
    ...request.interventions.map((one) => note("changed", "✎", intervention(one))),
    request.prefix && note("changed", "✎", t("note.prefix", { text: printable(request.prefix) })),
    request.forced !== null && note("changed", "✎", t("note.forced")),
    !model.reading && note("plain", "○", t("note.no_attention")),
    ...target.flags.map(flagged),
    ...warnings.map((warning) => note("warning", "⚠", translated("warning", warning) ?? printable(warning))),
  ].filter(Boolean);
  return found.length ? h("ul", { class: "notes", "aria-label": t("notes") }, found) : null;
}

/** A flag warns that something looks wrong, or remarks how the translation was made. */
function flagged(flag) {
  const remark = translated("remark", flag);
  return remark === null
    ? note("warning", "⚠", translated("warning", flag) ?? printable(flag), flag)
    : note("plain", "○", remark, flag);
}

function note(kind, sign, text, title) {
  return h(
    "li",
    { class: `note ${kind}`, title },
    h("span", { "aria-hidden": "true" }, sign),
    " ",
    h("bdi", null, text),
  );
}

/** What was changed, in words. */
export function intervention({ type, step, layer, head, kind }) {
  if (type === "head_off") return t("change.head_off", { layer: layer + 1, head: head + 1, kind: t(`view.${kind}`) });
  if (type !== "look") return t(`change.${type}`);
  const where = [
    layer === null ? t("all_layers") : t("layer_n", { n: layer + 1 }),
    head === null ? t("all_heads") : t("head_n", { n: head + 1 }),
  ].join(", ");
  return t("change.look", { step: step + 1, where });
}
