// The page #/evaluate: how good the models are, by length too, as their cards or an evaluation say.

import { h, printable } from "#app/dom";
import { t, fixed, grouped, languageName } from "#app/i18n";
import { chart } from "#app/chart";

export const FORMAT = "regard-evaluation/1";
const MOST = 50; // sentences shown at once

/**
 * Test sets of models, `{ title, systems, signature, sentences }`: those of cards, each with the models of a direction,
 * and the one of an evaluation that was opened. What a card or file says is text or a number, or is left out.
 */
export function sheets(models, opened) {
  const found = new Map();
  for (const model of models ?? [])
    for (const [test, scores] of Object.entries(model.card?.tests ?? {})) {
      const system = { name: model.name, bleu: finite(scores?.bleu), chrf: finite(scores?.chrf), count: finite(scores?.num_sentences), rows: rowsOf(scores) };
      if (system.bleu === null) continue;
      const own = test === "validation" ? ` (${model.name})` : ""; // of a model's own data
      const key = `${languageName(model.source)} → ${languageName(model.target)} · ${test}${own}`;
      if (!found.has(key)) found.set(key, { key, title: key, systems: [], signature: text(scores.signatures?.bleu) });
      found.get(key).systems.push(system);
    }
  const all = [...found.values()].sort((one, other) => other.systems.length - one.systems.length);
  return opened ? [ofEvaluation(opened), ...all] : all;
}

function ofEvaluation({ name, data }) {
  const systems = data.systems.map((one) => ({
    name: text(one.name),
    bleu: finite(one.scores?.bleu?.value),
    chrf: finite(one.scores?.chrf?.value),
    count: finite(data.num_sentences),
    rows: rowsOf(one),
  }));
  return { key: "opened", title: printable(name), systems, signature: text(data.signatures?.bleu), sentences: data.sentences ?? [] };
}

const text = (value) => (typeof value === "string" ? printable(value) : "");
const finite = (value) => (Number.isFinite(value) ? value : null);
const rowsOf = (scores) => (Array.isArray(scores?.by_length) ? scores.by_length.filter((row) => Number.isFinite(row?.bleu) && Number.isFinite(row.first_word)) : []);
const binOf = (row) => (row.last_word === null ? `${row.first_word}+` : `${row.first_word}–${row.last_word}`);
const score = (value) => (value === null || value === undefined ? "–" : fixed(value, 1));

/** An evaluation from a file; an error that names what is wrong with it. */
export async function read(file) {
  const data = JSON.parse(await file.text());
  if (data?.format !== FORMAT || !Array.isArray(data.systems)) throw new Error("format");
  return { name: file.name, data };
}

export function draw({ models, state, on, has }) {
  const all = sheets(models, state.opened);
  const sheet = all.find((one) => one.key === state.sheet) ?? all[0];
  return h(
    "article",
    { class: "panel scores-of" },
    h("h2", { tabindex: -1 }, t("scores.title")),
    h("p", null, t("scores.text")),
    models === null ? h("p", { class: "hint" }, t("scores.none")) : null,
    h(
      "div",
      { class: "row-of" },
      all.length
        ? h("label", null, h("span", null, t("scores.set"), " "), h("select", { class: "sheet", onchange: (event) => on({ sheet: event.currentTarget.value, bin: null }) },
            all.map((one) => h("option", { value: one.key, selected: one === sheet }, one.title))))
        : null,
      h("label", { class: "opening" }, h("span", null, t("scores.open"), " "), h("input", { type: "file", accept: ".json", onchange: (event) => on({ file: event.currentTarget.files[0] }) })),
    ),
    state.error ? h("p", { class: "error", role: "alert" }, state.error) : null,
    sheet ? shown(sheet, state, on, has) : models?.length ? h("p", { class: "hint" }, t("scores.empty")) : null,
  );
}

function shown(sheet, state, on, has) {
  const bins = [...new Map(sheet.systems.flatMap((one) => one.rows).map((row) => [binOf(row), row])).values()].sort((one, other) => one.first_word - other.first_word);
  const names = bins.map(binOf);
  const lines = sheet.systems.map(({ name, rows }) => {
    const of = new Map(rows.map((row) => [binOf(row), row.bleu]));
    return { name, bleu: names.map((bin) => of.get(bin) ?? null) };
  });
  return [
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("scores.table") }, h(
      "table",
      { class: "table" },
      h("thead", null, h("tr", null, ["scores.model", "scores.bleu", "scores.chrf", "scores.count"].map((key) => h("th", { scope: "col" }, t(key))))),
      h("tbody", null, sheet.systems.map((one) => h("tr", null, h("th", { scope: "row" }, h("bdi", null, one.name)), h("td", null, score(one.bleu)), h("td", null, score(one.chrf)), h("td", null, one.count === null ? "–" : grouped(one.count))))),
    )),
    sheet.signature ? h("p", { class: "hint" }, t("scores.signature"), " ", h("code", null, sheet.signature)) : null,
    bins.length > 1
      ? [
          h("h3", null, t("widget.lengths")),
          chart({ bins: names, lines, label: t("widget.lengths") }),
          h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("widget.lengths") }, h(
            "table",
            { class: "table" },
            h("thead", null, h("tr", null, h("th", { scope: "col" }, t("scores.words")), h("th", { scope: "col" }, t("scores.count")), lines.map((line) => h("th", { scope: "col" }, h("bdi", null, line.name))))),
            h("tbody", null, bins.map((bin, at) => h("tr", null, h("th", { scope: "row" }, names[at]), h("td", null, grouped(bin.num_sentences ?? 0)), lines.map((line) => h("td", null, score(line.bleu[at])))))),
          )),
        ]
      : null,
    sheet.sentences ? sentences(sheet, bins, state, on, has) : h("p", { class: "hint" }, t("scores.sentences")),
  ];
}

/** The sentences of a bin; a source that a model of this page can be asked about opens on the main screen. */
function sentences(sheet, bins, state, on, has) {
  if (!sheet.sentences.every((one) => Number.isInteger(one?.num_words))) return h("p", { class: "hint" }, t("scores.old"));
  const bin = bins.find((one) => binOf(one) === state.bin);
  const chosen = bin ? sheet.sentences.filter(({ num_words: count }) => count >= bin.first_word && count <= (bin.last_word ?? Infinity)) : [];
  return h(
    "section",
    { class: "sentences-in", "aria-label": t("scores.choose") },
    h("h3", null, t("scores.choose")),
    h("div", { class: "choice bins", role: "group", "aria-label": t("scores.choose") }, bins.map((one) =>
      h("button", { type: "button", "aria-pressed": String(one === bin), onclick: () => on({ bin: binOf(one) }) }, binOf(one)))),
    chosen.length > MOST ? h("p", { class: "hint" }, t("scores.first", { count: MOST, of: grouped(chosen.length) })) : null,
    h("ol", { class: "found" }, chosen.slice(0, MOST).map((one) => h(
      "li",
      null,
      h("p", null, h("bdi", null, text(one.source))),
      h("dl", null,
        h("div", null, h("dt", null, t("scores.reference")), h("dd", null, h("bdi", null, text(one.reference)))),
        (one.translations ?? []).map((said) => h("div", null, h("dt", null, h("bdi", null, text(said.system))), h("dd", null, h("bdi", null, text(said.text)), " ", h("small", null, `chrF ${score(finite(said.chrf))}`)))),
      ),
      (one.translations ?? []).map(({ system }) => system).filter(has).map((model) =>
        h("button", { type: "button", class: "ask-again", onclick: () => on({ ask: { model, text: one.source } }) }, t("scores.ask", { model }))),
    ))),
  );
}
