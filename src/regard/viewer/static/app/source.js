// Where traces come from. `ask` gives them, `can` says whether something can be done: null, or the reason why not.

/** The server that sent this page. */
export function served() {
  const post = async (body, signal) => {
    let answer;
    try {
      answer = await fetch("/api/v1/trace", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        signal,
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("reason.gone", { cause: error });
    }
    if (answer.ok) return answer;
    const { error } = await answer.json().catch(() => ({}));
    throw new Error(error?.message ?? error ?? String(answer.status));
  };
  return {
    can: () => null,
    forms: ["html", "json"],
    async models() {
      return (await (await fetch("/api/v1/models")).json()).models;
    },
    /** The models with what their cards tell. */
    async cards() {
      const one = async ({ name }) => (await fetch(`/api/v1/models/${encodeURIComponent(name)}`)).json();
      return Promise.all((await this.models()).map(one));
    },
    asked: "server",
    /** The parts of a translation, each with its cards. */
    async ask(request, signal) {
      return (await (await post({ ...body(request), form: "page" }, signal)).json()).entries;
    },
    /** What is shown, as a file. */
    async file(request, form) {
      const answer = await post({ ...body(request), form });
      if (form !== "json") return answer.blob();
      // One part was asked for, so there is one trace; its numbers stay as they are written, since its id depends on it.
      const text = await answer.text();
      return new Blob([text.slice('{"traces":['.length, -"]}".length)], { type: "application/json" });
    },
  };
}

/**
 * The engine of this page, in a worker or without one here. A model stands in the page or, on a site, in a file beside
 * it, which is fetched when it is first asked.
 */
export function inside(models) {
  const ask = worker() ?? here();
  const brought = new Map(); // models that the engine has or will have, by name
  const effects = new Set(); // ids of traces whose effects are still being computed
  let number = 0;
  const bring = async (name) => {
    const place = models.findIndex((facts) => facts.name === name);
    const data = await contents(models[place].url, place);
    return ask({ id: ++number, kind: "model", name, facts: models[place], data });
  };
  const to = async (name, message) => {
    if (!brought.has(name)) brought.set(name, bring(name));
    await brought.get(name).catch((error) => {
      brought.delete(name); // it may be there the next time
      throw error;
    });
    return ask({ ...message, name });
  };
  const drop = () => effects.forEach((of) => (effects.delete(of), ask({ id: ++number, kind: "cancel", of })));
  const told = models.map(({ about, card, design, name }) => ({
    name, source: about.source_language, target: about.target_language, kind: about.kind,
    has_attention: Boolean(design.attentions.cross), num_parameters: about.num_parameters, card,
  }));
  return {
    can: () => null,
    note: "plain.hint",
    models: async () => told,
    cards: async () => told,
    asked: "nobody",
    async ask(request, signal) {
      drop();
      const { model, ...asked } = body(request);
      const of = ++number;
      const entry = await to(model, { id: of, kind: "trace", request: asked });
      if (signal?.aborted) throw new DOMException("", "AbortError");
      /** What each source word does, which takes longer. */
      entry.effects = () => (effects.add(of), ask({ id: ++number, kind: "effects", of }).finally(() => effects.delete(of)));
      return [entry];
    },
    /** What is shown as JSON; as HTML, this page itself, which begins where it is now. */
    async file(request, form) {
      if (form === "html") return new Blob([copy()], { type: "text/html" });
      const { model, ...asked } = body(request);
      return new Blob([await to(model, { id: ++number, kind: "file", request: asked })], { type: "application/json" });
    },
    forms: models.some(({ url }) => url) ? ["json"] : ["html", "json"],
  };
}

/** The file of a model: as text, from this page, or as bytes, from beside it. */
async function contents(url, place) {
  if (!url) return document.getElementById(`model-${place}`).textContent;
  const answer = await fetch(url).catch(() => null);
  if (!answer?.ok) throw new Error("reason.model");
  return answer.arrayBuffer();
}

/** The text of this page as it came, but that it asks for what it shows. */
function copy() {
  const page = document.documentElement.cloneNode(true);
  page.lang = "en";
  delete page.dataset.theme;
  page.querySelector("body").removeAttribute("class");
  page.querySelector("#app").replaceChildren();
  page.querySelector("#asked").textContent = JSON.stringify(location.hash.slice(1)).replaceAll("<", "\\u003c");
  return `<!DOCTYPE html>\n${page.outerHTML}\n`;
}

/** What asks a worker, null where there may be none. */
function worker() {
  let made;
  try {
    const engine = document.getElementById("engine");
    made = new Worker(engine ? URL.createObjectURL(new Blob([JSON.parse(engine.textContent)])) : "regard-worker.js");
  } catch {
    return null;
  }
  const waiting = new Map();
  let instead = null; // what is asked where a worker may be made but not run
  made.onerror = () => {
    instead ??= here();
    waiting.forEach(({ message, resolve, reject }) => instead(message).then(resolve, reject));
    waiting.clear();
  };
  made.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(value);
    else reject?.(new Error(error));
  };
  return (message) =>
    instead?.(message) ??
    new Promise((resolve, reject) => {
      waiting.set(message.id, { message, resolve, reject });
      made.postMessage(message);
    });
}

/** What asks the engine in this page itself, which cannot be moved while it works. */
function here() {
  const engine = import("#engine/worker");
  return async (message) => (await engine).serve(message);
}

const KNOWN = new Set(["type", "step", "weights", "layer", "head", "kind"]); // what a server knows of a change

function body({ text, model, changes = [] }) {
  const used = changes.filter((change) => !change.off);
  const prefix = used.findLast((change) => change.type === "prefix")?.text;
  const force = used.findLast((change) => change.type === "force")?.text;
  return {
    text,
    model,
    effects: true,
    gates: true,
    interventions: used
      .filter((change) => change.type !== "prefix" && change.type !== "force")
      .map((change) => Object.fromEntries(Object.entries(change).filter(([key]) => KNOWN.has(key)))),
    ...(force !== undefined ? { force } : prefix !== undefined ? { prefix } : {}),
  };
}
