// Where traces come from. `ask` gives them, `can` says whether something can be done: null, or the reason why not.

/** Traces that stand in the page: nothing can be asked of them but what they hold. */
export function embedded(entries) {
  return { entries, can: () => "reason.saved" };
}

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
    async models() {
      return (await (await fetch("/api/v1/models")).json()).models;
    },
    /** The parts of a translation, each with its cards. */
    async ask(request, signal) {
      return (await (await post({ ...body(request), form: "page" }, signal)).json()).entries;
    },
    /** What is shown, as a file. */
    async file(request, form) {
      return (await post({ ...body(request), form })).blob();
    },
  };
}

/** The engine inside this page: its models stand in the page, and it works in a worker, or without one here. */
export function inside(models) {
  const ask = worker() ?? here();
  const sent = new Set();
  const effects = new Set(); // ids of traces whose effects are still being computed
  let number = 0;
  const to = (name, message) => {
    if (!sent.has(name)) {
      sent.add(name);
      const place = models.findIndex((facts) => facts.name === name);
      ask({ id: ++number, kind: "model", name, facts: models[place], data: document.getElementById(`model-${place}`).textContent });
    }
    return ask({ ...message, id: ++number, name });
  };
  const drop = () => effects.forEach((of) => (effects.delete(of), ask({ id: ++number, kind: "cancel", of })));
  return {
    can: () => null,
    forms: ["json"],
    note: "plain.hint",
    models: async () => models.map(({ about, design, name }) => ({
      name, source: about.source_language, target: about.target_language, kind: about.kind,
      has_attention: Boolean(design.attentions.cross), num_parameters: about.num_parameters,
    })),
    async ask(request, signal) {
      drop();
      const { model, ...asked } = body(request);
      const answer = to(model, { kind: "trace", request: asked });
      const of = number;
      const entry = await answer;
      if (signal?.aborted) throw new DOMException("", "AbortError");
      /** What each source word does, which takes longer. */
      entry.effects = () => (effects.add(of), ask({ id: ++number, kind: "effects", of }).finally(() => effects.delete(of)));
      return [entry];
    },
    async file(request) {
      const { model, ...asked } = body(request);
      return new Blob([await to(model, { kind: "file", request: asked })], { type: "application/json" });
    },
  };
}

/** What asks a worker, null where there may be none. */
function worker() {
  let made;
  try {
    made = new Worker(URL.createObjectURL(new Blob([JSON.parse(document.getElementById("engine").textContent)])));
  } catch {
    return null;
  }
  const waiting = new Map();
  const fallback = new Promise((resolve) => (made.onerror = () => resolve(here())));
  fallback.then((ask) => waiting.forEach(({ message, resolve, reject }) => ask(message).then(resolve, reject)));
  made.onmessage = ({ data: { id, value, error } }) => {
    const { resolve, reject } = waiting.get(id) ?? {};
    waiting.delete(id);
    if (error === undefined) resolve?.(value);
    else reject?.(new Error(error));
  };
  return (message) =>
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
