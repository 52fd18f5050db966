// The model as one file: the twin of regard/modelfile.py. Every part is checked against what is declared and hashed.

import { Tokenizer } from "#engine/tokenizer";

const MODEL_FORMAT = "regard-model/1";
const MAX_HEADER_BYTES = 5_000_000;
const SIZES_OF = { F32: 4, I8: 1, U8: 1 };

/** The weights and tokenizers of a file. `shapes` has the shape of every weight that the design needs. */
export const readModel = (bytes, shapes) =>
  read(bytes, shapes).catch((error) => {
    throw error instanceof ModelError ? error : new ModelError("this is not a regard model, or it is damaged");
  });

async function read(bytes, shapes) {
  const { about, declared, data } = readHeader(bytes);
  const part = (name) => data.subarray(...declared[name].data_offsets);
  for (const name of new Set([...Object.keys(about.parts), ...Object.keys(declared)])) {
    const isSaved = declared[name] && about.parts[name] && (await hasHash(part(name), about.parts[name]));
    if (!isSaved) throw damaged(`${name} is not what was saved`);
  }
  const weights = {};
  for (const [name, shape] of Object.entries(shapes)) weights[name] = readWeight(name, shape, declared, part);
  const source = Tokenizer.fromBytes(part("tokenizer.source"));
  const target = declared["tokenizer.target"] ? Tokenizer.fromBytes(part("tokenizer.target")) : source;
  return { weights, source, target };
}

function readHeader(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length > MAX_HEADER_BYTES || 8 + length > bytes.length) throw new RangeError("header");
  const { __metadata__: metadata, ...declared } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const about = JSON.parse(metadata.regard);
  if (about.format !== MODEL_FORMAT) throw new RangeError(about.format);
  const data = bytes.subarray(8 + length);
  for (const [name, { dtype, shape, data_offsets: [first, last] }] of Object.entries(declared)) {
    const size = shape.reduce((product, one) => product * one, 1) * SIZES_OF[dtype];
    if (!(first >= 0 && last <= data.length && last - first === size)) throw damaged(`${name} has another size`);
  }
  return { about, declared, data };
}

/** A weight as `{shape, values}`; packed bytes times the scale of their row. */
function readWeight(name, shape, declared, part) {
  const [given, scale] = [declared[`weight.${name}`], declared[`scale.${name}`]];
  if (!given || String(given.shape) !== String(shape)) throw damaged(`weight ${name} has not the shape ${shape}`);
  const packed = given.dtype === "I8" && scale?.dtype === "F32" && String(scale.shape) === String(shape.slice(0, 1));
  if (given.dtype !== "F32" && !packed) throw damaged(`weight ${name} is ${given.dtype}`);
  const values = packed ? unpackRows(part(`weight.${name}`), floats(part(`scale.${name}`))) : floats(part(`weight.${name}`));
  if (!values.every(Number.isFinite)) throw damaged(`weight ${name} has values that are not finite`);
  return { shape, values };
}

function unpackRows(bytes, scale) {
  const steps = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  const values = new Float32Array(steps.length);
  const width = steps.length / scale.length;
  for (let at = 0, row = 0; row < scale.length; row++)
    for (const end = at + width; at < end; at++) values[at] = steps[at] * scale[row];
  return values;
}

/** Little-endian numbers of 32 bits; a copy, for they may stand at any byte. */
function floats(bytes) {
  return new Float32Array(bytes.slice().buffer);
}

/** Whether bytes have this hash. A page without a secure context has no `crypto.subtle`: then only sizes are checked. */
async function hasHash(bytes, sha256) {
  if (!globalThis.crypto?.subtle) return true;
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}

export class ModelError extends Error {}
const damaged = (reason) => new ModelError(`the model is damaged (${reason}); make the page again`);
