// A trace as a file: its arrays packed as regard/trace/arrays.py packs them.

const [UNSEEN, LEAST_LOG] = [65535, -100];

/** The document with every array packed. */
export async function packed(trace) {
  const attentions = [];
  for (const one of trace.attentions)
    attentions.push({
      ...one,
      log_weights: await packLogs(one.log_weights),
      log_sums: await pack(one.log_sums),
      weights: one.weights && (await pack(one.weights)),
    });
  const states = {};
  for (const [name, array] of Object.entries(trace.states)) states[name] = await pack(array);
  return { ...trace, attentions, states };
}

const pack = async ({ shape, values }) => ({ dtype: "f4", shape, scale: null, data: await deflated(values) });

/** Logarithms of weights as codes: -scale * code * code. */
async function packLogs({ shape, values }) {
  const logs = Array.from(values, (log) => (log === -Infinity ? log : Math.min(Math.max(log, LEAST_LOG), 0)));
  const scale = -logs.reduce((least, log) => (log === -Infinity ? least : Math.min(least, log)), -1e-3) / (UNSEEN - 1) ** 2;
  const codes = Uint16Array.from(logs, (log) => (log === -Infinity ? UNSEEN : Math.round(Math.sqrt(-log / scale))));
  return { dtype: "u2", shape, scale, data: await deflated(codes) };
}

async function deflated(numbers) {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  const packedBytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (let at = 0; at < packedBytes.length; at += 8192) text += String.fromCharCode(...packedBytes.subarray(at, at + 8192));
  return btoa(text);
}
