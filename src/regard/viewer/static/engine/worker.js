// The engine as a page asks it, in a worker or, where there is none, in the page itself. Messages have an id and a kind.

import { answer, openModel, saved } from "#engine/model";

const opened = new Map(); // models by name, each opened when it is first asked
const MAX_PENDING = 8; // of the latest traces: each holds its numbers
const pending = new Map(); // effects that can be computed, by the id of the trace they belong to
const dropped = new Set(); // ids of traces whose effects nobody waits for

/** The bytes of a model's file, which may come as base64. */
const fileOf = (data) =>
  typeof data === "string" ? Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)) : new Uint8Array(data);

/** Answer one message: `model` brings a file, `trace` and `file` ask it, `effects` are those of a trace, `cancel` drops them. */
export async function serve({ id, kind, name, data, facts, request, of }) {
  if (kind === "model") return void opened.set(name, openModel(fileOf(data), facts));
  if (kind === "cancel") return void dropped.add(of);
  if (kind === "effects") {
    dropped.delete(of);
    return pending.get(of)?.(() => dropped.has(of)) ?? null;
  }
  const model = await opened.get(name);
  if (kind === "file") return saved(model, request);
  const { entry, effects } = await answer(model, request);
  pending.set(id, effects);
  if (pending.size > MAX_PENDING) pending.delete(pending.keys().next().value);
  return entry;
}

/** Answer the messages of the page that started this worker. */
export function listen(scope) {
  scope.onmessage = async ({ data }) => {
    try {
      scope.postMessage({ id: data.id, value: await serve(data) });
    } catch (error) {
      scope.postMessage({ id: data.id, error: error.message });
    }
  };
}
