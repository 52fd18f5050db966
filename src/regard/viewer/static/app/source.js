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
