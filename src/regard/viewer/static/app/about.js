// The page #/about: what this is, whose work is in it, what becomes of a text, what the signs mean.

import { h, printable } from "#app/dom";
import { t, grouped, languageName } from "#app/i18n";
import { formula } from "#app/strips";

// What a reader meets on the page, and the text that explains it.
const SIGNS = ["<s>", "</s>", "▁", "★", "h_i", "s_t", "e_i", "α_i", "c_t", "x̄", "%"];
const PAPERS = [
  "Sutskever, Vinyals, Le 2014. Sequence to Sequence Learning with Neural Networks. arXiv:1409.3215",
  "Bahdanau, Cho, Bengio 2015. Neural Machine Translation by Jointly Learning to Align and Translate. arXiv:1409.0473",
  "Luong, Pham, Manning 2015. Effective Approaches to Attention-based Neural Machine Translation. arXiv:1508.04025",
  "Vaswani et al. 2017. Attention Is All You Need. arXiv:1706.03762",
];

export function draw({ version, models, asked, help }) {
  const credits = [...new Set((models ?? []).flatMap((model) => model.card?.credits ?? []))];
  return h(
    "article",
    { class: "panel about-of" },
    h("h2", { tabindex: -1 }, t("about.title", { version: version ?? "" })),
    h("p", null, t("about.text")),
    h("h3", null, t("about.privacy")),
    h("p", null, t(`about.${asked}`)),
    h("p", null, t("about.kept")),
    h("h3", null, t("about.licence")),
    h("p", null, t("about.licence.text")),
    credits.length ? [h("p", null, t("about.credits")), h("ul", { class: "dotted" }, credits.map((line) => h("li", null, h("bdi", null, printable(String(line))))))] : null,
    models?.length ? [h("h3", null, t("about.models")), h("dl", { class: "models-of" }, limits(models).map(group))] : null,
    h("h3", null, t("about.signs")),
    h("dl", { class: "signs" }, SIGNS.map((sign) => h("div", null, h("dt", null, sign.includes("_") ? formula(sign) : h("code", null, sign)), h("dd", null, t(`sign.${sign}`))))),
    h("p", { class: "hint" }, t("help.colours")),
    h("button", { type: "button", class: "keys-of", onclick: help }, t("help.title")),
    h("h3", null, t("about.papers")),
    h("ul", { class: "dotted", lang: "en" }, PAPERS.map((paper) => h("li", null, h("bdi", null, paper)))),
  );
}

/** Models by what their cards say of limits and licence. */
function limits(models) {
  const groups = new Map();
  for (const model of models) {
    const said = [model.card?.limits, model.card?.licence].map((one) => (typeof one === "string" ? printable(one) : ""));
    const key = JSON.stringify(said);
    if (!groups.has(key)) groups.set(key, { said, models: [] });
    groups.get(key).models.push(model);
  }
  return [...groups.values()];
}

const group = ({ said: [limit, licence], models }) =>
  h(
    "div",
    null,
    models.map((model) =>
      h(
        "dt",
        null,
        h("b", null, h("bdi", null, model.name)),
        " ",
        h("span", { class: "hint" }, `${languageName(model.source)} → ${languageName(model.target)} · ${t("about.parameters", { count: grouped(model.num_parameters) })}`),
      ),
    ),
    h("dd", null, limit ? h("bdi", { lang: "en" }, limit) : null, licence ? h("p", { class: "hint" }, t("about.licence"), ": ", h("bdi", null, licence)) : null),
  );
