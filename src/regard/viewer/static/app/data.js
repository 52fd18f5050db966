// The data layer: a trace as it is drawn, with its arrays unpacked and its parts fitting together.

import { unpack, row } from "#app/arrays";
import { misfit } from "#app/checks";

export const FORMAT = "regard-trace/1";

/** What is wrong with a trace: `key` names the message of the interface, `detail` fills it. */
export class Unsound extends Error {
  constructor(key, detail = "") {
    super(`${key} ${detail}`);
    this.key = key;
    this.detail = detail;
  }
}

/** A document with unpacked arrays; an `Unsound` error if it cannot be drawn. */
export async function load(document_) {
  if (document_?.format !== FORMAT) throw new Unsound("format", String(document_?.format));
  const trace = { ...document_, attentions: {}, states: {} };
  let where = "";
  try {
    for (const one of document_.attentions) {
      where = one.kind;
      trace.attentions[one.kind] = await attention(one);
    }
    for (const [name, array] of Object.entries(document_.states)) {
      where = name;
      trace.states[name] = await unpack(array);
    }
    where = "";
    const part = misfit(trace);
    if (part) throw new Unsound("misfit", part);
  } catch (error) {
    if (error instanceof Unsound) throw error;
    throw new Unsound("damaged", [where, error.message].filter(Boolean).join(": "));
  }
  trace.source.letters = Array.from(trace.source.text);
  trace.target.letters = Array.from(trace.target.text);
  return trace;
}

/** Log weights, weights and scores of (layers, heads, who, whom); a score is NaN where nothing may be seen. */
async function attention(one) {
  const logs = await unpack(one.log_weights);
  const sums = await unpack(one.log_sums);
  const weights = one.weights ? await unpack(one.weights) : { shape: logs.shape, values: logs.values.map(Math.exp) };
  const width = logs.shape.at(-1);
  const scores = logs.values.map((log, at) => (log === -Infinity ? NaN : log + sums.values[Math.floor(at / width)]));
  return { ...one, logs, sums, weights, scores: { shape: logs.shape, values: scores } };
}

/** The matrix (who, whom) of one layer and head. */
export function headOf(values, layer, head) {
  return row(row(values, layer), head);
}
