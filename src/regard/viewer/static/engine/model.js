// A model ready to be asked, and what it can be asked.

import { packed } from "#engine/arrays";
import { readModel } from "#engine/modelfile";
import { RecurrentEngine } from "#engine/recurrent";
import { TransformerEngine } from "#engine/transformer";
import { trace } from "#engine/trace";

/** The model of a file; `facts` are what Python knows of its design. */
export async function openModel(bytes, facts) {
  const { weights, source, target } = await readModel(bytes, facts.shapes);
  const { options } = facts.about;
  const engine = options.kind === "recurrent" ? new RecurrentEngine(options, weights, facts.about.reading?.posterior) : new TransformerEngine(options, weights);
  return { facts, engine, source, target };
}

/** The trace of a request with the cards that explain a step, and its effects to come. */
export async function answer(model, request) {
  const { document, effects } = await trace(model, request);
  const recorded = ({ optional, name }) => !optional || name in document.states;
  const cards = model.facts.cards.map((card) => ({ ...card, shows: card.shows.filter(recorded) }));
  return { entry: { trace: document, cards }, effects };
}

/** The trace of a request as the text of a file; options of the search are written as Python writes them (2.0). */
export async function saved(model, request) {
  const { search, search_json } = model.facts;
  const { document, effects } = await trace(model, request);
  const text = JSON.stringify(await packed({ ...document, effects: await effects(() => false) }));
  return text.replace(`"search":${JSON.stringify(search)}`, () => `"search":${search_json}`);
}
